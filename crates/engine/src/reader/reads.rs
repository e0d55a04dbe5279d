//! Reads that are due, and the reads after them.

use pagewise_model::checksum::weight;

/// Consecutive reads of the offset table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due<'a> {
    /// Their entries.
    pub entries: &'a [u64],
    /// Index of the first of them in the whole table.
    pub place: u64,
}

impl<'a> Due<'a> {
    /// Each read's weight in the checksum, and its entry.
    #[inline(always)]
    pub fn weighted(self) -> impl Iterator<Item = (u64, u64)> {
        (0u64..).map(move |index| weight(self.place + index)).zip(self.entries.iter().copied())
    }

    /// Split them into operations of `reads_per_op`.
    #[inline(always)]
    pub fn operations(self, reads_per_op: usize) -> impl Iterator<Item = Due<'a>> {
        let places = (self.place..).step_by(reads_per_op);
        places.zip(self.entries.chunks(reads_per_op)).map(|(place, entries)| Due { entries, place })
    }
}

/// Some consecutive reads of a thread's part of the table. Positions count reads from the part's start, over all passes.
#[derive(Clone, Copy)]
pub struct ReadRange<'a> {
    part: &'a [u64],
    first: u64,
    count: usize,
    end: u64,
    place: u64,
}

impl<'a> ReadRange<'a> {
    /// `count` reads of `part` from position `first` on, at most to the end of the part. None will be done from position
    /// `end` on. The part begins at index `place` of the table.
    pub fn new(part: &'a [u64], first: u64, count: usize, end: u64, place: u64) -> Self {
        let left = part.len() - (first % part.len() as u64) as usize;
        Self { part, first, count: count.min(left), end, place }
    }

    /// These reads without any after them.
    pub fn alone(due: Due<'a>) -> Self {
        let count = due.entries.len();
        Self { part: due.entries, first: 0, count, end: count as u64, place: due.place }
    }

    /// Those that are due.
    #[inline(always)]
    pub fn due(&self) -> Due<'a> {
        let start = if self.part.is_empty() { 0 } else { (self.first % self.part.len() as u64) as usize };
        Due { entries: &self.part[start..start + self.count], place: self.place + start as u64 }
    }

    /// The position of the first that is due.
    #[inline(always)]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The position after the last read that will be done, now or later.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The offset at a position.
    #[inline(always)]
    pub fn at(&self, position: u64) -> u64 {
        self.part[(position % self.part.len() as u64) as usize]
    }

    /// Split those that are due into operations of `reads_per_op`.
    pub fn operations(self, reads_per_op: usize) -> impl Iterator<Item = ReadRange<'a>> {
        (0..self.count / reads_per_op).map(move |operation| ReadRange {
            first: self.first + (operation * reads_per_op) as u64,
            count: reads_per_op,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_with_the_part_and_know_what_comes_behind() {
        let part: Vec<u64> = (100..110).collect();
        let due =
            |range: std::ops::Range<usize>| Due { place: 1000 + range.start as u64, entries: &part[range] };
        let reads = ReadRange::new(&part, 26, 8, u64::MAX, 1000);
        assert_eq!((reads.due(), reads.first()), (due(6..10), 26));
        assert_eq!([29, 30, 31].map(|position| reads.at(position)), [109, 100, 101]);
        let operations: Vec<(u64, Due<'_>)> =
            reads.operations(2).map(|operation| (operation.first(), operation.due())).collect();
        assert_eq!(operations, [(26, due(6..8)), (28, due(8..10))]);
        assert_eq!(reads.due().operations(2).collect::<Vec<_>>(), [due(6..8), due(8..10)]);
        assert_eq!(ReadRange::alone(due(0..10)).due(), due(0..10));
        assert!(ReadRange::alone(Due { entries: &[], place: 0 }).due().entries.is_empty());
    }

    #[test]
    fn each_read_has_the_weight_of_its_place() {
        let due = Due { entries: &[70, 80, 90], place: 4 };
        assert_eq!(due.weighted().collect::<Vec<_>>(), [(9, 70), (11, 80), (13, 90)]);
    }
}
