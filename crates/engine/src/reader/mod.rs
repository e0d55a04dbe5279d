//! Readers, one file for each access.
//!
//! A reader does a batch of reads in one call, so that the choice of method costs one indirect call
//! per batch of about 50 us and nothing per read. The loops are functions of slices and integers,
//! compiled for each kind of consumption.

mod anonymous;
mod mmap;
mod order;
mod part;
mod pread;
mod reads;
mod recorded;
mod table;
mod uring;
mod widening;

use std::sync::Arc;

use pagewise_model::checksum::Consumption;
use pagewise_model::{Access, Consume, Method};
use pagewise_protocol::{CallFailure, Job};

use crate::clock::now_ns;
use crate::failure::refusal;
use crate::file::DataFile;
use crate::operations::{Latencies, TIMED_BATCH_OPERATIONS};
use order::OrderKind;
pub use part::TablePart;
pub use reads::{Due, Piece, ReadRange};
pub use recorded::{RecordedReads, ballast};
pub use table::TableReads;

/// A reader, bound to a file and one thread's buffer.
pub trait Reader: Send {
    /// Do the reads that are due, which are whole operations, and consume their bytes; the reads
    /// after them may be advised. Return the weighted sum of the checksums of the reads completed
    /// in this call: reads may stay in flight.
    fn read(&mut self, reads: ReadRange<'_>) -> Result<u64, CallFailure>;

    /// Wait for reads in flight and return the weighted sum of their checksums.
    fn finish(&mut self) -> Result<u64, CallFailure> {
        Ok(0)
    }

    /// The next read is not asked for before a while: start those that are queued.
    fn start_queued(&mut self) -> Result<(), CallFailure> {
        Ok(())
    }

    /// A piece of the table begins: wait for the reads of the piece before the last one, and return
    /// their checksum. `None` from a reader whose reads are done when a call returns.
    fn begin_piece(&mut self) -> Result<Option<u64>, CallFailure> {
        Ok(None)
    }

    /// Like [`Reader::read`], with the time of each operation of `reads_per_op` reads
    /// recorded: from requesting its first byte to having consumed its last.
    /// [`Reader::finish_timed`] follows.
    fn read_timed(
        &mut self,
        reads: ReadRange<'_>,
        reads_per_op: usize,
        latencies: &mut Latencies,
    ) -> Result<u64, CallFailure> {
        let mut total = 0u64;
        let mut before = now_ns();
        for operation in reads.operations(reads_per_op) {
            total = total.wrapping_add(self.read(operation)?);
            let after = now_ns();
            latencies.saturating_record(after - before);
            before = after;
        }
        Ok(total)
    }

    /// Like [`Reader::finish`], after [`Reader::read_timed`].
    fn finish_timed(&mut self, _latencies: &mut Latencies) -> Result<u64, CallFailure> {
        Ok(0)
    }

    /// True if the time of a [`Reader::read`] of one operation is that operation's latency; false
    /// if reads of several operations are in flight.
    fn is_sequential(&self) -> bool {
        true
    }

    /// Fill the page tables of the span, and return only when they are full.
    fn warm_page_tables(&mut self) {}

    /// Do one read by the same method and copy its bytes to `into`.
    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure>;
}

/// Common input of all readers of a job.
#[derive(Clone)]
pub struct ReadTarget {
    file: DataFile,
    read_bytes: usize,
    reads_per_op: usize,
    /// The word that `touch` takes comes with the reads ([`Due::consumption`]).
    consumption: Consumption,
    order: OrderKind,
}

/// Open the readers of a job's threads. This is set-up and timed as such.
///
/// The method must be able to do the job ([`Method::refuses`]). With `per_thread` each has its own
/// descriptor and mapping; otherwise they share one.
pub fn open(
    method: &Method,
    job: &Job,
    consume: Consume,
    per_thread: bool,
) -> Result<Vec<Box<dyn Reader>>, CallFailure> {
    let target = ReadTarget {
        order: OrderKind::of(job),
        file: DataFile::of_job(job, method)?,
        read_bytes: job.read_bytes as usize,
        reads_per_op: job.reads_per_op as usize,
        consumption: Consumption {
            consume,
            page_bytes: job.page_bytes as usize,
            touch_at: 0,
            touch_last: job.touch_last == 1,
        },
    };
    let threads = job.threads as usize;
    match method.access() {
        Access::Mmap => mmap::open(&target, threads, per_thread),
        Access::Pread => pread::open(&target, threads, per_thread),
        Access::Uring => uring::open(&target, threads, per_thread),
        Access::Anonymous => anonymous::open(&target, threads),
        Access::Read | Access::Pwrite | Access::Write | Access::Unknown => Err(refusal(
            "open",
            &target.file.path,
            format!("{method} is not a method to read at the offsets of a table"),
        )),
    }
}

/// Make `threads` values, sharing one or making each anew.
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
