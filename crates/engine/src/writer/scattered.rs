//! Records in no order, each by a store or a call of its own, and others that are read before them.

use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_model::{Access, Consume, Method, RecordRing};
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::AnonymousMemory;

use super::call::{AlignedPwrite, Pwrite};
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
    /// The `len` bytes at `offset` of the file.
    fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8], CallFailure>;
}

/// pwrite(2) of records, and pread(2) of others.
struct CallsBothWays {
    to: Pwrite,
    block: AnonymousMemory,
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

    /// The records that are read before record `index` of those that are written, and that one.
    #[inline(always)]
    pub(super) fn accesses(&self, index: usize) -> Result<(&[u32], u32), CallFailure> {
        let start = index * (self.reads_each + 1);
        let accesses = self.records.get(start..start + self.reads_each + 1);
        let (written, read) = accesses
            .and_then(<[u32]>::split_last_chunk::<1>)
            .map(|(read, [written])| (*written, read))
            .ok_or_else(|| impossible("", format!("{} records in no order", index + 1)))?;
        Ok((read, written))
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
        Access::Pwrite if target.effects.direct => {
            Ok(writer(AlignedPwrite::open(target)?, target, source, order))
        }
        Access::Pwrite => Ok(writer(CallsBothWays::open(target)?, target, source, order)),
        Access::Anonymous => {
            let mut memory = anonymous::Ceiling::new(target)?;
            if target.reads_each > 0 {
                memory.fill_as_before(&source);
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
            let (read, written) = self.order.accesses(index)?;
            for record in read {
                let number = self.reads.next();
                let bytes = self.sink.bytes_at(u64::from(*record) * size as u64, size)?;
                self.reads.add(number, bytes);
            }
            let offset = u64::from(written) * size as u64;
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

impl CallsBothWays {
    fn open(target: &WriteTarget) -> Result<Self, CallFailure> {
        let len = if target.reads_each > 0 { target.record_bytes } else { 1 };
        Ok(Self { to: Pwrite::open(target)?, block: target.memory(len)? })
    }
}

impl Sink for CallsBothWays {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        self.to.put_at(bytes, offset)
    }

    fn sync_ranges(&mut self, ranges: [std::ops::Range<u64>; 2]) -> Result<(), CallFailure> {
        self.to.sync_parts(ranges)
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        self.to.sync_all()
    }
}

impl Readable for CallsBothWays {
    #[inline(always)]
    fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8], CallFailure> {
        self.to.read_at(&mut self.block.bytes_mut()[..len], offset)?;
        Ok(&self.block.bytes()[..len])
    }
}

impl Readable for AlignedPwrite {
    #[inline(always)]
    fn bytes_at(&mut self, offset: u64, _: usize) -> Result<&[u8], CallFailure> {
        self.read_block_at(offset)
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
