//! Which rows of a timing table count, and why each of the others does not.

use std::collections::{BTreeMap, BTreeSet};

use super::plural;
use super::process::Selection;
use crate::model::{CrossCheck, EncoderId, LeftOut, NameId, Nanos, Note, Reason, Submission, Timestamp, Timing};
use crate::recording::{Measured, ProcessRows, Provenance, TimingTable};
use crate::tables::{ProcessId, Texts};

/// One tick of the 24 MHz GPU clock, rounded up: as far apart as two truncated readings of one moment can be.
const TICK: u64 = 42;

/// Which submissions of a timing table count.
#[derive(Default)]
pub(super) struct Counted(Vec<Part>);

/// Those of one process.
struct Part {
    /// Its place among the table's processes.
    process: usize,
    /// Numbers of its submissions, which rise; `None`: every one, as nearly always. A few bytes each, where a copy of the
    /// rows would double the memory.
    numbers: Option<Vec<u32>>,
}

/// A row by the place of its process and its number there.
type Place = (usize, u32);

impl Part {
    fn numbers(&self, rows: &ProcessRows) -> impl Iterator<Item = u32> + '_ {
        let (all, some): (_, &[u32]) = match &self.numbers {
            None => (rows.submissions().len(), &[]),
            Some(numbers) => (0, numbers),
        };
        // What has no number of 32 bits would be more than any memory holds.
        (0..u32::try_from(all).unwrap_or(u32::MAX)).chain(some.iter().copied())
    }
}

fn row_at(table: &TimingTable, (process, number): Place) -> Option<Measured> {
    table.processes().get(process)?.get(usize::try_from(number).ok()?)
}

/// Submissions that count, with what is known of them.
pub(super) struct Taken {
    pub(super) submissions: Vec<Submission>,
    /// Whether each starts later than the one before.
    pub(super) in_order: bool,
    pub(super) last_end: Option<Timestamp>,
}

impl Counted {
    /// Process by process.
    fn rows<'a>(&'a self, table: &'a TimingTable) -> impl Iterator<Item = (Place, Measured)> + 'a {
        self.0.iter().flat_map(|part| {
            let rows = table.processes().get(part.process);
            let places = rows.into_iter().flat_map(|rows| part.numbers(rows));
            let places = places.map(|number| (part.process, number));
            places.filter_map(|place| Some((place, row_at(table, place)?)))
        })
    }

    /// Their submissions alone, which takes no look at their provenance.
    fn submissions<'a>(&'a self, table: &'a TimingTable) -> impl Iterator<Item = &'a Submission> {
        self.0.iter().flat_map(|part| {
            let rows = table.processes().get(part.process);
            rows.into_iter().flat_map(|rows| {
                let submission = |number| rows.submissions().get(usize::try_from(number).ok()?);
                part.numbers(rows).filter_map(submission)
            })
        })
    }

    /// How many of them each GPU has.
    pub(super) fn gpus(&self, table: &TimingTable) -> BTreeMap<NameId, u64> {
        let mut gpus = BTreeMap::new();
        let mut add = |provenance: Provenance, submissions: u64| {
            if let Some(gpu) = provenance.gpu {
                *gpus.entry(gpu).or_default() += submissions;
            }
        };
        for part in &self.0 {
            let Some(rows) = table.processes().get(part.process) else {
                continue;
            };
            match &part.numbers {
                None => rows
                    .provenances()
                    .iter()
                    .for_each(|known| add(known.provenance, known.submissions)),
                Some(numbers) => numbers
                    .iter()
                    .filter_map(|number| row_at(table, (part.process, *number)))
                    .for_each(|row| add(row.provenance, 1)),
            }
        }
        gpus
    }

    /// They themselves; the table's others are gone.
    pub(super) fn take(self, table: TimingTable) -> Taken {
        let mut processes: Vec<Option<ProcessRows>> = table.into_processes().into_iter().map(Some).collect();
        let mut taken = Taken {
            submissions: Vec::new(),
            in_order: true,
            last_end: None,
        };
        for part in self.0 {
            let Some(rows) = processes.get_mut(part.process).and_then(Option::take) else {
                continue;
            };
            let (mut in_order, mut last_end) = (rows.is_in_order(), rows.last_end());
            let mut submissions = rows.into_submissions();
            if let Some(numbers) = part.numbers {
                let mut numbers = numbers.into_iter().peekable();
                let mut number = 0;
                // In the same memory, where a copy would need as much again.
                submissions.retain(|_| {
                    number += 1;
                    numbers.next_if_eq(&(number - 1)).is_some()
                });
                in_order = submissions.is_sorted_by(|a, b| a.start < b.start);
                last_end = submissions.iter().map(Submission::end).max();
            }
            taken.last_end = taken.last_end.max(last_end);
            if taken.submissions.is_empty() {
                (taken.submissions, taken.in_order) = (submissions, in_order);
            } else if !submissions.is_empty() {
                taken.submissions.append(&mut submissions);
                taken.in_order = false;
            }
        }
        taken.submissions.shrink_to_fit();
        taken
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
    // The recording's length is written in whole µs.
    let latest = recorded.map_or(u64::MAX, |length| length.0.saturating_add(1_000));
    let (mut counted, mut total, mut nested) = (Counted::default(), 0u128, false);
    let mut late = 0u64;
    for (process, rows) in table.processes().iter().enumerate() {
        let chosen = selection.has(rows.process());
        let mut provenances = rows.provenances().to_vec();
        let is_late = |submission: &Submission| submission.end().0 > latest;
        let any_late = rows.last_end().is_some_and(|end| end.0 > latest);
        let all = rows.submissions().iter().zip(rows.places());
        for (submission, place) in all.filter(|(submission, _)| any_late && is_late(submission)) {
            left_out.add(Reason::Invalid, rows_each, Some(submission.duration));
            late += u64::from(chosen);
            if let Some(known) = usize::try_from(*place)
                .ok()
                .and_then(|place| provenances.get_mut(place))
            {
                known.submissions -= 1;
                known.total -= u128::from(submission.duration.0);
            }
        }
        for known in provenances.iter().filter(|known| known.submissions > 0) {
            let reason = if chosen {
                total += known.total;
                nested |= known.provenance.depth > 0;
                continue;
            } else if !known.provenance.mapped {
                Reason::NoMapping
            } else if rows.process().is_none() {
                Reason::NoProcess
            } else {
                Reason::OtherProcess
            };
            let total = Nanos(u64::try_from(known.total).unwrap_or(u64::MAX));
            left_out.add(reason, rows_each * known.submissions, Some(total));
        }
        if chosen {
            let in_time = || {
                let numbered = (0u32..).zip(rows.submissions());
                numbered
                    .filter(|(_, submission)| !is_late(submission))
                    .map(|(number, _)| number)
            };
            counted.0.push(Part {
                process,
                numbers: any_late.then(|| in_time().collect()),
            });
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
    OfProcess {
        rows: counted,
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
    let deep: BTreeSet<Key> = counted
        .rows(table)
        .filter(|(_, measured)| measured.provenance.depth > 0)
        .filter_map(|(_, measured)| key(&measured))
        .collect();
    let mut groups: BTreeMap<Key, Vec<Place>> = BTreeMap::new();
    for (place, measured) in counted.rows(table) {
        if let Some(key) = key(&measured).filter(|key| deep.contains(key)) {
            groups.entry(key).or_default().push(place);
        }
    }
    let mut nested = BTreeSet::new();
    for group in groups.into_values() {
        mark_nested(table, group, &mut nested);
    }
    for measured in nested.iter().filter_map(|place| row_at(table, *place)) {
        left_out.add(Reason::Nested, 1, Some(measured.submission.duration));
    }
    for part in &mut counted.0 {
        let process = part.process;
        let mut own = nested.range((process, 0)..=(process, u32::MAX)).peekable();
        if let (Some(_), Some(rows)) = (own.peek(), table.processes().get(process)) {
            let others = part
                .numbers(rows)
                .filter(|number| own.next_if_eq(&&(process, *number)).is_none());
            part.numbers = Some(others.collect());
        }
    }
    counted
}

/// A row is nested when a row of less depth begins no later and ends no earlier. Depth by depth, with the latest
/// end among shallower rows up to a start kept in a Fenwick tree: n log n also when everything overlaps.
fn mark_nested(table: &TimingTable, mut group: Vec<Place>, nested: &mut BTreeSet<Place>) {
    let span = |at: Place| {
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

/// Id, start and duration.
type Timed = (u64, u64, u64);

/// Submissions by their ids: as they come, when they come so, as they mostly do.
enum ById<I> {
    AsTheyCome(I),
    Sorted(std::vec::IntoIter<Timed>),
}

impl<'a> ById<Box<dyn Iterator<Item = Timed> + 'a>> {
    fn new((table, counted): (&'a TimingTable, &'a Counted)) -> Self {
        let timed = move || {
            let submissions = counted.submissions(table);
            submissions.filter_map(|row| Some((row.id?.get(), row.start.0, row.duration.0)))
        };
        if timed().is_sorted() {
            return ById::AsTheyCome(Box::new(timed()));
        }
        let mut sorted: Vec<Timed> = timed().collect();
        sorted.sort_unstable();
        ById::Sorted(sorted.into_iter())
    }
}

impl<I: Iterator<Item = Timed>> Iterator for ById<I> {
    type Item = Timed;

    fn next(&mut self) -> Option<Timed> {
        match self {
            ById::AsTheyCome(timed) => timed.next(),
            ById::Sorted(timed) => timed.next(),
        }
    }
}

/// Holds both timing tables against each other, by submission id.
pub(super) fn check(intervals: (&TimingTable, &Counted), points: (&TimingTable, &Counted)) -> CrossCheck {
    let (mut left, mut right) = (ById::new(intervals).peekable(), ById::new(points).peekable());
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Process;

    /// Start, duration, process, GPU, lane, whether the map knows it.
    type Row = (u64, u64, Option<u32>, Option<u32>, u32, bool);

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let some = |end: u32| proptest::option::of(0..end);
        let start = prop_oneof![0u64..30, 0u64..5_000];
        let row = (start, 0u64..2_000, some(3), some(2), 0u32..2, any::<bool>());
        // The map says whose what it knows is.
        let row = row.prop_map(|(start, ns, process, gpu, depth, mapped)| {
            (start, ns, process, gpu, depth, mapped || process.is_some())
        });
        proptest::collection::vec(row, 0..40)
    }

    fn measured(row: &Row) -> Measured {
        let (start, ns, process, gpu, depth, mapped) = *row;
        let provenance = Provenance {
            gpu: gpu.map(NameId),
            depth,
            mapped,
        };
        Measured::at(start, ns, process.map(ProcessId), provenance)
    }

    proptest! {
        /// What one look at each row gives, in the order in which the reasons are told.
        #[test]
        fn every_row_counts_or_has_its_reason(
            rows in rows(), chosen in proptest::collection::btree_set(0u32..3, 0..3), all in any::<bool>(),
            recorded in proptest::option::of(0u64..6_000), points in any::<bool>(),
        ) {
            let timing = if points { Timing::Points } else { Timing::Intervals };
            let mut table = TimingTable::default();
            rows.iter().for_each(|row| table.push(measured(row)));
            let selection = Selection {
                all,
                ids: chosen.into_iter().map(ProcessId).collect(),
                shown: Process { name: "p".to_owned(), pid: None },
                notes: Vec::new(),
                fingerprint: 0,
            };
            let (mut left_out, mut notes) = (LeftOut::default(), Vec::new());
            let found = of_process(&table, &selection, timing, recorded.map(Nanos), &mut left_out, &mut notes);

            let rows_each = if points { 2 } else { 1 };
            let (mut expected, mut counted, mut late) = (LeftOut::default(), Vec::new(), 0);
            for row in rows.iter().map(measured) {
                let is_late = recorded.is_some_and(|length| row.submission.end().0 > length + 1_000);
                let reason = if is_late {
                    late += u64::from(selection.has(row.process));
                    Reason::Invalid
                } else if all || row.process.is_some_and(|id| selection.ids.contains(&id)) {
                    counted.push(row);
                    continue;
                } else if !row.provenance.mapped {
                    Reason::NoMapping
                } else if row.process.is_none() {
                    Reason::NoProcess
                } else {
                    Reason::OtherProcess
                };
                expected.add(reason, rows_each, Some(row.submission.duration));
            }
            prop_assert_eq!(&left_out, &expected);
            prop_assert_eq!(notes.len(), usize::from(late > 0));
            let total = counted.iter().map(|row| row.submission.duration.0).sum::<u64>();
            prop_assert_eq!(found.total, Some(total));
            prop_assert_eq!(found.nested, counted.iter().any(|row| row.provenance.depth > 0));

            // A row that a shallower one of its process holds repeats it.
            let repeats = |row: &&Measured| {
                !points && counted.iter().any(|other| {
                    other.process == row.process
                        && other.provenance.depth < row.provenance.depth
                        && other.submission.start <= row.submission.start
                        && other.submission.end() >= row.submission.end()
                })
            };
            let nested = counted.iter().filter(repeats).count() as u64;
            let mut kept: Vec<Measured> = counted.iter().filter(|row| !repeats(row)).copied().collect();
            let texts = Texts::default();
            let rest = without_nested(&table, &texts, found, timing, &mut left_out);
            prop_assert_eq!(left_out.get(Reason::Nested).rows, nested);
            let mut gpus = BTreeMap::new();
            for gpu in kept.iter().filter_map(|row| row.provenance.gpu) {
                *gpus.entry(gpu).or_insert(0) += 1;
            }
            prop_assert_eq!(rest.gpus(&table), gpus);
            let mut taken = rest.take(table);
            prop_assert_eq!(taken.last_end, kept.iter().map(|row| row.submission.end()).max());
            if taken.in_order {
                prop_assert!(taken.submissions.is_sorted_by(|a, b| a.start < b.start));
            }
            let key = |submission: &Submission| (submission.start, submission.duration);
            taken.submissions.sort_by_key(key);
            kept.sort_by_key(|row| key(&row.submission));
            let kept: Vec<Submission> = kept.into_iter().map(|row| row.submission).collect();
            prop_assert_eq!(taken.submissions, kept);
        }
    }

    /// As a trace of one process mostly is: nothing has to be sorted.
    #[test]
    fn rows_of_one_process_that_come_in_their_order_stay_in_it() {
        let mut table = TimingTable::default();
        for start in [10, 20, 30] {
            table.push(measured(&(start, 5, Some(0), None, 0, true)));
            // Another process between them, in no order.
            table.push(measured(&(100 - start, 5, Some(1), None, 0, true)));
        }
        let one = |process, numbers| Counted(vec![Part { process, numbers }]).take(table.clone());
        assert!(one(0, None).in_order);
        assert!(!one(1, None).in_order);
        assert!(one(1, Some(vec![2])).in_order);
        assert_eq!(one(0, Some(vec![0, 1])).last_end, Some(Timestamp(25)));
    }
}
