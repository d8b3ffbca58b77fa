//! One table on several threads: its rows are cut into blocks, the blocks are read at once, and what they give arrives in
//! their order.
//!
//! Each block is a piece of the document ([`super::segments`]): read first without what is before it, then, in their
//! order, joined to it, then made into whatever the caller wants. Cutting looks for closing tags only, so a comment or an
//! attribute can deceive it; then a block does not read, and as with anything else that is wrong the whole input is to be
//! read by one thread, which words the error if there is one. So nothing here says what is wrong.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use memchr::memmem;

use super::bounded::Bounded;
use super::cells::{Cells, Counted};
use super::ids::Value;
use super::segments::{Earlier, Piece, References, Segment, Unresolved, resolved};
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
    /// Bytes of a block: some thousand rows, which take milliseconds.
    pub const BYTES: usize = 2 << 20;
}

/// Blocks that wait for whoever takes them, for each thread.
const WAITING: usize = 2;

/// The rows of one block.
pub struct BlockRows<'a> {
    schema: &'a Schema,
    segment: &'a Segment,
    imports: &'a [Value],
    values: std::slice::Chunks<'a, Value>,
    row: Vec<Value>,
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
        let values = self.values.next()?;
        self.row.clear();
        self.row
            .extend(values.iter().map(|value| resolved(self.imports, *value)));
        Some(Row {
            values: &self.row,
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
    /// makes something of each block, on any thread; `take` gets it on this one, in the order of the document. What is left
    /// of the table is to be read as ever.
    ///
    /// # Errors
    /// [`NotSplit`] when `parse` gives nothing, and for whatever is wrong or unusual; nothing that this reader gives
    /// afterwards means anything.
    pub fn split<P: Send>(
        &mut self,
        blocks: Blocks,
        parse: impl Fn(&mut BlockRows<'_>) -> Option<P> + Sync,
        mut take: impl FnMut(P),
    ) -> Result<u64, NotSplit> {
        let Some(schema) = self.schema.clone() else {
            return Ok(0);
        };
        if self.place != Place::InNode || schema.columns.is_empty() {
            return Ok(0);
        }
        let template = self.cells.fork(References::None);
        let mut earlier = std::mem::take(&mut self.earlier);
        let counted = self.cells.counted();
        let cells = std::mem::replace(&mut self.cells, template);
        let (first, _) = cells.into_piece().resolve(&earlier)?;
        if !earlier.push(&Arc::new(first)) {
            return Err(NotSplit);
        }
        let input = self.reader.get_mut();
        let line = Line {
            order: Mutex::new(Order {
                next: 0,
                earlier,
                counted,
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
        let template = self.cells.fork(References::None);
        let work = Work {
            template: &template,
            schema: &schema,
            line: &line,
            bytes: blocks.bytes,
            parse: &parse,
        };
        let rows = thread::scope(|scope| {
            let (sender, results) = sync_channel(WAITING * blocks.threads);
            for _ in 0..blocks.threads {
                let (sender, work) = (sender.clone(), &work);
                let begun = thread::Builder::new().name("rows".to_owned());
                // Fewer threads do it too; with none, nothing is cut.
                let _ = begun.spawn_scoped(scope, move || work.run(&sender));
            }
            drop(sender);
            let (mut taken, mut rows) = (0, 0);
            let mut early = BTreeMap::new();
            for (number, made) in results {
                // One that failed ends it all, whichever it is.
                early.insert(number, made?);
                while let Some((count, part)) = early.remove(&taken) {
                    rows += count;
                    take(part);
                    taken += 1;
                }
            }
            Ok::<u64, NotSplit>(rows)
        })?;
        let order = line.order.into_inner().unwrap_or_else(PoisonError::into_inner);
        let cutter = line.cutter.into_inner().unwrap_or_else(PoisonError::into_inner);
        if order.failed {
            return Err(NotSplit);
        }
        let (bytes, rest) = (cutter.bytes, cutter.rest);
        // The bytes are gone from the buffer; this counts them.
        self.reader.stream().consume(bytes);
        self.reader.get_mut().put_back(rest);
        self.cells = self.cells.fork(References::known(order.earlier.clone()));
        self.cells.add(order.counted);
        self.earlier = order.earlier;
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
    /// The number of the next block and its length: about `bytes` of whole rows, at the beginning of `buffer`.
    fn next(&mut self, bytes: usize, buffer: &mut Vec<u8>) -> Option<(usize, usize)> {
        if self.ended {
            return None;
        }
        let (mut bytes, mut end, mut searched) = (bytes, self.rest.len(), 0usize);
        buffer.resize(buffer.len().max(end), 0);
        buffer.get_mut(..end)?.copy_from_slice(&self.rest);
        loop {
            end = self.input.read_on(buffer, end, bytes.max(end));
            let more = end >= bytes;
            let read = buffer.get(..end).unwrap_or_default();
            // It may begin in what was searched before.
            let from = searched.saturating_sub(NODE_END.len());
            let node = memmem::find(read.get(from..).unwrap_or_default(), NODE_END).map(|at| from + at);
            let rows = read.get(..node.unwrap_or(end)).unwrap_or_default();
            if let Some(at) = memmem::rfind(rows, ROW_END) {
                self.ended = node.is_some() || !more;
                let rows = at + ROW_END.len();
                self.rest.clear();
                self.rest.extend_from_slice(read.get(rows..).unwrap_or_default());
                self.cut += 1;
                self.bytes += rows;
                return Some((self.cut - 1, rows));
            }
            if node.is_some() || !more || end as u64 > MAX_PART_BYTES {
                self.ended = true;
                self.rest = read.to_vec();
                return None;
            }
            searched = end;
            bytes = end + end.max(1024);
        }
    }
}

const NODE_END: &[u8] = b"</node>";
const ROW_END: &[u8] = b"</row>";

/// A block's number; how many rows it had, and what was made of them.
type Done<P> = (usize, Result<(u64, P), NotSplit>);

/// Tells of a thread that panics over a block, for which all others would wait.
struct Watched<'a, 'r, R, P> {
    line: &'a Line<'r, R>,
    results: &'a SyncSender<Done<P>>,
    number: usize,
}

impl<R, P> Drop for Watched<'_, '_, R, P> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.line.fail();
            let _ = self.results.send((self.number, Err(NotSplit)));
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
    failed: bool,
}

impl<R> Line<'_, R> {
    fn fail(&self) {
        lock(&self.order).failed = true;
        self.turn.notify_all();
    }

    /// Joins a block to those before it, once they are.
    fn join(&self, number: usize, piece: Piece, counted: Counted, keep_all: bool) -> Result<Joined, NotSplit> {
        let mut order = lock(&self.order);
        while order.next != number && !order.failed {
            order = self.turn.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        if order.failed {
            return Err(NotSplit);
        }
        let (segment, imports) = piece.resolve(&order.earlier)?;
        let (largest, all) = segment.pool.sizes();
        let counted = Counted {
            full_bytes: all,
            ..counted
        };
        order.counted = order.counted.with(counted, largest, keep_all).ok_or(NotSplit)?;
        let segment = Arc::new(segment);
        if !order.earlier.push(&segment) {
            return Err(NotSplit);
        }
        order.next += 1;
        drop(order);
        self.turn.notify_all();
        Ok((segment, imports))
    }
}

type Joined = (Arc<Segment>, Vec<Value>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every thread does.
struct Work<'a, 'r, R, F> {
    /// Cells that know the element names, and nothing else.
    template: &'a Cells,
    schema: &'a Schema,
    line: &'a Line<'r, R>,
    /// About how many a block has.
    bytes: usize,
    parse: &'a F,
}

impl<R: Read, F> Work<'_, '_, R, F> {
    fn run<P>(&self, results: &SyncSender<Done<P>>)
    where
        F: Fn(&mut BlockRows<'_>) -> Option<P>,
    {
        let (mut buffer, mut values) = (Vec::new(), Vec::new());
        loop {
            let next = lock(&self.line.cutter).next(self.bytes, &mut buffer);
            let Some((number, end)) = next else { return };
            let _watched = Watched {
                line: self.line,
                results,
                number,
            };
            let (made, memory) = self.read(number, buffer, end, &mut values);
            buffer = memory;
            let failed = made.is_err();
            if failed {
                self.line.fail();
            }
            // Nobody listens when another block failed.
            if results.send((number, made)).is_err() || failed {
                return;
            }
        }
    }

    /// Reads the rows of a block into `values`, joins it to those before, and has something made of it; gives its memory
    /// back.
    fn read<P>(
        &self,
        number: usize,
        buffer: Vec<u8>,
        end: usize,
        values: &mut Vec<Value>,
    ) -> (Result<(u64, P), NotSplit>, Vec<u8>)
    where
        F: Fn(&mut BlockRows<'_>) -> Option<P>,
    {
        values.clear();
        let cells = self.template.fork(References::deferred());
        let mut reader = ExportReader::of_rows(buffer, end, cells, self.schema.clone());
        let mut rows = 0;
        let mut good = true;
        while good && reader.has_more() {
            good = reader.advance().unwrap_or(false);
            values.extend_from_slice(&reader.cells.row);
            rows += 1;
        }
        let ExportReader { reader, cells, .. } = reader;
        let buffer = reader.into_inner().into_buffer();
        let made = if good {
            self.make(number, cells, values).map(|part| (rows, part))
        } else {
            Err(NotSplit)
        };
        (made, buffer)
    }

    fn make<P>(&self, number: usize, cells: Cells, values: &[Value]) -> Result<P, NotSplit>
    where
        F: Fn(&mut BlockRows<'_>) -> Option<P>,
    {
        let (counted, keep_all) = (cells.counted(), cells.keep_all);
        let (segment, imports) = self.line.join(number, cells.into_piece(), counted, keep_all)?;
        let mut rows = BlockRows {
            schema: self.schema,
            segment: &segment,
            imports: &imports,
            values: values.chunks(self.schema.columns.len()),
            row: Vec::new(),
        };
        (self.parse)(&mut rows).ok_or(NotSplit)
    }
}
