//! Warm-up of a worker whose code is compiled at run time: jobs of the same kind, in the same
//! process, on a small file, until its rate no longer rises.
//!
//! The file is in memory, so that the page cache of the measured file and the device are not
//! affected; for reads that bypass the page cache, it is the beginning of the measured file.
//! Warm-up is not part of any result.

use std::time::Instant;

use pagewise_host::{OffsetTable, TableError, TableMemory};
use pagewise_model::{Bytes, CacheState, Cell, Conditions, Content, WorkerWarmup};
use pagewise_protocol::{
    Conversation, ConversationError, Go, Job, PhaseBounds, SampleReply, Wait, inherited_path,
};
use pagewise_sys::SharedMemory;

/// The usual size of the small file.
const FILE_BYTES: u64 = 4 << 20;
/// Minimum number of operations in it.
const OPERATIONS: u64 = 4;
/// Length of its lines, if it is text.
const LINE_BYTES: usize = 64;

/// Length of an interval, whose rate is compared.
const INTERVAL_NS: u64 = 100_000_000;
/// Length of the latency phase: its code must be compiled too.
const LATENCY_NS: u64 = 10_000_000;
/// Number of last intervals, which are compared with those before them.
const RECENT: usize = 5;
/// Maximum ratio of the fastest of them to the fastest before.
const FASTER: f64 = 1.02;
/// Maximum number of intervals; after them, the sample is unsettled.
const INTERVALS: usize = 80;

/// The small file and its offsets, made before the worker, which inherits them.
pub struct WarmupFile {
    memory: Option<SharedMemory>,
    table: Option<TableMemory>,
    table_reads: u64,
    file_bytes: u64,
}

impl WarmupFile {
    /// A file for work as in `cell`.
    pub fn new(cell: &Cell, seed: u64) -> Result<Self, ConversationError> {
        let conditions = &cell.conditions;
        let whole = conditions.file_bytes.0;
        let least = match conditions.workload().is_one_shot() {
            true => FILE_BYTES,
            false => conditions.op_bytes().saturating_mul(OPERATIONS * u64::from(conditions.threads)),
        };
        let file_bytes = whole.min(FILE_BYTES.max(least));
        let memory = match cell.method.is_direct() {
            true => None,
            false => Some(memory(conditions.content, file_bytes)?),
        };
        let mut small = Conditions {
            file_bytes: Bytes(file_bytes),
            span_bytes: Bytes(file_bytes),
            cache: CacheState::AsIs,
            ..conditions.clone()
        };
        let lack = |error: TableError| ConversationError::lack(error.to_string());
        let offsets = match small.work.reads_mut() {
            Some(reads) => {
                // Zeros lead from each entry to itself.
                reads.dependent = false;
                OffsetTable::new(&small, seed).map_err(lack)?.offsets().to_vec()
            }
            None => small.ring().map_or_else(Vec::new, |ring| ring.accesses()),
        };
        let (mut table, table_reads) = (None, offsets.len() as u64);
        if table_reads > 0 {
            let memory = table.insert(TableMemory::new(table_reads).map_err(lack)?);
            // Nothing is measured, so it is in place from the start, and in one piece.
            memory.put_plain(&offsets);
        }
        Ok(Self { memory, table, table_reads, file_bytes })
    }

    /// The job on the small file.
    fn job(&self, job: Job) -> Job {
        let mut job = Job {
            file_bytes: self.file_bytes,
            span_bytes: self.file_bytes,
            bounds: PhaseBounds::default(),
            heartbeat_ns: 0,
            piece_reads: 0,
            ..job
        };
        match &self.memory {
            Some(memory) => job.path = inherited_path(memory.file()),
            // Offsets that follow from real data are not within the small part.
            None => job.dependent = 0,
        }
        if let Some(table) = &self.table {
            (job.table_path, job.table_reads) = (inherited_path(table.file()), self.table_reads);
        }
        job.records = job.records.min(self.file_bytes.checked_div(job.record_bytes).unwrap_or(0));
        job
    }
}

/// Zeros, or lines.
fn memory(content: Content, len: u64) -> Result<SharedMemory, ConversationError> {
    let mut memory = SharedMemory::create("pagewise-warmup", len as usize)
        .map_err(|error| ConversationError::lack(format!("memory to practise in cannot be had: {error}")))?;
    let bytes = memory.bytes_mut();
    bytes.fill(0);
    if content == Content::Text {
        for line in bytes.chunks_mut(LINE_BYTES) {
            line.fill(b'x');
            line[line.len() - 1] = b'\n';
        }
    }
    Ok(memory)
}

/// A worker and its warm-up file.
pub struct WarmingWorker<'a> {
    /// The worker.
    pub worker: &'a mut Conversation,
    /// The file of its warm-up.
    pub warmup_file: &'a WarmupFile,
    /// Time limit of replies, and the order to stop.
    pub wait: Wait<'a>,
}

impl WarmingWorker<'_> {
    /// Do the work of `job` until the rate no longer rises.
    pub fn warm_up(&mut self, job: Job) -> Result<WorkerWarmup, ConversationError> {
        let job = self.warmup_file.job(job);
        let (started, mut rates) = (Instant::now(), Vec::new());
        // Records, in order or by a table, or a pass.
        let is_one_shot = job.table_reads == 0 || job.records > 0;
        if !is_one_shot {
            self.open(&job)?;
        }
        while rates.len() < INTERVALS && !is_steady(&rates) {
            rates.push(if is_one_shot { self.jobs(&job)? } else { rate(&self.go()?) });
        }
        if !is_one_shot {
            self.worker.close(self.wait)?;
        }
        Ok(WorkerWarmup { steady: is_steady(&rates), rates, elapsed_ns: started.elapsed().as_nanos() as u64 })
    }

    /// Do one-shot work repeatedly, each time as a new job; return operations per second.
    fn jobs(&mut self, job: &Job) -> Result<u64, ConversationError> {
        let mut total = SampleReply::default();
        while total.elapsed_ns < INTERVAL_NS {
            self.open(job)?;
            let reply = self.go()?;
            self.worker.close(self.wait)?;
            total.operations = total.operations.saturating_add(reply.operations);
            total.elapsed_ns = total.elapsed_ns.saturating_add(reply.elapsed_ns.max(INTERVAL_NS / 1000));
        }
        Ok(rate(&total))
    }

    fn open(&mut self, job: &Job) -> Result<(), ConversationError> {
        self.worker.open(job, self.wait)?;
        self.worker.ready(self.wait)?;
        Ok(())
    }

    fn go(&mut self) -> Result<SampleReply, ConversationError> {
        let go = Go { first_operation: 0, sample_ns: INTERVAL_NS, latency_ns: LATENCY_NS, touch_at: 0 };
        self.worker.go(go, self.wait)
    }
}

fn rate(reply: &SampleReply) -> u64 {
    let per_second = u128::from(reply.operations) * 1_000_000_000 / u128::from(reply.elapsed_ns.max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// True if the fastest of the last intervals is hardly faster than the fastest before. Slow
/// intervals, which occur on a busy machine, have no effect.
fn is_steady(rates: &[u64]) -> bool {
    let Some(before) = rates.len().checked_sub(RECENT).filter(|before| *before >= RECENT) else {
        return false;
    };
    let fastest = |rates: &[u64]| rates.iter().copied().max().unwrap_or(0) as f64;
    fastest(&rates[before..]) <= fastest(&rates[..before]) * FASTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_steady_once_it_rises_no_more() {
        let rising: Vec<u64> = (1..=30).map(|interval| 1000 * interval).collect();
        assert!(!is_steady(&rising));
        assert!(!is_steady(&[100; 9]), "too few to decide");
        assert!(is_steady(&[100; 10]));
        assert!(is_steady(&[50, 80, 99, 100, 100, 60, 101, 100, 90, 100]), "slow intervals decide nothing");
        assert!(!is_steady(&[50, 80, 99, 100, 100, 60, 101, 100, 90, 120]));
    }

    #[test]
    fn what_is_nothing_done_has_no_rate() {
        assert_eq!(rate(&SampleReply::default()), 0);
        let absurd = SampleReply { operations: u64::MAX, elapsed_ns: 1, ..SampleReply::default() };
        assert_eq!(rate(&absurd), u64::MAX);
    }
}
