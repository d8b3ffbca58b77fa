//! One trace becomes one trial: every grouping, gaps and the slowest submissions.

use std::cmp::Reverse;

use super::Trial;
use crate::attribution::foremost::foremost;
use crate::attribution::gaps::gaps_between;
use crate::attribution::group::{Key, family_keys, key_of, phase_keys};
use crate::attribution::groupings::Groupings;
use crate::attribution::{
    Buckets, KernelFamilies, KernelRules, PhaseNames, SlowSubmission, busy_timeline, is_real_label, label_matches,
};
use crate::model::{Nanos, Submission, Trace};
use crate::parallel::{Jobs, both};

/// How a trace becomes a trial.
#[derive(Debug, Clone, Default)]
pub struct TrialOptions {
    /// Duration buckets.
    pub buckets: Buckets,
    /// Kernel families.
    pub kernel_rules: KernelRules,
    /// Names of phases, of the trial's side.
    pub phase_names: PhaseNames,
    /// How many of the slowest submissions and of the longest gaps are kept.
    pub slowest: usize,
    /// Most spans of [`Trial::timeline`]; 0: none is made, which only a picture of it needs.
    pub timeline_spans: usize,
    /// How many threads work on a trial with many submissions; the numbers are the same for any number.
    pub jobs: Jobs,
}

impl Trial {
    /// All numbers of one trace; `input` as it is shown, `units` for this trial.
    pub fn from_trace(trace: &Trace, input: String, units: Option<u64>, options: &TrialOptions) -> Trial {
        let (phases, families) = (phase_keys(trace, &options.phase_names), family_keys(trace));
        let jobs = options.jobs.for_rows(trace.submissions.len());
        let ((gaps, slowest, timeline), groupings) = both(
            jobs,
            || {
                let timeline = match options.timeline_spans {
                    0 => None,
                    spans => busy_timeline(trace, spans),
                };
                let gaps = gaps_between(trace, &phases, options.slowest);
                (gaps, slowest(trace, &phases, &families, options.slowest), timeline)
            },
            || Groupings::new(trace, &options.buckets, &phases, &families, jobs),
        );
        let labelled = groupings
            .phases
            .iter()
            .filter(|group| is_real_label(&group.key))
            .map(|group| group.stats.total.0);
        let labelled_total = Nanos(labelled.fold(0, u64::saturating_add));
        Trial {
            input,
            run: trace.run,
            process: trace.process.clone(),
            units,
            gpu: trace.gpu.clone(),
            rows_read: trace.rows_read,
            submissions_in_process: trace.submissions_in_process,
            all: groupings.all,
            window: trace.window,
            window_found: trace.window_found,
            // A trace is sorted by start.
            first_start: trace.submissions.first().map(|s| s.start),
            last_end: groupings.last_end,
            buckets: groupings.buckets,
            encoders: groupings.encoders,
            phases: groupings.phases,
            channels: groupings.channels,
            encoder_labels: groupings.encoder_labels,
            labelled_total,
            label_matches: label_matches(trace, &options.phase_names),
            kernels: trace
                .kernels
                .as_ref()
                .map(|kernels| KernelFamilies::new(kernels, &options.kernel_rules)),
            shader_timeline_rows: trace.shader_timeline_rows,
            shader_samples: trace.shader_samples.clone(),
            shader_sampled_span: trace.shader_sampled_span,
            histogram: Some(groupings.histogram),
            timeline,
            gaps,
            slowest,
            left_out: trace.left_out.clone(),
            cross_check: trace.cross_check,
            state: trace.state.clone(),
            notes: trace.notes.clone(),
            fingerprint: trace.fingerprint,
        }
    }
}

/// The longest submissions, longest first, then in the order of their starts.
fn slowest(trace: &Trace, phases: &[Key], families: &[Key], count: usize) -> Vec<SlowSubmission> {
    let order = |(at, s): (usize, &Submission)| (Reverse(s.duration), s.start, s.id, at);
    foremost(trace.submissions.iter().enumerate().map(order), count)
        .into_iter()
        .filter_map(|(.., at)| trace.submissions.get(at))
        .map(|submission| SlowSubmission {
            start: submission.start,
            duration: submission.duration,
            channel: trace.names.get(submission.channel).to_owned(),
            phase: key_of(phases, submission.label).to_owned(),
            encoder: key_of(families, submission.label).to_owned(),
        })
        .collect()
}
