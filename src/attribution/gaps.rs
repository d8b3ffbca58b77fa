//! Time between submissions: the complement of the busy union inside the window.
//!
//! The sum of all gaps is the window minus the busy time of the trial, to the ns.

use std::cmp::Reverse;

use super::foremost::foremost;
use super::group::{Key, band_names, key_of, phase_keys};
use super::label_map::PhaseNames;
use crate::model::{LabelId, Nanos, Timestamp, Trace};

/// Lower edges of all but the first band, in ns.
pub const GAP_EDGES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Idle stretches of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gaps {
    /// Every band, shortest first.
    pub bands: Vec<GapBand>,
    /// The longest, longest first.
    pub longest: Vec<Gap>,
}

/// Gaps of similar length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GapBand {
    /// Band name.
    pub key: String,
    /// How many.
    pub count: u64,
    /// Their sum.
    pub idle: Nanos,
}

/// One idle stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// First idle ns.
    pub start: Timestamp,
    /// Length.
    pub length: Nanos,
    /// Phase of the submission that ended last before it; `None` at the window's start.
    pub after: Option<String>,
    /// Phase of the submission that begins after it; `None` at the window's end.
    pub before: Option<String>,
}

/// Idle stretches of the trace's window in bands, and the `longest` longest of them (earlier ones first when equal).
pub fn gaps(trace: &Trace, longest: usize) -> Gaps {
    gaps_between(trace, &phase_keys(trace, &PhaseNames::default()), longest)
}

/// [`gaps`] with the phase keys of the trace's labels made before.
pub(crate) fn gaps_between(trace: &Trace, phases: &[Key], longest: usize) -> Gaps {
    let names = band_names(&GAP_EDGES);
    let mut bands: Vec<GapBand> = names
        .into_iter()
        .map(|key| GapBand {
            key,
            count: 0,
            idle: Nanos(0),
        })
        .collect();
    let counted = stretches(trace).inspect(|stretch| {
        if let Some(band) = bands.get_mut(GAP_EDGES.partition_point(|edge| *edge <= stretch.0.0)) {
            band.count += 1;
            band.idle.0 += stretch.0.0;
        }
    });
    let longest = foremost(counted, longest)
        .into_iter()
        .map(|(Reverse(length), start, after, before)| Gap {
            start: Timestamp(start),
            length: Nanos(length),
            after: after.map(|label| key_of(phases, label).to_owned()),
            before: before.map(|label| key_of(phases, label).to_owned()),
        })
        .collect();
    Gaps { bands, longest }
}

/// Length, start, and the labels of the submissions around it; so they order longest first.
type Stretch = (Reverse<u64>, u64, Option<LabelId>, Option<LabelId>);

/// Every idle stretch of the window, in the order of time.
fn stretches(trace: &Trace) -> impl Iterator<Item = Stretch> {
    let window = trace.window;
    let stretch = |from: u64, to: u64, after, before| (to > from).then(|| (Reverse(to - from), from, after, before));
    let mut covered_to = window.from.0;
    let mut after = None;
    // The end of the window comes after the last submission.
    let mut submissions = trace.submissions.iter();
    let mut ended = false;
    std::iter::from_fn(move || {
        while !ended {
            let next = submissions
                .by_ref()
                // One without length takes no time, so it splits no gap.
                .find(|submission| submission.duration.0 > 0 && submission.end().0 > covered_to)
                .filter(|submission| submission.start.0 < window.to.0);
            let found = match next {
                Some(submission) => {
                    let found = stretch(covered_to, submission.start.0, after, Some(submission.label));
                    covered_to = submission.end().0;
                    after = Some(submission.label);
                    found
                }
                None => {
                    ended = true;
                    stretch(covered_to, window.to.0, after, None)
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::fixture::{Builder, window};

    fn rows(gaps: &Gaps) -> Vec<(&str, u64, u64)> {
        gaps.bands
            .iter()
            .map(|band| (band.key.as_str(), band.count, band.idle.0))
            .collect()
    }

    #[test]
    fn bands_are_all_there() {
        let empty = gaps(&Builder::new().build(), 5);
        let none = [
            ("lt_10us", 0, 0),
            ("10_100us", 0, 0),
            ("100us_1ms", 0, 0),
            ("1_10ms", 0, 0),
            ("ge_10ms", 0, 0),
        ];
        assert_eq!(rows(&empty), none);
        assert_eq!(empty.longest, []);
    }

    #[test]
    fn gaps_know_what_stands_around_them() {
        let mut builder = Builder::new();
        builder.submission(1_000, 9_000, "Compute", "long", "");
        builder.submission(2_000, 1_000, "Compute", "short", "");
        builder.submission(15_000, 0, "Compute", "nothing", "");
        builder.submission(20_000, 1_000, "Compute", "next", "");
        let mut trace = builder.build();
        trace.window = window(0, 40_000);
        let gaps = gaps(&trace, 2);
        assert_eq!(rows(&gaps)[..2], [("lt_10us", 1, 1_000), ("10_100us", 2, 29_000)]);
        let gap = |start, length, after: Option<&str>, before: Option<&str>| Gap {
            start: Timestamp(start),
            length: Nanos(length),
            after: after.map(str::to_owned),
            before: before.map(str::to_owned),
        };
        let expected = [
            gap(21_000, 19_000, Some("next"), None),
            gap(10_000, 10_000, Some("long"), Some("next")),
        ];
        assert_eq!(gaps.longest, expected);
    }

    #[test]
    fn a_submission_over_the_windows_end_leaves_no_gap_there() {
        let mut builder = Builder::new();
        builder.submission(0, 1_000, "Compute", "p", "");
        let mut trace = builder.build();
        trace.window = window(0, 500);
        assert_eq!(gaps(&trace, 5).longest, []);
    }
}
