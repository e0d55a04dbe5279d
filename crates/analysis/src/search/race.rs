//! The steps of a run with a budget: rounds of what is undecided, look by look, and two return rounds of what left.
//!
//! Each step follows from the samples of the steps before it, with their times. An interrupted step is therefore finished as
//! it was begun, and a run that is resumed takes the samples of one that was not. So do blocks, whose datasets are made anew:
//! what left on one dataset returns on another.

use std::collections::BTreeMap;

use pagewise_model::run::Run;
use pagewise_model::{Plan, Role, Sample};

use super::schedule::{Ledger, Step};
use crate::judge::collected::{CellSamples, collect_those};
use crate::judge::comparison::{RankedCells, sides};
use crate::judge::race::{self, Compared, Entrant, Looks, Standing};

/// What is kept for return rounds, in their mean cost: rounds before them may cost more than they did so far.
const KEPT: f64 = 1.25;
/// Share of the budget after which the first return round comes.
const MIDDLE: f64 = 0.5;

/// Return the first step that is not done, after the first rounds; `None` without a budget, or if nothing remains.
pub(super) fn next(run: &Run, ledger: &Ledger) -> Option<Step> {
    let plan = &run.header.plan;
    let budget = run.budget_ns()? as f64;
    let looks = Looks::of(plan);
    let (mut regular, mut returned, mut in_race) = (plan.first_rounds(), 0, true);
    let (mut block, last_block) = (0, plan.blocks.saturating_sub(1));
    loop {
        let is_before =
            |round: u32| round < regular || (plan.rounds..plan.rounds + returned).contains(&round);
        let so_far = run.samples.iter().filter(|sample| is_before(sample.round));
        let written = plan.max_written_bytes.map_or(0, |_| written(plan, so_far.clone()));
        let samples = collect_those(plan, so_far);
        let state = State::of(&samples, &looks, in_race);
        let left = budget - state.spent;
        let back = state.out();
        let round_back: f64 = back.iter().map(|cell| state.costs[*cell]).sum();
        let rounds_back = Plan::RETURN_ROUNDS - returned;
        // Blocks have equal shares of the budget, and the last one what returns at the end.
        block = block.max((state.spent / budget * f64::from(plan.blocks)) as u32).min(last_block);
        let is_due = !in_race || (returned == 0 && left <= budget * (1.0 - MIDDLE));
        let step = if is_due && rounds_back > 0 && !back.is_empty() && round_back <= left {
            let round = plan.rounds + returned;
            returned += 1;
            block = block.max(returned).min(last_block);
            Step { rounds: round..round + 1, cells: back, block }
        } else if !in_race {
            return None;
        } else if let Some(step) =
            state.next(&looks, left - KEPT * round_back * f64::from(rounds_back), block)
        {
            regular = step.rounds.end;
            step
        } else {
            in_race = false;
            continue;
        };
        if step.is_done(plan, ledger) {
            continue;
        }
        let all = written.saturating_add(step_writes(plan, &step));
        return plan.max_written_bytes.is_none_or(|limit| all <= limit.0).then_some(step);
    }
}

/// Bytes that some samples wrote.
fn written<'a>(plan: &Plan, samples: impl Iterator<Item = &'a Sample>) -> u64 {
    let writes: BTreeMap<String, u64> =
        plan.writing_cells().map(|cell| (cell.id(), Plan::sample_writes(cell))).collect();
    samples.filter_map(|sample| writes.get(&sample.cell)).copied().fold(0, u64::saturating_add)
}

/// Bytes that a step writes.
fn step_writes(plan: &Plan, step: &Step) -> u64 {
    let ids: Vec<String> = step.cells.iter().map(|cell| plan.cells[*cell].id()).collect();
    let writing = plan.writing_cells().filter(|cell| ids.contains(&cell.id()));
    let round = writing.map(Plan::sample_writes).fold(0, u64::saturating_add);
    round.saturating_mul(step.rounds.len() as u64)
}

/// The race after some steps.
struct State<'a> {
    /// Indices of the ranked cells in the plan, by comparison.
    cells: Vec<Vec<usize>>,
    entrants: Vec<Vec<Entrant>>,
    standings: Vec<Standing>,
    /// Mean time of a round of each cell, in nanoseconds; 0 if it takes no more samples.
    costs: Vec<f64>,
    /// Time of all samples, in nanoseconds.
    spent: f64,
    samples: &'a [CellSamples<'a>],
}

impl<'a> State<'a> {
    fn of(samples: &'a [CellSamples<'a>], looks: &Looks, in_race: bool) -> Self {
        let ranked: Vec<RankedCells<'_>> = sides(samples).iter().map(RankedCells::of).collect();
        let cells = ranked.iter().map(|side| side.ranked.iter().map(|cell| cell.index).collect());
        let entrants: Vec<Vec<Entrant>> = ranked.iter().map(RankedCells::entrants).collect();
        let took =
            |cell: &CellSamples<'_>| cell.attempts.iter().map(|sample| sample.took_ns as f64).sum::<f64>();
        Self {
            cells: cells.collect(),
            standings: race::standings(&entrants, looks, !in_race),
            entrants,
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

    /// The methods and controls that take no part in the next rounds, with the leaders of those that are behind.
    fn out(&self) -> Vec<usize> {
        let mut races = vec![false; self.samples.len()];
        for (cells, standing) in self.cells.iter().zip(&self.standings) {
            let is_open = !standing.decided && standing.staying.len() > 1;
            for method in standing.staying.iter().filter(|_| is_open) {
                let leads = |compared: &Compared| compared.is_behind && compared.leader == *method;
                races[cells[*method]] = !standing.compared.iter().any(leads);
            }
        }
        let is_out = |index: &usize| {
            let cell = &self.samples[*index];
            !races[*index] && cell.cell.role != Role::Ceiling && cell.regular_rounds() != u32::MAX
        };
        (0..self.samples.len()).filter(is_out).collect()
    }

    /// The next rounds of what is undecided, as far as `left` nanoseconds pay for them.
    fn next(&self, looks: &Looks, left: f64, block: u32) -> Option<Step> {
        let costs: Vec<Vec<f64>> =
            self.cells.iter().map(|cells| cells.iter().map(|cell| self.costs[*cell]).collect()).collect();
        let step = race::next(&self.entrants, looks, &costs, left)?;
        let of_comparison = |(cells, methods): (&Vec<usize>, &Vec<usize>)| -> Vec<usize> {
            methods.iter().map(|method| cells[*method]).collect()
        };
        let mut cells: Vec<usize> = self.cells.iter().zip(&step.methods).flat_map(of_comparison).collect();
        cells.sort_unstable();
        Some(Step { rounds: step.from..step.to, cells, block })
    }
}

#[cfg(test)]
mod tests;
