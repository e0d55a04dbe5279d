//! `pwrite` and `write`: a system call for each record, for each full buffer, or for each buffer of whole blocks
//! bypassing the page cache.

use std::ops::Range;

use pagewise_model::{Access, Method};
use pagewise_protocol::CallFailure;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use super::progress::WriteProgress;
use super::setup::{impossible, write_failure};
use super::staging::{BlockSink, BlockStream, Staged};
use super::supply::Supply;
use super::{Sink, WriteTarget, Writer, sync_now, sync_rest};
use crate::failure::{failed, short};

/// pwrite(2) at the offset.
struct Pwrite {
    file: OwnedFd,
    path: String,
    call: &'static str,
}

/// write(2) at the file's position, and lseek(2) if that is not the offset.
struct Write {
    file: OwnedFd,
    path: String,
    call: &'static str,
    position: u64,
}

/// Each record is a separate call.
struct Recordwise<S> {
    sink: S,
    supply: Supply,
    progress: WriteProgress,
}

pub(super) fn open(
    method: &Method,
    target: &WriteTarget,
    supply: Supply,
) -> Result<Box<dyn Writer>, CallFailure> {
    let direct = target.effects.direct;
    // The bytes after the last record in its block are read before the block is written.
    let file = target.open(if direct { OFlags::RDWR } else { OFlags::WRONLY }, direct)?;
    target.allocate_for(&file)?;
    let path = target.path.clone();
    if method.access() == Access::Pwrite {
        let call = if direct { "pwrite(O_DIRECT)" } else { "pwrite" };
        writer(Pwrite { file, path, call }, method, target, supply)
    } else {
        let call = if direct { "write(O_DIRECT)" } else { "write" };
        writer(Write { file, path, call, position: 0 }, method, target, supply)
    }
}

fn writer(
    sink: impl BlockSink + 'static,
    method: &Method,
    target: &WriteTarget,
    supply: Supply,
) -> Result<Box<dyn Writer>, CallFailure> {
    Ok(match target.effects.buffer {
        Some(buffer) if target.effects.direct => Box::new(BlockStream::new(sink, buffer, target, supply)?),
        Some(buffer) => Box::new(Staged::new(sink, buffer, target, supply)?),
        None if target.effects.direct => return Err(needs_buffer(method, target)),
        None => Box::new(Recordwise { sink, supply, progress: target.progress() }),
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
    /// Timed region: `for each record: pwrite(file, source + place, record, cursor); cursor += record`.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        for _ in 0..count {
            let record = self.supply.next();
            self.sink.put(record, self.progress.cursor())?;
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
}

/// Call `call` with the rest of `bytes` and its offset until nothing is left: a call may write less than requested.
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
            Err(errno) => return Err(write_failure(name, errno, path, offset)),
        }
    }
    Ok(())
}

/// fdatasync(2).
pub(super) fn sync_file(file: &OwnedFd, path: &str) -> Result<(), CallFailure> {
    rustix::fs::fdatasync(file).map_err(|errno| failed("fdatasync", errno.into(), path, 0))
}

/// Read a block of a file that is open for O_DIRECT; bytes of `block` past the end of the file do not change.
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
        put_all(bytes, offset, (self.call, &self.path), |bytes, offset| {
            rustix::io::pwrite(&self.file, bytes, offset)
        })
    }

    fn sync_ranges(&mut self, _: [Range<u64>; 2]) -> Result<(), CallFailure> {
        sync_file(&self.file, &self.path)
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        sync_file(&self.file, &self.path)
    }
}

impl BlockSink for Pwrite {
    fn read_block(&mut self, block: &mut [u8], offset: u64) -> Result<(), CallFailure> {
        read_block(&self.file, &self.path, block, offset)
    }
}

impl Sink for Write {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        if offset != self.position {
            rustix::fs::seek(&self.file, SeekFrom::Start(offset))
                .map_err(|errno| failed("lseek", errno.into(), &self.path, offset))?;
        }
        put_all(bytes, offset, (self.call, &self.path), |bytes, _| rustix::io::write(&self.file, bytes))?;
        self.position = offset + bytes.len() as u64;
        Ok(())
    }

    fn sync_ranges(&mut self, _: [Range<u64>; 2]) -> Result<(), CallFailure> {
        sync_file(&self.file, &self.path)
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        sync_file(&self.file, &self.path)
    }
}

impl BlockSink for Write {
    fn read_block(&mut self, block: &mut [u8], offset: u64) -> Result<(), CallFailure> {
        read_block(&self.file, &self.path, block, offset)
    }
}
