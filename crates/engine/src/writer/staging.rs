//! `buffer=`: records are collected in memory and put into the file together.
//!
//! [`Staged`] collects whole records and flushes when the next one does not fit. [`BlockStream`]
//! fills its buffer to the last byte, splitting a record if necessary, because O_DIRECT moves whole
//! blocks at multiples of their size.

use pagewise_model::Bytes;
use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::setup::impossible;
use super::{Sink, WriteTarget, Writer, put_synced, sync_now, sync_rest};
use crate::operations::Latencies;

/// A sink that takes whole blocks.
pub(super) trait BlockSink: Sink {
    /// Read the block at `offset`.
    fn read_block(&mut self, block: &mut [u8], offset: u64) -> Result<(), CallFailure>;
}

/// Whole records on their way to the file.
pub(super) struct Staged<S> {
    sink: S,
    source: RecordSource,
    progress: WriteProgress,
    /// Buffer of as many whole records as fit.
    buffer: AnonymousMemory,
    filled: usize,
}

impl<S: Sink> Staged<S> {
    pub(super) fn new(
        sink: S,
        buffer: Bytes,
        target: &WriteTarget,
        source: RecordSource,
    ) -> Result<Self, CallFailure> {
        let capacity = buffer.0 as usize / target.record_bytes * target.record_bytes;
        let buffer = target.memory(capacity)?;
        Ok(Self { sink, source, progress: target.progress(), buffer, filled: 0 })
    }

    /// Put the staged bytes into the file, and move the cursor by them.
    #[inline(always)]
    fn flush(&mut self) -> Result<(), CallFailure> {
        let filled = self.filled as u64;
        if filled == 0 {
            return Ok(());
        }
        self.filled = 0;
        let due = if filled <= self.progress.room() {
            let (bytes, cursor) = (&self.buffer.bytes()[..filled as usize], self.progress.cursor());
            put_synced(&mut self.sink, &mut self.progress, bytes, cursor)?;
            self.progress.advance(filled)
        } else {
            self.put_in_parts(filled as usize)?
        };
        if due { sync_now(&mut self.sink, &mut self.progress) } else { Ok(()) }
    }

    /// The same if the end of the ring is between: the second part goes to its start. Return true
    /// if a sync is due.
    #[cold]
    #[inline(never)]
    fn put_in_parts(&mut self, filled: usize) -> Result<bool, CallFailure> {
        let mut bytes = &self.buffer.bytes()[..filled];
        let mut due = false;
        while !bytes.is_empty() {
            let len = bytes.len().min(usize::try_from(self.progress.room()).unwrap_or(usize::MAX));
            let (part, rest) = bytes.split_at(len);
            let cursor = self.progress.cursor();
            put_synced(&mut self.sink, &mut self.progress, part, cursor)?;
            due |= self.progress.advance(len as u64);
            bytes = rest;
        }
        Ok(due)
    }
}

impl<S: Sink> Writer for Staged<S> {
    /// Timed region:
    /// `for each record: if it does not fit: put(buffer), filled = 0; memcpy(buffer + filled, record)`.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let mut left = count * self.source.record_bytes() as u64;
        while left > 0 {
            let capacity = self.buffer.bytes().len();
            if self.filled == capacity {
                self.flush()?;
            }
            let len = (capacity - self.filled).min(usize::try_from(left).unwrap_or(usize::MAX));
            self.source.records(&mut self.buffer.bytes_mut()[self.filled..self.filled + len]);
            self.filled += len;
            left -= len as u64;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        self.flush()?;
        sync_rest(&mut self.sink, &mut self.progress)
    }

    fn written(&self) -> u64 {
        self.progress.written()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.sink.sync_all()
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.progress.take_durations()
    }
}

/// A stream of bytes on its way to the file, in whole blocks.
pub(super) struct BlockStream<S> {
    sink: S,
    source: RecordSource,
    progress: WriteProgress,
    blocks: BlockRules,
    buffer: AnonymousMemory,
    /// Offset in the file of the buffer's first byte: a multiple of the alignment.
    base: u64,
    filled: usize,
    /// Bytes of the buffer that a [`Writer::finish`] has already put into the file.
    put: usize,
    /// Content of the file in the block of the last byte.
    block: AnonymousMemory,
}

/// Constraints of O_DIRECT on a ring.
#[derive(Clone, Copy)]
pub(super) struct BlockRules {
    alignment: usize,
    capacity: usize,
    ring_bytes: u64,
}

impl BlockRules {
    /// Rules for a buffer of whole blocks. Fails if the last block of the ring would make the file
    /// longer.
    pub(super) fn new(capacity: Bytes, target: &WriteTarget) -> Result<Self, CallFailure> {
        let alignment = target.direct_alignment;
        let end = target.ring_bytes.next_multiple_of(alignment as u64);
        if end > target.file_bytes {
            return Err(impossible(
                &target.path,
                format!(
                    "the last record ends at {}, its block of {alignment} bytes ends past the end of the file ({} bytes): O_DIRECT writes whole blocks",
                    target.ring_bytes, target.file_bytes
                ),
            ));
        }
        Ok(Self { alignment, capacity: capacity.0 as usize, ring_bytes: target.ring_bytes })
    }

    /// Blocks of one byte, for writes without O_DIRECT.
    pub(super) fn bytes(capacity: usize, target: &WriteTarget) -> Self {
        Self { alignment: 1, capacity, ring_bytes: target.ring_bytes }
    }

    /// Capacity of a buffer that begins at `base` of the file: up to its size or the end of the
    /// ring.
    #[inline(always)]
    pub(super) fn limit(&self, base: u64) -> usize {
        match usize::try_from(self.ring_bytes - base) {
            Ok(room) => room.min(self.capacity),
            Err(_) => self.capacity,
        }
    }

    /// Offset of the buffer after one of `len` bytes at `base`.
    #[inline(always)]
    pub(super) fn next(&self, base: u64, len: usize) -> u64 {
        let next = base + len as u64;
        if next == self.ring_bytes { 0 } else { next }
    }

    /// Length of whole blocks that hold `len` bytes.
    #[inline(always)]
    pub(super) fn padded(&self, len: usize) -> usize {
        if self.alignment == 1 { len } else { len.next_multiple_of(self.alignment) }
    }

    /// Size of the buffer.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Size of a block.
    pub(super) fn alignment(&self) -> usize {
        self.alignment
    }
}

impl<S: BlockSink> BlockStream<S> {
    pub(super) fn new(
        sink: S,
        buffer: Bytes,
        target: &WriteTarget,
        source: RecordSource,
    ) -> Result<Self, CallFailure> {
        let blocks = BlockRules::new(buffer, target)?;
        Ok(Self {
            sink,
            source,
            progress: target.progress(),
            blocks,
            buffer: target.memory(blocks.capacity)?,
            base: 0,
            filled: 0,
            put: 0,
            block: target.memory(blocks.alignment)?,
        })
    }

    /// Put a full buffer into the file; after the end of the ring its last block is filled up with
    /// zeros.
    fn flush(&mut self) -> Result<(), CallFailure> {
        let padded = self.blocks.padded(self.filled);
        self.buffer.bytes_mut()[self.filled..padded].fill(0);
        put_synced(&mut self.sink, &mut self.progress, &self.buffer.bytes()[..padded], self.base)?;
        let due = self.progress.reach((self.filled - self.put) as u64);
        self.base = self.blocks.next(self.base, self.filled);
        (self.filled, self.put) = (0, 0);
        if due { sync_now(&mut self.sink, &mut self.progress) } else { Ok(()) }
    }

    /// Put a part of a buffer into the file. The file's content in the rest of the last block does
    /// not change; the buffer is filled further and written again when it is full.
    fn flush_part(&mut self) -> Result<(), CallFailure> {
        let padded = self.blocks.padded(self.filled);
        if padded > self.filled {
            let start = padded - self.blocks.alignment;
            self.sink.read_block(self.block.bytes_mut(), self.base + start as u64)?;
            let rest = &self.block.bytes()[self.filled - start..];
            self.buffer.bytes_mut()[self.filled..padded].copy_from_slice(rest);
        }
        put_synced(&mut self.sink, &mut self.progress, &self.buffer.bytes()[..padded], self.base)?;
        self.progress.reach((self.filled - self.put) as u64);
        self.put = self.filled;
        Ok(())
    }
}

impl<S: BlockSink> Writer for BlockStream<S> {
    /// Timed region:
    /// `while bytes are left: if the buffer is full: put(buffer), filled = 0; copy what fits`.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let mut left = count * self.source.record_bytes() as u64;
        while left > 0 {
            if self.filled == self.blocks.limit(self.base) {
                self.flush()?;
            }
            let room = self.blocks.limit(self.base) - self.filled;
            let len = room.min(usize::try_from(left).unwrap_or(usize::MAX));
            self.source.stream(&mut self.buffer.bytes_mut()[self.filled..self.filled + len]);
            self.filled += len;
            left -= len as u64;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        if self.filled == self.blocks.limit(self.base) {
            self.flush()?;
        } else if self.filled > self.put {
            self.flush_part()?;
        }
        sync_rest(&mut self.sink, &mut self.progress)
    }

    fn written(&self) -> u64 {
        self.progress.written()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.sink.sync_all()
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.progress.take_durations()
    }
}
