//! The sections of a report, the same for every text format: a [`Comparison`] gives a list of [`Sheet`]s.
//!
//! Two sides and one side give the same sections; what needs a second side is then simply not there.

use std::fmt::Write as _;

use super::sheet::{
    Align, Cell, Column, Line, NOT_MEASURED, Sheet, Style, count, duration, len, moment, number, or_dash, percent_of,
    plural, quantity, signed, spread, text,
};
use super::{ReportOptions, label, pick};
use crate::compare::{self, Change, Comparison, Over, Row, Side, Trial};
use crate::model::{Nanos, Reason, Severity, StateTime, Timing, WindowRule};

/// Kernel names of a family that are shown without `--kernels`, and sampled kernels of a trial.
const FEW: usize = 5;
/// Longest name of a side in a heading.
const NAME_COLUMNS: usize = 32;

/// A whole report before any format.
pub(super) struct Document {
    /// `compare` or `report`.
    pub(super) command: &'static str,
    /// The outcome in one sentence.
    pub(super) headline: String,
    /// What was compared, and from what.
    pub(super) intro: Vec<Line>,
    /// The sections.
    pub(super) sheets: Vec<Sheet>,
}

/// Builds the report.
pub(super) fn document(comparison: &Comparison, options: &ReportOptions) -> Document {
    let view = View::new(comparison, options);
    let mut sheets = vec![view.trials(), view.findings()];
    sheets.extend(view.buckets());
    sheets.extend(view.encoders());
    sheets.extend(view.phases());
    sheets.extend(view.channels());
    sheets.extend(view.kernels());
    sheets.extend(view.shader_samples());
    sheets.extend(view.gaps());
    sheets.push(view.slowest());
    sheets.push(view.left_out());
    sheets.extend(view.notes());
    sheets.push(view.method());
    Document {
        command: if comparison.b.is_some() { "compare" } else { "report" },
        headline: text(&compare::headline(comparison)),
        intro: view.intro(),
        sheets,
    }
}

/// One column of each side: how it is called, and where its number is.
struct Metric {
    header: String,
    priority: u8,
    value: fn(&compare::Cell) -> Option<Over>,
    show: fn(&Over) -> String,
    align: Align,
}

impl Metric {
    fn new(header: impl Into<String>, priority: u8, value: fn(&compare::Cell) -> Option<Over>) -> Metric {
        Metric {
            header: header.into(),
            priority,
            value,
            show: |over| number(over.median),
            align: Align::Point,
        }
    }

    fn quantity(self) -> Metric {
        Metric {
            show: |over| quantity(over.median),
            ..self
        }
    }

    fn spread(self) -> Metric {
        Metric {
            show: spread,
            align: Align::Right,
            ..self
        }
    }
}

/// The comparison with what every section asks for: names and units as they are shown.
struct View<'a> {
    comparison: &'a Comparison,
    options: &'a ReportOptions,
    /// Sides in order, with their names.
    sides: Vec<(String, &'a Side)>,
    /// `/tok`, or nothing without a unit.
    per: String,
    /// `token`.
    unit: Option<String>,
}

impl<'a> View<'a> {
    fn new(comparison: &'a Comparison, options: &'a ReportOptions) -> Self {
        let sides: Vec<&Side> = std::iter::once(&comparison.a).chain(&comparison.b).collect();
        let same = matches!(sides.as_slice(), [a, b] if a.name == b.name);
        let sides = sides.into_iter().zip(["A", "B"]).map(|(side, letter)| {
            let name = label::cut(&text(&side.name), NAME_COLUMNS);
            (if same { format!("{name} ({letter})") } else { name }, side)
        });
        let unit = comparison
            .settings
            .unit
            .as_deref()
            .map(|unit| label::cut(&text(unit), 16));
        let per = unit.as_deref().map_or_else(String::new, |unit| match unit {
            "token" => "/tok".to_owned(),
            other => format!("/{other}"),
        });
        View {
            comparison,
            options,
            sides: sides.collect(),
            per,
            unit,
        }
    }

    fn name_a(&self) -> &str {
        self.sides.first().map_or("A", |(name, _)| name)
    }

    fn name_b(&self) -> &str {
        self.sides.get(1).map_or("B", |(name, _)| name)
    }

    fn two_sided(&self) -> bool {
        self.comparison.b.is_some()
    }

    /// `µs/tok`, `µs`.
    fn us_per(&self) -> String {
        format!("µs{}", self.per)
    }

    /// `things/tok`, `things`.
    fn per(&self, things: &str) -> String {
        format!("{things}{}", self.per)
    }

    fn repeated(&self) -> bool {
        self.sides.iter().any(|(_, side)| side.trials.len() > 1)
    }

    /// The style of a difference; no side is called slower when they do not compare.
    fn style_of(&self, delta: f64) -> Style {
        if !self.comparison.incomparable.is_empty() || delta == 0.0 {
            Style::Plain
        } else if delta > 0.0 {
            Style::Worse
        } else {
            Style::Better
        }
    }

    fn intro(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let trials = |side: &Side| plural(len(&side.trials), "trial");
        let per = self
            .unit
            .as_deref()
            .map_or_else(|| "per trial".to_owned(), |unit| format!("per {unit}"));
        lines.push(Line::plain(match self.sides.as_slice() {
            [(a, side_a), (b, side_b)] => format!(
                "A = {a} ({}), B = {b} ({}); medians {per}; Δ = A − B, so + means that {a} takes longer",
                trials(side_a),
                trials(side_b)
            ),
            _ => format!("{} ({}); medians {per}", self.name_a(), trials(&self.comparison.a)),
        }));
        for (name, side) in &self.sides {
            lines.push(Line::plain(format!("{name} from {}", inputs(side))));
        }
        let settings = &self.comparison.settings;
        let mut source = format!("GPU times from {}", table_of(settings.timing));
        if self.two_sided() && settings.window_a != settings.window_b {
            let _ = write!(
                source,
                "; window of {}: {}; of {}: {}",
                self.name_a(),
                window(&settings.window_a),
                self.name_b(),
                window(&settings.window_b)
            );
        } else {
            let _ = write!(source, "; window: {}", window(&settings.window_a));
        }
        lines.push(Line::plain(source));
        for reason in &self.comparison.incomparable {
            lines.push(Line {
                text: format!("not comparable: {}", text(&reason.text)),
                style: Style::Strong,
            });
        }
        let warnings = self
            .comparison
            .notes
            .iter()
            .filter(|note| note.severity == Severity::Warning)
            .count();
        if warnings > 0 {
            let warnings = plural(u64::try_from(warnings).unwrap_or(u64::MAX), "warning");
            lines.push(Line {
                text: format!("{warnings}, see Notes"),
                style: Style::Strong,
            });
        }
        lines
    }

    fn trials(&self) -> Sheet {
        let all = || self.sides.iter().flat_map(|(_, side)| &side.trials);
        let has_window = all().any(|trial| trial.submissions_in_process != trial.all.submissions);
        let mut columns = vec![
            Column::new("side", Align::Left, 0),
            Column::new("input", Align::Left, 0),
            Column::new("process", Align::Left, 4),
            Column::new("submissions", Align::Right, 0),
        ];
        if has_window {
            columns.push(Column::new("of", Align::Right, 1));
        }
        if self.unit.is_some() {
            columns.push(Column::new(self.per("sub"), Align::Point, 3));
            columns.push(Column::new(self.us_per(), Align::Point, 1));
        }
        for (header, priority) in [("total", 2), ("busy", 1), ("idle", 2), ("window", 3)] {
            columns.push(Column::new(header, Align::Right, priority));
        }
        for (header, priority) in [
            ("GPU", 5),
            ("ended", 6),
            ("thermal", 7),
            ("performance", 7),
            ("Shader Timeline", 8),
        ] {
            columns.push(Column::new(header, Align::Left, priority));
        }
        let mut rows = Vec::new();
        for (name, side) in &self.sides {
            for trial in &side.trials {
                let mut row = vec![
                    Cell::new(name.as_str()),
                    Cell::new(input(trial)),
                    Cell::new(process(trial)),
                    Cell::new(count(trial.all.submissions)),
                ];
                if has_window {
                    row.push(Cell::new(count(trial.submissions_in_process)));
                }
                if self.unit.is_some() {
                    row.push(Cell::new(
                        per_unit(trial, trial.all.submissions as f64).map_or_else(dash, quantity),
                    ));
                    row.push(Cell::new(
                        per_unit(trial, us(trial.all.total)).map_or_else(dash, number),
                    ));
                }
                let window = trial.window.length();
                let idle = Nanos(window.0.saturating_sub(trial.all.busy.0));
                row.extend([trial.all.total, trial.all.busy, idle, window].map(|time| Cell::new(duration(time))));
                let state = &trial.state;
                row.push(Cell::new(or_dash(trial.gpu.as_deref())));
                row.push(Cell::new(or_dash(state.end_reason.as_deref())));
                row.push(states(&state.thermal));
                row.push(states(&state.performance));
                row.push(Cell::new(or_dash(state.shader_timeline.as_deref())));
                rows.push(row);
            }
        }
        let mut footer = Vec::new();
        if has_window {
            footer.push(Line::plain(
                "submissions: those in the window, of all that the process has in the trial",
            ));
        }
        Sheet {
            title: "Trials".into(),
            columns,
            rows,
            footer,
            folded: true,
            ..Sheet::default()
        }
    }

    fn findings(&self) -> Sheet {
        let mut lines = Vec::new();
        for finding in &self.comparison.findings {
            let hint = finding.hint.as_deref().map(|hint| format!(" (hint: {})", text(hint)));
            lines.push(Line::plain(text(&finding.text) + &hint.unwrap_or_default()));
        }
        let numbered = !lines.is_empty();
        if !numbered {
            let nothing = if self.two_sided() {
                "no row in which A takes longer than B"
            } else {
                "nothing to rank"
            };
            lines.push(Line {
                text: nothing.into(),
                style: Style::Dim,
            });
        }
        Sheet {
            title: "Findings".into(),
            lines,
            numbered,
            ..Sheet::default()
        }
    }

    fn buckets(&self) -> Vec<Sheet> {
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
            &self.comparison.buckets,
            &[("TOTAL", &self.comparison.total), ("BUSY", &busy)],
            &metrics,
        );
        if let Some(sheet) = sheets.first_mut() {
            let mut line = "µs/sub: median per submission (p50)".to_owned();
            if self.two_sided() {
                line +=
                    "; count % and per-sub % split Δ %: (1 + Δ) = (1 + count)(1 + per-sub); share %: Δ of B's TOTAL";
            }
            sheet.footer.push(Line {
                text: line,
                style: Style::Dim,
            });
        }
        sheets
    }

    fn encoders(&self) -> Vec<Sheet> {
        let mut metrics = vec![
            Metric::new(self.per("enc"), 3, |cell| cell.encoders).quantity(),
            Metric::new(self.per("sub"), 4, |cell| Some(cell.submissions)).quantity(),
        ];
        metrics.extend(self.total_and_spread());
        metrics.push(Metric::new("CPU encode", 5, |cell| cell.cpu_encode_us));
        let total = [("TOTAL", &self.comparison.total)];
        let mut sheets = self.table("Encoders", "family", &self.comparison.encoders, &total, &metrics);
        if let Some(sheet) = sheets.first_mut() {
            let line = format!("CPU encode: {} that the CPU spent encoding, no GPU time", self.us_per());
            sheet.footer.push(Line {
                text: line,
                style: Style::Dim,
            });
        }
        sheets
    }

    fn phases(&self) -> Vec<Sheet> {
        let mut metrics = vec![
            Metric::new(self.per("CBs"), 3, |cell| cell.command_buffers).quantity(),
            Metric::new(self.per("sub"), 4, |cell| Some(cell.submissions)).quantity(),
        ];
        metrics.extend(self.total_and_spread());
        metrics.push(Metric::new("µs/CB", 5, |cell| cell.us_per_command_buffer));
        let total = [("TOTAL", &self.comparison.total)];
        let mut sheets = self.table("Phases", "phase", &self.comparison.phases, &total, &metrics);
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

    fn channels(&self) -> Vec<Sheet> {
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
        let mut sheets = self.table("Channels", "channel", &self.comparison.channels, &total, &metrics);
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

    /// A table of rows with the same columns for each side, and how they differ.
    fn table(&self, title: &str, key: &str, rows: &[Row], totals: &[(&str, &Row)], metrics: &[Metric]) -> Vec<Sheet> {
        let mut columns = vec![Column::new(key, Align::Left, 0)];
        for (name, _) in &self.sides {
            columns.extend(metrics.iter().map(|metric| {
                let column = Column::new(metric.header.as_str(), metric.align, metric.priority);
                if self.two_sided() { column.under(name) } else { column }
            }));
        }
        if self.two_sided() {
            for (header, priority) in [
                (format!("Δ {}", self.us_per()), 0),
                ("Δ %".to_owned(), 1),
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
        let flagged = rows.iter().any(|row| !self.flags(row).is_empty());
        if flagged {
            // That a row is on one side only shows in its dashes; what the trace did to a label shows nowhere else.
            let said_elsewhere = rows.iter().all(|row| row.flags.is_empty());
            columns.push(Column::new("flags", Align::Left, if said_elsewhere { 5 } else { 2 }));
        }
        let lines = rows.iter().map(|row| (Cell::label(&row.key), row, None));
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
                cells.extend(self.change(row.change));
            } else {
                cells.push(Cell::new(self.share(row)));
            }
            if flagged {
                cells.push(Cell::list(self.flags(row)).styled(Style::Dim));
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
    fn by_trial(&self, title: &str, key: &str, rows: &[Row], totals: &[(&str, &Row)]) -> Sheet {
        let mut columns = vec![Column::new(key, Align::Left, 0)];
        columns.extend(
            self.sides
                .iter()
                .map(|(name, _)| Column::new(name.as_str(), Align::Left, 0)),
        );
        let keyed = rows.iter().map(|row| (Cell::label(&row.key), row, false));
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

    fn change(&self, change: Option<Change>) -> [Cell; 5] {
        let or_dash = |value: Option<f64>| Cell::new(value.map_or_else(dash, signed));
        let (delta, percent, count, per_submission, share) = match change {
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
        let style = delta.map_or(Style::Plain, |delta| self.style_of(delta));
        [
            or_dash(delta).styled(style),
            or_dash(percent).styled(style),
            or_dash(count),
            or_dash(per_submission),
            or_dash(share),
        ]
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

    fn flags(&self, row: &Row) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        match row.change {
            Some(Change::OnlyA { .. }) => flags.push(format!("only in {}", self.name_a())),
            Some(Change::OnlyB { .. }) => flags.push(format!("only in {}", self.name_b())),
            _ => {}
        }
        flags.extend(row.flags.iter().map(|flag| (*flag).to_owned()));
        flags
    }

    fn kernels(&self) -> Vec<Sheet> {
        let mut rows = Vec::new();
        let mut footer = Vec::new();
        for (name, side) in &self.sides {
            match pick::kernel_families(side) {
                None => footer.push(Line::plain(format!("{name}: no shader list in the traces"))),
                Some(families) if families.is_empty() => {
                    footer.push(Line::plain(format!(
                        "{name}: the shader list has no kernel of this process"
                    )));
                }
                Some(families) => rows.extend(families.iter().map(|(family, kernels)| {
                    let shown = if self.options.show_kernels { kernels.len() } else { FEW };
                    let mut names: Vec<String> = kernels.iter().take(shown).map(|name| text(name)).collect();
                    if kernels.len() > shown {
                        names.push("…".to_owned());
                    }
                    let number = u64::try_from(kernels.len()).unwrap_or(u64::MAX);
                    vec![
                        Cell::new(name.as_str()),
                        Cell::label(family),
                        Cell::new(count(number)),
                        Cell::list(names),
                    ]
                })),
            }
        }
        for (name, side) in &self.sides {
            footer.push(Line::plain(shader_timeline(name, side)));
        }
        let columns = vec![
            Column::new("side", Align::Left, 0),
            Column::new("family", Align::Left, 0),
            Column::new("kernels", Align::Right, 0),
            Column::new("names", Align::Left, 0),
        ];
        let columns = if rows.is_empty() { Vec::new() } else { columns };
        vec![Sheet {
            title: "Kernels".into(),
            columns,
            rows,
            footer,
            folded: true,
            ..Sheet::default()
        }]
    }

    /// Sampled time by kernel, as shares only: the samples overlap, so their sum is no GPU time.
    fn shader_samples(&self) -> Option<Sheet> {
        let mut rows = Vec::new();
        let mut footer = Vec::new();
        for (name, side) in &self.sides {
            for trial in side.trials.iter().filter(|trial| !trial.shader_samples.is_empty()) {
                let all: u64 = trial.shader_samples.iter().map(|kernel| kernel.sampled.0).sum();
                let shown = if self.options.show_kernels {
                    trial.shader_samples.len()
                } else {
                    2 * FEW
                };
                rows.extend(trial.shader_samples.iter().take(shown).map(|kernel| {
                    vec![
                        Cell::new(name.as_str()),
                        Cell::new(input(trial)),
                        Cell::label(&kernel.name),
                        Cell::new(number(100.0 * kernel.sampled.0 as f64 / all.max(1) as f64)),
                        Cell::new(count(kernel.rows)),
                    ]
                }));
                let hidden = len(&trial.shader_samples).saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
                let mut line = format!("{}: ", input(trial));
                match trial.shader_sampled_span {
                    Some(span) => {
                        let _ = write!(
                            line,
                            "sampled over {} ({} to {})",
                            duration(span.length()),
                            moment(span.from),
                            moment(span.to)
                        );
                    }
                    None => line.push_str("the sampled span is not known"),
                }
                if hidden > 0 {
                    let _ = write!(line, "; {} not shown", plural(hidden, "more kernel"));
                }
                footer.push(Line::plain(line));
            }
        }
        if rows.is_empty() {
            return None;
        }
        footer.push(Line {
            text: "samples of kernels overlap: a share of sampled time is no GPU time".into(),
            style: Style::Dim,
        });
        let columns = vec![
            Column::new("side", Align::Left, 0),
            Column::new("input", Align::Left, 0),
            Column::new("kernel", Align::Left, 0),
            Column::new("% of sampled", Align::Point, 0),
            Column::new("samples", Align::Right, 1),
        ];
        Some(Sheet {
            title: "Shader Timeline samples".into(),
            columns,
            rows,
            footer,
            folded: true,
            ..Sheet::default()
        })
    }

    fn gaps(&self) -> Vec<Sheet> {
        let mut columns = vec![Column::new("gap", Align::Left, 0)];
        for (name, _) in &self.sides {
            for header in [self.per("gaps"), format!("idle {}", self.us_per())] {
                let column = Column::new(header, Align::Point, 0);
                columns.push(if self.two_sided() { column.under(name) } else { column });
            }
        }
        let rows = self.comparison.gaps.iter().map(|row| {
            let mut cells = vec![Cell::label(&row.key)];
            let sides = [Some((row.a_count, row.a_idle_us)), row.b];
            for side in sides.into_iter().take(self.sides.len()) {
                let (count, idle) = side.unzip();
                cells.push(Cell::new(count.map_or_else(dash, |over| quantity(over.median))));
                cells.push(Cell::new(idle.map_or_else(dash, |over| number(over.median))));
            }
            cells
        });
        let histogram = Sheet {
            title: "Gaps".into(),
            rows: rows.collect(),
            columns,
            folded: true,
            ..Sheet::default()
        };
        let mut rows = Vec::new();
        for (name, side) in &self.sides {
            for (at, gap) in pick::longest_gaps(side, self.comparison.settings.slowest) {
                rows.push(vec![
                    Cell::new(name.as_str()),
                    Cell::new(side.trials.get(at).map_or_else(dash, input)),
                    Cell::new(moment(gap.start)),
                    Cell::new(duration(gap.length)),
                    gap.after
                        .as_deref()
                        .map_or_else(|| Cell::new("start of the window"), Cell::label),
                    gap.before
                        .as_deref()
                        .map_or_else(|| Cell::new("end of the window"), Cell::label),
                ]);
            }
        }
        let mut sheets = vec![histogram];
        if !rows.is_empty() {
            let columns = vec![
                Column::new("side", Align::Left, 0),
                Column::new("trial", Align::Left, 3),
                Column::new("at", Align::Right, 1),
                Column::new("length", Align::Right, 0),
                Column::new("after", Align::Left, 0),
                Column::new("before", Align::Left, 0),
            ];
            sheets.push(Sheet {
                title: "Longest gaps".into(),
                columns,
                rows,
                folded: true,
                ..Sheet::default()
            });
        }
        sheets
    }

    fn slowest(&self) -> Sheet {
        let mut rows = Vec::new();
        for (name, side) in &self.sides {
            for (at, slow) in pick::slowest(side, self.comparison.settings.slowest) {
                rows.push(vec![
                    Cell::new(name.as_str()),
                    Cell::new(side.trials.get(at).map_or_else(dash, input)),
                    Cell::new(moment(slow.start)),
                    Cell::new(duration(slow.duration)),
                    Cell::label(&slow.channel),
                    Cell::label(&slow.phase),
                    Cell::label(&slow.encoder),
                ]);
            }
        }
        let mut sheet = Sheet {
            title: "Slowest submissions".into(),
            rows,
            folded: true,
            ..Sheet::default()
        };
        if sheet.rows.is_empty() {
            sheet.lines.push(Line {
                text: "none asked for".into(),
                style: Style::Dim,
            });
        } else {
            sheet.columns = vec![
                Column::new("side", Align::Left, 0),
                Column::new("trial", Align::Left, 3),
                Column::new("at", Align::Right, 1),
                Column::new("duration", Align::Right, 0),
                Column::new("channel", Align::Left, 2),
                Column::new("phase", Align::Left, 0),
                Column::new("encoder", Align::Left, 4),
            ];
        }
        sheet
    }

    fn left_out(&self) -> Sheet {
        let mut columns = vec![Column::new("reason", Align::Left, 0)];
        for (name, _) in &self.sides {
            for header in ["rows", "time"] {
                let column = Column::new(header, Align::Right, 0);
                columns.push(if self.two_sided() { column.under(name) } else { column });
            }
        }
        let mut rows = Vec::new();
        let mut meanings = Vec::new();
        let mut none = Vec::new();
        for reason in Reason::ALL {
            let counts: Vec<_> = self
                .sides
                .iter()
                .map(|(_, side)| pick::left_out(side, reason))
                .collect();
            if counts.iter().all(|left_out| left_out.rows == 0) {
                none.push(reason.code());
                continue;
            }
            let mut cells = vec![Cell::new(reason.code())];
            for left_out in counts {
                cells.push(Cell::new(count(left_out.rows)));
                cells.push(Cell::new(left_out.total.map_or_else(dash, duration)));
            }
            rows.push(cells);
            meanings.push(Line {
                text: format!("{}: {}", reason.code(), reason.meaning()),
                style: Style::Dim,
            });
        }
        let mut sheet = Sheet {
            title: "Left out".into(),
            folded: true,
            ..Sheet::default()
        };
        if rows.is_empty() {
            sheet
                .lines
                .push(Line::plain("nothing: every row of the timing table is counted"));
        } else {
            sheet.columns = columns;
            sheet.rows = rows;
            sheet
                .footer
                .push(Line::plain("rows of the timing table, all trials of a side together"));
            sheet.footer.extend(meanings);
        }
        if !none.is_empty() {
            sheet.footer.push(Line {
                text: format!("no rows: {}", none.join(", ")),
                style: Style::Dim,
            });
        }
        sheet
    }

    fn notes(&self) -> Option<Sheet> {
        let lines: Vec<Line> = self
            .comparison
            .notes
            .iter()
            .map(|note| Line {
                text: format!("{}: {}", note.severity.name(), text(&note.text)),
                style: if note.severity == Severity::Warning {
                    Style::Strong
                } else {
                    Style::Plain
                },
            })
            .collect();
        let sheet = Sheet {
            title: "Notes".into(),
            lines,
            ..Sheet::default()
        };
        (!sheet.lines.is_empty()).then_some(sheet)
    }

    fn method(&self) -> Sheet {
        let timing = self.comparison.settings.timing;
        let mut lines = vec![match timing {
            Timing::Intervals => format!("GPU times: {}, one row is one submission.", table_of(timing)),
            Timing::Points => format!(
                "GPU times: {}; the start row (function 1) and the end row (function 2) of one channel and submission id are one submission.",
                table_of(timing)
            ),
        }];
        lines.push(
            "A submission is a unit of work that the GPU ran, not a dispatchThreadgroups call: the driver merges encoders and slices them. Older scripts called them dispatches and wrote disp/tok."
                .into(),
        );
        for (name, side) in &self.sides {
            lines.push(counted(name, side, timing));
        }
        for (name, side) in &self.sides {
            lines.push(cross_check(name, side));
        }
        if let Some(unit) = &self.unit {
            for (name, side) in &self.sides {
                lines.push(format!("{name}: divided by {}.", units(side, unit)));
            }
        }
        if self.repeated() {
            lines.push("Each number is the median of its trials' values; low–high is their lowest and highest. TOTAL is the median of the trials' totals, not the sum of the rows above it.".into());
        } else {
            lines.push("One trial a side: the numbers are its values, with no spread to judge them by.".into());
        }
        lines.push("total: sum of durations; BUSY: length of their union, so overlapping work counts once; idle: window less busy.".into());
        if self.two_sided() {
            lines.push(
                "Δ = A − B; Δ % is of B; share % is Δ of B's TOTAL; – where B is 0 or nothing was measured.".into(),
            );
        }
        lines.push("Times are whole nanoseconds inside; Apple's GPU clock ticks at 24 MHz (41.67 ns), so µs have two decimals at most. The time that the CPU spends encoding is no GPU time and is in no total.".into());
        if let Some(command) = self.options.shown_command() {
            lines.push(format!("Command: {}", text(command)));
        }
        Sheet {
            title: "How this was computed".into(),
            lines: lines
                .into_iter()
                .map(|text| Line {
                    text,
                    style: Style::Dim,
                })
                .collect(),
            folded: true,
            ..Sheet::default()
        }
    }
}

fn dash() -> String {
    NOT_MEASURED.to_owned()
}

fn us(Nanos(ns): Nanos) -> f64 {
    ns as f64 / 1e3
}

/// A value of a trial by its own units; `None` without units.
fn per_unit(trial: &Trial, value: f64) -> Option<f64> {
    trial.units.filter(|units| *units > 0).map(|units| value / units as f64)
}

fn table_of(timing: Timing) -> &'static str {
    match timing {
        Timing::Intervals => "metal-gpu-intervals",
        Timing::Points => "metal-gpu-execution-points",
    }
}

fn window(rule: &WindowRule) -> String {
    let mut parts = Vec::new();
    match (rule.from, rule.to) {
        (None, None) => {}
        (Some(from), Some(to)) => parts.push(format!("{} to {}", moment(from), moment(to))),
        (Some(from), None) => parts.push(format!("from {}", moment(from))),
        (None, Some(to)) => parts.push(format!("to {}", moment(to))),
    }
    if let Some(skipped) = rule.skip_first {
        parts.push(format!(
            "without the first {} after the process's first submission",
            duration(skipped)
        ));
    }
    if parts.is_empty() {
        "first start to last end of the process".to_owned()
    } else {
        parts.join(", ")
    }
}

fn input(trial: &Trial) -> String {
    if trial.run == 1 {
        text(&trial.input)
    } else {
        format!("{} (run {})", text(&trial.input), trial.run)
    }
}

fn inputs(side: &Side) -> String {
    let mut names: Vec<String> = side.trials.iter().take(FEW).map(input).collect();
    if side.trials.len() > FEW {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn process(trial: &Trial) -> String {
    match trial.process.pid {
        Some(pid) => format!("{} ({pid})", text(&trial.process.name)),
        None => text(&trial.process.name),
    }
}

fn states(times: &[StateTime]) -> Cell {
    let name = |time: &StateTime| {
        let induced = if time.induced { " (induced)" } else { "" };
        format!("{}{induced}", text(&time.state))
    };
    match times {
        [] => Cell::new(NOT_MEASURED),
        [only] => Cell::new(name(only)),
        several => Cell::list(
            several
                .iter()
                .map(|time| format!("{} {}", name(time), duration(time.time)))
                .collect(),
        ),
    }
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
        format!("{name}: {share} of GPU time is labelled; no encoders list in the traces")
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

fn shader_timeline(name: &str, side: &Side) -> String {
    let setting = side
        .trials
        .iter()
        .find_map(|trial| trial.state.shader_timeline.as_deref());
    let setting = setting.map_or_else(String::new, |setting| format!("; setting: {}", text(setting)));
    match pick::shader_timeline_rows(side) {
        None => format!("{name}: no Shader Timeline table{setting}"),
        Some(0) => format!("{name}: Shader Timeline empty, 0 rows{setting}"),
        Some(rows) => format!(
            "{name}: Shader Timeline enabled, {} (largest over trials){setting}",
            plural(rows, "row")
        ),
    }
}

/// Rows read = rows counted + rows left out.
fn counted(name: &str, side: &Side, timing: Timing) -> String {
    let read: u64 = side.trials.iter().map(|trial| trial.rows_read).sum();
    let left_out: u64 = side.trials.iter().map(|trial| trial.left_out.rows()).sum();
    let submissions: u64 = side.trials.iter().map(|trial| trial.all.submissions).sum();
    let made = match timing {
        Timing::Intervals => format!("{} counted", plural(submissions, "submission")),
        Timing::Points => format!("{} counted, each a submission", plural(submissions, "pair")),
    };
    let mut line = format!(
        "{name}: {} read: {made}, {} left out",
        plural(read, "row"),
        plural(left_out, "row")
    );
    let reasons: Vec<String> = Reason::ALL
        .into_iter()
        .map(|reason| (reason, pick::left_out(side, reason).rows))
        .filter(|(_, rows)| *rows > 0)
        .map(|(reason, rows)| format!("{} {}", reason.code(), count(rows)))
        .collect();
    if !reasons.is_empty() {
        let _ = write!(line, " ({})", reasons.join(", "));
    }
    line.push('.');
    line
}

fn cross_check(name: &str, side: &Side) -> String {
    let checks: Vec<_> = side.trials.iter().filter_map(|trial| trial.cross_check).collect();
    if checks.is_empty() {
        return format!("{name}: one timing table only, so no cross-check.");
    }
    let sum = |of: fn(&crate::model::CrossCheck) -> u64| count(checks.iter().map(of).sum());
    format!(
        "{name}: intervals and execution points agree within 42 ns on {}, differ on {}; only in points {}, only in intervals {}.",
        sum(|check| check.both),
        sum(|check| check.differ),
        sum(|check| check.only_points),
        sum(|check| check.only_intervals)
    )
}

/// `64 tokens in each trial`, `64, 128 tokens`.
fn units(side: &Side, unit: &str) -> String {
    let all: Vec<Option<u64>> = side.trials.iter().map(|trial| trial.units).collect();
    match all.as_slice() {
        [Some(one)] => plural(*one, unit),
        [Some(first), rest @ ..] if rest.iter().all(|units| *units == Some(*first)) => {
            format!("{} in each trial", plural(*first, unit))
        }
        _ => {
            let list: Vec<String> = all.iter().map(|units| units.map_or_else(dash, count)).collect();
            format!("{} {unit}s, trial by trial", list.join(", "))
        }
    }
}
