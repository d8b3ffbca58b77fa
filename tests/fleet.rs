//! `convert --to parquet` and `--to csv`, on the real binary: what the files hold is what the report says of the same
//! input, labels come through as they are, and a folder of trials is only ever added to.
//!
//! `tests/consumers/run` asks DuckDB, polars and pyarrow the same, and Spark with `--all`.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use command::{Place, Ran, here};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use support::short::{NULL, ShortRow, doc, r};

/// A row by its columns; null is not in it.
type Row = BTreeMap<String, Field>;

/// Rows of a file.
fn rows(file: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let fields = row.get_column_iter().map(|(name, field)| (name.clone(), field.clone()));
        fields.filter(|(_, field)| *field != Field::Null).collect()
    });
    rows.collect()
}

/// Every file below a folder, with its path below it.
fn files(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else {
                files.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, &mut found);
    let below = |path: &PathBuf| path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    let mut found: Vec<String> = found.iter().map(below).collect();
    found.sort();
    found
}

/// Submissions and the row of the only trial of a fleet's side.
fn only(place: &Place, side: &str) -> (Vec<Row>, Row) {
    let file = |table: &str| {
        let folder = place.path(&format!("fleet/{table}/side={side}"));
        let [file] = &files(&folder)[..] else {
            panic!("{:?}", files(&folder))
        };
        rows(&folder.join(file))
    };
    (file("submissions"), file("trials").remove(0))
}

fn text(row: &Row, column: &str) -> Option<String> {
    row.get(column).map(|field| match field {
        Field::Str(text) => text.clone(),
        other => panic!("{column}: {other:?}"),
    })
}

fn number(row: &Row, column: &str) -> Option<i64> {
    row.get(column).map(|field| match field {
        Field::Long(number) => *number,
        other => panic!("{column}: {other:?}"),
    })
}

/// Converts into the folder `fleet`.
fn convert(place: &Place, arguments: &[&str]) -> Ran {
    let ran = place.run([&["convert", "--to", "parquet", "-o", "fleet"], arguments].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    ran
}

#[test]
fn a_trial_holds_what_the_report_says_of_it() {
    let place = Place::new();
    let demo = here("fixtures/demo/hf2q-1");
    let demo = demo.to_str().unwrap();
    convert(
        &place,
        &[
            demo,
            "--tokens",
            "64",
            "--set",
            "commit=0c1f2ab",
            "--set",
            "machine=mini-1",
        ],
    );
    let report = place.run(["report", demo, "--tokens", "64", "--format", "json"]).json();
    let told = &report["a"]["trials"][0];

    let (submissions, trial) = only(&place, "a");
    for column in ["total_ns", "busy_ns", "submissions", "rows_read", "units", "run"] {
        assert_eq!(number(&trial, column), told[column].as_i64(), "{column}");
    }
    assert_eq!(number(&trial, "pid"), told["process"]["pid"].as_i64());
    for (reason, count) in told["left_out"].as_object().unwrap() {
        let column = |what: &str| number(&trial, &format!("left_out_{reason}_{what}"));
        assert_eq!(column("rows"), count["rows"].as_i64(), "{reason}");
        assert_eq!(column("ns"), count["total_ns"].as_i64(), "{reason}");
    }
    let said: Vec<_> = ["commit", "machine", "unit", "name", "gpu"]
        .map(|column| text(&trial, column).unwrap())
        .into();
    assert_eq!(said, ["0c1f2ab", "mini-1", "token", "hf2q", "M5 Max"]);

    assert_eq!(submissions.len() as u64, told["submissions"].as_u64().unwrap());
    for (table, column) in [
        ("phases", "phase"),
        ("encoders", "encoder_family"),
        ("buckets", "bucket"),
        ("channels", "channel"),
    ] {
        let mut sums: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for row in &submissions {
            let sum = sums.entry(text(row, column).unwrap()).or_default();
            *sum = (sum.0 + 1, sum.1 + number(row, "duration_ns").unwrap());
        }
        for row in report[table].as_array().unwrap() {
            let trial = &row["a"]["trials"][0];
            let told = (
                trial["submissions"].as_u64().unwrap(),
                trial["total_ns"].as_i64().unwrap(),
            );
            let key = row["key"].as_str().unwrap();
            assert_eq!(sums.remove(key).unwrap_or_default(), told, "{table}: {key}");
        }
        assert_eq!(sums, BTreeMap::new(), "{table}: groups that the report does not have");
    }
    assert_eq!(number(&submissions[0], "start_ns"), Some(0));
    let first = told["first_start_ns"].as_i64().unwrap();
    for row in &submissions {
        let (start, traced) = (number(row, "start_ns").unwrap(), number(row, "trace_start_ns").unwrap());
        assert_eq!(traced - start, first);
    }
}

/// Labels that some format takes for something else. A recording can hold no other control characters.
const NASTY: [&str; 12] = [
    "tab\tnewline\nreturn\r.",
    "\u{202e}backwards\u{2066}isolated\u{2069}",
    "zero\u{200b}width\u{feff}",
    "=HYPERLINK(\"x\")",
    "+1",
    "-1",
    "@SUM(A1)",
    "a,b;c\"d\"",
    "::error::mine",
    "##[error]mine",
    "NULL",
    "行列積 ✅ e\u{301}tape",
];

fn nasty(place: &Place) {
    let xml = |label: &str| {
        label
            .chars()
            .map(|c| format!("&#{};", u32::from(c)))
            .collect::<String>()
    };
    let rows: Vec<ShortRow> = (0..)
        .zip(NASTY)
        .map(|(at, label)| r(at * 10_000, 1_000 + at).label(format!("cb:{}", xml(label)).as_str()))
        .collect();
    place.write("in.xml", doc(&rows));
}

#[test]
fn labels_are_data_in_parquet() {
    let place = Place::new();
    nasty(&place);
    let value = "=cmd|' /C calc'!A0 \u{202e}\"quoted\"\n";
    convert(&place, &["in.xml", "--set", &format!("note={value}")]);
    let (submissions, trial) = only(&place, "a");
    assert_eq!(text(&trial, "note").unwrap(), value);
    let report = place.run(["report", "in.xml", "--format", "json"]).json();
    let phases: BTreeMap<&str, i64> = report["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["key"].as_str().unwrap(),
                row["a"]["trials"][0]["total_ns"].as_i64().unwrap(),
            )
        })
        .collect();
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for row in &submissions {
        *sums.entry(text(row, "phase").unwrap()).or_default() += number(row, "duration_ns").unwrap();
    }
    assert_eq!(
        sums.iter()
            .map(|(key, ns)| (key.as_str(), *ns))
            .collect::<BTreeMap<_, _>>(),
        phases
    );
    let labels = |row: &Row| text(row, "encoder_label").unwrap();
    let found: Vec<String> = submissions.iter().map(labels).collect();
    for label in [
        "-1",
        "+1",
        "=HYPERLINK(\"x\")",
        "a,b;c\"d\"",
        "NULL",
        "行列積 ✅ e\u{301}tape",
        "zero\u{200b}width\u{feff}",
    ] {
        assert!(found.iter().any(|found| found == label), "{label}: {found:#?}");
    }
}

#[test]
fn labels_are_harmless_in_csv_and_numbers_are_numbers() {
    let place = Place::new();
    nasty(&place);
    let ran = place.run([
        "convert",
        "in.xml",
        "--to",
        "csv",
        "-o",
        "out.csv",
        "--set",
        "note=@a,b",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    let written = place.read("out.csv");
    assert!(!written.contains(['\r', '\u{202e}', '\u{200b}', '\u{feff}']));
    let mut reader = csv::ReaderBuilder::new()
        .flexible(false)
        .from_reader(written.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert_eq!(
        header.iter().take(8).collect::<Vec<_>>(),
        ["side", "trial", "name", "input", "unit", "units", "note", "process"]
    );
    let mut total = 0;
    let mut count = 0;
    for record in reader.records() {
        let record = record.unwrap();
        let of = |column: &str| &record[header.iter().position(|name| name == column).unwrap()];
        total += of("duration_ns").parse::<u64>().unwrap();
        count += 1;
        assert_eq!(
            (of("side"), of("units"), of("note"), of("coalesced")),
            ("a", "", "'@a,b", "false")
        );
        for field in &record {
            assert!(
                !field.starts_with(['=', '+', '-', '@', '\t']) && !field.starts_with("::"),
                "{field}"
            );
        }
    }
    assert_eq!(count, NASTY.len());
    assert_eq!(total, (0..12).map(|at| 1_000 + at).sum::<u64>());
}

#[test]
fn what_a_trace_does_not_have_is_null() {
    let place = Place::with(doc(&[
        r(500, 100).label(NULL).encoder(NULL).buffer(NULL).latency(NULL),
        r(900, 100).encoder(u64::MAX - 1).buffer(1_u64 << 63),
    ]));
    convert(&place, &["in.xml"]);
    let (submissions, trial) = only(&place, "a");
    let columns = [
        "encoder_label",
        "command_buffer_label",
        "latency_ns",
        "submission_id",
        "encoder_id",
        "command_buffer_id",
    ];
    assert!(
        columns.iter().all(|column| !submissions[0].contains_key(*column)),
        "{:?}",
        submissions[0]
    );
    assert_eq!(text(&submissions[0], "phase").unwrap(), "(unknown)");
    // Ids above 2^63 are themselves.
    assert_eq!(text(&submissions[1], "encoder_id").unwrap(), "18446744073709551614");
    assert_eq!(
        text(&submissions[1], "command_buffer_id").unwrap(),
        "9223372036854775808"
    );
    assert!(
        ["unit", "units", "os_version", "recorded", "left_out_unpaired_start_ns"]
            .iter()
            .all(|column| !trial.contains_key(*column))
    );
    assert_eq!(number(&trial, "left_out_unpaired_start_rows"), Some(0));
}

#[test]
fn a_folder_is_added_to_and_the_same_trial_takes_its_own_place() {
    let place = Place::new();
    for (name, ns) in [("one.xml", 100), ("two.xml", 200), ("three.xml", 300)] {
        place.write(name, doc(&[r(0, ns), r(1_000, ns)]));
    }
    convert(&place, &["one.xml", "two.xml", "--set", "commit=old"]);
    let fleet = place.path("fleet");
    let before = files(&fleet);
    assert_eq!(before.len(), 4);
    for file in &before {
        let [table, "side=a", trial, "part-0.parquet"] = file.split('/').collect::<Vec<_>>()[..] else {
            panic!("{file}")
        };
        assert!(matches!(table, "submissions" | "trials"), "{table}");
        // Nothing that a reader takes for a number or a date.
        assert!(trial.starts_with("trial=t-") && trial.len() == 24, "{trial}");
    }
    let bytes = |files: &[String]| {
        files
            .iter()
            .map(|file| fs::read(fleet.join(file)).unwrap())
            .collect::<Vec<_>>()
    };
    let written = bytes(&before);

    // Another night.
    convert(&place, &["three.xml", "--set", "commit=new"]);
    let all = files(&fleet);
    assert_eq!(all.len(), 6, "{all:#?}");
    assert_eq!(bytes(&before), written);

    // The same trials once more, the other way round and under another name: the same bytes in the same places.
    fs::rename(place.path("one.xml"), place.path("1.xml")).unwrap();
    fs::rename(place.path("two.xml"), place.path("2.xml")).unwrap();
    convert(&place, &["2.xml", "1.xml", "--set", "commit=old"]);
    assert_eq!(files(&fleet), all);
    let submissions = |files: &[String]| {
        bytes(
            &files
                .iter()
                .filter(|file| file.starts_with("sub"))
                .cloned()
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(submissions(&before), submissions(&before));
    assert_eq!(submissions(&before), written[..2]);

    // A correction replaces.
    convert(&place, &["2.xml", "--set", "commit=fixed"]);
    assert_eq!(files(&fleet), all);
    let commits = all
        .iter()
        .filter(|file| file.starts_with("trials"))
        .map(|file| text(&rows(&fleet.join(file))[0], "commit").unwrap());
    let mut commits: Vec<String> = commits.collect();
    commits.sort();
    assert_eq!(commits, ["fixed", "new", "old"]);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let place = Place::new();
    let demo = here("fixtures/demo/llama-2");
    let demo = demo.to_str().unwrap();
    let mut written = Vec::new();
    for jobs in ["1", "3"] {
        convert(&place, &[demo, "--jobs", jobs]);
        let fleet = place.path("fleet");
        let ran = place.run(["convert", demo, "--to", "csv", "-o", "out.csv", "--jobs", jobs]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let files = files(&fleet);
        let bytes: Vec<Vec<u8>> = files.iter().map(|file| fs::read(fleet.join(file)).unwrap()).collect();
        written.push((files, bytes, place.read("out.csv")));
        fs::remove_dir_all(&fleet).unwrap();
    }
    assert!(written[0] == written[1]);
}

#[test]
fn sides_are_folders() {
    let place = Place::new();
    place.write("new.xml", doc(&[r(0, 100)]));
    place.write("old.xml", doc(&[r(0, 90)]));
    convert(&place, &["--a", "new.xml", "--b", "old.xml", "--name-b", "before"]);
    assert_eq!(number(&only(&place, "a").1, "total_ns"), Some(100));
    let (_, before) = only(&place, "b");
    assert_eq!(number(&before, "total_ns"), Some(90));
    assert_eq!(text(&before, "name").as_deref(), Some("before"));
}

#[test]
fn what_cannot_be_written_is_told_before_anything_is_read() {
    let place = Place::new();
    place.write("in/table.xml", "this is no export");
    place.write("file", "mine");
    let refused = |arguments: &[&str], message: &str| {
        let ran = place.run([&["convert", "in", "--to", "parquet"], arguments].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["-o", "in"], "this is an input, or in one");
    refused(&["-o", "in/fleet"], "this is an input, or in one");
    refused(&["-o", "file"], "this is no folder");
    refused(&["-o", "nowhere/fleet"], "there is no such folder");
    refused(&["-o", "fleet", "--set", "commit"], "no value is given");
    refused(&["-o", "fleet", "--set", "commit="], "the value is empty");
    refused(&["-o", "fleet", "--set", "commit=  "], "the value is empty");
    place.write("taken/trials", "mine");
    refused(&["-o", "taken"], "trials in it is no folder");
    assert!(!place.path("taken/submissions").exists());
    refused(&["-o", "fleet", "--set", "Commit=1"], "cannot be a column");
    refused(
        &["-o", "fleet", "--set", "phase=1"],
        "there is a column `phase` already",
    );
    refused(&["-o", "fleet", "--set", "left_out_nested_ns=1"], "already");
    refused(&["-o", "fleet", "--set", "a=1", "--set", "a=2"], "given twice");
    assert_eq!(place.read("file"), "mine");
    assert!(!place.path("fleet").exists());
}

#[test]
fn a_trial_that_cannot_be_used_leaves_those_before_it() {
    let place = Place::new();
    place.write("good.xml", doc(&[r(0, 100)]));
    place.write("bad.xml", "this is no export");
    let arguments = ["convert", "--to", "parquet", "-o", "fleet", "good.xml", "bad.xml"];
    let ran = place.run(arguments);
    assert_eq!(ran.code, Some(2));
    let told = "1 trial was added before the error";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert_eq!(files(&place.path("fleet")).len(), 2);
    let ran = place.run([&arguments[..], &["--keep-going"]].concat());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stderr.contains("bad.xml is missing"), "{}", ran.stderr);
    let ran = place.run(["convert", "--to", "parquet", "-o", "fleet", "good.xml", "./good.xml"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("are the same recording, on one side"),
        "{}",
        ran.stderr
    );
}
