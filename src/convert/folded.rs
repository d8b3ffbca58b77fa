//! Folded stacks: a line for each stack with GPU time of its own, frames from the outside in, integers of ns.
//!
//! ```text
//! hf2q;hf2q;decode.attn;compute;Compute 1204167
//! ```
//!
//! For a differential graph a line has two numbers, and its stack begins below side and process, which differ anyway:
//! first B's time, then A's, so that what takes longer in A is drawn as grown.
//!
//! The form has no escapes. `;` ends a frame and the last space a stack, and readers take a number before the last one
//! for a second column, so `Compute Command 0` would turn the graph differential: such a space becomes `_`, and `;`
//! becomes `:`. `#` at the start of a line makes it a comment, so it becomes `_` there.

use std::collections::BTreeMap;
use std::io;

use super::gpu_time;
use crate::calltree::{CallTree, Frame};
use crate::label::visible;

pub(super) fn write(tree: &CallTree, out: &mut dyn io::Write) -> io::Result<()> {
    let metric = gpu_time(tree);
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for frame in tree.frames() {
        let path: Vec<&Frame> = tree.outwards(frame).collect();
        let ns = frame.whole.get(metric).copied().unwrap_or(0);
        if ns > 0 && !path.is_empty() {
            let sum = stacks.entry(stack(&path)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    for (stack, ns) in stacks {
        writeln!(out, "{stack} {ns}")?;
    }
    Ok(())
}

pub(super) fn write_differential(tree: &CallTree, out: &mut dyn io::Write) -> io::Result<()> {
    let metric = gpu_time(tree);
    let mut sides = tree.frames().iter().filter(|frame| frame.kind == "side");
    let (Some(a), Some(b), None) = (sides.next(), sides.next(), sides.next()) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a difference needs two sides",
        ));
    };
    let mut stacks: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for frame in tree.frames() {
        let path: Vec<&Frame> = tree.outwards(frame).collect();
        let ns = frame.whole.get(metric).copied().unwrap_or(0);
        let [below @ .., _process, side] = path.as_slice() else {
            continue;
        };
        if ns == 0 || below.is_empty() {
            continue;
        }
        let sums = stacks.entry(stack(below)).or_default();
        let [of_b, of_a] = sums;
        let sum = if std::ptr::eq(*side, a) { of_a } else { of_b };
        debug_assert!(std::ptr::eq(*side, a) || std::ptr::eq(*side, b));
        *sum = sum.saturating_add(ns);
    }
    for (stack, [b, a]) in stacks {
        writeln!(out, "{stack} {b} {a}")?;
    }
    Ok(())
}

/// Frames, given from the inside out, as a stack.
fn stack(path: &[&Frame]) -> String {
    let frames: Vec<String> = path.iter().rev().map(|frame| folded(&frame.name)).collect();
    let stack = frames.join(";");
    match stack.strip_prefix('#') {
        Some(rest) => format!("_{rest}"),
        None => stack,
    }
}

/// A name that no reader takes for more than one frame.
fn folded(name: &str) -> String {
    let name = visible(name).replace(';', ":");
    let name = name.trim();
    if name.is_empty() {
        return "(no name)".to_owned();
    }
    match name.rsplit_once(' ') {
        Some((front, end)) if end.chars().all(|c| c.is_ascii_digit() || c == '.') => {
            // Of `x 1 2` no space may stay.
            format!("{}_{end}", folded(front))
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_frame_ends_in_a_number_of_its_own() {
        assert_eq!(folded("Compute Command 0"), "Compute Command_0");
        assert_eq!(folded("v 1.5 2"), "v_1.5_2");
        assert_eq!(folded("a;b\nc"), "a:b\\u{a}c");
        assert_eq!(folded("layer 3 attn"), "layer 3 attn");
        assert_eq!(folded(" 7 "), "7");
        assert_eq!(folded(""), "(no name)");
    }
}
