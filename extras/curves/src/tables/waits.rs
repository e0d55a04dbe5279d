//! Waits of threads: from CPU time, the run queue, context switches and the device.
//!
//! The time of all threads consists of CPU time, time spent runnable without a CPU, and waiting.
//! The device's bytes distinguish a wait for the device from one for something else. Counters do
//! not identify a lock.

use pagewise_model::Evidence;
use pagewise_model::sample::Measurement;
use serde::Serialize;

use pagewise_analysis::judge::bound::{DEVICE_SHARE, own_waits};
use pagewise_analysis::judge::collected::CellSamples;
use pagewise_analysis::proof::measured::operations;
use pagewise_analysis::statistics::median;

/// From this share of the CPUs' time, they are busy.
const CPU_REACHED: f64 = 0.9;
/// From this share of the threads' time, a wait explains a rate.
const WAITING: f64 = 0.25;
/// A thread that waits for another gives up its CPU at least this often per operation.
const SWITCHES_PER_OP: f64 = 0.5;

/// Cause of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// None: all CPUs that they can use are busy with them.
    CpusBusy,
    /// Reads of the device.
    Device,
    /// A CPU that other processes use.
    OtherProcesses,
    /// Another thread: neither CPU nor device is busy, and the threads switch all the time.
    AnotherThread,
    /// Not shown by the counters.
    Unknown,
}

/// Use of time by a cell's threads, as medians over its valid samples.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ThreadWaits {
    /// CPUs that it may use.
    pub cpus: u32,
    /// CPU time of the worker as a share of that of the CPUs its threads can use at once.
    pub cpu_share: Option<f64>,
    /// Share of its CPU time spent in the kernel.
    pub kernel_share: Option<f64>,
    /// Time runnable without a CPU, as a share of the time of all threads.
    pub run_queue_share: Option<f64>,
    /// Time neither on a CPU nor runnable, as a share of the time of all threads.
    pub wait_share: Option<f64>,
    /// Voluntary context switches per operation; `None` with heartbeats, which switch all the time.
    pub voluntary_switches_per_op: Option<f64>,
    /// Involuntary context switches per operation.
    pub involuntary_switches_per_op: Option<f64>,
    /// Device bytes per requested byte.
    pub device_share: Option<f64>,
    /// Cause of their waiting.
    pub cause: Cause,
    /// Threads.
    #[serde(skip)]
    pub threads: u32,
}

/// Use of time by the threads of a cell; `None` without a valid sample.
pub(super) fn waits(samples: &CellSamples<'_>, host_cpus: u32) -> Option<ThreadWaits> {
    samples.valid().next()?;
    let conditions = &samples.cell.conditions;
    let cpus = conditions.cpus(host_cpus);
    let threads = conditions.threads;
    let median_of = |figure: &dyn Fn(&Measurement, &Evidence) -> Option<f64>| median(&samples.known(figure));
    let of_wall = |seen: &Evidence, count: u32| seen.wall_ns.max(1) as f64 * f64::from(count);
    let per_op = |measurement: &Measurement, count: u64| {
        let operations = operations(measurement);
        (operations > 0).then(|| count as f64 / operations as f64)
    };
    let mut found = ThreadWaits {
        cpus,
        cpu_share: median_of(&|_, seen| Some(seen.cpu_ns? as f64 / of_wall(seen, cpus.min(threads)))),
        kernel_share: median_of(&|_, seen| {
            let (user, system) = (seen.user_ns? as f64, seen.system_ns? as f64);
            (user + system > 0.0).then(|| system / (user + system))
        }),
        run_queue_share: median_of(&|_, seen| Some(seen.run_queue_ns? as f64 / of_wall(seen, threads))),
        wait_share: median_of(&|_, seen| {
            let ran = seen.cpu_ns? as f64 + seen.run_queue_ns? as f64;
            Some((1.0 - ran / of_wall(seen, threads)).max(0.0))
        }),
        voluntary_switches_per_op: median_of(&|measurement, seen| per_op(measurement, own_waits(seen)?)),
        involuntary_switches_per_op: median_of(&|measurement, seen| {
            per_op(measurement, seen.involuntary_switches?)
        }),
        device_share: median_of(&|_, seen| {
            Some(seen.device_read_bytes? as f64 / seen.requested_bytes.max(1) as f64)
        }),
        cause: Cause::Unknown,
        threads,
    };
    found.cause = cause(&found);
    Some(found)
}

fn cause(found: &ThreadWaits) -> Cause {
    let least = |share: Option<f64>, least: f64| share.is_some_and(|share| share >= least);
    let uses_device = least(found.device_share, DEVICE_SHARE);
    if least(found.cpu_share, CPU_REACHED) {
        return Cause::CpusBusy;
    }
    if least(found.wait_share, WAITING) {
        if uses_device {
            return Cause::Device;
        }
        // Unless the device's bytes are known, it could be the device.
        if found.device_share.is_some() && least(found.voluntary_switches_per_op, SWITCHES_PER_OP) {
            return Cause::AnotherThread;
        }
        return Cause::Unknown;
    }
    if found.cpu_share.is_some() && least(found.run_queue_share, WAITING) {
        return Cause::OtherProcesses;
    }
    Cause::Unknown
}
