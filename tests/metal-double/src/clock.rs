//! The machine's clock, and the GPU's: another rate and another zero, as on real devices.
//!
//! Host time runs on, but the GPU's times are made up: a launch takes exactly what its test says, and the GPU's thread sleeps
//! until that is over. So a test gets the same GPU times under any load, and they never end after the host saw them end.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The machine started a day before the test did. So the clock is ahead of the one that Rust's `Instant` counts from.
const UP_NS: u64 = 86_400_000_000_000;
static START: LazyLock<Instant> = LazyLock::new(Instant::now);
static TICKS_PER_SECOND: AtomicU64 = AtomicU64::new(24_000_000);

/// Darwin's `CLOCK_UPTIME_RAW`; the only clock that this stand-in has.
const CLOCK_UPTIME_RAW: u32 = 8;

/// The host time that a program reads, in nanoseconds since the machine started.
#[unsafe(no_mangle)]
pub extern "C" fn clock_gettime_nsec_np(clock: u32) -> u64 {
    assert_eq!(clock, CLOCK_UPTIME_RAW, "GPUStartTime counts as CLOCK_UPTIME_RAW does");
    now_ns()
}

/// The same.
pub fn now_ns() -> u64 {
    UP_NS + u64::try_from(START.elapsed().as_nanos()).expect("a test does not run for so long")
}

pub(crate) fn sleep_until(host_ns: u64) {
    while let Some(left @ 1..) = host_ns.checked_sub(now_ns()) {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

/// How fast the GPU counts from now on.
pub(crate) fn set_ticks_per_second(rate: u64) {
    TICKS_PER_SECOND.store(rate, SeqCst);
}

/// What the GPU's counter shows at a host time.
pub(crate) fn ticks_at(host_ns: u64) -> u64 {
    let ticks = u128::from(host_ns - UP_NS) * u128::from(TICKS_PER_SECOND.load(SeqCst)) / 1_000_000_000;
    1_000_000 + u64::try_from(ticks).expect("a test does not run for so long")
}

/// Seconds, as command buffers give their times.
pub(crate) fn seconds(host_ns: u64) -> f64 {
    Duration::from_nanos(host_ns).as_secs_f64()
}
