//! Counters that samples carry: of a cgroup, of single threads, of the whole host.

use serde::{Deserialize, Serialize};

/// What a limit or cap that is not set is read back as.
pub const UNLIMITED: u64 = u64::MAX;

/// What the worker's cgroup says. `None`: this kernel or cgroup version does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounters {
    /// `v1` or `v2`.
    pub version: String,
    /// The memory limit, read back.
    pub limit_bytes: Option<u64>,
    /// The most that was charged since the group was made.
    pub peak_bytes: Option<u64>,
    /// What is charged: page cache, anonymous memory, the kernel's.
    pub usage_bytes: Option<u64>,
    /// Page cache in it.
    pub file_bytes: Option<u64>,
    /// Anonymous memory in it.
    pub anonymous_bytes: Option<u64>,
    /// Kernel memory in it: page tables, the index of the page cache.
    pub kernel_bytes: Option<u64>,
    /// Pages that came back soon after they had been reclaimed.
    pub refaults: Option<u64>,
    /// Pages that were looked at for reclaim.
    pub scanned_pages: Option<u64>,
    /// Pages that were reclaimed.
    pub reclaimed_pages: Option<u64>,
    /// Processes that were killed because the limit left no other way.
    pub memory_kills: Option<u64>,
    /// Read requests per second that the device may deliver, read back.
    pub cap_read_iops: Option<u64>,
    /// Bytes per second that the device may deliver, read back.
    pub cap_read_bytes_per_second: Option<u64>,
    /// Bytes that the block layer read for the group.
    pub device_read_bytes: Option<u64>,
    /// Read requests that the block layer did for it.
    pub device_read_requests: Option<u64>,
}

/// What one thread of the worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCounters {
    /// Thread id.
    pub thread: u32,
    /// Faults served without the device.
    pub minor_faults: Option<u64>,
    /// Faults that waited for the device.
    pub major_faults: Option<u64>,
    /// CPU time in user mode, whole clock ticks.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, whole clock ticks.
    pub system_ns: Option<u64>,
    /// CPU time.
    pub cpu_ns: Option<u64>,
    /// Context switches because it waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches because it was preempted.
    pub involuntary_switches: Option<u64>,
}

/// What the whole host did: running totals since boot, or their differences, and gauges. In a difference the gauges
/// are those of the later reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounters {
    /// Gauge: tasks that run or could.
    pub running: Option<u64>,
    /// Gauge: tasks that wait for the device.
    pub blocked: Option<u64>,
    /// Gauge: memory that nobody uses.
    pub free_bytes: Option<u64>,
    /// Gauge: buffers of block devices.
    pub buffer_bytes: Option<u64>,
    /// Gauge: page cache and reclaimable kernel memory, as vmstat's column `cache`.
    pub cached_bytes: Option<u64>,
    /// Gauge: swap in use.
    pub swapped_bytes: Option<u64>,
    /// Gauge: pages that must still be written.
    pub dirty_bytes: Option<u64>,
    /// Gauge: pages that are being written.
    pub writeback_bytes: Option<u64>,
    /// Bytes swapped in.
    pub swap_in_bytes: Option<u64>,
    /// Bytes swapped out.
    pub swap_out_bytes: Option<u64>,
    /// Bytes that block devices read: pgpgin.
    pub block_in_bytes: Option<u64>,
    /// Bytes that block devices wrote: pgpgout.
    pub block_out_bytes: Option<u64>,
    /// Interrupts.
    pub interrupts: Option<u64>,
    /// Context switches.
    pub context_switches: Option<u64>,
    /// Faults that waited for the device.
    pub major_faults: Option<u64>,
    /// File pages that came back soon after they had been reclaimed.
    pub refaults: Option<u64>,
    /// Pages looked at by kswapd.
    pub scanned_by_kswapd: Option<u64>,
    /// Pages looked at by tasks that needed memory.
    pub scanned_directly: Option<u64>,
    /// Pages reclaimed by kswapd.
    pub reclaimed_by_kswapd: Option<u64>,
    /// Pages reclaimed by tasks that needed memory.
    pub reclaimed_directly: Option<u64>,
    /// Interrupts that flush other CPUs' translations.
    pub tlb_shootdowns: Option<u64>,
    /// CPU time in user mode, all CPUs, nice included.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, interrupts included.
    pub system_ns: Option<u64>,
    /// CPU time unused.
    pub idle_ns: Option<u64>,
    /// CPU time unused while a task waited for the device.
    pub wait_ns: Option<u64>,
    /// CPU time that the hypervisor gave to others.
    pub steal_ns: Option<u64>,
    /// Time in which some task waited for memory (PSI).
    pub memory_some_ns: Option<u64>,
    /// Time in which all tasks did.
    pub memory_full_ns: Option<u64>,
    /// Time in which some task waited for a device.
    pub io_some_ns: Option<u64>,
    /// Time in which all tasks did.
    pub io_full_ns: Option<u64>,
}

/// The host at one moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSecond {
    /// Since the run began, interruptions left out.
    pub at_ns: u64,
    /// Nothing can be subtracted from it: the run began or was resumed just before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins: bool,
    /// Running totals and gauges.
    pub host: HostCounters,
}

/// A stretch of a sample, as long as one `go` lasts: of a cold start, or of warming up by the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// How long it lasted.
    pub elapsed_ns: u64,
    /// Operations done in it.
    pub operations: u64,
    /// Bytes that storage read for the worker in it.
    pub device_read_bytes: Option<u64>,
    /// Bytes of the span in the page cache at its end.
    pub resident_bytes: Option<u64>,
}
