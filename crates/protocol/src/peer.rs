//! The other end of a conversation: a worker process, or a thread that serves as one where tests
//! need no process.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal};

use crate::family;

/// A worker.
pub(crate) enum Peer {
    /// A process that leads a group of its own.
    Process {
        /// The process.
        child: Child,
        /// True once its status was collected; its id may then belong to another process.
        collected: bool,
    },
    /// A thread of this process; `None` once it was joined.
    Thread(Option<JoinHandle<io::Result<()>>>),
}

/// The supervisor's ends of the pipes to a worker.
pub(crate) struct Pipes {
    pub stdin: Option<File>,
    pub stdout: Option<File>,
    pub stderr: Option<File>,
}

impl Peer {
    /// Start `command` in a process group of its own, after `prepare`.
    pub fn process(
        mut command: Command,
        prepare: impl FnOnce(&mut Command) -> io::Result<&mut Command>,
    ) -> io::Result<(Self, Pipes)> {
        family::adopt();
        // Ctrl-C on the terminal does not reach it: the supervisor ends it.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = prepare(&mut command).and_then(Command::spawn)?;
        family::begun();
        let pipes = Pipes {
            stdin: child.stdin.take().map(file),
            stdout: child.stdout.take().map(file),
            stderr: child.stderr.take().map(file),
        };
        Ok((Peer::Process { child, collected: false }, pipes))
    }

    /// Run `serve` on a thread, with requests to read and replies to write. Its error is written to
    /// its stderr and ends it with status 1, a panic with SIGABRT.
    pub fn thread(
        serve: impl FnOnce(PipeReader, PipeWriter) -> io::Result<()> + Send + 'static,
    ) -> io::Result<(Self, Pipes)> {
        let (requests, stdin) = io::pipe()?;
        let (stdout, replies) = io::pipe()?;
        let (stderr, mut words) = io::pipe()?;
        let worker = thread::Builder::new().name("worker".to_string()).spawn(move || {
            serve(requests, replies).inspect_err(|error| {
                let _ = writeln!(words, "worker: {error}");
            })
        })?;
        let pipes =
            Pipes { stdin: Some(file(stdin)), stdout: Some(file(stdout)), stderr: Some(file(stderr)) };
        Ok((Peer::Thread(Some(worker)), pipes))
    }

    /// The process id, which is the group's id too; a thread has that of this process.
    pub fn pid(&self) -> u32 {
        match self {
            Peer::Process { child, .. } => child.id(),
            Peer::Thread(_) => std::process::id(),
        }
    }

    /// Live processes of its group; a thread has none.
    pub fn processes(&self) -> Vec<u32> {
        match self {
            Peer::Process { child, .. } => family::of_group(child.id()),
            Peer::Thread(_) => Vec::new(),
        }
    }

    /// True once it has ended.
    pub fn has_ended(&self) -> bool {
        match self {
            Peer::Process { child, collected } => *collected || family::has_ended(Pid::from_child(child)),
            Peer::Thread(worker) => worker.as_ref().is_none_or(JoinHandle::is_finished),
        }
    }

    /// End it, with everything it forked, and return its status. A thread cannot be killed: it ends
    /// by the end of its pipes.
    pub fn end(&mut self, pipes: &mut Pipes) -> Option<ExitStatus> {
        match self {
            Peer::Process { child, collected } => {
                if !*collected {
                    // The group is certainly its own until its status is collected.
                    family::kill_group(Pid::from_child(child));
                    let _ = child.kill();
                }
                let status = child.wait().ok();
                if !std::mem::replace(collected, true) {
                    family::ended();
                }
                status
            }
            Peer::Thread(worker) => {
                (pipes.stdin, pipes.stdout) = (None, None);
                worker.take().map(|worker| match worker.join() {
                    Ok(Ok(())) => ExitStatus::default(),
                    Ok(Err(_)) => ExitStatus::from_raw(1 << 8),
                    Err(_) => ExitStatus::from_raw(Signal::ABORT.as_raw()),
                })
            }
        }
    }
}

fn file(pipe: impl Into<OwnedFd>) -> File {
    File::from(pipe.into())
}
