//! Writers of records into a ring file, one file for each access.
//!
//! A writer appends a batch of records in one call, so that the choice of method costs one indirect
//! call per batch and nothing per record. [`pagewise_model::ring`] defines the positions and
//! content of records: none straddles the end of the file, and the cursor moves by the bytes that
//! reached the file.
//!
//! * `records`: records as operations;
//! * `record_source`: the content of records;
//! * `progress`: the cursor and due syncs;
//! * `setup`: open, allocate, map, advise;
//! * `mmap`, `anonymous`: stores directly into memory;
//! * `call`: pwrite(2) and write(2);
//! * `staging`: records that are collected in a buffer first;
//! * `blocks`: buffers of whole blocks;
//! * `scattered`: records in no order, one at a time;
//! * `uring`: writes in flight;
//! * `durable`: the sync call;
//! * `group`: records that are committed one by one, by one thread or several;
//! * `pretouch`: a thread that makes pages writable ahead of the stores.

mod anonymous;
mod blocks;
mod call;
mod durable;
mod group;
mod mmap;
mod pretouch;
mod progress;
mod record_source;
mod records;
mod scattered;
mod setup;
mod staging;
mod uring;

use std::ops::Range;

use pagewise_model::checksum::Consumption;
use pagewise_model::ring::RecordRing;
use pagewise_model::{Access, Method, Sync, SyncCall, Writes};
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::FileMapping;
use rustix::fs::OFlags;

use crate::clock::now_ns;
use crate::effects::Effects;
use crate::operations::Latencies;
use crate::sampling::ThreadWork;
use progress::WriteProgress;
use record_source::RecordSource;
use records::Records;
use scattered::AccessOrder;
use setup::impossible;

/// A writer of records, bound to a file. One thread, records in order.
pub trait Writer: Send {
    /// A sample begins, which touches this word of each page that it reads.
    fn begin(&mut self, _touch_at: u64) {}

    /// Write the next `count` records. They may stay staged or in flight.
    fn append(&mut self, count: u64) -> Result<(), CallFailure>;

    /// Put everything staged or in flight into the file; if the job asks for syncs within the
    /// measured region, sync the remaining bytes.
    fn finish(&mut self) -> Result<(), CallFailure>;

    /// Bytes that reached the file so far: were stored into its mapping, or accepted by the kernel.
    fn written(&self) -> u64;

    /// Sum of the checksums of the records that were read since the last call of this.
    fn take_checksum(&mut self) -> u64 {
        0
    }

    /// Sync everything, by the call of the job.
    fn sync(&mut self) -> Result<(), CallFailure>;

    /// The durations of the syncs since the last call of this, if syncs belong to the measured
    /// region.
    fn take_sync_durations(&mut self) -> Option<Latencies>;
}

/// Destination of bytes, and its sync.
trait Sink: Send {
    /// Put `bytes` at `offset` of the file.
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure>;

    /// Wait until the bytes of `ranges` are on the device.
    fn sync_ranges(&mut self, ranges: [Range<u64>; 2]) -> Result<(), CallFailure>;

    /// Wait until all bytes are on the device.
    fn sync_all(&mut self) -> Result<(), CallFailure>;
}

/// Sync within the measured region.
fn sync_now(sink: &mut impl Sink, progress: &mut WriteProgress) -> Result<(), CallFailure> {
    let begun = now_ns();
    sink.sync_ranges(progress.unsynced())?;
    progress.synced(now_ns() - begun);
    Ok(())
}

/// Put `bytes` at `offset`; where the write is the sync, its time is that of a sync.
#[inline(always)]
fn put_synced(
    sink: &mut impl Sink,
    progress: &mut WriteProgress,
    bytes: &[u8],
    offset: u64,
) -> Result<(), CallFailure> {
    if !progress.writes_sync() {
        return sink.put(bytes, offset);
    }
    let begun = now_ns();
    sink.put(bytes, offset)?;
    progress.record_sync(now_ns() - begun);
    Ok(())
}

/// Sync the rest at the end of the measured region, if syncs belong to it.
fn sync_rest(sink: &mut impl Sink, progress: &mut WriteProgress) -> Result<(), CallFailure> {
    if progress.owes_sync() { sync_now(sink, progress) } else { Ok(()) }
}

/// Common input of all writers of a job.
#[derive(Clone, Debug)]
struct WriteTarget {
    path: String,
    file_bytes: u64,
    record_bytes: usize,
    /// Records that are read before each that is written.
    reads_each: u32,
    /// Number of others that are written between its write and a read of it, at least.
    near: u64,
    /// Consumption of the records that are read.
    consumption: Consumption,
    ring_bytes: u64,
    sync: Sync,
    sync_call: SyncCall,
    direct_alignment: usize,
    direct_flag: u32,
    effects: Effects,
}

impl WriteTarget {
    fn new(method: &Method, job: &Job, writes: Writes) -> Result<Self, CallFailure> {
        let refuse = |detail: String| impossible(&job.path, detail);
        if job.record_bytes == 0 {
            return Err(refuse("records of no length cannot be written".to_string()));
        }
        if job.record_bytes > job.file_bytes {
            return Err(refuse(format!(
                "a record of {} bytes does not fit into {}, which has {}",
                job.record_bytes, job.path, job.file_bytes
            )));
        }
        let ring = RecordRing::new(job.file_bytes, job.record_bytes, 1);
        Ok(Self {
            path: job.path.clone(),
            file_bytes: job.file_bytes,
            record_bytes: job.record_bytes as usize,
            reads_each: writes.reads_each,
            consumption: ring.consumption(job.page_bytes.max(1)),
            near: ring.near(),
            ring_bytes: ring.bytes(),
            sync: writes.sync,
            // Without syncs it is not used.
            sync_call: writes.sync_call.unwrap_or(SyncCall::Fdatasync),
            direct_alignment: job.direct_alignment.max(1) as usize,
            direct_flag: job.direct_flag,
            effects: Effects::of(method),
        })
    }

    /// Access of a descriptor. Where writes are direct, the bytes after the last record in its
    /// block are read before the block is written.
    fn access_flags(&self) -> OFlags {
        if self.effects.direct || self.reads_each > 0 { OFlags::RDWR } else { OFlags::WRONLY }
    }

    fn progress(&self) -> WriteProgress {
        WriteProgress::new(self.ring_bytes, self.sync, self.sync_call)
    }
}

/// Open the work of each thread of a job, which the method must be able to do
/// ([`Method::refuses`]). This is set-up and timed as such. Opens the file, which has its final
/// size already, allocates, maps and advises in the order of the options. `table` has the accesses
/// of updates.
pub fn open_threads(
    method: &Method,
    job: &Job,
    writes: Writes,
    table: Option<FileMapping>,
) -> Result<Vec<Box<dyn ThreadWork>>, CallFailure> {
    match writes.sync {
        Sync::Commit => group::open(method, job, &WriteTarget::new(method, job, writes)?),
        _ => Ok(vec![Box::new(Records::new(open(method, job, writes, table)?))]),
    }
}

/// Open the writer of a job of one thread without commits.
fn open(
    method: &Method,
    job: &Job,
    writes: Writes,
    table: Option<FileMapping>,
) -> Result<Box<dyn Writer>, CallFailure> {
    let order = AccessOrder::new(table, job, writes);
    let target = WriteTarget::new(method, job, writes)?;
    let source = RecordSource::read(job)?;
    match method.access() {
        Access::Uring => uring::open(method, &target, source, order),
        _ if writes.is_update() => scattered::open(method, job, &target, source, order),
        Access::Mmap => mmap::open(&target, source),
        Access::Pwrite | Access::Write => call::open(method, &target, source),
        Access::Anonymous => anonymous::open(&target, source),
        Access::Pread | Access::Read | Access::Unknown => {
            Err(impossible(&job.path, format!("'{method}' does not write")))
        }
    }
}

#[cfg(test)]
mod tests;
