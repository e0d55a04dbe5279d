//! What limited a cell, and which share of that ceiling it reached.
//!
//! Ceilings are cells of the same run with that role, told apart by what they are: `uring:direct` with a deep queue gives what
//! the device can do at the size of its reads, the same with one read in flight gives the pace of a program
//! that waits for each read, and copying from anonymous memory gives what the memory can do. A cell is
//! held against them by what the *device* did, its requests at the size really issued and its bytes, per
//! second of both phases; what the program asked for would call readahead fast.
//!
//! A bound explains; it does not rank.

use pagewise_model::sample::Measurement;
use pagewise_model::{Access, Bytes, Cell, Conditions, Evidence, Role, Workload};
use serde::Serialize;

use crate::collected::CellSamples;
use crate::statistics::median;

/// From this share of a ceiling on, the ceiling is the bound.
pub const REACHED: f64 = 0.85;
/// From this share of a ceiling on it is said in words: a ceiling is measured, and may be exceeded a little.
pub const AT_CEILING: f64 = 0.995;
/// From this share of a CPU per thread on, the CPU is the bound.
pub const CPU_REACHED: f64 = 0.9;
/// A queue depth is the bound where the device's rate lies this close to what that depth allows.
pub const DEPTH_TOLERANCE: f64 = 0.20;
/// A ceiling has at least this many reads in flight.
const DEEP: u32 = 8;
/// Reads of this size give the bandwidth of a device.
const BANDWIDTH_READ_BYTES: u64 = 512 << 10;
/// Below this share of the bytes asked for, the device played no part.
const DEVICE_SHARE: f64 = 0.01;
/// The device counts requests of everyone; they are the cell's if others moved at most this share.
const OTHERS_SHARE: f64 = 0.05;
/// Sizes of requests are alike up to this factor.
const SIZE_FACTOR: f64 = 2.0;
/// A thread that gives up its CPU this often in a second waits for something.
const WAITS_PER_SECOND: f64 = 100.0;

/// What can limit a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundName {
    /// Requests per second of the device at the size issued.
    DeviceIops,
    /// Bytes per second of the device.
    DeviceBandwidth,
    /// The reads that the method keeps in flight.
    QueueDepth,
    /// Copying by the CPU from memory.
    MemoryCopy,
    /// CPU time.
    Cpu,
    /// Something that is neither CPU nor device: a lock, another process.
    Waiting,
    /// Nothing that was measured explains it.
    Unknown,
}

impl BoundName {
    /// The word in tables and JSON.
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

/// What limited a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Which limit.
    pub name: BoundName,
    /// The share of it that was reached.
    pub of_ceiling: Option<f64>,
    /// The limit itself: requests or bytes per second, or CPUs.
    pub ceiling: Option<f64>,
}

impl Bound {
    fn reached(name: BoundName, rate: f64, ceiling: f64) -> Self {
        Self { name, of_ceiling: Some(rate / ceiling), ceiling: Some(ceiling) }
    }

    const UNKNOWN: Self = Self { name: BoundName::Unknown, of_ceiling: None, ceiling: None };
}

/// What a cell made the machine do, as medians over its valid samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Bytes asked for per second.
    pub requested_bytes_per_second: f64,
    /// Bytes that the device read per second.
    pub device_bytes_per_second: Option<f64>,
    /// Requests that the device completed per second.
    pub device_requests_per_second: Option<f64>,
    /// CPU time over the time of all threads.
    pub cpu_share: Option<f64>,
    /// How often a thread gave up its CPU, per second and thread.
    pub waits_per_second: Option<f64>,
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
            // CPU time was read around the supervisor's clock, so it is a share of that.
            cpu_share: of_valid(&|_, evidence| {
                Some(evidence.cpu_ns? as f64 / evidence.wall_ns.max(1) as f64 / threads)
            }),
            waits_per_second: of_valid(&|measurement, evidence| {
                Some(evidence.voluntary_switches? as f64 / seconds(measurement) / threads)
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

/// Both phases, since evidence is of both.
fn seconds(measurement: &Measurement) -> f64 {
    (measurement.measured_ns + measurement.latency_phase_ns) as f64 / 1e9
}

/// Requests of the device for this sample. Where others used it too, a direct read still is one request,
/// and of anything else nothing is known.
fn requests(cell: &Cell, measurement: &Measurement, evidence: &Evidence) -> Option<u64> {
    let own = evidence.device_read_bytes?;
    let others_are_few =
        evidence.device_other_bytes.is_some_and(|others| others as f64 <= own as f64 * OTHERS_SHARE);
    match evidence.device_read_requests.filter(|_| others_are_few) {
        Some(requests) => Some(requests),
        None if cell.method.is_direct() => Some(
            (measurement.operations + measurement.latency_phase_operations)
                * u64::from(cell.conditions.reads_per_op),
        ),
        None => None,
    }
}

/// What the device did at one size and depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceCeiling {
    /// Threads that issued reads.
    pub threads: u32,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// Reads in flight per thread.
    pub depth: u32,
    /// Size of the reads.
    pub read_bytes: Bytes,
    /// Mean size of the requests that the device saw.
    pub issued_bytes: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// What copying from memory does under some conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopyCeiling {
    /// The conditions.
    #[serde(skip)]
    pub conditions: Conditions,
    /// Threads that copied.
    pub threads: u32,
    /// Size of the reads.
    pub read_bytes: Bytes,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// All ceilings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ceilings {
    /// What the device did, by threads, file, depth and size.
    pub device: Vec<DeviceCeiling>,
    /// What the memory did.
    pub copy: Vec<CopyCeiling>,
}

impl Ceilings {
    /// The ceilings among `cells`. A method that is compared is none, else it would be limited by itself.
    pub fn of(cells: &[CellSamples<'_>]) -> Self {
        let mut ceilings = Self::default();
        for samples in cells.iter().filter(|samples| samples.cell.role == Role::Ceiling) {
            let Some(activity) = Activity::of(samples) else { continue };
            let (method, conditions) = (&samples.cell.method, &samples.cell.conditions);
            let random = conditions.workload == Workload::RandomRead;
            match method.access() {
                Access::Anonymous => ceilings.copy.push(CopyCeiling {
                    conditions: conditions.clone(),
                    threads: conditions.threads,
                    read_bytes: conditions.read_bytes,
                    bytes_per_second: activity.requested_bytes_per_second,
                }),
                Access::Uring if method.is_direct() && random => {
                    if let Some(ceiling) = device_ceiling(samples.cell, &activity) {
                        ceilings.add(ceiling);
                    }
                }
                _ => {}
            }
        }
        ceilings
    }

    /// Two cells may be the same ceiling under conditions that the device does not see; the faster counts.
    fn add(&mut self, found: DeviceCeiling) {
        let same = |known: &&mut DeviceCeiling| {
            (known.threads, known.file_bytes, known.depth, known.read_bytes)
                == (found.threads, found.file_bytes, found.depth, found.read_bytes)
        };
        match self.device.iter_mut().find(same) {
            Some(known) if known.requests_per_second >= found.requests_per_second => {}
            Some(known) => *known = found,
            None => self.device.push(found),
        }
    }

    /// The most requests per second that the device did, of any size.
    pub fn device_iops(&self) -> Option<f64> {
        let deep = self.device.iter().filter(|ceiling| ceiling.depth >= DEEP);
        deep.map(|ceiling| ceiling.requests_per_second).max_by(f64::total_cmp)
    }

    /// The most bytes per second that the device did, of any size.
    pub fn device_bytes_per_second(&self) -> Option<f64> {
        bandwidth(self.device.iter())
    }

    /// Bytes per second of copying, the most of any conditions.
    pub fn copy_bytes_per_second(&self) -> Option<f64> {
        self.copy.iter().map(|ceiling| ceiling.bytes_per_second).max_by(f64::total_cmp)
    }

    /// What limited `cell`.
    pub fn bound(&self, cell: &Cell, activity: &Activity) -> Bound {
        let by_device = || self.bound_by_device(cell, activity);
        let by_memory = || self.bound_by_copy(cell, activity);
        let found = if activity.uses_device() { by_device() } else { by_memory() };
        found.or_else(|| bound_by_cpu(cell, activity)).or_else(|| waiting(activity)).unwrap_or(Bound::UNKNOWN)
    }

    fn bound_by_device(&self, cell: &Cell, activity: &Activity) -> Option<Bound> {
        let same = self.same_device(&cell.conditions);
        let bytes = activity.device_bytes_per_second?;
        let bandwidth = bandwidth(same.iter().copied());
        if let Some(bandwidth) = bandwidth.filter(|bandwidth| bytes >= bandwidth * REACHED) {
            return Some(Bound::reached(BoundName::DeviceBandwidth, bytes, bandwidth));
        }
        let (requests, issued) = (activity.device_requests_per_second?, activity.issued_bytes()?);
        let iops = iops_at(&same, issued);
        if let Some(iops) = iops.filter(|iops| requests >= iops * REACHED) {
            return Some(Bound::reached(BoundName::DeviceIops, requests, iops));
        }
        let by_depth = depth_one_rate_at(&same, issued)?
            * f64::from(cell.conditions.threads)
            * f64::from(cell.method.depth());
        let close = (requests / by_depth - 1.0).abs() <= DEPTH_TOLERANCE;
        close.then(|| Bound::reached(BoundName::QueueDepth, requests, by_depth))
    }

    fn bound_by_copy(&self, cell: &Cell, activity: &Activity) -> Option<Bound> {
        let bytes = activity.requested_bytes_per_second;
        let ceiling = self.copy.iter().find(|ceiling| {
            // A copy from memory does not look at the page cache, so its state may differ.
            let cache = cell.conditions.cache;
            Conditions { cache, descriptor: cell.conditions.descriptor, ..ceiling.conditions.clone() }
                == cell.conditions
        })?;
        let reached = cell.copies() && bytes >= ceiling.bytes_per_second * REACHED;
        reached.then(|| Bound::reached(BoundName::MemoryCopy, bytes, ceiling.bytes_per_second))
    }

    fn same_device(&self, conditions: &Conditions) -> Vec<&DeviceCeiling> {
        let same = |ceiling: &&DeviceCeiling| {
            ceiling.threads == conditions.threads && ceiling.file_bytes == conditions.file_bytes
        };
        self.device.iter().filter(same).collect()
    }
}

fn device_ceiling(cell: &Cell, activity: &Activity) -> Option<DeviceCeiling> {
    Some(DeviceCeiling {
        threads: cell.conditions.threads,
        file_bytes: cell.conditions.file_bytes,
        depth: cell.method.depth(),
        read_bytes: cell.conditions.read_bytes,
        issued_bytes: activity.issued_bytes()?,
        requests_per_second: activity.device_requests_per_second?,
        bytes_per_second: activity.device_bytes_per_second?,
    })
}

/// The most bytes per second of deep queues, known only if large reads are among them. On some devices
/// smaller reads move more, so the largest rate counts and not that of the largest reads.
fn bandwidth<'a>(ceilings: impl Iterator<Item = &'a DeviceCeiling> + Clone) -> Option<f64> {
    let deep = ceilings.filter(|ceiling| ceiling.depth >= DEEP);
    let large = deep.clone().any(|ceiling| ceiling.read_bytes.0 >= BANDWIDTH_READ_BYTES);
    deep.map(|ceiling| ceiling.bytes_per_second).max_by(f64::total_cmp).filter(|_| large)
}

/// Requests per second that the device can do at `size`: between two measured sizes by a power law through
/// both, below the smallest no more than there, above the largest by its bandwidth.
fn iops_at(ceilings: &[&DeviceCeiling], size: f64) -> Option<f64> {
    let mut deep: Vec<&DeviceCeiling> =
        ceilings.iter().copied().filter(|ceiling| ceiling.depth >= DEEP).collect();
    deep.sort_by(|left, right| left.issued_bytes.total_cmp(&right.issued_bytes));
    let above = deep.partition_point(|ceiling| ceiling.issued_bytes < size);
    match (above.checked_sub(1).map(|below| deep[below]), deep.get(above)) {
        (None, None) => None,
        (None, Some(smallest)) => Some(smallest.requests_per_second),
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
    Some(Bound::reached(BoundName::Cpu, share * threads, threads))
}

fn waiting(activity: &Activity) -> Option<Bound> {
    let waits = activity.waits_per_second? >= WAITS_PER_SECOND;
    // Waiting for the device is no answer: which limit of the device it was is the question.
    (waits && activity.cpu_share? < CPU_REACHED && !activity.uses_device()).then_some(Bound {
        name: BoundName::Waiting,
        of_ceiling: None,
        ceiling: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::honest;
    use pagewise_model::CacheState::{Cold, Warm};

    const KIB: f64 = 1024.0;

    fn device(depth: u32, kib: u64, requests_per_second: f64) -> DeviceCeiling {
        let issued_bytes = kib as f64 * KIB;
        DeviceCeiling {
            threads: 2,
            file_bytes: Bytes::mib(256),
            depth,
            read_bytes: Bytes::kib(kib),
            issued_bytes,
            requests_per_second,
            bytes_per_second: requests_per_second * issued_bytes,
        }
    }

    fn ceilings() -> Ceilings {
        Ceilings {
            device: vec![device(32, 4, 100_000.0), device(1, 4, 8_000.0), device(32, 1024, 1_000.0)],
            copy: vec![CopyCeiling {
                conditions: honest::cell("anonymous", Cold).conditions,
                threads: 2,
                read_bytes: Bytes::kib(16),
                bytes_per_second: 8e9,
            }],
        }
    }

    /// A cell whose device did `requests` per second of `kib` each, for every byte asked for.
    fn active(requests: f64, kib: f64) -> Activity {
        Activity {
            requested_bytes_per_second: requests * kib * KIB,
            device_bytes_per_second: Some(requests * kib * KIB),
            device_requests_per_second: Some(requests),
            cpu_share: Some(0.1),
            waits_per_second: Some(5000.0),
        }
    }

    fn in_memory(bytes_per_second: f64, cpu_share: f64, waits: f64) -> Activity {
        Activity {
            requested_bytes_per_second: bytes_per_second,
            device_bytes_per_second: Some(0.0),
            device_requests_per_second: Some(0.0),
            cpu_share: Some(cpu_share),
            waits_per_second: Some(waits),
        }
    }

    fn bound(method: &str, activity: Activity) -> (BoundName, Option<f64>) {
        let found = ceilings().bound(&honest::cell(method, Warm), &activity);
        (found.name, found.of_ceiling.map(|share| (share * 1000.0).round() / 1000.0))
    }

    #[test]
    fn requests_of_the_device_are_the_bound() {
        assert_eq!(bound("uring", active(90_000.0, 4.0)), (BoundName::DeviceIops, Some(0.9)));
    }

    #[test]
    fn the_ceiling_lies_between_measured_sizes() {
        // 64 KiB lies half-way between 4 KiB and 1 MiB on a logarithmic scale: the root of 100,000 x 1,000.
        assert_eq!(bound("uring", active(9_000.0, 64.0)), (BoundName::DeviceIops, Some(0.9)));
        assert_eq!(bound("uring", active(90_000.0, 2.0)), (BoundName::DeviceIops, Some(0.9)));
    }

    #[test]
    fn bytes_of_the_device_are_the_bound() {
        assert_eq!(bound("mmap", active(950.0, 1024.0)), (BoundName::DeviceBandwidth, Some(0.95)));
        // Readahead: the device is busy with what nobody asked for.
        let readahead = Activity { requested_bytes_per_second: 3e6, ..active(950.0, 1024.0) };
        assert_eq!(bound("mmap", readahead).0, BoundName::DeviceBandwidth);
    }

    #[test]
    fn no_device_does_more_than_its_bandwidth() {
        let mut ceilings = ceilings();
        assert_eq!(ceilings.device_bytes_per_second(), Some(1_000.0 * 1024.0 * KIB));
        ceilings.add(device(32, 64, 20_000.0));
        assert_eq!(ceilings.device_bytes_per_second(), Some(20_000.0 * 64.0 * KIB));
        ceilings.device.retain(|ceiling| ceiling.read_bytes.0 < 1 << 20);
        assert_eq!(ceilings.device_bytes_per_second(), None, "no large read was measured");
    }

    #[test]
    fn the_faster_of_two_equal_ceilings_counts() {
        let mut ceilings = ceilings();
        ceilings.add(device(32, 4, 99_000.0));
        ceilings.add(device(32, 4, 101_000.0));
        assert_eq!((ceilings.device.len(), ceilings.device_iops()), (3, Some(101_000.0)));
    }

    #[test]
    fn reads_in_flight_are_the_bound() {
        // Two threads did 8,000 requests with one in flight each.
        assert_eq!(bound("pread:direct", active(8_400.0, 4.0)), (BoundName::QueueDepth, Some(1.05)));
        assert_eq!(
            bound("uring:direct+depth=4", active(30_000.0, 4.0)),
            (BoundName::QueueDepth, Some(0.938))
        );
    }

    #[test]
    fn copying_is_the_bound() {
        assert_eq!(bound("pread", in_memory(7.6e9, 1.0, 0.0)), (BoundName::MemoryCopy, Some(0.95)));
        assert_eq!(bound("mmap:in-place", in_memory(7.6e9, 1.0, 0.0)).0, BoundName::Cpu, "nothing is copied");
    }

    #[test]
    fn the_cpu_is_the_bound() {
        assert_eq!(bound("pread", in_memory(4e9, 0.97, 0.0)), (BoundName::Cpu, Some(0.97)));
    }

    #[test]
    fn something_else_is_waited_for() {
        assert_eq!(bound("mmap", in_memory(4e9, 0.4, 9000.0)), (BoundName::Waiting, None));
    }

    #[test]
    fn what_nothing_explains_is_unknown() {
        assert_eq!(bound("mmap", in_memory(4e9, 0.4, 1.0)), (BoundName::Unknown, None));
        assert_eq!(bound("pread", active(30_000.0, 4.0)), (BoundName::Unknown, None));
        let nothing = Activity { requested_bytes_per_second: 1e9, ..Activity::default() };
        assert_eq!(bound("pread", nothing), (BoundName::Unknown, None));
    }

    #[test]
    fn ceilings_of_other_threads_say_nothing() {
        let mut cell = honest::cell("uring", Warm);
        cell.conditions.threads = 1;
        assert_eq!(ceilings().bound(&cell, &active(90_000.0, 4.0)).name, BoundName::Unknown);
    }

    #[test]
    fn requests_of_others_are_not_counted() {
        let cell = honest::cell("uring:direct", Warm);
        let (measurement, mut evidence) = (honest::measurement(), honest::evidence(&cell));
        evidence.device_read_requests = Some(9999);
        assert_eq!(requests(&cell, &measurement, &evidence), Some(9999));
        evidence.device_other_bytes = Some(evidence.requested_bytes);
        assert_eq!(requests(&cell, &measurement, &evidence), Some(160 * 16), "one for each direct read");
        assert_eq!(requests(&honest::cell("pread", Cold), &measurement, &evidence), None);
    }
}
