//! JSON for github-action-benchmark (`tool: customSmallerIsBetter`): the history of one build.
//!
//! `[{name, unit, value, range, extra}]`, a row of side A per entry: what you work on is what that action keeps from
//! commit to commit. Side B stands in `extra`, the tooltip. A row that side A lacks has no entry, since there is no
//! value that says so.

use std::io;

use serde::Serialize;

use super::series::{Series, per, remarks, series};
use super::sheet::number;
use super::verdict_text::bounds;
use crate::compare::{Comparison, Row};

#[derive(Serialize)]
struct Entry {
    name: String,
    unit: String,
    /// Median over the trials.
    value: f64,
    /// Lowest to highest; one trial has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    /// Shown beside the value.
    extra: String,
}

/// The whole file.
pub(super) fn render(comparison: &Comparison) -> io::Result<String> {
    let unit = format!("µs/{}", per(comparison));
    let entry = |series: &Series<'_>| {
        let cell = series.row.a.as_ref()?;
        let time = series.time(cell);
        let range = (cell.trials.len() > 1).then(|| format!("{} – {}", number(time.low), number(time.high)));
        let mut extra = vec![format!(
            "{} submissions/{}; trials: {}",
            number(cell.submissions.median),
            per(comparison),
            cell.trials.len()
        )];
        extra.extend(beside(series.row, series, &unit));
        if series.key == crate::compare::gate::RowKey::Busy {
            extra.extend(remarks(comparison));
        }
        Some(Entry {
            name: series.name(),
            unit: unit.clone(),
            value: time.median,
            range,
            extra: extra.join("\n"),
        })
    };
    let entries: Vec<Entry> = series(comparison).iter().filter_map(entry).collect();
    let mut text = serde_json::to_string_pretty(&entries)?;
    text.push('\n');
    Ok(text)
}

/// Side B's value and the interval, in words.
fn beside(row: &Row, series: &Series<'_>, unit: &str) -> Option<String> {
    let b = series.time(row.b.as_ref()?);
    let judgement = row.judgement.as_ref()?;
    let interval = judgement.test.as_ref().map_or_else(String::new, |test| {
        format!(", interval {} %", bounds(&test.interval, None))
    });
    Some(format!(
        "B: {} {unit}{interval}: {}",
        number(b.median),
        judgement.verdict.name()
    ))
}
