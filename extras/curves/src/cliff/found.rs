//! Result types of the cliff: curves, crossings, and the state of the search.

use pagewise_model::{Bytes, CacheState, Skew, Workload};
use serde::Serialize;

use pagewise_analysis::judge::MedianInterval;
use pagewise_analysis::judge::reasons::CellReason;

/// Result of a run over ratios of data to cache.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cliff {
    /// Required width of a crossing's interval, as a share; `None` without a search.
    pub tolerance: Option<f64>,
    /// One for each set of conditions that differ only in the span, in the order of the plan. Only
    /// those with a memory limit: without one there is no ratio.
    #[serde(skip)]
    pub groups: Vec<CurveGroup>,
}

/// Comparable curves: equal conditions except for the span.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CurveGroup {
    /// `random-read · 16 reads of 16 KiB · warm · 1 thread · memory 128 MiB`.
    pub label: String,
    /// The label by which it is found in a run of another machine.
    #[serde(skip)]
    pub compared_label: String,
    /// Accesses and their order.
    pub workload: Workload,
    /// Threads that performed them.
    pub threads: u32,
    /// Size of one read.
    pub read_bytes: Bytes,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// Distribution of offsets over the span.
    pub skew: Skew,
    /// Page cache at the start.
    pub cache: CacheState,
    /// The limit.
    pub memory_limit_bytes: Bytes,
    /// Readahead of the device.
    pub readahead_bytes: Option<Bytes>,
    /// The cache capacity that ratios refer to.
    pub capacity: Capacity,
    /// All compared methods, in the order of the plan.
    #[serde(skip)]
    pub curves: Vec<Curve>,
    /// Windows from which each prefetching method was chosen.
    pub windows: Vec<WindowChoice>,
    /// Leading methods by range of ratios, ascending.
    pub leads: Vec<Lead>,
    /// Ends of the sweep at which a crossing may be near.
    pub edges: Vec<Edge>,
    /// Changes of order, those that change the leader first.
    #[serde(skip)]
    pub crossings: Vec<Crossing>,
}

/// Page cache that the memory limit leaves for the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Capacity {
    /// Size.
    pub bytes: Bytes,
    /// Origin of the figure.
    pub source: CapacitySource,
    /// Samples it is the median of; 0 if it is nominal.
    pub samples: usize,
}

/// Origin of the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacitySource {
    /// The limit less the group's charges other than page cache, median of samples.
    Measured,
    /// The expected remainder after worker and kernel: not known from the samples.
    Nominal,
}

/// One method over the ratios.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Curve {
    /// Canonical text.
    pub method: String,
    /// Ascending; only ratios at which it was planned.
    #[serde(skip)]
    pub points: Vec<Point>,
}

/// One method at one ratio. Figures are `None` if no sample is valid or the counter is missing.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Point {
    /// Span over capacity.
    pub ratio: f64,
    /// Span over the memory limit.
    pub ratio_to_limit: f64,
    /// The accessed part of the file.
    pub span_bytes: Bytes,
    /// Rounds with a valid sample.
    pub samples: usize,
    /// Operations per second.
    pub ops_per_second: Option<MedianInterval>,
    /// Read amplification: device bytes per requested byte.
    pub device_bytes_per_byte: Option<f64>,
    /// Major faults per operation.
    pub major_faults_per_op: Option<f64>,
    /// Refaults per operation.
    pub refaults_per_op: Option<f64>,
    /// Reason that there is no rate.
    #[serde(skip)]
    pub reason: Option<CellReason>,
}

/// The windows of a prefetching method, tried at one ratio.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WindowChoice {
    /// Ratio at which they were tried.
    pub ratio: f64,
    /// Each window with its median rate, the smallest first.
    pub candidates: Vec<WindowRate>,
    /// The smallest of those within 2 % of the best; `None` if none has a valid sample.
    pub chosen: Option<String>,
}

/// One window that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WindowRate {
    /// The method with this window.
    pub method: String,
    /// Number of reads that advice is given ahead.
    pub window: u32,
    /// Median of operations per second.
    pub ops_per_second: Option<f64>,
}

/// Neighbouring ratios with a leader in common.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Lead {
    /// Lowest ratio measured.
    pub from: f64,
    /// Highest ratio measured.
    pub to: f64,
    /// Methods that lead, or are not distinguishable from the leader, at every ratio of the range.
    /// Empty: the data do not decide.
    pub methods: Vec<String>,
}

/// The lowest or highest ratio, if the leader of the neighbouring ratio is no longer
/// distinguishable from others there.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Edge {
    /// The ratio.
    pub ratio: f64,
    /// True if it is the highest.
    pub highest: bool,
    /// The only leader of the neighbouring ratio.
    pub leader: String,
    /// Methods that are not distinguishable from it here.
    pub rivals: Vec<String>,
}

/// Two methods whose order changes.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Crossing {
    /// The faster one at lower ratios.
    pub before: String,
    /// The faster one at higher ratios.
    pub after: String,
    /// Ratio at which their rates are equal by the fit over all ratios.
    pub ratio: Option<f64>,
    /// The lower end of the interval of that fit, a measured ratio.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Coverage of the interval.
    pub coverage: f64,
    /// The span at `low`.
    pub low_span_bytes: Bytes,
    /// The span at `high`.
    pub high_span_bytes: Bytes,
    /// True if `before` leads all methods below the crossing, or is not distinguishable from the
    /// leader.
    pub before_leads: bool,
    /// True if `after` leads all methods above the crossing, or is not distinguishable from the
    /// leader.
    pub after_leads: bool,
    /// Precision of the interval.
    pub precision: Precision,
    /// Reason that it is wider than the tolerance.
    #[serde(skip)]
    pub reason: Option<WideCrossing>,
    /// Facts about the first ratio above it.
    pub behind: Option<Behind>,
}

/// Precision of a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// To the tolerance.
    Reached,
    /// Ratios were measured inside the interval, and the fit is no narrower.
    Undecided,
    /// Too few spans lie between the ends of the interval.
    TooFine,
    /// The search ended before.
    Stopped,
}

/// The two methods at the first ratio above a crossing at which all methods were measured.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Behind {
    /// The ratio of data to page cache.
    pub ratio: f64,
    /// Rate of `after` over that of `before`.
    pub times: Option<f64>,
    /// Read amplification of `before`: device bytes per requested byte.
    pub before_device_bytes_per_byte: Option<f64>,
    /// Read amplification of `after`.
    pub after_device_bytes_per_byte: Option<f64>,
    /// Major faults of `before` per operation.
    pub before_major_faults_per_op: Option<f64>,
    /// Major faults of `after` per operation.
    pub after_major_faults_per_op: Option<f64>,
    /// A variant of `before` that is clearly faster than it here, the one that gains most.
    pub closing: Option<Closing>,
}

/// Gain of another option of the slower method.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Closing {
    /// The variant.
    pub method: String,
    /// Gain over the slower method as a share of the faster one's gain; over 1 if it is faster
    /// still.
    pub share: f64,
}

/// Reason that the interval of a crossing is wider than the tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideCrossing {
    /// The plan has no search.
    NoSearch,
    /// Sizes within it were measured, and their order is not certain.
    Undecided,
    /// No other size lies within it.
    TooFine,
    /// The run ended before it was narrowed.
    RunEnded,
    /// The search had used up its measurements.
    SearchSpent,
}
