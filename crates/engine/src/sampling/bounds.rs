//! The end of a sample, and the one call by which a thread takes it.

use pagewise_protocol::{CallFailure, Job, PhaseBounds};

use super::{ThreadSample, Turn, commits, fixed, paced, timed};
use crate::clock::{now_ns, wait_until};
use crate::operations::Operations;

/// End condition of a sample.
#[derive(Clone, Copy, Debug)]
pub enum Bounds {
    /// When its time is up.
    Timed(timed::Limits),
    /// When this much is done.
    Fixed(fixed::Amount),
    /// When this many records, counted over all threads, are committed.
    Commits(commits::Commits),
    /// When all operations that are due in its time are done.
    Paced(paced::Pace),
}

impl Bounds {
    /// Bounds of reads by the offset table.
    pub fn timed(job: &Job) -> Self {
        let PhaseBounds { max_thread_operations, throughput_device_bytes, .. } = job.bounds;
        let most = timed::bound(max_thread_operations);
        let paced =
            |schedule| paced::Pace { most, ..paced::Pace::of(job, schedule, throughput_device_bytes) };
        let timed = Bounds::Timed(timed::Limits { bounds: job.bounds, policy: job.policy });
        job.schedule().map_or(timed, |schedule| Bounds::Paced(paced(schedule)))
    }

    /// Bounds of this many operations of each thread.
    pub const fn fixed(job: &Job, operations: u64) -> Self {
        Bounds::Fixed(fixed::Amount { operations, gap_seed: job.gap_seed, policy: job.policy })
    }

    /// Bounds of the records of a job, which are all written.
    pub fn records(job: &Job) -> Self {
        let whole = |schedule| Bounds::Paced(paced::Pace::whole(job, schedule, job.records));
        job.schedule().map_or(Self::fixed(job, job.records), whole)
    }

    /// Bounds of the records of a job that are committed.
    pub fn commits(job: &Job) -> Self {
        let records = commits::Commits { records: job.records, stall_ns: job.policy.stall_ns };
        let paced = |schedule| paced::Pace { end: job.records, ..paced::Pace::of(job, schedule, 0) };
        job.schedule().map_or(Bounds::Commits(records), |schedule| Bounds::Paced(paced(schedule)))
    }
}

/// The work of a thread, of any kind.
pub trait ThreadWork: Operations {
    /// Take this thread's sample, as these bounds have it.
    ///
    /// The phases are compiled for each kind of work, with its way through a table in them, so that
    /// a batch is one direct call of a loop.
    fn sample(&mut self, bounds: Bounds, turn: Turn<'_>) -> Result<ThreadSample, CallFailure>;
}

impl<W: Operations> ThreadWork for W {
    fn sample(&mut self, bounds: Bounds, turn: Turn<'_>) -> Result<ThreadSample, CallFailure> {
        self.begin(turn.go);
        match bounds {
            Bounds::Timed(limits) => limits.sample(self, turn, now_ns),
            Bounds::Fixed(amount) => amount.sample(self, turn, now_ns),
            Bounds::Commits(commits) => commits.sample(self, turn, now_ns),
            Bounds::Paced(pace) => pace.sample(self, turn, (now_ns, wait_until)),
        }
    }
}
