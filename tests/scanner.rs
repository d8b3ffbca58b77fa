//! The row scanner against the tokenizer: whatever the bytes are, both give the same rows and the same errors.
//!
//! What is compared is in `fuzz/readers.rs`; here it is run over exports that are made up and then damaged, over all
//! fixtures, and over real exports where they are at hand.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub
)]

#[path = "../fuzz/readers.rs"]
mod readers;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use support::export::{
    EncoderRow, ExecutionPoint, ExportBuilder, Form, GpuInterval, IdStyle, Ids, Label, MapRow, Process, Row, Style,
    Thread,
};
use trace_attr::recording::{ReadOptions, read_recording_from};
use trace_attr::xml::{BlockRows, Blocks, ExportReader, Keep};

const LABELS: [&str; 7] = [
    "engine.layer.0.attn:attn",
    "Command Buffer 0:Compute Command 1",
    "vec<f32> & \"π\":k",
    "it's > 'that'",
    "",
    " 12 ",
    "007",
];
const PROCESSES: [(&str, u64); 3] = [("bench", 77), ("Fenster & Söhne", 188), ("other (x)", 5)];

/// Few values, so that many are shared and become references.
fn interval() -> impl Strategy<Value = GpuInterval> {
    let maybe = |values: std::ops::Range<u64>| prop::option::weighted(0.9, values);
    let number = prop_oneof![
        0..40u64,
        Just(u64::MAX),
        (1u64 << 50) - 2..(1 << 50) + 2,
        0..10_000_000_000_000_000u64
    ];
    (
        (
            prop::option::weighted(0.9, number),
            maybe(0..30),
            maybe(0..9),
            maybe(0..3),
        ),
        (
            prop::option::weighted(0.9, 0..LABELS.len()),
            0..PROCESSES.len(),
            any::<bool>(),
        ),
        (maybe(1..6), maybe(1..4), maybe(1..50)),
    )
        .prop_map(
            |((start, duration, latency, depth), (label, process, plain), (encoder, buffer, submission))| {
                let process = Process::new(PROCESSES[process].0, PROCESSES[process].1);
                let ids = Ids {
                    command_buffer: 1,
                    encoder: 2,
                    submission: submission.unwrap_or(0),
                };
                let text = |at: usize| LABELS[at].to_owned();
                GpuInterval {
                    start,
                    duration,
                    latency,
                    depth,
                    label: label.map(|at| match plain {
                        true => Label::Plain(text(at)),
                        false => Label::Parts {
                            text: text(at),
                            process: process.clone(),
                            submission: ids.submission,
                        },
                    }),
                    command_buffer: buffer,
                    encoder,
                    submission,
                    ..GpuInterval::new(0, 0, "", &process, ids)
                }
            },
        )
}

/// Tables of all shapes, in one of the forms that exports come in.
fn document() -> impl Strategy<Value = Vec<u8>> {
    let style = prop_oneof![
        8 => Just(Style::default()),
        1 => Just(Style { ids: IdStyle::Absent, ..Style::default() }),
        1 => Just(Style { ids: IdStyle::Mapped(|id| u64::MAX - 3 * id), ..Style::default() }),
        1 => Just(Style { ids: IdStyle::Mapped(|id| (id * 7_919) % 10_007), ..Style::default() }),
        1 => Just(Style { form: Form::PrettyCrlf, ..Style::default() }),
        1 => Just(Style { form: Form::ElementTree, ..Style::default() }),
    ];
    document_in(style)
}

fn document_in(style: impl Strategy<Value = Style>) -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(interval(), 1..12), style, 0..4usize).prop_map(|(rows, style, others)| {
        ExportBuilder::document(style, |export| {
            export.table(GpuInterval::TABLE).rows(rows.iter().cloned());
            let process = Process::new("bench", 77);
            let ids = |at: usize| Ids {
                command_buffer: 3,
                encoder: 4,
                submission: at as u64,
            };
            if others > 0 {
                export.table(ExecutionPoint::TABLE);
                for at in 0..2 * rows.len() as u64 {
                    export.row(&ExecutionPoint {
                        time: at / 3 * 1_000,
                        channel: 0x12_3459,
                        function: 1 + at % 2,
                        submission: at / 2,
                    });
                }
            }
            if others > 1 {
                export.table(MapRow::TABLE);
                for at in 0..rows.len() {
                    export.rows(MapRow::pair(at as u64 * 1_000, ids(at), &process, 1));
                }
            }
            if others > 2 {
                let thread = Thread {
                    name: "Main".to_owned(),
                    tid: 9,
                    process: process.clone(),
                };
                let row = |start, label: &str| EncoderRow {
                    start,
                    duration: 6,
                    thread: thread.clone(),
                    gpu: "M5 Max".to_owned(),
                    frame: 0,
                    buffer_label: "a & b".to_owned(),
                    buffer_index: 0,
                    label: label.to_owned(),
                    index: 1,
                    command_buffer: 3,
                    encoder: start,
                };
                export.table(EncoderRow::TABLE).row(&row(5, "x")).row(&row(6, "x"));
                // A node without a schema goes on with the last one.
                export.node("x").row(&row(7, "y")).row(&row(8, "y"));
            }
        })
        .into_bytes()
    })
}

/// What happens to a document, at a place that is a share of its length.
#[derive(Debug, Clone)]
enum Damage {
    Flip(u32, u8),
    Cut(u32),
    Remove(u32, usize),
    Insert(u32, &'static str),
    /// The next definition there takes the number of one before it.
    DefineAgain(u32, u32),
}

fn damage() -> impl Strategy<Value = Damage> {
    // What stands in documents that are not Apple's, and what stands in Apple's at another place.
    let pieces = prop::sample::select(vec![
        " ",
        "\n",
        "\r\n",
        "\t",
        "<",
        ">",
        "/",
        "\"",
        "'",
        "&",
        "=",
        "0",
        "7",
        "@",
        "\u{b5}",
        "<!-- -->",
        "<![CDATA[x]]>",
        "<?p?>",
        "&#65;",
        "&amp;",
        "&lol;",
        "&",
        "<sentinel/>",
        "<sentinel id=\"3\"/>",
        "<row>",
        "</row>",
        "<row/>",
        "<row a=\"b\">",
        "</node>",
        " id=\"3\"",
        " ref=\"3\"",
        " ref=\"18446744073709551615\"",
        " fmt=\"x\"",
        " fmt='x'",
        "<duration ref=\"2\"/>",
        "<uint64 id=\"5\" fmt=\"1\">1</uint64>",
        "<string ref=\"9\"/>",
        "<string id=\"4\"/>",
        "<@fmt>x</@fmt>",
        "<never>1</never>",
        "12345678901234567890",
    ]);
    prop_oneof![
        (any::<u32>(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        any::<u32>().prop_map(Damage::Cut),
        (any::<u32>(), 1..60usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (any::<u32>(), any::<u32>()).prop_map(|(at, other)| Damage::DefineAgain(at, other)),
        (any::<u32>(), pieces.clone()).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (any::<u32>(), pieces).prop_map(|(at, piece)| Damage::Insert(at, piece)),
    ]
}

fn damaged(mut bytes: Vec<u8>, all: &[Damage]) -> Vec<u8> {
    for damage in all {
        let (Damage::Flip(at, _)
        | Damage::Cut(at)
        | Damage::Remove(at, _)
        | Damage::Insert(at, _)
        | Damage::DefineAgain(at, _)) = damage;
        if bytes.is_empty() {
            break;
        }
        let mut at = *at as usize % bytes.len();
        match damage {
            Damage::Flip(_, byte) => bytes[at] ^= byte,
            Damage::Cut(_) => bytes.truncate(at),
            Damage::Remove(_, length) => drop(bytes.drain(at..bytes.len().min(at + length))),
            Damage::DefineAgain(_, other) => {
                let numbers = |from: usize, to: usize| {
                    let part = &bytes[from..to];
                    let found = memchr::memmem::find(part, b" id=\"").map(|at| from + at + 5)?;
                    let length = bytes[found..].iter().position(|byte| *byte == b'"')?;
                    Some(found..found + length)
                };
                let before = numbers(*other as usize % (at + 1), at).map(|range| bytes[range].to_vec());
                if let (Some(number), Some(range)) = (before, numbers(at, bytes.len())) {
                    drop(bytes.splice(range, number));
                }
            }
            Damage::Insert(_, piece) => {
                // Most pieces mean something only where a tag or a text begins or ends.
                if let Some(next) = bytes[at..].iter().position(|byte| b"<>\" ".contains(byte)) {
                    at += next + usize::from(piece.starts_with('<') && bytes[at + next] == b'>');
                }
                drop(bytes.splice(at..at, piece.bytes()));
            }
        }
    }
    bytes
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 128,
        max_shrink_iters: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whole_exports_are_read_alike(document in document(), size in 1..5_000usize) {
        readers::agree(&document, size);
    }

    #[test]
    fn damaged_exports_are_read_alike(
        document in document(),
        damage in prop::collection::vec(damage(), 1..4),
        size in prop_oneof![1..20usize, 1..5_000usize],
    ) {
        let document = damaged(document, &damage);
        readers::agree(&document, size);
        same_recording(&document);
        let _ = readers::agree_in_blocks(&document, size, 1);
    }

    /// References across blocks, names that come late, several tables that refer to each other.
    #[test]
    fn blocks_give_the_rows_of_one_reader(
        document in document_in(Just(Style::default())),
        block in prop_oneof![1..2_000usize, 1..20_000usize],
        first_rows in 0..4usize,
    ) {
        let blocks = readers::agree_in_blocks(&document, block, first_rows);
        prop_assert!(blocks.is_ok(), "an export in xctrace's own form is not read in blocks");
    }

    #[test]
    fn blocks_of_any_form_give_the_rows_of_one_reader_or_none(document in document(), block in 1..5_000usize) {
        let _ = readers::agree_in_blocks(&document, block, 1);
    }
}

/// The typed rows of a recording, and its refusals.
fn same_recording(bytes: &[u8]) {
    let read = |without_scanner| {
        let options = ReadOptions {
            without_scanner,
            ..ReadOptions::default()
        };
        read_recording_from(bytes, "in", &options, &()).map_or_else(
            |error| format!("{error} {:?}", error.help()),
            |read| {
                format!(
                    "{:?} {:?} {:?} {:?}",
                    read.runs,
                    read.contents,
                    read.notes,
                    read.texts.labels()
                )
            },
        )
    };
    assert_eq!(read(false), read(true));
}

fn every_file(folder: &Path, check: &mut dyn FnMut(&Path)) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            every_file(&path, check);
        } else {
            check(&path);
        }
    }
}

#[test]
fn every_fixture_is_read_or_refused_alike() {
    let (mut files, mut in_blocks) = (0, 0);
    for folder in ["good", "refused", "fuzz", "demo/hf2q-3"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
        every_file(&folder, &mut |path| {
            let bytes = std::fs::read(path).unwrap();
            readers::agree(&bytes, 4_999);
            if bytes.len() < 30_000 {
                readers::agree(&bytes, 7);
                in_blocks += readers::agree_in_blocks(&bytes, 1_000, 1).unwrap_or(0);
            }
            same_recording(&bytes);
            files += 1;
        });
    }
    assert!(files > 60, "{files}");
    assert!(in_blocks > 300, "{in_blocks} further blocks");
}

/// Other people's exports are not part of the project: `TRACE_ATTR_CORPUS`, or where they lie beside a checkout.
#[test]
fn real_exports_are_read_alike() {
    let given = std::env::var_os("TRACE_ATTR_CORPUS").map(PathBuf::from);
    let beside =
        ["../shared/corpus", "../../shared/corpus"].map(|path| Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let Some(corpus) = given.into_iter().chain(beside).find(|path| path.is_dir()) else {
        eprintln!("skipped: no corpus");
        return;
    };
    let (mut files, mut in_blocks) = (0, 0);
    every_file(&corpus, &mut |path| {
        if path.extension().is_some_and(|extension| extension == "xml") {
            let bytes = std::fs::read(path).unwrap();
            readers::agree(&bytes, 4_999);
            in_blocks += readers::agree_in_blocks(&bytes, 20_000, 10).unwrap_or(0);
            files += 1;
        }
    });
    assert!(files > 40, "{files}");
    assert!(in_blocks > 1_000, "{in_blocks} further blocks");
}

/// References that repeat those of the row before, while what they refer to changes: in a row of its own, earlier in the
/// same row, as a part of another cell, by a row that only the tokenizer reads.
#[test]
fn an_id_that_is_there_twice_stands_for_the_last_that_was_before() {
    let head = "<trace-query-result><node xpath='//trace-toc[1]/run[1]/data[1]/table[1]'><schema name=\"t\">\
                <col><mnemonic>a</mnemonic><name>A</name><engineering-type>duration</engineering-type></col>\
                <col><mnemonic>b</mnemonic><name>B</name><engineering-type>duration</engineering-type></col>\
                <col><mnemonic>c</mnemonic><name>C</name><engineering-type>formatted-label</engineering-type></col></schema>";
    let first = "<row><duration id=\"5\">10</duration><duration ref=\"5\"/>\
                 <formatted-label id=\"6\"><string id=\"7\">x</string><duration ref=\"5\"/></formatted-label></row>";
    let again = "<row><duration ref=\"5\"/><duration ref=\"5\"/><formatted-label ref=\"6\"/></row>";
    let parts = "<row><duration ref=\"5\"/><duration ref=\"5\"/>\
                 <formatted-label id=\"8\"><string ref=\"7\"/><duration ref=\"5\"/></formatted-label></row>";
    let changes = [
        "<row><duration id=\"5\">20</duration><duration ref=\"5\"/><formatted-label ref=\"6\"/></row>",
        "<row><duration ref=\"5\"/><duration id=\"5\">20</duration><formatted-label ref=\"6\"/></row>",
        "<row><duration ref=\"5\"/><duration ref=\"5\"/><formatted-label id=\"6\"><string id=\"7\">y</string>\
         <duration id=\"5\">20</duration></formatted-label></row>",
        "<row> <duration id=\"5\">20</duration> <duration ref=\"5\"/><formatted-label ref=\"6\"/></row>",
        "<row><duration id=\"5\"></duration><duration ref=\"5\"/><formatted-label ref=\"6\"/></row>",
        "<row><sentinel id=\"5\"/><duration ref=\"5\"/><formatted-label ref=\"6\"/></row>",
    ];
    for change in changes {
        let rows = [first, again, parts, again, change, again, again, parts, change, again].concat();
        let document = format!("{head}{rows}</node></trace-query-result>");
        readers::agree(document.as_bytes(), 4_096);
        let _ = readers::agree_in_blocks(document.as_bytes(), 300, 1);
        let mut reader = ExportReader::new(document.as_bytes(), Keep::All);
        reader.next_part().unwrap();
        let (mut seen, mut row) = (Vec::new(), 0);
        while let Some(cells) = reader.read_row().unwrap() {
            let b = cells.schema().column("b").unwrap();
            seen.push(cells.text(b));
            row += 1;
        }
        assert_eq!(row, 10);
        assert_eq!(seen[3].as_deref(), Some("10"), "{change}");
        assert_ne!(seen[5], seen[3], "{change}");
        assert_eq!((&seen[6], &seen[7]), (&seen[5], &seen[5]), "{change}");
    }
}

/// Cuts of a small export: in the middle of a tag, an id, an entity, a character of two bytes.
#[test]
fn cuts_are_told_alike() {
    let process = Process::new("bénch", 77);
    let ids = Ids {
        command_buffer: 1,
        encoder: 2,
        submission: 3,
    };
    let document = ExportBuilder::document(Style::default(), |export| {
        export.table(GpuInterval::TABLE);
        for (start, label) in [(10, "a & b:π"), (20, "a & b:π")] {
            export.row(&GpuInterval::new(start, 5, label, &process, ids));
        }
    });
    let from = document.find("<row>").unwrap();
    for cut in (from..document.len()).step_by(3) {
        readers::agree(&document.as_bytes()[..cut], 4_096);
    }
}

/// A fault of this program must end it: no thread may wait for one that is gone.
#[test]
fn a_thread_that_panics_over_a_block_does_not_hang_the_others() {
    let process = Process::new("bench", 77);
    let document = ExportBuilder::document(Style::default(), |export| {
        export.table(GpuInterval::TABLE);
        for at in 0..200 {
            let ids = Ids {
                command_buffer: 1,
                encoder: 2,
                submission: at,
            };
            export.row(&GpuInterval::new(10 * at, 5, "a:b", &process, ids));
        }
    });
    let mut reader = ExportReader::new(document.as_bytes(), Keep::All);
    reader.next_part().unwrap();
    let blocks = Blocks {
        threads: 3,
        bytes: 2_000,
    };
    let panics = |rows: &mut BlockRows<'_>| -> Option<()> { panic!("over {} rows", rows.len()) };
    let split = || reader.split(blocks, panics, |()| {});
    // By the thread that asked, or by one that it began.
    assert!(catch_unwind(AssertUnwindSafe(split)).is_err());
}

/// A table of columns `t0`, `t1`, … of these types.
fn head(schema: &str, types: &[&str]) -> String {
    let columns: String = (0..)
        .zip(types)
        .map(|(at, kind)| {
            format!("<col><mnemonic>t{at}</mnemonic><name>T</name><engineering-type>{kind}</engineering-type></col>")
        })
        .collect();
    format!("<node xpath='//trace-toc[1]/run[1]/data[1]/table[1]'><schema name=\"{schema}\">{columns}</schema>")
}

/// References that stand one behind the other are compared at once: one of them changes in every so many rows, at each
/// place in turn, or is not there, among cells and among the parts of one.
#[test]
fn references_one_behind_the_other_change_anywhere() {
    let types = [
        "start-time",
        "duration",
        "process",
        "string",
        "duration",
        "uint64",
        "formatted-label",
    ];
    let definitions = "<row><start-time id=\"1\">1</start-time><duration id=\"2\">20</duration>\
        <process id=\"4\" fmt=\"p (7)\"><pid id=\"5\">7</pid></process><string id=\"6\">x</string><duration id=\"3\">30</duration>\
        <uint64 id=\"8\">8</uint64><formatted-label id=\"9\"><string ref=\"6\"/><string id=\"7\">y</string></formatted-label></row>\
        <row><start-time id=\"10\">2</start-time><duration ref=\"3\"/>\
        <process id=\"11\" fmt=\"q (8)\"><pid id=\"12\">8</pid></process><string ref=\"7\"/><sentinel/>\
        <uint64 id=\"13\">9</uint64><formatted-label ref=\"9\"/></row>";
    // The usual and another one at each place.
    let cells = [
        ("<duration ref=\"2\"/>", "<duration ref=\"3\"/>"),
        ("<process ref=\"4\"/>", "<process ref=\"11\"/>"),
        ("<string ref=\"6\"/>", "<sentinel/>"),
        ("<duration ref=\"3\"/>", "<duration ref=\"2\"/>"),
        ("<uint64 ref=\"8\"/>", "<uint64 ref=\"13\"/>"),
    ];
    for every in [2, 3, 5] {
        let mut rows = String::new();
        for row in 0..60_usize {
            let changed = (row % every == 0).then_some(row / every % cells.len());
            let list: String = (0..)
                .zip(&cells)
                .map(|(at, (usual, other))| if changed == Some(at) { *other } else { *usual })
                .collect();
            let id = 20 + 2 * row;
            rows += &format!(
                "<row><start-time id=\"{id}\">{row}</start-time>{list}<formatted-label id=\"{}\"><string ref=\"7\"/>{list}\
                 <uint64 ref=\"8\"/></formatted-label></row>\n",
                id + 1
            );
        }
        let document = format!(
            "<trace-query-result>{}{definitions}{rows}</node></trace-query-result>",
            head("t", &types)
        );
        for size in [300, 4_096] {
            readers::agree(document.as_bytes(), size);
        }
        for block in [200, 1_000, 5_000] {
            let blocks = readers::agree_in_blocks(document.as_bytes(), block, 3);
            assert!(blocks.is_ok(), "every {every}, blocks of {block}");
        }
    }
}

/// What was a run of references in one table is none in another, whose columns are of other types there, or fewer.
#[test]
fn a_run_of_references_ends_with_its_table() {
    let rows = |count: usize| "<row><duration ref=\"1\"/><string ref=\"2\"/><duration ref=\"1\"/></row>".repeat(count);
    let first = format!(
        "{}<row><duration id=\"1\">5</duration><string id=\"2\">x</string><duration ref=\"1\"/></row>{}</node>",
        head("first", &["duration", "string", "duration"]),
        rows(5)
    );
    for types in [
        &["duration", "string", "duration"][..],
        &["string", "duration", "duration"],
        &["duration", "string"],
        &["duration", "string", "duration", "string"],
    ] {
        let document = format!(
            "<trace-query-result>{first}{}{}</node></trace-query-result>",
            head("second", types),
            rows(3)
        );
        readers::agree(document.as_bytes(), 4_096);
        let mut reader = ExportReader::new(document.as_bytes(), Keep::All);
        reader.next_part().unwrap();
        while reader.read_row().unwrap().is_some() {}
        reader.next_part().unwrap();
        let fits = types == ["duration", "string", "duration"];
        assert_eq!(reader.read_row().is_ok(), fits, "{types:?}");
    }
}

/// An id that is defined anew is one for whatever repeats a reference to it, wherever that happens: behind references of its
/// own row, as a part of a cell, in a row that only the tokenizer reads, in a node without a schema.
#[test]
fn an_id_defined_anew_ends_the_runs_that_refer_to_it() {
    let head = head("t", &["uint64", "uint64", "formatted-label"]);
    let label = |id: usize, inside: &str| format!("<formatted-label id=\"{id}\">{inside}</formatted-label>");
    let row = |cells: &str| format!("<row>{cells}</row>");
    let references = "<uint64 ref=\"1\"/><uint64 ref=\"2\"/>";
    let parts = "<uint64 ref=\"1\"/><uint64 ref=\"2\"/><uint64 ref=\"1\"/>";
    let first = row(&format!(
        "<uint64 id=\"1\">10</uint64><uint64 id=\"2\">20</uint64>{}",
        label(3, "<uint64 id=\"4\">40</uint64>")
    ));
    let again = |id: usize| row(&format!("{references}{}", label(id, parts)));
    let anew = "<uint64 id=\"1\">99</uint64>";
    let by_the_tokenizer = [" <row>", "\r\n<row>", "<!-- --><row>", "<row >"];
    let mut changes = vec![
        row(&format!("{references}{}", label(9, anew))),
        row(&format!("{references}{}", label(9, &format!("{parts}{anew}")))),
        row(&format!("{references}{}", label(9, &format!("{parts}{anew}{parts}")))),
        row(&format!("{anew}<uint64 ref=\"2\"/>{}", label(9, parts))),
        format!(
            "</node><node>{}",
            row(&format!("{anew}<uint64 ref=\"2\"/>{}", label(9, parts)))
        ),
    ];
    for begin in by_the_tokenizer {
        let change = row(&format!("{anew}<uint64 ref=\"2\"/>{}", label(9, parts)));
        changes.push(change.replacen("<row>", begin, 1));
    }
    // The run is not there yet, or about to be remembered, or known.
    let before = [0, 1, 2, 6].into_iter();
    for (change, before) in changes
        .iter()
        .flat_map(|change| before.clone().map(move |before| (change, before)))
    {
        let mut rows = first.clone();
        (10..10 + before).for_each(|id| rows += &again(id));
        rows += change;
        (20..26).for_each(|id| rows += &again(id));
        let document = format!("<trace-query-result>{head}{rows}</node></trace-query-result>");
        readers::agree(document.as_bytes(), 4_096);
        let _ = readers::agree_in_blocks(document.as_bytes(), 300, 1);
        let mut reader = ExportReader::new(document.as_bytes(), Keep::All);
        let mut seen = Vec::new();
        while reader.next_part().unwrap().is_some() {
            while let Some(cells) = reader.read_row().unwrap() {
                let [number, label] = ["t0", "t2"].map(|name| cells.schema().column(name).unwrap());
                seen.push((cells.text(number).unwrap(), cells.text(label).unwrap()));
            }
        }
        let expected = |text: &str, label: &str| (text.to_owned(), label.to_owned());
        assert_eq!(seen.len(), before + 8, "{change}");
        assert_eq!(seen[1..=before], vec![expected("10", "102010"); before], "{change}");
        assert_eq!(seen[before + 2..], vec![expected("99", "992099"); 6], "{change}");
    }
}
