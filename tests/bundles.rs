//! Every command on `.trace` bundles, with `stand-in/xcrun` first on `PATH` in place of Apple's: what comes out is what
//! the exported folder gives, and each way in which xctrace fails is told by its cause. How xctrace is run and judged is
//! tested in `xctrace.rs`.

#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command::{Place, Ran, here, note, trial};
use serde_json::Value;
use support::export::Style;
use support::toc::{Target, Toc};
use support::workload::{Engine, Workload};

/// A place with the stand-in and bundles.
struct Mac {
    place: Place,
}

impl Mac {
    fn new() -> Self {
        let mac = Mac { place: Place::new() };
        // A link, because a script that was just written may be refused while another test starts a process.
        fs::create_dir(mac.place.path("bin")).unwrap();
        std::os::unix::fs::symlink(here("tests/stand-in/xcrun"), mac.place.path("bin/xcrun")).unwrap();
        mac
    }

    /// A bundle that plays `case`, with the workload's tables as run `numbers`.
    fn bundle(&self, name: &str, case: &str, workloads: &[(u64, Workload)]) {
        self.place.write(&format!("{name}/case"), case);
        let mut toc = Toc::default();
        for (number, workload) in workloads {
            let mut runs = workload.toc(Workload::SCHEMAS).runs;
            runs[0].number = *number;
            toc.runs.append(&mut runs);
            for schema in Workload::SCHEMAS {
                let mut bytes = Vec::new();
                workload.write(schema, &mut bytes, Style::default()).unwrap();
                self.place.write(&format!("{name}/run-{number}/{schema}.xml"), bytes);
            }
        }
        self.place.write(&format!("{name}/toc.xml"), toc.to_xml());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let tools = [self.place.path("bin")].into_iter().chain(std::env::split_paths(&path));
        command
            .env("PATH", std::env::join_paths(tools).unwrap())
            .env("STAND_IN_LOG", self.place.path("log"))
            .env_remove("STAND_IN_CASE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// Exports `run.trace`, whose Shader Timeline was off, which is no news.
    fn export(&self, options: &[&str]) {
        let ran = self.run(&[&["export", "run.trace"], options].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    }

    /// The arguments of each call so far.
    fn calls(&self) -> Vec<Vec<String>> {
        let mut calls: Vec<Vec<String>> = Vec::new();
        for line in fs::read_to_string(self.place.path("log")).unwrap_or_default().lines() {
            match line.strip_prefix('<').and_then(|line| line.strip_suffix('>')) {
                Some(argument) => calls.last_mut().unwrap().push(argument.to_owned()),
                None => calls.push(Vec::new()),
            }
        }
        calls
    }

    /// Forgets the calls; tells how many exports (contents, tables) there were.
    fn exports(&self) -> (usize, usize) {
        let calls = self.calls();
        let count = |option: &str| {
            calls
                .iter()
                .filter(|call| call.get(4).is_some_and(|o| o == option))
                .count()
        };
        let exports = (count("--toc"), count("--xpath"));
        let _ = fs::remove_file(self.place.path("log"));
        exports
    }
}

fn small(engine: Engine, seed: u64) -> Workload {
    Workload::new(engine, 5, seed, 1)
}

/// A report without what names the input.
fn nameless(mut report: Value) -> Value {
    for side in ["a", "b"] {
        let Some(trials) = report.get_mut(side).and_then(|side| side.get_mut("trials")) else {
            continue;
        };
        for trial in trials.as_array_mut().unwrap() {
            trial["input"] = Value::Null;
        }
    }
    report
}

#[test]
fn a_bundle_gives_the_numbers_of_its_exported_folder_and_comes_from_the_cache_the_second_time() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded", &[(1, small(Engine::Hf2q, 1))]);
    let report = |input: &str| {
        let ran = mac.run(&["report", input, "--tokens", "5", "--format", "json"]);
        nameless(ran.done().json())
    };
    let first = report("run.trace");
    assert_eq!(mac.exports(), (1, 1), "one call for all tables");
    let again = report("run.trace");
    assert_eq!(mac.exports(), (0, 0), "the second time from the cache");
    assert_eq!(first, again);

    mac.export(&["-o", "exported"]);
    mac.export(&["-o", "packed", "--zst"]);
    assert_eq!(report("exported"), first);
    assert_eq!(report("packed"), first);
    fs::rename(mac.place.path("run.trace/run-1"), mac.place.path("folder")).unwrap();
    fs::copy(mac.place.path("run.trace/toc.xml"), mac.place.path("folder/toc.xml")).unwrap();
    assert_eq!(report("folder"), first);
}

#[test]
fn no_cache_neither_reads_nor_writes_one() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded", &[(1, small(Engine::Hf2q, 1))]);
    for _ in 0..2 {
        mac.run(&["report", "run.trace", "--no-cache"]).done();
        assert_eq!(mac.exports(), (1, 1));
    }
    assert!(!mac.place.path("cache").exists());
    // Another recording under the same name is another recording.
    mac.run(&["report", "run.trace"]).done();
    assert_eq!(mac.exports(), (1, 1));
    fs::remove_dir_all(mac.place.path("run.trace")).unwrap();
    mac.bundle("run.trace", "recorded", &[(1, small(Engine::Llama, 2))]);
    let report = mac.run(&["report", "run.trace", "--format", "json"]).json();
    assert_eq!(trial(&report)["process"]["name"], "llama-cli");
}

#[test]
fn b28_runs_of_a_bundle() {
    let mac = Mac::new();
    let runs = [(2, small(Engine::Hf2q, 2)), (3, small(Engine::Hf2q, 3))];
    mac.bundle("run.trace", "recorded", &runs);
    mac.run(&["report", "run.trace"])
        .refused(&["several runs", "2 (hf2q (4202))", "3 (hf2q (4203))", "--run"]);
    mac.run(&["report", "run.trace", "--run", "1"])
        .refused(&["no run 1", "2 (", "3 ("]);
    assert_eq!(mac.exports().1, 0, "nothing is exported before the run is known");
    for (number, pid) in [(2, 4202), (3, 4203)] {
        let number = number.to_string();
        let report = mac
            .run(&["report", "run.trace", "--run", &number, "--format", "json"])
            .json();
        assert_eq!(trial(&report)["process"]["pid"], pid);
        let xpath = mac
            .calls()
            .into_iter()
            .find(|call| call.get(4).is_some_and(|o| o == "--xpath"));
        assert!(xpath.unwrap()[5].starts_with(&format!("/trace-toc/run[@number=\"{number}\"]/data/table[")));
        mac.exports();
    }
    let all = mac
        .run(&["report", "run.trace", "--run", "all", "--format", "json"])
        .json();
    assert_eq!(all["a"]["trials"].as_array().unwrap().len(), 2);
    for command in [
        &["rows", "run.trace", "--table", "metal-gpu-intervals"][..],
        &["export", "run.trace", "-o", "out"],
    ] {
        mac.run(command).refused(&["2, 3", "--run N"]);
        mac.run(&[command, &["--run", "9"]].concat()).refused(&["2, 3"]);
        assert_eq!(mac.run(&[command, &["--run", "3"]].concat()).code, Some(0));
    }
    let report = mac.run(&["report", "out", "--format", "json"]).json();
    assert_eq!(
        (&trial(&report)["run"], &trial(&report)["process"]["pid"]),
        (&Value::from(3), &Value::from(4203))
    );
}

#[test]
fn b45_any_path_is_one_argument_and_any_schema_is_checked_first() {
    let mac = Mac::new();
    for name in [
        "tr é 試 'a\"b/My App run.trace",
        "-dash.trace",
        "$(x);`y`.trace",
        "a*?[b].trace",
    ] {
        mac.bundle(name, "recorded", &[(1, small(Engine::Hf2q, 1))]);
        let given = if name.starts_with('-') {
            format!("./{name}")
        } else {
            name.to_owned()
        };
        mac.run(&["report", &given]).done();
        for call in mac.calls().iter().filter(|call| call[1] == "export") {
            assert_eq!(call[3], given);
            assert_eq!(call.len(), if call[4] == "--toc" { 5 } else { 6 });
        }
        mac.exports();
        mac.run(&["rows", &given, "--table", "metal\"x"])
            .refused(&["metal\\\"x", "name of a table"]);
        mac.run(&["export", &given, "-o", "out", "--table", "metal\"x"])
            .refused(&["metal\"x"]);
        mac.run(&["export", &given, "-o", "out", "--table", "../x"])
            .refused(&["../x"]);
        assert_eq!(mac.exports().1, 0);
        assert!(!mac.place.path("out").exists());
    }
}

#[test]
fn a_call_for_all_tables_that_dies_becomes_one_call_per_table() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded", &[(1, small(Engine::Hf2q, 1))]);
    mac.bundle("weak.trace", "recorded-one-by-one", &[(1, small(Engine::Hf2q, 1))]);
    let good = mac.run(&["report", "run.trace", "--format", "json"]).json();
    mac.exports();
    let weak = mac.run(&["report", "weak.trace", "--format", "json"]).json();
    assert_eq!(mac.exports(), (1, 1 + Workload::SCHEMAS.len()));
    assert_eq!(nameless(weak.clone()), nameless(good));
    // The tables are in the cache, the call that dies is tried once more.
    let again = mac.run(&["report", "weak.trace", "--format", "json"]).json();
    assert_eq!(again, weak);
}

#[test]
fn b06_the_signal_comes_before_the_parse_error() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded-without-tables", &[(1, small(Engine::Hf2q, 1))]);
    for command in [
        &["report", "run.trace"][..],
        &[
            "rows",
            "run.trace",
            "--table",
            "metal-gpu-intervals",
            "--limit",
            "999999",
        ],
        &["export", "run.trace", "-o", "out"],
    ] {
        let ran = mac.run(command);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        if command[0] != "rows" {
            ran.refused(&[]);
        }
        let error = ran.stderr.lines().next().unwrap();
        let cause = error.find("signal 5 (SIGTRAP)").unwrap_or_else(|| panic!("{ran:#?}"));
        let effect = error.find("truncated").unwrap_or_else(|| panic!("{ran:#?}"));
        assert!(
            error.starts_with("error: could not export from `run.trace`") && cause < effect,
            "{error}"
        );
    }
    // No half table looks like one.
    assert!(!mac.place.path("out/metal-gpu-intervals.xml").exists());
    for left in fs::read_dir(mac.place.path("out")).unwrap() {
        assert_eq!(left.unwrap().file_name(), "toc.xml");
    }
}

#[test]
fn b15_an_unfinished_recording_costs_one_trial() {
    let mac = Mac::new();
    mac.bundle("a-1.trace", "recorded", &[(1, small(Engine::Hf2q, 1))]);
    mac.bundle("a-2.trace", "missing-template", &[(1, small(Engine::Hf2q, 2))]);
    mac.bundle("a-3.trace", "recorded", &[(1, small(Engine::Hf2q, 3))]);
    mac.bundle("b.trace", "recorded", &[(1, small(Engine::Llama, 1))]);
    let parts = [
        "Document Missing Template Error",
        "exit status 10",
        "not finished",
        "one Ctrl-C",
    ];
    for command in [
        &["report", "a-2.trace"][..],
        &["toc", "a-2.trace"],
        &["rows", "a-2.trace", "--table", "metal-gpu-intervals"],
        &["export", "a-2.trace", "-o", "out"],
    ] {
        mac.exports();
        mac.run(command).refused(&parts);
        let (contents, tables) = mac.exports();
        assert!(contents + tables <= 2, "{command:?}: {contents} and {tables} calls");
    }
    assert!(!mac.place.path("out").exists());
    let three = [
        "compare",
        "--a",
        "a-1.trace",
        "a-2.trace",
        "a-3.trace",
        "--b",
        "b.trace",
        "--tokens",
        "5",
    ];
    mac.run(&three)
        .refused(&["a-2.trace", "Document Missing Template Error"]);
    for format in ["json", "terminal", "markdown"] {
        let kept = mac.run(&[&three[..], &["--keep-going", "--format", format]].concat());
        assert_eq!(kept.code, Some(3), "{kept:#?}");
        kept.says(&["warning: a-2.trace is missing from the report"]);
        assert!(
            kept.stdout.contains("a-2.trace") && kept.stdout.contains("Missing Template"),
            "{}",
            kept.stdout
        );
        if format == "json" {
            let report = kept.any_json();
            assert_eq!(report["a"]["trials"].as_array().unwrap().len(), 2);
            assert!(note(&report, "missing_trial").contains("a-2.trace"));
        }
    }
}

#[test]
fn b21_without_xcode_the_remedy_is_named() {
    let mac = Mac::new();
    for (case, line) in [
        (
            "missing-utility",
            "unable to find utility \"xctrace\", not a developer tool or in PATH",
        ),
        ("command-line-tools", "is a command line tools instance"),
    ] {
        let name = format!("{case}.trace");
        mac.bundle(&name, case, &[(1, small(Engine::Hf2q, 1))]);
        for command in [
            &["report", &name][..],
            &["toc", &name],
            &["rows", &name, "--table", "t"],
            &["export", &name, "-o", "out"],
        ] {
            let ran = mac.run(command);
            ran.refused(&[line, "xcode-select", "/Applications/Xcode"]);
            assert!(
                !ran.stderr.contains("XML") && !ran.stderr.contains("the file is empty"),
                "{ran:#?}"
            );
        }
    }
}

#[test]
fn b43_a_hanging_export_is_ended() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded-hang", &[(1, small(Engine::Hf2q, 1))]);
    let started = Instant::now();
    mac.run(&["report", "run.trace", "--timeout", "1s"])
        .refused(&["timed out after 1 s", "--timeout"]);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(mac.exports(), (1, 1), "what hangs once is not asked again");
    let leader = fs::read_to_string(mac.place.path("bin/leader")).unwrap();
    assert_group_ends(leader.trim());
    for bad in ["0s", "5", "-1s", "NaN", ""] {
        assert_eq!(
            mac.run(&["report", "run.trace", &format!("--timeout={bad}")]).code,
            Some(2),
            "{bad}"
        );
    }
}

fn assert_group_ends(group: &str) {
    let asked = Instant::now();
    loop {
        let ps = Command::new("ps")
            .args(["-A", "-o", "pgid=,stat=,args="])
            .output()
            .unwrap();
        let ps = String::from_utf8_lossy(&ps.stdout).into_owned();
        let mut left = ps.lines().filter(|line| {
            let mut fields = line.split_whitespace();
            fields.next() == Some(group) && !fields.next().unwrap_or_default().starts_with('Z')
        });
        if left.next().is_none() {
            return;
        }
        assert!(asked.elapsed() < Duration::from_secs(5), "left behind: {ps}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_to_the_process_alone_ends_the_export() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded-hang", &[(1, small(Engine::Hf2q, 1))]);
    let child = mac
        .command(&["report", "run.trace"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The helper starts last.
    let helper = mac.place.path("bin/helper");
    let asked = Instant::now();
    while !fs::read_to_string(&helper).is_ok_and(|pid| pid.ends_with('\n')) {
        assert!(asked.elapsed() < Duration::from_secs(30), "the export did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let started = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(130), &b""[..]),
        "{output:?}"
    );
    let leader = fs::read_to_string(mac.place.path("bin/leader")).unwrap();
    assert_group_ends(leader.trim());
}

#[test]
fn b63_a_complete_export_with_a_failure_status_is_used_and_told() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded", &[(1, small(Engine::Hf2q, 1))]);
    mac.bundle("issues.trace", "recorded-run-issues", &[(1, small(Engine::Hf2q, 1))]);
    let good = mac.run(&["report", "run.trace", "--format", "json"]).json();
    let issues = mac.run(&["report", "issues.trace", "--format", "json"]).json();
    assert_eq!(trial(&issues)["total_ns"], trial(&good)["total_ns"]);
    let warning = note(&issues, "xctrace");
    assert!(
        warning.contains("54") && warning.contains("sub-instrument failed"),
        "{warning}"
    );
    for command in [
        &["rows", "issues.trace", "--table", "metal-gpu-intervals"][..],
        &["toc", "issues.trace"],
        &["export", "issues.trace", "-o", "out"],
    ] {
        let ran = mac.run(command);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.says(&["warning: ", "sub-instrument failed"]);
    }
}

#[test]
fn b18_an_exported_folder_holds_nothing_private() {
    let mac = Mac::new();
    let workload = small(Engine::Hf2q, 1);
    mac.bundle("run.trace", "recorded", &[(1, workload)]);
    let mut toc = workload.toc(Workload::SCHEMAS);
    let run = &mut toc.runs[0];
    run.device = [
        ("name", "user1's Mac"),
        ("uuid", "UUID-1"),
        ("model", "Mac"),
        ("os-version", "26.6.1 (25G76)"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .to_vec();
    if let Target::Process { attributes, .. } = &mut run.target {
        attributes.push(("environment".to_owned(), "TOKEN=SECRET123".to_owned()));
        attributes[0].1 = "--token SECRET123 --model /Users/user1/m.gguf".to_owned();
    }
    run.processes[0].1 = "/Users/user1/bin/hf2q".to_owned();
    mac.place.write("run.trace/toc.xml", toc.to_xml());
    // A path of the user's in a table, too.
    let table = "run.trace/run-1/metal-shader-profiler-shader-list.xml";
    let xml = mac
        .place
        .read(table)
        .replace("kernel_rms_norm_f32", "/Users/user1/k.metal");
    mac.place.write(table, xml);
    let secrets = ["SECRET123", "user1", "UUID-1", "m.gguf", "Example"];
    let everything = |folder: &str| -> String {
        let mut names: Vec<_> = fs::read_dir(mac.place.path(folder))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        names.sort();
        names.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    };

    let first = mac.run(&["report", "run.trace", "--format", "json"]).json();
    mac.export(&["-o", "out"]);
    let text = everything("out");
    for secret in secrets {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("/Users/user/k.metal") && text.contains("hf2q") && text.contains("25G76"));
    let again = mac.run(&["report", "out", "--format", "json"]).json();
    assert_eq!(trial(&again)["total_ns"], trial(&first)["total_ns"]);
    assert_eq!(trial(&again)["state"], trial(&first)["state"]);

    mac.export(&["-o", "all", "--show-private"]);
    let text = everything("all");
    for secret in &secrets[..4] {
        assert!(text.contains(secret), "{secret}");
    }
    for command in [
        &["toc", "run.trace"][..],
        &["toc", "run.trace", "--format", "json"],
        &["report", "run.trace"],
        &["report", "run.trace", "--format", "markdown"],
        &["report", "run.trace", "--format", "json"],
    ] {
        let ran = mac.run(command);
        for secret in secrets {
            // The kernel's own name is data of the recording.
            let text = ran.done().stdout.replace("/Users/user1/k.metal", "");
            assert!(!text.contains(secret), "{secret} in {command:?}: {text}");
        }
    }
}

#[test]
fn a_name_in_the_contents_is_escaped_again_and_never_a_path() {
    let mac = Mac::new();
    let workload = small(Engine::Hf2q, 1);
    mac.bundle("run.trace", "recorded", &[(1, workload)]);
    let name = "a&b<c>\"d'é\u{7f}";
    let toc = mac.place.read("run.trace/toc.xml");
    let written = "a&amp;b&lt;c&gt;&quot;d&apos;é\u{7f}";
    mac.place.write(
        "run.trace/toc.xml",
        toc.replace("name=\"hf2q\"", &format!("name=\"{written}\"")),
    );
    mac.export(&["-o", "out"]);
    let contents = mac.run(&["toc", "out/toc.xml", "--format", "json"]).json();
    assert_eq!(contents["runs"][0]["target"]["name"], name);

    // A schema that would be a path is no file name.
    for schema in ["../evil", "/tmp/evil", "a/b", "", "..", ".x", "a b", "toc", "TOC"] {
        let listed = toc.replace("schema=\"metal-gpu-info\"", &format!("schema=\"{schema}\""));
        mac.place.write("run.trace/toc.xml", listed);
        let ran = mac.run(&[
            "export",
            "run.trace",
            "-o",
            "deep/er/out",
            "--no-cache",
            "--table",
            schema,
        ]);
        assert_eq!(ran.code, Some(2), "{schema}: {ran:#?}");
        assert!(!mac.place.path("deep/er/evil.xml").exists());
        let contents = mac.place.path("deep/er/out/toc.xml");
        assert!(!contents.exists() || fs::read_to_string(&contents).unwrap().contains("<trace-toc>"));
        for file in fs::read_dir(mac.place.path("deep/er/out")).into_iter().flatten() {
            let file = file.unwrap().file_name().into_string().unwrap();
            assert!(
                file == "toc.xml" || Workload::SCHEMAS.iter().any(|schema| file == format!("{schema}.xml")),
                "{file}"
            );
        }
    }
}

#[test]
fn rows_of_a_bundle_are_those_of_its_table() {
    let mac = Mac::new();
    mac.bundle("run.trace", "recorded", &[(1, small(Engine::Hf2q, 1))]);
    for schema in Workload::SCHEMAS {
        let file = format!("run.trace/run-1/{schema}.xml");
        let from_file = mac.run(&["rows", &file]).done().stdout.clone();
        let from_bundle = mac.run(&["rows", "run.trace", "--table", schema]).done().stdout.clone();
        assert_eq!(from_bundle, from_file, "{schema}");
    }
    mac.run(&["rows", "run.trace"])
        .refused(&["--table", "metal-gpu-intervals"]);
    mac.run(&["rows", "run.trace", "--table", "no-such"])
        .refused(&["no table `no-such`", "metal-gpu-intervals"]);
    let few = mac.run(&["rows", "run.trace", "--table", "metal-gpu-intervals", "--limit", "2"]);
    assert_eq!(few.done().stdout.lines().count(), 3);
}

#[test]
fn signposts_are_exported_for_a_window_and_not_without_one() {
    let mac = Mac::new();
    mac.place.write("run.trace/case", "recorded");
    let copy = |from: &str, to: &str| {
        let bytes = fs::read(here("fixtures/good/signposts").join(from)).unwrap();
        mac.place.write(&format!("run.trace/{to}"), bytes);
    };
    copy("toc.xml", "toc.xml");
    for table in ["metal-gpu-intervals.xml", "os-signpost.xml"] {
        copy(table, &format!("run-1/{table}"));
    }
    let asked = |options: &[&str]| {
        let ran = mac.run(&[&["report", "run.trace", "--format", "json"], options].concat());
        let signposts = mac
            .calls()
            .iter()
            .flatten()
            .any(|argument| argument.contains("os-signpost"));
        mac.exports();
        (trial(&ran.done().json())["submissions"].clone(), signposts)
    };
    assert_eq!(asked(&[]), (8.into(), false));
    // What the cache has of this recording is another set of tables.
    assert_eq!(asked(&["--window", "signpost:prefill"]), (2.into(), true));
    assert_eq!(asked(&["--window", "signpost:decode"]), (4.into(), false));
    assert_eq!(asked(&[]), (8.into(), false));
}
