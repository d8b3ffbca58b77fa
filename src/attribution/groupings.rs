//! Every grouping of a trace at once: its submissions are walked and its values sorted once for all of them.

use super::cells::{Cells, Grouping, place};
use super::encoders::EncodersByLabel;
use super::group::{Buckets, Key, is_real_label, key_of};
use super::histogram::Histogram;
use super::stats::{Numbers, stats_of};
use super::{EncoderLabels, Group, Stats};
use crate::model::{Timestamp, Trace};
use crate::parallel::Jobs;

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
    /// How many encoders have a label; `None` without an encoders list.
    pub(crate) encoder_labels: Option<EncoderLabels>,
    /// When the last submission ends; `None` without submissions.
    pub(crate) last_end: Option<Timestamp>,
    /// Durations of all submissions.
    pub(crate) histogram: Histogram,
}

impl Groupings {
    /// `phases` and `families`: the keys of the trace's labels, in their order. Many submissions are worked on by as many
    /// threads as `jobs` says.
    pub(crate) fn new(trace: &Trace, buckets: &Buckets, phases: &[Key], families: &[Key], jobs: Jobs) -> Self {
        let cells = Cells::new(trace, buckets);
        let groupings = [
            cells.whole(),
            cells.by_bucket(buckets),
            cells.by_label(trace, families),
            cells.by_label(trace, phases),
            cells.by_channel(trace),
        ];
        let Numbers {
            stats,
            encoders,
            last_end,
            histogram,
        } = stats_of(trace, &cells, &groupings, jobs);
        let mut stats = stats.into_iter().map(Vec::into_iter);
        let mut stats = || stats.next().unwrap_or_default();
        let [_, by_bucket, by_family, by_phase, by_channel] = groupings;
        Groupings {
            all: stats().next().unwrap_or_default(),
            buckets: groups(by_bucket, stats()).collect(),
            encoders: labelled(&cells, by_family, stats(), families, &encoders),
            phases: labelled(&cells, by_phase, stats(), phases, &encoders),
            channels: sorted(groups(by_channel, stats()).collect()),
            encoder_labels: encoders
                .coverage(|label| is_real_label(key_of(phases, label)))
                .map(|(all, labelled)| EncoderLabels { all, labelled }),
            last_end,
            histogram,
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
    cells: &Cells,
    mut grouping: Grouping,
    stats: impl Iterator<Item = Stats>,
    keys: &[Key],
    encoders: &EncodersByLabel,
) -> Vec<Group> {
    let of_label = grouping.of_label.take();
    let mut groups: Vec<Group> = groups(grouping, stats).collect();
    let group_of = |label| of_label.as_ref().map(|groups| place(groups.get(label)));
    for (label, key) in cells.used(keys) {
        if let Some(group) = group_of(label).and_then(|at| groups.get_mut(at)) {
            group.coalesced |= key.coalesced;
        }
    }
    if let Some(of_label) = &of_label {
        encoders.count_in(of_label, &mut groups);
    }
    // A label can be one of encoders without submissions only.
    groups.retain(|group| group.stats.submissions > 0);
    sorted(groups)
}

fn sorted(mut groups: Vec<Group>) -> Vec<Group> {
    groups.sort_by(|a, b| b.stats.total.cmp(&a.stats.total).then_with(|| a.key.cmp(&b.key)));
    groups
}
