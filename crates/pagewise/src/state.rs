//! What a run holds while it lives: the lock that keeps a second run away, and the journal of what it made.
//!
//! Both are in one directory of the user's ([`place`]), which is used by descriptor and is closed to others. The kernel
//! releases the lock when the process dies, however it dies; whoever holds the lock next finds in the journal what is left to
//! be removed. A path is written to the journal before the file is made, and its name holds 64 random bits, so a file of
//! that name is ours. So it is with cgroups (a device cap goes with its group). A setting of the machine is noted down for
//! the whole machine ([`pagewise_host::settings::record`]).

mod journal;
mod place;
mod processes;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use pagewise_host::settings::record;
use pagewise_host::toolchain;
use pagewise_host::trusted::Directory;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::output::say;
use journal::{Journal, JournalEntry};

/// Every file that pagewise makes to measure on is named so; a journal line that names anything else is
/// not followed.
const DATASET_PREFIX: &str = ".pagewise-";
const LOCK: &str = "lock";
/// All that is made in a state directory.
const NAMES: [&str; 4] = [LOCK, journal::NAME, journal::NEW, journal::ASIDE];
/// As much is read of what the holder of the lock says of itself.
const MAX_DESCRIPTION_BYTES: u64 = 4096;

/// Something that was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It is gone.
    Removed(PathBuf),
    /// It is as it was.
    Restored(PathBuf, String),
    /// A process is killed.
    Ended(u32),
}

impl fmt::Display for Undone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::Removed(path) => write!(formatter, "removed {}", path.display()),
            Undone::Restored(path, value) => write!(formatter, "set {} back to {value}", path.display()),
            Undone::Ended(pid) => write!(formatter, "ended the process {pid}"),
        }
    }
}

/// What came of a sweep.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// What was undone.
    pub undone: Vec<Undone>,
    /// What could not be, each with why: it stays in the journal, and the next start tries again.
    pub left: Vec<String>,
    /// What else is to be known: nothing will come of it.
    pub notes: Vec<String>,
}

impl Swept {
    /// This, and what came of another one.
    pub fn and(mut self, other: Swept) -> Self {
        self.undone.extend(other.undone);
        self.left.extend(other.left);
        self.notes.extend(other.notes);
        self
    }

    /// Tells the user at the start of a command what an earlier one had left.
    pub fn tell(&self) {
        for undone in &self.undone {
            say(format_args!("{undone}, which an earlier run had left"));
        }
        for left in &self.left {
            say(format_args!("warning: {left}; an earlier run had left it"));
        }
        for note in &self.notes {
            say(format_args!("warning: {note}"));
        }
    }
}

/// What becomes of what is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfReach {
    /// It is told, and stays in the journal.
    Kept,
    /// The user says that it is gone for good.
    Forgotten,
}

/// The right to run, and the journal that comes with it.
pub struct State {
    /// Held for its lock.
    _lock: File,
    journal: Journal,
}

/// Whether another run lives.
pub enum RunClaim {
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
    /// Claims the right to run for a process that describes itself, and sweeps: what a dead run with the same state
    /// directory left, and what belongs to the machine.
    pub fn claim(description: &str) -> Result<RunClaim> {
        Ok(match Self::claim_in(place::usable()?, description, OutOfReach::Kept)? {
            RunClaim::Granted { state, swept } => {
                RunClaim::Granted { state, swept: swept.and(sweep_machine()) }
            }
            refused => refused,
        })
    }

    /// Claims every state directory that a run of this user could have had, one after the other.
    pub fn claim_all(description: &str, out_of_reach: OutOfReach) -> Result<Vec<RunClaim>> {
        let places = place::existing()?.into_iter();
        places.map(|directory| Self::claim_in(directory, description, out_of_reach)).collect()
    }

    fn claim_in(directory: Directory, description: &str, out_of_reach: OutOfReach) -> Result<RunClaim> {
        directory
            .close_to_others(&[LOCK, journal::NAME, journal::NEW, journal::ASIDE])
            .with_context(unusable)?;
        let mut lock = directory.file(LOCK, OFlags::RDWR | OFlags::CREATE).with_context(unusable)?;
        if !try_lock(&lock).map_err(|error| no_lock(&directory, &error))? {
            let mut holder = String::new();
            let _ = lock.take(MAX_DESCRIPTION_BYTES).read_to_string(&mut holder);
            let holder = holder.trim().to_string();
            return Ok(RunClaim::Refused {
                holder: if holder.is_empty() { "it is starting".into() } else { holder },
            });
        }
        let mut journal = Journal::open(directory)?;
        let swept = journal.sweep(out_of_reach)?;
        lock.set_len(0)
            .and_then(|()| lock.write_all(format!("{description}\n").as_bytes()))
            .context("the lock of the run cannot be written")?;
        Ok(RunClaim::Granted { state: State { _lock: lock, journal }, swept })
    }

    /// A path for a file that this run may make in `directory`; if the run dies, the next one removes it.
    pub fn reserve(&mut self, directory: &Path, random: u64) -> Result<PathBuf> {
        let path = directory.join(format!("{DATASET_PREFIX}{random:016x}.dataset"));
        self.journal.write(&[JournalEntry::file(&path)?])?;
        Ok(path)
    }

    /// Announces cgroups that this run is about to make.
    pub fn announce_groups(&mut self, paths: &[PathBuf]) -> Result<()> {
        let entries: Vec<JournalEntry> =
            paths.iter().map(|path| JournalEntry::Group { path: path.clone() }).collect();
        self.journal.write(&entries)
    }

    /// Announces processes: a variable that they have in their environment, and what it holds.
    pub fn announce_processes(&mut self, random: u64) -> Result<(&'static str, String)> {
        let mark = format!("{random:016x}");
        self.journal.write(&[JournalEntry::Processes { mark: mark.clone() }])?;
        Ok((processes::VARIABLE, mark))
    }

    /// Undoes what this run did.
    pub fn sweep(&mut self) -> Result<Swept> {
        self.journal.sweep(OutOfReach::Kept)
    }
}

/// Undoes what dead runs left that is in no state directory: settings of the machine, and half-built workers.
pub fn sweep_machine() -> Swept {
    let mut swept = Swept::default();
    for restored in record::restore_all() {
        match restored {
            Ok((path, value)) => swept.undone.push(Undone::Restored(path, value)),
            Err(sentence) => swept.left.push(sentence),
        }
    }
    swept.undone.extend(toolchain::sweep().into_iter().map(Undone::Removed));
    swept
}

/// False: somebody else has it.
fn try_lock(lock: &File) -> io::Result<bool> {
    loop {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn unusable() -> &'static str {
    "the state of a run cannot be kept"
}

fn no_lock(directory: &Directory, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "whether another run is measuring cannot be known: flock {}: {error}; PAGEWISE_STATE_DIR names another directory",
        directory.path().join(LOCK).display()
    )
}

#[cfg(test)]
mod tests;
