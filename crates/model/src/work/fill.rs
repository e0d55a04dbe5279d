//! `fill`: a new file in blocks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Offer, WorkParameters, WorkloadFacts, WorkloadKind, Writes};
use crate::content::Content;
use crate::format::bytes;
use crate::sync::{Sync, SyncCall};
use crate::units::Bytes;

pub(super) const FACTS: WorkloadFacts = WorkloadFacts {
    title: "fill",
    noun: "filling a file",
    access: "block",
    kind: WorkloadKind::Writes,
    offer: Offer::Column(3),
    is_one_shot: true,
    starts_cold: true,
    usual_content: Content::Random,
    usual_methods: &["mmap", "mmap:populate", "mmap:prealloc", "pwrite:buffer=64KiB"],
    axes: &["block_size", "sync", "sync_call"],
};

/// A new file in blocks, front to back, by one thread; an operation is a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fill {
    /// Size of a block.
    pub block_bytes: Bytes,
    /// Time by which written bytes must be on the device.
    #[serde(default)]
    pub sync: Sync,
    /// The call by which they get there; `None`: the usual one of the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_call: Option<SyncCall>,
}

impl Fill {
    fn blocks(&self) -> Writes {
        let Self { block_bytes, sync, sync_call } = *self;
        Writes { record_bytes: block_bytes, passes: 1, updates: None, reads_each: 0, sync, sync_call }
    }
}

impl WorkParameters for Fill {
    fn operation(&self) -> Vec<String> {
        vec![format!("blocks of {}", bytes(self.block_bytes))]
    }

    fn check(&self, _threads: u32) -> Result<(), String> {
        self.blocks().check(FACTS.access)
    }

    fn writes(&self) -> Option<Writes> {
        Some(self.blocks())
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.block_bytes, self.blocks().syncs())
    }
}
