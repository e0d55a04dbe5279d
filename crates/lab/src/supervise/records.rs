//! Records of `append`, or blocks of `fill` and `update`: their positions, their content, and the
//! checksum of those that are read.

use anyhow::{Context, Result};
use pagewise_host::{FirstRecords, touched_word};
use pagewise_model::checksum::{Consumption, weight};
use pagewise_model::{RecordRing, content};
use pagewise_protocol::descriptor_path;
use pagewise_sys::SharedMemory;

/// Records and their content.
pub struct RecordTask {
    /// Positions of the records in the file.
    pub ring: RecordRing,
    source: SharedMemory,
    /// Seed of the content.
    pub seed: u64,
    /// Consumption of the records that are read.
    consumption: Consumption,
    /// Offsets of the accesses, if they have an order of their own.
    pub accesses: Vec<u64>,
}

impl RecordTask {
    /// Records of a ring, with content of a seed, on a machine with pages of `page_bytes`.
    pub fn new(ring: RecordRing, seed: u64, page_bytes: u64) -> Result<Self> {
        let len = ring.source_bytes() as usize;
        let mut source = SharedMemory::create("pagewise-source", len)
            .context("memory for the content of records cannot be had")?;
        content::fill(seed, 0, source.bytes_mut());
        let record_bytes = ring.record_bytes();
        let touch_at = match ring.reads_each() {
            0 => 0,
            _ => touched_word(record_bytes, page_bytes, seed),
        };
        let consumption = ring.consumption(page_bytes).touching(touch_at);
        Ok(Self { ring, source, seed, consumption, accesses: ring.accesses() })
    }

    /// Position in a page of the word that a read touches.
    pub fn touch_at(&self) -> u64 {
        self.consumption.touch_at as u64
    }

    /// Checksum of the records that are read before and between the first `records` that are
    /// written: each holds its record by then, or the complement of it. `None` if there are fewer.
    pub fn checksum(&self, records: u64) -> Option<u64> {
        let (ring, reads) = (&self.ring, self.ring.reads_each());
        if reads == 0 {
            return Some(0);
        }
        if records > ring.records() {
            return None;
        }
        let old: Vec<u8> = self.source().iter().map(|byte| !byte).collect();
        let mut sum = 0u64;
        for (index, accesses) in (0..records).zip(self.accesses.chunks(reads as usize + 1)) {
            for (nth, offset) in (0..reads).zip(accesses) {
                let record = offset / ring.record_bytes();
                let content = if ring.record_in(record, index).is_some() { self.source() } else { &old };
                let of_read = self.consumption.of(&content[ring.source_range(record)]);
                let number = index * u64::from(reads) + u64::from(nth);
                sum = sum.wrapping_add(of_read.wrapping_mul(weight(number)));
            }
        }
        Some(sum)
    }

    /// Content of the records, by [`RecordRing::source_range`].
    pub fn source(&self) -> &[u8] {
        self.source.bytes()
    }

    /// The first of them.
    pub fn first(&self, count: u64) -> FirstRecords<'_> {
        FirstRecords { ring: &self.ring, source: self.source(), count }
    }

    /// Path by which a worker opens the content.
    pub fn source_path(&self) -> String {
        descriptor_path(self.source.file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_see_what_was_written_before_them() {
        for (record, slots) in [(4096u64, 64u64), (1000, 300), (8192, 9)] {
            let ring = RecordRing::new(record * slots + 7, record, 1).scattered(slots / 2).reading(3);
            let task = RecordTask::new(ring, 5, 4096).expect("a task");
            let size = record as usize;
            let mut file: Vec<u8> = (0..slots)
                .flat_map(|slot| task.source()[ring.source_range(slot)].iter().map(|byte| !byte))
                .collect();
            let (mut sum, mut number, mut updated) = (0u64, 0, 0);
            for index in 0..ring.records() {
                assert_eq!(task.checksum(index), Some(sum), "{index} of {slots}");
                for nth in 0..3 {
                    let slot = ring.read(index, nth) as usize;
                    let bytes = &file[slot * size..(slot + 1) * size];
                    updated += u32::from(bytes == &task.source()[ring.source_range(slot as u64)]);
                    sum = sum.wrapping_add(task.consumption.of(bytes).wrapping_mul(weight(number)));
                    number += 1;
                }
                let slot = ring.nth(index);
                let start = slot as usize * size;
                file[start..start + size].copy_from_slice(&task.source()[ring.source_range(slot)]);
            }
            assert_eq!(task.checksum(ring.records()), Some(sum));
            assert_eq!(task.checksum(ring.records() + 1), None, "more than there are");
            assert!(updated > 0 || slots < 64, "no read saw an update");
        }
    }

    #[test]
    fn writes_alone_have_no_checksum() {
        let task = RecordTask::new(RecordRing::new(4096, 100, 2), 5, 4096).expect("a task");
        assert_eq!((task.checksum(u64::MAX), task.touch_at()), (Some(0), 0));
    }
}
