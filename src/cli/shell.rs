//! `completions` and `man`: what a package puts beside the binary.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::output::to_stdout;
use super::{ExitStatus, Stop};
use crate::error::Error;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace-attr completions zsh > ~/.zfunc/_trace-attr")]
pub(super) struct CompletionsArgs {
    /// Which shell
    shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  trace-attr man | man -l -\n  trace-attr man --dir /usr/local/share/man/man1")]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitStatus, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Args::command(), "trace-attr", &mut script);
    // For a name with a hyphen, clap_complete's bash script (4.6) sets one spelling of a command and looks for another.
    let script = String::from_utf8_lossy(&script).replace("trace__subcmd__attr", "trace__attr");
    to_stdout(ExitStatus::Done, |out| out.write_all(script.as_bytes()))?;
    Ok(ExitStatus::Done)
}

pub(super) fn man(args: &ManArgs) -> Result<ExitStatus, Stop> {
    match &args.dir {
        Some(dir) => {
            let failed = |error| Error::io("write the pages", error).with_origin(dir.display().to_string());
            std::fs::create_dir_all(dir).map_err(failed)?;
            clap_mangen::generate_to(super::Args::command(), dir).map_err(failed)?;
        }
        None => {
            let page = clap_mangen::Man::new(super::Args::command());
            to_stdout(ExitStatus::Done, |out| page.render(out))?;
        }
    }
    Ok(ExitStatus::Done)
}
