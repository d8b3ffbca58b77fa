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

use serde_json::{Map, Number, Value, json};

use crate::calltree::{CallTree, Frame, Metric};

pub(super) fn write(tree: &CallTree, out: &mut dyn io::Write) -> io::Result<()> {
    let literal = json!([node(&tree.root, &tree.metrics)]);
    serde_json::to_writer(&mut *out, &literal)?;
    out.write_all(b"\n")
}

fn node(frame: &Frame, metrics: &[Metric]) -> Value {
    let values = metrics.iter().zip(&frame.own).map(|(metric, value)| {
        let whole = || format!("{value:.0}").parse::<u64>().ok().map(Number::from);
        let number = if metric.whole {
            whole()
        } else {
            Number::from_f64(*value)
        };
        (metric.name.to_string(), number.map_or(Value::Null, Value::Number))
    });
    let children: Vec<Value> = frame.children.iter().map(|child| node(child, metrics)).collect();
    json!({
        "frame": {"name": &*frame.name, "type": frame.kind},
        "metrics": values.collect::<Map<_, _>>(),
        "children": children,
    })
}
