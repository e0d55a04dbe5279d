//! From `open` to `closed` no time is outside a clock: work that is done between `opened` and
//! `ready` is reported and counts in the total, or the sample is invalid. What is too little for
//! that counts in the total too.

use crate::support::until::my_turn;
use crate::support::{Place, cheating_once_worker, early_worker, kinds, load};
use pagewise_analysis::proof::measured::total_ns;
use pagewise_model::Evidence;
use pagewise_model::FailureKind::{Disturbed, FalseTime};
use pagewise_model::run::Run;
use pagewise_model::sample::Measurement;
use serde_json::Value;

/// What the worker takes for its work at least.
const MOMENT_NS: u64 = 150_000_000;

/// The least of the three files.
const LEAST_BYTES: u128 = 1 << 20;
const SCAN: &[&str] = &["scan", "--file-size=4MiB", "--consume=lines"];
const APPEND: &[&str] = &["append", "--file-size=1MiB", "--record-size=4KiB", "--passes=1"];
const FILL: &[&str] = &["fill", "--file-size=1MiB", "--block-size=4KiB"];

/// Methods of pagewise's own that write.
const OWN: &str = "--methods=mmap,pwrite";

/// A run of the worker `kind`, and its judged cell.
fn run(kind: &str, question: &[&str]) -> (Run, Value) {
    let worker = format!("mine={}", early_worker(kind));
    let (run, cells) = run_with(question, &["--methods=mine/get", "--cache=warm", "--worker", &worker]);
    let cell = cells.into_iter().find(|cell| cell["role"] == "measured").expect("a measured cell");
    (run, cell)
}

/// A run, and its judged cells.
fn run_with(question: &[&str], more: &[&str]) -> (Run, Vec<Value>) {
    let _turn = my_turn();
    let place = Place::in_memory().unwrap_or_else(Place::new);
    let common = ["--trial-rounds=2", "--no-ceilings", "--json", "--out=run.jsonl"];
    let dir = place.path().to_string_lossy().into_owned();
    let finished = place.run(&[&["run"], question, &common[..], more, &["--dir", &dir]].concat());
    let judged = finished.judged();
    (load(&place.file("run.jsonl")), judged["cells"].as_array().expect("cells").clone())
}

#[test]
fn work_before_ready_that_is_not_reported_is_noticed() {
    for question in [SCAN, APPEND, FILL] {
        let (run, cell) = run("hidden", question);
        // What an honest worker takes to answer is allowed three times.
        if run.header.environment.worker_answer_ns.is_none_or(|answer_ns| answer_ns > MOMENT_NS / 6) {
            println!("{question:?}: this machine answers so slowly now that its clocks do not decide");
            continue;
        }
        assert_eq!(cell["status"], "invalid", "{question:?}: {cell}");
        for sample in &run.samples {
            // Others that kept it from the CPU for so long may be why.
            let found = kinds(sample);
            assert!(
                found.contains(&FalseTime) || found.contains(&Disturbed),
                "{question:?}: {:?}",
                sample.outcome
            );
        }
    }
}

#[test]
fn work_before_ready_that_is_reported_counts_in_the_total() {
    for question in [SCAN, APPEND, FILL] {
        for kind in ["reported", "honest"] {
            let (run, cell) = run(kind, question);
            // Where others had the CPU in every sample, nothing is accused, and there is no figure.
            let is_disturbed = |sample: &_| kinds(sample).contains(&Disturbed);
            if cell["status"] == "invalid" && run.samples.iter().all(is_disturbed) {
                continue;
            }
            assert_eq!(cell["status"], "ok", "{kind} {question:?}: {cell}");
            let total_ns = cell["total_ns"].as_u64().expect("a total");
            assert!(total_ns >= MOMENT_NS, "{kind} {question:?}: {total_ns} ns in all");
        }
    }
}

/// Little enough to be no lie that checks could find, it would be most of short work.
#[test]
fn a_moment_that_no_clock_shows_counts_in_the_total() {
    // The thread that works while nothing is asked for begins a moment before `ready` is received.
    const FORGIVEN_NS: u64 = 8_000_000 - 500_000;
    for question in [SCAN, APPEND, FILL] {
        for kind in ["slack", "idle"] {
            let (run, _) = run(kind, question);
            let answer_ns = run.header.environment.worker_answer_ns.expect("an answer time");
            for (measurement, evidence) in run.samples.iter().filter_map(|sample| sample.valid()) {
                let claimed_ns = measurement.measured_ns + measurement.unaccounted_ns + answer_ns;
                assert!(claimed_ns > FORGIVEN_NS, "{kind} {question:?}: {measurement:?} {evidence:?}");
                assert!(total_ns(measurement) >= claimed_ns - answer_ns, "{measurement:?}");
            }
        }
    }
}

/// Under pagewise's own names: what a cheat hides is in no answer, since none is forgiven where
/// somebody else's worker takes part.
#[test]
fn the_total_of_somebody_elses_worker_has_all_of_the_time_that_passed() {
    for (question, methods) in [(SCAN, "--methods=read:buffer=64KiB,mmap"), (APPEND, OWN), (FILL, OWN)] {
        for kind in ["honest", "halves", "understates", "before-ready", "after-ready"] {
            let worker = cheating_once_worker(kind);
            let run = run_with(question, &[methods, "--worker-command", &worker]).0;
            let valid: Vec<_> = run.samples.iter().filter_map(|sample| sample.valid()).collect();
            for (measurement, evidence) in &valid {
                let walls = [evidence.setup_wall_ns, evidence.warmup_wall_ns, evidence.teardown_wall_ns];
                let passed_ns = evidence.wall_ns + walls.into_iter().flatten().sum::<u64>();
                assert!(
                    total_ns(measurement) >= passed_ns,
                    "{kind} {question:?}: {measurement:?} {evidence:?}"
                );
            }
            // On a busy machine the end of a thread takes as long by its clock as the work would.
            let is_possible = |(measurement, evidence): &(&Measurement, &Evidence)| {
                let memory = evidence.memory_bytes_per_second.expect("the bandwidth is known");
                LEAST_BYTES * 1_000_000_000 <= u128::from(measurement.measured_ns) * u128::from(memory) * 3
            };
            let is_caught = ["understates", "before-ready"].contains(&kind);
            assert!(!is_caught || valid.iter().all(is_possible), "{kind} {question:?}: {valid:?}");
        }
    }
}
