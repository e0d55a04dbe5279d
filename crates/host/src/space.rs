//! Space of a filesystem.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::StatVfs;

/// Space of a filesystem, as far as it reports that: some (FUSE, tmpfs without a limit) report
/// none, and quotas do not show.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// All of it; 0 if it is not reported.
    pub total_bytes: u64,
    /// Bytes that this user may still fill.
    pub free_bytes: u64,
}

impl Space {
    /// Of the filesystem that holds `path`.
    pub fn at(path: &Path) -> rustix::io::Result<Self> {
        rustix::fs::statvfs(path).map(Self::from)
    }

    /// Of the filesystem that holds an open file.
    pub fn of(file: impl AsFd) -> rustix::io::Result<Self> {
        rustix::fs::fstatvfs(file).map(Self::from)
    }

    /// True if fewer than `bytes` are free.
    pub fn is_below(self, bytes: u64) -> bool {
        self.total_bytes > 0 && self.free_bytes < bytes
    }
}

impl From<StatVfs> for Space {
    fn from(space: StatVfs) -> Self {
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Self { total_bytes: bytes(space.f_blocks), free_bytes: bytes(space.f_bavail) }
    }
}
