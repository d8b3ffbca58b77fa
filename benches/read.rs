//! How fast an export is read, against what the XML tokenizer alone needs for the same bytes.
//!
//! `TRACE_ATTR_BENCH_MB` is the size of the made-up `metal-gpu-intervals` export (64; figures for the record: 256),
//! which is kept in `target/bench-data`. See `docs/performance.md`.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quick_xml::events::Event;
use trace_attr::compare::{Trial, TrialOptions};
use trace_attr::join::{JoinOptions, ProcessChoice, RunInput, TimingChoice, choose_timing, join};
use trace_attr::recording::{ReadOptions, read_recording_from};
use trace_attr::source;
use trace_attr::tables::TYPES;
use trace_attr::xml::{ExportReader, Keep, Part};

const SCHEMA: &str = "metal-gpu-intervals";

fn export() -> Vec<u8> {
    let megabytes = std::env::var("TRACE_ATTR_BENCH_MB").map_or(64, |text| text.parse().expect("a number of MB"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("target/bench-data/{megabytes}"));
    let file: PathBuf = folder.join(format!("{SCHEMA}.xml"));
    if !file.is_file() {
        let workload = support::sized::workload(&[SCHEMA], megabytes << 20);
        support::sized::write(workload, &[SCHEMA], true, &folder).expect("a written export");
    }
    std::fs::read(file).expect("the export that was made")
}

/// Every event of the tokenizer, as the library asks for them.
fn events(bytes: &[u8]) -> u64 {
    let mut reader = quick_xml::Reader::from_reader(BufReader::with_capacity(256 << 10, bytes));
    let mut buffer = Vec::new();
    let mut events = 0;
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).expect("well-formed XML") {
            Event::Eof => return events,
            event => {
                black_box(event);
                events += 1;
            }
        }
    }
}

fn attributed(bytes: &[u8]) -> Trial {
    let options = JoinOptions {
        process: ProcessChoice::Target,
        ..JoinOptions::default()
    };
    let mut recording = read_recording_from(bytes, "bench", &ReadOptions::default(), &()).expect("an export");
    let run = recording.runs.pop().expect("one run");
    let input = RunInput {
        recording: &recording,
        run: &run,
        options: &options,
    };
    let timing = choose_timing(&[input], TimingChoice::Auto).expect("a timing table");
    let trace = join(&recording, run, &options, timing).expect("a trace");
    Trial::from_trace(&trace, "bench".to_owned(), None, &TrialOptions::default())
}

fn rows<R: Read>(mut reader: ExportReader<R>) -> u64 {
    let mut rows = 0;
    while let Some(part) = reader.next_part().expect("an export") {
        assert!(matches!(part, Part::Table { .. }));
        while let Some(row) = reader.read_row().expect("a row") {
            black_box(row);
            rows += 1;
        }
    }
    rows
}

fn input(bytes: &[u8]) -> source::Input<'_> {
    source::decode(black_box(bytes)).expect("XML")
}

fn read(criterion: &mut Criterion) {
    let bytes = export();
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.sample_size(10).measurement_time(Duration::from_secs(20));
    group.bench_function("tokenizer_alone", |bench| bench.iter(|| events(black_box(&bytes))));
    group.bench_function("read_join_attribute", |bench| {
        bench.iter(|| attributed(black_box(&bytes)))
    });
    group.bench_function("rows_of_needed_types", |bench| {
        bench.iter(|| rows(ExportReader::new(input(&bytes), Keep::Types(TYPES))));
    });
    group.bench_function("rows_of_everything", |bench| {
        bench.iter(|| rows(ExportReader::new(input(&bytes), Keep::All)))
    });
    group.bench_function("rows_by_the_tokenizer", |bench| {
        bench.iter(|| rows(ExportReader::without_scanner(input(&bytes), Keep::Types(TYPES))));
    });
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
