//! Faults of other profilers, each by its name: what the original of the live feature does wrong, and what others were
//! seen to do with times of a GPU. None of them may come back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod made_device;

use made_device::{MadeDevice, Play, in_handler, offset, ran, seconds};
use serde_json::Value;
use trace_attr::convert::{self, Conversion};
use trace_attr::live::backend::Observation;
use trace_attr::live::bench::{BenchOptions, benchmark_kernel};
use trace_attr::live::clock::{Calibration, Pair};
use trace_attr::live::event::{CommandBufferTimes, encoder_time};
use trace_attr::live::rounds::{RoundOptions, run_rounds};
use trace_attr::live::{self, Absent, Average, GroupBy, HostTime, Kernel, Profile, Runtime, Via};
use trace_attr::metrics;
use trace_attr::model::Nanos;

fn ran_at(label: &str, start: u64, end: u64) {
    let observation = Observation::open(label, Via::Observed, None, None).unwrap();
    in_handler(move || observation.completed(&ran(start, end), offset()));
}

/// A step with two launches that overlap, and one scope that says how much work it is.
fn a_step() -> Profile {
    let body = |_: &_| {
        let now = HostTime::now().0;
        live::scope("step", metrics![], || {
            live::scope("gemm", metrics![flops = 8_000.0, bytes = 4_000.0], || {
                ran_at("a", now + 1_000, now + 3_000);
                ran_at("b", now + 2_000, now + 5_000);
            });
            ran_at("copy", now + 6_000, now + 7_000);
        });
    };
    live::profile(body).1
}

fn row(profile: &Profile, label: &str) -> Average {
    let rows = profile.key_averages(GroupBy::CallPath).rows;
    rows.into_iter().find(|row| row.label() == label).unwrap()
}

fn converted(profile: &Profile, conversion: Conversion) -> Value {
    let mut out = Vec::new();
    convert::write(profile, conversion, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// Every node of a Hatchet literal.
fn nodes(literal: &Value) -> Vec<Value> {
    let children = literal["children"].as_array().unwrap();
    std::iter::once(literal.clone())
        .chain(children.iter().flat_map(nodes))
        .collect()
}

#[test]
fn fault_1_throughput_of_a_scope_is_by_gpu_time_and_gpu_time_rolls_up() {
    let profile = a_step();
    let (step, gemm) = (row(&profile, "step"), row(&profile, "step/gemm"));
    assert_eq!((gemm.gpu_total.unwrap().0, gemm.gpu_busy.unwrap().0), (5_000, 4_000));
    assert_eq!((step.gpu_total.unwrap().0, step.gpu_busy.unwrap().0), (6_000, 5_000));
    // 8000 flops in 4000 ns of busy GPU: 2 per ns. The host took some other time for it.
    assert_eq!((gemm.gflops(), gemm.gigabytes_per_second()), (Some(2.0), Some(1.0)));
    assert_eq!(
        step.gflops(),
        Some(1.6),
        "a scope without its own work has that of its children"
    );
    let tree = profile.tree();
    assert!(tree.contains("6.00") && tree.contains("1.60"), "{tree}");
    // Nothing ran: no throughput, instead of work by a host time.
    let ((), idle) = live::profile(|_| live::scope("idle", metrics![flops = 1.0], || ()));
    assert_eq!(
        (row(&idle, "idle").gpu_total, row(&idle, "idle").gflops()),
        (None, None)
    );
}

#[test]
fn a_scope_s_own_work_serves_it_or_that_of_its_children_never_both() {
    let body = |_: &_| {
        live::scope("outer", metrics![bytes = 100.0], || {
            live::scope("inner", metrics![bytes = 70.0, flops = 10.0], || ran_at("x", 10, 20));
        });
    };
    let ((), profile) = live::profile(body);
    let outer = row(&profile, "outer");
    assert_eq!(
        (outer.metrics.get("bytes"), outer.metrics.get("flops")),
        (Some(100.0), Some(10.0))
    );
    assert_eq!(row(&profile, "outer/inner").metrics.get("bytes"), Some(70.0));
    // In a file of self values, what the outer scope speaks for is not told again below it.
    let hatchet = converted(&profile, Conversion::Hatchet);
    let sum: f64 = nodes(&hatchet[0])
        .iter()
        .map(|node| node["metrics"]["bytes"].as_f64().unwrap())
        .sum();
    assert!((sum - 100.0).abs() < 1e-9);
}

#[test]
fn throughput_is_absent_when_a_command_buffer_lacks_its_time() {
    let body = |_: &_| {
        live::scope("gemm", metrics![flops = 8.0], || {
            ran_at("a", 1_000, 3_000);
            let failed = Observation::open("b", Via::Observed, None, None).unwrap();
            in_handler(move || failed.failed("no"));
        });
    };
    let ((), profile) = live::profile(body);
    let gemm = row(&profile, "gemm");
    assert_eq!((gemm.timed, gemm.untimed, gemm.gflops()), (1, 1, None));
}

#[test]
fn fault_2_hatchet_values_are_self_values() {
    let profile = a_step();
    let hatchet = converted(&profile, Conversion::Hatchet);
    let nodes = nodes(&hatchet[0]);
    let sum: u64 = nodes
        .iter()
        .map(|node| node["metrics"]["gpu_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, 6_000, "each ns once");
    let scope = nodes.iter().find(|node| node["frame"]["name"] == "step").unwrap();
    assert_eq!(scope["metrics"]["gpu_ns"], 0, "a scope itself runs nothing on the GPU");
    let cpu: u64 = nodes
        .iter()
        .map(|node| node["metrics"]["cpu_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(
        cpu,
        profile.events()[0].cpu().0,
        "host time of all is that of the outermost scope"
    );
}

#[test]
fn fault_3_the_root_names_every_metric_with_0() {
    let hatchet = converted(&a_step(), Conversion::Hatchet);
    assert_eq!(hatchet.as_array().unwrap().len(), 1, "one root");
    let nodes = nodes(&hatchet[0]);
    let root = nodes[0]["metrics"].as_object().unwrap();
    for name in ["gpu_ns", "cpu_ns", "flops", "bytes"] {
        assert_eq!(root[name].as_f64(), Some(0.0), "{name}");
    }
    for node in &nodes {
        let metrics = node["metrics"].as_object().unwrap();
        assert!(metrics.keys().eq(root.keys()), "{node}");
        assert!(metrics.values().all(Value::is_number), "no texts: {node}");
    }
}

#[test]
fn fault_4_pid_and_tid_of_a_chrome_trace_are_small_integers() {
    let chrome = converted(&a_step(), Conversion::Chrome);
    let events = chrome["traceEvents"].as_array().unwrap();
    for event in events {
        for name in ["pid", "tid"] {
            assert!(event[name].as_u64().is_some_and(|id| id < 1 << 31), "{event}");
        }
    }
}

#[test]
fn fault_5_a_chrome_trace_has_a_host_and_a_gpu_track() {
    let profile = a_step();
    let mut text = Vec::new();
    convert::write(&profile, Conversion::Chrome, &mut text).unwrap();
    let chrome = converted(&profile, Conversion::Chrome);
    let events = chrome["traceEvents"].as_array().unwrap();
    let processes: Vec<_> = events.iter().filter(|event| event["name"] == "process_name").collect();
    let names: Vec<_> = processes
        .iter()
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["host", "GPU"]);
    let gpu = &processes[1]["pid"];
    let on_gpu: Vec<_> = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["pid"] == *gpu)
        .collect();
    assert_eq!(on_gpu.len(), 3);
    // Two overlap, so they stand in lanes of their own: a slice never crosses another of its track.
    let lane = |name: &str| on_gpu.iter().find(|event| event["name"] == name).unwrap()["tid"].clone();
    assert_eq!((lane("a") == lane("b"), lane("a") == lane("copy")), (false, true));
    // µs with three decimals: what a float would have made of them is not asked.
    let origin = profile.started().0;
    let start = profile.events()[2].gpu_span().unwrap().start.0 - origin;
    let written = format!("\"ts\": {}.{:03}", start / 1_000, start % 1_000);
    assert!(String::from_utf8(text).unwrap().contains(&written), "{written}");
    let flows = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((flows("s"), flows("f")), (3, 3));
    assert!(
        events
            .iter()
            .filter(|event| event["ph"] == "f")
            .all(|event| event["bp"] == "e")
    );
}

#[test]
fn fault_6_host_time_is_told_as_self_and_as_total() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(7_000)]));
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let (_, profile) = live::profile(|_| runtime.execute(&kernel, &[&[0; 4]], 4, [1, 1, 1], [1, 1, 1]).unwrap());
    let rows = profile.key_averages(GroupBy::Name).rows;
    let total = profile.events()[0].cpu();
    let own: u64 = rows.iter().map(|row| row.cpu_self.0).sum();
    assert_eq!(Nanos(own), total, "self times of all rows are the time of the call");
    let call = rows.iter().find(|row| row.label() == "execute_total").unwrap();
    assert!(call.cpu_self < call.cpu_total && call.cpu_total == total);
}

#[test]
fn a_name_inside_itself_counts_once() {
    let body = |_: &_| {
        live::scope("layer", metrics![bytes = 10.0], || {
            live::scope("layer", metrics![bytes = 10.0], || ran_at("x", 100, 300));
        });
    };
    let ((), profile) = live::profile(body);
    let rows = profile.key_averages(GroupBy::Name).rows;
    let layer = &rows[0];
    assert_eq!((layer.calls, layer.cpu_total), (2, profile.events()[0].cpu()));
    assert_eq!(
        (layer.gpu_total.unwrap().0, layer.metrics.get("bytes")),
        (200, Some(10.0))
    );
}

#[test]
fn fault_7_a_slash_in_a_name_is_no_level() {
    let body = |_: &_| {
        live::scope("a/b", metrics![], || ran_at("x", 1, 2));
        live::scope("a", metrics![], || live::scope("b", metrics![], || ran_at("x", 3, 5)));
        live::scope("a\\", metrics![], || live::scope("b", metrics![], || ran_at("x", 6, 7)));
    };
    let ((), profile) = live::profile(body);
    let mut labels: Vec<_> = profile
        .key_averages(GroupBy::CallPath)
        .rows
        .iter()
        .map(Average::label)
        .collect();
    let count = labels.len();
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), count, "no two paths have one text: {labels:?}");
    assert_eq!(row(&profile, "a\\/b/x").gpu_total.unwrap().0, 1);
    let path = &profile.events()[1].path;
    assert_eq!(path.frames().len(), 1, "in files a path is an array");
}

#[test]
fn fault_8_a_profile_does_not_wait_after_a_dispatch() {
    let runtime = Runtime::new(MadeDevice::new([Play::Runs(7_000)]));
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let prepared = runtime.prepare(&kernel, &[&[0; 4]], 4).unwrap();
    let ((), profile) = live::profile(|_| {
        let in_flight: Vec<_> = (0..3).map(|_| prepared.submit([1, 1, 1], [1, 1, 1]).unwrap()).collect();
        assert_eq!(
            runtime.backend().log.lock().unwrap().len(),
            3,
            "all are committed before one is waited for"
        );
        for launch in in_flight {
            launch.wait().unwrap();
        }
    });
    assert_eq!(profile.counts().command_buffers, 3);
    assert_eq!(profile.counts().without_gpu_time, 0);
}

#[test]
fn b09_an_end_before_the_start_is_invalid_and_never_a_huge_time() {
    let pairs = [(5_000, 7_000), (30_000_000, 10_000_000), (8_000, 8_500)];
    let ((), profile) = live::profile(|_| {
        for (start, end) in pairs {
            ran_at("pass", start, end);
        }
    });
    let lengths: Vec<_> = profile
        .events()
        .iter()
        .map(|event| event.gpu.as_ref().unwrap().span.map(|span| span.length().0))
        .collect();
    assert_eq!(lengths, [Ok(2_000), Err(Absent::EndBeforeStart), Ok(500)]);
    let pass = row(&profile, "pass");
    assert_eq!((pass.gpu_total.unwrap().0, pass.timed, pass.untimed), (2_500, 2, 1));
    assert_eq!(profile.counts().without_gpu_time, 1);
}

#[test]
fn b19_counter_samples_that_are_no_samples_are_rejected_with_their_reason() {
    let pair = |host, ticks| Pair {
        host: HostTime(host),
        ticks,
    };
    let calibration = Calibration::new(pair(0, 0), pair(1_000_000_000, 1_000_000_000)).unwrap();
    let time = |start, end| encoder_time([start, end], &calibration, Ok(Nanos(1_000)));
    assert_eq!(time(10, 20), Ok(Nanos(10)));
    assert_eq!(time(30, 40), Ok(Nanos(10)));
    assert_eq!(time(20, 0), Err(Absent::SamplePartial));
    assert_eq!(time(0, 20), Err(Absent::SamplePartial));
    assert_eq!(time(10, u64::MAX), Err(Absent::SampleErrorValue));
    assert_eq!(time(30, 20), Err(Absent::SampleNotOrdered));
    // Zeros for ever: nobody waits for them to change.
    assert_eq!(time(0, 0), Err(Absent::SampleEmpty));
    assert_eq!(time(10, 10), Err(Absent::BelowResolution));
    // More than 1 % and 1 µs above its command buffer.
    assert_eq!(time(10, 10 + 2_010), Ok(Nanos(2_010)));
    assert_eq!(time(10, 10 + 2_011), Err(Absent::LongerThanCommandBuffer));
    assert_eq!(
        encoder_time([10, 20], &calibration, Err(Absent::Failed)),
        Err(Absent::Failed)
    );
}

#[test]
fn b35_no_host_time_is_given_as_gpu_time_and_a_timer_without_resolution_is_told() {
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let measured = |times: CommandBufferTimes| {
        let runtime = Runtime::new(MadeDevice::new([Play::Gives(times)]));
        let prepared = runtime.prepare(&kernel, &[&[0; 4]], 4).unwrap();
        let error = benchmark_kernel(&prepared, [1, 1, 1], [1, 1, 1], &BenchOptions::default());
        error.map(|_| ()).unwrap_err().to_string()
    };
    let off = CommandBufferTimes {
        gpu_start: 0.0,
        gpu_end: 0.0,
        kernel_start: 0.0,
        kernel_end: 0.0,
    };
    assert!(measured(off).contains("gives no GPU times"));
    assert!(measured(ran(123_456, 123_456)).contains("no resolution"));
    // Held against each other they are not `unchanged`: there is nothing to hold.
    let none = run_rounds(&RoundOptions::default(), |_| Ok(Default::default()), Default::default);
    assert!(none.unwrap_err().to_string().contains("not measured"));
}

#[test]
fn b44_a_start_of_0_is_no_start() {
    let times = |gpu_start, gpu_end| CommandBufferTimes {
        gpu_start,
        gpu_end,
        kernel_start: 0.0,
        kernel_end: 0.0,
    };
    let all = [
        times(0.0, 86_400.5),
        times(0.0, 0.0),
        times(100.0, 100.002),
        times(100.5, 100.5),
    ];
    let lengths: Vec<_> = all.iter().map(|times| times.gpu().map(|ns| ns.0)).collect();
    let none = Err(Absent::NotAvailable);
    assert_eq!(lengths, [none, none, Ok(2_000_000), Err(Absent::BelowResolution)]);
    // The same in a benchmark: the median is that of what was measured, the rest is counted by reason.
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let runtime = Runtime::new(MadeDevice::new(all.map(Play::Gives)));
    let prepared = runtime.prepare(&kernel, &[&[0; 4]], 4).unwrap();
    let options = BenchOptions {
        repeat: 4,
        warmup: 0,
        bytes: Some(8.0),
        ..BenchOptions::default()
    };
    let bench = benchmark_kernel(&prepared, [1, 1, 1], [1, 1, 1], &options).unwrap();
    assert!((bench.launch().unwrap().p50 - 2_000_000.0).abs() < 1.0);
    assert_eq!(bench.distribution.samples.len(), 1);
    let summary = bench.summary();
    assert!(
        summary.contains("2 not_available") && summary.contains("1 below_resolution"),
        "{summary}"
    );
    assert!(seconds(0) > 0.0, "the made clock never shows 0");
}
