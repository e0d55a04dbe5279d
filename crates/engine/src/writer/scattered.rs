//! Records in no order, each by a store or a call of its own.

use pagewise_model::{Access, Method, RecordRing};
use pagewise_protocol::{CallFailure, Job};

use super::call::Pwrite;
use super::mmap::MappedFile;
use super::progress::WriteProgress;
use super::record_source::RecordSource;
use super::setup::impossible;
use super::{Sink, WriteTarget, Writer, anonymous};
use crate::operations::Latencies;

/// Each record is put at its own position.
struct Scattered<S> {
    sink: S,
    source: RecordSource,
    progress: WriteProgress,
    /// Place in the source and offset in the file of each record, in the order of writing.
    order: Vec<(usize, u64)>,
    done: usize,
}

pub(super) fn open(
    method: &Method,
    job: &Job,
    target: &WriteTarget,
    source: RecordSource,
) -> Result<Box<dyn Writer>, CallFailure> {
    let ring = RecordRing::new(job.file_bytes, job.record_bytes, 1).scattered();
    match method.access() {
        Access::Mmap => Ok(writer(MappedFile::open(target)?, target, source, ring)),
        Access::Pwrite => Ok(writer(Pwrite::open(target)?, target, source, ring)),
        Access::Anonymous => Ok(writer(anonymous::Ceiling::new(target)?, target, source, ring)),
        _ => Err(impossible(&job.path, format!("'{method}' does not write at random"))),
    }
}

fn writer(
    sink: impl Sink + 'static,
    target: &WriteTarget,
    source: RecordSource,
    ring: RecordRing,
) -> Box<dyn Writer> {
    let size = source.record_bytes() as u64;
    let of = |record: u64| (ring.source_range(record).start, record * size);
    let order = (0..ring.records()).map(|index| of(ring.nth(index))).collect();
    Box::new(Scattered { sink, source, progress: target.progress(), order, done: 0 })
}

impl<S: Sink> Writer for Scattered<S> {
    /// Timed region: `for each record: put(source + place, offset)`, by pwrite or memcpy.
    fn append(&mut self, count: u64) -> Result<(), CallFailure> {
        let next = self.done + count as usize;
        for (place, offset) in &self.order[self.done..next] {
            let record = self.source.at(*place);
            self.sink.put(record, *offset)?;
            self.progress.reach(record.len() as u64);
        }
        self.done = next;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CallFailure> {
        Ok(())
    }

    fn written(&self) -> u64 {
        self.progress.written()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.sink.sync_all()
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        None
    }
}
