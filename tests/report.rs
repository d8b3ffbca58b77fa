//! What must hold of a report whatever it looks like.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, missing_docs)]

mod report_sample;

use report_sample::{NASTY, long_wide, one_side, two_sides};
use serde_json::Value;
use trace_attr::compare::{Change, Comparison, Incomparable, Over, Verdict};
use trace_attr::model::Nanos;
use trace_attr::report::{Format, ReportOptions, write};
use unicode_width::UnicodeWidthStr;

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

fn markdown(comparison: &Comparison) -> String {
    report(comparison, Format::Markdown, &ReportOptions::default())
}

fn json(comparison: &Comparison) -> Value {
    serde_json::from_str(&report(comparison, Format::Json, &ReportOptions::default())).unwrap()
}

/// Lines of a section of the terminal report, from its headings on.
fn section(text: &str, title: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != title).skip(1);
    lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn b38_the_second_column_starts_at_one_display_column() {
    let mut comparison = two_sides();
    comparison.phases.retain(|row| !row.flags.contains(&"coalesced"));
    for (width, longest) in [(80, 40), (200, 200)] {
        let lines = section(&terminal(&comparison, width), "Phases");
        let rule = lines.iter().position(|line| line.starts_with('─')).unwrap();
        // Right-aligned numbers have the same decimals, so their points stand at one column.
        let column = |line: &str| line.rfind("only A").map(|at| line[..at].width());
        let rows = lines[rule + 1..].iter().filter(|line| line.contains("only A"));
        let columns: Vec<_> = rows.map(|line| column(line).unwrap()).collect();
        assert!(columns.len() >= 6, "{lines:#?}");
        assert!(
            columns.iter().all(|column| *column == columns[0]),
            "{columns:?} {lines:#?}"
        );
        let long = lines.iter().find(|line| line.starts_with('試')).unwrap();
        let key = long.split('…').next().unwrap();
        assert!(key.width() < longest && long_wide().starts_with(key), "{long}");
    }
}

#[test]
fn no_table_is_wider_than_the_page() {
    for comparison in [two_sides(), one_side()] {
        for width in [60, 72, 80, 100, 120, 140, 160, 200, 250] {
            for show in [false, true] {
                let options = ReportOptions {
                    width,
                    show_kernels: show,
                    show_trials: show,
                    ..ReportOptions::default()
                };
                let text = report(&comparison, Format::Terminal, &options);
                for line in text.lines() {
                    assert!(line.width() <= width, "{} > {width}: {line}\n{text}", line.width());
                }
            }
        }
    }
}

#[test]
fn b40_not_measured_is_not_zero() {
    let comparison = two_sides();
    let value = json(&comparison);
    let blit = value["channels"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["key"] == "Blit")
        .unwrap();
    assert!(blit["a"]["latency_us"].is_null());
    assert!(blit["a"]["trials"][0]["latency_ns"].is_null());
    let text = terminal(&comparison, 80);
    let blit = section(&text, "Channels")
        .into_iter()
        .find(|line| line.starts_with("Blit"))
        .unwrap();
    let cells: Vec<&str> = blit.split_whitespace().collect();
    assert_eq!(cells, ["Blit", "15.62", "–", "6.25", "–", "+9.38", "+150.0", "slower"]);
    assert!(markdown(&comparison).contains("| Blit | 1 | 14.06 | 15.62 | 15.28–16.15 | – | – |"));
}

/// Pipes that GitHub takes for the border of a cell.
fn borders(line: &str) -> usize {
    line.replace("\\\\", "").replace("\\|", "").matches('|').count()
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_label_keeps_the_tables_in_shape(label in "\\PC{0,40}|[\u{0}-\u{ff}]{0,60}|[👩🏽‍🚀🇩🇪❤️|\\\\`\u{301}لا]{0,80}", width in 60_usize..220) {
        let mut comparison = two_sides();
        comparison.phases[0].key.clone_from(&label);
        comparison.a.name.clone_from(&label);
        comparison.a.trials[0].input.clone_from(&label);
        comparison.a.trials[0].slowest[0].phase.clone_from(&label);
        comparison.findings[0].text.clone_from(&label);
        for line in terminal(&comparison, width).lines() {
            assert!(line.width() <= width, "{} > {width}: {line:?}", line.width());
            assert!(!line.trim_start().starts_with("::"), "{line}");
        }
        let text = markdown(&comparison);
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with('|'))) {
            assert_eq!(borders(pair[0]), borders(pair[1]), "{pair:#?}");
        }
        json(&comparison);
    }
}

#[test]
fn b61_every_line_of_a_table_has_the_same_pipes() {
    for comparison in [two_sides(), one_side()] {
        let text = markdown(&comparison);
        let mut before: Option<usize> = None;
        let mut tables = 0;
        for line in text.lines() {
            let table = line.starts_with('|').then(|| borders(line));
            match (before, table) {
                (Some(before), Some(now)) => assert_eq!(before, now, "{line}"),
                (None, Some(_)) => tables += 1,
                _ => {}
            }
            before = table;
        }
        assert!(tables >= 8, "{tables}");
        assert!(text.contains("a\\|b \\`c\\`\\\\u{a}\\\\u{1b}"), "the nasty label");
        assert!(!text.contains("<img") && !text.contains("@octocat"));
    }
}

#[test]
fn a_huge_comment_is_cut_at_a_row() {
    let mut comparison = two_sides();
    let row = comparison.phases[0].clone();
    comparison.phases = (0..3_000)
        .map(|n| {
            let mut row = row.clone();
            row.key = format!("phase {n} \u{301}{}", "|\u{301}".repeat(n % 50));
            row
        })
        .collect();
    let text = markdown(&comparison);
    assert!(text.len() <= 60_000, "{}", text.len());
    assert!(text.contains(" more rows, see JSON\n"));
    for heading in ["Kernels", "Left out", "How this was computed"] {
        assert!(text.contains(heading), "{heading}");
    }
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
}

#[test]
fn labels_are_harmless_in_text() {
    for text in [terminal(&two_sides(), 100), markdown(&two_sides())] {
        for hidden in ['\u{1b}', '\u{202e}', '\u{feff}', '\u{200b}', '\r'] {
            assert!(!text.contains(hidden), "{hidden:?}");
        }
        for line in text.lines() {
            assert!(
                !line.trim_start().starts_with("::") && !line.contains("##[") && !line.contains("##vso["),
                "{line}"
            );
        }
    }
    let keys = json(&two_sides());
    assert!(keys["phases"].as_array().unwrap().iter().any(|row| row["key"] == NASTY));
}

#[test]
fn colour_is_only_an_addition() {
    let options = ReportOptions {
        width: 100,
        color: true,
        ..ReportOptions::default()
    };
    let colored = report(&two_sides(), Format::Terminal, &options);
    for code in [
        "\u{1b}[1mhf2q is slower",
        "\u{1b}[2m",
        "\u{1b}[38;5;1m+929.0",
        "\u{1b}[38;5;2m-5,218.8",
    ] {
        assert!(colored.contains(code), "{code:?}");
    }
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trim = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trim(&plain), trim(&terminal(&two_sides(), 100)));
}

#[test]
fn sides_that_do_not_compare_have_no_colour() {
    let mut comparison = two_sides();
    let text = "the GPUs differ: M5 Max and M1".to_owned();
    comparison.incomparable.push(Incomparable {
        code: "gpu_differs",
        text,
    });
    comparison.gate = None;
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
    let options = ReportOptions {
        width: 100,
        color: true,
        ..ReportOptions::default()
    };
    let report = report(&comparison, Format::Terminal, &options);
    assert!(!report.contains("\u{1b}[38;5;1m") && !report.contains("\u{1b}[38;5;2m"));
    assert!(report.contains("not comparable: the GPUs differ"));
}

#[test]
fn the_command_is_private() {
    let command = Some("trace-attr compare --a /Users/user1/x --token SECRET123".to_owned());
    let hidden = ReportOptions {
        command,
        ..ReportOptions::default()
    };
    let shown = ReportOptions {
        show_private: true,
        ..hidden.clone()
    };
    for format in [Format::Terminal, Format::Json, Format::Markdown] {
        assert!(
            !report(&two_sides(), format, &hidden).contains("SECRET123"),
            "{format:?}"
        );
        assert!(report(&two_sides(), format, &shown).contains("SECRET123"), "{format:?}");
    }
}

#[test]
fn json_keeps_its_contract() {
    let schema: Value = serde_json::from_str(include_str!("../docs/compare.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut windows = two_sides();
    windows.settings.window_b.skip_first = Some(Nanos(u64::MAX));
    for comparison in [two_sides(), one_side(), windows] {
        let value = json(&comparison);
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
    let mut broken = json(&two_sides());
    broken["total"]["a"]["extra"] = Value::from(1);
    assert!(!validator.is_valid(&broken));
}

#[test]
fn json_of_one_side_has_no_b() {
    let value = json(&one_side());
    assert_eq!(value["schema"], "trace-attr.report");
    for at in ["/b", "/kernels/b", "/slowest/b", "/gaps/longest/b"] {
        assert!(value.pointer(at).is_none(), "{at}");
    }
    assert!(value["total"]["delta_us"].is_null());
}

#[test]
fn json_says_what_is_missing_on_a_side() {
    let value = json(&two_sides());
    let row = |key: &str| {
        value["phases"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["key"] == key)
            .unwrap()
            .clone()
    };
    let only_a = row("moe.ffn.gate_up");
    assert!(only_a["b"].is_null() && only_a["delta_pct"].is_null() && only_a["share_pct"].is_number());
    let only_b = row("llama.only");
    assert!(only_b["a"].is_null());
    assert_eq!(only_b["delta_pct"], -100);
    assert_eq!(row("never.ran")["delta_pct"], 0);
    assert_eq!(value["a"]["trials"][0]["left_out"].as_object().unwrap().len(), 9);
}

#[test]
fn numbers_that_are_none_do_not_reach_json() {
    let mut comparison = two_sides();
    let nan = Over {
        median: f64::NAN,
        low: f64::NAN,
        high: f64::INFINITY,
    };
    comparison.total.a.as_mut().unwrap().p50_us = Some(nan);
    comparison.total.change = Some(Change::OnlyA {
        delta_us: f64::INFINITY,
        share_pct: None,
    });
    let value = json(&comparison);
    assert!(value["total"]["a"]["p50_us"].is_null() && value["total"]["delta_us"].is_null());
    terminal(&comparison, 80);
    markdown(&comparison);
}

#[test]
fn the_same_comparison_gives_the_same_bytes() {
    for format in [Format::Terminal, Format::Json, Format::Markdown] {
        let options = ReportOptions {
            show_kernels: true,
            show_trials: true,
            ..ReportOptions::default()
        };
        assert_eq!(
            report(&two_sides(), format, &options),
            report(&two_sides(), format, &options)
        );
    }
}

#[test]
fn without_a_unit_nothing_is_per_token() {
    for format in [Format::Terminal, Format::Markdown] {
        let text = report(&one_side(), format, &ReportOptions::default());
        let named = text.matches("disp/tok").count();
        assert_eq!(text.matches("/tok").count(), named, "{text}");
    }
}

#[test]
fn units_other_than_tokens_keep_their_name() {
    let mut comparison = two_sides();
    comparison.settings.unit = Some("frame".into());
    let text = terminal(&comparison, 120);
    assert!(text.contains("µs/frame") && text.contains("divided by 64 frames in each trial"));
}

#[test]
fn two_sides_of_one_name_are_told_apart() {
    let mut comparison = two_sides();
    comparison.b.as_mut().unwrap().name = "hf2q".into();
    let text = terminal(&comparison, 120);
    assert!(text.contains("hf2q (A)") && text.contains("hf2q (B)"));
}

#[test]
fn the_format_of_a_file_is_its_extension() {
    let of = |path: &str| Format::of_path(path.as_ref());
    assert_eq!(of("out/x.JSON"), Some(Format::Json));
    assert_eq!(of("x.md"), Some(Format::Markdown));
    assert_eq!(of("x.txt"), Some(Format::Terminal));
    assert_eq!((of("x.csv"), of("x.xml")), (Some(Format::Csv), Some(Format::Junit)));
    assert_eq!((of("x.html"), of("x.htm")), (Some(Format::Html), Some(Format::Html)));
    assert_eq!([of("json"), of("x.docx")], [None, None]);
}
