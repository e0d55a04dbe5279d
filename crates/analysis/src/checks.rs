//! Whether one sample can be believed: every check as a pure function.
//!
//! A worker says what it measured; the supervisor says what it saw around it ([`Evidence`]). A check compares
//! the two with what the cell promises. Each returns one sentence with the numbers if it fails. What could
//! not be known (`None`) fails a check only where nothing else proves the condition: no evidence, no result.
//!
//! The checks of what the worker claims stand in [`claims`], those of the condition and the method in
//! [`conditions`].

pub mod claims;
pub mod conditions;

use pagewise_model::sample::Measurement;
use pagewise_model::{Cell, Evidence, Failure, FailureKind};

pub use conditions::no_effect;

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
    (FailureKind::MissingReads, claims::missing_reads),
    (FailureKind::NotCold, conditions::not_cold),
    (FailureKind::NotWarm, conditions::not_warm),
    (FailureKind::ColdOverrun, conditions::cold_overrun),
    (FailureKind::NotInForce, conditions::advice_not_in_force),
    (FailureKind::NotInForce, conditions::not_populated),
    (FailureKind::NotDirect, conditions::not_direct),
    (FailureKind::Contaminated, conditions::contaminated),
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
    use pagewise_model::{Bytes, CacheState, Conditions, Consume, Descriptor, Role, Workload};

    pub(crate) const CONTEXT: Context =
        Context { page_bytes: 4096, cpus: 4, answer_ns: 0, hidden_bytes: false };

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

    /// What the supervisor sees of `cell` doing so.
    pub(crate) fn evidence(cell: &Cell) -> Evidence {
        let requested = 160 * cell.conditions.op_bytes();
        let from_device = cell.method.is_direct()
            || (cell.depends_on_cache()
                && cell.conditions.cache == CacheState::Cold
                && !cell.method.reads_all_in_setup());
        let by_calls = cell.method.access() == pagewise_model::Access::Pread;
        let span = cell.conditions.span_bytes.0;
        let (before, after) = match cell.conditions.cache {
            CacheState::Cold if cell.method.reads_all_in_setup() => (span, span),
            CacheState::Cold => (0, requested),
            _ => (span, span),
        };
        Evidence {
            wall_ns: 151_000_000,
            requested_bytes: requested,
            device_read_bytes: Some(if from_device { requested } else { 0 }),
            device_other_bytes: Some(0),
            device_read_requests: Some(if from_device { 2560 } else { 0 }),
            read_call_bytes: Some(if by_calls { requested + 20 } else { 20 }),
            read_calls: Some(if by_calls { 2561 } else { 1 }),
            minor_faults: Some(12),
            major_faults: Some(0),
            cpu_ns: Some(120_000_000),
            resident_before_bytes: Some(before),
            resident_after_bytes: Some(after),
            residency_source: "cachestat".to_string(),
            huge_mapped_bytes: Some(span),
            mapping_flags: Some("rd sh mr mw me ms rr sr hg".to_string()),
            descriptor_direct: Some(cell.method.is_direct()),
            expected_checksum: Some(77),
            checksum: 77,
            verified_reads: 64,
            differing_reads: 0,
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
        let (mut measurement, mut evidence) = (measurement(), evidence(cell));
        change(&mut measurement, &mut evidence);
        failures(cell, &measurement, &evidence, context).into_iter().map(|failure| failure.kind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::CacheState;

    #[test]
    fn honest_samples_of_every_method_pass() {
        let methods = [
            "mmap",
            "mmap:random",
            "mmap:sequential",
            "mmap:hugepage",
            "mmap:populate",
            "mmap:willneed",
            "mmap:in-place",
            "pread",
            "pread:random",
            "pread:direct",
            "pread:dontcache",
            "uring",
            "uring:direct+depth=1",
            "anonymous",
        ];
        for method in methods {
            for cache in CacheState::ALL {
                let cell = honest::cell(method, *cache);
                let found =
                    failures(&cell, &honest::measurement(), &honest::evidence(&cell), &honest::CONTEXT);
                assert_eq!(found, [], "{method} {cache}");
            }
        }
    }

    #[test]
    fn absurd_claims_are_refused_without_a_panic() {
        let cell = honest::cell("pread", CacheState::Warm);
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
        let found = failures(&cell, &measurement, &honest::evidence(&cell), &honest::CONTEXT);
        assert!(!found.is_empty());
    }
}
