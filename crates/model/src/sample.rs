//! Samples: one timed run of a cell, with the evidence that supports it.

use serde::{Deserialize, Serialize};

use crate::actor_evidence::ActorEvidence;
use crate::cell::Cell;
use crate::counters::{GroupCounters, HostCounters, ProcessCounters, RateWindow, ThreadCounters};
use crate::failure::{Failure, FailureKind};
use crate::host_settings::SettingsInForce;
use crate::workers::{Heartbeat, WorkerWarmup};

/// One timed run of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// [`crate::Cell::id`] of the cell.
    pub cell: String,
    /// The round it belongs to, from 0.
    pub round: u32,
    /// The attempt at this round's sample, from 0.
    pub attempt: u32,
    /// The block of rounds, from 0; each has datasets of its own.
    #[serde(default, skip_serializing_if = "is_first")]
    pub block: u32,
    /// Nanoseconds from the beginning of the run to the request of the sample.
    pub started_ns: u64,
    /// Whole cost: preparation, worker, evidence; 0 in files of an older pagewise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_ns: u64,
    /// Outcome.
    pub outcome: Outcome,
}

/// Outcome of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", try_from = "OutcomeFields")]
pub enum Outcome {
    /// The worker answered.
    Taken {
        /// The worker's measurement.
        measurement: Box<Measurement>,
        /// The supervisor's observations.
        evidence: Box<Evidence>,
        /// Checks that failed; empty makes the sample valid.
        failures: Vec<Failure>,
    },
    /// The worker ended or stopped answering; there is nothing to rank.
    Broken {
        /// The reasons.
        failures: Vec<Failure>,
        /// The end of its stderr.
        stderr_tail: String,
    },
    /// The machine, kernel or filesystem does not support the method.
    Unavailable {
        /// The refused call or setting, with errno or the evidence.
        reason: String,
    },
}

fn is_first(block: &u32) -> bool {
    *block == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Sample {
    /// A first attempt at a sample of a cell, of unknown time.
    pub fn of(cell: &Cell, round: u32, outcome: Outcome) -> Self {
        Self { cell: cell.id(), round, attempt: 0, block: 0, started_ns: 0, took_ns: 0, outcome }
    }

    /// The measurement with its evidence, if no check failed.
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

impl Outcome {
    /// True if the sample was disturbed from outside, so that it is taken again.
    pub fn worth_retaking(&self) -> bool {
        let from_outside = |failure: &Failure| {
            matches!(
                failure.kind,
                FailureKind::NotCold
                    | FailureKind::NotWarm
                    | FailureKind::NotAsRecorded
                    | FailureKind::Contaminated
                    | FailureKind::Disturbed
                    | FailureKind::FalseTime
                    | FailureKind::NotSettled
                    | FailureKind::ChargedToOtherCgroup
                    | FailureKind::LimitNotHeld
                    | FailureKind::SettingMismatch
                    | FailureKind::KilledFromOutside
                    | FailureKind::ActorAbsent
            )
        };
        match self {
            Outcome::Taken { failures, .. } | Outcome::Broken { failures, .. } => {
                // Other users of the machine may make a sample look like anything.
                let contaminated = failures.iter().any(|failure| failure.kind == FailureKind::Contaminated);
                !failures.is_empty() && (contaminated || failures.iter().all(from_outside))
            }
            Outcome::Unavailable { .. } => false,
        }
    }

    /// True if the cell can have no further samples.
    pub fn ends_cell(&self) -> bool {
        !matches!(self, Outcome::Taken { .. })
    }
}

/// The worker's measurement. By itself it is not proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measurement {
    /// Set-up: open, map, advise, populate.
    pub setup_ns: u64,
    /// Work before set-up that is no cost of the method: putting the memory that a recorded program
    /// held in place, the order of `update`.
    #[serde(default)]
    pub ballast_ns: u64,
    /// Warming of page tables before the clock starts; 0 if nothing is warmed.
    pub warmup_ns: u64,
    /// The throughput phase: from the first thread's start to the last thread's end.
    pub measured_ns: u64,
    /// Operations in the throughput phase.
    pub operations: u64,
    /// Tear-down: sync, unmap, close.
    pub teardown_ns: u64,
    /// The sync as a part of tear-down.
    #[serde(default)]
    pub sync_ns: u64,
    /// Time that the worker's clock leaves out and that counts in the total or in the time of a
    /// rate: what the supervisor saw pass beyond the phases and an answer, and for one-shot work
    /// CPU time that was used while there was nothing to do.
    #[serde(default)]
    pub unaccounted_ns: u64,
    /// The part of it in the throughput phase.
    #[serde(default)]
    pub unaccounted_in_region_ns: u64,
    /// Of a replay: the gaps between its reads that are kept, by the trace. They are in the
    /// throughput phase, and no part of the total.
    #[serde(default)]
    pub gaps_ns: u64,
    /// The time that was waited in them, by the worker's clock: more than they are by as much as
    /// the waits ended late.
    #[serde(default)]
    pub gap_wait_ns: u64,
    /// The latency phase; 0 if latencies were taken in the throughput phase.
    pub latency_phase_ns: u64,
    /// Operations in the latency phase.
    pub latency_phase_operations: u64,
    /// True if the latency phase was asked for by itself after the sample: then no other number has
    /// it.
    #[serde(default)]
    pub latency_phase_apart: bool,
    /// Operations of both phases, by thread: the progress of each in its part of the table.
    pub thread_operations: Vec<u64>,
    /// Latency of single operations: upper ends of histogram buckets.
    pub latency_ns: Vec<u64>,
    /// Operations in each bucket.
    pub latency_counts: Vec<u64>,
    /// Durations of the syncs within the measured region: upper ends of histogram buckets,
    /// ascending.
    #[serde(default)]
    pub sync_duration_ns: Vec<u64>,
    /// Syncs in each bucket.
    #[serde(default)]
    pub sync_duration_counts: Vec<u64>,
    /// At a rate: operations that were due, or that would have been before the last of a fixed
    /// number began; 0 without one. Their latencies count from there, and an
    /// operation that was not done has waited at least as long as is counted for it.
    #[serde(default)]
    pub due_operations: u64,
    /// At a rate: operations that began over 100 us late although their thread only waited for
    /// their moment: it was woken late, or had no CPU.
    #[serde(default)]
    pub late_starts: u64,
    /// At a rate: true if the bytes that a cold sample may read ended it before its time.
    #[serde(default)]
    pub cut_short: bool,
    /// Intervals of the throughput phase that took more than 1 ms longer than their operations
    /// should have taken: each holds at least one stalled operation.
    pub stalls: u64,
    /// The longest of them.
    pub stall_longest_ns: u64,
}

impl Measurement {
    /// Operations and time of the latency phase as far as it is a part of the sample.
    pub fn latency_phase_within(&self) -> (u64, u64) {
        if self.latency_phase_apart {
            return (0, 0);
        }
        (self.latency_phase_operations, self.latency_phase_ns)
    }
}

/// Defines the evidence: its own fields, and the totals of a process.
macro_rules! evidence {
    (own { $($own:tt)* } totals { $($(#[$doc:meta])* $total:ident,)* }) => {
        /// The supervisor's observations around the measured region. `None`: unknown here.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
        pub struct Evidence {
            $($own)*
            $($(#[$doc])* pub $total: Option<u64>,)*
        }

        impl Evidence {
            /// The part of it that follows from counters of the worker's process.
            pub fn of_process(counters: &ProcessCounters) -> Self {
                Self {
                    worker_peak_bytes: counters.peak_bytes,
                    $($total: counters.$total,)*
                    ..Self::default()
                }
            }
        }
    };
}

crate::with_process_totals! { evidence! {
    own {
        /// From sending `go` to receiving `sample`, on the supervisor's clock.
        pub wall_ns: u64,
        /// When `go` was sent, by the wall clock, in nanoseconds since 1970; of a cold start the
        /// first one. `None` in files of an older pagewise.
        #[serde(default)]
        pub go_unix_ns: Option<u64>,
        /// From sending `open` to receiving `opened`, on the supervisor's clock.
        #[serde(default)]
        pub setup_wall_ns: Option<u64>,
        /// From receiving `opened` to receiving `ready`, likewise.
        #[serde(default)]
        pub warmup_wall_ns: Option<u64>,
        /// From sending `close` to receiving `closed`, likewise.
        #[serde(default)]
        pub teardown_wall_ns: Option<u64>,
        /// Activity of the worker from `open` to `ready`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub before_ready: Option<OutsideActivity>,
        /// Activity of the worker while it only beats, from `idle` to `idled`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub idling: Option<OutsideActivity>,
        /// Activity of the worker while it had nothing to do: between `ready` and `go`, between two
        /// `go`, and between `sample` and `close`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub waiting: Option<OutsideActivity>,
        /// Activity of the worker from `close` to `closed`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub closing: Option<OutsideActivity>,
        /// Bytes requested or written by the accesses, in both phases.
        pub requested_bytes: u64,
        /// Bytes that any process read from or wrote to the block device, less the worker's own.
        pub device_other_bytes: Option<u64>,
        /// Read requests that the block device completed for any process.
        pub device_read_requests: Option<u64>,
        /// Sum of the durations of the read requests; divided by the wall time, it is the average
        /// number in flight.
        #[serde(default)]
        pub device_read_ns: Option<u64>,
        /// Bandwidth of this machine's memory for the threads of the cell and reads or records of
        /// its size: of copying, or of consuming in place if the method need not copy.
        #[serde(default)]
        pub memory_bytes_per_second: Option<u64>,
        /// Bytes that any process wrote to the block device.
        #[serde(default)]
        pub device_written_bytes: Option<u64>,
        /// Flushes of the device's volatile cache for any process; empty if it has none, or they
        /// are not counted.
        #[serde(default)]
        pub device_flushes: Option<u64>,
        /// Bytes that storage read for the worker during set-up.
        #[serde(default)]
        pub setup_device_read_bytes: Option<u64>,
        /// Faults during set-up, of both kinds.
        #[serde(default)]
        pub setup_faults: Option<u64>,
        /// Time that the supervisor's thread was runnable but not running between `go` and
        /// `sample`.
        #[serde(default)]
        pub supervisor_run_queue_ns: Option<u64>,
        /// CPU steal: time that the hypervisor gave to other guests, all CPUs.
        pub steal_ns: Option<u64>,
        /// Bytes of the span in the page cache before the clock started.
        pub resident_before_bytes: Option<u64>,
        /// Of a replay from the cache as it was recorded: bytes of the pages that were in the page
        /// cache then, and were not before the clock started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub recorded_missing_bytes: Option<u64>,
        /// Of such a replay: bytes of the pages in the page cache before the clock started that
        /// were not there when it was recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub recorded_added_bytes: Option<u64>,
        /// Bytes of the span in the page cache after the clock stopped.
        pub resident_after_bytes: Option<u64>,
        /// Source of the residency: `cachestat`, `mincore`, or the reason it is unknown.
        pub residency_source: String,
        /// Bytes of the mapping in huge pages: smaps.
        pub huge_mapped_bytes: Option<u64>,
        /// VmFlags of the mapping, such as `rr` for MADV_RANDOM.
        pub mapping_flags: Option<String>,
        /// The mapping's line in /proc/PID/maps: addresses, rights, offset, device, inode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mapping_line: Option<String>,
        /// Of a replay of several files: files of which the worker had a mapping.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mapped_files: Option<u64>,
        /// Of such a replay: VmFlags that a mapping of one of them has, or of several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub some_mapping_flags: Option<String>,
        /// True if the worker's descriptor has O_DIRECT: fdinfo.
        pub descriptor_direct: Option<bool>,
        /// Peak resident memory of the worker since it got its job, or of its life where that is
        /// not to be had: VmHWM.
        pub worker_peak_bytes: Option<u64>,
        /// Peak resident memory of the worker when it got its job, after it had practised.
        #[serde(default)]
        pub worker_peak_before_bytes: Option<u64>,
        /// Locked memory of the worker (mlock), the larger of before and after the region: VmLck.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub worker_locked_bytes: Option<u64>,
        /// Expected checksum of the accesses.
        pub expected_checksum: Option<u64>,
        /// Checksum reported by the worker.
        pub checksum: u64,
        /// The worker's cgroup after the clock stopped. Totals are since the group was made, except
        /// refaults, scanned and reclaimed pages, kills and device bytes, which are those of the
        /// measured region.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub group: Option<GroupCounters>,
        /// Of a replay: reads that each thread has to do.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub thread_reads: Vec<u64>,
        /// Counters of each thread of the worker.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub threads: Vec<ThreadCounters>,
        /// Counters of the whole host during the region.
        #[serde(default)]
        pub host: HostCounters,
        /// Divergence of the wall clock from the monotonic one.
        #[serde(default)]
        pub clock_step_ns: Option<i64>,
        /// Readahead of the device when the sample began.
        #[serde(default)]
        pub readahead_bytes: Option<u64>,
        /// Settings of the kernel when the region ended.
        #[serde(default)]
        pub settings: SettingsInForce,
        /// CPUs that the worker was allowed to use: Cpus_allowed_list.
        #[serde(default)]
        pub cpus_allowed: Option<String>,
        /// If placement was asked for: the node of the worker's CPUs, and pages of the span by
        /// node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub placement: Option<Placement>,
        /// Intervals before the measured region in which the workload warmed the cache itself, or
        /// those of a cold start.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub windows: Vec<RateWindow>,
        /// Activity of the actor beside the worker; `None` without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub actor: Option<ActorEvidence>,
        /// Delays of the worker's heartbeats, one entry for each kind; empty without heartbeats.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub heartbeats: Vec<Heartbeat>,
        /// Warm-up of a worker whose code is compiled as it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub worker_warmup: Option<WorkerWarmup>,
        /// Mappings of the file that the worker had when the measured region ended.
        #[serde(default)]
        pub mappings: Option<u64>,
        /// Mappings of the file that were left when the worker reported that it had closed the
        /// file.
        #[serde(default)]
        pub mappings_left: Option<u64>,
        /// Content of the written file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub written: Option<Written>,
        /// Reads compared byte for byte after the clock stopped.
        pub verified_reads: u64,
        /// Reads that differed when they were compared.
        pub differing_reads: u64,
        /// Faults that the supervisor observed while it measured and that no check can find again:
        /// the file was changed by someone, or could not be read back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub observed: Vec<Failure>,
    }
} }

/// Activity of the worker's process outside of the measured region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OutsideActivity {
    /// Duration by the supervisor's clock.
    pub wall_ns: u64,
    /// CPU time by the clock of the process, with threads that have ended; if it cannot be read,
    /// that of the threads that live at its end.
    pub cpu_ns: Option<u64>,
    /// Time that its threads were runnable but not running.
    #[serde(default)]
    pub run_queue_ns: Option<u64>,
    /// Time that the supervisor's thread was runnable but not running.
    #[serde(default)]
    pub supervisor_run_queue_ns: Option<u64>,
    /// Bytes that storage read for the process.
    pub device_read_bytes: Option<u64>,
    /// Bytes that came through read calls.
    pub read_call_bytes: Option<u64>,
    /// Bytes that went through write calls.
    pub write_call_bytes: Option<u64>,
    /// Faults of both kinds.
    pub faults: Option<u64>,
}

/// Content of a written file, read back after the worker has exited and compared byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Written {
    /// Access by which it was read back, different from the worker's: `pread` or `mmap`.
    pub read_back: String,
    /// Bytes of the records that must be there.
    pub expected_bytes: u64,
    /// Bytes of the records that are not at their position.
    pub missing_bytes: u64,
    /// Expected offset of the first missing record.
    pub first_missing_at: Option<u64>,
    /// Bytes that differ where no record belongs.
    pub stray_bytes: u64,
    /// Polls of the file's dirty bytes while the worker wrote, where syncs belong to the measured
    /// region.
    #[serde(default)]
    pub polls: u64,
    /// The most that a poll found, bytes under writeback included.
    #[serde(default)]
    pub dirty_most_bytes: Option<u64>,
    /// Dirty bytes of the file before the clock started: cachestat(2).
    pub dirty_before_bytes: Option<u64>,
    /// Dirty bytes of the file after the clock stopped.
    pub dirty_after_bytes: Option<u64>,
    /// Bytes still dirty after tear-down, whose cost is yet to come.
    pub dirty_end_bytes: Option<u64>,
    /// Bytes of the file that have blocks, before the clock started.
    pub allocated_before_bytes: Option<u64>,
    /// Size of a folio of the file in the page cache, where it is to be updated: the median of the
    /// bytes that became dirty when the supervisor wrote one byte.
    #[serde(default)]
    pub folio_bytes: Option<u64>,
}

/// Location of the worker and the pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Placement {
    /// Node of the CPUs that the worker was allowed.
    pub worker_node: u32,
    /// Node that was asked for the pages.
    pub page_node: u32,
    /// Pages examined.
    pub pages: u64,
    /// Examined pages on the node that was asked for: move_pages(2).
    pub pages_on_node: u64,
}

/// All fields that any outcome may have: an outcome is deserialized from them in one pass. For a
/// tagged enum, serde buffers the whole value until the tag is known, which takes most of the time
/// of reading a run file.
#[derive(Deserialize)]
struct OutcomeFields {
    outcome: Word,
    measurement: Option<Measurement>,
    evidence: Option<Box<Evidence>>,
    failures: Option<Vec<Failure>>,
    stderr_tail: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Taken,
    Broken,
    Unavailable,
}

impl TryFrom<OutcomeFields> for Outcome {
    type Error = String;

    fn try_from(fields: OutcomeFields) -> Result<Self, String> {
        let missing = |field: &str| format!("missing field `{field}`");
        Ok(match fields.outcome {
            Word::Taken => Outcome::Taken {
                measurement: Box::new(fields.measurement.ok_or_else(|| missing("measurement"))?),
                evidence: fields.evidence.ok_or_else(|| missing("evidence"))?,
                failures: fields.failures.ok_or_else(|| missing("failures"))?,
            },
            Word::Broken => Outcome::Broken {
                failures: fields.failures.ok_or_else(|| missing("failures"))?,
                stderr_tail: fields.stderr_tail.ok_or_else(|| missing("stderr_tail"))?,
            },
            Word::Unavailable => {
                Outcome::Unavailable { reason: fields.reason.ok_or_else(|| missing("reason"))? }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_read_as_it_was_written() {
        let outcomes = [
            Outcome::Taken {
                measurement: Box::new(Measurement { operations: 7, ..Measurement::default() }),
                evidence: Box::new(Evidence { wall_ns: 9, ..Evidence::default() }),
                failures: Vec::new(),
            },
            Outcome::Broken { failures: Vec::new(), stderr_tail: "end".into() },
            Outcome::Unavailable { reason: "none".into() },
        ];
        for outcome in outcomes {
            let text = serde_json::to_string(&outcome).expect("text");
            assert_eq!(serde_json::from_str::<Outcome>(&text).expect("the same"), outcome);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let wrong = |text: &str| serde_json::from_str::<Outcome>(text).expect_err("incomplete").to_string();
        assert!(wrong(r#"{"outcome":"unavailable"}"#).starts_with("missing field `reason`"));
        assert!(wrong(r#"{"outcome":"broken","failures":[]}"#).starts_with("missing field `stderr_tail`"));
        assert!(wrong(r#"{"outcome":"better"}"#).starts_with("unknown variant `better`"));
    }
}
