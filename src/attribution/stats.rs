//! The [`Stats`] of all groups of a grouping at once.
//!
//! Each kind of value is sorted once per trace and dealt out to the groups in order, so each group's list arrives
//! sorted; busy time comes from one walk over the submissions, which are sorted by start. Nothing is hashed or sorted
//! per group, and a submission's group is looked up by its cell.

use super::cells::{Cells, Grouping, place};
use super::radix::{self, Tagged};
use super::{Durations, Latency, Stats};
use crate::measure::{Union, median, nearest_rank};
use crate::model::{CommandBufferId, EncoderId, Nanos, Submission, Trace};

/// Statistics of the groups of each grouping, aligned with its keys.
///
/// One kind of value after the other is sorted and used by every grouping, so that only one is held twice at a time.
pub(super) fn stats_of(trace: &Trace, cells: &Cells, groupings: &[Grouping]) -> Vec<Vec<Stats>> {
    let mut all = sums(trace, cells, groupings);
    let durations = ranked(trace, cells, |s| Some(s.duration.0));
    for_each_group(&durations, cells, groupings, &mut all, |sorted, stats| {
        stats.durations = durations_of(sorted, stats.total);
    });
    drop(durations);
    let latencies = ranked(trace, cells, |s| s.latency.map(|latency| latency.0));
    for_each_group(&latencies, cells, groupings, &mut all, |sorted, stats| {
        stats.latency = latency_of(sorted)
    });
    drop(latencies);
    let encoders = distinct_ids(trace, cells, |s| s.encoder.map(EncoderId::get));
    for (grouping, groups) in groupings.iter().zip(&mut all) {
        count_ids(&encoders, grouping, groups, |stats| &mut stats.encoders);
    }
    cpu_encode(trace, &encoders, groupings, &mut all);
    drop(encoders);
    let buffers = distinct_ids(trace, cells, |s| s.command_buffer.map(CommandBufferId::get));
    for (grouping, groups) in groupings.iter().zip(&mut all) {
        count_ids(&buffers, grouping, groups, |stats| &mut stats.command_buffers);
    }
    all
}

/// Counts, totals and busy times.
fn sums(trace: &Trace, cells: &Cells, groupings: &[Grouping]) -> Vec<Vec<Stats>> {
    debug_assert!(
        trace.submissions.is_sorted_by_key(|s| s.start),
        "a trace is sorted by start"
    );
    let mut by_cell = vec![(0u64, 0u64); cells.count()];
    let mut unions: Vec<Vec<Union>> = groupings
        .iter()
        .map(|grouping| vec![Union::default(); grouping.keys.len()])
        .collect();
    for (submission, &cell) in trace.submissions.iter().zip(&cells.of) {
        let cell = place(cell);
        if let Some((submissions, total)) = by_cell.get_mut(cell) {
            *submissions += 1;
            *total = total.saturating_add(submission.duration.0);
        }
        let (start, end) = (submission.start.0, submission.end().0);
        for (grouping, unions) in groupings.iter().zip(&mut unions) {
            if let Some(union) = grouping
                .of_cell
                .get(cell)
                .and_then(|&group| unions.get_mut(place(group)))
            {
                union.add(start, end, trace.window);
            }
        }
    }
    let groups_of = |(grouping, unions): (&Grouping, Vec<Union>)| {
        let busy = |union: Union| Stats {
            busy: Nanos(union.length),
            ..Stats::default()
        };
        let mut groups: Vec<Stats> = unions.into_iter().map(busy).collect();
        for (&group, &(submissions, total)) in grouping.of_cell.iter().zip(&by_cell) {
            if let Some(stats) = groups.get_mut(place(group)) {
                stats.submissions += submissions;
                stats.total.0 = stats.total.0.saturating_add(total);
            }
        }
        groups
    };
    groupings.iter().zip(unions).map(groups_of).collect()
}

/// The values that submissions have, in their order.
fn ranked(trace: &Trace, cells: &Cells, value: impl Fn(&Submission) -> Option<u64>) -> Vec<Tagged> {
    let mut ranked: Vec<Tagged> = Vec::with_capacity(trace.submissions.len());
    let submissions = trace.submissions.iter().zip(&cells.of);
    ranked.extend(submissions.filter_map(|(s, &cell)| Some(Tagged { value: value(s)?, cell })));
    radix::sort(&mut ranked);
    ranked
}

/// Gives each group of each grouping its values, which arrive in their order because all of them are in order.
fn for_each_group(
    ranked: &[Tagged],
    cells: &Cells,
    groupings: &[Grouping],
    all: &mut [Vec<Stats>],
    mut set: impl FnMut(&[u64], &mut Stats),
) {
    let mut by_cell = vec![0usize; cells.count()];
    for tagged in ranked {
        if let Some(count) = by_cell.get_mut(place(tagged.cell)) {
            *count += 1;
        }
    }
    let mut dealt = vec![0; ranked.len()];
    for (grouping, groups) in groupings.iter().zip(all) {
        if let [whole] = groups.as_mut_slice() {
            for (slot, tagged) in dealt.iter_mut().zip(ranked) {
                *slot = tagged.value;
            }
            set(&dealt, whole);
            continue;
        }
        let mut ends = vec![0usize; groups.len()];
        for (&group, count) in grouping.of_cell.iter().zip(&by_cell) {
            if let Some(end) = ends.get_mut(place(group)) {
                *end += count;
            }
        }
        let mut before = 0;
        for end in &mut ends {
            before += std::mem::replace(end, before);
        }
        for tagged in ranked {
            let group = grouping.of_cell.get(place(tagged.cell));
            if let Some(end) = group.and_then(|&group| ends.get_mut(place(group))) {
                if let Some(slot) = dealt.get_mut(*end) {
                    *slot = tagged.value;
                }
                *end += 1;
            }
        }
        let mut start = 0;
        for (stats, end) in groups.iter_mut().zip(ends) {
            set(dealt.get(start..end).unwrap_or_default(), stats);
            start = end;
        }
    }
}

/// The ids of submissions, in their order, each once per cell.
fn distinct_ids(trace: &Trace, cells: &Cells, id: impl Fn(&Submission) -> Option<u64>) -> Vec<Tagged> {
    let mut ids = ranked(trace, cells, id);
    // Not all repeats: those of one id need not be together when it has several cells.
    ids.dedup();
    ids
}

/// Distinct ids per group; nothing when no submission of the trace has such an id.
fn count_ids(
    ids: &[Tagged],
    grouping: &Grouping,
    groups: &mut [Stats],
    count: impl Fn(&mut Stats) -> &mut Option<u64>,
) {
    if ids.is_empty() {
        return;
    }
    let mut met = vec![0u64; groups.len()];
    // Equal ids stand together, so a group needs to know only the one that it met last: by where that id begins.
    let mut last = vec![usize::MAX; groups.len()];
    let mut before = None;
    let mut first = 0;
    for (at, tagged) in ids.iter().enumerate() {
        if before != Some(tagged.value) {
            before = Some(tagged.value);
            first = at;
        }
        let group = grouping.of_cell.get(place(tagged.cell)).map(|&group| place(group));
        if let Some((met, last)) = group.and_then(|group| Some((met.get_mut(group)?, last.get_mut(group)?))) {
            *met += u64::from(*last != first);
            *last = first;
        }
    }
    for (stats, met) in groups.iter_mut().zip(met) {
        *count(stats) = Some(met);
    }
}

/// CPU encoding time per group, of encoders with a counted submission. `None` without an encoders list, and
/// for a group none of whose encoders has such a time.
fn cpu_encode(trace: &Trace, counted: &[Tagged], groupings: &[Grouping], all: &mut [Vec<Stats>]) {
    let mut listed = Listed { counted, at: 0 };
    for encoder in trace.encoders.iter().flatten() {
        let Some(Nanos(ns)) = encoder.cpu_encode else { continue };
        if !listed.has(encoder.id.get()) {
            continue;
        }
        for (grouping, groups) in groupings.iter().zip(&mut *all) {
            let group = grouping.of_label.as_ref().map(|groups| groups.get(encoder.label));
            if let Some(stats) = group.and_then(|group| groups.get_mut(place(group))) {
                let Nanos(before) = stats.cpu_encode.unwrap_or_default();
                stats.cpu_encode = Some(Nanos(before.saturating_add(ns)));
            }
        }
    }
}

/// Looks ids up that mostly come in an order, up or down: each is sought near the one before.
struct Listed<'a> {
    counted: &'a [Tagged],
    at: usize,
}

impl Listed<'_> {
    fn has(&mut self, id: u64) -> bool {
        let mut step = 1;
        // Widen around the last place until the id lies between both ends.
        let (mut low, mut high) = (self.at, self.at);
        let value = |at: usize| self.counted.get(at).map(|tagged| tagged.value);
        while low > 0 && value(low).is_none_or(|value| value >= id) {
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while value(high).is_some_and(|value| value < id) {
            high = high.saturating_add(step);
            step *= 2;
        }
        let near = self.counted.get(low..high.saturating_add(1).min(self.counted.len()));
        self.at = low + near.unwrap_or_default().partition_point(|tagged| tagged.value < id);
        value(self.at) == Some(id)
    }
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
    use crate::attribution::Buckets;
    use crate::attribution::fixture::{Builder, window};

    fn all(trace: &Trace) -> Stats {
        let cells = Cells::new(trace, &Buckets::default());
        stats_of(trace, &cells, &[cells.whole()]).pop().unwrap().pop().unwrap()
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
