//! Files that a workload writes: creation, preparation, and reading back.
//!
//! A file is either *new* (sparse: its size is set and nothing is stored) or was written once and
//! has nothing dirty: *warm* in the page cache, or evicted. It holds the complement of the first
//! pass's records, so that a position left out by a worker is detected, like the zeros of a new
//! one. Nothing here is timed, and no file is used twice.

mod read_back;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pagewise_model::RecordRing;
use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_model::sample::Written;

use crate::space::Space;
use crate::steps::{RunStep, reached};
use crate::{cache, scratch};
pub use read_back::{FirstRecords, ReadBack, missing_records};
use rustix::fs::Advice;

/// Size of the writes that make a file warm, except the last. As for datasets, it determines the
/// size of the page cache's folios.
const WRITE_BYTES: u64 = crate::dataset::WRITE_BYTES;
/// Maximum dirty memory: after this many bytes the file is synced.
const SYNC_BYTES: u64 = 64 << 20;
/// Places at which the size of folios is found.
const FOLIO_PROBES: u64 = 5;
/// A filesystem with less free space than this is full: less is left than a write requests.
const FULL_BYTES: u64 = 1 << 20;

/// A file for a workload to write. Dropping it removes nothing: [`WrittenFile::remove`] does, or
/// the sweep after a dead run.
#[derive(Debug)]
pub struct WrittenFile {
    path: PathBuf,
    file: File,
    file_bytes: u64,
    before: Before,
    /// Size of its folios, where it was asked for.
    folio_bytes: Option<u64>,
}

/// Content of positions without a written record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// The file was sparse.
    Zeros,
    /// The complement of the record of the first pass.
    Complement,
}

impl WrittenFile {
    /// Make a sparse file of `file_bytes` that only this user may open. An existing name is an
    /// error.
    ///
    /// Call [`crate::dataset::check_space`] before to check that the bytes will fit. A file is
    /// always made anew and never truncated for reuse: ext4 writes back a file truncated to nothing
    /// when it is closed (`auto_da_alloc`, Documentation/admin-guide/ext4.rst), and that would
    /// count as tear-down of a method.
    pub fn create(path: &Path, file_bytes: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        reached(RunStep::NewFileMade);
        let new =
            Self { path: path.to_path_buf(), file, file_bytes, before: Before::Zeros, folio_bytes: None };
        match new.file.set_len(file_bytes) {
            Ok(()) => Ok(new),
            Err(error) => {
                // The first error counts; the rest is swept.
                let _ = new.remove();
                Err(error)
            }
        }
    }

    /// Write the whole file once and sync it: at each position the complement of the first pass's
    /// record, from `source` by [`RecordRing`]; zeros after the last position. Afterwards it is in
    /// the page cache, without dirty pages.
    ///
    /// # Errors
    /// Those of write(2) and fsync(2), such as a full filesystem.
    pub fn make_warm(&mut self, ring: &RecordRing, source: &[u8]) -> io::Result<()> {
        let mut buffer = vec![0; WRITE_BYTES.min(self.file_bytes) as usize];
        let (mut offset, mut synced) = (0, 0);
        while offset < self.file_bytes {
            let piece = &mut buffer[..(self.file_bytes - offset).min(WRITE_BYTES) as usize];
            fill_with_complement(piece, offset, ring, source);
            self.file.write_all_at(piece, offset)?;
            offset += piece.len() as u64;
            if offset - synced >= SYNC_BYTES {
                self.file.sync_data()?;
                synced = offset;
            }
        }
        self.file.sync_all()?;
        self.before = Before::Complement;
        Ok(())
    }

    /// Read the whole file, which has left the page cache, into folios of one page:
    /// POSIX_FADV_RANDOM turns readahead off, which would make larger ones.
    pub fn read_into_small_folios(&self) -> io::Result<()> {
        let reader = File::open(&self.path)?;
        rustix::fs::fadvise(&reader, 0, None, Advice::Random)?;
        let mut buffer = vec![0; WRITE_BYTES.min(self.file_bytes) as usize];
        let mut offset = 0;
        while offset < self.file_bytes {
            let len = (self.file_bytes - offset).min(WRITE_BYTES) as usize;
            reader.read_exact_at(&mut buffer[..len], offset)?;
            offset += len as u64;
        }
        Ok(())
    }

    /// Find the size of a folio in the page cache: the median of the bytes that are dirty after one
    /// byte was written over itself, at a few offsets. Nothing is dirty before or afterwards. It
    /// stays unknown without cachestat(2), and in memory.
    pub fn find_folio_bytes(&mut self) -> io::Result<()> {
        let mut found = Vec::with_capacity(FOLIO_PROBES as usize);
        for probe in 0..FOLIO_PROBES {
            let offset = self.file_bytes / FOLIO_PROBES * probe;
            let mut byte = [0];
            self.file.read_exact_at(&mut byte, offset)?;
            self.file.write_all_at(&byte, offset)?;
            found.extend(self.dirty_bytes().filter(|bytes| *bytes > 0));
            self.file.sync_data()?;
        }
        found.sort_unstable();
        self.folio_bytes = found.get(found.len() / 2).copied();
        Ok(())
    }

    /// Path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, readable and writable.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The size at its creation.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The known state before a worker writes to it; [`WrittenFile::read_back`] fills in the rest.
    pub fn state_before(&self) -> Written {
        Written {
            dirty_before_bytes: self.dirty_bytes(),
            allocated_before_bytes: self.allocated_bytes(),
            folio_bytes: self.folio_bytes,
            ..Written::default()
        }
    }

    /// Bytes of whole pages in the page cache that are not on the device yet, including those under
    /// writeback; a page written to during its writeback counts twice. `None` without cachestat(2).
    /// Files in memory have none.
    pub fn dirty_bytes(&self) -> Option<u64> {
        cache::dirty_bytes(&self.file)
    }

    /// Allocated bytes (st_blocks), on most filesystems including those reserved for dirty pages.
    pub fn allocated_bytes(&self) -> Option<u64> {
        Some(self.file.metadata().ok()?.blocks().saturating_mul(512))
    }

    /// Unlink the file. A file that has taken its name is left alone.
    pub fn remove(&self) -> io::Result<()> {
        scratch::remove_same(&self.file, &self.path)
    }
}

/// True if the filesystem of `file` has no more space for this user, which is why a store into a
/// mapping ends in SIGBUS and a write in ENOSPC. A quota does not show. A filesystem that reports
/// no size is never full.
pub fn is_full(file: &File) -> bool {
    Space::of(file).is_ok_and(|space| space.is_below(FULL_BYTES))
}

/// Fill `piece` with the content of a warm file from `offset` on.
fn fill_with_complement(piece: &mut [u8], offset: u64, ring: &RecordRing, source: &[u8]) {
    let records = ring.bytes().saturating_sub(offset).min(piece.len() as u64) as usize;
    let (slots, tail) = piece.split_at_mut(records);
    let mut done = 0;
    while done < records {
        let (start, len) = range(ring, 0, ring.slots(), offset + done as u64);
        let len = len.min((records - done) as u64) as usize;
        slots[done..done + len].copy_from_slice(&source[start..start + len]);
        done += len;
    }
    slots.iter_mut().for_each(|byte| *byte = !*byte);
    tail.fill(0);
}

/// Position in the source of byte `at` of the file, and the length up to which file and source run
/// in parallel: to the end of the record at which the source begins again, or to slot `end`.
/// Slots up to there hold the records with `pass_records` added to their own numbers.
fn range(ring: &RecordRing, pass_records: u64, end: u64, at: u64) -> (usize, u64) {
    let record_bytes = ring.record_bytes();
    let slot = at / record_bytes;
    let within = at - slot * record_bytes;
    let start = ring.source_range(slot + pass_records).start;
    let records = (SOURCE_PERIOD - start as u64).div_ceil(record_bytes).min(end - slot);
    (start + within as usize, records * record_bytes - within)
}

#[cfg(test)]
mod tests;
