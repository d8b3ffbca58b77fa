//! `live bench`, `live run`, `live doctor`: what needs a Metal device. Arguments are read and checked on every system.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::cli::output::to_stdout;
use crate::cli::{ExitStatus, Stop};
use crate::error::{Error, ErrorKind, Result};
use crate::live::backend::Constant;
use crate::live::bench::{BenchOptions, COLD_BYTES};
use crate::live::rounds::RoundOptions;
use crate::live::run_file::{BufferSpec, RunFile};
use crate::live::{Kernel, KernelCode};
use crate::model::{Nanos, parse_time};

const BENCH_EXAMPLES: &str = "\
Examples:
  trace-attr live bench add.metal:vector_add --buffer f32:1048576:random --buffer f32:1048576 --grid 1048576 --threads 256
  trace-attr live bench new.metal:gemm old.metal:gemm --buffer f32:1048576 --grid 1024,1024 --threads 16,16 --until 0.5%

Times are GPU timestamps of command buffers, one in flight, after a warm-up; every sample is in the JSON. With two
kernels both run in each round, in an order that is swapped every round, and a round is one trial.";

/// Arguments of `live bench`.
#[derive(Debug, Args)]
#[command(after_long_help = BENCH_EXAMPLES)]
pub(in crate::cli) struct BenchArgs {
    /// FILE.metal or FILE.metallib with the name of the kernel; a second one is what the first is compared with
    #[arg(required = true, num_args = 1..=2, value_name = "FILE:KERNEL")]
    kernels: Vec<KernelName>,
    /// A buffer argument, in order: TYPE:LENGTH, with :random or :count for what it holds (f32, i32, u32, u8)
    #[arg(long = "buffer", value_name = "TYPE:LENGTH[:FILL]", help_heading = "Launch")]
    buffers: Vec<BufferSpec>,
    /// Function constant: true, false, 4 (int), 0.5 (float)
    #[arg(long = "constant", value_name = "NAME=VALUE", help_heading = "Launch")]
    constants: Vec<Constant>,
    /// Threads of the grid
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "Launch")]
    grid: Sizes,
    /// Threads of a threadgroup
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "Launch")]
    threads: Sizes,
    /// Command buffers that are timed
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Measurement")]
    repeat: u32,
    /// Command buffers before that
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Measurement")]
    warmup: u32,
    /// Launches in each command buffer
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Measurement")]
    inner: u32,
    /// Rotate copies of the buffers, so many bytes in all (at most what the device recommends), for times from DRAM
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = COLD_DEFAULT, help_heading = "Measurement")]
    cold: Option<u64>,
    /// Floating point operations of a launch, for GFLOP/s
    #[arg(long, value_name = "N", value_parser = parse_amount, help_heading = "Measurement")]
    flops: Option<f64>,
    /// Bytes that a launch moves, for GB/s
    #[arg(long, value_name = "N", value_parser = parse_amount, help_heading = "Measurement")]
    bytes: Option<f64>,
    /// Rounds, with two kernels
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(10..), help_heading = "Two kernels")]
    rounds: u32,
    /// Go on until the interval is so narrow on each side
    #[arg(long, value_name = "PERCENT", value_parser = parse_width, help_heading = "Two kernels")]
    until: Option<f64>,
    /// Start no round after this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time, help_heading = "Two kernels")]
    max_time: Nanos,
    /// Print JSON with every sample
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// [`COLD_BYTES`], as clap wants it.
const COLD_DEFAULT: &str = "536870912";
const _: () = assert!(COLD_BYTES == 536_870_912);

const RUN_EXAMPLES: &str = "\
Example, run.toml:
  [kernels.vector_add]
  msl = \"vector_add.metal\"

  [buffers.a]
  type = \"f32\"
  length = 1048576
  fill = \"random\"

  [[dispatch]]
  scope = \"step\"
  kernel = \"vector_add\"
  buffers = [\"a\", \"a\", \"a\"]
  grid = 1048576
  threads = 256
  metrics = { bytes = 12582912 }

  trace-attr live run run.toml -o profile.json
  trace-attr live run run.toml --check";

/// Arguments of `live run`.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub(in crate::cli) struct RunArgs {
    /// What to run (TOML)
    file: PathBuf,
    /// Only check the file; needs no device
    #[arg(long)]
    check: bool,
    /// Write the profile (JSON) to this file as well
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// Arguments of `live doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace-attr live doctor")]
pub(in crate::cli) struct DoctorArgs {}

/// A width in percent, above 0, with or without its sign.
fn parse_width(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(pct) if pct.is_finite() && pct > 0.0 => Ok(pct),
        _ => Err("write a percentage above 0, such as 0.5%".to_owned()),
    }
}

/// An amount of work.
fn parse_amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("write a number above 0".to_owned()),
    }
}

/// A kernel in a file.
#[derive(Debug, Clone)]
struct KernelName {
    file: PathBuf,
    kernel: String,
}

impl FromStr for KernelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once(':') {
            Some((file, kernel)) if !file.is_empty() && !kernel.is_empty() => Ok(KernelName {
                file: file.into(),
                kernel: kernel.to_owned(),
            }),
            _ => Err("write the file and the kernel: add.metal:vector_add".to_owned()),
        }
    }
}

impl KernelName {
    /// The kernel with its code.
    fn load(&self, constants: &[Constant]) -> Result<Kernel> {
        let origin = self.file.display().to_string();
        let code = if self.file.extension().is_some_and(|extension| extension == "metallib") {
            std::fs::metadata(&self.file).map(|_| KernelCode::Metallib(self.file.clone()))
        } else {
            std::fs::read_to_string(&self.file).map(KernelCode::Msl)
        };
        Ok(Kernel {
            code: code.map_err(|error| Error::io("read it", error).with_origin(origin))?,
            name: self.kernel.clone(),
            constants: constants.to_vec(),
        })
    }
}

/// A benchmark whose arguments were checked.
#[cfg_attr(
    not(target_os = "macos"),
    expect(dead_code, reason = "it is run where there is a Metal device")
)]
struct BenchPlan {
    kernels: Vec<Kernel>,
    buffers: Vec<BufferSpec>,
    grid: [u64; 3],
    threads: [u64; 3],
    options: BenchOptions,
    rounds: RoundOptions,
}

impl BenchArgs {
    fn plan(&self) -> Result<BenchPlan> {
        Ok(BenchPlan {
            kernels: self
                .kernels
                .iter()
                .map(|kernel| kernel.load(&self.constants))
                .collect::<Result<_>>()?,
            buffers: self.buffers.clone(),
            grid: self.grid.0,
            threads: self.threads.0,
            options: BenchOptions {
                repeat: self.repeat,
                warmup: self.warmup,
                inner: self.inner,
                flops: self.flops,
                bytes: self.bytes,
                cold: self.cold,
            },
            rounds: RoundOptions {
                rounds: self.rounds,
                until_pct: self.until,
                max_time: Duration::from_nanos(self.max_time.0),
                ..RoundOptions::default()
            },
        })
    }
}

/// Up to three sizes.
#[derive(Debug, Clone, Copy)]
struct Sizes([u64; 3]);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let given: Result<Vec<u64>, _> = text.split(',').map(|size| size.trim().parse::<u64>()).collect();
        let sizes = match given.as_deref() {
            Ok([x]) => [*x, 1, 1],
            Ok([x, y]) => [*x, *y, 1],
            Ok([x, y, z]) => [*x, *y, *z],
            _ => return Err("write one to three numbers: 1024 or 1024,1024".to_owned()),
        };
        match sizes.contains(&0) {
            true => Err("each number must be at least 1".to_owned()),
            false => Ok(Sizes(sizes)),
        }
    }
}

/// What a command says where there is no Metal.
fn needs_metal(command: &str) -> Stop {
    Error::new(ErrorKind::Device(format!(
        "`live {command}` runs on a Metal device, so it needs macOS; this trace-attr was built for {}",
        std::env::consts::OS
    )))
    .into()
}

pub(super) fn bench(args: &BenchArgs) -> Result<ExitStatus, Stop> {
    let _plan = args.plan()?;
    Err(needs_metal("bench"))
}

pub(super) fn run(args: &RunArgs) -> Result<ExitStatus, Stop> {
    let name = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file);
    let text = text.map_err(|error| Error::io("read it", error).with_origin(&name))?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let file = RunFile::parse(&text, &name, folder)?;
    if !args.check {
        return Err(needs_metal("run"));
    }
    let (kernels, buffers, launches) = file.counts();
    to_stdout(ExitStatus::Done, |out| {
        let plural = |count: u64, noun: &str, many: &str| match count {
            1 => format!("1 {noun}"),
            count => format!("{count} {noun}{many}"),
        };
        writeln!(
            out,
            "{name}: {}, {}, {}; nothing was run",
            plural(kernels, "kernel", "s"),
            plural(buffers, "buffer", "s"),
            plural(launches, "launch", "es")
        )
    })?;
    Ok(ExitStatus::Done)
}

pub(super) fn doctor(_args: &DoctorArgs) -> Result<ExitStatus, Stop> {
    Err(needs_metal("doctor"))
}
