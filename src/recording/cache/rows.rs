//! Each kind of row as numbers, and numbers as a row: an id must be one of a known text.
//!
//! What is not there is a number that no value has where there is such a number, else a second column; a column that
//! says the same for all rows of a block takes two bytes.

use super::frames::{Columns, Known};
use crate::model::{CommandBufferId, EncoderId, Label, LabelId, NameId, Nanos, Submission, SubmissionId, Timestamp};
use crate::recording::{Measured, Provenance};
use crate::tables::ProcessId;
use crate::tables::encoders::EncoderRow;
use crate::tables::shaders::{ShaderRow, ShaderSampleRow};
use crate::tables::signposts::{EventKind, Scope, Signpost, SignpostEvent, SignpostInterval};
use crate::tables::states::StateRow;

/// 2^64 − 1 is no id.
const NO_ID: u64 = u64::MAX;

fn id(id: u64, end: u64) -> Option<u32> {
    if id < end { u32::try_from(id).ok() } else { None }
}

pub(super) fn name(number: u64, known: Known) -> Option<NameId> {
    id(number, known.names).map(NameId)
}

/// Ids and one more: 0 is none.
fn opt_id(id: Option<u32>) -> u64 {
    id.map_or(0, |id| u64::from(id) + 1)
}

pub(super) fn opt_name(id: Option<NameId>) -> u64 {
    opt_id(id.map(|id| id.0))
}

/// The outer `None` is no id at all, the inner one the id that is not there.
pub(super) fn to_opt_name(number: u64, known: Known) -> Option<Option<NameId>> {
    match number.checked_sub(1) {
        None => Some(None),
        Some(number) => name(number, known).map(Some),
    }
}

fn opt_process(id: Option<ProcessId>) -> u64 {
    opt_id(id.map(|id| id.0))
}

fn to_opt_process(number: u64, known: Known) -> Option<Option<ProcessId>> {
    match number.checked_sub(1) {
        None => Some(None),
        Some(number) => id(number, known.processes).map(ProcessId).map(Some),
    }
}

/// A value that can be any number: whether it is there, and itself.
pub(super) fn opt(value: Option<u64>) -> [u64; 2] {
    [u64::from(value.is_some()), value.unwrap_or_default()]
}

pub(super) fn to_opt([there, value]: [u64; 2]) -> Option<Option<u64>> {
    match (there, value) {
        (0, 0) => Some(None),
        (1, value) => Some(Some(value)),
        _ => None,
    }
}

pub(super) fn flag(number: u64) -> Option<bool> {
    match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

impl Columns<13> for Measured {
    fn numbers(&self) -> [u64; 13] {
        let Measured {
            submission,
            process,
            provenance: Provenance { gpu, depth, mapped },
        } = *self;
        let Submission {
            start,
            duration,
            id,
            encoder,
            command_buffer,
            latency,
            channel,
            label,
        } = submission;
        let [has_latency, latency] = opt(latency.map(|latency| latency.0));
        [
            start.0,
            duration.0,
            id.map_or(NO_ID, SubmissionId::get),
            encoder.map_or(NO_ID, EncoderId::get),
            command_buffer.map_or(NO_ID, CommandBufferId::get),
            has_latency,
            latency,
            u64::from(channel.0),
            u64::from(label.0),
            opt_process(process),
            opt_name(gpu),
            u64::from(depth),
            u64::from(mapped),
        ]
    }

    fn from_numbers(numbers: [u64; 13], known: Known) -> Option<Self> {
        let [
            start,
            duration,
            submission,
            encoder,
            command_buffer,
            has_latency,
            latency,
            channel,
            label,
            process,
            gpu,
            depth,
            mapped,
        ] = numbers;
        Some(Measured {
            submission: Submission {
                start: Timestamp(start),
                duration: Nanos(duration),
                id: SubmissionId::new(submission),
                encoder: EncoderId::new(encoder),
                command_buffer: CommandBufferId::new(command_buffer),
                latency: to_opt([has_latency, latency])?.map(Nanos),
                channel: name(channel, known)?,
                label: id(label, known.labels).map(LabelId)?,
            },
            process: to_opt_process(process, known)?,
            provenance: Provenance {
                gpu: to_opt_name(gpu, known)?,
                depth: u32::try_from(depth).ok()?,
                mapped: flag(mapped)?,
            },
        })
    }
}

impl Columns<7> for EncoderRow {
    fn numbers(&self) -> [u64; 7] {
        let EncoderRow {
            id,
            command_buffer,
            command_buffer_label,
            label,
            cpu_encode,
            process,
        } = *self;
        let [has_time, time] = opt(cpu_encode.map(|time| time.0));
        [
            id.map_or(NO_ID, EncoderId::get),
            command_buffer.map_or(NO_ID, CommandBufferId::get),
            opt_name(command_buffer_label),
            opt_name(label),
            has_time,
            time,
            opt_process(process),
        ]
    }

    fn from_numbers(numbers: [u64; 7], known: Known) -> Option<Self> {
        let [id, command_buffer, command_buffer_label, label, has_time, time, process] = numbers;
        Some(EncoderRow {
            id: EncoderId::new(id),
            command_buffer: CommandBufferId::new(command_buffer),
            command_buffer_label: to_opt_name(command_buffer_label, known)?,
            label: to_opt_name(label, known)?,
            cpu_encode: to_opt([has_time, time])?.map(Nanos),
            process: to_opt_process(process, known)?,
        })
    }
}

impl Columns<3> for ShaderRow {
    fn numbers(&self) -> [u64; 3] {
        let ShaderRow {
            name,
            pipeline,
            process,
        } = *self;
        [opt_name(name), opt_name(pipeline), opt_process(process)]
    }

    fn from_numbers([name, pipeline, process]: [u64; 3], known: Known) -> Option<Self> {
        Some(ShaderRow {
            name: to_opt_name(name, known)?,
            pipeline: to_opt_name(pipeline, known)?,
            process: to_opt_process(process, known)?,
        })
    }
}

impl Columns<6> for ShaderSampleRow {
    fn numbers(&self) -> [u64; 6] {
        let ShaderSampleRow {
            start,
            duration,
            name,
            process,
        } = *self;
        let ([has_start, start], [has_duration, duration]) = (opt(start), opt(duration));
        [
            start,
            has_start,
            has_duration,
            duration,
            opt_name(name),
            opt_process(process),
        ]
    }

    fn from_numbers(numbers: [u64; 6], known: Known) -> Option<Self> {
        let [start, has_start, has_duration, duration, name, process] = numbers;
        Some(ShaderSampleRow {
            start: to_opt([has_start, start])?,
            duration: to_opt([has_duration, duration])?,
            name: to_opt_name(name, known)?,
            process: to_opt_process(process, known)?,
        })
    }
}

impl Columns<6> for StateRow {
    fn numbers(&self) -> [u64; 6] {
        let StateRow {
            start,
            duration,
            state,
            induced,
        } = *self;
        let ([has_start, start], [has_duration, duration]) = (opt(start), opt(duration));
        [
            start,
            has_start,
            has_duration,
            duration,
            opt_name(state),
            u64::from(induced),
        ]
    }

    fn from_numbers(numbers: [u64; 6], known: Known) -> Option<Self> {
        let [start, has_start, has_duration, duration, state, induced] = numbers;
        Some(StateRow {
            start: to_opt([has_start, start])?,
            duration: to_opt([has_duration, duration])?,
            state: to_opt_name(state, known)?,
            induced: flag(induced)?,
        })
    }
}

fn signpost(signpost: &Signpost) -> [u64; 5] {
    let Signpost {
        name,
        subsystem,
        category,
        identifier,
    } = *signpost;
    let [has_identifier, identifier] = opt(identifier);
    [
        opt_name(name),
        opt_name(subsystem),
        opt_name(category),
        has_identifier,
        identifier,
    ]
}

fn to_signpost(numbers: [u64; 5], known: Known) -> Option<Signpost> {
    let [name, subsystem, category, has_identifier, identifier] = numbers;
    Some(Signpost {
        name: to_opt_name(name, known)?,
        subsystem: to_opt_name(subsystem, known)?,
        category: to_opt_name(category, known)?,
        identifier: to_opt([has_identifier, identifier])?,
    })
}

impl Columns<11> for SignpostEvent {
    fn numbers(&self) -> [u64; 11] {
        let SignpostEvent {
            time,
            kind,
            scope,
            signpost: of,
            process,
            thread,
        } = self;
        let [has_time, time] = opt(*time);
        let kind = match kind {
            EventKind::End => 0,
            EventKind::Begin => 1,
            EventKind::Point => 2,
        };
        let scope = match scope {
            Scope::Thread => 0,
            Scope::Process => 1,
            Scope::System => 2,
        };
        let [a, b, c, d, e] = signpost(of);
        [
            time,
            has_time,
            kind,
            scope,
            a,
            b,
            c,
            d,
            e,
            opt_process(*process),
            opt_name(*thread),
        ]
    }

    fn from_numbers(numbers: [u64; 11], known: Known) -> Option<Self> {
        let [time, has_time, kind, scope, a, b, c, d, e, process, thread] = numbers;
        Some(SignpostEvent {
            time: to_opt([has_time, time])?,
            kind: match kind {
                0 => EventKind::End,
                1 => EventKind::Begin,
                2 => EventKind::Point,
                _ => return None,
            },
            scope: match scope {
                0 => Scope::Thread,
                1 => Scope::Process,
                2 => Scope::System,
                _ => return None,
            },
            signpost: to_signpost([a, b, c, d, e], known)?,
            process: to_opt_process(process, known)?,
            thread: to_opt_name(thread, known)?,
        })
    }
}

impl Columns<10> for SignpostInterval {
    fn numbers(&self) -> [u64; 10] {
        let SignpostInterval {
            start,
            duration,
            signpost: of,
            process,
        } = self;
        let ([has_start, start], [has_duration, duration]) = (opt(*start), opt(*duration));
        let [a, b, c, d, e] = signpost(of);
        [
            start,
            has_start,
            has_duration,
            duration,
            a,
            b,
            c,
            d,
            e,
            opt_process(*process),
        ]
    }

    fn from_numbers(numbers: [u64; 10], known: Known) -> Option<Self> {
        let [start, has_start, has_duration, duration, a, b, c, d, e, process] = numbers;
        Some(SignpostInterval {
            start: to_opt([has_start, start])?,
            duration: to_opt([has_duration, duration])?,
            signpost: to_signpost([a, b, c, d, e], known)?,
            process: to_opt_process(process, known)?,
        })
    }
}

impl Columns<3> for Label {
    fn numbers(&self) -> [u64; 3] {
        match self {
            Label::NoEncoder => [0, 0, 0],
            Label::Ambiguous => [0, 0, 1],
            Label::Known {
                command_buffer,
                encoder,
                coalesced,
            } => [
                u64::from(encoder.0) + 1,
                u64::from(command_buffer.0),
                u64::from(*coalesced),
            ],
        }
    }

    fn from_numbers(numbers: [u64; 3], known: Known) -> Option<Self> {
        match numbers {
            [0, 0, 0] => Some(Label::NoEncoder),
            [0, 0, 1] => Some(Label::Ambiguous),
            [encoder, command_buffer, coalesced] => Some(Label::Known {
                command_buffer: name(command_buffer, known)?,
                encoder: name(encoder.checked_sub(1)?, known)?,
                coalesced: flag(coalesced)?,
            }),
        }
    }
}
