//! `compare` and `report`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use super::judging::JudgingArgs;
use super::layers::{ConfigFileArgs, Layers};
use super::output::{OutputPlan, draws_blocks, to_stdout, width};
use super::progress::Bar;
use super::selection::{
    LabelMapArgs, Own, ReadingArgs, SelectArgs, SideSelectArgs, UnitArgs, once_from_stdin, parse_buckets,
};
use super::values::parse_units;
use super::{Console, ExitStatus, Stop, print_warning};
use crate::analysis::{Outcome, Request, SideRequest, analyse};
use crate::compare::gate::GateResult;
use crate::compare::{Baseline, CompareOptions, TrialOptions};
use crate::error::{Error, Result};
use crate::report::{self, Format, GateName, ReportOptions, Section, Selection, SortBy};

const COMPARE_EXAMPLES: &str = "\
Examples:
  trace-attr compare --a hf2q-1 hf2q-2 hf2q-3 --b llama-1 llama-2 llama-3 --tokens 64
  trace-attr compare --a new.trace --b old.trace --tokens-a 64 --tokens-b 128 -o report.md
  trace-attr compare --a new --b old --process 'hf2q*' --skip-first 200ms --buckets 5us,50us,500us
  trace-attr compare --a new --b old --window signpost:decode --tokens 64
  trace-attr compare --a new --b old --only buckets,phases --sort change --top 10

A is what you work on, B what you compare it to: a positive delta means that A takes longer.";

const REPORT_EXAMPLES: &str = "\
Examples:
  trace-attr report exported/ --tokens 64
  trace-attr report run-1.xml.gz run-2.xml.gz --process python --slowest 10
  xcrun xctrace export --input run.trace --xpath '…' | trace-attr report - --format json";

/// Most spans of a lane in a page's timeline: enough for every stretch of a short trace, and far below a megabyte.
const TIMELINE_SPANS: usize = 4_000;

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
        conflicts_with_all = ["b", "tokens_b", "units_b", "process_b", "window_b", "from_b", "to_b", "skip_first_b"],
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
    #[command(flatten)]
    pub(super) counts: UnitArgs,
    #[command(flatten)]
    pub(super) select: SelectArgs,
    /// Bucket edges [default: 2us,8us,32us,80us]
    #[arg(long, value_name = "TIMES", help_heading = "Tables")]
    pub(super) buckets: Option<String>,
    /// Kernel family rules (TOML), tried before the built-in ones
    ///
    /// Each rule is `[[rule]]` with a `prefix` of the name behind `kernel_` and the `family` that it means; the first
    /// that fits counts.
    #[arg(long, value_name = "FILE", help_heading = "Tables")]
    pub(super) kernel_rules: Option<PathBuf>,
    #[command(flatten)]
    pub(super) names: LabelMapArgs,
    #[command(flatten)]
    pub(super) reading: ReadingArgs,
    #[command(flatten)]
    pub(super) config: ConfigFileArgs,
}

/// What is shown, and where it goes.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Show every kernel name
    #[arg(long, help_heading = "Tables")]
    pub(super) kernels: bool,
    /// Show the values of each trial
    #[arg(long, help_heading = "Tables")]
    pub(super) trials: bool,
    /// How many of the slowest submissions and longest gaps to show [default: 5]
    #[arg(long, value_name = "K", help_heading = "Tables")]
    pub(super) slowest: Option<u16>,
    /// Show these sections only, such as buckets,phases: trials, findings, buckets, encoders, phases, channels, kernels, gaps,
    /// slowest, left-out, notes, method
    ///
    /// The headline and a gate are always there, JSON, CSV and HTML always hold everything.
    #[arg(
        long,
        value_name = "SECTIONS",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Tables"
    )]
    pub(super) only: Vec<Section>,
    /// Sort encoders, phases and channels by this [default: phases by a, the others by delta]
    #[arg(long, value_name = "BY", help_heading = "Tables")]
    pub(super) sort: Option<SortBy>,
    /// Show so many rows of encoders, phases and channels, and say how many more there are
    #[arg(long, value_name = "N", help_heading = "Tables")]
    pub(super) top: Option<NonZeroUsize>,
    /// Format on standard output [default: terminal, or none when --output is given]
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(super) format: Option<Format>,
    /// Also write a file; can be given several times
    ///
    /// FILE has the format of its extension: .txt (terminal), .json, .md (markdown), .html, .csv, .xml (junit). FORMAT=FILE has
    /// the named one, whatever the extension: -o bencher=bench.json, -o markdown=$GITHUB_STEP_SUMMARY. Files are replaced
    /// whole or not at all; only the step summary of a GitHub job keeps what it holds, and its limit.
    #[arg(short, long, value_name = "[FORMAT=]FILE", help_heading = "Output")]
    pub(super) output: Vec<PathBuf>,
    /// What this comparison is called in CI: comment marker, test suite, annotations [default: the command]
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub(super) gate_name: Option<GateName>,
    /// Show the command line, and what the recordings say of arguments, user paths and device names
    #[arg(long, help_heading = "Output")]
    pub(super) show_private: bool,
}

/// What `compare` can set for one side alone.
#[derive(Debug, Args)]
pub(super) struct PerSideArgs {
    /// --tokens of side A
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units"], requires = "tokens_b", help_heading = "Units")]
    pub(super) tokens_a: Vec<u64>,
    /// --tokens of side B
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units"], requires = "tokens_a", help_heading = "Units")]
    pub(super) tokens_b: Vec<u64>,
    /// --units of side A
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units", "tokens_a"], requires = "units_b", help_heading = "Units")]
    pub(super) units_a: Vec<u64>,
    /// --units of side B
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_units, conflicts_with_all = ["tokens", "units", "tokens_b"], requires = "units_a", help_heading = "Units")]
    pub(super) units_b: Vec<u64>,
    #[command(flatten)]
    pub(super) select: SideSelectArgs,
}

impl SharedArgs {
    /// A side; `own` are its own options, and its own units where it has any.
    fn side(
        &self,
        inputs: Vec<PathBuf>,
        name: Option<String>,
        (own, own_units): (&Own<'_>, &[u64]),
        show_private: bool,
    ) -> Result<SideRequest> {
        let units = if own_units.is_empty() {
            self.counts.each()
        } else {
            own_units
        };
        self.select.side(inputs, name, units.to_vec(), own, show_private)
    }

    fn trial(&self, layers: &Layers, slowest: usize) -> Result<TrialOptions> {
        let buckets = parse_buckets(self.buckets.as_deref())?;
        Ok(TrialOptions {
            buckets,
            kernel_rules: layers.kernel_rules(self.kernel_rules.as_deref())?,
            slowest,
            ..TrialOptions::default()
        })
    }

    /// Files that are read besides the trials.
    fn files<'a>(&'a self, layers: &'a Layers) -> impl Iterator<Item = &'a PathBuf> {
        layers.files().chain(self.named_files())
    }

    /// Those of them that options name.
    pub(super) fn named_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.kernel_rules.iter().chain(&self.names.label_map)
    }

    /// Where reports go: never over something that is read.
    fn plan<'a>(
        &'a self,
        show: &ShowArgs,
        layers: &'a Layers,
        read: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<OutputPlan> {
        let read: Vec<&PathBuf> = read.into_iter().chain(self.files(layers)).collect();
        OutputPlan::new(&show.output, &read)
    }

    /// The request of one or two sides.
    fn request(
        &self,
        a: SideRequest,
        b: Option<SideRequest>,
        baseline: Option<Baseline>,
        judging: CompareOptions,
        layers: &Layers,
        slowest: usize,
    ) -> Result<Request> {
        self.counts.check(&a, b.as_ref())?;
        Ok(Request {
            trial: self.trial(layers, slowest)?,
            a,
            b,
            timing: self.select.timing.unwrap_or_default(),
            unit: self.counts.name(),
            read: self.reading.options()?,
            baseline,
            compare: CompareOptions {
                label_map: layers.label_map(self.names.label_map.as_deref())?,
                hints: layers
                    .file
                    .hints
                    .as_ref()
                    .map(|hints| hints.value.clone())
                    .unwrap_or_default(),
                ..judging
            },
            keep_going: self.reading.keep_going,
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
    fn slowest(&self) -> usize {
        self.slowest.map_or(5, usize::from)
    }

    /// Asks for what only some formats show.
    fn asking_for(&self, plan: &OutputPlan, mut request: Request) -> Request {
        if plan.has(Format::Html) || self.format == Some(Format::Html) {
            request.trial.timeline_spans = TIMELINE_SPANS;
        }
        request
    }

    /// Refuses an order by what only a comparison has.
    fn check_order(&self, request: &Request) -> Result<()> {
        let of_one_side = matches!(self.sort, None | Some(SortBy::A | SortBy::Submissions | SortBy::Name));
        if of_one_side || request.b.is_some() || request.baseline.is_some() {
            return Ok(());
        }
        Err(
            Error::usage("--sort: there is one side only, so there is nothing to sort by but a, submissions and name")
                .with_help("compare it with another: `trace-attr compare --a … --b …`, or with `--baseline FILE`"),
        )
    }

    /// Analyses and writes the report to where it was asked for.
    fn run(&self, request: &Request, layers: &Layers, plan: &OutputPlan, console: Console) -> Result<ExitStatus, Stop> {
        self.check_order(request)?;
        let outcome = analysed(request, console)?;
        let comparison = &outcome.comparison;
        let status = status(&outcome);
        let options = |width, color| ReportOptions {
            width,
            color,
            show_kernels: self.kernels,
            show_trials: self.trials,
            show_sparklines: false,
            selection: Selection {
                only: self.only.clone(),
                sort: self.sort,
                top: self.top,
            },
            show_private: self.show_private,
            gate_name: self.gate_name.clone(),
            markdown_bytes: ReportOptions::default().markdown_bytes,
            command: Some(std::env::args().collect::<Vec<_>>().join(" ")),
            config: layers.shown_name(),
        };
        plan.write(|format, room, out| {
            let mut options = options(100, false);
            options.markdown_bytes = room.unwrap_or(options.markdown_bytes);
            report::write(comparison, format, &options, out)
        })?;
        if plan.is_empty() || self.format.is_some() {
            let format = self.format.unwrap_or(Format::Terminal);
            let options = ReportOptions {
                show_sparklines: format == Format::Terminal && draws_blocks(),
                ..options(width(), console.color)
            };
            to_stdout(status, |out| report::write(comparison, format, &options, out))?;
        }
        Ok(status)
    }
}

pub(super) fn compare(args: CompareArgs, console: Console) -> Result<ExitStatus, Stop> {
    let CompareArgs {
        a,
        b,
        baseline,
        mut name_a,
        mut name_b,
        mut shared,
        mut show,
        mut per_side,
        mut judging,
    } = args;
    let mut layers = Layers::load(&shared.config)?;
    layers.fill(&mut shared, Some(&mut per_side));
    layers.fill_show(&mut show);
    layers.fill_names(&mut name_a, &mut name_b);
    layers.fill_judging(&mut judging);
    let plan = shared.plan(
        &show,
        &layers,
        a.iter().chain(&b).chain(&baseline).chain(judging.files()),
    )?;
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
    once_from_stdin(a.iter().chain(&b))?;
    let a = shared.side(a, name_a, (&per_side.select.a(), &units_a), private)?;
    let b = shared.side(b, name_b, (&per_side.select.b(), &units_b), private)?;
    let stored = baseline.as_deref().map(read_baseline).transpose()?;
    let (b, stored) = match stored {
        Some(mut stored) => {
            if let Some(name) = b.name {
                stored.side.name = name;
            }
            (None, Some(stored))
        }
        None => (Some(b), None),
    };
    let request = show.asking_for(&plan, shared.request(a, b, stored, options, &layers, show.slowest())?);
    show.run(&request, &layers, &plan, console)
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

pub(super) fn report(args: ReportArgs, console: Console) -> Result<ExitStatus, Stop> {
    let ReportArgs {
        inputs,
        name,
        mut shared,
        mut show,
    } = args;
    let mut layers = Layers::load(&shared.config)?;
    layers.fill(&mut shared, None);
    layers.fill_show(&mut show);
    let plan = shared.plan(&show, &layers, &inputs)?;
    let side = shared.side(inputs, name, (&Own::default(), &[]), show.show_private)?;
    let request = shared.request(side, None, None, CompareOptions::default(), &layers, show.slowest())?;
    let request = show.asking_for(&plan, request);
    show.run(&request, &layers, &plan, console)
}

/// Trials of one thing, analysed for another command than `report`.
pub(super) fn one_side(shared: &mut SharedArgs, inputs: Vec<PathBuf>, console: Console) -> Result<Outcome> {
    let mut layers = Layers::load(&shared.config)?;
    layers.fill(shared, None);
    let side = shared.side(inputs, None, (&Own::default(), &[]), false)?;
    let request = shared.request(side, None, None, CompareOptions::default(), &layers, 0)?;
    analysed(&request, console)
}
