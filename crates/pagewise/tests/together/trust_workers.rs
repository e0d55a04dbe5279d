//! What a worker forks ends with it, and what a killed build left is swept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{self, Place, expect_whole, load, misbehaving_worker, of_method, wait_for};
use pagewise_model::Outcome;

const ARGUMENTS: [&str; 10] = [
    "run",
    "read",
    "--workload=random-read",
    "--cache=warm",
    "--threads=1",
    "--rounds=7",
    "--sample=5ms",
    "--no-ceilings",
    "--file-size=4MiB",
    "--out=run.jsonl",
];

/// A worker that first leaves processes behind: in its group, in a session of its own, and below a
/// daemon that forgot its environment. Each notes its id.
const DAEMON: &str = r#"#!/bin/sh
sleeper='echo $$ >> "$0"; exec sleep 600'
sh -c "$sleeper" "$PIDS" &
setsid sh -c "$sleeper" "$PIDS" &
(setsid env -i sh -c "(sh -c '$sleeper' \"\$0\" &) ; $sleeper" "$PIDS" &)
exec "$@"
"#;

/// The same, and then it is gone without a word.
const DIES: &str = "die";

#[track_caller]
fn run_with_daemons(last: &str) -> Place {
    let place = Place::new();
    let (script, pids) = (place.root().join("daemon.sh"), place.root().join("pids"));
    fs::write(&script, DAEMON).expect("write");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("chmod");
    let worker = match last {
        DIES => format!("--worker=mine={} false", script.display()),
        _ => format!("--worker=mine={} {}", script.display(), misbehaving_worker(last)),
    };
    let mut command = place.command(&[&ARGUMENTS[..], &["--methods=pread,mine/pread", &worker]].concat());
    command.env("PIDS", &pids);
    let finished = place.finish(command.spawn().expect("start"));
    // Some were killed before they could note their id; nobody notes one any more.
    let pids = fs::read_to_string(&pids).unwrap_or_default();
    let alive: Vec<&str> = pids.lines().filter(|pid| is_sleeping(pid)).collect();
    for pid in &alive {
        let pid = rustix::process::Pid::from_raw(pid.parse().expect("an id")).expect("an id");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    assert_eq!(alive, Vec::<&str>::new(), "they outlive their worker: {finished:?}");
    assert!(pids.lines().count() >= 4, "the worker left nobody behind: {pids}");
    place.expect_no_trace();
    place
}

/// Whether it is one of those: a number may be another process's by now.
fn is_sleeping(pid: &str) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\x00600"))
}

#[test]
fn what_a_worker_forks_ends_with_it() {
    let place = run_with_daemons("honest");
    let run = load(&place.file("run.jsonl"));
    expect_whole(&run);
    for sample in of_method(&run, "mine/pread") {
        assert!(matches!(sample.outcome, Outcome::Taken { .. }), "{:?}", sample.outcome);
    }
}

#[test]
fn what_a_worker_forked_that_died_ends_too() {
    run_with_daemons(DIES);
}

#[test]
fn what_a_worker_forked_ends_after_a_kill_with_the_next_start() {
    for sweeps in [&["clean"][..], &[&ARGUMENTS[..], &["--methods=pread", "--out=second.jsonl"]].concat()] {
        let place = Place::new();
        let (script, pids) = (place.root().join("daemon.sh"), place.root().join("pids"));
        let text = "#!/bin/sh\nsetsid sh -c 'echo $$ >> \"$0\"; exec sleep 600' \"$PIDS\" &\nexec \"$@\"\n";
        fs::write(&script, text).expect("write");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("chmod");
        // It keeps each sample for seconds, in which it is killed.
        let worker = format!("--worker=mine={} {}", script.display(), misbehaving_worker("late-sample"));
        let mut command = place.command(&[&ARGUMENTS[..], &["--methods=mine/pread", &worker]].concat());
        let mut child = command.env("PIDS", &pids).spawn().expect("start");
        // The first one only says who it is; a sample's is left by the kill.
        let pid = wait_for("a process that a worker of a sample forked", || {
            let pids = fs::read_to_string(&pids).unwrap_or_default();
            let marked = |pid: &&str| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|line| line.starts_with(b"PAGEWISE_RUN="))
            };
            pids.lines().filter(|pid| is_sleeping(pid)).find(marked).map(str::to_string)
        });
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(is_sleeping(&pid), "it outlives the kill");
        let mut words = sweeps.to_vec();
        words.retain(|word| *word != "--out=run.jsonl");
        let finished = place.run(&words);
        let finished = match words[0] {
            "clean" => finished.expect_code(0),
            _ => finished.expect_code_for(&load(&place.file("second.jsonl"))),
        };
        let said = format!("ended the process {pid}");
        assert!((finished.stdout.clone() + &finished.stderr).contains(&said), "{finished:?}");
        wait_for("it is gone", || (!is_sleeping(&pid)).then_some(()));
        place.expect_no_trace();
    }
}

#[test]
fn children_that_a_shell_left_to_pagewise_live_on() {
    let place = Place::new();
    let pid = place.root().join("pid");
    let script = format!("sleep 600 & echo $! > {}; exec \"$@\"", pid.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh", support::PAGEWISE]).args(ARGUMENTS).arg("--methods=pread");
    place.settle(&mut shell);
    let finished = place.finish(shell.spawn().expect("start"));
    let pid = fs::read_to_string(&pid).expect("its id");
    let alive = is_sleeping(pid.trim());
    let number = rustix::process::Pid::from_raw(pid.trim().parse().expect("an id")).expect("an id");
    if alive {
        rustix::process::kill_process(number, rustix::process::Signal::KILL).expect("kill");
    }
    assert!(alive, "a process of somebody else's was killed: {finished:?}");
    assert!(load(&place.file("run.jsonl")).is_complete());
    wait_for("it is gone", || (!is_sleeping(pid.trim())).then_some(()));
}

#[test]
fn what_a_killed_build_left_is_swept() {
    let place = Place::new();
    let cache = place.root().join("cache");
    let workers = cache.join("pagewise/workers");
    let run = |words: &[&str]| {
        fs::create_dir_all(workers.join(".tmp-4711/product")).expect("directory");
        fs::write(workers.join(".tmp-4711/product/half"), "half").expect("write");
        let mut command = place.command(words);
        command.env("XDG_CACHE_HOME", &cache);
        place.finish(command.spawn().expect("start"))
    };
    let left = workers.join(".tmp-4711");
    let cleaned = run(&["clean"]).expect_code(0);
    assert_eq!(cleaned.stdout, format!("removed {}\n", left.display()));
    assert!(!left.exists());
    let begun = run(&[&ARGUMENTS[..], &["--methods=pread"]].concat());
    assert!(begun.stderr.contains(&format!("removed {}, left by an earlier run", left.display())));
    assert!(!left.exists());
    // Whoever builds holds the lock.
    fs::create_dir_all(&workers).expect("directory");
    let lock = fs::File::options().create(true).append(true).open(workers.join(".lock")).expect("open");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("lock");
    run(&["clean"]).expect_code(0);
    assert!(left.exists(), "it is being built");
}
