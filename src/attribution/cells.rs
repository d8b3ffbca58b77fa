//! Submissions that no grouping tells apart: those of one label, channel and bucket are a *cell*.
//!
//! A trace has few cells, so each grouping is worked out once per cell ([`Grouping`]), and a submission finds its group in
//! all of them by one small number.

use hashbrown::HashMap;

use super::group::{Buckets, Key, UNKNOWN};
use crate::model::{LabelId, NameId, Trace};

/// The cells of a trace.
#[derive(Debug)]
pub(super) struct Cells {
    /// The cell of each submission, in their order.
    pub(super) of: Vec<u32>,
    /// What the submissions of a cell have in common, by cell.
    all: Vec<Cell>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Cell {
    label: LabelId,
    channel: NameId,
    bucket: u32,
}

/// What group each cell is in.
#[derive(Debug)]
pub(super) struct Grouping {
    /// Group by cell.
    pub(super) of_cell: Vec<u32>,
    /// Key by group. There can be groups without a submission.
    pub(super) keys: Vec<String>,
    /// The group of an encoder; `None` when groups say nothing about encoders.
    pub(super) of_label: Option<LabelGroups>,
}

/// The group of each label of a trace, and of one that it does not have.
#[derive(Debug)]
pub(super) struct LabelGroups {
    listed: Vec<u32>,
    other: u32,
}

impl LabelGroups {
    /// The group of a label.
    pub(super) fn get(&self, label: LabelId) -> u32 {
        let listed = usize::try_from(label.0).ok().and_then(|at| self.listed.get(at));
        listed.copied().unwrap_or(self.other)
    }
}

impl Cells {
    pub(super) fn new(trace: &Trace, buckets: &Buckets) -> Self {
        let mut all: Vec<Cell> = Vec::new();
        let mut index: HashMap<Cell, u32> = HashMap::new();
        let of = trace
            .submissions
            .iter()
            .map(|submission| {
                let cell = Cell {
                    label: submission.label,
                    channel: submission.channel,
                    bucket: number(buckets.index(submission.duration.0)),
                };
                *index.entry(cell).or_insert_with(|| {
                    all.push(cell);
                    number(all.len() - 1)
                })
            })
            .collect();
        Cells { of, all }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Everything in one group.
    pub(super) fn whole(&self) -> Grouping {
        Grouping {
            of_cell: vec![0; self.all.len()],
            keys: vec![String::new()],
            of_label: Some(LabelGroups {
                listed: Vec::new(),
                other: 0,
            }),
        }
    }

    /// By the buckets that the cells were made with.
    pub(super) fn by_bucket(&self, buckets: &Buckets) -> Grouping {
        Grouping {
            of_cell: self.all.iter().map(|cell| cell.bucket).collect(),
            keys: buckets.names.clone(),
            of_label: None,
        }
    }

    pub(super) fn by_channel(&self, trace: &Trace) -> Grouping {
        let mut groups = Groups::default();
        Grouping {
            of_cell: self
                .all
                .iter()
                .map(|cell| groups.of(trace.names.get(cell.channel)))
                .collect(),
            keys: groups.keys(),
            of_label: None,
        }
    }

    /// By the keys of the trace's labels; several labels can have one key.
    pub(super) fn by_label(&self, trace: &Trace, keys: &[Key]) -> Grouping {
        debug_assert_eq!(keys.len(), trace.labels.len(), "a key for each label");
        let mut groups = Groups::default();
        let of_label = LabelGroups {
            listed: keys.iter().map(|key| groups.of(&key.text)).collect(),
            other: groups.of(UNKNOWN),
        };
        Grouping {
            of_cell: self.all.iter().map(|cell| of_label.get(cell.label)).collect(),
            keys: groups.keys(),
            of_label: Some(of_label),
        }
    }

    /// The keys, aligned with the trace's labels, of labels that a submission has.
    pub(super) fn used<'k>(&self, keys: &'k [Key]) -> impl Iterator<Item = (LabelId, &'k Key)> {
        self.all
            .iter()
            .filter_map(|cell| Some((cell.label, keys.get(usize::try_from(cell.label.0).ok()?)?)))
    }
}

/// Cells and groups are no more than submissions and labels, which are numbered by 32 bits.
pub(super) fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The place of a cell or group in tables by such.
pub(super) fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Distinct keys in the order in which they are met.
#[derive(Debug, Default)]
struct Groups<'a> {
    index: HashMap<&'a str, u32>,
    keys: Vec<&'a str>,
}

impl<'a> Groups<'a> {
    fn of(&mut self, key: &'a str) -> u32 {
        *self.index.entry(key).or_insert_with(|| {
            self.keys.push(key);
            number(self.keys.len() - 1)
        })
    }

    fn keys(self) -> Vec<String> {
        self.keys.into_iter().map(str::to_owned).collect()
    }
}
