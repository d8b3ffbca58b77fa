//! Numbers inside sentences, and the headline.

use super::{Comparison, Over, Settings, Side};

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

/// The outcome in one or two sentences.
///
/// "slower" and "faster" stand there only when every trial of A lies beyond every trial of B.
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
    let (Some(cell_a), Some(cell_b)) = (&comparison.busy.a, &comparison.busy.b) else {
        return format!("{name_a} and {name_b} cannot be compared: a side has no trial.");
    };
    let (busy_a, busy_b) = (&cell_a.busy_us, &cell_b.busy_us);
    let (trials_a, trials_b) = (comparison.a.trials.len(), b.trials.len());
    let delta = busy_a.median - busy_b.median;
    let medians = match (trials_a, trials_b) {
        (1, 1) => "one trial each".to_owned(),
        _ => format!("medians of {trials_a} and {trials_b} trials"),
    };
    if delta == 0.0 {
        return format!(
            "{name_a} and {name_b} keep the GPU busy equally long: {} µs {per} ({medians}).",
            size(busy_a.median)
        );
    }
    let percent = match busy_b.median {
        base if base > 0.0 => format!(" ({}{} % GPU busy time)", sign(delta), short(100.0 * delta / base)),
        _ => String::new(),
    };
    let values = format!("{} µs against {} µs", size(busy_a.median), size(busy_b.median));
    let (word, apart) = if delta > 0.0 {
        ("slower", busy_a.low > busy_b.high)
    } else {
        ("faster", busy_a.high < busy_b.low)
    };
    if !apart {
        // One trial has no range to show.
        let range = |over: &Over, trials: usize| match trials {
            1 => String::new(),
            _ => format!(" ({} to {})", size(over.low), size(over.high)),
        };
        return format!(
            "no clear difference: {name_a} keeps the GPU busy {} µs {per}{}, {name_b} {} µs{}: \
             the trials' ranges overlap.",
            size(busy_a.median),
            range(busy_a, trials_a),
            size(busy_b.median),
            range(busy_b, trials_b),
        );
    }
    let mut text = format!(
        "{name_a} is {word} than {name_b} by {} µs {per}{percent}: {values} ({medians}).",
        size(delta)
    );
    if trials_a == 1 || trials_b == 1 {
        text.push_str(" One trial on a side does not show how much its runs differ.");
    }
    text
}

/// `median of 3 trials, 1.0 to 2.0`, `one trial`.
fn spread(over: &Over, trials: usize) -> String {
    match trials {
        1 => "one trial".to_owned(),
        _ => format!("median of {trials} trials, {} to {}", size(over.low), size(over.high)),
    }
}
