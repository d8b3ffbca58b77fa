//! Chrome's trace events: complete slices on tracks, names of tracks, and flows from a launch to its run.
//!
//! ```json
//! {"ph": "M", "pid": 2, "tid": 1, "name": "thread_name", "args": {"name": "command buffers"}}
//! {"ph": "X", "pid": 2, "tid": 1, "name": "ffn", "cat": "gpu", "ts": 12.345, "dur": 7.042, "args": {…}}
//! ```
//!
//! Readers differ in what they accept, so: `pid` and `tid` are small integers, never texts; `ts` and `dur` are µs with
//! three decimals, written from integers of ns; the origin of the clock is taken off, and kept in `otherData`, because a
//! float has no room for it. Slices of one track must nest, so slices that overlap otherwise go to lanes of their own:
//! at most [`MOST_LANES`], and what needs more is counted, not drawn over another.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value as Json, json};

use crate::timeline::{Slice, Timeline, Track, Value};

/// Lanes of one track.
const MOST_LANES: usize = 64;

pub(super) fn write(timeline: &Timeline, out: &mut dyn io::Write) -> io::Result<()> {
    let mut left_out = 0u64;
    let mut first = true;
    out.write_all(b"{\"displayTimeUnit\": \"ns\", \"traceEvents\": [")?;
    let mut event = |out: &mut dyn io::Write, text: &str| {
        let before: &[u8] = if std::mem::take(&mut first) { b"\n" } else { b",\n" };
        out.write_all(before)?;
        out.write_all(text.as_bytes())
    };
    for (group, pid) in timeline.groups.iter().zip(1u32..) {
        event(out, &named("process_name", pid, 0, &group.name))?;
        let mut tid = 0u32;
        for track in &group.tracks {
            let (lanes, rest) = lanes(track);
            left_out += rest;
            for (lane, number) in lanes.iter().zip(1u32..) {
                tid += 1;
                let name = match number {
                    1 => track.name.clone(),
                    _ => format!("{} ({number})", track.name),
                };
                event(out, &named("thread_name", pid, tid, &name))?;
                for slice in lane {
                    event(out, &complete(slice, pid, tid))?;
                }
            }
        }
    }
    // A flow begins in the group that comes first and ends in the later one.
    for text in flows(timeline) {
        event(out, &text)?;
    }
    let other = json!({
        "origin_ns": timeline.origin_ns.to_string(),
        "slices_left_out": left_out,
        "writer": "trace-attr",
    });
    writeln!(out, "\n], \"otherData\": {other}}}")
}

fn named(what: &str, pid: u32, tid: u32, name: &str) -> String {
    json!({"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}).to_string()
}

/// ns as µs with exactly three decimals.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

fn complete(slice: &Slice, pid: u32, tid: u32) -> String {
    let arguments: Map<String, Json> = slice
        .arguments
        .iter()
        .map(|(name, value)| ((*name).to_owned(), of(value)))
        .collect();
    // Times are written by hand: a float would round them.
    format!(
        "{{\"ph\": \"X\", \"pid\": {pid}, \"tid\": {tid}, \"name\": {}, \"cat\": {}, \"ts\": {}, \"dur\": {}, \"args\": {}}}",
        json!(&*slice.name),
        json!(slice.category),
        us(slice.start_ns),
        us(slice.length_ns),
        Json::Object(arguments)
    )
}

fn of(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(&**text),
        // Integers that a double cannot hold are texts.
        Value::Whole(number) if *number > 1 << 53 => json!(number.to_string()),
        Value::Whole(number) => json!(number),
        Value::Number(number) => json!(number),
        Value::Absent(reason) => json!({ "absent": reason }),
        Value::List(values) => values.iter().map(of).collect(),
        Value::Named(values) => Json::Object(
            values
                .iter()
                .map(|(name, value)| (name.to_string(), of(value)))
                .collect(),
        ),
    }
}

/// Slices in lanes in which they nest, and how many found no lane.
fn lanes(track: &Track) -> (Vec<Vec<&Slice>>, u64) {
    let mut slices: Vec<&Slice> = track.slices.iter().collect();
    // A slice that holds another comes first.
    slices.sort_by_key(|slice| (slice.start_ns, std::cmp::Reverse(slice.length_ns)));
    let mut lanes: Vec<(Vec<&Slice>, Vec<u64>)> = Vec::new();
    let mut rest = 0;
    for slice in slices {
        let end = slice.start_ns.saturating_add(slice.length_ns);
        let fits = |(_, open): &mut (Vec<&Slice>, Vec<u64>)| {
            while open.last().is_some_and(|end| *end <= slice.start_ns) {
                open.pop();
            }
            open.last().is_none_or(|outer| end <= *outer)
        };
        match lanes.iter_mut().position(fits) {
            Some(place) => {
                if let Some((lane, open)) = lanes.get_mut(place) {
                    lane.push(slice);
                    open.push(end);
                }
            }
            None if lanes.len() < MOST_LANES => lanes.push((vec![slice], vec![end])),
            None => rest += 1,
        }
    }
    let lanes: Vec<Vec<&Slice>> = lanes.into_iter().map(|(lane, _)| lane).collect();
    (if lanes.is_empty() { vec![Vec::new()] } else { lanes }, rest)
}

/// Flow events of slices that share a number.
fn flows(timeline: &Timeline) -> Vec<String> {
    let mut ends: BTreeMap<u64, Vec<(u32, u32, u64)>> = BTreeMap::new();
    for (group, pid) in timeline.groups.iter().zip(1u32..) {
        let mut tid = 0;
        for track in &group.tracks {
            for lane in lanes(track).0 {
                tid += 1;
                for slice in lane {
                    if let Some(flow) = slice.flow {
                        ends.entry(flow).or_default().push((pid, tid, slice.start_ns));
                    }
                }
            }
        }
    }
    let one = |phase: &str, id: u64, (pid, tid, at): (u32, u32, u64)| {
        let binding = if phase == "f" { ", \"bp\": \"e\"" } else { "" };
        format!(
            "{{\"ph\": \"{phase}\"{binding}, \"id\": {id}, \"pid\": {pid}, \"tid\": {tid}, \"name\": \"launch\", \"cat\": \"launch\", \"ts\": {}}}",
            us(at)
        )
    };
    let pairs = ends.into_iter().filter_map(|(id, ends)| match ends.as_slice() {
        [from, to, ..] => Some([one("s", id, *from), one("f", id, *to)]),
        _ => None,
    });
    pairs.flatten().collect()
}
