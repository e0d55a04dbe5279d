//! From `open` to `closed` no time is outside a clock: work that is done between `opened` and `ready` is told and counts in
//! the total, or the sample is invalid. What is too little for that counts in the total too.

use std::path::Path;

use crate::support::until::my_turn;
use crate::support::{Place, early_worker, kinds, load};
use pagewise_analysis::proof::measured::total_ns;
use pagewise_model::FailureKind::{Disturbed, FalseTime};
use pagewise_model::run::Run;
use serde_json::Value;

/// What the worker takes for its work at least.
const MOMENT_NS: u64 = 150_000_000;

const SCAN: &[&str] = &["scan", "--file-size=4MiB", "--consume=lines"];
const APPEND: &[&str] = &["append", "--file-size=1MiB", "--record-size=4KiB", "--laps=1"];
const FILL: &[&str] = &["fill", "--file-size=1MiB", "--block-size=4KiB"];

/// In memory where there is such a place: nothing here depends on a device.
fn place() -> Place {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { Place::on(memory) } else { Place::new() }
}

/// A run of the worker `kind`, and its judged cell.
fn run(kind: &str, question: &[&str]) -> (Run, Value) {
    let _turn = my_turn();
    let place = place();
    let worker = format!("mine={}", early_worker(kind));
    let common = [
        "--methods=mine/get",
        "--cache=warm",
        "--trial-rounds=2",
        "--no-ceilings",
        "--json",
        "--out=run.jsonl",
    ];
    let dir = place.path().to_string_lossy().into_owned();
    let more = ["--worker", &worker, "--dir", &dir];
    let finished = place.run(&[&["run"], question, &common[..], &more[..]].concat());
    let judged = finished.judged();
    let cells = judged["cells"].as_array().expect("cells");
    let cell = cells.iter().find(|cell| cell["role"] == "measured").expect("a measured cell").clone();
    (load(&place.file("run.jsonl")), cell)
}

#[test]
fn work_before_ready_that_is_not_told_is_noticed() {
    for question in [SCAN, APPEND, FILL] {
        let (run, cell) = run("hidden", question);
        // What an honest worker takes to answer is allowed three times.
        if run.header.environment.worker_answer_ns.is_none_or(|answer_ns| answer_ns > MOMENT_NS / 6) {
            println!("{question:?}: this machine answers so slowly now that its clocks do not tell");
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
fn work_before_ready_that_is_told_counts_in_the_total() {
    for question in [SCAN, APPEND, FILL] {
        for kind in ["told", "honest"] {
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

/// Little enough to be no lie that checks could tell, it would be most of short work.
#[test]
fn a_moment_that_no_clock_tells_counts_in_the_total() {
    // The first moment of the thread that works while nothing is asked for is before the supervisor looks.
    const FORGIVEN_NS: u64 = 8_000_000 / 2;
    for question in [SCAN, APPEND, FILL] {
        for kind in ["slack", "idle"] {
            let (run, _) = run(kind, question);
            let answer_ns = run.header.environment.worker_answer_ns.expect("an answer time");
            for (measurement, evidence) in run.samples.iter().filter_map(|sample| sample.valid()) {
                let told_ns = measurement.measured_ns + measurement.unaccounted_ns + answer_ns;
                assert!(told_ns > FORGIVEN_NS, "{kind} {question:?}: {measurement:?} {evidence:?}");
                assert!(total_ns(measurement) >= told_ns - answer_ns, "{measurement:?}");
            }
        }
    }
}
