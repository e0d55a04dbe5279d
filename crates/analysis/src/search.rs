//! Search: which samples to take next, and which cells to add, as a function of the run so far.
//!
//! A trace is replayed by its program's own method first. Every method has the first rounds. A run
//! with a budget then goes on as an elimination (`elimination`); a run with a search has cells
//! added by an extra, which have rounds of their own.

mod elimination;
pub mod schedule;
mod self_replay;

use pagewise_model::run::Run;
use pagewise_model::{Cell, Plan};

use crate::judge::collected::{FAR_ROUNDS, collect};
use schedule::{Ledger, Step};
use self_replay::Gate;

/// The continuation of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Take these samples, as far as they are missing, then ask again.
    Take(Step),
    /// Add these cells to the plan, then ask again.
    Add(Vec<Cell>),
    /// The run is complete.
    Done,
}

/// Return how a run goes on whose `ledger` holds all of its samples. The samples of a fixed plan
/// are not needed. `added` are the cells to add to a run whose cells have been sampled.
pub fn next(run: &Run, ledger: &Ledger, added: impl FnOnce(&Run) -> Vec<Cell>) -> Next {
    let plan = &run.header.plan;
    let first_rounds = first_steps(plan).next().map(|step| step.rounds).unwrap_or_default();
    match self_replay::gate(run, ledger, &first_rounds) {
        Gate::Open => {}
        Gate::First(step) => return Next::Take(step),
        Gate::Shut => return Next::Done,
    }
    let mut first = first_steps(plan).map(|step| without_far_behind(run, ledger, step));
    if let Some(step) = first.find(|step| !step.is_done(plan, ledger)) {
        return Next::Take(step);
    }
    if let Some(step) = elimination::next(run, ledger) {
        return Next::Take(step);
    }
    match added(run) {
        cells if cells.is_empty() => Next::Done,
        cells => Next::Add(cells),
    }
}

/// Of the first rounds of replays, those that are due: after some rounds without those that are far
/// behind.
fn without_far_behind(run: &Run, ledger: &Ledger, step: Step) -> Step {
    let plan = &run.header.plan;
    if plan.trace.is_none() || plan.budget.is_none() || step.rounds.end <= FAR_ROUNDS {
        return step;
    }
    let of_all = Step { rounds: step.rounds.start..FAR_ROUNDS, ..step.clone() };
    if !of_all.is_done(plan, ledger) {
        return of_all;
    }
    let samples = collect(run);
    let cells = step.cells.into_iter().filter(|cell| !samples[*cell].left).collect();
    Step { rounds: FAR_ROUNDS..step.rounds.end, cells, ..step }
}

/// The rounds that every method has: all of them in as many blocks as the plan has, or those before
/// an elimination in the first.
fn first_steps(plan: &Plan) -> impl Iterator<Item = Step> {
    let (rounds, blocks) = (plan.first_rounds(), if plan.budget.is_some() { 1 } else { plan.blocks.max(1) });
    let end_of = move |block: u32| (u64::from(rounds) * u64::from(block) / u64::from(blocks)) as u32;
    let cells: Vec<usize> = (0..plan.cells.len()).collect();
    (0..blocks).map(move |block| Step {
        rounds: end_of(block)..end_of(block + 1),
        cells: cells.clone(),
        block,
    })
}
