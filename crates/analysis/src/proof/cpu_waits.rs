//! Time that a sample lost because its threads waited for a CPU.
//!
//! The kernel counts for each thread how long it was runnable but not running. Where a worker's
//! clock leaves time out, that wait may be the reason: of the worker's threads, which were woken
//! late, or of the supervisor, which read the answer late. Such a wait accuses nobody, and proves
//! nothing either: the sample is [`Disturbed`](FailureKind::Disturbed).

use pagewise_model::{Access, Failure, FailureKind};

use super::subject::Subject;

/// Share of the ranked time that threads may wait for a CPU: as much as the hypervisor may take.
pub(super) const WAIT_SHARE: f64 = 0.20;
/// One time slice of another program, which a short sample may meet by chance.
pub(super) const SLICE_NS: u64 = 5_000_000;
/// Ticks in which the CPU time of each processor may begin and end.
const TICKS_NS: u64 = 20_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// A part that the worker and the supervisor both time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimedPart {
    /// From `open` to `ready`.
    Setup,
    /// From `idle` to `idled`.
    Idle,
    /// From `go` to `sample`.
    Measured,
    /// From `close` to `closed`.
    Teardown,
}

/// Times of a part by the supervisor's clock and the kernel's counters.
#[derive(Clone, Copy, Debug)]
struct Times {
    wall_ns: u64,
    cpu_ns: u64,
    /// Waits of the worker's threads, added up.
    worker_ns: u64,
    supervisor_ns: u64,
    /// CPU time that the kernel accounts to nobody: a hypervisor that does not report steal had it.
    unaccounted_ns: u64,
}

impl Subject<'_> {
    /// Times of a part; `None` if a wait is unknown, as in older run files and on kernels
    /// without schedstat.
    fn times(&self, part: TimedPart) -> Option<Times> {
        let evidence = self.evidence;
        let outside = match part {
            TimedPart::Measured => {
                return Some(Times {
                    wall_ns: evidence.wall_ns,
                    cpu_ns: evidence.cpu_ns?,
                    worker_ns: evidence.run_queue_ns?,
                    supervisor_ns: evidence.supervisor_run_queue_ns?,
                    unaccounted_ns: self.unaccounted_ns().unwrap_or(0),
                });
            }
            TimedPart::Setup => &evidence.before_ready,
            TimedPart::Idle => &evidence.idling,
            TimedPart::Teardown => &evidence.closing,
        };
        let outside = outside.as_ref()?;
        Some(Times {
            wall_ns: outside.wall_ns,
            cpu_ns: outside.cpu_ns?,
            worker_ns: outside.run_queue_ns?,
            supervisor_ns: outside.supervisor_run_queue_ns?,
            unaccounted_ns: 0,
        })
    }

    /// CPU time of the measured region that is neither used, idle nor stolen. Accounts are of all
    /// processors, so it is 0 where the worker may use only some of them.
    fn unaccounted_ns(&self) -> Option<u64> {
        let (host, cpus) = (&self.evidence.host, u64::from(self.context.cpus));
        let used = host.user_ns?.saturating_add(host.system_ns?).saturating_add(host.steal_ns?);
        let accounted = used.saturating_add(host.idle_ns?).saturating_add(host.wait_ns?);
        let passed = self.evidence.wall_ns.saturating_mul(cpus);
        Some(passed.saturating_sub(accounted).saturating_sub(cpus.saturating_mul(TICKS_NS)))
    }

    /// CPUs that the worker can use at once.
    fn cpus_at_once(&self) -> u64 {
        u64::from(self.cpus().min(self.threads_with_cpu_time()).max(1))
    }

    /// Threads whose CPU time counts as the worker's. The kernel's threads that serve a ring do,
    /// and those of a runtime: its collector, its compiler.
    pub(super) fn threads_with_cpu_time(&self) -> u32 {
        let (method, threads) = (&self.cell.method, self.cell.conditions.threads);
        match self.cell.access() {
            Access::Uring => self.context.cpus.max(threads),
            _ if method.worker().has_runtime() => self.context.cpus.max(threads),
            _ => threads.saturating_add(u32::from(method.pretouch().is_some())),
        }
    }

    /// Time of a part in which the worker did not have its CPUs. A worker whose own threads keep
    /// each other waiting has them, and a worker that ran all the time was not kept from running.
    fn without_cpu_ns(&self, times: Times) -> u64 {
        times.wall_ns.saturating_sub(times.cpu_ns / self.cpus_at_once())
    }

    /// Time of a part that waits for a CPU explain.
    pub(super) fn waited_ns(&self, part: TimedPart) -> u64 {
        let explained = |times: Times| {
            let waits = times.worker_ns.saturating_add(times.supervisor_ns);
            waits.saturating_add(times.unaccounted_ns).min(self.without_cpu_ns(times))
        };
        self.times(part).map_or(0, explained)
    }

    /// The waits of a part in words.
    pub(super) fn waits(&self, part: TimedPart) -> String {
        let Some(times) = self.times(part) else { return String::new() };
        let hidden = match times.unaccounted_ns / NS_PER_MS {
            0 => String::new(),
            ms => format!("; {ms} ms of CPU time are in no account, as if a hypervisor had them"),
        };
        format!(
            "threads of the worker waited {} ms in all for a CPU and the supervisor {} ms, within {} ms{hidden}",
            times.worker_ns / NS_PER_MS,
            times.supervisor_ns / NS_PER_MS,
            times.wall_ns / NS_PER_MS
        )
    }

    /// Time that each thread of the worker lost to other programs in a part. Threads that wait
    /// for each other lose nothing to others, and neither do those that wait for the kernel's
    /// threads that serve their device.
    fn lost_ns(&self, part: TimedPart, times: Times) -> u64 {
        let each = times.worker_ns / u64::from(self.cell.conditions.threads.max(1));
        let others = match part {
            TimedPart::Measured => self.others_cpu_ns().map_or(u64::MAX, |ns| ns / self.cpus_at_once()),
            _ => u64::MAX,
        };
        each.min(self.without_cpu_ns(times)).min(others)
    }

    /// CPU time of other programs in the measured region, in whole clock ticks.
    fn others_cpu_ns(&self) -> Option<u64> {
        let (host, evidence) = (&self.evidence.host, self.evidence);
        let user = host.user_ns?.saturating_sub(evidence.user_ns?);
        let system = host.system_ns?.saturating_sub(evidence.system_ns?);
        // The kernel's threads work for a device in its own time.
        let serves_device = self.is_writing() || self.device_flows();
        Some(if serves_device { user } else { user.saturating_add(system) })
    }
}

/// Operations of which one may begin late; one of a sample may in any case.
const LATE_STARTS_PART: u64 = 100;

/// Beginning of what is said of a busy machine, where no time of the worker is in doubt.
pub const CPU_OF_OTHERS: &str = "other programs held the CPU for";

/// A sample that other programs kept from its CPUs measures how busy the machine was.
pub(super) fn lacked_a_cpu(subject: &Subject<'_>) -> Option<String> {
    let ranked: &[TimedPart] = match subject.cell.conditions.is_one_shot() {
        true => &[TimedPart::Setup, TimedPart::Measured, TimedPart::Teardown],
        false => &[TimedPart::Measured],
    };
    let (mut wall_ns, mut lost_ns) = (0u64, 0u64);
    for part in ranked {
        let times = subject.times(*part)?;
        wall_ns = wall_ns.saturating_add(times.wall_ns);
        lost_ns = lost_ns.saturating_add(subject.lost_ns(*part, times));
    }
    // What a replay waits in gaps is no time of its reads, and no counter says where a CPU was
    // lost.
    let wall_ns = wall_ns.saturating_sub(subject.measurement.gaps_ns);
    let most = (wall_ns as f64 * WAIT_SHARE) as u64 + SLICE_NS;
    (lost_ns > most).then(|| {
        format!(
            "{CPU_OF_OTHERS} {} of {} ms of each thread, and {} ms may be",
            lost_ns / NS_PER_MS,
            wall_ns / NS_PER_MS,
            most / NS_PER_MS
        )
    })
}

/// Operations at a rate begin late without a cause in the method: their thread only waited.
pub(super) fn woken_late(subject: &Subject<'_>) -> Option<String> {
    let (late, due) = (subject.measurement.late_starts, subject.measurement.due_operations);
    (late > 1 && late.saturating_mul(LATE_STARTS_PART) > due).then(|| {
        format!("{late} of {due} operations began over 100 us late, though their thread only waited for them")
    })
}

/// A check that compares a time with a clock, given the time that waits for a CPU explain.
pub(super) type TimedCheck = fn(&Subject<'_>, u64) -> Option<String>;

/// Failure of a check of the times of a part: of its own kind, or disturbed if waits for a CPU
/// explain it.
pub(super) fn failure(
    subject: &Subject<'_>,
    kind: FailureKind,
    part: TimedPart,
    check: TimedCheck,
) -> Option<Failure> {
    let detail = check(subject, 0)?;
    Some(match check(subject, subject.waited_ns(part)) {
        Some(_) => Failure { kind, detail },
        None => {
            let detail = format!("{}: {detail}", subject.waits(part));
            Failure { kind: FailureKind::Disturbed, detail }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::failures;
    use crate::proof::honest::{self, append, cell, kinds};
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::FailureKind::{Disturbed, FalseTime, InconsistentCounts};
    use pagewise_model::sample::{Measurement, OutsideActivity};
    use pagewise_model::{Beating, Cell, CheckContext, Delays, Evidence, Heartbeat};

    const MS: u64 = 1_000_000;

    /// One thread that reads from memory for 150 ms by its clock, in this wall time.
    fn one_thread(method: &str) -> Cell {
        let mut cell = cell(method, Warm);
        cell.conditions.threads = 1;
        cell
    }

    /// The sample of [`one_thread`], with these waits and these CPU times of the worker and of
    /// other programs, in ms.
    fn found(method: &str, wall_ms: u64, [cpu, worker, supervisor, others]: [u64; 4]) -> Vec<FailureKind> {
        kinds(&one_thread(method), |measurement, evidence| {
            alone(measurement);
            set(evidence, wall_ms, [cpu, worker, supervisor, others]);
        })
    }

    /// The honest measurement as one of one thread.
    fn alone(measurement: &mut Measurement) {
        measurement.thread_operations = vec![160];
        measurement.latency_ns = vec![1_000_000, 1_500_000];
    }

    fn set(evidence: &mut Evidence, wall_ms: u64, [cpu, worker, supervisor, others]: [u64; 4]) {
        evidence.wall_ns = wall_ms * MS;
        evidence.cpu_ns = Some(cpu * MS);
        evidence.run_queue_ns = Some(worker * MS);
        evidence.supervisor_run_queue_ns = Some(supervisor * MS);
        (evidence.user_ns, evidence.system_ns) = (Some(cpu * MS), Some(0));
        (evidence.host.user_ns, evidence.host.system_ns) = (Some((cpu + others) * MS), Some(0));
    }

    #[test]
    fn time_waited_for_a_cpu_is_no_false_time() {
        assert_eq!(found("pread", 200, [145, 0, 0, 0]), [FalseTime], "nobody waited");
        assert_eq!(found("pread", 200, [145, 40, 0, 40]), [Disturbed], "the worker did");
        assert_eq!(found("pread", 200, [145, 0, 40, 40]), [Disturbed], "the supervisor did");
        assert_eq!(found("pread", 200, [145, 20, 20, 40]), [Disturbed], "both did");
        assert_eq!(found("pread", 200, [145, 20, 0, 40]), [FalseTime], "not as long as is missing");
        assert_eq!(found("pread", 155, [145, 5, 5, 10]), []);
        // More than passed is never a wait.
        assert_eq!(found("pread", 149, [145, 40, 40, 80]), [FalseTime]);
    }

    #[test]
    fn a_worker_that_ran_all_the_time_did_not_wait() {
        // Half of the time is left out. Its own threads keep each other waiting, or it says so of
        // others.
        for waits in [[300, 300, 0, 0], [300, 300, 300, 300]] {
            let half = kinds(&one_thread("pread"), |measurement, evidence| {
                alone(measurement);
                set(evidence, 300, waits);
            });
            assert_eq!(half, [FalseTime; 2], "{waits:?}: the CPU time shows it too");
        }
        // Threads of its own that spin on other CPUs and keep the supervisor waiting.
        assert_eq!(found("pread", 300, [600, 600, 150, 0]), [FalseTime, FalseTime]);
        // Two threads on one CPU wait for each other.
        let mut both = cell("pread", Warm);
        both.conditions.host_settings.cpus = Some("0".parse().expect("a CPU"));
        let waits = |wall_ms, numbers| {
            kinds(&both, move |_, evidence| {
                evidence.cpus_allowed = Some("0".to_string());
                set(evidence, wall_ms, numbers);
            })
        };
        assert_eq!(waits(151, [150, 150, 0, 0]), [], "that is what was asked for");
        assert_eq!(waits(300, [299, 299, 0, 0]), [FalseTime]);
    }

    #[test]
    fn a_sample_that_others_kept_from_the_cpu_is_disturbed() {
        // 150 ms on the worker's clock include its waits; 20 % and 5 ms of 151 ms are 35 ms.
        assert_eq!(found("pread", 151, [110, 35, 0, 200]), []);
        assert_eq!(found("pread", 151, [110, 36, 0, 200]), [Disturbed]);
        assert_eq!(found("pread", 151, [110, 36, 0, 10]), [], "others hardly ran");
        assert_eq!(found("pread", 151, [140, 36, 0, 200]), [], "it ran all the same");
        // Many threads share their CPUs, and wait for each other as they do.
        let mut many = cell("pread", Warm);
        many.conditions.threads = 16;
        let waits = |cpu, others| {
            kinds(&many, move |measurement, evidence| {
                measurement.thread_operations = vec![10; 16];
                set(evidence, 151, [cpu, 16 * 120, 0, others]);
            })
        };
        assert_eq!((waits(600, 10), waits(400, 300)), (vec![], vec![Disturbed]));
    }

    #[test]
    fn work_of_the_kernel_for_the_device_is_no_disturbance() {
        let system = |cache| {
            kinds(&cell("pread", cache), |_, evidence| {
                set(evidence, 151, [100, 150, 0, 0]);
                evidence.host.system_ns = Some(300 * MS);
            })
        };
        assert_eq!((system(Cold), system(Warm)), (vec![], vec![Disturbed]));
    }

    #[test]
    fn set_up_and_tear_down_may_be_kept_waiting_too() {
        let cell = append("pwrite", Cold);
        let waits = |waited: Option<u64>| {
            let part = move |wall_ms: u64| OutsideActivity {
                wall_ns: wall_ms * MS,
                cpu_ns: Some(MS),
                run_queue_ns: waited.map(|ms| ms * MS),
                supervisor_run_queue_ns: waited.map(|_| 0),
                ..OutsideActivity::default()
            };
            move |measurement: &mut Measurement, evidence: &mut Evidence| {
                (measurement.setup_ns, measurement.warmup_ns, measurement.teardown_ns) = (MS, 0, MS);
                (evidence.setup_wall_ns, evidence.warmup_wall_ns) = (Some(60 * MS), Some(0));
                evidence.teardown_wall_ns = Some(60 * MS);
                (evidence.before_ready, evidence.closing) = (Some(part(60)), Some(part(60)));
            }
        };
        assert_eq!(kinds(&cell, waits(None)), [FalseTime; 2], "an older run file");
        assert_eq!(kinds(&cell, waits(Some(2))), [FalseTime; 2]);
        assert_eq!(kinds(&cell, waits(Some(58))), [Disturbed; 2]);
    }

    #[test]
    fn run_files_and_kernels_without_the_waits_are_judged_without_them() {
        let without = |change: fn(&mut Evidence)| {
            kinds(&one_thread("pread"), |measurement, evidence| {
                alone(measurement);
                set(evidence, 200, [100, 90, 0, 200]);
                change(evidence);
            })
        };
        assert_eq!(without(|_| {}), [Disturbed; 2]);
        assert_eq!(without(|evidence| evidence.supervisor_run_queue_ns = None), [FalseTime]);
        assert_eq!(without(|evidence| evidence.run_queue_ns = None), [FalseTime]);
    }

    #[test]
    fn beats_that_got_no_cpu_are_disturbed() {
        let cell = one_thread("pread");
        let context =
            CheckContext { beating: Some(Beating { interval_ns: MS, idle_ns: 100 * MS }), ..honest::CONTEXT };
        let delays = |count| Delays { ns: vec![60_000], counts: vec![count] };
        let beating = |idle, busy, waited| {
            let mut measurement = honest::measurement();
            alone(&mut measurement);
            let mut evidence = honest::evidence(&cell);
            set(&mut evidence, 151, [60, waited, 0, 30]);
            evidence.idling = Some(OutsideActivity {
                wall_ns: 100 * MS,
                cpu_ns: Some(0),
                run_queue_ns: Some(waited * MS),
                supervisor_run_queue_ns: Some(0),
                ..OutsideActivity::default()
            });
            evidence.heartbeats =
                vec![Heartbeat { kind: "thread".into(), idle: delays(idle), busy: delays(busy) }];
            let failures = failures(&cell, &measurement, &evidence, &context);
            failures.into_iter().map(|failure| failure.kind).collect::<Vec<_>>()
        };
        assert_eq!(beating(95, 140, 0), []);
        assert_eq!(beating(95, 50, 0), [InconsistentCounts]);
        assert_eq!(beating(95, 50, 60), [Disturbed]);
        assert_eq!((beating(30, 140, 0), beating(30, 140, 60)), (vec![InconsistentCounts], vec![Disturbed]));
    }

    #[test]
    fn steal_that_a_hypervisor_does_not_report_is_no_false_time() {
        // Four processors for 200 ms; the ticks of each may be 20 ms off.
        let accounted = |idle| {
            kinds(&one_thread("pread"), move |measurement, evidence| {
                alone(measurement);
                set(evidence, 200, [100, 0, 0, 0]);
                (evidence.host.idle_ns, evidence.host.wait_ns) = (Some(idle * MS), Some(0));
                evidence.host.steal_ns = Some(0);
            })
        };
        assert_eq!((accounted(700), accounted(620)), (vec![FalseTime], vec![FalseTime]));
        assert_eq!((accounted(590), accounted(100)), (vec![Disturbed], vec![Disturbed]));
    }

    #[test]
    fn a_wait_is_reported_with_its_numbers() {
        let cell = one_thread("pread");
        let mut measurement = honest::measurement();
        alone(&mut measurement);
        let mut evidence = honest::evidence(&cell);
        set(&mut evidence, 200, [100, 61, 7, 200]);
        let found = failures(&cell, &measurement, &evidence, &honest::CONTEXT);
        let details: Vec<_> = found.iter().map(|failure| &*failure.detail).collect();
        assert_eq!(
            details,
            [
                "threads of the worker waited 61 ms in all for a CPU and the supervisor 7 ms, within 200 ms: elapsed_ns + \
                 latency_elapsed_ns is 150 ms of the 200 ms that passed: 50 ms are not accounted for, 20 ms may be",
                "other programs held the CPU for 61 of 200 ms of each thread, and 45 ms may be",
            ]
        );
    }
}
