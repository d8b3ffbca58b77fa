//! The cache as a user of the command line meets it: large inputs, `--no-cache`, `trace-attr cache`, warnings, and two
//! runs at once. What an entry holds is tested in `cache.rs`.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use std::fs;
use std::process::Stdio;

use command::{Place, Ran};
use support::workload::{Engine, Workload};
use support::{settle, sized};

const SCHEMAS: [&str; 2] = [
    "metal-gpu-execution-points",
    "metal-gpu-submission-to-command-buffer-id",
];
const REPORT: [&str; 4] = ["report", "in", "--format", "json"];

/// A place with a folder `in` of more rows than are read again each time.
fn large() -> Place {
    let place = Place::new();
    sized::write(Workload::new(Engine::Hf2q, 60, 1, 4), &SCHEMAS, true, &place.path("in")).unwrap();
    settle(&place.path("in"));
    place
}

fn entries(place: &Place) -> usize {
    fs::read_dir(place.path("cache/tables")).map_or(0, Iterator::count)
}

/// The line of `trace-attr cache` that begins with `word`.
fn shown(place: &Place, word: &str) -> String {
    let ran = place.run(["cache"]);
    let line = ran.done().stdout.lines().find(|line| line.starts_with(word));
    line.unwrap().split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_second_run_is_the_first_again() {
    let place = large();
    let uncached = place.run([REPORT.as_slice(), &["--no-cache"]].concat());
    uncached.done();
    assert!(!place.path("cache").exists(), "--no-cache keeps nothing");
    assert_eq!(shown(&place, "tables"), "nothing");

    assert_eq!(place.run(REPORT).done().stdout, uncached.stdout);
    assert!(
        shown(&place, "tables").starts_with("1 entry, "),
        "{}",
        shown(&place, "tables")
    );
    assert_eq!(shown(&place, "folder"), place.path("cache").display().to_string());
    assert_eq!(shown(&place, "limit"), "8.5 GB (TRACE_ATTR_CACHE_LIMIT)");
    for jobs in ["1", "2"] {
        let again = place.run([REPORT.as_slice(), &["--jobs", jobs]].concat());
        assert_eq!(again.done().stdout, uncached.stdout);
    }
    let compared = place.run(["compare", "--a", "in", "--b", "in", "--format", "markdown"]);
    let anew = place.run([
        "compare",
        "--a",
        "in",
        "--b",
        "in",
        "--format",
        "markdown",
        "--no-cache",
    ]);
    assert_eq!(compared.done().stdout, anew.done().stdout.replace(" --no-cache", ""));
    assert_eq!(entries(&place), 1);

    let removed = place.run(["cache", "--clear"]);
    assert!(removed.done().stdout.starts_with("removed: 1 entry, "), "{removed:?}");
    assert_eq!(entries(&place), 0);
    assert_eq!(place.run(["cache", "--clear"]).done().stdout, "removed: nothing\n");

    // What is refused is refused again, and never kept.
    let file = place.path(&format!("in/{}.xml", SCHEMAS[0]));
    fs::write(&file, "<trace-query-result>").unwrap();
    settle(&file);
    for _ in 0..2 {
        place.run(REPORT).refused(&["truncated"]);
    }
    assert_eq!(entries(&place), 0);
}

#[test]
fn a_damaged_entry_costs_a_warning_and_a_folder_that_cannot_be_written_to_another() {
    let place = large();
    let right = place.run(REPORT);
    right.done();
    let entry = fs::read_dir(place.path("cache/tables"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let whole = fs::read(entry.path()).unwrap();
    let harm = || {
        let mut harmed = whole.clone();
        harmed[whole.len() / 2] ^= 1;
        fs::write(entry.path(), harmed).unwrap();
    };
    harm();
    let again = place.run(REPORT);
    assert_eq!((again.code, &again.stdout), (Some(0), &right.stdout));
    assert_eq!(
        again.stderr,
        "warning: what the cache has of in is damaged and not used: a checksum does not match\n"
    );
    assert_eq!(place.run(REPORT).done().stdout, right.stdout, "it was made anew");
    harm();
    let quiet = place.run([REPORT.as_slice(), &["--quiet"]].concat());
    assert_eq!(quiet.done().stdout, right.stdout);

    fs::remove_dir_all(place.path("cache")).unwrap();
    fs::write(place.path("cache"), "no folder").unwrap();
    let ran = place.run(REPORT);
    assert_eq!((ran.code, &ran.stdout), (Some(0), &right.stdout));
    ran.says(&["warning: the tables of in could not be kept in the cache: "]);
    assert_eq!(ran.stderr.lines().count(), 1);
}

#[test]
fn several_runs_at_once_all_succeed() {
    let place = large();
    let right = place.run([REPORT.as_slice(), &["--no-cache"]].concat());
    for _ in 0..2 {
        let running: Vec<_> = (0..4)
            .map(|_| {
                let mut command = place.command(REPORT);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for child in running {
            let ran = Ran::from_output(&child.wait_with_output().unwrap());
            assert_eq!(ran.done().stdout, right.stdout);
        }
    }
    assert_eq!(entries(&place), 1);
}

#[test]
fn a_limit_is_a_size() {
    let place = Place::with(support::short::doc(&[support::short::r(1_000, 100)]));
    let run = |limit: &str, arguments: &[&str]| Ran::of(place.command(arguments).env("TRACE_ATTR_CACHE_LIMIT", limit));
    assert!(run("500MB", &["cache"]).done().stdout.contains("limit    500 MB"));
    assert!(run("0", &["cache"]).done().stdout.contains("limit    0 B"));
    run("0", &["report", "in.xml"]).done();
    for arguments in [&["cache"][..], &["report", "in.xml"], &["toc", "in.xml"]] {
        let ran = run("plenty", arguments);
        // What the table of contents of a file needs is no cache.
        if arguments[0] == "toc" {
            ran.done();
        } else {
            ran.refused(&["TRACE_ATTR_CACHE_LIMIT is no size: `plenty`", "0 keeps nothing"]);
        }
    }
    run("plenty", &["report", "in.xml", "--no-cache"]).done();
}
