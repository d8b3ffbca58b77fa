//! Noise between sessions: how much the trials of one build differ when each comes from its own session.
//!
//! `calibrate` makes a [`Noise`] of at least three trials; a comparison then widens its intervals to it. As a file it is
//! JSON with its own schema name and version. Per row: how many sessions had it, and the standard deviation of ln v.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::gate::{RowKey, Table};
use super::notes::rule;
use super::order::start;
use super::verdict::RowNoise;
use super::{Cell, Comparison, Side};
use crate::attribution::Stats;
use crate::error::{Error, Result};
use crate::inference::moments;
use crate::model::Note;

const SCHEMA: &str = "trace-attr.noise";
const VERSION: u32 = 1;
/// Fewest sessions that show how sessions differ.
const FEWEST: usize = 3;
/// Largest believable standard deviation of ln v: values twenty times as large as others.
const WILDEST: f64 = 3.0;
/// Starts that lie closer together than this are one session.
const SESSION: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// Noise of one build on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    schema: String,
    schema_version: u32,
    tool_version: String,
    /// What values were divided by.
    unit: Option<String>,
    gpu: Option<String>,
    os: Vec<String>,
    process: String,
    timing: String,
    window: String,
    trials: Vec<NoiseTrial>,
    /// By row key (`busy`, `phase:…`).
    rows: BTreeMap<String, Spread>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoiseTrial {
    input: String,
    start: Option<String>,
}

/// Noise of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spread {
    /// Trials with a value above 0.
    n: usize,
    /// Standard deviation of ln v.
    sd: f64,
}

impl Noise {
    /// Measures the noise of a one-sided comparison's trials.
    ///
    /// # Errors
    /// Fewer than three trials, trials of several GPUs, or units for only some of them.
    pub fn measure(comparison: &Comparison) -> Result<(Noise, Vec<Note>)> {
        let side = &comparison.a;
        if side.trials.len() < FEWEST {
            return Err(Error::usage(format!(
                "noise needs at least {FEWEST} trials of one build, and there are {}",
                side.trials.len()
            ))
            .with_help("record each in its own session, hours or days apart"));
        }
        let gpus: BTreeSet<&str> = side.trials.iter().filter_map(|trial| trial.gpu.as_deref()).collect();
        if gpus.len() > 1 {
            let gpus: Vec<&str> = gpus.into_iter().collect();
            return Err(
                Error::unfit(format!("the trials ran on several GPUs: {}", gpus.join(", ")))
                    .with_help("noise belongs to one machine: make a file for each"),
            );
        }
        let with_units = side.trials.iter().filter(|trial| trial.units.is_some()).count();
        if with_units != 0 && with_units != side.trials.len() {
            return Err(Error::usage("only some of the trials have units").with_help("give all of them, or none"));
        }
        let mut rows = BTreeMap::new();
        let mut add = |key: RowKey, cell: &Option<Cell>, time: fn(&Stats) -> u64| {
            let Some(cell) = cell else { return };
            let values: Vec<f64> = cell
                .trials
                .iter()
                .zip(&side.trials)
                .map(|(stats, trial)| time(stats) as f64 / trial.units.unwrap_or(1) as f64)
                .filter(|value| *value > 0.0)
                .map(f64::ln)
                .collect();
            // One value has no spread.
            if values.len() > 1 {
                let spread = Spread {
                    n: values.len(),
                    sd: moments(&values).1.sqrt(),
                };
                rows.insert(key.to_string(), spread);
            }
        };
        add(RowKey::Busy, &comparison.busy.a, |stats| stats.busy.0);
        add(RowKey::Total, &comparison.total.a, |stats| stats.total.0);
        for table in Table::ALL {
            for row in comparison.table(table) {
                add(RowKey::In(table, row.key.clone()), &row.a, |stats| stats.total.0);
            }
        }
        let os: BTreeSet<String> = side.trials.iter().filter_map(|t| t.state.os_version.clone()).collect();
        let noise = Noise {
            schema: SCHEMA.to_owned(),
            schema_version: VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            unit: comparison.settings.unit.clone(),
            gpu: gpus.into_iter().next().map(str::to_owned),
            os: os.into_iter().collect(),
            process: process(side).to_owned(),
            timing: comparison.settings.timing.name().to_owned(),
            window: rule(&comparison.settings.window_a),
            trials: side
                .trials
                .iter()
                .map(|trial| NoiseTrial {
                    input: trial.input.clone(),
                    start: trial.state.start_date.clone(),
                })
                .collect(),
            rows,
        };
        Ok((noise, one_session(side).into_iter().collect()))
    }

    /// Reads a file that `calibrate` wrote; other schemas and versions are refused.
    pub fn from_json(text: &str) -> Result<Noise> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            schema_version: u32,
        }
        let refuse = |message: String| {
            Error::unfit(message).with_help("make one with `trace-attr calibrate TRIAL… -o noise.json`")
        };
        let head: Head =
            serde_json::from_str(text).map_err(|error| refuse(format!("this is no noise file: {error}")))?;
        if head.schema != SCHEMA {
            return Err(refuse(format!(
                "this is no noise file: its schema is `{}`",
                head.schema
            )));
        }
        if head.schema_version != VERSION {
            return Err(refuse(format!(
                "the noise file has version {}, and this trace-attr reads version {VERSION}",
                head.schema_version
            )));
        }
        let noise: Noise =
            serde_json::from_str(text).map_err(|error| refuse(format!("the noise file is broken: {error}")))?;
        if noise.trials.len() < FEWEST {
            return Err(refuse(format!(
                "the noise file is broken: it has {} trials",
                noise.trials.len()
            )));
        }
        let sound =
            |spread: &Spread| (2..=noise.trials.len()).contains(&spread.n) && (0.0..=WILDEST).contains(&spread.sd);
        match noise.rows.iter().find(|(_, spread)| !sound(spread)) {
            Some((key, _)) => Err(refuse(format!(
                "the noise file is broken: row `{key}` has no usable spread"
            ))),
            None => Ok(noise),
        }
    }

    /// The file's text.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .map_err(|error| Error::unfit(format!("the noise cannot be written: {error}")))
    }

    /// Trials that it was measured on.
    pub fn sessions(&self) -> usize {
        self.trials.len()
    }

    /// Rows that it knows, with their standard deviation of ln v.
    pub fn rows(&self) -> impl Iterator<Item = (&str, f64)> {
        self.rows.iter().map(|(key, spread)| (key.as_str(), spread.sd))
    }

    /// Noise of a row.
    pub(super) fn row(&self, key: &RowKey) -> Option<RowNoise> {
        self.rows.get(&key.to_string()).map(|spread| RowNoise {
            sessions: spread.n,
            sd: spread.sd,
        })
    }

    /// Why it does not belong to a comparison; with other systems only a remark.
    pub(super) fn misfits(&self, comparison: &Comparison) -> (Vec<String>, Vec<Note>) {
        let trials = || {
            comparison
                .a
                .trials
                .iter()
                .chain(comparison.b.iter().flat_map(|side| &side.trials))
        };
        let mut misfits = Vec::new();
        let gpus: BTreeSet<&str> = trials().filter_map(|trial| trial.gpu.as_deref()).collect();
        if let Some(gpu) = &self.gpu
            && let Some(other) = gpus.iter().find(|other| *other != gpu)
        {
            misfits.push(format!("the noise was measured on {gpu}, and a trial ran on {other}"));
        }
        if self.unit != comparison.settings.unit {
            let word = |unit: &Option<String>| unit.clone().unwrap_or_else(|| "trial".to_owned());
            misfits.push(format!(
                "the noise was measured per {}, and this comparison is per {}",
                word(&self.unit),
                word(&comparison.settings.unit)
            ));
        }
        if self.timing != comparison.settings.timing.name() {
            let own = comparison.settings.timing.name();
            misfits.push(format!(
                "the noise was measured from {}, and this comparison is from {own}",
                self.timing
            ));
        }
        let window = rule(&comparison.settings.window_a);
        if self.window != window {
            misfits.push(format!(
                "the noise was measured in another window ({}), and this comparison is of: {window}",
                self.window
            ));
        }
        let mut notes = Vec::new();
        let sides = std::iter::once(&comparison.a).chain(&comparison.b);
        if !sides.into_iter().any(|side| process(side) == self.process) {
            let text = format!("the noise was measured on another process: {}", self.process);
            notes.push(Note::warning("noise_process_differs", text));
        }
        let systems: BTreeSet<&str> = trials().filter_map(|trial| trial.state.os_version.as_deref()).collect();
        if !self.os.is_empty() && systems.iter().any(|os| !self.os.iter().any(|known| known == os)) {
            let text = format!("the noise was measured under another system ({})", self.os.join(", "));
            notes.push(Note::remark("noise_os_differs", text));
        }
        notes.extend(one_session_of(self.trials.iter().map(|trial| trial.start.as_deref())));
        (misfits, notes)
    }
}

/// Name of the process of a side's first trial.
fn process(side: &Side) -> &str {
    side.trials.first().map_or("", |trial| trial.process.name.as_str())
}

fn one_session(side: &Side) -> Option<Note> {
    one_session_of(
        side.trials
            .iter()
            .map(|trial| start(trial).and(trial.state.start_date.as_deref())),
    )
}

/// Trials that start within an hour do not show how sessions differ.
fn one_session_of<'a>(starts: impl Iterator<Item = Option<&'a str>>) -> Option<Note> {
    let starts: Vec<jiff::Timestamp> = starts.map(|start| start?.parse().ok()).collect::<Option<_>>()?;
    let (first, last) = (starts.iter().min()?, starts.iter().max()?);
    (last.duration_since(*first) < SESSION).then(|| {
        Note::warning(
            "one_session",
            "the trials that the noise was measured on start within an hour: they are one session and do not show how \
             sessions differ",
        )
    })
}
