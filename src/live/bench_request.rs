//! A benchmark that is said in text: a kernel, or two against each other, with their buffers, sizes and work; run on a
//! device, and what came of it as text and as JSON.
//!
//! Both kernels of a comparison get buffers of the same kind and content, each its own.

use std::time::Instant;

use serde::Serialize;

use super::backend::Backend;
use super::bench::{BenchOptions, ColdSet, Distribution, KernelBenchmark, Summary, benchmark_kernel, empty_dispatch};
use super::buffer_spec::BufferSpec;
use super::expression::{Expression, Sizes};
use super::rounds::{RoundOptions, Rounds, Which, run_rounds};
use super::runtime::{Kernel, PreparedKernel, Runtime};
use crate::error::{Error, Result};
use crate::inference::{Verdict, percent};

/// Samples of the empty kernel.
const EMPTY_SAMPLES: u32 = 20;

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchRequest {
    /// The kernel: what you work on.
    pub kernel: Kernel,
    /// What it is held against, in rounds.
    pub against: Option<Kernel>,
    /// Sizes that the expressions below name.
    pub sizes: Sizes,
    /// Buffers, in the order of the kernel's arguments.
    pub buffers: Vec<BufferSpec>,
    /// Threads of the whole grid, one to three directions.
    pub grid: Vec<Expression>,
    /// Threads of a threadgroup, one to three directions.
    pub threads: Vec<Expression>,
    /// Floating point operations of a launch.
    pub flops: Option<Expression>,
    /// Bytes that a launch moves.
    pub bytes: Option<Expression>,
    /// How each kernel is measured; `flops` and `bytes` are those above.
    pub options: BenchOptions,
    /// How two kernels are held against each other.
    pub rounds: RoundOptions,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchReport {
    /// Name of the device.
    pub device: String,
    /// The sizes that it was measured with.
    pub sizes: Sizes,
    /// The kernel. In a comparison, its samples of all rounds.
    pub kernel: KernelBenchmark,
    /// What it was held against.
    pub against: Option<KernelBenchmark>,
    /// The comparison.
    pub rounds: Option<Rounds>,
    /// The margin within which there is no difference, percent.
    pub margin_pct: f64,
}

/// One to three expressions as three sizes.
fn directions(what: &str, written: &[Expression], sizes: &Sizes) -> Result<[u64; 3]> {
    let mut directions = [1; 3];
    if written.is_empty() || written.len() > directions.len() {
        return Err(Error::usage(format!(
            "{what} has {} directions; there are one to three",
            written.len()
        )));
    }
    for (direction, expression) in directions.iter_mut().zip(written) {
        *direction = expression.count(sizes)?;
    }
    Ok(directions)
}

/// What the expressions come to.
struct Resolved {
    grid: [u64; 3],
    threads: [u64; 3],
    options: BenchOptions,
}

impl BenchRequest {
    fn resolve(&self) -> Result<Resolved> {
        let sizes = &self.sizes;
        let work = |what: &str, amount: &Option<Expression>| {
            let Some(amount) = amount else {
                return Ok(None);
            };
            match amount.value(sizes)? {
                value if value > 0.0 => Ok(Some(value)),
                value => Err(Error::usage(format!(
                    "the {what} of a launch are `{amount}`, which is {value}: they must be more than 0"
                ))),
            }
        };
        Ok(Resolved {
            grid: directions("the grid", &self.grid, sizes)?,
            threads: directions("the threadgroup", &self.threads, sizes)?,
            options: BenchOptions {
                flops: work("flops", &self.flops)?,
                bytes: work("bytes", &self.bytes)?,
                ..self.options.clone()
            },
        })
    }

    /// Looks at everything that can be told without a device.
    ///
    /// # Errors
    /// An expression that names no size, or counts no whole number where one is needed; a buffer that is too large.
    pub fn check(&self) -> Result<()> {
        self.resolve()?;
        self.buffers
            .iter()
            .try_for_each(|buffer| buffer.bytes(&self.sizes).map(drop))
    }

    /// Measures.
    ///
    /// # Errors
    /// An expression that names no size or counts no whole number; a kernel that does not compile or fails; buffers that the
    /// device does not have; no GPU time at all.
    pub fn run<B: Backend>(&self, runtime: &Runtime<B>) -> Result<BenchReport> {
        let Resolved { grid, threads, options } = self.resolve()?;
        let prepare = |kernel| self.prepare(kernel, runtime);
        let measure = |prepared: &PreparedKernel<'_, B>| benchmark_kernel(prepared, grid, threads, &options);

        let kernel = prepare(&self.kernel)?;
        let against = self.against.as_ref().map(prepare).transpose()?;
        let empty = empty_dispatch(runtime, EMPTY_SAMPLES)?;
        let (mut kernel, against, rounds) = match against {
            None => (measure(&kernel)?, None, None),
            Some(against) => {
                let (mut of_a, mut of_b) = (None, None);
                let begun = Instant::now();
                let rounds = run_rounds(
                    &self.rounds,
                    |which| {
                        let (prepared, all) = match which {
                            Which::A => (&kernel, &mut of_a),
                            Which::B => (&against, &mut of_b),
                        };
                        let measured = measure(prepared)?;
                        let round = measured.distribution.clone();
                        add(all, measured);
                        Ok(round)
                    },
                    || begun.elapsed(),
                )?;
                let (Some(of_a), Some(of_b)) = (of_a, of_b) else {
                    return Err(Error::usage("the time was over before the first round")
                        .with_help("give it more time with --max-time"));
                };
                (of_a, Some(of_b), Some(rounds))
            }
        };
        kernel.empty_dispatch = Some(empty);
        Ok(BenchReport {
            device: runtime.backend().device().name(),
            sizes: self.sizes.clone(),
            kernel,
            against,
            rounds,
            margin_pct: self.rounds.margin_pct,
        })
    }

    fn prepare<'r, B: Backend>(&self, kernel: &Kernel, runtime: &'r Runtime<B>) -> Result<PreparedKernel<'r, B>> {
        let seeds = 1u64..;
        let make = |(buffer, seed): (&BufferSpec, u64)| buffer.contents(&self.sizes, seed);
        let bytes = self.buffers.iter().zip(seeds).map(make).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        runtime.prepare(kernel, &inputs, 0)
    }
}

/// Puts the samples of a round to those before.
fn add(all: &mut Option<KernelBenchmark>, measured: KernelBenchmark) {
    let Some(all) = all else {
        *all = Some(measured);
        return;
    };
    all.distribution.samples.extend(measured.distribution.samples);
    for (absent, count) in measured.distribution.absent {
        *all.distribution.absent.entry(absent).or_default() += count;
    }
}

impl BenchReport {
    /// What the comparison says, in one line; `None` of a single kernel.
    pub fn headline(&self) -> Option<String> {
        let (rounds, against) = (self.rounds.as_ref()?, self.against.as_ref()?);
        let (a, b) = (&self.kernel.kernel, &against.kernel);
        // Of one name, they are told by their side.
        let (a, b) = if a == b {
            (format!("{a} (1st)"), format!("{b} (2nd)"))
        } else {
            (a.clone(), b.clone())
        };
        let Some(interval) = rounds.interval else {
            return Some(format!("{a} and {b}: too few rounds for a verdict"));
        };
        let change = percent(interval.change);
        let said = match rounds.verdict {
            Verdict::Regressed => format!("{a} is slower than {b} by {change:.2} %"),
            Verdict::Improved => format!("{a} is faster than {b} by {:.2} %", -change),
            Verdict::Unchanged => format!("{a} and {b} differ by no more than {} %", self.margin_pct),
            _ => format!("{a} and {b}: inconclusive"),
        };
        Some(format!(
            "{said} (90 % interval {:+.2} to {:+.2} %, {} rounds)",
            percent(interval.low()),
            percent(interval.high()),
            rounds.a.len()
        ))
    }

    /// As text, one statement a line.
    pub fn to_text(&self) -> String {
        let mut lines = Vec::new();
        lines.extend(self.headline());
        lines.push(self.kernel.summary());
        lines.extend(self.against.as_ref().map(KernelBenchmark::summary));
        lines.push(format!("device: {}", self.device));
        if let Some(empty) = self.kernel.empty_dispatch.as_ref().and_then(Distribution::summary) {
            lines.push(format!(
                "an empty command buffer takes {:.2}us here (p50); it is in the times above",
                empty.p50 / 1e3
            ));
        }
        if let Some(cold) = self.kernel.cold {
            let capped = if cold.bytes < cold.asked {
                ", the most that the device recommends"
            } else {
                ""
            };
            lines.push(format!(
                "cold: {} copies of the buffers in turn, {:.0} MiB in all{capped}",
                cold.copies,
                mebibytes(cold.bytes)
            ));
        }
        if self.kernel.options.inner > 1 {
            lines.push(format!(
                "{} launches in each command buffer; times are of one",
                self.kernel.options.inner
            ));
        }
        if self.rounds.is_some() {
            lines.push("both kernels ran in one process: another process can give another difference".to_owned());
        }
        lines.join("\n") + "\n"
    }

    /// As JSON, with every sample: the contract `trace-attr.bench`.
    pub fn to_json(&self) -> String {
        let file = File {
            schema: "trace-attr.bench",
            schema_version: 1,
            tool: Tool {
                name: env!("CARGO_PKG_NAME"),
                version: env!("CARGO_PKG_VERSION"),
            },
            device: &self.device,
            sizes: &self.sizes,
            kernel: FileKernel::new(&self.kernel),
            against: self.against.as_ref().map(FileKernel::new),
            empty_dispatch: self.kernel.empty_dispatch.as_ref().map(FileDistribution::new),
            comparison: self
                .rounds
                .as_ref()
                .map(|rounds| FileRounds::new(rounds, self.margin_pct)),
        };
        // Structs of numbers and strings always serialize; a fault would be told as an empty object.
        serde_json::to_string_pretty(&file).unwrap_or_else(|_| "{}".to_owned()) + "\n"
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with no decimals")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    schema_version: u32,
    tool: Tool,
    device: &'a str,
    sizes: &'a Sizes,
    kernel: FileKernel<'a>,
    against: Option<FileKernel<'a>>,
    empty_dispatch: Option<FileDistribution<'a>>,
    comparison: Option<FileRounds<'a>>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct FileKernel<'a> {
    name: &'a str,
    launches_per_command_buffer: u32,
    warmup: u32,
    /// Of one launch; the samples are of command buffers.
    launch_ns: Option<FileSummary>,
    gflops_per_second: Option<f64>,
    gigabytes_per_second: Option<f64>,
    flops: Option<f64>,
    bytes: Option<f64>,
    cold: Option<FileCold>,
    command_buffers: FileDistribution<'a>,
}

#[derive(Serialize)]
struct FileCold {
    asked_bytes: u64,
    bytes: u64,
    copies: u64,
}

#[derive(Serialize)]
struct FileSummary {
    min: f64,
    p50: f64,
    mean: f64,
    p90: f64,
    max: f64,
}

#[derive(Serialize)]
struct FileDistribution<'a> {
    samples_ns: &'a [u64],
    absent: std::collections::BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct FileRounds<'a> {
    a_ns: &'a [f64],
    b_ns: &'a [f64],
    change_pct: Option<f64>,
    low_pct: Option<f64>,
    high_pct: Option<f64>,
    confidence_pct: u32,
    margin_pct: f64,
    verdict: &'static str,
    stop: &'static str,
    notes: [&'static str; 1],
}

impl From<Summary> for FileSummary {
    fn from(summary: Summary) -> Self {
        let Summary {
            min,
            p50,
            mean,
            p90,
            max,
        } = summary;
        FileSummary {
            min,
            p50,
            mean,
            p90,
            max,
        }
    }
}

impl<'a> FileKernel<'a> {
    fn new(measured: &'a KernelBenchmark) -> Self {
        let cold = measured.cold.map(|ColdSet { asked, bytes, copies }| FileCold {
            asked_bytes: asked,
            bytes,
            copies,
        });
        FileKernel {
            name: &measured.kernel,
            launches_per_command_buffer: measured.options.inner,
            warmup: measured.options.warmup,
            launch_ns: measured.launch().map(FileSummary::from),
            gflops_per_second: measured.gflops(),
            gigabytes_per_second: measured.gigabytes_per_second(),
            flops: measured.options.flops,
            bytes: measured.options.bytes,
            cold,
            command_buffers: FileDistribution::new(&measured.distribution),
        }
    }
}

impl<'a> FileDistribution<'a> {
    fn new(distribution: &'a Distribution) -> Self {
        FileDistribution {
            samples_ns: &distribution.samples,
            absent: distribution
                .absent
                .iter()
                .map(|(absent, count)| (absent.code(), *count))
                .collect(),
        }
    }
}

impl<'a> FileRounds<'a> {
    fn new(rounds: &'a Rounds, margin_pct: f64) -> Self {
        let interval = rounds.interval.as_ref();
        FileRounds {
            a_ns: &rounds.a,
            b_ns: &rounds.b,
            change_pct: interval.map(|interval| percent(interval.change)),
            low_pct: interval.map(|interval| percent(interval.low())),
            high_pct: interval.map(|interval| percent(interval.high())),
            confidence_pct: 90,
            margin_pct,
            verdict: rounds.verdict.name(),
            stop: rounds.stop.name(),
            notes: [Rounds::NOTE],
        }
    }
}
