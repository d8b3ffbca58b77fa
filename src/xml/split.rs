//! One table on several threads: its rows are cut into blocks, the blocks are read at once, and what they give arrives in
//! their order.
//!
//! Each block is a piece of the document ([`super::segments`]): read first without what is before it, then, in their
//! order, joined to it, then made into whatever the caller wants. Cutting looks for closing tags only, so a comment or an
//! attribute can deceive it; then a block does not read, and as with anything else that is wrong the whole input is to be
//! read by one thread, which words the error if there is one. So nothing here says what is wrong.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
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

/// Blocks that wait to be read, for each thread.
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

impl<R: Read> ExportReader<R> {
    /// Reads the rows of the table from here on, as far as whole blocks of them can be cut, on several threads, and tells
    /// how many rows that were. `parse` makes something of each block, on any thread; `take` gets it on this one, in the order of the
    /// document. What is left of the table is to be read as ever.
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
        let line = Line {
            order: Mutex::new(Order {
                next: 0,
                earlier,
                counted,
                failed: false,
            }),
            turn: Condvar::new(),
            blocks: Mutex::new(Queue::default()),
            arrived: Condvar::new(),
        };
        let template = self.cells.fork(References::None);
        let work = Work {
            template: &template,
            schema: &schema,
            line: &line,
            parse: &parse,
        };
        let rows = thread::scope(|scope| {
            let (sender, results) = channel();
            let mut begun = 0;
            for _ in 0..blocks.threads {
                let (sender, work) = (sender.clone(), &work);
                begun += usize::from(
                    thread::Builder::new()
                        .spawn_scoped(scope, move || work.run(&sender))
                        .is_ok(),
                );
            }
            drop(sender);
            if begun == 0 {
                return Err(NotSplit);
            }
            let rows = self.feed(&line, begun, blocks.bytes, &results, &mut take);
            line.end(rows.is_err());
            rows
        })?;
        let order = line.order.into_inner().unwrap_or_else(PoisonError::into_inner);
        if order.failed {
            return Err(NotSplit);
        }
        self.cells = self.cells.fork(References::known(order.earlier.clone()));
        self.cells.add(order.counted);
        self.earlier = order.earlier;
        self.row += rows;
        Ok(rows)
    }

    /// Cuts blocks for the threads and hands on what they make of them.
    fn feed<P>(
        &mut self,
        line: &Line,
        threads: usize,
        bytes: usize,
        results: &Receiver<Done<P>>,
        take: &mut impl FnMut(P),
    ) -> Result<u64, NotSplit> {
        let (mut cut, mut taken, mut rows) = (0, 0, 0);
        let mut early = BTreeMap::new();
        let mut spare: Vec<Vec<u8>> = Vec::new();
        let mut cutter = Cutter {
            rest: self.reader.get_mut().take_rest(),
            ended: false,
        };
        loop {
            while cut - taken < threads * (WAITING + 1) {
                let memory = spare.pop().unwrap_or_default();
                let Some(block) = cutter.next(self.reader.get_mut(), bytes, memory) else {
                    break;
                };
                std::io::BufRead::consume(&mut self.reader.stream(), block.end);
                line.add((cut, block));
                cut += 1;
            }
            if taken == cut {
                self.reader.get_mut().put_back(cutter.rest);
                return Ok(rows);
            }
            let done = results.recv().map_err(|_| NotSplit)?;
            spare.push(done.block);
            // One that failed ends it all, whichever it is.
            early.insert(done.number, done.made?);
            while let Some((count, part)) = early.remove(&taken) {
                rows += count;
                take(part);
                taken += 1;
            }
        }
    }
}

/// Whole rows: the first `end` bytes of `buffer`.
#[derive(Default)]
struct Block {
    buffer: Vec<u8>,
    end: usize,
}

/// Cuts blocks of whole rows.
struct Cutter {
    /// What was read behind the last block.
    rest: Vec<u8>,
    /// No whole row follows that can be told apart.
    ended: bool,
}

impl Cutter {
    /// Whole rows that follow, about so many bytes of them, in memory that was used before.
    fn next<R: Read>(&mut self, input: &mut Bounded<R>, bytes: usize, mut buffer: Vec<u8>) -> Option<Block> {
        if self.ended {
            return None;
        }
        let (mut bytes, mut end, mut searched) = (bytes, self.rest.len(), 0usize);
        buffer.resize(buffer.len().max(end), 0);
        buffer.get_mut(..end)?.copy_from_slice(&self.rest);
        loop {
            end = input.read_on(&mut buffer, end, bytes.max(end));
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
                return Some(Block { buffer, end: rows });
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

/// A block that was read.
struct Done<P> {
    number: usize,
    /// How many rows it had, and what was made of them.
    made: Result<(u64, P), NotSplit>,
    /// Its memory.
    block: Vec<u8>,
}

/// Tells of a thread that panics over a block, for which all others would wait.
struct Watched<'a, P> {
    line: &'a Line,
    results: &'a Sender<Done<P>>,
    number: usize,
}

impl<P> Drop for Watched<'_, P> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.line.fail();
            let _ = self.results.send(Done {
                number: self.number,
                made: Err(NotSplit),
                block: Vec::new(),
            });
        }
    }
}

/// Where the threads meet.
struct Line {
    blocks: Mutex<Queue>,
    /// A block came, or none will.
    arrived: Condvar,
    order: Mutex<Order>,
    /// It is the next block's turn.
    turn: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(usize, Block)>,
    ended: bool,
}

struct Order {
    /// The block whose turn it is to be joined to those before.
    next: usize,
    earlier: Earlier,
    counted: Counted,
    failed: bool,
}

impl Line {
    fn add(&self, block: (usize, Block)) {
        lock(&self.blocks).waiting.push_back(block);
        self.arrived.notify_one();
    }

    /// No block comes any more; those that wait are not wanted when something failed.
    fn end(&self, failed: bool) {
        let mut blocks = lock(&self.blocks);
        blocks.ended = true;
        if failed {
            blocks.waiting.clear();
        }
        drop(blocks);
        self.arrived.notify_all();
        if failed {
            self.fail();
        }
    }

    fn fail(&self) {
        lock(&self.order).failed = true;
        self.turn.notify_all();
    }

    /// The next block, in their order.
    fn block(&self) -> Option<(usize, Block)> {
        let mut blocks = lock(&self.blocks);
        loop {
            if let Some(block) = blocks.waiting.pop_front() {
                return Some(block);
            }
            if blocks.ended {
                return None;
            }
            blocks = self.arrived.wait(blocks).unwrap_or_else(PoisonError::into_inner);
        }
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
struct Work<'a, F> {
    /// Cells that know the element names, and nothing else.
    template: &'a Cells,
    schema: &'a Schema,
    line: &'a Line,
    parse: &'a F,
}

impl<F> Work<'_, F> {
    fn run<P>(&self, results: &Sender<Done<P>>)
    where
        F: Fn(&mut BlockRows<'_>) -> Option<P>,
    {
        let mut values = Vec::new();
        while let Some((number, block)) = self.line.block() {
            let _watched = Watched {
                line: self.line,
                results,
                number,
            };
            values.clear();
            let text = block.buffer.get(..block.end).unwrap_or_default();
            let (made, block) = match simdutf8::basic::from_utf8(text) {
                Ok(_) => self.read(number, block, &mut values),
                Err(_) => (Err(NotSplit), block.buffer),
            };
            if made.is_err() {
                self.line.fail();
            }
            // Nobody listens when another block failed.
            if results.send(Done { number, made, block }).is_err() {
                return;
            }
        }
    }

    /// Reads the rows of a block, which is UTF-8, into `values`, joins it to those before, and has something made of it.
    fn read<P>(&self, number: usize, block: Block, values: &mut Vec<Value>) -> (Result<(u64, P), NotSplit>, Vec<u8>)
    where
        F: Fn(&mut BlockRows<'_>) -> Option<P>,
    {
        let cells = self.template.fork(References::deferred());
        let mut reader = ExportReader::of_rows(block.buffer, block.end, cells, self.schema.clone());
        let mut rows = 0;
        let mut good = true;
        while good && reader.has_more() {
            good = reader.advance().unwrap_or(false);
            values.extend_from_slice(&reader.cells.row);
            rows += 1;
        }
        let ExportReader { reader, cells, .. } = reader;
        let block = reader.into_inner().into_buffer();
        let made = if good {
            self.make(number, cells, values).map(|part| (rows, part))
        } else {
            Err(NotSplit)
        };
        (made, block)
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
