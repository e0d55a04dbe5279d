//! Dependent reads: each offset of an operation except the first follows from the data of the read before.
//!
//! They have separate loops, so that independent reads pay nothing for them. The address of a read is computed from a
//! word loaded by the one before, so no CPU, compiler or queue can begin it earlier.

use pagewise_model::Method;
use pagewise_protocol::CallFailure;

use super::{Due, ReadTarget, Reader};
use crate::failure::refusal;

/// A reader that can follow a chain of dependent reads.
pub(super) trait Follow: Reader + Sized + 'static {
    /// Like [`Reader::read`], with dependent reads.
    fn follow(&mut self, due: Due<'_>, chain: Chain) -> Result<u64, CallFailure>;

    /// Box this reader, or a dependent reader made of it.
    fn boxed(self, target: &ReadTarget, dependent: bool) -> Box<dyn Reader> {
        if dependent {
            return Box::new(DependentReader { chain: Chain::new(target), reader: self });
        }
        Box::new(self)
    }
}

struct DependentReader<R> {
    reader: R,
    chain: Chain,
}

impl<R: Follow> Reader for DependentReader<R> {
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        self.reader.follow(due, self.chain)
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.reader.fetch(offset, into)
    }
}

/// Reason that a batch of dependent reads stopped.
pub(super) enum ChainStopped<E> {
    /// A read led to this offset, from which no read fits into the span: the data differ from those used to build the
    /// table.
    OutOfRange(u64),
    /// A read failed.
    Read(E),
}

impl<E> ChainStopped<E> {
    #[cold]
    pub fn into_failure(self, target: &ReadTarget, of_read: impl FnOnce(E) -> CallFailure) -> CallFailure {
        let offset = match self {
            ChainStopped::OutOfRange(offset) => offset,
            ChainStopped::Read(error) => return of_read(error),
        };
        let (path, span_bytes) = (&target.file.path, target.file.span_bytes);
        let detail = format!(
            "a dependent read of {path} led to offset {offset}, past the {span_bytes} bytes of the span: its data differ from those used to build the offset table"
        );
        CallFailure { offset, ..refusal("dependent read", path, detail) }
    }
}

/// Input of the loop besides the entries of the table.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    reads_per_op: usize,
    /// The last offset from which a read fits into the span.
    last_offset: u64,
}

impl Chain {
    pub fn new(target: &ReadTarget) -> Self {
        let last_offset = (target.file.span_bytes as u64).saturating_sub(target.read_bytes as u64);
        Self { reads_per_op: target.reads_per_op, last_offset }
    }

    /// Timed region: `for each operation: link = 0; for each (weight, entry): offset = entry ^ link; offset <= last_offset;
    /// (link, checksum) = read(offset); total += weight * checksum`.
    #[inline(always)]
    pub fn follow<E>(
        self,
        due: Due<'_>,
        mut read: impl FnMut(u64) -> Result<(u64, u64), E>,
    ) -> Result<u64, ChainStopped<E>> {
        let mut total = 0u64;
        for operation in due.operations(self.reads_per_op) {
            let mut link = 0;
            for (weight, entry) in operation.weighted() {
                let offset = entry ^ link;
                if offset > self.last_offset {
                    return Err(ChainStopped::OutOfRange(offset));
                }
                let checksum;
                (link, checksum) = read(offset).map_err(ChainStopped::Read)?;
                total = total.wrapping_add(weight.wrapping_mul(checksum));
            }
        }
        Ok(total)
    }
}

/// The bytes of a read that determine the offset of the next. Shorter reads are refused beforehand.
#[inline(always)]
pub(super) fn link(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..Method::LINK_BYTES as usize].try_into().expect("eight bytes"))
}
