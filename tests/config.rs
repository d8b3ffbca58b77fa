//! `trace-attr.toml`: where it is found, that the command line wins over it and it over the defaults, and that
//! `trace-attr config` says so.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use command::{Place, Ran, here, trial};
use serde_json::{Value, json};
use support::short::{doc, r};

/// Two processes; phases `x.attn` (three times 10 µs, 1 ms apart) and `x.head` (100 µs).
fn place(config: &str) -> Place {
    let row = |n: u64, us: u64| r(n * 1_000_000, us * 1_000).encoder(n).buffer(n);
    let rows = [
        row(1, 10).label("x.0.attn:k"),
        row(2, 10).label("x.1.attn:k"),
        row(3, 10).label("x.2.attn:k"),
        row(4, 100).label("x.head:k"),
        row(5, 7).process("other", 5).label("y:k"),
    ];
    let place = Place::with(doc(&rows));
    if !config.is_empty() {
        place.write("trace-attr.toml", config);
    }
    place
}

fn report(place: &Place, options: &[&str]) -> Value {
    place
        .run([&["report", "in.xml", "--format", "json"], options].concat())
        .json()
}

/// Value and origin of a key that `config` lists.
fn listed(ran: &Ran, key: &str) -> (String, String) {
    let line = ran
        .stdout
        .lines()
        .find(|line| line.split_whitespace().next() == Some(key));
    let line = line.unwrap_or_else(|| panic!("no {key}: {}", ran.stdout));
    let mut parts = line.split("  ").map(str::trim).filter(|part| !part.is_empty()).skip(1);
    (parts.next().unwrap().to_owned(), parts.next().unwrap().to_owned())
}

const CONFIG: &str = "\
process = \"bench\"
units = 2
unit = \"frame\"
buckets = [\"50us\"]
slowest = 1

[[label_map]]
name = \"attention\"
a = 'attn'

[hints.phases]
attention = \"look at the mask\"
";

#[test]
fn the_file_counts_where_the_command_line_says_nothing() {
    let place = place(CONFIG);
    let found = report(&place, &[]);
    assert_eq!(trial(&found)["process"]["name"], "bench");
    assert_eq!(
        (&trial(&found)["units"], &found["settings"]["unit"]),
        (&json!(2), &json!("frame"))
    );
    assert_eq!(found["settings"]["bucket_names"], json!(["lt_50us", "ge_50us"]));
    assert_eq!(found["slowest"]["a"].as_array().unwrap().len(), 1);
    assert_eq!(found["phases"][1]["key"], "attention");
    // The hint stands with the finding, and the file is named without a path.
    let finding = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["key"] == "attention");
    assert_eq!(finding.unwrap()["hint"], "look at the mask");
    assert_eq!(found["settings"]["config"], "trace-attr.toml");

    let given = report(
        &place,
        &[
            "--process",
            "other",
            "--tokens",
            "7",
            "--buckets",
            "5us,9us",
            "--slowest",
            "3",
        ],
    );
    assert_eq!(trial(&given)["process"]["name"], "other");
    // --tokens says what a unit is, too.
    assert_eq!(
        (&trial(&given)["units"], &given["settings"]["unit"]),
        (&json!(7), &json!("token"))
    );
    assert_eq!(given["settings"]["bucket_edges_ns"], json!([5_000, 9_000]));

    let without = place
        .run([
            "report",
            "in.xml",
            "--process",
            "bench",
            "--no-config",
            "--format",
            "json",
        ])
        .json();
    assert_eq!(without["settings"].get("config"), None);
    assert_eq!(without["settings"]["unit"], Value::Null);
}

#[test]
fn every_format_names_the_file_and_shows_hints() {
    let place = place(CONFIG);
    for format in ["terminal", "markdown"] {
        let text = place
            .run(["report", "in.xml", "--format", format])
            .done()
            .stdout
            .replace('\\', "");
        let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(folded.contains("Configuration: trace-attr.toml."), "{text}");
        assert!(folded.contains("(hint: look at the mask)"), "{text}");
    }
}

#[test]
fn the_file_is_found_above_and_its_paths_are_its_own() {
    let place = place("");
    place.write(
        "project/trace-attr.toml",
        "label_map = 'rules/labels.toml'\nprocess = 'bench'\n",
    );
    place.write(
        "project/rules/labels.toml",
        "[[phase]]\nname = 'attention'\na = 'attn'\n",
    );
    place.write("project/deep/in/in.xml", place.read("in.xml"));
    let mut command = place.command(["report", "in.xml", "--format", "json"]);
    let found = Ran::of(command.current_dir(place.path("project/deep/in"))).json();
    assert_eq!(found["phases"][1]["key"], "attention");
    assert_eq!(found["settings"]["config"], "trace-attr.toml");
    let mut command = place.command(["config"]);
    let ran = Ran::of(command.current_dir(place.path("project/deep/in")));
    assert!(
        ran.stdout.starts_with("configuration: ../../trace-attr.toml\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        listed(&ran, "label_map"),
        (
            "\"../../rules/labels.toml\"".to_owned(),
            "../../trace-attr.toml:1".to_owned()
        )
    );
    // Another one, by name; only its last part stands in a report.
    place.write("project/ci.toml", "slowest = 2\nprocess = 'bench'\n");
    let named = report(&place, &["--config", "project/ci.toml"]);
    assert_eq!(
        (&named["settings"]["config"], &named["settings"]["slowest"]),
        (&json!("ci.toml"), &json!(2))
    );
    place
        .run(["report", "in.xml", "--config", "gone.toml"])
        .refused(&["gone.toml"]);
}

#[test]
fn config_says_where_each_value_came_from() {
    let file = format!("{CONFIG}\n[gate]\nfail_above = 3\nrows = ['total']\n");
    let place = place(&file);
    let ran = place.run(["config", "--buckets", "5us", "--fail-above", "2%"]);
    ran.done();
    let of = |key: &str| listed(&ran, key);
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(of("process"), pair("\"bench\"", "trace-attr.toml:1"));
    assert_eq!(of("units"), pair("2", "trace-attr.toml:2"));
    assert_eq!(of("buckets"), pair("\"5us\"", "command line"));
    assert_eq!(of("timing"), pair("\"auto\"", "default"));
    assert_eq!(of("label_map"), pair("1 rule", "trace-attr.toml:7"));
    assert_eq!(of("hints"), pair("1 hint", "trace-attr.toml:11"));
    assert_eq!(of("gate.fail_above"), pair("\"2 %\"", "command line"));
    assert_eq!(of("gate.rows"), pair("[\"total\"]", "trace-attr.toml:16"));
    assert_eq!(of("window"), pair("first start to last end of the process", "default"));
    // No file at all.
    let ran = place.run(["config", "--no-config"]);
    assert!(ran.stdout.starts_with("configuration: no file\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.lines().skip(2).all(|line| line.ends_with("default")),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_option_for_both_sides_counts_for_both_whatever_the_file_says_of_one() {
    let place =
        place("process = 'p'\nprocess_a = 'a'\nprocess_b = 'b'\nunits_a = 1\nunits_b = 2\nwindow_b = 'quiet:1ms'\n");
    let config = |options: &[&str]| place.run([&["config"], options].concat());
    let ran = config(&[]);
    assert_eq!(listed(&ran, "process_b").0, "\"b\"");
    assert_eq!(listed(&ran, "window_b").0, "\"quiet:1ms\"");
    let ran = config(&["--process", "x", "--units", "5", "--window", "signpost:go"]);
    for key in ["process_a", "process_b", "units_a", "units_b", "window_b"] {
        assert!(!ran.stdout.contains(key), "{key}: {}", ran.stdout);
    }
    // Of one side only that side's.
    let ran = config(&["--process-a", "x"]);
    assert_eq!(
        (listed(&ran, "process_a").0, listed(&ran, "process_b").0),
        ("\"x\"".to_owned(), "\"b\"".to_owned())
    );
    // Times are a window, too.
    let ran = config(&["--from", "1s"]);
    assert!(!ran.stdout.contains("quiet"), "{}", ran.stdout);
    assert_eq!(listed(&ran, "from"), ("\"1s\"".to_owned(), "command line".to_owned()));
}

#[test]
fn a_file_that_cannot_be_used_is_refused_before_any_input_is_read() {
    let place = place("proces = 'x'\n");
    for command in [
        &["report", "gone.xml"][..],
        &["compare", "--a", "x", "--b", "y"],
        &["config"],
    ] {
        place
            .run(command)
            .refused(&["trace-attr.toml:1: unknown key `proces`", "did you mean `process`?"]);
    }
    // Commands that do not analyse do not read it.
    place
        .run(["rows", "in.xml", "--table", "metal-gpu-intervals", "--limit", "1"])
        .done();
    let place = self::place("label_map = 'gone.toml'\n");
    place.run(["config"]).refused(&["gone.toml"]);
}

#[test]
fn the_gate_of_the_file_decides_the_exit_status() {
    let place = Place::new();
    let mut names: Vec<(String, u64)> = Vec::new();
    for n in 1..=3 {
        names.push((format!("a{n}.xml"), 2_000 + n));
        names.push((format!("b{n}.xml"), 1_000 + n));
    }
    for (name, length) in &names {
        let row = |at: u64| r(at * 50_000_000, length * 10_000 + at);
        place.write(name, doc(&[row(0), row(1)]));
    }
    place.write("trace-attr.toml", "[gate]\nfail_above = 3\n");
    let arguments = [
        "compare", "--a", "a1.xml", "a2.xml", "a3.xml", "--b", "b1.xml", "b2.xml", "b3.xml",
    ];
    let ran = place.run(arguments);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stdout.contains("gate: failed"), "{}", ran.stdout);
    // The command line wins.
    let ran = place.run([&arguments[..], &["--fail-above", "300%"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(place.run([&arguments[..], &["--no-config"]].concat()).code, Some(0));
}

#[test]
fn the_example_is_a_configuration_whose_hints_are_seen() {
    let example = here("docs/trace-attr.example.toml").display().to_string();
    let input = |name: &str| here("fixtures/demo").join(name).display().to_string();
    let place = Place::new();
    let ran = place.run([
        "report",
        &input("hf2q-1"),
        "--process",
        "hf2q",
        "--config",
        &example,
        "--format",
        "json",
    ]);
    let report = ran.json();
    let hints: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["hint"].as_str())
        .collect();
    assert!(
        hints.iter().any(|hint| hint.contains("mat-vec over the vocabulary")),
        "{hints:?}"
    );
    assert!(report["kernel_hints"]["moe_q4_0_mv"].is_string());
    // Every bucket of the example is one that there is.
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().all(|note| note["code"] != "hint_unused"), "{notes:?}");
}

#[test]
fn a_hint_for_a_bucket_that_is_not_there_is_a_note() {
    let place = place("process = 'bench'\n[hints.buckets]\n'xs_<2us' = 'a'\nlt_50us = 'b'\n");
    let report = report(&place, &["--buckets", "50us"]);
    let note = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|note| note["code"] == "hint_unused");
    let text = note.unwrap()["text"].as_str().unwrap();
    assert_eq!(
        text,
        "hints for buckets that are not there: xs_<2us; the buckets are lt_50us, ge_50us"
    );
}
