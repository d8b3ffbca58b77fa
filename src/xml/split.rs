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

use super::cells::{Cells, Counted};
use super::ids::Value;
use super::segments::{Earlier, Piece, References, Segment, Unresolved, resolved};
use super::{ExportReader, Place, Row, Schema};

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
        results: &Receiver<(usize, Done<P>)>,
        take: &mut impl FnMut(P),
    ) -> Result<u64, NotSplit> {
        let (mut cut, mut taken, mut rows) = (0, 0, 0);
        let mut early = BTreeMap::new();
        let mut more = true;
        loop {
            while more && cut - taken < threads * (WAITING + 1) {
                match self.cut_block(bytes) {
                    Some(block) => {
                        line.add((cut, block));
                        cut += 1;
                    }
                    None => more = false,
                }
            }
            if taken == cut {
                return Ok(rows);
            }
            let (number, done) = results.recv().map_err(|_| NotSplit)?;
            early.insert(number, done);
            while let Some(done) = early.remove(&taken) {
                let (count, part) = done?;
                rows += count;
                take(part);
                taken += 1;
            }
        }
    }

    /// Whole rows that follow here, about so many bytes of them; `None` when they end, or are not to be told apart.
    fn cut_block(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let mut block = Vec::new();
        while block.len() < bytes {
            let window = self.reader.get_mut().window();
            let window = window.get(..bytes.max(ROW_END.len())).unwrap_or(window);
            let in_node = memmem::find(window, b"</node>").unwrap_or(window.len());
            let end = memmem::rfind(window.get(..in_node)?, ROW_END).map(|at| at + ROW_END.len());
            let ended = in_node < window.len();
            let Some(rows) = end.and_then(|end| window.get(..end)) else {
                if ended || !self.reader.get_mut().widen() {
                    break;
                }
                continue;
            };
            if block.is_empty() {
                block.reserve(bytes + window.len());
            }
            block.extend_from_slice(rows);
            let length = rows.len();
            std::io::BufRead::consume(&mut self.reader.stream(), length);
            if ended {
                break;
            }
        }
        (!block.is_empty()).then_some(block)
    }
}

const ROW_END: &[u8] = b"</row>";

/// Rows of a block and what was made of them.
type Done<P> = Result<(u64, P), NotSplit>;

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
    waiting: VecDeque<(usize, Vec<u8>)>,
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
    fn add(&self, block: (usize, Vec<u8>)) {
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
    fn block(&self) -> Option<(usize, Vec<u8>)> {
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
    fn run<P>(&self, results: &Sender<(usize, Done<P>)>)
    where
        F: Fn(&mut BlockRows<'_>) -> Option<P>,
    {
        while let Some((number, block)) = self.line.block() {
            let done = self.read(number, &block);
            if done.is_err() {
                self.line.fail();
            }
            // Nobody listens when another block failed.
            if results.send((number, done)).is_err() {
                return;
            }
        }
    }

    fn read<P>(&self, number: usize, block: &[u8]) -> Done<P>
    where
        F: Fn(&mut BlockRows<'_>) -> Option<P>,
    {
        let cells = self.template.fork(References::deferred());
        let mut reader = ExportReader::of_rows(block, cells, self.schema.clone());
        let mut values = Vec::new();
        let mut rows = 0;
        while reader.has_more() {
            match reader.advance() {
                Ok(true) => values.extend_from_slice(&reader.cells.row),
                _ => return Err(NotSplit),
            }
            rows += 1;
        }
        let cells = reader.cells;
        let (counted, keep_all) = (cells.counted(), cells.keep_all);
        let (segment, imports) = self.line.join(number, cells.into_piece(), counted, keep_all)?;
        let mut rows_of_block = BlockRows {
            schema: self.schema,
            segment: &segment,
            imports: &imports,
            values: values.chunks(self.schema.columns.len()),
            row: Vec::new(),
        };
        let part = (self.parse)(&mut rows_of_block).ok_or(NotSplit)?;
        Ok((rows, part))
    }
}
