//! Two sides of trials (or one) give a [`Comparison`]: medians over trials, deltas A − B, findings, notes. Pure.
//!
//! What goes in: [`Trial`]s, each made from one [`Trace`](crate::model::Trace). What comes out is what every
//! report prints; reports compute nothing themselves. `trial` makes trials, `rows` medians and deltas,
//! `verdict` what may be said, `gate` limits, `assess` brings these to every row,
//! `findings` what to look at first, `notes` what limits the comparison, `words` the sentences' numbers.

mod assess;
pub mod baseline;
mod controls;
mod findings;
pub mod gate;
mod hints;
mod label_map;
pub mod noise;
mod notes;
mod order;
mod rows;
mod trial;
pub mod verdict;
mod words;

use gate::{RowKey, Table};

pub use crate::inference::Verdict;
pub use baseline::Baseline;
pub use controls::Controls;
pub use gate::{Gate, GateRules};
pub use hints::Hints;
pub use label_map::{MappedLabels, MappedRule, MappedTime, MappedTotals};
pub use noise::Noise;
pub use order::Slot;
pub use trial::TrialOptions;
pub use verdict::Judgement;
pub(crate) use words::bound_beside;
pub use words::headline;

use std::collections::{BTreeMap, HashMap};

use crate::attribution::{
    Buckets, BusyTimeline, EncoderLabels, Gaps, Group, Histogram, KernelFamilies, LabelMap, LabelMatches,
    SlowSubmission, Stats,
};
use crate::error::{Error, Result};
use crate::model::{
    CrossCheck, LeftOut, Nanos, Note, Process, RecordingState, ShaderSamples, Timestamp, Timing, Window, WindowFound,
    WindowRule,
};

/// One trial with all its numbers; what is left of a trace after attribution.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Input as it is shown: last path component and as many parents as tell the inputs apart.
    pub input: String,
    /// Run number in the recording.
    pub run: u64,
    /// Process that was counted.
    pub process: Process,
    /// What times are divided by (tokens, frames …); `None`: per trial.
    pub units: Option<u64>,
    /// GPU name.
    pub gpu: Option<String>,
    /// Rows of the timing table.
    pub rows_read: u64,
    /// Submissions of the process before the window was applied.
    pub submissions_in_process: u64,
    /// All counted submissions together.
    pub all: Stats,
    /// Resolved window.
    pub window: Window,
    /// What the window rule found in this trial.
    pub window_found: WindowFound,
    /// First start of a counted submission.
    pub first_start: Option<Timestamp>,
    /// Last end of a counted submission.
    pub last_end: Option<Timestamp>,
    /// By duration bucket, in the order of the edges, every bucket present.
    pub buckets: Vec<Group>,
    /// By encoder family.
    pub encoders: Vec<Group>,
    /// By phase.
    pub phases: Vec<Group>,
    /// By channel.
    pub channels: Vec<Group>,
    /// Encoders of the process in the encoders list, and those whose phase is a real label; `None` without the list.
    pub encoder_labels: Option<EncoderLabels>,
    /// Time of counted submissions whose phase is a real label.
    pub labelled_total: Nanos,
    /// What a label map took of it; `None` without one.
    pub label_matches: Option<LabelMatches>,
    /// Kernels by family; `None` when the trace has no shader list.
    pub kernels: Option<KernelFamilies>,
    /// Rows of the Shader Timeline table.
    pub shader_timeline_rows: Option<u64>,
    /// Shader Timeline samples by kernel.
    pub shader_samples: Vec<ShaderSamples>,
    /// First start to last end of those samples.
    pub shader_sampled_span: Option<Window>,
    /// Durations of all counted submissions; `None` in a baseline that was stored without them.
    pub histogram: Option<Histogram>,
    /// When the GPU was busy; `None` when it was not, or nobody asked ([`TrialOptions::timeline_spans`]).
    pub timeline: Option<BusyTimeline>,
    /// Time between submissions.
    pub gaps: Gaps,
    /// The longest submissions, longest first.
    pub slowest: Vec<SlowSubmission>,
    /// Rows that are not counted.
    pub left_out: LeftOut,
    /// Both timing tables held against each other.
    pub cross_check: Option<CrossCheck>,
    /// The recording and its machine.
    pub state: RecordingState,
    /// Remarks from joining this trial.
    pub notes: Vec<Note>,
    /// See [`Trace::fingerprint`](crate::model::Trace::fingerprint).
    pub fingerprint: u64,
}

/// All trials of one thing.
#[derive(Debug, Clone)]
pub struct Side {
    /// Name in every report.
    pub name: String,
    /// Trials in the order of the arguments; at least one.
    pub trials: Vec<Trial>,
}

/// How the sides are held against each other.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// What still counts as no difference, percent.
    pub margin_pct: f64,
    /// The k-th trial of A belongs to the k-th of B, in the order of the arguments.
    pub paired: bool,
    /// Reasons not to compare become notes.
    pub force: bool,
    /// Noise between sessions.
    pub noise: Option<Noise>,
    /// Phases that are equal on both sides.
    pub controls: Option<regex::Regex>,
    /// What the user says of rows.
    pub hints: Hints,
    /// Names of phases on both sides; no rule: phases are called as they are.
    pub label_map: LabelMap,
    /// Limits.
    pub gate: Option<GateRules>,
    /// Side B was stored earlier; these are the warnings of that time.
    pub baseline: Option<Vec<Note>>,
}

impl Default for CompareOptions {
    /// A margin of 1 %, nothing else.
    fn default() -> Self {
        CompareOptions {
            margin_pct: 1.0,
            paired: false,
            force: false,
            noise: None,
            controls: None,
            hints: Hints::default(),
            label_map: LabelMap::default(),
            gate: None,
            baseline: None,
        }
    }
}

/// What holds for the whole comparison; part of the JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Timing table, one for all trials that were read.
    pub timing: Timing,
    /// Timing table of side B: another one only in a baseline.
    pub timing_b: Timing,
    /// `token`, `frame`, …; `None`: per trial.
    pub unit: Option<String>,
    /// The same of side B: another one only in a baseline.
    pub unit_b: Option<String>,
    /// Bucket edges.
    pub buckets: Buckets,
    /// Window rule of side A.
    pub window_a: WindowRule,
    /// Window rule of side B.
    pub window_b: WindowRule,
    /// How many rows *Slowest submissions* and *Longest gaps* have.
    pub slowest: usize,
}

/// The outcome: everything that a report prints.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Settings.
    pub settings: Settings,
    /// What you work on.
    pub a: Side,
    /// What you compare it to; `None` for `report`.
    pub b: Option<Side>,
    /// Length of the union (`busy` row: its delta speaks of busy time).
    pub busy: Row,
    /// Sum of durations: the median of the trials' totals, not the sum of the rows.
    pub total: Row,
    /// By bucket, in edge order.
    pub buckets: Vec<Row>,
    /// By encoder family, delta descending.
    pub encoders: Vec<Row>,
    /// By phase, A's total descending.
    pub phases: Vec<Row>,
    /// By channel, delta descending.
    pub channels: Vec<Row>,
    /// What a label map did to the phases; `None` without one.
    pub label_map: Option<MappedLabels>,
    /// Hints for kernel families that a side has: they have no time of their own, so no finding speaks of them.
    pub kernel_hints: BTreeMap<String, String>,
    /// Durations of submissions, shortest first; bins between two that hold something are all there.
    pub histogram: Vec<HistogramRow>,
    /// Idle stretches by length band, per side.
    pub gaps: Vec<GapRow>,
    /// Ranked rows with a positive delta (with one side: the phases with most time).
    pub findings: Vec<Finding>,
    /// Remarks on the whole and, named by input, on trials; warnings first.
    pub notes: Vec<Note>,
    /// Why the sides must not be called faster or slower; empty when nothing forbids it.
    pub incomparable: Vec<Incomparable>,
    /// The phases that are equal on both sides; `None` when none were named.
    pub controls: Option<Controls>,
    /// Limits and what came of them; `None` without limits.
    pub gate: Option<Gate>,
    /// When each trial was recorded, A's trials first.
    pub slots: Vec<Slot>,
    /// How the intervals were made and what they were held against.
    pub inference: InferenceSettings,
}

/// How intervals and verdicts were made; part of the JSON's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct InferenceSettings {
    /// What still counts as no difference, percent.
    pub margin_pct: f64,
    /// Whether trials were taken in pairs.
    pub paired: bool,
    /// Whether reasons not to compare were overruled.
    pub forced: bool,
    /// Sessions that the noise was measured on; `None` without a noise file.
    pub noise_sessions: Option<usize>,
    /// Whether side B was stored earlier.
    pub baseline: bool,
}

/// A reason why totals of the two sides do not compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomparable {
    /// Stable code: `gpu_differs`, `unit_differs`, `window_differs`, `timing_differs`, `unequal_work`.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
}

/// One row of a two-sided table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Key (for the single rows: `busy`, `total`).
    pub key: String,
    /// Side A; `None` when the key is absent in all its trials.
    pub a: Option<Cell>,
    /// Side B; `None` when the key is absent in all its trials, or there is no B.
    pub b: Option<Cell>,
    /// How they differ; `None` when there is no B.
    pub change: Option<Change>,
    /// `coalesced`, `incomplete`, sorted.
    pub flags: Vec<&'static str>,
    /// What is said of it; `None` when there is no B.
    pub judgement: Option<Judgement>,
}

/// How A differs from B: missing is a variant, never a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Nothing on side B. `delta_us` is A's value; `share_pct` is of B's total, `None` when that is 0.
    OnlyA {
        /// µs per unit.
        delta_us: f64,
        /// Percent of B's total.
        share_pct: Option<f64>,
    },
    /// Nothing on side A: −100 %.
    OnlyB {
        /// µs per unit, ≤ 0.
        delta_us: f64,
        /// Percent of B's total.
        share_pct: Option<f64>,
    },
    /// On both sides.
    Both {
        /// A − B in µs per unit.
        delta_us: f64,
        /// Percent of B; 0 when both are 0, `None` when only B is 0.
        delta_pct: Option<f64>,
        /// Percent of B's total.
        share_pct: Option<f64>,
        /// Part of the change that comes from the number of submissions: 1 + delta = (1 + count)(1 + per submission).
        count_pct: Option<f64>,
        /// Part of the change that comes from the time per submission.
        per_submission_pct: Option<f64>,
    },
}

/// One side of a row: medians over trials of the per-trial values, with their spread.
///
/// A trial that lacks the key counts as 0 submissions and 0 ns, and has no percentiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Per unit.
    pub submissions: Over,
    /// µs per unit.
    pub total_us: Over,
    /// µs per unit.
    pub busy_us: Over,
    /// Per unit.
    pub encoders: Option<Over>,
    /// Per unit.
    pub command_buffers: Option<Over>,
    /// µs of GPU time per command buffer: median of the trials' ratios.
    pub us_per_command_buffer: Option<Over>,
    /// µs per unit.
    pub cpu_encode_us: Option<Over>,
    /// µs per submission.
    pub p50_us: Option<Over>,
    /// µs per submission.
    pub p95_us: Option<Over>,
    /// µs per submission.
    pub p99_us: Option<Over>,
    /// µs per submission.
    pub mean_us: Option<Over>,
    /// µs per submission.
    pub min_us: Option<Over>,
    /// µs per submission.
    pub max_us: Option<Over>,
    /// CPU to GPU latency.
    pub latency: Option<LatencyCell>,
    /// Raw values, aligned with the side's trials.
    pub trials: Vec<Stats>,
}

/// Latency over trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyCell {
    /// Samples (median over trials, not per unit).
    pub samples: Over,
    /// µs.
    pub p50_us: Over,
    /// µs.
    pub p95_us: Over,
}

/// A value over the trials of a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Over {
    /// Median of the per-trial values (mean of the middle two).
    pub median: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

/// One band of the gap histogram, both sides; counts and µs per unit, medians over trials.
#[derive(Debug, Clone, PartialEq)]
pub struct GapRow {
    /// Band name (`lt_10us`, `10_100us`, …).
    pub key: String,
    /// Gaps per unit on side A.
    pub a_count: Over,
    /// Idle µs per unit on side A.
    pub a_idle_us: Over,
    /// Gaps per unit and idle µs per unit on side B.
    pub b: Option<(Over, Over)>,
}

/// Submissions of similar duration: those of `[from, to)`.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramRow {
    /// Shortest duration of the bin.
    pub from: Nanos,
    /// The shortest one above it.
    pub to: Nanos,
    /// Side A; `None` when it was stored without durations.
    pub a: Option<HistogramCell>,
    /// Side B; `None` also when there is no B.
    pub b: Option<HistogramCell>,
}

/// One side of a bin: medians over trials of the per-trial values, with their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistogramCell {
    /// Per unit.
    pub submissions: Over,
    /// µs per unit.
    pub total_us: Over,
}

/// Something to look at first.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// `buckets`, `encoders`, `phases`, `channels`, or `submissions` for a single one that hides the rest.
    pub section: &'static str,
    /// Row key.
    pub key: String,
    /// µs per unit: A − B, or with one side the time itself; `None` for `submissions`.
    pub delta_us: Option<f64>,
    /// Percent of B's total, or with one side of the total.
    pub share_pct: Option<f64>,
    /// A hint from the user's configuration.
    pub hint: Option<String>,
    /// One sentence for the text reports.
    pub text: String,
}

/// Compares side A with side B, or describes side A alone.
///
/// Refused: the same recording twice on one side (it would count as two trials), 0 units, pairs of unequal sides,
/// and noise that was measured on another GPU or per another unit (unless forced).
pub fn compare(a: Side, b: Option<Side>, settings: Settings, options: &CompareOptions) -> Result<Comparison> {
    for side in std::iter::once(&a).chain(&b) {
        refuse_repeats(
            side.trials
                .iter()
                .map(|trial| (trial.fingerprint, trial.input.as_str())),
        )?;
        refuse_zero_units(side)?;
    }
    let sides = rows::Sides { a: &a, b: b.as_ref() };
    let mut comparison = Comparison {
        busy: rows::busy(&sides),
        total: rows::total(&sides),
        buckets: rows::buckets(&sides, &settings.buckets),
        encoders: rows::encoders(&sides),
        phases: rows::phases(&sides),
        channels: rows::channels(&sides),
        label_map: label_map::mapped(&options.label_map, &a, b.as_ref()),
        kernel_hints: BTreeMap::new(),
        histogram: rows::histogram(&sides),
        gaps: rows::gaps(&sides),
        findings: Vec::new(),
        notes: Vec::new(),
        incomparable: Vec::new(),
        controls: None,
        gate: None,
        slots: order::slots(&a, b.as_ref()),
        inference: InferenceSettings {
            margin_pct: options.margin_pct,
            paired: options.paired,
            forced: options.force,
            noise_sessions: options.noise.as_ref().map(Noise::sessions),
            baseline: options.baseline.is_some(),
        },
        settings,
        a,
        b,
    };
    let mut remarks = assess::assess(&mut comparison, options)?;
    remarks.extend(options.baseline.iter().flatten().cloned());
    comparison.findings = findings::findings(&comparison);
    options.hints.place(&mut comparison);
    remarks.extend(options.hints.notes(&comparison.settings.buckets));
    comparison.notes = notes::notes(&comparison, remarks);
    Ok(comparison)
}

impl Comparison {
    /// Rows of a table.
    pub fn table(&self, table: Table) -> &[Row] {
        match table {
            Table::Buckets => &self.buckets,
            Table::Encoders => &self.encoders,
            Table::Phases => &self.phases,
            Table::Channels => &self.channels,
        }
    }

    fn table_mut(&mut self, table: Table) -> &mut [Row] {
        match table {
            Table::Buckets => &mut self.buckets,
            Table::Encoders => &mut self.encoders,
            Table::Phases => &mut self.phases,
            Table::Channels => &mut self.channels,
        }
    }

    /// The row of a key; `None` when neither side has it.
    pub fn row(&self, key: &RowKey) -> Option<&Row> {
        match key {
            RowKey::Busy => Some(&self.busy),
            RowKey::Total => Some(&self.total),
            RowKey::In(table, key) => self.table(*table).iter().find(|row| row.key == *key),
            RowKey::Kernel(_) => None,
        }
    }

    /// `busy`, `total`, then every row of every table, with its key.
    pub fn rows(&self) -> Vec<(RowKey, &Row)> {
        let mut rows = vec![(RowKey::Busy, &self.busy), (RowKey::Total, &self.total)];
        for table in Table::ALL {
            let keyed = self.table(table).iter();
            rows.extend(keyed.map(|row| (RowKey::In(table, row.key.clone()), row)));
        }
        rows
    }
}

/// Refuses a side whose trials, given by fingerprint and input, hold a recording twice.
pub(crate) fn refuse_repeats<'t>(trials: impl Iterator<Item = (u64, &'t str)>) -> Result<()> {
    let mut seen = HashMap::new();
    for (fingerprint, input) in trials {
        if let Some(first) = seen.insert(fingerprint, input) {
            return Err(repeated(first, input));
        }
    }
    Ok(())
}

/// Two inputs of a side that are one recording.
pub(crate) fn repeated(first: &str, again: &str) -> Error {
    Error::usage(format!("`{first}` and `{again}` are the same recording, on one side"))
        .with_help("give each trial once: a repeated one would count as another run")
}

fn refuse_zero_units(side: &Side) -> Result<()> {
    match side.trials.iter().find(|trial| trial.units == Some(0)) {
        Some(trial) => Err(
            Error::usage(format!("`{}`: times cannot be divided by 0 units", trial.input))
                .with_help("give the number of tokens (or frames) that the trial made, or none at all"),
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
