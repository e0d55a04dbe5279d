//! Checks that the threads of a replay did their own reads.
//!
//! The checksum is of all reads, whoever did them. The kernel counts for each thread how long it
//! ran and how many read calls it made. It does not report which offsets of a mapping, or by a
//! ring, a thread read: there a worker whose threads do each other's reads, and one whose threads
//! change the order of their own, go unnoticed.

use pagewise_model::{Access, Work};

use super::subject::Subject;

/// Calls of a thread on its own account.
const OWN_CALLS: u64 = 64;
/// Calls of a thread on its own account, as a share of its reads.
const OWN_SHARE: f64 = 0.01;

/// Fewer threads ran than there are with reads of their own.
pub(super) fn idle_threads(subject: &Subject<'_>) -> Option<String> {
    let threads = replaying(subject)?;
    let running = &subject.evidence.threads;
    if running.is_empty() || running.iter().any(|thread| thread.cpu_ns.is_none()) {
        return None;
    }
    let ran = running.iter().filter(|thread| thread.cpu_ns.is_some_and(|ns| ns > 0)).count();
    (ran < threads).then(|| format!("{ran} threads of the worker ran, and {threads} have reads of their own"))
}

/// Threads whose read calls are not those of the parts, the largest part to the thread with most
/// calls.
pub(super) fn reads_of_other_threads(subject: &Subject<'_>) -> Option<String> {
    let threads = replaying(subject)?;
    if subject.cell.access() != Access::Pread {
        return None;
    }
    let calls = subject.evidence.threads.iter().map(|thread| thread.read_calls);
    let mut calls: Vec<u64> = calls.collect::<Option<_>>()?;
    let mut reads = subject.evidence.thread_reads.clone();
    if calls.is_empty() || reads.len() != threads {
        return None;
    }
    calls.resize(calls.len().max(threads), 0);
    calls.sort_unstable_by(|one, other| other.cmp(one));
    reads.sort_unstable_by(|one, other| other.cmp(one));
    let is_own = |(calls, reads): &(u64, u64)| {
        let most = reads.saturating_add(OWN_CALLS).saturating_add((*reads as f64 * OWN_SHARE) as u64);
        (*reads..=most).contains(calls)
    };
    let (calls, reads) = calls.into_iter().zip(reads).find(|pair| !is_own(pair))?;
    Some(format!("a thread made {calls} read calls, and the one with as many reads of its own has {reads}"))
}

/// Threads of a replay by several.
fn replaying(subject: &Subject<'_>) -> Option<usize> {
    let Work::Replay(replay) = &subject.cell.conditions.work else { return None };
    (replay.trace_threads > 1).then_some(replay.trace_threads as usize)
}
