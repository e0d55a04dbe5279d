//! A thread's part of the offset table, piece by piece ([`pagewise_model::pieces`]).

use std::ops::Range;
use std::sync::Arc;

use pagewise_protocol::{CallFailure, Go};
use pagewise_sys::FileMapping;

use super::{Piece, ReadRange, Reader};

/// A thread's part of the table.
pub struct TablePart {
    table: Arc<FileMapping>,
    range: Range<usize>,
    pieces: Pieces,
}

impl TablePart {
    /// The entries at `range`, in pieces of `piece_reads`; 0: in one piece.
    pub fn new(table: Arc<FileMapping>, range: Range<usize>, piece_reads: u64) -> Self {
        let part = range.len() as u64;
        let reads = if piece_reads == 0 { part } else { piece_reads };
        let pieces = Pieces { part, reads, begin: 0, piece: Piece::default(), last: 0, sum: 0 };
        Self { table, range, pieces }
    }

    /// Number of reads of the part.
    pub fn reads(&self) -> u64 {
        self.range.len() as u64
    }

    /// A `go` begins at this position.
    pub fn begin(&mut self, position: u64, go: &Go) {
        self.pieces.begin = position;
        self.pieces.piece = Piece { end: position, touch_at: go.touch_at, ..Piece::default() };
    }

    /// Let `read` do `count` reads from position `first` on, where the last ones ended, and return
    /// the sum of what it returns. Each call has reads of one piece that do not cross the end of
    /// the part. No read will be done from position `end` on.
    #[inline(always)]
    pub fn walk(
        &mut self,
        reader: &mut dyn Reader,
        (first, count): (u64, u64),
        end: u64,
        mut read: impl FnMut(&mut dyn Reader, ReadRange<'_>) -> Result<u64, CallFailure>,
    ) -> Result<u64, CallFailure> {
        let Self { table, range, pieces } = self;
        let (entries, place) = (&table.words()[range.clone()], range.start as u64);
        let (mut done, mut total) = (0, 0u64);
        while done < count {
            if first + done == pieces.piece.end {
                pieces.next(reader)?;
            }
            let reads = ReadRange::new(entries, (first + done, count - done), end, place, pieces.piece);
            done += reads.due().entries.len() as u64;
            let checksum = read(reader, reads)?;
            pieces.sum = pieces.sum.wrapping_add(checksum);
            total = total.wrapping_add(checksum);
        }
        Ok(total)
    }
}

/// The progress of a `go` through a part.
struct Pieces {
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
