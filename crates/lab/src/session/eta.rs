//! Reports on a run in progress: the time that is left, the leader, repeated samples.

use std::collections::HashMap;

use pagewise_analysis::judge::collected::ranked_figure;
use pagewise_analysis::judge::label::label;
use pagewise_analysis::statistics::median;
use pagewise_model::format::duration;
use pagewise_model::{Cell, Plan, Role, Sample};

use crate::plan::estimate;

/// A run that takes so many times as long as it said says so.
const OVERRUN: f64 = 1.25;
/// Nobody minds less.
const WORTH_SAYING_NS: u64 = 5_000_000_000;

/// Estimates of what was done and of what remains, and the time that the former took, datasets and
/// runs of a replayed program aside: the rest takes as long as that, in proportion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eta {
    /// Estimated time of the samples that were taken.
    pub done_ns: u64,
    /// Estimated time of the samples of the first rounds, or of a search, that remain.
    pub left_ns: u64,
    /// Time that passed meanwhile.
    pub passed_ns: u64,
    /// Time of all samples, once it is known: after the first rounds of a plan with a budget.
    pub budget_ns: Option<u64>,
}

impl Eta {
    /// Time that remains; for a plan with a budget, at most.
    pub fn left_ns(self, plan: &Plan, spent_ns: u64) -> u64 {
        let pace = match self.done_ns {
            0 => 1.0,
            done_ns => self.passed_ns as f64 / done_ns as f64,
        };
        let first_left = (self.left_ns as f64 * pace) as u64;
        if let Some(budget_ns) = self.budget_ns {
            return budget_ns.saturating_sub(spent_ns);
        }
        let Some(budget) = plan.budget else { return first_left };
        let first_ns = spent_ns.saturating_add(first_left);
        first_ns.max(budget.ns(first_ns)).saturating_sub(spent_ns)
    }

    /// A sentence on samples that will take longer than the plan says, now that the first round has
    /// shown how long they take.
    pub fn overrun(self, plan: &Plan, spent_ns: u64) -> Option<String> {
        let said_ns = estimate::first_rounds_ns(plan).max(estimate::budget_ns(plan).unwrap_or(0));
        let all_ns = spent_ns.saturating_add(self.left_ns(plan, spent_ns));
        let is_longer = all_ns as f64 > said_ns as f64 * OVERRUN && all_ns - said_ns > WORTH_SAYING_NS;
        is_longer.then(|| {
            format!(
                "note: the first round took {}, so the samples of {} will take {} {}, and not {}: every method needs {} rounds",
                duration(spent_ns),
                plan.question,
                if plan.budget.is_some() { "at most" } else { "about" },
                duration(all_ns),
                duration(said_ns),
                plan.first_rounds()
            )
        })
    }
}

/// Leaders of comparisons, for the eye: a verdict needs more than medians.
#[derive(Debug, Default)]
pub struct Leaders {
    /// Ranked figures, by the label of the conditions and by method.
    figures: HashMap<String, HashMap<String, Vec<f64>>>,
}

impl Leaders {
    /// Count a sample of `cell`.
    pub fn note(&mut self, cell: &Cell, sample: &Sample) {
        let figure = ranked_figure(cell, sample).filter(|_| cell.role == Role::Measured);
        let Some(figure) = figure else { return };
        let methods = self.figures.entry(label(&cell.conditions)).or_default();
        methods.entry(cell.method.to_string()).or_default().push(figure);
    }

    /// The method with the best median among those that `cell` is compared with; `None` before each
    /// of two has two samples.
    pub fn of(&self, cell: &Cell) -> Option<&str> {
        let methods = self.figures.get(&label(&cell.conditions))?.iter().filter(|(_, all)| all.len() > 1);
        let medians: Vec<(f64, &str)> =
            methods.filter_map(|(method, all)| Some((median(all)?, method.as_str()))).collect();
        let best = medians.iter().max_by(|left, right| left.0.total_cmp(&right.0))?;
        (medians.len() > 1).then_some(best.1)
    }
}

/// The content of the line of progress.
#[derive(Clone, Debug, Default)]
pub struct ProgressLine<'a> {
    /// Number of this question and of all, if there are several.
    pub question: Option<(usize, usize)>,
    /// Name.
    pub name: &'a str,
    /// The cell being measured.
    pub cell: &'a str,
    /// Time since the samples began, and the time that remains.
    pub spent_ns: u64,
    /// Time that remains.
    pub left_ns: u64,
    /// True if it may end earlier.
    pub at_most: bool,
    /// The leader of the cell's comparison.
    pub leader: Option<&'a str>,
    /// Samples that were taken again, and the last reason.
    pub repeated: (u64, Option<&'a str>),
}

impl ProgressLine<'_> {
    /// Done share in per cent; 100 only at the end.
    pub fn percent(&self) -> u64 {
        let all = u128::from(self.spent_ns) + u128::from(self.left_ns);
        (u128::from(self.spent_ns) * 100 / all.max(1)).min(99) as u64
    }

    /// Text.
    pub fn text(&self) -> String {
        let mut text = match self.question {
            Some((number, all)) => format!("question {number} of {all}, {}: ", self.name),
            None => format!("{}: ", self.name),
        };
        let left = duration(self.left_ns.max(1_000_000_000));
        text.push_str(&format!(
            "{} %, {} {left} left",
            self.percent(),
            if self.at_most { "at most" } else { "about" }
        ));
        text.push_str(&format!("; {}", self.cell));
        self.leader.iter().for_each(|leader| text.push_str(&format!("; {leader} leads")));
        if let (repeated @ 1.., Some(reason)) = self.repeated {
            text.push_str(&format!("; {repeated} repeated ({reason})"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Layer;
    use crate::plan::resolve::Variant;
    use crate::plan::resolve::tests::resolved;
    use pagewise_model::plan::Budget;

    #[test]
    fn the_time_left_is_right_within_a_quarter_from_half_way_on() {
        // Two kinds of samples, of which one takes three times as long as estimated, and the other
        // half as long.
        let samples: Vec<(u64, u64)> = (0..200).map(|index| [(80, 240), (60, 30)][index % 2]).collect();
        let all: u64 = samples.iter().map(|sample| sample.1).sum();
        let plan = Plan::of(Vec::new());
        let mut eta = Eta { left_ns: samples.iter().map(|sample| sample.0).sum(), ..Eta::default() };
        for (estimated, took) in samples {
            eta.done_ns += estimated;
            eta.left_ns -= estimated;
            eta.passed_ns += took;
            let (estimated, left) = (eta.left_ns(&plan, eta.passed_ns), all - eta.passed_ns);
            // A sample is the grain.
            let off = estimated.abs_diff(left).saturating_sub(240);
            assert!(eta.passed_ns * 2 < all || off * 4 <= left, "{estimated} estimated, {left} left");
        }
    }

    #[test]
    fn a_budget_is_what_is_left_at_most() {
        let plan = Plan {
            budget: Some(Budget { least_ns: 100, first_rounds_percent: 200 }),
            ..Plan::of(Vec::new())
        };
        // The first rounds take twice as long as estimated: 400 in all, and as much again.
        let eta = Eta { done_ns: 100, left_ns: 100, passed_ns: 200, budget_ns: None };
        assert_eq!(eta.left_ns(&plan, 200), 600);
        let eta = Eta { done_ns: 200, left_ns: 0, passed_ns: 700, budget_ns: Some(1000) };
        assert_eq!(eta.left_ns(&plan, 700), 300);
    }

    #[test]
    fn a_run_that_will_take_longer_than_it_said_says_so() {
        let plan = resolved("scan", Variant::Quick, &Layer::default());
        let plan = Plan { budget: Some(Budget::of(estimate::first_rounds_ns(&plan))), ..plan };
        let round_ns = estimate::first_rounds_ns(&plan) / u64::from(plan.first_rounds());
        let after = |factor: u64| {
            let (done_ns, passed_ns) = (round_ns, round_ns * factor);
            let left_ns = round_ns * u64::from(plan.first_rounds() - 1);
            Eta { done_ns, left_ns, passed_ns, budget_ns: None }.overrun(&plan, passed_ns)
        };
        assert_eq!(after(1), None);
        let text = after(3).expect("three times as long");
        assert!(
            text.starts_with("note: the first round took ") && text.contains("every method needs 5 rounds"),
            "{text}"
        );
    }

    #[test]
    fn a_line_says_which_question_what_leads_and_what_was_repeated() {
        let status = ProgressLine {
            question: Some((2, 4)),
            name: "scan",
            cell: "scan mmap (cold)",
            spent_ns: 38_000_000_000,
            left_ns: 62_000_000_000,
            at_most: true,
            leader: Some("read:buffer=64KiB"),
            repeated: (3, Some("disturbed")),
        };
        assert_eq!(
            status.text(),
            "question 2 of 4, scan: 38 %, at most 62 s left; scan mmap (cold); read:buffer=64KiB leads; 3 repeated (disturbed)"
        );
        let done = ProgressLine { spent_ns: 10, left_ns: 0, ..status };
        assert_eq!(done.percent(), 99, "it is not over before its end");
    }
}
