//! State of a live run: the lock that excludes a second run, and the journal of its changes.
//!
//! Both are in one directory of the user for each host and boot ([`directories`]), since hosts may
//! share a home and its locks may hold on one of them only. It is used by descriptor and is closed
//! to others. The kernel releases the lock when the process dies, however it dies; the next holder
//! of the lock finds in the journal what is left to remove. A path is written to the journal before
//! the file is made, and its name holds 64 random bits, so a file of that name is ours. The same
//! applies to cgroups (a device cap disappears with its group). A changed setting is recorded for
//! the whole machine ([`pagewise_host::settings::record`]).

pub mod directories;
mod journal;
mod processes;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use pagewise_host::file_lock::try_lock;
use pagewise_host::settings::record;
use pagewise_host::steps::{RunStep, reached};
use pagewise_host::trusted::Directory;
use rustix::fs::OFlags;

use crate::output::say;
use crate::worker_door;
use directories::StateDirectories;
use journal::{Journal, JournalEntry};

/// Prefix of every file that pagewise makes to measure on; a journal line that names any other file
/// is not followed.
const DATASET_PREFIX: &str = ".pagewise-";
const LOCK: &str = "lock";
/// All files in a state directory.
const NAMES: [&str; 4] = [LOCK, journal::NAME, journal::NEW, journal::ASIDE];
/// Maximum length of the lock holder's description of itself that is read.
const MAX_DESCRIPTION_BYTES: u64 = 4096;

/// A change that was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// A file or group was removed.
    Removed(PathBuf),
    /// A setting was restored.
    Restored(PathBuf, String),
    /// A process was killed.
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

/// Result of a sweep.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Changes that were undone.
    pub undone: Vec<Undone>,
    /// Changes that could not be undone, each with the reason: they stay in the journal, and the
    /// next start tries again.
    pub left: Vec<String>,
    /// Other notes, without consequences.
    pub notes: Vec<String>,
}

impl Swept {
    /// Combine this with the result of another sweep.
    pub fn and(mut self, other: Swept) -> Self {
        self.undone.extend(other.undone);
        self.left.extend(other.left);
        self.notes.extend(other.notes);
        self
    }

    /// Report at the start of a command the remains of an earlier one.
    pub fn say(&self) {
        for undone in &self.undone {
            say(format_args!("{undone}, left by an earlier run"));
        }
        for left in &self.left {
            say(format_args!("warning: {left}: left by an earlier run"));
        }
        for note in &self.notes {
            say(format_args!("warning: {note}"));
        }
    }
}

/// Treatment of files that are out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfReach {
    /// Files out of reach are reported, and stay in the journal.
    Kept,
    /// The user declares that they are gone for good.
    Forgotten,
}

/// The right to run, with its journal.
pub struct State {
    /// Held for its lock.
    _lock: File,
    journal: Journal,
}

/// End of the description of a process that holds the right to sweep, and gives it back at once.
pub const CLEANING: &str = "cleaning";

/// Time for which a claim waits for one that sweeps, and the time between two tries.
const PASSING: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(20);

const LOCK_UNWRITTEN: &str = "the lock of the run cannot be written";

/// Result of a claim.
pub enum RunClaim {
    /// No other run is live: the right is ours, and the remains of a dead run have been removed.
    Granted {
        /// The right.
        state: State,
        /// Result of the sweep of its journal.
        swept: Swept,
    },
    /// Another run is live; this is its description of itself.
    Refused {
        /// Process, start and directory.
        holder: String,
    },
}

impl State {
    /// Claim the right to run for a process with this description, and sweep the remains of dead
    /// runs with the same state directory, in this boot and earlier ones, and those that belong to
    /// the machine.
    pub fn claim(description: &str) -> Result<RunClaim> {
        let StateDirectories { directory, earlier } = directories::usable()?;
        Ok(match Self::claim_in(directory, description, OutOfReach::Kept)? {
            RunClaim::Granted { state, mut swept } => {
                for directory in earlier {
                    swept = swept.and(Self::sweep_earlier(directory, description)?);
                }
                RunClaim::Granted { state, swept: swept.and(sweep_machine()) }
            }
            refused => refused,
        })
    }

    /// Undo what a run of an earlier boot left, and remove its state if nothing remains.
    fn sweep_earlier(directory: Directory, description: &str) -> Result<Swept> {
        let path = directory.path().to_path_buf();
        match Self::claim_in(directory, description, OutOfReach::Kept)? {
            RunClaim::Granted { state, swept } => {
                if swept.left.is_empty() {
                    // Names of others keep the directory; the lock is held until it is gone.
                    NAMES.iter().for_each(|name| drop(std::fs::remove_file(path.join(name))));
                    let _ = std::fs::remove_dir(&path);
                }
                drop(state);
                Ok(swept)
            }
            // Hosts of one name share the directory.
            RunClaim::Refused { .. } => Ok(Swept::default()),
        }
    }

    /// Claim every state directory that a run of this user could have used, one after the other.
    pub fn claim_all(description: &str, out_of_reach: OutOfReach) -> Result<Vec<RunClaim>> {
        let all = directories::existing()?.into_iter();
        all.map(|directory| Self::claim_in(directory, description, out_of_reach)).collect()
    }

    fn claim_in(directory: Directory, description: &str, out_of_reach: OutOfReach) -> Result<RunClaim> {
        directory
            .close_to_others(&[LOCK, journal::NAME, journal::NEW, journal::ASIDE])
            .with_context(unusable)?;
        let mut lock = directory.file(LOCK, OFlags::RDWR | OFlags::CREATE).with_context(unusable)?;
        let asked = Instant::now();
        while !try_lock(&lock).map_err(|error| no_lock(&directory, &error))? {
            let mut holder = String::new();
            let _ = (&lock).seek(SeekFrom::Start(0));
            let _ = (&lock).take(MAX_DESCRIPTION_BYTES).read_to_string(&mut holder);
            let holder = holder.trim().to_string();
            let passing = holder.is_empty() || holder.ends_with(CLEANING);
            if !passing || asked.elapsed() >= PASSING {
                let holder = if holder.is_empty() { "it is starting".into() } else { holder };
                return Ok(RunClaim::Refused { holder });
            }
            std::thread::sleep(AGAIN);
        }
        // Whoever had it before is not the one who sweeps.
        lock.set_len(0).and_then(|()| lock.seek(SeekFrom::Start(0))).context(LOCK_UNWRITTEN)?;
        let mut journal = Journal::open(directory)?;
        let swept = journal.sweep(out_of_reach)?;
        lock.write_all(format!("{description}\n").as_bytes()).context(LOCK_UNWRITTEN)?;
        reached(RunStep::Claimed);
        Ok(RunClaim::Granted { state: State { _lock: lock, journal }, swept })
    }

    /// Reserve a path for a file that this run may make in `directory`; if the run dies, the next
    /// one removes it.
    pub fn reserve(&mut self, directory: &Path, random: u64) -> Result<PathBuf> {
        let path = directory.join(format!("{DATASET_PREFIX}{random:016x}.dataset"));
        self.journal.write(&[JournalEntry::file(&path)?])?;
        Ok(path)
    }

    /// Announce cgroups that this run is about to make.
    pub fn announce_groups(&mut self, paths: &[PathBuf]) -> Result<()> {
        let entries: Vec<JournalEntry> =
            paths.iter().map(|path| JournalEntry::Group { path: path.clone() }).collect();
        self.journal.write(&entries)
    }

    /// Announce processes: return a variable for their environment, and its value.
    pub fn announce_processes(&mut self, random: u64) -> Result<(&'static str, String)> {
        let mark = format!("{random:016x}");
        self.journal.write(&[JournalEntry::Processes { mark: mark.clone() }])?;
        Ok((processes::VARIABLE, mark))
    }

    /// Undo the changes of this run.
    pub fn sweep(&mut self) -> Result<Swept> {
        self.journal.sweep(OutOfReach::Kept)
    }
}

/// Undo changes of dead runs that are in no state directory: settings of the machine, and
/// half-built workers.
pub fn sweep_machine() -> Swept {
    let mut swept = Swept::default();
    for restored in record::restore_all() {
        match restored {
            Ok((path, value)) => swept.undone.push(Undone::Restored(path, value)),
            Err(sentence) => swept.left.push(sentence),
        }
    }
    let of_builds = worker_door::offered().iter().flat_map(|door| (door.sweep)());
    swept.undone.extend(of_builds.map(Undone::Removed));
    swept
}

fn unusable() -> &'static str {
    "the state of a run cannot be kept"
}

fn no_lock(directory: &Directory, error: &io::Error) -> anyhow::Error {
    anyhow!(
        "it is unknown whether another run is measuring: flock {}: {error}; name another directory with PAGEWISE_STATE_DIR",
        directory.path().join(LOCK).display()
    )
}

#[cfg(test)]
pub(crate) mod tests;
