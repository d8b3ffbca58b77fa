//! Live profiles among the inputs: what may stand beside them, and what they are as a trial.

use super::inputs::{Content, ReadInput};
use super::{Request, SideRequest};
use crate::error::{Error, Result};
use crate::join::{JoinOptions, ProcessChoice};
use crate::live::Profile;
use crate::model::{Nanos, Timing, Trace};

/// [`Timing::Live`] when the inputs of a side are live profiles.
pub(super) fn timing(side: &[ReadInput]) -> Option<Timing> {
    side.iter()
        .any(|input| matches!(input.content, Content::Live(_)))
        .then_some(Timing::Live)
}

/// Refuses what cannot be done with live profiles: mixing them with recordings on one side, choosing a process or a
/// window in them, and comparing one that was recorded under a GPU capture.
pub(super) fn check(request: &Request, a: &[ReadInput], b: Option<&[ReadInput]>) -> Result<()> {
    let two_sided = b.is_some() || request.baseline.is_some();
    let sides = [Some((&request.a, a)), request.b.as_ref().zip(b)];
    for (side, inputs) in sides.into_iter().flatten() {
        let Some(first) = inputs.iter().find(|input| input.recording().is_none()) else {
            continue;
        };
        if let Some(other) = inputs.iter().find(|input| input.recording().is_some()) {
            return Err(mixed(&first.shown, &other.shown));
        }
        check_choices(side, &first.shown)?;
        let captured = |input: &&ReadInput| matches!(&input.content, Content::Live(profile) if profile.captured());
        if let Some(captured) = inputs.iter().find(captured).filter(|_| two_sided) {
            return Err(Error::unfit(format!(
                "{} was recorded under Xcode's GPU capture, which changes every time in it",
                captured.shown
            ))
            .with_help("profile again without a capture; `report` shows this one"));
        }
    }
    Ok(())
}

/// A live profile and a recording on one side.
pub(super) fn mixed(live: &str, recording: &str) -> Error {
    Error::usage(format!(
        "{live} is a live profile and {recording} a recording: they are no trials of one thing"
    ))
    .with_help("give live profiles on one side, recordings on the other")
}

/// Refuses to choose a process or a window in a live profile.
pub(super) fn check_choices(side: &SideRequest, shown: &str) -> Result<()> {
    let JoinOptions { process, window, .. } = &side.join;
    if *process == ProcessChoice::Target && *window == Default::default() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{shown} is a live profile: it has one process and no other window than its own"
    ))
    .with_help("leave --process and the options of the window out, or open the profile around what counts"))
}

/// The profile as one run.
pub(super) fn trace(profile: &Profile, shown: &str) -> Result<Trace> {
    let Some(mut trace) = profile.to_trace() else {
        let counts = profile.counts();
        let why = match counts.command_buffers {
            0 => "it has no command buffer".to_owned(),
            all => format!(
                "none of its {all} command buffers has a GPU time ({} failed, {} unfinished, {} never committed)",
                counts.failed, counts.unfinished, counts.never_committed
            ),
        };
        return Err(Error::unfit(format!("nothing of the live profile can be counted: {why}")).with_origin(shown));
    };
    let started = profile.origin().unix.and_then(|Nanos(ns)| {
        let started = jiff::Timestamp::from_nanosecond(i128::from(ns)).ok()?;
        Some(started.to_string())
    });
    trace.state.start_date = started;
    Ok(trace)
}
