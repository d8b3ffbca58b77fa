//! Rows as series of numbers, for tools that keep measurements by name: their names, their times, and what is told
//! beside them.
//!
//! What goes in: a comparison. What comes out: each row that has a time, in the order of the reports, with `busy`
//! speaking of busy time and all others of total time; units spelled out, so that no number is taken for one of another
//! unit; and the remarks that stand in every format.

use super::pick;
use crate::attribution::Stats;
use crate::compare::gate::RowKey;
use crate::compare::{Cell, Comparison, Over, Row, Side, Trial};
use crate::label::visible;
use crate::model::{Nanos, Reason, Severity};

/// Longest name of a series, in characters: Bencher takes no more than 1,024.
const NAME_CHARACTERS: usize = 1_000;

/// One row to keep.
pub(super) struct Series<'a> {
    pub(super) key: RowKey,
    pub(super) row: &'a Row,
}

/// Every row, `busy` first.
pub(super) fn series(comparison: &Comparison) -> Vec<Series<'_>> {
    let rows = comparison.rows().into_iter();
    rows.map(|(key, row)| Series { key, row }).collect()
}

impl Series<'_> {
    /// Time over the trials of a side, µs per unit.
    pub(super) fn time(&self, cell: &Cell) -> Over {
        match self.key {
            RowKey::Busy => cell.busy_us,
            _ => cell.total_us,
        }
    }

    /// Time of one trial, ns per unit.
    pub(super) fn trial_ns(&self, stats: &Stats, trial: &Trial) -> f64 {
        let Nanos(ns) = match self.key {
            RowKey::Busy => stats.busy,
            _ => stats.total,
        };
        ns as f64 / trial.units.unwrap_or(1) as f64
    }

    /// Name under which the series is kept.
    pub(super) fn name(&self) -> String {
        name(&self.key)
    }
}

/// A row's key as a name: visible, without what Markdown and HTML act on, no longer than a store takes.
///
/// A key that is cut has a number behind it, so that two long ones stay two.
pub(super) fn name(key: &RowKey) -> String {
    let mut name = String::new();
    let shown = visible(&key.to_string());
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        // Stores show names in tables and pages of their own, not always escaped.
        let tag = || {
            rest.as_str()
                .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
        };
        match c {
            '|' | '`' | '"' => name.extend(c.escape_unicode()),
            '<' if tag() => name.extend(c.escape_unicode()),
            c => name.push(c),
        }
    }
    // Bencher drops this ending and, with it, every alert.
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    if plain.to_ascii_lowercase().ends_with("bencherignore") {
        name.push_str("\\u{}");
    }
    if name.chars().count() > NAME_CHARACTERS {
        let kept: String = name.chars().take(NAME_CHARACTERS - 20).collect();
        name = format!("{kept}…{:016x}", checksum(name.as_bytes()));
    }
    name
}

/// FNV-1a: the same on every machine and in every version.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// `token`, or `trial` when values are per trial.
pub(super) fn per(comparison: &Comparison) -> &str {
    comparison.settings.unit.as_deref().unwrap_or("trial")
}

/// Sides with their letters, A first.
pub(super) fn sides(comparison: &Comparison) -> impl Iterator<Item = (&'static str, &Side)> {
    std::iter::once(&comparison.a)
        .chain(&comparison.b)
        .zip(["a", "b"])
        .map(|(side, letter)| (letter, side))
}

/// What stands beside the numbers in every format: warnings, and rows that are not counted.
pub(super) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks = warnings(comparison);
    remarks.extend(left_out(comparison));
    remarks
}

/// Why the sides do not compare, and the warnings.
pub(super) fn warnings(comparison: &Comparison) -> Vec<String> {
    let warnings = comparison
        .notes
        .iter()
        .filter(|note| note.severity == Severity::Warning);
    let mut remarks: Vec<String> = comparison
        .incomparable
        .iter()
        .map(|reason| format!("not comparable: {}", visible(&reason.text)))
        .collect();
    remarks.extend(warnings.map(|note| format!("warning: {}", visible(&note.text))));
    remarks
}

/// A line per side of which rows are left out.
pub(super) fn left_out(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for (letter, side) in sides(comparison) {
        let mut parts = Vec::new();
        for reason in Reason::ALL {
            let count = pick::left_out(side, reason);
            match count.total {
                _ if count.rows == 0 => {}
                Some(Nanos(ns)) => parts.push(format!("{} {} rows of {ns} ns", reason.code(), count.rows)),
                None => parts.push(format!("{} {} rows", reason.code(), count.rows)),
            }
        }
        if !parts.is_empty() {
            lines.push(format!(
                "left out of {letter}, {}: {}",
                visible(&side.name),
                parts.join(", ")
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(label: &str) -> String {
        name(&RowKey::In(crate::compare::gate::Table::Phases, label.to_owned()))
    }

    #[test]
    fn a_name_is_plain_text_wherever_it_is_shown() {
        assert_eq!(phase("ggml::mul_mat 行列積"), "phase:ggml::mul_mat 行列積");
        assert_eq!(phase("a|b`c`<i>"), "phase:a\\u{7c}b\\u{60}c\\u{60}\\u{3c}i>");
        assert_eq!(phase("xs_<2us & a < b"), "phase:xs_<2us & a < b");
        assert_eq!(phase("x\u{1b}[0m"), "phase:x\\u{1b}[0m");
    }

    #[test]
    fn no_label_switches_alerts_off() {
        assert_eq!(phase("a-bencher-ignore"), "phase:a-bencher-ignore\\u{}");
        assert_eq!(phase("a.Bencher_Ignore"), "phase:a.Bencher_Ignore\\u{}");
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let (one, other) = (
            phase(&format!("{}1", "試".repeat(5_000))),
            phase(&format!("{}2", "試".repeat(5_000))),
        );
        assert_eq!(one.chars().count(), NAME_CHARACTERS - 3);
        assert_ne!(one, other);
    }
}
