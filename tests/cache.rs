//! The cache of tables: the second run gives what the first gave, to the byte; an input that is no longer the same is read
//! anew; a damaged entry is told and made again; and nothing that happens to the folder stops a report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use support::export::Style;
use support::settle;
use support::short::{doc, document, node, r, toc};
use support::workload::{Engine, Workload};
use trace_attr::analysis::{Request, SideRequest, analyse};
use trace_attr::cache::{Cache, Kind};
use trace_attr::recording::{Progress, ReadOptions, Recording, RunChoice, cache_bytes, read_recording};
use trace_attr::report::{Format, ReportOptions, write};
use trace_attr::source::Source;
use trace_attr::xctrace::XctraceOptions;

/// Hears which tables are read from XML, and what is warned of.
#[derive(Default)]
struct Heard {
    tables: Mutex<Vec<String>>,
    warnings: Mutex<Vec<String>>,
}

impl Progress for Heard {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn table(&self, schema: &str) {
        self.tables.lock().unwrap().push(schema.to_owned());
    }
    fn advance(&self, _: u64) {}
    fn warning(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }
}

/// A folder with inputs, and one with the cache.
struct Desk {
    folder: tempfile::TempDir,
}

/// What came of reading, and how.
#[derive(Debug, PartialEq)]
struct Read {
    /// Everything that the recording holds, or what was said instead.
    result: String,
    from_cache: bool,
    warnings: Vec<String>,
}

impl Desk {
    fn new() -> Self {
        Desk {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that was left alone for long enough to be kept.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        settle(&path);
        path
    }

    fn options(&self) -> ReadOptions {
        ReadOptions {
            run: RunChoice::All,
            cache: Some(Cache::new(self.path("cache"), 1 << 30)),
            cache_small: true,
            ..ReadOptions::default()
        }
    }

    fn read(&self, input: &Path) -> Read {
        read_with(input, &self.options())
    }

    /// Paths of the entries.
    fn entries(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/tables")).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

fn read_with(input: &Path, options: &ReadOptions) -> Read {
    let heard = Heard::default();
    let source = Source::from_argument(input).unwrap();
    let read = read_recording(&source, options, &heard);
    let from_cache = read.is_ok() && heard.tables.into_inner().unwrap().is_empty();
    Read {
        result: match read {
            Ok(recording) => everything(&recording),
            Err(error) => format!("{error} {:?}", error.help()),
        },
        from_cache,
        warnings: heard.warnings.into_inner().unwrap(),
    }
}

fn everything(recording: &Recording) -> String {
    let Recording {
        origin,
        contents,
        runs,
        texts,
        notes,
    } = recording;
    let processes: Vec<_> = texts.processes().collect();
    // Names in the order of their ids are in the entry.
    let entry = cache_bytes::of_recording(recording);
    format!(
        "{origin} {contents:?} {runs:?} {notes:?} {processes:?} {:?} {entry:?}",
        texts.labels()
    )
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Every file and folder of the fixtures that is an input.
fn fixtures() -> Vec<PathBuf> {
    let mut inputs = Vec::new();
    for kind in ["good", "refused", "fuzz", "demo"] {
        let entries = fs::read_dir(fixture(kind)).unwrap();
        inputs.extend(entries.map(|entry| entry.unwrap().path()));
    }
    // Bundles need xctrace, see `bundles.rs`.
    inputs.retain(|path| matches!(Source::from_argument(path), Ok(Source::File(_) | Source::Folder(_))));
    inputs.sort();
    inputs
}

#[test]
fn every_fixture_is_the_same_from_the_cache_and_a_refusal_is_never_kept() {
    let (mut kept, mut refused) = (0, 0);
    for input in fixtures() {
        let desk = Desk::new();
        for (run, signposts) in [
            (RunChoice::All, false),
            (RunChoice::Only, true),
            (RunChoice::Number(1), false),
        ] {
            let options = ReadOptions {
                run,
                signposts,
                ..desk.options()
            };
            let uncached = read_with(
                &input,
                &ReadOptions {
                    cache: None,
                    ..options.clone()
                },
            );
            let before = desk.entries().len();
            let first = read_with(&input, &options);
            let second = read_with(&input, &options);
            assert_eq!(first, uncached, "{}", input.display());
            assert_eq!(second.result, uncached.result, "{}", input.display());
            assert_eq!((first.warnings, second.warnings), (vec![], vec![]));
            let readable = uncached.result.contains("RunTables");
            assert_eq!(second.from_cache, readable, "{}", input.display());
            assert_eq!(desk.entries().len(), before + usize::from(readable));
            if readable { kept += 1 } else { refused += 1 }
        }
    }
    assert!(kept > 50 && refused > 50, "{kept} {refused}");
}

#[test]
fn a_comparison_is_the_same_to_the_byte_for_any_jobs() {
    let desk = Desk::new();
    let side = |name: &str| SideRequest {
        inputs: (1..=3).map(|trial| fixture(&format!("demo/{name}-{trial}"))).collect(),
        units: vec![64],
        ..SideRequest::default()
    };
    let report = |cache: bool, jobs: usize, format| {
        let request = Request {
            a: side("hf2q"),
            b: Some(side("llama")),
            unit: "token".to_owned(),
            read: ReadOptions {
                run: RunChoice::Only,
                cache: desk.options().cache.filter(|_| cache),
                jobs: trace_attr::parallel::Jobs::new(jobs.try_into().unwrap()),
                ..desk.options()
            },
            ..Request::default()
        };
        let heard = Heard::default();
        let outcome = analyse(&request, &heard).unwrap();
        let mut out = Vec::new();
        write(&outcome.comparison, format, &ReportOptions::default(), &mut out).unwrap();
        assert_eq!(*heard.warnings.lock().unwrap(), Vec::<String>::new());
        (
            String::from_utf8(out).unwrap(),
            heard.tables.into_inner().unwrap().len(),
        )
    };
    for format in [Format::Json, Format::Terminal] {
        let (uncached, tables) = report(false, 1, format);
        assert!(tables > 0);
        for jobs in [1, 2, 7] {
            for _ in 0..2 {
                assert!(report(true, jobs, format).0 == uncached, "{jobs} jobs");
            }
            assert_eq!(report(true, jobs, format).1, 0, "nothing is read a third time");
        }
    }
    assert_eq!(desk.entries().len(), 6);
}

#[test]
fn whatever_changes_at_an_input_or_in_how_it_is_read_gives_another_entry() {
    let desk = Desk::new();
    let text = doc(&[r(1_000, 100)]);
    let file = desk.write("a.xml", &text);
    assert!(!desk.read(&file).from_cache);
    assert!(desk.read(&file).from_cache);
    // By any name.
    let link = desk.path("folder/../a.xml");
    fs::create_dir(desk.path("folder")).unwrap();
    assert!(desk.read(&link).from_cache);

    for options in [
        ReadOptions {
            run: RunChoice::Only,
            ..desk.options()
        },
        ReadOptions {
            run: RunChoice::Number(1),
            ..desk.options()
        },
        ReadOptions {
            signposts: true,
            ..desk.options()
        },
    ] {
        assert!(!read_with(&file, &options).from_cache);
        assert!(read_with(&file, &options).from_cache);
    }
    let by_tokenizer = ReadOptions {
        without_scanner: true,
        ..desk.options()
    };
    assert!(
        !read_with(&file, &by_tokenizer).from_cache,
        "the check of the scanner reads"
    );

    // Other content of the same length, with the time set back to what it was.
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, text.replace(">100<", ">200<")).unwrap();
    File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(time)
        .unwrap();
    settle(&file);
    let changed = desk.read(&file);
    assert!(
        !changed.from_cache && changed.result.contains("Nanos(200)"),
        "{changed:?}"
    );
    // Another file in its place.
    let other = desk.write("b.xml", &text.replace(">100<", ">300<"));
    File::options()
        .write(true)
        .open(&other)
        .unwrap()
        .set_modified(time)
        .unwrap();
    fs::rename(&other, &file).unwrap();
    settle(&file);
    let changed = desk.read(&file);
    assert!(
        !changed.from_cache && changed.result.contains("Nanos(300)"),
        "{changed:?}"
    );
}

#[test]
fn a_folder_is_its_files_by_name() {
    let desk = Desk::new();
    desk.write("in/a.xml", &doc(&[r(1_000, 100)]));
    desk.write("in/toc.xml", &toc("bench (77)").replace("number=\"1\"", "number=\"4\""));
    let folder = desk.path("in");
    assert!(desk.read(&folder).result.contains("number: 4"));
    assert!(desk.read(&folder).from_cache);
    // What is no export counts for nothing.
    desk.write("in/notes.txt", "mine");
    assert!(desk.read(&folder).from_cache);
    // The same bytes by another name are no table of contents that all others are read by.
    fs::rename(desk.path("in/toc.xml"), desk.path("in/z.xml")).unwrap();
    let without = ReadOptions {
        cache: None,
        ..desk.options()
    };
    let read = desk.read(&folder);
    assert!(!read.from_cache);
    assert_eq!(read.result, read_with(&folder, &without).result);
    settle(&desk.path("in/z.xml"));
    // A link has the name that it has here.
    fs::rename(desk.path("in/z.xml"), desk.path("elsewhere.xml")).unwrap();
    settle(&desk.path("elsewhere.xml"));
    for name in ["z.xml", "toc.xml"] {
        std::os::unix::fs::symlink(desk.path("elsewhere.xml"), folder.join(name)).unwrap();
        let read = desk.read(&folder);
        assert!(!read.from_cache, "{name}");
        assert_eq!(read.result, read_with(&folder, &without).result, "{name}");
        fs::remove_file(folder.join(name)).unwrap();
    }
}

#[test]
fn a_file_that_may_still_change_unseen_is_not_kept() {
    let desk = Desk::new();
    let file = desk.write("a.xml", &doc(&[r(1_000, 100)]));
    let future = SystemTime::now() + Duration::from_secs(3600);
    File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(future)
        .unwrap();
    settle(&file);
    for _ in 0..2 {
        assert!(!desk.read(&file).from_cache);
    }
    assert_eq!(desk.entries().len(), 0);
}

#[test]
fn a_bundle_is_kept_like_its_files_and_not_when_xctrace_failed() {
    let desk = Desk::new();
    // A link, because a script that was just written may be refused while another test starts a process.
    fs::create_dir(desk.path("bin")).unwrap();
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand-in/xcrun");
    std::os::unix::fs::symlink(stand_in, desk.path("bin/xcrun")).unwrap();
    let workload = Workload::new(Engine::Hf2q, 5, 1, 1);
    let bundle = desk.path("run.trace");
    fs::create_dir_all(bundle.join("run-1")).unwrap();
    fs::write(bundle.join("case"), "recorded").unwrap();
    fs::write(bundle.join("toc.xml"), workload.toc(Workload::SCHEMAS).to_xml()).unwrap();
    for schema in Workload::SCHEMAS {
        let file = File::create(bundle.join(format!("run-1/{schema}.xml"))).unwrap();
        workload.write(schema, file, Style::default()).unwrap();
    }
    let options = |cache: bool| ReadOptions {
        cache: desk.options().cache.filter(|_| cache),
        xctrace: XctraceOptions {
            program: desk.path("bin/xcrun"),
            ..XctraceOptions::default()
        },
        ..desk.options()
    };
    let exports = || {
        let log = fs::read_to_string(desk.path("bin/log")).unwrap_or_default();
        log.matches("<export>").count()
    };
    let uncached = read_with(&bundle, &options(false));
    assert!(uncached.result.contains("RunTables"), "{uncached:?}");
    assert_eq!(read_with(&bundle, &options(true)), uncached);
    let before = exports();
    let again = read_with(&bundle, &options(true));
    assert_eq!((&again.result, again.from_cache), (&uncached.result, true));
    assert_eq!(exports(), before, "nothing is exported");

    fs::write(bundle.join("Trace1.run"), "recorded on").unwrap();
    assert!(!read_with(&bundle, &options(true)).from_cache);
    // A warning of xctrace stands in the report, and the next try may go without it.
    fs::write(bundle.join("case"), "recorded-run-issues").unwrap();
    for _ in 0..2 {
        let read = read_with(&bundle, &options(true));
        assert!(!read.from_cache);
    }
}

#[test]
fn small_inputs_are_not_kept() {
    let desk = Desk::new();
    let options = ReadOptions {
        cache_small: false,
        ..desk.options()
    };
    for _ in 0..2 {
        assert!(!read_with(&fixture("demo/hf2q-1"), &options).from_cache);
    }
    assert_eq!(desk.entries().len(), 0);
}

/// An input with every kind of value, and its entry.
fn rich() -> (Desk, PathBuf, Vec<u8>) {
    let desk = Desk::new();
    let rows: Vec<_> = (0..20).map(|at| r(at * 1_000, 400).encoder(at).label("a:b")).collect();
    let again = node(&[r((), 1), r(5, 6)]);
    let file = desk.write("a.xml", &document(&(node(&rows) + &again)));
    let first = desk.read(&file);
    assert!(first.result.contains("merged_nodes"));
    let entry = fs::read(&desk.entries()[0]).unwrap();
    (desk, file, entry)
}

#[test]
fn any_changed_bit_and_any_cut_is_noticed() {
    let recording = {
        let source = Source::from_argument(&fixture("demo/hf2q-1")).unwrap();
        read_recording(&source, &ReadOptions::default(), &()).unwrap()
    };
    let whole = cache_bytes::of_recording(&recording).unwrap();
    let small = cache_bytes::of_recording(
        &read_recording(
            &Source::from_argument(&fixture("good/plain.xml")).unwrap(),
            &ReadOptions::default(),
            &(),
        )
        .unwrap(),
    )
    .unwrap();
    for (entry, step) in [(small, 1), (whole, 997)] {
        assert!(cache_bytes::to_recording(&entry).is_ok());
        for at in (0..entry.len()).step_by(step) {
            for bit in 0..8 {
                let mut harmed = entry.clone();
                harmed[at] ^= 1 << bit;
                assert!(cache_bytes::to_recording(&harmed).is_err(), "bit {bit} of byte {at}");
            }
            assert!(cache_bytes::to_recording(&entry[..at]).is_err(), "cut at {at}");
        }
        let longer = [entry.as_slice(), b"\0"].concat();
        assert!(cache_bytes::to_recording(&longer).is_err());
    }
}

#[test]
fn a_damaged_entry_is_told_not_used_and_made_anew() {
    let (desk, file, entry) = rich();
    let path = desk.entries()[0].clone();
    let right = desk.read(&file);
    assert!(right.from_cache && right.warnings.is_empty());
    let flipped = |at: usize| {
        let mut bytes = entry.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let older = [b"trace-attr rows0".as_slice(), &entry[16..]].concat();
    for (bytes, reason) in [
        (Vec::new(), "it is cut"),
        (entry[..60].to_vec(), "it is cut"),
        (entry[..entry.len() - 1].to_vec(), "of another length"),
        (older, "of another version"),
        (b"<trace-toc/>".repeat(9), "no entry of the cache"),
        (flipped(20), "of another entry"),
        (flipped(70), "a checksum does not match"),
        (flipped(entry.len() / 2), "a checksum does not match"),
        (flipped(entry.len() - 1), "a checksum does not match"),
    ] {
        fs::write(&path, bytes).unwrap();
        let read = desk.read(&file);
        assert_eq!((&read.result, read.from_cache), (&right.result, false), "{reason}");
        let [warning] = read.warnings.as_slice() else {
            panic!("{reason}: {read:?}");
        };
        assert!(
            warning.contains("a.xml is damaged and not used") && warning.contains(reason),
            "{warning}"
        );
        assert_eq!(desk.read(&file), right, "{reason}");
        assert_eq!(fs::read(&path).unwrap(), entry);
    }
    // An entry under another's name.
    let other = desk.write("b.xml", &doc(&[r(1, 2)]));
    desk.read(&other);
    let theirs = desk.entries().into_iter().find(|entry| *entry != path).unwrap();
    fs::copy(&path, theirs).unwrap();
    assert!(desk.read(&other).warnings[0].contains("of another entry"));
}

#[test]
fn a_cache_that_cannot_be_written_to_is_a_warning() {
    let desk = Desk::new();
    let file = desk.write("a.xml", &doc(&[r(1_000, 100)]));
    fs::write(desk.path("cache"), "a file where the folder should be").unwrap();
    let read = desk.read(&file);
    assert!(read.result.contains("RunTables") && !read.from_cache);
    assert!(read.warnings[0].contains("could not be kept in the cache"), "{read:?}");

    let tiny = ReadOptions {
        cache: Some(Cache::new(desk.path("tiny"), 100)),
        ..desk.options()
    };
    let read = read_with(&file, &tiny);
    assert!(
        read.warnings[0].contains("more than TRACE_ATTR_CACHE_LIMIT allows"),
        "{read:?}"
    );
    let left = fs::read_dir(desk.path("tiny/tables")).unwrap().count();
    assert_eq!(left, 0, "nothing half-written stays");
}

#[test]
fn the_limit_holds_over_many_inputs() {
    let desk = Desk::new();
    let one = |at: u64| desk.write(&format!("{at}.xml"), &doc(&[r(at * 1_000, 100)]));
    desk.read(&one(0));
    let size = fs::metadata(&desk.entries()[0]).unwrap().len();
    let cache = Cache::new(desk.path("cache"), 3 * size + size / 2);
    let options = ReadOptions {
        cache: Some(cache.clone()),
        ..desk.options()
    };
    for at in 1..6 {
        read_with(&one(at), &options);
        assert!(cache.usage(Kind::Tables).bytes <= cache.limit());
    }
    assert_eq!(cache.usage(Kind::Tables).entries, 3);
    assert!(
        read_with(&desk.path("5.xml"), &options).from_cache,
        "the newest is there"
    );
}

#[test]
fn readers_writers_and_somebody_who_clears_do_each_other_no_harm() {
    let desk = Desk::new();
    let file = desk.write(
        "a.xml",
        &doc(&(0..200).map(|at| r(at * 1_000, 400)).collect::<Vec<_>>()),
    );
    let right = read_with(
        &file,
        &ReadOptions {
            cache: None,
            ..desk.options()
        },
    );
    let cache = desk.options().cache.unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let read = desk.read(&file);
                    assert_eq!((&read.result, read.warnings), (&right.result, vec![]));
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                cache.clear().unwrap();
                std::thread::yield_now();
            }
        });
    });
    desk.read(&file);
    assert!(desk.read(&file).from_cache);
    assert_eq!(desk.entries().len(), 1, "no part stays");
}

/// A file that runs the binary without a cache folder of its own would fill the user's.
#[test]
fn no_test_uses_the_cache_of_whoever_runs_it() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut running = 0;
    for path in [tests.clone(), tests.join("command")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
    {
        let text = fs::read_to_string(&path).unwrap_or_default();
        // Not the words of this test.
        if text.contains(concat!("CARGO_BIN_EXE_", "trace-attr")) || text.contains(concat!("cargo_", "bin(")) {
            running += 1;
            assert!(text.contains("TRACE_ATTR_CACHE_DIR"), "{}", path.display());
        }
    }
    assert!(running > 2);
}
