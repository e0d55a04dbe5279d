//! Offset tables: the accesses that every method of a comparison does, drawn once from the recorded seed.
//!
//! Workers of every language map it as little-endian 64-bit offsets, `reads_per_op` for each operation, and read it front
//! to back ([`TableMemory`]). Thread t of n owns the t-th of n equal parts. What a table holds depends on the seed and on
//! the conditions that shape accesses, never on the method.
//!
//! Where reads are dependent, workers get the offsets hidden behind the data (see [`OffsetTable::chain_dataset`]), and
//! the offsets themselves stay here.
//!
//! **What a table can stand for.** It has two reads for each place of the span, 16 where they are skewed, 2^19 at most,
//! and a part is begun again at its end. What one lap reaches is all that any lap reaches
//! ([`OffsetTable::distinct_places`]): of uniform places 86 % and fewer over 2^18 of them (1 GiB of 4 KiB); by zipf 0.99
//! 93 % of 2^15 places, 57 % of 2^17, 38 % of 2^18, 14 % of 2^20, the popular ones among them. A cache that holds all
//! of those misses nothing in the end, though an endless stream of draws would: so a table stands for such a stream
//! only under caches that hold clearly less.

mod blocks;
mod chain;
mod order;
mod permutation;
mod zipf;

use std::io;

use pagewise_model::random::Random;
use pagewise_model::{CacheState, Conditions, Content, Method, Reads, Skew, Workload};

use blocks::SpanBlocks;
pub use order::{OperationOrder, TableMemory};
use permutation::Permutation;
use zipf::PopularPlaces;

/// Reads in a table at most: 4 MiB of offsets, so that the supervisor stays small with its sums beside them.
const READS_MAX: u64 = 1 << 19;
/// Reads in a table at least, where one may repeat: fewer could be learned by the CPU.
const READS_MIN: u64 = 1 << 16;
/// Large reads need fewer of them: the minimum asks for no more than this.
const MIN_REQUESTED_BYTES: u64 = 4 << 30;

/// Why there is no table for some conditions.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum TableError {
    #[error("{workload} is no workload with an offset table")]
    NoTable { workload: Workload },
    #[error("{what} is 0; every access needs a size, a count and an alignment")]
    Zero { what: &'static str },
    #[error("a span of {span_bytes} bytes is too small for one operation of {op_bytes} bytes")]
    SpanTooSmall { span_bytes: u64, op_bytes: u64 },
    #[error(
        "a span of {span_bytes} bytes has room for {operations} cold operations that do not overlap, and \
            {threads} threads need one each"
    )]
    TooFewBlocks { span_bytes: u64, operations: u64, threads: u32 },
    #[error(
        "an operation of {reads_per_op} reads on each of {threads} threads exceeds the {READS_MAX} reads \
            of a table"
    )]
    TooManyReads { reads_per_op: u32, threads: u32 },
    #[error("zipf repeats places, a cold table has none twice")]
    ColdZipf,
    #[error(
        "a span of {span_bytes} bytes has no room for one block of {block_bytes} bytes, which is a place of zipf"
    )]
    NoPlace { span_bytes: u64, block_bytes: u64 },
    #[error("reads of {read_bytes} bytes cannot be dependent: the offset of the next one is in 8 bytes")]
    ShortLink { read_bytes: u64 },
    #[error("an operation of one read has nothing to depend on; dependent reads need two or more")]
    LoneRead,
    #[error("memory for a table of {reads} offsets: {source}")]
    Memory { reads: u64, source: io::Error },
}

/// The accesses of all threads.
pub struct OffsetTable {
    /// Where reads are, in the order of threads and operations.
    offsets: Vec<u64>,
    /// What workers follow where reads are dependent: offsets hidden behind the data of the reads before. There are none
    /// until the data are known.
    hidden: Option<Vec<u64>>,
    seed: u64,
    shape: Reads,
    content: Content,
    reads: u64,
    reads_per_op: u64,
    threads: u64,
    repeats: bool,
}

impl OffsetTable {
    /// Draws the table for pages of this machine's size.
    ///
    /// With dependent reads it has to be chained before workers can follow it.
    pub fn new(conditions: &Conditions, seed: u64) -> Result<Self, TableError> {
        Self::with_page(conditions, seed, rustix::param::page_size() as u64)
    }

    fn with_page(conditions: &Conditions, seed: u64, page: u64) -> Result<Self, TableError> {
        let workload = conditions.workload();
        let Some(&shape) = conditions.reads() else { return Err(TableError::NoTable { workload }) };
        let accesses = AccessShape { workload, reads: shape, conditions };
        accesses.check()?;
        let mut random = Random::for_purpose(seed, &accesses.purpose());
        let places = Places::new(&accesses, page, &mut random)?;
        let operations = match &places {
            Places::Once(blocks, _) => accesses.cold_operations(blocks)?,
            Places::Uniform { .. } | Places::Popular(_) => accesses.repeating_operations(),
        };
        let reads_per_op = u64::from(shape.reads_per_op);
        let reads = operations * reads_per_op;
        let mut offsets = Vec::with_capacity(reads as usize);
        accesses.draw(operations, &places, &mut random, |offset| offsets.push(offset));
        let repeats = !matches!(places, Places::Once(..));
        let (content, threads) = (conditions.content, u64::from(conditions.threads));
        Ok(Self { offsets, hidden: None, seed, shape, content, reads, reads_per_op, threads, repeats })
    }

    /// What workers follow, in the order of the offsets.
    ///
    /// # Panics
    /// If reads are dependent and the table has not been chained.
    fn entries(&self) -> &[u64] {
        if !self.shape.dependent {
            return &self.offsets;
        }
        self.hidden.as_deref().expect("dependent reads are chained to the data before a worker follows them")
    }

    /// Memory that the table takes.
    pub fn memory_bytes(&self) -> u64 {
        if self.shape.dependent { 16 * self.reads } else { 8 * self.reads }
    }

    /// Offsets that differ from each other: what one lap of all threads reaches.
    pub fn distinct_places(&self) -> u64 {
        let mut offsets = self.offsets().to_vec();
        offsets.sort_unstable();
        offsets.dedup();
        offsets.len() as u64
    }

    /// What the reads of it are like.
    pub fn shape(&self) -> &Reads {
        &self.shape
    }

    /// What a dataset holds for which it was drawn.
    pub fn content(&self) -> Content {
        self.content
    }

    /// Reads in the table.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Operations in the table, all threads.
    pub fn operations(&self) -> u64 {
        self.reads / self.reads_per_op
    }

    /// Operations in the part of each thread.
    pub fn operations_per_thread(&self) -> u64 {
        self.operations() / self.threads
    }

    /// Whether a thread that is through with its part begins it again; a cold one must not.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// All offsets, in the order of threads and operations: where reads are, whether dependent or not.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }
}

/// Where reads (or sequential operations) may begin.
enum Places {
    /// At any aligned place, each alike.
    Uniform { starts: u64, align_bytes: u64 },
    /// In each block once, in random order.
    Once(SpanBlocks, Permutation),
    /// At the start of each block, some more often than others.
    Popular(PopularPlaces),
}

impl Places {
    fn new(accesses: &AccessShape, page: u64, random: &mut Random) -> Result<Self, TableError> {
        let AccessShape { conditions, reads, .. } = accesses;
        let drawn_bytes = accesses.drawn_bytes();
        let align_bytes = reads.align_bytes.0;
        Ok(match (conditions.cache, reads.skew) {
            (CacheState::Cold, _) => {
                let blocks = SpanBlocks::new(conditions.span_bytes.0, drawn_bytes, align_bytes, page);
                let permutation = Permutation::new(blocks.count(), random.next_u64());
                Places::Once(blocks, permutation)
            }
            (_, Skew::Uniform) => {
                let starts = (conditions.span_bytes.0 - drawn_bytes) / align_bytes + 1;
                Places::Uniform { starts, align_bytes }
            }
            (_, Skew::Zipf { theta_thousandths }) => {
                let blocks = SpanBlocks::new(conditions.span_bytes.0, drawn_bytes, align_bytes, page);
                if blocks.count() == 0 {
                    let (span_bytes, block_bytes) = (conditions.span_bytes.0, blocks.block_bytes());
                    return Err(TableError::NoPlace { span_bytes, block_bytes });
                }
                Places::Popular(PopularPlaces::new(blocks, theta_thousandths, random))
            }
        })
    }

    /// Where draw number `index` begins.
    fn draw(&self, index: u64, random: &mut Random) -> u64 {
        match self {
            Places::Uniform { starts, align_bytes } => random.below(*starts) * align_bytes,
            Places::Once(blocks, permutation) => blocks.start(permutation.at(index), random),
            Places::Popular(places) => places.draw(random),
        }
    }
}

/// What shapes the accesses of a table.
struct AccessShape<'a> {
    workload: Workload,
    reads: Reads,
    conditions: &'a Conditions,
}

impl AccessShape<'_> {
    fn check(&self) -> Result<(), TableError> {
        let Reads { read_bytes, reads_per_op, align_bytes, skew, dependent, .. } = self.reads;
        let (threads, span_bytes) = (self.conditions.threads, self.conditions.span_bytes.0);
        let sizes = [
            ("the size of a read", read_bytes.0),
            ("the number of reads in an operation", u64::from(reads_per_op)),
            ("the number of threads", u64::from(threads)),
            ("the alignment", align_bytes.0),
        ];
        if let Some((what, _)) = sizes.iter().find(|(_, value)| *value == 0) {
            return Err(TableError::Zero { what });
        }
        let op_bytes = read_bytes.0.saturating_mul(u64::from(reads_per_op));
        if op_bytes > span_bytes {
            return Err(TableError::SpanTooSmall { span_bytes, op_bytes });
        }
        if u64::from(reads_per_op) * u64::from(threads) > READS_MAX {
            return Err(TableError::TooManyReads { reads_per_op, threads });
        }
        if self.conditions.cache == CacheState::Cold && skew != Skew::Uniform {
            return Err(TableError::ColdZipf);
        }
        if dependent && read_bytes.0 < Method::LINK_BYTES {
            return Err(TableError::ShortLink { read_bytes: read_bytes.0 });
        }
        if dependent && reads_per_op < 2 {
            return Err(TableError::LoneRead);
        }
        Ok(())
    }

    /// Everything that shapes the accesses, and nothing else: descriptor and consumption do not, nor does
    /// dependence, so that dependent and independent reads can be compared.
    fn purpose(&self) -> String {
        let Reads { read_bytes, reads_per_op, align_bytes, skew, .. } = self.reads;
        let Conditions { threads, span_bytes, cache, .. } = self.conditions;
        // Uniform tables are what they were before there was another skew.
        let skew = if skew == Skew::Uniform { String::new() } else { format!(" {skew}") };
        let kind = if *cache == CacheState::Cold { "cold" } else { "repeating" };
        format!(
            "offsets {} {kind} span={span_bytes} {read_bytes}x{reads_per_op} align={align_bytes} \
                threads={threads}{skew}",
            self.workload
        )
    }

    /// Whether one draw places all reads of an operation, one behind the other.
    fn is_sequential(&self) -> bool {
        self.workload == Workload::SequentialRead
    }

    /// The stretch that one draw places: a read, or all reads of an operation.
    fn drawn_bytes(&self) -> u64 {
        if self.is_sequential() { self.reads.op_bytes() } else { self.reads.read_bytes.0 }
    }

    /// Gives `put` the offset of each read in the order of threads and operations.
    fn draw(&self, operations: u64, places: &Places, random: &mut Random, mut put: impl FnMut(u64)) {
        let reads_per_op = u64::from(self.reads.reads_per_op);
        if !self.is_sequential() {
            (0..operations * reads_per_op).for_each(|read| put(places.draw(read, random)));
            return;
        }
        for operation in 0..operations {
            let start = places.draw(operation, random);
            (0..reads_per_op).for_each(|read| put(start + read * self.reads.read_bytes.0));
        }
    }

    /// Operations of a table that is gone through again and again: about two reads for each place of the span, and more
    /// where some places are so rare that two would leave most of them out.
    fn repeating_operations(&self) -> u64 {
        let read_bytes = self.reads.read_bytes.0;
        let per_place = if self.reads.skew == Skew::Uniform { 2 } else { 16 };
        let reads_min = READS_MIN.min(MIN_REQUESTED_BYTES.div_ceil(read_bytes));
        let reads = self.conditions.span_bytes.0.saturating_mul(per_place) / read_bytes;
        self.whole_operations(reads.clamp(reads_min, READS_MAX) / u64::from(self.reads.reads_per_op))
    }

    /// Operations of a table in which no block comes twice.
    fn cold_operations(&self, blocks: &SpanBlocks) -> Result<u64, TableError> {
        let reads_per_op = u64::from(self.reads.reads_per_op);
        let operations = if self.is_sequential() { blocks.count() } else { blocks.count() / reads_per_op };
        let Conditions { threads, span_bytes, .. } = *self.conditions;
        if operations < u64::from(threads) {
            return Err(TableError::TooFewBlocks { span_bytes: span_bytes.0, operations, threads });
        }
        Ok(self.whole_operations(operations.min(READS_MAX / reads_per_op)))
    }

    /// The same number of operations for every thread, and at least one.
    fn whole_operations(&self, operations: u64) -> u64 {
        let threads = u64::from(self.conditions.threads);
        (operations / threads).max(1) * threads
    }
}

#[cfg(test)]
mod tests;
