//! The submission map: which encoder, command buffer and process a submission has.
//!
//! The driver counts submissions, so the map's rows come nearly in the order of their ids, and whoever looks them up goes
//! nearly in that order: they stand in one row of memory, and are sorted when they are complete.

use crate::model::{CommandBufferId, EncoderId, SubmissionId};
use crate::tables::{ProcessId, Renumbered};

/// What the map says of submissions, as it comes.
#[derive(Debug, Clone, Default)]
pub(super) struct SubmissionMap {
    rows: Vec<(u64, Mapping)>,
    /// A row has not a higher id than the one before.
    unordered: bool,
    /// How many rows there were when they were last sorted.
    distinct: usize,
}

/// What the map says of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) encoder: Option<EncoderId>,
    pub(super) command_buffer: Option<CommandBufferId>,
    pub(super) process: Option<ProcessId>,
}

impl Mapping {
    /// Two rows that contradict each other say nothing about what they contradict each other in.
    fn agreed(self, other: Mapping) -> Mapping {
        fn same<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<T> {
            if a == b { a } else { None }
        }
        Mapping {
            encoder: same(self.encoder, other.encoder),
            command_buffer: same(self.command_buffer, other.command_buffer),
            process: same(self.process, other.process),
        }
    }
}

/// Rows that may repeat others, beside as many as are distinct, before they are sorted to see.
const MANY: usize = 1 << 16;

impl SubmissionMap {
    pub(super) fn push(&mut self, id: SubmissionId, mapping: Mapping) {
        let id = id.get();
        match self.rows.last_mut() {
            Some((last, known)) if *last == id => *known = known.agreed(mapping),
            last => {
                self.unordered |= last.is_some_and(|(last, _)| *last > id);
                self.rows.push((id, mapping));
                // Memory follows the submissions, however often each is told of.
                if self.unordered && self.rows.len() > 2 * self.distinct + MANY {
                    self.sort();
                }
            }
        }
    }

    /// Rising ids, each once.
    fn sort(&mut self) {
        if self.unordered {
            // What is in order already, in parts, is not sorted anew by this.
            self.rows.sort_by_key(|(id, _)| *id);
            self.rows.dedup_by(|(id, mapping), (first, known)| {
                let same = id == first;
                if same {
                    *known = known.agreed(*mapping);
                }
                same
            });
            self.unordered = false;
        }
        self.distinct = self.rows.len();
    }

    pub(super) fn renumber(&mut self, ids: &Renumbered) {
        for (_, mapping) in &mut self.rows {
            ids.process(&mut mapping.process);
        }
    }

    /// For looking up, when it is complete.
    pub(super) fn into_lookup(mut self) -> Lookup {
        self.sort();
        Lookup {
            rows: self.rows,
            last: 0,
        }
    }
}

/// A complete map.
pub(super) struct Lookup {
    /// Rising ids, each once.
    rows: Vec<(u64, Mapping)>,
    /// Where the last one was.
    last: usize,
}

impl Lookup {
    /// What the map says of a submission, if it knows it; quick for one that is near the last.
    pub(super) fn get(&mut self, id: SubmissionId) -> Option<Mapping> {
        let id = id.get();
        let below = |at: usize| self.rows.get(at).is_some_and(|(own, _)| *own < id);
        // Twice as far at each step, to either side, until it lies between.
        let (mut from, mut to, mut step) = (self.last, self.last, 1);
        while from > 0 && !below(from - 1) {
            from = from.saturating_sub(step);
            step *= 2;
        }
        while below(to) {
            to += step;
            step *= 2;
        }
        let to = to.min(self.rows.len());
        let within = self.rows.get(from..to).unwrap_or_default();
        self.last = from + within.partition_point(|(own, _)| *own < id);
        let (own, mapping) = self.rows.get(self.last)?;
        (*own == id).then_some(*mapping)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn mapping(encoder: u64, process: u32) -> Mapping {
        Mapping {
            encoder: EncoderId::new(encoder),
            command_buffer: None,
            process: Some(ProcessId(process)),
        }
    }

    proptest! {
        #[test]
        fn a_submission_has_what_all_its_rows_agree_in(
            rows in proptest::collection::vec((0u64..30, 0u64..2, 0u32..2), 0..60),
            ordered in any::<bool>(),
            asked in proptest::collection::vec(0u64..40, 0..60),
        ) {
            let mut rows = rows;
            if ordered {
                rows.sort_by_key(|(id, ..)| *id);
            }
            let (mut map, mut expected) = (SubmissionMap::default(), BTreeMap::new());
            for (id, encoder, process) in rows {
                let new = mapping(encoder, process);
                map.push(SubmissionId::new(id).unwrap(), new);
                expected.entry(id).and_modify(|known: &mut Mapping| *known = known.agreed(new)).or_insert(new);
            }
            let mut lookup = map.into_lookup();
            for id in asked {
                prop_assert_eq!(lookup.get(SubmissionId::new(id).unwrap()), expected.get(&id).copied());
            }
        }
    }

    #[test]
    fn memory_follows_submissions_and_not_rows() {
        let mut map = SubmissionMap::default();
        for row in 0..10 * MANY as u64 {
            map.push(SubmissionId::new(row % 100).unwrap(), mapping(1, 2));
        }
        assert!(map.rows.len() <= MANY + 200, "{}", map.rows.len());
        let mut lookup = map.into_lookup();
        assert_eq!(lookup.rows.len(), 100);
        for id in (0..100).rev() {
            assert_eq!(lookup.get(SubmissionId::new(id).unwrap()), Some(mapping(1, 2)));
        }
    }
}
