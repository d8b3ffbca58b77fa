//! Percentiles, the interval union, and the [`Stats`] of all groups of a grouping at once.
//!
//! Durations are sorted once per trace and dealt out to the groups in order, so each group's list arrives
//! sorted; busy time comes from one walk over the submissions, which are sorted by start.

use std::collections::HashSet;

use super::{Durations, Latency, Stats};
use crate::model::{EncoderId, Nanos, Trace, Window};

/// Median of sorted values: the middle one, or the mean of the middle two; `None` for none.
pub fn median(sorted: &[u64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper as f64);
    }
    let lower = *sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    // Half the distance is exact where a sum of large values would round.
    Some(lower as f64 + (upper - lower) as f64 / 2.0)
}

/// Percentile of sorted values by nearest rank: the smallest value that `percent` of all do not exceed;
/// `None` for no values. `percent` is taken as at most 100.
pub fn nearest_rank(sorted: &[u64], percent: u8) -> Option<u64> {
    let rank = (usize::from(percent.min(100)) * sorted.len()).div_ceil(100);
    sorted.get(rank.max(1) - 1).copied()
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
struct Union {
    /// Everything before this is dealt with.
    covered_to: u64,
    length: u64,
}

impl Union {
    fn add(&mut self, start: u64, end: u64, window: Window) {
        let from = start.max(window.from.0).max(self.covered_to);
        let to = end.min(window.to.0);
        if to > from {
            self.length += to - from;
            self.covered_to = to;
        }
    }
}

/// Durations and latencies in their order, each with the index of its submission: sorted once, used by every grouping.
#[derive(Debug)]
pub(crate) struct Ranked {
    by_duration: Vec<(Nanos, usize)>,
    /// Only those that have a latency.
    by_latency: Vec<(Nanos, usize)>,
}

impl Ranked {
    pub(crate) fn new(trace: &Trace) -> Self {
        let all = || trace.submissions.iter().enumerate();
        let mut by_duration: Vec<(Nanos, usize)> = all().map(|(at, s)| (s.duration, at)).collect();
        let mut by_latency: Vec<(Nanos, usize)> = all().filter_map(|(at, s)| Some((s.latency?, at))).collect();
        by_duration.sort_unstable();
        by_latency.sort_unstable();
        Ranked {
            by_duration,
            by_latency,
        }
    }
}

/// Which group an encoder belongs to by its own label.
pub(crate) enum EncoderGroups<'a> {
    /// Groups that say nothing about encoders (buckets, channels): no CPU encoding time.
    None,
    /// Aligned with the encoders list; `None` when no submission has such a key.
    Of(&'a [Option<usize>]),
}

/// Statistics of `count` groups: `group_of` is aligned with the trace's submissions, each below `count`.
pub(crate) fn stats_of(
    trace: &Trace,
    ranked: &Ranked,
    group_of: &[usize],
    count: usize,
    encoder_groups: &EncoderGroups<'_>,
) -> Vec<Stats> {
    debug_assert!(
        trace.submissions.is_sorted_by_key(|s| s.start),
        "a trace is sorted by start"
    );
    let mut groups = vec![Stats::default(); count];
    let mut unions = vec![Union::default(); count];
    for (submission, &group) in trace.submissions.iter().zip(group_of) {
        if let (Some(stats), Some(union)) = (groups.get_mut(group), unions.get_mut(group)) {
            stats.submissions += 1;
            stats.total.0 = stats.total.0.saturating_add(submission.duration.0);
            union.add(submission.start.0, submission.end().0, trace.window);
        }
    }
    let durations = deal(&ranked.by_duration, group_of, count);
    let latencies = deal(&ranked.by_latency, group_of, count);
    let encoders = distinct(trace, group_of, count, |s| s.encoder.map(EncoderId::get));
    let buffers = distinct(trace, group_of, count, |s| s.command_buffer.map(|id| id.get()));
    let encode = match encoder_groups {
        EncoderGroups::None => Vec::new(),
        EncoderGroups::Of(groups) => cpu_encode(trace, groups, count),
    };
    for (group, stats) in groups.iter_mut().enumerate() {
        stats.busy = Nanos(unions.get(group).map_or(0, |union| union.length));
        stats.durations = durations
            .get(group)
            .and_then(|sorted| durations_of(sorted, stats.total));
        stats.latency = latencies.get(group).and_then(|sorted| latency_of(sorted));
        stats.encoders = encoders.as_ref().and_then(|counts| counts.get(group).copied());
        stats.command_buffers = buffers.as_ref().and_then(|counts| counts.get(group).copied());
        stats.cpu_encode = encode.get(group).copied().flatten();
    }
    groups
}

/// All counted submissions as one group.
pub(crate) fn all(trace: &Trace, ranked: &Ranked) -> Stats {
    let group_of = vec![0; trace.submissions.len()];
    let encoders = vec![Some(0); trace.encoders.as_ref().map_or(0, Vec::len)];
    stats_of(trace, ranked, &group_of, 1, &EncoderGroups::Of(&encoders))
        .pop()
        .unwrap_or_default()
}

/// Deals values out to their groups in the given order.
fn deal(order: &[(Nanos, usize)], group_of: &[usize], count: usize) -> Vec<Vec<u64>> {
    let mut dealt = vec![Vec::new(); count];
    for &(Nanos(ns), at) in order {
        if let Some(values) = group_of.get(at).and_then(|&group| dealt.get_mut(group)) {
            values.push(ns);
        }
    }
    dealt
}

/// Distinct ids per group; `None` when no submission of the trace has such an id.
fn distinct(
    trace: &Trace,
    group_of: &[usize],
    count: usize,
    id: impl Fn(&crate::model::Submission) -> Option<u64>,
) -> Option<Vec<u64>> {
    let mut pairs: Vec<(usize, u64)> = trace
        .submissions
        .iter()
        .zip(group_of)
        .filter_map(|(s, &group)| Some((group, id(s)?)))
        .collect();
    if pairs.is_empty() {
        return None;
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut counts = vec![0; count];
    for (group, _) in pairs {
        if let Some(count) = counts.get_mut(group) {
            *count += 1;
        }
    }
    Some(counts)
}

/// CPU encoding time per group, of encoders with a counted submission. `None` without an encoders list, and
/// for a group none of whose encoders has such a time.
fn cpu_encode(trace: &Trace, encoder_groups: &[Option<usize>], count: usize) -> Vec<Option<Nanos>> {
    let mut sums = vec![None; count];
    let Some(encoders) = &trace.encoders else { return sums };
    let counted: HashSet<EncoderId> = trace.submissions.iter().filter_map(|s| s.encoder).collect();
    for (encoder, group) in encoders.iter().zip(encoder_groups) {
        let Some(sum) = group.and_then(|group| sums.get_mut(group)) else {
            continue;
        };
        if let (true, Some(Nanos(ns))) = (counted.contains(&encoder.id), encoder.cpu_encode) {
            let Nanos(before) = sum.unwrap_or_default();
            *sum = Some(Nanos(before.saturating_add(ns)));
        }
    }
    sums
}

fn durations_of(sorted: &[u64], total: Nanos) -> Option<Durations> {
    Some(Durations {
        mean: total.0 as f64 / sorted.len() as f64,
        p50: median(sorted)?,
        p95: Nanos(nearest_rank(sorted, 95)?),
        p99: Nanos(nearest_rank(sorted, 99)?),
        min: Nanos(*sorted.first()?),
        max: Nanos(*sorted.last()?),
    })
}

fn latency_of(sorted: &[u64]) -> Option<Latency> {
    Some(Latency {
        samples: sorted.len() as u64,
        p50: median(sorted)?,
        p95: Nanos(nearest_rank(sorted, 95)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::fixture::{Builder, window};

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
    fn b27_a_trace_in_any_order_of_durations_has_the_same_percentiles() {
        let mut builder = Builder::new();
        for (at, duration) in [30, 10, 20, 100].into_iter().enumerate() {
            builder.submission(at as u64 * 1000, duration, "Compute", "p", "e");
        }
        let trace = builder.build();
        let durations = all(&trace, &Ranked::new(&trace)).durations.unwrap();
        assert_eq!((durations.p50, durations.mean), (25.0, 40.0));
        assert_eq!(
            (durations.p95, durations.min, durations.max),
            (Nanos(100), Nanos(10), Nanos(100))
        );
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

    #[test]
    fn total_is_not_clipped_and_busy_is() {
        let mut builder = Builder::new();
        builder.submission(0, 100, "Compute", "p", "e");
        builder.submission(50, 100, "Blit", "p", "e");
        let mut trace = builder.build();
        trace.window = window(0, 120);
        let stats = all(&trace, &Ranked::new(&trace));
        assert_eq!(
            (stats.submissions, stats.total, stats.busy),
            (2, Nanos(200), Nanos(120))
        );
    }

    #[test]
    fn ids_are_counted_once_and_are_none_when_the_trace_has_none() {
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "p", "e").ids(Some(1), Some(7));
        builder.submission(20, 10, "Compute", "p", "e").ids(Some(1), None);
        builder.submission(40, 10, "Compute", "p", "e").ids(Some(2), None);
        let trace = builder.build();
        let stats = all(&trace, &Ranked::new(&trace));
        assert_eq!((stats.encoders, stats.command_buffers), (Some(2), Some(1)));
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "p", "e");
        let trace = builder.build();
        let stats = all(&trace, &Ranked::new(&trace));
        assert_eq!(
            (stats.encoders, stats.command_buffers, stats.cpu_encode),
            (None, None, None)
        );
        assert_eq!(stats.latency, None);
    }

    #[test]
    fn cpu_encode_counts_encoders_with_counted_submissions() {
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "p", "e").ids(Some(1), None);
        builder.encoder(1, "p", "e", Some(300), true);
        builder.encoder(2, "p", "e", Some(5000), false);
        let trace = builder.build();
        assert_eq!(all(&trace, &Ranked::new(&trace)).cpu_encode, Some(Nanos(300)));
    }

    #[test]
    fn latency_comes_from_submissions_that_have_one() {
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "p", "e").latency(40);
        builder.submission(20, 10, "Compute", "p", "e");
        builder.submission(40, 10, "Compute", "p", "e").latency(20);
        let trace = builder.build();
        let latency = all(&trace, &Ranked::new(&trace)).latency.unwrap();
        assert_eq!((latency.samples, latency.p50, latency.p95), (2, 30.0, Nanos(40)));
    }

    #[test]
    fn a_trace_without_submissions_has_zeros_and_no_percentiles() {
        let trace = Builder::new().build();
        let stats = all(&trace, &Ranked::new(&trace));
        assert_eq!((stats.submissions, stats.total, stats.busy), (0, Nanos(0), Nanos(0)));
        assert_eq!(stats.durations, None);
    }
}
