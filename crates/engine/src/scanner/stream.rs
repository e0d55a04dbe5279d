//! `read`: read(2) from the descriptor's position, which is reset to the start for each pass.

use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;
use rustix::fd::OwnedFd;
use rustix::fs::SeekFrom;

use super::pieces::Pieces;
use super::{ScanTarget, Scanner};
use crate::consume::by_consumer;
use crate::failure::failed;
use crate::file::{FailedRead, IoMode};

struct StreamScanner {
    file: OwnedFd,
    buffer: AnonymousMemory,
    target: ScanTarget,
    pieces: Pieces,
    call: &'static str,
}

pub(super) fn open(target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let file = target.file.open_advised()?;
    let mut buffer = target.file.buffer(target.piece_bytes)?;
    IoMode::of(&target.file.effects).try_out(&file, &mut buffer, &target.file)?;
    let pieces = target.pieces();
    let call = if target.file.effects.direct { "read(O_DIRECT)" } else { "read" };
    Ok(Box::new(StreamScanner { file, buffer, target, pieces, call }))
}

/// Timed region: `for each piece: read(file, buffer, len) == expected; consume(buffer)`.
#[inline(never)]
fn read_pieces(
    file: &OwnedFd,
    pieces: Pieces,
    buffer: &mut [u8],
    consume: impl Fn(&[u8]) -> u64,
) -> Result<u64, FailedRead> {
    pieces.sum(|piece| {
        let result = rustix::io::read(file, &mut buffer[..piece.len]);
        if result != Ok(piece.expected) {
            return Err(FailedRead { offset: piece.offset, expected: piece.expected, result });
        }
        Ok(consume(&buffer[..piece.consumed]))
    })
}

impl Scanner for StreamScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let (file, pieces, buffer) = (&self.file, self.pieces, self.buffer.bytes_mut());
        let path = &self.target.file.path;
        rustix::fs::seek(file, SeekFrom::Start(0)).map_err(|errno| failed("lseek", errno.into(), path, 0))?;
        by_consumer!(self.target.consumption, |consume| read_pieces(file, pieces, buffer, consume))
            .map_err(|stopped| stopped.into_failure(self.call, path))
    }
}
