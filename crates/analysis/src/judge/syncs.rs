//! Syncs within the measured region: their rate, the bytes that each covers, and the durations of
//! all of them.

use pagewise_model::SyncCall;
use pagewise_model::sample::Measurement;
use serde::Serialize;

use super::collected::CellSamples;
use super::figure::MedianInterval;
use super::latency::Durations;
use crate::proof::measured::{region_ns, written_per_byte};
use crate::statistics::{median, total};

/// The syncs of all valid samples of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Syncs {
    /// The call.
    pub call: SyncCall,
    /// True if synced bytes survive a loss of power, as far as the kernel and the device keep their
    /// word.
    pub is_durable: bool,
    /// True if the file is stored in memory.
    pub in_memory: bool,
    /// Syncs per second of the measured region.
    pub per_second: Option<MedianInterval>,
    /// Bytes that reached the file for each sync.
    pub bytes_per_sync: Option<MedianInterval>,
    /// Write amplification: bytes that the device wrote for each byte that reached the file.
    pub device_bytes_per_byte: Option<f64>,
    /// Half of the syncs took at most this long, in ns; `None` with too few syncs or processes, as
    /// the others.
    pub p50: Option<u64>,
    /// 99 of 100 did: from 1,000 syncs on.
    pub p99: Option<u64>,
    /// 999 of 1,000 did: from 10,000 syncs on.
    pub p999: Option<u64>,
    /// The longest of them.
    pub max: u64,
    /// Number of syncs.
    pub count: u64,
}

impl Syncs {
    /// `None` if none of the samples had a sync.
    pub(crate) fn of(samples: &CellSamples<'_>, in_memory: bool) -> Option<Self> {
        let call = samples.cell.sync_call()?;
        let mut durations = Durations::default();
        for (measurement, _) in samples.valid() {
            durations.add(&measurement.sync_duration_ns, &measurement.sync_duration_counts);
        }
        let max = durations.longest()?;
        let syncs = |measurement: &Measurement| total(&measurement.sync_duration_counts) as f64;
        let per_second =
            samples.figures(|measurement, _| syncs(measurement) * 1e9 / region_ns(measurement).max(1) as f64);
        let bytes =
            samples.figures(|measurement, seen| seen.requested_bytes as f64 / syncs(measurement).max(1.0));
        Some(Self {
            call,
            is_durable: call.is_durable() && !in_memory,
            in_memory,
            device_bytes_per_byte: median(&samples.known(|_, seen| written_per_byte(seen))),
            per_second: MedianInterval::of(&per_second),
            bytes_per_sync: MedianInterval::of(&bytes),
            p50: durations.quantile(0.5),
            p99: durations.quantile(0.99),
            p999: durations.quantile(0.999),
            max,
            count: durations.count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use pagewise_model::{Append, Bytes, Cell, Conditions, Evidence, Outcome, Role, Sample, Sync, Work};

    use super::*;
    use crate::judge::collected;

    fn cell() -> Cell {
        let sync = Sync::Every(Bytes(100));
        let append = Append { record_bytes: Bytes(100), passes: 1, sync, sync_call: None };
        let conditions = Conditions::of(Work::Append(append), Bytes::kib(100));
        Cell { role: Role::Measured, method: "mmap".parse().expect("a method"), conditions }
    }

    #[test]
    fn syncs_are_merged_over_processes() {
        let cell = cell();
        let sample = |round: u32, count: u64, longest: u64| {
            let measurement = Measurement {
                operations: count,
                measured_ns: 500_000_000,
                sync_duration_ns: vec![1000, longest],
                sync_duration_counts: vec![count - 1, 1],
                ..Measurement::default()
            };
            let evidence = Box::new(Evidence { requested_bytes: 100 * count, ..Evidence::default() });
            Sample::of(
                &cell,
                round,
                Outcome::Taken { measurement: Box::new(measurement), evidence, failures: Vec::new() },
            )
        };
        let samples: Vec<Sample> = (0..5).map(|round| sample(round, 1000, 2000 + u64::from(round))).collect();
        let syncs = Syncs::of(&collected::of_samples(&cell, &samples), false).expect("syncs");
        assert_eq!((syncs.call, syncs.is_durable), (SyncCall::Msync, true));
        assert_eq!((syncs.count, syncs.max, syncs.p50, syncs.p99), (5000, 2004, Some(1000), Some(1000)));
        assert_eq!(syncs.p999, None, "fewer than ten are beyond it");
        assert_eq!(syncs.per_second.map(|rate| rate.median), Some(2000.0));
        assert_eq!(syncs.bytes_per_sync.map(|bytes| bytes.median), Some(100.0));
        let memory = Syncs::of(&collected::of_samples(&cell, &samples), true).expect("syncs");
        assert!(memory.in_memory && !memory.is_durable);
        let none = Sample::of(&cell, 0, Outcome::Unavailable { reason: "none".into() });
        assert_eq!(Syncs::of(&collected::of_samples(&cell, &[none]), false), None);
    }
}
