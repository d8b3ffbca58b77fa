//! The shape that tools for call trees want: frames with metrics, each value the frame's own.
//!
//! Made from a live profile, and from the traces of one side or two. Values are *self* values at every frame, so that a
//! reader can add them up; what a frame lacks is 0 of it. Frames stand in one list, each behind the one that it is in, so
//! that no depth is too deep.

use std::collections::HashMap;
use std::sync::Arc;

use crate::timeline::About;

/// The place of a frame in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(usize);

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The frame that it is in; the root is in none.
    pub parent: Option<FrameId>,
    /// Its name.
    pub name: Arc<str>,
    /// What kind of thing it is (`scope`, `gpu`, `phase`, …).
    pub kind: &'static str,
    /// Own values of the whole metrics, in their order.
    pub whole: Vec<u64>,
    /// Own values of the other metrics, in their order.
    pub other: Vec<f64>,
}

/// A tree of frames under one root.
#[derive(Debug, Clone, PartialEq)]
pub struct CallTree {
    /// What is known of all of it.
    pub about: About,
    whole: Vec<Arc<str>>,
    other: Vec<Arc<str>>,
    frames: Vec<Frame>,
    /// Frames by the one that they are in, name and kind.
    index: HashMap<(FrameId, Arc<str>, &'static str), FrameId>,
}

impl CallTree {
    /// The root: it stands for all, and has nothing of its own.
    pub const ROOT: FrameId = FrameId(0);

    /// A tree of the root alone. Metrics have names with their unit at the end (`gpu_ns`); whole ones come first.
    pub fn new(root: &str, whole: Vec<Arc<str>>, other: Vec<Arc<str>>) -> CallTree {
        let root = Frame {
            parent: None,
            name: root.into(),
            kind: "root",
            whole: vec![0; whole.len()],
            other: vec![0.0; other.len()],
        };
        CallTree {
            about: About::new(),
            whole,
            other,
            frames: vec![root],
            index: HashMap::new(),
        }
    }

    /// Names of the metrics that are whole numbers.
    pub fn whole(&self) -> &[Arc<str>] {
        &self.whole
    }

    /// Names of the metrics that are other numbers.
    pub fn other(&self) -> &[Arc<str>] {
        &self.other
    }

    /// All frames: the root, and each behind the one that it is in.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The frame of that name and kind inside another, made if it is not there.
    pub fn child(&mut self, parent: FrameId, name: &Arc<str>, kind: &'static str) -> FrameId {
        let next = FrameId(self.frames.len());
        let id = *self.index.entry((parent, Arc::clone(name), kind)).or_insert(next);
        if id == next {
            self.frames.push(Frame {
                parent: Some(parent),
                name: Arc::clone(name),
                kind,
                whole: vec![0; self.whole.len()],
                other: vec![0.0; self.other.len()],
            });
        }
        id
    }

    /// Adds to a frame's own values.
    pub fn add(&mut self, frame: FrameId, whole: &[u64], other: &[f64]) {
        let Some(frame) = self.frames.get_mut(frame.0) else {
            return;
        };
        for (sum, value) in frame.whole.iter_mut().zip(whole) {
            *sum = sum.saturating_add(*value);
        }
        for (sum, value) in frame.other.iter_mut().zip(other) {
            *sum += value;
        }
    }

    /// Adds all that another tree holds to a frame: metrics of the same name are the same.
    pub fn graft(&mut self, under: FrameId, tree: &CallTree) {
        fn places(own: &[Arc<str>], of: &[Arc<str>]) -> Vec<Option<usize>> {
            own.iter()
                .map(|name| of.iter().position(|other| other == name))
                .collect()
        }
        fn moved<T: Copy + Default>(places: &[Option<usize>], values: &[T]) -> Vec<T> {
            let value = |place: &Option<usize>| values.get((*place)?).copied();
            places.iter().map(|place| value(place).unwrap_or_default()).collect()
        }
        let whole = places(&self.whole, &tree.whole);
        let other = places(&self.other, &tree.other);
        let mut ids: Vec<FrameId> = Vec::with_capacity(tree.frames.len());
        for frame in &tree.frames {
            let parent = frame.parent.and_then(|parent| ids.get(parent.0).copied());
            let id = parent.map_or(under, |parent| self.child(parent, &frame.name, frame.kind));
            self.add(id, &moved(&whole, &frame.whole), &moved(&other, &frame.other));
            ids.push(id);
        }
    }

    /// The frame at a place.
    pub fn get(&self, id: FrameId) -> Option<&Frame> {
        self.frames.get(id.0)
    }

    /// From the frame itself outwards; the root is not among them.
    pub fn outwards<'t>(&'t self, frame: &'t Frame) -> impl Iterator<Item = &'t Frame> {
        let outer = |frame: &&'t Frame| self.get(frame.parent?);
        std::iter::successors(Some(frame), outer).filter(|frame| frame.parent.is_some())
    }

    /// For each frame, the places of those directly inside, in the order in which they were first seen.
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.frames.len()];
        for (place, frame) in self.frames.iter().enumerate() {
            if let Some(inside) = frame.parent.and_then(|parent| children.get_mut(parent.0)) {
                inside.push(place);
            }
        }
        children
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_in_a_tree_keeps_its_values_under_their_names() {
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        let mut inner = CallTree::new("inner", names(&["calls", "gpu_ns"]), names(&["flops"]));
        let scope = inner.child(CallTree::ROOT, &"scope".into(), "scope");
        let work = inner.child(scope, &"work".into(), "gpu");
        inner.add(work, &[2, 70], &[8.0]);
        let mut outer = CallTree::new("outer", names(&["gpu_ns", "submissions"]), names(&["bytes", "flops"]));
        let side = outer.child(CallTree::ROOT, &"side".into(), "side");
        outer.graft(side, &inner);
        outer.graft(side, &inner);
        let last = outer.frames().last().unwrap();
        assert_eq!(
            (last.whole.as_slice(), last.other.as_slice()),
            (&[140, 0][..], &[0.0, 16.0][..])
        );
        let path: Vec<&str> = outer.outwards(last).map(|frame| &*frame.name).collect();
        assert_eq!(path, ["work", "scope", "side"]);
        assert_eq!(outer.frames().len(), 4, "the same frame is there once");
    }
}
