//! What fuzzing found stays found: every file in `fixtures/fuzz` goes the whole way, to a result or an error.
//!
//! The checks are those of the fuzz targets, so a find needs no more than its file.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    missing_docs,
    unreachable_pub
)]

#[path = "../fuzz/checks.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use all of it")]
mod checks;
mod support;

use std::path::Path;

use support::export::{ExportBuilder, GPU_INTERVALS, GpuInterval, Ids, Process, Style};
use trace_attr::report::{Format, ReportOptions};

fn every_file_in(folder: &str, check: impl Fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            check(&std::fs::read(&path).expect("a readable file"));
            files += 1;
        }
    }
    files
}

fn all_checks(bytes: &[u8]) {
    checks::read(bytes);
    checks::read_types(bytes);
    checks::pipeline(bytes);
    checks::cache(bytes);
}

#[test]
fn finds_end_in_a_result_or_an_error() {
    assert!(every_file_in("fixtures/fuzz", all_checks) > 0);
}

/// The seeds of the corpus: what must be read and what must be refused.
#[test]
fn fixtures_meet_the_checks_of_the_fuzz_targets() {
    assert!(every_file_in("fixtures/good", all_checks) > 0);
    assert!(every_file_in("fixtures/refused", all_checks) > 0);
}

/// Rows that share their times and have no submission id have no order but that of their texts.
#[test]
fn rows_of_one_moment_in_any_order_are_one_report() {
    let process = Process::new("bench", 77);
    let ids = Ids {
        command_buffer: 1,
        encoder: 2,
        submission: 3,
    };
    let rows: Vec<GpuInterval> = [
        ("b:b", "M4", "Vertex"),
        ("a:a", "M5", "Compute"),
        ("c:c", "M4 Max", "Compute"),
    ]
    .map(|(label, gpu, channel)| GpuInterval {
        gpu: gpu.to_owned(),
        channel: Some(channel.to_owned()),
        submission: None,
        ..GpuInterval::new(1_000, 500, label, &process, ids)
    })
    .into();
    let report = |order: [usize; 3]| {
        let document = ExportBuilder::document(Style::default(), |export| {
            export.table(GPU_INTERVALS).rows(order.map(|at| rows[at].clone()));
        });
        let options = trace_attr::recording::ReadOptions::default();
        let recording = trace_attr::recording::read_recording_from(document.as_bytes(), "x", &options, &()).unwrap();
        let comparison = checks::compared(&recording, &checks::View::default()).unwrap();
        checks::report(&comparison, Format::Json, &ReportOptions::default())
    };
    let first = report([0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(report(order), first);
    }
}
