//! Tables for every kind of conditions.

use super::*;
use crate::reference::Reference;
use crate::{PiecesOfGo, TableMemory};
use pagewise_model::checksum::weight;
use pagewise_model::pieces::Masks;
use pagewise_model::{Bytes, Consume, Descriptor, Scan, Work, content};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;

fn conditions(workload: Workload, cache: CacheState, span: u64, read: u64, align: u64) -> Conditions {
    let reads = Reads { reads_per_op: 4, align_bytes: Bytes(align), ..Reads::of(Bytes(read)) };
    Conditions {
        threads: 2,
        span_bytes: Bytes(span),
        cache,
        ..Conditions::of(
            match workload {
                Workload::RandomRead => Work::RandomRead(reads),
                Workload::SequentialRead => Work::SequentialRead(reads),
                _ => Work::Scan(Scan { consume: Consume::Lines }),
            },
            Bytes(span + 77),
        )
    }
}

/// The same with other reads.
fn with(mut conditions: Conditions, change: impl FnOnce(&mut Reads)) -> Conditions {
    change(conditions.work.reads_mut().expect("reads"));
    conditions
}

/// The path by which a child opens it.
fn path_of(memory: &TableMemory) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", memory.file().as_raw_fd())
}

#[test]
fn a_warm_table_repeats_and_is_cut_into_equal_parts() {
    let conditions = conditions(Workload::RandomRead, CacheState::Warm, 64 << 20, 4096, 4096);
    let table = OffsetTable::new(&conditions, 5).expect("table");
    assert_eq!((table.reads(), table.operations_per_thread()), (1 << 16, (1 << 16) / 8));
    assert!(table.offsets().iter().all(|offset| offset % 4096 == 0 && offset + 4096 <= 64 << 20));
    let (part, order) = (table.operations_per_thread(), table.as_drawn());
    assert_eq!(table.operation(&order, 1, 3), table.operation(&order, 1, part + 3));
    assert_eq!(table.operation(&order, 1, 0).expect("first"), &table.offsets()[(part * 4) as usize..][..4]);
    // All positions are drawn from, including the first and the last.
    let distinct: HashSet<_> = table.offsets().iter().collect();
    assert!(distinct.len() > 13_000 && distinct.len() <= 16_384, "{}", distinct.len());
}

#[test]
fn the_table_depends_on_what_shapes_accesses_only() {
    let base = conditions(Workload::RandomRead, CacheState::Warm, 1 << 20, 4096, 512);
    let offsets =
        |conditions: &Conditions, seed| OffsetTable::new(conditions, seed).expect("table").offsets().to_vec();
    let same = Conditions { descriptor: Descriptor::PerThread, cache: CacheState::AsIs, ..base.clone() };
    let same = with(same, |reads| reads.consume = Consume::Sum);
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
    assert_eq!(table.operation(&table.as_drawn(), 0, table.operations_per_thread()), None);
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
    let conditions = Conditions { cache: CacheState::Warm, ..conditions };
    let conditions = with(conditions, |reads| reads.read_bytes = Bytes::mib(1));
    let small = Conditions { span_bytes: Bytes::mib(64), ..conditions.clone() };
    assert_eq!(OffsetTable::new(&conditions, 5).expect("table").reads(), 1 << 19);
    assert_eq!(OffsetTable::new(&small, 5).expect("table").reads(), 4096);
    // One that a sample does not repeat, and two threads share.
    let pages = with(small, |reads| reads.read_bytes = Bytes::kib(4));
    let reads = |sample_ns| OffsetTable::lasting(&pages, 5, sample_ns).expect("table").reads();
    assert_eq!([0, 10_000_000, 20_000_000, u64::MAX].map(reads), [1 << 16, 80_000, 160_000, 1 << 19]);
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
        "a span of 16384 bytes has space for 1 cold operations that do not overlap: 2 threads need \
            one each"
    );
    let unaligned = with(base.clone(), |reads| reads.align_bytes = Bytes(0));
    assert!(refused(&unaligned).starts_with("the alignment is 0"));
    let skewed = |cache| {
        let conditions = Conditions { cache, span_bytes: Bytes(1 << 20), ..base.clone() };
        with(conditions, |reads| reads.skew = zipf(990))
    };
    assert_eq!(
        refused(&skewed(CacheState::Cold)),
        "zipf repeats positions: a cold table has each position once"
    );
    let small = Conditions { span_bytes: Bytes(16384), ..skewed(CacheState::Warm) };
    let huge = with(small, |reads| {
        (reads.align_bytes, reads.read_bytes, reads.reads_per_op) = (Bytes(1), Bytes(16384), 1);
    });
    assert_eq!(
        refused(&huge),
        "a span of 16384 bytes has no space for one block of 20480 bytes, which is a position of zipf"
    );
    let dependent = Conditions { span_bytes: Bytes(1 << 20), ..base.clone() };
    let dependent = with(dependent, |reads| reads.dependent = true);
    assert_eq!(
        refused(&with(dependent.clone(), |reads| reads.read_bytes = Bytes(7))),
        "reads of 7 bytes cannot be dependent: the offset of the next one is in 8 bytes"
    );
    assert_eq!(
        refused(&with(dependent, |reads| reads.reads_per_op = 1)),
        "an operation of one read has nothing to depend on: dependent reads need two or more"
    );
    let many = Conditions { threads: 1 << 20, span_bytes: Bytes::gib(1), ..base };
    assert!(refused(&many).contains("exceeds the 524288 reads of a table"));
    let scan = conditions(Workload::Scan, CacheState::Warm, 1 << 20, 0, 0);
    assert_eq!(refused(&scan), "scan is not a workload with an offset table");
}

#[test]
fn a_seed_means_the_same_table_in_every_version() {
    // A run is resumed with the offsets that it was begun with; a change here requires another
    // schema.
    let warm = conditions(Workload::RandomRead, CacheState::Warm, 64 << 20, 4096, 4096);
    let cold = Conditions { cache: CacheState::Cold, ..warm.clone() };
    let first = |conditions| {
        let table = OffsetTable::with_page(conditions, 5, 4096).expect("table");
        [0, 1, 2].map(|read| table.offsets()[read] / 4096)
    };
    assert_eq!((first(&warm), first(&cold)), ([5499, 8906, 10201], [2463, 12627, 5600]));
}

fn zipf(theta_thousandths: u32) -> Skew {
    Skew::Zipf { theta_thousandths }
}

#[test]
fn a_cold_start_repeats_like_a_warm_table() {
    let warm = conditions(Workload::RandomRead, CacheState::Warm, 8 << 20, 4096, 4096);
    let cold_start = Conditions { cache: CacheState::ColdStart, ..warm.clone() };
    let (warm, cold_start) = (OffsetTable::new(&warm, 3), OffsetTable::new(&cold_start, 3));
    let (warm, cold_start) = (warm.expect("table"), cold_start.expect("table"));
    assert!(cold_start.repeats());
    assert_eq!(warm.offsets(), cold_start.offsets());
}

#[test]
fn popular_places_are_scattered_and_as_popular_as_they_should_be() {
    let uniform = conditions(Workload::RandomRead, CacheState::ColdStart, 64 << 20, 16384, 4096);
    let skewed = with(uniform.clone(), |reads| reads.skew = zipf(990));
    let table = OffsetTable::with_page(&skewed, 5, 4096).expect("table");
    assert!(table.repeats());
    assert!(table.offsets().iter().all(|offset| offset % 16384 == 0 && offset + 16384 <= 64 << 20));
    let mut draws: HashMap<u64, u64> = HashMap::new();
    table.offsets().iter().for_each(|offset| *draws.entry(*offset).or_default() += 1);
    let mut by_popularity: Vec<(u64, u64)> = draws.into_iter().map(|(place, draws)| (draws, place)).collect();
    by_popularity.sort_unstable_by(|left, right| right.cmp(left));
    let total: f64 = (1..=4096).map(|rank| f64::from(rank).powf(-0.99)).sum();
    for (rank, (draws, _)) in (1..).zip(&by_popularity[..10]) {
        let expected = table.reads() as f64 * f64::from(rank).powf(-0.99) / total;
        assert!((*draws as f64 / expected - 1.0).abs() < 0.1, "rank {rank}: {draws} draws, not {expected}");
    }
    // In each eighth of the span some of the 64 most popular places.
    let eighths: HashSet<u64> = by_popularity[..64].iter().map(|(_, place)| place >> 23).collect();
    assert_eq!(eighths.len(), 8);
    // Other seeds have other favourites.
    let other = OffsetTable::with_page(&skewed, 6, 4096).expect("table");
    let favourite = |offsets: &[u64]| {
        let mut draws: HashMap<u64, u64> = HashMap::new();
        offsets.iter().for_each(|offset| *draws.entry(*offset).or_default() += 1);
        draws.into_iter().max_by_key(|(_, draws)| *draws).expect("draws").0
    };
    assert_ne!(favourite(table.offsets()), favourite(other.offsets()));
}

#[test]
fn unaligned_popular_places_are_unaligned_and_share_no_page() {
    let unaligned = conditions(Workload::RandomRead, CacheState::AsIs, 4 << 20, 1000, 1);
    let skewed = with(unaligned, |reads| reads.skew = zipf(500));
    let table = OffsetTable::with_page(&skewed, 5, 4096).expect("table");
    let distinct: HashSet<u64> = table.offsets().iter().copied().collect();
    let pages: HashSet<u64> =
        distinct.iter().flat_map(|start| [start / 4096, (start + 999) / 4096]).collect();
    let crossing = distinct.iter().filter(|start| *start / 4096 != (*start + 999) / 4096).count();
    assert_eq!(pages.len(), distinct.len() + crossing);
    assert!(distinct.iter().filter(|start| !start.is_multiple_of(4096)).count() > distinct.len() / 2);
}

#[test]
fn sequential_operations_can_be_skewed() {
    let uniform = conditions(Workload::SequentialRead, CacheState::Warm, 8 << 20, 4096, 4096);
    let skewed = with(uniform, |reads| reads.skew = zipf(1200));
    let table = OffsetTable::with_page(&skewed, 5, 4096).expect("table");
    let mut starts: HashMap<u64, u64> = HashMap::new();
    for operation in table.offsets().chunks_exact(4) {
        assert!(operation.windows(2).all(|pair| pair[1] == pair[0] + 4096));
        assert!(operation[0].is_multiple_of(16384), "blocks are disjoint");
        *starts.entry(operation[0]).or_default() += 1;
    }
    // 1 / sum of k^-1.2 over 512 blocks is 0.215.
    let most = *starts.values().max().expect("starts") as f64 / table.operations() as f64;
    assert!((0.19..0.24).contains(&most), "{most}");
}

/// Content seen by a child in memory into which a table was put in this order; only zeros before.
fn seen_by_child(table: &OffsetTable, order: &OperationOrder) -> Vec<u64> {
    let mut memory = TableMemory::new(table.reads()).expect("memory");
    assert!(
        read_by_child(&memory).iter().all(|entry| *entry == 0),
        "something is there before it is put there"
    );
    let any = conditions(Workload::RandomRead, CacheState::Warm, 1 << 20, 4096, 4096);
    let reference = Reference::for_dataset(table, &any, 77, 4096).expect("reference");
    memory.put(table, order, &PiecesOfGo { reference: &reference, first_operation: 0, reads: 0 });
    read_by_child(&memory)
}

/// A worker that reads finds the offsets of all its passes, wherever it begins; one that does not
/// knows the first two pieces.
#[test]
fn the_offsets_of_a_piece_are_known_when_the_piece_before_the_last_is_read() {
    const SPAN: u64 = 1 << 20;
    const OF_PIECE: u64 = 10;
    let mut bytes = vec![0; SPAN as usize];
    content::fill(77, 0, &mut bytes);
    for cache in [CacheState::Warm, CacheState::Cold] {
        let conditions = conditions(Workload::RandomRead, cache, SPAN, 4096, 4096);
        let table = OffsetTable::new(&conditions, 3).expect("table");
        let reference = Reference::for_dataset(&table, &conditions, 77, 4096).expect("reference");
        let part = table.operations_per_thread();
        for (first, order) in [(0, table.as_drawn()), (7, table.anew(7)), (part + 3, table.anew(3))] {
            let mut memory = TableMemory::new(table.reads()).expect("memory");
            memory.put(
                &table,
                &order,
                &PiecesOfGo { reference: &reference, first_operation: first, reads: 40 },
            );
            let entries = read_by_child(&memory);
            let consumption = table.consumption(4096);
            for thread in 0..2 {
                let (mut masks, mut checksum, mut hidden) = (Masks::default(), 0u64, 0);
                for done in 0..part {
                    if done > 0 && done % OF_PIECE == 0 {
                        masks.end_piece(std::mem::take(&mut checksum));
                    }
                    let place = thread * part + (first + done) % part;
                    let truth = table.operation(&order, thread as u32, (first + done) % part).expect("there");
                    for (read, offset) in (place * 4..).zip(truth) {
                        let entry = entries[read as usize];
                        assert_eq!(entry ^ masks.mask(), *offset, "{cache} from {first}: {done}");
                        hidden += u64::from(entry != *offset);
                        let of_read = consumption.of(&bytes[*offset as usize..][..4096]);
                        checksum = checksum.wrapping_add(weight(read).wrapping_mul(of_read));
                    }
                }
                assert_eq!(hidden, (part - 2 * OF_PIECE) * 4, "all but the first two pieces");
            }
        }
    }
}

/// Each part of a trace begins with two pieces without a mask.
#[test]
fn recorded_reads_come_in_pieces_by_thread() {
    let entries: Vec<u64> = (100..110).collect();
    let checksums: Vec<u64> = (0..10).map(|read| 1 << (20 + read)).collect();
    let mut memory = TableMemory::new(10).expect("memory");
    memory.put_recorded(&entries, &[7, 0, 3], 2, &checksums);
    let masks = [0, 0, 0, 0, 0b11, 0b11, 0b1100, 0, 0, 0].map(|bits: u64| bits << 20);
    let expected: Vec<u64> = entries.iter().zip(masks).map(|(entry, mask)| entry ^ mask).collect();
    assert_eq!(read_by_child(&memory), expected);
    let mut with_gaps = TableMemory::new(20).expect("memory");
    with_gaps.put_recorded(&entries, &[10], 10, &checksums);
    let gaps: Vec<u64> = (0..10).map(|read| read * 7).collect();
    with_gaps.put_behind(entries.len(), &gaps);
    assert_eq!(read_by_child(&with_gaps), [entries, gaps].concat(), "no mask is on a gap");
}

#[test]
fn the_touched_word_is_whole_in_each_page() {
    let drawn = |read_bytes| (0..500).map(move |seed| touched_word(read_bytes, 4096, seed));
    for (read_bytes, words) in
        [(4096, 512), (16384, 512), (4096 + 80, 10), (100, 12), (4096 + 7, 1), (8, 1), (3, 1)]
    {
        let words: HashSet<u64> = (0..words).map(|word| 8 * word).collect();
        assert!(drawn(read_bytes).all(|at| words.contains(&at)), "{read_bytes}");
        let found = drawn(read_bytes).collect::<HashSet<u64>>().len();
        assert!(found > words.len() / 3, "{read_bytes}: {found} of {}", words.len());
    }
}

fn read_by_child(memory: &TableMemory) -> Vec<u64> {
    let output = std::process::Command::new("cat").arg(path_of(memory)).output().expect("cat");
    output.stdout.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8"))).collect()
}

#[test]
fn dependent_offsets_are_hidden_behind_the_data_before_them() {
    const SPAN: u64 = 1 << 20;
    let mut bytes = vec![0; SPAN as usize];
    content::fill(77, 0, &mut bytes);
    let file = crate::scratch::nameless_file(&std::env::temp_dir()).expect("file");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("write");
    for (workload, read, align) in
        [(Workload::RandomRead, 4096, 4096), (Workload::RandomRead, 9, 1), (Workload::SequentialRead, 512, 8)]
    {
        let independent = conditions(workload, CacheState::Warm, SPAN, read, align);
        let dependent = with(independent.clone(), |reads| reads.dependent = true);
        let plain = OffsetTable::new(&independent, 3).expect("table");
        let mut of_dataset = OffsetTable::new(&dependent, 3).expect("table");
        let mut of_file = OffsetTable::new(&dependent, 3).expect("table");
        of_dataset.chain_dataset(77).expect("chain");
        of_file.chain_file(&file, SPAN, &AtomicBool::new(false)).expect("chain");
        // The only difference here is the memory that it takes.
        assert_eq!(of_dataset.offsets(), plain.offsets());
        let order = plain.as_drawn();
        assert_eq!(of_dataset.operation(&order, 1, 5), plain.operation(&order, 1, 5));
        assert_eq!(of_dataset.memory_bytes(), 2 * plain.memory_bytes());
        // In any order: a chain does not cross the end of its operation.
        for order in [of_dataset.as_drawn(), of_dataset.anew(0)] {
            let entries = seen_by_child(&of_dataset, &order);
            assert_eq!(seen_by_child(&of_file, &order), entries);
            let part = plain.operations_per_thread();
            for (place, entries) in entries.chunks_exact(4).enumerate() {
                let (thread, operation) = (place as u64 / part, place as u64 % part);
                let offsets = plain.operation(&order, thread as u32, operation).expect("in the table");
                let mut link = 0;
                for (entry, offset) in entries.iter().zip(offsets) {
                    assert_eq!(entry ^ link, *offset);
                    let at = *offset as usize;
                    link = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8"));
                }
            }
        }
    }
    // Independent reads need no chain, and requesting one changes nothing.
    let mut plain = OffsetTable::new(&conditions(Workload::RandomRead, CacheState::Warm, SPAN, 9, 1), 3);
    let table = plain.as_mut().expect("table");
    table.chain_dataset(77).expect("nothing to do");
    assert_eq!(table.entries(), table.offsets());
}

#[test]
#[should_panic(expected = "chained to the data")]
fn a_dependent_table_is_not_handed_out_unchained() {
    let independent = conditions(Workload::RandomRead, CacheState::Warm, 1 << 20, 4096, 4096);
    let dependent = with(independent, |reads| reads.dependent = true);
    let _ = OffsetTable::new(&dependent, 1).expect("table").entries();
}

#[test]
fn a_child_finds_the_table_when_it_is_put_there_and_cannot_write_to_it() {
    let conditions = conditions(Workload::RandomRead, CacheState::Warm, 1 << 20, 4096, 4096);
    let table = OffsetTable::new(&conditions, 5).expect("table");
    assert!(seen_by_child(&table, &table.as_drawn()) == table.offsets());
    let memory = TableMemory::new(table.reads()).expect("memory");
    let write = format!("echo x 2> /dev/null 1<> {}", path_of(&memory));
    let status = std::process::Command::new("sh").args(["-c", &write]).status();
    assert!(!status.expect("sh").success(), "a child wrote to the table");
    assert!(read_by_child(&memory).iter().all(|entry| *entry == 0));
}

#[test]
fn another_order_has_the_same_operations_elsewhere() {
    let warm = conditions(Workload::RandomRead, CacheState::Warm, 8 << 20, 16384, 4096);
    let cold = Conditions { cache: CacheState::Cold, ..warm.clone() };
    for conditions in [warm, cold] {
        let table = OffsetTable::with_page(&conditions, 5, 4096).expect("table");
        let part = table.operations_per_thread();
        let of = |order: &OperationOrder, thread: u32| -> Vec<Vec<u64>> {
            let at = |operation| table.operation(order, thread, operation).expect("a place").to_vec();
            (0..part).map(at).collect()
        };
        for thread in 0..2 {
            let (drawn, other) = (of(&table.as_drawn(), thread), of(&table.anew(7), thread));
            assert_eq!(other, of(&table.anew(7), thread), "the seed decides");
            let kept = drawn.iter().zip(&other).take_while(|(drawn, other)| drawn == other).count();
            if table.repeats() {
                let turn = drawn.iter().position(|operation| *operation == other[0]).expect("a turned part");
                assert!((part / 3..=2 * part / 3).contains(&(turn as u64)), "{turn} of {part}");
                assert!(other[..other.len() - turn] == drawn[turn..], "neighbours stay neighbours");
            } else {
                assert!(
                    (7..drawn.len()).contains(&kept),
                    "what is done and does not come again stays where it was"
                );
            }
            let sorted = |mut operations: Vec<Vec<u64>>| {
                operations.sort_unstable();
                operations
            };
            assert!(sorted(drawn) == sorted(other), "a thread keeps its part");
        }
    }
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
            let ranges: Vec<(u64, u64)> = if sequential {
                vec![(operation[0], operation[3] + read)]
            } else {
                operation.iter().map(|offset| (*offset, offset + read)).collect()
            };
            for (start, end) in ranges {
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

#[test]
fn what_follows_others_was_not_done_yet_while_enough_is_left() {
    let conditions = conditions(Workload::RandomRead, CacheState::Warm, 64 << 20, 4096, 4096);
    let table = OffsetTable::new(&conditions, 5).expect("table");
    let part = table.operations_per_thread();
    for done in [0, 1, part / 3, part / 2, part * 3 / 4] {
        let order = table.anew(done);
        let next = |index: u64| table.operation(&order, 0, done + index).expect("it repeats").as_ptr();
        let drawn = table.as_drawn();
        let before: HashSet<*const u64> =
            (0..done).map(|index| table.operation(&drawn, 0, index).expect("it repeats").as_ptr()).collect();
        let room = part - done;
        assert!((0..room / 3).all(|index| !before.contains(&next(index))), "{done} of {part} are done");
        assert!(done == 0 || next(0) != table.operation(&drawn, 0, done).expect("it repeats").as_ptr());
    }
}
