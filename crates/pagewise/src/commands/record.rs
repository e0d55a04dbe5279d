//! `pagewise record`: what calls a program makes to read its files, as a trace that methods can walk.

pub mod arguments;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pagewise_analysis::inspect::{Accessed, Accounts, Inspection};
use pagewise_analysis::record::Recording;
use pagewise_host::cgroup::{Control, Group};
use pagewise_host::{cache, files, process};
use pagewise_model::plan::FileIdentity;
use pagewise_model::trace::{self, FORMAT, ProgramCost, TraceHeader, TraceTrailer};
use pagewise_report::record as text;
use pagewise_sys::Spawn;

use super::begin::{claim, fresh_seed};
use super::watched::{Needed, Started, command_of};
use crate::exit::Exit;
use crate::output::new_file::NewFile;
use crate::output::{self, say};
use crate::state::State;
use arguments::RecordArguments;

/// `pagewise record`.
pub fn record(arguments: &RecordArguments) -> Result<Exit> {
    let path = arguments.out.clone().unwrap_or_else(|| usual_name(&arguments.command));
    output::can_appear(&path)?;
    let mut command = command_of(&arguments.command)?;
    let limited = Limited::begin(arguments)?;
    let cold = arguments.cold.iter().map(|path| evict(path)).collect::<Result<Vec<FileIdentity>>>()?;
    if let Some(group) = limited.as_ref().and_then(|limited| limited.group.as_ref()) {
        Spawn { join: group.entry()?, ..Spawn::default() }.apply(&mut command);
    }
    let mut out = TraceFileWriter::begin(path, &header(arguments))?;
    let own = || process::totals(std::process::id()).device_read_bytes;
    let (device_before, began) = (own(), Instant::now());
    let mut started = Started::begin(command, &arguments.command, Needed::Calls)?;
    let mut recording = Recording::new(started.watched().began_ns());
    let mut keep = |accounts: &Accounts, access: Accessed| {
        if let Some(block) = recording.add(accounts.identity(access.file), access) {
            out.write(&block);
        }
    };
    started.follow(|| true, &mut keep)?;
    // The children of a process are added to its own figures when it has waited for them.
    let device_read_bytes = own().zip(device_before).map(|(after, before)| after.saturating_sub(before));
    let wall_ns = began.elapsed().as_nanos() as u64;
    let (watched, rest) = started.into_parts();
    let anonymous_bytes = watched.anonymous_bytes();
    let mut seen = None;
    watched.finish(&mut keep, |inspection| {
        seen = Some(inspection.clone());
        Ok(())
    })?;
    let inspection: Inspection = seen.context("the watch has no end")?;
    if let Some(block) = recording.block() {
        out.write(&block);
    }
    let ended = inspection.subject.ended.clone().unwrap_or_default();
    let cost = ProgramCost { wall_ns, device_read_bytes, anonymous_bytes, ended };
    let identify = |path: &str| files::identify(Path::new(path)).ok().map(|(_, identity)| identity);
    let resident_before = |file: &FileIdentity| {
        cold.iter().any(|cold| (cold.device, cold.inode) == (file.device, file.inode)).then_some(0)
    };
    let trailer = recording.trailer(&inspection, cost, identify, resident_before);
    let kept = out.end(&trailer)?;
    Ok(match rest.wait()? {
        Exit::Program(0) if !kept => Exit::FellShort,
        status => status,
    })
}

/// The name of the program, and `.trace`, in this directory.
fn usual_name(command: &[OsString]) -> PathBuf {
    let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let mut name = program.to_os_string();
    name.push(".trace");
    name.into()
}

fn header(arguments: &RecordArguments) -> TraceHeader {
    let directory = std::env::current_dir().map(|path| path.to_string_lossy().into_owned());
    TraceHeader {
        pagewise_trace: FORMAT,
        pagewise: env!("CARGO_PKG_VERSION").to_string(),
        page_bytes: rustix::param::page_size() as u64,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        command: arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        directory: directory.unwrap_or_default(),
        memory_limit: arguments.memory,
    }
}

/// Drop a file from the page cache, and verify it.
fn evict(path: &Path) -> Result<FileIdentity> {
    let (file, identity) = files::identify(path)?;
    let evicted = cache::evict(&file, identity.file_bytes.0)?;
    if evicted.after.resident_bytes.is_none() {
        bail!("whether {} is in the page cache is unknown: {}", path.display(), evicted.after.source);
    }
    Ok(identity)
}

/// The right to limit memory, and the group that does.
struct Limited {
    group: Option<Group>,
    /// Held until the group is gone.
    _state: State,
}

impl Limited {
    /// `None` without a limit.
    fn begin(arguments: &RecordArguments) -> Result<Option<Self>> {
        let Some(limit) = arguments.memory else { return Ok(None) };
        let (mut state, _) = claim()?;
        let (control, name) = (Control::detect(), fresh_seed());
        state.announce_groups(&control.group_paths(name, true, false))?;
        let group = Group::create(&control, name, Some(limit.0), false)?;
        Ok(Some(Self { group: Some(group), _state: state }))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.group.take().map(Group::remove) {
            say(format_args!(
                "warning: {error}; pagewise clean removes the group once its processes have ended"
            ));
        }
    }
}

/// A trace that is written as it grows; an error ends it, and not the program.
struct TraceFileWriter {
    path: PathBuf,
    /// `None`: it could not be written any more.
    new: Option<NewFile>,
    written: u64,
}

impl TraceFileWriter {
    fn begin(path: PathBuf, header: &TraceHeader) -> Result<Self> {
        let new = NewFile::begin(&path).map_err(|error| output::unwritten(&path, &error))?;
        let line = trace::header(header)?;
        new.file().write_all(&line).map_err(|error| output::unwritten(&path, &error))?;
        Ok(Self { path, new: Some(new), written: line.len() as u64 })
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(mut file) = self.new.as_ref().map(NewFile::file) else { return };
        match file.write_all(bytes) {
            Ok(()) => self.written += bytes.len() as u64,
            Err(error) => {
                let error = output::unwritten(&self.path, &error);
                say(format_args!("the recording stops, the command goes on: {error}"));
                self.new = None;
            }
        }
    }

    /// True if the trace is there.
    fn end(mut self, trailer: &TraceTrailer) -> Result<bool> {
        self.write(&trace::trailer(trailer)?);
        let Self { path, new, written } = self;
        let Some(new) = new else { return Ok(false) };
        new.appear().map_err(|error| output::unwritten(&path, &error))?;
        for line in text::lines(trailer, &path, written) {
            say(line);
        }
        Ok(true)
    }
}
