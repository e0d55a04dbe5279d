//! A worker that cheats about its syncs is called invalid, and an honest one is not.

use pagewise_model::FailureKind::{self, InconsistentCounts, NotInForce};
use pagewise_model::Sample;

use crate::support::until::my_turn;
use crate::support::{
    self, FROM_OUTSIDE, Place, cheating_log_worker, is_honest, kinds, load, of_methods, was_disturbed,
};

/// Trials of a kind: others who use the machine may disturb any sample.
const RUNS: usize = 5;

/// The samples of the worker `kind`, at intervals of 256 KiB or with each record committed.
fn samples(kind: &str, sync: &str) -> Vec<Sample> {
    let _turn = my_turn();
    let place = Place::new();
    let worker = cheating_log_worker(kind);
    let sync = format!("--sync={sync}");
    let finished = place.run(&[
        "run",
        "append",
        "--methods=pwrite",
        "--record-size=16KiB",
        "--file-size=16MiB",
        &sync,
        "--no-ceilings",
        "--trial-rounds=3",
        "--sample=100ms",
        "--seed=7",
        "--json",
        "--out=run.jsonl",
        "--worker-command",
        &worker,
    ]);
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    of_methods(&run).into_iter().cloned().collect()
}

/// True if the check that sees the cheat is in force on this machine, for a kind that only the
/// device's flushes show.
fn has_flushes(samples: &[Sample]) -> bool {
    samples.iter().any(|sample| match &sample.outcome {
        pagewise_model::Outcome::Taken { evidence, .. } => evidence.device_flushes.is_some(),
        _ => false,
    })
}

/// Every sample of the worker `kind` that others did not disturb fails by `expected`, and by
/// nothing that is not in `also`.
#[track_caller]
fn caught(kind: &str, sync: &str, expected: FailureKind, also: &[FailureKind]) {
    for _ in 0..RUNS {
        let samples = samples(kind, sync);
        let on_flushes = kind == "overstates-syncs";
        if on_flushes && !has_flushes(&samples) {
            println!(
                "skipped: device-flushes: the device has no volatile cache, or its flushes are not counted"
            );
            return;
        }
        for sample in &samples {
            assert!(sample.valid().is_none(), "{kind}, {sync}: {:?}", sample.outcome);
            let mut others = kinds(sample).into_iter().filter(|kind| !FROM_OUTSIDE.contains(kind));
            let is_known = |found: FailureKind| found == expected || also.contains(&found);
            assert!(others.all(is_known), "{kind}, {sync}: {:?}", sample.failures());
        }
        if samples.iter().any(|sample| kinds(sample).contains(&expected)) {
            return;
        }
    }
    support::inconclusive(&format!("{kind}, {sync}: every sample was disturbed"));
}

#[test]
fn an_honest_log_is_believed() {
    for sync in ["every:256KiB", "commit"] {
        for _ in 0..RUNS {
            let samples = samples("honest", sync);
            assert!(samples.iter().all(is_honest), "{sync}: {samples:?}");
            if samples.iter().any(|sample| sample.valid().is_some()) {
                break;
            }
            assert!(samples.iter().all(was_disturbed), "{sync}: {samples:?}");
        }
    }
}

#[test]
fn syncs_that_are_not_made_are_noticed() {
    for sync in ["every:256KiB", "commit"] {
        // The durations of syncs that are not made are too short for whatever else the worker waits
        // for: it is shown so if it waits at all, which is up to the machine.
        let also = [InconsistentCounts];
        caught("skips-syncs", sync, NotInForce, &also);
        caught("syncs-at-end", sync, NotInForce, &also);
        caught("overstates-syncs", sync, NotInForce, &also);
    }
}

#[test]
fn syncs_that_are_not_reported_are_noticed() {
    for sync in ["every:256KiB", "commit"] {
        caught("understates-syncs", sync, InconsistentCounts, &[]);
    }
}
