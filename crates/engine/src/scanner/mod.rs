//! Scanners: the whole file once, front to back, by one thread.
//!
//! A pass reads the file in pieces and consumes each of them. The checksum of a pass is the sum of
//! the checksums of the pieces, so their order does not matter. Pieces are whole pages if words of
//! pages are touched, and whole words if words are added, so that the checksum does not depend on
//! the size of a piece. The loops are compiled for each kind of consumption; each piece costs one
//! comparison of its length.

mod call;
mod memory;
mod pieces;
mod uring;

use pagewise_model::checksum::Consumption;
use pagewise_model::{Access, Consume, Method};
use pagewise_protocol::{CallFailure, Job};

use crate::effects::Effects;
use crate::failure::refusal;
use crate::file::DataFile;
use crate::operations::{Done, Operations};
use pieces::Pieces;

/// A scanner, bound to a file.
pub trait Scanner: Send {
    /// Read and consume the whole file, and return its checksum. Nothing is in flight afterwards.
    fn pass(&mut self) -> Result<u64, CallFailure>;
}

/// Common input of all scanners.
struct ScanTarget {
    file: DataFile,
    piece_bytes: usize,
    consumption: Consumption,
}

impl ScanTarget {
    /// The span in pieces, aligned if O_DIRECT is requested.
    fn pieces(&self) -> Pieces {
        let alignment = if self.file.effects.direct { self.file.direct_alignment } else { 1 };
        Pieces::new(self.file.span_bytes as u64, self.piece_bytes, alignment, self.file.file_bytes)
    }
}

/// Open the scanner of a job, which the method must be able to do ([`Method::refuses`]). This is
/// set-up and timed as such.
pub fn open(method: &Method, job: &Job, consume: Consume) -> Result<Box<dyn Scanner>, CallFailure> {
    let file = DataFile::new(job, method);
    let target = ScanTarget {
        piece_bytes: piece_bytes(method, &file.effects, job),
        file,
        // The last word of each piece would make the checksum depend on the ends of pieces.
        consumption: Consumption {
            consume,
            page_bytes: job.page_bytes as usize,
            touch_at: 0,
            touch_last: false,
        },
    };
    match method.access() {
        Access::Mmap => memory::mapped(target),
        Access::Anonymous => memory::loaded(target),
        access @ (Access::Pread | Access::Read) => call::open(access, target),
        Access::Uring => uring::open(target),
        Access::Pwrite | Access::Write | Access::Unknown => {
            Err(refusal("open", &job.path, format!("{method} is not a method to scan a file")))
        }
    }
}

/// Size of one call or copy. In the mapping, and in memory, nothing is copied, so a piece is the
/// whole span.
fn piece_bytes(method: &Method, effects: &Effects, job: &Job) -> usize {
    let whole = effects.in_place || method.access() == Access::Anonymous;
    let piece = effects.buffer.or((!whole).then_some(Method::DEFAULT_BUFFER));
    piece.map_or(job.span_bytes.max(1), |piece| piece.0) as usize
}

/// Passes over a file, each of them one operation.
pub struct Passes {
    scanner: Box<dyn Scanner>,
    span_bytes: u64,
    passes: u64,
}

impl Passes {
    /// The passes of `scanner` over a file of `span_bytes`.
    pub fn new(scanner: Box<dyn Scanner>, span_bytes: u64) -> Self {
        Self { scanner, span_bytes, passes: 0 }
    }
}

impl Operations for Passes {
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        let operations = wanted.min(end.saturating_sub(position));
        let mut checksum = 0u64;
        for _ in 0..operations {
            checksum = checksum.wrapping_add(self.scanner.pass()?);
        }
        self.passes += operations;
        Ok(Done { operations, checksum })
    }

    fn bytes(&self) -> u64 {
        self.passes * self.span_bytes
    }
}

#[cfg(test)]
mod tests;
