//! Progress of a writer: the cursor in the ring, the bytes that reached the file, and due syncs.

use std::ops::Range;

use pagewise_model::{Sync, SyncCall};

use crate::operations::Latencies;
use crate::sampling::empty_latencies;

/// Position of the next byte, and the bytes that reached the file.
pub(super) struct WriteProgress {
    cursor: u64,
    ring_bytes: u64,
    written: u64,
    unsynced: u64,
    /// A sync is due when this many bytes are unsynced; `u64::MAX` without syncs within the
    /// measured region.
    sync_bytes: u64,
    /// True if each write is a sync, so that none is due.
    writes_sync: bool,
    /// True if all bytes were counted where the cursor is, so that the unsynced ones are known.
    follows: bool,
    /// Durations of the syncs, allocated beforehand; `None` without syncs within the measured
    /// region.
    durations: Option<Latencies>,
}

impl WriteProgress {
    pub(super) fn new(ring_bytes: u64, sync: Sync, call: SyncCall) -> Self {
        let sync_bytes = match sync {
            Sync::Every(bytes) if !call.is_write() => bytes.0,
            _ => u64::MAX,
        };
        Self {
            cursor: 0,
            ring_bytes,
            written: 0,
            unsynced: 0,
            sync_bytes,
            writes_sync: sync.is_measured() && call.is_write(),
            follows: true,
            durations: sync.is_measured().then(empty_latencies),
        }
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

    /// Move the cursor by bytes that reached the file, at most to the end of the ring, which is its
    /// start. Return true if a sync is due.
    #[inline(always)]
    pub(super) fn advance(&mut self, bytes: u64) -> bool {
        debug_assert!(bytes <= self.room(), "a write past the end of the ring");
        self.cursor += bytes;
        if self.cursor == self.ring_bytes {
            self.cursor = 0;
        }
        self.count(bytes)
    }

    /// Count bytes that reached the file somewhere else than at the cursor. Return true if a sync
    /// is due.
    #[inline(always)]
    pub(super) fn reach(&mut self, bytes: u64) -> bool {
        self.follows = false;
        self.count(bytes)
    }

    #[inline(always)]
    fn count(&mut self, bytes: u64) -> bool {
        self.written += bytes;
        self.unsynced += bytes;
        self.unsynced >= self.sync_bytes
    }

    /// True if syncs are done within the measured region and some bytes are unsynced.
    pub(super) fn owes_sync(&self) -> bool {
        self.sync_bytes != u64::MAX && self.unsynced > 0
    }

    /// The ranges of unsynced bytes in the file: two if the end of the ring is between them;
    /// otherwise the second is empty.
    pub(super) fn unsynced(&self) -> [Range<u64>; 2] {
        if self.unsynced >= self.ring_bytes || !self.follows {
            [0..self.ring_bytes, 0..0]
        } else if self.unsynced <= self.cursor {
            [self.cursor - self.unsynced..self.cursor, 0..0]
        } else {
            [self.ring_bytes - (self.unsynced - self.cursor)..self.ring_bytes, 0..self.cursor]
        }
    }

    /// True if each write is a sync.
    #[inline(always)]
    pub(super) fn writes_sync(&self) -> bool {
        self.writes_sync
    }

    /// Record that all bytes are synced, by a sync of this duration.
    pub(super) fn synced(&mut self, took_ns: u64) {
        self.unsynced = 0;
        self.record_sync(took_ns);
    }

    /// Record the duration of a sync.
    pub(super) fn record_sync(&mut self, took_ns: u64) {
        if let Some(durations) = &mut self.durations {
            durations.saturating_record(took_ns);
        }
    }

    /// The durations of the syncs since the last call of this.
    pub(super) fn take_durations(&mut self) -> Option<Latencies> {
        self.durations.as_mut().map(|durations| std::mem::replace(durations, empty_latencies()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::Bytes;

    #[test]
    fn a_sync_is_due_when_so_much_was_written() {
        let mut progress = WriteProgress::new(100, Sync::Every(Bytes(25)), SyncCall::Fsync);
        assert_eq!((progress.until_sync(), progress.advance(20)), (25, false));
        assert_eq!((progress.until_sync(), progress.advance(20)), (5, true));
        assert_eq!((progress.until_sync(), progress.owes_sync()), (0, true));
        progress.synced(70);
        assert_eq!((progress.until_sync(), progress.owes_sync(), progress.written()), (25, false, 40));
        let durations = progress.take_durations().expect("they are measured");
        assert_eq!((durations.len(), durations.max()), (1, 70));
        assert_eq!(progress.take_durations().expect("empty again").len(), 0);
        for sync in [Sync::None, Sync::End] {
            let mut progress = WriteProgress::new(100, sync, SyncCall::Msync);
            assert!(!progress.advance(100));
            assert_eq!((progress.until_sync() > 1 << 60, progress.owes_sync()), (true, false));
            assert!(progress.take_durations().is_none());
        }
    }

    #[test]
    fn a_write_that_syncs_leaves_nothing_due() {
        let mut progress = WriteProgress::new(100, Sync::Every(Bytes(25)), SyncCall::ODsync);
        assert!(progress.writes_sync() && !progress.advance(50) && !progress.owes_sync());
        progress.record_sync(9);
        assert_eq!(progress.take_durations().map(|durations| durations.len()), Some(1));
    }

    #[test]
    fn what_is_not_synced_may_lie_on_both_ends() {
        let mut progress = WriteProgress::new(100, Sync::Every(Bytes(1000)), SyncCall::Msync);
        progress.advance(70);
        assert_eq!(progress.unsynced(), [0..70, 0..0]);
        progress.synced(1);
        progress.advance(30);
        assert_eq!((progress.cursor(), progress.room()), (0, 100));
        assert_eq!(progress.unsynced(), [70..100, 0..0]);
        progress.advance(20);
        assert_eq!(progress.unsynced(), [70..100, 0..20]);
        progress.advance(50);
        assert_eq!(progress.unsynced(), [0..100, 0..0]);
        progress.synced(1);
        progress.reach(10);
        assert_eq!(progress.unsynced(), [0..100, 0..0], "it is not known where");
    }
}
