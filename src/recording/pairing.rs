//! Execution points become submissions: an end closes the open start of its channel and submission id.

use hashbrown::HashMap;

use super::{Measured, Provenance, TimingTable};
use crate::model::{LabelId, NameId, Nanos, Reason, Submission, SubmissionId, Timestamp};
use crate::tables::Texts;
use crate::tables::execution_points::{self, PointRow};

/// Open starts by channel and submission.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairing {
    open: HashMap<(u64, SubmissionId), Start>,
    channels: HashMap<u64, NameId>,
}

#[derive(Debug, Clone, Copy)]
struct Start {
    time: u64,
    /// A second start of the same ns as the end that will close the first: at one ns an end comes before a start.
    next: Option<u64>,
}

impl Pairing {
    pub(super) fn push(&mut self, row: &PointRow, table: &mut TimingTable, label: LabelId, texts: &mut Texts) {
        let (Some(time), Some(function)) = (row.time, row.function) else {
            table.left_out.add(Reason::Invalid, 1, None);
            return;
        };
        let id = row.submission.and_then(SubmissionId::new);
        if function != execution_points::START && function != execution_points::END {
            table.left_out.add(Reason::OtherFunction, 1, None);
            return;
        }
        let Some(id) = id else {
            table.left_out.add(Reason::Invalid, 1, None);
            return;
        };
        let key = (row.channel.unwrap_or(u64::MAX), id);
        if function == execution_points::START {
            match self.open.get_mut(&key) {
                None => {
                    self.open.insert(key, Start { time, next: None });
                }
                Some(start) => {
                    // Three starts in a row: the first can no longer be closed by an end of the second's ns.
                    if let Some(second) = start.next.replace(time) {
                        start.time = second;
                        table.left_out.add(Reason::UnpairedStart, 1, None);
                    }
                }
            }
            return;
        }
        let Some(start) = self.open.remove(&key) else {
            table.left_out.add(Reason::UnpairedEnd, 1, None);
            return;
        };
        let from = match start.next {
            Some(next) if next == time => {
                self.open.insert(key, Start { time: next, next: None });
                start.time
            }
            Some(next) => {
                table.left_out.add(Reason::UnpairedStart, 1, None);
                next
            }
            None => start.time,
        };
        let Some(duration) = time.checked_sub(from) else {
            table.left_out.add(Reason::Invalid, 2, None);
            return;
        };
        let channel = match row.channel {
            Some(channel) => *self
                .channels
                .entry(channel)
                .or_insert_with(|| texts.names.intern(&execution_points::channel_name(channel))),
            None => texts.names.intern("(no channel)"),
        };
        table.push(Measured {
            submission: Submission {
                start: Timestamp(from),
                duration: Nanos(duration),
                id: Some(id),
                encoder: None,
                command_buffer: None,
                latency: None,
                channel,
                label,
            },
            process: None,
            provenance: Provenance {
                gpu: None,
                depth: 0,
                mapped: false,
            },
        });
    }

    pub(super) fn channels_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        self.channels.values_mut()
    }

    pub(super) fn finish(self, table: &mut TimingTable) {
        let open: u64 = self
            .open
            .values()
            .map(|start| 1 + u64::from(start.next.is_some()))
            .sum();
        if open > 0 {
            table.left_out.add(Reason::UnpairedStart, open, None);
        }
    }
}
