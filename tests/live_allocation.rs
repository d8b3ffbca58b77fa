//! Without a profile, scopes cost no memory: every allocation of this process is counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![expect(
    unsafe_code,
    reason = "an allocator that counts is the only way to see that there is no allocation"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use trace_attr::live::backend::Observation;
use trace_attr::live::{self, Launch, Via};
use trace_attr::metrics;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches a `Cell` without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, so from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread during `body`.
fn allocations(body: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    body();
    COUNT.get() - before
}

/// What an engine does for a token.
fn token(launch: &Launch) {
    live::scope("token", metrics![flops = vec![1.0; 64].iter().sum::<f64>()], || {
        for _ in 0..100 {
            let _layer = live::enter("layer", metrics![bytes = 4096]);
            assert!(Observation::open("ffn", Via::ObservedLaunch, Some(launch), None).is_none());
        }
    });
}

#[test]
fn nothing_is_allocated_without_a_profile() {
    let launch = Launch::new("mul_mv", [1, 1, 1], [1, 1, 1]);
    assert_eq!(allocations(|| token(&launch)), 0, "before the first profile");
    let ((), profile) = live::profile(|_| live::scope("token", metrics![], || ()));
    assert_eq!(profile.events().len(), 1);
    assert_eq!(allocations(|| token(&launch)), 0, "after a profile");
    assert!(allocations(|| drop(vec![1u8; 100])) > 0, "the counter counts");
}
