//! A [`Comparison`] as text: one file per format behind one `match`.
//!
//! What goes in is finished: reports format and pick, they compute nothing that a reader of the JSON would miss.
//! The text formats share the tables of `sections`, so every one of them shows the same rows;
//! JSON has its own structs, because it is a contract.

use std::io;
use std::path::Path;

use crate::compare::Comparison;

mod json;
mod label;
mod markdown;
mod pick;
mod sections;
mod sheet;
#[cfg(feature = "cli")]
mod terminal;
mod verdict_text;

#[cfg(feature = "cli")]
pub(crate) use label::visible;

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// Tables for a terminal or a plain text file
    #[cfg(feature = "cli")]
    Terminal,
    /// Every number, unrounded, with the values of each trial
    Json,
    /// Tables for a pull request comment or a step summary
    Markdown,
}

impl Format {
    /// The format of a file by its extension: `.txt`, `.json`, `.md`.
    pub fn of_path(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            #[cfg(feature = "cli")]
            "txt" => Some(Format::Terminal),
            "json" => Some(Format::Json),
            "md" => Some(Format::Markdown),
            _ => None,
        }
    }
}

/// How much is shown, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// Columns of the terminal; tables drop columns to fit, in a fixed order, and say which.
    pub width: usize,
    /// Whether the terminal report has colours.
    pub color: bool,
    /// Every kernel name instead of the first five of a family.
    pub show_kernels: bool,
    /// The value of each trial beside the medians.
    pub show_trials: bool,
    /// Shows [`command`](Self::command), which can hold paths and names of a user.
    pub show_private: bool,
    /// The command line that makes this report; in no report unless [`show_private`](Self::show_private) is set.
    pub command: Option<String>,
}

impl Default for ReportOptions {
    /// 100 columns, no colours, short.
    fn default() -> Self {
        ReportOptions {
            width: 100,
            color: false,
            show_kernels: false,
            show_trials: false,
            show_private: false,
            command: None,
        }
    }
}

impl ReportOptions {
    /// The command line, when it may be shown.
    fn shown_command(&self) -> Option<&str> {
        self.command.as_deref().filter(|_| self.show_private)
    }
}

/// Writes the whole report; nothing is written before it is complete, so a failure here is one of `out`.
pub fn write(
    comparison: &Comparison,
    format: Format,
    options: &ReportOptions,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let text = match format {
        #[cfg(feature = "cli")]
        Format::Terminal => terminal::render(comparison, options),
        Format::Json => json::render(comparison, options)?,
        Format::Markdown => markdown::render(comparison, options),
    };
    out.write_all(text.as_bytes())
}
