//! What a check looks at: a sample with its cell and what is known of the machine.

use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Cell, CheckContext, Evidence};

use super::calls;

/// One sample with all that a check looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) measurement: &'a Measurement,
    pub(crate) evidence: &'a Evidence,
    pub(crate) context: &'a CheckContext,
}

impl Subject<'_> {
    /// Operations of both phases. Saturating, as the worker may claim anything.
    pub(crate) fn operations(&self) -> u64 {
        self.measurement.operations.saturating_add(self.measurement.latency_phase_operations)
    }

    /// Whether all of the work was done, where that is fixed.
    pub(crate) fn is_complete(&self) -> bool {
        self.cell.conditions.fixed_operations().is_none_or(|all| self.operations() >= all)
    }

    /// Whether it writes, and does not read.
    pub(crate) fn is_writing(&self) -> bool {
        !self.cell.conditions.workload().is_reading()
    }

    /// Both phases on the worker's clock.
    pub(crate) fn worker_ns(&self) -> u64 {
        self.measurement.measured_ns.saturating_add(self.measurement.latency_phase_ns)
    }

    /// Bytes that the device delivered to the worker: as its process counts them, or as its group does.
    pub(crate) fn device_bytes(&self) -> Option<u64> {
        let of_group = self.evidence.group.as_ref().and_then(|group| group.device_read_bytes);
        self.evidence.device_read_bytes.or(of_group)
    }

    /// Whether the device delivers more than nothing of what is asked for.
    pub(crate) fn device_flows(&self) -> bool {
        self.device_bytes().is_some_and(|read| read > self.evidence.requested_bytes / 100)
    }

    /// Whether the sample runs on a cache that cannot hold the span, and was warmed as far as that goes.
    pub(crate) fn is_warm_above_memory(&self) -> bool {
        let conditions = &self.cell.conditions;
        let warmed = conditions.cache == CacheState::Warm && !self.is_writing();
        warmed && !conditions.fits_memory() && self.cell.depends_on_cache()
    }

    /// CPUs that the threads of the worker can use at once.
    pub(crate) fn cpus_used(&self) -> u64 {
        u64::from(self.cpus().min(self.cell.conditions.threads).max(1))
    }

    /// CPUs that the worker may use.
    pub(crate) fn cpus(&self) -> u32 {
        let set = self.cell.conditions.host_settings.cpus.as_ref().map(|cpus| cpus.numbers().len() as u32);
        set.map_or(self.context.cpus, |set| set.min(self.context.cpus)).max(1)
    }

    /// Reads of both phases, or pieces of a scan.
    pub(crate) fn reads(&self) -> u64 {
        calls::reads(self.cell, self.operations())
    }
}
