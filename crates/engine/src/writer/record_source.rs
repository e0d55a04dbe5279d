//! Content of the records: pieces of a source that stays in the CPU's nearest caches.

use pagewise_model::RecordRing;
use pagewise_model::ring::SOURCE_PERIOD;
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::AnonymousMemory;
use rustix::fs::{Mode, OFlags};

use super::setup::impossible;
use crate::failure::{failed, short};

/// The records of a job, in order.
pub(super) struct RecordSource {
    /// One period and a record.
    source: AnonymousMemory,
    record_bytes: usize,
    /// Offset of the next record in the source; below the period.
    place: usize,
    /// Bytes of the next record that were already handed out.
    begun: usize,
}

impl RecordSource {
    /// Read the source of a job into memory.
    pub(super) fn read(job: &Job) -> Result<Self, CallFailure> {
        let path = &job.source_path;
        if job.source_period == 0 {
            return Err(impossible(path, "a source without a period holds no records".to_string()));
        }
        let len = (job.source_period + job.record_bytes) as usize;
        let fail = |call: &'static str| move |error: std::io::Error| failed(call, error, path, 0);
        let mut source = AnonymousMemory::new(len).map_err(fail("mmap"))?;
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| fail("open")(errno.into()))?;
        let mut received = 0;
        while received < len {
            match rustix::io::pread(&file, &mut source.bytes_mut()[received..], received as u64) {
                Ok(0) => return Err(short("pread", path, 0, len, received)),
                Ok(bytes) => received += bytes,
                Err(errno) => return Err(failed("pread", errno.into(), path, received as u64)),
            }
        }
        Ok(Self { source, record_bytes: job.record_bytes as usize, place: 0, begun: 0 })
    }

    /// Size of a record.
    pub(super) fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Record `index`, in any order.
    pub(super) fn record(&self, index: u64, ring: &RecordRing) -> &[u8] {
        self.at(ring.source_range(index).start)
    }

    /// The next record is that at `offset` of the file.
    #[inline(always)]
    pub(super) fn begin_at(&mut self, offset: u64) {
        self.place = (offset % SOURCE_PERIOD) as usize;
    }

    /// The record that begins at `place` of the source.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> &[u8] {
        &self.source.bytes()[place..place + self.record_bytes]
    }

    /// The next record.
    #[inline(always)]
    pub(super) fn next(&mut self) -> &[u8] {
        let place = self.place;
        self.place = wrapped(place + self.record_bytes, self.source.bytes().len() - self.record_bytes);
        self.at(place)
    }

    /// Fill `into`, whose length is a multiple of the record, with the next records.
    #[inline(always)]
    pub(super) fn records(&mut self, into: &mut [u8]) {
        let (place, left) = copy_records(into, self.source.bytes(), self.record_bytes, self.place);
        debug_assert!(left == 0, "room for a part of a record");
        self.place = place;
    }

    /// Fill `into` with the next bytes; a record may begin here and end in the next call.
    pub(super) fn stream(&mut self, into: &mut [u8]) {
        let rest = if self.begun == 0 { 0 } else { self.record_bytes - self.begun };
        let (head, body) = into.split_at_mut(rest.min(into.len()));
        self.part(head);
        if !body.is_empty() {
            let (place, left) = copy_records(body, self.source.bytes(), self.record_bytes, self.place);
            let len = body.len();
            self.place = place;
            self.part(&mut body[len - left..]);
        }
    }

    /// Fill `into` with bytes of one record.
    fn part(&mut self, into: &mut [u8]) {
        let start = self.place + self.begun;
        into.copy_from_slice(&self.source.bytes()[start..start + into.len()]);
        self.begun += into.len();
        if self.begun == self.record_bytes {
            self.begun = 0;
            self.place =
                wrapped(self.place + self.record_bytes, self.source.bytes().len() - self.record_bytes);
        }
    }
}

/// An offset in the source, wrapped at the end of the period.
#[inline(always)]
fn wrapped(place: usize, period: usize) -> usize {
    match place.checked_sub(period) {
        None => place,
        Some(beyond) if beyond < period => beyond,
        // Records may be longer than the period.
        Some(beyond) => beyond % period,
    }
}

/// Timed region:
/// `for each record that fits: memcpy(into + i * record, source + place, record); place = (place + record) mod period`.
/// Returns the place of the next record, and the rest at the end of `into`, which is shorter than a
/// record.
#[inline(never)]
fn copy_records(into: &mut [u8], source: &[u8], record_bytes: usize, mut place: usize) -> (usize, usize) {
    let period = source.len() - record_bytes;
    let mut slots = into.chunks_exact_mut(record_bytes);
    for slot in &mut slots {
        slot.copy_from_slice(&source[place..place + record_bytes]);
        place = wrapped(place + record_bytes, period);
    }
    (place, slots.into_remainder().len())
}
