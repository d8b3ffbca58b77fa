//! `xctrace` runs the tool and judges what came of it. The tool is played by `stand-in/xcrun`, one folder per test.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trace_attr::cache::Cache;
use trace_attr::error::{Error, ErrorKind, Position, Result};
use trace_attr::xctrace::{Bundle, ExportStream, XctraceOptions};

const NO_MATCH: &str = "<?xml version=\"1.0\"?>\n<trace-query-result>\n</trace-query-result>";

/// A folder with the stand-in playing one case, a bundle and a place for a cache.
struct StandIn {
    folder: TempDir,
}

impl StandIn {
    fn new(case: &str) -> StandIn {
        let folder = tempfile::tempdir().unwrap();
        // A link, because a script that was just written may be refused while another test starts a process.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand-in/xcrun");
        std::os::unix::fs::symlink(script, folder.path().join("xcrun")).unwrap();
        fs::create_dir(folder.path().join("run.trace")).unwrap();
        fs::write(folder.path().join("run.trace/form.template"), "recorded").unwrap();
        let stand_in = StandIn { folder };
        stand_in.play(case);
        stand_in
    }

    fn play(&self, case: &str) {
        fs::write(self.path("case"), case).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Without a cache and with a limit that no test reaches by accident.
    fn options(&self) -> XctraceOptions {
        XctraceOptions {
            program: self.path("xcrun"),
            timeout: Duration::from_secs(60),
            cache: None,
        }
    }

    fn bundle(&self) -> Bundle {
        Bundle::open(&self.path("run.trace"), self.options()).unwrap()
    }

    fn impatient(&self) -> Bundle {
        let options = XctraceOptions {
            timeout: Duration::from_secs(2),
            ..self.options()
        };
        Bundle::open(&self.path("run.trace"), options).unwrap()
    }

    fn cache(&self) -> Cache {
        Cache::new(self.path("cache"), 1 << 30)
    }

    fn cached(&self) -> Bundle {
        let options = XctraceOptions {
            cache: Some(self.cache()),
            ..self.options()
        };
        Bundle::open(&self.path("run.trace"), options).unwrap()
    }

    /// The arguments of every call.
    fn calls(&self) -> Vec<Vec<String>> {
        let mut calls: Vec<Vec<String>> = Vec::new();
        for line in fs::read_to_string(self.path("log")).unwrap_or_default().lines() {
            match line.strip_prefix('<').and_then(|line| line.strip_suffix('>')) {
                Some(argument) => calls.last_mut().unwrap().push(argument.to_owned()),
                None => calls.push(Vec::new()),
            }
        }
        calls
    }

    fn exports(&self) -> usize {
        self.calls().iter().filter(|call| call[1] == "export").count()
    }

    /// Fails if anything is left of the group whose leader wrote its number to `leader`.
    fn assert_nothing_is_left(&self) {
        let leader = fs::read_to_string(self.path("leader")).unwrap();
        assert_gone(|group, _| group == leader.trim());
    }
}

/// Fails if a process (by group and number) is there and stays; what is dead and only not reaped yet does not count.
fn assert_gone(is_it: impl Fn(&str, &str) -> bool) {
    let asked = Instant::now();
    loop {
        let ps = Command::new("ps")
            .args(["-A", "-o", "pgid=,pid=,stat=,args="])
            .output()
            .unwrap();
        let ps = String::from_utf8_lossy(&ps.stdout).into_owned();
        let left: Vec<&str> = ps
            .lines()
            .filter(|line| {
                let mut fields = line.split_whitespace();
                let (group, pid, state) = (fields.next(), fields.next(), fields.next());
                is_it(group.unwrap_or_default(), pid.unwrap_or_default()) && !state.unwrap_or_default().starts_with('Z')
            })
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(asked.elapsed() < Duration::from_secs(5), "left behind: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the XML reader does, reduced to what matters here.
fn parse(stream: &mut ExportStream) -> Result<String> {
    let mut text = String::new();
    stream
        .read_to_string(&mut text)
        .map_err(|error| Error::io("read the export", error))?;
    if text.is_empty() {
        return Err(Error::new(ErrorKind::Empty).with_origin("run.trace"));
    }
    if !text.starts_with('<') || !(text.ends_with("</trace-query-result>") || text.ends_with("</trace-toc>")) {
        let at = Position {
            table: Some("t".into()),
            row: 3,
            byte: u64::try_from(text.len()).unwrap(),
        };
        return Err(Error::new(ErrorKind::Truncated { at }).with_origin("run.trace"));
    }
    Ok(text)
}

fn export(bundle: &Bundle) -> Result<(String, Option<String>)> {
    let mut stream = bundle.export(1, &["t"])?;
    let parsed = parse(&mut stream);
    stream.finish(parsed)
}

fn refusal(bundle: &Bundle) -> Error {
    let error = export(bundle).unwrap_err();
    assert!(!error.to_string().contains('\n'), "one line: {error}");
    error
}

#[track_caller]
fn assert_says(error: &Error, parts: &[&str]) {
    let text = format!("{error}\n{}", error.help().unwrap_or_default());
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn the_document_is_streamed_as_it_is() {
    let stand_in = StandIn::new("normal");
    let (text, warning) = export(&stand_in.bundle()).unwrap();
    assert_eq!(text.matches("<row>").count(), 2);
    assert_eq!(warning, None);

    let mut toc = stand_in.bundle().toc().unwrap();
    let parsed = parse(&mut toc);
    let (toc, _) = toc.finish(parsed).unwrap();
    assert!(toc.starts_with("<?xml") && toc.ends_with("</trace-toc>"));
}

#[test]
fn b45_path_and_xpath_are_one_argument_each() {
    let stand_in = StandIn::new("normal");
    let path = stand_in.path("tr é 試 'a\"b/My App run.trace");
    fs::create_dir_all(&path).unwrap();
    let bundle = Bundle::open(&path, stand_in.options()).unwrap();
    let mut stream = bundle.export(3, &["metal-gpu-intervals", "tick"]).unwrap();
    let parsed = parse(&mut stream);
    assert_eq!(stream.finish(parsed).unwrap().0, NO_MATCH);
    let mut stream = bundle.toc().unwrap();
    let parsed = parse(&mut stream);
    stream.finish(parsed).unwrap();

    let path = path.to_str().unwrap();
    let xpath = r#"/trace-toc/run[@number="3"]/data/table[@schema="metal-gpu-intervals" or @schema="tick"]"#;
    assert_eq!(
        stand_in.calls(),
        [
            vec!["xctrace", "export", "--input", path, "--xpath", xpath],
            vec!["xctrace", "export", "--input", path, "--toc"]
        ]
    );
}

#[test]
fn b45_a_schema_with_a_quote_is_refused_before_the_tool_starts() {
    let stand_in = StandIn::new("normal");
    let error = stand_in.cached().export(1, &["metal\"x"]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Usage(_)));
    assert_says(&error, &["metal\\\"x"]);
    assert_eq!(stand_in.calls(), Vec::<Vec<String>>::new());
}

#[test]
fn nothing_that_matches_is_a_document_without_nodes() {
    assert_eq!(
        export(&StandIn::new("no-match").bundle()).unwrap(),
        (NO_MATCH.to_owned(), None)
    );

    let stand_in = StandIn::new("normal");
    let mut stream = stand_in.bundle().export(7, &["t"]).unwrap();
    let parsed = parse(&mut stream);
    assert_eq!(stream.finish(parsed).unwrap().0, NO_MATCH);
}

#[test]
fn success_without_output_is_an_error() {
    let error = refusal(&StandIn::new("nothing").bundle());
    assert!(matches!(error.kind(), ErrorKind::Xctrace(_)));
    assert_says(
        &error,
        &[
            "could not export from `",
            "run.trace`",
            "reported success but gave no output for `t` of run 1",
        ],
    );
}

#[test]
fn success_with_text_only_quotes_it() {
    assert_says(
        &refusal(&StandIn::new("only-chatter").bundle()),
        &["gave no complete XML", "Nothing to export here. Bye."],
    );
    let error = refusal(&StandIn::new("endless-chatter").bundle());
    assert_says(
        &error,
        &["gave text instead of XML", ": `usage: xctrace export [<trace>]`"],
    );
    assert_eq!(error.help(), None);
}

#[test]
fn b15_a_recording_that_was_not_finished() {
    for case in ["missing-template", "missing-template-on-stdout"] {
        let stand_in = StandIn::new(case);
        let error = refusal(&stand_in.cached());
        assert_says(
            &error,
            &[
                "exit status 10",
                "Export failed: Document Missing Template Error",
                "the recording was not finished",
                "record again",
                "time limit",
                "one Ctrl-C",
            ],
        );
        assert_eq!(stand_in.exports(), 1);
    }
}

#[test]
fn b06_a_signal_is_named_before_the_parse_error() {
    let error = refusal(&StandIn::new("trap").bundle());
    let text = error.to_string();
    let cause = text
        .find("was ended by signal 5 (SIGTRAP) while exporting `t` of run 1")
        .unwrap();
    let effect = text.find("then: table `t`, row 3 (byte ").unwrap();
    assert!(text.starts_with("could not export from `") && cause < effect, "{text}");
    assert!(text.ends_with("unexpected end: the export is truncated"), "{text}");

    assert_says(
        &refusal(&StandIn::new("status-133").bundle()),
        &["exit status 133 (signal 5 (SIGTRAP))", "; then: ", "crashed"],
    );
}

#[test]
fn a_parse_error_stands_alone_when_the_tool_ended_well() {
    let error = refusal(&StandIn::new("cut").bundle());
    assert!(matches!(error.kind(), ErrorKind::Truncated { .. }), "{error}");
}

#[test]
fn a_parse_error_ends_a_tool_that_would_go_on() {
    let stand_in = StandIn::new("endless");
    let mut stream = stand_in.bundle().export(1, &["t"]).unwrap();
    let mut some = [0; 200];
    stream.read_exact(&mut some).unwrap();
    let error = stream.finish::<()>(Err(Error::unfit("enough"))).unwrap_err();
    assert_eq!(error.to_string(), "enough");
    stand_in.assert_nothing_is_left();
}

#[test]
fn b43_silence_has_a_limit_and_nothing_is_left() {
    let stand_in = StandIn::new("hang");
    let started = Instant::now();
    let error = refusal(&stand_in.impatient());
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_says(&error, &["timed out after 2 s without output", "`--timeout`"]);
    assert!(!error.to_string().contains("then:"), "{error}");
    stand_in.assert_nothing_is_left();
}

#[test]
fn b43_a_slow_export_is_not_ended() {
    let stand_in = StandIn::new("slow");
    let options = XctraceOptions {
        timeout: Duration::from_millis(1500),
        ..stand_in.options()
    };
    let bundle = Bundle::open(&stand_in.path("run.trace"), options).unwrap();
    let started = Instant::now();
    let (text, warning) = export(&bundle).unwrap();
    assert!(
        started.elapsed() > Duration::from_millis(1500),
        "the limit was not reached in all"
    );
    assert_eq!((text.matches("<row>").count(), warning), (6, None));
}

#[test]
fn b43_a_tool_that_does_not_end_after_its_document_costs_a_warning() {
    let stand_in = StandIn::new("hang-after");
    let (text, warning) = export(&stand_in.impatient()).unwrap();
    assert_eq!(text.matches("<row>").count(), 2);
    let warning = warning.unwrap();
    assert!(
        warning.contains("timed out after 2 s") && warning.contains("the export is complete"),
        "{warning}"
    );
    stand_in.assert_nothing_is_left();
}

#[test]
fn a_stream_that_is_dropped_ends_the_tool() {
    let stand_in = StandIn::new("endless");
    let mut stream = stand_in.bundle().export(1, &["t"]).unwrap();
    stream.read_exact(&mut [0; 100]).unwrap();
    drop(stream);
    stand_in.assert_nothing_is_left();
}

#[test]
fn a_helper_that_holds_the_output_open_is_ended() {
    let stand_in = StandIn::new("helper");
    let (text, warning) = export(&stand_in.bundle()).unwrap();
    assert_eq!((text.matches("<row>").count(), warning), (2, None));
    let helper = fs::read_to_string(stand_in.path("helper")).unwrap();
    assert_gone(|_, pid| pid == helper.trim());
}

#[test]
fn text_around_the_document_is_dropped() {
    let stand_in = StandIn::new("chatter");
    let (text, warning) = export(&stand_in.bundle()).unwrap();
    assert!(text.starts_with("<?xml") && text.ends_with("</trace-query-result>"));
    assert_eq!(warning, None);
}

#[test]
fn b63_a_complete_export_with_a_failure_status_is_used_with_a_warning_and_not_cached() {
    let stand_in = StandIn::new("run-issues");
    for _ in 0..2 {
        let (text, warning) = export(&stand_in.cached()).unwrap();
        assert_eq!(text.matches("<row>").count(), 2);
        let warning = warning.unwrap();
        for part in [
            "exit status 54",
            "Run issues were detected",
            "* [Error] sub-instrument failed",
            "complete",
        ] {
            assert!(warning.contains(part), "{warning}");
        }
        assert!(!warning.contains('\n'));
    }
    assert_eq!(stand_in.exports(), 2);
}

#[test]
fn many_messages_neither_block_the_tool_nor_fill_the_warning() {
    let (_, warning) = export(&StandIn::new("loud").bundle()).unwrap();
    let warning = warning.unwrap();
    assert!(
        warning.contains("exit status 3") && warning.ends_with("number: 3999"),
        "{warning}"
    );
    assert!(warning.len() < 3000);
}

#[test]
fn b21_without_xcode_the_remedy_is_named() {
    for (case, line) in [
        (
            "missing-utility",
            "xcrun: error: unable to find utility \"xctrace\", not a developer tool or in PATH",
        ),
        (
            "command-line-tools",
            "active developer directory '/Library/Developer/CommandLineTools' is a command line tools",
        ),
    ] {
        let error = refusal(&StandIn::new(case).bundle());
        assert_says(&error, &[line, "xcode-select", "/Applications/Xcode.app"]);
        assert!(!error.to_string().contains("then:"), "{error}");
    }
}

#[test]
fn without_xcrun_the_exported_xml_is_asked_for() {
    let stand_in = StandIn::new("normal");
    for cache in [None, Some(stand_in.cache())] {
        let options = XctraceOptions {
            program: stand_in.path("none/xcrun"),
            cache,
            ..stand_in.options()
        };
        let error = Bundle::open(&stand_in.path("run.trace"), options)
            .unwrap()
            .toc()
            .unwrap_err();
        let path = stand_in.path("run.trace");
        assert_eq!(
            error.to_string(),
            format!("could not export from `{}`: `xcrun` was not found", path.display())
        );
        assert_eq!(
            error.help().unwrap(),
            "reading a .trace bundle needs macOS with Xcode; on this machine pass the exported XML instead \
             (`trace-attr export` makes it on a Mac)"
        );
    }
}

#[test]
fn b11_only_a_folder_that_is_a_recording_is_a_bundle() {
    let stand_in = StandIn::new("normal");
    let open = |name: &str| Bundle::open(&stand_in.path(name), stand_in.options()).unwrap_err();
    fs::write(stand_in.path("file.trace"), "PK").unwrap();
    fs::create_dir(stand_in.path("shot.gputrace")).unwrap();
    assert_says(&open("file.trace"), &["is a file", "folder"]);
    assert_says(&open("shot.gputrace"), &["frame capture, not a recording"]);
    assert!(matches!(open("none.trace").kind(), ErrorKind::Io { .. }));
}

#[test]
fn a_complete_export_is_made_once() {
    let stand_in = StandIn::new("normal");
    let first = export(&stand_in.cached()).unwrap();
    assert_eq!(stand_in.exports(), 1);
    // Another export, the same one again, and a look at the tool's version only once.
    let mut toc = stand_in.cached().toc().unwrap();
    let parsed = parse(&mut toc);
    toc.finish(parsed).unwrap();
    let mut stream = stand_in.cached().export(1, &["t"]).unwrap();
    assert!(stream.is_cached());
    let parsed = parse(&mut stream);
    assert_eq!(stream.finish(parsed).unwrap(), first);
    assert_eq!((stand_in.exports(), stand_in.calls().len()), (2, 3));

    // `--no-cache`
    export(&stand_in.bundle()).unwrap();
    assert_eq!(stand_in.exports(), 3);

    // The bundle changed.
    fs::write(stand_in.path("run.trace/form.template"), "recorded again").unwrap();
    export(&stand_in.cached()).unwrap();
    assert_eq!(stand_in.exports(), 4);

    // The entries are harmed.
    for entry in fs::read_dir(stand_in.path("cache/exports")).unwrap() {
        fs::write(entry.unwrap().path(), "harmed").unwrap();
    }
    assert_eq!(export(&stand_in.cached()).unwrap(), first);
    assert_eq!(export(&stand_in.cached()).unwrap(), first);
    assert_eq!(stand_in.exports(), 5);
}

#[test]
fn what_is_not_complete_is_not_cached() {
    let entries = |stand_in: &StandIn| fs::read_dir(stand_in.path("cache/exports")).unwrap().count();
    for case in ["trap", "cut", "nothing", "missing-template", "run-issues"] {
        let stand_in = StandIn::new(case);
        let _ = export(&stand_in.cached());
        assert_eq!(entries(&stand_in), 0, "{case}");
        stand_in.play("normal");
        export(&stand_in.cached()).unwrap();
        assert_eq!(entries(&stand_in), 1, "{case}");
    }
    // The parser has the last word.
    let stand_in = StandIn::new("normal");
    let mut stream = stand_in.cached().export(1, &["t"]).unwrap();
    parse(&mut stream).unwrap();
    stream.finish::<()>(Err(Error::unfit("not this"))).unwrap_err();
    assert_eq!(entries(&stand_in), 0);
}

#[test]
fn a_parser_that_stops_early_still_gets_the_whole_export_judged_and_cached() {
    let stand_in = StandIn::new("normal");
    let mut stream = stand_in.cached().export(1, &["t"]).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    assert_eq!(stream.finish(Ok(1)).unwrap(), (1, None));
    let stream = stand_in.cached().export(1, &["t"]).unwrap();
    assert!(stream.is_cached());

    let stand_in = StandIn::new("trap");
    let mut stream = stand_in.bundle().export(1, &["t"]).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    assert_says(&stream.finish(Ok(1)).unwrap_err(), &["signal 5 (SIGTRAP)"]);
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let stand_in = StandIn::new("normal");
    fs::write(stand_in.path("cache"), "a file where the folder should be").unwrap();
    for _ in 0..2 {
        assert_eq!(export(&stand_in.cached()).unwrap().1, None);
    }
    assert_eq!(stand_in.exports(), 2);
}

#[test]
fn a_version_that_cannot_be_had_costs_only_the_cache() {
    let stand_in = StandIn::new("version-hangs");
    let options = XctraceOptions {
        timeout: Duration::from_secs(2),
        cache: Some(stand_in.cache()),
        ..stand_in.options()
    };
    let bundle = Bundle::open(&stand_in.path("run.trace"), options).unwrap();
    assert_eq!(export(&bundle).unwrap().1, None);
    assert!(!stand_in.path("cache").exists());
    stand_in.assert_nothing_is_left();
}
