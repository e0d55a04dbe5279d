//! A worker whose code is compiled as it runs is made ready: it works on a small file of its own, in jobs of the same kind
//! and in the same process, until it gets no faster.
//!
//! The file lies in memory, so that neither the page cache of the measured file nor a device learns of it; but where reads
//! bypass the page cache, it is the beginning of the measured file itself. What is done there counts for nothing.

use std::time::Instant;

use pagewise_host::{OffsetTable, TableError, TableMemory};
use pagewise_model::{Bytes, CacheState, Cell, Conditions, Content, WorkerWarmup};
use pagewise_protocol::{Conversation, ConversationError, Go, Job, SampleReply, Wait, inherited_path};
use pagewise_sys::SharedMemory;

/// The usual size of the small file.
const FILE_BYTES: u64 = 4 << 20;
/// It holds at least so many operations.
const OPERATIONS: u64 = 4;
/// Its lines, where it has any.
const LINE_BYTES: usize = 64;

/// Rates are looked at in stretches of this much work.
const STRETCH_NS: u64 = 100_000_000;
/// The phase in which operations are timed one by one is compiled too.
const LATENCY_NS: u64 = 10_000_000;
/// So many stretches are compared with those before them.
const RECENT: usize = 5;
/// The fastest of them is no more than this much faster than the fastest before.
const FASTER: f64 = 1.02;
/// After so many stretches it is given up, and the sample is called unsettled.
const STRETCHES: usize = 80;

/// The small file and its offsets. Made before the worker, which inherits it.
pub struct WarmupFile {
    memory: Option<SharedMemory>,
    table: Option<TableMemory>,
    table_reads: u64,
    file_bytes: u64,
}

impl WarmupFile {
    /// For work as in `cell`.
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
        let (mut table, mut table_reads) = (None, 0);
        if let Some(reads) = small.work.reads_mut() {
            // Zeros lead from each entry to itself.
            reads.dependent = false;
            let lack = |error: TableError| ConversationError::lack(error.to_string());
            let drawn = OffsetTable::new(&small, seed).map_err(lack)?;
            table_reads = drawn.reads();
            let memory = table.insert(TableMemory::new(table_reads).map_err(lack)?);
            // Nothing is measured here, so it is there from the start.
            memory.put(&drawn, &drawn.as_drawn());
        }
        Ok(Self { memory, table, table_reads, file_bytes })
    }

    /// The same job on the small file.
    fn job(&self, job: Job) -> Job {
        let mut job = Job {
            file_bytes: self.file_bytes,
            span_bytes: self.file_bytes,
            max_thread_operations: 0,
            max_device_bytes: 0,
            heartbeat_ns: 0,
            ..job
        };
        match &self.memory {
            Some(memory) => job.path = inherited_path(memory.file()),
            // What real data lead to is not in the small part.
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

/// A worker that practises.
pub struct WarmingWorker<'a> {
    pub worker: &'a mut Conversation,
    pub warmup_file: &'a WarmupFile,
    pub wait: Wait<'a>,
}

impl WarmingWorker<'_> {
    /// Until it gets no faster at the work of `job`.
    pub fn warm_up(&mut self, job: Job) -> Result<WorkerWarmup, ConversationError> {
        let job = self.warmup_file.job(job);
        let (started, mut rates) = (Instant::now(), Vec::new());
        let is_one_shot = job.table_reads == 0;
        if !is_one_shot {
            self.open(&job)?;
        }
        while rates.len() < STRETCHES && !is_steady(&rates) {
            rates.push(if is_one_shot { self.jobs(&job)? } else { rate(&self.go()?) });
        }
        if !is_one_shot {
            self.worker.close(self.wait)?;
        }
        Ok(WorkerWarmup { steady: is_steady(&rates), rates, elapsed_ns: started.elapsed().as_nanos() as u64 })
    }

    /// Work that is done once is done again and again, each time as a job of its own.
    fn jobs(&mut self, job: &Job) -> Result<u64, ConversationError> {
        let mut total = SampleReply::default();
        while total.elapsed_ns < STRETCH_NS {
            self.open(job)?;
            let reply = self.go()?;
            self.worker.close(self.wait)?;
            total.operations = total.operations.saturating_add(reply.operations);
            total.elapsed_ns = total.elapsed_ns.saturating_add(reply.elapsed_ns.max(STRETCH_NS / 1000));
        }
        Ok(rate(&total))
    }

    fn open(&mut self, job: &Job) -> Result<(), ConversationError> {
        self.worker.open(job, self.wait)?;
        self.worker.ready(self.wait)?;
        Ok(())
    }

    fn go(&mut self) -> Result<SampleReply, ConversationError> {
        let go = Go { first_operation: 0, sample_ns: STRETCH_NS, latency_ns: LATENCY_NS };
        self.worker.go(go, self.wait)
    }
}

fn rate(reply: &SampleReply) -> u64 {
    let per_second = u128::from(reply.operations) * 1_000_000_000 / u128::from(reply.elapsed_ns.max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// Whether the fastest of the last stretches is hardly faster than the fastest before: a rate that rises no more. A slow
/// stretch, as a busy machine has them, tells nothing.
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
        let rising: Vec<u64> = (1..=30).map(|stretch| 1000 * stretch).collect();
        assert!(!is_steady(&rising));
        assert!(!is_steady(&[100; 9]), "too few to tell");
        assert!(is_steady(&[100; 10]));
        assert!(is_steady(&[50, 80, 99, 100, 100, 60, 101, 100, 90, 100]), "slow stretches tell nothing");
        assert!(!is_steady(&[50, 80, 99, 100, 100, 60, 101, 100, 90, 120]));
    }

    #[test]
    fn what_is_nothing_done_has_no_rate() {
        assert_eq!(rate(&SampleReply::default()), 0);
        let absurd = SampleReply { operations: u64::MAX, elapsed_ns: 1, ..SampleReply::default() };
        assert_eq!(rate(&absurd), u64::MAX);
    }
}
