//! Checks of the worker's claims: the bytes, the time, the counts, the calls.

use pagewise_model::{Access, CacheState, Cell, CheckContext};
use pagewise_protocol::claims::{false_time, wall_slack};

use super::subject::Subject;
use crate::statistics::total;

/// Multiple of the answer time that is allowed: the answer time is a median, and a cold worker is
/// slower than a warm one.
const ANSWERS: u64 = 3;
/// CPU time is read just before and after the wall time, and schedstat counts in ticks on some
/// kernels.
const CPU_SLACK_NS: u64 = 10_000_000;

/// The consumed bytes are not those at the offsets of the table, or between updates not the newest.
/// Writes alone have no checksum: they are read back.
pub(super) fn wrong_checksum(subject: &Subject<'_>) -> Option<String> {
    subject.cell.conditions.consume()?;
    let (found, expected) = (subject.evidence.checksum, subject.evidence.expected_checksum?);
    (expected != found)
        .then(|| format!("the bytes read have checksum {found:016x}, they must have {expected:016x}"))
}

/// More operations were claimed than there are: their checksum is unknown, and nothing else could
/// reveal that a cold block was read a second time.
pub(super) fn checksum_unknown(subject: &Subject<'_>) -> Option<String> {
    subject.evidence.expected_checksum.is_none().then(|| {
        format!(
            "threads claim {:?} operations, more than there are: the expected checksum is unknown",
            subject.measurement.thread_operations
        )
    })
}

/// Reads handed over after the clock stopped differ from the file, or none was handed over. Single
/// reads are those of the offset table.
pub(super) fn wrong_bytes(subject: &Subject<'_>) -> Option<String> {
    subject.cell.conditions.reads()?;
    let (verified, differing) = (subject.evidence.verified_reads, subject.evidence.differing_reads);
    if differing > 0 {
        return Some(format!("{differing} of {verified} reads compared byte for byte differ from the file"));
    }
    (verified == 0).then(|| "no read was compared byte for byte".to_string())
}

/// The phases on the worker's clock must fit into the time on the supervisor's, and nearly fill it.
pub(super) fn false_elapsed(subject: &Subject<'_>, waited_ns: u64) -> Option<String> {
    let answer = answer_slack(subject).saturating_add(waited_ns);
    subject.claims().false_elapsed(subject.evidence.wall_ns, answer)
}

/// Set-up on the worker's clock and on the supervisor's. Time between `opened` and `ready` is
/// set-up, reported as warm-up.
pub(super) fn set_up_ns(subject: &Subject<'_>) -> (u64, Option<u64>) {
    let (measurement, evidence) = (subject.measurement, subject.evidence);
    let claimed = total([&measurement.setup_ns, &measurement.warmup_ns, &measurement.ballast_ns]);
    let warmup_wall_ns = evidence.warmup_wall_ns.unwrap_or(0);
    (claimed, evidence.setup_wall_ns.map(|wall_ns| wall_ns.saturating_add(warmup_wall_ns)))
}

/// If the total is ranked, set-up on the worker's clock must fit too.
pub(super) fn false_setup(subject: &Subject<'_>, waited_ns: u64) -> Option<String> {
    let (claimed_ns, wall_ns) = set_up_ns(subject);
    false_part(subject, "setup_ns + warmup_ns", claimed_ns, wall_ns?, waited_ns)
}

/// So must tear-down.
pub(super) fn false_teardown(subject: &Subject<'_>, waited_ns: u64) -> Option<String> {
    let claimed = subject.measurement.teardown_ns;
    false_part(subject, "teardown_ns", claimed, subject.evidence.teardown_wall_ns?, waited_ns)
}

fn false_part(
    subject: &Subject<'_>,
    what: &str,
    claimed_ns: u64,
    wall_ns: u64,
    waited_ns: u64,
) -> Option<String> {
    let answer = answer_slack(subject).saturating_add(waited_ns);
    let is_ranked = subject.cell.conditions.is_one_shot();
    false_time(what, claimed_ns, wall_ns, wall_slack(wall_ns, answer)).filter(|_| is_ranked)
}

impl Subject<'_> {
    /// Time allowed for an answer outside the phases.
    pub(super) fn answer_slack(&self) -> u64 {
        answer_slack(self)
    }
}

/// Number of answers, one after another: threads that share a CPU wake so. The answer time was
/// measured with one thread.
pub(super) fn turns(cell: &Cell, context: &CheckContext) -> u64 {
    u64::from(cell.conditions.threads.div_ceil(cell.conditions.cpus(context.cpus)))
}

/// Time allowed for an answer. A runtime may have other work to do first. A cold start has an
/// answer for each window.
fn answer_slack(subject: &Subject<'_>) -> u64 {
    let answers = match subject.cell.conditions.cache {
        CacheState::ColdStart => subject.evidence.windows.len().max(1) as u64,
        _ => 1,
    };
    let answer = subject.context.answer_ns.saturating_mul(ANSWERS * turns(subject.cell, subject.context));
    answer.saturating_add(subject.allowance().answer_ns).saturating_mul(answers)
}

/// Threads cannot have used more CPU time than has passed. No wait for a CPU explains time that was
/// spent on one.
pub(super) fn false_cpu_time(subject: &Subject<'_>) -> Option<String> {
    let cpu = cpu_ns(subject)?;
    let threads = subject.threads_with_cpu_time();
    let most = (subject.worker_ns() as f64 * f64::from(threads) * 1.05) as u64;
    let slack = answer_slack(subject).saturating_add(CPU_SLACK_NS);
    (cpu > most.saturating_add(slack)).then(|| {
        let claimed = subject.worker_ns();
        format!("{threads} threads used {cpu} ns of CPU time in {claimed} ns by the worker's clock")
    })
}

/// Ticks of CPU time may begin before the region and end after it, in user mode and in the kernel.
const TICKS_NS: u64 = 20_000_000;

/// CPU time of the worker: the exact time of the live threads, or the time in ticks of all threads
/// it ever had, whichever is more.
fn cpu_ns(subject: &Subject<'_>) -> Option<u64> {
    let evidence = subject.evidence;
    let ticks = evidence
        .user_ns
        .zip(evidence.system_ns)
        .map(|(user, system)| user.saturating_add(system).saturating_sub(TICKS_NS));
    evidence.cpu_ns.max(ticks)
}

/// Latencies that do not fit into their phase.
pub(super) fn false_latency(subject: &Subject<'_>, waited_ns: u64) -> Option<String> {
    subject.claims().false_latencies(&subject.asked(), waited_ns)
}

/// Operations, threads and bytes must add up.
pub(super) fn inconsistent_operations(subject: &Subject<'_>) -> Option<String> {
    subject.claims().wrong_operations(&subject.asked())
}

/// So must latencies and stalls.
pub(super) fn inconsistent_latencies(subject: &Subject<'_>) -> Option<String> {
    subject.claims().wrong_latencies(&subject.asked())
}

/// At a rate, the operations that were due must be those of the schedule.
pub(super) fn inconsistent_schedule(subject: &Subject<'_>) -> Option<String> {
    subject.claims().wrong_schedule(&subject.asked())
}

/// The operations and times of a cold start's windows must add up to those of the sample.
pub(super) fn inconsistent_windows(subject: &Subject<'_>) -> Option<String> {
    if subject.cell.conditions.cache != CacheState::ColdStart {
        return None;
    }
    let windows = &subject.evidence.windows;
    if windows.is_empty() {
        return Some("a cold start without a window".to_string());
    }
    let operations: u128 = windows.iter().map(|window| u128::from(window.operations)).sum();
    let elapsed: u128 = windows.iter().map(|window| u128::from(window.elapsed_ns)).sum();
    let claimed = (u128::from(subject.operations()), u128::from(subject.worker_ns()));
    ((operations, elapsed) != claimed).then(|| {
        format!(
            "{} windows hold {operations} operations in {elapsed} ns, the sample {} in {} ns",
            windows.len(),
            claimed.0,
            claimed.1
        )
    })
}

/// The kernel counts the results of pread(2) and preadv2(2): `vfs_read` and `do_preadv` add to
/// rchar and syscr (fs/read_write.c). A mapping makes no calls, and io_uring's reads bypass these
/// counters (io_uring/rw.c calls `read_iter` itself), so this check applies only to `pread` and
/// `read`.
pub(super) fn missing_reads(subject: &Subject<'_>) -> Option<String> {
    let requested = match subject.cell.access() {
        Access::Pread | Access::Read => subject.evidence.requested_bytes,
        Access::Pwrite => subject.read_between_bytes().filter(|bytes| *bytes > 0)?,
        _ => return None,
    };
    if let Some(bytes) = subject.evidence.read_call_bytes.filter(|bytes| *bytes < requested) {
        return Some(format!("{bytes} bytes came through read calls, {requested} were requested"));
    }
    let reads = subject.reads();
    let calls = subject.evidence.read_calls.filter(|calls| *calls < reads)?;
    Some(format!("{calls} read calls were made for {reads} reads"))
}

/// Each access is requested once, so calls and bytes cannot exceed the reads either, except by this
/// share and by the worker's own reads.
const EXTRA_SHARE: f64 = 0.01;
/// Calls of a native worker and of a runtime on their own account.
const OWN_CALLS: u64 = 64;
const RUNTIME_CALLS: u64 = 2048;
/// Each thread of a cold sample checks the bytes that the device has delivered, at most once in
/// this time, by two calls for this many bytes.
const POLL_NS: u64 = 1_000_000;
const POLL_CALLS: u64 = 2;
const POLL_BYTES: u64 = 1024;

/// More calls, or more bytes through them, than reads: the called bytes are not the consumed ones.
pub(super) fn extra_reads(subject: &Subject<'_>) -> Option<String> {
    if subject.cell.access() != Access::Pread || subject.cell.conditions.reads().is_none() {
        return None;
    }
    let more =
        |count: u64, own: u64| count.saturating_add((count as f64 * EXTRA_SHARE) as u64).saturating_add(own);
    let cold = subject.cell.conditions.cache == CacheState::Cold;
    let polls = if cold { subject.evidence.wall_ns / POLL_NS + 1 } else { 0 };
    let polls = polls.saturating_mul(u64::from(subject.cell.conditions.threads));
    let asked = super::expected::widened(subject);
    let most = more(asked, subject.allowance().code_bytes.saturating_add(polls.saturating_mul(POLL_BYTES)));
    if let Some(bytes) = subject.evidence.read_call_bytes.filter(|bytes| *bytes > most) {
        return Some(format!(
            "{bytes} bytes came through read calls, {asked} were requested: each read is made once"
        ));
    }
    let own = if subject.cell.method.worker().has_runtime() { RUNTIME_CALLS } else { OWN_CALLS };
    let own = polls.saturating_mul(POLL_CALLS).saturating_add(own);
    let reads = subject.reads();
    let calls = subject.evidence.read_calls.filter(|calls| *calls > more(reads, own))?;
    Some(format!("{calls} read calls were made for {reads} reads: each read is made once"))
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{append, cell, fill, kinds};
    use pagewise_model::CacheState::{Cold, ColdStart, Warm};
    use pagewise_model::Evidence;
    use pagewise_model::FailureKind::{
        FalseTime, InconsistentCounts, MethodContradicted, MissingReads, WrongBytes, WrongChecksum,
    };

    #[test]
    fn other_bytes_are_noticed() {
        let cell = cell("pread", Warm);
        assert_eq!(kinds(&cell, |_, evidence| evidence.checksum += 1), [WrongChecksum]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.expected_checksum = None), [InconsistentCounts]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.differing_reads = 1), [WrongBytes]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.verified_reads = 0), [WrongBytes]);
    }

    #[test]
    fn a_clock_that_runs_slow_or_fast_is_noticed() {
        let cell = cell("pread", Warm);
        // Half of the time left out doubles the rate.
        assert_eq!(kinds(&cell, |measurement, _| measurement.measured_ns /= 2), [FalseTime]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.wall_ns = 149_000_000), [FalseTime]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.wall_ns = 167_000_000), []);
        assert_eq!(kinds(&cell, |_, evidence| evidence.wall_ns = 170_000_000), [FalseTime]);
    }

    #[test]
    fn latencies_that_leave_most_of_the_time_out_are_noticed() {
        let cell = cell("pread", Warm);
        let shrunk = kinds(&cell, |measurement, _| {
            measurement.latency_counts = vec![measurement.latency_counts.iter().sum()];
            measurement.latency_ns = vec![1];
        });
        assert_eq!(shrunk, [FalseTime]);
    }

    #[test]
    fn set_up_and_tear_down_are_timed_by_the_supervisor_too() {
        let cell = fill("mmap", Cold);
        let claims = |setup_ns, wall_ns| {
            kinds(&cell, |measurement, evidence| {
                measurement.setup_ns = setup_ns;
                evidence.setup_wall_ns = Some(wall_ns);
            })
        };
        assert_eq!((claims(50_000_000, 55_000_000), claims(0, 1_000_000)), (vec![], vec![]));
        assert_eq!(
            (claims(0, 50_000_000), claims(51_000_000, 50_000_000)),
            (vec![FalseTime], vec![FalseTime])
        );
        let until_ready = |warmup_ns| {
            kinds(&cell, move |measurement, evidence| {
                measurement.warmup_ns = warmup_ns;
                evidence.setup_wall_ns = Some(measurement.setup_ns + 1_000_000);
                evidence.warmup_wall_ns = Some(80_000_000);
            })
        };
        assert_eq!((until_ready(79_000_000), until_ready(0)), (vec![], vec![FalseTime]));
        let hidden = kinds(&cell, |measurement, evidence| {
            measurement.teardown_ns = 0;
            evidence.teardown_wall_ns = Some(80_000_000);
        });
        assert_eq!(hidden, [FalseTime]);
    }

    #[test]
    fn more_cpu_time_than_passed_is_noticed() {
        let busy =
            |method: &str, cpu_ns| kinds(&cell(method, Warm), |_, evidence| evidence.cpu_ns = Some(cpu_ns));
        assert_eq!(busy("pread", 320_000_000), []);
        assert_eq!(busy("pread", 330_000_000), [FalseTime]);
        assert_eq!(busy("uring", 600_000_000), [], "helper threads of the kernel count too");
        assert_eq!(busy("uring", 900_000_000), [FalseTime]);
    }

    #[test]
    fn latencies_longer_than_their_phase_are_noticed() {
        let slow = |method: &str, upper_ns| {
            kinds(&cell(method, Warm), |measurement, _| measurement.latency_ns = vec![1000, upper_ns])
        };
        assert_eq!(slow("pread", 11_000_000), []);
        assert_eq!(slow("pread", 12_000_000), [FalseTime]);
        assert_eq!(slow("uring:depth=8", 14_000_000), [], "eight are in flight");
        let stalled = |stall_longest_ns| {
            kinds(&cell("pread", Warm), |measurement, _| {
                measurement.stalls = 1;
                measurement.stall_longest_ns = stall_longest_ns;
            })
        };
        assert_eq!((stalled(99_000_000), stalled(101_000_000)), (vec![], vec![FalseTime]));
    }

    #[test]
    fn counts_that_do_not_add_up_are_noticed() {
        let cell = cell("mmap", Warm);
        assert_eq!(kinds(&cell, |measurement, _| measurement.operations += 1), [InconsistentCounts]);
        assert_eq!(
            kinds(&cell, |measurement, _| measurement.thread_operations[0] -= 1),
            [InconsistentCounts]
        );
        assert_eq!(
            kinds(&cell, |measurement, _| measurement.thread_operations = vec![160]),
            [InconsistentCounts]
        );
        assert_eq!(kinds(&cell, |_, evidence| evidence.requested_bytes -= 1), [InconsistentCounts]);
        assert_eq!(kinds(&cell, |measurement, _| measurement.latency_counts[0] -= 1), [InconsistentCounts]);
        assert_eq!(kinds(&cell, |measurement, _| measurement.latency_ns.reverse()), [InconsistentCounts]);
        assert_eq!(kinds(&cell, |measurement, _| measurement.stalls = 1), [InconsistentCounts]);
        assert!(
            kinds(&cell, |measurement, _| measurement.measured_ns = 0).contains(&InconsistentCounts),
            "no time"
        );
        assert!(
            kinds(&cell, |measurement, _| measurement.operations = 0).contains(&InconsistentCounts),
            "no operation"
        );
    }

    #[test]
    fn latency_may_be_taken_at_gaps_or_not_at_all() {
        let at_gaps = |counts: Vec<u64>| {
            kinds(&cell("mmap", Warm), |measurement, evidence| {
                measurement.operations = 160;
                measurement.measured_ns = 150_000_000;
                measurement.latency_phase_ns = 0;
                measurement.latency_phase_operations = 0;
                measurement.latency_ns.truncate(counts.len());
                measurement.latency_counts = counts;
                evidence.wall_ns = 151_000_000;
            })
        };
        assert_eq!(at_gaps(vec![]), []);
        assert_eq!(at_gaps(vec![4]), []);
        assert_eq!(at_gaps(vec![160, 1]), [InconsistentCounts]);
    }

    #[test]
    fn reads_that_were_not_made_are_noticed() {
        let pread = cell("pread:random", Warm);
        assert_eq!(
            kinds(&pread, |_, evidence| evidence.read_call_bytes = Some(evidence.requested_bytes - 1)),
            [MissingReads]
        );
        assert_eq!(kinds(&pread, |_, evidence| evidence.read_calls = Some(2559)), [MissingReads]);
        assert_eq!(kinds(&pread, |_, evidence| evidence.read_calls = None), []);
        assert_eq!(kinds(&cell("uring", Warm), |_, evidence| evidence.read_calls = Some(0)), []);
    }

    #[test]
    fn reads_that_nobody_asked_for_are_noticed() {
        for method in ["pread", "pread:random", "mine/pread", "go/pread", "pread:direct"] {
            let twice = |calls: u64, bytes: u64| {
                kinds(&cell(method, Warm), move |_, evidence| {
                    evidence.read_calls = evidence.read_calls.map(|made| made * calls);
                    evidence.read_call_bytes = evidence.read_call_bytes.map(|made| made * bytes);
                })
            };
            let native = !method.contains('/');
            assert_eq!(twice(1, 1), [], "{method}");
            assert_eq!(twice(1, 2), [MethodContradicted], "{method}");
            assert_eq!(twice(if native { 2 } else { 3 }, 1), [MethodContradicted], "{method}");
        }
    }

    #[test]
    fn more_and_fewer_records_than_the_work_are_distinguished() {
        for cell in [append("mmap", Cold), append("pwrite:buffer=4KiB", Warm), fill("uring", Cold)] {
            let record = cell.conditions.op_bytes();
            let one_more = kinds(&cell, |measurement, evidence| {
                measurement.operations += 1;
                measurement.thread_operations[0] += 1;
                evidence.requested_bytes += record;
            });
            assert_eq!(one_more, [InconsistentCounts], "{}", cell.id());
            let less = |_: &mut _, evidence: &mut Evidence| evidence.requested_bytes -= record;
            assert_eq!(
                kinds(&cell, less),
                [InconsistentCounts],
                "{}: all of it is said to be done",
                cell.id()
            );
            let fewer = kinds(&cell, |measurement, evidence| {
                measurement.operations -= 10;
                measurement.thread_operations[0] -= 10;
                evidence.requested_bytes -= 10 * record;
                evidence.written.as_mut().expect("read back").expected_bytes -= 10 * record;
            });
            assert_eq!(fewer, [], "{}: it is not ranked, but it is no lie", cell.id());
        }
    }

    #[test]
    fn an_operation_that_took_longer_than_the_sample_is_noticed() {
        let slowest = |upper_ns| {
            kinds(&append("mmap", Cold), |measurement, evidence| {
                measurement.measured_ns = 2_000_000;
                evidence.wall_ns = 3_000_000;
                evidence.cpu_ns = Some(2_000_000);
                measurement.latency_ns = vec![80, upper_ns];
                measurement.latency_counts = vec![990, 1];
            })
        };
        assert_eq!((slowest(2_040_000), slowest(2_050_000)), (vec![], vec![FalseTime]));
    }

    #[test]
    fn a_thread_that_runs_ahead_has_a_cpu_of_its_own() {
        let used =
            |method: &str| kinds(&fill(method, Cold), |_, evidence| evidence.cpu_ns = Some(190_000_000));
        assert_eq!((used("mmap:pretouch=1MiB"), used("mmap")), (vec![], vec![FalseTime]));
    }

    #[test]
    fn windows_that_do_not_add_up_are_noticed() {
        let cell = cell("pread", ColdStart);
        assert_eq!(kinds(&cell, |_, evidence| evidence.windows[0].operations += 1), [InconsistentCounts]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.windows[7].elapsed_ns -= 1), [InconsistentCounts]);
        assert_eq!(kinds(&cell, |_, evidence| evidence.windows.clear()), [InconsistentCounts]);
    }
}
