//! A worker process and its lines, with a time-out for every answer.
//!
//! A worker may die, hang, talk nonsense or fill its stderr; each becomes a [`WorkerError`] with a sentence, and
//! the end of stderr is kept to be shown. The process does not outlive this value, nor the supervisor; what it forked ends
//! with it ([`family`]).

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pagewise_host::toolchain::{Built, WorkerFolder};
use pagewise_model::{Failure, FailureKind};
use pagewise_protocol::{CallFailure, Hello, PROTOCOL_VERSION, Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::family;
use super::sample::descriptor_path;

/// No line of the protocol comes near this.
const MAX_LINE_BYTES: usize = 4 << 20;
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
/// How long a worker may take to end after its last answer.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);

/// Why a conversation ended early.
#[derive(Debug)]
pub enum WorkerError {
    /// The user wants to stop.
    Stopped,
    /// A call failed or was refused in the worker.
    Call(CallFailure),
    /// The worker misbehaved or ended.
    Broken(Failure),
}

fn broken(kind: FailureKind, detail: String) -> WorkerError {
    WorkerError::Broken(Failure { kind, detail })
}

impl WorkerError {
    /// Something that a conversation needs cannot be had.
    pub fn lack(detail: String) -> Self {
        broken(FailureKind::CallFailed, detail)
    }
}

/// Which program is a worker.
#[derive(Clone, Debug)]
pub enum Program {
    /// This program itself.
    Own,
    /// Another one.
    Stated(Arc<Stated>),
}

/// A program with all that it is started with.
#[derive(Debug)]
pub struct Stated {
    program: PathBuf,
    arguments: Vec<String>,
    /// Variables that must not reach it.
    pub unset: &'static [&'static str],
    /// How it is recorded, where that is not how it is started.
    shown: Option<Vec<String>>,
    /// The folder that it is reached by.
    _folder: Option<WorkerFolder>,
    /// Memory for its log, which it inherits.
    log: Option<OwnedFd>,
}

impl Stated {
    /// This program with these arguments.
    pub fn new(program: impl Into<PathBuf>, arguments: &[String]) -> Self {
        let (program, arguments) = (program.into(), arguments.to_vec());
        Self { program, arguments, unset: &[], shown: None, _folder: None, log: None }
    }

    /// A worker that was built, reached by the descriptor of its folder; it is recorded with its path.
    pub fn built(built: &Built) -> Self {
        let (program, arguments) = built.by_descriptor();
        Self {
            unset: built.unset,
            shown: Some(Self::new(&built.program, &built.arguments).command()),
            _folder: Some(built.folder.clone()),
            ..Self::new(program, &arguments)
        }
    }

    /// Has a JVM write its safepoints into `memory`, and the worker read them there.
    pub fn log_safepoints(&mut self, memory: OwnedFd) {
        let path = descriptor_path(&memory);
        let flags = [
            format!("-Xlog:safepoint=info:file={path}:uptimenanos:filecount=0"),
            format!("-Dpagewise.safepoint-log={path}"),
        ];
        if let Some(shown) = &mut self.shown {
            shown.splice(1..1, flags.clone());
        }
        self.arguments.splice(0..0, flags);
        self.log = Some(memory);
    }

    /// How it is started.
    pub fn command(&self) -> Vec<String> {
        if let Some(shown) = &self.shown {
            return shown.clone();
        }
        let program = self.program.to_string_lossy().into_owned();
        std::iter::once(program).chain(self.arguments.iter().cloned()).collect()
    }
}

impl Program {
    /// A program with all that it is started with.
    pub fn stated(stated: Stated) -> Self {
        Program::Stated(Arc::new(stated))
    }

    fn command(&self) -> Command {
        match self {
            Program::Own => {
                let mut command = Command::new("/proc/self/exe");
                command.arg("worker");
                command
            }
            Program::Stated(stated) => {
                let mut command = Command::new(&stated.program);
                command.args(&stated.arguments);
                for variable in stated.unset {
                    command.env_remove(variable);
                }
                command
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Program::Own => "the worker".to_string(),
            Program::Stated(stated) => format!("the worker '{}'", stated.command()[0]),
        }
    }
}

/// A worker that has said hello.
pub struct RunningWorker {
    child: Child,
    /// Whether its status was collected, after which its number may be another process's.
    collected: bool,
    /// `None` once there is nothing more to be said.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    received: Vec<u8>,
    stderr_tail: Vec<u8>,
}

impl RunningWorker {
    /// Starts a worker, as `prepare` has it start.
    pub fn start(
        program: &Program,
        prepare: impl FnOnce(&mut Command) -> io::Result<&mut Command>,
    ) -> Result<Self, WorkerError> {
        let died = |error: io::Error| {
            broken(FailureKind::WorkerDied, format!("{} could not be started: {error}", program.shown()))
        };
        family::adopt();
        let mut command = program.command();
        // A Ctrl-C on the terminal does not reach it: who speaks with it ends it.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = prepare(&mut command).and_then(Command::spawn).map_err(died)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("piped above");
        let stderr = child.stderr.take();
        Ok(Self {
            child,
            collected: false,
            stdin,
            stdout,
            stderr,
            received: Vec::new(),
            stderr_tail: Vec::new(),
        })
    }

    /// Waits for `hello` and checks the version.
    pub fn greet(&mut self, patience: Duration, stop: &AtomicBool) -> Result<Hello, WorkerError> {
        match self.receive("hello", patience, stop)? {
            Reply::Hello(hello) if hello.protocol == PROTOCOL_VERSION => Ok(hello),
            Reply::Hello(hello) => Err(broken(
                FailureKind::WorkerNonsense,
                format!(
                    "the worker '{}' {} speaks protocol {}, pagewise speaks {PROTOCOL_VERSION}",
                    hello.worker, hello.version, hello.protocol
                ),
            )),
            other => Err(unexpected("hello", &other)),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says something.
    pub fn send(&mut self, request: &Request) -> Result<(), WorkerError> {
        let mut line = serde_json::to_string(request).expect("requests have string keys only");
        line.push('\n');
        let stdin = self.stdin.as_mut().expect("nothing is said after the end");
        match stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()) {
            Ok(()) => Ok(()),
            // A closed pipe: the worker is dead or dying, and how it died says more.
            Err(_) => Err(self.death("what was asked")),
        }
    }

    /// Waits for an answer; `failed` comes back as trouble.
    pub fn receive(
        &mut self,
        awaited: &str,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<Reply, WorkerError> {
        let deadline = Instant::now() + patience;
        // Every byte is looked at once, however long the line becomes.
        let mut searched = 0;
        let line = loop {
            if let Some(end) = self.received[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(searched + end + 1);
                break std::mem::replace(&mut self.received, rest);
            }
            searched = self.received.len();
            if self.received.len() > MAX_LINE_BYTES {
                return Err(broken(
                    FailureKind::WorkerNonsense,
                    format!("instead of {awaited} the worker sent a line of over {MAX_LINE_BYTES} bytes"),
                ));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(WorkerError::Stopped);
            }
            let now = Instant::now();
            if now >= deadline {
                let waited = patience.as_secs_f64();
                return Err(broken(
                    FailureKind::WorkerHung,
                    format!("the worker did not send {awaited} within {waited:.0} s"),
                ));
            }
            // Asked before reading: what was written before the end is read below. What it forked may hold its stdout open.
            let has_ended = family::has_ended(Pid::from_child(&self.child));
            let is_open = self.read_some(STOP_CHECK.min(deadline - now));
            if !is_open || has_ended && self.received.len() == searched {
                return Err(self.death(awaited));
            }
        };
        match serde_json::from_slice(&line) {
            Ok(Reply::Failed(failure)) => Err(WorkerError::Call(failure)),
            Ok(reply) => Ok(reply),
            Err(error) => {
                let shown: String = String::from_utf8_lossy(&line).trim_end().chars().take(120).collect();
                Err(broken(
                    FailureKind::WorkerNonsense,
                    format!("instead of {awaited} the worker sent '{shown}' ({error})"),
                ))
            }
        }
    }

    /// Reads what stdout and stderr have; false once stdout is closed.
    fn read_some(&mut self, patience: Duration) -> bool {
        let timeout =
            Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        let mut fds = vec![PollFd::new(&self.stdout, PollFlags::IN)];
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        if poll(&mut fds, Some(&timeout)).is_err() {
            // EINTR: the caller looks whether it was the wish to stop.
            return true;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.get(1) == Some(&true) {
            self.read_stderr();
        }
        if !ready[0] {
            return true;
        }
        let mut chunk = [0; 65_536];
        match self.stdout.read(&mut chunk) {
            Ok(0) => false,
            Ok(len) => {
                self.received.extend_from_slice(&chunk[..len]);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
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

    /// How a worker died that should have sent something.
    fn death(&mut self, awaited: &str) -> WorkerError {
        match self.wait() {
            Some(status) => {
                broken(kind_of(status), format!("the worker {} before it sent {awaited}", ending(status)))
            }
            None => broken(
                FailureKind::WorkerDied,
                format!("the worker closed its stdout before it sent {awaited}"),
            ),
        }
    }

    /// Waits for the process to end, within bounds, and kills what it left.
    fn wait(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + EXIT_PATIENCE;
        while Instant::now() < deadline {
            if family::has_ended(Pid::from_child(&self.child)) {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
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
    pub fn end(mut self) -> Result<(), WorkerError> {
        self.stdin = None;
        match self.wait() {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                Err(broken(kind_of(status), format!("the worker {} after its last answer", ending(status))))
            }
            None => Err(broken(
                FailureKind::WorkerHung,
                format!("the worker did not end within {} s of its last answer", EXIT_PATIENCE.as_secs()),
            )),
        }
    }

    /// The end of its stderr; kills the worker, so that stderr has an end.
    pub fn into_stderr_tail(mut self, stop: &AtomicBool) -> String {
        self.kill();
        // A grandchild may hold the pipe open and go on writing: what the worker wrote is there already, so as much is taken
        // as a pipe can hold, and nobody is waited for.
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let deadline = Instant::now() + LAST_WORDS_PATIENCE;
        for _ in 0..LARGEST_PIPE_BYTES / STDERR_CHUNK_BYTES {
            let Some(stderr) = &self.stderr else { break };
            let ready = poll(&mut [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::IN)], Some(&zero));
            let is_over = stop.load(Ordering::Relaxed) || Instant::now() >= deadline;
            if is_over || !matches!(ready, Ok(count) if count > 0) {
                break;
            }
            self.read_stderr();
        }
        String::from_utf8_lossy(&self.stderr_tail).trim().to_string()
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Trouble for an answer that is of the protocol but not in place.
pub fn unexpected(awaited: &str, reply: &Reply) -> WorkerError {
    let text = serde_json::to_string(reply).unwrap_or_default();
    let shown: String = text.chars().take(120).collect();
    broken(FailureKind::WorkerNonsense, format!("instead of {awaited} the worker sent '{shown}'"))
}

/// Whether what ended a process came from outside: these signals are sent, and no fault raises them.
fn kind_of(status: ExitStatus) -> FailureKind {
    use rustix::process::Signal;
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::KILL | Signal::TERM | Signal::INT | Signal::HUP) => FailureKind::KilledFromOutside,
        _ => FailureKind::WorkerDied,
    }
}

/// How a process ended, as what it did.
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended".to_string(),
        (Some(code), _) => format!("ended with status {code}"),
        (_, Some(signal)) => format!("was killed by {}", signal_name(signal)),
        _ => "ended".to_string(),
    }
}

/// Whether the sentence of [`ending`] tells of a SIGBUS.
pub fn died_of_sigbus(failure: &Failure) -> bool {
    failure.kind == FailureKind::WorkerDied && failure.detail.contains("SIGBUS")
}

fn signal_name(signal: i32) -> String {
    match rustix::process::Signal::from_named_raw(signal) {
        Some(rustix::process::Signal::BUS) => "SIGBUS".to_string(),
        Some(rustix::process::Signal::KILL) => "SIGKILL".to_string(),
        Some(rustix::process::Signal::SEGV) => "SIGSEGV".to_string(),
        Some(rustix::process::Signal::ABORT) => "SIGABRT".to_string(),
        Some(rustix::process::Signal::TERM) => "SIGTERM".to_string(),
        Some(rustix::process::Signal::INT) => "SIGINT".to_string(),
        Some(rustix::process::Signal::HUP) => "SIGHUP".to_string(),
        _ => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn worker() -> RunningWorker {
        RunningWorker::start(&Program::stated(Stated::new("cat", &[])), |command| Ok(command))
            .expect("cat starts")
    }

    #[test]
    fn last_words_have_an_end_whoever_goes_on_writing() {
        let mut endless = worker();
        // There is always more to be read of it, as of a pipe into which a grandchild writes.
        endless.stderr = Some(OwnedFd::from(File::open("/dev/zero").expect("/dev/zero")).into());
        let tail = endless.into_stderr_tail(&AtomicBool::new(false));
        assert_eq!(tail.len(), STDERR_TAIL_BYTES);
    }

    #[test]
    fn who_wants_to_stop_waits_for_no_last_words() {
        let mut endless = worker();
        endless.stderr = Some(OwnedFd::from(File::open("/dev/zero").expect("/dev/zero")).into());
        assert_eq!(endless.into_stderr_tail(&AtomicBool::new(true)), "");
    }

    #[test]
    fn a_full_pipe_is_read_to_its_end() {
        let (reading, mut writing) = io::pipe().expect("a pipe");
        rustix::pipe::fcntl_setpipe_size(&writing, 256 << 10).expect("a larger pipe");
        writing.write_all(&vec![b'x'; (256 << 10) - 4096]).expect("it holds that");
        writing.write_all(b" the end").expect("and that");
        let mut dead = worker();
        dead.stderr = Some(OwnedFd::from(reading).into());
        assert!(dead.into_stderr_tail(&AtomicBool::new(false)).ends_with("x the end"));
    }
}
