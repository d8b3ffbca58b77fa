//! The columns of a table, found by mnemonic and never by position.

use super::value::Tag;
use crate::error::{Error, ErrorKind, Result};

/// A table's columns.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Whether its types are names that the row scanner knows how to look for.
    pub(super) plain: bool,
}

/// A column: what it is called in code, on screen, and by type.
#[derive(Debug, Clone)]
pub struct Column {
    /// Short name, stable over versions.
    pub mnemonic: String,
    /// Heading in Instruments.
    pub title: String,
    /// Engineering type: the element name of its cells.
    pub kind: String,
    pub(super) tag: Tag,
}

/// A column's place in the rows of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnIndex(pub(super) usize);

impl Schema {
    /// The schema's name (`metal-gpu-intervals`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, in the order of a row's cells.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The place of a column.
    ///
    /// # Errors
    /// [`ErrorKind::MissingColumn`], which lists the columns that are there.
    pub fn column(&self, mnemonic: &str) -> Result<ColumnIndex> {
        self.opt_column(mnemonic).ok_or_else(|| {
            Error::new(ErrorKind::MissingColumn {
                table: self.name.clone(),
                column: mnemonic.to_owned(),
                columns: self.columns.iter().map(|column| column.mnemonic.clone()).collect(),
            })
        })
    }

    /// The place of a column, if there is one.
    pub fn opt_column(&self, mnemonic: &str) -> Option<ColumnIndex> {
        self.columns
            .iter()
            .position(|column| column.mnemonic == mnemonic)
            .map(ColumnIndex)
    }
}
