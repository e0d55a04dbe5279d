//! The steps of a run with a budget: rounds of what is undecided, analysis by analysis, and two
//! return rounds of what left.
//!
//! Each step follows from the samples of the steps before it, with their times. An interrupted step
//! is therefore finished as it was begun, and a run that is resumed takes the samples of one that
//! was not. So do blocks, whose datasets are made anew: what left on one dataset returns on
//! another.
//!
//! Bytes that may be written are a budget too, which pays for return rounds first.

use pagewise_model::run::Run;
use pagewise_model::{Outcome, Plan, Role};

use super::schedule::{Ledger, Step};
use crate::judge::collected::{CellSamples, collect_those};
use crate::judge::comparison::{RankedCells, sides};
use crate::judge::elimination::{self, Candidate, Compared, ComparisonStatus, InterimAnalyses};

/// Rounds kept for return rounds, in their mean cost: rounds before them may cost more than they
/// did so far.
const KEPT: f64 = 1.25;
/// Share of the budget after which the first return round comes.
const MIDDLE: f64 = 0.5;

/// Return the first step that is not done, after the first rounds; `None` without a budget, or if
/// nothing remains.
pub(super) fn next(run: &Run, ledger: &Ledger) -> Option<Step> {
    let plan = &run.header.plan;
    let budget = run.budget_ns()? as f64;
    let analyses = InterimAnalyses::of(plan);
    let (mut regular, mut returned, mut is_eliminating) = (plan.first_rounds(), 0, true);
    let (mut block, last_block) = (0, plan.blocks.saturating_sub(1));
    let limit = plan.max_written_bytes.map_or(f64::INFINITY, |limit| limit.0 as f64);
    let estimated: Vec<u64> = plan.cells.iter().map(|cell| plan.sample_writes(cell)).collect();
    loop {
        let is_before =
            |round: u32| round < regular || (plan.rounds..plan.rounds + returned).contains(&round);
        let so_far = run.samples.iter().filter(|sample| is_before(sample.round));
        let samples = collect_those(plan, so_far);
        let writes: Vec<f64> = samples.iter().map(|cell| writes(cell, estimated[cell.index])).collect();
        let state = State::of(&samples, &analyses, is_eliminating);
        let written: f64 = samples.iter().map(|cell| writes[cell.index] * cell.attempts.len() as f64).sum();
        let (left, may_write) = (budget - state.spent, limit - written);
        let back = state.out();
        let round_back: f64 = back.iter().map(|cell| state.costs[*cell]).sum();
        let writes_back: f64 = back.iter().map(|cell| writes[*cell]).sum();
        let rounds_back = Plan::RETURN_ROUNDS - returned;
        let kept = KEPT * f64::from(rounds_back);
        // Blocks have equal shares of the budget, and the last one what returns at the end.
        block = block.max((state.spent / budget * f64::from(plan.blocks)) as u32).min(last_block);
        let is_half = left <= budget * (1.0 - MIDDLE) || written >= limit * MIDDLE;
        let is_due = !is_eliminating || (returned == 0 && is_half);
        let is_paid = round_back <= left && writes_back <= may_write;
        let step = if is_due && rounds_back > 0 && !back.is_empty() && is_paid {
            let round = plan.rounds + returned;
            returned += 1;
            block = block.max(returned).min(last_block);
            Step { rounds: round..round + 1, cells: back, block }
        } else if !is_eliminating {
            return None;
        } else if let Some(step) = state
            .next(&analyses, left - kept * round_back, block)
            .and_then(|step| step.within(may_write - kept * writes_back, &writes))
        {
            regular = step.rounds.end;
            step
        } else {
            is_eliminating = false;
            continue;
        };
        if !step.is_done(plan, ledger) {
            return Some(step);
        }
    }
}

/// Bytes that a sample of the cell writes: as `estimated`, or more where the device wrote more in
/// those that were taken.
fn writes(samples: &CellSamples<'_>, estimated: u64) -> f64 {
    if estimated == 0 {
        return 0.0;
    }
    let written = samples.attempts.iter().filter_map(|sample| match &sample.outcome {
        Outcome::Taken { evidence, .. } => evidence.device_written_bytes,
        _ => None,
    });
    let (count, sum) = written.fold((0, 0.0), |(count, sum), bytes| (count + 1, sum + bytes as f64));
    (sum / f64::from(count.max(1))).max(estimated as f64)
}

impl Step {
    /// As many of its rounds as write at most so many bytes; `None` if not one does.
    fn within(mut self, may_write: f64, writes: &[f64]) -> Option<Self> {
        let round: f64 = self.cells.iter().map(|cell| writes[*cell]).sum();
        if round > 0.0 {
            let rounds = (may_write.max(0.0) / round).min(f64::from(u32::MAX)) as u32;
            self.rounds.end = self.rounds.end.min(self.rounds.start.saturating_add(rounds));
        }
        (!self.rounds.is_empty()).then_some(self)
    }
}

/// The elimination after some steps.
struct State<'a> {
    /// Indices of the ranked cells in the plan, by comparison.
    cells: Vec<Vec<usize>>,
    candidates: Vec<Vec<Candidate>>,
    statuses: Vec<ComparisonStatus>,
    /// Mean time of a round of each cell, in nanoseconds; 0 if it takes no more samples.
    costs: Vec<f64>,
    /// Time of all samples, in nanoseconds.
    spent: f64,
    samples: &'a [CellSamples<'a>],
}

impl<'a> State<'a> {
    fn of(samples: &'a [CellSamples<'a>], analyses: &InterimAnalyses, is_eliminating: bool) -> Self {
        let ranked: Vec<RankedCells<'_>> = sides(samples).iter().map(RankedCells::of).collect();
        let cells = ranked.iter().map(|side| side.ranked.iter().map(|cell| cell.index).collect());
        let candidates: Vec<Vec<Candidate>> = ranked.iter().map(RankedCells::candidates).collect();
        let took =
            |cell: &CellSamples<'_>| cell.attempts.iter().map(|sample| sample.took_ns as f64).sum::<f64>();
        Self {
            cells: cells.collect(),
            statuses: elimination::statuses(&candidates, analyses, !is_eliminating),
            candidates,
            costs: samples
                .iter()
                .map(|cell| match cell.regular_rounds() {
                    u32::MAX => 0.0,
                    _ => took(cell) / cell.rounds_tried().max(1) as f64,
                })
                .collect(),
            spent: samples.iter().map(took).sum(),
            samples,
        }
    }

    /// The methods and controls that take no part in the next rounds, with the leaders of those
    /// that are behind.
    fn out(&self) -> Vec<usize> {
        let mut stays = vec![false; self.samples.len()];
        for (cells, status) in self.cells.iter().zip(&self.statuses) {
            let is_open = !status.decided && status.staying.len() > 1;
            for method in status.staying.iter().filter(|_| is_open) {
                let leads = |compared: &Compared| compared.is_behind && compared.leader == *method;
                stays[cells[*method]] = !status.compared.iter().any(leads);
            }
        }
        let is_out = |index: &usize| {
            let cell = &self.samples[*index];
            !stays[*index] && cell.cell.role != Role::Ceiling && cell.regular_rounds() != u32::MAX
        };
        (0..self.samples.len()).filter(is_out).collect()
    }

    /// The next rounds of what is undecided, as far as `left` nanoseconds pay for them.
    fn next(&self, analyses: &InterimAnalyses, left: f64, block: u32) -> Option<Step> {
        let costs: Vec<Vec<f64>> =
            self.cells.iter().map(|cells| cells.iter().map(|cell| self.costs[*cell]).collect()).collect();
        let step = elimination::next(&self.candidates, analyses, &costs, left)?;
        let of_comparison = |(cells, methods): (&Vec<usize>, &Vec<usize>)| -> Vec<usize> {
            methods.iter().map(|method| cells[*method]).filter(|cell| !self.samples[*cell].left).collect()
        };
        let mut cells: Vec<usize> = self.cells.iter().zip(&step.methods).flat_map(of_comparison).collect();
        cells.sort_unstable();
        Some(Step { rounds: step.from..step.to, cells, block })
    }
}

#[cfg(test)]
mod tests;
