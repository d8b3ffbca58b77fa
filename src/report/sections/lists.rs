//! The tables that list things one by one: trials, findings, kernels, gaps, slowest submissions, what is left out, notes.

use std::fmt::Write as _;

use crate::compare::{Side, Trial};
use crate::model::{Nanos, Reason, Severity, StateTime, WindowFound};
use crate::report::pick;
use crate::report::sheet::{
    Align, Cell, Column, Line, NOT_MEASURED, Sheet, Style, count, duration, len, moment, number, or_dash, plural,
    quantity, text,
};

use super::{FEW, View, dash, input, per_unit, us};

impl View<'_> {
    pub(super) fn trials(&self) -> Sheet {
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
        footer.extend(all().filter_map(window_found).map(Line::plain));
        Sheet {
            title: "Trials".into(),
            columns,
            rows,
            footer,
            folded: true,
            ..Sheet::default()
        }
    }

    pub(super) fn findings(&self) -> Sheet {
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

    pub(super) fn kernels(&self) -> Vec<Sheet> {
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
        let hints = self.comparison.kernel_hints.iter();
        footer.extend(hints.map(|(family, hint)| Line::plain(format!("hint for {}: {}", text(family), text(hint)))));
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
    pub(super) fn shader_samples(&self) -> Option<Sheet> {
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

    pub(super) fn gaps(&self) -> Vec<Sheet> {
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

    pub(super) fn slowest(&self) -> Sheet {
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

    pub(super) fn left_out(&self) -> Sheet {
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

    pub(super) fn notes(&self) -> Option<Sheet> {
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
}

/// Where a window lies that had to be looked for.
fn window_found(trial: &Trial) -> Option<String> {
    let what = match trial.window_found {
        WindowFound::Given => return None,
        WindowFound::Signposts { intervals } => plural(intervals, "interval"),
        WindowFound::Stretch { of } => format!("the longest of {} stretches", count(of)),
    };
    Some(format!(
        "window of {}: {} to {}, {what}",
        input(trial),
        moment(trial.window.from),
        moment(trial.window.to)
    ))
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
