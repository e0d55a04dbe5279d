//! Order of reads: independent, each offset as the table has it; dependent, each offset of an operation except the first
//! from the data of the read before; recorded, each offset and length as a trace has them.
//!
//! A loop is compiled for each order, so that independent reads pay nothing for the others. The address of a dependent
//! read is computed from a word loaded by the one before, so no CPU, compiler or queue can begin it earlier.

use pagewise_model::trace::range_of;
use pagewise_model::{Method, Workload};
use pagewise_protocol::{CallFailure, Job};

use super::{Due, ReadTarget, Reader};
use crate::failure::refusal;

/// An order of reads.
pub(super) trait Order: Copy {
    /// Offset and length of the read at an entry, where those of this job have `len` bytes or at most so many.
    fn range(self, entry: u64, len: usize) -> (u64, usize);

    /// The word of a read's bytes that the next offset follows from.
    fn link(self, bytes: &[u8]) -> u64;

    /// Do the reads that are due; `read` returns the link and the checksum of the bytes at an entry.
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

    /// Box this reader, or one made of it for another order of the target.
    fn boxed(self, target: &ReadTarget) -> Box<dyn Reader> {
        match target.order {
            OrderKind::Independent => Box::new(self),
            OrderKind::Dependent => Box::new(DependentReader { chain: Chain::new(target), reader: self }),
            OrderKind::Recorded => Box::new(RecordedReader(self)),
        }
    }
}

/// Kinds of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderKind {
    /// Each entry is an offset.
    Independent,
    /// Each offset but the first follows from the data of the read before.
    Dependent,
    /// Each entry is an offset and a length ([`pagewise_model::trace::entry`]).
    Recorded,
}

impl OrderKind {
    /// The order of a job's reads.
    pub(super) fn of(job: &Job) -> Self {
        match job.workload == Workload::Replay.name() {
            true => OrderKind::Recorded,
            false if job.dependent == 1 => OrderKind::Dependent,
            false => OrderKind::Independent,
        }
    }
}

/// A reader of recorded reads.
struct RecordedReader<R>(R);

impl<R: ReadInOrder> Reader for RecordedReader<R> {
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure> {
        self.0.read_in(due, Recorded)
    }

    fn warm_page_tables(&mut self) {
        self.0.warm_page_tables();
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.0.fetch(offset, into)
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
    fn range(self, entry: u64, len: usize) -> (u64, usize) {
        (entry, len)
    }

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

/// Reads of a trace, each with a length of its own.
#[derive(Clone, Copy)]
pub(super) struct Recorded;

impl Order for Recorded {
    #[inline(always)]
    fn range(self, entry: u64, _: usize) -> (u64, usize) {
        range_of(entry)
    }

    #[inline(always)]
    fn link(self, _: &[u8]) -> u64 {
        0
    }

    /// Timed region: that of [`Independent`].
    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        read: impl FnMut(u64) -> Result<(u64, u64), E>,
    ) -> Result<u64, Stopped<E>> {
        Independent.reads(due, read)
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
    #[inline(always)]
    fn range(self, offset: u64, len: usize) -> (u64, usize) {
        (offset, len)
    }

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
