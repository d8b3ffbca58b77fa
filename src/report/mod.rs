//! A [`Comparison`] as text: one file per format behind one `match`.
//!
//! What goes in is finished: reports format and pick, they compute nothing that a reader of the JSON would miss.
//! The text formats share the tables of `sections`, so every one of them shows the same rows;
//! JSON has its own structs, because it is a contract.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use crate::compare::Comparison;

mod bencher;
mod benchstat;
mod csv;
mod github;
mod github_action_benchmark;
mod html;
mod json;
mod junit;
mod markdown;
mod pick;
mod sections;
mod selection;
mod series;
mod sheet;
#[cfg(feature = "cli")]
mod terminal;
mod verdict_text;

pub use selection::{Section, Selection, SortBy};

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
    /// One page with pictures, for a colleague: no network, works without a script
    Html,
    /// One long table for a database or a spreadsheet
    Csv,
    /// A test case per gated row, as JUnit XML
    Junit,
    /// Workflow commands: annotations of a GitHub job, at most 10
    Github,
    /// Go benchmark lines, one per row and trial
    Benchstat,
    /// JSON for github-action-benchmark, customSmallerIsBetter
    GithubActionBenchmark,
    /// JSON for Bencher (BMF)
    Bencher,
}

impl Format {
    /// The format of a file by its extension: `.txt`, `.json`, `.md`, `.html`, `.csv`, `.xml`; that of JSON is our own.
    pub fn of_path(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            #[cfg(feature = "cli")]
            "txt" => Some(Format::Terminal),
            "json" => Some(Format::Json),
            "md" => Some(Format::Markdown),
            "html" | "htm" => Some(Format::Html),
            "csv" => Some(Format::Csv),
            "xml" => Some(Format::Junit),
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
    /// How submissions spread over durations, as a line of block characters per side.
    pub show_sparklines: bool,
    /// Which sections and rows the text formats show.
    pub selection: Selection,
    /// Shows [`command`](Self::command), which can hold paths and names of a user.
    pub show_private: bool,
    /// What the comparison is called in CI: marker of the comment, test suite, annotations; `None`: the command.
    pub gate_name: Option<GateName>,
    /// Most bytes of Markdown: rows, then sections are left out.
    pub markdown_bytes: usize,
    /// The command line that makes this report; in no report unless [`show_private`](Self::show_private) is set.
    pub command: Option<String>,
    /// Name of the configuration file that counted, without its folders.
    pub config: Option<String>,
}

impl Default for ReportOptions {
    /// 100 columns, no colours, short; Markdown for a comment.
    fn default() -> Self {
        ReportOptions {
            width: 100,
            color: false,
            show_kernels: false,
            show_trials: false,
            show_sparklines: false,
            selection: Selection::default(),
            show_private: false,
            gate_name: None,
            markdown_bytes: markdown::COMMENT_BYTES,
            command: None,
            config: None,
        }
    }
}

impl ReportOptions {
    /// The command line, when it may be shown.
    fn shown_command(&self) -> Option<&str> {
        self.command.as_deref().filter(|_| self.show_private)
    }

    /// What the comparison is called in CI.
    fn name(&self, comparison: &Comparison) -> &str {
        match &self.gate_name {
            Some(GateName(name)) => name,
            None if comparison.b.is_some() => "compare",
            None => "report",
        }
    }
}

/// What a comparison is called in CI, where one job can make several: a plain word, so that it is safe in every format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateName(String);

impl FromStr for GateName {
    type Err = String;

    /// Letters, digits, `.`, `_` and single `-`, at most 64 characters: `--` would end an HTML comment.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let edge = text.starts_with('-') || text.ends_with('-');
        if text.is_empty() || text.len() > 64 || edge || text.contains("--") || !text.chars().all(plain) {
            return Err("use letters, digits, `.`, `_` and single `-`, at most 64 characters".to_owned());
        }
        Ok(GateName(text.to_owned()))
    }
}

impl fmt::Display for GateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
        Format::Html => html::render(comparison, options)?,
        Format::Csv => csv::render(comparison)?,
        Format::Junit => junit::render(comparison, options),
        Format::Github => github::render(comparison, options),
        Format::Benchstat => benchstat::render(comparison),
        Format::GithubActionBenchmark => github_action_benchmark::render(comparison)?,
        Format::Bencher => bencher::render(comparison)?,
    };
    out.write_all(text.as_bytes())
}
