//! The one error of the library: what went wrong, where it came from, and what to do about it.
//!
//! Every fault in an input carries a [`Position`] (table, row, byte). The message is one line; the
//! remedy, where there is one, is a second line that the binary prints as `help: …`.

use std::fmt;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure with its origin (the input as the user named it) and its remedy.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    origin: Option<String>,
    help: Option<String>,
}

/// Where in an export a fault was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// Schema name of the table, when one was open.
    pub table: Option<String>,
    /// Row number in the table, counted from 1; 0 when no row had begun.
    pub row: u64,
    /// Offset in the decoded XML (after decompression and conversion to UTF-8).
    pub byte: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.table, self.row) {
            (Some(table), 0) => write!(f, "table `{table}` (byte {})", self.byte),
            (Some(table), row) => write!(f, "table `{table}`, row {row} (byte {})", self.byte),
            (None, _) => write!(f, "byte {}", self.byte),
        }
    }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    #[error("could not {action}: {source}")]
    Io {
        /// What was tried, as a verb phrase.
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The input has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The input is not what the reader reads (binary, zip, another XML vocabulary …).
    #[error("{0}")]
    NotAnExport(String),
    /// The XML is not well-formed.
    #[error("{at}: not well-formed XML: {message}")]
    Syntax {
        /// Where.
        at: Position,
        /// The tokenizer's words.
        message: String,
    },
    /// The input ends inside an element.
    #[error("{at}: unexpected end: the export is truncated")]
    Truncated {
        /// Where it stops.
        at: Position,
    },
    /// A cell has another type than its column.
    #[error("{at}: column `{column}` expects {expected}, found {found}")]
    Layout {
        /// Where.
        at: Position,
        /// The column's mnemonic.
        column: String,
        /// What the schema promises.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A row has more or fewer cells than its table has columns.
    #[error("{at}: the row has {found}, the table has {expected} columns")]
    CellCount {
        /// Where.
        at: Position,
        /// Columns of the schema.
        expected: usize,
        /// What the row has, in words (`2 cells`, `more than 7 cells`).
        found: String,
    },
    /// A `ref` names an id that nothing defined.
    #[error("{at}: {found} refers to id {id}, which is not defined before it")]
    DanglingReference {
        /// Where.
        at: Position,
        /// The element, as `<name>`.
        found: String,
        /// The id.
        id: u64,
    },
    /// A table lacks a column without which it means nothing.
    #[error("table `{table}` has no column `{column}`; it has: {}", .columns.join(", "))]
    MissingColumn {
        /// Schema name.
        table: String,
        /// The mnemonic that was looked for.
        column: String,
        /// The mnemonics that are there.
        columns: Vec<String>,
    },
    /// A bound against hostile or broken input was reached.
    #[error("{at}: {what}")]
    Limit {
        /// Where.
        at: Position,
        /// Which bound, in words.
        what: String,
    },
    /// The input is sound but does not hold what was asked for.
    #[error("{0}")]
    Unfit(String),
    /// The arguments contradict each other or are out of range.
    #[error("{0}")]
    Usage(String),
    /// A GPU, its driver or its compiler refused.
    #[error("{0}")]
    Device(String),
    /// `xctrace` could not be run, failed, or gave nothing usable.
    #[error("{0}")]
    Xctrace(String),
}

impl Error {
    /// An error without origin or remedy.
    pub fn new(kind: ErrorKind) -> Self {
        Error {
            inner: Box::new(Inner {
                kind,
                origin: None,
                help: None,
            }),
        }
    }

    /// A failed system call; `action` is a verb phrase (`read the folder`).
    pub fn io(action: impl Into<String>, source: std::io::Error) -> Self {
        Error::new(ErrorKind::Io {
            action: action.into(),
            source,
        })
    }

    /// The input does not hold what was asked for.
    pub fn unfit(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unfit(message.into()))
    }

    /// The arguments are wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Usage(message.into()))
    }

    /// Names the input, unless an inner layer did.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<String>) -> Self {
        if matches!(self.inner.kind, ErrorKind::Xctrace(_)) {
            // Its message is about the bundle and names it.
            return self;
        }
        self.inner.origin.get_or_insert_with(|| origin.into());
        self
    }

    /// Adds the remedy, unless an inner layer did.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.inner.help.get_or_insert_with(|| help.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    /// The input, as the user named it.
    pub fn origin(&self) -> Option<&str> {
        self.inner.origin.as_deref()
    }

    /// The remedy: given with the error, else the usual one of its kind.
    pub fn help(&self) -> Option<&str> {
        if let Some(help) = &self.inner.help {
            return Some(help);
        }
        match &self.inner.kind {
            ErrorKind::Layout { .. } | ErrorKind::CellCount { .. } => Some(
                "the columns are shifted, so every number after this row would be wrong; please report the Xcode version with this row",
            ),
            ErrorKind::Truncated { .. } => {
                Some("export it again, or copy it again; rows read before the cut are not shown as if they were all")
            }
            ErrorKind::DanglingReference { .. } => {
                Some("the file was cut or edited: a value that it refers to is gone; use the file as xctrace wrote it")
            }
            ErrorKind::Empty => Some("export it again; `trace-attr export` makes the files on a Mac"),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.origin {
            Some(origin) => write!(f, "{origin}: {}", self.inner.kind),
            None => self.inner.kind.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.inner.kind {
            ErrorKind::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
