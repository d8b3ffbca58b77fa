//! A timing table: the submissions of each process, and what their rows say beside them.
//!
//! A recording has the rows of every process of the machine, and a trace those of one. So they are kept apart as they come:
//! what a trace takes is there as it is, with what has to be known of all of it. Beside its submission a row says the same
//! few things of GPU and lane by the million: each of these is kept once, as a [`Provenance`], and a row has its place. In
//! which order rows of different processes came is not kept, since a trace is in the order of time.

use std::fmt;

use hashbrown::HashMap;

use crate::model::{EncoderId, LeftOut, NameId, Submission, SubmissionId, Timestamp};
use crate::tables::{ProcessId, Renumbered};

/// A timing table: rows = 2 × or 1 × measured + left out.
#[derive(Clone, Default)]
pub struct TimingTable {
    /// Rows of the table.
    pub rows: u64,
    /// Rows that never became a submission.
    pub left_out: LeftOut,
    /// A submission id column was there.
    pub has_ids: bool,
    /// In the order in which they were met.
    processes: Vec<ProcessRows>,
    /// Their places.
    index: HashMap<Option<ProcessId>, usize>,
    /// The place of the one that was met last.
    last: usize,
}

/// A submission of any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Its times, ids and (for intervals) the label of its own row.
    pub submission: Submission,
    /// Its process; `None`: the trace does not say.
    pub process: Option<ProcessId>,
    /// What else its row says.
    pub provenance: Provenance,
}

/// Where a submission ran, and whether that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// GPU name.
    pub gpu: Option<NameId>,
    /// Lane.
    pub depth: u32,
    /// Whether the submission map knows it; always true for intervals.
    pub mapped: bool,
}

/// The rows of one process.
#[derive(Clone, Default)]
pub struct ProcessRows {
    process: Option<ProcessId>,
    submissions: Vec<Submission>,
    places: Vec<u32>,
    provenances: Vec<ProvenanceRows>,
    /// The places of provenances.
    index: HashMap<Provenance, u32>,
    fingerprint: u64,
    last_start: Option<Timestamp>,
    last_end: Option<Timestamp>,
    /// A start is not later than the one before.
    unordered: bool,
}

/// How many rows of a process have a provenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvenanceRows {
    /// What they have in common.
    pub provenance: Provenance,
    /// How many submissions.
    pub submissions: u64,
    /// Sum of their durations, in ns.
    pub total: u128,
}

impl TimingTable {
    /// Adds a submission; counting its row is the caller's.
    #[inline]
    pub fn push(&mut self, measured: Measured) {
        let Measured {
            submission,
            process,
            provenance,
        } = measured;
        // Most rows are of the process of the row before.
        if self.processes.get(self.last).is_none_or(|last| last.process != process) {
            self.last = *self.index.entry(process).or_insert_with(|| {
                self.processes.push(ProcessRows::of(process));
                self.processes.len() - 1
            });
        }
        if let Some(rows) = self.processes.get_mut(self.last) {
            rows.note(&submission, provenance);
            rows.submissions.push(submission);
        }
    }

    /// The rows of each process.
    pub fn processes(&self) -> &[ProcessRows] {
        &self.processes
    }

    /// The same, for good.
    pub fn into_processes(self) -> Vec<ProcessRows> {
        self.processes
    }

    /// Every submission, process by process.
    pub fn measured(&self) -> impl Iterator<Item = Measured> + '_ {
        self.processes.iter().flat_map(ProcessRows::measured)
    }

    /// Of the times and ids of all rows, in any order: two recordings hardly ever have the same.
    pub fn fingerprint(&self) -> u64 {
        let add = |sum: u64, rows: &ProcessRows| sum.wrapping_add(rows.fingerprint);
        self.processes.iter().fold(self.rows, add)
    }

    /// Joins every submission to the submission map: `mapping` gives it its ids, and tells its process and whether the map
    /// knows it.
    pub(super) fn map(&mut self, mut mapping: impl FnMut(&mut Submission) -> (Option<ProcessId>, bool)) {
        self.index.clear();
        for mut rows in std::mem::take(&mut self.processes) {
            let found: Vec<(Option<ProcessId>, bool)> = rows.submissions.iter_mut().map(&mut mapping).collect();
            let mut counts: HashMap<Option<ProcessId>, u64> = HashMap::new();
            for (process, _) in &found {
                *counts.entry(*process).or_default() += 1;
            }
            // Most are of one process: they stay where they are, where a copy would need as much again.
            let most = counts.iter().max_by_key(|(process, count)| (**count, **process));
            let most = most
                .map(|(process, _)| *process)
                .filter(|most| !self.index.contains_key(most));
            let mut stay = most.map(ProcessRows::of);
            let (mut found, mut at) = (found.into_iter(), 0);
            let mut submissions = std::mem::take(&mut rows.submissions);
            submissions.retain(|submission| {
                let before = rows.places.get(at).and_then(|place| rows.provenance(*place));
                at += 1;
                // There is one of each for every submission.
                let (Some((process, mapped)), Some(before)) = (found.next(), before) else {
                    return false;
                };
                let provenance = Provenance { mapped, ..before };
                match stay.as_mut().filter(|stay| stay.process == process) {
                    Some(stay) => stay.note(submission, provenance),
                    None => self.push(Measured {
                        submission: *submission,
                        process,
                        provenance,
                    }),
                }
                stay.as_ref().is_some_and(|stay| stay.process == process)
            });
            if let Some(mut stay) = stay {
                stay.submissions = submissions;
                self.index.insert(stay.process, self.processes.len());
                self.processes.push(stay);
            }
        }
    }

    /// Gives names, processes and labels the ids that they have among those of other files.
    pub(super) fn renumber(&mut self, ids: &Renumbered) {
        self.index.clear();
        for (rows, at) in self.processes.iter_mut().zip(0..) {
            rows.renumber(ids);
            self.index.insert(rows.process, at);
        }
    }
}

// What serves looking up is left out of both: it depends on the way here, and the rows do not.
impl fmt::Debug for TimingTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimingTable")
            .field("rows", &self.rows)
            .field("left_out", &self.left_out)
            .field("has_ids", &self.has_ids)
            .field("processes", &self.processes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProcessRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessRows")
            .field("process", &self.process)
            .field("submissions", &self.submissions)
            .field("places", &self.places)
            .field("provenances", &self.provenances)
            .field("fingerprint", &self.fingerprint)
            .field("last_end", &self.last_end)
            .field("unordered", &self.unordered)
            .finish_non_exhaustive()
    }
}

impl ProcessRows {
    fn of(process: Option<ProcessId>) -> Self {
        ProcessRows {
            process,
            ..ProcessRows::default()
        }
    }

    /// Takes note of one more submission, which the caller adds.
    #[inline]
    fn note(&mut self, submission: &Submission, provenance: Provenance) {
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(submission));
        self.unordered |= self.last_start.is_some_and(|last| last >= submission.start);
        self.last_start = Some(submission.start);
        self.last_end = self.last_end.max(Some(submission.end()));
        let last = self.places.last().copied();
        let place = match last.filter(|last| self.provenance(*last) == Some(provenance)) {
            Some(last) => last,
            None => *self.index.entry(provenance).or_insert_with(|| {
                self.provenances.push(ProvenanceRows {
                    provenance,
                    submissions: 0,
                    total: 0,
                });
                u32::try_from(self.provenances.len() - 1).unwrap_or(u32::MAX)
            }),
        };
        let rows = usize::try_from(place)
            .ok()
            .and_then(|place| self.provenances.get_mut(place));
        if let Some(rows) = rows {
            rows.submissions += 1;
            rows.total += u128::from(submission.duration.0);
        }
        self.places.push(place);
    }

    #[inline]
    fn provenance(&self, place: u32) -> Option<Provenance> {
        let rows = usize::try_from(place)
            .ok()
            .and_then(|place| self.provenances.get(place))?;
        Some(rows.provenance)
    }

    /// The process; `None`: the trace does not say.
    pub fn process(&self) -> Option<ProcessId> {
        self.process
    }

    /// The submissions, in file order.
    pub fn submissions(&self) -> &[Submission] {
        &self.submissions
    }

    /// The same, for good.
    pub fn into_submissions(self) -> Vec<Submission> {
        self.submissions
    }

    /// What the rows have in common, in the order in which it was met.
    pub fn provenances(&self) -> &[ProvenanceRows] {
        &self.provenances
    }

    /// For each submission its place among [`provenances`](Self::provenances).
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// The submission of this number, from 0, in file order.
    pub fn get(&self, number: usize) -> Option<Measured> {
        Some(Measured {
            submission: *self.submissions.get(number)?,
            process: self.process,
            provenance: self.provenance(*self.places.get(number)?)?,
        })
    }

    /// Every submission, in file order.
    pub fn measured(&self) -> impl Iterator<Item = Measured> + '_ {
        (0..self.submissions.len()).filter_map(|number| self.get(number))
    }

    /// When the last submission ends; `None` without one.
    pub fn last_end(&self) -> Option<Timestamp> {
        self.last_end
    }

    /// Whether each submission starts later than the one before.
    pub fn is_in_order(&self) -> bool {
        !self.unordered
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.process(&mut self.process);
        for submission in &mut self.submissions {
            ids.name([&mut submission.channel]);
            ids.label([&mut submission.label]);
        }
        self.index.clear();
        for (rows, place) in self.provenances.iter_mut().zip(0..) {
            ids.name(&mut rows.provenance.gpu);
            self.index.insert(rows.provenance, place);
        }
    }
}

/// A number that other times or ids hardly ever give (the mixing of splitmix64): two rows are told apart, and it is
/// reckoned for each row of a trace. Ids that are not there count as what exports write for them.
fn fingerprint(submission: &Submission) -> u64 {
    let id = submission.id.map_or(u64::MAX, SubmissionId::get);
    let encoder = submission.encoder.map_or(u64::MAX, EncoderId::get);
    [submission.start.0, submission.duration.0, id, encoder]
        .into_iter()
        .fold(0, |before, value| {
            let mixed = (before ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        })
}

#[cfg(test)]
impl Measured {
    /// A submission that has nothing but its times and an encoder.
    pub(crate) fn at(start: u64, ns: u64, process: Option<ProcessId>, provenance: Provenance) -> Self {
        Measured {
            submission: Submission {
                start: Timestamp(start),
                duration: crate::model::Nanos(ns),
                id: None,
                encoder: EncoderId::new(1),
                command_buffer: None,
                latency: None,
                channel: NameId(0),
                label: crate::model::LabelId(0),
            },
            process,
            provenance,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<Measured>> {
        let some = |end| proptest::option::of(0u32..end);
        let row = (0u64..50, any::<u64>(), some(3), some(2), 0u32..3, any::<bool>());
        let measured = |(start, ns, process, gpu, depth, mapped): (u64, u64, Option<u32>, Option<u32>, u32, bool)| {
            let provenance = Provenance {
                gpu: gpu.map(NameId),
                depth,
                mapped,
            };
            Measured::at(start, ns, process.map(ProcessId), provenance)
        };
        proptest::collection::vec(row.prop_map(measured), 0..40)
    }

    /// Holds everything that a table says of its rows against the rows.
    fn check(table: &TimingTable, rows: &[Measured]) {
        let mut processes: Vec<Option<ProcessId>> = rows.iter().map(|row| row.process).collect();
        processes.sort();
        processes.dedup();
        let mut found: Vec<Option<ProcessId>> = table.processes().iter().map(ProcessRows::process).collect();
        found.sort();
        assert_eq!(found, processes);
        for of in table.processes() {
            let own: Vec<Measured> = rows.iter().filter(|row| row.process == of.process()).copied().collect();
            assert_eq!(of.measured().collect::<Vec<_>>(), own);
            let starts = |row: &Measured| row.submission.start;
            assert_eq!(of.is_in_order(), own.is_sorted_by(|a, b| starts(a) < starts(b)));
            assert_eq!(of.last_end(), own.iter().map(|row| row.submission.end()).max());
            assert_eq!(of.places().len(), own.len());
            for known in of.provenances() {
                let alike = own.iter().filter(|row| row.provenance == known.provenance);
                let ns = alike.map(|row| u128::from(row.submission.duration.0));
                assert_eq!((known.submissions, known.total), (ns.clone().count() as u64, ns.sum()));
            }
            assert_eq!(
                of.provenances().iter().map(|known| known.submissions).sum::<u64>(),
                own.len() as u64
            );
        }
    }

    fn table(rows: &[Measured]) -> TimingTable {
        let mut table = TimingTable::default();
        rows.iter().for_each(|row| table.push(*row));
        table
    }

    proptest! {
        #[test]
        fn what_is_known_of_the_rows_of_a_process_is_what_they_say(mut rows in rows()) {
            let table = table(&rows);
            check(&table, &rows);
            // In any order they are the same recording.
            rows.reverse();
            prop_assert_eq!(table.fingerprint(), self::table(&rows).fingerprint());
        }

        #[test]
        fn the_map_says_whose_a_submission_is(
            mut rows in rows(), map in proptest::collection::vec((proptest::option::of(0u32..3), any::<bool>()), 40),
        ) {
            let mut table = table(&rows);
            // Process by process, as the table has them.
            rows.sort_by_key(|row| table.processes().iter().position(|of| of.process() == row.process));
            let mut of_map = map.iter().map(|(process, mapped)| (process.map(ProcessId), *mapped));
            let before = table.fingerprint();
            table.map(|submission| {
                submission.encoder = EncoderId::new(7);
                of_map.next().unwrap()
            });
            for (row, (process, mapped)) in rows.iter_mut().zip(&map) {
                row.submission.encoder = EncoderId::new(7);
                row.process = process.map(ProcessId);
                row.provenance.mapped = *mapped;
            }
            prop_assert_eq!(before == table.fingerprint(), rows.is_empty());
            for of in table.processes() {
                prop_assert_eq!(of.measured().count(), rows.iter().filter(|row| row.process == of.process()).count());
            }
            let counted: usize = table.processes().iter().map(|of| of.measured().count()).sum();
            prop_assert_eq!(counted, rows.len());
            // Of several processes before, rows that come together now are in the order of those processes but for the
            // ones that stayed: the rows themselves are the same.
            let key = |row: &Measured| (row.process, row.submission.start, row.submission.duration, row.provenance.depth);
            let mut found: Vec<Measured> = table.measured().collect();
            found.sort_by_key(key);
            rows.sort_by_key(key);
            prop_assert_eq!(found.iter().map(key).collect::<Vec<_>>(), rows.iter().map(key).collect::<Vec<_>>());
            check(&table, &table.measured().collect::<Vec<_>>());
        }
    }
}
