//! The C interface: what `include/trace_attr_live.h` declares, and nothing else. That file says what each function does.
//!
//! Every pointer that comes in is looked at here and nowhere else. Nothing of Rust's goes out but two opaque pointers; errors
//! are a status, and a text that the thread keeps.

#![expect(
    unsafe_code,
    reason = "C has no types for what its callers promise; each block names the promise that it stands on"
)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::thread::ThreadId;

use super::{ActiveProfile, Attachment, Handle, Metrics, ProfileOptions, Scope, enter, open_profile};
use crate::error::{Error, ErrorKind, Result};

/// `TRACE_ATTR_LIVE_ABI`
const ABI: u32 = 1;

/// `trace_attr_live_status`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The caller's mistake.
    Usage = 1,
    /// Refused.
    Failed = 2,
}

/// `trace_attr_live_metric`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Metric {
    /// A string of C.
    pub name: *const c_char,
    /// Its amount.
    pub value: f64,
}

/// `trace_attr_live_profile`
pub struct CProfile {
    active: ActiveProfile,
    thread: ThreadId,
}

/// `trace_attr_live_handle`
pub struct CHandle(Handle);

thread_local! {
    static LAST_ERROR: RefCell<Option<CString>> = const { RefCell::new(None) };
    static SCOPES: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
    static ATTACHED: RefCell<Vec<Attachment>> = const { RefCell::new(Vec::new()) };
}

/// The status of a result; its error is kept for `trace_attr_live_last_error`.
fn status(result: Result<()>) -> Status {
    let Err(error) = result else {
        return Status::Ok;
    };
    let text = match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    };
    // A zero byte would end the text early.
    let text = CString::new(text.replace('\0', "\u{fffd}")).ok();
    // A thread that is ending keeps nothing; its status says as much.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = text);
    match error.kind() {
        ErrorKind::Usage(_) => Status::Usage,
        _ => Status::Failed,
    }
}

/// # Safety
/// `text` is null or a string that ends with a zero byte, unchanged while the result lives.
unsafe fn string<'a>(what: &str, text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(Error::usage(format!("{what} is a null pointer")));
    }
    // SAFETY: not null, and as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Error::usage(format!("{what} is not UTF-8")))
}

/// The version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn trace_attr_live_abi() -> u32 {
    ABI
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn trace_attr_live_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The error of the last call of this thread that had one, or null.
#[unsafe(no_mangle)]
pub extern "C" fn trace_attr_live_last_error() -> *const c_char {
    let text = LAST_ERROR.try_with(|last| last.borrow().as_ref().map(|text| text.as_ptr()));
    text.ok().flatten().unwrap_or_default()
}

/// Opens a profile on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn trace_attr_live_profile_begin() -> *mut CProfile {
    match open_profile(&ProfileOptions::default()) {
        Ok(active) => Box::into_raw(Box::new(CProfile {
            active,
            thread: std::thread::current().id(),
        })),
        Err(error) => {
            status(Err(error));
            std::ptr::null_mut()
        }
    }
}

/// Closes a profile and writes it.
///
/// # Safety
/// `profile` is null, or came from [`trace_attr_live_profile_begin`] and was not ended yet; `path` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_attr_live_profile_end(profile: *mut CProfile, path: *const c_char) -> Status {
    // SAFETY: as the caller promises.
    status(unsafe { end(profile, path) })
}

/// # Safety
/// As [`trace_attr_live_profile_end`].
unsafe fn end(profile: *mut CProfile, path: *const c_char) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { borrow(profile) }?;
    let path = if path.is_null() {
        None
    } else {
        // SAFETY: not null, so a string, as the caller promises.
        Some(unsafe { string("the path", path) }?)
    };
    // SAFETY: it came from `Box::into_raw`, on this thread, and the caller does not use it again.
    let profile = unsafe { Box::from_raw(profile) }.active.finish();
    match path {
        Some(path) => {
            std::fs::write(path, profile.to_json()).map_err(|error| Error::io(format!("write `{path}`"), error))
        }
        None => Ok(()),
    }
}

/// Makes the profiles of this thread known to others.
///
/// # Safety
/// `profile` is null, or came from [`trace_attr_live_profile_begin`] and was not ended yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_attr_live_handle_new(profile: *const CProfile) -> *mut CHandle {
    // SAFETY: as the caller promises.
    match unsafe { borrow(profile) } {
        Ok(profile) => Box::into_raw(Box::new(CHandle(profile.active.handle()))),
        Err(error) => {
            status(Err(error));
            std::ptr::null_mut()
        }
    }
}

/// The profile behind a pointer, on its own thread.
///
/// # Safety
/// `profile` is null, or came from [`trace_attr_live_profile_begin`] and was not ended yet.
unsafe fn borrow<'a>(profile: *const CProfile) -> Result<&'a CProfile> {
    // SAFETY: null or alive, as the caller promises.
    let Some(profile) = (unsafe { profile.as_ref() }) else {
        return Err(Error::usage("the profile is a null pointer"));
    };
    if profile.thread != std::thread::current().id() {
        return Err(Error::usage("a profile belongs to the thread that opened it"));
    }
    Ok(profile)
}

/// Makes the profiles of a handle active on this thread.
///
/// # Safety
/// `handle` is null, or came from [`trace_attr_live_handle_new`] and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_attr_live_attach(handle: *const CHandle) -> Status {
    // SAFETY: as the caller promises.
    let Some(handle) = (unsafe { handle.as_ref() }) else {
        return status(Err(Error::usage("the handle is a null pointer")));
    };
    let attachment = handle.0.attach();
    let kept = ATTACHED.try_with(|attached| attached.borrow_mut().push(attachment));
    status(kept.map_err(|_| Error::usage("the thread is ending")))
}

/// Ends the last attachment of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn trace_attr_live_detach() -> Status {
    let last = ATTACHED.try_with(|attached| attached.borrow_mut().pop());
    status(match last {
        Ok(Some(_)) => Ok(()),
        _ => Err(Error::usage("this thread is not attached")),
    })
}

/// Frees a handle.
///
/// # Safety
/// `handle` is null, or came from [`trace_attr_live_handle_new`] and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_attr_live_handle_free(handle: *mut CHandle) {
    if !handle.is_null() {
        // SAFETY: it came from `Box::into_raw`, and the caller does not use it again.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Opens a scope.
///
/// # Safety
/// `name` is null or a string; `metrics` points to `count` metrics, whose names are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_attr_live_scope_push(
    name: *const c_char,
    metrics: *const Metric,
    count: usize,
) -> Status {
    let mut refused = Ok(());
    let scope = if super::thread::is_active() {
        // SAFETY: as the caller promises.
        let name = unsafe { string("the name of the scope", name) }.unwrap_or_else(|error| {
            refused = Err(error);
            "(no name)"
        });
        // SAFETY: as the caller promises.
        let metrics = unsafe { read_metrics(metrics, count) }.unwrap_or_else(|error| {
            refused = Err(error);
            Metrics::new()
        });
        enter(name, || metrics)
    } else {
        enter("", Metrics::new)
    };
    let kept = SCOPES.try_with(|scopes| scopes.borrow_mut().push(scope));
    status(kept.map_err(|_| Error::usage("the thread is ending")).and(refused))
}

/// # Safety
/// `metrics` points to `count` metrics, whose names are null or strings; it may be null when `count` is 0.
unsafe fn read_metrics(metrics: *const Metric, count: usize) -> Result<Metrics> {
    if count == 0 {
        return Ok(Metrics::new());
    }
    if metrics.is_null() {
        return Err(Error::usage(format!("{count} metrics are a null pointer")));
    }
    // SAFETY: not null, and as the caller promises.
    let metrics = unsafe { std::slice::from_raw_parts(metrics, count) };
    let mut read = Metrics::new();
    for metric in metrics {
        // SAFETY: as the caller promises.
        let name = unsafe { string("the name of a metric", metric.name) }?;
        read.set(name.to_owned(), metric.value);
    }
    Ok(read)
}

/// Closes the innermost scope.
#[unsafe(no_mangle)]
pub extern "C" fn trace_attr_live_scope_pop() -> Status {
    let last = SCOPES.try_with(|scopes| scopes.borrow_mut().pop());
    status(match last {
        Ok(Some(_)) => Ok(()),
        _ => Err(Error::usage("no scope is open on this thread")),
    })
}

/// Watches a command buffer.
///
/// # Safety
/// `command_buffer` is null or an `id<MTLCommandBuffer>`; `label` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_attr_live_observe(command_buffer: *mut c_void, label: *const c_char) -> Status {
    // SAFETY: as the caller promises.
    status(unsafe { string("the label", label).and_then(|label| metal::observe_pointer(command_buffer, label)) })
}

/// Commits a command buffer and watches it.
///
/// # Safety
/// `command_buffer` is null or an `id<MTLCommandBuffer>`; `label` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trace_attr_live_commit(command_buffer: *mut c_void, label: *const c_char) -> Status {
    // SAFETY: as the caller promises.
    status(unsafe { string("the label", label).and_then(|label| metal::commit_pointer(command_buffer, label)) })
}

#[cfg(any(target_os = "macos", metal_double))]
use super::metal;

/// Where there is no Metal, a program still links, and is told.
#[cfg(not(any(target_os = "macos", metal_double)))]
mod metal {
    use std::ffi::c_void;

    use crate::error::{Error, ErrorKind, Result};

    pub(super) unsafe fn observe_pointer(_: *mut c_void, _: &str) -> Result<()> {
        Err(Error::new(ErrorKind::Device(
            "command buffers are Metal's, which only macOS has".to_owned(),
        )))
    }

    pub(super) use observe_pointer as commit_pointer;
}
