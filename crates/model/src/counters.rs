//! Counters that samples carry: of a cgroup, of single threads, of the whole host.

use serde::{Deserialize, Serialize};

/// What a limit or cap that is not set is read back as.
pub const UNLIMITED: u64 = u64::MAX;

/// Defines counters by name: gauges, of which a difference has the later one, and running totals, of which it has what was
/// added. A total that went back is unknown in the difference, as one that is not known at both ends is.
macro_rules! counters {
    (
        $(#[$meta:meta])* $name:ident: $($copy:ident)?;
        kept { $($(#[$kept_doc:meta])* $kept:ident: $kept_type:ty,)* }
        gauges { $($(#[$gauge_doc:meta])* $gauge:ident,)* }
        totals { $($(#[$total_doc:meta])* $total:ident,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, $($copy,)? Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$kept_doc])* pub $kept: $kept_type,)*
            $($(#[$gauge_doc])* pub $gauge: Option<u64>,)*
            $($(#[$total_doc])* pub $total: Option<u64>,)*
        }

        impl $name {
            /// What was done between two readings, with the gauges of the later one.
            pub fn difference(before: &Self, after: &Self) -> Self {
                Self {
                    $($kept: after.$kept.clone(),)*
                    $($gauge: after.$gauge,)*
                    $($total: less(before.$total, after.$total),)*
                }
            }
        }
    };
}

fn less(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

counters! {
    /// What the worker's cgroup says. `None`: this kernel or cgroup version does not say it.
    GroupCounters: ;
    kept {
        /// `v1` or `v2`.
        version: String,
    }
    gauges {
        /// The memory limit, read back.
        limit_bytes,
        /// The most that was charged since the group was made.
        peak_bytes,
        /// What is charged: page cache, anonymous memory, the kernel's.
        usage_bytes,
        /// Page cache in it.
        file_bytes,
        /// Anonymous memory in it.
        anonymous_bytes,
        /// Kernel memory in it: page tables, the index of the page cache.
        kernel_bytes,
        /// Read requests per second that the device may deliver, read back.
        cap_read_iops,
        /// Bytes per second that the device may deliver, read back.
        cap_read_bytes_per_second,
    }
    totals {
        /// Pages that came back soon after they had been reclaimed.
        refaults,
        /// Pages that were looked at for reclaim.
        scanned_pages,
        /// Pages that were reclaimed.
        reclaimed_pages,
        /// Processes that were killed because the limit left no other way.
        memory_kills,
        /// Bytes that the block layer read for the group.
        device_read_bytes,
        /// Read requests that the block layer did for it.
        device_read_requests,
    }
}

counters! {
    /// What one thread of the worker did.
    ThreadCounters: Copy;
    kept {
        /// Thread id.
        thread: u32,
    }
    gauges {}
    totals {
        /// Faults served without the device.
        minor_faults,
        /// Faults that waited for the device.
        major_faults,
        /// CPU time in user mode, whole clock ticks.
        user_ns,
        /// CPU time in the kernel, whole clock ticks.
        system_ns,
        /// CPU time.
        cpu_ns,
        /// Context switches because it waited.
        voluntary_switches,
        /// Context switches because it was preempted.
        involuntary_switches,
    }
}

counters! {
    /// What the whole host did: running totals since boot, or their differences, and gauges. In a difference the gauges
    /// are those of the later reading.
    HostCounters: Copy;
    kept {}
    gauges {
        /// tasks that run or could.
        running,
        /// tasks that wait for the device.
        blocked,
        /// memory that nobody uses.
        free_bytes,
        /// buffers of block devices.
        buffer_bytes,
        /// page cache and reclaimable kernel memory, as vmstat's column `cache`.
        cached_bytes,
        /// swap in use.
        swapped_bytes,
        /// pages that must still be written.
        dirty_bytes,
        /// pages that are being written.
        writeback_bytes,
    }
    totals {
        /// Bytes swapped in.
        swap_in_bytes,
        /// Bytes swapped out.
        swap_out_bytes,
        /// Bytes that block devices read: pgpgin.
        block_in_bytes,
        /// Bytes that block devices wrote: pgpgout.
        block_out_bytes,
        /// Interrupts.
        interrupts,
        /// Context switches.
        context_switches,
        /// Faults that waited for the device.
        major_faults,
        /// File pages that came back soon after they had been reclaimed.
        refaults,
        /// Pages looked at by kswapd.
        scanned_by_kswapd,
        /// Pages looked at by tasks that needed memory.
        scanned_directly,
        /// Pages reclaimed by kswapd.
        reclaimed_by_kswapd,
        /// Pages reclaimed by tasks that needed memory.
        reclaimed_directly,
        /// Interrupts that flush other CPUs' translations.
        tlb_shootdowns,
        /// CPU time in user mode, all CPUs, nice included.
        user_ns,
        /// CPU time in the kernel, interrupts included.
        system_ns,
        /// CPU time unused.
        idle_ns,
        /// CPU time unused while a task waited for the device.
        wait_ns,
        /// CPU time that the hypervisor gave to others.
        steal_ns,
        /// Time in which some task waited for memory (PSI).
        memory_some_ns,
        /// Time in which all tasks did.
        memory_full_ns,
        /// Time in which some task waited for a device.
        io_some_ns,
        /// Time in which all tasks did.
        io_full_ns,
    }
}

counters! {
    /// Running totals of a process and its threads. `None`: could not be known.
    ProcessCounters: Copy;
    kept {}
    gauges {
        /// Peak resident memory: VmHWM.
        peak_bytes,
    }
    totals {
        /// Bytes that storage read for it: /proc/PID/io read_bytes.
        device_read_bytes,
        /// Bytes that came through read calls: rchar.
        read_call_bytes,
        /// Read calls: syscr.
        read_calls,
        /// Bytes that went through write calls: wchar.
        write_call_bytes,
        /// Write calls: syscw.
        write_calls,
        /// Faults served without the device.
        minor_faults,
        /// Faults that waited for the device.
        major_faults,
        /// CPU time in user mode; whole clock ticks.
        user_ns,
        /// CPU time in the kernel; whole clock ticks.
        system_ns,
        /// CPU time of the threads that live: /proc/PID/task/*/schedstat.
        cpu_ns,
        /// Time that they were runnable and not running.
        run_queue_ns,
        /// Context switches of the threads that live because they waited.
        voluntary_switches,
        /// Context switches because they were preempted.
        involuntary_switches,
    }
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
pub struct RateWindow {
    /// How long it lasted.
    pub elapsed_ns: u64,
    /// Operations done in it.
    pub operations: u64,
    /// Bytes that storage read for the worker in it.
    pub device_read_bytes: Option<u64>,
    /// Bytes of the span in the page cache at its end.
    pub resident_bytes: Option<u64>,
}
