//! How many submissions a second become Parquet and CSV: `cargo run --release --example convert_rate [MILLIONS]`.
//!
//! The trace is made up in memory, so what is measured is the conversion alone, on one thread: 200 labels, three channels,
//! an encoder for each submission, four encoders to a command buffer, durations in no order. Files go to a temporary folder.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use trace_attr::attribution::{Buckets, MappedSide, PhaseNames};
use trace_attr::convert::trials::FleetTrial;
use trace_attr::convert::{parquet, submissions_csv};
use trace_attr::model::{
    CommandBufferId, EncoderId, Label, LabelId, LeftOut, Names, Nanos, Process, RecordingState, Submission,
    SubmissionId, Timestamp, Timing, Trace, Window, WindowFound,
};

const LABELS: u32 = 200;

fn trace(count: u64) -> Trace {
    let mut names = Names::default();
    let channels = ["Compute", "Vertex", "Fragment"].map(|name| names.intern(name));
    let labels = (0..LABELS)
        .map(|n| Label::Known {
            command_buffer: names.intern(&format!("model.layers.{}.part{}", n % 25, n / 25)),
            encoder: names.intern(&format!("kernel{}", n % 40)),
            coalesced: false,
        })
        .collect();
    let mut random = 1_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    };
    let submissions = (0..count)
        .map(|n| Submission {
            // On the grid of the GPU's 24 MHz clock.
            start: Timestamp((n * 240 + below(40)) * 1000 / 24),
            duration: Nanos((24 + below(2_400) * below(2_400) / 2_400) * 1000 / 24),
            id: SubmissionId::new(0x3400_0000 + n * 2),
            encoder: EncoderId::new(0x6_3398_0000 + n / 4 * 5 + 1 + n % 4),
            command_buffer: CommandBufferId::new(0x6_3398_0000 + n / 4 * 5),
            latency: Some(Nanos((24 + below(1_200)) * 1000 / 24)),
            channel: channels[usize::from(below(30) == 0) + usize::from(below(30) == 0)],
            label: LabelId(u32::try_from(n % u64::from(LABELS)).unwrap_or(0)),
        })
        .collect();
    Trace {
        run: 1,
        process: Process {
            name: "bench".into(),
            pid: Some(77),
        },
        timing: Timing::Intervals,
        gpu: None,
        names,
        labels,
        submissions,
        encoders: None,
        window: Window {
            from: Timestamp(0),
            to: Timestamp(count * 10_000),
        },
        window_found: WindowFound::Given,
        submissions_in_process: count,
        rows_read: count,
        left_out: LeftOut::default(),
        cross_check: None,
        kernels: None,
        shader_timeline_rows: None,
        shader_samples: Vec::new(),
        shader_sampled_span: None,
        state: RecordingState::default(),
        notes: Vec::new(),
        fingerprint: 1,
    }
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|text| text.parse::<u64>().ok());
    let count = millions.unwrap_or(10) * 1_000_000;
    let trace = trace(count);
    let trial = FleetTrial {
        side: MappedSide::A,
        name: "bench",
        input: "bench",
        unit: None,
        units: None,
        set: &[],
        trace: &trace,
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (names, buckets) = (PhaseNames::default(), Buckets::default());
    let measure = |what: &str, convert: &dyn Fn(File) -> std::io::Result<()>| {
        let path = folder.path().join(what);
        let begun = Instant::now();
        convert(File::create(&path).expect("a new file")).expect("it could be written");
        let seconds = begun.elapsed().as_secs_f64();
        let bytes = std::fs::metadata(&path).expect("the file").len();
        let (rate, each) = (count as f64 / seconds / 1e6, bytes as f64 / count as f64);
        println!("{what}: {seconds:.2} s, {rate:.2} M rows/s, {each:.1} bytes a row");
    };
    measure("parquet", &|file| {
        parquet::write_submissions(&trial, &names, &buckets, file)
    });
    measure("csv", &|file| {
        let mut out = BufWriter::new(file);
        submissions_csv::write_trial(&trial, &names, &buckets, &mut out)?;
        out.flush()
    });
}
