//! What `live bench` and `live doctor` do, on the stand-in: the functions that the commands call.

mod support;

use metal_double::session;
use support::{ADD, add, floats};
use trace_attr::live::bench_request::BenchRequest;
use trace_attr::live::buffer_spec::BufferSpec;
use trace_attr::live::doctor;
use trace_attr::live::expression::{Expression, Sizes};
use trace_attr::live::metal::Metal;
use trace_attr::live::rounds::RoundOptions;
use trace_attr::live::run_file::RunFile;
use trace_attr::live::{GroupBy, Kernel, Runtime, bench::BenchOptions};

/// As a command line says it.
fn request(kernel: Kernel, against: Option<Kernel>) -> BenchRequest {
    let expression = |text| Expression::parse(text).unwrap();
    BenchRequest {
        kernel,
        against,
        sizes: Sizes::from([("n".to_owned(), 1024.0)]),
        buffers: ["f32:n:random", "f32:n:random", "f32:n"]
            .map(|text| text.parse::<BufferSpec>().unwrap())
            .into(),
        grid: vec![expression("n")],
        threads: vec![expression("256")],
        flops: Some(expression("n")),
        bytes: Some(expression("12 * n")),
        options: BenchOptions {
            repeat: 5,
            warmup: 1,
            ..BenchOptions::default()
        },
        rounds: RoundOptions::default(),
    }
}

#[test]
fn a_kernel_is_measured_beside_the_empty_one() {
    let session = session();
    session
        .kernel("add", 20_000, add)
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let report = request(Kernel::msl(ADD, "add"), None).run(&runtime).unwrap();
        // 20 us and the stand-in's own 2 × 0.5 us; 1,024 × 12 bytes in 21 us are 0.585 GB/s.
        let wanted = "\
add: 5 calls min 21.0us p50 21.0us mean 21.0us p90 21.0us max 21.0us 0.05 GFLOP/s (p50) 0.59 GB/s (p50)
device: Metal double (CPU, for tests)
an empty command buffer takes 2.00us here (p50); it is in the times above
";
        assert_eq!(report.to_text(), wanted);
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(json["schema"], "trace-attr.bench");
        assert_eq!(
            json["kernel"]["command_buffers"]["samples_ns"]
                .as_array()
                .unwrap()
                .len(),
            5
        );
        assert_eq!(json["comparison"], serde_json::Value::Null);
    }
    session.end();
}

#[test]
fn inner_launches_are_told_and_times_are_of_one() {
    let session = session();
    session
        .kernel("add", 20_000, add)
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let mut request = request(Kernel::msl(ADD, "add"), None);
        request.options.inner = 10;
        let text = request.run(&runtime).unwrap().to_text();
        assert!(text.starts_with("add: 50 calls min 20.1us p50 20.1us"), "{text}");
        assert!(
            text.contains("10 launches in each command buffer; times are of one"),
            "{text}"
        );
    }
    session.end();
}

#[test]
fn cold_buffers_are_capped_by_what_the_device_recommends() {
    let session = session();
    session
        .kernel("add", 20_000, add)
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let mut request = request(Kernel::msl(ADD, "add"), None);
        request.sizes.insert("n".to_owned(), 1_048_576.0);
        request.options.cold = Some(trace_attr::live::bench::COLD_BYTES);
        let text = request.run(&runtime).unwrap().to_text();
        // Three buffers of 4 MiB are 12 MiB; the stand-in recommends 64 MiB.
        let cold = "cold: 5 copies of the buffers in turn, 60 MiB in all, the most that the device recommends\n";
        assert!(text.contains(cold), "{text}");
    }
    session.end();
}

#[test]
fn two_kernels_are_held_against_each_other_in_rounds() {
    let session = session();
    let code = ADD.replace("kernel void add(", "kernel void add_slow() { }\nkernel void add(");
    session
        .kernel("add", 20_000, add)
        .kernel("add_slow", 22_000, add)
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let request = request(Kernel::msl(&code, "add_slow"), Some(Kernel::msl(&code, "add")));
        let report = request.run(&runtime).unwrap();
        // (22 + 1) by (20 + 1) us.
        let headline = report.headline().unwrap();
        assert!(
            headline.starts_with("add_slow is slower than add by 9.52 % (90 % interval +9.5"),
            "{headline}"
        );
        assert!(headline.ends_with(" %, 10 rounds)"), "{headline}");
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(json["comparison"]["verdict"], "regressed");
        assert_eq!(json["comparison"]["notes"], serde_json::json!(["one_process"]));
        assert_eq!(
            json["against"]["command_buffers"]["samples_ns"]
                .as_array()
                .unwrap()
                .len(),
            50
        );
    }
    session.end();
}

#[test]
fn one_kernel_against_itself_is_unchanged() {
    let session = session();
    session
        .kernel("add", 20_000, add)
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let kernel = Kernel::msl(ADD, "add");
        let mut request = request(kernel.clone(), Some(kernel));
        request.rounds.until_pct = Some(0.5);
        let headline = request.run(&runtime).unwrap().headline().unwrap();
        assert!(
            headline.starts_with("add (1st) and add (2nd) differ by no more than 1 %"),
            "{headline}"
        );
    }
    session.end();
}

#[test]
fn sizes_that_do_not_fit_are_named() {
    let session = session();
    session
        .kernel("add", 20_000, add)
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let mut request = request(Kernel::msl(ADD, "add"), None);
        request.grid = vec![Expression::parse("n / 3").unwrap()];
        let error = request.run(&runtime).unwrap_err().to_string();
        assert!(error.starts_with("`n / 3` is 341.33"), "{error}");
        request.grid = ["1"; 4].map(|text| Expression::parse(text).unwrap()).into();
        let error = request.run(&runtime).unwrap_err().to_string();
        assert_eq!(error, "the grid has 4 directions; there are one to three");
    }
    session.end();
}

#[test]
fn buffers_hold_what_they_say() {
    let session = session();
    session
        .kernel("trace_attr_empty", 1_000, |_| ())
        .kernel("add", 20_000, |arguments| {
            let second = arguments.bytes(1).iter().map(std::cell::Cell::get).collect::<Vec<u8>>();
            assert_eq!(floats(&second)[..3], [0.0, 1.0, 2.0]);
            assert!(arguments.floats(0).iter().all(|float| float.get() == 2.5));
        });
    {
        let runtime = Runtime::new(Metal::open().unwrap());
        let mut request = request(Kernel::msl(ADD, "add"), None);
        request.buffers = ["f32:n:2.5", "f32:n:count"]
            .map(|text| text.parse::<BufferSpec>().unwrap())
            .into();
        request.run(&runtime).unwrap();
    }
    session.end();
}

#[test]
fn doctor_says_what_there_is_and_that_the_times_make_sense() {
    let session = session();
    session
        .kernel("trace_attr_load", 500_000, |_| ())
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let metal = Metal::open().unwrap();
        let facts = metal.facts();
        let diagnosis = doctor::examine(&Runtime::new(metal), facts).unwrap();
        let text = diagnosis.to_text();
        assert!(diagnosis.is_sound(), "{text}");
        let fact = |name: &str| {
            diagnosis
                .facts
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(fact("device"), Some("Metal double (CPU, for tests)"));
        assert_eq!(fact("stage counters"), Some("yes"));
        assert_eq!(fact("counter sets"), Some("timestamp"));
        assert_eq!(fact("GPU capture"), Some("off (start with MTL_CAPTURE_ENABLED=1)"));
        assert_eq!(fact("empty command buffer"), Some("2.00 us (p50), 2.00 us (min)"));
        // 24 MHz, from two readings of both clocks.
        let tick: f64 = fact("GPU tick").unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((tick - 41.667).abs() < 0.05, "{tick}");
        assert!(
            text.contains("ok       stage counters agree with command buffers: 5 of 5 encoders\n"),
            "{text}"
        );
        assert!(text.contains("501.00 us and 4001.00 us, 7.99 times\n"), "{text}");
    }
    session.end();
}

#[test]
fn doctor_finds_times_that_make_no_sense() {
    let session = session();
    session
        .kernel("trace_attr_load", 500_000, |_| ())
        .kernel("trace_attr_empty", 1_000, |_| ());
    {
        let metal = Metal::open().unwrap();
        let runtime = Runtime::new(metal);
        // Sixty of the empty kernel come first; then the watched launches have samples that mean nothing.
        session.samples([metal_double::Samples::Zero; 5]);
        let diagnosis = doctor::examine(&runtime, vec![]).unwrap();
        let text = diagnosis.to_text();
        assert!(!diagnosis.is_sound());
        assert!(
            text.contains("WRONG    stage counters agree with command buffers: 0 of 5 encoders; sample_empty\n"),
            "{text}"
        );
    }
    session.end();
}

#[test]
fn a_file_with_work_runs_as_live_run_runs_it() {
    let session = session();
    session.kernel("add", 20_000, add);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("add.metal"), ADD).unwrap();
    std::fs::write(folder.path().join("a.bin"), support::of_bytes(&[1.0, 2.0, 3.0, 4.0])).unwrap();
    let text = r#"
        [kernels.add]
        msl = "add.metal"
        [buffers.a]
        type = "f32"
        length = 4
        file = "a.bin"
        [buffers.b]
        type = "f32"
        length = 4
        fill = 10
        [buffers.c]
        type = "f32"
        length = 4
        [[dispatch]]
        scope = ["step", "attention"]
        kernel = "add"
        buffers = ["a", "b", "c"]
        grid = 4
        threads = 4
        repeat = 2
        metrics = { bytes = 48 }
        # Needs what the first one wrote: dispatches run in their order, on the same buffers.
        [[dispatch]]
        kernel = "add"
        buffers = ["c", "c", "a"]
        grid = 4
        threads = 4
    "#;
    {
        let file = RunFile::parse(text, "run.toml", folder.path()).unwrap();
        let profile = file.execute(&Runtime::new(Metal::open().unwrap())).unwrap();
        let rows = profile.key_averages(GroupBy::CallPath).rows;
        let row = |label: &str| rows.iter().find(|row| row.label() == label).unwrap();
        // 20 us and the stand-in's own 2 × 0.5 us, twice.
        let inside = row("step/attention/gpu_dispatch:add");
        assert_eq!((inside.calls, inside.gpu_total.unwrap().0), (2, 42_000));
        assert_eq!(row("gpu_dispatch:add").calls, 1);
        let counts = profile.counts();
        assert_eq!(
            (counts.failed, counts.unfinished, counts.without_gpu_time),
            (0, 0, 0),
            "{counts:?}"
        );
        // What the command prints and writes.
        let table = profile.key_averages(GroupBy::CallPath).table().to_string();
        assert!(
            table.contains("attention") && profile.tree().to_string().contains("step"),
            "{table}"
        );
        let read = trace_attr::live::Profile::from_json(&profile.to_json()).unwrap();
        assert_eq!(read.to_json(), profile.to_json());
    }
    session.end();
}
