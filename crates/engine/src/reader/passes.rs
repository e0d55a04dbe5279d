//! Passes over a whole file, front to back, by one thread: each of them one operation.
//!
//! A pass reads the file in pieces and consumes each of them. The checksum of a pass is the sum of
//! the checksums of the pieces, so their order does not matter. Pieces are whole pages if words of
//! pages are touched, and whole words if words are added, so that the checksum does not depend on
//! the size of a piece.

use pagewise_model::{Access, Method};
use pagewise_protocol::{CallFailure, Job};

use super::{Due, ReadRange, Reader};
use crate::effects::Effects;
use crate::operations::{Done, Operations};

/// A reader of a span of this length.
pub(super) struct Passes<R> {
    reader: R,
    span_bytes: u64,
    passes: u64,
}

impl<R: Reader> Passes<R> {
    pub(super) fn new(reader: R, span_bytes: u64) -> Self {
        Self { reader, span_bytes, passes: 0 }
    }
}

/// Size of one call or copy. In the mapping, and in memory, nothing is copied, so a piece is the
/// whole span.
pub(super) fn piece_bytes(method: &Method, job: &Job) -> usize {
    let effects = Effects::of(method);
    let whole = effects.in_place || method.access() == Access::Anonymous;
    let piece = effects.buffer.or((!whole).then_some(Method::DEFAULT_BUFFER));
    piece.map_or(job.span_bytes.max(1), |piece| piece.0) as usize
}

impl<R: Reader> Operations for Passes<R> {
    /// Timed region: that of the reader, over all pieces.
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        let operations = wanted.min(end.saturating_sub(position));
        let mut checksum = 0u64;
        for _ in 0..operations {
            checksum = checksum.wrapping_add(self.reader.read(ReadRange::alone(Due::single(&[0])))?);
            checksum = checksum.wrapping_add(self.reader.finish()?);
        }
        self.passes += operations;
        Ok(Done { operations, checksum })
    }

    fn bytes(&self) -> u64 {
        self.passes * self.span_bytes
    }
}
