//! Claims of a reply about a sample, and checks that its numbers agree with each other, with the
//! job and with the clock outside.
//!
//! Samples of a run, those of a run file and trials of a worker are held to the same claims by the
//! same tolerances. Each check is one sentence with the numbers if it fails, in the words of
//! `workers/PROTOCOL.md`.

use pagewise_model::format::time;
use pagewise_model::sample::Measurement;
use pagewise_model::{Bytes, Conditions, Method, RateSchedule, Sync, SyncCall};

use crate::messages::SampleReply;

/// Factor by which the upper end of a latency's bucket may lie above the latency: buckets are not
/// wider than 1 % of their value, and as much again is left for ends that are rounded outwards.
pub const BUCKET_SLACK: f64 = 1.02;
/// Time that the wall clock may show beyond the worker's own, in ns: two messages through pipes,
/// and the wake-up of who asks on a busy machine.
pub const WALL_SLACK_NS: u64 = 10_000_000;
/// Time that the wall clock may show beyond the worker's own, as a share of the wall time.
const WALL_SLACK_SHARE: f64 = 0.05;
/// Time that an answer may take, in ns, if nobody has measured it on this machine.
pub const ANSWER_NS: u64 = 15_000_000;
/// Share of a phase that its operations fill at least; the rest is clocks and what the worker does
/// between them.
const LATENCY_SHARE: f64 = 0.5;

/// Share of a phase by whose end its last operation is due at least.
const SCHEDULE_SHARE: f64 = 0.98;

/// Claims of a worker about a sample. Bytes, ns and counts of the fields of `sample` with these
/// names.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // They are the fields of [`SampleReply`].
pub struct Claims<'a> {
    pub operations: u64,
    pub elapsed_ns: u64,
    pub latency_operations: u64,
    pub latency_elapsed_ns: u64,
    /// Operations and time of the latency phase as far as they are in the other numbers.
    pub latency_within: (u64, u64),
    pub thread_operations: &'a [u64],
    pub bytes: u64,
    pub latency_ns: &'a [u64],
    pub latency_counts: &'a [u64],
    pub sync_duration_ns: &'a [u64],
    pub sync_duration_counts: &'a [u64],
    pub due_operations: u64,
    pub late_starts: u64,
    pub stalls: u64,
    pub stall_longest_ns: u64,
}

/// The requested work.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Threads of the job.
    pub threads: u32,
    /// Bytes of one operation.
    pub op_bytes: u64,
    /// Operations that there are to do; `None`: as many as the time allows.
    pub operations: Option<u64>,
    /// Bytes of all of them.
    pub all_bytes: Option<u64>,
    /// True if unfinished work may still be staged, as records are.
    pub stages: bool,
    /// Operations that a thread has under way at once.
    pub depth: u32,
    /// True if a phase whose operations are all timed consists of nothing else.
    pub is_filled: bool,
    /// Time by which written bytes must be on the device.
    pub sync: Sync,
    /// The moments at which operations are due.
    pub schedule: Option<RateSchedule>,
    /// True if each operation is done, however late: none that was due is timed without an end.
    pub is_whole: bool,
    /// The call that puts them there is the write itself, of which there may be several at once.
    pub writes_sync: bool,
    /// Bytes of the largest write: a record, or a buffer of them.
    pub write_bytes: u64,
}

impl Asked {
    /// The work that the conditions ask for, of a method that has `depth` operations of a thread
    /// under way at once.
    pub fn of(conditions: &Conditions, depth: u32) -> Self {
        let writes = conditions.writes();
        Self {
            threads: conditions.threads,
            op_bytes: conditions.op_bytes(),
            operations: conditions.fixed_operations(),
            all_bytes: conditions.fixed_operations().map(|all| conditions.bytes_of(all)),
            stages: writes.is_some(),
            depth,
            is_filled: conditions.reads().is_some() || conditions.is_committing(),
            schedule: conditions.schedule(),
            is_whole: conditions.is_one_shot(),
            sync: writes.map_or(Sync::None, |writes| writes.sync_of_records()),
            writes_sync: writes.and_then(|writes| writes.sync_call).is_some_and(SyncCall::is_write),
            write_bytes: conditions.op_bytes(),
        }
    }

    /// The work that the conditions ask for, of a method whose options are known.
    pub fn of_method(conditions: &Conditions, method: &Method) -> Self {
        let asked = Self::of(conditions, method.depth());
        let buffer = method.buffer().map_or(0, |buffer| buffer.0);
        Self {
            sync: conditions.writes().map_or(Sync::None, |writes| method.sync_of(&writes)),
            write_bytes: buffer.max(asked.write_bytes),
            ..asked
        }
    }

    /// The most bytes that may reach the file from one sync to the next: a sync is due after the
    /// write with which the interval is full.
    fn bytes_between_syncs(&self, interval: Bytes) -> u64 {
        let at_once = self.write_bytes.saturating_mul(u64::from(self.depth));
        let between = if self.writes_sync {
            self.write_bytes
        } else {
            at_once.saturating_add(interval.0).saturating_sub(1)
        };
        between.max(1)
    }
}

impl SampleReply {
    /// Claims of the reply.
    pub fn claims(&self) -> Claims<'_> {
        Claims {
            operations: self.operations,
            elapsed_ns: self.elapsed_ns,
            latency_operations: self.latency_operations,
            latency_elapsed_ns: self.latency_elapsed_ns,
            latency_within: (self.latency_operations, self.latency_elapsed_ns),
            thread_operations: &self.thread_operations,
            bytes: self.bytes,
            latency_ns: &self.latency_ns,
            latency_counts: &self.latency_counts,
            sync_duration_ns: &self.sync_duration_ns,
            sync_duration_counts: &self.sync_duration_counts,
            due_operations: self.due_operations,
            late_starts: self.late_starts,
            stalls: self.stalls,
            stall_longest_ns: self.stall_longest_ns,
        }
    }

    /// The checksum as a number.
    pub fn checksum(&self) -> Result<u64, String> {
        let text = &self.checksum;
        match u64::from_str_radix(text, 16) {
            Ok(checksum) if text.len() == 16 => Ok(checksum),
            Ok(_) => Err(format!("checksum '{text}' has not 16 hexadecimal digits: fill it up with zeros")),
            Err(_) => Err(format!("checksum '{text}' is no number of 16 hexadecimal digits")),
        }
    }
}

impl<'a> Claims<'a> {
    /// The claims of a sample that was kept, with the bytes that it claimed.
    pub fn of(measurement: &'a Measurement, bytes: u64) -> Self {
        Self {
            operations: measurement.operations,
            elapsed_ns: measurement.measured_ns,
            latency_operations: measurement.latency_phase_operations,
            latency_elapsed_ns: measurement.latency_phase_ns,
            latency_within: measurement.latency_phase_within(),
            thread_operations: &measurement.thread_operations,
            bytes,
            latency_ns: &measurement.latency_ns,
            latency_counts: &measurement.latency_counts,
            sync_duration_ns: &measurement.sync_duration_ns,
            sync_duration_counts: &measurement.sync_duration_counts,
            due_operations: measurement.due_operations,
            late_starts: measurement.late_starts,
            stalls: measurement.stalls,
            stall_longest_ns: measurement.stall_longest_ns,
        }
    }

    /// Operations of both phases, unless the latencies were taken apart. Saturating, as a worker
    /// may claim anything.
    pub fn all_operations(&self) -> u64 {
        self.operations.saturating_add(self.latency_within.0)
    }

    /// Likewise their time.
    pub fn all_ns(&self) -> u64 {
        self.elapsed_ns.saturating_add(self.latency_within.1)
    }

    /// Operations whose latency is reported, of how many, in a phase of how many ns.
    fn timed(&self, asked: &Asked) -> (u128, u64, u64) {
        let timed = self.latency_counts.iter().copied().map(u128::from).sum();
        match self.latency_operations {
            0 if self.due_operations > 0 && !asked.is_whole => (timed, self.due_operations, self.elapsed_ns),
            0 => (timed, self.operations, self.elapsed_ns),
            of_phase => (timed, of_phase, self.latency_elapsed_ns),
        }
    }

    /// Operations, threads and bytes do not add up.
    pub fn wrong_operations(&self, asked: &Asked) -> Option<String> {
        let Self {
            operations, elapsed_ns, latency_operations, latency_elapsed_ns, thread_operations, ..
        } = *self;
        if operations == 0 {
            return Some("operations is 0: do at least one".to_string());
        }
        if elapsed_ns == 0 {
            return Some(format!("elapsed_ns is 0, and {operations} operations were done"));
        }
        if (latency_operations == 0) != (latency_elapsed_ns == 0) {
            return Some(format!(
                "latency_operations is {latency_operations}, latency_elapsed_ns {latency_elapsed_ns}: both are 0 without a \
                 latency phase, and neither with one"
            ));
        }
        if thread_operations.len() as u64 != u64::from(asked.threads) {
            return Some(format!(
                "thread_operations has {} entries, threads is {}: one entry for each thread",
                thread_operations.len(),
                asked.threads
            ));
        }
        let all = self.all_operations();
        let by_thread: u128 = thread_operations.iter().copied().map(u128::from).sum();
        if by_thread != u128::from(all) {
            return Some(format!(
                "thread_operations {thread_operations:?} add up to {by_thread}, operations and latency_operations to {all}: \
                 count both phases by thread"
            ));
        }
        if let Some(work) = asked.operations.filter(|work| all > *work) {
            return Some(format!("{all} operations were done, the job has {work}: do each once"));
        }
        let of_all = asked.all_bytes.filter(|_| asked.operations == Some(all));
        let bytes = of_all.map_or(u128::from(all) * u128::from(asked.op_bytes), u128::from);
        let is_staged = asked.stages && asked.operations.is_some_and(|work| all < work);
        let agree = u128::from(self.bytes) == bytes || is_staged && u128::from(self.bytes) < bytes;
        (!agree).then(|| {
            format!(
                "bytes is {}, {all} operations of {} bytes make {bytes}: count both phases",
                self.bytes, asked.op_bytes
            )
        })
    }

    /// A latency phase times each of its operations; without one, no more operations are timed than
    /// were done. Stalls have a length if and only if there are any.
    pub fn wrong_latencies(&self, asked: &Asked) -> Option<String> {
        if let Some(wrong) = wrong_histogram("latency", self.latency_ns, self.latency_counts) {
            return Some(wrong);
        }
        let (timed, of, _) = self.timed(asked);
        let times_all = self.latency_operations > 0 || self.due_operations > 0;
        if timed > u128::from(of) || times_all && timed != u128::from(of) {
            return Some(format!(
                "latency_counts add up to {timed}, {of} operations were timed one by one: count each once"
            ));
        }
        let (stalls, longest) = (self.stalls, self.stall_longest_ns);
        ((stalls == 0) != (longest == 0))
            .then(|| format!("stalls is {stalls}, stall_longest_ns {longest}: both are 0 or neither is"))
    }

    /// Syncs are as many as the job asks for at least, and none where it asks for none. Each was
    /// within the measured region, one after another unless the writes are the syncs.
    pub fn wrong_syncs(&self, asked: &Asked) -> Option<String> {
        let (ends, counts) = (self.sync_duration_ns, self.sync_duration_counts);
        if let Some(wrong) = wrong_histogram("sync_duration", ends, counts) {
            return Some(wrong);
        }
        let syncs: u128 = counts.iter().copied().map(u128::from).sum();
        let (least, of) = match asked.sync {
            Sync::None | Sync::End => (0, "no sync is due within the measured region".to_string()),
            Sync::Every(size) => (
                self.bytes / asked.bytes_between_syncs(size),
                format!("{} bytes with one after the write with which {size} are full", self.bytes),
            ),
            Sync::Commit => {
                let threads = u64::from(asked.threads).max(1);
                (
                    self.operations.div_ceil(threads),
                    format!("{} records of {threads} threads", self.operations),
                )
            }
        };
        if !asked.sync.is_measured() {
            return (syncs > 0).then(|| format!("sync_duration_counts add up to {syncs}: {of}"));
        }
        if syncs < u128::from(least) {
            return Some(format!("sync_duration_counts add up to {syncs}: {of} take at least {least}"));
        }
        let longest = longest(ends, counts);
        let phase = self.elapsed_ns;
        if let Some(longest) = longest.filter(|longest| *longest as f64 > phase as f64 * BUCKET_SLACK) {
            return Some(format!("a sync took {longest} ns of a region of {phase} ns"));
        }
        let at_once = if asked.writes_sync { f64::from(asked.threads) * f64::from(asked.depth) } else { 1.0 };
        let total: f64 =
            ends.iter().zip(counts).map(|(upper_ns, count)| *upper_ns as f64 * *count as f64).sum();
        let most = phase as f64 * at_once * BUCKET_SLACK + WALL_SLACK_NS as f64;
        (total > most).then(|| {
            format!("the syncs add up to {total:.0} ns, {at_once} at once in {phase} ns allow {most:.0} ns")
        })
    }

    /// Operations of a thread come one after another (as many at once as it has under way), so
    /// their latencies cannot add up to more than the time in which they ran, nor can one take
    /// longer. Threads that waited for a CPU for `waited_ns` may have done so between operations.
    pub fn false_latencies(&self, asked: &Asked, waited_ns: u64) -> Option<String> {
        let (timed, of, phase_ns) = self.timed(asked);
        let all = self.latency_ns.iter().zip(self.latency_counts);
        let total: f64 = all.map(|(upper_ns, count)| *upper_ns as f64 * *count as f64).sum();
        let slowest = longest(self.latency_ns, self.latency_counts).unwrap_or(0);
        if slowest as f64 > phase_ns as f64 * BUCKET_SLACK {
            return Some(format!(
                "an operation took {slowest} ns of a phase of {phase_ns} ns: buckets are not wider than 1 %, and in nanoseconds"
            ));
        }
        // At a rate, operations wait for each other, and threads for the moments.
        let at_once = f64::from(asked.threads) * f64::from(asked.depth);
        let most = phase_ns as f64 * at_once * BUCKET_SLACK + WALL_SLACK_NS as f64;
        if total > most && asked.schedule.is_none() {
            return Some(format!(
                "the latencies add up to {total:.0} ns, {at_once} operations at once in {phase_ns} ns allow {most:.0} ns"
            ));
        }
        // Where every operation of a phase was timed, one thread at least was at it all the time.
        let least = phase_ns as f64 * LATENCY_SHARE - WALL_SLACK_NS.saturating_add(waited_ns) as f64;
        if timed == u128::from(of) && asked.is_filled && asked.schedule.is_none() && total < least {
            return Some(format!(
                "the latencies of all operations add up to {total:.0} ns of a phase of {phase_ns} ns"
            ));
        }
        let (longest, phase) = (self.stall_longest_ns, self.elapsed_ns);
        (longest > phase).then(|| format!("stall_longest_ns is {longest}, longer than elapsed_ns {phase}"))
    }

    /// The operations that were due are those of the schedule, up to the end of the phase but for
    /// what ran beyond it, and no more were done.
    pub fn wrong_schedule(&self, asked: &Asked) -> Option<String> {
        let Self { operations, due_operations: due, late_starts, elapsed_ns, .. } = *self;
        let Some(schedule) = asked.schedule else {
            return (due > 0 || late_starts > 0)
                .then(|| format!("due_operations is {due}, late_starts {late_starts}: there is no rate"));
        };
        let longest = longest(self.latency_ns, self.latency_counts).unwrap_or(0);
        let most = schedule.all_due_within(elapsed_ns);
        let least_ns = (elapsed_ns as f64 * SCHEDULE_SHARE) as u64;
        let least = schedule.all_due_within(least_ns.saturating_sub(longest));
        if due > most || due < least {
            return Some(format!(
                "due_operations is {due}: at {} reads or records a second, {least} to {most} are due in {elapsed_ns} ns",
                schedule.rate.per_second()
            ));
        }
        (operations > due || late_starts > operations).then(|| {
            format!("{operations} operations were done, {late_starts} of them begun late, and {due} were due")
        })
    }

    /// The phases on the worker's clock fit into what passed between `go` and `sample` outside, and
    /// nearly fill it.
    pub fn false_elapsed(&self, wall_ns: u64, answer_ns: u64) -> Option<String> {
        let what = "elapsed_ns + latency_elapsed_ns";
        false_time(what, self.all_ns(), wall_ns, wall_slack(wall_ns, answer_ns))
    }
}

/// The longest duration of a histogram; `None` if it is empty.
fn longest(ends: &[u64], counts: &[u64]) -> Option<u64> {
    ends.iter().zip(counts).filter(|(_, count)| **count > 0).map(|(upper_ns, _)| *upper_ns).max()
}

/// The fault of a histogram whose fields are `NAME_ns` and `NAME_counts`.
fn wrong_histogram(name: &str, ends: &[u64], counts: &[u64]) -> Option<String> {
    if ends.len() != counts.len() {
        return Some(format!(
            "{name}_ns has {} entries, {name}_counts {}: one count for each bucket",
            ends.len(),
            counts.len()
        ));
    }
    (!ends.is_sorted_by(|left, right| left < right)).then(|| format!("{name}_ns is not ascending"))
}

/// Time that may be missing from a wall time if an answer takes `answer_ns`.
pub fn wall_slack(wall_ns: u64, answer_ns: u64) -> u64 {
    let share = (wall_ns as f64 * WALL_SLACK_SHARE) as u64;
    answer_ns.saturating_add(WALL_SLACK_NS).saturating_add(share)
}

/// A time by the worker's clock fits into what passed outside, and leaves no more of it out than
/// `slack_ns`.
pub fn false_time(what: &str, claimed_ns: u64, wall_ns: u64, slack_ns: u64) -> Option<String> {
    if claimed_ns > wall_ns {
        return Some(format!(
            "{what} is {claimed_ns} ns, only {wall_ns} ns passed: use a monotonic clock, in nanoseconds"
        ));
    }
    let missing = wall_ns - claimed_ns;
    (missing > slack_ns).then(|| {
        format!(
            "{what} is {} of the {} that passed: {} are not accounted for, {} may be",
            time(claimed_ns as f64),
            time(wall_ns as f64),
            time(missing as f64),
            time(slack_ns as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked = Asked {
        threads: 2,
        op_bytes: 10,
        all_bytes: None,
        operations: None,
        stages: false,
        depth: 1,
        is_filled: true,
        schedule: None,
        is_whole: false,
        sync: Sync::None,
        writes_sync: false,
        write_bytes: 10,
    };

    fn honest() -> SampleReply {
        SampleReply {
            operations: 10,
            elapsed_ns: 1000,
            latency_operations: 5,
            latency_elapsed_ns: 500,
            thread_operations: vec![8, 7],
            bytes: 150,
            checksum: "00000000000000ff".to_string(),
            latency_ns: vec![90, 110],
            latency_counts: vec![4, 1],
            ..SampleReply::default()
        }
    }

    fn wrong(sample: &SampleReply, asked: &Asked) -> Option<String> {
        let claims = sample.claims();
        let numbers = claims.wrong_operations(asked).or_else(|| claims.wrong_latencies(asked));
        numbers.or_else(|| claims.false_latencies(asked, 0)).or_else(|| claims.false_elapsed(2000, 0))
    }

    #[track_caller]
    fn is_wrong(change: impl FnOnce(&mut SampleReply), what: &str) {
        let mut sample = honest();
        change(&mut sample);
        let seen = wrong(&sample, &ASKED).expect(what);
        assert!(seen.starts_with(what), "'{what}' is not reported: {seen}");
    }

    #[test]
    fn each_number_that_is_wrong_is_reported() {
        assert_eq!(wrong(&honest(), &ASKED), None);
        is_wrong(|sample| sample.operations = 0, "operations is 0");
        is_wrong(|sample| sample.thread_operations = vec![15], "thread_operations has 1 entries");
        is_wrong(|sample| sample.thread_operations[0] += 1, "thread_operations [9, 7]");
        is_wrong(|sample| sample.bytes += 1, "bytes is 151");
        is_wrong(|sample| sample.elapsed_ns = 0, "elapsed_ns is 0");
        is_wrong(
            |sample| sample.elapsed_ns = 3000,
            "elapsed_ns + latency_elapsed_ns is 3500 ns, only 2000 ns passed",
        );
        is_wrong(|sample| sample.latency_elapsed_ns = 0, "latency_operations is 5");
        is_wrong(|sample| sample.latency_counts.push(0), "latency_ns has 2");
        is_wrong(|sample| sample.latency_ns.reverse(), "latency_ns is not ascending");
        is_wrong(|sample| sample.latency_counts[0] += 1, "latency_counts add up to 6");
        is_wrong(|sample| sample.latency_ns[1] = 600, "an operation took 600 ns");
        is_wrong(|sample| sample.stalls = 1, "stalls is 1");
        is_wrong(|sample| (sample.stalls, sample.stall_longest_ns) = (1, 1001), "stall_longest_ns is 1001");
    }

    #[test]
    fn what_was_due_is_what_the_schedule_says() {
        // 100 operations in a region of 1 ms.
        let schedule = RateSchedule { rate: "100k".parse().expect("a rate"), reads_per_op: 1, threads: 2 };
        let asked = Asked { schedule: Some(schedule), ..ASKED };
        let honest = SampleReply {
            operations: 100,
            due_operations: 100,
            elapsed_ns: 1_000_000,
            thread_operations: vec![50, 50],
            bytes: 1000,
            latency_ns: vec![1_000],
            latency_counts: vec![100],
            ..SampleReply::default()
        };
        let wrong = |change: fn(&mut SampleReply), asked: &Asked| {
            let mut sample = honest.clone();
            change(&mut sample);
            let claims = sample.claims();
            let numbers = claims.wrong_schedule(asked).or_else(|| claims.wrong_operations(asked));
            numbers.or_else(|| claims.wrong_latencies(asked)).or_else(|| claims.false_latencies(asked, 0))
        };
        assert_eq!(wrong(|_| (), &asked), None);
        assert_eq!(wrong(|sample| sample.elapsed_ns = 1_009_000, &asked), None, "late ones were done");
        let is_wrong = |change, what: &str| {
            let seen = wrong(change, &asked).expect(what);
            assert!(seen.starts_with(what), "'{what}' is not reported: {seen}");
        };
        is_wrong(|sample| sample.elapsed_ns = 1_100_000, "due_operations is 100: at 100000 reads or records");
        is_wrong(|sample| sample.elapsed_ns = 900_000, "due_operations is 100");
        is_wrong(|sample| sample.due_operations = 0, "due_operations is 0");
        is_wrong(
            |sample| (sample.operations, sample.due_operations) = (101, 100),
            "101 operations were done",
        );
        is_wrong(|sample| sample.late_starts = 101, "100 operations were done, 101 of them begun late");
        is_wrong(|sample| sample.latency_counts[0] = 99, "latency_counts add up to 99");
        is_wrong(|sample| sample.latency_ns[0] = 1_100_000, "an operation took 1100000 ns");
        assert!(wrong(|_| (), &ASKED).is_some_and(|seen| seen.ends_with("there is no rate")));
        let waiting = |sample: &mut SampleReply| {
            (sample.operations, sample.thread_operations, sample.bytes) = (60, vec![30, 30], 600);
            sample.latency_ns[0] = 400_000;
        };
        assert_eq!(wrong(waiting, &asked), None, "operations wait for each other, some for ever");
        let late = |sample: &mut SampleReply| (sample.due_operations, sample.elapsed_ns) = (200, 2_000_000);
        let whole = Asked { is_whole: true, ..asked };
        assert_eq!(wrong(late, &whole), None, "all work was done, and each operation ended");
        assert!(wrong(late, &asked).is_some_and(|seen| seen.contains("200 operations were timed")));
    }

    #[test]
    fn work_that_is_done_once_is_not_done_twice() {
        let asked = |operations, stages| Asked { operations: Some(operations), stages, ..ASKED };
        assert!(wrong(&honest(), &asked(14, false)).is_some_and(|seen| seen.contains("the job has 14")));
        let staged = SampleReply { bytes: 140, ..honest() };
        assert_eq!(wrong(&staged, &asked(16, true)), None, "it ended early, and some is in a buffer");
        for asked in [asked(15, true), asked(16, false), ASKED] {
            assert!(wrong(&staged, &asked).is_some_and(|seen| seen.starts_with("bytes is 140")));
        }
    }

    #[test]
    fn syncs_are_as_many_as_were_due_and_fit_into_the_region() {
        let sync = Sync::Every(Bytes(40));
        let wrong = |ends: &[u64], counts: &[u64], asked: Asked| {
            let (sync_duration_ns, sync_duration_counts) = (ends.to_vec(), counts.to_vec());
            SampleReply { sync_duration_ns, sync_duration_counts, ..honest() }.claims().wrong_syncs(&asked)
        };
        let text = |ends: &[u64], counts: &[u64], asked: Asked| wrong(ends, counts, asked).expect("wrong");
        let every = Asked { sync, ..ASKED };
        assert_eq!(wrong(&[100, 200], &[2, 1], every), None, "150 bytes");
        let buffered = Asked { write_bytes: 30, ..every };
        assert_eq!(wrong(&[100], &[2], buffered), None, "after the second buffer of 30 bytes");
        assert!(text(&[100], &[1], buffered).contains("take at least 2"));
        let written = Asked { writes_sync: true, ..buffered };
        assert!(text(&[100], &[4], written).contains("take at least 5"));
        assert_eq!(wrong(&[100, 200], &[2, 2], every), None, "and the rest");
        assert_eq!(wrong(&[], &[], ASKED), None);
        assert!(
            text(&[100], &[2], every)
                .contains("150 bytes with one after the write with which 40B are full take at least 3")
        );
        assert!(text(&[100], &[1], ASKED).contains("no sync is due"));
        assert!(text(&[1021], &[3], every).starts_with("a sync took 1021 ns"));
        assert!(text(&[100], &[1 << 40], every).starts_with("the syncs add up"));
        assert!(text(&[100], &[], every).starts_with("sync_duration_ns has 1 entries"));
        let commit = Asked { sync: Sync::Commit, ..ASKED };
        assert_eq!(wrong(&[100], &[5], commit), None, "two records share a sync");
        assert!(text(&[100], &[4], commit).contains("10 records of 2 threads take at least 5"));
    }

    #[test]
    fn time_that_nobody_accounts_for_is_reported() {
        assert_eq!(false_time("x", 100, 120, 20), None);
        assert!(
            false_time("x", 100, 121, 20).is_some_and(|seen| seen.contains("21 ns are not accounted for"))
        );
        assert_eq!(wall_slack(200_000_000, 3), 20_000_003);
    }

    #[test]
    fn a_checksum_has_sixteen_digits() {
        assert_eq!(honest().checksum(), Ok(255));
        for text in ["ff", "", "00000000000000fg", "000000000000000ff"] {
            assert!(SampleReply { checksum: text.to_string(), ..honest() }.checksum().is_err(), "{text}");
        }
    }
}
