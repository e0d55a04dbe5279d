//! Whether one sample can be believed: every check as a pure function.
//!
//! A worker says what it measured; the supervisor says what it saw around it ([`Evidence`]). A check compares
//! the two with what the cell promises. Each returns one sentence with the numbers if it fails. What could
//! not be known (`None`) fails a check only where nothing else proves the condition: no evidence, no result.
//!
//! The checks of what the worker claims stand in [`claims`], those of the cache and the method's own options in
//! [`conditions`], those of limits and settings in [`settings`], and what a method's counters must show in
//! [`mod@expected`].

pub mod claims;
pub mod conditions;
pub mod expected;
pub mod settings;

use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Cell, Evidence, Failure, FailureKind};

pub use conditions::no_effect;
pub use expected::{EXPECTATIONS, Expected, expected};

/// What the checks must know of the machine and the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Size of a page.
    pub page_bytes: u64,
    /// CPUs that the worker may use.
    pub cpus: u32,
    /// What an honest worker takes on this machine between `go` and its answer beside the phases: it wakes
    /// threads and writes a line, which is milliseconds on a slow machine.
    pub answer_ns: u64,
    /// Whether the file has holes or is compressed, so that fewer bytes come from the device than are read.
    pub hidden_bytes: bool,
    /// Readahead of the device when the run began, which holds for cells that ask for none.
    pub readahead_bytes: Option<u64>,
}

/// One sample with all that a check looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) measurement: &'a Measurement,
    pub(crate) evidence: &'a Evidence,
    pub(crate) context: &'a Context,
}

/// A check: one sentence with the numbers if it fails.
type Check = fn(&Subject<'_>) -> Option<String>;

const CHECKS: &[(FailureKind, Check)] = &[
    (FailureKind::WrongChecksum, claims::wrong_checksum),
    (FailureKind::WrongBytes, claims::wrong_bytes),
    (FailureKind::FalseTime, claims::false_elapsed),
    (FailureKind::FalseTime, claims::false_cpu_time),
    (FailureKind::FalseTime, claims::false_latency),
    (FailureKind::InconsistentCounts, claims::inconsistent_operations),
    (FailureKind::InconsistentCounts, claims::inconsistent_latencies),
    (FailureKind::InconsistentCounts, claims::inconsistent_windows),
    (FailureKind::MissingReads, claims::missing_reads),
    (FailureKind::NotCold, conditions::not_cold),
    (FailureKind::NotWarm, conditions::not_warm),
    (FailureKind::ColdOverrun, conditions::cold_overrun),
    (FailureKind::NotInForce, conditions::advice_not_in_force),
    (FailureKind::NotInForce, conditions::not_populated),
    (FailureKind::NotDirect, conditions::not_direct),
    (FailureKind::Contaminated, conditions::contaminated),
    (FailureKind::Contaminated, conditions::cpu_stolen),
    (FailureKind::Contaminated, conditions::clock_stepped),
    (FailureKind::Contaminated, conditions::cold_start_lost_pages),
    (FailureKind::LimitNotHeld, settings::limit_not_held),
    (FailureKind::ChargedElsewhere, settings::charged_elsewhere),
    (FailureKind::NotSettled, settings::not_settled),
    (FailureKind::NotSettled, settings::capped_too_short),
    (FailureKind::NotAsSet, settings::cap_not_as_set),
    (FailureKind::NotAsSet, settings::cap_not_held),
    (FailureKind::NotAsSet, settings::cap_escaped),
    (FailureKind::NotAsSet, settings::readahead_not_as_set),
    (FailureKind::NotAsSet, settings::cpus_not_as_set),
    (FailureKind::NotAsSet, settings::placement_not_as_set),
    (FailureKind::ContradictsMethod, expected::contradicts_method),
];

/// Every check that the sample fails; none makes it valid.
pub fn failures(
    cell: &Cell,
    measurement: &Measurement,
    evidence: &Evidence,
    context: &Context,
) -> Vec<Failure> {
    let subject = Subject { cell, measurement, evidence, context };
    CHECKS
        .iter()
        .filter_map(|(kind, check)| check(&subject).map(|detail| Failure { kind: *kind, detail }))
        .collect()
}

impl Subject<'_> {
    /// Operations of both phases. Saturating, as the worker may claim anything.
    pub(crate) fn operations(&self) -> u64 {
        self.measurement.operations.saturating_add(self.measurement.latency_phase_operations)
    }

    /// Both phases on the worker's clock.
    pub(crate) fn worker_ns(&self) -> u64 {
        self.measurement.measured_ns.saturating_add(self.measurement.latency_phase_ns)
    }

    /// Bytes that the device delivered to the worker: as its process counts them, or as its group does.
    pub(crate) fn device_bytes(&self) -> Option<u64> {
        let of_group = self.evidence.group.as_ref().and_then(|group| group.device_read_bytes);
        self.evidence.device_read_bytes.or(of_group)
    }

    /// Whether the device delivers more than nothing of what is asked for.
    pub(crate) fn device_flows(&self) -> bool {
        self.device_bytes().is_some_and(|read| read > self.evidence.requested_bytes / 100)
    }

    /// Whether the sample runs on a cache that cannot hold the span, and was warmed as far as that goes.
    pub(crate) fn is_warm_above_memory(&self) -> bool {
        let conditions = &self.cell.conditions;
        conditions.cache == CacheState::Warm && !conditions.fits_memory() && self.cell.depends_on_cache()
    }

    /// CPUs that the threads of the worker can use at once.
    pub(crate) fn cpus_used(&self) -> u64 {
        u64::from(self.cpus().min(self.cell.conditions.threads).max(1))
    }

    /// CPUs that the worker may use.
    pub(crate) fn cpus(&self) -> u32 {
        let set = self.cell.conditions.surroundings.cpus.as_ref().map(|cpus| cpus.numbers().len() as u32);
        set.map_or(self.context.cpus, |set| set.min(self.context.cpus)).max(1)
    }

    /// Reads of both phases.
    pub(crate) fn reads(&self) -> u64 {
        self.operations().saturating_mul(u64::from(self.cell.conditions.reads_per_op))
    }
}

/// `part` of `whole` as a percentage with one decimal.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
pub(crate) mod honest {
    //! Honest samples, for tests to make one thing wrong with.

    use super::*;
    use pagewise_model::sample::Placement;
    use pagewise_model::{
        Bytes, Conditions, Consume, Descriptor, DeviceCap, GroupCounters, Numa, Role, Surroundings, Window,
        Workload,
    };

    pub(crate) const CONTEXT: Context =
        Context { page_bytes: 4096, cpus: 4, answer_ns: 0, hidden_bytes: false, readahead_bytes: None };

    /// A cell that reads 16 KiB sixteen times an operation, from 256 MiB, on two threads.
    pub(crate) fn cell(method: &str, cache: CacheState) -> Cell {
        let method = match method {
            "anonymous" => pagewise_model::Method::anonymous(),
            text => text.parse().expect(text),
        };
        Cell {
            role: Role::Measured,
            method,
            conditions: Conditions {
                workload: Workload::RandomRead,
                threads: 2,
                file_bytes: Bytes::mib(256),
                span_bytes: Bytes::mib(256),
                cache,
                descriptor: Descriptor::Shared,
                read_bytes: Bytes::kib(16),
                reads_per_op: 16,
                align_bytes: Bytes::kib(16),
                skew: pagewise_model::Skew::Uniform,
                dependent: false,
                consume: Consume::Touch,
                surroundings: pagewise_model::Surroundings::default(),
            },
        }
    }

    /// The same cell with a memory limit: `mib` of 256 MiB, so that the span fits or does not.
    pub(crate) fn limited(method: &str, cache: CacheState, mib: u64) -> Cell {
        let mut cell = cell(method, cache);
        cell.conditions.surroundings.memory_limit_bytes = Some(Bytes::mib(mib));
        cell
    }

    /// The same cell with every other setting.
    pub(crate) fn set(method: &str, cache: CacheState) -> Cell {
        let mut cell = cell(method, cache);
        cell.conditions.surroundings = Surroundings {
            memory_limit_bytes: None,
            device_cap: Some("read-iops=2000,read-bandwidth=50MiB/s".parse::<DeviceCap>().expect("a cap")),
            readahead_bytes: Some(Bytes::kib(128)),
            cpus: Some("0-1,3".parse().expect("CPUs")),
            numa: Some(Numa::Other),
        };
        cell
    }

    /// 120 operations in 100 ms, and 40 in a latency phase of 50 ms: 40 MiB in all.
    pub(crate) fn measurement() -> Measurement {
        Measurement {
            setup_ns: 50_000,
            measured_ns: 100_000_000,
            operations: 120,
            teardown_ns: 9_000,
            latency_phase_ns: 50_000_000,
            latency_phase_operations: 40,
            thread_operations: vec![81, 79],
            latency_ns: vec![1_500_000, 2_000_000],
            latency_counts: vec![30, 10],
            ..Measurement::default()
        }
    }

    /// The same operations in eight windows of 20 ms: the last five are steady.
    pub(crate) fn cold_start() -> Measurement {
        Measurement {
            measured_ns: 160_000_000,
            operations: 160,
            latency_phase_ns: 0,
            latency_phase_operations: 0,
            latency_ns: Vec::new(),
            latency_counts: Vec::new(),
            ..measurement()
        }
    }

    /// What an honest worker says of `cell`.
    pub(crate) fn measurement_of(cell: &Cell) -> Measurement {
        match (cell.conditions.cache, cell.conditions.surroundings.device_cap) {
            (CacheState::ColdStart, _) => cold_start(),
            (_, None) => measurement(),
            // Under a cap a sample is long, and has no latency phase.
            (_, Some(_)) => Measurement { measured_ns: 1_050_000_000, ..cold_start() },
        }
    }

    /// What of the span is in the page cache before and after, and what the device delivers.
    fn cached(cell: &Cell) -> (u64, u64, u64) {
        let requested = 160 * cell.conditions.op_bytes();
        let span = cell.conditions.span_bytes.0;
        let holds = cell.conditions.cache_capacity().map_or(span, |capacity| capacity.0.min(span));
        let populated = cell.method.reads_all_in_setup();
        match (cell.conditions.cache, cell.depends_on_cache()) {
            (_, false) => (0, 0, if cell.method.is_direct() { requested } else { 0 }),
            (CacheState::Cold, _) if !populated => (0, requested, requested),
            (CacheState::ColdStart, _) if !populated => (0, requested / 2, requested / 2),
            (CacheState::Warm, _) if !cell.conditions.fits_memory() => (holds, holds, requested / 2),
            _ => (holds, holds, 0),
        }
    }

    fn windows(cell: &Cell, device_bytes: u64) -> Vec<Window> {
        let window = |operations, device_read_bytes, resident_bytes| Window {
            elapsed_ns: 20_000_000,
            operations,
            device_read_bytes: Some(device_read_bytes),
            resident_bytes: Some(resident_bytes),
        };
        match cell.conditions.cache {
            CacheState::ColdStart => {
                let third = device_bytes / 3;
                let filling = [window(10, third, third), window(10, third, 2 * third)];
                let full = window(20, device_bytes - 2 * third, device_bytes);
                filling.into_iter().chain([full]).chain([window(24, 0, device_bytes); 5]).collect()
            }
            CacheState::Warm if !cell.conditions.fits_memory() => vec![window(160, device_bytes, 1 << 27); 3],
            _ => Vec::new(),
        }
    }

    fn group(cell: &Cell, resident: u64, device_bytes: u64) -> Option<GroupCounters> {
        let surroundings = &cell.conditions.surroundings;
        let limit = surroundings.memory_limit_bytes.map(|limit| limit.0);
        let file = if cell.depends_on_cache() { resident } else { 0 };
        let taken = limit
            .zip(cell.conditions.cache_capacity())
            .map_or(3 << 20, |(limit, capacity)| limit - capacity.0);
        surroundings.needs_group().then(|| GroupCounters {
            version: "v2".to_string(),
            limit_bytes: limit,
            peak_bytes: Some(limit.unwrap_or(file + taken)),
            usage_bytes: Some(file + taken),
            file_bytes: Some(file),
            cap_read_iops: surroundings.device_cap.and_then(|cap| cap.read_iops),
            cap_read_bytes_per_second: surroundings
                .device_cap
                .and_then(|cap| cap.read_bytes_per_second)
                .map(|bytes| bytes.0),
            device_read_bytes: Some(device_bytes),
            ..GroupCounters::default()
        })
    }

    /// What the supervisor sees of `cell` doing so.
    pub(crate) fn evidence(cell: &Cell) -> Evidence {
        let requested = 160 * cell.conditions.op_bytes();
        let by_calls = cell.method.access() == pagewise_model::Access::Pread;
        let by_page = expected(&cell.method).major_faults == expected::MajorFaults::OnePerPage;
        let (before, after, device_bytes) = cached(cell);
        let surroundings = &cell.conditions.surroundings;
        Evidence {
            wall_ns: {
                let measurement = measurement_of(cell);
                measurement.measured_ns + measurement.latency_phase_ns + 1_000_000
            },
            requested_bytes: requested,
            device_read_bytes: Some(device_bytes),
            device_other_bytes: Some(0),
            device_read_requests: Some(if device_bytes > 0 { 2560 } else { 0 }),
            read_call_bytes: Some(if by_calls { requested + 20 } else { 20 }),
            read_calls: Some(if by_calls { 2561 } else { 1 }),
            minor_faults: Some(12),
            major_faults: Some(if by_page { device_bytes / CONTEXT.page_bytes } else { 0 }),
            cpu_ns: Some(120_000_000),
            resident_before_bytes: Some(before),
            resident_after_bytes: Some(after),
            residency_source: "cachestat".to_string(),
            huge_mapped_bytes: Some(after),
            mapping_flags: Some("rd sh mr mw me ms rr sr hg".to_string()),
            descriptor_direct: Some(cell.method.is_direct()),
            expected_checksum: Some(77),
            checksum: 77,
            verified_reads: 64,
            differing_reads: 0,
            steal_ns: Some(0),
            clock_step_ns: Some(0),
            group: group(cell, after, device_bytes),
            readahead_bytes: Some(surroundings.readahead_bytes.map_or(8 << 20, |bytes| bytes.0)),
            cpus_allowed: Some(surroundings.cpus.as_ref().map_or("0-3".to_string(), ToString::to_string)),
            placement: surroundings.numa.map(|numa| Placement {
                worker_node: 0,
                page_node: match numa {
                    Numa::Same => 0,
                    Numa::Other => 1,
                    Numa::Node(node) => node,
                },
                pages: 1000,
                pages_on_node: 1000,
            }),
            windows: windows(cell, device_bytes),
            ..Evidence::default()
        }
    }

    /// The one kind of failure that comes of changing an honest sample, or none.
    pub(crate) fn kinds(
        cell: &Cell,
        change: impl FnOnce(&mut Measurement, &mut Evidence),
    ) -> Vec<FailureKind> {
        kinds_in(cell, &CONTEXT, change)
    }

    pub(crate) fn kinds_in(
        cell: &Cell,
        context: &Context,
        change: impl FnOnce(&mut Measurement, &mut Evidence),
    ) -> Vec<FailureKind> {
        let (mut measurement, mut evidence) = (measurement_of(cell), evidence(cell));
        change(&mut measurement, &mut evidence);
        failures(cell, &measurement, &evidence, context).into_iter().map(|failure| failure.kind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::CacheState;

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
    fn absurd_claims_are_refused_without_a_panic() {
        let measurement = Measurement {
            measured_ns: u64::MAX,
            operations: u64::MAX,
            latency_phase_ns: u64::MAX,
            latency_phase_operations: u64::MAX,
            thread_operations: vec![u64::MAX, u64::MAX],
            latency_ns: vec![u64::MAX; 3],
            latency_counts: vec![u64::MAX; 3],
            ..Measurement::default()
        };
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
