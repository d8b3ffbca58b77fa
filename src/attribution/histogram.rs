//! How long submissions take, as counts by duration: the shape that percentiles only hint at.
//!
//! The bins are the same for every trace, so that trials and sides can be laid over each other: each doubling of the duration
//! is cut into four of equal width, with edges of whole ns (…, 4096, 5120, 6144, 7168, 8192, 10240, … ns). Every
//! submission is in one bin, so counts and times add up to those of the trace.

use std::ops::RangeInclusive;

use crate::model::Nanos;

/// Binary digits of a duration, below its first, that tell bins apart.
const DIGITS: u32 = 2;
/// Bins of a doubling; durations below this have a bin each.
const PARTS: u64 = 1 << DIGITS;

/// Durations of one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// By bin, up to the last that holds something.
    bins: Vec<HistogramBin>,
}

/// Submissions of similar duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistogramBin {
    /// How many.
    pub submissions: u64,
    /// Sum of their durations.
    pub total: Nanos,
}

impl Histogram {
    /// The bin of a duration.
    #[inline]
    pub fn bin_of(Nanos(ns): Nanos) -> usize {
        let bin = if ns < PARTS {
            ns
        } else {
            let exponent = ns.ilog2();
            let part = (ns >> (exponent - DIGITS)) - PARTS;
            u64::from(exponent - DIGITS + 1) * PARTS + part
        };
        // At most 251.
        usize::try_from(bin).unwrap_or(usize::MAX)
    }

    /// The shortest duration of a bin; behind the last bin the longest that there is.
    pub fn lower_edge(bin: usize) -> Nanos {
        let bin = u64::try_from(bin).unwrap_or(u64::MAX);
        if bin < PARTS {
            return Nanos(bin);
        }
        let (doubling, part) = (bin / PARTS - 1, bin % PARTS);
        let edge = u32::try_from(doubling)
            .ok()
            .and_then(|doubling| 1_u64.checked_shl(doubling))
            .and_then(|width| width.checked_mul(PARTS + part));
        Nanos(edge.unwrap_or(u64::MAX))
    }

    /// Counts one submission.
    #[inline]
    pub fn add(&mut self, duration: Nanos) {
        self.put(
            Self::bin_of(duration),
            HistogramBin {
                submissions: 1,
                total: duration,
            },
        );
    }

    /// Adds what a bin holds.
    #[inline]
    pub(crate) fn put(&mut self, bin: usize, more: HistogramBin) {
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, HistogramBin::default());
        }
        if let Some(held) = self.bins.get_mut(bin) {
            held.submissions += more.submissions;
            held.total.0 = held.total.0.saturating_add(more.total.0);
        }
    }

    /// What a bin holds.
    pub fn bin(&self, bin: usize) -> HistogramBin {
        self.bins.get(bin).copied().unwrap_or_default()
    }

    /// The first and the last bin that hold something; `None` without submissions.
    pub fn range(&self) -> Option<RangeInclusive<usize>> {
        let held = |bin: &HistogramBin| bin.submissions > 0;
        Some(self.bins.iter().position(held)?..=self.bins.iter().rposition(held)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubling_has_four_bins_with_whole_edges() {
        let edges: Vec<u64> = (0..17).map(|bin| Histogram::lower_edge(bin).0).collect();
        assert_eq!(edges, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]);
        let around_8_us = Histogram::bin_of(Nanos(8_000));
        assert_eq!(Histogram::lower_edge(around_8_us), Nanos(7_168));
        assert_eq!(Histogram::lower_edge(around_8_us + 1), Nanos(8_192));
    }

    #[test]
    fn every_duration_lies_between_the_edges_of_its_bin() {
        let powers = (0..64).map(|power| 1_u64 << power);
        let around = powers.flat_map(|ns| [ns - 1, ns, ns + 1, ns + ns / 3]);
        for ns in around.chain([u64::MAX - 1, u64::MAX]) {
            let bin = Histogram::bin_of(Nanos(ns));
            let (lower, upper) = (Histogram::lower_edge(bin), Histogram::lower_edge(bin + 1));
            assert!(lower.0 <= ns && (ns < upper.0 || upper.0 == u64::MAX), "{ns} in {bin}");
            assert_eq!(Histogram::bin_of(lower), bin);
        }
    }

    #[test]
    fn submissions_are_counted_with_their_time() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.range(), None);
        for ns in [5_000, 5_100, 9_000] {
            histogram.add(Nanos(ns));
        }
        let (five, nine) = (Histogram::bin_of(Nanos(5_000)), Histogram::bin_of(Nanos(9_000)));
        assert_eq!(histogram.range(), Some(five..=nine));
        let bin = |submissions, ns| HistogramBin {
            submissions,
            total: Nanos(ns),
        };
        assert_eq!(histogram.bin(five), bin(2, 10_100));
        assert_eq!(histogram.bin(five + 1), bin(0, 0));
        assert_eq!(histogram.bin(nine), bin(1, 9_000));
        assert_eq!(histogram.bin(nine + 1), bin(0, 0));
    }
}
