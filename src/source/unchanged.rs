//! A file that must stay as it is while it is read: a recording that is still being written, or copied, has no end yet,
//! and numbers of half of it are nobody's.

use std::fs::File;
use std::io::{self, Read};
use std::time::SystemTime;

/// A file, and what it was when it was opened.
pub(super) struct Unchanged {
    file: File,
    begun: State,
    read: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// `None` for what has no length: a pipe, a device.
    length: Option<u64>,
    modified: Option<SystemTime>,
}

impl State {
    fn of(file: &File) -> io::Result<State> {
        let metadata = file.metadata()?;
        Ok(State {
            // Some files that the system makes up say 0.
            length: Some(metadata.len()).filter(|length| metadata.is_file() && *length > 0),
            modified: metadata.modified().ok(),
        })
    }
}

impl Unchanged {
    pub(super) fn new(file: File) -> io::Result<Self> {
        Ok(Unchanged {
            begun: State::of(&file)?,
            file,
            read: 0,
        })
    }
}

impl Read for Unchanged {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let amount = self.file.read(out)?;
        self.read += amount as u64;
        if amount == 0
            && !out.is_empty()
            && let Some(length) = self.begun.length
            && (self.read != length || State::of(&self.file)? != self.begun)
        {
            return Err(io::Error::other("the file changed while it was read"));
        }
        Ok(amount)
    }
}
