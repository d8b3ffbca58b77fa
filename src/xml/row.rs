//! A row and its cells, as the tables read them: numbers, times, texts, processes, parts.

use super::pool::Pool;
use super::schema::{ColumnIndex, Schema};
use super::value::{Kind, Tag, Value};
use crate::error::{Error, ErrorKind, Position, Result};
use crate::model::NO_TIME;

/// One row, borrowed from the reader until the next is read.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub(super) values: &'a [Value],
    pub(super) pool: &'a Pool,
    pub(super) schema: &'a Schema,
    pub(super) number: u64,
    pub(super) byte: u64,
}

/// Name and pid of a process cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCell<'a> {
    /// Name without the pid.
    pub name: &'a str,
    /// `None` when the cell has no number.
    pub pid: Option<u32>,
}

impl<'a> Row<'a> {
    /// The table's columns.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// Where the row begins.
    pub fn position(&self) -> Position {
        Position {
            table: Some(self.schema.name.clone()),
            row: self.number,
            byte: self.byte,
        }
    }

    /// A cell.
    pub fn cell(&self, at: ColumnIndex) -> Cell<'a> {
        Cell {
            value: self.values.get(at.0).copied().unwrap_or_default(),
            pool: self.pool,
        }
    }

    /// Equal for equal values within one document: a key for caches.
    pub fn key(&self, at: ColumnIndex) -> u64 {
        self.values.get(at.0).copied().unwrap_or_default().bits()
    }

    /// A number; `None` for NULL.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] for text that is no unsigned number.
    pub fn opt_u64(&self, at: ColumnIndex) -> Result<Option<u64>> {
        match self.cell(at).kind() {
            CellKind::Null => Ok(None),
            CellKind::Number(number) => Ok(Some(number)),
            CellKind::Text(text) => text.parse().map(Some).map_err(|_| self.not_a_number(at, text)),
            CellKind::Composite => Err(self.not_a_number(at, "child elements")),
        }
    }

    /// A time or a duration in ns; `None` for NULL, "no value" ([`NO_TIME`] and above) and negative numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] for text that is no integer.
    pub fn time(&self, at: ColumnIndex) -> Result<Option<u64>> {
        match self.cell(at).kind() {
            CellKind::Null => Ok(None),
            CellKind::Number(number) => Ok(Some(number).filter(|ns| *ns < NO_TIME)),
            CellKind::Text(text) if is_integer(text) => Ok(text.parse().ok().filter(|ns| *ns < NO_TIME)),
            CellKind::Text(text) => Err(self.not_a_number(at, text)),
            CellKind::Composite => Err(self.not_a_number(at, "child elements")),
        }
    }

    /// A cell's text, or the joined text of a composite; `None` for NULL.
    pub fn text(&self, at: ColumnIndex) -> Option<String> {
        let cell = self.cell(at);
        (!matches!(cell.kind(), CellKind::Null)).then(|| cell.text())
    }

    /// A process cell; `None` for NULL.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] for a pid that is no number.
    pub fn process(&self, at: ColumnIndex) -> Result<Option<ProcessCell<'a>>> {
        let cell = self.cell(at);
        if matches!(cell.kind(), CellKind::Null) {
            return Ok(None);
        }
        let shown = cell
            .child("@fmt")
            .or_else(|| cell.child("@text"))
            .map_or("", |child| child.leaf());
        let (mut name, mut pid) = (shown, None);
        if let Some((before, number)) = shown.strip_suffix(')').and_then(|shown| shown.rsplit_once('('))
            && let Ok(number) = number.parse::<u32>()
        {
            (name, pid) = (before.trim_end(), Some(number));
        }
        if let Some(child) = cell.child("pid") {
            match child.kind() {
                CellKind::Number(number) => {
                    pid = Some(u32::try_from(number).map_err(|_| self.not_a_number(at, "a pid above 2^32"))?);
                }
                CellKind::Text(text) => return Err(self.not_a_number(at, text)),
                CellKind::Null | CellKind::Composite => {}
            }
        }
        Ok(Some(ProcessCell { name, pid }))
    }

    fn not_a_number(&self, at: ColumnIndex, found: &str) -> Error {
        let shown: String = found.chars().take(40).collect();
        Error::new(ErrorKind::Layout {
            at: self.position(),
            column: self
                .schema
                .columns
                .get(at.0)
                .map_or_else(String::new, |column| column.mnemonic.clone()),
            expected: "a whole number".to_owned(),
            found: format!("`{shown}`"),
        })
        .with_help("xctrace writes times and ids as whole numbers; please report the Xcode version with this row")
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A cell or a part of one.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    value: Value,
    pool: &'a Pool,
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind<'a> {
    /// `<sentinel/>`.
    Null,
    /// A plain decimal number.
    Number(u64),
    /// Any other text, trimmed.
    Text(&'a str),
    /// Child elements.
    Composite,
}

impl<'a> Cell<'a> {
    /// What it holds.
    pub fn kind(&self) -> CellKind<'a> {
        match self.value.kind() {
            Kind::Undefined | Kind::Null => CellKind::Null,
            Kind::Number(number) => CellKind::Number(number),
            Kind::Text(text) => CellKind::Text(self.pool.get_text(text)),
            Kind::Composite(_) => CellKind::Composite,
        }
    }

    /// Element name; attributes are parts whose name begins with `@`.
    pub fn name(&self) -> &'a str {
        self.pool.tag_name(self.value.tag())
    }

    /// Its parts, in document order; none for a leaf.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = Cell<'a>> + use<'a> {
        let children = match self.value.kind() {
            Kind::Composite(id) => self.pool.children(id),
            _ => &[],
        };
        let pool = self.pool;
        children.iter().map(move |value| Cell { value: *value, pool })
    }

    /// The first part of that name.
    pub fn child(&self, name: &str) -> Option<Cell<'a>> {
        self.children().find(|child| child.name() == name)
    }

    /// A text leaf's text; empty for anything else.
    fn leaf(&self) -> &'a str {
        match self.kind() {
            CellKind::Text(text) => text,
            _ => "",
        }
    }

    /// The text: of a leaf as it is, of a composite its parts' texts joined, white space folded.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.push_text(&mut text);
        if matches!(self.kind(), CellKind::Composite) {
            return folded(text);
        }
        text
    }

    /// Whether `found` is true of a text that is a part of it, as far as one text leaf goes.
    pub fn any_text(&self, found: &dyn Fn(&str) -> bool) -> bool {
        match self.kind() {
            CellKind::Null | CellKind::Number(_) => false,
            CellKind::Text(text) => found(text),
            CellKind::Composite => self.children().any(|child| child.any_text(found)),
        }
    }

    fn push_text(&self, out: &mut String) {
        match self.kind() {
            CellKind::Null => {}
            CellKind::Number(number) => out.push_str(&number.to_string()),
            CellKind::Text(text) => out.push_str(text),
            CellKind::Composite => {
                let shown = self.child("@fmt").filter(|_| self.value.tag().is_process(self.pool));
                match shown {
                    Some(fmt) => out.push_str(fmt.leaf()),
                    None => {
                        for child in self.children() {
                            if child.name() == "@text" || !child.name().starts_with('@') {
                                child.push_text(out);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Words with one blank between them.
fn folded(text: String) -> String {
    // Nearly always they are so already.
    let mut before = b' ';
    let is_folded = text.bytes().all(|byte| {
        let blank = byte == b' ';
        let same = byte.is_ascii_graphic() || (blank && before != b' ');
        before = byte;
        same
    });
    if is_folded && before != b' ' {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

impl Tag {
    fn is_process(self, pool: &Pool) -> bool {
        pool.tag_name(self) == "process"
    }
}
