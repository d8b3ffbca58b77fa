//! What each format looks like, kept in `tests/snapshots`: look at a change before you accept it.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, missing_docs)]

mod report_sample;

use report_sample::{one_side, two_sides};
use trace_attr::compare::Comparison;
use trace_attr::report::{Format, ReportOptions, write};

fn report(comparison: &Comparison, format: Format, options: &ReportOptions) -> String {
    let mut out = Vec::new();
    write(comparison, format, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn terminal(comparison: &Comparison, width: usize) -> String {
    report(
        comparison,
        Format::Terminal,
        &ReportOptions {
            width,
            ..ReportOptions::default()
        },
    )
}

#[test]
fn terminal_80() {
    insta::assert_snapshot!(terminal(&two_sides(), 80));
}

#[test]
fn terminal_100() {
    insta::assert_snapshot!(terminal(&two_sides(), 100));
}

#[test]
fn terminal_200() {
    insta::assert_snapshot!(terminal(&two_sides(), 200));
}

#[test]
fn terminal_everything_shown() {
    let options = ReportOptions {
        width: 120,
        show_kernels: true,
        show_trials: true,
        ..ReportOptions::default()
    };
    insta::assert_snapshot!(report(&two_sides(), Format::Terminal, &options));
}

#[test]
fn terminal_one_side() {
    insta::assert_snapshot!(terminal(&one_side(), 100));
}

#[test]
fn markdown() {
    insta::assert_snapshot!(report(&two_sides(), Format::Markdown, &ReportOptions::default()));
}

#[test]
fn markdown_one_side() {
    insta::assert_snapshot!(report(&one_side(), Format::Markdown, &ReportOptions::default()));
}

#[test]
fn json() {
    let text = report(&two_sides(), Format::Json, &ReportOptions::default());
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "[version]"));
}

#[test]
fn json_one_side() {
    let text = report(&one_side(), Format::Json, &ReportOptions::default());
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "[version]"));
}

/// The formats for machines, of two sides without a gate; `tests/formats.rs` has them with one.
#[test]
fn machine_formats() {
    let mut text = String::new();
    for format in [
        Format::Junit,
        Format::Github,
        Format::Benchstat,
        Format::GithubActionBenchmark,
        Format::Bencher,
        Format::Csv,
    ] {
        text += &format!("---------- {format:?}\n");
        text += &report(&two_sides(), format, &ReportOptions::default());
    }
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "[version]"));
}
