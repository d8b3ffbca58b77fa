//! Chrome's trace events: complete slices on tracks, names of tracks, and flows from a launch to its run.
//!
//! ```json
//! {"ph": "M", "pid": 2, "tid": 1, "name": "thread_name", "args": {"name": "command buffers"}}
//! {"ph": "X", "pid": 2, "tid": 1, "name": "ffn", "cat": "gpu", "ts": 12.345, "dur": 7.042, "args": {…}}
//! ```
//!
//! Readers differ in what they accept, so: `pid` and `tid` are small integers, never texts; `ts` and `dur` are µs with
//! three decimals, written from integers of ns; the origin of the clock is taken off, and kept in `otherData`, because a
//! float has no room for it. Slices of one track must nest, so slices that overlap otherwise go to lanes of their own.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value as Json, json};

use super::json;
use super::lanes::Lanes;
use crate::label::visible;
use crate::timeline::{Slice, Timeline};

/// A slice that a flow begins or ends at: pid, tid, first ns.
type FlowEnd = (u32, u32, u64);

pub(super) fn write(timeline: &Timeline<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut left_out = 0u64;
    let mut first = true;
    let mut flows: BTreeMap<u64, Vec<FlowEnd>> = BTreeMap::new();
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
            let lanes = Lanes::of(track);
            left_out += lanes.left_out;
            for (name, lane) in lanes.named(track) {
                tid += 1;
                event(out, &named("thread_name", pid, tid, &name))?;
                for slice in lane.iter().filter_map(|place| track.slices.slice(*place)) {
                    event(out, &complete(&slice, pid, tid))?;
                    if let Some(flow) = slice.flow {
                        flows.entry(flow).or_default().push((pid, tid, slice.start_ns));
                    }
                }
            }
        }
    }
    // A flow begins in the group that comes first and ends in the later one.
    for (id, ends) in flows {
        if let [from, to, ..] = ends.as_slice() {
            event(out, &flow("s", id, *from))?;
            event(out, &flow("f", id, *to))?;
        }
    }
    let mut other = json::named(&timeline.about);
    other.insert("slices_left_out".to_owned(), json!(left_out));
    other.insert("writer".to_owned(), json!("trace-attr"));
    writeln!(out, "\n], \"otherData\": {}}}", Json::Object(other))
}

fn named(what: &str, pid: u32, tid: u32, name: &str) -> String {
    json!({"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": visible(name)}}).to_string()
}

/// ns as µs with exactly three decimals.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

fn complete(slice: &Slice, pid: u32, tid: u32) -> String {
    // Times are written by hand: a float would round them.
    format!(
        "{{\"ph\": \"X\", \"pid\": {pid}, \"tid\": {tid}, \"name\": {}, \"cat\": {}, \"ts\": {}, \"dur\": {}, \"args\": {}}}",
        json!(visible(&slice.name)),
        json!(slice.category),
        us(slice.start_ns),
        us(slice.length_ns),
        Json::Object(json::named(&slice.arguments))
    )
}

fn flow(phase: &str, id: u64, (pid, tid, at): FlowEnd) -> String {
    let binding = if phase == "f" { ", \"bp\": \"e\"" } else { "" };
    format!(
        "{{\"ph\": \"{phase}\"{binding}, \"id\": {id}, \"pid\": {pid}, \"tid\": {tid}, \"name\": \"launch\", \"cat\": \"launch\", \"ts\": {}}}",
        us(at)
    )
}
