//! `live watch` with `stand-in/xcrun` in the place of Apple's: what is recorded, shown, deleted and kept, and how it ends.

#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command::{Place, Ran, here};
use serde_json::Value;
use support::export::Style;
use support::workload::{Engine, Workload};

/// What is recorded: an engine that labels its work.
fn workload() -> Workload {
    Workload::new(Engine::Hf2q, 2, 1, 1)
}

/// A place with the stand-in and what it records.
struct Mac(Place);

impl Mac {
    fn new(case: &str) -> Mac {
        let mac = Mac(Place::new());
        fs::create_dir(mac.0.path("bin")).unwrap();
        std::os::unix::fs::symlink(here("tests/stand-in/xcrun"), mac.0.path("bin/xcrun")).unwrap();
        mac.0.write("bin/case", case);
        let workload = workload();
        mac.0.write("bin/recording/case", "recorded");
        mac.0
            .write("bin/recording/toc.xml", workload.toc(Workload::SCHEMAS).to_xml());
        for schema in Workload::SCHEMAS {
            let mut bytes = Vec::new();
            workload.write(schema, &mut bytes, Style::default()).unwrap();
            mac.0.write(&format!("bin/recording/run-1/{schema}.xml"), bytes);
        }
        mac
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command([&["live", "watch"], arguments].concat());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let tools = [self.0.path("bin")].into_iter().chain(std::env::split_paths(&path));
        fs::create_dir_all(self.0.path("tmp")).unwrap();
        command
            .env("PATH", std::env::join_paths(tools).unwrap())
            .env("TMPDIR", self.0.path("tmp"))
            .env_remove("STAND_IN_CASE");
        command
    }

    fn watch(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// Arguments of every call of a verb.
    fn calls(&self, verb: &str) -> Vec<String> {
        let log = fs::read_to_string(self.0.path("bin/log")).unwrap_or_default();
        let calls = log
            .split("call\n")
            .map(|call| call.replace(">\n<", " ").replace('\n', ""));
        calls
            .filter(|call| call.starts_with(&format!("<xctrace {verb}")))
            .collect()
    }

    /// Recordings that lie about.
    fn left(&self) -> usize {
        fs::read_dir(self.0.path("tmp")).unwrap().count()
    }
}

/// The pid of the workload.
fn pid() -> String {
    workload().process().pid.to_string()
}

#[test]
fn each_window_is_recorded_attributed_and_deleted() {
    let mac = Mac::new("record");
    let ran = mac.watch(&["--attach", &pid(), "--windows", "2", "--window", "1500ms"]);
    let lines = ran.lines();
    assert_eq!(lines.len(), 2);
    let window = &lines[1];
    assert_eq!(
        (&window["schema"], &window["window"]),
        (&Value::from("trace-attr.watch"), &Value::from(2))
    );
    assert!(window["recorded_in_all_ns"].as_u64() >= lines[0]["recorded_ns"].as_u64());
    let rows = window["rows"].as_array().unwrap();
    let total: u64 = rows.iter().map(|row| row["total_ns"].as_u64().unwrap()).sum();
    assert_eq!(window["total_ns"].as_u64(), Some(total), "the rows are the whole");
    let share: f64 = rows.iter().map(|row| row["share_pct"].as_f64().unwrap()).sum();
    assert!((share - 100.0).abs() < 1e-9);
    // The first window has nothing before it; the second is the same recording again.
    assert!(
        lines[0]["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["change_pct"].is_null())
    );
    assert!(
        rows.iter()
            .all(|row| row["change_pct"].as_f64().is_some_and(|pct| pct.abs() < 1e-9))
    );
    let recorded = mac.calls("record");
    assert_eq!(recorded.len(), 2);
    let expected = format!(
        "--template Metal System Trace --attach {} --time-limit 1500ms --no-prompt",
        pid()
    );
    assert!(recorded[0].contains(&expected), "{recorded:?}");
    assert_eq!(mac.left(), 0, "nothing is left behind");
    assert!(
        !mac.0.path("cache").exists(),
        "windows are not worth keeping in the cache"
    );
}

#[test]
fn rows_may_be_buckets_and_their_sum_is_that_of_the_phases() {
    let mac = Mac::new("record");
    let window = |by: &str| mac.watch(&["--attach", &pid(), "--windows", "1", "--by", by]).lines()[0].clone();
    let (phases, buckets) = (window("phases"), window("buckets"));
    assert_eq!(phases["total_ns"], buckets["total_ns"]);
    let keys: Vec<_> = buckets["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["key"].clone())
        .collect();
    assert!(keys.contains(&Value::from("md_8_32us")), "{keys:?}");
}

#[test]
fn recordings_are_kept_on_request_and_never_over_others() {
    let mac = Mac::new("record");
    for _ in 0..2 {
        mac.watch(&["--attach", &pid(), "--windows", "1", "--keep", "kept"])
            .lines();
    }
    let mut kept: Vec<String> = fs::read_dir(mac.0.path("kept"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    kept.sort();
    assert_eq!(kept, ["window-1-1.trace", "window-1.trace"]);
    assert!(mac.0.path("kept/window-1.trace/toc.xml").exists());
}

#[test]
fn b63_a_recorder_that_exits_54_with_a_good_trace_is_a_warning() {
    let fine = Mac::new("record")
        .watch(&["--attach", &pid(), "--windows", "1"])
        .lines()[0]
        .clone();
    let mac = Mac::new("record-run-issues");
    let ran = mac.watch(&["--attach", &pid(), "--windows", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.says(&["sub-instrument failed", "54"]);
    let window: Value = serde_json::from_str(&ran.stdout).unwrap();
    let warnings = window["warnings"].to_string();
    assert!(
        warnings.contains("sub-instrument failed") && warnings.contains("54"),
        "{warnings}"
    );
    assert_eq!(window["rows"], fine["rows"], "numbers as for exit status 0");
    // The same status and the same text, and no trace.
    let mac = Mac::new("record-nothing");
    mac.watch(&["--attach", &pid(), "--windows", "1"])
        .refused(&["sub-instrument failed", "54"]);
    // Success, and no trace.
    let mac = Mac::new("record-silently-nothing");
    mac.watch(&["--attach", &pid(), "--windows", "1"])
        .refused(&["saved no trace"]);
}

#[test]
fn a_window_without_gpu_work_of_the_program_is_a_window() {
    let mac = Mac::new("record");
    let ran = mac.watch(&["--attach", "999999", "--windows", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let window: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&window["process"], &window["total_ns"]),
        (&Value::Null, &Value::from(0))
    );
    assert_eq!(window["rows"], Value::Array(Vec::new()));
    assert!(!window["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn a_command_is_started_and_ends_with_the_watch() {
    let mac = Mac::new("record");
    let script = "echo $$ > pid; echo to stdout; exec sleep 300";
    let begun = Instant::now();
    let ran = mac.watch(&["--windows", "1", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    // Its words do not stand among the lines.
    serde_json::from_str::<Value>(&ran.stdout).unwrap();
    ran.says(&["to stdout"]);
    let pid = mac.0.read("pid").trim().to_owned();
    assert!(
        mac.calls("record")[0].contains(&format!("--attach {pid} ")),
        "we attach to what we started"
    );
    assert!(!is_running(&pid), "it is ours to end");
}

#[test]
fn a_command_that_ends_ends_the_watch() {
    let mac = Mac::new("record");
    let ran = mac.watch(&["--", "sh", "-c", "sleep 0.3; exit 7"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.says(&["exit status 7", "the watch is over"]);
    mac.watch(&["--", "no-such-command"]).refused(&["no-such-command"]);
}

fn is_running(pid: &str) -> bool {
    let state = Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .unwrap()
        .stdout;
    let state = String::from_utf8_lossy(&state).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits until a file is there and has a whole line.
fn line_of(path: &std::path::Path) -> String {
    let begun = Instant::now();
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ if begun.elapsed() > Duration::from_secs(60) => panic!("{} never came", path.display()),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn one_ctrl_c_ends_the_watch_cleanly() {
    let mac = Mac::new("record-then-hang");
    let mut other = Command::new("sleep").arg("300").spawn().unwrap();
    let mut child = mac
        .command(&["--attach", &pid()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The second recording hangs, with a helper that is deaf to polite requests.
    let (leader, helper) = (line_of(&mac.0.path("bin/leader")), line_of(&mac.0.path("bin/helper")));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    let ran = Ran::from_output(&child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    assert_eq!(
        ran.stdout.lines().count(),
        1,
        "the window that was complete, and no half one"
    );
    assert!(!is_running(&leader) && !is_running(&helper), "what we started is gone");
    assert!(is_running(&other.id().to_string()), "what is not ours is left alone");
    assert_eq!(mac.left(), 0);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn without_xcode_it_says_what_it_needs() {
    let place = Place::new();
    let ran = place.run(["live", "watch", "--attach", "1", "--windows", "1"]);
    ran.refused(&["`xcrun` was not found", "macOS with Xcode"]);
}
