//! The builder writes what `xctrace` writes: real tables are taken apart into values and built again, byte for byte.
//!
//! The real files are not part of the project; without them (`../shared/corpus` or `TRACE_ATTR_CORPUS`) these tests
//! say so and pass.
#![allow(
    clippy::print_stderr,
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing
)]

mod support;

use std::collections::HashMap;
use std::path::PathBuf;
use std::{env, fs};

use support::export::{
    EncoderRow, ExecutionPoint, ExportBuilder, GpuInterval, Ids, Label, Locale, MapRow, Process, Row, Style,
    ThermalState, Thread,
};

fn corpus(name: &str) -> Option<String> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let root = env::var_os("TRACE_ATTR_CORPUS").map_or_else(default, PathBuf::from);
    // In a linked worktree the corpus stands one folder further up.
    let further = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let text = [root, further]
        .iter()
        .find_map(|root| fs::read_to_string(root.join(name)).ok());
    if text.is_none() {
        eprintln!("skipped: no {name} in the corpus of real exports");
    }
    text
}

/// An element with its refs resolved.
#[derive(Clone, Debug, Default)]
struct Node {
    tag: String,
    text: String,
    children: Vec<Node>,
}

impl Node {
    fn number(&self) -> u64 {
        self.text
            .parse()
            .unwrap_or_else(|_| panic!("<{}> holds {:?}", self.tag, self.text))
    }

    fn optional(&self) -> Option<u64> {
        (self.tag != "sentinel").then(|| self.number())
    }

    fn child(&self, tag: &str) -> &Node {
        let found = self.children.iter().find(|child| child.tag == tag);
        found.unwrap_or_else(|| panic!("<{}> has no <{tag}>", self.tag))
    }

    /// What stands before ` (pid)`: only `fmt` has the name, so it comes from there.
    fn process(&self, names: &HashMap<u64, String>) -> Process {
        let pid = self.child("pid").number();
        Process::new(names.get(&pid).map_or("", String::as_str), pid)
    }
}

/// A real document: its rows, and what cannot be told from the values.
struct Document {
    xpath: String,
    documentation: Option<String>,
    names: HashMap<u64, String>,
    rows: Vec<Node>,
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}="))?;
    let quote = rest.chars().next()?;
    rest[1..].split_once(quote).map(|(value, _)| unescape(value))
}

/// Only Apple's own form: no comments, no CDATA, `>` escaped everywhere.
fn take_apart(xml: &str) -> Document {
    let mut document = Document {
        xpath: String::new(),
        documentation: None,
        names: HashMap::new(),
        rows: Vec::new(),
    };
    let mut known: HashMap<String, Node> = HashMap::new();
    let mut open: Vec<(Node, Option<String>)> = Vec::new();
    for piece in xml.split('<').skip(2) {
        let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
        if let Some(name) = tag.strip_prefix('/') {
            let Some((node, id)) = open.pop() else { continue };
            assert_eq!(node.tag, name);
            known.extend(id.map(|id| (id, node.clone())));
            match open.last_mut() {
                Some((parent, _)) => parent.children.push(node),
                None => document.rows.push(node),
            }
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        match name {
            "node" => document.xpath = attribute(tag, "xpath").unwrap_or_default(),
            "schema" => document.documentation = attribute(tag, "documentation"),
            _ => {}
        }
        if open.is_empty() && name != "row" {
            continue;
        }
        if let (Some(fmt), "process") = (attribute(tag, "fmt"), name)
            && let Some((process, pid)) = fmt.strip_suffix(')').and_then(|fmt| fmt.rsplit_once(" ("))
        {
            document.names.insert(pid.parse().unwrap_or(0), process.to_owned());
        }
        let node = match attribute(tag, "ref") {
            Some(id) => known[&id].clone(),
            None => Node {
                tag: name.to_owned(),
                text: unescape(text),
                children: Vec::new(),
            },
        };
        if tag.ends_with('/') {
            open.last_mut().expect("cells stand in rows").0.children.push(node);
        } else {
            open.push((node, attribute(tag, "id")));
        }
    }
    document
}

fn build_again<R: Row>(document: &Document, locale: Locale, row: impl Fn(&[Node]) -> R) -> String {
    let style = Style {
        documentation: document.documentation.clone(),
        locale,
        ..Style::default()
    };
    ExportBuilder::document(style, |export| {
        export.node(&document.xpath).schema(R::TABLE);
        export.rows(document.rows.iter().map(|node| row(&node.children)));
    })
}

fn assert_same(name: &str, built: &str, real: &str) {
    if built != real {
        let at = built.bytes().zip(real.bytes()).take_while(|(a, b)| a == b).count();
        let around = |text: &str| {
            String::from_utf8_lossy(&text.as_bytes()[at.min(text.len())..])
                .chars()
                .take(120)
                .collect::<String>()
        };
        panic!(
            "{name} differs at byte {at}:\nbuilt {}\nreal  {}",
            around(built),
            around(real)
        );
    }
}

const PLAIN: Locale = Locale {
    spaced: false,
    thousands: ',',
};

#[test]
fn execution_points_are_built_as_apple_writes_them() {
    let name = "reconstructed/planefuse-26.6/metal-gpu-execution-points.xml";
    let Some(real) = corpus(name) else { return };
    let built = build_again(&take_apart(&real), PLAIN, |cells| ExecutionPoint {
        time: cells[0].number(),
        channel: cells[1].number(),
        function: cells[2].number(),
        submission: cells[4].number(),
    });
    assert_same(name, &built, &real);
}

#[test]
fn the_submission_map_is_built_as_apple_writes_it() {
    let name = "reconstructed/planefuse-26.6/metal-gpu-submission-to-command-buffer-id.xml";
    let Some(real) = corpus(name) else { return };
    let document = take_apart(&real);
    let built = build_again(&document, PLAIN, |cells| MapRow {
        time: cells[0].number(),
        ids: Ids {
            command_buffer: cells[1].number(),
            submission: cells[2].number(),
            encoder: cells[5].number(),
        },
        segment: cells[3].number(),
        accelerator: cells[6].number(),
        process: Some(cells[12].process(&document.names)),
        coalesced: cells[15].number(),
    });
    assert_same(name, &built, &real);
}

#[test]
fn the_encoders_list_is_built_as_apple_writes_it() {
    let name = "reconstructed/planefuse-26.6/metal-application-encoders-list.xml";
    let Some(real) = corpus(name) else { return };
    let document = take_apart(&real);
    let built = build_again(&document, PLAIN, |cells| {
        let index = |cell: &Node| {
            cell.text[1..]
                .split_once(']')
                .and_then(|(index, _)| index.parse().ok())
                .unwrap_or(0)
        };
        EncoderRow {
            start: cells[0].number(),
            duration: cells[1].number(),
            thread: Thread {
                name: "Main Thread".to_owned(),
                tid: cells[2].child("tid").number(),
                process: cells[3].process(&document.names),
            },
            gpu: cells[4].text.clone(),
            frame: cells[5].number(),
            buffer_label: cells[6].text.clone(),
            buffer_index: index(&cells[7]),
            label: cells[8].text.clone(),
            index: index(&cells[9]),
            command_buffer: cells[11].number(),
            encoder: cells[12].number(),
        }
    });
    assert_same(name, &built, &real);
}

/// Labels with nested process elements, other processes, escapes and non-ASCII text. Real bytes, except that somebody
/// took out the line ends between the rows.
#[test]
fn gpu_intervals_are_built_as_apple_writes_them() {
    let intervals = |name: &str, joined: bool| {
        let Some(real) = corpus(name) else { return };
        let document = take_apart(&real);
        let built = build_again(&document, PLAIN, |cells| GpuInterval {
            start: cells[0].optional(),
            duration: cells[1].optional(),
            channel: Some(cells[2].text.clone()),
            frame: cells[3].optional(),
            latency: cells[4].optional(),
            depth: cells[5].optional(),
            label: Some(Label::Parts {
                text: cells[6].child("string").text.clone(),
                process: cells[6].child("process").process(&document.names),
                submission: cells[6].child("metal-encoder-id").number(),
            }),
            state: cells[7].text.clone(),
            connection: cells[8].number(),
            color: cells[9].number(),
            process: Some(cells[10].process(&document.names)),
            gpu: cells[11].text.clone(),
            surfaces: cells[13].child("string").text.clone(),
            bytes: cells[14].number(),
            command_buffer: cells[15].optional(),
            encoder: cells[16].optional(),
            submission: cells[17].optional(),
        });
        let built = if joined {
            built.replace("</row>\n<", "</row><")
        } else {
            built
        };
        assert_same(name, &built, &real);
    };
    intervals("metal-gpu-intervals/xcode27.0-m4max-mlx-trim.xml", true);
    intervals("reconstructed/metal-gpu-intervals-ms-2024-m3max-first3000.xml", false);
}

#[test]
fn thermal_states_are_built_as_apple_writes_them() {
    let name = "device-thermal-state-intervals/ms-2024.xml";
    let Some(real) = corpus(name) else { return };
    let built = build_again(&take_apart(&real), PLAIN, |cells| ThermalState {
        start: cells[0].number(),
        end: cells[2].number(),
        state: cells[3].text.clone(),
        induced: cells[5].number() == 1,
    });
    assert_same(name, &built, &real);
}

#[test]
fn ids_count_from_one_at_the_opening_tag_and_values_are_shared_at_every_depth() {
    let process = Process::new("bench", 77);
    let ids = Ids {
        command_buffer: 1,
        encoder: 2,
        submission: 9,
    };
    let xml = ExportBuilder::document(Style::default(), |export| {
        export
            .table(GpuInterval::TABLE)
            .row(&GpuInterval::new(1_000, 10_000, "a:b", &process, ids));
    });
    // The latency is the duration's value; the process stands in the label first; the pid is counted after its parent.
    assert!(
        xml.contains("<duration id=\"2\" fmt=\"10.00 µs\">10000</duration>"),
        "{xml}"
    );
    assert!(
        xml.contains("<gpu-frame-number id=\"4\" fmt=\"Frame 1\">1</gpu-frame-number><duration ref=\"2\"/>"),
        "{xml}"
    );
    assert!(
        xml.contains("<process id=\"11\" fmt=\"bench (77)\"><pid id=\"12\" fmt=\"77\">77</pid>"),
        "{xml}"
    );
    assert!(xml.contains("<process ref=\"11\"/>"), "{xml}");
}

#[test]
fn times_and_durations_are_shown_as_apple_shows_them() {
    use support::export::{fmt_duration, fmt_grouped, fmt_time};
    assert_eq!(fmt_time(787_505_999), "00:00.787.505");
    assert_eq!(fmt_time(75_000_000_000), "01:15.000.000");
    for (ns, shown) in [
        (125, "125 ns"),
        (623_625, "623.62 µs"),
        (964_375, "964.38 µs"),
        (8_754_083, "8.75 ms"),
    ] {
        assert_eq!(fmt_duration(ns), shown);
    }
    assert_eq!(fmt_duration(4_531_561_613), "4.53 s");
    assert_eq!(fmt_grouped(u64::MAX, ','), "18,446,744,073,709,551,615");
    assert_eq!(fmt_grouped(123, ','), "123");
}
