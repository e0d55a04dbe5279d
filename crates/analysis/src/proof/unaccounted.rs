//! Time that a worker's clock leaves out and that counts all the same.
//!
//! The checks cannot call it a lie if it is less than they allow, but the time has passed. Of
//! one-shot work all of it is in the total. A rate is by the clocks of pagewise's own workers where
//! no other one takes part, and by the supervisor's clock otherwise: so whoever hides time gains
//! nothing.

use pagewise_model::sample::Measurement;
use pagewise_model::{Cell, CheckContext, Evidence, Worker};

use super::claims::{set_up_ns, turns};
use super::runtime::allowance;
use super::subject::Subject;
use crate::statistics::total;

/// Time of a throughput phase that the worker's clock leaves out, in ns, of `wall_ns` from `go` to
/// `sample` by the supervisor's.
///
/// Of a rate, the answer of an honest worker is forgiven, and everything where all workers of the
/// run are pagewise's. Of one-shot work an answer is forgiven there, and nothing where another
/// worker takes part, which could hide most of short work in it.
pub fn unaccounted_in_region_ns(cell: &Cell, context: &CheckContext, measured_ns: u64, wall_ns: u64) -> u64 {
    // What is done at a rate is ranked by latencies, and not by what passed in all.
    let is_total = cell.conditions.is_one_shot() && cell.conditions.rate.is_none();
    match (is_total, context.forgives_answers) {
        (true, _) => left_out(cell, context, measured_ns, wall_ns),
        (false, true) => 0,
        (false, false) => wall_ns.saturating_sub(measured_ns.saturating_add(context.answer_ns)),
    }
}

/// All time that counts in what a sample is ranked by though its worker's clock leaves it out, in
/// ns: that of the region, and of one-shot work that of set-up and tear-down and the CPU time
/// between the phases, when there is nothing to do. CPU time is forgiven to the runtimes of
/// pagewise's own workers, which have work of their own.
pub fn unaccounted_ns(
    cell: &Cell,
    measurement: &Measurement,
    evidence: &Evidence,
    context: &CheckContext,
) -> u64 {
    let in_region_ns = measurement.unaccounted_in_region_ns;
    if !cell.conditions.is_one_shot() {
        return in_region_ns;
    }
    let subject = Subject { cell, measurement, evidence, context };
    let outside =
        |(claimed_ns, wall_ns): (u64, Option<u64>)| left_out(cell, context, claimed_ns, wall_ns.unwrap_or(0));
    total([
        &outside(set_up_ns(&subject)),
        &in_region_ns,
        &outside((measurement.teardown_ns, evidence.teardown_wall_ns)),
        &idle_cpu_ns(&subject).unwrap_or(0),
    ])
}

/// Time of a part of one-shot work that is beyond the worker's clock and the answers that are
/// forgiven.
fn left_out(cell: &Cell, context: &CheckContext, claimed_ns: u64, wall_ns: u64) -> u64 {
    let late_ns = if is_own_runtime(cell) { allowance(cell.method.worker()).answer_ns } else { 0 };
    let answers_ns = context.answer_ns.saturating_mul(turns(cell, context)).saturating_add(late_ns);
    let answers_ns = if context.forgives_answers { answers_ns } else { 0 };
    wall_ns.saturating_sub(claimed_ns.saturating_add(answers_ns))
}

fn is_own_runtime(cell: &Cell) -> bool {
    let worker = cell.method.worker();
    worker.has_runtime() && Worker::SHIPPED.contains(worker)
}

/// CPU time that was used while there was nothing to do. The account of a thread that is running is
/// behind by up to a tick: what it did before `go` is in that of the region.
fn idle_cpu_ns(subject: &Subject<'_>) -> Option<u64> {
    let evidence = subject.evidence;
    if is_own_runtime(subject.cell) || subject.context.beating.is_some() {
        return None;
    }
    let idle_ns = evidence.waiting.as_ref()?.cpu_ns?;
    let in_region_ns = evidence.wall_ns.saturating_mul(u64::from(subject.threads_with_cpu_time()));
    let all_ns = idle_ns.saturating_add(evidence.cpu_ns.unwrap_or(0));
    Some(idle_ns.max(all_ns.saturating_sub(in_region_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest::{CONTEXT, cell, fill, measurement_of};
    use crate::proof::measured::{ops_per_second, total_ns};
    use pagewise_model::CacheState::{Cold, Warm};
    use pagewise_model::sample::OutsideActivity;

    fn context(forgives_answers: bool) -> CheckContext {
        CheckContext { answer_ns: 100_000, forgives_answers, ..CONTEXT }
    }

    const WALL_NS: u64 = 10_000_000;

    #[test]
    fn what_the_clock_of_one_shot_work_leaves_out_is_part_of_its_total() {
        let failures_of = |cell: &Cell,
                           claimed_ns: u64,
                           (idle_cpu_ns, region_cpu_ns): (u64, u64),
                           forgives_answers: bool| {
            let context = context(forgives_answers);
            let mut measurement = Measurement {
                measured_ns: claimed_ns,
                unaccounted_in_region_ns: unaccounted_in_region_ns(cell, &context, claimed_ns, WALL_NS),
                ..measurement_of(cell)
            };
            let evidence = Evidence {
                wall_ns: 10_000_000,
                setup_wall_ns: Some(measurement.setup_ns),
                warmup_wall_ns: Some(measurement.warmup_ns),
                teardown_wall_ns: Some(measurement.teardown_ns),
                waiting: Some(OutsideActivity { cpu_ns: Some(idle_cpu_ns), ..OutsideActivity::default() }),
                cpu_ns: Some(region_cpu_ns),
                ..Evidence::default()
            };
            measurement.unaccounted_ns = unaccounted_ns(cell, &measurement, &evidence, &context);
            total_ns(&measurement)
        };
        let total = |cell: &Cell, claimed_ns, idle_cpu_ns| {
            failures_of(cell, claimed_ns, (idle_cpu_ns, 9_900_000), true)
        };
        let mine = fill("mine/mmap", Cold);
        let whole = total(&mine, 9_900_000, 0);
        // 10 ms and a twentieth may be left out without being a lie: they count all the same.
        for claimed_ns in [1_000, 1_000_000, 5_000_000] {
            assert_eq!(total(&mine, claimed_ns, 0), whole, "{claimed_ns}");
        }
        assert_eq!(
            total(&mine, 9_900_000, 8_000_000),
            whole + 8_000_000,
            "work while there is nothing to do"
        );
        assert_eq!(total(&mine, 9_950_000, 0), whole + 50_000, "an answer may be quicker than the usual one");
        assert_eq!(
            total(&fill("jvm/mmap", Cold), 9_900_000, 8_000_000),
            whole,
            "a runtime has work of its own"
        );
        assert_eq!(
            failures_of(&fill("mmap", Cold), 9_900_000, (0, 17_000_000), true),
            total(&fill("mmap", Cold), 9_900_000, 0) + 7_000_000,
            "one thread used at most 10 ms in 10: others that were running at `go` used the rest before"
        );
        for claimed_ns in [9_900_000, 9_990_000, 1_000_000] {
            let other = failures_of(&mine, claimed_ns, (0, 9_900_000), false);
            assert_eq!(other, whole + 100_000, "the answer of somebody else's worker counts: {claimed_ns}");
        }
    }

    /// The rate that ranks a sample which reports 1,000 operations in so much of 10 ms, in a
    /// run with another worker or without.
    fn rate(cell: &Cell, claimed_ns: u64, forgives_answers: bool) -> f64 {
        let context = context(forgives_answers);
        let mut measurement = Measurement {
            measured_ns: claimed_ns,
            operations: 1_000,
            unaccounted_in_region_ns: unaccounted_in_region_ns(cell, &context, claimed_ns, WALL_NS),
            ..measurement_of(cell)
        };
        measurement.unaccounted_ns = unaccounted_ns(cell, &measurement, &Evidence::default(), &context);
        assert_eq!(measurement.unaccounted_ns, measurement.unaccounted_in_region_ns);
        ops_per_second(&measurement).round()
    }

    #[test]
    fn who_hides_time_gains_nothing_where_somebody_elses_worker_takes_part() {
        for cell in [cell("mine/pread", Warm), cell("pread", Cold), cell("jvm/mmap", Warm)] {
            // An honest worker takes an answer, or three; ten milliseconds are no lie that a check
            // could find.
            for claimed_ns in [9_900_000, 9_700_000, 5_000_000, 1] {
                assert_eq!(rate(&cell, claimed_ns, false), 101_010.0, "{claimed_ns} of {}", cell.id());
            }
            assert_eq!(rate(&cell, 9_700_000, true), 103_093.0, "all workers are pagewise's");
            assert_eq!(rate(&cell, 9_950_000, false), 100_503.0, "an answer may be quicker");
        }
    }
}
