//! Time between submissions: the complement of the busy union inside the window.
//!
//! The sum of all gaps is the window minus the busy time of the trial, to the ns.

use super::group::{band_names, key_of, phase_keys};
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

/// Idle stretches of the trace's window in bands, and the `longest` longest of them (earlier ones first when equal),
/// between phases as `names` calls them.
pub fn gaps(trace: &Trace, longest: usize, phases: &PhaseNames) -> Gaps {
    let names = band_names(&GAP_EDGES);
    let mut bands: Vec<GapBand> = names
        .into_iter()
        .map(|key| GapBand {
            key,
            count: 0,
            idle: Nanos(0),
        })
        .collect();
    let mut found = Vec::new();
    let mut add = |from: u64, to: u64, after: Option<LabelId>, before: Option<LabelId>| {
        if to <= from {
            return;
        }
        let length = to - from;
        if let Some(band) = bands.get_mut(GAP_EDGES.partition_point(|edge| *edge <= length)) {
            band.count += 1;
            band.idle.0 += length;
        }
        found.push((length, from, after, before));
    };

    let window = trace.window;
    let mut covered_to = window.from.0;
    let mut after = None;
    for submission in &trace.submissions {
        // One without length takes no time, so it splits no gap.
        if submission.duration.0 == 0 || submission.end().0 <= covered_to {
            continue;
        }
        if submission.start.0 >= window.to.0 {
            break;
        }
        add(covered_to, submission.start.0, after, Some(submission.label));
        covered_to = submission.end().0;
        after = Some(submission.label);
    }
    add(covered_to, window.to.0, after, None);

    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(longest);
    let keys = phase_keys(trace, phases);
    let longest = found
        .into_iter()
        .map(|(length, start, after, before)| Gap {
            start: Timestamp(start),
            length: Nanos(length),
            after: after.map(|label| key_of(&keys, label).to_owned()),
            before: before.map(|label| key_of(&keys, label).to_owned()),
        })
        .collect();
    Gaps { bands, longest }
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
        let empty = gaps(&Builder::new().build(), 5, &PhaseNames::default());
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
        let gaps = gaps(&trace, 2, &PhaseNames::default());
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
        assert_eq!(gaps(&trace, 5, &PhaseNames::default()).longest, []);
    }
}
