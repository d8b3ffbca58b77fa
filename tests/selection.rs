//! What `--only`, `--sort`, `--top` and the lines of blocks show, and that nothing goes without a word.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs
)]

mod report_sample;

use std::num::NonZeroUsize;

use report_sample::{one_side, two_sides};
use trace_attr::compare::{Change, Comparison};
use trace_attr::report::{Format, ReportOptions, Section, Selection, SortBy, write};
use unicode_width::UnicodeWidthStr;

fn report(comparison: &Comparison, format: Format, selection: Selection) -> String {
    let options = ReportOptions {
        width: 120,
        selection,
        ..ReportOptions::default()
    };
    written(comparison, format, &options)
}

fn written(comparison: &Comparison, format: Format, options: &ReportOptions) -> String {
    let mut out = Vec::new();
    write(comparison, format, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn only(sections: &[Section]) -> Selection {
    Selection {
        only: sections.to_vec(),
        ..Selection::default()
    }
}

/// Headings of a terminal report.
fn titles(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let after_blank = lines.windows(2).filter(|pair| pair[0].is_empty()).map(|pair| pair[1]);
    after_blank.filter(|line| !line.starts_with("A wider page")).collect()
}

/// Keys of the rows of a table, and the lines behind it.
fn rows<'a>(text: &'a str, title: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let section = text.lines().skip_while(|line| *line != title);
    let table = section.skip_while(|line| !line.starts_with('─')).skip(1);
    let (rows, after): (Vec<&str>, Vec<&str>) = table
        .take_while(|line| !line.is_empty())
        .partition(|line| !line.starts_with(' '));
    (rows.iter().map(|row| row.split("  ").next().unwrap()).collect(), after)
}

#[test]
fn only_the_sections_that_are_asked_for_and_the_gate() {
    let comparison = two_sides();
    let text = report(
        &comparison,
        Format::Terminal,
        only(&[Section::Phases, Section::Buckets]),
    );
    // In the order of the report, not of the option.
    assert_eq!(
        titles(&text),
        ["Gate: failed (1 of 4 rows)", "Duration buckets", "Phases"],
        "{text}"
    );
    // The outcome is always there.
    let whole = report(&comparison, Format::Terminal, Selection::default());
    assert_eq!(text.lines().next(), whole.lines().next());
    let markdown = report(&comparison, Format::Markdown, only(&[Section::Channels]));
    assert!(
        markdown.contains("Channels") && !markdown.contains("Phases"),
        "{markdown}"
    );
}

#[test]
fn warnings_and_rows_that_do_not_count_are_not_hidden_without_a_word() {
    let comparison = two_sides();
    let told = |selection| {
        let text = report(&comparison, Format::Terminal, selection);
        let head: Vec<String> = text
            .lines()
            .take_while(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        ["1 warning: see --only notes", "rows left out: see --only left-out"]
            .map(|told| head.iter().any(|line| line.contains(told)))
    };
    assert_eq!(told(only(&[Section::Buckets])), [true, true]);
    assert_eq!(told(only(&[Section::Notes])), [false, true]);
    assert_eq!(told(only(&[Section::LeftOut])), [true, false]);
    assert_eq!(told(Selection::default()), [false, false]);
}

#[test]
fn json_and_csv_hold_everything() {
    let comparison = two_sides();
    let selection = Selection {
        only: vec![Section::Trials],
        sort: Some(SortBy::Name),
        top: NonZeroUsize::new(1),
    };
    for format in [Format::Json, Format::Csv] {
        let all = report(&comparison, format, Selection::default());
        assert_eq!(report(&comparison, format, selection.clone()), all);
    }
}

#[test]
fn rows_come_in_the_order_that_is_asked_for() {
    let comparison = two_sides();
    let sorted = |by| {
        let selection = Selection {
            sort: Some(by),
            ..Selection::default()
        };
        let text = report(&comparison, Format::Terminal, selection.clone());
        let (keys, _) = rows(&text, "Channels");
        let buckets = rows(&text, "Duration buckets").0.len();
        assert_eq!(buckets, comparison.buckets.len() + 2);
        keys.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let time = |key: &str, a: bool| {
        let row = comparison.channels.iter().find(|row| row.key == key).unwrap();
        let cell = if a { &row.a } else { &row.b };
        cell.as_ref().map_or(f64::NEG_INFINITY, |cell| cell.total_us.median)
    };
    let by_name = sorted(SortBy::Name);
    let (total, names) = by_name.split_last().unwrap();
    assert_eq!(total, "TOTAL");
    assert!(
        names.is_sorted() && names.len() == comparison.channels.len(),
        "{names:?}"
    );
    for (by, a) in [(SortBy::A, true), (SortBy::B, false)] {
        let keys = sorted(by);
        let (_, keys) = keys.split_last().unwrap();
        assert!(keys.is_sorted_by(|x, y| time(x, a) >= time(y, a)), "{keys:?}");
    }
    // Buckets are an axis: they stay in order whatever is asked for.
    let text = report(
        &comparison,
        Format::Terminal,
        Selection {
            sort: Some(SortBy::A),
            ..Selection::default()
        },
    );
    let keys: Vec<&str> = comparison.buckets.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(rows(&text, "Duration buckets").0[..keys.len()], keys);
}

#[test]
fn a_cut_table_says_how_many_rows_are_missing() {
    let comparison = two_sides();
    let selection = Selection {
        top: NonZeroUsize::new(2),
        ..Selection::default()
    };
    let text = report(&comparison, Format::Terminal, selection);
    let (keys, after) = rows(&text, "Phases");
    assert_eq!((keys.len(), keys[2]), (3, "TOTAL"));
    let more = comparison.phases.len() - 2;
    assert!(
        after
            .iter()
            .any(|line| line.contains(&format!("{more} more rows, in TOTAL too"))),
        "{after:#?}"
    );
}

#[test]
fn of_five_hundred_equal_phases_the_one_that_changed_is_seen() {
    let mut comparison = two_sides();
    let mut template = comparison
        .phases
        .iter()
        .find(|row| row.a.is_some() && row.b.is_some())
        .unwrap()
        .clone();
    template.change = Some(Change::Both {
        delta_us: 0.0,
        delta_pct: Some(0.0),
        share_pct: Some(0.0),
        count_pct: Some(0.0),
        per_submission_pct: Some(0.0),
    });
    comparison.phases = (0..500)
        .map(|number| {
            let mut row = template.clone();
            row.key = format!("phase {number:03}");
            row
        })
        .collect();
    comparison.phases[317].change = Some(Change::Both {
        delta_us: -3.0,
        delta_pct: Some(-12.0),
        share_pct: Some(-0.1),
        count_pct: Some(0.0),
        per_submission_pct: Some(-12.0),
    });
    for by in [SortBy::Change, SortBy::Percent] {
        let selection = Selection {
            sort: Some(by),
            top: NonZeroUsize::new(1),
            ..Selection::default()
        };
        let text = report(&comparison, Format::Terminal, selection);
        assert_eq!(rows(&text, "Phases").0, ["phase 317", "TOTAL"]);
    }
}

#[test]
fn the_durations_of_both_sides_stand_over_one_axis() {
    let options = ReportOptions {
        width: 80,
        show_sparklines: true,
        selection: only(&[Section::Buckets]),
        ..ReportOptions::default()
    };
    let text = written(&two_sides(), Format::Terminal, &options);
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.width() <= 80));
    // Without a second side there is one line; without durations, as from an old baseline, there is none.
    let blocks = |comparison: &Comparison| {
        let text = written(comparison, Format::Terminal, &options);
        text.lines().filter(|line| line.contains(['▁', '█'])).count()
    };
    let mut old = one_side();
    assert_eq!((blocks(&two_sides()), blocks(&old)), (2, 1));
    old.histogram.clear();
    assert_eq!(blocks(&old), 0);
}
