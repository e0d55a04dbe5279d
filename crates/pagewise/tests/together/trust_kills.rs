//! A worker killed by somebody else says nothing of its method: the sample is taken again, and only
//! if that goes on does the cell end.

use crate::support::paused::PausedRun;
use crate::support::{Finished, Place, broken, expect_whole, kinds, load, whole_lines};
use pagewise_host::steps::RunStep;
use pagewise_model::FailureKind::KilledFromOutside;
use pagewise_model::run::Run;
use pagewise_model::{Outcome, Sample};

const BRIEF: [&str; 10] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread,mmap",
    "--threads=1",
    "--cache=warm",
    "--rounds=7",
    "--file-size=1MiB",
    "--no-ceilings",
    "--out=run.jsonl",
];

/// A run whose workers are killed by SIGKILL as soon as they run, if `is_hit` says so of the run
/// file so far.
fn run_with_killed(place: &Place, is_hit: impl Fn(&Run) -> bool) -> (Run, Finished) {
    let path = place.file("run.jsonl");
    let words = [&BRIEF[..], &["--sample=1ms"]].concat();
    let finished = PausedRun::start(place, &words, RunStep::WorkerStarted).act_until_end(|run| {
        if is_hit(&load(&path)) {
            run.kill_workers();
        }
    });
    let run = load(&path);
    assert!(run.is_complete(), "{finished:?}");
    place.expect_no_trace();
    (run, finished)
}

/// Whether the next sample is the first attempt at one, and not of the first round.
fn begins_anew(run: &Run) -> bool {
    run.samples.len() > run.header.plan.cells.len()
        && run.samples.last().is_some_and(|last| last.valid().is_some())
}

fn killed(run: &Run) -> Vec<&Sample> {
    run.samples.iter().filter(|sample| kinds(sample) == [KilledFromOutside]).collect()
}

#[test]
fn one_that_is_killed_once_is_asked_again() {
    let (run, finished) = run_with_killed(&Place::new(), |run| begins_anew(run) && killed(run).is_empty());
    let killed = killed(&run);
    assert_eq!(killed.len(), 1, "{finished:?}");
    let (failures, _) = broken(killed[0]);
    // Whether it could still say who it is, or take its job, is chance.
    let is_reported = |awaited: &str| {
        failures[0].detail.contains(&format!("was killed by SIGKILL before it sent {awaited}"))
    };
    assert!(["hello", "what was asked", "opened"].into_iter().any(is_reported), "{failures:?}");
    let next = (&killed[0].cell, killed[0].round, killed[0].attempt + 1);
    let again = run.samples.iter().find(|sample| (&sample.cell, sample.round, sample.attempt) == next);
    let again = again.unwrap_or_else(|| panic!("it is not asked again: {:?}", run.samples));
    assert!(matches!(again.outcome, Outcome::Taken { .. }), "{:?}", again.outcome);
    expect_rounds(&run, &[]);
}

#[test]
fn one_that_is_killed_in_several_rounds_is_asked_again_each_time() {
    let (run, _) = run_with_killed(&Place::new(), |run| {
        let (killed, round) = (killed(run), run.samples.last().map_or(0, |last| last.round));
        begins_anew(run) && killed.len() < 4 && killed.iter().all(|sample| sample.round != round)
    });
    assert_eq!(killed(&run).len(), 4);
    expect_rounds(&run, &[]);
}

#[test]
fn one_that_is_killed_again_and_again_ends_its_cell_and_no_other() {
    let (run, finished) = run_with_killed(&Place::new(), |run| match killed(run).len() {
        0 => begins_anew(run),
        kills => kills < 3,
    });
    let killed = killed(&run);
    let tries: Vec<u32> = killed.iter().map(|sample| sample.attempt).collect();
    assert_eq!(tries, [0, 1, 2], "{finished:?}");
    assert!(killed.iter().all(|sample| sample.cell == killed[0].cell));
    expect_rounds(&run, &[&killed[0].cell]);
    // A control carries no verdict, and a method has one if five rounds came before.
    let is_measured = !killed[0].cell.ends_with("/control");
    let of_cell = run.samples.iter().filter(|sample| sample.cell == killed[0].cell);
    let taken = of_cell.filter(|sample| matches!(sample.outcome, Outcome::Taken { .. })).count();
    finished.expect_code(i32::from(is_measured && taken < 5));
}

#[test]
fn one_that_is_always_killed_ends_every_cell() {
    let (run, finished) = run_with_killed(&Place::new(), |_| true);
    assert_eq!(killed(&run).len(), 3 * run.header.plan.cells.len(), "each cell was tried three times");
    finished.expect_code(1);
}

/// Every cell was sampled in every round, but for `ended`.
#[track_caller]
fn expect_rounds(run: &Run, ended: &[&str]) {
    for cell in &run.header.plan.cells {
        let mut rounds: Vec<u32> = run
            .samples
            .iter()
            .filter(|sample| sample.cell == cell.id() && matches!(sample.outcome, Outcome::Taken { .. }))
            .map(|sample| sample.round)
            .collect();
        rounds.sort_unstable();
        rounds.dedup();
        let is_whole = rounds == (0..7).collect::<Vec<_>>();
        assert_eq!(is_whole, !ended.contains(&&*cell.id()), "{}: {rounds:?}", cell.id());
    }
}

#[test]
fn a_run_whose_control_was_lost_has_its_verdict() {
    let place = Place::new();
    place.run(&[&BRIEF[..], &["--sample=20ms"]].concat());
    let whole = load(&place.file("run.jsonl"));
    expect_whole(&whole);
    // The same run, had its control been killed for good in its second round.
    let control =
        whole.header.plan.cells.iter().find(|cell| cell.role.name() == "control").expect("a control").id();
    let lines = whole_lines(&place.file("run.jsonl"));
    let kept: Vec<pagewise_model::run::Record> = lines
        .iter()
        .filter_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("a line");
            serde_json::from_value(value["record"].clone()).ok()
        })
        .filter(|record| match record {
            pagewise_model::run::Record::Sample(sample) => sample.cell != control || sample.round == 0,
            pagewise_model::run::Record::End { .. } => false,
            _ => true,
        })
        .collect();
    let text: String = kept.iter().map(pagewise_model::run::Record::to_line).collect();
    place.write("lost.jsonl", text);
    let judged = place.run(&["report", "lost.jsonl", "--json"]).judged();
    let comparison = &judged["comparisons"][0];
    let measured = |cell: &serde_json::Value| cell["role"] == "measured" && cell["samples"] == 7;
    if judged["cells"].as_array().expect("cells").iter().filter(|cell| measured(cell)).count() == 2 {
        assert_ne!(comparison["verdict"], "not-comparable", "{comparison}");
    }
}
