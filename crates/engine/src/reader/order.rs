//! Order of reads: independent, each offset as the table has it; dependent, each offset of an
//! operation except the first from the data of the read before; recorded, each offset and length as
//! a trace has them.
//!
//! A loop is compiled for each order, so that independent reads pay nothing for the others. The
//! address of a dependent read is computed from a word loaded by the one before, so no CPU,
//! compiler or queue can begin it earlier.

use pagewise_model::trace::range_of;
use pagewise_model::{Method, Workload};
use pagewise_protocol::{CallFailure, Job};

use super::{Due, ReadRange, ReadTarget, Reader};
use crate::failure::refusal;

/// An order of reads.
pub(super) trait Order: Copy + Send + 'static {
    /// Offset and length of the read at an entry, where those of this job have `len` bytes or at
    /// most so many. `None` if it does not fit into the span.
    fn range(self, entry: u64, len: usize) -> Option<(u64, usize)>;

    /// The word of a read's bytes that the next offset follows from; 0 if it follows from the table
    /// alone.
    #[inline(always)]
    fn link(self, _bytes: &[u8]) -> u64 {
        0
    }

    /// Do the reads that are due; `read` returns the link and the checksum of the bytes at this
    /// offset, of this length.
    ///
    /// Timed region: `for each (weight, entry): total += weight * read(range(entry ^ mask))`.
    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        len: usize,
        mut read: impl FnMut((u64, usize)) -> Result<(u64, u64), E>,
    ) -> Result<u64, Stopped<E>> {
        let mut total = 0u64;
        for (weight, entry) in due.weighted() {
            let range = self.range(entry, len).ok_or(Stopped::OutOfRange(entry))?;
            let (_, checksum) = read(range).map_err(Stopped::Read)?;
            total = total.wrapping_add(weight.wrapping_mul(checksum));
        }
        Ok(total)
    }
}

/// A reader that can read in any order.
pub(super) trait ReadInOrder: Reader + Sized + 'static {
    /// Like [`Reader::read`], in this order.
    fn read_in(&mut self, due: Due<'_>, order: impl Order) -> Result<u64, CallFailure>;

    /// Box this reader, or one made of it for another order of the target.
    fn boxed(self, target: &ReadTarget) -> Box<dyn Reader> {
        match target.order {
            OrderKind::Independent => Box::new(self),
            OrderKind::Dependent => Box::new(OrderedReader { reader: self, order: Chain::of(target) }),
            OrderKind::Recorded => Box::new(OrderedReader { reader: self, order: Recorded::of(target) }),
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
    /// Each entry is an offset and a length ([`pagewise_model::trace::entry()`]).
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

/// A reader in another order than that of independent reads.
struct OrderedReader<R, O> {
    reader: R,
    order: O,
}

impl<R: ReadInOrder, O: Order> Reader for OrderedReader<R, O> {
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        self.reader.read_in(reads.due(), self.order)
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
    /// The table led to this entry, whose read does not fit into the span: the data differ from
    /// those used to build the table.
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
        out_of_range(target, offset)
    }
}

/// The failure of an entry whose read does not fit into the span.
#[cold]
pub(super) fn out_of_range(target: &ReadTarget, offset: u64) -> CallFailure {
    let (path, span_bytes) = (&target.file.path, target.file.span_bytes);
    let detail = format!(
        "the data of {path} led to offset {offset}, past the {span_bytes} bytes of the span: they differ from those used to build the offset table"
    );
    CallFailure { offset, ..refusal("read by the table", path, detail) }
}

/// Independent reads.
#[derive(Clone, Copy)]
pub(super) struct Independent {
    /// The last offset from which a read fits into the span.
    last_offset: u64,
}

impl Independent {
    pub(super) fn of(target: &ReadTarget) -> Self {
        Self { last_offset: (target.file.span_bytes as u64).saturating_sub(target.read_bytes as u64) }
    }
}

impl Order for Independent {
    #[inline(always)]
    fn range(self, entry: u64, len: usize) -> Option<(u64, usize)> {
        (entry <= self.last_offset).then_some((entry, len))
    }
}

/// Reads of a trace, each with a length of its own.
#[derive(Clone, Copy)]
pub(super) struct Recorded {
    span_bytes: u64,
}

impl Recorded {
    pub(super) fn of(target: &ReadTarget) -> Self {
        Self { span_bytes: target.file.span_bytes as u64 }
    }
}

impl Order for Recorded {
    #[inline(always)]
    fn range(self, entry: u64, longest: usize) -> Option<(u64, usize)> {
        let (offset, len) = range_of(entry);
        (len <= longest && offset + len as u64 <= self.span_bytes).then_some((offset, len))
    }
}

/// Dependent reads.
#[derive(Clone, Copy)]
struct Chain {
    reads_per_op: usize,
    independent: Independent,
}

impl Chain {
    fn of(target: &ReadTarget) -> Self {
        Self { reads_per_op: target.reads_per_op, independent: Independent::of(target) }
    }
}

impl Order for Chain {
    #[inline(always)]
    fn range(self, offset: u64, len: usize) -> Option<(u64, usize)> {
        self.independent.range(offset, len)
    }

    /// Shorter reads are refused beforehand.
    #[inline(always)]
    fn link(self, bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes[..Method::LINK_BYTES as usize].try_into().expect("eight bytes"))
    }

    /// Timed region:
    /// `for each operation: link = 0; for each (weight, entry): (link, checksum) = read(range(entry ^ mask ^ link)); total += weight * checksum`.
    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        len: usize,
        mut read: impl FnMut((u64, usize)) -> Result<(u64, u64), E>,
    ) -> Result<u64, Stopped<E>> {
        let mut total = 0u64;
        for operation in due.operations(self.reads_per_op) {
            let mut link = 0;
            for (weight, entry) in operation.weighted() {
                let offset = entry ^ link;
                let range = self.range(offset, len).ok_or(Stopped::OutOfRange(offset))?;
                let checksum;
                (link, checksum) = read(range).map_err(Stopped::Read)?;
                total = total.wrapping_add(weight.wrapping_mul(checksum));
            }
        }
        Ok(total)
    }
}
