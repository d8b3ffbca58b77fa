//! What a scope costs a program: when no profile is active, which is what it costs everybody, and when one is.
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use trace_attr::live::backend::Observation;
use trace_attr::live::{self, Via};
use trace_attr::metrics;

/// Scopes of one profile: few enough that a profile fits into memory many times.
const SCOPES: u64 = 10_000;

fn scopes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scope");
    group.bench_function("no profile", |bencher| {
        bencher.iter(|| live::scope("layer", metrics![bytes = black_box(4096)], || black_box(1)));
    });
    group.bench_function("no profile, guard", |bencher| {
        bencher.iter(|| {
            let _layer = live::enter("layer", metrics![bytes = black_box(4096)]);
            black_box(1)
        });
    });
    group.bench_function("no profile, command buffer", |bencher| {
        bencher.iter(|| Observation::open(black_box("ffn"), Via::Observed, None, None).is_none());
    });
    let profiled = |iterations: u64, work: &dyn Fn()| {
        let mut time = Duration::ZERO;
        let mut left = iterations;
        while left > 0 {
            let count = left.min(SCOPES);
            left -= count;
            let (took, profile) = live::profile(|_| {
                let begun = Instant::now();
                for _ in 0..count {
                    work();
                }
                begun.elapsed()
            });
            assert_eq!(profile.events().len() as u64, count);
            time += took;
        }
        time
    };
    group.bench_function("profile", |bencher| {
        let work = || live::scope("layer", metrics![], || ());
        bencher.iter_custom(|iterations| profiled(iterations, &work));
    });
    group.bench_function("profile, with metrics", |bencher| {
        let work = || live::scope("layer", metrics![bytes = 4096], || ());
        bencher.iter_custom(|iterations| profiled(iterations, &work));
    });
    group.bench_function("profile, command buffer", |bencher| {
        let work = || drop(Observation::open("ffn", Via::Observed, None, None).unwrap());
        bencher.iter_custom(|iterations| profiled(iterations, &work));
    });
    group.finish();
}

criterion_group!(benches, scopes);
criterion_main!(benches);
