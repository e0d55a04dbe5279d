//! The checksum that honest accesses must have, known without asking the worker: of reads by a table ([`Reference`]),
//! or of a pass over the whole file ([`pass`]).
//!
//! For a dataset it follows from the seed. For the user's file the bytes are read here, with O_DIRECT where
//! possible, so that the page cache stays as it was. Sums are kept per operation and added up front to back,
//! so that any run of operations is looked up by two subtractions. Three ways lead to the same sums:
//!
//! * words: `touch` of a dataset needs only the touched words, which are computed one by one;
//! * granules: `sum` of aligned reads that cover much of the span adds whole granules (at most a page), each
//!   summed once; a stretch of the span at a time, because additions modulo 2^64 commute;
//! * windows: everything else goes through the reads in the order of their offsets and reads the file in
//!   windows of about 1 MiB that leave gaps out.

mod pass;
pub(crate) mod source;
pub(crate) mod windows;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pagewise_model::checksum::{Consumption, sum};
use pagewise_model::{Conditions, Consume, Content, Reads, content};

use crate::table::OffsetTable;
pub use pass::{Source, pass, read_lines};
use source::{ByteSource, Formula, Reader, buffer};
use windows::{WINDOW_BYTES, each_read};

/// Granules summed at a time: 2 MiB of sums.
const GRANULES: u64 = 1 << 18;
/// Smaller granules are not worth a pass over the table for each stretch.
const GRANULE_MIN_BYTES: u64 = 512;

/// Where the expected bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceSource {
    /// Computed from the dataset's seed.
    Formula,
    /// Read with O_DIRECT; the page cache is as it was.
    DirectReads,
    /// Read from the page cache, which held the whole span.
    CachedReads,
    /// Read through the page cache, which now holds more of the file than before.
    DisturbingReads,
}

/// Why the expected bytes cannot be known.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum ReferenceError {
    #[error("{call} of {path} failed at offset {offset}: {source}")]
    Call { path: PathBuf, call: &'static str, offset: u64, source: io::Error },
    #[error("{path} ends at byte {offset}, before the bytes that were to be read; it became shorter")]
    Short { path: PathBuf, offset: u64 },
    #[error("no memory for a buffer of {bytes} bytes: {source}")]
    Memory { bytes: u64, source: io::Error },
    #[error("stopped while {path} was being read")]
    Stopped { path: PathBuf },
}

/// Checksums of all operations of a table.
pub struct Reference {
    /// For each operation of a thread's part, the sum of all up to and with it.
    sums: Vec<u64>,
    part: u64,
    repeats: bool,
    source: ReferenceSource,
}

impl Reference {
    /// The checksums of reads of a dataset with `seed`, which has the content that the table was drawn for.
    pub fn for_dataset(
        table: &OffsetTable,
        conditions: &Conditions,
        seed: u64,
        page_bytes: u64,
    ) -> Result<Self, ReferenceError> {
        let reads = table.shape();
        let consumption = reads.consumption(page_bytes);
        let mut formula = Formula { content: table.content(), seed };
        let mut sums = vec![0; table.operations() as usize];
        if reads.consume == Consume::Touch {
            for (total, operation) in sums.iter_mut().zip(table.offsets().chunks_exact(reads_per_op(reads))) {
                for offset in operation {
                    let checksum = touch_words(&formula, *offset, reads.read_bytes.0, &consumption);
                    *total = checksum.wrapping_add(*total);
                }
            }
        } else {
            add_reads(&mut sums, table, conditions.span_bytes.0, &consumption, &mut formula)?;
        }
        Ok(Self::accumulate(sums, table, ReferenceSource::Formula))
    }

    /// The checksums of reads of the user's file.
    pub fn for_file(
        table: &OffsetTable,
        conditions: &Conditions,
        file: &File,
        page_bytes: u64,
        stop: &AtomicBool,
    ) -> Result<Self, ReferenceError> {
        let span_bytes = conditions.span_bytes.0;
        let (mut reader, source) = Reader::open(file, span_bytes, stop)?;
        let mut sums = vec![0; table.operations() as usize];
        add_reads(&mut sums, table, span_bytes, &table.shape().consumption(page_bytes), &mut reader)?;
        Ok(Self::accumulate(sums, table, source))
    }

    fn accumulate(mut sums: Vec<u64>, table: &OffsetTable, source: ReferenceSource) -> Self {
        let part = table.operations_per_thread();
        for part in sums.chunks_exact_mut(part as usize) {
            let mut total = 0u64;
            for sum in part {
                total = total.wrapping_add(*sum);
                *sum = total;
            }
        }
        Self { sums, part, repeats: table.repeats(), source }
    }

    /// The checksum of `operations` operations of thread `thread` from `first_operation` of its part on;
    /// the part is begun again at its end. `None` behind the end of a part that is not repeated.
    pub fn expected(&self, thread: u32, first_operation: u64, operations: u64) -> Option<u64> {
        let end = first_operation.checked_add(operations)?;
        if !self.repeats && end > self.part {
            return None;
        }
        let part = self.part as usize;
        let sums = self.sums.get(thread as usize * part..(thread as usize + 1) * part)?;
        let up_to = |operation: u64| {
            let laps = sums[part - 1].wrapping_mul(operation / self.part);
            match (operation % self.part) as usize {
                0 => laps,
                rest => laps.wrapping_add(sums[rest - 1]),
            }
        };
        Some(up_to(end).wrapping_sub(up_to(first_operation)))
    }

    /// Where the bytes come from.
    pub fn source(&self) -> ReferenceSource {
        self.source
    }
}

fn reads_per_op(reads: &Reads) -> usize {
    reads.reads_per_op as usize
}

/// `touch` of one read of a dataset: [`pagewise_model::checksum::touch`] without the bytes between.
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
    let pages = (0..read_bytes).step_by(consumption.page_bytes).map(word);
    let total = pages.fold(0u64, u64::wrapping_add);
    if consumption.touch_last { total.wrapping_add(word(read_bytes.saturating_sub(8))) } else { total }
}

/// Adds the checksum of every read to the sum of its operation.
fn add_reads(
    sums: &mut [u64],
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
            let total = &mut sums[read / reads_per_op(reads)];
            *total = total.wrapping_add(consumption.of(bytes));
        }),
    }
}

/// The largest power of two, up to a page, that divides offset and length of every read, if only sums count.
fn granule_bytes(reads: &Reads, page_bytes: u64) -> Option<u64> {
    let common = 1u64 << (reads.read_bytes.0 | reads.align_bytes.0).trailing_zeros();
    let granule_bytes = common.min(page_bytes);
    (reads.consume == Consume::Sum && granule_bytes >= GRANULE_MIN_BYTES).then_some(granule_bytes)
}

fn add_by_granules(
    sums: &mut [u64],
    table: &OffsetTable,
    span_bytes: u64,
    granule_bytes: u64,
    source: &mut dyn ByteSource,
) -> Result<(), ReferenceError> {
    let mut window = buffer(WINDOW_BYTES)?;
    let reads_end = span_bytes / granule_bytes;
    let read_granules = table.shape().read_bytes.0 / granule_bytes;
    // `totals[k]` is the sum of the first k granules of the stretch.
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
        let operations = table.offsets().chunks_exact(reads_per_op(table.shape()));
        for (total, operation) in sums.iter_mut().zip(operations) {
            for offset in operation {
                let first = offset / granule_bytes;
                let (from, to) = (first.max(start), (first + read_granules).min(end));
                if from < to {
                    let here = totals[(to - start) as usize].wrapping_sub(totals[(from - start) as usize]);
                    *total = total.wrapping_add(here);
                }
            }
        }
        start = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
