//! Formats for machines, on the real binary: what each holds, and that no label gets out of its place in any of them.
//!
//! One set of labels goes through every format: control and bidirectional characters, 10 kB, HTML, Markdown, formulas,
//! commands of CI systems. `tests/consumers/run` loads the same output with the tools that it is for.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp
)]

mod command;
mod support;

use std::collections::BTreeMap;

use command::{Place, Ran, here, keys};
use quick_xml::events::Event;
use serde_json::Value;
use support::nasty::{hidden, long, nasty, xml};
use support::short::{NULL, ShortRow, doc, r};

/// Every format that is written as text of its own; JSON holds labels as they are and is not among them.
const TEXT: [&str; 9] = [
    "terminal",
    "markdown",
    "html",
    "csv",
    "junit",
    "github",
    "benchstat",
    "github-action-benchmark",
    "bencher",
];

/// Trials of all labels: `a*` slower than `b*` by a quarter.
fn place() -> Place {
    place_of(&nasty())
}

fn place_of(labels: &[String]) -> Place {
    let place = Place::new();
    for (side, ns) in [("a", 1_250), ("b", 1_000)] {
        for trial in 0..3_u64 {
            let rows: Vec<ShortRow> = (0..)
                .zip(labels)
                .map(|(at, label)| {
                    r(at * 10_000, ns + trial * 3 + at % 2)
                        .label(xml(label).as_str())
                        .encoder(at + 1)
                        .buffer(at + 1)
                })
                .collect();
            place.write(&format!("{side}{trial}.xml"), doc(&rows));
        }
    }
    place
}

const COMPARE: [&str; 9] = [
    "compare", "--a", "a0.xml", "a1.xml", "a2.xml", "--b", "b0.xml", "b1.xml", "b2.xml",
];

fn compare(place: &Place, more: &[&str]) -> Ran {
    place.run([&COMPARE[..], more].concat())
}

/// The phases as JSON has them: what other formats must hold.
fn phases(place: &Place) -> Vec<String> {
    let phases = keys(&compare(place, &["--format", "json"]).json(), "phases");
    assert!(phases.len() > 25, "{phases:?}");
    phases
}

/// A gate on every phase.
fn gates(phases: &[String]) -> Vec<String> {
    let gate = |phase: &String| ["--gate".to_owned(), format!("phase:{phase}=3")];
    phases.iter().flat_map(gate).collect()
}

/// Writes every text format and looks at each.
fn check(place: &Place, arguments: &[&str]) {
    let outputs: Vec<String> = TEXT.iter().map(|format| format!("{format}=out.{format}")).collect();
    let outputs: Vec<&str> = outputs.iter().flat_map(|output| ["-o", output]).collect();
    let ran = place.run([arguments, &outputs].concat());
    assert!(ran.code != Some(2), "{ran:#?}");
    TEXT.iter()
        .for_each(|format| harmless(format, &place.read(&format!("out.{format}"))));
}

#[test]
fn no_label_gets_out_of_its_place() {
    let place = place();
    let gates = gates(&phases(&place));
    let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
    check(&place, &["report", "a0.xml"]);
    check(&place, &[&COMPARE[..], &["--self-test"], &gates].concat());
    // Sides have names too.
    place.write("small.xml", doc(&[r(0, 100)]));
    for name in nasty() {
        check(&place, &["report", "small.xml", &format!("--name={name}")]);
    }
}

#[test]
fn a_label_of_ten_thousand_bytes_stays_itself() {
    let place = place_of(&long());
    check(
        &place,
        &[&COMPARE[..], &["--gate", &format!("phase:{}=3", long()[0])]].concat(),
    );
    // Where there are no columns to keep, two labels stay two.
    let bencher: Value = serde_json::from_str(&place.read("out.bencher")).unwrap();
    assert_eq!(
        bencher
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| name.starts_with("phase:"))
            .count(),
        2
    );
    let lines = place.read("out.github");
    assert!(
        lines.lines().all(|line| line.len() < 2_000),
        "annotations are read by people"
    );
}

/// Nothing that a terminal, a browser or a CI system would act on.
fn harmless(format: &str, text: &str) {
    assert!(!text.is_empty(), "{format}");
    for line in text.lines() {
        if format == "github" {
            assert!(is_command(line), "{line}");
        } else {
            assert!(!line.trim_start().starts_with("::"), "{format}: {line}");
        }
        assert!(!line.contains("##[") && !line.contains("##vso["), "{format}: {line}");
    }
    assert_eq!(hidden(text), None, "{format}");
    // What ends up in a page or in XML; the others are plain text.
    if ["markdown", "junit", "github-action-benchmark", "bencher"].contains(&format) {
        assert!(!text.contains("<img") && !text.contains("<script"), "{format}");
    }
    if format == "html" {
        // Its own: the report, the timeline, the program.
        assert!(
            !text.contains("<img") && text.matches("<script").count() == 3,
            "{format}"
        );
    }
}

/// `::error title=…::…` with a title that ends where it should.
fn is_command(line: &str) -> bool {
    let kinds = ["::error title=", "::warning title=", "::notice title="];
    let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else {
        return false;
    };
    rest.split_once("::")
        .is_some_and(|(title, message)| !title.contains([':', ',']) && !message.is_empty() && !message.contains('\r'))
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let place = place();
    for format in TEXT {
        let run = || compare(&place, &["--fail-above", "3", "--format", format]).stdout;
        assert_eq!(run(), run(), "{format}");
    }
}

// ------------------------------------------------------------------------------------------------ CSV

/// Records of the table as section, key, side, trial, metric, value, unit.
fn records(text: &str) -> Vec<[String; 7]> {
    assert!(!text.contains('\r'), "LF only");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(header, ["section", "key", "side", "trial", "metric", "value", "unit"]);
    let record = |record: csv::StringRecord| -> [String; 7] {
        let fields: Vec<String> = record.iter().map(str::to_owned).collect();
        fields.try_into().unwrap()
    };
    reader.records().map(|read| record(read.unwrap())).collect()
}

/// The only value at a place.
#[track_caller]
fn at<'r>(records: &'r [[String; 7]], place: [&str; 5]) -> &'r str {
    let mut found = records.iter().filter(|record| record[..5] == place);
    let one = found.next().unwrap_or_else(|| panic!("{place:?}"));
    assert!(found.next().is_none(), "{place:?} twice");
    &one[5]
}

#[test]
fn csv_is_one_table_with_every_row_of_the_json() {
    let place = place();
    let json = compare(&place, &["--fail-above", "3%", "--tokens", "8", "--format", "json"]).any_json();
    let csv = compare(&place, &["--fail-above", "3%", "--tokens", "8", "--format", "csv"]);
    assert_eq!(csv.code, Some(1));
    let records = records(&csv.stdout);
    let value = |place: [&str; 5]| at(&records, place).parse::<f64>().unwrap();
    for (section, metric, expected) in [
        ("busy", "delta_pct", &json["busy"]["delta_pct"]),
        ("busy", "low_pct", &json["busy"]["test"]["low_pct"]),
        ("total", "delta", &json["total"]["delta_us"]),
        ("total", "share_pct", &json["total"]["share_pct"]),
    ] {
        assert_eq!(
            value(["overall", section, "", "", metric]),
            expected.as_f64().unwrap(),
            "{metric}"
        );
    }
    for side in ["a", "b"] {
        let median = json["total"][side]["total_us"].as_f64().unwrap();
        assert_eq!(value(["overall", "total", side, "", "total"]), median);
        for trial in 0..3 {
            let raw = &json["total"][side]["trials"][trial];
            let number = (trial + 1).to_string();
            assert_eq!(
                value(["overall", "total", side, &number, "total"]),
                raw["total_ns"].as_f64().unwrap()
            );
        }
    }
    assert_eq!(at(&records, ["gate", "busy", "", "", "result"]), "failed");
    assert_eq!(at(&records, ["gate", "", "", "", "result"]), "failed");
    assert_eq!(value(["gate", "busy", "", "", "limit_pct"]), 3.0);
    // Times say what they are divided by, so no one adds µs per token to ns per trial.
    for record in records
        .iter()
        .filter(|record| record[4] == "total" && record[0] != "left_out")
    {
        let unit = if record[3].is_empty() { "us/token" } else { "ns" };
        assert_eq!(record[6], unit, "{record:?}");
    }
    let mut phases: Vec<&str> = records
        .iter()
        .filter(|record| record[0] == "phases" && record[4] == "verdict")
        .map(|record| record[1].as_str())
        .collect();
    assert_eq!(phases.len(), json["phases"].as_array().unwrap().len());
    phases.sort_unstable();
    phases.dedup();
    assert_eq!(
        phases.len(),
        json["phases"].as_array().unwrap().len(),
        "no two keys became one"
    );
}

#[test]
fn csv_has_no_formula_and_leaves_numbers_alone() {
    let place = place();
    // The other way round, so that differences are negative.
    let swapped = [
        "compare", "--a", "b0.xml", "b1.xml", "b2.xml", "--b", "a0.xml", "a1.xml", "a2.xml",
    ];
    let ran = place.run([&swapped[..], &["--format", "csv"]].concat());
    let records = records(&ran.done().stdout);
    for record in &records {
        for (column, field) in record.iter().enumerate() {
            let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!formula || column == 5 && field.parse::<f64>().is_ok(), "{record:?}");
        }
    }
    assert!(at(&records, ["overall", "busy", "", "", "delta"]).starts_with('-'));
    let keys: Vec<&str> = records.iter().map(|record| record[1].as_str()).collect();
    for key in ["'=HYPERLINK(\"x\")", "'+1", "'-1", "'@SUM(A1)"] {
        assert!(keys.contains(&key), "{key}");
    }
}

#[test]
fn b40_not_measured_is_empty_in_csv() {
    let place = Place::new();
    place.write(
        "none.xml",
        doc(&[r(1_000, 10).latency(NULL), r(2_000, 20).latency(NULL)]),
    );
    place.write(
        "some.xml",
        doc(&[r(1_000, 10).latency(5_000), r(2_000, 20).latency(5_000)]),
    );
    let ran = place.run(["compare", "--a", "none.xml", "--b", "some.xml", "--format", "csv"]);
    let records = records(&ran.done().stdout);
    for trial in ["", "1"] {
        let value = |side, metric| at(&records, ["channels", "Compute", side, trial, metric]);
        assert_eq!((value("a", "latency_samples"), value("a", "latency_p50")), ("0", ""));
        let measured = if trial.is_empty() { "5" } else { "5000" };
        assert_eq!(
            (value("b", "latency_samples"), value("b", "latency_p50")),
            ("2", measured)
        );
    }
}

#[test]
fn b61_csv_has_a_record_for_every_label() {
    let place = Place::new();
    let labels = ["a|b", "c&#10;d", "`e`", "&lt;img src=x&gt;"];
    let rows: Vec<ShortRow> = (0..)
        .zip(labels)
        .map(|(at, label)| r(at * 1_000, 100).label(label).encoder(at + 1))
        .collect();
    place.write("in.xml", doc(&rows));
    let records = records(&place.run(["report", "in.xml", "--format", "csv"]).done().stdout);
    let phases = records
        .iter()
        .filter(|record| record[0] == "phases" && record[4] == "total" && record[3].is_empty());
    let mut phases: Vec<&str> = phases.map(|record| record[1].as_str()).collect();
    phases.sort_unstable();
    assert_eq!(phases, ["<img src=x>", "`e`", "a|b", "c\\u{a}d"]);
}

// ---------------------------------------------------------------------------------------------- JUnit

/// A test case as a reader of JUnit sees it.
#[derive(Debug, Default)]
struct Case {
    name: String,
    properties: BTreeMap<String, String>,
    /// `failure`, `error` or `skipped`, with its type and message.
    outcome: Option<(String, String, String)>,
}

/// Attributes of the suite and its cases; fails where the text is no XML.
fn junit(text: &str) -> (BTreeMap<String, String>, Vec<Case>) {
    let forbidden = |c: char| (c < ' ' && !"\t\n\r".contains(c)) || matches!(c, '\u{fffe}' | '\u{ffff}');
    assert!(!text.contains(forbidden));
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let (mut suite, mut cases) = (BTreeMap::new(), Vec::<Case>::new());
    let mut depth = 0_i32;
    loop {
        let event = reader.read_event().unwrap();
        let (tag, opens) = match &event {
            Event::Start(tag) => (tag, true),
            Event::Empty(tag) => (tag, false),
            Event::End(_) => {
                depth -= 1;
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        depth += i32::from(opens);
        let mut attributes = BTreeMap::new();
        for attribute in tag.attributes() {
            let attribute = attribute.unwrap();
            let name = attribute.key.as_ref().to_owned();
            let value = quick_xml::escape::unescape(&attribute.value).unwrap();
            attributes.insert(name, value.into_owned());
        }
        let of = |name: &str| attributes.get(name).cloned().unwrap_or_default();
        match tag.name().as_ref() {
            "testsuite" => suite = attributes,
            "testcase" => cases.push(Case {
                name: of("name"),
                ..Case::default()
            }),
            "property" => {
                if let Some(case) = cases.last_mut() {
                    case.properties.insert(of("name"), of("value"));
                }
            }
            outcome @ ("failure" | "error" | "skipped") => {
                let outcome = outcome.to_owned();
                cases.last_mut().unwrap().outcome = Some((outcome, of("type"), of("message")));
            }
            _ => {}
        }
    }
    assert_eq!(depth, 0);
    (suite, cases)
}

#[test]
fn junit_has_a_case_per_gated_row_with_its_outcome() {
    let place = place();
    let limits = [
        "--fail-above",
        "3",
        "--gate",
        "total=50",
        "--gate",
        "phase:nope",
        "--format",
        "junit",
    ];
    let ran = compare(&place, &limits);
    assert_eq!(ran.code, Some(1));
    let (suite, cases) = junit(&ran.stdout);
    let counts = ["tests", "failures", "errors", "skipped"].map(|name| suite[name].as_str());
    assert_eq!((suite["name"].as_str(), counts), ("compare", ["3", "1", "1", "0"]));
    let [busy, total, nope] = &cases[..] else {
        panic!("{cases:#?}")
    };
    let (outcome, kind, message) = busy.outcome.as_ref().unwrap();
    assert_eq!(
        (busy.name.as_str(), outcome.as_str(), kind.as_str()),
        ("busy", "failure", "regression")
    );
    assert!(
        message.starts_with("+24.") && message.contains("limit 3 %: slower by at least 24."),
        "{message}"
    );
    assert_eq!(busy.properties["limit_pct"], "3");
    assert!(busy.properties["low_pct"].parse::<f64>().unwrap() > 24.0);
    assert_eq!(
        (total.name.as_str(), total.properties["limit_pct"].as_str()),
        ("total", "50")
    );
    assert!(total.outcome.is_none());
    let (outcome, kind, _) = nope.outcome.as_ref().unwrap();
    assert_eq!(
        (nope.name.as_str(), outcome.as_str(), kind.as_str()),
        ("phase:nope", "error", "missing")
    );
}

#[test]
fn junit_skips_only_what_was_excused() {
    let place = Place::new();
    for (name, ns) in [("a0", 1_000), ("a1", 1_100), ("b0", 1_010), ("b1", 1_080)] {
        place.write(&format!("{name}.xml"), doc(&[r(0, ns)]));
    }
    let sides = [
        "compare",
        "--a",
        "a0.xml",
        "a1.xml",
        "--b",
        "b0.xml",
        "b1.xml",
        "--fail-above",
        "5",
        "--gate",
        "phase:nope",
    ];
    let outcome = |more: &[&str]| {
        let ran = place.run([&sides[..], &["--format", "junit"], more].concat());
        let (_, cases) = junit(&ran.stdout);
        let outcomes = cases
            .into_iter()
            .map(|case| case.outcome.unwrap())
            .map(|(what, kind, _)| (what, kind));
        (ran.code, outcomes.collect::<Vec<_>>())
    };
    let error = |kind: &str| ("error".to_owned(), kind.to_owned());
    assert_eq!(
        outcome(&[]),
        (Some(3), vec![error("limit_in_interval"), error("missing")])
    );
    let skipped = ("skipped".to_owned(), String::new());
    assert_eq!(
        outcome(&["--on-inconclusive", "pass"]),
        (Some(3), vec![skipped, error("missing")])
    );
}

#[test]
fn junit_names_what_else_decides_the_exit_status() {
    let place = place();
    let missing = place.run([
        "compare",
        "--keep-going",
        "--a",
        "a0.xml",
        "gone.xml",
        "--b",
        "b0.xml",
        "--format",
        "junit",
    ]);
    assert_eq!(missing.code, Some(3));
    let (_, cases) = junit(&missing.stdout);
    assert_eq!(cases[0].outcome.as_ref().unwrap().1, "missing_trial");
    // One trial a side: nothing can make this gate fail.
    let single = [
        "compare",
        "--a",
        "a0.xml",
        "--b",
        "b0.xml",
        "--fail-above",
        "3",
        "--self-test",
        "--format",
        "junit",
    ];
    let (_, cases) = junit(&place.run(single).stdout);
    assert_eq!(cases[1].outcome.as_ref().unwrap().1, "self_test");
    // Without a gate there is nothing to test.
    let (suite, cases) = junit(&place.run(["report", "a0.xml", "--format", "junit"]).done().stdout);
    assert_eq!((suite["tests"].as_str(), cases.len()), ("0", 0));
}

#[test]
fn junit_takes_out_what_xml_forbids_with_its_sequence() {
    let place = place();
    let gates = gates(&phases(&place));
    let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
    let (_, cases) = junit(&compare(&place, &[&["--format", "junit"], &gates[..]].concat()).stdout);
    assert_eq!(cases.len(), gates.len() / 2);
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert!(names.contains(&"phase:red"), "{names:#?}");
    assert!(names.iter().all(|name| !name.contains("[31m")));
    assert!(names.iter().any(|name| name.contains("<img src=x onerror=alert(1)>")));
}

// --------------------------------------------------------------------------------------------- GitHub

#[test]
fn github_shows_the_worst_ten() {
    let place = place();
    let gates = gates(&phases(&place));
    let mut more: Vec<&str> = vec!["--format", "github", "--gate-name", "nightly", "--gate", "total=50"];
    more.extend(gates.iter().map(String::as_str));
    let ran = compare(&place, &more);
    assert_eq!(ran.code, Some(1));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 10);
    assert!(
        lines[..9]
            .iter()
            .all(|line| line.starts_with("::error title=nightly%3A failed%3A phase%3A")),
        "{lines:#?}"
    );
    assert!(
        lines[9].starts_with("::error title=nightly%3A more::"),
        "the rest holds failures too: {}",
        lines[9]
    );

    let few = compare(
        &place,
        &[
            "--format",
            "github",
            "--fail-above",
            "3",
            "--gate",
            "total=50",
            "--gate",
            "phase:nope",
        ],
    );
    let kinds: Vec<&str> = few.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["::error", "::warning", "::notice", "::notice"]);
    let alone = place.run(["report", "a0.xml", "--format", "github"]);
    assert!(
        alone
            .done()
            .stdout
            .starts_with("::notice title=report%3A GPU time::bench keeps the GPU busy "),
        "{}",
        alone.stdout
    );
}

// ------------------------------------------------------------------------------------------ benchstat

/// Name and values of a line of Go's benchmark format.
fn benchmark(line: &str) -> (&str, Vec<(f64, &str)>) {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let name = fields[0].strip_prefix("Benchmark").unwrap();
    assert!(name.starts_with(|c: char| c.is_uppercase()), "{line}");
    assert_eq!(fields[1], "1", "iterations: {line}");
    assert!(fields.len() >= 4 && fields.len().is_multiple_of(2), "{line}");
    let values = fields[2..].chunks(2).map(|pair| (pair[0].parse().unwrap(), pair[1]));
    (name, values.collect())
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
        } else {
            byte
        });
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn benchstat_has_a_line_per_row_side_and_trial_and_gives_labels_back() {
    let place = place();
    let json = compare(&place, &["--tokens", "8", "--format", "json"]).json();
    let ran = compare(&place, &["--tokens", "8", "--format", "benchstat"]);
    let lines: Vec<&str> = ran.done().stdout.lines().collect();
    let mut found: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.starts_with("Benchmark")) {
        let (name, values) = benchmark(line);
        assert_eq!((values[0].1, values[1].1), ("ns/op", "submissions/op"));
        let (row, side) = name.rsplit_once("/side=").unwrap();
        found
            .entry((row.to_owned(), side.to_owned()))
            .or_default()
            .push(values[0].0);
    }
    for other in lines.iter().filter(|line| !line.starts_with("Benchmark")) {
        let skipped = other.is_empty() || other.starts_with("# ");
        assert!(
            skipped
                || ["gpu: ", "per: token", "timing: "]
                    .iter()
                    .any(|key| other.starts_with(key)),
            "{other}"
        );
    }
    for row in json["phases"].as_array().unwrap() {
        let key = row["key"].as_str().unwrap();
        for side in ["a", "b"] {
            let same = |(name, letter): &&(String, String)| {
                letter == side
                    && name
                        .strip_prefix("Phase/key=")
                        .is_some_and(|name| percent_decoded(name) == key)
            };
            let name = found.keys().find(same).unwrap_or_else(|| panic!("{key}"));
            let trials = row[side]["trials"].as_array().unwrap();
            let ns: Vec<f64> = trials
                .iter()
                .map(|trial| trial["total_ns"].as_f64().unwrap() / 8.0)
                .collect();
            assert_eq!(found[name], ns);
        }
    }
    let busy = &found[&("Busy".to_owned(), "a".to_owned())];
    assert_eq!(
        busy[0],
        json["busy"]["a"]["trials"][0]["busy_ns"].as_f64().unwrap() / 8.0
    );
}

// -------------------------------------------------------------------------- github-action-benchmark, Bencher

#[test]
fn github_action_benchmark_keeps_side_a() {
    let place = place();
    let json = compare(&place, &["--format", "json"]).json();
    let entries = compare(&place, &["--format", "github-action-benchmark"]).json();
    let entries = entries.as_array().unwrap();
    let mut names: Vec<&str> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["busy", "total"]);
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "a name that stands twice would hide a row");
    for entry in entries {
        let fields: Vec<&String> = entry.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["extra", "name", "range", "unit", "value"]);
        assert!(entry["value"].is_number() && entry["range"].is_string());
        assert_eq!(entry["unit"], "µs/trial");
    }
    assert_eq!(entries[0]["value"].as_f64(), json["busy"]["a"]["busy_us"].as_f64());
    let one = place
        .run([
            "report",
            "a0.xml",
            "--tokens",
            "4",
            "--format",
            "github-action-benchmark",
        ])
        .json();
    assert_eq!(one[0]["unit"], "µs/token");
    assert_eq!(one[0].get("range"), None, "one trial has no range");
}

#[test]
fn bencher_has_names_measures_and_bounds() {
    let place = place();
    let json = compare(&place, &["--tokens", "8", "--format", "json"]).json();
    let metrics = compare(&place, &["--tokens", "8", "--format", "bencher"]).json();
    for (name, measures) in metrics.as_object().unwrap() {
        assert!(name.chars().count() <= 1_024, "{name}");
        assert!(!name.ends_with("-bencher-ignore"), "{name}");
        for (measure, metric) in measures.as_object().unwrap() {
            assert!(measure.len() <= 64, "{measure}");
            let value = |field: &str| metric.get(field).map(|value| value.as_f64().unwrap());
            if let (Some(low), Some(high)) = (value("lower_value"), value("upper_value")) {
                assert!(
                    low <= value("value").unwrap() && value("value").unwrap() <= high,
                    "{name}"
                );
            }
        }
    }
    let busy = &metrics["busy"]["gpu-us-per-token"];
    assert_eq!(busy["value"].as_f64(), json["busy"]["a"]["busy_us"].as_f64());
    assert_eq!(metrics["left_out:invalid"]["rows"]["value"], 0.0);
    assert_eq!(metrics["warnings"]["count"]["value"], 0.0);
}

#[test]
fn b30_values_of_different_units_never_have_one_name() {
    let place = place();
    let names = |unit: &[&str]| {
        let metrics = place
            .run([&["report", "a0.xml", "--format", "bencher"], unit].concat())
            .json();
        metrics["busy"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["gpu-us-per-trial", "submissions-per-trial"]);
    assert_eq!(names(&["--tokens", "4"]), ["gpu-us-per-token", "submissions-per-token"]);
    assert_eq!(
        names(&["--units", "4", "--unit", "frame"]),
        ["gpu-us-per-frame", "submissions-per-frame"]
    );
    let bench = place.run([
        "report",
        "a0.xml",
        "--units",
        "4",
        "--unit",
        "frame",
        "--format",
        "benchstat",
    ]);
    assert!(
        bench.done().stdout.contains("\nper: frame\n"),
        "benchstat keeps files of other units apart by this line"
    );
}

#[test]
fn b17_b39_a_reference_of_zero_and_equal_trials_give_no_nan() {
    let place = Place::new();
    for (name, rows) in [
        ("zero", vec![r(0, 0).label("q"), r(10, 0).label("p").encoder(2)]),
        ("some", vec![r(0, 50).label("q"), r(10, 0).label("p").encoder(2)]),
        ("same", vec![r(0, 50).label("q"), r(20, 0).label("p").encoder(2)]),
    ] {
        place.write(&format!("{name}.xml"), doc(&rows));
    }
    for format in TEXT.iter().chain(&["json"]) {
        for (a, b) in [("some", "zero"), ("zero", "some"), ("some", "same")] {
            let files = [format!("{a}.xml"), format!("{b}.xml")];
            let gate = ["--fail-above", "5", "--gate", "phase:q", "--format", format];
            let ran = place.run([&["compare", "--a", &files[0], "--b", &files[1]], &gate[..]].concat());
            assert!(ran.code == Some(0) && b == "same" || ran.code == Some(3), "{ran:#?}");
            for word in ["NaN", "inf,", " inf ", "Infinity", "-0 "] {
                assert!(!ran.stdout.contains(word), "{format} {a} {b}: {word} in {}", ran.stdout);
            }
        }
    }
}

// ------------------------------------------------------------------------------------- Markdown and files

#[test]
fn a_comment_is_found_by_its_marker() {
    let place = place();
    let first = |more: &[&str]| {
        let ran = compare(&place, &[&["--format", "markdown"], more].concat());
        ran.stdout.lines().next().unwrap().to_owned()
    };
    assert_eq!(first(&[]), "<!-- trace-attr:compare -->");
    assert_eq!(first(&["--gate-name", "decode-m5"]), "<!-- trace-attr:decode-m5 -->");
    for name in ["a--b", "-->", "a b", "", "-a", "a-"] {
        let ran = compare(&place, &[&format!("--gate-name={name}")]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{name}");
    }
}

#[test]
fn a_step_summary_keeps_what_it_holds_and_its_limit() {
    let place = place();
    let limit = 1 << 20;
    let summary = |before: &str| {
        place.write("summary", before);
        let target = format!("markdown={}", place.path("summary").display());
        let mut command = place.command([&COMPARE[..], &["--fail-above", "3", "-o", &target]].concat());
        let ran = Ran::of(command.env("GITHUB_STEP_SUMMARY", place.path("summary")));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:#?}");
        let after = place.read("summary");
        assert!(after.len() <= limit && after.starts_with(before), "{}", after.len());
        after[before.len()..].to_owned()
    };
    let whole = summary("");
    assert_eq!(summary("# Before\n"), whole);
    assert_eq!(summary("no line break"), format!("\n{whole}"));
    // Room for the gate and a little more.
    let cut = summary(&"x".repeat(limit - 2_500));
    assert!(
        cut.contains("### Gate") && cut.contains("sections do not fit here, see JSON"),
        "{cut}"
    );
    assert!(summary(&"x".repeat(limit - 10)).trim().is_empty());
    // Another file is replaced, and has the size of a comment.
    place.write("comment.md", "old");
    compare(&place, &["-o", "comment.md"]);
    assert!(
        place.read("comment.md").starts_with("<!-- trace-attr:compare -->") && place.read("comment.md").len() <= 60_000
    );
}

#[test]
fn a_format_is_named_or_follows_from_the_extension() {
    let place = place();
    let shown = |format: &str| {
        place
            .run(["report", "a0.xml", "--format", format])
            .done()
            .stdout
            .clone()
    };
    let files = [
        ("r.csv", "r.csv", "csv"),
        ("r.md", "r.md", "markdown"),
        ("r.html", "r.html", "html"),
        ("r.txt", "r.txt", "terminal"),
        ("out/r.xml", "out/r.xml", "junit"),
        ("bencher=b.json", "b.json", "bencher"),
        ("github-action-benchmark=g.json", "g.json", "github-action-benchmark"),
        ("benchstat=new", "new", "benchstat"),
        ("github=annotations", "annotations", "github"),
        ("json=data.txt", "data.txt", "json"),
        // A word before `=` is a format, or a slip; a file of such a name is given with its folder.
        ("./run=1.md", "run=1.md", "markdown"),
    ];
    place.write("out/keep", "");
    let mut arguments = vec!["report", "a0.xml"];
    arguments.extend(files.iter().flat_map(|(option, _, _)| ["-o", option]));
    assert_eq!(place.run(arguments).done().stdout, "");
    for (_, file, format) in files {
        let expected = if format == "terminal" {
            place.read("r.txt")
        } else {
            shown(format)
        };
        assert_eq!(place.read(file), expected, "{file}");
    }
}

#[test]
fn no_report_takes_the_place_of_something_that_is_read() {
    let place = place();
    place.write("folder/intervals.xml", doc(&[r(0, 100)]));
    place
        .run(["report", "folder", "-o", "folder/junit.xml"])
        .refused(&["would be read as one of them"]);
    place.run(["report", "folder", "-o", "folder/report.md"]).done();
    place
        .run(["report", "a0.xml", "-o", "junit=a0.xml"])
        .refused(&["this is an input"]);
    place
        .run(["report", "a0.xml", "--tokens", "4", "-o", "base.json"])
        .done();
    let baseline = ["compare", "--a", "a1.xml", "--tokens", "4", "--baseline", "base.json"];
    place
        .run([&baseline[..], &["-o", "base.json"]].concat())
        .refused(&["this is an input"]);
    place
        .run([&baseline[..], &["-o", "csv=x", "-o", "junit=./x"]].concat())
        .refused(&["given twice"]);
    let nowhere = place.run(["report", "a0.xml", "-o", "csv=nowhere/x"]);
    nowhere.refused(&["there is no such folder"]);
    place
        .run(["report", "a0.xml", "-o", "report.docx"])
        .refused(&["name the format", "github-action-benchmark"]);
}

#[test]
fn the_demo_has_the_same_numbers_in_every_format() {
    let place = Place::new();
    let demo = |name: &str| here("fixtures/demo").join(name).to_str().unwrap().to_owned();
    let inputs: Vec<String> = ["hf2q-1", "hf2q-2", "hf2q-3", "llama-1", "llama-2", "llama-3"]
        .map(demo)
        .into();
    let mut arguments: Vec<&str> = vec!["compare", "--a"];
    arguments.extend(inputs[..3].iter().map(String::as_str));
    arguments.push("--b");
    arguments.extend(inputs[3..].iter().map(String::as_str));
    arguments.extend(["--tokens", "64", "--fail-above", "3"]);
    let outputs = [
        "json=j",
        "csv=c",
        "junit=x",
        "github=g",
        "benchstat=t",
        "github-action-benchmark=h",
        "bencher=b",
    ];
    arguments.extend(outputs.iter().flat_map(|output| ["-o", output]));
    assert_eq!(place.run(arguments).code, Some(1));
    let json: Value = serde_json::from_str(&place.read("j")).unwrap();
    let busy = json["busy"]["a"]["busy_us"].as_f64().unwrap();
    let low = json["busy"]["test"]["low_pct"].as_f64().unwrap();
    let records = records(&place.read("c"));
    assert_eq!(at(&records, ["overall", "busy", "a", "", "busy"]), busy.to_string());
    assert_eq!(at(&records, ["gate", "busy", "", "", "low_pct"]), low.to_string());
    assert_eq!(junit(&place.read("x")).1[0].properties["low_pct"], low.to_string());
    assert!(
        place
            .read("g")
            .starts_with("::error title=compare%3A failed%3A busy::busy +10.59 %25 [+10.08, +11.61]")
    );
    let history: Value = serde_json::from_str(&place.read("h")).unwrap();
    assert_eq!(history[0]["value"].as_f64(), Some(busy));
    let bencher: Value = serde_json::from_str(&place.read("b")).unwrap();
    assert_eq!(bencher["busy"]["gpu-us-per-token"]["value"].as_f64(), Some(busy));
    let text = place.read("t");
    let line = text
        .lines()
        .find(|line| line.starts_with("BenchmarkBusy/side=a"))
        .unwrap();
    assert_eq!(
        benchmark(line).1[0].0,
        json["busy"]["a"]["trials"][0]["busy_ns"].as_f64().unwrap() / 64.0
    );
}
