//! The reads of a trace, as one operation: all of them, in their order.

use pagewise_model::trace::range_of;
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::{AnonymousMemory, FileMapping};

use super::{Due, Reader};
use crate::failure::failed;
use crate::operations::{Done, Operations};

/// A reader, a table of recorded reads, and the memory that the recorded program held besides.
pub struct RecordedReads {
    reader: Box<dyn Reader>,
    table: FileMapping,
    passes: u64,
    /// Held, not used.
    _ballast: Option<AnonymousMemory>,
}

impl RecordedReads {
    /// The reads of `table` by this reader.
    pub fn of(
        reader: Box<dyn Reader>,
        table: FileMapping,
        job: &Job,
    ) -> Result<Box<dyn Operations>, CallFailure> {
        let ballast = (job.ballast_bytes > 0).then(|| ballast(job)).transpose()?;
        Ok(Box::new(Self { reader, table, passes: 0, _ballast: ballast }))
    }
}

/// Memory that is in place, so that it counts against a limit.
fn ballast(job: &Job) -> Result<AnonymousMemory, CallFailure> {
    let mut memory = AnonymousMemory::new(job.ballast_bytes as usize)
        .map_err(|error| failed("mmap of the ballast", error, &job.path, 0))?;
    memory.bytes_mut().iter_mut().step_by(job.page_bytes.max(1) as usize).for_each(|byte| *byte = 1);
    Ok(memory)
}

impl Operations for RecordedReads {
    /// Timed region: that of the reader, over all entries.
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        let operations = wanted.min(end.saturating_sub(position));
        let mut checksum = 0u64;
        for _ in 0..operations {
            let due = Due { entries: self.table.words(), place: 0 };
            checksum = checksum.wrapping_add(self.reader.read(due)?);
        }
        self.passes += operations;
        Ok(Done { operations, checksum })
    }

    fn warm_page_tables(&mut self) {
        self.reader.warm_page_tables();
    }

    fn bytes(&self) -> u64 {
        let of_pass: u64 = self.table.words().iter().map(|entry| range_of(*entry).1 as u64).sum();
        self.passes * of_pass
    }
}
