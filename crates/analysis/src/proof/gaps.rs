//! The checks of the gaps of a replay: the trace says how long they are, and they are no part of
//! what its method is ranked by.

use pagewise_model::format::time;

use super::cpu_waits::{SLICE_NS, WAIT_SHARE};
use super::measured::total_ns;
use super::subject::Subject;

/// The gaps of the trace in all.
fn gaps_ns(subject: &Subject<'_>) -> u64 {
    subject.cell.conditions.work.parameters().gaps_ns()
}

/// The measured region is not shorter than the gaps in it, by either clock, and the worker waited
/// for all of them.
pub(super) fn not_kept(subject: &Subject<'_>) -> Option<String> {
    let (measurement, evidence) = (subject.measurement, subject.evidence);
    let gaps_ns = gaps_ns(subject);
    let of_all = |what: &str, ns: u64| {
        format!("{what} {ns} ns, and the gaps between the reads of the trace are {gaps_ns} ns in all")
    };
    if measurement.gaps_ns != gaps_ns {
        return Some(of_all("gaps were left out of the total for", measurement.gaps_ns));
    }
    for (what, ns) in [
        ("the worker's clock ran for", measurement.measured_ns),
        ("from go to sample it took", evidence.wall_ns),
        ("the worker waited for", measurement.gap_wait_ns),
    ] {
        if ns < gaps_ns {
            return Some(of_all(what, ns));
        }
    }
    None
}

/// Waits that end late are time of the method, which did not cause it: the thread only waited for
/// the end of a gap.
pub(super) fn ended_late(subject: &Subject<'_>) -> Option<String> {
    let measurement = subject.measurement;
    let late_ns = measurement.gap_wait_ns.saturating_sub(gaps_ns(subject));
    let most = (total_ns(measurement) as f64 * WAIT_SHARE) as u64 + SLICE_NS;
    (late_ns > most).then(|| {
        format!(
            "the waits in gaps ended {} late in all, of {} that the reads took, and {} may be",
            time(late_ns),
            time(total_ns(measurement)),
            time(most)
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{kinds, replay, replay_with_gaps};
    use pagewise_model::Evidence;
    use pagewise_model::FailureKind::{Disturbed, FalseTime, NotInForce};
    use pagewise_model::sample::Measurement;

    const MS: u64 = 1_000_000;

    /// A sample whose region, with gaps of 60 ms, takes so many ms by the worker's clock and by the
    /// supervisor's; the worker says that it waited so long.
    fn of(region_ms: u64, wall_ms: u64, waited_ms: u64) -> Vec<pagewise_model::FailureKind> {
        kinds(&replay_with_gaps("pread"), |measurement, evidence| {
            measurement.measured_ns = region_ms * MS;
            measurement.gap_wait_ns = waited_ms * MS;
            evidence.wall_ns = wall_ms * MS;
        })
    }

    #[test]
    fn honest_replays_with_gaps_pass() {
        for method in ["pread", "mmap", "mmap:random", "pread:direct", "uring:direct+depth=32"] {
            assert_eq!(kinds(&replay_with_gaps(method), |_, _| ()), [], "{method}");
        }
        assert_eq!(of(100, 101, 61), []);
    }

    #[test]
    fn gaps_that_were_not_waited_for_are_noticed() {
        assert_eq!(of(59, 61, 59), [NotInForce], "the region is shorter");
        assert_eq!(of(61, 62, 59), [NotInForce], "it did something else meanwhile");
        assert_eq!(of(61, 59, 60), [FalseTime, NotInForce], "its clock says more than passed");
    }

    #[test]
    fn gaps_are_those_of_the_trace() {
        let others = |gaps_ms| {
            move |measurement: &mut Measurement, _: &mut Evidence| measurement.gaps_ns = gaps_ms * MS
        };
        for gaps_ms in [0, 59, 61] {
            assert_eq!(kinds(&replay_with_gaps("mmap"), others(gaps_ms)), [NotInForce], "{gaps_ms}");
        }
        assert_eq!(kinds(&replay("mmap"), others(10)), [NotInForce], "it keeps none");
    }

    #[test]
    fn waits_that_end_late_are_noticed() {
        // The total is 30 + 40 + 20 ms without gaps: 18 ms and a slice may be.
        assert_eq!(of(100, 101, 60 + 22), []);
        assert_eq!(of(100, 101, 60 + 24), [Disturbed]);
    }
}
