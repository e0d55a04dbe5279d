//! `pread`: one system call a piece, through the page cache, past it, or leaving nothing in it.

use std::io::IoSliceMut;

use pagewise_model::Method;
use pagewise_model::protocol::CallFailure;
use pagewise_sys::AnonymousMemory;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::pieces::Pieces;
use super::{Scanner, Target};
use crate::consume::by_consumer;
use crate::file::{DONTCACHE, Stopped, Way};

struct PreadScanner {
    file: OwnedFd,
    buffer: AnonymousMemory,
    target: Target,
    pieces: Pieces,
    way: Way,
}

pub(super) fn open(method: &Method, target: Target) -> Result<Box<dyn Scanner>, CallFailure> {
    let way = Way::of(method);
    let file = target.file.open_advised(method)?;
    let mut buffer = target.file.buffer(target.piece_bytes)?;
    way.try_out(&file, &mut buffer, &target.file)?;
    let pieces = target.pieces(method.is_direct());
    Ok(Box::new(PreadScanner { file, buffer, target, pieces, way }))
}

/// Timed region: `for each piece: call(buffer, len, offset) == expected; consume(buffer)`, where `call` is pread(2), or
/// preadv2(2) with RWF_DONTCACHE.
#[inline(never)]
fn pread_pieces(
    pieces: Pieces,
    buffer: &mut [u8],
    call: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, Stopped> {
    pieces.sum(|piece| {
        let result = call(&mut buffer[..piece.len], piece.offset);
        if result != Ok(piece.expected) {
            return Err(Stopped { offset: piece.offset, expected: piece.expected, result });
        }
        Ok(consume(&buffer[..piece.consumed]))
    })
}

impl Scanner for PreadScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let (file, pieces, buffer) = (&self.file, self.pieces, self.buffer.bytes_mut());
        let plain = |buffer: &mut [u8], offset| rustix::io::pread(file, buffer, offset);
        let dontcache = |buffer: &mut [u8], offset| {
            rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, DONTCACHE)
        };
        let result = by_consumer!(self.target.consumption, |consume| match self.way {
            Way::Cached | Way::Direct => pread_pieces(pieces, buffer, plain, consume),
            Way::DontCache => pread_pieces(pieces, buffer, dontcache, consume),
        });
        result.map_err(|stopped| stopped.into_failure(self.way.pread(), &self.target.file.path))
    }
}
