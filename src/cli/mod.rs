//! The command line: arguments, files, colours, progress, exit codes. Only here is anything printed.

#![expect(clippy::print_stderr, reason = "the command line talks to people")]

mod analyse;
mod cache;
mod calibrate;
mod config;
mod convert;
mod export;
mod fleet;
mod judging;
mod layers;
mod live;
mod output;
mod progress;
mod rows;
mod selection;
mod shell;
mod toc;
mod values;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand, ValueEnum};

use crate::error::Error;

/// What a submission is, in one line: users call it a dispatch, which it is not.
const SUBMISSION: &str = "A submission is a unit of work that the GPU ran, as the trace has it. It is not a dispatchThreadgroups call: \
the driver merges encoders into one submission and slices one encoder into several. \
What other scripts print as `disp/tok` is submissions per token here.";

/// Where the GPU time of a Metal System Trace goes, and why one engine is slower than another
#[derive(Debug, Parser)]
#[command(name = "trace-attr", version, max_term_width = 100, after_help = SUBMISSION, after_long_help = concat_help())]
struct Args {
    #[command(subcommand)]
    command: Command,
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = false
    )]
    color: ColorChoice,
    /// Say nothing on standard error but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Show progress also when standard error is no terminal
    #[arg(short, long, global = true)]
    verbose: bool,
}

fn concat_help() -> String {
    format!(
        "Examples:\n  \
         trace-attr compare --a hf2q-1 hf2q-2 hf2q-3 --b llama-1 llama-2 llama-3 --tokens 64\n  \
         trace-attr compare --a new-1 new-2 new-3 --b old-1 old-2 old-3 --tokens 64 --fail-above 3\n  \
         trace-attr report run.trace --tokens 128 --slowest 10\n  \
         trace-attr convert run.trace -o run.pftrace\n  \
         trace-attr toc run.trace\n  \
         trace-attr rows export/ --table metal-gpu-intervals --columns start,duration,process --limit 5\n  \
         trace-attr export run.trace -o exported --zst\n\n\
         INPUT is a .trace bundle (macOS with Xcode), a folder of exported files, one exported file, or `-` for \
         standard input; files may be .xml, .xml.gz or .xml.zst. Each INPUT after one --a is a trial.\n\n\
         Exit status: 0 done, and the gate passed or there is none; 1 the gate failed: a regression; 2 could not do it; \
         3 the gate cannot judge, or a trial is missing (--keep-going).\n\n{SUBMISSION}"
    )
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare two sides of trials: where is A slower than B?
    Compare(Box<analyse::CompareArgs>),
    /// Report one side: where does its GPU time go?
    Report(Box<analyse::ReportArgs>),
    /// Write submissions and call trees as files of other tools: timelines, flame graphs, profiles
    Convert(Box<convert::ConvertArgs>),
    /// Measure the noise between sessions, for comparisons of single trials and with baselines
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// List runs, targets and tables of an input
    Toc(toc::TocArgs),
    /// Print the rows of any table as CSV or JSON Lines
    Rows(rows::RowsArgs),
    /// Write a bundle's tables as files, for a machine without Xcode
    Export(export::ExportArgs),
    /// Show or clear what is kept of earlier runs
    Cache(cache::CacheArgs),
    /// Measure kernels on this machine's GPU, or watch a running program
    #[command(subcommand)]
    Live(live::LiveCommand),
    /// Show which options are in force, and where each came from
    Config(Box<config::ConfigArgs>),
    /// Print a shell completion script
    Completions(shell::CompletionsArgs),
    /// Print the manual page
    Man(shell::ManArgs),
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColorChoice {
    /// On a terminal, unless NO_COLOR, TERM=dumb or CI says no
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorChoice {
    fn resolve(self) -> bool {
        match self {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                io::stdout().is_terminal() && !set("NO_COLOR") && !dumb && !set("CI")
            }
        }
    }
}

/// What a command ended with, when it could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitStatus {
    /// Done.
    Done,
    /// Done, and the gate failed: a regression.
    Regression,
    /// Done, but the gate cannot judge.
    CannotJudge,
    /// Done, but something that was asked for is missing.
    Incomplete,
}

/// Why a command stopped.
enum Stop {
    Failed(Error),
    /// The reader of our output went away; nobody is told, the status stays.
    ClosedPipe(ExitStatus),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// A failed write to standard output.
fn stdout_failed(error: io::Error, status: ExitStatus) -> Stop {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Stop::ClosedPipe(status)
    } else {
        Stop::Failed(Error::io("write to standard output", error))
    }
}

/// What every command may need to know of the common options.
#[derive(Debug, Clone, Copy)]
struct Console {
    color: bool,
    quiet: bool,
    verbose: bool,
}

/// Whether Ctrl-C ended this process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit status of a program that SIGINT ended, as shells have it.
const INTERRUPTED_STATUS: u8 = 130;

/// Runs the command line.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        let at = info
            .location()
            .map_or_else(String::new, |at| format!(" ({}:{})", at.file(), at.line()));
        eprintln!("error: a fault of trace-attr itself{at}");
        eprintln!("help: please report it with the command and, if you can, the input");
    }));
    // A child would outlive us when only we are told to stop.
    let interrupted = ctrlc::set_handler(|| {
        if live::interrupted() {
            return;
        }
        INTERRUPTED.store(true, Ordering::SeqCst);
        crate::xctrace::end_children();
        std::process::exit(INTERRUPTED_STATUS.into());
    });
    let args = match Args::try_parse() {
        Ok(args) => args,
        // Help and version are asked for; anything else quotes what was typed.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            for line in error.render().to_string().lines() {
                eprintln!("{}", crate::label::visible(line));
            }
            return ExitCode::from(2);
        }
    };
    if let Err(error) = interrupted {
        eprintln!("warning: Ctrl-C may leave xctrace running: {error}");
    }
    let console = Console {
        color: args.color.resolve(),
        quiet: args.quiet,
        verbose: args.verbose,
    };
    let work = move || match args.command {
        Command::Compare(args) => analyse::compare(*args, console),
        Command::Report(args) => analyse::report(*args, console),
        Command::Convert(args) => convert::run(*args, console),
        Command::Calibrate(args) => calibrate::run(*args, console),
        Command::Toc(args) => toc::run(args, console),
        Command::Rows(args) => rows::run(args, console),
        Command::Export(args) => export::run(args, console),
        Command::Cache(args) => cache::run(&args),
        Command::Live(command) => live::run(command, console),
        Command::Config(args) => config::run(*args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(status)) | Ok(Err(Stop::ClosedPipe(status))) => status.code(),
        // The export that was ended failed of that: whoever asked for it knows, and the children are gone either way.
        Ok(Err(Stop::Failed(_))) if INTERRUPTED.load(Ordering::SeqCst) => {
            crate::xctrace::end_children();
            ExitCode::from(INTERRUPTED_STATUS)
        }
        Ok(Err(Stop::Failed(error))) => {
            print_error(&error);
            ExitCode::from(2)
        }
        Err(_) => ExitCode::from(2),
    }
}

impl ExitStatus {
    fn code(self) -> ExitCode {
        ExitCode::from(match self {
            ExitStatus::Done => 0,
            ExitStatus::Regression => 1,
            ExitStatus::CannotJudge | ExitStatus::Incomplete => 3,
        })
    }
}

/// `error: …`, one line, and `help: …`, whatever the names in them hold.
fn print_error(error: &Error) {
    let mut out = io::stderr().lock();
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(out, "error: {}", crate::label::visible(&error.to_string()));
    if let Some(help) = error.help() {
        let _ = writeln!(out, "help: {}", crate::label::visible(help));
    }
}

fn print_warning(console: Console, text: &str) {
    if !console.quiet {
        let _ = writeln!(io::stderr().lock(), "warning: {}", crate::label::visible(text));
    }
}
