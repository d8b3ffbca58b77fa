//! Which rows of a timing table count, and why each of the others does not.

use std::collections::{BTreeMap, BTreeSet};

use super::plural;
use super::process::Selection;
use crate::model::{CrossCheck, EncoderId, LeftOut, NameId, Nanos, Note, Reason, Submission, Timing};
use crate::recording::{Measured, Provenance, TimingTable};
use crate::tables::{ProcessId, Texts};

/// One tick of the 24 MHz GPU clock, rounded up: as far apart as two truncated readings of one moment can be.
const TICK: u64 = 42;

/// Which submissions of a timing table count.
pub(super) enum Counted {
    /// Every one, as nearly always when one process was recorded.
    All,
    /// Those at these places, which rise: a few bytes each, where a copy of the rows would double the memory.
    At(Vec<u32>),
}

impl Counted {
    /// Their places.
    fn places(&self, table: &TimingTable) -> impl Iterator<Item = u32> + '_ {
        let (all, at): (_, &[u32]) = match self {
            Counted::All => (table.submissions().len(), &[]),
            Counted::At(places) => (0, places),
        };
        // There are no more places than 32 bits number.
        (0..u32::try_from(all).unwrap_or(u32::MAX)).chain(at.iter().copied())
    }

    /// They themselves.
    fn rows<'a>(&'a self, table: &'a TimingTable) -> impl Iterator<Item = Measured> + 'a {
        self.places(table).filter_map(|at| row_at(table, at))
    }

    /// What they have in common, with how many they are.
    pub(super) fn provenances(&self, table: &TimingTable) -> Vec<(Provenance, u64)> {
        let mut counts: Vec<(Provenance, u64)> = table.provenances().iter().map(|rows| (rows.provenance, 0)).collect();
        match self {
            Counted::All => {
                for ((_, count), rows) in counts.iter_mut().zip(table.provenances()) {
                    *count = rows.submissions;
                }
            }
            Counted::At(places) => {
                let of = table.provenance_places();
                for at in places.iter().filter_map(|at| of.get(usize::try_from(*at).ok()?)) {
                    if let Some((_, count)) = usize::try_from(*at).ok().and_then(|at| counts.get_mut(at)) {
                        *count += 1;
                    }
                }
            }
        }
        counts.retain(|(_, count)| *count > 0);
        counts
    }

    /// The submissions of a table, which are those that count from then on.
    pub(super) fn take(self, table: TimingTable) -> Vec<Submission> {
        let mut submissions = table.into_submissions();
        if let Counted::At(places) = self {
            let mut places = places.into_iter().peekable();
            let mut at = 0;
            // In the same memory, where a copy would need as much again.
            submissions.retain(|_| {
                at += 1;
                places.next_if_eq(&(at - 1)).is_some()
            });
            submissions.shrink_to_fit();
        }
        submissions
    }
}

/// The rows of a process, before those that repeat others are left out.
pub(super) struct OfProcess {
    pub(super) rows: Counted,
    /// Sum of the durations in ns; `None` beyond 64 bits.
    pub(super) total: Option<u64>,
    /// Whether a row lies below another, so that it may repeat one.
    nested: bool,
}

fn row_at(table: &TimingTable, at: u32) -> Option<Measured> {
    usize::try_from(at).ok().and_then(|at| table.at(at))
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
    let rows_each = if timing == Timing::Points { 2 } else { 1 };
    let mut provenances = table.provenances().to_vec();
    // The recording's length is written in whole µs.
    let latest = recorded.map_or(u64::MAX, |length| length.0.saturating_add(1_000));
    let is_late = |submission: &Submission| submission.end().0 > latest;
    let places = || table.submissions().iter().zip(table.provenance_places());
    let mut late = 0u64;
    let any_late = table.last_end().is_some_and(|end| end.0 > latest);
    for (submission, place) in places().filter(|(submission, _)| any_late && is_late(submission)) {
        left_out.add(Reason::Invalid, rows_each, Some(submission.duration));
        if let Some(rows) = usize::try_from(*place)
            .ok()
            .and_then(|place| provenances.get_mut(place))
        {
            rows.submissions -= 1;
            rows.total -= u128::from(submission.duration.0);
            late += u64::from(selection.has(rows.provenance.process));
        }
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
    let reason = |provenance: &Provenance| {
        if selection.all {
            None
        } else if !provenance.mapped {
            Some(Reason::NoMapping)
        } else if provenance.process.is_none() {
            Some(Reason::NoProcess)
        } else if !selection.has(provenance.process) {
            Some(Reason::OtherProcess)
        } else {
            None
        }
    };
    let reasons: Vec<Option<Reason>> = provenances.iter().map(|rows| reason(&rows.provenance)).collect();
    let (mut total, mut nested) = (0u128, false);
    for (rows, reason) in provenances
        .iter()
        .zip(&reasons)
        .filter(|(rows, _)| rows.submissions > 0)
    {
        match reason {
            Some(reason) => {
                let total = Nanos(u64::try_from(rows.total).unwrap_or(u64::MAX));
                left_out.add(*reason, rows_each * rows.submissions, Some(total));
            }
            None => {
                total += rows.total;
                nested |= rows.provenance.depth > 0;
            }
        }
    }
    let counts = |place: u32| usize::try_from(place).is_ok_and(|place| matches!(reasons.get(place), Some(None)));
    OfProcess {
        rows: if !any_late && reasons.iter().all(Option::is_none) {
            Counted::All
        } else {
            let rows = (0u32..).zip(places());
            let counted = rows.filter(|(_, (submission, place))| counts(**place) && !is_late(submission));
            Counted::At(counted.map(|(at, _)| at).collect())
        },
        total: u64::try_from(total).ok(),
        nested,
    }
}

/// Leaves out rows that repeat a shallower row of the same process, channel and encoder.
pub(super) fn without_nested(
    table: &TimingTable,
    texts: &Texts,
    of_process: OfProcess,
    timing: Timing,
    left_out: &mut LeftOut,
) -> Counted {
    let counted = of_process.rows;
    if timing == Timing::Points || !of_process.nested {
        return counted;
    }
    // One pid is one process, whatever the rows call it.
    type Key = (Option<Result<u32, ProcessId>>, NameId, EncoderId);
    let process = |id: ProcessId| texts.get_process(id).and_then(|process| process.pid).ok_or(id);
    let key = |measured: Measured| -> Option<Key> {
        Some((
            measured.provenance.process.map(process),
            measured.submission.channel,
            measured.submission.encoder?,
        ))
    };
    let deep: BTreeSet<Key> = counted
        .rows(table)
        .filter(|measured| measured.provenance.depth > 0)
        .filter_map(key)
        .collect();
    let mut groups: BTreeMap<Key, Vec<u32>> = BTreeMap::new();
    for at in counted.places(table) {
        if let Some(key) = row_at(table, at).and_then(key).filter(|key| deep.contains(key)) {
            groups.entry(key).or_default().push(at);
        }
    }
    let mut nested = BTreeSet::new();
    for group in groups.into_values() {
        mark_nested(table, group, &mut nested);
    }
    for measured in nested.iter().filter_map(|at| row_at(table, *at)) {
        left_out.add(Reason::Nested, 1, Some(measured.submission.duration));
    }
    if nested.is_empty() {
        return counted;
    }
    Counted::At(counted.places(table).filter(|at| !nested.contains(at)).collect())
}

/// A row is nested when a row of less depth begins no later and ends no earlier. Depth by depth, with the latest
/// end among shallower rows up to a start kept in a Fenwick tree: n log n also when everything overlaps.
fn mark_nested(table: &TimingTable, mut group: Vec<u32>, nested: &mut BTreeSet<u32>) {
    let span = |at: u32| {
        row_at(table, at).map_or((0, 0, 0), |row| {
            (row.submission.start.0, row.submission.end().0, row.provenance.depth)
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
        let mut sorted: Vec<_> = counted
            .rows(table)
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
