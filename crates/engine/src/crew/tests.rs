//! One crew used for several samples, as when the workload warms the cache before it is measured.

use pagewise_model::random::Random;
use pagewise_model::{Consume, Method};

use super::*;
use crate::reader::tests::{DEPENDENT_METHODS, Fixture, METHODS, chained, expected_of, from_table, mapped};
use crate::reader::{self, TableReads};

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
fn sums(job: &Job) -> Vec<u64> {
    let offsets = offsets();
    let operations = from_table(&offsets).operations(READS_PER_OP as usize);
    operations.map(|operation| expected_of(operation, job, Consume::Sum)).collect()
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

/// Several samples of one crew, each compared with the truth.
fn go_again_and_again(text: &str, job: &Job, sums: &[u64], gos: &[Go]) {
    let method = if text == "anonymous" { Method::anonymous() } else { text.parse::<Method>().expect(text) };
    for per_thread in [false, true] {
        let readers = match reader::open(&method, job, Consume::Sum, per_thread) {
            Ok(readers) => readers,
            Err(failure) if failure.unavailable == 1 => {
                println!("skipped: method: {text}: {}", failure.detail);
                return;
            }
            Err(failure) => panic!("{text}: {}", failure.detail),
        };
        let table = if job.dependent == 1 { chained(&offsets()) } else { offsets() };
        let reads = TableReads::divide(readers, mapped(&table), job);
        let crew = Crew::start(reads, Bounds::timed(job));
        for (index, go) in gos.iter().enumerate() {
            let sample = crew.sample(go).expect(text);
            let what =
                format!("{text}, go {index} from {}: {:?}", go.first_operation, sample.thread_operations);
            let truth = truth(sums, go.first_operation, &sample.thread_operations);
            assert_eq!(sample.checksum, format!("{truth:016x}"), "{what}");
            let all: u64 = sample.thread_operations.iter().sum();
            assert_eq!(sample.operations + sample.latency_operations, all, "{what}");
            assert!(sample.thread_operations.iter().all(|done| *done > 0), "{what}");
            assert_eq!(sample.bytes, all * READS_PER_OP * job.read_bytes, "{what}");
            let timed: u64 = sample.latency_counts.iter().sum();
            assert!(sample.latency_operations == 0 || sample.latency_operations == timed, "{what}");
            if job.max_thread_operations > 0 {
                let most = job.max_thread_operations;
                assert!(sample.thread_operations.iter().all(|done| *done <= most), "{what}");
            }
        }
        crew.end();
    }
}

/// A warm-up without and one with a latency phase, and samples from other positions. The progress of threads differs in
/// each, and they begin at the same operation again.
fn warm_up_and_measure(first: [u64; 4]) -> Vec<Go> {
    [(3_000_000, 0), (1_000_000, 500_000), (1, 0), (2_000_000, 1_000_000)]
        .into_iter()
        .zip(first)
        .map(|((sample_ns, latency_ns), first_operation)| Go {
            first_operation,
            sample_ns,
            latency_ns,
            ..Go::default()
        })
        .collect()
}

#[test]
fn every_method_can_be_told_to_go_several_times() {
    let fixture = Fixture::new(FILE_BYTES);
    let job = fixture.job(4096, 4096, THREADS);
    let sums = sums(&job);
    for text in METHODS.iter().chain(&["anonymous"]) {
        go_again_and_again(text, &job, &sums, &warm_up_and_measure([0, 0, 36, 1000]));
    }
    let dependent = Job { dependent: 1, ..job };
    for text in DEPENDENT_METHODS {
        go_again_and_again(text, &dependent, &sums, &warm_up_and_measure([0, 0, 36, 1000]));
    }
}

#[test]
fn a_bounded_sample_goes_on_where_the_one_before_ended() {
    let fixture = Fixture::new(FILE_BYTES);
    let job = Job { max_thread_operations: 9, ..fixture.job(4096, 4096, THREADS) };
    let sums = sums(&job);
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
        go_again_and_again(text, &job, &sums, &gos);
    }
}
