//! Medians, ranks and unions: the definitions that every number stands on, whether it comes from a trace or is live.

use crate::model::{Nanos, Window};

/// Median of sorted values: the middle one, or the mean of the middle two; `None` for none.
pub fn median(sorted: &[u64]) -> Option<f64> {
    let (lower, upper) = middle(sorted.len() as u64);
    Some(between(at_rank(sorted, lower)?, at_rank(sorted, upper)?))
}

/// Percentile of sorted values by nearest rank: the smallest value that `percent` of all do not exceed;
/// `None` for no values. `percent` is taken as at most 100.
pub fn nearest_rank(sorted: &[u64], percent: u8) -> Option<u64> {
    at_rank(sorted, rank_of(sorted.len() as u64, percent))
}

/// The value of a rank, which counts from 1.
pub(crate) fn at_rank(sorted: &[u64], rank: u64) -> Option<u64> {
    let place = usize::try_from(rank.checked_sub(1)?).ok()?;
    sorted.get(place).copied()
}

/// Ranks, from 1, of the values in the middle of so many: the same twice for an odd number.
pub(crate) fn middle(count: u64) -> (u64, u64) {
    (count.div_ceil(2), count / 2 + 1)
}

/// Rank, from 1, of a percentile among so many values.
pub(crate) fn rank_of(count: u64, percent: u8) -> u64 {
    let percent = u128::from(percent.min(100));
    let rank = (percent * u128::from(count)).div_ceil(100);
    u64::try_from(rank).unwrap_or(count).max(1)
}

/// The mean of two values of which `upper` is not the smaller.
pub(crate) fn between(lower: u64, upper: u64) -> f64 {
    // Half the distance is exact where a sum of large values would round.
    lower as f64 + (upper - lower) as f64 / 2.0
}

/// Length in ns of the union of `[start, end)` intervals (ns) inside the window; order does not matter.
pub fn union_length(intervals: &[(u64, u64)], window: Window) -> Nanos {
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let mut union = Union::default();
    for (start, end) in sorted {
        union.add(start, end, window);
    }
    Nanos(union.length)
}

/// A union that grows by intervals in the order of their starts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Union {
    /// Everything before this is dealt with.
    covered_to: u64,
    /// Its length so far, ns.
    pub(crate) length: u64,
}

impl Union {
    /// Adds `[start, end)`, which starts no earlier than those before, as far as it lies in the window.
    pub(crate) fn add(&mut self, start: u64, end: u64, window: Window) {
        let from = start.max(window.from.0).max(self.covered_to);
        let to = end.min(window.to.0);
        if to > from {
            self.length += to - from;
            self.covered_to = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn window(from: u64, to: u64) -> Window {
        Window {
            from: Timestamp(from),
            to: Timestamp(to),
        }
    }

    #[test]
    fn b27_percentiles_and_medians_by_the_documented_definition() {
        let sorted = |values: &[u64]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values
        };
        let s1 = sorted(&[30, 10, 20, 100]);
        let s2 = sorted(&[7, 20, 1, 13, 2, 19, 3, 18, 4, 17, 5, 16, 6, 15, 8, 14, 9, 12, 10, 11]);
        assert_eq!(median(&s1), Some(25.0));
        assert_eq!(nearest_rank(&s2, 95), Some(19));
        assert_eq!(nearest_rank(&sorted(&[30, 10, 20]), 95), Some(30));
        assert_eq!(nearest_rank(&[1, 2], 95), Some(2));
        assert_eq!(median(&[1, 2]), Some(1.5));
        assert_eq!(nearest_rank(&[5], 95), Some(5));
        assert_eq!(median(&[5]), Some(5.0));
        assert_eq!((median(&[]), nearest_rank(&[], 95)), (None, None));
        assert_eq!(nearest_rank(&s2, 0), Some(1));
        assert_eq!(nearest_rank(&s2, 100), Some(20));
    }

    #[test]
    fn union_merges_touching_nested_and_equal_intervals_and_is_clipped() {
        let wide = window(0, 1000);
        assert_eq!(union_length(&[(0, 10), (10, 20)], wide), Nanos(20));
        assert_eq!(
            union_length(&[(0, 100), (20, 30), (0, 100), (90, 110)], wide),
            Nanos(110)
        );
        assert_eq!(union_length(&[(50, 60), (0, 10)], wide), Nanos(20));
        assert_eq!(union_length(&[(5, 5)], wide), Nanos(0));
        assert_eq!(union_length(&[(0, 100)], window(20, 40)), Nanos(20));
        assert_eq!(union_length(&[(0, 100)], window(40, 40)), Nanos(0));
        assert_eq!(union_length(&[], wide), Nanos(0));
    }
}
