//! Appending while somebody else interferes: the file that is written becomes shorter, the worker
//! or the whole run is killed. No such sample is valid, the file goes, and the run file can be
//! continued.

use std::fs::File;
use std::path::PathBuf;

use crate::support::paused::PausedRun;
use crate::support::words::RESUME;
use crate::support::{Place, expect_whole, kinds, load};
use pagewise_host::steps::RunStep;
use pagewise_model::{FailureKind, Outcome};
use rustix::process::Signal;

const APPEND: [&str; 8] = [
    "run",
    "append",
    "--file-size=1MiB",
    "--record-size=1KiB",
    "--sync=every:64KiB",
    "--trial-rounds=2",
    "--no-ceilings",
    "--out=run.jsonl",
];
/// What is said of a file that does not hold what was written to it.
const REPORTED: [FailureKind; 3] =
    [FailureKind::FileChanged, FailureKind::MissingWrites, FailureKind::LostRecords];

fn append<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&APPEND[..], more].concat()
}

/// The file that is written at `place`.
#[track_caller]
fn written(place: &Place) -> PathBuf {
    place.traces().pop().expect("a file that is written")
}

#[test]
fn a_new_file_that_is_made_shorter_gives_no_valid_sample() {
    const MAPPINGS: &str = "--methods=mmap,mmap:buffer=4KiB,mmap:pretouch=64KiB";
    const ALL: &str =
        "--methods=mmap,mmap:buffer=4KiB,mmap:pretouch=64KiB,pwrite,pwrite:buffer=4KiB,write:buffer=4KiB";
    // Calls make a file that was made shorter before longer again.
    expect_shortened_is_reported(MAPPINGS, RunStep::WorkerReady);
    expect_shortened_is_reported(ALL, RunStep::Answered);
}

/// Makes the file shorter each time that a run comes to `step`.
#[track_caller]
fn expect_shortened_is_reported(methods: &str, step: RunStep) {
    let place = Place::new();
    let running = PausedRun::start(&place, &append(&["--json", methods]), step);
    let finished = running.act_until_end(|_| {
        File::options().write(true).open(written(&place)).and_then(|file| file.set_len(0)).expect("truncate");
    });
    let finished = finished.expect_code(1);
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete());
    assert!(!run.samples.is_empty());
    for sample in &run.samples {
        let reported = sample.failures().iter().find(|failure| REPORTED.contains(&failure.kind));
        let reported = reported.unwrap_or_else(|| panic!("{step:?}: {}: {:?}", sample.cell, sample.outcome));
        println!("{step:?}: {}\n    {:?}: {}", sample.cell, reported.kind, reported.detail);
    }
    finished.judged();
    place.expect_no_trace();
}

#[test]
fn a_worker_that_is_killed_while_it_appends_is_reported() {
    let place = Place::new();
    let running =
        PausedRun::start(&place, &append(&["--json", "--methods=mmap,pwrite"]), RunStep::WorkerReady);
    let finished = running.act_until_end(|run| run.kill_workers()).expect_code(1);
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete());
    for cell in &run.header.plan.cells {
        let last = run.samples.iter().rfind(|sample| sample.cell == cell.id()).expect("it was tried");
        assert_eq!(kinds(last), [FailureKind::KilledFromOutside], "{:?}", last.outcome);
        assert!(last.attempt > 0, "it was asked again");
        assert!(last.failures()[0].detail.contains("killed by SIGKILL"), "{:?}", last.outcome);
    }
    finished.judged();
    place.expect_no_trace();
}

/// Starts a run and waits until it has samples and its worker is asked to write another one.
#[track_caller]
fn begun(place: &Place) -> PausedRun<'_> {
    let run = PausedRun::start(place, &append(&["--methods=mmap,pwrite"]), RunStep::GoSent);
    run.expect_at_step(3);
    run
}

#[track_caller]
fn expect_resumed(place: &Place) {
    let before = load(&place.file("run.jsonl"));
    assert!(!before.is_complete() && before.samples.len() >= 2);
    let finished = place.run(&RESUME);
    let after = load(&place.file("run.jsonl"));
    finished.expect_code_for(&after).judged();
    assert!(after.samples[..before.samples.len()] == before.samples[..], "a sample changed");
    expect_whole(&after);
    for sample in &after.samples {
        assert!(matches!(sample.outcome, Outcome::Taken { .. }), "{}: {:?}", sample.cell, sample.outcome);
        assert!(kinds(sample).iter().all(|kind| !REPORTED.contains(kind)), "{:?}", sample.failures());
    }
    place.expect_no_trace();
}

#[test]
fn an_append_that_is_stopped_can_be_finished() {
    for (signal, group) in [(Signal::INT, true), (Signal::INT, false), (Signal::TERM, false)] {
        let place = Place::new();
        let run = begun(&place);
        run.go_on_with(signal, group);
        let finished = run.finish().expect_code(130);
        assert!(finished.stderr.contains("stopped; the samples so far are in run.jsonl"), "{finished:?}");
        assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
        place.expect_no_process();
        for sample in &load(&place.file("run.jsonl")).samples {
            assert!(matches!(sample.outcome, Outcome::Taken { .. }), "{:?}", sample.outcome);
        }
        expect_resumed(&place);
    }
}

#[test]
fn an_append_that_is_killed_is_swept_and_can_be_finished() {
    for by_clean in [true, false] {
        let place = Place::new();
        begun(&place).kill();
        let left = place.traces();
        let named = place.journaled("file");
        assert!(left.iter().all(|path| named.contains(path)), "{left:?} is more than {named:?}");
        if by_clean {
            let cleaned = place.run(&["clean"]);
            assert_eq!((cleaned.code(), &*cleaned.stderr), (0, ""), "{cleaned:?}");
            place.expect_no_trace();
        }
        expect_resumed(&place);
    }
}
