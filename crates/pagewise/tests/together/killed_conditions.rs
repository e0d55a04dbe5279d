//! A run under a memory limit or another readahead, killed or stopped: what it did to the machine
//! is undone, and what belongs to others is left alone.
//!
//! Each test that sets readahead does so on a filesystem of its own, in mounts of its own: nothing
//! else sees it.

use std::collections::BTreeSet;
use std::fs;

use crate::support::paused::PausedRun;
use crate::support::setting::{Setting, in_own_mounts_with_limits, without_limits};
use crate::support::words::{RESUME, WARM_READS};
use crate::support::{
    FROM_OUTSIDE, Place, cheating_worker, expect_message, expect_whole, kinds, load, of_methods, skipped,
};
use pagewise_host::steps::RunStep;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, Outcome};
use rustix::process::Signal;

fn brief<'a>(more: &[&'a str]) -> Vec<&'a str> {
    const QUICK: [&str; 4] = ["--methods=pread", "--no-ceilings", "--trial-rounds=2", "--sample=1ms"];
    [&WARM_READS[..], &QUICK, more].concat()
}

/// Words of a run that sets readahead and nothing else.
fn with_readahead(out: &str) -> Vec<&str> {
    brief(&["--file-size=4MiB", "--readahead=128KiB", "--out", out])
}

/// Words of a run under a memory limit alone, which needs no filesystem of its own.
fn limited() -> Vec<&'static str> {
    brief(&["--memory=96MiB", "--file-size=48MiB", "--out=run.jsonl"])
}

#[test]
fn a_new_run_after_a_killed_one_finds_the_machine_as_it_was() {
    if !in_own_mounts_with_limits("a_new_run_after_a_killed_one_finds_the_machine_as_it_was") {
        return;
    }
    let place = Place::new();
    let setting = Setting::of(&place);
    let run = PausedRun::start(&place, &with_readahead("killed.jsonl"), RunStep::SettingChanged);
    run.expect_at_step(1);
    run.kill();
    assert!(setting.is_changed(), "the kill left it");
    let finished = place.run(&with_readahead("new.jsonl"));
    let said = format!("set {} back to {}, left by an earlier run", setting.path.display(), setting.original);
    assert!(finished.stderr.contains(&said), "{finished:?}");
    let run = load(&place.file("new.jsonl"));
    assert!(run.is_complete());
    assert_eq!(run.header.environment.readahead_bytes, Some(Bytes(setting.original)));
    assert_eq!(setting.bytes(), setting.original);
    place.expect_no_trace();
}

#[test]
fn what_somebody_else_set_meanwhile_is_left_alone() {
    if !in_own_mounts_with_limits("what_somebody_else_set_meanwhile_is_left_alone") {
        return;
    }
    const THEIRS: u64 = 256 << 10;
    let place = Place::new();
    let setting = Setting::of(&place);
    // After a kill.
    let run = PausedRun::start(&place, &with_readahead("run.jsonl"), RunStep::SettingChanged);
    run.expect_at_step(1);
    run.kill();
    setting.set(THEIRS);
    let cleaned = place.run(&["clean"]).expect_code(0);
    assert_eq!(setting.bytes(), THEIRS, "{cleaned:?}");
    assert!(!cleaned.stdout.contains("read_ahead_kb"), "{cleaned:?}");
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new());

    // In the middle of a run: what was set then is there again at its end.
    setting.set(setting.original);
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    let mut met = false;
    PausedRun::start(&place, &with_readahead("run.jsonl"), RunStep::SettingChanged).act_until_end(|_| {
        if !std::mem::replace(&mut met, true) {
            setting.set(THEIRS);
        }
    });
    assert!(load(&place.file("run.jsonl")).is_complete());
    assert_eq!(setting.bytes(), THEIRS);
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
    setting.set(setting.original);
    place.expect_no_trace();
}

/// What failed could fail on any busy machine.
#[track_caller]
fn expect_undisturbed(run: &Run) {
    for sample in of_methods(run) {
        let outside = kinds(sample).iter().all(|kind| FROM_OUTSIDE.contains(kind));
        assert!(outside && !matches!(sample.outcome, Outcome::Unavailable { .. }), "{:?}", sample.outcome);
    }
}

#[test]
fn a_run_that_is_stopped_while_it_warms_leaves_nothing_and_is_resumed() {
    if let Some(reason) = without_limits() {
        return skipped("cgroup", &reason);
    }
    // As a terminal does, all processes of the run get it; or it alone.
    for group in [true, false] {
        let place = Place::new();
        let run = PausedRun::start(&place, &limited(), RunStep::Warming);
        run.expect_at_step(1);
        let groups = place.journaled("group");
        assert!(groups.iter().any(|group| group.is_dir()), "{groups:?}");
        run.go_on_with(Signal::INT, group);
        let finished = run.finish().expect_code(130);
        assert!(finished.stderr.contains("stopped; the samples so far are in run.jsonl"), "{finished:?}");
        assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
        assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
        assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
        place.expect_no_process();
        let before = load(&place.file("run.jsonl"));
        expect_undisturbed(&before);

        place.run(&RESUME);
        let after = load(&place.file("run.jsonl"));
        expect_whole(&after);
        assert_eq!(after.header, before.header, "the conditions are those that it began with");
        expect_undisturbed(&after);
        assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
        place.expect_no_trace();
    }
}

#[test]
fn the_group_of_a_live_run_is_left_alone() {
    if let Some(reason) = without_limits() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    let first = PausedRun::start(&place, &limited(), RunStep::WorkerStarted);
    first.expect_at_step(1);
    let groups = place.journaled("group");
    let other = Place::new();
    for words in [&["clean"][..], &limited()] {
        let mut command = other.command(words);
        command.env("PAGEWISE_STATE_DIR", place.state());
        let finished = other.finish(command.spawn().expect("start"));
        match words {
            ["clean"] => assert!(finished.stdout.starts_with("A run is live (pid "), "{finished:?}"),
            _ => expect_message(
                &finished,
                4,
                &format!("another run is measuring (pid {}, ", first.pid().as_raw_nonzero()),
            ),
        }
        assert!(groups.iter().all(|group| group.exists()), "{groups:?}");
    }
    assert!(other.entries().is_empty());
    first.go_on_with(Signal::TERM, false);
    first.finish().expect_code(130);
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
    place.expect_no_trace();
}

#[test]
fn what_a_worker_leaves_running_in_its_group_ends_with_it() {
    if let Some(reason) = without_limits() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    let worker = cheating_worker("keeps-mapped");
    let mut groups = BTreeSet::new();
    let words = [&limited()[..], &["--worker-command", &worker]].concat();
    PausedRun::start(&place, &words, RunStep::WorkerStarted)
        .act_until_end(|_| groups.extend(place.journaled("group")));
    assert!(load(&place.file("run.jsonl")).is_complete());
    assert!(groups.len() >= 2 && groups.iter().all(|group| !group.exists()), "{groups:?}");
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
    place.expect_no_trace();
}
