//! Durations of submissions as one line of blocks per side, on one axis.

use crate::compare::{HistogramCell, HistogramRow};
use crate::report::sheet::{Line, Style, duration, quantity};

use super::View;

/// From nearly nothing to the most.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Most blocks of a line: with the longest name of a side it fits 80 columns.
const MOST: usize = 44;

impl View<'_> {
    /// A line of blocks for each side, the axis, and what a block stands for; nothing without durations.
    pub(super) fn sparklines(&self) -> Vec<Line> {
        let rows = &self.comparison.histogram;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return Vec::new();
        };
        // Neighbours are taken together until the line is short enough.
        let together = rows.len().div_ceil(MOST).next_power_of_two();
        let side = |pick: fn(&HistogramRow) -> Option<HistogramCell>| -> Option<Vec<f64>> {
            let counts: Option<Vec<f64>> = rows.iter().map(|row| Some(pick(row)?.submissions.median)).collect();
            Some(counts?.chunks(together).map(|bins| bins.iter().sum()).collect())
        };
        let counts = [side(|row| row.a), side(|row| row.b)];
        let most = counts.iter().flatten().flatten().copied().fold(0.0, f64::max);
        if most <= 0.0 {
            return Vec::new();
        }
        let names = self.sides.iter().map(|(name, _)| name.as_str());
        let margin = names.clone().map(crate::label::width).max().unwrap_or(0) + 2;
        let mut lines: Vec<Line> = names
            .zip(&counts)
            .filter_map(|(name, counts)| {
                let blocks: String = counts.as_ref()?.iter().map(|count| block(*count, most)).collect();
                let space = " ".repeat(margin - crate::label::width(name));
                Some(Line::plain(format!("{name}{space}{}", blocks.trim_end())))
            })
            .collect();
        let (from, to) = (duration(first.from), duration(last.to));
        let bars = rows.len().div_ceil(together);
        let between = bars.saturating_sub(crate::label::width(&from) + crate::label::width(&to));
        lines.push(Line {
            text: format!("{}{from}{}{to}", " ".repeat(margin), " ".repeat(between.max(1))),
            style: Style::Dim,
        });
        lines.push(Line {
            text: format!(
                "submissions by duration, {} a doubling; the highest block: {} {}",
                match together {
                    1 => "four blocks to",
                    2 => "two blocks to",
                    4 => "a block to",
                    _ => "less than a block to",
                },
                quantity(most),
                self.per("sub"),
            ),
            style: Style::Dim,
        });
        lines
    }
}

/// The block for a count; a blank for none, and none else.
fn block(count: f64, most: f64) -> char {
    let eighth = (1..=BLOCKS.len()).find(|eighth| count * 8.0 <= most * *eighth as f64);
    match eighth.and_then(|eighth| BLOCKS.get(eighth - 1)) {
        Some(block) if count > 0.0 => *block,
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_submission_among_many_is_seen_and_none_is_blank() {
        let blocks: String = [0.0, 0.001, 12.5, 12.6, 50.0, 99.0, 100.0]
            .map(|count| block(count, 100.0))
            .iter()
            .collect();
        assert_eq!(blocks, " ▁▁▂▄██");
    }
}
