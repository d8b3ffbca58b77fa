//! One table on several threads: its rows are cut into blocks, the blocks are read at once, and what they give arrives in
//! their order.
//!
//! Each block is a piece of the document ([`super::segments`]): read first without what is before it, then, in their
//! order, joined to it, then made into whatever the caller wants. Cutting looks for closing tags of rows only, so a comment
//! or an attribute can deceive it; then a block does not read, and as with anything else that is wrong the whole input is to
//! be read by one thread, which words the error if there is one. So nothing here says what is wrong. Where the table ends is
//! seen by whoever reads that block; what was cut behind it is put back.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use memchr::memmem;

use super::bounded::Bounded;
use super::cells::{Cells, Counted};
use super::ids::Value;
use super::segments::{Earlier, References, Segment, Unresolved, resolved};
use super::{ExportReader, MAX_PART_BYTES, Place, Row, Schema};

/// How a table is read by several threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// How many threads.
    pub threads: usize,
    /// About how many bytes a block has.
    pub bytes: usize,
}

impl Blocks {
    /// Bytes of a block: a thousand rows and more, which take milliseconds. Fewer are joined more often, more are further
    /// from the processor when they are read.
    pub const BYTES: usize = 2 << 20;
}

/// The rows of one block.
pub struct BlockRows<'a> {
    schema: &'a Schema,
    segment: &'a Segment,
    values: std::slice::Chunks<'a, Value>,
}

impl BlockRows<'_> {
    /// How many are left.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next one. Its position is not known.
    pub fn next_row(&mut self) -> Option<Row<'_>> {
        Some(Row {
            values: self.values.next()?,
            pool: &self.segment.pool,
            schema: self.schema,
            number: 0,
            byte: 0,
        })
    }
}

/// A block cannot be read here: the input is to be read anew by one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotSplit;

impl From<Unresolved> for NotSplit {
    fn from(_: Unresolved) -> Self {
        NotSplit
    }
}

impl<R: Read + Send> ExportReader<R> {
    /// Reads the rows of the table from here on, as far as whole blocks of them can be cut, on several threads, and tells
    /// how many rows that were. Each thread cuts its next block itself, so that it reads what is near it still; `parse`
    /// makes something of each block, several at once; `take` gets that, one after the other in the order of the document.
    /// Both are called on any thread. What is left of the table is to be read as ever.
    ///
    /// # Errors
    /// [`NotSplit`] when `parse` gives nothing, and for whatever is wrong or unusual; nothing that this reader gives
    /// afterwards means anything.
    pub fn split<P: Send>(
        &mut self,
        blocks: Blocks,
        parse: impl Fn(&mut BlockRows<'_>) -> Option<P> + Sync,
        take: impl FnMut(P) + Send,
    ) -> Result<u64, NotSplit> {
        let Some(schema) = self.schema.clone() else {
            return Ok(0);
        };
        if self.place != Place::InNode || schema.columns.is_empty() {
            return Ok(0);
        }
        let (first, counted) = self.cells.take_piece();
        let mut earlier = self.cells.references.earlier().clone();
        let (first, _) = first.resolve(&earlier)?;
        if !earlier.push(&Arc::new(first)) {
            return Err(NotSplit);
        }
        self.cells.references = References::to(earlier.clone());
        let input = self.reader.get_mut();
        let line = Line {
            order: Mutex::new(Order {
                next: 0,
                earlier,
                counted,
                ended: false,
                behind: BTreeMap::new(),
                failed: false,
            }),
            turn: Condvar::new(),
            cutter: Mutex::new(Cutter {
                rest: input.take_rest(),
                input,
                ended: false,
                cut: 0,
                bytes: 0,
            }),
        };
        let taking = Mutex::new(Taking {
            next: 0,
            early: BTreeMap::new(),
            rows: 0,
            take,
        });
        let work = Work {
            template: &self.cells,
            schema: &schema,
            line: &line,
            bytes: blocks.bytes,
            parse: &parse,
            taking: &taking,
        };
        thread::scope(|scope| {
            for _ in 1..blocks.threads {
                let begun = thread::Builder::new().name("rows".to_owned());
                // Without a further thread, this one does it all.
                let _ = begun.spawn_scoped(scope, || work.run());
            }
            work.run();
        });
        let order = line.order.into_inner().unwrap_or_else(PoisonError::into_inner);
        let cutter = line.cutter.into_inner().unwrap_or_else(PoisonError::into_inner);
        if order.failed {
            return Err(NotSplit);
        }
        let mut rest = order.behind.into_values().collect::<Vec<_>>().concat();
        let bytes = cutter.bytes - rest.len();
        rest.extend_from_slice(&cutter.rest);
        // The bytes are gone from the buffer; this counts them.
        self.reader.stream().consume(bytes);
        self.reader.get_mut().put_back(rest);
        self.cells.references = References::to(order.earlier);
        self.cells.add(order.counted);
        let rows = taking.into_inner().unwrap_or_else(PoisonError::into_inner).rows;
        self.row += rows;
        Ok(rows)
    }
}

/// Cuts blocks of whole rows.
struct Cutter<'a, R> {
    input: &'a mut Bounded<R>,
    /// What was read behind the last block.
    rest: Vec<u8>,
    /// No whole row follows that can be told apart.
    ended: bool,
    /// Blocks so far.
    cut: usize,
    /// Their bytes.
    bytes: usize,
}

impl<R: Read> Cutter<'_, R> {
    /// The number of the next block and its length: about `bytes` of whole rows, at the beginning of `buffer`. The table
    /// may end in it: to look for that here would be to read everything once more.
    fn next(&mut self, bytes: usize, buffer: &mut Vec<u8>) -> Option<(usize, usize)> {
        if self.ended {
            return None;
        }
        let (mut bytes, mut end) = (bytes, self.rest.len());
        buffer.resize(buffer.len().max(end), 0);
        buffer.get_mut(..end)?.copy_from_slice(&self.rest);
        loop {
            end = self.input.read_on(buffer, end, bytes.max(end));
            let more = end >= bytes;
            let read = buffer.get(..end).unwrap_or_default();
            let within = read.get(..bytes).unwrap_or(read);
            if let Some(at) = memmem::rfind(within, ROW_END) {
                self.ended = !more;
                let rows = at + ROW_END.len();
                self.rest.clear();
                self.rest.extend_from_slice(read.get(rows..).unwrap_or_default());
                self.cut += 1;
                self.bytes += rows;
                return Some((self.cut - 1, rows));
            }
            if !more || bytes as u64 > MAX_PART_BYTES {
                self.ended = true;
                self.rest = read.to_vec();
                return None;
            }
            bytes += bytes.max(1024);
        }
    }
}

const NODE_END: &[u8] = b"</node>";
const ROW_END: &[u8] = b"</row>";

/// Tells of a thread that panics over a block, for which all others would wait.
struct Watched<'a, 'r, R>(&'a Line<'r, R>);

impl<R> Drop for Watched<'_, '_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail();
        }
    }
}

/// What was made of blocks, on its way to whoever takes it in their order.
struct Taking<P, T> {
    /// The block that is taken next.
    next: usize,
    /// What was made before its turn.
    early: BTreeMap<usize, P>,
    rows: u64,
    take: T,
}

impl<P, T: FnMut(P)> Taking<P, T> {
    fn add(&mut self, number: usize, rows: u64, part: P) {
        self.rows += rows;
        self.early.insert(number, part);
        while let Some(part) = self.early.remove(&self.next) {
            (self.take)(part);
            self.next += 1;
        }
    }
}

/// Where the threads meet.
struct Line<'a, R> {
    cutter: Mutex<Cutter<'a, R>>,
    order: Mutex<Order>,
    /// It is the next block's turn.
    turn: Condvar,
}

struct Order {
    /// The block whose turn it is to be joined to those before.
    next: usize,
    earlier: Earlier,
    counted: Counted,
    /// The table ended inside a block.
    ended: bool,
    /// What of the blocks is behind the table, by their numbers.
    behind: BTreeMap<usize, Vec<u8>>,
    failed: bool,
}

impl<R> Line<'_, R> {
    fn fail(&self) {
        lock(&self.order).failed = true;
        self.turn.notify_all();
    }

    /// Joins a block to those before it, once they are; its reader gets to know them. `behind`: how many bytes follow its
    /// last row, of those that are no row any more. `None`: the table ended in an earlier block.
    fn join(&self, number: usize, block: &[u8], behind: usize, cells: &mut Cells) -> Result<Option<Joined>, NotSplit> {
        let mut order = lock(&self.order);
        while order.next != number && !order.failed && !order.ended {
            order = self.turn.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        if order.failed {
            return Err(NotSplit);
        }
        if order.ended {
            order.behind.insert(number, block.to_vec());
            return Ok(None);
        }
        let (_, behind) = block.split_at_checked(block.len() - behind).ok_or(NotSplit)?;
        let ends = !behind.is_empty();
        if ends && !behind.trim_ascii_start().starts_with(NODE_END) {
            return Err(NotSplit);
        }
        let (piece, counted) = cells.take_piece();
        let (segment, imports) = piece.resolve(&order.earlier)?;
        let (largest, all) = segment.pool.sizes();
        let counted = Counted {
            full_bytes: all,
            ..counted
        };
        order.counted = order.counted.with(counted, largest, cells.keep_all).ok_or(NotSplit)?;
        let segment = Arc::new(segment);
        if !order.earlier.push(&segment) {
            return Err(NotSplit);
        }
        cells.references.catch_up(&order.earlier);
        order.next += 1;
        if ends {
            order.ended = true;
            order.behind.insert(number, behind.to_vec());
        }
        drop(order);
        self.turn.notify_all();
        if ends {
            lock(&self.cutter).ended = true;
        }
        Ok(Some((segment, imports)))
    }
}

type Joined = (Arc<Segment>, Vec<Value>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every thread does.
struct Work<'a, 'r, R, F, P, T> {
    /// Cells that know what is before the blocks, and define nothing themselves.
    template: &'a Cells,
    schema: &'a Schema,
    line: &'a Line<'r, R>,
    /// About how many a block has.
    bytes: usize,
    parse: &'a F,
    taking: &'a Mutex<Taking<P, T>>,
}

impl<R: Read, F, P, T> Work<'_, '_, R, F, P, T>
where
    F: Fn(&mut BlockRows<'_>) -> Option<P>,
    T: FnMut(P),
{
    fn run(&self) {
        let _watched = Watched(self.line);
        let mut cells = self.template.clone();
        cells.references = cells.references.across_gaps();
        let mut reader = ExportReader::of_rows(cells, self.schema.clone());
        let (mut buffer, mut values) = (Vec::new(), Vec::new());
        loop {
            let next = lock(&self.line.cutter).next(self.bytes, &mut buffer);
            let Some((number, end)) = next else { return };
            reader.begin_rows(buffer, end);
            let (rows, behind) = read_rows(&mut reader, &mut values);
            buffer = reader.take_buffer();
            let block = buffer.get(..end).unwrap_or_default();
            let made = match self.line.join(number, block, behind, &mut reader.cells) {
                Ok(Some(joined)) => self.make(joined, &mut values),
                Ok(None) => return,
                Err(NotSplit) => Err(NotSplit),
            };
            match made {
                Ok(part) => lock(self.taking).add(number, rows, part),
                Err(NotSplit) => return self.line.fail(),
            }
        }
    }

    /// Has something made of a block that was joined.
    fn make(&self, (segment, imports): Joined, values: &mut [Value]) -> Result<P, NotSplit> {
        if !imports.is_empty() {
            for value in &mut *values {
                *value = resolved(&imports, *value);
            }
        }
        let mut block = BlockRows {
            schema: self.schema,
            segment: &segment,
            values: values.chunks(self.schema.columns.len()),
        };
        (self.parse)(&mut block).ok_or(NotSplit)
    }
}

/// Reads rows into `values` as far as they go: how many there are, and how many bytes are behind them.
fn read_rows(reader: &mut ExportReader<io::Empty>, values: &mut Vec<Value>) -> (u64, usize) {
    values.clear();
    let mut rows = 0;
    loop {
        let behind = reader.reader.get_ref().rest().len();
        if behind == 0 || !reader.advance().unwrap_or(false) {
            return (rows, behind);
        }
        values.extend_from_slice(&reader.cells.row);
        rows += 1;
    }
}
