//! Plausible exports made from the fuzzer's bytes: the invariants of [`trace_attr_fuzz`], and the order of the rows of
//! `metal-gpu-intervals` changes no report.
#![no_main]

use arbitrary::Arbitrary;
use trace_attr::attribution::Buckets;
use trace_attr::compare::Comparison;
use trace_attr::join::{ProcessChoice, TimingChoice};
use trace_attr::recording::{ReadOptions, RunChoice, read_recording_from};
use trace_attr::report::{Format, ReportOptions, write};
use trace_attr_fuzz::{View, compared, reports, window};

#[path = "../../tests/support/export.rs"]
#[allow(dead_code)]
mod export;

use export::{
    Cell, ENCODERS_LIST, EXECUTION_POINTS, Element, EncoderRow, ExecutionPoint, ExportBuilder, Form, GPU_INFO,
    GPU_INTERVALS, GpuInfo, GpuInterval, IdStyle, Ids, Label, MapRow, NONE_64, PERFORMANCE_STATES, PerformanceState,
    Process, Row, SHADER_INTERVALS, SHADER_LIST, SUBMISSION_MAP, Shader, ShaderInterval, Style, THERMAL_STATES,
    TableSpec, ThermalState, Thread,
};

#[derive(Arbitrary, Debug, Clone)]
enum Text {
    Nothing,
    DefaultBuffer(u8),
    DefaultEncoder(u8),
    Pick(u8),
    Numbered(u8, u8),
    Merged(u8, u8),
    Any(String),
}

const WORDS: &[&str] = &[
    "attn.qkv",
    "layer.0.ffn",
    "a:b",
    "ns::f<x, y>",
    "| x |",
    "(unlabelled)",
    "(unknown)",
    "µ\u{202e}s\u{0}\u{1b}[31m",
    "</td><script>",
    "x ( bench (77) )  Coelasced 4 Encoders",
    "Coalesced 2 Encoders",
    "[3] q",
    "   ",
    "12",
    "...",
    "🧪\u{200d}🔬 & &",
];

impl Text {
    fn text(&self) -> String {
        let pick = |at: &u8| WORDS[usize::from(*at) % WORDS.len()];
        let made = match self {
            Text::Nothing => String::new(),
            Text::DefaultBuffer(n) => format!("Command Buffer {n}"),
            Text::DefaultEncoder(n) => format!("Compute Command {n}"),
            Text::Pick(at) => pick(at).to_owned(),
            Text::Numbered(at, n) => format!("model.layers.{n}.{}", pick(at)),
            Text::Merged(a, b) => format!("{} & {}", pick(a), pick(b)),
            Text::Any(text) => text.chars().take(60).collect(),
        };
        // An XML document cannot hold these, so no export does.
        made.chars().filter(|c| !c.is_control() || *c == '\u{1b}').collect()
    }
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Time {
    Small(u16),
    Medium(u32),
    Big(u64),
    None,
}

impl Time {
    fn ns(self) -> Option<u64> {
        match self {
            Time::Small(ns) => Some(u64::from(ns)),
            Time::Medium(ns) => Some(u64::from(ns)),
            Time::Big(ns) => Some(ns),
            Time::None => None,
        }
    }

    fn some(self) -> u64 {
        self.ns().unwrap_or(0)
    }
}

/// Few, so that rows meet.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Id {
    Few(u8),
    Any(u64),
    No,
    Null,
}

impl Id {
    fn get(self) -> Option<u64> {
        match self {
            Id::Few(id) => Some(u64::from(id % 16) + 1),
            Id::Any(id) => Some(id),
            Id::No => Some(NONE_64),
            Id::Null => None,
        }
    }

    fn some(self) -> u64 {
        self.get().unwrap_or(0) & (u64::MAX >> 1)
    }
}

#[derive(Arbitrary, Debug, Clone)]
struct Interval {
    start: Time,
    duration: Time,
    latency: Time,
    channel: u8,
    depth: Option<u8>,
    label: Option<(Text, bool)>,
    process: u8,
    gpu: bool,
    buffer: Id,
    encoder: Id,
    submission: Id,
}

#[derive(Arbitrary, Debug, Clone)]
struct Point {
    time: Time,
    channel: u8,
    function: u8,
    submission: Id,
}

#[derive(Arbitrary, Debug, Clone)]
struct Mapping {
    buffer: Id,
    encoder: Id,
    submission: Id,
    process: u8,
    pair: bool,
}

#[derive(Arbitrary, Debug, Clone)]
struct Encoder {
    duration: Time,
    process: u8,
    buffer_label: Text,
    label: Text,
    buffer: Id,
    encoder: Id,
}

#[derive(Arbitrary, Debug, Clone)]
struct Sample {
    start: Time,
    duration: Time,
    name: Text,
    process: u8,
}

#[derive(Arbitrary, Debug, Clone)]
struct State {
    start: u32,
    length: u32,
    state: Text,
    induced: bool,
}

#[derive(Arbitrary, Debug)]
struct Input {
    form: u8,
    intervals: Option<Vec<Interval>>,
    points: Option<Vec<Point>>,
    map: Option<Vec<Mapping>>,
    encoders: Option<Vec<Encoder>>,
    shaders: Option<Vec<Text>>,
    samples: Option<Vec<Sample>>,
    thermal: Option<Vec<State>>,
    performance: Option<Vec<State>>,
    info: bool,
    target: Option<(u8, Option<u32>)>,
    second_node: bool,
    second_run: bool,
    broken_cell: Option<(u8, Text)>,
    process: u8,
    points_first: bool,
    from: Option<Time>,
    to: Option<Time>,
    skip_first: Option<Time>,
    edges: Option<Vec<u32>>,
    units: Option<u8>,
    order: u64,
}

fn process(number: u8) -> Option<Process> {
    Some(match number % 6 {
        0 | 1 => Process::new("bench", 77),
        // No second name for a pid: an export has the name that stood first, so the order of its rows would count.
        2 => Process::new("bench (helper)", 80),
        3 => Process::new("WindowServer", 188),
        4 => Process::new("bench", 79),
        _ => return None,
    })
}

impl Interval {
    fn row(&self) -> GpuInterval {
        let owner = process(self.process);
        let ids = Ids {
            command_buffer: self.buffer.some(),
            encoder: self.encoder.some(),
            submission: self.submission.some(),
        };
        let label = self.label.as_ref().map(|(text, plain)| {
            if *plain {
                return Label::Plain(text.text());
            }
            Label::Parts {
                text: text.text(),
                process: owner.clone().unwrap_or_else(|| Process::new("", 0)),
                submission: ids.submission,
            }
        });
        let channel = ["Compute", "Vertex", "Fragment", "Blit", ""];
        GpuInterval {
            start: self.start.ns(),
            duration: self.duration.ns(),
            latency: self.latency.ns(),
            channel: (self.channel % 6 != 5).then(|| channel[usize::from(self.channel % 6)].to_owned()),
            depth: self.depth.map(|depth| u64::from(depth % 4)),
            label,
            process: owner,
            gpu: if self.gpu { "M5 Max" } else { "M4" }.to_owned(),
            command_buffer: self.buffer.get(),
            encoder: self.encoder.get(),
            submission: self.submission.get(),
            ..GpuInterval::new(0, 0, "", &Process::new("", 0), ids)
        }
    }
}

fn table<R: Row>(export: &mut ExportBuilder<'_>, spec: TableSpec, rows: &[R], split: bool, run: u8) {
    let place = |export: &mut ExportBuilder<'_>| {
        export
            .node(&format!("//trace-toc[1]/run[{run}]/data[1]/table[{}]", spec.table))
            .schema(spec);
    };
    place(export);
    let middle = if split { rows.len() / 2 } else { 0 };
    for (at, row) in rows.iter().enumerate() {
        if at == middle && at > 0 {
            place(export);
        }
        export.row(row);
    }
}

impl Input {
    fn style(&self) -> Style {
        Style {
            ids: match self.form % 4 {
                0 => IdStyle::Mapped(|id| u64::MAX - id * 3),
                1 => IdStyle::Absent,
                2 => IdStyle::Mapped(|id| id.wrapping_mul(4097)),
                _ => IdStyle::All,
            },
            form: match self.form / 4 % 3 {
                0 => Form::Apple,
                1 => Form::ElementTree,
                _ => Form::PrettyCrlf,
            },
            ..Style::default()
        }
    }

    fn document(&self, intervals: Option<&[GpuInterval]>) -> String {
        let document = ExportBuilder::document(self.style(), |export| {
            for run in 1..=1 + u8::from(self.second_run) {
                self.run(export, intervals, run);
            }
        });
        let Some((name, pid)) = &self.target else {
            return document;
        };
        let name = process(*name).map_or_else(String::new, |process| process.name);
        let pid = pid.map_or_else(String::new, |pid| {
            format!(" pid=\"{}\"", if pid % 2 == 0 { 77 } else { pid })
        });
        format!(
            "<trace-toc><run number=\"1\"><info><target><process name=\"{name}\"{pid}/></target>\
             <summary><duration>0.05</duration></summary></info></run></trace-toc>{}",
            document
                .trim_start_matches("<?xml version=\"1.0\"?>")
                .trim_start_matches("<?xml version='1.0' encoding='utf-8'?>")
        )
    }

    fn run(&self, export: &mut ExportBuilder<'_>, intervals: Option<&[GpuInterval]>, run: u8) {
        let gpu = || "M5 Max".to_owned();
        let owner = |number: u8| process(number).unwrap_or_else(|| Process::new("other", 1));
        if let Some(rows) = intervals {
            // A second run with the same rows would be the same recording.
            let rows = if run == 1 { rows } else { rows.get(1..).unwrap_or(rows) };
            table(export, GPU_INTERVALS, rows, self.second_node, run);
        }
        if let Some(points) = &self.points {
            let rows: Vec<ExecutionPoint> = points
                .iter()
                .skip(usize::from(run - 1))
                .map(|point| ExecutionPoint {
                    time: point.time.some(),
                    channel: 0x12_3457 + u64::from(point.channel % 4),
                    function: u64::from(point.function % 4),
                    submission: point.submission.some(),
                })
                .collect();
            table(export, EXECUTION_POINTS, &rows, self.second_node, run);
        }
        if let Some(map) = &self.map {
            let mut rows = Vec::new();
            for (at, mapping) in map.iter().enumerate() {
                let ids = Ids {
                    command_buffer: mapping.buffer.some(),
                    encoder: mapping.encoder.some(),
                    submission: mapping.submission.some(),
                };
                let pair = MapRow::pair(at as u64, ids, &owner(mapping.process), 0).map(|row| MapRow {
                    process: process(mapping.process),
                    ..row
                });
                rows.extend(pair.into_iter().skip(usize::from(!mapping.pair)));
            }
            table(export, SUBMISSION_MAP, &rows, self.second_node, run);
        }
        if let Some(encoders) = &self.encoders {
            let rows: Vec<EncoderRow> = encoders
                .iter()
                .map(|encoder| EncoderRow {
                    start: 1,
                    duration: encoder.duration.some(),
                    thread: Thread {
                        name: "Main Thread".to_owned(),
                        tid: 1,
                        process: owner(encoder.process),
                    },
                    gpu: gpu(),
                    frame: 1,
                    buffer_label: encoder.buffer_label.text(),
                    buffer_index: 0,
                    label: encoder.label.text(),
                    index: 0,
                    command_buffer: encoder.buffer.some(),
                    encoder: encoder.encoder.some(),
                })
                .collect();
            table(export, ENCODERS_LIST, &rows, self.second_node, run);
        }
        if let Some(shaders) = &self.shaders {
            let rows: Vec<Shader> = shaders
                .iter()
                .enumerate()
                .map(|(id, text)| Shader {
                    time: 0,
                    function: text.text(),
                    id: id as u64,
                    pc_start: 0,
                    pc_end: 1,
                    kind: "Compute".to_owned(),
                    process: Process::new("bench", 77),
                    gpu: gpu(),
                })
                .collect();
            table(export, SHADER_LIST, &rows, self.second_node, run);
        }
        if let Some(samples) = &self.samples {
            let rows: Vec<ShaderInterval> = samples
                .iter()
                .map(|sample| ShaderInterval {
                    start: sample.start.some(),
                    duration: sample.duration.some(),
                    name: sample.name.text(),
                    pipeline: sample.name.text(),
                    kind: "Compute".to_owned(),
                    percent_nanos: 1,
                    process: owner(sample.process),
                    gpu: gpu(),
                    channel: "Compute".to_owned(),
                    depth: 0,
                })
                .collect();
            table(export, SHADER_INTERVALS, &rows, self.second_node, run);
        }
        if let Some(thermal) = &self.thermal {
            let rows: Vec<ThermalState> = thermal
                .iter()
                .map(|state| ThermalState {
                    start: u64::from(state.start),
                    end: u64::from(state.start) + u64::from(state.length),
                    state: state.state.text(),
                    induced: state.induced,
                })
                .collect();
            table(export, THERMAL_STATES, &rows, self.second_node, run);
        }
        if let Some(performance) = &self.performance {
            let rows: Vec<PerformanceState> = performance
                .iter()
                .map(|state| PerformanceState {
                    start: u64::from(state.start),
                    duration: u64::from(state.length),
                    state: state.state.text(),
                    gpu: gpu(),
                    induced: state.induced,
                })
                .collect();
            table(export, PERFORMANCE_STATES, &rows, self.second_node, run);
        }
        if self.info {
            let info = GpuInfo {
                gpu: gpu(),
                accelerator: 1,
            };
            table(export, GPU_INFO, &[info], false, run);
        }
        if let Some((column, text)) = &self.broken_cell {
            // A number that is none: refused, whichever column it stands in.
            let mut cells = GpuInterval::new(
                1,
                1,
                "",
                &Process::new("bench", 77),
                Ids {
                    command_buffer: 1,
                    encoder: 1,
                    submission: 1,
                },
            )
            .cells(self.style().locale);
            let at = usize::from(*column) % cells.len();
            let tag = GPU_INTERVALS.columns[at].2;
            cells[at] = Cell::Value(Element::same(tag, text.text()));
            export
                .node("//trace-toc[1]/run[1]/data[1]/table[7]")
                .schema(GPU_INTERVALS)
                .cells(&cells);
        }
    }

    fn view(&self) -> View {
        View {
            timing: if self.points_first {
                TimingChoice::Points
            } else {
                TimingChoice::Auto
            },
            process: match self.process % 8 {
                0 => ProcessChoice::All,
                1 => ProcessChoice::Pid(77),
                2 => ProcessChoice::parse("bench*"),
                3 => ProcessChoice::parse("*"),
                4 => ProcessChoice::parse("WindowServer"),
                _ => ProcessChoice::Target,
            },
            window: window(
                self.from.and_then(Time::ns),
                self.to.and_then(Time::ns),
                self.skip_first.and_then(Time::ns),
            ),
            buckets: self
                .edges
                .as_ref()
                .and_then(|edges| Buckets::from_edges(edges.iter().map(|edge| u64::from(*edge)).collect()).ok()),
            units: self.units.map(u64::from),
        }
    }
}

fn json(comparison: &Comparison) -> String {
    let mut out = Vec::new();
    write(comparison, Format::Json, &ReportOptions::default(), &mut out).expect("a Vec takes everything");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// A well-mixed order that depends on `seed` alone.
fn shuffled<T: Clone>(rows: &[T], mut seed: u64) -> Vec<T> {
    let mut rows = rows.to_vec();
    for at in (1..rows.len()).rev() {
        seed = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        rows.swap(at, (seed >> 33) as usize % (at + 1));
    }
    rows
}

libfuzzer_sys::fuzz_target!(|input: Input| {
    let rows: Option<Vec<GpuInterval>> = input
        .intervals
        .as_ref()
        .map(|rows| rows.iter().map(Interval::row).collect());
    let view = input.view();
    let read = |rows: Option<&[GpuInterval]>| {
        let document = input.document(rows);
        let options = ReadOptions {
            run: RunChoice::All,
            ..ReadOptions::default()
        };
        read_recording_from(document.as_bytes(), "fuzz", &options, &())
            .and_then(|recording| compared(&recording, &view))
    };
    let first = read(rows.as_deref());
    if let Ok(comparison) = &first {
        reports(comparison);
    }
    let Some(rows) = rows.filter(|_| !input.second_run) else {
        return;
    };
    let other = read(Some(&shuffled(&rows, input.order)));
    match (&first, &other) {
        (Ok(first), Ok(other)) => {
            let (first, other) = (json(first), json(other));
            if first != other {
                let differing = first.lines().zip(other.lines()).filter(|(a, b)| a != b);
                let shown: Vec<_> = differing.take(6).collect();
                panic!("the order of rows counts: {shown:#?}");
            }
        }
        (Err(_), Err(_)) => {}
        (first, other) => panic!(
            "the order of rows decides: {:?} {:?}",
            first.as_ref().err(),
            other.as_ref().err()
        ),
    }
});
