//! What this thread is in: the profiles that are active on it, and the scopes and stages that are open.
//!
//! Without an active profile everything here is one look at a thread-local flag.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::backend::Device;
use super::clock::HostTime;
use super::event::{CallPath, Category, Event, EventIndex};
use super::metrics::Metrics;
use super::recorder::Recorder;

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread::new()) };
}

struct Thread {
    attached: Vec<Attached>,
    open: Vec<Open>,
    next: u64,
}

/// A profile that is active on this thread.
struct Attached {
    recorder: Arc<Recorder>,
    /// This thread's number in it.
    number: u32,
    root: Root,
    /// The path as it is now; `None` after a scope began or ended.
    path: Option<CallPath>,
}

/// Where the events of this thread hang in a profile: elsewhere than at its root on a thread that was given a handle.
#[derive(Clone, Default)]
pub(super) struct Root {
    path: CallPath,
    parent: Option<EventIndex>,
}

/// An open scope or stage.
struct Open {
    key: OpenKey,
    /// A stage is no frame of the path.
    frame: Option<Arc<str>>,
    places: Vec<(Arc<Recorder>, Option<EventIndex>)>,
}

/// Names an open scope or stage of this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenKey(u64);

impl Open {
    fn is_in(&self, recorder: &Arc<Recorder>) -> bool {
        self.places.iter().any(|(other, _)| Arc::ptr_eq(other, recorder))
    }
}

impl Thread {
    const fn new() -> Thread {
        Thread {
            attached: Vec::new(),
            open: Vec::new(),
            next: 0,
        }
    }

    /// Where an event of a profile would stand now.
    fn position(open: &[Open], attached: &mut Attached) -> (CallPath, Option<EventIndex>) {
        let Attached {
            recorder, root, path, ..
        } = attached;
        let path = path.get_or_insert_with(|| {
            let own = open.iter().filter(|open| open.is_in(recorder));
            let frames = own.filter_map(|open| open.frame.as_ref());
            CallPath::new(root.path.frames().iter().chain(frames).cloned())
        });
        let places = open.iter().rev().flat_map(|open| &open.places);
        let parent = places
            .filter(|(other, _)| Arc::ptr_eq(other, recorder))
            .find_map(|(_, place)| *place)
            .or(root.parent);
        (path.clone(), parent)
    }

    fn path_changed(&mut self) {
        for attached in &mut self.attached {
            attached.path = None;
        }
    }
}

/// Runs `action` unless this thread is ending or is inside of another `action`.
fn with<R>(action: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    THREAD
        .try_with(|thread| thread.try_borrow_mut().ok().map(|mut thread| action(&mut thread)))
        .ok()
        .flatten()
}

/// Whether a profile is active on this thread.
#[inline]
pub(super) fn is_active() -> bool {
    ACTIVE.get()
}

/// Makes a profile active on this thread; `false` when it is already.
pub(super) fn attach(recorder: &Arc<Recorder>, root: Root) -> bool {
    let number = recorder.new_thread();
    with(|thread| {
        if thread
            .attached
            .iter()
            .any(|other| Arc::ptr_eq(&other.recorder, recorder))
        {
            return false;
        }
        thread.attached.push(Attached {
            recorder: Arc::clone(recorder),
            number,
            root,
            path: None,
        });
        ACTIVE.set(true);
        true
    })
    .unwrap_or(false)
}

/// Ends that.
pub(super) fn detach(recorder: &Arc<Recorder>) {
    with(|thread| {
        thread.attached.retain(|other| !Arc::ptr_eq(&other.recorder, recorder));
        ACTIVE.set(!thread.attached.is_empty());
    });
}

/// Every active profile with the place where events would stand now.
pub(super) fn positions() -> Vec<(Arc<Recorder>, Root)> {
    let positions = with(|thread| {
        let open = &thread.open;
        let position = |attached: &mut Attached| {
            let (path, parent) = Thread::position(open, attached);
            (Arc::clone(&attached.recorder), Root { path, parent })
        };
        thread.attached.iter_mut().map(position).collect()
    });
    positions.unwrap_or_default()
}

/// Enters an event that nothing can stand in, in every active profile. `event` is given path, parent, thread and time.
pub(super) fn enter_leaf(
    event: impl Fn(CallPath, Option<EventIndex>, u32, HostTime) -> Event,
    device: Option<&Arc<dyn Device>>,
) -> Vec<(Arc<Recorder>, EventIndex)> {
    let now = HostTime::now();
    let entered = with(|thread| {
        let open = &thread.open;
        let enter = |attached: &mut Attached| {
            let (path, parent) = Thread::position(open, attached);
            let event = event(path, parent, attached.number, now);
            (Arc::clone(&attached.recorder), event)
        };
        thread.attached.iter_mut().map(enter).collect::<Vec<_>>()
    });
    // The device is not ours: it is asked when this thread's state is free again.
    let begin = |(recorder, event): (Arc<Recorder>, Event)| {
        let place = recorder.begin(event, device)?;
        Some((recorder, place))
    };
    entered.unwrap_or_default().into_iter().filter_map(begin).collect()
}

/// Bytes that a stage moves.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
}

/// Opens a scope or a stage in every active profile.
pub(super) fn open(name: &Arc<str>, category: Category, metrics: &Metrics, moved: Moved) -> Option<OpenKey> {
    with(|thread| {
        let Thread { attached, open, .. } = thread;
        let now = HostTime::now();
        let enter = |attached: &mut Attached| {
            let (path, parent) = Thread::position(open, attached);
            let event = Event {
                name: Arc::clone(name),
                category,
                path,
                parent,
                thread: attached.number,
                start: now,
                end: now,
                input_bytes: moved.input,
                output_bytes: moved.output,
                metrics: metrics.clone(),
                gpu: None,
            };
            (Arc::clone(&attached.recorder), attached.recorder.begin(event, None))
        };
        let places: Vec<_> = attached.iter_mut().map(enter).collect();
        let key = OpenKey(thread.next);
        thread.next += 1;
        let is_frame = category == Category::Scope;
        thread.open.push(Open {
            key,
            frame: is_frame.then(|| Arc::clone(name)),
            places,
        });
        if is_frame {
            thread.path_changed();
        }
        key
    })
}

/// Closes what [`open`] opened, wherever it stands: guards can be dropped in any order.
pub(super) fn close(key: OpenKey) {
    let now = HostTime::now();
    with(|thread| {
        let Some(at) = thread.open.iter().rposition(|open| open.key == key) else {
            return;
        };
        let open = thread.open.remove(at);
        for (recorder, place) in &open.places {
            if let Some(place) = place {
                recorder.end(*place, now);
            }
        }
        if open.frame.is_some() {
            thread.path_changed();
        }
    });
}
