//! What frames a report: what was compared, and how it was computed, generated from what really happened.

use std::fmt::Write as _;

use crate::compare::Side;
use crate::inference::Method;
use crate::model::{Reason, Severity, Timing, WindowRule, WindowSpan};
use crate::report::Section;
use crate::report::pick;
use crate::report::sheet::{Line, Sheet, Style, count, duration, len, moment, plural, text};

use super::{FEW, View, dash, input};

impl View<'_> {
    pub(super) fn intro(&self) -> Vec<Line> {
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
        let mut source = match (self.name_a(), self.name_b()) {
            (a, b) if self.two_sided() && settings.timing != settings.timing_b => format!(
                "GPU times of {a} from {}, of {b} from {}",
                table_of(settings.timing),
                table_of(settings.timing_b)
            ),
            _ => format!("GPU times from {}", table_of(settings.timing)),
        };
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
                text: if self.options.selection.shows(Section::Notes) {
                    format!("{warnings}, see Notes")
                } else {
                    format!("{warnings}: see --only notes")
                },
                style: Style::Strong,
            });
        }
        lines
    }

    /// How verdicts were made; nothing where no row has an interval.
    fn verdicts(&self) -> Option<String> {
        let inference = &self.comparison.inference;
        let rows = self.comparison.rows();
        let mut intervals = rows
            .iter()
            .filter_map(|(_, row)| Some(row.judgement.as_ref()?.test.as_ref()?.interval));
        let first = intervals.next()?;
        let how = match (first.method, inference.noise_sessions) {
            (Method::Paired, _) => "trials taken in pairs".to_owned(),
            (_, Some(sessions)) => format!(
                "Welch's method, widened to the noise of {}",
                plural(len_u64(sessions), "session")
            ),
            _ => "Welch's method".to_owned(),
        };
        Some(format!(
            "Verdicts: a row's 90 % interval is made of its trials' values, on logarithms ({how}). slower, faster: it lies \
             beyond 0, and in a table q ≤ 0.10 (Benjamini–Hochberg over its rows); same: it lies within ±{} %; unclear: \
             neither; q: p value adjusted for the rows of the table.",
            inference.margin_pct
        ))
    }

    pub(super) fn method(&self) -> Sheet {
        let settings = &self.comparison.settings;
        let timings = [settings.timing, settings.timing_b];
        let different = self.two_sided() && settings.timing != settings.timing_b;
        let how = timings.into_iter().take(if different { 2 } else { 1 }).map(|timing| match timing {
            Timing::Intervals => format!("GPU times: {}, one row is one submission.", table_of(timing)),
            Timing::Points => format!(
                "GPU times: {}; the start row (function 1) and the end row (function 2) of one channel and submission id are one submission.",
                table_of(timing)
            ),
            Timing::Live => format!("GPU times: {}, one command buffer is one submission.", table_of(timing)),
        });
        let mut lines: Vec<String> = how.collect();
        lines.push(
            "A submission is a unit of work that the GPU ran, not a dispatchThreadgroups call: the driver merges encoders and slices them. Older scripts called them dispatches and wrote disp/tok."
                .into(),
        );
        for ((name, side), timing) in self.sides.iter().zip(timings) {
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
        lines.extend(self.verdicts());
        if self.comparison.settings.window_a != WindowRule::default()
            || self.comparison.settings.window_b != WindowRule::default()
        {
            lines.push("A submission counts when it starts inside the window: one that began before counts nowhere, so the time at the window's edge shows as idle.".into());
        }
        lines.push("Times are whole nanoseconds inside; Apple's GPU clock ticks at 24 MHz (41.67 ns), so µs have two decimals at most. The time that the CPU spends encoding is no GPU time and is in no total.".into());
        for trial in self.sides.iter().flat_map(|(_, side)| &side.trials) {
            for fact in &trial.state.private {
                let what = format!("{} {}: {}", fact.element, fact.attribute, fact.value);
                lines.push(format!("{}: {}", input(trial), text(&what)));
            }
        }
        if let Some(config) = &self.options.config {
            lines.push(format!("Configuration: {}.", text(config)));
        }
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

fn len_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn table_of(timing: Timing) -> &'static str {
    match timing {
        Timing::Intervals => "metal-gpu-intervals",
        Timing::Points => "metal-gpu-execution-points",
        Timing::Live => "live profile",
    }
}

fn window(rule: &WindowRule) -> String {
    let mut parts = Vec::new();
    match &rule.span {
        WindowSpan::Process => {}
        WindowSpan::Signpost(name) => parts.push(format!("signpost `{}`", text(name))),
        WindowSpan::Quiet(gap) => parts.push(format!("the longest stretch without a pause above {}", duration(*gap))),
    }
    match (rule.from, rule.to) {
        (None, None) => {}
        (Some(from), Some(to)) => parts.push(format!("{} to {}", moment(from), moment(to))),
        (Some(from), None) => parts.push(format!("from {}", moment(from))),
        (None, Some(to)) => parts.push(format!("to {}", moment(to))),
    }
    if let Some(skipped) = rule.skip_first {
        parts.push(format!(
            "without the first {} after the {} first submission",
            duration(skipped),
            match rule.span {
                WindowSpan::Process => "process's",
                _ => "window's",
            }
        ));
    }
    if parts.is_empty() {
        "first start to last end of the process".to_owned()
    } else {
        parts.join(", ")
    }
}

fn inputs(side: &Side) -> String {
    let mut names: Vec<String> = side.trials.iter().take(FEW).map(input).collect();
    if side.trials.len() > FEW {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// Rows read = rows counted + rows left out.
fn counted(name: &str, side: &Side, timing: Timing) -> String {
    let read: u64 = side.trials.iter().map(|trial| trial.rows_read).sum();
    let left_out: u64 = side.trials.iter().map(|trial| trial.left_out.rows()).sum();
    let submissions: u64 = side.trials.iter().map(|trial| trial.all.submissions).sum();
    let made = match timing {
        Timing::Intervals => format!("{} counted", plural(submissions, "submission")),
        Timing::Points => format!("{} counted, each a submission", plural(submissions, "pair")),
        Timing::Live => format!("{} counted", plural(submissions, "command buffer")),
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
