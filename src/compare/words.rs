//! Numbers inside sentences, and the headline.

use super::{Comparison, Judgement, Over, Settings, Side, Verdict};
use crate::inference::percent;

/// `1,234,567`.
pub(super) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Inserts thousands separators into the whole part of a plain number.
fn grouped(number: &str) -> String {
    let (whole, fraction) = number
        .split_once('.')
        .map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{text}.{fraction}"),
        None => text,
    }
}

/// A size without its sign: two decimals below 10, one above, and never a false zero.
pub(super) fn size(value: f64) -> String {
    let value = value.abs();
    if value > 0.0 && value < 0.005 {
        "<0.01".to_owned()
    } else if value < 9.995 {
        grouped(&format!("{value:.2}"))
    } else {
        grouped(&format!("{value:.1}"))
    }
}

/// A number per unit or a share without its sign: one decimal unless it is a whole number, never a false zero.
pub(super) fn short(value: f64) -> String {
    let value = value.abs();
    if value > 0.0 && value < 0.05 {
        return "<0.1".to_owned();
    }
    let text = format!("{value:.1}");
    grouped(text.strip_suffix(".0").unwrap_or(&text))
}

/// A count per unit as the tables show it: two decimals, and none where there are none.
pub(super) fn rate(value: f64) -> String {
    let text = format!("{value:.2}");
    grouped(text.trim_end_matches('0').trim_end_matches('.'))
}

/// `+` or a minus sign; nothing for zero.
pub(super) fn sign(value: f64) -> &'static str {
    if value > 0.0 {
        "+"
    } else if value < 0.0 {
        "-"
    } else {
        ""
    }
}

/// A bound this near to a limit (points) lies on it, as the gate sees it.
const ON_THE_LIMIT: f64 = 1e-9;

/// A change (logarithm of a ratio) in percent with its sign and two decimals: `+3.12`, `-0.84`, `0`, `+<0.01`.
pub(crate) fn bound(log: f64) -> String {
    bound_beside(log, None)
}

/// The same beside a limit in percent: a bound that would round onto the limit has more digits.
pub(crate) fn bound_beside(log: f64, limit_pct: Option<f64>) -> String {
    let value = percent(log);
    if value == 0.0 {
        return "0".to_owned();
    }
    let sign = sign(value);
    let value = value.abs();
    if value < 0.005 {
        return format!("{sign}<0.01");
    }
    let text = (2..12).map(|digits| format!("{value:.digits$}"));
    let apart = |text: &String| {
        limit_pct.is_none_or(|limit| {
            (value - limit).abs() < ON_THE_LIMIT
                || text.parse().is_ok_and(|shown: f64| shown.to_bits() != limit.to_bits())
        })
    };
    let text = text.into_iter().find(apart).unwrap_or_else(|| value.to_string());
    format!("{sign}{}", grouped(&text))
}

/// `/token`, or nothing when values are per trial.
pub(super) fn slash_unit(settings: &Settings) -> String {
    settings
        .unit
        .as_ref()
        .map(|unit| format!("/{unit}"))
        .unwrap_or_default()
}

/// `per token`, `per trial`.
fn per_unit(settings: &Settings) -> String {
    format!("per {}", settings.unit.as_deref().unwrap_or("trial"))
}

/// Names of both sides, told apart when they are equal.
pub(super) fn side_names(a: &Side, b: &Side) -> (String, String) {
    if a.name == b.name {
        (format!("{} (A)", a.name), format!("{} (B)", b.name))
    } else {
        (a.name.clone(), b.name.clone())
    }
}

/// The outcome in one or two sentences: it speaks of GPU busy time.
///
/// "slower" and "faster" stand there only on the verdicts `regressed` and `improved`.
pub fn headline(comparison: &Comparison) -> String {
    let settings = &comparison.settings;
    let per = per_unit(settings);
    let Some(b) = &comparison.b else {
        let name = &comparison.a.name;
        return match &comparison.busy.a {
            Some(cell) => format!(
                "{name} keeps the GPU busy {} µs {per} ({}).",
                size(cell.busy_us.median),
                spread(&cell.busy_us, comparison.a.trials.len())
            ),
            None => format!("{name} has no trial."),
        };
    };
    let (name_a, name_b) = side_names(&comparison.a, b);
    if !comparison.incomparable.is_empty() {
        let reasons: Vec<&str> = comparison
            .incomparable
            .iter()
            .map(|reason| reason.text.as_str())
            .collect();
        return format!(
            "{name_a} and {name_b} cannot be compared as they are: {}.",
            reasons.join("; ")
        );
    }
    let (Some(cell_a), Some(cell_b), Some(judgement)) =
        (&comparison.busy.a, &comparison.busy.b, &comparison.busy.judgement)
    else {
        return format!("{name_a} and {name_b} cannot be compared: a side has no trial.");
    };
    let (busy_a, busy_b) = (cell_a.busy_us.median, cell_b.busy_us.median);
    let medians = match (comparison.a.trials.len(), b.trials.len()) {
        (1, 1) => "one trial each".to_owned(),
        (trials_a, trials_b) => format!("medians of {trials_a} and {trials_b} trials"),
    };
    let delta = busy_a - busy_b;
    let change = match busy_b {
        base if base > 0.0 => format!("{}{} %", sign(delta), short(100.0 * delta / base)),
        _ => format!("{}{} µs", sign(delta), size(delta)),
    };
    let values = format!("{} µs against {} µs {per} ({medians})", size(busy_a), size(busy_b));
    let interval = judgement.test.map(|test| {
        let interval = test.interval;
        format!("interval {} to {} %", bound(interval.low()), bound(interval.high()))
    });
    let interval = interval.as_deref();
    match (judgement.verdict, interval) {
        (Verdict::Regressed | Verdict::Improved, Some(interval)) => {
            let word = if judgement.verdict == Verdict::Regressed {
                "slower"
            } else {
                "faster"
            };
            format!(
                "{name_a} is {word} than {name_b} by {} µs {per} ({change} GPU busy time, {interval}): {} µs against {} µs \
                 ({medians}).",
                size(delta),
                size(busy_a),
                size(busy_b)
            )
        }
        (Verdict::Unchanged, Some(interval)) => format!(
            "{name_a} and {name_b} keep the GPU busy equally long within {} %: medians {change}, {interval}; {values}.",
            plain(comparison.inference.margin_pct)
        ),
        (Verdict::Unchanged, None) => format!("{name_a} and {name_b} keep the GPU busy equally long: {values}."),
        (_, Some(interval)) => format!("no difference shown: medians {change}, {interval}; {name_a} {values}."),
        (_, None) => format!(
            "no difference shown: {}; medians {change}: {name_a} {values}.",
            no_interval(judgement)
        ),
    }
}

/// Why there is no interval.
fn no_interval(judgement: &Judgement) -> &'static str {
    match (judgement.verdict, judgement.reasons.first().copied()) {
        (Verdict::OnlyInA, _) => "side B kept the GPU busy in no trial",
        (Verdict::OnlyInB, _) => "side A kept the GPU busy in no trial",
        (_, Some("zero_in_trial")) => "a trial kept the GPU busy for no time",
        _ => "one trial on a side does not show how much its runs differ",
    }
}

/// A number as it was given: `3`, `0.5`.
fn plain(value: f64) -> String {
    value.to_string()
}

/// `median of 3 trials, 1.0 to 2.0`, `one trial`.
fn spread(over: &Over, trials: usize) -> String {
    match trials {
        1 => "one trial".to_owned(),
        _ => format!("median of {trials} trials, {} to {}", size(over.low), size(over.high)),
    }
}
