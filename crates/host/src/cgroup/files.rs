//! Files of groups: writing, and the errors of everything that is done with a group.

use std::io;
use std::path::{Path, PathBuf};

use pagewise_model::Bytes;

use super::NoControl;
use crate::kernel_files;

/// Reason that a group could not be made or configured as requested.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// There is no right or no controller.
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
        /// Their ids.
        processes: Vec<u32>,
    },
    /// A call failed.
    #[error("{call} of {}: {error}", path.display())]
    Io {
        /// The failed call.
        call: &'static str,
        /// Its path.
        path: PathBuf,
        /// Its errno.
        #[source]
        error: io::Error,
    },
}

impl GroupError {
    pub(super) fn io(call: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { call, path, error }
    }
}

/// Write to a file of the kernel, in one call.
pub(super) fn write(path: &Path, text: &str) -> Result<(), GroupError> {
    kernel_files::write(path, text).map_err(GroupError::io("write", path))
}

/// The same for a file that some kernels do not have.
pub(super) fn write_if_there(path: &Path, text: &str) -> Result<(), GroupError> {
    match write(path, text) {
        Err(GroupError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
