//! Sampling at a rate: operations are due at moments that do not depend on how long each takes.
//!
//! `latency of an operation = clock after it - the moment at which it was due`. An operation whose
//! predecessor took too long begins late, and its wait counts: a method that stalls is not asked
//! for less meanwhile. A thread waits for a moment asleep, and by reading its clock from
//! 200 us before it on, since a sleep ends 50 to 90 us late.
//!
//! The region lasts as long as the schedule. Operations that are late at its end are done within
//! another hundredth of it. The others have no end: what they have waited until then is their
//! latency, which is too little. Work of a fixed amount is done whole, however late: the region
//! ends with it, and what would be due before its last operation begins, though there is none of
//! it, shows by how much the rate was missed.

use pagewise_model::RateSchedule;
use pagewise_protocol::{CallFailure, Job};

use super::device_budget::DeviceBudget;
use super::{AtRate, Clock, ThreadSample, Turn};
use crate::operations::Operations;

/// An operation that begins later than this is late.
const LATE_NS: u64 = 100_000;
/// Times that differ by less than this part are alike.
const ALIKE_PART: u64 = 2048;
/// Part of the region, as a divisor, that late operations may take after its end.
const BEYOND: u64 = 100;

/// The operations of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The moments at which they are due.
    pub schedule: RateSchedule,
    /// The most operations of a thread.
    pub most: u64,
    /// None is done from this position on.
    pub end: u64,
    /// True if there are `most` operations, and each is done, however late.
    pub is_whole: bool,
    /// Bytes that storage may read for the worker; 0: any number.
    pub device_bytes: u64,
    /// Of the job.
    pub device_check_ns: u64,
}

impl Pace {
    /// Any number of operations of a job.
    pub const fn of(job: &Job, schedule: RateSchedule, device_bytes: u64) -> Self {
        let device_check_ns = job.policy.device_check_ns;
        Self { schedule, most: u64::MAX, end: u64::MAX, is_whole: false, device_bytes, device_check_ns }
    }

    /// Operations of a job that are all done.
    pub const fn whole(job: &Job, schedule: RateSchedule, operations: u64) -> Self {
        let any = Self::of(job, schedule, 0);
        Self { most: operations, end: operations, is_whole: true, ..any }
    }
}

impl Pace {
    /// Take one thread's sample by a clock that can be waited for.
    #[inline(never)]
    pub fn sample(
        self,
        work: &mut impl Operations,
        turn: Turn<'_>,
        (clock, wait_until): (impl Clock, impl Fn(u64) -> u64),
    ) -> Result<ThreadSample, CallFailure> {
        let Turn { thread, go, phases, latencies } = turn;
        let mut sample = ThreadSample::new(latencies, u64::MAX);
        let bytes_before = work.bytes();
        let mut budget = DeviceBudget::new(self.device_bytes, self.device_check_ns);
        phases.meet();
        let started_ns = clock();
        let due_at = |operation| started_ns.saturating_add(self.schedule.due_ns(thread, operation));
        let mut due = match self.is_whole {
            true => self.most,
            false => self.schedule.due_within(thread, go.sample_ns).min(self.most),
        };
        // A table that ends early ends the region with the time of its last operation.
        let mut region_ends = started_ns.saturating_add(go.sample_ns);
        if due == self.most {
            region_ends = region_ends.min(due_at(due));
        }
        // Nothing is read ahead past what the thread may do.
        let end = self.end.min(go.first_operation.saturating_add(self.most));
        let beyond = if self.is_whole { u64::MAX } else { (region_ends - started_ns) / BEYOND };
        let last = region_ends.saturating_add(beyond);
        let (mut operations, mut late_starts, mut is_cut_short) = (0, 0, false);
        let (mut now, mut last_begun) = (started_ns, started_ns);
        while operations < due && now < last {
            let moment = due_at(operations);
            let mut begun = now;
            if now < moment {
                // No clock is read between this and the operation.
                begun = wait_until(moment);
                late_starts += u64::from(begun - moment > LATE_NS);
            }
            let done = work.perform(go.first_operation.saturating_add(operations), 1, end)?;
            if done.operations == 0 {
                // Every record is written, so nothing is due any more.
                (due, region_ends) = (operations, now);
                break;
            }
            sample.add(done.checksum);
            // Of whole work the last operation has what the end of all takes, a sync of the rest.
            if !self.is_whole || operations + 1 == due {
                sample.add(work.finish()?);
            }
            last_begun = begun;
            now = clock();
            operations += 1;
            sample.latencies.saturating_record(now - moment);
            if budget.is_spent(now) {
                // Nothing is due any more, so the region ends here.
                due = self.schedule.due_within(thread, now - started_ns).clamp(operations, due);
                region_ends = now;
                is_cut_short = true;
                break;
            }
        }
        if now < region_ends {
            now = wait_until(region_ends);
        }
        let passed_ns = now - started_ns;
        let mut undone = operations;
        while undone < due {
            // Those that have waited as long, to the digits of the histogram, are counted together.
            let waited_ns = now.saturating_sub(due_at(undone));
            let alike_ns = passed_ns.saturating_sub(waited_ns - waited_ns / ALIKE_PART);
            let alike = self.schedule.due_within(thread, alike_ns).clamp(undone + 1, due);
            sample.latencies.saturating_record_n(waited_ns, alike - undone);
            undone = alike;
        }
        if self.is_whole {
            due = self.schedule.due_within(thread, last_begun - started_ns).max(operations);
        }
        Ok(ThreadSample {
            started_ns,
            ended_ns: now,
            operations,
            bytes: work.bytes() - bytes_before,
            at_rate: AtRate { due_operations: due, late_starts, is_cut_short },
            syncs: work.take_sync_durations(),
            ..sample
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use pagewise_protocol::Go;

    use super::*;
    use crate::sampling::fake::{self, FakeWork};
    use crate::sampling::{Phases, empty_latencies};

    /// 100 operations in 1 ms, one each 10 us, but for what `change` does.
    fn sampled(
        work: &mut FakeWork<'_>,
        change: impl FnOnce(&mut Pace),
        oversleeps: Option<u64>,
    ) -> ThreadSample {
        let schedule = RateSchedule { rate: "100k".parse().expect("a rate"), reads_per_op: 1, threads: 1 };
        let mut pace = Pace::of(&Job::default(), schedule, 0);
        change(&mut pace);
        let (go, phases) = (Go { sample_ns: 1_000_000, ..Go::default() }, Phases::of(1));
        let turn = Turn { thread: 0, go: &go, phases: &phases, latencies: empty_latencies() };
        // The clock stands still but for work and waiting, and the first wait may end too late.
        let (time, oversleeps) = (work.time, Cell::new(oversleeps));
        let clock = time.clock();
        let wait_until = |ns: u64| {
            let early = ns.saturating_sub(clock());
            time.pass(early + oversleeps.take().unwrap_or(0));
            clock()
        };
        pace.sample(work, turn, (&clock, wait_until)).expect("no call fails")
    }

    fn took(sample: &ThreadSample) -> u64 {
        sample.ended_ns - sample.started_ns
    }

    #[test]
    fn each_operation_waits_for_its_moment() {
        let time = fake::Time::default();
        let mut work = FakeWork { op_ns: 300, ..FakeWork::new(&time) };
        let sample = sampled(&mut work, |_| (), None);
        assert_eq!(
            (sample.operations, sample.at_rate.due_operations, sample.at_rate.late_starts),
            (100, 100, 0)
        );
        assert_eq!((sample.latencies.min(), sample.latencies.max(), sample.latencies.len()), (300, 300, 100));
        assert_eq!((took(&sample), sample.bytes), (1_000_000, 1000), "the region is the schedule");
        assert_eq!((work.asked, work.finished), (vec![1; 100], 100));
        assert_eq!(sample.checksum, 100 * 1007);
    }

    #[test]
    fn what_waits_behind_a_slow_operation_counts_from_its_own_moment() {
        let time = fake::Time::default();
        let mut work = FakeWork { op_ns: 1_000, slow: vec![(10, 54_000)], ..FakeWork::new(&time) };
        let sample = sampled(&mut work, |_| (), None);
        assert_eq!((sample.operations, sample.at_rate.due_operations), (100, 100), "nothing is left out");
        // The slow one takes 55 us; those behind it end 46, 37, 28, 19 and 10 us late.
        let slower = |ns| sample.latencies.count_between(ns, u64::MAX);
        assert_eq!([50_000, 40_000, 30_000, 20_000, 15_000, 5_000].map(slower), [1, 2, 3, 4, 5, 6]);
        assert_eq!(sample.at_rate.late_starts, 0, "the thread did not wait");
    }

    #[test]
    fn a_late_awakening_is_counted() {
        let time = fake::Time::default();
        let sample = sampled(&mut FakeWork::new(&time), |_| (), Some(150_000));
        assert_eq!((sample.operations, sample.at_rate.late_starts), (100, 1));
        assert!(sample.latencies.max() >= 150_000);
    }

    #[test]
    fn what_is_never_done_has_waited_until_the_end() {
        let time = fake::Time::default();
        let mut work = FakeWork { op_ns: 20_000, ..FakeWork::new(&time) };
        let sample = sampled(&mut work, |_| (), None);
        // Half of what is due, and what fits into a hundredth of the region after its end.
        assert_eq!((sample.operations, sample.at_rate.due_operations, took(&sample)), (51, 100, 1_020_000));
        assert_eq!(sample.latencies.len(), 100, "each that was due has a latency");
        // The last three that were done, and those due at 510 and 520 us.
        assert_eq!(sample.latencies.count_between(500_000, u64::MAX), 5);
    }

    #[test]
    fn late_operations_are_done_within_a_hundredth_of_the_region() {
        let time = fake::Time::default();
        let mut work = FakeWork { op_ns: 1_000, slow: vec![(95, 46_000)], ..FakeWork::new(&time) };
        let sample = sampled(&mut work, |_| (), None);
        assert_eq!((sample.operations, took(&sample)), (100, 1_001_000));
    }

    #[test]
    fn work_of_a_fixed_amount_is_done_whole_and_what_was_due_meanwhile_shows_a_missed_rate() {
        let whole = |work: &mut FakeWork<'_>| {
            sampled(work, |pace| *pace = Pace::whole(&Job::default(), pace.schedule, 40), None)
        };
        let time = fake::Time::default();
        let mut work = FakeWork { op_ns: 300, ..FakeWork::new(&time) };
        let sample = whole(&mut work);
        assert_eq!((sample.operations, sample.at_rate.due_operations, took(&sample)), (40, 40, 400_000));
        assert_eq!((work.finished, sample.latencies.max()), (1, 300), "finished once, behind all");
        let time = fake::Time::default();
        let sample = whole(&mut FakeWork { op_ns: 20_000, ..FakeWork::new(&time) });
        assert_eq!((sample.operations, sample.at_rate.due_operations, took(&sample)), (40, 78, 800_000));
        assert_eq!(sample.latencies.len(), 40, "each that was done has a latency, and no other");
        let time = fake::Time::default();
        let sample = whole(&mut FakeWork { slow: vec![(39, 500_000)], ..FakeWork::new(&time) });
        assert_eq!((sample.operations, sample.at_rate.due_operations, took(&sample)), (40, 40, 890_001));
    }

    #[test]
    fn a_table_or_a_ring_that_ends_early_ends_the_region() {
        let time = fake::Time::default();
        let mut work = FakeWork::new(&time);
        let sample = sampled(&mut work, |pace| pace.most = 40, None);
        assert_eq!((sample.operations, sample.at_rate.due_operations, took(&sample)), (40, 40, 400_000));
        assert_eq!(work.end, 40, "nothing behind it is read ahead");
        let time = fake::Time::default();
        let sample = sampled(&mut FakeWork::new(&time), |pace| pace.end = 40, None);
        assert_eq!((sample.operations, sample.at_rate.due_operations, took(&sample)), (40, 40, 390_001));
    }
}
