//! `convert`: submissions for other tools.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::analyse::{SharedArgs, conversion};
use super::fleet::FleetOutput;
use super::{Console, ExitStatus, Stop};
use crate::convert::trials::SetColumn;

#[derive(Debug, Args)]
pub(super) struct ConvertArgs {
    /// Trials of one thing
    #[arg(required_unless_present = "a", conflicts_with_all = ["a", "b"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Trials of side A
    #[arg(long, num_args = 1.., requires = "b", value_name = "INPUT")]
    a: Vec<PathBuf>,
    /// Trials of side B
    #[arg(long, num_args = 1.., requires = "a", value_name = "INPUT")]
    b: Vec<PathBuf>,
    #[arg(long, alias = "name-a")]
    name: Option<String>,
    #[arg(long)]
    name_b: Option<String>,
    /// Format
    #[arg(long)]
    to: To,
    /// Where it goes
    #[arg(short, long)]
    output: PathBuf,
    /// A column of every trial
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<SetColumn>,
    #[command(flatten)]
    shared: SharedArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum To {
    Parquet,
    Csv,
}

pub(super) fn run(args: ConvertArgs, console: Console) -> Result<ExitStatus, Stop> {
    let mut shared = args.shared;
    let sides = if args.a.is_empty() {
        (args.inputs, None)
    } else {
        (args.a, Some(args.b))
    };
    let mut output = None;
    let request = conversion(&mut shared, sides, (args.name, args.name_b), |read| {
        output = Some(match args.to {
            To::Parquet => FleetOutput::parquet(&args.output, read)?,
            To::Csv => FleetOutput::csv(&args.output, read)?,
        });
        Ok(())
    })?;
    match output {
        Some(output) => Ok(output.write(&request, &args.set, console)?),
        None => Ok(ExitStatus::Done),
    }
}
