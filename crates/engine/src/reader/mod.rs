//! The ways to move bytes, one file each.
//!
//! A reader does a batch of reads in one call, so that the choice of method costs one indirect call a batch
//! of about 50 us and nothing a read. The loops themselves are functions of slices and integers, compiled
//! for each way of consuming.

mod anonymous;
mod dependent;
mod mmap;
mod pread;
mod reads;
mod table;
mod uring;
mod widening;

use std::sync::Arc;

use pagewise_model::checksum::Consumption;
use pagewise_model::protocol::{CallFailure, Job};
use pagewise_model::{Access, Bytes, Consume, Method};

use crate::clock::now_ns;
use crate::failure::refusal;
use crate::file::DataFile;
use crate::operations::{Latencies, TIMED_BATCH_OPERATIONS};
pub use reads::{Due, ReadRange};
pub use table::{TablePart, TableReads};

/// A way to read, bound to a file and one thread's buffer.
pub trait Reader: Send {
    /// Does the reads that are due, which are whole operations, and consumes their bytes. Returns the weighted sum of the
    /// checksums of the reads that were done in this call: reads may stay in flight.
    fn read(&mut self, due: Due<'_>) -> Result<u64, CallFailure>;

    /// As [`Reader::read`] of the reads that are due, for a reader that makes use of what comes behind them.
    fn read_ahead(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure> {
        self.read(reads.due())
    }

    /// Waits for reads in flight and returns the weighted sum of their checksums.
    fn finish(&mut self) -> Result<u64, CallFailure> {
        Ok(0)
    }

    /// As [`Reader::read_ahead`] and [`Reader::finish`], with the time of each operation of `reads_per_op` reads
    /// recorded: from asking for its first byte to having consumed its last.
    fn read_timed(
        &mut self,
        reads: ReadRange<'_>,
        reads_per_op: usize,
        latencies: &mut Latencies,
    ) -> Result<u64, CallFailure> {
        let mut total = 0u64;
        let mut before = now_ns();
        for operation in reads.operations(reads_per_op) {
            total = total.wrapping_add(self.read_ahead(operation)?);
            let after = now_ns();
            latencies.saturating_record(after - before);
            before = after;
        }
        Ok(total)
    }

    /// Whether the time of a [`Reader::read`] of one operation is that operation's latency. Not so where reads
    /// of several operations are in flight.
    fn is_sequential(&self) -> bool {
        true
    }

    /// Fills the page tables of the span, and returns only when they are full.
    fn warm_page_tables(&mut self) {}

    /// Does one read by the same way and copies its bytes to `into`.
    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure>;
}

/// What all readers of a job need to know.
#[derive(Clone)]
pub struct ReadTarget {
    file: DataFile,
    read_bytes: usize,
    reads_per_op: usize,
    consumption: Consumption,
}

/// Makes the readers of a job's threads: this is set-up, and what it does is timed as such.
///
/// With `per_thread` each has its own descriptor and mapping, else they share one.
pub fn open(
    method: &Method,
    job: &Job,
    consume: Consume,
    per_thread: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let target = ReadTarget {
        file: DataFile::new(job, method),
        read_bytes: job.read_bytes as usize,
        reads_per_op: job.reads_per_op as usize,
        consumption: Consumption {
            consume,
            page_bytes: job.page_bytes as usize,
            touch_last: job.touch_last == 1,
        },
    };
    let dependent = job.dependent == 1;
    if let Some(reason) = method.refuses_dependent(Bytes(job.read_bytes)).filter(|_| dependent) {
        return Err(dependent::refusal(method, reason, &target));
    }
    let threads = job.threads as usize;
    match method.access() {
        Access::Mmap => mmap::open(&target, threads, per_thread, dependent),
        Access::Pread => pread::open(&target, threads, per_thread, dependent),
        Access::Uring => uring::open(&target, threads, per_thread, dependent),
        Access::Anonymous => anonymous::open(&target, threads, dependent),
        Access::Read | Access::Pwrite | Access::Write | Access::Unknown => Err(refusal(
            "open",
            &target.file.path,
            format!("{method} is no way to read at the offsets of a table"),
        )),
    }
}

/// Makes `threads` things, sharing one or making each anew.
fn share<T>(
    threads: usize,
    per_thread: bool,
    mut make: impl FnMut() -> Result<T, CallFailure>,
) -> Result<Vec<Arc<T>>, CallFailure> {
    if per_thread {
        return (0..threads).map(|_| make().map(Arc::new)).collect();
    }
    let one = Arc::new(make()?);
    Ok(vec![one; threads])
}

#[cfg(test)]
pub(crate) mod tests;
