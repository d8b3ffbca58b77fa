//! Files for other tools, made of random and of hostile traces: every format says what the attribution says.
//!
//! Each format is read here by a reader of its own, as strictly as the tools are. `tests/consumers/run` loads such files
//! with the tools.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

mod support;
mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read as _;

use proptest::prelude::*;
use serde_json::Value;
use support::nasty::{hidden, long, nasty};
use trace_attr::analysis::{TracedSide, TracedTrial, Traces};
use trace_attr::attribution::{GroupBy, PhaseNames, attribute};
use trace_attr::convert::{self, Conversion};
use trace_attr::model::{
    CommandBufferId, EncoderId, Label, LabelId, LeftOut, Names, Nanos, Process, Reason, RecordingState, Submission,
    SubmissionId, Timestamp, Timing, Trace, Window, WindowFound,
};
use wire::Message;

const ALL: [Conversion; 6] = [
    Conversion::Chrome,
    Conversion::Perfetto,
    Conversion::Speedscope,
    Conversion::Folded,
    Conversion::Pprof,
    Conversion::Hatchet,
];

const CHANNELS: [&str; 3] = ["Compute", "Vertex", "Fragment"];

/// Start, duration (ns), label, channel.
type Raw = (u64, u64, usize, usize);

fn trace(labels: &[String], mut rows: Vec<Raw>) -> Trace {
    rows.sort_by_key(|(start, duration, ..)| (*start, start + duration));
    let mut names = Names::default();
    let encoder = names.intern("Compute Command 0");
    let channels = CHANNELS.map(|name| names.intern(name));
    let mut known: Vec<Label> = labels
        .iter()
        .map(|label| Label::Known {
            command_buffer: names.intern(label),
            encoder,
            coalesced: false,
        })
        .collect();
    known.push(Label::NoEncoder);
    let submission = |(at, (start, duration, label, channel)): (usize, &Raw)| Submission {
        start: Timestamp(*start),
        duration: Nanos(*duration),
        id: SubmissionId::new(at as u64),
        encoder: EncoderId::new(u64::MAX - 1 - at as u64),
        command_buffer: CommandBufferId::new(7),
        latency: (at % 2 == 0).then_some(Nanos(5)),
        channel: channels[*channel],
        label: LabelId(*label as u32 % known.len() as u32),
    };
    let submissions: Vec<Submission> = rows.iter().enumerate().map(submission).collect();
    let mut left_out = LeftOut::default();
    left_out.add(Reason::OtherProcess, 3, Some(Nanos(99)));
    Trace {
        run: 1,
        process: Process {
            name: "engine".into(),
            pid: Some(42),
        },
        timing: Timing::Intervals,
        gpu: None,
        names,
        labels: known,
        encoders: None,
        window: Window {
            from: Timestamp(0),
            to: submissions.iter().map(Submission::end).max().unwrap_or_default(),
        },
        window_found: WindowFound::Given,
        submissions_in_process: submissions.len() as u64,
        rows_read: submissions.len() as u64 + left_out.rows(),
        submissions,
        left_out,
        cross_check: None,
        kernels: None,
        shader_timeline_rows: None,
        shader_samples: Vec::new(),
        shader_sampled_span: None,
        state: RecordingState::default(),
        notes: Vec::new(),
        fingerprint: 0,
    }
}

fn side(name: &str, traces: Vec<Trace>) -> TracedSide {
    let trial = |(trace, number)| TracedTrial {
        input: format!("{name}-{number}"),
        number,
        trace,
        live: None,
    };
    TracedSide {
        name: name.to_owned(),
        trials: traces.into_iter().zip(1..).map(trial).collect(),
        phase_names: PhaseNames::default(),
    }
}

fn sides(a: Vec<Trace>, b: Vec<Trace>) -> Traces {
    Traces {
        a: side("ours", a),
        b: (!b.is_empty()).then(|| side("theirs", b)),
        missing: Vec::new(),
    }
}

fn converted(traces: &Traces, conversion: Conversion) -> Vec<u8> {
    let mut out = Vec::new();
    convert::write(traces, conversion, &mut out).unwrap();
    out
}

fn json(traces: &Traces, conversion: Conversion) -> Value {
    serde_json::from_slice(&converted(traces, conversion)).unwrap()
}

/// ns by phase.
type Totals = BTreeMap<String, u64>;

/// What the attribution says: totals of all phases that take time, over the trials of a side.
fn attributed(side: &TracedSide) -> Totals {
    let mut totals = Totals::new();
    for trial in &side.trials {
        for group in attribute(&trial.trace, &GroupBy::Phase(PhaseNames::default())).groups {
            *totals.entry(group.key).or_default() += group.stats.total.0;
        }
    }
    totals.retain(|_, ns| *ns > 0);
    totals
}

fn all_attributed(traces: &Traces) -> Totals {
    let mut all = attributed(&traces.a);
    for (key, ns) in traces.b.iter().flat_map(attributed) {
        *all.entry(key).or_default() += ns;
    }
    all
}

fn without_empty(mut totals: Totals) -> Totals {
    totals.retain(|_, ns| *ns > 0);
    totals
}

/// `12.345` µs as ns.
fn ns(us: &Value) -> u64 {
    let text = us.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{decimals:0<3}").parse().unwrap()
}

/// Totals by slice name; slices of one track must not cross.
fn chrome(traces: &Traces) -> Totals {
    let file = json(traces, Conversion::Chrome);
    let mut lanes: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let mut totals = Totals::new();
    for event in file["traceEvents"].as_array().unwrap() {
        let id = |name: &str| event[name].as_u64().filter(|id| *id < 1 << 31).unwrap();
        let lane = lanes.entry((id("pid"), id("tid"))).or_default();
        if event["ph"] == "X" {
            let (start, length) = (ns(&event["ts"]), ns(&event["dur"]));
            lane.push((start, start + length));
            *totals.entry(event["name"].as_str().unwrap().to_owned()).or_default() += length;
        }
    }
    for lane in lanes.values() {
        assert!(lane.is_sorted_by(|one, next| one.1 <= next.0), "{lane:?}");
    }
    let other = &file["otherData"];
    assert_eq!(other["trials"].as_array().unwrap().len(), traces.each().count());
    assert_eq!(other["trials"][0]["left_out"]["other_process"]["total_ns"], 99);
    without_empty(totals)
}

/// Totals by slice name, with everything that a strict reader asks of the packets.
fn perfetto(traces: &Traces) -> Totals {
    let packets = Message::read(&converted(traces, Conversion::Perfetto)).messages(1);
    let mut tracks: HashMap<u64, Message> = HashMap::new();
    let mut interned: HashMap<(u32, u64), String> = HashMap::new();
    let mut open: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut totals: HashMap<u64, u64> = HashMap::new();
    for (at, packet) in packets.iter().enumerate() {
        assert_eq!(packet.number(10), Some(1), "one sequence, not 0");
        let flags = packet.number(13).unwrap_or(0);
        assert_eq!(flags & 1 == 1, at == 0, "only the first packet clears state");
        for data in packet.messages(12) {
            for kind in [1, 2, 3, 29] {
                for entry in data.messages(kind) {
                    let number = entry.number(1).unwrap();
                    assert!(number > 0, "0 means none");
                    let text = entry.texts(2).pop().unwrap();
                    assert_eq!(interned.insert((kind, number), text), None);
                }
            }
        }
        if let Some(track) = packet.message(60) {
            if let Some(parent) = track.number(5) {
                assert!(tracks.contains_key(&parent));
            }
            assert_eq!(tracks.insert(track.number(1).unwrap(), track), None);
        }
        let Some(event) = packet.message(11) else { continue };
        let (now, track) = (packet.number(8).unwrap(), event.number(11).unwrap());
        assert!(tracks.contains_key(&track));
        let known = |kind, number| assert!(interned.contains_key(&(kind, number)), "{kind} {number}");
        let uses: Vec<u64> = [3, 10].into_iter().filter_map(|field| event.number(field)).collect();
        assert!(uses.is_empty() || flags & 2 == 2, "what uses numbers needs the state");
        event
            .messages(4)
            .iter()
            .for_each(|annotation| known(3, annotation.number(1).unwrap()));
        let stack = open.entry(track).or_default();
        let before = last.insert(track, now).unwrap_or(0);
        assert!(before <= now, "a track goes forward");
        match event.number(9) {
            Some(1) => {
                known(1, event.number(3).unwrap());
                known(2, event.number(10).unwrap());
                assert!(stack.is_empty(), "submissions of a lane do not overlap");
                stack.push((now, event.number(10).unwrap()));
            }
            Some(2) => {
                let (begin, name) = stack.pop().expect("what ends has begun");
                *totals.entry(name).or_default() += now - begin;
            }
            other => assert_eq!(other, Some(3)),
        }
    }
    assert!(open.values().all(Vec::is_empty), "what has begun ends");
    let named = totals.into_iter().map(|(name, ns)| (interned[&(2, name)].clone(), ns));
    without_empty(named.collect())
}

/// Totals of the evented profiles by frame; those of the sampled ones by phase must be the same.
fn speedscope(traces: &Traces) -> Totals {
    let file = json(traces, Conversion::Speedscope);
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    let name = |frame: &Value| {
        let at = frame.as_u64().unwrap() as usize;
        frames[at]["name"].as_str().unwrap().to_owned()
    };
    let (mut events, mut samples) = (Totals::new(), Totals::new());
    for profile in file["profiles"].as_array().unwrap() {
        assert_eq!(profile["unit"], "nanoseconds");
        let (start, end) = (
            profile["startValue"].as_u64().unwrap(),
            profile["endValue"].as_u64().unwrap(),
        );
        if profile["type"] == "sampled" {
            let (stacks, weights) = (
                profile["samples"].as_array().unwrap(),
                profile["weights"].as_array().unwrap(),
            );
            assert_eq!(stacks.len(), weights.len());
            assert_eq!(weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>(), end);
            for (stack, weight) in stacks.iter().zip(weights) {
                // Side, process, phase, encoder, channel.
                let path: Vec<String> = stack.as_array().unwrap().iter().map(name).collect();
                assert_eq!((path.len(), path[1].as_str()), (5, "engine"));
                *samples.entry(path[2].clone()).or_default() += weight.as_u64().unwrap();
            }
            continue;
        }
        let mut open: Vec<(Value, u64)> = Vec::new();
        let mut before = start;
        for event in profile["events"].as_array().unwrap() {
            let at = event["at"].as_u64().unwrap();
            assert!(before <= at && at <= end);
            before = at;
            if event["type"] == "O" {
                open.push((event["frame"].clone(), at));
            } else {
                let (frame, begin) = open.pop().unwrap();
                assert_eq!(frame, event["frame"]);
                *events.entry(name(&frame)).or_default() += at - begin;
            }
        }
        assert!(open.is_empty());
    }
    let events = without_empty(events);
    assert_eq!(events, samples);
    events
}

/// Lines as inferno reads them: a stack, and the number behind the last space.
fn folded(text: &str) -> Vec<(Vec<String>, u64)> {
    let line = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        // A number before the last one would be a second column.
        let end = stack.rsplit_once(' ').map_or("x", |(_, end)| end);
        assert!(!end.chars().all(|c| c.is_ascii_digit() || c == '.'), "{line}");
        assert!(!line.starts_with('#') && line.trim() == line, "{line}");
        (stack.split(';').map(str::to_owned).collect(), count.parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn folded_totals(traces: &Traces) -> Totals {
    let text = String::from_utf8(converted(traces, Conversion::Folded)).unwrap();
    let mut totals = Totals::new();
    for (path, ns) in folded(&text) {
        assert_eq!((path.len(), path[1].as_str()), (5, "engine"));
        *totals.entry(path[2].clone()).or_default() += ns;
    }
    totals
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

/// Totals by the third frame from outside, and submissions in all.
fn pprof(traces: &Traces) -> (Totals, u64) {
    let bytes = converted(traces, Conversion::Pprof);
    assert_eq!(bytes[4..8], [0; 4], "no time in the header");
    let profile = Message::read(&unzipped(&bytes));
    let texts = profile.texts(6);
    let text = |number: Option<u64>| texts[number.unwrap_or(0) as usize].clone();
    assert_eq!(texts[0], "");
    let types: Vec<(String, String)> = profile
        .messages(1)
        .iter()
        .map(|kind| (text(kind.number(1)), text(kind.number(2))))
        .collect();
    let kind = |kind: &str, unit: &str| (kind.to_owned(), unit.to_owned());
    assert_eq!(types, [kind("gpu_time", "nanoseconds"), kind("submissions", "count")]);
    assert_eq!(text(profile.number(14)), "gpu_time");
    assert_eq!(profile.messages(3).len(), 1, "one mapping");
    let functions: HashMap<u64, String> = profile
        .messages(5)
        .iter()
        .map(|function| (function.number(1).unwrap(), text(function.number(2))))
        .collect();
    let mut locations: HashMap<u64, String> = HashMap::new();
    for location in profile.messages(4) {
        assert_eq!(location.number(2), Some(1));
        let function = location.message(4).unwrap().number(1).unwrap();
        locations.insert(location.number(1).unwrap(), functions[&function].clone());
    }
    let (mut totals, mut submissions) = (Totals::new(), 0);
    for sample in profile.messages(2) {
        let path: Vec<&String> = sample.packed(1).iter().map(|location| &locations[location]).collect();
        let values = sample.packed(2);
        assert_eq!((path.len(), values.len()), (5, 2));
        assert!(CHANNELS.contains(&path[0].as_str()), "the leaf comes first");
        *totals.entry(path[2].clone()).or_default() += values[0];
        submissions += values[1];
    }
    (without_empty(totals), submissions)
}

/// Totals by phase, from self values.
fn hatchet(traces: &Traces) -> Totals {
    fn walk(node: &Value, phase: Option<&str>, totals: &mut Totals) {
        let frame = &node["frame"];
        let phase = if frame["type"] == "phase" {
            frame["name"].as_str()
        } else {
            phase
        };
        for (name, value) in node["metrics"].as_object().unwrap() {
            let value = value.as_u64().unwrap();
            assert!(["gpu_ns", "submissions"].contains(&name.as_str()));
            if name == "gpu_ns" && value > 0 {
                *totals.entry(phase.unwrap().to_owned()).or_default() += value;
            }
        }
        for child in node["children"].as_array().unwrap() {
            walk(child, phase, totals);
        }
    }
    let literal = json(traces, Conversion::Hatchet);
    let [root] = literal.as_array().unwrap().as_slice() else {
        panic!("one root")
    };
    assert_eq!(root["metrics"], serde_json::json!({"gpu_ns": 0, "submissions": 0}));
    let mut totals = Totals::new();
    walk(root, None, &mut totals);
    totals
}

/// Reads every format, and holds it against the attribution.
fn all_agree(traces: &Traces) {
    let expected = all_attributed(traces);
    assert_eq!(chrome(traces), expected);
    assert_eq!(perfetto(traces), expected);
    assert_eq!(speedscope(traces), expected);
    assert_eq!(folded_totals(traces), expected);
    assert_eq!(hatchet(traces), expected);
    let submissions = traces
        .each()
        .map(|(_, trial)| trial.trace.submissions.len() as u64)
        .sum();
    assert_eq!(pprof(traces), (expected, submissions));
    for conversion in ALL {
        assert_eq!(
            converted(traces, conversion),
            converted(traces, conversion),
            "{}: same input, same bytes",
            conversion.name()
        );
    }
}

fn some_trace() -> impl Strategy<Value = Trace> {
    let duration = prop_oneof![Just(0), 1..3_000_u64, 1_000..200_000_u64];
    let row = (0..300_000_u64, duration, 0..9_usize, 0..3_usize);
    let labels = ["attn", "layers.3.mlp", "lm_head", "up & gate", "a/b"].map(str::to_owned);
    prop::collection::vec(row, 1..40).prop_map(move |rows| trace(&labels, rows))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_format_adds_up_to_the_attribution(
        a in prop::collection::vec(some_trace(), 1..3),
        b in prop::collection::vec(some_trace(), 0..3),
    ) {
        all_agree(&sides(a, b));
    }

    #[test]
    fn both_columns_of_a_difference_are_the_totals_of_their_sides(
        a in prop::collection::vec(some_trace(), 2),
        b in prop::collection::vec(some_trace(), 2),
    ) {
        let traces = sides(a, b);
        let text = String::from_utf8(converted(&traces, Conversion::FoldedDiff)).unwrap();
        let (mut of_a, mut of_b) = (Totals::new(), Totals::new());
        for line in text.lines() {
            let mut fields = line.rsplitn(3, ' ');
            let mut next = || fields.next().unwrap();
            let (a, b): (u64, u64) = (next().parse().unwrap(), next().parse().unwrap());
            // Phase, encoder, channel: sides and processes have other names anyway.
            let path: Vec<&str> = next().split(';').collect();
            prop_assert_eq!(path.len(), 3);
            *of_a.entry(path[0].to_owned()).or_default() += a;
            *of_b.entry(path[0].to_owned()).or_default() += b;
        }
        prop_assert_eq!(without_empty(of_a), attributed(&traces.a));
        prop_assert_eq!(without_empty(of_b), attributed(traces.b.as_ref().unwrap()));
    }
}

#[test]
fn one_side_has_no_difference() {
    let traces = sides(vec![trace(&["x".to_owned()], vec![(0, 10, 0, 0)])], Vec::new());
    let error = convert::write(&traces, Conversion::FoldedDiff, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn trials_begin_at_their_first_submission_and_say_where_that_was() {
    let labels = ["x".to_owned()];
    let at = |start: u64| trace(&labels, vec![(start, 10, 0, 0), (start + 25, 10, 0, 0)]);
    let traces = sides(vec![at(7_000), at(1 << 49)], vec![at(3)]);
    let file = json(&traces, Conversion::Chrome);
    let starts = |pid: u64| {
        let events = file["traceEvents"].as_array().unwrap().iter();
        let slices = events.filter(|event| event["ph"] == "X" && event["pid"] == pid);
        slices.map(|event| ns(&event["ts"])).collect::<Vec<_>>()
    };
    let origin = |trial: usize| file["otherData"]["trials"][trial]["origin_ns"].as_str().unwrap();
    for (pid, first) in [(1, "7000"), (2, "562949953421312"), (3, "3")] {
        assert_eq!(starts(pid), [0, 25]);
        assert_eq!(origin(pid as usize - 1), first);
    }
}

/// More at once than there are lanes: counted, in the timelines; the call tree has all of it.
#[test]
fn what_finds_no_lane_is_counted_in_the_file() {
    let rows = (0..100).map(|at| (at, 1_000, 0, 0)).collect();
    let traces = sides(vec![trace(&["x".to_owned()], rows)], Vec::new());
    let chrome = json(&traces, Conversion::Chrome);
    assert_eq!(chrome["otherData"]["slices_left_out"], 36);
    let speedscope = json(&traces, Conversion::Speedscope);
    assert_eq!(
        speedscope["name"],
        "ours · 100 submissions · 3 rows left out · 36 slices left out"
    );
    assert_eq!(pprof(&traces).0["x"], 100_000);
}

/// Texts that a tool shows, of every format.
fn shown(conversion: Conversion, bytes: &[u8]) -> Vec<String> {
    fn texts(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => into.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| texts(value, into)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                into.push(name.clone());
                texts(value, into);
            }),
            _ => {}
        }
    }
    match conversion {
        Conversion::Folded | Conversion::FoldedDiff => vec![String::from_utf8(bytes.to_vec()).unwrap()],
        Conversion::Pprof => Message::read(&unzipped(bytes)).texts(6),
        Conversion::Perfetto => {
            let packets = Message::read(bytes).messages(1);
            let interned = packets.iter().flat_map(|packet| packet.messages(12));
            let interned = interned.flat_map(|data| [1, 2, 3, 29].map(|kind| data.messages(kind)));
            let interned = interned.flatten().flat_map(|entry| entry.texts(2));
            let tracks = packets.iter().filter_map(|packet| packet.message(60));
            interned.chain(tracks.flat_map(|track| track.texts(2))).collect()
        }
        Conversion::Chrome | Conversion::Speedscope | Conversion::Hatchet => {
            let mut all = Vec::new();
            texts(&serde_json::from_slice(bytes).unwrap(), &mut all);
            all
        }
    }
}

#[test]
fn no_label_gets_out_of_its_place_in_any_format() {
    let labels: Vec<String> = nasty().into_iter().chain(long()).collect();
    let rows = || {
        (0..)
            .zip(&labels)
            .map(|(at, _)| (at * 1_000, 100 + at, at as usize, 0))
            .collect()
    };
    let traces = Traces {
        a: side("=cmd|'\u{1b}[2J;x 1", vec![trace(&labels, rows())]),
        b: Some(side("#\u{202e}b", vec![trace(&labels, rows())])),
        missing: Vec::new(),
    };
    let phases = attribute(&traces.a.trials[0].trace, &GroupBy::Phase(PhaseNames::default()))
        .groups
        .len();
    for conversion in ALL.into_iter().chain([Conversion::FoldedDiff]) {
        let bytes = converted(&traces, conversion);
        for text in shown(conversion, &bytes) {
            assert_eq!(hidden(&text), None, "{}: {text}", conversion.name());
            let commands = text.contains("##[") || text.contains("##vso[") || text.starts_with("::");
            assert!(!commands, "{}: {text}", conversion.name());
        }
    }
    // Nothing became a frame or a line of its own, and no two labels became one.
    let text = String::from_utf8(converted(&traces, Conversion::Folded)).unwrap();
    let lines = folded(&text);
    assert!(lines.iter().all(|(path, _)| path.len() == 5), "{text}");
    let paths: BTreeSet<&Vec<String>> = lines.iter().map(|(path, _)| path).collect();
    assert_eq!((lines.len(), paths.len()), (2 * phases, 2 * phases));
    for totals in [
        chrome(&traces),
        perfetto(&traces),
        speedscope(&traces),
        hatchet(&traces),
        pprof(&traces).0,
    ] {
        assert_eq!(totals.len(), phases);
        assert_eq!(
            totals.values().sum::<u64>(),
            all_attributed(&traces).values().sum::<u64>()
        );
    }
}
