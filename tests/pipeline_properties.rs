//! From random rows through the reader and the join to numbers: what was written is read, no row is lost without a
//! reason, and neither order nor form changes a number.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::collections::BTreeSet;
use std::io::{BufReader, Read};
use std::path::Path;

use proptest::prelude::*;
use support::export::{
    CHANNEL_COMPUTE, EncoderRow, ExecutionPoint, ExportBuilder, Form, GpuInterval, IdStyle, Ids, Label, MapRow,
    Process, Row, Style, Thread,
};
use support::pack;
use trace_attr::analysis::{Request, SideRequest, analyse};
use trace_attr::compare::{Trial, TrialOptions};
use trace_attr::error::Result;
use trace_attr::join::{JoinOptions, ProcessChoice, TimingChoice};
use trace_attr::model::{Nanos, Timestamp, WindowRule};
use trace_attr::xml::{CellKind, ExportReader, Keep, Part};

const LABELS: [&str; 6] = [
    "engine.layer.0.attn:attn",
    "Command Buffer 0:Compute Command 1",
    "vec<f32> & \"π\":k",
    "",
    "a:b & c",
    "only",
];
const PROCESSES: [(&str, u64); 3] = [("bench", 77), ("WindowServer", 188), ("other (x)", 5)];
const CHANNELS: [&str; 3] = ["Compute", "Vertex", "Fragment"];

/// A random row; few values, so that many are shared and become refs.
fn interval() -> impl Strategy<Value = GpuInterval> {
    let maybe = |values: std::ops::Range<u64>| prop::option::weighted(0.9, values);
    (
        (maybe(0..40), maybe(0..30), maybe(0..9), maybe(0..3)),
        (
            prop::option::weighted(0.9, 0..LABELS.len()),
            prop::option::weighted(0.9, 0..PROCESSES.len()),
            prop::option::weighted(0.9, 0..CHANNELS.len()),
        ),
        (maybe(1..6), maybe(1..4), maybe(1..50)),
    )
        .prop_map(
            |((start, duration, latency, depth), (label, process, channel), (encoder, buffer, submission))| {
                let process = process.map(|at| Process::new(PROCESSES[at].0, PROCESSES[at].1));
                let owner = process.clone().unwrap_or_else(|| Process::new("bench", 77));
                let ids = Ids {
                    command_buffer: buffer.unwrap_or(0),
                    encoder: encoder.unwrap_or(0),
                    submission: submission.unwrap_or(0),
                };
                GpuInterval {
                    start: start.map(|start| start * 1_000),
                    duration: duration.map(|duration| duration * 700),
                    channel: channel.map(|at| CHANNELS[at].to_owned()),
                    latency: latency.map(|latency| latency * 1_000),
                    depth,
                    label: label.map(|at| Label::Parts {
                        text: LABELS[at].to_owned(),
                        process: owner.clone(),
                        submission: ids.submission,
                    }),
                    process,
                    command_buffer: buffer,
                    encoder,
                    submission,
                    ..GpuInterval::new(0, 0, "", &owner, ids)
                }
            },
        )
}

/// The documents of the same rows in every form.
fn forms(rows: &[GpuInterval]) -> Vec<(&'static str, Vec<u8>)> {
    let build = |export: &mut ExportBuilder<'_>| {
        export.table(GpuInterval::TABLE).rows(rows.iter().cloned());
    };
    let with = |style: Style| ExportBuilder::document(style, build).into_bytes();
    let apple = with(Style::default());
    vec![
        (
            "no ids",
            with(Style {
                ids: IdStyle::Absent,
                ..Style::default()
            }),
        ),
        (
            "pretty",
            with(Style {
                form: Form::PrettyCrlf,
                ..Style::default()
            }),
        ),
        (
            "huge ids",
            with(Style {
                ids: IdStyle::Mapped(|id| u64::MAX - 3 * id),
                ..Style::default()
            }),
        ),
        ("ElementTree", ExportBuilder::reserialised(build).into_bytes()),
        ("gzip", pack::gzip(&apple)),
        ("zstd", pack::zstd(&apple)),
        ("Apple", apple),
    ]
}

/// Gives one byte at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(1);
        self.0.read(&mut out[..most])
    }
}

/// Every cell as text, NULL as `None`, in the order of the columns.
fn cells(input: impl std::io::BufRead) -> Vec<Vec<Option<String>>> {
    let mut reader = ExportReader::new(input, Keep::All);
    let Some(Part::Table { schema, .. }) = reader.next_part().unwrap() else {
        panic!("a table")
    };
    let columns: Vec<_> = GpuInterval::TABLE
        .columns
        .iter()
        .map(|column| schema.column(column.0).unwrap())
        .collect();
    let mut rows = Vec::new();
    while let Some(row) = reader.read_row().unwrap() {
        let cell = |at: &_| {
            let cell = row.cell(*at);
            match cell.kind() {
                CellKind::Null => None,
                CellKind::Composite => Some(cell.child("string").map_or_else(|| cell.text(), |child| child.text())),
                _ => Some(cell.text()),
            }
        };
        rows.push(columns.iter().map(cell).collect());
    }
    assert!(reader.next_part().unwrap().is_none());
    rows
}

/// What [`cells`] must give for a row.
fn written(row: &GpuInterval) -> Vec<Option<String>> {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let label = row.label.as_ref().map(|label| match label {
        Label::Parts { text, .. } | Label::Plain(text) => text.clone(),
    });
    vec![
        number(row.start),
        number(row.duration),
        row.channel.clone(),
        number(row.frame),
        number(row.latency),
        number(row.depth),
        label,
        Some(row.state.clone()),
        number(Some(row.connection)),
        number(Some(row.color)),
        row.process
            .as_ref()
            .map(|process| format!("{} ({})", process.name, process.pid)),
        Some(row.gpu.clone()),
        Some(String::new()),
        Some(row.surfaces.clone()),
        number(Some(row.bytes)),
        number(row.command_buffer),
        number(row.encoder),
        number(row.submission),
    ]
}

fn read(folder: &Path, join: JoinOptions, timing: TimingChoice) -> Result<Trial> {
    let request = Request {
        a: SideRequest {
            inputs: vec![folder.to_owned()],
            join,
            ..SideRequest::default()
        },
        timing,
        trial: TrialOptions::default(),
        ..Request::default()
    };
    let mut outcome = analyse(&request, &())?;
    Ok(outcome.comparison.a.trials.remove(0))
}

fn read_bytes(bytes: &[u8], join: JoinOptions) -> std::result::Result<Trial, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.xml"), bytes).unwrap();
    // The same name every time: it stands in errors.
    read(&folder.path().join("t.xml"), join, TimingChoice::Auto)
        .map_err(|error| error.to_string().replace(&folder.path().display().to_string(), ""))
}

fn choice() -> impl Strategy<Value = JoinOptions> {
    let process = prop_oneof![
        Just(ProcessChoice::All),
        Just(ProcessChoice::Name("bench".to_owned())),
        Just(ProcessChoice::Pid(77)),
        Just(ProcessChoice::Name("*e*".to_owned())),
        Just(ProcessChoice::Target),
    ];
    let time = || prop::option::of(0..50_000_u64);
    (process, time(), time(), prop::option::of(0..20_000_u64)).prop_map(|(process, from, to, skip)| JoinOptions {
        process,
        window: WindowRule {
            from: from.map(Timestamp),
            to: to.map(Timestamp),
            skip_first: skip.map(Nanos),
            ..WindowRule::default()
        },
        show_private: false,
    })
}

/// A trial without its name, as text.
fn shown(trial: &std::result::Result<Trial, String>) -> String {
    format!("{trial:?}")
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_column_is_read_as_it_was_written(rows in prop::collection::vec(interval(), 1..14)) {
        let expected: Vec<_> = rows.iter().map(written).collect();
        for (name, bytes) in forms(&rows) {
            prop_assert_eq!(cells(trace_attr::source::decode(&bytes[..]).unwrap()), expected.clone(), "{}", name);
            prop_assert_eq!(cells(trace_attr::source::decode(Slow(&bytes)).unwrap()), expected.clone(), "slow {}", name);
        }
        // The reader itself, with a buffer of one byte.
        let (_, apple) = forms(&rows).pop().unwrap();
        prop_assert_eq!(cells(BufReader::with_capacity(1, &apple[..])), expected);
    }

    #[test]
    fn rows_are_counted_or_left_out_for_a_reason(rows in prop::collection::vec(interval(), 1..40), join in choice()) {
        let (_, apple) = forms(&rows).pop().unwrap();
        if let Ok(trial) = read_bytes(&apple, join.clone()) {
            prop_assert_eq!(trial.rows_read, rows.len() as u64);
            prop_assert_eq!(trial.rows_read, trial.all.submissions + trial.left_out.rows());
            // A second opinion on what cannot be counted in any case.
            let usable = rows.iter().filter(|row| row.start.is_some() && row.duration.is_some());
            let own = usable.filter(|row| match &join.process {
                ProcessChoice::All => true,
                ProcessChoice::Pid(_) => row.process.as_ref().is_some_and(|process| process.pid == 77),
                _ => row.process.is_some(),
            });
            prop_assert!(trial.submissions_in_process <= own.count() as u64);
        }
    }

    #[test]
    fn order_and_form_do_not_matter(
        (rows, mixed) in prop::collection::vec(interval(), 1..24)
            .prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
        join in choice(),
    ) {
        let (_, apple) = forms(&rows).pop().unwrap();
        let expected = read_bytes(&apple, join.clone());
        for (name, bytes) in forms(&rows) {
            prop_assert_eq!(shown(&read_bytes(&bytes, join.clone())), shown(&expected), "{}", name);
        }
        let (_, mixed) = forms(&mixed).pop().unwrap();
        let mixed = read_bytes(&mixed, join);
        match (expected, mixed) {
            (Ok(expected), Ok(mixed)) => {
                prop_assert_eq!(mixed.all, expected.all);
                prop_assert_eq!(mixed.left_out, expected.left_out);
                for (a, b) in [(mixed.buckets, expected.buckets), (mixed.phases, expected.phases), (mixed.encoders, expected.encoders), (mixed.channels, expected.channels)] {
                    let sorted = |mut groups: Vec<trace_attr::attribution::Group>| {
                        groups.sort_by(|a, b| a.key.cmp(&b.key));
                        format!("{groups:?}")
                    };
                    prop_assert_eq!(sorted(a), sorted(b));
                }
            }
            (expected, mixed) => prop_assert_eq!(expected.is_err(), mixed.is_err()),
        }
    }

    #[test]
    fn points_and_intervals_of_one_workload_agree(
        work in prop::collection::vec((0..60_u64, 1..30_u64, 0..PROCESSES.len(), 0..LABELS.len()), 1..20),
        stray in prop::collection::vec((0..90_u64, 1..4_u64), 0..5),
        window in (prop::option::of(0..40_000_u64), prop::option::of(40_000..90_000_u64)),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let put = |schema: &str, build: &dyn Fn(&mut ExportBuilder<'_>)| {
            let text = ExportBuilder::document(Style::default(), |export| build(export));
            std::fs::write(folder.path().join(format!("{schema}.xml")), text).unwrap();
        };
        let ids = |at: usize| Ids { command_buffer: 0x900 + at as u64, encoder: 0x600 + at as u64, submission: 0x400 + 2 * at as u64 };
        let process = |at: usize| Process::new(PROCESSES[at].0, PROCESSES[at].1);
        put(GpuInterval::TABLE.schema, &|export| {
            export.table(GpuInterval::TABLE);
            for (at, (start, duration, owner, label)) in work.iter().enumerate() {
                export.row(&GpuInterval::new(start * 1_000, duration * 500, LABELS[*label], &process(*owner), ids(at)));
            }
        });
        put(ExecutionPoint::TABLE.schema, &|export| {
            export.table(ExecutionPoint::TABLE);
            let mut points = Vec::new();
            let mut point = |time, function, submission| points.push(ExecutionPoint { time, channel: CHANNEL_COMPUTE, function, submission });
            for (at, (start, duration, ..)) in work.iter().enumerate() {
                point(start * 1_000, 1, ids(at).submission);
                point(start * 1_000 + duration * 500, 2, ids(at).submission);
            }
            // Starts without an end, ends without a start, other functions: of submissions that nobody knows.
            for (at, (time, function)) in stray.iter().enumerate() {
                point(time * 1_000, *function, 0x8000 + 2 * at as u64);
            }
            points.sort_by_key(|point| (point.time, std::cmp::Reverse(point.function)));
            export.rows(points);
        });
        put(MapRow::TABLE.schema, &|export| {
            export.table(MapRow::TABLE);
            for (at, (start, _, owner, _)) in work.iter().enumerate() {
                export.rows(MapRow::pair(*start, ids(at), &process(*owner), 0));
            }
        });
        put(EncoderRow::TABLE.schema, &|export| {
            export.table(EncoderRow::TABLE);
            for (at, (start, _, owner, label)) in work.iter().enumerate() {
                let (buffer, encoder) = LABELS[*label].split_once(':').unwrap_or(("", LABELS[*label]));
                export.row(&EncoderRow {
                    start: *start,
                    duration: 7,
                    thread: Thread { name: "Main Thread".to_owned(), tid: 9, process: process(*owner) },
                    gpu: "M5 Max".to_owned(),
                    frame: 1,
                    buffer_label: buffer.to_owned(),
                    buffer_index: 0,
                    label: encoder.to_owned(),
                    index: 0,
                    command_buffer: ids(at).command_buffer,
                    encoder: ids(at).encoder,
                });
            }
        });
        let there: BTreeSet<usize> = work.iter().map(|one| one.2).collect();
        let choices = there.iter().map(|at| ProcessChoice::Pid(u32::try_from(PROCESSES[*at].1).unwrap()));
        for process in choices {
            let join = JoinOptions {
                process,
                window: WindowRule { from: window.0.map(Timestamp), to: window.1.map(Timestamp), ..WindowRule::default() },
                show_private: false,
            };
            let intervals = read(folder.path(), join.clone(), TimingChoice::Intervals);
            let points = read(folder.path(), join, TimingChoice::Points);
            let (Ok(intervals), Ok(points)) = (&intervals, &points) else {
                prop_assert_eq!(intervals.is_err(), points.is_err());
                continue;
            };
            prop_assert_eq!(points.all.submissions, intervals.all.submissions);
            prop_assert_eq!(points.all.total, intervals.all.total);
            prop_assert_eq!(points.all.busy, intervals.all.busy);
            prop_assert_eq!(points.rows_read, 2 * points.all.submissions + points.left_out.rows());
            prop_assert_eq!(intervals.rows_read, intervals.all.submissions + intervals.left_out.rows());
            let totals = |groups: &[trace_attr::attribution::Group]| -> BTreeSet<(String, u64, u64)> {
                groups.iter().map(|group| (group.key.clone(), group.stats.submissions, group.stats.total.0)).collect()
            };
            prop_assert_eq!(totals(&points.phases), totals(&intervals.phases));
            prop_assert_eq!(totals(&points.encoders), totals(&intervals.encoders));
            prop_assert_eq!(totals(&points.buckets), totals(&intervals.buckets));
            let check = intervals.cross_check.unwrap();
            prop_assert_eq!((check.only_intervals, check.differ), (0, 0));
        }
    }
}
