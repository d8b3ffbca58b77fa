//! How long attribution and comparison take for a million submissions, one after the other and all at once.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, missing_docs)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use trace_attr::attribution::Buckets;
use trace_attr::compare::{CompareOptions, Settings, Side, Trial, TrialOptions, compare};
use trace_attr::model::{
    CommandBufferId, EncoderId, Label, LabelId, LeftOut, Names, Nanos, Process, RecordingState, Submission,
    SubmissionId, Timestamp, Timing, Trace, Window, WindowRule,
};

const SUBMISSIONS: u64 = 1_000_000;
const LABELS: u64 = 200;

/// A million submissions of 200 labels; `overlap`: each runs until the end of all.
fn trace(overlap: bool, seed: u64) -> Trace {
    let mut names = Names::default();
    let channel = names.intern("Compute");
    let labels: Vec<Label> = (0..LABELS)
        .map(|n| Label::Known {
            command_buffer: names.intern(&format!("model.layers.{}.part{}", n % 25, n / 25)),
            encoder: names.intern(&format!("kernel{}", n % 40)),
            coalesced: false,
        })
        .collect();
    let submissions: Vec<Submission> = (0..SUBMISSIONS)
        .map(|n| {
            let start = n * 10_000;
            let length = if overlap {
                SUBMISSIONS * 10_000 - start
            } else {
                1_000 + n.wrapping_mul(seed * 2 + 0x9e37_79b9) % 9_000
            };
            Submission {
                start: Timestamp(start),
                duration: Nanos(length),
                id: SubmissionId::new(n),
                encoder: EncoderId::new(n),
                command_buffer: CommandBufferId::new(n / 4),
                latency: Some(Nanos(n % 50_000)),
                channel,
                label: LabelId(u32::try_from(n % LABELS).expect("a small number")),
            }
        })
        .collect();
    let last = submissions.iter().map(Submission::end).max().expect("submissions");
    Trace {
        run: 1,
        process: Process {
            name: "bench".to_owned(),
            pid: Some(1),
        },
        timing: Timing::Intervals,
        gpu: None,
        names,
        labels,
        window: Window {
            from: Timestamp(0),
            to: last,
        },
        submissions_in_process: SUBMISSIONS,
        rows_read: SUBMISSIONS,
        submissions,
        encoders: None,
        left_out: LeftOut::default(),
        cross_check: None,
        kernels: None,
        shader_timeline_rows: None,
        shader_samples: Vec::new(),
        shader_sampled_span: None,
        state: RecordingState::default(),
        notes: Vec::new(),
        fingerprint: seed,
    }
}

fn trial(trace: &Trace) -> Trial {
    Trial::from_trace(trace, "bench".to_owned(), None, &TrialOptions::default())
}

fn attribute(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("attribute");
    group.throughput(Throughput::Elements(SUBMISSIONS)).sample_size(10);
    for (name, overlap) in [("one_after_the_other", false), ("all_overlapping", true)] {
        let trace = trace(overlap, 1);
        group.bench_function(name, |bench| bench.iter(|| trial(black_box(&trace))));
    }
    let side = |name: &str, seeds: [u64; 3]| Side {
        name: name.to_owned(),
        trials: seeds.map(|seed| trial(&trace(false, seed))).to_vec(),
    };
    let (a, b) = (side("a", [1, 2, 3]), side("b", [4, 5, 6]));
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
    group.bench_function("compare_three_with_three", |bench| {
        bench.iter_batched(
            || (a.clone(), b.clone(), settings.clone()),
            |(a, b, settings)| compare(a, Some(b), settings, &CompareOptions::default()).expect("a comparison"),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, attribute);
criterion_main!(benches);
