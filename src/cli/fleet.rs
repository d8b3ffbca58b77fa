//! Where trials go that are converted for a fleet: a folder of Parquet files, to which each conversion adds, or one CSV file.
//!
//! In the folder each file is whole or not there, and a trial's row in `trials` comes after its submissions.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::layers::Layers;
use super::output::{check, folder_of, replace, resolved, scratch};
use super::progress::Bar;
use super::selection::{UnitArgs, parse_buckets};
use super::{Console, ExitStatus, print_warning};
use crate::analysis::{JoinedTrial, Request, each_trial};
use crate::attribution::{Buckets, PhaseNames};
use crate::convert::parquet::{self, Table};
use crate::convert::submissions_csv;
use crate::convert::trials::{FleetTrial, SetColumn, distinct};
use crate::error::{Error, Result};

/// How submissions are written as rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FleetFormat {
    /// Submissions and trials as a folder of Parquet files, to which each conversion adds: DuckDB, polars, pyarrow, Spark
    Parquet,
    /// Submissions as comma-separated values
    Csv,
}

impl FleetFormat {
    /// The format of a file by the end of its name, where that is its own.
    pub(super) fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        extension.eq_ignore_ascii_case("csv").then_some(FleetFormat::Csv)
    }
}

/// What is said of submissions as rows.
#[derive(Debug, Args)]
pub(super) struct FleetArgs {
    /// A column of every trial, such as commit=0c1f2ab or machine=mini-1; can be given several times
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Parquet and CSV")]
    pub(super) set: Vec<SetColumn>,
    #[command(flatten)]
    counts: UnitArgs,
    /// Bucket edges [default: 2us,8us,32us,80us]
    #[arg(long, value_name = "TIMES", help_heading = "Parquet and CSV")]
    buckets: Option<String>,
}

impl FleetArgs {
    /// Takes from the configuration what the command line does not say.
    pub(super) fn fill(&mut self, layers: &mut Layers) {
        layers.fill_counts(&mut self.counts, None);
        layers.fill_buckets(&mut self.buckets);
    }

    /// Puts units and buckets into a request.
    ///
    /// # Errors
    /// They make no sense.
    pub(super) fn complete(&self, request: &mut Request) -> Result<()> {
        for side in std::iter::once(&mut request.a).chain(&mut request.b) {
            side.units = self.counts.each().to_vec();
        }
        self.counts.check(&request.a, request.b.as_ref())?;
        request.unit = self.counts.name();
        request.trial.buckets = parse_buckets(self.buckets.as_deref())?;
        distinct(&self.set)
    }

    /// Refuses what another format has no place for.
    ///
    /// # Errors
    /// The first such option.
    pub(super) fn refuse(&self, format: &str) -> Result<()> {
        let given = [
            ("--set", !self.set.is_empty()),
            ("--tokens", !self.counts.tokens.is_empty()),
            ("--units", !self.counts.units.is_empty()),
            ("--unit", self.counts.unit.is_some()),
            ("--buckets", self.buckets.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Error::usage(format!("{option}: {format} has no place for it"))
                .with_help("leave it out, or use --to parquet or csv")),
            None => Ok(()),
        }
    }
}

/// Where the trials of a conversion go, checked before the work starts.
pub(super) enum FleetOutput {
    /// A folder of Parquet files.
    Folder(FleetFolder),
    /// One CSV file.
    Csv(PathBuf),
}

impl FleetOutput {
    /// A folder to add to, or a file to replace.
    ///
    /// # Errors
    /// There is none, it is an input, not of its kind, or cannot be written.
    pub(super) fn new(format: FleetFormat, output: Option<&Path>, inputs: &[&PathBuf]) -> Result<Self> {
        match (format, output) {
            (FleetFormat::Parquet, Some(folder)) => FleetFolder::new(folder, inputs).map(FleetOutput::Folder),
            (FleetFormat::Csv, Some(file)) => {
                check(file, inputs)?;
                Ok(FleetOutput::Csv(file.to_owned()))
            }
            (FleetFormat::Parquet, None) => {
                Err(Error::usage("parquet is a folder of files").with_help("name it with -o FOLDER"))
            }
            (FleetFormat::Csv, None) => {
                Err(Error::usage("no file is given for the rows").with_help("name it with -o FILE"))
            }
        }
    }

    /// Converts the trials of a request, one after the other.
    ///
    /// # Errors
    /// An input that cannot be used, something that cannot be written.
    pub(super) fn write(&self, request: &Request, set: &[SetColumn], console: Console) -> Result<ExitStatus> {
        let bar = Bar::new(console);
        let phase_names = |trial: &JoinedTrial| request.compare.label_map.side(trial.side);
        let buckets = &request.trial.buckets;
        let missing = match self {
            FleetOutput::Folder(folder) => {
                let mut added = 0u64;
                let done = each_trial(request, &bar, &mut |trial| {
                    folder.add(&fleet_trial(request, set, &trial), &phase_names(&trial), buckets)?;
                    added += 1;
                    Ok(())
                });
                if done.is_err() && added > 0 {
                    let trials = if added == 1 { "trial was" } else { "trials were" };
                    let text =
                        format!("{added} {trials} added before the error; converted again, each takes its own place");
                    print_warning(console, &text);
                }
                done
            }
            FleetOutput::Csv(file) => whole_file(file, |out| {
                let failed = |error| Error::io("write it", error).with_origin(file.display().to_string());
                submissions_csv::write_header(set, out).map_err(failed)?;
                let missing = each_trial(request, &bar, &mut |trial| {
                    let of_fleet = fleet_trial(request, set, &trial);
                    submissions_csv::write_trial(&of_fleet, &phase_names(&trial), buckets, out).map_err(failed)
                })?;
                out.flush().map_err(failed)?;
                Ok(missing)
            }),
        }?;
        bar.clear();
        for (input, error) in &missing {
            print_warning(console, &format!("{input} is missing: {}", error.kind()));
        }
        Ok(if missing.is_empty() {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        })
    }
}

fn fleet_trial<'a>(request: &'a Request, set: &'a [SetColumn], trial: &'a JoinedTrial) -> FleetTrial<'a> {
    FleetTrial {
        side: trial.side,
        name: &trial.name,
        input: &trial.input,
        unit: trial.units.map(|_| request.unit.as_str()),
        units: trial.units,
        set,
        trace: &trial.trace,
    }
}

/// Replaces a file by what `work` writes, unless that fails.
fn whole_file<T>(file: &Path, work: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let mut worked = None;
    let written = replace(file, |out| {
        let result = work(&mut BufWriter::new(out));
        let failed = result.is_err();
        worked = Some(result);
        if failed {
            // Said by `worked`; here it keeps the file as it was.
            return Err(io::ErrorKind::Other.into());
        }
        Ok(())
    });
    match worked {
        Some(Ok(done)) => written.map(|()| done),
        Some(Err(error)) => Err(error),
        None => Err(written.err().unwrap_or_else(|| Error::unfit("nothing was written"))),
    }
}

/// A folder that trials are added to.
pub(super) struct FleetFolder {
    folder: PathBuf,
}

impl FleetFolder {
    /// Checks that the folder is none that is read, and that something can be written there. Nothing is made of it yet.
    ///
    /// # Errors
    /// It is a file, an input or inside of one; nothing can be written there.
    fn new(folder: &Path, inputs: &[&PathBuf]) -> Result<Self> {
        let origin = folder.display().to_string();
        if fs::symlink_metadata(folder).is_ok() && !folder.is_dir() {
            return Err(Error::usage(format!("--output {origin}: this is no folder"))
                .with_help("name a folder, new or with trials of earlier conversions: they stay"));
        }
        for table in [Table::Submissions, Table::Trials] {
            let part = folder.join(table.name());
            if fs::symlink_metadata(&part).is_ok() && !part.is_dir() {
                return Err(
                    Error::usage(format!("--output {origin}: {} in it is no folder", table.name()))
                        .with_help("name a folder, new or with trials of earlier conversions: they stay"),
                );
            }
        }
        for input in inputs {
            let (ours, theirs) = (resolved(folder), input.canonicalize().ok());
            if matches!((ours, theirs), (Some(ours), Some(theirs)) if ours.starts_with(&theirs)) {
                return Err(Error::usage(format!("--output {origin}: this is an input, or in one"))
                    .with_help("write to another folder"));
            }
        }
        // Written and taken away again: better to fail now than after the work.
        let probe = if folder.is_dir() {
            folder.join("probe")
        } else {
            folder_of(folder).join("probe")
        };
        scratch(&probe).and_then(|scratch| scratch.close()).map_err(|error| {
            Error::io("write there", error)
                .with_origin(&origin)
                .with_help("choose a folder that you may write to, or a new one in such a folder")
        })?;
        Ok(FleetFolder {
            folder: folder.to_owned(),
        })
    }

    /// Adds a trial, or puts it in the place of the same one.
    ///
    /// # Errors
    /// Something could not be written.
    fn add(&self, trial: &FleetTrial<'_>, phase_names: &PhaseNames, buckets: &Buckets) -> Result<()> {
        replace(&self.place(Table::Submissions, trial)?, |out| {
            parquet::write_submissions(trial, phase_names, buckets, out)
        })?;
        replace(&self.place(Table::Trials, trial)?, |out| {
            parquet::write_trial(trial, out)
        })
    }

    /// Where a trial's file of a table stands; its folder is there.
    fn place(&self, table: Table, trial: &FleetTrial<'_>) -> Result<PathBuf> {
        let mut file = self.folder.clone();
        file.extend(parquet::place(table, trial).split('/'));
        fs::create_dir_all(folder_of(&file))
            .map_err(|error| Error::io("make a folder there", error).with_origin(self.folder.display().to_string()))?;
        Ok(file)
    }
}
