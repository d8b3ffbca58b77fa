//! What the encoders list says, added up by label: a trace can have as many encoders as submissions, but few labels.

use super::cells::{LabelGroups, place};
use super::ranked::Ranked;
use super::stats::saturating_sum;
use super::{Group, Stats};
use crate::model::{Encoder, LabelId, Nanos, Trace};

/// The encoders of a trace by label.
#[derive(Debug)]
pub(super) struct EncodersByLabel {
    /// As many as the trace has labels, and one more for encoders with a label that it does not have; none without a list.
    by_label: Vec<OfLabel>,
}

#[derive(Debug, Clone, Copy, Default)]
struct OfLabel {
    encoders: u64,
    without_submission: u64,
    /// CPU time of encoding, of encoders with a counted submission; `None` when none of them has such a time.
    cpu_encode: Option<Nanos>,
}

impl EncodersByLabel {
    /// `counted`: the ids of encoders with a counted submission, sorted.
    pub(super) fn new(trace: &Trace, counted: &Ranked) -> Self {
        let Some(encoders) = &trace.encoders else {
            return EncodersByLabel { by_label: Vec::new() };
        };
        let mut by_label = vec![OfLabel::default(); trace.labels.len() + 1];
        let mut counted = Listed { counted, at: 0 };
        for encoder in encoders {
            let at = place(encoder.label.0).min(trace.labels.len());
            let Some(label) = by_label.get_mut(at) else { continue };
            label.encoders += 1;
            label.without_submission += u64::from(!encoder.has_gpu_rows);
            if let Some(Nanos(ns)) = encode_time(encoder, &mut counted) {
                label.cpu_encode = Some(saturating_sum(label.cpu_encode, ns));
            }
        }
        EncodersByLabel { by_label }
    }

    /// Gives each group the CPU encoding time of its encoders.
    pub(super) fn add_encode_times(&self, groups: &LabelGroups, stats: &mut [Stats]) {
        for (label, of_label) in self.labels() {
            let Some(Nanos(ns)) = of_label.cpu_encode else { continue };
            if let Some(stats) = stats.get_mut(place(groups.get(label))) {
                stats.cpu_encode = Some(saturating_sum(stats.cpu_encode, ns));
            }
        }
    }

    /// Tells each group how many encoders it has, and how many without a submission; nothing without a list.
    pub(super) fn count_in(&self, by_label: &LabelGroups, groups: &mut [Group]) {
        if self.by_label.is_empty() {
            return;
        }
        for group in groups.iter_mut() {
            group.encoders_without_submission = Some((0, 0));
        }
        for (label, of_label) in self.labels() {
            let group = groups.get_mut(place(by_label.get(label)));
            if let Some((without, all)) = group.and_then(|group| group.encoders_without_submission.as_mut()) {
                *all += of_label.encoders;
                *without += of_label.without_submission;
            }
        }
    }

    /// How many encoders there are, and how many of them have such a label; `None` without a list.
    pub(super) fn coverage(&self, is: impl Fn(LabelId) -> bool) -> Option<(u64, u64)> {
        if self.by_label.is_empty() {
            return None;
        }
        Some(self.labels().fold((0, 0), |(all, such), (label, of_label)| {
            let counts = if is(label) { of_label.encoders } else { 0 };
            (all + of_label.encoders, such + counts)
        }))
    }

    fn labels(&self) -> impl Iterator<Item = (LabelId, &OfLabel)> {
        (0..).map(LabelId).zip(&self.by_label)
    }
}

fn encode_time(encoder: &Encoder, counted: &mut Listed<'_>) -> Option<Nanos> {
    encoder.cpu_encode.filter(|_| counted.has(encoder.id.get()))
}

/// Looks ids up that mostly come in an order, up or down: each is sought near the one before.
struct Listed<'a> {
    counted: &'a Ranked,
    at: usize,
}

impl Listed<'_> {
    fn has(&mut self, id: u64) -> bool {
        if let Some(at) = [self.at, self.at + 1]
            .into_iter()
            .find(|at| self.counted.value(*at) == Some(id))
        {
            self.at = at;
            return true;
        }
        let mut step = 1;
        // Widen around the last place until the id lies between both ends.
        let (mut low, mut high) = (self.at, self.at);
        let value = |at: usize| self.counted.value(at);
        while low > 0 && value(low).is_none_or(|value| value >= id) {
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while value(high).is_some_and(|value| value < id) {
            high = high.saturating_add(step);
            step *= 2;
        }
        let mut high = high.min(self.counted.len());
        while low < high {
            let middle = low.midpoint(high);
            if value(middle).is_some_and(|value| value < id) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.at = low;
        value(low) == Some(id)
    }
}
