//! The shape that tools for call trees want: frames with metrics, each value the frame's own.
//!
//! Made from a live profile, and by the same way from anything else that has a tree. Values are *self* values at every
//! frame, so that a reader can add them up; what a frame lacks is 0 of it.

use std::sync::Arc;

/// A metric of every frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Its name, with its unit at the end (`gpu_ns`).
    pub name: Arc<str>,
    /// Whether its values are whole numbers.
    pub whole: bool,
}

/// A tree of frames under one root.
#[derive(Debug, Clone, PartialEq)]
pub struct CallTree {
    /// Metrics, in the order of [`Frame::own`].
    pub metrics: Vec<Metric>,
    /// The root: it stands for all, and has nothing of its own.
    pub root: Frame,
}

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Its name.
    pub name: Arc<str>,
    /// What kind of thing it is (`scope`, `gpu`, …).
    pub kind: &'static str,
    /// Own values, one for each metric.
    pub own: Vec<f64>,
    /// Frames inside, in the order in which they were first seen.
    pub children: Vec<Frame>,
}

impl Frame {
    /// A frame without values.
    pub fn new(name: Arc<str>, kind: &'static str, metrics: usize) -> Frame {
        Frame {
            name,
            kind,
            own: vec![0.0; metrics],
            children: Vec::new(),
        }
    }
}
