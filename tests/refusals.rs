//! What must be refused is refused in these words, with exit status 2 and nothing on stdout; what must be read gives
//! the same numbers in every form; arguments that make no sense are told before any work starts.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use std::fmt::Write;
use std::fs;

use command::{Place, Ran, here, trial};
use serde_json::Value;
use support::short::{doc, r};

/// Runs in a folder of fixtures, so that messages name files without a path.
fn run_in(folder: &str, arguments: &[&str]) -> Ran {
    let place = Place::new();
    Ran::of(place.command(arguments).current_dir(here(folder)))
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(here(folder)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

#[test]
fn each_refused_fixture_is_refused_in_these_words() {
    let mut text = String::new();
    for name in names("fixtures/refused") {
        let ran = run_in("fixtures/refused", &["report", &name]);
        ran.refused(&[&name]);
        // In JSON nothing else is said, and nothing is written there either.
        let json = run_in("fixtures/refused", &["report", &name, "--format", "json"]);
        json.refused(&[]);
        assert_eq!(json.stderr, ran.stderr);
        let _ = writeln!(text, "{}", ran.stderr);
    }
    insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("refusals", text);
    });
}

#[test]
fn a_refused_file_spoils_no_other_output() {
    let place = Place::new();
    place.write("before.json", "as it was");
    for name in names("fixtures/refused") {
        let input = here("fixtures/refused").join(&name);
        let ran = place.run([
            "compare",
            "--a",
            here("fixtures/good/plain.xml").to_str().unwrap(),
            "--b",
            input.to_str().unwrap(),
            "-o",
            "before.json",
            "-o",
            "new.md",
        ]);
        ran.refused(&[&name]);
    }
    assert_eq!(place.read("before.json"), "as it was");
    assert!(!place.path("new.md").exists());
    let left: Vec<_> = fs::read_dir(place.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// A report without the name of its input.
fn nameless(report: Value) -> Value {
    let input = trial(&report)["input"].as_str().unwrap().to_owned();
    serde_json::from_str(&report.to_string().replace(&input, "the input")).unwrap()
}

#[test]
fn every_form_of_the_plain_table_gives_the_same_report() {
    let readme = fs::read_to_string(here("fixtures/README.md")).unwrap();
    let same: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` = |"))
        .map(|(name, _)| name)
        .collect();
    assert!(same.len() >= 11, "{same:?}");
    let report = |name: &str| {
        let ran = run_in("fixtures/good", &["report", name, "--format", "json"]);
        nameless(ran.done().json())
    };
    let plain = report("plain.xml");
    for name in same {
        let mut found = report(name);
        if name == "schema_carried.xml" {
            // Two nodes of one table: the same numbers, and a remark.
            assert_eq!(found["notes"][0]["code"], "merged_nodes");
            found["notes"].as_array_mut().unwrap().remove(0);
        }
        assert_eq!(found, plain, "{name}");
    }
    // And through a pipe.
    let bytes = fs::read(here("fixtures/good/two_members.xml.gz")).unwrap();
    let piped = Place::new().pipe(&bytes, ["report", "-", "--format", "json"]).json();
    assert_eq!(nameless(piped), plain);
}

#[test]
fn every_good_fixture_is_read_by_every_command() {
    for name in names("fixtures/good") {
        let options: &[&str] = match name.as_str() {
            "multi_run" => &["--run", "3"],
            _ => &[],
        };
        for format in ["json", "terminal", "markdown"] {
            let ran = run_in(
                "fixtures/good",
                &[&["report", &name, "--format", format], options].concat(),
            );
            ran.done();
            if format == "json" {
                assert!(trial(&ran.json())["submissions"].as_u64().unwrap() > 0, "{name}");
            }
        }
        run_in("fixtures/good", &["toc", &name]).done();
        let table = match name.as_str() {
            "points_only" | "points_ref_time" | "tables_in_one_file.xml" => "metal-gpu-execution-points",
            _ => "metal-gpu-intervals",
        };
        let rows = run_in("fixtures/good", &[&["rows", &name, "--table", table], options].concat());
        assert!(rows.done().stdout.lines().count() > 1, "{name}");
    }
    run_in("fixtures/good", &["report", "multi_run"]).refused(&["several runs", "2", "3", "--run"]);
    let demo = |side: &str| (1..=3).map(|n| format!("{side}-{n}")).collect::<Vec<_>>();
    let (a, b) = (demo("hf2q"), demo("llama"));
    let arguments: Vec<&str> = ["compare", "--tokens", "64", "--format", "json", "--a"]
        .into_iter()
        .chain(a.iter().map(String::as_str))
        .chain(["--b"])
        .chain(b.iter().map(String::as_str))
        .collect();
    let first = run_in("fixtures/demo", &arguments);
    let report = first.done().json();
    assert_eq!(report["a"]["trials"].as_array().unwrap().len(), 3);
    assert_eq!(
        run_in("fixtures/demo", &arguments).stdout,
        first.stdout,
        "same input, same bytes"
    );
}

#[test]
fn arguments_that_make_no_sense_are_told() {
    let place = Place::with(doc(&[r(1_000, 100), r(9_000, 100)]));
    place.write("b.xml", doc(&[r(2_000, 100)]));
    let usage = |arguments: &[&str], parts: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?} {ran:#?}");
        assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
        ran.says(parts);
    };
    let report = |options: &[&str], parts: &[&str]| usage(&[&["report", "in.xml"], options].concat(), parts);
    let compare = |options: &[&str], parts: &[&str]| {
        usage(
            &[&["compare", "--a", "in.xml", "--b", "b.xml"], options].concat(),
            parts,
        )
    };

    report(&["--from", "2ms", "--to", "1ms"], &["--from must lie before --to"]);
    report(&["--from", "1ms", "--to", "1ms"], &["--from must lie before --to"]);
    compare(&["--from", "2ms", "--to-b", "1ms"], &["--from must lie before --to"]);
    for bad in ["5", "-1s", "1e3s", "s", "", "1.5.2s", "99999999999h", "NaNs", "1,5s"] {
        for option in ["--from", "--to", "--skip-first"] {
            report(&[&format!("{option}={bad}")], &[option]);
        }
    }
    report(&["--tokens", "0"], &["--tokens", "0"]);
    report(&["--units", "0"], &["--units"]);
    report(&["--tokens", "x"], &["--tokens"]);
    report(&["--tokens", "5", "--units", "5"], &["--tokens", "--units"]);
    report(&["--unit", "two words"], &["--unit"]);
    report(&["--unit", ""], &["--unit"]);
    report(&["--tokens", "5,6"], &["2 unit counts for 1 trial"]);
    compare(&["--tokens", "5,6,7"], &["3 unit counts for 1 trial"]);
    compare(&["--tokens", "5", "--tokens", "6"], &["2 unit counts for 1 trial"]);
    compare(&["--units-a", "5"], &["--units-b"]);
    compare(&["--units-b", "5"], &["--units-a"]);
    compare(&["--tokens-a", "5"], &["--tokens-b"]);
    compare(&["--tokens-a", "5", "--tokens-b", "5", "--tokens", "5"], &["--tokens"]);
    compare(
        &["--units-a", "5", "--units-b", "5", "--tokens-a", "5", "--tokens-b", "5"],
        &["--units"],
    );
    report(&["--no-such-option"], &["--no-such-option"]);
    report(&["--format", "yaml"], &["yaml", "json"]);
    report(&["--timing", "cpu"], &["cpu", "intervals"]);
    report(&["--slowest=-1"], &["--slowest"]);
    report(&["--slowest", "70000"], &["--slowest"]);
    report(&["-q", "-v"], &["--quiet", "--verbose"]);
    report(&["--color", "sometimes"], &["--color"]);
    for bad in [
        "2us,2us",
        "",
        "2us,,8us",
        "5",
        "0us",
        "abc",
        "-2us",
        "2us,8us,",
        "0.1ns,1us",
        "1us,NaN",
    ] {
        report(&[&format!("--buckets={bad}")], &["bucket"]);
    }
    usage(&["report"], &["INPUT"]);
    usage(&["report", "-", "-"], &["`-` is given twice"]);
    usage(&["compare", "--a", "-", "--b", "-"], &["`-` is given twice"]);
    usage(&["compare", "--a", "in.xml"], &["--b"]);
    usage(
        &["report", "in.xml", "b.xml", "--process", "77"],
        &["77", "2 trials", "name"],
    );
    usage(&["report", "in.xml", "in.xml"], &["in.xml"]);
    usage(&["rows", "in.xml", "--columns", "start,nope"], &["nope", "duration"]);
    usage(&["rows", "in.xml", "--limit=-1"], &["--limit"]);
    usage(
        &["rows", "in.xml", "--table", "nope"],
        &["no table `nope`", "metal-gpu-intervals"],
    );
    usage(&["export", "in.xml", "-o", "out"], &["no .trace bundle"]);
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_the_work_starts() {
    let place = Place::with(doc(&[r(1_000, 100)]));
    place.write("folder/in.xml", doc(&[r(1_000, 100)]));
    place.write("file", "");
    let refused = |arguments: &[&str], parts: &[&str]| {
        let ran = place.run(arguments);
        ran.refused(parts);
    };
    let before = place.read("in.xml");
    // The input is not even there: the output is checked first.
    refused(
        &["report", "missing.xml", "-o", "report.doc"],
        &["report.doc", ".txt, .json, .md, .html, .csv or .xml"],
    );
    refused(&["report", "missing.xml", "-o", "report"], &["no format"]);
    refused(&["report", "missing.xml", "-o", "folder"], &["folder"]);
    refused(
        &["report", "missing.xml", "-o", "no/such/report.json"],
        &["no/such/report.json", "folder"],
    );
    refused(
        &["report", "missing.xml", "-o", "file/report.json"],
        &["file/report.json"],
    );
    refused(&["report", "in.xml", "-o", "in.xml"], &["in.xml"]);
    // An input by whatever path, and a file in an input.
    place.write("input.json", doc(&[r(1_000, 100)]));
    refused(&["report", "input.json", "-o", "input.json"], &["this is an input"]);
    refused(
        &["report", "input.json", "-o", "folder/../input.json"],
        &["this is an input"],
    );
    place.write("run.trace/old.json", "x");
    for file in ["run.trace/old.json", "run.trace/new.json"] {
        refused(&["report", "run.trace", "-o", file], &["this is an input"]);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("input.json"), place.path("link.json")).unwrap();
        refused(&["report", "input.json", "-o", "link.json"], &["this is an input"]);
        refused(&["report", "link.json", "-o", "input.json"], &["this is an input"]);
    }
    assert_eq!(place.read("in.xml"), before);
    assert_eq!(place.read("run.trace/old.json"), "x");

    // Several files at once, replaced whole, with nothing on stdout.
    place.write("old.json", "old");
    let ran = place.run(["report", "in.xml", "-o", "old.json", "-o", "new.md", "-o", "new.txt"]);
    assert_eq!(ran.done().stdout, "");
    assert!(serde_json::from_str::<Value>(&place.read("old.json")).is_ok());
    assert!(place.read("new.md").contains("Phases") && place.read("new.txt").contains("Phases"));
    let both = place.run(["report", "in.xml", "-o", "old.json", "--format", "json"]);
    assert_eq!(both.done().stdout, place.read("old.json"));
    // A report beside exported files is none of them, the first time and the next.
    for _ in 0..2 {
        place.run(["report", "folder", "-o", "folder/report.json"]).done();
    }
    // One file twice is one too many.
    refused(
        &["report", "in.xml", "-o", "new.md", "-o", "./new.md"],
        &["new.md", "twice"],
    );
}
