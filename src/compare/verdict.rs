//! The verdict of a row: what its trials allow to be said, in one of seven words with the reason.
//!
//! What goes in: the values of each trial of both sides (`Values`), the margin and the noise. What comes out: a
//! [`Judgement`]. The order of the questions is the order of the code in `Judge::judge`; the first that answers
//! decides. Swapping the sides mirrors every answer.

use super::{Row, Side, Trial};
use crate::attribution::Stats;
use crate::inference::{self, Interval, Verdict, false_discovery, log_of};

/// Share of false ones among the rows of a table that are called slower or faster, at most.
const FALSE_DISCOVERIES: f64 = 0.10;

/// A verdict with its grounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What is said.
    pub verdict: Verdict,
    /// Stable codes: why not more is said (`wide_interval`, `one_trial`, every reason of `incomparable`); empty when the
    /// interval alone decides.
    pub reasons: Vec<&'static str>,
    /// Adjusted p value in a table; `None` where a row is judged by itself or was not tested.
    pub q: Option<f64>,
    /// The interval; `None` when the trials do not give one.
    pub test: Option<Test>,
    /// The interval of the change relative to the controls, when there are controls; no verdict follows from it.
    pub relative: Option<Interval>,
}

/// The interval of a row, and what more trials would do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The interval, in logarithms.
    pub interval: Interval,
    /// Trials a side that would probably decide, for `wide_interval`; `None`: decided, or not with 20.
    pub trials_needed: Option<usize>,
}

/// What a row has in each trial.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    /// ns per unit, aligned with the trials; 0 where a trial lacks the row.
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
    /// One trial a side, and equal in submissions, total and busy.
    pub(super) same: bool,
}

impl Values {
    /// Values of a row; `time` picks total or busy.
    pub(super) fn new(row: &Row, a: &Side, b: &Side, time: fn(&Stats) -> u64) -> Values {
        let values = |cell: &Option<super::Cell>, side: &Side| -> Vec<f64> {
            match cell {
                Some(cell) => {
                    let pairs = cell.trials.iter().zip(&side.trials);
                    pairs.map(|(stats, trial)| time(stats) as f64 / units(trial)).collect()
                }
                None => vec![0.0; side.trials.len()],
            }
        };
        let same = match (&row.a, &row.b) {
            (Some(cell_a), Some(cell_b)) => match (cell_a.trials.as_slice(), cell_b.trials.as_slice()) {
                ([one], [other]) => {
                    let key = |stats: &Stats| (stats.submissions, stats.total, stats.busy);
                    let units = |side: &Side| side.trials.first().and_then(|trial| trial.units);
                    key(one) == key(other) && units(a) == units(b)
                }
                _ => false,
            },
            _ => false,
        };
        Values {
            a: values(&row.a, a),
            b: values(&row.b, b),
            same,
        }
    }

    /// The same values with side A multiplied by `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Values {
        Values {
            a: self.a.iter().map(|value| value * factor).collect(),
            b: self.b.clone(),
            same: false,
        }
    }

    /// The same row with nothing of it on side A.
    pub(super) fn gone(&self) -> Values {
        Values {
            a: vec![0.0; self.a.len()],
            ..self.clone()
        }
    }

    /// Each value divided by that of the controls in the same trial; `None` where a trial has none of either.
    fn relative_to(&self, controls: &Values) -> Option<Values> {
        let divided = |values: &[f64], by: &[f64]| -> Option<Vec<f64>> {
            let pairs = values.iter().zip(by);
            pairs
                .map(|(value, by)| (*value > 0.0 && *by > 0.0).then(|| value / by))
                .collect()
        };
        Some(Values {
            a: divided(&self.a, &controls.a)?,
            b: divided(&self.b, &controls.b)?,
            same: false,
        })
    }
}

fn units(trial: &Trial) -> f64 {
    trial.units.unwrap_or(1) as f64
}

/// Noise between sessions of one row: how many sessions, and the standard deviation of ln v.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowNoise {
    pub(super) sessions: usize,
    pub(super) sd: f64,
}

/// What holds for every row of a comparison.
#[derive(Debug, Clone)]
pub(super) struct Judge {
    /// Reasons why nothing may be said, in their order.
    pub(super) incomparable: Vec<&'static str>,
    /// The k-th trial of A belongs to the k-th of B.
    pub(super) paired: bool,
    /// Values of the controls.
    pub(super) controls: Option<Values>,
}

impl Judge {
    /// The interval; `None` when a value is 0 or the trials are too few.
    pub(super) fn interval(&self, values: &Values, noise: Option<RowNoise>) -> Option<Interval> {
        if values.a.iter().chain(&values.b).any(|value| *value <= 0.0) {
            return None;
        }
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let (a, b) = (logs(&values.a), logs(&values.b));
        if self.paired {
            return inference::paired(&a, &b);
        }
        let own = inference::welch(&a, &b);
        match noise {
            Some(RowNoise { sessions, sd }) => inference::calibrated(&a, &b, own, sessions, sd),
            None => own,
        }
    }

    /// The verdict of a row that stands alone; `margin_pct` is what still counts as no difference.
    pub(super) fn judge(&self, values: &Values, margin_pct: f64, noise: Option<RowNoise>) -> Judgement {
        let say = |verdict, reasons: &[&'static str]| Judgement {
            verdict,
            reasons: reasons.to_vec(),
            q: None,
            test: None,
            relative: None,
        };
        if !self.incomparable.is_empty() {
            return say(Verdict::Incomparable, &self.incomparable);
        }
        let none = |values: &[f64]| values.iter().all(|value| *value <= 0.0);
        match (none(&values.a), none(&values.b)) {
            (true, true) => return say(Verdict::Unchanged, &["both_zero"]),
            (false, true) => return say(Verdict::OnlyInA, &[]),
            (true, false) => return say(Verdict::OnlyInB, &[]),
            (false, false) if values.same => return say(Verdict::Unchanged, &["same_values"]),
            (false, false) => {}
        }
        if values.a.iter().chain(&values.b).any(|value| *value <= 0.0) {
            return say(Verdict::Inconclusive, &["zero_in_trial"]);
        }
        let Some(interval) = self.interval(values, noise) else {
            return say(Verdict::Inconclusive, &["one_trial"]);
        };
        let margin = log_of(margin_pct);
        let verdict = interval.verdict(margin);
        let reasons: &[_] = match verdict {
            Verdict::Inconclusive => &["wide_interval"],
            _ => &[],
        };
        let gap = interval.change.abs().max(margin - interval.change.abs());
        let relative = self.controls.as_ref().and_then(|controls| values.relative_to(controls));
        Judgement {
            test: Some(Test {
                interval,
                trials_needed: if verdict == Verdict::Inconclusive {
                    interval.trials_needed(gap)
                } else {
                    None
                },
            }),
            relative: relative.and_then(|values| self.interval(&values, None)),
            ..say(verdict, reasons)
        }
    }
}

/// Takes the number of a table's rows into account: with many rows some intervals lie beyond 0 by chance.
///
/// `alone` is aligned with the rows: those are judged by themselves (they are gated) and keep their verdict.
pub(super) fn adjust(judgements: &mut [Judgement], alone: &[bool]) {
    let p: Vec<Option<f64>> = judgements
        .iter()
        .map(|judgement| judgement.test.map(|test| test.interval.p))
        .collect();
    for ((judgement, q), alone) in judgements.iter_mut().zip(false_discovery(&p)).zip(alone) {
        if *alone {
            continue;
        }
        judgement.q = q;
        let said = matches!(judgement.verdict, Verdict::Regressed | Verdict::Improved);
        if said && q.is_some_and(|q| q > FALSE_DISCOVERIES) {
            judgement.verdict = Verdict::Inconclusive;
            judgement.reasons = vec!["one_of_many"];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(a: &[f64], b: &[f64]) -> Values {
        Values {
            a: a.to_vec(),
            b: b.to_vec(),
            same: false,
        }
    }

    const OPEN: Judge = Judge {
        incomparable: Vec::new(),
        paired: false,
        controls: None,
    };

    fn said(a: &[f64], b: &[f64]) -> (Verdict, Vec<&'static str>) {
        let judgement = OPEN.judge(&values(a, b), 1.0, None);
        (judgement.verdict, judgement.reasons)
    }

    #[test]
    fn the_first_question_that_answers_decides() {
        assert_eq!(said(&[0.0, 0.0], &[0.0, 0.0]), (Verdict::Unchanged, vec!["both_zero"]));
        assert_eq!(said(&[5.0, 0.0], &[0.0, 0.0]), (Verdict::OnlyInA, vec![]));
        assert_eq!(said(&[0.0, 0.0], &[5.0, 5.0]), (Verdict::OnlyInB, vec![]));
        assert_eq!(
            said(&[5.0, 0.0], &[5.0, 5.0]),
            (Verdict::Inconclusive, vec!["zero_in_trial"])
        );
        assert_eq!(said(&[5.0], &[5.0, 5.0]), (Verdict::Inconclusive, vec!["one_trial"]));
        assert_eq!(
            said(&[100.0, 100.1, 100.2], &[100.0, 100.2, 100.1]),
            (Verdict::Unchanged, vec![])
        );
        assert_eq!(
            said(&[110.0, 111.0, 110.5], &[100.0, 100.2, 100.1]),
            (Verdict::Regressed, vec![])
        );
        assert_eq!(
            said(&[90.0, 91.0, 90.5], &[100.0, 100.2, 100.1]),
            (Verdict::Improved, vec![])
        );
        assert_eq!(
            said(&[90.0, 110.0, 101.0], &[99.0, 104.0, 101.0]),
            (Verdict::Inconclusive, vec!["wide_interval"])
        );
        let same = Values {
            same: true,
            ..values(&[5.0], &[5.0])
        };
        assert_eq!(OPEN.judge(&same, 1.0, None).reasons, ["same_values"]);
        let shut = Judge {
            incomparable: vec!["gpu_differs", "unequal_work"],
            ..OPEN
        };
        let judgement = shut.judge(&same, 1.0, None);
        assert_eq!(judgement.verdict, Verdict::Incomparable);
        assert_eq!(judgement.reasons, ["gpu_differs", "unequal_work"]);
    }

    #[test]
    fn among_many_rows_a_lucky_one_is_not_called_slower() {
        let noise: Vec<Values> = (0..40)
            .map(|row| {
                let wobble = |k: u32| 100.0 + f64::from((row * 7 + k * 13) % 11) / 4.0;
                values(&[wobble(1), wobble(2), wobble(3)], &[wobble(4), wobble(5), wobble(6)])
            })
            .collect();
        let mut judgements: Vec<Judgement> = noise.iter().map(|values| OPEN.judge(values, 0.1, None)).collect();
        judgements.push(OPEN.judge(&values(&[120.0, 120.1, 120.2], &[100.0, 100.1, 100.2]), 0.1, None));
        let alone: Vec<bool> = vec![false; judgements.len()];
        let before = judgements.iter().filter(|j| j.verdict == Verdict::Regressed).count();
        adjust(&mut judgements, &alone);
        let after: Vec<usize> = (0..judgements.len())
            .filter(|at| judgements.get(*at).is_some_and(|j| j.verdict == Verdict::Regressed))
            .collect();
        assert!(before > 1, "some rows lie beyond 0 by chance");
        assert_eq!(after, [40], "only the row that changed is said to be slower");
    }
}
