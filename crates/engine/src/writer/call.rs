//! `pwrite` and `write`: a system call for each record, for each full buffer, or for each buffer of
//! whole blocks bypassing the page cache.

use std::ops::Range;

use pagewise_model::{Access, Method, SyncCall};
use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, RWF_DONTCACHE, pread_dontcache};
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::{Errno, IoSlice, ReadWriteFlags};

use super::durable::sync_ranges;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::setup::{impossible, write_failure};
use super::staging::{BlockSink, BlockStream, Staged};
use super::{Sink, WriteTarget, Writer, put_synced, sync_now, sync_rest};
use crate::failure::{failed, refused, short};
use crate::file::{FailedRead, IoMode};
use crate::operations::Latencies;

/// An offset of pwritev2(2) that means the file's position.
const AT_POSITION: u64 = u64::MAX;

/// A file that calls write to.
struct CallFile {
    file: OwnedFd,
    path: String,
    file_bytes: u64,
    call: &'static str,
    /// Flags of each call; without one it is the plain call. Filesystems that do not know a flag
    /// answer EOPNOTSUPP.
    flags: ReadWriteFlags,
    /// Mode of the calls that read.
    mode: IoMode,
    sync_call: SyncCall,
}

/// pwrite(2) at the offset.
pub(super) struct Pwrite(CallFile);

/// pwrite(2) and pread(2) of whole records. With O_DIRECT what is written is copied to memory that
/// is aligned as that requires.
pub(super) struct RecordCalls {
    to: Pwrite,
    block: AnonymousMemory,
}

/// write(2) at the file's position, and lseek(2) if that is not the offset.
pub(super) struct Write {
    to: CallFile,
    position: u64,
}

/// Each record is a separate call.
struct Recordwise<S> {
    sink: S,
    source: RecordSource,
    progress: WriteProgress,
}

pub(super) fn open(
    method: &Method,
    target: &WriteTarget,
    source: RecordSource,
) -> Result<Box<dyn Writer>, CallFailure> {
    if method.access() == Access::Pwrite {
        writer(Pwrite::open(target)?, method, target, source)
    } else {
        writer(Write::open(target)?, method, target, source)
    }
}

impl CallFile {
    fn open(target: &WriteTarget, [call, direct]: [&'static str; 2]) -> Result<Self, CallFailure> {
        let is_direct = target.effects.direct;
        let file = target.open(target.access_flags(), is_direct)?;
        target.allocate_for(&file)?;
        let is_dsync = target.sync_call == SyncCall::RwfDsync;
        let (call, flags) = match (is_dsync, target.effects.dont_cache) {
            (true, true) => ("pwritev2(RWF_DSYNC|RWF_DONTCACHE)", ReadWriteFlags::DSYNC.union(RWF_DONTCACHE)),
            (true, false) => ("pwritev2(RWF_DSYNC)", ReadWriteFlags::DSYNC),
            (false, true) => ("pwritev2(RWF_DONTCACHE)", RWF_DONTCACHE),
            (false, false) => (if is_direct { direct } else { call }, ReadWriteFlags::empty()),
        };
        let (path, file_bytes) = (target.path.clone(), target.file_bytes);
        let mode = IoMode::of(&target.effects);
        Ok(Self { file, path, file_bytes, call, flags, mode, sync_call: target.sync_call })
    }

    fn sync(&self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure> {
        sync_ranges(self.sync_call, &self.file, &self.path, ranges)
    }

    fn sync_all(&self) -> Result<(), CallFailure> {
        self.sync([0..self.file_bytes, 0..0])
    }
}

impl Pwrite {
    pub(super) fn open(target: &WriteTarget) -> Result<Self, CallFailure> {
        CallFile::open(target, ["pwrite", "pwrite(O_DIRECT)"]).map(Self)
    }

    #[inline(always)]
    pub(super) fn put_at(&self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        let CallFile { file, path, call, flags, .. } = &self.0;
        put_all(bytes, offset, (call, path), |bytes, offset| match flags.is_empty() {
            true => rustix::io::pwrite(file, bytes, offset),
            false => rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, *flags),
        })
    }

    /// pread(2) of all of `into`, in the mode of the calls that write.
    #[inline(always)]
    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<(), CallFailure> {
        let CallFile { file, path, mode, .. } = &self.0;
        let expected = into.len();
        let result = match mode {
            IoMode::DontCache => pread_dontcache(file, into, offset),
            IoMode::Cached | IoMode::Direct => rustix::io::pread(file, into, offset),
        };
        match result {
            Ok(received) if received == expected => Ok(()),
            Err(errno @ Errno::OPNOTSUPP) => Err(refused(mode.pread(), errno.into(), path)),
            result => Err(FailedRead { offset, expected, result }.into_failure(mode.pread(), path)),
        }
    }

    pub(super) fn sync_parts(&self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure> {
        self.0.sync(ranges)
    }
}

impl Write {
    pub(super) fn open(target: &WriteTarget) -> Result<Self, CallFailure> {
        let to = CallFile::open(target, ["write", "write(O_DIRECT)"])?;
        Ok(Self { to, position: 0 })
    }
}

fn writer(
    sink: impl BlockSink + 'static,
    method: &Method,
    target: &WriteTarget,
    source: RecordSource,
) -> Result<Box<dyn Writer>, CallFailure> {
    Ok(match target.effects.buffer {
        Some(buffer) if target.effects.direct => Box::new(BlockStream::new(sink, buffer, target, source)?),
        Some(buffer) => Box::new(Staged::new(sink, buffer, target, source)?),
        None if target.effects.direct => return Err(needs_buffer(method, target)),
        None => Box::new(Recordwise { sink, source, progress: target.progress() }),
    })
}

/// O_DIRECT moves whole blocks.
pub(super) fn needs_buffer(method: &Method, target: &WriteTarget) -> CallFailure {
    impossible(
        &target.path,
        format!("{method} needs a buffer, because O_DIRECT moves whole blocks: write {method}+buffer=64KiB"),
    )
}

impl<S: Sink> Writer for Recordwise<S> {
    /// Timed region:
    /// `for each record: pwrite(file, source + place, record, cursor); cursor += record`.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        for _ in 0..count {
            let record = self.source.next();
            let cursor = self.progress.cursor();
            put_synced(&mut self.sink, &mut self.progress, record, cursor)?;
            if self.progress.advance(record.len() as u64) {
                sync_now(&mut self.sink, &mut self.progress)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
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

/// Call `call` with the rest of `bytes` and its offset until nothing is left: a call may write less
/// than requested.
#[inline(always)]
fn put_all(
    mut bytes: &[u8],
    mut offset: u64,
    (name, path): (&str, &str),
    mut call: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
) -> Result<(), CallFailure> {
    while !bytes.is_empty() {
        match call(bytes, offset) {
            Ok(0) => return Err(short(name, path, offset, bytes.len(), 0)),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(Errno::INTR) => continue,
            Err(errno @ Errno::OPNOTSUPP) => return Err(refused(name, errno.into(), path)),
            Err(errno) => return Err(write_failure(name, errno, path, offset)),
        }
    }
    Ok(())
}

/// Read a block of a file that is open for O_DIRECT; bytes of `block` past the end of the file do
/// not change.
pub(super) fn read_block(
    file: &OwnedFd,
    path: &str,
    block: &mut [u8],
    offset: u64,
) -> Result<(), CallFailure> {
    rustix::io::pread(file, block, offset)
        .map(drop)
        .map_err(|errno| failed("pread(O_DIRECT)", errno.into(), path, offset))
}

impl Sink for Pwrite {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        self.put_at(bytes, offset)
    }

    fn sync_ranges(&mut self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure> {
        self.0.sync(ranges)
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        self.0.sync_all()
    }
}

impl RecordCalls {
    pub(super) fn open(target: &WriteTarget) -> Result<Self, CallFailure> {
        // Records that are only written through the page cache need none.
        let len = if target.access_flags() == OFlags::RDWR { target.record_bytes } else { 1 };
        Ok(Self { to: Pwrite::open(target)?, block: target.memory(len)? })
    }

    /// The record at `offset`.
    #[inline(always)]
    pub(super) fn read_record(&mut self, offset: u64) -> Result<&[u8], CallFailure> {
        self.to.read_at(self.block.bytes_mut(), offset)?;
        Ok(self.block.bytes())
    }
}

impl Sink for RecordCalls {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        if self.to.0.mode != IoMode::Direct {
            return self.to.put_at(bytes, offset);
        }
        self.block.bytes_mut().copy_from_slice(bytes);
        self.to.put_at(self.block.bytes(), offset)
    }

    fn sync_ranges(&mut self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure> {
        self.to.sync_parts(ranges)
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        self.to.sync_all()
    }
}

impl BlockSink for Pwrite {
    fn read_block(&mut self, block: &mut [u8], offset: u64) -> Result<(), CallFailure> {
        read_block(&self.0.file, &self.0.path, block, offset)
    }
}

impl Sink for Write {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        let CallFile { file, path, call, flags, .. } = &self.to;
        if offset != self.position {
            rustix::fs::seek(file, SeekFrom::Start(offset))
                .map_err(|errno| failed("lseek", errno.into(), path, offset))?;
        }
        put_all(bytes, offset, (call, path), |bytes, _| match flags.is_empty() {
            true => rustix::io::write(file, bytes),
            false => rustix::io::pwritev2(file, &[IoSlice::new(bytes)], AT_POSITION, *flags),
        })?;
        self.position = offset + bytes.len() as u64;
        Ok(())
    }

    fn sync_ranges(&mut self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure> {
        self.to.sync(ranges)
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        self.to.sync_all()
    }
}

impl BlockSink for Write {
    fn read_block(&mut self, block: &mut [u8], offset: u64) -> Result<(), CallFailure> {
        read_block(&self.to.file, &self.to.path, block, offset)
    }
}
