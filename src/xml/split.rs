//! One table on several threads: its rows are cut into blocks, the blocks are read at once, and what they give arrives in
//! their order.
//!
//! Each block is a piece of the document ([`super::segments`]): read first without what is before it, then, in their
//! order, joined to it, then made into whatever the caller wants, and that is taken in their order. Nobody waits for a turn:
//! who has read a block before those in front of it are joined leaves it to whoever joins the last of them, and goes on.
//!
//! Cutting looks for closing tags of rows only, so a comment or an attribute can deceive it; then a block does not read, and
//! as with anything else that is wrong the whole input is to be read by one thread, which words the error if there is one. So
//! nothing here says what is wrong. Where the table ends is seen by whoever reads that block; what was cut behind it is put
//! back.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use super::cells::{Cells, Counted};
use super::cutter::{Block, Cutter};
use super::segments::{Earlier, Piece, References, Segment, Unresolved, resolved};
use super::taking::{Taking, lock};
use super::value::Value;
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
    /// how many rows that were. `parse` makes something of each block, several at once; `take` gets that, one after the
    /// other in the order of the document. Both are called on any thread. What is left of the table is to be read as ever.
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
        let line = Line {
            bytes: blocks.bytes,
            most_left: blocks.threads,
            keep_all: self.cells.keep_all,
            spare: Mutex::default(),
            cutter: Mutex::new(Cutter::new(self.reader.get_mut())),
            order: Mutex::new(Order {
                next: 0,
                left: BTreeMap::new(),
                earlier,
                counted,
                ended: false,
                behind: BTreeMap::new(),
                failed: false,
            }),
            turn: Condvar::new(),
        };
        let taking = Taking::new(take, blocks.threads);
        let work = Work {
            template: &self.cells,
            schema: &schema,
            line: &line,
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
        let mut behind = order.behind;
        // Behind the end of the table some were read in vain.
        let left = order.left.into_values().map(|read| read.block);
        behind.extend(left.map(|block| (block.number, block.bytes().to_vec())));
        let mut rest = behind.into_values().collect::<Vec<_>>().concat();
        let (uncut, bytes) = cutter.into_rest();
        let bytes = bytes - rest.len();
        rest.extend_from_slice(&uncut);
        // The bytes are gone from the buffer; this counts them.
        self.reader.stream().consume(bytes);
        self.reader.get_mut().put_back(rest);
        self.cells.references = References::to(order.earlier);
        self.cells.add(order.counted);
        let rows = taking.into_rows();
        self.row += rows;
        Ok(rows)
    }
}

const NODE_END: &[u8] = b"</node>";

/// Tells of a thread that panics over a block, for which all others would wait.
struct Watched<'a, 'r, R>(&'a Line<'r, R>);

impl<R> Drop for Watched<'_, '_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail();
        }
    }
}

/// Where the threads meet.
struct Line<'a, R> {
    /// About how many bytes a block has.
    bytes: usize,
    /// How many blocks may be left for their turn.
    most_left: usize,
    keep_all: bool,
    spare: Mutex<Spare>,
    cutter: Mutex<Cutter<'a, R>>,
    order: Mutex<Order>,
    /// Fewer are left, or it is another block's turn.
    turn: Condvar,
}

/// Memory of blocks that are done with: as large as it is, it would come from the system and go back each time.
#[derive(Default)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    values: Vec<Vec<Value>>,
}

/// A block that was read without what is before it.
struct ReadBlock {
    block: Block,
    /// How many bytes follow its last row, of those that are no row any more.
    behind: usize,
    rows: u64,
    values: Vec<Value>,
    piece: Piece,
    counted: Counted,
}

/// A block that was joined to those before it.
struct JoinedBlock {
    number: usize,
    rows: u64,
    values: Vec<Value>,
    segment: Arc<Segment>,
    imports: Vec<Value>,
}

struct Order {
    /// The block whose turn it is to be joined to those before.
    next: usize,
    /// Those that were read before their turn.
    left: BTreeMap<usize, ReadBlock>,
    earlier: Earlier,
    counted: Counted,
    /// The table ended inside a block.
    ended: bool,
    /// What of the blocks is behind the table, by their numbers.
    behind: BTreeMap<usize, Vec<u8>>,
    failed: bool,
}

impl Order {
    /// Joins the block whose turn it is.
    fn join(&mut self, read: ReadBlock, keep_all: bool) -> Result<(JoinedBlock, Vec<u8>), NotSplit> {
        let bytes = read.block.bytes();
        let (_, behind) = bytes.split_at_checked(bytes.len() - read.behind).ok_or(NotSplit)?;
        let ends = !behind.is_empty();
        if ends && !behind.trim_ascii_start().starts_with(NODE_END) {
            return Err(NotSplit);
        }
        let (segment, imports) = read.piece.resolve(&self.earlier)?;
        let (largest, all) = segment.pool.sizes();
        let counted = Counted {
            full_bytes: all,
            ..read.counted
        };
        self.counted = self.counted.with(counted, largest, keep_all).ok_or(NotSplit)?;
        let segment = Arc::new(segment);
        if !self.earlier.push(&segment) {
            return Err(NotSplit);
        }
        self.next += 1;
        if ends {
            self.ended = true;
            self.behind.insert(read.block.number, behind.to_vec());
        }
        let joined = JoinedBlock {
            number: read.block.number,
            rows: read.rows,
            values: read.values,
            segment,
            imports,
        };
        Ok((joined, read.block.buffer))
    }
}

impl<R: Read> Line<'_, R> {
    /// The next block. Whoever asks cuts it, so that it is near when it is read.
    fn next_block(&self) -> Option<Block> {
        let buffer = lock(&self.spare).buffers.pop().unwrap_or_default();
        lock(&self.cutter).next(self.bytes, buffer)
    }
}

impl<R> Line<'_, R> {
    fn fail(&self) {
        lock(&self.order).failed = true;
        self.turn.notify_all();
    }

    /// Joins a block to those before it, and those behind it that wait for that; when it is not its turn yet, it is left for
    /// whoever reads the one before. What was joined then is known to `references`. `None`: the table ended before this
    /// block.
    fn hand_in(&self, read: ReadBlock, references: &mut References) -> Result<Option<Vec<JoinedBlock>>, NotSplit> {
        let mut order = lock(&self.order);
        while order.next != read.block.number && order.left.len() >= self.most_left && !order.failed && !order.ended {
            order = self.turn.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        if order.failed {
            return Err(NotSplit);
        }
        order.left.insert(read.block.number, read);
        let (mut joined, mut buffers) = (Vec::new(), Vec::new());
        while !order.ended {
            let next = order.next;
            let Some(read) = order.left.remove(&next) else { break };
            let (block, buffer) = order.join(read, self.keep_all)?;
            joined.push(block);
            buffers.push(buffer);
        }
        references.catch_up(&order.earlier);
        let ended = order.ended;
        drop(order);
        if !joined.is_empty() {
            self.turn.notify_all();
        }
        lock(&self.spare).buffers.append(&mut buffers);
        if ended {
            lock(&self.cutter).ended = true;
        }
        Ok((!ended || !joined.is_empty()).then_some(joined))
    }
}

/// What every thread does.
struct Work<'a, 'r, R, F, P, T> {
    /// Cells that know what is before the blocks, and define nothing themselves.
    template: &'a Cells,
    schema: &'a Schema,
    line: &'a Line<'r, R>,
    parse: &'a F,
    taking: &'a Taking<P, T>,
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
        while let Some(block) = self.line.next_block() {
            let read = self.read(&mut reader, block);
            let joined = match self.line.hand_in(read, &mut reader.cells.references) {
                Ok(Some(joined)) => joined,
                Ok(None) => return,
                Err(NotSplit) => return self.line.fail(),
            };
            for block in joined {
                if self.make(block).is_err() {
                    return self.line.fail();
                }
            }
        }
    }

    fn read(&self, reader: &mut ExportReader<io::Empty>, block: Block) -> ReadBlock {
        let Block { number, buffer, end } = block;
        let mut values = lock(&self.line.spare).values.pop().unwrap_or_default();
        reader.begin_rows(buffer, end);
        let (rows, behind) = read_rows(reader, &mut values);
        let (mut piece, counted) = reader.cells.take_piece();
        piece.look_up(&mut reader.cells.references);
        ReadBlock {
            block: Block {
                number,
                buffer: reader.take_buffer(),
                end,
            },
            behind,
            rows,
            values,
            piece,
            counted,
        }
    }

    /// Has something made of a block that was joined, and taken when it is its turn.
    fn make(&self, joined: JoinedBlock) -> Result<(), NotSplit> {
        let JoinedBlock {
            number,
            rows,
            mut values,
            segment,
            imports,
        } = joined;
        if !imports.is_empty() {
            for value in &mut values {
                *value = resolved(&imports, *value);
            }
        }
        let mut block = BlockRows {
            schema: self.schema,
            segment: &segment,
            values: values.chunks(self.schema.columns.len()),
        };
        let part = (self.parse)(&mut block).ok_or(NotSplit)?;
        lock(&self.line.spare).values.push(values);
        self.taking.add(number, rows, part);
        Ok(())
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
