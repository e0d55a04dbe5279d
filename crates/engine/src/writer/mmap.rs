//! `mmap`: stores into a shared mapping of the file, record by record or from a buffer.

use std::ops::Range;

use pagewise_model::SyncCall;
use pagewise_protocol::CallFailure;
use pagewise_sys::WritableMapping;
use rustix::fd::OwnedFd;

use super::durable;
use super::pretouch::Pretoucher;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::staging::Staged;
use super::{Sink, WriteTarget, Writer, sync_now, sync_rest};
use crate::failure::failed;
use crate::operations::Latencies;

/// Memory that contains the ring.
pub(super) trait RingMemory: Sink {
    /// All of it.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A mapped file, and its descriptor for sync calls other than msync(2).
pub(super) struct MappedFile {
    pub(super) mapping: WritableMapping,
    file: OwnedFd,
    path: String,
    sync_call: SyncCall,
}

/// Records are copied directly to their positions.
struct Straight<M> {
    memory: M,
    source: RecordSource,
    progress: WriteProgress,
    pretoucher: Option<Pretoucher>,
}

pub(super) fn open(target: &WriteTarget, source: RecordSource) -> Result<Box<dyn Writer>, CallFailure> {
    let file = MappedFile::open(target)?;
    let pretoucher = target
        .effects
        .pretouch
        .map(|ahead| Pretoucher::start(&file.mapping, target, ahead.0 as usize))
        .transpose()?;
    Ok(match target.effects.buffer {
        Some(buffer) => Box::new(Staged::new(file, buffer, target, source)?),
        None => Box::new(Straight { memory: file, source, progress: target.progress(), pretoucher }),
    })
}

/// A writer that copies records directly into `memory`.
pub(super) fn straight(
    memory: impl RingMemory + 'static,
    target: &WriteTarget,
    source: RecordSource,
) -> Box<dyn Writer> {
    Box::new(Straight { memory, source, progress: target.progress(), pretoucher: None })
}

impl<M: RingMemory> Straight<M> {
    /// Bytes of whole records up to the next action other than copying.
    fn piece(&self, left: u64) -> u64 {
        let piece = left.min(self.progress.room());
        let pause = self.pretoucher.as_ref().map_or(u64::MAX, Pretoucher::stride);
        let limit = self.progress.until_sync().min(pause);
        if limit >= piece {
            return piece;
        }
        limit.next_multiple_of(self.source.record_bytes() as u64).min(piece)
    }
}

impl<M: RingMemory> Writer for Straight<M> {
    /// Timed region: [`RecordSource::records`] for each run of records, which ends at the end of
    /// the ring or when a sync is due.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let mut left = count * self.source.record_bytes() as u64;
        if let Some(pretoucher) = &self.pretoucher {
            pretoucher.begin(self.progress.cursor());
        }
        while left > 0 {
            let piece = self.piece(left);
            let start = self.progress.cursor() as usize;
            self.source.records(&mut self.memory.bytes_mut()[start..start + piece as usize]);
            left -= piece;
            if self.progress.advance(piece) {
                sync_now(&mut self.memory, &mut self.progress)?;
            }
            if let Some(pretoucher) = &mut self.pretoucher {
                pretoucher.follow(self.progress.cursor());
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        sync_rest(&mut self.memory, &mut self.progress)?;
        self.pretoucher.as_ref().map_or(Ok(()), Pretoucher::failure)
    }

    fn written(&self) -> u64 {
        self.progress.written()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.memory.sync_all()
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.progress.take_durations()
    }
}

impl MappedFile {
    pub(super) fn open(target: &WriteTarget) -> Result<Self, CallFailure> {
        let (mapping, file) = target.map()?;
        Ok(Self { mapping, file, path: target.path.clone(), sync_call: target.sync_call })
    }

    /// Sync the bytes of `ranges`.
    pub(super) fn sync(&self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure> {
        if self.sync_call != SyncCall::Msync {
            return durable::sync_ranges(self.sync_call, &self.file, &self.path, ranges);
        }
        ranges.into_iter().filter(|range| !range.is_empty()).try_for_each(|range| {
            let synced = self.mapping.sync(range.start as usize..range.end as usize);
            synced.map_err(|error| failed("msync", error, &self.path, range.start))
        })
    }
}

impl Sink for MappedFile {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        let start = offset as usize;
        self.mapping.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync_ranges(&mut self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure> {
        self.sync(ranges)
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        self.sync([0..self.mapping.bytes().len() as u64, 0..0])
    }
}

impl RingMemory for MappedFile {
    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.mapping.bytes_mut()
    }
}
