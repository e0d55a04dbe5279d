//! Files that appear when they are complete. Whatever ends the process before, nothing of them has the name of the whole.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use pagewise_host::scratch;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};

/// A file that is being filled.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    /// Its name until then; `None`: it has none.
    part: Option<PathBuf>,
}

impl NewFile {
    /// Begin a file that will be `path`, which must not exist.
    pub fn begin(path: &Path) -> io::Result<Self> {
        // This check only avoids useless work; the name is never taken from an existing file in any case.
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (flags, mode) = (OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
        // Nothing remains of a nameless file, whatever ends the process. Not every filesystem has them (open(2), O_TMPFILE).
        match rustix::fs::open(parent(path), flags | OFlags::TMPFILE, mode) {
            Ok(nameless) => Ok(Self { file: nameless.into(), path: path.to_path_buf(), part: None }),
            Err(_) => Self::beside(path),
        }
    }

    /// Begin a file with another name in the directory of `path`.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        Ok(Self { file, path: path.to_path_buf(), part: Some(part) })
    }

    /// The file, to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Give it its name, which nothing else may have.
    pub fn appear(self) -> io::Result<()> {
        if self.part.is_some() {
            return self.rename(RenameFlags::NOREPLACE);
        }
        let descriptor = scratch::reopen_path(&self.file);
        Ok(rustix::fs::linkat(CWD, &descriptor, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Give it its name, in the place of what has it; for a file begun [`NewFile::beside`].
    pub fn replace(self) -> io::Result<()> {
        self.rename(RenameFlags::empty())
    }

    fn rename(mut self, flags: RenameFlags) -> io::Result<()> {
        let Some(part) = &self.part else { return Err(io::ErrorKind::Unsupported.into()) };
        rustix::fs::renameat_with(CWD, part, CWD, &self.path, flags)?;
        self.part = None;
        Ok(())
    }
}

/// The directory of a path.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = scratch::remove_same(&self.file, part);
        }
    }
}
