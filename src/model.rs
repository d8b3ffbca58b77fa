//! The nouns: ids, times, [`Submission`], [`Trace`]. Only `std`, no reading and no arithmetic beyond sums.
//!
//! A [`Trace`] is one run of one recording, reduced to the process of interest, with everything that was
//! left out counted beside it. All times are integers of nanoseconds on the recording's own clock.

mod duration;
mod window;

pub use duration::parse_time;
pub use window::{Window, WindowFound, WindowRule, WindowSpan};

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;

/// A length of time in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A moment: ns since the start of the recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Nanos> for Timestamp {
    type Output = Timestamp;
    fn add(self, length: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_add(length.0))
    }
}

/// Times at or above this (2^50 − 1 ns, 13 days) mean "no value" in an export.
pub const NO_TIME: u64 = (1 << 50) - 1;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU64);

        impl $name {
            /// `None` for 2^64 − 1, which exports write for "none".
            pub fn new(value: u64) -> Option<Self> {
                NonZeroU64::new(!value).map($name)
            }

            /// The number as the export has it.
            pub fn get(self) -> u64 {
                !self.0.get()
            }
        }
    };
}

id! {
    /// Numbers a submission: unique in a recording, small, counted by the GPU driver.
    SubmissionId
}
id! {
    /// Numbers an encoder (an `MTLObject`); one encoder can have several submissions.
    EncoderId
}
id! {
    /// Numbers a command buffer (an `MTLObject`).
    CommandBufferId
}

/// A name in the trace's [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub(crate) u32);

/// A [`Label`] in the trace's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(pub u32);

/// Each distinct text once.
#[derive(Debug, Clone, Default)]
pub struct Names {
    texts: Vec<Box<str>>,
    index: HashMap<Box<str>, NameId>,
}

impl Names {
    /// The id of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> NameId {
        if let Some(id) = self.index.get(text) {
            return *id;
        }
        let id = NameId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.into());
        self.index.insert(text.into(), id);
        id
    }

    /// Every text, by id.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// The text of an id from this pool.
    pub fn get(&self, id: NameId) -> &str {
        usize::try_from(id.0)
            .ok()
            .and_then(|at| self.texts.get(at))
            .map_or("", |text| text)
    }
}

/// A process of the recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Name without its pid; empty when the trace has none.
    pub name: String,
    /// `None` when the trace does not say, or when several processes were chosen.
    pub pid: Option<u32>,
}

/// Which table the GPU times come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timing {
    /// `metal-gpu-intervals`: one row is one submission.
    Intervals,
    /// `metal-gpu-execution-points`: a start and an end row make one submission.
    Points,
    /// A live profile: a command buffer is one submission.
    Live,
}

impl Timing {
    /// `intervals`, `points` or `live`.
    pub fn name(self) -> &'static str {
        match self {
            Timing::Intervals => "intervals",
            Timing::Points => "points",
            Timing::Live => "live",
        }
    }
}

/// What a submission's encoder and command buffer are called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Label {
    /// Labels as the trace has them; an empty text is an empty label.
    Known {
        /// The command buffer's label.
        command_buffer: NameId,
        /// The encoder's label.
        encoder: NameId,
        /// The trace says that several encoders were merged into one submission.
        coalesced: bool,
    },
    /// No encoder row and no event label belongs to the submission.
    NoEncoder,
    /// Several encoder rows with different labels claim it.
    Ambiguous,
}

/// A unit of work that the GPU ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// First ns.
    pub start: Timestamp,
    /// Length; the submission occupies `[start, start + duration)`.
    pub duration: Nanos,
    /// The driver's number.
    pub id: Option<SubmissionId>,
    /// The encoder that it belongs to.
    pub encoder: Option<EncoderId>,
    /// The command buffer that it belongs to.
    pub command_buffer: Option<CommandBufferId>,
    /// CPU to GPU latency, where the timing table has it.
    pub latency: Option<Nanos>,
    /// `Compute`, `Vertex`, `Fragment`, `Blit`, or as the trace names it.
    pub channel: NameId,
    /// Index into [`Trace::labels`].
    pub label: LabelId,
}

impl Submission {
    /// First ns after it.
    pub fn end(&self) -> Timestamp {
        self.start + self.duration
    }
}

/// An encoder of the process, from `metal-application-encoders-list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoder {
    /// Its id.
    pub id: EncoderId,
    /// Its labels ([`Label::Ambiguous`] when its rows differ).
    pub label: LabelId,
    /// CPU time spent encoding, never GPU time.
    pub cpu_encode: Option<Nanos>,
    /// Whether the GPU table has a submission of it (before any window).
    pub has_gpu_rows: bool,
}

/// Why a row of the timing table is not counted, in the order in which the reasons are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A start without an end.
    UnpairedStart,
    /// An end without a start.
    UnpairedEnd,
    /// A function value other than 1 (start) and 2 (end).
    OtherFunction,
    /// NULL or impossible times: negative, end before start, after the recording, 2^64 − 1.
    Invalid,
    /// An execution point pair that the submission map does not know.
    NoMapping,
    /// The process cell is NULL.
    NoProcess,
    /// Another process.
    OtherProcess,
    /// Repeats a shallower row.
    Nested,
    /// Starts outside the chosen window.
    OutsideWindow,
}

impl Reason {
    /// All of them, in the order of the JSON contract.
    pub const ALL: [Reason; 9] = [
        Reason::UnpairedStart,
        Reason::UnpairedEnd,
        Reason::OtherFunction,
        Reason::Invalid,
        Reason::NoMapping,
        Reason::NoProcess,
        Reason::OtherProcess,
        Reason::OutsideWindow,
        Reason::Nested,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Reason::UnpairedStart => "unpaired_start",
            Reason::UnpairedEnd => "unpaired_end",
            Reason::OtherFunction => "other_function",
            Reason::Invalid => "invalid",
            Reason::NoMapping => "no_mapping",
            Reason::NoProcess => "no_process",
            Reason::OtherProcess => "other_process",
            Reason::OutsideWindow => "outside_window",
            Reason::Nested => "nested",
        }
    }

    /// A sentence for readers of a report.
    pub fn meaning(self) -> &'static str {
        match self {
            Reason::UnpairedStart => "a start point without an end point",
            Reason::UnpairedEnd => "an end point without a start point",
            Reason::OtherFunction => "a point that is neither start nor end",
            Reason::Invalid => "no usable start or duration (NULL, negative, or after the recording)",
            Reason::NoMapping => "not in the submission map, so its process is not known",
            Reason::NoProcess => "no process in the trace",
            Reason::OtherProcess => "belongs to another process",
            Reason::OutsideWindow => "starts outside the window",
            Reason::Nested => "repeats a shallower row of the same encoder",
        }
    }
}

/// Rows that are not counted, and their time where it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOutCount {
    /// Rows of the timing table (a pair of points is two).
    pub rows: u64,
    /// Sum of durations; `None` when such rows have none.
    pub total: Option<Nanos>,
}

/// Every [`Reason`] with its count; a reason that is not in the map has no row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<Reason, LeftOutCount>);

impl LeftOut {
    /// Counts `rows` more rows, with their time if they have one.
    pub fn add(&mut self, reason: Reason, rows: u64, total: Option<Nanos>) {
        let count = self.0.entry(reason).or_default();
        count.rows += rows;
        if let Some(Nanos(ns)) = total {
            count.total = Some(Nanos(count.total.map_or(0, |t| t.0).saturating_add(ns)));
        }
    }

    /// The count of one reason, zero rows when there is none.
    pub fn get(&self, reason: Reason) -> LeftOutCount {
        self.0.get(&reason).copied().unwrap_or_default()
    }

    /// All rows that are left out.
    pub fn rows(&self) -> u64 {
        self.0.values().map(|count| count.rows).sum()
    }
}

/// Both timing tables held against each other by submission id (product: one tick of the 24 MHz GPU clock is allowed).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CrossCheck {
    /// Submissions in both tables, equal to within 42 ns.
    pub both: u64,
    /// Only in the execution points.
    pub only_points: u64,
    /// Only in the intervals.
    pub only_intervals: u64,
    /// In both, more than 42 ns apart.
    pub differ: u64,
    /// Time of the submissions that are not in `both`.
    pub disputed: Nanos,
}

/// A kernel of the process, from `metal-shader-profiler-shader-list`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    /// Function name without its trailing ` (id)`.
    pub function: String,
    /// Pipeline label, or the function name when it has none; without its trailing ` (id)`.
    pub pipeline: String,
}

/// Time that Shader Timeline sampled for a kernel (samples overlap: only shares of them mean something).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShaderSamples {
    /// Kernel (pipeline) name without its id.
    pub name: String,
    /// Samples.
    pub rows: u64,
    /// Sum of the sampled durations.
    pub sampled: Nanos,
}

/// How long the machine was in a state during the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTime {
    /// `Nominal`, `Minimum`, …
    pub state: String,
    /// Whether somebody forced it.
    pub induced: bool,
    /// Its time inside the window.
    pub time: Nanos,
}

/// An attribute of a recording that can hold a secret or a person's name: arguments, user paths, device names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFact {
    /// Element of the table of contents (`process`, `device`).
    pub element: String,
    /// Its attribute.
    pub attribute: String,
    /// Its value.
    pub value: String,
}

/// What the recording says about itself and its machine; `None` and empty: it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingState {
    /// Why the recording ended (`Time limit reached`, …).
    pub end_reason: Option<String>,
    /// Start date and time as the table of contents has it.
    pub start_date: Option<String>,
    /// Length of the recording.
    pub duration: Option<Nanos>,
    /// Instruments version with its build.
    pub instruments_version: Option<String>,
    /// Operating system version of the device.
    pub os_version: Option<String>,
    /// The Shader Timeline setting (`Disabled`, …).
    pub shader_timeline: Option<String>,
    /// Thermal states of the device in the window.
    pub thermal: Vec<StateTime>,
    /// GPU performance states in the window.
    pub performance: Vec<StateTime>,
    /// Private facts; empty unless they were asked for (`--show-private`), so that no report can show them by accident.
    pub private: Vec<PrivateFact>,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Note,
    /// It can change what the numbers mean.
    Warning,
}

impl Severity {
    /// `note` or `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
        }
    }
}

/// A remark with a stable code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable code (`cross_check`, `merged_nodes`, …).
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence.
    pub text: String,
}

impl Note {
    /// A remark of severity `note`.
    pub fn remark(code: &'static str, text: impl Into<String>) -> Self {
        Note {
            code,
            severity: Severity::Note,
            text: text.into(),
        }
    }

    /// A remark of severity `warning`.
    pub fn warning(code: &'static str, text: impl Into<String>) -> Self {
        Note {
            code,
            severity: Severity::Warning,
            text: text.into(),
        }
    }
}

/// One run of one recording, reduced to one process (or all) and one window.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The run's number in the recording.
    pub run: u64,
    /// The process that is counted; name `all` and no pid for every process.
    pub process: Process,
    /// The table that the times come from.
    pub timing: Timing,
    /// GPU name, when the trace says it.
    pub gpu: Option<String>,
    /// Texts of labels and channels.
    pub names: Names,
    /// Distinct labels; [`Submission::label`] and [`Encoder::label`] index it.
    pub labels: Vec<Label>,
    /// Counted submissions, ordered by start, then end, then id.
    pub submissions: Vec<Submission>,
    /// Encoders of the process, ordered by id; `None` when the trace has no encoders list.
    pub encoders: Option<Vec<Encoder>>,
    /// Resolved window.
    pub window: Window,
    /// What its rule found in the trace.
    pub window_found: WindowFound,
    /// Submissions of the process before the window was applied.
    pub submissions_in_process: u64,
    /// Rows of the timing table.
    pub rows_read: u64,
    /// Rows that are not counted, by reason: `rows_read` = counted + left out.
    pub left_out: LeftOut,
    /// Present when the trace has both timing tables.
    pub cross_check: Option<CrossCheck>,
    /// Kernels of the process, sorted, each once; `None` when the trace has no shader list.
    pub kernels: Option<Vec<Kernel>>,
    /// Rows of the Shader Timeline table (all processes); `None` when the table is not there.
    pub shader_timeline_rows: Option<u64>,
    /// Shader Timeline samples of the process, most time first.
    pub shader_samples: Vec<ShaderSamples>,
    /// First start to last end of those samples.
    pub shader_sampled_span: Option<Window>,
    /// Facts about the recording and the machine.
    pub state: RecordingState,
    /// Remarks that arose while joining.
    pub notes: Vec<Note>,
    /// Equal for equal content, however compressed or formatted.
    pub fingerprint: u64,
}

impl Trace {
    /// The label of a submission or an encoder.
    pub fn label(&self, id: LabelId) -> &Label {
        const NONE: Label = Label::NoEncoder;
        usize::try_from(id.0)
            .ok()
            .and_then(|at| self.labels.get(at))
            .unwrap_or(&NONE)
    }
}
