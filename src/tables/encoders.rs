//! `metal-application-encoders-list`: labels of encoders and command buffers, and the CPU time spent encoding.
//!
//! ```xml
//! <row><start-time …/><duration …>167000</duration><thread …/><process ref="5"/>…<metal-object-label …>planner.step</…>…
//! ```
//! Traps: start and duration are CPU time, never GPU time; labels default to `Command Buffer 0` and
//! `Compute Command 0`; a label can name several encoders (`A & B`).

use super::{ProcessId, Renumbered, Table, Texts, opt_u64};
use crate::error::Result;
use crate::model::{CommandBufferId, EncoderId, NameId, Nanos};
use crate::xml::{ColumnIndex, Row, Schema};

/// One encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderRow {
    /// Its id; `None`: nothing can be joined to the row.
    pub id: Option<EncoderId>,
    /// Its command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// The command buffer's label; `None` for NULL.
    pub command_buffer_label: Option<NameId>,
    /// Its own label; `None` for NULL.
    pub label: Option<NameId>,
    /// CPU encoding time.
    pub cpu_encode: Option<Nanos>,
    /// Its process.
    pub process: Option<ProcessId>,
}

/// Places of its columns.
pub struct Columns {
    id: ColumnIndex,
    command_buffer: Option<ColumnIndex>,
    command_buffer_label: Option<ColumnIndex>,
    label: Option<ColumnIndex>,
    duration: Option<ColumnIndex>,
    process: Option<ColumnIndex>,
}

impl Table for EncoderRow {
    const SCHEMA: &'static str = "metal-application-encoders-list";
    type Columns = Columns;

    fn bind(schema: &Schema) -> Result<Columns> {
        Ok(Columns {
            id: schema.column("encoder-id")?,
            command_buffer: schema.opt_column("cmdbuffer-id"),
            command_buffer_label: schema.opt_column("cmdbuffer-label"),
            label: schema.opt_column("encoder-label"),
            duration: schema.opt_column("duration"),
            process: schema.opt_column("process"),
        })
    }

    fn read(row: &Row<'_>, columns: &Columns, texts: &mut Texts) -> Result<Self> {
        Ok(EncoderRow {
            id: row.opt_u64(columns.id)?.and_then(EncoderId::new),
            command_buffer: opt_u64(row, columns.command_buffer)?.and_then(CommandBufferId::new),
            command_buffer_label: columns.command_buffer_label.and_then(|at| texts.name(row, at)),
            label: columns.label.and_then(|at| texts.name(row, at)),
            cpu_encode: match columns.duration {
                Some(at) => row.time(at)?.map(Nanos),
                None => None,
            },
            process: match columns.process {
                Some(at) => texts.process(row, at)?,
                None => None,
            },
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(&mut self.command_buffer_label);
        ids.name(&mut self.label);
        ids.process(&mut self.process);
    }
}
