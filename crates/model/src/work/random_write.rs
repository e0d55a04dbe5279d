//! `random-write`: each block of a file once, in no order.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Offer, WorkParameters, WorkloadFacts, WorkloadKind, Writes};
use crate::content::Content;
use crate::format::bytes;
use crate::sync::Sync;
use crate::units::Bytes;

pub(super) const FACTS: WorkloadFacts = WorkloadFacts {
    title: "random writes",
    noun: "writing blocks at random",
    access: "block",
    kind: WorkloadKind::Writes,
    // What is collected in a buffer, or made writable ahead, are the next bytes of the file.
    offer: Offer::Native {
        accesses: &["mmap", "pwrite", "anonymous"],
        without: &["buffer", "direct", "pretouch"],
        by_users: false,
    },
    is_one_shot: true,
    starts_cold: false,
    usual_content: Content::Random,
    usual_methods: &["mmap", "mmap:random", "pwrite"],
    axes: &["block_size"],
};

/// Each block of a file once, in no order, by one thread; an operation is a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RandomWrite {
    /// Size of a block.
    pub block_bytes: Bytes,
}

impl WorkParameters for RandomWrite {
    fn operation(&self) -> Vec<String> {
        vec![format!("blocks of {}", bytes(self.block_bytes))]
    }

    fn check(&self, _threads: u32) -> Result<(), String> {
        self.writes().map_or(Ok(()), |blocks| blocks.check(FACTS.access))
    }

    fn writes(&self) -> Option<Writes> {
        let record_bytes = self.block_bytes;
        Some(Writes { record_bytes, passes: 1, is_scattered: true, sync: Sync::None, sync_call: None })
    }
}

impl fmt::Display for RandomWrite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.block_bytes.fmt(formatter)
    }
}
