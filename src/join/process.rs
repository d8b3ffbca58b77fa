//! Which process counts: the recorded one, or the one that the user names.

use std::collections::{BTreeMap, BTreeSet};

use super::RunInput;
use crate::error::{Error, Result};
use crate::model::{Note, Process, Timing};
use crate::recording::{TimingTable, shown};
use crate::tables::{ProcessId, Table, Texts, execution_points, gpu_intervals};

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

/// The processes that count, and how they are shown.
pub(super) struct Selection {
    pub(super) all: bool,
    /// In every table: a process that another table knows by another name has its pid all the same.
    pub(super) ids: BTreeSet<ProcessId>,
    pub(super) shown: Process,
    pub(super) notes: Vec<Note>,
    /// Of all rows of the table, whosever they are.
    pub(super) fingerprint: u64,
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

/// The processes with rows, those with most time first.
fn candidates(texts: &Texts, table: &TimingTable) -> Vec<Candidate> {
    let mut candidates: BTreeMap<(Option<u32>, String), Candidate> = BTreeMap::new();
    for rows in table.processes() {
        let Some(id) = rows.process() else { continue };
        let Some(process) = texts.get_process(id) else { continue };
        let key = match process.pid {
            Some(pid) => (Some(pid), String::new()),
            None => (None, process.name.clone()),
        };
        let candidate = candidates.entry(key).or_default();
        candidate.ids.insert(id);
        candidate.names.insert(process.name.clone());
        candidate.pid = process.pid;
        candidate.rows += rows.submissions().len() as u64;
        let total: u128 = rows.provenances().iter().map(|known| known.total).sum();
        candidate.ns = candidate.ns.saturating_add(u64::try_from(total).unwrap_or(u64::MAX));
    }
    let mut candidates: Vec<Candidate> = candidates.into_values().collect();
    candidates.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.process().cmp(&b.process())));
    candidates
}

pub(super) fn select(input: &RunInput<'_>, table: &TimingTable, timing: Timing) -> Result<Selection> {
    let schema = match timing {
        Timing::Intervals | Timing::Live => gpu_intervals::IntervalRow::SCHEMA,
        Timing::Points => execution_points::PointRow::SCHEMA,
    };
    if table.rows == 0 {
        return Err(
            Error::unfit(format!("table `{schema}` has 0 rows: nothing was recorded in it")).with_help(
                "record again; if it stays empty, this GPU work is not instrumented (Metal 4 queues, for one)",
            ),
        );
    }
    let fingerprint = table.fingerprint();
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
            ids: everywhere(&input.recording.texts, &chosen),
            shown,
            notes,
            fingerprint,
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
            fingerprint,
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
                .filter(|candidate| candidate.names.contains(name) || shown(&candidate.process()) == *name)
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
                .map_err(|error| {
                    Error::usage(format!(
                        "--process {name}: no process is called so, and it is no glob: {error}"
                    ))
                })
                .map_err(|error| {
                    error.with_help(
                        "choose it by its pid; in a glob `*`, `?` and `[…]` are special, and `[[]` is a bracket",
                    )
                })?;
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
                let chosen: Vec<Candidate> = all.iter().filter(is_target).cloned().collect();
                match chosen.len() {
                    0 => {}
                    1 => return Ok(found(chosen, None)),
                    several => {
                        return Err(Error::unfit(format!(
                            "{several} processes are called `{}` like the recorded one: {}",
                            target.name,
                            list(&chosen)
                        ))
                        .with_help("choose one by its pid, or all of them by a glob, such as --process 'name*'"));
                    }
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

/// The ids of the chosen processes in every table: those of their rows, and any with one of their pids.
fn everywhere(texts: &Texts, chosen: &[Candidate]) -> BTreeSet<ProcessId> {
    let mut ids: BTreeSet<ProcessId> = chosen
        .iter()
        .flat_map(|candidate| candidate.ids.iter().copied())
        .collect();
    let pids: BTreeSet<u32> = chosen.iter().filter_map(|candidate| candidate.pid).collect();
    let same = |process: &Process| process.pid.is_some_and(|pid| pids.contains(&pid));
    ids.extend(texts.processes().filter(|(_, process)| same(process)).map(|(id, _)| id));
    ids
}

impl Selection {
    /// Whether a row of that process counts.
    pub(super) fn has(&self, process: Option<ProcessId>) -> bool {
        self.all || process.is_some_and(|id| self.ids.contains(&id))
    }
}
