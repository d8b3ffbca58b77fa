//! `config`: what is in force, and where each value came from.

use clap::Args;

use super::analyse::{PerSideArgs, SharedArgs, ShowArgs};
use super::judging::JudgingArgs;
use super::layers::{Entry, Layers};
use super::output::to_stdout;
use super::{ExitStatus, Stop};
use crate::label::visible;

const EXAMPLES: &str = "\
Examples:
  trace-attr config
  trace-attr config --config ci.toml --fail-above 3%

Takes the options of `compare` and shows which of them count: the command line's, else the configuration file's, else the
default. The file is trace-attr.toml in this folder or the nearest one above.";

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConfigArgs {
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

pub(super) fn run(args: ConfigArgs) -> Result<ExitStatus, Stop> {
    let ConfigArgs {
        mut name_a,
        mut name_b,
        mut shared,
        mut show,
        mut per_side,
        mut judging,
    } = args;
    let mut layers = Layers::load(&shared.config)?;
    layers.fill_names(&mut name_a, &mut name_b);
    layers.fill(&mut shared, Some(&mut per_side));
    layers.fill_show(&mut show);
    layers.fill_judging(&mut judging);
    // What a comparison would refuse is refused here, too.
    judging.options()?;
    layers.kernel_rules(shared.kernel_rules.as_deref())?;
    layers.label_map(shared.names.label_map.as_deref())?;
    let text = table(&layers);
    to_stdout(ExitStatus::Done, |out| out.write_all(text.as_bytes()))?;
    Ok(ExitStatus::Done)
}

/// One line per key: key, value, where it came from.
fn table(layers: &Layers) -> String {
    let file = match &layers.path {
        Some(path) => format!("configuration: {}", path.display()),
        None => "configuration: no file".to_owned(),
    };
    let entries = &layers.told.entries;
    let widest = |of: fn(&Entry) -> &str| entries.iter().map(|entry| of(entry).chars().count()).max().unwrap_or(0);
    let (keys, values) = (widest(|entry| entry.key), widest(|entry| &entry.value).min(60));
    let mut text = format!("{}\n\n", visible(&file));
    for Entry { key, value, origin } in entries {
        let (value, origin) = (visible(value), visible(origin));
        text += &format!("{key:keys$}  {value:values$}  {origin}\n");
    }
    text
}
