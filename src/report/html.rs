//! The report as one HTML page, for a colleague: complete without a script and without a network.
//!
//! First what a reader asks first: which side is slower, by how much, where, and whether that can be believed. Then
//! pictures, each beside its table, then everything else. All text and numbers are those of `sections`; the JSON report stands
//! in the page once, for programs. `markup` sees to it that text stays text; the style sheet and the script are files
//! beside this one, and the page allows no others.

mod axis;
mod bars;
mod histogram;
mod markup;
mod tables;
mod timeline;
mod trials;

use std::io;

use sha2::{Digest, Sha256};

use super::sections::{Document, View, document};
use super::series::{Series, series};
use super::sheet::{Line, NOT_MEASURED, Sheet, Style, len, number, plural, signed, spread, text};
use super::verdict_text::{bounds, result};
use super::{ReportOptions, Selection};
use crate::compare::gate::{GateResult, RowKey, Table};
use crate::compare::{Change, Comparison};
use crate::label::cut;
use crate::model::Severity;
use markup::Html;

const STYLE: &str = include_str!("html/report.css");
const SCRIPT: &str = include_str!("html/report.js");
/// Rows of the chart of phases; the table below it has all.
const CHARTED: usize = 12;
/// Longest headline, in columns.
const HEADLINE_COLUMNS: usize = 600;

/// The whole page.
pub(super) fn render(comparison: &Comparison, options: &ReportOptions) -> io::Result<String> {
    // A page has room for what a terminal leaves out, and sorts and filters by itself.
    let options = ReportOptions {
        show_kernels: true,
        show_trials: [Some(&comparison.a), comparison.b.as_ref()]
            .into_iter()
            .flatten()
            .any(|side| side.trials.len() > 1),
        show_sparklines: false,
        selection: Selection::default(),
        ..options.clone()
    };
    let view = View::new(comparison, &options);
    let document = document(comparison, &options);
    let json = super::json::compact(comparison, &options)?;
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n");
    html.element("html", &[("lang", "en")], |html| {
        html.element("head", &[], |html| head(html, &document.headline));
        html.raw("\n");
        html.element("body", &[], |html| {
            html.element("main", &[], |html| Page::new(&view, &document).write(html));
            html.raw("\n");
            html.data("trace-attr-report", &json);
            html.element("script", &[], |html| html.raw(SCRIPT));
        });
    });
    html.raw("\n");
    Ok(html.finish())
}

fn head(html: &mut Html, headline: &str) {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        digest(STYLE),
        digest(SCRIPT)
    );
    html.raw("\n");
    for attributes in [
        &[("charset", "utf-8")][..],
        &[("http-equiv", "Content-Security-Policy"), ("content", &policy)],
        &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")],
        &[("name", "color-scheme"), ("content", "light dark")],
        &[("name", "referrer"), ("content", "no-referrer")],
        &[
            ("name", "generator"),
            ("content", concat!("trace-attr ", env!("CARGO_PKG_VERSION"))),
        ],
    ] {
        html.empty("meta", attributes);
        html.raw("\n");
    }
    html.leaf("title", &[], &cut(headline, 120));
    html.element("style", &[], |html| html.raw(STYLE));
}

/// How a policy names a style sheet or a script: `sha256-…`, in base 64.
fn digest(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut name = "sha256-".to_owned();
    for bytes in Sha256::digest(text).chunks(3) {
        let bits = bytes.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - bytes.len()));
        for digit in 0..4 {
            let value = usize::try_from((bits >> (18 - 6 * digit)) & 63).unwrap_or_default();
            let known = DIGITS.get(value).filter(|_| digit <= bytes.len());
            name.push(known.map_or('=', |digit| char::from(*digit)));
        }
    }
    name
}

/// Where a section stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Below the outcome.
    First,
    /// Where the time goes.
    Phases,
    /// How long submissions take.
    Durations,
    /// Whether it can be believed.
    Trials,
    /// When the GPU is busy.
    Gaps,
    /// Everything else, closed.
    Rest,
}

/// The parts of the page below its outcome.
const PARTS: [Place; 5] = [Place::Phases, Place::Durations, Place::Trials, Place::Gaps, Place::Rest];

impl Place {
    /// Where a section of this title stands. One that is not known here is in the rest, so nothing is lost.
    fn of(title: &str) -> Place {
        // `Phases by trial, µs/tok` belongs to the phases.
        match title.split(" by trial").next().unwrap_or(title) {
            "Findings" => Place::First,
            gate if gate.starts_with("Gate:") => Place::First,
            "Phases" | "Label map" => Place::Phases,
            "Duration buckets" => Place::Durations,
            "Trials" | "Notes" => Place::Trials,
            "Gaps" | "Longest gaps" => Place::Gaps,
            _ => Place::Rest,
        }
    }

    /// Its address in the page; no section has the same.
    fn id(self) -> &'static str {
        match self {
            Place::First => "first",
            Place::Phases => "where",
            Place::Durations => "how-long",
            Place::Trials => "how-far",
            Place::Gaps => "when",
            Place::Rest => "more",
        }
    }
}

/// Whether a section is open from the start.
fn is_open(title: &str) -> bool {
    let open = ["Findings", "Phases", "Duration buckets", "Trials", "Notes", "Gaps"];
    open.contains(&title) || title.starts_with("Gate:")
}

struct Page<'a> {
    view: &'a View<'a>,
    comparison: &'a Comparison,
    document: &'a Document,
}

impl<'a> Page<'a> {
    fn new(view: &'a View<'a>, document: &'a Document) -> Self {
        Page {
            view,
            comparison: view.comparison,
            document,
        }
    }

    fn write(&self, html: &mut Html) {
        html.element("header", &[], |html| self.outcome(html));
        html.raw("\n");
        self.contents(html);
        self.sheets(html, "h2", Place::First);
        PARTS.into_iter().for_each(|part| self.part(html, part));
        html.element("footer", &[], |html| {
            html.text(concat!("trace-attr ", env!("CARGO_PKG_VERSION")));
            html.text(". The JSON report stands in this page: the element ");
            html.leaf("code", &[], "#trace-attr-report");
            html.text(".");
        });
    }

    /// Which side is slower, by how much, and whether that can be believed.
    fn outcome(&self, html: &mut Html) {
        let names: Vec<&str> = self.view.sides.iter().map(|(name, _)| name.as_str()).collect();
        html.leaf(
            "p",
            &[("class", "kicker")],
            &format!("GPU time: {}", names.join(" against ")),
        );
        html.leaf("h1", &[], &cut(&self.document.headline, HEADLINE_COLUMNS));
        html.element("dl", &[("class", "facts")], |html| self.facts(html));
        let rows = series(self.comparison);
        let overall: Vec<Series<'_>> = rows
            .into_iter()
            .filter(|row| matches!(row.key, RowKey::Busy | RowKey::Total))
            .collect();
        html.element("figure", &[], |html| {
            bars::chart(html, self.view, &overall);
            html.leaf(
                "figcaption",
                &[],
                &self.caption("busy: length of the union of all submissions; total: sum of their durations"),
            );
        });
        if let Some(gate) = &self.comparison.gate {
            let class = match gate.result {
                GateResult::Failed => "badge slower",
                GateResult::Passed => "badge faster",
                GateResult::CannotJudge => "badge unclear",
            };
            html.element("p", &[("class", "gate")], |html| {
                html.text("gate: ");
                html.leaf("span", &[("class", class)], result(gate.result));
            });
        }
        self.warnings(html);
        html.element("ul", &[("class", "intro")], |html| {
            // Warnings stand above, in full.
            let plain = self.document.intro.iter().filter(|line| line.style != Style::Strong);
            plain.for_each(|text| tables::line(html, "li", text));
        });
    }

    /// The numbers of the headline, large.
    fn facts(&self, html: &mut Html) {
        let busy = &self.comparison.busy;
        let us = self.view.us_per();
        let fact = |html: &mut Html, class: &'static str, name: &str, value: &str, small: &str| {
            html.element("div", &[("class", class)], |html| {
                html.leaf("dt", &[], name);
                html.leaf("dd", &[], value);
                html.leaf("dd", &[("class", "small")], small);
            });
        };
        let cells = [&busy.a, &busy.b].into_iter().zip(&self.view.sides);
        for ((cell, (name, side)), class) in cells.zip(["a", "b"]) {
            let time = cell.as_ref().map(|cell| cell.busy_us);
            let value = time.map_or_else(|| NOT_MEASURED.to_owned(), |over| number(over.median));
            let trials = plural(len(&side.trials), "trial");
            let spread = time.filter(|_| side.trials.len() > 1).map(|over| spread(&over));
            let trials = spread.map_or_else(|| trials.clone(), |spread| format!("{trials}: {spread}"));
            fact(html, class, name, &value, &format!("{us} GPU busy, {trials}"));
        }
        if self.view.two_sided() {
            let (delta, percent) = match busy.change {
                Some(Change::Both {
                    delta_us, delta_pct, ..
                }) => (Some(delta_us), delta_pct),
                Some(Change::OnlyA { delta_us, .. }) => (Some(delta_us), None),
                Some(Change::OnlyB { delta_us, .. }) => (Some(delta_us), Some(-100.0)),
                None => (None, None),
            };
            let or_dash = |value: Option<f64>| value.map_or_else(|| NOT_MEASURED.to_owned(), signed);
            html.element("div", &[], |html| {
                html.leaf("dt", &[], "difference, A − B");
                let class = tables::class_of(super::sections::style_of(busy));
                html.leaf("dd", &[("class", class)], &format!("{} %", or_dash(percent)));
                html.element("dd", &[("class", "small")], |html| {
                    html.text(&format!("{} {us} ", or_dash(delta)));
                    bars::verdict(html, busy.judgement.as_ref());
                });
            });
            let interval = bars::interval(busy);
            let (value, small) = match interval {
                Some(interval) => (
                    format!("{} %", bounds(interval, None)),
                    format!("{} + {} trials", interval.n_a, interval.n_b),
                ),
                None => (NOT_MEASURED.to_owned(), "the trials give no interval".to_owned()),
            };
            fact(html, "interval", "90 % interval", &value, &small);
        }
    }

    /// What limits the comparison, where it cannot be overlooked.
    fn warnings(&self, html: &mut Html) {
        let strong = |text: String| Line {
            text,
            style: Style::Strong,
        };
        let reasons = self.comparison.incomparable.iter();
        let mut lines: Vec<Line> = reasons
            .map(|reason| strong(format!("not comparable: {}", text(&reason.text))))
            .collect();
        let warnings = self
            .comparison
            .notes
            .iter()
            .filter(|note| note.severity == Severity::Warning);
        lines.extend(warnings.map(|note| strong(format!("warning: {}", text(&note.text)))));
        if !lines.is_empty() {
            html.element("ul", &[("class", "warnings")], |html| {
                lines.iter().for_each(|text| tables::line(html, "li", text));
            });
        }
    }

    /// Links to what follows, in its order.
    fn contents(&self, html: &mut Html) {
        html.element("nav", &[("aria-label", "Sections")], |html| {
            let link = |html: &mut Html, target: &str, name: &str| {
                html.leaf("a", &[("href", &format!("#{target}"))], name);
                html.text(" ");
            };
            for sheet in self.placed(Place::First) {
                let name = sheet.title.split(':').next().unwrap_or_default();
                link(html, &tables::anchor(&sheet.title), name);
            }
            for place in PARTS {
                link(html, place.id(), self.heading(place));
            }
        });
        html.raw("\n");
    }

    /// A part of the page: its pictures, then its tables.
    fn part(&self, html: &mut Html, place: Place) {
        html.element("div", &[("class", "part"), ("id", place.id())], |html| {
            html.leaf("h2", &[], self.heading(place));
            match place {
                Place::Phases => self.phases(html),
                Place::Durations => histogram::histogram(html, self.view),
                Place::Trials => trials::strip(html, self.view),
                Place::Gaps => timeline::timeline(html, self.view),
                Place::First | Place::Rest => {}
            }
            self.sheets(html, "h3", place);
        });
        html.raw("\n");
    }

    /// What a part is called.
    fn heading(&self, place: Place) -> &'static str {
        match place {
            Place::First => "Findings",
            Place::Phases => "Where the time goes",
            Place::Durations => "How long submissions take",
            Place::Trials if self.view.two_sided() => "How far to believe it",
            Place::Trials => "What it was measured on",
            Place::Gaps => "When the GPU is busy",
            Place::Rest => "More",
        }
    }

    fn placed(&self, place: Place) -> impl Iterator<Item = &'a Sheet> {
        let something = |sheet: &Sheet| !(sheet.lines.is_empty() && sheet.rows.is_empty() && sheet.footer.is_empty());
        let sheets = self.document.sheets.iter();
        sheets.filter(move |sheet| Place::of(&sheet.title) == place && something(sheet))
    }

    fn sheets(&self, html: &mut Html, heading: &'static str, place: Place) {
        for sheet in self.placed(place) {
            if is_open(&sheet.title) {
                tables::section(html, heading, sheet);
            } else {
                tables::folded(html, sheet);
            }
        }
    }

    /// The phases that differ most, or with one side those with most time.
    fn phases(&self, html: &mut Html) {
        let rows = series(self.comparison).into_iter();
        let mut phases: Vec<Series<'_>> = rows
            .filter(|row| matches!(row.key, RowKey::In(Table::Phases, _)))
            .collect();
        let all = phases.len();
        let size = |row: &Series<'_>| match &row.row.change {
            Some(change) => change.delta_us().abs(),
            None => row.row.a.as_ref().map_or(0.0, |cell| cell.total_us.median),
        };
        phases.sort_by(|x, y| size(y).total_cmp(&size(x)));
        phases.truncate(CHARTED);
        if phases.is_empty() {
            return;
        }
        let which = match (self.view.two_sided(), all > phases.len()) {
            (_, false) => "All phases".to_owned(),
            (true, true) => format!("The {} phases of {all} that differ most", phases.len()),
            (false, true) => format!("The {} phases of {all} with most time", phases.len()),
        };
        let order = if self.view.two_sided() {
            ", largest difference first"
        } else {
            ", most time first"
        };
        html.element("figure", &[], |html| {
            bars::chart(html, self.view, &phases);
            html.leaf("figcaption", &[], &self.caption(&format!("{which}{order}")));
        });
    }

    /// What a chart shows, and how to read it.
    fn caption(&self, what: &str) -> String {
        let mut text = format!("{what}. Bars: {}", self.view.us_per());
        if self.view.repeated() {
            text.push_str(", medians over the trials; dots: each trial");
        }
        text.push('.');
        let judged = |row: &crate::compare::Row| bars::interval(row).is_some();
        if self.comparison.rows().iter().any(|(_, row)| judged(row)) {
            text.push_str(&format!(
                " Interval: where the change of this row lies, 90 %; the band is ±{} %, within which it counts as none.",
                self.comparison.inference.margin_pct
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_a_text_by_its_digest() {
        // printf '' | openssl dgst -sha256 -binary | base64
        assert_eq!(digest(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
