//! The report as JSON: a contract with its own structs, described in `docs/json.md` and `docs/compare.schema.json`.
//!
//! Nothing is rounded. What was not measured is `null`; there is no NaN and no Infinity; whole numbers are written
//! as integers; an integer that a double cannot hold is a string. The same comparison gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Serialize, Serializer};

use super::{ReportOptions, pick};
use crate::attribution::{Gap, SlowSubmission, Stats};
use crate::compare::{self, Change, Comparison, Over};
use crate::model::{self, Nanos, Reason, StateTime, Timestamp, WindowFound, WindowRule, WindowSpan};

mod histogram;
mod label_map;
mod verdicts;

use verdicts::{Gate, Test};

/// Changes when a reader of the old one would read the new one wrongly.
const SCHEMA_VERSION: u32 = 1;

/// The whole report, pretty-printed, with a newline at its end.
pub(super) fn render(comparison: &Comparison, options: &ReportOptions) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(&Report::new(comparison, options))?;
    text.push('\n');
    Ok(text)
}

/// The same without line breaks and indents, to stand in a page.
pub(super) fn compact(comparison: &Comparison, options: &ReportOptions) -> io::Result<String> {
    Ok(serde_json::to_string(&Report::new(comparison, options))?)
}

/// A measured number: never NaN, an integer when it is whole.
#[derive(Clone, Copy)]
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if !self.0.is_finite() {
            to.serialize_none()
        } else if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
            to.serialize_i64(self.0 as i64)
        } else {
            to.serialize_f64(self.0)
        }
    }
}

/// A count, an id or ns: a string from 2^53 on, where readers with doubles would change it.
#[derive(Clone, Copy)]
struct Integer(u64);

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0 > 1 << 53 {
            to.collect_str(&self.0)
        } else {
            to.serialize_u64(self.0)
        }
    }
}

impl From<Nanos> for Integer {
    fn from(Nanos(ns): Nanos) -> Self {
        Integer(ns)
    }
}

impl From<Timestamp> for Integer {
    fn from(Timestamp(ns): Timestamp) -> Self {
        Integer(ns)
    }
}

impl From<Over> for Number {
    fn from(over: Over) -> Self {
        Number(over.median)
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    schema_version: u32,
    tool: Tool<'a>,
    settings: Settings<'a>,
    a: Side<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Side<'a>>,
    incomparable: Vec<Incomparable<'a>>,
    busy: Row<'a>,
    total: Row<'a>,
    buckets: Vec<Row<'a>>,
    encoders: Vec<Row<'a>>,
    phases: Vec<Row<'a>>,
    channels: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_map: Option<label_map::LabelMap<'a>>,
    kernels: Sides<Kernels<'a>>,
    /// Only with hints for families that are there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kernel_hints: &'a BTreeMap<String, String>,
    histogram: histogram::Histogram,
    gaps: Gaps<'a>,
    slowest: Sides<Vec<Slow<'a>>>,
    findings: Vec<Finding<'a>>,
    notes: Vec<Note<'a>>,
    gate: Option<Gate<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controls: Option<Controls<'a>>,
}

/// Phases that are equal on both sides.
#[derive(Serialize)]
struct Controls<'a> {
    pattern: &'a str,
    phases: &'a [String],
    row: Row<'a>,
}

/// Something that each side has.
#[derive(Serialize)]
struct Sides<T> {
    a: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<T>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
}

#[derive(Serialize)]
struct Settings<'a> {
    timing: &'static str,
    unit: Option<&'a str>,
    bucket_edges_ns: Vec<Integer>,
    bucket_names: &'a [String],
    window: WindowAsked<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_b: Option<WindowAsked<'a>>,
    slowest: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inference: Option<Inference<'a>>,
}

/// How verdicts were made; only where there are two sides.
#[derive(Serialize)]
struct Inference<'a> {
    margin_pct: Number,
    paired: bool,
    forced: bool,
    noise_sessions: Option<usize>,
    baseline: bool,
    timing_b: &'a str,
}

#[derive(Serialize)]
struct WindowAsked<'a> {
    signpost: Option<&'a str>,
    quiet_ns: Option<Integer>,
    from_ns: Option<Integer>,
    to_ns: Option<Integer>,
    skip_first_ns: Option<Integer>,
}

/// Where a trial's window lies, and from how much it was taken.
#[derive(Serialize)]
struct Window {
    from_ns: Integer,
    to_ns: Integer,
    signpost_intervals: Option<Integer>,
    quiet_stretches: Option<Integer>,
}

#[derive(Serialize)]
struct Incomparable<'a> {
    code: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct Side<'a> {
    name: &'a str,
    trials: Vec<Trial<'a>>,
}

#[derive(Serialize)]
struct Trial<'a> {
    input: &'a str,
    run: Integer,
    process: Process<'a>,
    units: Option<Integer>,
    gpu: Option<&'a str>,
    rows_read: Integer,
    submissions_in_process: Integer,
    submissions: Integer,
    total_ns: Integer,
    busy_ns: Integer,
    idle_ns: Integer,
    window_ns: Integer,
    window: Window,
    first_start_ns: Option<Integer>,
    last_end_ns: Option<Integer>,
    left_out: LeftOut,
    encoders: Option<EncoderLabels>,
    labelled_total_ns: Integer,
    cross_check: Option<CrossCheck>,
    state: State<'a>,
    start: Option<&'a str>,
    rank: Option<usize>,
    fingerprint: String,
}

#[derive(Serialize)]
struct Process<'a> {
    name: &'a str,
    pid: Option<u32>,
}

/// Every reason, in the order of the contract.
#[derive(Serialize)]
struct LeftOut {
    unpaired_start: LeftOutCount,
    unpaired_end: LeftOutCount,
    other_function: LeftOutCount,
    invalid: LeftOutCount,
    no_mapping: LeftOutCount,
    no_process: LeftOutCount,
    other_process: LeftOutCount,
    outside_window: LeftOutCount,
    nested: LeftOutCount,
}

#[derive(Serialize)]
struct LeftOutCount {
    rows: Integer,
    total_ns: Option<Integer>,
}

#[derive(Serialize)]
struct EncoderLabels {
    all: Integer,
    labelled: Integer,
}

#[derive(Serialize)]
struct CrossCheck {
    both: Integer,
    only_points: Integer,
    only_intervals: Integer,
    differ: Integer,
    disputed_ns: Integer,
}

#[derive(Serialize)]
struct State<'a> {
    end_reason: Option<&'a str>,
    thermal: Vec<InState<'a>>,
    performance: Vec<InState<'a>>,
    shader_timeline: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    private: Vec<Private<'a>>,
}

#[derive(Serialize)]
struct Private<'a> {
    element: &'a str,
    attribute: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct InState<'a> {
    state: &'a str,
    induced: bool,
    time_ns: Integer,
}

#[derive(Serialize)]
struct Row<'a> {
    key: &'a str,
    a: Option<Cell>,
    b: Option<Cell>,
    delta_us: Option<Number>,
    delta_pct: Option<Number>,
    share_pct: Option<Number>,
    count_pct: Option<Number>,
    per_submission_pct: Option<Number>,
    flags: &'a [&'static str],
    verdict: Option<&'static str>,
    reason: Option<String>,
    q: Option<Number>,
    test: Option<Test>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relative: Option<Test>,
}

#[derive(Serialize)]
struct Cell {
    submissions: Number,
    total_us: Number,
    busy_us: Number,
    encoders: Option<Number>,
    command_buffers: Option<Number>,
    us_per_command_buffer: Option<Number>,
    cpu_encode_us: Option<Number>,
    p50_us: Option<Number>,
    p95_us: Option<Number>,
    p99_us: Option<Number>,
    mean_us: Option<Number>,
    min_us: Option<Number>,
    max_us: Option<Number>,
    latency_us: Option<Latency>,
    trials: Vec<Raw>,
}

#[derive(Serialize)]
struct Latency {
    samples: Number,
    p50: Number,
    p95: Number,
}

/// A trial's own values behind a median, in ns and whole counts.
#[derive(Serialize)]
struct Raw {
    submissions: Integer,
    total_ns: Integer,
    busy_ns: Integer,
    encoders: Option<Integer>,
    command_buffers: Option<Integer>,
    cpu_encode_ns: Option<Integer>,
    p50_ns: Option<Number>,
    p95_ns: Option<Integer>,
    p99_ns: Option<Integer>,
    mean_ns: Option<Number>,
    min_ns: Option<Integer>,
    max_ns: Option<Integer>,
    latency_ns: Option<RawLatency>,
}

#[derive(Serialize)]
struct RawLatency {
    samples: Integer,
    p50: Number,
    p95: Integer,
}

#[derive(Serialize)]
struct Kernels<'a> {
    families: Option<BTreeMap<&'a str, BTreeSet<&'a str>>>,
    shader_timeline_rows: Option<Integer>,
    samples: Vec<Samples<'a>>,
}

/// Shader Timeline of one trial.
#[derive(Serialize)]
struct Samples<'a> {
    trial: usize,
    from_ns: Option<Integer>,
    to_ns: Option<Integer>,
    kernels: Vec<Sampled<'a>>,
}

#[derive(Serialize)]
struct Sampled<'a> {
    name: &'a str,
    samples: Integer,
    sampled_ns: Integer,
}

#[derive(Serialize)]
struct Gaps<'a> {
    bands: Vec<Band<'a>>,
    longest: Sides<Vec<LongGap<'a>>>,
}

#[derive(Serialize)]
struct Band<'a> {
    key: &'a str,
    a: BandCell,
    b: Option<BandCell>,
}

#[derive(Serialize)]
struct BandCell {
    count: Number,
    idle_us: Number,
    trials: Vec<RawBand>,
}

#[derive(Serialize)]
struct RawBand {
    count: Integer,
    idle_ns: Integer,
}

#[derive(Serialize)]
struct LongGap<'a> {
    trial: usize,
    start_ns: Integer,
    length_ns: Integer,
    after: Option<&'a str>,
    before: Option<&'a str>,
}

#[derive(Serialize)]
struct Slow<'a> {
    trial: usize,
    start_ns: Integer,
    duration_ns: Integer,
    channel: &'a str,
    phase: &'a str,
    encoder: &'a str,
}

#[derive(Serialize)]
struct Finding<'a> {
    section: &'static str,
    key: &'a str,
    delta_us: Option<Number>,
    share_pct: Option<Number>,
    hint: Option<&'a str>,
}

#[derive(Serialize)]
struct Note<'a> {
    code: &'static str,
    severity: &'static str,
    text: &'a str,
}

impl<'a> Report<'a> {
    fn new(comparison: &'a Comparison, options: &'a ReportOptions) -> Self {
        let Comparison {
            settings,
            a,
            b,
            busy,
            total,
            buckets,
            encoders,
            phases,
            channels,
            label_map,
            kernel_hints,
            histogram: _,
            gaps,
            findings,
            notes,
            incomparable,
            controls,
            gate,
            slots,
            inference,
        } = comparison;
        let (slots_a, slots_b) = slots.split_at_checked(a.trials.len()).unwrap_or((slots, &[]));
        let rows = |rows: &'a [compare::Row]| rows.iter().map(Row::from).collect();
        Report {
            schema: if b.is_some() {
                "trace-attr.compare"
            } else {
                "trace-attr.report"
            },
            schema_version: SCHEMA_VERSION,
            tool: Tool {
                name: "trace-attr",
                version: env!("CARGO_PKG_VERSION"),
                command: options.shown_command(),
            },
            settings: Settings {
                timing: settings.timing.name(),
                unit: settings.unit.as_deref(),
                bucket_edges_ns: settings.buckets.edges.iter().map(|edge| Integer(*edge)).collect(),
                bucket_names: &settings.buckets.names,
                window: (&settings.window_a).into(),
                window_b: (b.is_some() && settings.window_b != settings.window_a).then(|| (&settings.window_b).into()),
                slowest: settings.slowest,
                config: options.config.as_deref(),
                inference: b.is_some().then(|| Inference {
                    margin_pct: Number(inference.margin_pct),
                    paired: inference.paired,
                    forced: inference.forced,
                    noise_sessions: inference.noise_sessions,
                    baseline: inference.baseline,
                    timing_b: settings.timing_b.name(),
                }),
            },
            a: Side::new(a, slots_a),
            b: b.as_ref().map(|b| Side::new(b, slots_b)),
            incomparable: incomparable
                .iter()
                .map(|reason| Incomparable {
                    code: reason.code,
                    text: &reason.text,
                })
                .collect(),
            busy: busy.into(),
            total: total.into(),
            buckets: rows(buckets),
            encoders: rows(encoders),
            phases: rows(phases),
            channels: rows(channels),
            label_map: label_map
                .as_ref()
                .map(|mapped| label_map::LabelMap::new(mapped, b.is_some())),
            kernels: Sides {
                a: a.into(),
                b: b.as_ref().map(Kernels::from),
            },
            kernel_hints,
            histogram: histogram::Histogram::new(comparison),
            gaps: Gaps {
                bands: gaps.iter().map(|row| band(row, a, b.as_ref())).collect(),
                longest: each(a, b.as_ref(), |side| {
                    pick::longest_gaps(side, settings.slowest)
                        .into_iter()
                        .map(LongGap::from)
                        .collect()
                }),
            },
            slowest: each(a, b.as_ref(), |side| {
                pick::slowest(side, settings.slowest)
                    .into_iter()
                    .map(Slow::from)
                    .collect()
            }),
            findings: findings.iter().map(Finding::from).collect(),
            notes: notes.iter().map(Note::from).collect(),
            gate: gate.as_ref().map(Gate::from),
            controls: controls.as_ref().map(|controls| Controls {
                pattern: &controls.pattern,
                phases: &controls.phases,
                row: (&controls.row).into(),
            }),
        }
    }
}

fn each<'a, T>(a: &'a compare::Side, b: Option<&'a compare::Side>, of: impl Fn(&'a compare::Side) -> T) -> Sides<T> {
    Sides { a: of(a), b: b.map(of) }
}

impl<'a> From<&'a WindowRule> for WindowAsked<'a> {
    fn from(rule: &'a WindowRule) -> Self {
        let (signpost, quiet) = match &rule.span {
            WindowSpan::Process => (None, None),
            WindowSpan::Signpost(name) => (Some(name.as_str()), None),
            WindowSpan::Quiet(gap) => (None, Some(*gap)),
        };
        WindowAsked {
            signpost,
            quiet_ns: quiet.map(Integer::from),
            from_ns: rule.from.map(Integer::from),
            to_ns: rule.to.map(Integer::from),
            skip_first_ns: rule.skip_first.map(Integer::from),
        }
    }
}

impl From<&compare::Trial> for Window {
    fn from(trial: &compare::Trial) -> Self {
        let (intervals, stretches) = match trial.window_found {
            WindowFound::Given => (None, None),
            WindowFound::Signposts { intervals } => (Some(intervals), None),
            WindowFound::Stretch { of } => (None, Some(of)),
        };
        Window {
            from_ns: trial.window.from.into(),
            to_ns: trial.window.to.into(),
            signpost_intervals: intervals.map(Integer),
            quiet_stretches: stretches.map(Integer),
        }
    }
}

impl<'a> Side<'a> {
    /// `slots` is aligned with the side's trials.
    fn new(side: &'a compare::Side, slots: &'a [compare::Slot]) -> Self {
        let trials = side.trials.iter().enumerate();
        Side {
            name: &side.name,
            trials: trials.map(|(at, trial)| Trial::new(trial, slots.get(at))).collect(),
        }
    }
}

impl<'a> Trial<'a> {
    fn new(trial: &'a compare::Trial, slot: Option<&'a compare::Slot>) -> Self {
        let window = trial.window.length();
        Trial {
            input: &trial.input,
            run: Integer(trial.run),
            process: Process {
                name: &trial.process.name,
                pid: trial.process.pid,
            },
            units: trial.units.map(Integer),
            gpu: trial.gpu.as_deref(),
            rows_read: Integer(trial.rows_read),
            submissions_in_process: Integer(trial.submissions_in_process),
            submissions: Integer(trial.all.submissions),
            total_ns: trial.all.total.into(),
            busy_ns: trial.all.busy.into(),
            idle_ns: Integer(window.0.saturating_sub(trial.all.busy.0)),
            window_ns: window.into(),
            window: trial.into(),
            first_start_ns: trial.first_start.map(Integer::from),
            last_end_ns: trial.last_end.map(Integer::from),
            left_out: (&trial.left_out).into(),
            encoders: trial.encoder_labels.map(|labels| EncoderLabels {
                all: Integer(labels.all),
                labelled: Integer(labels.labelled),
            }),
            labelled_total_ns: trial.labelled_total.into(),
            cross_check: trial.cross_check.map(CrossCheck::from),
            state: (&trial.state).into(),
            start: slot.and_then(|slot| slot.start.as_deref()),
            rank: slot.and_then(|slot| slot.rank),
            fingerprint: format!("{:016x}", trial.fingerprint),
        }
    }
}

impl From<&model::LeftOut> for LeftOut {
    fn from(left_out: &model::LeftOut) -> Self {
        let count = |reason| {
            let count = left_out.get(reason);
            LeftOutCount {
                rows: Integer(count.rows),
                total_ns: count.total.map(Integer::from),
            }
        };
        LeftOut {
            unpaired_start: count(Reason::UnpairedStart),
            unpaired_end: count(Reason::UnpairedEnd),
            other_function: count(Reason::OtherFunction),
            invalid: count(Reason::Invalid),
            no_mapping: count(Reason::NoMapping),
            no_process: count(Reason::NoProcess),
            other_process: count(Reason::OtherProcess),
            outside_window: count(Reason::OutsideWindow),
            nested: count(Reason::Nested),
        }
    }
}

impl From<model::CrossCheck> for CrossCheck {
    fn from(check: model::CrossCheck) -> Self {
        CrossCheck {
            both: Integer(check.both),
            only_points: Integer(check.only_points),
            only_intervals: Integer(check.only_intervals),
            differ: Integer(check.differ),
            disputed_ns: check.disputed.into(),
        }
    }
}

impl<'a> From<&'a model::RecordingState> for State<'a> {
    fn from(state: &'a model::RecordingState) -> Self {
        let times = |times: &'a [StateTime]| {
            let time = |time: &'a StateTime| InState {
                state: &time.state,
                induced: time.induced,
                time_ns: time.time.into(),
            };
            times.iter().map(time).collect()
        };
        State {
            end_reason: state.end_reason.as_deref(),
            thermal: times(&state.thermal),
            performance: times(&state.performance),
            shader_timeline: state.shader_timeline.as_deref(),
            private: state
                .private
                .iter()
                .map(|fact| Private {
                    element: &fact.element,
                    attribute: &fact.attribute,
                    value: &fact.value,
                })
                .collect(),
        }
    }
}

impl<'a> From<&'a compare::Row> for Row<'a> {
    fn from(row: &'a compare::Row) -> Self {
        let (delta_us, delta_pct, share_pct, count_pct, per_submission_pct) = match row.change {
            None => (None, None, None, None, None),
            Some(Change::OnlyA { delta_us, share_pct }) => (Some(delta_us), None, share_pct, None, None),
            Some(Change::OnlyB { delta_us, share_pct }) => (Some(delta_us), Some(-100.0), share_pct, None, None),
            Some(Change::Both {
                delta_us,
                delta_pct,
                share_pct,
                count_pct,
                per_submission_pct,
            }) => (Some(delta_us), delta_pct, share_pct, count_pct, per_submission_pct),
        };
        Row {
            key: &row.key,
            a: row.a.as_ref().map(Cell::from),
            b: row.b.as_ref().map(Cell::from),
            delta_us: delta_us.map(Number),
            delta_pct: delta_pct.map(Number),
            share_pct: share_pct.map(Number),
            count_pct: count_pct.map(Number),
            per_submission_pct: per_submission_pct.map(Number),
            flags: &row.flags,
            verdict: row.judgement.as_ref().map(|judgement| judgement.verdict.name()),
            reason: row.judgement.as_ref().and_then(verdicts::reason),
            q: row.judgement.as_ref().and_then(|judgement| judgement.q).map(Number),
            test: row
                .judgement
                .as_ref()
                .and_then(|judgement| judgement.test.as_ref())
                .map(Test::of),
            relative: row
                .judgement
                .as_ref()
                .and_then(|judgement| judgement.relative.as_ref())
                .map(Test::of_interval),
        }
    }
}

impl From<&compare::Cell> for Cell {
    fn from(cell: &compare::Cell) -> Self {
        let optional = |over: Option<Over>| over.map(Number::from);
        Cell {
            submissions: cell.submissions.into(),
            total_us: cell.total_us.into(),
            busy_us: cell.busy_us.into(),
            encoders: optional(cell.encoders),
            command_buffers: optional(cell.command_buffers),
            us_per_command_buffer: optional(cell.us_per_command_buffer),
            cpu_encode_us: optional(cell.cpu_encode_us),
            p50_us: optional(cell.p50_us),
            p95_us: optional(cell.p95_us),
            p99_us: optional(cell.p99_us),
            mean_us: optional(cell.mean_us),
            min_us: optional(cell.min_us),
            max_us: optional(cell.max_us),
            latency_us: cell.latency.map(|latency| Latency {
                samples: latency.samples.into(),
                p50: latency.p50_us.into(),
                p95: latency.p95_us.into(),
            }),
            trials: cell.trials.iter().map(Raw::from).collect(),
        }
    }
}

impl From<&Stats> for Raw {
    fn from(stats: &Stats) -> Self {
        let durations = stats.durations;
        Raw {
            submissions: Integer(stats.submissions),
            total_ns: stats.total.into(),
            busy_ns: stats.busy.into(),
            encoders: stats.encoders.map(Integer),
            command_buffers: stats.command_buffers.map(Integer),
            cpu_encode_ns: stats.cpu_encode.map(Integer::from),
            p50_ns: durations.map(|durations| Number(durations.p50)),
            p95_ns: durations.map(|durations| durations.p95.into()),
            p99_ns: durations.map(|durations| durations.p99.into()),
            mean_ns: durations.map(|durations| Number(durations.mean)),
            min_ns: durations.map(|durations| durations.min.into()),
            max_ns: durations.map(|durations| durations.max.into()),
            latency_ns: stats.latency.map(|latency| RawLatency {
                samples: Integer(latency.samples),
                p50: Number(latency.p50),
                p95: latency.p95.into(),
            }),
        }
    }
}

impl<'a> From<&'a compare::Side> for Kernels<'a> {
    fn from(side: &'a compare::Side) -> Self {
        let samples = side
            .trials
            .iter()
            .enumerate()
            .filter(|(_, trial)| !trial.shader_samples.is_empty());
        Kernels {
            families: pick::kernel_families(side),
            shader_timeline_rows: pick::shader_timeline_rows(side).map(Integer),
            samples: samples
                .map(|(at, trial)| Samples {
                    trial: at,
                    from_ns: trial.shader_sampled_span.map(|span| span.from.into()),
                    to_ns: trial.shader_sampled_span.map(|span| span.to.into()),
                    kernels: trial.shader_samples.iter().map(Sampled::from).collect(),
                })
                .collect(),
        }
    }
}

impl<'a> From<&'a model::ShaderSamples> for Sampled<'a> {
    fn from(kernel: &'a model::ShaderSamples) -> Self {
        Sampled {
            name: &kernel.name,
            samples: Integer(kernel.rows),
            sampled_ns: kernel.sampled.into(),
        }
    }
}

fn band<'a>(row: &'a compare::GapRow, a: &compare::Side, b: Option<&compare::Side>) -> Band<'a> {
    let raw = |side: &compare::Side| -> Vec<RawBand> {
        let band = |trial: &compare::Trial| {
            let band = trial.gaps.bands.iter().find(|band| band.key == row.key);
            RawBand {
                count: Integer(band.map_or(0, |band| band.count)),
                idle_ns: Integer(band.map_or(0, |band| band.idle.0)),
            }
        };
        side.trials.iter().map(band).collect()
    };
    let cell = |count: Over, idle: Over, side| BandCell {
        count: count.into(),
        idle_us: idle.into(),
        trials: raw(side),
    };
    Band {
        key: &row.key,
        a: cell(row.a_count, row.a_idle_us, a),
        b: row.b.zip(b).map(|((count, idle), side)| cell(count, idle, side)),
    }
}

impl<'a> From<(usize, &'a Gap)> for LongGap<'a> {
    fn from((trial, gap): (usize, &'a Gap)) -> Self {
        LongGap {
            trial,
            start_ns: gap.start.into(),
            length_ns: gap.length.into(),
            after: gap.after.as_deref(),
            before: gap.before.as_deref(),
        }
    }
}

impl<'a> From<(usize, &'a SlowSubmission)> for Slow<'a> {
    fn from((trial, slow): (usize, &'a SlowSubmission)) -> Self {
        Slow {
            trial,
            start_ns: slow.start.into(),
            duration_ns: slow.duration.into(),
            channel: &slow.channel,
            phase: &slow.phase,
            encoder: &slow.encoder,
        }
    }
}

impl<'a> From<&'a compare::Finding> for Finding<'a> {
    fn from(finding: &'a compare::Finding) -> Self {
        Finding {
            section: finding.section,
            key: &finding.key,
            delta_us: finding.delta_us.map(Number),
            share_pct: finding.share_pct.map(Number),
            hint: finding.hint.as_deref(),
        }
    }
}

impl<'a> From<&'a model::Note> for Note<'a> {
    fn from(note: &'a model::Note) -> Self {
        Note {
            code: note.code,
            severity: note.severity.name(),
            text: &note.text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_null() {
        let numbers = [5.0, 5.5, -0.0, 1e16, 0.1, f64::NAN, f64::INFINITY].map(Number);
        assert_eq!(
            serde_json::to_string(&numbers).unwrap(),
            "[5,5.5,0,1e+16,0.1,null,null]"
        );
    }

    #[test]
    fn an_integer_that_a_double_cannot_hold_is_a_string() {
        let integers = [0, 1 << 53, (1 << 53) + 1, u64::MAX].map(Integer);
        let text = serde_json::to_string(&integers).unwrap();
        assert_eq!(
            text,
            r#"[0,9007199254740992,"9007199254740993","18446744073709551615"]"#
        );
    }
}
