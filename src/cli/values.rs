//! Argument values that are more than a string: times, counts, and options shared by several commands.

use std::time::Duration;

use clap::Args;

use crate::error::Result;
use crate::model::{NO_TIME, Nanos};
use crate::recording::{ReadOptions, RunChoice};
use crate::xctrace::XctraceOptions;

/// How inputs are read.
#[derive(Debug, Clone, Args)]
pub(super) struct ReadArgs {
    /// Run of the recording, when it has several: a number, or `all` (compare, report: each is a trial)
    #[arg(long, value_name = "N|all", value_parser = parse_run, help_heading = "Reading")]
    run: Option<RunChoice>,
    #[command(flatten)]
    bundle: BundleArgs,
}

/// How bundles are exported.
#[derive(Debug, Clone, Args)]
pub(super) struct BundleArgs {
    /// How long xctrace may be silent before it is ended (30m, 90s)
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, default_value = "30m", help_heading = "Reading")]
    timeout: Nanos,
    /// Export a bundle again, although it was exported before
    #[arg(long, help_heading = "Reading")]
    no_cache: bool,
}

impl ReadArgs {
    pub(super) fn options(&self) -> ReadOptions {
        ReadOptions {
            run: self.run.unwrap_or_default(),
            xctrace: self.bundle.options(),
            ..ReadOptions::default()
        }
    }
}

impl BundleArgs {
    pub(super) fn options(&self) -> XctraceOptions {
        let mut xctrace = XctraceOptions {
            timeout: Duration::from_nanos(self.timeout.0),
            ..XctraceOptions::default()
        };
        if self.no_cache {
            xctrace.cache = None;
        }
        xctrace
    }
}

fn parse_run(text: &str) -> Result<RunChoice, String> {
    match text {
        "all" => Ok(RunChoice::All),
        number => number
            .parse()
            .map(RunChoice::Number)
            .map_err(|_| "give a run's number, or `all`".to_owned()),
    }
}

/// `1.25s`, `800ms`, `30m` as ns, exactly.
pub(super) fn parse_time(text: &str) -> Result<Nanos, String> {
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

fn parse_timeout(text: &str) -> Result<Nanos, String> {
    match parse_time(text)? {
        Nanos(0) => Err("give xctrace some time, such as 30m".to_owned()),
        time => Ok(time),
    }
}

/// A count of units: a whole number above 0.
pub(super) fn parse_units(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(0) => Err("times cannot be divided by 0; leave the option out for values per trial".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("`{text}` is no whole number")),
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
