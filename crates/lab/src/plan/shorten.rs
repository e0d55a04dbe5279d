//! A plan for a time that the whole run may take.
//!
//! Samples have what datasets leave of it. If that does not pay for the first rounds, samples get
//! shorter and files smaller: fewer digits in less time, but every method in every round.

use anyhow::{Result, ensure};
use pagewise_model::format::{duration, time};
use pagewise_model::limits::MAX_BUDGET_NS;
use pagewise_model::plan::Budget;
use pagewise_model::{Bytes, Cell, Conditions, Plan, Role, Source};

use super::{Layer, MissingArgument, estimate};

/// Samples and files are halved at most so often.
const HALVINGS: u32 = 2;
/// A smaller file of one-shot work is done in less time than its clock measures well.
const LEAST_ONE_SHOT: Bytes = Bytes::mib(16);
/// A smaller file for reads is used up by a few cold samples, or lies in the CPU's own cache.
const LEAST_READ: Bytes = Bytes::mib(256);

/// A shorter sample is none.
const LEAST_SAMPLE_NS: u64 = 1_000_000;

/// Parameters that nobody chose, so that they may be smaller.
#[derive(Clone, Copy, Debug)]
pub struct Unpinned {
    samples: bool,
    files: bool,
    /// True if `--quick` is there to measure less.
    has_quick: bool,
}

impl Unpinned {
    /// Parameters left open by the layer that has the time and those above it, where the changes
    /// of `quick` could be used.
    pub fn beside(chosen: &[&Layer], quick: Option<&Layer>) -> Self {
        let has_sample = |layer: &&Layer| layer.sampling.sample_ns.is_some();
        Self {
            has_quick: quick.is_some_and(|quick| *quick != Layer::default()),
            samples: !chosen.iter().any(has_sample),
            files: !chosen.iter().any(|layer| layer.chooses_files()),
        }
    }
}

/// The plan that takes about `time_ns` in all.
pub fn within(plan: Plan, time_ns: u64, unpinned: Unpinned) -> Result<Plan> {
    ensure!(
        time_ns <= MAX_BUDGET_NS,
        "{} is too long: write at most {}",
        duration(time_ns),
        duration(MAX_BUDGET_NS)
    );
    let (mut plan, mut needed_ns) = (plan, 0);
    for halvings in 0..=HALVINGS {
        if halvings > 0 {
            plan = halved(plan, unpinned);
        }
        let beside_ns = estimate::beside_samples_ns(&plan);
        needed_ns = beside_ns.saturating_add(estimate::first_rounds_ns(&plan));
        if needed_ns <= time_ns {
            return Ok(Plan { budget: Some(Budget::of(time_ns - beside_ns)), ..plan });
        }
    }
    Err(MissingArgument::Time(format!(
        "{} rounds of each method of {} need about {} s, and the budget is {}: write --budget {}s or more{}, or \
         leave out methods or conditions",
        plan.first_rounds(),
        plan.question,
        needed_ns.div_ceil(1_000_000_000),
        time(time_ns),
        named_s(needed_ns),
        if unpinned.has_quick { " or --quick" } else { "" }
    ))
    .into())
}

/// The shortest time for which there is a plan.
pub fn least_ns(plan: &Plan, unpinned: Unpinned) -> u64 {
    let shortest = (0..HALVINGS).fold(plan.clone(), |plan, _| halved(plan, unpinned));
    estimate::beside_samples_ns(&shortest).saturating_add(estimate::first_rounds_ns(&shortest))
}

/// Seconds to write where so much time is needed, with a twentieth more: another start may find
/// less free memory, or more of it, and so other sizes.
pub fn named_s(needed_ns: u64) -> u64 {
    needed_ns.saturating_add(needed_ns / 20).div_ceil(1_000_000_000)
}

/// Half of everything that may be less.
fn halved(mut plan: Plan, unpinned: Unpinned) -> Plan {
    if unpinned.samples {
        let half = |ns: u64| (ns / 2).max(LEAST_SAMPLE_NS);
        let least_ns = Plan::least_sample_ns(&plan.cells);
        plan.sample_ns = half(plan.sample_ns).max(least_ns);
        plan.memory_sample_ns = plan.memory_sample_ns.map(|ns| half(ns).max(least_ns));
    }
    // Parts of a file, and multiples of a cache, have their sizes for a reason.
    let may_shrink = |cell: &Cell| {
        let Conditions { file_bytes, span_bytes, threads, host_settings, .. } = &cell.conditions;
        // A cold sample brings in a quarter of the file, and every thread at least one operation.
        let operations = cell.conditions.reads().map_or(0, |_| cell.conditions.op_bytes());
        span_bytes == file_bytes
            && host_settings.memory_limit_bytes.is_none()
            && host_settings.device_cap.is_none()
            && operations.saturating_mul(u64::from(*threads)) <= file_bytes.0 / 8
    };
    let is_dataset = matches!(plan.source, Source::Dataset { .. });
    if !unpinned.files || !is_dataset || !plan.cells.iter().all(may_shrink) {
        return plan;
    }
    let is_one_shot =
        plan.cells.iter().filter(|cell| cell.role != Role::Ceiling).all(|cell| cell.conditions.is_one_shot());
    let least = if is_one_shot { LEAST_ONE_SHOT } else { LEAST_READ };
    for cell in &mut plan.cells {
        let conditions = &mut cell.conditions;
        if conditions.file_bytes.0 / 2 >= least.0 {
            conditions.file_bytes = Bytes(conditions.file_bytes.0 >> 21 << 20);
            conditions.span_bytes = conditions.file_bytes;
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::resolve::Variant;
    use crate::plan::resolve::tests::resolved;

    const UNPINNED: Unpinned = Unpinned { samples: true, files: true, has_quick: false };

    #[test]
    fn a_short_time_shortens_samples_and_files_but_takes_no_method_away() {
        for question in ["read", "scan", "append"] {
            let plan = resolved(question, Variant::Quick, &Layer::default());
            let usual = estimate::duration_ns(&plan);
            let least = least_ns(&plan, UNPINNED);
            assert!(least * 2 < usual, "{question}: {least} of {usual}");
            let short = within(plan.clone(), least, UNPINNED).expect("it pays");
            assert_eq!(short.cells.len(), plan.cells.len());
            assert!(short.cells[0].conditions.file_bytes < plan.cells[0].conditions.file_bytes);
            assert!(estimate::duration_ns(&short) <= least);
            let whole = within(plan.clone(), usual, UNPINNED).expect("it pays");
            assert_eq!(whole.cells, plan.cells, "nothing is smaller than it need be");
            let refused = within(plan.clone(), least - 1, UNPINNED).expect_err("too short").to_string();
            assert!(
                refused.contains("5 rounds of each method of ") && !refused.contains("--quick"),
                "{refused}"
            );
            let quicker = within(plan.clone(), 1_000_000, Unpinned { has_quick: true, ..UNPINNED })
                .expect_err("too short");
            assert!(quicker.to_string().contains(", and the budget is 1 ms: "), "{quicker}");
            assert!(quicker.to_string().contains("s or more or --quick, or"), "{quicker}");
            let chosen = Unpinned { samples: false, files: false, ..UNPINNED };
            assert!(within(plan.clone(), least, chosen).is_err(), "what was chosen stays");
        }
    }
}
