//! Samples: one timed run of a cell, with the evidence that makes it believable.

use serde::{Deserialize, Serialize};

use crate::counters::{GroupCounters, HostCounters, RateWindow, ThreadCounters};
use crate::host_settings::SettingsInForce;
use crate::workers::{Heartbeat, WorkerWarmup};

/// One timed run of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// [`crate::Cell::id`] of the cell.
    pub cell: String,
    /// The round it belongs to, from 0.
    pub round: u32,
    /// Which try at this round's sample, from 0.
    pub attempt: u32,
    /// Nanoseconds since the run began, when the sample was asked for.
    pub started_ns: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", try_from = "crate::outcome::OutcomeFields")]
pub enum Outcome {
    /// The worker answered.
    Taken {
        /// What it measured.
        measurement: Measurement,
        /// What the supervisor saw.
        evidence: Box<Evidence>,
        /// Checks that failed; empty makes the sample valid.
        failures: Vec<Failure>,
    },
    /// The worker ended or fell silent; there is nothing to rank.
    Broken {
        /// Why.
        failures: Vec<Failure>,
        /// The end of its stderr.
        stderr_tail: String,
    },
    /// This machine, kernel or filesystem does not offer it.
    Unavailable {
        /// What refused, with errno or the evidence.
        reason: String,
    },
}

impl Sample {
    /// The measurement with its evidence if no check failed.
    pub fn valid(&self) -> Option<(&Measurement, &Evidence)> {
        match &self.outcome {
            Outcome::Taken { measurement, evidence, failures } if failures.is_empty() => {
                Some((measurement, evidence))
            }
            _ => None,
        }
    }

    /// The checks that failed.
    pub fn failures(&self) -> &[Failure] {
        match &self.outcome {
            Outcome::Taken { failures, .. } | Outcome::Broken { failures, .. } => failures,
            Outcome::Unavailable { .. } => &[],
        }
    }
}

/// What the worker measured. Its word alone is no proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Open, map, advise, populate.
    pub setup_ns: u64,
    /// Reading page tables warm before the clock starts; 0 where nothing is warmed.
    pub warmup_ns: u64,
    /// The throughput phase: from the first thread's start to the last thread's end.
    pub measured_ns: u64,
    /// Operations in the throughput phase.
    pub operations: u64,
    /// Sync, unmap, close.
    pub teardown_ns: u64,
    /// The part of it that is the sync.
    #[serde(default)]
    pub sync_ns: u64,
    /// The latency phase; 0 where latencies were taken in the throughput phase.
    pub latency_phase_ns: u64,
    /// Operations in the latency phase.
    pub latency_phase_operations: u64,
    /// Operations of both phases, by thread: how far each went in its part of the table.
    pub thread_operations: Vec<u64>,
    /// Latency of single operations: upper ends of histogram buckets.
    pub latency_ns: Vec<u64>,
    /// How many operations fell into each.
    pub latency_counts: Vec<u64>,
    /// Stretches of the throughput phase that took more than 1 ms beyond what their operations should
    /// have taken: each is at least one stalled operation.
    pub stalls: u64,
    /// The longest of them.
    pub stall_longest_ns: u64,
}

/// What the supervisor saw around the measured region. `None`: could not be known here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// From sending `go` to receiving `sample`, on the supervisor's clock.
    pub wall_ns: u64,
    /// From sending `open` to receiving `opened`, on the supervisor's clock.
    #[serde(default)]
    pub setup_wall_ns: Option<u64>,
    /// From receiving `opened` to receiving `ready`, likewise.
    #[serde(default)]
    pub warmup_wall_ns: Option<u64>,
    /// From sending `close` to receiving `closed`, likewise.
    #[serde(default)]
    pub teardown_wall_ns: Option<u64>,
    /// What the worker did from `open` to `ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_ready: Option<OutsideStretch>,
    /// What the worker did while it had nothing to do: between `ready` and `go`, between two of them, and between `sample`
    /// and `close`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<OutsideStretch>,
    /// Bytes that the accesses asked for or wrote, in both phases.
    pub requested_bytes: u64,
    /// Bytes that storage read for the worker: /proc/PID/io read_bytes.
    pub device_read_bytes: Option<u64>,
    /// Bytes that any process read from or wrote to the block device, less the worker's own.
    pub device_other_bytes: Option<u64>,
    /// Read requests that the block device completed, whoever asked.
    pub device_read_requests: Option<u64>,
    /// What those took, one added to the other: over the wall time it is how many were in flight.
    #[serde(default)]
    pub device_read_ns: Option<u64>,
    /// What this machine's memory delivers to the threads of the cell, for reads or records of its size: the rate of copying, or
    /// that of consuming in place where the method need not copy.
    #[serde(default)]
    pub memory_bytes_per_second: Option<u64>,
    /// Bytes that came through read calls: /proc/PID/io rchar.
    pub read_call_bytes: Option<u64>,
    /// Read calls: /proc/PID/io syscr.
    pub read_calls: Option<u64>,
    /// Bytes that went through write calls: /proc/PID/io wchar.
    #[serde(default)]
    pub write_call_bytes: Option<u64>,
    /// Write calls: /proc/PID/io syscw.
    #[serde(default)]
    pub write_calls: Option<u64>,
    /// Bytes that any process wrote to the block device.
    #[serde(default)]
    pub device_written_bytes: Option<u64>,
    /// Faults served without the device.
    pub minor_faults: Option<u64>,
    /// Faults that waited for the device.
    pub major_faults: Option<u64>,
    /// Bytes that storage read for the worker during set-up.
    #[serde(default)]
    pub setup_device_read_bytes: Option<u64>,
    /// Faults during set-up, of both kinds.
    #[serde(default)]
    pub setup_faults: Option<u64>,
    /// CPU time of the worker's threads: /proc/PID/task/*/schedstat.
    pub cpu_ns: Option<u64>,
    /// Time its threads were runnable and not running.
    pub run_queue_ns: Option<u64>,
    /// CPU time in user mode, in clock ticks as nanoseconds.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, likewise.
    pub system_ns: Option<u64>,
    /// Context switches because a thread waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches because a thread was preempted.
    pub involuntary_switches: Option<u64>,
    /// Time that the hypervisor gave to others, all CPUs.
    pub steal_ns: Option<u64>,
    /// Bytes of the span in the page cache before the clock started.
    pub resident_before_bytes: Option<u64>,
    /// The same after it stopped.
    pub resident_after_bytes: Option<u64>,
    /// Where residency comes from: `cachestat`, `mincore`, or why it is unknown.
    pub residency_source: String,
    /// Bytes of the mapping in huge pages: smaps.
    pub huge_mapped_bytes: Option<u64>,
    /// VmFlags of the mapping, such as `rr` for MADV_RANDOM.
    pub mapping_flags: Option<String>,
    /// The mapping as /proc/PID/maps shows it: addresses, rights, offset, device, inode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping_line: Option<String>,
    /// Whether the worker's descriptor has O_DIRECT: fdinfo.
    pub descriptor_direct: Option<bool>,
    /// Peak resident memory of the worker: VmHWM.
    pub worker_peak_bytes: Option<u64>,
    /// Checksum that the accesses must have.
    pub expected_checksum: Option<u64>,
    /// Checksum that the worker returned.
    pub checksum: u64,
    /// The worker's cgroup after the clock stopped; totals since the group was made, but refaults, scanned and reclaimed
    /// pages, kills and device bytes are those of the measured region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupCounters>,
    /// What each thread of the worker did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadCounters>,
    /// What the whole host did meanwhile.
    #[serde(default)]
    pub host: HostCounters,
    /// By how much the wall clock went apart from the monotonic one.
    #[serde(default)]
    pub clock_step_ns: Option<i64>,
    /// Readahead of the device when the sample began.
    #[serde(default)]
    pub readahead_bytes: Option<u64>,
    /// Settings of the kernel in force when the region ended.
    #[serde(default)]
    pub settings: SettingsInForce,
    /// CPUs that the worker was allowed: Cpus_allowed_list.
    #[serde(default)]
    pub cpus_allowed: Option<String>,
    /// Where placement was asked for: the node of the worker's CPUs, and pages of the span by node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Stretches before the measured region in which the workload warmed the cache itself, or those of a cold start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<RateWindow>,
    /// How late the worker's heartbeats came, one entry for each kind; empty without heartbeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeats: Vec<Heartbeat>,
    /// Warm-up of a worker whose code is compiled as it runs.
    #[serde(default, alias = "practice", skip_serializing_if = "Option::is_none")]
    pub worker_warmup: Option<WorkerWarmup>,
    /// Mappings of the file that the worker had when the measured region ended.
    #[serde(default)]
    pub mappings: Option<u64>,
    /// Mappings of the file that the worker still had when it said that it had closed it.
    #[serde(default)]
    pub mappings_left: Option<u64>,
    /// What the file holds that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// Reads compared byte for byte after the clock stopped.
    pub verified_reads: u64,
    /// Those that differed.
    pub differing_reads: u64,
    /// What the supervisor found wrong itself while it measured, and no check can find again: the file was changed by somebody,
    /// or could not be read back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnessed: Vec<Failure>,
}

/// What the worker's process did outside of the measured region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideStretch {
    /// How long it lasted.
    pub wall_ns: u64,
    /// CPU time of its threads.
    pub cpu_ns: Option<u64>,
    /// Bytes that storage read for it.
    pub device_read_bytes: Option<u64>,
    /// Bytes that came through read calls.
    pub read_call_bytes: Option<u64>,
    /// Bytes that went through write calls.
    pub write_call_bytes: Option<u64>,
    /// Faults of both kinds.
    pub faults: Option<u64>,
}

/// What a file holds that was written: it is read back after the worker is gone, and compared byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The way in which it was read back, which is another one than that of the worker: `pread` or `mmap`.
    pub read_back: String,
    /// Bytes of the records that must be there.
    pub expected_bytes: u64,
    /// Bytes of those whose place does not hold them.
    pub missing_bytes: u64,
    /// Where the first of them should be.
    pub first_missing_at: Option<u64>,
    /// Bytes that nobody asked for: of places without a record.
    pub foreign_bytes: u64,
    /// Dirty bytes of the file before the clock started: cachestat(2).
    pub dirty_before_bytes: Option<u64>,
    /// The same when it stopped.
    pub dirty_after_bytes: Option<u64>,
    /// Bytes still dirty after tear-down: what is yet to be paid.
    pub dirty_end_bytes: Option<u64>,
    /// Bytes of the file that have blocks, before the clock started.
    pub allocated_before_bytes: Option<u64>,
}

/// Where worker and pages were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Node of the CPUs that the worker was allowed.
    pub worker_node: u32,
    /// Node that the pages were to be on.
    pub page_node: u32,
    /// Pages looked at.
    pub pages: u64,
    /// Those of them on that node: move_pages(2).
    pub pages_on_node: u64,
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which check.
    pub kind: FailureKind,
    /// One sentence with the numbers.
    pub detail: String,
}

/// The checks by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The bytes consumed are not those at the offsets of the table.
    WrongChecksum,
    /// A read that was compared byte for byte differs.
    WrongBytes,
    /// The worker's clock and the supervisor's do not agree.
    FalseTime,
    /// Counts contradict each other.
    InconsistentCounts,
    /// The rate is one that this machine's memory does not deliver.
    Implausible,
    /// Fewer bytes went through read calls than were claimed.
    MissingReads,
    /// Fewer bytes went through write calls than were claimed.
    MissingWrites,
    /// Records are not in the file, or not where they belong.
    LostRecords,
    /// The page cache was not empty before a cold sample, or the bytes did not come from the device.
    NotCold,
    /// The page cache was not full before a warm sample, or bytes came from the device.
    NotWarm,
    /// A cold sample brought in more of the file than it may.
    ColdOverrun,
    /// The advice, flag or huge page that the method is about is not in force.
    NotInForce,
    /// O_DIRECT reads did not reach the device.
    NotDirect,
    /// Someone else used the device, the hypervisor took the CPU, or a clock stepped.
    Contaminated,
    /// The memory limit was not in force, or more than it was charged.
    LimitNotHeld,
    /// Page cache of the file is charged to another group than the worker's.
    #[serde(alias = "charged-elsewhere")]
    ChargedToOtherCgroup,
    /// The rate at which the device is used did not become steady in time.
    NotSettled,
    /// A setting of the machine is not what the cell asks for: device cap, readahead, CPUs, node.
    #[serde(alias = "not-as-set")]
    SettingMismatch,
    /// The counters contradict what the method does.
    #[serde(alias = "contradicts-method")]
    MethodContradicted,
    /// The worker was killed because it needed more memory than the limit.
    KilledForMemory,
    /// A call failed.
    CallFailed,
    /// The worker ended by itself, or of what it did.
    WorkerDied,
    /// The worker was killed by a signal that is sent, as by the kernel where the host has no memory left, and is no fault of
    /// its own.
    KilledFromOutside,
    /// The worker did not answer in time.
    WorkerHung,
    /// The worker said something that is not of the protocol.
    WorkerNonsense,
    /// The worker said that it had closed the file, and still has a mapping of it.
    NotReleased,
    /// The user's file changed during the run.
    FileChanged,
}

impl FailureKind {
    /// The name in run files and tables.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => unreachable!("a unit variant serializes as a string"),
        }
    }
}
