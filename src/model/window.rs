//! The stretch of time that counts, and the rule that says where it lies.
//!
//! A rule is the same for all trials of a side; what it finds differs from trial to trial ([`WindowFound`]).

use std::str::FromStr;

use super::{Nanos, Timestamp, parse_time};
use crate::error::{Error, Result};

/// The stretch of time that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub from: Timestamp,
    /// Its end (exclusive).
    pub to: Timestamp,
}

impl Window {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.to.since(self.from)
    }
}

/// `--window`: what in the trace the window is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WindowSpan {
    /// First start to last end of the process.
    #[default]
    Process,
    /// From the first start to the last end of the process's signpost intervals of exactly this name.
    Signpost(String),
    /// The longest stretch of the process's submissions without a pause longer than this.
    Quiet(Nanos),
}

/// The remedy for a `--window` that cannot be read.
const SPAN_HELP: &str = "write signpost:NAME (the name of a signpost interval) or quiet:GAP (such as quiet:10ms)";

impl FromStr for WindowSpan {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("signpost", "")) => Err(Error::usage("signpost: no name is given").with_help(SPAN_HELP)),
            Some(("signpost", name)) => Ok(WindowSpan::Signpost(name.to_owned())),
            Some(("quiet", gap)) => parse_time(gap)
                .map(WindowSpan::Quiet)
                .map_err(|error| Error::usage(format!("quiet: {error}")).with_help(SPAN_HELP)),
            _ => Err(Error::usage(format!("`{text}` is no window")).with_help(SPAN_HELP)),
        }
    }
}

/// The window that the user asked for; the default means first start to last end of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowRule {
    /// `--window`.
    pub span: WindowSpan,
    /// `--from`, in trace time.
    pub from: Option<Timestamp>,
    /// `--to`, in trace time.
    pub to: Option<Timestamp>,
    /// `--skip-first`, after the first submission of the process, or of what `span` finds.
    pub skip_first: Option<Nanos>,
}

impl WindowRule {
    /// The rule, if its parts make sense together.
    ///
    /// # Errors
    /// `--from` not before `--to`; times together with a span, because both say where the window lies, and whether
    /// one cuts the other or chooses from it would be a guess.
    pub fn checked(self) -> Result<Self> {
        if self.span != WindowSpan::Process && (self.from.is_some() || self.to.is_some()) {
            return Err(
                Error::usage("--window and --from or --to both say where the window lies").with_help(
                    "give one of them; --skip-first goes with either, and then counts from the first submission inside",
                ),
            );
        }
        match (self.from, self.to) {
            (Some(from), Some(to)) if from >= to => {
                Err(Error::usage("--from must lie before --to (--until of `convert`)")
                    .with_help("times count from the start of the recording"))
            }
            _ => Ok(self),
        }
    }
}

/// What a rule found in one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WindowFound {
    /// Nothing had to be looked for.
    #[default]
    Given,
    /// Signpost intervals from the first start to the last end of which the window goes; at least one.
    Signposts {
        /// How many.
        intervals: u64,
    },
    /// The longest of several stretches of submissions.
    Stretch {
        /// How many there were.
        of: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_they_are_written() {
        let read = |text: &str| text.parse::<WindowSpan>().map_err(|error| error.to_string());
        assert_eq!(read("signpost:decode"), Ok(WindowSpan::Signpost("decode".into())));
        // A name is everything behind the first colon.
        assert_eq!(
            read("signpost:ns::load: 2"),
            Ok(WindowSpan::Signpost("ns::load: 2".into()))
        );
        assert_eq!(read("quiet:10ms"), Ok(WindowSpan::Quiet(Nanos(10_000_000))));
        for (bad, part) in [
            ("signpost:", "no name"),
            ("quiet:", "no time"),
            ("quiet:5", "with its unit"),
            ("decode", "no window"),
            ("", "no window"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(part), "{bad}: {error}");
        }
    }

    #[test]
    fn times_and_a_span_do_not_go_together() {
        let rule = |span, from, to| WindowRule {
            span,
            from,
            to,
            skip_first: Some(Nanos(1)),
        };
        let at = |ns| Some(Timestamp(ns));
        let quiet = || WindowSpan::Quiet(Nanos(1));
        assert!(rule(WindowSpan::Process, at(1), at(2)).checked().is_ok());
        assert!(rule(quiet(), None, None).checked().is_ok());
        assert!(rule(quiet(), at(1), None).checked().is_err());
        assert!(rule(quiet(), None, at(1)).checked().is_err());
        assert!(rule(WindowSpan::Process, at(2), at(2)).checked().is_err());
    }
}
