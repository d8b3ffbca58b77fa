//! Argument values that are more than a string: times, counts, and options shared by several commands.

use std::time::Duration;

use clap::Args;

use crate::error::Result;
use crate::model::Nanos;
pub(super) use crate::model::parse_time;
use crate::recording::{ReadOptions, RunChoice};
use crate::xctrace::XctraceOptions;

/// How inputs are read.
#[derive(Debug, Clone, Args)]
pub(super) struct ReadArgs {
    /// Run of the recording, when it has several: a number, or `all` (compare, report: each is a trial)
    #[arg(long, value_name = "N|all", value_parser = parse_run, help_heading = "Reading")]
    run: Option<RunChoice>,
    #[command(flatten)]
    bundle: BundleArgs,
}

/// How bundles are exported.
#[derive(Debug, Clone, Args)]
pub(super) struct BundleArgs {
    /// How long xctrace may be silent before it is ended (30m, 90s)
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, default_value = "30m", help_heading = "Reading")]
    timeout: Nanos,
    /// Export a bundle again, although it was exported before
    #[arg(long, help_heading = "Reading")]
    no_cache: bool,
}

impl ReadArgs {
    pub(super) fn options(&self) -> ReadOptions {
        ReadOptions {
            run: self.run.unwrap_or_default(),
            signposts: false,
            xctrace: self.bundle.options(),
            ..ReadOptions::default()
        }
    }
}

impl BundleArgs {
    pub(super) fn options(&self) -> XctraceOptions {
        let mut xctrace = XctraceOptions {
            timeout: Duration::from_nanos(self.timeout.0),
            ..XctraceOptions::default()
        };
        if self.no_cache {
            xctrace.cache = None;
        }
        xctrace
    }
}

fn parse_run(text: &str) -> Result<RunChoice, String> {
    match text {
        "all" => Ok(RunChoice::All),
        number => number
            .parse()
            .map(RunChoice::Number)
            .map_err(|_| "give a run's number, or `all`".to_owned()),
    }
}

fn parse_timeout(text: &str) -> Result<Nanos, String> {
    match parse_time(text)? {
        Nanos(0) => Err("give xctrace some time, such as 30m".to_owned()),
        time => Ok(time),
    }
}

/// A count of units: a whole number above 0.
pub(super) fn parse_units(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(0) => Err("times cannot be divided by 0; leave the option out for values per trial".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("`{text}` is no whole number")),
    }
}
