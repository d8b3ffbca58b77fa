//! However many threads read, what is read and what is refused is the same, to the byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use support::short::{doc, document, node, r, toc};
use trace_attr::analysis::{Request, SideRequest, analyse};
use trace_attr::parallel::Jobs;
use trace_attr::recording::{ReadOptions, RunChoice, read_recording};
use trace_attr::report::{Format, ReportOptions, write};
use trace_attr::source::Source;

fn options(jobs: usize, run: RunChoice) -> ReadOptions {
    ReadOptions {
        jobs: Jobs::new(NonZeroUsize::new(jobs).unwrap()),
        // So small that tables of a few rows are read by several threads.
        block_bytes: Some(1_000),
        run,
        ..ReadOptions::default()
    }
}

/// Everything that a recording holds, or what was said instead.
fn recording(folder: &Path, jobs: usize, run: RunChoice) -> String {
    let source = Source::from_argument(folder).unwrap();
    match read_recording(&source, &options(jobs, run), &()) {
        Ok(read) => {
            let processes: Vec<_> = read.texts.processes().collect();
            let runs = format!("{:?} {:?} {:?}", read.runs, read.contents, read.notes);
            format!("{runs} {processes:?} {:?}", read.texts.labels())
        }
        Err(error) => format!("{error} {:?}", error.help()),
    }
}

fn same_for_any_jobs(folder: &Path) -> String {
    let mut first = String::new();
    for run in [RunChoice::All, RunChoice::Only, RunChoice::Number(2)] {
        let one = recording(folder, 1, run);
        for jobs in [2, 3, 16] {
            assert_eq!(
                recording(folder, jobs, run),
                one,
                "{} with {jobs} jobs",
                folder.display()
            );
        }
        if run == RunChoice::All {
            first = one;
        }
    }
    first
}

/// Files of a folder, by name.
fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

#[test]
fn every_folder_of_the_fixtures_is_read_alike() {
    let mut folders = 0;
    for kind in ["good", "refused"] {
        for entry in fs::read_dir(fixture(kind)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.extension().is_none() {
                same_for_any_jobs(&path);
                folders += 1;
            }
        }
    }
    same_for_any_jobs(&fixture("demo/hf2q-1"));
    assert!(folders > 3, "{folders}");
}

/// A table that nobody reads, whose second row lacks a cell.
fn broken_node(name: &str) -> String {
    let schema = support::short::schema(name, &[("start", "start-time"), ("duration", "duration")]);
    format!(
        "<node xpath='//trace-toc[1]/run[1]/data[1]/table[1]'>{schema}<row><start-time>1</start-time><duration>1</duration></row>\
         <row><start-time>1</start-time></row></node>"
    )
}

fn broken(name: &str) -> String {
    document(&broken_node(name))
}

#[test]
fn the_first_error_in_the_order_of_the_files_is_told() {
    let rows = || doc(&[r(1_000, 100), r(5_000, 100)]);
    // The broken files are short and done long before the first is.
    let long = || doc(&(0..3_000).map(|at| r(at * 1_000, 100)).collect::<Vec<_>>());
    let told = same_for_any_jobs(folder(&[("a.xml", long()), ("b.xml", broken("b")), ("c.xml", broken("c"))]).path());
    assert!(told.contains("b.xml") && told.contains("row 2"), "{told}");
    // A table that two files hold is told before what is wrong further down in the second.
    let doubled = document(&(node(&[r(1_000, 100)]) + &broken_node("c")));
    let told = same_for_any_jobs(folder(&[("a.xml", rows()), ("b.xml", doubled)]).path());
    assert!(told.contains("stands in two files: a.xml and b.xml"), "{told}");
    // And one that is wrong further up is told before the table that is there twice.
    let first = document(&(broken_node("c") + &node(&[r(1_000, 100)])));
    let told = same_for_any_jobs(folder(&[("a.xml", rows()), ("b.xml", first)]).path());
    assert!(told.contains("b.xml") && told.contains("row 2"), "{told}");
}

#[test]
fn a_table_of_contents_by_another_name_counts_for_the_files_behind_it() {
    let contents = toc("bench (77)").replace("number=\"1\"", "number=\"4\"");
    for name in ["0.xml", "b.xml", "z.xml", "toc.xml"] {
        let files = [
            ("a.xml", doc(&[r(1_000, 100)])),
            (name, contents.clone()),
            (
                "c.xml",
                broken("c").replace("<row><start-time>1</start-time></row>", ""),
            ),
        ];
        same_for_any_jobs(folder(&files).path());
    }
    let two = [
        ("a.xml", contents.clone()),
        ("b.xml", doc(&[r(1_000, 100)])),
        ("c.xml", contents),
    ];
    let told = same_for_any_jobs(folder(&two).path());
    assert!(told.contains("two tables of contents"), "{told}");
}

#[test]
fn a_comparison_is_the_same_to_the_byte() {
    let side = |name: &str| SideRequest {
        inputs: (1..=3).map(|trial| fixture(&format!("demo/{name}-{trial}"))).collect(),
        units: vec![64],
        ..SideRequest::default()
    };
    let report = |jobs| {
        let request = Request {
            a: side("hf2q"),
            b: Some(side("llama")),
            unit: "token".to_owned(),
            read: options(jobs, RunChoice::Only),
            ..Request::default()
        };
        let outcome = analyse(&request, &()).unwrap();
        let mut out = Vec::new();
        write(&outcome.comparison, Format::Json, &ReportOptions::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let one = report(1);
    for jobs in [2, 7] {
        assert!(report(jobs) == one, "{jobs} jobs");
    }
}

#[test]
fn of_several_inputs_that_cannot_be_read_the_first_is_told() {
    let folder = folder(&[
        (
            "a.xml",
            doc(&(0..3_000).map(|at| r(at * 1_000, 100)).collect::<Vec<_>>()),
        ),
        ("b.xml", broken("b")),
        ("c.xml", broken("c")),
    ]);
    let inputs = || ["a.xml", "b.xml", "c.xml"].map(|name| folder.path().join(name)).into();
    for keep_going in [false, true] {
        let told = |jobs| {
            let request = Request {
                a: SideRequest {
                    inputs: inputs(),
                    units: vec![3, 4, 5],
                    ..SideRequest::default()
                },
                unit: "token".to_owned(),
                read: options(jobs, RunChoice::Only),
                keep_going,
                ..Request::default()
            };
            match analyse(&request, &()) {
                Ok(outcome) => {
                    let units: Vec<_> = outcome.comparison.a.trials.iter().map(|trial| trial.units).collect();
                    assert_eq!(units, [Some(3)]);
                    format!("{:?}", outcome.missing)
                }
                Err(error) => error.to_string(),
            }
        };
        let one = told(1);
        assert!(one.contains("b.xml"), "{one}");
        assert_eq!(one.contains("c.xml"), keep_going, "{one}");
        for jobs in [2, 3, 8] {
            assert_eq!(told(jobs), one);
        }
    }
}
