//! Order of samples, and the samples still to be taken.
//!
//! A round holds one sample of every method that is in it; ceilings have three in the whole run.
//! Within it the cells of a comparison follow each other in random order, so that a drift of the
//! machine falls on all of them. Comparisons come in random order too, but those of one cache state
//! together, and a round begins with the state that the last one ended with, because going from
//! cold to warm reads the whole file. All of it follows from the recorded seed: a resumed run has
//! the same order as an uninterrupted one.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use pagewise_model::groups::by_key;
use pagewise_model::random::Random;
use pagewise_model::{Access, CacheState, Cell, Outcome, Plan, Role, Sample};

/// Rounds of some cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rounds.
    pub rounds: Range<u32>,
    /// Indices of the cells in the plan, ascending.
    pub cells: Vec<usize>,
    /// The block whose datasets they read.
    pub block: u32,
}

impl Step {
    /// The cells that are sampled in the time of `round`, in this order, each with the round of the
    /// sample. Ceilings of memory take all of theirs at the beginning: a hypervisor takes memory
    /// back that lies unused, and each further gigabyte costs seconds.
    pub fn order(&self, plan: &Plan, round: u32) -> Vec<(usize, u32)> {
        let of_cell = |index: usize| {
            let cell = &plan.cells[index];
            let rounds = match is_memory_ceiling(cell) {
                true if round == self.rounds.start => self.rounds.clone(),
                true => 0..0,
                false => round..round + 1,
            };
            rounds.filter(|round| plan.takes(cell, *round)).map(move |round| (index, round))
        };
        let order = order(plan, round).into_iter();
        order.filter(|index| self.cells.binary_search(index).is_ok()).flat_map(of_cell).collect()
    }

    /// True if every sample of it was taken or cannot be had.
    pub fn is_done(&self, plan: &Plan, ledger: &Ledger) -> bool {
        self.rounds.clone().all(|round| {
            let mut due =
                self.cells.iter().map(|index| &plan.cells[*index]).filter(|cell| plan.takes(cell, round));
            due.all(|cell| ledger.next_attempt(cell, round).is_none())
        })
    }
}

/// The cells of a plan in the order of round `round`.
fn order(plan: &Plan, round: u32) -> Vec<usize> {
    let mut random = Random::for_purpose(plan.seed, &format!("order of round {round}"));
    let by_state = |comparison: Vec<usize>| (plan.cells[comparison[0]].conditions.cache, comparison);
    let mut states = by_key(comparisons(plan, &mut random).into_iter().map(by_state));
    // Ceilings are independent of the cache, but those of memory are filled through it: that is
    // fastest while the file is warm. They follow each other.
    let (memory, mut ceilings): (Vec<_>, Vec<_>) =
        ceilings(plan).partition(|index| is_memory_ceiling(&plan.cells[index[0]]));
    ceilings.push(memory.concat());
    let warm = states.iter().position(|(state, _)| *state == CacheState::Warm).unwrap_or(0);
    if let Some((_, comparisons)) = states.get_mut(warm) {
        comparisons.extend(ceilings);
    }
    if round % 2 == 1 {
        states.reverse();
    }
    for (_, comparisons) in &mut states {
        random.shuffle(comparisons);
    }
    states.into_iter().flat_map(|(_, comparisons)| comparisons).flatten().collect()
}

/// The cells of each comparison, including controls, each comparison shuffled.
fn comparisons(plan: &Plan, random: &mut Random) -> Vec<Vec<usize>> {
    let compared = plan.cells.iter().enumerate().filter(|(_, cell)| cell.role != Role::Ceiling);
    let by_conditions = by_key(compared.map(|(index, cell)| (&cell.conditions, index)));
    let mut comparisons: Vec<Vec<usize>> = by_conditions.into_iter().map(|(_, cells)| cells).collect();
    for comparison in &mut comparisons {
        random.shuffle(comparison);
    }
    comparisons
}

fn is_memory_ceiling(cell: &Cell) -> bool {
    cell.role == Role::Ceiling && cell.access() == Access::Anonymous
}

/// The ceilings, each by itself.
fn ceilings(plan: &Plan) -> impl Iterator<Item = Vec<usize>> + '_ {
    let is_ceiling = |index: &usize| plan.cells[*index].role == Role::Ceiling;
    (0..plan.cells.len()).filter(is_ceiling).map(|index| vec![index])
}

/// Progress of a run.
#[derive(Default)]
pub struct Ledger {
    ended: HashSet<String>,
    /// Cells with a sample that was taken, valid or not.
    taken_once: HashSet<String>,
    done: HashSet<(String, u32)>,
    attempts: HashMap<(String, u32), u32>,
    /// Number of attempts, and their time.
    taken: u64,
    spent_ns: u64,
}

impl Ledger {
    /// Progress after `samples` of a run of `plan`.
    pub fn new(plan: &Plan, samples: &[Sample]) -> Self {
        let mut ledger = Self::default();
        for sample in samples {
            ledger.note(plan, sample);
        }
        ledger
    }

    /// Count one more sample of a run of `plan`; true if it is taken again.
    pub fn note(&mut self, plan: &Plan, sample: &Sample) -> bool {
        let key = (sample.cell.clone(), sample.round);
        self.attempts.insert(key.clone(), sample.attempt + 1);
        self.taken += 1;
        self.spent_ns = self.spent_ns.saturating_add(sample.took_ns);
        if !sample.outcome.ends_cell() {
            self.taken_once.insert(sample.cell.clone());
        }
        let from_outside = sample.outcome.worth_retaking();
        let is_retaken = from_outside && sample.attempt < plan.retakes;
        if is_retaken && (sample.outcome.ends_cell() || self.pays_for_one_more(plan)) {
            return true;
        }
        // Once supported, a method may be supported again, as with huge pages; a worker that was
        // killed once more than a round has attempts left may live in the next.
        let may_pass = from_outside || matches!(sample.outcome, Outcome::Unavailable { .. });
        if sample.outcome.ends_cell() && !(may_pass && self.taken_once.contains(&sample.cell)) {
            self.ended.insert(sample.cell.clone());
        }
        self.done.insert(key);
        false
    }

    /// True if a sample may be taken again. Time that was chosen pays for the first rounds of every
    /// method before it pays for repetitions, each at the mean of the attempts so far.
    fn pays_for_one_more(&self, plan: &Plan) -> bool {
        let Some(budget) = plan.budget else { return true };
        let missing: u64 = plan.cells.iter().map(|cell| self.missing_of(plan, cell)).sum();
        let left_ns = (self.spent_ns / self.taken.max(1)).saturating_mul(missing.max(1));
        let all_ns = self.spent_ns.saturating_add(left_ns);
        all_ns <= budget.ns(all_ns)
    }

    /// Number of samples of `cell` that the first rounds of `plan` still lack.
    pub fn missing_of(&self, plan: &Plan, cell: &Cell) -> u64 {
        let mut key = (cell.id(), 0);
        if self.ended.contains(&key.0) {
            return 0;
        }
        let rounds = (0..plan.first_rounds()).filter(|round| plan.takes(cell, *round));
        let missing = rounds.filter(|round| {
            key.1 = *round;
            !self.done.contains(&key)
        });
        missing.count() as u64
    }

    /// Number of the next attempt at a cell in a round; `None`: it is done.
    pub fn next_attempt(&self, cell: &Cell, round: u32) -> Option<u32> {
        let key = (cell.id(), round);
        if self.ended.contains(&key.0) || self.done.contains(&key) {
            return None;
        }
        Some(self.attempts.get(&key).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::plan::Budget;
    use pagewise_model::{Failure, FailureKind};

    use pagewise_model::{Bytes, Conditions, Method, Reads, Work};

    /// Two comparisons of cold and warm reads, with ceilings.
    fn quick_plan() -> Plan {
        let of = |cache, method: &str| Cell {
            role: Role::Measured,
            method: method.parse().expect("a method"),
            conditions: Conditions {
                cache,
                ..Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes::mib(1))
            },
        };
        let methods = ["mmap", "mmap:random", "pread", "pread:random", "read", "uring:depth=8"];
        let states = [CacheState::Warm, CacheState::Cold];
        let cells = states.iter().flat_map(|state| methods.map(|method| of(*state, method)));
        let ceiling =
            Cell { role: Role::Ceiling, method: Method::uring_direct(8), ..of(CacheState::AsIs, "pread") };
        Plan::of(cells.chain([ceiling]).collect())
    }

    fn sample(plan: &Plan, cell: usize, round: u32, attempt: u32, outcome: Outcome) -> Sample {
        Sample { attempt, ..Sample::of(&plan.cells[cell], round, outcome) }
    }

    fn broken(kind: FailureKind) -> Outcome {
        let failures = vec![Failure { kind, detail: "because".into() }];
        Outcome::Broken { failures, stderr_tail: String::new() }
    }

    #[test]
    fn a_round_holds_every_cell_once() {
        let plan = quick_plan();
        for round in 0..5 {
            let mut cells = order(&plan, round);
            cells.sort_unstable();
            assert_eq!(cells, (0..plan.cells.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rounds_differ_and_repeat_with_the_seed() {
        let plan = quick_plan();
        assert_ne!(order(&plan, 0), order(&plan, 1));
        assert_eq!(order(&plan, 3), order(&plan, 3));
    }

    #[test]
    fn a_round_changes_its_cache_state_as_rarely_as_it_can() {
        let plan = quick_plan();
        let states: Vec<CacheState> = order(&plan, 0)
            .into_iter()
            .map(|cell| &plan.cells[cell])
            .filter(|cell| cell.role != Role::Ceiling)
            .map(|cell| cell.conditions.cache)
            .collect();
        let changes = states.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 1, "{states:?}");
        let state = |round, last: bool| {
            let cells = order(&plan, round);
            let cell = if last { cells.last() } else { cells.first() };
            plan.cells[*cell.expect("a round has cells")].conditions.cache
        };
        assert_eq!(state(0, true), state(1, false));
    }

    #[test]
    fn a_sample_disturbed_from_outside_is_taken_again_within_bounds() {
        let plan = quick_plan();
        let mut ledger = Ledger::new(&plan, &[]);
        for attempt in 0..=plan.retakes {
            assert_eq!(ledger.next_attempt(&plan.cells[0], 2), Some(attempt));
            ledger.note(&plan, &sample(&plan, 0, 2, attempt, broken(FailureKind::NotCold)));
        }
        assert_eq!(ledger.next_attempt(&plan.cells[0], 2), None);
        assert_eq!(
            ledger.next_attempt(&plan.cells[0], 3),
            None,
            "it could not be had, so the cell has ended"
        );
        assert_eq!(ledger.next_attempt(&plan.cells[1], 2), Some(0));
    }

    #[test]
    fn a_chosen_time_pays_for_first_rounds_before_repetitions() {
        const TOOK_NS: u64 = 1_000_000;
        // Repetitions of the first sample, which is disturbed each time.
        let of = |budget| Plan { budget, rounds: 56, retakes: 2, ..quick_plan() };
        let repeated = |budget: Option<Budget>| {
            let plan = of(budget);
            let (mut ledger, mut attempts) = (Ledger::new(&plan, &[]), 0);
            while let Some(attempt) = ledger.next_attempt(&plan.cells[0], 0) {
                let failures = vec![Failure { kind: FailureKind::Disturbed, detail: "because".into() }];
                let outcome =
                    Outcome::Taken { measurement: Box::default(), evidence: Box::default(), failures };
                let sample = Sample { took_ns: TOOK_NS, ..sample(&plan, 0, 0, attempt, outcome) };
                ledger.note(&plan, &sample);
                attempts += 1;
            }
            attempts - 1
        };
        let first_ns = TOOK_NS * of(Some(Budget::of(1))).first_samples();
        let chosen = |spare: u64| repeated(Some(Budget::of(first_ns + spare * TOOK_NS)));
        assert_eq!(chosen(0), 0);
        assert_eq!(chosen(1), 1);
        assert_eq!(chosen(9), 2);
        assert_eq!(repeated(None), 2);
        let usual = Budget { least_ns: 1, first_rounds_percent: 200 };
        assert_eq!(repeated(Some(usual)), 2, "it grows with the first rounds");
    }

    #[test]
    fn a_worker_that_is_killed_again_and_again_ends_its_cell_and_one_that_is_killed_once_does_not() {
        let plan = quick_plan();
        let mut ledger = Ledger::new(&plan, &[]);
        for round in 0..3 {
            ledger.note(&plan, &sample(&plan, 0, round, 0, broken(FailureKind::KilledFromOutside)));
            assert_eq!(ledger.next_attempt(&plan.cells[0], round), Some(1), "round {round}");
        }
        for attempt in 1..=plan.retakes {
            ledger.note(&plan, &sample(&plan, 0, 2, attempt, broken(FailureKind::KilledFromOutside)));
        }
        assert_eq!(ledger.next_attempt(&plan.cells[0], 3), None);
    }

    #[test]
    fn a_worker_that_is_killed_after_others_were_disturbed_loses_its_round_alone() {
        let plan = quick_plan();
        let disturbed = || Outcome::Taken {
            measurement: Box::default(),
            evidence: Box::default(),
            failures: vec![Failure { kind: FailureKind::Disturbed, detail: "because".into() }],
        };
        let mut ledger = Ledger::new(&plan, &[]);
        for attempt in 0..plan.retakes {
            ledger.note(&plan, &sample(&plan, 0, 0, attempt, disturbed()));
        }
        ledger.note(&plan, &sample(&plan, 0, 0, plan.retakes, broken(FailureKind::KilledFromOutside)));
        assert_eq!(ledger.next_attempt(&plan.cells[0], 0), None);
        assert_eq!(ledger.next_attempt(&plan.cells[0], 1), Some(0));
    }

    #[test]
    fn a_dead_worker_ends_its_cell_at_once() {
        let plan = quick_plan();
        let ledger = Ledger::new(&plan, &[sample(&plan, 0, 0, 0, broken(FailureKind::WorkerDied))]);
        assert_eq!(ledger.next_attempt(&plan.cells[0], 1), None);
    }
}
