//! `uring`: reads in flight through io_uring, a ring for each thread.
//!
//! The window is kept full: as soon as completions have been consumed, their slots get the next reads of the table,
//! across operations and batches. A batch therefore returns when its reads are queued, not when they are done. Of recorded reads
//! as many are in flight, which is a bound: a program may not know them yet.

use pagewise_protocol::CallFailure;
use pagewise_sys::{Completion, Ring};

use super::order::{Independent, Order, OrderKind, ReadInOrder, Recorded, Stopped};
use super::widening::{Widened, widen, widest};
use super::{Due, Latencies, ReadRange, ReadTarget, Reader, TIMED_BATCH_OPERATIONS};
use crate::clock::now_ns;
use crate::consume::by_consumer;
use crate::failure::failed;
use crate::file::FailedRead;

struct UringReader {
    ring: Ring,
    target: ReadTarget,
    /// 1 without O_DIRECT, so that nothing is widened.
    alignment: usize,
    free: Vec<usize>,
    reads: Vec<Widened>,
    /// Requested bytes of each slot's read.
    lens: Vec<usize>,
    /// Weight of the checksum of each slot's read.
    weights: Vec<u64>,
    /// In the latency phase: the operation of the batch that each slot's read belongs to.
    operation_of: Vec<usize>,
    /// In the latency phase: the operations of the batch.
    pending: Vec<Pending>,
}

/// An operation of the latency phase with unfinished reads.
#[derive(Clone, Copy)]
struct Pending {
    started_ns: u64,
    missing: usize,
}

pub(super) fn open(
    target: &ReadTarget,
    threads: usize,
    per_thread: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let direct = target.file.effects.direct;
    let alignment = if direct { target.file.direct_alignment } else { 1 };
    let shared = target.file.open(direct)?;
    (0..threads)
        .map(|_| {
            let file = if per_thread {
                target.file.open(direct)?
            } else {
                rustix::io::fcntl_dupfd_cloexec(&shared, 0)
                    .map_err(|error| failed("fcntl(F_DUPFD)", error.into(), &target.file.path, 0))?
            };
            let depth = target.file.effects.depth as usize;
            let ring = target.file.ring(file, widest(target.read_bytes, alignment))?;
            let reader = UringReader {
                ring,
                target: target.clone(),
                alignment,
                free: (0..depth).rev().collect(),
                reads: vec![Widened::default(); depth],
                lens: vec![0; depth],
                weights: vec![0; depth],
                operation_of: vec![0; depth],
                pending: Vec::with_capacity(TIMED_BATCH_OPERATIONS),
            };
            Ok(match target.order {
                OrderKind::Recorded => Box::new(RecordedRing(reader)),
                OrderKind::Independent | OrderKind::Dependent => reader.boxed(target),
            })
        })
        .collect()
}

impl UringReader {
    #[inline(always)]
    fn queue(&mut self, slot: usize, weight: u64, (offset, len): (u64, usize)) {
        let read = widen(offset, len, self.alignment, self.target.file.file_bytes);
        self.reads[slot] = read;
        self.lens[slot] = len;
        self.weights[slot] = weight;
        self.ring.queue_read(slot, read.offset, read.len);
    }

    /// Check a completion and consume its bytes.
    #[inline(always)]
    fn consume(&self, completion: Completion, consume: impl Fn(&[u8]) -> u64) -> Result<u64, CallFailure> {
        let read = self.reads[completion.slot];
        if completion.result != read.expected as i32 {
            return Err(self.failure(completion));
        }
        let len = self.lens[completion.slot];
        let bytes = &self.ring.buffer(completion.slot)[read.inner..read.inner + len];
        Ok(self.weights[completion.slot].wrapping_mul(consume(bytes)))
    }

    #[cold]
    fn failure(&self, completion: Completion) -> CallFailure {
        let read = self.reads[completion.slot];
        FailedRead::at_completion(read.offset, read.expected, completion)
            .into_failure("io_uring read", &self.target.file.path)
    }

    #[cold]
    fn submit_failure(&self, error: std::io::Error) -> CallFailure {
        failed("io_uring_enter", error, &self.target.file.path, 0)
    }

    /// Start the queued reads, wait for at least one and consume all that are done.
    #[inline(always)]
    fn reap(&mut self, consume: impl Fn(&[u8]) -> u64 + Copy) -> Result<u64, CallFailure> {
        self.ring.submit(1).map_err(|error| self.submit_failure(error))?;
        let mut total = 0u64;
        while let Some(completion) = self.ring.complete() {
            total = total.wrapping_add(self.consume(completion, consume)?);
            self.free.push(completion.slot);
        }
        Ok(total)
    }

    /// Timed region: `for each (weight, offset): (while no slot is free: enter, consume what is done); queue(offset)`.
    #[inline(never)]
    fn queue_reads(
        &mut self,
        due: Due<'_>,
        order: impl Order,
        consume: impl Fn(&[u8]) -> u64 + Copy,
    ) -> Result<u64, CallFailure> {
        let (mut total, len) = (0u64, self.target.read_bytes);
        for (weight, entry) in due.weighted() {
            let slot = loop {
                match self.free.pop() {
                    Some(slot) => break slot,
                    None => total = total.wrapping_add(self.reap(consume)?),
                }
            };
            self.queue(slot, weight, order.range(entry, len));
        }
        Ok(total)
    }

    /// Timed region: as [`UringReader::queue_reads`], with a clock reading at the first read of an operation and after
    /// each harvest of completions.
    fn queue_timed(
        &mut self,
        due: Due<'_>,
        reads_per_op: usize,
        latencies: &mut Latencies,
        consume: impl Fn(&[u8]) -> u64 + Copy,
    ) -> Result<u64, CallFailure> {
        let mut total = 0u64;
        let (mut next, count, mut reads) = (0, due.entries.len(), due.weighted());
        self.pending.clear();
        while next < count || self.ring.in_flight() > 0 {
            while let Some(slot) = if next < count { self.free.pop() } else { None } {
                if next.is_multiple_of(reads_per_op) {
                    self.pending.push(Pending { started_ns: now_ns(), missing: reads_per_op });
                }
                self.operation_of[slot] = next / reads_per_op;
                let (weight, offset) = reads.next().expect("as many as there are entries");
                self.queue(slot, weight, (offset, self.target.read_bytes));
                next += 1;
            }
            self.ring.submit(1).map_err(|error| self.submit_failure(error))?;
            while let Some(completion) = self.ring.complete() {
                total = total.wrapping_add(self.consume(completion, consume)?);
                self.free.push(completion.slot);
                let operation = &mut self.pending[self.operation_of[completion.slot]];
                operation.missing -= 1;
                if operation.missing == 0 {
                    latencies.saturating_record(now_ns() - operation.started_ns);
                }
            }
        }
        Ok(total)
    }
}

impl Reader for UringReader {
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        by_consumer!(self.target.consumption, |consume| self.queue_reads(due, Independent, consume))
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        let mut total = 0u64;
        while self.ring.in_flight() > 0 {
            let done = by_consumer!(self.target.consumption, |consume| self.reap(consume))?;
            total = total.wrapping_add(done);
        }
        Ok(total)
    }

    fn read_timed(
        &mut self,
        reads: ReadRange<'_>,
        reads_per_op: usize,
        latencies: &mut Latencies,
    ) -> Result<u64, CallFailure> {
        by_consumer!(self.target.consumption, |consume| self.queue_timed(
            reads.due(),
            reads_per_op,
            latencies,
            consume
        ))
    }

    fn is_sequential(&self) -> bool {
        false
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.finish()?;
        let slot = self.free.last().copied().expect("no read is in flight");
        self.read(Due { entries: &[offset], place: 0 })?;
        let inner = self.reads[slot].inner;
        self.finish()?;
        into.copy_from_slice(&self.ring.buffer(slot)[inner..inner + into.len()]);
        Ok(())
    }
}

/// Timed region: [`Order::reads`] with `queue(offset); enter, which waits for it; link(slot); consume(slot)`. One read
/// is in flight, as the next one follows from its data.
#[inline(never)]
fn one_by_one<O: Order>(
    reader: &mut UringReader,
    due: Due<'_>,
    order: O,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped<CallFailure>> {
    order.reads(due, |offset| {
        reader.queue(0, 1, (offset, reader.target.read_bytes));
        let completion = loop {
            reader.ring.submit(1).map_err(|error| reader.submit_failure(error))?;
            // There is none if a signal ended the wait.
            if let Some(completion) = reader.ring.complete() {
                break completion;
            }
        };
        let read = reader.reads[0];
        if completion.result != read.expected as i32 {
            return Err(reader.failure(completion));
        }
        let bytes = &reader.ring.buffer(0)[read.inner..read.inner + reader.target.read_bytes];
        Ok((order.link(bytes), consume(bytes)))
    })
}

impl ReadInOrder for UringReader {
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure> {
        by_consumer!(self.target.consumption, |consume| one_by_one(self, due, order, consume))
            .map_err(|stopped| stopped.into_failure(&self.target, |failure| failure))
    }
}

/// A ring whose entries are reads of a trace.
struct RecordedRing(UringReader);

impl Reader for RecordedRing {
    /// Timed region: [`UringReader::queue_reads`] of all entries, until the last one is done.
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        let ring = &mut self.0;
        let queued =
            by_consumer!(ring.target.consumption, |consume| ring.queue_reads(due, Recorded, consume))?;
        Ok(queued.wrapping_add(ring.finish()?))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.0.fetch(offset, into)
    }
}
