//! `uring`: writes in flight through io_uring.
//!
//! Records are copied to the buffer of a slot, a record for each without `buffer=`, and a full
//! buffer is queued. Slots are used in turn: a buffer is filled again when its own write is done. A
//! buffer ends at the end of the ring.
//!
//! Writes in flight may reach the file in any order. They never overlap: if the ring is shorter
//! than the bytes that can be in flight, the writes of a pass are completed before the next one
//! begins. Records that are read between those of an order take slots in the same way; none of
//! them is written while it may be in flight.

use std::io;

use pagewise_model::{Bytes, Method, SyncCall};
use pagewise_protocol::CallFailure;
use pagewise_sys::{Completion, Ring, RingOptions};
use rustix::io::Errno;

use super::blocks::Filling;
use super::call::{needs_buffer, read_block};
use super::durable::sync_ranges;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::scattered::{AccessOrder, ReadSum};
use super::setup::{impossible, write_failure};
use super::{WriteTarget, Writer};
use crate::clock::now_ns;
use crate::failure::{failed, refused, short};
use crate::file::FailedRead;
use crate::operations::Latencies;

/// A buffer of at least this size is submitted as soon as it is full, so that the device works
/// while the next one is filled; smaller ones are submitted together, as many as there are slots.
const SUBMITTED_AT_ONCE_BYTES: usize = 4096;

/// A write or read that is queued or in flight.
#[derive(Clone, Copy, Default)]
struct QueuedWrite {
    /// Number of the read, if it is one.
    read: Option<u64>,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    /// The part of the buffer that is not written yet.
    start: usize,
    end: usize,
    /// Bytes of records in it that the file did not have before.
    fresh: u64,
    /// Clock when it was queued, if the write is a sync; else 0.
    queued_ns: u64,
}

struct UringWriter {
    ring: Ring,
    source: RecordSource,
    progress: WriteProgress,
    path: String,
    file_bytes: u64,
    sync_call: SyncCall,
    pieces: Vec<QueuedWrite>,
    /// The slot whose buffer is being filled.
    slot: usize,
    filling: Filling,
    /// Bytes queued since the last sync.
    queued: u64,
    at_once: bool,
    /// True if writes of two passes could overlap in flight.
    passes_apart: bool,
    /// The accesses in their order; empty if one record follows the other.
    order: AccessOrder,
    reads: ReadSum,
    done: usize,
}

pub(super) fn open(
    method: &Method,
    target: &WriteTarget,
    source: RecordSource,
    order: AccessOrder,
) -> Result<Box<dyn Writer>, CallFailure> {
    let record_bytes = target.record_bytes;
    let filling = match target.effects.buffer {
        Some(buffer) if target.effects.direct => Filling::of_blocks(buffer, target)?,
        Some(Bytes(buffer)) => Filling::of_bytes(buffer as usize / record_bytes * record_bytes, target)?,
        None if target.effects.direct && order.is_empty() => return Err(needs_buffer(method, target)),
        None if target.effects.direct => Filling::of_blocks(Bytes(record_bytes as u64), target)?,
        None => Filling::of_bytes(record_bytes, target)?,
    };
    let (near, depth) = (target.near, u64::from(target.effects.depth));
    if target.reads_each > 0 && depth > near {
        let detail = format!(
            "{method} has {depth} accesses under way at once, and in a file of so few blocks only {near} may be, or a block would be read while it is written: use a smaller depth or a larger --file-size"
        );
        return Err(impossible(&target.path, detail));
    }
    let file = target.open(target.access_flags(), target.effects.direct)?;
    target.allocate_for(&file)?;
    let (depth, capacity) = (target.effects.depth as usize, filling.capacity());
    let dsync = target.sync_call == SyncCall::RwfDsync;
    let options = RingOptions { depth: target.effects.depth, slot_bytes: capacity, fixed: false, dsync };
    let ring =
        Ring::new(file, options).map_err(|refusal| refused(refusal.call, refusal.error, &target.path))?;
    let progress = target.progress();
    Ok(Box::new(UringWriter {
        ring,
        source,
        path: target.path.clone(),
        file_bytes: target.file_bytes,
        sync_call: target.sync_call,
        pieces: vec![QueuedWrite::default(); depth],
        slot: 0,
        filling,
        queued: 0,
        at_once: capacity >= SUBMITTED_AT_ONCE_BYTES || progress.writes_sync(),
        progress,
        passes_apart: order.is_empty() && (depth * capacity) as u64 > target.ring_bytes,
        order,
        reads: ReadSum::new(target),
        done: 0,
    }))
}

impl UringWriter {
    /// Queue the content of the buffer, `len` bytes including the filling of the last block.
    fn queue(&mut self, len: usize) {
        let (fresh, base) = (self.filling.fresh(), self.filling.base());
        let queued_ns = if self.progress.writes_sync() { now_ns() } else { 0 };
        self.pieces[self.slot] = QueuedWrite { read: None, base, start: 0, end: len, fresh, queued_ns };
        self.ring.queue_write(self.slot, 0..len, base);
        self.queued += fresh;
    }

    /// Queue a full buffer and continue with the next one.
    fn flush(&mut self) -> Result<(), CallFailure> {
        let len = self.filling.close(self.ring.buffer_mut(self.slot));
        self.queue(len);
        if self.at_once {
            self.enter(0)?;
        }
        self.slot = (self.slot + 1) % self.pieces.len();
        self.filling.next();
        if self.filling.base() == 0 && self.passes_apart {
            self.drain()?;
        }
        if self.queued >= self.progress.sync_bytes() { self.sync_now() } else { Ok(()) }
    }

    /// Put a part of a buffer into the file.
    fn flush_part(&mut self) -> Result<(), CallFailure> {
        self.drain()?;
        let (file, path) = (self.ring.file(), &self.path);
        self.filling.read_last_block(|block, offset| read_block(file, path, block, offset))?;
        let len = self.filling.close_part(self.ring.buffer_mut(self.slot));
        self.queue(len);
        self.filling.put();
        Ok(())
    }

    /// Go to the next record of an order, and read others before it.
    fn seek(&mut self) -> Result<(), CallFailure> {
        if self.order.is_empty() {
            return Ok(());
        }
        let (size, reads_each) = (self.source.record_bytes(), self.order.reads_each());
        for nth in 0..reads_each {
            self.read(self.order.access(self.done, nth)?, size)?;
        }
        let offset = self.order.access(self.done, reads_each)?;
        self.filling.begin_at(offset);
        self.source.begin_at(offset);
        self.done += 1;
        Ok(())
    }

    /// Queue the read of a record, and continue with the next slot.
    fn read(&mut self, base: u64, len: usize) -> Result<(), CallFailure> {
        let read = Some(self.reads.next());
        self.pieces[self.slot] = QueuedWrite { read, base, start: 0, end: len, ..QueuedWrite::default() };
        self.ring.queue_read(self.slot, base, len);
        if self.at_once {
            self.enter(0)?;
        }
        self.slot = (self.slot + 1) % self.pieces.len();
        self.free_slot()
    }

    /// Wait until the slot is free.
    #[inline(always)]
    fn free_slot(&mut self) -> Result<(), CallFailure> {
        while self.ring.is_in_flight(self.slot) {
            self.enter(1)?;
        }
        Ok(())
    }

    /// Start the queued writes, wait for at least `wait` of them and take those that are done.
    fn enter(&mut self, wait: usize) -> Result<(), CallFailure> {
        self.ring.submit(wait).map_err(|error| failed("io_uring_enter", error, &self.path, 0))?;
        while let Some(completion) = self.ring.complete() {
            self.take(completion)?;
        }
        Ok(())
    }

    /// Count a completed write; the rest of an incomplete one is queued again.
    #[inline(always)]
    fn take(&mut self, completion: Completion) -> Result<(), CallFailure> {
        let Completion { slot, result } = completion;
        let piece = &mut self.pieces[slot];
        if let Some(number) = piece.read {
            if result as usize != piece.end {
                let failed = FailedRead::at_completion(piece.base, piece.end, completion);
                return Err(failed.into_failure("io_uring read", &self.path));
            }
            self.reads.add(number, &self.ring.buffer(slot)[..piece.end]);
            return Ok(());
        }
        if result <= 0 {
            return Err(failure(result, *piece, &self.path));
        }
        piece.start += result as usize;
        if piece.start < piece.end {
            self.ring.queue_write(slot, piece.start..piece.end, piece.base + piece.start as u64);
        } else {
            if piece.queued_ns > 0 {
                self.progress.record_sync(now_ns() - piece.queued_ns);
            }
            self.progress.reach(piece.fresh);
        }
        Ok(())
    }

    /// Wait for all writes.
    fn drain(&mut self) -> Result<(), CallFailure> {
        while self.ring.in_flight() > 0 {
            self.enter(1)?;
        }
        Ok(())
    }

    fn sync_now(&mut self) -> Result<(), CallFailure> {
        self.drain()?;
        let begun = now_ns();
        self.sync()?;
        self.progress.synced(now_ns() - begun);
        self.queued = 0;
        Ok(())
    }
}

#[cold]
fn failure(result: i32, piece: QueuedWrite, path: &str) -> CallFailure {
    let offset = piece.base + piece.start as u64;
    if result == 0 {
        return short("io_uring write", path, offset, piece.end - piece.start, 0);
    }
    let error = io::Error::from_raw_os_error(-result);
    match Errno::from_io_error(&error) {
        Some(errno) => write_failure("io_uring write", errno, path, offset),
        None => failed("io_uring write", error, path, offset),
    }
}

impl Writer for UringWriter {
    fn begin(&mut self, touch_at: u64) {
        self.reads.touch(touch_at);
    }

    /// Timed region:
    /// `while bytes are left: (while the slot is in flight: enter, take what is done); copy what fits; if the buffer is full: queue its write, next slot`.
    /// In an order the buffer is a record, at its own position, after the reads before it.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let mut left = count * self.source.record_bytes() as u64;
        while left > 0 {
            self.free_slot()?;
            self.seek()?;
            left -= self.filling.fill(self.ring.buffer_mut(self.slot), &mut self.source, left);
            if self.filling.is_full() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        if self.filling.fresh() > 0 {
            self.flush_part()?;
        }
        self.drain()?;
        if self.progress.owes_sync() { self.sync_now() } else { Ok(()) }
    }

    fn written(&self) -> u64 {
        self.progress.written()
    }

    fn take_checksum(&mut self) -> u64 {
        self.reads.take()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        sync_ranges(self.sync_call, self.ring.file(), &self.path, [0..self.file_bytes, 0..0])
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.progress.take_durations()
    }
}
