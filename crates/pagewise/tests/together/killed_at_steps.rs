//! A run that is killed at each of its steps, and continued each time: nothing reported is lost,
//! nothing of it works on, and the next start, or `clean`, undoes what it did to the machine.
//!
//! The steps are those of [`pagewise_host::steps`]. Kills at random moments are a part of the soak.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use crate::support::setting::{Left, Setting, in_own_mounts_with_limits};
use crate::support::words::{RESUME, WARM_READS};
use crate::support::{Place, expect_whole, load, whole_lines};
use pagewise_host::steps::RunStep;
use rustix::process::Signal;

/// Steps of a run that sets something on the machine.
const UNDER_CONDITIONS: [RunStep; 8] = [
    RunStep::SettingRecorded,
    RunStep::SettingChanged,
    RunStep::GroupBegun,
    RunStep::GroupMade,
    RunStep::Warming,
    RunStep::Settling,
    RunStep::DeviceCapped,
    RunStep::SettingRestored,
];
/// Steps of a run that makes something to read.
const OF_READS: [RunStep; 3] = [RunStep::DatasetBegun, RunStep::DatasetHalfWritten, RunStep::DatasetMade];
/// An actor.
const BESIDE: &str = "--beside=scan:pread,rate=max,file=4MiB";
/// Steps of a run with an actor.
const OF_ACTORS: [RunStep; 1] = [RunStep::ActorAtPace];
/// Steps of a run that makes files to write.
const OF_WRITES: [RunStep; 1] = [RunStep::NewFileMade];

fn all_but(left_out: &[&[RunStep]]) -> Vec<RunStep> {
    let is_left_out = |step: &RunStep| left_out.iter().any(|steps| steps.contains(step));
    RunStep::ALL.iter().copied().filter(|step| !is_left_out(step)).collect()
}

/// The commands that undo what a killed run left.
#[derive(Clone, Copy, PartialEq)]
enum Swept {
    /// `clean` after the first, third, ... step; the next start after the others.
    CleanFirst,
    /// The next start after the first, third, ... step; `clean` after the others.
    StartFirst,
}

/// Begins a run with `words`, kills it at the first of `steps`, continues it, kills that at the
/// second, and so on; then it is completed.
#[track_caller]
fn kill_at_each(words: &[&str], steps: &[RunStep], swept: Swept, setting: Option<&Setting>) {
    let place = Place::new();
    let path = place.file("run.jsonl");
    let mut left = Left::default();
    let mut reported: Vec<String> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let begun = !reported.is_empty();
        let mut command = if begun { place.command(&RESUME) } else { place.command(words) };
        command.env("PAGEWISE_DIE_AT", step.name());
        let finished = place.finish(command.spawn().expect("pagewise starts"));
        let killed = finished.status.signal() == Some(Signal::KILL.as_raw());
        assert!(killed, "the run did not come to the step {}: {finished:?}", step.name());
        place.expect_no_process();
        // This start had the right to run, so it undid what the one before left.
        let mut now = Left::of(&place);
        left.keep_what_is_not_in(&now);
        left.expect_undone();
        left.append(&mut now);
        let lines = whole_lines(&path);
        assert!(lines.starts_with(&reported), "{}: a reported line is lost", step.name());
        reported = lines;
        if !reported.is_empty() {
            load(&path);
        }
        if (number % 2 == 0) == (swept == Swept::CleanFirst) {
            left.expect_cleaned(&place);
            setting.inspect(|setting| setting.expect_restored());
        }
    }
    // The last step is behind the end record.
    left.expect_cleaned(&place);
    setting.inspect(|setting| setting.expect_restored());
    let run = load(&path);
    expect_whole(&run);
    // A start that dies before it has opened the run file does not count.
    assert!(run.resumptions as usize > steps.len() / 2, "it was continued {} times", run.resumptions);
}

fn reads<'a>(more: &[&'a str]) -> Vec<&'a str> {
    const QUICK: [&str; 4] = ["--methods=pread,mmap", "--trial-rounds=1", "--sample=1ms", "--out=run.jsonl"];
    [&WARM_READS[..], &QUICK, more].concat()
}

#[test]
fn a_run_of_reads_is_killed_at_each_step_and_continued() {
    let steps = all_but(&[&UNDER_CONDITIONS, &OF_WRITES, &OF_ACTORS]);
    for swept in [Swept::CleanFirst, Swept::StartFirst] {
        kill_at_each(&reads(&["--file-size=4MiB"]), &steps, swept, None);
    }
}

#[test]
fn a_run_of_appends_is_killed_at_each_step_and_continued() {
    const WRITES: [&str; 9] = [
        "run",
        "append",
        "--methods=mmap,pwrite",
        "--file-size=1MiB",
        "--record-size=1KiB",
        "--sync=every:64KiB",
        "--trial-rounds=1",
        "--no-ceilings",
        "--out=run.jsonl",
    ];
    let steps = all_but(&[&UNDER_CONDITIONS, &OF_READS, &OF_ACTORS]);
    for swept in [Swept::CleanFirst, Swept::StartFirst] {
        kill_at_each(&WRITES, &steps, swept, None);
    }
}

#[test]
fn a_run_with_an_actor_is_killed_at_each_step_and_continued() {
    let quick = ["--methods=pread,mmap", "--trial-rounds=1", "--out=run.jsonl"];
    let words = [&WARM_READS[..], &quick, &["--file-size=4MiB", "--no-ceilings", BESIDE]].concat();
    let steps = all_but(&[&UNDER_CONDITIONS, &OF_WRITES]);
    kill_at_each(&words, &steps, Swept::StartFirst, None);
}

/// Twice the cache that fits: every sample is warmed from within and settles before its device is
/// capped.
#[track_caller]
fn kill_under_conditions(test: &str, swept: Swept) {
    const CONDITIONS: [&str; 5] = [
        "--memory=12MiB",
        "--file-size=20MiB",
        "--readahead=128KiB",
        "--device-cap=read-iops=100000",
        "--no-ceilings",
    ];
    if !in_own_mounts_with_limits(test) {
        return;
    }
    let words = reads(&CONDITIONS);
    let setting = Setting::of(&Place::new());
    kill_at_each(&words, &all_but(&[&OF_WRITES, &OF_ACTORS]), swept, Some(&setting));
}

#[test]
fn a_run_under_conditions_is_killed_at_each_step_and_swept_by_clean_first() {
    let test = "a_run_under_conditions_is_killed_at_each_step_and_swept_by_clean_first";
    kill_under_conditions(test, Swept::CleanFirst);
}

#[test]
fn a_run_under_conditions_is_killed_at_each_step_and_swept_by_the_next_start_first() {
    let test = "a_run_under_conditions_is_killed_at_each_step_and_swept_by_the_next_start_first";
    kill_under_conditions(test, Swept::StartFirst);
}

#[test]
fn a_step_that_does_not_exist_is_reported() {
    let place = Place::new();
    let mut command = place.command(&reads(&[]));
    command.env("PAGEWISE_DIE_AT", "somewhere");
    let finished = place.finish(command.spawn().expect("pagewise starts"));
    assert!(finished.stderr.contains("PAGEWISE_DIE_AT=somewhere names no step"), "{finished:?}");
    assert!(!fs::exists(place.file("run.jsonl")).expect("look"), "{finished:?}");
}
