//! `pagewise record`: what calls a program makes to read its files, as a trace that methods can
//! walk.

pub mod arguments;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pagewise_host::cgroup::{self, Control, Group};
use pagewise_host::memory::Memory;
use pagewise_host::{Space, cache, files, process, watch};
use pagewise_lab::begin::{Claimed, claim_within, fresh_seed, stop_flag};
use pagewise_lab::exit::Exit;
use pagewise_lab::output::new_file::NewFile;
use pagewise_lab::output::{self, say};
use pagewise_lab::plan::validate::ensure_within_machine;
use pagewise_lab::state::State;
use pagewise_lab::traced::MAX_TRACE_BYTES;
use pagewise_model::Bytes;
use pagewise_model::inspection::Inspection;
use pagewise_model::plan::FileIdentity;
use pagewise_model::trace::{self, FORMAT, ProgramCost, ResidentPages, TraceHeader, TraceTrailer};
use pagewise_sys::Spawn;

use crate::observed::{Accessed, Accounts};
use crate::recording::{NamedFile, Recording};
use crate::trace_text as text;
use crate::watched::{Needed, Started, command_of, exit_of};
use arguments::RecordArguments;

/// `pagewise record`.
pub fn record(arguments: &RecordArguments) -> Result<Exit> {
    let RecordArguments { command, out, memory, cold, as_is, windows, wait } = arguments;
    ensure!(
        memory.is_none() || as_is.is_empty(),
        "pages that are in the page cache before a command begins are not charged to its memory limit: leave --memory or --as-is out"
    );
    let out = out.clone().unwrap_or_else(|| usual_name(command));
    output::can_appear(&out)?;
    let mut state = None;
    if memory.is_some() {
        let Some(Claimed { state: claimed, .. }) = claim_within(*wait, &*stop_flag()?)? else {
            return Ok(Exit::Interrupted);
        };
        state = Some(claimed);
    }
    let request = Request {
        command,
        memory: *memory,
        cold,
        as_is,
        quiet: false,
        needed: recorded_by(*windows, *memory),
    };
    let recorded = request.record(&out, state.as_mut())?;
    Ok(match exit_of(recorded.status) {
        Exit::Program(0) if recorded.trace.is_none() => Exit::FellShort,
        status => status,
    })
}

/// A command to be recorded.
pub(super) struct Request<'a> {
    /// Words.
    pub(super) command: &'a [OsString],
    /// Memory for the command and its children.
    pub(super) memory: Option<Bytes>,
    /// Files that are dropped from the page cache first.
    pub(super) cold: &'a [PathBuf],
    /// Files whose pages in the page cache are looked at first.
    pub(super) as_is: &'a [PathBuf],
    /// Read and drop what the command prints on stdout.
    pub(super) quiet: bool,
    /// Observations without which it is not run.
    pub(super) needed: Needed,
}

/// A command that was recorded.
pub(super) struct Recorded {
    /// The inspection of the command.
    pub(super) inspection: Inspection,
    /// The trace; `None`: it is lost.
    pub(super) trace: Option<PathBuf>,
    /// The exit status of the command.
    pub(super) status: ExitStatus,
}

impl Request<'_> {
    /// Run the command, and write its trace. A memory limit needs the right to run.
    pub(super) fn record(&self, out: &Path, state: Option<&mut State>) -> Result<Recorded> {
        let mut out = TraceFileWriter::begin(out, &self.header())?;
        let (trailer, inspection, status) = self.run(state, |block| out.write(block))?;
        Ok(Recorded { inspection, trace: out.end(&trailer), status })
    }

    /// Run the command, and hand over the blocks of its accesses; the trailer of its trace, what
    /// was seen, and its status.
    pub(super) fn run(
        &self,
        state: Option<&mut State>,
        mut write: impl FnMut(&[u8]),
    ) -> Result<(TraceTrailer, Inspection, ExitStatus)> {
        let mut command = command_of(self.command)?;
        let limited = match (self.memory, state) {
            (Some(limit), Some(state)) => Some(Limited::begin(limit, state)?),
            _ => None,
        };
        let dropped = self.cold.iter().map(|path| evict(path));
        let mut named = dropped.collect::<Result<Vec<_>>>()?;
        if let Some(group) = limited.as_ref().and_then(|limited| limited.0.as_ref()) {
            Spawn { join: group.entry()?, ..Spawn::default() }.apply(&mut command);
        }
        // Last, as it may change.
        for path in self.as_is {
            let found = look_at(path)?;
            let is_it = |one: &NamedFile| {
                (one.identity.device, one.identity.inode) == (found.identity.device, found.identity.inode)
            };
            ensure!(!named.iter().any(is_it), "{} is named twice", path.display());
            named.push(found);
        }
        let own = || process::totals(std::process::id()).device_read_bytes;
        let device_before = own();
        let mut started = Started::begin(command, self.command, self.needed, self.quiet)?;
        let mut recording = Recording::new(started.watched().began_ns());
        let mut keep = |accounts: &Accounts, access: Accessed| {
            if let Some(block) = recording.add(accounts.identity(access.file), access) {
                write(&block);
            }
        };
        started.follow(|| true, &mut keep)?;
        let wall_ns = watch::now_ns().saturating_sub(started.watched().began_ns());
        // The children of a process are added to its own figures when it has waited for them.
        let device_read_bytes = own().zip(device_before).map(|(after, before)| after.saturating_sub(before));
        let (watched, rest) = started.into_parts();
        let (anonymous_bytes, windows) = (watched.anonymous_bytes(), watched.windows());
        let inspection = watched.inspection(&mut keep)?;
        if let Some(block) = recording.block() {
            write(&block);
        }
        let ended = inspection.subject.ended.clone().unwrap_or_default();
        let cost = ProgramCost { wall_ns, device_read_bytes, anonymous_bytes, ended };
        let identify = |path: &str| files::identify_any(Path::new(path)).ok().map(|(_, identity)| identity);
        let (blocks, trailer) = recording.trailer(&inspection, windows, cost, identify, &named);
        write(&blocks);
        Ok((trailer, inspection, rest.wait()?))
    }

    fn header(&self) -> TraceHeader {
        let directory = std::env::current_dir().map(|path| path.to_string_lossy().into_owned());
        TraceHeader {
            pagewise_trace: FORMAT,
            pagewise: env!("CARGO_PKG_VERSION").to_string(),
            page_bytes: rustix::param::page_size() as u64,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            command: self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            directory: directory.unwrap_or_default(),
            memory_limit: self.memory,
        }
    }
}

/// Needs of a recording: calls, or the touches of mapped pages in windows.
pub(super) fn recorded_by(windows: bool, memory: Option<Bytes>) -> Needed {
    if windows { Needed::Windows(touches_of_window(memory)) } else { Needed::Calls }
}

/// Touches after which a window ends. What a cache holds that is four times as large follows
/// from them.
fn touches_of_window(memory: Option<Bytes>) -> u64 {
    const USUAL: u64 = 2048;
    const LEAST: u64 = 64;
    let pages = memory.map(|memory| memory.0 / rustix::param::page_size() as u64);
    pages.map_or(USUAL, |pages| (pages / 8).clamp(LEAST, USUAL))
}

/// The name of the program, and `.trace`, in this directory.
pub(super) fn usual_name(command: &[OsString]) -> PathBuf {
    let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let mut name = program.to_os_string();
    name.push(".trace");
    name.into()
}

/// Drop a file from the page cache, and verify it.
fn evict(path: &Path) -> Result<NamedFile> {
    let (file, identity) = files::identify_any(path)?;
    if identity.file_bytes == Bytes(0) {
        return named(path, identity, ResidentPages::default());
    }
    let evicted = cache::evict(&file, identity.file_bytes.0)?;
    if evicted.after.resident_bytes.is_none() {
        bail!("whether {} is in the page cache is unknown: {}", path.display(), evicted.after.source);
    }
    named(path, identity, ResidentPages::default())
}

/// Look which pages of a file are in the page cache.
fn look_at(path: &Path) -> Result<NamedFile> {
    let (file, identity) = files::identify_any(path)?;
    let shown = path.display();
    if let Some(filesystem) = cache::in_memory(&file) {
        bail!("{shown} is on {filesystem}, which keeps its files in memory: it has no other state than that");
    }
    match cache::pages::resident_pages(&file, identity.file_bytes.0) {
        Ok(resident) => named(path, identity, resident),
        Err(reason) => bail!("which pages of {shown} are in the page cache is unknown: {reason}"),
    }
}

fn named(path: &Path, identity: FileIdentity, resident: ResidentPages) -> Result<NamedFile> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let shown = path.display();
    let path = path.to_str().with_context(|| format!("the path {shown} is not UTF-8: traces need UTF-8"))?;
    Ok(NamedFile { path: path.to_string(), identity, resident })
}

/// A group that limits memory, and is removed.
pub(super) struct Limited(Option<Group>);

impl Limited {
    /// Make the group; the state remembers it for the case that this process is killed.
    pub(super) fn begin(limit: Bytes, state: &mut State) -> Result<Self> {
        Memory::read().total_bytes.map_or(Ok(()), |total| ensure_within_machine(limit, Bytes(total)))?;
        let (control, name) = (Control::detect(), fresh_seed());
        // What no command can live with is refused as such, wherever.
        let is_enough = limit.0 >= cgroup::LEAST_MEMORY_BYTES;
        if let Some(reason) = control.memory().err().filter(|_| is_enough) {
            return Err(
                Exit::NotMeasurable.because(anyhow!("the memory of a command cannot be limited: {reason}"))
            );
        }
        state.announce_groups(&control.group_paths(name, true, false))?;
        Ok(Self(Some(Group::create(&control, name, Some(limit.0), false)?)))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(Group::remove) {
            say(format_args!(
                "warning: {error}; pagewise clean removes the group once its processes have ended"
            ));
        }
    }
}

/// An error if `more` bytes would leave less than 5 % of the filesystem to others; the recorded
/// program may be one of them.
fn keep_free(file: &File, more: u64) -> io::Result<()> {
    let space = Space::of(file)?;
    match space.is_below(more.saturating_add(space.total_bytes / 20)) {
        true => Err(io::Error::other("less than 5 % of its filesystem would be free")),
        false => Ok(()),
    }
}

/// A trace that is written as it grows; an error ends it, and not the program.
struct TraceFileWriter<'a> {
    path: &'a Path,
    /// `None`: it could not be written any more.
    new: Option<NewFile>,
    /// First line of the trace.
    first: Vec<u8>,
    written: u64,
}

impl<'a> TraceFileWriter<'a> {
    fn begin(path: &'a Path, header: &TraceHeader) -> Result<Self> {
        let new = NewFile::begin(path).map_err(|error| output::unwritten(path, &error))?;
        let line = trace::header(header)?;
        new.file().write_all(&line).map_err(|error| output::unwritten(path, &error))?;
        Ok(Self { path, new: Some(new), written: line.len() as u64, first: line })
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(mut file) = self.new.as_ref().map(NewFile::file) else { return };
        if self.written + bytes.len() as u64 > MAX_TRACE_BYTES {
            let most = Bytes(MAX_TRACE_BYTES);
            say(format_args!("the recording stops, the command goes on: a trace has at most {most}"));
            self.new = None;
            return;
        }
        match keep_free(file, bytes.len() as u64).and_then(|()| file.write_all(bytes)) {
            Ok(()) => self.written += bytes.len() as u64,
            Err(error) => {
                let error = output::unwritten(self.path, &error);
                say(format_args!("the recording stops, the command goes on: {error}"));
                self.new = None;
            }
        }
    }

    /// The path of the trace, if it is there. The command has run by now, so what goes wrong is
    /// reported, and no error.
    fn end(mut self, trailer: &TraceTrailer) -> Option<PathBuf> {
        match trace::trailer(&self.first, trailer) {
            Ok(line) => self.write(&line),
            Err(error) => {
                say(format_args!("the recording is lost: {error}"));
                return None;
            }
        }
        let Self { path, new, written, .. } = self;
        let (path, other) = match new?.appear_or_another() {
            Ok(named) => named,
            Err(error) => {
                say(format_args!("the recording is lost: {}", output::unwritten(path, &error)));
                return None;
            }
        };
        if let Some(error) = other {
            say(format_args!("the trace is {}: {}", path.display(), output::unwritten(self.path, &error)));
        }
        for line in text::lines(trailer, &path, written) {
            say(line);
        }
        Some(path)
    }
}
