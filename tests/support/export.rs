//! Typed rows in, `xctrace export` XML out, streamed to any writer.
//!
//! Three rules of the format make or break a reader, so they are kept exactly:
//! 1. ids count from 1 in document order at the *opening* tag: a parent has a lower id than its children;
//! 2. the first time a (element name, value) pair is met it gets an id, afterwards it is `<name ref="id"/>`, at every
//!    depth and in every column: a process cell may refer into a label of an earlier row;
//! 3. `fmt` is for people (`00:00.787.505`, `8.75 ms`, `0x3498a4df`), the text is the value, NULL is `<sentinel/>`.
//!
//! ```text
//! <row><start-time id="1" fmt="00:00.329.899">329899666</start-time>…<process ref="12"/><sentinel/></row>
//! ```

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// "No value" in unsigned columns.
pub const NONE_64: u64 = u64::MAX;
/// Channel numbers of `metal-gpu-execution-points`.
pub const CHANNEL_VERTEX: u64 = 0x12_3457;
pub const CHANNEL_FRAGMENT: u64 = 0x12_3458;
pub const CHANNEL_COMPUTE: u64 = 0x12_3459;

// ---------------------------------------------------------------------------------------------- schemas

/// Mnemonic, name, engineering type.
pub type Column = (&'static str, &'static str, &'static str);

/// A schema with its columns, and the table number that a recent Xcode gives it (never to be relied on).
#[derive(Clone, Copy, Debug)]
pub struct TableSpec {
    pub schema: &'static str,
    pub table: u32,
    pub columns: &'static [Column],
}

pub const GPU_INTERVALS: TableSpec = TableSpec {
    schema: "metal-gpu-intervals",
    table: 109,
    columns: &[
        ("start", "Creation", "start-time"),
        ("duration", "Duration", "duration"),
        ("channel-name", "Channel Name", "gpu-channel-name"),
        ("frame-number", "Frame", "gpu-frame-number"),
        ("start-latency", "CPU to GPU Latency", "duration"),
        ("event-depth", "Depth", "metal-nesting-level"),
        ("event-label", "Label", "formatted-label"),
        ("state", "State", "gpu-state"),
        ("connection-UUID", "Connection UUID", "connection-uuid64"),
        ("color", "Color", "render-buffer-depth"),
        ("process", "Process", "process"),
        ("gpu", "Metal Device", "metal-device-name"),
        ("channel-subtitle", "Channel Subtitle", "metal-object-label"),
        ("iosurface-accesses", "IOSurface Accesses", "formatted-label"),
        ("bytes", "Bytes", "size-in-bytes"),
        ("cmdbuffer-id", "Commmand Buffer Id", "metal-command-buffer-id"),
        ("encoder-id", "Encoder Id", "metal-command-buffer-id"),
        ("gpu-submission-id", "GPU Submission Id", "uint64"),
    ],
};

pub const EXECUTION_POINTS: TableSpec = TableSpec {
    schema: "metal-gpu-execution-points",
    table: 34,
    columns: &[
        ("timestamp", "Timestamp", "start-time"),
        ("channel-id", "Channel ID", "metal-command-buffer-id"),
        ("function", "Function", "uint32"),
        ("slot-id", "Slot ID", "uint32"),
        ("gpu-submission-id", "GPU Submission ID", "metal-command-buffer-id"),
        ("accelerator-id", "Accelerator Id", "uint64"),
        ("note", "Note", "string"),
    ],
};

pub const SUBMISSION_MAP: TableSpec = TableSpec {
    schema: "metal-gpu-submission-to-command-buffer-id",
    table: 107,
    columns: &[
        ("timestamp", "Timestamp", "start-time"),
        ("cmdbuffer-id", "Commmand Buffer Id", "metal-command-buffer-id"),
        ("gpu-submission-id", "GPU Submission Id", "metal-command-buffer-id"),
        ("segment-id", "Segment Id", "metal-command-buffer-id"),
        ("segmentlist-id", "SegmentList Id", "metal-command-buffer-id"),
        ("encoder-id", "Encoder Id", "metal-command-buffer-id"),
        ("accelerator-id", "Accelerator ID", "uint64"),
        ("channel-id", "Channel ID", "metal-command-buffer-id"),
        ("submission-type", "Type", "uint32"),
        ("metadata-1", "Metadata 1", "uint64"),
        ("metadata-2", "Metadata 2", "uint64"),
        ("pid", "pid", "uint32"),
        ("process", "Process", "process"),
        ("model", "Model", "uint32"),
        ("commit-id", "commit-id", "uint64"),
        ("num-coalasced-encoders", "# Coalasced Encoders", "uint32"),
    ],
};

pub const ENCODERS_LIST: TableSpec = TableSpec {
    schema: "metal-application-encoders-list",
    table: 20,
    columns: &[
        ("start", "Creation", "start-time"),
        ("duration", "Duration", "duration"),
        ("thread", "Thread", "thread"),
        ("process", "Process", "process"),
        ("gpu", "Metal Device", "metal-device-name"),
        ("frame-number", "Frame", "gpu-frame-number"),
        ("cmdbuffer-label", "Command Buffer", "metal-object-label"),
        (
            "cmdbuffer-label-indexed",
            "Command Buffer (Indexed)",
            "metal-object-label",
        ),
        ("encoder-label", "Encoder", "metal-object-label"),
        ("encoder-label-indexed", "Encoder (Indexed)", "metal-object-label"),
        ("event-type", "Event Type", "metal-event-name"),
        ("cmdbuffer-id", "Commmand Buffer Id", "metal-command-buffer-id"),
        ("encoder-id", "Encoder Id", "metal-command-buffer-id"),
    ],
};

pub const SHADER_LIST: TableSpec = TableSpec {
    schema: "metal-shader-profiler-shader-list",
    table: 75,
    columns: &[
        ("timestamp", "Timestamp", "start-time"),
        ("name", "Shader Name", "metal-object-label"),
        ("label", "Function Label", "metal-object-label"),
        ("pso-name", "Pipeline", "metal-object-label"),
        ("id", "ID", "uint64"),
        ("pc-start", "PC Start", "uint64"),
        ("pc-end", "PC End", "uint64"),
        ("shader-type", "Shader Type", "string"),
        ("process", "Process", "process"),
        ("gpu", "Metal Device", "metal-device-name"),
    ],
};

pub const SHADER_INTERVALS: TableSpec = TableSpec {
    schema: "metal-shader-profiler-intervals",
    table: 13,
    columns: &[
        ("start", "Start", "start-time"),
        ("duration", "Sample Duration", "duration"),
        ("name", "Shader Name", "metal-object-label"),
        ("label", "Function Label", "metal-object-label"),
        ("pso-label", "Pipeline", "metal-object-label"),
        ("event-name", "Event Name", "gpu-event-name"),
        ("shader-type", "Shader Type", "metal-object-label"),
        ("percent-of-kick", "% GPU Work", "percent"),
        ("total-kick-percent", "% Total GPU Work", "percent"),
        ("color", "Color", "render-buffer-depth"),
        ("event-priority", "Priority", "metal-workload-priority"),
        ("process", "Process", "process"),
        ("gpu", "Metal Device", "metal-device-name"),
        ("channel-name", "Channel Name", "gpu-channel-name"),
        ("event-depth", "Depth", "metal-nesting-level"),
        ("connection-UUID", "Connection UUID", "connection-uuid64"),
    ],
};

/// The types of `gpu-name` and `timestamp` here are likely, not seen: no raw file of this table was to be had.
pub const GPU_INFO: TableSpec = TableSpec {
    schema: "metal-gpu-info",
    table: 42,
    columns: &[
        ("timestamp", "Timestamp", "start-time"),
        ("gpu-name", "GPU Name", "metal-device-name"),
        ("gpu-index", "GPU Index", "uint32"),
        ("accelerator-id", "Accelerator Id", "uint64"),
        ("mobile", "Mobile", "boolean"),
    ],
};

pub const THERMAL_STATES: TableSpec = TableSpec {
    schema: "device-thermal-state-intervals",
    table: 71,
    columns: &[
        ("start", "Start", "start-time"),
        ("duration", "Duration", "duration"),
        ("end", "End", "start-time"),
        ("thermal-state", "Thermal State", "thermal-state"),
        ("track-label", "Track", "string"),
        ("is-induced", "Is Induced", "boolean"),
        ("narrative", "Narrative", "narrative"),
    ],
};

pub const PERFORMANCE_STATES: TableSpec = TableSpec {
    schema: "gpu-performance-state-intervals",
    table: 68,
    columns: &[
        ("start", "Start", "start-time"),
        ("duration", "Duration", "duration"),
        (
            "gpu-performance-state",
            "GPU Performance State",
            "gpu-performance-state",
        ),
        ("track-label", "Track", "string"),
        ("is-induced", "Is Induced", "boolean"),
        ("narrative", "Narrative", "narrative"),
        ("event-type", "Event Type", "gpu-event-name"),
    ],
};

pub const SIGNPOSTS: TableSpec = TableSpec {
    schema: "os-signpost",
    table: 4,
    columns: &[
        ("time", "Timestamp", "event-time"),
        ("thread", "Thread", "thread"),
        ("process", "Process", "process"),
        ("event-type", "Event Type", "event-type"),
        ("scope", "Scope", "string"),
        ("identifier", "Signpost identifier", "os-signpost-identifier"),
        ("name", "Name", "signpost-name"),
        ("format-string", "Format String", "format-string"),
        ("backtrace", "Backtrace", "text-backtrace"),
        ("subsystem", "Subsystem", "subsystem"),
        ("category", "Category", "category"),
        ("message", "Message", "os-log-metadata"),
        ("emit-location", "Emit Location", "return-location"),
    ],
};

/// Signposts that Instruments paired: the columns that matter of the eighteen.
pub const SIGNPOST_INTERVALS: TableSpec = TableSpec {
    schema: "OSSignpostIntervals",
    table: 9,
    columns: &[
        ("start", "Start", "start-time"),
        ("duration", "Duration", "duration"),
        ("name", "Name", "signpost-name"),
        ("category", "Category", "category"),
        ("subsystem", "Subsystem", "subsystem"),
        ("identifier", "Identifier", "os-signpost-identifier"),
        ("process", "Start Process", "process"),
    ],
};

/// A table of the driver's work: in no way GPU time. Only its schema, for files that hold the wrong table.
pub const DRIVER_INTERVALS: TableSpec = TableSpec {
    schema: "metal-driver-intervals",
    table: 51,
    columns: &[
        ("start", "Creation", "start-time"),
        ("duration", "Duration", "duration"),
        ("gpu-driver-name", "GPU Driver Name", "gpu-driver-name"),
        ("event-type", "Event Type", "metal-object-label"),
        ("event-depth", "Depth", "metal-nesting-level"),
        ("event-label", "Event", "formatted-label"),
        ("event-priority", "Priority", "metal-workload-priority"),
        ("connection-UUID", "Connection UUID", "connection-uuid64"),
        ("color", "Color", "render-buffer-depth"),
        ("process", "Process", "process"),
        ("thread", "Thread", "thread"),
        ("gpu", "Metal Device", "metal-device-name"),
        ("object-id", "Object ID", "metal-command-buffer-id"),
        ("lane", "Lane", "formatted-label"),
    ],
};

// ---------------------------------------------------------------------------------------------- values

/// One value: a leaf with text, or a composite whose text is its children's.
#[derive(Clone, Debug)]
pub struct Element {
    pub tag: &'static str,
    pub fmt: String,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum Body {
    Text(String),
    Children(Vec<Element>),
}

/// A cell of a row. `Raw` is written as it stands: for documents that break the rules.
#[derive(Clone, Debug)]
pub enum Cell {
    Null,
    Value(Element),
    Raw(String),
}

impl From<Element> for Cell {
    fn from(element: Element) -> Self {
        Self::Value(element)
    }
}

impl From<Option<Element>> for Cell {
    fn from(element: Option<Element>) -> Self {
        element.map_or(Self::Null, Self::Value)
    }
}

impl Element {
    pub fn leaf(tag: &'static str, fmt: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tag,
            fmt: fmt.into(),
            body: Body::Text(text.into()),
        }
    }

    /// A leaf whose `fmt` is its text.
    pub fn same(tag: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::leaf(tag, text.clone(), text)
    }

    pub fn composite(tag: &'static str, fmt: impl Into<String>, children: Vec<Element>) -> Self {
        Self {
            tag,
            fmt: fmt.into(),
            body: Body::Children(children),
        }
    }

    pub fn start_time(ns: u64) -> Self {
        Self::leaf("start-time", fmt_time(ns), ns.to_string())
    }

    pub fn duration(ns: u64) -> Self {
        Self::leaf("duration", fmt_duration(ns), ns.to_string())
    }

    /// An id of the Metal id space: hexadecimal for people.
    pub fn metal_id(value: u64) -> Self {
        Self::leaf("metal-command-buffer-id", format!("{value:#x}"), value.to_string())
    }

    pub fn uint32(value: u64) -> Self {
        Self::same("uint32", value.to_string())
    }

    pub fn uint64(value: u64, thousands: char) -> Self {
        Self::leaf("uint64", fmt_grouped(value, thousands), value.to_string())
    }

    pub fn connection(value: u64) -> Self {
        let fmt = if value == NONE_64 {
            "-1".to_owned()
        } else {
            value.to_string()
        };
        Self::leaf("connection-uuid64", fmt, value.to_string())
    }

    pub fn boolean(value: bool) -> Self {
        Self::leaf(
            "boolean",
            if value { "Yes" } else { "No" },
            if value { "1" } else { "0" },
        )
    }

    pub fn frame(number: u64) -> Self {
        Self::leaf("gpu-frame-number", format!("Frame {number}"), number.to_string())
    }

    pub fn bytes(value: u64) -> Self {
        Self::leaf("size-in-bytes", fmt_bytes(value), value.to_string())
    }

    fn key(&self) -> u128 {
        let mut hash = Fnv::new();
        self.feed(&mut hash);
        hash.0
    }

    fn feed(&self, hash: &mut Fnv) {
        hash.bytes(self.tag.as_bytes());
        match &self.body {
            Body::Text(text) => {
                hash.bytes(&[0]);
                hash.bytes(text.as_bytes());
            }
            Body::Children(children) => {
                hash.bytes(&[1]);
                for child in children {
                    child.feed(hash);
                }
            }
        }
        hash.bytes(&[2]);
    }
}

/// 128-bit FNV-1a: small keys, so that a document of gigabytes keeps a table of tens of bytes per distinct value.
struct Fnv(u128);

impl Fnv {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
        }
    }
}

/// `MM:SS.mmm.µµµ`, truncated.
pub fn fmt_time(ns: u64) -> String {
    let us = ns / 1000;
    format!(
        "{:02}:{:02}.{:03}.{:03}",
        us / 60_000_000,
        us / 1_000_000 % 60,
        us / 1000 % 1000,
        us % 1000
    )
}

/// Two decimals with a unit, whole nanoseconds below 1 µs.
pub fn fmt_duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0 => "0 s".to_owned(),
        1..1000 => format!("{ns} ns"),
        1000..1_000_000 => format!("{:.2} µs", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

pub fn fmt_grouped(value: u64, separator: char) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(separator);
        }
        grouped.push(digit);
    }
    grouped
}

fn fmt_bytes(value: u64) -> String {
    match value {
        0 => "0 Bytes".to_owned(),
        1..1024 => format!("{value} Bytes"),
        1024..1_048_576 => format!("{:.2} KiB", value as f64 / 1024.0),
        _ => format!("{:.2} MiB", value as f64 / 1_048_576.0),
    }
}

// ---------------------------------------------------------------------------------------------- typed rows

/// How `fmt` of composites and numbers is written; both changed between versions and locales.
#[derive(Clone, Copy, Debug)]
pub struct Locale {
    /// Xcode 26.3 to 26.6 put a space between the children's `fmt`, others nothing.
    pub spaced: bool,
    pub thousands: char,
}

impl Locale {
    fn join(self, children: &[Element]) -> String {
        let parts: Vec<&str> = children.iter().map(|child| child.fmt.as_str()).collect();
        parts.join(if self.spaced { " " } else { "" })
    }
}

/// A row that knows its table and its cells.
pub trait Row {
    const TABLE: TableSpec;
    fn cells(&self, locale: Locale) -> Vec<Cell>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub name: String,
    pub pid: u64,
}

impl Process {
    pub fn new(name: &str, pid: u64) -> Self {
        Self {
            name: name.to_owned(),
            pid,
        }
    }

    pub fn element(&self) -> Element {
        let children = vec![
            Element::same("pid", self.pid.to_string()),
            Element::same("device-session", "TODO"),
        ];
        Element::composite("process", format!("{} ({})", self.name, self.pid), children)
    }
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub name: String,
    pub tid: u64,
    pub process: Process,
}

impl Thread {
    pub fn element(&self) -> Element {
        let Process { name, pid } = &self.process;
        let fmt = format!("{} ({:#x}) ({name}, pid: {pid})", self.name, self.tid);
        let tid = Element::leaf("tid", format!("{:#x}", self.tid), self.tid.to_string());
        Element::composite("thread", fmt, vec![tid, self.process.element()])
    }
}

/// `event-label` of an interval.
#[derive(Clone, Debug)]
pub enum Label {
    /// `<command buffer>:<encoder>`, decorated with process and submission by Instruments.
    Parts {
        text: String,
        process: Process,
        submission: u64,
    },
    /// Plain text without children.
    Plain(String),
}

impl Label {
    fn element(&self, locale: Locale) -> Element {
        match self {
            Self::Plain(text) => Element::same("formatted-label", text.clone()),
            Self::Parts {
                text,
                process,
                submission,
            } => {
                let children = vec![
                    Element::same("string", text.clone()),
                    Element::same("narrative-text", " "),
                    Element::same("string", ""),
                    Element::same("narrative-text", " ("),
                    process.element(),
                    Element::same("narrative-text", ") "),
                    // Named encoder id, but it is the submission's.
                    Element::leaf("metal-encoder-id", format!("{submission:#x}"), submission.to_string()),
                ];
                Element::composite("formatted-label", locale.join(&children), children)
            }
        }
    }
}

/// A row of `metal-gpu-intervals`. `None` is NULL.
#[derive(Clone, Debug)]
pub struct GpuInterval {
    pub start: Option<u64>,
    pub duration: Option<u64>,
    pub channel: Option<String>,
    pub frame: Option<u64>,
    pub latency: Option<u64>,
    pub depth: Option<u64>,
    pub label: Option<Label>,
    pub state: String,
    pub connection: u64,
    pub color: u64,
    pub process: Option<Process>,
    pub gpu: String,
    pub surfaces: String,
    pub bytes: u64,
    pub command_buffer: Option<u64>,
    pub encoder: Option<u64>,
    pub submission: Option<u64>,
}

impl GpuInterval {
    /// A compute submission with everything filled in; the label is `buffer:encoder`.
    pub fn new(start: u64, duration: u64, label: &str, process: &Process, ids: Ids) -> Self {
        let text = label.to_owned();
        Self {
            start: Some(start),
            duration: Some(duration),
            channel: Some("Compute".to_owned()),
            frame: Some(1),
            latency: Some(10_000),
            depth: Some(0),
            label: Some(Label::Parts {
                text,
                process: process.clone(),
                submission: ids.submission,
            }),
            state: "Active".to_owned(),
            connection: ids.submission & 0xffff,
            color: 0,
            process: Some(process.clone()),
            gpu: "M5 Max".to_owned(),
            surfaces: String::new(),
            bytes: 0,
            command_buffer: Some(ids.command_buffer),
            encoder: Some(ids.encoder),
            submission: Some(ids.submission),
        }
    }
}

/// The three ids that tie the tables together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    pub command_buffer: u64,
    pub encoder: u64,
    pub submission: u64,
}

impl Row for GpuInterval {
    const TABLE: TableSpec = GPU_INTERVALS;

    fn cells(&self, locale: Locale) -> Vec<Cell> {
        let surfaces = vec![Element::same("string", self.surfaces.clone())];
        vec![
            self.start.map(Element::start_time).into(),
            self.duration.map(Element::duration).into(),
            self.channel
                .as_ref()
                .map(|name| Element::same("gpu-channel-name", name.clone()))
                .into(),
            self.frame.map(Element::frame).into(),
            self.latency.map(Element::duration).into(),
            self.depth
                .map(|depth| Element::same("metal-nesting-level", depth.to_string()))
                .into(),
            self.label.as_ref().map(|label| label.element(locale)).into(),
            Element::same("gpu-state", self.state.clone()).into(),
            Element::connection(self.connection).into(),
            Element::same("render-buffer-depth", self.color.to_string()).into(),
            self.process.as_ref().map(Process::element).into(),
            Element::same("metal-device-name", self.gpu.clone()).into(),
            Element::same("metal-object-label", "").into(),
            Element::composite("formatted-label", self.surfaces.clone(), surfaces).into(),
            Element::bytes(self.bytes).into(),
            self.command_buffer.map(Element::metal_id).into(),
            self.encoder.map(Element::metal_id).into(),
            self.submission.map(|id| Element::uint64(id, locale.thousands)).into(),
        ]
    }
}

/// A row of `metal-gpu-execution-points`: function 1 is a start, 2 an end.
#[derive(Clone, Debug)]
pub struct ExecutionPoint {
    pub time: u64,
    pub channel: u64,
    pub function: u64,
    pub submission: u64,
}

impl Row for ExecutionPoint {
    const TABLE: TableSpec = EXECUTION_POINTS;

    fn cells(&self, locale: Locale) -> Vec<Cell> {
        vec![
            Element::start_time(self.time).into(),
            Element::metal_id(self.channel).into(),
            Element::uint32(self.function).into(),
            Element::uint32(self.submission).into(),
            Element::metal_id(self.submission).into(),
            Element::uint64(NONE_64, locale.thousands).into(),
            (self.function != 1).then(|| Element::same("string", "")).into(),
        ]
    }
}

/// One row of `metal-gpu-submission-to-command-buffer-id`; [`MapRow::pair`] makes the two that an encoder gets.
#[derive(Clone, Debug)]
pub struct MapRow {
    pub time: u64,
    pub ids: Ids,
    pub segment: u64,
    pub accelerator: u64,
    pub process: Option<Process>,
    pub coalesced: u64,
}

impl MapRow {
    /// Submission N+1 first, then N: for compute only N ever runs, for render N+1 is the vertex part.
    pub fn pair(time: u64, ids: Ids, process: &Process, coalesced: u64) -> [Self; 2] {
        [1, 0].map(|step| Self {
            time,
            ids: Ids {
                submission: ids.submission + step,
                ..ids
            },
            segment: ids.submission + step + 1,
            accelerator: 1463,
            process: Some(process.clone()),
            coalesced,
        })
    }
}

impl Row for MapRow {
    const TABLE: TableSpec = SUBMISSION_MAP;

    fn cells(&self, locale: Locale) -> Vec<Cell> {
        vec![
            Element::start_time(self.time).into(),
            Element::metal_id(self.ids.command_buffer).into(),
            Element::metal_id(self.ids.submission).into(),
            Element::metal_id(self.segment).into(),
            Element::metal_id(0).into(),
            Element::metal_id(self.ids.encoder).into(),
            Element::uint64(self.accelerator, locale.thousands).into(),
            Element::metal_id(NONE_64).into(),
            Element::uint32(0).into(),
            Element::uint64(0, locale.thousands).into(),
            Element::uint64(0, locale.thousands).into(),
            self.process.as_ref().map(|process| Element::uint32(process.pid)).into(),
            self.process.as_ref().map(Process::element).into(),
            Element::uint32(1).into(),
            Element::uint64(0, locale.thousands).into(),
            Element::uint32(self.coalesced).into(),
        ]
    }
}

/// A row of `metal-application-encoders-list`. Start and duration are CPU encoding time.
#[derive(Clone, Debug)]
pub struct EncoderRow {
    pub start: u64,
    pub duration: u64,
    pub thread: Thread,
    pub gpu: String,
    pub frame: u64,
    pub buffer_label: String,
    pub buffer_index: u64,
    pub label: String,
    pub index: u64,
    pub command_buffer: u64,
    pub encoder: u64,
}

impl Row for EncoderRow {
    const TABLE: TableSpec = ENCODERS_LIST;

    fn cells(&self, _: Locale) -> Vec<Cell> {
        let label = |text: String| Element::same("metal-object-label", text).into();
        vec![
            Element::start_time(self.start).into(),
            Element::duration(self.duration).into(),
            self.thread.element().into(),
            self.thread.process.element().into(),
            Element::same("metal-device-name", self.gpu.clone()).into(),
            Element::frame(self.frame).into(),
            label(self.buffer_label.clone()),
            label(format!("[{}] {}", self.buffer_index, self.buffer_label)),
            label(self.label.clone()),
            label(format!("[{}] {}", self.index, self.label)),
            Element::same("metal-event-name", "Encoding").into(),
            Element::metal_id(self.command_buffer).into(),
            Element::metal_id(self.encoder).into(),
        ]
    }
}

/// A row of `metal-shader-profiler-shader-list`. Apple appends the id to the name: `rope_neox (7)`.
#[derive(Clone, Debug)]
pub struct Shader {
    pub time: u64,
    pub function: String,
    pub id: u64,
    pub pc_start: u64,
    pub pc_end: u64,
    pub kind: String,
    pub process: Process,
    pub gpu: String,
}

impl Row for Shader {
    const TABLE: TableSpec = SHADER_LIST;

    fn cells(&self, locale: Locale) -> Vec<Cell> {
        let name = format!("{} ({})", self.function, self.id);
        vec![
            Element::start_time(self.time).into(),
            Element::same("metal-object-label", name.clone()).into(),
            Cell::Null,
            Element::same("metal-object-label", name).into(),
            Element::uint64(self.id, locale.thousands).into(),
            Element::uint64(self.pc_start, locale.thousands).into(),
            Element::uint64(self.pc_end, locale.thousands).into(),
            Element::same("string", self.kind.clone()).into(),
            self.process.element().into(),
            Element::same("metal-device-name", self.gpu.clone()).into(),
        ]
    }
}

/// A row of `metal-shader-profiler-intervals`: a sample, only there when Shader Timeline was on.
#[derive(Clone, Debug)]
pub struct ShaderInterval {
    pub start: u64,
    pub duration: u64,
    pub name: String,
    pub pipeline: String,
    pub kind: String,
    /// In billionths of a percent, as the export has nine decimals.
    pub percent_nanos: u64,
    pub process: Process,
    pub gpu: String,
    pub channel: String,
    pub depth: u64,
}

impl Row for ShaderInterval {
    const TABLE: TableSpec = SHADER_INTERVALS;

    fn cells(&self, _: Locale) -> Vec<Cell> {
        let percent = format!(
            "{}.{:09}",
            self.percent_nanos / 1_000_000_000,
            self.percent_nanos % 1_000_000_000
        );
        let percent_fmt = format!("{:.1}%", self.percent_nanos as f64 / 1e9);
        vec![
            Element::start_time(self.start).into(),
            Element::duration(self.duration).into(),
            Element::same("metal-object-label", self.name.clone()).into(),
            Cell::Null,
            Element::same("metal-object-label", self.pipeline.clone()).into(),
            Element::same("gpu-event-name", "Shader Timeline").into(),
            Element::same("metal-object-label", self.kind.clone()).into(),
            Element::leaf("percent", percent_fmt, percent).into(),
            Cell::Null,
            Element::same("render-buffer-depth", "1001").into(),
            Element::leaf("metal-workload-priority", "0x1", "1").into(),
            self.process.element().into(),
            Element::same("metal-device-name", self.gpu.clone()).into(),
            Element::same("gpu-channel-name", self.channel.clone()).into(),
            Element::same("metal-nesting-level", self.depth.to_string()).into(),
            Element::connection(NONE_64).into(),
        ]
    }
}

/// The row of `metal-gpu-info`.
#[derive(Clone, Debug)]
pub struct GpuInfo {
    pub gpu: String,
    pub accelerator: u64,
}

impl Row for GpuInfo {
    const TABLE: TableSpec = GPU_INFO;

    fn cells(&self, locale: Locale) -> Vec<Cell> {
        vec![
            Element::start_time(0).into(),
            Element::same("metal-device-name", self.gpu.clone()).into(),
            Element::uint32(0).into(),
            Element::uint64(self.accelerator, locale.thousands).into(),
            Element::boolean(false).into(),
        ]
    }
}

/// A row of `device-thermal-state-intervals`.
#[derive(Clone, Debug)]
pub struct ThermalState {
    pub start: u64,
    pub end: u64,
    pub state: String,
    pub induced: bool,
}

impl Row for ThermalState {
    const TABLE: TableSpec = THERMAL_STATES;

    fn cells(&self, locale: Locale) -> Vec<Cell> {
        let state = Element::same("thermal-state", self.state.clone());
        let parts = vec![state.clone(), Element::same("narrative-text", " thermal state")];
        vec![
            Element::start_time(self.start).into(),
            Element::duration(self.end - self.start).into(),
            Element::start_time(self.end).into(),
            state.into(),
            Element::same("string", if self.induced { "Induced" } else { "Current" }).into(),
            Element::boolean(self.induced).into(),
            Element::composite("narrative", locale.join(&parts), parts).into(),
        ]
    }
}

/// A row of `gpu-performance-state-intervals`.
#[derive(Clone, Debug)]
pub struct PerformanceState {
    pub start: u64,
    pub duration: u64,
    pub state: String,
    pub gpu: String,
    pub induced: bool,
}

impl Row for PerformanceState {
    const TABLE: TableSpec = PERFORMANCE_STATES;

    fn cells(&self, locale: Locale) -> Vec<Cell> {
        let state = Element::same("gpu-performance-state", self.state.clone());
        let why = " GPU Performance state due to active device conditions";
        let parts = vec![state.clone(), Element::same("narrative-text", why)];
        vec![
            Element::start_time(self.start).into(),
            Element::duration(self.duration).into(),
            state.into(),
            Element::same("string", self.gpu.clone()).into(),
            Element::boolean(self.induced).into(),
            Element::composite("narrative", locale.join(&parts), parts).into(),
            Element::same("gpu-event-name", "GPU Performance State").into(),
        ]
    }
}

/// A row of `os-signpost`.
#[derive(Clone, Debug)]
pub struct SignpostEvent {
    pub time: u64,
    pub thread: Thread,
    /// `Begin`, `End` or `Event`.
    pub kind: String,
    /// `Process`, `Thread` or `System`.
    pub scope: String,
    pub identifier: u64,
    pub name: String,
    pub subsystem: String,
    pub category: String,
}

impl SignpostEvent {
    /// An event of the main thread, as a program that says nothing else makes it.
    pub fn new(kind: &str, name: &str, time: u64, process: &Process) -> Self {
        Self {
            time,
            thread: Thread {
                name: "Main Thread".to_owned(),
                tid: 0x9d01,
                process: process.clone(),
            },
            kind: kind.to_owned(),
            scope: "Process".to_owned(),
            identifier: 1,
            name: name.to_owned(),
            subsystem: "com.example.bench".to_owned(),
            category: "engine".to_owned(),
        }
    }

    /// A begin and an end.
    pub fn interval(name: &str, start: u64, end: u64, process: &Process) -> [Self; 2] {
        [
            Self::new("Begin", name, start, process),
            Self::new("End", name, end, process),
        ]
    }
}

impl Row for SignpostEvent {
    const TABLE: TableSpec = SIGNPOSTS;

    fn cells(&self, _: Locale) -> Vec<Cell> {
        let identifier = Element::leaf(
            "os-signpost-identifier",
            format!("{:#x}", self.identifier),
            self.identifier.to_string(),
        );
        let offset = Element::leaf("mach-o-vm-offset", "0x77c", "1916");
        vec![
            Element::leaf("event-time", fmt_time(self.time), self.time.to_string()).into(),
            self.thread.element().into(),
            self.thread.process.element().into(),
            Element::same("event-type", self.kind.clone()).into(),
            Element::same("string", self.scope.clone()).into(),
            identifier.into(),
            Element::same("signpost-name", self.name.clone()).into(),
            Cell::Null,
            Cell::Null,
            Element::same("subsystem", self.subsystem.clone()).into(),
            Element::same("category", self.category.clone()).into(),
            Cell::Null,
            Element::composite("return-location", "bench + 0x77c", vec![offset]).into(),
        ]
    }
}

/// A row of `OSSignpostIntervals`.
#[derive(Clone, Debug)]
pub struct SignpostInterval {
    pub start: u64,
    pub duration: Option<u64>,
    pub name: String,
    pub identifier: u64,
    pub process: Process,
}

impl Row for SignpostInterval {
    const TABLE: TableSpec = SIGNPOST_INTERVALS;

    fn cells(&self, _: Locale) -> Vec<Cell> {
        vec![
            Element::start_time(self.start).into(),
            self.duration.map(Element::duration).into(),
            Element::same("signpost-name", self.name.clone()).into(),
            Element::same("category", "engine").into(),
            Element::same("subsystem", "com.example.bench").into(),
            Element::same("os-signpost-identifier", self.identifier.to_string()).into(),
            self.process.element().into(),
        ]
    }
}

// ---------------------------------------------------------------------------------------------- the document

/// Which elements carry an `id`.
#[derive(Clone, Debug, Default)]
pub enum IdStyle {
    /// Every element, as Apple writes.
    #[default]
    All,
    /// Only those that a `ref` names; see [`ExportBuilder::reserialised`].
    Needed(HashSet<u64>),
    /// None: every value is written out in full.
    Absent,
    /// Every element, through a function: holes, huge numbers, any order.
    Mapped(fn(u64) -> u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As `xctrace` writes.
    #[default]
    Apple,
    /// As Python's ElementTree writes it back: `fmt` before `id`, ` />`, no element without content left open.
    ElementTree,
    /// As an XML formatter writes it: every tag and text on a line of its own, CRLF.
    PrettyCrlf,
}

/// How the document looks; the default is Apple's.
#[derive(Clone, Debug)]
pub struct Style {
    pub ids: IdStyle,
    pub form: Form,
    pub locale: Locale,
    /// Xcode 26.4 and later write `documentation` into the schema.
    pub documentation: Option<String>,
    /// Replaces `<?xml version="1.0"?>`.
    pub declaration: Option<String>,
}

impl Default for Style {
    fn default() -> Self {
        let locale = Locale {
            spaced: false,
            thousands: ',',
        };
        Self {
            ids: IdStyle::All,
            form: Form::Apple,
            locale,
            documentation: None,
            declaration: None,
        }
    }
}

/// Writes one `trace-query-result`. Nodes and rows are written as they come; only the table of ids grows.
pub struct ExportBuilder<'a> {
    out: Box<dyn Write + 'a>,
    buffer: String,
    style: Style,
    ids: HashMap<u128, u64>,
    last_id: u64,
    referenced: HashSet<u64>,
    /// Open tags, for indentation.
    depth: usize,
    in_node: bool,
    node_has_rows: bool,
}

const FLUSH_AT: usize = 64 * 1024;

impl<'a> ExportBuilder<'a> {
    pub fn new(out: impl Write + 'a) -> Self {
        Self::with_style(out, Style::default())
    }

    pub fn with_style(out: impl Write + 'a, style: Style) -> Self {
        let mut builder = Self {
            out: Box::new(out),
            buffer: String::with_capacity(2 * FLUSH_AT),
            style,
            ids: HashMap::new(),
            last_id: 0,
            referenced: HashSet::new(),
            depth: 0,
            in_node: false,
            node_has_rows: false,
        };
        let declaration = match (&builder.style.declaration, builder.style.form) {
            (Some(declaration), _) => declaration.clone(),
            (None, Form::ElementTree) => "<?xml version='1.0' encoding='utf-8'?>".to_owned(),
            (None, _) => "<?xml version=\"1.0\"?>".to_owned(),
        };
        builder.buffer.push_str(&declaration);
        builder.line();
        builder.open("trace-query-result", &[]);
        builder.line();
        builder
    }

    /// A whole document in memory.
    pub fn document(style: Style, build: impl FnOnce(&mut ExportBuilder<'_>)) -> String {
        let mut bytes = Vec::new();
        let mut builder = ExportBuilder::with_style(&mut bytes, style);
        build(&mut builder);
        builder.finish().expect("a Vec takes everything");
        String::from_utf8(bytes).expect("only strings are written")
    }

    /// A whole document as ElementTree would write it back, with ids only where a `ref` needs one.
    pub fn reserialised(build: impl Fn(&mut ExportBuilder<'_>)) -> String {
        let mut first = ExportBuilder::new(io::sink());
        build(&mut first);
        let needed = std::mem::take(&mut first.referenced);
        let style = Style {
            ids: IdStyle::Needed(needed),
            form: Form::ElementTree,
            ..Style::default()
        };
        Self::document(style, build)
    }

    /// Opens the node of a table in run 1, with its schema. A node that is open is closed.
    pub fn table(&mut self, table: TableSpec) -> &mut Self {
        let xpath = format!("//trace-toc[1]/run[1]/data[1]/table[{}]", table.table);
        self.node(&xpath).schema(table)
    }

    pub fn node(&mut self, xpath: &str) -> &mut Self {
        self.close_node();
        if self.style.form == Form::Apple {
            self.buffer.push_str("<node xpath='");
            self.buffer.push_str(xpath);
            self.buffer.push_str("'>");
            self.depth += 1;
        } else {
            self.open("node", &[("xpath", xpath)]);
        }
        self.in_node = true;
        self.node_has_rows = false;
        self
    }

    pub fn schema(&mut self, table: TableSpec) -> &mut Self {
        self.schema_of(table.schema, table.columns)
    }

    pub fn schema_of(&mut self, name: &str, columns: &[Column]) -> &mut Self {
        let documentation = self.style.documentation.clone();
        let mut attributes = vec![("name", name)];
        attributes.extend(documentation.as_deref().map(|text| ("documentation", text)));
        self.open("schema", &attributes);
        for (mnemonic, name, kind) in columns {
            self.open("col", &[]);
            for (tag, text) in [("mnemonic", mnemonic), ("name", name), ("engineering-type", kind)] {
                self.open(tag, &[]);
                self.text(text);
                self.close(tag);
            }
            self.close("col");
        }
        self.close("schema");
        self
    }

    pub fn row<R: Row>(&mut self, row: &R) -> &mut Self {
        let cells = row.cells(self.style.locale);
        self.cells(&cells)
    }

    pub fn rows<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> &mut Self {
        for row in rows {
            self.row(&row);
        }
        self
    }

    /// A row of any cells: too few, too many, of the wrong kind.
    pub fn cells(&mut self, cells: &[Cell]) -> &mut Self {
        if self.node_has_rows {
            self.line();
        }
        self.node_has_rows = true;
        self.open("row", &[]);
        for cell in cells {
            match cell {
                Cell::Null => self.empty("sentinel", &[]),
                Cell::Value(element) => self.element(element),
                Cell::Raw(xml) => self.buffer.push_str(xml),
            }
        }
        self.close("row");
        if self.buffer.len() >= FLUSH_AT {
            self.flush();
        }
        self
    }

    /// Text as it stands, anywhere.
    pub fn raw(&mut self, xml: &str) -> &mut Self {
        self.buffer.push_str(xml);
        self
    }

    /// The next id is 1 again and nothing is known, as some tools say of every new node.
    pub fn restart_ids(&mut self) -> &mut Self {
        self.ids.clear();
        self.last_id = 0;
        self
    }

    /// How many elements got an id so far.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Ends the document. Errors of the writer come out here, like those of a buffered file.
    pub fn finish(mut self) -> io::Result<()> {
        self.close_node();
        self.close("trace-query-result");
        match self.style.form {
            Form::Apple => self.buffer.push('\n'),
            Form::ElementTree => {}
            Form::PrettyCrlf => self.buffer.push_str("\r\n"),
        }
        self.out.write_all(self.buffer.as_bytes())?;
        self.out.flush()
    }

    fn close_node(&mut self) {
        if self.in_node {
            if self.node_has_rows {
                self.line();
            }
            self.close("node");
            self.in_node = false;
        }
    }

    fn flush(&mut self) {
        self.out
            .write_all(self.buffer.as_bytes())
            .expect("the export could be written");
        self.buffer.clear();
    }

    fn element(&mut self, element: &Element) {
        let Element { tag, fmt, body } = element;
        if matches!(self.style.ids, IdStyle::Absent) {
            return self.full(tag, None, fmt, body);
        }
        let key = element.key();
        if let Some(&id) = self.ids.get(&key) {
            if self.style.form == Form::Apple && self.style_collects() {
                self.referenced.insert(id);
            }
            let id = self.shown(id).to_string();
            return self.empty(tag, &[("ref", &id)]);
        }
        self.last_id += 1;
        let id = self.last_id;
        self.ids.insert(key, id);
        let with_id = match &self.style.ids {
            IdStyle::Needed(needed) => needed.contains(&id),
            _ => true,
        };
        let shown = with_id.then(|| self.shown(id).to_string());
        self.full(tag, shown.as_deref(), fmt, body);
    }

    /// Referenced ids are only kept where somebody asks for them: with plain ids.
    fn style_collects(&self) -> bool {
        matches!(self.style.ids, IdStyle::All)
    }

    fn shown(&self, id: u64) -> u64 {
        match self.style.ids {
            IdStyle::Mapped(map) => map(id),
            _ => id,
        }
    }

    fn full(&mut self, tag: &str, id: Option<&str>, fmt: &str, body: &Body) {
        let mut attributes: Vec<(&str, &str)> = Vec::with_capacity(2);
        attributes.extend(id.map(|id| ("id", id)));
        attributes.push(("fmt", fmt));
        if self.style.form == Form::ElementTree {
            attributes.reverse();
            if matches!(body, Body::Text(text) if text.is_empty()) {
                return self.empty(tag, &attributes);
            }
        }
        self.open(tag, &attributes);
        match body {
            Body::Text(text) => self.text(text),
            Body::Children(children) => children.iter().for_each(|child| self.element(child)),
        }
        self.close(tag);
    }

    /// A line end where Apple writes one; a formatter puts its own.
    fn line(&mut self) {
        if self.style.form != Form::PrettyCrlf {
            self.buffer.push('\n');
        }
    }

    fn indent(&mut self) {
        if self.style.form == Form::PrettyCrlf {
            self.buffer.push_str("\r\n");
            for _ in 0..self.depth {
                self.buffer.push_str("  ");
            }
        }
    }

    fn open(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.indent();
        self.tag(tag, attributes);
        self.buffer.push('>');
        self.depth += 1;
    }

    fn empty(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.indent();
        self.tag(tag, attributes);
        self.buffer.push_str(if self.style.form == Form::ElementTree {
            " />"
        } else {
            "/>"
        });
    }

    fn tag(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.buffer.push('<');
        self.buffer.push_str(tag);
        for (name, value) in attributes {
            self.buffer.push(' ');
            self.buffer.push_str(name);
            self.buffer.push_str("=\"");
            escape(value, true, &mut self.buffer);
            self.buffer.push('"');
        }
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.indent();
            escape(text, false, &mut self.buffer);
        }
    }

    fn close(&mut self, tag: &str) {
        self.depth -= 1;
        self.indent();
        self.buffer.push_str("</");
        self.buffer.push_str(tag);
        self.buffer.push('>');
    }
}

/// Apple's escapes: `&amp; &lt; &gt;`, and `&quot;` in attributes only.
pub fn escape(text: &str, attribute: bool, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if attribute => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}
