//! Opening and closing: profiles, their handles for other threads, scopes; each as a closure and as a guard that also
//! ends on panic.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::backend::{self, Capture};
use super::event::Category;
use super::metrics::Metrics;
use super::profile::{Profile, ProfileOptions};
use super::recorder::Recorder;
use super::thread::{self, Moved, OpenKey, Root};
use crate::error::{Error, Result};

/// Guards belong to the thread that made them.
type ThisThread = PhantomData<*const ()>;

/// A profile that is active on this thread until it is finished or dropped.
///
/// Profiles nest: what happens inside the inner one is in both.
pub struct ActiveProfile {
    recorder: Arc<Recorder>,
    close_limit: Duration,
    capture: Option<Arc<dyn Capture>>,
    thread: ThisThread,
}

/// Opens a profile on this thread.
///
/// # Errors
/// Only with [`ProfileOptions::capture`]: another extension than `.gputrace`, a path that exists, capture that is off,
/// or no device that could capture.
pub fn open_profile(options: &ProfileOptions) -> Result<ActiveProfile> {
    let capture = options.capture.as_deref().map(start_capture).transpose()?;
    let recorder = Recorder::new(options.most_events);
    thread::attach(&recorder, Root::default());
    Ok(ActiveProfile {
        recorder,
        close_limit: options.close_limit,
        capture,
        thread: PhantomData,
    })
}

fn start_capture(path: &Path) -> Result<Arc<dyn Capture>> {
    let shown = path.display();
    if path.extension().is_none_or(|extension| extension != "gputrace") {
        return Err(Error::usage(format!(
            "`{shown}` is no name for a GPU capture: it must end in .gputrace"
        )));
    }
    if path.symlink_metadata().is_ok() {
        return Err(Error::usage(format!(
            "`{shown}` exists already, and Metal writes a capture to a new path only"
        ))
        .with_help("remove it, or choose another name"));
    }
    let Some(capture) = backend::capture() else {
        return Err(
            Error::unfit("there is nothing that could capture: no device was opened before the profile")
                .with_help("a GPU capture needs macOS; open the runtime first, and run with MTL_CAPTURE_ENABLED=1"),
        );
    };
    capture.start(path)?;
    Ok(capture)
}

impl ActiveProfile {
    /// For other threads: events there stand below the scope that is open here now.
    pub fn handle(&self) -> Handle {
        Handle {
            positions: thread::positions(),
        }
    }

    /// Closes the profile. Waits for command buffers in flight, for at most [`ProfileOptions::close_limit`].
    pub fn finish(self) -> Profile {
        thread::detach(&self.recorder);
        self.recorder.wait(self.close_limit);
        self.recorder.close(self.capture.is_some())
    }
}

impl Drop for ActiveProfile {
    /// Without [`ActiveProfile::finish`] (a panic), nothing is waited for and nothing kept.
    fn drop(&mut self) {
        thread::detach(&self.recorder);
        drop(self.recorder.close(false));
        if let Some(capture) = self.capture.take() {
            capture.stop();
        }
    }
}

/// Makes the profiles of one thread active on others.
#[derive(Clone)]
pub struct Handle {
    positions: Vec<(Arc<Recorder>, Root)>,
}

impl Handle {
    /// Makes them active on this thread until the guard is dropped.
    #[must_use = "the profile is active on this thread as long as this is kept"]
    pub fn attach(&self) -> Attachment {
        let attached = self
            .positions
            .iter()
            .filter(|(recorder, root)| thread::attach(recorder, root.clone()));
        Attachment {
            recorders: attached.map(|(recorder, _)| Arc::clone(recorder)).collect(),
            thread: PhantomData,
        }
    }
}

/// Keeps profiles active on this thread.
pub struct Attachment {
    recorders: Vec<Arc<Recorder>>,
    thread: ThisThread,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        for recorder in &self.recorders {
            thread::detach(recorder);
        }
    }
}

/// Runs `body` under a profile.
pub fn profile<R>(body: impl FnOnce(&ActiveProfile) -> R) -> (R, Profile) {
    let active = open_without_capture();
    let result = body(&active);
    (result, active.finish())
}

fn open_without_capture() -> ActiveProfile {
    let options = ProfileOptions::default();
    let recorder = Recorder::new(options.most_events);
    thread::attach(&recorder, Root::default());
    ActiveProfile {
        recorder,
        close_limit: options.close_limit,
        capture: None,
        thread: PhantomData,
    }
}

/// Runs `body` under a profile with options.
///
/// # Errors
/// Those of [`open_profile`]; `body` is not run then.
pub fn profile_with<R>(options: &ProfileOptions, body: impl FnOnce(&ActiveProfile) -> R) -> Result<(R, Profile)> {
    let active = open_profile(options)?;
    let result = body(&active);
    Ok((result, active.finish()))
}

/// Runs `body` as a scope. `metrics` is asked only when a profile is active: see [`metrics!`](crate::metrics).
#[inline]
pub fn scope<R>(name: &str, metrics: impl FnOnce() -> Metrics, body: impl FnOnce() -> R) -> R {
    let _scope = enter(name, metrics);
    body()
}

/// Opens a scope that ends when the guard is dropped.
#[inline]
#[must_use = "the scope ends when this is dropped"]
pub fn enter(name: &str, metrics: impl FnOnce() -> Metrics) -> Scope {
    let key = if thread::is_active() {
        open(name, Category::Scope, &metrics())
    } else {
        None
    };
    Scope {
        key,
        thread: PhantomData,
    }
}

#[cold]
#[inline(never)]
fn open(name: &str, category: Category, metrics: &Metrics) -> Option<OpenKey> {
    thread::open(&name.into(), category, metrics, Moved::default())
}

/// An open scope.
#[derive(Debug)]
pub struct Scope {
    key: Option<OpenKey>,
    thread: ThisThread,
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(key) = self.key {
            thread::close(key);
        }
    }
}

/// An open stage of the runtime: like a scope, but no part of call paths.
pub(super) struct Stage(Option<OpenKey>);

impl Stage {
    pub(super) fn enter(name: &str, category: Category, input: Option<u64>, output: Option<u64>) -> Stage {
        let moved = Moved { input, output };
        Stage(
            thread::is_active()
                .then(|| thread::open(&name.into(), category, &Metrics::new(), moved))
                .flatten(),
        )
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(key) = self.0 {
            thread::close(key);
        }
    }
}
