//! `metal-gpu-info`: the name of the GPU.

use super::{Renumbered, Table, Texts};
use crate::error::Result;
use crate::model::NameId;
use crate::xml::{ColumnIndex, Row, Schema};

/// One GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuRow {
    /// Its name (`M4 Max`).
    pub name: Option<NameId>,
}

/// Places of its columns.
pub struct Columns {
    name: ColumnIndex,
}

impl Table for GpuRow {
    const SCHEMA: &'static str = "metal-gpu-info";
    type Columns = Columns;

    fn bind(schema: &Schema) -> Result<Columns> {
        Ok(Columns {
            name: schema.column("gpu-name")?,
        })
    }

    fn read(row: &Row<'_>, columns: &Columns, texts: &mut Texts) -> Result<Self> {
        Ok(GpuRow {
            name: texts.name(row, columns.name),
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(&mut self.name);
    }
}
