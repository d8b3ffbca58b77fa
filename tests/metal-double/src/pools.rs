//! Autorelease pools, one stack a thread. An object that is autoreleased with no pool in place is a leak on a thread that
//! never makes one, as an engine's often does: it is counted.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::runtime::{Id, objc_release};

/// How many objects were autoreleased with no pool in place, in this process.
pub static WITHOUT_POOL: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Pools {
    open: usize,
    waiting: Vec<Id>,
}

thread_local!(static POOLS: RefCell<Pools> = RefCell::default());

/// Gives a reference to the innermost pool.
pub fn autorelease(object: Id) -> Id {
    POOLS.with_borrow_mut(|pools| {
        if pools.open == 0 {
            WITHOUT_POOL.fetch_add(1, SeqCst);
        }
        pools.waiting.push(object);
    });
    object
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn objc_autoreleasePoolPush() -> *mut c_void {
    POOLS.with_borrow_mut(|pools| {
        pools.open += 1;
        // The mark is what waited before, plus one, because null is no pool.
        std::ptr::without_provenance_mut(pools.waiting.len() + 1)
    })
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn objc_autoreleasePoolPop(mark: *mut c_void) {
    let released = POOLS.with_borrow_mut(|pools| {
        assert!(pools.open > 0, "a pool was popped that was never pushed");
        pools.open -= 1;
        pools.waiting.split_off(mark.addr() - 1)
    });
    // Outside of the borrow: what goes can autorelease in turn.
    for object in released {
        // SAFETY: the pool had one reference of each.
        unsafe { objc_release(object) };
    }
}

/// Runs `work` with a pool of its own, as Metal does on its threads.
pub fn in_pool<T>(work: impl FnOnce() -> T) -> T {
    let mark = objc_autoreleasePoolPush();
    let result = work();
    objc_autoreleasePoolPop(mark);
    result
}
