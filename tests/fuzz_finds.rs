//! What fuzzing found stays found: every file in `fixtures/fuzz` goes the whole way, to a result or an error.
//!
//! The checks are those of the fuzz targets, so a find needs no more than its file.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    missing_docs
)]

#[path = "../fuzz/checks.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use all of it")]
mod checks;

use std::path::Path;

fn every_file_in(folder: &str, check: impl Fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            check(&std::fs::read(&path).expect("a readable file"));
            files += 1;
        }
    }
    files
}

fn all_checks(bytes: &[u8]) {
    checks::read(bytes);
    checks::read_types(bytes);
    checks::pipeline(bytes);
}

#[test]
fn finds_end_in_a_result_or_an_error() {
    assert!(every_file_in("fixtures/fuzz", all_checks) > 0);
}

/// The seeds of the corpus: what must be read and what must be refused.
#[test]
fn fixtures_meet_the_checks_of_the_fuzz_targets() {
    assert!(every_file_in("fixtures/good", all_checks) > 0);
    assert!(every_file_in("fixtures/refused", all_checks) > 0);
}
