//! Cuts what is left of a table into blocks of whole rows, without reading them.

use std::io::Read;

use memchr::memmem;

use super::MAX_PART_BYTES;
use super::bounded::Bounded;

const ROW_END: &[u8] = b"</row>";

/// Whole rows.
pub(super) struct Block {
    /// From 0, in the order of the document.
    pub(super) number: usize,
    /// Begins with them.
    pub(super) buffer: Vec<u8>,
    /// How many bytes they are.
    pub(super) end: usize,
}

impl Block {
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.end).unwrap_or_default()
    }
}

/// Cuts blocks of whole rows.
pub(super) struct Cutter<'a, R> {
    input: &'a mut Bounded<R>,
    /// What was read behind the last block, from `at` on.
    rest: Vec<u8>,
    at: usize,
    /// No whole row follows that can be told apart.
    pub(super) ended: bool,
    /// Blocks so far.
    cut: usize,
    /// Their bytes.
    bytes: usize,
}

impl<'a, R: Read> Cutter<'a, R> {
    /// Goes on where `input` is.
    pub(super) fn new(input: &'a mut Bounded<R>) -> Self {
        Cutter {
            rest: input.take_rest(),
            at: 0,
            input,
            ended: false,
            cut: 0,
            bytes: 0,
        }
    }

    /// What was read behind the last block, and how many bytes all blocks have.
    pub(super) fn into_rest(mut self) -> (Vec<u8>, usize) {
        self.rest.drain(..self.at);
        (self.rest, self.bytes)
    }

    /// The next block, of about `bytes`, in the memory of `buffer`. The table may end in it: to look for that here would be
    /// to read everything once more.
    pub(super) fn next(&mut self, mut bytes: usize, mut buffer: Vec<u8>) -> Option<Block> {
        while !self.ended {
            let rest = self.rest.get(self.at..).unwrap_or_default();
            let here = rest.len().min(bytes);
            buffer.resize(buffer.len().max(here), 0);
            buffer.get_mut(..here)?.copy_from_slice(rest.get(..here)?);
            let all_here = rest.len() >= bytes;
            let end = if all_here {
                here
            } else {
                self.input.read_on(&mut buffer, here, bytes)
            };
            let (more, read) = (end >= bytes, buffer.get(..end)?);
            let rows = memmem::rfind(read, ROW_END).map(|at| at + ROW_END.len());
            if all_here {
                self.at += rows.unwrap_or(0);
            } else {
                self.at = 0;
                self.rest.clear();
                self.rest.extend_from_slice(read.get(rows.unwrap_or(0)..)?);
            }
            if let Some(rows) = rows {
                self.ended = !more;
                self.cut += 1;
                self.bytes += rows;
                return Some(Block {
                    number: self.cut - 1,
                    buffer,
                    end: rows,
                });
            }
            self.ended = !more || bytes as u64 > MAX_PART_BYTES;
            bytes += bytes.max(1024);
        }
        None
    }
}
