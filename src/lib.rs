//! Where the GPU time of a Metal System Trace goes, and why one engine is slower than another.
//!
//! Data goes one way: `source` (bytes) → `xml` (tokens) → `tables` (typed rows) → `join`
//! ([`model::Trace`]) → `attribution` (numbers) → `compare` → `report`. A line may use only what stands above it.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::float_cmp
    )
)]

pub mod analysis;
pub mod attribution;
pub mod cache;
#[cfg(feature = "cli")]
pub mod cli;
pub mod compare;
pub mod config;
pub mod error;
pub mod join;
pub mod live;
pub mod model;
pub mod parallel;
pub mod recording;
pub mod report;
pub mod source;
pub mod tables;
pub mod xctrace;
pub mod xml;

pub use error::{Error, ErrorKind, Result};
