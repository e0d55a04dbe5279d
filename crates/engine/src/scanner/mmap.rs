//! `mmap`: pieces are copied from a shared mapping, or consumed in it.

use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, FileMapping};

use super::{ScanTarget, Scanner};
use crate::consume::by_consumer;

struct CopyScanner {
    mapping: FileMapping,
    buffer: AnonymousMemory,
    target: ScanTarget,
}

struct InPlaceScanner {
    mapping: FileMapping,
    target: ScanTarget,
}

pub(super) fn open(target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let mapping = target.file.map()?;
    if target.file.effects.in_place {
        return Ok(Box::new(InPlaceScanner { mapping, target }));
    }
    let buffer = target.file.buffer(target.piece_bytes)?;
    Ok(Box::new(CopyScanner { mapping, buffer, target }))
}

/// Timed region: `for each piece: memcpy(buffer, mapping + offset, len); consume(buffer)`.
#[inline(never)]
fn copy_pieces(source: &[u8], buffer: &mut [u8], consume: impl Fn(&[u8]) -> u64) -> u64 {
    let mut total = 0u64;
    for piece in source.chunks(buffer.len()) {
        let buffer = &mut buffer[..piece.len()];
        buffer.copy_from_slice(piece);
        total = total.wrapping_add(consume(buffer));
    }
    total
}

/// Timed region: `for each piece: consume(memory + offset)`; one piece, unless a smaller one was
/// requested.
#[inline(never)]
pub(super) fn consume_pieces(source: &[u8], piece_bytes: usize, consume: impl Fn(&[u8]) -> u64) -> u64 {
    source.chunks(piece_bytes).fold(0u64, |total, piece| total.wrapping_add(consume(piece)))
}

impl Scanner for CopyScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let source = self.mapping.bytes();
        let buffer = &mut self.buffer.bytes_mut()[..self.target.piece_bytes];
        Ok(by_consumer!(self.target.consumption, |consume| copy_pieces(source, buffer, consume)))
    }
}

impl Scanner for InPlaceScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let (source, piece_bytes) = (self.mapping.bytes(), self.target.piece_bytes);
        Ok(by_consumer!(self.target.consumption, |consume| consume_pieces(source, piece_bytes, consume)))
    }
}
