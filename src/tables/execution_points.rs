//! `metal-gpu-execution-points`: the moments at which the GPU starts and ends a submission.
//!
//! ```xml
//! <row><start-time id="1" …>329899666</start-time><metal-command-buffer-id id="2" fmt="0x123457">1193047</…><uint32 id="3">1</uint32>…
//! <row><start-time ref="7242"/><metal-command-buffer-id ref="2"/><uint32 ref="3"/>…
//! ```
//! Traps: a time can be a reference (a start at the very ns of the end before it); there is no process column,
//! so a point means nothing without the submission map.

use super::{Renumbered, Table, Texts, opt_u64};
use crate::error::Result;
use crate::xml::{ColumnIndex, Row, Schema};

/// `function` of a start.
pub const START: u64 = 1;
/// `function` of an end.
pub const END: u64 = 2;

/// One point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointRow {
    /// ns since the recording began; `None` when the trace has no usable time.
    pub time: Option<u64>,
    /// A constant per channel, see [`channel_name`].
    pub channel: Option<u64>,
    /// [`START`], [`END`], or something else.
    pub function: Option<u64>,
    /// The submission's number.
    pub submission: Option<u64>,
}

/// The channel that a channel id stands for: the same constants were seen on A18 Pro and M3 Ultra.
pub fn channel_name(id: u64) -> String {
    match id {
        0x12_3457 => "Vertex".to_owned(),
        0x12_3458 => "Fragment".to_owned(),
        0x12_3459 => "Compute".to_owned(),
        other => format!("channel {other:#x}"),
    }
}

/// Places of its columns.
pub struct Columns {
    time: ColumnIndex,
    channel: Option<ColumnIndex>,
    function: ColumnIndex,
    submission: ColumnIndex,
}

impl Table for PointRow {
    const SCHEMA: &'static str = "metal-gpu-execution-points";
    type Columns = Columns;

    fn bind(schema: &Schema) -> Result<Columns> {
        Ok(Columns {
            time: schema.column("timestamp")?,
            channel: schema.opt_column("channel-id"),
            function: schema.column("function")?,
            submission: schema.column("gpu-submission-id")?,
        })
    }

    fn read(row: &Row<'_>, columns: &Columns, _: &mut Texts) -> Result<Self> {
        Ok(PointRow {
            time: row.time(columns.time)?,
            channel: opt_u64(row, columns.channel)?,
            function: row.opt_u64(columns.function)?,
            submission: row.opt_u64(columns.submission)?,
        })
    }

    fn renumber(&mut self, _: &Renumbered) {}
}
