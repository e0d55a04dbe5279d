//! Whether somebody set the wall clock meanwhile.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// How often both clocks are read; the tightest pair is kept.
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
    /// Both clocks now. They cannot be read at once: of three readings that one counts in which the wall clock was
    /// enclosed most tightly, so that an interruption between two calls is not taken for a step.
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

    /// By how much the wall clock went further than the monotonic one between two readings; negative where it was set
    /// back. Both follow NTP's slewing alike, so what is left is steps, and less than a microsecond of reading.
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
