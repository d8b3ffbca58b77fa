//! How people write a length of time: `1.25s`, `800ms`, `30m`, exactly to the ns.

use super::{NO_TIME, Nanos};

/// Reads a number with its unit (ns, us, µs, ms, s, m, h).
///
/// # Errors
/// A sentence: no number, no or another unit, finer than a ns, or longer than any recording.
pub fn parse_time(text: &str) -> Result<Nanos, String> {
    let units: [(&str, u64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let help = || format!("`{text}` is no time: write a number with its unit, such as 1.25s, 800ms, 50us");
    let (digits, unit) = units
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)))
        .ok_or_else(help)?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !numeric(whole) || !numeric(part) {
        return Err(help());
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| help())?
    };
    let mut ns = whole.checked_mul(unit).ok_or_else(help)?;
    let mut place = unit;
    for digit in part.bytes() {
        if place % 10 != 0 && digit != b'0' {
            return Err(format!("`{text}` is finer than a nanosecond"));
        }
        place /= 10;
        ns = ns.checked_add(u64::from(digit - b'0') * place).ok_or_else(help)?;
    }
    if ns >= NO_TIME {
        Err(format!("`{text}` is longer than any recording"))
    } else {
        Ok(Nanos(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(parse_time("1.25s"), Ok(Nanos(1_250_000_000)));
        assert_eq!(parse_time("800ms"), Ok(Nanos(800_000_000)));
        assert_eq!(parse_time("0.5us"), Ok(Nanos(500)));
        assert_eq!(parse_time("30m"), Ok(Nanos(1_800_000_000_000)));
        assert_eq!(parse_time("1.5m"), Ok(Nanos(90_000_000_000)));
        assert_eq!(parse_time(".5s"), Ok(Nanos(500_000_000)));
        for bad in [
            "",
            "5",
            "s",
            "-1s",
            "1e3s",
            "NaNs",
            "1.2.3s",
            "0.1ns",
            "99999999999h",
            "1 s",
            "٣s",
        ] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
