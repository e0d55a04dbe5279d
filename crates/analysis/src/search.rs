//! Search: which samples to take next, and which cells to add, as a function of the run so far.
//!
//! Every method has the first rounds. A run with a budget then goes on as a race (`race`); a run with a search adds cells
//! ([`crossing`]), which have rounds of their own.

pub mod crossing;
mod race;
pub mod schedule;

use pagewise_model::Cell;
use pagewise_model::run::Run;

use schedule::{Ledger, Step};

/// How a run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Take these samples, as far as they are missing, then ask again.
    Take(Step),
    /// Add these cells to the plan, then ask again.
    Add(Vec<Cell>),
    /// It is complete.
    Done,
}

/// Return how a run goes on whose `ledger` holds all of its samples. Without a budget or a search the samples themselves are
/// not needed.
pub fn next(run: &Run, ledger: &Ledger) -> Next {
    let plan = &run.header.plan;
    let first = Step { rounds: 0..plan.first_rounds(), cells: (0..plan.cells.len()).collect() };
    if !first.is_done(plan, ledger) {
        return Next::Take(first);
    }
    if let Some(step) = race::next(run, ledger) {
        return Next::Take(step);
    }
    match crossing::next(run) {
        cells if cells.is_empty() => Next::Done,
        cells => Next::Add(cells),
    }
}
