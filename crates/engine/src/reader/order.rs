//! Order of reads: independent, each offset as the table has it, or dependent, each offset of an operation except the first
//! from the data of the read before.
//!
//! A loop is compiled for each order, so that independent reads pay nothing for dependent ones. The address of a dependent
//! read is computed from a word loaded by the one before, so no CPU, compiler or queue can begin it earlier.

use pagewise_model::Method;
use pagewise_protocol::CallFailure;

use super::{Due, ReadTarget, Reader};
use crate::failure::refusal;

/// An order of reads.
pub(super) trait Order: Copy {
    /// The word of a read's bytes that the next offset follows from.
    fn link(self, bytes: &[u8]) -> u64;

    /// Do the reads that are due; `read` returns the link and the checksum of the bytes at an offset.
    fn reads<E>(
        self,
        due: Due<'_>,
        read: impl FnMut(u64) -> Result<(u64, u64), E>,
    ) -> Result<u64, Stopped<E>>;
}

/// A reader that can read in any order.
pub(super) trait ReadInOrder: Reader + Sized + 'static {
    /// Like [`Reader::read`], in this order.
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure>;

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

impl<R: ReadInOrder> Reader for DependentReader<R> {
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        self.reader.read_in(due, self.chain)
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.reader.fetch(offset, into)
    }
}

/// Reason that a batch of reads stopped.
pub(super) enum Stopped<E> {
    /// A dependent read led to this offset, from which no read fits into the span: the data differ from those used to build the
    /// table.
    OutOfRange(u64),
    /// A read failed.
    Read(E),
}

impl<E> Stopped<E> {
    #[cold]
    pub fn into_failure(self, target: &ReadTarget, of_read: impl FnOnce(E) -> CallFailure) -> CallFailure {
        let offset = match self {
            Stopped::OutOfRange(offset) => offset,
            Stopped::Read(error) => return of_read(error),
        };
        let (path, span_bytes) = (&target.file.path, target.file.span_bytes);
        let detail = format!(
            "a dependent read of {path} led to offset {offset}, past the {span_bytes} bytes of the span: its data differ from those used to build the offset table"
        );
        CallFailure { offset, ..refusal("dependent read", path, detail) }
    }
}

/// Independent reads.
#[derive(Clone, Copy)]
pub(super) struct Independent;

impl Order for Independent {
    #[inline(always)]
    fn link(self, _: &[u8]) -> u64 {
        0
    }

    /// Timed region: `for each (weight, offset): total += weight * read(offset)`.
    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        mut read: impl FnMut(u64) -> Result<(u64, u64), E>,
    ) -> Result<u64, Stopped<E>> {
        let mut total = 0u64;
        for (weight, offset) in due.weighted() {
            let (_, checksum) = read(offset).map_err(Stopped::Read)?;
            total = total.wrapping_add(weight.wrapping_mul(checksum));
        }
        Ok(total)
    }
}

/// Dependent reads.
#[derive(Clone, Copy)]
struct Chain {
    reads_per_op: usize,
    /// The last offset from which a read fits into the span.
    last_offset: u64,
}

impl Chain {
    fn new(target: &ReadTarget) -> Self {
        let last_offset = (target.file.span_bytes as u64).saturating_sub(target.read_bytes as u64);
        Self { reads_per_op: target.reads_per_op, last_offset }
    }
}

impl Order for Chain {
    /// Shorter reads are refused beforehand.
    #[inline(always)]
    fn link(self, bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes[..Method::LINK_BYTES as usize].try_into().expect("eight bytes"))
    }

    /// Timed region: `for each operation: link = 0; for each (weight, entry): offset = entry ^ link; offset <= last_offset;
    /// (link, checksum) = read(offset); total += weight * checksum`.
    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        mut read: impl FnMut(u64) -> Result<(u64, u64), E>,
    ) -> Result<u64, Stopped<E>> {
        let mut total = 0u64;
        for operation in due.operations(self.reads_per_op) {
            let mut link = 0;
            for (weight, entry) in operation.weighted() {
                let offset = entry ^ link;
                if offset > self.last_offset {
                    return Err(Stopped::OutOfRange(offset));
                }
                let checksum;
                (link, checksum) = read(offset).map_err(Stopped::Read)?;
                total = total.wrapping_add(weight.wrapping_mul(checksum));
            }
        }
        Ok(total)
    }
}
