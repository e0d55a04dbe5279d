//! Cells: one workload, one method, one set of conditions.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::checksum::Consume;
use crate::content::Content;
use crate::host_settings::HostSettings;
use crate::method::{Access, Method, MethodOption, Worker};
use crate::rate::{RateSchedule, ScheduledRate};
use crate::ring::RecordRing;
use crate::sync::{Sync, SyncCall};
use crate::units::Bytes;
use crate::words::words;
use crate::work::{FileExtent, Reads, Work, Workload, Writes};

words! {
    /// State of the span in the page cache when a sample starts. With a cold cache, a file for
    /// records is new, and one to update has left the cache. With a warm cache it was written once
    /// before, is in the page cache, and has no dirty pages.
    CacheState, "cache state" {
        /// Nothing is cached; verified.
        Cold = "cold",
        /// The whole span is cached; verified.
        Warm = "warm",
        /// A file to update is cached in folios of one page, as after page faults or reads under
        /// POSIX_FADV_RANDOM; verified.
        WarmSmall = "warm-small",
        /// Left as found; only recorded.
        AsIs = "as-is",
        /// The whole span was read once, front to back, into an empty cache: the warm-up of
        /// published studies. The resulting state is recorded.
        ReadOnce = "read-once",
        /// The pages of a file whose trace is replayed are cached that were when its recording
        /// began, and no others; verified.
        Recorded = "recorded",
        /// Nothing is cached, verified; then the workload runs until the cache stops filling. The
        /// sample is a series, and its figure is the time that this takes.
        ColdStart = "cold-start",
    }
}

impl CacheState {
    /// True if the whole span is cached, in folios of any size.
    pub const fn is_warm(self) -> bool {
        matches!(self, CacheState::Warm | CacheState::WarmSmall)
    }
}

words! {
    /// Ownership of the open file and the mapping; readahead state is per descriptor.
    Descriptor, "descriptor" {
        /// One for all threads.
        Shared = "shared",
        /// One for each thread.
        PerThread = "per-thread",
    }
}

words! {
    /// Reason for a cell to be in a run.
    Role, "role" {
        /// A method to be judged.
        Measured = "measured",
        /// A method for the second time: the difference between the two is the run's own noise.
        Control = "control",
        /// The most that the device or the memory can do.
        Ceiling = "ceiling",
    }
}

/// All conditions that must be equal for two methods to be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Conditions {
    /// Accesses and their order.
    #[serde(flatten)]
    pub work: Work,
    /// Threads that perform them.
    pub threads: u32,
    /// True if the plan asks for a thread per CPU, which are so many on this machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thread_per_cpu: bool,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// The accessed part of the file, from its start.
    pub span_bytes: Bytes,
    /// Content of the file before it is accessed; a file that is written holds what the workload
    /// writes.
    #[serde(default = "random", skip_serializing_if = "Content::is_random")]
    pub content: Content,
    /// Page cache at the start.
    pub cache: CacheState,
    /// One descriptor and mapping, or one each.
    pub descriptor: Descriptor,
    /// Reads, records or updates per second at which operations are due; `None`: each as soon as
    /// the one before it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ScheduledRate>,
    /// Another program that is at work meanwhile, under the same memory limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Actor>,
    /// Settings of the machine.
    #[serde(default, skip_serializing_if = "HostSettings::is_untouched")]
    pub host_settings: HostSettings,
}

fn random() -> Content {
    Content::Random
}

/// Part of a memory limit that the kernel uses itself, as a divisor. The index of the page cache
/// takes a node of 576 bytes for 64 pages, and reclaim runs a little before the limit is reached.
const KERNEL_SHARE: u64 = 256;
/// Memory of a thread without its buffer.
const THREAD_BYTES: u64 = 64 << 10;
const CAPACITY_GRAIN: u64 = 1 << 20;
/// A span of at most this many tenths of the capacity stays in memory; closer to the capacity,
/// reclaim already sets in.
const FITTING_TENTHS: u64 = 9;

impl Conditions {
    /// `work` by one thread on a whole file of random bytes, with nothing set.
    pub fn of(work: Work, file_bytes: Bytes) -> Self {
        Self {
            work,
            threads: 1,
            thread_per_cpu: false,
            file_bytes,
            span_bytes: file_bytes,
            content: Content::Random,
            cache: CacheState::AsIs,
            descriptor: Descriptor::Shared,
            rate: None,
            beside: None,
            host_settings: HostSettings::default(),
        }
    }

    /// The part of the file that is accessed.
    pub fn extent(&self) -> FileExtent {
        FileExtent { file_bytes: self.file_bytes, span_bytes: self.span_bytes }
    }

    /// The workload's name.
    pub fn workload(&self) -> Workload {
        self.work.workload()
    }

    /// CPUs that the threads may use on a host with `host_cpus`.
    pub fn cpus(&self, host_cpus: u32) -> u32 {
        let set = self.host_settings.cpus.as_ref().map(|cpus| cpus.numbers().len() as u32);
        set.map_or(host_cpus, |set| set.min(host_cpus)).max(1)
    }

    /// The reads, or `None` if the workload does not read by the offset table.
    pub fn reads(&self) -> Option<&Reads> {
        self.work.reads()
    }

    /// Reads in one operation; 1 of other work.
    pub fn reads_per_op(&self) -> u32 {
        self.reads().map_or(1, |reads| reads.reads_per_op)
    }

    /// The records, or `None` if the workload does not write.
    pub fn writes(&self) -> Option<Writes> {
        self.work.writes()
    }

    /// The consumption of the bytes, or `None` if none are read.
    pub fn consume(&self) -> Option<Consume> {
        self.work.consume()
    }

    /// True if its work is done once, so that methods are ranked by the total of set-up, measured
    /// region and tear-down. Records that are committed go on as long as the sample, and methods
    /// are ranked by their rate.
    pub fn is_one_shot(&self) -> bool {
        self.workload().is_one_shot() && !self.is_committing()
    }

    /// True if it writes a file that was made for it, of which nothing is stored before.
    pub fn makes_file(&self) -> bool {
        self.cache == CacheState::Cold && self.writes().is_some_and(|writes| !writes.is_update())
    }

    /// True if it updates a file that is in the page cache.
    pub fn updates_cached(&self) -> bool {
        self.cache.is_warm() && self.writes().is_some_and(|writes| writes.is_update())
    }

    /// True if what it writes is synced within the measured region.
    pub fn measures_syncs(&self) -> bool {
        self.writes().is_some_and(|writes| writes.sync.is_measured())
    }

    /// True if each record is on the device before its thread writes the next one.
    pub fn is_committing(&self) -> bool {
        self.writes().is_some_and(|writes| writes.sync == Sync::Commit)
    }

    /// The moments at which operations are due; `None` without a rate.
    pub fn schedule(&self) -> Option<RateSchedule> {
        Some(RateSchedule { rate: self.rate?, reads_per_op: self.reads_per_op(), threads: self.threads })
    }

    /// The rate as text, exact: `20k reads/s`.
    pub fn rate_text(&self) -> Option<String> {
        let rate = self.rate?.to_string();
        let unit = match self.workload() {
            Workload::Append => "records",
            Workload::Update => "updates",
            _ => "reads",
        };
        Some(format!("{} {unit}/s", rate.trim_end_matches("/s")))
    }

    /// Bytes that one operation asks for; on average where operations differ.
    pub fn op_bytes(&self) -> u64 {
        self.work.parameters().op_bytes(self.extent())
    }

    /// Bytes that so many operations ask for: exactly, unless they are a part of work whose
    /// operations differ.
    pub fn bytes_of(&self, operations: u64) -> u64 {
        self.work.parameters().bytes_of(self.extent(), operations)
    }

    /// Bytes that are used where so many were asked for: blocks that are read between updates come
    /// on top of those that are written.
    pub fn used_bytes(&self, asked: u64) -> u64 {
        let reads_each = self.writes().map_or(0, |writes| u64::from(writes.reads_each));
        asked.saturating_mul(1 + reads_each)
    }

    /// Bytes of an operation, on average where operations differ.
    pub fn mean_op_bytes(&self) -> f64 {
        let all = self.fixed_operations().filter(|all| *all > 0);
        all.map_or(self.op_bytes() as f64, |all| self.bytes_of(all) as f64 / all as f64)
    }

    /// Operations of a sample if their number is fixed: the whole file once, or the given number of
    /// passes over the ring. Commits end with the sample, or with the last pass.
    pub fn fixed_operations(&self) -> Option<u64> {
        self.work.parameters().fixed_operations(self.extent())
    }

    /// Files whose reads are replayed together; 1 of all other work.
    pub fn files(&self) -> u32 {
        match self.work {
            Work::Replay(replay) => replay.files,
            _ => 1,
        }
    }

    /// Sum of the gaps between the reads of a replay, in which it waits as its program did; 0 if it
    /// keeps none.
    pub fn gaps_ns(&self) -> u64 {
        self.work.parameters().gaps_ns()
    }

    /// True of a replay that waits in gaps.
    pub fn keeps_gaps(&self) -> bool {
        self.gaps_ns() > 0
    }

    /// Positions of records in the file, or `None` if the workload does not write.
    pub fn ring(&self) -> Option<RecordRing> {
        Some(self.writes()?.ring(self.file_bytes))
    }

    /// Page cache that fits under the memory limit next to the worker and the kernel; `None`
    /// without a limit, 0 if nothing is left. Base for relative sizes (`--span 4x`). The value
    /// actually available to a sample is recorded in its evidence.
    pub fn cache_capacity(&self) -> Option<Bytes> {
        let limit = self.host_settings.memory_limit_bytes?.0;
        let threads = u64::from(self.threads)
            .saturating_mul(self.work.parameters().buffer_bytes().saturating_add(THREAD_BYTES));
        let worker = self.host_settings.worker_bytes.unwrap_or(Worker::Native.own_bytes());
        let left =
            limit.saturating_sub(worker.0.saturating_add(limit / KERNEL_SHARE)).saturating_sub(threads);
        let left = left.saturating_sub(self.work.parameters().ballast_bytes());
        // Rounded to whole MiB, so that one more thread does not change the sizes of the data.
        Some(Bytes(if left >= CAPACITY_GRAIN { left / CAPACITY_GRAIN * CAPACITY_GRAIN } else { left }))
    }

    /// True if the whole span can stay in the page cache. Without a limit it can, as far as the
    /// machine's memory goes. Above the limit, the cache is as warm as it gets once the workload
    /// has run for a while.
    pub fn fits_memory(&self) -> bool {
        self.cache_capacity()
            .is_none_or(|capacity| self.span_bytes.0 <= (capacity.0 / 10).saturating_mul(FITTING_TENTHS))
    }

    /// True if the whole span is in the page cache from the beginning of a sample to its end: it
    /// fits, and no other program fills the same cache.
    pub fn stays_in_memory(&self) -> bool {
        self.fits_memory() && !self.shares_cache()
    }

    /// True if another program fills the cache under the same memory limit.
    pub fn shares_cache(&self) -> bool {
        self.beside.is_some() && self.host_settings.memory_limit_bytes.is_some()
    }

    /// True if the file of the actor leaves the page cache before a sample. Without a limit it does
    /// not matter who brought in what both read.
    pub fn drops_file_of_actor(&self) -> bool {
        self.beside.as_ref().is_some_and(|actor| !actor.reads_same_file() || self.shares_cache())
    }

    /// Bytes that the actor reads before the measured region, so that the cache is what both
    /// programs make of it; 0 where that does not matter.
    pub fn actor_bytes_before(&self) -> Bytes {
        let limit = self.host_settings.memory_limit_bytes.filter(|_| self.shares_cache());
        limit.filter(|_| self.cache == CacheState::Warm).map_or(Bytes(0), Actor::bytes_to_fill)
    }

    /// Bytes that a cold sample may bring into the page cache.
    pub fn cold_budget_bytes(&self) -> u64 {
        self.span_bytes.0 / self.work.parameters().cold_divisor()
    }

    /// The part of `bound`, of what a cold sample may do in all, that is for its measured region:
    /// under a device cap the reads before it take as much.
    pub fn measured_share(&self, bound: u64) -> u64 {
        let is_capped = self.host_settings.device_cap.is_some();
        if is_capped && self.cache == CacheState::Cold { bound / 2 } else { bound }
    }
}

/// One workload, one method, one set of conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Reason for it to be in the run.
    pub role: Role,
    /// The access method.
    pub method: Method,
    /// The conditions it is measured under.
    pub conditions: Conditions,
}

impl Cell {
    /// Identifier that is unique in a run, made of everything that defines the cell.
    pub fn id(&self) -> String {
        let Conditions {
            work,
            threads,
            thread_per_cpu,
            file_bytes,
            span_bytes,
            content,
            cache,
            descriptor,
            rate,
            beside,
            host_settings,
        } = &self.conditions;
        let per_cpu = if *thread_per_cpu { "-per-cpu" } else { "" };
        let (workload, method) = (work.workload(), &self.method);
        let content = if *content == work.workload().facts().usual_content {
            String::new()
        } else {
            format!(",{content}")
        };
        let rate = rate.map_or_else(String::new, |rate| format!(",rate={rate}"));
        let beside = beside.as_ref().map_or_else(String::new, |actor| format!("/beside={actor}"));
        let role = match self.role {
            Role::Measured => "",
            Role::Control => "/control",
            Role::Ceiling => "/ceiling",
        };
        format!(
            "{workload}/{file_bytes},span={span_bytes}{content}/{work}/{cache}{host_settings}/{threads}t{per_cpu},{descriptor}{rate}{beside}/{method}{role}"
        )
    }

    /// The same cell with no actor beside it.
    pub fn without_actor(&self) -> Self {
        Self { conditions: Conditions { beside: None, ..self.conditions.clone() }, ..self.clone() }
    }

    /// The kind of access that the kernel sees in this workload.
    pub fn access(&self) -> Access {
        self.method.access().in_workload(self.conditions.workload())
    }

    /// The call that syncs what it writes; `None` without syncs.
    pub fn sync_call(&self) -> Option<SyncCall> {
        let writes = self.conditions.writes().filter(|writes| writes.sync != Sync::None)?;
        Some(writes.sync_call.unwrap_or_else(|| self.method.usual_sync()))
    }

    /// True if the CPU copies bytes between the program and the page cache, a mapping or memory.
    pub fn copies(&self) -> bool {
        !self.method.is_direct() && !self.method.has(MethodOption::InPlace)
    }

    /// True if the state of the page cache matters to the sample. Direct reads and copies from
    /// memory bypass it.
    pub fn depends_on_cache(&self) -> bool {
        !self.method.is_direct() && self.method.access() != Access::Anonymous
    }

    /// True if every byte it reads is in memory before its sample.
    pub fn is_in_memory(&self) -> bool {
        let is_cached = self.conditions.cache == CacheState::Warm && self.conditions.stays_in_memory();
        self.method.access() == Access::Anonymous || is_cached && !self.method.is_direct()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_parse_back_and_name_the_known_ones() {
        for cache in CacheState::ALL {
            assert_eq!(cache.name().parse::<CacheState>().as_ref(), Ok(cache));
        }
        assert_eq!(
            "hot".parse::<CacheState>(),
            Err("unknown cache state 'hot': write one of cold, warm, warm-small, as-is, read-once, recorded, cold-start"
                .to_string())
        );
    }
}
