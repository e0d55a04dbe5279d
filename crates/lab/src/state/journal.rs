//! The journal: a line for each change that must be undone after the run, written before the change
//! is made.
//!
//! The line of a file is on the device before the file is made, since both may be found after a
//! power cut. A cgroup does not outlive the boot, so its line need not be. A line also has the
//! machine and the boot in which it was written, and for a file the directory and filesystem. A
//! removed file can therefore be distinguished from one that is out of reach at the moment. An
//! unreadable line is set aside and does not prevent a run.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pagewise_host::steps::{RunStep, reached};
use pagewise_host::trusted::Directory;
use pagewise_host::{boot, cache, cgroup};
use pagewise_model::groups;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::{DATASET_PREFIX, OutOfReach, Swept, Undone, processes, unusable};

pub const NAME: &str = "journal";
/// The journal while it is rewritten.
pub const NEW: &str = "journal.new";
/// Lines that could not be parsed.
pub const ASIDE: &str = "journal.broken";
/// Maximum number of paths shown for one reason.
const SHOWN: usize = 4;

/// A change that must be undone after the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "made", rename_all = "kebab-case")]
pub enum JournalEntry {
    File {
        path: PathBuf,
        /// The directory that contains it.
        #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
        parent: Option<Whereabouts>,
    },
    Group {
        path: PathBuf,
    },
    /// Workers and their descendants, identified by a variable in their environment.
    Processes {
        mark: String,
    },
}

/// Identity of a directory, to distinguish it from a later one with its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// f_fsid of statvfs(3): on most filesystems it is the same after a remount. 0: it has none.
    filesystem: u64,
    device: u64,
    inode: u64,
    /// True if the filesystem's content is lost at boot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    in_memory: bool,
}

impl Whereabouts {
    fn of(directory: &Path) -> io::Result<Self> {
        // Not opened for reading: a directory in which files can be made need not allow that.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(directory, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        let filesystem = rustix::fs::fstatvfs(&file)?.f_fsid;
        let in_memory = cache::in_memory(&file).is_some();
        Ok(Self { filesystem, device: metadata.dev(), inode: metadata.ino(), in_memory })
    }

    fn shares_filesystem(&self, other: &Self) -> bool {
        self.filesystem == other.filesystem && (self.filesystem != 0 || self.device == other.device)
    }
}

/// A line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    entry: JournalEntry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
}

impl JournalEntry {
    /// The entry of a file that is about to be made.
    pub fn file(path: &Path) -> Result<Self> {
        let parent = path.parent().context("a file is in a directory")?;
        let parent =
            Whereabouts::of(parent).with_context(|| format!("{} cannot be examined", parent.display()))?;
        Ok(JournalEntry::File { path: path.to_path_buf(), parent: Some(parent) })
    }

    /// Name in messages.
    fn shown(&self) -> PathBuf {
        match self {
            JournalEntry::File { path, .. } | JournalEntry::Group { path } => path.clone(),
            JournalEntry::Processes { .. } => PathBuf::from("a process of a worker"),
        }
    }
}

/// Reason that a change was not undone.
enum Remains {
    /// A call failed.
    Failed(io::Error),
    /// The file is out of reach.
    Away(Away),
}

/// Location of a file that is out of reach.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Away {
    Unmounted,
    Moved,
    NoCgroups,
    Machine(String),
}

impl Away {
    fn sentence(&self, paths: &[PathBuf]) -> String {
        let (count, plural, remain) = match paths.len() {
            1 => (1, "", "remains"),
            more => (more, "s", "remain"),
        };
        let what = match self {
            Away::Unmounted | Away::Moved => "file",
            Away::NoCgroups => "cgroup",
            Away::Machine(_) => "trace",
        };
        let location = match self {
            Away::Unmounted => "on an unmounted filesystem".to_string(),
            Away::Moved => "in a directory that was moved or removed".to_string(),
            Away::NoCgroups => "of a hierarchy that is not mounted".to_string(),
            Away::Machine(name) => format!("on another machine ({name})"),
        };
        let shown: Vec<String> = paths.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
        let more = if paths.len() > SHOWN { ", …" } else { "" };
        let hint = "if it is gone for good, forget it with pagewise clean --forget";
        format!("{count} {what}{plural} {location} {remain}: {}{more} ({hint})", shown.join(", "))
    }
}

/// The journal of a state directory, whose lock is held.
pub struct Journal {
    directory: Directory,
    file: File,
    boot: Option<String>,
    host: String,
}

impl Journal {
    /// Open it, or make it.
    pub fn open(directory: Directory) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::APPEND;
        let file = match directory.file(NAME, flags) {
            Err(refusal) if refusal.is_missing() => {
                let file = directory.file(NAME, flags | OFlags::CREATE).with_context(unusable)?;
                directory.sync().with_context(unusable)?;
                file
            }
            found => found.with_context(unusable)?,
        };
        Ok(Self { directory, file, boot: boot::boot(), host: boot::machine() })
    }

    /// Add lines, all or none.
    pub fn write(&mut self, entries: &[JournalEntry]) -> Result<()> {
        let cannot = || "the journal of the run cannot be written";
        let mut text = String::new();
        for entry in entries {
            let line = Line { entry: entry.clone(), host: Some(self.host.clone()), boot: self.boot.clone() };
            text.push_str(&serde_json::to_string(&line)?);
            text.push('\n');
        }
        let before = self.file.metadata().with_context(cannot)?.len();
        let outlives = entries.iter().any(|entry| matches!(entry, JournalEntry::File { .. }));
        let written = self.file.write_all(text.as_bytes());
        if let Err(error) = written.and_then(|()| if outlives { self.file.sync_data() } else { Ok(()) }) {
            // A partial line would spoil the next one.
            let _ = self.file.set_len(before);
            return Err(error).with_context(cannot);
        }
        reached(RunStep::JournalWritten);
        Ok(())
    }

    /// Undo everything that the journal names, and keep the entries that could not be undone.
    pub fn sweep(&mut self, out_of_reach: OutOfReach) -> Result<Swept> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .context("the journal of the run cannot be read")?;
        // A torn line was not followed by the change that it announces.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut swept = Swept::default();
        let (mut remaining, mut broken): (Vec<&[u8]>, Vec<&[u8]>) = Default::default();
        let mut away: Vec<(Away, Vec<PathBuf>)> = Vec::new();
        // The last one first, as later files may be inside earlier directories.
        let lines: Vec<&[u8]> = bytes[..whole].split_inclusive(|byte| *byte == b'\n').collect();
        for line in lines.into_iter().rev() {
            let Ok(parsed) = serde_json::from_slice::<Line>(line) else {
                broken.push(line);
                continue;
            };
            match self.undo(&parsed) {
                Ok(done) => swept.undone.extend(done),
                Err(Remains::Failed(error)) => {
                    swept.left.push(format!("{} cannot be undone: {error}", parsed.entry.shown().display()));
                    remaining.push(line);
                }
                Err(Remains::Away(location)) => {
                    if out_of_reach == OutOfReach::Kept {
                        remaining.push(line);
                    }
                    groups::add(&mut away, location, parsed.entry.shown());
                }
            }
        }
        match out_of_reach {
            OutOfReach::Kept => {
                swept.left.extend(away.iter().map(|(location, paths)| location.sentence(paths)))
            }
            OutOfReach::Forgotten => {
                let paths = away.iter().flat_map(|(_, paths)| paths);
                swept.notes.extend(paths.map(|path| format!("forgot {}", path.display())));
            }
        }
        broken.reverse();
        match self.set_aside(&broken) {
            Ok(note) => swept.notes.extend(note),
            Err(error) => {
                swept.left.push(format!(
                    "{} lines of the journal can be neither read nor set aside: {error:#}",
                    broken.len()
                ));
                remaining.extend(broken.into_iter().rev());
            }
        }
        remaining.reverse();
        if remaining.concat() != bytes {
            self.rewrite(&remaining.concat()).context("the journal of the run cannot be written")?;
        }
        Ok(swept)
    }

    /// Append unreadable lines to a file next to the journal, and report that.
    fn set_aside(&self, lines: &[&[u8]]) -> Result<Option<String>> {
        if lines.is_empty() {
            return Ok(None);
        }
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let mut file = self.directory.file(ASIDE, flags)?;
        file.write_all(&lines.concat()).and_then(|()| file.sync_data())?;
        let path = self.directory.path().join(ASIDE);
        let count = lines.len();
        let shown = path.display();
        Ok(Some(format!(
            "{count} broken line{} of the journal of earlier runs moved to {shown}: files named there may be left",
            if count == 1 { "" } else { "s" }
        )))
    }

    /// Replace the whole content by `text`, completely or not at all.
    fn rewrite(&mut self, text: &[u8]) -> Result<()> {
        if text.is_empty() {
            self.file.set_len(0)?;
            return Ok(self.file.sync_data()?);
        }
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::TRUNC;
        let mut new = self.directory.file(NEW, flags)?;
        new.write_all(text).and_then(|()| new.sync_data())?;
        rustix::fs::renameat(&self.directory, NEW, &self.directory, NAME)?;
        self.directory.sync()?;
        self.file = new;
        Ok(())
    }

    /// Undo one change; nothing if it is already undone or was not ours.
    fn undo(&self, line: &Line) -> Result<Vec<Undone>, Remains> {
        // A line without them was written by an earlier version, on this machine.
        if let Some(host) = line.host.as_ref().filter(|host| **host != self.host) {
            return Err(Remains::Away(Away::Machine(host.clone())));
        }
        let is_of_this_boot = line.boot.is_none() || line.boot == self.boot;
        match &line.entry {
            JournalEntry::File { path, parent } => {
                remove(path, parent.as_ref(), is_of_this_boot).map(|removed| removed.into_iter().collect())
            }
            JournalEntry::Group { .. } | JournalEntry::Processes { .. } if !is_of_this_boot => Ok(Vec::new()),
            JournalEntry::Processes { mark } => {
                Ok(processes::kill_marked(mark).into_iter().map(Undone::Ended).collect())
            }
            JournalEntry::Group { path } => match cgroup::sweep(path) {
                Ok(true) => Ok(vec![Undone::Removed(path.clone())]),
                Ok(false) if cgroup::is_gone(path) => Ok(Vec::new()),
                Ok(false) => Err(Remains::Away(Away::NoCgroups)),
                // It is not a group, or not one of ours.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(Vec::new()),
                Err(error) => Err(Remains::Failed(error)),
            },
        }
    }
}

fn remove(path: &Path, then: Option<&Whereabouts>, is_of_this_boot: bool) -> Result<Option<Undone>, Remains> {
    let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DATASET_PREFIX));
    let Some(parent) = path.parent().filter(|_| ours) else { return Ok(None) };
    match std::fs::remove_file(path) {
        Ok(()) => return Ok(Some(Undone::Removed(path.to_path_buf()))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(Remains::Failed(error)),
    }
    let now = Whereabouts::of(parent);
    match (then, now) {
        // It does not exist anywhere any more.
        (Some(then), _) if then.in_memory && !is_of_this_boot => Ok(None),
        (Some(then), Ok(now)) if then.shares_filesystem(&now) && then.inode == now.inode => Ok(None),
        (None, Ok(_)) => Ok(None),
        (Some(then), _) => {
            let nearest = parent.ancestors().find_map(|path| Whereabouts::of(path).ok());
            let is_mounted = nearest.is_some_and(|nearest| nearest.shares_filesystem(then));
            Err(Remains::Away(if is_mounted { Away::Moved } else { Away::Unmounted }))
        }
        (None, Err(_)) => Err(Remains::Away(Away::Moved)),
    }
}
