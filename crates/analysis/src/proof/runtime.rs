//! What a runtime does on its own account while its threads are measured, and how a worker that has one was made ready.
//!
//! A collector, a compiler, a scheduler or an interpreter loads code late, touches memory, uses CPU time and wakes threads in
//! its own time. Checks allow for that and for no more: each allowance stands here, with its reason. Whatever a worker of
//! the user's own is written in, it may have a runtime too.

use pagewise_model::Worker;

use super::subject::Subject;

/// What a worker may do beside what the cell asks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Bytes of its own code that may come from the device.
    pub(super) code_bytes: u64,
    /// Faults on its own code that may wait for the device while the measured file is in memory.
    pub(super) code_faults: u64,
    /// Pages of its own that may come back from the device where memory is short.
    pub(super) pages: u64,
    /// Faults on its own memory.
    pub(super) memory_faults: u64,
    /// Between a request and its answer, beside what a native worker takes.
    pub(super) answer_ns: u64,
}

/// This program: a few pages of code, stacks and the offset table, and its own heap.
const NATIVE: Allowance =
    Allowance { code_bytes: 64 << 10, code_faults: 0, pages: 64, memory_faults: 1024, answer_ns: 0 };

/// A runtime. A JVM has 30 MiB of libraries and classes, of which 8 MiB may be needed late; 64 faults bring that in with the
/// readahead of 128 KiB that most devices have. A collection touches memory anew: 8 MiB more than a native worker. An
/// answer may wait for one short collection, or for a thread of Python that holds the interpreter's lock, which it gives up
/// after 5 ms (`sys.getswitchinterval`).
const RUNTIME: Allowance = Allowance {
    code_bytes: 8 << 20,
    code_faults: 64,
    pages: 2048,
    memory_faults: NATIVE.memory_faults + 2048,
    answer_ns: 5_000_000,
};

/// What `worker` may do beside its work.
pub(super) fn allowance(worker: &Worker) -> Allowance {
    if worker.has_runtime() { RUNTIME } else { NATIVE }
}

impl Subject<'_> {
    /// What its worker may do beside its work.
    pub(super) fn allowance(&self) -> Allowance {
        allowance(self.cell.method.worker())
    }
}

/// Code that was still getting faster measures its own compiler.
pub(super) fn not_practised(subject: &Subject<'_>) -> Option<String> {
    let worker_warmup =
        subject.evidence.worker_warmup.as_ref().filter(|worker_warmup| !worker_warmup.steady)?;
    Some(format!(
        "{} was still getting faster after {:.1} s of warm-up, in {} stretches",
        subject.cell.method.worker(),
        worker_warmup.elapsed_ns as f64 / 1e9,
        worker_warmup.rates.len()
    ))
}
