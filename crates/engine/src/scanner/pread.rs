//! `pread`: one system call per piece, through the page cache, bypassing it, or leaving no pages in
//! it.

use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, pread_dontcache};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::pieces::Pieces;
use super::{ScanTarget, Scanner};
use crate::consume::by_consumer;
use crate::file::{FailedRead, IoMode};

struct PreadScanner {
    file: OwnedFd,
    buffer: AnonymousMemory,
    target: ScanTarget,
    pieces: Pieces,
    mode: IoMode,
}

pub(super) fn open(target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let mode = IoMode::of(&target.file.effects);
    let file = target.file.open_advised()?;
    let mut buffer = target.file.buffer(target.piece_bytes)?;
    mode.try_out(&file, &mut buffer, &target.file)?;
    let pieces = target.pieces();
    Ok(Box::new(PreadScanner { file, buffer, target, pieces, mode }))
}

/// Timed region: `for each piece: call(buffer, len, offset) == expected; consume(buffer)`, where
/// `call` is pread(2), or preadv2(2) with RWF_DONTCACHE.
#[inline(never)]
fn pread_pieces(
    pieces: Pieces,
    buffer: &mut [u8],
    call: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, FailedRead> {
    pieces.sum(|piece| {
        let result = call(&mut buffer[..piece.len], piece.offset);
        if result != Ok(piece.expected) {
            return Err(FailedRead { offset: piece.offset, expected: piece.expected, result });
        }
        Ok(consume(&buffer[..piece.consumed]))
    })
}

impl Scanner for PreadScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let (file, pieces, buffer) = (&self.file, self.pieces, self.buffer.bytes_mut());
        let plain = |buffer: &mut [u8], offset| rustix::io::pread(file, buffer, offset);
        let dontcache = |buffer: &mut [u8], offset| pread_dontcache(file, buffer, offset);
        let result = by_consumer!(self.target.consumption, |consume| match self.mode {
            IoMode::Cached | IoMode::Direct => pread_pieces(pieces, buffer, plain, consume),
            IoMode::DontCache => pread_pieces(pieces, buffer, dontcache, consume),
        });
        result.map_err(|stopped| stopped.into_failure(self.mode.pread(), &self.target.file.path))
    }
}
