//! A worker process and its lines, with a time-out for every answer.
//!
//! A worker may die, hang, talk nonsense, talk without end, fill its stderr, close its pipes or leave a child that holds them;
//! each becomes a [`ConversationError`] with a sentence, and the end of stderr is kept to be shown. One poll(2) waits for all that the
//! process can do, and what is said to it is shorter than a pipe, so nothing that it does blocks the one who asks. The process does not outlive this value, nor, as `start` is
//! told, the supervisor; what it forked ends with it (`family`).

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pagewise_model::{Failure, FailureKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use crate::ending::{ending, kind_of};
use crate::family;
use crate::messages::{Beats, CallFailure, Go, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply};

/// No line of the protocol comes near this.
const MAX_LINE_BYTES: usize = 4 << 20;
/// How much of a line is shown.
const SHOWN_CHARS: usize = 120;
/// Lines that are no messages: so many are kept.
const KEPT_STRAYS: usize = 3;
/// How much of stderr is kept.
const STDERR_TAIL_BYTES: usize = 4096;
/// What is read of it at a time.
const STDERR_CHUNK_BYTES: usize = 4096;
/// The most that a pipe holds unless root made it larger (/proc/sys/fs/pipe-max-size).
const LARGEST_PIPE_BYTES: usize = 1 << 20;
/// How long the last words of a dead worker are read at most.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);
/// How often the wish to stop is looked at.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// How often a process that is to end is looked at.
const END_CHECK: Duration = Duration::from_millis(1);
/// How long a worker may take to end after its last answer.
pub const EXIT_PATIENCE: Duration = Duration::from_secs(10);

/// Why a conversation ended early.
#[derive(Debug)]
pub enum ConversationError {
    /// The user wants to stop.
    Stopped,
    /// A call failed or was refused in the worker.
    Call(CallFailure),
    /// The worker misbehaved or ended.
    Broken(Failure),
}

fn broken(kind: FailureKind, detail: String) -> ConversationError {
    ConversationError::Broken(Failure { kind, detail })
}

fn nonsense(detail: String) -> ConversationError {
    broken(FailureKind::WorkerNonsense, detail)
}

impl ConversationError {
    /// Something that a conversation needs cannot be had.
    pub fn lack(detail: String) -> Self {
        broken(FailureKind::CallFailed, detail)
    }
}

/// How long an answer is waited for.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// At most so long.
    pub patience: Duration,
    /// No longer once this is set.
    pub stop: &'a AtomicBool,
}

impl Wait<'_> {
    /// Longer by what the work takes.
    pub fn and(self, work: Duration) -> Self {
        Self { patience: self.patience + work, ..self }
    }
}

/// A worker that was started.
pub struct Conversation {
    child: Child,
    /// Whether its status was collected, after which its number may be another process's.
    collected: bool,
    /// `None` once there is nothing more to be said.
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    received: Vec<u8>,
    stderr_tail: Vec<u8>,
    /// Lines that are no messages, where they are passed over.
    strays: Option<Vec<String>>,
}

impl Conversation {
    /// Starts a worker of its own process group, as `prepare` has it start. `shown` names it in sentences.
    pub fn start(
        mut command: Command,
        shown: &str,
        prepare: impl FnOnce(&mut Command) -> io::Result<&mut Command>,
    ) -> Result<Self, ConversationError> {
        let died = |error: io::Error| {
            broken(FailureKind::WorkerDied, format!("{shown} could not be started: {error}"))
        };
        family::adopt();
        // A Ctrl-C on the terminal does not reach it: who speaks with it ends it.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = prepare(&mut command).and_then(Command::spawn).map_err(died)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (received, stderr_tail) = (Vec::new(), Vec::new());
        Ok(Self { child, collected: false, stdin, stdout, stderr, received, stderr_tail, strays: None })
    }

    /// Passes over lines that are no messages; else one ends the conversation.
    pub fn pass_over_strays(&mut self) {
        self.strays.get_or_insert_default();
    }

    /// The first of those that were passed over.
    pub fn take_strays(&mut self) -> Vec<String> {
        self.strays.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Its process id, which is that of its group too.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processes of its group that live.
    pub fn processes(&self) -> Vec<u32> {
        family::of_group(self.pid())
    }

    /// Says something.
    pub fn send(&mut self, request: &Request) -> Result<(), ConversationError> {
        self.send_line(&serde_json::to_string(request).expect("requests have string keys only"))
    }

    /// Says a line as it is.
    pub fn send_line(&mut self, line: &str) -> Result<(), ConversationError> {
        let stdin = self.stdin.as_mut().expect("nothing is said after the end");
        match stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush()) {
            Ok(()) => Ok(()),
            // A closed pipe: the worker is dead or dying, and how it died says more.
            Err(_) => Err(self.death("what was asked")),
        }
    }

    /// Waits for `hello`, of whatever version.
    pub fn hello(&mut self, wait: Wait<'_>) -> Result<Hello, ConversationError> {
        match self.receive("hello", wait)? {
            Reply::Hello(hello) => Ok(hello),
            other => Err(unexpected("hello", &other)),
        }
    }

    /// Waits for `hello` and checks the version.
    pub fn greet(&mut self, wait: Wait<'_>) -> Result<Hello, ConversationError> {
        let hello = self.hello(wait)?;
        if hello.protocol != PROTOCOL_VERSION {
            let Hello { worker, version, protocol, .. } = hello;
            return Err(nonsense(format!(
                "the worker '{worker}' {version} speaks protocol {protocol}, pagewise speaks {PROTOCOL_VERSION}"
            )));
        }
        Ok(hello)
    }

    /// Sends `open` and waits for `opened`: what set-up took by the worker's clock, in ns. `ready` is still to come.
    pub fn open(&mut self, job: &Job, wait: Wait<'_>) -> Result<u64, ConversationError> {
        self.send(&Request::Open(Box::new(job.clone())))?;
        self.opened(wait)
    }

    /// Waits for `opened`.
    pub fn opened(&mut self, wait: Wait<'_>) -> Result<u64, ConversationError> {
        match self.receive("opened", wait)? {
            Reply::Opened { setup_ns } => Ok(setup_ns),
            other => Err(unexpected("opened", &other)),
        }
    }

    /// Waits for `ready`: what passed since `opened` by the worker's clock, in ns.
    pub fn ready(&mut self, wait: Wait<'_>) -> Result<u64, ConversationError> {
        match self.receive("ready", wait)? {
            Reply::Ready { warmup_ns } => Ok(warmup_ns),
            other => Err(unexpected("ready", &other)),
        }
    }

    /// Has the worker do nothing but beat for `idle_ns`.
    pub fn idle(&mut self, idle_ns: u64, wait: Wait<'_>) -> Result<Beats, ConversationError> {
        self.send(&Request::Idle { idle_ns })?;
        match self.receive("idled", wait)? {
            Reply::Idled(beats) => Ok(beats),
            other => Err(unexpected("idled", &other)),
        }
    }

    /// Sends `go` and waits for `sample`.
    pub fn go(&mut self, go: Go, wait: Wait<'_>) -> Result<SampleReply, ConversationError> {
        self.send(&Request::Go(go))?;
        self.sample(wait)
    }

    /// Waits for `sample`.
    pub fn sample(&mut self, wait: Wait<'_>) -> Result<SampleReply, ConversationError> {
        match self.receive("sample", wait)? {
            Reply::Sample(sample) => Ok(*sample),
            other => Err(unexpected("sample", &other)),
        }
    }

    /// Has single reads done: how many the worker says it did.
    pub fn verify(&mut self, offsets: Vec<u64>, wait: Wait<'_>) -> Result<u64, ConversationError> {
        self.send(&Request::Verify(crate::Verify { offsets }))?;
        match self.receive("verified", wait)? {
            Reply::Verified { reads } => Ok(reads),
            other => Err(unexpected("verified", &other)),
        }
    }

    /// Sends `close` and waits for `closed`: what tear-down took by the worker's clock, and the sync as a part of it, in ns.
    pub fn close(&mut self, wait: Wait<'_>) -> Result<(u64, u64), ConversationError> {
        self.send(&Request::Close)?;
        match self.receive("closed", wait)? {
            Reply::Closed { teardown_ns, sync_ns } => Ok((teardown_ns, sync_ns)),
            other => Err(unexpected("closed", &other)),
        }
    }

    /// Waits for an answer; `failed` comes back as trouble.
    pub fn receive(&mut self, awaited: &str, wait: Wait<'_>) -> Result<Reply, ConversationError> {
        let deadline = Instant::now() + wait.patience;
        loop {
            let line = self.line(awaited, deadline, wait)?;
            match serde_json::from_slice(&line) {
                Ok(Reply::Failed(failure)) => return Err(ConversationError::Call(failure)),
                Ok(reply) => return Ok(reply),
                Err(error) => match &mut self.strays {
                    Some(strays) if !is_message(&line) => {
                        if strays.len() < KEPT_STRAYS {
                            strays.push(shown(&line));
                        }
                    }
                    _ => return Err(unreadable(awaited, &line, &error)),
                },
            }
        }
    }

    /// The next line.
    fn line(
        &mut self,
        awaited: &str,
        deadline: Instant,
        wait: Wait<'_>,
    ) -> Result<Vec<u8>, ConversationError> {
        // Every byte is looked at once, however long the line becomes.
        let mut searched = 0;
        loop {
            if let Some(end) = self.received[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(searched + end + 1);
                return Ok(std::mem::replace(&mut self.received, rest));
            }
            searched = self.received.len();
            if searched > MAX_LINE_BYTES {
                return Err(nonsense(format!(
                    "instead of {awaited} the worker sent a line of over {MAX_LINE_BYTES} bytes"
                )));
            }
            if wait.stop.load(Ordering::Relaxed) {
                return Err(ConversationError::Stopped);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(broken(FailureKind::WorkerHung, self.silence(awaited, wait.patience)));
            }
            // Asked before reading: what was written before the end is read below. What it forked may hold its stdout open.
            let has_ended = self.has_ended();
            self.read_some(STOP_CHECK.min(left));
            if self.stdout.is_none() || has_ended && self.received.len() == searched {
                return Err(self.death(awaited));
            }
        }
    }

    fn silence(&self, awaited: &str, waited: Duration) -> String {
        let waited = waited.as_secs_f64();
        match self.received.is_empty() {
            true => format!("the worker did not send {awaited} within {waited:.0} s"),
            false => format!(
                "instead of {awaited} the worker sent '{}' and no newline behind it within {waited:.0} s",
                shown(&self.received)
            ),
        }
    }

    /// Reads what stdout and stderr have, once one of them has something or `patience` is over.
    fn read_some(&mut self, patience: Duration) {
        let fds = [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        let [stdout, stderr] = readable(fds, patience);
        if stderr {
            self.read_stderr();
        }
        if stdout {
            let mut chunk = [0; 65_536];
            match self.stdout.as_mut().map(|stdout| stdout.read(&mut chunk)) {
                Some(Ok(len)) if len > 0 => self.received.extend_from_slice(&chunk[..len]),
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => self.stdout = None,
            }
        }
    }

    fn read_stderr(&mut self) {
        let mut chunk = [0; STDERR_CHUNK_BYTES];
        match self.stderr.as_mut().map(|stderr| stderr.read(&mut chunk)) {
            Some(Ok(len)) if len > 0 => {
                self.stderr_tail.extend_from_slice(&chunk[..len]);
                let excess = self.stderr_tail.len().saturating_sub(STDERR_TAIL_BYTES);
                self.stderr_tail.drain(..excess);
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => self.stderr = None,
        }
    }

    fn has_ended(&self) -> bool {
        self.collected || family::has_ended(Pid::from_child(&self.child))
    }

    /// How a worker died that should have sent something.
    fn death(&mut self, awaited: &str) -> ConversationError {
        match self.ends_within(EXIT_PATIENCE).then(|| self.kill()).flatten() {
            Some(status) => {
                broken(kind_of(status), format!("the worker {} before it sent {awaited}", ending(status)))
            }
            None => broken(
                FailureKind::WorkerDied,
                format!("the worker closed its stdout before it sent {awaited}"),
            ),
        }
    }

    /// Says that there is nothing more to do, by the end of stdin.
    pub fn say_no_more(&mut self) {
        self.stdin = None;
    }

    /// Waits for the process to end, whatever it still has to say; what it forked may live on.
    pub fn ends_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while !self.has_ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.read_some(END_CHECK.min(left));
            self.received.clear();
        }
        true
    }

    /// Kills the process, if it lives, with all that it forked; how it ended.
    fn kill(&mut self) -> Option<ExitStatus> {
        if !self.collected {
            // The group is that of the process for certain as long as that has not been collected.
            family::kill_group(Pid::from_child(&self.child));
            let _ = self.child.kill();
        }
        let status = self.child.wait().ok();
        self.collected = true;
        family::kill_orphans();
        status
    }

    /// Says that there is nothing more to do, and waits until the process has ended, so that what it mapped and cached is
    /// released.
    pub fn end(mut self, patience: Duration) -> Result<(), ConversationError> {
        self.say_no_more();
        if !self.ends_within(patience) {
            let waited = patience.as_secs();
            let detail = format!("the worker did not end within {waited} s of its last answer");
            return Err(broken(FailureKind::WorkerHung, detail));
        }
        match self.kill() {
            Some(status) if !status.success() => {
                Err(broken(kind_of(status), format!("the worker {} after its last answer", ending(status))))
            }
            _ => Ok(()),
        }
    }

    /// The end of its stderr; kills the worker, so that stderr has an end.
    pub fn last_words(&mut self, stop: &AtomicBool) -> String {
        self.kill();
        // A grandchild may hold the pipe open and go on writing: what the worker wrote is there already, so as much is taken
        // as a pipe can hold, and nobody is waited for.
        let deadline = Instant::now() + LAST_WORDS_PATIENCE;
        for _ in 0..LARGEST_PIPE_BYTES / STDERR_CHUNK_BYTES {
            let is_over = stop.load(Ordering::Relaxed) || Instant::now() >= deadline;
            let fds = [self.stderr.as_ref().map(AsFd::as_fd)];
            if is_over || fds[0].is_none() || readable(fds, Duration::ZERO) == [false] {
                break;
            }
            self.read_stderr();
        }
        String::from_utf8_lossy(&self.stderr_tail).trim().to_string()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Which of the descriptors that there are have something, or an end; none of them if a signal came first.
fn readable<const N: usize>(fds: [Option<BorrowedFd<'_>>; N], patience: Duration) -> [bool; N] {
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let seen = poll(&mut polled, Some(&timeout)).is_ok();
    let mut ready = polled.iter().map(|fd| seen && !fd.revents().is_empty());
    fds.map(|fd| fd.is_some() && ready.next().unwrap_or(false))
}

/// ConversationError for an answer that is of the protocol but not in place.
fn unexpected(awaited: &str, reply: &Reply) -> ConversationError {
    let text = serde_json::to_string(reply).unwrap_or_default();
    nonsense(format!("instead of {awaited} the worker sent '{}'", shown(text.as_bytes())))
}

fn unreadable(awaited: &str, line: &[u8], error: &serde_json::Error) -> ConversationError {
    let mut why = error.to_string();
    // Whole numbers that are too large are read as others.
    if why.contains("floating point") {
        why.push_str("; numbers are whole, and of 64 bits at most");
    }
    nonsense(format!("instead of {awaited} the worker sent '{}' ({why})", shown(line)))
}

/// Whether a line is an object with a type: a message, right or wrong.
fn is_message(line: &[u8]) -> bool {
    let value: Result<serde_json::Value, _> = serde_json::from_slice(line);
    let typed = value.is_ok_and(|value| value.get("type").is_some_and(serde_json::Value::is_string));
    // A number that JSON has and 64 bits have not is no stray either.
    typed || line.trim_ascii_start().starts_with(b"{\"type\"")
}

/// The beginning of a line, to be shown.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests;
