//! What one thread does between `go` and `sample`: where the clocks are read.
//!
//! Reads by the offset table last a time ([`timed`]); a scan, records and blocks are an amount of work ([`fixed`]). Both
//! read the clock once for a batch of operations and leave no gap between two batches, so that no stall ([`stalls`]) is missed.

pub mod fixed;
pub mod stalls;
pub mod timed;

use crate::operations::Latencies;
use stalls::Stalls;

/// A batch shorter than this is doubled.
const BATCH_MIN_NS: u64 = 50_000;
/// A batch of several operations longer than this is halved.
const BATCH_MAX_NS: u64 = 200_000;

/// What one thread did.
pub struct ThreadSample {
    /// Clock before the first batch.
    pub started_ns: u64,
    /// Clock after the last operation of the throughput phase.
    pub ended_ns: u64,
    /// Operations of the throughput phase.
    pub operations: u64,
    /// Clocks around the latency phase; equal if there was none.
    pub latency_span_ns: (u64, u64),
    /// Operations of the latency phase.
    pub latency_operations: u64,
    /// Bytes of both phases: asked for and received, or written to the file.
    pub bytes: u64,
    /// Sum of the checksums of both phases.
    pub checksum: u64,
    /// Latencies of operations.
    pub latencies: Latencies,
    /// Stalled batches of the throughput phase.
    pub stalls: Stalls,
}

/// A histogram that covers every latency a phase can have.
pub fn empty_latencies() -> Latencies {
    Latencies::new_with_bounds(1, 100_000_000_000, 3).expect("constant bounds are valid")
}

#[cfg(test)]
mod vectors;
