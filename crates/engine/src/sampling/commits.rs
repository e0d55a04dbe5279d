//! Sampling of records that are committed: each is timed, by one thread or several that start together.
//!
//! `latency of a record = clock after the sync that covers it - clock before its write`. There are no batches, since a
//! sync takes far longer than a clock reading. A thread takes no further record when its time is up.

use pagewise_protocol::CallFailure;

use super::ThreadSample;
use super::stalls::Stalls;
use crate::clock::now_ns;
use crate::operations::{Latencies, Operations};

/// Take one thread's sample: records up to `end`, which all threads share, or as many as are begun within `sample_ns`.
/// `latencies` is empty.
pub fn sample(
    work: &mut dyn Operations,
    end: u64,
    sample_ns: u64,
    rendezvous: &dyn Fn(),
    mut latencies: Latencies,
) -> Result<ThreadSample, CallFailure> {
    let bytes_before = work.bytes();
    let mut stalls = Stalls::default();
    let mut operations = 0;
    rendezvous();
    let started_ns = now_ns();
    let deadline = started_ns.saturating_add(sample_ns);
    let mut now = started_ns;
    while now < deadline {
        let begun = now;
        let done = work.perform(operations, 1, end)?.operations;
        if done == 0 {
            break;
        }
        now = now_ns();
        operations += done;
        latencies.saturating_record(now - begun);
        stalls.note(done, now - begun);
    }
    Ok(ThreadSample {
        started_ns,
        ended_ns: now,
        operations,
        latency_span_ns: (0, 0),
        latency_operations: 0,
        bytes: work.bytes() - bytes_before,
        checksum: 0,
        latencies,
        syncs: work.take_sync_durations(),
        stalls,
    })
}
