//! Readings of the host once a second during a run, whatever is being measured.
//!
//! A thread of the supervisor wakes at whole seconds since the start. Times are counted from the
//! start rather than from the previous reading, so that they do not drift. A missed second is a
//! gap. A reading takes about 0.2 ms of CPU time on a small machine (`bench sampling-cost`), in the
//! supervisor, which sleeps while a worker measures.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pagewise_host::HostReader;
use pagewise_model::counters::HostSecond;

const INTERVAL: Duration = Duration::from_secs(1);

/// Reads the host once a second until it is dropped.
pub struct HostSeries {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<SeriesState>,
    ended: Condvar,
}

#[derive(Default)]
struct SeriesState {
    seconds: Vec<HostSecond>,
    is_ending: bool,
}

impl HostSeries {
    /// Start. `offset_ns` is the duration of the run before it was resumed; 0 for a new one.
    pub fn start(run_started: Instant, offset_ns: u64) -> io::Result<Self> {
        Self::every(INTERVAL, run_started, offset_ns)
    }

    fn every(interval: Duration, run_started: Instant, offset_ns: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("series".to_string())
            .spawn(move || theirs.read(interval, run_started, offset_ns))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Take the readings since the last call, in order.
    pub fn take(&self) -> Vec<HostSecond> {
        std::mem::take(&mut self.shared.lock().seconds)
    }
}

/// Ends the thread, which is waiting unless it is reading.
impl Drop for HostSeries {
    fn drop(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A reader that panicked has left only complete seconds, which are valid.
    fn lock(&self) -> MutexGuard<'_, SeriesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, interval: Duration, run_started: Instant, offset_ns: u64) {
        let mut reader = HostReader::new();
        let mut begins = true;
        loop {
            let since = run_started.elapsed();
            let host = reader.read_often();
            let at_ns = offset_ns.saturating_add(since.as_nanos() as u64);
            let mut state = self.lock();
            state.seconds.push(HostSecond { at_ns, begins, host });
            begins = false;
            loop {
                if state.is_ending {
                    return;
                }
                let left = until_next(run_started.elapsed(), since, interval);
                if left.is_zero() {
                    break;
                }
                state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

/// Time from `now` to the first multiple of the interval after the reading `last`; zero if it has
/// come. Missed multiples are skipped: a reading now replaces the latest.
fn until_next(now: Duration, last: Duration, interval: Duration) -> Duration {
    let next = (last.as_nanos() / interval.as_nanos() + 1) * interval.as_nanos();
    Duration::from_nanos(next.saturating_sub(now.as_nanos()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_cadence_does_not_drift() {
        let second = ms(1000);
        assert_eq!(until_next(ms(3), ms(0), second), ms(997));
        // A late reading is followed by one in time.
        assert_eq!(until_next(ms(1403), ms(1400), second), ms(597));
        assert_eq!(until_next(ms(2000), ms(1400), second), ms(0));
        // Seconds 2 to 4 were missed: one reading now, then at second 6.
        assert_eq!(until_next(ms(5200), ms(1400), second), ms(0));
        assert_eq!(until_next(ms(5203), ms(5200), second), ms(797));
    }

    #[test]
    fn readings_come_in_order_and_are_taken_once() {
        let started = Instant::now();
        let series = HostSeries::every(ms(2), started, 7_000_000_000).expect("a thread");
        let mut seconds = Vec::new();
        while seconds.len() < 5 {
            seconds.extend(series.take());
            thread::sleep(ms(1));
        }
        drop(series);
        assert!(seconds[0].begins && seconds[1..].iter().all(|second| !second.begins));
        assert!(seconds[0].at_ns >= 7_000_000_000);
        assert!(seconds.is_sorted_by(|one, next| one.at_ns < next.at_ns));
        assert!(seconds.iter().all(|second| second.host.free_bytes.is_some()));
    }

    #[test]
    fn it_ends_without_waiting_for_its_second() {
        let series = HostSeries::every(Duration::from_secs(1 << 20), Instant::now(), 0).expect("a thread");
        while series.take().is_empty() {
            thread::sleep(ms(1));
        }
        // The next reading is twelve days away: the test is that this returns.
        drop(series);
    }
}
