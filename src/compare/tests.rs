use super::*;
use crate::attribution::fixture::Builder;
use crate::model::{StateTime, Trace};

fn settings(unit: Option<&str>) -> Settings {
    Settings {
        timing: Timing::Intervals,
        timing_b: Timing::Intervals,
        unit: unit.map(str::to_owned),
        unit_b: unit.map(str::to_owned),
        buckets: Buckets::default(),
        window_a: WindowRule::default(),
        window_b: WindowRule::default(),
        slowest: 5,
    }
}

/// A trace with submissions of the given phase and duration (ns), 1 µs apart.
fn trace(rows: &[(&str, u64)]) -> Trace {
    let mut builder = Builder::new();
    let mut at = 0;
    for (phase, ns) in rows {
        builder.submission(at, *ns, "Compute", phase, "Compute Command 0");
        at += ns + 1_000;
    }
    builder.build()
}

fn trial_of(mut trace: Trace, input: &str, units: Option<u64>) -> Trial {
    // Told apart by their names; tests of equal recordings set it themselves.
    trace.fingerprint = input
        .bytes()
        .fold(17, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte));
    let options = TrialOptions {
        slowest: 5,
        ..TrialOptions::default()
    };
    Trial::from_trace(&trace, input.to_owned(), units, &options)
}

fn side(name: &str, trials: &[&[(&str, u64)]], units: Option<u64>) -> Side {
    let trials = trials.iter().enumerate();
    let trials = trials
        .map(|(at, rows)| trial_of(trace(rows), &format!("{name}-{}", at + 1), units))
        .collect();
    Side {
        name: name.to_owned(),
        trials,
    }
}

fn both(a: Side, b: Side, unit: Option<&str>) -> Comparison {
    compare(a, Some(b), settings(unit), &CompareOptions::default()).unwrap()
}

fn row<'a>(rows: &'a [Row], key: &str) -> &'a Row {
    rows.iter().find(|row| row.key == key).unwrap()
}

/// Whether a debug text holds neither NaN nor an infinity.
fn only_numbers(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.into_iter().all(|word| word != "NaN" && word != "inf")
}

fn codes(comparison: &Comparison) -> Vec<&'static str> {
    comparison.notes.iter().map(|note| note.code).collect()
}

fn reasons(comparison: &Comparison) -> Vec<&'static str> {
    comparison.incomparable.iter().map(|reason| reason.code).collect()
}

#[test]
fn b52_sides_of_three_and_four_trials_use_every_trial() {
    let ms = |ms: u64| [("k", ms * 1_000_000)];
    let a = side("a", &[&ms(10), &ms(12), &ms(14)], None);
    let b = side("b", &[&ms(20), &ms(22), &ms(24), &ms(26)], None);
    // A is what is slower here, as in the fault's text: 23 against 12 is +91.7 %.
    let comparison = both(b, a, None);
    let Some(Change::Both {
        delta_us, delta_pct, ..
    }) = comparison.total.change
    else {
        panic!()
    };
    assert_eq!(delta_us, 11_000.0);
    assert!((delta_pct.unwrap() - 91.666_666).abs() < 1e-3);
    let cell = comparison.total.a.unwrap();
    assert_eq!(
        (cell.total_us.median, cell.total_us.low, cell.total_us.high),
        (23_000.0, 20_000.0, 26_000.0)
    );
    assert_eq!(cell.trials.len(), 4);
}

#[test]
fn b17_a_zero_baseline_gives_no_infinity() {
    let at = |ns: u64| [("k", ns)];
    let q = both(side("a", &[&at(0)], None), side("b", &[&at(50)], None), None);
    assert!(matches!(
        q.total.change,
        Some(Change::Both {
            delta_pct: Some(-100.0),
            ..
        })
    ));
    let r = both(side("a", &[&at(50)], None), side("b", &[&at(0)], None), None);
    let Some(Change::Both {
        delta_pct,
        share_pct,
        count_pct,
        per_submission_pct,
        delta_us,
    }) = r.total.change
    else {
        panic!()
    };
    assert_eq!(
        (delta_pct, share_pct, count_pct, per_submission_pct),
        (None, None, None, None)
    );
    assert_eq!(delta_us, 0.05);
    let p = both(side("a", &[&at(0)], None), side("b", &[&at(0)], None), None);
    assert!(matches!(
        p.total.change,
        Some(Change::Both {
            delta_pct: Some(0.0),
            share_pct: None,
            ..
        })
    ));
    for comparison in [p, q, r] {
        let text = format!("{comparison:?} {}", headline(&comparison));
        assert!(only_numbers(&text), "{text}");
    }
}

#[test]
fn b17_a_bucket_without_submissions_is_a_measured_zero_and_a_missing_phase_is_none() {
    let a = side("a", &[&[("p", 9_000), ("only a", 500)]], None);
    let b = side("b", &[&[("p", 9_000), ("only b", 90_000)]], None);
    let comparison = both(a, b, None);
    let bucket = row(&comparison.buckets, "xl_>=80us");
    assert_eq!(bucket.a.as_ref().unwrap().submissions.median, 0.0);
    assert!(matches!(
        bucket.change,
        Some(Change::Both {
            delta_pct: Some(-100.0),
            count_pct: None,
            ..
        })
    ));
    let only_a = row(&comparison.phases, "only a");
    assert_eq!(only_a.b, None);
    assert!(matches!(
        only_a.change,
        Some(Change::OnlyA {
            delta_us: 0.5,
            share_pct: Some(_)
        })
    ));
    let only_b = row(&comparison.phases, "only b");
    assert_eq!(only_b.a, None);
    assert!(matches!(only_b.change, Some(Change::OnlyB { delta_us: -90.0, .. })));
}

#[test]
fn b12_unequal_work_is_not_called_faster() {
    let rows = |n: usize| vec![("k", 100_u64); n];
    let (a, b) = (rows(250), rows(400));
    let comparison = both(side("a", &[&a], None), side("b", &[&b], None), None);
    let Some(Change::Both {
        delta_pct,
        per_submission_pct,
        count_pct,
        ..
    }) = row(&comparison.phases, "k").change
    else {
        panic!()
    };
    assert_eq!((delta_pct, count_pct), (Some(-37.5), Some(-37.5)));
    assert!(per_submission_pct.unwrap().abs() < 1e-12);
    assert_eq!(reasons(&comparison), ["unequal_work"]);
    assert!(comparison.incomparable[0].text.contains("250") && comparison.incomparable[0].text.contains("400"));
    assert!(!headline(&comparison).contains("faster"), "{}", headline(&comparison));
    // With a unit, fewer submissions can be a way to be faster.
    let two = |name: &str, rows: &[(&str, u64)]| side(name, &[rows, rows], Some(10));
    let comparison = both(two("a", &a), two("b", &b), Some("token"));
    assert_eq!(reasons(&comparison), [""; 0]);
    assert!(codes(&comparison).contains(&"count_differs"));
    assert!(headline(&comparison).starts_with("a is faster than b by "));
}

#[test]
fn b12_a_recording_cut_at_its_time_limit_needs_a_unit() {
    let mut a = side("a", &[&[("k", 100)]], None);
    a.trials[0].state.end_reason = Some("Time Limit Reached".into());
    let b = side("b", &[&[("k", 100)]], None);
    assert_eq!(reasons(&both(a.clone(), b.clone(), None)), ["unequal_work"]);
    a.trials[0].units = Some(2);
    let mut b = b;
    b.trials[0].units = Some(2);
    assert_eq!(reasons(&both(a, b, Some("token"))), [""; 0]);
}

#[test]
fn b46_zero_units_are_refused() {
    let error = compare(
        side("a", &[&[("k", 1000)]], Some(0)),
        None,
        settings(Some("token")),
        &CompareOptions::default(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("0 units"), "{error}");
    assert!(error.help().is_some());
}

#[test]
fn b46_a_trial_without_the_key_is_zero_and_has_no_percentiles() {
    let with = [("k", 100), ("x", 10)];
    let without = [("x", 10)];
    let comparison = compare(
        side("a", &[&with, &with, &without], None),
        None,
        settings(None),
        &CompareOptions::default(),
    )
    .unwrap();
    let cell = row(&comparison.phases, "k").a.as_ref().unwrap();
    assert_eq!((cell.total_us.median, cell.total_us.low), (0.1, 0.0));
    assert_eq!((cell.p50_us.unwrap().median, cell.p50_us.unwrap().low), (0.1, 0.1));
    assert_eq!(cell.trials[2].durations, None);
}

#[test]
fn b46_a_trial_without_submissions_divides_by_nothing() {
    let comparison = both(side("a", &[&[]], None), side("b", &[&[]], None), None);
    let text = format!("{comparison:?} {}", headline(&comparison));
    assert!(only_numbers(&text), "{text}");
}

#[test]
fn b49_decorated_labels_meet_in_one_row() {
    let rows = |n: &'static str| [(n, 100), ("Command Buffer 0", 40)];
    let comparison = both(
        side("a", &[&rows("[0] attn.qkv")], None),
        side("b", &[&rows("[91] attn.qkv")], None),
        None,
    );
    assert_eq!(
        comparison.phases.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(),
        ["attn.qkv", "(unlabelled)"]
    );
    for row in &comparison.phases {
        assert!(
            matches!(
                row.change,
                Some(Change::Both {
                    delta_pct: Some(0.0),
                    ..
                })
            ),
            "{row:?}"
        );
    }
}

#[test]
fn b23_equal_ids_of_two_recordings_do_not_meet() {
    let one = |start, ns| {
        let mut builder = Builder::new();
        builder.submission(start, ns, "Compute", "k", "").ids(Some(7), Some(7));
        builder.build()
    };
    let a = Side {
        name: "a".into(),
        trials: vec![trial_of(one(1000, 10), "a", None)],
    };
    let b = Side {
        name: "b".into(),
        trials: vec![trial_of(one(0, 5), "b", None)],
    };
    let comparison = both(b, a, None);
    assert!(matches!(
        row(&comparison.phases, "k").change,
        Some(Change::Both {
            delta_pct: Some(-50.0),
            ..
        })
    ));
    assert_eq!(
        (comparison.a.trials[0].window.length(), comparison.a.trials[0].all.busy),
        (Nanos(5), Nanos(5))
    );
    assert!(comparison.gaps.iter().all(|gap| gap.a_count.high == 0.0));
}

#[test]
fn the_same_recording_is_refused_on_one_side_and_noted_on_both() {
    let mut a = side("a", &[&[("k", 1000)], &[("k", 1000)]], None);
    a.trials[1].fingerprint = a.trials[0].fingerprint;
    let error = compare(a.clone(), None, settings(None), &CompareOptions::default()).unwrap_err();
    assert!(error.to_string().contains("`a-1` and `a-2`"), "{error}");
    assert!(error.help().unwrap().contains("each trial once"));
    let one = side("a", &[&[("k", 1000)]], None);
    assert!(codes(&both(one.clone(), one, None)).contains(&"same_recording"));
}

#[test]
fn rows_stand_in_their_documented_order() {
    let a = side("a", &[&[("x", 100), ("y", 300), ("z", 50)]], None);
    let b = side("b", &[&[("x", 500), ("y", 100), ("w", 7), ("v", 9)]], None);
    let comparison = both(a, b, None);
    assert_eq!(
        comparison.phases.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(),
        ["y", "x", "z", "v", "w"]
    );
    let names: Vec<&str> = comparison.buckets.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(names, Buckets::default().names);
    assert_eq!(comparison.gaps.len(), 5);
}

#[test]
fn values_are_per_unit_and_the_busy_row_speaks_of_busy() {
    let trace = |shift: u64| {
        let mut builder = Builder::new();
        builder
            .submission(0, 1_000, "Compute", "k", "")
            .submission(500 + shift, 1_000, "Blit", "k", "");
        builder.build()
    };
    let a = Side {
        name: "a".into(),
        trials: vec![trial_of(trace(500), "a", Some(4))],
    };
    let b = Side {
        name: "b".into(),
        trials: vec![trial_of(trace(0), "b", Some(4))],
    };
    let comparison = both(a, b, Some("token"));
    assert_eq!(comparison.busy.change.unwrap().delta_us(), 0.125);
    assert!(matches!(
        comparison.busy.change,
        Some(Change::Both {
            count_pct: None,
            per_submission_pct: None,
            ..
        })
    ));
    assert_eq!(comparison.total.change.unwrap().delta_us(), 0.0);
    assert_eq!(comparison.total.a.unwrap().submissions.median, 0.5);
}

#[test]
fn findings_rank_positive_deltas_and_say_where_they_come_from() {
    let a = side(
        "hf2q",
        &[&[("attn", 12_000), ("attn", 12_000), ("mlp", 5_000), ("new", 1_000)]],
        Some(2),
    );
    let b = side(
        "llama",
        &[&[("attn", 10_000), ("attn", 10_000), ("mlp", 9_000)]],
        Some(2),
    );
    let comparison = both(a, b, Some("token"));
    let rows: Vec<_> = comparison
        .findings
        .iter()
        .map(|f| (f.section, f.key.as_str(), f.delta_us.unwrap()))
        .collect();
    assert_eq!(rows[..2], [("buckets", "sm_2_8us", 2.5), ("phases", "attn", 2.0)]);
    assert!(rows.is_sorted_by(|x, y| x.2 >= y.2));
    assert!(rows.contains(&("phases", "new", 0.5)));
    assert!(rows.iter().all(|row| row.1 != "mlp" && row.2 > 0.0));
    assert_eq!(
        comparison.findings[1].text,
        "attn: +2.00 µs/token (13.8 % of llama's total): as many submissions, 20 % longer each"
    );
    let new = comparison.findings.iter().find(|finding| finding.key == "new").unwrap();
    assert_eq!(new.text, "new: +0.50 µs/token (3.4 % of llama's total): only in hf2q");
}

#[test]
fn one_side_tells_its_largest_phases() {
    let a = side(
        "hf2q",
        &[&[("attn", 12_000), ("attn", 12_000), ("mlp", 6_000), ("x", 5), ("y", 4)]],
        Some(2),
    );
    let comparison = compare(a, None, settings(Some("token")), &CompareOptions::default()).unwrap();
    let texts: Vec<&str> = comparison
        .findings
        .iter()
        .map(|finding| finding.text.as_str())
        .collect();
    assert_eq!(texts.len(), 3);
    assert_eq!(
        texts[0],
        "attn: 12.0 µs/token (80 % of the total): 1 submission/token × 12.0 µs each"
    );
    assert_eq!(
        headline(&comparison),
        "hf2q keeps the GPU busy 15.0 µs per token (one trial)."
    );
    assert_eq!(comparison.phases[0].change, None);
}

#[test]
fn a_submission_longer_than_all_others_is_the_first_finding() {
    let mut a = side("a", &[&[("k", 1_000), ("load", 9_000_000), ("k", 1_000)]], None);
    a.trials[0]
        .notes
        .push(Note::warning("ends_after_recording", "2 rows end after the recording"));
    let comparison = compare(a, None, settings(None), &CompareOptions::default()).unwrap();
    let texts: Vec<&str> = comparison
        .findings
        .iter()
        .map(|finding| finding.text.as_str())
        .collect();
    assert_eq!(texts[0], "a-1: 2 rows end after the recording");
    assert_eq!(
        texts[1],
        "a-1: one submission of 9,000.0 µs (load, Compute channel, at 0.000002 s) is longer than the 2 others together"
    );
    assert_eq!(comparison.findings[0].section, "submissions");
    assert_eq!(comparison.findings[0].delta_us, None);
    assert!(
        compare(
            side("a", &[&[("k", 9)]], None),
            None,
            settings(None),
            &CompareOptions::default()
        )
        .unwrap()
        .findings[0]
            .section
            == "phases"
    );
}

#[test]
fn headlines() {
    let us = |us: u64| [("k", us * 1_000)];
    let three = |name: &str, values: [u64; 3]| side(name, &[&us(values[0]), &us(values[1]), &us(values[2])], Some(1));
    let text = |a, b| headline(&both(three("hf2q", a), three("llama", b), Some("token")));
    assert_eq!(
        text([1234, 1230, 1240], [1100, 1099, 1101]),
        "hf2q is slower than llama by 134.0 µs per token (+12.2 % GPU busy time, interval +11.50 to +12.99 %): \
         1,234.0 µs against 1,100.0 µs (medians of 3 and 3 trials)."
    );
    assert!(
        text([1100, 1099, 1101], [1234, 1230, 1240])
            .starts_with("hf2q is faster than llama by 134.0 µs per token (-10.9 %")
    );
    assert_eq!(
        text([100, 110, 120], [90, 105, 130]),
        "no difference shown: medians +4.8 %, interval -22.82 to +35.92 %; hf2q 110.0 µs against 105.0 µs per token \
         (medians of 3 and 3 trials)."
    );
    assert_eq!(
        text([1000, 1001, 1002], [1001, 1000, 1003]),
        "hf2q and llama keep the GPU busy equally long within 1 %: medians 0 %, interval -0.27 to +0.20 %; 1,001.0 µs \
         against 1,001.0 µs per token (medians of 3 and 3 trials)."
    );
    let one = both(side("x", &[&us(3)], None), side("x", &[&us(2)], None), None);
    assert_eq!(
        headline(&one),
        "no difference shown: one trial on a side does not show how much its runs differ; medians +50 %: x (A) 3.00 µs \
         against 2.00 µs per trial (one trial each)."
    );
}

#[test]
fn reasons_that_forbid_a_verdict() {
    let (mut a, b) = (side("a", &[&[("k", 100)]], Some(1)), side("b", &[&[("k", 100)]], None));
    a.trials[0].gpu = Some("M1".into());
    let mut settings = settings(Some("token"));
    settings.window_a.skip_first = Some(Nanos(1_500_000_000));
    let comparison = compare(a.clone(), Some(b.clone()), settings, &CompareOptions::default()).unwrap();
    assert_eq!(reasons(&comparison), ["gpu_differs", "unit_differs", "window_differs"]);
    assert!(comparison.incomparable[2].text.contains("without the first 1.5 s"));
    assert!(
        headline(&comparison)
            .starts_with("a and b cannot be compared as they are: the GPUs differ (a: M1, b: M5 Max); ")
    );
    // As Metal calls what a trace calls M5 Max.
    a.trials[0].gpu = Some("Apple M5 Max".into());
    assert!(!reasons(&both(a.clone(), b.clone(), None)).contains(&"gpu_differs"));
    a.trials[0].gpu = None;
    assert!(codes(&both(a, b, None)).contains(&"gpu_unknown"));
}

#[test]
fn notes_on_machine_labels_and_rows() {
    let mut a = side("a", &[&[("k", 900), ("", 100)]], None);
    let mut b = side("b", &[&[("Command Buffer 0", 1000), ("", 1)]], None);
    let length = a.trials[0].window.length();
    let state = |state: &str, time| StateTime {
        state: state.into(),
        induced: false,
        time,
    };
    a.trials[0].state.thermal = vec![state("Fair", length)];
    b.trials[0].state.thermal = vec![state("Nominal", b.trials[0].window.length())];
    a.trials[0].left_out.add(crate::model::Reason::NoProcess, 1, None);
    a.trials[0].rows_read = 3;
    a.trials[0].cross_check = Some(CrossCheck {
        both: 1,
        only_points: 1,
        disputed: Nanos(100),
        ..CrossCheck::default()
    });
    a.trials[0]
        .notes
        .push(Note::remark("merged_nodes", "two nodes were merged"));
    b.trials[0]
        .notes
        .push(Note::remark("merged_nodes", "two nodes were merged"));
    let comparison = both(a, b, None);
    let notes: Vec<String> = comparison
        .notes
        .iter()
        .map(|note| format!("{} {}", note.code, note.text))
        .collect();
    assert_eq!(
        notes,
        [
            "cross_check a-1: the two timing tables disagree on 10 % of the GPU time: 1 submissions only in the execution \
             points, 0 only in the intervals, 0 more than 42 ns apart, 1 equal",
            "left_out_share a-1: 1 of 3 rows (33.3 %) could not be counted: 1 no_process",
            "machine_state thermal state Fair: 100 % of a's window, 0 % of b's",
            "machine_state thermal state Nominal: 0 % of a's window, 100 % of b's",
            "merged_nodes a-1, b-1: two nodes were merged",
            "no_labels b sets no labels: its phases cannot be told apart",
            "unlabelled a-1: 1 of 2 submissions (10 % of GPU time) have no label: 1 has an empty or default label",
        ]
    );
    let first_note = comparison
        .notes
        .iter()
        .position(|note| note.severity == crate::model::Severity::Note);
    assert_eq!(first_note, Some(4));
}

#[test]
fn trials_of_very_unequal_number_are_told() {
    let rows = [("k", 100)];
    let many = side("a", &[&rows, &rows, &rows], None);
    assert!(codes(&both(many, side("b", &[&rows], None), None)).contains(&"unequal_trials"));
}

#[test]
fn cpu_encode_is_per_phase_and_never_per_bucket() {
    let mut builder = Builder::new();
    builder.submission(0, 100, "Compute", "k", "").ids(Some(1), Some(2));
    builder
        .encoder(1, "k", "", Some(4_000), true)
        .encoder(5, "k", "", None, false);
    let a = Side {
        name: "a".into(),
        trials: vec![trial_of(builder.build(), "a", None)],
    };
    let comparison = compare(a, None, settings(None), &CompareOptions::default()).unwrap();
    let cell = |row: &Row| row.a.as_ref().unwrap().cpu_encode_us.map(|over| over.median);
    assert_eq!(cell(row(&comparison.phases, "k")), Some(4.0));
    assert_eq!(cell(&comparison.total), Some(4.0));
    assert_eq!(cell(row(&comparison.buckets, "xs_<2us")), None);
    assert_eq!(row(&comparison.phases, "k").flags, ["incomplete"]);
    assert_eq!(
        row(&comparison.phases, "k")
            .a
            .as_ref()
            .unwrap()
            .us_per_command_buffer
            .unwrap()
            .median,
        0.1
    );
    assert_eq!(
        comparison.a.trials[0].encoder_labels,
        Some(EncoderLabels { all: 2, labelled: 2 })
    );
}
