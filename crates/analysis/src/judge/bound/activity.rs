//! Activity of the device, the memory and the threads during the samples of a cell.

use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Cell, Evidence, MethodOption};

use crate::judge::collected::CellSamples;
use crate::proof::calls;
use crate::proof::measured::{operations, region_ns, region_with_gaps_ns, total_ns, written_per_byte};
use crate::statistics::{Extent, median, total};

/// From this share of the requested bytes, the device is involved.
pub const DEVICE_SHARE: f64 = 0.01;
/// The device counts the requests of all processes; they are the cell's if others moved at most
/// this share.
const OTHERS_SHARE: f64 = 0.05;

/// Activity of the machine for a cell, over its valid samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Requested bytes per second.
    pub requested_bytes_per_second: Extent,
    /// Bytes that the device delivered per second.
    pub device_bytes_per_second: Option<Extent>,
    /// Requests that the device completed per second.
    pub device_requests_per_second: Option<Extent>,
    /// Flushes of the measured region per second: its syncs, or the flushes that the device counted
    /// if those are fewer, as syncs of several threads may share one. `None` if there was none in
    /// some sample.
    pub flushes_per_second: Option<Extent>,
    /// CPU time over the time of all threads, the median; `None` of a replay with gaps.
    pub cpu_share: Option<f64>,
    /// Use of the threads' time; `None` without their CPU time, and of a replay with gaps: in those
    /// it waits asleep and awake, which no counter distinguishes from the time of its reads.
    pub time: Option<TimeShares>,
    /// True if it is known how long threads were runnable; else that is a part of waiting.
    pub knows_run_queue: bool,
    /// True if the device wrote a part of the bytes during the samples.
    pub writes_device: bool,
}

/// Use of the time of a cell. Shares are of the threads' time on the CPUs that they can use at
/// once; of one-shot work they are of the total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeShares {
    /// On a CPU.
    pub cpu: Extent,
    /// Runnable without a CPU.
    pub run_queue: Extent,
    /// Neither: waiting.
    pub wait: Extent,
    /// Open, map, advise, populate; 0 if the work is not one-shot.
    pub set_up: Extent,
    /// The sync at the end; 0 if the work is not one-shot.
    pub sync: Extent,
    /// Unmap, close; 0 if the work is not one-shot.
    pub tear_down: Extent,
}

impl TimeShares {
    /// True if the measured region takes at least half of the total; else nothing within it limits
    /// the work.
    pub(super) fn is_mostly_region(&self) -> bool {
        self.cpu.median + self.run_queue.median + self.wait.median >= 0.5
    }
}

impl Activity {
    /// The activity of a cell on a host with `host_cpus` CPUs; `None` without a valid sample.
    pub fn of(samples: &CellSamples<'_>, host_cpus: u32) -> Option<Self> {
        let cell = samples.cell;
        let extent =
            |figure: &dyn Fn(&Measurement, &Evidence) -> Option<f64>| Extent::of(&samples.known(figure));
        let threads = f64::from(cell.conditions.threads);
        let cpus = cell.conditions.cpus(host_cpus).min(cell.conditions.threads.max(1));
        let time = |pick: fn(&[f64; 6]) -> f64| {
            extent(&|measurement, evidence| Some(pick(&time_shares(cell, cpus, measurement, evidence)?)))
        };
        let all_times = || {
            Some(TimeShares {
                cpu: time(|shares| shares[0])?,
                run_queue: time(|shares| shares[1])?,
                wait: time(|shares| shares[2])?,
                set_up: time(|shares| shares[3])?,
                sync: time(|shares| shares[4])?,
                tear_down: time(|shares| shares[5])?,
            })
        };
        Some(Self {
            requested_bytes_per_second: extent(&|measurement, evidence| {
                Some(evidence.requested_bytes as f64 / seconds(measurement))
            })?,
            device_bytes_per_second: extent(&|measurement, evidence| {
                Some(delivered_bytes(cell, evidence)? as f64 / seconds(measurement))
            }),
            device_requests_per_second: extent(&|measurement, evidence| {
                Some(requests(cell, measurement, evidence)? as f64 / seconds(measurement))
            }),
            flushes_per_second: extent(&|measurement, evidence| {
                let syncs = total(&measurement.sync_duration_counts);
                let flushes =
                    evidence.device_flushes.filter(|flushes| *flushes > 0).unwrap_or(syncs).min(syncs);
                (flushes > 0).then(|| flushes as f64 / seconds(measurement))
            }),
            // CPU time was read around the supervisor's clock, so it is a share of that clock's
            // time.
            cpu_share: median(&samples.known(|measurement, evidence| {
                has_no_gaps(measurement).then_some(())?;
                Some(evidence.cpu_ns? as f64 / evidence.wall_ns.max(1) as f64 / threads)
            })),
            time: all_times(),
            knows_run_queue: samples.valid().all(|(_, evidence)| evidence.run_queue_ns.is_some()),
            writes_device: median(&samples.known(|_, evidence| written_per_byte(evidence)))
                .is_some_and(|share| share >= DEVICE_SHARE),
        })
    }

    /// Mean size of a request to the device.
    pub fn issued_bytes(&self) -> Option<f64> {
        let bytes = self.device_bytes_per_second?.median;
        let requests = self.device_requests_per_second?.median;
        (bytes > 0.0 && requests > 0.0).then(|| bytes / requests)
    }

    /// Bytes that reached the file for each flush.
    pub fn bytes_per_flush(&self) -> Option<f64> {
        Some(self.requested_bytes_per_second.median / self.flushes_per_second?.median)
    }

    /// True if the device delivered a part of the bytes.
    pub fn uses_device(&self) -> bool {
        self.device_bytes_per_second
            .is_some_and(|bytes| bytes.median >= self.requested_bytes_per_second.median * DEVICE_SHARE)
    }
}

/// Shares of the time of a sample: on a CPU, runnable, waiting, set-up, sync, tear-down. With more
/// threads than `cpus`, those that wait for each other's CPU are no loss, so what the CPUs were not
/// used for is divided among the two others.
pub(super) fn time_shares(
    cell: &Cell,
    cpus: u32,
    measurement: &Measurement,
    evidence: &Evidence,
) -> Option<[f64; 6]> {
    has_no_gaps(measurement).then_some(())?;
    let wall = evidence.wall_ns.max(1) as f64;
    let threads = f64::from(cell.conditions.threads.max(1));
    // Threads of a runtime may use more.
    let cpu = (evidence.cpu_ns? as f64 / wall / f64::from(cpus)).min(1.0);
    let queued = evidence.run_queue_ns.unwrap_or(0) as f64 / wall / threads;
    let blocked = (1.0 - queued - evidence.cpu_ns? as f64 / wall / threads).max(0.0);
    let idle = 1.0 - cpu;
    // A product with at most 1, so that rounding leaves no wait of less than nothing.
    let run_queue = if queued > 0.0 { idle * (queued / (queued + blocked)) } else { 0.0 };
    let [region, set_up, sync, tear_down] = match cell.conditions.is_one_shot() {
        true => {
            let of_total = |ns: u64| (ns as f64 / total_ns(measurement).max(1) as f64).min(1.0);
            let set_up_ns = measurement.setup_ns.saturating_add(measurement.warmup_ns);
            let sync_ns = measurement.sync_ns.min(measurement.teardown_ns);
            [region_ns(measurement), set_up_ns, sync_ns, measurement.teardown_ns - sync_ns].map(of_total)
        }
        false => [1.0, 0.0, 0.0, 0.0],
    };
    Some([cpu * region, run_queue * region, (idle - run_queue) * region, set_up, sync, tear_down])
}

/// Voluntary context switches of the measured threads. Unknown with heartbeats, which sleep and
/// wake all the time.
pub fn own_waits(evidence: &Evidence) -> Option<u64> {
    evidence.voluntary_switches.filter(|_| evidence.heartbeats.is_empty())
}

/// True if pages come in ahead of the reads of `cell`, by the kernel or by advice.
pub(super) fn is_read_ahead(cell: &Cell) -> bool {
    let method = &cell.method;
    let by_advice = method.has(MethodOption::Prefetch) || method.prefetch_window().is_some();
    let ahead = by_advice || !method.has(MethodOption::Random);
    cell.depends_on_cache() && cell.conditions.workload().is_reading() && ahead
}

/// Bytes that the device delivered to this sample. A process is charged for a read when it is
/// submitted, so readahead that was in flight at the end does not count, unless the program has had
/// those bytes: a cold read finds nothing else.
fn delivered_bytes(cell: &Cell, evidence: &Evidence) -> Option<u64> {
    let counted = evidence.device_read_bytes?;
    let in_flight = match is_read_ahead(cell) {
        true => evidence.readahead_bytes.unwrap_or(0).saturating_mul(u64::from(cell.conditions.threads)),
        false => 0,
    };
    let consumed = match cell.conditions.cache {
        CacheState::Cold => counted.min(cell.conditions.used_bytes(evidence.requested_bytes)),
        _ => 0,
    };
    Some(counted.saturating_sub(in_flight).max(consumed))
}

fn has_no_gaps(measurement: &Measurement) -> bool {
    measurement.gaps_ns == 0
}

/// Duration of both phases with all gaps, since the evidence covers both.
fn seconds(measurement: &Measurement) -> f64 {
    region_with_gaps_ns(measurement).saturating_add(measurement.latency_phase_within().1).max(1) as f64 / 1e9
}

/// Requests of the device for this sample. If others used it too, the group's own count applies, a
/// direct read is still one request, and for anything else the count is unknown.
pub(super) fn requests(cell: &Cell, measurement: &Measurement, evidence: &Evidence) -> Option<u64> {
    let own = evidence.device_read_bytes?;
    let others_are_few =
        evidence.device_other_bytes.is_some_and(|others| others as f64 <= own as f64 * OTHERS_SHARE);
    // An actor makes requests too, and belongs to the group.
    let is_alone = cell.conditions.beside.is_none();
    let of_device = evidence.device_read_requests.filter(|_| others_are_few && is_alone);
    let of_group = evidence.group.as_ref().and_then(|group| group.device_read_requests);
    let of_group = of_group.filter(|_| is_alone);
    let of_calls = cell.method.is_direct().then(|| calls::reads(cell, operations(measurement)));
    of_device.or(of_group).or(of_calls)
}
