//! The bound of a cell: the resource that limited it, and the share of that ceiling it reached.
//!
//! Ceilings are cells of the same run with that role. `uring:direct` with a deep queue gives the device's maximum at the
//! size of its reads; the same with one read in flight gives the rate of a program that waits for each read; copying
//! from anonymous memory gives the maximum of the memory. A cell is compared with them by the activity of the *device*
//! per second of both phases: its requests at the size really issued, and its bytes. Requested bytes would make
//! readahead look fast.
//!
//! Ceilings apply to cells of the same file, threads, CPUs and device cap; a different cap amounts to a different
//! device. The memory limit and the state of the page cache may differ, since the device sees neither.
//!
//! Queue depth is the bound by Little's law: with a latency of L and N reads in flight, a device completes N / L
//! requests per second, and 1 / L is the measured rate of one thread with one read in flight. A rate of threads x depth
//! / L means that latency times rate equals the number of reads in flight: the device never had more to do.
//!
//! A bound explains; it does not rank.

use pagewise_model::sample::Measurement;
use pagewise_model::{
    Access, Bytes, Cell, Conditions, CpuList, DeviceCap, Evidence, HostSettings, Role, Skew, Sync, Work,
    Workload,
};
use serde::Serialize;

use crate::judge::collected::CellSamples;
use crate::proof::calls;
use crate::proof::measured::operations;
use crate::statistics::median;

/// From this share of a ceiling, the ceiling is the bound.
pub const REACHED: f64 = 0.85;
/// From this share of a ceiling, a sentence says "at its ceiling": a ceiling is measured, and may be exceeded slightly.
pub const AT_CEILING: f64 = 0.995;
/// From this share of a CPU per thread, the CPU is the bound.
pub const CPU_REACHED: f64 = 0.9;
/// The queue depth is the bound if the device's rate is this close to the rate that the depth allows.
pub const DEPTH_TOLERANCE: f64 = 0.20;
/// A ceiling has at least this many reads in flight.
const DEEP: u32 = 8;
/// Reads of this size give the bandwidth of a device.
const BANDWIDTH_READ_BYTES: u64 = 512 << 10;
/// Below this share of the requested bytes, the device is not involved.
const DEVICE_SHARE: f64 = 0.01;
/// The device counts the requests of all processes; they are the cell's if others moved at most this share.
const OTHERS_SHARE: f64 = 0.05;
/// Sizes of requests are similar up to this factor.
const SIZE_FACTOR: f64 = 2.0;
/// A ceiling that is exceeded by more than this does not apply: a copy from memory was of other data, smaller or more
/// popular ones that fit in a CPU cache, or the device's maximum was measured too low.
const EXCEEDED: f64 = 1.25;
/// From this share of the time in which at least one task waited for memory or a device (PSI), waiting explains a cell.
const STALLED: f64 = 0.25;
/// A thread that gives up its CPU this often per second waits for something.
const WAITS_PER_SECOND: f64 = 100.0;

/// A resource that can limit a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundName {
    /// Requests per second of the device at the size issued.
    DeviceIops,
    /// Bytes per second of the device.
    DeviceBandwidth,
    /// The reads in flight that the method allows.
    QueueDepth,
    /// Copying by the CPU from memory.
    MemoryCopy,
    /// CPU time.
    Cpu,
    /// A wait for something other than CPU and device: a lock, another process.
    Waiting,
    /// Not explained by any measured resource.
    Unknown,
}

impl BoundName {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            BoundName::DeviceIops => "device-iops",
            BoundName::DeviceBandwidth => "device-bandwidth",
            BoundName::QueueDepth => "queue-depth",
            BoundName::MemoryCopy => "memory-copy",
            BoundName::Cpu => "cpu",
            BoundName::Waiting => "waiting",
            BoundName::Unknown => "unknown",
        }
    }
}

/// The bound of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The limiting resource.
    pub name: BoundName,
    /// The share of the ceiling that was reached.
    pub of_ceiling: Option<f64>,
    /// The ceiling: requests or bytes per second, or CPUs.
    pub ceiling: Option<f64>,
}

impl Bound {
    fn reached(name: BoundName, rate: f64, ceiling: f64) -> Self {
        Self { name, of_ceiling: Some(rate / ceiling), ceiling: Some(ceiling) }
    }

    const UNKNOWN: Self = Self { name: BoundName::Unknown, of_ceiling: None, ceiling: None };
}

/// Activity of the machine for a cell, as medians over its valid samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Requested bytes per second.
    pub requested_bytes_per_second: f64,
    /// Bytes that the device read per second.
    pub device_bytes_per_second: Option<f64>,
    /// Requests that the device completed per second.
    pub device_requests_per_second: Option<f64>,
    /// CPU time over the time of all threads.
    pub cpu_share: Option<f64>,
    /// Voluntary context switches, per second and thread.
    pub waits_per_second: Option<f64>,
    /// Share of the time in which at least one task of the host waited for memory or for a device (PSI), the larger of
    /// the two.
    pub stalled_share: Option<f64>,
}

impl Activity {
    /// The activity of a cell; `None` without a valid sample.
    pub fn of(samples: &CellSamples<'_>) -> Option<Self> {
        let cell = samples.cell;
        let of_valid = |figure: &dyn Fn(&Measurement, &Evidence) -> Option<f64>| {
            let figures: Vec<f64> =
                samples.valid().filter_map(|(measurement, evidence)| figure(measurement, evidence)).collect();
            median(&figures)
        };
        let threads = f64::from(cell.conditions.threads);
        Some(Self {
            requested_bytes_per_second: of_valid(&|measurement, evidence| {
                Some(evidence.requested_bytes as f64 / seconds(measurement))
            })?,
            device_bytes_per_second: of_valid(&|measurement, evidence| {
                Some(evidence.device_read_bytes? as f64 / seconds(measurement))
            }),
            device_requests_per_second: of_valid(&|measurement, evidence| {
                Some(requests(cell, measurement, evidence)? as f64 / seconds(measurement))
            }),
            // CPU time was read around the supervisor's clock, so it is a share of that clock's time.
            cpu_share: of_valid(&|_, evidence| {
                Some(evidence.cpu_ns? as f64 / evidence.wall_ns.max(1) as f64 / threads)
            }),
            waits_per_second: of_valid(&|measurement, evidence| {
                Some(own_waits(evidence)? as f64 / seconds(measurement) / threads)
            }),
            stalled_share: of_valid(&|_, evidence| {
                let stalled = evidence.host.memory_some_ns.max(evidence.host.io_some_ns)?;
                Some(stalled as f64 / evidence.wall_ns.max(1) as f64)
            }),
        })
    }

    /// Mean size of a request to the device.
    pub fn issued_bytes(&self) -> Option<f64> {
        let (bytes, requests) = (self.device_bytes_per_second?, self.device_requests_per_second?);
        (bytes > 0.0 && requests > 0.0).then(|| bytes / requests)
    }

    fn uses_device(&self) -> bool {
        self.device_bytes_per_second
            .is_some_and(|bytes| bytes >= self.requested_bytes_per_second * DEVICE_SHARE)
    }
}

/// Voluntary context switches of the measured threads. Unknown with heartbeats, which sleep and wake all the time.
pub(crate) fn own_waits(evidence: &Evidence) -> Option<u64> {
    evidence.voluntary_switches.filter(|_| evidence.heartbeats.is_empty())
}

/// Duration of both phases, since the evidence covers both.
fn seconds(measurement: &Measurement) -> f64 {
    measurement.measured_ns.saturating_add(measurement.latency_phase_ns) as f64 / 1e9
}

/// Requests of the device for this sample. If others used it too, the group's own count applies, a direct read is still
/// one request, and for anything else the count is unknown.
fn requests(cell: &Cell, measurement: &Measurement, evidence: &Evidence) -> Option<u64> {
    let own = evidence.device_read_bytes?;
    let others_are_few =
        evidence.device_other_bytes.is_some_and(|others| others as f64 <= own as f64 * OTHERS_SHARE);
    let of_device = evidence.device_read_requests.filter(|_| others_are_few);
    let of_group = evidence.group.as_ref().and_then(|group| group.device_read_requests);
    let of_calls = cell.method.is_direct().then(|| calls::reads(cell, operations(measurement)));
    of_device.or(of_group).or(of_calls)
}

/// Maximum of the device at one size and depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceCeiling {
    /// Threads that issued reads.
    pub threads: u32,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// Order of the reads: random or sequential.
    pub workload: Workload,
    /// Cap of the device.
    pub device_cap: Option<DeviceCap>,
    /// CPUs that the threads were allowed to use, if set.
    #[serde(serialize_with = "as_text")]
    pub cpus: Option<CpuList>,
    /// Reads in flight per thread.
    pub depth: u32,
    /// Size of the reads.
    pub read_bytes: Bytes,
    /// Mean size of the requests that the device received.
    pub issued_bytes: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// CPUs as the kernel writes them.
fn as_text<S: serde::Serializer>(cpus: &Option<CpuList>, serializer: S) -> Result<S::Ok, S::Error> {
    cpus.as_ref().map(ToString::to_string).serialize(serializer)
}

impl DeviceCeiling {
    /// True if it applies to cells with `conditions`. A device does not see the memory limit, and its sequential rate
    /// says nothing about random reads.
    fn is_of(&self, conditions: &Conditions) -> bool {
        let HostSettings { device_cap, cpus, .. } = &conditions.host_settings;
        self.threads == conditions.threads
            && self.file_bytes == conditions.file_bytes
            && (self.workload == Workload::RandomRead || conditions.workload() != Workload::RandomRead)
            && self.device_cap == *device_cap
            && self.cpus == *cpus
    }
}

/// Rate of copying from memory under some conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopyCeiling {
    /// The conditions.
    #[serde(skip)]
    pub conditions: Conditions,
    /// Threads that copied.
    pub threads: u32,
    /// Size of the reads; `None` for other work.
    pub read_bytes: Option<Bytes>,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// All ceilings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ceilings {
    /// Maxima of the device, by threads, file, depth and size.
    pub device: Vec<DeviceCeiling>,
    /// Maxima of the memory.
    pub copy: Vec<CopyCeiling>,
    /// Conditions of scans that exceeded the measured maximum of their device.
    #[serde(skip)]
    outrun: Vec<Conditions>,
}

impl Ceilings {
    /// The ceilings among `cells`. A compared method is not a ceiling, or it would be limited by itself.
    pub fn of(cells: &[CellSamples<'_>]) -> Self {
        let mut ceilings = Self::default();
        for samples in cells.iter().filter(|samples| samples.cell.role == Role::Ceiling) {
            let Some(activity) = Activity::of(samples) else { continue };
            let (method, conditions) = (&samples.cell.method, &samples.cell.conditions);
            match method.access() {
                Access::Anonymous => ceilings.copy.push(CopyCeiling {
                    conditions: conditions.clone(),
                    threads: conditions.threads,
                    read_bytes: conditions.reads().map(|reads| reads.read_bytes),
                    bytes_per_second: activity.requested_bytes_per_second,
                }),
                Access::Uring if method.is_direct() && conditions.reads().is_some() => {
                    if let Some(ceiling) = device_ceiling(samples.cell, &activity) {
                        ceilings.add(ceiling);
                    }
                }
                _ => {}
            }
        }
        ceilings.outrun = cells
            .iter()
            .filter(|samples| samples.cell.role != Role::Ceiling && is_scan(&samples.cell.conditions))
            .filter_map(|samples| Some((&samples.cell.conditions, Activity::of(samples)?)))
            .filter(|(conditions, activity)| ceilings.times_beyond(conditions, activity).is_some())
            .map(|(conditions, _)| conditions.clone())
            .collect();
        ceilings
    }

    /// Add a ceiling. Two cells may be the same ceiling under conditions that the device does not see; the faster
    /// counts.
    fn add(&mut self, found: DeviceCeiling) {
        fn name(ceiling: &DeviceCeiling) -> impl PartialEq + '_ {
            let DeviceCeiling { threads, file_bytes, workload, device_cap, cpus, depth, read_bytes, .. } =
                ceiling;
            (threads, file_bytes, workload, device_cap, cpus, depth, read_bytes)
        }
        match self.device.iter_mut().find(|known| name(known) == name(&found)) {
            Some(known) if known.requests_per_second >= found.requests_per_second => {}
            Some(known) => *known = found,
            None => self.device.push(found),
        }
    }

    /// The highest rate of requests at random offsets that the device reached, of any size.
    pub fn device_iops(&self) -> Option<f64> {
        let at_random = self.device.iter().filter(|ceiling| ceiling.workload == Workload::RandomRead);
        let deep = at_random.filter(|ceiling| ceiling.depth >= DEEP);
        deep.map(|ceiling| ceiling.requests_per_second).max_by(f64::total_cmp)
    }

    /// The highest rate of bytes that the device reached, of any size.
    pub fn device_bytes_per_second(&self) -> Option<f64> {
        bandwidth(self.device.iter())
    }

    /// The highest rate of copying in bytes per second, under any conditions.
    pub fn copy_bytes_per_second(&self) -> Option<f64> {
        self.copy.iter().map(|ceiling| ceiling.bytes_per_second).max_by(f64::total_cmp)
    }

    /// Return the bound of `cell`.
    pub fn bound(&self, cell: &Cell, activity: &Activity) -> Bound {
        let by_device = || self.bound_by_device(cell, activity);
        let by_memory = || self.bound_by_copy(cell, activity);
        let found = if activity.uses_device() { by_device() } else { by_memory() };
        found.or_else(|| bound_by_cpu(cell, activity)).or_else(|| waiting(activity)).unwrap_or(Bound::UNKNOWN)
    }

    /// Device bytes per second as a share of the device's maximum for cells with `conditions`; `None` if the device was
    /// not involved, no large reads were measured, or that ceiling was measured too low.
    pub fn share_of_bandwidth(&self, conditions: &Conditions, activity: &Activity) -> Option<f64> {
        let share = self.over_bandwidth(conditions, activity)?;
        (share <= EXCEEDED && !self.is_outrun(conditions)).then_some(share)
    }

    /// The same if the share is larger than a ceiling can be exceeded by.
    pub fn times_beyond(&self, conditions: &Conditions, activity: &Activity) -> Option<f64> {
        self.over_bandwidth(conditions, activity).filter(|share| *share > EXCEEDED)
    }

    /// True if a scan with the same ceilings exceeded them: they explain none of these scans then.
    fn is_outrun(&self, conditions: &Conditions) -> bool {
        fn held_against(conditions: &Conditions) -> impl PartialEq + '_ {
            let HostSettings { device_cap, cpus, .. } = &conditions.host_settings;
            (conditions.threads, conditions.file_bytes, device_cap, cpus)
        }
        let own = held_against(conditions);
        is_scan(conditions) && self.outrun.iter().any(|outrun| held_against(outrun) == own)
    }

    fn over_bandwidth(&self, conditions: &Conditions, activity: &Activity) -> Option<f64> {
        let bytes = activity.device_bytes_per_second.filter(|_| activity.uses_device())?;
        Some(bytes / bandwidth(self.same_device(conditions).into_iter())?)
    }

    fn bound_by_device(&self, cell: &Cell, activity: &Activity) -> Option<Bound> {
        let same = self.same_device(&cell.conditions);
        let bytes = activity.device_bytes_per_second?;
        let bandwidth = bandwidth(same.iter().copied());
        let too_low = self.is_outrun(&cell.conditions)
            || bandwidth.is_some_and(|bandwidth| bytes > bandwidth * EXCEEDED);
        let explains = |rate: f64, ceiling: f64| !too_low && (REACHED..=EXCEEDED).contains(&(rate / ceiling));
        if let Some(bandwidth) = bandwidth.filter(|bandwidth| explains(bytes, *bandwidth)) {
            return Some(Bound::reached(BoundName::DeviceBandwidth, bytes, bandwidth));
        }
        let (requests, issued) = (activity.device_requests_per_second?, activity.issued_bytes()?);
        let iops = iops_at(&same, issued);
        if let Some(iops) = iops.filter(|iops| explains(requests, *iops)) {
            return Some(Bound::reached(BoundName::DeviceIops, requests, iops));
        }
        // The reads in flight of a third-party method are unknown.
        let by_depth = depth_one_rate_at(&same, issued).filter(|_| cell.access() != Access::Unknown)?
            * f64::from(cell.conditions.threads)
            * f64::from(cell.method.depth());
        let close = (requests / by_depth - 1.0).abs() <= DEPTH_TOLERANCE;
        close.then(|| Bound::reached(BoundName::QueueDepth, requests, by_depth))
    }

    fn bound_by_copy(&self, cell: &Cell, activity: &Activity) -> Option<Bound> {
        let bytes = activity.requested_bytes_per_second;
        let of_cell = self.copy.iter().filter(|ceiling| copies_alike(&ceiling.conditions, &cell.conditions));
        // The same data if they were measured, else those of the whole file.
        let ceiling = of_cell.max_by_key(|ceiling| {
            let (ceiling, cell) = (&ceiling.conditions, &cell.conditions);
            (
                ceiling.span_bytes == cell.span_bytes && skew(ceiling) == skew(cell),
                ceiling.file_bytes == cell.file_bytes,
            )
        })?;
        let share = bytes / ceiling.bytes_per_second;
        let reached = cell.copies() && (REACHED..=EXCEEDED).contains(&share);
        reached.then(|| Bound::reached(BoundName::MemoryCopy, bytes, ceiling.bytes_per_second))
    }

    fn same_device(&self, conditions: &Conditions) -> Vec<&DeviceCeiling> {
        self.device.iter().filter(|ceiling| ceiling.is_of(conditions)).collect()
    }
}

fn is_scan(conditions: &Conditions) -> bool {
    conditions.workload() == Workload::Scan
}

fn skew(conditions: &Conditions) -> Option<Skew> {
    conditions.reads().map(|reads| reads.skew)
}

/// True if copying is the same work under both: page cache, limits and the position of the data in the file may differ.
fn copies_alike(ceiling: &Conditions, cell: &Conditions) -> bool {
    // The location of the data and the time of the sync do not affect a copy.
    let work = |conditions: &Conditions| {
        let mut work = conditions.work;
        match &mut work {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => {
                (reads.skew, reads.dependent) = (Skew::Uniform, false);
            }
            Work::Scan(_) => {}
            Work::Append(append) => append.sync = Sync::None,
            Work::Fill(fill) => fill.sync = Sync::None,
        }
        (work, conditions.threads)
    };
    let (left, right) = (&ceiling.host_settings, &cell.host_settings);
    work(ceiling) == work(cell) && (&left.cpus, left.numa) == (&right.cpus, right.numa)
}

fn device_ceiling(cell: &Cell, activity: &Activity) -> Option<DeviceCeiling> {
    Some(DeviceCeiling {
        threads: cell.conditions.threads,
        file_bytes: cell.conditions.file_bytes,
        workload: cell.conditions.workload(),
        device_cap: cell.conditions.host_settings.device_cap,
        cpus: cell.conditions.host_settings.cpus.clone(),
        depth: cell.method.depth(),
        read_bytes: cell.conditions.reads()?.read_bytes,
        issued_bytes: activity.issued_bytes()?,
        requests_per_second: activity.device_requests_per_second?,
        bytes_per_second: activity.device_bytes_per_second?,
    })
}

/// The highest rate of bytes of deep queues, known only if large reads are among them. On some devices smaller reads
/// move more bytes, so the highest rate counts and not that of the largest reads.
fn bandwidth<'a>(ceilings: impl Iterator<Item = &'a DeviceCeiling> + Clone) -> Option<f64> {
    let deep = ceilings.filter(|ceiling| ceiling.depth >= DEEP);
    let large = deep.clone().any(|ceiling| ceiling.read_bytes.0 >= BANDWIDTH_READ_BYTES);
    deep.map(|ceiling| ceiling.bytes_per_second).max_by(f64::total_cmp).filter(|_| large)
}

/// Requests per second that the device can do at `size`: between two measured sizes by a power law through both, a
/// little below the smallest no more than there, above the largest by its bandwidth. Far below the smallest it is
/// unknown: a device that was asked for 1 MiB at a time may well do more requests of 128 KiB.
fn iops_at(ceilings: &[&DeviceCeiling], size: f64) -> Option<f64> {
    let mut deep: Vec<&DeviceCeiling> =
        ceilings.iter().copied().filter(|ceiling| ceiling.depth >= DEEP).collect();
    deep.sort_by(|left, right| left.issued_bytes.total_cmp(&right.issued_bytes));
    let above = deep.partition_point(|ceiling| ceiling.issued_bytes < size);
    match (above.checked_sub(1).map(|below| deep[below]), deep.get(above)) {
        (None, None) => None,
        (None, Some(smallest)) => {
            (smallest.issued_bytes <= size * SIZE_FACTOR).then_some(smallest.requests_per_second)
        }
        (Some(largest), None) => Some(largest.bytes_per_second / size),
        (Some(below), Some(above)) => {
            let along = (size / below.issued_bytes).ln() / (above.issued_bytes / below.issued_bytes).ln();
            let steps = (above.requests_per_second / below.requests_per_second).ln();
            Some(below.requests_per_second * (steps * along).exp())
        }
    }
}

/// Requests per second of one thread with one read in flight, at the measured size nearest to `size`.
fn depth_one_rate_at(ceilings: &[&DeviceCeiling], size: f64) -> Option<f64> {
    let distance = |ceiling: &DeviceCeiling| (ceiling.issued_bytes / size).ln().abs();
    ceilings
        .iter()
        .filter(|ceiling| ceiling.depth == 1 && distance(ceiling) <= SIZE_FACTOR.ln())
        .min_by(|left, right| distance(left).total_cmp(&distance(right)))
        .map(|ceiling| ceiling.requests_per_second / f64::from(ceiling.threads))
}

fn bound_by_cpu(cell: &Cell, activity: &Activity) -> Option<Bound> {
    let share = activity.cpu_share.filter(|share| *share >= CPU_REACHED)?;
    let threads = f64::from(cell.conditions.threads);
    // CPU time of a runtime's own threads does not count: the share is of the CPUs that the working threads can use.
    Some(Bound::reached(BoundName::Cpu, share.min(1.0) * threads, threads))
}

fn waiting(activity: &Activity) -> Option<Bound> {
    let switches = activity.waits_per_second.is_some_and(|waits| waits >= WAITS_PER_SECOND);
    let stalled = activity.stalled_share.is_some_and(|share| share >= STALLED);
    // If the device is involved, waiting does not answer which of its limits applied.
    let waits = (switches || stalled) && activity.cpu_share? < CPU_REACHED && !activity.uses_device();
    waits.then_some(Bound { name: BoundName::Waiting, of_ceiling: None, ceiling: None })
}

#[cfg(test)]
mod tests;
