//! The only module that writes to a terminal, a pipe or a file for people.
//!
//! * [`stdout()`], [`stderr()`], [`lines()`], [`file()`] and [`file_again()`] take documents:
//!   results, tables, JSON, CSV, pages;
//! * [`say`] takes one line for stderr: errors, warnings, notes;
//! * [`progress`] overwrites a line on a terminal;
//! * [`confirm`] asks a question on a terminal;
//! * [`help`] is clap's text.
//!
//! Two rules apply to all of it. Characters that a terminal would obey are escaped, wherever they
//! come from. A broken output does not end a run: errors of stderr are ignored, and stdout keeps
//! its first error for [`lost`].

pub mod new_file;
pub mod progress;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, StdinLock, StdoutLock, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use pagewise_host::{files, process};
use pagewise_model::Untrusted;
use pagewise_report::line::Line;
use pagewise_report::printed::{Escape, Printed};
use rustix::fs::{Access, OFlags};
use rustix::io::Errno;
use signal_hook::consts::SIGXFSZ;

use crate::exit::Exit;
use new_file::NewFile;

/// The name of stdin as a run file that is read, and of stdout as a file that is written.
pub const STANDARD_STREAM: &str = "-";

/// Width if that of the terminal is unknown.
const DEFAULT_WIDTH: usize = 140;

/// The first error of stdout.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Text for people that is being written.
pub type TextOutput<'a> = Printed<Box<dyn Write + 'a>>;

fn written_to<'a>(out: impl Write + 'a) -> TextOutput<'a> {
    Printed::new(Box::new(BufWriter::new(out)), Escape::Shown)
}

/// Stdout for documents. Text is written when the writer is dropped or flushed.
pub fn stdout() -> TextOutput<'static> {
    if is_closed() {
        let _ = LOST.set(Errno::BADF.into());
    }
    written_to(Remembered(io::stdout().lock()))
}

/// Take stdout for a file of the program's own: text that goes there from now on goes to stderr.
pub fn take_stdout() -> io::Result<File> {
    let stdout = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(stdout.into())
}

/// True if documents go to a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// True if stdout was closed when this process began: the runtime opens the null device in its
/// place, for reading too, as no shell does.
pub fn is_closed() -> bool {
    let stdout = io::stdout();
    let is_both_ways = rustix::fs::fcntl_getfl(&stdout).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    let devices =
        || Some((rustix::fs::fstat(&stdout).ok()?.st_rdev, rustix::fs::stat("/dev/null").ok()?.st_rdev));
    is_both_ways && devices().is_some_and(|(stdout, null)| stdout == null)
}

/// Stderr for the document of a command whose own output has stdout.
pub fn stderr() -> TextOutput<'static> {
    written_to(io::stderr().lock())
}

/// Print lines, coloured on a terminal.
pub fn lines(lines: &[Line]) -> io::Result<()> {
    stdout().lines(lines, is_coloured())
}

/// Write a document into the file that was named; to stdout for `-`.
pub fn document(path: &Path, write: impl FnOnce(&mut TextOutput<'_>) -> io::Result<()>) -> Result<()> {
    match path == Path::new(STANDARD_STREAM) {
        true => Ok(write(&mut stdout())?),
        false => file(path, write),
    }
}

/// Write a new file that appears when it is complete. An existing one, above all a run file, is
/// never overwritten.
pub fn file(path: &Path, write: impl FnOnce(&mut TextOutput<'_>) -> io::Result<()>) -> Result<()> {
    NewFile::begin(path)
        .and_then(|new| fill(&new, write).and_then(|()| new.appear()))
        .map_err(|error| unwritten(path, &error))
}

/// As [`file()`], for what cannot be had again: if something has the name meanwhile, it gets
/// another one, which is reported.
pub fn file_or_another(path: &Path, write: impl FnOnce(&mut TextOutput<'_>) -> io::Result<()>) -> Result<()> {
    let named = NewFile::begin(path)
        .or_else(|_| NewFile::beside(path))
        .and_then(|new| fill(&new, write).and_then(|()| new.appear_or_another()));
    let (named, other) = named.map_err(|error| unwritten(path, &error))?;
    if let Some(error) = other {
        say(format_args!("it is in {}: {}", named.display(), unwritten(path, &error)));
    }
    Ok(())
}

/// A file size limit becomes the error of a write instead of a silent death. What is ignored stays
/// so, for commands that are started.
pub fn outlive_size_limits() {
    if !process::has_signal(std::process::id(), "SigIgn", SIGXFSZ) {
        // Without it, the limit ends this process as it would have.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
}

/// The sentence about a new file that could not be written. It is the wrong name, unless writing
/// failed that had begun.
pub fn unwritten(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    let sentence = anyhow::anyhow!("{path} cannot be written: {error}");
    match error.kind() {
        io::ErrorKind::AlreadyExists => anyhow::anyhow!("{path} exists: name another file"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Exit::FellShort.because(sentence)
        }
        _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Exit::FellShort.because(sentence),
        _ => sentence,
    }
}

/// Check beforehand that [`file()`] can write to `path`, where what is to be written cannot be had
/// again.
pub fn can_appear(path: &Path) -> Result<()> {
    if std::fs::symlink_metadata(path).is_ok() {
        anyhow::bail!("{} exists: name another file", path.display());
    }
    rustix::fs::access(files::parent(path), Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|errno| anyhow::anyhow!("{} cannot be written: {}", path.display(), io::Error::from(errno)))
}

/// Write a file that appears when it is complete, in the place of an earlier one if that is a plain
/// file that begins with text of ours; any other is left.
pub fn file_again(
    path: &Path,
    is_ours: impl FnOnce(&[u8]) -> bool,
    write: impl FnOnce(&mut TextOutput<'_>) -> io::Result<()>,
) -> Result<()> {
    let is_plain = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if !is_plain || !beginning(path).is_ok_and(|text| is_ours(&text)) {
        return file(path, write);
    }
    NewFile::beside(path)
        .and_then(|new| fill(&new, write).and_then(|()| new.replace()))
        .map_err(|error| unwritten(path, &error))
}

/// The first bytes of a file.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut text)?;
    Ok(text)
}

fn fill(new: &NewFile, write: impl FnOnce(&mut TextOutput<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut file = new.file();
    let mut out = written_to(&mut file);
    write(&mut out).and_then(|()| out.flush())
}

/// Write one line to stderr, whatever the text contains. Errors are ignored.
pub fn say(line: impl Display) {
    let line = format!("{}\n", Untrusted(line));
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Ask a question that is answered with yes or no. `None`: nobody is there to answer, or they do
/// not.
pub fn confirm(question: &str) -> Option<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(io::stderr().lock(), "{} [y/N] ", Untrusted(question));
    let mut answer = String::new();
    stdin.read_line(&mut answer).ok()?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "" | "n" | "no" => Some(false),
        _ => None,
    }
}

/// Print the requested help or version.
pub fn help(asked: &clap::Error) {
    if let Err(error) = asked.print() {
        let _ = LOST.set(error);
    }
}

/// The first error of writing to stdout; the output is incomplete then.
pub fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Stdin and stdout of a worker, which are connected to a supervisor rather than a terminal.
pub fn conversation() -> (StdinLock<'static>, StdoutLock<'static>) {
    (io::stdin().lock(), io::stdout().lock())
}

/// True if stdout shows emphasis: a terminal, and no wish to the contrary (<https://no-color.org>).
pub fn is_coloured() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Width of a table on stdout.
pub fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { DEFAULT_WIDTH } else { columns.clamp(80, 200) }
}

/// Stdout that remembers its first error.
struct Remembered(StdoutLock<'static>);

impl Remembered {
    fn noted<T>(result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            let kept = match error.raw_os_error() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => error.kind().into(),
            };
            let _ = LOST.set(kept);
        }
        result
    }
}

impl Write for Remembered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::noted(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::noted(self.0.flush())
    }
}
