//! Options of `compare` that say what may be said: margin, noise, controls, and the gate.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::compare::gate::{Limit, Percent, exceptions};
use crate::compare::{CompareOptions, GateRules, Noise};
use crate::error::{Error, Result};

/// What a limit inside the interval means for the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OnInconclusive {
    /// Exit status 3
    Fail,
    /// Passes, and says so; nothing else that cannot be judged passes
    Pass,
}

/// Verdicts and the gate.
#[derive(Debug, Args)]
pub(super) struct JudgingArgs {
    /// Fail (exit 1) when GPU busy time is shown to be more than this slower (3, 3%)
    #[arg(long, value_name = "P", value_parser = percent, help_heading = "Gate")]
    pub(super) fail_above: Option<Percent>,
    /// Also gate a row: total, bucket:KEY, encoder:KEY, phase:KEY, channel:KEY, kernel:KEY; can be given several times
    ///
    /// Without its own limit a row takes that of --fail-above. Every gated row is printed, also when it passes.
    #[arg(long, value_name = "KEY[=P]", value_parser = limit, help_heading = "Gate")]
    pub(super) gate: Vec<Limit>,
    /// Changes within this count as none [default: 1%]
    #[arg(long, value_name = "P", value_parser = percent, help_heading = "Gate")]
    pub(super) margin: Option<Percent>,
    /// What a limit inside the interval does [default: fail]
    #[arg(long, value_name = "HOW", help_heading = "Gate")]
    pub(super) on_inconclusive: Option<OnInconclusive>,
    /// Exceptions (TOML): rows that may be slower until a day
    ///
    /// Each is `[[accept]]` with `row`, `up_to` (percent), `until` (a day, UTC) and `why`.
    #[arg(long, value_name = "FILE", help_heading = "Gate")]
    pub(super) accept: Option<PathBuf>,
    /// The day that exceptions are held against [default: today, UTC]
    #[arg(long, value_name = "DAY", requires = "accept", help_heading = "Gate")]
    pub(super) today: Option<jiff::civil::Date>,
    /// Show that this gate can fail: with side A made slower, made faster, and with the row gone
    #[arg(long, help_heading = "Gate")]
    pub(super) self_test: bool,
    /// Take the k-th trial of A with the k-th of B (recorded one after the other, in changing order)
    #[arg(long, conflicts_with = "noise", help_heading = "Verdicts")]
    pub(super) paired: bool,
    /// Noise between sessions, from `trace-attr calibrate`: for single trials and for baselines
    #[arg(long, value_name = "FILE", help_heading = "Verdicts")]
    pub(super) noise: Option<PathBuf>,
    /// Phases that are equal on both sides (a regular expression): shows when the machine changed
    #[arg(long, value_name = "REGEX", value_parser = regex, help_heading = "Verdicts")]
    pub(super) control: Option<regex::Regex>,
    /// Compare although GPU, unit, window or work differ: what forbids it becomes a note
    #[arg(long, help_heading = "Verdicts")]
    pub(super) force: bool,
}

fn percent(text: &str) -> std::result::Result<Percent, String> {
    text.parse()
}

fn limit(text: &str) -> std::result::Result<Limit, String> {
    text.parse()
}

fn regex(text: &str) -> std::result::Result<regex::Regex, String> {
    if text.is_empty() {
        return Err("an empty expression fits every phase".to_owned());
    }
    regex::Regex::new(text).map_err(|error| {
        // The last line says what is wrong; those before it draw where.
        let whole = error.to_string();
        whole
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned()
    })
}

/// Reads a small file that the user names.
pub(super) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::io("open it", error).with_origin(path.display().to_string()))
}

impl JudgingArgs {
    /// Files that these options read.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.accept.iter().chain(&self.noise)
    }

    pub(super) fn options(&self) -> Result<CompareOptions> {
        let limits = GateRules::limits(self.fail_above, &self.gate)?;
        if limits.is_empty() {
            let without = [
                (self.on_inconclusive.is_some(), "--on-inconclusive"),
                (self.accept.is_some(), "--accept"),
                (self.self_test, "--self-test"),
            ];
            if let Some((_, option)) = without.iter().find(|(given, _)| *given) {
                return Err(Error::usage(format!("{option} is about a gate, and there is none"))
                    .with_help("give a limit: --fail-above 3%, or --gate phase:NAME=3%"));
            }
        }
        let exceptions = match &self.accept {
            Some(path) => exceptions(&read(path)?).map_err(|error| error.with_origin(path.display().to_string()))?,
            None => Vec::new(),
        };
        let noise = match &self.noise {
            Some(path) => {
                let text = read(path)?;
                Some(Noise::from_json(&text).map_err(|error| error.with_origin(path.display().to_string()))?)
            }
            None => None,
        };
        Ok(CompareOptions {
            margin_pct: self.margin.map_or(CompareOptions::default().margin_pct, Percent::get),
            paired: self.paired,
            force: self.force,
            noise,
            controls: self.control.clone(),
            gate: (!limits.is_empty()).then(|| GateRules {
                limits,
                pass_inconclusive: self.on_inconclusive == Some(OnInconclusive::Pass),
                exceptions,
                today: self.today.unwrap_or_else(today),
                self_test: self.self_test,
            }),
            ..CompareOptions::default()
        })
    }
}

/// Today in UTC.
fn today() -> jiff::civil::Date {
    jiff::tz::TimeZone::UTC.to_datetime(jiff::Timestamp::now()).date()
}
