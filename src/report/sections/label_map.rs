//! The section *Label map*: how much GPU time of each side fell under which rule, and what fell under none.

use crate::compare::{MappedTime, MappedTotals};
use crate::report::sheet::{Align, Cell, Column, Line, NOT_MEASURED, Sheet, Style, len, number, percent_of, text};

use super::{FEW, View, dash};

impl View<'_> {
    /// `None` without a label map.
    pub(super) fn label_map(&self) -> Option<Sheet> {
        let mapped = self.comparison.label_map.as_ref()?;
        let mut columns = vec![
            Column::new("entry", Align::Right, 0),
            Column::new("phase", Align::Left, 0),
        ];
        for (name, _) in &self.sides {
            columns.push(Column::new("expression", Align::Left, 5).under(name));
            columns.push(Column::new(self.us_per(), Align::Point, 1).under(name));
            columns.push(Column::new("% of total", Align::Point, 2).under(name));
            columns.push(Column::new("phases", Align::Right, 4).under(name));
        }
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        for (number, rule) in (1..).zip(&mapped.rules) {
            let mut row = vec![Cell::new(format!("{number}")), Cell::label(&rule.rule.name)];
            let sides = [(&rule.rule.a, Some(&rule.a)), (&rule.rule.b, rule.b.as_ref())];
            for ((pattern, time), _) in sides.into_iter().zip(&self.sides) {
                row.push(
                    pattern
                        .as_ref()
                        .map_or_else(|| Cell::new(NOT_MEASURED), |pattern| Cell::label(pattern)),
                );
                row.extend(cells(time));
            }
            rows.push(row);
        }
        let sides = || [Some(&mapped.a), mapped.b.as_ref()].into_iter().zip(&self.sides);
        let mut total = |title: &str, pick: fn(&MappedTotals) -> Option<&MappedTime>| {
            let mut row = vec![Cell::new(""), Cell::new(title)];
            for (totals, _) in sides() {
                row.push(Cell::new(""));
                row.extend(cells(totals.and_then(pick)));
            }
            rows.push(row.into_iter().map(|cell| cell.styled(Style::Strong)).collect());
        };
        total("MATCHED", |totals| Some(&totals.matched));
        if self.two_sided() {
            total("SAME NAME", |totals| totals.same_name.as_ref());
        }
        total("NOT MATCHED", |totals| Some(&totals.unmatched));
        let mut footer: Vec<Line> = sides()
            .filter_map(|(totals, (name, _))| Some(self.unmatched(name, totals?)))
            .map(Line::plain)
            .collect();
        footer.push(Line {
            text: "the first entry that fits decides; an expression is held against the phase as it is called without the map"
                .into(),
            style: Style::Dim,
        });
        if self.two_sided() {
            footer.push(Line {
                text: "same name: no entry fits, but both sides call the phase so".into(),
                style: Style::Dim,
            });
        }
        Some(Sheet {
            title: "Label map".into(),
            columns,
            rows,
            footer,
            folded: true,
            ..Sheet::default()
        })
    }

    /// `hf2q: not matched: sample 12.30 µs/tok (2.1 %), copy 3.10 µs/tok (0.5 %); and 3 more`.
    fn unmatched(&self, name: &str, totals: &MappedTotals) -> String {
        if totals.unmatched_phases.is_empty() {
            return format!("{name}: no phase is left");
        }
        let mut list: Vec<String> = totals
            .unmatched_phases
            .iter()
            .take(FEW)
            .map(|(phase, time)| {
                let share = time
                    .share_pct
                    .map_or_else(dash, |share| percent_of(share.median, 100.0));
                format!(
                    "{} {} {} ({share})",
                    text(phase),
                    number(time.total_us.median),
                    self.us_per()
                )
            })
            .collect();
        let more = len(&totals.unmatched_phases).saturating_sub(len(&list));
        if more > 0 {
            list.push(format!("and {more} more"));
        }
        format!("{name}: not matched: {}", list.join(", "))
    }
}

/// Time, share and number of phases.
fn cells(time: Option<&MappedTime>) -> Vec<Cell> {
    let Some(time) = time else {
        return vec![
            Cell::new(NOT_MEASURED),
            Cell::new(NOT_MEASURED),
            Cell::new(NOT_MEASURED),
        ];
    };
    vec![
        Cell::new(number(time.total_us.median)),
        Cell::new(time.share_pct.map_or_else(dash, |share| number(share.median))),
        Cell::new(time.phases.len().to_string()),
    ]
}
