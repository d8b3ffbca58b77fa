//! The device and its buffers.

use std::ffi::c_void;

use super::{Memory, command_buffer, counters, library};
use crate::clock;
use crate::foundation::{nsarray, nsstring, text};
use crate::pools::autorelease;
use crate::runtime::{Id, Sel, body, hidden_class, method, new_object};
use crate::session::setup;

hidden_class!(
    DEVICE,
    c"MTLDevice(double)",
    [
        method!(c"name", c"@@:", name),
        method!(c"recommendedMaxWorkingSetSize", c"Q@:", working_set),
        method!(c"maxBufferLength", c"Q@:", max_buffer_length),
        method!(c"newCommandQueue", c"@@:", new_queue),
        method!(c"supportsCounterSampling:", c"C@:Q", supports_sampling),
        method!(c"counterSets", c"@@:", counter_sets),
        method!(c"newLibraryWithSource:options:error:", c"@@:@@^@", library_of_source),
        method!(c"newLibraryWithURL:error:", c"@@:@^@", library_of_url),
        method!(c"newComputePipelineStateWithFunction:error:", c"@@:@^@", new_pipeline),
        method!(c"newBufferWithBytes:length:options:", c"@@:^vQQ", buffer_of_bytes),
        method!(c"newBufferWithLength:options:", c"@@:QQ", buffer_of_length),
        method!(
            c"newCounterSampleBufferWithDescriptor:error:",
            c"@@:@^@",
            new_sample_buffer
        ),
        method!(c"sampleTimestamps:gpuTimestamp:", c"v@:^Q^Q", sample_timestamps),
    ]
);
hidden_class!(
    BUFFER,
    c"MTLBuffer(double)",
    [
        method!(c"contents", c"^v@:", contents),
        method!(c"length", c"Q@:", length),
    ]
);

const WORKING_SET: u64 = 64 << 20;

#[unsafe(no_mangle)]
pub extern "C-unwind" fn MTLCreateSystemDefaultDevice() -> Id {
    if setup().device {
        new_object(&DEVICE, ())
    } else {
        std::ptr::null()
    }
}
unsafe extern "C-unwind" fn name(_: Id, _: Sel) -> Id {
    autorelease(nsstring("Metal double (CPU, for tests)"))
}
unsafe extern "C-unwind" fn working_set(_: Id, _: Sel) -> u64 {
    WORKING_SET
}
unsafe extern "C-unwind" fn max_buffer_length(_: Id, _: Sel) -> usize {
    1 << 30
}
unsafe extern "C-unwind" fn new_queue(_: Id, _: Sel) -> Id {
    command_buffer::new_queue()
}
unsafe extern "C-unwind" fn supports_sampling(_: Id, _: Sel, point: usize) -> u8 {
    const AT_STAGE_BOUNDARY: usize = 0;
    u8::from(point == AT_STAGE_BOUNDARY && setup().stage_counters)
}
unsafe extern "C-unwind" fn counter_sets(_: Id, _: Sel) -> Id {
    if setup().stage_counters {
        autorelease(nsarray(vec![counters::counter_set()]))
    } else {
        std::ptr::null()
    }
}
unsafe extern "C-unwind" fn library_of_source(_: Id, _: Sel, source: Id, _options: Id, error: *mut Id) -> Id {
    library::library_of_source(text(source), error)
}
unsafe extern "C-unwind" fn library_of_url(_: Id, _: Sel, url: Id, error: *mut Id) -> Id {
    library::library_of_url(url, error)
}
unsafe extern "C-unwind" fn new_pipeline(_: Id, _: Sel, function: Id, error: *mut Id) -> Id {
    library::new_pipeline(function, error)
}
unsafe extern "C-unwind" fn new_sample_buffer(_: Id, _: Sel, descriptor: Id, error: *mut Id) -> Id {
    counters::new_sample_buffer(descriptor, error)
}

unsafe extern "C-unwind" fn buffer_of_bytes(_: Id, _: Sel, bytes: *const c_void, length: usize, _options: usize) -> Id {
    // Metal makes no buffer of no bytes.
    if length == 0 {
        return std::ptr::null();
    }
    let memory = Memory::zeroed(length);
    std::ptr::copy_nonoverlapping(bytes.cast::<u8>(), memory.address().cast::<u8>(), length);
    new_object(&BUFFER, memory)
}
unsafe extern "C-unwind" fn buffer_of_length(_: Id, _: Sel, length: usize, _options: usize) -> Id {
    if length == 0 || length > max_buffer_length(std::ptr::null(), std::ptr::null()) {
        return std::ptr::null();
    }
    new_object(&BUFFER, Memory::zeroed(length))
}
unsafe extern "C-unwind" fn contents(buffer: Id, _: Sel) -> *mut c_void {
    body::<Memory>(buffer).address()
}
unsafe extern "C-unwind" fn length(buffer: Id, _: Sel) -> usize {
    body::<Memory>(buffer).length
}

/// The unit of the CPU's value is nowhere documented: here it is ticks of 24 MHz, so that whoever takes it for nanoseconds is
/// wrong.
unsafe extern "C-unwind" fn sample_timestamps(_: Id, _: Sel, cpu: *mut u64, gpu: *mut u64) {
    let now = clock::now_ns();
    *cpu = now / 125 * 3;
    *gpu = clock::ticks_at(now);
}
