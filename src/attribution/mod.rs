//! Numbers of one trial: a [`Trace`](crate::model::Trace) and a grouping give [`Group`]s with [`Stats`]. Pure: no IO, nothing fails.
//!
//! `group` knows how a submission gets its key (bucket, encoder family, phase, channel), `groupings` makes the groups of
//! all of them at once, `stats` the percentiles and the interval union, `kernels` the kernel families, `label_map` the
//! names of phases across engines, `gaps` the time between submissions, `histogram` durations by length, `busy` when the GPU was
//! busy. `cells`, `ranked` and `foremost` are what makes that linear in the submissions.

pub mod busy;
mod cells;
mod encoders;
pub(crate) mod foremost;
pub mod gaps;
pub mod group;
pub(crate) mod groupings;
pub mod histogram;
pub mod kernels;
pub mod label_map;
mod ranked;
pub mod stats;

#[cfg(test)]
pub(crate) mod fixture;

pub use busy::{BusyLane, BusySpan, BusyTimeline, busy_timeline};
pub use gaps::{Gap, GapBand, Gaps, gaps};
pub use group::{Attribution, Buckets, GroupBy, Key, attribute, encoder_family, is_real_label, phase};
pub use histogram::{Histogram, HistogramBin};
pub use kernels::{KernelFamilies, KernelRule, KernelRules};
pub use label_map::{LabelMap, LabelMatches, LabelRule, MappedSide, PhaseNames, label_matches};

use crate::model::{Nanos, Timestamp};

/// One row of a table: a key and its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Bucket, encoder family, phase or channel.
    pub key: String,
    /// The key is a label of several encoders (`A & B`, `Coelasced N Encoders`); its time is not split.
    pub coalesced: bool,
    /// Encoders with this key that have no submission in the timing table, of all with this key; `None` without an encoders list.
    pub encoders_without_submission: Option<(u64, u64)>,
    /// The numbers.
    pub stats: Stats,
}

/// Numbers of a set of submissions in one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// How many.
    pub submissions: u64,
    /// Sum of durations (not clipped to the window).
    pub total: Nanos,
    /// Length of the union of their intervals, clipped to the window.
    pub busy: Nanos,
    /// Per submission; `None` when there is none.
    pub durations: Option<Durations>,
    /// Distinct encoder ids with a counted submission; `None` when the trace has no encoder ids.
    pub encoders: Option<u64>,
    /// Distinct command buffer ids with a counted submission; `None` when the trace has no command buffer ids.
    pub command_buffers: Option<u64>,
    /// CPU encoding time of the encoders counted in `encoders`; `None` for buckets and channels, and without an encoders list.
    pub cpu_encode: Option<Nanos>,
    /// CPU to GPU latency; `None` when no submission has one.
    pub latency: Option<Latency>,
}

/// Distribution of durations of one trial and group, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Durations {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median: the mean of the middle two for an even count, so it may end in .5.
    pub p50: f64,
    /// Nearest rank.
    pub p95: Nanos,
    /// Nearest rank.
    pub p99: Nanos,
    /// Shortest.
    pub min: Nanos,
    /// Longest.
    pub max: Nanos,
}

/// Label coverage of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderLabels {
    /// Encoders of the process.
    pub all: u64,
    /// Those whose phase is neither `(unlabelled)` nor `(unknown)` nor `(ambiguous)`.
    pub labelled: u64,
}

/// CPU to GPU latency of one trial and group, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Submissions that have a latency.
    pub samples: u64,
    /// Median (mean of the middle two).
    pub p50: f64,
    /// Nearest rank.
    pub p95: Nanos,
}

/// One long submission, for the section *Slowest submissions*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowSubmission {
    /// First ns.
    pub start: Timestamp,
    /// Length.
    pub duration: Nanos,
    /// Channel name.
    pub channel: String,
    /// Phase key.
    pub phase: String,
    /// Encoder family key.
    pub encoder: String,
}
