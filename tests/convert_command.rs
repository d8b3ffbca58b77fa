//! `convert` as a user calls it: which format, where it goes, which trials, and what is refused before the work starts.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use command::{Place, here};
use serde_json::Value;
use support::short::{ShortRow, doc, r};

/// Two phases of one trial, and a label that ends in a number.
fn export(attn: u64, shift: u64) -> String {
    let row = |start: u64, ns: u64, label: &str| r(start, ns).label(label).encoder(start).buffer(start);
    let rows: Vec<ShortRow> = vec![
        row(shift + 1_000, attn, "attn"),
        row(shift + 2_500, 700, "mlp:Compute Command 0"),
        row(shift + 4_000, attn, "attn"),
    ];
    doc(&rows)
}

fn place() -> Place {
    let place = Place::new();
    for (name, attn) in [("a1", 500), ("a2", 510), ("b1", 400), ("b2", 410)] {
        place.write(&format!("{name}.xml"), export(attn, attn * 1_000));
    }
    place
}

#[test]
fn the_format_is_that_of_the_extension_or_of_to() {
    let place = place();
    let binary = |name: &str| std::fs::read(place.path(name)).unwrap();
    for name in ["x.pftrace", "x.pb.gz", "x.folded", "x.speedscope.json"] {
        place.run(["convert", "a1.xml", "-o", name]).done();
    }
    assert_eq!(binary("x.pb.gz")[..2], [0x1f, 0x8b]);
    assert_eq!(binary("x.pftrace")[0], 0x0a);
    assert_eq!(
        place.read("x.folded"),
        "bench;bench;attn;attn;Compute 1000\nbench;bench;mlp;compute;Compute 700\n"
    );
    let json: Value = serde_json::from_str(&place.read("x.speedscope.json")).unwrap();
    assert_eq!(json["name"], "bench · 3 submissions · 0 rows left out");
    place
        .run(["convert", "a1.xml", "-o", "x.json", "--to", "chrome"])
        .done();
    assert!(place.read("x.json").contains("traceEvents"));
    // What is said wins over what the name says.
    place
        .run(["convert", "a1.xml", "-o", "x.pb.gz", "--to", "hatchet"])
        .done();
    assert!(place.read("x.pb.gz").starts_with("[{"));
    for (arguments, part) in [
        (
            &["convert", "a1.xml", "-o", "x.json"][..],
            "no format is known by this extension",
        ),
        (&["convert", "a1.xml"], "no format is given"),
        (&["convert", "a1.xml", "--to", "folded-diff"], "needs two sides"),
    ] {
        place.run(arguments).refused(&[part, "help: "]);
    }
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all_and_is_never_an_input() {
    let place = place();
    place.write("out.folded", "before");
    place.write("broken.xml", &export(500, 0)[..900]);
    place
        .run(["convert", "broken.xml", "-o", "out.folded"])
        .refused(&["broken.xml"]);
    assert_eq!(place.read("out.folded"), "before");
    place.run(["convert", "a1.xml", "-o", "out.folded"]).done();
    assert!(place.read("out.folded").starts_with("bench;"));
    place
        .run(["convert", "a1.xml", "--to", "folded", "-o", "a1.xml"])
        .refused(&["this is an input"]);
    // Before the work starts: the input is not looked at.
    place
        .run(["convert", "nowhere.xml", "-o", "no/folder/x.folded"])
        .refused(&["no/folder/x.folded", "there is no such folder"]);
    let left: Vec<_> = std::fs::read_dir(place.path("")).unwrap().collect();
    let scratch = left.iter().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".trace-attr-")
    });
    assert_eq!(scratch.count(), 0);
}

const SIDES: [&str; 7] = ["convert", "--a", "a1.xml", "a2.xml", "--b", "b1.xml", "b2.xml"];

#[test]
fn both_sides_are_in_one_file() {
    let place = place();
    let ran = place.run([&SIDES[..], &["--name-b", "main", "--to", "chrome"]].concat());
    let json = ran.done().any_json();
    let names = json["traceEvents"].as_array().unwrap().iter();
    let names = names.filter(|event| event["name"] == "process_name");
    let names: Vec<&str> = names.map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["bench · a1.xml", "bench · a2.xml", "main · b1.xml", "main · b2.xml"]
    );
    let ran = place.run([&SIDES[..], &["--to", "folded", "--trial", "2"]].concat());
    assert_eq!(
        ran.done().stdout,
        "bench (A);bench;attn;attn;Compute 1020\nbench (A);bench;mlp;compute;Compute 700\n\
         bench (B);bench;attn;attn;Compute 820\nbench (B);bench;mlp;compute;Compute 700\n"
    );
}

#[test]
fn a_difference_has_b_first_and_as_many_trials_on_each_side() {
    let place = place();
    let ran = place.run([&SIDES[..], &["--to", "folded-diff"]].concat());
    assert_eq!(
        ran.done().stdout,
        "attn;attn;Compute 1620 2020\nmlp;compute;Compute 1400 1400\n"
    );
    let uneven = [
        "convert",
        "--a",
        "a1.xml",
        "a2.xml",
        "--b",
        "b1.xml",
        "--to",
        "folded-diff",
    ];
    place
        .run(uneven)
        .refused(&["side A has 2 trials and side B 1", "--trial"]);
    place.run([&uneven[..], &["--trial", "1"]].concat()).done();
    place
        .run([&uneven[..], &["--trial", "2"]].concat())
        .refused(&["bench (B) has 1 trial"]);
}

#[test]
fn options_that_choose_submissions_choose_them_here_too() {
    let place = place();
    let folded = |more: &[&str]| {
        let ran = place.run([&["convert", "a1.xml", "--to", "folded"], more].concat());
        ran.done().stdout.clone()
    };
    let mlp = "bench;bench;mlp;compute;Compute 700\n";
    assert_eq!(folded(&["--from", "502us", "--until", "503us"]), mlp);
    assert_eq!(
        folded(&["--skip-first", "1us", "--name", "x"]),
        format!("x;bench;attn;attn;Compute 500\nx;{}", &mlp[6..])
    );
    place.write("map.toml", "[[phase]]\nname = \"attention\"\na = \"^attn$\"\n");
    assert!(folded(&["--label-map", "map.toml"]).starts_with("bench;bench;attention;"));
    place
        .run(["convert", "a1.xml", "--to", "folded", "--process", "nobody"])
        .refused(&["nobody"]);
    place
        .run(["convert", "a1.xml", "--to", "folded", "--process-a", "bench"])
        .refused(&["there are no sides"]);
    place
        .run(["convert", "a1.xml", "a1.xml", "--to", "folded"])
        .refused(&["are the same recording, on one side"]);
    // A project's file counts as for the other commands.
    place.write("trace-attr.toml", "process = \"nobody\"\n");
    place.run(["convert", "a1.xml", "--to", "folded"]).refused(&["nobody"]);
    assert_eq!(folded(&["--process", "bench"]).lines().count(), 2);
}

#[test]
fn a_trial_that_is_missing_is_told_and_the_rest_written() {
    let place = place();
    let ran = place.run(["convert", "a1.xml", "nowhere.xml", "--keep-going", "--to", "chrome"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    ran.says(&["nowhere.xml is missing from the file"]);
    let about = &ran.any_json()["otherData"];
    assert_eq!(about["missing_trials"], serde_json::json!(["nowhere.xml"]));
    assert_eq!(about["trials"].as_array().unwrap().len(), 1);
}

#[test]
fn the_same_input_gives_the_same_bytes_whatever_the_jobs() {
    let place = place();
    for format in [
        "chrome",
        "perfetto",
        "speedscope",
        "folded",
        "folded-diff",
        "pprof",
        "hatchet",
    ] {
        let run = |jobs: &str| {
            let name = format!("{format}-{jobs}");
            place
                .run([&SIDES[..], &["--to", format, "-o", &name, "--jobs", jobs]].concat())
                .done();
            std::fs::read(place.path(&name)).unwrap()
        };
        assert_eq!(run("1"), run("4"), "{format}");
    }
}

/// A live profile keeps its host tracks and its scopes.
#[test]
fn a_live_profile_has_its_own_tracks_and_tree() {
    let place = Place::new();
    let profile = here("tests/live_sample/profile.json");
    let profile = profile.to_str().unwrap();
    let json = place.run(["convert", profile, "--to", "chrome"]).json();
    let events = json["traceEvents"].as_array().unwrap();
    let names: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["engine · profile.json · host", "engine · profile.json · Apple M5 Max"]
    );
    assert!(events.iter().any(|event| event["ph"] == "f"), "flows are kept");
    let folded = place.run(["convert", profile, "--to", "folded"]).done().stdout.clone();
    assert!(folded.contains("engine;engine;token;attention;qkv 40000\n"), "{folded}");
}

#[test]
fn a_closed_pipe_is_silent() {
    use std::process::Stdio;
    let place = place();
    let mut child = place
        .command(["convert", "a1.xml", "--to", "perfetto"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_dash_is_no_file_to_write() {
    let place = place();
    for to in ["folded", "csv"] {
        let ran = place.run(["convert", "a1.xml", "--to", to, "-o", "-"]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("--output -: this is no file"), "{}", ran.stderr);
    }
    assert!(!place.path("-").exists());
}

#[test]
fn when_no_input_is_left_it_says_what_was_wrong_with_them() {
    let place = place();
    place.write("bad.xml", "this is no export");
    let inputs = ["bad.xml", "nowhere.xml"];
    let report = [&["report", "--keep-going"], &inputs[..]].concat();
    let compare = [&["compare", "--keep-going", "--b", "b1.xml", "--a"], &inputs[..]].concat();
    let shapes = [&["convert", "--keep-going", "--to", "folded"], &inputs[..]].concat();
    let rows = [
        &["convert", "--keep-going", "--to", "parquet", "-o", "fleet"],
        &inputs[..],
    ]
    .concat();
    for arguments in [report, compare, shapes, rows] {
        let ran = place.run(&arguments);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        for part in [
            "no input of a side could be used",
            "bad.xml: ",
            "nowhere.xml: could not open it",
        ] {
            assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
        }
    }
}
