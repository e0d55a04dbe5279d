//! Detection of steps of the wall clock.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Number of readings of both clocks; the tightest pair is kept.
const READINGS: u32 = 3;

/// The wall clock and the monotonic clock, read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// CLOCK_REALTIME, since 1970.
    pub real_ns: i64,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: i64,
}

impl ClockPair {
    /// Read both clocks. They cannot be read at the same instant: of three readings, the one with
    /// the smallest interval around the wall clock is used, so that an interruption between two
    /// calls is not mistaken for a step.
    pub fn now() -> Self {
        let read = || {
            let before = nanoseconds(clock_gettime(ClockId::Monotonic));
            let real_ns = nanoseconds(clock_gettime(ClockId::Realtime));
            let width = nanoseconds(clock_gettime(ClockId::Monotonic)) - before;
            (width, Self { real_ns, monotonic_ns: before + width / 2 })
        };
        let mut tightest = read();
        for _ in 1..READINGS {
            let next = read();
            if next.0 < tightest.0 {
                tightest = next;
            }
        }
        tightest.1
    }

    /// Difference of the advances of the wall clock and the monotonic one between two readings;
    /// negative if the wall clock was set back. NTP slews both alike, so only steps remain, and
    /// less than a microsecond of reading time.
    pub fn step_ns(before: &Self, after: &Self) -> i64 {
        (after.real_ns - before.real_ns) - (after.monotonic_ns - before.monotonic_ns)
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_what_the_clocks_do_not_share() {
        let before = ClockPair { real_ns: 1_700_000_000_000_000_000, monotonic_ns: 5_000 };
        let after = ClockPair { real_ns: before.real_ns + 700, monotonic_ns: 5_700 };
        assert_eq!(ClockPair::step_ns(&before, &after), 0);
        let ahead = ClockPair { real_ns: after.real_ns + 3_000_000_000, ..after };
        assert_eq!(ClockPair::step_ns(&before, &ahead), 3_000_000_000);
        let back = ClockPair { real_ns: after.real_ns - 3_600_000_000_000, ..after };
        assert_eq!(ClockPair::step_ns(&before, &back), -3_600_000_000_000);
    }

    #[test]
    fn both_clocks_are_read() {
        let before = ClockPair::now();
        let after = ClockPair::now();
        assert!(after.monotonic_ns >= before.monotonic_ns);
        assert!(before.real_ns > 0 && before.monotonic_ns > 0);
    }
}
