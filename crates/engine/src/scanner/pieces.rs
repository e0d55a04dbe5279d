//! A file in pieces, front to back.

/// A piece: the requested range, and the part of it that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// Start of the piece in the file.
    pub offset: u64,
    /// Bytes to request.
    pub len: usize,
    /// Bytes that must arrive: fewer than `len` if O_DIRECT requests more than the file has.
    pub expected: usize,
    /// Bytes to consume.
    pub consumed: usize,
}

/// All pieces of a span: those of full size, and a shorter last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    piece_bytes: usize,
    full: u64,
    tail: Option<Piece>,
}

impl Pieces {
    /// Pieces of `piece_bytes`, which is a multiple of `alignment`. The last one is requested in
    /// whole multiples too; the end of a file of `file_bytes` makes it short, as open(2) describes
    /// for O_DIRECT.
    pub fn new(span_bytes: u64, piece_bytes: usize, alignment: usize, file_bytes: u64) -> Self {
        let full = span_bytes / piece_bytes as u64;
        let offset = full * piece_bytes as u64;
        let consumed = (span_bytes - offset) as usize;
        let len = consumed.next_multiple_of(alignment);
        let expected = (len as u64).min(file_bytes.saturating_sub(offset)) as usize;
        let tail = (consumed > 0).then_some(Piece { offset, len, expected, consumed });
        Self { piece_bytes, full, tail }
    }

    /// Number of pieces.
    pub fn count(&self) -> u64 {
        self.full + u64::from(self.tail.is_some())
    }

    /// The piece at `index`.
    #[inline(always)]
    pub fn at(&self, index: u64) -> Piece {
        let len = self.piece_bytes;
        match self.tail {
            Some(tail) if index == self.full => tail,
            _ => Piece { offset: index * len as u64, len, expected: len, consumed: len },
        }
    }

    /// Timed region: `for each piece: sum += take(piece)`.
    #[inline(always)]
    pub fn sum<E>(&self, mut take: impl FnMut(Piece) -> Result<u64, E>) -> Result<u64, E> {
        let mut total = 0u64;
        for index in 0..self.count() {
            total = total.wrapping_add(take(self.at(index))?);
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: Pieces) -> Vec<Piece> {
        (0..pieces.count()).map(|index| pieces.at(index)).collect()
    }

    const fn plain(offset: u64, len: usize) -> Piece {
        Piece { offset, len, expected: len, consumed: len }
    }

    #[test]
    fn a_span_is_covered_without_gap() {
        assert_eq!(all(Pieces::new(10, 4, 1, 10)), [plain(0, 4), plain(4, 4), plain(8, 2)]);
        assert_eq!(all(Pieces::new(8, 4, 1, 8)), [plain(0, 4), plain(4, 4)]);
        assert_eq!(all(Pieces::new(3, 4, 1, 8)), [plain(0, 3)]);
        assert_eq!(all(Pieces::new(0, 4, 1, 0)), []);
        let lens = Pieces::new(10, 4, 1, 10).sum(|piece| Ok::<_, ()>(piece.consumed as u64));
        assert_eq!(lens, Ok(10));
    }

    #[test]
    fn the_last_piece_is_aligned_and_comes_short() {
        let tail = Piece { offset: 8192, len: 512, expected: 3, consumed: 3 };
        assert_eq!(all(Pieces::new(8195, 8192, 512, 8195)), [plain(0, 8192), tail]);
        let inside = Piece { offset: 8192, len: 512, expected: 512, consumed: 3 };
        assert_eq!(all(Pieces::new(8195, 8192, 512, 10_000)), [plain(0, 8192), inside]);
    }
}
