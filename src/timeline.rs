//! The shape that tools for timelines want: groups of tracks with slices, in integers of ns.
//!
//! Made from a live profile, and from the traces of one side or two. Slices are made when they are asked for, because a
//! minute of GPU work has a million of them. Slices of a track may overlap in any way; how a format shows that is its
//! own affair.

use std::sync::Arc;

/// A value that belongs to a slice.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(Arc<str>),
    /// A whole number.
    Whole(u64),
    /// Another number.
    Number(f64),
    /// Nothing was measured, for this reason.
    Absent(&'static str),
    /// Several values.
    List(Vec<Value>),
    /// Several values by name.
    Named(Vec<(Arc<str>, Value)>),
}

/// A slice of a track: `[start, start + length)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Its name.
    pub name: Arc<str>,
    /// What kind of thing it is (`scope`, `gpu`, …).
    pub category: &'static str,
    /// First ns, from the beginning of the timeline.
    pub start_ns: u64,
    /// Its length in ns.
    pub length_ns: u64,
    /// What else is known of it, in this order.
    pub arguments: Vec<(&'static str, Value)>,
    /// Joins it to the slice of another track with the same number: a launch to its run.
    pub flow: Option<u64>,
}

impl Slice {
    /// First ns after it.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }
}

/// Where slices come from.
pub trait Slices {
    /// First ns and length of each slice, by start.
    fn spans(&self) -> Box<dyn Iterator<Item = (u64, u64)> + '_>;
    /// The slice at a place in that order.
    fn slice(&self, place: usize) -> Option<Slice>;
}

impl Slices for Vec<Slice> {
    fn spans(&self) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
        Box::new(self.iter().map(|slice| (slice.start_ns, slice.length_ns)))
    }

    fn slice(&self, place: usize) -> Option<Slice> {
        self.get(place).cloned()
    }
}

/// A row of slices.
pub struct Track<'a> {
    /// Its name.
    pub name: String,
    /// Whether a slice that lies inside another is a part of it, as with calls; what the GPU runs at the same time is
    /// not.
    pub nests: bool,
    /// Its slices.
    pub slices: Box<dyn Slices + 'a>,
}

/// Tracks that belong together: the host, the GPU; a trial.
pub struct TrackGroup<'a> {
    /// Its name.
    pub name: String,
    /// Its tracks.
    pub tracks: Vec<Track<'a>>,
}

/// Facts about a file as a whole, in this order: what 0 was on the clock that times come from, what was left out.
pub type About = Vec<(Arc<str>, Value)>;

/// Everything that happened.
pub struct Timeline<'a> {
    /// What is known of all of it.
    pub about: About,
    /// Groups of tracks.
    pub groups: Vec<TrackGroup<'a>>,
}
