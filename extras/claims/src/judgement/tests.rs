//! Claims judged by runs that are made up.

use pagewise_model::run::{Header, Run};
use pagewise_model::sample::Measurement;
use pagewise_model::{
    Bytes, CacheState, Cell, Conditions, Evidence, Failure, FailureKind, Outcome, Plan, Reads, Role, Sample,
    Work,
};
use serde_json::{Value, json};

use super::case::CaseFinding;
use super::judged::{JudgedClaim, Word, judge_claims};
use super::study::Study;

const ROUNDS: u32 = 8;

/// A cell that reads 16 KiB sixteen times per operation, from 256 MiB.
fn cell(method: &str, threads: u32, cache: CacheState) -> Cell {
    Cell {
        role: Role::Measured,
        method: method.parse().expect(method),
        conditions: Conditions {
            threads,
            cache,
            ..Conditions::of(
                Work::RandomRead(Reads { reads_per_op: 16, ..Reads::of(Bytes::kib(16)) }),
                Bytes::mib(256),
            )
        },
    }
}

/// A valid sample of reads from the page cache, with so many thousands of operations.
fn outcome(cell: &Cell, speed: u64) -> Outcome {
    let measurement = Measurement {
        setup_ns: 50_000,
        measured_ns: 100_000_000,
        operations: speed * 1000,
        teardown_ns: 9_000,
        latency_phase_ns: 50_000_000,
        latency_phase_operations: 40,
        latency_ns: vec![1_500_000, 2_000_000],
        latency_counts: vec![30, 10],
        ..Measurement::default()
    };
    let evidence = Evidence {
        wall_ns: 151_000_000,
        device_read_bytes: Some(0),
        resident_before_bytes: Some(cell.conditions.span_bytes.0),
        resident_after_bytes: Some(cell.conditions.span_bytes.0),
        ..Evidence::default()
    };
    Outcome::Taken { measurement: Box::new(measurement), evidence: Box::new(evidence), failures: Vec::new() }
}

fn run(entries: &[(Cell, u64)]) -> Run {
    let samples = (0..ROUNDS).flat_map(|round| {
        entries.iter().map(move |(cell, speed)| Sample::of(cell, round, outcome(cell, *speed)))
    });
    let plan = Plan { rounds: ROUNDS, ..Plan::of(entries.iter().map(|(cell, _)| cell.clone()).collect()) };
    Run::of(Header::of(plan), samples.collect())
}

fn warm(entries: &[(&str, u32, u64)]) -> Run {
    let entries: Vec<(Cell, u64)> = entries
        .iter()
        .map(|(method, threads, speed)| (cell(method, *threads, CacheState::Warm), *speed))
        .collect();
    run(&entries)
}

fn study(claim: Value) -> Study {
    let mut claim = claim;
    for (name, text) in [("id", "A"), ("says", "a claim"), ("published", "a figure")] {
        claim[name] = json!(text);
    }
    let study: Study =
        serde_json::from_value(json!({ "published": "then", "claim": [claim] })).expect("a study");
    study.check(&["one"]).expect("a study that can be judged");
    study
}

fn judged(claim: Value, run: Run) -> JudgedClaim {
    let reproduced = judge_claims("test", &study(claim), &[("one".to_string(), Ok(run))]);
    reproduced.claims.into_iter().next().expect("one claim")
}

fn test(mut fields: Value) -> Value {
    fields["run"] = json!("one");
    if fields.get("quantity").is_none() {
        fields["quantity"] = json!("speed");
    }
    json!({ "test": [fields] })
}

/// The speed of mmap over that of pread.
fn mmap_over_pread(bounds: Value) -> Value {
    let mut fields = json!({ "of": { "each": ["mmap"] }, "over": { "best": ["pread"] } });
    for (name, bound) in bounds.as_object().expect("bounds") {
        fields[name] = bound.clone();
    }
    test(fields)
}

#[test]
fn a_claim_holds_within_its_bounds_and_does_not_beyond_them() {
    for (speed, bounds, word) in [
        (30, json!({ "at_least": 1.4 }), Word::Holds),
        (30, json!({ "at_least": 1.6 }), Word::DoesNotHold),
        (30, json!({ "at_most": 1.6 }), Word::Holds),
        (30, json!({ "at_most": 1.4 }), Word::DoesNotHold),
        (30, json!({ "at_least": 1.4, "at_most": 1.6 }), Word::Holds),
        (40, json!({ "at_least": 1.4, "at_most": 1.6 }), Word::DoesNotHold),
    ] {
        let found = judged(mmap_over_pread(bounds.clone()), warm(&[("mmap", 1, speed), ("pread", 1, 20)]));
        assert_eq!(found.word, word, "{speed} {bounds}");
        let case = &found.tests[0].cases[0];
        assert_eq!((case.rounds, case.against.as_deref()), (8, Some("pread")));
        assert!((case.value.expect("a ratio") - speed as f64 / 20.0).abs() < 1e-9);
        assert_eq!(found.reason, None);
    }
}

#[test]
fn what_the_rounds_do_not_decide_is_neither() {
    let mut noisy = warm(&[("mmap", 1, 20), ("pread", 1, 20)]);
    for sample in &mut noisy.samples {
        let is_ahead = (sample.round % 2 == 0) == sample.cell.contains("mmap");
        if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
            measurement.operations = if is_ahead { 21_000 } else { 20_000 };
        }
    }
    let found = judged(mmap_over_pread(json!({ "at_least": 1.0 })), noisy);
    assert_eq!(found.word, Word::CannotBeTested);
    assert_eq!(found.tests[0].cases[0].finding, CaseFinding::Open);
    assert_eq!(found.reason.as_deref(), Some("these rounds do not decide: the interval includes a bound"));
}

#[test]
fn every_case_most_of_them_or_any_must_be_within() {
    // Ahead with 1 to 4 threads, behind with 5.
    let ahead: Vec<(&str, u32, u64)> = (1..=5)
        .flat_map(|threads| [("mmap", threads, if threads < 5 { 30 } else { 10 }), ("pread", threads, 20)])
        .collect();
    for (cases, word) in [("every", Word::DoesNotHold), ("most", Word::Holds), ("any", Word::Holds)] {
        let found = judged(mmap_over_pread(json!({ "at_least": 1.2, "cases": cases })), warm(&ahead));
        assert_eq!(found.word, word, "{cases}");
        assert_eq!(found.tests[0].cases.len(), 5);
        let deciding = &found.tests[0].cases[found.tests[0].deciding.expect("a case")];
        let expected = if cases == "every" { 0.5 } else { 1.5 };
        assert!((deciding.value.expect("a ratio") - expected).abs() < 1e-9, "{cases}");
    }
    let two_behind: Vec<(&str, u32, u64)> = ahead
        .iter()
        .map(|(method, threads, speed)| (*method, *threads, if *threads == 4 { 20 } else { *speed }))
        .collect();
    let found = judged(mmap_over_pread(json!({ "at_least": 1.2, "cases": "most" })), warm(&two_behind));
    assert_eq!(found.word, Word::DoesNotHold);
}

#[test]
fn the_case_shown_is_one_that_speaks_for_the_word() {
    // With one thread it is far behind in the middle, and by no means always; with more it is
    // behind in every round.
    let steady = (2..=6).flat_map(|threads| [("mmap", threads, 15), ("pread", threads, 20)]);
    let mut run = warm(&[("mmap", 1, 20), ("pread", 1, 20)].into_iter().chain(steady).collect::<Vec<_>>());
    for sample in &mut run.samples {
        if sample.cell != run.header.plan.cells[0].id() {
            continue;
        }
        if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
            measurement.operations = if sample.round % 2 == 0 { 30_000 } else { 5_000 };
        }
    }
    let found = judged(mmap_over_pread(json!({ "at_least": 1.0 })), run);
    let test = &found.tests[0];
    let [open, beyond, ..] = &test.cases[..] else { panic!("cases") };
    assert_eq!((open.finding, beyond.finding), (CaseFinding::Open, CaseFinding::Beyond), "{:?}", test.cases);
    assert!(open.margin < beyond.margin, "the open case is the farther from its bound");
    assert_eq!((found.word, test.deciding), (Word::DoesNotHold, Some(1)));
}

#[test]
fn every_test_of_a_claim_must_hold() {
    let over = |bounds: Value| mmap_over_pread(bounds)["test"][0].clone();
    let both = json!({ "test": [over(json!({ "at_least": 1.2 })), over(json!({ "at_most": 1.3 }))] });
    assert_eq!(judged(both, warm(&[("mmap", 1, 30), ("pread", 1, 20)])).word, Word::DoesNotHold);
}

#[test]
fn sides_are_the_best_of_several_methods_or_one_method_under_other_conditions() {
    let run = || {
        warm(&[("mmap", 1, 30), ("mmap:random", 1, 20), ("pread", 1, 10), ("mmap", 4, 90), ("pread", 4, 10)])
    };
    let ratio = |fields: Value| {
        let found = judged(test(fields), run());
        let cases = &found.tests[0].cases;
        cases.iter().map(|case| (case.value.expect("a ratio") * 100.0).round() / 100.0).collect::<Vec<_>>()
    };
    let best = json!({ "of": { "each": ["pread"] }, "over": { "best": ["mmap*"] }, "at": { "threads": [1] }, "at_most": 1 });
    assert_eq!(ratio(best), [0.33]);
    let but = json!({ "of": { "each": ["pread"] }, "over": { "best": ["mmap*"], "but": ["mmap"] }, "at": { "threads": [1] }, "at_most": 1 });
    assert_eq!(ratio(but), [0.5]);
    let threads = json!({ "of": { "each": ["mmap", "pread"], "threads": [4] }, "over": { "threads": [1] }, "at_least": 1 });
    assert_eq!(ratio(threads), [3.0, 1.0]);
}

#[test]
fn sizes_are_named_by_their_place_among_those_of_the_run() {
    let mut entries = Vec::new();
    for (spans, speed) in [(1u64, 60), (2, 30), (4, 20)] {
        let mut one = cell("mmap", 1, CacheState::Warm);
        one.conditions.span_bytes.0 /= 4;
        one.conditions.span_bytes.0 *= spans;
        entries.push((one, speed));
    }
    let fields = json!({ "of": { "each": ["mmap"], "data": "smallest" }, "over": { "data": "largest" }, "at_least": 2.5 });
    let found = judged(test(fields), run(&entries));
    assert_eq!(found.word, Word::Holds);
    assert_eq!(found.tests[0].cases.len(), 1);
}

#[test]
fn a_size_that_only_some_cells_have_is_still_the_largest() {
    let mut entries = Vec::new();
    for (threads, share, speed) in [(4, 4, 80), (4, 1, 20), (16, 1, 30)] {
        let mut one = cell("mmap", threads, CacheState::Warm);
        one.conditions.span_bytes.0 /= share;
        entries.push((one, speed));
    }
    let scaling = json!({ "of": { "each": ["mmap"], "threads": [16] }, "over": { "threads": [4] }, "at": { "data": "largest" }, "at_least": 1.2 });
    assert_eq!(judged(test(scaling), run(&entries)).word, Word::Holds);
    let alone = json!({ "quantity": "cached-before", "of": { "each": ["mmap"] }, "at": { "data": "smallest" }, "at_least": 0.5 });
    assert_eq!(judged(test(alone), run(&entries)).tests[0].cases.len(), 1);
}

#[test]
fn what_cannot_be_tested_has_its_reason() {
    let of = || json!({ "at_least": 1.2 });
    let nothing = judged(mmap_over_pread(of()), warm(&[("mmap", 1, 30)]));
    assert_eq!(nothing.reason.as_deref(), Some("there is nothing to compare with in this run"));
    let none = judged(mmap_over_pread(of()), warm(&[("pread", 1, 30)]));
    assert_eq!(none.reason.as_deref(), Some("this run has none of its cases"));

    let mut needing = mmap_over_pread(of());
    needing["needs"] = json!({ "cpus": 4096 });
    let found = judged(needing, warm(&[("mmap", 1, 30), ("pread", 1, 20)]));
    assert_eq!(found.word, Word::CannotBeTested);
    assert!(
        found
            .reason
            .expect("a reason")
            .starts_with("it is about 4096 threads that run at once, and this machine has ")
    );

    let printed = judged(json!({ "untestable": "it is about a table" }), warm(&[("mmap", 1, 30)]));
    assert_eq!(
        (printed.word, printed.reason.as_deref()),
        (Word::CannotBeTested, Some("it is about a table"))
    );

    let missing = Err("no memory limit can be set".to_string());
    let reproduced = judge_claims("test", &study(mmap_over_pread(of())), &[("one".to_string(), missing)]);
    assert_eq!(reproduced.missing, ["one: no memory limit can be set"]);
    let reason = reproduced.claims[0].reason.as_deref();
    assert_eq!(reason, Some("the run one is missing: no memory limit can be set"));
}

#[test]
fn invalid_samples_do_not_count_and_unsupported_cells_are_left_out() {
    let entries = [("mmap", 1, 30), ("pread", 1, 20), ("mmap", 4, 30), ("pread", 4, 20)];
    let claim = || mmap_over_pread(json!({ "at_least": 1.2 }));
    let mut invalid = warm(&entries);
    let failure = Failure { kind: FailureKind::WrongChecksum, detail: "the bytes differ".into() };
    for sample in &mut invalid.samples {
        let is_spoilt = sample.cell == invalid.header.plan.cells[3].id();
        if let (true, Outcome::Taken { failures, .. }) = (is_spoilt, &mut sample.outcome) {
            failures.push(failure.clone());
        }
    }
    let found = judged(claim(), invalid);
    assert_eq!((found.word, found.tests[0].cases[1].finding), (Word::CannotBeTested, CaseFinding::Missing));
    assert_eq!(found.reason.as_deref(), Some("pread has 0 valid samples: the bytes differ"));

    let mut unsupported = warm(&entries);
    for sample in &mut unsupported.samples {
        if sample.cell == unsupported.header.plan.cells[3].id() {
            sample.outcome = Outcome::Unavailable { reason: "no such call".into() };
        }
    }
    let found = judged(claim(), unsupported);
    assert_eq!((found.word, found.tests[0].cases[1].finding), (Word::Holds, CaseFinding::Unavailable));
}

#[test]
fn a_control_is_compared_with_its_method() {
    let mut entries = vec![(cell("mmap", 1, CacheState::Warm), 30), (cell("mmap", 1, CacheState::Warm), 20)];
    entries[1].0.role = Role::Control;
    let fields = json!({ "of": { "each": ["*"], "role": "control" }, "over": { "role": "measured" }, "at_least": 0.9, "at_most": 1.1 });
    let found = judged(test(fields), run(&entries));
    assert_eq!(found.word, Word::DoesNotHold);
    assert_eq!(found.tests[0].cases[0].against.as_deref(), Some("mmap"));
}

#[test]
fn a_quantity_may_stand_alone_or_be_subtracted() {
    let alone = json!({ "quantity": "cached-before", "of": { "each": ["mmap"] }, "at_least": 0.99 });
    assert_eq!(judged(test(alone), warm(&[("mmap", 1, 30)])).word, Word::Holds);
    let less = json!({ "quantity": "cached-before", "of": { "each": ["mmap"] }, "minus": { "best": ["pread"] }, "at_least": 0.01 });
    let found = judged(test(less), warm(&[("mmap", 1, 30), ("pread", 1, 30)]));
    assert_eq!((found.word, found.tests[0].cases[0].value), (Word::DoesNotHold, Some(0.0)));
}
