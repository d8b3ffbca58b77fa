//! How numbers are rounded and grouped in every text: two decimals at most, never a false 0.00, thousands told apart.

#[cfg(feature = "traces")]
use crate::model::Nanos;

/// What stands where nothing was measured.
pub(crate) const NOT_MEASURED: &str = "–";

/// How many decimals a number of this size has: two, one from 100 on, none from 10,000 on.
fn decimals(size: f64) -> usize {
    if size < 99.995 {
        2
    } else if size < 9_999.95 {
        1
    } else {
        0
    }
}

/// A positive number, rounded; `0` only for zero, `<0.01` for what would round to it.
fn rounded(size: f64) -> String {
    if size == 0.0 {
        "0".to_owned()
    } else if size < 0.005 {
        "<0.01".to_owned()
    } else {
        grouped(&format!("{size:.*}", decimals(size)))
    }
}

/// Digits with commas between thousands.
pub(crate) fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number without unit in its cell: µs, or things per unit. Whole counts have no decimals.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOT_MEASURED.to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", rounded(value.abs()))
}

/// A count.
pub(crate) fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// A length of time in the unit that suits it.
#[cfg(feature = "traces")]
pub(crate) fn duration(Nanos(ns): Nanos) -> String {
    let (scale, unit) = match ns {
        0..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", number(ns as f64 / scale))
}
