//! `device-thermal-state-intervals` and `gpu-performance-state-intervals`: how the machine was while it ran.
//!
//! Both are intervals with a state and whether somebody induced it; they differ in the state's column only.
//! Performance states have gaps.

use super::{Renumbered, Table, Texts, opt_u64};
use crate::error::Result;
use crate::model::NameId;
use crate::xml::{ColumnIndex, Row, Schema};

/// Schema of thermal states.
pub const THERMAL: &str = "device-thermal-state-intervals";
/// Schema of GPU performance states.
pub const PERFORMANCE: &str = "gpu-performance-state-intervals";

/// A stretch of time in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateRow {
    /// ns since the recording began.
    pub start: Option<u64>,
    /// Length in ns.
    pub duration: Option<u64>,
    /// `Nominal`, `Minimum`, …
    pub state: Option<NameId>,
    /// Whether somebody forced it.
    pub induced: bool,
}

/// Places of its columns.
pub struct Columns {
    start: ColumnIndex,
    duration: ColumnIndex,
    state: ColumnIndex,
    induced: Option<ColumnIndex>,
}

impl Table for StateRow {
    /// Of thermal states; [`PERFORMANCE`] is read by the same code.
    const SCHEMA: &'static str = THERMAL;
    type Columns = Columns;

    fn bind(schema: &Schema) -> Result<Columns> {
        let state = if schema.name() == PERFORMANCE {
            "gpu-performance-state"
        } else {
            "thermal-state"
        };
        Ok(Columns {
            start: schema.column("start")?,
            duration: schema.column("duration")?,
            state: schema.column(state)?,
            induced: schema.opt_column("is-induced"),
        })
    }

    fn read(row: &Row<'_>, columns: &Columns, texts: &mut Texts) -> Result<Self> {
        Ok(StateRow {
            start: row.time(columns.start)?,
            duration: row.time(columns.duration)?,
            state: texts.name(row, columns.state),
            induced: opt_u64(row, columns.induced)?.is_some_and(|flag| flag != 0),
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(&mut self.state);
    }
}
