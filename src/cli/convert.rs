//! `convert`: submissions and call trees as files of other tools.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::fleet::{FleetArgs, FleetFormat, FleetOutput};
use super::layers::{ConfigFileArgs, Layers};
use super::output::{check, replace, to_stdout};
use super::progress::Bar;
use super::selection::{LabelMapArgs, Own, ReadingArgs, SelectArgs, SideSelectArgs, once_from_stdin};
use super::{Console, ExitStatus, Stop, print_warning};
use crate::analysis::{Request, Traces, traces};
use crate::compare::CompareOptions;
use crate::convert::{self, Conversion};
use crate::error::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  trace-attr convert run.trace -o run.pftrace
  trace-attr convert exported/ --to chrome -o run.json
  trace-attr convert --a new-1 new-2 --b old-1 old-2 -o both.speedscope.json
  trace-attr convert --a new-1 new-2 --b old-1 old-2 --to folded-diff | inferno-flamegraph > diff.svg
  trace-attr convert night-* --tokens 64 --to parquet -o fleet --set commit=0c1f2ab --set machine=mini-1

Timelines have a group for each trial, from its first submission on. Call trees hold sums over the trials of a side.";

/// What `--to` can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A file of a timeline or a call tree.
    Shapes(Conversion),
    /// Submissions as rows.
    Rows(FleetFormat),
}

impl ValueEnum for Target {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Target>> = LazyLock::new(|| {
            let shapes = Conversion::value_variants().iter().copied().map(Target::Shapes);
            let rows = FleetFormat::value_variants().iter().copied().map(Target::Rows);
            shapes.chain(rows).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Target::Shapes(conversion) => conversion.to_possible_value(),
            Target::Rows(format) => format.to_possible_value(),
        }
    }
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_help = super::SUBMISSION, after_long_help = format!("{EXAMPLES}\n\n{}", super::SUBMISSION))]
// `--to` names the format here, so the end of the window has another name.
#[command(mut_arg("to", |end| end.long("until")))]
#[command(mut_arg("to_a", |end| end.long("until-a").help("--until of side A")))]
#[command(mut_arg("to_b", |end| end.long("until-b").help("--until of side B")))]
pub(super) struct ConvertArgs {
    /// Trials of one thing: bundles, folders of exported files, files, live profiles, or `-`
    #[arg(required_unless_present = "a", conflicts_with_all = ["a", "b"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Trials of side A, for a file of both sides
    #[arg(long, num_args = 1.., requires = "b", value_name = "INPUT", help_heading = "Sides")]
    a: Vec<PathBuf>,
    /// Trials of side B
    #[arg(long, num_args = 1.., requires = "a", value_name = "INPUT", help_heading = "Sides")]
    b: Vec<PathBuf>,
    /// Name of the one side [default: the process]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["a", "b"], help_heading = "Sides")]
    name: Option<String>,
    /// Name of side A [default: the process]
    #[arg(long, value_name = "NAME", requires = "a", help_heading = "Sides")]
    name_a: Option<String>,
    /// Name of side B [default: the process]
    #[arg(long, value_name = "NAME", requires = "b", help_heading = "Sides")]
    name_b: Option<String>,
    /// Only this trial of each side, by its place from 1 [default: all]
    #[arg(long, value_name = "N", conflicts_with = "keep_going", help_heading = "What counts")]
    trial: Option<usize>,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    side_select: SideSelectArgs,
    #[command(flatten)]
    names: LabelMapArgs,
    #[command(flatten)]
    fleet: FleetArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Format of the file [default: that of the output's extension, where it is one format's own]
    #[arg(long = "to", value_name = "FORMAT", help_heading = "Output")]
    format: Option<Target>,
    /// The file to write, whole or not at all, or for parquet the folder to add to [default: standard output]
    ///
    /// .pftrace and .perfetto-trace are perfetto, .speedscope.json is speedscope, .folded is folded, .pb.gz and .pprof are
    /// pprof, .csv is csv; any other extension needs --to.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFileArgs,
}

pub(super) fn run(args: ConvertArgs, console: Console) -> Result<ExitStatus, Stop> {
    let target = args.target()?;
    let mut args = args;
    let mut layers = Layers::load(&args.config)?;
    let two_sided = !args.a.is_empty();
    layers.fill_selection(&mut args.select, two_sided.then_some(&mut args.side_select));
    layers.fill_label_map(&args.names);
    if two_sided {
        layers.fill_names(&mut args.name_a, &mut args.name_b);
    }
    let conversion = match target {
        Target::Shapes(conversion) => conversion,
        Target::Rows(format) => {
            args.fleet.fill(&mut layers);
            let output = FleetOutput::new(format, args.output.as_deref(), &args.read(&layers))?;
            let mut request = args.request(&layers)?;
            args.fleet.complete(&mut request)?;
            return Ok(output.write(&request, &args.fleet.set, console)?);
        }
    };
    if let Some(file) = &args.output {
        check(file, &args.read(&layers))?;
    }
    let request = args.request(&layers)?;
    let bar = Bar::new(console);
    let mut traces = traces(&request, &bar)?;
    bar.clear();
    for (input, error) in &traces.missing {
        print_warning(console, &format!("{input} is missing from the file: {}", error.kind()));
    }
    if let Some(number) = args.trial {
        only_trial(&mut traces, number)?;
    }
    comparable(conversion, &traces)?;
    let status = match traces.missing.is_empty() {
        true => ExitStatus::Done,
        false => ExitStatus::Incomplete,
    };
    let write = |out: &mut dyn Write| {
        let mut out = io::BufWriter::with_capacity(1 << 16, out);
        convert::write(&traces, conversion, &mut out)?;
        out.flush()
    };
    match &args.output {
        Some(file) => replace(file, |out| write(out))?,
        None => to_stdout(status, write)?,
    }
    Ok(status)
}

impl ConvertArgs {
    /// The format, before anything is read.
    fn target(&self) -> Result<Target> {
        let formats = || {
            let values = Target::value_variants().iter().filter_map(Target::to_possible_value);
            values
                .map(|value| value.get_name().to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let by_extension = || {
            let path = self.output.as_deref()?;
            let shapes = Conversion::of_path(path).map(Target::Shapes);
            shapes.or_else(|| FleetFormat::of_path(path).map(Target::Rows))
        };
        let Some(target) = self.format.or_else(by_extension) else {
            let what = match &self.output {
                Some(file) => format!(
                    "--output {}: no format is known by this extension alone",
                    file.display()
                ),
                None => "no format is given".to_owned(),
            };
            return Err(Error::usage(what).with_help(format!("name it: --to with one of {}", formats())));
        };
        let conversion = match target {
            Target::Rows(_) if self.trial.is_some() => {
                return Err(Error::usage("--trial: all trials are converted to rows")
                    .with_help("give only the inputs that you want"));
            }
            Target::Rows(_) => return Ok(target),
            Target::Shapes(conversion) => conversion,
        };
        self.fleet.refuse(conversion.name())?;
        if conversion == Conversion::FoldedDiff && self.a.is_empty() {
            return Err(Error::usage("--to folded-diff: a difference needs two sides")
                .with_help("give them with --a and --b, or use --to folded for one"));
        }
        if conversion.is_binary() && self.output.is_none() && io::stdout().is_terminal() {
            return Err(Error::usage(format!(
                "{} is no text, and standard output is a terminal",
                conversion.name()
            ))
            .with_help("write a file with -o FILE, or redirect standard output"));
        }
        Ok(target)
    }

    /// Every file that is read.
    fn read<'a>(&'a self, layers: &'a Layers) -> Vec<&'a PathBuf> {
        let inputs = self.inputs.iter().chain(&self.a).chain(&self.b);
        inputs.chain(layers.files()).chain(&self.names.label_map).collect()
    }

    fn request(&self, layers: &Layers) -> Result<Request> {
        let side = |inputs: &[PathBuf], name: &Option<String>, own: Own<'_>| {
            self.select.side(inputs.to_vec(), name.clone(), Vec::new(), &own, false)
        };
        let (own_a, own_b) = (self.side_select.a(), self.side_select.b());
        let (a, b) = if self.a.is_empty() {
            if !own_a.is_empty() || !own_b.is_empty() {
                return Err(Error::usage("an option of one side is given, and there are no sides")
                    .with_help("give the sides with --a and --b, or use the option without -a or -b"));
            }
            (side(&self.inputs, &self.name, Own::default())?, None)
        } else {
            once_from_stdin(self.a.iter().chain(&self.b))?;
            let a = side(&self.a, &self.name_a, own_a)?;
            (a, Some(side(&self.b, &self.name_b, own_b)?))
        };
        Ok(Request {
            a,
            b,
            timing: self.select.timing.unwrap_or_default(),
            read: self.reading.options()?,
            compare: CompareOptions {
                label_map: layers.label_map(self.names.label_map.as_deref())?,
                ..CompareOptions::default()
            },
            keep_going: self.reading.keep_going,
            ..Request::default()
        })
    }
}

/// Leaves out all trials but one of each side.
fn only_trial(traces: &mut Traces, number: usize) -> Result<()> {
    for side in std::iter::once(&mut traces.a).chain(&mut traces.b) {
        let all = side.trials.len();
        side.trials.retain(|trial| trial.number == number);
        if side.trials.is_empty() {
            return Err(
                Error::usage(format!("--trial {number}: {} has {}", side.name, trials(all)))
                    .with_help("trials are counted from 1, in the order in which they are given"),
            );
        }
    }
    Ok(())
}

fn trials(count: usize) -> String {
    format!("{count} {}", if count == 1 { "trial" } else { "trials" })
}

/// Refuses a difference of sums over different numbers of trials.
fn comparable(conversion: Conversion, traces: &Traces) -> Result<()> {
    let Some(b) = traces.b.as_ref().filter(|_| conversion == Conversion::FoldedDiff) else {
        return Ok(());
    };
    let (a, b) = (traces.a.trials.len(), b.trials.len());
    if a == b {
        return Ok(());
    }
    Err(Error::usage(format!(
        "--to folded-diff: side A has {} and side B {b}, so their sums say nothing of each other",
        trials(a)
    ))
    .with_help("give as many trials on each side, or choose one of each with --trial N"))
}
