//! The replay of a trace by its own method comes before every other: if the trace does not stand
//! for its program, no other is shown.

use std::ops::Range;

use pagewise_model::run::Run;

use super::schedule::{Ledger, Step};
use crate::judge::collected::collect;
use crate::judge::self_replay;

/// Replays by the program's own method that decide, if the first one did not read what the program
/// read.
const DECISIVE: u32 = 3;

/// The way to the other methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// The other methods are measured.
    Open,
    /// Replays by the program's own method come before.
    First(Step),
    /// The trace does not stand for its program, and the run ends.
    Shut,
}

/// The way to the other methods, of a run whose first rounds are `rounds`.
pub(super) fn gate(run: &Run, ledger: &Ledger, rounds: &Range<u32>) -> Gate {
    let plan = &run.header.plan;
    let Some(own) = plan.own_replay() else { return Gate::Open };
    let id = plan.cells[own].id();
    if run.samples.iter().any(|sample| sample.cell != id) {
        return Gate::Open;
    }
    let missing = |count: u32| {
        let rounds = rounds.start..rounds.end.min(rounds.start + count);
        Some(Step { rounds, cells: vec![own], block: 0 }).filter(|step| !step.is_done(plan, ledger))
    };
    if let Some(first) = missing(1) {
        return Gate::First(first);
    }
    let Some(found) = self_replay::of(run, &collect(run)).filter(|found| !found.stands) else {
        return Gate::Open;
    };
    match missing(DECISIVE) {
        Some(further) => Gate::First(further),
        // Replays that a busy machine made invalid say nothing of the trace.
        None if found.replayed_bytes.is_none() => Gate::Open,
        None => Gate::Shut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::{own_bytes, replays};
    use pagewise_model::Outcome;

    /// The gate after so many replays by the program's own method, which read this share of what
    /// the program read.
    fn after(own_replays: u32, percent: u64) -> Gate {
        let mut run = replays(own_bytes() * 100 / percent, None);
        let own = run.header.plan.cells[0].id();
        run.samples.retain(|sample| sample.cell == own && sample.round < own_replays);
        gate(&run, &Ledger::new(&run.header.plan, &run.samples), &(0..7))
    }

    #[test]
    fn a_trace_that_does_not_stand_for_its_program_ends_the_run() {
        let first = |rounds| Gate::First(Step { rounds, cells: vec![0], block: 0 });
        assert_eq!(after(0, 100), first(0..1));
        assert_eq!(after(1, 100), Gate::Open);
        assert_eq!(after(1, 50), first(0..3));
        assert_eq!(after(2, 50), first(0..3));
        assert_eq!(after(3, 50), Gate::Shut);
        let mut run = replays(own_bytes(), None);
        let own = run.header.plan.cells[0].id();
        run.samples.retain(|sample| sample.cell == own && sample.round < DECISIVE);
        for sample in &mut run.samples {
            sample.outcome = Outcome::Unavailable { reason: "none here".into() };
        }
        let ledger = Ledger::new(&run.header.plan, &run.samples);
        assert_eq!(gate(&run, &ledger, &(0..7)), Gate::Open, "nothing is known of the trace");
    }
}
