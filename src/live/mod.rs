//! Metal work as the program that does it sees it: scopes, launches and their GPU times, collected without waiting.
//!
//! A second producer beside recordings. A program opens a profile, names what it does with scopes, and has its command
//! buffers watched; what comes out is a [`Profile`]. On the way:
//!
//! ```text
//! thread        which profiles are active here, which scopes are open (one flag when none is)
//! observation   a command buffer from its commit to its handler
//! recorder      the events of one profile, from all threads
//! profile       what was recorded
//! backend       the contract with the code that drives a device
//! ffi           the same for programs in C
//! ```
//!
//! ```
//! use trace_attr::{live, metrics};
//!
//! let (sum, profile) = live::profile(|_| {
//!     live::scope("step", metrics![flops = 2.0 * 1024.0], || 1 + 1)
//! });
//! assert_eq!(sum, 2);
//! assert_eq!(&*profile.events()[0].name, "step");
//! ```

/// The page for engine authors: its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/live.md")]
struct Page;

mod averages;
pub mod backend;
pub mod bench;
#[cfg(feature = "traces")]
pub mod bench_request;
#[cfg(feature = "traces")]
pub mod buffer_spec;
pub mod clock;
pub mod doctor;
pub mod event;
#[cfg(feature = "traces")]
pub mod expression;
pub mod ffi;
mod hooks;
pub mod json;
mod metrics;
mod observation;
mod profile;
mod recorder;
pub mod rounds;
#[cfg(feature = "traces")]
pub mod run_file;
mod runtime;
mod session;
mod shapes;
mod table;
mod thread;
mod trace;

pub use averages::{Average, Column, GroupBy, KeyAverages, Mode};
#[cfg(any(target_os = "macos", metal_double))]
pub use backend::metal;
pub use clock::HostTime;
pub use event::{
    Absent, CallPath, Category, Event, EventIndex, GpuWork, Launch, Measured, PipelineLimits, Status, Via,
};
pub use hooks::{register_kernel_hook, unregister_kernel_hook};
pub use metrics::{Amount, Metrics};
pub use profile::{Counts, Origin, Profile, ProfileOptions};
pub use runtime::{InFlight, Kernel, KernelCode, PreparedKernel, Runtime};
pub use session::{ActiveProfile, Attachment, Handle, Scope, enter, open_profile, profile, profile_with, scope};
