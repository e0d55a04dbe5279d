//! Files and directories that no other user could write or exchange, opened step by step and used
//! by descriptor.
//!
//! A path is followed from the root of the filesystem. Every directory on it must belong to this
//! user or to root, and only they may write to it. In a directory with the sticky bit others may
//! write, since they cannot exchange files that are not theirs. A symbolic link is followed if it
//! belongs to this user or to root. Nothing is made below a refused step. A group whose only member
//! is the user counts as the user.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
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
    fn call<E: Into<io::Error>>(call: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_path_buf();
        move |error| Refusal::Call { call, path, source: error.into() }
    }

    /// True if there is nothing of this name.
    pub fn is_missing(&self) -> bool {
        matches!(self, Refusal::Call { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A directory of this user that no other user can write to or exchange.
#[derive(Debug)]
pub struct Directory {
    file: File,
    path: PathBuf,
}

impl From<Directory> for OwnedFd {
    fn from(directory: Directory) -> Self {
        directory.file.into()
    }
}

impl Directory {
    /// Open the directory at `path`, which must belong to this user.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        Self::at(path, false)
    }

    /// Open the directory at `path`; missing parts of the path are made so that only this user can
    /// enter them.
    pub fn make(path: &Path) -> Result<Self, Refusal> {
        Self::at(path, true)
    }

    fn at(path: &Path, make: bool) -> Result<Self, Refusal> {
        let last = walk(path, make)?;
        // A link of that name was made on purpose by someone.
        if last.metadata.is_symlink() {
            return Err(Refusal::Link { path: last.path });
        }
        last.check_is_directory()?;
        check_own(&last.metadata, &last.path)?;
        let file = last.reopened().map_err(Refusal::call("open", path))?;
        Ok(Self { file, path: absolute(path)? })
    }

    /// Open a directory of the user in this one.
    pub fn below(&self, name: &str) -> Result<Self, Refusal> {
        let path = self.path.join(name);
        let file = self.open_in(name, OFlags::DIRECTORY | OFlags::RDONLY)?;
        check_own(&metadata(&file, &path)?, &path)?;
        Ok(Self { file, path })
    }

    /// Path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path by which this process and its children reach a file in it by the descriptor, whatever
    /// has its name by now.
    pub fn through(&self, name: impl AsRef<Path>) -> PathBuf {
        let descriptor = self.file.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id())).join(name)
    }

    /// Open a file in it that belongs to the user: not a link, with a single name, and writable by
    /// no other user.
    pub fn file(&self, name: &str, flags: OFlags) -> Result<File, Refusal> {
        let file = self.open_in(name, flags | OFlags::NONBLOCK)?;
        check_file(&file, &self.path.join(name))?;
        Ok(file)
    }

    fn open_in(&self, name: &str, flags: OFlags) -> Result<File, Refusal> {
        let path = self.path.join(name);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.file, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => Ok(fd.into()),
            Err(Errno::LOOP) => Err(Refusal::Link { path }),
            Err(errno) => Err(Refusal::call("open", &path)(errno)),
        }
    }

    /// Names of its entries, in order.
    pub fn names(&self) -> Result<Vec<OsString>, Refusal> {
        let failed = || Refusal::call("read", &self.path);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file).map_err(failed())? {
            let name = OsString::from_vec(entry.map_err(failed())?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Sync its entries to the device, so that a file made in it survives a power cut.
    pub fn sync(&self) -> Result<(), Refusal> {
        match rustix::fs::fsync(&self.file) {
            // Filesystems in memory and some network filesystems have nothing to write.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(Refusal::call("fsync", &self.path)(errno)),
        }
    }

    /// Keep others from entering. The mode of a directory with entries other than `ours` is not
    /// changed: it is refused if others can enter it.
    pub fn close_to_others(&self, ours: &[&str]) -> Result<(), Refusal> {
        if metadata(&self.file, &self.path)?.mode() & 0o077 == 0 {
            return Ok(());
        }
        if !self.names()?.iter().all(|name| ours.iter().any(|known| name == known)) {
            return Err(Refusal::Open { path: self.path.clone() });
        }
        rustix::fs::fchmod(&self.file, Mode::RWXU).map_err(Refusal::call("chmod", &self.path))
    }

    /// Identity: device and inode.
    pub fn key(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Check that no other user could have written an open file, or have put another in its place at
/// `path`.
pub fn check(file: &File, path: &Path) -> Result<(), Refusal> {
    let open = check_file(file, path)?;
    let found = walk(path, false)?.metadata;
    if (found.dev(), found.ino()) == (open.dev(), open.ino()) {
        Ok(())
    } else {
        Err(Refusal::Exchanged { path: path.to_path_buf() })
    }
}

/// By descriptor: a regular file of this user, with a single name, that no other user may write.
fn check_file(file: &File, path: &Path) -> Result<Metadata, Refusal> {
    let metadata = metadata(file, path)?;
    if !metadata.is_file() {
        return Err(Refusal::NotRegular { path: path.to_path_buf() });
    }
    check_own(&metadata, path)?;
    match metadata.nlink() {
        0 | 1 => Ok(metadata),
        links => Err(Refusal::Names { path: path.to_path_buf(), links }),
    }
}

fn check_own(metadata: &Metadata, path: &Path) -> Result<(), Refusal> {
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user {
        return Err(Refusal::OtherOwner { path: path.to_path_buf(), owner, user });
    }
    if is_writable_by_others(metadata) {
        return Err(Refusal::Writable { path: path.to_path_buf() });
    }
    Ok(())
}

/// Check that only this user and root can exchange the content of a directory.
fn check_parent(metadata: &Metadata, path: &Path) -> Result<(), Refusal> {
    check_owner_on_the_way(metadata, path)?;
    if is_writable_by_others(metadata) && metadata.mode() & STICKY == 0 {
        return Err(Refusal::Writable { path: path.to_path_buf() });
    }
    Ok(())
}

fn check_owner_on_the_way(metadata: &Metadata, path: &Path) -> Result<(), Refusal> {
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner == user || owner == 0 || is_outside(owner) {
        return Ok(());
    }
    Err(Refusal::OtherOwner { path: path.to_path_buf(), owner, user })
}

/// In a user namespace, all users outside of it, including root, appear as one user, who has no
/// process in it (user_namespaces(7)).
fn is_outside(owner: u32) -> bool {
    let overflow = kernel_files::number("/proc/sys/kernel/overflowuid").unwrap_or(65_534_u32);
    let map = kernel_files::text("/proc/self/uid_map").unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    owner == overflow && !map.is_empty() && !whole
}

fn is_writable_by_others(metadata: &Metadata) -> bool {
    let mode = metadata.mode();
    mode & 0o002 != 0 || mode & 0o020 != 0 && !accounts::is_private_group(metadata.gid(), metadata.uid())
}

fn metadata(file: &File, path: &Path) -> Result<Metadata, Refusal> {
    file.metadata().map_err(Refusal::call("fstat", path))
}

fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    std::path::absolute(path).map_err(Refusal::call("open", path))
}

/// Follow a path to its last step, which is not examined: it may be a link, or another user's.
/// openat2(2) would open the path in one call, but reports neither owners nor modes of its steps,
/// and either refuses every link or follows any.
fn walk(path: &Path, make: bool) -> Result<PathStep, Refusal> {
    let mut at = PathStep::open(CWD, OsStr::new("/"), PathBuf::from("/"))?;
    let mut pending = steps(&absolute(path)?);
    let mut links = 0;
    while let Some(name) = pending.pop_front() {
        at.check_is_directory()?;
        check_parent(&at.metadata, &at.path)?;
        let mut next = at.step(&name);
        if make && next.as_ref().is_err_and(Refusal::is_missing) {
            match rustix::fs::mkdirat(&at.file, &name, Mode::RWXU) {
                // Files written in it later are lost in a power cut unless the directory itself was
                // synced.
                Ok(()) => drop(at.reopened().map(rustix::fs::fsync)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(Refusal::call("mkdir", &at.path.join(&name))(errno)),
            }
            next = at.step(&name);
        }
        let next = next?;
        if !next.metadata.is_symlink() || pending.is_empty() {
            at = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(Refusal::Link { path: next.path });
        }
        check_owner_on_the_way(&next.metadata, &next.path)?;
        let target = rustix::fs::readlinkat(&next.file, "", Vec::new())
            .map_err(Refusal::call("readlink", &next.path))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        for step in steps(&target).into_iter().rev() {
            pending.push_front(step);
        }
    }
    Ok(at)
}

/// The names in a path, including `..`, and `/` if it begins at the root.
fn steps(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter(|component| *component != Component::CurDir);
    names.map(|component| component.as_os_str().to_os_string()).collect()
}

/// A step of the path, held by a descriptor.
struct PathStep {
    file: File,
    metadata: Metadata,
    path: PathBuf,
}

impl PathStep {
    fn step(&self, name: &OsStr) -> Result<Self, Refusal> {
        let mut path = self.path.clone();
        if name == ".." {
            path.pop();
        } else {
            path.push(name);
        }
        Self::open(self.file.as_fd(), name, path)
    }

    fn open(at: BorrowedFd<'_>, name: &OsStr, path: PathBuf) -> Result<Self, Refusal> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(at, name, flags, Mode::empty()).map_err(Refusal::call("open", &path))?;
        let file = File::from(fd);
        Ok(Self { metadata: metadata(&file, &path)?, file, path })
    }

    fn check_is_directory(&self) -> Result<(), Refusal> {
        if self.metadata.is_dir() { Ok(()) } else { Err(Refusal::call("open", &self.path)(Errno::NOTDIR)) }
    }

    /// The directory opened for reading, which a step itself is not.
    fn reopened(&self) -> Result<File, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.file, ".", flags, Mode::empty()).map(File::from)
    }
}

#[cfg(test)]
mod tests;
