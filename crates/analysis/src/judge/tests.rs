//! Whole runs with a known answer.

mod one_shot;
mod replay;
mod settings;
/// The sentences of the report, which has more uses for them.
#[allow(dead_code)]
#[path = "../../../report/src/words"]
pub(crate) mod words {
    pub(crate) mod advice;
    pub(crate) mod limit;
    pub(crate) mod reasons;
}

pub(crate) use replay::{own_bytes, replays};
use words::reasons;

use super::*;
use crate::judge::reasons::{CellReason, NoVerdict, UnrankedReason};
use crate::judge::verdict::{FEWEST_ROUNDS, Place, Verdict};
use crate::proof::honest;
use pagewise_model::format::times_interval;
use pagewise_model::run::Header;
use pagewise_model::sample::Measurement;
use pagewise_model::{Bytes, CacheState, Cell, Consume, Failure, FailureKind, Outcome, Plan, Role, Sample};
use serde_json::Value;

const ROUNDS: u32 = 8;

/// Notes of a comparison, as the report says them.
pub(crate) fn notes(judged: &Judged, index: usize) -> Vec<String> {
    words::advice::notes(&judged.advice[index], &judged.comparisons[index])
}

/// The sentence of the first comparison, as the report says it.
pub(crate) fn sentence(judged: &Judged) -> String {
    words::advice::sentence(&judged.advice[0], &judged.comparisons[0])
}

/// The judged JSON, without the sentences of the report.
fn json(judged: &Judged) -> Value {
    let mut json = serde_json::to_value(judged).expect("json");
    json["cells"] = serde_json::to_value(&judged.cells).expect("json");
    json["comparisons"] = serde_json::to_value(&judged.comparisons).expect("json");
    json
}

/// A cell with its role and its relative speed.
fn entry(role: Role, method: &str, cache: CacheState, speed: u64) -> (Cell, u64) {
    (Cell { role, ..honest::cell(method, cache) }, speed)
}

fn taken(cell: &Cell, speed: u64, round: u32) -> Outcome {
    let operations = speed * 1000 + u64::from(round);
    let measurement = Measurement { operations, ..honest::measurement() };
    Outcome::Taken {
        measurement: Box::new(measurement),
        evidence: Box::new(honest::evidence(cell)),
        failures: Vec::new(),
    }
}

fn sample(cell: &Cell, round: u32, attempt: u32, outcome: Outcome) -> Sample {
    Sample { attempt, ..Sample::of(cell, round, outcome) }
}

fn run(entries: &[(Cell, u64)]) -> Run {
    let samples = (0..ROUNDS)
        .flat_map(|round| {
            entries.iter().map(move |(cell, speed)| sample(cell, round, 0, taken(cell, *speed, round)))
        })
        .collect();
    Run {
        elapsed_ns: Some(1),
        ..Run::of(
            Header::of(Plan {
                rounds: ROUNDS,
                ..Plan::of(entries.iter().map(|(cell, _)| cell.clone()).collect())
            }),
            samples,
        )
    }
}

fn three(cache: CacheState) -> Vec<(Cell, u64)> {
    vec![
        entry(Role::Measured, "mmap", cache, 10),
        entry(Role::Measured, "pread", cache, 13),
        entry(Role::Control, "pread", cache, 13),
    ]
}

/// Make every sample of the cell at `index` invalid.
fn spoil(run: &mut Run, index: usize) {
    let id = run.header.plan.cells[index].id();
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == id) {
        if let Outcome::Taken { failures, .. } = &mut sample.outcome {
            failures.push(Failure { kind: FailureKind::WrongBytes, detail: "1 of 64 differ".into() });
        }
    }
}

#[test]
fn the_better_method_wins_and_is_advised() {
    let judged = judge(&run(&three(CacheState::Warm)));
    let comparison = &judged.comparisons[0];
    assert_eq!((comparison.verdict, comparison.best.as_deref()), (Verdict::Best, Some("pread")));
    assert_eq!((comparison.cells.len(), comparison.controls.len()), (2, 1));
    assert_eq!(judged.advice[0].recommended.as_deref(), Some("pread"));
    assert!(
        sentence(&judged).contains(
            "choose pread (limited by cpu 79 % [79, 79]); it is 1.30x [1.29, 1.31] as fast as mmap"
        ),
        "{}",
        sentence(&judged)
    );
    assert!(!judged.fell_short());
}

#[test]
fn of_a_tie_the_simplest_is_advised() {
    let mut entries = three(CacheState::Warm);
    entries[0].1 = 13;
    let judged = judge(&run(&entries));
    let advice = &judged.advice[0];
    assert_eq!(
        (advice.recommended.as_deref(), advice.alternatives.as_slice()),
        (Some("pread"), &["mmap".to_string()][..])
    );
    assert!(sentence(&judged).contains("choose pread"), "{}", sentence(&judged));
}

#[test]
fn simplicity_does_not_advise_what_may_be_far_behind() {
    let mut run = run(&three(CacheState::Warm));
    // mmap is 10 % ahead, but behind in every fourth round.
    let mmap = run.header.plan.cells[0].id();
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == mmap) {
        if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
            measurement.operations = if sample.round % 4 == 0 { 9_000 } else { 14_300 };
        }
    }
    let judged = judge(&run);
    let (comparison, advice) = (&judged.comparisons[0], &judged.advice[0]);
    assert_eq!((comparison.verdict, comparison.staying()), (Verdict::Open, vec!["mmap", "pread"]));
    assert_eq!(advice.recommended.as_deref(), Some("mmap"));
    // The sentence has the interval of the table: a bound of another certainty would contradict it.
    let ratio = comparison.ratios.iter().find(|ratio| ratio.method == "pread").expect("a ratio");
    assert_eq!(ratio.place, Place::Open);
    let (low, high) = times_interval(ratio.low.expect("an end"), ratio.high.expect("an end"));
    let simpler = format!("simpler and not shown to be behind is pread (open: {low}x to {high}x)");
    assert!(sentence(&judged).contains(&simpler), "{}", sentence(&judged));
}

/// An interrupted run says nothing of the machine about a cell to which it did not come.
#[test]
fn a_cell_without_an_attempt_is_not_measured_and_not_unavailable() {
    let mut run = run(&three(CacheState::Warm));
    let (first, second) = (run.header.plan.cells[0].id(), run.header.plan.cells[1].id());
    run.samples.retain(|sample| sample.cell != first);
    let refused = Outcome::Unavailable { reason: "io_uring_setup: EPERM".into() };
    let sample = run.samples.iter_mut().filter(|sample| sample.cell == second);
    sample.for_each(|sample| sample.outcome = refused.clone());
    let judged = judge(&run);
    let of = |index: usize| (judged.cells[index].status, judged.cells[index].reason.clone());
    assert_eq!(of(0), (Status::NotMeasured, Some(CellReason::NotSampled)));
    assert_eq!(of(1), (Status::Unavailable, Some(CellReason::Unavailable("io_uring_setup: EPERM".into()))));
    assert_eq!(serde_json::to_value(&judged.cells[0]).expect("JSON")["status"], "not-measured");
    assert!(!judged.cells[0].fell_short());
}

#[test]
fn slow_processes_are_counted_not_averaged_away() {
    let mut run = run(&three(CacheState::Warm));
    let mmap = run.header.plan.cells[0].id();
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == mmap) {
        if let (0 | 2 | 3, Outcome::Taken { measurement, .. }) = (sample.round, &mut sample.outcome) {
            // 1.4 times the median time of 10,000 operations in the first round, 1.6 times in the
            // two others.
            measurement.operations = if sample.round == 0 { 7_143 } else { 6_250 };
        }
    }
    let judged = judge(&run);
    assert_eq!((judged.cells[0].slow_processes, judged.cells[1].slow_processes), (2, 0));
}

#[test]
fn simplicity_has_its_price_and_no_more() {
    // mmap is 3 % ahead, with a scatter that hides it.
    let mut run = run(&three(CacheState::Warm));
    let mmap = run.header.plan.cells[0].id();
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == mmap) {
        if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
            measurement.operations = 13_000 + if sample.round % 2 == 0 { 450 } else { 0 };
        }
    }
    let bound = judge(&run).comparisons[0].bound("pread").expect("eight rounds");
    assert!((0.02..0.05).contains(&bound), "{bound}");
    let advised = |price: f64| judge_at(&run, price).advice.remove(0);
    assert_eq!(advised(0.05).recommended.as_deref(), Some("pread"));
    let simple = sentence(&judge_at(&run, 0.05));
    assert!(
        simple.contains("choose pread (limited by cpu 79 % [79, 79]): simpler than mmap, and at most "),
        "{simple}"
    );
    // What is behind for certain has a bound too.
    let mut behind = three(CacheState::Warm);
    (behind[0].1, behind[1].1) = (100, 97);
    let behind = self::run(&behind);
    assert_eq!(judge(&behind).comparisons[0].best.as_deref(), Some("mmap"));
    let chosen = |price: f64| judge_at(&behind, price).advice.remove(0).recommended;
    assert_eq!((chosen(0.05).as_deref(), chosen(0.02).as_deref()), (Some("pread"), Some("mmap")));
    assert_eq!(advised(0.01).recommended.as_deref(), Some("mmap"));
}

#[test]
fn nothing_is_advised_beside_a_rival_that_was_ahead_in_few_rounds() {
    let with = |speed: u64| {
        let mut entries = three(CacheState::Warm);
        entries.push(entry(Role::Measured, "uring:depth=32", CacheState::Warm, speed));
        let mut run = run(&entries);
        let uring = entries[3].0.id();
        run.samples.retain(|sample| sample.cell != uring || sample.round < 4);
        judge(&run)
    };
    let judged = with(20);
    let (comparison, advice) = (&judged.comparisons[0], &judged.advice[0]);
    assert_eq!((comparison.verdict, comparison.leader.as_deref()), (Verdict::Open, Some("pread")));
    assert_eq!(comparison.staying(), ["pread", "uring:depth=32"]);
    assert_eq!(comparison.ratios[0].bound, None);
    assert_eq!((advice.recommended.as_deref(), advice.alternatives.len()), (None, 2));
    let why = "uring:depth=32 was ahead of pread in 4 rounds, too few to rank it";
    assert_eq!(words::advice::silence(comparison).as_deref(), Some(why));
    let level = with(13);
    let (comparison, advice) = (&level.comparisons[0], &level.advice[0]);
    assert_eq!((comparison.verdict, advice.recommended.as_deref()), (Verdict::Open, Some("pread")));
}

#[test]
fn one_method_of_several_has_no_rival() {
    let refused = |methods: &[usize]| {
        let mut run = run(&three(CacheState::Warm)[..2]);
        for method in methods {
            let id = run.header.plan.cells[*method].id();
            run.samples.retain(|sample| sample.cell != id);
            let reason = "no toolchain".into();
            let cell = run.header.plan.cells[*method].clone();
            run.samples.push(sample(&cell, 0, 0, Outcome::Unavailable { reason }));
        }
        judge(&run)
    };
    assert!(!refused(&[]).lacks_rival());
    let one = refused(&[1]);
    assert!(one.lacks_rival() && !one.fell_short(), "{:?}", one.comparisons[0].reason);
    assert!(!refused(&[0, 1]).lacks_rival(), "nothing can be measured there");
}

#[test]
fn a_method_that_is_measured_alone_is_not_called_the_only_one() {
    let mut lost = run(&three(CacheState::Warm)[..2]);
    spoil(&mut lost, 0);
    let reason = judge(&lost).comparisons.remove(0).reason;
    assert_eq!(reason, Some(NoVerdict::OneRanked("pread".into())));
    lost.samples.retain(|sample| sample.round < 3);
    let reason = judge(&lost).comparisons.remove(0).reason;
    assert_eq!(reason, Some(NoVerdict::NoneHasRounds));
}

#[test]
fn a_lead_is_over_the_next_best_ranked_or_not() {
    let mut entries = three(CacheState::Warm);
    entries[0].1 = 1;
    entries.push(entry(Role::Measured, "uring:depth=32", CacheState::Warm, 10));
    let mut run = run(&entries);
    let uring = entries[3].0.id();
    run.samples.retain(|sample| sample.cell != uring || sample.round < 3);
    let judged = judge(&run);
    let comparison = &judged.comparisons[0];
    assert_eq!((comparison.verdict, comparison.best.as_deref()), (Verdict::Best, Some("pread")));
    let (next, ratio) = comparison.closest_unranked().expect("it is not ranked");
    assert!(next == "uring:depth=32" && (ratio - 1.3).abs() < 1e-3, "{next} {ratio}");
    let text = "it is about 1.30x as fast as uring:depth=32, which has too few rounds to be ranked";
    assert!(sentence(&judged).contains(text), "{}", sentence(&judged));
}

#[test]
fn a_gap_of_few_rounds_is_no_interval_like_others() {
    let mut run = run(&three(CacheState::Warm)[..2]);
    let slow = run.header.plan.cells[0].id();
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == slow) {
        if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
            measurement.operations /= 10;
        }
    }
    run.samples.retain(|sample| sample.round < 3 || sample.cell != slow);
    let judged = judge(&run);
    let ratio = &judged.comparisons[0].ratios[0];
    assert!(ratio.is_gap() && ratio.rounds == 3 && ratio.place == verdict::Place::Behind, "{ratio:?}");
    let sentence = sentence(&judged);
    assert!(sentence.ends_with("it is 13.0x in 3 rounds as fast as mmap, the next best."), "{sentence}");
}

#[test]
fn a_control_that_differs_warns_and_silences_nothing() {
    let mut entries = three(CacheState::Warm);
    assert_eq!(judge(&run(&entries)).unlike_itself, None);
    entries[2].1 = 26;
    let judged = judge(&run(&entries));
    assert_eq!(judged.comparisons[0].verdict, Verdict::Best);
    assert_eq!(judged.unlike_itself.map(|unlike| unlike.method).as_deref(), Some("pread"));
}

#[test]
fn a_method_that_is_compared_is_no_ceiling() {
    let mut entries = three(CacheState::Cold);
    entries.push(entry(Role::Measured, "uring:direct+depth=32", CacheState::Cold, 50));
    let judged = judge(&run(&entries));
    assert!(judged.ceilings.device.is_empty() && judged.ceilings.device_iops.is_none());
    entries.push(entry(Role::Ceiling, "uring:direct+depth=32", CacheState::Cold, 50));
    assert_eq!(judge(&run(&entries)).ceilings.device.len(), 1);
}

#[test]
fn what_was_refused_in_one_round_says_why() {
    let entries = three(CacheState::Warm);
    let mut run = run(&entries);
    let refused = Outcome::Unavailable { reason: "no huge page".into() };
    // Samples are ordered by round, three cells each: this is the last round of mmap.
    run.samples[21].outcome = refused;
    let judged = judge(&run);
    assert_eq!((judged.validity.refused, judged.validity.unavailable_cells), (1, 0));
    let cell = &judged.cells[0];
    assert_eq!((cell.status, cell.samples, cell.invalid_samples), (Status::Ok, 7, 0));
    assert_eq!(reasons::cell(cell.reason.as_ref()), "unavailable in 1 of 8 attempts: no huge page");
}

#[test]
fn a_round_of_a_control_alone_is_no_shortfall() {
    let mut run = run(&three(CacheState::Warm));
    let (measured, control) = (1, 2);
    spoil(&mut run, control);
    assert!(!judge(&run).fell_short());
    spoil(&mut run, measured);
    assert!(judge(&run).fell_short());
}

#[test]
fn a_control_is_not_needed() {
    let comparison = &judge(&run(&three(CacheState::Warm)[..2])).comparisons[0];
    assert_eq!((comparison.verdict, comparison.rounds), (Verdict::Best, 8));
    let mut lost = run(&three(CacheState::Warm));
    spoil(&mut lost, 2);
    assert_eq!(judge(&lost).comparisons[0].best.as_deref(), Some("pread"));
}

#[test]
fn touching_a_mapping_in_place_is_not_ranked() {
    let mut entries = three(CacheState::Warm);
    entries.push(entry(Role::Measured, "mmap:in-place", CacheState::Warm, 900));
    let touched = judge(&run(&entries));
    assert_eq!(touched.comparisons[0].best.as_deref(), Some("pread"));
    assert_eq!(touched.comparisons[0].unranked[0].method, "mmap:in-place");
    for (cell, _) in &mut entries {
        honest::reads_mut(cell).consume = Consume::Sum;
    }
    assert_eq!(judge(&run(&entries)).comparisons[0].best.as_deref(), Some("mmap:in-place"));
}

#[test]
fn what_set_up_read_is_not_ranked_as_cold() {
    let mut entries = three(CacheState::Cold);
    entries.push(entry(Role::Measured, "mmap:populate", CacheState::Cold, 900));
    let comparison = &judge(&run(&entries)).comparisons[0];
    assert_eq!(comparison.best.as_deref(), Some("pread"));
    assert_eq!(comparison.unranked[0].reason, UnrankedReason::ReadInSetUp);
}

#[test]
fn a_cache_that_changes_between_samples_is_not_comparable() {
    let mut changing = run(&three(CacheState::AsIs));
    let mut set_resident = |sample: usize| {
        if let Outcome::Taken { evidence, .. } = &mut changing.samples[sample].outcome {
            evidence.resident_before_bytes = Some(64 << 20);
        }
        judge(&changing)
    };
    // The first of eight rounds found another cache: seven are left, which is enough.
    let seven = &set_resident(0).comparisons[0];
    assert_eq!(seven.verdict, Verdict::Best);
    let as_is = seven.as_is.expect("the cache is known");
    assert_eq!(
        (as_is.resident_share_first, as_is.resident_share_low, as_is.resident_share_high),
        (0.25, 1.0, 1.0)
    );
    assert_eq!((as_is.rounds_counted, as_is.rounds, as_is.changed()), (7, 8, true));
    for sample in [3, 6, 9] {
        set_resident(sample);
    }
    let judged = set_resident(12);
    assert_eq!(judged.comparisons[0].verdict, Verdict::NotComparable);
    let changed = NoVerdict::CacheChanged { low: 0.25, high: 1.0, alike: 3, rounds: 8 };
    assert_eq!(judged.comparisons[0].reason, Some(changed));
    assert!(sentence(&judged).contains("--cache warm"));
}

#[test]
fn what_the_cache_held_is_said_of_as_is_only() {
    let as_is = |cache| judge(&run(&three(cache))).comparisons[0].as_is;
    let held = as_is(CacheState::AsIs).expect("the cache is known");
    assert_eq!((held.resident_share_low, held.rounds_counted, held.changed()), (1.0, 8, false));
    assert_eq!(as_is(CacheState::Warm), None);
}

#[test]
fn the_failure_that_ended_a_cell_is_its_reason() {
    let failure = |kind, detail: &str| Failure { kind, detail: detail.into() };
    let died = || Outcome::Broken {
        failures: vec![failure(FailureKind::FileChanged, "cut"), failure(FailureKind::WorkerDied, "killed")],
        stderr_tail: String::new(),
    };
    let reason = |broken_at: usize| {
        let mut run = run(&three(CacheState::Warm)[..1]);
        for index in [1, 2] {
            let Outcome::Taken { failures, .. } = &mut run.samples[index].outcome else { unreachable!() };
            failures.push(failure(FailureKind::Contaminated, "others"));
        }
        run.samples[broken_at].outcome = died();
        reasons::cell(judge(&run).cells[0].reason.as_ref())
    };
    assert_eq!(reason(ROUNDS as usize - 1), "file-changed: cut");
    assert_eq!(reason(4), "contaminated: others", "it was tried again");
}

#[test]
fn a_method_that_was_stopped_as_slow_is_an_answer() {
    let falls_short = |kind| {
        let mut run = run(&three(CacheState::Warm));
        let slow = run.samples[0].cell.clone();
        run.samples.retain(|sample| sample.cell != slow || sample.round == 0);
        let failures = vec![Failure { kind, detail: "stopped after 10 s".into() }];
        run.samples[0].outcome = Outcome::Broken { failures, stderr_tail: String::new() };
        judge(&run).fell_short()
    };
    assert_eq!([FailureKind::TooSlow, FailureKind::WorkerHung].map(falls_short), [false, true]);
}

#[test]
fn an_unavailable_or_invalid_method_does_not_spoil_the_others() {
    let mut entries = three(CacheState::Warm);
    entries.push(entry(Role::Measured, "uring", CacheState::Warm, 50));
    entries.push(entry(Role::Measured, "mmap:random", CacheState::Warm, 50));
    let mut run = run(&entries);
    let uring = entries[3].0.id();
    run.samples.retain(|sample| sample.cell != uring);
    let refused = Outcome::Unavailable { reason: "io_uring_setup: EPERM".into() };
    run.samples.push(sample(&entries[3].0, 0, 0, refused));
    spoil(&mut run, 4);
    let judged = judge(&run);
    assert_eq!(judged.comparisons[0].best.as_deref(), Some("pread"));
    assert_eq!((judged.cells[3].status, judged.cells[4].status), (Status::Unavailable, Status::Invalid));
    assert_eq!(judged.cells[3].reason, Some(CellReason::Unavailable("io_uring_setup: EPERM".into())));
    assert_eq!(reasons::cell(judged.cells[4].reason.as_ref()), "wrong-bytes: 1 of 64 differ");
    assert_eq!(judged.cells[4].ops_per_second, None);
    assert_eq!((judged.validity.invalid, judged.validity.unavailable_cells), (8, 1));
    assert!(judged.fell_short());
}

#[test]
fn a_sample_taken_again_counts_once() {
    let entries = three(CacheState::Warm);
    let mut run = run(&entries);
    if let Outcome::Taken { failures, .. } = &mut run.samples[0].outcome {
        failures.push(Failure { kind: FailureKind::Contaminated, detail: "others".into() });
    }
    run.samples.push(sample(&entries[0].0, 0, 1, taken(&entries[0].0, 10, 0)));
    let judged = judge(&run);
    assert_eq!((judged.cells[0].samples, judged.cells[0].invalid_samples), (8, 1));
    assert_eq!((judged.validity.samples, judged.validity.valid), (25, 24));
    assert_eq!(judged.validity.reasons[0].kind, FailureKind::Contaminated);
    assert!(!judged.fell_short());
}

#[test]
fn a_complete_run_fell_short_if_a_verdict_lacks_its_samples() {
    let complete = run(&three(CacheState::Warm));
    assert!(!judge(&complete).fell_short());
    let few = FEWEST_ROUNDS as u32;
    let mut run = complete.clone();
    run.samples.retain(|sample| sample.round < few);
    assert!(!judge(&run).fell_short(), "five rounds of all have verdicts");
    run.samples.retain(|sample| sample.round < few - 1);
    assert!(judge(&run).fell_short(), "four rounds of all");
    let mut run = complete.clone();
    let first = run.header.plan.cells[0].id();
    run.samples.retain(|sample| sample.cell != first || sample.round < few);
    assert!(!judge(&run).fell_short(), "five samples of one");
    // A screen still says that it has fewer than the others.
    assert_eq!(judge(&run).short_cells().count(), 1);
    run.samples.retain(|sample| sample.cell != first || sample.round < few - 1);
    assert!(judge(&run).fell_short(), "four samples of one");
}

#[test]
fn a_run_that_ended_early_or_had_another_worker_fell_short() {
    let mut run = run(&three(CacheState::Warm));
    run.elapsed_ns = None;
    run.samples.truncate(5);
    run.header.worker_command = Some("cheat".into());
    let judged = judge(&run);
    assert_eq!(judged.run.worker_command.as_deref(), Some("cheat"));
    assert_eq!((judged.run.samples_tried, judged.run.samples_planned), (5, Some(24)));
    assert!(judged.fell_short());
}

#[test]
fn a_plan_without_samples_is_judged_too() {
    let mut empty = run(&three(CacheState::Cold));
    empty.samples.clear();
    let judged = judge(&empty);
    assert_eq!((judged.validity.share, judged.comparisons[0].verdict), (None, Verdict::NotComparable));
    assert!(judged.cells.iter().all(|cell| cell.status == Status::NotMeasured));
}

#[test]
fn the_fields_that_others_build_on_are_there() {
    let json = json(&judge(&run(&three(CacheState::Cold))));
    for key in ["schema", "run", "environment", "ceilings", "cells", "comparisons", "validity"] {
        assert!(!json[key].is_null(), "{key}");
    }
    let cell = json["cells"][0].as_object().expect("a cell");
    let keys = [
        "id",
        "role",
        "workload",
        "method",
        "worker",
        "access",
        "options",
        "threads",
        "file_bytes",
        "memory_limit_bytes",
        "cache",
        "parameters",
        "status",
        "samples",
        "invalid_samples",
        "ops_per_second",
        "reads_per_second",
        "bytes_per_second",
        "latency_ns",
        "setup_ns",
        "measured_ns",
        "teardown_ns",
        "total_ns",
        "bound",
        "of_ceiling",
        "evidence",
    ];
    assert!(keys.iter().all(|key| cell.contains_key(*key)));
    assert_eq!(json["cells"][0]["file_bytes"], 256 << 20);
    assert_eq!(json["cells"][0]["latency_ns"]["taken"], "every operation of a separate phase");
    assert_eq!(json["cells"][0]["evidence"]["amplification"], 1.0);
    assert_eq!(json["comparisons"][0]["verdict"], "best");
    assert_eq!(json["comparisons"][0]["conditions"]["cache"], "cold");
}

#[test]
fn labels_distinguish_conditions() {
    let mut cell = honest::cell("pread", CacheState::Warm);
    let conditions = &cell.conditions;
    let label = label::label(conditions);
    assert_eq!(label, "random-read · batches of 16 reads of 16 KiB · warm · 2 threads · 256 MiB");
    cell.conditions.span_bytes = Bytes::mib(64);
    honest::reads_mut(&mut cell).consume = Consume::Sum;
    honest::reads_mut(&mut cell).align_bytes = Bytes(512);
    assert!(
        label::label(&cell.conditions)
            .ends_with("· in its first 64 MiB · aligned to 512 B · all bytes summed")
    );
}
