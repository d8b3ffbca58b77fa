//! The row scanner and the tokenizer are one reader: the same tables, rows, cells, places and errors for any bytes, in
//! whatever pieces they come.

use std::io::Read;

use trace_attr::error::{Error, Result};
use trace_attr::source;
use trace_attr::tables::TYPES;
use trace_attr::xml::{Blocks, Cell, ColumnIndex, ExportReader, Keep, NotSplit, Part, Row};

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

/// Reads the bytes by one thread, and in blocks of so many bytes by several; panics where the blocks give something else.
/// Returns how many blocks there were behind the first of each table, or that the document was not for several threads.
pub fn agree_in_blocks(bytes: &[u8], block: usize, first_rows: usize) -> std::result::Result<u64, NotSplit> {
    let mut blocks = 0;
    for keep in [Keep::Types(TYPES), Keep::All, Keep::Types(&[])] {
        let reader = || source::decode(bytes).map(|input| ExportReader::new(input, keep));
        let (Ok(one), Ok(several)) = (reader(), reader()) else {
            return Err(NotSplit);
        };
        let (rows, further) = rows_in_blocks(several, block, first_rows)?;
        let by_one =
            rows_by_one(one).unwrap_or_else(|error| panic!("read in blocks, but not by one: {}", told(&error)));
        assert_eq!(rows.len(), by_one.len());
        for (in_blocks, by_one) in rows.iter().zip(&by_one) {
            assert_eq!(in_blocks, by_one);
        }
        blocks += further;
    }
    Ok(blocks)
}

fn rows_by_one<R: Read + Send>(mut reader: ExportReader<R>) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    while let Some(part) = reader.next_part()? {
        rows.push(described(&part));
        while let Some(row) = reader.read_row()? {
            rows.push(whole(&row));
        }
    }
    Ok(rows)
}

/// Every table and row, and how many blocks there were behind the first of each table.
fn rows_in_blocks<R: Read + Send>(
    mut reader: ExportReader<R>,
    bytes: usize,
    first_rows: usize,
) -> std::result::Result<(Vec<String>, u64), NotSplit> {
    let mut rows = Vec::new();
    let mut further = 0;
    let not_split = |_: Error| NotSplit;
    while let Some(part) = reader.next_part().map_err(not_split)? {
        let is_table = matches!(part, Part::Table { .. });
        rows.push(described(&part));
        for _ in 0..first_rows {
            if let Some(row) = reader.read_row().map_err(not_split)? {
                rows.push(whole(&row));
            }
        }
        if is_table {
            let parse = |block: &mut trace_attr::xml::BlockRows<'_>| {
                let mut rows = Vec::with_capacity(block.len());
                while let Some(row) = block.next_row() {
                    rows.push(whole(&row));
                }
                Some(rows)
            };
            let mut blocks = 0u64;
            let take = |part: Vec<String>| {
                rows.extend(part);
                blocks += 1;
            };
            reader.split(Blocks { threads: 3, bytes }, parse, take)?;
            further += blocks.saturating_sub(1);
        }
        while let Some(row) = reader.read_row().map_err(not_split)? {
            rows.push(whole(&row));
        }
    }
    Ok((rows, further))
}

fn described(part: &Part<'_>) -> String {
    match part {
        Part::Contents(root) => format!("{root:?}"),
        Part::Table { schema, run } => {
            let columns = schema.columns().iter();
            let columns: Vec<_> = columns.map(|column| (&column.mnemonic, &column.kind)).collect();
            format!("{} {columns:?} {run:?}", schema.name())
        }
    }
}

/// Every cell of a row with all its parts.
fn whole(row: &Row<'_>) -> String {
    fn push(cell: Cell<'_>, out: &mut String) {
        out.push_str(&format!("{} {:?} (", cell.name(), cell.kind()));
        for part in cell.children() {
            push(part, out);
        }
        out.push(')');
    }
    let mut out = String::new();
    let columns = row.schema().columns().iter();
    for at in columns.filter_map(|column| row.schema().opt_column(&column.mnemonic)) {
        push(row.cell(at), &mut out);
    }
    out
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
