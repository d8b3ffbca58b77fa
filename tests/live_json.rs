//! The JSON of a live profile: what is written is read again, keeps to its schema, and is refused when it contradicts
//! itself; and what `report` and `compare` make of such files.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod made_device;

use command::{Place, here};
use made_device::{MadeDevice, Play, in_handler, offset, ran};
use serde_json::{Value, json};
use trace_attr::convert::{self, Conversion};
use trace_attr::live::backend::Observation;
use trace_attr::live::{self, GroupBy, HostTime, Kernel, Launch, Profile, ProfileOptions, Runtime, Via};
use trace_attr::metrics;

/// A program with all that a profile can hold: scopes, stages, launches, and command buffers of every fate.
fn everything() -> Profile {
    let mut device = MadeDevice::with_counters([Play::Runs(7_000)], true);
    device.samples = Some([2_000, 2_040]);
    let runtime = Runtime::new(device);
    let kernel = Kernel::msl("kernel void add() {}", "add");
    let options = ProfileOptions {
        close_limit: std::time::Duration::from_millis(10),
        ..ProfileOptions::default()
    };
    let body = |_: &_| {
        live::scope("step 1/2 \u{1b}[31m", metrics![flops = 1e9, tokens = 3], || {
            runtime.execute(&kernel, &[&[0; 16]], 16, [4, 1, 1], [4, 1, 1]).unwrap();
        });
        let failed = Observation::open("", Via::Committed, None, None).unwrap();
        failed.committed();
        in_handler(move || failed.failed("page fault"));
        drop(Observation::open("forgotten", Via::Observed, None, None));
        let kept = Observation::open("slow", Via::Committed, None, None).unwrap();
        kept.committed();
        kept
    };
    live::profile_with(&options, body).unwrap().1
}

fn parsed(profile: &Profile) -> Value {
    serde_json::from_str(&profile.to_json()).unwrap()
}

/// An engine that spends so many ns in attention, and 60 µs in a launch of `mul_mv` outside of every scope.
fn engine(attention_ns: u64) -> String {
    let body = |_: &_| {
        let now = HostTime::now().0;
        let run = |label: &str, launch: Option<&Launch>, start: u64, end: u64| {
            let via = if launch.is_some() {
                Via::ObservedLaunch
            } else {
                Via::Observed
            };
            let observation = Observation::open(label, via, launch, None).unwrap();
            in_handler(move || observation.completed(&ran(start, end), offset()));
        };
        for token in 0..4 {
            let start = now + token * 1_000_000;
            live::scope("attention", metrics![], || {
                run("qkv", None, start, start + attention_ns)
            });
            let launch = Launch::new("kernel_mul_mv_q4_0_f32", [64, 1, 1], [32, 1, 1]);
            run("ffn", Some(&launch), start + 500_000, start + 560_000);
        }
    };
    live::profile(body).1.to_json()
}

#[test]
fn what_is_written_is_read_again() {
    let profile = everything();
    let read = Profile::from_json(&profile.to_json()).unwrap();
    assert_eq!(parsed(&read), parsed(&profile));
    assert_eq!(read.counts(), profile.counts());
    assert_eq!(
        read.key_averages(GroupBy::CallPath),
        profile.key_averages(GroupBy::CallPath)
    );
    assert_eq!(read.tree(), profile.tree());
    let converted = |profile: &Profile| {
        let mut out = Vec::new();
        convert::write(profile, Conversion::Hatchet, &mut out).unwrap();
        out
    };
    assert_eq!(converted(&read), converted(&profile));
    assert_eq!(
        read.to_json(),
        Profile::from_json(&read.to_json()).unwrap().to_json(),
        "same input, same bytes"
    );
}

#[test]
fn the_json_keeps_to_its_schema() {
    let schema: Value = serde_json::from_str(include_str!("../docs/live.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for profile in [everything(), live::profile(|_| ()).1] {
        let value = parsed(&profile);
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
    let reasons = schema["$defs"]["reason"]["enum"].as_array().unwrap();
    let codes: Vec<&str> = live::Absent::ALL.iter().map(|absent| absent.code()).collect();
    assert_eq!(
        reasons.iter().map(|code| code.as_str().unwrap()).collect::<Vec<_>>(),
        codes
    );
}

#[test]
fn a_number_that_was_not_measured_is_null_with_its_reason() {
    let value = parsed(&everything());
    let events = value["events"].as_array().unwrap();
    let named = |name: &str| events.iter().find(|event| event["name"] == name).unwrap()["gpu"].clone();
    let failed = named("(unlabelled)");
    assert_eq!(
        (&failed["start_ns"], &failed["absent"]["start_ns"]),
        (&Value::Null, &json!("failed"))
    );
    assert_eq!(failed["error"], "page fault");
    assert_eq!(named("forgotten")["absent"]["start_ns"], "never_committed");
    assert_eq!(named("slow")["absent"]["queue_wait_ns"], "unfinished");
    let launch = named("gpu_dispatch");
    assert_eq!(
        (&launch["encoder_gpu_ns"], &launch["absent"]),
        (&json!(4_000), &json!({}))
    );
}

#[test]
fn a_file_that_contradicts_itself_is_refused_with_its_event() {
    let good = parsed(&everything());
    let gpu = good["events"]
        .as_array()
        .unwrap()
        .iter()
        .position(|event| event["gpu"]["end_ns"].is_u64())
        .unwrap();
    let refused = |change: &dyn Fn(&mut Value), word: &str| {
        let mut value = good.clone();
        change(&mut value);
        let told = Profile::from_json(&value.to_string()).unwrap_err().to_string();
        assert!(told.contains(word), "{told}");
    };
    refused(
        &|value| value["schema"] = json!("trace-attr.report"),
        "`trace-attr.report`",
    );
    refused(&|value| value["schema_version"] = json!(2), "version 2");
    refused(&|value| value["events"][1]["parent"] = json!(1), "event 1");
    refused(&|value| value["events"][2]["end_ns"] = json!(0), "event 2");
    refused(&|value| value["events"][0]["category"] = json!("gpu"), "event 0");
    refused(&|value| value["events"][gpu]["gpu"]["end_ns"] = json!(0), "no length");
    refused(
        &|value| value["events"][gpu]["gpu"]["status"] = json!("unfinished"),
        "has no time",
    );
    refused(
        &|value| value["events"][gpu]["gpu"]["queue_wait_ns"] = Value::Null,
        "has no reason",
    );
    assert!(Profile::from_json("{").is_err() && Profile::from_json("[]").is_err());
}

#[test]
fn report_takes_a_live_profile_as_a_trial() {
    let place = Place::new();
    place.write("run.json", engine(40_000));
    let report = place
        .run(["report", "run.json", "--format", "json", "--tokens", "4"])
        .json();
    assert_eq!(report["settings"]["timing"], "live");
    let schema: Value = serde_json::from_str(include_str!("../docs/compare.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    assert!(validator.is_valid(&report), "the report keeps to its schema");
    let phases: Vec<_> = report["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["key"].clone())
        .collect();
    assert_eq!(phases, ["ffn", "attention"], "scopes, else labels");
    let attention = &report["phases"][1]["a"];
    assert_eq!(attention["us_per_command_buffer"], json!(40));
    assert_eq!(
        (&attention["submissions"], &attention["total_us"]),
        (&json!(1), &json!(40))
    );
    let families = &report["kernels"]["a"]["families"];
    assert!(families.to_string().contains("kernel_mul_mv_q4_0_f32"), "{families}");
}

#[test]
fn compare_holds_live_profiles_against_each_other() {
    let place = Place::new();
    let (a, b) = (["a1.json", "a2.json", "a3.json"], ["b1.json", "b2.json", "b3.json"]);
    for (at, (a, b)) in (0..).zip(a.iter().zip(&b)) {
        place.write(a, engine(50_000 + 10 * at));
        place.write(b, engine(40_000 + 10 * at));
    }
    let arguments = [
        &["compare", "--a"],
        &a[..],
        &["--b"],
        &b[..],
        &["--tokens", "4", "--format", "json"],
    ]
    .concat();
    let compared = place.run(arguments).json();
    let attention = compared["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["key"] == "attention")
        .unwrap();
    assert_eq!(attention["verdict"], "regressed");
    assert!(
        (attention["delta_us"].as_f64().unwrap() - 10.0).abs() < 0.1,
        "{attention}"
    );
    assert_eq!(compared["incomparable"], json!([]));
}

#[test]
fn a_live_profile_against_a_trace_is_told_to_differ_in_timing() {
    let place = Place::new();
    place.write("run.json", engine(40_000));
    let trace = here("fixtures/good/plain.xml");
    let arguments = [
        "compare",
        "--a",
        "run.json",
        "--b",
        trace.to_str().unwrap(),
        "--tokens",
        "4",
        "--format",
        "json",
    ];
    let compared = place.run(arguments).json();
    let codes: Vec<_> = compared["incomparable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|why| why["code"].clone())
        .collect();
    assert!(codes.contains(&json!("timing_differs")), "{codes:?}");
    assert_eq!(compared["busy"]["verdict"], "incomparable");
    // Each side's own table is named, not that of A for both.
    let text = place
        .run(&arguments[..arguments.len() - 2])
        .done()
        .stdout
        .replace("\n  ", " ");
    assert!(
        text.contains("from live profile, of bench from metal-gpu-intervals"),
        "{text}"
    );
}

#[test]
fn a_profile_under_a_capture_is_shown_and_not_compared() {
    let place = Place::new();
    let mut value: Value = serde_json::from_str(&engine(40_000)).unwrap();
    place.write("good.json", value.to_string());
    value["captured"] = json!(true);
    place.write("captured.json", value.to_string());
    let report = place.run(["report", "captured.json", "--format", "json"]).json();
    assert!(report["notes"].to_string().contains("live_captured"));
    place
        .run(["compare", "--a", "captured.json", "--b", "good.json"])
        .refused(&["GPU capture"]);
}

#[test]
fn what_makes_no_sense_with_a_live_profile_is_refused() {
    let place = Place::new();
    place.write("run.json", engine(40_000));
    place.write(
        "empty.json",
        live::profile(|_| live::scope("x", metrics![], || ())).1.to_json(),
    );
    place.write(
        "other.json",
        "{\"schema\": \"trace-attr.report\", \"schema_version\": 1}",
    );
    let trace = here("fixtures/good/plain.xml");
    place
        .run(["report", "run.json", trace.to_str().unwrap()])
        .refused(&["no trials of one thing"]);
    place
        .run(["report", "run.json", "--process", "hf2q"])
        .refused(&["one process"]);
    place
        .run(["report", "run.json", "--skip-first", "1ms"])
        .refused(&["one process"]);
    place
        .run(["report", "empty.json"])
        .refused(&["it has no command buffer"]);
    place
        .run(["report", "other.json"])
        .refused(&["its schema is `trace-attr.report`"]);
    place.run(["report", "run.json", "run.json"]).refused(&["same"]);
}
