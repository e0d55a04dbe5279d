//! Threads that make calls for their tracer, and go on without it.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::*;
use crate::{Held, Released};

/// Counts in a loop that makes no call, and then prints how far it came and which signals it holds
/// back.
const COUNTS: &str = "trap 'echo signal' USR1; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo $i; \
                      while read -r line; do case $line in SigBlk*) echo $line;; esac; done < /proc/$$/status";

fn held() -> Held {
    let mut command = Command::new("sh");
    command.args(["-c", COUNTS]).stdin(Stdio::null()).stdout(Stdio::piped());
    Held::spawn(command).expect("start")
}

/// The padding at the end of a process's vdso.
fn padding(process: Pid) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.as_raw_nonzero())).expect("maps");
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vdso");
    let end = line.split(['-', ' ']).nth(1).expect("an end");
    u64::from_str_radix(end, 16).expect("an address") - ERRAND_BYTES
}

/// Trace `held` up to its program, and some 20 ms into it.
fn into_the_loop(held: Held) -> (Pid, Child) {
    let process = held.process();
    seize(process).expect("seized");
    let child = held.release().and_then(Released::child).expect("exec");
    assert_eq!(
        wait_for_change(process).expect("a stop"),
        ThreadChange::Stopped(Stop::Executed(process.as_raw_nonzero().get()))
    );
    prepare(process, padding(process)).expect("prepared");
    resume(process, 0).expect("resumed");
    let due = std::time::Instant::now() + Duration::from_millis(20);
    while std::time::Instant::now() < due {
        if let Some((_, ThreadChange::Stopped(_))) = next_change().expect("it is there") {
            resume(process, 0).expect("resumed");
        }
    }
    (process, child)
}

fn stopped(process: Pid) -> Stop {
    interrupt(process).expect("interrupted");
    match wait_for_change(process).expect("a stop") {
        ThreadChange::Stopped(stop) => stop,
        ThreadChange::Ended(status) => panic!("it ended: {status}"),
    }
}

fn printed(child: Child) -> String {
    String::from_utf8(child.wait_with_output().expect("an end").stdout).expect("text")
}

fn expect_right(printed: &str) {
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines, ["300000", "SigBlk: 0000000000000000"], "{printed}");
}

#[test]
fn a_thread_makes_calls_for_its_tracer_and_goes_on() {
    let (process, child) = into_the_loop(held());
    for _ in 0..50 {
        match stopped(process) {
            Stop::Interrupted | Stop::Returned(_) => {
                let mut errand = Errand::begin(process, padding(process)).expect("here");
                let number = errand.call(libc::SYS_getpid as u64, &[]).expect("made");
                assert_eq!(number, i64::from(process.as_raw_nonzero().get()));
                assert_eq!(
                    errand.call(libc::SYS_close as u64, &[9999]).expect("made"),
                    -i64::from(libc::EBADF)
                );
                assert_eq!(errand.end().expect("back"), Stop::Interrupted);
            }
            Stop::Call(_) => Errand::take_back_call(process, padding(process)).expect("taken back"),
            stop => panic!("{stop:?}"),
        }
        resume(process, 0).expect("resumed");
        thread::sleep(Duration::from_millis(1));
    }
    stopped(process);
    detach(process, 0).expect("detached");
    expect_right(&printed(child));
}

/// The kernel lets a thread go on when its tracer ends, wherever it is.
#[test]
fn a_program_is_right_whenever_its_tracer_ends() {
    for point in 0..4 {
        let child = thread::spawn(move || {
            let (process, child) = into_the_loop(held());
            if let Stop::Call(_) = stopped(process) {
                return child;
            }
            let mut errand = Errand::begin(process, padding(process)).expect("here");
            if point == 0 {
                return child;
            }
            errand.call(libc::SYS_getpid as u64, &[]).expect("made");
            if point == 1 {
                return child;
            }
            errand.call(libc::SYS_gettid as u64, &[]).expect("made");
            if point == 2 {
                return child;
            }
            errand.end().expect("back");
            child
        });
        expect_right(&printed(child.join().expect("no panic")));
    }
}
