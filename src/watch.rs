//! Watching a running program: short recordings one after the other, each attributed and deleted before the next.
//!
//! What goes in is a process and how long a window is; what comes out is one [`WindowReport`] after the other. Recording
//! costs more time than it records, so each report says how much of the time was recorded. A window is compared with
//! the one before it by GPU time per recorded second, because no two windows are exactly equally long.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::analysis::{Request, SideRequest, analyse};
use crate::attribution::Group;
use crate::compare::{Trial, TrialOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::join::{JoinOptions, ProcessChoice};
use crate::model::{Nanos, Process, Severity};
use crate::recording::ReadOptions;
use crate::xctrace::{Program, ShortRecording, XctraceOptions, record};

/// What the rows of a window are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WatchBy {
    /// Phases.
    #[default]
    Phases,
    /// Duration buckets.
    Buckets,
}

impl WatchBy {
    /// `phases` or `buckets`.
    pub fn name(self) -> &'static str {
        match self {
            WatchBy::Phases => "phases",
            WatchBy::Buckets => "buckets",
        }
    }

    fn groups(self, trial: &Trial) -> &[Group] {
        match self {
            WatchBy::Phases => &trial.phases,
            WatchBy::Buckets => &trial.buckets,
        }
    }
}

/// How a program is watched.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// How long each recording is.
    pub window: Duration,
    /// How many; `None`: until it is told to stop, or the program ends.
    pub windows: Option<u32>,
    /// Rows.
    pub by: WatchBy,
    /// Instruments template.
    pub template: String,
    /// Buckets and kernel families.
    pub trial: TrialOptions,
    /// Recordings stay in this folder instead of being deleted.
    pub keep: Option<PathBuf>,
    /// How xctrace is run.
    pub xctrace: XctraceOptions,
}

/// One row of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchRow {
    /// Phase or bucket.
    pub key: String,
    /// Submissions.
    pub submissions: u64,
    /// Sum of durations.
    pub total: Nanos,
    /// Length of the union.
    pub busy: Nanos,
    /// Percent of the window's total; `None` when that is 0.
    pub share_pct: Option<f64>,
    /// Change of GPU time per recorded second to the window before, percent; `None` when that had none of it.
    pub change_pct: Option<f64>,
}

/// A window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowReport {
    /// Its number, from 1.
    pub number: u32,
    /// Whose it is; `None` when nothing of the window could be counted.
    pub process: Option<Process>,
    /// How long this recording was.
    pub recorded: Nanos,
    /// The same of all so far.
    pub recorded_in_all: Nanos,
    /// Time since the watch began.
    pub elapsed: Nanos,
    /// Sum of durations.
    pub total: Nanos,
    /// Length of the union.
    pub busy: Nanos,
    /// Rows, most time first.
    pub rows: Vec<WatchRow>,
    /// What limits this window's numbers.
    pub warnings: Vec<String>,
}

/// Why a watch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// All windows were recorded.
    AllWindows,
    /// It was told to.
    Stopped,
    /// The program ended, in these words.
    ProgramEnded(String),
}

/// Who is watched.
#[derive(Debug)]
pub enum Watched {
    /// A program that runs already: it is left running.
    Process(u32),
    /// A program that was started for it: it is ended with the watch.
    Program(Program),
}

impl Watched {
    fn pid(&self) -> u32 {
        match self {
            Watched::Process(pid) => *pid,
            Watched::Program(program) => program.pid(),
        }
    }

    fn ended(&mut self) -> Option<String> {
        match self {
            Watched::Process(_) => None,
            Watched::Program(program) => program.ended(),
        }
    }
}

/// Watches. `stop` is asked between steps; `show` is given each window, and may end the watch.
///
/// Nothing of a window that was not completed is told or kept.
///
/// # Errors
/// A folder cannot be written, or a recording fails while the program is still running.
pub fn watch(
    mut watched: Watched,
    options: &WatchOptions,
    stop: impl Fn() -> bool,
    mut show: impl FnMut(&WindowReport) -> ControlFlow<()>,
) -> Result<WatchEnd> {
    let scratch = tempfile::tempdir().map_err(|error| Error::io("make a folder for recordings", error))?;
    if let Some(folder) = &options.keep {
        let failed = |error| Error::io("make the folder", error).with_origin(folder.display().to_string());
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let begun = Instant::now();
    let mut in_all = Nanos(0);
    let mut before: Option<Window> = None;
    for number in 1..=options.windows.unwrap_or(u32::MAX) {
        if stop() {
            return Ok(WatchEnd::Stopped);
        }
        if let Some(how) = watched.ended() {
            return Ok(WatchEnd::ProgramEnded(how));
        }
        let bundle = scratch.path().join(format!("window-{number}.trace"));
        let recording = ShortRecording {
            pid: watched.pid(),
            length: options.window,
            template: &options.template,
            output: bundle.clone(),
        };
        let measured = record(&recording, &options.xctrace)
            .and_then(|warning| Window::read(&bundle, watched.pid(), warning, options));
        let window = match measured {
            Ok(window) => window,
            Err(_) if stop() => return Ok(WatchEnd::Stopped),
            Err(error) => match watched.ended() {
                // It went away during the recording, which is no fault.
                Some(how) => return Ok(WatchEnd::ProgramEnded(how)),
                None => return Err(error),
            },
        };
        if stop() {
            return Ok(WatchEnd::Stopped);
        }
        match &options.keep {
            Some(folder) => keep(&bundle, folder, number)?,
            None => {
                let failed = |error| Error::io("delete a recording", error).with_origin(bundle.display().to_string());
                fs::remove_dir_all(&bundle).map_err(failed)?;
            }
        }
        in_all.0 = in_all.0.saturating_add(window.recorded.0);
        let report = WindowReport {
            number,
            process: window.process.clone(),
            recorded: window.recorded,
            recorded_in_all: in_all,
            elapsed: nanos(begun.elapsed()),
            total: window.total,
            busy: window.busy,
            rows: window.rows(before.as_ref()),
            warnings: window.warnings.clone(),
        };
        before = Some(window);
        if show(&report).is_break() {
            return Ok(WatchEnd::Stopped);
        }
    }
    Ok(WatchEnd::AllWindows)
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Moves a recording to where it stays, under a name that is not there yet.
fn keep(bundle: &Path, folder: &Path, number: u32) -> Result<()> {
    let free = (0u32..).map(|again| match again {
        0 => folder.join(format!("window-{number}.trace")),
        again => folder.join(format!("window-{number}-{again}.trace")),
    });
    let free = free.into_iter().find(|path| path.symlink_metadata().is_err());
    let target = free.unwrap_or_else(|| folder.join("window.trace"));
    // Across file systems a rename is refused.
    let moved = fs::rename(bundle, &target).or_else(|_| copy(bundle, &target));
    moved.map_err(|error| Error::io("keep a recording", error).with_origin(target.display().to_string()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// What one recording holds.
struct Window {
    process: Option<Process>,
    recorded: Nanos,
    total: Nanos,
    busy: Nanos,
    groups: Vec<(String, u64, Nanos, Nanos)>,
    warnings: Vec<String>,
}

impl Window {
    fn read(bundle: &Path, pid: u32, warning: Option<String>, options: &WatchOptions) -> Result<Window> {
        let request = Request {
            a: SideRequest {
                inputs: vec![bundle.to_owned()],
                join: JoinOptions {
                    process: ProcessChoice::Pid(pid),
                    ..JoinOptions::default()
                },
                ..SideRequest::default()
            },
            trial: options.trial.clone(),
            read: ReadOptions {
                xctrace: XctraceOptions {
                    cache: None,
                    ..options.xctrace.clone()
                },
                ..ReadOptions::default()
            },
            ..Request::default()
        };
        let mut warnings: Vec<String> = warning.into_iter().collect();
        let outcome = match analyse(&request, &()) {
            Ok(outcome) => outcome,
            // A window in which the program did nothing on the GPU is a window all the same.
            Err(error) if matches!(error.kind(), ErrorKind::Unfit(_)) => {
                warnings.push(error.kind().to_string());
                return Ok(Window {
                    process: None,
                    recorded: nanos(options.window),
                    total: Nanos(0),
                    busy: Nanos(0),
                    groups: Vec::new(),
                    warnings,
                });
            }
            Err(error) => return Err(error),
        };
        let comparison = outcome.comparison;
        let told = comparison
            .notes
            .iter()
            .filter(|note| note.severity == Severity::Warning);
        warnings.extend(told.map(|note| note.text.clone()));
        let Some(trial) = comparison.a.trials.first() else {
            return Err(Error::unfit("a recording without a trial"));
        };
        let group = |group: &Group| {
            let stats = &group.stats;
            (group.key.clone(), stats.submissions, stats.total, stats.busy)
        };
        Ok(Window {
            process: Some(trial.process.clone()),
            recorded: trial.state.duration.unwrap_or(nanos(options.window)),
            total: trial.all.total,
            busy: trial.all.busy,
            groups: options.by.groups(trial).iter().map(group).collect(),
            warnings,
        })
    }

    /// Its rows, held against those of the window before.
    fn rows(&self, before: Option<&Window>) -> Vec<WatchRow> {
        let rate = |total: Nanos, recorded: Nanos| total.0 as f64 / recorded.0.max(1) as f64;
        let earlier: BTreeMap<&str, f64> = before
            .iter()
            .flat_map(|window| {
                window
                    .groups
                    .iter()
                    .map(|(key, _, total, _)| (key.as_str(), rate(*total, window.recorded)))
            })
            .collect();
        let mut rows: Vec<WatchRow> = self
            .groups
            .iter()
            .map(|(key, submissions, total, busy)| WatchRow {
                key: key.clone(),
                submissions: *submissions,
                total: *total,
                busy: *busy,
                share_pct: (self.total.0 > 0).then(|| 100.0 * total.0 as f64 / self.total.0 as f64),
                change_pct: earlier
                    .get(key.as_str())
                    .filter(|earlier| **earlier > 0.0)
                    .map(|earlier| 100.0 * (rate(*total, self.recorded) / earlier - 1.0)),
            })
            .collect();
        rows.sort_by(|x, y| y.total.cmp(&x.total).then_with(|| x.key.cmp(&y.key)));
        rows
    }
}
