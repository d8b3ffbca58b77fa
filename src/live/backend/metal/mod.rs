//! Metal, through objc2-metal: the one place, beside the C interface, where the live mode leaves safe Rust.
//!
//! Two uses of one device. A program that drives Metal itself has its command buffers watched: [`commit`], [`observe`],
//! [`observe_launch`]. A bench lets this library drive it: [`Metal`] is the [`Backend`](super::Backend) that runs kernels.
//!
//! ```text
//! clock      the clock of GPUStartTime, and how the GPU's ticks are read beside it
//! observe    handlers on a command buffer of anybody
//! counters   the ring of stage counter samples
//! device     what the recorder asks of a device
//! kernel     libraries, constants, pipelines
//! memory     buffers
//! dispatch   command buffers of our own
//! capture    Xcode's GPU capture
//! ```
//!
//! Rules that hold for all of it: nothing waits in a handler; a handler is added before the commit; what Metal autoreleases
//! goes into a pool of ours, because an engine's thread may have none; a command buffer is kept by nobody but who made it;
//! Metal's words are the error's words.

use objc2::rc::Retained;
use objc2_foundation::NSError;

use crate::error::{Error, ErrorKind};

mod capture;
mod clock;
mod counters;
mod device;
mod dispatch;
mod kernel;
mod memory;
mod observe;

pub use clock::uptime_ns;
pub use device::Metal;
pub use dispatch::Submitted;
pub use kernel::{Library, Pipeline};
pub use memory::Buffer;
pub use observe::{commit, commit_pointer, observe, observe_launch, observe_pointer};

/// Metal, or what stands below it, did not do what it was asked to.
fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Device(message.into()))
}

/// `what` failed, in Metal's words.
fn refused(what: &str, error: &NSError) -> Error {
    failed(format!("{what}: {}", words(error)))
}

/// An error as Metal words it, with its domain and code, which are what one can search for.
fn words(error: &NSError) -> String {
    format!("{} ({} {})", error.localizedDescription(), error.domain(), error.code())
}

/// Metal gave nil and no reason.
fn nil(what: &str) -> Error {
    failed(format!("Metal gave no {what}, and no reason"))
}

/// What an error of Metal becomes.
fn refusing(what: &str) -> impl Fn(Retained<NSError>) -> Error {
    move |error| refused(what, &error)
}
