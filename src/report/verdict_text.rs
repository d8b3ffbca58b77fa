//! Verdicts and gate results in words: the same sentences for every text format.

use super::sheet::{number, text};
use crate::compare::bound_beside;
use crate::compare::gate::{GateResult, GatedRow, RowKey, SelfTest};
use crate::compare::{Comparison, Judgement, Verdict};
use crate::inference::{Interval, Method, percent};

/// The verdict of a row for a narrow column; `–` where nothing may be said.
pub(super) fn word(judgement: &Judgement) -> &'static str {
    match judgement.verdict {
        Verdict::Regressed => "slower",
        Verdict::Improved => "faster",
        Verdict::Unchanged => "same",
        Verdict::Inconclusive => "unclear",
        Verdict::OnlyInA => "only A",
        Verdict::OnlyInB => "only B",
        Verdict::Incomparable => super::sheet::NOT_MEASURED,
    }
}

/// `[+3.12, +5.31]`, percent; a bound that would round onto the limit has more digits.
pub(super) fn bounds(interval: &Interval, limit_pct: Option<f64>) -> String {
    format!(
        "[{}, {}]",
        bound_beside(interval.low(), limit_pct),
        bound_beside(interval.high(), limit_pct)
    )
}

/// A change in percent without its sign, for "slower by at least 3.12 %".
fn size(log: f64, limit_pct: f64) -> String {
    let shown = bound_beside(log, Some(limit_pct));
    shown.trim_start_matches(['+', '-']).to_owned()
}

/// An adjusted p value: never a false zero.
pub(super) fn q(value: f64) -> String {
    if value < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{value:.3}")
    }
}

/// `failed`, `cannot judge`, `passed`.
pub(super) fn result(result: GateResult) -> &'static str {
    match result {
        GateResult::Passed => "passed",
        GateResult::CannotJudge => "cannot judge",
        GateResult::Failed => "failed",
    }
}

/// The key of a gated row as it is shown.
pub(super) fn key(row: &RowKey) -> String {
    text(&row.to_string())
}

/// `+4.21 %`, or `–`.
pub(super) fn delta(row: &GatedRow) -> String {
    row.delta_pct.map_or_else(
        || super::sheet::NOT_MEASURED.to_owned(),
        |delta| format!("{} %", bound_beside((delta / 100.0).ln_1p(), None)),
    )
}

/// What came of a limit, in words: `limit 3 %: slower by at least 3.12 %`.
pub(super) fn outcome(row: &GatedRow, comparison: &Comparison) -> String {
    let limit = row.limit_pct;
    let interval = row.judgement.test.as_ref().map(|test| &test.interval);
    let said = match (row.result, row.reason, interval) {
        (GateResult::Failed, _, Some(interval)) => {
            format!("limit {limit} %: slower by at least {} %", size(interval.low(), limit))
        }
        (GateResult::Passed, None, Some(interval)) => {
            let most = if row.judgement.verdict == Verdict::Improved {
                format!("faster by at least {} %", size(interval.high(), limit))
            } else if interval.high() < 0.0 {
                // Within the margin nothing is called faster.
                "no slower".to_owned()
            } else {
                format!("at most {} % slower", size(interval.high(), limit))
            };
            format!(
                "limit {limit} %: {most}; a change of {} would have shown 4 times in 5",
                resolution(interval)
            )
        }
        (_, Some("limit_in_interval"), Some(interval)) => {
            format!(
                "limit {limit} % lies inside the interval; {}",
                more_trials(interval, row.trials_needed)
            )
        }
        (GateResult::Passed, _, _) if row.judgement.reasons.contains(&"same_values") => {
            format!("limit {limit} %: the same values on both sides")
        }
        (GateResult::Passed, _, _) => format!("limit {limit} %: 0 on both sides"),
        (_, reason, _) => format!("limit {limit} %: {}", why(reason, row, comparison)),
    };
    let excused = if row.excused {
        " (passes: --on-inconclusive pass)"
    } else {
        ""
    };
    let exception = row.exception.as_ref().map_or_else(String::new, |exception| {
        format!(
            " (limit raised to {} until {}: {})",
            exception.up_to,
            exception.until,
            text(&exception.why)
        )
    });
    said + excused + &exception
}

/// A gated row in one sentence.
pub(super) fn sentence(row: &GatedRow, comparison: &Comparison) -> String {
    format!("{} {}", key(&row.key), numbers(row, comparison))
}

/// The same without its key: change, interval, trials, and what came of its limit.
pub(super) fn numbers(row: &GatedRow, comparison: &Comparison) -> String {
    let (delta, outcome) = (delta(row), outcome(row, comparison));
    match &row.judgement.test {
        Some(test) => format!(
            "{delta} {}, n {}+{}, {outcome}",
            bounds(&test.interval, Some(row.limit_pct)),
            test.interval.n_a,
            test.interval.n_b
        ),
        None => format!("{delta}, {outcome}"),
    }
}

/// How large a change has to be to show four times in five: `1.9 %`.
fn resolution(interval: &Interval) -> String {
    let size = percent(interval.resolution);
    if size == 0.0 {
        "any size".to_owned()
    } else if size < 0.1 {
        "0.1 %".to_owned()
    } else if size < 10.0 {
        format!("{size:.1} %")
    } else {
        format!("{} %", number(size))
    }
}

/// How many trials would decide.
fn more_trials(interval: &Interval, needed: Option<usize>) -> String {
    let more = needed.map(|needed| needed.saturating_sub(interval.n_a.max(interval.n_b)));
    match more {
        _ if interval.method == Method::Calibrated => "more trials of one session do not help".to_owned(),
        Some(1) => "about 1 more trial a side would decide".to_owned(),
        Some(more) => format!("about {more} more trials a side would decide"),
        None => "more than 20 trials a side would be needed".to_owned(),
    }
}

/// The row that somebody may have meant: the only one of the table whose key ends in the last part of the wanted one.
fn near(wanted: &RowKey, comparison: &Comparison) -> Option<RowKey> {
    let RowKey::In(table, name) = wanted else { return None };
    // A name that was copied from a narrow report lacks its middle.
    let end = name
        .rsplit(['…', '*'])
        .next()
        .unwrap_or(name)
        .trim_start_matches(['.', ' ']);
    let last = end.rsplit('.').next().filter(|last| !last.is_empty())?;
    let ending = |end: &str| -> Vec<&str> {
        let keys = comparison.table(*table).iter().map(|row| row.key.as_str());
        keys.filter(|key| key.ends_with(end) && key != name).collect()
    };
    let found = [ending(end), ending(last)].into_iter().find(|found| found.len() == 1)?;
    Some(RowKey::In(*table, (*found.first()?).to_owned()))
}

fn why(reason: Option<&'static str>, row: &GatedRow, comparison: &Comparison) -> String {
    match reason {
        Some("incomparable") => {
            let reasons: Vec<String> = comparison
                .incomparable
                .iter()
                .map(|reason| text(&reason.text))
                .collect();
            reasons.join("; ")
        }
        Some("missing") => match (&row.key, row.judgement.verdict) {
            (_, Verdict::OnlyInA) => "only side A has this row".to_owned(),
            (_, Verdict::OnlyInB) => "only side B has this row".to_owned(),
            (RowKey::Kernel(_), _) => "exported traces have no GPU time by kernel".to_owned(),
            (wanted, _) => match near(wanted, comparison) {
                Some(other) => format!("neither side has this row; is it {}?", key(&other)),
                None => "neither side has this row".to_owned(),
            },
        },
        Some("zero_in_trial") => "a trial has nothing of this row".to_owned(),
        Some("one_trial") => "one trial on a side gives no interval; record at least 2, or give --noise".to_owned(),
        Some(other) => other.to_owned(),
        None => "no interval".to_owned(),
    }
}

/// What the self-test showed, a line per row.
pub(super) fn self_test(test: &SelfTest) -> Vec<String> {
    let line = |(row, results): &(RowKey, Option<[GateResult; 3]>)| match results {
        None => format!("self-test: {} has no interval, so this gate cannot fail", key(row)),
        Some(results) => {
            let cases = ["slower than the limit", "faster than the limit", "row gone"];
            let shown: Vec<String> = cases
                .iter()
                .zip(results)
                .map(|(case, came)| format!("{case}: {}", result(*came)))
                .collect();
            let verdict = if *results == SelfTest::EXPECTED {
                "this gate can fail"
            } else {
                "this gate does not tell them apart"
            };
            format!("self-test: {}: {}; {verdict}", key(row), shown.join(", "))
        }
    };
    test.rows.iter().map(line).collect()
}
