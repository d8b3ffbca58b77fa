//! `live bench`, `live run`, `live doctor`: what needs a Metal device. Arguments are read and checked on every system.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::cli::output;
use crate::cli::{ExitStatus, Stop};
use crate::error::{Error, Result};
use crate::live::backend::Constant;
use crate::live::bench::{BenchOptions, COLD_BYTES};
use crate::live::bench_request::BenchRequest;
use crate::live::buffer_spec::BufferSpec;
use crate::live::expression::Expression;
use crate::live::rounds::RoundOptions;
use crate::live::run_file::RunFile;
use crate::live::{Kernel, KernelCode};
use crate::model::{Nanos, parse_time};

const BENCH_EXAMPLES: &str = "\
Examples:
  trace-attr live bench add.metal:vector_add --buffer f32:1048576:random --buffer f32:1048576 --grid 1048576 --threads 256
  trace-attr live bench new.metal:gemm old.metal:gemm --size m=1024 --size n=1024 --size k=512 \\
      --buffer f32:m*k:random --buffer f32:k*n:random --buffer f32:m*n --grid n,m --threads 16,16 \\
      --flops '2*m*n*k' --until 0.5%

Times are GPU timestamps of command buffers, one in flight, after a warm-up; every sample is in the JSON. With two
kernels both run in each round, in an order that is swapped every round, and a round is one trial.";

/// Arguments of `live bench`.
#[derive(Debug, Args)]
#[command(after_long_help = BENCH_EXAMPLES)]
pub(in crate::cli) struct BenchArgs {
    /// FILE.metal or FILE.metallib with the name of the kernel; a second one is what the first is compared with
    #[arg(required = true, num_args = 1..=2, value_name = "FILE:KERNEL")]
    kernels: Vec<KernelName>,
    /// A size that lengths, grid and work can name: --buffer f32:m*k, --flops '2*m*n*k'
    #[arg(long = "size", value_name = "NAME=NUMBER", value_parser = parse_size, help_heading = "Launch")]
    sizes: Vec<(String, f64)>,
    /// A buffer argument, in order: TYPE:LENGTH, with :random, :count or a number for what it holds
    /// (f32, f16, i32, u32, i16, u16, i8, u8)
    #[arg(long = "buffer", value_name = "TYPE:LENGTH[:FILL]", help_heading = "Launch")]
    buffers: Vec<BufferSpec>,
    /// Function constant: true, false, 4 (int), 0.5 (float)
    #[arg(long = "constant", value_name = "NAME=VALUE", help_heading = "Launch")]
    constants: Vec<Constant>,
    /// Threads of the grid
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "Launch")]
    grid: Directions,
    /// Threads of a threadgroup
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "Launch")]
    threads: Directions,
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
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    flops: Option<Expression>,
    /// Bytes that a launch moves, for GB/s
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    bytes: Option<Expression>,
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

/// `n=1048576`
fn parse_size(text: &str) -> Result<(String, f64), String> {
    let (name, number) = text.split_once('=').unwrap_or((text, ""));
    let is_name = |name: &str| {
        let first = name.chars().next();
        first.is_some_and(|first| first.is_alphabetic() || first == '_')
            && name
                .chars()
                .all(|character| character.is_alphanumeric() || character == '_')
    };
    match number.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() && is_name(name) => Ok((name.to_owned(), number)),
        _ => Err(format!("`{text}` is no size: write n=1048576")),
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

impl BenchArgs {
    fn request(&self) -> Result<BenchRequest> {
        let mut kernels = self.kernels.iter().map(|kernel| kernel.load(&self.constants));
        let kernel = kernels.next().ok_or_else(|| Error::usage("there is no kernel"))??;
        let request = BenchRequest {
            kernel,
            against: kernels.next().transpose()?,
            sizes: self.sizes.iter().cloned().collect(),
            buffers: self.buffers.clone(),
            grid: self.grid.0.clone(),
            threads: self.threads.0.clone(),
            flops: self.flops.clone(),
            bytes: self.bytes.clone(),
            options: BenchOptions {
                repeat: self.repeat,
                warmup: self.warmup,
                inner: self.inner,
                cold: self.cold,
                ..BenchOptions::default()
            },
            rounds: RoundOptions {
                rounds: self.rounds,
                until_pct: self.until,
                max_time: Duration::from_nanos(self.max_time.0),
                ..RoundOptions::default()
            },
        };
        request.check()?;
        Ok(request)
    }
}

/// One to three directions of a grid or a threadgroup.
#[derive(Debug, Clone)]
struct Directions(Vec<Expression>);

impl FromStr for Directions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let directions: Vec<Expression> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match directions.len() {
            1..=3 => Ok(Directions(directions)),
            _ => Err("write one to three numbers: 1024 or 1024,1024".to_owned()),
        }
    }
}

pub(super) fn bench(args: &BenchArgs) -> Result<ExitStatus, Stop> {
    metal::bench(&args.request()?, args.json)
}

pub(super) fn run(args: &RunArgs) -> Result<ExitStatus, Stop> {
    let name = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file);
    let text = text.map_err(|error| Error::io("read it", error).with_origin(&name))?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let file = RunFile::parse(&text, &name, folder)?;
    if let Some(output) = &args.output {
        output::check(output, &[&args.file])?;
    }
    if !args.check {
        return metal::run(&file, args.output.as_deref());
    }
    let (kernels, buffers, launches) = file.counts();
    output::to_stdout(ExitStatus::Done, |out| {
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
    metal::doctor()
}

/// What is done on the device of this machine.
#[cfg(target_os = "macos")]
mod metal {
    use super::{BenchRequest, Path, RunFile};
    use crate::cli::output::{replace, to_stdout};
    use crate::cli::{ExitStatus, Stop};
    use crate::live::metal::Metal;
    use crate::live::{GroupBy, Runtime, doctor as check_up};

    pub(super) fn bench(request: &BenchRequest, json: bool) -> Result<ExitStatus, Stop> {
        let report = request.run(&Runtime::new(Metal::open()?))?;
        let text = if json { report.to_json() } else { report.to_text() };
        to_stdout(ExitStatus::Done, |out| out.write_all(text.as_bytes()))?;
        Ok(ExitStatus::Done)
    }

    pub(super) fn run(file: &RunFile, output: Option<&Path>) -> Result<ExitStatus, Stop> {
        let profile = file.execute(&Runtime::new(Metal::open()?))?;
        if let Some(output) = output {
            replace(output, |out| out.write_all(profile.to_json().as_bytes()))?;
        }
        let table = profile.key_averages(GroupBy::CallPath).table();
        to_stdout(ExitStatus::Done, |out| write!(out, "{table}\n{}", profile.tree()))?;
        Ok(ExitStatus::Done)
    }

    pub(super) fn doctor() -> Result<ExitStatus, Stop> {
        let metal = Metal::open()?;
        let facts = metal.facts();
        let diagnosis = check_up::examine(&Runtime::new(metal), facts)?;
        let status = if diagnosis.is_sound() {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        };
        to_stdout(status, |out| out.write_all(diagnosis.to_text().as_bytes()))?;
        Ok(status)
    }
}

/// What is said where there is no Metal.
#[cfg(not(target_os = "macos"))]
mod metal {
    use super::{BenchRequest, Path, RunFile};
    use crate::cli::{ExitStatus, Stop};
    use crate::error::{Error, ErrorKind};

    fn needs_macos(command: &str) -> Stop {
        Error::new(ErrorKind::Device(format!(
            "`live {command}` runs on a Metal device, so it needs macOS; this trace-attr was built for {}",
            std::env::consts::OS
        )))
        .into()
    }

    pub(super) fn bench(_: &BenchRequest, _json: bool) -> Result<ExitStatus, Stop> {
        Err(needs_macos("bench"))
    }

    pub(super) fn run(_: &RunFile, _output: Option<&Path>) -> Result<ExitStatus, Stop> {
        Err(needs_macos("run"))
    }

    pub(super) fn doctor() -> Result<ExitStatus, Stop> {
        Err(needs_macos("doctor"))
    }
}
