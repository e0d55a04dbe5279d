//! Progress of a writer: the cursor in the ring, the bytes that reached the file, and due syncs.

use std::ops::Range;

use pagewise_model::Sync;

/// Position of the next byte, and the bytes that reached the file.
pub(super) struct WriteProgress {
    cursor: u64,
    ring_bytes: u64,
    written: u64,
    unsynced: u64,
    /// A sync is due when this many bytes are unsynced; `u64::MAX` without syncs within the measured region.
    sync_bytes: u64,
}

impl WriteProgress {
    pub(super) fn new(ring_bytes: u64, sync: Sync) -> Self {
        let sync_bytes = if let Sync::Every(bytes) = sync { bytes.0 } else { u64::MAX };
        Self { cursor: 0, ring_bytes, written: 0, unsynced: 0, sync_bytes }
    }

    /// Offset of the next byte in the file.
    #[inline(always)]
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Bytes from the cursor to the end of the ring; never 0.
    #[inline(always)]
    pub(super) fn room(&self) -> u64 {
        self.ring_bytes - self.cursor
    }

    /// Bytes that reached the file.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes from one sync to the next; `u64::MAX` without syncs within the measured region.
    pub(super) fn sync_bytes(&self) -> u64 {
        self.sync_bytes
    }

    /// Bytes after which a sync is due; `u64::MAX` without syncs within the measured region.
    #[inline(always)]
    pub(super) fn until_sync(&self) -> u64 {
        self.sync_bytes.saturating_sub(self.unsynced)
    }

    /// Move the cursor by bytes that reached the file, at most to the end of the ring, which is its start. Return true
    /// if a sync is due.
    #[inline(always)]
    pub(super) fn advance(&mut self, bytes: u64) -> bool {
        debug_assert!(bytes <= self.room(), "a write past the end of the ring");
        self.cursor += bytes;
        if self.cursor == self.ring_bytes {
            self.cursor = 0;
        }
        self.reach(bytes)
    }

    /// Count bytes that reached the file when the cursor is not followed. Return true if a sync is due.
    #[inline(always)]
    pub(super) fn reach(&mut self, bytes: u64) -> bool {
        self.written += bytes;
        self.unsynced += bytes;
        self.unsynced >= self.sync_bytes
    }

    /// True if syncs are done within the measured region and some bytes are unsynced.
    pub(super) fn owes_sync(&self) -> bool {
        self.sync_bytes != u64::MAX && self.unsynced > 0
    }

    /// The ranges of unsynced bytes in the file: two if the end of the ring is between them; otherwise the second is
    /// empty.
    pub(super) fn unsynced(&self) -> [Range<u64>; 2] {
        if self.unsynced >= self.ring_bytes {
            [0..self.ring_bytes, 0..0]
        } else if self.unsynced <= self.cursor {
            [self.cursor - self.unsynced..self.cursor, 0..0]
        } else {
            [self.ring_bytes - (self.unsynced - self.cursor)..self.ring_bytes, 0..self.cursor]
        }
    }

    /// Record that all bytes are synced.
    pub(super) fn synced(&mut self) {
        self.unsynced = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::Bytes;

    #[test]
    fn a_sync_is_due_when_so_much_was_written() {
        let mut progress = WriteProgress::new(100, Sync::Every(Bytes(25)));
        assert_eq!((progress.until_sync(), progress.advance(20)), (25, false));
        assert_eq!((progress.until_sync(), progress.advance(20)), (5, true));
        assert_eq!((progress.until_sync(), progress.owes_sync()), (0, true));
        progress.synced();
        assert_eq!((progress.until_sync(), progress.owes_sync(), progress.written()), (25, false, 40));
        for sync in [Sync::None, Sync::End] {
            let mut progress = WriteProgress::new(100, sync);
            assert!(!progress.advance(100));
            assert_eq!((progress.until_sync() > 1 << 60, progress.owes_sync()), (true, false));
        }
    }

    #[test]
    fn what_is_not_synced_may_lie_on_both_ends() {
        let mut progress = WriteProgress::new(100, Sync::Every(Bytes(1000)));
        progress.advance(70);
        assert_eq!(progress.unsynced(), [0..70, 0..0]);
        progress.synced();
        progress.advance(30);
        assert_eq!((progress.cursor(), progress.room()), (0, 100));
        assert_eq!(progress.unsynced(), [70..100, 0..0]);
        progress.advance(20);
        assert_eq!(progress.unsynced(), [70..100, 0..20]);
        progress.advance(50);
        assert_eq!(progress.unsynced(), [0..100, 0..0]);
    }
}
