//! `uring`: pieces in flight through io_uring, requested front to back and consumed as they arrive.

use pagewise_protocol::CallFailure;
use pagewise_sys::{Completion, Ring};

use super::pieces::{Piece, Pieces};
use super::{ScanTarget, Scanner};
use crate::consume::by_consumer;
use crate::failure::failed;
use crate::file::FailedRead;

struct UringScanner {
    ring: Ring,
    target: ScanTarget,
    pieces: Pieces,
    free: Vec<usize>,
    /// The piece of each slot.
    in_slot: Vec<Piece>,
}

pub(super) fn open(target: ScanTarget) -> Result<Box<dyn Scanner>, CallFailure> {
    let direct = target.file.effects.direct;
    let file = target.file.open(direct)?;
    let ring = target.file.ring(vec![file], target.piece_bytes)?;
    let depth = target.file.effects.depth as usize;
    let pieces = target.pieces();
    let free = (0..depth).rev().collect();
    Ok(Box::new(UringScanner { ring, target, pieces, free, in_slot: vec![Piece::default(); depth] }))
}

impl UringScanner {
    /// Timed region:
    /// `while a piece is missing: (while a slot is free: queue(next piece)); enter, which waits for one; for each that is done: result == expected; consume(buffer)`.
    #[inline(never)]
    fn pieces_in_flight(&mut self, consume: impl Fn(&[u8]) -> u64) -> Result<u64, CallFailure> {
        let (mut total, mut next, count) = (0u64, 0, self.pieces.count());
        while next < count || self.ring.in_flight() > 0 {
            while next < count
                && let Some(slot) = self.free.pop()
            {
                let piece = self.pieces.at(next);
                self.in_slot[slot] = piece;
                self.ring.queue_read(slot, piece.offset, piece.len);
                next += 1;
            }
            self.ring.submit(1).map_err(|error| self.submit_failure(error))?;
            while let Some(completion) = self.ring.complete() {
                let piece = self.in_slot[completion.slot];
                if completion.result != piece.expected as i32 {
                    return Err(self.failure(piece, completion));
                }
                total = total.wrapping_add(consume(&self.ring.buffer(completion.slot)[..piece.consumed]));
                self.free.push(completion.slot);
            }
        }
        Ok(total)
    }

    #[cold]
    fn submit_failure(&self, error: std::io::Error) -> CallFailure {
        failed("io_uring_enter", error, &self.target.file.path, 0)
    }

    #[cold]
    fn failure(&self, piece: Piece, completion: Completion) -> CallFailure {
        FailedRead::at_completion(piece.offset, piece.expected, completion)
            .into_failure("io_uring read", &self.target.file.path)
    }
}

impl Scanner for UringScanner {
    fn pass(&mut self) -> Result<u64, CallFailure> {
        by_consumer!(self.target.consumption, |consume| self.pieces_in_flight(consume))
    }
}
