//! Which rows of a timing table count, and why each of the others does not.

use std::collections::{BTreeMap, BTreeSet};

use super::plural;
use super::process::Selection;
use crate::model::{CrossCheck, EncoderId, LeftOut, NameId, Nanos, Note, Reason, Timing};
use crate::recording::{Measured, TimingTable};
use crate::tables::{ProcessId, Texts};

/// One tick of the 24 MHz GPU clock, rounded up: as far apart as two truncated readings of one moment can be.
const TICK: u64 = 42;

/// Places of rows in a timing table: a few bytes each, where a copy of the rows would double the memory.
pub(super) type Counted = Vec<u32>;

/// The rows of a process, before those that repeat others are left out.
pub(super) struct OfProcess {
    pub(super) rows: Counted,
    /// Sum of the durations in ns; `None` beyond 64 bits.
    pub(super) total: Option<u64>,
    /// Whether a row lies below another, so that it may repeat one.
    nested: bool,
}

fn row_at(table: &TimingTable, at: u32) -> Option<&Measured> {
    usize::try_from(at).ok().and_then(|at| table.measured.get(at))
}

pub(super) fn rows_of<'a>(table: &'a TimingTable, counted: &'a Counted) -> impl Iterator<Item = &'a Measured> {
    counted.iter().filter_map(|at| row_at(table, *at))
}

/// Submissions of the process with usable times; the rest is counted.
pub(super) fn of_process(
    table: &TimingTable,
    selection: &Selection,
    timing: Timing,
    recorded: Option<Nanos>,
    left_out: &mut LeftOut,
    notes: &mut Vec<Note>,
) -> OfProcess {
    let rows = if timing == Timing::Points { 2 } else { 1 };
    let mut of_process = OfProcess {
        rows: Vec::with_capacity(table.measured.len()),
        total: Some(0),
        nested: false,
    };
    let mut count = |at: u32, measured: &Measured| {
        of_process.rows.push(at);
        let duration = measured.submission.duration.0;
        of_process.total = of_process.total.and_then(|total| total.checked_add(duration));
        of_process.nested |= measured.depth > 0;
    };
    let mut late = 0u64;
    for (at, measured) in (0u32..).zip(&table.measured) {
        let chosen = selection.has(measured.process);
        let duration = Some(measured.submission.duration);
        // The recording's length is written in whole µs.
        let after = recorded.is_some_and(|length| measured.submission.end().0 > length.0.saturating_add(1_000));
        let reason = if after {
            late += u64::from(chosen);
            Reason::Invalid
        } else if selection.all {
            count(at, measured);
            continue;
        } else if !measured.mapped {
            Reason::NoMapping
        } else if measured.process.is_none() {
            Reason::NoProcess
        } else if !chosen {
            Reason::OtherProcess
        } else {
            count(at, measured);
            continue;
        };
        left_out.add(reason, rows, duration);
    }
    if late > 0 {
        notes.push(Note::warning(
            "ends_after_recording",
            format!(
                "{} of the process with an end after the recording, left out as invalid",
                plural(late, "submission")
            ),
        ));
    }
    of_process
}

/// Leaves out rows that repeat a shallower row of the same process, channel and encoder.
pub(super) fn without_nested(
    table: &TimingTable,
    texts: &Texts,
    of_process: OfProcess,
    timing: Timing,
    left_out: &mut LeftOut,
) -> Counted {
    let mut counted = of_process.rows;
    if timing == Timing::Points || !of_process.nested {
        return counted;
    }
    // One pid is one process, whatever the rows call it.
    type Key = (Option<Result<u32, ProcessId>>, NameId, EncoderId);
    let process = |id: ProcessId| texts.get_process(id).and_then(|process| process.pid).ok_or(id);
    let key = |measured: &Measured| -> Option<Key> {
        Some((
            measured.process.map(process),
            measured.submission.channel,
            measured.submission.encoder?,
        ))
    };
    let deep: BTreeSet<Key> = rows_of(table, &counted)
        .filter(|measured| measured.depth > 0)
        .filter_map(key)
        .collect();
    let mut groups: BTreeMap<Key, Counted> = BTreeMap::new();
    for at in &counted {
        if let Some(key) = row_at(table, *at).and_then(key).filter(|key| deep.contains(key)) {
            groups.entry(key).or_default().push(*at);
        }
    }
    let mut nested = BTreeSet::new();
    for group in groups.into_values() {
        mark_nested(table, group, &mut nested);
    }
    for measured in nested.iter().filter_map(|at| row_at(table, *at)) {
        left_out.add(Reason::Nested, 1, Some(measured.submission.duration));
    }
    counted.retain(|at| !nested.contains(at));
    counted
}

/// A row is nested when a row of less depth begins no later and ends no earlier. Depth by depth, with the latest
/// end among shallower rows up to a start kept in a Fenwick tree: n log n also when everything overlaps.
fn mark_nested(table: &TimingTable, mut group: Counted, nested: &mut BTreeSet<u32>) {
    let span = |at: u32| {
        row_at(table, at).map_or((0, 0, 0), |row| {
            (row.submission.start.0, row.submission.end().0, row.depth)
        })
    };
    let mut starts: Vec<u64> = group.iter().map(|at| span(*at).0).collect();
    starts.sort_unstable();
    starts.dedup();
    let rank = |start: u64| starts.partition_point(|other| *other < start) + 1;
    let mut latest = vec![0u64; starts.len() + 1];
    group.sort_by_key(|at| span(*at).2);
    for level in group.chunk_by(|a, b| span(*a).2 == span(*b).2) {
        for at in level {
            let (start, end, _) = span(*at);
            let (mut place, mut found) = (rank(start), 0);
            while place > 0 {
                found = found.max(latest.get(place).copied().unwrap_or(0));
                place &= place - 1;
            }
            // `found` is an end plus one, so that 0 means none.
            if found > end {
                nested.insert(*at);
            }
        }
        for at in level {
            let (start, end, _) = span(*at);
            let mut place = rank(start);
            while let Some(slot) = latest.get_mut(place) {
                *slot = (*slot).max(end + 1);
                place += place & place.wrapping_neg();
            }
        }
    }
}

/// Holds both timing tables against each other, by submission id.
pub(super) fn check(intervals: (&TimingTable, &Counted), points: (&TimingTable, &Counted)) -> CrossCheck {
    let sorted = |(table, counted): (&TimingTable, &Counted)| {
        let mut sorted: Vec<_> = rows_of(table, counted)
            .filter_map(|row| Some((row.submission.id?, row.submission.start.0, row.submission.duration.0)))
            .collect();
        sorted.sort_unstable();
        sorted
    };
    let (intervals, points) = (sorted(intervals), sorted(points));
    let (mut left, mut right) = (intervals.iter().peekable(), points.iter().peekable());
    let mut result = CrossCheck::default();
    let mut disputed = 0u64;
    loop {
        match (left.peek().copied(), right.peek().copied()) {
            (None, None) => break,
            (Some(a), Some(b)) if a.0 == b.0 => {
                if a.1.abs_diff(b.1) > TICK || (a.1 + a.2).abs_diff(b.1 + b.2) > TICK {
                    result.differ += 1;
                    disputed = disputed.saturating_add(a.2.max(b.2));
                } else {
                    result.both += 1;
                }
                left.next();
                right.next();
            }
            (Some(a), b) if b.is_none_or(|b| a.0 < b.0) => {
                result.only_intervals += 1;
                disputed = disputed.saturating_add(a.2);
                left.next();
            }
            (_, Some(b)) => {
                result.only_points += 1;
                disputed = disputed.saturating_add(b.2);
                right.next();
            }
            (Some(_), None) => break,
        }
    }
    result.disputed = Nanos(disputed);
    result
}
