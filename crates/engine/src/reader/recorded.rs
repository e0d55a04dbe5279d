//! The reads of a trace, as one operation of each thread: all of its reads, in their order.

use std::ops::Range;
use std::sync::Arc;

use pagewise_model::trace::range_of;
use pagewise_protocol::{CallFailure, Go, Job};
use pagewise_sys::{AnonymousMemory, FileMapping};

use super::{Reader, TablePart};
use crate::failure::{failed, refusal};
use crate::operations::{Done, Operations};

/// A reader, and its thread's part of a table of recorded reads.
pub struct RecordedReads {
    reader: Box<dyn Reader>,
    part: TablePart,
    passes: u64,
    /// Bytes that were read.
    bytes: u64,
}

impl RecordedReads {
    /// The parts of `table`, one for each reader, as the job divides it.
    pub fn divide(
        readers: Vec<Box<dyn Reader>>,
        table: FileMapping,
        job: &Job,
    ) -> Result<Vec<Box<dyn Operations>>, CallFailure> {
        let parts = parts(job).filter(|parts| parts.len() == readers.len()).ok_or_else(|| {
            let detail = format!(
                "thread_reads {:?} does not divide the {} reads of the table among {} threads",
                job.thread_reads, job.table_reads, job.threads
            );
            refusal("open", &job.path, detail)
        })?;
        let table = Arc::new(table);
        let of_thread = |(reader, range): (Box<dyn Reader>, Range<usize>)| {
            let part = TablePart::new(table.clone(), range, job.piece_reads);
            Box::new(Self { reader, part, passes: 0, bytes: 0 }) as Box<dyn Operations>
        };
        Ok(readers.into_iter().zip(parts).map(of_thread).collect())
    }
}

/// The part of each thread; `None` if they are not the whole table.
fn parts(job: &Job) -> Option<Vec<Range<usize>>> {
    let mut end = 0u64;
    let mut parts = Vec::with_capacity(job.thread_reads.len());
    for reads in &job.thread_reads {
        let begin = end;
        end = end.checked_add(*reads).filter(|end| *end <= job.table_reads)?;
        parts.push(begin as usize..end as usize);
    }
    (end == job.table_reads).then_some(parts)
}

/// The memory that the recorded program held besides: in place, so that it counts against a limit,
/// and not used.
pub fn ballast(job: &Job) -> Result<AnonymousMemory, CallFailure> {
    let mut memory = AnonymousMemory::new(job.ballast_bytes as usize)
        .map_err(|error| failed("mmap of the ballast", error, &job.path, 0))?;
    memory.bytes_mut().iter_mut().step_by(job.page_bytes.max(1) as usize).for_each(|byte| *byte = 1);
    Ok(memory)
}

impl Operations for RecordedReads {
    fn begin(&mut self, go: &Go) {
        self.part.begin(self.passes * self.part.reads(), go);
    }

    /// Timed region: that of the reader, over all entries of the part.
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        let operations = wanted.min(end.saturating_sub(position));
        let Self { reader, part, bytes, .. } = self;
        let due = (self.passes * part.reads(), operations * part.reads());
        let checksum = part.walk(reader.as_mut(), due, u64::MAX, |reader, reads| {
            *bytes += reads.due().unmasked().map(|entry| range_of(entry).1 as u64).sum::<u64>();
            reader.read(reads)
        })?;
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
}
