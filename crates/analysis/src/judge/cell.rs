//! One cell of the judged JSON: its figures as medians over rounds, with its bound.

use std::collections::{BTreeMap, HashMap};

use pagewise_model::sample::Measurement;
use pagewise_model::{
    Access, Bytes, CacheState, Consume, Evidence, FailureKind, MethodOption, Outcome, Role, Sample, Workload,
};
use serde::Serialize;

use super::actor::ActorFigures;
use super::cold_start::{ColdWindow, bytes_to_warm, times_to_warm, windows};
use super::evidence::EvidenceMedians;
use super::expectations::JudgedExpectation;
use super::figure::{FigureKind, MedianInterval};
use super::parameters::Parameters;
use super::reasons::{CellReason, MainFailure, RefusedAttempts, Withheld};
use super::stall::Stall;
use super::syncs::Syncs;
use crate::judge::bound::{Activity, Bound, Ceilings};
use crate::judge::collected::{CellSamples, bytes_per_second};
use crate::judge::latency::Latency;
use crate::proof::measured::{covered, device_written_bytes, ops_per_second, region_ns, total_ns};
use crate::proof::overrun::cold_bound_bytes;
use crate::statistics::paired::FEWEST_ROUNDS;
use crate::statistics::{Extent, median, median_count, total};

/// A process is slow if its time exceeds the median of its cell by this factor.
pub const SLOW: f64 = 1.5;

/// State of a cell's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// At least one valid sample.
    Ok,
    /// Samples, none of them valid.
    Invalid,
    /// The machine does not support it.
    Unavailable,
    /// The run has not come to it.
    NotMeasured,
}

impl Status {
    /// Name in tables; in the judged JSON it has hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Invalid => "invalid",
            Status::Unavailable => "unavailable",
            Status::NotMeasured => "not measured",
        }
    }
}

/// One cell with its figures, which are `None` unless the status is ok.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CellJudgement {
    /// [`pagewise_model::Cell::id`].
    pub id: String,
    /// Reason for it to be in the run.
    pub role: Role,
    /// Accesses and their order.
    pub workload: Workload,
    /// True if it is ranked by its total.
    #[serde(skip)]
    pub is_one_shot: bool,
    /// Canonical text of the method.
    pub method: String,
    /// The worker that performed it.
    pub worker: String,
    /// Access, by the word of its worker.
    pub access: String,
    /// The kind of access that the kernel sees.
    #[serde(skip)]
    pub moves: Access,
    /// Options: true, or a number.
    pub options: BTreeMap<&'static str, OptionValue>,
    /// Threads that read.
    pub threads: u32,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// The accessed part of it.
    pub span_bytes: Bytes,
    /// Limit of memory; `None` without one.
    pub memory_limit_bytes: Option<Bytes>,
    /// Page cache under the limit: the limit less everything else that was charged, the median over
    /// samples.
    pub cache_capacity_bytes: Option<u64>,
    /// The span over that.
    pub data_over_cache: Option<f64>,
    /// The span over the limit.
    pub data_over_memory: Option<f64>,
    /// Page cache at the start.
    pub cache: CacheState,
    /// The other conditions.
    pub parameters: Parameters,
    /// State of its figures.
    pub status: Status,
    /// Reason that it has none, or that some samples are missing.
    #[serde(skip)]
    pub reason: Option<CellReason>,
    /// Rounds in which it was tried.
    pub rounds_tried: usize,
    /// Rounds in which it was to have a sample: those in which it was tried, and those that every
    /// method has.
    pub rounds_asked: usize,
    /// Rounds with a valid sample.
    pub samples: usize,
    /// Attempts that failed a check.
    pub invalid_samples: usize,
    /// Operations per second of the measured region, with what the worker's clock left out of it
    /// and without the gaps of a replay, as the other rates.
    pub ops_per_second: Option<MedianInterval>,
    /// Reads per second.
    pub reads_per_second: Option<MedianInterval>,
    /// Bytes per second of the measured region: requested, or written to the file.
    pub bytes_per_second: Option<MedianInterval>,
    /// Nanoseconds of the measured region for each operation.
    pub ns_per_op: Option<MedianInterval>,
    /// At a rate: from the moment at which an operation is due to its end, the mean of the fastest
    /// 95 % of a sample that kept the rate.
    pub usual_latency_ns: Option<MedianInterval>,
    /// At a rate: valid samples that did not keep it.
    pub rate_missed: Option<usize>,
    /// Activity of the actor beside it; `None` without one.
    pub actor: Option<ActorFigures>,
    /// At a rate: operations of all samples that began late although their thread only waited for
    /// their moment, as where other programs had the CPU.
    pub late_starts: Option<u64>,
    /// Latency of operations.
    pub latency_ns: Option<Latency>,
    /// Syncs within the measured region; `None` if there was none.
    pub syncs: Option<Syncs>,
    /// Reason that the latency is withheld, if it is.
    #[serde(skip)]
    pub latency_reason: Option<Withheld>,
    /// Delays of heartbeats, by kind; `None` for a run without them.
    pub stall: Option<Vec<Stall>>,
    /// Reason that they are withheld, if they are.
    #[serde(skip)]
    pub stall_reason: Option<Withheld>,
    /// Time until a cold start had become steady.
    pub time_to_warm_ns: Option<MedianInterval>,
    /// Device bytes until then.
    pub bytes_to_warm: Option<MedianInterval>,
    /// The timeline of a cold start, window by window.
    pub cold_start: Option<Vec<ColdWindow>>,
    /// Open, map, advise, populate.
    pub setup_ns: Option<u64>,
    /// Warming of page tables before the clock starts.
    pub warmup_ns: Option<u64>,
    /// The throughput phase, less the gaps of a replay.
    pub measured_ns: Option<u64>,
    /// Time that was waited in the gaps of a replay, by the worker's clock; `None` if it keeps
    /// none.
    pub gap_wait_ns: Option<u64>,
    /// Sync, unmap, close.
    pub teardown_ns: Option<u64>,
    /// The sync as a part of it.
    pub sync_ns: Option<u64>,
    /// Median of the sums of set-up, throughput phase and tear-down, less the gaps of a replay.
    pub total_ns: Option<u64>,
    /// Total with its interval: the figure that one-shot work is ranked by.
    pub total_interval_ns: Option<MedianInterval>,
    /// Intervals of the measured region that took over 1 ms too long, per sample.
    pub stalls: Option<u64>,
    /// Number of stalls in all samples: a median does not show events in fewer than half of them.
    pub stalls_total: Option<u64>,
    /// The longest of them in any sample.
    pub stall_longest_ns: Option<u64>,
    /// Lines of a scan that counts them, in what it goes through: every valid sample came to them.
    pub lines: Option<u64>,
    /// The smallest share of fixed work that a valid sample completed: of the ring in all passes,
    /// or of the file.
    pub covered: Option<f64>,
    /// The most bytes of records that were missing in the file after an attempt, valid or not.
    pub missing_bytes: Option<u64>,
    /// Bytes of the file that were dirty when the clock stopped.
    pub dirty_after_bytes: Option<u64>,
    /// Bytes still dirty after tear-down, whose cost is yet to come.
    pub dirty_end_bytes: Option<u64>,
    /// Bytes that any process wrote to the device during the sample.
    pub device_written_bytes: Option<u64>,
    /// Size of a folio of a file that is updated in the page cache.
    pub folio_bytes: Option<u64>,
    /// Page faults of set-up.
    pub setup_faults: Option<u64>,
    /// Device bytes per second as a share of the most that the device delivered in this run; `None`
    /// if the device was not involved, its bandwidth was not measured, or it worked in gaps, too.
    pub of_device_bandwidth: Option<f64>,
    /// Lower end of that share.
    pub of_device_bandwidth_low: Option<f64>,
    /// Upper end of that share.
    pub of_device_bandwidth_high: Option<f64>,
    /// Resource that limited it.
    #[serde(flatten)]
    pub limit: Bound,
    /// Valid samples whose time was over 1.5 times the cell's median: each is a process of its own.
    pub slow_processes: usize,
    /// Expectations, and what became of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<JudgedExpectation>,
    /// Share of the span in the page cache at the end of a cold sample, if that is more than such a
    /// sample may bring in: its last operation alone brought in the rest, and so large a share of
    /// its reads may have found their bytes there.
    pub filled_while_cold: Option<f64>,
    /// The supervisor's observations, as medians.
    pub evidence: Option<EvidenceMedians>,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum OptionValue {
    /// An option without a value: it is set.
    Flag(bool),
    /// A number, or a size in bytes.
    Number(u64),
}

/// Cells by their ids.
pub type ById<'a> = HashMap<&'a str, &'a CellJudgement>;

/// Judged cells by their ids.
pub fn by_id(cells: &[CellJudgement]) -> ById<'_> {
    cells.iter().map(|cell| (cell.id.as_str(), cell)).collect()
}

impl CellJudgement {
    /// True if a sample that was asked for and is supported by the machine is invalid, missing or
    /// not of all of the work.
    pub fn fell_short(&self) -> bool {
        !matches!(self.status, Status::Unavailable | Status::NotMeasured)
            && (self.samples < self.rounds_asked || self.is_partial())
    }

    /// True if samples are missing that a verdict needs, of those that were asked for and that the
    /// machine supports, or if it did a part of its work.
    pub fn lacks_samples(&self) -> bool {
        self.fell_short() && !self.is_too_slow() && (self.samples < FEWEST_ROUNDS || self.is_partial())
    }

    /// True if it was stopped because it is slow, which is an answer.
    fn is_too_slow(&self) -> bool {
        let Some(CellReason::Lacking { failure: Some(failure), .. }) = &self.reason else { return false };
        failure.kind == FailureKind::TooSlow
    }

    /// True if its samples did a part of the work.
    fn is_partial(&self) -> bool {
        self.covered.is_some_and(|share| share < 1.0)
    }

    /// Time before the clock started, if that counts: set-up, and the worker's activity until it
    /// was ready.
    pub fn prepared_ns(&self) -> Option<u64> {
        Some(self.setup_ns?.saturating_add(self.warmup_ns.unwrap_or(0)))
    }

    /// Judge one cell, of a file that is stored in memory or on a device.
    pub(crate) fn of(
        samples: &CellSamples<'_>,
        activity: Option<&Activity>,
        ceilings: &Ceilings,
        in_memory: bool,
    ) -> Self {
        let (cell, conditions) = (samples.cell, &samples.cell.conditions);
        let measurements: Vec<&Measurement> = samples.valid().map(|(measurement, _)| measurement).collect();
        let evidence: Vec<&Evidence> = samples.valid().map(|(_, evidence)| evidence).collect();
        let of_device: Option<Extent> = activity
            .filter(|_| !conditions.keeps_gaps())
            .and_then(|activity| ceilings.share_of_bandwidth(conditions, activity));
        let per_second = |per_op: f64| {
            MedianInterval::of(&samples.figures(|measurement, _| ops_per_second(measurement) * per_op))
        };
        let ns = |figure: fn(&Measurement) -> u64| {
            median_count(&measurements.iter().map(|measurement| figure(measurement)).collect::<Vec<_>>())
        };
        let seen = |figure: fn(&Evidence) -> Option<u64>| median_count(&of_each(&evidence, figure));
        let (status, reason) = status(samples);
        let at_rate = conditions.rate.filter(|_| !measurements.is_empty());
        let kept = samples.rates().values();
        let capacity = cache_capacity(&evidence);
        let span = conditions.span_bytes.0 as f64;
        let limit = conditions.host_settings.memory_limit_bytes;
        let latency_reason = Withheld::of(conditions);
        let stall = Stall::merged(&evidence);
        let stall_reason = latency_reason.filter(|_| stall.is_some());
        Self {
            id: samples.id.clone(),
            role: cell.role,
            workload: conditions.workload(),
            is_one_shot: conditions.is_one_shot(),
            method: cell.method.to_string(),
            worker: cell.method.worker().to_string(),
            access: cell.method.word().to_string(),
            moves: cell.access(),
            options: options(cell.method.options()),
            threads: conditions.threads,
            file_bytes: conditions.file_bytes,
            span_bytes: conditions.span_bytes,
            memory_limit_bytes: limit,
            cache_capacity_bytes: capacity,
            data_over_cache: capacity.filter(|bytes| *bytes > 0).map(|bytes| span / bytes as f64),
            data_over_memory: limit.filter(|bytes| bytes.0 > 0).map(|bytes| span / bytes.0 as f64),
            cache: conditions.cache,
            parameters: Parameters::of(cell),
            status,
            reason,
            rounds_tried: samples.rounds_tried(),
            rounds_asked: samples.rounds_tried().max(samples.least as usize),
            samples: measurements.len(),
            invalid_samples: samples.invalid_attempts(),
            ops_per_second: per_second(1.0),
            reads_per_second: conditions.reads().and_then(|reads| per_second(f64::from(reads.reads_per_op))),
            bytes_per_second: MedianInterval::of(
                &samples.figures(|measurement, seen| bytes_per_second(cell, measurement, seen)),
            ),
            ns_per_op: MedianInterval::of(
                &samples.figures(|measurement, _| 1e9 / ops_per_second(measurement)),
            ),
            usual_latency_ns: at_rate
                .and_then(|_| MedianInterval::of(&kept.iter().map(|rate| 1e9 / rate).collect::<Vec<_>>())),
            rate_missed: at_rate.map(|_| samples.rate_missed()),
            late_starts: at_rate.map(|_| total(measurements.iter().map(|one| &one.late_starts))),
            latency_ns: match latency_reason {
                Some(_) => None,
                None => Latency::merged(measurements.iter().copied()),
            },
            actor: None,
            syncs: Syncs::of(samples, in_memory),
            latency_reason,
            stall: stall.filter(|_| stall_reason.is_none()),
            stall_reason,
            time_to_warm_ns: MedianInterval::of(&times_to_warm(samples)),
            bytes_to_warm: MedianInterval::of(&bytes_to_warm(samples)),
            cold_start: windows(samples),
            setup_ns: ns(|measurement| measurement.setup_ns),
            warmup_ns: ns(|measurement| measurement.warmup_ns),
            measured_ns: ns(region_ns),
            gap_wait_ns: ns(|measurement| measurement.gap_wait_ns).filter(|_| conditions.keeps_gaps()),
            teardown_ns: ns(|measurement| measurement.teardown_ns),
            sync_ns: ns(|measurement| measurement.sync_ns),
            total_ns: ns(total_ns),
            total_interval_ns: MedianInterval::of(
                &samples.figures(|measurement, _| total_ns(measurement) as f64),
            ),
            stalls: ns(|measurement| measurement.stalls),
            stalls_total: (!measurements.is_empty())
                .then(|| total(measurements.iter().map(|measurement| &measurement.stalls))),
            stall_longest_ns: measurements.iter().map(|measurement| measurement.stall_longest_ns).max(),
            lines: evidence
                .first()
                .filter(|_| conditions.consume() == Some(Consume::Lines))
                .map(|seen| seen.checksum),
            covered: of_each(&measurements, |measurement| covered(cell, measurement))
                .into_iter()
                .min_by(f64::total_cmp),
            missing_bytes: missing_bytes(samples),
            dirty_after_bytes: seen(|seen| seen.written.as_ref()?.dirty_after_bytes),
            dirty_end_bytes: seen(|seen| seen.written.as_ref()?.dirty_end_bytes),
            device_written_bytes: seen(device_written_bytes),
            folio_bytes: seen(|seen| seen.written.as_ref()?.folio_bytes),
            setup_faults: seen(|seen| seen.setup_faults),
            of_device_bandwidth: of_device.map(|share| share.median),
            of_device_bandwidth_low: of_device.map(|share| share.low),
            of_device_bandwidth_high: of_device.map(|share| share.high),
            limit: match activity {
                Some(_) if at_rate.is_some() && !kept.is_empty() => Bound::of_rate(),
                activity => activity.map(|activity| ceilings.bound(cell, activity)).unwrap_or_default(),
            },
            slow_processes: slow_processes(samples),
            expected: Vec::new(),
            filled_while_cold: cold_bound_bytes(cell)
                .zip(seen(|evidence| evidence.resident_after_bytes))
                .filter(|(bound, resident)| resident > bound)
                .map(|(_, resident)| resident as f64 / span),
            evidence: EvidenceMedians::of(samples, activity),
        }
    }

    /// The figure that it is ranked by, as it is shown.
    pub fn figure(&self, kind: FigureKind) -> Option<MedianInterval> {
        match kind {
            FigureKind::ReadsPerSecond => self.reads_per_second,
            FigureKind::RecordsPerSecond => self.ops_per_second,
            FigureKind::TimeToWarm => self.time_to_warm_ns,
            FigureKind::TimeInTotal => self.total_interval_ns,
            FigureKind::UsualLatency => self.usual_latency_ns,
        }
    }

    /// Median of the figure that it is ranked by, the more the better: operations per second, or
    /// the inverse of the time to warm, of the total or of the latency at a rate. `None` without a
    /// valid sample, for a cold start that did not become warm, and for a rate that was never kept.
    pub fn ranked_figure(&self) -> Option<f64> {
        if self.cache == CacheState::ColdStart {
            return self.time_to_warm_ns.map(|time| 1e9 / time.median);
        }
        if self.parameters.rate.is_some() {
            return self.usual_latency_ns.map(|time| 1e9 / time.median.max(1.0));
        }
        if self.is_one_shot {
            return self.total_ns.map(|total| 1e9 / total.max(1) as f64);
        }
        self.ops_per_second.map(|rate| rate.median)
    }

    /// Read amplification: device bytes per requested byte.
    pub fn amplification(&self) -> Option<f64> {
        self.evidence.as_ref()?.amplification
    }
}

/// Number of processes that were slow by the ranked figure.
fn slow_processes(samples: &CellSamples<'_>) -> usize {
    let times: Vec<f64> = samples.rates().values().into_iter().map(|rate| 1.0 / rate).collect();
    let Some(usual) = median(&times) else { return 0 };
    times.into_iter().filter(|time| *time > usual * SLOW).count()
}

/// Collect a figure of each item that has one.
fn of_each<T, F>(all: &[&T], figure: impl Fn(&T) -> Option<F>) -> Vec<F> {
    all.iter().filter_map(|one| figure(one)).collect()
}

/// Missing bytes of the worst attempt. They are known even if it was invalid.
fn missing_bytes(samples: &CellSamples<'_>) -> Option<u64> {
    let of_attempt = |sample: &&Sample| match &sample.outcome {
        Outcome::Taken { evidence, .. } => Some(evidence.written.as_ref()?.missing_bytes),
        _ => None,
    };
    samples.attempts.iter().filter_map(of_attempt).max()
}

/// Capacity of the page cache under the limit: all that nothing else in the group used.
fn cache_capacity(evidence: &[&Evidence]) -> Option<u64> {
    let of_sample = |seen: &&Evidence| {
        let group = seen.group.as_ref()?;
        let others = group.usage_bytes?.saturating_sub(group.file_bytes?);
        Some(group.limit_bytes?.saturating_sub(others))
    };
    median_count(&evidence.iter().filter_map(of_sample).collect::<Vec<_>>())
}

fn options(options: &[MethodOption]) -> BTreeMap<&'static str, OptionValue> {
    let value = |option: &MethodOption| match option {
        MethodOption::Depth(value) | MethodOption::PrefetchWindow(value) => {
            OptionValue::Number(u64::from(*value))
        }
        MethodOption::Buffer(size) | MethodOption::Pretouch(size) => OptionValue::Number(size.0),
        _ => OptionValue::Flag(true),
    };
    options.iter().map(|option| (option.name(), value(option))).collect()
}

fn status(samples: &CellSamples<'_>) -> (Status, Option<CellReason>) {
    if let Some(reason) = samples.unavailable() {
        return (Status::Unavailable, Some(CellReason::Unavailable(reason.to_string())));
    }
    if samples.attempts.is_empty() {
        return (Status::NotMeasured, Some(CellReason::NotSampled));
    }
    let shortfall = samples.rate_shortfall().filter(|_| samples.rates().count() == 0);
    let (failure, refused) = (main_failure(samples), refused(samples));
    let lacks = shortfall.is_some() || failure.is_some() || refused.is_some();
    let reason = lacks.then_some(CellReason::Lacking { shortfall, failure, refused });
    match samples.valid().next() {
        Some(_) => (Status::Ok, reason),
        None => (Status::Invalid, reason.or(Some(CellReason::NoValidSample))),
    }
}

/// The attempts that the machine refused if it supports a method in some samples only, such as huge
/// pages.
fn refused(samples: &CellSamples<'_>) -> Option<RefusedAttempts> {
    let (count, reason) = samples.refused()?;
    let (invalid, attempts) = (samples.invalid_attempts(), samples.attempts.len());
    Some(RefusedAttempts { count, invalid, attempts, reason: reason.to_string() })
}

/// The failure that ended the cell, or else the most frequent kind, with its first message and the
/// last output of a worker that ended.
pub(super) fn main_failure(samples: &CellSamples<'_>) -> Option<MainFailure> {
    let failures: Vec<_> = samples
        .attempts
        .iter()
        .flat_map(|sample| sample.failures().iter().map(move |failure| (failure, &sample.outcome)))
        .collect();
    let count = |kind| failures.iter().filter(|(failure, _)| failure.kind == kind).count();
    // `max_by_key` returns the last of equals, so in reverse the first seen.
    let (first, _) = failures.iter().rev().max_by_key(|(failure, _)| count(failure.kind))?;
    // A worker that was killed from outside is tried again, so only the last attempt can have ended
    // the cell. Its first failure is the cause of the others.
    let ended = samples.attempts.last().filter(|last| matches!(last.outcome, Outcome::Broken { .. }));
    let (first, outcome) = match ended.and_then(|last| Some((last.failures().first()?, &last.outcome))) {
        Some(ended) => ended,
        None => *failures.iter().find(|(failure, _)| failure.kind == first.kind)?,
    };
    let stderr_tail = match outcome {
        Outcome::Broken { stderr_tail, .. } if !stderr_tail.trim().is_empty() => Some(stderr_tail.clone()),
        _ => None,
    };
    Some(MainFailure { kind: first.kind, detail: first.detail.clone(), stderr_tail })
}
