//! A timing table: its submissions, and what their rows say of whose they are.
//!
//! Rows come by the million, and say the same few things of process, GPU and lane: each of these is kept once, as a
//! [`Provenance`] with the sums of its rows, and a submission has its place. So which rows count, and how much time the
//! others have, is asked once for each provenance; and the submissions stand in memory as a trace has them.

use hashbrown::HashMap;

use crate::model::{EncoderId, LeftOut, NameId, Submission, SubmissionId, Timestamp};
use crate::tables::{ProcessId, Renumbered};

/// A timing table: rows = 2 × or 1 × measured + left out.
#[derive(Debug, Clone, Default)]
pub struct TimingTable {
    /// Rows of the table.
    pub rows: u64,
    /// Rows that never became a submission.
    pub left_out: LeftOut,
    /// A submission id column was there.
    pub has_ids: bool,
    /// With a usable start and duration, in file order.
    submissions: Vec<Submission>,
    /// For each of them its place among `provenances`.
    provenance: Vec<u32>,
    provenances: Vec<Rows>,
    index: HashMap<Provenance, u32>,
    shape: Shape,
}

/// A submission of any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Its times, ids and (for intervals) the label of its own row.
    pub submission: Submission,
    /// What else its row says.
    pub provenance: Provenance,
}

/// Whose a submission is, and where it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// Its process; `None`: the trace does not say.
    pub process: Option<ProcessId>,
    /// GPU name.
    pub gpu: Option<NameId>,
    /// Lane.
    pub depth: u32,
    /// Whether the submission map knows it; always true for intervals.
    pub mapped: bool,
}

/// The rows of one provenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// What they have in common.
    pub provenance: Provenance,
    /// How many submissions.
    pub submissions: u64,
    /// Sum of their durations, in ns.
    pub total: u128,
}

/// What is known of all submissions together.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    fingerprint: u64,
    last_start: Option<Timestamp>,
    last_end: Option<Timestamp>,
    /// One does not start later than the one before.
    unordered: bool,
}

impl Shape {
    #[inline]
    fn add(&mut self, submission: &Submission) {
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(submission));
        self.unordered |= self.last_start.is_some_and(|last| last >= submission.start);
        self.last_start = Some(submission.start);
        self.last_end = self.last_end.max(Some(submission.end()));
    }
}

impl TimingTable {
    /// Adds a submission; counting its row is the caller's.
    #[inline]
    pub fn push(&mut self, measured: Measured) {
        let Measured { submission, provenance } = measured;
        self.shape.add(&submission);
        let place = self.place_of(provenance);
        self.count(place, submission.duration.0);
        self.submissions.push(submission);
        self.provenance.push(place);
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, submissions: usize) {
        self.submissions.reserve(submissions);
        self.provenance.reserve(submissions);
    }

    #[inline]
    fn place_of(&mut self, provenance: Provenance) -> u32 {
        // Most rows have that of the row before.
        let last = self.provenance.last().copied();
        match last.filter(|last| self.rows_at(*last).is_some_and(|rows| rows.provenance == provenance)) {
            Some(last) => last,
            None => *self.index.entry(provenance).or_insert_with(|| {
                self.provenances.push(Rows {
                    provenance,
                    submissions: 0,
                    total: 0,
                });
                u32::try_from(self.provenances.len() - 1).unwrap_or(u32::MAX)
            }),
        }
    }

    fn rows_at(&self, place: u32) -> Option<&Rows> {
        usize::try_from(place)
            .ok()
            .and_then(|place| self.provenances.get(place))
    }

    #[inline]
    fn count(&mut self, place: u32, ns: u64) {
        let rows = usize::try_from(place)
            .ok()
            .and_then(|place| self.provenances.get_mut(place));
        if let Some(rows) = rows {
            rows.submissions += 1;
            rows.total += u128::from(ns);
        }
    }

    /// The submissions, in file order.
    pub fn submissions(&self) -> &[Submission] {
        &self.submissions
    }

    /// The same, for good.
    pub fn into_submissions(self) -> Vec<Submission> {
        self.submissions
    }

    /// What the rows are grouped by, in the order in which it was met.
    pub fn provenances(&self) -> &[Rows] {
        &self.provenances
    }

    /// For each submission its place among [`provenances`](Self::provenances).
    pub fn provenance_places(&self) -> &[u32] {
        &self.provenance
    }

    /// The submission at a place, with its provenance.
    pub fn at(&self, place: usize) -> Option<Measured> {
        Some(Measured {
            submission: *self.submissions.get(place)?,
            provenance: self.rows_at(*self.provenance.get(place)?)?.provenance,
        })
    }

    /// Every submission with its provenance, in file order.
    pub fn measured(&self) -> impl ExactSizeIterator<Item = Measured> + '_ {
        const NOWHERE: Provenance = Provenance {
            process: None,
            gpu: None,
            depth: 0,
            mapped: false,
        };
        self.submissions
            .iter()
            .zip(&self.provenance)
            .map(|(submission, place)| Measured {
                submission: *submission,
                // Each place is one that `place_of` gave.
                provenance: self.rows_at(*place).map_or(NOWHERE, |rows| rows.provenance),
            })
    }

    /// Of the times and ids of all rows, in any order: two recordings hardly ever have the same.
    pub fn fingerprint(&self) -> u64 {
        self.shape.fingerprint.wrapping_add(self.rows)
    }

    /// When the last submission ends; `None` without one.
    pub fn last_end(&self) -> Option<Timestamp> {
        self.shape.last_end
    }

    /// Whether each submission starts later than the one before.
    pub fn is_in_order(&self) -> bool {
        !self.shape.unordered
    }

    /// Changes what submissions say but for their times, and gives each its provenance anew.
    pub(super) fn revise(&mut self, mut revised: impl FnMut(&mut Submission, Provenance) -> Provenance) {
        let old = std::mem::take(&mut self.provenances);
        let places = std::mem::take(&mut self.provenance);
        self.index.clear();
        self.provenance.reserve_exact(places.len());
        let mut submissions = std::mem::take(&mut self.submissions);
        let mut shape = Shape::default();
        for (submission, place) in submissions.iter_mut().zip(places) {
            let Some(rows) = usize::try_from(place).ok().and_then(|place| old.get(place)) else {
                continue;
            };
            let provenance = revised(submission, rows.provenance);
            shape.add(submission);
            let place = self.place_of(provenance);
            self.count(place, submission.duration.0);
            self.provenance.push(place);
        }
        self.submissions = submissions;
        self.shape = shape;
    }

    /// Gives names, processes and labels the ids that they have among those of other files.
    pub(super) fn renumber(&mut self, ids: &Renumbered) {
        for submission in &mut self.submissions {
            ids.name([&mut submission.channel]);
            ids.label([&mut submission.label]);
        }
        self.index.clear();
        for (rows, place) in self.provenances.iter_mut().zip(0..) {
            ids.process(&mut rows.provenance.process);
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{LabelId, Nanos};

    fn measured(start: u64, duration: u64, provenance: Provenance) -> Measured {
        Measured {
            submission: Submission {
                start: Timestamp(start),
                duration: Nanos(duration),
                id: None,
                encoder: None,
                command_buffer: None,
                latency: None,
                channel: NameId(0),
                label: LabelId(0),
            },
            provenance,
        }
    }

    fn provenance() -> impl Strategy<Value = Provenance> {
        let some = |end| proptest::option::of(0u32..end);
        (some(3), some(2), 0u32..3, any::<bool>()).prop_map(|(process, gpu, depth, mapped)| Provenance {
            process: process.map(ProcessId),
            gpu: gpu.map(NameId),
            depth,
            mapped,
        })
    }

    /// The sums of every provenance, reckoned from the rows.
    fn sums(table: &TimingTable) -> Vec<Rows> {
        let mut sums: Vec<Rows> = Vec::new();
        for Measured { submission, provenance } in table.measured() {
            let at = sums.iter().position(|rows| rows.provenance == provenance);
            let at = at.unwrap_or_else(|| {
                sums.push(Rows {
                    provenance,
                    submissions: 0,
                    total: 0,
                });
                sums.len() - 1
            });
            sums[at].submissions += 1;
            sums[at].total += u128::from(submission.duration.0);
        }
        sums
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_rows_whatever_comes_in_which_order(
            rows in proptest::collection::vec((0u64..50, any::<u64>(), provenance()), 0..40),
            revised in proptest::collection::vec(provenance(), 40),
        ) {
            let mut table = TimingTable::default();
            for (start, duration, provenance) in &rows {
                table.push(measured(*start, *duration, *provenance));
            }
            let all: Vec<Measured> = rows.iter().map(|(start, ns, of)| measured(*start, *ns, *of)).collect();
            prop_assert_eq!(table.measured().collect::<Vec<_>>(), all.clone());
            prop_assert_eq!(table.provenances(), sums(&table));
            prop_assert_eq!(table.last_end(), all.iter().map(|row| row.submission.end()).max());
            prop_assert_eq!(table.is_in_order(), all.is_sorted_by(|a, b| a.submission.start < b.submission.start));
            for (at, row) in all.iter().enumerate() {
                prop_assert_eq!(table.at(at), Some(*row));
            }
            prop_assert_eq!(table.at(all.len()), None);

            let before = table.fingerprint();
            let mut at = 0;
            table.revise(|submission, old| {
                assert_eq!(old, all[at].provenance);
                submission.encoder = EncoderId::new(7);
                at += 1;
                revised[at - 1]
            });
            prop_assert_eq!(at, all.len());
            prop_assert_eq!(table.provenances(), sums(&table));
            let found: Vec<Provenance> = table.measured().map(|row| row.provenance).collect();
            prop_assert_eq!(&found, &revised[..all.len()]);
            prop_assert_eq!(before == table.fingerprint(), all.is_empty());
            prop_assert_eq!(table.last_end(), all.iter().map(|row| row.submission.end()).max());
        }
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_order_of_the_rows() {
        let anywhere = Provenance {
            process: None,
            gpu: None,
            depth: 0,
            mapped: true,
        };
        let of = |starts: &[u64]| {
            let mut table = TimingTable::default();
            for start in starts {
                table.push(measured(*start, 5, anywhere));
            }
            table.fingerprint()
        };
        assert_eq!(of(&[1, 2, 3]), of(&[3, 1, 2]));
        assert_ne!(of(&[1, 2, 3]), of(&[1, 2, 4]));
    }
}
