//! A run that is stopped or killed, wherever it is: nothing reported is lost, `--resume` finishes
//! it, nothing is left behind, and what a live run holds is left alone.

use std::collections::BTreeSet;
use std::fs;

use crate::support::paused::PausedRun;
use crate::support::words::{RESUME, WARM_READS};
use crate::support::{Finished, Place, expect_whole, load, whole_lines};
use pagewise_host::steps::RunStep;
use pagewise_model::Sample;
use pagewise_model::random::Random;
use pagewise_model::run::Run;
use rustix::process::Signal;

/// A run of three cells.
fn brief(sample: &'static str) -> Vec<&'static str> {
    const MORE: [&str; 4] = ["--methods=pread", "--trial-rounds=2", "--file-size=4MiB", "--out=run.jsonl"];
    [&WARM_READS[..], &MORE, &[sample]].concat()
}

/// Whether `later` begins with all that `earlier` has.
#[track_caller]
fn expect_kept(earlier: &[Sample], later: &Run) {
    assert!(later.samples.len() >= earlier.len(), "samples are lost");
    assert!(later.samples[..earlier.len()] == *earlier, "a sample changed");
}

/// Resumes until the run is complete, which takes one time.
#[track_caller]
fn expect_resumed(place: &Place) -> Run {
    let before = load(&place.file("run.jsonl"));
    let finished = place.run(&RESUME);
    let after = load(&place.file("run.jsonl"));
    finished.expect_code_for(&after).judged();
    expect_kept(&before.samples, &after);
    assert_eq!(after.resumptions, before.resumptions + 1);
    expect_whole(&after);
    place.expect_no_trace();
    after
}

/// Stops a run with `signal` when it comes to `step` for this time: the file stays valid,
/// everything else goes, and the rest is taken later. `group`: as a terminal does, all processes of
/// the run get it.
#[track_caller]
fn stop(signal: Signal, group: bool, step: RunStep, time: u32) {
    let place = Place::new();
    let run = PausedRun::start(&place, &brief("--sample=30ms"), step);
    run.expect_at_step(time);
    run.go_on_with(signal, group);
    let finished = run.finish().expect_code(130);
    assert!(finished.stderr.contains("stopped; the samples so far are in run.jsonl"), "{finished:?}");
    assert!(finished.stderr.contains("pagewise run --resume --out run.jsonl"), "{finished:?}");
    assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
    place.expect_no_process();
    let run = load(&place.file("run.jsonl"));
    assert!(!run.is_complete());
    for sample in &run.samples {
        // The signal that reached the worker too is the user's wish, and no failure of the cell.
        assert!(matches!(sample.outcome, pagewise_model::Outcome::Taken { .. }), "{:?}", sample.outcome);
    }
    expect_resumed(&place);
}

/// An overview that has begun its second question; it may be refused.
fn in_its_second_question<'a>(place: &'a Place, time: &str) -> Result<PausedRun<'a>, Finished> {
    let run = PausedRun::start(place, &[time], RunStep::RunFileMade);
    for question in 0..2 {
        if !run.is_at_step() {
            return Err(run.finish());
        }
        if question == 0 {
            run.go_on();
        }
    }
    Ok(run)
}

/// Run files of the place, by name.
fn run_files(place: &Place) -> Vec<String> {
    place.entries().into_iter().filter(|name| name.ends_with(".jsonl")).collect()
}

#[test]
fn an_overview_that_is_stopped_says_how_to_see_the_questions_before() {
    let place = Place::new();
    let run = in_its_second_question(&place, "--budget=45s").unwrap_or_else(|refused| {
        // A machine that is busy needs longer for the first rounds.
        assert!(refused.stderr.contains("5 rounds of each method of "), "{refused:?}");
        in_its_second_question(&place, "--budget=180s").expect("it is paid for")
    });
    run.go_on_with(Signal::INT, true);
    let finished = run.finish().expect_code(130);
    let message = "complete before that: 1 question. See all with: pagewise report --answer ";
    let (_, shown) = finished.stderr.trim_end().split_once(message).unwrap_or_else(|| panic!("{finished:?}"));
    assert!(shown.ends_with("-read.jsonl") && run_files(&place).contains(&shown.to_string()), "{shown}");
    let answer = place.run(&["report", "--answer", shown]).expect_code(0);
    assert!(answer.stdout.contains("What to use"), "{answer:?}");
    place.expect_no_trace();
}

#[test]
fn a_run_that_is_stopped_keeps_its_samples_and_can_be_finished() {
    stop(Signal::INT, true, RunStep::GoSent, 2);
    stop(Signal::INT, false, RunStep::GoSent, 2);
    stop(Signal::TERM, false, RunStep::SampleRecorded, 2);
    stop(Signal::HUP, true, RunStep::WorkerReady, 2);
}

#[test]
fn a_run_that_is_stopped_while_the_dataset_is_written_removes_it() {
    for signal in [Signal::INT, Signal::TERM] {
        stop(signal, false, RunStep::DatasetHalfWritten, 1);
    }
}

#[test]
fn a_torn_last_line_is_taken_again() {
    let place = Place::new();
    place.run(&brief("--sample=1ms"));
    let path = place.file("run.jsonl");
    let lines = whole_lines(&path);
    // As a kill in the middle of a write would leave it, at any byte.
    let mut random = Random::new(3);
    for _ in 0..5 {
        let kept = 1 + random.below(lines.len() as u64 - 2) as usize;
        let torn = &lines[kept][..random.below(lines[kept].len() as u64) as usize];
        fs::write(&path, lines[..kept].concat() + torn).expect("write");
        let run = expect_resumed(&place);
        assert_eq!(run.samples.len(), run.samples.iter().map(key).collect::<BTreeSet<_>>().len());
    }
}

fn key(sample: &Sample) -> (String, u32, u32) {
    (sample.cell.clone(), sample.round, sample.attempt)
}

#[test]
fn clean_leaves_a_live_run_alone() {
    let place = Place::new();
    let live = PausedRun::start(&place, &brief("--sample=1ms"), RunStep::SampleRecorded);
    live.expect_at_step(1);
    let held = place.traces();
    assert_eq!(held.len(), 1, "the dataset");
    let other = Place::new();
    let mut clean = other.command(&["clean"]);
    clean.env("PAGEWISE_STATE_DIR", place.state());
    let cleaned = other.finish(clean.spawn().expect("start")).expect_code(0);
    let said =
        format!("A run is live (pid {}, begun in {}", live.pid().as_raw_nonzero(), place.path().display());
    assert!(cleaned.stdout.starts_with(&said), "{cleaned:?}");
    assert_eq!(place.traces(), held);
    let finished = live.act_until_end(|_| {});
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    expect_whole(&run);
    assert!(run.samples.iter().all(|sample| matches!(sample.outcome, pagewise_model::Outcome::Taken { .. })));
    place.expect_no_trace();
}

#[test]
fn a_run_killed_once_is_finished_and_swept_by_its_resumption() {
    let place = Place::new();
    let run = PausedRun::start(&place, &brief("--sample=1ms"), RunStep::SampleRecorded);
    run.expect_at_step(1);
    run.kill();
    let left = place.traces();
    assert_eq!(left.len(), 1, "a killed run cannot remove its dataset");
    let finished = place.run(&RESUME);
    assert!(finished.stderr.contains(&format!("removed {}", left[0].display())), "{finished:?}");
    expect_whole(&load(&place.file("run.jsonl")));
    place.expect_no_trace();
}
