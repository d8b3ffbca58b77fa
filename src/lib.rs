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

#[cfg(feature = "traces")]
pub mod analysis;
#[cfg(feature = "traces")]
pub mod attribution;
#[cfg(feature = "traces")]
pub mod cache;
pub mod calltree;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "traces")]
pub mod compare;
#[cfg(feature = "traces")]
pub mod config;
#[cfg(any(feature = "live", feature = "traces"))]
pub mod convert;
pub mod error;
#[cfg(any(feature = "live", feature = "traces"))]
mod figures;
pub mod inference;
#[cfg(feature = "traces")]
pub mod join;
#[cfg(any(feature = "live", feature = "traces"))]
mod label;
#[cfg(feature = "live")]
pub mod live;
pub mod measure;
pub mod model;
#[cfg(feature = "traces")]
pub mod parallel;
#[cfg(feature = "traces")]
mod placed;
#[cfg(feature = "traces")]
pub mod recording;
#[cfg(feature = "traces")]
pub mod report;
#[cfg(feature = "traces")]
pub mod shapes;
#[cfg(feature = "traces")]
pub mod source;
#[cfg(feature = "traces")]
pub mod tables;
pub mod timeline;
#[cfg(feature = "traces")]
pub mod watch;
#[cfg(feature = "traces")]
pub mod xctrace;
#[cfg(feature = "traces")]
pub mod xml;

pub use error::{Error, ErrorKind, Result};
