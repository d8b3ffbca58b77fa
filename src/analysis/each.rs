//! Trials as far as their traces, one after the other: for thousands of them, of which no two have to be there at once.

use std::collections::HashMap;

use super::inputs::{Content, paths, read_one, shown_inputs};
use super::{Request, SideRequest, live, none_left, one_recording_of_a_pid, side_name};
use crate::attribution::MappedSide;
use crate::compare::repeated;
use crate::error::{Error, ErrorKind, Result};
use crate::join::{RunInput, TimingChoice, choose_timing, join};
use crate::model::{Timing, Trace, WindowSpan};
use crate::recording::{Progress, ReadOptions};
use crate::source::Source;

/// One trial of a request, joined.
#[derive(Debug)]
pub struct JoinedTrial {
    /// Its side.
    pub side: MappedSide,
    /// The side's name; where none was given, the process's, else the input's.
    pub name: String,
    /// Its input, as it is shown.
    pub input: String,
    /// Units, when there are any.
    pub units: Option<u64>,
    /// Its submissions.
    pub trace: Trace,
}

/// Reads and joins the trials of a request in their order, and gives each to `take` before the next is read. The timing
/// table of the first is that of all. What comes back are the inputs that could not be used, with `keep_going`.
///
/// # Errors
/// The first input that cannot be used, or the first error of `take`; what was taken before it stays so.
pub fn each_trial(
    request: &Request,
    progress: &dyn Progress,
    take: &mut dyn FnMut(JoinedTrial) -> Result<()>,
) -> Result<Vec<(String, Error)>> {
    let mut names = shown_inputs(paths(request)).into_iter();
    let mut missing = Vec::new();
    let mut timing = None;
    let sides = [(MappedSide::A, Some(&request.a)), (MappedSide::B, request.b.as_ref())];
    for (letter, side) in sides.into_iter().filter_map(|(letter, side)| Some((letter, side?))) {
        let inputs = side.inputs.len();
        one_recording_of_a_pid(side, inputs)?;
        if side.units.len() > 1 && side.units.len() != inputs {
            return Err(Error::usage(format!(
                "{} unit counts for {inputs} input{}",
                side.units.len(),
                if inputs == 1 { "" } else { "s" }
            ))
            .with_help("give --tokens once for all inputs, or once per input in their order"));
        }
        let mut trials = SideTrials {
            request,
            side,
            letter,
            seen: HashMap::new(),
            first: None,
        };
        for (at, path) in side.inputs.iter().enumerate() {
            let shown = names.next().unwrap_or_default();
            let units = side.units.get(if side.units.len() > 1 { at } else { 0 }).copied();
            let joined = Source::from_argument(path)
                .and_then(|source| trials.join(&source, &shown, units, &mut timing, progress));
            match joined {
                // Each run of an input stands in memory until it is taken, and no other input does.
                Ok(joined) => joined.into_iter().try_for_each(&mut *take)?,
                // What makes no sense is no input that is missing.
                Err(error) if request.keep_going && !matches!(error.kind(), ErrorKind::Usage(_)) => {
                    missing.push((shown, error));
                }
                Err(error) => return Err(error),
            }
        }
        if trials.seen.is_empty() {
            return Err(none_left(&missing));
        }
    }
    Ok(missing)
}

/// A side on the way.
struct SideTrials<'r> {
    request: &'r Request,
    side: &'r SideRequest,
    letter: MappedSide,
    /// Recordings by their content, with the input that they came from.
    seen: HashMap<u64, String>,
    /// Whether its first input is a live profile, and how that is shown.
    first: Option<(bool, String)>,
}

impl SideTrials<'_> {
    /// The trials of one input.
    fn join(
        &mut self,
        source: &Source,
        shown: &str,
        units: Option<u64>,
        timing: &mut Option<Timing>,
        progress: &dyn Progress,
    ) -> Result<Vec<JoinedTrial>> {
        let options = ReadOptions {
            signposts: matches!(self.side.join.window.span, WindowSpan::Signpost(_)),
            ..self.request.read.clone()
        };
        let content = read_one(source, &options, progress)?;
        let is_live = matches!(content, Content::Live(_));
        let (first_is_live, first) = self.first.get_or_insert_with(|| (is_live, shown.to_owned()));
        if *first_is_live != is_live {
            let (live, recording) = if is_live {
                (shown, first.as_str())
            } else {
                (first.as_str(), shown)
            };
            return Err(live::mixed(live, recording));
        }
        let traces = match content {
            Content::Live(profile) => {
                live::check_choices(self.side, shown)?;
                vec![live::trace(&profile, shown)?]
            }
            Content::Recording(mut recording) => {
                let runs = std::mem::take(&mut recording.runs);
                one_recording_of_a_pid(self.side, runs.len())?;
                let inputs: Vec<RunInput<'_>> = runs
                    .iter()
                    .map(|run| RunInput {
                        recording: &recording,
                        run,
                        options: &self.side.join,
                    })
                    .collect();
                let choice = match timing {
                    Some(Timing::Intervals) => TimingChoice::Intervals,
                    Some(Timing::Points) => TimingChoice::Points,
                    Some(Timing::Live) | None => self.request.timing,
                };
                let chosen = choose_timing(&inputs, choice)?;
                timing.get_or_insert(chosen);
                runs.into_iter()
                    .map(|run| join(&recording, run, &self.side.join, chosen))
                    .collect::<Result<Vec<_>>>()?
            }
        };
        let mut trials = Vec::new();
        for trace in traces {
            if let Some(first) = self.seen.insert(trace.fingerprint, shown.to_owned()) {
                return Err(repeated(&first, shown));
            }
            trials.push(JoinedTrial {
                side: self.letter,
                name: side_name(self.side, std::iter::once((&trace.process, shown))),
                input: shown.to_owned(),
                units,
                trace,
            });
        }
        Ok(trials)
    }
}
