//! `buffer=`: records are collected in memory and put into the file together.
//!
//! [`Staged`] collects whole records and flushes when the next one does not fit. [`BlockStream`]
//! fills its buffer to the last byte, splitting a record if necessary, because O_DIRECT moves whole
//! blocks at multiples of their size.

use pagewise_model::Bytes;
use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::blocks::Filling;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
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
    buffer: AnonymousMemory,
    filling: Filling,
}

impl<S: BlockSink> BlockStream<S> {
    pub(super) fn new(
        sink: S,
        buffer: Bytes,
        target: &WriteTarget,
        source: RecordSource,
    ) -> Result<Self, CallFailure> {
        let filling = Filling::of_blocks(buffer, target)?;
        let buffer = target.memory(filling.capacity())?;
        Ok(Self { sink, source, progress: target.progress(), buffer, filling })
    }

    /// Put a full buffer into the file.
    fn flush(&mut self) -> Result<(), CallFailure> {
        let len = self.filling.close(self.buffer.bytes_mut());
        let due = self.put(len)?;
        self.filling.next();
        if due { sync_now(&mut self.sink, &mut self.progress) } else { Ok(()) }
    }

    /// Put a part of a buffer into the file.
    fn flush_part(&mut self) -> Result<(), CallFailure> {
        self.filling.read_last_block(|block, offset| self.sink.read_block(block, offset))?;
        let len = self.filling.close_part(self.buffer.bytes_mut());
        self.put(len)?;
        self.filling.put();
        Ok(())
    }

    /// Put `len` bytes of the buffer into the file. Return true if a sync is due.
    fn put(&mut self, len: usize) -> Result<bool, CallFailure> {
        let bytes = &self.buffer.bytes()[..len];
        put_synced(&mut self.sink, &mut self.progress, bytes, self.filling.base())?;
        Ok(self.progress.reach(self.filling.fresh()))
    }
}

impl<S: BlockSink> Writer for BlockStream<S> {
    /// Timed region:
    /// `while bytes are left: if the buffer is full: put(buffer), filled = 0; copy what fits`.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let mut left = count * self.source.record_bytes() as u64;
        while left > 0 {
            if self.filling.is_full() {
                self.flush()?;
            }
            left -= self.filling.fill(self.buffer.bytes_mut(), &mut self.source, left);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        if self.filling.is_full() {
            self.flush()?;
        } else if self.filling.fresh() > 0 {
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
