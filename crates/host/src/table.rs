//! Offset tables: the accesses that every method of a comparison does, drawn once from the recorded seed.
//!
//! A table is a file in memory of little-endian 64-bit offsets, `reads_per_op` for each operation, which
//! workers of every language map and read front to back. Thread t of n owns the t-th of n equal parts. What a
//! table holds depends on the seed and on the conditions that shape accesses, never on the method.

use std::io;
use std::os::fd::AsRawFd;

use pagewise_model::random::{Random, mix};
use pagewise_model::{CacheState, Conditions, Workload};
use pagewise_sys::SharedMemory;

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
    #[error("memory for a table of {reads} offsets: {source}")]
    Memory { reads: u64, source: io::Error },
}

/// The accesses of all threads.
pub struct OffsetTable {
    memory: SharedMemory,
    reads: u64,
    reads_per_op: u64,
    threads: u64,
    repeats: bool,
}

impl OffsetTable {
    /// Draws the table for pages of this machine's size.
    pub fn new(conditions: &Conditions, seed: u64) -> Result<Self, TableError> {
        Self::with_page(conditions, seed, rustix::param::page_size() as u64)
    }

    fn with_page(conditions: &Conditions, seed: u64, page: u64) -> Result<Self, TableError> {
        check(conditions)?;
        let cold = conditions.cache == CacheState::Cold;
        let reads_per_op = u64::from(conditions.reads_per_op);
        let threads = u64::from(conditions.threads);
        let mut random = Random::for_purpose(seed, &purpose(conditions));
        let blocks = cold.then(|| Blocks::new(conditions, page));
        let operations = match &blocks {
            Some(blocks) => cold_operations(conditions, blocks)?,
            None => repeating_operations(conditions),
        };
        let reads = operations * reads_per_op;
        let mut memory = SharedMemory::create("pagewise-offsets", reads as usize * 8)
            .map_err(|source| TableError::Memory { reads, source })?;
        let mut words = memory.bytes_mut().chunks_exact_mut(8);
        let mut put = |offset: u64| {
            words.next().expect("a word for every read").copy_from_slice(&offset.to_le_bytes());
        };
        // The stretch that one draw places: a read, or all reads of an operation.
        let drawn_bytes = drawn_bytes(conditions);
        let starts = (conditions.span_bytes.0 - drawn_bytes) / conditions.align_bytes.0 + 1;
        let permutation = blocks.as_ref().map(|blocks| Permutation::new(blocks.count, random.next_u64()));
        let mut draw = |index: u64| match (&blocks, &permutation) {
            (Some(blocks), Some(permutation)) => blocks.start(permutation.at(index), &mut random),
            _ => random.below(starts) * conditions.align_bytes.0,
        };
        match conditions.workload {
            Workload::RandomRead => (0..reads).for_each(|read| put(draw(read))),
            Workload::SequentialRead => (0..operations).for_each(|operation| {
                let start = draw(operation);
                (0..reads_per_op).for_each(|read| put(start + read * conditions.read_bytes.0));
            }),
        }
        // A worker follows the table; it has no business in writing to it.
        memory.seal().map_err(|source| TableError::Memory { reads, source })?;
        Ok(Self { memory, reads, reads_per_op, threads, repeats: !cold })
    }

    /// The path by which a child opens the table; it inherits the descriptor.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.memory.file().as_raw_fd())
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

    /// All offsets, in the order of threads and operations.
    pub fn offsets(&self) -> &[u64] {
        self.memory.words()
    }

    /// The offsets of one operation of thread `thread`; `None` behind the end of a part that is not repeated.
    pub fn operation(&self, thread: u32, operation: u64) -> Option<&[u64]> {
        let part = self.operations_per_thread();
        assert!(u64::from(thread) < self.threads, "a thread that has no part of the table");
        if operation >= part && !self.repeats {
            return None;
        }
        let first = ((u64::from(thread) * part + operation % part) * self.reads_per_op) as usize;
        Some(&self.offsets()[first..first + self.reads_per_op as usize])
    }
}

fn check(conditions: &Conditions) -> Result<(), TableError> {
    let sizes = [
        ("the size of a read", conditions.read_bytes.0),
        ("the number of reads in an operation", u64::from(conditions.reads_per_op)),
        ("the number of threads", u64::from(conditions.threads)),
        ("the alignment", conditions.align_bytes.0),
    ];
    if let Some((what, _)) = sizes.iter().find(|(_, value)| *value == 0) {
        return Err(TableError::Zero { what });
    }
    let op_bytes = conditions
        .read_bytes
        .0
        .checked_mul(u64::from(conditions.reads_per_op))
        .filter(|op_bytes| *op_bytes <= conditions.span_bytes.0);
    if op_bytes.is_none() {
        let op_bytes = conditions.read_bytes.0.saturating_mul(u64::from(conditions.reads_per_op));
        return Err(TableError::SpanTooSmall { span_bytes: conditions.span_bytes.0, op_bytes });
    }
    if u64::from(conditions.reads_per_op) * u64::from(conditions.threads) > READS_MAX {
        let Conditions { reads_per_op, threads, .. } = *conditions;
        return Err(TableError::TooManyReads { reads_per_op, threads });
    }
    Ok(())
}

/// Everything that shapes the accesses, and nothing else: descriptor and consumption do not.
fn purpose(conditions: &Conditions) -> String {
    let Conditions { workload, threads, span_bytes, cache, read_bytes, reads_per_op, align_bytes, .. } =
        conditions;
    let kind = if *cache == CacheState::Cold { "cold" } else { "repeating" };
    format!(
        "offsets {workload} {kind} span={span_bytes} {read_bytes}x{reads_per_op} align={align_bytes} \
            threads={threads}"
    )
}

fn drawn_bytes(conditions: &Conditions) -> u64 {
    match conditions.workload {
        Workload::RandomRead => conditions.read_bytes.0,
        Workload::SequentialRead => conditions.op_bytes(),
    }
}

/// Operations of a table that is gone through again and again: about two reads for each place of the span.
fn repeating_operations(conditions: &Conditions) -> u64 {
    let read_bytes = conditions.read_bytes.0;
    let reads_min = READS_MIN.min(MIN_REQUESTED_BYTES.div_ceil(read_bytes));
    let reads = (conditions.span_bytes.0.saturating_mul(2) / read_bytes).clamp(reads_min, READS_MAX);
    whole_operations(conditions, reads / u64::from(conditions.reads_per_op))
}

/// Operations of a table in which no block comes twice.
fn cold_operations(conditions: &Conditions, blocks: &Blocks) -> Result<u64, TableError> {
    let reads_per_op = u64::from(conditions.reads_per_op);
    let operations = match conditions.workload {
        Workload::RandomRead => blocks.count / reads_per_op,
        Workload::SequentialRead => blocks.count,
    };
    if operations < u64::from(conditions.threads) {
        return Err(TableError::TooFewBlocks {
            span_bytes: conditions.span_bytes.0,
            operations,
            threads: conditions.threads,
        });
    }
    Ok(whole_operations(conditions, operations.min(READS_MAX / reads_per_op)))
}

/// The same number of operations for every thread, and at least one.
fn whole_operations(conditions: &Conditions, operations: u64) -> u64 {
    let threads = u64::from(conditions.threads);
    (operations / threads).max(1) * threads
}

/// The span cut into blocks for cold accesses: each holds one read (or sequential operation) and begins on a
/// page, so that no read finds a page that another has brought in.
struct Blocks {
    count: u64,
    block_bytes: u64,
    drawn_bytes: u64,
    align_bytes: u64,
}

impl Blocks {
    fn new(conditions: &Conditions, page: u64) -> Self {
        let align_bytes = conditions.align_bytes.0;
        let drawn_bytes = drawn_bytes(conditions);
        let block_bytes = if align_bytes.is_multiple_of(page) {
            drawn_bytes.next_multiple_of(align_bytes)
        } else {
            // Room to begin at any place of a page that the alignment allows, as such reads do.
            let slack =
                if page.is_multiple_of(align_bytes) { page - align_bytes } else { page.max(align_bytes) - 1 };
            (drawn_bytes + slack).next_multiple_of(page)
        };
        // The last block may lack the part behind its read, which then begins with the block.
        let aligned_last = if align_bytes.is_multiple_of(page) { block_bytes - drawn_bytes } else { 0 };
        let count = (conditions.span_bytes.0 + aligned_last) / block_bytes;
        Self { count, block_bytes, drawn_bytes, align_bytes }
    }

    /// Where the read of a block begins: any aligned place from which it stays within the block.
    fn start(&self, block: u64, random: &mut Random) -> u64 {
        let first = (block * self.block_bytes).div_ceil(self.align_bytes);
        let last = ((block + 1) * self.block_bytes - self.drawn_bytes) / self.align_bytes;
        (first + random.below(last - first + 1)) * self.align_bytes
    }
}

/// A random order of `0..count` that needs no memory: four rounds of a Feistel network over the next even
/// power of two, walked on until it falls below `count` (Black and Rogaway, "Ciphers with arbitrary finite
/// domains", 2002). A shuffled list of a large file's blocks would take more memory than the supervisor may.
struct Permutation {
    count: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    fn new(count: u64, key: u64) -> Self {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), key }
    }

    fn at(&self, index: u64) -> u64 {
        assert!(index < self.count, "an index outside of the permutation");
        let mut value = index;
        loop {
            value = self.round_trip(value);
            if value < self.count {
                return value;
            }
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..4u64 {
            let scrambled = mix(self.key ^ mix(right ^ (round << 60)));
            (left, right) = (right, left ^ (scrambled & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::{Bytes, Consume, Descriptor};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn conditions(workload: Workload, cache: CacheState, span: u64, read: u64, align: u64) -> Conditions {
        Conditions {
            workload,
            threads: 2,
            file_bytes: Bytes(span + 77),
            span_bytes: Bytes(span),
            cache,
            descriptor: Descriptor::Shared,
            read_bytes: Bytes(read),
            reads_per_op: 4,
            align_bytes: Bytes(align),
            skew: pagewise_model::Skew::Uniform,
            dependent: false,
            consume: Consume::Touch,
            surroundings: pagewise_model::Surroundings::default(),
        }
    }

    #[test]
    fn a_warm_table_repeats_and_is_cut_into_equal_parts() {
        let conditions = conditions(Workload::RandomRead, CacheState::Warm, 64 << 20, 4096, 4096);
        let table = OffsetTable::new(&conditions, 5).expect("table");
        assert_eq!((table.reads(), table.operations_per_thread()), (1 << 16, (1 << 16) / 8));
        assert!(table.offsets().iter().all(|offset| offset % 4096 == 0 && offset + 4096 <= 64 << 20));
        let part = table.operations_per_thread();
        assert_eq!(table.operation(1, 3), table.operation(1, part + 3));
        assert_eq!(table.operation(1, 0).expect("first"), &table.offsets()[(part * 4) as usize..][..4]);
        // All places are drawn from, the first and the last ones too.
        let distinct: HashSet<_> = table.offsets().iter().collect();
        assert!(distinct.len() > 13_000 && distinct.len() <= 16_384, "{}", distinct.len());
    }

    #[test]
    fn the_table_depends_on_what_shapes_accesses_only() {
        let base = conditions(Workload::RandomRead, CacheState::Warm, 1 << 20, 4096, 512);
        let offsets = |conditions: &Conditions, seed| {
            OffsetTable::new(conditions, seed).expect("table").offsets().to_vec()
        };
        let same = Conditions {
            consume: Consume::Sum,
            descriptor: Descriptor::PerThread,
            cache: CacheState::AsIs,
            ..base.clone()
        };
        assert_eq!(offsets(&base, 1), offsets(&same, 1));
        assert_ne!(offsets(&base, 1), offsets(&base, 2));
        assert_ne!(offsets(&base, 1), offsets(&Conditions { threads: 1, ..base.clone() }, 1));
    }

    #[test]
    fn a_cold_table_takes_every_block_once() {
        let conditions = conditions(Workload::RandomRead, CacheState::Cold, 8 << 20, 16384, 4096);
        let table = OffsetTable::with_page(&conditions, 5, 4096).expect("table");
        let mut offsets = table.offsets().to_vec();
        assert_ne!(offsets, (0..512).map(|block| block * 16384).collect::<Vec<_>>());
        offsets.sort_unstable();
        assert_eq!(offsets, (0..512).map(|block| block * 16384).collect::<Vec<_>>());
        assert_eq!(table.operation(0, table.operations_per_thread()), None);
    }

    #[test]
    fn sequential_operations_are_contiguous() {
        for cache in [CacheState::Warm, CacheState::Cold] {
            let conditions = conditions(Workload::SequentialRead, cache, 8 << 20, 4096, 4096);
            let table = OffsetTable::with_page(&conditions, 5, 4096).expect("table");
            for operation in table.offsets().chunks_exact(4) {
                assert!(operation.windows(2).all(|pair| pair[1] == pair[0] + 4096));
            }
        }
    }

    #[test]
    fn a_large_file_needs_no_large_table() {
        let conditions = conditions(Workload::RandomRead, CacheState::Cold, 1 << 40, 4096, 4096);
        assert_eq!(OffsetTable::new(&conditions, 5).expect("table").reads(), 1 << 19);
        let conditions = Conditions { cache: CacheState::Warm, read_bytes: Bytes::mib(1), ..conditions };
        let small = Conditions { span_bytes: Bytes::mib(64), ..conditions.clone() };
        assert_eq!(OffsetTable::new(&conditions, 5).expect("table").reads(), 1 << 19);
        assert_eq!(OffsetTable::new(&small, 5).expect("table").reads(), 4096);
    }

    #[test]
    fn what_does_not_fit_is_a_sentence() {
        let refused = |conditions: &Conditions| match OffsetTable::new(conditions, 1) {
            Ok(_) => panic!("taken"),
            Err(error) => error.to_string(),
        };
        let base = conditions(Workload::RandomRead, CacheState::Warm, 8192, 4096, 4096);
        assert_eq!(refused(&base), "a span of 8192 bytes is too small for one operation of 16384 bytes");
        let cold = Conditions { cache: CacheState::Cold, span_bytes: Bytes(16384), ..base.clone() };
        assert_eq!(
            refused(&cold),
            "a span of 16384 bytes has room for 1 cold operations that do not overlap, and 2 threads need \
                one each"
        );
        assert!(
            refused(&Conditions { align_bytes: Bytes(0), ..base.clone() }).starts_with("the alignment is 0")
        );
        let many = Conditions { threads: 1 << 20, span_bytes: Bytes::gib(1), ..base };
        assert!(refused(&many).contains("exceeds the 524288 reads of a table"));
    }

    #[test]
    fn a_seed_means_the_same_table_in_every_version() {
        // A run is resumed with the offsets that it was begun with; a change here needs another schema.
        let warm = conditions(Workload::RandomRead, CacheState::Warm, 64 << 20, 4096, 4096);
        let cold = Conditions { cache: CacheState::Cold, ..warm.clone() };
        let first = |conditions| {
            let table = OffsetTable::with_page(conditions, 5, 4096).expect("table");
            [0, 1, 2].map(|read| table.offsets()[read] / 4096)
        };
        assert_eq!((first(&warm), first(&cold)), ([5499, 8906, 10201], [2463, 12627, 5600]));
    }

    #[test]
    fn a_child_can_open_the_table_by_its_path() {
        let conditions = conditions(Workload::RandomRead, CacheState::Warm, 1 << 20, 4096, 4096);
        let table = OffsetTable::new(&conditions, 5).expect("table");
        let output = std::process::Command::new("cat").arg(table.path()).output().expect("cat");
        let words: Vec<u64> = output
            .stdout
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("8")))
            .collect();
        assert!(words == table.offsets());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_permutation_gives_every_number_once(count in 1u64..3000, key: u64) {
            let permutation = Permutation::new(count, key);
            let distinct: HashSet<u64> = (0..count).map(|index| permutation.at(index)).collect();
            prop_assert_eq!(distinct.len() as u64, count);
            prop_assert!(distinct.iter().all(|value| *value < count));
        }

        #[test]
        fn reads_stay_within_the_span_and_cold_ones_share_no_page(
            sequential: bool,
            cold: bool,
            span in 100_000u64..3_000_000,
            read in 1u64..20_000,
            align in prop_oneof![Just(1u64), Just(512), Just(1000), Just(4096), Just(5000), Just(8192)],
        ) {
            let workload = if sequential { Workload::SequentialRead } else { Workload::RandomRead };
            let cache = if cold { CacheState::Cold } else { CacheState::Warm };
            let conditions = conditions(workload, cache, span, read, align);
            let table = match OffsetTable::with_page(&conditions, 3, 4096) {
                Ok(table) => table,
                Err(TableError::TooFewBlocks { .. }) => return Ok(()),
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            };
            prop_assert_eq!(table.reads() % 8, 0);
            let mut pages = HashSet::new();
            for operation in table.offsets().chunks_exact(4) {
                let stretches: Vec<(u64, u64)> = if sequential {
                    vec![(operation[0], operation[3] + read)]
                } else {
                    operation.iter().map(|offset| (*offset, offset + read)).collect()
                };
                for (start, end) in stretches {
                    prop_assert!(start % align == 0 && end <= span);
                    if cold {
                        for page in start / 4096..end.div_ceil(4096) {
                            prop_assert!(pages.insert(page), "page {} twice", page);
                        }
                    }
                }
            }
        }
    }
}
