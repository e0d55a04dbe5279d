//! Figures of one sample.

use pagewise_model::counters::RateWindow;
use pagewise_model::sample::Measurement;
use pagewise_model::{Cell, Evidence, rate};

use crate::statistics::total;

/// Fewest operations of a sample that was cut short.
const ENOUGH_OPERATIONS: u64 = 100;
/// The fastest operations at a rate, as a share of all.
const USUAL_SHARE: f64 = 0.95;

/// Operations of both phases of the sample.
pub fn operations(measurement: &Measurement) -> u64 {
    measurement.operations.saturating_add(measurement.latency_phase_within().0)
}

/// Sum of set-up, the time between it and the throughput phase, that phase, tear-down, and what the
/// worker's clock leaves out of them: work done before the clock starts counts. The gaps of a
/// replay do not, in which it waits as its program did.
pub fn total_ns(measurement: &Measurement) -> u64 {
    let Measurement { setup_ns, warmup_ns, measured_ns, teardown_ns, unaccounted_ns, gaps_ns, .. } =
        measurement;
    total([setup_ns, warmup_ns, measured_ns, teardown_ns, unaccounted_ns]).saturating_sub(*gaps_ns)
}

/// The completed share of fixed work: of the ring in all passes, or of the file. `None` if the work
/// is not fixed.
pub fn covered(cell: &Cell, measurement: &Measurement) -> Option<f64> {
    let all = cell.conditions.fixed_operations().filter(|all| *all > 0)?;
    Some((measurement.operations as f64 / all as f64).min(1.0))
}

/// True if all of the fixed work was completed.
pub(crate) fn is_done(cell: &Cell, measurement: &Measurement) -> bool {
    cell.conditions.fixed_operations().is_none_or(|all| measurement.operations >= all)
}

/// The throughput phase, with what the worker's clock leaves out of it, less the gaps of a replay.
pub fn region_ns(measurement: &Measurement) -> u64 {
    region_with_gaps_ns(measurement).saturating_sub(measurement.gaps_ns)
}

/// The throughput phase, with what the worker's clock leaves out of it: the time that the device
/// had for its reads.
pub fn region_with_gaps_ns(measurement: &Measurement) -> u64 {
    measurement.measured_ns.saturating_add(measurement.unaccounted_in_region_ns)
}

/// Duration of consecutive windows, with what the worker's clock leaves out of them.
pub fn duration_ns(windows: &[RateWindow]) -> u64 {
    windows.iter().fold(0, |sum, window| sum.saturating_add(window.duration_ns()))
}

/// Operations per second of the throughput phase.
pub fn ops_per_second(measurement: &Measurement) -> f64 {
    measurement.operations as f64 * 1e9 / region_ns(measurement) as f64
}

/// Verdict of a sample on the rate at which its operations were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateOutcome {
    /// The rate was kept.
    Kept,
    /// The rate was not kept: too few of the operations that were due are done.
    Missed,
    /// Nothing: a cold sample ended after so few operations that a single slow one decides.
    CutShort,
}

/// Verdict of a sample on its rate; `None` without one.
pub fn rate_outcome(measurement: &Measurement) -> Option<RateOutcome> {
    let Measurement { operations, due_operations: due, cut_short, .. } = measurement;
    (*due > 0).then(|| match rate::keeps(*operations, *due) {
        _ if *cut_short && *operations < ENOUGH_OPERATIONS => RateOutcome::CutShort,
        true => RateOutcome::Kept,
        false => RateOutcome::Missed,
    })
}

/// Mean latency of the fastest 95 % of the operations at a rate, from the moment at which each was
/// due; `None` if the rate was not kept. The slowest are left out because their sum is that of what
/// other programs did: between samples of one method it differed by a factor of four.
pub fn usual_latency_ns(measurement: &Measurement) -> Option<f64> {
    let Measurement { latency_ns, latency_counts, .. } = measurement;
    if rate_outcome(measurement) != Some(RateOutcome::Kept) {
        return None;
    }
    let usual = (total(latency_counts) as f64 * USUAL_SHARE).ceil();
    let (mut counted, mut sum) = (0.0, 0.0);
    for (upper_ns, count) in latency_ns.iter().zip(latency_counts) {
        let of_bucket = (*count as f64).min(usual - counted);
        counted += of_bucket;
        sum += *upper_ns as f64 * of_bucket;
    }
    (counted > 0.0).then(|| sum / counted)
}

/// Bytes that the device wrote for the worker: those of any process, unless an actor writes, too.
pub fn device_written_bytes(evidence: &Evidence) -> Option<u64> {
    let beside_writes = evidence.actor.as_ref().is_some_and(|actor| actor.writes.is_some());
    evidence.device_written_bytes.filter(|_| !beside_writes)
}

/// Write amplification: bytes that the device wrote for each byte that reached the file.
pub fn written_per_byte(evidence: &Evidence) -> Option<f64> {
    Some(device_written_bytes(evidence)? as f64 / evidence.requested_bytes.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_operations_at_a_rate_are_not_usual() {
        let kept = Measurement {
            operations: 99,
            due_operations: 100,
            latency_ns: vec![1000, 3000, 900_000],
            latency_counts: vec![57, 39, 4],
            ..Measurement::default()
        };
        assert_eq!(usual_latency_ns(&kept), Some((57_000.0 + 38.0 * 3000.0) / 95.0));
        assert_eq!(usual_latency_ns(&Measurement { operations: 98, ..kept.clone() }), None, "not kept");
        let cut_short = |operations, due_operations| {
            rate_outcome(&Measurement { operations, due_operations, cut_short: true, ..kept.clone() })
        };
        assert_eq!(cut_short(3, 40), Some(RateOutcome::CutShort), "one slow operation decides");
        assert_eq!(cut_short(100, 400), Some(RateOutcome::Missed));
        assert_eq!(cut_short(100, 100), Some(RateOutcome::Kept));
        assert_eq!(usual_latency_ns(&Measurement { due_operations: 0, ..kept }), None, "no rate");
    }

    #[test]
    fn what_is_done_before_the_clock_starts_is_in_the_total() {
        let measurement = Measurement {
            setup_ns: 1,
            warmup_ns: 20,
            measured_ns: 300,
            teardown_ns: 4000,
            unaccounted_ns: 50_000,
            ..Measurement::default()
        };
        assert_eq!(total_ns(&measurement), 54_321);
        assert_eq!(total_ns(&Measurement { warmup_ns: u64::MAX, ..measurement.clone() }), u64::MAX);
        let with_gaps = Measurement { gaps_ns: 120, unaccounted_in_region_ns: 5, ..measurement };
        assert_eq!((total_ns(&with_gaps), region_ns(&with_gaps)), (54_201, 185));
        assert_eq!(region_with_gaps_ns(&with_gaps), 305);
    }
}
