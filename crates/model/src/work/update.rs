//! `update`: blocks of a file that exists are overwritten, in no order, and others read between.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FileExtent, Offer, OtherWorkers, WorkParameters, WorkloadFacts, WorkloadKind, Writes};
use crate::checksum::Consume;
use crate::content::Content;
use crate::ensure::ensure;
use crate::format::{bytes, counted};
use crate::sync::{Sync, SyncCall};
use crate::units::Bytes;

pub(super) const FACTS: WorkloadFacts = WorkloadFacts {
    title: "updates",
    noun: "updating in place",
    access: "block",
    kind: WorkloadKind::Writes,
    // What is collected in a buffer, or made writable ahead, are the next bytes of the file.
    offer: Offer::Native {
        accesses: &["mmap", "pwrite", "uring", "anonymous"],
        without: &["buffer", "pretouch"],
        others: OtherWorkers::Shipped(4),
    },
    is_one_shot: true,
    starts_cold: false,
    usual_content: Content::Random,
    usual_methods: &["mmap", "mmap:random", "pwrite", "pwrite:direct"],
    axes: &["block_size", "updates", "reads_per_update", "sync", "sync_call", "rate"],
};
/// Reads before an update: with more, an operation is hardly one.
const MAX_READS: u32 = 1000;

/// Blocks of a file that was written before, each at most once, in no order, by one thread; an
/// operation is a block, with the blocks that are read before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Update {
    /// Size of a block.
    pub block_bytes: Bytes,
    /// Number of blocks that are overwritten.
    pub updates: u32,
    /// Number of other blocks that are read before each of them, in no order.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reads_per_update: u32,
    /// Time by which written bytes must be on the device.
    #[serde(default)]
    pub sync: Sync,
    /// The call by which they get there; `None`: the usual one of the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_call: Option<SyncCall>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Update {
    fn blocks(&self) -> Writes {
        let Self { block_bytes, updates, reads_per_update, sync, sync_call } = *self;
        Writes {
            record_bytes: block_bytes,
            passes: 1,
            updates: Some(updates),
            reads_each: reads_per_update,
            sync,
            sync_call,
        }
    }
}

impl WorkParameters for Update {
    fn operation(&self) -> Vec<String> {
        vec![format!("{} of {}", counted(u64::from(self.updates), "block"), bytes(self.block_bytes))]
    }

    fn details(&self) -> Vec<String> {
        let reads = (self.reads_per_update > 0)
            .then(|| format!("{} before each", counted(u64::from(self.reads_per_update), "read")));
        reads.into_iter().chain(self.blocks().details()).collect()
    }

    fn check(&self, _threads: u32) -> Result<(), String> {
        ensure(self.updates > 0, || "0 updates write nothing: write 1 or more".to_string())?;
        ensure(self.reads_per_update <= MAX_READS, || {
            format!("{} reads before an update: write at most {MAX_READS}", self.reads_per_update)
        })?;
        self.blocks().check(FACTS.access)
    }

    fn reads_of(&self, _extent: FileExtent, operations: u64, _piece_bytes: u64) -> u64 {
        operations.saturating_mul(u64::from(self.reads_per_update))
    }

    fn consume(&self) -> Option<Consume> {
        (self.reads_per_update > 0).then_some(Consume::Touch)
    }

    fn writes(&self) -> Option<Writes> {
        Some(self.blocks())
    }
}

impl fmt::Display for Update {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{},updates={}", self.block_bytes, self.updates)?;
        if self.reads_per_update > 0 {
            write!(formatter, ",reads={}", self.reads_per_update)?;
        }
        formatter.write_str(&self.blocks().syncs())
    }
}
