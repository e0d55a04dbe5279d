//! `pread` and `read`: one system call per read, at its offset or at the descriptor's position;
//! through the page cache, bypassing it, or leaving no pages in it.

use std::cell::Cell;
use std::sync::Arc;

use pagewise_model::Access;
use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, pread_dontcache};
use rustix::fd::OwnedFd;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::order::{Order, Stopped};
use super::widening::{Widened, widest};
use super::{Due, ReadRange, ReadTarget, Reader};
use crate::consume::by_consumer;
use crate::failure::failed;
use crate::file::{FailedRead, IoMode};

/// The call of each read.
#[derive(Clone, Copy)]
enum ReadCall {
    /// pread(2), or preadv2(2).
    At(IoMode),
    /// read(2) from the position, which is set to the start for each pass.
    Next(IoMode),
}

impl ReadCall {
    const fn name(self) -> &'static str {
        match self {
            ReadCall::At(mode) => mode.pread(),
            ReadCall::Next(IoMode::Direct) => "read(O_DIRECT)",
            ReadCall::Next(_) => "read",
        }
    }
}

pub(super) struct CallReader<O> {
    /// One for each file of the target, in their order.
    files: Arc<Vec<OwnedFd>>,
    buffer: AnonymousMemory,
    target: ReadTarget,
    call: ReadCall,
    order: O,
}

pub(super) fn open<O: Order>(
    access: Access,
    target: &ReadTarget,
    order: O,
) -> Result<Vec<CallReader<O>>, CallFailure> {
    let mode = IoMode::of(&target.file.effects);
    let call = if access == Access::Read { ReadCall::Next(mode) } else { ReadCall::At(mode) };
    let opened = target.share(|| target.file.open_each_advised())?;
    let reader = |files: Arc<Vec<OwnedFd>>| {
        let mut buffer = target.file.buffer(widest(target.read_bytes, target.alignment))?;
        // Files of one filesystem: what it refuses for one, it refuses for all.
        mode.try_out(&files[0], &mut buffer, &target.file)?;
        Ok(CallReader { files, buffer, target: target.clone(), call, order })
    };
    opened.into_iter().map(reader).collect()
}

impl<O: Order> CallReader<O> {
    /// Timed region: [`Order::reads`] with
    /// `call(file, buffer, place(offset)) == len; link(buffer); consume(buffer)`, where `place` is
    /// the position of the bytes in a file and in the buffer.
    #[inline(never)]
    fn calls(
        &mut self,
        due: Due<'_>,
        place: impl Fn(&ReadTarget, u64, usize) -> (usize, Widened),
        call: impl Fn(&OwnedFd, &mut [u8], u64) -> Result<usize, Errno>,
        consume: impl Fn(&[u8]) -> u64,
    ) -> Result<u64, Stopped<FailedRead>> {
        let Self { files, buffer, target, order, .. } = self;
        let (files, buffer) = (&files[..], buffer.bytes_mut());
        let mut total = 0u64;
        order.reads(
            due,
            target.read_bytes,
            #[inline(always)]
            |weight, (offset, len)| {
                let (file, read) = place(target, offset, len);
                let result = call(&files[file], &mut buffer[..read.len], read.offset);
                if result != Ok(read.expected) {
                    return Err(FailedRead { offset, expected: read.expected, result });
                }
                let bytes = &buffer[read.inner..read.inner + len];
                total = total.wrapping_add(weight.wrapping_mul(consume(bytes)));
                Ok(order.link(bytes))
            },
        )?;
        Ok(total)
    }
}

impl<O: Order> Reader for CallReader<O> {
    #[inline(always)]
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let due = reads.due();
        let (call, consumption) = (self.call, due.consumption(self.target.consumption));
        let last = Cell::new(0);
        let as_asked = |_: &ReadTarget, offset, len| (0, Widened::not(offset, len));
        let in_one = |target: &ReadTarget, offset, len| (0, target.widen(offset, len));
        let in_several = |target: &ReadTarget, offset, len| target.find(&last, offset, len);
        let plain = |file: &OwnedFd, buffer: &mut [u8], offset| rustix::io::pread(file, buffer, offset);
        let dontcache = |file: &OwnedFd, buffer: &mut [u8], offset| pread_dontcache(file, buffer, offset);
        let next = |file: &OwnedFd, buffer: &mut [u8], _| rustix::io::read(file, buffer);
        if let ReadCall::Next(_) = call {
            rustix::fs::seek(&self.files[0], SeekFrom::Start(0))
                .map_err(|errno| failed("lseek", errno.into(), &self.target.file.path, 0))?;
        }
        let several = O::HAS_FILES && self.target.file.several.is_some();
        let result = by_consumer!(consumption, |consume| match call {
            ReadCall::At(IoMode::DontCache) if several => self.calls(due, in_several, dontcache, consume),
            ReadCall::At(IoMode::DontCache) => self.calls(due, as_asked, dontcache, consume),
            ReadCall::At(_) if several => self.calls(due, in_several, plain, consume),
            ReadCall::At(IoMode::Cached) => self.calls(due, as_asked, plain, consume),
            ReadCall::At(IoMode::Direct) => self.calls(due, in_one, plain, consume),
            ReadCall::Next(_) => self.calls(due, in_one, next, consume),
        });
        let of_read = |failed: FailedRead| {
            let (path, offset) = self.target.file.place(failed.offset);
            FailedRead { offset, ..failed }.into_failure(call.name(), path)
        };
        result.map_err(|stopped| stopped.into_failure(&self.target, of_read))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.read(ReadRange::alone(Due::single(&[offset])))?;
        let inner = self.target.widen(offset, into.len()).inner;
        into.copy_from_slice(&self.buffer.bytes()[inner..inner + into.len()]);
        Ok(())
    }
}
