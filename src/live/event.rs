//! What a profile holds: an [`Event`] for every scope, stage and command buffer, and the reason for every number that
//! could not be had.
//!
//! What each way of watching a command buffer can know is fixed:
//!
//! | way ([`Via`]) | label, path, GPU start and end, status | queue wait | kernel, grid, pipeline limits, hooks | encoder time |
//! |---|---|---|---|---|
//! | `Observed` | yes | no | no | no |
//! | `ObservedLaunch` | yes | no | yes | no |
//! | `Committed` | yes | yes | no | no |
//! | `OwnDispatch` | yes | yes | yes | where the device samples at stage boundaries |

use std::sync::Arc;

use super::clock::{Calibration, HostTime, Offset, ns_of_seconds};
use super::metrics::Metrics;
use crate::model::Nanos;

/// A number, or why there is none. Never 0 for "not measured".
pub type Measured<T> = Result<T, Absent>;

/// Why something was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Absent {
    /// The program committed the command buffer itself, at a moment that is not known.
    NotCommittedHere,
    /// The command buffer was watched without saying what it launches.
    NoLaunch,
    /// Stage boundaries are sampled in this library's own dispatches only.
    NotOwnDispatch,
    /// The device does not sample counters at stage boundaries.
    CountersUnsupported,
    /// The command buffer ended in an error.
    Failed,
    /// The command buffer had not completed when the profile was closed.
    Unfinished,
    /// No commit of the command buffer was seen before the profile was closed.
    NeverCommitted,
    /// The device says 0, or no number at all.
    NotAvailable,
    /// The end lies before the start.
    EndBeforeStart,
    /// Start and end are the same: shorter than the clock can tell.
    BelowResolution,
    /// The GPU began before the commit: one of both times is wrong.
    StartBeforeCommit,
    /// Both counter samples are 0: the encoder had no work, or nothing was written.
    SampleEmpty,
    /// One counter sample is 0.
    SamplePartial,
    /// A counter sample has all bits set, which is Metal's error value.
    SampleErrorValue,
    /// The counter samples are not in their order.
    SampleNotOrdered,
    /// The encoder would have taken longer than its command buffer.
    LongerThanCommandBuffer,
    /// The ring of counter samples was full.
    RingFull,
    /// The clocks were not compared over a long enough time.
    CalibrationTooShort,
}

impl Absent {
    /// Every reason.
    pub const ALL: [Absent; 18] = [
        Absent::NotCommittedHere,
        Absent::NoLaunch,
        Absent::NotOwnDispatch,
        Absent::CountersUnsupported,
        Absent::Failed,
        Absent::Unfinished,
        Absent::NeverCommitted,
        Absent::NotAvailable,
        Absent::EndBeforeStart,
        Absent::BelowResolution,
        Absent::StartBeforeCommit,
        Absent::SampleEmpty,
        Absent::SamplePartial,
        Absent::SampleErrorValue,
        Absent::SampleNotOrdered,
        Absent::LongerThanCommandBuffer,
        Absent::RingFull,
        Absent::CalibrationTooShort,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Absent::NotCommittedHere => "not_committed_here",
            Absent::NoLaunch => "no_launch",
            Absent::NotOwnDispatch => "not_own_dispatch",
            Absent::CountersUnsupported => "counters_unsupported",
            Absent::Failed => "failed",
            Absent::Unfinished => "unfinished",
            Absent::NeverCommitted => "never_committed",
            Absent::NotAvailable => "not_available",
            Absent::EndBeforeStart => "end_before_start",
            Absent::BelowResolution => "below_resolution",
            Absent::StartBeforeCommit => "start_before_commit",
            Absent::SampleEmpty => "sample_empty",
            Absent::SamplePartial => "sample_partial",
            Absent::SampleErrorValue => "sample_error_value",
            Absent::SampleNotOrdered => "sample_not_ordered",
            Absent::LongerThanCommandBuffer => "longer_than_command_buffer",
            Absent::RingFull => "ring_full",
            Absent::CalibrationTooShort => "calibration_too_short",
        }
    }

    /// The reason with this code.
    pub fn from_code(code: &str) -> Option<Absent> {
        Absent::ALL.into_iter().find(|absent| absent.code() == code)
    }
}

/// What kind of time an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Work of the host that fits nowhere else.
    Host,
    /// A scope of the program.
    Scope,
    /// Building libraries and pipelines.
    Compile,
    /// A whole call: `execute_total`, `prepared_dispatch`.
    Runtime,
    /// A command buffer.
    Gpu,
    /// Buffers made, read or released.
    Memory,
}

impl Category {
    /// Every category.
    pub const ALL: [Category; 6] = [
        Category::Host,
        Category::Scope,
        Category::Compile,
        Category::Runtime,
        Category::Gpu,
        Category::Memory,
    ];

    /// `host`, `scope`, `compile`, `runtime`, `gpu`, `memory`.
    pub fn name(self) -> &'static str {
        match self {
            Category::Host => "host",
            Category::Scope => "scope",
            Category::Compile => "compile",
            Category::Runtime => "runtime",
            Category::Gpu => "gpu",
            Category::Memory => "memory",
        }
    }
}

/// The scopes around an event, outermost first.
///
/// An array of names and not a joined text, because a name may hold any character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPath(Arc<[Arc<str>]>);

impl CallPath {
    /// A path of these scopes.
    pub fn new(frames: impl IntoIterator<Item = Arc<str>>) -> CallPath {
        CallPath(frames.into_iter().collect())
    }

    /// The scopes, outermost first.
    pub fn frames(&self) -> &[Arc<str>] {
        &self.0
    }

    /// The scopes joined with `/`; a `/` or `\` in a name has a `\` before it, so that the text is unambiguous.
    pub fn joined(&self) -> String {
        joined(self.0.iter().map(|frame| &**frame))
    }
}

/// Names joined with `/`, with `/` and `\` in them escaped by `\`.
pub fn joined<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (at, name) in names.into_iter().enumerate() {
        if at > 0 {
            text.push('/');
        }
        for character in name.chars() {
            if matches!(character, '/' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
    }
    text
}

impl Default for CallPath {
    /// Outside of every scope.
    fn default() -> Self {
        CallPath::new([])
    }
}

/// Limits of a pipeline state, as Metal tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelineLimits {
    /// `maxTotalThreadsPerThreadgroup`.
    pub max_threads_per_threadgroup: u64,
    /// `threadExecutionWidth`.
    pub thread_execution_width: u64,
    /// `staticThreadgroupMemoryLength`, bytes.
    pub static_threadgroup_memory_bytes: u64,
}

/// A kernel launch, as its program knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Name of the kernel function.
    pub kernel: Arc<str>,
    /// Threads of the whole grid.
    pub grid: [u64; 3],
    /// Threads of a threadgroup.
    pub threads: [u64; 3],
    /// Limits of its pipeline; `None` when the program does not say.
    pub pipeline: Option<PipelineLimits>,
    /// Bytes of its inputs.
    pub input_bytes: Option<u64>,
    /// Bytes of its outputs.
    pub output_bytes: Option<u64>,
    /// Its work; when there is none, the kernel's hook is asked.
    pub metrics: Metrics,
}

impl Launch {
    /// A launch of which no more is known than this.
    pub fn new(kernel: &str, grid: [u64; 3], threads: [u64; 3]) -> Launch {
        Launch {
            kernel: kernel.into(),
            grid,
            threads,
            pipeline: None,
            input_bytes: None,
            output_bytes: None,
            metrics: Metrics::new(),
        }
    }

    /// Threads of the threadgroup by what the pipeline allows; `None` without its limits.
    pub fn threadgroup_occupancy(&self) -> Option<f64> {
        let most = self.pipeline?.max_threads_per_threadgroup;
        let threads = self.threads.iter().try_fold(1u64, |all, &n| all.checked_mul(n))?;
        (most > 0).then(|| threads as f64 / most as f64)
    }
}

/// How a command buffer came to be watched; fixes what can be known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// `observe`: the program commits.
    Observed,
    /// `observe_launch`: the program commits, and says what it launches.
    ObservedLaunch,
    /// `commit`: committed here.
    Committed,
    /// This library's own dispatch.
    OwnDispatch,
}

impl Via {
    /// Every way.
    pub const ALL: [Via; 4] = [Via::Observed, Via::ObservedLaunch, Via::Committed, Via::OwnDispatch];

    /// `observe`, `observe_launch`, `commit`, `dispatch`.
    pub fn name(self) -> &'static str {
        match self {
            Via::Observed => "observe",
            Via::ObservedLaunch => "observe_launch",
            Via::Committed => "commit",
            Via::OwnDispatch => "dispatch",
        }
    }
}

/// How a command buffer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It ran.
    Completed,
    /// It ended in an error, in Metal's words; it has no time.
    Failed(String),
    /// It was committed, and had not completed when the profile was closed.
    Unfinished,
    /// No commit of it was seen.
    NeverCommitted,
}

impl Status {
    /// `completed`, `failed`, `unfinished`, `never_committed`.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Failed(_) => "failed",
            Status::Unfinished => "unfinished",
            Status::NeverCommitted => "never_committed",
        }
    }
}

/// A stretch of time on the GPU, `[start, end)`, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuSpan {
    /// First ns.
    pub start: HostTime,
    /// First ns after it.
    pub end: HostTime,
}

impl GpuSpan {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.end.since(self.start)
    }
}

/// The GPU's part of a command buffer's event.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuWork {
    /// How it came to be watched.
    pub via: Via,
    /// How it ended.
    pub status: Status,
    /// When the GPU ran it.
    pub span: Measured<GpuSpan>,
    /// Time that the CPU spent on scheduling it (`kernelEndTime − kernelStartTime`). Best effort on Apple silicon: what
    /// the driver counts there is not documented.
    pub scheduling: Measured<Nanos>,
    /// From the commit to the GPU's start.
    pub queue_wait: Measured<Nanos>,
    /// Time of the encoder by samples at its stage boundaries.
    pub encoder: Measured<Nanos>,
    /// What it launched.
    pub launch: Measured<Launch>,
}

/// The place of an event in [`Profile::events`](super::Profile::events).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventIndex(pub(super) u32);

impl EventIndex {
    /// As a number.
    pub fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Something that took time: a scope, a stage of the runtime, or a command buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Scope name, stage name (`create_pipeline`), or the command buffer's label.
    pub name: Arc<str>,
    /// What kind of time it is.
    pub category: Category,
    /// The scopes around it.
    pub path: CallPath,
    /// The innermost scope or stage around it: an event of the same profile.
    pub parent: Option<EventIndex>,
    /// The thread that it began on, numbered from 0 in the order in which threads were seen.
    pub thread: u32,
    /// Begin on the host: of a command buffer, when it was given to the profile.
    pub start: HostTime,
    /// End on the host: of a command buffer, when it was committed here, else equal to `start`.
    pub end: HostTime,
    /// Bytes that went in.
    pub input_bytes: Option<u64>,
    /// Bytes that came out.
    pub output_bytes: Option<u64>,
    /// Work that the program says it is.
    pub metrics: Metrics,
    /// The GPU's part: of a command buffer only.
    pub gpu: Option<GpuWork>,
}

impl Event {
    /// Time on the host.
    pub fn cpu(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// Name of the kernel that it launched.
    pub fn kernel(&self) -> Option<&Arc<str>> {
        let launch = self.gpu.as_ref()?.launch.as_ref().ok()?;
        Some(&launch.kernel)
    }

    /// The last frame of its own path: `name`, or `name:kernel` of a launch.
    pub fn frame(&self) -> Arc<str> {
        match self.kernel() {
            Some(kernel) => format!("{}:{kernel}", self.name).into(),
            None => Arc::clone(&self.name),
        }
    }

    /// The GPU's time, where it ran and was measured.
    pub fn gpu_span(&self) -> Option<GpuSpan> {
        self.gpu.as_ref()?.span.ok()
    }
}

/// The times of a completed command buffer as the device says them: seconds on the machine's clock, 0 for "none".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandBufferTimes {
    /// `GPUStartTime`.
    pub gpu_start: f64,
    /// `GPUEndTime`.
    pub gpu_end: f64,
    /// `kernelStartTime`.
    pub kernel_start: f64,
    /// `kernelEndTime`.
    pub kernel_end: f64,
}

impl CommandBufferTimes {
    /// When the GPU ran it, on the host's clock.
    ///
    /// Absent when a time is 0 or no number, when the end lies before the start, and when both are equal.
    pub fn span(&self, offset: Offset) -> Measured<GpuSpan> {
        let (start, end) = interval(self.gpu_start, self.gpu_end)?;
        let start = offset.host(start).ok_or(Absent::NotAvailable)?;
        let end = offset.host(end).ok_or(Absent::NotAvailable)?;
        Ok(GpuSpan { start, end })
    }

    /// Time that the CPU spent on scheduling it.
    ///
    /// Absent by the rules of [`CommandBufferTimes::span`].
    pub fn scheduling(&self) -> Measured<Nanos> {
        let (start, end) = interval(self.kernel_start, self.kernel_end)?;
        Ok(Nanos(end - start))
    }

    /// How long the GPU ran it.
    ///
    /// Absent by the rules of [`CommandBufferTimes::span`].
    pub fn gpu(&self) -> Measured<Nanos> {
        let (start, end) = interval(self.gpu_start, self.gpu_end)?;
        Ok(Nanos(end - start))
    }
}

/// Two readings of a device's clock in seconds, as ns in their order.
fn interval(start: f64, end: f64) -> Measured<(u64, u64)> {
    let start = ns_of_seconds(start).ok_or(Absent::NotAvailable)?;
    let end = ns_of_seconds(end).ok_or(Absent::NotAvailable)?;
    match start.cmp(&end) {
        std::cmp::Ordering::Less => Ok((start, end)),
        std::cmp::Ordering::Equal => Err(Absent::BelowResolution),
        std::cmp::Ordering::Greater => Err(Absent::EndBeforeStart),
    }
}

/// Time of an encoder from the samples at its start and end.
///
/// Absent when the samples are empty, partly written, Metal's error value or not in order, and when the encoder would
/// have taken longer than its command buffer by more than 1 % and 1 µs.
pub fn encoder_time(samples: [u64; 2], calibration: &Calibration, command_buffer: Measured<Nanos>) -> Measured<Nanos> {
    let [start, end] = samples;
    match samples {
        [0, 0] => return Err(Absent::SampleEmpty),
        [u64::MAX, _] | [_, u64::MAX] => return Err(Absent::SampleErrorValue),
        [0, _] | [_, 0] => return Err(Absent::SamplePartial),
        _ if end < start => return Err(Absent::SampleNotOrdered),
        _ if end == start => return Err(Absent::BelowResolution),
        _ => {}
    }
    let length = calibration.length(end - start);
    let most = command_buffer?.0;
    if length.0 > most.saturating_add(most / 100).saturating_add(1_000) {
        return Err(Absent::LongerThanCommandBuffer);
    }
    Ok(length)
}
