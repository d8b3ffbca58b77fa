//! The GPU: one thread that runs command buffers in the order in which they were committed, and calls their handlers on
//! threads that no program knows.

use std::collections::VecDeque;
use std::sync::{Condvar, LazyLock, Mutex, Once};

use crate::pools::in_pool;
use crate::runtime::Owned;

#[derive(Default)]
struct Work {
    waiting: VecDeque<Owned>,
    running: bool,
    held: bool,
}
static WORK: LazyLock<Mutex<Work>> = LazyLock::new(Mutex::default);
static CHANGED: Condvar = Condvar::new();
static START: Once = Once::new();

pub(super) fn submit(command_buffer: Owned) {
    START.call_once(|| {
        drop(
            std::thread::Builder::new()
                .name("GPU".into())
                .spawn(run)
                .expect("a thread"),
        )
    });
    WORK.lock().unwrap().waiting.push_back(command_buffer);
    CHANGED.notify_all();
}

pub(crate) fn hold(held: bool) {
    WORK.lock().unwrap().held = held;
    CHANGED.notify_all();
}

pub(crate) fn is_held() -> bool {
    WORK.lock().unwrap().held
}

/// Whether it has work, and may do it.
pub(crate) fn is_running() -> bool {
    let work = WORK.lock().unwrap();
    !work.held && (work.running || !work.waiting.is_empty())
}

pub(crate) fn wait_until_idle() {
    let mut work = WORK.lock().unwrap();
    while work.running || !work.waiting.is_empty() {
        assert!(!work.held, "waiting for a GPU that the test holds");
        work = CHANGED.wait(work).unwrap();
    }
}

fn run() {
    loop {
        let mut work = WORK.lock().unwrap();
        let command_buffer = loop {
            if !work.held
                && let Some(next) = work.waiting.pop_front()
            {
                break next;
            }
            work = CHANGED.wait(work).unwrap();
        };
        work.running = true;
        drop(work);
        or_abort(|| in_pool(|| super::command_buffer::execute(&command_buffer)));
        or_abort(|| drop(command_buffer));
        WORK.lock().unwrap().running = false;
        CHANGED.notify_all();
    }
}

/// Runs handlers on a thread of their own and waits for them.
pub(super) fn on_another_thread(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| or_abort(|| in_pool(work)));
    });
}

/// A panic here has no test to fail, so it ends the process; its message was printed.
fn or_abort(work: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
        std::process::abort();
    }
}
