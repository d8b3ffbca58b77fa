//! Faults that people met in tools that read exports of Instruments, compare traces or gate benchmarks: none of them
//! here. One test per fault, named for its number in the project's fault log, on the real binary; each also tries the
//! obvious variants, not only the one example. Faults of bundles and of xctrace itself are in `bundles.rs`, memory in
//! `memory.rs`.
//!
//! The log calls the older side A; here A is what you work on, so its A goes to `--b`.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use command::{Place, keys, note, notes, row, trial, used};
use serde_json::{Value, json};
use support::pack;
use support::short::{NULL, ShortRow, cell, doc, document, intervals, node, process, r, schema, toc};
use unicode_width::UnicodeWidthStr;

/// Formats of `report` and `compare`.
const FORMATS: [&str; 9] = [
    "terminal",
    "markdown",
    "json",
    "csv",
    "junit",
    "github",
    "benchstat",
    "github-action-benchmark",
    "bencher",
];

/// The report of one short table.
#[track_caller]
fn reported(rows: &[ShortRow]) -> Value {
    Place::with(doc(rows)).report(&[])
}

/// A comparison of trials of rows.
fn sides(a: &[&[ShortRow]], b: &[&[ShortRow]]) -> (Place, Vec<String>) {
    let place = Place::new();
    let mut arguments = vec!["compare".to_owned()];
    for (side, trials) in [("a", a), ("b", b)] {
        arguments.push(format!("--{side}"));
        for (at, rows) in trials.iter().enumerate() {
            let name = format!("{side}{at}.xml");
            place.write(&name, doc(rows));
            arguments.push(name);
        }
    }
    (place, arguments)
}

#[track_caller]
fn compare(a: &[&[ShortRow]], b: &[&[ShortRow]]) -> Value {
    let (place, arguments) = sides(a, b);
    let text = place.run(arguments.iter().map(String::as_str).chain(["--format", "json"]));
    text.json()
}

/// The rows of a table, as `rows` prints them.
#[track_caller]
fn rows(xml: &str, options: &[&str]) -> Vec<Value> {
    let arguments = ["rows", "in.xml", "--format", "jsonl"];
    Place::with(xml).run([&arguments, options].concat()).lines()
}

fn close(value: &Value, expected: f64) {
    let found = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!(
        (found - expected).abs() < 1e-6 * expected.abs().max(1.0),
        "{found} is not {expected}"
    );
}

// ---------------------------------------------------------------------------------------------- parse

#[test]
fn b08_ids_restart_in_each_node() {
    let ten = "<duration id=\"2\" fmt=\"10.00 µs\">10000</duration>";
    let small = "<duration id=\"2\" fmt=\"300 ns\">300</duration>";
    let again = "<duration ref=\"2\"/>";
    let first = node(&[r(0, ten).encoder(1), r(20_000, again).encoder(2)]);
    let second = node(&[r(100_000, small).encoder(3), r(200_000, again).encoder(4)]);
    let both = document(&format!("{first}\n{second}"));

    let place = Place::with(&both);
    let report = place.report(&[]);
    assert_eq!(trial(&report)["rows_read"], 4);
    assert_eq!(trial(&report)["submissions"], 4);
    assert_eq!(trial(&report)["total_ns"], 20_600);
    assert!(note(&report, "merged_nodes").contains("metal-gpu-intervals"));
    let text = place.run(["report", "in.xml"]);
    assert!(
        text.done().stdout.contains("several instances of metal-gpu-intervals"),
        "{}",
        text.stdout
    );
    assert!(place.run(["toc", "in.xml"]).done().stdout.contains("in 2 nodes"));
    let durations: Vec<u64> = rows(&both, &[])
        .iter()
        .map(|row| row["duration"].as_u64().unwrap())
        .collect();
    assert_eq!(durations, [10_000, 10_000, 300, 300]);

    // One numbering for the document, no schema in the second node, ids of a table that nobody reads.
    let bare = second.replace(&intervals(), "").replace(small, again);
    let carried = document(&format!("{first}{bare}"));
    assert_eq!(trial(&Place::with(&carried).report(&[]))["total_ns"], 40_000);
    let other = format!(
        "<node>{}<row><duration id=\"2\" fmt=\"x\">77</duration></row></node>",
        schema("tick", &[("time", "duration")])
    );
    let between = document(&format!("{first}{other}{second}"));
    assert_eq!(trial(&Place::with(&between).report(&[]))["total_ns"], 20_600);
    let before = document(&format!("{other}{}", node(&[r(0, again)])));
    assert_eq!(trial(&Place::with(&before).report(&[]))["total_ns"], 77);

    // The same schema in two files is two exports of the same thing, and refused.
    place.write("folder/a.xml", document(&first));
    place.write("folder/b.xml", document(&second));
    place
        .run(["report", "folder"])
        .refused(&["metal-gpu-intervals", "two files", "a.xml", "b.xml"]);
}

#[test]
fn b10_a_null_cell_keeps_its_place() {
    let xml = doc(&[
        r(1_000, 10_000).latency(NULL).encoder(1),
        r(50_000, NULL).latency(5_000).encoder(2),
        r(NULL, 700).latency(5).encoder(3),
    ]);
    let table = rows(&xml, &["--columns", "start,duration,start-latency"]);
    let expected = [
        json!({"start": 1000, "duration": 10_000, "start-latency": null}),
        json!({"start": 50_000, "duration": null, "start-latency": 5000}),
        json!({"start": null, "duration": 700, "start-latency": 5}),
    ];
    assert_eq!(table, expected);
    let report = Place::with(&xml).report(&[]);
    let one = trial(&report);
    assert_eq!(one["submissions"], 1);
    assert_eq!(one["total_ns"], 10_000);
    assert_eq!(one["left_out"]["invalid"]["rows"], 2);
    assert_eq!(one["first_start_ns"], 1_000);
    assert_eq!(one["window_ns"], 10_000);
    assert_eq!(report["total"]["a"]["latency_us"], Value::Null);

    // NULL in each column in turn: all others keep their values.
    let full = rows(&doc(&[r(1_000, 10_000).latency(5)]), &[]).remove(0);
    for (column, _) in support::short::COLUMNS {
        let holed = rows(&doc(&[r(1_000, 10_000).latency(5).with(column, NULL)]), &[]).remove(0);
        let mut expected = full.clone();
        expected[column] = Value::Null;
        assert_eq!(holed, expected, "{column}");
    }

    // Other ways to say that there is no value; an empty number is none of them.
    for none in [u64::MAX, (1 << 50) - 1] {
        for column in ["start", "duration"] {
            let report = reported(&[r(1_000, 10_000), r(50_000, 700).with(column, none)]);
            assert_eq!(trial(&report)["total_ns"], 10_000, "{column} {none}");
            assert_eq!(trial(&report)["left_out"]["invalid"]["rows"], 1, "{column} {none}");
        }
        let report = reported(&[r(1_000, 10_000).latency(none)]);
        assert_eq!(report["total"]["a"]["latency_us"], Value::Null, "{none}");
    }
    let empty = "<duration id=\"9\" fmt=\"\"></duration>";
    Place::with(doc(&[r(1_000, 10_000), r(50_000, empty)]))
        .run(["report", "in.xml"])
        .refused(&["row 2", "`duration` expects a whole number"]);
}

const TWO_RUNS: &str = r#"<trace-toc><run number="2"><info><target><process name="bench" pid="77"/></target></info><data><table schema="metal-gpu-intervals"/></data></run><run number="3"><info><target><process pid="91" name="bench"/></target></info><data><table schema="metal-gpu-intervals"/></data></run></trace-toc>"#;

#[test]
fn b28_a_recording_with_several_runs() {
    let place = Place::with(TWO_RUNS);
    let contents = place.run(["toc", "in.xml", "--format", "json"]).json();
    let runs: Vec<(u64, u64)> = contents["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["number"].as_u64().unwrap(), run["target"]["pid"].as_u64().unwrap()))
        .collect();
    assert_eq!(runs, [(2, 77), (3, 91)]);

    // `run[n]` is a place, `run[@number="n"]` a number; both runs in one file and in two.
    let in_run = |path: &str, pid: u64, duration: u64| {
        node(&[r(0, duration).process("bench", pid)]).replace("xpath=\"x\"", &format!("xpath='{path}'"))
    };
    let by_place = [
        in_run("//trace-toc[1]/run[1]/data[1]/table[9]", 77, 100),
        in_run("//trace-toc[1]/run[2]/data[1]/table[9]", 91, 300),
    ];
    let by_number = [
        in_run("/trace-toc/run[@number=\"2\"]/data/table[1]", 77, 100),
        in_run("/trace-toc/run[@number=\"3\"]/data/table[1]", 91, 300),
    ];
    for (name, nodes) in [("place", by_place), ("number", by_number)] {
        place.write(&format!("{name}/toc.xml"), TWO_RUNS);
        place.write(&format!("{name}/intervals.xml"), document(&nodes.concat()));
        place
            .run(["report", name])
            .refused(&["several runs", "2 (bench (77))", "3 (bench (91))", "--run"]);
        place
            .run(["report", name, "--run", "1"])
            .refused(&["no run 1", "2 (", "3 ("]);
        for (run, total) in [("2", 100), ("3", 300)] {
            let report = place.run(["report", name, "--run", run, "--format", "json"]).json();
            assert_eq!(trial(&report)["total_ns"], total, "{name}");
            assert_eq!(trial(&report)["run"].to_string(), run);
        }
        let all = place.run(["report", name, "--run", "all", "--format", "json"]).json();
        let totals: Vec<&Value> = all["a"]["trials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| &t["total_ns"])
            .collect();
        assert_eq!(totals, [100, 300]);
        // Rows are streamed: those before the second run may stand there, but not as a success.
        let rows = place.run(["rows", name, "--table", "metal-gpu-intervals"]);
        assert_eq!(rows.code, Some(2), "{rows:#?}");
        rows.says(&["several runs", "--run"]);
        for (run, duration) in [("2", "100"), ("3", "300")] {
            let one = place.run(["rows", name, "--columns", "duration", "--run", run]);
            assert_eq!(one.done().stdout, format!("duration\n{duration}\n"), "{name}");
        }
    }
    for bad in ["0x2", "-1", "", "two", "2,3"] {
        assert_eq!(
            place.run(["report", "place", &format!("--run={bad}")]).code,
            Some(2),
            "{bad}"
        );
    }
}

#[test]
fn b31_three_kinds_of_empty() {
    let husk = Place::with(doc(&[]));
    husk.run(["report", "in.xml"])
        .refused(&["table `metal-gpu-intervals` has 0 rows"]);
    let other = Place::with(doc(&[r(0, 100)]).replace("metal-gpu-intervals", "metal-driver-intervals"));
    other
        .run(["report", "in.xml"])
        .refused(&["metal-gpu-intervals", "has: metal-driver-intervals"]);
    let foreign = Place::with(doc(&[r(0, 100).process("other", 5)]));
    foreign
        .run(["report", "in.xml", "--process", "bench"])
        .refused(&["0 of 1 rows", "other (5)"]);
    foreign
        .run(["report", "in.xml", "--process", "77"])
        .refused(&["0 of 1 rows", "pid 77", "other (5)"]);
    foreign
        .run(["report", "in.xml", "--process", "b*"])
        .refused(&["0 of 1 rows", "other (5)"]);

    // Nothing matched at all, no usable row, nothing in the window.
    for nothing in ["<trace-query-result></trace-query-result>", "<trace-query-result/>"] {
        Place::with(nothing)
            .run(["report", "in.xml"])
            .refused(&["holds no table", "--xpath"]);
    }
    Place::with(doc(&[r(NULL, 100), r(5, NULL)]))
        .run(["report", "in.xml", "--process", "all"])
        .refused(&["2 invalid"]);
    foreign
        .run(["report", "in.xml", "--from", "1s"])
        .refused(&["inside the window", "other (5)"]);
    // An empty table beside a good one, and an empty one on one side only.
    let (place, _) = sides(&[&[r(0, 100)]], &[&[]]);
    place
        .run(["compare", "--a", "a0.xml", "--b", "b0.xml"])
        .refused(&["b0.xml", "has 0 rows"]);
}

#[test]
fn b32_byte_order_marks_and_utf16() {
    let xml = doc(&[r(1_000, 10_000)]);
    let crlf = xml
        .replace("?>", " encoding=\"UTF-16\"?>\r\n")
        .replace("<row>", "\r\n<row>");
    let units = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(bytes).collect() };
    let forms: Vec<(&str, Vec<u8>)> = vec![
        ("UTF-8 with mark", [b"\xef\xbb\xbf", xml.as_bytes()].concat()),
        (
            "UTF-16LE",
            [b"\xff\xfe".to_vec(), units(&crlf, u16::to_le_bytes)].concat(),
        ),
        (
            "UTF-16BE",
            [b"\xfe\xff".to_vec(), units(&crlf, u16::to_be_bytes)].concat(),
        ),
        ("UTF-16LE without mark", units(&crlf, u16::to_le_bytes)),
        ("UTF-16BE without mark", units(&crlf, u16::to_be_bytes)),
        ("leading lines", format!("\r\n\n  {}", &xml[21..]).into_bytes()),
    ];
    for (name, bytes) in forms {
        for packed in [bytes.clone(), pack::gzip(&bytes), pack::zstd(&bytes)] {
            let report = Place::with(&packed).report(&[]);
            assert_eq!(trial(&report)["submissions"], 1, "{name}");
            assert_eq!(trial(&report)["total_ns"], 10_000, "{name}");
            assert_eq!(keys(&report, "phases"), ["k"], "{name}");
        }
        let piped = Place::new().pipe(&bytes, ["report", "-", "--format", "json"]);
        assert_eq!(trial(&piped.json())["total_ns"], 10_000, "{name}");
    }
    // What is no text in any of these is an error, never an empty result.
    let mut utf32 = vec![0xff, 0xfe, 0, 0];
    utf32.extend(xml.chars().flat_map(|c| u32::from(c).to_le_bytes()));
    let half = {
        let mut bytes = [b"\xff\xfe".to_vec(), units(&crlf, u16::to_le_bytes)].concat();
        bytes.pop();
        bytes
    };
    let latin = doc(&[r(0, 1).label("caf\u{1}")])
        .replace('\u{1}', "\u{fffd}")
        .into_bytes();
    let at = latin
        .windows(3)
        .position(|bytes| bytes == "\u{fffd}".as_bytes())
        .unwrap();
    let latin = [&latin[..at], &[0xe9], &latin[at + 3..]].concat();
    for bytes in [utf32, half, latin] {
        Place::with(&bytes).run(["report", "in.xml"]).refused(&["in.xml"]);
    }
}

#[test]
fn b34_stacks_by_any_name_with_frames_and_binaries_in_one_numbering() {
    let document_with = |stack: &str, weight: &str, wrapped: bool| {
        let columns = [("time", "sample-time"), ("weight", weight), ("stack", stack)];
        let (open, close) = if wrapped {
            ("<backtrace>", "</backtrace>")
        } else {
            ("", "")
        };
        document(&format!(
            "<node>{}\
            <row><sample-time id=\"1\" fmt=\"a\">100</sample-time><{weight} id=\"2\" fmt=\"1.00 ms\">1000000</{weight}><{stack} id=\"3\" fmt=\"main\">{open}<frame id=\"4\" name=\"main\" addr=\"0x1000\"><binary id=\"5\" name=\"bench\" path=\"/opt/bench\"/></frame>{close}</{stack}></row>\
            <row><sample-time id=\"6\" fmt=\"b\">200</sample-time><{weight} ref=\"2\"/><{stack} id=\"7\" fmt=\"step\">{open}<frame id=\"8\" name=\"step\" addr=\"0x2000\"><binary ref=\"5\"/></frame><frame ref=\"4\"/>{close}</{stack}></row></node>",
            schema("time-profile", &columns)
        ))
    };
    for (stack, weight, wrapped) in [
        ("tagged-backtrace", "weight", false),
        ("tagged-backtrace", "weight", true),
        ("backtrace", "cycle-weight", false),
        ("text-backtrace", "weight", false),
    ] {
        let xml = document_with(stack, weight, wrapped);
        let samples = rows(&xml, &["--table", "time-profile"]);
        let weights: Vec<u64> = samples.iter().map(|row| row["weight"].as_u64().unwrap()).collect();
        assert_eq!(weights, [1_000_000, 1_000_000], "{stack}");
        let frames: Vec<(&str, &str)> = samples[1]["stack"]
            .as_array()
            .unwrap_or_else(|| panic!("{stack}: {}", samples[1]))
            .iter()
            .map(|frame| {
                (
                    frame["name"].as_str().unwrap(),
                    frame["binary"]["name"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(frames, [("step", "bench"), ("main", "bench")], "{stack}");
        let csv = Place::with(&xml).run(["rows", "in.xml", "--columns", "stack"]);
        assert_eq!(csv.done().stdout, "stack\nmain\nstep;main\n", "{stack}");
    }
    // A tag that is not the column's type is no reason to read nothing.
    let renamed = document_with("tagged-backtrace", "weight", false)
        .replace("<tagged-backtrace", "<backtrace")
        .replace("</tagged-backtrace", "</backtrace");
    Place::with(&renamed)
        .run(["rows", "in.xml", "--format", "jsonl"])
        .refused(&["time-profile", "row 1", "`stack`", "tagged-backtrace", "<backtrace>"]);
}

#[test]
fn b42_entities_in_labels() {
    let label = "vec&lt;f32, 4&gt; &amp;&amp; &#x3C0; &quot;x&quot;";
    let decoded = "vec<f32, 4> && π \"x\"";
    let place = Place::with(doc(&[r(0, 100).label(label)]));
    assert_eq!(keys(&place.report(&[]), "phases"), [decoded]);
    assert_eq!(rows(&doc(&[r(0, 100).label(label)]), &[])[0]["event-label"], decoded);
    let markdown = place.run(["report", "in.xml", "--format", "markdown"]);
    assert!(!markdown.done().stdout.contains("<f32"), "{}", markdown.stdout);
    for (written, read) in [
        ("a&#960;b", "aπb"),
        ("&apos;q&apos;", "'q'"),
        ("&amp;lt;", "&lt;"),
        ("x &gt;= y", "x >= y"),
        ("&#x1F680;", "🚀"),
    ] {
        assert_eq!(keys(&reported(&[r(0, 100).label(written)]), "phases"), [read]);
    }
    let data = "<formatted-label fmt=\"x\"><![CDATA[a<b & c]]></formatted-label>";
    assert_eq!(keys(&reported(&[r(0, 100).label(data)]), "phases"), ["a<b & c"]);
    // Written back unescaped, an unknown entity, no such character: an error with its place.
    for bad in [
        "vec<f32>",
        "a & b",
        "&nope;",
        "&#0;",
        "&#xD800;",
        "&#x110000;",
        "&#;",
        "&amp",
    ] {
        let text = doc(&[r(0, 100).label(format!("<formatted-label>{bad}</formatted-label>").as_str())]);
        Place::with(&text)
            .run(["report", "in.xml"])
            .refused(&["table `metal-gpu-intervals`, row 1"]);
    }
}

#[test]
fn b57_pretty_printed_with_crlf_or_stray_text() {
    let compact = doc(&[r(1_000, 10_000), r(20_000, 2_500)]);
    let spread = |xml: &str, line: &str| {
        let mut out = String::new();
        for part in xml.split_inclusive('>') {
            match part.find('<') {
                Some(0) | None => out.push_str(part),
                Some(at) => {
                    out.push_str(line);
                    out.push_str(&part[..at]);
                    out.push_str(line);
                    out.push_str(&part[at..]);
                }
            }
            out.push_str(line);
        }
        out
    };
    let stray = compact
        .replace("</mnemonic>", "</mnemonic>stray")
        .replace("</col>", "</col>stray")
        .replace("</schema>", "</schema>stray")
        .replace("</row>", "</row>stray")
        .replace("</pid>", "</pid>stray");
    let commented = compact
        .replace("<row>", "<!-- a comment --><row><?pi x?>")
        .replace("10000</", "10<!-- inside -->000</");
    for format in FORMATS {
        let expected = Place::with(&compact).run(["report", "in.xml", "--format", format]);
        expected.done();
        for (name, form) in [
            ("pretty", spread(&compact, "\r\n   ")),
            ("tabs", spread(&compact, "\n\t")),
            ("stray", stray.clone()),
            ("stray and pretty", spread(&stray, "\r\n")),
            ("comments", commented.clone()),
        ] {
            let found = Place::with(&form).run(["report", "in.xml", "--format", format]);
            assert_eq!(found.done().stdout, expected.stdout, "{name} {format}");
        }
    }
    let report = Place::with(&compact).report(&[]);
    assert_eq!(
        (&trial(&report)["submissions"], &trial(&report)["total_ns"]),
        (&json!(2), &json!(12_500))
    );
}

// ---------------------------------------------------------------------------------------------- join

#[test]
fn b02_nested_and_coalesced_rows() {
    let blur = || r(0, 1_000).label("blur").encoder(1);
    let repeated = || r(200, 800).depth(1).label("blur").encoder(1);
    let tone = || {
        r(5_000, 900)
            .label("tone      ( bench (77) )  Coelasced 4 Encoders")
            .encoder(9)
    };
    // In any order of rows.
    for rows in [[blur(), repeated(), tone()], [repeated(), tone(), blur()]] {
        let report = reported(&rows);
        assert_eq!(row(&report, "phases", "blur")["a"]["trials"][0]["total_ns"], 1_000);
        assert_eq!(row(&report, "phases", "blur")["a"]["encoders"], 1);
        assert_eq!(row(&report, "phases", "tone")["a"]["trials"][0]["total_ns"], 900);
        assert_eq!(row(&report, "phases", "tone")["flags"], json!(["coalesced"]));
        assert_eq!(trial(&report)["busy_ns"], 1_900);
        assert_eq!(trial(&report)["total_ns"], 1_900);
        assert_eq!(
            trial(&report)["left_out"]["nested"],
            json!({"rows": 1, "total_ns": 800})
        );
    }
    // What is no repetition counts, whatever its depth.
    for (other, total) in [
        (repeated().encoder(2), 1_800),
        (repeated().channel("Fragment"), 1_800),
        (repeated().process("other", 5), 1_000),
        (repeated().with("duration", 801), 1_801),
        (repeated().depth(0), 1_800),
        (repeated().encoder(NULL), 1_800),
        (repeated().depth(3), 1_000),
        (blur().depth(1), 1_000),
    ] {
        let found = Place::with(doc(&[blur(), other.clone()])).report(&["--process", "bench"]);
        assert_eq!(trial(&found)["total_ns"], total, "{other:?}");
    }
    // Three levels; the middle one sticks out.
    let rows = [
        blur(),
        r(500, 800).depth(1).label("blur").encoder(1),
        r(600, 700).depth(2).label("blur").encoder(1),
    ];
    assert_eq!(trial(&reported(&rows))["total_ns"], 1_800);
}

const ENCODER_COLUMNS: [(&str, &str); 7] = [
    ("start", "start-time"),
    ("duration", "duration"),
    ("process", "process"),
    ("cmdbuffer-label", "metal-object-label"),
    ("encoder-label", "metal-object-label"),
    ("cmdbuffer-id", "metal-command-buffer-id"),
    ("encoder-id", "metal-command-buffer-id"),
];

fn encoders(rows: &[(u64, u64, &str)]) -> String {
    let rows: String = rows
        .iter()
        .map(|(encoder, buffer, phase)| {
            let cells = [
                cell("start-time", 0),
                cell("duration", 7),
                process("bench", 77),
                cell("metal-object-label", *phase),
                cell("metal-object-label", "Compute Command 0"),
                cell("metal-command-buffer-id", *buffer),
                cell("metal-command-buffer-id", *encoder),
            ];
            format!("<row>{}</row>", cells.concat())
        })
        .collect();
    let schema = schema("metal-application-encoders-list", &ENCODER_COLUMNS);
    format!("<node>{schema}{rows}</node>")
}

#[test]
fn b13_encoders_and_gpu_rows_that_do_not_match() {
    let gpu = node(&[
        r(0, 1_000).buffer(10).encoder(1),
        r(2_000, 700).buffer(11).encoder(3),
        r(5_000, 50).buffer(99).encoder(9),
    ]);
    // The same label twice is one label.
    let list = [(1, 10, "p"), (2, 10, "p"), (3, 11, "q"), (3, 11, "q")];
    let report = Place::with(document(&(encoders(&list) + &gpu))).report(&[]);
    let total = |key: &str| row(&report, "phases", key)["a"]["trials"][0]["total_ns"].clone();
    assert_eq!(
        (total("p"), total("q"), total("(unknown)")),
        (json!(1_000), json!(700), json!(50))
    );
    assert_eq!(row(&report, "phases", "p")["flags"], json!(["incomplete"]));
    assert_eq!(row(&report, "phases", "q")["flags"], json!([]));
    assert_eq!(trial(&report)["total_ns"], 1_750);
    assert_eq!(trial(&report)["encoders"], json!({"all": 3, "labelled": 3}));
    // CPU encoding time is never GPU time; it is that of the encoders that ran.
    assert_eq!(row(&report, "phases", "p")["a"]["cpu_encode_us"], 0.007);

    // Two labels for one id, or the id of another command buffer: nobody can say which, and it is told.
    for (third, code) in [
        ((3, 11, "other"), "ambiguous"),
        ((3, 12, "q"), "command_buffer_differs"),
    ] {
        let list = match code {
            "ambiguous" => vec![(1, 10, "p"), (3, 11, "q"), third],
            _ => vec![(1, 10, "p"), third],
        };
        let report = Place::with(document(&(gpu.clone() + &encoders(&list)))).report(&[]);
        assert!(note(&report, code).contains("1 "), "{}", note(&report, code));
        let sum: u64 = report["phases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["a"]["trials"][0]["total_ns"].as_u64().unwrap())
            .sum();
        assert_eq!(sum, 1_750);
        assert!(!keys(&report, "phases").contains(&"q".to_owned()));
        assert!(!keys(&report, "phases").contains(&"other".to_owned()));
    }
    // The list alone has CPU times only.
    Place::with(document(&encoders(&list)))
        .run(["report", "in.xml"])
        .refused(&["metal-application-encoders-list", "CPU"]);
}

#[test]
fn b23_nothing_is_joined_across_two_traces() {
    let a = [r(0, 5).buffer(7).encoder(7)];
    let b = [r(1_000, 10).buffer(7).encoder(7)];
    let report = compare(&[&a], &[&b]);
    for (side, span) in [("a", 5), ("b", 10)] {
        assert_eq!(report[side]["trials"][0]["window_ns"], span);
        assert_eq!(report[side]["trials"][0]["busy_ns"], span);
    }
    close(&row(&report, "phases", "k")["delta_pct"], -50.0);
    // 1010 is where the second trace and its window end, and nothing else.
    let ends = ["\"last_end_ns\":1010", "\"to_ns\":1010"];
    let without = ends.iter().fold(report.to_string(), |text, end| text.replace(end, ""));
    assert!(!without.contains("1010"), "{report}");
    assert_eq!(report["gaps"]["longest"]["a"], json!([]));
    assert_eq!(report["gaps"]["longest"]["b"], json!([]));
    // Two trials of one side are two recordings as well.
    let report = compare(&[&a, &b], &[&b]);
    assert_eq!(report["a"]["trials"][0]["window_ns"], 5);
    assert_eq!(report["a"]["trials"][1]["window_ns"], 10);
    assert_eq!(report["gaps"]["longest"]["a"], json!([]));
}

#[test]
fn b49_decorations_of_labels_are_no_part_of_the_key() {
    let side = |pid: u64, tail: &str| {
        [
            r(0, 100).process("bench", pid).label(tail),
            r(500, 40).process("bench", pid).label("Compute Command 0"),
        ]
    };
    let b = side(77, "Command Buffer 0:attn.qkv      ( bench (77) )  0x154d189050");
    for tail in [
        "Command Buffer 0:attn.qkv      ( bench (91) )  0x9b02",
        "Command Buffer 3:attn.qkv ( bench (91) )",
        "Command Buffer 0:attn.qkv",
        "attn.qkv",
        "Command Buffer 0:attn.7.qkv",
        "Command Buffer 0:[3] attn.qkv",
        "<formatted-label fmt=\"what it shows (bench (91))\"><string fmt=\"\">Command Buffer 0:attn.qkv</string><narrative-text fmt=\"\"> (</narrative-text><process fmt=\"bench (91)\"><pid fmt=\"91\">91</pid></process></formatted-label>",
    ] {
        let report = compare(&[&side(91, tail)], &[&b]);
        let mut phases = keys(&report, "phases");
        phases.sort();
        assert_eq!(phases, ["(unlabelled)", "attn.qkv"], "{tail}");
        for row in report["phases"].as_array().unwrap() {
            assert_eq!(row["delta_pct"], 0, "{tail}");
            assert!(!row["a"].is_null() && !row["b"].is_null());
        }
    }
}

#[test]
fn b54_other_processes_and_rows_without_one() {
    let mut rows = Vec::new();
    for at in 0..9_u64 {
        let start = at * 10_000;
        rows.push(match at {
            0..4 => r(start, 100),
            4..7 => r(start, 1_000).process("WindowServer", 150),
            _ => r(start, 50).with("process", NULL),
        });
    }
    let place = Place::with(doc(&rows));
    let report = place.report(&[]);
    let one = trial(&report);
    assert_eq!((&one["submissions"], &one["total_ns"]), (&json!(4), &json!(400)));
    assert_eq!(one["left_out"]["other_process"], json!({"rows": 3, "total_ns": 3_000}));
    assert_eq!(one["left_out"]["no_process"], json!({"rows": 2, "total_ns": 100}));
    assert_eq!(one["rows_read"], 9);
    let text = place.run(["report", "in.xml"]);
    assert!(
        text.done().stdout.contains("no_process") || text.stdout.contains("no process"),
        "{}",
        text.stdout
    );
    let all = place.report(&["--process", "all"]);
    assert_eq!(
        (&trial(&all)["submissions"], &trial(&all)["total_ns"]),
        (&json!(9), &json!(3_500))
    );
    let server = place.report(&["--process", "WindowServer"]);
    assert_eq!(trial(&server)["total_ns"], 3_000);
    assert_eq!(
        trial(&server)["left_out"]["other_process"],
        json!({"rows": 4, "total_ns": 400})
    );
    // The target in the table of contents decides, also when it is the window server's neighbour with less work.
    let target = Place::new();
    target.write("folder/toc.xml", toc("<process name=\"WindowServer\" pid=\"150\"/>"));
    target.write("folder/intervals.xml", doc(&rows));
    let report = target.run(["report", "folder", "--format", "json"]).json();
    assert_eq!(trial(&report)["total_ns"], 3_000);
    // Nothing of the target: its helper did the work.
    target.write("folder/toc.xml", toc("<process name=\"launcher\" pid=\"7\"/>"));
    target.run(["report", "folder"]).refused(&[
        "launcher (7)",
        "bench (77): 4 rows, 400 ns",
        "WindowServer (150)",
        "--process bench",
    ]);
}

#[test]
fn b55_processes_are_chosen_exactly() {
    let rows = [
        r(0, 1_000),
        r(2_000, 5_000).process("bench-helper", 78),
        r(9_000, 3_000).process("bench", 79),
    ];
    let place = Place::with(doc(&rows));
    let refused = place.run(["report", "in.xml", "--process", "bench"]);
    refused.refused(&["bench (77)", "bench (79)"]);
    assert!(!refused.stderr.contains("78"), "{}", refused.stderr);
    assert_eq!(trial(&place.report(&["--process", "77"]))["total_ns"], 1_000);
    assert_eq!(trial(&place.report(&["--process", "bench-helper"]))["total_ns"], 5_000);
    for (glob, total) in [("bench*", 9_000), ("[b]ench", 4_000), ("*helper", 5_000)] {
        let report = place.report(&["--process", glob]);
        assert_eq!(trial(&report)["total_ns"], total, "{glob}");
        assert_eq!(notes(&report).contains(&"several_processes".to_owned()), total != 5_000);
    }
    // What the messages call it is as exact as its pid.
    assert_eq!(trial(&place.report(&["--process", "bench (77)"]))["total_ns"], 1_000);
    for none in ["benc", "Bench", "ench", "7", "bench ", "helper", "bench (78)", "["] {
        place.run(["report", "in.xml", "--process", none]).refused(&[]);
    }
    place
        .run(["report", "in.xml"])
        .refused(&["bench (77)", "bench-helper (78)", "bench (79)", "--process"]);
    // One pid under two names is one process.
    let renamed = Place::with(doc(&[r(0, 1_000), r(2_000, 500).process("benchd", 77)]));
    let report = renamed.report(&[]);
    assert_eq!(trial(&report)["total_ns"], 1_500);
    assert!(note(&report, "renamed_process").contains("benchd"));
}

// ---------------------------------------------------------------------------------------------- numbers

/// One-label trials of the given durations (ns), one submission after the other.
fn trials(durations: &[u64]) -> Vec<Vec<ShortRow>> {
    durations
        .iter()
        .enumerate()
        // Distinct starts: the same bytes twice on one side would be the same recording.
        .map(|(at, duration)| vec![r(10 + at as u64, *duration)])
        .collect()
}

fn compare_trials(a: &[u64], b: &[u64]) -> Value {
    let (a, b) = (trials(a), trials(b));
    let a: Vec<&[ShortRow]> = a.iter().map(Vec::as_slice).collect();
    let b: Vec<&[ShortRow]> = b.iter().map(Vec::as_slice).collect();
    compare(&a, &b)
}

#[test]
fn b12_sides_that_did_a_different_amount_of_work() {
    let many = |count: u64| -> Vec<ShortRow> { (0..count).map(|at| r(at * 200, 100).encoder(at + 1)).collect() };
    let (new, old) = (many(250), many(400));
    let report = compare(&[&new], &[&old]);
    close(&report["total"]["delta_pct"], -37.5);
    close(&report["total"]["per_submission_pct"], 0.0);
    close(&report["total"]["count_pct"], -37.5);
    let reasons = report["incomparable"].to_string();
    assert!(
        reasons.contains("unequal_work") && reasons.contains("250") && reasons.contains("400"),
        "{reasons}"
    );
    let (place, arguments) = sides(&[&new], &[&old]);
    for format in ["terminal", "markdown"] {
        let text = place.run(arguments.iter().map(String::as_str).chain(["--format", format]));
        assert!(
            text.done().stdout.contains("250") && text.stdout.contains("400"),
            "{}",
            text.stdout
        );
        assert!(!text.stdout.contains("faster"), "{}", text.stdout);
    }
    // With units the counts per unit are the same work.
    let per_unit = place
        .run(
            arguments
                .iter()
                .map(String::as_str)
                .chain(["--format", "json", "--tokens-a", "250", "--tokens-b", "400"]),
        )
        .json();
    close(&per_unit["total"]["delta_pct"], 0.0);
    assert_eq!(per_unit["incomparable"], json!([]));
}

/// Every row of every table, with `busy` and `total`.
fn all_rows(report: &Value) -> Vec<&Value> {
    let tables = ["buckets", "encoders", "phases", "channels"];
    let rows = tables.iter().flat_map(|table| report[table].as_array().unwrap());
    [&report["busy"], &report["total"]].into_iter().chain(rows).collect()
}

#[test]
fn b12_less_work_is_not_faster_and_passes_no_gate() {
    let many = |at: u64, count: u64| -> Vec<ShortRow> {
        (0..count)
            .map(|row| r(at + row * 200, 100).encoder(row + 1).label("k"))
            .collect()
    };
    let (new, old) = ([many(1, 250), many(2, 250)], [many(3, 400), many(4, 400)]);
    let (place, arguments) = sides(&[&new[0], &new[1]], &[&old[0], &old[1]]);
    let with = |options: &[&str]| place.run(arguments.iter().map(String::as_str).chain(options.iter().copied()));
    let gated = with(&["--fail-above", "5", "--gate", "phase:k", "--format", "json"]);
    assert_eq!(gated.code, Some(3), "{gated:#?}");
    let report = gated.any_json();
    for row in all_rows(&report) {
        assert_eq!(
            (&row["verdict"], &row["reason"]),
            (&json!("incomparable"), &json!("unequal_work"))
        );
        assert_eq!(row["test"], Value::Null);
    }
    for row in report["gate"]["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["result"], &row["reason"]),
            (&json!("cannot_judge"), &json!("incomparable"))
        );
    }
    // Insisting is possible, and is told.
    let forced = with(&["--force", "--format", "json"]).json();
    assert_eq!(row(&forced, "phases", "k")["verdict"], "improved");
    assert!(note(&forced, "unequal_work").contains("--force"));
}

#[test]
fn b17_a_reference_of_zero() {
    let labelled = |durations: &[(&str, u64)]| -> Vec<ShortRow> {
        durations
            .iter()
            .enumerate()
            .map(|(at, (label, duration))| r(at as u64 * 1_000, *duration).label(*label))
            .collect()
    };
    let zeros = (
        labelled(&[("p", 0), ("q", 50), ("r", 0), ("all", 100)]),
        labelled(&[("p", 0), ("q", 0), ("r", 50), ("all", 100)]),
    );
    let absent = (
        labelled(&[("q", 50), ("all", 100)]),
        labelled(&[("r", 50), ("all", 100)]),
    );
    for (a, b) in [&zeros, &absent] {
        let report = compare(&[a], &[b]);
        assert_eq!(row(&report, "phases", "q")["delta_pct"], Value::Null);
        close(&row(&report, "phases", "q")["delta_us"], 0.05);
        close(&row(&report, "phases", "r")["delta_pct"], -100.0);
        let (place, arguments) = sides(&[a], &[b]);
        for format in FORMATS {
            let text = place.run(arguments.iter().map(String::as_str).chain(["--format", format]));
            text.done();
            let words = text.stdout.split(|c: char| !c.is_alphanumeric());
            for word in words {
                assert!(
                    !matches!(word.to_lowercase().as_str(), "nan" | "inf" | "infinity"),
                    "{}",
                    text.stdout
                );
            }
        }
    }
    let report = compare(&[&zeros.0], &[&zeros.1]);
    close(&row(&report, "phases", "p")["delta_pct"], 0.0);
    // Everything zero.
    let nothing = labelled(&[("p", 0)]);
    let report = compare(&[&nothing], &[&nothing]);
    close(&report["total"]["delta_pct"], 0.0);
}

#[test]
fn b17_a_gate_on_a_reference_of_zero_is_never_green() {
    let three = |times: [u64; 3]| -> Vec<Vec<ShortRow>> {
        let trial = |at: u64| -> Vec<ShortRow> {
            let rows = ["p", "q", "r"].iter().zip(times).enumerate();
            let rows = rows.map(|(row, (label, ns))| r(at + row as u64 * 1_000, ns).label(*label));
            rows.chain([r(at + 9_000, 10_000).label("all")]).collect()
        };
        (1..=3).map(trial).collect()
    };
    let (a, b) = (three([0, 50, 0]), three([0, 0, 50]));
    let refs = |trials: &'static [usize], from: &[Vec<ShortRow>]| -> Vec<Vec<ShortRow>> {
        trials.iter().map(|at| from[*at].clone()).collect()
    };
    for trials in [&[0_usize][..], &[0, 1, 2]] {
        let (a, b) = (refs(trials, &a), refs(trials, &b));
        let a: Vec<&[ShortRow]> = a.iter().map(Vec::as_slice).collect();
        let b: Vec<&[ShortRow]> = b.iter().map(Vec::as_slice).collect();
        let (place, arguments) = sides(&a, &b);
        let gated = |key: &str, limit: &str| {
            let limit = format!("{key}={limit}");
            let words = ["--gate", &limit, "--format", "json"];
            let ran = place.run(arguments.iter().map(String::as_str).chain(words));
            let gate = ran.any_json()["gate"]["rows"][0].clone();
            (ran.code, gate["result"].clone(), gate["reason"].clone())
        };
        for limit in ["5", "0", "1000000"] {
            // Both zero: unchanged.
            assert_eq!(gated("phase:p", limit), (Some(0), json!("passed"), Value::Null));
            // New on side A, gone from it, never heard of: three ways not to know.
            for key in ["phase:q", "phase:r", "phase:s"] {
                assert_eq!(
                    gated(key, limit),
                    (Some(3), json!("cannot_judge"), json!("missing")),
                    "{key}"
                );
            }
        }
        let report = compare(&a, &b);
        let verdict = |key: &str| row(&report, "phases", key)["verdict"].clone();
        assert_eq!(
            [verdict("p"), verdict("q"), verdict("r")],
            [json!("unchanged"), json!("only_in_a"), json!("only_in_b")]
        );
        // Not even with what excuses an undecided limit.
        let excused = ["--gate", "phase:q=5", "--on-inconclusive", "pass"];
        let ran = place.run(arguments.iter().map(String::as_str).chain(excused));
        assert_eq!(ran.code, Some(3), "{ran:#?}");
    }
}

#[test]
fn b27_medians_and_percentiles() {
    let shuffled: Vec<u64> = (0..20).map(|at| at * 7 % 20 + 1).collect();
    let ten: Vec<u64> = (0..10).map(|at| at * 3 % 10 + 1).collect();
    let hundred: Vec<u64> = (0..100).map(|at| at * 37 % 100 + 1).collect();
    for (durations, p50, p95, p99) in [
        (&[30, 10, 20, 100][..], 25.0, 100, 100),
        (&shuffled, 10.5, 19, 20),
        (&[30, 10, 20], 20.0, 30, 30),
        (&[1, 2], 1.5, 2, 2),
        (&[5], 5.0, 5, 5),
        (&[7, 7, 7], 7.0, 7, 7),
        (&ten, 5.5, 10, 10),
        (&hundred, 50.5, 95, 99),
    ] {
        let rows: Vec<ShortRow> = durations
            .iter()
            .enumerate()
            .map(|(at, duration)| r(at as u64 * 1_000, *duration))
            .collect();
        let report = reported(&rows);
        let cell = &report["total"]["a"]["trials"][0];
        close(&cell["p50_ns"], p50);
        assert_eq!(
            (&cell["p95_ns"], &cell["p99_ns"]),
            (&json!(p95), &json!(p99)),
            "{durations:?}"
        );
        assert_eq!(cell["min_ns"].as_u64(), durations.iter().copied().min());
        assert_eq!(cell["max_ns"].as_u64(), durations.iter().copied().max());
    }
}

#[test]
fn b39_identical_trials() {
    let report = compare_trials(&[78_800; 5], &[115_000, 114_000, 115_000, 115_000, 115_000]);
    assert_eq!(report["a"]["trials"].as_array().unwrap().len(), 5);
    assert_eq!(report["b"]["trials"].as_array().unwrap().len(), 5);
    close(&report["total"]["delta_pct"], (78.8 / 115.0 - 1.0) * 100.0);
    for row in [&report["busy"], &report["total"], row(&report, "phases", "k")] {
        assert_eq!(row["verdict"], "improved", "{row}");
        assert_eq!((&row["test"]["n_a"], &row["test"]["n_b"]), (&json!(5), &json!(5)));
        // No trial is dropped, and the interval lies around the change.
        let (low, high) = (
            row["test"]["low_pct"].as_f64().unwrap(),
            row["test"]["high_pct"].as_f64().unwrap(),
        );
        assert!(
            -32.5 < low && low < -31.4 && -31.4 < high && high < -30.5,
            "{low} {high}"
        );
    }
    let q = row(&report, "phases", "k")["q"].as_f64().unwrap();
    assert!(q > 0.0 && q < 0.05, "{q}");
    // Neither side varies: no division by a spread of zero.
    let (place, arguments) = {
        let (a, b) = (trials(&[100; 5]), trials(&[100; 5]));
        let a: Vec<&[ShortRow]> = a.iter().map(Vec::as_slice).collect();
        let b: Vec<&[ShortRow]> = b.iter().map(Vec::as_slice).collect();
        sides(&a, &b)
    };
    let gated = |format: &str| {
        let words = ["--fail-above", "0", "--format", format];
        place.run(arguments.iter().map(String::as_str).chain(words))
    };
    let same = gated("json").json();
    assert_eq!(
        (&same["total"]["delta_pct"], &same["total"]["delta_us"]),
        (&json!(0), &json!(0))
    );
    let (verdict, test) = (&same["total"]["verdict"], &same["total"]["test"]);
    assert_eq!(verdict, "unchanged");
    assert_eq!(
        (&test["low_pct"], &test["high_pct"], &test["df"]),
        (&json!(0), &json!(0), &json!(8))
    );
    assert_eq!(same["gate"]["result"], "passed");
    assert!(notes(&same).contains(&"zero_variance".to_owned()));
    for format in FORMATS {
        let ran = gated(format);
        let mut words = ran.done().stdout.split(|c: char| !c.is_alphanumeric());
        assert!(
            !words.any(|word| ["nan", "inf"].contains(&word.to_lowercase().as_str())),
            "{}",
            ran.stdout
        );
    }
    // Equal on each side, and apart: the smallest difference there is, and a large one.
    for (a, b, verdict) in [
        (131, 100, "regressed"),
        (100, 131, "improved"),
        (100_100, 100_000, "unchanged"),
    ] {
        assert_eq!(compare_trials(&[a; 3], &[b; 3])["busy"]["verdict"], verdict, "{a} {b}");
    }
}

#[test]
fn b46_zero_units_and_empty_trials() {
    let place = Place::with(doc(&[r(0, 1_000)]));
    for zero in ["0", "00", "-1", "1.5", "", "NaN", "1e3", "18446744073709551616"] {
        let ran = place.run(["report", "in.xml", &format!("--tokens={zero}")]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{zero}: {ran:#?}");
        assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
    }
    let (place, _) = sides(
        &[&[r(0, 100)], &[r(1, 100)], &[r(2, 100).process("other", 5)]],
        &[&[r(0, 50)]],
    );
    let all = [
        "compare",
        "--process",
        "bench",
        "--format",
        "json",
        "--a",
        "a0.xml",
        "a1.xml",
        "a2.xml",
        "--b",
        "b0.xml",
    ];
    place.run(all).refused(&["a2.xml", "0 of 1 rows", "other (5)"]);
    let kept = place.run(all.iter().copied().chain(["--keep-going"]));
    assert_eq!(kept.code, Some(3), "{kept:#?}");
    let report = kept.any_json();
    assert_eq!(report["a"]["trials"].as_array().unwrap().len(), 2);
    close(&report["total"]["a"]["total_us"], 0.1);
    assert!(note(&report, "missing_trial").contains("a2.xml"));
    for format in ["terminal", "markdown"] {
        let text = place.run(
            all.iter()
                .copied()
                .chain(["--keep-going"])
                .map(|word| if word == "json" { format } else { word }),
        );
        assert_eq!(text.code, Some(3));
        assert!(text.stdout.contains("a2.xml"), "{}", text.stdout);
    }
    // A label that one trial does not have is a zero of that trial, and no percentile.
    let report = compare(
        &[&[r(0, 100)], &[r(1, 100)], &[r(2, 80), r(900, 20).label("x")]],
        &[&[r(0, 50)]],
    );
    let x = &row(&report, "phases", "x")["a"];
    assert_eq!((&x["submissions"], &x["total_us"]), (&json!(0), &json!(0)));
    assert_eq!(x["trials"][0]["p50_ns"], Value::Null);
    assert_eq!(x["trials"][2]["p50_ns"], 20);
}

#[test]
fn b52_unequal_numbers_of_trials() {
    let ms = |values: &[u64]| -> Vec<u64> { values.iter().map(|value| value * 1_000_000).collect() };
    let report = compare_trials(&ms(&[20, 22, 24, 26]), &ms(&[10, 12, 14]));
    assert_eq!(report["a"]["trials"].as_array().unwrap().len(), 4);
    assert_eq!(report["b"]["trials"].as_array().unwrap().len(), 3);
    close(&report["total"]["a"]["total_us"], 23_000.0);
    close(&report["total"]["b"]["total_us"], 12_000.0);
    close(&report["total"]["delta_pct"], 1_100.0 / 12.0);
    let test = &report["total"]["test"];
    assert_eq!(
        (&test["n_a"], &test["n_b"], &test["method"]),
        (&json!(4), &json!(3), &json!("welch"))
    );
    // The ratio of the geometric means of all seven trials.
    close(&test["estimate_pct"], 92.555_630_645_183);
    assert_eq!(report["total"]["verdict"], "regressed");
    // The order of the trials does not matter to the medians.
    let turned = compare_trials(&ms(&[26, 20, 24, 22]), &ms(&[14, 10, 12]));
    assert_eq!(turned["total"]["delta_pct"], report["total"]["delta_pct"]);
}

/// A comparison of trials that were recorded one a minute: side, and time in ms.
fn recorded(order: &[(char, u64)], options: &[&str]) -> Value {
    let place = Place::new();
    let (mut a, mut b) = (vec!["--a".to_owned()], vec!["--b".to_owned()]);
    for (at, (letter, ms)) in order.iter().enumerate() {
        let name = format!("{letter}{at}");
        let summary = format!("</target><summary><start-date>2026-01-01T10:{at:02}:00Z</start-date></summary>");
        let contents = toc("<process name=\"bench\" pid=\"77\"/>").replace("</target>", &summary);
        place.write(&format!("{name}/toc.xml"), contents);
        place.write(
            &format!("{name}/metal-gpu-intervals.xml"),
            doc(&[r(10 + at as u64, ms * 1_000_000)]),
        );
        if *letter == 'A' { &mut a } else { &mut b }.push(name);
    }
    let words = a.iter().chain(&b).map(String::as_str);
    let all = ["compare"].into_iter().chain(words).chain(["--format", "json"]);
    place.run(all.chain(options.iter().copied())).any_json()
}

#[test]
fn b56_a_slot_that_runs_slow_is_not_a_change() {
    let block_1 = [('A', 100), ('B', 110), ('B', 100), ('A', 100)];
    let block_2 = [('B', 100), ('A', 110), ('A', 100), ('B', 100)];
    let both = recorded(&[block_1, block_2].concat(), &["--fail-above", "0"]);
    close(&both["busy"]["test"]["estimate_pct"], 0.0);
    let alone = recorded(&block_1, &["--fail-above", "0"]);
    for report in [&both, &alone] {
        for row in all_rows(report) {
            assert!(row["verdict"] != "regressed" && row["verdict"] != "improved", "{row}");
        }
        assert_ne!(report["gate"]["result"], "failed");
    }
    // One block gives the slow place to one side; two mirrored ones do not.
    assert!(note(&alone, "unequal_places").contains("A B B A by B A A B"));
    assert!(!notes(&both).contains(&"unequal_places".to_owned()));
    let ranks = |side: &str| -> Vec<u64> {
        let trials = both[side]["trials"].as_array().unwrap();
        trials.iter().map(|trial| trial["rank"].as_u64().unwrap()).collect()
    };
    assert_eq!((ranks("a"), ranks("b")), (vec![1, 4, 6, 7], vec![2, 3, 5, 8]));
    assert_eq!(both["a"]["trials"][1]["start"], "2026-01-01T10:03:00Z");
    // All of one side first cannot tell a drift from a change at all.
    let apart = recorded(&[('B', 100), ('B', 101), ('A', 102), ('A', 103)], &[]);
    assert!(note(&apart, "recorded_apart").contains("A B B A A B"));
}

#[test]
fn b05_a_limit_that_is_no_number_compares_nothing() {
    let (place, arguments) = sides(&[&[r(0, 200)], &[r(1, 201)]], &[&[r(2, 100)], &[r(3, 101)]]);
    let with = |option: String| place.run(arguments.iter().map(String::as_str).chain([option.as_str()]));
    for wrong in ["abc", "NaN", "nan%", "-5", "1e999", "", "%", "inf", "5 5", "0x5", "5,0"] {
        for option in ["--fail-above", "--margin", "--gate=busy", "--gate=phase:k"] {
            let ran = with(format!("{option}={wrong}"));
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(2), ""),
                "{option}={wrong}: {ran:#?}"
            );
            assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
        }
    }
    for right in ["5", "5%", "5 %", "5.0", "05"] {
        let ran = with(format!("--fail-above={right}"));
        assert_eq!(ran.code, Some(1), "{right}: {ran:#?}");
    }
    assert_eq!(with("--gate=busy".into()).code, Some(2), "a row without a limit");
}

#[test]
fn b04_a_regression_has_its_own_exit_status() {
    let code = |a: &[u64], b: &[u64]| {
        let (a, b) = (trials(a), trials(b));
        let a: Vec<&[ShortRow]> = a.iter().map(Vec::as_slice).collect();
        let b: Vec<&[ShortRow]> = b.iter().map(Vec::as_slice).collect();
        let (place, arguments) = sides(&a, &b);
        let words = arguments.iter().map(String::as_str).chain(["--fail-above", "5"]);
        place.run(words).code
    };
    let (base, slow, wild) = ([1_000, 1_002, 1_001], [1_500, 1_502, 1_501], [900, 1_100, 1_050]);
    assert_eq!(code(&base, &base), Some(0));
    assert_eq!(code(&slow, &base), Some(1));
    assert_eq!(code(&base, &slow), Some(0), "faster passes");
    assert_eq!(code(&wild, &base), Some(3), "not known");
    assert_eq!(code(&slow[..1], &base[..1]), Some(3), "one trial shows no spread");
}

#[test]
fn b09_an_end_before_its_start() {
    let report = reported(&[r(0, 100), r(1_000, "-20000000"), r(2_000, "-1"), r("-5", 10)]);
    let one = trial(&report);
    assert_eq!((&one["total_ns"], &one["submissions"]), (&json!(100), &json!(1)));
    assert_eq!(one["left_out"]["invalid"]["rows"], 3);

    let columns = [
        ("timestamp", "start-time"),
        ("channel-id", "metal-command-buffer-id"),
        ("function", "uint32"),
        ("gpu-submission-id", "metal-command-buffer-id"),
    ];
    let point = |time: u64, function: u64, id: u64| {
        let cells = [
            cell("start-time", time),
            cell("metal-command-buffer-id", 0x12_3459),
            cell("uint32", function),
            cell("metal-command-buffer-id", id),
        ];
        format!("<row>{}</row>", cells.concat())
    };
    let rows: String = [(5_000, 7_000), (30_000_000, 10_000_000), (8_000, 8_500)]
        .iter()
        .enumerate()
        .map(|(at, (start, end))| point(*start, 1, at as u64 + 1) + &point(*end, 2, at as u64 + 1))
        .collect();
    let xml = document(&format!(
        "<node>{}{rows}</node>",
        schema("metal-gpu-execution-points", &columns)
    ));
    let report = Place::with(&xml).report(&["--process", "all"]);
    let one = trial(&report);
    assert_eq!((&one["total_ns"], &one["submissions"]), (&json!(2_500), &json!(2)));
    assert_eq!(one["left_out"]["invalid"], json!({"rows": 2, "total_ns": null}));
    // Text that is no number is a fault of the file, not a row to leave out.
    for bad in ["12x", "1.5", "0x10", "1,000", "1 000", "٣", "--5", "+"] {
        Place::with(doc(&[r(0, 100), r(1_000, bad)]))
            .run(["report", "in.xml"])
            .refused(&["table `metal-gpu-intervals`, row 2", "`duration`"]);
    }
}

// ---------------------------------------------------------------------------------------------- command line

#[test]
fn b04_the_exit_status_tells_what_happened() {
    let (place, same) = sides(&[&[r(0, 100)]], &[&[r(0, 100)]]);
    assert_eq!(place.run(&same).code, Some(0));
    place
        .run(["compare", "--a", "a0.xml", "--b", "missing.xml"])
        .refused(&["missing.xml"]);
    let unknown = place.run(["compare", "--a", "a0.xml", "--b", "b0.xml", "--no-such-option"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(unknown.stderr.starts_with("error: ") && unknown.stderr.contains("--no-such-option"));
    place.write("cut.xml", &doc(&[r(5, 100)])[..900]);
    place.write("a1.xml", doc(&[r(7, 100)]));
    let three = [
        "compare", "--a", "a0.xml", "cut.xml", "a1.xml", "--b", "b0.xml", "--format", "json",
    ];
    place.run(three).refused(&["cut.xml", "truncated"]);
    let kept = place.run(three.iter().copied().chain(["--keep-going"]));
    assert_eq!(kept.code, Some(3));
    kept.says(&["warning: ", "cut.xml"]);
    assert_eq!(kept.any_json()["a"]["trials"].as_array().unwrap().len(), 2);
    // Nothing is left on a side: there is nothing to report.
    place
        .run(["compare", "--a", "cut.xml", "--b", "b0.xml", "--keep-going"])
        .refused(&["side"]);
    // A command alone and no command at all.
    for arguments in [&["compare"][..], &[], &["compare", "--a", "a0.xml"], &["nonsense"]] {
        assert_eq!(place.run(arguments).code, Some(2), "{arguments:?}");
    }
    assert_eq!(place.run(["--help"]).code, Some(0));
    assert_eq!(place.run(["--version"]).code, Some(0));
}

#[cfg(unix)]
#[test]
fn b04_a_closed_pipe_is_silent() {
    use std::io::Read;
    use std::process::Stdio;
    let many: Vec<ShortRow> = (0..20_000).map(|at| r(at * 1_000, 400).encoder(at + 1)).collect();
    let place = Place::with(doc(&many));
    for arguments in [
        &["rows", "in.xml"][..],
        &["rows", "in.xml", "--format", "jsonl"],
        &["report", "in.xml"],
    ] {
        let mut child = place
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let _ = out.read(&mut [0; 16]).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn b11_the_wrong_kind_of_path() {
    let place = Place::new();
    place.write("x.trace/form.template", "x");
    place.write("empty.trace/.keep", "");
    for bundle in ["x.trace", "empty.trace"] {
        for command in [
            &["report", bundle][..],
            &["toc", bundle],
            &["rows", bundle],
            &["export", bundle, "-o", "out"],
        ] {
            place.run(command).refused(&[bundle, "xcrun"]);
        }
        assert!(!place.path("out").exists());
    }
    place.write("x.gputrace/metadata", "x");
    place.write("file.gputrace", "x");
    for capture in ["x.gputrace", "file.gputrace"] {
        for command in ["report", "toc", "rows"] {
            place
                .run([command, capture])
                .refused(&["frame capture", "not a recording"]);
        }
    }
    place.write("zip.trace", b"PK\x03\x04rest of it");
    place.run(["report", "zip.trace"]).refused(&["zip archive", "unzip"]);
    place.write("file.trace", doc(&[r(0, 100)]));
    assert_eq!(
        trial(&place.run(["report", "file.trace", "--format", "json"]).json())["total_ns"],
        100
    );
    place.write("empty.xml", "");
    place.write("empty.xml.gz", pack::gzip(b""));
    for empty in ["empty.xml", "empty.xml.gz"] {
        for command in ["report", "toc", "rows"] {
            place.run([command, empty]).refused(&["the file is empty"]);
        }
    }
    for text in [
        "hello",
        "bplist00abc",
        "{\"a\": 1}",
        "\u{0}\u{1}\u{2}\u{3}\u{4}",
        "<html><body/></html>",
        "<",
        "<?xml version=\"1.0\"?>",
    ] {
        Place::with(text).run(["report", "in.xml"]).refused(&["in.xml"]);
    }
    place.write("folder/notes.txt", "x");
    place.run(["report", "folder"]).refused(&["folder", "no exported file"]);
    place.write("outer/run-1/a.xml", doc(&[r(0, 100)]));
    place.run(["report", "outer"]).refused(&["outer", "run-1"]);
    place
        .run(["report", "not/there.xml"])
        .refused(&["not/there.xml", "not is not there"]);
    // A folder with a name that looks like a file's, and sidecars beside an export.
    place.write("dir.xml/._a.xml", "\u{0}");
    place.write("dir.xml/.DS_Store", "\u{0}");
    place.write("dir.xml/a.xml", doc(&[r(0, 100)]));
    assert_eq!(
        trial(&place.run(["report", "dir.xml", "--format", "json"]).json())["total_ns"],
        100
    );
}

// ---------------------------------------------------------------------------------------------- export tool

#[test]
fn b06_a_truncated_file_is_never_complete() {
    let whole = doc(&[r(0, 100), r(1_000, 100), r(2_000, 100), r(3_000, 100)]);
    let half = whole.find("<row><start-time fmt=\"3000\"").unwrap() + 20;
    let place = Place::with(&whole[..half]);
    place.run(["report", "in.xml"]).refused(&[
        "in.xml: table `metal-gpu-intervals`, row 4 (byte ",
        "unexpected end",
        "truncated",
    ]);
    let end = whole.trim_end().len();
    let rows_from = whole.find("<row>").unwrap();
    let cuts = (1..25)
        .chain((40..rows_from).step_by(211))
        .chain((rows_from..end).step_by(61))
        .chain(end - 9..end);
    for cut in cuts {
        let refused = Place::with(&whole[..cut]).run(["report", "in.xml"]);
        refused.refused(&["in.xml"]);
        let toc = Place::with(&whole[..cut]).run(["toc", "in.xml"]);
        toc.refused(&["in.xml"]);
        // Streamed rows may stand on stdout, but never with success.
        let rows = Place::with(&whole[..cut]).run(["rows", "in.xml"]);
        assert_eq!(rows.code, Some(2), "{cut}");
    }
    assert_eq!(trial(&Place::with(&whole[..end]).report(&[]))["total_ns"], 400);
    for packed in [pack::gzip(whole.as_bytes()), pack::zstd(whole.as_bytes())] {
        for cut in (1..packed.len())
            .step_by(61)
            .chain([packed.len() - 1, packed.len() - 4])
        {
            Place::with(&packed[..cut])
                .run(["report", "in.xml"])
                .refused(&["in.xml"]);
        }
    }
    Place::new()
        .pipe(&whole.as_bytes()[..half], ["report", "-"])
        .refused(&["standard input", "row 4", "truncated"]);
    // Rubbish after the end is no end either.
    for tail in [
        "<row/>",
        "text",
        "</node>",
        "<trace-query-result>",
        "<?xml version=\"1.0\"?><trace-query-result>",
    ] {
        Place::with(format!("{whole}{tail}"))
            .run(["report", "in.xml"])
            .refused(&["in.xml"]);
    }
}

// ---------------------------------------------------------------------------------------------- output

const SECRET_TARGET: &str = "<device platform=\"macOS\" model=\"Mac\" name=\"user1's Mac\" uuid=\"UUID-1\" os-version=\"26.6\"/><process name=\"bench\" pid=\"77\" arguments=\"--token SECRET123 --model /Users/user1/m.gguf\" path=\"/Users/user1/bench\"/>";

#[test]
fn b18_nothing_private_is_in_a_report() {
    let place = Place::new();
    place.write("t/toc.xml", toc(SECRET_TARGET));
    place.write("t/intervals.xml", doc(&[r(0, 100)]));
    place.write("u/toc.xml", toc(SECRET_TARGET));
    place.write("u/intervals.xml", doc(&[r(0, 120)]));
    let full = place.path("t");
    let full = full.to_str().unwrap();
    let mut seen = Vec::new();
    for format in FORMATS {
        for arguments in [
            &["report", "t", "--format", format][..],
            &["report", full, "--format", format],
            &["compare", "--a", "t", "--b", "u", "--format", format],
            &["report", "t", "--trials", "--kernels", "--format", format],
        ] {
            seen.push(place.run(arguments).done().stdout.clone());
        }
    }
    // Remarks and reasons name inputs as the report does, not by the path that was typed.
    place.write("twice/in.xml", document(&(node(&[r(0, 100)]) + &node(&[r(500, 100)]))));
    place.write("other/in.xml", doc(&[r(0, 100)]).replace("metal-gpu-intervals", "tick"));
    let (twice, other) = (place.path("twice"), place.path("other"));
    for format in FORMATS {
        let arguments = ["report", "--keep-going", "--format", format, twice.to_str().unwrap()];
        seen.push(place.run(arguments).done().stdout.clone());
        let lost = place.run(arguments.iter().copied().chain([other.to_str().unwrap()]));
        assert_eq!(lost.code, Some(3), "{lost:#?}");
        // Bencher's format has no text: there a warning is counted.
        let named = lost.stdout.contains("other is missing") && lost.stdout.contains("other has: tick");
        assert_eq!(named, format != "bencher", "{}", lost.stdout);
        seen.push(lost.stdout);
    }
    seen.push(place.run(["toc", "t"]).done().stdout.clone());
    seen.push(place.run(["toc", "t", "--format", "json"]).done().stdout.clone());
    let temporary = std::env::temp_dir();
    for text in &seen {
        for secret in ["SECRET123", "user1", "UUID-1", "m.gguf"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert!(!text.contains(temporary.to_str().unwrap()), "{text}");
    }
    for arguments in [
        &["toc", "t", "--show-private"][..],
        &["toc", "t", "--show-private", "--format", "json"],
        &["report", "t", "--show-private"],
        &["report", "t", "--show-private", "--format", "markdown"],
        &["compare", "--a", "t", "--b", "u", "--show-private", "--format", "json"],
    ] {
        let shown = place.run(arguments);
        assert!(shown.done().stdout.contains("SECRET123"), "{}", shown.stdout);
    }
}

fn labels_table(labels: &[&str], format: &str) -> String {
    let rows: Vec<ShortRow> = labels
        .iter()
        .enumerate()
        .map(|(at, label)| r(at as u64 * 1_000, 100).label(*label).encoder(at as u64 + 1))
        .collect();
    let ran = Place::with(doc(&rows)).run(["report", "in.xml", "--format", format]);
    ran.done().stdout.clone()
}

#[test]
fn b38_wide_characters_keep_the_columns() {
    let long = "試".repeat(100);
    let labels = ["gemm", "行列積", "✅ ok", "e\u{301}tape", &long, "👩🏽\u{200d}🚀 x", "🇩🇪"];
    let text = labels_table(&labels, "terminal");
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.iter().position(|line| *line == "Phases").unwrap();
    let table: Vec<&str> = lines[from..]
        .iter()
        .copied()
        .skip_while(|line| !line.starts_with('─'))
        .skip(1)
        .take(7)
        .collect();
    // Numbers have the same decimals and are right-aligned: their last point stands at one display column.
    let columns: Vec<usize> = table
        .iter()
        .map(|line| line[..line.find("0.10").unwrap()].width())
        .collect();
    assert!(
        columns.iter().all(|column| *column == columns[0]),
        "{columns:?}\n{}",
        table.join("\n")
    );
    assert!(
        table.iter().any(|line| line.starts_with("試試") && line.contains('…')),
        "{text}"
    );
    assert!(lines.iter().all(|line| line.width() <= 100), "{text}");
    for label in ["gemm", "行列積", "✅ ok", "e\u{301}tape"] {
        assert!(table.iter().any(|line| line.starts_with(label)), "{label}\n{text}");
    }
}

#[test]
fn b40_not_measured_is_not_zero() {
    let none = [r(1_000, 10).latency(NULL), r(2_000, 20).latency(NULL)];
    let some = [r(1_000, 10).latency(5_000), r(2_000, 20).latency(5_000)];
    let report = reported(&none);
    for section in ["channels", "phases", "encoders"] {
        for row in report[section].as_array().unwrap() {
            assert_eq!(row["a"]["latency_us"], Value::Null, "{section}");
            assert_eq!(row["a"]["trials"][0]["latency_ns"], Value::Null, "{section}");
        }
    }
    let csv = Place::with(doc(&none)).run(["rows", "in.xml", "--columns", "duration,start-latency"]);
    assert_eq!(csv.done().stdout, "duration,start-latency\n10,\n20,\n");
    let (place, arguments) = sides(&[&none], &[&some]);
    let json = place
        .run(arguments.iter().map(String::as_str).chain(["--format", "json"]))
        .json();
    assert_eq!(json["total"]["a"]["latency_us"], Value::Null);
    assert_eq!(
        json["total"]["b"]["latency_us"],
        json!({"samples": 2, "p50": 5, "p95": 5})
    );
    for format in ["terminal", "markdown"] {
        let text = place.run(arguments.iter().map(String::as_str).chain(["--format", format]));
        assert!(text.done().stdout.contains('–'), "{}", text.stdout);
        assert!(!text.stdout.contains("100.0"), "{}", text.stdout);
    }
    // A measured zero is a zero.
    let zero = report_of_latency(0);
    assert_eq!(
        zero["total"]["a"]["latency_us"],
        json!({"samples": 1, "p50": 0, "p95": 0})
    );
    // No encoder ids: how many there were is not known.
    let report = reported(&[r(0, 10).encoder(NULL).buffer(NULL)]);
    assert_eq!(report["total"]["a"]["encoders"], Value::Null);
    assert_eq!(report["total"]["a"]["command_buffers"], Value::Null);
}

fn report_of_latency(ns: u64) -> Value {
    reported(&[r(1_000, 10).latency(ns)])
}

#[test]
fn b61_labels_do_not_break_a_table() {
    let labels = [
        "a|b",
        "c&#10;d",
        "`e`",
        "&lt;img src=x&gt;",
        "x\\|y",
        "**b** _i_ [l](http://e)",
        "@user #1",
        "&#13;&#10;## h",
        "$x$ ~~s~~",
        "&#x202E;rtl",
        "::error::x",
        "\\",
    ];
    let text = labels_table(&labels, "markdown");
    let lines: Vec<&str> = text.lines().collect();
    // From one heading to the next.
    let at = lines
        .iter()
        .position(|line| line.starts_with('#') && line.contains("Phases"))
        .unwrap();
    let next = lines[at + 1..]
        .iter()
        .position(|line| line.starts_with('#'))
        .unwrap_or(lines.len() - at - 1);
    let table: Vec<&str> = lines[at..=at + next]
        .iter()
        .copied()
        .filter(|line| line.starts_with('|'))
        .collect();
    // Two lines of heading, the labels, the total.
    assert_eq!(table.len(), 2 + labels.len() + 1, "{text}");
    let borders = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    for line in &table {
        assert_eq!(borders(line), borders(table[0]), "{line}");
    }
    assert!(table.iter().any(|line| line.contains("a\\|b")), "{text}");
    assert!(!text.contains("<img"), "{text}");
    for line in text.lines() {
        assert!(!line.starts_with("## h") && !line.starts_with("::error"), "{line}");
    }
    assert!(!text.contains('\u{202e}'), "{text}");
    // CSV: a record per row, whatever stands in it; no spreadsheet takes a label for a formula.
    let labels = ["a|b", "c&#10;d", "=1+1", "x,y", "&quot;q&quot;", "-2+3", "@sum"];
    let rows: Vec<ShortRow> = labels.iter().map(|label| r(0, 100).label(*label)).collect();
    let csv = Place::with(doc(&rows)).run(["rows", "in.xml", "--columns", "event-label,duration"]);
    let mut reader = csv::Reader::from_reader(csv.done().stdout.as_bytes());
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let read: Vec<&str> = records.iter().map(|record| &record[0]).collect();
    assert_eq!(read, ["a|b", "c\nd", "'=1+1", "x,y", "\"q\"", "'-2+3", "'@sum"]);
    // On a terminal a label moves no cursor.
    let text = labels_table(&["a&#9;b", "c&#x9B;2Jd", "e&#10;f"], "terminal");
    assert!(
        !text.contains('\u{9b}') && !text.contains('\t') && !text.contains("\nf "),
        "{text}"
    );
    assert_eq!(used(&reported(&[r(0, 1).label("c&#10;d")]), "phases"), ["c\nd"]);
}

// Left for what is not built yet: B09's, B19, B35 and B44 (live mode), B63 (recording; its export half is in `xctrace.rs`
// and `bundles.rs`). B30 is where baselines are tested.
