//! Sampling of records that are committed: each is timed, by one thread or several that start
//! together.
//!
//! `latency of a record = clock after the sync that covers it - clock before its write`. There are
//! no batches, since a sync takes far longer than a clock reading. A thread takes no further record
//! when its time is up.

use pagewise_protocol::CallFailure;

use super::stalls::Stalls;
use super::{AtRate, Clock, ThreadSample};
use crate::operations::{Latencies, Operations};

/// Records of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Commits {
    /// Number of records, over all threads.
    pub records: u64,
    /// Of the job.
    pub stall_ns: u64,
}

/// Take one thread's sample: records of `all` that no other thread does, or as many as are begun
/// within `sample_ns`. `latencies` is empty.
pub fn sample(
    work: &mut dyn Operations,
    all: Commits,
    sample_ns: u64,
    rendezvous: &dyn Fn(),
    mut latencies: Latencies,
    clock: impl Clock,
) -> Result<ThreadSample, CallFailure> {
    let bytes_before = work.bytes();
    let mut stalls = Stalls::new(all.stall_ns);
    let mut operations = 0;
    rendezvous();
    let started_ns = clock();
    let deadline = started_ns.saturating_add(sample_ns);
    let mut now = started_ns;
    while now < deadline {
        let begun = now;
        let done = work.perform(operations, 1, all.records)?.operations;
        if done == 0 {
            break;
        }
        now = clock();
        operations += done;
        latencies.saturating_record(now - begun);
        stalls.note(done, now - begun);
    }
    Ok(ThreadSample {
        started_ns,
        ended_ns: now,
        operations,
        latency_span_ns: (0, 0),
        at_rate: AtRate::default(),
        latency_operations: 0,
        bytes: work.bytes() - bytes_before,
        checksum: 0,
        latencies,
        syncs: work.take_sync_durations(),
        gap_wait_ns: 0,
        stalls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::empty_latencies;
    use crate::sampling::fake::{FakeWork, Time};

    fn sampled(work: &mut FakeWork<'_>, records: u64, sample_ns: u64, time: &Time) -> ThreadSample {
        let all = Commits { records, stall_ns: 1_000_000 };
        sample(work, all, sample_ns, &|| (), empty_latencies(), time.clock()).expect("no call fails")
    }

    #[test]
    fn every_record_is_timed_until_there_is_none() {
        let time = Time::default();
        let mut work = FakeWork { op_ns: 300, ..FakeWork::new(&time) };
        let sample = sampled(&mut work, 1000, u64::MAX, &time);
        assert_eq!((sample.operations, sample.latencies.len(), sample.bytes), (1000, 1000, 10_000));
        assert_eq!(sample.ended_ns - sample.started_ns, 300_000);
        assert_eq!((sample.latencies.min(), sample.latencies.max(), sample.stalls.count), (300, 300, 0));
    }

    #[test]
    fn no_record_is_begun_when_the_time_is_up() {
        let time = Time::default();
        let mut work = FakeWork { op_ns: 300, slow: vec![(2, 5_000_000)], ..FakeWork::new(&time) };
        let sample = sampled(&mut work, 1000, 1000, &time);
        assert_eq!((sample.operations, sample.ended_ns - sample.started_ns), (3, 5_000_900));
        assert_eq!((sample.stalls.count, sample.stalls.longest_ns), (1, 5_000_300));
        assert_eq!(sampled(&mut FakeWork::new(&time), 1000, 0, &time).operations, 0);
    }
}
