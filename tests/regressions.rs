//! Faults of our own that somebody found by hand: each once, by what was wrong.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    unreachable_pub,
    dead_code,
    missing_docs
)]

mod command;
mod support;

use command::{Place, keys, note, notes, row, trial};
use support::short::{cell, doc, document, node, process, r, schema, toc};

const ENCODERS: [(&str, &str); 4] = [
    ("process", "process"),
    ("cmdbuffer-label", "metal-object-label"),
    ("cmdbuffer-id", "metal-command-buffer-id"),
    ("encoder-id", "metal-command-buffer-id"),
];

/// An encoders list of `bench (77)`: encoder, command buffer, label.
fn encoders(rows: &[(u64, u64, &str)]) -> String {
    let rows: String = rows
        .iter()
        .map(|(encoder, buffer, label)| {
            let cells = [
                process("bench", 77),
                cell("metal-object-label", *label),
                cell("metal-command-buffer-id", *buffer),
                cell("metal-command-buffer-id", *encoder),
            ];
            format!("<row>{}</row>", cells.concat())
        })
        .collect();
    format!(
        "<node>{}{rows}</node>",
        schema("metal-application-encoders-list", &ENCODERS)
    )
}

#[test]
fn a_target_without_a_pid_does_not_choose_between_two_processes_of_its_name() {
    let place = Place::new();
    place.write("t/toc.xml", toc("<process name=\"bench\"/>"));
    place.write(
        "t/intervals.xml",
        doc(&[r(1_000, 100), r(2_000, 300).process("bench", 78)]),
    );
    place
        .run(["report", "t"])
        .refused(&["2 processes are called `bench`", "bench (77)", "bench (78)"]);
}

#[test]
fn a_nested_row_under_the_processes_other_name_repeats_all_the_same() {
    let place = Place::with(doc(&[
        r(1_000, 100).encoder(1),
        r(1_010, 50).encoder(1).depth(1).process("bench-x", 77),
    ]));
    let report = place.report(&[]);
    assert_eq!(trial(&report)["submissions"], 1, "{report}");
    assert_eq!(trial(&report)["left_out"]["nested"]["rows"], 1);
    assert!(note(&report, "renamed_process").contains("bench-x"));
}

#[test]
fn two_encoder_rows_with_different_command_buffers_are_ambiguous_in_either_order() {
    let rows = [(1, 10, "x"), (1, 11, "x")];
    let report = |rows: &[(u64, u64, &str)]| {
        let intervals = node(&[r(1_000, 100).encoder(1).buffer(10)]);
        Place::with(document(&(intervals + &encoders(rows)))).report(&[])
    };
    let (one, other) = (report(&rows), report(&[rows[1], rows[0]]));
    assert_eq!(keys(&one, "phases"), ["(ambiguous)"], "{:?}", notes(&one));
    assert_eq!(one, other);
}

#[test]
fn a_command_buffer_that_is_only_numbered_is_called_by_its_encoder() {
    let rows = [
        r(0, 100).label("12:attn").encoder(1),
        r(500, 100).label("13:attn").encoder(2),
        r(900, 50).label("[3] 1.2:ffn").encoder(3),
    ];
    let report = Place::with(doc(&rows)).report(&[]);
    assert_eq!(keys(&report, "phases"), ["attn", "ffn"]);
    assert_eq!(row(&report, "phases", "attn")["a"]["submissions"], 2);
}

#[test]
fn counts_that_no_longer_fit_the_inputs_are_refused_when_one_is_missing() {
    let place = Place::new();
    place.write("a.xml", doc(&[r(0, 100)]));
    place.write("b.xml", doc(&[r(0, 110)]));
    let run = |tokens: &str| place.run(["report", "no.xml", "a.xml", "b.xml", "--keep-going", "--tokens", tokens]);
    run("5,6").refused(&["2 unit counts for 3 inputs"]);
    assert_eq!(run("4,5,6").code, Some(3));
}

#[test]
fn the_order_of_rows_does_not_hide_that_a_recording_is_given_twice() {
    let place = Place::new();
    place.write("a.xml", doc(&[r(0, 100), r(500, 120)]));
    place.write("b.xml", doc(&[r(500, 120), r(0, 100)]));
    place.run(["report", "a.xml", "b.xml"]).refused(&["the same recording"]);
}

#[test]
fn what_was_typed_cannot_move_the_cursor_or_start_a_command_of_a_build_service() {
    let place = Place::with(doc(&[r(0, 100)]));
    for option in ["--from", "--tokens", "--format", "--timing", "--unit"] {
        let ran = place.run(["report", "in.xml", option, "x\n::error::pwn\u{202e}\u{1b}[31m"]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(
            !ran.stderr.lines().any(|line| line.trim_start().starts_with("::")),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains(['\u{202e}', '\u{1b}']), "{}", ran.stderr);
    }
}

#[test]
fn names_of_megabytes_are_refused() {
    let name = "x".repeat(3 << 20);
    let ran = Place::with(doc(&[r(0, 100).channel(name.as_str())])).run(["report", "in.xml"]);
    ran.refused(&["larger than any name"]);
}

#[test]
fn a_process_is_found_by_what_messages_call_it() {
    let place = Place::with(doc(&[r(0, 100), r(500, 50).process("other", 5)]));
    let report = place.report(&["--process", "bench (77)"]);
    assert_eq!(trial(&report)["total_ns"], 100);
}

#[test]
fn a_unit_without_a_number_and_trials_of_different_programs_are_told() {
    let place = Place::new();
    place.write("a.xml", doc(&[r(0, 100)]));
    place.write("b.xml", doc(&[r(0, 110).process("other", 5)]));
    place.run(["report", "a.xml", "--unit", "frame"]).refused(&["--units"]);
    let report = place.run(["report", "a.xml", "b.xml", "--format", "json"]).json();
    assert!(note(&report, "processes_differ").contains("bench, other"));
}

#[test]
fn without_labels_on_a_side_no_phase_is_called_a_difference() {
    let place = Place::new();
    place.write("a.xml", doc(&[r(0, 300).label("attn:e"), r(900, 100).label("ffn:e")]));
    place.write("b.xml", doc(&[r(0, 200).label("Command Buffer 0:Compute Command 0")]));
    for (a, b) in [("a.xml", "b.xml"), ("b.xml", "a.xml")] {
        let compared = place
            .run(["compare", "--a", a, "--b", b, "--units", "1", "--format", "json"])
            .json();
        for finding in compared["findings"].as_array().unwrap() {
            assert!(
                finding["section"] != "phases" || finding["delta_us"].is_null(),
                "{finding}"
            );
        }
    }
}

#[test]
fn bash_completion_looks_for_the_command_that_it_sets() {
    let script = Place::new().run(["completions", "bash"]).stdout;
    let set = script
        .lines()
        .filter_map(|line| line.trim().strip_prefix("cmd=\"trace"));
    assert!(set.clone().count() > 7, "{script}");
    for line in set {
        let command = format!("trace{}", line.trim_end_matches('"'));
        assert!(
            script.lines().any(|line| line.trim() == format!("{command})")),
            "{command}"
        );
    }
}
