//! Values in frames: each frame has its length and a checksum that goes on from the one before, so a frame that is
//! changed, cut, left out or moved is noticed before its first value is used.
//!
//! Numbers are written with seven bits to a byte, texts after their length. A value, and a block of rows, stands in one
//! frame. Rows are columns in blocks: a block is small enough for the processor's cache, and its columns are each written
//! in the shortest of three ways. Nothing is allocated for what the bytes that are left cannot hold.

use std::io::{self, BufReader, Read, Write};

use twox_hash::XxHash64;

/// A frame ends with the first value that makes it so long.
const FRAME: usize = 64 << 10;
/// Length and checksum of a frame.
pub(super) const HEAD: usize = 4 + 8;
/// Rows of a block.
const BLOCK: usize = 1024;

/// Every number of a column is this one.
const CONSTANT: u8 = 0;
/// Numbers as they are.
const PLAIN: u8 = 1;
/// Each number as its distance from the one before.
const DISTANCE: u8 = 2;

/// What is wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged(pub(super) &'static str);

const CUT: Damaged = Damaged("it is cut");
const NONSENSE: Damaged = Damaged("it holds what was never written");

/// XXH64, which finds every fault of a disk that is not made on purpose.
pub(super) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash64::oneshot(seed, bytes)
}

/// A struct as N numbers, each in a column of its own; the first should be one that differs from row to row.
pub(super) trait Columns<const N: usize>: Sized {
    /// Its numbers.
    fn numbers(&self) -> [u64; N];
    /// The struct again; `None` when no struct has such numbers, or an id in it is none of the known ones.
    fn from_numbers(numbers: [u64; N], known: Known) -> Option<Self>;
}

/// How many texts there are for ids to name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// Names.
    pub(super) names: u64,
    /// Processes.
    pub(super) processes: u64,
    /// Labels.
    pub(super) labels: u64,
}

/// Writes values.
pub(super) struct FrameWriter<W> {
    out: W,
    frame: Vec<u8>,
    seed: u64,
    length: u64,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(out: W, seed: u64) -> Self {
        FrameWriter {
            out,
            frame: Vec::new(),
            seed,
            length: 0,
        }
    }

    pub(super) fn number(&mut self, number: u64) -> io::Result<()> {
        put(&mut self.frame, number);
        self.end_value()
    }

    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        put(&mut self.frame, text.len() as u64);
        self.frame.extend(text.as_bytes());
        self.end_value()
    }

    pub(super) fn rows<T: Columns<N>, const N: usize>(&mut self, rows: &[T]) -> io::Result<()> {
        self.each_row(rows.len(), rows.iter().map(Columns::numbers))
    }

    /// So many rows as their numbers.
    pub(super) fn each_row<const N: usize>(
        &mut self,
        count: usize,
        mut rows: impl Iterator<Item = [u64; N]>,
    ) -> io::Result<()> {
        self.number(count as u64)?;
        let mut block = Vec::with_capacity(BLOCK);
        let mut column = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            block.extend(rows.by_ref().take(BLOCK));
            if block.is_empty() {
                return Ok(());
            }
            for at in 0..N {
                column.clear();
                column.extend(block.iter().filter_map(|numbers| numbers.get(at).copied()));
                // The first column takes a byte of each row at least: rows without a byte could be any number.
                put_column(&mut self.frame, &column, at > 0);
            }
            self.end_value()?;
        }
    }

    fn end_value(&mut self) -> io::Result<()> {
        if self.frame.len() >= FRAME {
            self.end_frame()?;
        }
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.frame.len()).map_err(|_| io::Error::other("a text is too long"))?;
        self.seed = checksum(self.seed, &self.frame);
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.seed.to_le_bytes())?;
        self.out.write_all(&self.frame)?;
        self.length += (HEAD + self.frame.len()) as u64;
        self.frame.clear();
        Ok(())
    }

    /// Ends the last frame; gives the length of all.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        Ok(self.length)
    }
}

/// One frame of any values.
pub(super) fn sealed(values: &[u8], seed: u64) -> Vec<u8> {
    let length = u32::try_from(values.len()).unwrap_or(u32::MAX);
    [
        &length.to_le_bytes(),
        checksum(seed, values).to_le_bytes().as_slice(),
        values,
    ]
    .concat()
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Bytes that [`put`] takes.
fn width(number: u64) -> u32 {
    (64 - (number | 1).leading_zeros()).div_ceil(7)
}

/// A distance in either direction as a number that is small for small distances.
fn folded(distance: u64) -> u64 {
    (distance << 1) ^ if distance >> 63 == 0 { 0 } else { u64::MAX }
}

fn unfolded(number: u64) -> u64 {
    (number >> 1) ^ if number & 1 == 0 { 0 } else { u64::MAX }
}

fn put_column(out: &mut Vec<u8>, column: &[u64], may_be_constant: bool) {
    let first = column.first().copied().unwrap_or_default();
    if may_be_constant && column.iter().all(|number| *number == first) {
        out.push(CONSTANT);
        return put(out, first);
    }
    let before = || std::iter::once(&0).chain(column);
    let distances = || {
        column
            .iter()
            .zip(before())
            .map(|(own, before)| folded(own.wrapping_sub(*before)))
    };
    let bytes = |number: u64| u64::from(width(number));
    if distances().map(bytes).sum::<u64>() < column.iter().copied().map(bytes).sum() {
        out.push(DISTANCE);
        distances().for_each(|number| put(out, number));
    } else {
        out.push(PLAIN);
        column.iter().for_each(|number| put(out, *number));
    }
}

/// Reads values in the order in which they were written.
pub(super) struct FrameReader<R> {
    input: BufReader<R>,
    /// Bytes behind the frame.
    left: u64,
    frame: Vec<u8>,
    at: usize,
    seed: u64,
}

impl<R: Read> FrameReader<R> {
    /// Frames of `length` bytes in all.
    pub(super) fn new(input: R, length: u64, seed: u64) -> Self {
        FrameReader {
            input: BufReader::with_capacity(256 << 10, input),
            left: length,
            frame: Vec::new(),
            at: 0,
            seed,
        }
    }

    /// What is left of the frame, or the next one.
    fn values(&mut self) -> Result<&[u8], Damaged> {
        if self.at == self.frame.len() {
            self.next_frame()?;
        }
        Ok(self.frame.get(self.at..).unwrap_or_default())
    }

    fn next_frame(&mut self) -> Result<(), Damaged> {
        let (mut length, mut seed) = ([0; 4], [0; 8]);
        self.left = self.left.checked_sub(HEAD as u64).ok_or(CUT)?;
        self.input.read_exact(&mut length).map_err(|_| CUT)?;
        self.input.read_exact(&mut seed).map_err(|_| CUT)?;
        let length = u64::from(u32::from_le_bytes(length));
        self.left = self.left.checked_sub(length).ok_or(CUT)?;
        self.frame.clear();
        self.at = 0;
        let read = self.input.by_ref().take(length).read_to_end(&mut self.frame);
        if read.ok().and_then(|read| u64::try_from(read).ok()) != Some(length) {
            return Err(CUT);
        }
        self.seed = checksum(self.seed, &self.frame);
        if self.seed != u64::from_le_bytes(seed) {
            return Err(Damaged("a checksum does not match"));
        }
        Ok(())
    }

    pub(super) fn number(&mut self) -> Result<u64, Damaged> {
        let mut values = self.values()?;
        let before = values.len();
        let number = take(&mut values).ok_or(NONSENSE)?;
        self.at += before - values.len();
        Ok(number)
    }

    /// A number below `end`.
    pub(super) fn number_below(&mut self, end: u64) -> Result<u64, Damaged> {
        Some(self.number()?).filter(|number| *number < end).ok_or(NONSENSE)
    }

    /// How many of something follow that take at least a byte each.
    pub(super) fn count(&mut self) -> Result<usize, Damaged> {
        let number = self.number()?;
        let left = self.left + (self.frame.len() - self.at) as u64;
        if number > left {
            return Err(NONSENSE);
        }
        usize::try_from(number).map_err(|_| NONSENSE)
    }

    pub(super) fn text(&mut self) -> Result<&str, Damaged> {
        let mut values = self.values()?;
        let before = values.len();
        let length = take(&mut values).and_then(|length| usize::try_from(length).ok());
        let taken = before - values.len();
        let begin = self.at + taken;
        let end = length.and_then(|length| begin.checked_add(length)).ok_or(NONSENSE)?;
        let text = self.frame.get(begin..end).ok_or(NONSENSE)?;
        self.at = end;
        std::str::from_utf8(text).map_err(|_| NONSENSE)
    }

    pub(super) fn rows<T: Columns<N>, const N: usize>(&mut self, known: Known) -> Result<Vec<T>, Damaged> {
        let count = self.count()?;
        let mut rows = Vec::with_capacity(count);
        self.each_row(count, known, |row| rows.push(row))?;
        Ok(rows)
    }

    /// So many rows, one after the other.
    pub(super) fn each_row<T: Columns<N>, const N: usize>(
        &mut self,
        count: usize,
        known: Known,
        mut each: impl FnMut(T),
    ) -> Result<(), Damaged> {
        let mut left = count;
        let mut block = vec![[0; N]; left.min(BLOCK)];
        while left > 0 {
            block.truncate(left);
            let mut values = self.values()?;
            let before = values.len();
            if before < block.len() {
                return Err(NONSENSE);
            }
            for at in 0..N {
                let column = block.iter_mut().filter_map(|numbers| numbers.get_mut(at));
                take_column(&mut values, column, at > 0).ok_or(NONSENSE)?;
            }
            self.at += before - values.len();
            for numbers in &block {
                each(T::from_numbers(*numbers, known).ok_or(NONSENSE)?);
            }
            left -= block.len();
        }
        Ok(())
    }

    /// Nothing must be left.
    pub(super) fn end(self) -> Result<(), Damaged> {
        if self.left > 0 || self.at < self.frame.len() {
            return Err(NONSENSE);
        }
        Ok(())
    }
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    if *first < 0x80 {
        return Some(u64::from(*first));
    }
    let mut number = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take_column<'n>(bytes: &mut &[u8], column: impl Iterator<Item = &'n mut u64>, may_be_constant: bool) -> Option<()> {
    let (way, rest) = bytes.split_first()?;
    *bytes = rest;
    match *way {
        CONSTANT if may_be_constant => {
            let number = take(bytes)?;
            column.for_each(|cell| *cell = number);
        }
        PLAIN => {
            for cell in column {
                *cell = take(bytes)?;
            }
        }
        DISTANCE => {
            let mut before = 0_u64;
            for cell in column {
                before = before.wrapping_add(unfolded(take(bytes)?));
                *cell = before;
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of two numbers, of which the second is below 2^60.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Two(u64, u64);

    impl Columns<2> for Two {
        fn numbers(&self) -> [u64; 2] {
            [self.0, self.1]
        }
        fn from_numbers([first, second]: [u64; 2], _: Known) -> Option<Self> {
            (second < 1 << 60).then_some(Two(first, second))
        }
    }

    const SEED: u64 = 7;

    fn written(fill: impl FnOnce(&mut FrameWriter<&mut Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut frames = FrameWriter::new(&mut bytes, SEED);
        fill(&mut frames).unwrap();
        let length = frames.finish().unwrap();
        assert_eq!(length, bytes.len() as u64);
        bytes
    }

    fn reader(bytes: &[u8]) -> FrameReader<&[u8]> {
        FrameReader::new(bytes, bytes.len() as u64, SEED)
    }

    #[test]
    fn numbers_of_every_width_come_back() {
        let numbers: Vec<u64> = (0..64)
            .flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX - (1 << bit)])
            .chain([0, u64::MAX])
            .collect();
        for number in &numbers {
            let mut bytes = Vec::new();
            put(&mut bytes, *number);
            assert_eq!(bytes.len(), usize::try_from(width(*number)).unwrap());
            assert_eq!(take(&mut bytes.as_slice()), Some(*number));
            assert_eq!(unfolded(folded(*number)), *number);
        }
        assert!(folded(3) < 8 && folded(3_u64.wrapping_neg()) < 8);
        assert_eq!(take(&mut [0xff; 10].as_slice()), None, "more than 64 bits");
        assert_eq!(take(&mut [0x80].as_slice()), None);

        let bytes = written(|frames| numbers.iter().try_for_each(|number| frames.number(*number)));
        let mut frames = reader(&bytes);
        assert!(numbers.iter().all(|number| frames.number() == Ok(*number)));
        frames.end().unwrap();
    }

    #[test]
    fn rows_and_texts_come_back_over_many_blocks_and_frames() {
        for count in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 70 * BLOCK] {
            let row = |at: usize| {
                let at = at as u64;
                Two(at * 1000, at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 5)
            };
            let rows: Vec<Two> = (0..count).map(row).collect();
            let text = "é".repeat(count);
            let bytes = written(|frames| {
                frames.rows(&rows)?;
                frames.text(&text)
            });
            let mut frames = reader(&bytes);
            assert_eq!(frames.rows(Known::default()), Ok(rows));
            assert_eq!(frames.text(), Ok(text.as_str()));
            frames.end().unwrap();
        }
    }

    #[test]
    fn a_column_is_written_in_its_shortest_way() {
        let bytes = |column: &[u64]| {
            let mut out = Vec::new();
            put_column(&mut out, column, true);
            out
        };
        assert_eq!(bytes(&[500; 1000]).len(), 3);
        assert_eq!(bytes(&[1, 2, 3]), [PLAIN, 1, 2, 3]);
        let ids: Vec<u64> = (1 << 40..).take(100).collect();
        assert_eq!(bytes(&ids).len(), 1 + 6 + 99);
    }

    #[test]
    fn no_more_is_allocated_than_bytes_can_hold() {
        let huge = written(|frames| frames.number(u64::MAX / 2));
        assert_eq!(reader(&huge).rows::<Two, 2>(Known::default()), Err(NONSENSE));
        assert_eq!(reader(&huge).text(), Err(NONSENSE));
        let frame = [u32::MAX.to_le_bytes().as_slice(), &[0; 100]].concat();
        assert_eq!(reader(&frame).number(), Err(CUT));
        // A thousand rows of no byte each.
        let constant = written(|frames| {
            frames.number(4)?;
            [CONSTANT, 1, CONSTANT, 1]
                .iter()
                .try_for_each(|byte| frames.number(u64::from(*byte)))
        });
        assert_eq!(reader(&constant).rows::<Two, 2>(Known::default()), Err(NONSENSE));
    }

    #[test]
    fn frames_in_another_order_are_not_those_that_were_written() {
        let half = "x".repeat(FRAME);
        let bytes = written(|frames| {
            frames.text(&half)?;
            frames.text(&half)
        });
        let (first, second) = bytes.split_at(bytes.len() / 2);
        assert_eq!(first[HEAD..], second[HEAD..], "the same values");
        let mut frames = reader(second);
        assert_eq!(frames.text(), Err(Damaged("a checksum does not match")));
        let cut = reader(first).text().map(str::len);
        assert_eq!(cut, Ok(FRAME));
        let mut frames = reader(first);
        frames.text().unwrap();
        assert_eq!(frames.text(), Err(CUT));
    }
}
