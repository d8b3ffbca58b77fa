//! Real exports of other people, which are not part of the project: `TRACE_ATTR_CORPUS`, or where they lie beside a
//! checkout. Every table is read by `rows` or refused for a stated reason, and the numbers of those with GPU times are
//! those of the oracle (needs `python3`). Without the files the tests say so and pass.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod command;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{Place, here, row, trial};
use serde_json::Value;

fn corpus() -> Option<PathBuf> {
    let given = std::env::var_os("TRACE_ATTR_CORPUS").map(PathBuf::from);
    let beside = ["../shared/corpus", "../../shared/corpus"].map(here);
    let found = given.into_iter().chain(beside).find(|path| path.is_dir());
    if found.is_none() {
        eprintln!("skipped: no corpus");
    }
    found
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "xml") {
            found.push(path);
        }
    }
    found.sort();
}

/// Why a file has no rows to print, by what its path holds.
const REFUSED: &[(&str, &str)] = &[
    // Track details are no tables.
    ("track-detail/", "rows without a <schema>"),
    // An attribute is called `resident-%`.
    ("Regions-Map", ""),
    ("no-match", "holds no table"),
    ("toc/", "this is a table of contents"),
];

#[test]
fn every_file_is_read_or_refused_for_a_stated_reason() {
    let Some(corpus) = corpus() else { return };
    let mut all = Vec::new();
    files(&corpus, &mut all);
    let place = Place::new();
    let (mut tables, mut lines) = (0, 0);
    for path in &all {
        let name = path.strip_prefix(&corpus).unwrap().to_string_lossy().into_owned();
        let shown = path.to_str().unwrap();
        let csv = place.run(["rows", shown]);
        let json = place.run(["rows", shown, "--format", "jsonl"]);
        if let Some((_, reason)) = REFUSED.iter().find(|(part, _)| name.contains(part)) {
            csv.refused(&[reason, shown]);
            json.refused(&[reason]);
            continue;
        }
        // Elements called `row` that open, counted by their text: no cell of any file holds another.
        let text = fs::read_to_string(path).unwrap();
        let rows = text
            .match_indices("<row")
            .filter(|(at, _)| text[at + 4..].starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace()));
        let rows = rows.count();
        assert_eq!((csv.code, csv.stderr.as_str()), (Some(0), ""), "{name}");
        let mut reader = csv::Reader::from_reader(csv.stdout.as_bytes());
        let headers = reader.headers().unwrap().clone();
        let columns = headers.len();
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(records.len(), rows, "{name}");
        assert!(records.iter().all(|record| record.len() == columns), "{name}");
        let objects = json.lines();
        assert_eq!(objects.len(), rows, "{name}");
        for (object, record) in objects.iter().zip(&records) {
            let object = object.as_object().unwrap();
            assert_eq!(object.len(), columns, "{name}");
            // NULL is null in one and empty in the other.
            for (key, field) in headers.iter().zip(record) {
                assert!(!object[key].is_null() || field.is_empty(), "{name} {key}: {field}");
            }
        }
        let contents = place.run(["toc", shown, "--format", "json"]).json();
        assert_eq!(contents["tables"][0]["rows"], rows, "{name}");
        tables += 1;
        lines += rows;
    }
    assert!(tables > 40 && lines > 20_000, "{tables} tables with {lines} rows");
}

#[test]
fn tables_of_contents_are_listed_without_what_is_private() {
    let Some(corpus) = corpus() else { return };
    let mut all = Vec::new();
    files(&corpus.join("toc"), &mut all);
    assert!(all.len() > 8);
    for path in &all {
        let text = fs::read_to_string(path).unwrap();
        let place = Place::new();
        let contents = place.run(["toc", path.to_str().unwrap(), "--format", "json"]);
        let json = contents.done().json();
        let runs = json["runs"].as_array().unwrap();
        assert_eq!(runs.len(), text.matches("<run ").count(), "{}", path.display());
        let listed: u64 = runs
            .iter()
            .flat_map(|run| run["tables"].as_array().unwrap())
            .map(|table| table["count"].as_u64().unwrap())
            .sum();
        assert_eq!(listed, text.matches("<table ").count() as u64, "{}", path.display());
        let shown = place.run(["toc", path.to_str().unwrap()]).done().stdout.clone() + &contents.stdout;
        // Values of private attributes of the target, as they stand in the file.
        let target = text
            .split_once("<target>")
            .unwrap()
            .1
            .split_once("</target>")
            .unwrap()
            .0;
        for tag in target.split('<').skip(1) {
            for key in ["arguments", "uuid", "path", "environment"] {
                let value = tag
                    .split_once(&format!(" {key}=\""))
                    .and_then(|(_, rest)| rest.split_once('"'));
                if let Some((value, _)) = value.filter(|(value, _)| value.len() > 3) {
                    assert!(!shown.contains(value), "{}: {key}", path.display());
                }
            }
            if tag.starts_with("device") || tag.starts_with("host-device") {
                let name = tag.split_once(" name=\"").and_then(|(_, rest)| rest.split_once('"'));
                if let Some((name, _)) = name.filter(|(name, _)| name.len() > 3) {
                    assert!(!shown.contains(name), "{}: the device's name", path.display());
                }
            }
        }
        place
            .run(["report", path.to_str().unwrap()])
            .refused(&["no table with GPU times"]);
    }
}

/// What the oracle says, or `None` without Python.
fn oracle(input: &Path, options: &[&str]) -> Option<Value> {
    let run = Command::new("python3")
        .arg(here("tests/oracle/oracle.py"))
        .arg(input)
        .args(options)
        .output();
    let Ok(output) = run else {
        eprintln!("skipped: no python3");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn report(input: &Path, options: &[&str]) -> Value {
    let arguments = ["report", input.to_str().unwrap(), "--format", "json"];
    Place::new().run([&arguments, options].concat()).done().json()
}

/// Every number that the oracle has.
fn assert_same(report: &Value, oracle: &Value) {
    let one = trial(report);
    for field in [
        "rows_read",
        "submissions",
        "total_ns",
        "busy_ns",
        "window_ns",
        "idle_ns",
        "first_start_ns",
        "last_end_ns",
    ] {
        assert_eq!(one[field], oracle[field], "{field}");
    }
    assert_eq!(report["settings"]["timing"], oracle["timing"]);
    for (reason, left) in oracle["left_out"].as_object().unwrap() {
        assert_eq!(one["left_out"][reason]["rows"], left["rows"], "{reason}");
        let ns = one["left_out"][reason]["total_ns"].as_u64().unwrap_or(0);
        assert_eq!(ns, left["total_ns"].as_u64().unwrap(), "{reason}");
    }
    for section in ["buckets", "phases", "encoders", "channels"] {
        let groups = oracle[section].as_object().unwrap();
        let used = command::used(report, section);
        let with_rows = used
            .iter()
            .filter(|key| row(report, section, key)["a"]["trials"][0]["submissions"] != 0);
        let mut keys: Vec<&str> = with_rows.map(String::as_str).collect();
        let mut expected: Vec<&str> = groups.keys().map(String::as_str).collect();
        keys.sort_unstable();
        expected.sort_unstable();
        assert_eq!(keys, expected, "{section}");
        for (key, group) in groups {
            let cell = &row(report, section, key)["a"]["trials"][0];
            assert_eq!(cell["submissions"], group["count"], "{section} {key}");
            assert_eq!(cell["total_ns"], group["total_ns"], "{section} {key}");
            assert_eq!(cell["busy_ns"], group["busy_ns"], "{section} {key}");
            assert_eq!(cell["p50_ns"].as_f64(), group["p50_ns"].as_f64(), "{section} {key}");
            for ids in ["encoders", "command_buffers"] {
                assert_eq!(
                    cell[ids].as_u64().unwrap_or(0),
                    group[ids].as_u64().unwrap(),
                    "{section} {key} {ids}"
                );
            }
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_oracle() {
    let Some(corpus) = corpus() else { return };
    for (input, options) in [
        ("reconstructed/planefuse-26.6", &[][..]),
        (
            "metal-gpu-intervals/xcode27.0-m4max-mlx-trim.xml",
            &["--process", "python"],
        ),
        (
            "metal-gpu-intervals/xcode27.0-m4max-mlx-trim.xml",
            &["--process", "all"],
        ),
        (
            "reconstructed/metal-gpu-intervals-ms-2024-m3max-first3000.xml",
            &["--process", "all"],
        ),
        (
            "reconstructed/metal-gpu-intervals-ms-2024-m3max-first3000.xml",
            &["--process", "WindowServer"],
        ),
        (
            "metal-gpu-execution-points/ios26.7-iphone16pro-solo-excerpt.xml",
            &["--process", "all"],
        ),
        (
            "metal-gpu-intervals/xcode26.3-probe-handtrimmed-pt-locale.xml",
            &["--process", "all"],
        ),
        (
            "metal-gpu-intervals/xcode27-m5max-phosphor-excerpt-it-locale.xml",
            &["--process", "all"],
        ),
    ] {
        let path = corpus.join(input);
        let Some(expected) = oracle(&path, options) else { return };
        eprintln!("{input}");
        assert_same(&report(&path, options), &expected);
    }
}

#[test]
fn planefuse_has_the_numbers_that_were_published() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("reconstructed/planefuse-26.6");
    let truth: Value = serde_json::from_str(&fs::read_to_string(folder.join("truth.json")).unwrap()).unwrap();
    let report = report(&folder, &[]);
    let one = trial(&report);
    assert_eq!(one["submissions"], truth["paired"]);
    assert_eq!(one["total_ns"], truth["total_ns"]);
    assert_eq!(one["busy_ns"], truth["busy_ns"]);
    for section in ["buckets", "phases", "encoders"] {
        for (key, group) in truth[section].as_object().unwrap() {
            let cell = &row(&report, section, key)["a"]["trials"][0];
            assert_eq!(cell["submissions"], group["count"], "{key}");
            assert_eq!(cell["total_ns"], group["total_ns"], "{key}");
            assert_eq!(cell["p50_ns"].as_f64(), group["p50_ns"].as_f64(), "{key}");
        }
    }
}

#[test]
fn states_of_device_and_gpu_are_read_beside_a_timing_table() {
    let Some(corpus) = corpus() else { return };
    let place = Place::new();
    for (name, from) in [
        (
            "a.xml",
            "metal-gpu-intervals/xcode27-m5max-phosphor-excerpt-it-locale.xml",
        ),
        ("b.xml", "gpu-performance-state-intervals/xcode27-m5max-phosphor.xml"),
        ("c.xml", "device-thermal-state-intervals/ms-2024.xml"),
        (
            "d.xml",
            "metal-shader-profiler-intervals/xcode27-m5max-phosphor-excerpt.xml",
        ),
    ] {
        place.write(&format!("trial/{name}"), fs::read(corpus.join(from)).unwrap());
    }
    let report = place
        .run(["report", "trial", "--process", "all", "--format", "json"])
        .json();
    let state = &trial(&report)["state"];
    assert_eq!(state["thermal"][0]["state"], "Nominal", "{state}");
    // The excerpts are of different moments, so no performance state lies in the window.
    assert_eq!(state["performance"], serde_json::json!([]), "{state}");
    assert_eq!(report["kernels"]["a"]["shader_timeline_rows"], 18);
}

#[test]
fn real_signposts_are_read_as_begins_and_ends() {
    use trace_attr::recording::{ReadOptions, read_recording_from};
    use trace_attr::tables::signposts::{EventKind, Scope};
    let Some(corpus) = corpus() else { return };
    let options = ReadOptions {
        signposts: true,
        ..ReadOptions::default()
    };
    let read = |name: &str| {
        let path = corpus.join(name);
        let Ok(file) = fs::File::open(&path) else {
            eprintln!("skipped: no {name}");
            return None;
        };
        Some(read_recording_from(file, name, &options, &()).unwrap())
    };
    if let Some(recording) = read("os-signpost/xcode26.4plus-browserbenchmark-ms.xml") {
        let events = recording.runs[0].signpost_events.as_ref().unwrap();
        let name = |at: usize| recording.texts.names.get(events[at].signpost.name.unwrap()).to_owned();
        assert_eq!(events.len(), 6);
        assert!(
            events
                .iter()
                .all(|event| event.scope == Scope::Process && event.process.is_some())
        );
        let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Begin, EventKind::End].repeat(3));
        assert_eq!(events[4].time, Some(7_042_153_916));
        assert_eq!(
            (name(0).as_str(), name(5).as_str()),
            ("BrowserBenchmarkMetric", "BrowserBenchmark")
        );
        assert_eq!(events[0].signpost, events[1].signpost);
        assert_ne!(events[1].signpost, events[2].signpost);
    }
    if let Some(recording) = read("synthetic/OSSignpostIntervals--xcode27beta-sforteln-synthetic.xml") {
        let intervals = recording.runs[0].signpost_intervals.as_ref().unwrap();
        let times: Vec<_> = intervals.iter().map(|row| (row.start, row.duration)).collect();
        assert_eq!(
            times,
            [
                (Some(4_100_000_000), Some(820_000_000)),
                (Some(5_200_000_000), Some(140_000_000))
            ]
        );
    }
}
