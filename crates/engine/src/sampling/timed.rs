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
//!
use std::sync::atomic::Ordering;

use pagewise_protocol::{CallFailure, PhaseBounds, SamplingPolicy};

use super::device_budget::DeviceBudget;
use super::stalls::Stalls;
use super::{AtRate, Clock, PhaseSync, ThreadSample};
use crate::operations::{Done, Latencies, Operations, TIMED_BATCH_OPERATIONS};

/// Ends of the phases, and lengths of batches.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Length of the throughput phase.
    pub sample_ns: u64,
    /// Length of the latency phase, if there is one; 0: none.
    pub latency_ns: u64,
    /// Of the job.
    pub bounds: PhaseBounds,
    /// Of the job.
    pub policy: SamplingPolicy,
}

impl Limits {
    /// The operation after the last one of a sample that begins with operation `first`. If the
    /// table must not be repeated, it bounds the operations, so nothing is read ahead past its end.
    fn end(&self, first: u64) -> u64 {
        first.saturating_add(bound(self.bounds.max_thread_operations))
    }
}

/// A bound of which 0 means that there is none.
pub const fn bound(most: u64) -> u64 {
    if most == 0 { u64::MAX } else { most }
}

/// Take one thread's sample. `latencies` is empty, and allocated beforehand because its size is
/// noticeable.
pub fn sample(
    work: &mut dyn Operations,
    first_operation: u64,
    limits: Limits,
    PhaseSync { rendezvous, timed_phase }: PhaseSync<'_>,
    mut latencies: Latencies,
    clock: impl Clock,
) -> Result<ThreadSample, CallFailure> {
    let check_ns = limits.policy.device_check_ns;
    let mut budget = DeviceBudget::new(limits.bounds.throughput_device_bytes, check_ns);
    let bytes_before = work.bytes();
    rendezvous();
    let throughput = throughput_phase(work, first_operation, limits, &mut budget, &mut latencies, &clock);
    let overlapped = !work.is_sequential();
    if overlapped || matches!(&throughput, Ok(phase) if phase.batched) {
        timed_phase.store(true, Ordering::Relaxed);
    }
    rendezvous();
    // Every thread has reached the line above, so all of them read the same value.
    let timed = timed_phase.load(Ordering::Relaxed) && limits.latency_ns > 0;
    let throughput = throughput?;
    let mut sample = ThreadSample {
        started_ns: throughput.started_ns,
        ended_ns: throughput.ended_ns,
        operations: throughput.operations,
        latency_span_ns: (0, 0),
        at_rate: AtRate::default(),
        latency_operations: 0,
        bytes: 0,
        checksum: throughput.checksum,
        latencies,
        syncs: None,
        gap_wait_ns: 0,
        stalls: throughput.stalls,
    };
    if timed {
        sample.latencies.reset();
        latency_phase(work, first_operation, limits, &mut sample, &clock)?;
    }
    sample.bytes = work.bytes() - bytes_before;
    Ok(sample)
}

struct Throughput {
    started_ns: u64,
    ended_ns: u64,
    operations: u64,
    checksum: u64,
    stalls: Stalls,
    /// True if any batch had more than one operation: then batch times are not latencies.
    batched: bool,
}

fn throughput_phase(
    work: &mut dyn Operations,
    first_operation: u64,
    limits: Limits,
    budget: &mut DeviceBudget,
    latencies: &mut Latencies,
    clock: &impl Clock,
) -> Result<Throughput, CallFailure> {
    let max_operations = bound(limits.bounds.throughput_operations);
    let end = limits.end(first_operation);
    let SamplingPolicy { batch_min_ns, batch_max_ns, stall_ns, .. } = limits.policy;
    let mut phase = Throughput {
        started_ns: clock(),
        ended_ns: 0,
        operations: 0,
        checksum: 0,
        stalls: Stalls::new(stall_ns),
        batched: false,
    };
    let mut batch_operations = 1u64;
    let mut before = phase.started_ns;
    let deadline = before + limits.sample_ns;
    loop {
        let wanted = batch_operations.min(max_operations - phase.operations);
        let Done { operations: done, checksum } =
            work.perform(first_operation + phase.operations, wanted, end)?;
        phase.checksum = phase.checksum.wrapping_add(checksum);
        let after = clock();
        let took = after - before;
        phase.stalls.note(done, took);
        phase.operations += done;
        if batch_operations == 1 {
            latencies.saturating_record(took);
        }
        if after >= deadline || phase.operations == max_operations || budget.is_spent(after) {
            break;
        }
        if done == batch_operations && took < batch_min_ns {
            batch_operations *= 2;
            phase.batched = true;
        } else if batch_operations > 1 && took > batch_max_ns {
            batch_operations /= 2;
        }
        before = after;
    }
    phase.checksum = phase.checksum.wrapping_add(work.finish()?);
    phase.ended_ns = clock();
    Ok(phase)
}

fn latency_phase(
    work: &mut dyn Operations,
    first_operation: u64,
    limits: Limits,
    sample: &mut ThreadSample,
    clock: &impl Clock,
) -> Result<(), CallFailure> {
    let max_operations = bound(limits.bounds.max_thread_operations).saturating_sub(sample.operations);
    let mut budget = DeviceBudget::new(limits.bounds.latency_device_bytes, limits.policy.device_check_ns);
    let first = first_operation + sample.operations;
    let end = limits.end(first_operation);
    // Short batches meet the deadline, long ones keep a ring full. An operation alone may spend a
    // device budget.
    let mut batch_operations = if limits.bounds.latency_device_bytes > 0 { 1 } else { 8 };
    let started = clock();
    let deadline = started + limits.latency_ns;
    let mut after = started;
    while after < deadline && sample.latency_operations < max_operations && !budget.is_spent(after) {
        let wanted = batch_operations.min(max_operations - sample.latency_operations);
        let done =
            work.perform_timed(first + sample.latency_operations, wanted, end, &mut sample.latencies)?;
        sample.checksum = sample.checksum.wrapping_add(done.checksum);
        sample.latency_operations += done.operations;
        let now = clock();
        if now - after < limits.latency_ns / 16 {
            batch_operations = (batch_operations * 2).min(TIMED_BATCH_OPERATIONS as u64);
        }
        after = now;
    }
    sample.latency_span_ns = (started, after);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};

    use pagewise_protocol::{Go, Job};

    use super::*;
    use crate::reader::tests::{Fixture, mapped};
    use crate::reader::{ReadRange, Reader, TableReads};
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

    fn sampled(work: &mut dyn Operations, first: u64, limits: Limits, clock: impl Clock) -> ThreadSample {
        let phases = PhaseSync { rendezvous: &|| (), timed_phase: &AtomicBool::new(false) };
        sample(work, first, limits, phases, empty_latencies(), clock).expect("no call fails")
    }

    /// Reads of a table, two to an operation, by a clock that stands still.
    fn run(reader: &Counting, offsets: &[u64], first: u64, limits: Limits) -> ThreadSample {
        let job = Job { reads_per_op: 2, ..Fixture::new(4096).job(100, 1, 1) };
        let mut reads = TableReads::divide(vec![Box::new(reader.clone())], mapped(offsets), &job);
        reads[0].begin(&Go { first_operation: first, ..Go::default() });
        let sample = sampled(reads[0].as_mut(), first, limits, Time::default().clock());
        assert_eq!(sample.bytes, (sample.operations + sample.latency_operations) * 200);
        sample
    }

    /// No end but that of the operations.
    fn limits(max_operations: u64) -> Limits {
        let (bounds, policy) = (PhaseBounds::shared(max_operations, 0), SamplingPolicy::default());
        Limits { sample_ns: u64::MAX / 2, latency_ns: u64::MAX / 2, bounds, policy }
    }

    #[test]
    fn both_phases_walk_the_table_once_and_in_order() {
        let offsets: Vec<u64> = (0..2000).collect();
        let reader = Counting::default();
        let sample = run(&reader, &offsets, 0, limits(1000));
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
        let sample = run(&Counting::default(), &offsets, 3, limits(16));
        assert_eq!(sample.operations + sample.latency_operations, 16);
        assert_eq!(sample.checksum, 2 * (0..16).sum::<u64>());
    }

    #[test]
    fn slow_operations_are_their_own_latencies() {
        let time = Time::default();
        let mut work = FakeWork { op_ns: 50_000, ..FakeWork::new(&time) };
        let sample = sampled(&mut work, 0, limits(40), time.clock());
        assert_eq!(work.asked, [1; 30], "a batch that takes long enough is an operation");
        assert_eq!((sample.latency_operations, sample.latencies.len()), (0, sample.operations));
        // To three digits.
        assert!(sample.latencies.max() - sample.latencies.min() < 100);
    }

    #[test]
    fn batches_take_50_to_200_us_and_the_clock_is_read_once_for_each() {
        let time = Time::default();
        let mut work = FakeWork { op_ns: 10, slow: vec![(50_000, 3_000_000)], ..FakeWork::new(&time) };
        let limits = Limits { sample_ns: 10_000_000, latency_ns: 0, ..limits(0) };
        let sample = sampled(&mut work, 0, limits, time.clock_of(20));
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
        let limits = Limits { sample_ns: 1_000_000, latency_ns: 1_600_000, ..limits(0) };
        let sample = sampled(&mut work, 0, limits, time.clock());
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
            0,
            Limits { latency_ns: 0, ..limits },
            time.clock(),
        );
        assert_eq!((few.latency_operations, few.latency_span_ns), (0, (0, 0)));
    }
}
