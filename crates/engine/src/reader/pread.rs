//! `pread`: one system call a read, through the page cache, past it, or leaving nothing in it.

use std::io::IoSliceMut;
use std::sync::Arc;

use pagewise_model::checksum;
use pagewise_model::protocol::CallFailure;
use pagewise_model::{Consume, Method, MethodOption};
use pagewise_sys::AnonymousMemory;
use rustix::fd::OwnedFd;
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

use super::dependent::{Astray, Chain, link};
use super::mmap::touched_buffer;
use super::widening::{Widened, widen, widest};
use super::{Reader, Target, by_consumer, share};
use crate::failure::{failed, refused, short};

/// RWF_DONTCACHE (Linux 6.14), which rustix does not name yet.
pub const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Which call a read is; chosen once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Cached,
    DontCache,
    Direct,
}

struct PreadReader {
    file: Arc<OwnedFd>,
    buffer: AnonymousMemory,
    target: Target,
    way: Way,
}

pub(super) fn open(
    method: &Method,
    target: &Target,
    threads: usize,
    per_thread: bool,
    dependent: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let way = if method.is_direct() {
        Way::Direct
    } else if method.has(MethodOption::DontCache) {
        Way::DontCache
    } else {
        Way::Cached
    };
    let files = share(threads, per_thread, || open_advised(method, target))?;
    let mut readers = Vec::new();
    for file in files {
        let len = if way == Way::Direct {
            widest(target.read_bytes, target.direct_alignment)
        } else {
            target.read_bytes
        };
        let mut buffer = touched_buffer(len, target)?;
        try_out(way, &file, &mut buffer, target)?;
        let reader = PreadReader { file, buffer, target: target.clone(), way };
        readers.push(if dependent {
            Box::new(DependentReader { chain: Chain::new(target), reader }) as Box<dyn Reader>
        } else {
            Box::new(reader)
        });
    }
    Ok(readers)
}

fn open_advised(method: &Method, target: &Target) -> Result<OwnedFd, CallFailure> {
    let file = target.open(method.is_direct())?;
    for option in method.options() {
        let (advice, call) = match option {
            MethodOption::Random => (Advice::Random, "posix_fadvise(RANDOM)"),
            MethodOption::Sequential => (Advice::Sequential, "posix_fadvise(SEQUENTIAL)"),
            MethodOption::WillNeed => (Advice::WillNeed, "posix_fadvise(WILLNEED)"),
            _ => continue,
        };
        // Random and sequential concern the whole file whatever the range; 0 means to its end.
        let len = if advice == Advice::WillNeed { target.span_bytes as u64 } else { 0 };
        rustix::fs::fadvise(&file, 0, std::num::NonZeroU64::new(len), advice)
            .map_err(|error| refused(call, error.into(), &target.path))?;
    }
    Ok(file)
}

/// Asks for one read before the clock starts, because a flag may be accepted at open and refused at the first
/// transfer. Behind the end of the file RWF_DONTCACHE is checked and no page is brought in.
fn try_out(
    way: Way,
    file: &OwnedFd,
    buffer: &mut AnonymousMemory,
    target: &Target,
) -> Result<(), CallFailure> {
    match way {
        Way::Cached => Ok(()),
        Way::Direct => {
            let len = target.direct_alignment.min(buffer.bytes().len());
            rustix::io::pread(file, &mut buffer.bytes_mut()[..len], 0)
                .map(drop)
                .map_err(|error| refused("pread(O_DIRECT)", error.into(), &target.path))
        }
        Way::DontCache => {
            let mut slices = [IoSliceMut::new(&mut buffer.bytes_mut()[..1])];
            rustix::io::preadv2(file, &mut slices, target.file_bytes, DONTCACHE)
                .map(drop)
                .map_err(|error| refused("preadv2(RWF_DONTCACHE)", error.into(), &target.path))
        }
    }
}

/// Where a batch stopped: at which read, with which errno or how many bytes.
struct Stopped {
    offset: u64,
    expected: usize,
    result: Result<usize, Errno>,
}

impl Stopped {
    fn into_failure(self, call: &str, path: &str) -> CallFailure {
        match self.result {
            Ok(received) => short(call, path, self.offset, self.expected, received),
            Err(errno) => failed(call, errno.into(), path, self.offset),
        }
    }
}

/// Timed region: `for each offset: pread(file, buffer, len, offset) == len; consume(buffer)`.
#[inline(never)]
fn pread_reads(
    file: &OwnedFd,
    offsets: &[u64],
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped> {
    let mut total = 0u64;
    for offset in offsets {
        let result = rustix::io::pread(file, &mut *buffer, *offset);
        if result != Ok(buffer.len()) {
            return Err(Stopped { offset: *offset, expected: buffer.len(), result });
        }
        total = total.wrapping_add(consume(buffer));
    }
    Ok(total)
}

/// As [`pread_reads`], with RWF_DONTCACHE.
#[inline(never)]
fn dontcache_reads(
    file: &OwnedFd,
    offsets: &[u64],
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped> {
    let mut total = 0u64;
    for offset in offsets {
        let result = rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], *offset, DONTCACHE);
        if result != Ok(buffer.len()) {
            return Err(Stopped { offset: *offset, expected: buffer.len(), result });
        }
        total = total.wrapping_add(consume(buffer));
    }
    Ok(total)
}

/// As [`pread_reads`], widened to the alignment of O_DIRECT.
#[inline(never)]
fn direct_reads(
    file: &OwnedFd,
    offsets: &[u64],
    buffer: &mut [u8],
    target: &Target,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped> {
    let mut total = 0u64;
    for offset in offsets {
        let read = widen(*offset, target.read_bytes, target.direct_alignment, target.file_bytes);
        let result = rustix::io::pread(file, &mut buffer[..read.len], read.offset);
        if result != Ok(read.expected) {
            return Err(Stopped { offset: *offset, expected: read.expected, result });
        }
        total = total.wrapping_add(consume(&buffer[read.inner..read.inner + target.read_bytes]));
    }
    Ok(total)
}

impl PreadReader {
    fn call(&self) -> &'static str {
        match self.way {
            Way::Cached => "pread",
            Way::DontCache => "preadv2(RWF_DONTCACHE)",
            Way::Direct => "pread(O_DIRECT)",
        }
    }
}

impl Reader for PreadReader {
    fn read(&mut self, offsets: &[u64]) -> Result<u64, CallFailure> {
        let (file, target) = (&*self.file, &self.target);
        let len = target.read_bytes;
        let buffer = self.buffer.bytes_mut();
        let result = by_consumer!(target.consumption, |consume| match self.way {
            Way::Cached => pread_reads(file, offsets, &mut buffer[..len], consume),
            Way::DontCache => dontcache_reads(file, offsets, &mut buffer[..len], consume),
            Way::Direct => direct_reads(file, offsets, buffer, target, consume),
        });
        result.map_err(|stopped| stopped.into_failure(self.call(), &self.target.path))
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.read(&[offset])?;
        let inner = match self.way {
            Way::Direct => {
                widen(offset, into.len(), self.target.direct_alignment, self.target.file_bytes).inner
            }
            Way::Cached | Way::DontCache => 0,
        };
        into.copy_from_slice(&self.buffer.bytes()[inner..inner + into.len()]);
        Ok(())
    }
}

struct DependentReader {
    reader: PreadReader,
    chain: Chain,
}

/// Why a batch of dependent reads stopped.
enum ChainStopped {
    Astray(Astray),
    Read(Stopped),
}

impl From<Astray> for ChainStopped {
    fn from(astray: Astray) -> Self {
        ChainStopped::Astray(astray)
    }
}

/// Timed region: [`Chain::follow`] with `call(buffer, place(offset)) == len; link(buffer); consume(buffer)`, where `call` is
/// one of those above, and `place` is where its bytes come to lie.
#[inline(never)]
fn dependent_reads(
    entries: &[u64],
    chain: Chain,
    buffer: &mut [u8],
    place: impl Fn(u64) -> Widened,
    call: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
    (len, consume): (usize, impl Fn(&[u8]) -> u64),
) -> Result<u64, ChainStopped> {
    chain.follow(entries, |offset| {
        let read = place(offset);
        let result = call(&mut buffer[..read.len], read.offset);
        if result != Ok(read.expected) {
            return Err(ChainStopped::Read(Stopped { offset, expected: read.expected, result }));
        }
        let bytes = &buffer[read.inner..read.inner + len];
        Ok((link(bytes), consume(bytes)))
    })
}

impl Reader for DependentReader {
    fn read(&mut self, entries: &[u64]) -> Result<u64, CallFailure> {
        let PreadReader { file, buffer, target, way } = &mut self.reader;
        let (file, buffer, chain, len) = (&**file, buffer.bytes_mut(), self.chain, target.read_bytes);
        let plain = |buffer: &mut [u8], offset| rustix::io::pread(file, buffer, offset);
        let dontcache = |buffer: &mut [u8], offset| {
            rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, DONTCACHE)
        };
        let as_asked = |offset| Widened { offset, len, expected: len, inner: 0 };
        let aligned = |offset| widen(offset, len, target.direct_alignment, target.file_bytes);
        let result = by_consumer!(target.consumption, |consume| match way {
            Way::Cached => dependent_reads(entries, chain, buffer, as_asked, plain, (len, consume)),
            Way::DontCache => dependent_reads(entries, chain, buffer, as_asked, dontcache, (len, consume)),
            Way::Direct => dependent_reads(entries, chain, buffer, aligned, plain, (len, consume)),
        });
        result.map_err(|stopped| match stopped {
            ChainStopped::Astray(astray) => astray.into_failure(&self.reader.target),
            ChainStopped::Read(stopped) => stopped.into_failure(self.reader.call(), &self.reader.target.path),
        })
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.reader.fetch(offset, into)
    }
}
