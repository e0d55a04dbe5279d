//! `uring`: reads in flight through io_uring, a ring for each thread.
//!
//! The window is kept full: as soon as completions have been consumed, their slots get the next
//! reads of the table, across operations and batches. Reads are started in groups of
//! [`STARTED_TOGETHER`], or when none can be queued. A batch therefore returns when its reads are
//! queued, not when they are done. Of recorded reads as many are in flight, which is a bound: a
//! program may not know them yet.

use std::cell::Cell;
use std::sync::Arc;

use pagewise_model::checksum::Consumption;
use pagewise_protocol::CallFailure;
use pagewise_sys::{Completion, Ring};

use super::order::{Independent, Order, OrderKind, ReadInOrder, Recorded, Stopped, out_of_range};
use super::widening::{Widened, widen, widen_within, widest};
use super::{Due, Latencies, ReadRange, ReadTarget, Reader, TIMED_BATCH_OPERATIONS};
use crate::clock::now_ns;
use crate::consume::by_consumer;
use crate::failure::failed;
use crate::file::FailedRead;
use crate::files::Files;

/// Most reads that are queued before they are started. A device that completes most of its window
/// at once is idle until the next reads are started; a call for each read is a sixth of a cached
/// one.
const STARTED_TOGETHER: usize = 4;

struct UringReader {
    ring: Ring,
    target: ReadTarget,
    /// 1 without O_DIRECT, so that nothing is widened.
    alignment: usize,
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

pub(super) fn open(
    target: &ReadTarget,
    threads: usize,
    per_thread: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let direct = target.file.effects.direct;
    let alignment = if direct { target.file.direct_alignment } else { 1 };
    let shared = target.file.open_each(direct)?;
    (0..threads)
        .map(|_| {
            let duplicate = |file| {
                rustix::io::fcntl_dupfd_cloexec(file, 0)
                    .map_err(|error| failed("fcntl(F_DUPFD)", error.into(), &target.file.path, 0))
            };
            let files = match per_thread {
                true => target.file.open_each(direct)?,
                false => shared.iter().map(duplicate).collect::<Result<_, _>>()?,
            };
            let depth = target.file.effects.depth as usize;
            let ring = target.file.ring(files, widest(target.read_bytes, alignment))?;
            let reader = UringReader {
                ring,
                target: target.clone(),
                alignment,
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
            };
            Ok(match target.order {
                OrderKind::Recorded => Box::new(RecordedRing {
                    order: Recorded::of(target),
                    ring: reader,
                    several: target.file.several.clone(),
                }),
                OrderKind::Independent | OrderKind::Dependent => reader.boxed(target),
            })
        })
        .collect()
}

/// The way from an offset of the span to a file. A loop is compiled for each.
trait Places {
    /// True if there are several files.
    const SEVERAL: bool;

    /// The index of the file of a read, and the read in it.
    fn place(&self, offset: u64, len: usize) -> (usize, Widened);
}

/// One file, whose offsets are those of the span.
struct OneFile {
    alignment: usize,
    file_bytes: u64,
}

impl OneFile {
    fn of(reader: &UringReader) -> Self {
        Self { alignment: reader.alignment, file_bytes: reader.target.file.file_bytes }
    }
}

impl Places for OneFile {
    const SEVERAL: bool = false;

    #[inline(always)]
    fn place(&self, offset: u64, len: usize) -> (usize, Widened) {
        (0, widen(offset, len, self.alignment, self.file_bytes))
    }
}

/// Several files, of which the last one is looked at first.
struct SeveralFiles<'a> {
    files: &'a Files,
    alignment: usize,
    last: Cell<usize>,
}

impl Places for SeveralFiles<'_> {
    const SEVERAL: bool = true;

    #[inline(always)]
    fn place(&self, offset: u64, len: usize) -> (usize, Widened) {
        let (index, offset) = self.files.locate(self.last.get(), offset);
        self.last.set(index);
        (index, widen_within(offset, len, self.alignment, self.files.part(index).bytes))
    }
}

impl UringReader {
    #[inline(always)]
    fn queue<P: Places>(
        &mut self,
        slot: usize,
        weight: u64,
        (offset, len): (u64, usize),
        places: &P,
    ) -> Result<(), CallFailure> {
        let (file, read) = places.place(offset, len);
        if P::SEVERAL {
            self.file_of[slot] = file;
        }
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

    /// The entry's offset and length.
    #[inline(always)]
    fn range(&self, entry: u64, order: impl Order) -> Result<(u64, usize), CallFailure> {
        order.range(entry, self.target.read_bytes).ok_or_else(|| out_of_range(&self.target, entry))
    }

    /// Timed region:
    /// `for each (weight, offset): (while no slot is free: enter, consume what is done); queue(offset), and enter if so many are queued`.
    #[inline(never)]
    fn queue_reads(
        &mut self,
        due: Due<'_>,
        (order, places): (impl Order, &impl Places),
        consume: impl Fn(&[u8]) -> u64 + Copy,
    ) -> Result<u64, CallFailure> {
        self.touch_at = due.touch_at;
        for (weight, entry) in due.weighted() {
            let slot = loop {
                match self.free.pop() {
                    Some(slot) => break slot,
                    None => self.reap(consume)?,
                }
            };
            let range = self.range(entry, order)?;
            self.queue(slot, weight, range, places)?;
        }
        Ok(std::mem::take(&mut self.done))
    }

    /// Timed region: as [`UringReader::queue_reads`], with a clock reading at the first read of an
    /// operation and after each operation.
    fn queue_timed(
        &mut self,
        due: Due<'_>,
        reads_per_op: usize,
        consume: impl Fn(&[u8]) -> u64 + Copy,
    ) -> Result<(), CallFailure> {
        (self.touch_at, self.timed) = (due.touch_at, true);
        let (order, places) = (Independent::of(&self.target), OneFile::of(self));
        for (next, (weight, entry)) in due.weighted().enumerate() {
            let slot = loop {
                match self.free.pop() {
                    Some(slot) => break slot,
                    None => self.reap_timed(consume)?,
                }
            };
            if next.is_multiple_of(reads_per_op) {
                self.pending.push(Pending { started_ns: now_ns(), missing: reads_per_op });
            }
            self.operation_of[slot] = self.pending.len() - 1;
            let range = self.range(entry, order)?;
            self.queue(slot, weight, range, &places)?;
        }
        Ok(())
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

impl Reader for UringReader {
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let due = reads.due();
        let (order, places) = (Independent::of(&self.target), OneFile::of(self));
        let consumption = due.consumption(self.target.consumption);
        by_consumer!(consumption, |consume| self.queue_reads(due, (order, &places), consume))
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.complete(&[0, 1])?;
        Ok(std::mem::take(&mut self.done))
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
        false
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

/// Timed region: [`Order::reads`] with
/// `queue(offset); enter, which waits for it; link(slot); consume(slot)`. One read is in flight, as
/// the next one follows from its data.
#[inline(never)]
fn one_by_one<O: Order>(
    reader: &mut UringReader,
    due: Due<'_>,
    order: O,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped<CallFailure>> {
    let places = OneFile::of(reader);
    order.reads(due, reader.target.read_bytes, |range| {
        reader.queue(0, 1, range, &places)?;
        let completion = loop {
            reader.enter(1)?;
            // There is none if a signal ended the wait.
            if let Some(completion) = reader.ring.complete() {
                break completion;
            }
        };
        let read = reader.reads[0];
        if completion.result != read.expected as i32 {
            return Err(reader.failure(completion));
        }
        let piece = &mut reader.pieces[reader.piece_of[0]];
        piece.in_flight -= 1;
        let bytes = &reader.ring.buffer(0)[read.inner..read.inner + reader.target.read_bytes];
        Ok((order.link(bytes), consume(bytes)))
    })
}

impl ReadInOrder for UringReader {
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure> {
        let consumption = due.consumption(self.target.consumption);
        by_consumer!(consumption, |consume| one_by_one(self, due, order, consume))
            .map_err(|stopped| stopped.into_failure(&self.target, |failure| failure))
    }
}

/// A ring whose entries are reads of a trace.
struct RecordedRing {
    ring: UringReader,
    order: Recorded,
    several: Option<Arc<Files>>,
}

impl Reader for RecordedRing {
    /// Timed region: [`UringReader::queue_reads`].
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let due = reads.due();
        let Self { ring, order, several } = self;
        let consumption = due.consumption(ring.target.consumption);
        let Some(files) = several else {
            let places = OneFile::of(ring);
            return by_consumer!(consumption, |consume| ring.queue_reads(due, (*order, &places), consume));
        };
        let places = SeveralFiles { files, alignment: ring.alignment, last: Cell::new(0) };
        by_consumer!(consumption, |consume| ring.queue_reads(due, (*order, &places), consume))
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.ring.finish()
    }

    fn start_queued(&mut self) -> Result<(), CallFailure> {
        if self.ring.queued > 0 { self.ring.enter(0) } else { Ok(()) }
    }

    fn begin_piece(&mut self) -> Result<Option<u64>, CallFailure> {
        self.ring.begin_piece()
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.ring.fetch(offset, into)
    }
}
