//! `uring`: writes in flight through io_uring.
//!
//! Records are copied to the buffer of a slot, a record for each without `buffer=`, and a full
//! buffer is queued. Slots are used in turn: a buffer is filled again when its own write is done. A
//! buffer ends at the end of the ring.
//!
//! Writes in flight may reach the file in any order. They never overlap: if the ring is shorter
//! than the bytes that can be in flight, the writes of a pass are completed before the next one
//! begins.

use std::io;

use pagewise_model::{Bytes, Method, SyncCall};
use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, Completion, Ring, RingOptions};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::call::{needs_buffer, read_block};
use super::durable::sync_ranges;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::setup::write_failure;
use super::staging::BlockRules;
use super::{WriteTarget, Writer};
use crate::clock::now_ns;
use crate::failure::{failed, refused, short};
use crate::operations::Latencies;

/// A buffer of at least this size is submitted as soon as it is full, so that the device works
/// while the next one is filled; smaller ones are submitted together, as many as there are slots.
const SUBMITTED_AT_ONCE_BYTES: usize = 4096;

/// A write that is queued or in flight.
#[derive(Clone, Copy, Default)]
struct QueuedWrite {
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
    blocks: BlockRules,
    pieces: Vec<QueuedWrite>,
    /// The slot whose buffer is being filled.
    slot: usize,
    /// Offset of that buffer in the file.
    base: u64,
    filled: usize,
    /// Bytes of it that a [`Writer::finish`] has already put into the file.
    put: usize,
    /// Bytes queued since the last sync.
    queued: u64,
    at_once: bool,
    /// True if writes of two passes could overlap in flight.
    passes_apart: bool,
    /// Content of the file in the block of the last byte.
    block: AnonymousMemory,
}

pub(super) fn open(
    method: &Method,
    target: &WriteTarget,
    source: RecordSource,
) -> Result<Box<dyn Writer>, CallFailure> {
    let record_bytes = target.record_bytes;
    let blocks = match target.effects.buffer {
        Some(buffer) if target.effects.direct => BlockRules::new(buffer, target)?,
        Some(Bytes(buffer)) => BlockRules::bytes(buffer as usize / record_bytes * record_bytes, target),
        None if target.effects.direct => return Err(needs_buffer(method, target)),
        None => BlockRules::bytes(record_bytes, target),
    };
    let access = if target.effects.direct { OFlags::RDWR } else { OFlags::WRONLY };
    let file = target.open(access, target.effects.direct)?;
    target.allocate_for(&file)?;
    let (depth, capacity) = (target.effects.depth as usize, blocks.capacity());
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
        blocks,
        pieces: vec![QueuedWrite::default(); depth],
        slot: 0,
        base: 0,
        filled: 0,
        put: 0,
        queued: 0,
        at_once: capacity >= SUBMITTED_AT_ONCE_BYTES || progress.writes_sync(),
        progress,
        passes_apart: (depth * capacity) as u64 > target.ring_bytes,
        block: target.memory(blocks.alignment())?,
    }))
}

impl UringWriter {
    /// Queue the content of the buffer, `len` bytes including the filling of the last block.
    fn queue(&mut self, len: usize) {
        let fresh = (self.filled - self.put) as u64;
        let queued_ns = if self.progress.writes_sync() { now_ns() } else { 0 };
        self.pieces[self.slot] = QueuedWrite { base: self.base, start: 0, end: len, fresh, queued_ns };
        self.ring.queue_write(self.slot, 0..len, self.base);
        self.queued += fresh;
    }

    /// Queue a full buffer and continue with the next one; after the end of the ring its last block
    /// is filled up with zeros.
    fn flush(&mut self) -> Result<(), CallFailure> {
        let padded = self.blocks.padded(self.filled);
        self.ring.buffer_mut(self.slot)[self.filled..padded].fill(0);
        self.queue(padded);
        if self.at_once {
            self.enter(0)?;
        }
        self.slot = (self.slot + 1) % self.pieces.len();
        self.base = self.blocks.next(self.base, self.filled);
        (self.filled, self.put) = (0, 0);
        if self.base == 0 && self.passes_apart {
            self.drain()?;
        }
        if self.queued >= self.progress.sync_bytes() { self.sync_now() } else { Ok(()) }
    }

    /// Put a part of a buffer into the file. The file's content in the rest of the last block does
    /// not change; the buffer is filled further and written again when it is full.
    fn flush_part(&mut self) -> Result<(), CallFailure> {
        self.drain()?;
        let (padded, alignment) = (self.blocks.padded(self.filled), self.blocks.alignment());
        if padded > self.filled {
            let start = padded - alignment;
            read_block(self.ring.file(), &self.path, self.block.bytes_mut(), self.base + start as u64)?;
            let rest = &self.block.bytes()[self.filled - start..];
            self.ring.buffer_mut(self.slot)[self.filled..padded].copy_from_slice(rest);
        }
        self.queue(padded);
        self.put = self.filled;
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
    fn take(&mut self, Completion { slot, result }: Completion) -> Result<(), CallFailure> {
        let piece = &mut self.pieces[slot];
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
    /// Timed region:
    /// `while bytes are left: (while the slot is in flight: enter, take what is done); copy what fits; if the buffer is full: queue its write, next slot`.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let mut left = count * self.source.record_bytes() as u64;
        while left > 0 {
            while self.ring.is_in_flight(self.slot) {
                self.enter(1)?;
            }
            let limit = self.blocks.limit(self.base);
            let len = (limit - self.filled).min(usize::try_from(left).unwrap_or(usize::MAX));
            let buffer = self.ring.buffer_mut(self.slot);
            self.source.stream(&mut buffer[self.filled..self.filled + len]);
            self.filled += len;
            left -= len as u64;
            if self.filled == limit {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        if self.filled > self.put {
            self.flush_part()?;
        }
        self.drain()?;
        if self.progress.owes_sync() { self.sync_now() } else { Ok(()) }
    }

    fn written(&self) -> u64 {
        self.progress.written()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        sync_ranges(self.sync_call, self.ring.file(), &self.path, [0..self.file_bytes, 0..0])
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.progress.take_durations()
    }
}
