//! A run that stops whenever it comes to a step ([`pagewise_host::steps`]), so that somebody else
//! can act there.

use std::os::unix::process::CommandExt;
use std::process::Child;
use std::time::{Duration, Instant};

use pagewise_host::steps::RunStep;
use pagewise_model::run::Run;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use super::{Finished, Place, load};

/// No run takes longer to come to a step.
const PATIENCE: Duration = Duration::from_secs(120);

/// A run, stopped at a step or on the way to it. Dropped before its end, as where a test fails, it
/// is killed and swept.
pub struct PausedRun<'a> {
    place: &'a Place,
    /// `None`: its end was waited for.
    child: Option<Child>,
    pid: Pid,
}

impl<'a> PausedRun<'a> {
    /// Starts a run that stops at `step` each time, and goes on each time on request.
    pub fn start(place: &'a Place, words: &[&str], step: RunStep) -> Self {
        let mut command = place.command(words);
        command.env("PAGEWISE_PAUSE_AT", step.name()).process_group(0);
        let child = command.spawn().expect("pagewise starts");
        let pid = Pid::from_child(&child);
        Self { place, child: Some(child), pid }
    }

    /// The id of its process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until it has stopped; false: it has ended instead.
    #[track_caller]
    pub fn is_at_step(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let options =
            WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            if let Some(status) = waitid(WaitId::Pid(self.pid), options).expect("wait") {
                return status.stopped();
            }
            assert!(Instant::now() < deadline, "it neither stops nor ends");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until it has stopped for this time, from 1; it goes on at those before.
    #[track_caller]
    pub fn expect_at_step(&self, time: u32) {
        for before in (0..time).rev() {
            assert!(self.is_at_step(), "the run ended before it came to the step");
            if before > 0 {
                self.go_on();
            }
        }
    }

    /// Native workers of it that run.
    pub fn workers(&self) -> Vec<u32> {
        let is_worker = |pid: &u32| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments.split(|byte| *byte == 0).nth(1) == Some(b"worker")
        };
        self.place.processes().into_iter().filter(is_worker).collect()
    }

    /// Kills the native workers that run.
    pub fn kill_workers(&self) {
        for worker in self.workers() {
            let worker = Pid::from_raw(worker as i32).expect("a process id");
            kill_process(worker, Signal::KILL).expect("it is there");
        }
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        kill_process(self.pid, Signal::CONT).expect("it is there");
    }

    /// Has it go on with a signal, as if it had come just then: to all its processes, as a terminal
    /// does, or to it alone.
    pub fn go_on_with(&self, signal: Signal, group: bool) {
        match group {
            true => kill_process_group(self.pid, signal),
            false => kill_process(self.pid, signal),
        }
        .expect("it is there");
        self.go_on();
    }

    /// Kills it where it stands.
    pub fn kill(mut self) {
        let mut child = self.child.take().expect("it has not ended");
        child.kill().expect("kill");
        child.wait().expect("wait");
        self.place.expect_no_process();
    }

    /// Calls `act` each time it stands at the step, up to its end.
    #[track_caller]
    pub fn act_until_end(self, mut act: impl FnMut(&Self)) -> Finished {
        while self.is_at_step() {
            act(&self);
            self.go_on();
        }
        self.finish()
    }

    /// Calls `act` each time it stands at the step, until the run file holds `enough`; then it is
    /// stopped, as a user stops one.
    #[track_caller]
    pub fn act_until(self, enough: impl Fn(&Run) -> bool, mut act: impl FnMut(&Self)) -> Run {
        let path = self.place.file("run.jsonl");
        while self.is_at_step() {
            let run = Run::parse(&std::fs::read(&path).unwrap_or_default());
            if run.is_ok_and(|run| enough(&run)) {
                self.go_on_with(Signal::INT, false);
                break;
            }
            act(&self);
            self.go_on();
        }
        let place = self.place;
        let finished = self.finish();
        let run = load(&path);
        finished.expect_code_for(&run);
        place.expect_no_trace();
        run
    }

    /// Waits for its end, whatever steps come before it.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        while self.is_at_step() {
            self.go_on();
        }
        self.place.finish(self.child.take().expect("it has not ended"))
    }
}

impl Drop for PausedRun<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            let _ = self.place.command(&["clean"]).status();
        }
    }
}
