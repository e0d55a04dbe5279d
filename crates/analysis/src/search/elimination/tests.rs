//! Eliminations over made-up rates: what they take, and that an interruption changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use pagewise_model::plan::Budget;
use pagewise_model::random::Random;
use pagewise_model::run::Header;
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Append, Bytes, CacheState, Cell, Conditions, Evidence, Failure, FailureKind, Method, Outcome, Reads,
    Sample, Work,
};

use super::*;
use crate::judge::judge;
use crate::search::{self, Next};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

/// True rates and scatter of the methods of a warm and of a cold comparison.
type Truth = [(&'static str, f64, f64)];
const CLOSE: &Truth = &[("mmap", 1.0, 0.05), ("mmap:random", 0.98, 0.05), ("pread", 0.5, 0.02)];
const CLEAR: &Truth = &[("mmap", 1.0, 0.02), ("pread", 0.5, 0.02), ("pread:random", 0.3, 0.02)];
/// Never decided.
const OPEN: &Truth = &[("mmap", 1.0, 0.3), ("mmap:random", 0.97, 0.3)];

fn conditions(cache: CacheState) -> Conditions {
    Conditions { cache, ..Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(4))), Bytes::mib(1)) }
}

fn plan(warm: &Truth, cold: &Truth, budget_ns: u64) -> Plan {
    let cells = |truth: &Truth, cache| {
        let of = |(method, ..): &(&str, f64, f64)| Cell {
            role: Role::Measured,
            method: method.parse().expect("a method"),
            conditions: conditions(cache),
        };
        truth.iter().map(of).collect::<Vec<_>>()
    };
    let ceiling = Cell {
        role: Role::Ceiling,
        method: Method::uring_direct(8),
        conditions: conditions(CacheState::AsIs),
    };
    let cells = [cells(warm, CacheState::Warm), cells(cold, CacheState::Cold), vec![ceiling]].concat();
    Plan { rounds: 56, budget: Some(Budget::of(budget_ns)), retakes: 1, ..Plan::of(cells) }
}

/// The sample of a cell in a round: always the same. One in thirty is disturbed.
fn sample(plan: &Plan, truth: &[&Truth; 2], index: usize, round: u32, attempt: u32) -> Sample {
    let cell = &plan.cells[index];
    // Not by the id, whose spelling would change all of it.
    let purpose = format!("{} {} {round} {attempt}", cell.method, cell.conditions.cache);
    let mut random = Random::for_purpose(3, &purpose);
    let (_, rate, scatter) = truth.concat().get(index).copied().unwrap_or(("", 1.0, 0.0));
    let rate = rate * (scatter * crate::judge::simulation::normal(&mut random)).exp();
    // One-shot work is ranked by its time.
    let measured_ns = match cell.conditions.is_one_shot() {
        true => ((40 * MS) as f64 / rate) as u64,
        false => 40 * MS,
    };
    let measurement = Measurement { operations: (1e6 * rate) as u64, measured_ns, ..Measurement::default() };
    let is_disturbed = attempt == 0 && random.unit() < 1.0 / 30.0;
    let disturbance = Failure { kind: FailureKind::Contaminated, detail: "by a test".into() };
    let failures = if is_disturbed { vec![disturbance] } else { Vec::new() };
    // Where records are synced, the device writes three times what is estimated.
    let syncs = cell.conditions.measures_syncs();
    let device_written_bytes = syncs.then(|| 3 * Plan::of(Vec::new()).sample_writes(cell));
    let evidence = Box::new(Evidence { device_written_bytes, ..Evidence::default() });
    let outcome = Outcome::Taken { measurement: Box::new(measurement), evidence, failures };
    let took_ns = 60 * MS + random.below(20) * MS;
    Sample { attempt, took_ns, ..Sample::of(cell, round, outcome) }
}

/// Complete a run. Of its samples `cut` are there already.
fn complete(plan: &Plan, truth: [&Truth; 2], cut: Vec<Sample>) -> Run {
    let mut ledger = Ledger::new(plan, &cut);
    let mut run = Run::of(Header::of(plan.clone()), cut);
    loop {
        let step = match search::next(&run, &ledger, |_| Vec::new()) {
            Next::Take(step) => step,
            Next::Done => break,
            Next::Add(cells) => panic!("no search adds {cells:?}"),
        };
        for round in step.rounds.clone() {
            for (index, round) in step.order(plan, round) {
                while let Some(attempt) = ledger.next_attempt(&plan.cells[index], round) {
                    let sample = Sample { block: step.block, ..sample(plan, &truth, index, round, attempt) };
                    ledger.note(plan, &sample);
                    run.samples.push(sample);
                }
            }
        }
        assert!(step.is_done(plan, &ledger));
    }
    run.elapsed_ns = Some(1);
    run
}

/// Rounds of each cell.
fn rounds(run: &Run) -> Vec<Vec<u32>> {
    let mut rounds: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for sample in &run.samples {
        rounds.entry(sample.cell.clone()).or_default().insert(sample.round);
    }
    let of_cell = |cell: &Cell| rounds[&cell.id()].iter().copied().collect();
    run.header.plan.cells.iter().map(of_cell).collect()
}

#[test]
fn rounds_go_where_the_question_is_open() {
    let run = complete(&plan(CLOSE, CLEAR, 60 * S), [CLOSE, CLEAR], Vec::new());
    let rounds = rounds(&run);
    let regular = |cell: usize| rounds[cell].iter().filter(|round| **round < 56).count();
    assert!(regular(0) > 10 && regular(0) == regular(1), "{rounds:?}");
    let decided: Vec<u32> = (0..5).chain([56, 57]).collect();
    for of_cell in &rounds[3..6] {
        assert_eq!(of_cell, &decided, "decided at the first analysis, and seen again twice");
    }
    assert!((5..=10).contains(&regular(2)), "{rounds:?}");
    assert_eq!(rounds[6], [0, 2, 4], "a ceiling has three");
    let judged = judge(&run);
    assert!(!judged.fell_short());
    assert_eq!(judged.comparisons[1].best.as_deref(), Some("mmap"));
}

#[test]
fn a_budget_is_kept() {
    for budget_s in [4, 6, 10] {
        let run = complete(&plan(CLOSE, CLEAR, budget_s * S), [CLOSE, CLEAR], Vec::new());
        let spent: u64 = run.samples.iter().map(|sample| sample.took_ns).sum();
        // A sample may take longer than those before it.
        assert!(spent <= budget_s * S * 103 / 100, "{budget_s} s: {} ms", spent / MS);
    }
    let too_short = complete(&plan(CLOSE, CLEAR, S), [CLOSE, CLEAR], Vec::new());
    assert_eq!(rounds(&too_short)[0], [0, 1, 2, 3, 4], "the first rounds are taken whatever they cost");
}

#[test]
fn writing_ends_at_its_limit_after_the_first_rounds() {
    let mut appends = plan(CLOSE, CLEAR, 60 * S);
    for cell in &mut appends.cells {
        let sync = pagewise_model::Sync::None;
        let append = Append { record_bytes: Bytes(100), passes: 1, sync, sync_call: None };
        cell.conditions =
            Conditions { cache: CacheState::Cold, ..Conditions::of(Work::Append(append), Bytes::mib(1)) };
    }
    let written = |run: &Run| {
        let writes: BTreeMap<String, u64> = run
            .header
            .plan
            .cells
            .iter()
            .map(|cell| (cell.id(), run.header.plan.sample_writes(cell)))
            .collect();
        run.samples.iter().map(|sample| writes[&sample.cell]).sum::<u64>()
    };
    let of_first_rounds = Plan { budget: Some(Budget::of(1)), ..appends.clone() };
    let first = written(&complete(&of_first_rounds, [CLOSE, CLOSE], Vec::new()));
    let unlimited = written(&complete(&appends, [CLOSE, CLOSE], Vec::new()));
    assert!(unlimited > 2 * first, "{unlimited} of {first}");
    for limit in [unlimited / 2, first * 5 / 4, first, first / 2] {
        let limited = Plan { max_written_bytes: Some(Bytes(limit)), ..appends.clone() };
        let run = complete(&limited, [CLOSE, CLOSE], Vec::new());
        let all = written(&run);
        // Samples that are taken again come on top.
        assert!((first..=limit.max(first) * 21 / 20).contains(&all), "{all} of {limit}, {first} at first");
        let returns = (56..58).filter(|round| run.samples.iter().any(|sample| sample.round == *round));
        assert_eq!(returns.count(), if limit > first { 2 } else { 0 }, "{all} of {limit}");
        for cut in [run.samples.len() / 2, run.samples.len() - 1] {
            let resumed = complete(&limited, [CLOSE, CLOSE], run.samples[..cut].to_vec());
            assert_eq!(resumed.samples, run.samples, "cut after {cut}");
        }
    }
}

#[test]
fn what_a_device_wrote_counts_and_not_what_was_estimated() {
    let samples = |sync| {
        let mut appends = plan(CLOSE, CLEAR, 60 * S);
        for cell in &mut appends.cells {
            let append = Append { record_bytes: Bytes(128), passes: 1, sync, sync_call: None };
            cell.conditions =
                Conditions { cache: CacheState::Cold, ..Conditions::of(Work::Append(append), Bytes::mib(1)) };
        }
        let limit = Some(Bytes(2 * appends.written_bytes().0));
        complete(&Plan { max_written_bytes: limit, ..appends }, [CLOSE, CLOSE], Vec::new()).samples.len()
    };
    let (plain, synced) =
        (samples(pagewise_model::Sync::None), samples(pagewise_model::Sync::Every(Bytes::kib(64))));
    assert!(synced < plain * 3 / 4, "{synced} samples, {plain} where the device writes what is estimated");
}

#[test]
fn a_run_that_is_resumed_at_any_point_takes_the_same_samples() {
    for budget_s in [4, 10] {
        let plan = plan(CLOSE, CLEAR, budget_s * S);
        let unbroken = complete(&plan, [CLOSE, CLEAR], Vec::new());
        // Each seventh is as good as any other: methods and rounds change from cut to cut.
        let each = if cfg!(debug_assertions) { 7 } else { 1 };
        for cut in (0..=unbroken.samples.len()).step_by(each) {
            let resumed = complete(&plan, [CLOSE, CLEAR], unbroken.samples[..cut].to_vec());
            // The verdict is a function of them.
            assert_eq!(resumed.samples, unbroken.samples, "cut after {cut}");
        }
    }
}

#[test]
fn a_budget_may_follow_from_what_the_first_rounds_took() {
    let spent = |percent| {
        let budget = Budget { least_ns: 1, first_rounds_percent: percent };
        let plan = Plan { budget: Some(budget), ..plan(CLOSE, CLEAR, S) };
        let run = complete(&plan, [CLOSE, CLEAR], Vec::new());
        run.samples.iter().map(|sample| sample.took_ns).sum::<u64>() as f64
    };
    let first = spent(1);
    let ratio = spent(300) / first;
    assert!((2.7..=3.1).contains(&ratio), "{ratio}");
}

#[test]
fn a_single_method_has_the_first_rounds_and_those_at_the_end() {
    const ALONE: &Truth = &[("pread", 1.0, 0.02)];
    let run = complete(&plan(ALONE, &[], 60 * S), [ALONE, &[]], Vec::new());
    assert_eq!(rounds(&run)[0], [0, 1, 2, 3, 4, 56, 57]);
    assert!(!judge(&run).fell_short());
}

#[test]
fn methods_of_an_open_comparison_return_only_if_something_left_it() {
    let run = complete(&plan(OPEN, CLEAR, 10 * S), [OPEN, CLEAR], Vec::new());
    let rounds = rounds(&run);
    let returned = |cell: &Vec<u32>| cell.iter().filter(|round| **round >= 56).count();
    assert_eq!(rounds[..5].iter().map(returned).collect::<Vec<_>>(), [0, 0, 2, 2, 2]);
    assert!(rounds[0].len() > 10 && rounds[0] == rounds[1], "{rounds:?}");
}

#[test]
fn blocks_share_the_budget_and_what_left_returns_on_the_last() {
    let plan = Plan { blocks: 3, ..plan(OPEN, CLEAR, 9 * S) };
    let run = complete(&plan, [OPEN, CLEAR], Vec::new());
    let block = |round: u32| -> BTreeSet<u32> {
        run.samples.iter().filter(|sample| sample.round == round).map(|sample| sample.block).collect()
    };
    for round in 0..5 {
        assert_eq!(block(round), [0].into());
    }
    assert!(!block(56).contains(&0), "what left on the first dataset returns on another");
    assert_eq!(block(57), [2].into());
    assert!(run.samples.is_sorted_by_key(|sample| sample.block), "a dataset is never made again");
    let of_block = |block: u32| run.samples.iter().filter(move |sample| sample.block == block);
    let seconds = |block: u32| of_block(block).map(|sample| sample.took_ns).sum::<u64>() / S;
    assert!((0..3).all(|block| (1..=4).contains(&seconds(block))), "{:?}", [0, 1, 2].map(seconds));
    for cut in (0..run.samples.len()).step_by(7) {
        let resumed = complete(&plan, [OPEN, CLEAR], run.samples[..cut].to_vec());
        assert_eq!(resumed.samples, run.samples, "cut after {cut}");
    }
}
