//! speedscope's own JSON: the call tree of each side as a sampled profile, each lane of the timeline as an evented one.
//!
//! ```json
//! {"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": [
//! {"type": "sampled", "name": "hf2q", "unit": "nanoseconds", "samples": [[0, 1, 2]], "weights": [1204167], …},
//! {"type": "evented", "name": "hf2q-1 · Compute", "events": [{"type": "O", "frame": 3, "at": 0}, …], …}],
//! "shared": {"frames": [{"name": "hf2q"}, …]}, …}
//! ```
//!
//! Frames are numbered as they are met, so their names come last. Events of a profile must nest and go forward in time:
//! slices that overlap otherwise are in lanes of their own, and those beyond the last lane are counted in the file's name,
//! the only text that is not about one profile.

use std::collections::HashMap;
use std::io;

use serde_json::json;

use super::gpu_time;
use super::lanes::{Edge, Lanes, edges};
use crate::calltree::{CallTree, Frame};
use crate::label::visible;
use crate::timeline::{Timeline, Value};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub(super) fn write(timeline: &Timeline<'_>, tree: &CallTree, out: &mut dyn io::Write) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut first = true;
    let mut next = |out: &mut dyn io::Write| {
        let before: &[u8] = if std::mem::take(&mut first) { b"\n" } else { b",\n" };
        out.write_all(before)
    };
    write!(out, "{{\"$schema\": {}, \"profiles\": [", json!(SCHEMA))?;
    for side in sides(tree) {
        let samples = samples(tree, side);
        if samples.is_empty() {
            continue;
        }
        next(out)?;
        sampled(&side.name, tree, &samples, &mut frames, out)?;
    }
    let mut left_out = 0;
    for group in &timeline.groups {
        for track in &group.tracks {
            let lanes = Lanes::of(track);
            left_out += lanes.left_out;
            for (name, lane) in lanes.named(track).filter(|(_, lane)| !lane.is_empty()) {
                next(out)?;
                let name = json!(visible(&format!("{} · {name}", group.name)));
                write!(
                    out,
                    "{{\"type\": \"evented\", \"name\": {name}, \"unit\": \"nanoseconds\", \"events\": ["
                )?;
                let (mut begin, mut end) = (None, 0);
                edges(track, lane, |edge| {
                    let (kind, slice, at) = match edge {
                        Edge::Begin(slice) => ("O", slice, slice.start_ns),
                        Edge::End(slice) => ("C", slice, slice.end_ns()),
                    };
                    let before = if begin.is_none() { "" } else { "," };
                    begin.get_or_insert(at);
                    end = at;
                    let frame = frames.number(&slice.name);
                    write!(
                        out,
                        "{before}{{\"type\": \"{kind}\", \"frame\": {frame}, \"at\": {at}}}"
                    )
                })?;
                write!(out, "], \"startValue\": {}, \"endValue\": {end}}}", begin.unwrap_or(0))?;
            }
        }
    }
    out.write_all(b"],\n\"shared\": {\"frames\": [")?;
    for (place, name) in frames.names.iter().enumerate() {
        let before = if place == 0 { "" } else { "," };
        write!(out, "{before}{{\"name\": {}}}", json!(name))?;
    }
    let mut name = sides(tree).map(|side| &*side.name).collect::<Vec<_>>().join(" / ");
    for (fact, value) in &tree.about {
        if let Value::Whole(number) = value {
            name += &format!(" · {number} {}", fact.replace('_', " "));
        }
    }
    if left_out > 0 {
        name += &format!(" · {left_out} slices left out");
    }
    writeln!(
        out,
        "]}},\n\"name\": {}, \"activeProfileIndex\": 0, \"exporter\": {}}}",
        json!(visible(&name)),
        json!(concat!("trace-attr@", env!("CARGO_PKG_VERSION")))
    )
}

/// Names of frames by their numbers.
#[derive(Default)]
struct Frames {
    numbers: HashMap<String, usize>,
    names: Vec<String>,
}

impl Frames {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len();
        self.numbers.insert(name.to_owned(), number);
        self.names.push(visible(name));
        number
    }
}

/// Frames of sides; the root, when there are none.
fn sides(tree: &CallTree) -> impl Iterator<Item = &Frame> {
    let sided = tree.frames().iter().any(|frame| frame.kind == "side");
    let wanted = if sided { "side" } else { "root" };
    tree.frames().iter().filter(move |frame| frame.kind == wanted)
}

/// Frames at or below a side with GPU time of their own, and the time.
fn samples<'t>(tree: &'t CallTree, side: &'t Frame) -> Vec<(&'t Frame, u64)> {
    let metric = gpu_time(tree);
    let all = side.parent.is_none();
    let inside = |frame: &&Frame| all || tree.outwards(frame).any(|outer| std::ptr::eq(outer, side));
    let own = |frame: &'t Frame| frame.whole.get(metric).map(|ns| (frame, *ns));
    let frames = tree.frames().iter().filter(inside).filter_map(own);
    frames.filter(|(_, ns)| *ns > 0).collect()
}

fn sampled(
    name: &str,
    tree: &CallTree,
    samples: &[(&Frame, u64)],
    frames: &mut Frames,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let total = samples.iter().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
    let name = json!(visible(name));
    write!(
        out,
        "{{\"type\": \"sampled\", \"name\": {name}, \"unit\": \"nanoseconds\", \"startValue\": 0, \"endValue\": {total}, \"samples\": ["
    )?;
    for (place, (frame, _)) in samples.iter().enumerate() {
        let mut stack: Vec<usize> = tree.outwards(frame).map(|frame| frames.number(&frame.name)).collect();
        stack.reverse();
        let before = if place == 0 { "" } else { "," };
        write!(out, "{before}{}", json!(stack))?;
    }
    let weights: Vec<u64> = samples.iter().map(|(_, ns)| *ns).collect();
    write!(out, "], \"weights\": {}}}", json!(weights))
}
