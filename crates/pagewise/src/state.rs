//! What a run holds while it lives: the lock that keeps a second run away, and the journal of what it made.
//!
//! Both are in one directory for each user (`PAGEWISE_STATE_DIR`, `$XDG_STATE_HOME/pagewise`,
//! `~/.local/state/pagewise`, or one under `/tmp`). The kernel releases the lock when the process dies, however it dies;
//! whoever holds the lock next finds in the journal what is left to be removed. A path is written to the
//! journal before the file is made, and its name holds 64 random bits, so a file of that name is ours.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

/// Every file that pagewise makes to measure on is named so; a journal line that names anything else is
/// not followed.
const DATASET_PREFIX: &str = ".pagewise-";

/// Something that must be gone after the run.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "made", rename_all = "kebab-case")]
enum Entry {
    File { path: PathBuf },
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
        /// What was removed.
        swept: Vec<PathBuf>,
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
        let entry = serde_json::to_string(&Entry::File { path: path.clone() })?;
        self.journal
            .write_all(format!("{entry}\n").as_bytes())
            .context("the journal of the run cannot be written")?;
        Ok(path)
    }

    /// Removes what this run made.
    pub fn sweep(&mut self) -> Result<Vec<PathBuf>> {
        sweep(&mut self.journal)
    }
}

/// Removes everything that the journal names, then empties it. What cannot be removed stays in the journal.
fn sweep(journal: &mut File) -> Result<Vec<PathBuf>> {
    let mut text = String::new();
    journal
        .seek(SeekFrom::Start(0))
        .and_then(|_| journal.read_to_string(&mut text))
        .context("the journal of the run cannot be read")?;
    let mut removed = Vec::new();
    let mut remaining = String::new();
    for line in text.lines() {
        // A torn line was never followed by the file that it was to announce.
        let Ok(Entry::File { path }) = serde_json::from_str(line) else { continue };
        let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DATASET_PREFIX));
        if !ours {
            continue;
        }
        match std::fs::remove_file(&path) {
            Ok(()) => removed.push(path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => {
                remaining.push_str(line);
                remaining.push('\n');
            }
        }
    }
    journal
        .set_len(0)
        .and_then(|()| journal.seek(SeekFrom::Start(0)))
        .and_then(|_| journal.write_all(remaining.as_bytes()))
        .context("the journal of the run cannot be written")?;
    Ok(removed)
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
mod tests {
    use super::*;

    fn granted(directory: &Path) -> (State, Vec<PathBuf>) {
        match State::claim_in(directory, "pid 1").expect("claim") {
            Claim::Granted { state, swept } => (state, swept),
            Claim::Refused { holder } => panic!("refused by {holder}"),
        }
    }

    #[test]
    fn a_second_run_is_refused_and_told_of_the_first() {
        let directory = tempfile::tempdir().expect("directory");
        let (_state, _) = granted(directory.path());
        match State::claim_in(directory.path(), "pid 2").expect("claim") {
            Claim::Refused { holder } => assert_eq!(holder, "pid 1"),
            Claim::Granted { .. } => panic!("two runs at once"),
        }
    }

    #[test]
    fn what_a_dead_run_left_is_removed_by_the_next() {
        let directory = tempfile::tempdir().expect("directory");
        let (mut state, _) = granted(directory.path());
        let left = state.reserve(directory.path(), 7).expect("reserve");
        let never_made = state.reserve(directory.path(), 8).expect("reserve");
        std::fs::write(&left, "data").expect("write");
        drop(state);
        let (mut state, swept) = granted(directory.path());
        assert_eq!(swept, std::slice::from_ref(&left));
        assert!(!left.exists() && !never_made.exists());
        assert_eq!(state.sweep().expect("sweep"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_journal_is_not_followed_to_files_of_others() {
        let directory = tempfile::tempdir().expect("directory");
        let precious = directory.path().join("precious");
        std::fs::write(&precious, "data").expect("write");
        let line = serde_json::to_string(&Entry::File { path: precious.clone() }).expect("json");
        std::fs::write(directory.path().join("journal"), format!("{line}\nnonsense\n{{\"made\":"))
            .expect("write");
        let (_, swept) = granted(directory.path());
        assert!(swept.is_empty() && precious.exists());
    }
}
