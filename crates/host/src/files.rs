//! The user's file and directory: whether they can be measured, with one clear sentence if not.
//!
//! The file is opened for reading only and never written.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pagewise_model::Bytes;
use pagewise_model::plan::FileIdentity;
use rustix::fs::OFlags;

use crate::mounts::{FilesystemKind, Mount};
use crate::scratch;

/// Identity of a file in other processes' /proc: device, inode, and its path for filesystems whose mappings show another
/// device than fstat(2) (btrfs, overlayfs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileKey {
    /// st_dev.
    pub device: u64,
    /// st_ino.
    pub inode: u64,
    /// The path shown by /proc/self/fd.
    pub path: PathBuf,
}

impl FileKey {
    /// The key of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let path = fs::read_link(scratch::reopen_path(file))?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino(), path })
    }
}

/// Reason that a file cannot be measured.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum FileError {
    #[error("{path} does not exist")]
    Missing { path: PathBuf },
    #[error("{path} is a link to {target}, which does not exist")]
    Dangling { path: PathBuf, target: PathBuf },
    #[error("{path} may not be read by this user")]
    Forbidden { path: PathBuf },
    #[error("{path} is {what}; pagewise reads regular files")]
    NotRegular { path: PathBuf, what: &'static str },
    #[error("{path} is made up by the kernel ({filesystem}); it has no bytes on storage")]
    Kernel { path: PathBuf, filesystem: String },
    #[error("{path} is empty; there is nothing to read")]
    Empty { path: PathBuf },
    #[error("{call} of {path} failed: {source}")]
    Call { path: PathBuf, call: &'static str, source: io::Error },
}

/// Open the user's file for reading, and return its identity.
pub fn identify(path: &Path) -> Result<(File, FileIdentity), FileError> {
    let owned = || path.to_path_buf();
    // stat(2) first: opening a FIFO or a tape would wait or have effects.
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => FileError::Dangling { path: owned(), target },
            Err(_) => FileError::Missing { path: owned() },
        },
        io::ErrorKind::NotADirectory => FileError::Missing { path: owned() },
        io::ErrorKind::PermissionDenied => FileError::Forbidden { path: owned() },
        _ => FileError::Call { path: owned(), call: "stat", source: error },
    })?;
    if let Some(what) = irregular(&metadata) {
        return Err(FileError::NotRegular { path: owned(), what });
    }
    if let Ok(Some(mount)) = Mount::holding(path)
        && mount.kind() == FilesystemKind::Kernel
    {
        return Err(FileError::Kernel { path: owned(), filesystem: mount.filesystem });
    }
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file =
        fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(
            |error| match error.kind() {
                io::ErrorKind::PermissionDenied => FileError::Forbidden { path: owned() },
                _ => FileError::Call { path: owned(), call: "open", source: error },
            },
        )?;
    let identity =
        identity_of(&file).map_err(|source| FileError::Call { path: owned(), call: "fstat", source })?;
    if identity.file_bytes == Bytes(0) {
        return Err(FileError::Empty { path: owned() });
    }
    Ok((file, identity))
}

/// Identity of an open file, which differs from that of another file or of a changed one.
pub fn identity_of(file: &File) -> io::Result<FileIdentity> {
    let metadata = file.metadata()?;
    Ok(FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        file_bytes: Bytes(metadata.size()),
        modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
    })
}

/// Filesystems that store the bytes of a file as they are.
const PLAIN_FILESYSTEMS: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "vfat", "exfat"];

/// Reason that fewer bytes may come from the device than are read: holes, or a filesystem that may compress. `None`: no
/// reason.
pub fn sparse_or_compressed_bytes(file: &File) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let stored = metadata.blocks().saturating_mul(512);
    if stored < metadata.size() {
        return Some(format!("it has holes: {stored} of its {} bytes are stored", metadata.size()));
    }
    let mount = Mount::holding(&scratch::reopen_path(file)).ok().flatten();
    let filesystem = mount.map_or_else(|| "its filesystem".to_string(), |mount| mount.filesystem);
    let plain = PLAIN_FILESYSTEMS.contains(&filesystem.as_str());
    (!plain).then(|| format!("{filesystem} may not store its bytes as they are"))
}

fn irregular(metadata: &fs::Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_block_device() {
        Some("a block device")
    } else if kind.is_char_device() {
        Some("a character device")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("no regular file")
    }
}

/// Reason that a directory cannot hold a dataset.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum DirectoryError {
    #[error("the directory {path} does not exist")]
    Missing { path: PathBuf },
    #[error("{path} is no directory")]
    NotADirectory { path: PathBuf },
    #[error("{path} lies on a filesystem that is mounted read-only")]
    ReadOnly { path: PathBuf },
    #[error("this user may not make files in {path}")]
    NotWritable { path: PathBuf },
    #[error("{path} is made up by the kernel ({filesystem}); files cannot be made there")]
    Kernel { path: PathBuf, filesystem: String },
    #[error("making a file in {path} failed: {source}")]
    Call { path: PathBuf, source: io::Error },
}

/// Check that files can be made in `path`, by making one without a name.
pub fn check_directory(path: &Path) -> Result<(), DirectoryError> {
    let owned = || path.to_path_buf();
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => DirectoryError::Missing { path: owned() },
        io::ErrorKind::NotADirectory => DirectoryError::NotADirectory { path: owned() },
        io::ErrorKind::ReadOnlyFilesystem => DirectoryError::ReadOnly { path: owned() },
        io::ErrorKind::PermissionDenied => DirectoryError::NotWritable { path: owned() },
        _ => DirectoryError::Call { path: owned(), source: error },
    };
    if !fs::metadata(path).map_err(refused)?.is_dir() {
        return Err(DirectoryError::NotADirectory { path: owned() });
    }
    if let Ok(Some(mount)) = Mount::holding(path)
        && mount.kind() == FilesystemKind::Kernel
    {
        return Err(DirectoryError::Kernel { path: owned(), filesystem: mount.filesystem });
    }
    scratch::nameless_file(path).map(drop).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        identify(path).expect_err("refused").to_string()
    }

    #[test]
    fn a_file_is_identified() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("file");
        fs::write(&path, [1; 5000]).expect("write");
        let (file, identity) = identify(&path).expect("identify");
        assert_eq!(identity.file_bytes, Bytes(5000));
        let key = FileKey::of(&file).expect("key");
        assert_eq!((key.device, key.inode), (identity.device, identity.inode));
        assert_eq!(key.path, fs::canonicalize(&path).expect("canonical"));
        let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 5);
        File::options().write(true).open(&path).expect("open").set_modified(later).expect("touch");
        let changed = identify(&path).expect("identify").1;
        assert_ne!(identity, changed);
        assert_eq!(changed.modified_ns, 1_000_000_000_000_000_005);
    }

    #[test]
    fn what_is_no_file_with_bytes_is_refused_in_a_sentence() {
        let directory = tempfile::tempdir().expect("directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("empty"), []).expect("write");
        std::os::unix::fs::symlink("/nowhere", path("link")).expect("link");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("fifo");
        assert!(refusal(&path("none")).ends_with("none does not exist"));
        assert!(refusal(&path("empty/below")).ends_with("does not exist"));
        assert!(refusal(&path("link")).ends_with("is a link to /nowhere, which does not exist"));
        assert!(refusal(&path("empty")).ends_with("is empty; there is nothing to read"));
        assert!(refusal(&path("pipe")).ends_with("is a pipe; pagewise reads regular files"));
        assert!(refusal(directory.path()).contains("is a directory"));
        assert_eq!(
            refusal(Path::new("/dev/null")),
            "/dev/null is a character device; pagewise reads regular files"
        );
        assert!(refusal(Path::new("/proc/self/stat")).contains("made up by the kernel (proc)"));
        assert!(refusal(Path::new("/sys/kernel/mm/transparent_hugepage/enabled")).contains("(sysfs)"));
    }

    #[test]
    fn a_directory_must_take_files() {
        let directory = tempfile::tempdir().expect("directory");
        check_directory(directory.path()).expect("writable");
        assert_eq!(fs::read_dir(directory.path()).expect("list").count(), 0);
        let file = directory.path().join("file");
        fs::write(&file, "x").expect("write");
        assert!(matches!(check_directory(&file), Err(DirectoryError::NotADirectory { .. })));
        let none = directory.path().join("none");
        assert!(matches!(check_directory(&none), Err(DirectoryError::Missing { .. })));
        assert!(matches!(check_directory(Path::new("/proc")), Err(DirectoryError::Kernel { .. })));
    }
}
