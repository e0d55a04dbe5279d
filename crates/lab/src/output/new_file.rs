//! Files that appear when they are complete. Whatever ends the process before, nothing of them has
//! the name of the whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use pagewise_host::{files, scratch};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// A file that is being filled.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    /// Name until then; `None`: it has none.
    part: Option<PathBuf>,
}

impl NewFile {
    /// Begin a file that will be `path`, which must not exist.
    pub fn begin(path: &Path) -> io::Result<Self> {
        // This check only avoids useless work; the name is never taken from an existing file in any
        // case.
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (flags, mode) = (OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
        // Nothing remains of a nameless file, whatever ends the process. Not every filesystem has
        // them (open(2), O_TMPFILE).
        match rustix::fs::open(files::parent(path), flags | OFlags::TMPFILE, mode) {
            Ok(nameless) => Ok(Self { file: nameless.into(), path: path.to_path_buf(), part: None }),
            Err(_) => Self::beside(path),
        }
    }

    /// Begin a file with another name in the directory of `path`.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let part = named_after(path, &format!(".{}.part", std::process::id()))?;
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        Ok(Self { file, path: path.to_path_buf(), part: Some(part) })
    }

    /// The file, to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Give it its name, which nothing else may have.
    pub fn appear(mut self) -> io::Result<()> {
        self.take_name()
    }

    /// Give it its name, or another one if something has that meanwhile: `NAME.2`, `NAME.3`, and so
    /// on. The name that it has then, and why it is another one.
    pub fn appear_or_another(mut self) -> io::Result<(PathBuf, Option<io::Error>)> {
        let wanted = self.path.clone();
        let mut taken = None;
        for number in 2..=MOST_NAMES {
            match self.take_name() {
                Ok(()) => return Ok((self.path.clone(), taken)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(error) => taken = Some(error),
            }
            self.path = named_after(&wanted, &format!(".{number}"))?;
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Not every filesystem, and not every sandbox, takes each of the ways to a name that nothing
    /// else has.
    fn take_name(&mut self) -> io::Result<()> {
        if self.part.is_none() {
            let descriptor = scratch::reopen_path(&self.file);
            match rustix::fs::linkat(CWD, &descriptor, CWD, &self.path, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return Err(Errno::EXIST.into()),
                // A nameless file gets a name of its own first, by a copy.
                Err(_) => self.copy_beside()?,
            }
        }
        let part = self.part.clone().ok_or(io::ErrorKind::Unsupported)?;
        match rustix::fs::renameat_with(CWD, &part, CWD, &self.path, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Errno::EXIST.into()),
            // NFS has no such flag, FAT no second name. What was just made under the name is ours
            // to replace.
            Err(_) => match fs::hard_link(&part, &self.path) {
                Ok(()) => fs::remove_file(&part)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {
                    OpenOptions::new().write(true).create_new(true).open(&self.path)?;
                    fs::rename(&part, &self.path).inspect_err(|_| drop(fs::remove_file(&self.path)))?;
                }
            },
        }
        self.part = None;
        Ok(())
    }

    fn copy_beside(&mut self) -> io::Result<()> {
        let copy = Self::beside(&self.path)?;
        io::copy(&mut File::open(scratch::reopen_path(&self.file))?, &mut copy.file())?;
        *self = copy;
        Ok(())
    }

    /// Give it its name, in the place of what has it; for a file begun [`NewFile::beside`].
    pub fn replace(mut self) -> io::Result<()> {
        let part = self.part.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        fs::rename(part, &self.path)?;
        self.part = None;
        Ok(())
    }
}

/// Names that are tried for a file whose own name is taken.
const MOST_NAMES: u32 = 99;

/// The path with something behind its name.
fn named_after(path: &Path, behind: &str) -> io::Result<PathBuf> {
    let mut name: OsString = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_os_string();
    name.push(behind);
    Ok(path.with_file_name(name))
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = scratch::remove_same(&self.file, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn begun(path: &Path, is_nameless: bool) -> NewFile {
        let new = if is_nameless { NewFile::begin(path) } else { NewFile::beside(path) };
        let new = new.expect("a file");
        new.file().write_all(b"new").expect("write");
        new
    }

    #[test]
    fn a_name_that_is_taken_meanwhile_is_left_and_another_one_is_found() {
        for is_nameless in [true, false] {
            let directory = tempfile::tempdir().expect("directory");
            let path = directory.path().join("name");
            let first = begun(&path, is_nameless);
            fs::write(&path, "theirs").expect("write");
            let (named, why) = first.appear_or_another().expect("another name");
            assert_eq!((named, why.is_some()), (directory.path().join("name.2"), true));
            assert_eq!(fs::read(directory.path().join("name.2")).expect("read"), b"new");
            let error = begun(&directory.path().join("name.2"), false).appear().expect_err("it is taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&path).expect("read"), b"theirs");
            assert_eq!(fs::read_dir(directory.path()).expect("list").count(), 2, "nothing else is left");
        }
    }

    #[test]
    fn a_nameless_file_that_cannot_be_linked_is_copied() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("name");
        let mut new = begun(&path, true);
        new.copy_beside().expect("a copy");
        new.appear().expect("its name");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        assert_eq!(fs::read_dir(directory.path()).expect("list").count(), 1);
    }
}
