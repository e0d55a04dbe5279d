//! Order of reads: independent, each offset as the table has it; dependent, each offset of an
//! operation except the first from the data of the read before; recorded, each offset and length as
//! a trace has them; or the whole span front to back.
//!
//! A loop is compiled for each order, so that independent reads pay nothing for the others. The
//! address of a dependent read is computed from a word loaded by the one before, so no CPU,
//! compiler or queue can begin it earlier.

use pagewise_model::Method;
use pagewise_model::trace::range_of;
use pagewise_protocol::{CallFailure, Job};

use super::{Due, Passes, ReadAheadFiles, ReadTarget, Reader, RecordedReads, TablePart, TableReads};
use crate::failure::refusal;
use crate::sampling::ThreadWork;

/// An order of reads.
pub(super) trait Order: Copy + Send + 'static {
    /// The task of a method that reads in this order.
    const TASK: &'static str = "read at the offsets of a table";
    /// True if the span is read front to back.
    const IS_FRONT_TO_BACK: bool = false;
    /// True if a read waits for the data of the one before.
    const IS_CHAIN: bool = false;
    /// True if the span may have several files.
    const HAS_FILES: bool = false;

    /// Do the reads that are due, of `len` bytes or at most so many; `read` gets the weight, and
    /// offset and length, and returns the link of the bytes.
    ///
    /// Timed region: `for each (weight, entry): read(weight, range(entry ^ mask))`.
    fn reads<E>(
        self,
        due: Due<'_>,
        len: usize,
        read: impl FnMut(u64, (u64, usize)) -> Result<u64, E>,
    ) -> Result<(), Stopped<E>>;

    /// The word of a read's bytes that the next offset follows from; 0 if it follows from the table
    /// alone.
    #[inline(always)]
    fn link(self, _bytes: &[u8]) -> u64 {
        0
    }

    /// The work of each thread: its reader, over its part of the table.
    fn work<R: Reader>(
        self,
        readers: Vec<R>,
        parts: Vec<TablePart>,
        (_, job): (&ReadTarget, &Job),
    ) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
        let work = |(reader, part)| Box::new(TableReads::new(reader, part, job)) as Box<dyn ThreadWork>;
        Ok(readers.into_iter().zip(parts).map(work).collect())
    }
}

/// Do the reads of entries that do not depend on each other.
#[inline(always)]
fn each<E>(
    due: Due<'_>,
    range: impl Fn(u64) -> Option<(u64, usize)>,
    mut read: impl FnMut(u64, (u64, usize)) -> Result<u64, E>,
) -> Result<(), Stopped<E>> {
    for (weight, entry) in due.weighted() {
        let range = range(entry).ok_or(Stopped::OutOfRange(entry))?;
        read(weight, range).map_err(Stopped::Read)?;
    }
    Ok(())
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

impl Independent {
    /// Offset and length of the read at this offset; `None` if it does not fit into the span.
    #[inline(always)]
    pub(super) fn range(self, offset: u64, len: usize) -> Option<(u64, usize)> {
        (offset <= self.last_offset).then_some((offset, len))
    }
}

impl Order for Independent {
    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        len: usize,
        read: impl FnMut(u64, (u64, usize)) -> Result<u64, E>,
    ) -> Result<(), Stopped<E>> {
        each(due, |entry| self.range(entry, len), read)
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
    const HAS_FILES: bool = true;

    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        longest: usize,
        read: impl FnMut(u64, (u64, usize)) -> Result<u64, E>,
    ) -> Result<(), Stopped<E>> {
        let range = |entry| {
            let (offset, len) = range_of(entry);
            (len <= longest && offset + len as u64 <= self.span_bytes).then_some((offset, len))
        };
        each(due, range, read)
    }

    fn work<R: Reader>(
        self,
        readers: Vec<R>,
        parts: Vec<TablePart>,
        (target, job): (&ReadTarget, &Job),
    ) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
        let ahead = ReadAheadFiles::of::<R>(target, job)?;
        let work = |(reader, part)| {
            Box::new(RecordedReads::new(reader, part, job, ahead.clone())) as Box<dyn ThreadWork>
        };
        Ok(readers.into_iter().zip(parts).map(work).collect())
    }
}

/// The whole span, whatever is due: its pieces one after the other, the last one shorter.
#[derive(Clone, Copy)]
pub(super) struct FrontToBack {
    span_bytes: u64,
}

impl FrontToBack {
    pub(super) fn of(target: &ReadTarget) -> Self {
        Self { span_bytes: target.file.span_bytes as u64 }
    }
}

impl Order for FrontToBack {
    const TASK: &'static str = "scan a file";
    const IS_FRONT_TO_BACK: bool = true;

    /// Timed region: `for each piece: read(1, piece)`. The sum does not depend on their order.
    #[inline(always)]
    fn reads<E>(
        self,
        _: Due<'_>,
        len: usize,
        mut read: impl FnMut(u64, (u64, usize)) -> Result<u64, E>,
    ) -> Result<(), Stopped<E>> {
        let mut offset = 0;
        while offset < self.span_bytes {
            let len = len.min((self.span_bytes - offset) as usize);
            read(1, (offset, len)).map_err(Stopped::Read)?;
            offset += len as u64;
        }
        Ok(())
    }

    fn work<R: Reader>(
        self,
        readers: Vec<R>,
        _: Vec<TablePart>,
        (_, job): (&ReadTarget, &Job),
    ) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
        let work = |reader| Box::new(Passes::new(reader, job.span_bytes)) as Box<dyn ThreadWork>;
        Ok(readers.into_iter().map(work).collect())
    }
}

/// Dependent reads.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    reads_per_op: usize,
    independent: Independent,
}

impl Chain {
    pub(super) fn of(target: &ReadTarget) -> Self {
        Self { reads_per_op: target.reads_per_op, independent: Independent::of(target) }
    }
}

impl Order for Chain {
    const IS_CHAIN: bool = true;

    /// Timed region:
    /// `for each operation: link = 0; for each (weight, entry): link = read(weight, range(entry ^ mask ^ link))`.
    #[inline(always)]
    fn reads<E>(
        self,
        due: Due<'_>,
        len: usize,
        mut read: impl FnMut(u64, (u64, usize)) -> Result<u64, E>,
    ) -> Result<(), Stopped<E>> {
        for operation in due.operations(self.reads_per_op) {
            let mut link = 0;
            for (weight, entry) in operation.weighted() {
                let offset = entry ^ link;
                let range = self.independent.range(offset, len).ok_or(Stopped::OutOfRange(offset))?;
                link = read(weight, range).map_err(Stopped::Read)?;
            }
        }
        Ok(())
    }

    /// Shorter reads are refused beforehand.
    #[inline(always)]
    fn link(self, bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes[..Method::LINK_BYTES as usize].try_into().expect("eight bytes"))
    }
}
