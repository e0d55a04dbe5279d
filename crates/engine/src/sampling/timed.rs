//! Sampling bounded by time: reads by the offset table.
//!
//! **Throughput phase.**
//! `elapsed = clock after the last batch and the operations still in flight - clock before the first batch`.
//! A batch is as many operations as take 50 to 200 us; there is one clock reading per batch and
//! none inside, because a clock around each operation prevents overlap between operations and
//! affects the cheap methods most (mmap of 4 KiB: 40 % of its rate).
//!
//! **Latency.** If one operation takes 50 us alone, batches are single operations and their times
//! are the latencies. Otherwise, and if operations overlap in a ring, a separate phase follows in
//! which every operation is timed; its operations do not count for the rate.

use pagewise_protocol::{CallFailure, Go, PhaseBounds, SamplingPolicy};

use super::device_budget::DeviceBudget;
use super::{Clock, Phases, ThreadSample, Turn};
use crate::operations::{Done, Operations, TIMED_BATCH_OPERATIONS};

/// Ends of the phases, and lengths of batches, of a job.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Operations and bytes of each phase; a `go` has their times.
    pub bounds: PhaseBounds,
    /// The numbers of the rules.
    pub policy: SamplingPolicy,
}

/// A bound of which 0 means that there is none.
pub const fn bound(most: u64) -> u64 {
    if most == 0 { u64::MAX } else { most }
}

impl Limits {
    /// Take one thread's sample.
    pub fn sample(
        self,
        work: &mut impl Operations,
        turn: Turn<'_>,
        clock: impl Clock,
    ) -> Result<ThreadSample, CallFailure> {
        let Turn { go, phases, latencies, .. } = turn;
        let bytes_before = work.bytes();
        let mut sample = ThreadSample::new(latencies, self.policy.stall_ns);
        let batched = self.throughput_phase(work, (go, phases), &mut sample, &clock);
        if !work.is_sequential() || batched == Ok(true) {
            phases.ask_for_timed();
        }
        phases.meet();
        let is_timed = phases.is_timed() && go.latency_ns > 0;
        batched?;
        if is_timed {
            sample.latencies.reset();
            self.latency_phase(work, go, &mut sample, &clock)?;
        }
        sample.bytes = work.bytes() - bytes_before;
        Ok(sample)
    }

    /// The operation after the last one of a sample that begins with operation `first`. If the
    /// table must not be repeated, it bounds the operations, so nothing is read ahead past its end.
    fn end(&self, first: u64) -> u64 {
        first.saturating_add(bound(self.bounds.max_thread_operations))
    }

    /// Return true if any batch had more than one operation: then batch times are not latencies.
    #[inline(never)]
    fn throughput_phase(
        &self,
        work: &mut impl Operations,
        (go, phases): (&Go, &Phases),
        sample: &mut ThreadSample,
        clock: &impl Clock,
    ) -> Result<bool, CallFailure> {
        let max_operations = bound(self.bounds.throughput_operations);
        let end = self.end(go.first_operation);
        let SamplingPolicy { batch_min_ns, batch_max_ns, device_check_ns, .. } = self.policy;
        let mut budget = DeviceBudget::new(self.bounds.throughput_device_bytes, device_check_ns);
        let (mut batch_operations, mut batched) = (1u64, false);
        phases.meet();
        sample.started_ns = clock();
        let mut before = sample.started_ns;
        let deadline = before + go.sample_ns;
        loop {
            let wanted = batch_operations.min(max_operations - sample.operations);
            let Done { operations: done, checksum } =
                work.perform(go.first_operation + sample.operations, wanted, end)?;
            sample.add(checksum);
            let after = clock();
            let took = after - before;
            sample.stalls.note(done, took);
            sample.operations += done;
            if batch_operations == 1 {
                sample.latencies.saturating_record(took);
            }
            if after >= deadline || sample.operations == max_operations || budget.is_spent(after) {
                break;
            }
            if done == batch_operations && took < batch_min_ns {
                batch_operations *= 2;
                batched = true;
            } else if batch_operations > 1 && took > batch_max_ns {
                batch_operations /= 2;
            }
            before = after;
        }
        sample.add(work.finish()?);
        sample.ended_ns = clock();
        Ok(batched)
    }

    #[inline(never)]
    fn latency_phase(
        &self,
        work: &mut impl Operations,
        go: &Go,
        sample: &mut ThreadSample,
        clock: &impl Clock,
    ) -> Result<(), CallFailure> {
        let max_operations = bound(self.bounds.max_thread_operations).saturating_sub(sample.operations);
        let device_bytes = self.bounds.latency_device_bytes;
        let mut budget = DeviceBudget::new(device_bytes, self.policy.device_check_ns);
        let first = go.first_operation + sample.operations;
        let end = self.end(go.first_operation);
        // Short batches meet the deadline, long ones keep a ring full. An operation alone may spend
        // a device budget.
        let mut batch_operations = if device_bytes > 0 { 1 } else { 8 };
        let started = clock();
        let deadline = started + go.latency_ns;
        let mut after = started;
        while after < deadline && sample.latency_operations < max_operations && !budget.is_spent(after) {
            let wanted = batch_operations.min(max_operations - sample.latency_operations);
            let done =
                work.perform_timed(first + sample.latency_operations, wanted, end, &mut sample.latencies)?;
            sample.add(done.checksum);
            sample.latency_operations += done.operations;
            let now = clock();
            if now - after < go.latency_ns / 16 {
                batch_operations = (batch_operations * 2).min(TIMED_BATCH_OPERATIONS as u64);
            }
            after = now;
        }
        sample.latency_span_ns = (started, after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use pagewise_protocol::Job;

    use super::*;
    use crate::reader::tests::{Fixture, mapped};
    use crate::reader::{ReadRange, Reader, TablePart, TableReads};
    use crate::sampling::empty_latencies;
    use crate::sampling::fake::{FakeWork, Time};

    /// Counts its calls; every read's checksum is its offset.
    #[derive(Clone, Default)]
    struct Counting {
        batches: Arc<Mutex<Vec<usize>>>,
    }

    impl Reader for Counting {
        fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
            let due = reads.due();
            self.batches.lock().expect("one thread").push(due.entries.len());
            Ok(due.entries.iter().sum())
        }

        fn fetch(&mut self, _: u64, _: &mut [u8]) -> Result<(), CallFailure> {
            Ok(())
        }
    }

    fn sampled(work: &mut impl Operations, (limits, go): (Limits, Go), clock: impl Clock) -> ThreadSample {
        let phases = Phases::of(1);
        let turn = Turn { thread: 0, go: &go, phases: &phases, latencies: empty_latencies() };
        limits.sample(work, turn, clock).expect("no call fails")
    }

    /// Reads of a table, two to an operation, by a clock that stands still.
    fn run(reader: &Counting, offsets: &[u64], first: u64, max_operations: u64) -> ThreadSample {
        let job = Job { reads_per_op: 2, ..Fixture::new(4096).job(100, 1, 1) };
        let part = TablePart::new(Arc::new(mapped(offsets)), 0..offsets.len(), 0);
        let mut reads = TableReads::new(reader.clone(), part, &job);
        let (limits, go) = limits(max_operations);
        let go = Go { first_operation: first, ..go };
        reads.begin(&go);
        let sample = sampled(&mut reads, (limits, go), Time::default().clock());
        assert_eq!(sample.bytes, (sample.operations + sample.latency_operations) * 200);
        sample
    }

    /// No end but that of the operations.
    fn limits(max_operations: u64) -> (Limits, Go) {
        let (bounds, policy) = (PhaseBounds::shared(max_operations, 0), SamplingPolicy::default());
        let go = Go { sample_ns: u64::MAX / 2, latency_ns: u64::MAX / 2, ..Go::default() };
        (Limits { bounds, policy }, go)
    }

    #[test]
    fn both_phases_walk_the_table_once_and_in_order() {
        let offsets: Vec<u64> = (0..2000).collect();
        let reader = Counting::default();
        let sample = run(&reader, &offsets, 0, 1000);
        let done = sample.operations + sample.latency_operations;
        assert_eq!(sample.operations, 750, "three quarters are the throughput phase's");
        assert_eq!(done, 1000);
        assert_eq!(sample.checksum, (0..2000).sum::<u64>());
        assert_eq!(sample.latencies.len(), sample.latency_operations, "each operation of the phase is timed");
        let batches = reader.batches.lock().expect("one thread");
        assert!(batches.iter().all(|reads| reads % 2 == 0), "whole operations: {batches:?}");
    }

    #[test]
    fn the_table_is_gone_through_again_from_where_it_began() {
        let offsets: Vec<u64> = (0..16).collect();
        let sample = run(&Counting::default(), &offsets, 3, 16);
        assert_eq!(sample.operations + sample.latency_operations, 16);
        assert_eq!(sample.checksum, 2 * (0..16).sum::<u64>());
    }

    #[test]
    fn slow_operations_are_their_own_latencies() {
        let time = Time::default();
        let mut work = FakeWork { op_ns: 50_000, ..FakeWork::new(&time) };
        let sample = sampled(&mut work, limits(40), time.clock());
        assert_eq!(work.asked, [1; 30], "a batch that takes long enough is an operation");
        assert_eq!((sample.latency_operations, sample.latencies.len()), (0, sample.operations));
        // To three digits.
        assert!(sample.latencies.max() - sample.latencies.min() < 100);
    }

    #[test]
    fn batches_take_50_to_200_us_and_the_clock_is_read_once_for_each() {
        let time = Time::default();
        let mut work = FakeWork { op_ns: 10, slow: vec![(50_000, 3_000_000)], ..FakeWork::new(&time) };
        let go = Go { sample_ns: 10_000_000, ..Go::default() };
        let sample = sampled(&mut work, (limits(0).0, go), time.clock_of(20));
        let growing: Vec<u64> = (0..13).map(|power| 1 << power).collect();
        assert_eq!(work.asked[..14], [&growing[..], &[8192]].concat(), "until a batch takes 50 us");
        // The sixth of these has the stall: the next one is halved, and takes too little.
        assert_eq!(work.asked[13..22], [8192, 8192, 8192, 8192, 8192, 8192, 4096, 8192, 8192]);
        assert_eq!((sample.stalls.count, sample.stalls.longest_ns / 10_000), (1, 299), "less its operation");
        let readings = work.asked.len() as u64 + 2;
        let took = sample.ended_ns - sample.started_ns;
        assert_eq!(took, sample.operations * 10 + 3_000_000 + (readings - 1) * 20);
        assert!((10_000_000..10_000_000 + 2 * 200_000).contains(&took), "{took}: the end is that of a batch");
        assert_eq!(sample.checksum, 1000 * sample.operations + 7, "with what was in flight");
    }

    #[test]
    fn latencies_are_taken_until_their_time_is_up() {
        let time = Time::default();
        let mut work = FakeWork { op_ns: 10, ..FakeWork::new(&time) };
        let (limits, go) = (limits(0).0, Go { sample_ns: 1_000_000, latency_ns: 1_600_000, ..Go::default() });
        let sample = sampled(&mut work, (limits, go.clone()), time.clock());
        let (from, to) = sample.latency_span_ns;
        assert_eq!(from, sample.ended_ns, "nothing lies between the phases");
        // The largest batch takes 2.56 us.
        assert!((1_600_000..1_602_560).contains(&(to - from)), "{from} {to}");
        assert_eq!(sample.latency_operations * 10, to - from);
        assert_eq!(
            work.asked.iter().rev().take_while(|wanted| **wanted == 1).count() as u64,
            sample.latency_operations
        );
        let few = sampled(
            &mut FakeWork { op_ns: 10, ..FakeWork::new(&time) },
            (limits, Go { latency_ns: 0, ..go }),
            time.clock(),
        );
        assert_eq!((few.latency_operations, few.latency_span_ns), (0, (0, 0)));
    }
}
