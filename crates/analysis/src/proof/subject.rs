//! Input of a check: a sample with its cell and the facts about the machine.

use pagewise_model::sample::Measurement;
use pagewise_model::{Access, CacheState, Cell, CheckContext, Evidence, FOLIO_BYTES};
use pagewise_protocol::claims::{Asked, Claims};

use super::calls;

/// Other processes may use the device by this share of the worker's use, and by [`OTHERS_BYTES`].
const OTHERS_SHARE: f64 = 0.10;
/// A journal's commit, or a log line of another process.
const OTHERS_BYTES: u64 = 4 << 20;
/// Share of the bytes of an actor, as a divisor, and requests of readahead, whose time is unknown.
const ACTOR_PART: u64 = 10;
const ACTOR_WINDOWS: u64 = 2;
/// Additional bytes that each sync within the measured region may write: the pages that it shares
/// with its neighbours, and a commit.
pub(super) const SYNC_BYTES: u64 = 64 << 10;

/// One sample with all inputs of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) measurement: &'a Measurement,
    pub(crate) evidence: &'a Evidence,
    pub(crate) context: &'a CheckContext,
}

impl Subject<'_> {
    /// The claims of the worker.
    pub(crate) fn claims(&self) -> Claims<'_> {
        Claims::of(self.measurement, self.evidence.requested_bytes)
    }

    /// The work that it was asked for.
    pub(crate) fn asked(&self) -> Asked {
        Asked::of_method(&self.cell.conditions, &self.cell.method)
    }

    /// Operations of both phases. Saturating, as the worker may claim anything.
    pub(crate) fn operations(&self) -> u64 {
        self.claims().all_operations()
    }

    /// True if all of the fixed work was completed.
    pub(crate) fn is_complete(&self) -> bool {
        self.cell.conditions.fixed_operations().is_none_or(|all| self.operations() >= all)
    }

    /// True if it writes rather than reads.
    pub(crate) fn is_writing(&self) -> bool {
        !self.cell.conditions.workload().is_reading()
    }

    /// Both phases on the worker's clock.
    pub(crate) fn worker_ns(&self) -> u64 {
        self.claims().all_ns()
    }

    /// Bytes that the device delivered to the worker: by the count of its process, or of its group.
    pub(crate) fn device_bytes(&self) -> Option<u64> {
        let of_group = self.evidence.group.as_ref().and_then(|group| group.device_read_bytes);
        // The group's bytes are those of the actor, too.
        let of_group = of_group.filter(|_| self.cell.conditions.beside.is_none());
        self.evidence.device_read_bytes.or(of_group)
    }

    /// Bytes that an actor's records put on the device in the region, at least and at most: each is
    /// written in whole pages, through a mapping in whole folios.
    fn written_by_actor(&self) -> (u64, u64) {
        let actor = self.cell.conditions.beside.as_ref().filter(|actor| actor.is_writing());
        let Some((actor, evidence)) = actor.zip(self.evidence.actor.as_ref()) else { return (0, 0) };
        let (least, most) = evidence.bounds_of_bytes(self.evidence.wall_ns);
        let folio = if actor.method.access() == Access::Mmap { FOLIO_BYTES } else { self.context.page_bytes };
        let of_record = [2 * folio, SYNC_BYTES].into_iter().fold(actor.op_bytes.0, u64::saturating_add);
        (least, (most / actor.op_bytes.0.max(1)).saturating_mul(of_record))
    }

    /// Bytes that the device wrote for others than an actor, at most.
    pub(crate) fn device_written_at_most(&self) -> Option<u64> {
        Some(self.evidence.device_written_bytes?.saturating_sub(self.written_by_actor().0))
    }

    /// Bytes that the device wrote for others than an actor, at least.
    pub(crate) fn device_written_at_least(&self) -> Option<u64> {
        Some(self.evidence.device_written_bytes?.saturating_sub(self.written_by_actor().1))
    }

    /// Bytes that the device moved for other processes than the worker and an actor, at least.
    pub(crate) fn device_other_bytes(&self) -> Option<u64> {
        let written = self.evidence.device_written_bytes.unwrap_or(0);
        let of_actor = written.min(self.written_by_actor().1);
        Some(self.evidence.device_other_bytes?.saturating_sub(of_actor))
    }

    /// Bytes that other processes may move on the device while the worker moves `own`. Readahead of
    /// an actor is counted for it when it is requested, and on the device when it is done.
    pub(crate) fn others_allowed(&self, own: u64) -> u64 {
        let of_actor = self.evidence.actor.as_ref().map_or(0, |actor| {
            let readahead = self.evidence.readahead_bytes.unwrap_or(0);
            actor.device_read_bytes.unwrap_or(0) / ACTOR_PART + ACTOR_WINDOWS * readahead
        });
        (own as f64 * OTHERS_SHARE) as u64 + OTHERS_BYTES + of_actor
    }

    /// True if the device delivers a significant part of the requested bytes.
    pub(crate) fn device_flows(&self) -> bool {
        self.device_bytes().is_some_and(|read| read > self.evidence.requested_bytes / 100)
    }

    /// True for a replay of several files.
    pub fn has_several_files(&self) -> bool {
        self.cell.conditions.files() > 1
    }

    /// True if the cache cannot hold the span, or an actor fills it too, so that the workload
    /// brought it to the state in which it remains.
    pub(crate) fn reaches_steady_state(&self) -> bool {
        let conditions = &self.cell.conditions;
        let warmed = conditions.cache == CacheState::Warm && !self.is_writing();
        warmed && !conditions.stays_in_memory() && self.cell.depends_on_cache()
    }

    /// CPUs that the threads of the worker can use at once.
    pub(crate) fn cpus_used(&self) -> u64 {
        u64::from(self.cpus().min(self.cell.conditions.threads).max(1))
    }

    /// CPUs that the worker may use.
    pub(crate) fn cpus(&self) -> u32 {
        self.cell.conditions.cpus(self.context.cpus)
    }

    /// Bytes that are read between updates; `None` if nothing is updated.
    pub(crate) fn read_between_bytes(&self) -> Option<u64> {
        let (conditions, asked) = (&self.cell.conditions, self.evidence.requested_bytes);
        conditions.writes().filter(|writes| writes.is_update())?;
        Some(conditions.used_bytes(asked).saturating_sub(asked))
    }

    /// Reads of both phases, or pieces of a scan.
    pub(crate) fn reads(&self) -> u64 {
        calls::reads(self.cell, self.operations())
    }
}
