//! Removal of groups: those of a run that ends, and those of one that was killed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use rustix::fs::FsWord;

use super::directories::{GONE_WITHIN, kill, leave_leaves, remove_directory};
use super::error::GroupError;
use super::group::empty;
use super::{Ours, Version};

// linux/magic.h
const CGROUP_SUPER_MAGIC: FsWord = 0x0027_e0eb;
const CGROUP2_SUPER_MAGIC: FsWord = 0x6367_7270;

/// Remove the directories named by [`Control::group_paths`](super::Control::group_paths) after the
/// run that made them has died. Return true if there was anything to remove.
///
/// Only a directory of a cgroup filesystem whose name is ours is touched. Processes in a group are
/// killed; processes in a leaf are moved back.
pub fn sweep(path: &Path) -> io::Result<bool> {
    let Some(ours) = Ours::of(path) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is not a group of ours", path.display()),
        ));
    };
    // A symbolic link is not followed: a group is not a link.
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(not_ours(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    let version = match rustix::fs::statfs(path)?.f_type {
        CGROUP_SUPER_MAGIC => Version::V1,
        CGROUP2_SUPER_MAGIC => Version::V2,
        _ => return Err(not_ours(path)),
    };
    let swept = match ours {
        Ours::Leaf(_) => path.parent().map_or(Ok(()), leave_leaves),
        Ours::Group => sweep_group(version, path),
    };
    swept.map(|()| true).map_err(io::Error::other)
}

/// True if a missing group has been removed: the remaining part of its path is in a cgroup
/// filesystem. Otherwise that filesystem is not mounted here, and the group may still exist.
pub fn is_gone(path: &Path) -> bool {
    let nearest = path.ancestors().find(|path| path.exists());
    nearest.and_then(|nearest| rustix::fs::statfs(nearest).ok()).is_some_and(|found| {
        let kinds: [FsWord; 2] = [CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC];
        kinds.contains(&found.f_type)
    })
}

fn not_ours(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a cgroup", path.display()))
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
