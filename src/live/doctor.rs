//! What a device can tell, and whether its times make sense: what to look at first on a machine that nobody has tried.
//!
//! Facts are printed as they are. Checks are what must hold on every GPU: command buffers end after they begin and do not
//! overlap on one queue, the GPU takes no longer than the host waited, eight times the work takes about eight times as long,
//! and stage counters agree with command buffers.

use std::fmt::Write as _;
use std::time::Duration;

use super::backend::{Backend, Device};
use super::bench::empty_dispatch;
use super::clock::{Calibration, HostTime};
use super::event::Event;
use super::runtime::{Kernel, PreparedKernel, Runtime};
use super::session;
use crate::error::Result;

/// A few hundred multiplications a thread, which no compiler can leave out.
const LOAD: &str = "#include <metal_stdlib>
kernel void trace_attr_load(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float value = x[i];
    for (uint step = 0; step < 512; ++step) { value = value * 0.999f + 0.25f; }
    x[i] = value;
}
";
const LOAD_THREADS: u64 = 1 << 18;
/// Launches of the larger load.
const TIMES: u32 = 8;
/// How long the clocks are compared: longer than [`super::clock::CALIBRATION_SPAN`].
const COMPARED: Duration = Duration::from_millis(120);
/// Command buffers that are watched.
const WATCHED: usize = 5;

/// What a device told.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Name and value.
    pub facts: Vec<(String, String)>,
    /// What must hold.
    pub checks: Vec<Check>,
}

/// Something that must hold on every GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// Whether it did; `None` when it could not be looked at.
    pub holds: Option<bool>,
    /// The numbers behind it.
    pub detail: String,
}

impl Diagnosis {
    /// Whether every check that could be looked at holds.
    pub fn is_sound(&self) -> bool {
        self.checks.iter().all(|check| check.holds != Some(false))
    }

    /// As text, one statement a line.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let width = self
            .facts
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        for (name, value) in &self.facts {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<width$}  {value}");
        }
        for check in &self.checks {
            let mark = match check.holds {
                Some(true) => "ok     ",
                Some(false) => "WRONG  ",
                None => "skipped",
            };
            let _ = writeln!(text, "{mark}  {}: {}", check.what, check.detail);
        }
        text
    }
}

/// Looks at a device. `facts` are what only its backend knows; they stand behind its name.
///
/// # Errors
/// Not even an empty kernel runs.
pub fn examine<B: Backend>(runtime: &Runtime<B>, facts: Vec<(String, String)>) -> Result<Diagnosis> {
    let backend = runtime.backend();
    let device = backend.device();
    let mut all = vec![fact("device", device.name())];
    all.extend(facts);
    all.push(fact(
        "stage counters",
        if device.supports_stage_counters() { "yes" } else { "no" },
    ));
    let working_set = backend
        .recommended_working_set()
        .map(|bytes| format!("{} MiB", bytes >> 20));
    all.push(fact(
        "recommended working set",
        working_set.unwrap_or_else(|| "not said".to_owned()),
    ));
    all.push(fact("GPU tick", tick(&**device)));
    let empty = empty_dispatch(runtime, 50)?.summary();
    let empty = empty.map(|times| format!("{:.2} us (p50), {:.2} us (min)", times.p50 / 1e3, times.min / 1e3));
    all.push(fact(
        "empty command buffer",
        empty.unwrap_or_else(|| "no GPU times".to_owned()),
    ));
    all.push(fact("Metal 4 queues", "not observed (MTL4CommitFeedback)"));

    let zeros = vec![0; usize::try_from(LOAD_THREADS * 4).unwrap_or(0)];
    let load = runtime.prepare(&Kernel::msl(LOAD, "trace_attr_load"), &[&zeros], 0)?;
    let mut checks = watched(&load)?;
    checks.push(proportional(&load)?);
    Ok(Diagnosis { facts: all, checks })
}

fn fact(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn tick(device: &dyn Device) -> String {
    let pair = || device.clock_pair().ok_or("no counter");
    let measured = pair().and_then(|first| {
        std::thread::sleep(COMPARED);
        let last = pair()?;
        let calibration = Calibration::new(first, last).map_err(super::Absent::code)?;
        // A million ticks, because the length of one is rounded to the ns.
        Ok(calibration.length(1_000_000).0)
    });
    match measured {
        Ok(ns) => format!("{:.3} ns, compared over {} ms", ns as f64 / 1e6, COMPARED.as_millis()),
        Err(why) => format!("not known: {why}"),
    }
}

const ORDER: &str = "command buffers end after they begin, one after the other";
const WALL: &str = "the GPU takes no longer than the host waits";
const COUNTERS: &str = "stage counters agree with command buffers";
const LOADS: &str = "eight times the work takes about eight times as long";

/// Checks on command buffers that a profile watches.
fn watched<B: Backend>(load: &PreparedKernel<'_, B>) -> Result<Vec<Check>> {
    let threads = [load.limits().thread_execution_width.max(1), 1, 1];
    let grid = [LOAD_THREADS, 1, 1];
    let (waited, profile) = session::profile(|_| {
        let waited = (0..WATCHED).map(|_| {
            let begun = HostTime::now();
            load.dispatch(grid, threads).map(|()| (begun, HostTime::now()))
        });
        let waited = waited.collect::<Result<Vec<_>>>();
        std::thread::sleep(COMPARED);
        waited
    });
    let waited = waited?;
    let launches: Vec<&Event> = profile.events().iter().filter(|event| event.gpu.is_some()).collect();
    let spans: Vec<_> = launches.iter().filter_map(|event| event.gpu_span()).collect();
    if spans.len() < launches.len() || spans.is_empty() {
        let first = launches.iter().find_map(|event| event.gpu.as_ref()?.span.err());
        let detail = format!(
            "{} of {} command buffers have a time{}",
            spans.len(),
            launches.len(),
            first.map_or_else(String::new, |absent| format!(" ({})", absent.code()))
        );
        return Ok(vec![Check {
            what: ORDER,
            holds: Some(false),
            detail,
        }]);
    }
    let in_order = spans.is_sorted_by(|before, after| before.end <= after.start);
    let lengths: Vec<String> = spans
        .iter()
        .map(|span| format!("{:.2}", span.length().0 as f64 / 1e3))
        .collect();
    // A microsecond for the comparison of both clocks.
    let slack = 1_000;
    let within = spans
        .iter()
        .zip(&waited)
        .filter(|(span, (begun, ended))| span.start.0 + slack >= begun.0 && span.end.0 <= ended.0 + slack)
        .count();
    let mut checks = vec![
        Check {
            what: ORDER,
            holds: Some(in_order),
            detail: format!("{} us", lengths.join(", ")),
        },
        Check {
            what: WALL,
            holds: Some(within == spans.len()),
            detail: format!("{within} of {} lie between commit and return", spans.len()),
        },
    ];
    let encoders = launches
        .iter()
        .filter_map(|event| event.gpu.as_ref())
        .map(|gpu| gpu.encoder);
    let (mut agreeing, mut absent) = (0, Vec::new());
    for encoder in encoders {
        match encoder {
            // One that is longer than its command buffer is absent already, with that reason.
            Ok(_) => agreeing += 1,
            Err(reason) => absent.push(reason.code()),
        }
    }
    absent.dedup();
    let unsupported = absent == [super::Absent::CountersUnsupported.code()];
    checks.push(Check {
        what: COUNTERS,
        holds: (!unsupported).then_some(absent.is_empty()),
        detail: if absent.is_empty() {
            format!("{agreeing} of {agreeing} encoders")
        } else {
            format!("{agreeing} of {} encoders; {}", launches.len(), absent.join(", "))
        },
    });
    Ok(checks)
}

/// A known load: the same launch once and several times.
fn proportional<B: Backend>(load: &PreparedKernel<'_, B>) -> Result<Check> {
    let threads = [load.limits().thread_execution_width.max(1), 1, 1];
    let median = |inner| -> Result<Option<f64>> {
        let options = super::bench::BenchOptions {
            repeat: 20,
            warmup: 5,
            inner,
            ..super::bench::BenchOptions::default()
        };
        let measured = super::bench::benchmark_kernel(load, [LOAD_THREADS, 1, 1], threads, &options);
        Ok(measured?.distribution.summary().map(|times| times.p50))
    };
    let (Some(one), Some(many)) = (median(1)?, median(TIMES)?) else {
        return Ok(Check {
            what: LOADS,
            holds: None,
            detail: "no GPU times".to_owned(),
        });
    };
    let ratio = many / one;
    Ok(Check {
        what: LOADS,
        // Half and twice: a clock with a wrong unit is wrong by 24 or by 41.67.
        holds: Some((f64::from(TIMES) / 2.0..=f64::from(TIMES) * 2.0).contains(&ratio)),
        detail: format!("{:.2} us and {:.2} us, {ratio:.2} times", one / 1e3, many / 1e3),
    })
}
