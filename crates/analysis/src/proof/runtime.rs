//! Allowances for a runtime's own activity while its threads are measured, and the check of its
//! warm-up.
//!
//! A collector, a compiler, a scheduler or an interpreter loads code late, touches memory, uses CPU
//! time and wakes threads at times of its own. Checks allow for that and for no more: each
//! allowance is defined here, with its reason. A user's own worker may have a runtime too, in
//! whatever language it is written.

use pagewise_model::Worker;

use super::subject::Subject;

/// Activity that a worker may show beyond the cell's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Bytes of its own code that may come from the device.
    pub(super) code_bytes: u64,
    /// Major faults on its own code while the measured file is in memory.
    pub(super) code_faults: u64,
    /// Pages of its own that may be read again from the device under memory pressure.
    pub(super) pages: u64,
    /// Faults on its own memory.
    pub(super) memory_faults: u64,
    /// Memory that it may have before it has a job.
    pub(super) idle_bytes: u64,
    /// Growth of its memory beside the buffers of reads.
    pub(super) memory_bytes: u64,
    /// Time between a request and its answer, beyond that of a native worker.
    pub(super) answer_ns: u64,
}

/// The native worker: a few pages of code, stacks and the offset table, and its own heap. It has 4
/// to 16 MiB when it gets a job.
const NATIVE: Allowance = Allowance {
    code_bytes: 64 << 10,
    code_faults: 0,
    pages: 64,
    memory_faults: 1024,
    idle_bytes: 32 << 20,
    memory_bytes: (10 << 20) + THREAD_BYTES,
    answer_ns: 0,
};

/// A runtime. A JVM has 30 MiB of libraries and classes, of which 8 MiB may be needed late; 64
/// faults bring that in with the usual readahead of 128 KiB. A collection touches memory anew: 8
/// MiB more than a native worker, and it gives memory back when it likes to. An answer may wait for
/// one short collection, or for a thread of Python that holds the interpreter's lock, which it
/// releases after 5 ms (`sys.getswitchinterval`).
const RUNTIME: Allowance = Allowance {
    code_bytes: 8 << 20,
    code_faults: 64,
    pages: 2048,
    memory_faults: NATIVE.memory_faults + 2048,
    // A heap may be as large as the user says.
    idle_bytes: u64::MAX,
    memory_bytes: NATIVE.memory_bytes + (32 << 20),
    answer_ns: 5_000_000,
};

/// Faults of each further thread on memory of its own: a stack, and histograms that are touched as
/// values fall into them (about 115 pages for latencies and syncs).
const THREAD_FAULTS: u64 = 256;
const THREAD_BYTES: u64 = 1 << 20;

/// The allowance of `worker`.
pub(super) fn allowance(worker: &Worker) -> Allowance {
    if worker.has_runtime() { RUNTIME } else { NATIVE }
}

impl Subject<'_> {
    /// The allowance of its worker, with as many threads as it has.
    pub(super) fn allowance(&self) -> Allowance {
        let one = allowance(self.cell.method.worker());
        let more = u64::from(self.cell.conditions.threads.saturating_sub(1));
        Allowance {
            memory_faults: one.memory_faults.saturating_add(more.saturating_mul(THREAD_FAULTS)),
            memory_bytes: one.memory_bytes.saturating_add(more.saturating_mul(THREAD_BYTES)),
            ..one
        }
    }
}

/// A worker that was still getting faster measures its own compiler.
pub(super) fn not_practised(subject: &Subject<'_>) -> Option<String> {
    let worker_warmup =
        subject.evidence.worker_warmup.as_ref().filter(|worker_warmup| !worker_warmup.steady)?;
    Some(format!(
        "{} was still getting faster after {:.1} s of warm-up, in {} intervals",
        subject.cell.method.worker(),
        worker_warmup.elapsed_ns as f64 / 1e9,
        worker_warmup.rates.len()
    ))
}
