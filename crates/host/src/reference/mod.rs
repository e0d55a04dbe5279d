//! The checksum that honest accesses must have, computed without the worker: of reads by a table
//! ([`Reference`]), or of a pass over the whole file ([`pass`]).
//!
//! For a dataset it follows from the seed. For the user's file the bytes are read here, with
//! O_DIRECT if possible, so that the page cache does not change. Two sums are kept for each
//! operation, from which its checksum at any index of the table follows. Three algorithms compute
//! the same sums:
//!
//! * words: `touch` of a dataset needs only the touched words, which are computed one by one;
//! * granules: `sum` of aligned reads that cover much of the span adds whole granules (at most a
//!   page), each summed once, one section of the span at a time, because additions modulo 2^64
//!   commute;
//! * windows: everything else goes through the reads in the order of their offsets and reads the
//!   file in windows of about 1 MiB that leave gaps out.

mod pass;
mod recorded;
pub(crate) mod source;
pub(crate) mod windows;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pagewise_model::checksum::{Consumption, sum, weight};
use pagewise_model::{Conditions, Consume, Content, Reads, content};

use crate::table::{OffsetTable, OperationOrder};
pub use pass::{PassSource, pass, read_lines};
pub use recorded::recorded;
use source::{ByteSource, Formula, SourceReader, buffer};
use windows::{WINDOW_BYTES, each_read};

/// Granules of a section: 2 MiB of sums.
const GRANULES: u64 = 1 << 18;
/// Smaller granules do not pay for a pass over the table for each section.
const GRANULE_MIN_BYTES: u64 = 512;

/// Source of the expected bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceSource {
    /// Computed from the dataset's seed.
    Formula,
    /// Read with O_DIRECT; the page cache did not change.
    DirectReads,
    /// Read from the page cache, which held the whole span.
    CachedReads,
    /// Read through the page cache, which now holds more of the file than before.
    DisturbingReads,
}

/// Reason that the expected bytes are unknown.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum ReferenceError {
    #[error("{call} of {path} failed at offset {offset}: {source}")]
    Call { path: PathBuf, call: &'static str, offset: u64, source: io::Error },
    #[error("{path} ends at byte {offset}, before the last bytes to read: it became shorter")]
    Short { path: PathBuf, offset: u64 },
    #[error("no memory for a buffer of {bytes} bytes: {source}")]
    Memory { bytes: u64, source: io::Error },
    #[error("stopped while {path} was being read")]
    Stopped { path: PathBuf },
}

/// Checksums of all operations of a table.
pub struct Reference {
    sums: ReadSums,
    part: u64,
    repeats: bool,
    source: ReferenceSource,
}

/// Sums over the reads of each operation. The weight of the j-th read of the operation at position
/// p is that of j plus `2 * reads_per_op * p`, so these two sums determine the weighted checksum at
/// any position.
struct ReadSums {
    reads_per_op: usize,
    /// Checksums of the reads.
    plain: Vec<u64>,
    /// Checksums of the reads, each times its weight in an operation at the first position.
    weighted: Vec<u64>,
}

impl ReadSums {
    fn new(table: &OffsetTable) -> Self {
        let operations = table.operations() as usize;
        let reads_per_op = table.shape().reads_per_op as usize;
        Self { reads_per_op, plain: vec![0; operations], weighted: vec![0; operations] }
    }

    /// Add the checksum of a read of the table.
    #[inline(always)]
    fn add(&mut self, read: usize, checksum: u64) {
        let (operation, index) = (read / self.reads_per_op, read % self.reads_per_op);
        self.plain[operation] = self.plain[operation].wrapping_add(checksum);
        let weighted = weight(index as u64).wrapping_mul(checksum);
        self.weighted[operation] = self.weighted[operation].wrapping_add(weighted);
    }

    /// The checksum of an operation at `position`, counted in operations.
    fn at(&self, position: usize, operation: usize) -> u64 {
        let more = (2 * self.reads_per_op as u64).wrapping_mul(position as u64);
        self.weighted[operation].wrapping_add(more.wrapping_mul(self.plain[operation]))
    }
}

impl Reference {
    /// Checksums of the reads of a dataset with `seed` and the content that the table was drawn
    /// for.
    pub fn for_dataset(
        table: &OffsetTable,
        conditions: &Conditions,
        seed: u64,
        page_bytes: u64,
    ) -> Result<Self, ReferenceError> {
        let reads = table.shape();
        let consumption = table.consumption(page_bytes);
        let mut formula = Formula { content: table.content(), seed };
        let mut sums = ReadSums::new(table);
        if reads.consume == Consume::Touch {
            for (read, offset) in table.offsets().iter().enumerate() {
                sums.add(read, touch_words(&formula, *offset, reads.read_bytes.0, &consumption));
            }
        } else {
            add_reads(&mut sums, table, conditions.span_bytes.0, &consumption, &mut formula)?;
        }
        Ok(Self::of(sums, table, ReferenceSource::Formula))
    }

    /// Checksums of the reads of the user's file.
    pub fn for_file(
        table: &OffsetTable,
        conditions: &Conditions,
        file: &File,
        page_bytes: u64,
        stop: &AtomicBool,
    ) -> Result<Self, ReferenceError> {
        let span_bytes = conditions.span_bytes.0;
        let (mut reader, source) = SourceReader::open(file, span_bytes, stop)?;
        let mut sums = ReadSums::new(table);
        add_reads(&mut sums, table, span_bytes, &table.consumption(page_bytes), &mut reader)?;
        Ok(Self::of(sums, table, source))
    }

    fn of(sums: ReadSums, table: &OffsetTable, source: ReferenceSource) -> Self {
        Self { sums, part: table.operations_per_thread(), repeats: table.repeats(), source }
    }

    /// The checksum of `operations` operations of thread `thread` from `first_operation` of its
    /// part on, in this order; the part is repeated at its end. `None` past the end of a part that
    /// is not repeated, and for a thread without a part.
    pub fn expected(
        &self,
        order: &OperationOrder,
        thread: u32,
        first_operation: u64,
        operations: u64,
    ) -> Option<u64> {
        let end = first_operation.checked_add(operations)?;
        let has_part = (u64::from(thread) + 1) * self.part <= self.sums.plain.len() as u64;
        if !has_part || !self.repeats && end > self.part {
            return None;
        }
        let range = |first, count| {
            let positions = order.range(thread, first, count);
            positions
                .map(|(position, operation)| self.sums.at(position, operation))
                .fold(0, u64::wrapping_add)
        };
        let (passes, rest) = (operations / self.part, operations % self.part);
        let whole = if passes > 0 { range(0, self.part).wrapping_mul(passes) } else { 0 };
        Some(whole.wrapping_add(range(first_operation, rest)))
    }

    /// The checksum of an operation of the table at `position`, both counted in operations.
    pub(crate) fn at(&self, position: usize, operation: usize) -> u64 {
        self.sums.at(position, operation)
    }

    /// Source of the expected bytes.
    pub fn source(&self) -> ReferenceSource {
        self.source
    }
}

/// `touch` of one read of a dataset: [`pagewise_model::checksum::touch`] without the bytes in
/// between.
fn touch_words(formula: &Formula, offset: u64, read_bytes: u64, consumption: &Consumption) -> u64 {
    let Formula { content, seed } = *formula;
    let word = |position: u64| {
        let at = offset + position;
        if content == Content::Random && at.is_multiple_of(8) && position + 8 <= read_bytes {
            return content::word(seed, at / 8);
        }
        let mut bytes = [0; 8];
        content.fill(seed, at, &mut bytes[..(read_bytes - position).min(8) as usize]);
        u64::from_le_bytes(bytes)
    };
    let pages = (consumption.touch_at as u64..read_bytes).step_by(consumption.page_bytes).map(word);
    let total = pages.fold(0u64, u64::wrapping_add);
    if consumption.touch_last { total.wrapping_add(word(read_bytes.saturating_sub(8))) } else { total }
}

/// Add the checksum of every read to the sum of its operation.
fn add_reads(
    sums: &mut ReadSums,
    table: &OffsetTable,
    span_bytes: u64,
    consumption: &Consumption,
    source: &mut dyn ByteSource,
) -> Result<(), ReferenceError> {
    let reads = table.shape();
    let requested_bytes = table.reads().saturating_mul(reads.read_bytes.0);
    match granule_bytes(reads, consumption.page_bytes as u64) {
        Some(granule_bytes) if requested_bytes >= span_bytes / 2 => {
            add_by_granules(sums, table, span_bytes, granule_bytes, source)
        }
        _ => each_read(table.offsets(), reads.read_bytes.0, source, &mut |read, bytes| {
            sums.add(read, consumption.of(bytes));
        }),
    }
}

/// The largest power of two, up to a page, that divides offset and length of every read; `None`
/// unless the consumption is `sum`.
fn granule_bytes(reads: &Reads, page_bytes: u64) -> Option<u64> {
    let common = 1u64 << (reads.read_bytes.0 | reads.align_bytes.0).trailing_zeros();
    let granule_bytes = common.min(page_bytes);
    (reads.consume == Consume::Sum && granule_bytes >= GRANULE_MIN_BYTES).then_some(granule_bytes)
}

fn add_by_granules(
    sums: &mut ReadSums,
    table: &OffsetTable,
    span_bytes: u64,
    granule_bytes: u64,
    source: &mut dyn ByteSource,
) -> Result<(), ReferenceError> {
    let mut window = buffer(WINDOW_BYTES)?;
    let reads_end = span_bytes / granule_bytes;
    let read_granules = table.shape().read_bytes.0 / granule_bytes;
    // `totals[k]` is the sum of the first k granules of the section.
    let mut totals = Vec::with_capacity(GRANULES as usize + 1);
    let mut start = 0;
    while start < reads_end {
        let end = (start + GRANULES).min(reads_end);
        totals.clear();
        totals.push(0u64);
        let mut offset = start * granule_bytes;
        while offset < end * granule_bytes {
            let needed = (end * granule_bytes - offset).min(WINDOW_BYTES) as usize;
            let read_bytes = needed.next_multiple_of(source.alignment() as usize).min(WINDOW_BYTES as usize);
            source.fill(offset, &mut window.bytes_mut()[..read_bytes], needed)?;
            for granule in window.bytes()[..needed].chunks_exact(granule_bytes as usize) {
                totals.push(totals[totals.len() - 1].wrapping_add(sum(granule)));
            }
            offset += needed as u64;
        }
        for (read, offset) in table.offsets().iter().enumerate() {
            let first = offset / granule_bytes;
            let (from, to) = (first.max(start), (first + read_granules).min(end));
            if from < to {
                sums.add(read, totals[(to - start) as usize].wrapping_sub(totals[(from - start) as usize]));
            }
        }
        start = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
