//! `uring`: reads in flight through io_uring, a ring for each thread.
//!
//! The window is kept full: as soon as completions have been consumed, their slots get the next
//! reads of the table, across operations and batches. Reads are started in groups of
//! [`STARTED_TOGETHER`], or when none can be queued. A batch therefore returns when its reads are
//! queued, not when they are done. Of recorded reads as many are in flight, which is a bound: a
//! program may not know them yet.

use std::cell::Cell;

use pagewise_model::checksum::Consumption;
use pagewise_protocol::CallFailure;
use pagewise_sys::{Completion, Ring};

use super::order::{Order, Stopped};
use super::widening::{Widened, widest};
use super::{Due, Latencies, ReadRange, ReadTarget, Reader, TIMED_BATCH_OPERATIONS, one_by_one};
use crate::clock::now_ns;
use crate::consume::by_consumer;
use crate::failure::failed;
use crate::file::FailedRead;

/// Most reads that are queued before they are started. A device that completes most of its window
/// at once is idle until the next reads are started; a call for each read is a sixth of a cached
/// one.
const STARTED_TOGETHER: usize = 4;

pub(super) struct UringReader<O> {
    ring: Ring,
    target: ReadTarget,
    order: O,
    free: Vec<usize>,
    /// Reads that are queued and not started.
    queued: usize,
    reads: Vec<Widened>,
    /// Index of the file of each slot's read; 0 of one file.
    file_of: Vec<usize>,
    /// Requested bytes of each slot's read.
    lens: Vec<usize>,
    /// Weight of the checksum of each slot's read.
    weights: Vec<u64>,
    /// The piece of each slot's read: 0 or 1, in turn.
    piece_of: Vec<usize>,
    /// The piece that is being queued.
    piece: usize,
    pieces: [PieceProgress; 2],
    /// Checksum of the reads that were done since a call returned it.
    done: u64,
    /// Position in a page of the word that `touch` takes, of all reads in flight.
    touch_at: u64,
    /// True in the latency phase.
    timed: bool,
    /// In the latency phase: the operation of the batch that each slot's read belongs to.
    operation_of: Vec<usize>,
    /// In the latency phase: the operations of the batch.
    pending: Vec<Pending>,
    /// In the latency phase: latencies that are not recorded yet.
    taken_ns: Vec<u64>,
}

/// Reads of a piece of the table.
#[derive(Clone, Copy, Default)]
struct PieceProgress {
    in_flight: usize,
    /// Checksum of those that are done.
    checksum: u64,
}

/// An operation of the latency phase with unfinished reads.
#[derive(Clone, Copy)]
struct Pending {
    started_ns: u64,
    missing: usize,
}

pub(super) fn open<O: Order>(target: &ReadTarget, order: O) -> Result<Vec<UringReader<O>>, CallFailure> {
    let direct = target.file.effects.direct;
    let shared = target.file.open_each(direct)?;
    (0..target.threads)
        .map(|_| {
            let duplicate = |file| {
                rustix::io::fcntl_dupfd_cloexec(file, 0)
                    .map_err(|error| failed("fcntl(F_DUPFD)", error.into(), &target.file.path, 0))
            };
            let files = match target.per_thread {
                true => target.file.open_each(direct)?,
                false => shared.iter().map(duplicate).collect::<Result<_, _>>()?,
            };
            let depth = target.file.effects.depth as usize;
            let ring = target.file.ring(files, widest(target.read_bytes, target.alignment))?;
            Ok(UringReader {
                ring,
                target: target.clone(),
                order,
                free: (0..depth).rev().collect(),
                queued: 0,
                reads: vec![Widened::default(); depth],
                file_of: vec![0; depth],
                lens: vec![0; depth],
                weights: vec![0; depth],
                piece_of: vec![0; depth],
                piece: 0,
                pieces: Default::default(),
                done: 0,
                touch_at: 0,
                timed: false,
                operation_of: vec![0; depth],
                pending: Vec::with_capacity(TIMED_BATCH_OPERATIONS),
                taken_ns: Vec::with_capacity(TIMED_BATCH_OPERATIONS),
            })
        })
        .collect()
}

impl<O: Order> UringReader<O> {
    #[inline(always)]
    fn queue(
        &mut self,
        slot: usize,
        weight: u64,
        len: usize,
        (file, read): (usize, Widened),
    ) -> Result<(), CallFailure> {
        self.file_of[slot] = file;
        self.reads[slot] = read;
        self.lens[slot] = len;
        self.weights[slot] = weight;
        self.piece_of[slot] = self.piece;
        self.pieces[self.piece].in_flight += 1;
        self.ring.queue_read_of(file, slot, read.offset, read.len);
        self.queued += 1;
        if self.queued == STARTED_TOGETHER { self.enter(0) } else { Ok(()) }
    }

    /// Start the queued reads, and wait until at least `wait` are done.
    #[inline(always)]
    fn enter(&mut self, wait: usize) -> Result<(), CallFailure> {
        self.queued = 0;
        self.ring.submit(wait).map_err(|error| failed("io_uring_enter", error, &self.target.file.path, 0))
    }

    /// Check a completion, consume its bytes and free its slot.
    #[inline(always)]
    fn consume(&mut self, completion: Completion, consume: impl Fn(&[u8]) -> u64) -> Result<(), CallFailure> {
        let read = self.reads[completion.slot];
        if completion.result != read.expected as i32 {
            return Err(self.failure(completion));
        }
        let len = self.lens[completion.slot];
        let bytes = &self.ring.buffer(completion.slot)[read.inner..read.inner + len];
        let checksum = self.weights[completion.slot].wrapping_mul(consume(bytes));
        let piece = &mut self.pieces[self.piece_of[completion.slot]];
        piece.in_flight -= 1;
        piece.checksum = piece.checksum.wrapping_add(checksum);
        self.done = self.done.wrapping_add(checksum);
        self.free.push(completion.slot);
        Ok(())
    }

    #[cold]
    fn failure(&self, completion: Completion) -> CallFailure {
        let (read, file) = (self.reads[completion.slot], &self.target.file);
        let path = match &file.several {
            None => &file.path,
            Some(files) => files.part(self.file_of[completion.slot]).path,
        };
        FailedRead::at_completion(read.offset, read.expected, completion).into_failure("io_uring read", path)
    }

    /// Start the queued reads, wait for at least one and consume all that are done.
    #[inline(always)]
    fn reap(&mut self, consume: impl Fn(&[u8]) -> u64 + Copy) -> Result<(), CallFailure> {
        self.enter(1)?;
        while let Some(completion) = self.ring.complete() {
            self.consume(completion, consume)?;
        }
        Ok(())
    }

    /// [`UringReader::reap`] with a clock reading at the end of each operation.
    fn reap_timed(&mut self, consume: impl Fn(&[u8]) -> u64 + Copy) -> Result<(), CallFailure> {
        self.enter(1)?;
        while let Some(completion) = self.ring.complete() {
            self.consume(completion, consume)?;
            let operation = &mut self.pending[self.operation_of[completion.slot]];
            operation.missing -= 1;
            if operation.missing == 0 {
                self.taken_ns.push(now_ns() - operation.started_ns);
            }
        }
        Ok(())
    }

    /// Timed region: [`Order::reads`] with
    /// `(while no slot is free: enter, consume what is done); queue(place(offset)), and enter if so many are queued`;
    /// of dependent reads with `enter, which waits for it; consume; link(slot)` behind it.
    #[inline(never)]
    fn queue_reads(
        &mut self,
        due: Due<'_>,
        place: impl Fn(&ReadTarget, u64, usize) -> (usize, Widened),
        consume: impl Fn(&[u8]) -> u64 + Copy,
    ) -> Result<u64, CallFailure> {
        self.touch_at = due.touch_at;
        let (order, longest) = (self.order, self.target.read_bytes);
        let queued = order.reads(
            due,
            longest,
            #[inline(always)]
            |weight, (offset, len)| {
                let slot = loop {
                    match self.free.pop() {
                        Some(slot) => break slot,
                        None => self.reap(consume)?,
                    }
                };
                self.queue(slot, weight, len, place(&self.target, offset, len))?;
                if !O::IS_CHAIN {
                    return Ok(0);
                }
                // None is done if a signal ended the wait.
                while self.free.last() != Some(&slot) {
                    self.reap(consume)?;
                }
                let start = self.reads[slot].inner;
                Ok(order.link(&self.ring.buffer(slot)[start..start + len]))
            },
        );
        queued.map_err(|stopped| self.stop(stopped))?;
        Ok(std::mem::take(&mut self.done))
    }

    /// Timed region: as [`UringReader::queue_reads`], with a clock reading at the first read of an
    /// operation and after each operation.
    #[inline(never)]
    fn queue_timed(
        &mut self,
        due: Due<'_>,
        reads_per_op: usize,
        consume: impl Fn(&[u8]) -> u64 + Copy,
    ) -> Result<(), CallFailure> {
        (self.touch_at, self.timed) = (due.touch_at, true);
        let (order, longest, mut next) = (self.order, self.target.read_bytes, 0usize);
        let queued = order.reads(due, longest, |weight, (offset, len)| {
            let slot = loop {
                match self.free.pop() {
                    Some(slot) => break slot,
                    None => self.reap_timed(consume)?,
                }
            };
            if next.is_multiple_of(reads_per_op) {
                self.pending.push(Pending { started_ns: now_ns(), missing: reads_per_op });
            }
            next += 1;
            self.operation_of[slot] = self.pending.len() - 1;
            self.queue(slot, weight, len, (0, self.target.widen(offset, len)))?;
            Ok(0)
        });
        queued.map_err(|stopped| self.stop(stopped))
    }

    #[cold]
    fn stop(&self, stopped: Stopped<CallFailure>) -> CallFailure {
        stopped.into_failure(&self.target, |failure| failure)
    }

    /// Consumption of the reads in flight.
    fn consumption(&self) -> Consumption {
        self.target.consumption.touching(self.touch_at)
    }

    /// Complete the reads of a piece that are in flight, or of both.
    fn complete(&mut self, of: &[usize]) -> Result<(), CallFailure> {
        let in_flight = |reader: &Self| of.iter().any(|piece| reader.pieces[*piece].in_flight > 0);
        by_consumer!(self.consumption(), |consume| {
            while in_flight(self) {
                if self.timed { self.reap_timed(consume)? } else { self.reap(consume)? }
            }
        });
        Ok(())
    }
}

impl<O: Order> Reader for UringReader<O> {
    #[inline(always)]
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let due = reads.due();
        let last = Cell::new(0);
        let in_one = |target: &ReadTarget, offset, len| (0, target.widen(offset, len));
        let in_several = |target: &ReadTarget, offset, len| target.find(&last, offset, len);
        let consumption = due.consumption(self.target.consumption);
        let several = O::HAS_FILES && self.target.file.several.is_some();
        by_consumer!(consumption, |consume| match several {
            false => self.queue_reads(due, in_one, consume),
            true => self.queue_reads(due, in_several, consume),
        })
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.complete(&[0, 1])?;
        Ok(std::mem::take(&mut self.done))
    }

    fn start_queued(&mut self) -> Result<(), CallFailure> {
        if self.queued > 0 { self.enter(0) } else { Ok(()) }
    }

    fn begin_piece(&mut self) -> Result<Option<u64>, CallFailure> {
        self.piece ^= 1;
        self.complete(&[self.piece])?;
        Ok(Some(std::mem::take(&mut self.pieces[self.piece].checksum)))
    }

    fn read_timed(
        &mut self,
        reads: ReadRange<'_>,
        reads_per_op: usize,
        latencies: &mut Latencies,
    ) -> Result<u64, CallFailure> {
        if self.is_sequential() {
            return one_by_one(self, reads.operations(reads_per_op), latencies);
        }
        let due = reads.due();
        let consumption = due.consumption(self.target.consumption);
        by_consumer!(consumption, |consume| self.queue_timed(due, reads_per_op, consume))?;
        self.taken_ns.drain(..).for_each(|taken| latencies.saturating_record(taken));
        Ok(std::mem::take(&mut self.done))
    }

    fn finish_timed(&mut self, latencies: &mut Latencies) -> Result<u64, CallFailure> {
        let checksum = self.finish()?;
        self.timed = false;
        self.pending.clear();
        self.taken_ns.drain(..).for_each(|taken| latencies.saturating_record(taken));
        Ok(checksum)
    }

    fn is_sequential(&self) -> bool {
        O::IS_CHAIN
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.finish()?;
        let slot = self.free.last().copied().expect("no read is in flight");
        self.read(ReadRange::alone(Due::single(&[offset])))?;
        let inner = self.reads[slot].inner;
        self.finish()?;
        into.copy_from_slice(&self.ring.buffer(slot)[inner..inner + into.len()]);
        Ok(())
    }
}
