//! A profile as JSON, written and read: the contract `trace-attr.live`, described in `docs/live-json.md`.
//!
//! Times are ns from the opening of the profile. A number that could not be had is `null`, and its reason stands in the
//! event's `absent`. What is read is checked as far as other code relies on it; a file of a newer version is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::averages::{Average, GroupBy};
use super::clock::HostTime;
use super::event::{
    Absent, CallPath, Category, Event, EventIndex, GpuSpan, GpuWork, Launch, Measured, PipelineLimits, Status, Via,
};
use super::metrics::Metrics;
use super::profile::{Counts, Origin, Profile};
use crate::error::{Error, Result};
use crate::model::Nanos;

/// Name of the schema.
pub const SCHEMA: &str = "trace-attr.live";
/// Its version: raised when a reader of the one before would go wrong.
pub const SCHEMA_VERSION: u32 = 1;

/// What is looked at first.
#[derive(Deserialize)]
struct Head {
    schema: String,
    schema_version: u32,
}

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    schema_version: u32,
    tool: Tool,
    process: Process,
    device: Option<String>,
    started_unix_ns: Option<String>,
    duration_ns: u64,
    captured: bool,
    counts: FileCounts,
    events: Vec<FileEvent>,
    #[serde(default, skip_deserializing)]
    averages: Averages,
}

#[derive(Serialize, Deserialize)]
struct Tool {
    name: String,
    version: String,
}

#[derive(Serialize, Deserialize)]
struct Process {
    name: String,
    pid: u32,
}

#[derive(Serialize, Deserialize)]
struct FileCounts {
    command_buffers: u64,
    without_gpu_time: u64,
    failed: u64,
    unfinished: u64,
    never_committed: u64,
    open_scopes: u64,
    events_over_limit: u64,
    unusable_metrics: u64,
}

#[derive(Serialize, Deserialize)]
struct FileEvent {
    name: String,
    category: String,
    call_path: Vec<String>,
    parent: Option<u32>,
    thread: u32,
    start_ns: u64,
    end_ns: u64,
    input_bytes: Option<u64>,
    output_bytes: Option<u64>,
    metrics: BTreeMap<String, f64>,
    gpu: Option<FileGpu>,
}

#[derive(Serialize, Deserialize)]
struct FileGpu {
    via: String,
    status: String,
    error: Option<String>,
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    scheduling_ns: Option<u64>,
    queue_wait_ns: Option<u64>,
    encoder_gpu_ns: Option<u64>,
    launch: Option<FileLaunch>,
    absent: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct FileLaunch {
    kernel: String,
    grid: [u64; 3],
    threads: [u64; 3],
    max_threads_per_threadgroup: Option<u64>,
    thread_execution_width: Option<u64>,
    static_threadgroup_memory_bytes: Option<u64>,
    threadgroup_occupancy: Option<f64>,
}

/// For readers of the file; trace-attr itself works them out again.
#[derive(Serialize, Default)]
struct Averages {
    by_name: Vec<FileAverage>,
    by_call_path: Vec<FileAverage>,
}

#[derive(Serialize)]
struct FileAverage {
    key: Vec<String>,
    category: &'static str,
    mode: Option<&'static str>,
    calls: u64,
    cpu_total_ns: u64,
    cpu_self_ns: u64,
    cpu_avg_ns: f64,
    command_buffers_timed: u64,
    command_buffers_untimed: u64,
    gpu_total_ns: Option<u64>,
    gpu_busy_ns: Option<u64>,
    gpu_avg_ns: Option<f64>,
    input_bytes: Option<u64>,
    output_bytes: Option<u64>,
    metrics: BTreeMap<String, f64>,
    gflops: Option<f64>,
    gbps: Option<f64>,
}

/// Names of the times in `absent`.
const START: &str = "start_ns";
const SCHEDULING: &str = "scheduling_ns";
const QUEUE_WAIT: &str = "queue_wait_ns";
const ENCODER: &str = "encoder_gpu_ns";
const LAUNCH: &str = "launch";

/// Writes a profile.
pub(super) fn write(profile: &Profile) -> String {
    let origin = profile.started();
    let counts = profile.counts();
    let averages = |by| profile.key_averages(by).rows.iter().map(average).collect();
    let file = File {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "trace-attr".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        process: Process {
            name: profile.origin().process.clone(),
            pid: profile.origin().pid,
        },
        device: profile.device().map(str::to_owned),
        started_unix_ns: profile.origin().unix.map(|Nanos(ns)| ns.to_string()),
        duration_ns: profile.closed().since(origin).0,
        captured: profile.captured(),
        counts: FileCounts {
            command_buffers: counts.command_buffers,
            without_gpu_time: counts.without_gpu_time,
            failed: counts.failed,
            unfinished: counts.unfinished,
            never_committed: counts.never_committed,
            open_scopes: counts.open_scopes,
            events_over_limit: counts.events_over_limit,
            unusable_metrics: counts.unusable_metrics,
        },
        events: profile.events().iter().map(|event| file_event(event, origin)).collect(),
        averages: Averages {
            by_name: averages(GroupBy::Name),
            by_call_path: averages(GroupBy::CallPath),
        },
    };
    // Structs of strings and finite numbers: nothing in them can fail.
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

fn named(metrics: &Metrics) -> BTreeMap<String, f64> {
    metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn average(row: &Average) -> FileAverage {
    FileAverage {
        key: row.key.iter().map(ToString::to_string).collect(),
        category: row.category.name(),
        mode: row.mode.map(super::averages::Mode::name),
        calls: row.calls,
        cpu_total_ns: row.cpu_total.0,
        cpu_self_ns: row.cpu_self.0,
        cpu_avg_ns: row.cpu_avg,
        command_buffers_timed: row.timed,
        command_buffers_untimed: row.untimed,
        gpu_total_ns: row.gpu_total.map(|time| time.0),
        gpu_busy_ns: row.gpu_busy.map(|time| time.0),
        gpu_avg_ns: row.gpu_avg,
        input_bytes: row.input_bytes,
        output_bytes: row.output_bytes,
        metrics: named(&row.metrics),
        gflops: row.gflops(),
        gbps: row.gigabytes_per_second(),
    }
}

fn file_event(event: &Event, origin: HostTime) -> FileEvent {
    FileEvent {
        name: event.name.to_string(),
        category: event.category.name().to_owned(),
        call_path: event.path.frames().iter().map(ToString::to_string).collect(),
        parent: event.parent.map(|at| at.0),
        thread: event.thread,
        start_ns: event.start.since(origin).0,
        end_ns: event.end.since(origin).0,
        input_bytes: event.input_bytes,
        output_bytes: event.output_bytes,
        metrics: named(&event.metrics),
        gpu: event.gpu.as_ref().map(|gpu| file_gpu(gpu, origin)),
    }
}

fn file_gpu(gpu: &GpuWork, origin: HostTime) -> FileGpu {
    let mut absent = BTreeMap::new();
    let mut value = |name: &str, measured: Measured<u64>| {
        if let Err(reason) = measured {
            absent.insert(name.to_owned(), reason.code().to_owned());
        }
        measured.ok()
    };
    let ns = |time: Nanos| time.0;
    FileGpu {
        via: gpu.via.name().to_owned(),
        status: gpu.status.name().to_owned(),
        error: match &gpu.status {
            Status::Failed(message) => Some(message.clone()),
            _ => None,
        },
        start_ns: value(START, gpu.span.map(|span| span.start.since(origin).0)),
        end_ns: gpu.span.ok().map(|span| span.end.since(origin).0),
        scheduling_ns: value(SCHEDULING, gpu.scheduling.map(ns)),
        queue_wait_ns: value(QUEUE_WAIT, gpu.queue_wait.map(ns)),
        encoder_gpu_ns: value(ENCODER, gpu.encoder.map(ns)),
        launch: gpu.launch.as_ref().ok().map(|launch| FileLaunch {
            kernel: launch.kernel.to_string(),
            grid: launch.grid,
            threads: launch.threads,
            max_threads_per_threadgroup: launch.pipeline.map(|limits| limits.max_threads_per_threadgroup),
            thread_execution_width: launch.pipeline.map(|limits| limits.thread_execution_width),
            static_threadgroup_memory_bytes: launch.pipeline.map(|limits| limits.static_threadgroup_memory_bytes),
            threadgroup_occupancy: launch.threadgroup_occupancy(),
        }),
        absent: {
            if let Err(reason) = &gpu.launch {
                absent.insert(LAUNCH.to_owned(), reason.code().to_owned());
            }
            absent
        },
    }
}

/// Reads a profile.
///
/// # Errors
/// No JSON of this schema, a newer version, or an event that contradicts itself (told by its number).
pub(super) fn read(text: &str) -> Result<Profile> {
    let unfit = |error: serde_json::Error| Error::unfit(format!("this is no live profile: {error}"));
    let head: Head = serde_json::from_str(text).map_err(unfit)?;
    if head.schema != SCHEMA {
        return Err(Error::unfit(format!(
            "this is no live profile: its schema is `{}`, not `{SCHEMA}`",
            head.schema
        )));
    }
    if head.schema_version != SCHEMA_VERSION {
        return Err(Error::unfit(format!(
            "the live profile has schema version {}; this trace-attr reads {SCHEMA_VERSION}",
            head.schema_version
        ))
        .with_help("use the trace-attr that wrote it, or a newer one"));
    }
    let file: File = serde_json::from_str(text).map_err(unfit)?;
    let mut names = Names::default();
    let mut events = Vec::with_capacity(file.events.len());
    for (at, stored) in (0u32..).zip(file.events) {
        let event = event(stored, at, &mut names);
        events.push(event.map_err(|what| Error::unfit(format!("event {at} of the live profile: {what}")))?);
    }
    let mut counts = Counts {
        open_scopes: file.counts.open_scopes,
        events_over_limit: file.counts.events_over_limit,
        unusable_metrics: file.counts.unusable_metrics,
        ..Counts::default()
    };
    for gpu in events.iter().filter_map(|event: &Event| event.gpu.as_ref()) {
        counts.count(gpu);
    }
    Ok(Profile::new(
        (HostTime(0), HostTime(file.duration_ns)),
        events,
        counts,
        Origin {
            process: file.process.name,
            pid: file.process.pid,
            unix: file.started_unix_ns.and_then(|ns| ns.parse().ok()).map(Nanos),
            device: file.device,
            captured: file.captured,
        },
    ))
}

/// Each name once: a profile says the same few ones over and over.
#[derive(Default)]
struct Names(BTreeMap<String, Arc<str>>);

impl Names {
    fn get(&mut self, name: String) -> Arc<str> {
        let text = self.0.entry(name).or_insert_with_key(|name| name.as_str().into());
        Arc::clone(text)
    }
}

fn event(stored: FileEvent, at: u32, names: &mut Names) -> Result<Event, String> {
    if stored.parent.is_some_and(|parent| parent >= at) {
        return Err("it stands before the one that it is inside".to_owned());
    }
    if stored.end_ns < stored.start_ns {
        return Err("it ends before it begins".to_owned());
    }
    let category = Category::ALL
        .into_iter()
        .find(|category| category.name() == stored.category);
    let category = category.ok_or_else(|| format!("unknown category `{}`", stored.category))?;
    if (category == Category::Gpu) != stored.gpu.is_some() {
        return Err("category `gpu` and the GPU's part go together".to_owned());
    }
    let mut metrics = Metrics::new();
    for (name, value) in stored.metrics {
        metrics.set(name, value);
    }
    let gpu = stored.gpu.map(|gpu| gpu_work(gpu, &metrics, names)).transpose()?;
    let mut event = Event {
        name: names.get(stored.name),
        category,
        path: CallPath::new(stored.call_path.into_iter().map(|frame| names.get(frame))),
        parent: stored.parent.map(EventIndex),
        thread: stored.thread,
        start: HostTime(stored.start_ns),
        end: HostTime(stored.end_ns),
        input_bytes: stored.input_bytes,
        output_bytes: stored.output_bytes,
        metrics,
        gpu,
    };
    if let Some(Ok(launch)) = event.gpu.as_mut().map(|gpu| gpu.launch.as_mut()) {
        launch.input_bytes = stored.input_bytes;
        launch.output_bytes = stored.output_bytes;
    }
    Ok(event)
}

fn gpu_work(stored: FileGpu, metrics: &Metrics, names: &mut Names) -> Result<GpuWork, String> {
    let reason = |name: &str| -> Result<Absent, String> {
        let code = stored.absent.get(name);
        let code = code.ok_or_else(|| format!("`{name}` is missing, and `absent` has no reason for it"))?;
        Absent::from_code(code).ok_or_else(|| format!("unknown reason `{code}`"))
    };
    let time = |name: &str, ns: Option<u64>| -> Result<Measured<Nanos>, String> {
        Ok(match ns {
            Some(ns) => Ok(Nanos(ns)),
            None => Err(reason(name)?),
        })
    };
    let span = match (stored.start_ns, stored.end_ns) {
        (Some(start), Some(end)) if start < end => Ok(GpuSpan {
            start: HostTime(start),
            end: HostTime(end),
        }),
        (None, None) => Err(reason(START)?),
        _ => return Err("its time on the GPU has no length".to_owned()),
    };
    let status = match (stored.status.as_str(), &stored.error) {
        ("completed", None) => Status::Completed,
        ("failed", Some(message)) => Status::Failed(message.clone()),
        ("unfinished", None) => Status::Unfinished,
        ("never_committed", None) => Status::NeverCommitted,
        (other, _) => return Err(format!("status `{other}` is unknown, or does not go with its error")),
    };
    if span.is_ok() && status != Status::Completed {
        return Err(format!("a command buffer that is {} has no time", status.name()));
    }
    let via = Via::ALL.into_iter().find(|via| via.name() == stored.via);
    let launch = match &stored.launch {
        None => Err(reason(LAUNCH)?),
        Some(launch) => {
            let limits = (
                launch.max_threads_per_threadgroup,
                launch.thread_execution_width,
                launch.static_threadgroup_memory_bytes,
            );
            Ok(Launch {
                pipeline: match limits {
                    (Some(threads), Some(width), Some(memory)) => Some(PipelineLimits {
                        max_threads_per_threadgroup: threads,
                        thread_execution_width: width,
                        static_threadgroup_memory_bytes: memory,
                    }),
                    _ => None,
                },
                metrics: metrics.clone(),
                ..Launch::new(&names.get(launch.kernel.clone()), launch.grid, launch.threads)
            })
        }
    };
    Ok(GpuWork {
        via: via.ok_or_else(|| format!("unknown way `{}`", stored.via))?,
        status,
        span,
        scheduling: time(SCHEDULING, stored.scheduling_ns)?,
        queue_wait: time(QUEUE_WAIT, stored.queue_wait_ns)?,
        encoder: time(ENCODER, stored.encoder_gpu_ns)?,
        launch,
    })
}
