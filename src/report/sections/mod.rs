//! The sections of a report, the same for every text format: a [`Comparison`] gives a list of [`Sheet`]s.
//!
//! Two sides and one side give the same sections; what needs a second side is then simply not there.

mod gate;
mod groups;
mod label_map;
mod lists;
mod method;

use crate::compare::{self, Comparison, Row, Side, Trial, Verdict};
use crate::label;
use crate::model::Nanos;
use crate::report::ReportOptions;
use crate::report::sheet::{Line, NOT_MEASURED, Sheet, Style, text};

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

/// Builds the report.
pub(super) fn document(comparison: &Comparison, options: &ReportOptions) -> Document {
    let view = View::new(comparison, options);
    let mut sheets: Vec<Sheet> = view.gate().into_iter().collect();
    sheets.extend([view.trials(), view.findings()]);
    sheets.extend(view.buckets());
    sheets.extend(view.encoders());
    sheets.extend(view.phases());
    sheets.extend(view.label_map());
    sheets.extend(view.channels());
    sheets.extend(view.kernels());
    sheets.extend(view.shader_samples());
    sheets.extend(view.gaps());
    sheets.push(view.slowest());
    sheets.push(view.left_out());
    sheets.extend(view.notes());
    sheets.push(view.method());
    Document {
        headline: text(&compare::headline(comparison)),
        intro: view.intro(),
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
