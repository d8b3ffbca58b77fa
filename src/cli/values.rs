//! Argument values that are more than a string: times, counts, and options shared by several commands.

use std::time::Duration;

use clap::Args;

use crate::cache::Cache;
use crate::error::Result;
use crate::model::Nanos;
pub(super) use crate::model::parse_time;
use crate::recording::{ReadOptions, RunChoice};
use crate::xctrace::XctraceOptions;

/// How inputs are read.
#[derive(Debug, Clone, Args)]
pub(super) struct ReadArgs {
    /// Run of the recording, when it has several: a number, or `all` (compare, report, convert: each is a trial)
    #[arg(long, value_name = "N|all", value_parser = parse_run, help_heading = "Reading")]
    run: Option<RunChoice>,
    #[command(flatten)]
    bundle: BundleArgs,
}

/// How bundles are exported, and whether the cache is used.
#[derive(Debug, Clone, Args)]
pub(super) struct BundleArgs {
    /// How long xctrace may be silent before it is ended (30m, 90s)
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, default_value = "30m", help_heading = "Reading")]
    timeout: Nanos,
    /// Read everything anew: nothing is taken from the cache, and nothing kept in it (see `trace-attr cache`)
    #[arg(long, help_heading = "Reading")]
    no_cache: bool,
}

impl ReadArgs {
    pub(super) fn run(&self) -> RunChoice {
        self.run.unwrap_or_default()
    }

    pub(super) fn xctrace(&self) -> Result<XctraceOptions> {
        self.bundle.options()
    }

    pub(super) fn options(&self) -> Result<ReadOptions> {
        let xctrace = self.xctrace()?;
        Ok(ReadOptions {
            run: self.run(),
            cache: xctrace.cache.clone(),
            xctrace,
            ..ReadOptions::default()
        })
    }
}

impl BundleArgs {
    pub(super) fn options(&self) -> Result<XctraceOptions> {
        Ok(XctraceOptions {
            timeout: Duration::from_nanos(self.timeout.0),
            cache: if self.no_cache {
                None
            } else {
                Cache::of_user()?.filter(|cache| cache.limit() > 0)
            },
            ..XctraceOptions::default()
        })
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
