//! The gate as a CI job meets it: exit statuses, what is printed, baselines, noise, exceptions.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp
)]

mod command;
mod support;

use command::{Place, Ran, here};
use serde_json::Value;
use support::builds::{self, SLOWER_PHASE};
use support::short::{doc, r};

/// A place with the recordings of three builds.
fn three_builds() -> Place {
    let place = Place::new();
    builds::write(&place.path("")).unwrap();
    place
}

/// `compare` of five trials of a build with five of `main`.
fn against_main(place: &Place, build: &str, options: &[&str]) -> Ran {
    let trials = |name: &str| (1..=5).map(|n| format!("{name}-{n}")).collect::<Vec<String>>();
    let (a, b) = (trials(build), trials("main"));
    let mut arguments: Vec<&str> = vec!["compare", "--a"];
    arguments.extend(a.iter().map(String::as_str));
    arguments.push("--b");
    arguments.extend(b.iter().map(String::as_str));
    let tokens = builds::TOKENS.to_string();
    arguments.extend(["--tokens", &tokens]);
    arguments.extend(options);
    place.run(arguments)
}

/// Trials of side A and B as documents of one row each, by their durations in ns; every one is another recording.
fn sides(a: &[u64], b: &[u64]) -> Place {
    let place = Place::new();
    for (name, values) in [("a", a), ("b", b)] {
        for (at, ns) in values.iter().enumerate() {
            // Starts differ, so that trials with equal times are not the same recording.
            let start = 1_000 + at as u64 + if name == "a" { 0 } else { 100 };
            place.write(&format!("{name}{}.xml", at + 1), doc(&[r(start, *ns)]));
        }
    }
    place
}

fn compare(place: &Place, a: usize, b: usize, options: &[&str]) -> Ran {
    let names = |side: &str, count: usize| (1..=count).map(|n| format!("{side}{n}.xml")).collect::<Vec<_>>();
    let mut arguments = vec!["compare".to_owned(), "--a".to_owned()];
    arguments.extend(names("a", a));
    arguments.push("--b".to_owned());
    arguments.extend(names("b", b));
    arguments.extend(options.iter().map(|option| (*option).to_owned()));
    place.run(arguments)
}

fn gate_rows(report: &Value) -> Vec<(String, String)> {
    let rows = report["gate"]["rows"].as_array().unwrap();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "key"), text(row, "result"))).collect()
}

#[test]
fn a_pull_request_is_red_for_exactly_the_phase_that_became_slower_and_green_without_it() {
    let place = three_builds();
    let phases = against_main(&place, "slow", &["--format", "json"]).json();
    let mut options: Vec<String> = vec!["--fail-above".into(), "2".into(), "--format".into(), "json".into()];
    for phase in command::keys(&phases, "phases") {
        if phase != "(unlabelled)" && phase != "hf2q.decode.embed" {
            options.extend(["--gate".to_owned(), format!("phase:{phase}")]);
        }
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();

    let slow = against_main(&place, "slow", &options);
    assert_eq!(slow.code, Some(1), "{slow:#?}");
    let failed: Vec<String> = gate_rows(&slow.any_json())
        .into_iter()
        .filter(|(_, result)| result != "passed")
        .map(|(key, result)| format!("{key} {result}"))
        .collect();
    assert_eq!(failed, [format!("phase:{SLOWER_PHASE} failed")]);

    let fixed = against_main(&place, "fixed", &options);
    assert_eq!(fixed.code, Some(0), "{fixed:#?}");
    assert!(
        gate_rows(&fixed.any_json())
            .iter()
            .all(|(_, result)| result == "passed")
    );
}

#[test]
fn b04_every_outcome_has_its_own_status() {
    let place = sides(
        &[100_000, 100_200, 100_100, 150_000, 150_100, 150_300],
        &[100_100, 100_000, 100_300],
    );
    let status = |a: &[&str], options: &[&str]| {
        let mut arguments = vec!["compare", "--a"];
        arguments.extend(a);
        arguments.extend(["--b", "b1.xml", "b2.xml", "b3.xml"]);
        arguments.extend(options);
        place.run(arguments).code
    };
    let equal = ["a1.xml", "a2.xml", "a3.xml"];
    let slower = ["a4.xml", "a5.xml", "a6.xml"];
    assert_eq!(status(&equal, &["--fail-above", "5"]), Some(0));
    assert_eq!(status(&slower, &["--fail-above", "5"]), Some(1));
    assert_eq!(status(&slower, &[]), Some(0), "no gate");
    assert_eq!(status(&["gone.xml"], &["--fail-above", "5"]), Some(2));
    assert_eq!(status(&equal, &["--fail-abov", "5"]), Some(2));
    assert_eq!(
        status(&["a1.xml"], &["--fail-above", "5"]),
        Some(3),
        "one trial gives no interval"
    );
    // A missing trial: 3, unless the gate fails.
    assert_eq!(
        status(&["a1.xml", "a2.xml", "gone.xml"], &["--fail-above", "5"]),
        Some(2)
    );
    let keep = ["--keep-going", "--fail-above", "5"];
    assert_eq!(status(&["a1.xml", "a2.xml", "gone.xml"], &keep), Some(3));
    assert_eq!(status(&["a4.xml", "a5.xml", "gone.xml"], &keep), Some(1));
}

#[test]
fn b05_a_limit_that_is_no_number_is_an_error_and_no_open_gate() {
    let place = sides(&[100, 101], &[100, 102]);
    for limit in ["NaN", "nan", "-1", "", "abc", "inf", "5 percent", "1e400"] {
        for option in ["--fail-above", "--margin"] {
            let ran = compare(&place, 2, 2, &[&format!("{option}={limit}")]);
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(2), ""),
                "{option} {limit}: {ran:#?}"
            );
        }
        let ran = compare(&place, 2, 2, &["--gate", &format!("busy={limit}")]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "busy={limit}: {ran:#?}");
    }
    compare(&place, 2, 2, &["--gate", "busy"]).refused(&["the row has no limit", "--gate 'busy=3%'"]);
    for option in [
        &["--self-test"][..],
        &["--on-inconclusive", "pass"],
        &["--accept", "x.toml"],
    ] {
        compare(&place, 2, 2, option).refused(&["there is none", "--fail-above 3%"]);
    }
}

#[test]
fn the_printed_lines_say_what_the_bounds_show() {
    let line = |a: &[u64], b: &[u64], options: &[&str]| {
        let place = sides(a, b);
        let ran = compare(&place, a.len(), b.len(), &[&["--units", "1"], options].concat());
        let lines = ran
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("Gate: "))
            .skip(1);
        let text: Vec<&str> = lines.take_while(|line| !line.is_empty()).map(str::trim).collect();
        (ran.code.unwrap(), text.join(" "))
    };
    let wide = ["--fail-above", "3"];
    assert_eq!(
        line(&[104_100, 104_300, 104_200], &[100_000, 100_100, 99_900], &wide),
        (
            1,
            "gate: failed  busy  +4.20 %  [+4.02, +4.38]  n 3+3  limit 3 %: slower by at least 4.02 %".to_owned()
        )
    );
    let (code, text) = line(&[103_000, 104_300, 105_200], &[100_000, 100_100, 99_900], &wide);
    assert_eq!(code, 3);
    assert!(
        text.starts_with("gate: cannot judge  busy  +4.30 %  [+2.33, +6.03]  n 3+3  limit 3 % lies inside the"),
        "{text}"
    );
    assert!(text.contains("more trials a side would"), "{text}");
    let (code, text) = line(&[100_100, 100_300, 100_200], &[100_000, 100_100, 99_900], &wide);
    assert_eq!(code, 0);
    assert!(
        text.contains("passed  busy  +0.20 %") && text.contains("limit 3 %: at most 0.37 % slower"),
        "{text}"
    );
    assert!(text.contains("would have shown 4 times in 5"), "{text}");
    let (code, text) = line(&[90_100, 90_300, 90_200], &[100_000, 100_100, 99_900], &wide);
    assert!(code == 0 && text.contains("faster by at least 9.63 %"), "{text}");
    // A bound that would round onto the limit shows on which side of it it lies.
    let (code, text) = line(
        &[103_000, 103_000, 103_000],
        &[100_000, 100_000, 100_000],
        &["--fail-above", "3"],
    );
    assert!(code == 0 && text.contains("[+3.00, +3.00]"), "{text}");
    let (code, text) = line(&[1_030_001; 3], &[1_000_000; 3], &["--fail-above", "3"]);
    assert!(code == 1 && text.contains("[+3.0001, +3.0001]"), "{text}");
    // Only a limit inside the interval can be excused.
    let excuse = ["--fail-above", "3", "--on-inconclusive", "pass"];
    let (code, text) = line(&[103_000, 104_300, 105_200], &[100_000, 100_100, 99_900], &excuse);
    assert!(code == 0 && text.contains("(passes: --on-inconclusive pass)"), "{text}");
    let (code, text) = line(&[103_000], &[100_000, 100_100], &excuse);
    assert!(
        code == 3 && text.contains("one trial on a side gives no interval"),
        "{text}"
    );
    let (code, text) = line(&[100_100, 100_300], &[100_000, 100_100], &["--gate", "phase:nope=1"]);
    assert!(code == 3 && text.contains("neither side has this row"), "{text}");
    let (code, text) = line(&[100_100, 100_300], &[100_000, 100_100], &["--gate", "kernel:mul=1"]);
    assert!(code == 3 && text.contains("no GPU time by kernel"), "{text}");
}

#[test]
fn b17_a_row_without_a_baseline_never_passes() {
    let place = Place::new();
    for n in 1..=3 {
        place.write(
            &format!("a{n}.xml"),
            doc(&[r(1_000, 50_000 + n).label("p (C 0)"), r(90_000, 700).label("q (C 0)")]),
        );
        place.write(
            &format!("b{n}.xml"),
            doc(&[r(1_000 + n, 50_000).label("p (C 0)"), r(90_000, 700).label("r (C 0)")]),
        );
    }
    let ran = compare(
        &place,
        3,
        3,
        &["--fail-above", "5", "--gate", "bucket:xl_>=80us", "--format", "json"],
    );
    let report = ran.any_json();
    assert_eq!(ran.code, Some(0), "both 0 is unchanged: {report}");
    assert_eq!(command::row(&report, "buckets", "xl_>=80us")["reason"], "both_zero");
    let phases = command::keys(&report, "phases");
    let only: Vec<&String> = phases.iter().filter(|phase| !phase.starts_with('p')).collect();
    assert_eq!(only.len(), 2, "{phases:?}");
    for phase in only {
        let ran = compare(
            &place,
            3,
            3,
            &["--gate", &format!("phase:{phase}=5"), "--format", "json"],
        );
        assert_eq!(ran.code, Some(3), "{phase}: {ran:#?}");
        let row = &ran.any_json()["gate"]["rows"][0];
        assert_eq!(
            (row["result"].as_str(), row["reason"].as_str()),
            (Some("cannot_judge"), Some("missing"))
        );
        assert!(!ran.stdout.contains("NaN") && !ran.stdout.contains("Infinity"));
    }
}

#[test]
fn a_self_test_shows_that_the_gate_can_fail() {
    let place = sides(&[100_100, 100_300, 100_200], &[100_000, 100_100, 99_900]);
    let ran = compare(&place, 3, 3, &["--fail-above", "3", "--self-test", "--format", "json"]);
    assert_eq!(ran.code, Some(0));
    let tried = &ran.any_json()["gate"]["self_test"][0];
    assert_eq!(
        tried["results"],
        serde_json::json!(["failed", "passed", "cannot_judge"])
    );
    // Equal trials have an interval without length: a change of 1 % above the limit must fail all the same.
    let flat = sides(&[100_000; 3], &[100_000; 3]);
    let ran = compare(&flat, 3, 3, &["--fail-above", "3", "--self-test", "--format", "json"]);
    assert_eq!(ran.any_json()["gate"]["self_test"][0]["results"][0], "failed");
    // One trial with the values of the other passes, but nothing could make this gate fail.
    let ran = compare(&flat, 1, 1, &["--fail-above", "3", "--self-test"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stdout.contains("so this gate cannot fail"), "{ran:#?}");
}

#[test]
fn an_exception_raises_a_limit_through_its_last_day() {
    let place = sides(&[104_100, 104_300, 104_200], &[100_000, 100_100, 99_900]);
    let file = "[[accept]]\nrow = \"busy\"\nup_to = 6\nuntil = 2026-03-31\nwhy = \"new sampler\"\n";
    place.write("accept.toml", file);
    let on = |day: &str| {
        compare(
            &place,
            3,
            3,
            &["--fail-above", "3", "--accept", "accept.toml", "--today", day],
        )
    };
    let held = on("2026-03-31");
    assert_eq!(held.code, Some(0), "{held:#?}");
    assert!(
        held.stdout
            .contains("limit raised to 6 % until 2026-03-31: new sampler"),
        "{held:#?}"
    );
    let over = on("2026-04-01");
    assert_eq!(over.code, Some(1), "{over:#?}");
    assert!(
        over.stdout.contains("the exception for busy ended on 2026-03-31"),
        "{over:#?}"
    );
    place.write("accept.toml", file.replace("busy", "phase:other"));
    let unused = on("2026-03-01");
    assert_eq!(unused.code, Some(1));
    assert!(unused.stdout.contains("is for a row that is not gated"), "{unused:#?}");
    place.write("accept.toml", file.replace("why", "reason"));
    on("2026-03-01").refused(&["accept.toml", "reason"]);
}

#[test]
fn what_forbids_a_comparison_can_be_overruled_but_not_forgotten() {
    let place = sides(&[100_000, 100_100], &[100_000, 100_200]);
    place.write("a1.xml", doc(&[r(1_000, 50_000), r(90_000, 50_000), r(200_000, 10)]));
    let ran = compare(&place, 2, 2, &["--fail-above", "3"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(
        ran.stdout.contains("cannot be compared as they are: no unit is given"),
        "{ran:#?}"
    );
    let forced = compare(&place, 2, 2, &["--fail-above", "3", "--force"]);
    assert_eq!(forced.code, Some(0), "{forced:#?}");
    assert!(forced.stdout.contains("(--force)"), "{forced:#?}");
}

#[test]
fn pairs_are_taken_only_when_asked_for_and_only_of_equal_sides() {
    // Each pair differs by 2 %, the pairs among themselves by 20 %.
    let place = sides(&[102_000, 122_500, 142_700], &[100_000, 120_000, 140_000]);
    let report = compare(&place, 3, 3, &["--format", "json"]).json();
    assert_eq!(report["busy"]["verdict"], "inconclusive");
    let report = compare(&place, 3, 3, &["--paired", "--format", "json"]).json();
    assert_eq!(report["busy"]["verdict"], "regressed");
    assert_eq!(report["busy"]["test"]["method"], "paired");
    compare(&place, 2, 3, &["--paired"]).refused(&["as many trials of A as of B", "2 and 3"]);
}

#[test]
fn a_baseline_is_side_b_whatever_wrote_it() {
    let place = Place::new();
    let demo = |name: &str| here(&format!("fixtures/demo/{name}")).display().to_string();
    let inputs = |engine: &str| (1..=3).map(|n| demo(&format!("{engine}-{n}"))).collect::<Vec<_>>();
    let run = |arguments: &[&str], a: &[String], more: &[&str]| {
        let mut all: Vec<&str> = arguments.to_vec();
        all.extend(a.iter().map(String::as_str));
        all.extend(more);
        place.run(all)
    };
    let (a, b) = (inputs("hf2q"), inputs("llama"));
    run(&["report"], &b, &["--tokens", "64", "-o", "base.json"]).done();
    let mut direct: Vec<&str> = a.iter().map(String::as_str).collect();
    direct.push("--b");
    direct.extend(b.iter().map(String::as_str));
    let direct = run(
        &["compare", "--a"],
        &[],
        &[&direct[..], &["--tokens", "64", "--format", "json"]].concat(),
    )
    .json();
    let stored = run(
        &["compare", "--a"],
        &a,
        &["--baseline", "base.json", "--tokens", "64", "--format", "json"],
    )
    .json();
    // Every number of both sides and of every row is the same.
    for part in [
        "busy", "total", "buckets", "encoders", "phases", "channels", "gaps", "kernels", "slowest", "findings",
    ] {
        assert_eq!(stored[part], direct[part], "{part}");
    }
    assert_eq!(stored["b"], direct["b"]);
    assert_eq!(stored["a"], direct["a"]);
    assert_eq!(stored["settings"]["inference"]["baseline"], true);
    let notes = stored["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["code"] == "recorded_apart"), "{notes:?}");
    // What an earlier build of this version wrote, before there were verdicts.
    let old = here("tests/baselines/version-1-first.json").display().to_string();
    let old = run(
        &["compare", "--a"],
        &a,
        &["--baseline", &old, "--tokens", "64", "--format", "json"],
    )
    .json();
    for part in ["busy", "total", "buckets", "phases"] {
        assert_eq!(old[part], direct[part], "{part}");
    }
    // The same recording on both sides is told.
    let same = run(
        &["compare", "--a"],
        &b,
        &["--baseline", "base.json", "--tokens", "64", "--format", "json"],
    )
    .json();
    assert!(
        same["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note["code"] == "same_recording")
    );
}

/// Two trials of 12.5 ms in 40 submissions, stored as a baseline; and two new ones like them.
fn stored() -> Place {
    let place = Place::new();
    let rows = |first: u64| {
        let rows = (0..40).map(|n| r(first + n * 1_000_000, 312_500).label("k (C 0)"));
        doc(&rows.collect::<Vec<_>>())
    };
    for n in 1..=2 {
        place.write(&format!("b{n}.xml"), rows(1_000 + n));
        place.write(&format!("a{n}.xml"), rows(5_000 + n));
    }
    place.run(["report", "b1.xml", "b2.xml", "-o", "base.json"]).done();
    place
}

const WITH_BASELINE: [&str; 6] = ["compare", "--a", "a1.xml", "a2.xml", "--baseline", "base.json"];

#[test]
fn b30_a_baseline_is_held_against_new_trials_in_one_unit() {
    let place = stored();
    let report = place.run([&WITH_BASELINE[..], &["--format", "json"]].concat()).json();
    for row in [&report["total"], &report["phases"][0]] {
        assert_eq!(row["delta_pct"], 0, "{row}");
        assert_eq!(
            (&row["a"]["total_us"], &row["b"]["total_us"]),
            (&12_500.into(), &12_500.into())
        );
        assert_eq!(
            (&row["a"]["submissions"], &row["b"]["submissions"]),
            (&40.into(), &40.into())
        );
    }
    let text = place.read("base.json");
    for (from, to) in [
        ("\"unit\": null,", ""),
        ("\"total_ns\": 12500000,", ""),
        ("12500000", "12500001"),
    ] {
        assert!(text.contains(from), "{from}");
        place.write("base.json", text.replacen(from, to, 1));
        place
            .run(WITH_BASELINE)
            .refused(&["base.json", "the baseline is broken"]);
    }
    place.write(
        "base.json",
        text.replace("\"unit\": null", "\"unit\": \"frame\"")
            .replace("\"units\": null", "\"units\": 4"),
    );
    let ran = place.run([&WITH_BASELINE[..], &["--tokens", "4", "--fail-above", "3"]].concat());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stdout.contains("the units differ"), "{ran:#?}");
}

#[test]
fn a_baseline_that_cannot_be_read_is_refused_and_says_what_to_do() {
    let place = stored();
    let text = place.read("base.json");
    let with = |from: &str, to: &str, says: &[&str]| {
        assert!(text.contains(from), "{from}");
        place.write("base.json", text.replace(from, to));
        place.run(WITH_BASELINE).refused(says);
    };
    with(
        "\"schema_version\": 1",
        "\"schema_version\": 2",
        &["schema version 2", "reads version 1"],
    );
    with(
        "trace-attr.report",
        "trace-attr.compare",
        &["its schema is `trace-attr.compare`", "trace-attr report"],
    );
    with("\"timing\": \"intervals\"", "\"timing\": \"dreams\"", &["`dreams`"]);
    with("\"unpaired_start\"", "\"lost\"", &["`lost`"]);
    place.write("base.json", "[1, 2]");
    place.run(WITH_BASELINE).refused(&["this is no baseline"]);
    place.write("base.json", &text);
    let other = place.run([&WITH_BASELINE[..], &["--buckets", "5us,50us"]].concat());
    other.refused(&["other bucket edges", "--buckets 2000ns,8000ns,32000ns,80000ns"]);
    place
        .run([&WITH_BASELINE[..], &["--b", "b1.xml"]].concat())
        .says(&["cannot be used with"]);
    place
        .run([&WITH_BASELINE[..], &["-o", "base.json"]].concat())
        .refused(&["this is an input"]);
    let window = place.run([&WITH_BASELINE[..], &["--skip-first", "2ms", "--fail-above", "3"]].concat());
    assert_eq!(window.code, Some(3));
    assert!(window.stdout.contains("the window rules differ"), "{window:#?}");
}

#[test]
fn noise_of_sessions_gives_single_trials_an_interval_and_widens_that_of_others() {
    let place = sides(&[100_000, 104_000, 97_000, 101_000], &[100_100, 100_000, 100_050]);
    let calibrate = |more: &[&str]| {
        place.run(
            [
                &["calibrate", "a1.xml", "a2.xml", "a3.xml", "a4.xml", "-o", "noise.json"],
                more,
            ]
            .concat(),
        )
    };
    calibrate(&[]).done();
    let noise: Value = serde_json::from_str(&place.read("noise.json")).unwrap();
    let logs = [100_000.0_f64, 104_000.0, 97_000.0, 101_000.0].map(f64::ln);
    let mean = logs.iter().sum::<f64>() / 4.0;
    let sd = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
    assert!((noise["rows"]["busy"]["sd"].as_f64().unwrap() - sd).abs() < 1e-15);
    assert_eq!(noise["rows"]["busy"]["n"], 4);

    let with = |a: usize, b: usize, more: &[&str]| compare(&place, a, b, &[&["--noise", "noise.json"], more].concat());
    let single = with(1, 1, &["--fail-above", "20", "--format", "json"]);
    assert_eq!(single.code, Some(0));
    assert_eq!(single.any_json()["busy"]["test"]["method"], "calibrated");
    // B's trials agree among themselves far better than sessions do.
    let own = compare(&place, 2, 3, &["--format", "json"]).json();
    let wide = with(3, 3, &["--format", "json"]).json();
    assert_eq!(own["busy"]["test"]["method"], "welch");
    assert_eq!(wide["busy"]["test"]["method"], "calibrated");
    assert_eq!(wide["settings"]["inference"]["noise_sessions"], 4);

    with(1, 1, &["--units", "2"]).refused(&["measured per trial", "per token", "--force"]);
    assert_eq!(with(1, 1, &["--units", "2", "--force"]).code, Some(0));
    let two = place.run(["calibrate", "a1.xml", "a2.xml", "-o", "n.json"]);
    two.refused(&["at least 3 trials", "own session"]);
    assert!(!place.path("n.json").exists());
    place
        .run(["calibrate", "a1.xml", "a2.xml", "a1.xml", "-o", "n.json"])
        .refused(&["same recording"]);
    let text = place.read("noise.json");
    for (from, to, says) in [
        ("trace-attr.noise", "other", "no noise file"),
        ("\"schema_version\": 1", "\"schema_version\": 9", "version 9"),
        ("\"n\": 4", "\"n\": 1", "no usable spread"),
        ("{", "[", "no noise file"),
    ] {
        place.write("noise.json", text.replacen(from, to, 1));
        with(1, 1, &[]).refused(&["noise.json", says]);
    }
}

#[test]
fn controls_that_move_are_told_and_rows_are_shown_relative_to_them() {
    let place = Place::new();
    for n in 1..=3 {
        let rows = |k: u64, c: u64| {
            doc(&[
                r(1_000 + n, k).label("work (C 0)"),
                r(500_000, c).label("fixed.copy (C 0)"),
            ])
        };
        // Everything is 10 % slower on side A, the controls too.
        place.write(&format!("a{n}.xml"), rows(110_000 + n * 10, 55_000 + n * 7));
        place.write(&format!("b{n}.xml"), rows(100_000 + n * 10, 50_000 + n * 7));
    }
    let ran = compare(
        &place,
        3,
        3,
        &["--control", "^fixed", "--fail-above", "3", "--format", "json"],
    );
    let report = ran.any_json();
    assert_eq!(ran.code, Some(1), "relative values decide nothing");
    assert_eq!(report["controls"]["row"]["key"], "(controls)");
    assert_eq!(report["controls"]["row"]["verdict"], "regressed");
    let relative = &report["busy"]["relative"];
    assert!(
        relative["low_pct"].as_f64().unwrap() < 0.0 && relative["high_pct"].as_f64().unwrap() > -0.1,
        "{relative}"
    );
    let codes: Vec<&str> = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"control_moved"), "{codes:?}");
    let none = compare(&place, 3, 3, &["--control", "nothing-like-this"]);
    assert!(none.stdout.contains("fits no phase"), "{none:#?}");
    let bad = compare(&place, 3, 3, &["--control", "("]);
    assert_eq!(bad.code, Some(2));
}

#[test]
fn a_baseline_of_other_phase_names_is_no_baseline() {
    let place = three_builds();
    let tokens = builds::TOKENS.to_string();
    let all = "[[phase]]\nname = \"ffn\"\na = '\\.ffn\\.'\n";
    place.write("all.toml", all);
    place.write("down.toml", all.replace("ffn\\.'", "ffn\\.down'"));
    let report = [
        "report",
        "main-1",
        "main-2",
        "main-3",
        "--tokens",
        &tokens,
        "--label-map",
        "all.toml",
        "-o",
        "base.json",
    ];
    place.run(report).done();
    let against = |map: &[&str]| {
        let compare = [
            "compare",
            "--a",
            "slow-1",
            "slow-2",
            "slow-3",
            "--baseline",
            "base.json",
            "--tokens",
            &tokens,
        ];
        place.run([&compare[..], &["--gate", "phase:ffn=2"], map].concat())
    };
    // Held against a part of it, the phase would seem to have become faster by half.
    for map in [&["--label-map", "down.toml"][..], &[]] {
        against(map).refused(&["named by another label map", "make the baseline anew"]);
    }
    let same = against(&["--label-map", "all.toml"]);
    assert!(same.stdout.contains("phase:ffn"), "{same:#?}");
}

#[test]
fn the_same_work_by_another_number_of_units_is_told_as_a_likely_slip() {
    let place = sides(&[100_000, 100_100], &[100_000, 100_200]);
    let codes = |units: [&str; 2]| {
        let report = compare(
            &place,
            2,
            2,
            &["--units-a", units[0], "--units-b", units[1], "--format", "json"],
        )
        .json();
        let notes = report["notes"].as_array().unwrap().iter();
        notes
            .map(|note| format!("{} {}", note["severity"], note["code"]))
            .collect::<Vec<_>>()
    };
    assert!(codes(["64", "24"]).contains(&"\"warning\" \"units_suspect\"".to_owned()));
    assert!(!codes(["64", "64"]).iter().any(|code| code.contains("units_suspect")));
}

#[test]
fn a_gated_row_that_the_noise_file_lacks_is_told() {
    let place = sides(&[100_000, 104_000, 97_000, 101_000], &[100_100, 100_000, 100_050]);
    place
        .run(["calibrate", "a1.xml", "a2.xml", "a3.xml", "a4.xml", "-o", "noise.json"])
        .done();
    let text = place.read("noise.json");
    place.write("noise.json", text.replace("\"bucket:xl_>=80us\"", "\"bucket:other\""));
    let ran = compare(&place, 3, 3, &["--gate", "bucket:xl_>=80us=3", "--noise", "noise.json"]);
    assert!(
        ran.stdout.contains("the noise file has no row bucket:xl_>=80us"),
        "{ran:#?}"
    );
}

#[test]
fn a_gate_on_the_command_line_leaves_those_of_the_project_in_force() {
    let place = three_builds();
    place.write(
        "trace-attr.toml",
        format!("[gate]\nrows = [\"phase:{SLOWER_PHASE}=2%\"]\n"),
    );
    let gate = |options: &[&str]| {
        let ran = against_main(&place, "slow", &[options, &["--format", "json"]].concat());
        (ran.code, gate_rows(&ran.any_json()).len())
    };
    assert_eq!(gate(&[]), (Some(1), 1));
    assert_eq!(gate(&["--gate", "phase:hf2q.decode.lm_head=2"]), (Some(1), 2));
    // The same row is replaced.
    assert_eq!(gate(&["--gate", &format!("phase:{SLOWER_PHASE}=50")]), (Some(0), 1));
}

#[test]
fn a_name_that_nobody_has_brings_the_one_that_was_meant() {
    let place = three_builds();
    for slip in ["ffn.down", "hf2q.…r.ffn.down", "hf2q.decode.layer.17.ffn.down"] {
        let ran = against_main(&place, "fixed", &["--gate", &format!("phase:{slip}=2")]);
        assert_eq!(ran.code, Some(3), "{slip}");
        let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains(&format!("neither side has this row; is it phase:{SLOWER_PHASE}?")),
            "{slip}: {text}"
        );
    }
}

#[test]
fn windows_that_hold_different_parts_of_the_work_do_not_compare() {
    let place = Place::new();
    for n in 1..=2 {
        // Ten submissions; the longest stretch without a long pause holds eight of them on side A and four on side B.
        let rows = |long: u64, first: u64| {
            let rows = (0..10).map(|at| r(first + at * 10_000 + if at >= long { 900_000 } else { 0 }, 5_000));
            doc(&rows.collect::<Vec<_>>())
        };
        place.write(&format!("a{n}.xml"), rows(8, 1_000 + n));
        place.write(&format!("b{n}.xml"), rows(6, 1_000 + n));
    }
    let options = ["--units", "10", "--window", "quiet:100us", "--fail-above", "3"];
    let ran = compare(&place, 2, 2, &options);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("the windows hold different parts of the work (bench (A): 80 % of the submissions"),
        "{text}"
    );
    assert_eq!(
        compare(&place, 2, 2, &["--units", "10", "--fail-above", "3"]).code,
        Some(0)
    );
}

#[test]
fn a_baseline_whose_parts_do_not_add_up_is_refused() {
    let place = stored();
    let text = place.read("base.json");
    let mut report: Value = serde_json::from_str(&text).unwrap();
    let edited = |report: &Value| {
        place.write("base.json", serde_json::to_string(report).unwrap());
        place.run(WITH_BASELINE).refused(&["the baseline is broken"]);
    };
    let phase = report["phases"][0].clone();
    report["phases"][0]["a"]["trials"][0]["total_ns"] = 12_000_000.into();
    edited(&report);
    report["phases"] = serde_json::json!([phase, phase]);
    edited(&report);
    report["phases"] = serde_json::json!([phase]);
    report["total"]["a"]["trials"][0]["busy_ns"] = 999_000_000_000_u64.into();
    report["a"]["trials"][0]["busy_ns"] = 999_000_000_000_u64.into();
    edited(&report);
}

#[test]
fn noise_of_another_window_does_not_fit_and_noise_of_no_spread_decides_nothing() {
    let place = sides(&[100_000, 104_000, 97_000, 101_000], &[100_100, 100_000, 100_050]);
    place
        .run(["calibrate", "a1.xml", "a2.xml", "a3.xml", "a4.xml", "-o", "noise.json"])
        .done();
    let with = |options: &[&str]| {
        compare(
            &place,
            1,
            1,
            &[&["--noise", "noise.json", "--fail-above", "3"], options].concat(),
        )
    };
    with(&["--from", "0ms"]).refused(&["another window"]);
    let text = place.read("noise.json");
    let sd = text
        .split("\"busy\"")
        .nth(1)
        .and_then(|rest| rest.split("\"sd\": ").nth(1))
        .unwrap();
    let sd = sd.split(['\n', ',']).next().unwrap();
    place.write("noise.json", text.replace(sd, "0.0"));
    assert_eq!(with(&[]).code, Some(3));
    place.write("noise.json", text.replace("\"n\": 4", "\"n\": 18446744073709551615"));
    with(&[]).refused(&["no usable spread"]);
}

#[cfg(unix)]
#[test]
fn an_output_goes_through_a_link_and_never_takes_the_place_of_a_device() {
    let place = stored();
    std::fs::create_dir(place.path("real")).unwrap();
    place.write("real/r.json", "old");
    std::os::unix::fs::symlink("real/r.json", place.path("link.json")).unwrap();
    std::os::unix::fs::symlink("gone.json", place.path("nothing.json")).unwrap();
    let write = |name: &str| place.run(["report", "a1.xml", "-o", name]);
    write("link.json").done();
    assert!(place.read("real/r.json").contains("trace-attr.report"));
    assert!(place.path("link.json").symlink_metadata().unwrap().is_symlink());
    write("nothing.json").refused(&["a link to nothing"]);
    write("csv=/dev/null").refused(&["/dev/null", "no plain file"]);
    write("cvs=a.json").refused(&["`cvs` is no format", "./cvs=a.json"]);
}

#[test]
fn a_configuration_that_is_no_file_is_an_error_and_no_open_gate() {
    let place = three_builds();
    std::fs::create_dir(place.path("trace-attr.toml")).unwrap();
    let ran = against_main(&place, "slow", &[]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
}
