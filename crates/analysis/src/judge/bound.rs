//! The bound of a cell: the resource that limited it, and the share of that resource's ceiling that
//! it reached.
//!
//! A cell is compared with the ceilings of the run ([`ceilings`]) by the activity of the *device*
//! per second of both phases: its requests at the size really issued, and its bytes. Requested
//! bytes would make readahead look fast. Whatever else takes its time is a share of the time of its
//! threads ([`activity`]): on a CPU, runnable without one, waiting.
//!
//! A share has an interval over rounds. A bound is *named* if the lower end is over 75 %; if only
//! the median is, it is *about* that bound; otherwise the cell lies *between* the two that most of
//! its time went to.
//!
//! Queue depth is the bound by Little's law: with a latency of L and N reads in flight, a device
//! completes N / L requests per second, and 1 / L is the measured rate of one thread with one read
//! in flight. A rate of threads x depth / L means that latency times rate equals the number of
//! reads in flight: the device never had more to do.
//!
//! A bound explains; it does not rank.

pub mod activity;
pub mod ceilings;
mod flushes;
pub mod top;

use pagewise_model::{Access, Cell, Conditions};
use serde::Serialize;

use crate::statistics::Extent;
pub use activity::Activity;
use activity::is_read_ahead;
pub use activity::{DEVICE_SHARE, own_waits};
use ceilings::DEEP;
pub use ceilings::{Ceilings, CopyCeiling, DeviceCeiling};
pub use flushes::FlushCeiling;
pub use top::Top;

/// A bound is named if the lower end of its share is above this.
pub const NAMED: f64 = 0.75;
/// From this share of a ceiling, a sentence says "at its ceiling".
pub const AT_CEILING: f64 = 0.995;
/// Shares that differ by less are alike.
const ALIKE: f64 = 0.05;
/// Readahead keeps more reads in flight than the method, if the rate exceeds that of the method's
/// depth by this factor.
const DEPTH_EXCEEDED: f64 = 1.2;

/// A resource that can limit a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoundName {
    /// Set-up, in which most of the total passes.
    SetUp,
    /// Tear-down without its sync.
    TearDown,
    /// Bytes per second of the device.
    DeviceBandwidth,
    /// Requests per second of the device at the size issued.
    DeviceIops,
    /// The requests in flight that the method allows.
    QueueDepth,
    /// A wait for pages that are read ahead, from a device that is not at its maximum.
    Readahead,
    /// A wait for the device, which is not at its maximum, in another way.
    DeviceWait,
    /// Syncs per second of the device, of pieces as large.
    DeviceFlush,
    /// A wait for the device to write, or the sync at the end.
    Writeback,
    /// Copying by the CPU from memory.
    MemoryCopy,
    /// CPU time.
    Cpu,
    /// A CPU that other processes use.
    RunQueue,
    /// A wait for something other than CPU and device: a lock, another process.
    Waiting,
    /// The rate at which operations are due.
    Rate,
    /// Not explained by any counter.
    Unknown,
}

impl BoundName {
    /// Name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            BoundName::SetUp => "set-up",
            BoundName::TearDown => "tear-down",
            BoundName::DeviceBandwidth => "device-bandwidth",
            BoundName::DeviceIops => "device-iops",
            BoundName::QueueDepth => "queue-depth",
            BoundName::Readahead => "readahead",
            BoundName::DeviceWait => "device-wait",
            BoundName::DeviceFlush => "device-flush",
            BoundName::Writeback => "writeback",
            BoundName::MemoryCopy => "memory-copy",
            BoundName::Cpu => "cpu",
            BoundName::RunQueue => "run-queue",
            BoundName::Waiting => "waiting",
            BoundName::Rate => "rate",
            BoundName::Unknown => "unknown",
        }
    }
}

/// Certainty of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The lower end of its share is over 75 %.
    Named,
    /// The share is; the lower end of its interval is not.
    About,
    /// No share is: the cell lies between it and another.
    Between,
}

/// A resource with the share of it that a cell reached or spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit<'a> {
    /// The resource.
    pub name: BoundName,
    /// The share that was reached of its ceiling, or spent of the time.
    pub share: Extent,
    /// The ceiling, if it is one: requests or bytes per second.
    pub ceiling: Option<Top<'a>>,
}

impl<'a> Limit<'a> {
    /// `None` if the ceiling is not shown to be one.
    fn reached(name: BoundName, rate: Extent, ceiling: Top<'a>) -> Option<Self> {
        ceiling.is_found.then(|| Self { name, share: ceiling.share(rate), ceiling: Some(ceiling) })
    }

    const fn spent(name: BoundName, share: Extent) -> Self {
        Self { name, share, ceiling: None }
    }

    fn is_named(&self) -> bool {
        self.share.low > NAMED
    }
}

/// The bound of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Bound {
    /// The limiting resource; `None` without a valid sample, and of a replay with gaps that is at
    /// no ceiling.
    pub bound: Option<BoundName>,
    /// Certainty; `None` if it is unknown.
    pub bound_certainty: Option<Certainty>,
    /// The share of its ceiling that was reached, or of the time that was spent on it.
    pub of_ceiling: Option<f64>,
    /// Lower end of the share.
    pub of_ceiling_low: Option<f64>,
    /// Upper end of the share.
    pub of_ceiling_high: Option<f64>,
    /// The ceiling in requests or bytes per second; `None` if the share is one of time.
    pub ceiling: Option<f64>,
    /// The method that reached it.
    pub ceiling_reached_by: Option<String>,
    /// The other resource, if the cell lies between two.
    pub bound_other: Option<BoundName>,
    /// The share of time that was spent on it.
    pub of_other: Option<f64>,
}

impl Bound {
    fn of(limit: Limit<'_>, certainty: Certainty) -> Self {
        Self {
            bound: Some(limit.name),
            bound_certainty: Some(certainty),
            of_ceiling: Some(limit.share.median),
            of_ceiling_low: Some(limit.share.low),
            of_ceiling_high: Some(limit.share.high),
            ceiling: limit.ceiling.map(|top| top.low),
            ceiling_reached_by: limit.ceiling.map(|top| top.reached_by.to_string()),
            ..Self::default()
        }
    }

    /// Of a cell that kept its rate: it was not asked for more.
    pub(crate) fn of_rate() -> Self {
        Self { bound: Some(BoundName::Rate), bound_certainty: Some(Certainty::Named), ..Self::default() }
    }

    /// Decide among the `ceilings` that apply to a cell and the parts of its `time`. A ceiling says
    /// more than the time that was spent at it.
    fn among(ceilings: Vec<Limit<'_>>, time: Vec<Limit<'_>>) -> Self {
        let is_known = |limit: &Limit<'_>| limit.name != BoundName::Unknown;
        let all = || ceilings.iter().chain(&time).copied().filter(is_known);
        let named = || all().filter(Limit::is_named);
        // A device at its maximum explains more than what was in flight, and that more than the
        // time spent waiting for it.
        let is_maximum = |limit: &Limit<'_>| limit.ceiling.is_some() && limit.name != BoundName::QueueDepth;
        let most = largest(named().filter(is_maximum));
        // The maximum of requests of a size may be that of bytes.
        let is_as_high =
            |limit: &Limit<'_>| most.is_some_and(|most| limit.share.median >= most.share.median - ALIKE);
        let maximum = named()
            .filter(is_maximum)
            .find(|limit| limit.name == BoundName::DeviceBandwidth && is_as_high(limit))
            .or(most);
        if let Some(limit) = maximum.or_else(|| named().next()) {
            return Self::of(limit, Certainty::Named);
        }
        if let Some(limit) = largest(all()).filter(|limit| limit.share.median > NAMED) {
            return Self::of(limit, Certainty::About);
        }
        // The parts of the time make up a whole, shares of ceilings do not.
        let parts = || time.iter().copied().filter(|limit| limit.share.median > 0.0);
        let unknown = Self { bound: Some(BoundName::Unknown), ..Self::default() };
        let Some(first) = largest(parts()).filter(is_known) else {
            return unknown;
        };
        let second = largest(parts().filter(|limit| limit.name != first.name));
        if second.is_some_and(|limit| !is_known(&limit)) {
            return unknown;
        }
        Self {
            bound_other: second.map(|limit| limit.name),
            of_other: second.map(|limit| limit.share.median),
            ..Self::of(first, Certainty::Between)
        }
    }

    /// True if it is limited by this resource for certain.
    pub fn is_named(&self, name: BoundName) -> bool {
        self.bound == Some(name) && self.bound_certainty == Some(Certainty::Named)
    }

    /// True if all of the ceiling was reached.
    pub fn is_at_ceiling(&self) -> bool {
        self.of_ceiling.is_some_and(|share| share >= AT_CEILING)
    }
}

/// The largest by the median of its share, the first of equals.
fn largest<'a>(limits: impl Iterator<Item = Limit<'a>>) -> Option<Limit<'a>> {
    limits.reduce(|best, limit| if limit.share.median > best.share.median { limit } else { best })
}

impl Ceilings {
    /// Return the bound of `cell`.
    pub fn bound(&self, cell: &Cell, activity: &Activity) -> Bound {
        let outside = activity.time.is_some_and(|time| !time.is_mostly_region());
        let ceilings = match activity.uses_device() {
            _ if outside => Vec::new(),
            true => self.limits_of_device(cell, activity),
            false => {
                let limits = [self.limit_of_flushes(cell, activity), self.limit_of_copying(cell, activity)];
                limits.into_iter().flatten().collect()
            }
        };
        let bound = Bound::among(ceilings, limits_of_time(cell, activity));
        // What its time went to is not known on purpose.
        if cell.conditions.keeps_gaps() && bound.bound == Some(BoundName::Unknown) {
            Bound::default()
        } else {
            bound
        }
    }

    /// Device bytes per second as a share of the device's maximum for cells with `conditions`;
    /// `None` if the device was not involved, or no large reads were measured.
    pub fn share_of_bandwidth(&self, conditions: &Conditions, activity: &Activity) -> Option<Extent> {
        let bytes = activity.device_bytes_per_second.filter(|_| activity.uses_device())?;
        Some(self.bandwidth(conditions)?.share(bytes))
    }

    fn limits_of_device<'a>(&'a self, cell: &Cell, activity: &Activity) -> Vec<Limit<'a>> {
        let conditions = &cell.conditions;
        let bandwidth = || {
            let (bytes, top) = (activity.device_bytes_per_second?, self.bandwidth(conditions)?);
            Limit::reached(BoundName::DeviceBandwidth, bytes, top)
        };
        let iops = || {
            let requests = activity.device_requests_per_second?;
            let top = self.iops(conditions, activity.issued_bytes()?)?;
            Limit::reached(BoundName::DeviceIops, requests, top)
        };
        let depth = || {
            // The reads in flight of a third-party method are unknown.
            (cell.access() != Access::Unknown).then_some(())?;
            let requests = activity.device_requests_per_second?;
            let each = self.requests_per_read_in_flight(conditions, activity.issued_bytes()?)?;
            let in_flight = f64::from(conditions.threads) * f64::from(cell.method.depth());
            let top = each.times(in_flight);
            let by_kernel = is_read_ahead(cell) && requests.median > top.median * DEPTH_EXCEEDED;
            Limit::reached(BoundName::QueueDepth, requests, top).filter(|_| !by_kernel)
        };
        [bandwidth(), iops(), depth()].into_iter().flatten().collect()
    }

    /// Syncs by a call that flushes nothing are no share of the device's flushes.
    fn limit_of_flushes<'a>(&'a self, cell: &Cell, activity: &Activity) -> Option<Limit<'a>> {
        cell.sync_call().filter(|call| call.is_durable())?;
        let top = FlushCeiling::top(&self.flushes, &cell.conditions, activity.bytes_per_flush()?)?;
        Limit::reached(BoundName::DeviceFlush, activity.flushes_per_second?, top)
    }

    fn limit_of_copying<'a>(&'a self, cell: &Cell, activity: &Activity) -> Option<Limit<'a>> {
        let top = self.copying(cell).filter(|_| cell.copies())?;
        Limit::reached(BoundName::MemoryCopy, activity.requested_bytes_per_second, top)
    }
}

/// The parts of a cell's time.
fn limits_of_time(cell: &Cell, activity: &Activity) -> Vec<Limit<'static>> {
    let Some(time) = activity.time else { return Vec::new() };
    vec![
        Limit::spent(BoundName::SetUp, time.set_up),
        Limit::spent(BoundName::Writeback, time.sync),
        Limit::spent(BoundName::TearDown, time.tear_down),
        Limit::spent(BoundName::Cpu, time.cpu),
        Limit::spent(BoundName::RunQueue, time.run_queue),
        Limit::spent(waited_for(cell, activity), time.wait),
    ]
}

/// The target of a cell's waits.
fn waited_for(cell: &Cell, activity: &Activity) -> BoundName {
    let is_shallow = cell.method.is_direct() && cell.method.depth() < DEEP;
    match cell.access() {
        _ if !activity.knows_run_queue => BoundName::Unknown,
        Access::Unknown if activity.uses_device() => BoundName::DeviceWait,
        _ if activity.uses_device() && is_read_ahead(cell) => BoundName::Readahead,
        // A fault or a read of the page cache without readahead is one request at a time.
        _ if activity.uses_device() && (is_shallow || cell.depends_on_cache()) => BoundName::QueueDepth,
        _ if activity.uses_device() => BoundName::DeviceWait,
        _ if activity.writes_device && is_shallow => BoundName::QueueDepth,
        _ if activity.writes_device => BoundName::Writeback,
        // It could be the device.
        _ if cell.conditions.workload().is_reading() && activity.device_bytes_per_second.is_none() => {
            BoundName::Unknown
        }
        _ => BoundName::Waiting,
    }
}

#[cfg(test)]
mod tests;
