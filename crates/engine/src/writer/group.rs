//! `sync=commit`: each record is on the device before its thread writes the next one.
//!
//! Threads take records in turn. A thread that has written its record waits for a sync that began
//! after its write. If none is under way it syncs everything written so far (the leader); records
//! written meanwhile share the next sync (group commit). One thread therefore syncs after each
//! record. Where the write is the sync, nobody waits for others.
//!
//! Records of a pass over the ring are committed before any record of the next one is written, so
//! that an older record never overwrites a newer one.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pagewise_model::{Access, Method, RecordRing};
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::AnonymousMemory;

use super::call::{Pwrite, Write};
use super::mmap::MappedFile;
use super::record_source::RecordSource;
use super::setup::impossible;
use super::{Sink, WriteTarget};
use crate::clock::now_ns;
use crate::operations::{Done, Latencies, Operations};
use crate::sampling::{ThreadWork, empty_latencies};

/// A file that several threads write to at once.
pub(super) trait SharedSink: Send + Sync {
    /// Put `bytes` at `offset` of the file.
    fn put(&self, bytes: &[u8], offset: u64) -> Result<(), CallFailure>;

    /// Wait until the bytes of `range` are on the device.
    fn sync(&self, range: Range<u64>) -> Result<(), CallFailure>;
}

/// State shared by the threads of a job.
pub(super) struct Group {
    sink: Box<dyn SharedSink>,
    ring: RecordRing,
    record_bytes: u64,
    writes_sync: bool,
    /// The next record that nobody has taken.
    next: AtomicU64,
    progress: Mutex<GroupProgress>,
    changed: Condvar,
}

#[derive(Default)]
struct GroupProgress {
    /// Records written so far. The number that a thread reads after its own is its ticket.
    written: u64,
    /// Tickets up to this one are on the device.
    synced: u64,
    /// Records written since the last sync began: the lowest, and the one after the highest.
    unsynced: Option<Range<u64>>,
    is_syncing: bool,
    failure: Option<CallFailure>,
}

/// The work of one thread.
struct Committer {
    group: Arc<Group>,
    source: RecordSource,
    /// Whole blocks for O_DIRECT, which needs aligned memory.
    block: Option<AnonymousMemory>,
    written: u64,
    durations: Latencies,
}

/// Open the work of each thread.
pub(super) fn open(
    method: &Method,
    job: &Job,
    target: &WriteTarget,
) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
    let threads = job.threads.max(1);
    let sink: Box<dyn SharedSink> = match method.access() {
        Access::Mmap => Box::new(MappedFile::open(target)?),
        Access::Pwrite => Box::new(Pwrite::open(target)?),
        Access::Write if threads == 1 => Box::new(Mutex::new(Write::open(target)?)),
        Access::Write => {
            let detail =
                format!("{method} cannot commit by {threads} threads: a descriptor has one position");
            return Err(impossible(&job.path, detail));
        }
        _ => return Err(impossible(&job.path, format!("'{method}' does not commit records"))),
    };
    let group = Group::new(sink, job, target.sync_call.is_write());
    committers(group, job, || target.effects.direct.then(|| target.memory(target.record_bytes)).transpose())
}

/// The work of each thread; `block` makes memory for whole blocks, where they are needed.
pub(super) fn committers(
    group: Group,
    job: &Job,
    block: impl Fn() -> Result<Option<AnonymousMemory>, CallFailure>,
) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
    let group = Arc::new(group);
    let committer = |_| {
        let (group, durations) = (group.clone(), empty_latencies());
        let committer =
            Committer { group, source: RecordSource::read(job)?, block: block()?, written: 0, durations };
        Ok(Box::new(committer) as Box<dyn ThreadWork>)
    };
    (0..job.threads.max(1)).map(committer).collect()
}

impl Group {
    pub(super) fn new(sink: Box<dyn SharedSink>, job: &Job, writes_sync: bool) -> Self {
        Self {
            sink,
            ring: RecordRing::new(job.file_bytes, job.record_bytes, 1),
            record_bytes: job.record_bytes,
            writes_sync,
            next: AtomicU64::new(0),
            progress: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, GroupProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, progress: MutexGuard<'a, GroupProgress>) -> MutexGuard<'a, GroupProgress> {
        self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait until all passes before that of record `index` are on the device.
    fn await_pass(&self, index: u64) -> Result<(), CallFailure> {
        let before = index / self.ring.slots() * self.ring.slots();
        if before == 0 {
            return Ok(());
        }
        let mut progress = self.progress();
        while progress.synced < before {
            progress.go_on()?;
            progress = self.wait(progress);
        }
        Ok(())
    }

    /// Count record `index` as written, and return when it is on the device. Syncs of this thread
    /// are recorded.
    fn commit(&self, index: u64, durations: &mut Latencies) -> Result<(), CallFailure> {
        let mut progress = self.progress();
        progress.written += 1;
        let ticket = progress.written;
        if self.writes_sync {
            progress.synced = ticket;
            drop(progress);
            self.changed.notify_all();
            return Ok(());
        }
        progress.unsynced = Some(match progress.unsynced.take() {
            None => index..index + 1,
            Some(range) => range.start.min(index)..range.end.max(index + 1),
        });
        while progress.synced < ticket {
            progress.go_on()?;
            let records = if progress.is_syncing { None } else { progress.unsynced.take() };
            match records {
                None => progress = self.wait(progress),
                Some(records) => {
                    let covered = progress.written;
                    progress.is_syncing = true;
                    drop(progress);
                    let begun = now_ns();
                    let synced = self.sink.sync(self.bytes_of(records));
                    let took_ns = now_ns() - begun;
                    progress = self.progress();
                    progress.is_syncing = false;
                    match synced {
                        Ok(()) => {
                            progress.synced = covered;
                            durations.saturating_record(took_ns);
                        }
                        Err(failure) => progress.failure = Some(failure),
                    }
                    self.changed.notify_all();
                }
            }
        }
        Ok(())
    }

    /// The bytes of records of one pass.
    fn bytes_of(&self, records: Range<u64>) -> Range<u64> {
        let start = records.start % self.ring.slots();
        start * self.record_bytes..(start + records.end - records.start) * self.record_bytes
    }

    /// Let the other threads end too.
    fn fail(&self, failure: CallFailure) -> CallFailure {
        self.progress().failure = Some(failure.clone());
        self.changed.notify_all();
        failure
    }
}

impl GroupProgress {
    fn go_on(&self) -> Result<(), CallFailure> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl Committer {
    /// Timed region: `put(source + place, position); wait for a sync that began afterwards`.
    fn commit(&mut self, index: u64) -> Result<(), CallFailure> {
        let Self { group, source, block, written, durations } = self;
        group.await_pass(index)?;
        let record = source.record(index, &group.ring);
        let bytes = match block {
            None => record,
            Some(block) => {
                block.bytes_mut().copy_from_slice(record);
                block.bytes()
            }
        };
        let offset = index % group.ring.slots() * group.record_bytes;
        let begun = if group.writes_sync { now_ns() } else { 0 };
        group.sink.put(bytes, offset).map_err(|failure| group.fail(failure))?;
        if group.writes_sync {
            durations.saturating_record(now_ns() - begun);
        }
        *written += group.record_bytes;
        group.commit(index, durations)
    }
}

impl Operations for Committer {
    /// Records that nobody has taken yet; where they are in the file follows from their number, and
    /// not from `position`.
    fn perform(&mut self, _: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        let mut operations = 0;
        while operations < wanted {
            let index = self.group.next.fetch_add(1, Ordering::Relaxed);
            if index >= end {
                break;
            }
            self.commit(index)?;
            operations += 1;
        }
        Ok(Done { operations, checksum: 0 })
    }

    fn bytes(&self) -> u64 {
        self.written
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        Some(std::mem::replace(&mut self.durations, empty_latencies()))
    }
}

impl SharedSink for Pwrite {
    fn put(&self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        self.put_at(bytes, offset)
    }

    fn sync(&self, range: Range<u64>) -> Result<(), CallFailure> {
        self.sync_parts([range, 0..0])
    }
}

/// write(2) moves the file's position, so it is for one thread, and never waits here.
impl SharedSink for Mutex<Write> {
    fn put(&self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        self.lock().unwrap_or_else(PoisonError::into_inner).put(bytes, offset)
    }

    fn sync(&self, range: Range<u64>) -> Result<(), CallFailure> {
        self.lock().unwrap_or_else(PoisonError::into_inner).sync_ranges([range, 0..0])
    }
}

impl SharedSink for MappedFile {
    fn put(&self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        self.mapping.store(offset as usize, bytes);
        Ok(())
    }

    fn sync(&self, range: Range<u64>) -> Result<(), CallFailure> {
        MappedFile::sync(self, [range, 0..0])
    }
}
