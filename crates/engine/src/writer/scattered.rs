//! Records in no order, each by a store or a call of its own, and others that are read before them.

use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_model::{Access, Method, RecordRing, Writes};
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::FileMapping;

use super::call::RecordCalls;
use super::mmap::MappedFile;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::setup::impossible;
use super::{Sink, WriteTarget, Writer, anonymous, put_synced, sync_now, sync_rest};
use crate::operations::Latencies;

/// The accesses of a job in their order: for each record that is written, the records that are read
/// before it, and then itself. The table is empty until the clock starts.
pub(super) struct AccessOrder {
    table: Option<FileMapping>,
    reads_each: usize,
    /// The last offset at which a record fits into the file.
    last: u64,
}

/// Sum of the checksums of the records that are read, each times the weight of its number.
pub(super) struct ReadSum {
    consumption: Consumption,
    reads: u64,
    sum: u64,
}

/// Destination of bytes that can be read back.
trait Readable: Sink {
    /// The `len` bytes of a record at `offset` of the file.
    fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8], CallFailure>;
}

/// Each record is put at its own position.
struct Scattered<S> {
    sink: S,
    source: RecordSource,
    progress: WriteProgress,
    order: AccessOrder,
    reads: ReadSum,
    done: usize,
}

impl AccessOrder {
    /// The order of a job; without a table one record follows the other.
    pub(super) fn new(table: Option<FileMapping>, job: &Job, writes: Writes) -> Self {
        let last = job.file_bytes.saturating_sub(job.record_bytes);
        Self { table, reads_each: writes.reads_each as usize, last }
    }

    /// True if one record follows the other.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_none()
    }

    /// Number of records that are read before each that is written.
    pub(super) fn reads_each(&self) -> usize {
        self.reads_each
    }

    /// Offset of the `nth` read before record `index` of those that are written; after these reads,
    /// of the record that is written.
    #[inline(always)]
    pub(super) fn access(&self, index: usize, nth: usize) -> Result<u64, CallFailure> {
        let entries = self.table.as_ref().map_or(&[][..], FileMapping::words);
        let offset = entries.get(index * (self.reads_each + 1) + nth).copied().map(u64::from_le);
        let none = || impossible("", format!("the table has no offset of record {index} in the file"));
        offset.filter(|offset| *offset <= self.last).ok_or_else(none)
    }
}

impl ReadSum {
    pub(super) fn new(target: &WriteTarget) -> Self {
        Self { consumption: target.consumption, reads: 0, sum: 0 }
    }

    /// A sample begins, which touches this word of a page.
    pub(super) fn touch(&mut self, touch_at: u64) {
        self.consumption = self.consumption.touching(touch_at);
    }

    /// The number of the next read.
    pub(super) fn next(&mut self) -> u64 {
        self.reads += 1;
        self.reads - 1
    }

    /// Add the bytes of read `number`.
    #[inline(always)]
    pub(super) fn add(&mut self, number: u64, bytes: &[u8]) {
        let of_read = self.consumption.of(bytes).wrapping_mul(weight(number));
        self.sum = self.sum.wrapping_add(of_read);
    }

    /// The sum since the last call of this.
    pub(super) fn take(&mut self) -> u64 {
        std::mem::take(&mut self.sum)
    }
}

pub(super) fn open(
    method: &Method,
    job: &Job,
    target: &WriteTarget,
    source: RecordSource,
    order: AccessOrder,
) -> Result<Box<dyn Writer>, CallFailure> {
    match method.access() {
        Access::Mmap => Ok(writer(MappedFile::open(target)?, target, source, order)),
        Access::Pwrite => Ok(writer(RecordCalls::open(target)?, target, source, order)),
        Access::Anonymous => {
            let mut memory = anonymous::Ceiling::new(target)?;
            if target.reads_each > 0 {
                memory.fill_as_before(&source, &RecordRing::new(target.ring_bytes, job.record_bytes, 1));
            }
            Ok(writer(memory, target, source, order))
        }
        _ => Err(impossible(&job.path, format!("'{method}' does not write at random"))),
    }
}

fn writer(
    sink: impl Readable + 'static,
    target: &WriteTarget,
    source: RecordSource,
    order: AccessOrder,
) -> Box<dyn Writer> {
    let (progress, reads) = (target.progress(), ReadSum::new(target));
    Box::new(Scattered { sink, source, progress, order, reads, done: 0 })
}

impl<S: Readable> Writer for Scattered<S> {
    fn begin(&mut self, touch_at: u64) {
        self.reads.touch(touch_at);
    }

    /// Timed region:
    /// `for each record: (for each that is read: consume(bytes_at(offset))); put(source + offset mod period, offset)`,
    /// by pread and pwrite or by load and store, and a sync whenever one is due.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let next = self.done + count as usize;
        let size = self.source.record_bytes();
        for index in self.done..next {
            let reads_each = self.order.reads_each();
            for nth in 0..reads_each {
                let number = self.reads.next();
                let bytes = self.sink.bytes_at(self.order.access(index, nth)?, size)?;
                self.reads.add(number, bytes);
            }
            let offset = self.order.access(index, reads_each)?;
            let bytes = self.source.at((offset % SOURCE_PERIOD) as usize);
            put_synced(&mut self.sink, &mut self.progress, bytes, offset)?;
            if self.progress.reach(size as u64) {
                sync_now(&mut self.sink, &mut self.progress)?;
            }
        }
        self.done = next;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        sync_rest(&mut self.sink, &mut self.progress)
    }

    fn written(&self) -> u64 {
        self.progress.written()
    }

    fn take_checksum(&mut self) -> u64 {
        self.reads.take()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.sink.sync_all()
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.progress.take_durations()
    }
}

impl Readable for RecordCalls {
    #[inline(always)]
    fn bytes_at(&mut self, offset: u64, _: usize) -> Result<&[u8], CallFailure> {
        self.read_record(offset)
    }
}

impl Readable for MappedFile {
    #[inline(always)]
    fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8], CallFailure> {
        let start = offset as usize;
        Ok(&self.mapping.bytes()[start..start + len])
    }
}

impl Readable for anonymous::Ceiling {
    #[inline(always)]
    fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8], CallFailure> {
        Ok(self.bytes(offset as usize, len))
    }
}
