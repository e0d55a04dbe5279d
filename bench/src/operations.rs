//! What the readers of other languages are given: a table of operations of 16 reads of 16 KiB at
//! multiples of 4 KiB, in a file of its own, and the checksum of any range of it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use pagewise_model::checksum::weight;
use pagewise_model::random::Random;
use pagewise_model::{Bytes, content};

use crate::dataset::{CONTENT_SEED, Dataset, Scratch};

/// Reads in one operation.
pub const READS_PER_OP: u32 = 16;
/// Size of a read.
pub const READ_BYTES: Bytes = Bytes::kib(16);
/// Offsets are multiples of a page.
pub const ALIGN: Bytes = Bytes::kib(4);
/// In the table: as many reads as pagewise has for a file of this size.
const OPERATIONS: u64 = 4096;

/// The table, which is gone round.
pub struct Operations {
    /// Little-endian 64-bit offsets.
    pub path: PathBuf,
    /// Checksums of the first 0, 1, 2 … operations: one word of each page, all reads alike.
    sums: Vec<u64>,
    /// The same, each read by the weight of its position in the table.
    weighted: Vec<u64>,
}

/// How reads add up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AddUp {
    /// All alike, as bare loops do it.
    Alike,
    /// By the weights of their places, as workers do it.
    Weighted,
}

impl Operations {
    /// Uniformly drawn from `dataset`, a file of random bytes.
    pub fn draw(scratch: &Scratch, dataset: &Dataset, seed: u64) -> Result<Self> {
        ensure!(dataset.file_bytes >= READ_BYTES.0, "a file of {} bytes is too small", dataset.file_bytes);
        let places = (dataset.file_bytes - READ_BYTES.0) / ALIGN.0 + 1;
        let mut random = Random::for_purpose(seed, "offsets");
        let reads = OPERATIONS * u64::from(READS_PER_OP);
        let offsets: Vec<u64> = (0..reads).map(|_| random.below(places) * ALIGN.0).collect();
        let path = scratch.path("table");
        let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        std::fs::write(&path, bytes)?;
        let (mut sums, mut weighted) = (vec![0u64], vec![0u64]);
        for (place, offset) in (0u64..).zip(&offsets) {
            if place.is_multiple_of(u64::from(READS_PER_OP)) {
                sums.push(sums[sums.len() - 1]);
                weighted.push(weighted[weighted.len() - 1]);
            }
            let (of_read, last) = (checksum(*offset), sums.len() - 1);
            sums[last] = sums[last].wrapping_add(of_read);
            weighted[last] = weighted[last].wrapping_add(weight(place).wrapping_mul(of_read));
        }
        Ok(Self { path, sums, weighted })
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.sums.len() as u64 - 1
    }

    /// The checksum of `count` operations from the `first` on, passes counted.
    pub fn checksum(&self, add_up: AddUp, first: u64, count: u64) -> u64 {
        let sums = if add_up == AddUp::Alike { &self.sums } else { &self.weighted };
        let until = |end: u64| {
            let (passes, rest) = (end / self.len(), (end % self.len()) as usize);
            sums[sums.len() - 1].wrapping_mul(passes).wrapping_add(sums[rest])
        };
        until(first + count).wrapping_sub(until(first))
    }
}

/// One word of each page of a read.
fn checksum(offset: u64) -> u64 {
    let words = (offset..offset + READ_BYTES.0).step_by(ALIGN.0 as usize);
    words.fold(0, |total: u64, at| total.wrapping_add(content::word(CONTENT_SEED, at / 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_add_up_across_passes() {
        let parent = tempfile::tempdir().expect("folder");
        let scratch = Scratch::new(parent.path()).expect("scratch");
        let dataset = Dataset::create(&scratch, Bytes::mib(1)).expect("written");
        let table = Operations::draw(&scratch, &dataset, 1).expect("drawn");
        for add_up in [AddUp::Alike, AddUp::Weighted] {
            let checksum = |first, count| table.checksum(add_up, first, count);
            let all = checksum(0, table.len());
            assert_eq!(checksum(5, table.len()), all, "a pass from anywhere");
            let parts = checksum(0, table.len() - 7).wrapping_add(checksum(table.len() - 7, 17));
            assert_eq!(parts, checksum(0, table.len() + 10));
        }
        assert_ne!(table.checksum(AddUp::Alike, 0, 9), table.checksum(AddUp::Weighted, 0, 9));
        let bytes = std::fs::read(&table.path).expect("there");
        let first = u64::from_le_bytes(bytes[..8].try_into().expect("a word"));
        let file = std::fs::read(&dataset.path).expect("there");
        let word = u64::from_le_bytes(file[first as usize..][..8].try_into().expect("a word"));
        assert_eq!(word, content::word(CONTENT_SEED, first / 8));
    }
}
