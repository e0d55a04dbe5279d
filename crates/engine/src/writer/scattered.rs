//! Records in no order, each by a store or a call of its own.

use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_model::{Access, Method, RecordRing};
use pagewise_protocol::{CallFailure, Job};

use super::call::{AlignedPwrite, Pwrite};
use super::mmap::MappedFile;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::setup::impossible;
use super::{Sink, WriteTarget, Writer, anonymous, put_synced, sync_now, sync_rest};
use crate::operations::Latencies;

/// Each record is put at its own position.
struct Scattered<S> {
    sink: S,
    source: RecordSource,
    progress: WriteProgress,
    /// The records in the order of writing.
    order: Vec<u32>,
    done: usize,
}

/// The order of the records of a job, which the supervisor's order follows.
pub(super) fn order(job: &Job, updates: u64) -> Result<Vec<u32>, CallFailure> {
    let ring = RecordRing::new(job.file_bytes, job.record_bytes.max(1), 1).scattered(updates);
    let order = (0..ring.records()).map(|index| u32::try_from(ring.nth(index))).collect::<Result<_, _>>();
    order.map_err(|_| impossible(&job.path, format!("{} records in no order", ring.records())))
}

pub(super) fn open(
    method: &Method,
    job: &Job,
    target: &WriteTarget,
    source: RecordSource,
    order: Vec<u32>,
) -> Result<Box<dyn Writer>, CallFailure> {
    match method.access() {
        Access::Mmap => Ok(writer(MappedFile::open(target)?, target, source, order)),
        Access::Pwrite if target.effects.direct => {
            Ok(writer(AlignedPwrite::open(target)?, target, source, order))
        }
        Access::Pwrite => Ok(writer(Pwrite::open(target)?, target, source, order)),
        Access::Anonymous => Ok(writer(anonymous::Ceiling::new(target)?, target, source, order)),
        _ => Err(impossible(&job.path, format!("'{method}' does not write at random"))),
    }
}

fn writer(
    sink: impl Sink + 'static,
    target: &WriteTarget,
    source: RecordSource,
    order: Vec<u32>,
) -> Box<dyn Writer> {
    Box::new(Scattered { sink, source, progress: target.progress(), order, done: 0 })
}

impl<S: Sink> Writer for Scattered<S> {
    /// Timed region:
    /// `for each record: offset = record * size; put(source + offset mod period, offset)`, by
    /// pwrite or memcpy, and a sync whenever one is due.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let next = self.done + count as usize;
        let size = self.source.record_bytes() as u64;
        let records = self.order.get(self.done..next);
        for record in records.ok_or_else(|| impossible("", format!("{next} records in no order")))? {
            let offset = u64::from(*record) * size;
            let bytes = self.source.at((offset % SOURCE_PERIOD) as usize);
            put_synced(&mut self.sink, &mut self.progress, bytes, offset)?;
            if self.progress.reach(size) {
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

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.sink.sync_all()
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.progress.take_durations()
    }
}
