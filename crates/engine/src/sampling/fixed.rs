//! Sampling of a fixed amount of work: a pass over a file, the records of a ring, the blocks of a
//! new file.
//!
//! `elapsed = clock after the last operation and everything staged or in flight (and its sync, if the job syncs within the measured region) - clock before the first operation`.
//! The measured region ends early when its time is up, between two batches.
//!
//! **Latency.** There is no separate phase, because the work would differ the second time. Between
//! batches of *gap* operations, one operation is timed alone. Gaps are drawn uniformly from 1 to
//! twice their mean, because costs may be periodic (a page fault falls on every 32nd block of 128
//! B); each operation is as likely to be timed as its neighbour. The mean begins with 1 and is
//! doubled until a batch takes 40 us, so that clocks cost less than 1 %. If one operation takes
//! that long, all are timed. While the mean grows, operations are timed more often than later.
//! Those times are discarded, so that early page faults are not over-represented.

use pagewise_model::random::Random;
use pagewise_protocol::{CallFailure, SamplingPolicy};

use super::stalls::Batch;
use super::{Clock, ThreadSample, Turn};
use crate::operations::{Done, Latencies, Operations};

/// Amount of work, and the gaps between operations with a measured latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Operations of a sample.
    pub operations: u64,
    /// Seed of the gaps.
    pub gap_seed: u64,
    /// Of the job.
    pub policy: SamplingPolicy,
}

impl Amount {
    /// Take one thread's sample: the amount from the first operation of the `go` on, or as much of
    /// it as is done within its time.
    #[inline(never)]
    pub fn sample(
        self,
        work: &mut impl Operations,
        turn: Turn<'_>,
        clock: impl Clock,
    ) -> Result<ThreadSample, CallFailure> {
        let bytes_before = work.bytes();
        let first_operation = turn.go.first_operation;
        let mut progress = WorkProgress {
            position: first_operation,
            end: first_operation.saturating_add(self.operations),
            early: Early::until(self.policy.gap_measures),
            sample: ThreadSample::new(turn.latencies, self.policy.stall_ns),
        };
        let mut gaps = Gaps::new(self.gap_seed, self.policy);
        turn.phases.meet();
        let started_ns = clock();
        let deadline = started_ns.saturating_add(turn.go.sample_ns);
        let mut now = started_ns;
        while progress.position < progress.end && now < deadline {
            let gap = gaps.draw();
            let begun = now;
            now = progress.batch(work, gap, now, &clock)?;
            if progress.position < progress.end && gaps.adapt(gap, now - begun) {
                progress.early.taken.clear();
            }
            if gaps.is_found() && !progress.early.taken.is_empty() {
                progress.early.record(&mut progress.sample.latencies);
            }
            if progress.position < progress.end {
                now = progress.batch(work, 1, now, &clock)?;
            }
        }
        progress.sample.add(work.finish()?);
        let ended_ns = clock();
        progress.early.record(&mut progress.sample.latencies);
        Ok(ThreadSample {
            started_ns,
            ended_ns,
            operations: progress.position - first_operation,
            bytes: work.bytes() - bytes_before,
            syncs: work.take_sync_durations(),
            gap_wait_ns: work.take_gap_wait_ns(),
            ..progress.sample
        })
    }
}

/// Progress of the work.
struct WorkProgress {
    position: u64,
    end: u64,
    early: Early,
    sample: ThreadSample,
}

/// Latencies taken before the mean gap is found; those taken while it grows are not kept. Only a
/// few numbers are stored, since emptying a histogram takes as long as a thousand records.
struct Early {
    taken: Vec<u64>,
    /// Greatest length of `taken`.
    most: usize,
    closed: bool,
}

impl Early {
    /// Room for all that is timed until the mean has not grown by this many measures.
    fn until(gap_measures: u64) -> Self {
        let most = 2 * gap_measures as usize + 2;
        Self { taken: Vec::with_capacity(most), most, closed: false }
    }

    fn record(&mut self, latencies: &mut Latencies) {
        self.taken.drain(..).for_each(|took| latencies.saturating_record(took));
        self.closed = true;
    }

    #[inline]
    fn keeps(&mut self, took_ns: u64) -> bool {
        let room = !self.closed && self.taken.len() < self.most;
        if room {
            self.taken.push(took_ns);
        }
        room
    }
}

impl WorkProgress {
    /// Do `wanted` operations, fewer at the end, and return the clock after them. `before` is the
    /// clock after the operations before them. A single operation has its own clock reading, so
    /// that its latency includes nothing else.
    #[inline(always)]
    fn batch(
        &mut self,
        work: &mut impl Operations,
        wanted: u64,
        before: u64,
        clock: &impl Clock,
    ) -> Result<u64, CallFailure> {
        let begun = if wanted == 1 { clock() } else { before };
        let Done { operations, checksum } = work.perform(self.position, wanted, self.end)?;
        let after = clock();
        self.position += operations;
        self.sample.add(checksum);
        if wanted == 1 && !self.early.keeps(after - begun) {
            self.sample.latencies.saturating_record(after - begun);
        }
        self.sample.stalls.note(operations, after - before);
        Ok(after)
    }
}

/// Lengths of batches between operations that are timed alone.
pub(super) struct Gaps {
    random: Random,
    mean: u64,
    /// Consecutive measures that did not double the mean, up to `gap_measures`.
    steady: u64,
    policy: SamplingPolicy,
}

impl Gaps {
    pub(super) fn new(seed: u64, policy: SamplingPolicy) -> Self {
        Self { random: Random::new(seed), mean: 1, steady: 0, policy }
    }

    /// Draw from 1 to twice the mean, exclusive.
    pub(super) fn draw(&mut self) -> u64 {
        1 + self.random.below(2 * self.mean - 1)
    }

    /// Adapt the mean gap to last as long as the policy says, after a gap of `gap` operations that
    /// took `took_ns`. Short gaps are not used, since the clock is a part of their time. Return
    /// true while the mean grows from 1: operations until now were timed more often than the
    /// following ones.
    pub(super) fn adapt(&mut self, gap: u64, took_ns: u64) -> bool {
        if gap < self.mean {
            return false;
        }
        let SamplingPolicy { gap_min_ns, gap_max_ns, gap_measures, .. } = self.policy;
        let mean_takes_ns = Batch { operations: gap, took_ns }.pace(self.mean);
        if mean_takes_ns < gap_min_ns {
            self.mean *= 2;
            let begins = self.steady < gap_measures;
            self.steady = if begins { 0 } else { self.steady };
            return begins;
        }
        if self.mean > 1 && mean_takes_ns > gap_max_ns {
            self.mean /= 2;
        }
        self.steady = (self.steady + 1).min(gap_measures);
        false
    }

    /// True if the mean has stopped growing from 1.
    fn is_found(&self) -> bool {
        self.steady == self.policy.gap_measures
    }
}

#[cfg(test)]
mod tests;
