//! Sizes that facts of work depend on.

use crate::units::Bytes;

/// The part of a file that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// Size of the file.
    pub file_bytes: Bytes,
    /// Size of its first part, in which accesses are.
    pub span_bytes: Bytes,
}
