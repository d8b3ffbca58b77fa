//! Files that other tools read: one file per format, one match.
//!
//! What goes in is one of two shapes, [`Timeline`] or [`CallTree`], whatever it was made from. For fleets of trials it is
//! the submissions of a trace themselves, a row each: [`parquet`] and [`submissions_csv`].

mod chrome;
mod hatchet;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "traces")]
mod submissions;
#[cfg(feature = "traces")]
pub mod submissions_csv;
#[cfg(feature = "traces")]
pub mod trials;

use std::io;

use crate::calltree::CallTree;
use crate::timeline::Timeline;

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// Chrome trace JSON: chrome://tracing, Perfetto, speedscope.
    Chrome,
    /// Hatchet literal JSON: llnl-hatchet, Thicket.
    Hatchet,
}

impl Conversion {
    /// `chrome` or `hatchet`.
    pub fn name(self) -> &'static str {
        match self {
            Conversion::Chrome => "chrome",
            Conversion::Hatchet => "hatchet",
        }
    }
}

/// Something that has both shapes.
pub trait Shapes {
    /// As tracks with slices.
    fn timeline(&self) -> Timeline;
    /// As a tree of frames.
    fn call_tree(&self) -> CallTree;
}

/// Writes a file for another tool.
///
/// # Errors
/// Whatever `out` refuses.
pub fn write(shapes: &impl Shapes, conversion: Conversion, out: &mut dyn io::Write) -> io::Result<()> {
    match conversion {
        Conversion::Chrome => chrome::write(&shapes.timeline(), out),
        Conversion::Hatchet => hatchet::write(&shapes.call_tree(), out),
    }
}
