//! `--label-map`: phases that two engines call differently become one row, and the report says how much was matched.
//!
//! A calls its work `engine.layer.attn` and so on; B calls the same work `mha` and `mlp`. Both call the last one `head`.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp
)]

mod command;
mod support;

use command::{Place, Ran};
use serde_json::{Value, json};
use support::short::{ShortRow, doc, r};

/// Submissions one after the other, 1 ms apart: labels with µs.
fn work(labels: &[(&str, u64)]) -> Vec<ShortRow> {
    let row =
        |(at, (label, us)): (u64, &(&str, u64))| r(at * 1_000_000, us * 1_000).label(*label).encoder(at).buffer(at);
    (1..).zip(labels).map(row).collect()
}

fn engines() -> Place {
    let place = Place::new();
    let a = [
        ("engine.layer.0.attn:k", 300),
        ("engine.layer.1.attn:k", 100),
        ("engine.layer.0.ffn:k", 200),
        ("head:k", 50),
        ("engine.sample:k", 30),
        ("Compute Command 0", 20),
    ];
    let b = [
        ("mha 0:k", 250),
        ("mha 1:k", 150),
        ("mlp:k", 180),
        ("head:k", 60),
        ("copy:k", 10),
    ];
    place.write("a.xml", doc(&work(&a)));
    place.write("b.xml", doc(&work(&b)));
    place
}

const MAP: &str = "\
[[phase]]
name = 'attention'
a = '\\.attn$'
b = '^mha \\d$'

[[phase]]
name = 'engine.layer.ffn'  # as A calls it
b = '^mlp$'
";

fn compare(place: &Place, map: &str, options: &[&str]) -> Ran {
    place.write("map.toml", map);
    place.run(
        [
            &["compare", "--a", "a.xml", "--b", "b.xml", "--label-map", "map.toml"],
            options,
        ]
        .concat(),
    )
}

fn json_of(map: &str) -> Value {
    compare(&engines(), map, &["--format", "json"]).json()
}

/// Phases with the time of both sides.
fn phases(report: &Value) -> Vec<(String, Value, Value)> {
    let rows = report["phases"].as_array().unwrap().iter();
    rows.map(|row| {
        let cell = |side: &str| row[side]["total_us"].clone();
        (row["key"].as_str().unwrap().to_owned(), cell("a"), cell("b"))
    })
    .collect()
}

#[test]
fn phases_with_different_names_become_one_row() {
    let report = json_of(MAP);
    let row = |key: &str, a: Value, b: Value| (key.to_owned(), a, b);
    assert_eq!(
        phases(&report),
        [
            row("attention", json!(400), json!(400)),
            row("engine.layer.ffn", json!(200), json!(180)),
            row("head", json!(50), json!(60)),
            row("engine.sample", json!(30), Value::Null),
            row("(unlabelled)", json!(20), Value::Null),
            row("copy", Value::Null, json!(10)),
        ]
    );
    // Wherever a report speaks of phases, it means these.
    assert_eq!(report["slowest"]["b"][0]["phase"], "attention");
    let gaps = report["gaps"]["longest"]["b"].as_array().unwrap();
    assert!(
        gaps.iter()
            .all(|gap| gap["after"] != "mha 0" && gap["before"] != "mha 1"),
        "{gaps:?}"
    );
}

#[test]
fn the_report_says_what_each_entry_took_and_what_none_did() {
    let report = json_of(MAP);
    let map = &report["label_map"];
    assert_eq!(
        map["rules"],
        json!([
            {
                "name": "attention", "a_pattern": "\\.attn$", "b_pattern": "^mha \\d$",
                "a": {"phases": ["engine.layer.attn"], "total_us": 400, "share_pct": 100.0 * 400.0 / 700.0},
                "b": {"phases": ["mha 0", "mha 1"], "total_us": 400, "share_pct": 100.0 * 400.0 / 650.0},
            },
            {
                "name": "engine.layer.ffn", "a_pattern": null, "b_pattern": "^mlp$",
                // A phase that is already called so belongs to the entry.
                "a": {"phases": ["engine.layer.ffn"], "total_us": 200, "share_pct": 100.0 * 200.0 / 700.0},
                "b": {"phases": ["mlp"], "total_us": 180, "share_pct": 100.0 * 180.0 / 650.0},
            },
        ])
    );
    assert_eq!(
        (&map["matched"]["a"]["total_us"], &map["matched"]["b"]["total_us"]),
        (&json!(600), &json!(580))
    );
    assert_eq!(
        (&map["same_name"]["a"]["total_us"], &map["same_name"]["b"]["total_us"]),
        (&json!(50), &json!(60))
    );
    // Most time first; phases without a label are among them.
    let names = |side: &str| -> Vec<String> {
        let phases = map["unmatched"][side].as_array().unwrap().iter();
        phases
            .map(|phase| format!("{} {}", phase["phase"].as_str().unwrap(), phase["total_us"]))
            .collect()
    };
    assert_eq!(names("a"), ["engine.sample 30", "(unlabelled) 20"]);
    assert_eq!(names("b"), ["copy 10"]);
    // Matched, called the same and left are all there is.
    for (side, total) in [("a", 700.0), ("b", 650.0)] {
        let left = map["unmatched"][side].as_array().unwrap().iter();
        let left: f64 = left.map(|phase| phase["total_us"].as_f64().unwrap()).sum();
        let of = |what: &str| map[what][side]["total_us"].as_f64().unwrap();
        assert_eq!(of("matched") + of("same_name") + left, total);
    }
    // Without a map nothing is said of one.
    let plain = engines().run(["compare", "--a", "a.xml", "--b", "b.xml", "--format", "json"]);
    assert_eq!(plain.json().get("label_map"), None);
}

#[test]
fn text_reports_show_the_same() {
    for format in ["terminal", "markdown"] {
        let ran = compare(&engines(), MAP, &["--format", format]);
        let text = ran.done().stdout.replace('\\', "");
        let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "Label map",
            "MATCHED",
            "SAME NAME",
            "NOT MATCHED",
            "not matched: engine.sample 30.00 µs (4.3 %), (unlabelled) 20.00 µs (2.9 %)",
            "not matched: copy 10.00 µs (1.5 %)",
        ] {
            assert!(folded.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn one_side_is_named_by_the_expressions_for_a() {
    let place = engines();
    place.write("map.toml", MAP);
    let report = place
        .run(["report", "a.xml", "--label-map", "map.toml", "--format", "json"])
        .json();
    assert_eq!(report["phases"][0]["key"], "attention");
    assert_eq!(report["label_map"]["rules"][0]["b"], Value::Null);
    assert_eq!(report["label_map"]["same_name"]["a"], Value::Null);
    assert_eq!(report["label_map"]["unmatched"].get("b"), None);
    // An expression for the side that is not there is no fault.
    assert!(
        report["notes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|note| note["code"] != "label_rule_unused")
    );
}

#[test]
fn an_expression_that_takes_nothing_is_a_note_that_names_it() {
    let map = MAP.to_owned() + "[[phase]]\nname = 'late'\na = 'attn'\nb = 'copy'\n";
    let report = json_of(&map);
    let notes: Vec<&str> = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|note| note["code"] == "label_rule_unused")
        .map(|note| note["text"].as_str().unwrap())
        .collect();
    // The first entry has taken A's attention already; B's copy is there.
    assert_eq!(
        notes,
        ["label map: entry 3 (`late`): `attn` matches no phase of bench (A) that an earlier entry left"]
    );
}

#[test]
fn a_baseline_keeps_the_names_that_it_was_stored_with() {
    let place = engines();
    place.write("map.toml", MAP);
    place
        .run(["report", "a.xml", "--label-map", "map.toml", "-o", "base.json"])
        .done();
    let options = [
        "compare",
        "--a",
        "a.xml",
        "--baseline",
        "base.json",
        "--label-map",
        "map.toml",
        "--format",
        "json",
    ];
    let report = place.run(options).json();
    assert_eq!(report["phases"][0]["key"], "attention");
    assert_eq!(report["phases"][0]["b"]["total_us"], 400);
    assert_eq!(report["label_map"]["matched"]["b"], Value::Null);
    let codes: Vec<&Value> = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| &note["code"])
        .collect();
    assert!(codes.contains(&&json!("label_map_not_applied")), "{codes:?}");
}

#[test]
fn a_map_that_cannot_be_used_is_refused_before_any_input_is_read() {
    for (map, parts) in [
        ("", &["map.toml: ", "there is no entry"][..]),
        ("[[phase]]\nname = 'x'\na = '('\n", &["entry 1 (`x`)", "unclosed group"]),
        ("[[phase]]\nname = 'x'\n", &["entry 1 (`x`)", "match nothing"]),
    ] {
        let place = Place::new();
        compare(&place, map, &[]).refused(parts);
    }
    let ran = Place::new().run(["report", "a.xml", "--label-map", "gone.toml"]);
    ran.refused(&["gone.toml"]);
}

#[test]
fn the_schema_knows_it() {
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(command::here("docs/compare.schema.json")).unwrap()).unwrap();
    let part = json!({"$ref": "#/$defs/label_map", "$defs": schema["$defs"]});
    let validator = jsonschema::validator_for(&part).unwrap();
    let place = engines();
    let two_sides = compare(&place, MAP, &["--format", "json"]).json();
    let one_side = place
        .run(["report", "a.xml", "--label-map", "map.toml", "--format", "json"])
        .json();
    for report in [two_sides, one_side] {
        let errors: Vec<String> = validator
            .iter_errors(&report["label_map"])
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}
