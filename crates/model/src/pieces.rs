//! Pieces in which a worker gets its part of the offset table.
//!
//! A worker that had all offsets at `go` could sort them and read in an order of its own: no
//! checksum that adds up shows it. The entries of a piece are therefore XORed with a *mask*: the
//! checksum of the reads of the piece before the last one. The offsets of a piece are unknown until
//! those reads are done, and those of the next one are known while a piece is read, so that reads
//! in flight and advice ahead stay possible.
//!
//! Pieces count from the first read of a `go`. The first two of each pass through the part have no
//! mask; the last one of a pass may be shorter.

use crate::method::Method;

/// Reads of a piece of a large part. Within a piece a worker may read in any order.
const USUAL_READS: u64 = 256;
/// Reads of a piece, at least: each costs some nanoseconds.
const LEAST_READS: u64 = 16;
/// Pieces of a small part.
const PIECES: u64 = 8;

/// Reads of a piece for a method: whole operations of `reads_per_op`, and as many as it has in
/// flight or advises ahead. The smallest part of a thread has `part` reads.
pub fn piece_reads(method: &Method, reads_per_op: u64, part: u64) -> u64 {
    let ahead = method.depth().max(method.prefetch_window().unwrap_or(0));
    let wanted = (part / PIECES).clamp(LEAST_READS, USUAL_READS);
    u64::from(ahead).max(wanted).next_multiple_of(reads_per_op.max(1))
}

/// Masks of the pieces of a pass, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masks {
    this: u64,
    next: u64,
}

impl Masks {
    /// The mask of the piece that begins.
    pub fn mask(&self) -> u64 {
        self.this
    }

    /// The mask of the piece after it.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// End the piece, whose reads came to `checksum`.
    pub fn end_piece(&mut self, checksum: u64) {
        (self.this, self.next) = (self.next, checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_the_checksum_of_the_piece_before_the_last() {
        let mut masks = Masks::default();
        let mut seen = Vec::new();
        for checksum in [10, 20, 30, 40] {
            seen.push((masks.mask(), masks.next()));
            masks.end_piece(checksum);
        }
        assert_eq!(seen, [(0, 0), (0, 10), (10, 20), (20, 30)]);
    }

    #[test]
    fn a_piece_holds_whole_operations_and_all_that_is_under_way() {
        let of =
            |method: &str, reads_per_op| piece_reads(&method.parse().expect(method), reads_per_op, 1 << 16);
        assert_eq!(of("pread", 1), 256);
        assert_eq!(of("mmap:random", 16), 256);
        assert_eq!(of("pread", 100), 300);
        assert_eq!(of("pread", 1000), 1000);
        assert_eq!(of("uring:depth=32", 1), 256);
        assert_eq!(of("uring:direct+depth=512", 16), 512);
        assert_eq!(of("mmap:random+prefetch=300", 7), 301);
        assert_eq!(of("mine/get:depth=512", 1), 256, "what a method of others means is unknown");
        let of_part = |part| piece_reads(&"pread".parse().expect("pread"), 1, part);
        assert_eq!([0, 42, 240, 1024, 6000].map(of_part), [16, 16, 30, 128, 256]);
    }
}
