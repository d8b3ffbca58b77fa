//! The way through the house: inputs are read, joined, attributed and compared.
//!
//! What goes in is a [`Request`] (inputs of one or two sides and how to look at them); what comes out is a
//! [`Comparison`] and, when the user asked to go on without them, the inputs that could not be used. `inputs` reads them;
//! `traces` stops where every run is a [`Trace`], for files that hold submissions and no statistics, and `each` gives
//! one of them after the other.

mod each;
mod inputs;
mod live;
mod traces;

pub use each::{JoinedTrial, each_trial};
pub use traces::{TracedSide, TracedTrial, Traces, traces};

use std::path::PathBuf;

use crate::attribution::MappedSide;
use crate::compare::{Baseline, CompareOptions, Comparison, Settings, Side, Trial, TrialOptions, compare};
use crate::error::{Error, Result};
use crate::join::{JoinOptions, ProcessChoice, RunInput, TimingChoice, choose_timing, join};
use crate::model::{Note, Process, Timing, Trace};
use crate::parallel::in_order;
use crate::recording::{Progress, ReadOptions, Recording, RunTables};
use inputs::{Content, ReadInput, paths, read_all, shown_inputs};

/// One side, as asked for.
#[derive(Debug, Clone, Default)]
pub struct SideRequest {
    /// Its inputs; each run of each is a trial.
    pub inputs: Vec<PathBuf>,
    /// Its name; `None`: the process's, else the first input's.
    pub name: Option<String>,
    /// Units per trial: none, one for all, or one each.
    pub units: Vec<u64>,
    /// Process and window.
    pub join: JoinOptions,
}

/// What is to be compared or reported.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What you work on.
    pub a: SideRequest,
    /// What you compare it to.
    pub b: Option<SideRequest>,
    /// Which timing table.
    pub timing: TimingChoice,
    /// What units are called; counts only when a side has units.
    pub unit: String,
    /// Buckets, kernel families, lengths of lists; phases are named by [`CompareOptions::label_map`].
    pub trial: TrialOptions,
    /// Runs, and how bundles are exported.
    pub read: ReadOptions,
    /// Side B as it was stored, instead of `b`.
    pub baseline: Option<Baseline>,
    /// How the sides are held against each other.
    pub compare: CompareOptions,
    /// Go on without inputs that cannot be used.
    pub keep_going: bool,
}

/// What came of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The comparison.
    pub comparison: Comparison,
    /// Inputs that are missing from it, with the reason.
    pub missing: Vec<(String, Error)>,
}

/// Reads, joins, attributes and compares.
///
/// # Errors
/// The first input that cannot be used (all of a side's, with `keep_going`), units that do not fit the trials, or
/// the same recording twice on a side.
pub fn analyse(request: &Request, progress: &dyn Progress) -> Result<Outcome> {
    let names = shown_inputs(paths(request));
    let whole_paths: Vec<(String, String)> = paths(request)
        .map(|path| path.display().to_string())
        .zip(names.iter().cloned())
        .collect();
    let Prepared {
        a,
        b,
        timing,
        mut missing,
    } = prepare(request, names, progress)?;
    let map = &request.compare.label_map;
    let trials_of = |inputs: &[ReadInput]| inputs.iter().map(ReadInput::trials).sum();
    let options = |side, inputs| TrialOptions {
        phase_names: map.side(side),
        // The trials of a side are worked on at once.
        jobs: request.read.jobs.each_of(trials_of(inputs)),
        ..request.trial.clone()
    };
    let (options_a, options_b) = (
        options(MappedSide::A, &a),
        options(MappedSide::B, b.as_deref().unwrap_or_default()),
    );
    let (timing_a, timing_b) = (
        live::timing(&a).unwrap_or(timing),
        b.as_deref().and_then(live::timing).unwrap_or(timing),
    );
    let a = trials(request, &request.a, a, timing, &options_a, &mut missing)?;
    let b = match (&request.b, b) {
        (Some(side), Some(inputs)) => Some((side, trials(request, side, inputs, timing, &options_b, &mut missing)?)),
        _ => None,
    };
    let has_units = !request.a.units.is_empty() || request.b.as_ref().is_some_and(|side| !side.units.is_empty());
    let unit = has_units.then(|| request.unit.clone());
    let baseline = request.baseline.as_ref();
    let settings = Settings {
        timing: timing_a,
        timing_b: match (baseline, &request.b) {
            (Some(baseline), _) => baseline.settings.timing,
            (None, Some(_)) => timing_b,
            (None, None) => timing_a,
        },
        unit: unit.clone(),
        unit_b: baseline.map_or(unit, |baseline| baseline.settings.unit.clone()),
        buckets: request.trial.buckets.clone(),
        window_a: request.a.join.window.clone(),
        window_b: match (baseline, &request.b) {
            (Some(baseline), _) => &baseline.settings.window_a,
            (None, Some(side)) => &side.join.window,
            (None, None) => &request.a.join.window,
        }
        .clone(),
        slowest: request.trial.slowest,
    };
    let named = |side, trials: &[Trial]| side_name(side, trials.iter().map(|trial| (&trial.process, &*trial.input)));
    let names = told_apart(
        named(&request.a, &a),
        match (&b, baseline) {
            (Some((side, trials)), _) => Some(named(side, trials)),
            (None, baseline) => baseline.map(|baseline| baseline.side.name.clone()),
        },
    );
    let stored = || baseline.map(|baseline| baseline.side.trials.clone());
    let b = b.map(|(_, trials)| trials).or_else(stored);
    let b = b.zip(names.1).map(|(trials, name)| Side { name, trials });
    let mut comparison = compare(
        Side {
            name: names.0,
            trials: a,
        },
        b,
        settings,
        &compare_options(request)?,
    )?;
    let lost = missing.iter().map(|(input, error)| {
        let mut reason = error.kind().to_string();
        // What the user typed may name folders that are nobody's business in a report.
        for (path, shown) in &whole_paths {
            reason = reason.replace(path, shown);
        }
        Note::warning("missing_trial", format!("{input} is missing: {reason}"))
    });
    comparison.notes.splice(0..0, lost);
    Ok(Outcome { comparison, missing })
}

/// Inputs of both sides that were read and fit together, before anything is made of them.
struct Prepared {
    a: Vec<ReadInput>,
    b: Option<Vec<ReadInput>>,
    timing: Timing,
    missing: Vec<(String, Error)>,
}

/// Reads the inputs, which are shown by `names`, and finds the timing table that all of them have.
fn prepare(request: &Request, names: Vec<String>, progress: &dyn Progress) -> Result<Prepared> {
    let mut missing = Vec::new();
    let mut read = read_all(request, names, progress).into_iter();
    let mut side = |side: &SideRequest| -> Result<Vec<ReadInput>> {
        let mut inputs = Vec::new();
        let only_units = side.units.len() == side.inputs.len() && side.units.len() > 1;
        for (at, (shown, content)) in read.by_ref().take(side.inputs.len()).enumerate() {
            let units = if only_units { side.units.get(at).copied() } else { None };
            match content {
                Ok(content) => inputs.push(ReadInput { content, shown, units }),
                Err(error) if request.keep_going => missing.push((shown, error)),
                Err(error) => return Err(error),
            }
        }
        // Which count belongs to which trial cannot be told any more.
        if side.units.len() > 1 && !only_units && inputs.len() < side.inputs.len() {
            return Err(Error::usage(format!(
                "{} unit counts for {} inputs, of which some are missing",
                side.units.len(),
                side.inputs.len()
            ))
            .with_help("give --tokens once for all trials, or once per input"));
        }
        Ok(inputs)
    };
    let mut a = side(&request.a)?;
    let mut b = request.b.as_ref().map(&mut side).transpose()?;
    live::check(request, &a, b.as_deref())?;
    let timing = loop {
        if a.is_empty() || b.as_ref().is_some_and(Vec::is_empty) {
            return Err(none_left(&missing));
        }
        match timing_of(request, &a, b.as_deref()) {
            Ok(timing) => break timing,
            Err((error, at)) => {
                // Without this input the others may still have a table in common.
                let side = match at {
                    Some((0, at)) => Some((&mut a, at)),
                    Some((_, at)) => b.as_mut().map(|b| (b, at)),
                    None => None,
                };
                match side {
                    Some((side, at)) if request.keep_going => missing.push((side.remove(at).shown, error)),
                    _ => return Err(error),
                }
            }
        }
    };
    Ok(Prepared { a, b, timing, missing })
}

/// A side of which nothing is left, with what was wrong with its inputs.
fn none_left(missing: &[(String, Error)]) -> Error {
    const SHOWN: usize = 3;
    let mut reasons: Vec<String> = missing
        .iter()
        .take(SHOWN)
        .map(|(input, error)| format!("{input}: {}", error.kind()))
        .collect();
    if missing.len() > SHOWN {
        reasons.push(format!("and {} more", missing.len() - SHOWN));
    }
    let error = Error::unfit(format!("no input of a side could be used: {}", reasons.join("; ")));
    match missing.iter().find_map(|(_, error)| error.help()) {
        Some(help) => error.with_help(help),
        None => error,
    }
}

/// Options of the comparison, with what a baseline brings.
fn compare_options(request: &Request) -> Result<CompareOptions> {
    let mut options = request.compare.clone();
    if let Some(baseline) = &request.baseline {
        if baseline.settings.buckets != request.trial.buckets {
            let edges: Vec<String> = baseline
                .settings
                .buckets
                .edges
                .iter()
                .map(|edge| format!("{edge}ns"))
                .collect();
            return Err(
                Error::usage("the baseline was made with other bucket edges").with_help(format!(
                    "use those of the baseline, --buckets {}, or make the baseline anew",
                    edges.join(",")
                )),
            );
        }
        let rules = request.compare.label_map.rules();
        let asked: Vec<_> = rules
            .map(|rule| (rule.name.clone(), rule.a.clone(), rule.b.clone()))
            .collect();
        if !baseline.label_map.is_empty() && baseline.label_map != asked {
            return Err(Error::usage("the baseline's phases were named by another label map")
                .with_help("use the map that the baseline was made with, or make the baseline anew"));
        }
        options.baseline = Some(baseline.notes.clone());
    }
    Ok(options)
}

/// The timing table, or the error and the input (side, place) that it is about.
fn timing_of(
    request: &Request,
    a: &[ReadInput],
    b: Option<&[ReadInput]>,
) -> std::result::Result<Timing, (Error, Option<(usize, usize)>)> {
    let sides = [Some((&request.a, a)), request.b.as_ref().zip(b)];
    let mut runs = Vec::new();
    for (side, inputs) in sides.into_iter().flatten() {
        one_recording_of_a_pid(side, inputs.iter().map(ReadInput::trials).sum()).map_err(|error| (error, None))?;
        for recording in inputs.iter().filter_map(ReadInput::recording) {
            for run in &recording.runs {
                runs.push(RunInput {
                    recording,
                    run,
                    options: &side.join,
                });
            }
        }
    }
    if runs.is_empty() {
        return Ok(Timing::Live);
    }
    // What the baseline was made from comes first, when the trials have it and nothing else was asked for.
    if let (TimingChoice::Auto, Some(baseline)) = (request.timing, &request.baseline) {
        let same = match baseline.settings.timing {
            Timing::Intervals => TimingChoice::Intervals,
            Timing::Points => TimingChoice::Points,
            Timing::Live => TimingChoice::Auto,
        };
        if let Ok(timing) = choose_timing(&runs, same) {
            return Ok(timing);
        }
    }
    choose_timing(&runs, request.timing).map_err(|error| {
        // Which single input has no usable table at all?
        for (number, (side, inputs)) in sides.into_iter().flatten().enumerate() {
            for (at, input) in inputs.iter().enumerate() {
                let fits = |recording: &Recording| {
                    recording.runs.iter().all(|run| {
                        let only = RunInput {
                            recording,
                            run,
                            options: &side.join,
                        };
                        choose_timing(&[only], request.timing).is_ok()
                    })
                };
                if !input.recording().is_none_or(fits) {
                    return (error, Some((number, at)));
                }
            }
        }
        (error, None)
    })
}

/// A pid names a process of one recording only.
fn one_recording_of_a_pid(side: &SideRequest, trials: usize) -> Result<()> {
    match (&side.join.process, trials) {
        (ProcessChoice::Pid(pid), 2..) => Err(Error::usage(format!(
            "--process {pid}: a pid stands for one recording only, and there are {trials} trials"
        ))
        .with_help("choose the process by its name")),
        _ => Ok(()),
    }
}

fn trials(
    request: &Request,
    side: &SideRequest,
    inputs: Vec<ReadInput>,
    timing: Timing,
    options: &TrialOptions,
    missing: &mut Vec<(String, Error)>,
) -> Result<Vec<Trial>> {
    let make = |trace: Trace, input: &ReadInput| Trial::from_trace(&trace, input.shown.clone(), None, options);
    let made = runs(request, side, inputs, timing, make, missing)?;
    Ok(made
        .into_iter()
        .map(|(trial, units)| Trial { units, ..trial })
        .collect())
}

/// Makes something of each run of a side's inputs: several at once, in their order, each with its units.
fn runs<T: Send>(
    request: &Request,
    side: &SideRequest,
    inputs: Vec<ReadInput>,
    timing: Timing,
    make: impl Fn(Trace, &ReadInput) -> T + Sync,
    missing: &mut Vec<(String, Error)>,
) -> Result<Vec<(T, Option<u64>)>> {
    let run_counts: Vec<usize> = inputs.iter().map(ReadInput::trials).collect();
    let count: usize = run_counts.iter().sum();
    let per_input = inputs.iter().all(|input| input.units.is_some());
    if side.units.len() > 1 && side.units.len() != count && !per_input {
        return Err(Error::usage(format!(
            "{} unit counts for {count} trial{}",
            side.units.len(),
            if count == 1 { "" } else { "s" }
        ))
        .with_help("give --tokens once for all trials, or once per trial in their order"));
    }
    let mut inputs = inputs;
    let runs: Vec<Vec<Option<RunTables>>> = inputs
        .iter_mut()
        .map(|input| match &mut input.content {
            Content::Recording(recording) => std::mem::take(&mut recording.runs).into_iter().map(Some).collect(),
            Content::Live(_) => vec![None],
        })
        .collect();
    let runs = inputs
        .iter()
        .zip(runs)
        .flat_map(|(input, runs)| runs.into_iter().map(move |run| (input, run)));
    let joined = |(input, run): (&ReadInput, Option<RunTables>)| {
        let trace = match (&input.content, run) {
            (Content::Recording(recording), Some(run)) => join(recording, run, &side.join, timing),
            (Content::Live(profile), _) => live::trace(profile, &input.shown),
            (Content::Recording(_), None) => Err(Error::unfit("the run was used already")),
        };
        trace
            .map(|trace| make(trace, input))
            .map_err(|error| (input.shown.clone(), error))
    };
    let made = in_order(request.read.jobs, runs.collect(), joined, |made| {
        made.is_err() && !request.keep_going
    });
    let units_of = inputs
        .iter()
        .zip(&run_counts)
        .flat_map(|(input, runs)| std::iter::repeat_n(input.units, *runs));
    let mut all = Vec::new();
    for (made, own_units) in made.into_iter().zip(units_of) {
        match made {
            Ok(made) => {
                let units = match side.units.as_slice() {
                    [] => None,
                    [one] => Some(*one),
                    several => own_units.or_else(|| several.get(all.len()).copied()),
                };
                all.push((made, units));
            }
            Err(lost) if request.keep_going => missing.push(lost),
            Err((_, error)) => return Err(error),
        }
    }
    if all.is_empty() {
        return Err(none_left(missing));
    }
    Ok(all)
}

/// The name of a side whose trials are given by process and input.
fn side_name<'t>(side: &SideRequest, trials: impl Iterator<Item = (&'t Process, &'t str)> + Clone) -> String {
    if let Some(name) = &side.name {
        return name.clone();
    }
    let mut names = trials.clone().map(|(process, _)| process.name.as_str());
    let first = names.next().unwrap_or("");
    if !first.is_empty() && first != "all" && names.all(|name| name == first) {
        return first.to_owned();
    }
    let mut inputs = trials.map(|(_, input)| input);
    inputs.next().map_or_else(String::new, str::to_owned)
}

/// Names of sides that differ.
fn told_apart(a: String, b: Option<String>) -> (String, Option<String>) {
    match b {
        Some(b) if a == b => (format!("{a} (A)"), Some(format!("{b} (B)"))),
        b => (a, b),
    }
}
