//! The memory in which a worker finds the table.
//!
//! A worker that knew the table before its clock starts could read, add up, sort or advise ahead of
//! time. The memory therefore holds zeros until `go`, and then entries of which only the first
//! pieces are offsets ([`pagewise_model::pieces`]).

use std::os::fd::OwnedFd;

use pagewise_model::pieces::Masks;
use pagewise_sys::SharedMemory;

use crate::reference::Reference;
use crate::table::{OffsetTable, OperationOrder, TableError};

/// Memory in which a worker finds the table: zeros until the table is put there.
///
/// The memory is made before the worker, which inherits it and may only read it.
pub struct TableMemory(SharedMemory);

impl TableMemory {
    /// Allocate memory for a table of this many reads. Its pages are present, so that no worker is
    /// charged for them.
    pub fn new(reads: u64) -> Result<Self, TableError> {
        let no_memory = |source| TableError::Memory { reads, source };
        let mut memory = SharedMemory::create("pagewise-offsets", reads as usize * 8).map_err(no_memory)?;
        memory.bytes_mut().fill(0);
        memory.seal().map_err(no_memory)?;
        Ok(Self(memory))
    }

    /// File, which a child inherits.
    pub fn file(&self) -> &OwnedFd {
        self.0.file()
    }

    /// Put offsets there, in one piece.
    ///
    /// # Panics
    /// If the memory is too small.
    pub fn put_plain(&mut self, offsets: &[u64]) {
        put_masked(&mut self.0.bytes_mut()[..8 * offsets.len()], offsets, 0);
    }

    /// Put recorded entries there, the part of each thread in pieces of so many reads; `checksums`
    /// are those of the reads, with the weights of their positions.
    ///
    /// # Panics
    /// If the memory is too small.
    pub fn put_recorded(
        &mut self,
        entries: &[u64],
        thread_reads: &[u64],
        piece_reads: u64,
        checksums: &[u64],
    ) {
        let (into, mut begin) = (self.0.bytes_mut(), 0);
        for reads in thread_reads {
            let (end, mut masks) = (begin + *reads as usize, Masks::default());
            for start in (begin..end).step_by(piece_reads as usize) {
                let piece = start..end.min(start + piece_reads as usize);
                put_masked(&mut into[8 * piece.start..8 * piece.end], &entries[piece.clone()], masks.mask());
                masks.end_piece(checksums[piece].iter().fold(0, |total, sum| total.wrapping_add(*sum)));
            }
            begin = end;
        }
    }

    /// Put words there behind recorded entries, from this word on.
    ///
    /// # Panics
    /// If the memory is too small.
    pub fn put_behind(&mut self, first: usize, words: &[u64]) {
        put_masked(&mut self.0.bytes_mut()[8 * first..8 * (first + words.len())], words, 0);
    }

    /// Put the entries of `table` that workers follow there, in this order; zeros follow them.
    ///
    /// # Panics
    /// If reads are dependent and the table has not been chained, or if the memory is too small.
    pub fn put(&mut self, table: &OffsetTable, order: &OperationOrder, pieces: &PiecesOfGo<'_>) {
        let reads = table.shape().reads_per_op as usize;
        let into = self.0.bytes_mut();
        assert!(into.len() >= table.reads() as usize * 8, "memory of a smaller table");
        let (entries, part) = (table.entries(), order.part);
        let first = pieces.first_operation % part;
        let of_piece = if pieces.reads == 0 { part } else { (pieces.reads / reads as u64).max(1) };
        for thread in 0..table.threads() {
            let mut masks = Masks::default();
            for start in (0..part).step_by(of_piece as usize) {
                let mut checksum = 0u64;
                for operation in start..part.min(start + of_piece) {
                    let position = (thread * part + (first + operation) % part) as usize;
                    let operation = order.operations[position] as usize;
                    let words = &mut into[position * 8 * reads..][..8 * reads];
                    put_masked(words, &entries[operation * reads..][..reads], masks.mask());
                    checksum = checksum.wrapping_add(pieces.reference.at(position, operation));
                }
                masks.end_piece(checksum);
            }
        }
    }
}

/// Pieces of a table in one `go`.
pub struct PiecesOfGo<'a> {
    /// The checksums that the reads of a table have.
    pub reference: &'a Reference,
    /// The operation at which each thread begins.
    pub first_operation: u64,
    /// Reads of a piece; 0: the part of each thread is one piece.
    pub reads: u64,
}

fn put_masked(words: &mut [u8], entries: &[u64], mask: u64) {
    for (word, entry) in words.chunks_exact_mut(8).zip(entries) {
        word.copy_from_slice(&(entry ^ mask).to_le_bytes());
    }
}
