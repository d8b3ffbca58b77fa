//! A profile as one run of a trace, so that reports and comparisons need not know where times come from.
//!
//! A command buffer with a GPU time is a submission. Its phase is the path of its scopes, or its label outside of every
//! scope; its encoder label is the name of its kernel, where that is known. What has no time is left out, and counted.

use std::collections::BTreeMap;

use super::profile::Profile;
use crate::model::{
    CommandBufferId, Kernel, Label, LabelId, LeftOut, NameId, Names, Nanos, Note, Process, Reason, RecordingState,
    Submission, SubmissionId, Timestamp, Timing, Trace, Window, WindowFound,
};

/// The channel of every command buffer: which one it ran on is not known.
const CHANNEL: &str = "command buffer";

pub(super) fn trace(profile: &Profile) -> Option<Trace> {
    let origin = profile.started();
    let mut names = Names::default();
    let channel = names.intern(CHANNEL);
    let mut labels: Vec<Label> = Vec::new();
    let mut known: BTreeMap<(NameId, NameId), LabelId> = BTreeMap::new();
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut left_out = LeftOut::default();
    let mut submissions = Vec::new();
    for (at, event) in (0u64..).zip(profile.events()) {
        let Some(gpu) = &event.gpu else { continue };
        let Ok(span) = gpu.span else {
            left_out.add(Reason::Invalid, 1, None);
            continue;
        };
        let kernel = event.kernel().map_or("", |kernel| kernel);
        if !kernel.is_empty() {
            kernels.push(Kernel {
                function: kernel.to_owned(),
                pipeline: kernel.to_owned(),
            });
        }
        let phase = match event.path.frames() {
            [] => event.name.to_string(),
            _ => event.path.joined(),
        };
        let key = (names.intern(&phase), names.intern(kernel));
        let label = *known.entry(key).or_insert_with(|| {
            labels.push(Label::Known {
                command_buffer: key.0,
                encoder: key.1,
                coalesced: false,
            });
            LabelId(u32::try_from(labels.len() - 1).unwrap_or(u32::MAX))
        });
        submissions.push(Submission {
            start: Timestamp(span.start.since(origin).0),
            duration: span.length(),
            id: SubmissionId::new(at),
            encoder: None,
            command_buffer: CommandBufferId::new(at),
            latency: gpu.queue_wait.ok(),
            channel,
            label,
        });
    }
    submissions.sort_by_key(|submission| (submission.start, submission.end(), submission.id));
    kernels.sort();
    kernels.dedup();
    let from = submissions.first()?.start;
    let to = submissions.iter().map(Submission::end).max()?;
    let origin = profile.origin();
    Some(Trace {
        run: 1,
        process: Process {
            name: origin.process.clone(),
            pid: Some(origin.pid),
        },
        timing: Timing::Live,
        gpu: origin.device.clone(),
        names,
        labels,
        encoders: None,
        window: Window { from, to },
        window_found: WindowFound::default(),
        submissions_in_process: submissions.len() as u64,
        rows_read: profile.counts().command_buffers,
        left_out,
        cross_check: None,
        kernels: (!kernels.is_empty()).then_some(kernels),
        shader_timeline_rows: None,
        shader_samples: Vec::new(),
        shader_sampled_span: None,
        state: RecordingState {
            duration: Some(profile.closed().since(profile.started())),
            ..RecordingState::default()
        },
        notes: notes(profile),
        fingerprint: fingerprint(&submissions),
        submissions,
    })
}

/// What limits the numbers of a profile.
fn notes(profile: &Profile) -> Vec<Note> {
    let counts = profile.counts();
    let absent = counts.without_gpu_time - counts.failed - counts.unfinished - counts.never_committed;
    let told = [
        ("live_failed", counts.failed, "ended in an error, and have no time"),
        (
            "live_unfinished",
            counts.unfinished,
            "had not completed when the profile was closed, and have no time",
        ),
        (
            "live_never_committed",
            counts.never_committed,
            "were not committed before the profile was closed",
        ),
        (
            "live_not_measured",
            absent,
            "completed, and the device gave no usable time for them",
        ),
        (
            "live_over_limit",
            counts.events_over_limit,
            "events were more than the profile may hold",
        ),
    ];
    let mut notes: Vec<Note> = told
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(code, count, what)| match code {
            "live_over_limit" => Note::warning(code, format!("{count} {what}")),
            _ => Note::warning(
                code,
                format!("{count} of {} command buffers {what}", counts.command_buffers),
            ),
        })
        .collect();
    if profile.captured() {
        notes.push(Note::warning(
            "live_captured",
            "Xcode's GPU capture was on: the times say nothing of a run without it",
        ));
    }
    notes
}

/// Equal for equal times and places.
fn fingerprint(submissions: &[Submission]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    let numbers = submissions.iter().flat_map(|submission| {
        let Nanos(duration) = submission.duration;
        [submission.start.0, duration, submission.id.map_or(0, SubmissionId::get)]
    });
    let bytes = numbers.flat_map(u64::to_le_bytes);
    bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
