//! Sampling bounded by time: reads by the offset table.
//!
//! **Throughput phase.** `elapsed = clock after the last batch and the operations still in flight - clock before the
//! first batch`. A batch is as many operations as take 50 to 200 us; there is one clock reading per batch and none
//! inside, because a clock around each operation prevents overlap between operations and affects the cheap methods most
//! (mmap of 4 KiB: 40 % of its rate).
//!
//! **Latency.** If one operation takes 50 us alone, batches are single operations and their times are the latencies.
//! Otherwise, and if operations overlap in a ring, a separate phase follows in which every operation is timed; its
//! operations do not count for the rate.
//!
use std::sync::atomic::{AtomicBool, Ordering};

use pagewise_protocol::CallFailure;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use super::stalls::Stalls;
use super::{BATCH_MAX_NS, BATCH_MIN_NS, ThreadSample};
use crate::clock::now_ns;
use crate::operations::{Done, Latencies, Operations, TIMED_BATCH_OPERATIONS};

/// Interval of checks of the device budget, which cost a system call.
const BUDGET_CHECK_NS: u64 = 1_000_000;

/// Ends of the phases.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Length of the throughput phase.
    pub sample_ns: u64,
    /// Length of the latency phase, if there is one; 0: none.
    pub latency_ns: u64,
    /// Operations of this thread in both phases; 0: unbounded.
    pub max_operations: u64,
    /// Bytes that storage may read for the process in both phases; 0: unbounded.
    pub max_device_bytes: u64,
}

impl Limits {
    /// The operation after the last one of a sample that begins with operation `first`. If the table must not be
    /// repeated, it bounds the operations, so nothing is read ahead past its end.
    fn end(&self, first: u64) -> u64 {
        match self.max_operations {
            0 => u64::MAX,
            bounded => first.saturating_add(bounded),
        }
    }
}

/// Stops a phase when storage has read enough for this process: a file that fills the cache is no longer cold.
struct DeviceBudget {
    /// /proc/self/io; `None` if there is no budget or the kernel does not count.
    file: Option<OwnedFd>,
    end_bytes: u64,
    next_check_ns: u64,
}

impl DeviceBudget {
    fn new(bytes: u64) -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file =
            (bytes > 0).then(|| rustix::fs::open("/proc/self/io", flags, Mode::empty()).ok()).flatten();
        let mut budget = Self { file, end_bytes: u64::MAX, next_check_ns: 0 };
        budget.end_bytes = budget.read_bytes().map_or(u64::MAX, |begin| begin.saturating_add(bytes));
        budget
    }

    fn read_bytes(&self) -> Option<u64> {
        let mut text = [0u8; 512];
        let len = rustix::io::pread(self.file.as_ref()?, &mut text[..], 0).ok()?;
        let text = std::str::from_utf8(&text[..len]).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?;
        line.trim().parse().ok()
    }

    #[inline]
    fn is_spent(&mut self, now_ns: u64) -> bool {
        if self.file.is_none() || now_ns < self.next_check_ns {
            return false;
        }
        self.next_check_ns = now_ns + BUDGET_CHECK_NS;
        self.read_bytes().is_some_and(|bytes| bytes >= self.end_bytes)
    }
}

/// Share of a bounded cold sample that the throughput phase may use, in quarters; the rest is left for a latency phase.
const THROUGHPUT_QUARTERS: u64 = 3;

/// Take one thread's sample. `rendezvous` is called between the phases and at the start of each, so that all threads are
/// in the same phase; `timed_phase` is set by any thread that needs the latency phase. `latencies` is empty, and
/// allocated beforehand because its size is noticeable.
pub fn sample(
    work: &mut dyn Operations,
    first_operation: u64,
    limits: Limits,
    rendezvous: &dyn Fn(),
    timed_phase: &AtomicBool,
    mut latencies: Latencies,
) -> Result<ThreadSample, CallFailure> {
    let mut budget = DeviceBudget::new(limits.max_device_bytes / 4 * THROUGHPUT_QUARTERS);
    let bytes_before = work.bytes();
    rendezvous();
    let throughput = throughput_phase(work, first_operation, limits, &mut budget, &mut latencies);
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
        latency_operations: 0,
        bytes: 0,
        checksum: throughput.checksum,
        latencies,
        syncs: None,
        stalls: throughput.stalls,
    };
    if timed {
        sample.latencies.reset();
        latency_phase(work, first_operation, limits, &mut sample)?;
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
) -> Result<Throughput, CallFailure> {
    let max_operations = match limits.max_operations {
        0 => u64::MAX,
        bounded => (bounded * THROUGHPUT_QUARTERS / 4).max(1),
    };
    let end = limits.end(first_operation);
    let mut phase = Throughput {
        started_ns: now_ns(),
        ended_ns: 0,
        operations: 0,
        checksum: 0,
        stalls: Stalls::default(),
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
        let after = now_ns();
        let took = after - before;
        phase.stalls.note(done, took);
        phase.operations += done;
        if batch_operations == 1 {
            latencies.saturating_record(took);
        }
        if after >= deadline || phase.operations == max_operations || budget.is_spent(after) {
            break;
        }
        if done == batch_operations && took < BATCH_MIN_NS {
            batch_operations *= 2;
            phase.batched = true;
        } else if batch_operations > 1 && took > BATCH_MAX_NS {
            batch_operations /= 2;
        }
        before = after;
    }
    phase.checksum = phase.checksum.wrapping_add(work.finish()?);
    phase.ended_ns = now_ns();
    Ok(phase)
}

fn latency_phase(
    work: &mut dyn Operations,
    first_operation: u64,
    limits: Limits,
    sample: &mut ThreadSample,
) -> Result<(), CallFailure> {
    let max_operations = match limits.max_operations {
        0 => u64::MAX,
        bounded => bounded.saturating_sub(sample.operations),
    };
    let mut budget = DeviceBudget::new(limits.max_device_bytes / 4);
    let first = first_operation + sample.operations;
    let end = limits.end(first_operation);
    // Short batches meet the deadline, long ones keep a ring full. An operation alone may spend a device budget.
    let mut batch_operations = if limits.max_device_bytes > 0 { 1 } else { 8 };
    let started = now_ns();
    let deadline = started + limits.latency_ns;
    let mut after = started;
    while after < deadline && sample.latency_operations < max_operations && !budget.is_spent(after) {
        let wanted = batch_operations.min(max_operations - sample.latency_operations);
        let done =
            work.perform_timed(first + sample.latency_operations, wanted, end, &mut sample.latencies)?;
        sample.checksum = sample.checksum.wrapping_add(done.checksum);
        sample.latency_operations += done.operations;
        let now = now_ns();
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
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use pagewise_protocol::{Go, Job};

    use super::*;
    use crate::reader::tests::{Fixture, mapped};
    use crate::reader::{Due, Reader, TableReads};
    use crate::sampling::empty_latencies;

    /// Counts its calls; every read's checksum is its offset.
    #[derive(Clone)]
    struct Counting {
        batches: Arc<Mutex<Vec<usize>>>,
        sleep: Duration,
    }

    impl Counting {
        fn new(sleep: Duration) -> Self {
            Self { batches: Arc::default(), sleep }
        }
    }

    impl Reader for Counting {
        fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
            self.batches.lock().expect("one thread").push(due.entries.len());
            std::thread::sleep(self.sleep);
            Ok(due.entries.iter().sum())
        }

        fn fetch(&mut self, _: u64, _: &mut [u8]) -> Result<(), CallFailure> {
            Ok(())
        }
    }

    fn run(reader: &Counting, offsets: &[u64], first: u64, limits: Limits) -> ThreadSample {
        let job = Job { reads_per_op: 2, ..Fixture::new(4096).job(100, 1, 1) };
        let mut reads = TableReads::divide(vec![Box::new(reader.clone())], mapped(offsets), &job);
        reads[0].begin(&Go { first_operation: first, ..Go::default() });
        let sample =
            sample(reads[0].as_mut(), first, limits, &|| (), &AtomicBool::new(false), empty_latencies())
                .expect("no call fails");
        assert_eq!(sample.bytes, (sample.operations + sample.latency_operations) * 200);
        sample
    }

    fn limits(max_operations: u64) -> Limits {
        // Bounded by operations alone: a test does not depend on a time.
        Limits { sample_ns: u64::MAX / 2, latency_ns: u64::MAX / 2, max_operations, max_device_bytes: 0 }
    }

    #[test]
    fn both_phases_walk_the_table_once_and_in_order() {
        let offsets: Vec<u64> = (0..2000).collect();
        let reader = Counting::new(Duration::ZERO);
        let sample = run(&reader, &offsets, 0, limits(1000));
        let done = sample.operations + sample.latency_operations;
        assert_eq!(sample.operations, 750, "three quarters are the throughput phase's");
        assert_eq!(done, 1000);
        assert_eq!(sample.checksum, (0..2000).sum::<u64>());
        assert_eq!(sample.latencies.len(), sample.latency_operations, "each operation of the phase is timed");
    }

    #[test]
    fn slow_operations_are_their_own_latencies() {
        let offsets: Vec<u64> = (0..200).collect();
        let reader = Counting::new(Duration::from_micros(300));
        let sample = run(&reader, &offsets, 0, limits(40));
        let batches = reader.batches.lock().expect("one thread");
        assert!(batches.iter().all(|reads| *reads == 2), "{batches:?}");
        assert_eq!((sample.latency_operations, sample.latencies.len()), (0, sample.operations));
    }

    #[test]
    fn the_table_is_gone_through_again_from_where_it_began() {
        let offsets: Vec<u64> = (0..16).collect();
        let reader = Counting::new(Duration::ZERO);
        let sample = run(&reader, &offsets, 3, limits(16));
        assert_eq!(sample.operations + sample.latency_operations, 16);
        assert_eq!(sample.checksum, 2 * (0..16).sum::<u64>());
    }
}
