//! `scan`: the whole file once, front to back.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FileExtent, Offer, WorkParameters, WorkloadFacts, WorkloadKind};
use crate::checksum::Consume;
use crate::content::Content;

pub(super) const FACTS: WorkloadFacts = WorkloadFacts {
    title: "scan",
    noun: "a scan",
    access: "piece",
    kind: WorkloadKind::Scans,
    offer: Offer::Column(1),
    is_one_shot: true,
    starts_cold: true,
    usual_content: Content::Text,
    usual_methods: &["mmap:in-place", "read:buffer=64KiB", "read:direct+buffer=1MiB"],
    axes: &["span", "consume"],
};

/// The whole file, front to back, by one thread; one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scan {
    /// Consumption of the bytes.
    pub consume: Consume,
}

impl WorkParameters for Scan {
    fn operation(&self) -> Vec<String> {
        vec![self.consume.in_words().to_string()]
    }

    fn fixed_operations(&self, _extent: FileExtent) -> Option<u64> {
        Some(1)
    }

    fn reads_of(&self, extent: FileExtent, operations: u64, piece_bytes: u64) -> u64 {
        operations.saturating_mul(extent.span_bytes.0.div_ceil(piece_bytes))
    }

    fn consume(&self) -> Option<Consume> {
        Some(self.consume)
    }

    /// Every page is accessed once.
    fn cold_divisor(&self) -> u64 {
        1
    }
}

impl fmt::Display for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.consume)
    }
}
