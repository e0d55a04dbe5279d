//! Dependent reads: each offset of an operation but the first follows from the data of the read before it.
//!
//! Loops of their own, so that independent reads pay nothing for it. The address of a read is computed from a word that
//! was loaded out of the one before: no CPU, compiler or queue can begin it earlier.

use pagewise_model::protocol::CallFailure;
use pagewise_model::{Bytes, Method};

use super::{Due, Target};

/// A read led to an offset from which no read fits into the span: the data are not those that the table was made of.
pub(super) struct Astray {
    /// Where it led to.
    pub offset: u64,
}

impl Astray {
    #[cold]
    pub fn into_failure(self, target: &Target) -> CallFailure {
        let offset = self.offset;
        let span_bytes = target.file.span_bytes;
        CallFailure {
            call: "dependent read".to_string(),
            errno: 0,
            path: target.file.path.clone(),
            offset,
            detail: format!(
                "a dependent read of {} led to offset {offset}, beyond the {span_bytes} bytes that are read: its data \
                 are not those that the offset table was made of",
                target.file.path
            ),
            unavailable: 0,
        }
    }
}

/// Why a method cannot do dependent reads.
pub(super) fn refusal(method: &Method, reason: &str, target: &Target) -> CallFailure {
    CallFailure {
        call: "dependent read".to_string(),
        errno: 0,
        path: target.file.path.clone(),
        offset: 0,
        detail: format!(
            "{method} cannot do dependent reads of {}: {reason}",
            Bytes(target.read_bytes as u64)
        ),
        unavailable: 1,
    }
}

/// What a loop needs to know beside the entries of the table.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    reads_per_op: usize,
    /// The last offset from which a read fits into the span.
    last_offset: u64,
}

impl Chain {
    pub fn new(target: &Target) -> Self {
        let last_offset = (target.file.span_bytes as u64).saturating_sub(target.read_bytes as u64);
        Self { reads_per_op: target.reads_per_op, last_offset }
    }

    /// Timed region: `for each operation: link = 0; for each (weight, entry): offset = entry ^ link; offset <= last_offset;
    /// (link, checksum) = read(offset); total += weight * checksum`.
    #[inline(always)]
    pub fn follow<E: From<Astray>>(
        self,
        due: Due<'_>,
        mut read: impl FnMut(u64) -> Result<(u64, u64), E>,
    ) -> Result<u64, E> {
        let mut total = 0u64;
        for operation in due.operations(self.reads_per_op) {
            let mut link = 0;
            for (weight, entry) in operation.weighted() {
                let offset = entry ^ link;
                if offset > self.last_offset {
                    return Err(Astray { offset }.into());
                }
                let checksum;
                (link, checksum) = read(offset)?;
                total = total.wrapping_add(weight.wrapping_mul(checksum));
            }
        }
        Ok(total)
    }
}

/// The bytes of a read from which the offset of the next one follows. Reads shorter than that are refused beforehand.
#[inline(always)]
pub(super) fn link(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..Method::LINK_BYTES as usize].try_into().expect("eight bytes"))
}
