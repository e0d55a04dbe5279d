//! Offset tables that are proven to lie within their file, so that loops need not look.

use pagewise_host::touched_word;
use pagewise_model::checksum::weight;
use pagewise_model::random::Random;
use pagewise_model::{Workload, content};

use crate::cell::Cell;

/// Pages of which a word is consumed, here and in `bare.c`. A read has whole ones.
pub const PAGE_BYTES: u64 = 4096;

/// Offsets of whole operations in a file of known size, and the word that is consumed of each page.
pub struct Table {
    reads: Vec<u64>,
    read_bytes: usize,
    end: u64,
    touch_at: usize,
}

/// Some reads of a table.
#[derive(Clone, Copy)]
pub struct Offsets<'a> {
    reads: &'a [u64],
    /// The place of the first in the table.
    place: u64,
    read_bytes: usize,
    end: u64,
    touch_at: usize,
}

impl Table {
    /// Draws `operations` operations of `cell` within a file of `file_bytes`.
    ///
    /// # Panics
    /// If the file is smaller than one operation, or a read has no whole pages.
    pub fn draw(cell: &Cell, file_bytes: u64, operations: u64, seed: u64) -> Self {
        let read_bytes = cell.read_bytes.0;
        assert!(read_bytes.is_multiple_of(PAGE_BYTES), "reads of whole pages");
        let reads_per_op = match cell.workload {
            Workload::SequentialRead => u64::from(cell.reads_per_op()),
            _ => 1,
        };
        let starts = (file_bytes / read_bytes + 1).checked_sub(reads_per_op).expect("a larger file");
        let mut random = Random::for_purpose(seed, "offsets");
        let reads = (0..operations)
            .flat_map(|_| {
                let start = random.below(starts);
                (start..start + reads_per_op).map(|block| block * read_bytes)
            })
            .collect::<Vec<_>>();
        let end = reads.iter().max().map_or(0, |last| last + read_bytes);
        assert!(end <= file_bytes, "a read behind the end of the file");
        Self { reads, read_bytes: read_bytes as usize, end, touch_at: 0 }
    }

    /// Consume the word of each page that a run with this seed consumes.
    pub fn touch_as(&mut self, seed: u64) {
        self.touch_at = touched_word(self.read_bytes as u64, PAGE_BYTES, seed) as usize;
    }

    /// All of them.
    pub fn offsets(&self) -> Offsets<'_> {
        Offsets {
            reads: &self.reads,
            place: 0,
            read_bytes: self.read_bytes,
            end: self.end,
            touch_at: self.touch_at,
        }
    }
}

impl<'a> Offsets<'a> {
    /// The offsets.
    pub fn reads(self) -> &'a [u64] {
        self.reads
    }

    /// Size of one read.
    pub fn read_bytes(self) -> usize {
        self.read_bytes
    }

    /// No read goes beyond this.
    pub fn end(self) -> u64 {
        self.end
    }

    /// Position in a page of the word that is consumed: a page has it whole.
    pub fn touch_at(self) -> usize {
        self.touch_at
    }

    /// `count` reads from `first` on.
    pub fn part(self, first: usize, count: usize) -> Self {
        Self { reads: &self.reads[first..first + count], place: self.place + first as u64, ..self }
    }

    /// What these reads come to in a file filled from `seed`, one word of each page: all alike, as
    /// bare loops add them up, and each by the weight of its place, as the engine does.
    pub fn expected_checksums(self, seed: u64) -> (u64, u64) {
        let pages = self.read_bytes as u64 / PAGE_BYTES;
        let first = self.touch_at as u64;
        let checksum = |offset: u64| {
            let words = (0..pages).map(|page| content::word(seed, (offset + page * PAGE_BYTES + first) / 8));
            words.fold(0, u64::wrapping_add)
        };
        (self.place..).zip(self.reads).fold((0, 0), |(alike, weighted): (u64, u64), (place, offset)| {
            let of_read = checksum(*offset);
            (alike.wrapping_add(of_read), weighted.wrapping_add(weight(place).wrapping_mul(of_read)))
        })
    }
}

#[cfg(test)]
mod tests {
    use pagewise_model::checksum::Consumption;
    use pagewise_model::{Access, Bytes, Consume};

    use super::*;

    fn cell(workload: Workload) -> Cell {
        Cell { access: Access::Pread, workload, read_bytes: Bytes::kib(16), threads: 1 }
    }

    #[test]
    fn sequential_operations_are_contiguous_and_within_the_file() {
        let cell = cell(Workload::SequentialRead);
        let table = Table::draw(&cell, 3 << 20, 100, 1);
        assert_eq!(table.reads.len(), 6400);
        for operation in table.reads.chunks(64) {
            assert!(operation.windows(2).all(|pair| pair[1] == pair[0] + (16 << 10)));
        }
        assert!(table.end <= 3 << 20);
    }

    #[test]
    fn random_reads_reach_both_ends() {
        let table = Table::draw(&cell(Workload::RandomRead), 64 << 10, 100, 1);
        assert_eq!((table.reads.iter().min(), table.end), (Some(&0), 64 << 10));
    }

    #[test]
    fn checksums_are_of_the_file_s_words() {
        let mut table = Table::draw(&cell(Workload::RandomRead), 1 << 20, 10, 1);
        table.touch_as(7);
        assert!(table.touch_at > 0, "another word than the first");
        let (mut alike, mut weighted) = (0u64, 0u64);
        for (place, offset) in (0u64..).zip(&table.reads) {
            let mut bytes = vec![0; 16 << 10];
            content::fill(9, *offset, &mut bytes);
            let of_read =
                Consumption::new(Consume::Touch, 4096, 4096).touching(table.touch_at as u64).of(&bytes);
            alike = alike.wrapping_add(of_read);
            weighted = weighted.wrapping_add((2 * place + 1).wrapping_mul(of_read));
        }
        assert_eq!(table.offsets().expected_checksums(9), (alike, weighted));
        let part = table.offsets().part(3, 2);
        assert_eq!((part.place, part.reads), (3, &table.reads[3..5]));
    }
}
