//! Files of a run: datasets, the user's own file, files for workers to write; and the state of
//! their page cache.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pagewise_host::memory::Memory;
use pagewise_host::{
    Dataset, EvictError, FileKey, FileKeys, Residency, WarmError, WrittenFile, cache, files, reference,
    written,
};
use pagewise_model::plan::FileIdentity;
use pagewise_model::trace::ResidentPages;
use pagewise_model::{CacheState, Conditions, Failure, FailureKind};
use pagewise_protocol::{ConversationError, descriptor_path};
use pagewise_sys::AnonymousMemory;
use rustix::fs::OFlags;

use super::records::RecordTask;

/// Source of the expected content of an input.
enum ContentSource {
    /// Written by pagewise: it follows from the seed.
    Formula { dataset: Dataset },
    /// The file itself. It is compared by direct reads where the filesystem supports them.
    UserFile { file: File, direct: Option<File>, identity: FileIdentity },
    /// Written by a worker, and read back.
    New { file: WrittenFile },
}

/// Alignment of offsets, lengths and memory of direct reads; suits every disk.
const DIRECT_ALIGNMENT: u64 = 4096;

/// A file of a run; of a replay of several, all of them.
pub struct Input {
    bytes: ContentSource,
    /// Files of the user besides that one.
    others: Vec<OtherFile>,
    /// Path.
    pub path: PathBuf,
    /// Identity in mappings and descriptors.
    pub key: FileKey,
    /// The same of all of its files.
    pub keys: FileKeys,
    /// Size, of all of its files together.
    pub file_bytes: u64,
    /// Actors that have written over it.
    rewritten: AtomicU64,
}

/// A file of the user besides another one.
struct OtherFile {
    path: PathBuf,
    file: File,
    identity: FileIdentity,
}

/// The program that uses a file of a run, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// Methods read it.
    Measured,
    /// Actors read it.
    ReadByActors,
    /// Actors write it, over and over.
    WrittenByActors,
}

/// The files of a run, or of a block of it.
#[derive(Default)]
pub struct Inputs(Vec<(FileUse, Input)>);

impl Inputs {
    /// Add a file.
    pub fn push(&mut self, of_use: FileUse, input: Input) {
        self.0.push((of_use, input));
    }

    /// Inputs of a use.
    pub fn of(&self, of_use: FileUse) -> impl Iterator<Item = &Input> {
        self.0.iter().filter(move |(its_use, _)| *its_use == of_use).map(|(_, input)| input)
    }
}

impl From<(FileUse, Input)> for Inputs {
    fn from(only: (FileUse, Input)) -> Self {
        Self(vec![only])
    }
}

/// Reason that a cell cannot have its state.
pub enum NoState {
    /// Never on this filesystem.
    Unavailable(String),
    /// Not now.
    Failed(Failure),
    /// The user stopped the run.
    Stopped,
}

impl Input {
    /// A dataset.
    pub fn dataset(dataset: Dataset) -> std::io::Result<Self> {
        let (path, key) = (dataset.path().to_path_buf(), FileKey::of(dataset.file())?);
        let file_bytes = dataset.file_bytes();
        Ok(Self::one(path, key, file_bytes, ContentSource::Formula { dataset }))
    }

    fn one(path: PathBuf, key: FileKey, file_bytes: u64, bytes: ContentSource) -> Self {
        let keys = FileKeys::of([key.clone()]);
        Self { bytes, others: Vec::new(), path, key, keys, file_bytes, rewritten: AtomicU64::new(0) }
    }

    /// The user's file, opened for reading.
    pub fn of_user(path: PathBuf, file: File, identity: FileIdentity) -> std::io::Result<Self> {
        let file_bytes = identity.file_bytes.0;
        let direct = File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&path).ok();
        let key = FileKey::of(&file)?;
        Ok(Self::one(path, key, file_bytes, ContentSource::UserFile { file, direct, identity }))
    }

    /// The same with more files of the user, whose reads are replayed with those of the first one.
    pub fn with_others(
        mut self,
        others: impl IntoIterator<Item = (PathBuf, File, FileIdentity)>,
    ) -> std::io::Result<Self> {
        let mut keys = vec![self.key.clone()];
        for (path, file, identity) in others {
            keys.push(FileKey::of(&file)?);
            self.file_bytes = self.file_bytes.saturating_add(identity.file_bytes.0);
            self.others.push(OtherFile { path, file, identity });
        }
        self.keys = FileKeys::of(keys);
        Ok(self)
    }

    /// Each of its files, with the bytes of it that are read: all of each if there are several,
    /// otherwise so many.
    pub fn parts(&self, span_bytes: u64) -> impl Iterator<Item = (&File, u64)> {
        let first = match &self.bytes {
            ContentSource::UserFile { identity, .. } if self.is_several() => identity.file_bytes.0,
            _ => span_bytes,
        };
        let others = self.others.iter().map(|other| (&other.file, other.identity.file_bytes.0));
        std::iter::once((self.file(), first)).chain(others)
    }

    /// True if there are several files.
    pub fn is_several(&self) -> bool {
        !self.others.is_empty()
    }

    /// A file for a worker to write under `conditions`: sparse, or with a pass of other records, in
    /// the page cache or not. Dropping the value removes it. Nothing on the filesystem is dirty
    /// afterwards.
    pub fn make_new(path: &Path, conditions: &Conditions, records: &RecordTask) -> Result<Self, NoState> {
        let file_bytes = conditions.file_bytes.0;
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                NoState::Unavailable(format!("there is no room for a file of {file_bytes} bytes: {error}"))
            }
            _ => NoState::Failed(Failure {
                kind: FailureKind::CallFailed,
                detail: format!("{} cannot be made: {error}", path.display()),
            }),
        };
        let mut input = Self::sparse(path, file_bytes).map_err(failed)?;
        if let (ContentSource::New { file }, false) = (&mut input.bytes, conditions.makes_file()) {
            file.make_warm(&records.ring, records.source()).map_err(failed)?;
        }
        rustix::fs::syncfs(input.file()).map_err(|error| failed(error.into()))?;
        if !conditions.makes_file() {
            input.bring_into(conditions.cache)?;
        }
        if let (ContentSource::New { file }, true) = (&mut input.bytes, conditions.updates_cached()) {
            file.find_folio_bytes().map_err(failed)?;
        }
        Ok(input)
    }

    /// Bring a file that was just written into this state of the page cache. Nobody else knows it,
    /// so it is evicted alone.
    pub fn bring_into(&self, cache: CacheState) -> Result<(), NoState> {
        if matches!(cache, CacheState::Cold | CacheState::WarmSmall) {
            self.make_cold(self.file_bytes, false)?;
        }
        match self.new_file().filter(|_| cache == CacheState::WarmSmall) {
            Some(file) => file.read_into_small_folios().map_err(|error| {
                NoState::Failed(Failure { kind: FailureKind::NotWarm, detail: error.to_string() })
            }),
            None => Ok(()),
        }
    }

    /// A sparse file for a worker to write, removed with the value.
    pub fn sparse(path: &Path, file_bytes: u64) -> std::io::Result<Self> {
        let file = WrittenFile::create(path, file_bytes)?;
        let key = FileKey::of(file.file()).inspect_err(|_| drop(file.remove()))?;
        Ok(Self::one(path.to_path_buf(), key, file_bytes, ContentSource::New { file }))
    }

    /// Count an actor that writes over it; the number of those before.
    pub fn rewrite(&self) -> u64 {
        self.rewritten.fetch_add(1, Ordering::Relaxed)
    }

    /// The file, if a worker writes it.
    pub fn new_file(&self) -> Option<&WrittenFile> {
        match &self.bytes {
            ContentSource::New { file } => Some(file),
            ContentSource::Formula { .. } | ContentSource::UserFile { .. } => None,
        }
    }

    /// True if its filesystem is full.
    pub fn is_filesystem_full(&self) -> bool {
        written::is_full(self.file())
    }

    /// True if cells with these conditions read it.
    pub fn suits(&self, conditions: &Conditions) -> bool {
        conditions.workload().is_reading()
            && self.file_bytes == conditions.file_bytes.0
            && match &self.bytes {
                ContentSource::Formula { dataset } => dataset.content() == conditions.content,
                ContentSource::UserFile { .. } => true,
                ContentSource::New { .. } => false,
            }
    }

    /// Source of the checksum of a whole pass.
    pub fn reference_source(&self) -> reference::PassSource<'_> {
        match &self.bytes {
            ContentSource::Formula { dataset } => reference::PassSource::Dataset(dataset),
            ContentSource::UserFile { file, .. } => reference::PassSource::UserFile(file),
            ContentSource::New { .. } => unreachable!("a file that is written is read back, and not read"),
        }
    }

    /// Path by which a worker opens this file even if its name now belongs to another: evidence is
    /// taken from the open file.
    pub fn worker_path(&self) -> String {
        descriptor_path(self.file())
    }

    /// The directory in which a worker finds the descriptors of several files, and these.
    pub fn worker_descriptors(&self) -> (String, Vec<u64>) {
        let descriptors = self.parts(0).map(|(file, _)| file.as_raw_fd() as u64).collect();
        (format!("/proc/{}/fd", std::process::id()), descriptors)
    }

    /// Text of a worker with the names of its files in place of their descriptors.
    pub fn named(&self, detail: String) -> String {
        let others = self.others.iter().map(|other| (descriptor_path(&other.file), &other.path));
        std::iter::once((self.worker_path(), &self.path)).chain(others).fold(detail, |text, (shown, path)| {
            if !text.contains(&shown) {
                return text;
            }
            let mut parts = text.split(&shown);
            let mut named = parts.next().unwrap_or_default().to_string();
            for part in parts {
                // /proc/1/fd/12 begins with /proc/1/fd/1.
                let is_longer = part.starts_with(|next: char| next.is_ascii_digit());
                named += &if is_longer { shown.clone() } else { path.to_string_lossy().into_owned() };
                named += part;
            }
            named
        })
    }

    /// True if fewer bytes may come from the device than are read.
    pub fn hides_bytes(&self) -> bool {
        let of_others =
            || self.others.iter().any(|other| files::sparse_or_compressed_bytes(&other.file).is_some());
        of_others()
            || match &self.bytes {
                ContentSource::Formula { dataset } => files::is_hidden_by_filesystem(dataset.file()),
                ContentSource::New { .. } => false,
                ContentSource::UserFile { file, .. } => files::sparse_or_compressed_bytes(file).is_some(),
            }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        match &self.bytes {
            ContentSource::Formula { dataset } => dataset.file(),
            ContentSource::UserFile { file, .. } => file,
            ContentSource::New { file } => file.file(),
        }
    }

    /// The seed from which the bytes follow, if pagewise wrote them.
    pub fn seed(&self) -> Option<u64> {
        match &self.bytes {
            ContentSource::Formula { dataset } => Some(dataset.seed()),
            ContentSource::UserFile { .. } | ContentSource::New { .. } => None,
        }
    }

    /// Part of the span in the page cache, of all of its files; unknown if it is of one of them.
    pub fn residency(&self, span_bytes: u64) -> Residency {
        let mut parts = self.parts(span_bytes).map(|(file, bytes)| cache::residency(file, bytes));
        let first = parts.next().expect("there is a file");
        parts.fold(first, |all, part| match all.resident_bytes.zip(part.resident_bytes) {
            Some((all_bytes, bytes)) => Residency { resident_bytes: Some(all_bytes + bytes), ..all },
            None if all.resident_bytes.is_none() => all,
            None => part,
        })
    }

    /// The filesystem, if it keeps its files in memory.
    pub fn in_memory(&self) -> Option<String> {
        cache::in_memory(self.file())
    }

    /// Fail if a file has changed since the run began.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
        let (size, identity) = match &self.bytes {
            ContentSource::UserFile { identity, .. } => (identity.file_bytes.0, Some(identity)),
            _ => (self.file_bytes, None),
        };
        unchanged(self.file(), &self.path, size, identity.map(|identity| identity.modified_ns))?;
        self.others.iter().try_for_each(|OtherFile { path, file, identity }| {
            unchanged(file, path, identity.file_bytes.0, Some(identity.modified_ns))
        })
    }

    /// Evict the file from the page cache, and verify it.
    ///
    /// With `drop_caches`, drop the page cache of the whole machine if the file cannot be evicted
    /// otherwise.
    pub fn make_cold(&self, span_bytes: u64, drop_caches: bool) -> Result<(), NoState> {
        self.parts(span_bytes).try_for_each(|(file, bytes)| make_cold(file, bytes, drop_caches))
    }

    /// Let its pages go, as far as they go at once. A group that is charged for them is then
    /// removed in little time; emptying it page by page takes five times as long.
    pub fn let_go(&self) {
        for (file, _) in self.parts(0) {
            let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }

    /// Bring the span into the page cache, and verify it.
    pub fn make_warm(&self, span_bytes: u64, stop: &AtomicBool) -> Result<(), NoState> {
        let warmed = |(file, bytes)| match cache::warm(file, bytes, stop) {
            Ok(_) => Ok(()),
            Err(WarmError::Stopped { .. }) => Err(NoState::Stopped),
            Err(error @ (WarmError::TooLarge { .. } | WarmError::DoesNotStay { .. })) => {
                Err(NoState::Unavailable(error.to_string()))
            }
            Err(error) => {
                Err(NoState::Failed(Failure { kind: FailureKind::NotWarm, detail: error.to_string() }))
            }
        };
        self.parts(span_bytes).try_for_each(warmed)
    }

    /// Bring the pages into the page cache that were there when each file was recorded, and no
    /// others, and verify it.
    pub fn make_as_recorded(
        &self,
        span_bytes: u64,
        recorded: &[ResidentPages],
        drop_caches: bool,
        stop: &AtomicBool,
    ) -> Result<(), NoState> {
        self.make_cold(span_bytes, drop_caches)?;
        let pages = recorded.iter().map(ResidentPages::count).sum::<u64>();
        let needed = pages.saturating_mul(rustix::param::page_size() as u64);
        if let Some(available) = Memory::read().available_bytes.filter(|available| needed > *available) {
            return Err(NoState::Unavailable(format!(
                "{needed} bytes of the file were in the page cache when it was recorded, and {available} of memory are available"
            )));
        }
        let failed = |detail| NoState::Failed(Failure { kind: FailureKind::NotAsRecorded, detail });
        for ((file, bytes), pages) in self.parts(span_bytes).zip(recorded) {
            match cache::pages::read_pages(file, pages, bytes, stop) {
                Ok(()) => {}
                Err(WarmError::Stopped { .. }) => return Err(NoState::Stopped),
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        let (missing, added) = self.unlike_recorded(span_bytes, recorded).map_err(NoState::Unavailable)?;
        if (missing, added) == (0, 0) {
            return Ok(());
        }
        Err(failed(format!(
            "{missing} bytes of the file that were in the page cache when it was recorded did not come into it, and {added} others did"
        )))
    }

    /// Bytes of pages that are not in the page cache and were when their file was recorded, and of
    /// pages that are there and were not; or why that is not known.
    pub fn unlike_recorded(&self, span_bytes: u64, recorded: &[ResidentPages]) -> Result<(u64, u64), String> {
        let page = rustix::param::page_size() as u64;
        let (mut missing, mut added) = (0u64, 0u64);
        for ((file, bytes), pages) in self.parts(span_bytes).zip(recorded) {
            let now = cache::pages::resident_pages(file, bytes).map_err(|reason| {
                format!("which pages of the file are in the page cache is unknown: {reason}")
            })?;
            missing = missing.saturating_add(pages.missing_in(&now).saturating_mul(page));
            added += now.missing_in(pages) * page;
        }
        Ok((missing, added))
    }

    /// The bytes that a read at `offset` must return.
    pub fn true_bytes(&self, offset: u64, into: &mut [u8]) -> Result<(), ConversationError> {
        match &self.bytes {
            ContentSource::Formula { dataset } => {
                dataset.content().fill(dataset.seed(), offset, into);
                Ok(())
            }
            ContentSource::New { .. } => unreachable!("a file that is written is read back, and not read"),
            ContentSource::UserFile { direct: Some(direct), .. }
                if read_direct(direct, offset, into).is_ok() =>
            {
                Ok(())
            }
            ContentSource::UserFile { file, .. } => file.read_exact_at(into, offset).map_err(|error| {
                ConversationError::Broken(Failure {
                    kind: FailureKind::FileChanged,
                    detail: format!("{} cannot be read at offset {offset}: {error}", self.path.display()),
                })
            }),
        }
    }
}

/// Fail if a file of this size, changed at that time, is no longer so.
fn unchanged(file: &File, path: &Path, then_bytes: u64, modified_ns: Option<i64>) -> Result<(), Failure> {
    let changed = |detail: String| Err(Failure { kind: FailureKind::FileChanged, detail });
    let now = match files::identity_of(file) {
        Ok(now) => now,
        Err(error) => return changed(format!("{} cannot be examined any more: {error}", path.display())),
    };
    if now.file_bytes.0 != then_bytes {
        return changed(format!(
            "{} changed its size from {then_bytes} to {} bytes during the run",
            path.display(),
            now.file_bytes.0
        ));
    }
    match modified_ns {
        Some(modified_ns) if now.modified_ns != modified_ns => {
            changed(format!("{} was written to during the run", path.display()))
        }
        _ => Ok(()),
    }
}

/// Evict a file from the page cache, and verify it.
fn make_cold(file: &File, span_bytes: u64, drop_caches: bool) -> Result<(), NoState> {
    let mut evicted = cache::evict(file, span_bytes);
    if drop_caches && matches!(evicted, Err(EvictError::Mapped { .. } | EvictError::Stays { .. })) {
        if let Err(error) = cache::drop_all() {
            return Err(NoState::Unavailable(format!("the page cache cannot be dropped: {error}")));
        }
        evicted = cache::evict(file, span_bytes);
    }
    match evicted {
        Ok(_) => Ok(()),
        Err(error @ EvictError::InMemory { .. }) => Err(NoState::Unavailable(error.to_string())),
        Err(error) => Err(NoState::Failed(Failure { kind: FailureKind::NotCold, detail: error.to_string() })),
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let ContentSource::New { file } = &self.bytes {
            // The journal lists what remains, for the sweep at the end of the run.
            let _ = file.remove();
        }
    }
}

/// Read by O_DIRECT, so that the comparison does not warm the file.
fn read_direct(file: &File, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
    let start = offset / DIRECT_ALIGNMENT * DIRECT_ALIGNMENT;
    let end = (offset + into.len() as u64).next_multiple_of(DIRECT_ALIGNMENT);
    let mut buffer = AnonymousMemory::new((end - start) as usize)?;
    let (inner, mut received) = ((offset - start) as usize, 0);
    while received < inner + into.len() {
        match file.read_at(&mut buffer.bytes_mut()[received..], start + received as u64)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => received += read,
        }
    }
    into.copy_from_slice(&buffer.bytes()[inner..inner + into.len()]);
    Ok(())
}

/// Minimum rate of storage; set-up of a whole file times out below it.
const SLOWEST_BYTES_PER_SECOND: u64 = 2 << 20;

/// Maximum time to read `bytes`.
pub fn slowest(bytes: u64) -> Duration {
    Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND)
}

#[cfg(test)]
mod tests;
