//! The policy of sampling, in one place: the numbers of batches, gaps and stalls by which every
//! worker takes a sample, and the bounds of its phases. They are sent with each job;
//! `workers/PROTOCOL.md` has the rules that use them.

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

/// Bounds of the phases of a `go`, which ends early so that a cold file stays cold and a table is
/// not repeated; 0: unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseBounds {
    /// Operations of a thread in both phases.
    pub max_thread_operations: u64,
    /// Operations of a thread in the throughput phase.
    pub throughput_operations: u64,
    /// Bytes that storage reads for the worker in the throughput phase.
    pub throughput_device_bytes: u64,
    /// Bytes that storage reads for the worker in the latency phase.
    pub latency_device_bytes: u64,
}

impl PhaseBounds {
    /// Bounds of two phases that do at most so much together: the first has three quarters of it.
    pub const fn shared(operations: u64, device_bytes: u64) -> Self {
        let quarter = device_bytes / 4;
        Self {
            max_thread_operations: operations,
            throughput_operations: operations - operations.div_ceil(4) + (operations == 1) as u64,
            throughput_device_bytes: if quarter == 0 { device_bytes } else { quarter * 3 },
            latency_device_bytes: if quarter == 0 { device_bytes } else { quarter },
        }
    }

    /// Bounds of a `go` that no latency phase follows.
    pub const fn of_throughput(operations: u64, device_bytes: u64) -> Self {
        Self {
            max_thread_operations: operations,
            throughput_operations: operations,
            throughput_device_bytes: device_bytes,
            latency_device_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_throughput_phase_has_three_quarters_and_at_least_an_operation() {
        for (operations, of_throughput) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (1000, 750), (1001, 750)]
        {
            let bounds = PhaseBounds::shared(operations, 4096);
            assert_eq!(bounds.throughput_operations, of_throughput, "{operations}");
            assert_eq!((bounds.throughput_device_bytes, bounds.latency_device_bytes), (3072, 1024));
        }
        let most = PhaseBounds::shared(u64::MAX, u64::MAX);
        assert_eq!(most.throughput_operations, u64::MAX / 4 * 3 + 2);
        assert_eq!(PhaseBounds::shared(0, 0), PhaseBounds::default(), "unbounded");
    }
}
