//! Reads by the offset table, as the operations of a thread.

use pagewise_protocol::{CallFailure, Go, Job};

use super::{ReadRange, Reader, TablePart};
use crate::operations::{Done, Latencies, Operations};

/// A reader and its thread's part of the table.
pub(crate) struct TableReads<R> {
    reader: R,
    part: TablePart,
    reads_per_op: u64,
    read_bytes: u64,
    operations: u64,
}

impl<R: Reader> TableReads<R> {
    pub(crate) fn new(reader: R, part: TablePart, job: &Job) -> Self {
        let (reads_per_op, read_bytes) = (u64::from(job.reads_per_op), job.read_bytes);
        Self { reader, part, reads_per_op, read_bytes, operations: 0 }
    }

    /// Let the reader do up to `wanted` operations from `position` on, which counts over all
    /// passes, but never across the end of the part; none is done from operation `end` on.
    #[inline(always)]
    fn batch(
        &mut self,
        (position, wanted, end): (u64, u64, u64),
        read: impl FnMut(&mut R, ReadRange<'_>) -> Result<u64, CallFailure>,
    ) -> Result<Done, CallFailure> {
        let of_part = self.part.reads();
        let first = position * self.reads_per_op;
        let count = wanted.saturating_mul(self.reads_per_op).min(of_part - first % of_part);
        let end = end.saturating_mul(self.reads_per_op);
        let checksum = self.part.walk(&mut self.reader, (first, count), end, read)?;
        let operations = count / self.reads_per_op;
        self.operations += operations;
        Ok(Done { operations, checksum })
    }
}

impl<R: Reader> Operations for TableReads<R> {
    fn begin(&mut self, go: &Go) {
        self.part.begin(go.first_operation * self.reads_per_op, go);
    }

    #[inline(always)]
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        self.batch(
            (position, wanted, end),
            #[inline(always)]
            |reader, reads| reader.read(reads),
        )
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.reader.finish()
    }

    fn perform_timed(
        &mut self,
        position: u64,
        wanted: u64,
        end: u64,
        latencies: &mut Latencies,
    ) -> Result<Done, CallFailure> {
        let reads_per_op = self.reads_per_op as usize;
        let done = self.batch((position, wanted, end), |reader, reads| {
            reader.read_timed(reads, reads_per_op, latencies)
        })?;
        let checksum = done.checksum.wrapping_add(self.reader.finish_timed(latencies)?);
        Ok(Done { checksum, ..done })
    }

    fn is_sequential(&self) -> bool {
        self.reader.is_sequential()
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        self.reader.fetch(offset, into)
    }

    fn bytes(&self) -> u64 {
        self.operations * self.reads_per_op * self.read_bytes
    }
}
