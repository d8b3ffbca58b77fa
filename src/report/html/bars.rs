//! The picture that answers first: a row's time on both sides as bars, its trials as dots, the interval of its change.
//!
//! Bars of one chart have one scale, from 0; so have its intervals, around 0. Every number beside them is the one of the
//! tables.

use super::axis::{Scale, dot, level, picture, rect, ruler, upright};
use super::markup::Html;
use super::tables::class_of;
use crate::compare::gate::RowKey;
use crate::compare::{Cell, Change, Judgement, Row, Verdict};
use crate::inference::{Interval, percent as percent_of_log};
use crate::label::cut_middle;
use crate::report::sections::{View, input, style_of};
use crate::report::series::Series;
use crate::report::sheet::{NOT_MEASURED, number, signed, text};
use crate::report::verdict_text::{bounds, word};

/// Columns of a key.
const KEY_COLUMNS: usize = 60;
/// What an interval may reach to, percent; more would squeeze all others.
const FARTHEST: (f64, f64) = (-100.0, 300.0);
/// Letters of the sides as classes.
const SIDES: [&str; 2] = ["a", "b"];

/// A table of rows with their pictures; nothing without rows.
pub(super) fn chart(html: &mut Html, view: &View<'_>, rows: &[Series<'_>]) {
    if rows.is_empty() {
        return;
    }
    let chart = Chart::new(view, rows);
    let class = match (view.two_sided(), chart.intervals.is_some()) {
        (true, true) => "chart two judged",
        (true, false) => "chart two",
        _ => "chart one",
    };
    html.element("table", &[("class", class)], |html| {
        html.element("thead", &[], |html| {
            html.element("tr", &[], |html| chart.headings(html))
        });
        html.element("tbody", &[], |html| {
            for row in rows {
                html.element("tr", &[], |html| chart.row(html, row));
                html.raw("\n");
            }
        });
        if let Some(scale) = &chart.intervals {
            html.element("tfoot", &[], |html| {
                html.element("tr", &[], |html| chart.axis(html, scale))
            });
        }
    });
}

struct Chart<'a> {
    view: &'a View<'a>,
    times: Scale,
    /// `None` when no row has an interval.
    intervals: Option<Scale>,
}

impl<'a> Chart<'a> {
    fn new(view: &'a View<'a>, rows: &[Series<'_>]) -> Chart<'a> {
        let cells = |row: &Series<'_>| -> Vec<f64> {
            let cells = [&row.row.a, &row.row.b].into_iter().flatten();
            cells.map(|cell| row.time(cell).high).collect()
        };
        let longest = rows
            .iter()
            .flat_map(cells)
            .filter(|high| high.is_finite())
            .fold(0.0, f64::max);
        let bounds = rows.iter().filter_map(|row| interval(row.row)).flat_map(|interval| {
            [interval.low(), interval.high()].map(|bound| percent_of_log(bound).clamp(FARTHEST.0, FARTHEST.1))
        });
        let bounds: Vec<f64> = bounds.collect();
        // With the band around 0.
        let margin = view.comparison.inference.margin_pct.clamp(0.0, FARTHEST.1);
        Chart {
            view,
            times: Scale::from_zero(longest * 1.02),
            intervals: Scale::over(bounds.iter().copied().chain([-margin, margin])).filter(|_| !bounds.is_empty()),
        }
    }

    fn headings(&self, html: &mut Html) {
        let heading = |html: &mut Html, class: &'static str, text: &str| {
            html.leaf("th", &[("class", class), ("scope", "col")], text);
        };
        heading(html, "key", "");
        heading(html, "picture", &self.view.us_per());
        for ((name, _), class) in self.view.sides.iter().zip(["n a", "n b"]) {
            heading(html, class, name);
        }
        if self.view.two_sided() {
            heading(html, "n", &format!("Δ {}", self.view.us_per()));
            heading(html, "n", "Δ %");
            if self.intervals.is_some() {
                heading(html, "picture", "90 % interval of Δ, %");
                heading(html, "n", "interval");
            }
            heading(html, "verdict", "verdict");
        } else {
            heading(html, "n", "% of total");
        }
    }

    fn row(&self, html: &mut Html, series: &Series<'_>) {
        let key = match &series.key {
            RowKey::Busy => "busy".to_owned(),
            RowKey::Total => "total".to_owned(),
            RowKey::In(_, key) | RowKey::Kernel(key) => text(key),
        };
        let sides = || {
            [&series.row.a, &series.row.b]
                .into_iter()
                .zip(&self.view.sides)
                .zip(SIDES)
        };
        html.leaf(
            "th",
            &[("class", "key"), ("scope", "row")],
            &cut_middle(&key, KEY_COLUMNS),
        );
        html.element("td", &[("class", "picture")], |html| {
            let height = if self.view.two_sided() { 26.0 } else { 15.0 };
            picture(html, "bars", height, |html| {
                for (((cell, (_, side)), class), y) in sides().zip([2.0, 14.0]) {
                    let Some(cell) = cell else { continue };
                    let time = series.time(cell);
                    rect(html, class, (0.0, self.times.place(time.median)), (y, 10.0), "");
                    if side.trials.len() > 1 {
                        for (stats, trial) in cell.trials.iter().zip(&side.trials) {
                            let us = series.trial_ns(stats, trial) / 1e3;
                            let title = format!("{}: {} {}", input(trial), number(us), self.view.us_per());
                            dot(html, class, self.times.place(us), y + 5.0, "2.5", &title);
                        }
                    }
                }
            });
        });
        for ((cell, (name, _)), class) in sides() {
            let time = cell.as_ref().map(|cell| series.time(cell).median);
            let class = if class == "a" { "n a" } else { "n b" };
            let time = time.map_or_else(|| NOT_MEASURED.to_owned(), number);
            html.leaf("td", &[("class", class), ("data-side", name)], &time);
        }
        if self.view.two_sided() {
            self.change(html, series.row);
        } else {
            html.leaf("td", &[("class", "n")], &self.share(series));
        }
    }

    /// With one side, the part of the total that a row is.
    fn share(&self, series: &Series<'_>) -> String {
        let total = self.view.comparison.total.a.as_ref().map(|cell| cell.total_us.median);
        let time = series.row.a.as_ref().map(|cell: &Cell| series.time(cell).median);
        match (time, total) {
            (Some(time), Some(total)) if total > 0.0 => format!("{} %", number(100.0 * time / total)),
            _ => NOT_MEASURED.to_owned(),
        }
    }

    fn change(&self, html: &mut Html, row: &Row) {
        let (delta, delta_pct) = match row.change {
            Some(Change::Both {
                delta_us, delta_pct, ..
            }) => (Some(delta_us), delta_pct),
            Some(Change::OnlyA { delta_us, .. }) => (Some(delta_us), None),
            Some(Change::OnlyB { delta_us, .. }) => (Some(delta_us), Some(-100.0)),
            None => (None, None),
        };
        let style = class_of(style_of(row));
        let class = format!("n {style}");
        for (value, unit) in [(delta, ""), (delta_pct, " %")] {
            let value = value.map_or_else(|| NOT_MEASURED.to_owned(), |value| signed(value) + unit);
            html.leaf("td", &[("class", class.trim_end())], &value);
        }
        let interval = interval(row);
        if let Some(scale) = &self.intervals {
            let class = if interval.is_some() { "picture" } else { "picture none" };
            html.element("td", &[("class", class)], |html| {
                self.interval(html, scale, interval, style);
            });
            let shown = interval.map_or_else(|| NOT_MEASURED.to_owned(), |interval| bounds(interval, None));
            html.leaf(
                "td",
                &[("class", if interval.is_some() { "n" } else { "n none" })],
                &shown,
            );
        }
        html.element("td", &[("class", "verdict")], |html| {
            verdict(html, row.judgement.as_ref())
        });
    }

    fn interval(&self, html: &mut Html, scale: &Scale, interval: Option<&Interval>, style: &'static str) {
        let margin = self.view.comparison.inference.margin_pct;
        picture(html, "interval", 26.0, |html| {
            let (from, to) = (scale.place(-margin), scale.place(margin));
            rect(html, "margin", (from, to - from), (0.0, 26.0), "");
            upright(html, "zero", scale.place(0.0), 0.0, 26.0);
            if let Some(interval) = interval {
                let place = |log| scale.place(percent_of_log(log));
                let class = if style.is_empty() { "plain" } else { style };
                level(html, class, (place(interval.low()), place(interval.high())), 13.0);
                dot(html, class, place(interval.change), 13.0, "4", &bounds(interval, None));
            }
        });
    }

    /// Under the intervals.
    fn axis(&self, html: &mut Html, scale: &Scale) {
        html.empty("td", &[("colspan", "6")]);
        html.element("td", &[("class", "picture")], |html| {
            ruler(html, scale, 4, |tick| format!("{} %", short(tick)));
        });
        html.empty("td", &[("colspan", "2")]);
    }
}

/// A tick with its sign.
fn short(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", (value * 1e6).round() / 1e6)
}

/// What may be said, in a word with a sign that stands without colour.
pub(super) fn verdict(html: &mut Html, judgement: Option<&Judgement>) {
    let Some(judgement) = judgement else {
        return html.text(NOT_MEASURED);
    };
    let class = match judgement.verdict {
        Verdict::Regressed => "badge slower",
        Verdict::Improved => "badge faster",
        Verdict::Unchanged => "badge same",
        Verdict::OnlyInA | Verdict::OnlyInB => "badge only",
        Verdict::Inconclusive | Verdict::Incomparable => "badge unclear",
    };
    html.leaf("span", &[("class", class)], word(judgement));
}

pub(super) fn interval(row: &Row) -> Option<&Interval> {
    Some(&row.judgement.as_ref()?.test.as_ref()?.interval)
}
