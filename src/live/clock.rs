//! One clock for everything that a profile holds: integers of ns, and how other clocks are brought to it.
//!
//! Host times count from the first look that this process took at the clock. `GPUStartTime` and its relatives are on the
//! machine's own clock (`CLOCK_UPTIME_RAW`): an [`Offset`] brings them here. Counter samples are in ticks of whatever
//! length the GPU likes: a [`Calibration`] of two pairs of readings brings those; nothing assumes a tick.

use std::sync::OnceLock;
use std::time::Instant;

use super::event::{Absent, Measured};
use crate::model::Nanos;

/// Pairs of readings must be this far apart to say how long a tick is: 50 ms.
pub const CALIBRATION_SPAN: Nanos = Nanos(50_000_000);
/// How often [`Offset::measure`] reads both clocks; the narrowest reading counts.
const READINGS: u32 = 16;
/// Longer than any machine is up: a hundred years in seconds.
const TOO_LATE: f64 = 3.2e9;

/// A moment: ns since this process first looked at the clock (monotone; stands still while the machine sleeps on macOS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostTime(pub u64);

impl HostTime {
    /// Now.
    pub fn now() -> HostTime {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        let since = FIRST.get_or_init(Instant::now).elapsed();
        HostTime(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: HostTime) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Seconds of a device's clock, as Metal gives them, in ns; `None` for 0 ("not available"), negative, not a number, or
/// more than a hundred years.
pub fn ns_of_seconds(seconds: f64) -> Option<u64> {
    if !(seconds > 0.0 && seconds < TOO_LATE) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 3.2e18, as was asked above"
    )]
    let ns = (seconds * 1e9).round() as u64;
    Some(ns)
}

/// How far another ns clock of this machine is ahead of [`HostTime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    ahead: i128,
}

impl Offset {
    /// Reads the other clock (ns) between two readings of this one, several times, and takes the narrowest.
    pub fn measure(other: impl Fn() -> u64) -> Offset {
        let reading = |_| {
            let before = HostTime::now();
            let other = other();
            let after = HostTime::now();
            let middle = u128::midpoint(before.0.into(), after.0.into());
            (after.since(before), other, middle)
        };
        let narrowest = (0..READINGS).map(reading).min_by_key(|(width, ..)| *width);
        let ahead = narrowest.map_or(0, |(_, other, middle)| {
            i128::from(other) - i128::try_from(middle).unwrap_or(0)
        });
        Offset { ahead }
    }

    /// A known offset: the other clock shows `other` ns at `host`.
    pub fn known(host: HostTime, other: u64) -> Offset {
        Offset {
            ahead: i128::from(other) - i128::from(host.0),
        }
    }

    /// The moment at which the other clock shows `other` ns; `None` when that was before this process.
    pub fn host(self, other: u64) -> Option<HostTime> {
        u64::try_from(i128::from(other) - self.ahead).ok().map(HostTime)
    }
}

/// A reading of a device's tick counter and the moment it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// When.
    pub host: HostTime,
    /// Ticks of the device.
    pub ticks: u64,
}

/// How long the ticks of a device are, from two [`Pair`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    first: Pair,
    last: Pair,
}

impl Calibration {
    /// From the first and the last pair of a profile.
    ///
    /// Absent (`calibration_too_short`) when they are less than [`CALIBRATION_SPAN`] apart or the ticks did not go up.
    pub fn new(first: Pair, last: Pair) -> Measured<Calibration> {
        if last.host.since(first.host) < CALIBRATION_SPAN || last.ticks <= first.ticks {
            return Err(Absent::CalibrationTooShort);
        }
        Ok(Calibration { first, last })
    }

    /// So many ticks as a length of time, rounded to the ns.
    pub fn length(&self, ticks: u64) -> Nanos {
        let ns = u128::from(self.last.host.since(self.first.host).0);
        let span = u128::from(self.last.ticks - self.first.ticks);
        let length = (u128::from(ticks) * ns + span / 2) / span;
        Nanos(u64::try_from(length).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_that_mean_nothing_are_no_time() {
        assert_eq!(ns_of_seconds(86_400.5), Some(86_400_500_000_000));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(ns_of_seconds(seconds), None, "{seconds}");
        }
    }

    #[test]
    fn an_offset_brings_the_other_clock_here() {
        let offset = Offset::known(HostTime(1_000), 50_000);
        assert_eq!(offset.host(51_000), Some(HostTime(2_000)));
        assert_eq!(offset.host(48_999), None, "before this process");
        let measured = Offset::measure(|| HostTime::now().0 + 7_000_000_000);
        let host = measured.host(HostTime::now().0 + 7_000_000_000).unwrap();
        assert!(host.since(HostTime::now()) < Nanos(1_000_000_000));
    }

    #[test]
    fn ticks_have_the_length_that_two_pairs_say() {
        let pair = |host, ticks| Pair {
            host: HostTime(host),
            ticks,
        };
        // 24 MHz: a tick is 41.67 ns. Nothing knows that but the pairs.
        let calibration = Calibration::new(pair(0, 500), pair(1_000_000_000, 24_000_500)).unwrap();
        assert_eq!(calibration.length(24), Nanos(1_000));
        assert_eq!(calibration.length(1), Nanos(42));
        assert_eq!(
            Calibration::new(pair(0, 0), pair(49_999_999, 1000)),
            Err(Absent::CalibrationTooShort)
        );
        assert_eq!(
            Calibration::new(pair(0, 1000), pair(60_000_000, 1000)),
            Err(Absent::CalibrationTooShort)
        );
    }
}
