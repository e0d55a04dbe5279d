//! Reads that are due, and the reads after them.

use pagewise_model::checksum::{Consumption, weight};

/// Consecutive reads of the offset table, all of one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due<'a> {
    /// Entries of the reads, as the table has them.
    pub entries: &'a [u64],
    /// The mask of their piece.
    pub mask: u64,
    /// Index of the first of them in the whole table.
    pub place: u64,
    /// Position in a page of the word that `touch` takes.
    pub touch_at: u64,
}

impl<'a> Due<'a> {
    /// A read outside the table.
    pub fn single(offset: &'a [u64; 1]) -> Self {
        Self { entries: offset, ..Self::default() }
    }

    /// Each read's entry.
    #[inline(always)]
    pub fn unmasked(self) -> impl Iterator<Item = u64> {
        self.entries.iter().map(move |entry| entry ^ self.mask)
    }

    /// Each read's weight in the checksum, and its entry.
    #[inline(always)]
    pub fn weighted(self) -> impl Iterator<Item = (u64, u64)> {
        (0u64..).map(move |index| weight(self.place + index)).zip(self.unmasked())
    }

    /// Consumption of these reads.
    #[inline(always)]
    pub fn consumption(self, of_job: Consumption) -> Consumption {
        of_job.touching(self.touch_at)
    }

    /// Split them into operations of `reads_per_op`.
    #[inline(always)]
    pub fn operations(self, reads_per_op: usize) -> impl Iterator<Item = Due<'a>> {
        let places = (self.place..).step_by(reads_per_op);
        places.zip(self.entries.chunks(reads_per_op)).map(move |(place, entries)| Due {
            entries,
            place,
            ..self
        })
    }
}

/// A piece of the part. Positions count reads from the part's start, over all passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The position behind it.
    pub end: u64,
    /// Mask of the piece.
    pub mask: u64,
    /// The position behind the next piece.
    pub next_end: u64,
    /// The mask of the next piece, from a reader that has done the last one; else unknown.
    pub next_mask: u64,
    /// Position in a page of the word that `touch` takes.
    pub touch_at: u64,
}

impl Piece {
    /// The mask at a position, at most a piece ahead. Behind the next piece a pass begins, whose
    /// first pieces have none.
    #[inline(always)]
    pub fn mask_at(&self, position: u64) -> u64 {
        if position < self.end {
            self.mask
        } else if position < self.next_end {
            self.next_mask
        } else {
            0
        }
    }
}

/// Some consecutive reads of a piece of a thread's part of the table. Positions count reads from
/// the part's start, over all passes.
#[derive(Clone, Copy)]
pub struct ReadRange<'a> {
    part: &'a [u64],
    first: u64,
    /// Index of the first in the part.
    start: usize,
    count: usize,
    end: u64,
    place: u64,
    piece: Piece,
}

impl<'a> ReadRange<'a> {
    /// `count` reads of `part` from position `first` on, at most to the end of the piece and of the
    /// part. None will be done from position `end` on. The part begins at index `place` of the
    /// table.
    #[inline(always)]
    pub fn new(part: &'a [u64], (first, count): (u64, u64), end: u64, place: u64, piece: Piece) -> Self {
        let start = first % part.len() as u64;
        let count = count.min(part.len() as u64 - start).min(piece.end - first) as usize;
        Self { part, first, start: start as usize, count, end, place, piece }
    }

    /// These reads without any after them.
    pub fn alone(due: Due<'a>) -> Self {
        let count = due.entries.len();
        let piece = Piece { end: count as u64, mask: due.mask, touch_at: due.touch_at, ..Piece::default() };
        Self { part: due.entries, first: 0, start: 0, count, end: count as u64, place: due.place, piece }
    }

    /// Reads that are due.
    #[inline(always)]
    pub fn due(&self) -> Due<'a> {
        let start = self.start;
        let Piece { mask, touch_at, .. } = self.piece;
        Due {
            entries: &self.part[start..start + self.count],
            mask,
            place: self.place + start as u64,
            touch_at,
        }
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

    /// The offset at a position of this piece or of the reads behind it, as many as a piece has.
    #[inline(always)]
    pub fn at(&self, position: u64) -> u64 {
        self.part[(position % self.part.len() as u64) as usize] ^ self.piece.mask_at(position)
    }

    /// Split those that are due into operations of `reads_per_op`.
    pub fn operations(self, reads_per_op: usize) -> impl Iterator<Item = ReadRange<'a>> {
        (0..self.count / reads_per_op).map(move |operation| ReadRange {
            first: self.first + (operation * reads_per_op) as u64,
            start: self.start + operation * reads_per_op,
            count: reads_per_op,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece up to this position, and the next one behind it.
    const PIECE: Piece = Piece { end: 36, mask: 1 << 32, next_end: 40, next_mask: 1 << 40, touch_at: 8 };

    #[test]
    fn reads_end_with_the_part_or_the_piece_and_know_what_comes_behind() {
        let part: Vec<u64> = (100..110).collect();
        let due = |range: std::ops::Range<usize>| Due {
            place: 1000 + range.start as u64,
            entries: &part[range],
            mask: PIECE.mask,
            touch_at: 8,
        };
        let reads = ReadRange::new(&part, (26, 8), u64::MAX, 1000, PIECE);
        assert_eq!((reads.due(), reads.first()), (due(6..10), 26));
        let masked = [109 ^ (1 << 32), 100 ^ (1 << 32), 106 ^ (1 << 40), 100];
        assert_eq!([29, 30, 36, 40].map(|position| reads.at(position)), masked);
        let operations: Vec<(u64, Due<'_>)> =
            reads.operations(2).map(|operation| (operation.first(), operation.due())).collect();
        assert_eq!(operations, [(26, due(6..8)), (28, due(8..10))]);
        assert_eq!(reads.due().operations(2).collect::<Vec<_>>(), [due(6..8), due(8..10)]);
        assert_eq!(ReadRange::new(&part, (33, 8), u64::MAX, 1000, PIECE).due(), due(3..6));
        assert_eq!(ReadRange::alone(due(0..10)).due(), due(0..10));
        assert!(ReadRange::alone(Due::default()).due().entries.is_empty());
    }

    #[test]
    fn each_read_has_the_weight_of_its_place() {
        let due = Due { entries: &[70, 80, 90], place: 4, mask: 1, touch_at: 0 };
        assert_eq!(due.weighted().collect::<Vec<_>>(), [(9, 71), (11, 81), (13, 91)]);
    }
}
