//! The gate: limits on chosen rows, and whether the trials show that each is kept.
//!
//! What goes in: the judged rows and their limits. What comes out: a [`Gate`] with one [`GatedRow`] per limit. Red claims
//! only what the lower bound of the interval shows, green only what the upper bound shows; everything else is
//! `cannot_judge`. Decisions use unrounded values. What the user writes down is read here too: keys, limits, exceptions.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::verdict::{Judge, Judgement, RowNoise, Values};
use crate::error::{Error, Result};
use crate::inference::{Interval, NO_ERROR, Verdict, log_of};

/// A limit in percent: how much slower A may be.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    /// Its value; finite and not negative.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Percent {
    type Err = String;

    /// `3`, `3%`, `0.5 %`. Not a number, infinite, negative or empty: refused, since such a limit could never be passed.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = text.trim();
        let number = number.strip_suffix('%').unwrap_or(number).trim_end();
        let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        match number.parse::<f64>() {
            Ok(value) if plain && value.is_finite() => Ok(Percent(value)),
            _ => Err(format!(
                "`{text}` is no percentage: give a number from 0 up, such as 3 or 0.5%"
            )),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

impl<'de> Deserialize<'de> for Percent {
    /// A number, or a text such as `"3 %"`.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Integer(i64),
            Number(f64),
            Text(String),
        }
        let text = match Written::deserialize(from)? {
            Written::Integer(value) => value.to_string(),
            Written::Number(value) => value.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The tables that have rows to gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Duration buckets.
    Buckets,
    /// Encoder families.
    Encoders,
    /// Phases.
    Phases,
    /// Channels.
    Channels,
}

impl Table {
    /// All of them, in the order of the reports.
    pub const ALL: [Table; 4] = [Table::Buckets, Table::Encoders, Table::Phases, Table::Channels];

    /// Name in the JSON: `buckets`.
    pub fn name(self) -> &'static str {
        match self {
            Table::Buckets => "buckets",
            Table::Encoders => "encoders",
            Table::Phases => "phases",
            Table::Channels => "channels",
        }
    }

    /// Prefix of a key: `bucket`.
    pub fn singular(self) -> &'static str {
        match self {
            Table::Buckets => "bucket",
            Table::Encoders => "encoder",
            Table::Phases => "phase",
            Table::Channels => "channel",
        }
    }
}

/// Which row a limit is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKey {
    /// GPU busy time.
    Busy,
    /// Sum of durations.
    Total,
    /// A row of a table by its key.
    In(Table, String),
    /// A kernel; only live profiles have GPU time by kernel.
    Kernel(String),
}

impl FromStr for RowKey {
    type Err = String;

    /// `busy`, `total`, `bucket:md_8_32us`, `encoder:…`, `phase:…`, `channel:…`, `kernel:…`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let known = "use busy, total, or bucket:, encoder:, phase:, channel: or kernel: with the key of a row";
        match text.split_once(':') {
            None if text == "busy" => Ok(RowKey::Busy),
            None if text == "total" => Ok(RowKey::Total),
            Some((_, "")) => Err(format!("`{text}` names no row: {known}")),
            Some(("kernel", key)) => Ok(RowKey::Kernel(key.to_owned())),
            Some((table, key)) => Table::ALL
                .into_iter()
                .find(|known| known.singular() == table)
                .map(|table| RowKey::In(table, key.to_owned()))
                .ok_or_else(|| format!("`{text}` names no row: {known}")),
            None => Err(format!("`{text}` names no row: {known}")),
        }
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowKey::Busy => f.write_str("busy"),
            RowKey::Total => f.write_str("total"),
            RowKey::In(table, key) => write!(f, "{}:{key}", table.singular()),
            RowKey::Kernel(key) => write!(f, "kernel:{key}"),
        }
    }
}

/// A limit as it is written: `KEY[=P]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The row.
    pub key: RowKey,
    /// Its own limit; `None`: that of `busy`.
    pub limit: Option<Percent>,
}

impl FromStr for Limit {
    type Err = String;

    /// A key can hold `=` itself: only a number behind the last one is a limit.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Some((key, limit)) = text.rsplit_once('=') {
            match (limit.parse(), key.parse()) {
                (Ok(limit), Ok(key)) => {
                    return Ok(Limit {
                        key,
                        limit: Some(limit),
                    });
                }
                // `phase:a=b` is a row; `busy=x` and `phase:a=NaN` are slips that must not switch a gate off.
                (Err(error), _) if !key.contains(':') || looks_like_a_limit(limit) => return Err(error),
                _ => {}
            }
        }
        Ok(Limit {
            key: text.parse()?,
            limit: None,
        })
    }
}

fn looks_like_a_limit(text: &str) -> bool {
    let word = text.trim().trim_end_matches('%').trim().to_ascii_lowercase();
    word.is_empty() || word.parse::<f64>().is_ok()
}

/// An exception with an end: a row that may be slower for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Exception {
    /// The row.
    pub row: RowKey,
    /// Its limit through that day.
    pub up_to: Percent,
    /// Last day (UTC) on which it holds.
    pub until: jiff::civil::Date,
    /// Why.
    pub why: String,
}

/// Reads exceptions: TOML with `[[accept]]` tables of `row`, `up_to`, `until` (a date) and `why`, all required.
pub fn exceptions(text: &str) -> Result<Vec<Exception>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        accept: Vec<Written>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        row: String,
        up_to: Percent,
        until: toml::Value,
        why: String,
    }
    let refuse = |message: String| {
        Error::unfit(message).with_help(
            "each exception is a table [[accept]] with row = \"phase:NAME\", up_to = 5, until = 2026-01-31, why = \"…\"",
        )
    };
    let file: File =
        toml::from_str(text).map_err(|error| refuse(error.message().to_owned() + &place(text, error.span())))?;
    let mut read: Vec<Exception> = Vec::new();
    for written in file.accept {
        let row: RowKey = written.row.parse().map_err(refuse)?;
        let date = match &written.until {
            toml::Value::String(text) => text.clone(),
            toml::Value::Datetime(date) => date.to_string(),
            _ => String::new(),
        };
        let until = date
            .parse()
            .map_err(|_| refuse(format!("accept for `{row}`: `until` must be a day such as 2026-01-31")))?;
        if written.why.trim().is_empty() {
            return Err(refuse(format!("accept for `{row}`: `why` is empty")));
        }
        if read.iter().any(|other| other.row == row) {
            return Err(refuse(format!("`{row}` is accepted twice")));
        }
        read.push(Exception {
            row,
            up_to: written.up_to,
            until,
            why: written.why,
        });
    }
    if read.is_empty() {
        return Err(refuse("the file accepts nothing".to_owned()));
    }
    Ok(read)
}

fn place(text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return String::new();
    };
    format!(" (line {})", before.matches('\n').count() + 1)
}

/// What is gated, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRules {
    /// Limits in the order of the report: `busy` first when it has one.
    pub limits: Vec<(RowKey, Percent)>,
    /// Whether a limit inside the interval passes.
    pub pass_inconclusive: bool,
    /// Exceptions.
    pub exceptions: Vec<Exception>,
    /// The day that exceptions are held against.
    pub today: jiff::civil::Date,
    /// Whether to show that this gate can fail.
    pub self_test: bool,
}

impl GateRules {
    /// Puts limits together: `fail_above` gates `busy`, and rows without their own limit take it.
    ///
    /// A row without any limit, or with two, is refused.
    pub fn limits(fail_above: Option<Percent>, rows: &[Limit]) -> Result<Vec<(RowKey, Percent)>> {
        let mut limits: Vec<(RowKey, Percent)> = Vec::new();
        let named = rows.iter().any(|row| row.key == RowKey::Busy);
        if let Some(limit) = fail_above.filter(|_| !named) {
            limits.push((RowKey::Busy, limit));
        }
        for row in rows {
            let limit = row.limit.or(fail_above).ok_or_else(|| {
                Error::usage(format!("--gate {}: the row has no limit", row.key))
                    .with_help(format!("give one: --gate '{}=3%', or --fail-above 3% for all", row.key))
            })?;
            if limits.iter().any(|(key, _)| *key == row.key) {
                return Err(Error::usage(format!("--gate {}: the row is given twice", row.key)));
            }
            limits.push((row.key.clone(), limit));
        }
        Ok(limits)
    }

    /// The limit of a row with its exception.
    pub(super) fn limit(&self, key: &RowKey, limit: Percent) -> (Percent, Option<&Exception>) {
        let exception = self
            .exceptions
            .iter()
            .find(|exception| exception.row == *key && self.today <= exception.until && exception.up_to > limit);
        (exception.map_or(limit, |exception| exception.up_to), exception)
    }

    /// Limit in force for a row, if it is gated.
    pub(super) fn limit_of(&self, key: &RowKey) -> Option<f64> {
        let (key, limit) = self.limits.iter().find(|(gated, _)| gated == key)?;
        Some(self.limit(key, *limit).0.get())
    }
}

/// What came of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateResult {
    /// The upper bound keeps the limit.
    Passed,
    /// The trials do not show whether the limit is kept.
    CannotJudge,
    /// The lower bound breaks the limit.
    Failed,
}

impl GateResult {
    /// `passed`, `cannot_judge`, `failed`.
    pub fn name(self) -> &'static str {
        match self {
            GateResult::Passed => "passed",
            GateResult::CannotJudge => "cannot_judge",
            GateResult::Failed => "failed",
        }
    }
}

/// The whole gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The worst of its rows, `failed` before `cannot_judge`; excused ones count as passed.
    pub result: GateResult,
    /// One per limit, in the order of the rules.
    pub rows: Vec<GatedRow>,
    /// What `--self-test` showed; `None` when it was not asked for.
    pub self_test: Option<SelfTest>,
}

/// One limit and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct GatedRow {
    /// The row.
    pub key: RowKey,
    /// Limit in force, percent.
    pub limit_pct: f64,
    /// What came of it.
    pub result: GateResult,
    /// Why it cannot be judged (`limit_in_interval`, `incomparable`, `missing`, `zero_in_trial`, `one_trial`); with
    /// `excused` why it would not have passed by itself.
    pub reason: Option<&'static str>,
    /// It passes only because a limit inside the interval was asked to pass.
    pub excused: bool,
    /// Trials a side that would probably decide, when the limit lies inside the interval.
    pub trials_needed: Option<usize>,
    /// Change of the medians in percent of B.
    pub delta_pct: Option<f64>,
    /// What is said of the row.
    pub judgement: Judgement,
    /// The exception that raised the limit.
    pub exception: Option<Exception>,
}

/// Whether the gate can fail, tried on changed values of side A.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfTest {
    /// Per gated row: what came of a change above the limit, of one below it, and of the row gone.
    pub rows: Vec<(RowKey, Option<[GateResult; 3]>)>,
}

impl SelfTest {
    /// Expected: failed, passed, cannot judge.
    pub const EXPECTED: [GateResult; 3] = [GateResult::Failed, GateResult::Passed, GateResult::CannotJudge];

    /// Whether every row can fail, pass and be missed.
    pub fn works(&self) -> bool {
        self.rows.iter().all(|(_, results)| *results == Some(Self::EXPECTED))
    }
}

/// The decision about one row.
pub(super) struct Decision {
    pub(super) result: GateResult,
    pub(super) reason: Option<&'static str>,
    pub(super) trials_needed: Option<usize>,
}

/// Holds a judged row against a limit in percent; `None`: there is no such row.
pub(super) fn decide(judgement: Option<&Judgement>, limit_pct: f64) -> Decision {
    let cannot = |reason| Decision {
        result: GateResult::CannotJudge,
        reason: Some(reason),
        trials_needed: None,
    };
    let decided = |result| Decision {
        result,
        reason: None,
        trials_needed: None,
    };
    let Some(judgement) = judgement else {
        return cannot("missing");
    };
    match judgement.verdict {
        Verdict::Incomparable => return cannot("incomparable"),
        Verdict::OnlyInA | Verdict::OnlyInB => return cannot("missing"),
        Verdict::Unchanged if judgement.test.is_none() => return decided(GateResult::Passed),
        _ => {}
    }
    let Some(test) = &judgement.test else {
        // Without an interval the verdict says why there is none.
        return cannot(judgement.reasons.first().copied().unwrap_or("one_trial"));
    };
    let (interval, limit) = (&test.interval, log_of(limit_pct));
    if interval.low() > limit + NO_ERROR {
        decided(GateResult::Failed)
    } else if interval.high() <= limit + NO_ERROR {
        decided(GateResult::Passed)
    } else {
        Decision {
            trials_needed: interval.trials_needed((interval.change - limit).abs()),
            ..cannot("limit_in_interval")
        }
    }
}

/// What a gate does with side A made slower than the limit, faster than it, and without the row.
///
/// `None` when the row has no interval: then nothing could make this gate fail.
pub(super) fn self_test(
    judge: &Judge,
    values: &Values,
    limit_pct: f64,
    margin_pct: f64,
    noise: Option<RowNoise>,
) -> Option<[GateResult; 3]> {
    if !judge.incomparable.is_empty() {
        return None;
    }
    let interval: Interval = judge.interval(values, noise)?;
    let step = if interval.half > 0.0 {
        2.0 * interval.half
    } else {
        log_of(1.0)
    };
    let limit = log_of(limit_pct);
    let with = |values: &Values| {
        let judgement = judge.judge(values, margin_pct, noise);
        decide(Some(&judgement), limit_pct).result
    };
    let moved_to = |change: f64| with(&values.scaled((change - interval.change).exp()));
    Some([moved_to(limit + step), moved_to(limit - step), with(&values.gone())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_no_number_is_refused() {
        for text in [
            "", "nan", "NaN", "inf", "-1", "-0.5%", "three", "3%%", "1e999", "%", "+3", "3 5",
        ] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
            assert!(format!("busy={text}").parse::<Limit>().is_err(), "busy={text}");
        }
        for (text, value) in [("3", 3.0), ("3%", 3.0), (" 0.5 % ", 0.5), ("0", 0.0), (".5", 0.5)] {
            assert_eq!(text.parse::<Percent>().unwrap().get(), value, "{text}");
        }
    }

    #[test]
    fn a_key_may_hold_an_equals_sign_but_no_limit_by_mistake() {
        let limit = |text: &str| text.parse::<Limit>();
        assert_eq!(limit("phase:a=b").unwrap().key.to_string(), "phase:a=b");
        assert_eq!(limit("phase:a=b=2%").unwrap().limit.unwrap().get(), 2.0);
        assert_eq!(limit("total").unwrap().limit, None);
        for slip in [
            "phase:a=",
            "phase:a=nan",
            "phase:a=-1",
            "phase:",
            "bucket",
            "speed",
            "fase:x=3",
        ] {
            assert!(limit(slip).is_err(), "{slip}");
        }
    }

    #[test]
    fn rows_without_a_limit_take_that_of_busy() {
        let percent = |text: &str| text.parse::<Percent>().unwrap();
        let rows: Vec<Limit> = ["phase:x", "total=1%"].map(|text| text.parse().unwrap()).into();
        let limits = GateRules::limits(Some(percent("3")), &rows).unwrap();
        let shown: Vec<String> = limits.iter().map(|(key, limit)| format!("{key} {limit}")).collect();
        assert_eq!(shown, ["busy 3 %", "phase:x 3 %", "total 1 %"]);
        assert!(
            GateRules::limits(None, &rows)
                .unwrap_err()
                .to_string()
                .contains("no limit")
        );
        let own: Vec<Limit> = vec!["busy=1".parse().unwrap()];
        assert_eq!(
            GateRules::limits(Some(percent("3")), &own).unwrap(),
            [(RowKey::Busy, percent("1"))]
        );
        let twice: Vec<Limit> = vec!["total=1".parse().unwrap(), "total=2".parse().unwrap()];
        assert!(GateRules::limits(None, &twice).is_err());
    }

    #[test]
    fn an_exception_needs_a_row_a_limit_an_end_and_a_reason() {
        let good = "[[accept]]\nrow = \"phase:x\"\nup_to = \"5 %\"\nuntil = 2026-01-31\nwhy = \"known\"\n";
        let read = exceptions(good).unwrap();
        assert_eq!(read.first().unwrap().until.to_string(), "2026-01-31");
        assert!(exceptions(&good.replace("2026-01-31", "\"2026-01-31\"")).is_ok());
        for (from, to) in [
            ("row = \"phase:x\"\n", ""),
            ("up_to = \"5 %\"\n", ""),
            ("until = 2026-01-31\n", ""),
            ("why = \"known\"\n", ""),
            ("\"known\"", "\" \""),
            ("2026-01-31", "2026-02-31"),
            ("5 %", "nan"),
            ("phase:x", "speed"),
            ("why", "because = 1\nwhy"),
        ] {
            assert!(exceptions(&good.replace(from, to)).is_err(), "{from} -> {to}");
        }
        assert!(exceptions(&format!("{good}{good}")).is_err(), "twice");
        assert!(exceptions("").is_err(), "nothing");
    }
}
