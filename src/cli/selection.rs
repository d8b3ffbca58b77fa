//! Which submissions of which inputs count: the options that every command on trials has.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::values::{ReadArgs, parse_time, parse_units};
use crate::analysis::SideRequest;
use crate::attribution::Buckets;
use crate::config::unit_name;
use crate::error::{Error, Result};
use crate::join::{JoinOptions, ProcessChoice, TimingChoice};
use crate::model::{Nanos, Timestamp, WindowRule, WindowSpan};
use crate::parallel::Jobs;
use crate::recording::ReadOptions;

/// What times are divided by.
#[derive(Debug, Args)]
pub(super) struct UnitArgs {
    /// Tokens per trial: one number, or one per trial (64,64,128); short for --units N --unit token
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with = "units", help_heading = "Units")]
    pub(super) tokens: Vec<u64>,
    /// Units per trial: one number, or one per trial (64,64,128)
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, help_heading = "Units")]
    pub(super) units: Vec<u64>,
    /// What a unit is called [default: token]
    #[arg(long, value_name = "WORD", value_parser = unit_name, conflicts_with = "tokens", help_heading = "Units")]
    pub(super) unit: Option<String>,
    /// Whether the command line has --unit.
    #[arg(skip)]
    pub(super) unit_given: bool,
}

/// Process, timing table and window.
#[derive(Debug, Args)]
pub(super) struct SelectArgs {
    /// Which process: a name, a pid, a glob, or `all` [default: the recorded one]
    #[arg(long, value_name = "NAME|PID|GLOB", help_heading = "What counts")]
    pub(super) process: Option<String>,
    /// Which table the GPU times come from [default: auto]
    #[arg(long, value_name = "TABLE", help_heading = "What counts")]
    pub(super) timing: Option<TimingChoice>,
    /// Count equal work only: signpost:NAME, or quiet:GAP (the longest stretch without a longer pause)
    ///
    /// signpost:NAME is the interval of that name, exactly, of the chosen process (table `os-signpost`); of several
    /// it goes from the first start to the last end, and says so. quiet:GAP is the longest stretch of submissions with
    /// no pause longer than GAP between them, such as quiet:10ms.
    #[arg(long, value_name = "RULE", help_heading = "What counts")]
    pub(super) window: Option<WindowSpan>,
    /// Count submissions that start at or after this time of the recording (1.25s, 800ms)
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) from: Option<Nanos>,
    /// Count submissions that start before this time of the recording
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) to: Option<Nanos>,
    /// Leave out this much after the process's first submission, or the window's with --window
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) skip_first: Option<Nanos>,
}

/// What can be set for one side alone.
#[derive(Debug, Args)]
pub(super) struct SideSelectArgs {
    /// --process of side A
    #[arg(long, value_name = "NAME|PID|GLOB", help_heading = "What counts")]
    pub(super) process_a: Option<String>,
    /// --process of side B
    #[arg(long, value_name = "NAME|PID|GLOB", help_heading = "What counts")]
    pub(super) process_b: Option<String>,
    /// --window of side A
    #[arg(long, value_name = "RULE", help_heading = "What counts")]
    pub(super) window_a: Option<WindowSpan>,
    /// --window of side B
    #[arg(long, value_name = "RULE", help_heading = "What counts")]
    pub(super) window_b: Option<WindowSpan>,
    /// --from of side A
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) from_a: Option<Nanos>,
    /// --from of side B
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) from_b: Option<Nanos>,
    /// --to of side A
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) to_a: Option<Nanos>,
    /// --to of side B
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) to_b: Option<Nanos>,
    /// --skip-first of side A
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) skip_first_a: Option<Nanos>,
    /// --skip-first of side B
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    pub(super) skip_first_b: Option<Nanos>,
}

/// Names of phases across engines.
#[derive(Debug, Args)]
pub(super) struct LabelMapArgs {
    /// Names of phases that are the same on both sides (TOML)
    ///
    /// Each entry is `[[phase]]` with the phase's `name` and a regular expression for side A's phases (`a`), for side
    /// B's (`b`) or both. An expression is held against the phase as the report calls it without the map; the first entry
    /// that fits counts. The report shows how much GPU time each entry took, and what none did.
    #[arg(long, value_name = "FILE", help_heading = "Tables")]
    pub(super) label_map: Option<PathBuf>,
}

/// How inputs are read, and whether all of them are needed.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// Go on without inputs that cannot be used; they are named in every format, and the exit status is 3
    #[arg(long, help_heading = "Reading")]
    pub(super) keep_going: bool,
    /// How many inputs, and files of a folder, are read at once [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Reading")]
    pub(super) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(super) read: ReadArgs,
}

/// What one side's own options override.
#[derive(Default)]
pub(super) struct Own<'a> {
    process: Option<&'a String>,
    window: Option<&'a WindowSpan>,
    from: Option<Nanos>,
    to: Option<Nanos>,
    skip_first: Option<Nanos>,
}

impl UnitArgs {
    /// Units of each trial, or of all.
    pub(super) fn each(&self) -> &[u64] {
        if self.tokens.is_empty() {
            &self.units
        } else {
            &self.tokens
        }
    }

    /// What a unit is called.
    pub(super) fn name(&self) -> String {
        self.unit.clone().unwrap_or_else(|| "token".to_owned())
    }

    /// Refuses a name on the command line for what nothing counts.
    pub(super) fn check(&self, a: &SideRequest, b: Option<&SideRequest>) -> Result<()> {
        if self.unit_given && a.units.is_empty() && b.is_none_or(|b| b.units.is_empty()) {
            return Err(Error::usage("--unit names what --units counts, which is not given")
                .with_help("give the number with --units N"));
        }
        Ok(())
    }
}

/// Bucket edges as they were given, if they were.
pub(super) fn parse_buckets(given: Option<&str>) -> Result<Buckets> {
    given.map_or_else(|| Ok(Buckets::default()), Buckets::parse)
}

impl SelectArgs {
    /// A side of these inputs, as far as its own options do not say otherwise.
    pub(super) fn side(
        &self,
        inputs: Vec<PathBuf>,
        name: Option<String>,
        units: Vec<u64>,
        own: &Own<'_>,
        show_private: bool,
    ) -> Result<SideRequest> {
        let process = own.process.or(self.process.as_ref());
        let window = WindowRule {
            span: own.window.or(self.window.as_ref()).cloned().unwrap_or_default(),
            from: own.from.or(self.from).map(|at| Timestamp(at.0)),
            to: own.to.or(self.to).map(|at| Timestamp(at.0)),
            skip_first: own.skip_first.or(self.skip_first),
        }
        .checked()?;
        once_from_stdin(&inputs)?;
        let process = process.map_or(ProcessChoice::Target, |text| ProcessChoice::parse(text));
        Ok(SideRequest {
            inputs,
            name,
            units,
            join: JoinOptions {
                process,
                window,
                show_private,
            },
        })
    }
}

impl SideSelectArgs {
    /// Those of side A.
    pub(super) fn a(&self) -> Own<'_> {
        Own {
            process: self.process_a.as_ref(),
            window: self.window_a.as_ref(),
            from: self.from_a,
            to: self.to_a,
            skip_first: self.skip_first_a,
        }
    }

    /// Those of side B.
    pub(super) fn b(&self) -> Own<'_> {
        Own {
            process: self.process_b.as_ref(),
            window: self.window_b.as_ref(),
            from: self.from_b,
            to: self.to_b,
            skip_first: self.skip_first_b,
        }
    }
}

impl Own<'_> {
    /// Whether nothing is set.
    pub(super) fn is_empty(&self) -> bool {
        let Own {
            process,
            window,
            from,
            to,
            skip_first,
        } = self;
        process.is_none() && window.is_none() && from.is_none() && to.is_none() && skip_first.is_none()
    }
}

impl ReadingArgs {
    /// As the reader of recordings takes them.
    pub(super) fn options(&self) -> Result<ReadOptions> {
        Ok(ReadOptions {
            jobs: self.jobs.map(Jobs::new).unwrap_or_default(),
            ..self.read.options()?
        })
    }
}

/// Refuses inputs that name standard input twice.
pub(super) fn once_from_stdin<'p>(inputs: impl IntoIterator<Item = &'p PathBuf>) -> Result<()> {
    match inputs.into_iter().filter(|input| input.as_os_str() == "-").count() {
        0 | 1 => Ok(()),
        _ => Err(Error::usage("`-` is given twice: standard input can be read once")),
    }
}
