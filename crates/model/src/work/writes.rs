//! Common part of the workloads that write: records of one size.

use crate::ensure::ensure;
use crate::format::bytes;
use crate::ring::RecordRing;
use crate::sync::{Sync, SyncCall};
use crate::units::Bytes;

use super::FileExtent;

/// A record must be small compared with memory.
const MAX_RECORD: Bytes = Bytes::mib(64);
const MAX_PASSES: u32 = 1000;

/// Records of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Writes {
    /// Size of a record or block.
    pub record_bytes: Bytes,
    /// Number of passes over the file.
    pub passes: u32,
    /// Number of blocks of a file that exists which are overwritten in no order
    /// ([`RecordRing::scattered`]). `None`: one record after the other, each position in turn.
    pub updates: Option<u32>,
    /// Number of blocks that are read before each of them.
    pub reads_each: u32,
    /// Time by which written bytes must be on the device.
    pub sync: Sync,
    /// The call by which they get there; `None`: the usual one of the method.
    pub sync_call: Option<SyncCall>,
}

impl Writes {
    /// True if they overwrite blocks of a file that exists.
    pub const fn is_update(&self) -> bool {
        self.updates.is_some()
    }

    /// The sync in whole records: an interval holds as many as fit, at least one. Otherwise a
    /// record that straddles the end of an interval would make unbuffered methods sync later, and a
    /// buffer that holds an interval less a part of a record would sync half as often.
    pub fn sync_of_records(&self) -> Sync {
        match self.sync {
            Sync::Every(bytes) => {
                let record = self.record_bytes.0.max(1);
                Sync::Every(Bytes((bytes.0 / record).max(1).saturating_mul(record)))
            }
            sync => sync,
        }
    }

    /// Positions of records in a file of `file_bytes`.
    pub(crate) fn ring(&self, file_bytes: Bytes) -> RecordRing {
        let ring = RecordRing::new(file_bytes.0, self.record_bytes.0, u64::from(self.passes));
        match self.updates {
            Some(updates) => ring.scattered(u64::from(updates)).reading(self.reads_each),
            None => ring,
        }
    }

    /// Check each number; `unit` is the name of a record.
    pub(super) fn check(&self, unit: &str) -> Result<(), String> {
        let (size, passes) = (self.record_bytes, self.passes);
        ensure(size.0 > 0, || format!("a {unit} of 0B writes nothing"))?;
        ensure(size <= MAX_RECORD, || {
            format!("a {unit} of {size} is too large: write at most {MAX_RECORD}")
        })?;
        ensure((1..=MAX_PASSES).contains(&passes), || format!("{passes} passes: write 1 to {MAX_PASSES}"))
    }

    /// Records of all passes; `None` if those of a commit go on as long as the sample.
    pub(super) fn fixed_operations(&self, extent: FileExtent) -> Option<u64> {
        if self.sync == Sync::Commit { None } else { Some(self.ring(extent.file_bytes).records()) }
    }

    /// The times of syncs, as parts of a label.
    pub(super) fn details(&self) -> Vec<String> {
        let when = match self.sync {
            Sync::None => return Vec::new(),
            Sync::End => "sync at the end".to_string(),
            Sync::Every(every) => format!("sync every {}", bytes(every)),
            Sync::Commit => "each record committed".to_string(),
        };
        vec![self.sync_call.map_or(when.clone(), |call| format!("{when} by {call}"))]
    }

    /// The times of syncs, as a part of a cell's id.
    pub(super) fn syncs(&self) -> String {
        let sync = if self.sync == Sync::None { String::new() } else { format!(",sync={}", self.sync) };
        self.sync_call.map_or(sync.clone(), |call| format!("{sync},sync-call={call}"))
    }
}
