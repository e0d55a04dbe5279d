//! Removal of groups: those of a run that ends, and those of one that was killed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::FsWord;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::group::{GroupError, empty, write};
use super::{Ours, Version};
use crate::kernel_files;

// linux/magic.h
const CGROUP_SUPER_MAGIC: FsWord = 0x0027_e0eb;
const CGROUP2_SUPER_MAGIC: FsWord = 0x6367_7270;

/// Time that killed processes may take to exit.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// Remove the directories named by [`Control::group_paths`](super::Control::group_paths) after the run that made them
/// has died. Return true if there was anything to remove.
///
/// Only a directory of a cgroup filesystem whose name is ours is touched. Processes in a group are killed; processes in
/// a leaf are moved back.
pub fn sweep(path: &Path) -> io::Result<bool> {
    let Some(ours) = Ours::of(path) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no group of ours", path.display()),
        ));
    };
    // A symbolic link is not followed: a group is not a link.
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(foreign(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    let version = match rustix::fs::statfs(path)?.f_type {
        CGROUP_SUPER_MAGIC => Version::V1,
        CGROUP2_SUPER_MAGIC => Version::V2,
        _ => return Err(foreign(path)),
    };
    let swept = match ours {
        Ours::Leaf(_) => path.parent().map_or(Ok(()), leave_leaves),
        Ours::Group => sweep_group(version, path),
    };
    swept.map(|()| true).map_err(io::Error::other)
}

/// True if a missing group has been removed: the remaining part of its path is in a cgroup filesystem. Otherwise that
/// filesystem is not mounted here, and the group may still exist.
pub fn is_gone(path: &Path) -> bool {
    let nearest = path.ancestors().find(|path| path.exists());
    nearest.and_then(|nearest| rustix::fs::statfs(nearest).ok()).is_some_and(|found| {
        let kinds: [FsWord; 2] = [CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC];
        kinds.contains(&found.f_type)
    })
}

fn foreign(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no cgroup", path.display()))
}

fn sweep_group(version: Version, path: &Path) -> Result<(), GroupError> {
    kill(path)?;
    // Also for a group without the memory controller, which has nothing to reclaim.
    let _ = empty(version, path);
    remove_directory(path, Instant::now() + GONE_WITHIN)?;
    match path.parent() {
        Some(parent) if version == Version::V2 => leave_leaves(parent),
        _ => Ok(()),
    }
}

/// The processes of a group. A process of another PID namespace is listed as 0 and left out.
pub(super) fn processes(group: &Path) -> Result<Vec<u32>, GroupError> {
    let path = group.join("cgroup.procs");
    let text = fs::read_to_string(&path).map_err(GroupError::io("read", path))?;
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
        // cgroup.kill (v2, Linux 5.14) also kills processes that fork at the same time; otherwise the kill is repeated.
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
            Err(error) => return Err(GroupError::io("rmdir", path)(error)),
        }
    }
}

/// Undo the leaves below `parent` if no group of ours is left there.
pub(super) fn leave_leaves(parent: &Path) -> Result<(), GroupError> {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(GroupError::io("open", parent)(error)),
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
            Err(GroupError::Io { error, .. }) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {
            }
            result => result?,
        }
    }
    Ok(())
}
