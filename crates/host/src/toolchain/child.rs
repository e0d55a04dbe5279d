//! A program run to its end: with a time limit, bounded output, and its whole process group killed if it takes longer.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pagewise_sys::child::die_with_parent;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// Bytes kept of each stream; the rest is read and dropped, so that the program does not block.
const KEPT_BYTES: usize = 64 << 10;
/// Interval of checks for the end of the process and for a stop.
const LOOK: Duration = Duration::from_millis(20);
/// The same once the streams are closed: the end is near.
const LOOK_AT_END: Duration = Duration::from_millis(1);
/// Lines of an error message that are shown.
const SHOWN_LINES: usize = 3;
const SHOWN_CHARACTERS: usize = 300;

/// Output of a program that has ended.
#[derive(Debug)]
pub(super) struct Said {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// The same if it succeeded; otherwise its exit state, with the first lines of its error message.
    pub fn well(self) -> Result<Self, String> {
        if self.status.success() {
            return Ok(self);
        }
        let complaint = first_lines(if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr });
        let status = self.status;
        Err(if complaint.is_empty() { format!("{status}") } else { format!("{status}: {complaint}") })
    }
}

/// The first lines that are not empty, as one line.
fn first_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let joined = lines.take(SHOWN_LINES).collect::<Vec<_>>().join("; ");
    joined.chars().filter(|letter| !letter.is_control()).take(SHOWN_CHARACTERS).collect()
}

/// Run `command`, with its own process group and pipes for its output. It dies with this process, so that it does not
/// write on into a folder that somebody else sweeps. The error is the reason: not started, too slow, stopped.
pub(super) fn run(command: &mut Command, within: Duration, stop: &AtomicBool) -> Result<Said, String> {
    let deadline = Instant::now() + within;
    let mut child =
        die_with_parent(command).spawn().map_err(|error| format!("could not be started: {error}"))?;
    let awaited = wait(&mut child, deadline, stop);
    match awaited {
        Ok(said) => Ok(said),
        Err(trouble) => {
            kill(&mut child);
            Err(match trouble {
                ChildError::Late => {
                    format!("did not end within {:.0} s and was killed", within.as_secs_f64())
                }
                ChildError::Stopped => "was stopped".to_string(),
                ChildError::Call(error) => format!("could not be waited for: {error}"),
            })
        }
    }
}

enum ChildError {
    Late,
    Stopped,
    Call(io::Error),
}

fn wait(child: &mut Child, deadline: Instant, stop: &AtomicBool) -> Result<Said, ChildError> {
    let mut stdout = Stream::new(child.stdout.take());
    let mut stderr = Stream::new(child.stderr.take());
    loop {
        // Checked before reading: output written before the end is read below.
        let ended = child.try_wait().map_err(ChildError::Call)?;
        let patience = if ended.is_some() { Duration::ZERO } else { LOOK };
        let more = read_ready(&mut stdout, &mut stderr, patience).map_err(ChildError::Call)?;
        match ended {
            // A descendant may hold its streams open: the available output has been read.
            Some(status) if !more => {
                return Ok(Said { status, stdout: stdout.text(), stderr: stderr.text() });
            }
            _ if stop.load(Ordering::Relaxed) => return Err(ChildError::Stopped),
            _ if Instant::now() >= deadline => return Err(ChildError::Late),
            _ => {}
        }
    }
}

/// Kill the group and reap its leader, whose id is not reused before that.
fn kill(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

struct Stream<R> {
    pipe: Option<R>,
    kept: Vec<u8>,
}

impl<R: Read + AsFd> Stream<R> {
    fn new(pipe: Option<R>) -> Self {
        Self { pipe, kept: Vec::new() }
    }

    /// Read once from a pipe that is ready.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut bytes = [0; 8192];
        match pipe.read(&mut bytes) {
            Ok(0) => self.pipe = None,
            Ok(len) => {
                let room = KEPT_BYTES - self.kept.len();
                self.kept.extend_from_slice(&bytes[..len.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// Wait for input and read it; false if there was none.
fn read_ready<A: Read + AsFd, B: Read + AsFd>(
    first: &mut Stream<A>,
    second: &mut Stream<B>,
    patience: Duration,
) -> io::Result<bool> {
    if first.pipe.is_none() && second.pipe.is_none() {
        thread::sleep(patience.min(LOOK_AT_END));
        return Ok(false);
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    let (ready_first, ready_second) = {
        let mut fds = Vec::with_capacity(2);
        fds.extend(first.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        fds.extend(second.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            // The caller checks whether this was a stop.
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let ready_first = first.pipe.is_some() && ready.next() == Some(true);
        (ready_first, second.pipe.is_some() && ready.next() == Some(true))
    };
    if ready_first {
        first.read()?;
    }
    if ready_second {
        second.read()?;
    }
    Ok(ready_first || ready_second)
}
