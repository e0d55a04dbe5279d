//! The errors of everything that is done with a group.

use std::path::PathBuf;

use pagewise_model::Bytes;

use super::NoControl;
use crate::kernel_files::CallError;

/// Reason that a group could not be made or configured as requested.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// No right, or no controller.
    #[error(transparent)]
    NoControl(#[from] NoControl),
    /// The limit is too small for any worker.
    #[error("a worker needs at least {} of memory: the limit is {}", Bytes(*least_bytes), Bytes(*limit_bytes))]
    TooLittle {
        /// Requested limit.
        limit_bytes: u64,
        /// Smallest possible limit.
        least_bytes: u64,
    },
    /// A group above has a lower limit, which would be the effective one.
    #[error("a limit of {} would not be effective: {} has {}", Bytes(*limit_bytes), group.display(), Bytes(*above_bytes))]
    LowerAbove {
        /// Requested limit.
        limit_bytes: u64,
        /// Effective limit.
        above_bytes: u64,
        /// Group that has it.
        group: PathBuf,
    },
    /// The kernel changed a value that was written.
    #[error("{} was set to {wanted} but reads {found}", path.display())]
    NotTaken {
        /// The file.
        path: PathBuf,
        /// Value written.
        wanted: String,
        /// Value read back.
        found: String,
    },
    /// Processes are still in it.
    #[error("{} is still in use by {processes:?}", path.display())]
    InUse {
        /// The group.
        path: PathBuf,
        /// Ids of the processes.
        processes: Vec<u32>,
    },
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}
