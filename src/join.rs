//! Typed rows become a [`Trace`]: one process, one window, one timing table, and a count for every row that is not in it.
//!
//! The timing table and the process are chosen first, over all trials of a comparison ([`choose_timing`]); then each
//! run is joined ([`join`]). Rows of the timing table = counted + left out, by reason; nothing is dropped silently.

mod context;
mod counted;
mod labels;
mod process;
mod signposts;
mod window;

pub use process::ProcessChoice;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::model::{LeftOut, NameId, Names, Nanos, Note, Reason, Submission, Timing, Trace, Window, WindowRule};
use crate::recording::{Recording, RunTables, TimingTable, shown};
use crate::tables::contents::Run;
use crate::tables::{Table, execution_points, gpu_intervals, submission_map};

use context::{kernels, shader_samples, state};
use counted::{Taken, check, of_process, without_nested};
use labels::{EncoderList, Labels};
use process::select;
use window::{Scene, none_inside};

/// `--timing`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum TimingChoice {
    /// Intervals if the process has rows there in every trial, else points.
    #[default]
    Auto,
    /// `metal-gpu-intervals`.
    Intervals,
    /// `metal-gpu-execution-points`, joined through the submission map.
    Points,
}

/// How a side's trials are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinOptions {
    /// Which process.
    pub process: ProcessChoice,
    /// Which window.
    pub window: WindowRule,
    /// Keep what the table of contents says of arguments, user paths and device names.
    pub show_private: bool,
}

/// One run of one input, and how it is to be joined.
#[derive(Debug, Clone, Copy)]
pub struct RunInput<'a> {
    /// The input.
    pub recording: &'a Recording,
    /// Its run.
    pub run: &'a RunTables,
    /// Options of its side.
    pub options: &'a JoinOptions,
}

impl RunInput<'_> {
    fn contents(&self) -> Option<&Run> {
        self.recording.contents.as_ref()?.run(self.run.number)
    }

    fn table(&self, timing: Timing) -> Option<&TimingTable> {
        match timing {
            Timing::Intervals => self.run.intervals.as_ref(),
            Timing::Points => self
                .run
                .points
                .as_ref()
                .filter(|_| self.run.has_map || self.options.process == ProcessChoice::All),
            Timing::Live => None,
        }
    }

    fn error(&self, error: Error) -> Error {
        error.with_origin(&self.recording.origin)
    }
}

/// Chooses the timing table, one for all trials.
///
/// # Errors
/// No table serves every trial; the message lists what each has and lacks, or which processes it has.
pub fn choose_timing(trials: &[RunInput<'_>], choice: TimingChoice) -> Result<Timing> {
    let candidates: &[Timing] = match choice {
        TimingChoice::Auto => &[Timing::Intervals, Timing::Points],
        TimingChoice::Intervals => &[Timing::Intervals],
        TimingChoice::Points => &[Timing::Points],
    };
    let mut first_error = None;
    let mut lacking = false;
    for timing in candidates {
        let mut fits = true;
        for trial in trials {
            match trial.table(*timing) {
                None => {
                    lacking = true;
                    fits = false;
                    break;
                }
                Some(table) => {
                    if let Err(error) = select(trial, table, *timing) {
                        // An ambiguous or absent process in a table that is there explains more than a missing table.
                        first_error.get_or_insert(trial.error(error));
                        fits = false;
                        break;
                    }
                }
            }
        }
        if fits {
            return Ok(*timing);
        }
    }
    Err(match first_error {
        None => no_timing(trials, choice),
        Some(error) if lacking && choice == TimingChoice::Auto && trials.len() > 1 => {
            // The other table does not serve either, and why is worth as much.
            let origin = error.origin().unwrap_or_default().to_owned();
            let help = error.help().unwrap_or_default().to_owned();
            Error::unfit(format!("{}; and {}", error.kind(), no_timing(trials, choice).kind()))
                .with_origin(origin)
                .with_help(help)
        }
        Some(error) => error,
    })
}

fn no_timing(trials: &[RunInput<'_>], choice: TimingChoice) -> Error {
    let needed: &[&str] = match choice {
        TimingChoice::Intervals => &[gpu_intervals::IntervalRow::SCHEMA],
        TimingChoice::Points => &[execution_points::PointRow::SCHEMA, submission_map::MapRow::SCHEMA],
        TimingChoice::Auto => &[
            gpu_intervals::IntervalRow::SCHEMA,
            execution_points::PointRow::SCHEMA,
            submission_map::MapRow::SCHEMA,
        ],
    };
    let list = |names: Vec<&str>| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    let describe = |trial: &RunInput<'_>| {
        let seen = &trial.run.seen;
        let there: Vec<&str> = seen.keys().map(String::as_str).collect();
        let missing: Vec<&str> = needed
            .iter()
            .copied()
            .filter(|name| !seen.contains_key(*name))
            .collect();
        format!(
            "{} has: {}; missing: {}",
            trial.recording.origin,
            list(there),
            list(missing)
        )
    };
    let all: Vec<String> = trials.iter().map(describe).collect();
    Error::unfit(format!("no table with GPU times serves every trial ({})", all.join(" | "))).with_help(
        "export `metal-gpu-intervals`, or `metal-gpu-execution-points` with `metal-gpu-submission-to-command-buffer-id`; \
         the encoders list alone has only CPU times",
    )
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}

/// The GPU with most submissions; of several the first by name.
fn foremost_gpu(gpus: &BTreeMap<NameId, u64>, names: &Names) -> Option<NameId> {
    let most = gpus.iter().max_by_key(|(id, rows)| (**rows, Reverse(names.get(**id))));
    most.map(|(id, _)| *id)
}

/// Joins one run of a recording. The rows move into the trace, so that they need not be there twice.
///
/// # Errors
/// No such table or process, no submission left, or sums beyond 64 bits.
pub fn join(recording: &Recording, run: RunTables, options: &JoinOptions, timing: Timing) -> Result<Trace> {
    joined(recording, run, options, timing).map_err(|error| error.with_origin(&recording.origin))
}

fn joined(recording: &Recording, mut run: RunTables, options: &JoinOptions, timing: Timing) -> Result<Trace> {
    let input = &RunInput {
        recording,
        run: &run,
        options,
    };
    let texts = &recording.texts;
    let Some(table) = input.table(timing) else {
        return Err(no_timing(
            &[*input],
            match timing {
                Timing::Intervals => TimingChoice::Intervals,
                Timing::Points => TimingChoice::Points,
                Timing::Live => TimingChoice::Auto,
            },
        ));
    };
    let selection = select(input, table, timing)?;
    let mut notes = selection.notes.clone();
    let rows_each = match timing {
        Timing::Intervals | Timing::Live => 1,
        Timing::Points => 2,
    };
    let mut left_out = table.left_out.clone();
    let recorded = input.contents().and_then(|contents| contents.duration);
    let counted = of_process(table, &selection, timing, recorded, &mut left_out, &mut notes);
    if counted.total.is_none() {
        return Err(Error::unfit(
            "the durations add up to more than 584 years: these are no GPU times",
        ));
    }
    let counted = without_nested(table, texts, counted, timing, &mut left_out);

    let cross_check = match timing {
        Timing::Intervals | Timing::Live => Timing::Points,
        Timing::Points => Timing::Intervals,
    };
    let cross_check = input
        .table(cross_check)
        .filter(|other| table.has_ids && other.has_ids && other.rows > 0)
        .map(|other| {
            let mut ignored = (LeftOut::default(), Vec::new());
            let others = of_process(other, &selection, cross_check, recorded, &mut ignored.0, &mut ignored.1);
            let others = without_nested(other, texts, others, cross_check, &mut ignored.0);
            match timing {
                Timing::Intervals | Timing::Live => check((table, &counted), (other, &others)),
                Timing::Points => check((other, &others), (table, &counted)),
            }
        });

    let most_gpu = foremost_gpu(&counted.gpus(table), &texts.names);
    let rows_read = table.rows;

    let mut labels = Labels::new(texts);
    let mut names = texts.names.clone();
    let encoders = run.encoders.take();
    let listed = encoders.is_some();
    let mut encoder_list =
        encoders.and_then(|encoders| EncoderList::new(encoders, &selection, &mut labels, &mut names));
    if encoder_list.is_none() && listed {
        notes.push(Note::remark(
            "no_encoder_rows",
            "the encoders list has no row of this process: labels come from the GPU rows themselves",
        ));
    }

    let table = match timing {
        Timing::Intervals => run.intervals.take(),
        Timing::Points => run.points.take(),
        Timing::Live => None,
    };
    let Taken {
        mut submissions,
        in_order,
        mut last_end,
    } = counted.take(table.unwrap_or_default());
    if let Some(encoders) = &mut encoder_list {
        for submission in &mut submissions {
            submission.label = encoders.label(submission);
        }
    }
    notes.extend(encoder_list.iter().flat_map(EncoderList::notes));

    let submissions_in_process = submissions.len() as u64;
    let numbers = |s: &Submission| (s.start, s.end(), s.id, s.encoder, s.command_buffer, s.latency);
    // Rows that share every number are told apart by their texts, so that the order of the file's rows counts nowhere.
    if !in_order {
        submissions.sort_unstable_by(|a, b| {
            numbers(a)
                .cmp(&numbers(b))
                .then_with(|| names.get(a.channel).cmp(names.get(b.channel)))
                .then_with(|| labels.texts_of(a.label, &names).cmp(&labels.texts_of(b.label, &names)))
        });
    }
    let scene = Scene {
        run: &run,
        texts,
        selection: &selection,
        submissions: &submissions,
    };
    let mut window = window::resolve(&options.window, &scene)?;
    notes.extend(window.iter_mut().flat_map(|window| std::mem::take(&mut window.notes)));
    let mut outside = (0u64, 0u64);
    if let Some(window) = &window {
        submissions.retain(|submission| {
            let inside = window.holds(submission);
            if !inside {
                outside.0 += rows_each;
                outside.1 = outside.1.saturating_add(submission.duration.0);
            }
            inside
        });
        if outside.0 > 0 {
            left_out.add(Reason::OutsideWindow, outside.0, Some(Nanos(outside.1)));
            last_end = submissions.iter().map(Submission::end).max();
        }
    }
    let first = submissions.first().map(|submission| submission.start);
    let (Some(first), Some(last)) = (first, last_end) else {
        let process = shown(&selection.shown);
        return Err(if outside.0 > 0 {
            Error::unfit(format!("no submission of {process} starts inside the window"))
                .with_help(none_inside(&options.window))
        } else {
            Error::unfit(format!(
                "no row of {process} can be counted: {}",
                Reason::ALL
                    .iter()
                    .map(|reason| (reason, left_out.get(*reason).rows))
                    .filter(|(_, rows)| *rows > 0)
                    .map(|(reason, rows)| format!("{rows} {}", reason.code()))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
        });
    };
    let window_found = window.as_ref().map(|window| window.found).unwrap_or_default();
    let window = window.map_or(Window { from: first, to: last }, |window| window.until(last));

    let gpu = run.gpu.or(most_gpu).map(|id| names.get(id).to_owned());
    let input = &RunInput {
        recording,
        run: &run,
        options,
    };
    let (shader_samples, shader_sampled_span) = shader_samples(&run, texts, &selection);
    Ok(Trace {
        run: run.number,
        process: selection.shown.clone(),
        timing,
        gpu,
        labels: labels.all,
        submissions,
        encoders: encoder_list.map(EncoderList::into_encoders),
        window,
        window_found,
        submissions_in_process,
        rows_read,
        left_out,
        cross_check,
        kernels: kernels(&run, texts, &selection),
        shader_timeline_rows: run.shader_samples.as_ref().map(|rows| rows.len() as u64),
        shader_samples,
        shader_sampled_span,
        state: state(input, &names, window),
        notes: recording.notes.iter().cloned().chain(notes).collect(),
        fingerprint: selection.fingerprint,
        names,
    })
}
