//! The bytes that storage may read for a phase: a file that fills the cache is no longer cold.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

/// Stops a phase when storage has read enough for this process: a file that fills the cache is no
/// longer cold.
pub(super) struct DeviceBudget {
    /// /proc/self/io; `None` if there is no budget or the kernel does not count.
    file: Option<OwnedFd>,
    end_bytes: u64,
    next_check_ns: u64,
    check_ns: u64,
}

impl DeviceBudget {
    pub(super) fn new(bytes: u64, check_ns: u64) -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file =
            (bytes > 0).then(|| rustix::fs::open("/proc/self/io", flags, Mode::empty()).ok()).flatten();
        let mut budget = Self { file, end_bytes: u64::MAX, next_check_ns: 0, check_ns };
        budget.end_bytes = budget.read_bytes().map_or(u64::MAX, |begin| begin.saturating_add(bytes));
        budget
    }

    fn read_bytes(&self) -> Option<u64> {
        let mut text = [0u8; 512];
        let len = rustix::io::pread(self.file.as_ref()?, &mut text[..], 0).ok()?;
        let text = std::str::from_utf8(&text[..len]).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?;
        line.trim().parse().ok()
    }

    #[inline]
    pub(super) fn is_spent(&mut self, now_ns: u64) -> bool {
        if self.file.is_none() || now_ns < self.next_check_ns {
            return false;
        }
        self.next_check_ns = now_ns + self.check_ns;
        self.read_bytes().is_some_and(|bytes| bytes >= self.end_bytes)
    }
}
