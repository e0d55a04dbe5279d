//! The only clock: CLOCK_MONOTONIC, which supervisor and worker share and no administrator sets.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time before a moment from which on a thread does not sleep: a sleep ends 50 to 90 us late.
const AWAKE_NS: u64 = 200_000;

/// Nanoseconds since an arbitrary start.
#[inline(always)]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Return at a time of the clock, or as soon after it as possible, with the time.
pub fn wait_until(ns: u64) -> u64 {
    let mut now = now_ns();
    let early = ns.saturating_sub(now);
    if early > AWAKE_NS {
        std::thread::sleep(Duration::from_nanos(early - AWAKE_NS));
        now = now_ns();
    }
    // Without `pause`, which a hypervisor may trap: it cost the read behind it 0.4 us.
    while now < ns {
        now = now_ns();
    }
    now
}
