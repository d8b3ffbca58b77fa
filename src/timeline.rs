//! The shape that tools for timelines want: groups of tracks with slices, in integers of ns.
//!
//! Made from a live profile, and by the same way from anything else with times. Slices of a track may overlap in any
//! way; how a format shows that is its own affair.

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

/// A row of slices.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// Its name.
    pub name: String,
    /// Slices, by start.
    pub slices: Vec<Slice>,
}

/// Tracks that belong together: the host, the GPU; a side.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackGroup {
    /// Its name.
    pub name: String,
    /// Its tracks.
    pub tracks: Vec<Track>,
}

/// Everything that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// What 0 was on the clock that the times come from, ns.
    pub origin_ns: u64,
    /// Groups of tracks.
    pub groups: Vec<TrackGroup>,
}
