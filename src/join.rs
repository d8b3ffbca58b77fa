//! Typed rows become a [`Trace`]: one process, one window, one timing table, and a count for every row that is not in it.
//!
//! The timing table and the process are chosen first, over all trials of a comparison ([`choose_timing`]); then each
//! run is joined ([`join`]). Rows of the timing table = counted + left out, by reason; nothing is dropped silently.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::error::{Error, Result};
use crate::model::{
    CrossCheck, Encoder, EncoderId, Kernel, Label, LabelId, LeftOut, NameId, Names, Nanos, Note, Process, Reason,
    RecordingState, ShaderSamples, StateTime, Submission, Timestamp, Timing, Trace, Window, WindowRule,
};
use crate::recording::{Measured, Recording, RunTables, TimingTable, shown};
use crate::tables::contents::Run;
use crate::tables::shaders::without_id;
use crate::tables::states::StateRow;
use crate::tables::{ProcessId, Table, Texts, execution_points, gpu_intervals, submission_map};

/// One tick of the 24 MHz GPU clock, rounded up: as far apart as two truncated readings of one moment can be.
const TICK: u64 = 42;

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

/// `--process`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProcessChoice {
    /// The target in the table of contents, else the only process with GPU rows, the window server aside.
    #[default]
    Target,
    /// A pid.
    Pid(u32),
    /// An exact name, or a glob.
    Name(String),
    /// Every process.
    All,
}

impl ProcessChoice {
    /// Reads `all`, a pid, a name or a glob.
    pub fn parse(text: &str) -> ProcessChoice {
        match text {
            "all" => ProcessChoice::All,
            digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
                .parse()
                .map_or_else(|_| ProcessChoice::Name(digits.to_owned()), ProcessChoice::Pid),
            name => ProcessChoice::Name(name.to_owned()),
        }
    }
}

/// How a side's trials are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinOptions {
    /// Which process.
    pub process: ProcessChoice,
    /// Which window.
    pub window: WindowRule,
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
    for timing in candidates {
        let mut fits = true;
        for trial in trials {
            match trial.table(*timing) {
                None => {
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
    Err(first_error.unwrap_or_else(|| no_timing(trials, choice)))
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

/// The processes that count, and how they are shown.
struct Selection {
    all: bool,
    ids: BTreeSet<ProcessId>,
    shown: Process,
    notes: Vec<Note>,
}

/// A process with its rows: its pid, or its name when it has none, tells it apart.
#[derive(Debug, Clone, Default)]
struct Candidate {
    ids: BTreeSet<ProcessId>,
    names: BTreeSet<String>,
    pid: Option<u32>,
    rows: u64,
    ns: u64,
}

impl Candidate {
    fn process(&self) -> Process {
        Process {
            name: self
                .names
                .iter()
                .find(|name| !name.is_empty())
                .cloned()
                .unwrap_or_default(),
            pid: self.pid,
        }
    }

    fn describe(&self) -> String {
        let rows = if self.rows == 1 { "row" } else { "rows" };
        format!("{}: {} {rows}, {} ns", shown(&self.process()), self.rows, self.ns)
    }
}

fn candidates(texts: &Texts, table: &TimingTable) -> Vec<Candidate> {
    let mut by_id: BTreeMap<ProcessId, (u64, u64)> = BTreeMap::new();
    for measured in &table.measured {
        if let Some(id) = measured.process {
            let (rows, ns) = by_id.entry(id).or_default();
            *rows += 1;
            *ns = ns.saturating_add(measured.submission.duration.0);
        }
    }
    let mut candidates: BTreeMap<(Option<u32>, String), Candidate> = BTreeMap::new();
    for (id, (rows, ns)) in by_id {
        let Some(process) = texts.get_process(id) else { continue };
        let key = match process.pid {
            Some(pid) => (Some(pid), String::new()),
            None => (None, process.name.clone()),
        };
        let candidate = candidates.entry(key).or_default();
        candidate.ids.insert(id);
        candidate.names.insert(process.name.clone());
        candidate.pid = process.pid;
        candidate.rows += rows;
        candidate.ns = candidate.ns.saturating_add(ns);
    }
    let mut candidates: Vec<Candidate> = candidates.into_values().collect();
    candidates.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.process().cmp(&b.process())));
    candidates
}

fn select(input: &RunInput<'_>, table: &TimingTable, timing: Timing) -> Result<Selection> {
    let schema = match timing {
        Timing::Intervals => gpu_intervals::IntervalRow::SCHEMA,
        Timing::Points => execution_points::PointRow::SCHEMA,
    };
    if table.rows == 0 {
        return Err(
            Error::unfit(format!("table `{schema}` has 0 rows: nothing was recorded in it")).with_help(
                "record again; if it stays empty, this GPU work is not instrumented (Metal 4 queues, for one)",
            ),
        );
    }
    let all = candidates(&input.recording.texts, table);
    let list = |candidates: &[Candidate]| {
        let mut shown: Vec<String> = candidates.iter().take(12).map(Candidate::describe).collect();
        if candidates.len() > 12 {
            shown.push(format!("and {} more", candidates.len() - 12));
        }
        if shown.is_empty() {
            "none".to_owned()
        } else {
            shown.join("; ")
        }
    };
    let found = |chosen: Vec<Candidate>, shown_as: Option<String>| {
        let mut notes = Vec::new();
        for candidate in chosen.iter().filter(|candidate| candidate.names.len() > 1) {
            let names: Vec<&str> = candidate.names.iter().map(String::as_str).collect();
            notes.push(Note::remark(
                "renamed_process",
                format!(
                    "pid {} stands under {} names and is one process: {}",
                    candidate.pid.unwrap_or(0),
                    names.len(),
                    names.join(", ")
                ),
            ));
        }
        let shown = match (chosen.as_slice(), shown_as) {
            ([only], _) => only.process(),
            (_, pattern) => {
                notes.push(Note::remark(
                    "several_processes",
                    format!("processes taken together: {}", list(&chosen)),
                ));
                Process {
                    name: pattern.unwrap_or_default(),
                    pid: None,
                }
            }
        };
        Selection {
            all: false,
            ids: chosen.iter().flat_map(|candidate| candidate.ids.clone()).collect(),
            shown,
            notes,
        }
    };
    let no_match = |what: &str| {
        Error::unfit(format!(
            "0 of {} rows of `{schema}` belong to {what}; processes with GPU rows: {}",
            table.rows,
            list(&all)
        ))
        .with_help("choose one with --process NAME, PID or GLOB, or take all with --process all")
    };
    match &input.options.process {
        ProcessChoice::All => Ok(Selection {
            all: true,
            ids: BTreeSet::new(),
            shown: Process {
                name: "all".to_owned(),
                pid: None,
            },
            notes: Vec::new(),
        }),
        ProcessChoice::Pid(pid) => {
            let chosen: Vec<Candidate> = all
                .iter()
                .filter(|candidate| candidate.pid == Some(*pid))
                .cloned()
                .collect();
            if chosen.is_empty() {
                Err(no_match(&format!("pid {pid}")))
            } else {
                Ok(found(chosen, None))
            }
        }
        ProcessChoice::Name(name) => {
            let exact: Vec<Candidate> = all
                .iter()
                .filter(|candidate| candidate.names.contains(name))
                .cloned()
                .collect();
            match exact.len() {
                1 => return Ok(found(exact, None)),
                0 => {}
                several => {
                    return Err(
                        Error::unfit(format!("{several} processes are called `{name}`: {}", list(&exact)))
                            .with_help("choose one by its pid, or all of them by a glob, such as --process 'name*'"),
                    );
                }
            }
            let pattern = glob::Pattern::new(name)
                .map_err(|error| Error::usage(format!("--process {name}: not a name and not a glob: {error}")))?;
            let matching: Vec<Candidate> = all
                .iter()
                .filter(|candidate| candidate.names.iter().any(|name| pattern.matches(name)))
                .cloned()
                .collect();
            if matching.is_empty() {
                Err(no_match(&format!("process `{name}`")))
            } else {
                Ok(found(matching, Some(name.clone())))
            }
        }
        ProcessChoice::Target => {
            let others: Vec<Candidate> = all
                .iter()
                .filter(|candidate| !candidate.names.contains("WindowServer"))
                .cloned()
                .collect();
            if let Some(target) = input.contents().and_then(|run| run.target.clone()) {
                let is_target = |candidate: &&Candidate| match target.pid {
                    Some(pid) => candidate.pid == Some(pid),
                    None => candidate.names.contains(&target.name),
                };
                if let Some(chosen) = all.iter().find(is_target) {
                    return Ok(found(vec![chosen.clone()], None));
                }
                return Err(Error::unfit(format!(
                    "the recorded process {} has no rows in `{schema}`; processes with GPU rows: {}",
                    shown(&target),
                    list(&all)
                ))
                .with_help(if others.is_empty() {
                    "it ran nothing on the GPU while it was recorded".to_owned()
                } else {
                    format!("a launcher starts another process that does the work: choose that one with --process NAME (or PID), such as --process {}", others.first().map_or_else(String::new, |first| first.process().name))
                }));
            }
            match others.as_slice() {
                [only] => Ok(found(vec![only.clone()], None)),
                [] => match all.as_slice() {
                    [] => Err(Error::unfit(format!(
                        "table `{schema}` has {} rows, none of a known process",
                        table.rows
                    ))
                    .with_help("take every row with --process all")),
                    _ => Err(
                        Error::unfit(format!("only the window server has GPU rows: {}", list(&all)))
                            .with_help("take it with --process WindowServer"),
                    ),
                },
                several => Err(
                    Error::unfit(format!("several processes have GPU rows: {}", list(several)))
                        .with_help("choose one with --process NAME, PID or GLOB, or take all with --process all"),
                ),
            }
        }
    }
}

/// Joins one run.
///
/// # Errors
/// No such table or process, no submission left, or sums beyond 64 bits.
pub fn join(input: &RunInput<'_>, timing: Timing) -> Result<Trace> {
    joined(input, timing).map_err(|error| input.error(error))
}

fn joined(input: &RunInput<'_>, timing: Timing) -> Result<Trace> {
    let run = input.run;
    let texts = &input.recording.texts;
    let Some(table) = input.table(timing) else {
        return Err(no_timing(
            &[*input],
            match timing {
                Timing::Intervals => TimingChoice::Intervals,
                Timing::Points => TimingChoice::Points,
            },
        ));
    };
    let selection = select(input, table, timing)?;
    let mut notes = selection.notes.clone();
    let rows_each = match timing {
        Timing::Intervals => 1,
        Timing::Points => 2,
    };
    let mut left_out = table.left_out.clone();
    let recorded = input.contents().and_then(|contents| contents.duration);
    let counted = of_process(table, &selection, timing, recorded, &mut left_out, &mut notes);
    let total = counted
        .iter()
        .try_fold(0u64, |sum, measured| sum.checked_add(measured.submission.duration.0));
    if total.is_none() {
        return Err(Error::unfit(
            "the durations add up to more than 584 years: these are no GPU times",
        ));
    }
    let counted = without_nested(counted, timing, &mut left_out);

    let cross_check = match timing {
        Timing::Intervals => Timing::Points,
        Timing::Points => Timing::Intervals,
    };
    let cross_check = input
        .table(cross_check)
        .filter(|other| table.has_ids && other.has_ids && other.rows > 0)
        .map(|other| {
            let mut ignored = (LeftOut::default(), Vec::new());
            let others = of_process(other, &selection, cross_check, recorded, &mut ignored.0, &mut ignored.1);
            let others = without_nested(others, cross_check, &mut ignored.0);
            match timing {
                Timing::Intervals => check(&counted, &others),
                Timing::Points => check(&others, &counted),
            }
        });

    let encoders = encoder_labels(input, &selection);
    let mut labels = Labels::new(texts);
    let no_encoder = labels.id(Label::NoEncoder);
    let ambiguous = labels.id(Label::Ambiguous);
    let mut names = texts.names.clone();
    let mut differing_buffers = 0u64;
    let mut with_gpu_rows: BTreeSet<EncoderId> = BTreeSet::new();
    let empty = names.intern("");
    let encoder_list: Option<BTreeMap<EncoderId, ListedEncoder>> = encoders.map(|rows| {
        let mut listed: BTreeMap<EncoderId, ListedEncoder> = BTreeMap::new();
        for row in rows {
            let Some(id) = row.id else { continue };
            let label = labels.id(Label::Known {
                command_buffer: row.command_buffer_label.unwrap_or(empty),
                encoder: row.label.unwrap_or(empty),
                coalesced: false,
            });
            match listed.get_mut(&id) {
                None => {
                    listed.insert(
                        id,
                        ListedEncoder {
                            label,
                            command_buffer: row.command_buffer,
                            cpu_encode: row.cpu_encode,
                        },
                    );
                }
                Some(before) => {
                    if before.label != label {
                        before.label = ambiguous;
                    }
                    before.cpu_encode = match (before.cpu_encode, row.cpu_encode) {
                        (Some(a), Some(b)) => Some(Nanos(a.0.saturating_add(b.0))),
                        (a, b) => a.or(b),
                    };
                }
            }
        }
        listed
    });
    if encoder_list.is_none() && run.encoders.is_some() {
        notes.push(Note::remark(
            "no_encoder_rows",
            "the encoders list has no row of this process: labels come from the GPU rows themselves",
        ));
    }

    let mut submissions = Vec::with_capacity(counted.len());
    let mut gpu_names: BTreeMap<NameId, u64> = BTreeMap::new();
    let mut fingerprint = DefaultHasher::new();
    for measured in &table.measured {
        let submission = &measured.submission;
        (submission.start, submission.duration, submission.id, submission.encoder).hash(&mut fingerprint);
    }
    for measured in counted {
        let mut submission = measured.submission;
        if let Some(gpu) = measured.gpu {
            *gpu_names.entry(gpu).or_default() += 1;
        }
        if let Some(listed) = &encoder_list {
            submission.label = match submission.encoder.and_then(|id| listed.get(&id)) {
                None => no_encoder,
                Some(encoder) => {
                    // The same encoder id with another command buffer: not the same encoder, and nobody can say which.
                    let differs =
                        matches!((encoder.command_buffer, submission.command_buffer), (Some(a), Some(b)) if a != b);
                    differing_buffers += u64::from(differs);
                    if differs { ambiguous } else { encoder.label }
                }
            };
        }
        with_gpu_rows.extend(submission.encoder);
        submissions.push(submission);
    }
    if differing_buffers > 0 {
        notes.push(Note::warning(
            "command_buffer_differs",
            format!("{differing_buffers} submissions name another command buffer than their encoder's row: their labels are not used"),
        ));
    }
    let ambiguous_encoders = encoder_list
        .iter()
        .flat_map(BTreeMap::values)
        .filter(|encoder| encoder.label == ambiguous)
        .count();
    if ambiguous_encoders > 0 {
        notes.push(Note::warning(
            "ambiguous",
            format!(
                "{ambiguous_encoders} encoder ids have several rows with different labels: their labels are not used"
            ),
        ));
    }

    let submissions_in_process = submissions.len() as u64;
    let numbers = |s: &Submission| (s.start, s.end(), s.id, s.encoder, s.command_buffer, s.latency);
    // Rows that share every number are told apart by their texts, so that the order of the file's rows counts nowhere.
    submissions.sort_unstable_by(|a, b| {
        numbers(a)
            .cmp(&numbers(b))
            .then_with(|| names.get(a.channel).cmp(names.get(b.channel)))
            .then_with(|| labels.texts_of(a.label, &names).cmp(&labels.texts_of(b.label, &names)))
    });
    let window = resolve_window(&input.options.window, &submissions)?;
    let mut outside = (0u64, 0u64);
    if let Some(window) = window {
        submissions.retain(|submission| {
            let inside = submission.start >= window.from && submission.start < window.to;
            if !inside {
                outside.0 += rows_each;
                outside.1 = outside.1.saturating_add(submission.duration.0);
            }
            inside
        });
        if outside.0 > 0 {
            left_out.add(Reason::OutsideWindow, outside.0, Some(Nanos(outside.1)));
        }
    }
    let first = submissions.first().map(|submission| submission.start);
    let last = submissions.iter().map(Submission::end).max();
    let (Some(first), Some(last)) = (first, last) else {
        let process = shown(&selection.shown);
        return Err(if outside.0 > 0 {
            Error::unfit(format!("no submission of {process} starts inside the window")).with_help(
                "times count from the start of the recording; widen --from and --to, or shorten --skip-first",
            )
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
    let window = window.map_or(Window { from: first, to: last }, |window| Window {
        from: window.from,
        to: if window.to == OPEN_END { last } else { window.to },
    });

    let encoders = encoder_list.map(|listed| {
        listed
            .into_iter()
            .map(|(id, encoder)| Encoder {
                id,
                label: encoder.label,
                cpu_encode: encoder.cpu_encode,
                has_gpu_rows: with_gpu_rows.contains(&id),
            })
            .collect()
    });
    let gpu = run
        .gpu
        .or_else(|| {
            gpu_names
                .iter()
                .max_by_key(|(id, count)| (**count, std::cmp::Reverse(names.get(**id))))
                .map(|(id, _)| *id)
        })
        .map(|id| names.get(id).to_owned());
    let (shader_samples, shader_sampled_span) = shader_samples(run, texts, &selection);
    Ok(Trace {
        run: run.number,
        process: selection.shown.clone(),
        timing,
        gpu,
        labels: labels.all,
        submissions,
        encoders,
        window,
        submissions_in_process,
        rows_read: table.rows,
        left_out,
        cross_check,
        kernels: kernels(run, texts, &selection),
        shader_timeline_rows: run.shader_samples.as_ref().map(|rows| rows.len() as u64),
        shader_samples,
        shader_sampled_span,
        state: state(input, &names, window),
        notes: input.recording.notes.iter().cloned().chain(notes).collect(),
        fingerprint: fingerprint.finish(),
        names,
    })
}

/// The labels of a trace: those of the timing table's own rows, then what the encoders list adds. There can be as many
/// as encoders, when a program numbers its labels.
struct Labels<'a> {
    texts: &'a Texts,
    all: Vec<Label>,
    added: HashMap<Label, LabelId>,
}

impl<'a> Labels<'a> {
    fn new(texts: &'a Texts) -> Self {
        Labels {
            texts,
            all: texts.labels().to_vec(),
            added: HashMap::new(),
        }
    }

    fn id(&mut self, label: Label) -> LabelId {
        if let Some(id) = self.texts.label_id(&label) {
            return id;
        }
        let next = LabelId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let id = *self.added.entry(label.clone()).or_insert(next);
        if id == next {
            self.all.push(label);
        }
        id
    }

    /// What a label says, to order by.
    fn texts_of<'n>(&self, id: LabelId, names: &'n Names) -> Option<(&'n str, &'n str, bool)> {
        match self.all.get(usize::try_from(id.0).ok()?)? {
            Label::Known {
                command_buffer,
                encoder,
                coalesced,
            } => Some((names.get(*command_buffer), names.get(*encoder), *coalesced)),
            Label::NoEncoder | Label::Ambiguous => None,
        }
    }
}

struct ListedEncoder {
    label: LabelId,
    command_buffer: Option<crate::model::CommandBufferId>,
    cpu_encode: Option<Nanos>,
}

/// The rows of the encoders list that belong to the process; `None` when there are none.
fn encoder_labels<'a>(
    input: &RunInput<'a>,
    selection: &Selection,
) -> Option<Vec<&'a crate::tables::encoders::EncoderRow>> {
    let texts = &input.recording.texts;
    let rows: Vec<_> = input
        .run
        .encoders
        .as_ref()?
        .iter()
        .filter(|row| belongs(texts, selection, row.process))
        .collect();
    (!rows.is_empty()).then_some(rows)
}

/// Whether a row of another table is of the chosen process: by pid where it has one, since names vary.
fn belongs(texts: &Texts, selection: &Selection, process: Option<ProcessId>) -> bool {
    if selection.all {
        return true;
    }
    let Some(id) = process else { return false };
    if selection.ids.contains(&id) {
        return true;
    }
    let pid = texts.get_process(id).and_then(|process| process.pid);
    pid.is_some()
        && selection
            .ids
            .iter()
            .any(|id| texts.get_process(*id).and_then(|process| process.pid) == pid)
}

/// Submissions of the process with usable times; the rest is counted.
fn of_process<'a>(
    table: &'a TimingTable,
    selection: &Selection,
    timing: Timing,
    recorded: Option<Nanos>,
    left_out: &mut LeftOut,
    notes: &mut Vec<Note>,
) -> Vec<&'a Measured> {
    let rows = if timing == Timing::Points { 2 } else { 1 };
    let mut counted = Vec::new();
    let mut late = 0u64;
    for measured in &table.measured {
        let chosen = selection.all || measured.process.is_some_and(|id| selection.ids.contains(&id));
        let duration = Some(measured.submission.duration);
        // The recording's length is written in whole µs.
        let after = recorded.is_some_and(|length| measured.submission.end().0 > length.0.saturating_add(1_000));
        let reason = if after {
            late += u64::from(chosen);
            Reason::Invalid
        } else if selection.all {
            counted.push(measured);
            continue;
        } else if !measured.mapped {
            Reason::NoMapping
        } else if measured.process.is_none() {
            Reason::NoProcess
        } else if !chosen {
            Reason::OtherProcess
        } else {
            counted.push(measured);
            continue;
        };
        left_out.add(reason, rows, duration);
    }
    if late > 0 {
        notes.push(Note::warning(
            "ends_after_recording",
            format!("{late} submissions of the process end after the recording: they are left out as invalid"),
        ));
    }
    counted
}

/// Leaves out rows that repeat a shallower row of the same process, channel and encoder.
fn without_nested<'a>(mut counted: Vec<&'a Measured>, timing: Timing, left_out: &mut LeftOut) -> Vec<&'a Measured> {
    if timing == Timing::Points || counted.iter().all(|measured| measured.depth == 0) {
        return counted;
    }
    type Key = (Option<ProcessId>, NameId, EncoderId);
    let key = |measured: &Measured| -> Option<Key> {
        Some((
            measured.process,
            measured.submission.channel,
            measured.submission.encoder?,
        ))
    };
    let deep: BTreeSet<Key> = counted
        .iter()
        .filter(|measured| measured.depth > 0)
        .filter_map(|measured| key(measured))
        .collect();
    let mut groups: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (at, measured) in counted.iter().enumerate() {
        if let Some(key) = key(measured).filter(|key| deep.contains(key)) {
            groups.entry(key).or_default().push(at);
        }
    }
    let mut nested = vec![false; counted.len()];
    for group in groups.into_values() {
        mark_nested(&counted, group, &mut nested);
    }
    let mut flags = nested.iter();
    counted.retain(|measured| {
        let nested = flags.next().copied().unwrap_or(false);
        if nested {
            left_out.add(Reason::Nested, 1, Some(measured.submission.duration));
        }
        !nested
    });
    counted
}

/// A row is nested when a row of less depth begins no later and ends no earlier. Depth by depth, with the latest
/// end among shallower rows up to a start kept in a Fenwick tree: n log n also when everything overlaps.
fn mark_nested(rows: &[&Measured], mut group: Vec<usize>, nested: &mut [bool]) {
    let span = |at: usize| {
        rows.get(at).map_or((0, 0, 0), |row| {
            (row.submission.start.0, row.submission.end().0, row.depth)
        })
    };
    let mut starts: Vec<u64> = group.iter().map(|at| span(*at).0).collect();
    starts.sort_unstable();
    starts.dedup();
    let rank = |start: u64| starts.partition_point(|other| *other < start) + 1;
    let mut latest = vec![0u64; starts.len() + 1];
    group.sort_by_key(|at| span(*at).2);
    for level in group.chunk_by(|a, b| span(*a).2 == span(*b).2) {
        for at in level {
            let (start, end, _) = span(*at);
            let (mut place, mut found) = (rank(start), 0);
            while place > 0 {
                found = found.max(latest.get(place).copied().unwrap_or(0));
                place &= place - 1;
            }
            // `found` is an end plus one, so that 0 means none.
            if found > end
                && let Some(flag) = nested.get_mut(*at)
            {
                *flag = true;
            }
        }
        for at in level {
            let (start, end, _) = span(*at);
            let mut place = rank(start);
            while let Some(slot) = latest.get_mut(place) {
                *slot = (*slot).max(end + 1);
                place += place & place.wrapping_neg();
            }
        }
    }
}

/// Holds both timing tables against each other, by submission id.
fn check(intervals: &[&Measured], points: &[&Measured]) -> CrossCheck {
    let sorted = |rows: &[&Measured]| {
        let mut sorted: Vec<_> = rows
            .iter()
            .filter_map(|row| Some((row.submission.id?, row.submission.start.0, row.submission.duration.0)))
            .collect();
        sorted.sort_unstable();
        sorted
    };
    let (intervals, points) = (sorted(intervals), sorted(points));
    let (mut left, mut right) = (intervals.iter().peekable(), points.iter().peekable());
    let mut result = CrossCheck::default();
    let mut disputed = 0u64;
    loop {
        match (left.peek().copied(), right.peek().copied()) {
            (None, None) => break,
            (Some(a), Some(b)) if a.0 == b.0 => {
                if a.1.abs_diff(b.1) > TICK || (a.1 + a.2).abs_diff(b.1 + b.2) > TICK {
                    result.differ += 1;
                    disputed = disputed.saturating_add(a.2.max(b.2));
                } else {
                    result.both += 1;
                }
                left.next();
                right.next();
            }
            (Some(a), b) if b.is_none_or(|b| a.0 < b.0) => {
                result.only_intervals += 1;
                disputed = disputed.saturating_add(a.2);
                left.next();
            }
            (_, Some(b)) => {
                result.only_points += 1;
                disputed = disputed.saturating_add(b.2);
                right.next();
            }
            (Some(_), None) => break,
        }
    }
    result.disputed = Nanos(disputed);
    result
}

/// A window without an end, until the last submission is known.
const OPEN_END: Timestamp = Timestamp(u64::MAX);

fn resolve_window(rule: &WindowRule, submissions: &[Submission]) -> Result<Option<Window>> {
    if *rule == WindowRule::default() {
        return Ok(None);
    }
    let Some(first) = submissions.first() else {
        return Ok(None);
    };
    let skipped = rule.skip_first.map(|skip| first.start + skip);
    let from = rule.from.max(skipped).unwrap_or(first.start);
    let to = rule.to.unwrap_or(OPEN_END);
    if from >= to {
        return Err(Error::unfit(format!(
            "the window is empty: it begins at {} ns and ends at {} ns",
            from.0, to.0
        ))
        .with_help("--to must lie after --from and after what --skip-first leaves"));
    }
    Ok(Some(Window { from, to }))
}

fn kernels(run: &RunTables, texts: &Texts, selection: &Selection) -> Option<Vec<Kernel>> {
    let mut kernels = BTreeSet::new();
    for row in run
        .shaders
        .as_ref()?
        .iter()
        .filter(|row| belongs(texts, selection, row.process))
    {
        let name = |id: Option<NameId>| id.map_or("", |id| without_id(texts.names.get(id)));
        let (function, pipeline) = (name(row.name), name(row.pipeline));
        if function.is_empty() && pipeline.is_empty() {
            continue;
        }
        let function = if function.is_empty() { pipeline } else { function };
        let pipeline = if pipeline.is_empty() { function } else { pipeline };
        kernels.insert(Kernel {
            function: function.to_owned(),
            pipeline: pipeline.to_owned(),
        });
    }
    Some(kernels.into_iter().collect())
}

fn shader_samples(run: &RunTables, texts: &Texts, selection: &Selection) -> (Vec<ShaderSamples>, Option<Window>) {
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut span: Option<Window> = None;
    for row in run
        .shader_samples
        .iter()
        .flatten()
        .filter(|row| belongs(texts, selection, row.process))
    {
        let (Some(start), Some(duration)) = (row.start, row.duration) else {
            continue;
        };
        let (rows, sampled) = by_name
            .entry(row.name.map_or("", |id| without_id(texts.names.get(id))))
            .or_default();
        *rows += 1;
        *sampled = sampled.saturating_add(duration);
        let (from, to) = (Timestamp(start), Timestamp(start) + Nanos(duration));
        span = Some(span.map_or(Window { from, to }, |span| Window {
            from: span.from.min(from),
            to: span.to.max(to),
        }));
    }
    let mut samples: Vec<ShaderSamples> = by_name
        .into_iter()
        .map(|(name, (rows, sampled))| ShaderSamples {
            name: name.to_owned(),
            rows,
            sampled: Nanos(sampled),
        })
        .collect();
    samples.sort_by(|a, b| b.sampled.cmp(&a.sampled).then_with(|| a.name.cmp(&b.name)));
    (samples, span)
}

fn state(input: &RunInput<'_>, names: &Names, window: Window) -> RecordingState {
    let contents = input.contents();
    RecordingState {
        end_reason: contents.and_then(|run| run.end_reason.clone()),
        start_date: contents.and_then(|run| run.start_date.clone()),
        duration: contents.and_then(|run| run.duration),
        instruments_version: contents.and_then(|run| run.instruments_version.clone()),
        os_version: contents.and_then(|run| run.os_version.clone()),
        shader_timeline: contents.and_then(|run| run.shader_timeline.clone()),
        thermal: state_times(&input.run.thermal, names, window),
        performance: state_times(&input.run.performance, names, window),
    }
}

fn state_times(rows: &[StateRow], names: &Names, window: Window) -> Vec<StateTime> {
    let mut times: BTreeMap<(&str, bool), u64> = BTreeMap::new();
    for row in rows {
        let (Some(start), Some(duration), Some(state)) = (row.start, row.duration, row.state) else {
            continue;
        };
        let from = Timestamp(start).max(window.from);
        let to = (Timestamp(start) + Nanos(duration)).min(window.to);
        if to > from {
            *times.entry((names.get(state), row.induced)).or_default() += to.since(from).0;
        }
    }
    let mut times: Vec<StateTime> = times
        .into_iter()
        .map(|((state, induced), ns)| StateTime {
            state: state.to_owned(),
            induced,
            time: Nanos(ns),
        })
        .collect();
    times.sort_by(|a, b| {
        b.time
            .cmp(&a.time)
            .then_with(|| (&a.state, a.induced).cmp(&(&b.state, b.induced)))
    });
    times
}
