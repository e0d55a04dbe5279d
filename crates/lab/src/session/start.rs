//! Start of the sampling at a time of the wall clock, when everything is prepared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pagewise_host::ClockPair;
use pagewise_model::format::time;
use pagewise_model::run::RunStart;
use pagewise_sys::WallClock;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use crate::output::say;

/// Time after which a stop is noticed.
const SLICE: Duration = Duration::from_millis(100);

/// Sleep until a time, in nanoseconds since 1970; `None`: stopped meanwhile.
pub fn wait_until(asked_unix_ns: u64, stop: &AtomicBool) -> Option<RunStart> {
    let now = || ClockPair::now().real_ns.max(0) as u64;
    let prepared_unix_ns = now();
    let clock = WallClock::read().ok();
    let mut start = RunStart {
        asked_unix_ns,
        prepared_unix_ns,
        began_unix_ns: 0,
        is_synchronised: clock.map(|clock| clock.is_synchronised),
        clock_error_ns: clock.map(|clock| clock.max_error.as_nanos() as u64),
    };
    match start.late_ns() {
        0 => say(format_args!(
            "prepared; the first sample begins in {}",
            time(asked_unix_ns - prepared_unix_ns)
        )),
        late_ns => say(format_args!(
            "warning: prepared {} after the time of --start-at: the run goes on, and ends with status 1",
            time(late_ns)
        )),
    }
    loop {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        start.began_unix_ns = now();
        match Duration::from_nanos(asked_unix_ns.saturating_sub(start.began_unix_ns)) {
            Duration::ZERO => return Some(start),
            // The clock may be set meanwhile.
            left if left > SLICE => thread::sleep(SLICE),
            _ => {
                let (tv_sec, tv_nsec) = (asked_unix_ns / 1_000_000_000, asked_unix_ns % 1_000_000_000);
                let until = Timespec { tv_sec: tv_sec as i64, tv_nsec: tv_nsec as i64 };
                // What interrupts it may be a stop, which is looked for anyway.
                let _ = clock_nanosleep_absolute(ClockId::Realtime, &until);
            }
        }
    }
}
