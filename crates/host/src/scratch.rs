//! Temporary files without a name, so that even a kill leaves no trace.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Make a file in `directory` that is open for reading and writing and has no name (O_TMPFILE,
/// Linux 3.11). If the filesystem does not support that, it is made with a name and unlinked at
/// once.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => Ok(file.into()),
        // open(2): EOPNOTSUPP from the filesystem; EISDIR and ENOENT from kernels without
        // O_TMPFILE.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
            named_and_unlinked(directory, mode)
        }
        Err(errno) => Err(errno.into()),
    }
}

fn named_and_unlinked(directory: &Path, mode: Mode) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    for attempt in 0..100u32 {
        let path = directory.join(format!(".pagewise-probe-{}-{attempt}", std::process::id()));
        match rustix::fs::open(&path, flags, mode) {
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file.into());
            }
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// A path that opens the same file anew, with its own flags and readahead state, even if it has no
/// name.
pub fn reopen_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Unlink `path` if it is still the name of `file`; it may have become another file's, or nobody's.
pub fn remove_same(file: &File, path: &Path) -> io::Result<()> {
    let key = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let ours = key(file.metadata()?);
    match fs::symlink_metadata(path).map(key) {
        Ok(found) if found == ours => fs::remove_file(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn nothing_is_left_in_the_directory() {
        let directory = tempfile::tempdir().expect("directory");
        let file = nameless_file(directory.path()).expect("file");
        file.write_all_at(b"bytes", 0).expect("write");
        let again = File::open(reopen_path(&file)).expect("reopen");
        let mut bytes = [0; 5];
        again.read_exact_at(&mut bytes, 0).expect("read");
        assert_eq!(&bytes, b"bytes");
        let named = named_and_unlinked(directory.path(), Mode::RUSR | Mode::WUSR).expect("file");
        named.write_all_at(b"bytes", 0).expect("write");
        assert_eq!(std::fs::read_dir(directory.path()).expect("list").count(), 0);
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let errno = nameless_file(Path::new("/nowhere")).expect_err("missing").raw_os_error();
        assert_eq!(errno, Some(Errno::NOENT.raw_os_error()));
    }
}
