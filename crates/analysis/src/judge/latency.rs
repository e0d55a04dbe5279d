//! Latency of single operations: merged histograms of samples and their quantiles.
//!
//! A worker reports the upper ends of its buckets with counts. Merging adds the counts, so a
//! quantile of the merged histogram is that of all operations, not an average of quantiles. A
//! quantile is given if ten operations lie beyond it, of five processes at least: those of one
//! process share what it met by chance. The longest operation grows with the number of operations,
//! so it comes with that number.

use std::collections::BTreeMap;

use pagewise_model::sample::Measurement;
use serde::Serialize;

use crate::statistics::total;

/// Fewest operations beyond a quantile.
const BEYOND: f64 = 10.0;
/// Fewest processes whose operations support a quantile.
const PROCESSES: usize = 5;

/// Latencies of all valid samples of a cell, merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Latency {
    /// Half of the operations took at most this long; `None` with too few operations or processes,
    /// as the others.
    pub p50: Option<u64>,
    /// 90 of 100 did: from 100 operations on.
    pub p90: Option<u64>,
    /// 99 of 100 did: from 1,000 operations on.
    pub p99: Option<u64>,
    /// 999 of 1,000 did: from 10,000 operations on.
    pub p999: Option<u64>,
    /// 9,999 of 10,000 did: from 100,000 operations on.
    pub p9999: Option<u64>,
    /// The longest operation of the latency phase or the longest stall of the throughput phase.
    pub max: u64,
    /// Number of timed operations.
    pub operations: u64,
    /// The operations that were timed.
    pub taken: TimedOperations,
}

/// The operations of a cell that were timed, by their names in the judged JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub enum TimedOperations {
    /// At a rate: all.
    #[serde(rename = "every operation that was due, from that moment on")]
    Due,
    /// Operations of a phase that measures nothing else.
    #[serde(rename = "every operation of a separate phase")]
    OwnPhase,
    /// All of the measured phase.
    #[serde(rename = "every operation of the measured phase")]
    All,
    /// Some of the measured phase.
    #[serde(rename = "some operations of the measured phase, at random gaps")]
    Some,
}

/// Durations of all samples of a cell, merged, with the rules for their quantiles.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    counts: BTreeMap<u64, u64>,
    processes: usize,
}

impl Durations {
    /// Add the histogram of a process: upper ends of buckets and the numbers in them.
    pub(crate) fn add(&mut self, upper_ns: &[u64], counts: &[u64]) {
        self.processes += usize::from(!upper_ns.is_empty());
        for (upper_ns, count) in upper_ns.iter().zip(counts) {
            let all = self.counts.entry(*upper_ns).or_default();
            *all = all.saturating_add(*count);
        }
    }

    /// Number of durations.
    pub(crate) fn count(&self) -> u64 {
        total(self.counts.values())
    }

    /// The longest; `None` if there is none.
    pub(crate) fn longest(&self) -> Option<u64> {
        Some(*self.counts.iter().rev().find(|(_, count)| **count > 0)?.0)
    }

    /// A quantile, if enough durations lie beyond it and enough processes support it.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        // Rounding must not take an operation from those beyond.
        let is_supported = count as f64 * (1.0 - share) >= BEYOND - 1e-6;
        (self.processes >= PROCESSES && is_supported).then(|| at_share(&self.counts, count, share))
    }
}

impl Latency {
    /// Merge the histograms of `measurements`; `None` if none of them timed an operation.
    pub fn merged<'a>(measurements: impl IntoIterator<Item = &'a Measurement>) -> Option<Self> {
        let mut durations = Durations::default();
        let (mut stall_longest, mut own_phase, mut of_all, mut paced) = (0, true, true, true);
        for measurement in measurements {
            durations.add(&measurement.latency_ns, &measurement.latency_counts);
            stall_longest = stall_longest.max(measurement.stall_longest_ns);
            paced &= measurement.due_operations > 0;
            own_phase &= measurement.latency_phase_operations > 0;
            of_all &= total(&measurement.latency_counts) == measurement.operations;
        }
        let longest = durations.longest()?;
        let taken = match (own_phase, of_all) {
            _ if paced => TimedOperations::Due,
            (true, _) => TimedOperations::OwnPhase,
            (false, true) => TimedOperations::All,
            (false, false) => TimedOperations::Some,
        };
        Some(Self {
            p50: durations.quantile(0.5),
            p90: durations.quantile(0.9),
            p99: durations.quantile(0.99),
            p999: durations.quantile(0.999),
            p9999: durations.quantile(0.9999),
            max: longest.max(stall_longest),
            operations: durations.count(),
            taken,
        })
    }
}

/// The smallest bucket end at or below which `share` of the operations lie.
fn at_share(counts: &BTreeMap<u64, u64>, operations: u64, share: f64) -> u64 {
    let wanted = ((operations as f64 * share).ceil() as u64).max(1);
    let mut seen = 0u64;
    for (upper_ns, count) in counts {
        seen = seen.saturating_add(*count);
        if seen >= wanted {
            return *upper_ns;
        }
    }
    counts.keys().next_back().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measurement(latency_ns: Vec<u64>, latency_counts: Vec<u64>) -> Measurement {
        let operations = latency_counts.iter().sum();
        Measurement { operations, latency_ns, latency_counts, ..Measurement::default() }
    }

    #[test]
    fn quantiles_are_of_all_operations_together() {
        let fast = measurement(vec![100], vec![2250]);
        let slow = measurement(vec![5000], vec![1000]);
        let latency = Latency::merged([&fast, &fast, &fast, &fast, &slow]).expect("timed");
        let quantiles = [latency.p50, latency.p90, latency.p99, latency.p999];
        assert_eq!(quantiles, [Some(100), Some(100), Some(5000), Some(5000)]);
        assert_eq!(latency.taken, TimedOperations::All);
    }

    #[test]
    fn a_quantile_needs_ten_operations_beyond_it_and_five_processes() {
        let known = |processes: usize, operations: u64| {
            let one = measurement(vec![100], vec![operations]);
            let latency = Latency::merged(vec![&one; processes]).expect("timed");
            [latency.p50, latency.p90, latency.p99, latency.p999].map(|quantile| quantile.is_some())
        };
        assert_eq!(known(5, 3), [false; 4]);
        assert_eq!(known(5, 4), [true, false, false, false]);
        assert_eq!(known(5, 20), [true, true, false, false]);
        assert_eq!(known(5, 200), [true, true, true, false]);
        assert_eq!(known(5, 2_000), [true; 4]);
        assert_eq!(known(4, 100_000), [false; 4]);
        let deep = |operations: u64| {
            let one = measurement(vec![100], vec![operations]);
            Latency::merged(vec![&one; 5]).expect("timed").p9999.is_some()
        };
        assert_eq!([19_999, 20_000].map(deep), [false, true]);
    }

    #[test]
    fn a_stall_of_the_throughput_phase_is_not_missed() {
        let stalled = Measurement { stall_longest_ns: 7_000_000, ..measurement(vec![100], vec![9]) };
        let latency = Latency::merged([&stalled]).expect("timed");
        assert_eq!((latency.max, latency.p50, latency.operations), (7_000_000, None, 9));
    }

    #[test]
    fn how_latency_was_taken_is_said() {
        let own =
            Measurement { latency_phase_operations: 9, operations: 50, ..measurement(vec![1], vec![9]) };
        let taken = |one| Latency::merged([one]).expect("timed").taken;
        assert_eq!(taken(&own), TimedOperations::OwnPhase);
        let paced = Measurement { due_operations: 9, operations: 8, ..measurement(vec![1], vec![9]) };
        assert_eq!(taken(&paced), TimedOperations::Due);
        let gaps = Measurement { operations: 50, ..measurement(vec![1], vec![9]) };
        assert_eq!(taken(&gaps), TimedOperations::Some);
        assert_eq!(Latency::merged([&Measurement::default()]), None);
    }

    proptest! {
        #[test]
        fn merging_equals_one_histogram_of_all(
            left in prop::collection::vec(1u64..1_000_000, 1..200),
            right in prop::collection::vec(1u64..1_000_000, 1..200),
        ) {
            let single = |values: &[u64]| measurement(values.to_vec(), vec![1; values.len()]);
            let both = [left.clone(), right.clone()].concat();
            let (left, right, both) = (single(&left), single(&right), single(&both));
            prop_assert_eq!(
                Latency::merged([&left, &right, &both, &both, &both, &both]),
                Latency::merged([&both; 5])
            );
        }
    }
}
