//! One long table for a database or a spreadsheet: a line per value, RFC 4180 with LF.
//!
//! ```text
//! section,key,side,trial,metric,value,unit
//! phases,hf2q.decode.lm_head,a,2,total,11687082,ns
//! phases,hf2q.decode.lm_head,a,,total,182.6106…,us/token
//! phases,hf2q.decode.lm_head,,,verdict,only_in_a,
//! ```
//!
//! With a trial: that trial's own value, not divided. With a side but no trial: the median over its trials, per unit.
//! Without a side: what is said of both. A value that was not measured is empty. Labels are text: made visible, and no
//! spreadsheet takes one for a formula; numbers are never touched.

use std::io;

use super::pick;
use super::series::{per, sides};
use crate::attribution::Stats;
use crate::compare::gate::GatedRow;
use crate::compare::verdict::Test;
use crate::compare::{Cell, Change, Comparison, Judgement, Over, Row, Side, Trial, headline};
use crate::inference::{Interval, percent};
use crate::label::{guarded, visible};
use crate::model::{Nanos, Reason};

const NS: &str = "ns";
const PERCENT: &str = "%";

/// The whole table.
pub(super) fn render(comparison: &Comparison) -> io::Result<String> {
    let mut table = Table::new(comparison)?;
    table.settings(comparison)?;
    for (letter, side) in sides(comparison) {
        table.side(letter, side)?;
    }
    let overall = [&comparison.busy, &comparison.total];
    overall.into_iter().try_for_each(|row| table.row("overall", row))?;
    for group in crate::compare::gate::Table::ALL {
        let rows = comparison.table(group).iter();
        rows.into_iter().try_for_each(|row| table.row(group.name(), row))?;
    }
    if let Some(controls) = &comparison.controls {
        table.row("controls", &controls.row)?;
    }
    table.gaps(comparison)?;
    for (letter, side) in sides(comparison) {
        table.kernels(letter, side)?;
    }
    table.findings(comparison)?;
    table.gate(comparison)?;
    table.remarks(comparison)?;
    table.finish()
}

/// A value of the table.
enum Value<'a> {
    Number(f64),
    Integer(u64),
    /// A label or a sentence.
    Text(&'a str),
    Missing,
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Missing, Into::into)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Value::Number(value)
        } else {
            Value::Missing
        }
    }
}

impl From<Over> for Value<'_> {
    fn from(over: Over) -> Self {
        over.median.into()
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Value::Integer(value)
    }
}

impl From<usize> for Value<'_> {
    fn from(value: usize) -> Self {
        Value::Integer(u64::try_from(value).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Value<'_> {
    fn from(Nanos(ns): Nanos) -> Self {
        Value::Integer(ns)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

/// `true` or `false`.
fn yes(value: bool) -> Value<'static> {
    Value::Text(if value { "true" } else { "false" })
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    section: &'a str,
    key: &'a str,
    side: &'a str,
    /// From 1; 0: not of one trial.
    trial: usize,
}

impl<'a> Place<'a> {
    /// Of both sides together.
    fn new(section: &'a str, key: &'a str) -> Self {
        Place {
            section,
            key,
            side: "",
            trial: 0,
        }
    }
}

/// A metric with its value and the unit of it.
type Metric<'a> = (&'a str, Value<'a>, &'a str);

struct Table {
    out: ::csv::Writer<Vec<u8>>,
    us_per: String,
    count_per: String,
}

impl Table {
    fn new(comparison: &Comparison) -> io::Result<Self> {
        let per = per(comparison);
        let mut out = ::csv::Writer::from_writer(Vec::new());
        out.write_record(["section", "key", "side", "trial", "metric", "value", "unit"])?;
        Ok(Table {
            out,
            us_per: format!("us/{per}"),
            count_per: format!("1/{per}"),
        })
    }

    fn finish(self) -> io::Result<String> {
        let bytes = self
            .out
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }

    fn write(&mut self, place: Place<'_>, (metric, value, unit): Metric<'_>) -> io::Result<()> {
        let value = match value {
            Value::Number(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Text(text) => guarded(visible(text)),
            Value::Missing => String::new(),
        };
        let trial = match place.trial {
            0 => String::new(),
            number => number.to_string(),
        };
        let key = guarded(visible(place.key));
        self.out
            .write_record([place.section, &key, place.side, &trial, metric, &value, unit])?;
        Ok(())
    }

    fn all<'a>(&mut self, place: Place<'_>, metrics: impl IntoIterator<Item = Metric<'a>>) -> io::Result<()> {
        metrics.into_iter().try_for_each(|metric| self.write(place, metric))
    }

    fn settings(&mut self, comparison: &Comparison) -> io::Result<()> {
        let settings = &comparison.settings;
        let headline = headline(comparison);
        let mut all: Vec<Metric<'_>> = vec![
            ("tool", concat!("trace-attr ", env!("CARGO_PKG_VERSION")).into(), ""),
            ("headline", headline.as_str().into(), ""),
            ("timing", settings.timing.name().into(), ""),
            ("unit", settings.unit.as_deref().into(), ""),
        ];
        if comparison.b.is_some() {
            let inference = &comparison.inference;
            all.extend([
                ("timing_b", settings.timing_b.name().into(), ""),
                ("margin", inference.margin_pct.into(), PERCENT),
                ("paired", yes(inference.paired), ""),
                ("forced", yes(inference.forced), ""),
                ("baseline", yes(inference.baseline), ""),
                ("noise_sessions", inference.noise_sessions.into(), ""),
            ]);
        }
        for (key, value, unit) in all {
            self.write(Place::new("settings", key), ("value", value, unit))?;
        }
        Ok(())
    }

    /// A side, its trials, and what is left out of each.
    fn side(&mut self, letter: &str, side: &Side) -> io::Result<()> {
        let place = Place {
            side: letter,
            ..Place::new("sides", &side.name)
        };
        self.write(place, ("trials", side.trials.len().into(), ""))?;
        for (number, trial) in (1..).zip(&side.trials) {
            self.trial(letter, number, trial)?;
        }
        Ok(())
    }

    fn trial(&mut self, letter: &str, number: usize, trial: &Trial) -> io::Result<()> {
        let place = Place {
            section: "trials",
            key: &trial.input,
            side: letter,
            trial: number,
        };
        let pid = trial.process.pid.map(u64::from);
        self.all(
            place,
            [
                ("run", trial.run.into(), ""),
                ("process", trial.process.name.as_str().into(), ""),
                ("pid", pid.into(), ""),
                ("gpu", trial.gpu.as_deref().into(), ""),
                ("units", trial.units.into(), ""),
                ("rows_read", trial.rows_read.into(), ""),
                ("window", trial.window.length().into(), NS),
                ("labelled_total", trial.labelled_total.into(), NS),
            ],
        )?;
        self.stats(place, &trial.all)?;
        let place = Place {
            section: "left_out",
            ..place
        };
        for reason in Reason::ALL {
            let count = trial.left_out.get(reason);
            let (rows, total) = (format!("{}_rows", reason.code()), format!("{}_total", reason.code()));
            self.write(place, (&rows, count.rows.into(), ""))?;
            self.write(place, (&total, count.total.into(), NS))?;
        }
        Ok(())
    }

    /// A trial's own values: whole counts, and ns.
    fn stats(&mut self, place: Place<'_>, stats: &Stats) -> io::Result<()> {
        let (durations, latency) = (stats.durations.as_ref(), stats.latency.as_ref());
        self.all(
            place,
            [
                ("submissions", stats.submissions.into(), ""),
                ("total", stats.total.into(), NS),
                ("busy", stats.busy.into(), NS),
                ("encoders", stats.encoders.into(), ""),
                ("command_buffers", stats.command_buffers.into(), ""),
                ("cpu_encode", stats.cpu_encode.into(), NS),
                ("mean", durations.map(|d| d.mean).into(), NS),
                ("p50", durations.map(|d| d.p50).into(), NS),
                ("p95", durations.map(|d| d.p95).into(), NS),
                ("p99", durations.map(|d| d.p99).into(), NS),
                ("min", durations.map(|d| d.min).into(), NS),
                ("max", durations.map(|d| d.max).into(), NS),
                ("latency_samples", latency.map_or(0, |l| l.samples).into(), ""),
                ("latency_p50", latency.map(|l| l.p50).into(), NS),
                ("latency_p95", latency.map(|l| l.p95).into(), NS),
            ],
        )
    }

    /// Medians over the trials of a side: per unit, and µs.
    fn cell(&mut self, place: Place<'_>, cell: &Cell) -> io::Result<()> {
        let (us_per, count_per) = (self.us_per.clone(), self.count_per.clone());
        let latency = cell.latency.as_ref();
        self.all(
            place,
            [
                ("submissions", cell.submissions.into(), count_per.as_str()),
                ("total", cell.total_us.into(), us_per.as_str()),
                ("busy", cell.busy_us.into(), &us_per),
                ("encoders", cell.encoders.into(), &count_per),
                ("command_buffers", cell.command_buffers.into(), &count_per),
                ("cpu_encode", cell.cpu_encode_us.into(), &us_per),
                ("per_command_buffer", cell.us_per_command_buffer.into(), "us"),
                ("mean", cell.mean_us.into(), "us"),
                ("p50", cell.p50_us.into(), "us"),
                ("p95", cell.p95_us.into(), "us"),
                ("p99", cell.p99_us.into(), "us"),
                ("min", cell.min_us.into(), "us"),
                ("max", cell.max_us.into(), "us"),
                ("latency_samples", latency.map_or(0.0, |l| l.samples.median).into(), ""),
                ("latency_p50", latency.map(|l| l.p50_us).into(), "us"),
                ("latency_p95", latency.map(|l| l.p95_us).into(), "us"),
            ],
        )
    }

    fn row(&mut self, section: &str, row: &Row) -> io::Result<()> {
        let both = Place::new(section, &row.key);
        for (side, cell) in [("a", &row.a), ("b", &row.b)] {
            let Some(cell) = cell else { continue };
            for (number, stats) in (1..).zip(&cell.trials) {
                let place = Place {
                    side,
                    trial: number,
                    ..both
                };
                self.stats(place, stats)?;
            }
            self.cell(Place { side, ..both }, cell)?;
        }
        if let Some(change) = &row.change {
            let (delta_pct, count, per_submission) = match change {
                Change::Both {
                    delta_pct,
                    count_pct,
                    per_submission_pct,
                    ..
                } => (*delta_pct, *count_pct, *per_submission_pct),
                Change::OnlyB { .. } => (Some(-100.0), None, None),
                Change::OnlyA { .. } => (None, None, None),
            };
            let us_per = self.us_per.clone();
            self.all(
                both,
                [
                    ("delta", change.delta_us().into(), us_per.as_str()),
                    ("delta_pct", delta_pct.into(), PERCENT),
                    ("share_pct", change.share_pct().into(), PERCENT),
                    ("count_pct", count.into(), PERCENT),
                    ("per_submission_pct", per_submission.into(), PERCENT),
                ],
            )?;
        }
        if let Some(judgement) = &row.judgement {
            self.judgement(both, judgement)?;
        }
        for flag in &row.flags {
            self.write(both, ("flag", (*flag).into(), ""))?;
        }
        Ok(())
    }

    fn judgement(&mut self, place: Place<'_>, judgement: &Judgement) -> io::Result<()> {
        let reasons = judgement.reasons.join(",");
        let reason = (!reasons.is_empty()).then_some(reasons.as_str());
        self.all(
            place,
            [
                ("verdict", judgement.verdict.name().into(), ""),
                ("reason", reason.into(), ""),
                ("q", judgement.q.into(), ""),
            ],
        )?;
        self.test(place, judgement.test.as_ref())?;
        match &judgement.relative {
            Some(relative) => self.all(
                place,
                [
                    ("relative_low_pct", percent(relative.low()).into(), PERCENT),
                    ("relative_high_pct", percent(relative.high()).into(), PERCENT),
                ],
            ),
            None => Ok(()),
        }
    }

    /// The interval; every metric is there and empty when there is none.
    fn test(&mut self, place: Place<'_>, test: Option<&Test>) -> io::Result<()> {
        let of = |value: fn(&Interval) -> f64| test.map(|test| percent(value(&test.interval)));
        self.all(
            place,
            [
                ("method", test.map(|test| test.interval.method.name()).into(), ""),
                ("n_a", test.map(|test| test.interval.n_a).into(), ""),
                ("n_b", test.map(|test| test.interval.n_b).into(), ""),
                ("estimate_pct", of(|interval| interval.change).into(), PERCENT),
                ("low_pct", of(Interval::low).into(), PERCENT),
                ("high_pct", of(Interval::high).into(), PERCENT),
                ("resolution_pct", of(|interval| interval.resolution).into(), PERCENT),
                ("df", test.map(|test| test.interval.df).into(), ""),
            ],
        )
    }

    fn gaps(&mut self, comparison: &Comparison) -> io::Result<()> {
        let (us_per, count_per) = (self.us_per.clone(), self.count_per.clone());
        for row in &comparison.gaps {
            for (side, values) in [("a", Some((row.a_count, row.a_idle_us))), ("b", row.b)] {
                let Some((count, idle)) = values else { continue };
                let place = Place {
                    side,
                    ..Place::new("gaps", &row.key)
                };
                let metrics = [
                    ("count", count.into(), count_per.as_str()),
                    ("idle", idle.into(), us_per.as_str()),
                ];
                self.all(place, metrics)?;
            }
        }
        Ok(())
    }

    fn kernels(&mut self, letter: &str, side: &Side) -> io::Result<()> {
        for (family, names) in pick::kernel_families(side).into_iter().flatten() {
            for name in names {
                let place = Place {
                    side: letter,
                    ..Place::new("kernels", name)
                };
                self.write(place, ("family", family.into(), ""))?;
            }
        }
        Ok(())
    }

    fn findings(&mut self, comparison: &Comparison) -> io::Result<()> {
        let us_per = self.us_per.clone();
        for (rank, finding) in (1_u64..).zip(&comparison.findings) {
            let key = format!("{}:{}", finding.section, finding.key);
            self.all(
                Place::new("findings", &key),
                [
                    ("rank", rank.into(), ""),
                    ("delta", finding.delta_us.into(), us_per.as_str()),
                    ("share_pct", finding.share_pct.into(), PERCENT),
                    ("hint", finding.hint.as_deref().into(), ""),
                ],
            )?;
        }
        Ok(())
    }

    /// The whole has no key.
    fn gate(&mut self, comparison: &Comparison) -> io::Result<()> {
        let Some(gate) = &comparison.gate else { return Ok(()) };
        self.write(Place::new("gate", ""), ("result", gate.result.name().into(), ""))?;
        gate.rows.iter().try_for_each(|row| self.gated(row))
    }

    fn gated(&mut self, row: &GatedRow) -> io::Result<()> {
        let key = row.key.to_string();
        let place = Place::new("gate", &key);
        let exception = row.exception.as_ref();
        let until = exception.map(|exception| exception.until.to_string());
        self.all(
            place,
            [
                ("result", row.result.name().into(), ""),
                ("reason", row.reason.into(), ""),
                ("excused", yes(row.excused), ""),
                ("verdict", row.judgement.verdict.name().into(), ""),
                ("limit_pct", row.limit_pct.into(), PERCENT),
                ("delta_pct", row.delta_pct.into(), PERCENT),
                ("accepted_until", until.as_deref().into(), ""),
                (
                    "accepted_why",
                    exception.map(|exception| exception.why.as_str()).into(),
                    "",
                ),
            ],
        )?;
        self.test(place, row.judgement.test.as_ref())
    }

    fn remarks(&mut self, comparison: &Comparison) -> io::Result<()> {
        for reason in &comparison.incomparable {
            self.write(
                Place::new("incomparable", reason.code),
                ("text", reason.text.as_str().into(), ""),
            )?;
        }
        for note in &comparison.notes {
            let severity = note.severity.name();
            self.write(
                Place::new("notes", note.code),
                (severity, note.text.as_str().into(), ""),
            )?;
        }
        Ok(())
    }
}
