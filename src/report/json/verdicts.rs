//! What is said of rows, and the gate, in the JSON: intervals in percent, verdicts and reasons as stable codes.

use serde::Serialize;

use super::Number;
use crate::compare::{self, gate, verdict};
use crate::inference::{Interval, LEVEL, Method, percent};

/// An interval, in percent of B.
#[derive(Serialize)]
pub(super) struct Test {
    method: &'static str,
    n_a: usize,
    n_b: usize,
    estimate_pct: Number,
    low_pct: Number,
    high_pct: Number,
    level: f64,
    df: Number,
    resolution_pct: Number,
    more_trials: Option<usize>,
}

impl Test {
    pub(super) fn of(test: &verdict::Test) -> Test {
        Test {
            more_trials: more(&test.interval, test.trials_needed),
            ..Test::of_interval(&test.interval)
        }
    }

    pub(super) fn of_interval(interval: &Interval) -> Test {
        Test {
            method: interval.method.name(),
            n_a: interval.n_a,
            n_b: interval.n_b,
            estimate_pct: Number(percent(interval.change)),
            low_pct: Number(percent(interval.low())),
            high_pct: Number(percent(interval.high())),
            level: LEVEL,
            df: Number(interval.df),
            resolution_pct: Number(percent(interval.resolution)),
            more_trials: None,
        }
    }
}

/// Trials a side beyond those of the larger side.
fn more(interval: &Interval, needed: Option<usize>) -> Option<usize> {
    debug_assert!(needed.is_none() || interval.method != Method::Calibrated);
    needed.map(|needed| needed.saturating_sub(interval.n_a.max(interval.n_b)))
}

/// Codes in their order, with commas; `None` when there are none.
pub(super) fn reason(judgement: &compare::Judgement) -> Option<String> {
    (!judgement.reasons.is_empty()).then(|| judgement.reasons.join(","))
}

#[derive(Serialize)]
pub(super) struct Gate<'a> {
    result: &'static str,
    rows: Vec<GatedRow<'a>>,
    self_test: Option<Vec<Tried>>,
}

#[derive(Serialize)]
struct GatedRow<'a> {
    key: String,
    limit_pct: Number,
    result: &'static str,
    reason: Option<&'static str>,
    excused: bool,
    more_trials: Option<usize>,
    delta_pct: Option<Number>,
    verdict: &'static str,
    test: Option<Test>,
    relative: Option<Test>,
    accepted: Option<Accepted<'a>>,
}

#[derive(Serialize)]
struct Accepted<'a> {
    up_to_pct: Number,
    until: String,
    why: &'a str,
}

/// What came of a change above the limit, of one below it, and of the row gone.
#[derive(Serialize)]
struct Tried {
    key: String,
    results: Option<[&'static str; 3]>,
}

impl<'a> From<&'a gate::Gate> for Gate<'a> {
    fn from(gate: &'a gate::Gate) -> Self {
        Gate {
            result: gate.result.name(),
            rows: gate.rows.iter().map(GatedRow::from).collect(),
            self_test: gate.self_test.as_ref().map(|test| {
                let tried = |(key, results): &(gate::RowKey, Option<[gate::GateResult; 3]>)| Tried {
                    key: key.to_string(),
                    results: results.map(|results| results.map(gate::GateResult::name)),
                };
                test.rows.iter().map(tried).collect()
            }),
        }
    }
}

impl<'a> From<&'a gate::GatedRow> for GatedRow<'a> {
    fn from(row: &'a gate::GatedRow) -> Self {
        let test = row.judgement.test.as_ref();
        GatedRow {
            key: row.key.to_string(),
            limit_pct: Number(row.limit_pct),
            result: row.result.name(),
            reason: row.reason,
            excused: row.excused,
            more_trials: test.and_then(|test| more(&test.interval, row.trials_needed)),
            delta_pct: row.delta_pct.map(Number),
            verdict: row.judgement.verdict.name(),
            test: test.map(Test::of),
            relative: row.judgement.relative.as_ref().map(Test::of_interval),
            accepted: row.exception.as_ref().map(|exception| Accepted {
                up_to_pct: Number(exception.up_to.get()),
                until: exception.until.to_string(),
                why: &exception.why,
            }),
        }
    }
}
