//! A program run to its end: with a time limit, bounded output, and its whole process group killed
//! if it takes longer.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pagewise_sys::child::die_with_parent;
use rustix::process::{Pid, Signal, kill_process_group};

/// Bytes kept of each stream; the rest is read and dropped, so that the program does not block.
const KEPT_BYTES: usize = 64 << 10;
/// Capacity of a pipe (pipe(7)).
const PIPE_BYTES: usize = 64 << 10;
/// Interval of looks at its output, its end and a stop.
const LOOK: Duration = Duration::from_millis(5);
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
    /// Output of a child that succeeded; otherwise its exit state, with the first lines of its
    /// error message.
    pub fn well(self) -> Result<Self, String> {
        if self.status.success() {
            return Ok(self);
        }
        let complaint = first_lines(if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr });
        let status = self.status;
        Err(if complaint.is_empty() { format!("{status}") } else { format!("{status}: {complaint}") })
    }

    /// The rest of the first line that begins with `key`, in either stream.
    pub fn value(&self, key: &str) -> Option<&str> {
        let mut lines = self.stdout.lines().chain(self.stderr.lines());
        let value = lines.find_map(|line| line.trim_start().strip_prefix(key))?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}

/// The first lines that are not empty, as one line.
fn first_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let joined = lines.take(SHOWN_LINES).collect::<Vec<_>>().join("; ");
    joined.chars().filter(|letter| !letter.is_control()).take(SHOWN_CHARACTERS).collect()
}

/// Run `command`, which has its own process group and pipes for its output. It dies with this
/// process, so that it does not write on into a folder that somebody else sweeps. The error is the
/// reason: not started, too slow, stopped.
pub(super) fn run(command: &mut Command, within: Duration, stop: &AtomicBool) -> Result<Said, String> {
    let mut child =
        die_with_parent(command).spawn().map_err(|error| format!("could not be started: {error}"))?;
    let said = wait(&mut child, within, stop);
    if said.is_err() {
        // Its leader's id is not reused before it is reaped.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
    }
    said
}

fn wait(child: &mut Child, within: Duration, stop: &AtomicBool) -> Result<Said, String> {
    let failed = |error: io::Error| format!("could not be waited for: {error}");
    let deadline = Instant::now() + within;
    let mut stdout = Stream::new(child.stdout.take()).map_err(failed)?;
    let mut stderr = Stream::new(child.stderr.take()).map_err(failed)?;
    loop {
        // Checked before reading: output written before the end is read below. A descendant may
        // hold the streams open.
        let ended = child.try_wait().map_err(failed)?;
        stdout.read().and_then(|()| stderr.read()).map_err(failed)?;
        if let Some(status) = ended {
            return Ok(Said { status, stdout: stdout.text(), stderr: stderr.text() });
        }
        if stop.load(Ordering::Relaxed) {
            return Err("was stopped".to_string());
        }
        if Instant::now() >= deadline {
            return Err(format!("did not end within {:.0} s and was killed", within.as_secs_f64()));
        }
        thread::sleep(LOOK);
    }
}

struct Stream<R> {
    pipe: Option<R>,
    kept: Vec<u8>,
}

impl<R: Read + AsFd> Stream<R> {
    fn new(pipe: Option<R>) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { pipe, kept: Vec::new() })
    }

    /// Read what is there: no pipe holds more than the buffer.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut bytes = [0; PIPE_BYTES];
        match pipe.read(&mut bytes) {
            Ok(len) => self.kept.extend_from_slice(&bytes[..len.min(KEPT_BYTES - self.kept.len())]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
