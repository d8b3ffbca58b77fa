//! What trials allow to be said of a change: the two-sided 90 % interval of the difference of mean logarithms.
//!
//! What goes in: one value per trial and side, as natural logarithms. What comes out: an [`Interval`]. The unit is the
//! trial: submissions inside one are not independent, so they never make an interval. On logarithms a difference is
//! a ratio, so swapping the sides mirrors it. `docs/statistics.md` says why this method and not another.

use std::sync::OnceLock;

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// Level of every interval: each bound is wrong in at most one comparison of twenty.
pub const LEVEL: f64 = 0.90;
/// The same for one bound.
const ONE_BOUND: f64 = 0.95;
/// How often a change of the size of the resolution shows.
const POWER: f64 = 0.80;
/// A standard error below this is none: the trials are equal, but for rounding. A bound that lies nearer to a limit than
/// this lies on it: 103 against 100 ns is 3 %, whatever the last bits of their logarithms say.
pub(crate) const NO_ERROR: f64 = 1e-12;
/// More trials than this a side are not asked for.
const MOST_TRIALS: usize = 20;
/// Most steps towards a quantile.
const STEPS: usize = 20;

/// What is said of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The sides must not be held against each other.
    Incomparable,
    /// No difference larger than the margin.
    Unchanged,
    /// Side B has none of it in any trial.
    OnlyInA,
    /// Side A has none of it in any trial.
    OnlyInB,
    /// The trials do not decide.
    Inconclusive,
    /// A takes longer than B.
    Regressed,
    /// A takes less time than B.
    Improved,
}

impl Verdict {
    /// Stable name: `regressed`, `only_in_a`, …
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Incomparable => "incomparable",
            Verdict::Unchanged => "unchanged",
            Verdict::OnlyInA => "only_in_a",
            Verdict::OnlyInB => "only_in_b",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Regressed => "regressed",
            Verdict::Improved => "improved",
        }
    }
}

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Two independent groups with their own variances.
    Welch,
    /// The k-th trial of A with the k-th of B; only when asked for.
    Paired,
    /// From the noise between sessions that was measured before.
    Calibrated,
}

impl Method {
    /// `welch`, `paired`, `calibrated`.
    pub fn name(self) -> &'static str {
        match self {
            Method::Welch => "welch",
            Method::Paired => "paired",
            Method::Calibrated => "calibrated",
        }
    }
}

/// The interval of a change: `change ± half` on the scale of natural logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// How it was made.
    pub method: Method,
    /// Trials of side A.
    pub n_a: usize,
    /// Trials of side B.
    pub n_b: usize,
    /// Mean of ln A less mean of ln B.
    pub change: f64,
    /// Half its length.
    pub half: f64,
    /// Standard error of `change`.
    pub error: f64,
    /// Degrees of freedom of `half` and of `p`.
    pub df: f64,
    /// Two-sided probability of such a change when there is none; decides only what tables call `one_of_many`.
    pub p: f64,
    /// Size of a change that shows four times in five.
    pub resolution: f64,
    /// Standard deviation of one trial (of one pair), for the number of trials that a decision needs.
    /// `None` when a side has one trial.
    pub trial_sd: Option<f64>,
    /// All trials of a side are equal, on both sides: the interval has no length.
    pub zero_variance: bool,
}

impl Interval {
    /// Lower bound of the change (logarithm).
    pub fn low(&self) -> f64 {
        self.change - self.half
    }

    /// Upper bound of the change (logarithm).
    pub fn high(&self) -> f64 {
        self.change + self.half
    }

    /// What it says of the change when a change up to `margin` (logarithm) is none: unchanged, regressed, improved, or
    /// inconclusive. Nothing else than the interval is asked.
    pub fn verdict(&self, margin: f64) -> Verdict {
        let within = margin + NO_ERROR;
        if -within <= self.low() && self.high() <= within {
            Verdict::Unchanged
        } else if self.low() > 0.0 {
            Verdict::Regressed
        } else if self.high() < 0.0 {
            Verdict::Improved
        } else {
            Verdict::Inconclusive
        }
    }

    /// Smallest number of trials a side, above what there is and up to 20, with which a change at the distance
    /// `gap` (logarithm) from what it is held against would be told in four cases of five.
    ///
    /// `None`: 20 are not enough, or more trials do not help (the noise between sessions decides).
    pub fn trials_needed(&self, gap: f64) -> Option<usize> {
        let sd = self.trial_sd?;
        if self.method == Method::Calibrated {
            return None;
        }
        (self.n_a.max(self.n_b) + 1..=MOST_TRIALS).find(|&n| {
            let (df, variance) = match self.method {
                Method::Paired => (n - 1, 1.0 / n as f64),
                Method::Welch | Method::Calibrated => (2 * n - 2, 2.0 / n as f64),
            };
            reach_of_whole(df) * sd * variance.sqrt() <= gap
        })
    }
}

/// How many standard errors a change must have to show four times in five; for the few degrees of freedom that
/// [`Interval::trials_needed`] asks for with every row, worked out once.
fn reach_of_whole(df: usize) -> f64 {
    static KNOWN: OnceLock<Vec<f64>> = OnceLock::new();
    let reach = |df: usize| quantile(ONE_BOUND, df as f64) + quantile(POWER, df as f64);
    let known = KNOWN.get_or_init(|| (0..=2 * MOST_TRIALS).map(reach).collect());
    known.get(df).copied().unwrap_or(f64::NAN)
}

/// A logarithm of a ratio as a change in percent: ln 1.05 is 5.
pub fn percent(log: f64) -> f64 {
    100.0 * log.exp_m1()
}

/// A change in percent as a logarithm: 5 is ln 1.05.
pub fn log_of(percent: f64) -> f64 {
    (percent / 100.0).ln_1p()
}

/// Student's quantile: the value that a t variable of `df` degrees of freedom stays below with probability `p`.
///
/// NaN unless 0 < `p` < 1 and `df` > 0.
pub fn quantile(p: f64, df: f64) -> f64 {
    let (Ok(t), true) = (StudentsT::new(0.0, 1.0, df), p > 0.0 && p < 1.0) else {
        return f64::NAN;
    };
    // In the lower tail a small probability keeps its digits; 1 - p is exact from one half on.
    if p > 0.5 {
        return -quantile(1.0 - p, df);
    }
    let mut x = t.inverse_cdf(p);
    // The inverse stops early. Newton's method on the logarithm of the probability brings it to the accuracy of the
    // distribution itself, far out in the tail too; two or three steps do.
    for _ in 0..STEPS {
        let (below, density) = (t.cdf(x), t.pdf(x));
        let step = below / density * (below / p).ln();
        if !step.is_finite() {
            break;
        }
        x -= step;
        if step.abs() <= f64::EPSILON * x.abs() {
            break;
        }
    }
    x
}

/// Probability of a t value as far from 0 as `t` on either side.
fn two_sided(t: f64, df: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |distribution| 2.0 * distribution.cdf(-t.abs()))
}

/// Mean and variance (n − 1 in the denominator; 0 for one value).
pub(crate) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() > 1 { squares / (n - 1.0) } else { 0.0 })
}

/// Two independent groups of logarithms. `None` when a side has fewer than two trials.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let ((mean_a, var_a), (mean_b, var_b)) = (moments(a), moments(b));
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let (e_a, e_b) = (var_a / n_a, var_b / n_b);
    let error = (e_a + e_b).sqrt();
    let pooled = ((n_a - 1.0) * var_a + (n_b - 1.0) * var_b) / (n_a + n_b - 2.0);
    let df = (e_a + e_b).powi(2) / (e_a.powi(2) / (n_a - 1.0) + e_b.powi(2) / (n_b - 1.0));
    Some(interval(Parts {
        method: Method::Welch,
        counts: (a.len(), b.len()),
        change: mean_a - mean_b,
        error,
        df: if error < NO_ERROR { n_a + n_b - 2.0 } else { df },
        trial_sd: pooled.sqrt(),
    }))
}

/// Pairs of logarithms: the k-th of `a` with the k-th of `b`. `None` when there are fewer than two, or counts differ.
pub fn paired(a: &[f64], b: &[f64]) -> Option<Interval> {
    if a.len() < 2 || a.len() != b.len() {
        return None;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (change, variance) = moments(&differences);
    let n = a.len() as f64;
    Some(interval(Parts {
        method: Method::Paired,
        counts: (a.len(), b.len()),
        change,
        error: (variance / n).sqrt(),
        df: n - 1.0,
        trial_sd: variance.sqrt(),
    }))
}

struct Parts {
    method: Method,
    counts: (usize, usize),
    change: f64,
    error: f64,
    df: f64,
    trial_sd: f64,
}

fn interval(parts: Parts) -> Interval {
    let zero_variance = parts.error < NO_ERROR;
    let error = if zero_variance { 0.0 } else { parts.error };
    // Means of equal values may differ by the last bit of a sum.
    let change = if zero_variance && parts.change.abs() < NO_ERROR {
        0.0
    } else {
        parts.change
    };
    let bound = quantile(ONE_BOUND, parts.df);
    Interval {
        method: parts.method,
        n_a: parts.counts.0,
        n_b: parts.counts.1,
        change,
        half: bound * error,
        error,
        df: parts.df,
        p: match zero_variance {
            true if change == 0.0 => 1.0,
            true => 0.0,
            false => two_sided(change / error, parts.df),
        },
        resolution: (bound + quantile(POWER, parts.df)) * error,
        trial_sd: Some(if zero_variance { 0.0 } else { parts.trial_sd }),
        zero_variance,
    }
}

/// Widens `own` to the noise between sessions: `sessions` trials, each of its own session, with the standard
/// deviation `sd` of their logarithms. Without an own interval (one trial on a side) the noise alone makes it.
///
/// `None` when noise was measured on fewer than two sessions and there is no own interval.
pub fn calibrated(a: &[f64], b: &[f64], own: Option<Interval>, sessions: usize, sd: f64) -> Option<Interval> {
    // Sessions that all gave one value, to the last bit, show nothing of how sessions differ.
    if sessions < 2 || sd < NO_ERROR || a.is_empty() || b.is_empty() {
        return own;
    }
    let df = sessions as f64 - 1.0;
    let error = sd * std::f64::consts::SQRT_2;
    let noise = interval(Parts {
        method: Method::Calibrated,
        counts: (a.len(), b.len()),
        change: moments(a).0 - moments(b).0,
        error,
        df,
        trial_sd: sd,
    });
    match own {
        // The one that decides is the one whose values are shown.
        Some(own) if own.half >= noise.half => Some(own),
        Some(own) => Some(Interval {
            trial_sd: own.trial_sd,
            ..noise
        }),
        None => Some(Interval {
            trial_sd: None,
            ..noise
        }),
    }
}

/// Adjusts the p values of one table for their number (Benjamini and Hochberg): the share of false ones among all that
/// are at most as large. `None` stays `None` and does not count.
pub fn false_discovery(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut ranked: Vec<(usize, f64)> = p.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    ranked.sort_by(|x, y| x.1.total_cmp(&y.1).then(x.0.cmp(&y.0)));
    let count = ranked.len() as f64;
    let mut q = vec![None; p.len()];
    let mut least = 1.0_f64;
    for (rank, (at, p)) in ranked.into_iter().enumerate().rev() {
        // The quotient first: it is 1 or more, so that no rounding brings q below p.
        least = least.min(p * (count / (rank as f64 + 1.0)));
        if let Some(place) = q.get_mut(at) {
            *place = Some(least);
        }
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(x: f64, y: f64) -> bool {
        (x - y).abs() <= 1e-9 * y.abs().max(1e-300)
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook, table of Student's t, to its three decimals.
        for (p, df, t) in [
            (0.95, 1.0, 6.314),
            (0.95, 4.0, 2.132),
            (0.95, 10.0, 1.812),
            (0.90, 30.0, 1.310),
        ] {
            assert!((quantile(p, df) - t).abs() < 5e-4, "{p} {df}: {}", quantile(p, df));
        }
    }

    #[test]
    fn swapping_the_sides_mirrors_the_interval() {
        let (a, b) = ([1.0, 1.1, 1.3], [0.8, 0.9, 0.85, 0.7]);
        let (ab, ba) = (welch(&a, &b).unwrap(), welch(&b, &a).unwrap());
        assert!(near(ab.low(), -ba.high()) && near(ab.high(), -ba.low()));
        assert!(near(ab.p, ba.p) && near(ab.df, ba.df));
    }

    #[test]
    fn equal_trials_have_an_interval_without_length() {
        let (a, b) = ([0.3_f64.ln(); 5], [0.1_f64.ln() + 0.2; 5]);
        let same = welch(&a, &a).unwrap();
        assert_eq!(
            (same.change, same.half, same.p, same.zero_variance),
            (0.0, 0.0, 1.0, true)
        );
        let other = welch(&a, &b).unwrap();
        assert_eq!((other.half, other.p, other.df), (0.0, 0.0, 8.0));
        assert_eq!(paired(&a, &b).unwrap().df, 4.0);
    }

    #[test]
    fn one_trial_has_no_interval_but_with_noise() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(paired(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
        let noise = calibrated(&[1.0], &[1.0], None, 4, 0.01).unwrap();
        assert!(near(noise.half, quantile(0.95, 3.0) * 0.01 * 2.0_f64.sqrt()));
        assert_eq!(noise.trials_needed(1.0), None, "more trials of one session do not help");
    }

    #[test]
    fn the_wider_of_own_and_measured_noise_decides() {
        let (a, b) = ([1.0, 1.1, 1.3], [0.8, 0.9, 0.85]);
        let own = welch(&a, &b);
        assert_eq!(calibrated(&a, &b, own, 5, 1e-6), own);
        let wide = calibrated(&a, &b, own, 5, 0.5).unwrap();
        assert_eq!(wide.method, Method::Calibrated);
        assert!(wide.half > own.unwrap().half);
    }

    #[test]
    fn a_smaller_gap_needs_more_trials() {
        let interval = welch(&[0.0, 0.01, 0.02], &[0.0, 0.01, 0.02]).unwrap();
        let needed: Vec<_> = [0.05, 0.02, 0.01, 0.005].map(|gap| interval.trials_needed(gap)).into();
        assert_eq!(needed, [Some(4), Some(5), Some(14), None]);
    }

    #[test]
    fn adjusted_values_rise_with_their_number_and_ignore_what_was_not_tested() {
        let q = false_discovery(&[Some(0.01), None, Some(0.04), Some(0.03), Some(0.5)]);
        let expected = [0.04, f64::NAN, 0.16 / 3.0, 0.16 / 3.0, 0.5];
        for (q, expected) in q.iter().zip(expected) {
            match q {
                Some(q) => assert!(near(*q, expected), "{q} {expected}"),
                None => assert!(expected.is_nan()),
            }
        }
    }
}
