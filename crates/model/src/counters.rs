//! Counters that samples carry: of a cgroup, of single threads, of the whole host.

use serde::{Deserialize, Serialize};

/// Value that an unset limit or cap is read back as.
pub const UNLIMITED: u64 = u64::MAX;

/// Defines counters by name: gauges and running totals. A difference has the later value of a gauge
/// and the increase of a total. A total that decreased, or is unknown at either end, is unknown in
/// the difference.
macro_rules! counters {
    (
        $(#[$meta:meta])* $name:ident: $($copy:ident)?;
        kept { $($(#[$kept_doc:meta])* $kept:ident: $kept_type:ty,)* }
        gauges { $($(#[$gauge_doc:meta])* $gauge:ident,)* }
        totals { $($(#[$total_doc:meta])* $total:ident,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, $($copy,)? Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        pub struct $name {
            $($(#[$kept_doc])* pub $kept: $kept_type,)*
            $($(#[$gauge_doc])* pub $gauge: Option<u64>,)*
            $($(#[$total_doc])* pub $total: Option<u64>,)*
        }

        impl $name {
            /// Return the increase of the totals between two readings, with the gauges of the later
            /// one.
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
    /// Counters of the worker's cgroup. `None`: this kernel or cgroup version does not report it.
    GroupCounters: ;
    kept {
        /// `v1` or `v2`.
        version: String,
    }
    gauges {
        /// The memory limit, read back.
        limit_bytes,
        /// Peak of the charged memory since the group was made.
        peak_bytes,
        /// Charged memory: page cache, anonymous, kernel.
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
        /// Pages scanned for reclaim.
        scanned_pages,
        /// Pages that were reclaimed.
        reclaimed_pages,
        /// Processes killed because the limit could not be met otherwise.
        memory_kills,
        /// Bytes that the block layer read for the group.
        device_read_bytes,
        /// Read requests that the block layer completed for it.
        device_read_requests,
    }
}

/// The totals of a thread, for a macro: `with_thread_totals! { fields! { more } }` is
/// `fields! { more totals { list } }`.
#[macro_export]
macro_rules! with_thread_totals {
    ($fields:ident! { $($more:tt)* } $($before:tt)*) => {
        $fields! {
            $($more)*
            totals {
                $($before)*
                /// Faults served without the device.
                minor_faults,
                /// Faults that waited for the device.
                major_faults,
                /// CPU time in user mode, in whole clock ticks.
                user_ns,
                /// CPU time in the kernel, in whole clock ticks.
                system_ns,
                /// CPU time: of a thread by /proc/PID/task/*/schedstat; of a process by its clock,
                /// with threads that have ended, and if it cannot be read that of its live threads.
                cpu_ns,
                /// Time runnable but not running; of a process, that of its live threads.
                run_queue_ns,
                /// Voluntary context switches, to wait; of a process, those of its live threads.
                voluntary_switches,
                /// Involuntary context switches, preempted; of a process, those of its live
                /// threads.
                involuntary_switches,
                /// Read calls of any file: io syscr.
                read_calls,
            }
        }
    };
}

/// The totals of a process, likewise: its input and output, and the totals of its threads.
#[macro_export]
macro_rules! with_process_totals {
    ($fields:ident! { $($more:tt)* }) => {
        $crate::with_thread_totals! {
            $fields! { $($more)* }
            /// Bytes that storage read for the process: /proc/PID/io read_bytes.
            device_read_bytes,
            /// Bytes that came through read calls: /proc/PID/io rchar.
            read_call_bytes,
            /// Bytes that went through write calls: /proc/PID/io wchar.
            write_call_bytes,
            /// Write calls: /proc/PID/io syscw.
            write_calls,
        }
    };
}

with_thread_totals! { counters! {
    /// Counters of one thread of the worker.
    ThreadCounters: Copy;
    kept {
        /// Thread id.
        thread: u32,
    }
    gauges {}
} }

counters! {
    /// Counters of the whole host: running totals since boot, or their differences, and gauges. In
    /// a difference, gauges are those of the later reading.
    HostCounters: Copy;
    kept {}
    gauges {
        /// Runnable tasks, including running ones.
        running,
        /// Tasks that wait for the device.
        blocked,
        /// Unused memory.
        free_bytes,
        /// Buffers of block devices.
        buffer_bytes,
        /// Page cache and reclaimable kernel memory, like vmstat's column `cache`.
        cached_bytes,
        /// Swap in use.
        swapped_bytes,
        /// Dirty pages.
        dirty_bytes,
        /// Pages under writeback.
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
        /// Major faults: they waited for the device.
        major_faults,
        /// File pages that came back soon after they had been reclaimed.
        refaults,
        /// Pages scanned by kswapd.
        scanned_by_kswapd,
        /// Pages scanned by tasks that needed memory.
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
        /// CPU time spent idle.
        idle_ns,
        /// CPU time spent idle while a task waited for the device.
        wait_ns,
        /// CPU steal: time that the hypervisor gave to other guests.
        steal_ns,
        /// Time in which at least one task waited for memory (PSI).
        memory_some_ns,
        /// Time in which all tasks waited for memory.
        memory_full_ns,
        /// Time in which at least one task waited for a device.
        io_some_ns,
        /// Time in which all tasks waited for a device.
        io_full_ns,
    }
}

with_process_totals! { counters! {
    /// Running totals of a process and its threads. `None`: unknown.
    ProcessCounters: Copy;
    kept {}
    gauges {
        /// Peak resident memory: VmHWM.
        peak_bytes,
        /// Memory that may not leave: VmLck.
        locked_bytes,
    }
} }

macro_rules! of_threads {
    (totals { $($(#[$doc:meta])* $total:ident,)* }) => {
        impl ProcessCounters {
            /// Sums over the threads of a process; unknown if one of them is, or if there are none.
            pub fn of_threads(threads: &[ThreadCounters]) -> Self {
                let sum = |part: fn(&ThreadCounters) -> Option<u64>| {
                    let add = |left: Option<u64>, right: Option<u64>| left?.checked_add(right?);
                    threads.iter().map(part).reduce(add).flatten()
                };
                Self { $($total: sum(|thread| thread.$total),)* ..Self::default() }
            }
        }
    };
}

with_thread_totals! { of_threads! {} }

/// The host at one moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSecond {
    /// Time since the run began, without interruptions.
    pub at_ns: u64,
    /// True if the run began or was resumed just before, so no difference can be taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins: bool,
    /// Running totals and gauges.
    pub host: HostCounters,
}

/// An interval of a sample, as long as one `go` lasts: of a cold start, or of a warm-up by the
/// workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RateWindow {
    /// Duration by the worker's clock.
    pub elapsed_ns: u64,
    /// Time that this clock leaves out and that counts all the same.
    #[serde(default)]
    pub unaccounted_ns: u64,
    /// Operations done in it.
    pub operations: u64,
    /// Bytes that storage read for the worker in it.
    pub device_read_bytes: Option<u64>,
    /// Bytes of the span in the page cache at its end.
    pub resident_bytes: Option<u64>,
    /// Involuntary context switches of the worker's threads.
    #[serde(default)]
    pub involuntary_switches: Option<u64>,
}

impl RateWindow {
    /// Duration, with what the worker's clock leaves out.
    pub fn duration_ns(&self) -> u64 {
        self.elapsed_ns.saturating_add(self.unaccounted_ns)
    }

    /// Operations per second of that time.
    pub fn ops_per_second(&self) -> f64 {
        self.operations as f64 * 1e9 / self.duration_ns().max(1) as f64
    }
}
