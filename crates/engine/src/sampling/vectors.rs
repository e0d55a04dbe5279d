//! `workers/vectors.json`: results that every worker must compute from the same seeds and times.

use pagewise_protocol::SamplingPolicy;
use serde::Deserialize;

use super::empty_latencies;
use super::fixed::Gaps;
use super::stalls::Stalls;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Vector {
    /// Gaps are drawn one after the other, and the mean is adapted after each to the time of its
    /// operations.
    Gaps {
        seed: u64,
        gap_min_ns: u64,
        gap_max_ns: u64,
        gap_measures: u64,
        /// Time of an operation, for each gap.
        op_ns: Vec<u64>,
        gaps: Vec<u64>,
        /// 1: the latencies until then are discarded.
        grows: Vec<u64>,
    },
    /// Batches: their operations and times.
    Stalls { stall_ns: u64, operations: Vec<u64>, took_ns: Vec<u64>, stalls: u64, stall_longest_ns: u64 },
    /// Times, and the histogram of a worker whose buckets are 1/128 of a power of two.
    Latencies { took_ns: Vec<u64>, latency_ns: Vec<u64>, latency_counts: Vec<u64> },
}

/// Upper end of such a bucket. This worker's own buckets are finer, and none of them crosses the
/// end of such a bucket.
fn bucket_end(ns: u64) -> u64 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(8);
    (((ns >> shift) + 1) << shift) - 1
}

#[test]
fn the_native_worker_reproduces_the_vectors() {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../../../../workers/vectors.json")).expect("vectors");
    assert!(vectors.len() > 20);
    for (index, vector) in vectors.into_iter().enumerate() {
        match vector {
            Vector::Gaps { seed, gap_min_ns, gap_max_ns, gap_measures, op_ns, gaps, grows } => {
                let policy =
                    SamplingPolicy { gap_min_ns, gap_max_ns, gap_measures, ..SamplingPolicy::default() };
                let mut drawn = Gaps::new(seed, policy);
                let made = op_ns.iter().map(|op_ns| {
                    let gap = drawn.draw();
                    (gap, u64::from(drawn.adapt(gap, gap * op_ns)))
                });
                let (found, thrown): (Vec<u64>, Vec<u64>) = made.unzip();
                assert_eq!((found, thrown), (gaps, grows), "vector {index}");
            }
            Vector::Stalls { stall_ns, operations, took_ns, stalls, stall_longest_ns } => {
                let mut found = Stalls::new(stall_ns);
                operations.iter().zip(took_ns).for_each(|(operations, took)| found.note(*operations, took));
                assert_eq!((found.count, found.longest_ns), (stalls, stall_longest_ns), "vector {index}");
            }
            Vector::Latencies { took_ns, latency_ns, latency_counts } => {
                let mut latencies = empty_latencies();
                took_ns.iter().for_each(|ns| latencies.saturating_record(*ns));
                let mut found: Vec<(u64, u64)> = Vec::new();
                for bucket in latencies.iter_recorded() {
                    let (end, count) =
                        (bucket_end(bucket.value_iterated_to()), bucket.count_since_last_iteration());
                    match found.last_mut().filter(|last| last.0 == end) {
                        Some(last) => last.1 += count,
                        None => found.push((end, count)),
                    }
                }
                assert_eq!(
                    found,
                    latency_ns.into_iter().zip(latency_counts).collect::<Vec<_>>(),
                    "vector {index}"
                );
            }
        }
    }
}
