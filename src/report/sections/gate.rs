//! The gate: a line per limit, printed whether it passes or not.

use crate::compare::gate::{GateResult, GatedRow};
use crate::report::label::width;
use crate::report::sheet::{Line, Sheet, Style};
use crate::report::verdict_text::{bounds, delta, key, outcome, result, self_test};

use super::View;

impl View<'_> {
    /// `None` without a gate.
    pub(super) fn gate(&self) -> Option<Sheet> {
        let gate = self.comparison.gate.as_ref()?;
        let cells: Vec<[String; 5]> = gate.rows.iter().map(columns).collect();
        let widest = |at: usize| {
            let cell = cells.iter().filter_map(|row| row.get(at));
            cell.map(|cell| width(cell)).max().unwrap_or(0)
        };
        let mut lines = Vec::new();
        for (row, cells) in gate.rows.iter().zip(&cells) {
            let mut line = String::from("gate: ");
            for (at, cell) in cells.iter().enumerate() {
                // The results stand under each other in every report, whatever they are.
                let room = if at == 0 { "cannot judge".len() } else { widest(at) };
                line += cell;
                line += &" ".repeat(room.saturating_sub(width(cell)) + 2);
            }
            line += &outcome(row, self.comparison);
            let style = match row.result {
                GateResult::Failed => Style::Worse,
                GateResult::CannotJudge => Style::Strong,
                GateResult::Passed => Style::Better,
            };
            lines.push(Line { text: line, style });
            if let Some(relative) = &row.judgement.relative {
                lines.push(Line {
                    text: format!("      relative to the controls: {} %", bounds(relative, None)),
                    style: Style::Dim,
                });
            }
        }
        if let Some(test) = &gate.self_test {
            lines.extend(self_test(test).into_iter().map(Line::plain));
        }
        Some(Sheet {
            title: "Gate".into(),
            lines,
            ..Sheet::default()
        })
    }
}

/// Result, row, change, interval, trials.
fn columns(row: &GatedRow) -> [String; 5] {
    let interval = row.judgement.test.as_ref().map(|test| &test.interval);
    [
        result(row.result).to_owned(),
        key(&row.key),
        delta(row),
        interval.map_or_else(super::dash, |interval| bounds(interval, Some(row.limit_pct))),
        interval.map_or_else(super::dash, |interval| format!("n {}+{}", interval.n_a, interval.n_b)),
    ]
}
