//! Reads by the offset table, as the operations of a thread.

use std::ops::Range;
use std::sync::Arc;

use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::FileMapping;

use super::{ReadRange, Reader};
use crate::operations::{Done, Latencies, Operations};

/// A thread's part of the offset table.
#[derive(Clone, Copy)]
pub struct TablePart<'a> {
    /// Its entries, whole operations.
    pub entries: &'a [u64],
    /// Index of its start in the whole table.
    pub place: u64,
    /// Reads in one operation.
    pub reads_per_op: usize,
}

impl<'a> TablePart<'a> {
    fn operations(&self) -> u64 {
        (self.entries.len() / self.reads_per_op) as u64
    }

    /// Up to `wanted` operations from `position` on, which counts over all passes; never across the end. None will be
    /// done from operation `end` on.
    #[inline(always)]
    pub fn batch(&self, position: u64, wanted: u64, end: u64) -> ReadRange<'a> {
        let reads_per_op = self.reads_per_op as u64;
        let wanted = wanted.min(self.operations());
        let end = end.saturating_mul(reads_per_op);
        ReadRange::new(
            self.entries,
            position * reads_per_op,
            (wanted * reads_per_op) as usize,
            end,
            self.place,
        )
    }
}

/// A reader and its thread's part of the table.
pub struct TableReads {
    reader: Box<dyn Reader>,
    table: Arc<FileMapping>,
    part: Range<usize>,
    reads_per_op: usize,
    read_bytes: u64,
    operations: u64,
}

impl TableReads {
    /// Divide the table among the readers of a job, one for each thread.
    pub fn divide(readers: Vec<Box<dyn Reader>>, table: FileMapping, job: &Job) -> Vec<Box<dyn Operations>> {
        let reads_per_op = job.reads_per_op as usize;
        let reads = table.words().len() / reads_per_op / readers.len() * reads_per_op;
        let table = Arc::new(table);
        let of_thread = |(thread, reader): (usize, Box<dyn Reader>)| {
            let part = thread * reads..(thread + 1) * reads;
            let (table, read_bytes) = (table.clone(), job.read_bytes);
            Box::new(Self { reader, table, part, reads_per_op, read_bytes, operations: 0 })
                as Box<dyn Operations>
        };
        readers.into_iter().enumerate().map(of_thread).collect()
    }

    /// Let the reader do a batch of the part, and count it.
    #[inline(always)]
    fn batch(
        &mut self,
        (position, wanted, end): (u64, u64, u64),
        read: impl FnOnce(&mut dyn Reader, ReadRange<'_>, usize) -> Result<u64, CallFailure>,
    ) -> Result<Done, CallFailure> {
        let (entries, place) = (&self.table.words()[self.part.clone()], self.part.start as u64);
        let part = TablePart { entries, place, reads_per_op: self.reads_per_op };
        let reads = part.batch(position, wanted, end);
        let operations = (reads.due().entries.len() / self.reads_per_op) as u64;
        let checksum = read(self.reader.as_mut(), reads, self.reads_per_op)?;
        self.operations += operations;
        Ok(Done { operations, checksum })
    }
}

impl Operations for TableReads {
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        self.batch((position, wanted, end), |reader, reads, _| reader.read_ahead(reads))
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
        self.batch((position, wanted, end), |reader, reads, reads_per_op| {
            reader.read_timed(reads, reads_per_op, latencies)
        })
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
        self.operations * self.reads_per_op as u64 * self.read_bytes
    }
}
