//! Which part of a comparison the text formats show: sections, the order of rows, how many.
//!
//! JSON, CSV and the HTML page hold everything whatever is chosen here: a program picks for itself, and a page sorts and
//! filters.

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use crate::compare::{Cell, Change, Row};

/// A section that can be asked for alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Section {
    /// What was read: input, submissions, total, busy, idle
    Trials,
    /// What to look at first
    Findings,
    /// Duration buckets
    Buckets,
    /// Encoder families
    Encoders,
    /// Command-buffer phases
    Phases,
    /// Compute, Vertex, Fragment, Blit
    Channels,
    /// Kernel families, and what the Shader Timeline sampled
    Kernels,
    /// Time between submissions
    Gaps,
    /// The slowest submissions
    Slowest,
    /// Rows that do not count, by reason
    LeftOut,
    /// Notes and warnings
    Notes,
    /// How this was computed
    Method,
}

/// What encoders, phases and channels are sorted by. Largest first; a row without the value comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum SortBy {
    /// GPU time of side A
    A,
    /// GPU time of side B
    B,
    /// Δ: what A takes longer first
    Delta,
    /// Δ, whatever its sign
    Change,
    /// Δ in percent of B, whatever its sign
    Percent,
    /// Submissions of the side that has more of them
    Submissions,
    /// The row's name, from A to Z
    Name,
}

/// What is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// These sections; empty: all.
    pub only: Vec<Section>,
    /// Order of the rows of encoders, phases and channels; `None`: phases by A's time, the others by Δ.
    pub sort: Option<SortBy>,
    /// So many rows of each of those tables; `None`: all.
    pub top: Option<NonZeroUsize>,
}

impl Selection {
    /// Whether a section is shown.
    pub(super) fn shows(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }

    /// The rows to show, in their order, and how many more there are.
    pub(super) fn rows<'a>(&self, rows: &'a [Row]) -> (Vec<&'a Row>, usize) {
        let mut rows: Vec<&Row> = rows.iter().collect();
        match self.sort {
            None => {}
            // Rows of one name do not exist; the order of equal values is the report's own.
            Some(SortBy::Name) => rows.sort_by(|a, b| a.key.cmp(&b.key)),
            Some(by) => rows.sort_by(|a, b| largest_first(value(a, by), value(b, by))),
        }
        let all = rows.len();
        rows.truncate(self.top.map_or(all, NonZeroUsize::get));
        let more = all - rows.len();
        (rows, more)
    }
}

fn value(row: &Row, by: SortBy) -> Option<f64> {
    let time = |cell: &Option<Cell>| Some(cell.as_ref()?.total_us.median);
    let submissions = |cell: &Option<Cell>| cell.as_ref().map_or(0.0, |cell| cell.submissions.median);
    match by {
        SortBy::A => time(&row.a),
        SortBy::B => time(&row.b),
        SortBy::Delta => delta(row),
        SortBy::Change => delta(row).map(f64::abs),
        SortBy::Percent => match row.change? {
            // Nothing against something is more than any percentage.
            Change::OnlyA { .. } => Some(f64::INFINITY),
            Change::OnlyB { .. } => Some(100.0),
            Change::Both { delta_pct, .. } => delta_pct.map(f64::abs),
        },
        SortBy::Submissions => Some(submissions(&row.a).max(submissions(&row.b))),
        SortBy::Name => None,
    }
}

fn delta(row: &Row) -> Option<f64> {
    Some(match row.change? {
        Change::OnlyA { delta_us, .. } | Change::OnlyB { delta_us, .. } | Change::Both { delta_us, .. } => delta_us,
    })
}

fn largest_first(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
