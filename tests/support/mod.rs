//! What tests, benches, fuzz targets and the fixture generator share: documents as `xctrace export` writes them.
//!
//! [`export`] turns typed rows into export XML by Apple's rules, [`toc`] writes tables of contents, [`workload`] makes
//! up a decode workload, [`fleet`] two hundred small trials, [`nasty`] has hostile labels, [`normal`] draws noise,
//! [`sized`] fills gigabytes with it, [`pack`] compresses. Nothing here uses the library under test, so a fault in its
//! reader cannot hide behind the same fault in its writer.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

pub mod builds;
pub mod export;
pub mod fixtures;
pub mod fleet;
pub mod nasty;
pub mod normal;
pub mod pack;
pub mod short;
pub mod sized;
pub mod toc;
pub mod workload;

/// Waits until any change of the file will give it another time: some file systems go by whole seconds.
pub fn settle(file: &std::path::Path) {
    use std::os::unix::fs::MetadataExt;
    let whole = std::fs::metadata(file).unwrap().ctime_nsec() == 0;
    std::thread::sleep(std::time::Duration::from_millis(if whole { 3100 } else { 80 }));
}
