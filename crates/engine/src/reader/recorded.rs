//! The reads of a trace, as one operation of each thread: all of its reads, in their order, with
//! the gaps of the recorded program between them if those are kept.
//!
//! A gap begins when the bytes of the read before it are consumed; of reads in flight, when they
//! are queued. The thread sleeps through a long one, and waits awake for its end. A wait that ends
//! late shortens the gaps after it by as much, so that all waits together are as long as all gaps.

use std::sync::Arc;

use pagewise_model::trace::range_of;
use pagewise_protocol::{CallFailure, Go, Job};
use pagewise_sys::{AnonymousMemory, FileMapping};

use super::{ReadRange, Reader, TablePart};
use crate::clock::{now_ns, wait_until};
use crate::failure::failed;
use crate::operations::{Done, Operations};

/// A reader, and its thread's part of a table of recorded reads.
pub(super) struct RecordedReads<R> {
    reader: R,
    part: TablePart,
    gaps: Option<RecordedGaps>,
    passes: u64,
    /// Bytes that were read.
    bytes: u64,
}

impl<R: Reader> RecordedReads<R> {
    pub(super) fn new(reader: R, part: TablePart, job: &Job) -> Self {
        let first = job.table_reads as usize;
        let gaps = || RecordedGaps { table: part.table(), first, waited_ns: 0, late_ns: 0 };
        let gaps = (job.gaps == 1).then(gaps);
        Self { reader, part, gaps, passes: 0, bytes: 0 }
    }
}

/// The memory that the recorded program held besides: in place, so that it counts against a limit,
/// and not used.
pub fn ballast(job: &Job) -> Result<AnonymousMemory, CallFailure> {
    let mut memory = AnonymousMemory::new(job.ballast_bytes as usize)
        .map_err(|error| failed("mmap of the ballast", error, &job.path, 0))?;
    memory.bytes_mut().iter_mut().step_by(job.page_bytes.max(1) as usize).for_each(|byte| *byte = 1);
    Ok(memory)
}

impl<R: Reader> Operations for RecordedReads<R> {
    fn begin(&mut self, go: &Go) {
        self.part.begin(self.passes * self.part.reads(), go);
    }

    /// Timed region: that of the reader, over all entries of the part, with the gaps that are kept.
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        let operations = wanted.min(end.saturating_sub(position));
        let Self { reader, part, gaps, bytes, .. } = self;
        let due = (self.passes * part.reads(), operations * part.reads());
        let checksum = part.walk(
            reader,
            due,
            u64::MAX,
            #[inline(always)]
            |reader, reads| {
                *bytes += reads.due().unmasked().map(|entry| range_of(entry).1 as u64).sum::<u64>();
                match gaps {
                    None => reader.read(reads),
                    Some(gaps) => gaps.read(reader, reads),
                }
            },
        )?;
        let checksum = checksum.wrapping_add(self.reader.finish()?);
        self.passes += operations;
        Ok(Done { operations, checksum })
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn take_gap_wait_ns(&mut self) -> u64 {
        self.gaps.as_mut().map_or(0, |gaps| std::mem::take(&mut gaps.waited_ns))
    }
}

/// The gaps of a recorded program: words behind the entries of the table, in ns.
struct RecordedGaps {
    table: Arc<FileMapping>,
    /// Index of the word of the first entry.
    first: usize,
    /// Time waited so far.
    waited_ns: u64,
    /// Time by which it exceeds the gaps so far.
    late_ns: u64,
}

impl RecordedGaps {
    /// Timed region: `for each entry: wait for the gap before it, less what is late; read it`.
    #[inline(never)]
    fn read(&mut self, reader: &mut impl Reader, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        let mut total = 0u64;
        for read in reads.operations(1) {
            let gap_ns = self.table.words()[self.first + read.due().place as usize];
            if gap_ns > 0 {
                reader.start_queued()?;
                let begun_ns = now_ns();
                let ends_ns = begun_ns.saturating_add(gap_ns.saturating_sub(self.late_ns));
                let waited_ns = wait_until(ends_ns) - begun_ns;
                self.waited_ns += waited_ns;
                self.late_ns = (self.late_ns + waited_ns).saturating_sub(gap_ns);
            }
            total = total.wrapping_add(reader.read(read)?);
        }
        Ok(total)
    }
}
