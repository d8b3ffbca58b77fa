//! One run's tables as typed rows: what is kept of each schema, and how points are joined to the submission map.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

use super::pairing::Pairing;
use super::submission_map::{Mapping, SubmissionMap};
use super::timing::{Measured, Provenance, TimingTable};
use crate::error::{Error, Result};
use crate::model::{Label, LabelId, NameId, Nanos, Reason, Submission, Timestamp};
use crate::tables::encoders::EncoderRow;
use crate::tables::execution_points::PointRow;
use crate::tables::gpu_info::GpuRow;
use crate::tables::gpu_intervals::IntervalRow;
use crate::tables::shaders::{ShaderRow, ShaderSampleRow};
use crate::tables::signposts::{self, SignpostEvent, SignpostInterval};
use crate::tables::states::{self, StateRow};
use crate::tables::submission_map::MapRow;
use crate::tables::{Renumbered, Table, Texts};
use crate::xml::{BlockRows, Blocks, ExportReader, NotSplit, Schema};

/// One run's tables.
#[derive(Debug, Clone, Default)]
pub struct RunTables {
    /// The run's number.
    pub number: u64,
    /// Every schema that was seen: nodes and rows.
    pub seen: BTreeMap<String, Seen>,
    /// `metal-gpu-intervals`.
    pub intervals: Option<TimingTable>,
    /// `metal-gpu-execution-points`, joined to the map where there is one.
    pub points: Option<TimingTable>,
    /// Whether the submission map is there.
    pub has_map: bool,
    /// `metal-application-encoders-list`.
    pub encoders: Option<Vec<EncoderRow>>,
    /// `metal-shader-profiler-shader-list`.
    pub shaders: Option<Vec<ShaderRow>>,
    /// `metal-shader-profiler-intervals`.
    pub shader_samples: Option<Vec<ShaderSampleRow>>,
    /// GPU name, from `metal-gpu-info`.
    pub gpu: Option<NameId>,
    /// Thermal states.
    pub thermal: Vec<StateRow>,
    /// GPU performance states.
    pub performance: Vec<StateRow>,
    /// Events of `os-signpost`, of all its instances; `None` without the table, or when they are not asked for.
    pub signpost_events: Option<Vec<SignpostEvent>>,
    /// Intervals of [`signposts::PAIRED`].
    pub signpost_intervals: Option<Vec<SignpostInterval>>,
    pub(super) pairing: Pairing,
    pub(super) map: SubmissionMap,
}

/// How often a schema was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Nodes (instances) of the schema.
    pub nodes: u64,
    /// Rows of all of them.
    pub rows: u64,
}

pub(super) fn skip<R: Read>(reader: &mut ExportReader<R>) -> Result<u64> {
    let mut rows = 0;
    while reader.read_row()?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

/// Rows of a table that one thread reads before others help it: they bring the element names.
const FIRST_ROWS: u64 = 10;

/// Reads the rest of a table into `push`; on several threads when `blocks` says so.
fn each<R: Read + Send, T: Table + Send>(
    reader: &mut ExportReader<R>,
    schema: &Schema,
    texts: &mut Texts,
    blocks: Option<Blocks>,
    mut push: impl FnMut(T, &mut Texts) + Send,
) -> Result<u64> {
    let columns = T::bind(schema)?;
    let mut rows = 0;
    // Memory of blocks that were taken: as large as a block is, it would come from the system and go back each time.
    let spare = Mutex::new(Vec::new());
    let spare = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(row) = reader.read_row()? {
        let typed = T::read(&row, &columns, texts)?;
        rows += 1;
        push(typed, texts);
        if let Some(blocks) = blocks.filter(|_| rows == FIRST_ROWS) {
            let parse = |rows: &mut BlockRows<'_>| {
                let mut texts = Texts::default();
                let mut typed: Vec<T> = spare().pop().unwrap_or_default();
                typed.reserve(rows.len());
                while let Some(row) = rows.next_row() {
                    typed.push(T::read(&row, &columns, &mut texts).ok()?);
                }
                Some((typed, texts))
            };
            let take = |(mut typed, own): (Vec<T>, Texts)| {
                let ids = texts.take_over(&own);
                let same = ids.is_same();
                for mut row in typed.drain(..) {
                    if !same {
                        row.renumber(&ids);
                    }
                    push(row, texts);
                }
                spare().push(typed);
            };
            rows += reader.split(blocks, parse, take).map_err(|NotSplit| not_split())?;
        }
    }
    Ok(rows)
}

/// Never told: the file is read by one thread, which says what is wrong, if anything is.
fn not_split() -> Error {
    Error::unfit("the table was not read on several threads")
}

impl RunTables {
    pub(super) fn read_table<R: Read + Send>(
        &mut self,
        reader: &mut ExportReader<R>,
        schema: &Schema,
        texts: &mut Texts,
        blocks: Option<Blocks>,
    ) -> Result<u64> {
        match schema.name() {
            IntervalRow::SCHEMA => {
                let none = texts.intern_label(Label::NoEncoder);
                let unnamed = texts.names.intern("(no channel)");
                let table = self.intervals.get_or_insert_default();
                table.has_ids |= schema.opt_column("gpu-submission-id").is_some();
                let rows = each(reader, schema, texts, blocks, |row, _| {
                    table.push_interval(&row, none, unnamed)
                })?;
                table.rows += rows;
                Ok(rows)
            }
            PointRow::SCHEMA => {
                let none = texts.intern_label(Label::NoEncoder);
                let table = self.points.get_or_insert_default();
                table.has_ids = true;
                let pairing = &mut self.pairing;
                let rows = each(reader, schema, texts, blocks, |row, texts| {
                    pairing.push(&row, table, none, texts)
                })?;
                table.rows += rows;
                Ok(rows)
            }
            MapRow::SCHEMA => {
                self.has_map = true;
                let map = &mut self.map;
                each(reader, schema, texts, blocks, |row: MapRow, _| {
                    if let Some(id) = row.submission {
                        let mapping = Mapping {
                            encoder: row.encoder,
                            command_buffer: row.command_buffer,
                            process: row.process,
                        };
                        map.push(id, mapping);
                    }
                })
            }
            EncoderRow::SCHEMA => {
                let encoders = self.encoders.get_or_insert_default();
                each(reader, schema, texts, blocks, |row, _| encoders.push(row))
            }
            ShaderRow::SCHEMA => {
                let shaders = self.shaders.get_or_insert_default();
                each(reader, schema, texts, blocks, |row, _| shaders.push(row))
            }
            ShaderSampleRow::SCHEMA => {
                let samples = self.shader_samples.get_or_insert_default();
                each(reader, schema, texts, blocks, |row, _| samples.push(row))
            }
            GpuRow::SCHEMA => {
                let gpu = &mut self.gpu;
                each(reader, schema, texts, blocks, |row: GpuRow, _| *gpu = gpu.or(row.name))
            }
            states::THERMAL => {
                let thermal = &mut self.thermal;
                each(reader, schema, texts, blocks, |row, _| thermal.push(row))
            }
            states::PERFORMANCE => {
                let performance = &mut self.performance;
                each(reader, schema, texts, blocks, |row, _| performance.push(row))
            }
            SignpostEvent::SCHEMA => {
                let events = self.signpost_events.get_or_insert_default();
                each(reader, schema, texts, blocks, |row, _| events.push(row))
            }
            name if signposts::PAIRED.contains(&name) => {
                let intervals = self.signpost_intervals.get_or_insert_default();
                each(reader, schema, texts, blocks, |row, _| intervals.push(row))
            }
            _ => skip(reader),
        }
    }

    /// Takes over the tables of another file; no table is in both.
    pub(super) fn absorb(&mut self, other: RunTables) {
        fn append<T>(own: &mut Vec<T>, other: Vec<T>) {
            if own.is_empty() {
                *own = other;
            } else {
                own.extend(other);
            }
        }
        for (schema, seen) in other.seen {
            let own = self.seen.entry(schema).or_default();
            own.nodes += seen.nodes;
            own.rows += seen.rows;
        }
        self.intervals = self.intervals.take().or(other.intervals);
        if let Some(points) = other.points {
            self.points = Some(points);
            self.pairing = other.pairing;
        }
        if other.has_map {
            self.has_map = true;
            self.map = other.map;
        }
        self.encoders = self.encoders.take().or(other.encoders);
        self.shaders = self.shaders.take().or(other.shaders);
        self.shader_samples = self.shader_samples.take().or(other.shader_samples);
        self.signpost_events = self.signpost_events.take().or(other.signpost_events);
        // Their schema has two names.
        if let Some(intervals) = other.signpost_intervals {
            append(self.signpost_intervals.get_or_insert_default(), intervals);
        }
        self.gpu = self.gpu.or(other.gpu);
        append(&mut self.thermal, other.thermal);
        append(&mut self.performance, other.performance);
    }

    /// Gives names, processes and labels the ids that they have among those of other files.
    pub(super) fn renumber(&mut self, ids: &Renumbered) {
        if ids.is_same() {
            return;
        }
        fn each<T: Table>(rows: &mut [T], ids: &Renumbered) {
            rows.iter_mut().for_each(|row| row.renumber(ids));
        }
        for table in [&mut self.intervals, &mut self.points].into_iter().flatten() {
            table.renumber(ids);
        }
        ids.name(self.pairing.channels_mut());
        self.map.renumber(ids);
        self.encoders.iter_mut().for_each(|rows| each(rows, ids));
        self.shaders.iter_mut().for_each(|rows| each(rows, ids));
        self.shader_samples.iter_mut().for_each(|rows| each(rows, ids));
        self.signpost_events.iter_mut().for_each(|rows| each(rows, ids));
        self.signpost_intervals.iter_mut().for_each(|rows| each(rows, ids));
        ids.name(&mut self.gpu);
        each(&mut self.thermal, ids);
        each(&mut self.performance, ids);
    }

    /// Ends pairing and gives every pair its encoder, command buffer and process.
    pub(super) fn join_map(&mut self) {
        let mut map = std::mem::take(&mut self.map).into_lookup();
        let pairing = std::mem::take(&mut self.pairing);
        let Some(points) = &mut self.points else { return };
        pairing.finish(points);
        points.map(|submission| {
            let mapping = submission.id.and_then(|id| map.get(id));
            if let Some(mapping) = mapping {
                submission.encoder = mapping.encoder;
                submission.command_buffer = mapping.command_buffer;
            }
            (mapping.and_then(|mapping| mapping.process), mapping.is_some())
        });
    }
}

impl TimingTable {
    fn push_interval(&mut self, row: &IntervalRow, no_label: LabelId, no_channel: NameId) {
        let (Some(start), Some(duration)) = (row.start, row.duration) else {
            self.left_out.add(Reason::Invalid, 1, None);
            return;
        };
        self.push(Measured {
            submission: Submission {
                start: Timestamp(start),
                duration: Nanos(duration),
                id: row.submission,
                encoder: row.encoder,
                command_buffer: row.command_buffer,
                latency: row.latency,
                channel: row.channel.unwrap_or(no_channel),
                label: row.label.unwrap_or(no_label),
            },
            process: row.process,
            provenance: Provenance {
                gpu: row.gpu,
                depth: row.depth,
                mapped: true,
            },
        });
    }
}
