//! The buffer between an input and the tokenizer, which no single event may outgrow.

use std::io::{self, BufRead, Read};

/// No tag, text or attribute list of an export comes near this; more is refused.
pub(super) const MAX_EVENT_BYTES: u64 = 16 << 20;
/// As large as the buffers of [`crate::source`], so that those are passed by.
const BUFFER: usize = 256 << 10;

/// A buffer that refuses to feed one event for ever. It is the only buffer that an event crosses, so that asking it
/// for bytes costs no call through a trait object.
pub(super) struct Bounded<R> {
    input: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    pub(super) left: u64,
    pub(super) exceeded: bool,
}

impl<R> Bounded<R> {
    pub(super) fn new(input: R) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Bounded {
            input,
            buffer,
            at: 0,
            end: 0,
            left: MAX_EVENT_BYTES,
            exceeded: false,
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let amount = self.fill_buf()?.read(out)?;
        self.consume(amount);
        Ok(amount)
    }
}

impl<R: Read> BufRead for Bounded<R> {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.end {
            self.at = 0;
            self.end = 0;
            self.end = self.input.read(&mut self.buffer)?;
        }
        if self.left == 0 && self.at < self.end {
            self.exceeded = true;
            return Err(io::Error::other("too long"));
        }
        let most = usize::try_from(self.left).map_or(self.end, |left| self.end.min(self.at.saturating_add(left)));
        Ok(self.buffer.get(self.at..most).unwrap_or_default())
    }

    #[inline]
    fn consume(&mut self, amount: usize) {
        self.left = self.left.saturating_sub(amount as u64);
        self.at = self.end.min(self.at + amount);
    }
}
