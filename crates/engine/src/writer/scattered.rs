//! Records in no order, each by a store or a call of its own, and others that are read before them.

use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_model::{Access, Consume, Method, RecordRing};
use pagewise_protocol::{CallFailure, Job};

use super::call::RecordCalls;
use super::mmap::MappedFile;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::setup::impossible;
use super::{Sink, WriteTarget, Writer, anonymous, put_synced, sync_now, sync_rest};
use crate::operations::Latencies;

/// The accesses of a job in their order: for each record that is written, the records that are read
/// before it, and then itself.
#[derive(Clone, Debug)]
pub struct AccessOrder {
    records: Vec<u32>,
    reads_each: usize,
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
    /// One record after the other.
    pub const NONE: Self = Self { records: Vec::new(), reads_each: 0 };

    /// The order of the records of a job, which the supervisor's order follows.
    pub(super) fn of(job: &Job, updates: u64, reads_each: u32) -> Result<Self, CallFailure> {
        let ring = RecordRing::new(job.file_bytes, job.record_bytes.max(1), 1);
        let ring = ring.scattered(updates).reading(reads_each);
        let too_many = |_| impossible(&job.path, format!("{} records in no order", ring.records()));
        let mut records = Vec::with_capacity((ring.order_bytes() / 4) as usize);
        for index in 0..ring.records() {
            for nth in 0..reads_each {
                records.push(u32::try_from(ring.read(index, nth)).map_err(too_many)?);
            }
            records.push(u32::try_from(ring.nth(index)).map_err(too_many)?);
        }
        Ok(Self { records, reads_each: reads_each as usize })
    }

    /// True if one record follows the other.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Number of records that are read before each that is written.
    pub(super) fn reads_each(&self) -> usize {
        self.reads_each
    }

    /// The record of the `nth` read before record `index` of those that are written; after these
    /// reads, the one that is written.
    #[inline(always)]
    pub(super) fn access(&self, index: usize, nth: usize) -> Result<u64, CallFailure> {
        let record = self.records.get(index * (self.reads_each + 1) + nth);
        let none = || impossible("", format!("{} records in no order", index + 1));
        record.map(|record| u64::from(*record)).ok_or_else(none)
    }
}

impl ReadSum {
    pub(super) fn new(target: &WriteTarget) -> Self {
        let consumption = Consumption::new(Consume::Touch, target.page_bytes, target.record_bytes as u64);
        Self { consumption, reads: 0, sum: 0 }
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
                let bytes = self.sink.bytes_at(self.order.access(index, nth)? * size as u64, size)?;
                self.reads.add(number, bytes);
            }
            let offset = self.order.access(index, reads_each)? * size as u64;
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
