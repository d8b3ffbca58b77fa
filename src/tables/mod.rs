//! Meaning: rows of cells become one typed struct per schema.
//!
//! Each table is one file with its columns, bound by mnemonic and never by position. [`Texts`] keeps each name,
//! process and label once, so a row holds small numbers. Adding a table: its file here, its types in [`TYPES`]
//! if they are new, and its arms in [`crate::recording::RunTables`].

pub mod contents;
pub mod encoders;
pub mod execution_points;
pub mod gpu_info;
pub mod gpu_intervals;
pub mod shaders;
pub mod signposts;
pub mod states;
pub mod submission_map;

use hashbrown::HashMap;

use crate::error::Result;
use crate::model::{Label, LabelId, NameId, Names, Process};
use crate::xml::{ColumnIndex, Row, Schema};

/// A schema that the tool understands.
pub trait Table: Sized {
    /// Its name in an export.
    const SCHEMA: &'static str;
    /// Places of the columns that are read.
    type Columns: Sync;

    /// Finds the columns.
    ///
    /// # Errors
    /// A column without which the table means nothing is missing.
    fn bind(schema: &Schema) -> Result<Self::Columns>;

    /// Reads a row.
    ///
    /// # Errors
    /// A number that is no number.
    fn read(row: &Row<'_>, columns: &Self::Columns, texts: &mut Texts) -> Result<Self>;

    /// Gives names, processes and labels the ids that they have among texts read before.
    fn renumber(&mut self, ids: &Renumbered);
}

/// Engineering types of all columns that any table here reads; ids of other types are not kept.
pub const TYPES: &[&str] = &[
    "start-time",
    "duration",
    "gpu-channel-name",
    "metal-nesting-level",
    "formatted-label",
    "process",
    "metal-device-name",
    "metal-command-buffer-id",
    "uint64",
    "uint32",
    "metal-object-label",
    "string",
    "thermal-state",
    "gpu-performance-state",
    "boolean",
];

/// The tables that `compare` and `report` read, in the order in which they are asked for.
pub const NEEDED: &[&str] = &[
    gpu_intervals::IntervalRow::SCHEMA,
    execution_points::PointRow::SCHEMA,
    submission_map::MapRow::SCHEMA,
    encoders::EncoderRow::SCHEMA,
    shaders::ShaderRow::SCHEMA,
    shaders::ShaderSampleRow::SCHEMA,
    gpu_info::GpuRow::SCHEMA,
    states::THERMAL,
    states::PERFORMANCE,
];

/// Tables that are read besides [`NEEDED`] when a signpost is the window: they can be large.
pub const SIGNPOSTS: &[&str] = &[
    signposts::SignpostEvent::SCHEMA,
    signposts::PAIRED[0],
    signposts::PAIRED[1],
];

/// Engineering types of their columns, besides [`TYPES`].
pub const SIGNPOST_TYPES: &[&str] = &[
    "event-time",
    "event-type",
    "thread",
    "os-signpost-identifier",
    "signpost-name",
    "subsystem",
    "category",
];

/// A process in [`Texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub(crate) u32);

/// Names, processes and labels of one recording, each once.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// Texts of labels and channels.
    pub names: Names,
    processes: Vec<Process>,
    process_index: HashMap<Process, ProcessId>,
    labels: Vec<Label>,
    label_index: HashMap<Label, LabelId>,
    /// What cells of the current table stand for, by their key and kind: asked several times a row.
    seen: hashbrown::HashMap<(u64, u8), Seen>,
}

#[derive(Debug, Clone, Copy)]
enum Seen {
    Name(NameId),
    Process(ProcessId),
    Label(LabelId),
}

impl Texts {
    /// Forgets the cell keys of the table before: they hold within one document only.
    pub fn begin_table(&mut self) {
        self.seen.clear();
    }

    /// A name cell; `None` for NULL.
    pub fn name(&mut self, row: &Row<'_>, at: ColumnIndex) -> Option<NameId> {
        let key = (row.key(at), 0);
        if let Some(Seen::Name(id)) = self.seen.get(&key) {
            return Some(*id);
        }
        let id = self.names.intern(&row.text(at)?);
        self.seen.insert(key, Seen::Name(id));
        Some(id)
    }

    /// A process cell; `None` for NULL.
    ///
    /// # Errors
    /// A pid that is no number.
    pub fn process(&mut self, row: &Row<'_>, at: ColumnIndex) -> Result<Option<ProcessId>> {
        let key = (row.key(at), 1);
        if let Some(Seen::Process(id)) = self.seen.get(&key) {
            return Ok(Some(*id));
        }
        let Some(cell) = row.process(at)? else { return Ok(None) };
        if cell.name.is_empty() && cell.pid.is_none() {
            return Ok(None);
        }
        let id = self.intern_process(Process {
            name: cell.name.to_owned(),
            pid: cell.pid,
        });
        self.seen.insert(key, Seen::Process(id));
        Ok(Some(id))
    }

    /// The id of a process, new or known.
    pub fn intern_process(&mut self, process: Process) -> ProcessId {
        if let Some(id) = self.process_index.get(&process) {
            return *id;
        }
        let id = ProcessId(u32::try_from(self.processes.len()).unwrap_or(u32::MAX));
        self.processes.push(process.clone());
        self.process_index.insert(process, id);
        id
    }

    /// Name and pid of a process.
    pub fn get_process(&self, id: ProcessId) -> Option<&Process> {
        usize::try_from(id.0).ok().and_then(|at| self.processes.get(at))
    }

    /// Every process, by id.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessId, &Process)> {
        (0u32..).map(ProcessId).zip(&self.processes)
    }

    /// A label cell, through `read` the first time it is met.
    pub fn label(&mut self, key: u64, read: impl FnOnce(&mut Names) -> Label) -> LabelId {
        if let Some(Seen::Label(id)) = self.seen.get(&(key, 2)) {
            return *id;
        }
        let label = read(&mut self.names);
        let id = self.intern_label(label);
        self.seen.insert((key, 2), Seen::Label(id));
        id
    }

    /// The id of a label, new or known.
    pub fn intern_label(&mut self, label: Label) -> LabelId {
        if let Some(id) = self.label_index.get(&label) {
            return *id;
        }
        let id = LabelId(u32::try_from(self.labels.len()).unwrap_or(u32::MAX));
        self.labels.push(label.clone());
        self.label_index.insert(label, id);
        id
    }

    /// The id of a label that is known.
    pub fn label_id(&self, label: &Label) -> Option<LabelId> {
        self.label_index.get(label).copied()
    }

    /// All labels, by id.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }
}

/// The ids that the texts of one file have among those of the files before it.
pub struct Renumbered {
    names: Vec<NameId>,
    processes: Vec<ProcessId>,
    labels: Vec<LabelId>,
}

impl Texts {
    /// Takes over the texts of another file, in their order.
    pub(crate) fn take_over(&mut self, other: &Texts) -> Renumbered {
        let names: Vec<NameId> = other.names.iter().map(|name| self.names.intern(name)).collect();
        let processes = other.processes.iter();
        let processes = processes.map(|process| self.intern_process(process.clone())).collect();
        let mut ids = Renumbered {
            names,
            processes,
            labels: Vec::new(),
        };
        for label in &other.labels {
            let mut label = label.clone();
            if let Label::Known {
                command_buffer,
                encoder,
                ..
            } = &mut label
            {
                ids.name([command_buffer, encoder]);
            }
            ids.labels.push(self.intern_label(label));
        }
        ids
    }
}

impl Renumbered {
    /// Whether every id stays what it is.
    pub(crate) fn is_same(&self) -> bool {
        let counts = || 0u32..;
        self.names.iter().zip(counts()).all(|(id, at)| id.0 == at)
            && self.processes.iter().zip(counts()).all(|(id, at)| id.0 == at)
            && self.labels.iter().zip(counts()).all(|(id, at)| id.0 == at)
    }

    /// The name's id from now on.
    pub(crate) fn name<'i>(&self, id: impl IntoIterator<Item = &'i mut NameId>) {
        for id in id {
            renumber(&self.names, id.0, id);
        }
    }

    /// The process's id from now on.
    pub(crate) fn process<'i>(&self, id: impl IntoIterator<Item = &'i mut ProcessId>) {
        for id in id {
            renumber(&self.processes, id.0, id);
        }
    }

    /// The label's id from now on.
    pub(crate) fn label<'i>(&self, id: impl IntoIterator<Item = &'i mut LabelId>) {
        for id in id {
            renumber(&self.labels, id.0, id);
        }
    }
}

fn renumber<T: Copy>(ids: &[T], old: u32, id: &mut T) {
    if let Some(new) = usize::try_from(old).ok().and_then(|at| ids.get(at)) {
        *id = *new;
    }
}

/// A number in an optional column; `None` when the column or the value is not there.
pub(crate) fn opt_u64(row: &Row<'_>, at: Option<ColumnIndex>) -> Result<Option<u64>> {
    at.map_or(Ok(None), |at| row.opt_u64(at))
}
