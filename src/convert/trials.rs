//! A trial among many: what it is called in a fleet, its row in the table `trials`, and what the user said of it (`--set`).
//!
//! Everything that is the same for all submissions of a trial stands here; `submissions` has the rest.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::Hasher;
use std::str::FromStr;

use twox_hash::XxHash64;

use super::submissions;
use crate::attribution::MappedSide;
use crate::error::{Error, Result};
use crate::measure::Union;
use crate::model::{Nanos, Reason, StateTime, Trace};

/// What the user said of all trials of a conversion: `commit=0c1f2ab`. A column of `trials` with a text in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetColumn {
    /// The column.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl FromStr for SetColumn {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |why: String| Error::usage(format!("--set {text}: {why}"));
        let Some((name, value)) = text.split_once('=') else {
            return Err(refuse("no value is given".into()).with_help("write NAME=VALUE, such as commit=0c1f2ab"));
        };
        let in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(in_name) {
            // Databases fold capitals, each in its own way.
            return Err(refuse(format!("`{name}` cannot be a column"))
                .with_help("begin with a small letter and go on with small letters, digits and _"));
        }
        if is_taken(name) {
            return Err(refuse(format!("there is a column `{name}` already")).with_help("use another name"));
        }
        if value.trim().is_empty() {
            return Err(
                refuse("the value is empty".into()).with_help("leave the option out where there is nothing to say")
            );
        }
        Ok(SetColumn {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// Refuses a column that is set twice.
///
/// # Errors
/// The first of them.
pub fn distinct(set: &[SetColumn]) -> Result<()> {
    let twice = set
        .iter()
        .enumerate()
        .find(|(at, column)| set.iter().take(*at).any(|other| other.name == column.name));
    match twice {
        Some((_, column)) => Err(Error::usage(format!(
            "--set {}: this column is given twice",
            column.name
        ))),
        None => Ok(()),
    }
}

/// Whether a table has a column of this name already.
fn is_taken(name: &str) -> bool {
    let left_out = |reason: Reason| LEFT_OUT_VALUES.iter().any(|what| name == left_out_name(reason, what));
    matches!(name, "side" | "trial")
        || submissions::COLUMNS.iter().any(|column| column.name == name)
        || COLUMNS.iter().any(|(column, _)| *column == name)
        || Reason::ALL.into_iter().any(left_out)
}

/// A trial, joined, and what it is among others.
#[derive(Debug, Clone, Copy)]
pub struct FleetTrial<'a> {
    /// The side that it belongs to; one side alone is A.
    pub side: MappedSide,
    /// The side's name.
    pub name: &'a str,
    /// Its input, as it is shown.
    pub input: &'a str,
    /// What units are called, when there are any.
    pub unit: Option<&'a str>,
    /// Units of this trial.
    pub units: Option<u64>,
    /// What the user said of it.
    pub set: &'a [SetColumn],
    /// Its submissions.
    pub trace: &'a Trace,
}

/// A value in `trials`; `None`: not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Text(Option<Cow<'a, str>>),
    Number(Option<u64>),
}

impl<'a> From<Option<&'a String>> for Value<'a> {
    fn from(text: Option<&'a String>) -> Self {
        Value::Text(text.map(|text| text.as_str().into()))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Some(text.into()))
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Number(Some(number))
    }
}

/// A trial's value in a column.
type ValueOf = for<'a> fn(&FleetTrial<'a>) -> Value<'a>;

/// Columns of `trials` in their order; those of left-out rows and of `--set` follow.
const COLUMNS: [(&str, ValueOf); 24] = [
    ("name", |of| of.name.into()),
    ("input", |of| of.input.into()),
    ("unit", |of| Value::Text(of.units.and(of.unit).map(Cow::from))),
    ("units", |of| Value::Number(of.units)),
    ("run", |of| of.trace.run.into()),
    ("process", |of| of.trace.process.name.as_str().into()),
    ("pid", |of| Value::Number(of.trace.process.pid.map(u64::from))),
    ("gpu", |of| of.trace.gpu.as_ref().into()),
    ("os_version", |of| of.trace.state.os_version.as_ref().into()),
    ("instruments_version", |of| {
        of.trace.state.instruments_version.as_ref().into()
    }),
    ("recorded", |of| of.trace.state.start_date.as_ref().into()),
    ("recording_ns", |of| {
        Value::Number(of.trace.state.duration.map(|length| length.0))
    }),
    ("end_reason", |of| of.trace.state.end_reason.as_ref().into()),
    ("shader_timeline", |of| of.trace.state.shader_timeline.as_ref().into()),
    ("thermal", |of| states(&of.trace.state.thermal)),
    ("performance", |of| states(&of.trace.state.performance)),
    ("timing", |of| of.trace.timing.name().into()),
    ("window_from_ns", |of| of.trace.window.from.0.into()),
    ("window_to_ns", |of| of.trace.window.to.0.into()),
    ("submissions", |of| {
        Value::Number(u64::try_from(of.trace.submissions.len()).ok())
    }),
    ("total_ns", |of| Value::Number(total(of.trace).map(|total| total.0))),
    ("busy_ns", |of| busy(of.trace).0.into()),
    ("rows_read", |of| of.trace.rows_read.into()),
    ("left_out_rows", |of| of.trace.left_out.rows().into()),
];

/// What is said of the rows of each reason.
const LEFT_OUT_VALUES: [&str; 2] = ["rows", "ns"];

fn left_out_name(reason: Reason, what: &str) -> String {
    format!("left_out_{}_{what}", reason.code())
}

impl<'a> FleetTrial<'a> {
    /// What the trial is called in folders and tables: the same for the same submissions of the same process in the same
    /// window, whatever file they came from, and never a number to any reader.
    pub fn key(&self) -> String {
        let trace = self.trace;
        let mut hash = XxHash64::with_seed(0);
        hash.write_u64(trace.fingerprint);
        hash.write(trace.timing.name().as_bytes());
        hash.write(trace.process.name.as_bytes());
        hash.write_u64(trace.process.pid.map_or(u64::MAX, u64::from));
        hash.write_u64(trace.window.from.0);
        hash.write_u64(trace.window.to.0);
        format!("t-{:016x}", hash.finish())
    }

    /// `a` or `b`.
    pub fn side_letter(&self) -> &'static str {
        match self.side {
            MappedSide::A => "a",
            MappedSide::B => "b",
        }
    }

    /// The trial's row: names and values in the order of the table's columns.
    pub(super) fn values(&self) -> Vec<(Cow<'a, str>, Value<'a>)> {
        let left_out = Reason::ALL.into_iter().flat_map(|reason| {
            let count = self.trace.left_out.get(reason);
            let [rows, ns] = LEFT_OUT_VALUES.map(|what| Cow::from(left_out_name(reason, what)));
            [
                (rows, Value::from(count.rows)),
                (ns, Value::Number(count.total.map(|total| total.0))),
            ]
        });
        let set = self.set.iter();
        COLUMNS
            .iter()
            .map(|(name, value)| (Cow::from(*name), value(self)))
            .chain(left_out)
            .chain(set.map(|set| (set.name.as_str().into(), set.value.as_str().into())))
            .collect()
    }
}

/// Sum of durations; `None` beyond 64 bits.
fn total(trace: &Trace) -> Option<Nanos> {
    let mut durations = trace.submissions.iter().map(|submission| submission.duration.0);
    durations.try_fold(0, u64::checked_add).map(Nanos)
}

/// Length of the union of all submissions inside the window.
fn busy(trace: &Trace) -> Nanos {
    let mut union = Union::default();
    for submission in &trace.submissions {
        union.add(submission.start.0, submission.end().0, trace.window);
    }
    Nanos(union.length)
}

/// `Nominal`, or `Fair, Nominal`: states of the window, the longest first.
fn states<'a>(states: &[StateTime]) -> Value<'a> {
    let mut text = String::new();
    for state in states {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&state.state);
        if state.induced {
            let _ = write!(text, " (induced)");
        }
    }
    Value::Text((!text.is_empty()).then(|| text.into()))
}
