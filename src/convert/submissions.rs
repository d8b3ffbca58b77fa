//! A submission as a row of a table: which columns there are, and what a submission has in each. One place for Parquet
//! and CSV; docs/fleet.md says what the columns mean.
//!
//! Texts repeat: a trial has few labels, channels and buckets. So each text is worked out once per trial, and a cell names
//! it by its number; writers keep their own form of each text beside it.

use std::collections::BTreeMap;

use crate::attribution::group::{Key, family_keys, phase_keys};
use crate::attribution::{Buckets, PhaseNames};
use crate::model::{Label, Submission, Timestamp, Trace};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text, of which a trial has few.
    Text,
    /// Whole numbers.
    Number,
    /// Ids: numbers up to 2^64 that nobody adds up, so they are texts in Parquet.
    Id,
    /// Yes or no.
    Flag,
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    /// The trace does not have it.
    Null,
    /// A text of [`Rows::texts`].
    Text(usize),
    /// A number.
    Number(u64),
    /// An id.
    Id(u64),
    /// Yes or no.
    Flag(bool),
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Its name in both formats.
    pub(super) name: &'static str,
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "CSV has no types"))]
    pub(super) kind: Kind,
    /// Whether a submission may have no value.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "CSV has no types"))]
    pub(super) nullable: bool,
    cell: fn(&Rows<'_>, &Submission) -> Cell,
}

impl Column {
    const fn always(name: &'static str, kind: Kind, cell: fn(&Rows<'_>, &Submission) -> Cell) -> Self {
        Column {
            name,
            kind,
            nullable: false,
            cell,
        }
    }

    const fn perhaps(name: &'static str, kind: Kind, cell: fn(&Rows<'_>, &Submission) -> Cell) -> Self {
        Column {
            nullable: true,
            ..Column::always(name, kind, cell)
        }
    }
}

/// Columns of a submission, in their order.
pub(super) const COLUMNS: [Column; 16] = [
    Column::always("process", Kind::Text, |rows, _| Cell::Text(rows.process)),
    Column::perhaps("pid", Kind::Number, |rows, _| {
        rows.trace
            .process
            .pid
            .map_or(Cell::Null, |pid| Cell::Number(pid.into()))
    }),
    Column::always("channel", Kind::Text, |rows, of| {
        Cell::Text(at(&rows.channels, of.channel.0))
    }),
    Column::always("phase", Kind::Text, |rows, of| Cell::Text(rows.label(of).phase)),
    Column::always("encoder_family", Kind::Text, |rows, of| {
        Cell::Text(rows.label(of).family)
    }),
    Column::always("bucket", Kind::Text, |rows, of| {
        let bucket = rows.edges.partition_point(|edge| *edge <= of.duration.0);
        Cell::Text(rows.buckets.get(bucket).copied().unwrap_or_default())
    }),
    Column::perhaps("encoder_label", Kind::Text, |rows, of| {
        rows.label(of).encoder.map_or(Cell::Null, Cell::Text)
    }),
    Column::perhaps("command_buffer_label", Kind::Text, |rows, of| {
        rows.label(of).command_buffer.map_or(Cell::Null, Cell::Text)
    }),
    Column::always("coalesced", Kind::Flag, |rows, of| Cell::Flag(rows.label(of).coalesced)),
    Column::always("start_ns", Kind::Number, |rows, of| {
        Cell::Number(of.start.since(rows.first).0)
    }),
    Column::always("trace_start_ns", Kind::Number, |_, of| Cell::Number(of.start.0)),
    Column::always("duration_ns", Kind::Number, |_, of| Cell::Number(of.duration.0)),
    Column::perhaps("latency_ns", Kind::Number, |_, of| {
        of.latency.map_or(Cell::Null, |latency| Cell::Number(latency.0))
    }),
    Column::perhaps("submission_id", Kind::Id, |_, of| {
        of.id.map_or(Cell::Null, |id| Cell::Id(id.get()))
    }),
    Column::perhaps("encoder_id", Kind::Id, |_, of| {
        of.encoder.map_or(Cell::Null, |id| Cell::Id(id.get()))
    }),
    Column::perhaps("command_buffer_id", Kind::Id, |_, of| {
        of.command_buffer.map_or(Cell::Null, |id| Cell::Id(id.get()))
    }),
];

/// The submissions of a trial as rows.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    trace: &'a Trace,
    /// What `start_ns` counts from.
    first: Timestamp,
    /// Distinct texts of all columns; a cell's text is its place here.
    texts: Vec<&'a str>,
    process: usize,
    labels: Vec<LabelTexts>,
    /// Of a label that the trace does not have.
    no_label: LabelTexts,
    /// By the channel's name id; places of names that are no channel say nothing.
    channels: Vec<usize>,
    edges: &'a [u64],
    buckets: Vec<usize>,
}

/// What a label says in the columns that come from it.
#[derive(Debug, Clone, Copy)]
struct LabelTexts {
    phase: usize,
    family: usize,
    encoder: Option<usize>,
    command_buffer: Option<usize>,
    coalesced: bool,
}

/// Keys of a trace's labels, worked out before its rows, which borrow their texts.
#[derive(Debug)]
pub(super) struct Keys {
    phases: Vec<Key>,
    families: Vec<Key>,
}

impl Keys {
    pub(super) fn new(trace: &Trace, phase_names: &PhaseNames) -> Self {
        Keys {
            phases: phase_keys(trace, phase_names),
            families: family_keys(trace),
        }
    }
}

impl<'a> Rows<'a> {
    pub(super) fn new(trace: &'a Trace, keys: &'a Keys, buckets: &'a Buckets) -> Self {
        let mut texts = Texts::default();
        let process = texts.of(&trace.process.name);
        let label_texts = |texts: &mut Texts<'a>, label: &Label, phase: &'a Key, family: &'a Key| {
            let (encoder, command_buffer) = match label {
                Label::Known {
                    command_buffer,
                    encoder,
                    ..
                } => (
                    Some(texts.of(trace.names.get(*encoder))),
                    Some(texts.of(trace.names.get(*command_buffer))),
                ),
                Label::NoEncoder | Label::Ambiguous => (None, None),
            };
            LabelTexts {
                phase: texts.of(&phase.text),
                family: texts.of(&family.text),
                encoder,
                command_buffer,
                coalesced: phase.coalesced || family.coalesced,
            }
        };
        let keys = keys.phases.iter().zip(&keys.families);
        let labels = trace
            .labels
            .iter()
            .zip(keys)
            .map(|(label, (phase, family))| label_texts(&mut texts, label, phase, family))
            .collect();
        let unknown = texts.of(crate::attribution::group::UNKNOWN);
        let mut channels = Vec::new();
        for submission in &trace.submissions {
            let place = place(submission.channel.0);
            if place >= channels.len() {
                channels.resize(place + 1, usize::MAX);
            }
            if let Some(channel) = channels.get_mut(place).filter(|channel| **channel == usize::MAX) {
                *channel = texts.of(trace.names.get(submission.channel));
            }
        }
        let buckets_texts = buckets.names.iter().map(|name| texts.of(name)).collect();
        Rows {
            trace,
            // A trace is sorted by start.
            first: trace.submissions.first().map_or(trace.window.from, |first| first.start),
            process,
            labels,
            no_label: LabelTexts {
                phase: unknown,
                family: unknown,
                encoder: None,
                command_buffer: None,
                coalesced: false,
            },
            channels,
            edges: &buckets.edges,
            buckets: buckets_texts,
            texts: texts.all,
        }
    }

    /// Every text that a cell can name.
    pub(super) fn texts(&self) -> &[&'a str] {
        &self.texts
    }

    pub(super) fn submissions(&self) -> &'a [Submission] {
        &self.trace.submissions
    }

    /// What a submission of this trial has in a column.
    #[inline]
    pub(super) fn cell(&self, column: &Column, submission: &Submission) -> Cell {
        (column.cell)(self, submission)
    }

    fn label(&self, submission: &Submission) -> &LabelTexts {
        self.labels.get(place(submission.label.0)).unwrap_or(&self.no_label)
    }
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn at(texts: &[usize], number: u32) -> usize {
    texts.get(place(number)).copied().unwrap_or(usize::MAX)
}

/// Distinct texts in the order in which they are met.
#[derive(Debug, Default)]
struct Texts<'a> {
    index: BTreeMap<&'a str, usize>,
    all: Vec<&'a str>,
}

impl<'a> Texts<'a> {
    fn of(&mut self, text: &'a str) -> usize {
        *self.index.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() - 1
        })
    }
}
