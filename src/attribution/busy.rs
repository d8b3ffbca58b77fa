//! When the GPU was busy: the union of a trace's submissions as spans of time, few enough to draw.
//!
//! Where a trace has more stretches than are asked for, the shortest gaps between them are closed first, and the span that
//! comes of it still knows its busy time. So the sum of all spans' busy time is the busy time of the trace to the ns, and
//! the long gaps, which are what one looks for, stay exact.

use super::foremost::foremost;
use crate::model::{NameId, Nanos, Timestamp, Trace};

/// Channels that get a lane of their own; all are in the first lane.
const CHANNELS: usize = 6;

/// Busy and idle time of one trial's window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyTimeline {
    /// First start in the window.
    pub from: Timestamp,
    /// Last end in the window.
    pub to: Timestamp,
    /// All submissions together; then, where there are several channels, each of them, most busy time first.
    pub lanes: Vec<BusyLane>,
}

/// Submissions of one channel, or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyLane {
    /// Name of the channel; `None`: all.
    pub channel: Option<String>,
    /// In the order of time, without overlap.
    pub spans: Vec<BusySpan>,
}

/// A stretch of time in which the GPU was busy, all of it or in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusySpan {
    /// First ns.
    pub start: Timestamp,
    /// From the first busy ns to the last.
    pub length: Nanos,
    /// Busy time in it: its length, unless gaps were closed.
    pub busy: Nanos,
}

impl BusySpan {
    fn end(&self) -> u64 {
        self.start.0.saturating_add(self.length.0)
    }
}

impl BusyLane {
    /// Busy time of the whole lane.
    pub fn busy(&self) -> Nanos {
        Nanos(self.spans.iter().map(|span| span.busy.0).sum())
    }
}

/// When a trace's window was busy, in at most `spans` spans (at least one) a lane; `None` when it was not.
pub fn busy_timeline(trace: &Trace, spans: usize) -> Option<BusyTimeline> {
    let mut all = Stretches::default();
    let mut channels: Vec<(NameId, Stretches)> = Vec::new();
    for submission in &trace.submissions {
        let window = trace.window;
        let (start, end) = (
            submission.start.0.max(window.from.0),
            submission.end().0.min(window.to.0),
        );
        all.add(start, end);
        // A trace has few channels, and mostly the last one again.
        let at = match channels.iter().position(|(channel, _)| *channel == submission.channel) {
            Some(at) => at,
            None => {
                channels.push((submission.channel, Stretches::default()));
                channels.len() - 1
            }
        };
        if let Some((_, stretches)) = channels.get_mut(at) {
            stretches.add(start, end);
        }
    }
    let (first, last) = (all.0.first()?, all.0.last()?);
    let (from, to) = (first.start, Timestamp(last.end()));
    let mut lanes = vec![BusyLane {
        channel: None,
        spans: all.at_most(spans),
    }];
    if channels.len() > 1 {
        let mut own: Vec<BusyLane> = channels
            .into_iter()
            .map(|(channel, stretches)| BusyLane {
                channel: Some(trace.names.get(channel).to_owned()),
                spans: stretches.at_most(spans),
            })
            .filter(|lane| !lane.spans.is_empty())
            .collect();
        own.sort_by(|x, y| y.busy().cmp(&x.busy()).then_with(|| x.channel.cmp(&y.channel)));
        own.truncate(CHANNELS);
        lanes.extend(own);
    }
    Some(BusyTimeline { from, to, lanes })
}

/// A union in the making, by intervals in the order of their starts.
#[derive(Debug, Default)]
struct Stretches(Vec<BusySpan>);

impl Stretches {
    fn add(&mut self, start: u64, end: u64) {
        if end <= start {
            return;
        }
        match self.0.last_mut() {
            Some(last) if start <= last.end() => {
                let length = last.length.0.max(end - last.start.0);
                (last.length, last.busy) = (Nanos(length), Nanos(length));
            }
            _ => self.0.push(BusySpan {
                start: Timestamp(start),
                length: Nanos(end - start),
                busy: Nanos(end - start),
            }),
        }
    }

    /// Closes the shortest gaps, of equal ones the earliest, until so many spans remain.
    fn at_most(self, spans: usize) -> Vec<BusySpan> {
        let Stretches(stretches) = self;
        let too_many = stretches.len().saturating_sub(spans.max(1));
        if too_many == 0 {
            return stretches;
        }
        let pairs = stretches.iter().zip(stretches.iter().skip(1)).enumerate();
        let gaps = pairs.map(|(at, (before, after))| (after.start.0.saturating_sub(before.end()), at));
        let mut closed: Vec<usize> = foremost(gaps, too_many).into_iter().map(|(_, at)| at).collect();
        closed.sort_unstable();
        let mut closed = closed.into_iter().peekable();
        let mut kept: Vec<BusySpan> = Vec::with_capacity(spans);
        // The gap before a stretch has the number of the stretch before it.
        for (at, stretch) in stretches.into_iter().enumerate() {
            let joins = at > 0 && closed.next_if_eq(&(at - 1)).is_some();
            match kept.last_mut().filter(|_| joins) {
                Some(last) => {
                    last.length = Nanos(stretch.end().saturating_sub(last.start.0));
                    last.busy.0 += stretch.busy.0;
                }
                None => kept.push(stretch),
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::fixture::{Builder, window};

    fn spans(lane: &BusyLane) -> Vec<(u64, u64, u64)> {
        let numbers = |span: &BusySpan| (span.start.0, span.length.0, span.busy.0);
        lane.spans.iter().map(numbers).collect()
    }

    #[test]
    fn the_shortest_gaps_are_closed_and_no_busy_time_is_lost() {
        let mut builder = Builder::new();
        for (start, length) in [(0, 10), (5, 10), (17, 3), (100, 50), (155, 5), (200, 0)] {
            builder.submission(start, length, "Compute", "p", "");
        }
        let trace = builder.build();
        let lane = |most| busy_timeline(&trace, most).unwrap().lanes.remove(0);
        assert_eq!(spans(&lane(9)), [(0, 15, 15), (17, 3, 3), (100, 50, 50), (155, 5, 5)]);
        assert_eq!(spans(&lane(3)), [(0, 20, 18), (100, 50, 50), (155, 5, 5)]);
        assert_eq!(spans(&lane(2)), [(0, 20, 18), (100, 60, 55)]);
        assert_eq!(spans(&lane(0)), [(0, 160, 73)]);
    }

    #[test]
    fn several_channels_have_a_lane_each() {
        let mut builder = Builder::new();
        builder.submission(0, 10, "Blit", "p", "");
        builder.submission(5, 50, "Compute", "p", "");
        let timeline = busy_timeline(&builder.build(), 9).unwrap();
        let lanes: Vec<_> = timeline
            .lanes
            .iter()
            .map(|lane| (lane.channel.as_deref(), lane.busy().0))
            .collect();
        assert_eq!(lanes, [(None, 55), (Some("Compute"), 50), (Some("Blit"), 10)]);
        assert_eq!((timeline.from, timeline.to), (Timestamp(0), Timestamp(55)));
    }

    #[test]
    fn only_the_window_is_shown() {
        let mut builder = Builder::new();
        builder.submission(0, 100, "Compute", "p", "");
        let mut trace = builder.build();
        trace.window = window(20, 60);
        let timeline = busy_timeline(&trace, 9).unwrap();
        assert_eq!(spans(&timeline.lanes[0]), [(20, 40, 40)]);
        trace.window = window(200, 300);
        assert_eq!(busy_timeline(&trace, 9), None);
    }
}
