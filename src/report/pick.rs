//! What a report picks out of the trials of a side: unions, largest values, the longest of all trials.
//!
//! No statistics here: every number is one that a trial has.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribution::{Gap, SlowSubmission};
use crate::compare::Side;
use crate::model::{LeftOutCount, Nanos, Reason};

/// Kernel names by family, the union over the trials; `None` when no trial has a shader list.
pub(super) fn kernel_families(side: &Side) -> Option<BTreeMap<&str, BTreeSet<&str>>> {
    let mut union: Option<BTreeMap<&str, BTreeSet<&str>>> = None;
    for families in side.trials.iter().filter_map(|trial| trial.kernels.as_ref()) {
        let union = union.get_or_insert_default();
        for (family, names) in &families.0 {
            union
                .entry(family)
                .or_default()
                .extend(names.iter().map(String::as_str));
        }
    }
    union
}

/// Rows of the Shader Timeline table, the largest over the trials; `None` when no trial has the table.
pub(super) fn shader_timeline_rows(side: &Side) -> Option<u64> {
    side.trials.iter().filter_map(|trial| trial.shader_timeline_rows).max()
}

/// The longest submissions of all trials with the index of their trial, longest first.
pub(super) fn slowest(side: &Side, at_most: usize) -> Vec<(usize, &SlowSubmission)> {
    let trials = side.trials.iter().enumerate();
    let mut all: Vec<_> = trials
        .flat_map(|(at, trial)| trial.slowest.iter().map(move |slow| (at, slow)))
        .collect();
    all.sort_by_key(|(at, slow)| (std::cmp::Reverse(slow.duration), *at, slow.start));
    all.truncate(at_most);
    all
}

/// The longest gaps of all trials with the index of their trial, longest first.
pub(super) fn longest_gaps(side: &Side, at_most: usize) -> Vec<(usize, &Gap)> {
    let trials = side.trials.iter().enumerate();
    let mut all: Vec<_> = trials
        .flat_map(|(at, trial)| trial.gaps.longest.iter().map(move |gap| (at, gap)))
        .collect();
    all.sort_by_key(|(at, gap)| (std::cmp::Reverse(gap.length), *at, gap.start));
    all.truncate(at_most);
    all
}

/// What is left out for a reason in all trials together.
pub(super) fn left_out(side: &Side, reason: Reason) -> LeftOutCount {
    let mut sum = LeftOutCount::default();
    for count in side.trials.iter().map(|trial| trial.left_out.get(reason)) {
        sum.rows = sum.rows.saturating_add(count.rows);
        if let Some(Nanos(ns)) = count.total {
            sum.total = Some(Nanos(sum.total.map_or(0, |total| total.0).saturating_add(ns)));
        }
    }
    sum
}
