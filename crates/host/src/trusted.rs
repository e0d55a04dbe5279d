//! Files and directories that no other user could write or exchange, opened step by step and used by descriptor.
//!
//! A path is followed from the root of the filesystem. Every directory on it must belong to this user or to root, and
//! only they may write to it. In a directory with the sticky bit others may write, since they cannot exchange files that
//! are not theirs. A symbolic link is followed if it belongs to this user or to root. Nothing is made below a refused
//! step. A group whose only member is the user counts as the user.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::accounts;
use crate::kernel_files;

/// The number of links that the kernel follows in one path (path_resolution(7)).
const MOST_LINKS: usize = 40;
const STICKY: u32 = 0o1000;

/// Reason that a file or directory is not used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum Refusal {
    #[error("{call} {}: {source}", path.display())]
    Call { call: &'static str, path: PathBuf, source: io::Error },
    #[error("{} belongs to user {owner}, not to user {user}", path.display())]
    OtherOwner { path: PathBuf, owner: u32, user: u32 },
    #[error("{} can be written by others", path.display())]
    Writable { path: PathBuf },
    #[error("{} is open to others and contains other files than pagewise's: close it with chmod 700", path.display())]
    Open { path: PathBuf },
    #[error("{} is a link", path.display())]
    Link { path: PathBuf },
    #[error("{} is not a regular file", path.display())]
    NotRegular { path: PathBuf },
    #[error("{} has {links} names, one of which may be another user's", path.display())]
    Names { path: PathBuf, links: u64 },
    #[error("{} was exchanged while it was opened", path.display())]
    Exchanged { path: PathBuf },
}

impl Refusal {
    fn call(call: &'static str, path: &Path, errno: Errno) -> Self {
        Refusal::Call { call, path: path.to_path_buf(), source: errno.into() }
    }

    /// True if there is nothing of this name.
    pub fn is_missing(&self) -> bool {
        matches!(self, Refusal::Call { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A directory of this user that no other user can write to or exchange.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

/// Requirement on the last step of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Owned by the user, and not writable by others.
    Own,
    /// Its content cannot be exchanged.
    Parent,
}

impl Directory {
    /// Open the directory at `path`, which must belong to this user.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        walk(path, false, Last::Own)
    }

    /// The same; missing parts of the path are made so that only this user can enter them.
    pub fn make(path: &Path) -> Result<Self, Refusal> {
        walk(path, true, Last::Own)
    }

    /// Open a directory of the user in this one.
    pub fn below(&self, name: &str) -> Result<Self, Refusal> {
        let path = self.path.join(name);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::LOOP => Refusal::Link { path: path.clone() },
            errno => Refusal::call("open", &path, errno),
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| Refusal::call("fstat", &path, errno))?;
        check_own(&stat, &path)?;
        Ok(Self { fd, path })
    }

    /// Its path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path by which this process and its children reach a file in it by the descriptor, whatever has its name by now.
    pub fn through(&self, name: impl AsRef<Path>) -> PathBuf {
        let descriptor = self.fd.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id())).join(name)
    }

    /// Open a file in it that belongs to the user: not a link, with a single name, and writable by no other user.
    pub fn file(&self, name: &str, flags: OFlags) -> Result<File, Refusal> {
        let path = self.path.join(name);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd =
            rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR).map_err(
                |errno| match errno {
                    Errno::LOOP => Refusal::Link { path: path.clone() },
                    errno => Refusal::call("open", &path, errno),
                },
            )?;
        let file = File::from(fd);
        check_file(&file, &path)?;
        Ok(file)
    }

    /// Names of its entries, in order.
    pub fn names(&self) -> Result<Vec<OsString>, Refusal> {
        let failed = |errno| Refusal::call("read", &self.path, errno);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).map_err(failed)? {
            let name = OsString::from_vec(entry.map_err(failed)?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Sync its entries to the device, so that a file made in it survives a power cut.
    pub fn sync(&self) -> Result<(), Refusal> {
        match rustix::fs::fsync(&self.fd) {
            // Filesystems in memory and some network filesystems have nothing to write.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(Refusal::call("fsync", &self.path, errno)),
        }
    }

    /// Keep others from entering. The mode of a directory with entries other than `ours` is not changed: it is refused
    /// if others can enter it.
    pub fn close_to_others(&self, ours: &[&str]) -> Result<(), Refusal> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|errno| Refusal::call("fstat", &self.path, errno))?;
        if stat.st_mode & 0o077 == 0 {
            return Ok(());
        }
        if !self.names()?.iter().all(|name| ours.iter().any(|known| name == known)) {
            return Err(Refusal::Open { path: self.path.clone() });
        }
        rustix::fs::fchmod(&self.fd, Mode::RWXU).map_err(|errno| Refusal::call("chmod", &self.path, errno))
    }

    /// Its identity: device and inode.
    pub fn key(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok((stat.st_dev, stat.st_ino))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Check that no other user could have written an open file, or have put another in its place at `path`.
pub fn check(file: &File, path: &Path) -> Result<(), Refusal> {
    check_file(file, path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = walk(parent, false, Last::Parent)?;
    let exchanged = || Refusal::Exchanged { path: path.to_path_buf() };
    let name = path.file_name().ok_or_else(exchanged)?;
    let found = rustix::fs::statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| Refusal::call("stat", path, errno))?;
    let open = rustix::fs::fstat(file).map_err(|errno| Refusal::call("fstat", path, errno))?;
    if (found.st_dev, found.st_ino) == (open.st_dev, open.st_ino) { Ok(()) } else { Err(exchanged()) }
}

/// By descriptor: a regular file of this user, with a single name, that no other user may write.
fn check_file(file: &File, path: &Path) -> Result<(), Refusal> {
    let stat = rustix::fs::fstat(file).map_err(|errno| Refusal::call("fstat", path, errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::NotRegular { path: path.to_path_buf() });
    }
    check_own(&stat, path)?;
    // Its type in Stat differs by architecture.
    let metadata = file.metadata().map_err(|source| Refusal::Call {
        call: "fstat",
        path: path.to_path_buf(),
        source,
    })?;
    match metadata.nlink() {
        0 | 1 => Ok(()),
        links => Err(Refusal::Names { path: path.to_path_buf(), links }),
    }
}

fn check_own(stat: &Stat, path: &Path) -> Result<(), Refusal> {
    let (owner, user) = (stat.st_uid, geteuid().as_raw());
    if owner != user {
        return Err(Refusal::OtherOwner { path: path.to_path_buf(), owner, user });
    }
    if is_writable_by_others(stat) {
        return Err(Refusal::Writable { path: path.to_path_buf() });
    }
    Ok(())
}

/// Check that only this user and root can exchange the content of a directory.
fn check_parent(stat: &Stat, path: &Path) -> Result<(), Refusal> {
    check_owner_on_the_way(stat, path)?;
    if is_writable_by_others(stat) && stat.st_mode & STICKY == 0 {
        return Err(Refusal::Writable { path: path.to_path_buf() });
    }
    Ok(())
}

fn check_owner_on_the_way(stat: &Stat, path: &Path) -> Result<(), Refusal> {
    let (owner, user) = (stat.st_uid, geteuid().as_raw());
    if owner == user || owner == 0 || is_outside(owner) {
        return Ok(());
    }
    Err(Refusal::OtherOwner { path: path.to_path_buf(), owner, user })
}

/// In a user namespace, all users outside of it, including root, appear as one user, who has no process in it
/// (user_namespaces(7)).
fn is_outside(owner: u32) -> bool {
    let overflow = kernel_files::number("/proc/sys/kernel/overflowuid").unwrap_or(65_534_u32);
    let map = kernel_files::text("/proc/self/uid_map").unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    owner == overflow && !map.is_empty() && !whole
}

fn is_writable_by_others(stat: &Stat) -> bool {
    stat.st_mode & 0o002 != 0
        || stat.st_mode & 0o020 != 0 && !accounts::is_private_group(stat.st_gid, stat.st_uid)
}

fn walk(path: &Path, make: bool, last: Last) -> Result<Directory, Refusal> {
    let whole = std::path::absolute(path).map_err(|source| Refusal::Call {
        call: "open",
        path: path.to_path_buf(),
        source,
    })?;
    let mut pending = steps(&whole);
    let mut at = PathStep::root()?;
    let mut links = 0;
    while let Some(name) = pending.pop_front() {
        check_parent(&at.stat, &at.path)?;
        let next = match at.step(&name) {
            Err(refusal) if make && refusal.is_missing() => {
                match rustix::fs::mkdirat(&at.fd, &name, Mode::RWXU) {
                    Ok(()) => {
                        // Files written in it later are lost in a power cut unless the directory itself was synced.
                        let _ = reopened(&at.fd).map(|fd| rustix::fs::fsync(&fd));
                        at.step(&name)?
                    }
                    Err(Errno::EXIST) => at.step(&name)?,
                    Err(errno) => return Err(Refusal::call("mkdir", &at.path.join(&name), errno)),
                }
            }
            other => other?,
        };
        match FileType::from_raw_mode(next.stat.st_mode) {
            FileType::Directory => at = next,
            FileType::Symlink => {
                links += 1;
                // The last step names a directory itself: a link of that name was made on purpose by someone.
                if (pending.is_empty() && last == Last::Own) || links > MOST_LINKS {
                    return Err(Refusal::Link { path: next.path });
                }
                check_owner_on_the_way(&next.stat, &next.path)?;
                let target = rustix::fs::readlinkat(&next.fd, "", Vec::new())
                    .map_err(|errno| Refusal::call("readlink", &next.path, errno))?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    at = PathStep::root()?;
                }
                for step in steps(&target).into_iter().rev() {
                    pending.push_front(step);
                }
            }
            _ => return Err(Refusal::call("open", &next.path, Errno::NOTDIR)),
        }
    }
    match last {
        Last::Own => check_own(&at.stat, &at.path)?,
        Last::Parent => check_parent(&at.stat, &at.path)?,
    }
    let fd = reopened(&at.fd).map_err(|errno| Refusal::call("open", &whole, errno))?;
    Ok(Directory { fd, path: whole })
}

/// The same directory, opened for reading.
fn reopened(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(fd, ".", OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// The names in a path, including `..`.
fn steps(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

/// A step of the path.
struct PathStep {
    fd: OwnedFd,
    stat: Stat,
    path: PathBuf,
}

impl PathStep {
    fn root() -> Result<Self, Refusal> {
        Self::open(rustix::fs::CWD, OsStr::new("/"), PathBuf::from("/"))
    }

    fn step(&self, name: &OsStr) -> Result<Self, Refusal> {
        let mut path = self.path.clone();
        if name == ".." {
            path.pop();
        } else {
            path.push(name);
        }
        Self::open(self.fd.as_fd(), name, path)
    }

    fn open(at: BorrowedFd<'_>, name: &OsStr, path: PathBuf) -> Result<Self, Refusal> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(at, name, flags, Mode::empty())
            .map_err(|errno| Refusal::call("open", &path, errno))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| Refusal::call("fstat", &path, errno))?;
        Ok(Self { fd, stat, path })
    }
}

#[cfg(test)]
mod tests;
