//! Answer time of an honest worker on this machine: time outside of the phases that it measures.
//!
//! A worker's clock is accepted only if it accounts for nearly all the time outside. The rest
//! (threads wake, a line is written and read) is a fraction of a millisecond on one machine and
//! tens of milliseconds on another, so it is measured with pagewise's own worker on a file in
//! memory.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pagewise_host::{OffsetTable, TableMemory};
use pagewise_model::{Bytes, Conditions, Reads, Work};
use pagewise_protocol::{ConversationError, Go, Job, Wait, inherited_path};
use pagewise_sys::SharedMemory;

use super::program::Program;

const FILE_BYTES: u64 = 1 << 20;
const PHASE_NS: u64 = 2_000_000;
const ANSWERS: usize = 5;

/// Median over a few short samples in ns; `None` if the worker fails, which the first sample will
/// explain.
pub fn answer_ns(page_bytes: u64, patience: Duration, stop: &AtomicBool) -> Option<u64> {
    let mut answers = measure(page_bytes, patience, stop).ok()?;
    answers.sort_unstable();
    answers.get(answers.len() / 2).copied()
}

fn measure(page_bytes: u64, patience: Duration, stop: &AtomicBool) -> Result<Vec<u64>, ConversationError> {
    let file = memory("pagewise-answer")?;
    let handover = memory("pagewise-handover")?;
    let conditions = Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes(FILE_BYTES));
    let lack = |error: pagewise_host::TableError| ConversationError::lack(error.to_string());
    let table = OffsetTable::new(&conditions, 0).map_err(lack)?;
    let mut table_memory = TableMemory::new(table.reads()).map_err(lack)?;
    table_memory.put_plain(table.offsets());
    let job = Job {
        path: inherited_path(file.file()),
        table_path: inherited_path(table_memory.file()),
        table_reads: table.reads(),
        direct_alignment: page_bytes,
        handover_path: inherited_path(handover.file()),
        ..Job::of(&"pread".parse().expect("a method of its own"), &conditions, page_bytes)
    };
    let mut worker = Program::Own.start(|command| Ok(pagewise_sys::child::die_with_parent(command)))?;
    let wait = Wait { patience, stop };
    worker.greet(wait)?;
    worker.open(&job, wait)?;
    worker.ready(wait)?;
    (0..ANSWERS)
        .map(|_| {
            let started = Instant::now();
            let go = Go { first_operation: 0, sample_ns: PHASE_NS, latency_ns: PHASE_NS, touch_at: 0 };
            let sample = worker.go(go, wait)?;
            let wall_ns = started.elapsed().as_nanos() as u64;
            Ok(wall_ns.saturating_sub(sample.elapsed_ns + sample.latency_elapsed_ns))
        })
        .collect()
}

fn memory(name: &str) -> Result<SharedMemory, ConversationError> {
    SharedMemory::create(name, FILE_BYTES as usize)
        .map_err(|error| ConversationError::lack(error.to_string()))
}
