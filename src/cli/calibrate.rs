//! `calibrate`: the noise between sessions, measured once and used by many comparisons.

use std::path::PathBuf;

use clap::Args;

use super::analyse::{SharedArgs, one_side};
use super::output::{check, replace, to_stdout};
use super::{Console, ExitStatus, Stop, print_warning};
use crate::compare::Noise;
use crate::error::Error;

const EXAMPLES: &str = "\
Examples:
  trace-attr calibrate monday tuesday wednesday --tokens 64 -o noise.json
  trace-attr compare --a new-1 new-2 --baseline base.json --tokens 64 --noise noise.json --fail-above 5

Each trial should come from its own session, hours or days apart: trials of one session do not show how sessions
differ. A comparison with the file widens its intervals to that noise; a side of one trial then has an interval too.";

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct CalibrateArgs {
    /// Trials of one build, each from its own session; at least 3
    #[arg(required = true, value_name = "TRIAL")]
    inputs: Vec<PathBuf>,
    /// The noise file to write (JSON)
    #[arg(short, long, required = true, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,
    #[command(flatten)]
    shared: SharedArgs,
}

pub(super) fn run(mut args: CalibrateArgs, console: Console) -> Result<ExitStatus, Stop> {
    let inputs: Vec<&PathBuf> = args.inputs.iter().chain(args.shared.named_files()).collect();
    check(&args.output, &inputs)?;
    let outcome = one_side(&mut args.shared, args.inputs.clone(), console)?;
    if let Some((input, _)) = outcome.missing.first() {
        // Noise of other trials than those asked for would be taken for the noise of all.
        return Err(
            Error::unfit(format!("{input} is missing, so the noise is not measured"))
                .with_help("leave it out of the command, or give another trial")
                .into(),
        );
    }
    let (noise, notes) = Noise::measure(&outcome.comparison)?;
    let text = noise.to_json()?;
    replace(&args.output, |out| out.write_all(text.as_bytes()))?;
    for note in outcome
        .comparison
        .notes
        .iter()
        .filter(|note| note.severity == crate::model::Severity::Warning)
    {
        print_warning(console, &note.text);
    }
    for note in &notes {
        print_warning(console, &note.text);
    }
    to_stdout(ExitStatus::Done, |out| {
        writeln!(
            out,
            "{} sessions of {}, {} rows; standard deviation between sessions:",
            noise.sessions(),
            crate::label::visible(&outcome.comparison.a.name),
            noise.rows().count()
        )?;
        for (key, sd) in noise.rows().filter(|(key, _)| ["busy", "total"].contains(key)) {
            writeln!(out, "  {key:<6} {:.2} %", 100.0 * sd)?;
        }
        Ok(())
    })?;
    Ok(ExitStatus::Done)
}
