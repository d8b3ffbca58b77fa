//! `live`: kernels measured on this machine's GPU, and a running program watched through short recordings.

mod device;
mod watch;

use clap::Subcommand;

use super::{Console, ExitStatus, Stop};

/// What is done live.
#[derive(Debug, Subcommand)]
pub(super) enum LiveCommand {
    /// Measure a kernel, or hold two against each other
    Bench(Box<device::BenchArgs>),
    /// Run the kernels, buffers and dispatches of a file under a profile
    Run(Box<device::RunArgs>),
    /// Watch a running program: short recordings one after the other
    Watch(Box<watch::WatchArgs>),
    /// Show what this machine's GPU can tell, and check its clocks
    Doctor(device::DoctorArgs),
}

pub(super) fn run(command: LiveCommand, console: Console) -> Result<ExitStatus, Stop> {
    match command {
        LiveCommand::Bench(args) => device::bench(&args),
        LiveCommand::Run(args) => device::run(&args),
        LiveCommand::Watch(args) => watch::run(*args, console),
        LiveCommand::Doctor(args) => device::doctor(&args),
    }
}

pub(super) use watch::interrupted;
