//! Files of a run: datasets, the user's own file, files for workers to write; and the state of
//! their page cache.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pagewise_host::memory::Memory;
use pagewise_host::{
    Dataset, EvictError, FileKey, Residency, WarmError, WrittenFile, cache, files, reference, written,
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

/// A file of a run.
pub struct Input {
    bytes: ContentSource,
    /// Path.
    pub path: PathBuf,
    /// Identity in mappings and descriptors.
    pub key: FileKey,
    /// Size.
    pub file_bytes: u64,
    /// Actors that have written over it.
    rewritten: AtomicU64,
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

    /// Those of a use.
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
        Ok(Self {
            path: dataset.path().to_path_buf(),
            key: FileKey::of(dataset.file())?,
            file_bytes: dataset.file_bytes(),
            bytes: ContentSource::Formula { dataset },
            rewritten: AtomicU64::new(0),
        })
    }

    /// The user's file, opened for reading.
    pub fn of_user(path: PathBuf, file: File, identity: FileIdentity) -> std::io::Result<Self> {
        let file_bytes = identity.file_bytes.0;
        let direct = File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&path).ok();
        let key = FileKey::of(&file)?;
        let bytes = ContentSource::UserFile { file, direct, identity };
        Ok(Self { path, key, file_bytes, bytes, rewritten: AtomicU64::new(0) })
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
        let (path, bytes) = (path.to_path_buf(), ContentSource::New { file });
        Ok(Self { path, key, file_bytes, bytes, rewritten: AtomicU64::new(0) })
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

    /// True if fewer bytes may come from the device than are read.
    pub fn hides_bytes(&self) -> bool {
        match &self.bytes {
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

    /// Part of the span in the page cache.
    pub fn residency(&self, span_bytes: u64) -> Residency {
        cache::residency(self.file(), span_bytes)
    }

    /// The filesystem, if it keeps its files in memory.
    pub fn in_memory(&self) -> Option<String> {
        cache::in_memory(self.file())
    }

    /// Fail if the file has changed since the run began.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
        let changed = |detail: String| Err(Failure { kind: FailureKind::FileChanged, detail });
        let now = match files::identity_of(self.file()) {
            Ok(now) => now,
            Err(error) => {
                return changed(format!("{} cannot be examined any more: {error}", self.path.display()));
            }
        };
        let then_bytes = self.file_bytes;
        if now.file_bytes.0 != then_bytes {
            return changed(format!(
                "{} changed its size from {then_bytes} to {} bytes during the run",
                self.path.display(),
                now.file_bytes.0
            ));
        }
        match &self.bytes {
            ContentSource::UserFile { identity, .. } if now.modified_ns != identity.modified_ns => {
                changed(format!("{} was written to during the run", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Evict the file from the page cache, and verify it.
    ///
    /// With `drop_caches`, drop the page cache of the whole machine if the file cannot be evicted
    /// otherwise.
    pub fn make_cold(&self, span_bytes: u64, drop_caches: bool) -> Result<(), NoState> {
        let mut evicted = cache::evict(self.file(), span_bytes);
        if drop_caches && matches!(evicted, Err(EvictError::Mapped { .. } | EvictError::Stays { .. })) {
            if let Err(error) = cache::drop_all() {
                return Err(NoState::Unavailable(format!("the page cache cannot be dropped: {error}")));
            }
            evicted = cache::evict(self.file(), span_bytes);
        }
        match evicted {
            Ok(_) => Ok(()),
            Err(error @ EvictError::InMemory { .. }) => Err(NoState::Unavailable(error.to_string())),
            Err(error) => {
                Err(NoState::Failed(Failure { kind: FailureKind::NotCold, detail: error.to_string() }))
            }
        }
    }

    /// Let its pages go, as far as they go at once. A group that is charged for them is then
    /// removed in little time; emptying it page by page takes five times as long.
    pub fn let_go(&self) {
        let _ = rustix::fs::fadvise(self.file(), 0, None, rustix::fs::Advice::DontNeed);
    }

    /// Bring the span into the page cache, and verify it.
    pub fn make_warm(&self, span_bytes: u64, stop: &AtomicBool) -> Result<(), NoState> {
        match cache::warm(self.file(), span_bytes, stop) {
            Ok(_) => Ok(()),
            Err(WarmError::Stopped { .. }) => Err(NoState::Stopped),
            Err(error @ (WarmError::TooLarge { .. } | WarmError::DoesNotStay { .. })) => {
                Err(NoState::Unavailable(error.to_string()))
            }
            Err(error) => {
                Err(NoState::Failed(Failure { kind: FailureKind::NotWarm, detail: error.to_string() }))
            }
        }
    }

    /// Bring the pages into the page cache that were there when the file was recorded, and no
    /// others, and verify it.
    pub fn make_as_recorded(
        &self,
        span_bytes: u64,
        recorded: &ResidentPages,
        drop_caches: bool,
        stop: &AtomicBool,
    ) -> Result<(), NoState> {
        self.make_cold(span_bytes, drop_caches)?;
        let needed = recorded.count().saturating_mul(rustix::param::page_size() as u64);
        if let Some(available) = Memory::read().available_bytes.filter(|available| needed > *available) {
            return Err(NoState::Unavailable(format!(
                "{needed} bytes of the file were in the page cache when it was recorded, and {available} of memory are available"
            )));
        }
        let failed = |detail| NoState::Failed(Failure { kind: FailureKind::NotAsRecorded, detail });
        match cache::pages::read_pages(self.file(), recorded, span_bytes, stop) {
            Ok(()) => {}
            Err(WarmError::Stopped { .. }) => return Err(NoState::Stopped),
            Err(error) => return Err(failed(error.to_string())),
        }
        let (missing, added) = self.unlike_recorded(span_bytes, recorded).map_err(NoState::Unavailable)?;
        if (missing, added) == (0, 0) {
            return Ok(());
        }
        Err(failed(format!(
            "{missing} bytes of the file that were in the page cache when it was recorded did not come into it, and {added} others did"
        )))
    }

    /// Bytes of pages that are not in the page cache and were when the file was recorded, and of
    /// pages that are there and were not; or why that is not known.
    pub fn unlike_recorded(&self, span_bytes: u64, recorded: &ResidentPages) -> Result<(u64, u64), String> {
        let now = cache::pages::resident_pages(self.file(), span_bytes).map_err(|reason| {
            format!("which pages of the file are in the page cache is unknown: {reason}")
        })?;
        let page = rustix::param::page_size() as u64;
        Ok((recorded.missing_in(&now).saturating_mul(page), now.missing_in(recorded) * page))
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
