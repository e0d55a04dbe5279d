//! The only clock: CLOCK_MONOTONIC, which supervisor and worker share and no administrator sets.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since an arbitrary start.
#[inline(always)]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
