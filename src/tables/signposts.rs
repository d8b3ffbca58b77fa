//! `os-signpost`: begins, ends and single events of signposts; and signpost intervals that Instruments paired itself.
//!
//! ```xml
//! <row><event-time …>6303125583</event-time><thread …/><process ref="4"/><event-type …>Begin</event-type><string …>Process</string>
//!   <os-signpost-identifier …>1</os-signpost-identifier><signpost-name …>decode</signpost-name>…<subsystem …/><category …/>…</row>
//! ```
//! Traps: a begin belongs to the end with the same subsystem, category, name and identifier in the same scope (its
//! thread, its process, or the whole system), and one identifier can be used again; a recording has several tables of
//! this schema, cut by subsystem and category, so one event can stand in two of them. The Metal System Trace template
//! records Apple's own signposts only; a program's need the instrument `os_signpost` or `Points of Interest`.

use super::{ProcessId, Renumbered, Table, Texts, opt_u64};
use crate::error::Result;
use crate::model::NameId;
use crate::xml::{ColumnIndex, Row, Schema};

/// Schemas of intervals that Instruments paired, as different versions call them.
pub const PAIRED: [&str; 2] = ["OSSignpostIntervals", "os-signpost-interval"];

/// What an event does to its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Ends it.
    End,
    /// Begins it.
    Begin,
    /// A single event, of no interval.
    Point,
}

/// Within what a begin and its end find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One thread.
    Thread,
    /// One process.
    Process,
    /// The whole system.
    System,
}

/// What tells signposts apart: `os_signpost` pairs by all of it, within a [`Scope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signpost {
    /// `NAME` in the program.
    pub name: Option<NameId>,
    /// Subsystem of its log.
    pub subsystem: Option<NameId>,
    /// Category of its log.
    pub category: Option<NameId>,
    /// Its `os_signpost_id_t`.
    pub identifier: Option<u64>,
}

impl Signpost {
    pub(crate) fn names_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        let names = [&mut self.name, &mut self.subsystem, &mut self.category];
        names.into_iter().flatten()
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignpostEvent {
    /// ns since the recording began; `None`: no usable time.
    pub time: Option<u64>,
    /// Begin, end or neither.
    pub kind: EventKind,
    /// Within what it is paired.
    pub scope: Scope,
    /// Which signpost.
    pub signpost: Signpost,
    /// Its process.
    pub process: Option<ProcessId>,
    /// Its thread, as a text that tells threads apart.
    pub thread: Option<NameId>,
}

/// An interval that Instruments paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignpostInterval {
    /// ns since the recording began.
    pub start: Option<u64>,
    /// Length in ns; `None`: it has no end.
    pub duration: Option<u64>,
    /// Which signpost.
    pub signpost: Signpost,
    /// The process that began it.
    pub process: Option<ProcessId>,
}

struct SignpostColumns {
    name: ColumnIndex,
    subsystem: Option<ColumnIndex>,
    category: Option<ColumnIndex>,
    identifier: Option<ColumnIndex>,
}

impl SignpostColumns {
    fn bind(schema: &Schema) -> Result<Self> {
        Ok(SignpostColumns {
            name: schema.column("name")?,
            subsystem: schema.opt_column("subsystem"),
            category: schema.opt_column("category"),
            identifier: schema.opt_column("identifier"),
        })
    }

    fn read(&self, row: &Row<'_>, texts: &mut Texts) -> Result<Signpost> {
        Ok(Signpost {
            name: texts.name(row, self.name),
            subsystem: self.subsystem.and_then(|at| texts.name(row, at)),
            category: self.category.and_then(|at| texts.name(row, at)),
            identifier: opt_u64(row, self.identifier)?,
        })
    }
}

/// Places of an event's columns.
pub struct EventColumns {
    time: ColumnIndex,
    kind: ColumnIndex,
    process: ColumnIndex,
    scope: Option<ColumnIndex>,
    thread: Option<ColumnIndex>,
    signpost: SignpostColumns,
}

impl Table for SignpostEvent {
    const SCHEMA: &'static str = "os-signpost";
    type Columns = EventColumns;

    fn bind(schema: &Schema) -> Result<EventColumns> {
        Ok(EventColumns {
            time: schema.column("time")?,
            kind: schema.column("event-type")?,
            process: schema.column("process")?,
            scope: schema.opt_column("scope"),
            thread: schema.opt_column("thread"),
            signpost: SignpostColumns::bind(schema)?,
        })
    }

    fn read(row: &Row<'_>, columns: &EventColumns, texts: &mut Texts) -> Result<Self> {
        let text = |at: Option<ColumnIndex>| at.and_then(|at| row.text(at));
        let kind = match text(Some(columns.kind)).as_deref() {
            Some("Begin") => EventKind::Begin,
            Some("End") => EventKind::End,
            _ => EventKind::Point,
        };
        let scope = match text(columns.scope).as_deref() {
            Some("Thread") => Scope::Thread,
            Some("System") => Scope::System,
            // What `os_signpost` takes when the program says nothing.
            _ => Scope::Process,
        };
        Ok(SignpostEvent {
            time: row.time(columns.time)?,
            kind,
            scope,
            signpost: columns.signpost.read(row, texts)?,
            process: texts.process(row, columns.process)?,
            thread: columns.thread.and_then(|at| texts.name(row, at)),
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(self.signpost.names_mut());
        ids.name(&mut self.thread);
        ids.process(&mut self.process);
    }
}

/// Places of an interval's columns.
pub struct IntervalColumns {
    start: ColumnIndex,
    duration: ColumnIndex,
    process: ColumnIndex,
    signpost: SignpostColumns,
}

impl Table for SignpostInterval {
    /// The first of [`PAIRED`]; the other is read by the same code.
    const SCHEMA: &'static str = PAIRED[0];
    type Columns = IntervalColumns;

    fn bind(schema: &Schema) -> Result<IntervalColumns> {
        Ok(IntervalColumns {
            start: schema.column("start")?,
            duration: schema.column("duration")?,
            process: schema.column("process")?,
            signpost: SignpostColumns::bind(schema)?,
        })
    }

    fn read(row: &Row<'_>, columns: &IntervalColumns, texts: &mut Texts) -> Result<Self> {
        Ok(SignpostInterval {
            start: row.time(columns.start)?,
            duration: row.time(columns.duration)?,
            signpost: columns.signpost.read(row, texts)?,
            process: texts.process(row, columns.process)?,
        })
    }

    fn renumber(&mut self, ids: &Renumbered) {
        ids.name(self.signpost.names_mut());
        ids.process(&mut self.process);
    }
}
