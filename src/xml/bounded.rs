//! The buffer between an input and its two readers: no single event of the tokenizer may outgrow a bound, and the row
//! scanner looks at all of it at once.

use std::io::{self, BufRead, Read};

/// No tag, text or attribute list of an export comes near this; more is refused.
pub(super) const MAX_EVENT_BYTES: u64 = 16 << 20;
/// Twice the buffers of [`crate::source`], so that those are passed by also when the rest of a row is kept. A row that
/// does not fit into it is not scanned.
pub(super) const BUFFER: usize = 512 << 10;

/// Bytes that are checked to be UTF-8 at once: few enough to be in the processor's own memory still when they are read.
const STEP: usize = 32 << 10;
/// Below this, the window is made larger before it is looked at: most rows fit into it.
const NEAR: usize = 4 << 10;

/// A buffer that refuses to feed one event for ever. It is the only buffer that an event crosses, so that asking it
/// for bytes costs no call through a trait object.
pub(super) struct Bounded<R> {
    input: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// Before this the buffer is known to be UTF-8.
    checked: usize,
    /// Whether nothing comes behind it; then its bytes stay where they are.
    whole: bool,
    /// An error that reading met behind the buffer.
    failed: Option<io::Error>,
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
            checked: 0,
            whole: false,
            failed: None,
            left: MAX_EVENT_BYTES,
            exceeded: false,
        }
    }
}

impl Bounded<io::Empty> {
    /// A buffer whose first bytes, up to `end`, are all there is.
    pub(super) fn whole(buffer: Vec<u8>, end: usize) -> Self {
        let buffer = buffer.into_boxed_slice();
        let end = end.min(buffer.len());
        Bounded {
            input: io::empty(),
            at: 0,
            end,
            checked: 0,
            whole: true,
            buffer,
            failed: None,
            left: MAX_EVENT_BYTES,
            exceeded: false,
        }
    }

    /// The memory of the buffer, to be used again.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer.into_vec()
    }
}

impl<R: Read> Bounded<R> {
    /// What is here and not consumed; it is to be given back by [`Bounded::put_back`] as far as nobody consumes it.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.rest().to_vec();
        (self.at, self.end, self.checked) = (0, 0, 0);
        rest
    }

    /// Puts bytes before everything that is still to be read.
    pub(super) fn put_back(&mut self, mut rest: Vec<u8>) {
        self.end = rest.len();
        // No smaller than it was, so that it can be filled on.
        rest.resize(self.end.max(BUFFER), 0);
        self.buffer = rest.into_boxed_slice();
        (self.at, self.checked) = (0, 0);
    }

    /// Reads on into `buffer`, of which `end` bytes are read, until they are `bytes`; fewer when nothing more comes.
    pub(super) fn read_on(&mut self, buffer: &mut Vec<u8>, mut end: usize, bytes: usize) -> usize {
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        while end < bytes && self.failed.is_none() {
            match self.input.read(buffer.get_mut(end..bytes).unwrap_or_default()) {
                Ok(0) => break,
                Ok(amount) => end += amount,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It is told when everything before it was read.
                Err(error) => self.failed = Some(error),
            }
        }
        end
    }

    /// The next bytes that are here already, as far as they are UTF-8. Must begin at the beginning of a character.
    pub(super) fn window(&mut self) -> &[u8] {
        if self.checked.saturating_sub(self.at) < NEAR {
            self.check();
        }
        self.buffer.get(self.at..self.checked).unwrap_or_default()
    }

    /// Looks at [`STEP`] more bytes, which whoever reads them then finds near; `false` when there are none, or what
    /// follows is no UTF-8, as at the end of the buffer half a character is.
    fn check(&mut self) -> bool {
        let from = self.checked.max(self.at);
        let fresh = self.buffer.get(from..self.end.min(from + STEP)).unwrap_or_default();
        self.checked = from
            + match simdutf8::compat::from_utf8(fresh) {
                Ok(_) => fresh.len(),
                Err(error) => error.valid_up_to(),
            };
        self.checked > from
    }

    /// What is here and not consumed.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..self.end).unwrap_or_default()
    }

    /// Makes the window larger: by what is here already, else by reading on behind it, at least as much again, so that rows
    /// that arrive in pieces are not looked at once for each piece; `false` when nothing came, or there is no room for it.
    pub(super) fn widen(&mut self) -> bool {
        if self.check() {
            return true;
        }
        if self.whole {
            return false;
        }
        self.buffer.copy_within(self.at..self.end, 0);
        self.checked = self.checked.saturating_sub(self.at);
        self.end -= self.at;
        self.at = 0;
        let (before, enough) = (self.end, 2 * self.end);
        while self.end <= enough && self.failed.is_none() {
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => break,
                Ok(amount) => self.end += amount,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It is told when everything before it was read.
                Err(error) => self.failed = Some(error),
            }
        }
        self.end > before
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
            self.checked = 0;
            self.end = match self.failed.take() {
                Some(error) => return Err(error),
                None => self.input.read(&mut self.buffer)?,
            };
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
