//! The sync call of a job: how written bytes become durable.

use std::ops::Range;

use pagewise_model::SyncCall;
use pagewise_protocol::CallFailure;
use pagewise_sys::sync_file_range;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::failure::{failed, refused};

/// Sync `ranges` of a file by a call that follows the writes; msync belongs to mappings. A call
/// that covers the whole file is made once.
pub(super) fn sync_ranges(
    call: SyncCall,
    file: &OwnedFd,
    path: &str,
    ranges: [Range<u64>; 2],
) -> Result<(), CallFailure> {
    let failure = |errno: Errno| failed(call.name(), errno.into(), path, 0);
    match call {
        SyncCall::Fdatasync => rustix::fs::fdatasync(file).map_err(failure),
        SyncCall::Fsync => rustix::fs::fsync(file).map_err(failure),
        SyncCall::SyncFileRange => {
            let mut ranges = ranges.into_iter().filter(|range| !range.is_empty());
            ranges.try_for_each(|range| {
                sync_file_range(file, range).map_err(|error| refused(call.name(), error, path))
            })
        }
        SyncCall::Msync | SyncCall::RwfDsync | SyncCall::ODsync => {
            unreachable!("{call} syncs no descriptor: the method was refused")
        }
    }
}
