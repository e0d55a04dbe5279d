//! The supervisor's observations of a cell, as medians over its valid samples.

use pagewise_model::sample::Measurement;
use pagewise_model::{Evidence, GroupCounters};
use serde::Serialize;

use crate::judge::bound::Activity;
use crate::judge::collected::CellSamples;
use crate::proof::measured::operations;
use crate::statistics::{median, median_count, total};

/// Defines the medians of numbers in [`Evidence`] that may be missing: its own fields, its group's,
/// the host's, and the totals of the worker's process.
macro_rules! evidence_medians {
    (
        own { $($(#[$own_doc:meta])* $own:ident,)+ }
        group { $($(#[$group_doc:meta])* $group:ident: $group_field:ident,)+ }
        host { $($(#[$host_doc:meta])* $host:ident,)+ }
        totals { $($(#[$total_doc:meta])* $total:ident,)+ }
    ) => {
        /// Medians over valid samples of the supervisor's observations; `None`: unknown in all
        /// samples.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
        pub struct EvidenceMedians {
            /// From sending `go` to receiving `sample`.
            pub wall_ns: u64,
            /// Bytes requested in both phases, or written to the file.
            pub requested_bytes: u64,
            $($(#[$total_doc])* pub $total: Option<u64>,)+
            $($(#[$own_doc])* pub $own: Option<u64>,)+
            $($(#[$group_doc])* pub $group: Option<u64>,)+
            $($(#[$host_doc])* pub $host: Option<u64>,)+
            /// Refaults: of the group, or without one of the host.
            pub refaults: Option<u64>,
            /// Read amplification: device bytes per requested byte.
            pub amplification: Option<f64>,
            /// Major faults per operation.
            pub major_faults_per_op: Option<f64>,
            /// Minor faults per operation.
            pub minor_faults_per_op: Option<f64>,
            /// Refaults per operation.
            pub refaults_per_op: Option<f64>,
            /// TLB shootdowns per second, of the whole host.
            pub tlb_shootdowns_per_second: Option<f64>,
            /// Duration of the warm-up of a worker whose code is compiled as it runs.
            pub worker_warmup_ns: Option<u64>,
            /// CPU time over the time of all threads.
            pub cpu_share: Option<f64>,
            /// Mean size of a request to the device.
            pub issued_bytes: Option<f64>,
            /// Source of the residency.
            pub residency_source: String,
            /// VmFlags of the mapping.
            pub mapping_flags: Option<String>,
            /// The mapping's line in /proc/PID/maps, of the last sample.
            pub mapping_line: Option<String>,
            /// True if the descriptor has O_DIRECT.
            pub descriptor_direct: Option<bool>,
            /// Reads compared byte for byte, in all samples.
            pub verified_reads: u64,
        }

        impl EvidenceMedians {
            fn counts(evidence: &[&Evidence]) -> Self {
                let of = |field: &dyn Fn(&Evidence) -> Option<u64>| {
                    median_count(&evidence.iter().filter_map(|seen| field(seen)).collect::<Vec<_>>())
                };
                let of_group = |field: &dyn Fn(&GroupCounters) -> Option<u64>| {
                    of(&|seen| seen.group.as_ref().and_then(|group| field(group)))
                };
                Self {
                    $($total: of(&|seen| seen.$total),)+
                    $($own: of(&|seen| seen.$own),)+
                    $($group: of_group(&|group| group.$group_field),)+
                    $($host: of(&|seen| seen.host.$host),)+
                    refaults: of(&refaults),
                    worker_warmup_ns: of(&|seen| Some(seen.worker_warmup.as_ref()?.elapsed_ns)),
                    ..Self::default()
                }
            }
        }
    };
}

pagewise_model::with_process_totals! { evidence_medians! {
    own {
        /// Bytes that other processes moved on the device.
        device_other_bytes,
        /// Read requests that the device completed for any process.
        device_read_requests,
        /// Bytes that any process wrote to the device.
        device_written_bytes,
        /// Faults of set-up, of both kinds.
        setup_faults,
        /// Bytes that the device delivered to the worker in its set-up.
        setup_device_read_bytes,
        /// CPU steal: time that the hypervisor gave to other guests.
        steal_ns,
        /// Bytes of the span in the page cache before.
        resident_before_bytes,
        /// Bytes of the span in the page cache after.
        resident_after_bytes,
        /// Bytes of the mapping in huge pages.
        huge_mapped_bytes,
        /// Peak resident memory of the worker.
        worker_peak_bytes,
        /// Readahead of the device, read back.
        readahead_bytes,
    }
    group {
        /// The group's limit, read back.
        group_limit_bytes: limit_bytes,
        /// Peak of the memory charged to it.
        group_peak_bytes: peak_bytes,
        /// Memory charged to it.
        group_usage_bytes: usage_bytes,
        /// Page cache of that.
        group_file_bytes: file_bytes,
        /// Anonymous memory of that.
        group_anonymous_bytes: anonymous_bytes,
        /// The kernel's memory of that.
        group_kernel_bytes: kernel_bytes,
        /// Pages of the group scanned for reclaim.
        group_scanned_pages: scanned_pages,
        /// Pages of it that were reclaimed.
        group_reclaimed_pages: reclaimed_pages,
        /// Bytes that the block layer read for it.
        group_device_read_bytes: device_read_bytes,
        /// Read requests that it did for it.
        group_device_read_requests: device_read_requests,
    }
    host {
        /// Pages of the host scanned by kswapd.
        scanned_by_kswapd,
        /// Pages scanned by tasks that needed memory.
        scanned_directly,
        /// Pages reclaimed by kswapd.
        reclaimed_by_kswapd,
        /// Pages reclaimed by tasks that needed memory.
        reclaimed_directly,
        /// TLB shootdowns: interrupts that flush other CPUs' translations.
        tlb_shootdowns,
        /// CPU time of the host spent idle while a task waited for the device.
        wait_ns,
        /// Time in which at least one task of the host waited for memory.
        memory_some_ns,
        /// Time in which all of them did.
        memory_full_ns,
        /// Time in which at least one task of the host waited for a device.
        io_some_ns,
        /// Time in which all of them did.
        io_full_ns,
    }
} }

/// A part and its whole.
type Parts = Option<(u64, u64)>;

impl EvidenceMedians {
    /// The medians of a cell; `None` without a valid sample.
    pub(super) fn of(samples: &CellSamples<'_>, activity: Option<&Activity>) -> Option<Self> {
        let evidence: Vec<&Evidence> = samples.valid().map(|(_, evidence)| evidence).collect();
        let last = evidence.last()?;
        let count = |field: fn(&Evidence) -> u64| {
            median_count(&evidence.iter().map(|seen| field(seen)).collect::<Vec<_>>()).unwrap_or(0)
        };
        let ratio = |parts: &dyn Fn(&Measurement, &Evidence) -> Parts| {
            median(&samples.known(|measurement, seen| {
                let (part, whole) = parts(measurement, seen).filter(|(_, whole)| *whole > 0)?;
                Some(part as f64 / whole as f64)
            }))
        };
        let per_op = |field: fn(&Evidence) -> Option<u64>| {
            ratio(&|measurement, seen| Some((field(seen)?, operations(measurement))))
        };
        let per_ns = ratio(&|_, seen| Some((seen.host.tlb_shootdowns?, seen.wall_ns)));
        Some(Self {
            wall_ns: count(|seen| seen.wall_ns),
            requested_bytes: count(|seen| seen.requested_bytes),
            amplification: ratio(&|_, seen| {
                Some((seen.device_read_bytes?, samples.cell.conditions.used_bytes(seen.requested_bytes)))
            }),
            major_faults_per_op: per_op(|seen| seen.major_faults),
            minor_faults_per_op: per_op(|seen| seen.minor_faults),
            refaults_per_op: per_op(refaults),
            tlb_shootdowns_per_second: per_ns.map(|per_ns| per_ns * 1e9),
            cpu_share: activity.and_then(|activity| activity.cpu_share),
            issued_bytes: activity.and_then(Activity::issued_bytes),
            residency_source: last.residency_source.clone(),
            mapping_flags: last.mapping_flags.clone(),
            mapping_line: last.mapping_line.clone(),
            descriptor_direct: last.descriptor_direct,
            verified_reads: total(evidence.iter().map(|seen| &seen.verified_reads)),
            ..Self::counts(&evidence)
        })
    }
}

/// Refaults of the group; without one, of the host. Those beside an actor are of both programs, so
/// nobody knows how many are the worker's.
fn refaults(seen: &Evidence) -> Option<u64> {
    match &seen.group {
        _ if seen.actor.is_some() => None,
        Some(group) => group.refaults,
        None => seen.host.refaults,
    }
}
