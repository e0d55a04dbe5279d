//! Every algorithm agrees with the naive sums.

use std::os::unix::fs::FileExt;

use super::*;
use crate::{cache, scratch};
use pagewise_model::{Bytes, CacheState, Work, Workload};
use proptest::prelude::*;

const PAGE: u64 = 4096;
static GO: AtomicBool = AtomicBool::new(false);

fn conditions(
    workload: Workload,
    cache: CacheState,
    consume: Consume,
    span: u64,
    read: u64,
    align: u64,
) -> Conditions {
    let reads = Reads { reads_per_op: 3, align_bytes: Bytes(align), consume, ..Reads::of(Bytes(read)) };
    let sequential = workload == Workload::SequentialRead;
    Conditions {
        threads: 2,
        cache,
        ..Conditions::of(
            if sequential { Work::SequentialRead(reads) } else { Work::RandomRead(reads) },
            Bytes(span),
        )
    }
}

fn bytes_of(content: Content, span: u64, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; span as usize];
    content.fill(seed, 0, &mut bytes);
    bytes
}

/// Result of a worker for operations of a thread, one read at a time.
fn naive(
    table: &OffsetTable,
    order: &OperationOrder,
    bytes: &[u8],
    thread: u32,
    operations: std::ops::Range<u64>,
) -> u64 {
    let (reads, part) = (table.shape(), table.operations_per_thread());
    let consumption = table.consumption(PAGE);
    let mut total = 0u64;
    for operation in operations {
        let place = (u64::from(thread) * part + operation % part) * u64::from(reads.reads_per_op);
        let offsets = table.operation(order, thread, operation).expect("in the table");
        for (place, offset) in (place..).zip(offsets) {
            let checksum = consumption.of(&bytes[*offset as usize..][..reads.read_bytes.0 as usize]);
            total = total.wrapping_add(weight(place).wrapping_mul(checksum));
        }
    }
    total
}

fn check(reference: &Reference, table: &OffsetTable, conditions: &Conditions, bytes: &[u8]) {
    let part = table.operations_per_thread();
    for thread in 0..conditions.threads {
        for order in [table.as_drawn(), table.anew(part / 3)] {
            for operations in [0..1, 0..part.min(5), part / 2..part / 2 + 3, part - 1..part, part..part] {
                if !table.repeats() && operations.end > part {
                    continue;
                }
                let expected = naive(table, &order, bytes, thread, operations.clone());
                let count = operations.end - operations.start;
                let found = reference.expected(&order, thread, operations.start, count);
                assert_eq!(found, Some(expected), "{operations:?}");
            }
        }
    }
}

#[test]
fn all_ways_agree_on_a_whole_table() {
    // Spans over several windows, reads larger than a granule, and every way to add.
    for (read, align) in [(16384, 4096), (4096, 512), (1000, 8), (1001, 1), (5000, 4096), (8192, 8192)] {
        for consume in [Consume::Touch, Consume::Sum] {
            let conditions =
                conditions(Workload::RandomRead, CacheState::Cold, consume, 3 << 20, read, align);
            let table = OffsetTable::new(&conditions, 11).expect("table");
            let bytes = bytes_of(Content::Random, 3 << 20, 5);
            let reference = Reference::for_dataset(&table, &conditions, 5, PAGE).expect("reference");
            let (part, order) = (table.operations_per_thread(), table.as_drawn());
            for thread in 0..2 {
                assert_eq!(
                    reference.expected(&order, thread, 0, part),
                    Some(naive(&table, &order, &bytes, thread, 0..part)),
                    "{read} {align} {consume}"
                );
            }
        }
    }
}

#[test]
fn a_file_gives_what_its_bytes_give() {
    let span = (2 << 20) + 12_345;
    let bytes = bytes_of(Content::Random, span, 8);
    let directory = tempfile::tempdir().expect("directory");
    let file = scratch::nameless_file(directory.path()).expect("file");
    file.write_all_at(&bytes, 0).expect("write");
    let mut sources = Vec::new();
    for evict in [false, true] {
        for (read, align) in [(16384, 4096), (4096, 512), (999, 1), (2 << 20, 4096)] {
            for consume in [Consume::Touch, Consume::Sum] {
                let mut conditions =
                    conditions(Workload::RandomRead, CacheState::Warm, consume, span, read, align);
                conditions.work.reads_mut().expect("reads").reads_per_op = 1;
                let table = OffsetTable::new(&conditions, 1).expect("table");
                if evict && let Err(error) = cache::evict(&file, span) {
                    println!("skipped: disk: {error}");
                    return;
                }
                let reference =
                    Reference::for_file(&table, &conditions, &file, PAGE, &GO).expect("reference");
                check(&reference, &table, &conditions, &bytes);
                if reference.source() == ReferenceSource::DirectReads {
                    assert_eq!(cache::residency(&file, span).resident_bytes.unwrap_or(0), 0);
                }
                sources.push(reference.source());
            }
        }
    }
    assert!(sources[..8].iter().all(|source| *source == ReferenceSource::CachedReads), "{sources:?}");
    assert!(sources[8..].iter().all(|source| *source != ReferenceSource::CachedReads), "{sources:?}");
}

#[test]
fn lines_of_reads_are_counted() {
    let reads = conditions(Workload::RandomRead, CacheState::Warm, Consume::Lines, 300_000, 100, 1);
    let conditions = Conditions { content: Content::Text, ..reads };
    let table = OffsetTable::new(&conditions, 4).expect("table");
    let reference = Reference::for_dataset(&table, &conditions, 9, PAGE).expect("formula");
    check(&reference, &table, &conditions, &bytes_of(Content::Text, 300_000, 9));
    // 100 bytes have about 1.6 newlines, and the weights of the first 300 reads add up to 300 times
    // 300.
    let lines = reference.expected(&table.as_drawn(), 0, 0, 100).expect("in the table");
    assert!((60_000..240_000).contains(&lines), "{lines}");
}

#[test]
fn a_part_is_begun_again_unless_cold() {
    for cache in [CacheState::Warm, CacheState::Cold] {
        let conditions = conditions(Workload::RandomRead, cache, Consume::Sum, 2 << 20, 4096, 4096);
        let table = OffsetTable::new(&conditions, 2).expect("table");
        let reference = Reference::for_dataset(&table, &conditions, 7, PAGE).expect("reference");
        let (part, order) = (table.operations_per_thread(), table.as_drawn());
        let beyond = reference.expected(&order, 1, part - 1, 2 * part + 3);
        if cache == CacheState::Cold {
            assert_eq!(beyond, None);
            assert_eq!(reference.expected(&order, 0, part, 0), Some(0));
            continue;
        }
        let bytes = bytes_of(Content::Random, 2 << 20, 7);
        assert_eq!(beyond, Some(naive(&table, &order, &bytes, 1, part - 1..3 * part + 2)));
        assert_eq!(reference.expected(&order, 2, 0, 1), None);
        assert_eq!(reference.expected(&order, u32::MAX, 0, 1), None);
        assert_eq!(reference.expected(&order, 0, u64::MAX, 1), None);
    }
}

#[test]
fn a_file_that_became_shorter_is_an_error() {
    let conditions = conditions(Workload::RandomRead, CacheState::Warm, Consume::Sum, 1 << 20, 4096, 4096);
    let table = OffsetTable::new(&conditions, 2).expect("table");
    let directory = tempfile::tempdir().expect("directory");
    let file = scratch::nameless_file(directory.path()).expect("file");
    file.write_all_at(&[1; 10_000], 0).expect("write");
    match Reference::for_file(&table, &conditions, &file, PAGE, &GO) {
        Err(ReferenceError::Short { offset, .. }) => assert_eq!(offset, 10_000),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken"),
    }
    let stopped = Reference::for_file(&table, &conditions, &file, PAGE, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(ReferenceError::Stopped { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_operations_have_the_naive_checksum(
        sequential: bool,
        cold: bool,
        add_all: bool,
        text: bool,
        span in 200_000u64..700_000,
        read in prop_oneof![
            1u64..20_000,
            (1u64..8).prop_map(|pages| pages * PAGE),
            (1u64..40).prop_map(|sectors| sectors * 512),
        ],
        align in prop_oneof![Just(1u64), Just(8), Just(512), Just(1000), Just(PAGE), Just(2 * PAGE)],
        seed: u64,
    ) {
        let workload = if sequential { Workload::SequentialRead } else { Workload::RandomRead };
        let cache = if cold { CacheState::Cold } else { CacheState::Warm };
        let consume = if add_all { Consume::Sum } else { Consume::Touch };
        let content = if text { Content::Text } else { Content::Random };
        let conditions =
            Conditions { content, ..conditions(workload, cache, consume, span, read, align) };
        let Ok(table) = OffsetTable::new(&conditions, seed) else { return Ok(()) };
        let reference = Reference::for_dataset(&table, &conditions, seed, PAGE).expect("formula");
        check(&reference, &table, &conditions, &bytes_of(conditions.content, span, seed));
    }
}
