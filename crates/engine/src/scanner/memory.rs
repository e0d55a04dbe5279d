//! `mmap` and `anonymous`: pieces are copied from memory that has the file's bytes, or consumed in
//! it. Of memory that holds them already, consumption is all there is, so no scan can be faster.

use pagewise_protocol::CallFailure;
use pagewise_sys::{AnonymousMemory, FileMapping};

use super::{ScanTarget, Scanner};
use crate::consume::by_consumer;

/// Memory with the file's bytes.
enum Source {
    Mapped(FileMapping),
    Loaded(AnonymousMemory),
}

struct MemoryScanner {
    source: Source,
    /// Pieces are copied to it; `None`: they are consumed in place.
    buffer: Option<AnonymousMemory>,
    target: ScanTarget,
}

/// A scanner of a mapping of the file.
pub(super) fn mapped(target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let source = Source::Mapped(target.file.map()?);
    let copies = !target.file.effects.in_place;
    let buffer = copies.then(|| target.file.buffer(target.piece_bytes)).transpose()?;
    Ok(Box::new(MemoryScanner { source, buffer, target }))
}

/// A scanner of memory that the file was read into.
pub(super) fn loaded(target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let source = Source::Loaded(target.file.load()?);
    Ok(Box::new(MemoryScanner { source, buffer: None, target }))
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
fn consume_pieces(source: &[u8], piece_bytes: usize, consume: impl Fn(&[u8]) -> u64) -> u64 {
    source.chunks(piece_bytes).fold(0u64, |total, piece| total.wrapping_add(consume(piece)))
}

impl Scanner for MemoryScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        let ScanTarget { file, piece_bytes, consumption } = &self.target;
        let source = match &self.source {
            Source::Mapped(mapping) => mapping.bytes(),
            Source::Loaded(memory) => &memory.bytes()[..file.span_bytes],
        };
        Ok(by_consumer!(consumption, |consume| match &mut self.buffer {
            Some(buffer) => copy_pieces(source, &mut buffer.bytes_mut()[..*piece_bytes], consume),
            None => consume_pieces(source, *piece_bytes, consume),
        }))
    }
}
