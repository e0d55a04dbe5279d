//! Offset tables: the accesses of every method of a comparison, drawn once from the recorded seed.
//!
//! Workers of every language map it as little-endian 64-bit offsets, `reads_per_op` for each
//! operation, and read it front to back ([`crate::TableMemory`]). Thread t of n owns the t-th of n
//! equal parts. A table depends on the seed and on the conditions that determine accesses, never on
//! the method.
//!
//! If reads are dependent, workers get encoded offsets (see [`OffsetTable::chain_dataset`]), and
//! the offsets themselves stay here.
//!
//! **Limits of a table.** It has two reads for each position of the span, 16 if they are skewed, or
//! as many as a sample can do (a part is hidden from workers in its first pass only), 2^19 at most,
//! and a part is repeated at its end. One pass reaches the same positions as all passes:
//! with uniform reads 86 % of the positions, and fewer above 2^18 of them (1 GiB of 4 KiB); by zipf
//! 0.99 93 % of 2^15 positions, 57 % of 2^17, 38 % of 2^18, 14 % of 2^20, including the popular
//! ones. A cache that holds all of those eventually has no misses, although an endless stream of
//! draws would have some. A table therefore represents such a stream only for caches that hold
//! clearly less.

mod blocks;
mod chain;
mod order;
mod permutation;
mod zipf;

use std::io;

use pagewise_model::checksum::Consumption;
use pagewise_model::random::Random;
use pagewise_model::{CacheState, Conditions, Content, Method, Reads, Skew, Workload};

use blocks::SpanBlocks;
pub use order::OperationOrder;
pub use permutation::Permutation;
use zipf::PopularOffsets;

/// Maximum reads in a table: 4 MiB of offsets, so that the supervisor stays small, including its
/// sums.
const READS_MAX: u64 = 1 << 19;
/// Minimum reads in a table that may repeat: fewer could be learned by the CPU.
const READS_MIN: u64 = 1 << 16;
/// The most reads that a thread does in a microsecond: a copy of a page from a cache of the CPU
/// takes 250 ns.
const READS_PER_US: u64 = 4;
/// Large reads need fewer: the minimum requests no more bytes than this.
const MIN_REQUESTED_BYTES: u64 = 4 << 30;

/// Reason that there is no table for some conditions.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum TableError {
    #[error("{workload} is not a workload with an offset table")]
    NoTable { workload: Workload },
    #[error("{what} is 0: every access needs a size, a count and an alignment")]
    Zero { what: &'static str },
    #[error("a span of {span_bytes} bytes is too small for one operation of {op_bytes} bytes")]
    SpanTooSmall { span_bytes: u64, op_bytes: u64 },
    #[error(
        "a span of {span_bytes} bytes has space for {operations} cold operations that do not overlap: {threads} threads need one each"
    )]
    TooFewBlocks { span_bytes: u64, operations: u64, threads: u32 },
    #[error(
        "an operation of {reads_per_op} reads on each of {threads} threads exceeds the {READS_MAX} reads \
            of a table"
    )]
    TooManyReads { reads_per_op: u32, threads: u32 },
    #[error("zipf repeats positions: a cold table has each position once")]
    ColdZipf,
    #[error(
        "a span of {span_bytes} bytes has no space for one block of {block_bytes} bytes, which is a position of zipf"
    )]
    NoBlock { span_bytes: u64, block_bytes: u64 },
    #[error("reads of {read_bytes} bytes cannot be dependent: the offset of the next one is in 8 bytes")]
    ShortLink { read_bytes: u64 },
    #[error("an operation of one read has nothing to depend on: dependent reads need two or more")]
    LoneRead,
    #[error("memory for a table of {reads} offsets: {source}")]
    Memory { reads: u64, source: io::Error },
}

/// The accesses of all threads.
pub struct OffsetTable {
    /// OffsetDistribution of reads, in the order of threads and operations.
    offsets: Vec<u64>,
    /// Entries that workers follow if reads are dependent: offsets encoded with the data of the
    /// preceding reads. `None` until the data are known.
    hidden: Option<Vec<u64>>,
    seed: u64,
    shape: Reads,
    content: Content,
    reads: u64,
    reads_per_op: u64,
    threads: u64,
    repeats: bool,
    touch_at: u64,
}

impl OffsetTable {
    /// Draw the table for this machine's page size.
    ///
    /// With dependent reads it must be chained before workers can follow it.
    pub fn new(conditions: &Conditions, seed: u64) -> Result<Self, TableError> {
        Self::lasting(conditions, seed, 0)
    }

    /// A table for samples of so many ns: no part is repeated within one, unless the table would
    /// be too large.
    pub fn lasting(conditions: &Conditions, seed: u64, sample_ns: u64) -> Result<Self, TableError> {
        let reads = (sample_ns / 1000).saturating_mul(READS_PER_US * u64::from(conditions.threads));
        Self::drawn(conditions, seed, rustix::param::page_size() as u64, Repeating::AtLeast { reads })
    }

    /// Draws one whose parts have so many operations that may repeat, fewer than any worker is
    /// measured with.
    pub fn with_part(conditions: &Conditions, seed: u64, part: u64) -> Result<Self, TableError> {
        let page = rustix::param::page_size() as u64;
        let operations = part * u64::from(conditions.threads);
        Self::drawn(conditions, seed, page, Repeating::Exactly { operations })
    }

    /// A table of one thread that reads the span in its order, again and again, an operation for
    /// each read.
    pub fn in_order(conditions: &Conditions, seed: u64) -> Result<Self, TableError> {
        let workload = conditions.workload();
        let Some(&shape) = conditions.reads() else { return Err(TableError::NoTable { workload }) };
        let accesses = AccessShape { workload, reads: Reads { reads_per_op: 1, ..shape }, conditions };
        accesses.check()?;
        let read_bytes = shape.read_bytes.0;
        let offsets = (0..conditions.span_bytes.0 / read_bytes).map(|read| read * read_bytes).collect();
        Ok(accesses.table(offsets, seed, rustix::param::page_size() as u64, true))
    }

    #[cfg(test)]
    fn with_page(conditions: &Conditions, seed: u64, page: u64) -> Result<Self, TableError> {
        Self::drawn(conditions, seed, page, Repeating::AtLeast { reads: 0 })
    }

    fn drawn(
        conditions: &Conditions,
        seed: u64,
        page: u64,
        repeating: Repeating,
    ) -> Result<Self, TableError> {
        let workload = conditions.workload();
        let Some(&shape) = conditions.reads() else { return Err(TableError::NoTable { workload }) };
        let accesses = AccessShape { workload, reads: shape, conditions };
        accesses.check()?;
        let mut random = Random::for_purpose(seed, &accesses.purpose());
        let distribution = OffsetDistribution::new(&accesses, page, &mut random)?;
        let operations = match &distribution {
            OffsetDistribution::Once(blocks, _) => accesses.cold_operations(blocks)?,
            OffsetDistribution::Uniform { .. } | OffsetDistribution::Popular(_) => match repeating {
                Repeating::Exactly { operations } => operations,
                Repeating::AtLeast { reads } => accesses.repeating_operations(reads),
            },
        };
        let reads_per_op = u64::from(shape.reads_per_op);
        let reads = operations * reads_per_op;
        let mut offsets = Vec::with_capacity(reads as usize);
        accesses.draw(operations, &distribution, &mut random, |offset| offsets.push(offset));
        let repeats = !matches!(distribution, OffsetDistribution::Once(..));
        Ok(accesses.table(offsets, seed, page, repeats))
    }

    /// Position in a page of the word that `touch` takes of it. A worker learns it with `go`: if it
    /// knew it before, it could keep the words that count instead of the bytes of the file.
    pub fn touch_at(&self) -> u64 {
        self.touch_at
    }

    /// Consumption of the bytes of its reads on a machine with pages of `page_bytes`.
    pub fn consumption(&self, page_bytes: u64) -> Consumption {
        self.shape.consumption(page_bytes).touching(self.touch_at)
    }

    /// Entries that workers follow, in the order of the offsets.
    ///
    /// # Panics
    /// If reads are dependent and the table has not been chained.
    pub(crate) fn entries(&self) -> &[u64] {
        if !self.shape.dependent {
            return &self.offsets;
        }
        self.hidden.as_deref().expect("dependent reads are chained to the data before a worker follows them")
    }

    /// Memory of the table.
    pub fn memory_bytes(&self) -> u64 {
        if self.shape.dependent { 16 * self.reads } else { 8 * self.reads }
    }

    /// Parameters of its reads.
    pub fn shape(&self) -> &Reads {
        &self.shape
    }

    /// Content of the dataset for which it was drawn.
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

    /// Threads, each with a part.
    pub(crate) fn threads(&self) -> u64 {
        self.threads
    }

    /// Operations in the part of each thread.
    pub fn operations_per_thread(&self) -> u64 {
        self.operations() / self.threads
    }

    /// True if a thread repeats its part when it is done; a cold one must not.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// All true offsets, in the order of threads and operations, whether reads are dependent or
    /// not.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }
}

/// The position of a word in a page, drawn among those at which each page of a read of so many
/// bytes has a whole word.
pub fn touched_word(read_bytes: u64, page: u64, seed: u64) -> u64 {
    let shortest = match read_bytes % page {
        0 => page,
        rest => rest,
    };
    8 * Random::for_purpose(seed, "touched word").below((shortest / 8).max(1))
}

/// Size of a table that may repeat, of all threads.
enum Repeating {
    Exactly { operations: u64 },
    AtLeast { reads: u64 },
}

/// Possible starts of reads (or sequential operations).
enum OffsetDistribution {
    /// Any aligned position, all equally likely.
    Uniform { starts: u64, align_bytes: u64 },
    /// Each block once, in random order.
    Once(SpanBlocks, Permutation),
    /// The start of each block, some more often than others.
    Popular(PopularOffsets),
}

impl OffsetDistribution {
    fn new(accesses: &AccessShape, page: u64, random: &mut Random) -> Result<Self, TableError> {
        let AccessShape { conditions, reads, .. } = accesses;
        let drawn_bytes = accesses.drawn_bytes();
        let align_bytes = reads.align_bytes.0;
        Ok(match (conditions.cache, reads.skew) {
            (CacheState::Cold, _) => {
                let blocks = SpanBlocks::new(conditions.span_bytes.0, drawn_bytes, align_bytes, page);
                let permutation = Permutation::new(blocks.count(), random.next_u64());
                OffsetDistribution::Once(blocks, permutation)
            }
            (_, Skew::Uniform) => {
                let starts = (conditions.span_bytes.0 - drawn_bytes) / align_bytes + 1;
                OffsetDistribution::Uniform { starts, align_bytes }
            }
            (_, Skew::Zipf { theta_thousandths }) => {
                let blocks = SpanBlocks::new(conditions.span_bytes.0, drawn_bytes, align_bytes, page);
                if blocks.count() == 0 {
                    let (span_bytes, block_bytes) = (conditions.span_bytes.0, blocks.block_bytes());
                    return Err(TableError::NoBlock { span_bytes, block_bytes });
                }
                OffsetDistribution::Popular(PopularOffsets::new(blocks, theta_thousandths, random))
            }
        })
    }

    /// Start of draw number `index`.
    fn draw(&self, index: u64, random: &mut Random) -> u64 {
        match self {
            OffsetDistribution::Uniform { starts, align_bytes } => random.below(*starts) * align_bytes,
            OffsetDistribution::Once(blocks, permutation) => blocks.start(permutation.at(index), random),
            OffsetDistribution::Popular(distribution) => distribution.draw(random),
        }
    }
}

/// Parameters of the accesses of a table.
struct AccessShape<'a> {
    workload: Workload,
    reads: Reads,
    conditions: &'a Conditions,
}

impl AccessShape<'_> {
    /// The table of these offsets, drawn from `seed` on a machine with pages of this size.
    fn table(&self, offsets: Vec<u64>, seed: u64, page: u64, repeats: bool) -> OffsetTable {
        OffsetTable {
            reads: offsets.len() as u64,
            offsets,
            hidden: None,
            seed,
            shape: self.reads,
            content: self.conditions.content,
            reads_per_op: u64::from(self.reads.reads_per_op),
            threads: u64::from(self.conditions.threads),
            repeats,
            touch_at: touched_word(self.reads.read_bytes.0, page, seed),
        }
    }

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

    /// All parameters of the accesses, and nothing else: descriptor and consumption do not change
    /// them, nor does dependence, so that dependent and independent reads can be compared.
    fn purpose(&self) -> String {
        let Reads { read_bytes, reads_per_op, align_bytes, skew, .. } = self.reads;
        let Conditions { threads, span_bytes, cache, .. } = self.conditions;
        // Uniform tables are the same as before other skews existed.
        let skew = if skew == Skew::Uniform { String::new() } else { format!(" {skew}") };
        let kind = if *cache == CacheState::Cold { "cold" } else { "repeating" };
        format!(
            "offsets {} {kind} span={span_bytes} {read_bytes}x{reads_per_op} align={align_bytes} \
                threads={threads}{skew}",
            self.workload
        )
    }

    /// True if one draw determines all reads of an operation, one after the other.
    fn is_sequential(&self) -> bool {
        self.workload == Workload::SequentialRead
    }

    fn drawn_bytes(&self) -> u64 {
        self.reads.drawn_bytes(self.workload)
    }

    /// Call `put` with the offset of each read in the order of threads and operations.
    fn draw(
        &self,
        operations: u64,
        distribution: &OffsetDistribution,
        random: &mut Random,
        mut put: impl FnMut(u64),
    ) {
        let reads_per_op = u64::from(self.reads.reads_per_op);
        if !self.is_sequential() {
            (0..operations * reads_per_op).for_each(|read| put(distribution.draw(read, random)));
            return;
        }
        for operation in 0..operations {
            let start = distribution.draw(operation, random);
            (0..reads_per_op).for_each(|read| put(start + read * self.reads.read_bytes.0));
        }
    }

    /// Operations of a repeated table: about two reads for each position of the span, and more if
    /// some positions are so rare that two would miss most of them; as many as `least` reads,
    /// unless these are large.
    fn repeating_operations(&self, least: u64) -> u64 {
        let read_bytes = self.reads.read_bytes.0;
        let per_offset = if self.reads.skew == Skew::Uniform { 2 } else { 16 };
        let reads_min = least.clamp(READS_MIN, READS_MAX).min(MIN_REQUESTED_BYTES.div_ceil(read_bytes));
        let reads = self.conditions.span_bytes.0.saturating_mul(per_offset) / read_bytes;
        self.whole_operations(reads.clamp(reads_min, READS_MAX) / u64::from(self.reads.reads_per_op))
    }

    /// Operations of a table in which no block occurs twice.
    fn cold_operations(&self, blocks: &SpanBlocks) -> Result<u64, TableError> {
        let reads_per_op = u64::from(self.reads.reads_per_op);
        let operations = if self.is_sequential() { blocks.count() } else { blocks.count() / reads_per_op };
        let Conditions { threads, span_bytes, .. } = *self.conditions;
        if operations < u64::from(threads) {
            return Err(TableError::TooFewBlocks { span_bytes: span_bytes.0, operations, threads });
        }
        Ok(self.whole_operations(operations.min(READS_MAX / reads_per_op)))
    }

    /// Operations rounded down to as many for each thread as for every other, at least one.
    fn whole_operations(&self, operations: u64) -> u64 {
        let threads = u64::from(self.conditions.threads);
        (operations / threads).max(1) * threads
    }
}

#[cfg(test)]
mod tests;
