//! The row scanner and the tokenizer are one reader: the same tables, rows, cells, places and errors for any bytes, in
//! whatever pieces they come.

use std::io::Read;

use trace_attr::error::{Error, Result};
use trace_attr::source;
use trace_attr::tables::TYPES;
use trace_attr::xml::{Cell, ColumnIndex, ExportReader, Keep, Part, Row};

/// Gives at most so many bytes at a time.
struct Pieces<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(self.size);
        self.bytes.read(&mut out[..most])
    }
}

/// Reads the bytes both ways, side by side, the scanner in pieces of `size`; panics where they differ.
pub fn agree(bytes: &[u8], size: usize) {
    for keep in [Keep::Types(TYPES), Keep::All, Keep::Types(&[])] {
        let pieces = Pieces {
            bytes,
            size: size.max(1),
        };
        match (source::decode(pieces), source::decode(bytes)) {
            (Ok(scanned), Ok(plain)) => walk(
                ExportReader::new(scanned, keep),
                ExportReader::without_scanner(plain, keep),
            ),
            (scanned, plain) => assert_eq!(
                scanned.err().map(|error| told(&error)),
                plain.err().map(|error| told(&error))
            ),
        }
    }
}

fn walk<A: Read, B: Read>(mut scanned: ExportReader<A>, mut plain: ExportReader<B>) {
    loop {
        let Some(columns) = same_part(scanned.next_part(), plain.next_part()) else {
            return;
        };
        loop {
            match (scanned.read_row(), plain.read_row()) {
                (Ok(Some(a)), Ok(Some(b))) => same_row(&a, &b, &columns),
                (Ok(None), Ok(None)) => break,
                (Err(a), Err(b)) => return assert_eq!(told(&a), told(&b)),
                (a, b) => panic!("{} by the scanner, {} by the tokenizer", outcome(a), outcome(b)),
            }
        }
        assert_eq!(scanned.position(), plain.position());
    }
}

/// Columns of the table that follows; `None` at the end, good or bad.
fn same_part(a: Result<Option<Part<'_>>>, b: Result<Option<Part<'_>>>) -> Option<Vec<ColumnIndex>> {
    match (a, b) {
        (Ok(None), Ok(None)) => None,
        (Ok(Some(Part::Contents(a))), Ok(Some(Part::Contents(b)))) => {
            assert_eq!(a, b);
            Some(Vec::new())
        }
        (Ok(Some(Part::Table { schema, run })), Ok(Some(Part::Table { schema: other, run: b }))) => {
            assert_eq!((format!("{schema:?}"), run), (format!("{other:?}"), b));
            let columns = schema.columns().iter();
            Some(
                columns
                    .filter_map(|column| schema.opt_column(&column.mnemonic))
                    .collect(),
            )
        }
        (Err(a), Err(b)) => {
            assert_eq!(told(&a), told(&b));
            None
        }
        (a, b) => panic!("{a:?} by the scanner, {b:?} by the tokenizer"),
    }
}

fn same_row(a: &Row<'_>, b: &Row<'_>, columns: &[ColumnIndex]) {
    assert_eq!(a.position(), b.position());
    for at in columns {
        same_cell(a.cell(*at), b.cell(*at));
        // Texts are interned in the same order, also around rows that one of them gave up.
        assert_eq!(a.key(*at), b.key(*at), "{}", a.position());
    }
}

fn same_cell(a: Cell<'_>, b: Cell<'_>) {
    assert_eq!((a.name(), a.kind()), (b.name(), b.kind()));
    let (mut a, mut b) = (a.children(), b.children());
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) => same_cell(a, b),
            (None, None) => return,
            _ => panic!("one has more parts"),
        }
    }
}

/// Everything that an error says.
fn told(error: &Error) -> String {
    format!("{error} {:?} {:?}", error.kind(), error.help())
}

fn outcome(row: Result<Option<Row<'_>>>) -> String {
    match row {
        Ok(row) => format!("a row: {:?}", row.map(|row| row.position())),
        Err(error) => told(&error),
    }
}
