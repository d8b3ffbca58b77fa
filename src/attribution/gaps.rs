//! Time between submissions: the complement of the busy union inside the window.

use crate::model::{Nanos, Timestamp, Trace};

/// Idle stretches of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gaps {
    /// Every band, shortest first.
    pub bands: Vec<GapBand>,
    /// The longest, longest first.
    pub longest: Vec<Gap>,
}

/// Gaps of similar length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GapBand {
    /// Band name.
    pub key: String,
    /// How many.
    pub count: u64,
    /// Their sum.
    pub idle: Nanos,
}

/// One idle stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// First idle ns.
    pub start: Timestamp,
    /// Length.
    pub length: Nanos,
    /// Phase of the submission that ended last before it; `None` at the window's start.
    pub after: Option<String>,
    /// Phase of the submission that begins after it; `None` at the window's end.
    pub before: Option<String>,
}

/// Idle stretches of the window and the `slowest` longest of them.
pub fn gaps(_trace: &Trace, _longest: usize) -> Gaps {
    Gaps::default()
}
