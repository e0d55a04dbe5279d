//! WorkloadFacts that follow from the parameters of work.

use std::fmt;

use super::{FileExtent, Writes};
use crate::checksum::Consume;

/// Buffer memory granted to a thread without reads of a single size.
const BUFFER_BYTES: u64 = 1 << 20;

/// The parameters of one workload. Their text is a part of a cell's id.
pub trait WorkParameters: fmt::Display {
    /// Parts of a label that describe an operation.
    fn operation(&self) -> Vec<String>;

    /// Parts of a label for unusual properties.
    fn details(&self) -> Vec<String> {
        self.writes().map_or_else(Vec::new, |writes| writes.details())
    }

    /// Check that each number can be measured with. The error names the first that cannot.
    fn check(&self, _threads: u32) -> Result<(), String> {
        Ok(())
    }

    /// Bytes that one operation asks for; on average where operations differ.
    fn op_bytes(&self, extent: FileExtent) -> u64 {
        self.access_bytes().unwrap_or(extent.span_bytes.0)
    }

    /// Bytes that so many operations ask for: exactly, unless they are a part of work whose
    /// operations differ.
    fn bytes_of(&self, extent: FileExtent, operations: u64) -> u64 {
        operations.saturating_mul(self.op_bytes(extent))
    }

    /// Operations of a sample if their number is fixed.
    fn fixed_operations(&self, extent: FileExtent) -> Option<u64> {
        self.writes()?.fixed_operations(extent)
    }

    /// Number of reads of so many operations, if those of a pass have `piece_bytes`; 0 if nothing
    /// is read. Saturating, as a worker may claim any number of operations.
    fn reads_of(&self, _extent: FileExtent, _operations: u64, _piece_bytes: u64) -> u64 {
        0
    }

    /// Mean size of an access; `None` if the method decides.
    fn access_bytes(&self) -> Option<u64> {
        self.writes().map(|writes| writes.record_bytes.0)
    }

    /// Size of the longest read by a table of offsets; `None` without one.
    fn longest_read(&self) -> Option<u64> {
        None
    }

    /// Records that are written.
    fn writes(&self) -> Option<Writes> {
        None
    }

    /// Consumption of the bytes, if any are read.
    fn consume(&self) -> Option<Consume> {
        None
    }

    /// Buffer memory of a thread.
    fn buffer_bytes(&self) -> u64 {
        self.longest_read().unwrap_or(BUFFER_BYTES)
    }

    /// Memory that the worker holds besides.
    fn ballast_bytes(&self) -> u64 {
        0
    }

    /// Sum of the gaps between its reads that are kept, in ns: no part of what it is ranked by.
    fn gaps_ns(&self) -> u64 {
        0
    }

    /// Part of the span that a cold sample may bring into the page cache, as its divisor. A file
    /// that fills up while it is measured is no longer cold.
    fn cold_divisor(&self) -> u64 {
        4
    }
}
