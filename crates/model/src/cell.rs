//! Cells: one workload, one method, one set of conditions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::checksum::Consumption;
use crate::method::{Access, Method, MethodOption};
use crate::surroundings::{Skew, Surroundings};
use crate::units::Bytes;

/// Defines an enum of plain words: the same text in plans, run files and tables.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The word in plans, run files and tables.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $name::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| {
                    let known: Vec<_> = $name::ALL.iter().map(|value| value.name()).collect();
                    format!("unknown {} '{text}'; one of {}", $what, known.join(", "))
                })
            }
        }
    };
}

words! {
    /// Which accesses, in which order.
    Workload, "workload" {
        /// Reads at random offsets.
        RandomRead = "random-read",
        /// One random start for each operation, then contiguous reads.
        SequentialRead = "sequential-read",
    }
}

words! {
    /// What the page cache holds of the span when a sample starts.
    CacheState, "cache state" {
        /// Nothing, proven.
        Cold = "cold",
        /// Everything, proven.
        Warm = "warm",
        /// Whatever is there; recorded.
        AsIs = "as-is",
        /// Nothing, proven; then the workload goes on until the cache is as full as it gets. A series, whose figure
        /// is the time that this takes.
        ColdStart = "cold-start",
    }
}

words! {
    /// What is done with the bytes of a read.
    Consume, "consumption" {
        /// One word of each page.
        Touch = "touch",
        /// All bytes.
        Sum = "sum",
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

/// Everything that must be equal for two methods to be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conditions {
    /// Which accesses.
    pub workload: Workload,
    /// Threads that perform them.
    pub threads: u32,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// The part of it, from its start, in which reads fall.
    pub span_bytes: Bytes,
    /// Page cache at the start.
    pub cache: CacheState,
    /// One descriptor and mapping, or one each.
    pub descriptor: Descriptor,
    /// Size of one read.
    pub read_bytes: Bytes,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// Offsets are multiples of this.
    pub align_bytes: Bytes,
    /// How offsets spread over the span.
    #[serde(default)]
    pub skew: Skew,
    /// Whether each offset within an operation follows from the data of the read before it.
    #[serde(default)]
    pub dependent: bool,
    /// What is done with the bytes.
    pub consume: Consume,
    /// What the machine is set to.
    #[serde(default, skip_serializing_if = "Surroundings::is_untouched")]
    pub surroundings: Surroundings,
}

/// What the kernel keeps of a memory limit for itself: the index of the page cache takes a node of 576 bytes for 64
/// pages, and reclaim runs a little before the limit is reached.
const KERNEL_SHARE: u64 = 256;
/// What a native worker takes: its heap, stacks, the kernel's structures for it.
const WORKER_BYTES: u64 = 2 << 20;
/// The same for each thread, its buffer aside.
const THREAD_BYTES: u64 = 64 << 10;
const CAPACITY_GRAIN: u64 = 1 << 20;
/// A span of at most this many tenths of the capacity is kept whole: near it reclaim already bites.
const FITTING_TENTHS: u64 = 9;

impl Conditions {
    /// Bytes that one operation asks for.
    pub fn op_bytes(&self) -> u64 {
        self.read_bytes.0 * u64::from(self.reads_per_op)
    }

    /// How the bytes are consumed on a machine with pages of `page_bytes`.
    pub fn consumption(&self, page_bytes: u64) -> Consumption {
        Consumption::new(self.consume, page_bytes as usize, self.align_bytes.0)
    }

    /// Page cache that fits under the memory limit beside what worker and kernel take; `None` without a limit, 0 where
    /// nothing is left. It is what sizes are multiples of; what a sample really had stands in its evidence.
    pub fn cache_capacity(&self) -> Option<Bytes> {
        let limit = self.surroundings.memory_limit_bytes?.0;
        let threads = u64::from(self.threads).saturating_mul(self.read_bytes.0 + THREAD_BYTES);
        let left = limit.saturating_sub(WORKER_BYTES + limit / KERNEL_SHARE).saturating_sub(threads);
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
    /// that fills up as it is measured is no longer cold.
    pub fn cold_budget_bytes(&self) -> u64 {
        self.span_bytes.0 / 4
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
        let Conditions {
            workload,
            threads,
            file_bytes,
            span_bytes,
            cache,
            descriptor,
            read_bytes,
            reads_per_op,
            align_bytes,
            skew,
            dependent,
            consume,
            surroundings,
        } = &self.conditions;
        let skew = if *skew == Skew::Uniform { String::new() } else { format!(",{skew}") };
        let dependent = if *dependent { ",dependent" } else { "" };
        format!(
            "{workload}/{file_bytes},span={span_bytes}/{read_bytes}x{reads_per_op},align={align_bytes},{consume}{skew}{dependent}/{cache}{surroundings}/{threads}t,{descriptor}/{}{}",
            self.method,
            match self.role {
                Role::Measured => "",
                Role::Control => "/control",
                Role::Ceiling => "/ceiling",
            }
        )
    }

    /// Whether reads are copied out of page cache, mapping or memory by the CPU.
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
            Err("unknown cache state 'hot'; one of cold, warm, as-is, cold-start".to_string())
        );
    }
}
