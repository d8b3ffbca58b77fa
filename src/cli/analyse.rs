//! `compare` and `report`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use super::judging::JudgingArgs;
use super::output::{OutputPlan, to_stdout, width};
use super::progress::Bar;
use super::values::{ReadArgs, parse_time, parse_units};
use super::{Console, ExitStatus, Stop, print_warning};
use crate::analysis::{Outcome, Request, SideRequest, analyse};
use crate::attribution::{Buckets, KernelRules};
use crate::compare::gate::GateResult;
use crate::compare::{Baseline, CompareOptions, TrialOptions};
use crate::error::{Error, Result};
use crate::join::{JoinOptions, ProcessChoice, TimingChoice};
use crate::model::{Nanos, Timestamp, WindowRule};
use crate::parallel::Jobs;
use crate::recording::ReadOptions;
use crate::report::{self, Format, ReportOptions};

const COMPARE_EXAMPLES: &str = "\
Examples:
  trace-attr compare --a hf2q-1 hf2q-2 hf2q-3 --b llama-1 llama-2 llama-3 --tokens 64
  trace-attr compare --a new.trace --b old.trace --tokens-a 64 --tokens-b 128 -o report.md
  trace-attr compare --a new --b old --process 'hf2q*' --skip-first 200ms --buckets 5us,50us,500us

A is what you work on, B what you compare it to: a positive delta means that A takes longer.";

const REPORT_EXAMPLES: &str = "\
Examples:
  trace-attr report exported/ --tokens 64
  trace-attr report run-1.xml.gz run-2.xml.gz --process python --slowest 10
  xcrun xctrace export --input run.trace --xpath '…' | trace-attr report - --format json";

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = super::SUBMISSION, after_long_help = format!("{COMPARE_EXAMPLES}\n\n{}", super::SUBMISSION))]
pub(super) struct CompareArgs {
    /// Trials of side A: what you work on
    #[arg(long, required = true, num_args = 1.., value_name = "INPUT", help_heading = "Sides")]
    a: Vec<PathBuf>,
    /// Trials of side B: what you compare it to
    #[arg(long, required_unless_present = "baseline", num_args = 1.., value_name = "INPUT", help_heading = "Sides")]
    b: Vec<PathBuf>,
    /// Side B as `trace-attr report --format json` stored it
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["b", "tokens_b", "units_b", "process_b", "from_b", "to_b", "skip_first_b"],
        help_heading = "Sides"
    )]
    baseline: Option<PathBuf>,
    /// Name of side A [default: the process]
    #[arg(long, value_name = "NAME", help_heading = "Sides")]
    name_a: Option<String>,
    /// Name of side B [default: the process]
    #[arg(long, value_name = "NAME", help_heading = "Sides")]
    name_b: Option<String>,
    #[command(flatten)]
    shared: SharedArgs,
    #[command(flatten)]
    show: ShowArgs,
    #[command(flatten)]
    per_side: PerSideArgs,
    #[command(flatten)]
    judging: JudgingArgs,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = super::SUBMISSION, after_long_help = format!("{REPORT_EXAMPLES}\n\n{}", super::SUBMISSION))]
pub(super) struct ReportArgs {
    /// Trials of one thing: bundles, folders of exported files, files, or `-`
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Its name [default: the process]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    shared: SharedArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Options of every command that analyses trials.
#[derive(Debug, Args)]
pub(super) struct SharedArgs {
    /// Tokens per trial: one number, or one per trial (64,64,128); short for --units N --unit token
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with = "units", help_heading = "Units")]
    tokens: Vec<u64>,
    /// Units per trial: one number, or one per trial (64,64,128)
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, help_heading = "Units")]
    units: Vec<u64>,
    /// What a unit is called [default: token]
    #[arg(long, value_name = "WORD", value_parser = parse_unit, conflicts_with = "tokens", help_heading = "Units")]
    unit: Option<String>,
    /// Which process: a name, a pid, a glob, or `all` [default: the recorded one]
    #[arg(long, value_name = "NAME|PID|GLOB", help_heading = "What counts")]
    process: Option<String>,
    /// Which table the GPU times come from
    #[arg(long, value_name = "TABLE", default_value = "auto", help_heading = "What counts")]
    timing: TimingChoice,
    /// Count submissions that start at or after this time of the recording (1.25s, 800ms)
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    from: Option<Nanos>,
    /// Count submissions that start before this time of the recording
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    to: Option<Nanos>,
    /// Leave out this much after the process's first submission
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    skip_first: Option<Nanos>,
    /// Bucket edges [default: 2us,8us,32us,80us]
    #[arg(long, value_name = "TIMES", help_heading = "Tables")]
    buckets: Option<String>,
    /// Kernel family rules (TOML), tried before the built-in ones
    ///
    /// Each rule is `[[rule]]` with a `prefix` of the name behind `kernel_` and the `family` that it means; the first
    /// that fits counts.
    #[arg(long, value_name = "FILE", help_heading = "Tables")]
    kernel_rules: Option<PathBuf>,
    /// Go on without inputs that cannot be used; they are named in every format, and the exit status is 3
    #[arg(long, help_heading = "Reading")]
    keep_going: bool,
    /// How many inputs, and files of a folder, are read at once [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Reading")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    read: ReadArgs,
}

/// What is shown, and where it goes.
#[derive(Debug, Args)]
struct ShowArgs {
    /// Show every kernel name
    #[arg(long, help_heading = "Tables")]
    kernels: bool,
    /// Show the values of each trial
    #[arg(long, help_heading = "Tables")]
    trials: bool,
    /// How many of the slowest submissions and longest gaps to show
    #[arg(long, value_name = "K", default_value_t = 5, help_heading = "Tables")]
    slowest: u16,
    /// Format on standard output [default: terminal, or none when --output is given]
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    format: Option<Format>,
    /// Also write a file, in the format of its extension (.txt, .json, .md); can be given several times
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Vec<PathBuf>,
    /// Show the command line, and what the recordings say of arguments, user paths and device names
    #[arg(long, help_heading = "Output")]
    show_private: bool,
}

/// What `compare` can set for one side alone.
#[derive(Debug, Args)]
struct PerSideArgs {
    /// --tokens of side A
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units"], requires = "tokens_b", help_heading = "Units")]
    tokens_a: Vec<u64>,
    /// --tokens of side B
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units"], requires = "tokens_a", help_heading = "Units")]
    tokens_b: Vec<u64>,
    /// --units of side A
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units", "tokens_a"], requires = "units_b", help_heading = "Units")]
    units_a: Vec<u64>,
    /// --units of side B
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units", "tokens_b"], requires = "units_a", help_heading = "Units")]
    units_b: Vec<u64>,
    /// --process of side A
    #[arg(long, value_name = "NAME|PID|GLOB", help_heading = "What counts")]
    process_a: Option<String>,
    /// --process of side B
    #[arg(long, value_name = "NAME|PID|GLOB", help_heading = "What counts")]
    process_b: Option<String>,
    /// --from of side A
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    from_a: Option<Nanos>,
    /// --from of side B
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    from_b: Option<Nanos>,
    /// --to of side A
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    to_a: Option<Nanos>,
    /// --to of side B
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    to_b: Option<Nanos>,
    /// --skip-first of side A
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    skip_first_a: Option<Nanos>,
    /// --skip-first of side B
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "What counts")]
    skip_first_b: Option<Nanos>,
}

fn parse_unit(text: &str) -> Result<String, String> {
    let plain =
        !text.is_empty() && text.len() <= 24 && text.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    if plain {
        Ok(text.to_owned())
    } else {
        Err("use one short word, such as frame".to_owned())
    }
}

/// What one side's own options override.
struct Own<'a> {
    units: &'a [u64],
    process: Option<&'a String>,
    from: Option<Nanos>,
    to: Option<Nanos>,
    skip_first: Option<Nanos>,
}

impl SharedArgs {
    fn side(
        &self,
        inputs: Vec<PathBuf>,
        name: Option<String>,
        own: &Own<'_>,
        show_private: bool,
    ) -> Result<SideRequest> {
        let common = if self.tokens.is_empty() {
            &self.units
        } else {
            &self.tokens
        };
        let units = if own.units.is_empty() {
            common.clone()
        } else {
            own.units.to_vec()
        };
        let process = own.process.or(self.process.as_ref());
        let window = WindowRule {
            from: own.from.or(self.from).map(|at| Timestamp(at.0)),
            to: own.to.or(self.to).map(|at| Timestamp(at.0)),
            skip_first: own.skip_first.or(self.skip_first),
        };
        if let (Some(from), Some(to)) = (window.from, window.to)
            && from >= to
        {
            return Err(Error::usage("--from must lie before --to"));
        }
        if inputs.iter().filter(|input| input.as_os_str() == "-").count() > 1 {
            return Err(Error::usage("`-` is given twice: standard input can be read once"));
        }
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

    fn trial(&self, slowest: u16) -> Result<TrialOptions> {
        let buckets = match &self.buckets {
            Some(text) => Buckets::parse(text)?,
            None => Buckets::default(),
        };
        let kernel_rules = match &self.kernel_rules {
            Some(path) => {
                let origin = path.display().to_string();
                let text =
                    std::fs::read_to_string(path).map_err(|error| Error::io("open it", error).with_origin(&origin))?;
                KernelRules::with_user(&text).map_err(|error| error.with_origin(origin))?
            }
            None => KernelRules::default(),
        };
        Ok(TrialOptions {
            buckets,
            kernel_rules,
            slowest: usize::from(slowest),
        })
    }

    /// The request of one or two sides.
    fn request(
        &self,
        a: SideRequest,
        b: Option<SideRequest>,
        baseline: Option<Baseline>,
        judging: CompareOptions,
        slowest: u16,
    ) -> Result<Request> {
        if self.unit.is_some() && a.units.is_empty() && b.as_ref().is_none_or(|b| b.units.is_empty()) {
            return Err(Error::usage("--unit names what --units counts, which is not given")
                .with_help("give the number with --units N"));
        }
        Ok(Request {
            trial: self.trial(slowest)?,
            a,
            b,
            timing: self.timing,
            unit: self.unit.clone().unwrap_or_else(|| "token".to_owned()),
            read: ReadOptions {
                jobs: self.jobs.map(Jobs::new).unwrap_or_default(),
                ..self.read.options()
            },
            baseline,
            compare: judging,
            keep_going: self.keep_going,
        })
    }
}

/// Analyses with a progress display, and tells which inputs are missing.
fn analysed(request: &Request, console: Console) -> Result<Outcome> {
    let bar = Bar::new(console);
    let outcome = analyse(request, &bar)?;
    bar.clear();
    for (input, error) in &outcome.missing {
        let what = match error.origin() {
            // The input is named once.
            Some(origin) if origin.ends_with(input.as_str()) => error.kind().to_string(),
            _ => error.to_string(),
        };
        print_warning(console, &format!("{input} is missing from the report: {what}"));
    }
    Ok(outcome)
}

impl ShowArgs {
    /// Analyses and writes the report to where it was asked for; `files` are read besides the trials.
    fn run(&self, request: &Request, files: &[&PathBuf], console: Console) -> Result<ExitStatus, Stop> {
        let sides = request
            .a
            .inputs
            .iter()
            .chain(request.b.iter().flat_map(|side| &side.inputs));
        let inputs: Vec<&PathBuf> = sides.chain(files.iter().copied()).collect();
        let plan = OutputPlan::new(&self.output, &inputs)?;
        let outcome = analysed(request, console)?;
        let comparison = &outcome.comparison;
        let status = status(&outcome);
        let options = |width, color| ReportOptions {
            width,
            color,
            show_kernels: self.kernels,
            show_trials: self.trials,
            show_private: self.show_private,
            command: Some(std::env::args().collect::<Vec<_>>().join(" ")),
        };
        plan.write(|format, out| report::write(comparison, format, &options(100, false), out))?;
        if plan.is_empty() || self.format.is_some() {
            let format = self.format.unwrap_or(Format::Terminal);
            to_stdout(status, |out| {
                report::write(comparison, format, &options(width(), console.color), out)
            })?;
        }
        Ok(status)
    }
}

pub(super) fn compare(args: CompareArgs, console: Console) -> Result<ExitStatus, Stop> {
    let CompareArgs {
        a,
        b,
        baseline,
        name_a,
        name_b,
        shared,
        show,
        per_side,
        judging,
    } = args;
    let options = judging.options()?;
    let private = show.show_private;
    let pick = |tokens: &'_ [u64], units: &'_ [u64]| {
        if tokens.is_empty() {
            units.to_vec()
        } else {
            tokens.to_vec()
        }
    };
    let (units_a, units_b) = (
        pick(&per_side.tokens_a, &per_side.units_a),
        pick(&per_side.tokens_b, &per_side.units_b),
    );
    if a.iter().chain(&b).filter(|input| input.as_os_str() == "-").count() > 1 {
        return Err(Error::usage("`-` is given twice: standard input can be read once").into());
    }
    let a = shared.side(
        a,
        name_a,
        &Own {
            units: &units_a,
            process: per_side.process_a.as_ref(),
            from: per_side.from_a,
            to: per_side.to_a,
            skip_first: per_side.skip_first_a,
        },
        private,
    )?;
    let b = shared.side(
        b,
        name_b,
        &Own {
            units: &units_b,
            process: per_side.process_b.as_ref(),
            from: per_side.from_b,
            to: per_side.to_b,
            skip_first: per_side.skip_first_b,
        },
        private,
    )?;
    let stored = baseline.as_deref().map(read_baseline).transpose()?;
    let files: Vec<&PathBuf> = baseline.iter().chain(judging.files()).collect();
    let (b, stored) = match stored {
        Some(mut stored) => {
            if let Some(name) = b.name {
                stored.side.name = name;
            }
            (None, Some(stored))
        }
        None => (Some(b), None),
    };
    let request = shared.request(a, b, stored, options, show.slowest)?;
    show.run(&request, &files, console)
}

/// A failed gate first; then a trial that is missing, or a gate that cannot judge.
fn status(outcome: &Outcome) -> ExitStatus {
    let gate = outcome.comparison.gate.as_ref();
    // A gate that has nothing to show that it can fail must not be green.
    let shown = |gate: &&crate::compare::Gate| gate.self_test.as_ref().is_none_or(|test| test.works());
    match gate.map(|gate| gate.result) {
        Some(GateResult::Failed) => ExitStatus::Regression,
        Some(GateResult::CannotJudge) => ExitStatus::CannotJudge,
        _ if !outcome.missing.is_empty() => ExitStatus::Incomplete,
        _ if !gate.iter().all(shown) => ExitStatus::CannotJudge,
        _ => ExitStatus::Done,
    }
}

fn read_baseline(path: &Path) -> Result<Baseline> {
    let origin = || path.display().to_string();
    Baseline::from_json(&super::judging::read(path)?).map_err(|error| error.with_origin(origin()))
}

/// What belongs to one side alone where there is one side.
const NOTHING_OF_ITS_OWN: Own<'static> = Own {
    units: &[],
    process: None,
    from: None,
    to: None,
    skip_first: None,
};

pub(super) fn report(args: ReportArgs, console: Console) -> Result<ExitStatus, Stop> {
    let ReportArgs {
        inputs,
        name,
        shared,
        show,
    } = args;
    let side = shared.side(inputs, name, &NOTHING_OF_ITS_OWN, show.show_private)?;
    let request = shared.request(side, None, None, CompareOptions::default(), show.slowest)?;
    show.run(&request, &[], console)
}

/// Trials of one thing, analysed for another command than `report`.
pub(super) fn one_side(shared: &SharedArgs, inputs: Vec<PathBuf>, console: Console) -> Result<Outcome> {
    let side = shared.side(inputs, None, &NOTHING_OF_ITS_OWN, false)?;
    let request = shared.request(side, None, None, CompareOptions::default(), 0)?;
    analysed(&request, console)
}
