//! Hatchet's literal form: a list with one root of frames, each with its metrics and children.
//!
//! ```json
//! [{"frame": {"name": "profile", "type": "root"}, "metrics": {"gpu_ns": 0, …}, "children": [
//!   {"frame": {"name": "step", "type": "scope"}, "metrics": {"gpu_ns": 0, "cpu_ns": 1200, …}, "children": […]}]}]
//! ```
//!
//! Three traps. Hatchet takes the metrics of the first node for those of all, so the root names every one. A column
//! without `(inc)` in its name is exclusive to it, so values are self values; it adds them up itself. And a metric that
//! is a text breaks arithmetic between two profiles, so there is none.

use std::io;

use serde_json::{Map, Value, json};

use crate::calltree::{CallTree, Frame};
use crate::label::visible;

pub(super) fn write(tree: &CallTree, out: &mut dyn io::Write) -> io::Result<()> {
    let children = tree.children();
    let mut names = Vec::new();
    for name in tree.whole().iter().chain(tree.other()) {
        names.push(visible(name));
    }
    // Frames that are open, with what of their children is still to come. No recursion: a tree may be deep.
    let mut open: Vec<std::slice::Iter<'_, usize>> = Vec::new();
    let begin = |out: &mut dyn io::Write, frame: &Frame| {
        let name = json!({"name": visible(&frame.name), "type": frame.kind});
        let metrics = Value::Object(metrics(frame, &names));
        write!(out, "{{\"frame\": {name}, \"metrics\": {metrics}, \"children\": [")
    };
    out.write_all(b"[")?;
    if let (Some(root), Some(inside)) = (tree.frames().first(), children.first()) {
        begin(out, root)?;
        open.push(inside.iter());
    }
    let mut is_first = true;
    while let Some(rest) = open.last_mut() {
        let next = rest
            .next()
            .and_then(|place| Some((tree.frames().get(*place)?, children.get(*place)?)));
        match next {
            Some((frame, inside)) => {
                out.write_all(if is_first { b"\n" } else { b",\n" })?;
                begin(out, frame)?;
                open.push(inside.iter());
                is_first = true;
            }
            None => {
                open.pop();
                out.write_all(b"]}")?;
                is_first = false;
            }
        }
    }
    out.write_all(b"]\n")
}

fn metrics(frame: &Frame, names: &[String]) -> Map<String, Value> {
    let whole = frame.whole.iter().map(|value| json!(value));
    let other = frame.other.iter().map(|value| json!(value));
    names.iter().cloned().zip(whole.chain(other)).collect()
}
