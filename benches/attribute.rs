//! How long joining, attribution and comparison take for a million submissions, one after the other and all at once.
//!
//! What was read is made up in memory: an encoders list with an encoder for each submission, four encoders to a command
//! buffer, 200 labels, three channels, one process. Reading is `benches/read.rs`.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use trace_attr::attribution::Buckets;
use trace_attr::compare::{CompareOptions, Comparison, Settings, Side, Trial, TrialOptions, compare};
use trace_attr::join::{JoinOptions, RunInput, TimingChoice, choose_timing, join};
use trace_attr::model::{
    CommandBufferId, EncoderId, Label, Nanos, Process, Submission, SubmissionId, Timestamp, Timing, Trace, WindowRule,
};
use trace_attr::parallel::Jobs;
use trace_attr::recording::{Measured, Provenance, Recording, RunTables, TimingTable};
use trace_attr::tables::Texts;
use trace_attr::tables::encoders::EncoderRow;

const SUBMISSIONS: u64 = 1_000_000;
const LABELS: usize = 200;
/// Trials of a side.
const TRIALS: usize = 5;

/// A million submissions that were read; `overlap`: each runs until the end of all.
fn recording(overlap: bool, seed: u64) -> Recording {
    let mut texts = Texts::default();
    let process = texts.intern_process(Process {
        name: "bench".to_owned(),
        pid: Some(1),
    });
    let channels = ["Compute", "Vertex", "Fragment"].map(|name| texts.names.intern(name));
    let no_label = texts.intern_label(Label::NoEncoder);
    let labels: Vec<_> = (0..LABELS)
        .map(|n| {
            let buffer = format!("model.layers.{}.part{}", n % 25, n / 25);
            (
                texts.names.intern(&buffer),
                texts.names.intern(&format!("kernel{}", n % 40)),
            )
        })
        .collect();
    let mut random = seed;
    let mut below = |limit: u64| {
        // splitmix64: no order that a sort could profit from.
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    };
    let (mut intervals, mut encoders) = (TimingTable::default(), Vec::new());
    for n in 0..SUBMISSIONS {
        let start = n * 10_000;
        let random_length = 1_000 + below(99_000) * below(99_000) / 99_000;
        let command_buffer = CommandBufferId::new(0x6_3398_0000 + n / 4 * 5);
        let encoder = EncoderId::new(0x6_3398_0000 + n / 4 * 5 + 1 + n % 4);
        let (buffer_label, label) = labels[usize::try_from(n).expect("a small number") % LABELS];
        encoders.push(EncoderRow {
            id: encoder,
            command_buffer,
            command_buffer_label: Some(buffer_label),
            label: Some(label),
            cpu_encode: Some(Nanos(500 + below(5_000))),
            process: Some(process),
        });
        intervals.push(Measured {
            submission: Submission {
                start: Timestamp(start),
                duration: Nanos(if overlap {
                    SUBMISSIONS * 10_000 - start
                } else {
                    random_length
                }),
                id: SubmissionId::new(n),
                encoder,
                command_buffer,
                latency: Some(Nanos(1_000 + below(50_000))),
                channel: channels[usize::try_from(below(30) / 14).expect("a small number")],
                label: no_label,
            },
            process: Some(process),
            provenance: Provenance {
                gpu: None,
                depth: 0,
                mapped: true,
            },
        });
    }
    let mut run = RunTables::default();
    run.number = 1;
    (intervals.rows, intervals.has_ids) = (SUBMISSIONS, true);
    run.intervals = Some(intervals);
    run.encoders = Some(encoders);
    Recording {
        origin: "bench".to_owned(),
        contents: None,
        runs: vec![run],
        texts,
        notes: Vec::new(),
    }
}

fn trace(mut recording: Recording) -> Trace {
    let run = recording.runs.pop().expect("one run");
    let options = JoinOptions::default();
    let input = RunInput {
        recording: &recording,
        run: &run,
        options: &options,
    };
    let timing = choose_timing(&[input], TimingChoice::Auto).expect("a timing table");
    join(&recording, run, &options, timing).expect("a trace")
}

fn trial(trace: &Trace) -> Trial {
    let options = TrialOptions {
        slowest: 10,
        // `compared` has its own threads.
        jobs: Jobs::ONE,
        ..TrialOptions::default()
    };
    Trial::from_trace(trace, "bench".to_owned(), None, &options)
}

/// What a user waits for once all is read (some 2 GB of rows): each of ten trials is joined and attributed, on two threads as `analysis` does
/// it with two cores, then the sides are compared.
fn compared([a, b]: [Vec<Recording>; 2]) -> Comparison {
    let side = |name: &str, recordings: Vec<Recording>, first: u64| Side {
        name: name.to_owned(),
        trials: (first..)
            .zip(recordings)
            .map(|(number, recording)| Trial {
                // Each side's recordings are copies of one, taken as if they were others.
                fingerprint: number,
                ..trial(&trace(recording))
            })
            .collect(),
    };
    let settings = Settings {
        timing: Timing::Intervals,
        timing_b: Timing::Intervals,
        unit: None,
        unit_b: None,
        buckets: Buckets::default(),
        window_a: WindowRule::default(),
        window_b: WindowRule::default(),
        slowest: 10,
    };
    let (a, b) = std::thread::scope(|scope| {
        let b = scope.spawn(|| side("b", b, 5));
        (side("a", a, 0), b.join().expect("side b"))
    });
    compare(a, Some(b), settings, &CompareOptions::default()).expect("a comparison")
}

fn attribute(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("attribute");
    group.throughput(Throughput::Elements(SUBMISSIONS)).sample_size(10);
    let (a, b) = (recording(false, 1), recording(false, 2));
    group.bench_function("join", |bench| {
        bench.iter_batched(|| a.clone(), trace, BatchSize::PerIteration)
    });
    let one_after_the_other = trace(a.clone());
    group.bench_function("one_after_the_other", |bench| {
        bench.iter(|| trial(black_box(&one_after_the_other)));
    });
    let all_overlapping = trace(recording(true, 1));
    group.bench_function("all_overlapping", |bench| {
        bench.iter(|| trial(black_box(&all_overlapping)));
    });
    group.throughput(Throughput::Elements(10 * SUBMISSIONS));
    group.bench_function("compare_five_with_five_of_a_million", |bench| {
        bench.iter_batched(
            || [&a, &b].map(|recording| vec![recording.clone(); TRIALS]),
            compared,
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, attribute);
criterion_main!(benches);
