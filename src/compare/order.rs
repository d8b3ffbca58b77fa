//! When trials were recorded: a machine that warms up must not be taken for a change.
//!
//! What goes in: the start dates that the recordings hold. What comes out: the rank of each trial, and remarks on orders
//! that cannot tell a drift from a change.

use jiff::Timestamp;

use super::words::side_names;
use super::{Comparison, Side, Trial};
use crate::model::Note;

/// Length of the blocks in which a place should be held by both sides equally often.
const BLOCK: usize = 4;

/// When a trial was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Start as the recording has it (ISO 8601); `None` when it has none, or none that can be read.
    pub start: Option<String>,
    /// Place among all trials of both sides, from 1; `None` unless every trial has a start of its own.
    pub rank: Option<usize>,
}

/// Slots of side A's trials, then of B's.
pub(super) fn slots(a: &Side, b: Option<&Side>) -> Vec<Slot> {
    let trials: Vec<&Trial> = a.trials.iter().chain(b.iter().flat_map(|side| &side.trials)).collect();
    let starts: Vec<Option<Timestamp>> = trials.iter().map(|trial| start(trial)).collect();
    let known: Option<Vec<Timestamp>> = starts.iter().copied().collect();
    let distinct = known.filter(|known| {
        let mut sorted = known.clone();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair.first() != pair.last())
    });
    trials
        .iter()
        .zip(&starts)
        .map(|(trial, start)| Slot {
            start: start.and(trial.state.start_date.clone()),
            rank: distinct
                .as_ref()
                .zip(*start)
                .map(|(all, own)| 1 + all.iter().filter(|other| **other < own).count()),
        })
        .collect()
}

/// Start of a trial's recording.
pub(super) fn start(trial: &Trial) -> Option<Timestamp> {
    trial.state.start_date.as_ref()?.parse().ok()
}

/// Which side each place in the order of recording belongs to: `true` for A. `None` when the order is not known.
fn sequence(comparison: &Comparison) -> Option<Vec<bool>> {
    let n_a = comparison.a.trials.len();
    let mut places: Vec<(usize, bool)> = comparison
        .slots
        .iter()
        .enumerate()
        .map(|(at, slot)| Some((slot.rank?, at < n_a)))
        .collect::<Option<_>>()?;
    places.sort_unstable();
    Some(places.into_iter().map(|(_, is_a)| is_a).collect())
}

/// Whether start times show one side first in every pair of trials.
pub(super) fn one_side_always_first(comparison: &Comparison) -> bool {
    let n_a = comparison.a.trials.len();
    let ranks: Option<Vec<usize>> = comparison.slots.iter().map(|slot| slot.rank).collect();
    let Some(ranks) = ranks else { return false };
    let (a, b) = ranks.split_at_checked(n_a).unwrap_or((&[], &[]));
    let mut first = a.iter().zip(b).map(|(a, b)| a < b);
    match first.next() {
        Some(one) => a.len() > 1 && first.all(|other| other == one),
        None => false,
    }
}

/// Remarks on the order of the trials.
pub(super) fn notes(comparison: &Comparison) -> Vec<Note> {
    let Some(b) = &comparison.b else { return Vec::new() };
    let (name_a, name_b) = side_names(&comparison.a, b);
    let mut notes = Vec::new();
    if comparison.inference.baseline {
        if comparison.inference.noise_sessions.is_some() {
            return notes;
        }
        let text = format!(
            "{name_b} is a baseline from another session: its trials do not show how sessions differ \
             (`--noise` with a file of `trace-attr calibrate` does)"
        );
        notes.push(Note::remark("recorded_apart", text));
        return notes;
    }
    let Some(sequence) = sequence(comparison) else {
        return notes;
    };
    let changes = sequence.windows(2).filter(|pair| pair.first() != pair.last()).count();
    if changes == 1 && sequence.len() > 2 {
        let (first, second) = if sequence.first() == Some(&true) {
            (&name_a, &name_b)
        } else {
            (&name_b, &name_a)
        };
        let text = format!(
            "all trials of {first} were recorded before those of {second}: a machine that drifts looks like a change; \
             record them in the order A B B A A B"
        );
        notes.push(Note::warning("recorded_apart", text));
    } else if let Some(text) = unequal_places(&sequence) {
        notes.push(Note::remark("unequal_places", text));
    }
    notes
}

/// In blocks of four, each place should be held by both sides equally often: some machines run every second or every
/// fourth recording slower, and A B B A alone gives those places to one side.
fn unequal_places(sequence: &[bool]) -> Option<String> {
    if sequence.len() < BLOCK || !sequence.len().is_multiple_of(BLOCK) {
        return None;
    }
    let unequal: Vec<String> = (0..BLOCK)
        .filter(|place| {
            let held = sequence.iter().skip(*place).step_by(BLOCK);
            let (all, by_a) = held.fold((0, 0), |(all, a), is_a| (all + 1, a + usize::from(*is_a)));
            2 * by_a != all
        })
        .map(|place| (place + 1).to_string())
        .collect();
    (!unequal.is_empty()).then(|| {
        format!(
            "the sides did not hold the places of a block of {BLOCK} recordings equally often (places {}): \
             follow A B B A by B A A B",
            unequal.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b56_a_block_alone_gives_its_places_to_one_side_and_two_mirrored_blocks_do_not() {
        let (a, b) = (true, false);
        let block = [a, b, b, a];
        assert!(unequal_places(&block).is_some());
        assert!(unequal_places(&[a, b, b, a, b, a, a, b]).is_none());
        assert!(
            unequal_places(&[a, b, b, a, a, b]).is_none(),
            "six have no blocks of four"
        );
    }
}
