//! The gate: a row per limit, shown whether it passes or not.

use crate::compare::gate::{Gate, GateResult, GatedRow};
use crate::report::sheet::{Align, Cell, Column, Line, Sheet, Style};
use crate::report::verdict_text::{bounds, delta, key, outcome, result, self_test};

use super::View;

impl View<'_> {
    /// `None` without a gate.
    pub(super) fn gate(&self) -> Option<Sheet> {
        let gate = self.comparison.gate.as_ref()?;
        let column = |header: &str| Column::new(header, Align::Left, 0);
        let mut footer = Vec::new();
        for row in &gate.rows {
            if let Some(relative) = &row.judgement.relative {
                footer.push(Line {
                    text: format!(
                        "{} relative to the controls: {} %",
                        key(&row.key),
                        bounds(relative, None)
                    ),
                    style: Style::Dim,
                });
            }
        }
        if let Some(test) = &gate.self_test {
            footer.extend(self_test(test).into_iter().map(Line::plain));
        }
        Some(Sheet {
            title: title(gate),
            columns: ["result", "row", "Δ", "90 % interval", "trials", ""].map(column).into(),
            rows: gate.rows.iter().map(|row| self.gated(row)).collect(),
            spoken: Some("gate:"),
            footer,
            ..Sheet::default()
        })
    }

    /// Result, row, change, interval, trials, and what that means.
    fn gated(&self, row: &GatedRow) -> Vec<Cell> {
        let interval = row.judgement.test.as_ref().map(|test| &test.interval);
        let style = match row.result {
            GateResult::Failed => Style::Worse,
            GateResult::CannotJudge => Style::Strong,
            GateResult::Passed => Style::Better,
        };
        let cells = [
            result(row.result).to_owned(),
            key(&row.key),
            delta(row),
            interval.map_or_else(super::dash, |interval| bounds(interval, Some(row.limit_pct))),
            interval.map_or_else(super::dash, |interval| format!("n {}+{}", interval.n_a, interval.n_b)),
            outcome(row, self.comparison),
        ];
        cells.map(|cell| Cell::new(cell).styled(style)).into()
    }
}

/// `Gate: failed (1 of 2 rows)`: what a reader of a red job looks for.
fn title(gate: &Gate) -> String {
    let same = gate.rows.iter().filter(|row| row.result == gate.result).count();
    let rows = if gate.rows.len() == 1 { "row" } else { "rows" };
    format!("Gate: {} ({same} of {} {rows})", result(gate.result), gate.rows.len())
}
