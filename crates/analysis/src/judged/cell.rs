//! One cell of the judged JSON: its figures as medians over rounds, with what limited it.

use std::collections::BTreeMap;

use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Conditions, Consume, Descriptor, Evidence, MethodOption, Role, Workload,
};
use serde::Serialize;

use crate::bound::{Activity, BoundName, Ceilings};
use crate::collected::{CellSamples, ops_per_second};
use crate::latency::Latency;
use crate::statistics::{median, median_count, median_interval};

/// Coverage of the intervals that are shown.
pub const SHOWN_LEVEL: f64 = 0.95;

/// Whether a cell has figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// At least one valid sample.
    Ok,
    /// Samples, none of them valid.
    Invalid,
    /// The machine does not offer it, or the run ended before it.
    Unavailable,
}

impl Status {
    /// The word in tables and in the judged JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Invalid => "invalid",
            Status::Unavailable => "unavailable",
        }
    }
}

/// A median over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MedianInterval {
    /// The median.
    pub median: f64,
    /// Lower end of an interval that covers it with at least 95 %; `None` with fewer than six samples.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl MedianInterval {
    fn of(values: &[f64]) -> Option<Self> {
        let interval = median_interval(values, SHOWN_LEVEL);
        Some(Self {
            median: median(values)?,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        })
    }
}

/// The conditions that are not fields of the cell itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// Size of one read.
    pub read_bytes: Bytes,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// Offsets are multiples of this.
    pub align_bytes: Bytes,
    /// What is done with the bytes.
    pub consume: Consume,
    /// Who owns the open file.
    pub descriptor: Descriptor,
}

impl Parameters {
    pub(crate) fn of(conditions: &Conditions) -> Self {
        Self {
            read_bytes: conditions.read_bytes,
            reads_per_op: conditions.reads_per_op,
            align_bytes: conditions.align_bytes,
            consume: conditions.consume,
            descriptor: conditions.descriptor,
        }
    }
}

/// One cell with its figures. They are `None` unless the status is ok.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellJudgement {
    /// [`pagewise_model::Cell::id`].
    pub id: String,
    /// Why it is in the run.
    pub role: Role,
    /// Which accesses.
    pub workload: Workload,
    /// Canonical text of the method.
    pub method: String,
    /// The worker that performed it.
    pub worker: &'static str,
    /// The way in which bytes move.
    pub access: &'static str,
    /// What modifies it: true, or a number.
    pub options: BTreeMap<&'static str, OptionValue>,
    /// Threads that read.
    pub threads: u32,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// The part of it that is read.
    pub span_bytes: Bytes,
    /// Limit of memory; `None` without one.
    pub memory_limit_bytes: Option<Bytes>,
    /// Page cache at the start.
    pub cache: CacheState,
    /// The other conditions.
    pub parameters: Parameters,
    /// Whether it has figures.
    pub status: Status,
    /// Why it has none, or why some samples are missing.
    pub reason: Option<String>,
    /// Rounds with a valid sample.
    pub samples: usize,
    /// Attempts that failed a check.
    pub invalid_samples: usize,
    /// Operations per second.
    pub ops_per_second: Option<MedianInterval>,
    /// Reads per second.
    pub reads_per_second: Option<MedianInterval>,
    /// Bytes asked for per second.
    pub bytes_per_second: Option<MedianInterval>,
    /// Latency of operations.
    pub latency_ns: Option<Latency>,
    /// Open, map, advise, populate.
    pub setup_ns: Option<u64>,
    /// Reading page tables warm before the clock starts.
    pub warmup_ns: Option<u64>,
    /// The throughput phase.
    pub measured_ns: Option<u64>,
    /// Unmap, close.
    pub teardown_ns: Option<u64>,
    /// Median of the sums of set-up, throughput phase and tear-down.
    pub total_ns: Option<u64>,
    /// What limited it.
    pub bound: Option<BoundName>,
    /// The share of that limit that it reached.
    pub of_ceiling: Option<f64>,
    /// The limit: requests or bytes per second, or CPUs.
    pub ceiling: Option<f64>,
    /// What was seen around it, as medians.
    pub evidence: Option<EvidenceMedians>,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// It is set.
    Flag(bool),
    /// It is a number.
    Number(u32),
}

/// Defines the medians of those fields of [`Evidence`] that are numbers which may be missing.
macro_rules! evidence_medians {
    ($($(#[$doc:meta])* $field:ident,)+) => {
        /// Medians over valid samples of what the supervisor saw; `None`: unknown in all of them.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct EvidenceMedians {
            /// From sending `go` to receiving `sample`.
            pub wall_ns: u64,
            /// Bytes that were asked for in both phases.
            pub requested_bytes: u64,
            $($(#[$doc])* pub $field: Option<u64>,)+
            /// Device bytes over bytes asked for.
            pub amplification: Option<f64>,
            /// CPU time over the time of all threads.
            pub cpu_share: Option<f64>,
            /// Mean size of a request to the device.
            pub issued_bytes: Option<f64>,
            /// Where residency comes from.
            pub residency_source: String,
            /// VmFlags of the mapping.
            pub mapping_flags: Option<String>,
            /// Whether the descriptor has O_DIRECT.
            pub descriptor_direct: Option<bool>,
            /// Reads that were compared byte for byte, in all samples together.
            pub verified_reads: u64,
        }

        impl EvidenceMedians {
            fn counts(evidence: &[&Evidence]) -> Self {
                let of = |field: fn(&Evidence) -> Option<u64>| {
                    median_count(&evidence.iter().filter_map(|seen| field(seen)).collect::<Vec<_>>())
                };
                Self { $($field: of(|seen| seen.$field),)+ ..Self::default() }
            }
        }
    };
}

evidence_medians! {
    /// Bytes that storage read for the worker.
    device_read_bytes,
    /// Bytes that others moved on the device.
    device_other_bytes,
    /// Read requests that the device completed, whoever asked.
    device_read_requests,
    /// Bytes that came through read calls.
    read_call_bytes,
    /// Read calls.
    read_calls,
    /// Faults served without the device.
    minor_faults,
    /// Faults that waited for the device.
    major_faults,
    /// CPU time of the worker's threads.
    cpu_ns,
    /// Time its threads were runnable and not running.
    run_queue_ns,
    /// CPU time in user mode.
    user_ns,
    /// CPU time in the kernel.
    system_ns,
    /// Context switches because a thread waited.
    voluntary_switches,
    /// Context switches because a thread was preempted.
    involuntary_switches,
    /// Time that the hypervisor gave to others.
    steal_ns,
    /// Bytes of the span in the page cache before.
    resident_before_bytes,
    /// The same after.
    resident_after_bytes,
    /// Bytes of the mapping in huge pages.
    huge_mapped_bytes,
    /// Peak resident memory of the worker.
    worker_peak_bytes,
}

impl EvidenceMedians {
    fn of(evidence: &[&Evidence], activity: Option<&Activity>) -> Option<Self> {
        let last = evidence.last()?;
        let count = |field: fn(&Evidence) -> u64| {
            median_count(&evidence.iter().map(|seen| field(seen)).collect::<Vec<_>>()).unwrap_or(0)
        };
        let amplification: Vec<f64> = evidence
            .iter()
            .filter(|seen| seen.requested_bytes > 0)
            .filter_map(|seen| Some(seen.device_read_bytes? as f64 / seen.requested_bytes as f64))
            .collect();
        Some(Self {
            wall_ns: count(|seen| seen.wall_ns),
            requested_bytes: count(|seen| seen.requested_bytes),
            amplification: median(&amplification),
            cpu_share: activity.and_then(|activity| activity.cpu_share),
            issued_bytes: activity.and_then(Activity::issued_bytes),
            residency_source: last.residency_source.clone(),
            mapping_flags: last.mapping_flags.clone(),
            descriptor_direct: last.descriptor_direct,
            verified_reads: evidence.iter().map(|seen| seen.verified_reads).sum(),
            ..Self::counts(evidence)
        })
    }
}

impl CellJudgement {
    /// Judges one cell.
    pub(crate) fn of(samples: &CellSamples<'_>, ceilings: &Ceilings) -> Self {
        let (cell, conditions) = (samples.cell, &samples.cell.conditions);
        let measurements: Vec<&Measurement> = samples.valid().map(|(measurement, _)| measurement).collect();
        let evidence: Vec<&Evidence> = samples.valid().map(|(_, evidence)| evidence).collect();
        let activity = Activity::of(samples);
        let bound = activity.as_ref().map(|activity| ceilings.bound(cell, activity));
        let per_second = |per_op: f64| {
            MedianInterval::of(&samples.figures(|measurement, _| ops_per_second(measurement) * per_op))
        };
        let ns = |figure: fn(&Measurement) -> u64| {
            median_count(&measurements.iter().map(|measurement| figure(measurement)).collect::<Vec<_>>())
        };
        let (status, reason) = status(samples);
        Self {
            id: samples.id.clone(),
            role: cell.role,
            workload: conditions.workload,
            method: cell.method.to_string(),
            worker: cell.method.worker(),
            access: cell.method.access().name(),
            options: options(cell.method.options()),
            threads: conditions.threads,
            file_bytes: conditions.file_bytes,
            span_bytes: conditions.span_bytes,
            memory_limit_bytes: None,
            cache: conditions.cache,
            parameters: Parameters::of(conditions),
            status,
            reason,
            samples: measurements.len(),
            invalid_samples: samples.invalid_attempts(),
            ops_per_second: per_second(1.0),
            reads_per_second: per_second(f64::from(conditions.reads_per_op)),
            bytes_per_second: per_second(conditions.op_bytes() as f64),
            latency_ns: Latency::merged(measurements.iter().copied()),
            setup_ns: ns(|measurement| measurement.setup_ns),
            warmup_ns: ns(|measurement| measurement.warmup_ns),
            measured_ns: ns(|measurement| measurement.measured_ns),
            teardown_ns: ns(|measurement| measurement.teardown_ns),
            total_ns: ns(|measurement| {
                measurement.setup_ns + measurement.measured_ns + measurement.teardown_ns
            }),
            bound: bound.map(|bound| bound.name),
            of_ceiling: bound.and_then(|bound| bound.of_ceiling),
            ceiling: bound.and_then(|bound| bound.ceiling),
            evidence: EvidenceMedians::of(&evidence, activity.as_ref()),
        }
    }

    /// Device bytes over bytes asked for.
    pub fn amplification(&self) -> Option<f64> {
        self.evidence.as_ref()?.amplification
    }
}

fn options(options: &[MethodOption]) -> BTreeMap<&'static str, OptionValue> {
    let value = |option: &MethodOption| match option {
        MethodOption::Depth(depth) => OptionValue::Number(*depth),
        _ => OptionValue::Flag(true),
    };
    options.iter().map(|option| (option.name(), value(option))).collect()
}

fn status(samples: &CellSamples<'_>) -> (Status, Option<String>) {
    if let Some(reason) = samples.unavailable() {
        return (Status::Unavailable, Some(reason.to_string()));
    }
    if samples.attempts.is_empty() {
        return (Status::Unavailable, Some("the run ended before its first sample".to_string()));
    }
    let failure = most_frequent_failure(samples);
    let reasons: Vec<String> = failure.into_iter().chain(refused(samples)).collect();
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    match samples.valid().next() {
        Some(_) => (Status::Ok, reason),
        None => (Status::Invalid, reason.or_else(|| Some("no sample is valid".to_string()))),
    }
}

/// What a machine said that offers a method in some samples only, such as huge pages.
fn refused(samples: &CellSamples<'_>) -> Option<String> {
    let (refused, reason) = samples.refused()?;
    Some(format!("unavailable in {refused} of {} attempts: {reason}", samples.attempts.len()))
}

/// The kind of failure that came most often, with what it said first.
fn most_frequent_failure(samples: &CellSamples<'_>) -> Option<String> {
    let failures: Vec<_> = samples.attempts.iter().flat_map(|sample| sample.failures()).collect();
    let count = |kind| failures.iter().filter(|failure| failure.kind == kind).count();
    // `max_by_key` takes the last of equals; in reverse that is the first that was seen.
    let first = failures.iter().rev().max_by_key(|failure| count(failure.kind))?;
    let first = failures.iter().find(|failure| failure.kind == first.kind)?;
    Some(format!("{}: {}", first.kind.name(), first.detail))
}
