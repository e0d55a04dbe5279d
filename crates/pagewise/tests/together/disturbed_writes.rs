//! Appending while somebody else interferes: the file that is written becomes shorter, the worker or the whole run is
//! killed. No such sample is valid, the file goes, and the run file can be continued.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use crate::support::outsider::Outsider;
use crate::support::{Place, expect_whole, is_honest, kinds, load, wait_for, whole_lines};
use pagewise_model::{FailureKind, Outcome};
use rustix::process::{Pid, Signal};

/// Records that go to the device every few of them, so that each sample takes a while on any machine.
const SLOW: [&str; 8] = [
    "run",
    "append",
    "--file-size=1MiB",
    "--record-size=1KiB",
    "--sync=every:16KiB",
    "--trial-rounds=4",
    "--no-ceilings",
    "--out=run.jsonl",
];
const FILE_BYTES: u64 = 1 << 20;
/// What is said of a file that does not hold what was written to it.
const TOLD: [FailureKind; 3] =
    [FailureKind::FileChanged, FailureKind::MissingWrites, FailureKind::LostRecords];

fn slow<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SLOW[..], more].concat()
}

/// The file that a worker has begun to write, if there is one.
fn being_written(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut written = entries.filter(|entry| {
        entry.file_name().to_string_lossy().starts_with(".pagewise-")
            && entry.metadata().is_ok_and(|metadata| metadata.len() == FILE_BYTES && metadata.blocks() > 0)
    });
    written.next().map(|entry| entry.path())
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).expect("a process id")
}

#[test]
fn a_new_file_that_is_made_shorter_gives_no_valid_sample() {
    let place = Place::new();
    let directory = place.path();
    let truncator = Outsider::acting(move || {
        if let Some(path) = being_written(&directory) {
            let _ = File::options().write(true).open(path).and_then(|file| file.set_len(0));
        }
    });
    let methods =
        "--methods=mmap,mmap:buffer=4KiB,mmap:pretouch=64KiB,pwrite,pwrite:buffer=4KiB,write:buffer=4KiB";
    let finished = place.run(&slow(&["--json", methods])).expect_code(1);
    drop(truncator);
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete());
    for cell in &run.header.plan.cells {
        let samples = run.samples.iter().filter(|sample| sample.cell == cell.id());
        let spoilt: Vec<_> = samples.filter(|sample| !is_honest(sample)).collect();
        assert!(!spoilt.is_empty(), "{}: no sample was disturbed", cell.id());
        for sample in spoilt {
            let told = sample.failures().iter().find(|failure| TOLD.contains(&failure.kind));
            let told = told.unwrap_or_else(|| panic!("{}: {:?}", sample.cell, sample.outcome));
            println!("{}\n    {:?}: {}", cell.method, told.kind, told.detail);
        }
    }
    finished.judged();
    place.expect_no_trace();
}

#[test]
fn a_worker_that_is_killed_while_it_appends_is_told() {
    let place = Place::new();
    let directory = place.path();
    let killer = Outsider::meeting(&place, "worker", move |worker| {
        // The worker that shows how long an answer takes writes none; one that has ended has no program.
        while fs::read_link(format!("/proc/{worker}/exe")).is_ok() {
            if being_written(&directory).is_some() {
                let worker = Pid::from_raw(worker as i32).expect("a process id");
                let _ = rustix::process::kill_process(worker, Signal::KILL);
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    let finished = place.run(&slow(&["--json", "--methods=mmap,pwrite"])).expect_code(1);
    drop(killer);
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

/// Starts a run and waits until it has samples and writes another one.
fn begun(place: &Place) -> Child {
    let mut command = place.command(&slow(&["--methods=mmap,pwrite"]));
    let child = command.process_group(0).spawn().expect("start");
    wait_for("a sample is written", || {
        let lines = whole_lines(&place.file("run.jsonl"));
        let samples = lines.iter().filter(|line| line.contains("\"kind\":\"sample\"")).count();
        (samples >= 2 && being_written(&place.path()).is_some()).then_some(())
    });
    child
}

#[track_caller]
fn expect_resumed(place: &Place) {
    let before = load(&place.file("run.jsonl"));
    assert!(!before.is_complete() && before.samples.len() >= 2);
    let finished = place.run(&["run", "--resume", "--out=run.jsonl", "--json"]);
    let after = load(&place.file("run.jsonl"));
    finished.expect_code_for(&after).judged();
    assert!(after.samples[..before.samples.len()] == before.samples[..], "a sample changed");
    expect_whole(&after);
    for sample in &after.samples {
        assert!(matches!(sample.outcome, Outcome::Taken { .. }), "{}: {:?}", sample.cell, sample.outcome);
        assert!(kinds(sample).iter().all(|kind| !TOLD.contains(kind)), "{:?}", sample.failures());
    }
    place.expect_no_trace();
}

#[test]
fn an_append_that_is_stopped_can_be_finished() {
    for (signal, group) in [(Signal::INT, true), (Signal::INT, false), (Signal::TERM, false)] {
        let place = Place::new();
        let child = begun(&place);
        let sent = match group {
            true => rustix::process::kill_process_group(pid(&child), signal),
            false => rustix::process::kill_process(pid(&child), signal),
        };
        sent.expect("kill");
        let finished = place.finish(child).expect_code(130);
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
        let mut child = begun(&place);
        child.kill().expect("kill");
        child.wait().expect("wait");
        place.expect_no_process();
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
