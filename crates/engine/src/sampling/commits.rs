//! Sampling of records that are committed: each is timed, by one thread or several that start
//! together.
//!
//! `latency of a record = clock after the sync that covers it - clock before its write`. There are
//! no batches, since a sync takes far longer than a clock reading. A thread takes no further record
//! when its time is up.

use pagewise_protocol::CallFailure;

use super::{Clock, ThreadSample, Turn};
use crate::operations::Operations;

/// Records of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Commits {
    /// Number of records, over all threads.
    pub records: u64,
    /// Of the job.
    pub stall_ns: u64,
}

impl Commits {
    /// Take one thread's sample: records that no other thread does, or as many as are begun within
    /// the time of the `go`.
    #[inline(never)]
    pub fn sample(
        self,
        work: &mut impl Operations,
        turn: Turn<'_>,
        clock: impl Clock,
    ) -> Result<ThreadSample, CallFailure> {
        let bytes_before = work.bytes();
        let mut sample = ThreadSample::new(turn.latencies, self.stall_ns);
        turn.phases.meet();
        sample.started_ns = clock();
        let deadline = sample.started_ns.saturating_add(turn.go.sample_ns);
        let mut now = sample.started_ns;
        while now < deadline {
            let begun = now;
            let done = work.perform(sample.operations, 1, self.records)?.operations;
            if done == 0 {
                break;
            }
            now = clock();
            sample.operations += done;
            sample.latencies.saturating_record(now - begun);
            sample.stalls.note(done, now - begun);
        }
        sample.ended_ns = now;
        sample.bytes = work.bytes() - bytes_before;
        sample.syncs = work.take_sync_durations();
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use pagewise_protocol::Go;

    use super::*;
    use crate::sampling::fake::{FakeWork, Time};
    use crate::sampling::{Phases, empty_latencies};

    fn sampled(work: &mut FakeWork<'_>, records: u64, sample_ns: u64, time: &Time) -> ThreadSample {
        let all = Commits { records, stall_ns: 1_000_000 };
        let (go, phases) = (Go { sample_ns, ..Go::default() }, Phases::of(1));
        let turn = Turn { thread: 0, go: &go, phases: &phases, latencies: empty_latencies() };
        all.sample(work, turn, time.clock()).expect("no call fails")
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
