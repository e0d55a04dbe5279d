//! Every check of one sample, as a list of pure functions.
//!
//! A worker reports its measurement; the supervisor records its own observations ([`Evidence`]). A
//! check compares the two with the cell's conditions and returns one sentence with the numbers if
//! it fails. An unknown value (`None`) fails a check only if nothing else proves the condition: no
//! evidence, no result.

use pagewise_model::sample::Measurement;
use pagewise_model::{Cell, CheckContext as Context, Evidence, Failure, FailureKind};

use super::cpu_waits::{self, TimedCheck, TimedPart};
use super::subject::Subject;
use super::{
    actors, as_recorded, claims, conditions, copies, expected, faults, gaps, heartbeats, mappings, outside,
    overrun, plausible, runtime, scans, settings, syncs, threads, writes,
};

/// A check: one sentence with the numbers if it fails.
type Check = fn(&Subject<'_>) -> Option<String>;

/// Checks of times, each with the part whose waits for a CPU may explain what it finds.
const TIMED_CHECKS: &[(FailureKind, TimedPart, TimedCheck)] = &[
    (FailureKind::FalseTime, TimedPart::Measured, claims::false_elapsed),
    (FailureKind::FalseTime, TimedPart::Setup, claims::false_setup),
    (FailureKind::FalseTime, TimedPart::Teardown, claims::false_teardown),
    (FailureKind::FalseTime, TimedPart::Measured, claims::false_latency),
    (FailureKind::FalseTime, TimedPart::Measured, outside::worked_while_waiting),
    (FailureKind::InconsistentCounts, TimedPart::Idle, heartbeats::not_beating_idle),
    (FailureKind::InconsistentCounts, TimedPart::Measured, heartbeats::not_beating),
];

const CHECKS: &[(FailureKind, Check)] = &[
    (FailureKind::WrongChecksum, claims::wrong_checksum),
    (FailureKind::InconsistentCounts, claims::checksum_unknown),
    (FailureKind::WrongBytes, claims::wrong_bytes),
    (FailureKind::FalseTime, claims::false_cpu_time),
    (FailureKind::FalseTime, outside::wrote_while_waiting),
    (FailureKind::Implausible, plausible::faster_than_memory),
    (FailureKind::InconsistentCounts, claims::inconsistent_operations),
    (FailureKind::InconsistentCounts, claims::inconsistent_latencies),
    (FailureKind::InconsistentCounts, claims::inconsistent_schedule),
    (FailureKind::InconsistentCounts, syncs::inconsistent_syncs),
    (FailureKind::InconsistentCounts, syncs::invented_durations),
    (FailureKind::InconsistentCounts, claims::inconsistent_windows),
    (FailureKind::InconsistentCounts, plausible::latencies_all_alike),
    (FailureKind::InconsistentCounts, heartbeats::malformed),
    (FailureKind::MissingReads, claims::missing_reads),
    (FailureKind::MissingReads, threads::idle_threads),
    (FailureKind::MissingReads, threads::reads_of_other_threads),
    (FailureKind::MissingWrites, writes::missing_writes),
    (FailureKind::LostRecords, writes::lost_records),
    (FailureKind::NotCold, conditions::not_cold),
    (FailureKind::NotCold, outside::read_before_go),
    (FailureKind::NotCold, scans::not_cold_before_setup),
    (FailureKind::NotCold, writes::not_new),
    (FailureKind::NotCold, writes::not_evicted),
    (FailureKind::NotWarm, conditions::not_warm),
    (FailureKind::NotWarm, scans::not_warm_before_setup),
    (FailureKind::NotWarm, writes::not_written_before),
    (FailureKind::NotWarm, writes::folios_not_small),
    (FailureKind::NotAsRecorded, as_recorded::not_as_recorded),
    (FailureKind::NotReleased, conditions::not_released),
    (FailureKind::ColdOverrun, overrun::cold_overrun),
    (FailureKind::ColdOverrun, scans::read_again),
    (FailureKind::NotInForce, conditions::advice_not_in_force),
    (FailureKind::NotInForce, conditions::not_mapped),
    (FailureKind::NotInForce, conditions::not_populated),
    (FailureKind::NotInForce, writes::not_preallocated),
    (FailureKind::NotInForce, writes::not_synced),
    (FailureKind::NotInForce, syncs::synced_late),
    (FailureKind::NotInForce, syncs::synced_bytes_missing),
    (FailureKind::NotInForce, syncs::not_flushed),
    (FailureKind::NotInForce, faults::not_prepared),
    (FailureKind::NotInForce, gaps::not_kept),
    (FailureKind::NotDirect, conditions::not_direct),
    (FailureKind::NotDirect, plausible::requests_missing),
    (FailureKind::NotDirect, writes::written_not_direct),
    (FailureKind::NotDirect, writes::read_between_not_direct),
    (FailureKind::Contaminated, conditions::contaminated),
    (FailureKind::Contaminated, writes::device_read_by_others),
    (FailureKind::Contaminated, writes::device_written_by_others),
    (FailureKind::Contaminated, plausible::in_flight_of_others),
    (FailureKind::Contaminated, conditions::cpu_stolen),
    (FailureKind::Contaminated, conditions::clock_stepped),
    (FailureKind::Contaminated, conditions::cold_start_lost_pages),
    (FailureKind::Disturbed, cpu_waits::lacked_a_cpu),
    (FailureKind::Disturbed, cpu_waits::woken_late),
    (FailureKind::Disturbed, gaps::ended_late),
    (FailureKind::LimitNotHeld, settings::limit_not_held),
    (FailureKind::ChargedToOtherCgroup, settings::charged_to_other_cgroup),
    (FailureKind::ChargedToOtherCgroup, settings::kept_elsewhere),
    (FailureKind::ChargedToOtherCgroup, actors::outside_group),
    (FailureKind::ActorAbsent, actors::absent),
    (FailureKind::NotSettled, settings::not_settled),
    (FailureKind::NotSettled, settings::capped_too_short),
    (FailureKind::NotSettled, runtime::not_practised),
    (FailureKind::SettingMismatch, settings::cap_mismatch),
    (FailureKind::SettingMismatch, settings::cap_not_held),
    (FailureKind::SettingMismatch, settings::cap_escaped),
    (FailureKind::SettingMismatch, settings::kernel_setting_mismatch),
    (FailureKind::SettingMismatch, settings::cpus_mismatch),
    (FailureKind::SettingMismatch, settings::placement_mismatch),
    (FailureKind::MethodContradicted, expected::method_contradicted),
    (FailureKind::MethodContradicted, claims::extra_reads),
    (FailureKind::MethodContradicted, outside::direct_read_before_go),
    (FailureKind::MethodContradicted, outside::called_before_go),
    (FailureKind::MethodContradicted, plausible::reads_ahead),
    (FailureKind::MethodContradicted, mappings::unasked_advice),
    (FailureKind::MethodContradicted, mappings::unasked_mapping),
    (FailureKind::MethodContradicted, mappings::unasked_lock),
    (FailureKind::MethodContradicted, copies::kept_copy),
    (FailureKind::MethodContradicted, scans::mapping_not_touched),
    (FailureKind::MethodContradicted, faults::wrong_write_faults),
    (FailureKind::MethodContradicted, writes::mapping_makes_calls),
];

/// All failures of the sample: those found while it was taken, and every check that fails. A sample
/// without failures is valid.
pub fn failures(
    cell: &Cell,
    measurement: &Measurement,
    evidence: &Evidence,
    context: &Context,
) -> Vec<Failure> {
    let subject = Subject { cell, measurement, evidence, context };
    let failed =
        |(kind, check): &(FailureKind, Check)| check(&subject).map(|detail| Failure { kind: *kind, detail });
    let failed_in_time = |(kind, part, check): &(FailureKind, TimedPart, TimedCheck)| {
        cpu_waits::failure(&subject, *kind, *part, *check)
    };
    let found = TIMED_CHECKS.iter().map(failed_in_time).chain(CHECKS.iter().map(failed));
    let found =
        found.enumerate().filter(|(position, _)| !is_off(*position)).filter_map(|(_, failure)| failure);
    evidence.observed.iter().cloned().chain(found).collect()
}

/// No check is ever turned off.
#[cfg(not(test))]
fn is_off(_: usize) -> bool {
    false
}

#[cfg(test)]
#[path = "../../mutations/off.rs"]
mod off;
#[cfg(test)]
use off::is_off;

#[cfg(test)]
pub(crate) mod honest;

#[cfg(test)]
#[path = "../../recorded/tests.rs"]
mod recorded;

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::{CacheState, MethodOption};

    const METHODS: [&str; 18] = [
        "mmap",
        "mmap:random",
        "mmap:random+prefetch",
        "mmap:random+prefetch=16",
        "mmap:sequential",
        "mmap:hugepage",
        "mmap:populate",
        "mmap:populate-read",
        "mmap:willneed",
        "mmap:in-place",
        "pread",
        "pread:random",
        "pread:sequential",
        "pread:direct",
        "pread:dontcache",
        "uring",
        "uring:direct+depth=1",
        "anonymous",
    ];

    #[test]
    fn the_documentation_has_every_check() {
        let documented = include_str!("../../../../docs/method/proof.md");
        let table = documented.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let documented: Vec<&str> = table.flat_map(|names| names.split(['`', ','])).map(str::trim).collect();
        for kind in FailureKind::ALL {
            assert!(documented.contains(&kind.name()), "{kind}");
        }
    }

    #[test]
    fn honest_samples_of_every_method_pass_under_every_condition() {
        for method in METHODS {
            for &cache in CacheState::ALL {
                let cells = [
                    honest::cell(method, cache),
                    honest::limited(method, cache, 320),
                    honest::limited(method, cache, 128),
                    honest::set(method, cache),
                ];
                for cell in cells {
                    assert_eq!(honest::kinds(&cell, |_, _| {}), [], "{}", cell.id());
                }
            }
        }
    }

    #[test]
    fn honest_samples_at_a_rate_pass_and_their_schedule_is_held() {
        for method in METHODS.iter().filter(|method| **method != "anonymous") {
            for cache in [CacheState::Warm, CacheState::Cold] {
                let cell = honest::at_rate(method, cache);
                assert_eq!(honest::kinds(&cell, |_, _| {}), [], "{}", cell.id());
            }
        }
        let cell = honest::at_rate("pread", CacheState::Warm);
        let kinds = |change: fn(&mut Measurement)| honest::kinds(&cell, |measurement, _| change(measurement));
        // Operations that were left out, though they were due.
        let left_out = |measurement: &mut Measurement| {
            measurement.due_operations = 150;
            measurement.latency_counts[0] -= 10;
        };
        assert_eq!(kinds(left_out), [FailureKind::InconsistentCounts]);
        assert_eq!(kinds(|measurement| measurement.late_starts = 2), [FailureKind::Disturbed]);
        assert_eq!(kinds(|measurement| measurement.late_starts = 1), []);
        let one_of_few = |measurement: &mut Measurement| {
            (measurement.operations, measurement.due_operations, measurement.late_starts) = (12, 12, 1);
            (measurement.thread_operations, measurement.latency_counts) = (vec![6, 6], vec![11, 1]);
            (measurement.measured_ns, measurement.cut_short) = (12_000_000, true);
        };
        assert!(!kinds(one_of_few).contains(&FailureKind::Disturbed), "one of few");
    }

    const SCANS: [&str; 21] = [
        "mmap",
        "mmap:random",
        "mmap:sequential",
        "mmap:willneed",
        "mmap:populate",
        "mmap:populate-read",
        "mmap:in-place",
        "mmap:buffer=4KiB",
        "read",
        "read:buffer=4KiB",
        "read:buffer=4MiB",
        "read:direct",
        "read:random",
        "pread:sequential",
        "pread:willneed",
        "pread:dontcache",
        "pread:direct+buffer=1MiB",
        "uring:depth=4",
        "uring:direct+depth=4",
        "uring:fixed",
        "anonymous",
    ];

    const WRITES: [&str; 24] = [
        "mmap",
        "mmap:buffer=4KiB",
        "mmap:prealloc",
        "mmap:populate",
        "mmap:populate+willneed",
        "mmap:populate+sequential",
        "mmap:prealloc+populate",
        "mmap:willneed",
        "mmap:sequential",
        "mmap:random",
        "mmap:touch",
        "mmap:touch+willneed",
        "mmap:populate-write",
        "mmap:hugepage+populate-write",
        "mmap:pretouch=1MiB",
        "mmap:lock",
        "pwrite",
        "pwrite:buffer=1MiB",
        "pwrite:direct+buffer=64KiB",
        "write:buffer=4KiB",
        "write:direct+buffer=64KiB",
        "uring:depth=8",
        "uring:depth=8+direct+buffer=64KiB",
        "anonymous",
    ];

    const UPDATES: [&str; 10] = [
        "mmap",
        "mmap:random",
        "mmap:populate",
        "mmap:populate-write",
        "pwrite",
        "pwrite:direct",
        "pwrite:dontcache",
        "uring:depth=8",
        "uring:depth=8+direct",
        "anonymous",
    ];

    /// Every honest cell of one-shot work.
    fn once() -> Vec<Cell> {
        type Make = fn(&str, CacheState) -> Cell;
        let kinds: [(Make, &[&str]); 4] = [
            (honest::scan, &SCANS),
            (honest::append, &WRITES),
            (honest::fill, &WRITES),
            (honest::update, &UPDATES),
        ];
        let of_cache = |cache| {
            kinds
                .iter()
                .flat_map(move |(make, methods)| methods.iter().map(move |method| make(method, cache)))
        };
        let small = UPDATES.iter().map(|method| honest::update(method, CacheState::WarmSmall));
        let reading = UPDATES.iter().map(|method| honest::reading(honest::update(method, CacheState::Cold)));
        let states = [CacheState::Cold, CacheState::Warm, CacheState::AsIs];
        states.into_iter().flat_map(of_cache).chain(small).chain(reading).collect()
    }

    #[test]
    fn honest_samples_of_work_that_is_done_once_pass() {
        for cell in once() {
            assert_eq!(honest::kinds(&cell, |_, _| {}), [], "{}", cell.id());
            let mut limited = cell.clone();
            limited.conditions.host_settings.memory_limit_bytes = Some(pagewise_model::Bytes::mib(128));
            assert_eq!(honest::kinds(&limited, |_, _| {}), [], "{}", limited.id());
            if cell.conditions.writes().is_none() {
                continue;
            }
            for sync in ["end", "every:64KiB"] {
                let cell = honest::synced(cell.clone(), sync);
                assert_eq!(honest::kinds(&cell, |_, _| {}), [], "{}", cell.id());
            }
        }
    }

    #[test]
    fn honest_writes_of_a_file_in_memory_pass() {
        let context = Context { memory_backed: true, ..honest::CONTEXT };
        for method in WRITES.iter().filter(|method| !method.contains("direct")) {
            let cell = honest::fill(method, CacheState::Cold);
            let in_memory = |_: &mut _, evidence: &mut Evidence| {
                let prepared = cell.method.has(MethodOption::Populate) || cell.method.has(MethodOption::Lock);
                evidence.device_other_bytes = None;
                evidence.device_written_bytes = None;
                evidence.readahead_bytes = None;
                if let Some(written) = &mut evidence.written {
                    written.dirty_before_bytes = Some(0);
                    if prepared {
                        written.allocated_before_bytes = Some(16 << 20);
                        evidence.minor_faults = Some(3);
                    }
                }
            };
            assert_eq!(honest::kinds_in(&cell, &context, in_memory), [], "{}", cell.id());
        }
    }

    #[test]
    fn absurd_claims_of_work_that_is_done_once_are_refused_without_a_panic() {
        for cell in once() {
            let measurement = absurd();
            let found = failures(&cell, &measurement, &honest::evidence(&cell), &honest::CONTEXT);
            assert!(!found.is_empty(), "{}", cell.id());
            let evidence = Evidence {
                requested_bytes: u64::MAX,
                device_written_bytes: Some(u64::MAX),
                device_other_bytes: Some(u64::MAX),
                minor_faults: Some(u64::MAX),
                major_faults: Some(u64::MAX),
                ..honest::evidence(&cell)
            };
            assert!(!failures(&cell, &measurement, &evidence, &honest::CONTEXT).is_empty(), "{}", cell.id());
        }
    }

    fn absurd() -> Measurement {
        Measurement {
            measured_ns: u64::MAX,
            operations: u64::MAX,
            latency_phase_ns: u64::MAX,
            latency_phase_operations: u64::MAX,
            thread_operations: vec![u64::MAX, u64::MAX],
            latency_ns: vec![u64::MAX; 3],
            latency_counts: vec![u64::MAX; 3],
            ..Measurement::default()
        }
    }

    #[test]
    fn absurd_claims_are_refused_without_a_panic() {
        let measurement = absurd();
        for method in METHODS {
            for &cache in CacheState::ALL {
                let cells = [
                    honest::cell(method, cache),
                    honest::limited(method, cache, 128),
                    honest::set(method, cache),
                ];
                for cell in cells {
                    let found = failures(&cell, &measurement, &honest::evidence(&cell), &honest::CONTEXT);
                    assert!(!found.is_empty(), "{}", cell.id());
                }
            }
        }
    }
}
