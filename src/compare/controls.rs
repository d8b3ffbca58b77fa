//! Controls: phases that are the same on both sides, so that a change of theirs is one of the machine.
//!
//! What goes in: the phases and a pattern. What comes out: their sum as a row `(controls)`, and its values, which the
//! other rows are divided by for their second interval. No verdict follows from that interval.

use regex::Regex;

use super::rows::{Sides, sum};
use super::verdict::Values;
use super::{Row, Side};

/// Name of the row.
const KEY: &str = "(controls)";

/// The controls of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Controls {
    /// Pattern that picks them.
    pub pattern: String,
    /// Phases that it picked.
    pub phases: Vec<String>,
    /// Their sum.
    pub row: Row,
}

/// The sum of the phases that the pattern fits; `None` when it fits none.
pub(super) fn controls(a: &Side, b: &Side, phases: &[Row], pattern: &Regex) -> Option<(Controls, Values)> {
    let picked: Vec<&Row> = phases.iter().filter(|row| pattern.is_match(&row.key)).collect();
    let row = sum(&Sides { a, b: Some(b) }, KEY, &picked)?;
    let values = Values::new(&row, a, b, |stats| stats.total.0);
    let controls = Controls {
        pattern: pattern.as_str().to_owned(),
        phases: picked.iter().map(|row| row.key.clone()).collect(),
        row,
    };
    Some((controls, values))
}
