//! The shape of a table for every text format, and how numbers are rounded, signed and grouped in it.
//!
//! A [`Sheet`] is a section of a report: lines, a table, lines. The formats decide how it looks; what stands in
//! it was decided in `sections`. No text in a sheet has a control or invisible character: [`text`] sees to it.

use crate::compare::Over;
use crate::figures::grouped;
pub(super) use crate::figures::{NOT_MEASURED, count, duration, number};
use crate::label;
use crate::model::Timestamp;

/// One section.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    /// Heading.
    pub(super) title: String,
    /// List before the table; numbered when `numbered`.
    pub(super) lines: Vec<Line>,
    /// Whether `lines` are ranked.
    pub(super) numbered: bool,
    /// Columns; empty: no table.
    pub(super) columns: Vec<Column>,
    /// Rows, each with as many cells as there are columns.
    pub(super) rows: Vec<Vec<Cell>>,
    /// A page writes each row as a line that begins with this word, instead of a table with headings.
    pub(super) spoken: Option<&'static str>,
    /// Sentences under the table.
    pub(super) footer: Vec<Line>,
    /// Whether a format that can fold sections folds this one.
    pub(super) folded: bool,
}

/// A sentence.
#[derive(Debug)]
pub(super) struct Line {
    /// What it says.
    pub(super) text: String,
    /// How it looks.
    pub(super) style: Style,
}

impl Line {
    pub(super) fn plain(text: impl Into<String>) -> Line {
        Line {
            text: text.into(),
            style: Style::Plain,
        }
    }
}

/// How a line or a cell looks; never the only sign of what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    /// A is slower.
    Worse,
    /// A is faster.
    Better,
    /// Beside the point.
    Dim,
    /// Part of a total, or a warning.
    Strong,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    /// Heading.
    pub(super) header: String,
    /// Heading over several neighbours (the side).
    pub(super) group: Option<String>,
    /// Whether the heading needs the group's to be understood (`llama` `µs/tok`).
    pub(super) needs_group: bool,
    /// Where its cells stand.
    pub(super) align: Align,
    /// 0: stays at every width. Where room is short, the columns with the highest number go first, all of one
    /// number together so that both sides keep the same columns.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only a terminal has a width"))]
    pub(super) priority: u8,
}

/// Where cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    /// Text, cut where room is short.
    Left,
    /// Numbers of different units, ranges.
    Right,
    /// Numbers of one unit: the points stand under each other.
    Point,
}

/// A cell.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) content: Content,
    pub(super) style: Style,
}

/// What a cell holds.
#[derive(Debug)]
pub(super) enum Content {
    /// One text.
    Text(String),
    /// Several texts, with commas between them and line breaks only after those.
    List(Vec<String>),
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Cell {
        Cell {
            content: Content::Text(text.into()),
            style: Style::Plain,
        }
    }

    /// A name from a trace or from the user.
    pub(super) fn label(name: &str) -> Cell {
        Cell::new(text(name))
    }

    pub(super) fn list(parts: Vec<String>) -> Cell {
        Cell {
            content: Content::List(parts),
            style: Style::Plain,
        }
    }

    pub(super) fn styled(mut self, style: Style) -> Cell {
        self.style = style;
        self
    }
}

impl Column {
    pub(super) fn new(header: impl Into<String>, align: Align, priority: u8) -> Column {
        Column {
            header: header.into(),
            group: None,
            needs_group: true,
            align,
            priority,
        }
    }

    pub(super) fn under(mut self, group: &str) -> Column {
        self.group = Some(group.to_owned());
        self
    }

    pub(super) fn named_by_itself(mut self) -> Column {
        self.needs_group = false;
        self
    }
}

/// Text from outside, made visible; a name that is empty shows as `""`.
pub(super) fn text(name: &str) -> String {
    if name.is_empty() {
        "\"\"".to_owned()
    } else {
        label::visible(name)
    }
}

/// A text that may be missing.
pub(super) fn or_dash(name: Option<&str>) -> String {
    name.map_or_else(|| NOT_MEASURED.to_owned(), text)
}

/// Things per unit: like [`number`], but a whole number has no decimals.
pub(super) fn quantity(value: f64) -> String {
    if value.is_finite() && value.fract().abs() < 1e-9 && value.abs() > 0.5 {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", grouped(&format!("{:.0}", value.abs())))
    } else {
        number(value)
    }
}

/// A difference: always with its sign.
pub(super) fn signed(value: f64) -> String {
    match number(value.abs()) {
        size if !value.is_finite() => size,
        size if value > 0.0 => format!("+{size}"),
        size if value < 0.0 => format!("-{size}"),
        size => size,
    }
}

/// A share in percent, for a sentence: `98.2 %`; `100 %` and `0 %` only for all and nothing.
pub(super) fn percent_of(part: f64, whole: f64) -> String {
    if whole <= 0.0 {
        return format!("{NOT_MEASURED} %");
    }
    let percent = 100.0 * part / whole;
    if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else if percent > 99.95 && percent < 100.0 {
        ">99.9 %".to_owned()
    } else if percent.fract().abs() < 1e-9 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Lowest and highest.
pub(super) fn spread(over: &Over) -> String {
    let (low, high) = (number(over.low), number(over.high));
    if low == high { low } else { format!("{low}–{high}") }
}

/// A count with its noun: `1 trial`, `3 trials`.
pub(super) fn plural(n: u64, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(n))
}

/// A length of collection as a count.
pub(super) fn len<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

/// A moment in the recording, to the µs.
pub(super) fn moment(Timestamp(ns): Timestamp) -> String {
    let us = ns / 1_000;
    format!("{}.{:06} s", grouped(&(us / 1_000_000).to_string()), us % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;

    #[test]
    fn small_is_not_zero_and_large_has_fewer_decimals() {
        let shown: Vec<String> = [0.0, 0.0049, 0.0051, 1.0, 99.99, 99.996, 369.74, 9_999.96, 1_234_567.8]
            .map(number)
            .into();
        assert_eq!(
            shown,
            [
                "0",
                "<0.01",
                "0.01",
                "1.00",
                "99.99",
                "100.0",
                "369.7",
                "10,000",
                "1,234,568"
            ]
        );
    }

    #[test]
    fn a_difference_has_a_sign() {
        assert_eq!(
            [12.34, -12.34, 0.001, -0.001, 0.0, -0.0].map(signed),
            ["+12.34", "-12.34", "+<0.01", "-<0.01", "0", "0"]
        );
    }

    #[test]
    fn no_number_is_not_measured() {
        assert_eq!([f64::NAN, f64::INFINITY].map(number), ["–", "–"]);
        assert_eq!([f64::NAN, f64::NEG_INFINITY].map(signed), ["–", "–"]);
    }

    #[test]
    fn words_follow_the_count() {
        assert_eq!(plural(1, "trial"), "1 trial");
        assert_eq!(plural(12_345, "row"), "12,345 rows");
        assert_eq!(quantity(21.0), "21");
        assert_eq!(quantity(20.94), "20.94");
    }

    #[test]
    fn shares_do_not_round_to_all_or_nothing() {
        assert_eq!(percent_of(1.0, 100_000.0), "<0.1 %");
        assert_eq!(percent_of(99_999.0, 100_000.0), ">99.9 %");
        assert_eq!(percent_of(1.0, 1.0), "100 %");
        assert_eq!(percent_of(1.0, 0.0), "– %");
    }

    #[test]
    fn times_have_their_unit() {
        assert_eq!(duration(Nanos(41)), "0.04 µs");
        assert_eq!(duration(Nanos(23_663_861)), "23.66 ms");
        assert_eq!(duration(Nanos(1_840_000_000)), "1.84 s");
        assert_eq!(moment(Timestamp(1_234_567_890)), "1.234567 s");
    }
}
