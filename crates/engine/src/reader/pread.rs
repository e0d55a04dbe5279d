//! `pread`: one system call per read, through the page cache, bypassing it, or leaving no pages in
//! it.

use std::cell::Cell;
use std::sync::Arc;

use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, pread_dontcache};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::order::{Independent, Order, ReadInOrder, Stopped};
use super::widening::{Widened, widen, widen_within, widest};
use super::{Due, ReadRange, ReadTarget, Reader, share};
use crate::consume::by_consumer;
use crate::file::{FailedRead, IoMode};

struct PreadReader {
    /// One for each file of the target, in their order.
    files: Arc<Vec<OwnedFd>>,
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
    let opened = share(threads, per_thread, || target.file.open_each_advised())?;
    let mut readers = Vec::new();
    for files in opened {
        let len = if mode == IoMode::Direct {
            widest(target.read_bytes, target.file.direct_alignment)
        } else {
            target.read_bytes
        };
        let mut buffer = target.file.buffer(len)?;
        // Files of one filesystem: what it refuses for one, it refuses for all.
        mode.try_out(&files[0], &mut buffer, &target.file)?;
        let reader = PreadReader { files, buffer, target: target.clone(), mode };
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

impl PreadReader {
    /// Read from one file.
    fn read_one(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, Stopped<FailedRead>> {
        let PreadReader { files, buffer, target, mode } = self;
        let (file, buffer, len) = (&files[0], buffer.bytes_mut(), target.read_bytes);
        let plain = |buffer: &mut [u8], offset| rustix::io::pread(file, buffer, offset);
        let dontcache = |buffer: &mut [u8], offset| pread_dontcache(file, buffer, offset);
        let as_asked = |offset, len| Widened { offset, len, expected: len, inner: 0 };
        let aligned = |offset, len| widen(offset, len, target.file.direct_alignment, target.file.file_bytes);
        by_consumer!(due.consumption(target.consumption), |consume| match mode {
            IoMode::Cached => reads(due, order, buffer, as_asked, plain, (len, consume)),
            IoMode::DontCache => reads(due, order, buffer, as_asked, dontcache, (len, consume)),
            IoMode::Direct => reads(due, order, buffer, aligned, plain, (len, consume)),
        })
    }

    /// Read from several files: the place of a read is found before its call, in its file.
    fn read_several(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, Stopped<FailedRead>> {
        let PreadReader { files, buffer, target, mode } = self;
        let several = target.file.several.as_ref().expect("there are several files");
        let (buffer, len) = (buffer.bytes_mut(), target.read_bytes);
        let current = Cell::new(0);
        let find = |offset| {
            let (index, offset) = several.locate(current.get(), offset);
            current.set(index);
            (several.part(index).bytes, offset)
        };
        let plain = |buffer: &mut [u8], offset| rustix::io::pread(&files[current.get()], buffer, offset);
        let dontcache = |buffer: &mut [u8], offset| pread_dontcache(&files[current.get()], buffer, offset);
        let as_asked = |offset, len| Widened { offset: find(offset).1, len, expected: len, inner: 0 };
        let aligned = |offset, len| {
            let (file_bytes, offset) = find(offset);
            widen_within(offset, len, target.file.direct_alignment, file_bytes)
        };
        by_consumer!(due.consumption(target.consumption), |consume| match mode {
            IoMode::Cached => reads(due, order, buffer, as_asked, plain, (len, consume)),
            IoMode::DontCache => reads(due, order, buffer, as_asked, dontcache, (len, consume)),
            IoMode::Direct => reads(due, order, buffer, aligned, plain, (len, consume)),
        })
    }
}

impl ReadInOrder for PreadReader {
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure> {
        let result = match self.target.file.several {
            None => self.read_one(due, order),
            Some(_) => self.read_several(due, order),
        };
        let Self { mode, target, .. } = self;
        let of_read = |failed: FailedRead| {
            let (path, offset) = target.file.place(failed.offset);
            FailedRead { offset, ..failed }.into_failure(mode.pread(), path)
        };
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
                let offset = self.target.file.place(offset).1;
                widen(offset, into.len(), self.target.file.direct_alignment, u64::MAX).inner
            }
            IoMode::Cached | IoMode::DontCache => 0,
        };
        into.copy_from_slice(&self.buffer.bytes()[inner..inner + into.len()]);
        Ok(())
    }
}
