//! Watching command buffers of a program that drives Metal itself.
//!
//! Two handlers on the command buffer tell the profile; nothing waits, nothing is kept, the label that Metal knows is not
//! touched. Without a profile on the calling thread, no handler is added: the cost is one look at a flag.
//!
//! A handler may be added until the commit and not later: Metal ends the program then. So a command buffer that was
//! committed already is refused here.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use block2::RcBlock;
use objc2::rc::autoreleasepool;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLCommandBuffer, MTLCommandBufferStatus};

use super::{clock, words};
use crate::error::{Error, Result};
use crate::live::backend::Observation;
use crate::live::event::CommandBufferTimes;
use crate::live::{Launch, Via};

/// Commits a command buffer, and has the active profiles of this thread watch it: label, path, GPU start and end, status,
/// and the time from the commit to the GPU's start.
///
/// ```ignore
/// live::metal::commit(&command_buffer, "layer 3")?;      // instead of command_buffer.commit()
/// ```
///
/// # Errors
/// It was committed already; then this does nothing.
pub fn commit(command_buffer: &ProtocolObject<dyn MTLCommandBuffer>, label: &str) -> Result<()> {
    not_committed(command_buffer)?;
    let observation = Observation::open(label, Via::Committed, None, None);
    if let Some(observation) = &observation {
        add_handlers(command_buffer, observation, None);
        observation.committed();
    }
    command_buffer.commit();
    Ok(())
}

/// Has the active profiles of this thread watch a command buffer that the program commits later: label, path, GPU start and
/// end, and status.
///
/// # Errors
/// It was committed already; then it is not watched.
pub fn observe(command_buffer: &ProtocolObject<dyn MTLCommandBuffer>, label: &str) -> Result<()> {
    not_committed(command_buffer)?;
    if let Some(observation) = Observation::open(label, Via::Observed, None, None) {
        add_handlers(command_buffer, &observation, None);
    }
    Ok(())
}

/// As [`observe`], of a command buffer with one launch: with kernel, grid, threads, limits and work. It is called what its
/// label in Metal says, or else by its kernel.
///
/// # Errors
/// It was committed already; then it is not watched.
pub fn observe_launch(command_buffer: &ProtocolObject<dyn MTLCommandBuffer>, launch: &Launch) -> Result<()> {
    not_committed(command_buffer)?;
    if !crate::live::thread::is_active() {
        return Ok(());
    }
    let label = autoreleasepool(|_| command_buffer.label().map(|label| label.to_string()));
    let label = label.filter(|label| !label.is_empty());
    let label = label.as_deref().unwrap_or(&launch.kernel);
    if let Some(observation) = Observation::open(label, Via::ObservedLaunch, Some(launch), None) {
        add_handlers(command_buffer, &observation, None);
    }
    Ok(())
}

/// [`commit`] for a program with other bindings than objc2's.
///
/// # Safety
/// `command_buffer` points to an object that conforms to `MTLCommandBuffer`, and is alive during the call.
///
/// # Errors
/// Those of [`commit`], and a null pointer.
#[expect(unsafe_code, reason = "a pointer of other bindings has no type to check")]
pub unsafe fn commit_pointer(command_buffer: *mut c_void, label: &str) -> Result<()> {
    // SAFETY: the caller promises what `borrow` needs.
    commit(unsafe { borrow(&command_buffer) }?, label)
}

/// [`observe`] for a program with other bindings than objc2's.
///
/// # Safety
/// `command_buffer` points to an object that conforms to `MTLCommandBuffer`, and is alive during the call.
///
/// # Errors
/// Those of [`observe`], and a null pointer.
#[expect(unsafe_code, reason = "a pointer of other bindings has no type to check")]
pub unsafe fn observe_pointer(command_buffer: *mut c_void, label: &str) -> Result<()> {
    // SAFETY: the caller promises what `borrow` needs.
    observe(unsafe { borrow(&command_buffer) }?, label)
}

/// # Safety
/// `pointer` is null, or points to a command buffer that lives as long as it.
#[expect(unsafe_code, reason = "a pointer of other bindings has no type to check")]
unsafe fn borrow(pointer: &*mut c_void) -> Result<&ProtocolObject<dyn MTLCommandBuffer>> {
    // SAFETY: as the caller promises; an object's pointer is the address of the object.
    unsafe { pointer.cast::<ProtocolObject<dyn MTLCommandBuffer>>().as_ref() }
        .ok_or_else(|| Error::usage("the pointer to the command buffer is null"))
}

fn not_committed(command_buffer: &ProtocolObject<dyn MTLCommandBuffer>) -> Result<()> {
    if command_buffer.status() >= MTLCommandBufferStatus::Committed {
        return Err(
            Error::usage("the command buffer was committed already, and Metal takes no handler then")
                .with_help("observe it before its commit, or commit it with `commit`"),
        );
    }
    Ok(())
}

/// How a command buffer with counter samples stands, for whoever resolves them.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicU8);

impl Progress {
    const COMPLETED: u8 = 1;
    const FAILED: u8 = 2;

    fn end(&self, completed: bool) {
        let end = if completed { Self::COMPLETED } else { Self::FAILED };
        self.0.store(end, Ordering::Release);
    }

    /// Whether it has ended, and if so, whether it completed.
    pub(super) fn completed(&self) -> Option<bool> {
        match self.0.load(Ordering::Acquire) {
            Self::COMPLETED => Some(true),
            Self::FAILED => Some(false),
            _ => None,
        }
    }
}

/// Adds the handlers that tell the profile. They hold the observation and not the command buffer: when Metal frees a command
/// buffer that nobody committed, it frees its handlers, and the observation knows.
pub(super) fn add_handlers(
    command_buffer: &ProtocolObject<dyn MTLCommandBuffer>,
    observation: &Observation,
    progress: Option<Arc<Progress>>,
) {
    // Measured on this thread and not in a handler, which should be over soon.
    let offset = clock::offset();
    let scheduled = {
        let observation = observation.clone();
        RcBlock::new(move |_: NonNull<ProtocolObject<dyn MTLCommandBuffer>>| observation.scheduled())
    };
    let completed = {
        let observation = observation.clone();
        RcBlock::new(move |command_buffer: NonNull<ProtocolObject<dyn MTLCommandBuffer>>| {
            #[expect(
                unsafe_code,
                reason = "Metal hands a handler its command buffer, alive during the call"
            )]
            // SAFETY: as the reason says.
            let command_buffer = unsafe { command_buffer.as_ref() };
            let times = autoreleasepool(|_| times(command_buffer));
            if let Some(progress) = &progress {
                // Before the profile hears of it, which may resolve samples at once.
                progress.end(times.is_ok());
            }
            match times {
                Ok(times) => observation.completed(&times, offset),
                Err(message) => observation.failed(&message),
            }
        })
    };
    #[expect(
        unsafe_code,
        reason = "both are valid blocks, which Metal copies; they capture what may go to another thread, where Metal calls them"
    )]
    // SAFETY: as the reason says; `Observation`, `Progress` and `Offset` are Send and Sync (checked below).
    unsafe {
        command_buffer.addScheduledHandler(RcBlock::as_ptr(&scheduled));
        command_buffer.addCompletedHandler(RcBlock::as_ptr(&completed));
    }
}

const _: () = {
    const fn may_go_to_other_threads<T: Send + Sync>() {}
    may_go_to_other_threads::<Observation>();
    may_go_to_other_threads::<Progress>();
    may_go_to_other_threads::<crate::live::clock::Offset>();
};

/// The times of a command buffer that has ended, or Metal's words when it ended in an error: then it has no time, whatever
/// its times say.
pub(super) fn times(command_buffer: &ProtocolObject<dyn MTLCommandBuffer>) -> Result<CommandBufferTimes, String> {
    if command_buffer.status() != MTLCommandBufferStatus::Completed {
        return Err(match command_buffer.error() {
            Some(error) => words(&error),
            None => "it ended in an error, and Metal gave no reason".to_owned(),
        });
    }
    Ok(CommandBufferTimes {
        gpu_start: command_buffer.GPUStartTime(),
        gpu_end: command_buffer.GPUEndTime(),
        kernel_start: command_buffer.kernelStartTime(),
        kernel_end: command_buffer.kernelEndTime(),
    })
}
