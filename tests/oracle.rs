//! The second opinion is worth something: the Python oracle agrees with what was put into an export, and with the
//! replaced script where that script is right.
//!
//! Needs `python3`; without it the tests say so and pass.
#![allow(clippy::print_stderr, clippy::panic, clippy::expect_used, clippy::indexing_slicing)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::workload::{Engine, Workload};

fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The JSON that a Python program prints, or `None` when there is no Python.
fn python(program: &str, arguments: &[&str]) -> Option<Value> {
    let run = Command::new("python3").arg(here(program)).args(arguments).output();
    let Ok(output) = run else {
        eprintln!("skipped: no python3");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON on stdout"))
}

fn oracle(input: &Path, options: &[&str]) -> Option<Value> {
    let input = input.to_string_lossy();
    python("tests/oracle/oracle.py", &[&[&*input], options].concat())
}

/// Everything but what depends on the choice of table.
fn without_source(mut report: Value) -> Value {
    for key in ["timing", "rows_read", "left_out"] {
        report.as_object_mut().expect("an object").remove(key);
    }
    report
}

#[test]
fn oracle_finds_what_the_workload_put_in_by_either_table() {
    for engine in [Engine::Hf2q, Engine::Llama] {
        let workload = Workload::new(engine, 9, 7, 2);
        let folder = tempfile::tempdir().expect("a temporary folder");
        for schema in Workload::SCHEMAS {
            let file = std::fs::File::create(folder.path().join(format!("{schema}.xml"))).expect("a new file");
            workload
                .write(schema, file, support::export::Style::default())
                .expect("a written table");
        }
        let toc = workload.toc(Workload::SCHEMAS).to_xml();
        std::fs::write(folder.path().join("toc.xml"), toc).expect("a written table of contents");

        let (mut count, mut total, mut encoders) = (0_u64, 0, 0_u64);
        let mut spans = Vec::new();
        for token in workload.tokens() {
            for encoder in token.buffers.iter().flat_map(|buffer| &buffer.encoders) {
                encoders += 1;
                for submission in &encoder.submissions {
                    count += 1;
                    total += submission.end - submission.start;
                    spans.push((submission.start, submission.end));
                }
            }
        }
        spans.sort_unstable();
        // Covered nanoseconds: every span adds what reaches beyond all before it.
        let (mut busy, mut reach) = (0, 0);
        for (start, end) in spans {
            busy += end.saturating_sub(start.max(reach));
            reach = reach.max(end);
        }
        assert!(busy < total, "the workload overlaps");

        let Some(intervals) = oracle(folder.path(), &["--timing", "intervals"]) else {
            return;
        };
        assert_eq!(intervals["submissions"], count);
        assert_eq!(intervals["total_ns"], total);
        assert_eq!(intervals["busy_ns"], busy);
        let groups = intervals["encoders"].as_object().expect("families").values();
        assert_eq!(
            groups.filter_map(|group| group["encoders"].as_u64()).sum::<u64>(),
            encoders
        );
        let points = oracle(folder.path(), &["--timing", "points"]).expect("python3 was there");
        assert_eq!(without_source(intervals), without_source(points));
    }
}

#[test]
fn oracle_reads_every_form_of_the_plain_table_alike() {
    let Some(plain) = oracle(&here("fixtures/good/plain.xml"), &[]) else {
        return;
    };
    assert_eq!(plain["total_ns"], 45_000);
    assert_eq!(plain["busy_ns"], 42_500);
    for same in [
        "reserialised.xml",
        "pretty_crlf.xml",
        "no_ids.xml",
        "ids_not_indices.xml",
        "other_locale.xml",
        "utf8_bom.xml",
        "utf16le.xml",
        "stray_text.xml",
        "two_members.xml.gz",
        "schema_carried.xml",
    ] {
        assert_eq!(
            oracle(&here("fixtures/good").join(same), &[]).as_ref(),
            Some(&plain),
            "{same}"
        );
    }
}

/// The script is not part of the project: `TRACE_ATTR_SCRIPT`, or where it lies beside a checkout.
fn script() -> Option<PathBuf> {
    let given = std::env::var_os("TRACE_ATTR_SCRIPT").map(PathBuf::from);
    let beside = [
        "../shared/seeds/aggregate_mst.py",
        "../../shared/seeds/aggregate_mst.py",
    ]
    .map(here);
    let found = given.into_iter().chain(beside).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: the replaced script is not there");
    }
    found
}

#[test]
fn replaced_script_agrees_on_clean_points_and_loses_a_repeated_time() {
    let Some(script) = script() else { return };
    let summary = |folder: &str| {
        let folder = here(folder);
        let arguments = [
            &*script.to_string_lossy(),
            &*folder.to_string_lossy(),
            "--process",
            "bench",
        ];
        python("tests/oracle/script_on_files.py", &arguments)
    };
    let Some(clean) = summary("fixtures/good/points_only") else {
        return;
    };
    let truth = oracle(&here("fixtures/good/points_only"), &[]).expect("python3 was there");
    assert_eq!(clean["paired"], truth["submissions"]);
    assert_eq!(clean["buckets"]["_total"]["sum_ns"], truth["total_ns"]);
    for (name, bucket) in truth["buckets"].as_object().expect("buckets") {
        assert_eq!(clean["buckets"][name]["count"], bucket["count"], "{name}");
        assert_eq!(clean["buckets"][name]["sum_ns"], bucket["total_ns"], "{name}");
        assert_eq!(
            clean["buckets"][name]["p50_ns"].as_f64(),
            bucket["p50_ns"].as_f64(),
            "{name}"
        );
    }
    for (name, phase) in truth["phases"].as_object().expect("phases") {
        assert_eq!(clean["cb_label_gpu"][name]["gpu_sum_ns"], phase["total_ns"], "{name}");
        assert_eq!(
            clean["cb_label_gpu"][name]["count_dispatches"], phase["count"],
            "{name}"
        );
    }

    let lossy = summary("fixtures/good/points_ref_time").expect("python3 was there");
    let truth = oracle(&here("fixtures/good/points_ref_time"), &[]).expect("python3 was there");
    assert_eq!(truth["submissions"], 12);
    assert_eq!(lossy["paired"], 11, "the script drops a point whose time is a ref");
}
