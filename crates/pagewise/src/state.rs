//! What a run holds while it lives: the lock that keeps a second run away, and the journal of what it made.
//!
//! Both are in one directory for each user (`PAGEWISE_STATE_DIR`, `$XDG_STATE_HOME/pagewise`,
//! `~/.local/state/pagewise`, or one under `/tmp`). The kernel releases the lock when the process dies, however it dies;
//! whoever holds the lock next finds in the journal what is left to be removed. A path is written to the
//! journal before the file is made, and its name holds 64 random bits, so a file of that name is ours. So it is with
//! cgroups (a device cap goes with its group), and a setting of the machine is written down with the value that it had.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pagewise_host::{cgroup, readahead};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

/// Every file that pagewise makes to measure on is named so; a journal line that names anything else is
/// not followed.
const DATASET_PREFIX: &str = ".pagewise-";

/// Something that must be gone after the run.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "made", rename_all = "kebab-case")]
enum Entry {
    File {
        path: PathBuf,
    },
    Group {
        path: PathBuf,
    },
    /// A setting of readahead, what it was before and what it was set to, in bytes.
    Setting {
        path: PathBuf,
        before: u64,
        set: u64,
    },
}

impl Entry {
    fn path(&self) -> &Path {
        match self {
            Entry::File { path } | Entry::Group { path } | Entry::Setting { path, .. } => path,
        }
    }
}

/// Something that was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It is gone.
    Removed(PathBuf),
    /// It is as it was.
    Restored(PathBuf, u64),
}

impl fmt::Display for Undone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::Removed(path) => write!(formatter, "removed {}", path.display()),
            Undone::Restored(path, value) => write!(formatter, "set {} back to {value}", path.display()),
        }
    }
}

/// What came of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// What was undone.
    pub undone: Vec<Undone>,
    /// What could not be, each with why: it stays in the journal, and the next start tries again.
    pub left: Vec<String>,
}

/// The right to run, and the journal that comes with it.
pub struct State {
    /// Held for its lock.
    _lock: File,
    journal: File,
}

/// Whether another run lives.
pub enum Claim {
    /// None: the right is ours, and what a dead run left has been removed.
    Granted {
        /// The right.
        state: State,
        /// What came of its journal.
        swept: Swept,
    },
    /// One does; it says this of itself.
    Refused {
        /// Its process, its start, its directory.
        holder: String,
    },
}

impl State {
    /// Claims the right to run for a process that describes itself, and sweeps.
    pub fn claim(description: &str) -> Result<Claim> {
        Self::claim_in(&directory()?, description)
    }

    fn claim_in(directory: &Path, description: &str) -> Result<Claim> {
        let open = |name: &str| {
            let path = directory.join(name);
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .with_context(|| format!("{} cannot be opened", path.display()))
        };
        let mut lock = open("lock")?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            let _ = lock.read_to_string(&mut holder);
            let holder = holder.trim().to_string();
            return Ok(Claim::Refused {
                holder: if holder.is_empty() { "it is starting".into() } else { holder },
            });
        }
        let mut journal = open("journal")?;
        let swept = sweep(&mut journal)?;
        lock.set_len(0)
            .and_then(|()| lock.write_all(format!("{description}\n").as_bytes()))
            .context("the lock of the run cannot be written")?;
        Ok(Claim::Granted { state: State { _lock: lock, journal }, swept })
    }

    /// A path for a file that this run may make in `directory`; if the run dies, the next one removes it.
    pub fn reserve(&mut self, directory: &Path, random: u64) -> Result<PathBuf> {
        let path = directory.join(format!("{DATASET_PREFIX}{random:016x}.dataset"));
        self.write(&Entry::File { path: path.clone() })?;
        Ok(path)
    }

    /// Announces cgroups that this run is about to make.
    pub fn announce_groups(&mut self, paths: &[PathBuf]) -> Result<()> {
        paths.iter().try_for_each(|path| self.write(&Entry::Group { path: path.clone() }))
    }

    /// Announces that a setting of the machine is about to be changed.
    pub fn announce_setting(&mut self, path: &Path, before: u64, set: u64) -> Result<()> {
        self.write(&Entry::Setting { path: path.to_path_buf(), before, set })
    }

    fn write(&mut self, entry: &Entry) -> Result<()> {
        let line = serde_json::to_string(entry)?;
        self.journal
            .write_all(format!("{line}\n").as_bytes())
            .context("the journal of the run cannot be written")
    }

    /// Undoes what this run did.
    pub fn sweep(&mut self) -> Result<Swept> {
        sweep(&mut self.journal)
    }
}

/// Undoes everything that the journal names, then empties it. What cannot be undone stays in the journal.
fn sweep(journal: &mut File) -> Result<Swept> {
    let mut text = String::new();
    journal
        .seek(SeekFrom::Start(0))
        .and_then(|_| journal.read_to_string(&mut text))
        .context("the journal of the run cannot be read")?;
    let mut swept = Swept::default();
    let mut remaining = Vec::new();
    // The last change first, so that a setting that was changed twice becomes what it was at the beginning.
    for line in text.lines().rev() {
        // A torn line was never followed by what it was to announce.
        let Ok(entry) = serde_json::from_str::<Entry>(line) else { continue };
        match undo(&entry) {
            Ok(done) => swept.undone.extend(done),
            Err(error) => {
                swept.left.push(format!("{} cannot be undone: {error}", entry.path().display()));
                remaining.push(line);
            }
        }
    }
    let remaining: String = remaining.into_iter().rev().map(|line| format!("{line}\n")).collect();
    journal
        .set_len(0)
        .and_then(|()| journal.seek(SeekFrom::Start(0)))
        .and_then(|_| journal.write_all(remaining.as_bytes()))
        .context("the journal of the run cannot be written")?;
    Ok(swept)
}

/// Undoes one change; nothing where it is undone already or was never ours.
fn undo(entry: &Entry) -> io::Result<Option<Undone>> {
    match entry {
        Entry::File { path } => {
            let ours =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DATASET_PREFIX));
            if !ours {
                return Ok(None);
            }
            match std::fs::remove_file(path) {
                Ok(()) => Ok(Some(Undone::Removed(path.clone()))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        }
        Entry::Group { path } => match cgroup::sweep(path) {
            Ok(removed) => Ok(removed.then(|| Undone::Removed(path.clone()))),
            // It is no group, or none of ours.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            Err(error) => Err(error),
        },
        Entry::Setting { path, before, set } => {
            if !readahead::is_setting(path) {
                return Ok(None);
            }
            // What somebody else has set since then is theirs, and what is back is done.
            let now = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
            if before == set || now.and_then(|kib| kib.checked_mul(1024)) != Some(*set) {
                return Ok(None);
            }
            let restored = readahead::restore(path, *before).map_err(io::Error::other)?;
            Ok(restored.then(|| Undone::Restored(path.clone(), *before)))
        }
    }
}

/// The user's state directory, made if need be.
fn directory() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let candidates = [
        variable("PAGEWISE_STATE_DIR"),
        variable("XDG_STATE_HOME").map(|base| base.join("pagewise")),
        variable("HOME").map(|home| home.join(".local/state/pagewise")),
    ];
    if let Some(named) = &candidates[0] {
        return prepare(named)
            .with_context(|| format!("PAGEWISE_STATE_DIR {} cannot be used", named.display()));
    }
    let user = rustix::process::geteuid().as_raw();
    let fallback = std::env::temp_dir().join(format!("pagewise-{user}"));
    for candidate in candidates.into_iter().flatten() {
        if let Ok(directory) = prepare(&candidate) {
            return Ok(directory);
        }
    }
    prepare(&fallback).with_context(|| format!("no directory for the state of a run: {}", fallback.display()))
}

/// Makes a directory that only this user can enter, or takes the one that is there if it is the user's own.
fn prepare(path: &Path) -> Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        bail!("{} belongs to somebody else", path.display());
    }
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
    Ok(path.to_path_buf())
}

#[cfg(test)]
mod tests;
