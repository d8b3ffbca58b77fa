//! Brings verdicts and limits to every row of a comparison.
//!
//! What goes in: rows with their values, and the options. What comes out: a judgement on each row, the gate, and
//! remarks on how these came about. Every row of a table is tested, none is pooled; `busy` and `total` stand alone, and
//! a gated row is judged by itself.

use super::gate::{GateResult, GateRules, GatedRow, RowKey, SelfTest, Table, decide, self_test};
use super::verdict::{Judge, Judgement, Values, adjust};
use super::words::{bound, short};
use super::{Change, CompareOptions, Comparison, Gate, Noise, Row, Side, controls, notes, order};
use crate::attribution::Stats;
use crate::error::{Error, Result};
use crate::inference::{Interval, Method, Verdict, log_of, moments};
use crate::model::Note;

/// Own noise above this multiple of the calibrated is worth a remark.
const NOISIER: f64 = 2.0;

/// Judges all rows and the gate; gives the remarks that arose.
///
/// # Errors
/// Pairs that are none, and noise of another GPU or unit.
pub(super) fn assess(comparison: &mut Comparison, options: &CompareOptions) -> Result<Vec<Note>> {
    let Some(b) = comparison.b.clone() else {
        return Ok(Vec::new());
    };
    let mut remarks = Vec::new();
    let reasons = notes::incomparable(comparison);
    if options.force {
        let forced = reasons.into_iter();
        remarks.extend(forced.map(|reason| Note::warning(reason.code, format!("{} (--force)", reason.text))));
    } else {
        comparison.incomparable = reasons;
    }
    let paired = pairs(comparison, &b, options, &mut remarks)?;
    comparison.inference.paired = paired;
    if let Some(noise) = &options.noise {
        let (misfits, notes) = noise.misfits(comparison);
        if let (Some(misfit), false) = (misfits.first(), options.force) {
            return Err(Error::unfit(misfit.clone())
                .with_help("measure the noise on this machine and with the same --tokens: `trace-attr calibrate`; or insist with --force"));
        }
        remarks.extend(misfits.into_iter().map(|text| Note::warning("noise_differs", text)));
        remarks.extend(notes);
    }
    let mut judge = Judge {
        incomparable: comparison.incomparable.iter().map(|reason| reason.code).collect(),
        paired,
        controls: None,
    };
    if let Some(pattern) = &options.controls {
        remarks.extend(judge_controls(comparison, &b, &mut judge, options, pattern));
    }
    let scene = Scene {
        judge: &judge,
        options,
        a: comparison.a.clone(),
        b,
    };
    scene.alone(&mut comparison.busy, &RowKey::Busy);
    scene.alone(&mut comparison.total, &RowKey::Total);
    for table in Table::ALL {
        scene.table(comparison.table_mut(table), table);
    }
    if let Some(rules) = &options.gate {
        let (gate, notes) = scene.gate(comparison, rules);
        comparison.gate = Some(gate);
        remarks.extend(notes);
    }
    remarks.extend(scene.notes(comparison));
    Ok(remarks)
}

/// Whether trials are taken in pairs.
fn pairs(comparison: &Comparison, b: &Side, options: &CompareOptions, remarks: &mut Vec<Note>) -> Result<bool> {
    if !options.paired {
        return Ok(false);
    }
    let (n_a, n_b) = (comparison.a.trials.len(), b.trials.len());
    if n_a != n_b || n_a < 2 {
        return Err(Error::usage(format!(
            "--paired needs as many trials of A as of B, at least two of each, and there are {n_a} and {n_b}"
        ))
        .with_help("leave --paired out: the sides are then compared without pairs"));
    }
    if options.noise.is_some() {
        return Err(Error::usage("--noise does not go with --paired").with_help("leave one of them out"));
    }
    if order::one_side_always_first(comparison) {
        let text = "one side was recorded first in every pair: a machine that drifts would look like a change, \
                    so the trials are not taken in pairs";
        remarks.push(Note::warning("always_second", text));
        return Ok(false);
    }
    Ok(true)
}

fn judge_controls(
    comparison: &mut Comparison,
    b: &Side,
    judge: &mut Judge,
    options: &CompareOptions,
    pattern: &regex::Regex,
) -> Option<Note> {
    let Some((mut controls, values)) = controls::controls(&comparison.a, b, &comparison.phases, pattern) else {
        let text = format!("--control '{}' fits no phase", pattern.as_str());
        return Some(Note::warning("no_controls", text));
    };
    let judgement = judge.judge(&values, options.margin_pct, None);
    let moved = matches!(judgement.verdict, Verdict::Regressed | Verdict::Improved);
    let note = moved.then(|| {
        let interval = judgement.test.map_or_else(String::new, |test| bounds(&test.interval));
        let text = format!(
            "the controls changed themselves {interval}: the machine or the work is not the same on both sides"
        );
        Note::warning("control_moved", text)
    });
    controls.row.judgement = Some(judgement);
    comparison.controls = Some(controls);
    judge.controls = Some(values);
    note
}

/// `[+3.12, +5.31] %`.
fn bounds(interval: &Interval) -> String {
    format!("[{}, {}] %", bound(interval.low()), bound(interval.high()))
}

/// What all rows of a comparison are judged by.
struct Scene<'a> {
    judge: &'a Judge,
    options: &'a CompareOptions,
    a: Side,
    b: Side,
}

impl Scene<'_> {
    fn values(&self, row: &Row, key: &RowKey) -> Values {
        let time: fn(&Stats) -> u64 = match key {
            RowKey::Busy => |stats| stats.busy.0,
            _ => |stats| stats.total.0,
        };
        Values::new(row, &self.a, &self.b, time)
    }

    /// A gated row must not be called unchanged by a margin that is wider than its limit.
    fn margin(&self, key: &RowKey) -> f64 {
        let limit = self.options.gate.as_ref().and_then(|rules| rules.limit_of(key));
        limit.map_or(self.options.margin_pct, |limit| self.options.margin_pct.min(limit))
    }

    fn judgement(&self, row: &Row, key: &RowKey) -> Judgement {
        let noise = self.options.noise.as_ref().and_then(|noise| noise.row(key));
        self.judge.judge(&self.values(row, key), self.margin(key), noise)
    }

    fn alone(&self, row: &mut Row, key: &RowKey) {
        row.judgement = Some(self.judgement(row, key));
    }

    fn table(&self, rows: &mut [Row], table: Table) {
        let keys: Vec<RowKey> = rows.iter().map(|row| RowKey::In(table, row.key.clone())).collect();
        let mut judgements: Vec<Judgement> = rows
            .iter()
            .zip(&keys)
            .map(|(row, key)| self.judgement(row, key))
            .collect();
        let gated = |key: &RowKey| {
            let rules = self.options.gate.as_ref();
            rules.is_some_and(|rules| rules.limit_of(key).is_some())
        };
        let alone: Vec<bool> = keys.iter().map(gated).collect();
        adjust(&mut judgements, &alone);
        for (row, judgement) in rows.iter_mut().zip(judgements) {
            row.judgement = Some(judgement);
        }
    }

    fn gate(&self, comparison: &Comparison, rules: &GateRules) -> (Gate, Vec<Note>) {
        let mut notes = Vec::new();
        let mut rows = Vec::new();
        let mut tries = Vec::new();
        for (key, limit) in &rules.limits {
            let (limit, exception) = rules.limit(key, *limit);
            let row = comparison.row(key);
            let judgement = row.and_then(|row| row.judgement.as_ref());
            let decision = decide(judgement, limit.get());
            let excused = rules.pass_inconclusive && decision.reason == Some("limit_in_interval");
            if let Some(interval) = judgement.and_then(|judgement| Some(judgement.test?.interval)) {
                notes.extend(limit_below_resolution(key, limit.get(), &interval));
            }
            if let Some(noise) = self.options.noise.as_ref()
                && row.is_some()
                && noise.row(key).is_none()
            {
                let text = format!(
                    "the noise file has no row {key}: its interval is that of the trials alone, and does not show how \
                     sessions differ"
                );
                notes.push(Note::warning("no_noise_for_row", text));
            }
            if rules.self_test {
                let noise = self.options.noise.as_ref().and_then(|noise| noise.row(key));
                let tried = row.and_then(|row| {
                    let values = self.values(row, key);
                    self_test(self.judge, &values, limit.get(), self.margin(key), noise)
                });
                tries.push((key.clone(), tried));
            }
            rows.push(GatedRow {
                key: key.clone(),
                limit_pct: limit.get(),
                result: if excused { GateResult::Passed } else { decision.result },
                reason: decision.reason,
                excused,
                trials_needed: decision.trials_needed,
                delta_pct: row.and_then(|row| match row.change {
                    Some(Change::Both { delta_pct, .. }) => delta_pct,
                    Some(Change::OnlyB { .. }) => Some(-100.0),
                    _ => None,
                }),
                judgement: judgement.cloned().unwrap_or(Judgement {
                    verdict: Verdict::Inconclusive,
                    reasons: vec!["missing"],
                    q: None,
                    test: None,
                    relative: None,
                }),
                exception: exception.cloned(),
            });
        }
        notes.extend(unused_exceptions(rules));
        let gate = Gate {
            result: rows.iter().map(|row| row.result).max().unwrap_or(GateResult::Passed),
            rows,
            self_test: rules.self_test.then_some(SelfTest { rows: tries }),
        };
        (gate, notes)
    }

    fn notes(&self, comparison: &Comparison) -> Vec<Note> {
        let mut notes = Vec::new();
        let all_rows = comparison.rows();
        let intervals: Vec<(&RowKey, &Interval)> = all_rows
            .iter()
            .filter_map(|(key, row)| Some((key, &row.judgement.as_ref()?.test.as_ref()?.interval)))
            .collect();
        let flat: Vec<String> = intervals
            .iter()
            .filter(|(_, interval)| interval.zero_variance)
            .map(|(key, _)| key.to_string())
            .collect();
        if let Some(first) = flat.first() {
            let more = if flat.len() > 1 {
                format!(" and {} more", flat.len() - 1)
            } else {
                String::new()
            };
            let text = format!(
                "{first}{more}: all trials of a side have the same value, so the interval has no length; \
                 were they recorded one by one?"
            );
            notes.push(Note::remark("zero_variance", text));
        }
        if let Some(noise) = &self.options.noise {
            let rows = all_rows.iter().filter(|(key, _)| noise.row(key).is_none());
            let unknown = rows
                .filter(|(_, row)| row.judgement.as_ref().is_some_and(|j| j.test.is_some()))
                .count();
            if unknown > 0 {
                let text = format!(
                    "the noise file lacks {unknown} of {} rows: their intervals are those of the trials alone",
                    all_rows.len()
                );
                notes.push(Note::remark("no_noise_for_rows", text));
            }
            notes.extend(self.noisier(comparison, noise));
        }
        notes
    }

    /// Trials that differ more among themselves than sessions did when the noise was measured.
    fn noisier(&self, comparison: &Comparison, noise: &Noise) -> Option<Note> {
        let known = noise.row(&RowKey::Busy)?;
        let values = self.values(&comparison.busy, &RowKey::Busy);
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let (a, b) = (logs(&values.a), logs(&values.b));
        let freedom = (a.len() + b.len()).checked_sub(2).filter(|freedom| *freedom > 0)? as f64;
        let squares = |values: &[f64]| moments(values).1 * (values.len() as f64 - 1.0);
        let pooled = ((squares(&a) + squares(&b)) / freedom).sqrt();
        (pooled > NOISIER * known.sd).then(|| {
            let text = format!(
                "the trials differ by {} % among themselves, those of the noise file by {} %: this machine is noisier now",
                short(100.0 * pooled),
                short(100.0 * known.sd)
            );
            Note::warning("noisier_than_calibrated", text)
        })
    }
}

/// A limit that the trials cannot tell from no change most of the time.
fn limit_below_resolution(key: &RowKey, limit_pct: f64, interval: &Interval) -> Option<Note> {
    let limit = log_of(limit_pct);
    (limit < interval.resolution).then(|| {
        let needs = match (interval.trials_needed(limit), interval.method) {
            (_, Method::Calibrated) => "more trials of one session do not help".to_owned(),
            (Some(n), _) => format!("with {n} trials a side it would pass 4 times in 5"),
            (None, _) => "even 20 trials a side are too few".to_owned(),
        };
        let text = format!(
            "{key}: the limit of {limit_pct} % lies below what these trials resolve ({} %), so an unchanged build often does \
             not pass it: {needs}",
            super::words::size(crate::inference::percent(interval.resolution))
        );
        Note::remark("limit_below_resolution", text)
    })
}

/// Exceptions that are over, or that no gated row needs.
fn unused_exceptions(rules: &GateRules) -> Vec<Note> {
    let note = |exception: &super::gate::Exception| {
        let limit = rules.limits.iter().find(|(key, _)| *key == exception.row);
        let why = if rules.today > exception.until {
            format!("ended on {}", exception.until)
        } else {
            match limit {
                None => "is for a row that is not gated".to_owned(),
                Some((_, limit)) if exception.up_to <= *limit => format!("allows no more than the limit of {limit}"),
                Some(_) => return None,
            }
        };
        let text = format!("the exception for {} {why}", exception.row);
        Some(Note::warning("exception_unused", text))
    };
    rules.exceptions.iter().filter_map(note).collect()
}

/// Trials that lie far off their side's median: they stay, and widen the interval.
pub(super) fn far_trials(comparison: &Comparison) -> Vec<Note> {
    let mut notes = Vec::new();
    for side in std::iter::once(&comparison.a).chain(&comparison.b) {
        let logs: Vec<(f64, &str)> = side
            .trials
            .iter()
            .filter(|trial| trial.all.busy.0 > 0)
            .map(|trial| {
                let value = trial.all.busy.0 as f64 / trial.units.unwrap_or(1) as f64;
                (value.ln(), trial.input.as_str())
            })
            .collect();
        if logs.len() < 3 {
            continue;
        }
        let median = |values: Vec<f64>| super::Over::of(values).map(|over| over.median);
        let Some(middle) = median(logs.iter().map(|(log, _)| *log).collect()) else {
            continue;
        };
        let Some(mad) = median(logs.iter().map(|(log, _)| (log - middle).abs()).collect()) else {
            continue;
        };
        let limit = (7.4 * mad).max(0.02);
        for (log, input) in logs.iter().filter(|(log, _)| (log - middle).abs() > limit) {
            let text = format!(
                "{input} lies {} % off the median of {}: it counts, and has widened the intervals",
                bound(log - middle),
                side.name
            );
            notes.push(Note::remark("far_trial", text));
        }
    }
    notes
}
