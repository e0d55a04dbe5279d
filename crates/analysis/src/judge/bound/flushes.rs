//! The ceiling of syncs: how often the device makes bytes durable, in pieces of a size.
//!
//! A cell made to find it writes pieces of whole blocks past the page cache over a file that was
//! written before, and syncs each. A sync of more bytes cannot be more frequent, so whatever synced
//! as many bytes or more counts as reached.

use pagewise_model::{Bytes, Cell, Conditions, DeviceCap, Role};
use serde::Serialize;

use super::activity::Activity;
use super::top::{Top, lower_end};
use crate::statistics::Extent;

/// Pieces are alike up to this factor: a piece that is made to find the ceiling is of whole blocks.
const ALIKE: f64 = 0.98;

/// Rate of syncs that something reached.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FlushCeiling {
    /// The method.
    pub reached_by: String,
    /// True if the cell was made to find the maximum.
    #[serde(skip)]
    pub dedicated: bool,
    /// Size of the file.
    pub file_bytes: Bytes,
    /// Cap of the device.
    pub device_cap: Option<DeviceCap>,
    /// Bytes of each sync.
    pub bytes_per_sync: f64,
    /// Syncs per second: the lower end of its interval over rounds.
    #[serde(serialize_with = "lower_end")]
    #[schemars(with = "f64")]
    pub per_second: Extent,
    /// Samples of it.
    pub samples: usize,
}

impl FlushCeiling {
    /// The rate that `cell` reached in so many samples; `None` without durable syncs.
    pub(super) fn reached_by_cell(cell: &Cell, activity: &Activity, samples: usize) -> Option<Self> {
        let per_second = activity.flushes_per_second.filter(|rate| rate.low > 0.0)?;
        let bytes_per_sync = activity.bytes_per_flush()?;
        cell.sync_call().filter(|call| call.is_durable())?;
        Some(Self {
            reached_by: cell.method.to_string(),
            dedicated: cell.role == Role::Ceiling,
            file_bytes: cell.conditions.file_bytes,
            device_cap: cell.conditions.host_settings.device_cap,
            bytes_per_sync,
            per_second,
            samples,
        })
    }

    /// True if it exceeded all syncs of as many bytes or more, and some of them were made to find
    /// the maximum.
    pub(super) fn exceeds(&self, all: &[Self]) -> bool {
        let same = |other: &&Self| {
            (other.file_bytes, other.device_cap) == (self.file_bytes, self.device_cap)
                && other.bytes_per_sync >= self.bytes_per_sync * ALIKE
        };
        let mut others = all.iter().filter(same);
        let is_known = all.iter().filter(same).any(|other| other.dedicated);
        is_known
            && others.all(|other| std::ptr::eq(other, self) || other.per_second.low < self.per_second.low)
    }

    /// The most syncs per second of at least `bytes` each, under `conditions`.
    pub(super) fn top<'a>(all: &'a [Self], conditions: &Conditions, bytes: f64) -> Option<Top<'a>> {
        let same = || {
            all.iter().filter(|one| {
                (one.file_bytes, one.device_cap)
                    == (conditions.file_bytes, conditions.host_settings.device_cap)
            })
        };
        let of = |one: &'a Self| Top::of(one.per_second, &one.reached_by);
        let made_for_it = same().filter(|one| one.dedicated && one.bytes_per_sync >= bytes * ALIKE);
        let nearest = made_for_it.min_by(|left, right| left.bytes_per_sync.total_cmp(&right.bytes_per_sync));
        let as_large = same().filter(|one| one.bytes_per_sync >= bytes * ALIKE).map(of);
        Top::highest(nearest.map(of), as_large)
    }
}

#[cfg(test)]
mod tests {
    use pagewise_model::{Append, Sync, SyncCall, Work};

    use super::*;

    fn conditions() -> Conditions {
        let sync = Sync::Commit;
        let append =
            Append { record_bytes: Bytes(4096), passes: 1, sync, sync_call: Some(SyncCall::Fdatasync) };
        Conditions::of(Work::Append(append), Bytes::mib(16))
    }

    fn reached(method: &str, dedicated: bool, bytes: f64, per_second: f64) -> FlushCeiling {
        FlushCeiling {
            reached_by: method.to_string(),
            dedicated,
            file_bytes: Bytes::mib(16),
            device_cap: None,
            bytes_per_sync: bytes,
            per_second: Extent { low: 0.9 * per_second, median: per_second, high: 1.1 * per_second },
            samples: 3,
        }
    }

    #[test]
    fn a_sync_is_compared_with_syncs_of_as_many_bytes() {
        let all = [
            reached("made", true, 4096.0, 9000.0),
            reached("made", true, 65536.0, 3000.0),
            reached("pwrite", false, 4096.0, 9500.0),
            reached("smaller", false, 200.0, 20_000.0),
        ];
        let top = |bytes: f64| FlushCeiling::top(&all, &conditions(), bytes).expect("a ceiling");
        // A method that was faster is the ceiling; its share of it is all.
        assert_eq!((top(4096.0).reached_by, top(4096.0).median), ("pwrite", 9500.0));
        // 65,400 B of records are a piece of 64 KiB.
        assert_eq!((top(65_400.0).reached_by, top(65_400.0).median), ("made", 3000.0));
        assert!(FlushCeiling::top(&all, &conditions(), 1e6).is_none(), "no piece is as large");
        assert!(FlushCeiling::top(&all[2..], &conditions(), 4096.0).is_none(), "nothing was made to find it");
        // What is shown: those that were made to find it, and what exceeded all of as large syncs.
        let exceeding: Vec<bool> = all.iter().map(|one| one.exceeds(&all)).collect();
        assert_eq!(exceeding, [false, true, true, true], "only the first is below one of as many bytes");
        let other = Conditions { file_bytes: Bytes::mib(32), ..conditions() };
        assert!(FlushCeiling::top(&all, &other, 4096.0).is_none(), "another file");
    }
}
