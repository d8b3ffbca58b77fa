//! What a device must do, so that everything above it is the same for all: the contract between the recorder and the
//! code that drives Metal.
//!
//! A command buffer of any origin is told to the recorder in four steps; none of them waits, and none needs the command
//! buffer to be kept:
//!
//! 1. On the thread that commits or observes: [`Observation::open`]. It takes the call path and the moment, and gives
//!    `None` when no profile is active on this thread: then add no handler.
//! 2. [`Observation::committed`] just before a commit of our own; [`Observation::scheduled`] from the scheduled handler.
//! 3. From the completed handler, on any thread: [`Observation::completed`] or [`Observation::failed`].
//! 4. Where stage boundaries were sampled, after completion: [`Observation::encoder_samples`] with the raw ticks, or
//!    [`Observation::encoder_absent`] with the reason.
//!
//! An [`Observation`] may be cloned into each handler. When the last clone is dropped before the command buffer
//! completed (Metal frees the handlers of a command buffer that was never committed), the event says so. A handler that
//! fires after the profile was closed changes nothing and touches nothing freed.

#[cfg(any(target_os = "macos", metal_double))]
pub mod metal;

use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

pub use super::observation::Observation;

use super::clock::Pair;
use super::event::{CommandBufferTimes, PipelineLimits};
use crate::error::Result;

/// What the recorder asks of a device.
pub trait Device: Send + Sync {
    /// Its name, as in `Apple M5 Max`.
    fn name(&self) -> String;

    /// Whether it samples counters at stage boundaries.
    fn supports_stage_counters(&self) -> bool;

    /// Its tick counter and the host's clock at one moment: asked when a profile first sees the device, and at its end.
    /// `None` when the device has no such counter.
    fn clock_pair(&self) -> Option<Pair>;

    /// Resolves the counter samples of command buffers that have completed, and gives them to their observations.
    ///
    /// Called on the thread that closes a profile, before the last [`Device::clock_pair`].
    fn resolve_samples(&self);
}

/// Starts and stops Xcode's GPU capture.
///
/// Extension and existence of the file were checked; `start` fails with the remedy when capture is off
/// (`MTL_CAPTURE_ENABLED=1`). Every successful `start` is followed by one `stop`.
pub trait Capture: Send + Sync {
    /// Starts writing `path`.
    ///
    /// # Errors
    /// Capture is off or refused.
    fn start(&self, path: &Path) -> Result<()>;

    /// Stops.
    fn stop(&self);
}

/// Where kernels come from.
#[derive(Debug, Clone, Copy)]
pub enum KernelSource<'a> {
    /// Text in the Metal shading language.
    Msl(&'a str),
    /// A compiled library on disk.
    Metallib(&'a Path),
}

/// The value of a function constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConstantValue {
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i32),
    /// `uint`.
    Uint(u32),
    /// `float`.
    Float(f32),
}

/// A function constant, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ConstantValue,
}

impl FromStr for Constant {
    type Err = String;

    /// `FAST=true`, `WIDTH=4` (an `int`, above its range a `uint`), `SCALE=0.5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let number = || {
            let int = value.parse().map(ConstantValue::Int).ok();
            let uint = || value.parse().map(ConstantValue::Uint).ok();
            let float = || {
                value
                    .parse()
                    .ok()
                    .filter(|number: &f32| number.is_finite())
                    .map(ConstantValue::Float)
            };
            int.or_else(uint).or_else(float)
        };
        let value = match value {
            "true" => Some(ConstantValue::Bool(true)),
            "false" => Some(ConstantValue::Bool(false)),
            _ => number(),
        };
        match value {
            Some(value) if !name.is_empty() => Ok(Constant {
                name: name.to_owned(),
                value,
            }),
            _ => Err(format!("`{text}` is no constant: write NAME=true, NAME=4 or NAME=0.5")),
        }
    }
}

/// What a new buffer holds.
#[derive(Debug, Clone, Copy)]
pub enum Contents<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many zero bytes.
    Zeros(u64),
}

/// An argument of a kernel.
#[derive(Debug)]
pub enum Argument<'a, Buffer> {
    /// A buffer from its beginning.
    Buffer(&'a Buffer),
    /// A few bytes by value (`setBytes`).
    Bytes(&'a [u8]),
}

/// One launch in a command buffer.
pub struct Dispatch<'a, B: Backend + ?Sized> {
    /// The pipeline.
    pub pipeline: &'a B::Pipeline,
    /// Arguments by index.
    pub arguments: &'a [Argument<'a, B::Buffer>],
    /// Threads of the whole grid.
    pub grid: [u64; 3],
    /// Threads of a threadgroup.
    pub threads: [u64; 3],
}

/// One command buffer with one compute encoder and its launches, in their order.
pub struct Batch<'a, B: Backend + ?Sized> {
    /// Label of the command buffer.
    pub label: &'a str,
    /// The launches.
    pub dispatches: &'a [Dispatch<'a, B>],
}

/// A device that runs kernels. Everything else (stages, profiles, benchmarks, files with work) stands on these.
///
/// Profiling never changes what is compiled: `library` and `pipeline` do not know whether a profile is active.
pub trait Backend {
    /// A compiled library.
    type Library;
    /// A pipeline state.
    type Pipeline;
    /// Memory that host and GPU share.
    type Buffer;
    /// A committed command buffer.
    type Submitted;

    /// The device.
    fn device(&self) -> &Arc<dyn Device>;

    /// Bytes that the device recommends to use at most; `None` when it does not say.
    fn recommended_working_set(&self) -> Option<u64>;

    /// Builds or loads a library.
    ///
    /// # Errors
    /// The compiler's words.
    fn library(&self, source: KernelSource<'_>) -> Result<Self::Library>;

    /// Builds the pipeline of a kernel.
    ///
    /// # Errors
    /// No such kernel (with the names that there are), or Metal's words.
    fn pipeline(
        &self,
        library: &Self::Library,
        kernel: &str,
        constants: &[Constant],
    ) -> Result<(Self::Pipeline, PipelineLimits)>;

    /// Makes a buffer.
    ///
    /// # Errors
    /// The device has no memory for it.
    fn buffer(&self, contents: Contents<'_>) -> Result<Self::Buffer>;

    /// The bytes of a buffer; no command buffer that uses it may be running.
    ///
    /// # Errors
    /// The device does not give them.
    fn read(&self, buffer: &Self::Buffer) -> Result<Vec<u8>>;

    /// Encodes and commits a command buffer; does not wait.
    ///
    /// With an observation its handlers tell the profile, and stage boundaries are sampled where the device can. Without
    /// one nothing is added to the command buffer: this is the untimed path.
    ///
    /// # Errors
    /// Metal gives no command buffer or encoder.
    fn submit(&self, batch: &Batch<'_, Self>, observation: Option<&Observation>) -> Result<Self::Submitted>;

    /// Waits until it has run.
    ///
    /// # Errors
    /// It ended in an error, in Metal's words: then it has no time.
    fn wait(&self, submitted: Self::Submitted) -> Result<CommandBufferTimes>;
}

/// What starts captures in this process.
static CAPTURE: RwLock<Option<Arc<dyn Capture>>> = RwLock::new(None);

/// Has `capture` start captures from now on: called when a device is opened.
pub fn register_capture(capture: Arc<dyn Capture>) {
    *CAPTURE.write().unwrap_or_else(PoisonError::into_inner) = Some(capture);
}

/// Who starts captures, once a device was opened.
pub(super) fn capture() -> Option<Arc<dyn Capture>> {
    CAPTURE.read().unwrap_or_else(PoisonError::into_inner).clone()
}
