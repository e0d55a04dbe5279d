//! State of the wall clock (adjtimex(2)).

use std::io;
use std::time::Duration;

use crate::checked;

/// The wall clock as the kernel knows it from the program that disciplines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// True if a program keeps it in step with a reference.
    pub is_synchronised: bool,
    /// The most that it is off, by the kernel's estimate.
    pub max_error: Duration,
}

impl WallClock {
    /// State of the clock now. Reading it needs no right, but some containers forbid the call.
    pub fn read() -> io::Result<Self> {
        // SAFETY: a `timex` of zeros is valid; no mode means that nothing is set.
        let mut state: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one `timex` into `state`.
        checked(unsafe { libc::adjtimex(&raw mut state) })?;
        Ok(Self {
            is_synchronised: state.status & libc::STA_UNSYNC == 0,
            max_error: Duration::from_micros(state.maxerror.max(0) as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel sets the error of a clock that nobody disciplines to 16 s (NTP_PHASE_LIMIT).
    #[test]
    fn a_clock_in_step_has_a_small_error() {
        let clock = WallClock::read().expect("reading needs no right");
        assert!(clock.max_error <= Duration::from_secs(16), "{clock:?}");
        assert!(!clock.is_synchronised || clock.max_error < Duration::from_secs(16), "{clock:?}");
    }
}
