//! `pread`: one system call per read, through the page cache, bypassing it, or leaving no pages in
//! it.

use std::sync::Arc;

use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, pread_dontcache};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::order::{Independent, Order, ReadInOrder, Stopped};
use super::widening::{Widened, widen, widest};
use super::{Due, ReadRange, ReadTarget, Reader, share};
use crate::consume::by_consumer;
use crate::file::{FailedRead, IoMode};

struct PreadReader {
    file: Arc<OwnedFd>,
    buffer: AnonymousMemory,
    target: ReadTarget,
    mode: IoMode,
}

pub(super) fn open(
    target: &ReadTarget,
    threads: usize,
    per_thread: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let mode = IoMode::of(&target.file.effects);
    let files = share(threads, per_thread, || target.file.open_advised())?;
    let mut readers = Vec::new();
    for file in files {
        let len = if mode == IoMode::Direct {
            widest(target.read_bytes, target.file.direct_alignment)
        } else {
            target.read_bytes
        };
        let mut buffer = target.file.buffer(len)?;
        mode.try_out(&file, &mut buffer, &target.file)?;
        let reader = PreadReader { file, buffer, target: target.clone(), mode };
        readers.push(reader.boxed(target));
    }
    Ok(readers)
}

/// Timed region: [`Order::reads`] with
/// `call(buffer, place(offset)) == len; link(buffer); consume(buffer)`, where `place` is the
/// position of the bytes in the file and in the buffer.
#[inline(never)]
fn reads<O: Order>(
    due: Due<'_>,
    order: O,
    buffer: &mut [u8],
    place: impl Fn(u64, usize) -> Widened,
    call: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
    (len, consume): (usize, impl Fn(&[u8]) -> u64),
) -> Result<u64, Stopped<FailedRead>> {
    order.reads(due, len, |(offset, len)| {
        let read = place(offset, len);
        let result = call(&mut buffer[..read.len], read.offset);
        if result != Ok(read.expected) {
            return Err(FailedRead { offset, expected: read.expected, result });
        }
        let bytes = &buffer[read.inner..read.inner + len];
        Ok((order.link(bytes), consume(bytes)))
    })
}

impl ReadInOrder for PreadReader {
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure> {
        let PreadReader { file, buffer, target, mode } = self;
        let (file, buffer, len) = (&**file, buffer.bytes_mut(), target.read_bytes);
        let plain = |buffer: &mut [u8], offset| rustix::io::pread(file, buffer, offset);
        let dontcache = |buffer: &mut [u8], offset| pread_dontcache(file, buffer, offset);
        let as_asked = |offset, len| Widened { offset, len, expected: len, inner: 0 };
        let aligned = |offset, len| widen(offset, len, target.file.direct_alignment, target.file.file_bytes);
        let result = by_consumer!(due.consumption(target.consumption), |consume| match mode {
            IoMode::Cached => reads(due, order, buffer, as_asked, plain, (len, consume)),
            IoMode::DontCache => reads(due, order, buffer, as_asked, dontcache, (len, consume)),
            IoMode::Direct => reads(due, order, buffer, aligned, plain, (len, consume)),
        });
        let of_read = |failed: FailedRead| failed.into_failure(mode.pread(), &target.file.path);
        result.map_err(|stopped| stopped.into_failure(target, of_read))
    }
}

impl Reader for PreadReader {
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        self.read_in(reads.due(), Independent::of(&self.target))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.read(ReadRange::alone(Due::single(&[offset])))?;
        let inner = match self.mode {
            IoMode::Direct => {
                widen(offset, into.len(), self.target.file.direct_alignment, self.target.file.file_bytes)
                    .inner
            }
            IoMode::Cached | IoMode::DontCache => 0,
        };
        into.copy_from_slice(&self.buffer.bytes()[inner..inner + into.len()]);
        Ok(())
    }
}
