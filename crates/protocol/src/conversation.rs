//! A conversation with a worker, line by line, with a timeout for every answer.
//!
//! A worker may die, hang, talk nonsense, talk without end, fill its stderr, close its pipes or
//! leave a child that holds them. Each becomes a [`ConversationError`] with a sentence, and the
//! tail of stderr is kept. One poll(2) waits for everything that the worker can do, and a request
//! is shorter than a pipe, so no worker can block the supervisor. The worker does not outlive this
//! value, nor what it forked (`family`).

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pagewise_model::{Failure, FailureKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ending::{ending, kind_of};
use crate::messages::{
    CallFailure, Go, Heartbeats, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply, Verify,
};
use crate::peer::{Peer, Pipes};

/// Maximum length of a line; no line of the protocol comes near it.
const MAX_LINE_BYTES: usize = 4 << 20;
/// Length of a line as it is shown.
const SHOWN_CHARS: usize = 120;
/// Maximum number of kept lines that are no messages.
const KEPT_STRAYS: usize = 3;
/// Length of the kept tail of stderr.
const STDERR_TAIL_BYTES: usize = 4096;
/// Length of one read of stderr.
const STDERR_CHUNK_BYTES: usize = 4096;
/// Capacity of a pipe unless root made it larger (/proc/sys/fs/pipe-max-size).
const LARGEST_PIPE_BYTES: usize = 1 << 20;
/// Maximum time for reading the last words of a dead worker.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);
/// Interval at which the stop flag is examined.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Interval at which an ending worker is examined.
const END_CHECK: Duration = Duration::from_millis(1);
/// Maximum time for a worker to end after its last answer.
pub const EXIT_PATIENCE: Duration = Duration::from_secs(10);

/// Reason that a conversation ended early.
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
    /// Resource that a conversation needs and cannot have.
    pub fn lack(detail: String) -> Self {
        broken(FailureKind::CallFailed, detail)
    }

    /// The error with the name of the worker before what happened.
    pub fn of(self, who: &str) -> Self {
        let named = |detail: String| format!("{who}: {detail}");
        match self {
            ConversationError::Broken(failure) => {
                ConversationError::Broken(Failure { detail: named(failure.detail), ..failure })
            }
            ConversationError::Call(failure) => {
                ConversationError::Call(CallFailure { detail: named(failure.detail), ..failure })
            }
            ConversationError::Stopped => ConversationError::Stopped,
        }
    }

    /// Work that a worker does not offer, so that it is not asked for it.
    pub fn unavailable(detail: String) -> Self {
        let (call, path) = ("open".to_string(), String::new());
        ConversationError::Call(CallFailure { call, errno: 0, path, offset: 0, detail, unavailable: 1 })
    }
}

/// Time limit of an answer.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// Maximum time.
    pub patience: Duration,
    /// Ends the wait once it is set.
    pub stop: &'a AtomicBool,
}

impl Wait<'_> {
    /// The limit, extended by the duration of the work.
    pub fn and(self, work: Duration) -> Self {
        Self { patience: self.patience + work, ..self }
    }
}

/// Wait for one kind of answer and take a value from it; any other is an error.
macro_rules! answer {
    ($self:ident, $wait:expr, $awaited:literal, $reply:pat => $value:expr) => {
        match $self.receive($awaited, $wait)? {
            $reply => Ok($value),
            other => Err(unexpected($awaited, &other)),
        }
    };
}

/// A worker that was started.
pub struct Conversation {
    peer: Peer,
    /// Each pipe is `None` once it is closed.
    pipes: Pipes,
    received: Vec<u8>,
    stderr_tail: Vec<u8>,
    /// Lines that are no messages, if they are passed over.
    strays: Option<Vec<String>>,
    /// Fields that each request begins with.
    added_fields: &'static str,
}

impl Conversation {
    /// Start a worker process in a group of its own, after `prepare`. `shown` names it in
    /// sentences.
    pub fn start(
        command: Command,
        shown: &str,
        prepare: impl FnOnce(&mut Command) -> io::Result<&mut Command>,
    ) -> Result<Self, ConversationError> {
        Self::with(Peer::process(command, prepare), shown)
    }

    /// Start a worker that is a thread of this process: `serve` reads requests and writes replies
    /// until requests end. For tests of the supervisor; its counters are those of this process, so
    /// a sample of it proves nothing.
    pub fn within(
        serve: impl FnOnce(PipeReader, PipeWriter) -> io::Result<()> + Send + 'static,
    ) -> Result<Self, ConversationError> {
        Self::with(Peer::thread(serve), "the worker")
    }

    fn with(started: io::Result<(Peer, Pipes)>, shown: &str) -> Result<Self, ConversationError> {
        let (peer, pipes) = started.map_err(|error| {
            broken(FailureKind::WorkerDied, format!("{shown} could not be started: {error}"))
        })?;
        Ok(Self {
            peer,
            pipes,
            received: Vec::new(),
            stderr_tail: Vec::new(),
            strays: None,
            added_fields: "",
        })
    }

    /// Pass over lines that are no messages, instead of ending the conversation.
    pub fn pass_over_strays(&mut self) {
        self.strays.get_or_insert_default();
    }

    /// Begin each request with these fields, which no version of the protocol has; each ends with a
    /// comma.
    pub fn add_to_requests(&mut self, fields: &'static str) {
        self.added_fields = fields;
    }

    /// The first lines that were passed over.
    pub fn take_strays(&mut self) -> Vec<String> {
        self.strays.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Process id of the worker, which is also the id of its group.
    pub fn pid(&self) -> u32 {
        self.peer.pid()
    }

    /// Live processes of its group.
    pub fn processes(&self) -> Vec<u32> {
        self.peer.processes()
    }

    /// Send a request.
    pub fn send(&mut self, request: &Request) -> Result<(), ConversationError> {
        let mut line = serde_json::to_string(request).expect("requests have string keys only");
        line.insert_str(1, self.added_fields);
        let stdin = self.pipes.stdin.as_mut().expect("requests are sent before the end");
        match stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush()) {
            Ok(()) => Ok(()),
            // A closed pipe: the worker is dead or dying, and how it died says more.
            Err(_) => Err(self.death("what was asked")),
        }
    }

    /// Wait for `hello` of any version.
    pub fn hello(&mut self, wait: Wait<'_>) -> Result<Hello, ConversationError> {
        answer!(self, wait, "hello", Reply::Hello(hello) => hello)
    }

    /// Wait for `hello` and check its version.
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

    /// Send `open` and wait for `opened`: the durations of set-up and of the ballast by the
    /// worker's clock, in ns. `ready` follows.
    pub fn open(&mut self, job: &Job, wait: Wait<'_>) -> Result<(u64, u64), ConversationError> {
        self.send(&Request::Open(Box::new(job.clone())))?;
        self.opened(wait)
    }

    /// Wait for `opened`.
    pub fn opened(&mut self, wait: Wait<'_>) -> Result<(u64, u64), ConversationError> {
        answer!(self, wait, "opened", Reply::Opened { setup_ns, ballast_ns } => (setup_ns, ballast_ns))
    }

    /// Wait for `ready`: the time since `opened` by the worker's clock, in ns.
    pub fn ready(&mut self, wait: Wait<'_>) -> Result<u64, ConversationError> {
        answer!(self, wait, "ready", Reply::Ready { warmup_ns } => warmup_ns)
    }

    /// Have the worker beat for `idle_ns` and do nothing else.
    pub fn idle(&mut self, idle_ns: u64, wait: Wait<'_>) -> Result<Heartbeats, ConversationError> {
        self.send(&Request::Idle { idle_ns })?;
        answer!(self, wait, "idled", Reply::Idled(beats) => beats)
    }

    /// Send `go` and wait for `sample`.
    pub fn go(&mut self, go: Go, wait: Wait<'_>) -> Result<SampleReply, ConversationError> {
        self.begin(go)?;
        self.sample(wait)
    }

    /// Send `go`; [`Conversation::sample`] waits for the answer.
    pub fn begin(&mut self, go: Go) -> Result<(), ConversationError> {
        self.send(&Request::Go(go))
    }

    /// Wait for `sample`.
    pub fn sample(&mut self, wait: Wait<'_>) -> Result<SampleReply, ConversationError> {
        answer!(self, wait, "sample", Reply::Sample(sample) => *sample)
    }

    /// Have single reads performed; returns the number that the worker reports.
    pub fn verify(&mut self, offsets: Vec<u64>, wait: Wait<'_>) -> Result<u64, ConversationError> {
        self.send(&Request::Verify(Verify { offsets }))?;
        answer!(self, wait, "verified", Reply::Verified { reads } => reads)
    }

    /// Send `close` and wait for `closed`: the duration of tear-down by the worker's clock and its
    /// part for the sync, in ns.
    pub fn close(&mut self, wait: Wait<'_>) -> Result<(u64, u64), ConversationError> {
        self.send(&Request::Close)?;
        answer!(self, wait, "closed", Reply::Closed { teardown_ns, sync_ns } => (teardown_ns, sync_ns))
    }

    /// Wait for any answer; `failed` is an error.
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
        // Every byte is examined once, whatever the length of the line.
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
            // Asked before reading, so that everything written before the end is read. A forked
            // child may hold stdout open.
            let has_ended = self.peer.has_ended();
            self.read_some(STOP_CHECK.min(left));
            if self.pipes.stdout.is_none() || has_ended && self.received.len() == searched {
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

    /// Read from stdout and stderr once one of them has something or `patience` is over.
    fn read_some(&mut self, patience: Duration) {
        let fds = [&self.pipes.stdout, &self.pipes.stderr];
        let [stdout, stderr] = readable(fds, patience);
        if stderr {
            self.read_stderr();
        }
        if stdout {
            let mut chunk = [0; 65_536];
            match self.pipes.stdout.as_mut().map(|stdout| stdout.read(&mut chunk)) {
                Some(Ok(len)) if len > 0 => self.received.extend_from_slice(&chunk[..len]),
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => self.pipes.stdout = None,
            }
        }
    }

    fn read_stderr(&mut self) {
        let mut chunk = [0; STDERR_CHUNK_BYTES];
        match self.pipes.stderr.as_mut().map(|stderr| stderr.read(&mut chunk)) {
            Some(Ok(len)) if len > 0 => {
                self.stderr_tail.extend_from_slice(&chunk[..len]);
                let excess = self.stderr_tail.len().saturating_sub(STDERR_TAIL_BYTES);
                self.stderr_tail.drain(..excess);
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => self.pipes.stderr = None,
        }
    }

    /// The death of a worker that should have sent `awaited`.
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

    /// Close stdin, at which the worker ends.
    pub fn say_no_more(&mut self) {
        self.pipes.stdin = None;
    }

    /// Wait for the worker to end, and drop everything it still writes; what it forked may live on.
    pub fn ends_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while !self.peer.has_ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.read_some(END_CHECK.min(left));
            self.received.clear();
        }
        true
    }

    /// Kill the worker, if it lives, with everything it forked; returns its status.
    fn kill(&mut self) -> Option<ExitStatus> {
        self.peer.end(&mut self.pipes)
    }

    /// Let the worker end and wait until it has, so that its mappings and memory are released.
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

    /// The tail of its stderr, after killing the worker.
    pub fn last_words(&mut self, stop: &AtomicBool) -> String {
        self.kill();
        // A grandchild may hold the pipe open and go on writing. Everything the worker wrote is in
        // the pipe already, so at most the capacity of a pipe is read, without waiting.
        let deadline = Instant::now() + LAST_WORDS_PATIENCE;
        for _ in 0..LARGEST_PIPE_BYTES / STDERR_CHUNK_BYTES {
            let is_over = stop.load(Ordering::Relaxed) || Instant::now() >= deadline;
            if is_over || readable([&self.pipes.stderr], Duration::ZERO) == [false] {
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

/// The open pipes that have something to read, or an end; none if a signal came first.
fn readable<const N: usize>(pipes: [&Option<File>; N], patience: Duration) -> [bool; N] {
    let fds: [Option<BorrowedFd<'_>>; N] = pipes.map(|pipe| pipe.as_ref().map(AsFd::as_fd));
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let seen = poll(&mut polled, Some(&timeout)).is_ok();
    let mut ready = polled.iter().map(|fd| seen && !fd.revents().is_empty());
    fds.map(|fd| fd.is_some() && ready.next().unwrap_or(false))
}

/// An answer of the protocol that is out of place.
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

/// True for an object with a type: a message, right or wrong.
fn is_message(line: &[u8]) -> bool {
    let value: Result<serde_json::Value, _> = serde_json::from_slice(line);
    let typed = value.is_ok_and(|value| value.get("type").is_some_and(serde_json::Value::is_string));
    // A message with a number beyond 64 bits is not a stray either.
    typed || line.trim_ascii_start().starts_with(b"{\"type\"")
}

/// The beginning of a line for a sentence.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Path by which a worker opens a file or memory that it inherits.
pub fn inherited_path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Path by which any process of this user opens a file or memory of this process.
pub fn descriptor_path(file: &impl AsRawFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(test)]
mod tests;
