//! Directories of groups: the processes in them, and their removal.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::Ours;
use super::error::GroupError;
use crate::kernel_files::{self, CallError, write};

/// Time that killed processes may take to exit.
pub(super) const GONE_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// The processes of a group. A process of another PID namespace is listed as 0 and left out.
pub(super) fn processes(group: &Path) -> Result<Vec<u32>, GroupError> {
    let text = kernel_files::read(&group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect())
}

/// Kill the processes of a group, and wait until it is empty.
pub(super) fn kill(group: &Path) -> Result<(), GroupError> {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let processes = processes(group)?;
        if processes.is_empty() {
            return Ok(());
        }
        if processes.contains(&std::process::id()) || Instant::now() > deadline {
            return Err(GroupError::InUse { path: group.to_path_buf(), processes });
        }
        // cgroup.kill (v2, Linux 5.14) also kills processes that fork at the same time; otherwise
        // the kill is repeated.
        if write(&group.join("cgroup.kill"), "1").is_err() {
            for pid in processes {
                if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                    // A process that has ended in the meantime is fine.
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Remove the directory of a group; one whose last process has just died is busy for a moment.
pub(super) fn remove_directory(path: &Path, deadline: Instant) -> Result<(), GroupError> {
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                if Instant::now() >= deadline {
                    return Err(GroupError::InUse { path: path.to_path_buf(), processes: processes(path)? });
                }
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(CallError::at("rmdir", path)(error).into()),
        }
    }
}

/// Undo the leaves below `parent` if no group of ours is left there.
pub(super) fn leave_leaves(parent: &Path) -> Result<(), GroupError> {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CallError::at("open", parent)(error).into()),
    };
    let below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let ours = |path: &&PathBuf, is_wanted: fn(&Ours) -> bool| Ours::of(path).as_ref().is_some_and(is_wanted);
    if below.iter().any(|path| ours(&path, |ours| *ours == Ours::Group)) {
        return Ok(());
    }
    below
        .iter()
        .filter(|path| ours(path, |ours| matches!(ours, Ours::Leaf(_))))
        .try_for_each(|leaf| leave_leaf(leaf))
}

/// Disable the controllers enabled for a leaf, move its processes back, and remove it.
pub(super) fn leave_leaf(leaf: &Path) -> Result<(), GroupError> {
    let (Some(Ours::Leaf(enabled)), Some(parent)) = (Ours::of(leaf), leaf.parent()) else {
        unreachable!("called for leaves of ours only");
    };
    let control = parent.join("cgroup.subtree_control");
    let now = kernel_files::text(&control).unwrap_or_default();
    // Names that are no longer enabled would be refused if the parent lost them too.
    let words: Vec<String> = enabled
        .iter()
        .filter(|name| now.split_whitespace().any(|word| word == name.as_str()))
        .map(|name| format!("-{name}"))
        .collect();
    if !words.is_empty() {
        write(&control, &words.join(" "))?;
    }
    move_processes(leaf, parent)?;
    remove_directory(leaf, Instant::now() + GONE_WITHIN)
}

/// Move all processes of a group of v2 to another.
pub(super) fn move_processes(from: &Path, to: &Path) -> Result<(), GroupError> {
    let target = to.join("cgroup.procs");
    for pid in processes(from)? {
        match write(&target, &pid.to_string()) {
            // The process has ended in the meantime.
            Err(error) if error.is(Errno::SRCH) => {}
            result => result?,
        }
    }
    Ok(())
}
