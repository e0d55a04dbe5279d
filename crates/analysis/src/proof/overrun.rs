//! The end of a cold sample: it must not fill the cache that it bypasses.

use pagewise_model::{CacheState, Cell, format::percent_of};

use super::conditions::READAHEAD_SLACK_BYTES;
use super::subject::Subject;

/// Bytes of the span that may be in the page cache after a cold sample: its budget, readahead that
/// was still in flight, and blocks that its budget did not count. `None` for a cell that brings in
/// nothing, or everything.
pub(crate) fn cold_bound_bytes(cell: &Cell) -> Option<u64> {
    let conditions = &cell.conditions;
    let is_bounded = conditions.cache == CacheState::Cold
        && conditions.workload().is_reading()
        && cell.depends_on_cache()
        && !cell.method.reads_all_in_setup();
    let slack = READAHEAD_SLACK_BYTES.saturating_add(conditions.span_bytes.0 / 16);
    is_bounded.then(|| conditions.cold_budget_bytes().saturating_add(slack))
}

/// Operations bring in up to so many times as much as others of the sample.
const UNEVEN: u64 = 2;

/// A cold sample must not fill the cache it bypasses. A thread stops after the operation that
/// reaches the budget, so what its last operation brings in may go beyond it: with a readahead that
/// is large for the file, a sample is of one operation. If there were others before it, they
/// brought in less than the budget together, which bounds the last one too.
pub(super) fn cold_overrun(subject: &Subject<'_>) -> Option<String> {
    let (cell, evidence) = (subject.cell, subject.evidence);
    let bound = cold_bound_bytes(cell)?;
    let threads = u64::from(cell.conditions.threads).max(1);
    let of_operation = subject.device_bytes().unwrap_or(0) / subject.operations().max(1);
    let before_the_last = subject.operations().div_ceil(threads).saturating_sub(1);
    let by_those_before = match before_the_last {
        0 => u64::MAX,
        operations => (cell.conditions.cold_budget_bytes() / operations).saturating_mul(UNEVEN),
    };
    let last_operations = of_operation.saturating_mul(threads).min(by_those_before);
    let most = bound.saturating_add(last_operations).saturating_add(ahead_of_requests(subject));
    let resident = evidence.resident_after_bytes.filter(|resident| *resident > most)?;
    Some(format!(
        "{resident} bytes of the span ({}) were in the page cache after it, at most {most} may be: \
         it went on after its budget was spent",
        percent_of(resident, cell.conditions.span_bytes.0)
    ))
}

/// Readahead that requests in flight set off at once, each a window of its own, beyond what a
/// single reader leaves in flight.
fn ahead_of_requests(subject: &Subject<'_>) -> u64 {
    let conditions = &subject.cell.conditions;
    let at_once = conditions.reads_per_op().min(subject.cell.method.depth());
    if at_once <= 1 {
        return 0;
    }
    let readahead = subject.evidence.readahead_bytes.unwrap_or(READAHEAD_SLACK_BYTES);
    (u64::from(at_once) * u64::from(conditions.threads))
        .saturating_mul(readahead)
        .saturating_sub(READAHEAD_SLACK_BYTES)
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{cell, kinds};
    use pagewise_model::CacheState::Cold;
    use pagewise_model::Evidence;
    use pagewise_model::FailureKind::ColdOverrun;
    use pagewise_model::sample::Measurement;

    #[test]
    fn a_cold_sample_that_fills_the_cache_is_noticed() {
        let after = |mib: u64| {
            move |_: &mut _, evidence: &mut Evidence| evidence.resident_after_bytes = Some(mib << 20)
        };
        assert_eq!(kinds(&cell("pread", Cold), after(96)), []);
        assert_eq!(kinds(&cell("pread", Cold), after(97)), [ColdOverrun]);
        assert_eq!(kinds(&cell("mmap:populate", Cold), after(256)), []);
        assert_eq!(
            kinds(&cell("mmap:willneed", Cold), after(256)),
            [ColdOverrun],
            "it fills no more than others"
        );
    }

    #[test]
    fn requests_in_flight_have_a_readahead_each() {
        let after = |mib: u64| {
            move |_: &mut _, evidence: &mut Evidence| {
                (evidence.resident_after_bytes, evidence.readahead_bytes) = (Some(mib << 20), Some(8 << 20));
            }
        };
        let ring = cell("uring:depth=4", Cold);
        assert!(
            !kinds(&ring, after(112)).contains(&ColdOverrun),
            "4 windows, of which 16 MiB are every reader's"
        );
        assert!(kinds(&ring, after(160)).contains(&ColdOverrun));
        assert!(
            kinds(&cell("pread", Cold), after(112)).contains(&ColdOverrun),
            "one at a time has no more than that"
        );
    }

    #[test]
    fn a_last_operation_may_fill_the_cache_and_no_other() {
        // The readahead of an operation of 16 reads brings in 120 MiB of 256.
        let operations = |operations: u64, device_mib: u64, after_mib: u64| {
            move |measurement: &mut Measurement, evidence: &mut Evidence| {
                let reads = measurement.operations + measurement.latency_phase_operations;
                evidence.requested_bytes = evidence.requested_bytes / reads * operations;
                (measurement.operations, measurement.latency_phase_operations) = (operations, 0);
                evidence.device_read_bytes = Some(device_mib << 20);
                evidence.resident_after_bytes = Some(after_mib << 20);
            }
        };
        let overruns = |change: &dyn Fn(&mut Measurement, &mut Evidence)| {
            kinds(&cell("mmap", Cold), |measurement, evidence| change(measurement, evidence))
                .contains(&ColdOverrun)
        };
        assert!(!overruns(&operations(1, 120, 120)));
        assert!(!overruns(&operations(2, 180, 160)));
        assert!(overruns(&operations(6, 300, 250)));
    }
}
