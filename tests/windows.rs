//! Windows of equal work: what `--window` takes, what it refuses, and that nothing is lost on the way.
//!
//! The fixture `good/signposts` is a program that says what it does: `prefill` once, `decode` three times (one interval
//! a token) with a pause of 6 ms before the last, and a `shutdown` that never ends. Its GPU work: a copy at 1 ms, two
//! submissions of prefill at 20 ms, decode at 30, 31 and 38 ms, a sampling between the tokens at 31.6 ms, a copy at 60 ms.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use command::{Place, here, trial};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::export::{ExportBuilder, GpuInterval, Ids, Process, Row, SignpostEvent, SignpostInterval, Style};
use trace_attr::analysis::{Request, SideRequest, analyse};
use trace_attr::compare::Trial;
use trace_attr::join::JoinOptions;
use trace_attr::model::{Nanos, Timestamp, WindowFound, WindowRule, WindowSpan};

const MS: u64 = 1_000_000;

fn bench() -> Process {
    Process::new("bench", 77)
}

fn fixture() -> String {
    here("fixtures/good/signposts").display().to_string()
}

/// `report` of the fixture as JSON.
fn report(options: &[&str]) -> Value {
    Place::new()
        .run([&["report", &fixture(), "--format", "json"], options].concat())
        .done()
        .json()
}

/// `report` of the fixture, which must be refused.
fn refused(options: &[&str], parts: &[&str]) {
    Place::new()
        .run([&["report", fixture().as_str()], options].concat())
        .refused(parts);
}

/// Codes and severities of notes that speak of windows.
fn notes(report: &Value) -> Vec<String> {
    let notes = report["notes"].as_array().unwrap().iter();
    notes
        .filter(|note| note["code"] != "cross_check")
        .map(|note| {
            format!(
                "{} {}",
                note["severity"].as_str().unwrap(),
                note["code"].as_str().unwrap()
            )
        })
        .collect()
}

// ---------------------------------------------------------------------------------------------- the fixture

#[test]
fn a_signpost_with_one_interval_is_that_interval() {
    let report = report(&["--window", "signpost:prefill"]);
    let trial = trial(&report);
    assert_eq!(
        trial["window"],
        json!({"from_ns": 19 * MS, "to_ns": 29 * MS, "signpost_intervals": 1, "quiet_stretches": null})
    );
    assert_eq!(
        (&trial["submissions"], &trial["total_ns"]),
        (&json!(2), &json!(1_800_000))
    );
    assert_eq!(trial["left_out"]["outside_window"]["rows"], 6);
    assert_eq!(report["settings"]["window"]["signpost"], "prefill");
    assert_eq!(notes(&report), Vec::<String>::new());
}

#[test]
fn of_several_intervals_the_first_start_and_the_last_end_count_and_that_is_said() {
    let report = report(&["--window", "signpost:decode"]);
    let trial = trial(&report);
    assert_eq!(
        trial["window"],
        json!({"from_ns": 29 * MS, "to_ns": 39 * MS, "signpost_intervals": 3, "quiet_stretches": null})
    );
    // The sampling between two tokens is in it: 10 of 620 µs, more than 1 %.
    assert_eq!(trial["submissions"], 4);
    assert_eq!(notes(&report), ["warning signpost_window"]);
    let text = report["notes"][0]["text"].as_str().unwrap();
    assert!(text.contains("`decode` has 3 intervals"), "{text}");
    assert!(
        text.contains("1 submission in it (10000 ns) started between them"),
        "{text}"
    );
}

#[test]
fn the_longest_stretch_without_a_pause_is_found_and_kept() {
    // 20.0 to 21.9 ms, and with pauses up to 10 ms 20.0 to 38.21 ms.
    let short = report(&["--window", "quiet:1ms"]);
    assert_eq!(
        trial(&short)["window"],
        json!({"from_ns": 20 * MS, "to_ns": 21_900_000, "signpost_intervals": null, "quiet_stretches": 5})
    );
    assert_eq!(trial(&short)["submissions"], 2);
    let long = report(&["--window", "quiet:10ms"]);
    assert_eq!(
        trial(&long)["window"],
        json!({"from_ns": 20 * MS, "to_ns": 38_210_000, "signpost_intervals": null, "quiet_stretches": 3})
    );
    assert_eq!(trial(&long)["submissions"], 6);
    assert_eq!(long["settings"]["window"]["quiet_ns"], 10 * MS);
}

#[test]
fn skip_first_counts_from_the_first_submission_inside() {
    let report = report(&["--window", "signpost:decode", "--skip-first", "1ms"]);
    // The first one inside starts at 30 ms; what starts at 31 ms is not skipped any more.
    assert_eq!(trial(&report)["window"]["from_ns"], 31 * MS);
    assert_eq!(trial(&report)["submissions"], 3);
}

#[test]
fn every_format_says_which_window_was_taken() {
    for format in ["terminal", "markdown"] {
        let ran = Place::new().run(["report", &fixture(), "--window", "signpost:prefill", "--format", format]);
        let text = ran.done().stdout.replace('\\', "");
        assert!(text.contains("window: signpost `prefill`"), "{text}");
        assert!(
            text.contains("window of signposts: 0.019000 s to 0.029000 s, 1 interval"),
            "{text}"
        );
    }
    let ran = Place::new().run(["report", &fixture(), "--window", "quiet:1ms"]);
    let text = &ran.done().stdout;
    assert!(
        text.contains("the longest stretch without a pause above 1.00 ms"),
        "{text}"
    );
    assert!(text.contains("0.021900 s, the longest of 5 stretches"), "{text}");
}

#[test]
fn a_signpost_that_is_not_there_is_refused_with_those_that_are() {
    let others = "intervals of other signposts: decode (3), prefill (1)";
    refused(
        &["--window", "signpost:Decode"],
        &["no interval of signpost `Decode`;", others],
    );
    refused(
        &["--window", "signpost:shutdown"],
        &["`shutdown` (it has 1 begin without an end);", others],
    );
    refused(&["--window", "signpost:loaded"], &["`loaded` (it has 1 single event);"]);
    // Another process's signpost is not this one's.
    refused(
        &["--window", "signpost:FrameLifetime"],
        &["bench (77) has no interval of signpost `FrameLifetime`;"],
    );
    let all = report(&["--window", "signpost:FrameLifetime", "--process", "all"]);
    assert_eq!(trial(&all)["window"]["signpost_intervals"], 1);
}

#[test]
fn without_the_table_the_message_says_how_to_get_it() {
    let plain = here("fixtures/good/plain.xml").display().to_string();
    let ran = Place::new().run(["report", &plain, "--window", "signpost:decode"]);
    ran.refused(&["no table `os-signpost`", "--instrument os_signpost"]);
}

#[test]
fn rules_that_contradict_each_other_are_told_before_any_work() {
    refused(
        &["--window", "quiet:1ms", "--from", "1s"],
        &["both say where the window lies"],
    );
    for (value, part) in [
        ("soon", "`soon` is no window"),
        ("quiet:1", "with its unit"),
        ("signpost:", "no name is given"),
    ] {
        let ran = Place::new().run(["report", &fixture(), "--window", value]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    refused(
        &["--window", "signpost:prefill", "--skip-first", "1s"],
        &["the window is empty"],
    );
    let (place, input) = (Place::new(), fixture());
    let ran = place.run([
        "compare",
        "--a",
        &input,
        "--b",
        &input,
        "--window-a",
        "quiet:1ms",
        "--from",
        "1ms",
    ]);
    ran.refused(&["both say where the window lies"]);
}

#[test]
fn sides_with_different_windows_are_not_compared() {
    let (place, input) = (Place::new(), fixture());
    let compare = |options: &[&str]| {
        let ran = place.run([&["compare", "--a", &input, "--b", &input, "--format", "json"], options].concat());
        ran.json()
    };
    let same = compare(&["--window", "quiet:1ms"]);
    assert_eq!(same["incomparable"], json!([]));
    assert_eq!(same["settings"].get("window_b"), None);
    let other = compare(&["--window-a", "signpost:decode", "--window-b", "quiet:10ms"]);
    assert_eq!(other["incomparable"][0]["code"], "window_differs");
    assert_eq!(other["settings"]["window"]["signpost"], "decode");
    assert_eq!(other["settings"]["window_b"]["quiet_ns"], 10 * MS);
    let text = other["incomparable"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("signpost `decode`") && text.contains("pauses up to 0.01 s"),
        "{text}"
    );
}

#[test]
fn a_baseline_remembers_its_window() {
    let (place, input) = (Place::new(), fixture());
    let window = "signpost:prefill";
    place
        .run(["report", &input, "--window", window, "-o", "base.json"])
        .done();
    let compare = |window: &str| {
        let arguments = [
            "compare",
            "--a",
            &input,
            "--baseline",
            "base.json",
            "--window",
            window,
            "--format",
            "json",
        ];
        place.run(arguments).json()
    };
    let same = compare(window);
    assert_eq!(same["incomparable"], json!([]));
    assert_eq!(same["b"]["trials"][0]["window"], same["a"]["trials"][0]["window"]);
    assert_eq!(compare("quiet:1ms")["incomparable"][0]["code"], "window_differs");
}

// ---------------------------------------------------------------------------------------------- pairing

/// A submission every ms from 1 to 9 ms.
fn gpu() -> Vec<GpuInterval> {
    let ids = |n: u64| Ids {
        command_buffer: 2 * n + 1,
        encoder: 1_000 + 2 * n,
        submission: 2_000 + n,
    };
    (1..10)
        .map(|n| GpuInterval::new(n * MS, 10_000, "engine.step:k", &bench(), ids(n)))
        .collect()
}

/// What a trial's window is, with its notes; or the error.
fn found(
    tables: impl FnOnce(&mut ExportBuilder<'_>),
    span: WindowSpan,
    gpu: impl IntoIterator<Item = GpuInterval>,
) -> Result<Trial, String> {
    let text = ExportBuilder::document(Style::default(), |export| {
        tables(export);
        export.table(GpuInterval::TABLE).rows(gpu);
    });
    let place = Place::with(text);
    let request = Request {
        a: SideRequest {
            inputs: vec![place.path("in.xml")],
            join: JoinOptions {
                window: WindowRule {
                    span,
                    ..WindowRule::default()
                },
                ..JoinOptions::default()
            },
            ..SideRequest::default()
        },
        ..Request::default()
    };
    let mut outcome = analyse(&request, &()).map_err(|error| error.to_string())?;
    Ok(outcome.comparison.a.trials.remove(0))
}

/// The window of the signpost `step`: from and to in ms, intervals, and what the notes say.
fn step(events: &[SignpostEvent]) -> Result<(u64, u64, u64, Vec<String>), String> {
    let write = |export: &mut ExportBuilder<'_>| {
        export.table(SignpostEvent::TABLE).rows(events.iter().cloned());
    };
    let trial = found(write, WindowSpan::Signpost("step".into()), gpu())?;
    let WindowFound::Signposts { intervals } = trial.window_found else {
        panic!("{:?}", trial.window_found)
    };
    let notes = trial.notes.iter().filter(|note| note.code == "unpaired_signpost");
    Ok((
        trial.window.from.0 / MS,
        trial.window.to.0 / MS,
        intervals,
        notes.map(|note| note.text.clone()).collect(),
    ))
}

fn event(kind: &str, ms: u64) -> SignpostEvent {
    SignpostEvent::new(kind, "step", ms * MS, &bench())
}

#[test]
fn events_are_paired_by_identifier_and_log_in_their_scope() {
    let with = |kind: &str, ms, change: &dyn Fn(&mut SignpostEvent)| {
        let mut event = event(kind, ms);
        change(&mut event);
        event
    };
    // Two that overlap, told apart by their identifiers, by category, by thread where the scope is the thread.
    let changes: [&dyn Fn(&mut SignpostEvent); 3] = [
        &|event| event.identifier = u64::MAX - 1,
        &|event| event.category = "other".into(),
        &|event| (event.thread.tid, event.scope) = (7, "Thread".into()),
    ];
    for change in changes {
        let both = [
            event("Begin", 1),
            with("Begin", 2, change),
            event("End", 3),
            with("End", 5, change),
        ];
        assert_eq!(step(&both), Ok((1, 5, 2, vec![])));
    }
    // In the scope of the process another thread may end it; in the scope of the system another process may.
    let thread: &dyn Fn(&mut SignpostEvent) = &|event| event.thread.tid = 7;
    assert_eq!(
        step(&[event("Begin", 1), with("End", 3, thread)]),
        Ok((1, 3, 1, vec![]))
    );
    let system: &dyn Fn(&mut SignpostEvent) = &|event| event.scope = "System".into();
    let foreign: &dyn Fn(&mut SignpostEvent) = &|event| {
        event.scope = "System".into();
        event.thread.process = Process::new("daemon", 5);
    };
    assert_eq!(
        step(&[with("Begin", 1, system), with("End", 4, foreign)]),
        Ok((1, 4, 1, vec![]))
    );
    // Another process's own signpost of that name is none of ours.
    let other: &dyn Fn(&mut SignpostEvent) = &|event| event.thread.process = Process::new("daemon", 5);
    let error = step(&[with("Begin", 1, other), with("End", 4, other)]).unwrap_err();
    assert!(error.contains("intervals of other signposts: none"), "{error}");
}

#[test]
fn what_cannot_be_paired_is_counted_and_never_guessed() {
    let unpaired = |events: &[SignpostEvent]| {
        step(events).map(|(from, to, intervals, notes)| (from, to, intervals, notes.join("")))
    };
    // The second begin leaves the first one without an end; an end without a begin ends nothing.
    assert_eq!(
        unpaired(&[event("Begin", 1), event("Begin", 2), event("End", 4), event("End", 8)]),
        Ok((
            2,
            4,
            1,
            "signpost `step` has 1 begin without an end and 1 end without a begin, which are no part of the window"
                .to_owned()
        ))
    );
    // Begun before the recording began, or not over when it ended.
    assert!(
        unpaired(&[event("End", 1), event("Begin", 3)])
            .unwrap_err()
            .contains("1 begin without an end and 1 end")
    );
}

#[test]
fn the_order_of_rows_and_tables_does_not_matter() {
    // A recording has several tables of signposts; an event that fits two stands in both.
    let events = [event("Begin", 1), event("End", 3), event("Begin", 3), event("End", 6)];
    let twice = |export: &mut ExportBuilder<'_>| {
        export.table(SignpostEvent::TABLE).rows(events.iter().rev().cloned());
        export
            .node("//trace-toc[1]/run[1]/data[1]/table[5]")
            .schema(SignpostEvent::TABLE)
            .rows(events[..2].to_vec());
    };
    let trial = found(twice, WindowSpan::Signpost("step".into()), gpu()).unwrap();
    assert_eq!(trial.window_found, WindowFound::Signposts { intervals: 2 });
    assert_eq!((trial.window.from.0, trial.window.to.0), (MS, 6 * MS));
    assert!(
        trial.notes.iter().all(|note| note.code == "signpost_window"),
        "{:?}",
        trial.notes
    );
}

#[test]
fn intervals_that_instruments_paired_serve_as_well() {
    let row = |start, duration, identifier| SignpostInterval {
        start: start * MS,
        duration,
        name: "step".into(),
        identifier,
        process: bench(),
    };
    let paired = |export: &mut ExportBuilder<'_>| {
        // The first is the one that the events make, too; the last was not over.
        export
            .table(SignpostInterval::TABLE)
            .rows([row(1, Some(2 * MS), 1), row(5, Some(2 * MS), 2), row(8, None, 3)]);
        export
            .table(SignpostEvent::TABLE)
            .rows([event("Begin", 1), event("End", 3)]);
    };
    let trial = found(paired, WindowSpan::Signpost("step".into()), gpu()).unwrap();
    assert_eq!(trial.window_found, WindowFound::Signposts { intervals: 2 });
    assert_eq!((trial.window.from.0, trial.window.to.0), (MS, 7 * MS));
    assert!(
        trial
            .notes
            .iter()
            .any(|note| note.text.contains("1 begin without an end")),
        "{:?}",
        trial.notes
    );
}

#[test]
fn of_equally_long_stretches_the_first_is_taken_and_a_rival_is_told() {
    let work = |starts: &[u64]| -> Vec<GpuInterval> {
        let one = |(n, start): (u64, &u64)| {
            let ids = Ids {
                command_buffer: 2 * n + 1,
                encoder: 1_000 + 2 * n,
                submission: 2_000 + n,
            };
            GpuInterval::new(*start, 100, "engine.step:k", &bench(), ids)
        };
        (0..).zip(starts).map(one).collect()
    };
    let quiet = |gap, starts: &[u64]| found(|_| {}, WindowSpan::Quiet(Nanos(gap)), work(starts)).unwrap();
    let trial = quiet(100, &[0, 200, 1_000, 1_200]);
    assert_eq!((trial.window.from.0, trial.window.to.0), (0, 300));
    assert_eq!(trial.window_found, WindowFound::Stretch { of: 2 });
    assert_eq!(
        trial.notes.iter().map(|note| note.code).collect::<Vec<_>>(),
        ["quiet_window"]
    );
    // A pause as long as the limit is no pause above it; one ns more is.
    assert_eq!(
        quiet(700, &[0, 200, 1_000, 1_200]).window_found,
        WindowFound::Stretch { of: 1 }
    );
    let trial = quiet(99, &[0, 200, 1_000, 1_200]);
    assert_eq!(
        (trial.window_found, trial.all.submissions),
        (WindowFound::Stretch { of: 4 }, 1)
    );
    // Overlapping work leaves no pause, also where a long one covers several short ones.
    let mut covered = work(&[0, 100, 700]);
    covered[0].duration = Some(690);
    let trial = found(|_| {}, WindowSpan::Quiet(Nanos(10)), covered).unwrap();
    assert_eq!(
        (trial.window_found, trial.window.to.0),
        (WindowFound::Stretch { of: 1 }, 800)
    );
}

#[test]
fn the_last_submission_of_a_stretch_is_inside_also_without_a_length() {
    let ids = |n| Ids {
        command_buffer: n,
        encoder: 10 + n,
        submission: 20 + n,
    };
    let rows = [
        GpuInterval::new(0, 100, "a:b", &bench(), ids(1)),
        GpuInterval::new(100, 0, "a:b", &bench(), ids(2)),
        GpuInterval::new(9_000, 50, "a:b", &bench(), ids(3)),
    ];
    let trial = found(|_| {}, WindowSpan::Quiet(Nanos(10)), rows).unwrap();
    assert_eq!((trial.all.submissions, trial.window.length()), (2, Nanos(100)));
}

// ---------------------------------------------------------------------------------------------- properties

fn span() -> impl Strategy<Value = WindowSpan> {
    prop_oneof![
        (0..40_u64).prop_map(|gap| WindowSpan::Quiet(Nanos(gap))),
        Just(WindowSpan::Signpost("step".to_owned())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counted_and_left_out_are_all_rows_whatever_the_window(
        work in prop::collection::vec((0..500_u64, 0..60_u64), 1..30),
        events in prop::collection::vec((0..600_u64, prop::bool::ANY, 0..3_u64), 0..12),
        span in span(),
        skip in prop::option::of(0..80_u64),
    ) {
        let ids = |n: u64| Ids { command_buffer: 2 * n + 1, encoder: 1_000 + 2 * n, submission: 2_000 + n };
        let rows: Vec<GpuInterval> = (0..)
            .zip(&work)
            .map(|(n, (start, length))| GpuInterval::new(*start, *length, "a:b", &bench(), ids(n)))
            .collect();
        let text = ExportBuilder::document(Style::default(), |export| {
            export.table(SignpostEvent::TABLE).rows(events.iter().map(|(time, begin, identifier)| SignpostEvent {
                identifier: *identifier,
                ..SignpostEvent::new(if *begin { "Begin" } else { "End" }, "step", *time, &bench())
            }));
            export.table(GpuInterval::TABLE).rows(rows.clone());
        });
        let place = Place::with(text);
        let window = WindowRule { span: span.clone(), skip_first: skip.map(Nanos), ..WindowRule::default() };
        let request = Request {
            a: SideRequest {
                inputs: vec![place.path("in.xml")],
                join: JoinOptions { window, ..JoinOptions::default() },
                ..SideRequest::default()
            },
            ..Request::default()
        };
        let Ok(outcome) = analyse(&request, &()) else { return Ok(()) };
        let trial = &outcome.comparison.a.trials[0];
        prop_assert_eq!(trial.rows_read, rows.len() as u64);
        prop_assert_eq!(trial.rows_read, trial.all.submissions + trial.left_out.rows());
        prop_assert!(trial.all.busy <= trial.window.length());
        let idle: u64 = trial.gaps.bands.iter().map(|band| band.idle.0).sum();
        prop_assert_eq!(idle, trial.window.length().0 - trial.all.busy.0);
        // A second opinion on which submissions start inside.
        let inside = work.iter().filter(|(start, _)| {
            let at = Timestamp(*start);
            let closed = matches!(span, WindowSpan::Quiet(_)) && at == trial.window.to;
            at >= trial.window.from && (at < trial.window.to || closed)
        });
        prop_assert_eq!(trial.all.submissions, inside.count() as u64);
        if let (WindowSpan::Quiet(gap), None) = (&span, skip) {
            // No stretch is longer, and none that is as long comes before.
            let mut sorted = work.clone();
            sorted.sort_unstable();
            let mut stretches: Vec<(u64, u64)> = Vec::new();
            for (start, length) in sorted {
                match stretches.last_mut() {
                    Some(last) if start <= last.1 + gap.0 => last.1 = last.1.max(start + length),
                    _ => stretches.push((start, start + length)),
                }
            }
            let longest = stretches.iter().map(|(from, to)| to - from).max().unwrap();
            let first = stretches.iter().find(|(from, to)| to - from == longest).unwrap();
            prop_assert_eq!((trial.window.from.0, trial.window.to.0), *first);
        }
    }
}
