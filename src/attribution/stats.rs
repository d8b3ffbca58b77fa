//! The [`Stats`] of all groups of a grouping at once.
//!
//! The submissions, which are sorted by start, are walked for their times and for their ids: that gives sums and busy time,
//! and every kind of value with the cell that it comes from. Each kind is sorted once per trace, and what a group needs of it
//! follows from one more walk in rising order. Nothing is hashed or sorted per group, and a submission's groups are looked up
//! by its cell.

use super::cells::{Cells, Grouping, number, place};
use super::encoders::EncodersByLabel;
use super::histogram::Histogram;
use super::ranked::Ranked;
use super::{Durations, Latency, Stats};
use crate::measure::{Union, between, middle, rank_of};
use crate::model::{Nanos, Timestamp, Trace};
use crate::parallel::{Jobs, both};

/// What [`stats_of`] finds.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Of the groups of each grouping, aligned with its keys.
    pub(super) stats: Vec<Vec<Stats>>,
    pub(super) encoders: EncodersByLabel,
    /// When the last submission ends.
    pub(super) last_end: Option<Timestamp>,
    /// Durations of all submissions.
    pub(super) histogram: Histogram,
}

/// Statistics of the groups of each grouping, and the trace's encoders by label. Times and ids have nothing to do with each
/// other: with more than one job, they are worked on at once.
pub(super) fn stats_of<const N: usize>(trace: &Trace, cells: &Cells, groupings: &[Grouping; N], jobs: Jobs) -> Numbers {
    debug_assert!(
        trace.submissions.is_sorted_by_key(|s| s.start),
        "a trace is sorted by start"
    );
    let slots = Slots::new(cells, groupings);
    let (ids, times) = both(
        jobs,
        || Ids::new(trace, cells, &slots),
        || Times::new(trace, cells, &slots),
    );

    let mut flat = (0..slots.groups).map(|group| {
        let at = |values: &[u64]| values.get(group).copied().unwrap_or_default();
        let (submissions, total) = (at(&times.counts), Nanos(at(&times.totals)));
        Stats {
            submissions,
            total,
            busy: Nanos(times.unions.get(group).map_or(0, |union| union.length)),
            durations: times.durations.get(group).copied().flatten().map(|values| {
                let [min, lower, upper, p95, p99, max] = values;
                Durations {
                    mean: total.0 as f64 / submissions as f64,
                    p50: between(lower, upper),
                    p95: Nanos(p95),
                    p99: Nanos(p99),
                    min: Nanos(min),
                    max: Nanos(max),
                }
            }),
            encoders: ids.encoders.as_deref().map(at),
            command_buffers: ids.command_buffers.as_deref().map(at),
            cpu_encode: None,
            latency: times
                .waits
                .get(group)
                .copied()
                .flatten()
                .map(|[lower, upper, p95]| Latency {
                    samples: at(&times.latencies),
                    p50: between(lower, upper),
                    p95: Nanos(p95),
                }),
        }
    });
    let of_grouping = |grouping: &Grouping| {
        let mut groups: Vec<Stats> = flat.by_ref().take(grouping.keys.len()).collect();
        if let Some(of_label) = &grouping.of_label {
            ids.by_label.add_encode_times(of_label, &mut groups);
        }
        groups
    };
    Numbers {
        stats: groupings.iter().map(of_grouping).collect(),
        encoders: ids.by_label,
        last_end: times.last_end,
        histogram: times.histogram,
    }
}

/// A sum of times that may be absent and one that is there.
pub(super) fn saturating_sum(sum: Option<Nanos>, ns: u64) -> Nanos {
    Nanos(sum.unwrap_or_default().0.saturating_add(ns))
}

/// The groups of all `N` groupings in one row, those of the first grouping first.
struct Slots<const N: usize> {
    /// For each cell its group in every grouping.
    of_cell: Vec<[u32; N]>,
    groups: usize,
}

impl<const N: usize> Slots<N> {
    fn new(cells: &Cells, groupings: &[Grouping; N]) -> Self {
        let mut of_cell = vec![[0; N]; cells.count()];
        let mut groups = 0;
        for (nth, grouping) in groupings.iter().enumerate() {
            for (slots, &group) in of_cell.iter_mut().zip(&grouping.of_cell) {
                if let Some(slot) = slots.get_mut(nth) {
                    *slot = number(groups) + group;
                }
            }
            groups += grouping.keys.len();
        }
        Slots { of_cell, groups }
    }

    #[inline]
    fn of(&self, cell: u32) -> impl Iterator<Item = usize> + use<N> {
        let slots = self.of_cell.get(place(cell)).copied();
        slots.unwrap_or([u32::MAX; N]).into_iter().map(place)
    }

    /// Sums by group of what each cell has.
    fn add_up(&self, by_cell: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut sums = vec![0u64; self.groups];
        for (slots, value) in self.of_cell.iter().zip(by_cell) {
            for slot in slots {
                if let Some(sum) = sums.get_mut(place(*slot)) {
                    *sum = sum.saturating_add(value);
                }
            }
        }
        sums
    }
}

/// What the times of the submissions give; all but the histogram by group of [`Slots`].
struct Times {
    counts: Vec<u64>,
    /// ns.
    totals: Vec<u64>,
    unions: Vec<Union>,
    /// Shortest, the middle two, the percentiles 95 and 99, longest.
    durations: Vec<Option<[u64; 6]>>,
    /// How many submissions have a latency.
    latencies: Vec<u64>,
    /// The middle two latencies and the percentile 95.
    waits: Vec<Option<[u64; 3]>>,
    histogram: Histogram,
    last_end: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CellSums {
    submissions: u64,
    total: u64,
    latencies: u64,
}

impl Times {
    fn new<const N: usize>(trace: &Trace, cells: &Cells, slots: &Slots<N>) -> Self {
        let ranked = || Ranked::new(cells.count(), trace.submissions.len());
        let (mut durations, mut waits) = (ranked(), ranked());
        let mut by_cell = vec![CellSums::default(); cells.count()];
        let mut unions = vec![Union::default(); slots.groups];
        let mut last_end = None;
        for (submission, &cell) in trace.submissions.iter().zip(&cells.of) {
            let duration = submission.duration.0;
            if let Some(sums) = by_cell.get_mut(place(cell)) {
                sums.submissions += 1;
                sums.total = sums.total.saturating_add(duration);
                sums.latencies += u64::from(submission.latency.is_some());
            }
            let (start, end) = (submission.start.0, submission.end().0);
            for slot in slots.of(cell) {
                if let Some(union) = unions.get_mut(slot) {
                    union.add(start, end, trace.window);
                }
            }
            last_end = last_end.max(Some(submission.end()));
            durations.push(duration, cell);
            if let Some(Nanos(latency)) = submission.latency {
                waits.push(latency, cell);
            }
        }
        let counts = slots.add_up(by_cell.iter().map(|cell| cell.submissions));
        let latencies = slots.add_up(by_cell.iter().map(|cell| cell.latencies));
        let spare = &mut Vec::new();
        let waits = order_statistics(&waits.sorted(spare), slots, &latencies, |n| {
            let (lower, upper) = middle(n);
            [lower, upper, rank_of(n, 95)]
        });
        let ranked = durations.sorted(spare);
        let durations = order_statistics(&ranked, slots, &counts, |n| {
            let (lower, upper) = middle(n);
            [1, lower, upper, rank_of(n, 95), rank_of(n, 99), n]
        });
        let mut histogram = Histogram::default();
        ranked.for_each(|ns, _| histogram.add(Nanos(ns)));
        Times {
            totals: slots.add_up(by_cell.iter().map(|cell| cell.total)),
            counts,
            unions,
            durations,
            latencies,
            waits,
            histogram,
            last_end,
        }
    }
}

/// What the ids of the submissions give.
struct Ids {
    /// Distinct ones by group of [`Slots`]; `None` when no submission has one.
    encoders: Option<Vec<u64>>,
    command_buffers: Option<Vec<u64>>,
    by_label: EncodersByLabel,
}

impl Ids {
    fn new<const N: usize>(trace: &Trace, cells: &Cells, slots: &Slots<N>) -> Self {
        let ranked = || Ranked::new(cells.count(), trace.submissions.len());
        let (mut encoders, mut command_buffers) = (ranked(), ranked());
        for (submission, &cell) in trace.submissions.iter().zip(&cells.of) {
            if let Some(encoder) = submission.encoder {
                encoders.push(encoder.get(), cell);
            }
            if let Some(command_buffer) = submission.command_buffer {
                command_buffers.push(command_buffer.get(), cell);
            }
        }
        let spare = &mut Vec::new();
        let command_buffers = distinct_ids(&command_buffers.sorted(spare), slots);
        let encoders = encoders.sorted(spare);
        Ids {
            by_label: EncodersByLabel::new(trace, &encoders),
            encoders: distinct_ids(&encoders, slots),
            command_buffers,
        }
    }
}

/// For each group the values of certain ranks among its own; `None` for a group without a value.
///
/// `counts`: how many values each group has. `ranks`: the ranks wanted of so many values, from 1 and in rising order.
/// All values pass in rising order, so a group need only count its own until the next rank that is wanted.
fn order_statistics<const N: usize, const RANKS: usize>(
    ranked: &Ranked,
    slots: &Slots<N>,
    counts: &[u64],
    ranks: impl Fn(u64) -> [u64; RANKS],
) -> Vec<Option<[u64; RANKS]>> {
    struct Wanted<const RANKS: usize> {
        ranks: [u64; RANKS],
        /// How many are found.
        met: usize,
        values: [u64; RANKS],
    }
    let mut wanted: Vec<Wanted<RANKS>> = counts
        .iter()
        .map(|count| Wanted {
            ranks: ranks(*count),
            met: 0,
            values: [0; RANKS],
        })
        .collect();
    // How many values of the group are still to pass, the wanted one included.
    let mut until: Vec<u64> = wanted
        .iter()
        .map(|group| group.ranks.first().copied().unwrap_or(u64::MAX))
        .collect();
    let mut found = |group: usize, value: u64| -> u64 {
        let Some(group) = wanted.get_mut(group) else {
            return u64::MAX;
        };
        while let (Some(rank), Some(slot)) = (group.ranks.get(group.met), group.values.get_mut(group.met)) {
            *slot = value;
            group.met += 1;
            match group.ranks.get(group.met) {
                Some(next) if next > rank => return next - rank,
                Some(_) => {}
                None => break,
            }
        }
        u64::MAX
    };
    ranked.for_each(|value, cell| {
        for slot in slots.of(cell) {
            if let Some(until) = until.get_mut(slot) {
                *until -= 1;
                if *until == 0 {
                    *until = found(slot, value);
                }
            }
        }
    });
    wanted
        .into_iter()
        .map(|group| (group.met == RANKS).then_some(group.values))
        .collect()
}

/// Distinct ids per group; `None` when no submission of the trace has such an id.
fn distinct_ids<const N: usize>(ids: &Ranked, slots: &Slots<N>) -> Option<Vec<u64>> {
    if ids.is_empty() {
        return None;
    }
    // Equal ids stand together, so beside its count a group needs to know only the one that it met last, by its number.
    let mut met = vec![(0u64, 0u64); slots.groups];
    let (mut before, mut number) = (None, 0);
    ids.for_each(|id, cell| {
        if before != Some(id) {
            before = Some(id);
            number += 1;
        }
        for slot in slots.of(cell) {
            if let Some((met, last)) = met.get_mut(slot) {
                *met += u64::from(*last != number);
                *last = number;
            }
        }
    });
    Some(met.into_iter().map(|(met, _)| met).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::Buckets;
    use crate::attribution::fixture::{Builder, window};

    fn all(trace: &Trace) -> Stats {
        let cells = Cells::new(trace, &Buckets::default());
        let mut groupings = stats_of(trace, &cells, &[cells.whole()], Jobs::ONE).stats;
        groupings.pop().unwrap().pop().unwrap()
    }

    #[test]
    fn b27_a_trace_in_any_order_of_durations_has_the_same_percentiles() {
        let mut builder = Builder::new();
        for (at, duration) in [30, 10, 20, 100].into_iter().enumerate() {
            builder.submission(at as u64 * 1000, duration, "Compute", "p", "e");
        }
        let trace = builder.build();
        let durations = all(&trace).durations.unwrap();
        assert_eq!((durations.p50, durations.mean), (25.0, 40.0));
        assert_eq!(
            (durations.p95, durations.min, durations.max),
            (Nanos(100), Nanos(10), Nanos(100))
        );
    }

    #[test]
    fn total_is_not_clipped_and_busy_is() {
        let mut builder = Builder::new();
        builder.submission(0, 100, "Compute", "p", "e");
        builder.submission(50, 100, "Blit", "p", "e");
        let mut trace = builder.build();
        trace.window = window(0, 120);
        let stats = all(&trace);
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
        let stats = all(&trace);
        assert_eq!((stats.encoders, stats.command_buffers), (Some(2), Some(1)));
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "p", "e");
        let trace = builder.build();
        let stats = all(&trace);
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
        assert_eq!(all(&trace).cpu_encode, Some(Nanos(300)));
    }

    #[test]
    fn latency_comes_from_submissions_that_have_one() {
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "p", "e").latency(40);
        builder.submission(20, 10, "Compute", "p", "e");
        builder.submission(40, 10, "Compute", "p", "e").latency(20);
        let trace = builder.build();
        let latency = all(&trace).latency.unwrap();
        assert_eq!((latency.samples, latency.p50, latency.p95), (2, 30.0, Nanos(40)));
    }

    #[test]
    fn a_trace_without_submissions_has_zeros_and_no_percentiles() {
        let trace = Builder::new().build();
        let stats = all(&trace);
        assert_eq!((stats.submissions, stats.total, stats.busy), (0, Nanos(0), Nanos(0)));
        assert_eq!(stats.durations, None);
    }
}
