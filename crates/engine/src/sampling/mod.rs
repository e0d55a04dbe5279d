//! Sampling: the activity of one thread between `go` and `sample`, with all clock readings.
//!
//! Reads by the offset table are bounded by time ([`timed`]); a scan, records and blocks are a
//! fixed amount of work ([`fixed`]). Both read the clock once per batch of operations and leave no
//! gap between two batches, so that no stall ([`stalls`]) is missed. Records that are committed
//! ([`commits`]) have a clock around each, and so have operations at a rate ([`paced`]).
//! [`SamplingPolicy`](pagewise_protocol::SamplingPolicy) has the numbers of these rules, which come
//! with the job.

mod bounds;
pub mod commits;
mod device_budget;
pub mod fixed;
pub mod paced;
pub mod stalls;
pub mod timed;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use pagewise_protocol::Go;

use crate::operations::Latencies;
pub use bounds::{Bounds, ThreadWork};
use stalls::Stalls;

/// The clock by which sampling decides, in ns; [`now_ns`](crate::clock::now_ns) but in tests.
pub trait Clock: Fn() -> u64 {}

impl<C: Fn() -> u64> Clock for C {}

/// State that the threads of a job share between their phases.
pub struct Phases {
    barrier: Barrier,
    timed: AtomicBool,
}

impl Phases {
    /// Of this many threads.
    pub fn of(threads: usize) -> Self {
        Self { barrier: Barrier::new(threads), timed: AtomicBool::new(false) }
    }

    /// A sample begins.
    pub fn begin(&self) {
        self.timed.store(false, Ordering::Relaxed);
    }

    /// Wait for the other threads: each phase begins with it, so that all are in the same one.
    pub fn meet(&self) {
        self.barrier.wait();
    }

    /// Ask for a phase in which every operation is timed.
    fn ask_for_timed(&self) {
        self.timed.store(true, Ordering::Relaxed);
    }

    /// True if any thread has asked for it, after all have met.
    fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }
}

/// The part of a thread in a sample.
pub struct Turn<'a> {
    /// Number of the thread.
    pub thread: u32,
    /// Of the sample.
    pub go: &'a Go,
    /// Of the job.
    pub phases: &'a Phases,
    /// Empty, and allocated beforehand because its size is noticeable.
    pub latencies: Latencies,
}

/// Result of one thread.
pub struct ThreadSample {
    /// Clock before the first batch.
    pub started_ns: u64,
    /// Clock after the last operation of the throughput phase.
    pub ended_ns: u64,
    /// Operations of the throughput phase.
    pub operations: u64,
    /// Clock before and after the latency phase; equal if there was none.
    pub latency_span_ns: (u64, u64),
    /// Operations of the latency phase.
    pub latency_operations: u64,
    /// Bytes of both phases: requested and received, or written to the file.
    pub bytes: u64,
    /// Sum of the checksums of both phases.
    pub checksum: u64,
    /// Latencies of operations.
    pub latencies: Latencies,
    /// Numbers of a sample at a rate; all 0 without one.
    pub at_rate: AtRate,
    /// Durations of syncs, if they belong to the measured region.
    pub syncs: Option<Latencies>,
    /// Time waited in the gaps of a recorded program.
    pub gap_wait_ns: u64,
    /// Stalled batches of the throughput phase.
    pub stalls: Stalls,
}

impl ThreadSample {
    /// Nothing is done yet.
    fn new(latencies: Latencies, stall_ns: u64) -> Self {
        Self {
            started_ns: 0,
            ended_ns: 0,
            operations: 0,
            latency_span_ns: (0, 0),
            latency_operations: 0,
            bytes: 0,
            checksum: 0,
            latencies,
            at_rate: AtRate::default(),
            syncs: None,
            gap_wait_ns: 0,
            stalls: Stalls::new(stall_ns),
        }
    }

    /// Add the checksum of operations.
    #[inline]
    fn add(&mut self, checksum: u64) {
        self.checksum = self.checksum.wrapping_add(checksum);
    }
}

/// Numbers of a sample at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtRate {
    /// Operations that were due.
    pub due_operations: u64,
    /// Operations that began late although the thread only waited for their moment.
    pub late_starts: u64,
    /// True if the bytes that storage may read ended the sample.
    pub is_cut_short: bool,
}

/// An empty histogram that covers every latency a phase can have.
pub fn empty_latencies() -> Latencies {
    Latencies::new_with_bounds(1, 100_000_000_000, 3).expect("constant bounds are valid")
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod vectors;
