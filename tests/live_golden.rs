//! The texts and files that are made of a live profile, whole: table, tree, Chrome trace, Hatchet literal.
//!
//! `live_sample/profile.json` is made up: two tokens of an engine with scopes, overlapping command buffers, two launches
//! of a kernel whose work is known, a name with a `/`, and a command buffer that failed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use trace_attr::convert::{self, Conversion};
use trace_attr::live::{Column, GroupBy, Profile};

fn sample() -> Profile {
    Profile::from_json(include_str!("live_sample/profile.json")).unwrap()
}

fn converted(conversion: Conversion) -> String {
    let mut out = Vec::new();
    convert::write(&sample(), conversion, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn table_by_name() {
    insta::assert_snapshot!(sample().key_averages(GroupBy::Name).sorted(Column::GpuTotal).table());
}

#[test]
fn table_by_call_path() {
    insta::assert_snapshot!(sample().key_averages(GroupBy::CallPath).sorted(Column::Name).table());
}

#[test]
fn tree() {
    insta::assert_snapshot!(sample().tree());
}

#[test]
fn chrome() {
    insta::assert_snapshot!(converted(Conversion::Chrome));
}

#[test]
fn hatchet() {
    let literal: serde_json::Value = serde_json::from_str(&converted(Conversion::Hatchet)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&literal).unwrap());
}

/// Every column sorts: the largest first, what was not measured last.
#[test]
fn rows_can_be_sorted_by_any_column() {
    for column in Column::ALL {
        let rows = sample().key_averages(GroupBy::CallPath).sorted(column).rows;
        let values: Vec<Option<f64>> = rows.iter().map(|row| column.value(row)).collect();
        let measured: Vec<f64> = values.iter().map_while(|value| *value).collect();
        assert!(measured.is_sorted_by(|x, y| x >= y), "{}: {values:?}", column.name());
        assert!(
            values[measured.len()..].iter().all(Option::is_none),
            "{}: {values:?}",
            column.name()
        );
        if column == Column::Name {
            assert!(rows.is_sorted_by(|x, y| x.key < y.key));
        }
    }
}
