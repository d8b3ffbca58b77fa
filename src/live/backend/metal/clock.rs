//! The clock that `GPUStartTime` counts on, and the GPU's tick counter beside it.

use std::ffi::c_uint;
use std::ptr::NonNull;
use std::sync::OnceLock;

use objc2::runtime::ProtocolObject;
use objc2_metal::MTLDevice;

use crate::live::HostTime;
use crate::live::clock::{Offset, Pair};

/// Counts as `mach_absolute_time` does, in ns; stands still while the machine sleeps.
const CLOCK_UPTIME_RAW: c_uint = 8;

#[expect(
    unsafe_code,
    reason = "declares a function of Darwin's libc that takes and gives numbers only"
)]
mod darwin {
    unsafe extern "C" {
        pub(super) safe fn clock_gettime_nsec_np(clock: std::ffi::c_uint) -> u64;
    }
}

/// The machine's clock that Metal gives its times on, in ns.
pub fn uptime_ns() -> u64 {
    darwin::clock_gettime_nsec_np(CLOCK_UPTIME_RAW)
}

/// How far that clock is ahead of [`HostTime`]. Both tick alike, so it is measured once.
pub(super) fn offset() -> Offset {
    static OFFSET: OnceLock<Offset> = OnceLock::new();
    *OFFSET.get_or_init(|| Offset::measure(uptime_ns))
}

/// How often the two clocks are read for one [`Pair`]; the narrowest reading counts.
const READINGS: u32 = 16;

/// The GPU's ticks beside our own clock; `None` when the device gives none.
///
/// The CPU's value of `sampleTimestamps` is not used: no source says what its unit is.
pub(super) fn pair(device: &ProtocolObject<dyn MTLDevice>) -> Option<Pair> {
    let reading = |_| {
        let (mut cpu, mut ticks) = (0u64, 0u64);
        let before = HostTime::now();
        #[expect(
            unsafe_code,
            reason = "both pointers are valid for a write of 8 bytes, which is all that Metal does"
        )]
        // SAFETY: as the reason says.
        unsafe {
            device.sampleTimestamps_gpuTimestamp(NonNull::from(&mut cpu), NonNull::from(&mut ticks));
        }
        let after = HostTime::now();
        let middle = HostTime(before.0.midpoint(after.0));
        (after.since(before), Pair { host: middle, ticks })
    };
    let readings = (0..READINGS)
        .map(reading)
        .filter(|(_, pair)| !matches!(pair.ticks, 0 | u64::MAX));
    readings.min_by_key(|(width, _)| *width).map(|(_, pair)| pair)
}
