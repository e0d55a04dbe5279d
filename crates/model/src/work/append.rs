//! `append`: records into a ring file.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Offer, WorkParameters, WorkloadFacts, WorkloadKind, Writes};
use crate::content::Content;
use crate::format::bytes;
use crate::sync::{Sync, SyncCall};
use crate::units::Bytes;

pub(super) const FACTS: WorkloadFacts = WorkloadFacts {
    title: "append",
    noun: "appending",
    access: "record",
    kind: WorkloadKind::Writes,
    offer: Offer::Column(2),
    is_one_shot: true,
    starts_cold: true,
    usual_content: Content::Random,
    usual_methods: &["mmap", "mmap:buffer=4KiB", "pwrite", "pwrite:buffer=4KiB"],
    axes: &["record_size", "passes", "sync", "sync_call", "rate"],
};

/// Records into a ring file; an operation is a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Append {
    /// Size of a record.
    pub record_bytes: Bytes,
    /// Number of passes over the ring.
    pub passes: u32,
    /// Time by which written bytes must be on the device.
    #[serde(default)]
    pub sync: Sync,
    /// The call by which they get there; `None`: the usual one of the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_call: Option<SyncCall>,
}

impl Append {
    fn records(&self) -> Writes {
        let Self { record_bytes, passes, sync, sync_call } = *self;
        Writes { record_bytes, passes, updates: None, reads_each: 0, sync, sync_call }
    }
}

impl WorkParameters for Append {
    fn operation(&self) -> Vec<String> {
        let passes = (self.passes > 1).then(|| format!("{} passes", self.passes));
        std::iter::once(format!("records of {}", bytes(self.record_bytes))).chain(passes).collect()
    }

    fn check(&self, _threads: u32) -> Result<(), String> {
        self.records().check(FACTS.access)
    }

    fn writes(&self) -> Option<Writes> {
        Some(self.records())
    }
}

impl fmt::Display for Append {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{},passes={}{}", self.record_bytes, self.passes, self.records().syncs())
    }
}
