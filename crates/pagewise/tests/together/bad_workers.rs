//! Workers of the user's own, and one in the JVM, that go wrong in the middle of a run: one
//! sentence each, the rest of the run goes on, and nothing is left behind.

use std::collections::BTreeSet;

use crate::support::needs::has_toolchain;
use crate::support::{
    self, Finished, Place, cheating_worker, is_honest, kinds, load, misbehaving_worker, of_method,
};
use pagewise_model::FailureKind::{Disturbed, FalseTime, WorkerDied};
use pagewise_model::run::Run;
use pagewise_model::{FailureKind, Outcome};

const ARGUMENTS: [&str; 8] = [
    "run",
    "read",
    "--workload=random-read",
    "--cache=warm",
    "--threads=1",
    "--trial-rounds=2",
    "--sample=5ms",
    "--out=run.jsonl",
];

/// Runs `pread` beside another method to the end. The cells of `pread` have all their samples;
/// nothing is left but the run file.
#[track_caller]
fn run(place: &Place, more: &[&str]) -> (Run, Finished) {
    let mut arguments = ARGUMENTS.to_vec();
    arguments.extend(more);
    let mut command = place.command(&arguments);
    command.env("XDG_CACHE_HOME", place.root().join("cache"));
    let finished = place.finish(command.spawn().expect("pagewise starts"));
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete(), "{finished:?}");
    let native = of_method(&run, "pread");
    for sample in &native {
        assert!(is_honest(sample), "{:?}", sample.outcome);
    }
    let rounds: BTreeSet<u32> = native.iter().map(|sample| sample.round).collect();
    assert_eq!(rounds, (0..run.header.plan.rounds).collect());
    assert_eq!(place.entries(), ["run.html", "run.jsonl"].map(String::from).into());
    place.expect_no_trace();
    (run, finished.expect_code(1))
}

/// The same with `pread` of a worker of one's own.
#[track_caller]
fn run_beside(command: &str, more: &[&str]) -> (Run, Finished, Place) {
    let place = Place::new();
    let worker = format!("--worker=mine={command}");
    let mut arguments = vec!["--methods=pread,mine/pread", "--file-size=4MiB", &worker];
    arguments.extend(more);
    let (run, finished) = run(&place, &arguments);
    (run, finished, place)
}

/// The judged cell of `method`: invalid or unavailable, with a reason of one line.
#[track_caller]
fn reason(place: &Place, method: &str) -> String {
    let judged = place.run(&["report", "run.jsonl", "--json"]).judged();
    let cells = judged["cells"].as_array().expect("cells");
    let cell = cells.iter().find(|cell| cell["method"] == method).expect("the cell is shown");
    assert_ne!(cell["status"], "ok", "{cell}");
    let reason = cell["reason"].as_str().expect("a reason").to_string();
    assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
    reason
}

/// The first sample of `mine/pread` ends its cell, with one failure of this kind; the table says
/// so.
#[track_caller]
fn ends_its_cell(command: &str, more: &[&str], kind: FailureKind, detail: &str) -> (Run, Place) {
    let (run, finished, place) = run_beside(command, more);
    for sample in of_method(&run, "mine/pread") {
        assert_eq!(kinds(sample), [kind], "{:?}", sample.outcome);
        assert!(matches!(sample.outcome, Outcome::Broken { .. }), "{:?}", sample.outcome);
        assert!(sample.failures()[0].detail.contains(detail), "{:?}", sample.outcome);
    }
    assert!(!of_method(&run, "mine/pread").is_empty());
    let reason = reason(&place, "mine/pread");
    assert!(reason.contains(detail), "{reason}");
    assert!(finished.stdout.contains("mine/pread"), "{finished:?}");
    (run, place)
}

#[test]
fn one_that_is_honest_is_a_method_like_any_other() {
    let place = Place::new();
    let worker = format!("--worker=mine={}", misbehaving_worker("honest"));
    let mut arguments = ARGUMENTS.to_vec();
    arguments.extend(["--methods=pread,mine/pread", "--file-size=4MiB", &worker]);
    place.run(&arguments);
    let run = load(&place.file("run.jsonl"));
    let own = of_method(&run, "mine/pread");
    assert!(own.len() >= 2);
    for sample in own {
        assert!(is_honest(sample), "{:?}", sample.outcome);
    }
    place.expect_no_trace();
}

#[test]
fn one_that_dies_in_start_up_with_a_stack_trace() {
    let detail = "ended with status 3 before it sent hello";
    let (run, place) = ends_its_cell(&misbehaving_worker("dies"), &[], WorkerDied, detail);
    for sample in of_method(&run, "mine/pread") {
        let (_, tail) = support::broken(sample);
        assert!(tail.contains("IllegalStateException") && tail.contains("Reader.java:7"), "{tail}");
    }
    let table = place.run(&["report", "run.jsonl"]).stdout;
    assert!(table.contains("IllegalStateException"), "the end of its stderr is not shown: {table}");
}

#[test]
fn one_whose_command_does_not_exist() {
    for command in ["/nowhere/worker --fast", "no-such-command-anywhere"] {
        let (run, _, place) = run_beside(command, &[]);
        let reason = reason(&place, "mine/pread");
        assert!(reason.contains("could not be started") && reason.contains("No such file"), "{reason}");
        let name = command.split(' ').next().unwrap_or_default();
        assert!(reason.contains(name), "{reason}");
        assert!(of_method(&run, "mine/pread").iter().all(|sample| sample.valid().is_none()));
    }
}

#[test]
fn one_whose_time_the_clock_outside_contradicts() {
    for kind in ["half-the-time", "too-much-time"] {
        // Long, so that half of it is more than a busy machine takes to answer.
        let place = Place::new();
        let worker = format!("--worker=mine={}", cheating_worker(kind));
        let mut arguments: Vec<&str> =
            ARGUMENTS.iter().copied().filter(|argument| !argument.starts_with("--sample")).collect();
        arguments.extend(["--methods=pread,mine/pread", "--file-size=4MiB", "--sample=300ms", &worker]);
        let finished = place.run(&arguments).expect_code(1);
        let run = load(&place.file("run.jsonl"));
        let own = of_method(&run, "mine/pread");
        assert!(own.len() >= 2, "{finished:?}");
        for sample in own {
            // Others that kept it from the CPU for so long may be why.
            let found = kinds(sample);
            assert!(found.contains(&FalseTime) || found.contains(&Disturbed), "{kind}: {:?}", sample.outcome);
            for failure in sample.failures().iter().filter(|failure| failure.kind == FalseTime) {
                assert!(failure.detail.contains("ns"), "{failure:?}");
            }
        }
        assert!(of_method(&run, "pread").into_iter().all(is_honest));
        assert!(!reason(&place, "mine/pread").is_empty());
        place.expect_no_trace();
    }
}

#[test]
fn one_that_needs_more_than_its_heap() {
    if !has_toolchain("jvm") {
        return;
    }
    let place = Place::new();
    // A read goes into an array of its size, and the heap has no room for it.
    let arguments = [
        "--methods=pread,jvm/mmap",
        "--jvm-args=-Xmx8m -XX:+UseSerialGC",
        "--read-size=16MiB",
        "--reads-per-op=1",
        "--file-size=32MiB",
    ];
    let (run, _) = run(&place, &arguments);
    let samples = of_method(&run, "jvm/mmap");
    assert!(!samples.is_empty());
    for sample in samples {
        let (failures, tail) = support::broken(sample);
        let said = format!("{failures:?} {tail}");
        assert!(said.contains("OutOfMemoryError") || said.contains("heap"), "{said}");
    }
    let reason = reason(&place, "jvm/mmap");
    assert!(
        reason.contains("heap") || reason.contains("OutOfMemory") || reason.contains("status"),
        "{reason}"
    );
}
