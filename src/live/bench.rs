//! How long a kernel takes: GPU timestamps alone, every sample kept, and the whole distribution told.
//!
//! Warm-up runs on the untimed path; then one command buffer after the other, one in flight, without a profile. Two
//! kernels are held against each other in rounds: see `rounds`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backend::{Argument, Backend, Batch, Contents, Dispatch};
use super::event::Absent;
use super::profile::Profile;
use super::runtime::{Kernel, PreparedKernel, Runtime};
use super::session;
use crate::error::{Error, ErrorKind, Result};
use crate::measure::{median, nearest_rank};
use crate::model::Nanos;

/// Bytes that [`BenchOptions::cold`] rotates through when nothing else is said: 512 MiB.
pub const COLD_BYTES: u64 = 512 << 20;

/// How a kernel is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchOptions {
    /// Samples: command buffers that are timed.
    pub repeat: u32,
    /// Command buffers before that.
    pub warmup: u32,
    /// Launches in each command buffer.
    pub inner: u32,
    /// Floating point operations of a launch.
    pub flops: Option<f64>,
    /// Bytes that a launch moves.
    pub bytes: Option<f64>,
    /// Rotate through copies of the buffers, so many bytes in all, so that a launch finds nothing in the caches.
    pub cold: Option<u64>,
}

impl Default for BenchOptions {
    /// 100 samples after 10 for warm-up, one launch each, on warm buffers.
    fn default() -> Self {
        BenchOptions {
            repeat: 100,
            warmup: 10,
            inner: 1,
            flops: None,
            bytes: None,
            cold: None,
        }
    }
}

/// Samples of one thing, and those that could not be had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// GPU time of each command buffer that has one, ns, in the order of measurement.
    pub samples: Vec<u64>,
    /// Command buffers without a time, by reason.
    pub absent: BTreeMap<Absent, u64>,
}

impl Distribution {
    /// Takes a sample.
    pub fn add(&mut self, sample: Result<Nanos, Absent>) {
        match sample {
            Ok(Nanos(ns)) => self.samples.push(ns),
            Err(absent) => *self.absent.entry(absent).or_default() += 1,
        }
    }

    fn sorted(&self) -> Vec<u64> {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        sorted
    }

    /// Smallest, median (mean of the middle two), mean, 90th percentile (nearest rank) and largest, in ns; `None` when
    /// there is no sample.
    pub fn summary(&self) -> Option<Summary> {
        let sorted = self.sorted();
        let sum: u128 = sorted.iter().map(|&ns| u128::from(ns)).sum();
        Some(Summary {
            min: *sorted.first()? as f64,
            p50: median(&sorted)?,
            mean: sum as f64 / sorted.len() as f64,
            p90: nearest_rank(&sorted, 90)? as f64,
            max: *sorted.last()? as f64,
        })
    }
}

/// A distribution in five numbers, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// Mean.
    pub mean: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Each number divided: the time of one of so many launches.
    fn per(self, launches: u32) -> Summary {
        let n = f64::from(launches.max(1));
        Summary {
            min: self.min / n,
            p50: self.p50 / n,
            mean: self.mean / n,
            p90: self.p90 / n,
            max: self.max / n,
        }
    }
}

/// How buffers were rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColdSet {
    /// Bytes that were asked for.
    pub asked: u64,
    /// Bytes of all copies.
    pub bytes: u64,
    /// Copies of the buffers.
    pub copies: u64,
}

/// What a benchmark found.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelBenchmark {
    /// Name of the kernel.
    pub kernel: String,
    /// GPU times of command buffers.
    pub distribution: Distribution,
    /// The same for an empty kernel, where it was measured ([`empty_dispatch`]): what a command buffer costs here.
    pub empty_dispatch: Option<Distribution>,
    /// How it was measured.
    pub options: BenchOptions,
    /// How buffers were rotated; `None`: not at all.
    pub cold: Option<ColdSet>,
}

impl KernelBenchmark {
    /// Time of one launch, ns; `None` when nothing could be measured.
    pub fn launch(&self) -> Option<Summary> {
        Some(self.distribution.summary()?.per(self.options.inner))
    }

    /// GFLOP/s at the median; `None` without flops or without a time.
    pub fn gflops(&self) -> Option<f64> {
        Some(self.options.flops? / self.launch()?.p50)
    }

    /// GB/s at the median; `None` without bytes or without a time.
    pub fn gigabytes_per_second(&self) -> Option<f64> {
        Some(self.options.bytes? / self.launch()?.p50)
    }

    /// One line: `vector_add: 100 calls min 6.91us p50 7.12us mean 7.40us p90 8.05us max 12.3us 176.40 GB/s (p50)`.
    pub fn summary(&self) -> String {
        let Some(times) = self.launch() else {
            return format!("{}: not measured{}", self.kernel, absences(&self.distribution.absent));
        };
        let us = |ns: f64| {
            let us = ns / 1e3;
            let digits = match us {
                us if us < 9.995 => 2,
                us if us < 99.95 => 1,
                _ => 0,
            };
            format!("{us:.digits$}us")
        };
        let mut line = format!(
            "{}: {} calls min {} p50 {} mean {} p90 {} max {}",
            self.kernel,
            self.distribution.samples.len() as u64 * u64::from(self.options.inner),
            us(times.min),
            us(times.p50),
            us(times.mean),
            us(times.p90),
            us(times.max)
        );
        if let Some(rate) = self.gflops() {
            line += &format!(" {rate:.2} GFLOP/s (p50)");
        }
        if let Some(rate) = self.gigabytes_per_second() {
            line += &format!(" {rate:.2} GB/s (p50)");
        }
        line + &absences(&self.distribution.absent)
    }
}

fn absences(absent: &BTreeMap<Absent, u64>) -> String {
    let each = absent
        .iter()
        .map(|(absent, count)| format!("{count} {}", absent.code()));
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        return String::new();
    }
    format!(" (without a time: {})", each.join(", "))
}

/// Measures a kernel. `grid` counts threads.
///
/// # Errors
/// `repeat` or `inner` of 0; sizes that the pipeline does not allow; an error of the GPU; not one command buffer with a
/// time.
pub fn benchmark_kernel<B: Backend>(
    prepared: &PreparedKernel<'_, B>,
    grid: [u64; 3],
    threads: [u64; 3],
    options: &BenchOptions,
) -> Result<KernelBenchmark> {
    if options.repeat < 1 || options.inner < 1 {
        return Err(
            Error::usage("a benchmark needs at least one sample and one launch in each")
                .with_help("give --repeat and --inner 1 or more"),
        );
    }
    prepared.check(grid, threads)?;
    let copies = options.cold.map(|bytes| copies(prepared, bytes)).transpose()?;
    let (cold, copies) = copies.unzip();
    let copies: Vec<Arguments<B>> = copies.unwrap_or_default();
    let mut sets: Vec<&[Arc<B::Buffer>]> = vec![prepared.buffers()];
    sets.extend(copies.iter().map(Vec::as_slice));
    let backend = prepared.backend();
    let mut next = sets.iter().cycle();
    let mut sample = || {
        let sets: Vec<Vec<_>> = next
            .by_ref()
            .take(usize::try_from(options.inner).unwrap_or(1))
            .map(|set| set.iter().map(|buffer| Argument::Buffer(&**buffer)).collect())
            .collect();
        let dispatches: Vec<Dispatch<'_, B>> = sets
            .iter()
            .map(|arguments| Dispatch {
                pipeline: prepared.pipeline(),
                arguments,
                grid,
                threads,
            })
            .collect();
        let batch = Batch {
            label: prepared.name(),
            dispatches: &dispatches,
        };
        backend
            .submit(&batch, None)
            .and_then(|submitted| backend.wait(submitted))
    };
    for _ in 0..options.warmup {
        sample()?;
    }
    let mut distribution = Distribution::default();
    for _ in 0..options.repeat {
        distribution.add(sample()?.gpu());
    }
    if distribution.samples.is_empty() {
        let why = match distribution.absent.get(&Absent::BelowResolution) {
            Some(_) => "the GPU timer has no resolution: start and end are always the same",
            None => "the device gives no GPU times",
        };
        return Err(Error::new(ErrorKind::Device(format!(
            "`{}` was not measured: {why}",
            prepared.name()
        ))));
    }
    Ok(KernelBenchmark {
        kernel: prepared.name().to_owned(),
        distribution,
        empty_dispatch: None,
        options: options.clone(),
        cold,
    })
}

/// The buffers of one launch.
type Arguments<B> = Vec<Arc<<B as Backend>::Buffer>>;

/// Copies of the buffers of a kernel, of so many bytes in all, its own counted too.
fn copies<B: Backend>(prepared: &PreparedKernel<'_, B>, asked: u64) -> Result<(ColdSet, Vec<Arguments<B>>)> {
    let (backend, each) = (prepared.backend(), prepared.bytes());
    if each == 0 {
        return Err(Error::usage("a kernel without buffers has nothing that could be cold"));
    }
    let most = backend.recommended_working_set().unwrap_or(u64::MAX);
    let copies = (asked.min(most) / each)
        .max(1)
        .max(asked.min(most).div_ceil(each).min(most / each));
    if copies < 2 {
        return Err(Error::usage(format!(
            "buffers of {each} bytes cannot be rotated within {} bytes",
            asked.min(most)
        ))
        .with_help("the device recommends no more: use smaller buffers"));
    }
    let copy = |_| {
        let copy = |buffer: &Arc<B::Buffer>| backend.buffer(Contents::Bytes(&backend.read(buffer)?)).map(Arc::new);
        prepared.buffers().iter().map(copy).collect::<Result<Vec<_>>>()
    };
    let sets = (1..copies).map(copy).collect::<Result<Vec<_>>>()?;
    let cold = ColdSet {
        asked,
        bytes: copies * each,
        copies,
    };
    Ok((cold, sets))
}

/// Times of a kernel that does nothing: what a command buffer costs on this device.
///
/// # Errors
/// It does not compile, or the GPU reports an error.
pub fn empty_dispatch<B: Backend>(runtime: &Runtime<B>, repeat: u32) -> Result<Distribution> {
    let kernel = Kernel::msl(
        "#include <metal_stdlib>\nkernel void trace_attr_empty() {}\n",
        "trace_attr_empty",
    );
    let prepared = runtime.prepare(&kernel, &[], 0)?;
    let options = BenchOptions {
        repeat,
        ..BenchOptions::default()
    };
    let measured = benchmark_kernel(&prepared, [1, 1, 1], [1, 1, 1], &options)?;
    Ok(measured.distribution)
}

/// Runs a kernel so many times under a profile: to see where the time goes, not to compare.
///
/// # Errors
/// Those of [`PreparedKernel::dispatch`].
pub fn profile_kernel<B: Backend>(
    prepared: &PreparedKernel<'_, B>,
    grid: [u64; 3],
    threads: [u64; 3],
    calls: u32,
) -> Result<Profile> {
    let (result, profile) = session::profile(|_| (0..calls).try_for_each(|_| prepared.dispatch(grid, threads)));
    result.map(|()| profile)
}
