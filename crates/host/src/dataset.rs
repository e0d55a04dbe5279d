//! Datasets: files that pagewise makes to read from. They are written rather than allocated, and
//! refused before they would fill a disk.
//!
//! Every byte is [`pagewise_model::content`] of its offset and the seed; lines of text are counted
//! while they are written. The file is written in calls of 1 MiB, because the size of the writes
//! determines the size of the page cache's folios, and thereby the cost of the first mapped reads.
//! Dirty memory stays bounded. The file is removed when the value is dropped.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pagewise_model::format::bytes;
use pagewise_model::{Bytes, Content, checksum};

use crate::memory::Memory;
use crate::mounts::{FilesystemKind, Mount};
use crate::space::Space;
use crate::steps::{RunStep, reached};
use crate::{cache, files, scratch};

/// Size of every write except the last.
pub const WRITE_BYTES: u64 = 1 << 20;
/// Maximum dirty memory: after this many bytes the file is synced.
const SYNC_BYTES: u64 = 64 << 20;

/// A file of known content; dropping it removes it.
#[derive(Debug)]
pub struct Dataset {
    path: PathBuf,
    file: File,
    file_bytes: u64,
    content: Content,
    seed: u64,
    lines: Option<u64>,
}

/// Reason that a dataset cannot be made. The part already written is removed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum DatasetError {
    #[error(
        "a dataset of {} does not fit {path}: {} are free, and {} are to be left free",
        bytes(*need), bytes(*free), bytes(*reserve)
    )]
    NoSpace { path: PathBuf, need: Bytes, free: Bytes, reserve: Bytes },
    #[error(
        "a dataset of {} in {path}, whose files are in memory, does not fit: {} are available, and {} are to be left free",
        bytes(*need), bytes(*available), bytes(*reserve)
    )]
    NoMemory { path: PathBuf, need: Bytes, available: Bytes, reserve: Bytes },
    #[error("{path} exists already: pagewise writes only to files that it makes")]
    Exists { path: PathBuf },
    #[error("{path} filled up at byte {offset} of the dataset ({source}): the file was removed")]
    Full { path: PathBuf, offset: u64, source: io::Error },
    #[error("{call} of {path} failed at offset {offset}: {source}")]
    Call { path: PathBuf, call: &'static str, offset: u64, source: io::Error },
    #[error("stopped while {path} was being written: the file was removed")]
    Stopped { path: PathBuf },
}

/// Reserve on a filesystem: 5 % of it, at least 16 MiB, at most 4 GiB.
fn space_reserve(total: u64) -> u64 {
    (total / 20).clamp(16 << 20, 4 << 30)
}

/// Reserve of memory: 10 % of it, at least 256 MiB, at most 4 GiB.
fn memory_reserve(total: u64) -> u64 {
    (total / 10).clamp(256 << 20, 4 << 30)
}

impl Dataset {
    /// Write the file and drop it from the page cache; `progress` receives the bytes written so
    /// far.
    ///
    /// The reserve applies to a filesystem of known size; quotas show only as the error of a write.
    pub fn create(
        path: &Path,
        file_bytes: u64,
        content: Content,
        seed: u64,
        progress: &mut dyn FnMut(u64),
        stop: &AtomicBool,
    ) -> Result<Self, DatasetError> {
        check_space(path, file_bytes)?;
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(
            |error| match error.kind() {
                io::ErrorKind::AlreadyExists => DatasetError::Exists { path: path.to_path_buf() },
                _ => failed(path, "open", 0, error),
            },
        )?;
        // From here on, every return removes the file.
        let mut dataset = Self { path: path.to_path_buf(), file, file_bytes, content, seed, lines: None };
        reached(RunStep::DatasetBegun);
        dataset.write(progress, stop)?;
        reached(RunStep::DatasetMade);
        // A cold sample evicts again and verifies it; if that is impossible, it reports the reason.
        let _ = cache::evict(&dataset.file, file_bytes);
        Ok(dataset)
    }

    fn write(&mut self, progress: &mut dyn FnMut(u64), stop: &AtomicBool) -> Result<(), DatasetError> {
        let mut buffer = vec![0; WRITE_BYTES as usize];
        let mut offset = 0;
        let mut synced = 0;
        let mut lines = 0;
        while offset < self.file_bytes {
            if stop.load(Ordering::Relaxed) {
                return Err(DatasetError::Stopped { path: self.path.clone() });
            }
            let piece = &mut buffer[..(self.file_bytes - offset).min(WRITE_BYTES) as usize];
            self.content.fill(self.seed, offset, piece);
            if self.content == Content::Text {
                lines += checksum::lines(piece);
            }
            self.file
                .write_all_at(piece, offset)
                .map_err(|error| failed(&self.path, "pwrite", offset, error))?;
            offset += piece.len() as u64;
            if offset - synced >= SYNC_BYTES {
                self.file.sync_data().map_err(|error| failed(&self.path, "fdatasync", offset, error))?;
                synced = offset;
            }
            progress(offset);
            if (offset - piece.len() as u64..offset).contains(&(self.file_bytes / 2)) {
                reached(RunStep::DatasetHalfWritten);
            }
        }
        self.lines = (self.content == Content::Text).then_some(lines);
        self.file.sync_all().map_err(|error| failed(&self.path, "fsync", offset, error))
    }

    /// Path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, readable and writable.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Size.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Kind of its content.
    pub fn content(&self) -> Content {
        self.content
    }

    /// Newlines in it, counted while they were written; `None` unless it is text.
    pub fn lines(&self) -> Option<u64> {
        self.lines
    }

    /// Seed of its content.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        // A file that cannot be removed is swept by the next start.
        let _ = scratch::remove_same(&self.file, &self.path);
    }
}

fn failed(path: &Path, call: &'static str, offset: u64, source: io::Error) -> DatasetError {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            DatasetError::Full { path, offset, source }
        }
        _ => DatasetError::Call { path, call, offset, source },
    }
}

/// Refuse a file that would not leave the reserve, before its first byte.
pub fn check_space(path: &Path, need: u64) -> Result<(), DatasetError> {
    let directory = files::parent(path);
    let owned = || directory.to_path_buf();
    let space =
        Space::at(directory).map_err(|errno| failed(directory, "statvfs", 0, io::Error::from(errno)))?;
    let reserve = space_reserve(space.total_bytes);
    if space.is_below(need.saturating_add(reserve)) {
        return Err(DatasetError::NoSpace {
            path: owned(),
            need: Bytes(need),
            free: Bytes(space.free_bytes),
            reserve: Bytes(reserve),
        });
    }
    let in_memory = Mount::holding(directory)
        .is_ok_and(|mount| mount.is_some_and(|mount| mount.kind() == FilesystemKind::Memory));
    let memory = Memory::read();
    if in_memory && let (Some(total), Some(available)) = (memory.total_bytes, memory.available_bytes) {
        let reserve = memory_reserve(total);
        if need.saturating_add(reserve) > available {
            return Err(DatasetError::NoMemory {
                path: owned(),
                need: Bytes(need),
                available: Bytes(available),
                reserve: Bytes(reserve),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::content;
    use std::fs;

    static GO: AtomicBool = AtomicBool::new(false);

    #[test]
    fn every_byte_is_as_the_seed_says_and_the_file_goes() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        let len = (3 << 20) + 77;
        let mut seen = Vec::new();
        let dataset = Dataset::create(&path, len, Content::Random, 9, &mut |bytes| seen.push(bytes), &GO)
            .expect("create");
        assert_eq!(seen, [1 << 20, 2 << 20, 3 << 20, len]);
        let mut expected = vec![0; len as usize];
        content::fill(9, 0, &mut expected);
        assert!(fs::read(&path).expect("read") == expected);
        drop(dataset);
        assert!(!path.exists());
    }

    #[test]
    fn lines_of_text_are_counted() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        let create =
            |content| Dataset::create(&path, (2 << 20) + 77, content, 9, &mut |_| (), &GO).expect("create");
        let text = create(Content::Text);
        let lines = fs::read_to_string(&path).expect("read").matches('\n').count() as u64;
        assert_eq!((text.lines(), text.content()), (Some(lines), Content::Text));
        assert!((32_000..33_600).contains(&lines), "{lines} lines of 64 bytes on average");
        drop(text);
        assert_eq!(create(Content::Random).lines(), None);
    }

    #[test]
    fn what_exists_is_not_touched() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        fs::write(&path, "mine").expect("write");
        let error = Dataset::create(&path, 4096, Content::Random, 1, &mut |_| (), &GO).expect_err("exists");
        assert!(matches!(error, DatasetError::Exists { .. }));
        assert_eq!(fs::read(&path).expect("read"), b"mine");
    }

    #[test]
    fn what_does_not_fit_is_refused_before_the_first_byte() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        let error = Dataset::create(&path, 1 << 60, Content::Random, 1, &mut |_| panic!("written"), &GO)
            .expect_err("too large");
        assert!(matches!(error, DatasetError::NoSpace { .. }), "{error}");
        assert!(error.to_string().starts_with("a dataset of 1048576 TiB does not fit"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn a_stop_removes_what_was_written() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        let stop = AtomicBool::new(false);
        let mut progress = |_| stop.store(true, Ordering::Relaxed);
        let error =
            Dataset::create(&path, 8 << 20, Content::Random, 1, &mut progress, &stop).expect_err("stopped");
        assert!(matches!(error, DatasetError::Stopped { .. }));
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_took_the_name_is_left_alone() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("data");
        let dataset = Dataset::create(&path, 4096, Content::Random, 1, &mut |_| (), &GO).expect("create");
        fs::rename(&path, directory.path().join("moved")).expect("rename");
        fs::write(&path, "mine").expect("write");
        drop(dataset);
        assert_eq!(fs::read(&path).expect("read"), b"mine");
    }

    #[test]
    fn a_filesystem_that_fills_up_is_named() {
        let source = io::Error::from(rustix::io::Errno::NOSPC);
        let error = failed(Path::new("/data"), "pwrite", 4096, source).to_string();
        assert!(error.starts_with("/data filled up at byte 4096 of the dataset"), "{error}");
        let source = io::Error::from(rustix::io::Errno::DQUOT);
        assert!(matches!(failed(Path::new("/data"), "pwrite", 0, source), DatasetError::Full { .. }));
        let source = io::Error::from(rustix::io::Errno::IO);
        assert!(matches!(failed(Path::new("/data"), "pwrite", 0, source), DatasetError::Call { .. }));
    }

    #[test]
    fn the_reserve_follows_the_size() {
        assert_eq!(space_reserve(0), 16 << 20);
        assert_eq!(space_reserve(20 << 30), 1 << 30);
        assert_eq!(space_reserve(1 << 50), 4 << 30);
        assert_eq!(memory_reserve(1 << 30), 256 << 20);
    }
}
