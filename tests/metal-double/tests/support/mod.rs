//! What several tests need: a kernel, numbers as bytes, time.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::time::{Duration, Instant};

use metal_double::metal::Arguments;

/// The text that a Mac would compile; the stand-in runs [`add`].
pub const ADD: &str = "#include <metal_stdlib>
using namespace metal;
kernel void add(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
                device float* c [[buffer(2)]], uint i [[thread_position_in_grid]]) { c[i] = a[i] + b[i]; }
";

pub fn add(arguments: &Arguments) {
    let (a, b, c) = (arguments.floats(0), arguments.floats(1), arguments.floats(2));
    for i in 0..arguments.grid[0] {
        c[i].set(a[i].get() + b[i].get());
    }
}

pub fn of_bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_ne_bytes()).collect()
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// Does `work` and lasts long enough for the clocks to be compared: 50 ms after the profile first sees the device.
pub fn calibrated<R>(work: impl FnOnce() -> R) -> R {
    let result = work();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(55) {
        std::thread::sleep(Duration::from_millis(5));
    }
    result
}
