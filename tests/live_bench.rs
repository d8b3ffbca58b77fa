//! Benchmarks of kernels: what is run, what is timed, what is said, and when rounds stop.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod made_device;

use std::cell::Cell;
use std::time::Duration;

use made_device::{MadeDevice, Play};
use serde_json::Value;
use trace_attr::inference::Verdict;
use trace_attr::live::bench::{BenchOptions, Distribution, benchmark_kernel, empty_dispatch, profile_kernel};
use trace_attr::live::bench_request::BenchRequest;
use trace_attr::live::event::CommandBufferTimes;
use trace_attr::live::expression::{Expression, Sizes};
use trace_attr::live::rounds::{RoundOptions, Stop, Which, run_rounds};
use trace_attr::live::run_file::RunFile;
use trace_attr::live::{self, Absent, GroupBy, Kernel, Runtime};

const ONE: [u64; 3] = [1, 1, 1];

fn add() -> Kernel {
    Kernel::msl("kernel void vector_add() {}", "vector_add")
}

#[test]
fn warm_up_is_not_timed_and_every_sample_is_kept() {
    let plays: Vec<Play> = [900, 900, 7_000, 6_000, 9_000, 8_000].map(Play::Runs).into();
    let runtime = Runtime::new(MadeDevice::new(plays));
    let prepared = runtime.prepare(&add(), &[&[0; 8]], 8).unwrap();
    let options = BenchOptions {
        repeat: 4,
        warmup: 2,
        flops: Some(15_000.0),
        bytes: Some(30_000.0),
        ..BenchOptions::default()
    };
    // A profile that is active is not told of any of it.
    let (bench, profile) = live::profile(|_| benchmark_kernel(&prepared, ONE, ONE, &options).unwrap());
    assert!(profile.events().is_empty());
    assert_eq!(
        bench.distribution.samples,
        [7_000, 6_000, 9_000, 8_000],
        "in the order of measurement"
    );
    assert_eq!(
        bench.summary(),
        "vector_add: 4 calls min 6.00us p50 7.50us mean 7.50us p90 9.00us max 9.00us 2.00 GFLOP/s (p50) 4.00 GB/s (p50)"
    );
}

#[test]
fn several_launches_of_a_command_buffer_are_told_by_launch() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(40_000)]));
    let prepared = runtime.prepare(&add(), &[&[0; 8]], 8).unwrap();
    let options = BenchOptions {
        repeat: 3,
        warmup: 0,
        inner: 4,
        ..BenchOptions::default()
    };
    let bench = benchmark_kernel(&prepared, ONE, ONE, &options).unwrap();
    assert_eq!(
        bench.summary(),
        "vector_add: 12 calls min 10.0us p50 10.0us mean 10.0us p90 10.0us max 10.0us"
    );
    assert!(
        runtime
            .backend()
            .log
            .lock()
            .unwrap()
            .iter()
            .all(|(_, launches, _)| *launches == 4)
    );
}

#[test]
fn a_cold_benchmark_rotates_its_buffers_within_what_the_device_recommends() {
    let mut device = MadeDevice::new([Play::Runs(1_000)]);
    device.working_set = Some(100);
    let runtime = Runtime::new(device);
    let prepared = runtime.prepare(&add(), &[&[0; 16]], 16).unwrap();
    let options = BenchOptions {
        repeat: 4,
        warmup: 0,
        cold: Some(1 << 20),
        ..BenchOptions::default()
    };
    let bench = benchmark_kernel(&prepared, ONE, ONE, &options).unwrap();
    let cold = bench.cold.unwrap();
    assert_eq!((cold.asked, cold.copies, cold.bytes), (1 << 20, 3, 96));
    let buffers = runtime.backend().buffers_of.lock().unwrap().clone();
    assert_eq!(buffers, [vec![0, 1], vec![2, 3], vec![4, 5], vec![0, 1]]);

    let mut small = MadeDevice::new([Play::Runs(1_000)]);
    small.working_set = Some(40);
    let runtime = Runtime::new(small);
    let prepared = runtime.prepare(&add(), &[&[0; 16]], 16).unwrap();
    assert!(
        benchmark_kernel(&prepared, ONE, ONE, &options)
            .unwrap_err()
            .to_string()
            .contains("cannot be rotated")
    );
}

#[test]
fn no_sample_is_an_error() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(1_000)]));
    let prepared = runtime.prepare(&add(), &[&[0; 8]], 8).unwrap();
    for (repeat, inner) in [(0, 1), (1, 0)] {
        let options = BenchOptions {
            repeat,
            inner,
            ..BenchOptions::default()
        };
        assert!(benchmark_kernel(&prepared, ONE, ONE, &options).is_err());
    }
    let failing = Runtime::new(MadeDevice::new([Play::Fails("page fault")]));
    let prepared = failing.prepare(&add(), &[&[0; 8]], 8).unwrap();
    let error = benchmark_kernel(&prepared, ONE, ONE, &BenchOptions::default());
    assert_eq!(error.unwrap_err().to_string(), "page fault");
}

#[test]
fn an_empty_dispatch_says_what_a_command_buffer_costs() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(1_500)]));
    let empty = empty_dispatch(&runtime, 5).unwrap();
    assert_eq!(empty.samples, [1_500; 5]);
}

#[test]
fn a_kernel_is_profiled_call_by_call() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(1_500)]));
    let prepared = runtime.prepare(&add(), &[&[0; 8]], 8).unwrap();
    let profile = profile_kernel(&prepared, ONE, ONE, 3).unwrap();
    assert_eq!(
        (profile.counts().command_buffers, profile.counts().without_gpu_time),
        (3, 0)
    );
}

/// A kernel that takes `ns`, half a percent more or less, by a noise that is the same every time.
fn sample(ns: u64, seed: &Cell<u64>) -> Distribution {
    let samples = (0..5).map(|_| {
        let next = seed.get().wrapping_mul(6_364_136_223_846_793_005);
        seed.set(next.wrapping_add(1_442_695_040_888_963_407));
        ns - ns / 200 + ns * (seed.get() >> 44) / (100 << 20)
    });
    Distribution {
        samples: samples.collect(),
        ..Distribution::default()
    }
}

#[test]
fn a_round_has_both_kernels_and_their_order_is_swapped_every_time() {
    let order = std::cell::RefCell::new(Vec::new());
    let seed = Cell::new(1);
    let measure = |which| {
        order.borrow_mut().push(which);
        Ok(sample(if which == Which::A { 110_000 } else { 100_000 }, &seed))
    };
    let rounds = run_rounds(&RoundOptions::default(), measure, || Duration::ZERO).unwrap();
    let order = order.into_inner();
    assert_eq!(order[..6], [Which::A, Which::B, Which::B, Which::A, Which::A, Which::B]);
    assert_eq!((rounds.a.len(), rounds.b.len(), rounds.stop), (10, 10, Stop::AllRounds));
    assert_eq!(rounds.verdict, Verdict::Regressed);
    let change = trace_attr::inference::percent(rounds.interval.unwrap().change);
    assert!((change - 10.0).abs() < 1.0, "{change}");
}

#[test]
fn rounds_go_on_until_the_interval_is_narrow_and_not_longer_than_their_time() {
    let seed = Cell::new(7);
    let options = RoundOptions {
        until_pct: Some(0.06),
        ..RoundOptions::default()
    };
    let rounds = run_rounds(&options, |_| Ok(sample(100_000, &seed)), || Duration::ZERO).unwrap();
    assert_eq!((rounds.stop, rounds.verdict), (Stop::NarrowEnough, Verdict::Unchanged));
    assert!(rounds.a.len() > 10, "{} rounds", rounds.a.len());
    assert!(rounds.interval.unwrap().half <= trace_attr::inference::log_of(0.06));

    let clock = Cell::new(0);
    let elapsed = || {
        clock.set(clock.get() + 1);
        Duration::from_secs(clock.get() * 5)
    };
    let options = RoundOptions {
        until_pct: Some(0.000_1),
        ..RoundOptions::default()
    };
    let rounds = run_rounds(&options, |_| Ok(sample(100_000, &seed)), elapsed).unwrap();
    assert_eq!((rounds.stop, rounds.a.len()), (Stop::TimeOver, 11));
}

#[test]
fn too_few_rounds_and_no_width_are_refused() {
    let none = |_| panic!("nothing is run");
    let few = RoundOptions {
        rounds: 9,
        ..RoundOptions::default()
    };
    assert!(run_rounds(&few, none, Duration::default).is_err());
    for pct in [0.0, -1.0, f64::NAN] {
        let options = RoundOptions {
            until_pct: Some(pct),
            ..RoundOptions::default()
        };
        assert!(run_rounds(&options, none, Duration::default).is_err(), "{pct}");
    }
}

#[test]
fn a_file_with_work_is_run_dispatch_by_dispatch() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("add.metal"), "kernel void vector_add() {}").unwrap();
    let text = r#"
        [kernels.add]
        msl = "add.metal"
        function = "vector_add"
        [buffers.a]
        type = "f32"
        length = 8
        fill = "random"
        [[dispatch]]
        scope = ["step", "attention"]
        kernel = "add"
        buffers = ["a", "a"]
        grid = 8
        threads = 8
        repeat = 2
        metrics = { bytes = 64 }
        [[dispatch]]
        kernel = "add"
        grid = [4, 2]
        threads = 4
    "#;
    let file = RunFile::parse(text, "run.toml", folder.path()).unwrap();
    assert_eq!(file.counts(), (1, 1, 3));
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(16)]));
    let profile = file.execute(&runtime).unwrap();
    let rows = profile.key_averages(GroupBy::CallPath).rows;
    let row = |label: &str| rows.iter().find(|row| row.label() == label).unwrap();
    let inside = row("step/attention/gpu_dispatch:vector_add");
    assert_eq!((inside.calls, inside.gpu_total.unwrap().0), (2, 32));
    let step = row("step");
    assert_eq!(
        step.gigabytes_per_second(),
        Some(128.0 / step.gpu_busy.unwrap().0 as f64)
    );
    assert_eq!(row("gpu_dispatch:vector_add").calls, 1);
    let buffers = runtime.backend().buffers_of.lock().unwrap().clone();
    assert_eq!(
        buffers,
        [vec![0, 0], vec![0, 0], vec![]],
        "one buffer may be several arguments"
    );
}

#[test]
fn what_a_bench_prints_as_json_keeps_to_its_schema() {
    let schema: Value = serde_json::from_str(include_str!("../docs/bench.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let request = |against: bool, cold: bool| {
        let kernel = |name: &str| Kernel::msl(format!("kernel void {name}() {{}}"), name);
        BenchRequest {
            kernel: kernel("add"),
            against: against.then(|| kernel("add_slow")),
            sizes: Sizes::from([("n".to_owned(), 8.0)]),
            buffers: vec!["f32:n".parse().unwrap()],
            grid: vec![Expression::parse("n").unwrap()],
            threads: vec![Expression::parse("n").unwrap()],
            flops: cold.then(|| Expression::parse("2*n").unwrap()),
            bytes: None,
            options: BenchOptions {
                repeat: 3,
                cold: cold.then_some(64),
                ..BenchOptions::default()
            },
            rounds: RoundOptions::default(),
        }
    };
    // With one kernel and two, and on a device that does not always give a time.
    let never = CommandBufferTimes {
        gpu_start: 0.0,
        gpu_end: 0.0,
        kernel_start: 0.0,
        kernel_end: 0.0,
    };
    let sometimes: Vec<Play> = (0..200)
        .map(|number| match number % 3 {
            0 => Play::Gives(never),
            _ => Play::Runs(5_000),
        })
        .collect();
    for (against, cold, plays) in [
        (false, false, vec![Play::Runs(5_000)]),
        (true, true, vec![Play::Runs(5_000)]),
        (false, true, sometimes),
    ] {
        let runtime = Runtime::new(MadeDevice::new(plays.clone()));
        let report = request(against, cold).run(&runtime).unwrap();
        let value: Value = serde_json::from_str(&report.to_json()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let told = |name: &str| !value[name].is_null();
        assert_eq!((told("against"), told("comparison")), (against, against));
        assert_eq!(value["kernel"]["cold"].is_null(), !cold);
        let absent = value["kernel"]["command_buffers"]["absent"].as_object().unwrap();
        assert_eq!(absent.is_empty(), plays.len() == 1, "{absent:?}");
    }
    // What the schema lists is what the code can say.
    let listed = |pointer: &str| {
        let list = schema.pointer(pointer).unwrap().as_array().unwrap();
        list.iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("/$defs/reason/enum"), Absent::ALL.map(Absent::code));
    let stops = [Stop::AllRounds, Stop::NarrowEnough, Stop::TimeOver];
    assert_eq!(listed("/$defs/rounds/properties/stop/enum"), stops.map(Stop::name));
}
