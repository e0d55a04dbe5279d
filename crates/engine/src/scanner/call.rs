//! `pread` and `read`: one system call per piece, at its offset or at the descriptor's position;
//! through the page cache, bypassing it, or leaving no pages in it.

use pagewise_model::Access;
use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, pread_dontcache};
use rustix::fd::OwnedFd;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::pieces::Pieces;
use super::{ScanTarget, Scanner};
use crate::consume::by_consumer;
use crate::failure::failed;
use crate::file::{FailedRead, IoMode};

/// The call of each piece.
#[derive(Clone, Copy)]
enum PieceCall {
    /// pread(2), or preadv2(2).
    At(IoMode),
    /// read(2) from the position, which is set to the start for each pass.
    Next(IoMode),
}

impl PieceCall {
    const fn name(self) -> &'static str {
        match self {
            PieceCall::At(mode) => mode.pread(),
            PieceCall::Next(IoMode::Direct) => "read(O_DIRECT)",
            PieceCall::Next(_) => "read",
        }
    }
}

struct CallScanner {
    file: OwnedFd,
    buffer: AnonymousMemory,
    target: ScanTarget,
    pieces: Pieces,
    call: PieceCall,
}

pub(super) fn open(access: Access, target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let mode = IoMode::of(&target.file.effects);
    let file = target.file.open_advised()?;
    let mut buffer = target.file.buffer(target.piece_bytes)?;
    mode.try_out(&file, &mut buffer, &target.file)?;
    let pieces = target.pieces();
    let call = if access == Access::Read { PieceCall::Next(mode) } else { PieceCall::At(mode) };
    Ok(Box::new(CallScanner { file, buffer, target, pieces, call }))
}

/// Timed region: `for each piece: call(buffer, len, offset) == expected; consume(buffer)`, where
/// `call` is pread(2), preadv2(2) with RWF_DONTCACHE, or read(2), which needs no offset.
#[inline(never)]
fn called_pieces(
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

impl Scanner for CallScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let (file, pieces, buffer) = (&self.file, self.pieces, self.buffer.bytes_mut());
        let path = &self.target.file.path;
        if let PieceCall::Next(_) = self.call {
            rustix::fs::seek(file, SeekFrom::Start(0))
                .map_err(|errno| failed("lseek", errno.into(), path, 0))?;
        }
        let pread = |buffer: &mut [u8], offset| rustix::io::pread(file, buffer, offset);
        let dontcache = |buffer: &mut [u8], offset| pread_dontcache(file, buffer, offset);
        let read = |buffer: &mut [u8], _| rustix::io::read(file, buffer);
        let result = by_consumer!(self.target.consumption, |consume| match self.call {
            PieceCall::At(IoMode::DontCache) => called_pieces(pieces, buffer, dontcache, consume),
            PieceCall::At(_) => called_pieces(pieces, buffer, pread, consume),
            PieceCall::Next(_) => called_pieces(pieces, buffer, read, consume),
        });
        result.map_err(|failed| failed.into_failure(self.call.name(), path))
    }
}
