//! The script that the tool replaces, beside the tool: on clean exports both give the same numbers, and where the
//! script is wrong, both results are stated.
//!
//! The script is not part of the project: `TRACE_ATTR_SCRIPT`, or where it lies beside a checkout. Without it or
//! without `python3` the tests say so and pass. Differences that are no faults: its section totals are sums of medians,
//! its "CBs" are encoders, and labels that Metal gave stay numbered.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod command;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{Place, here, row, trial};
use serde_json::Value;
use support::export::{
    CHANNEL_COMPUTE, EncoderRow, ExecutionPoint, ExportBuilder, Ids, MapRow, Process, Row, Style, Thread,
};
use support::workload::Rng;

fn script() -> Option<PathBuf> {
    let given = std::env::var_os("TRACE_ATTR_SCRIPT").map(PathBuf::from);
    let beside = [
        "../shared/seeds/aggregate_mst.py",
        "../../shared/seeds/aggregate_mst.py",
    ]
    .map(here);
    let found = given.into_iter().chain(beside).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: the replaced script is not there");
    }
    found
}

/// What the script says of a folder; `None` without the script or Python.
fn summary(folder: &Path, tokens: u64, process: &str) -> Option<Value> {
    let run = Command::new("python3")
        .arg(here("tests/oracle/script_on_files.py"))
        .arg(script()?)
        .arg(folder)
        .args(["--tokens", &tokens.to_string(), "--process", process])
        .output();
    let Ok(output) = run else {
        eprintln!("skipped: no python3");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn report(inputs: &[&Path], options: &[&str]) -> Value {
    let inputs = inputs.iter().map(|path| path.to_str().unwrap());
    let arguments: Vec<&str> = ["report", "--format", "json"]
        .into_iter()
        .chain(inputs)
        .chain(options.iter().copied())
        .collect();
    Place::new().run(arguments).done().json()
}

/// A submission of a small made-up export.
#[derive(Clone, Copy)]
struct Work {
    start: u64,
    duration: u64,
    encoder: u64,
    buffer: u64,
    submission: u64,
}

/// Points, map and encoders: no time twice, one process, every command buffer labelled.
fn clean(seed: u64, count: u64) -> Vec<Work> {
    let mut rng = Rng::new(seed);
    let mut at = 1_000_003;
    (0..count)
        .map(|n| {
            // One encoder in three has two submissions.
            let encoder = 0x6000 + n - n % 3 % 2;
            let duration = [900, 3_000, 15_000, 50_000, 200_000][(rng.next() % 5) as usize] + rng.between(1, 799);
            let work = Work {
                start: at,
                duration,
                encoder,
                buffer: 0x9000 + encoder,
                submission: 41_000 + 2 * n,
            };
            at += duration + rng.between(300, 9_000);
            work
        })
        .collect()
}

fn phase(encoder: u64) -> String {
    let kind = ["attn.qkv", "ffn.down", "norm"][(encoder % 3) as usize];
    format!("engine.layer.{}.{kind}", encoder % 7)
}

fn encoder_label(encoder: u64) -> String {
    match encoder % 4 {
        0 => "Blit Command 0".to_owned(),
        1 => "gemm tile".to_owned(),
        _ => format!("Compute Command {}", encoder % 5),
    }
}

fn write(folder: &Path, work: &[Work], process: &Process) {
    fs::create_dir_all(folder).unwrap();
    let put = |schema: &str, build: &dyn Fn(&mut ExportBuilder<'_>)| {
        let xml = ExportBuilder::document(Style::default(), |export| build(export));
        fs::write(folder.join(format!("{schema}.xml")), xml).unwrap();
    };
    put(ExecutionPoint::TABLE.schema, &|export| {
        export.table(ExecutionPoint::TABLE);
        let mut points: Vec<ExecutionPoint> = work
            .iter()
            .flat_map(|one| {
                [(1, one.start), (2, one.start + one.duration)].map(|(function, time)| ExecutionPoint {
                    time,
                    channel: CHANNEL_COMPUTE,
                    function,
                    submission: one.submission,
                })
            })
            .collect();
        points.sort_by_key(|point| (point.time, std::cmp::Reverse(point.function)));
        export.rows(points);
    });
    put(MapRow::TABLE.schema, &|export| {
        export.table(MapRow::TABLE);
        for one in work {
            let ids = Ids {
                command_buffer: one.buffer,
                encoder: one.encoder,
                submission: one.submission,
            };
            export.rows(MapRow::pair(one.start - 1_000, ids, process, 0));
        }
    });
    put(EncoderRow::TABLE.schema, &|export| {
        export.table(EncoderRow::TABLE);
        let mut seen = std::collections::BTreeSet::new();
        for one in work.iter().filter(|one| seen.insert(one.encoder)) {
            export.row(&EncoderRow {
                start: one.start - 2_000,
                duration: 100 + one.encoder % 50,
                thread: Thread {
                    name: "Main Thread".to_owned(),
                    tid: 7,
                    process: process.clone(),
                },
                gpu: "M5 Max".to_owned(),
                frame: 1,
                buffer_label: phase(one.encoder),
                buffer_index: 0,
                label: encoder_label(one.encoder),
                index: 0,
                command_buffer: one.buffer,
                encoder: one.encoder,
            });
        }
    });
}

fn us(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Totals, buckets, families and phases of one trial.
fn assert_agree(report: &Value, at: usize, script: &Value) {
    let one = &report["a"]["trials"][at];
    assert_eq!(one["submissions"], script["paired"]);
    assert_eq!(one["total_ns"], script["buckets"]["_total"]["sum_ns"]);
    for (key, bucket) in script["buckets"].as_object().unwrap() {
        if key == "_total" || bucket["count"] == 0 {
            continue;
        }
        let cell = &row(report, "buckets", key)["a"]["trials"][at];
        assert_eq!(cell["submissions"], bucket["count"], "{key}");
        assert_eq!(cell["total_ns"], bucket["sum_ns"], "{key}");
        // The script cuts the half nanosecond of an even number of values.
        assert!((us(&cell["p50_ns"]) - us(&bucket["p50_ns"])).abs() < 1.0, "{key}");
    }
    for (section, table, submissions, encoders) in [
        (
            "encoders",
            "encoder_gpu",
            "count_dispatches_in_encoder_family",
            "count_encoders",
        ),
        ("phases", "cb_label_gpu", "count_dispatches", "count_cbs"),
    ] {
        for (key, group) in script[table].as_object().unwrap() {
            if key == "_meta" {
                continue;
            }
            // What the driver merged is a family of its own here; the script takes its first word.
            let merged = command::keys(report, section)
                .into_iter()
                .find(|found| found.starts_with(&format!("{key} & ")));
            let cell = &row(report, section, merged.as_ref().unwrap_or(key))["a"]["trials"][at];
            assert_eq!(cell["total_ns"], group["gpu_sum_ns"], "{section} {key}");
            assert_eq!(cell["submissions"], group[submissions], "{section} {key}");
            assert_eq!(cell["encoders"], group[encoders], "{section} {key}");
            assert_eq!(cell["cpu_encode_ns"], group["host_sum_ns"], "{section} {key}");
        }
    }
    assert_eq!(
        one["encoders"]["all"],
        script["cb_label_gpu"]["_meta"]["total_encoders"]
    );
    assert_eq!(
        one["encoders"]["labelled"],
        script["cb_label_gpu"]["_meta"]["labelled_encoders"]
    );
}

#[test]
fn the_clean_fixture_has_the_scripts_numbers() {
    let folder = here("fixtures/good/points_only");
    let Some(script) = summary(&folder, 64, "bench") else {
        return;
    };
    assert_agree(&report(&[&folder], &[]), 0, &script);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        f64::midpoint(values[half - 1], values[half])
    }
}

#[test]
fn clean_trials_have_the_scripts_numbers_and_medians() {
    let place = Place::new();
    for (seed, trials) in [(1, 1), (20, 2), (300, 3), (4_000, 4)] {
        let folders: Vec<PathBuf> = (0..trials).map(|at| place.path(&format!("{seed}-{at}"))).collect();
        for (at, folder) in (0..).zip(&folders) {
            write(folder, &clean(seed + at, 60 + 7 * at), &Process::new("bench", 77 + at));
        }
        let paths: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let report = report(&paths, &["--tokens", "8"]);
        let mut summaries = Vec::new();
        for (at, folder) in folders.iter().enumerate() {
            let Some(script) = summary(folder, 8, "bench") else {
                return;
            };
            assert_agree(&report, at, &script);
            summaries.push(script);
        }
        let over = |read: &dyn Fn(&Value) -> f64| median(summaries.iter().map(read).collect());
        let close = |found: &Value, expected: f64, what: &str| {
            let found = found.as_f64().unwrap();
            assert!(
                (found - expected).abs() < 1e-9 * expected.max(1.0),
                "{what}: {found} {expected}"
            );
        };
        let total = &report["total"]["a"];
        close(&total["total_us"], over(&|one| us(&one["gpu_us_per_token"])), "total");
        close(
            &total["submissions"],
            over(&|one| us(&one["dispatches_per_token"])),
            "submissions",
        );
        for key in command::keys(&report, "phases") {
            let phase = |field: &'static str| {
                let key = key.clone();
                move |one: &Value| one["cb_label_gpu"][&key][field].as_f64().unwrap_or(0.0)
            };
            let gpu = phase("gpu_sum_ns");
            close(
                &row(&report, "phases", &key)["a"]["total_us"],
                over(&|one| gpu(one) / 8_000.0),
                &key,
            );
            let count = phase("count_dispatches");
            close(
                &row(&report, "phases", &key)["a"]["submissions"],
                over(&|one| count(one) / 8.0),
                &key,
            );
        }
        for key in command::used(&report, "buckets") {
            let cell = &row(&report, "buckets", &key)["a"];
            close(
                &cell["total_us"],
                over(&|one| us(&one["buckets"][&key]["sum_ns"]) / 8_000.0),
                &key,
            );
        }
    }
}

#[test]
fn where_the_script_is_wrong_both_results_are_known() {
    let place = Place::new();
    let bench = Process::new("bench", 77);
    let one = |start, duration, n: u64| Work {
        start,
        duration,
        encoder: 0x6000 + n,
        buffer: 0x9000 + n,
        submission: 41_000 + 2 * n,
    };

    // A start at the very ns of the end before it is a `ref`: the script drops the row, and what the row defines.
    let folder = place.path("ref");
    write(
        &folder,
        &[one(10_000, 1_000, 0), one(11_000, 2_000, 1), one(20_000, 4_000, 2)],
        &bench,
    );
    let Some(script) = summary(&folder, 1, "bench") else {
        return;
    };
    let right = report(&[&folder], &[]);
    assert_eq!(
        (&trial(&right)["submissions"], &trial(&right)["total_ns"]),
        (&3.into(), &7_000.into())
    );
    assert_eq!(script["paired"], 2);
    assert_eq!(script["buckets"]["_total"]["sum_ns"], 5_000);

    // p95 of values that are not in order: the script takes whatever stands at that place of the file.
    let folder = place.path("unsorted");
    let work: Vec<Work> = (0..20).map(|n| one(10_000 + n * 10_000, 1_900 - n * 50, n)).collect();
    write(&folder, &work, &bench);
    let script = summary(&folder, 1, "bench").unwrap();
    let right = report(&[&folder], &[]);
    assert_eq!(row(&right, "buckets", "xs_<2us")["a"]["trials"][0]["p95_ns"], 1_850);
    assert_eq!(script["buckets"]["xs_<2us"]["p95_ns"], 1_000);

    // Points of other processes are in the script's buckets and total.
    let folder = place.path("foreign");
    write(&folder, &[one(10_000, 1_000, 0)], &bench);
    let both = place.path("other");
    write(&both, &[one(30_000, 9_000, 5)], &Process::new("WindowServer", 188));
    for schema in [ExecutionPoint::TABLE.schema, MapRow::TABLE.schema] {
        // Two nodes, as an export of both has.
        let name = format!("{schema}.xml");
        let foreign = fs::read_to_string(both.join(&name)).unwrap();
        let own = fs::read_to_string(folder.join(&name)).unwrap();
        let node = &foreign[foreign.find("<node").unwrap()..foreign.find("</trace-query-result>").unwrap()];
        fs::write(
            folder.join(&name),
            own.replace("</trace-query-result>", &format!("{node}</trace-query-result>")),
        )
        .unwrap();
    }
    let script = summary(&folder, 1, "bench").unwrap();
    let right = report(&[&folder], &[]);
    assert_eq!(
        (&trial(&right)["submissions"], &trial(&right)["total_ns"]),
        (&1.into(), &1_000.into())
    );
    assert_eq!(trial(&right)["left_out"]["other_process"]["total_ns"], 9_000);
    assert_eq!(script["buckets"]["_total"]["sum_ns"], 10_000);

    // An id whose `fmt` is another's in the other table: the script compares what is displayed.
    let folder = place.path("shown");
    write(&folder, &[one(10_000, 1_000, 0)], &bench);
    let encoders = folder.join("metal-application-encoders-list.xml");
    let text = fs::read_to_string(&encoders).unwrap();
    fs::write(&encoders, text.replace("fmt=\"0x6000\"", "fmt=\"24,576\"")).unwrap();
    let script = summary(&folder, 1, "bench").unwrap();
    let right = report(&[&folder], &[]);
    let key = command::keys(&right, "phases").remove(0);
    assert_eq!(row(&right, "phases", &key)["a"]["trials"][0]["total_ns"], 1_000);
    assert_eq!(script["cb_label_gpu"][&key]["gpu_sum_ns"], 0);
}
