//! The grouped tables: buckets, encoders, phases, channels, with the columns of each side and their difference.

use crate::compare::{self, Change, Over, Row, Side};
use crate::report::sheet::{
    Align, Cell, Column, Line, NOT_MEASURED, Sheet, Style, count, number, percent_of, plural, quantity, signed, spread,
};

use super::{View, dash, per_unit, style_of, us};
use crate::report::verdict_text::{self, bounds, word};

/// One column of each side: how it is called, and where its number is.
struct Metric {
    header: String,
    priority: u8,
    value: fn(&compare::Cell) -> Option<Over>,
    show: fn(&Over) -> String,
    align: Align,
}

impl Metric {
    pub(super) fn new(header: impl Into<String>, priority: u8, value: fn(&compare::Cell) -> Option<Over>) -> Metric {
        Metric {
            header: header.into(),
            priority,
            value,
            show: |over| number(over.median),
            align: Align::Point,
        }
    }

    pub(super) fn quantity(self) -> Metric {
        Metric {
            show: |over| quantity(over.median),
            ..self
        }
    }

    pub(super) fn spread(self) -> Metric {
        Metric {
            show: spread,
            align: Align::Right,
            ..self
        }
    }
}

impl View<'_> {
    pub(super) fn buckets(&self) -> Vec<Sheet> {
        let mut metrics = vec![
            Metric::new(self.per("sub"), 2, |cell| Some(cell.submissions)).quantity(),
            Metric::new("µs/sub", 3, |cell| cell.p50_us),
        ];
        if !self.two_sided() {
            metrics.push(Metric::new("p95", 4, |cell| cell.p95_us));
            metrics.push(Metric::new("p99", 5, |cell| cell.p99_us));
            metrics.push(Metric::new("max", 5, |cell| cell.max_us));
        }
        metrics.extend(self.total_and_spread());
        // The busy row speaks of busy time in the columns of the total; its submissions have no time of their own.
        let mut busy = self.comparison.busy.clone();
        for cell in busy.a.iter_mut().chain(busy.b.iter_mut()) {
            cell.total_us = cell.busy_us;
            for percentile in [&mut cell.p50_us, &mut cell.p95_us, &mut cell.p99_us, &mut cell.max_us] {
                *percentile = None;
            }
        }
        let mut sheets = self.table(
            "Duration buckets",
            "bucket",
            &self.comparison.buckets.iter().collect::<Vec<_>>(),
            &[("TOTAL", &self.comparison.total), ("BUSY", &busy)],
            &metrics,
        );
        if let Some(sheet) = sheets.first_mut() {
            if self.options.show_sparklines {
                sheet.lines = self.sparklines();
            }
            let mut line = "µs/sub: median per submission (p50)".to_owned();
            if self.two_sided() {
                line += "; count % and per-sub % split Δ %: (1 + Δ) = (1 + count)(1 + per-sub), per-sub of the mean; share %: Δ of B's TOTAL";
            }
            sheet.footer.push(Line {
                text: line,
                style: Style::Dim,
            });
        }
        sheets
    }

    pub(super) fn encoders(&self) -> Vec<Sheet> {
        let mut metrics = vec![
            Metric::new(self.per("enc"), 3, |cell| cell.encoders).quantity(),
            Metric::new(self.per("sub"), 4, |cell| Some(cell.submissions)).quantity(),
        ];
        metrics.extend(self.total_and_spread());
        metrics.push(Metric::new("CPU encode", 5, |cell| cell.cpu_encode_us));
        let total = [("TOTAL", &self.comparison.total)];
        let mut sheets = self.chosen("Encoders", "family", &self.comparison.encoders, &total, &metrics);
        if let Some(sheet) = sheets.first_mut() {
            let line = format!("CPU encode: {} that the CPU spent encoding, no GPU time", self.us_per());
            sheet.footer.push(Line {
                text: line,
                style: Style::Dim,
            });
        }
        sheets
    }

    pub(super) fn phases(&self) -> Vec<Sheet> {
        let mut metrics = vec![
            Metric::new(self.per("CBs"), 3, |cell| cell.command_buffers).quantity(),
            Metric::new(self.per("sub"), 4, |cell| Some(cell.submissions)).quantity(),
        ];
        metrics.extend(self.total_and_spread());
        metrics.push(Metric::new("µs/CB", 5, |cell| cell.us_per_command_buffer));
        let total = [("TOTAL", &self.comparison.total)];
        let mut sheets = self.chosen("Phases", "phase", &self.comparison.phases, &total, &metrics);
        if let Some(sheet) = sheets.first_mut() {
            sheet
                .footer
                .extend(self.sides.iter().map(|(name, side)| Line::plain(labels(name, side))));
            if self
                .comparison
                .phases
                .iter()
                .any(|row| row.flags.contains(&"coalesced"))
            {
                let line = "coalesced: the driver merged several encoders; their time is not split";
                sheet.footer.push(Line {
                    text: line.into(),
                    style: Style::Dim,
                });
            }
            if self
                .comparison
                .phases
                .iter()
                .any(|row| row.flags.contains(&"incomplete"))
            {
                let line = "incomplete: some encoders of this key have no submission in the timing table";
                sheet.footer.push(Line {
                    text: line.into(),
                    style: Style::Dim,
                });
            }
        }
        sheets
    }

    pub(super) fn channels(&self) -> Vec<Sheet> {
        let mut metrics = vec![
            Metric::new(self.per("sub"), 4, |cell| Some(cell.submissions)).quantity(),
            Metric::new("µs/sub", 5, |cell| cell.p50_us),
        ];
        metrics.extend(self.total_and_spread());
        metrics.push(Metric::new("latency", 2, |cell| {
            cell.latency.map(|latency| latency.p50_us)
        }));
        metrics.push(Metric::new("lat. p95", 7, |cell| {
            cell.latency.map(|latency| latency.p95_us)
        }));
        let total = [("TOTAL", &self.comparison.total)];
        let mut sheets = self.chosen("Channels", "channel", &self.comparison.channels, &total, &metrics);
        if let Some(sheet) = sheets.first_mut() {
            let line = "latency: µs from the CPU to the GPU's start of a submission, median";
            sheet.footer.push(Line {
                text: line.into(),
                style: Style::Dim,
            });
        }
        sheets
    }

    fn total_and_spread(&self) -> Vec<Metric> {
        let mut metrics = vec![Metric::new(self.us_per(), 0, |cell| Some(cell.total_us))];
        if self.repeated() {
            metrics.push(Metric::new("low–high", 9, |cell| Some(cell.total_us)).spread());
        }
        metrics
    }

    /// The rows that were asked for, as a table that says how many more there are.
    fn chosen(&self, title: &str, key: &str, rows: &[Row], totals: &[(&str, &Row)], metrics: &[Metric]) -> Vec<Sheet> {
        let (rows, more) = self.options.selection.rows(rows);
        let mut sheets = self.table(title, key, &rows, totals, metrics);
        if let (Some(sheet), 1..) = (sheets.first_mut(), more) {
            let rows = plural(more as u64, "more row");
            sheet.footer.push(Line::plain(format!(
                "{rows}, in TOTAL too: a larger --top, or --format json"
            )));
        }
        sheets
    }

    /// A table of rows with the same columns for each side, and how they differ.
    fn table(&self, title: &str, key: &str, rows: &[&Row], totals: &[(&str, &Row)], metrics: &[Metric]) -> Vec<Sheet> {
        // Without an interval anywhere the columns would say nothing.
        let judged = rows
            .iter()
            .copied()
            .chain(totals.iter().map(|(_, row)| *row))
            .any(tested);
        let mut columns = vec![Column::new(key, Align::Left, 0)];
        for (name, _) in &self.sides {
            columns.extend(metrics.iter().map(|metric| {
                let column = Column::new(metric.header.as_str(), metric.align, metric.priority);
                if self.two_sided() { column.under(name) } else { column }
            }));
        }
        if self.two_sided() {
            for (header, priority) in [(format!("Δ {}", self.us_per()), 0), ("Δ %".to_owned(), 1)] {
                columns.push(
                    Column::new(header, Align::Point, priority)
                        .under("Δ = A − B")
                        .named_by_itself(),
                );
            }
            if judged {
                let verdict = [
                    ("90 % interval", Align::Right, 5),
                    ("verdict", Align::Left, 1),
                    ("q", Align::Point, 8),
                ];
                columns.extend(verdict.map(|(header, align, priority)| {
                    Column::new(header, align, priority)
                        .under("Δ = A − B")
                        .named_by_itself()
                }));
            }
            for (header, priority) in [
                ("count %".to_owned(), 7),
                ("per-sub %".to_owned(), 7),
                ("share %".to_owned(), 6),
            ] {
                columns.push(
                    Column::new(header, Align::Point, priority)
                        .under("Δ = A − B")
                        .named_by_itself(),
                );
            }
        } else {
            columns.push(Column::new("% of total", Align::Point, 1));
        }
        let flagged = rows.iter().any(|row| !self.flags(row, judged).is_empty());
        if flagged {
            // That a row is on one side only shows in its dashes; what the trace did to a label shows nowhere else.
            let said_elsewhere = rows.iter().all(|row| row.flags.is_empty());
            columns.push(Column::new("flags", Align::Left, if said_elsewhere { 5 } else { 2 }));
        }
        let lines = rows.iter().map(|row| (Cell::label(&row.key), *row, None));
        let sums = totals
            .iter()
            .map(|(key, row)| (Cell::new(*key), *row, Some(Style::Strong)));
        let mut table = Vec::new();
        for (key, row, style) in lines.chain(sums) {
            let mut cells = vec![key];
            for side in [&row.a, &row.b].into_iter().take(self.sides.len()) {
                cells.extend(metrics.iter().map(|metric| {
                    let value = side.as_ref().and_then(metric.value);
                    Cell::new(value.map_or_else(dash, |over| (metric.show)(&over)))
                }));
            }
            if self.two_sided() {
                cells.extend(self.change(row, judged));
            } else {
                cells.push(Cell::new(self.share(row)));
            }
            if flagged {
                cells.push(Cell::list(self.flags(row, judged)).styled(Style::Dim));
            }
            if let Some(style) = style {
                cells
                    .iter_mut()
                    .filter(|cell| cell.style == Style::Plain)
                    .for_each(|cell| cell.style = style);
            }
            table.push(cells);
        }
        let sheet = Sheet {
            title: title.into(),
            columns,
            rows: table,
            ..Sheet::default()
        };
        let mut sheets = vec![sheet];
        if self.options.show_trials {
            sheets.push(self.by_trial(title, key, rows, totals));
        }
        sheets
    }

    /// The values behind the medians.
    fn by_trial(&self, title: &str, key: &str, rows: &[&Row], totals: &[(&str, &Row)]) -> Sheet {
        let mut columns = vec![Column::new(key, Align::Left, 0)];
        columns.extend(
            self.sides
                .iter()
                .map(|(name, _)| Column::new(name.as_str(), Align::Left, 0)),
        );
        let keyed = rows.iter().map(|row| (Cell::label(&row.key), *row, false));
        let sums = totals.iter().map(|(key, row)| (Cell::new(*key), *row, *key == "BUSY"));
        let rows = keyed.chain(sums).map(|(key, row, busy)| {
            let mut cells = vec![key];
            for (side, (_, of)) in [&row.a, &row.b].into_iter().zip(&self.sides) {
                cells.push(side.as_ref().map_or_else(
                    || Cell::new(NOT_MEASURED),
                    |cell| {
                        let values = cell.trials.iter().zip(&of.trials).map(|(stats, trial)| {
                            let time = us(if busy { stats.busy } else { stats.total });
                            let value = if self.unit.is_some() {
                                per_unit(trial, time)
                            } else {
                                Some(time)
                            };
                            value.map_or_else(dash, number)
                        });
                        Cell::list(values.collect())
                    },
                ));
            }
            cells
        });
        Sheet {
            title: format!("{title} by trial, {}", self.us_per()),
            rows: rows.collect(),
            columns,
            folded: true,
            ..Sheet::default()
        }
    }

    fn change(&self, row: &Row, judged: bool) -> Vec<Cell> {
        let or_dash = |value: Option<f64>| Cell::new(value.map_or_else(dash, signed));
        let (delta, percent, count, per_submission, share) = match row.change {
            None => (None, None, None, None, None),
            Some(Change::OnlyA { delta_us, share_pct }) => (Some(delta_us), None, None, None, share_pct),
            Some(Change::OnlyB { delta_us, share_pct }) => (Some(delta_us), Some(-100.0), None, None, share_pct),
            Some(Change::Both {
                delta_us,
                delta_pct,
                share_pct,
                count_pct,
                per_submission_pct,
            }) => (Some(delta_us), delta_pct, count_pct, per_submission_pct, share_pct),
        };
        let style = style_of(row);
        let mut cells = vec![or_dash(delta).styled(style), or_dash(percent).styled(style)];
        if judged {
            let judgement = row.judgement.as_ref();
            let interval = judgement.and_then(|judgement| Some(bounds(&judgement.test?.interval, None)));
            let q = judgement.and_then(|judgement| judgement.q).map(verdict_text::q);
            cells.push(Cell::new(interval.unwrap_or_else(dash)));
            cells.push(Cell::new(judgement.map_or(NOT_MEASURED, word)).styled(style));
            cells.push(Cell::new(q.unwrap_or_else(dash)));
        }
        cells.extend([count, per_submission, share].map(or_dash));
        cells
    }

    /// With one side, the part of the total that a row is: the ratio of two medians that stand in the table.
    fn share(&self, row: &Row) -> String {
        match (&row.a, &self.comparison.total.a) {
            (Some(cell), Some(total)) if total.total_us.median > 0.0 => {
                number(100.0 * cell.total_us.median / total.total_us.median)
            }
            _ => dash(),
        }
    }

    /// What else is to be said of a row; that it is on one side only is its verdict, where there are verdicts.
    fn flags(&self, row: &Row, judged: bool) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        match row.change {
            _ if judged => {}
            Some(Change::OnlyA { .. }) => flags.push(format!("only in {}", self.name_a())),
            Some(Change::OnlyB { .. }) => flags.push(format!("only in {}", self.name_b())),
            _ => {}
        }
        flags.extend(row.flags.iter().map(|flag| (*flag).to_owned()));
        flags
    }
}

/// Whether the trials gave the row an interval.
fn tested(row: &Row) -> bool {
    row.judgement.as_ref().is_some_and(|judgement| judgement.test.is_some())
}

/// How much of a side carries real labels.
fn labels(name: &str, side: &Side) -> String {
    let labelled: u64 = side.trials.iter().map(|trial| trial.labelled_total.0).sum();
    let total: u64 = side.trials.iter().map(|trial| trial.all.total.0).sum();
    let share = percent_of(labelled as f64, total as f64);
    let encoders: Vec<_> = side.trials.iter().filter_map(|trial| trial.encoder_labels).collect();
    let with: u64 = encoders.iter().map(|labels| labels.labelled).sum();
    let all: u64 = encoders.iter().map(|labels| labels.all).sum();
    if encoders.is_empty() {
        format!("{name}: {share} of GPU time is labelled; no row of its encoders in the traces")
    } else if with == 0 && labelled == 0 {
        format!(
            "{name} sets no labels: 0 of {}, so its phases cannot be told apart",
            plural(all, "encoder")
        )
    } else {
        format!(
            "{name}: {} of {} labelled, {share} of GPU time",
            count(with),
            plural(all, "encoder")
        )
    }
}
