//! Unpacking on a thread of its own: whoever reads the XML need not wait for the decompressor.
//!
//! A compressed file goes in; its text comes out as from [`decode`], with the same errors. The thread ends with the file,
//! or when nobody reads on.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::decode;
use crate::error::{Error, Result};

/// Small enough for the allocator to use again and again.
const CHUNK: usize = 64 << 10;
/// How far the thread may be ahead.
const CHUNKS: usize = 16;

/// The text of a compressed file.
pub(super) struct Unpacked<F> {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
    ended: bool,
    /// Bytes of the file that were read and not told yet.
    read: Arc<AtomicU64>,
    progress: F,
}

/// Begins to unpack; `progress` sees the bytes of the file, on the thread that reads the text.
pub(super) fn unpack<F: Fn(u64) + Send>(input: impl Read + Send + 'static, progress: F) -> Result<Unpacked<F>> {
    let read = Arc::new(AtomicU64::new(0));
    let counted = Counted {
        input,
        read: Arc::clone(&read),
    };
    let (begin, begun) = sync_channel(1);
    let (sender, chunks) = sync_channel(CHUNKS);
    thread::Builder::new()
        .name("unpack".to_owned())
        .spawn(move || match decode(counted) {
            Ok(text) => {
                let _ = begin.send(Ok(()));
                send_all(text, &sender);
            }
            Err(error) => {
                let _ = begin.send(Err(error));
            }
        })
        .map_err(|error| Error::io("start a thread", error))?;
    begun.recv().map_err(|_| Error::io("unpack it", stopped()))??;
    Ok(Unpacked {
        chunks,
        chunk: Vec::new(),
        at: 0,
        ended: false,
        read,
        progress,
    })
}

/// Sends the text, and an empty chunk as its end.
fn send_all(mut text: impl Read, chunks: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        let result = text.by_ref().take(CHUNK as u64).read_to_end(&mut chunk);
        // What was read before a fault comes before it.
        let rest = !chunk.is_empty() || result.is_ok();
        let ended = chunk.is_empty() || result.is_err();
        if rest && chunks.send(Ok(chunk)).is_err() {
            return;
        }
        if let Err(error) = result {
            let _ = chunks.send(Err(error));
        }
        if ended {
            return;
        }
    }
}

fn stopped() -> io::Error {
    io::Error::other("unpacking stopped")
}

impl<F: Fn(u64)> BufRead for Unpacked<F> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.chunk.len() && !self.ended {
            self.chunk = self.chunks.recv().unwrap_or_else(|_| Err(stopped()))?;
            self.at = 0;
            self.ended = self.chunk.is_empty();
            (self.progress)(self.read.swap(0, Ordering::Relaxed));
        }
        Ok(self.chunk.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.at = self.chunk.len().min(self.at + amount);
    }
}

impl<F: Fn(u64)> Read for Unpacked<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let amount = self.fill_buf()?.read(out)?;
        self.consume(amount);
        Ok(amount)
    }
}

/// A reader whose bytes another thread can count.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let amount = self.input.read(out)?;
        self.read.fetch_add(amount as u64, Ordering::Relaxed);
        Ok(amount)
    }
}
