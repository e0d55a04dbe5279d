//! State of a file in the page cache, and verified eviction and warming.
//!
//! Nothing here drops pages of other files, and nothing is assumed: after every attempt the kernel
//! is asked again. If it does not answer truthfully, the result is a reason rather than a number.

pub mod pages;

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::Advice;
use rustix::io::Errno;

use crate::files::{FileKey, FileKeys};
use crate::memory::Memory;
use crate::mounts::{FilesystemKind, Mount};
use crate::{process, scratch};

/// Size of a read that warms the cache.
const WARM_READ_BYTES: u64 = 1 << 20;
/// Length of a block of the file that is skipped if it is already in the cache.
const WARM_RANGE_BYTES: u64 = 16 << 20;
/// Passes over the whole file: reclaim may evict a few pages while others are read.
const WARM_PASSES: u32 = 3;
/// Further passes for a file with only a few missing pages, each after a pause: the cause of their
/// eviction may last for a while.
const LATER_WARM_PASSES: u32 = 5;
const WARM_PAUSE: Duration = Duration::from_millis(50);
/// A few pages are at most this fraction of the file.
const FEW_PAGES: u64 = 100;
/// Pauses between attempts to evict, one second in all. Pages that were dirty or in a CPU's batch
/// of the LRU list (mm/swap.c) at the first attempt can be evicted at a later one.
const EVICT_PAUSES_MS: [u64; 8] = [0, 1, 10, 50, 100, 200, 300, 350];

/// State of the first bytes of a file in the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Resident bytes of the span; whole pages, except at the end of the span.
    pub resident_bytes: Option<u64>,
    /// `cachestat`, `mincore`, or the reason it is unknown.
    pub source: String,
}

/// Return the state of the first `span_bytes` in the page cache: by cachestat(2), or else by
/// mincore(2) if it reports the truth to this process.
pub fn residency(file: &File, span_bytes: u64) -> Residency {
    range_residency(file, 0, span_bytes)
}

/// Bytes of whole pages of `file` in the page cache that are dirty or under writeback; `None`
/// without cachestat(2).
pub fn dirty_bytes(file: &File) -> Option<u64> {
    let len = file.metadata().ok()?.len();
    if len == 0 {
        return Some(0);
    }
    let stat = counted(file, 0, len).ok()?;
    Some((stat.dirty + stat.writeback) * rustix::param::page_size() as u64)
}

/// overlayfs (OVERLAYFS_SUPER_MAGIC).
const OVERLAY: u64 = 0x794c_7630;

/// cachestat(2). It looks at the pages of the inode that it is given; overlayfs has none, since the
/// file of a layer has them.
fn counted(file: &File, offset: u64, len: u64) -> io::Result<pagewise_sys::residency::CacheStat> {
    if rustix::fs::fstatfs(file)?.f_type as u64 == OVERLAY {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it sees no pages of overlayfs, which are those of a layer",
        ));
    }
    pagewise_sys::residency::cachestat(file.as_fd(), offset, len)
}

fn range_residency(file: &File, offset: u64, len: u64) -> Residency {
    let page = rustix::param::page_size() as u64;
    if len == 0 {
        return Residency { resident_bytes: None, source: "the span is empty".to_string() };
    }
    let refused = match counted(file, offset, len) {
        Ok(stat) => {
            let bytes = (stat.cached * page).min(len);
            return Residency { resident_bytes: Some(bytes), source: "cachestat".to_string() };
        }
        Err(error) => error,
    };
    range_by_mincore(file, offset, len, &refused)
}

/// Fallback if cachestat(2) was refused. mincore(2) is used for spans only: it counts from the
/// file's start.
fn range_by_mincore(file: &File, offset: u64, len: u64, refused: &io::Error) -> Residency {
    let page = rustix::param::page_size() as u64;
    match pagewise_sys::residency::mincore_is_honest(file.as_fd()) {
        Ok(true) if offset == 0 => match pagewise_sys::residency::mincore_pages(file, len as usize) {
            Ok(pages) => {
                Residency { resident_bytes: Some((pages * page).min(len)), source: "mincore".to_string() }
            }
            Err(error) => unknown(format!("cachestat: {refused}; mincore: {error}")),
        },
        Ok(true) => unknown(format!("cachestat: {refused}")),
        Ok(false) => unknown(format!(
            "cachestat: {refused}; mincore reports everything as resident for a user who neither owns the file \
                nor may write it"
        )),
        Err(error) => unknown(format!("cachestat: {refused}; fstat: {error}")),
    }
}

fn unknown(reason: String) -> Residency {
    Residency { resident_bytes: None, source: reason }
}

/// A file that was dropped from the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// State before.
    pub before: Residency,
    /// State after: 0, or unknown with the reason. If it is unknown, only the bytes that the device
    /// delivers later can prove that the file was cold.
    pub after: Residency,
    /// Number of attempts.
    pub attempts: u32,
}

/// Reason that a file cannot be dropped from the page cache.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum EvictError {
    #[error("{path} is on {filesystem}, which keeps its files in memory: nothing to evict")]
    InMemory { path: PathBuf, filesystem: String },
    #[error(
        "{resident_bytes} bytes of {path} stay in the page cache because the file is mapped by another \
            process: {}",
        list(mappers)
    )]
    Mapped { path: PathBuf, resident_bytes: u64, mappers: Vec<(u32, String)> },
    #[error(
        "{resident_bytes} bytes of {path} stay in the page cache after {attempts} attempts: no process \
            that this user can see maps the file"
    )]
    Stays { path: PathBuf, resident_bytes: u64, attempts: u32 },
    #[error("{call} of {path} failed: {source}")]
    Call { path: PathBuf, call: &'static str, source: io::Error },
}

fn list(mappers: &[(u32, String)]) -> String {
    let names: Vec<String> = mappers.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
    names.join(", ")
}

fn path_of(file: &File) -> PathBuf {
    fs::read_link(scratch::reopen_path(file)).unwrap_or_else(|_| PathBuf::from("(file without a path)"))
}

/// The filesystem of `file` if it stores files in memory: nothing can be evicted there, and no
/// device reads.
pub fn in_memory(file: &File) -> Option<String> {
    if let Some(mount) = Mount::of(file).filter(|mount| mount.kind() == FilesystemKind::Memory) {
        return Some(mount.filesystem);
    }
    // A nameless file cannot be found by its path; statfs(2) identifies the two types by number.
    let kind = rustix::fs::fstatfs(file).ok()?.f_type as u64;
    [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")]
        .iter()
        .find(|(magic, _)| *magic == kind)
        .map(|(_, name)| name.to_string())
}

/// Drop `file` from the page cache and verify it for the first `len` bytes. The whole file is
/// dropped, since a large folio may cross the end of the span. Dirty pages are written back first;
/// a descriptor that is open for reading suffices for that, and the file does not change.
pub fn evict(file: &File, len: u64) -> Result<Evicted, EvictError> {
    if let Some(filesystem) = in_memory(file) {
        return Err(EvictError::InMemory { path: path_of(file), filesystem });
    }
    let before = residency(file, len);
    let mut left = 0;
    for (attempt, pause_ms) in EVICT_PAUSES_MS.into_iter().enumerate() {
        std::thread::sleep(Duration::from_millis(pause_ms));
        match rustix::fs::fdatasync(file) {
            // fsync(2): EROFS and EINVAL come from files that cannot be dirty.
            Ok(()) | Err(Errno::ROFS | Errno::INVAL) => {}
            Err(errno) => {
                return Err(EvictError::Call {
                    path: path_of(file),
                    call: "fdatasync",
                    source: errno.into(),
                });
            }
        }
        rustix::fs::fadvise(file, 0, None, Advice::DontNeed).map_err(|errno| EvictError::Call {
            path: path_of(file),
            call: "posix_fadvise(POSIX_FADV_DONTNEED)",
            source: errno.into(),
        })?;
        let after = residency(file, len);
        match after.resident_bytes {
            None | Some(0) => return Ok(Evicted { before, after, attempts: attempt as u32 + 1 }),
            Some(bytes) => left = bytes,
        }
    }
    let path = path_of(file);
    match mappers(file) {
        mappers if mappers.is_empty() => {
            Err(EvictError::Stays { path, resident_bytes: left, attempts: EVICT_PAUSES_MS.len() as u32 })
        }
        mappers => Err(EvictError::Mapped { path, resident_bytes: left, mappers }),
    }
}

/// Drop the page cache of the whole machine (proc_sys_vm(5), drop_caches), after writing back dirty
/// pages. Pages mapped by a process stay.
pub fn drop_all() -> io::Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "1")
}

/// Processes that have the file mapped, with their names, as far as this user may see them.
pub fn mappers(file: &File) -> Vec<(u32, String)> {
    FileKey::of(file).map_or(Vec::new(), |key| mappers_of_any(&FileKeys::of([key])))
}

/// Processes that have one of these files mapped.
pub fn mappers_of_any(files: &FileKeys) -> Vec<(u32, String)> {
    let maps = |pid: &u32| process::mappings_of_any(*pid, files).is_ok_and(|count| count > 0);
    let mut found: Vec<(u32, String)> = process::all().filter(maps).map(|pid| (pid, name_of(pid))).collect();
    found.sort();
    found
}

fn name_of(pid: u32) -> String {
    Some(process::name(pid)).filter(|name| !name.is_empty()).unwrap_or_else(|| "unnamed".to_string())
}

/// A file that was brought into the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmedFile {
    /// Bytes that had to be read.
    pub read_bytes: u64,
    /// State after: the whole span, or unknown with the reason.
    pub after: Residency,
}

/// Reason that a file cannot be kept in the page cache.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each message says what its variant is.
pub enum WarmError {
    #[error("{path} needs {missing_bytes} more bytes of memory to be warm: {available_bytes} are available")]
    TooLarge { path: PathBuf, missing_bytes: u64, available_bytes: u64 },
    #[error("only {resident_bytes} of {len} bytes of {path} stay in the page cache after it was read {passes} times: {} are available on this machine", known(*available_bytes))]
    DoesNotStay { path: PathBuf, resident_bytes: u64, len: u64, passes: u32, available_bytes: Option<u64> },
    #[error("{path} ends at byte {offset} instead of {len}: it became shorter")]
    Short { path: PathBuf, offset: u64, len: u64 },
    #[error("pread of {path} failed at offset {offset}: {source}")]
    Read { path: PathBuf, offset: u64, source: io::Error },
    #[error("stopped while {path} was being read")]
    Stopped { path: PathBuf },
}

fn known(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "an unknown number of bytes".to_string(), |bytes| format!("{bytes} bytes"))
}

/// Bring the first `len` bytes of `file` into the page cache by reading the missing parts, and
/// verify that all are present at the same time. If residency is unknown, the file is read once and
/// the result says so.
pub fn warm(file: &File, len: u64, stop: &AtomicBool) -> Result<WarmedFile, WarmError> {
    let mut read_bytes = 0;
    let mut after = residency(file, len);
    let available_bytes = Memory::read().available_bytes;
    if let (Some(resident), Some(available_bytes)) = (after.resident_bytes, available_bytes)
        && len - resident > available_bytes
    {
        let missing_bytes = len - resident;
        return Err(WarmError::TooLarge { path: path_of(file), missing_bytes, available_bytes });
    }
    let mut passes = 0;
    while let Some(resident_bytes) = after.resident_bytes
        && resident_bytes < len
    {
        let Some(pause) = pause_before_pass(passes, resident_bytes, len) else {
            let available_bytes = Memory::read().available_bytes;
            return Err(WarmError::DoesNotStay {
                path: path_of(file),
                resident_bytes,
                len,
                passes,
                available_bytes,
            });
        };
        thread::sleep(pause);
        read_bytes += read_missing(file, len, stop)?;
        after = residency(file, len);
        passes += 1;
    }
    Ok(WarmedFile { read_bytes, after })
}

/// Pause before another pass of warming, after `passes` of them left `resident_bytes` of `len` in
/// the cache; `None` if that would not help.
pub fn pause_before_pass(passes: u32, resident_bytes: u64, len: u64) -> Option<Duration> {
    let are_few = len - resident_bytes <= len / FEW_PAGES;
    match passes {
        0..WARM_PASSES => Some(Duration::ZERO),
        _ => (are_few && passes < WARM_PASSES + LATER_WARM_PASSES).then_some(WARM_PAUSE),
    }
}

/// Make one pass over the file; blocks in the cache are skipped.
fn read_missing(file: &File, len: u64, stop: &AtomicBool) -> Result<u64, WarmError> {
    let mut buffer = vec![0; WARM_READ_BYTES as usize];
    let mut read_bytes = 0;
    let mut start = 0;
    while start < len {
        let end = (start + WARM_RANGE_BYTES).min(len);
        if range_residency(file, start, end - start).resident_bytes != Some(end - start) {
            read_range(file, start..end, &mut buffer, stop)?;
            read_bytes += end - start;
        }
        start = end;
    }
    Ok(read_bytes)
}

/// Read a range of the file into `buffer` repeatedly, which brings it into the page cache. The
/// buffer's size is that of the reads.
pub fn read_range(
    file: &File,
    range: Range<u64>,
    buffer: &mut [u8],
    stop: &AtomicBool,
) -> Result<(), WarmError> {
    let Range { start: mut offset, end: len } = range;
    while offset < len {
        if stop.load(Ordering::Relaxed) {
            return Err(WarmError::Stopped { path: path_of(file) });
        }
        let wanted = (len - offset).min(buffer.len() as u64) as usize;
        match file.read_at(&mut buffer[..wanted], offset) {
            Ok(0) => return Err(WarmError::Short { path: path_of(file), offset, len }),
            Ok(read) => offset += read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(WarmError::Read { path: path_of(file), offset, source }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const LEN: u64 = (4 << 20) + 123;
    static GO: AtomicBool = AtomicBool::new(false);

    fn file_of(directory: &Path, len: u64) -> File {
        let file = scratch::nameless_file(directory).expect("file");
        file.write_all_at(&vec![7; len as usize], 0).expect("write");
        file
    }

    /// A directory on storage; the one for temporary files may be in memory.
    pub(super) fn on_storage() -> Option<tempfile::TempDir> {
        let directory = tempfile::tempdir().expect("directory");
        let mount = Mount::holding(directory.path()).expect("read").expect("mount");
        if mount.kind() == FilesystemKind::Block {
            return Some(directory);
        }
        println!("skipped: disk: {} lies on {}", directory.path().display(), mount.filesystem);
        None
    }

    #[test]
    fn a_dirty_file_is_evicted_and_warmed() {
        let Some(directory) = on_storage() else { return };
        let file = file_of(directory.path(), LEN);
        assert_eq!(residency(&file, LEN).resident_bytes, Some(LEN));
        let evicted = evict(&file, LEN).expect("evict");
        assert_eq!((evicted.before.resident_bytes, evicted.after.resident_bytes), (Some(LEN), Some(0)));
        let warmed = warm(&file, LEN, &GO).expect("warm");
        assert_eq!((warmed.read_bytes, warmed.after.resident_bytes), (LEN, Some(LEN)));
        assert_eq!(warm(&file, LEN, &GO).expect("warm").read_bytes, 0);
    }

    #[test]
    fn before_linux_6_5_mincore_answers_for_the_owner() {
        let Some(directory) = on_storage() else { return };
        let file = file_of(directory.path(), LEN);
        let refused = io::Error::from(Errno::NOSYS);
        let expected = Residency { resident_bytes: Some(LEN), source: "mincore".to_string() };
        assert_eq!(range_by_mincore(&file, 0, LEN, &refused), expected);
        evict(&file, LEN).expect("evict");
        assert_eq!(range_by_mincore(&file, 0, LEN, &refused).resident_bytes, Some(0));
        assert_eq!(range_by_mincore(&file, 4096, 4096, &refused).resident_bytes, None);
        assert!(residency(&file, 0).source.contains("empty"));
    }

    #[test]
    fn part_of_a_file_is_warmed() {
        let Some(directory) = on_storage() else { return };
        let file = file_of(directory.path(), LEN);
        evict(&file, LEN).expect("evict");
        assert_eq!(warm(&file, 1 << 20, &GO).expect("warm").after.resident_bytes, Some(1 << 20));
        evict(&file, 1 << 20).expect("evict");
        assert_eq!(residency(&file, LEN).resident_bytes, Some(0));
    }

    #[test]
    fn a_range_is_read_whatever_the_buffer() {
        let Some(directory) = on_storage() else { return };
        let file = file_of(directory.path(), LEN);
        evict(&file, LEN).expect("evict");
        // Without readahead, so that exactly the bytes read are present.
        rustix::fs::fadvise(&file, 0, None, Advice::Random).expect("advise");
        read_range(&file, 65536..131_072, &mut [0; 5000], &GO).expect("read");
        assert!(residency(&file, 65536).resident_bytes.is_none_or(|bytes| bytes == 0));
        assert!(range_residency(&file, 65536, 65536).resident_bytes.is_none_or(|bytes| bytes == 65536));
        match read_range(&file, LEN - 10..LEN + 1, &mut [0; 100], &GO) {
            Err(WarmError::Short { offset, len, .. }) => assert_eq!((offset, len), (LEN, LEN + 1)),
            other => panic!("{other:?}"),
        }
        let stopped = read_range(&file, 0..1, &mut [0], &AtomicBool::new(true));
        assert!(matches!(stopped, Err(WarmError::Stopped { .. })));
    }

    #[test]
    fn what_is_not_on_the_device_yet_is_dirty() {
        let Some(directory) = on_storage() else { return };
        let file = file_of(directory.path(), 0);
        assert_eq!(dirty_bytes(&file), Some(0));
        file.write_all_at(&vec![7; 1 << 20], 0).expect("write");
        match dirty_bytes(&file) {
            // The kernel may have started writeback by itself.
            Some(bytes) => assert!(bytes <= 2 << 20),
            None => println!("skipped: cachestat: there is no cachestat(2)"),
        }
        file.sync_all().expect("sync");
        assert!(dirty_bytes(&file).is_none_or(|bytes| bytes == 0));
    }

    #[test]
    fn a_mapped_file_stays_and_the_mapper_is_named() {
        let Some(directory) = on_storage() else { return };
        let file = file_of(directory.path(), LEN);
        let mapping = pagewise_sys::FileMapping::new(&file, LEN as usize, true).expect("map");
        assert!(mapping.bytes().iter().step_by(4096).all(|byte| *byte == 7));
        match evict(&file, LEN) {
            Err(EvictError::Mapped { resident_bytes, mappers, .. }) => {
                assert!(resident_bytes > 0);
                assert!(mappers.iter().any(|(pid, _)| *pid == std::process::id()), "{mappers:?}");
            }
            other => panic!("{other:?}"),
        }
        drop(mapping);
        assert_eq!(mappers(&file), vec![]);
        evict(&file, LEN).expect("evict");
    }

    #[test]
    fn a_file_in_memory_cannot_be_cold() {
        let shm = Path::new("/dev/shm");
        if !Mount::holding(shm).is_ok_and(|mount| mount.is_some_and(|mount| mount.filesystem == "tmpfs")) {
            println!("skipped: tmpfs: /dev/shm is no tmpfs");
            return;
        }
        let error = evict(&file_of(shm, 4096), 4096).expect_err("in memory").to_string();
        assert!(error.ends_with("is on tmpfs, which keeps its files in memory: nothing to evict"), "{error}");
    }

    #[test]
    fn a_file_shorter_than_asked_is_an_error() {
        let directory = tempfile::tempdir().expect("directory");
        let file = file_of(directory.path(), 5000);
        match warm(&file, 1 << 20, &GO) {
            Err(WarmError::Short { offset, .. }) => assert_eq!(offset, 5000),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_larger_than_memory_is_refused_unread() {
        let directory = tempfile::tempdir().expect("directory");
        let file = scratch::nameless_file(directory.path()).expect("file");
        let len = 1 << 42;
        if file.set_len(len).is_err() {
            println!("skipped: sparse-files: no sparse file of 4 TiB here");
            return;
        }
        match warm(&file, len, &GO) {
            Err(WarmError::TooLarge { missing_bytes, .. }) => assert_eq!(missing_bytes, len),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn warming_can_be_stopped() {
        let Some(directory) = on_storage() else { return };
        let file = file_of(directory.path(), LEN);
        evict(&file, LEN).expect("evict");
        assert!(matches!(warm(&file, LEN, &AtomicBool::new(true)), Err(WarmError::Stopped { .. })));
    }
}
