//! Stdout or stderr broken, full or closed with its terminal: nothing panics, what was measured is
//! kept, and the exit status says what was lost.

use std::fs::{self, OpenOptions};
use std::process::{Child, Command, Stdio};

use crate::support::terminal::Terminal;
use crate::support::{self, Finished, Place, load, wait_for, whole_lines};
use rustix::process::{Pid, Signal, kill_process};

const BRIEF: [&str; 8] = [
    "run",
    "read",
    "--workload=random-read",
    "--threads=1",
    "--cache=warm",
    "--file-size=1MiB",
    "--no-ceilings",
    "--out=run.jsonl",
];

/// A run with a method whose worker cannot be had, which is reported on stderr before anything is
/// measured.
const WARNING: [&str; 2] = ["--methods=pread,jvm/pread", "--jdk=/nonexistent"];

fn brief(more: &[&'static str]) -> Vec<&'static str> {
    [&BRIEF[..], &["--rounds=7", "--sample=1ms"], more].concat()
}

/// A run that is not over before somebody ends it.
const LONG: [&str; 3] = ["--methods=pread,mmap", "--rounds=2000", "--sample=20ms"];

fn long() -> Vec<&'static str> {
    [&BRIEF[..], &LONG].concat()
}

/// A pipe that nobody reads any more.
fn broken() -> Stdio {
    let (reading, writing) = std::io::pipe().expect("a pipe");
    drop(reading);
    Stdio::from(writing)
}

/// A device on which there is no room.
fn full() -> Stdio {
    Stdio::from(OpenOptions::new().write(true).open("/dev/full").expect("/dev/full"))
}

fn with_stdout(place: &Place, arguments: &[&str], stdout: Stdio) -> Finished {
    place.finish(place.command(arguments).stdout(stdout).spawn().expect("start"))
}

fn with_stderr(place: &Place, arguments: &[&str], stderr: Stdio) -> Finished {
    place.finish(place.command(arguments).stderr(stderr).spawn().expect("start"))
}

/// Every command that prints, over a run file that is there.
const PRINTING: [&[&str]; 13] = [
    &["clean"],
    &["doctor"],
    &["doctor", "--json"],
    &["report", "run.jsonl"],
    &["report", "run.jsonl", "--json"],
    &["report", "run.jsonl", "--csv=samples"],
    &["report", "run.jsonl", "--csv"],
    &["report", "run.jsonl", "--markdown"],
    &["report", "run.jsonl", "--html=-"],
    &["run", "read", "--dry-run", "--file-size=64MiB"],
    &["--help"],
    &["run", "--help"],
    &["--version"],
];

#[test]
fn who_goes_away_wants_no_more_and_a_full_stdout_is_reported() {
    let place = Place::new();
    place.run(&brief(&["--methods=pread"]));
    for arguments in PRINTING {
        let left = with_stdout(&place, arguments, broken());
        assert_eq!((left.code(), left.stderr.as_str()), (0, ""), "{arguments:?}");
        let unheard = with_stdout(&place, arguments, full());
        assert_eq!(unheard.code(), 1, "{arguments:?}: {unheard:?}");
        assert_eq!(
            unheard.stderr, "pagewise: stdout cannot be written: No space left on device (os error 28)\n",
            "{arguments:?}"
        );
    }
}

#[test]
fn a_document_without_room_fell_short_and_leaves_nothing() {
    let place = Place::new();
    place.run(&brief(&["--methods=pread,mmap"]));
    for words in [["--html=page.html"], ["--svg=plots"]] {
        let mut command = Command::new("prlimit");
        command.args(["--fsize=1024:", "--", support::PAGEWISE, "report", "run.jsonl"]).args(words);
        place.settle(&mut command);
        let unwritten = place.finish(command.spawn().expect("prlimit(1)"));
        assert_eq!(unwritten.code(), 1, "{words:?}: {unwritten:?}");
        assert!(unwritten.stderr.contains("cannot be written: File too large"), "{unwritten:?}");
    }
    assert!(!place.file("page.html").exists() && !place.file("plots").exists());
    place.run(&["report", "run.jsonl", "--html=run.jsonl"]).expect_code(2);
}

#[test]
fn a_run_is_kept_whatever_becomes_of_its_output() {
    for (stdout, code) in [(broken as fn() -> Stdio, 0), (full, 1)] {
        let place = Place::new();
        let finished = with_stdout(&place, &brief(&["--methods=pread"]), stdout());
        assert_eq!(finished.code(), code, "{finished:?}");
        assert!(load(&place.file("run.jsonl")).is_complete());
        place.expect_no_trace();
    }
}

#[test]
fn a_broken_stderr_changes_nothing() {
    let heard = Place::new();
    let finished = heard.run(&brief(&WARNING)).expect_code_for(&load(&heard.file("run.jsonl")));
    assert!(finished.stderr.contains("the worker jvm is unavailable"), "{finished:?}");
    for stderr in [broken as fn() -> Stdio, full] {
        let place = Place::new();
        let finished = with_stderr(&place, &brief(&WARNING), stderr());
        let run = load(&place.file("run.jsonl"));
        let finished = finished.expect_code_for(&run);
        assert!(finished.stdout.contains("All numbers: pagewise report run.jsonl"), "{finished:?}");
        assert!(run.is_complete());
        place.expect_no_trace();
        let refused = with_stderr(&place, &["run", "no-such-question"], stderr());
        assert_eq!(refused.code(), 2, "{refused:?}");
        let misspelt = with_stderr(&place, &["repot"], stderr());
        assert_eq!(misspelt.code(), 2, "{misspelt:?}");
    }
    let place = Place::new();
    let mut neither = place.command(&brief(&WARNING));
    let finished = place.finish(neither.stdout(full()).stderr(full()).spawn().expect("start"));
    assert_eq!(finished.code(), 1);
    assert!(load(&place.file("run.jsonl")).is_complete());
}

fn samples(place: &Place) -> usize {
    let lines = whole_lines(&place.file("run.jsonl"));
    lines.iter().filter(|line| line.contains("\"kind\":\"sample\"")).count()
}

fn wait_for_samples(place: &Place) {
    wait_for("samples", || (samples(place) > 2).then_some(()));
}

fn kill(child: &mut Child) {
    child.kill().expect("kill");
    child.wait().expect("wait");
}

#[test]
fn what_a_dead_run_left_is_swept_with_nobody_listening() {
    for stderr in [broken as fn() -> Stdio, full] {
        let place = Place::new();
        let mut child = place.command(&long()).spawn().expect("start");
        wait_for_samples(&place);
        kill(&mut child);
        assert!(!place.traces().is_empty());
        fs::remove_file(place.file("run.jsonl")).expect("remove");
        let finished = with_stderr(&place, &brief(&["--methods=pread"]), stderr());
        let run = load(&place.file("run.jsonl"));
        finished.expect_code_for(&run);
        assert!(run.is_complete());
        place.expect_no_trace();
    }
}

#[test]
fn a_terminal_may_be_closed_during_a_run() {
    let place = Place::new();
    let (child, mut terminal) = Terminal::start(&place, &long());
    // The progress is there: what follows is that of a terminal.
    terminal.expect_shown("random-read pread");
    wait_for_samples(&place);
    let reported = whole_lines(&place.file("run.jsonl"));
    drop(terminal);
    let finished = place.finish(child);
    assert_eq!(finished.code(), 130, "it was stopped, and did not panic: {finished:?}");
    let kept = whole_lines(&place.file("run.jsonl"));
    assert_eq!(kept[..reported.len()], reported[..], "what was reported is kept");
    assert!(!load(&place.file("run.jsonl")).is_complete());
    place.expect_no_trace();
}

#[test]
fn stderr_may_go_away_during_a_run_that_is_stopped() {
    let place = Place::new();
    let (reading, writing) = std::io::pipe().expect("a pipe");
    let child = place.command(&long()).stderr(writing).spawn().expect("start");
    wait_for_samples(&place);
    drop(reading);
    kill_process(Pid::from_raw(child.id() as i32).expect("a process"), Signal::HUP).expect("a signal");
    let finished = place.finish(child);
    assert_eq!(finished.code(), 130, "{finished:?}");
    assert!(load(&place.file("run.jsonl")).samples.len() > 2);
    place.expect_no_trace();
}
