//! The slices of a track in lanes in which they nest: what crosses another slice stands in a lane of its own.
//!
//! There are at most [`MOST`] lanes, because a viewer shows each as a row; what needs more is counted, not drawn over
//! another.

use std::io;

use crate::timeline::{Slice, Track};

/// Lanes of one track.
const MOST: usize = 64;

/// A track's slices in lanes.
pub(super) struct Lanes {
    /// Places of slices, by start; a slice that holds another comes first. There is at least one lane.
    pub(super) lanes: Vec<Vec<usize>>,
    /// Slices that found no lane.
    pub(super) left_out: u64,
}

/// A lane while it is filled: its slices, and the ends of those that are open.
#[derive(Default)]
struct Filling {
    slices: Vec<usize>,
    open: Vec<u64>,
}

impl Lanes {
    pub(super) fn of(track: &Track<'_>) -> Lanes {
        let mut spans: Vec<(u64, u64, usize)> = Vec::new();
        for (place, (start, length)) in track.slices.spans().enumerate() {
            spans.push((start, start.saturating_add(length), place));
        }
        // Which of two equal starts is first: the one that holds the other, or the one that is over first.
        spans.sort_by_key(|(start, end, place)| (*start, if track.nests { u64::MAX - end } else { *end }, *place));
        let mut lanes = vec![Filling::default()];
        let mut left_out = 0;
        for (start, end, place) in spans {
            let fits = |lane: &mut Filling| {
                while lane.open.last().is_some_and(|open| *open <= start) {
                    lane.open.pop();
                }
                lane.open.last().is_none_or(|outer| track.nests && end <= *outer)
            };
            let found = lanes.iter_mut().position(fits);
            if found.is_none() && lanes.len() == MOST {
                left_out += 1;
                continue;
            }
            if found.is_none() {
                lanes.push(Filling::default());
            }
            let at = found.unwrap_or(lanes.len() - 1);
            if let Some(lane) = lanes.get_mut(at) {
                lane.slices.push(place);
                lane.open.push(end);
            }
        }
        Lanes {
            lanes: lanes.into_iter().map(|lane| lane.slices).collect(),
            left_out,
        }
    }

    /// Lanes with their names: that of the track, with a number from the second on.
    pub(super) fn named<'l>(&'l self, track: &'l Track<'_>) -> impl Iterator<Item = (String, &'l [usize])> {
        self.lanes.iter().zip(1u32..).map(|(lane, number)| {
            let name = match number {
                1 => track.name.clone(),
                _ => format!("{} ({number})", track.name),
            };
            (name, lane.as_slice())
        })
    }
}

/// A moment at which a slice of a lane begins or ends.
pub(super) enum Edge<'s> {
    Begin(&'s Slice),
    End(&'s Slice),
}

/// Tells beginnings and ends of a lane in their order: what is inside another slice ends before it.
pub(super) fn edges(
    track: &Track<'_>,
    lane: &[usize],
    mut tell: impl FnMut(Edge<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut open: Vec<Slice> = Vec::new();
    for slice in lane.iter().filter_map(|place| track.slices.slice(*place)) {
        while let Some(over) = open.pop_if(|over| over.end_ns() <= slice.start_ns) {
            tell(Edge::End(&over))?;
        }
        tell(Edge::Begin(&slice))?;
        open.push(slice);
    }
    while let Some(over) = open.pop() {
        tell(Edge::End(&over))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(nests: bool, spans: &[(u64, u64)]) -> Lanes {
        let slices: Vec<Slice> = spans
            .iter()
            .map(|(start, length)| Slice {
                name: "x".into(),
                category: "gpu",
                start_ns: *start,
                length_ns: *length,
                arguments: Vec::new(),
                flow: None,
            })
            .collect();
        Lanes::of(&Track {
            name: "track".into(),
            nests,
            slices: Box::new(slices),
        })
    }

    #[test]
    fn calls_nest_and_what_the_gpu_runs_at_once_does_not() {
        let spans = [(0, 100), (0, 10), (10, 20), (50, 100), (100, 5)];
        assert_eq!(lanes(true, &spans).lanes, [vec![0, 1, 2, 4], vec![3]]);
        assert_eq!(lanes(false, &spans).lanes, [vec![1, 2, 3], vec![0, 4]]);
    }

    #[test]
    fn empty_slices_need_no_lane_of_their_own() {
        assert_eq!(
            lanes(false, &[(5, 0), (5, 0), (5, 9), (14, 0)]).lanes,
            [vec![0, 1, 2, 3]]
        );
    }

    #[test]
    fn what_finds_no_lane_is_counted() {
        let spans: Vec<(u64, u64)> = (0..100).map(|start| (start, 1_000)).collect();
        let lanes = lanes(false, &spans);
        assert_eq!((lanes.lanes.len(), lanes.left_out), (MOST, 36));
    }
}
