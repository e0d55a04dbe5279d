//! Threads of one job used for several samples, as when the workload warms the cache before it is
//! measured.

use pagewise_model::pieces::Masks;
use pagewise_model::random::Random;
use pagewise_model::{Consume, Method};
use pagewise_protocol::{Job, PhaseBounds};
use pagewise_sys::FileMapping;

use super::*;
use crate::reader::tests::{
    DEPENDENT_METHODS, Fixture, METHODS, chained, expected_of, from_table, method, supported,
};
use crate::reader::{self, Due, TablePart};

const FILE_BYTES: u64 = 1 << 20;
const THREADS: u32 = 3;
const PART_OPERATIONS: u64 = 37;
const READS_PER_OP: u64 = 4;

/// Offsets of all threads.
fn offsets() -> Vec<u64> {
    let mut random = Random::new(8);
    (0..u64::from(THREADS) * PART_OPERATIONS * READS_PER_OP)
        .map(|_| random.below(FILE_BYTES / 4096) * 4096)
        .collect()
}

/// The checksum of each operation.
fn sums(job: &Job, consume: Consume, touch_at: u64) -> Vec<u64> {
    let offsets = offsets();
    let operations = from_table(&offsets).operations(READS_PER_OP as usize);
    operations.map(|operation| expected_of(Due { touch_at, ..operation }, job, consume)).collect()
}

/// Put a table in place for a `go`, in the pieces of the job.
fn put(memory: &mut SharedMemory, entries: &[u64], job: &Job, sums: &[u64], go: &Go) {
    let of_piece = match job.piece_reads {
        0 => PART_OPERATIONS,
        reads => reads / READS_PER_OP,
    };
    let first = go.first_operation % PART_OPERATIONS;
    let mut words = vec![0; entries.len()];
    for part in 0..u64::from(THREADS) {
        let mut masks = Masks::default();
        let places: Vec<u64> = (0..PART_OPERATIONS).map(|done| (first + done) % PART_OPERATIONS).collect();
        for piece in places.chunks(of_piece as usize) {
            let mut checksum = 0u64;
            for operation in piece.iter().map(|place| part * PART_OPERATIONS + place) {
                for read in operation * READS_PER_OP..(operation + 1) * READS_PER_OP {
                    words[read as usize] = entries[read as usize] ^ masks.mask();
                }
                checksum = checksum.wrapping_add(sums[operation as usize]);
            }
            masks.end_piece(checksum);
        }
    }
    for (into, word) in memory.bytes_mut().chunks_exact_mut(8).zip(words) {
        into.copy_from_slice(&word.to_le_bytes());
    }
}

/// Expected checksum of the operations that threads claim, from `first` on.
fn truth(sums: &[u64], first: u64, thread_operations: &[u64]) -> u64 {
    sums.chunks(PART_OPERATIONS as usize)
        .zip(thread_operations)
        .flat_map(|(part, done)| {
            (first..first + done).map(|operation| part[(operation % PART_OPERATIONS) as usize])
        })
        .fold(0, u64::wrapping_add)
}

/// Several samples by the same threads, each compared with the truth.
fn go_again_and_again(text: &str, job: &Job, consume: Consume, gos: &[Go]) {
    let sums = sums(job, consume, gos[0].touch_at);
    for per_thread in [false, true] {
        let table = if job.dependent == 1 { chained(&offsets()) } else { offsets() };
        let mut memory = SharedMemory::create("table", table.len() * 8).expect("memfd");
        let mapping = FileMapping::new(memory.file(), table.len() * 8, true).expect("map");
        let parts = TablePart::divide(mapping, job).expect("equal parts");
        let opened = reader::open(&method(text), job, consume, per_thread, parts);
        let Some(reads) = supported(text, opened) else { return };
        let threads = JobThreads::start(reads, Bounds::timed(job));
        for (index, go) in gos.iter().enumerate() {
            put(&mut memory, &table, job, &sums, go);
            let sample = threads.sample(go).expect(text);
            let what =
                format!("{text}, go {index} from {}: {:?}", go.first_operation, sample.thread_operations);
            let truth = truth(&sums, go.first_operation, &sample.thread_operations);
            assert_eq!(sample.checksum, format!("{truth:016x}"), "{what}");
            let all: u64 = sample.thread_operations.iter().sum();
            assert_eq!(sample.operations + sample.latency_operations, all, "{what}");
            assert!(sample.thread_operations.iter().all(|done| *done > 0), "{what}");
            assert_eq!(sample.bytes, all * READS_PER_OP * job.read_bytes, "{what}");
            let timed: u64 = sample.latency_counts.iter().sum();
            assert!(sample.latency_operations == 0 || sample.latency_operations == timed, "{what}");
            if job.bounds.max_thread_operations > 0 {
                let most = job.bounds.max_thread_operations;
                assert!(sample.thread_operations.iter().all(|done| *done <= most), "{what}");
            }
        }
        threads.end();
    }
}

/// A warm-up without and one with a latency phase, and samples from other positions. The progress
/// of threads differs in each, and they begin at the same operation again.
fn warm_up_and_measure(first: [u64; 4], touch_at: u64) -> Vec<Go> {
    [(3_000_000, 0), (1_000_000, 500_000), (1, 0), (2_000_000, 1_000_000)]
        .into_iter()
        .zip(first)
        .map(|((sample_ns, latency_ns), first_operation)| Go {
            first_operation,
            sample_ns,
            latency_ns,
            touch_at,
        })
        .collect()
}

#[test]
fn every_method_can_go_several_times() {
    let fixture = Fixture::new(FILE_BYTES);
    let job = fixture.job(4096, 4096, THREADS);
    let gos = warm_up_and_measure([0, 0, 36, 1000], 0);
    for text in METHODS.iter().chain(&["anonymous"]) {
        go_again_and_again(text, &job, Consume::Sum, &gos);
    }
    let dependent = Job { dependent: 1, ..job };
    for text in DEPENDENT_METHODS {
        go_again_and_again(text, &dependent, Consume::Sum, &gos);
    }
}

/// Pieces of one operation up to more than the part, so that a pass ends within one, with another
/// word of each page.
#[test]
fn a_piece_is_known_when_the_one_before_the_last_is_done() {
    let fixture = Fixture::new(FILE_BYTES);
    for (operations, consume) in
        [(1, Consume::Sum), (5, Consume::Touch), (36, Consume::Touch), (64, Consume::Sum)]
    {
        let job = Job { piece_reads: operations * READS_PER_OP, ..fixture.job(4096, 4096, THREADS) };
        let gos = warm_up_and_measure([0, 3, 36, 1000], 1016);
        // A method has no more under way than a piece holds.
        let fits = |text: &&&str| {
            text.parse::<Method>()
                .is_ok_and(|method| u64::from(method.prefetch_window().unwrap_or(0)) <= job.piece_reads)
        };
        for text in METHODS.iter().filter(fits).chain(&["anonymous"]) {
            go_again_and_again(text, &job, consume, &gos);
        }
        let dependent = Job { dependent: 1, ..job.clone() };
        for text in DEPENDENT_METHODS {
            go_again_and_again(text, &dependent, consume, &gos);
        }
    }
}

/// Other data lead to entries that are no offsets: every method ends with the same sentence.
#[test]
fn a_piece_of_other_data_ends_with_a_sentence() {
    let fixture = Fixture::new(FILE_BYTES);
    let job = Job { piece_reads: 2 * READS_PER_OP, ..fixture.job(4096, 4096, THREADS) };
    let go = Go { sample_ns: u64::MAX / 4, ..Go::default() };
    let wrong: Vec<u64> = sums(&job, Consume::Sum, 0).iter().map(|sum| sum ^ (1 << 62)).collect();
    for text in METHODS {
        let mut memory =
            SharedMemory::create("table", wrong.len() * READS_PER_OP as usize * 8).expect("memfd");
        let mapping =
            FileMapping::new(memory.file(), wrong.len() * READS_PER_OP as usize * 8, true).expect("map");
        let parts = TablePart::divide(mapping, &job).expect("equal parts");
        let Ok(reads) = reader::open(&method(text), &job, Consume::Sum, false, parts) else { continue };
        let threads = JobThreads::start(reads, Bounds::timed(&job));
        put(&mut memory, &offsets(), &job, &wrong, &go);
        let failure = threads.sample(&go).map(drop).expect_err(text);
        assert!(
            failure.detail.contains("they differ from those used to build the offset table"),
            "{text}: {}",
            failure.detail
        );
        threads.end();
    }
}

#[test]
fn a_bounded_sample_goes_on_where_the_one_before_ended() {
    let fixture = Fixture::new(FILE_BYTES);
    let job = Job { bounds: PhaseBounds::shared(9, 0), ..fixture.job(4096, 4096, THREADS) };
    // Bounded by operations alone.
    let gos: Vec<Go> = [0, 9, 18, 27]
        .map(|first_operation| Go {
            first_operation,
            sample_ns: u64::MAX / 4,
            latency_ns: u64::MAX / 4,
            ..Go::default()
        })
        .to_vec();
    for text in METHODS {
        go_again_and_again(text, &job, Consume::Sum, &gos);
    }
}
