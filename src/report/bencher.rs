//! JSON for Bencher: its Metric Format, `{name: {measure: {value, lower_value, upper_value}}}`.
//!
//! `value` is the median over the trials of side A, the bounds are the lowest and the highest trial. Measures name what
//! a time is divided by, because Bencher keeps a unit per measure and would compare µs per token with µs per frame. The
//! format has no place for text, so rows that are left out and warnings are numbers too.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::pick;
use super::series::{per, series, warnings};
use super::sheet::len;
use crate::compare::{Comparison, Over};
use crate::model::Reason;

#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

impl From<Over> for Metric {
    fn from(over: Over) -> Self {
        Metric {
            value: over.median,
            lower_value: Some(over.low),
            upper_value: Some(over.high),
        }
    }
}

/// The whole file, sorted by name.
pub(super) fn render(comparison: &Comparison) -> io::Result<String> {
    let mut benchmarks: BTreeMap<String, BTreeMap<String, Metric>> = BTreeMap::new();
    let (time, count) = (
        format!("gpu-us-per-{}", per(comparison)),
        format!("submissions-per-{}", per(comparison)),
    );
    for series in series(comparison) {
        let Some(cell) = &series.row.a else { continue };
        benchmarks.insert(
            series.name(),
            BTreeMap::from([
                (time.clone(), series.time(cell).into()),
                (count.clone(), cell.submissions.into()),
            ]),
        );
    }
    let whole = |value: u64| Metric {
        value: value as f64,
        lower_value: None,
        upper_value: None,
    };
    for reason in Reason::ALL {
        let rows = whole(pick::left_out(&comparison.a, reason).rows);
        benchmarks.insert(
            format!("left_out:{}", reason.code()),
            BTreeMap::from([("rows".to_owned(), rows)]),
        );
    }
    let warnings = whole(len(&warnings(comparison)));
    benchmarks.insert("warnings".to_owned(), BTreeMap::from([("count".to_owned(), warnings)]));
    let mut text = serde_json::to_string_pretty(&benchmarks)?;
    text.push('\n');
    Ok(text)
}
