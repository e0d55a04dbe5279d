//! What is told of a cliff: curves, crossings, and what was searched.

use pagewise_model::{Bytes, CacheState, Skew, Workload};
use serde::Serialize;

use crate::judge::cell::MedianInterval;

/// What came out of a run over ratios of data to cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cliff {
    /// How close the ends of a crossing's interval were to come, as a share; `None` where nothing was searched for.
    pub tolerance: Option<f64>,
    /// One for each set of conditions that are equal but for the span, in the order of the plan. Only those with a
    /// memory limit: without one there is no ratio.
    pub groups: Vec<CurveGroup>,
}

/// Curves that are comparable: equal conditions but for the span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveGroup {
    /// `random-read · 16 reads of 16 KiB · warm · 1 thread · memory 128 MiB`.
    pub label: String,
    /// Which accesses.
    pub workload: Workload,
    /// Threads that performed them.
    pub threads: u32,
    /// Size of one read.
    pub read_bytes: Bytes,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// How offsets spread over the span.
    pub skew: Skew,
    /// Page cache at the start.
    pub cache: CacheState,
    /// The limit.
    pub memory_limit_bytes: Bytes,
    /// Readahead of the device.
    pub readahead_bytes: Option<Bytes>,
    /// What ratios are ratios to.
    pub capacity: Capacity,
    /// Every method that is compared, in the order of the plan.
    pub curves: Vec<Curve>,
    /// What each prefetching method chose its window from.
    pub windows: Vec<WindowChoice>,
    /// Which methods lead over which ratios, ascending.
    pub leads: Vec<Lead>,
    /// Ends of the sweep at which a crossing may be near.
    pub edges: Vec<Edge>,
    /// Where two methods change places, those that change the leader first.
    pub crossings: Vec<Crossing>,
    /// All of it in words.
    pub sentences: Vec<String>,
}

/// Page cache that the memory limit leaves for the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// How much.
    pub bytes: Bytes,
    /// How it is known.
    pub source: CapacitySource,
    /// Samples that it is the median of; 0 where it is nominal.
    pub samples: usize,
}

/// How the capacity is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacitySource {
    /// The limit less what the group was charged beside page cache, median of samples.
    Measured,
    /// What worker and kernel are expected to leave: the samples do not say.
    Nominal,
}

/// One method over the ratios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its canonical text.
    pub method: String,
    /// Ascending; only ratios at which it was to be measured.
    pub points: Vec<Point>,
}

/// One method at one ratio. Figures are `None` where no sample is valid or the counter was not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Span over capacity.
    pub ratio: f64,
    /// Span over the memory limit.
    pub ratio_to_limit: f64,
    /// The part of the file that is read.
    pub span_bytes: Bytes,
    /// Rounds with a valid sample.
    pub samples: usize,
    /// Operations per second.
    pub ops_per_second: Option<MedianInterval>,
    /// Bytes read from the device for each byte asked.
    pub device_bytes_per_byte: Option<f64>,
    /// Faults that waited for the device, for each operation.
    pub major_faults_per_op: Option<f64>,
    /// Pages that came back soon after they were reclaimed, for each operation.
    pub refaults_per_op: Option<f64>,
    /// Why there is no rate.
    pub reason: Option<String>,
}

/// The windows of a prefetching method, tried at one ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowChoice {
    /// Where they were tried.
    pub ratio: f64,
    /// Each with its median rate, smallest window first.
    pub candidates: Vec<WindowRate>,
    /// The smallest of those within 2 % of the best; `None` where none has a valid sample.
    pub chosen: Option<String>,
}

/// One window that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowRate {
    /// The method with this window.
    pub method: String,
    /// Reads advised ahead.
    pub window: u32,
    /// Median of operations per second.
    pub ops_per_second: Option<f64>,
}

/// Neighbouring ratios with a leader in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lead {
    /// Lowest ratio measured.
    pub from: f64,
    /// Highest ratio measured.
    pub to: f64,
    /// Those that lead, or cannot be told from the leader, at every ratio of it. Empty: the data cannot tell.
    pub methods: Vec<String>,
}

/// The lowest or highest ratio, where the leader of the ratio beside it can no longer be told from others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// Which ratio.
    pub ratio: f64,
    /// Whether it is the highest.
    pub highest: bool,
    /// The only leader of the ratio beside it.
    pub leader: String,
    /// What cannot be told from it here.
    pub rivals: Vec<String>,
}

/// Two methods that change places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crossing {
    /// The faster one at lower ratios.
    pub before: String,
    /// The faster one at higher ratios.
    pub after: String,
    /// Where their rates are equal, by interpolation between the ends of the interval.
    pub ratio: Option<f64>,
    /// The highest ratio at which `before` clearly wins below every ratio at which `after` does.
    pub low: f64,
    /// The lowest ratio at which `after` clearly wins above every ratio at which `before` does.
    pub high: f64,
    /// The span at `low`.
    pub low_span_bytes: Bytes,
    /// The span at `high`.
    pub high_span_bytes: Bytes,
    /// Whether `before` leads all methods, or cannot be told from the leader, below the crossing.
    pub before_leads: bool,
    /// The same of `after` above it.
    pub after_leads: bool,
    /// How closely it is known.
    pub precision: Precision,
    /// Why it is not known to the tolerance.
    pub reason: Option<String>,
    /// What is known behind it.
    pub behind: Option<Behind>,
}

/// How closely a crossing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// To the tolerance.
    Reached,
    /// In the middle of the interval neither method is clearly faster.
    CannotTell,
    /// The spans between its ends are too few.
    TooFine,
    /// The search ended before.
    Stopped,
}

/// The two methods at the first ratio behind a crossing at which all methods were measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Behind {
    /// That ratio.
    pub ratio: f64,
    /// Rate of `after` over that of `before`.
    pub times: Option<f64>,
    /// Bytes that `before` reads from the device for each byte asked.
    pub before_device_bytes_per_byte: Option<f64>,
    /// The same of `after`.
    pub after_device_bytes_per_byte: Option<f64>,
    /// Faults of `before` that waited for the device, for each operation.
    pub before_major_faults_per_op: Option<f64>,
    /// The same of `after`.
    pub after_major_faults_per_op: Option<f64>,
    /// Another form of `before` that is clearly faster than it here, the one that gains most.
    pub closing: Option<Closing>,
}

/// What another option of the slower method gains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Closing {
    /// Which.
    pub method: String,
    /// Its gain over the slower method as a share of what the faster one gains; over 1 where it is faster still.
    pub share: f64,
}
