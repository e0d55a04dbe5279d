//! A thread's part of the offset table, piece by piece ([`pagewise_model::pieces`]).

use pagewise_protocol::{CallFailure, Go};

use super::{Piece, ReadRange, Reader};

/// A part of the table, and the progress of a `go` in it.
pub struct Pieces {
    /// Reads of the part.
    part: u64,
    /// Reads of a piece.
    reads: u64,
    /// The position at which the `go` began: passes begin there.
    begin: u64,
    piece: Piece,
    /// Checksum of the reads of the last piece, and of those of this piece so far.
    last: u64,
    sum: u64,
}

impl Pieces {
    /// A part of so many reads, in pieces of `reads`; 0: in one piece.
    pub fn new(part: u64, reads: u64) -> Self {
        let reads = if reads == 0 { part } else { reads };
        Self { part, reads, begin: 0, piece: Piece::default(), last: 0, sum: 0 }
    }

    /// A `go` begins at this position.
    pub fn begin(&mut self, position: u64, go: &Go) {
        self.begin = position;
        self.piece = Piece { end: position, touch_at: go.touch_at, ..Piece::default() };
    }

    /// Up to `count` reads of the part from `position` on, where the last ones ended: those of one piece. No read will be done
    /// from position `end` on. The part begins at index `place` of the table.
    #[inline(always)]
    pub fn range<'a>(
        &mut self,
        (part, place): (&'a [u64], u64),
        (position, count): (u64, u64),
        end: u64,
        reader: &mut dyn Reader,
    ) -> Result<ReadRange<'a>, CallFailure> {
        if position == self.piece.end {
            self.next(reader)?;
        }
        Ok(ReadRange::new(part, (position, count), end, place, self.piece))
    }

    /// Reads of the piece were done with this checksum.
    #[inline(always)]
    pub fn add(&mut self, checksum: u64) {
        self.sum = self.sum.wrapping_add(checksum);
    }

    /// Go on to the next piece.
    fn next(&mut self, reader: &mut dyn Reader) -> Result<(), CallFailure> {
        let before_last = reader.begin_piece()?.unwrap_or(self.last);
        self.last = std::mem::take(&mut self.sum);
        let start = self.piece.end;
        let in_pass = (start - self.begin) % self.part;
        let pass_end = start - in_pass + self.part;
        let unmasked_end = start - in_pass + 2 * self.reads;
        let end = (start + self.reads).min(pass_end);
        self.piece = Piece {
            end,
            mask: if start < unmasked_end { 0 } else { before_last },
            next_end: if end == pass_end { end } else { (end + self.reads).min(pass_end) },
            next_mask: if end < unmasked_end { 0 } else { self.last },
            touch_at: self.piece.touch_at,
        };
        Ok(())
    }
}
