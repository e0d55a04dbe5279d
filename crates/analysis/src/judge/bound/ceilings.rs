//! Ceilings: the most that anything of the run reached on a device or in memory, by the lower end
//! of its interval.
//!
//! Every cell that used a resource counts, methods too, so no cell exceeds its ceiling. A ceiling
//! is *known* only if the run has a cell that was made to find it ([`Role::Ceiling`]): without one,
//! the fastest method would be limited by itself. `uring:direct` with a deep queue is made to find
//! the device's maximum at the size of its reads; the same with one read in flight the rate of a
//! program that waits for each read; copying from anonymous memory the maximum of the memory.
//!
//! Ceilings apply to cells of the same file, threads, CPUs and device cap; a different cap amounts
//! to a different device. The memory limit and the state of the page cache may differ, since the
//! device sees neither.

use pagewise_model::{
    Access, Bytes, Cell, Conditions, CpuList, DeviceCap, HostSettings, Role, Skew, Workload,
};
use serde::Serialize;

use super::activity::{Activity, is_read_ahead};
use super::flushes::FlushCeiling;
use super::top::{Top, best, lower_end};
use crate::judge::collected::CellSamples;
use crate::statistics::Extent;

/// A ceiling has at least this many reads in flight.
pub(super) const DEEP: u32 = 8;
/// Reads of this size give the bandwidth of a device.
const BANDWIDTH_READ_BYTES: u64 = 512 << 10;
/// Sizes of requests are similar up to this factor.
const SIZE_FACTOR: f64 = 2.0;

/// Rates that a cell reached on a device.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DeviceCeiling {
    /// The method.
    pub reached_by: String,
    /// True if the cell was made to find the maximum.
    #[serde(skip)]
    pub dedicated: bool,
    /// True if the method alone determines the reads in flight: the kernel brings in nothing ahead.
    #[serde(skip)]
    pub sets_depth: bool,
    /// Threads that issued reads.
    pub threads: u32,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// Order of the reads.
    pub workload: Workload,
    /// Cap of the device.
    pub device_cap: Option<DeviceCap>,
    /// CPUs that the threads were allowed to use, if set.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "Option<String>")]
    pub cpus: Option<CpuList>,
    /// Reads in flight per thread.
    pub depth: u32,
    /// Size of the reads; `None` for a scan.
    pub read_bytes: Option<Bytes>,
    /// Mean size of the requests that the device received.
    pub issued_bytes: f64,
    /// Requests per second: the lower end of its interval over rounds.
    #[serde(serialize_with = "lower_end")]
    #[schemars(with = "f64")]
    pub requests_per_second: Extent,
    /// Bytes per second: the lower end.
    #[serde(serialize_with = "lower_end")]
    #[schemars(with = "f64")]
    pub bytes_per_second: Extent,
    /// Samples of it.
    pub samples: usize,
}

/// CPUs as the kernel writes them.
fn as_text<S: serde::Serializer>(cpus: &Option<CpuList>, serializer: S) -> Result<S::Ok, S::Error> {
    cpus.as_ref().map(ToString::to_string).serialize(serializer)
}

impl DeviceCeiling {
    /// The rates that `cell` reached in so many samples; `None` if it did not read a device all the
    /// time.
    pub(super) fn reached_by_cell(cell: &Cell, activity: &Activity, samples: usize) -> Option<Self> {
        let Cell { role, method, conditions } = cell;
        let (requests, bytes) = (activity.device_requests_per_second?, activity.device_bytes_per_second?);
        (requests.low > 0.0 && bytes.low > 0.0).then_some(())?;
        Some(Self {
            reached_by: method.to_string(),
            dedicated: *role == Role::Ceiling
                && method.access() == Access::Uring
                && conditions.reads().is_some(),
            sets_depth: !is_read_ahead(cell),
            threads: conditions.threads,
            file_bytes: conditions.file_bytes,
            workload: conditions.workload(),
            device_cap: conditions.host_settings.device_cap,
            cpus: conditions.host_settings.cpus.clone(),
            depth: method.depth(),
            read_bytes: conditions.reads().map(|reads| reads.read_bytes),
            issued_bytes: activity.issued_bytes()?,
            requests_per_second: requests,
            bytes_per_second: bytes,
            samples,
        })
    }

    /// True if it applies to cells with `conditions`. A device does not see the memory limit, and
    /// its sequential rate says nothing about random reads.
    fn is_of(&self, conditions: &Conditions) -> bool {
        let HostSettings { device_cap, cpus, .. } = &conditions.host_settings;
        self.threads == conditions.threads
            && self.file_bytes == conditions.file_bytes
            && (self.workload == Workload::RandomRead || conditions.workload() != Workload::RandomRead)
            && self.device_cap == *device_cap
            && self.cpus == *cpus
    }

    /// True if it is another measurement of the same maximum.
    fn is_same(&self, other: &Self) -> bool {
        fn name(ceiling: &DeviceCeiling) -> impl PartialEq + '_ {
            let DeviceCeiling { threads, file_bytes, workload, device_cap, cpus, depth, read_bytes, .. } =
                ceiling;
            (threads, file_bytes, workload, device_cap, cpus, depth, read_bytes)
        }
        self.dedicated && other.dedicated && name(self) == name(other)
    }

    fn is_deep(&self) -> bool {
        self.dedicated && self.depth >= DEEP
    }

    fn requests(&self) -> Top<'_> {
        Top::of(self.requests_per_second, &self.reached_by)
    }

    fn bytes(&self) -> Top<'_> {
        Top::of(self.bytes_per_second, &self.reached_by)
    }

    fn requests_per_read_in_flight(&self) -> Top<'_> {
        self.requests().times(1.0 / (f64::from(self.threads) * f64::from(self.depth)))
    }
}

/// Rate of copying from memory under some conditions.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CopyCeiling {
    /// The method.
    pub reached_by: String,
    /// True if the cell was made to find the maximum.
    #[serde(skip)]
    pub dedicated: bool,
    /// The conditions.
    #[serde(skip)]
    pub conditions: Conditions,
    /// Threads that copied.
    pub threads: u32,
    /// Size of the reads; `None` for other work.
    pub read_bytes: Option<Bytes>,
    /// Bytes per second: the lower end of its interval over rounds.
    #[serde(serialize_with = "lower_end")]
    #[schemars(with = "f64")]
    pub bytes_per_second: Extent,
    /// Samples of it.
    pub samples: usize,
}

impl CopyCeiling {
    fn of(samples: &CellSamples<'_>, activity: &Activity) -> Self {
        let Cell { role, method, conditions } = samples.cell;
        Self {
            reached_by: method.to_string(),
            dedicated: *role == Role::Ceiling,
            conditions: conditions.clone(),
            threads: conditions.threads,
            read_bytes: conditions.reads().map(|reads| reads.read_bytes),
            bytes_per_second: activity.requested_bytes_per_second,
            samples: samples.valid().count(),
        }
    }

    fn bytes(&self) -> Top<'_> {
        Top::of(self.bytes_per_second, &self.reached_by)
    }

    /// True if the data are the same part of a file, with the same popularity.
    fn is_of_data(&self, conditions: &Conditions) -> bool {
        self.conditions.span_bytes == conditions.span_bytes && skew(&self.conditions) == skew(conditions)
    }
}

/// All rates that may be ceilings in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Of the device, by threads, file, depth and size.
    pub device: Vec<DeviceCeiling>,
    /// Of the memory.
    pub copy: Vec<CopyCeiling>,
    /// Of syncs.
    pub flushes: Vec<FlushCeiling>,
}

impl Ceilings {
    /// The rates that `cells` reached, each with its activity.
    pub fn of<'a>(cells: impl Iterator<Item = (&'a CellSamples<'a>, &'a Activity)>) -> Self {
        let mut ceilings = Self::default();
        for (samples, activity) in cells {
            let count = samples.valid().count();
            ceilings.flushes.extend(FlushCeiling::reached_by_cell(samples.cell, activity, count));
            if activity.uses_device() {
                if let Some(ceiling) = DeviceCeiling::reached_by_cell(samples.cell, activity, count) {
                    ceilings.add(ceiling);
                }
            } else if samples.cell.copies() {
                ceilings.copy.push(CopyCeiling::of(samples, activity));
            }
        }
        ceilings
    }

    /// Add rates of a device. Two cells may be made to find the same maximum, under conditions that
    /// the device does not see; the faster counts.
    pub(super) fn add(&mut self, found: DeviceCeiling) {
        match self.device.iter_mut().find(|known| known.is_same(&found)) {
            Some(known) if known.requests_per_second.low >= found.requests_per_second.low => {}
            Some(known) => *known = found,
            None => self.device.push(found),
        }
    }

    /// The highest rate of requests at random offsets that the device reached, of any size.
    pub fn device_iops(&self) -> Option<f64> {
        let at_random = || self.device.iter().filter(|ceiling| ceiling.workload == Workload::RandomRead);
        let found = best(at_random().filter(|ceiling| ceiling.is_deep()).map(DeviceCeiling::requests));
        Some(Top::highest(found, at_random().map(DeviceCeiling::requests))?.low)
    }

    /// The highest rate of bytes that the device reached, of any size.
    pub fn device_bytes_per_second(&self) -> Option<f64> {
        Some(bandwidth(&self.device.iter().collect::<Vec<_>>())?.low)
    }

    /// The highest rate of copying in bytes per second, under any conditions.
    pub fn copy_bytes_per_second(&self) -> Option<f64> {
        let made_to_copy = self.copy.iter().filter(|ceiling| ceiling.dedicated);
        Some(best(made_to_copy.map(CopyCeiling::bytes))?.low)
    }

    /// The ceilings to show: cells that were made to find a maximum, and any cell that exceeded all
    /// of those that apply to it.
    pub fn shown(self) -> (Vec<DeviceCeiling>, Vec<CopyCeiling>, Vec<FlushCeiling>) {
        let exceeds = |one: &DeviceCeiling| {
            let like = |other: &&DeviceCeiling| {
                (other.threads, other.file_bytes, &other.cpus, other.device_cap)
                    == (one.threads, one.file_bytes, &one.cpus, one.device_cap)
            };
            let mut others = self.device.iter().filter(like);
            let known = self.device.iter().filter(like).any(DeviceCeiling::is_deep);
            known
                && others.all(|other| match other.dedicated {
                    true => other.bytes_per_second.low < one.bytes_per_second.low,
                    false => other.bytes_per_second.low <= one.bytes_per_second.low,
                })
        };
        let device = self.device.iter().filter(|one| one.dedicated || exceeds(one)).cloned().collect();
        let copy = self.copy.into_iter().filter(|ceiling| ceiling.dedicated).collect();
        let flushes =
            self.flushes.iter().filter(|one| one.dedicated || one.exceeds(&self.flushes)).cloned().collect();
        (device, copy, flushes)
    }

    /// The most bytes per second that the device delivered under `conditions`; `None` if no large
    /// reads were measured.
    pub(super) fn bandwidth(&self, conditions: &Conditions) -> Option<Top<'_>> {
        bandwidth(&self.same_device(conditions))
    }

    /// The most requests of `size` bytes per second that the device completed under `conditions`.
    /// Requests as large as those that give the bandwidth are limited by that: how many they are
    /// follows from how the kernel merges them. A cap may be one of requests.
    pub(super) fn iops(&self, conditions: &Conditions, size: f64) -> Option<Top<'_>> {
        let same = self.same_device(conditions);
        let is_capped = conditions.host_settings.device_cap.is_some();
        if is_large(size) && !is_capped && bandwidth(&same).is_some() {
            return None;
        }
        let measured = iops_at(&same, size)?;
        // Who completes so many larger requests could complete as many of this size.
        let larger =
            same.iter().filter(|ceiling| ceiling.issued_bytes >= size).map(|ceiling| ceiling.requests());
        Top::highest(Some(measured), larger)
    }

    /// The most requests of about `size` bytes per second for each read in flight, under
    /// `conditions`.
    pub(super) fn requests_per_read_in_flight(&self, conditions: &Conditions, size: f64) -> Option<Top<'_>> {
        let distance = |ceiling: &DeviceCeiling| (ceiling.issued_bytes / size).ln().abs();
        let same = self.same_device(conditions);
        let near = || same.iter().filter(|ceiling| distance(ceiling) <= SIZE_FACTOR.ln());
        let made_for_it = near().filter(|ceiling| ceiling.dedicated && ceiling.depth == 1);
        let reached = near().filter(|ceiling| ceiling.sets_depth);
        Top::highest(
            best(made_for_it.map(|ceiling| ceiling.requests_per_read_in_flight())),
            reached.map(|ceiling| ceiling.requests_per_read_in_flight()),
        )
    }

    /// The most bytes per second that were copied like `cell` copies. Of other data only if nothing
    /// that copied the cell's data was faster: those are in a cache of the CPU.
    pub(super) fn copying(&self, cell: &Cell) -> Option<Top<'_>> {
        let conditions = &cell.conditions;
        let alike = || self.copy.iter().filter(|ceiling| copies_alike(&ceiling.conditions, conditions));
        let made_to_copy = alike().filter(|ceiling| ceiling.dedicated).max_by_key(|ceiling| {
            (ceiling.is_of_data(conditions), ceiling.conditions.file_bytes == conditions.file_bytes)
        })?;
        let reached = alike().filter(|ceiling| ceiling.is_of_data(conditions)).map(CopyCeiling::bytes);
        let top = Top::highest(Some(made_to_copy.bytes()), reached)?;
        let is_same =
            made_to_copy.is_of_data(conditions) || top.median <= made_to_copy.bytes_per_second.median;
        is_same.then_some(top)
    }

    fn same_device(&self, conditions: &Conditions) -> Vec<&DeviceCeiling> {
        self.device.iter().filter(|ceiling| ceiling.is_of(conditions)).collect()
    }
}

/// True if requests of this mean size are limited by the bandwidth of a device, and not by their
/// number.
pub fn is_large(issued_bytes: f64) -> bool {
    issued_bytes >= BANDWIDTH_READ_BYTES as f64 / SIZE_FACTOR
}

fn skew(conditions: &Conditions) -> Option<Skew> {
    conditions.reads().map(|reads| reads.skew)
}

/// True if copying is the same work under both: page cache, limits and the position of the data in
/// the file may differ.
fn copies_alike(ceiling: &Conditions, cell: &Conditions) -> bool {
    // The location of the data and the time of the sync do not affect a copy.
    let work = |conditions: &Conditions| {
        let mut work = conditions.work.without_sync();
        if let Some(reads) = work.reads_mut() {
            (reads.skew, reads.dependent) = (Skew::Uniform, false);
        }
        (work, conditions.threads)
    };
    let (left, right) = (&ceiling.host_settings, &cell.host_settings);
    work(ceiling) == work(cell) && (&left.cpus, left.numa) == (&right.cpus, right.numa)
}

/// The highest rate of bytes, known only if deep queues of large reads are among the cells. On some
/// devices smaller reads move more bytes, so the highest rate counts and not that of the largest
/// reads.
fn bandwidth<'a>(same: &[&'a DeviceCeiling]) -> Option<Top<'a>> {
    let is_large =
        |ceiling: &DeviceCeiling| ceiling.read_bytes.is_some_and(|bytes| bytes.0 >= BANDWIDTH_READ_BYTES);
    let deep = || same.iter().filter(|ceiling| ceiling.is_deep());
    let found =
        best(deep().map(|ceiling| ceiling.bytes())).filter(|_| deep().any(|ceiling| is_large(ceiling)));
    Top::highest(found, same.iter().map(|ceiling| ceiling.bytes()))
}

/// Requests per second of deep queues at `size`: between two measured sizes by a power law through
/// both, a little below the smallest no more than there, above the largest by its bandwidth. Far
/// below the smallest it is unknown: a device that was asked for 1 MiB at a time may well do more
/// requests of 128 KiB.
fn iops_at<'a>(ceilings: &[&'a DeviceCeiling], size: f64) -> Option<Top<'a>> {
    let mut deep: Vec<&DeviceCeiling> =
        ceilings.iter().copied().filter(|ceiling| ceiling.is_deep()).collect();
    deep.sort_by(|left, right| left.issued_bytes.total_cmp(&right.issued_bytes));
    let above = deep.partition_point(|ceiling| ceiling.issued_bytes < size);
    match (above.checked_sub(1).map(|below| deep[below]), deep.get(above).copied()) {
        (None, None) => None,
        (None, Some(smallest)) => (smallest.issued_bytes <= size * SIZE_FACTOR).then(|| smallest.requests()),
        (Some(largest), None) => Some(largest.bytes().times(1.0 / size)),
        (Some(below), Some(above)) => {
            let along = (size / below.issued_bytes).ln() / (above.issued_bytes / below.issued_bytes).ln();
            let (below, above) = (below.requests(), above.requests());
            let between = |below: f64, above: f64| below * ((above / below).ln() * along).exp();
            let (low, median) = (between(below.low, above.low), between(below.median, above.median));
            Some(Top { low, median, ..below })
        }
    }
}
