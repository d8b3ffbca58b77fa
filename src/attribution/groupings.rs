//! Every grouping of a trace at once: its submissions are walked and its values sorted once for all of them.

use super::cells::{Cells, Grouping, place};
use super::group::{Buckets, Key};
use super::stats::stats_of;
use super::{Group, Stats};
use crate::model::Trace;

/// The numbers of one trace, as a whole and by each grouping.
#[derive(Debug)]
pub(crate) struct Groupings {
    /// All counted submissions.
    pub(crate) all: Stats,
    /// Every bucket, in edge order.
    pub(crate) buckets: Vec<Group>,
    /// By total, descending, then key; so are the other two.
    pub(crate) encoders: Vec<Group>,
    pub(crate) phases: Vec<Group>,
    pub(crate) channels: Vec<Group>,
}

impl Groupings {
    /// `phases` and `families`: the keys of the trace's labels, in their order.
    pub(crate) fn new(trace: &Trace, buckets: &Buckets, phases: &[Key], families: &[Key]) -> Self {
        let cells = Cells::new(trace, buckets);
        let groupings = [
            cells.whole(),
            cells.by_bucket(buckets),
            cells.by_label(trace, families),
            cells.by_label(trace, phases),
            cells.by_channel(trace),
        ];
        let mut stats = stats_of(trace, &cells, &groupings).into_iter().map(Vec::into_iter);
        let mut stats = || stats.next().unwrap_or_default();
        let [_, by_bucket, by_family, by_phase, by_channel] = groupings;
        Groupings {
            all: stats().next().unwrap_or_default(),
            buckets: groups(by_bucket, stats()).collect(),
            encoders: labelled(trace, &cells, by_family, stats(), families),
            phases: labelled(trace, &cells, by_phase, stats(), phases),
            channels: sorted(groups(by_channel, stats()).collect()),
        }
    }
}

fn groups(grouping: Grouping, stats: impl Iterator<Item = Stats>) -> impl Iterator<Item = Group> {
    grouping.keys.into_iter().zip(stats).map(|(key, stats)| Group {
        key,
        coalesced: false,
        encoders_without_submission: None,
        stats,
    })
}

/// Groups by label, with what is known of their encoders and labels beside the numbers.
fn labelled(
    trace: &Trace,
    cells: &Cells,
    mut grouping: Grouping,
    stats: impl Iterator<Item = Stats>,
    keys: &[Key],
) -> Vec<Group> {
    let of_label = grouping.of_label.take();
    let mut groups: Vec<Group> = groups(grouping, stats).collect();
    let group_of = |label| of_label.as_ref().map(|groups| place(groups.get(label)));
    for (label, key) in cells.used(keys) {
        if let Some(group) = group_of(label).and_then(|at| groups.get_mut(at)) {
            group.coalesced |= key.coalesced;
        }
    }
    if let Some(encoders) = &trace.encoders {
        for group in &mut groups {
            group.encoders_without_submission = Some((0, 0));
        }
        for encoder in encoders {
            let group = group_of(encoder.label).and_then(|at| groups.get_mut(at));
            if let Some((without, all)) = group.and_then(|group| group.encoders_without_submission.as_mut()) {
                *all += 1;
                *without += u64::from(!encoder.has_gpu_rows);
            }
        }
    }
    // A label can be one of encoders without submissions only.
    groups.retain(|group| group.stats.submissions > 0);
    sorted(groups)
}

fn sorted(mut groups: Vec<Group>) -> Vec<Group> {
    groups.sort_by(|a, b| b.stats.total.cmp(&a.stats.total).then_with(|| a.key.cmp(&b.key)));
    groups
}
