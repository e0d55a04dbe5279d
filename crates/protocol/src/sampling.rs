//! The policy of sampling: the numbers by which every worker takes a sample, in one place. They are
//! sent with each job; `workers/PROTOCOL.md` has the rules that use them.

use serde::{Deserialize, Serialize};

/// Numbers of the rules for batches, gaps and stalls. The default is what pagewise sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingPolicy {
    /// A shorter batch is doubled.
    pub batch_min_ns: u64,
    /// A longer batch of several operations is halved.
    pub batch_max_ns: u64,
    /// A shorter mean gap between operations with a measured latency is doubled: its clock readings
    /// would be noticeable.
    pub gap_min_ns: u64,
    /// A longer mean gap is halved: there would be few latencies.
    pub gap_max_ns: u64,
    /// The mean gap has been found after this many measures in a row that did not double it: a
    /// stall among the first ones must not end its growth.
    pub gap_measures: u64,
    /// Excess of a stalled batch over its operations' average.
    pub stall_ns: u64,
    /// Interval of looks at the bytes that storage has read, which cost a system call.
    pub device_check_ns: u64,
}

impl Default for SamplingPolicy {
    fn default() -> Self {
        Self {
            batch_min_ns: 50_000,
            batch_max_ns: 200_000,
            gap_min_ns: 40_000,
            gap_max_ns: 160_000,
            gap_measures: 3,
            stall_ns: 1_000_000,
            device_check_ns: 1_000_000,
        }
    }
}
