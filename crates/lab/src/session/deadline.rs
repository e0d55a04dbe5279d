//! The end of a run whose time is limited: what is measured then is stopped, and the run is judged
//! by the samples that there are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// True from the end of the time on.
#[derive(Debug, Default)]
pub struct Deadline(AtomicBool);

impl Deadline {
    /// True if it has come.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Set `stop` at this time, unless the run ends before, which closes the other end of `ends`.
    pub fn watch(&self, at: Instant, ends: &Receiver<()>, stop: &AtomicBool) {
        let left = at.saturating_duration_since(Instant::now());
        // Far ahead is never.
        let left = left.min(Duration::from_secs(1 << 32));
        if ends.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            self.0.store(true, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// True if it is why `stop` is set, which is taken back: nobody asked for the end.
    pub fn takes_back(&self, stop: &AtomicBool) -> bool {
        let has_come = self.has_come();
        if has_come {
            stop.store(false, Ordering::Relaxed);
        }
        has_come
    }
}
