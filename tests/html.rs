//! The HTML page: complete, closed to the outside, with the numbers of the other formats, whatever it is given.
//!
//! How it behaves under the mouse and the keyboard is tested in a browser by `tests/consumers/run`.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, missing_docs)]

mod report_sample;

use std::collections::BTreeSet;

use quick_xml::Reader;
use quick_xml::events::Event;
use report_sample::{NASTY, one_side, two_sides};
use serde_json::Value;
use trace_attr::compare::{Comparison, Incomparable, Verdict};
use trace_attr::report::{Format, ReportOptions, write};

fn report(comparison: &Comparison, format: Format, width: usize) -> String {
    let options = ReportOptions {
        width,
        show_kernels: true,
        show_trials: true,
        ..ReportOptions::default()
    };
    let mut out = Vec::new();
    write(comparison, format, &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A page taken apart by an XML parser: style, scripts and data aside, it is also well-formed XML.
#[derive(Default)]
struct Page {
    text: String,
    tags: BTreeSet<String>,
    /// Name and value of every attribute.
    attributes: Vec<(String, String)>,
    /// Tables of the class `sheet` as rows of cells without their headings, each under the id of its section.
    tables: Vec<(String, Vec<Vec<String>>)>,
    /// Rows of the charts.
    charts: Vec<Vec<String>>,
    /// Contents of data blocks by id.
    data: Vec<(String, String)>,
}

impl Page {
    fn of(comparison: &Comparison) -> Page {
        Page::parse(&report(comparison, Format::Html, 100))
    }

    fn parse(text: &str) -> Page {
        let mut page = Page::default();
        // What is between these tags is no XML.
        let mut markup = String::new();
        let mut rest = text.strip_prefix("<!DOCTYPE html>\n").unwrap();
        while let Some(at) = ["<script", "<style"].iter().filter_map(|tag| rest.find(tag)).min() {
            let (before, from) = rest.split_at(at);
            let (head, body) = from.split_once('>').unwrap();
            let end = if from.starts_with("<script") {
                "</script>"
            } else {
                "</style>"
            };
            let (content, after) = body.split_once(end).unwrap();
            if let Some((_, id)) = head.split_once("id=\"") {
                page.data
                    .push((id.trim_end_matches('"').to_owned(), content.to_owned()));
            }
            markup.push_str(before);
            rest = after;
        }
        markup.push_str(rest);
        page.walk(&markup);
        page
    }

    fn walk(&mut self, markup: &str) {
        let mut reader = Reader::from_str(markup);
        reader.config_mut().check_end_names = true;
        let (mut sections, mut kind, mut in_cell) = (Vec::<(String, String)>::new(), String::new(), false);
        let mut in_head = false;
        loop {
            let event = reader.read_event().unwrap();
            match &event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let name = tag.name().as_ref().to_owned();
                    self.tags.insert(name.clone());
                    let mut id = String::new();
                    for attribute in tag.attributes() {
                        let attribute = attribute.unwrap();
                        let key = attribute.key.as_ref().to_owned();
                        let value = quick_xml::escape::unescape(&attribute.value).unwrap().into_owned();
                        match (key.as_str(), name.as_str()) {
                            ("id", _) => id.clone_from(&value),
                            ("class", "table") => kind.clone_from(&value),
                            _ => {}
                        }
                        self.attributes.push((key, value));
                    }
                    if matches!(event, Event::Start(_)) {
                        if ["section", "details"].contains(&name.as_str()) {
                            sections.push((name.clone(), id));
                        }
                        match name.as_str() {
                            "table" if kind == "sheet" => {
                                let id = sections.last().map(|(_, id)| id.clone()).unwrap();
                                self.tables.push((id, Vec::new()));
                            }
                            "thead" => in_head = true,
                            "tr" if !in_head => self.rows(&kind).push(Vec::new()),
                            "td" | "th" if !in_head => {
                                self.rows(&kind).last_mut().unwrap().push(String::new());
                                in_cell = true;
                            }
                            "svg" => in_cell = false,
                            _ => {}
                        }
                    }
                }
                Event::End(tag) => match tag.name().as_ref() {
                    "section" | "details" => drop(sections.pop()),
                    "td" | "th" => in_cell = false,
                    "thead" => in_head = false,
                    _ => {}
                },
                Event::Text(text) => self.add(text, &kind, in_cell),
                Event::GeneralRef(name) => {
                    let text = match name.as_ref() {
                        "amp" => "&",
                        "lt" => "<",
                        "gt" => ">",
                        "quot" => "\"",
                        "#39" => "'",
                        other => panic!("&{other};"),
                    };
                    self.add(text, &kind, in_cell);
                }
                Event::Eof => break,
                _ => {}
            }
        }
    }

    fn rows(&mut self, kind: &str) -> &mut Vec<Vec<String>> {
        if kind == "sheet" {
            &mut self.tables.last_mut().unwrap().1
        } else {
            &mut self.charts
        }
    }

    fn add(&mut self, text: &str, kind: &str, in_cell: bool) {
        self.text.push_str(text);
        if in_cell {
            self.rows(kind).last_mut().unwrap().last_mut().unwrap().push_str(text);
        }
    }

    fn table(&self, id: &str) -> &Vec<Vec<String>> {
        &self
            .tables
            .iter()
            .find(|(own, _)| own == id)
            .unwrap_or_else(|| panic!("{id}"))
            .1
    }

    fn data(&self, id: &str) -> Option<Value> {
        let (_, json) = self.data.iter().find(|(own, _)| own == id)?;
        Some(serde_json::from_str(json).unwrap())
    }

    fn values(&self, attribute: &str) -> Vec<&str> {
        let own = self.attributes.iter().filter(|(name, _)| name == attribute);
        own.map(|(_, value)| value.as_str()).collect()
    }
}

#[test]
fn the_page_says_first_who_is_slower_by_how_much_and_why_to_believe_it() {
    let page = Page::of(&two_sides());
    let text = page.text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The title of the page is the headline too.
    let text = text.split_once("GPU time: hf2q against llama").unwrap().1;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let order = [
        "hf2q is slower than llama by ",
        "difference, A − B",
        "90 % interval",
        "gate: failed",
        "warning: hf2q-2: 12 of 12,802 submissions",
        "Findings",
        "Where the time goes",
        "How long submissions take",
        "How far to believe it",
        "When the GPU is busy",
        "How this was computed",
    ];
    let places: Vec<usize> = order.iter().map(|part| at(part)).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn every_row_of_the_terminal_report_is_there_with_the_same_numbers() {
    let words = |text: &str| {
        text.replace(',', " , ")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    for comparison in [two_sides(), one_side()] {
        let page = Page::of(&comparison);
        let terminal = report(&comparison, Format::Terminal, 2_000);
        let lines: BTreeSet<String> = terminal.lines().map(words).collect();
        let mut rows = 0;
        for (section, table) in &page.tables {
            // A long label is cut at another length, and a gate is written as lines.
            let whole = |row: &&Vec<String>| !row.iter().any(|cell| cell.contains('…'));
            if section.starts_with("gate") {
                continue;
            }
            for row in table.iter().filter(whole) {
                let row = words(&row.join(" "));
                rows += 1;
                assert!(lines.contains(&row), "{section}: {row}\n{terminal}");
            }
        }
        assert!(rows > 30, "{rows}");
    }
}

#[test]
fn the_charts_have_the_numbers_of_the_tables() {
    let page = Page::of(&two_sides());
    let phases = page.table("phases");
    let mut found = 0;
    for row in page.charts.iter().filter(|row| row.len() > 5) {
        let Some(same) = phases.iter().find(|line| line[0] == row[0]) else {
            continue;
        };
        found += 1;
        for number in row[2..5].iter().filter(|number| *number != "–") {
            assert!(same.contains(number), "{number} of {row:?} in {same:?}");
        }
    }
    assert!(found >= 8, "{found}");
}

#[test]
fn programs_find_the_json_report_in_the_page() {
    for comparison in [two_sides(), one_side()] {
        let json: Value = serde_json::from_str(&report(&comparison, Format::Json, 100)).unwrap();
        assert_eq!(Page::of(&comparison).data("trace-attr-report"), Some(json));
    }
}

#[test]
fn the_page_reaches_for_nothing_outside() {
    let text = report(&two_sides(), Format::Html, 100);
    let page = Page::parse(&text);
    let policy = page.values("content")[0];
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    for word in ["http:", "https:", "url(", "@import", "fetch(", "innerHTML", "eval("] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(page.values("href").iter().all(|href| href.starts_with('#')));
    let reaching = ["src", "style", "onclick", "onload", "onerror", "action", "xmlns"];
    assert!(reaching.iter().all(|name| page.values(name).is_empty()));
}

#[test]
fn ids_are_unique_and_links_lead_somewhere() {
    for comparison in [two_sides(), one_side()] {
        let page = Page::of(&comparison);
        let ids = page.values("id");
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
        for href in page.values("href") {
            assert!(unique.contains(href.trim_start_matches('#')), "{href}");
        }
    }
}

#[test]
fn labels_stay_text() {
    let long = "long ".repeat(2_000);
    let nasty = [
        NASTY,
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "<!--",
        "]]>",
        "\u{202e}a\u{0}\u{7f}",
        &long,
    ];
    let tags = Page::of(&two_sides()).tags;
    for label in nasty {
        let mut comparison = two_sides();
        comparison.phases[0].key = label.to_owned();
        comparison.a.name = label.to_owned();
        comparison.a.trials[0].input = label.to_owned();
        comparison.a.trials[0].process.name = label.to_owned();
        comparison.a.trials[0].slowest[0].phase = label.to_owned();
        comparison.findings[0].text = label.to_owned();
        comparison.notes[0].text = label.to_owned();
        comparison.settings.unit = Some(label.to_owned());
        for timeline in comparison
            .a
            .trials
            .iter_mut()
            .filter_map(|trial| trial.timeline.as_mut())
        {
            timeline.lanes[0].channel = Some(label.to_owned());
        }
        let text = report(&comparison, Format::Html, 100);
        assert!(
            !text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{label}"
        );
        let page = Page::parse(&text);
        assert_eq!(page.tags, tags, "{label}");
        assert_eq!(page.data("trace-attr-report").unwrap()["phases"][0]["key"], label);
        assert!(text.len() < 1_000_000, "{}", text.len());
    }
}

#[test]
fn five_hundred_phases_are_all_there() {
    let mut comparison = two_sides();
    let row = comparison.phases[2].clone();
    comparison.phases = (0..500)
        .map(|n| {
            let mut row = row.clone();
            row.key = format!("phase {n}");
            row
        })
        .collect();
    let page = Page::of(&comparison);
    let keys: BTreeSet<&str> = page.table("phases").iter().map(|row| row[0].as_str()).collect();
    assert!((0..500).all(|n| keys.contains(format!("phase {n}").as_str())));
    assert!(page.text.contains("The 12 phases of 500 that differ most"));
}

#[test]
fn what_a_comparison_does_not_have_is_absent() {
    let mut comparison = one_side();
    comparison.histogram.clear();
    comparison.a.trials[0].timeline = None;
    comparison.phases.clear();
    let page = Page::of(&comparison);
    assert!(page.data("trace-attr-timeline").is_none());
    let classes = page.values("class");
    for absent in ["histogram", "timeline", "interval"] {
        assert!(!classes.contains(&absent), "{absent}");
    }
    assert!(!page.text.contains("difference, A − B") && !page.text.contains("verdict"));
}

#[test]
fn sides_that_do_not_compare_are_not_called_slower() {
    let mut comparison = two_sides();
    comparison.gate = None;
    comparison.incomparable.push(Incomparable {
        code: "gpu_differs",
        text: "the GPUs differ: M5 Max and M1".to_owned(),
    });
    let tables = [
        &mut comparison.buckets,
        &mut comparison.encoders,
        &mut comparison.phases,
        &mut comparison.channels,
    ];
    let rows = tables.into_iter().flatten();
    for row in rows.chain([&mut comparison.busy, &mut comparison.total]) {
        row.judgement.as_mut().unwrap().verdict = Verdict::Incomparable;
    }
    let page = Page::of(&comparison);
    let classes = page.values("class");
    assert!(
        !classes
            .iter()
            .any(|class| class.contains("slower") || class.contains("worse"))
    );
    assert!(page.text.contains("not comparable: the GPUs differ: M5 Max and M1"));
}

#[test]
fn the_same_comparison_gives_the_same_page() {
    assert_eq!(
        report(&two_sides(), Format::Html, 100),
        report(&two_sides(), Format::Html, 40)
    );
}

/// The first picture of a class, an element to a line.
fn picture(text: &str, class: &str) -> String {
    let from = text.find(&format!("<svg class=\"{class}\"")).unwrap();
    let svg = &text[from..];
    svg[..svg.find("</svg>").unwrap() + 6].replace("><", ">\n<")
}

#[test]
fn pictures_are_rectangles_lines_and_dots_at_places_in_percent() {
    let page = report(&two_sides(), Format::Html, 100);
    let pictures = ["bars", "interval", "dots", "bins"].map(|class| picture(&page, class));
    insta::assert_snapshot!(pictures.join("\n\n"));
}
