//! What a profile says of each name or call path: calls, host time, GPU time, bytes, throughput.
//!
//! GPU time belongs to command buffers, and through them to every scope and stage around them: `total` is the sum,
//! `busy` the length of the union. A name inside itself counts once. Host time is told twice, `total` and `self`, so
//! that stages inside a stage are not added to it. A scope's own metric speaks for all below it; without one it is the
//! sum of those below; never both. Throughput is by GPU busy time, and absent when any command buffer of the row lacks
//! its time, because its work would count and its time would not.

use std::collections::HashMap;
use std::sync::Arc;

use super::event::{Category, Event, EventIndex};
use super::metrics::Metrics;
use super::profile::Profile;
use super::runtime::{EXECUTE_TOTAL, PREPARED_DISPATCH};
use super::table;
use crate::measure::union_length;
use crate::model::{Nanos, Timestamp, Window};

/// What makes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The name of an event, with its kernel.
    Name,
    /// The same with all scopes around it.
    CallPath,
}

impl GroupBy {
    /// `name` or `call_path`.
    pub fn name(self) -> &'static str {
        match self {
            GroupBy::Name => "name",
            GroupBy::CallPath => "call_path",
        }
    }
}

/// How a launch of the runtime was made. Rows of both kinds are never added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// With compiling, buffers and reading back.
    OneShot,
    /// With nothing but the dispatch.
    Prepared,
}

impl Mode {
    /// `one_shot` or `prepared`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::OneShot => "one_shot",
            Mode::Prepared => "prepared",
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Average {
    /// Its scopes and, last, its own name; only the name when grouped by it.
    pub key: Vec<Arc<str>>,
    /// What kind of time it is.
    pub category: Category,
    /// How the runtime launched it.
    pub mode: Option<Mode>,
    /// Events.
    pub calls: u64,
    /// Time on the host.
    pub cpu_total: Nanos,
    /// The same without what was recorded inside, on the same thread.
    pub cpu_self: Nanos,
    /// Mean host time of a call, ns.
    pub cpu_avg: f64,
    /// Command buffers at or below it with a GPU time.
    pub timed: u64,
    /// Command buffers at or below it without one.
    pub untimed: u64,
    /// Sum of their GPU times; `None` when there is none.
    pub gpu_total: Option<Nanos>,
    /// Length of their union.
    pub gpu_busy: Option<Nanos>,
    /// Mean GPU time of a call that has some, ns.
    pub gpu_avg: Option<f64>,
    /// Bytes that went in; `None` when no event says.
    pub input_bytes: Option<u64>,
    /// Bytes that came out.
    pub output_bytes: Option<u64>,
    /// Work: its own, else that below it.
    pub metrics: Metrics,
}

impl Average {
    /// Name or path as one text.
    pub fn label(&self) -> String {
        super::event::joined(self.key.iter().map(|name| &**name))
    }

    /// GFLOP/s by GPU busy time.
    pub fn gflops(&self) -> Option<f64> {
        self.rate("flops")
    }

    /// GB/s by GPU busy time.
    pub fn gigabytes_per_second(&self) -> Option<f64> {
        self.rate("bytes")
    }

    /// Amount per ns, which is 10^9 of it per second.
    fn rate(&self, metric: &str) -> Option<f64> {
        let amount = self.metrics.get(metric)?;
        let busy = self.gpu_busy.filter(|busy| busy.0 > 0 && self.untimed == 0)?;
        Some(amount / busy.0 as f64)
    }
}

/// A column that rows can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// `name`, ascending; every other column descends.
    Name,
    /// `calls`.
    Calls,
    /// `cpu_total_us`.
    CpuTotal,
    /// `cpu_self_us`.
    CpuSelf,
    /// `cpu_avg_us`.
    CpuAvg,
    /// `gpu_total_us`.
    GpuTotal,
    /// `gpu_busy_us`.
    GpuBusy,
    /// `gpu_avg_us`.
    GpuAvg,
    /// `input_bytes`.
    InputBytes,
    /// `output_bytes`.
    OutputBytes,
    /// `gflops`.
    Gflops,
    /// `gbps`.
    GigabytesPerSecond,
}

impl Column {
    /// Every column, in the order of the table.
    pub const ALL: [Column; 12] = [
        Column::Name,
        Column::Calls,
        Column::CpuTotal,
        Column::CpuSelf,
        Column::CpuAvg,
        Column::GpuTotal,
        Column::GpuBusy,
        Column::GpuAvg,
        Column::InputBytes,
        Column::OutputBytes,
        Column::Gflops,
        Column::GigabytesPerSecond,
    ];

    /// Its name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Column::Name => "name",
            Column::Calls => "calls",
            Column::CpuTotal => "cpu_total_us",
            Column::CpuSelf => "cpu_self_us",
            Column::CpuAvg => "cpu_avg_us",
            Column::GpuTotal => "gpu_total_us",
            Column::GpuBusy => "gpu_busy_us",
            Column::GpuAvg => "gpu_avg_us",
            Column::InputBytes => "input_bytes",
            Column::OutputBytes => "output_bytes",
            Column::Gflops => "gflops",
            Column::GigabytesPerSecond => "gbps",
        }
    }

    /// The value of a row, in the column's unit; `None` for the name, and for what was not measured.
    pub fn value(self, row: &Average) -> Option<f64> {
        let us = |ns: Nanos| ns.0 as f64 / 1e3;
        let bytes = |bytes: u64| bytes as f64;
        match self {
            Column::Name => None,
            Column::Calls => Some(row.calls as f64),
            Column::CpuTotal => Some(us(row.cpu_total)),
            Column::CpuSelf => Some(us(row.cpu_self)),
            Column::CpuAvg => Some(row.cpu_avg / 1e3),
            Column::GpuTotal => row.gpu_total.map(us),
            Column::GpuBusy => row.gpu_busy.map(us),
            Column::GpuAvg => row.gpu_avg.map(|ns| ns / 1e3),
            Column::InputBytes => row.input_bytes.map(bytes),
            Column::OutputBytes => row.output_bytes.map(bytes),
            Column::Gflops => row.gflops(),
            Column::GigabytesPerSecond => row.gigabytes_per_second(),
        }
    }
}

/// The rows of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyAverages {
    /// What made them.
    pub by: GroupBy,
    /// In the order in which they were first seen, or as they were sorted.
    pub rows: Vec<Average>,
}

impl KeyAverages {
    /// The same with the largest value of a column first, what was not measured last; equal ones by name.
    #[must_use]
    pub fn sorted(mut self, column: Column) -> KeyAverages {
        self.rows.sort_by(|x, y| {
            let value = |row: &Average| column.value(row).unwrap_or(f64::NEG_INFINITY);
            value(y)
                .total_cmp(&value(x))
                .then_with(|| x.key.cmp(&y.key))
                .then_with(|| x.mode.cmp(&y.mode))
        });
        self
    }
}

impl KeyAverages {
    /// The rows as a table for a terminal.
    pub fn table(&self) -> String {
        table::averages(self)
    }
}

/// What is around each event, and what belongs to whom.
pub(super) struct Family<'p> {
    events: &'p [Event],
    /// Host time without what was recorded inside, by event.
    own: Vec<Nanos>,
}

impl<'p> Family<'p> {
    pub(super) fn new(profile: &'p Profile) -> Family<'p> {
        let events = profile.events();
        let mut inside: Vec<Vec<(u64, u64)>> = vec![Vec::new(); events.len()];
        for event in events {
            let parent = event
                .parent
                .and_then(|at| Some((events.get(at.get())?, inside.get_mut(at.get())?)));
            if let Some((parent, inside)) = parent.filter(|(parent, _)| parent.thread == event.thread) {
                let end = event.end.min(parent.end);
                if event.start < end {
                    inside.push((event.start.0, end.0));
                }
            }
        }
        let own = events.iter().zip(&inside).map(|(event, inside)| {
            let window = Window {
                from: Timestamp(event.start.0),
                to: Timestamp(event.end.0),
            };
            Nanos(event.cpu().0.saturating_sub(union_length(inside, window).0))
        });
        Family {
            events,
            own: own.collect(),
        }
    }

    /// The event and what is around it, innermost first. A parent always begins before its children.
    fn line(&self, at: usize) -> impl Iterator<Item = (usize, &'p Event)> {
        let mut next = Some(at);
        std::iter::from_fn(move || {
            let here = next?;
            let event = self.events.get(here)?;
            next = event.parent.map(EventIndex::get).filter(|parent| *parent < here);
            Some((here, event))
        })
    }

    fn mode(&self, at: usize) -> Option<Mode> {
        self.line(at).find_map(|(_, event)| match &*event.name {
            EXECUTE_TOTAL if event.category == Category::Runtime => Some(Mode::OneShot),
            PREPARED_DISPATCH if event.category == Category::Runtime => Some(Mode::Prepared),
            _ => None,
        })
    }

    /// The work of each event: its own, and for what it does not name the sum of that inside.
    fn work(&self) -> Vec<Metrics> {
        let mut work: Vec<Metrics> = self.events.iter().map(|event| event.metrics.clone()).collect();
        // What stands inside comes later, so it is whole when it is handed up.
        for (at, event) in self.events.iter().enumerate().rev() {
            let Some(parent) = event.parent.map(EventIndex::get).filter(|parent| *parent < at) else {
                continue;
            };
            let below = work.get(at).cloned().unwrap_or_default();
            if let (Some(sum), Some(parent)) = (work.get_mut(parent), self.events.get(parent)) {
                sum.add_unless(&below, &parent.metrics);
            }
        }
        work
    }

    /// The work of each event that no event around it speaks for: these add up.
    pub(super) fn own_work(&self) -> Vec<Metrics> {
        let own = |(at, event): (usize, &Event)| {
            let mut own = event.metrics.clone();
            for (_, around) in self.line(at).skip(1) {
                own.take_out(&around.metrics);
            }
            own
        };
        self.events.iter().enumerate().map(own).collect()
    }

    pub(super) fn own_cpu(&self, at: usize) -> Nanos {
        self.own.get(at).copied().unwrap_or_default()
    }
}

/// What tells rows apart.
type RowKey = (Vec<Arc<str>>, Category, Option<Mode>);

/// What a row gathers.
#[derive(Default)]
struct Gathered {
    spans: Vec<(u64, u64)>,
    untimed: u64,
    /// Outermost events that have GPU time, each as often as it has some.
    callers: Vec<usize>,
}

/// The rows of a profile.
pub(super) fn key_averages(profile: &Profile, by: GroupBy) -> KeyAverages {
    let family = Family::new(profile);
    let mut rows: Vec<Average> = Vec::new();
    let mut places: HashMap<RowKey, usize> = HashMap::new();
    let mut row_of: Vec<usize> = Vec::with_capacity(family.events.len());
    for (at, event) in family.events.iter().enumerate() {
        let mut key: Vec<Arc<str>> = match by {
            GroupBy::Name => Vec::new(),
            GroupBy::CallPath => event.path.frames().to_vec(),
        };
        key.push(event.frame());
        let mode = match event.category {
            Category::Scope => None,
            _ => family.mode(at),
        };
        let place = *places.entry((key.clone(), event.category, mode)).or_insert_with(|| {
            rows.push(Average {
                key,
                category: event.category,
                mode,
                calls: 0,
                cpu_total: Nanos(0),
                cpu_self: Nanos(0),
                cpu_avg: 0.0,
                timed: 0,
                untimed: 0,
                gpu_total: None,
                gpu_busy: None,
                gpu_avg: None,
                input_bytes: None,
                output_bytes: None,
                metrics: Metrics::new(),
            });
            rows.len() - 1
        });
        row_of.push(place);
    }
    let work = family.work();
    let mut gathered: Vec<Gathered> = rows.iter().map(|_| Gathered::default()).collect();
    for (at, event) in family.events.iter().enumerate() {
        let row_of = |at: usize| row_of.get(at).copied().unwrap_or(usize::MAX);
        let own_row = row_of(at);
        let outermost = family.line(at).skip(1).all(|(around, _)| row_of(around) != own_row);
        if let Some(row) = rows.get_mut(own_row) {
            row.calls += 1;
            row.cpu_self.0 += family.own_cpu(at).0;
            if outermost {
                row.cpu_total.0 += event.cpu().0;
                add(&mut row.input_bytes, event.input_bytes);
                add(&mut row.output_bytes, event.output_bytes);
                if let Some(work) = work.get(at) {
                    row.metrics.add_unless(work, &Metrics::new());
                }
            }
        }
        let Some(gpu) = &event.gpu else { continue };
        // Every row around it, each once: for that, the outermost event of each.
        let mut around: Vec<(usize, usize)> = family.line(at).map(|(at, _)| (row_of(at), at)).collect();
        around.sort_unstable();
        around.dedup_by_key(|(row, _)| *row);
        for (row, outermost) in around {
            let Some(gathered) = gathered.get_mut(row) else {
                continue;
            };
            match gpu.span {
                Ok(span) => {
                    gathered.spans.push((span.start.0, span.end.0));
                    gathered.callers.push(outermost);
                }
                Err(_) => gathered.untimed += 1,
            }
        }
    }
    for (row, mut gathered) in rows.iter_mut().zip(gathered) {
        row.cpu_avg = row.cpu_total.0 as f64 / row.calls.max(1) as f64;
        row.untimed = gathered.untimed;
        row.timed = gathered.spans.len() as u64;
        if row.timed > 0 {
            let total: u64 = gathered.spans.iter().map(|(start, end)| end - start).sum();
            row.gpu_total = Some(Nanos(total));
            row.gpu_busy = Some(busy(&gathered.spans));
            gathered.callers.sort_unstable();
            gathered.callers.dedup();
            row.gpu_avg = Some(total as f64 / gathered.callers.len().max(1) as f64);
        }
    }
    KeyAverages { by, rows }
}

/// Length of the union.
pub(super) fn busy(spans: &[(u64, u64)]) -> Nanos {
    let everything = Window {
        from: Timestamp(0),
        to: Timestamp(u64::MAX),
    };
    union_length(spans, everything)
}

fn add(sum: &mut Option<u64>, bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        *sum = Some(sum.unwrap_or(0).saturating_add(bytes));
    }
}
