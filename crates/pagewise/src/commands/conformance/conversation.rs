//! A worker under trial and its lines. Unlike in a run, what is wrong with a line is told and the conversation goes on where
//! it can; the worker has a process group of its own, so that what it starts is seen too.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pagewise_protocol::{CallFailure, Reply, Request};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::supervise::worker::ending;

/// No line of the protocol comes near this.
const MAX_LINE_BYTES: usize = 4 << 20;
/// How much of stderr is kept, and how much of it is shown.
const STDERR_BYTES: usize = 4096;
const SHOWN_CHARS: usize = 160;
/// Stray lines that are kept.
const KEPT_STRAYS: usize = 3;
/// How often the wish to stop is looked at.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// How long a worker may take to end.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the last of its stderr may take.
const STDERR_PATIENCE: Duration = Duration::from_secs(1);

/// Why an answer is not there.
#[derive(Debug)]
pub enum ConversationError {
    /// The user wants to stop.
    Stopped,
    /// The worker says that a call failed.
    Failed(CallFailure),
    /// Another answer came, or one that cannot be read: the conversation can go on.
    Other(String),
    /// Nothing came, or the worker ended: nothing more can be had of it.
    Lost(String),
}

impl ConversationError {
    /// What was seen, as a sentence.
    pub fn sentence(&self) -> String {
        match self {
            ConversationError::Stopped => "it was stopped".to_string(),
            ConversationError::Failed(failure) => {
                let CallFailure { call, errno, detail, .. } = failure;
                format!("it answered failed: {call}, errno {errno}: {detail}")
            }
            ConversationError::Other(detail) | ConversationError::Lost(detail) => detail.clone(),
        }
    }
}

/// What comes from stdout.
enum Event {
    Line(Vec<u8>),
    TooLong,
}

/// What the threads that read have collected.
#[derive(Default)]
struct Collected {
    /// The line that has no end yet.
    partial: Vec<u8>,
    /// The end of stderr.
    stderr: Vec<u8>,
    /// Whether stderr was closed.
    stderr_ended: bool,
}

/// A worker that was started.
pub struct Conversation<'a> {
    child: Child,
    status: Option<ExitStatus>,
    stdin: Option<ChildStdin>,
    events: Receiver<Event>,
    collected: Arc<Mutex<Collected>>,
    strays: Vec<String>,
    patience: Duration,
    stop: &'a AtomicBool,
}

impl<'a> Conversation<'a> {
    /// Starts the command in a group of its own; it does not outlive the thread that calls.
    pub fn start(command: &[String], patience: Duration, stop: &'a AtomicBool) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pagewise_sys::child::die_with_parent(&mut command).spawn()?;
        let collected = Arc::new(Mutex::new(Collected::default()));
        let (sender, events) = sync_channel(16);
        if let Some(stdout) = child.stdout.take() {
            let collected = collected.clone();
            std::thread::spawn(move || read_lines(stdout, &sender, &collected));
        }
        if let Some(stderr) = child.stderr.take() {
            let collected = collected.clone();
            std::thread::spawn(move || read_stderr(stderr, &collected));
        }
        let stdin = child.stdin.take();
        Ok(Self { child, status: None, stdin, events, collected, strays: Vec::new(), patience, stop })
    }

    /// Its process id, which is that of its group too.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processes of its group that live.
    pub fn processes(&self) -> Vec<u32> {
        processes_of_group(self.pid())
    }

    /// Lines on stdout so far that are no answers.
    pub fn take_strays(&mut self) -> Vec<String> {
        std::mem::take(&mut self.strays)
    }

    /// The end of stderr of a worker that has ended. Somebody else may hold it open, so the wait has a bound.
    fn stderr(&self) -> String {
        let deadline = Instant::now() + STDERR_PATIENCE;
        loop {
            let collected = self.collected.lock().expect("no reader panics");
            if collected.stderr_ended || Instant::now() > deadline {
                return String::from_utf8_lossy(&collected.stderr).trim().to_string();
            }
            drop(collected);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Says something.
    pub fn send(&mut self, request: &Request) -> Result<(), ConversationError> {
        self.send_line(&serde_json::to_string(request).expect("requests have string keys only"))
    }

    /// Says a line as it is.
    pub fn send_line(&mut self, line: &str) -> Result<(), ConversationError> {
        let Some(stdin) = self.stdin.as_mut() else {
            return Err(ConversationError::Lost("its stdin was closed".to_string()));
        };
        let said = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
        // A closed pipe: how the worker ended says more.
        said.map_err(|_| self.end_before("it read what was asked"))
    }

    /// Waits for an answer. Lines that are no answers are kept as strays.
    pub fn receive(&mut self, awaited: &str, work: Duration) -> Result<Reply, ConversationError> {
        let deadline = Instant::now() + self.patience + work;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ConversationError::Stopped);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.events.recv_timeout(STOP_CHECK.min(left)) {
                Ok(Event::Line(line)) => line,
                Ok(Event::TooLong) => {
                    return Err(ConversationError::Lost(format!(
                        "instead of {awaited} it sent a line of over {MAX_LINE_BYTES} bytes"
                    )));
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(ConversationError::Lost(self.silence(awaited, self.patience + work)));
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.end_before(&format!("it sent {awaited}")));
                }
            };
            match serde_json::from_slice(&line) {
                Ok(Reply::Failed(failure)) => return Err(ConversationError::Failed(failure)),
                Ok(reply) => return Ok(reply),
                Err(error) if is_message(&line) => {
                    // Whole numbers that are too large are read as others.
                    let why = match error.to_string() {
                        why if why.contains("floating point") => {
                            format!("{why}: numbers are whole, and of 64 bits at most")
                        }
                        why => why,
                    };
                    let shown = shown(&line);
                    return Err(ConversationError::Other(format!(
                        "instead of {awaited} it sent what cannot be read ({why}): '{shown}'"
                    )));
                }
                Err(_) if self.strays.len() < KEPT_STRAYS => self.strays.push(shown(&line)),
                Err(_) => {}
            }
        }
    }

    /// Trouble for an answer that is out of place.
    pub fn unexpected(awaited: &str, reply: &Reply) -> ConversationError {
        let text = serde_json::to_string(reply).unwrap_or_default();
        ConversationError::Other(format!("instead of {awaited} it sent '{}'", shown(text.as_bytes())))
    }

    fn silence(&self, awaited: &str, waited: Duration) -> String {
        let seconds = waited.as_secs_f64();
        let collected = self.collected.lock().expect("no reader panics");
        match (collected.partial.is_empty(), self.strays.last()) {
            (false, _) => format!(
                "it sent '{}' and no newline behind it within {seconds:.0} s: end each message with a newline, and flush",
                shown(&collected.partial)
            ),
            (true, Some(stray)) => format!(
                "it did not send {awaited} within {seconds:.0} s, but '{stray}': print nothing but messages to stdout"
            ),
            (true, None) => format!(
                "it did not send {awaited} within {seconds:.0} s: answer in time, and flush stdout at each line"
            ),
        }
    }

    fn end_before(&mut self, what: &str) -> ConversationError {
        let how = match self.wait() {
            Some(status) => format!("it {} before {what}", ending(status)),
            None => format!("it closed its stdout before {what}"),
        };
        let stderr = self.stderr();
        ConversationError::Lost(match stderr.is_empty() {
            true => how,
            false => format!("{how}; the end of its stderr: '{}'", last_chars(&stderr)),
        })
    }

    /// Waits for the process to end, within bounds.
    fn wait(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + EXIT_PATIENCE.min(self.patience);
        while self.status.is_none() && Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) => self.status = Some(status),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        self.status
    }

    /// Whether a SIGBUS ended it.
    pub fn ended_by_sigbus(&mut self) -> bool {
        self.wait().is_some_and(|status| status.signal() == Some(Signal::BUS.as_raw()))
    }

    /// Closes its stdin and waits: it must end with status 0 and leave nobody.
    pub fn end(&mut self) -> Result<(), String> {
        self.stdin = None;
        let limit = EXIT_PATIENCE.min(self.patience).as_secs_f64();
        match self.wait() {
            None => {
                return Err(format!(
                    "it still runs {limit:.0} s after the end of stdin: end when stdin does"
                ));
            }
            Some(status) if !status.success() => {
                return Err(format!("it {} at the end of stdin: end with status 0", ending(status)));
            }
            Some(_) => {}
        }
        let left = self.processes();
        match left.first() {
            None => Ok(()),
            Some(pid) => Err(format!(
                "{} of its processes still run after it, {pid} ({}) among them: end what it starts",
                left.len(),
                name_of(*pid)
            )),
        }
    }

    /// After `failed`, a worker ends, once it is told that there is nothing more.
    pub fn ends_after_failed(&mut self) -> Result<(), String> {
        self.stdin = None;
        match self.wait() {
            Some(_) => Ok(()),
            None => Err("it goes on after failed, although stdin has ended: end then".to_string()),
        }
    }
}

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        // A group lives as long as one of its processes does, so its number is nobody else's.
        let group = Pid::from_raw(self.pid() as i32);
        if let Some(group) = group.filter(|_| self.status.is_none() || !self.processes().is_empty()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
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

/// The end of what was printed, on one line.
fn last_chars(text: &str) -> String {
    let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    let skipped = line.chars().count().saturating_sub(2 * SHOWN_CHARS);
    line.chars().skip(skipped).collect()
}

fn read_lines(mut stdout: impl Read, lines: &SyncSender<Event>, collected: &Mutex<Collected>) {
    let mut chunk = [0; 65_536];
    loop {
        let len = match stdout.read(&mut chunk) {
            Ok(0) => return,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let whole = {
            let mut collected = collected.lock().expect("no reader panics");
            // The part before has no newline, or it would be gone.
            let Some(end) = chunk[..len].iter().rposition(|byte| *byte == b'\n') else {
                collected.partial.extend_from_slice(&chunk[..len]);
                if collected.partial.len() > MAX_LINE_BYTES {
                    collected.partial.truncate(SHOWN_CHARS);
                    let _ = lines.send(Event::TooLong);
                    return;
                }
                continue;
            };
            collected.partial.extend_from_slice(&chunk[..=end]);
            std::mem::replace(&mut collected.partial, chunk[end + 1..len].to_vec())
        };
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            if lines.send(Event::Line(line.to_vec())).is_err() {
                return;
            }
        }
    }
}

fn read_stderr(mut stderr: impl Read, collected: &Mutex<Collected>) {
    let mut chunk = [0; 4096];
    loop {
        match stderr.read(&mut chunk) {
            Ok(0) => break,
            Ok(len) => {
                let mut collected = collected.lock().expect("no reader panics");
                collected.stderr.extend_from_slice(&chunk[..len]);
                let excess = collected.stderr.len().saturating_sub(STDERR_BYTES);
                collected.stderr.drain(..excess);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    collected.lock().expect("no reader panics").stderr_ended = true;
}

/// Living processes of a group: /proc/PID/stat, whose third field behind the name is the group (proc_pid_stat(5)).
fn processes_of_group(group: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_group = |pid: &u32| {
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        let Some((_, fields)) = text.rsplit_once(')') else { return false };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let living = fields.first().is_some_and(|state| !["Z", "X"].contains(state));
        living && fields.get(2).and_then(|field| field.parse().ok()) == Some(group)
    };
    pids.filter(of_group).collect()
}

/// What a process is called.
pub fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_string()
}
