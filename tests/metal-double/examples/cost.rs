//! What watching a command buffer costs the thread that commits it: time and allocations of `metal::observe`, with and
//! without a profile. The stand-in's own part (two copies of blocks) is in it; Metal's is not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use metal_double::session;
use objc2::rc::autoreleasepool;
use objc2_metal::*;
use trace_attr::live::{self, Launch, metal};

struct Counting;
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
// SAFETY: everything is the system's allocator; a counter is all that is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Median time in ns and allocations of one call, over so many command buffers.
fn cost(what: &str, call: impl Fn(&objc2::runtime::ProtocolObject<dyn MTLCommandBuffer>)) {
    const CALLS: usize = 20_000;
    let device = autoreleasepool(|_| MTLCreateSystemDefaultDevice().unwrap());
    let queue = device.newCommandQueue().unwrap();
    let mut times = Vec::with_capacity(CALLS);
    let mut allocations = 0;
    for _ in 0..CALLS {
        autoreleasepool(|_| {
            let command_buffer = queue.commandBuffer().unwrap();
            let before = ALLOCATIONS.load(Relaxed);
            let begun = Instant::now();
            call(&command_buffer);
            times.push(begun.elapsed().as_nanos());
            allocations += ALLOCATIONS.load(Relaxed) - before;
        });
    }
    times.sort_unstable();
    println!(
        "{what}: {} ns (p50), {:.1} allocations",
        times[CALLS / 2],
        allocations as f64 / CALLS as f64
    );
}

fn main() {
    let _session = session();
    let launch = Launch::new("gemm", [1024, 1024, 1], [16, 16, 1]);
    let empty = || cost("nothing at all", |_| ());
    empty();
    cost("observe, no profile", |command_buffer| {
        metal::observe(command_buffer, "layer").unwrap()
    });
    live::profile(|_| {
        cost("observe, a profile", |command_buffer| {
            metal::observe(command_buffer, "layer").unwrap()
        });
        cost("observe_launch, a profile", |command_buffer| {
            metal::observe_launch(command_buffer, &launch).unwrap()
        });
        live::scope("decode", trace_attr::metrics![], || {
            live::scope("layer 3", trace_attr::metrics![], || {
                cost("observe, a profile, two scopes", |command_buffer| {
                    metal::observe(command_buffer, "layer").unwrap()
                });
            });
        });
    });
}
