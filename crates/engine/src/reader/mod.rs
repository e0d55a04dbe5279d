//! Readers, one file for each access.
//!
//! A reader does a batch of reads. What walks the table, or the file, is generic over the reader,
//! and a phase of a sample over both: the choice of method costs one call per batch of about 50 us
//! and nothing per read. A scan is reading in another order. The loops are functions of their own,
//! compiled for each order and each kind of consumption.

mod memory;
mod order;
mod part;
mod passes;
mod pread;
mod reads;
mod recorded;
mod table;
mod uring;
mod widening;

use std::cell::Cell;
use std::sync::Arc;

use pagewise_model::checksum::Consumption;
use pagewise_model::{Access, Consume, Method};
use pagewise_protocol::{CallFailure, Job};

use crate::clock::now_ns;
use crate::failure::refusal;
use crate::file::DataFile;
use crate::operations::{Latencies, TIMED_BATCH_OPERATIONS};
use crate::sampling::ThreadWork;
use order::{Chain, FrontToBack, Independent, Order, Recorded};
use part::OrderKind;
pub use part::TablePart;
use passes::Passes;
pub(crate) use reads::{Due, Piece, ReadRange};
pub use recorded::ballast;
use recorded::{ReadAheadFiles, RecordedReads};
pub(crate) use table::TableReads;
use widening::{Widened, widen, widen_within};

/// A reader, bound to a file and one thread's buffer.
pub(crate) trait Reader: Send + 'static {
    /// True if the bytes are in memory of the process: advice for them is not of a descriptor.
    const IN_MEMORY: bool = false;

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
        one_by_one(self, reads.operations(reads_per_op), latencies)
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

/// Do one operation after the other, with the time of each recorded.
fn one_by_one<'a, R: Reader + ?Sized>(
    reader: &mut R,
    operations: impl Iterator<Item = ReadRange<'a>>,
    latencies: &mut Latencies,
) -> Result<u64, CallFailure> {
    let mut total = 0u64;
    let mut before = now_ns();
    for operation in operations {
        total = total.wrapping_add(reader.read(operation)?);
        let after = now_ns();
        latencies.saturating_record(after - before);
        before = after;
    }
    Ok(total)
}

/// Common input of all readers of a job.
#[derive(Clone)]
struct ReadTarget {
    file: DataFile,
    /// Length of a read, or of the longest.
    read_bytes: usize,
    reads_per_op: usize,
    /// Alignment of reads in the file; 1 without O_DIRECT, so that nothing is widened.
    alignment: usize,
    /// The word that `touch` takes comes with the reads ([`Due::consumption`]).
    consumption: Consumption,
    threads: usize,
    /// True if each thread has its own descriptor and mapping; otherwise they share one.
    per_thread: bool,
}

impl ReadTarget {
    fn new(file: DataFile, job: &Job, consume: Consume) -> Self {
        let page_bytes = job.page_bytes as usize;
        Self {
            read_bytes: job.read_bytes as usize,
            reads_per_op: job.reads_per_op as usize,
            alignment: if file.effects.direct { file.direct_alignment } else { 1 },
            consumption: Consumption { consume, page_bytes, touch_at: 0, touch_last: job.touch_last == 1 },
            threads: 1,
            per_thread: false,
            file,
        }
    }

    /// Make a value for each thread, sharing one or making each anew.
    fn share<T>(&self, mut make: impl FnMut() -> Result<T, CallFailure>) -> Result<Vec<Arc<T>>, CallFailure> {
        if self.per_thread {
            return (0..self.threads).map(|_| make().map(Arc::new)).collect();
        }
        let one = Arc::new(make()?);
        Ok(vec![one; self.threads])
    }

    /// The read at this offset of one file.
    #[inline(always)]
    fn widen(&self, offset: u64, len: usize) -> Widened {
        widen(offset, len, self.alignment, self.file.file_bytes)
    }

    /// The file that has this offset of the span, of several, and the read in it. The `last` one is
    /// looked at first.
    #[inline(always)]
    fn find(&self, last: &Cell<usize>, offset: u64, len: usize) -> (usize, Widened) {
        let files = self.file.several.as_ref().expect("there are several files");
        let (index, offset) = files.span.locate(last.get(), offset);
        last.set(index);
        let read = match self.alignment {
            1 => Widened::not(offset, len),
            alignment => widen_within(offset, len, alignment, files.span.sizes()[index]),
        };
        (index, read)
    }
}

/// Open the work of a job's threads, one for each part of the table. This is set-up and timed as
/// such.
///
/// The method must be able to do the job ([`Method::refuses`]). With `per_thread` each has its own
/// descriptor and mapping; otherwise they share one.
pub fn open(
    method: &Method,
    job: &Job,
    consume: Consume,
    per_thread: bool,
    parts: Vec<TablePart>,
) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
    let order = OrderKind::of(job);
    let file = match order {
        OrderKind::Recorded => DataFile::of_job(job, method)?,
        OrderKind::Independent | OrderKind::Dependent => DataFile::new(job, method),
    };
    let threads = parts.len();
    let target = ReadTarget { threads, per_thread, ..ReadTarget::new(file, job, consume) };
    match (order, target.file.effects.prefetch_window) {
        (OrderKind::Independent, Some(ahead)) => {
            Independent::of(&target).work(memory::open_window(&target, ahead)?, parts, (&target, job))
        }
        (OrderKind::Independent, None) => open_in(Independent::of(&target), (method, job), &target, parts),
        (OrderKind::Dependent, _) => open_in(Chain::of(&target), (method, job), &target, parts),
        (OrderKind::Recorded, _) => open_in(Recorded::of(&target), (method, job), &target, parts),
    }
}

/// Open the passes of a job over its file, likewise.
pub fn open_scan(
    method: &Method,
    job: &Job,
    consume: Consume,
) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
    let of_job = ReadTarget::new(DataFile::new(job, method), job, consume);
    // The last word of each piece would make the checksum depend on the ends of pieces.
    let consumption = Consumption { touch_last: false, ..of_job.consumption };
    let target = ReadTarget { read_bytes: passes::piece_bytes(method, job), consumption, ..of_job };
    open_in(FrontToBack::of(&target), (method, job), &target, Vec::new())
}

fn open_in<O: Order>(
    order: O,
    (method, job): (&Method, &Job),
    target: &ReadTarget,
    parts: Vec<TablePart>,
) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
    match method.access() {
        Access::Mmap => order.work(memory::mapped(target, order)?, parts, (target, job)),
        Access::Anonymous => order.work(memory::loaded(target, order)?, parts, (target, job)),
        Access::Uring => order.work(uring::open(target, order)?, parts, (target, job)),
        access if access == Access::Pread || (access == Access::Read && O::IS_FRONT_TO_BACK) => {
            order.work(pread::open(access, target, order)?, parts, (target, job))
        }
        _ => {
            let detail = format!("{method} is not a method to {}", O::TASK);
            Err(refusal("open", &target.file.path, detail))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
