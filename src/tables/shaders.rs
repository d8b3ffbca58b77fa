//! `metal-shader-profiler-shader-list` (which kernels there are) and `metal-shader-profiler-intervals` (samples).
//!
//! Traps: a name carries its id (`forward_fs (80)`), which differs between runs; no timing table carries that id;
//! samples overlap, so only their shares mean something; the sample table is empty unless Shader Timeline was on.

use super::{ProcessId, Renumbered, Table, Texts};
use crate::error::Result;
use crate::model::NameId;
use crate::xml::{ColumnIndex, Row, Schema};

/// A kernel in the shader list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaderRow {
    /// Function name with its id.
    pub name: Option<NameId>,
    /// Pipeline label.
    pub pipeline: Option<NameId>,
    /// Its process.
    pub process: Option<ProcessId>,
}

/// Places of its columns.
pub struct ShaderColumns {
    name: ColumnIndex,
    pipeline: Option<ColumnIndex>,
    process: Option<ColumnIndex>,
}

impl Table for ShaderRow {
    const SCHEMA: &'static str = "metal-shader-profiler-shader-list";
    type Columns = ShaderColumns;

    fn bind(schema: &Schema) -> Result<ShaderColumns> {
        Ok(ShaderColumns {
            name: schema.column("name")?,
            pipeline: schema.opt_column("pso-name"),
            process: schema.opt_column("process"),
        })
    }

    fn read(row: &Row<'_>, columns: &ShaderColumns, texts: &mut Texts) -> Result<Self> {
        Ok(ShaderRow {
            name: texts.name(row, columns.name),
            pipeline: columns.pipeline.and_then(|at| texts.name(row, at)),
            process: match columns.process {
                Some(at) => texts.process(row, at)?,
                None => None,
            },
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(&mut self.name);
        ids.name(&mut self.pipeline);
        ids.process(&mut self.process);
    }
}

/// A Shader Timeline sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaderSampleRow {
    /// ns since the recording began.
    pub start: Option<u64>,
    /// Sampled length in ns.
    pub duration: Option<u64>,
    /// Function name with its id.
    pub name: Option<NameId>,
    /// Its process.
    pub process: Option<ProcessId>,
}

/// Places of its columns.
pub struct SampleColumns {
    start: ColumnIndex,
    duration: ColumnIndex,
    name: ColumnIndex,
    process: Option<ColumnIndex>,
}

impl Table for ShaderSampleRow {
    const SCHEMA: &'static str = "metal-shader-profiler-intervals";
    type Columns = SampleColumns;

    fn bind(schema: &Schema) -> Result<SampleColumns> {
        Ok(SampleColumns {
            start: schema.column("start")?,
            duration: schema.column("duration")?,
            name: schema.column("name")?,
            process: schema.opt_column("process"),
        })
    }

    fn read(row: &Row<'_>, columns: &SampleColumns, texts: &mut Texts) -> Result<Self> {
        Ok(ShaderSampleRow {
            start: row.time(columns.start)?,
            duration: row.time(columns.duration)?,
            name: texts.name(row, columns.name),
            process: match columns.process {
                Some(at) => texts.process(row, at)?,
                None => None,
            },
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(&mut self.name);
        ids.process(&mut self.process);
    }
}

/// A name without its trailing ` (80)`, which differs between runs.
pub fn without_id(name: &str) -> &str {
    name.strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("))
        .filter(|(_, id)| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(name, |(before, _)| before)
}
