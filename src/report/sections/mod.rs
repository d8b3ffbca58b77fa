//! The sections of a report, the same for every text format: a [`Comparison`] gives a list of [`Sheet`]s.
//!
//! Two sides and one side give the same sections; what needs a second side is then simply not there.

mod gate;
mod groups;
mod histogram;
mod label_map;
mod lists;
mod method;

use crate::compare::{self, Comparison, Row, Side, Trial, Verdict};
use crate::label;
use crate::model::Nanos;
use crate::report::sheet::{Line, NOT_MEASURED, Sheet, Style, plural, text};
use crate::report::{ReportOptions, Section};

/// Kernel names of a family that are shown without `--kernels`, and other names that are listed.
const FEW: usize = 5;
/// Longest name of a side in a heading.
const NAME_COLUMNS: usize = 32;

/// A whole report before any format.
pub(super) struct Document {
    /// The outcome in one sentence.
    pub(super) headline: String,
    /// What was compared, and from what.
    pub(super) intro: Vec<Line>,
    /// The sections.
    pub(super) sheets: Vec<Sheet>,
}

/// Sections in the order of the report.
const SECTIONS: [Section; 12] = [
    Section::Trials,
    Section::Findings,
    Section::Buckets,
    Section::Encoders,
    Section::Phases,
    Section::Channels,
    Section::Kernels,
    Section::Gaps,
    Section::Slowest,
    Section::LeftOut,
    Section::Notes,
    Section::Method,
];

/// Builds the report.
pub(super) fn document(comparison: &Comparison, options: &ReportOptions) -> Document {
    let view = View::new(comparison, options);
    let selection = &options.selection;
    // What the exit status says is always told.
    let mut sheets: Vec<Sheet> = view.gate().into_iter().collect();
    for section in SECTIONS.into_iter().filter(|section| selection.shows(*section)) {
        match section {
            Section::Trials => sheets.push(view.trials()),
            Section::Findings => sheets.push(view.findings()),
            Section::Buckets => sheets.extend(view.buckets()),
            Section::Encoders => sheets.extend(view.encoders()),
            Section::Phases => {
                sheets.extend(view.phases());
                sheets.extend(view.label_map());
            }
            Section::Channels => sheets.extend(view.channels()),
            Section::Kernels => {
                sheets.extend(view.kernels());
                sheets.extend(view.shader_samples());
            }
            Section::Gaps => sheets.extend(view.gaps()),
            Section::Slowest => sheets.push(view.slowest()),
            Section::LeftOut => sheets.push(view.left_out()),
            Section::Notes => sheets.extend(view.notes()),
            Section::Method => sheets.push(view.method()),
        }
    }
    Document {
        headline: text(&compare::headline(comparison)),
        intro: view.intro().into_iter().chain(view.not_shown()).collect(),
        sheets,
    }
}

/// The comparison with what every section asks for: names and units as they are shown.
pub(super) struct View<'a> {
    pub(super) comparison: &'a Comparison,
    options: &'a ReportOptions,
    /// Sides in order, with their names.
    pub(super) sides: Vec<(String, &'a Side)>,
    /// `/tok`, or nothing without a unit.
    per: String,
    /// `token`.
    unit: Option<String>,
}

impl<'a> View<'a> {
    pub(super) fn new(comparison: &'a Comparison, options: &'a ReportOptions) -> Self {
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

    pub(super) fn name_a(&self) -> &str {
        self.sides.first().map_or("A", |(name, _)| name)
    }

    fn name_b(&self) -> &str {
        self.sides.get(1).map_or("B", |(name, _)| name)
    }

    /// Rows that do not count must not be missed because nobody asked for their section. (Warnings are told above.)
    fn not_shown(&self) -> Option<Line> {
        let trials = self.sides.iter().flat_map(|(_, side)| &side.trials);
        let rows: u64 = trials.map(|trial| trial.left_out.rows()).sum();
        let hidden = rows > 0 && !self.options.selection.shows(Section::LeftOut);
        hidden.then(|| Line::plain(plural(rows, "row") + " left out: see --only left-out"))
    }

    pub(super) fn two_sided(&self) -> bool {
        self.comparison.b.is_some()
    }

    /// `µs/tok`, `µs`.
    pub(super) fn us_per(&self) -> String {
        format!("µs{}", self.per)
    }

    /// `things/tok`, `things`.
    pub(super) fn per(&self, things: &str) -> String {
        format!("{things}{}", self.per)
    }

    pub(super) fn repeated(&self) -> bool {
        self.sides.iter().any(|(_, side)| side.trials.len() > 1)
    }
}

/// The style of a difference: no side is called slower without a verdict.
pub(super) fn style_of(row: &Row) -> Style {
    match row.judgement.as_ref().map(|judgement| judgement.verdict) {
        Some(Verdict::Regressed) => Style::Worse,
        Some(Verdict::Improved) => Style::Better,
        _ => Style::Plain,
    }
}

fn us(Nanos(ns): Nanos) -> f64 {
    ns as f64 / 1e3
}

/// A value of a trial by its own units; `None` without units.
fn per_unit(trial: &Trial, value: f64) -> Option<f64> {
    trial.units.filter(|units| *units > 0).map(|units| value / units as f64)
}

fn dash() -> String {
    NOT_MEASURED.to_owned()
}

pub(super) fn input(trial: &Trial) -> String {
    if trial.run == 1 {
        text(&trial.input)
    } else {
        format!("{} (run {})", text(&trial.input), trial.run)
    }
}
