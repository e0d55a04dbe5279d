//! Positions and content of the records in a ring file.
//!
//! A record never straddles the end of the file: a pass has as many whole records as fit, and the
//! bytes after the last one stay unchanged. Record `i` is at `i mod slots * record_bytes`, and
//! holds `record_bytes` bytes of the *source* from `i * record_bytes mod SOURCE_PERIOD` on. The
//! source is [`crate::content`] of a seed, a little longer than its period, so that no record is
//! cut. It stays in the CPU's nearest cache, like a record that was just made. The period is a
//! prime, so that neighbouring records differ, and each differs from the one at its position a pass
//! before.

use std::ops::Range;

/// Records begin at offsets of the source below this.
pub const SOURCE_PERIOD: u64 = 16_381;

/// Positions of records in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRing {
    record_bytes: u64,
    slots: u64,
    passes: u64,
}

impl RecordRing {
    /// `passes` passes over a file of `file_bytes`; neither may be 0.
    pub const fn new(file_bytes: u64, record_bytes: u64, passes: u64) -> Self {
        Self { record_bytes, slots: file_bytes / record_bytes, passes }
    }

    /// Records that fit into the file.
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// Records of all passes.
    pub const fn records(&self) -> u64 {
        self.slots.saturating_mul(self.passes)
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
    pub const fn record_in(&self, slot: u64, records: u64) -> Option<u64> {
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
    fn a_record_never_straddles_the_end() {
        let ring = RecordRing::new(10 << 20, 100, 2);
        assert_eq!((ring.slots(), ring.bytes(), ring.records()), (104_857, 10_485_700, 209_714));
        assert_eq!(ring.source_range(1), 100..200);
        assert_eq!(ring.source_range(164), 19..119);
        assert_eq!(RecordRing::new(5, 10, 1).records(), 0);
    }
}
