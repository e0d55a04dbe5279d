//! Positions and content of the records in a ring file.
//!
//! A record never straddles the end of the file: a pass has as many whole records as fit, and the
//! bytes after the last one stay unchanged. Record `i` is at `i mod slots * record_bytes`, and
//! holds `record_bytes` bytes of the *source* from `i * record_bytes mod SOURCE_PERIOD` on. The
//! source is [`crate::content`] of a seed, a little longer than its period, so that no record is
//! cut. It stays in the CPU's nearest cache, like a record that was just made. The period is a
//! prime, so that neighbouring records differ, and each differs from the one at its position a pass
//! before.
//!
//! The records of a scattered ring are the same, each at its position and written at most once, in
//! an order that looks random: a Feistel network over their numbers, which can be inverted. Before
//! each of them, records at other positions may be read. None of these is one of the [`NEAR`]
//! records written last or next, so that it holds one content, whatever is in flight.

use std::ops::Range;

use crate::checksum::{Consume, Consumption};
use crate::random::mix;

/// A record is not read while it is among so many that are written before or after, or among a
/// quarter of those of a smaller file.
pub const NEAR: u64 = 1024;
/// Records begin at offsets of the source below this.
pub const SOURCE_PERIOD: u64 = 16_381;

/// Positions of records in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRing {
    record_bytes: u64,
    slots: u64,
    passes: u64,
    /// Number of records that are written in no order; `None` if they are written front to back.
    scattered: Option<u64>,
    /// Records that are read before each of a scattered ring is written.
    reads_each: u32,
}

/// Seed of the records that are read.
const READS: u64 = 0x52_4541_4453;
/// Rounds of the network; four are enough for an order without a pattern.
const NETWORK: [u64; 4] = [0x51, 0x52, 0x53, 0x54];

impl RecordRing {
    /// `passes` passes over a file of `file_bytes`; neither may be 0.
    pub const fn new(file_bytes: u64, record_bytes: u64, passes: u64) -> Self {
        Self { record_bytes, slots: file_bytes / record_bytes, passes, scattered: None, reads_each: 0 }
    }

    /// The first `count` records of an order that looks random, or all if the file holds fewer.
    pub const fn scattered(self, count: u64) -> Self {
        let count = if count < self.slots { count } else { self.slots };
        Self { passes: 1, scattered: Some(count), ..self }
    }

    /// The records of a scattered ring, with `reads_each` others read before each of them.
    pub const fn reading(self, reads_each: u32) -> Self {
        Self { reads_each, ..self }
    }

    /// Records that are read before each of a scattered ring is written.
    pub const fn reads_each(&self) -> u32 {
        self.reads_each
    }

    /// True if records are not written front to back.
    pub const fn is_scattered(&self) -> bool {
        self.scattered.is_some()
    }

    /// Number of the accesses of a scattered ring, reads and writes; 0 if records are written front
    /// to back.
    pub const fn access_count(&self) -> u64 {
        match self.scattered {
            Some(count) => count.saturating_mul(1 + self.reads_each as u64),
            None => 0,
        }
    }

    /// Offsets of these accesses in their order: for each record that is written, those of the
    /// records that are read before it, and then its own.
    pub fn accesses(&self) -> Vec<u64> {
        let mut offsets = Vec::with_capacity(self.access_count() as usize);
        for index in 0..self.scattered.unwrap_or(0) {
            offsets.extend((0..self.reads_each).map(|nth| self.read(index, nth) * self.record_bytes));
            offsets.push(self.nth(index) * self.record_bytes);
        }
        offsets
    }

    /// The record of a scattered ring that is written after `index` others.
    pub fn nth(&self, index: u64) -> u64 {
        self.walked(index, |number| NETWORK.iter().fold(number, |number, key| self.crossed(number, *key)))
    }

    /// Number of records written before and after a record's own turn in which it is not read.
    pub fn near(&self) -> u64 {
        NEAR.min(self.slots / 4)
    }

    /// The record that is read after `index` records were written and `nth` were read since. A ring
    /// of fewer than four records has none.
    pub fn read(&self, index: u64, nth: u32) -> u64 {
        let count = self.records();
        let is_near = |record: u64| {
            let rank = self.rank(record);
            rank < count && rank.abs_diff(index) <= self.near()
        };
        let mut draw = mix(READS ^ (index * u64::from(self.reads_each) + u64::from(nth)));
        loop {
            let record = ((u128::from(draw) * u128::from(self.slots)) >> 64) as u64;
            if !is_near(record) {
                return record;
            }
            draw = mix(draw.wrapping_add(1));
        }
    }

    /// Number of records that are written before this one: the inverse of [`RecordRing::nth`].
    fn rank(&self, record: u64) -> u64 {
        let swapped = |number| self.swapped(number);
        self.walked(record, |number| {
            let back = NETWORK.iter().rev().fold(swapped(number), |number, key| self.crossed(number, *key));
            swapped(back)
        })
    }

    /// `step` until the result is the number of a record: the network is over a power of four.
    fn walked(&self, start: u64, step: impl Fn(u64) -> u64) -> u64 {
        let mut number = step(start);
        while number >= self.slots {
            number = step(number);
        }
        number
    }

    /// Bits of a half of a number.
    const fn half_bits(&self) -> u32 {
        (u64::BITS - self.slots.saturating_sub(1).leading_zeros()).div_ceil(2)
    }

    /// A round of the network.
    fn crossed(&self, number: u64, key: u64) -> u64 {
        let bits = self.half_bits();
        let mask = (1 << bits) - 1;
        let (left, right) = (number >> bits, number & mask);
        right << bits | (left ^ mix(right ^ key << 40)) & mask
    }

    /// A number with its halves exchanged.
    const fn swapped(&self, number: u64) -> u64 {
        let bits = self.half_bits();
        (number & ((1 << bits) - 1)) << bits | number >> bits
    }

    /// Consumption of the records that are read.
    pub fn consumption(&self, page_bytes: u64) -> Consumption {
        Consumption::new(Consume::Touch, page_bytes as usize, self.record_bytes)
    }

    /// Size of a record.
    pub const fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Records that fit into the file.
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// Records that are written: those of all passes, or those of a scattered ring.
    pub const fn records(&self) -> u64 {
        match self.scattered {
            Some(count) => count,
            None => self.slots.saturating_mul(self.passes),
        }
    }

    /// Bytes of the file that records may occupy.
    pub const fn bytes(&self) -> u64 {
        self.slots * self.record_bytes
    }

    /// Length of a source for these records.
    pub const fn source_bytes(&self) -> u64 {
        SOURCE_PERIOD + self.record_bytes
    }

    /// The part of the source that record `index` holds.
    pub const fn source_range(&self, index: u64) -> Range<usize> {
        let start = (index as u128 * self.record_bytes as u128 % SOURCE_PERIOD as u128) as usize;
        start..start + self.record_bytes as usize
    }

    /// The record in `slot` once `records` were written: the last one written there.
    pub fn record_in(&self, slot: u64, records: u64) -> Option<u64> {
        if self.is_scattered() {
            let is_whole = records >= self.slots;
            return (slot < self.slots && (is_whole || self.rank(slot) < records)).then_some(slot);
        }
        if slot >= records || slot >= self.slots {
            return None;
        }
        Some((records - 1 - slot) / self.slots * self.slots + slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_record_in_a_slot_is_found(slots in 1u64..20, records in 0u64..100) {
            let ring = RecordRing::new(slots * 10, 10, 1);
            let mut last = vec![None; slots as usize];
            for record in 0..records {
                last[(record % slots) as usize] = Some(record);
            }
            for (slot, expected) in last.into_iter().enumerate() {
                prop_assert_eq!(ring.record_in(slot as u64, records), expected);
            }
        }
    }

    #[test]
    fn a_scattered_ring_writes_each_record_once_and_in_no_order() {
        for slots in [1u64, 2, 3, 4, 5, 17, 256, 1000] {
            let ring = RecordRing::new(slots * 10, 10, 3).scattered(u64::MAX);
            assert_eq!((ring.records(), ring.scattered(2).records()), (slots, slots.min(2)));
            let order: Vec<u64> = (0..slots).map(|index| ring.nth(index)).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..slots).collect::<Vec<_>>());
            for (index, record) in order.iter().enumerate() {
                assert_eq!(ring.rank(*record), index as u64);
                assert_eq!(
                    ring.record_in(*record, index as u64),
                    if slots > index as u64 { None } else { Some(0) }
                );
                assert_eq!(ring.record_in(*record, index as u64 + 1), Some(*record));
            }
            let neighbours = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
            assert!(slots < 256 || neighbours < slots as usize / 50, "{neighbours} of {slots}");
        }
    }

    #[test]
    fn no_record_is_read_while_it_may_be_in_flight() {
        for slots in [4u64, 5, 17, 1000, 100_000] {
            let ring = RecordRing::new(slots * 10, 10, 1).scattered(700).reading(3);
            let (mut seen, mut updated) = (vec![0u32; slots as usize], 0);
            for index in 0..ring.records() {
                for nth in 0..3 {
                    let record = ring.read(index, nth);
                    let rank = ring.rank(record);
                    assert!(rank >= ring.records() || rank.abs_diff(index) > ring.near(), "{slots}: {index}");
                    updated += u32::from(ring.record_in(record, index).is_some());
                    seen[record as usize] += 1;
                }
            }
            let all: u32 = seen.iter().sum();
            assert!(slots > 1000 || seen.iter().all(|times| *times <= 16 * all / slots as u32 + 20));
            assert!(slots != 1000 || updated > all / 8, "{updated} of {all} reads saw an update");
        }
    }

    #[test]
    fn accesses_are_the_reads_before_each_write_and_the_write() {
        let ring = RecordRing::new(64 * 10 + 3, 10, 1);
        assert_eq!((ring.access_count(), ring.accesses()), (0, vec![]), "they follow each other");
        let ring = ring.scattered(9).reading(2);
        let expected: Vec<u64> = (0..9)
            .flat_map(|index| [ring.read(index, 0), ring.read(index, 1), ring.nth(index)])
            .map(|record| record * 10)
            .collect();
        assert_eq!((ring.access_count(), ring.accesses()), (27, expected));
    }

    #[test]
    fn a_record_never_straddles_the_end() {
        let ring = RecordRing::new(10 << 20, 100, 2);
        assert_eq!((ring.slots(), ring.bytes(), ring.records()), (104_857, 10_485_700, 209_714));
        assert_eq!(ring.source_range(1), 100..200);
        assert_eq!(ring.source_range(164), 19..119);
        assert_eq!(RecordRing::new(5, 10, 1).records(), 0);
    }
}
