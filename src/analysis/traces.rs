//! The way to traces: inputs are read and joined as for a comparison, and nothing more is made of them.

use std::sync::Arc;

use super::inputs::{Content, ReadInput, paths, shown_inputs};
use super::{Prepared, Request, SideRequest, prepare, runs, side_name, told_apart};
use crate::attribution::{MappedSide, PhaseNames};
use crate::compare::refuse_repeats;
use crate::error::{Error, Result};
use crate::live::Profile;
use crate::model::{Timing, Trace};
use crate::recording::Progress;

/// Every submission of one side or two.
#[derive(Debug)]
pub struct Traces {
    /// What you work on.
    pub a: TracedSide,
    /// What you compare it to.
    pub b: Option<TracedSide>,
    /// Inputs that are missing from it, with the reason.
    pub missing: Vec<(String, Error)>,
}

/// The trials of one side.
#[derive(Debug)]
pub struct TracedSide {
    /// Its name; those of two sides differ.
    pub name: String,
    /// Its trials, at least one.
    pub trials: Vec<TracedTrial>,
    /// The names that a label map gives to its phases.
    pub phase_names: PhaseNames,
}

/// One run of one input.
#[derive(Debug)]
pub struct TracedTrial {
    /// The input as it is shown.
    pub input: String,
    /// Its place among the trials of its side, from 1.
    pub number: usize,
    /// Its counted submissions, and what was left out.
    pub trace: Trace,
    /// The live profile that the trace was made of, if it was.
    pub live: Option<Arc<Profile>>,
}

/// Reads and joins.
///
/// # Errors
/// The first input that cannot be used (all of a side's, with `keep_going`), or the same recording twice on a side.
pub fn traces(request: &Request, progress: &dyn Progress) -> Result<Traces> {
    let Prepared {
        a,
        b,
        timing,
        mut missing,
    } = prepare(request, shown_inputs(paths(request)), progress)?;
    let mut side = |side: &SideRequest, inputs: Vec<ReadInput>| traced(request, side, inputs, timing, &mut missing);
    let a = side(&request.a, a)?;
    let b = match (&request.b, b) {
        (Some(request), Some(inputs)) => Some((request, side(request, inputs)?)),
        _ => None,
    };
    let named = |side: &SideRequest, trials: &[TracedTrial]| {
        side_name(side, trials.iter().map(|trial| (&trial.trace.process, &*trial.input)))
    };
    let (name_a, name_b) = told_apart(
        named(&request.a, &a),
        b.as_ref().map(|(request, trials)| named(request, trials)),
    );
    let map = &request.compare.label_map;
    Ok(Traces {
        a: TracedSide {
            name: name_a,
            trials: a,
            phase_names: map.side(MappedSide::A),
        },
        b: b.zip(name_b).map(|((_, trials), name)| TracedSide {
            name,
            trials,
            phase_names: map.side(MappedSide::B),
        }),
        missing,
    })
}

fn traced(
    request: &Request,
    side: &SideRequest,
    inputs: Vec<ReadInput>,
    timing: Timing,
    missing: &mut Vec<(String, Error)>,
) -> Result<Vec<TracedTrial>> {
    let make = |trace: Trace, input: &ReadInput| TracedTrial {
        input: input.shown.clone(),
        number: 0,
        trace,
        live: match &input.content {
            Content::Live(profile) => Some(Arc::clone(profile)),
            Content::Recording(_) => None,
        },
    };
    let made = runs(request, side, inputs, timing, make, missing)?;
    let trials: Vec<TracedTrial> = made
        .into_iter()
        .zip(1..)
        .map(|((trial, _), number)| TracedTrial { number, ..trial })
        .collect();
    refuse_repeats(trials.iter().map(|trial| (trial.trace.fingerprint, &*trial.input)))?;
    Ok(trials)
}
