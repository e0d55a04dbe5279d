//! The checks of the gaps of a replay: the trace says how long they are, and they are no part of
//! what its method is ranked by.

use pagewise_model::format::time;

use super::cpu_waits::{SLICE_NS, WAIT_SHARE};
use super::measured::total_ns;
use super::subject::Subject;

/// The gaps of the trace in all.
fn gaps_ns(subject: &Subject<'_>) -> u64 {
    subject.cell.conditions.gaps_ns()
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
    let reads_ns = total_ns(measurement).saturating_sub(late_ns);
    let most = (reads_ns as f64 * WAIT_SHARE) as u64 + SLICE_NS;
    (late_ns > most).then(|| {
        format!(
            "the waits in gaps ended {} late in all, beside {} of set-up, reads and tear-down, and {} may be",
            time(late_ns),
            time(reads_ns),
            time(most)
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::proof::honest::{kinds, replay, replay_with_gaps};
    use pagewise_model::Evidence;
    use pagewise_model::FailureKind::{Disturbed, FalseTime, NotInForce};
    use pagewise_model::sample::{Measurement, OutsideActivity};

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
    fn waits_for_a_cpu_are_held_against_the_time_without_gaps() {
        let lost = |cell: &pagewise_model::Cell, lost_ms: u64| {
            kinds(cell, |_, evidence| {
                (evidence.run_queue_ns, evidence.cpu_ns) = (Some(lost_ms * MS), Some(20 * MS));
                evidence.supervisor_run_queue_ns = Some(0);
                let outside = |wall_ms: u64| OutsideActivity {
                    wall_ns: wall_ms * MS,
                    cpu_ns: Some(wall_ms * MS),
                    run_queue_ns: Some(0),
                    supervisor_run_queue_ns: Some(0),
                    ..OutsideActivity::default()
                };
                (evidence.before_ready, evidence.closing) = (Some(outside(30)), Some(outside(20)));
            })
        };
        let (kept, left_out) = (replay_with_gaps("pread"), replay("pread"));
        assert_eq!((lost(&kept, 20), lost(&left_out, 30)), (vec![], vec![]));
        assert_eq!((lost(&kept, 30), lost(&left_out, 40)), (vec![Disturbed], vec![Disturbed]));
    }

    #[test]
    fn waits_that_end_late_are_noticed() {
        // The total is 30 + 40 + 20 ms without gaps, 71 or 70 of them without the late ends: a
        // fifth of that and a slice may be.
        assert_eq!(of(100, 101, 60 + 19), []);
        assert_eq!(of(100, 101, 60 + 20), [Disturbed]);
    }
}
