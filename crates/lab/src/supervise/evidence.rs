//! Evidence around a measured region: running totals before and after, and their differences.

use std::thread;
use std::time::{Duration, Instant};

use pagewise_host::{BlockDevice, ClockPair, DeviceCounters, FileKeys, HostReader, ProcessCounters, process};
use pagewise_model::sample::OutsideActivity;
use pagewise_model::{Evidence, GroupCounters, HostCounters, ThreadCounters};
use pagewise_protocol::SampleReply;

use super::conditions::ConditionGuard;

/// Running totals.
pub struct Totals {
    process: ProcessCounters,
    threads: Vec<ThreadCounters>,
    device: Option<DeviceCounters>,
    group: Option<GroupCounters>,
    host: HostCounters,
    clocks: ClockPair,
}

impl Totals {
    /// Read the totals of worker `pid`, its group, the device and the host. Those that only the
    /// worker changes are read closest to the region.
    pub fn read(
        pid: u32,
        device: Option<&BlockDevice>,
        guard: &ConditionGuard,
        host: &mut HostReader,
    ) -> Self {
        let (host, group) = (host.read(), guard.counters());
        let device = device.and_then(BlockDevice::counters);
        let (process, threads) = process::totals_with_threads(pid);
        Self { process, threads, device, group, host, clocks: ClockPair::now() }
    }
}

/// Activity of a worker in several intervals, such as those in which it waits.
#[derive(Default)]
pub struct ActivitySum {
    since: Option<Begun>,
    total: Option<OutsideActivity>,
}

/// A moment, and the CPU time that a worker had used by then.
#[derive(Clone, Copy)]
pub struct Moment {
    at: Instant,
    cpu_ns: Option<u64>,
}

/// Counters of a worker, as they were read.
pub struct CounterReading {
    process: ProcessCounters,
    threads: Vec<ThreadCounters>,
}

/// The beginning of an interval.
struct Begun {
    moment: Moment,
    counters: CounterReading,
    supervisor: CpuWait,
}

/// Time that the supervisor's thread waits for a CPU from here on.
pub struct CpuWait(Option<u64>);

impl CpuWait {
    /// Begin now.
    pub fn begin() -> Self {
        Self(process::own_run_queue_ns())
    }

    /// The time waited since then, in ns; `None` if the kernel does not count it.
    pub fn ns(&self) -> Option<u64> {
        process::own_run_queue_ns()?.checked_sub(self.0?)
    }
}

impl Moment {
    /// Now.
    pub fn now(pid: u32) -> Self {
        Self { cpu_ns: process::cpu_ns(pid), at: Instant::now() }
    }

    /// Now, when a worker has just answered and goes to sleep. Until then its account is behind by
    /// up to a tick, and what it gains when the worker sleeps is of before the answer, as far as
    /// there was no time for it since.
    pub fn settled(pid: u32, cpus: u32) -> Self {
        let answered = Self::now(pid);
        wait_until_asleep(pid);
        let asleep = Self::now(pid);
        let since_ns = asleep.at.duration_since(answered.at).as_nanos() as u64 * u64::from(cpus);
        let cpu_ns = asleep.cpu_ns.map(|cpu_ns| cpu_ns.saturating_sub(since_ns)).max(answered.cpu_ns);
        Self { at: answered.at, cpu_ns }
    }

    /// CPU time from an earlier one to this.
    pub fn cpu_ns_since(&self, earlier: &Self) -> Option<u64> {
        self.cpu_ns?.checked_sub(earlier.cpu_ns?)
    }
}

impl CounterReading {
    /// Read them.
    pub fn read(pid: u32) -> Self {
        let (process, threads) = process::totals_with_threads(pid);
        Self { process, threads }
    }
}

/// Time in which a worker is expected to go to sleep: a tick of most kernels.
const FALLS_ASLEEP: Duration = Duration::from_millis(5);

/// Wait until no thread of a worker runs, or it has run for so long that its account shows it.
pub fn wait_until_asleep(pid: u32) {
    let until = Instant::now() + FALLS_ASLEEP;
    while !process::is_asleep(pid) && Instant::now() < until {
        thread::sleep(Duration::from_micros(20));
    }
}

/// The time of an interval is that between two moments, to the point. Its other counters take time
/// to be read, and what the worker does meanwhile may be in the interval before or behind.
impl ActivitySum {
    /// Begin an interval.
    pub fn begin(&mut self, pid: u32) {
        self.begin_at(pid, Moment::now(pid));
    }

    /// Begin an interval at a moment that has just passed.
    pub fn begin_at(&mut self, pid: u32, moment: Moment) {
        let supervisor = CpuWait::begin();
        self.since = Some(Begun { moment, counters: CounterReading::read(pid), supervisor });
    }

    /// End the interval, if one has begun.
    pub fn end(&mut self, pid: u32) {
        self.end_at(CounterReading::read(pid), Moment::now(pid));
    }

    /// End the interval, if one has begun, at a moment close to the one when the counters were
    /// read.
    pub fn end_at(&mut self, CounterReading { process, threads }: CounterReading, moment: Moment) {
        let Some(begun) = self.since.take() else { return };
        let now = ProcessCounters::difference(&begun.counters.process, &process);
        let threads = process::thread_differences(&begun.counters.threads, &threads);
        let threads = ProcessCounters::of_threads(&threads);
        let interval = OutsideActivity {
            wall_ns: moment.at.saturating_duration_since(begun.moment.at).as_nanos() as u64,
            cpu_ns: moment.cpu_ns_since(&begun.moment).or(threads.cpu_ns),
            run_queue_ns: threads.run_queue_ns,
            supervisor_run_queue_ns: begun.supervisor.ns(),
            device_read_bytes: now.device_read_bytes,
            read_call_bytes: now.read_call_bytes,
            write_call_bytes: now.write_call_bytes,
            faults: now.minor_faults.zip(now.major_faults).map(|(minor, major)| minor + major),
        };
        self.total = Some(match self.total.take() {
            None => interval,
            Some(total) => sum(&total, &interval),
        });
    }

    /// Sum of all intervals; `None` if there was none.
    pub fn total(self) -> Option<OutsideActivity> {
        self.total
    }
}

/// Sum of two intervals; a value unknown in one is unknown in the sum.
fn sum(one: &OutsideActivity, other: &OutsideActivity) -> OutsideActivity {
    let add = |one: Option<u64>, other: Option<u64>| one?.checked_add(other?);
    OutsideActivity {
        wall_ns: one.wall_ns + other.wall_ns,
        cpu_ns: add(one.cpu_ns, other.cpu_ns),
        run_queue_ns: add(one.run_queue_ns, other.run_queue_ns),
        supervisor_run_queue_ns: add(one.supervisor_run_queue_ns, other.supervisor_run_queue_ns),
        device_read_bytes: add(one.device_read_bytes, other.device_read_bytes),
        read_call_bytes: add(one.read_call_bytes, other.read_call_bytes),
        write_call_bytes: add(one.write_call_bytes, other.write_call_bytes),
        faults: add(one.faults, other.faults),
    }
}

/// Evidence from two readings and the worker's answer.
pub fn between(before: &Totals, after: &Totals, pid: u32, files: &FileKeys, reply: &SampleReply) -> Evidence {
    let process = ProcessCounters::difference(&before.process, &after.process);
    let device = before
        .device
        .as_ref()
        .zip(after.device.as_ref())
        .and_then(|(before, after)| DeviceCounters::difference(before, after));
    let own = process.device_read_bytes;
    let host = HostCounters::difference(&before.host, &after.host);
    let mapping = process::mapping_of_any(pid, files).ok();
    let mappings = mapping.as_ref().map(|mapping| mapping.as_ref().map_or(0, |mapping| mapping.count));
    let is_several = files.count() > 1;
    let mapped_files = mapping.as_ref().map(|mapping| mapping.as_ref().map_or(0, |mapping| mapping.files));
    let mapping = mapping.flatten();
    Evidence {
        // As claimed by the worker; checks compare it with the claimed operations.
        requested_bytes: reply.bytes,
        device_other_bytes: device
            .zip(own)
            .map(|(device, own)| (device.read_bytes + device.written_bytes).saturating_sub(own)),
        device_read_requests: device.map(|device| device.read_requests),
        device_read_ns: device.map(|device| device.read_ns),
        device_written_bytes: device.map(|device| device.written_bytes),
        device_flushes: device.and_then(|device| device.flushes),
        steal_ns: host.steal_ns,
        mappings,
        huge_mapped_bytes: mapping.as_ref().and_then(|mapping| mapping.huge_mapped_bytes),
        mapping_line: mapping.as_ref().map(|mapping| mapping.line.clone()),
        mapped_files: mapped_files.filter(|_| is_several),
        some_mapping_flags: mapping
            .as_ref()
            .filter(|_| is_several)
            .and_then(|mapping| mapping.any_vm_flags.clone()),
        mapping_flags: mapping.and_then(|mapping| mapping.vm_flags),
        worker_locked_bytes: before.process.locked_bytes.max(after.process.locked_bytes),
        descriptor_direct: process::descriptors_direct(pid, files),
        checksum: u64::from_str_radix(&reply.checksum, 16).unwrap_or(0),
        group: before
            .group
            .as_ref()
            .zip(after.group.as_ref())
            .map(|(before, after)| GroupCounters::difference(before, after)),
        threads: process::thread_differences(&before.threads, &after.threads),
        host,
        clock_step_ns: Some(ClockPair::step_ns(&before.clocks, &after.clocks)),
        cpus_allowed: process::cpus_allowed(pid),
        ..Evidence::of_process(&process)
    }
}
