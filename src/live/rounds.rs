//! Two kernels held against each other in one process: rounds, pairs, and when to stop.
//!
//! A trial is a round, not a launch: launches of one round are not independent. Both kernels run in each round, in an
//! order that is swapped every round, so that a drift hits both; the value of a round is its median GPU time, and the
//! rounds are pairs.

use std::time::Duration;

use super::bench::Distribution;
use crate::error::{Error, ErrorKind, Result};
use crate::inference::{Interval, Verdict, log_of, paired};

/// Fewest rounds, and the first after which a stop is looked for.
pub const LEAST_ROUNDS: u32 = 10;
/// Most rounds of a run that stops by its interval, whatever time it has.
const MOST_ROUNDS: u32 = 10_000;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What you work on.
    A,
    /// What you compare it to.
    B,
}

/// When rounds end, and what counts as no difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundOptions {
    /// Rounds, at least [`LEAST_ROUNDS`].
    pub rounds: u32,
    /// Go on until the interval is at most so many percent wide on each side; then `rounds` is the least.
    pub until_pct: Option<f64>,
    /// Start no round after this time.
    pub max_time: Duration,
    /// What still counts as no difference, percent.
    pub margin_pct: f64,
}

impl Default for RoundOptions {
    /// Ten rounds within a minute, a margin of 1 %.
    fn default() -> Self {
        RoundOptions {
            rounds: LEAST_ROUNDS,
            until_pct: None,
            max_time: Duration::from_secs(60),
            margin_pct: 1.0,
        }
    }
}

/// Why no more rounds were run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All were run that were asked for.
    AllRounds,
    /// The interval is as narrow as was asked for.
    NarrowEnough,
    /// The time is over: the interval may be wider than was asked for.
    TimeOver,
}

impl Stop {
    /// `all_rounds`, `narrow_enough`, `time_over`.
    pub fn name(self) -> &'static str {
        match self {
            Stop::AllRounds => "all_rounds",
            Stop::NarrowEnough => "narrow_enough",
            Stop::TimeOver => "time_over",
        }
    }
}

/// What rounds found.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// Median GPU time of A in each round, ns.
    pub a: Vec<f64>,
    /// The same of B.
    pub b: Vec<f64>,
    /// Interval of the change, A by B, in logarithms; `None` when time was over before the second round ended.
    pub interval: Option<Interval>,
    /// What it says; without an interval: inconclusive.
    pub verdict: Verdict,
    /// Why it stopped.
    pub stop: Stop,
}

impl Rounds {
    /// The note that belongs to every such comparison: one process is not several sessions.
    pub const NOTE: &'static str = "one_process";
}

/// Runs rounds. `measure` runs one kernel's part of a round; `elapsed` is the time since the beginning.
///
/// # Errors
/// Fewer than ten rounds, a width that is no positive number, a round in which a kernel has no time, or an error of `measure`.
pub fn run_rounds(
    options: &RoundOptions,
    mut measure: impl FnMut(Which) -> Result<Distribution>,
    elapsed: impl Fn() -> Duration,
) -> Result<Rounds> {
    if options.rounds < LEAST_ROUNDS {
        return Err(Error::usage(format!(
            "{} rounds are too few: at least {LEAST_ROUNDS} tell one build from another",
            options.rounds
        )));
    }
    let width = match options.until_pct {
        Some(pct) if !(pct.is_finite() && pct > 0.0) => {
            return Err(Error::usage(
                "the width to stop at must be a number above 0, such as 0.5%",
            ));
        }
        other => other.map(log_of),
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut stop = Stop::TimeOver;
    for round in 0..if width.is_some() { MOST_ROUNDS } else { options.rounds } {
        if elapsed() >= options.max_time {
            break;
        }
        let mut value = |which| {
            let measured: Distribution = measure(which)?;
            let median = measured.summary().map(|summary| summary.p50);
            median.ok_or_else(|| {
                Error::new(ErrorKind::Device(format!(
                    "in round {} a kernel has no GPU time: not measured",
                    round + 1
                )))
            })
        };
        let (first, second) = if round % 2 == 0 {
            (Which::A, Which::B)
        } else {
            (Which::B, Which::A)
        };
        let (first_value, second_value) = (value(first)?, value(second)?);
        let (of_a, of_b) = match first {
            Which::A => (first_value, second_value),
            Which::B => (second_value, first_value),
        };
        a.push(of_a);
        b.push(of_b);
        let run = round + 1;
        match width {
            None if run == options.rounds => stop = Stop::AllRounds,
            Some(width) if run >= options.rounds && interval(&a, &b).is_some_and(|i| i.half <= width) => {
                stop = Stop::NarrowEnough;
                break;
            }
            _ => {}
        }
    }
    let interval = interval(&a, &b);
    let verdict = interval.map_or(Verdict::Inconclusive, |i| i.verdict(log_of(options.margin_pct)));
    Ok(Rounds {
        a,
        b,
        interval,
        verdict,
        stop,
    })
}

fn interval(a: &[f64], b: &[f64]) -> Option<Interval> {
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    paired(&logs(a), &logs(b))
}
