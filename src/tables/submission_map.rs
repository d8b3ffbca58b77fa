//! `metal-gpu-submission-to-command-buffer-id`: which encoder, command buffer and process a submission belongs to.
//!
//! ```xml
//! <row><start-time …/><metal-command-buffer-id …>2199727198</…><metal-command-buffer-id …>2216504423</…>…<process ref="40"/>…
//! ```
//! Traps: two rows per encoder (submission N+1 first, then N; a compute encoder runs only N), so its rows are
//! not submissions; it covers every process; the process cell is usually a reference.

use super::{ProcessId, Renumbered, Table, Texts, opt_u64};
use crate::error::Result;
use crate::model::{CommandBufferId, EncoderId, Process, SubmissionId};
use crate::xml::{ColumnIndex, Row, Schema};

/// One mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapRow {
    /// The submission; `None`: the row maps nothing.
    pub submission: Option<SubmissionId>,
    /// Its encoder.
    pub encoder: Option<EncoderId>,
    /// Its command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// Its process.
    pub process: Option<ProcessId>,
}

/// Places of its columns.
pub struct Columns {
    submission: ColumnIndex,
    encoder: Option<ColumnIndex>,
    command_buffer: Option<ColumnIndex>,
    process: Option<ColumnIndex>,
    pid: Option<ColumnIndex>,
}

impl Table for MapRow {
    const SCHEMA: &'static str = "metal-gpu-submission-to-command-buffer-id";
    type Columns = Columns;

    fn bind(schema: &Schema) -> Result<Columns> {
        Ok(Columns {
            submission: schema.column("gpu-submission-id")?,
            encoder: schema.opt_column("encoder-id"),
            command_buffer: schema.opt_column("cmdbuffer-id"),
            process: schema.opt_column("process"),
            pid: schema.opt_column("pid"),
        })
    }

    fn read(row: &Row<'_>, columns: &Columns, texts: &mut Texts) -> Result<Self> {
        let mut process = match columns.process {
            Some(at) => texts.process(row, at)?,
            None => None,
        };
        if process.is_none() {
            let pid = opt_u64(row, columns.pid)?.and_then(|pid| u32::try_from(pid).ok());
            process = pid.map(|pid| {
                texts.intern_process(Process {
                    name: String::new(),
                    pid: Some(pid),
                })
            });
        }
        Ok(MapRow {
            submission: row.opt_u64(columns.submission)?.and_then(SubmissionId::new),
            encoder: opt_u64(row, columns.encoder)?.and_then(EncoderId::new),
            command_buffer: opt_u64(row, columns.command_buffer)?.and_then(CommandBufferId::new),
            process,
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.process(&mut self.process);
    }
}
