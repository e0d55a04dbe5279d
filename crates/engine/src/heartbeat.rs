//! A thread that only sleeps and records how late it wakes: it measures the effect of a method on
//! everything else in the process.
//!
//! A beat is due one interval after the previous one was recorded. Its value is its delay in
//! nanoseconds. A beat that is still due when a measured region ends counts with its delay so far,
//! so that the longest delay is never missing. The thread takes a lock and reads a clock per beat,
//! and shares nothing with the measured threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pagewise_protocol::Heartbeats;

use crate::clock::now_ns;
use crate::operations::Latencies;
use crate::sampling::empty_latencies;

/// The kind of heartbeat that this worker has.
const KIND: &str = "thread";

/// A heartbeat, alive until it is dropped.
pub struct HeartbeatThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    noted: Mutex<Noted>,
    /// Time at which the next beat is due.
    due_ns: AtomicU64,
    ended: AtomicBool,
}

struct Noted {
    /// Time from which beats count; `None`: they do not.
    since_ns: Option<u64>,
    delays: Latencies,
}

impl Shared {
    fn noted(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted {
    /// Record a beat that was due at `due_ns` and came at `now_ns`. Delay from before the region
    /// does not count.
    fn note(&mut self, due_ns: u64, now_ns: u64) {
        if let Some(since_ns) = self.since_ns {
            self.delays.saturating_record(now_ns.saturating_sub(due_ns.max(since_ns)).max(1));
        }
    }
}

impl HeartbeatThread {
    /// Start the heartbeat; nothing counts yet.
    pub fn start(interval_ns: u64) -> Self {
        let shared = Arc::new(Shared {
            noted: Mutex::new(Noted { since_ns: None, delays: empty_latencies() }),
            due_ns: AtomicU64::new(now_ns() + interval_ns),
            ended: AtomicBool::new(false),
        });
        let beating = shared.clone();
        let thread = std::thread::Builder::new()
            .name("heartbeat".to_string())
            .spawn(move || beat(&beating, interval_ns))
            .expect("a machine that runs pagewise can start a thread");
        Self { shared, thread: Some(thread) }
    }

    /// Start counting beats.
    pub fn begin(&self) {
        let mut noted = self.shared.noted();
        noted.delays.reset();
        noted.since_ns = Some(now_ns());
    }

    /// Stop counting and return the delays.
    pub fn end(&self) -> Heartbeats {
        let mut noted = self.shared.noted();
        let (now, due) = (now_ns(), self.shared.due_ns.load(Ordering::Relaxed));
        if now > due {
            noted.note(due, now);
        }
        noted.since_ns = None;
        let buckets = noted.delays.iter_recorded();
        let (heartbeat_ns, heartbeat_counts): (Vec<u64>, Vec<u64>) =
            buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).unzip();
        let heartbeat_buckets = vec![heartbeat_ns.len() as u64];
        Heartbeats { heartbeat_kinds: KIND.to_string(), heartbeat_buckets, heartbeat_ns, heartbeat_counts }
    }
}

impl Drop for HeartbeatThread {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn beat(shared: &Shared, interval_ns: u64) {
    while !shared.ended.load(Ordering::Relaxed) {
        let due = shared.due_ns.load(Ordering::Relaxed);
        let early = due.saturating_sub(now_ns());
        if early > 0 {
            // Woken early only to end.
            std::thread::park_timeout(Duration::from_nanos(early));
            continue;
        }
        let mut noted = shared.noted();
        let now = now_ns();
        noted.note(due, now);
        shared.due_ns.store(now + interval_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(since_ns: Option<u64>) -> Noted {
        Noted { since_ns, delays: empty_latencies() }
    }

    #[test]
    fn a_beat_counts_with_what_it_is_late_by_within_the_region() {
        let mut noted = noted(Some(1_000));
        noted.note(500, 4_000);
        noted.note(6_000, 6_010);
        // To three digits.
        assert_eq!((noted.delays.max() / 10, noted.delays.min(), noted.delays.len()), (300, 10, 2));
    }

    #[test]
    fn beats_outside_of_a_region_do_not_count() {
        let mut noted = noted(None);
        noted.note(500, 4_000);
        assert_eq!(noted.delays.len(), 0);
    }

    #[test]
    fn a_beat_that_is_still_due_counts() {
        // Due at once and never recorded by the thread, whose interval is longer than the test.
        let heartbeat = HeartbeatThread::start(u64::MAX / 4);
        heartbeat.begin();
        heartbeat.shared.due_ns.store(1, Ordering::Relaxed);
        let beats = heartbeat.end();
        assert_eq!((beats.heartbeat_kinds.as_str(), beats.heartbeat_counts), (KIND, vec![1]));
    }

    #[test]
    fn regions_begin_empty() {
        let heartbeat = HeartbeatThread::start(100_000);
        heartbeat.begin();
        while heartbeat.shared.noted().delays.len() < 3 {
            std::thread::yield_now();
        }
        let beats = heartbeat.end();
        assert!(beats.heartbeat_counts.iter().sum::<u64>() >= 3);
        assert_eq!(beats.by_kind().expect("whole")[0].1.ns, beats.heartbeat_ns);
        heartbeat.begin();
        heartbeat.shared.due_ns.store(u64::MAX, Ordering::Relaxed);
        assert!(heartbeat.end().heartbeat_counts.iter().sum::<u64>() <= 1);
    }
}
