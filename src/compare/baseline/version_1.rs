//! Reads reports of schema version 1: every field that a side needs, by the names of `docs/json.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};

use super::{Baseline, refuse};
use crate::attribution::{
    Buckets, Durations, EncoderLabels, Gap, GapBand, Gaps, Group, Histogram, HistogramBin, KernelFamilies, Latency,
    SlowSubmission, Stats,
};
use crate::compare::{self, Trial};
use crate::error::Result;
use crate::model::{
    self, LeftOut, Nanos, Note, Process, Reason, RecordingState, StateTime, Timestamp, Timing, WindowFound, WindowRule,
    WindowSpan,
};

pub(super) fn read(text: &str) -> Result<Baseline> {
    let report: Report =
        serde_json::from_str(text).map_err(|error| refuse(format!("the baseline is broken: {error}")))?;
    report
        .baseline()
        .map_err(|why| refuse(format!("the baseline is broken: {why}")))
}

/// A count or ns; from 2^53 on it is a string in the file.
#[derive(Clone, Copy)]
struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(from)? {
            Written::Number(number) => Ok(Whole(number)),
            Written::Text(text) => text.parse().map(Whole).map_err(serde::de::Error::custom),
        }
    }
}

#[derive(Deserialize)]
struct Report {
    settings: Settings,
    a: Side,
    total: Row,
    buckets: Vec<Row>,
    encoders: Vec<Row>,
    phases: Vec<Row>,
    channels: Vec<Row>,
    kernels: OneSide<Kernels>,
    // Later than the first reports of this version.
    #[serde(default)]
    histogram: Option<StoredHistogram>,
    gaps: GapsOf,
    slowest: OneSide<Vec<Slow>>,
    notes: Vec<Remark>,
    // Only where a map was given.
    #[serde(default)]
    label_map: Option<StoredMap>,
}

#[derive(Deserialize)]
struct StoredMap {
    rules: Vec<StoredRule>,
}

#[derive(Deserialize)]
struct StoredRule {
    name: String,
    a_pattern: Option<String>,
    b_pattern: Option<String>,
}

#[derive(Deserialize)]
struct OneSide<T> {
    a: T,
}

#[derive(Deserialize)]
struct Settings {
    timing: String,
    // A baseline that does not say what its values are divided by is refused, so this field must be there.
    #[serde(deserialize_with = "present")]
    unit: Option<String>,
    bucket_edges_ns: Vec<Whole>,
    bucket_names: Vec<String>,
    window: Window,
    slowest: usize,
}

/// A field that may be null but must be there.
fn present<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<String>, D::Error> {
    Option::deserialize(from)
}

#[derive(Deserialize)]
struct Window {
    // Later than the first reports of this version.
    #[serde(default)]
    signpost: Option<String>,
    #[serde(default)]
    quiet_ns: Option<Whole>,
    from_ns: Option<Whole>,
    to_ns: Option<Whole>,
    skip_first_ns: Option<Whole>,
}

/// Where a trial's window was.
#[derive(Deserialize)]
struct Found {
    from_ns: Whole,
    to_ns: Whole,
    signpost_intervals: Option<Whole>,
    quiet_stretches: Option<Whole>,
}

#[derive(Deserialize)]
struct Side {
    name: String,
    trials: Vec<StoredTrial>,
}

#[derive(Deserialize)]
struct StoredTrial {
    input: String,
    run: Whole,
    process: StoredProcess,
    units: Option<Whole>,
    gpu: Option<String>,
    rows_read: Whole,
    submissions_in_process: Whole,
    submissions: Whole,
    total_ns: Whole,
    busy_ns: Whole,
    window_ns: Whole,
    // Later than the first reports of this version.
    #[serde(default)]
    window: Option<Found>,
    first_start_ns: Option<Whole>,
    last_end_ns: Option<Whole>,
    left_out: BTreeMap<String, StoredLeftOut>,
    encoders: Option<StoredEncoders>,
    labelled_total_ns: Whole,
    cross_check: Option<StoredCrossCheck>,
    state: StoredState,
    // Later than the first reports of this version.
    #[serde(default)]
    start: Option<String>,
    #[serde(default)]
    fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct StoredProcess {
    name: String,
    pid: Option<u32>,
}

#[derive(Deserialize)]
struct StoredLeftOut {
    rows: Whole,
    total_ns: Option<Whole>,
}

#[derive(Deserialize)]
struct StoredEncoders {
    all: Whole,
    labelled: Whole,
}

#[derive(Deserialize)]
struct StoredCrossCheck {
    both: Whole,
    only_points: Whole,
    only_intervals: Whole,
    differ: Whole,
    disputed_ns: Whole,
}

#[derive(Deserialize)]
struct StoredState {
    end_reason: Option<String>,
    thermal: Vec<InState>,
    performance: Vec<InState>,
    shader_timeline: Option<String>,
}

#[derive(Deserialize)]
struct InState {
    state: String,
    induced: bool,
    time_ns: Whole,
}

#[derive(Deserialize)]
struct Row {
    key: String,
    a: Option<Cell>,
    flags: Vec<String>,
}

#[derive(Deserialize)]
struct Cell {
    trials: Vec<Raw>,
}

#[derive(Deserialize)]
struct Raw {
    submissions: Whole,
    total_ns: Whole,
    busy_ns: Whole,
    encoders: Option<Whole>,
    command_buffers: Option<Whole>,
    cpu_encode_ns: Option<Whole>,
    p50_ns: Option<f64>,
    p95_ns: Option<Whole>,
    p99_ns: Option<Whole>,
    mean_ns: Option<f64>,
    min_ns: Option<Whole>,
    max_ns: Option<Whole>,
    latency_ns: Option<RawLatency>,
}

#[derive(Deserialize)]
struct RawLatency {
    samples: Whole,
    p50: f64,
    p95: Whole,
}

#[derive(Deserialize)]
struct Kernels {
    families: Option<BTreeMap<String, BTreeSet<String>>>,
    shader_timeline_rows: Option<Whole>,
    samples: Vec<Samples>,
}

#[derive(Deserialize)]
struct Samples {
    trial: usize,
    from_ns: Option<Whole>,
    to_ns: Option<Whole>,
    kernels: Vec<Sampled>,
}

#[derive(Deserialize)]
struct Sampled {
    name: String,
    samples: Whole,
    sampled_ns: Whole,
}

#[derive(Deserialize)]
struct StoredHistogram {
    edges_ns: Vec<Whole>,
    a: Option<HistogramSide>,
}

#[derive(Deserialize)]
struct HistogramSide {
    trials: Vec<RawHistogram>,
}

#[derive(Deserialize)]
struct RawHistogram {
    submissions: Vec<Whole>,
    total_ns: Vec<Whole>,
}

#[derive(Deserialize)]
struct GapsOf {
    bands: Vec<Band>,
    longest: OneSide<Vec<LongGap>>,
}

#[derive(Deserialize)]
struct Band {
    key: String,
    a: BandCell,
}

#[derive(Deserialize)]
struct BandCell {
    trials: Vec<RawBand>,
}

#[derive(Deserialize)]
struct RawBand {
    count: Whole,
    idle_ns: Whole,
}

#[derive(Deserialize)]
struct LongGap {
    trial: usize,
    start_ns: Whole,
    length_ns: Whole,
    after: Option<String>,
    before: Option<String>,
}

#[derive(Deserialize)]
struct Slow {
    trial: usize,
    start_ns: Whole,
    duration_ns: Whole,
    channel: String,
    phase: String,
    encoder: String,
}

#[derive(Deserialize)]
struct Remark {
    severity: String,
    text: String,
}

type Why = std::result::Result<Baseline, String>;

impl Report {
    fn baseline(&self) -> Why {
        if self.a.trials.is_empty() {
            return Err("it has no trial".to_owned());
        }
        self.check_lengths()?;
        self.check_sums()?;
        let timing = match self.settings.timing.as_str() {
            "intervals" => Timing::Intervals,
            "points" => Timing::Points,
            "live" => Timing::Live,
            other => return Err(format!("its timing `{other}` is not known")),
        };
        let trials: Vec<Trial> = self
            .a
            .trials
            .iter()
            .enumerate()
            .map(|(at, trial)| self.trial(at, trial))
            .collect::<std::result::Result<_, String>>()?;
        let buckets = Buckets {
            edges: self.settings.bucket_edges_ns.iter().map(|edge| edge.0).collect(),
            names: self.settings.bucket_names.clone(),
        };
        let asked = &self.settings.window;
        let window = WindowRule {
            span: match (&asked.signpost, &asked.quiet_ns) {
                (None, None) => WindowSpan::Process,
                (Some(name), None) => WindowSpan::Signpost(name.clone()),
                (None, Some(gap)) => WindowSpan::Quiet(Nanos(gap.0)),
                (Some(_), Some(_)) => return Err("its window is a signpost and a quiet stretch".to_owned()),
            },
            from: asked.from_ns.map(|at| Timestamp(at.0)),
            to: asked.to_ns.map(|at| Timestamp(at.0)),
            skip_first: asked.skip_first_ns.map(|length| Nanos(length.0)),
        };
        let warnings = self.notes.iter().filter(|note| note.severity == "warning");
        Ok(Baseline {
            side: compare::Side {
                name: self.a.name.clone(),
                trials,
            },
            settings: compare::Settings {
                timing,
                timing_b: timing,
                unit: self.settings.unit.clone(),
                unit_b: self.settings.unit.clone(),
                buckets,
                window_a: window.clone(),
                window_b: window,
                slowest: self.settings.slowest,
            },
            label_map: self
                .label_map
                .iter()
                .flat_map(|map| &map.rules)
                .map(StoredRule::parts)
                .collect(),
            notes: warnings
                .map(|note| Note::warning("baseline", format!("baseline: {}", note.text)))
                .collect(),
        })
    }

    /// Every row has a value of every trial.
    fn check_lengths(&self) -> std::result::Result<(), String> {
        let rows = [&self.buckets, &self.encoders, &self.phases, &self.channels]
            .into_iter()
            .flatten();
        for row in rows.chain([&self.total]) {
            let values = row.a.as_ref().map_or(self.a.trials.len(), |cell| cell.trials.len());
            if values != self.a.trials.len() {
                return Err(format!(
                    "row `{}` has {values} values for {} trials",
                    row.key,
                    self.a.trials.len()
                ));
            }
        }
        Ok(())
    }

    /// The rows of a table are the parts of the total, each key once, and busy is no longer than the whole.
    fn check_sums(&self) -> std::result::Result<(), String> {
        let tables = [
            ("buckets", &self.buckets),
            ("encoders", &self.encoders),
            ("phases", &self.phases),
            ("channels", &self.channels),
        ];
        for (name, rows) in tables {
            let keys: BTreeSet<&str> = rows.iter().map(|row| row.key.as_str()).collect();
            if keys.len() != rows.len() {
                return Err(format!("a key stands twice in {name}"));
            }
            for (at, trial) in self.a.trials.iter().enumerate() {
                let cells = rows.iter().filter_map(|row| row.a.as_ref()?.trials.get(at));
                let (submissions, total) = cells.fold((0_u64, 0_u64), |(submissions, total), cell| {
                    (
                        submissions.saturating_add(cell.submissions.0),
                        total.saturating_add(cell.total_ns.0),
                    )
                });
                if (submissions, total) != (trial.submissions.0, trial.total_ns.0) {
                    return Err(format!(
                        "the rows of {name} are not the parts of the total of `{}`",
                        trial.input
                    ));
                }
            }
        }
        let longer = |trial: &&StoredTrial| trial.busy_ns.0 > trial.total_ns.0.min(trial.window_ns.0);
        match self.a.trials.iter().find(longer) {
            Some(trial) => Err(format!("`{}` is busy for longer than it lasts", trial.input)),
            None => Ok(()),
        }
    }

    fn trial(&self, at: usize, stored: &StoredTrial) -> std::result::Result<Trial, String> {
        let raw = self.total.a.as_ref().and_then(|cell| cell.trials.get(at));
        let all = raw.ok_or("it has no total")?.stats();
        if (all.submissions, all.total.0, all.busy.0) != (stored.submissions.0, stored.total_ns.0, stored.busy_ns.0) {
            return Err(format!("the numbers of `{}` contradict each other", stored.input));
        }
        let groups = |rows: &[Row], zeros: bool| -> Vec<Group> {
            let groups = rows.iter().filter_map(|row| row.group(at));
            // A bucket without submissions is a measured 0, a phase without any is not there.
            groups.filter(|group| zeros || group.stats.submissions > 0).collect()
        };
        let start = stored.first_start_ns.map_or(0, |start| start.0);
        let samples = self.kernels.a.samples.iter().find(|samples| samples.trial == at);
        Ok(Trial {
            input: stored.input.clone(),
            run: stored.run.0,
            process: Process {
                name: stored.process.name.clone(),
                pid: stored.process.pid,
            },
            units: stored.units.map(|units| units.0),
            gpu: stored.gpu.clone(),
            rows_read: stored.rows_read.0,
            submissions_in_process: stored.submissions_in_process.0,
            all,
            window: match &stored.window {
                Some(found) => model::Window {
                    from: Timestamp(found.from_ns.0),
                    to: Timestamp(found.to_ns.0),
                },
                None => model::Window {
                    from: Timestamp(start),
                    to: Timestamp(start.saturating_add(stored.window_ns.0)),
                },
            },
            window_found: match &stored.window {
                Some(Found {
                    signpost_intervals: Some(intervals),
                    ..
                }) => WindowFound::Signposts { intervals: intervals.0 },
                Some(Found {
                    quiet_stretches: Some(of),
                    ..
                }) => WindowFound::Stretch { of: of.0 },
                _ => WindowFound::Given,
            },
            first_start: stored.first_start_ns.map(|at| Timestamp(at.0)),
            last_end: stored.last_end_ns.map(|at| Timestamp(at.0)),
            buckets: groups(&self.buckets, true),
            encoders: groups(&self.encoders, false),
            phases: groups(&self.phases, false),
            channels: groups(&self.channels, false),
            encoder_labels: stored.encoders.as_ref().map(|encoders| EncoderLabels {
                all: encoders.all.0,
                labelled: encoders.labelled.0,
            }),
            labelled_total: Nanos(stored.labelled_total_ns.0),
            // Its phases were named when it was stored.
            label_matches: None,
            // The union over the trials is what the file has: it stays the same when each trial has it.
            kernels: self.kernels.a.families.clone().map(KernelFamilies),
            shader_timeline_rows: self.kernels.a.shader_timeline_rows.map(|rows| rows.0),
            shader_samples: samples.map_or_else(Vec::new, |samples| {
                let kernel = |kernel: &Sampled| model::ShaderSamples {
                    name: kernel.name.clone(),
                    rows: kernel.samples.0,
                    sampled: Nanos(kernel.sampled_ns.0),
                };
                samples.kernels.iter().map(kernel).collect()
            }),
            shader_sampled_span: samples.and_then(|samples| {
                Some(model::Window {
                    from: Timestamp(samples.from_ns?.0),
                    to: Timestamp(samples.to_ns?.0),
                })
            }),
            histogram: self.histogram_of(at, stored)?,
            timeline: None,
            gaps: self.gaps_of(at),
            slowest: self
                .slowest
                .a
                .iter()
                .filter(|slow| slow.trial == at)
                .map(Slow::submission)
                .collect(),
            left_out: stored.left_out()?,
            cross_check: stored.cross_check.as_ref().map(|check| model::CrossCheck {
                both: check.both.0,
                only_points: check.only_points.0,
                only_intervals: check.only_intervals.0,
                differ: check.differ.0,
                disputed: Nanos(check.disputed_ns.0),
            }),
            state: stored.state(),
            notes: Vec::new(),
            fingerprint: stored.fingerprint()?,
        })
    }

    /// The durations of a trial; `None` when the report has none.
    fn histogram_of(&self, at: usize, trial: &StoredTrial) -> std::result::Result<Option<Histogram>, String> {
        let Some(stored) = &self.histogram else { return Ok(None) };
        let Some(raw) = stored.a.as_ref().and_then(|side| side.trials.get(at)) else {
            return Ok(None);
        };
        let mut histogram = Histogram::default();
        let (mut submissions, mut total) = (0_u64, 0_u64);
        for ((edge, count), time) in stored.edges_ns.iter().zip(&raw.submissions).zip(&raw.total_ns) {
            let bin = Histogram::bin_of(Nanos(edge.0));
            if Histogram::lower_edge(bin) != Nanos(edge.0) {
                return Err(format!("its histogram has no bin from {} ns on", edge.0));
            }
            submissions = submissions.saturating_add(count.0);
            total = total.saturating_add(time.0);
            let held = HistogramBin {
                submissions: count.0,
                total: Nanos(time.0),
            };
            histogram.put(bin, held);
        }
        if (submissions, total) == (trial.submissions.0, trial.total_ns.0) {
            Ok(Some(histogram))
        } else {
            Err(format!(
                "the histogram of `{}` does not hold its submissions",
                trial.input
            ))
        }
    }

    fn gaps_of(&self, at: usize) -> Gaps {
        let band = |band: &Band| {
            let raw = band.a.trials.get(at)?;
            Some(GapBand {
                key: band.key.clone(),
                count: raw.count.0,
                idle: Nanos(raw.idle_ns.0),
            })
        };
        let longest = self.gaps.longest.a.iter().filter(|gap| gap.trial == at);
        Gaps {
            bands: self.gaps.bands.iter().filter_map(band).collect(),
            longest: longest
                .map(|gap| Gap {
                    start: Timestamp(gap.start_ns.0),
                    length: Nanos(gap.length_ns.0),
                    after: gap.after.clone(),
                    before: gap.before.clone(),
                })
                .collect(),
        }
    }
}

impl StoredRule {
    fn parts(&self) -> (String, Option<String>, Option<String>) {
        (self.name.clone(), self.a_pattern.clone(), self.b_pattern.clone())
    }
}

impl Row {
    fn group(&self, at: usize) -> Option<Group> {
        let has = |flag: &str| self.flags.iter().any(|own| own == flag);
        Some(Group {
            key: self.key.clone(),
            coalesced: has("coalesced"),
            encoders_without_submission: has("incomplete").then_some((1, 1)),
            stats: self.a.as_ref()?.trials.get(at)?.stats(),
        })
    }
}

impl Raw {
    fn stats(&self) -> Stats {
        let durations = || {
            Some(Durations {
                mean: self.mean_ns?,
                p50: self.p50_ns?,
                p95: Nanos(self.p95_ns?.0),
                p99: Nanos(self.p99_ns?.0),
                min: Nanos(self.min_ns?.0),
                max: Nanos(self.max_ns?.0),
            })
        };
        Stats {
            submissions: self.submissions.0,
            total: Nanos(self.total_ns.0),
            busy: Nanos(self.busy_ns.0),
            durations: durations(),
            encoders: self.encoders.map(|encoders| encoders.0),
            command_buffers: self.command_buffers.map(|buffers| buffers.0),
            cpu_encode: self.cpu_encode_ns.map(|time| Nanos(time.0)),
            latency: self.latency_ns.as_ref().map(|latency| Latency {
                samples: latency.samples.0,
                p50: latency.p50,
                p95: Nanos(latency.p95.0),
            }),
        }
    }
}

impl Slow {
    fn submission(&self) -> SlowSubmission {
        SlowSubmission {
            start: Timestamp(self.start_ns.0),
            duration: Nanos(self.duration_ns.0),
            channel: self.channel.clone(),
            phase: self.phase.clone(),
            encoder: self.encoder.clone(),
        }
    }
}

impl StoredTrial {
    fn left_out(&self) -> std::result::Result<LeftOut, String> {
        let mut left_out = LeftOut::default();
        for (code, count) in &self.left_out {
            let reason = Reason::ALL.into_iter().find(|reason| reason.code() == code);
            let reason = reason.ok_or_else(|| format!("its reason `{code}` is not known"))?;
            if count.rows.0 > 0 {
                left_out.add(reason, count.rows.0, count.total_ns.map(|time| Nanos(time.0)));
            }
        }
        Ok(left_out)
    }

    fn state(&self) -> RecordingState {
        let times = |states: &[InState]| {
            let time = |state: &InState| StateTime {
                state: state.state.clone(),
                induced: state.induced,
                time: Nanos(state.time_ns.0),
            };
            states.iter().map(time).collect()
        };
        RecordingState {
            end_reason: self.state.end_reason.clone(),
            start_date: self.start.clone(),
            shader_timeline: self.state.shader_timeline.clone(),
            thermal: times(&self.state.thermal),
            performance: times(&self.state.performance),
            ..RecordingState::default()
        }
    }

    /// The file's, or one of the trial's own numbers: equal recordings are still told from others.
    fn fingerprint(&self) -> std::result::Result<u64, String> {
        if let Some(text) = &self.fingerprint {
            return u64::from_str_radix(text, 16).map_err(|_| format!("the fingerprint of `{}` is none", self.input));
        }
        let counts = [self.rows_read.0, self.submissions.0, self.total_ns.0, self.busy_ns.0];
        let text = format!("{} {counts:?} {:?}", self.input, self.first_start_ns.map(|at| at.0));
        let digest = Sha256::digest(text);
        Ok(digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
    }
}
