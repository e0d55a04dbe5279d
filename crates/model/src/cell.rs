//! Cells: one workload, one method, one set of conditions.

use serde::{Deserialize, Serialize};

use crate::host_settings::HostSettings;
use crate::method::{Access, Method, MethodOption, Worker};
use crate::ring::RecordRing;
use crate::units::Bytes;
use crate::words::words;
use crate::work::{Consume, Reads, Work, Workload, Writes};

words! {
    /// What the page cache holds of the span when a sample starts. A file that is written is new where the cache is cold;
    /// where it is warm it was written once before, is in the page cache, and nothing of it is dirty.
    CacheState, "cache state" {
        /// Nothing, proven.
        Cold = "cold",
        /// Everything, proven.
        Warm = "warm",
        /// Whatever is there; recorded.
        AsIs = "as-is",
        /// What is left once the whole span was read, front to back, into an empty cache: the warm-up of published studies. What
        /// that is gets recorded.
        ReadOnce = "read-once",
        /// Nothing, proven; then the workload goes on until the cache is as full as it gets. A series, whose figure
        /// is the time that this takes.
        ColdStart = "cold-start",
    }
}

words! {
    /// Who owns the open file and the mapping; readahead state is per descriptor.
    Descriptor, "descriptor" {
        /// All threads use one.
        Shared = "shared",
        /// Each thread has its own.
        PerThread = "per-thread",
    }
}

words! {
    /// Why a cell is in a run.
    Role, "role" {
        /// A method to be judged.
        Measured = "measured",
        /// The same method again: what it differs by is the run's own noise.
        Control = "control",
        /// The most that the device or the memory can do.
        Ceiling = "ceiling",
    }
}

words! {
    /// What a dataset holds.
    Content, "content" {
        /// Words that nothing compresses.
        Random = "random",
        /// Lines of text with seeded lengths, 64 bytes on average.
        Text = "text",
    }
}

impl Content {
    fn is_random(&self) -> bool {
        *self == Content::Random
    }
}

/// Everything that must be equal for two methods to be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conditions {
    /// Which accesses.
    #[serde(flatten)]
    pub work: Work,
    /// Threads that perform them.
    pub threads: u32,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// The part of it, from its start, in which accesses fall.
    pub span_bytes: Bytes,
    /// What the file holds before it is accessed; a file that is written holds what the workload writes.
    #[serde(default = "random", skip_serializing_if = "Content::is_random")]
    pub content: Content,
    /// Page cache at the start.
    pub cache: CacheState,
    /// One descriptor and mapping, or one each.
    pub descriptor: Descriptor,
    /// What the machine is set to.
    #[serde(default, alias = "surroundings", skip_serializing_if = "HostSettings::is_untouched")]
    pub host_settings: HostSettings,
}

fn random() -> Content {
    Content::Random
}

/// What the kernel keeps of a memory limit for itself: the index of the page cache takes a node of 576 bytes for 64
/// pages, and reclaim runs a little before the limit is reached.
const KERNEL_SHARE: u64 = 256;
/// What a thread takes, its buffer aside.
const THREAD_BYTES: u64 = 64 << 10;
const CAPACITY_GRAIN: u64 = 1 << 20;
/// A span of at most this many tenths of the capacity is kept whole: near it reclaim already bites.
const FITTING_TENTHS: u64 = 9;

impl Conditions {
    /// Which accesses, as a word.
    pub fn workload(&self) -> Workload {
        self.work.workload()
    }

    /// The reads, where the workload consists of reads by the offset table.
    pub fn reads(&self) -> Option<&Reads> {
        self.work.reads()
    }

    /// The records, where the workload writes.
    pub fn writes(&self) -> Option<Writes> {
        self.work.writes()
    }

    /// What is done with the bytes, where they are read.
    pub fn consume(&self) -> Option<Consume> {
        self.work.consume()
    }

    /// Bytes that one operation asks for.
    pub fn op_bytes(&self) -> u64 {
        match &self.work {
            Work::RandomRead(reads) | Work::SequentialRead(reads) => reads.op_bytes(),
            Work::Scan(_) => self.span_bytes.0,
            Work::Append(append) => append.record_bytes.0,
            Work::Fill(fill) => fill.block_bytes.0,
        }
    }

    /// How many operations a sample does, where that is fixed: the whole file once, or so many laps of the ring.
    pub fn fixed_operations(&self) -> Option<u64> {
        match &self.work {
            Work::RandomRead(_) | Work::SequentialRead(_) => None,
            Work::Scan(_) => Some(1),
            Work::Append(_) | Work::Fill(_) => self.ring().map(|ring| ring.records()),
        }
    }

    /// Where records come to lie, where the workload writes.
    pub fn ring(&self) -> Option<RecordRing> {
        let writes = self.writes()?;
        Some(RecordRing::new(self.file_bytes.0, writes.record_bytes.0, u64::from(writes.laps)))
    }

    /// Page cache that fits under the memory limit beside what worker and kernel take; `None` without a limit, 0 where
    /// nothing is left. It is what sizes are multiples of; what a sample really had stands in its evidence.
    pub fn cache_capacity(&self) -> Option<Bytes> {
        let limit = self.host_settings.memory_limit_bytes?.0;
        let threads =
            u64::from(self.threads).saturating_mul(self.work.buffer_bytes().saturating_add(THREAD_BYTES));
        let worker = self.host_settings.worker_bytes.unwrap_or(Worker::Native.own_bytes());
        let left =
            limit.saturating_sub(worker.0.saturating_add(limit / KERNEL_SHARE)).saturating_sub(threads);
        // In whole MiB, so that a thread more does not make other sizes of the data.
        Some(Bytes(if left >= CAPACITY_GRAIN { left / CAPACITY_GRAIN * CAPACITY_GRAIN } else { left }))
    }

    /// Whether the whole span can stay in the page cache. Without a limit it can, as far as the machine's memory
    /// goes; above it, a cache is as warm as it gets once the workload has run for a while.
    pub fn fits_memory(&self) -> bool {
        self.cache_capacity()
            .is_none_or(|capacity| self.span_bytes.0 <= (capacity.0 / 10).saturating_mul(FITTING_TENTHS))
    }

    /// The most that a cold sample may bring into the page cache: a quarter of the span, because a file
    /// that fills up as it is measured is no longer cold. A scan meets every page once.
    pub fn cold_budget_bytes(&self) -> u64 {
        match self.work {
            Work::Scan(_) => self.span_bytes.0,
            _ => self.span_bytes.0 / 4,
        }
    }
}

/// One workload, one method, one set of conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Why it is in the run.
    pub role: Role,
    /// The way to read.
    pub method: Method,
    /// What surrounds it.
    pub conditions: Conditions,
}

impl Cell {
    /// A name that is unique in a run, made of everything that defines the cell.
    pub fn id(&self) -> String {
        let Conditions { work, threads, file_bytes, span_bytes, content, cache, descriptor, host_settings } =
            &self.conditions;
        let (workload, method) = (work.workload(), &self.method);
        let content = if *content == work.usual_content() { String::new() } else { format!(",{content}") };
        let role = match self.role {
            Role::Measured => "",
            Role::Control => "/control",
            Role::Ceiling => "/ceiling",
        };
        format!(
            "{workload}/{file_bytes},span={span_bytes}{content}/{work}/{cache}{host_settings}/{threads}t,{descriptor}/{method}{role}"
        )
    }

    /// How its bytes move, as the kernel sees it. A way that reads a stream writes one where the workload writes.
    pub fn access(&self) -> Access {
        match self.method.access() {
            Access::Read if !self.conditions.workload().is_reading() => Access::Write,
            access => access,
        }
    }

    /// Whether bytes are copied between program and page cache, mapping or memory by the CPU.
    pub fn copies(&self) -> bool {
        !self.method.is_direct() && !self.method.has(MethodOption::InPlace)
    }

    /// Whether the sample must find the page cache empty, full, or as it happens to be. A direct read and
    /// a copy from memory do not look at it.
    pub fn depends_on_cache(&self) -> bool {
        !self.method.is_direct() && self.method.access() != Access::Anonymous
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
            Err("unknown cache state 'hot'; one of cold, warm, as-is, read-once, cold-start".to_string())
        );
    }
}
