//! Records of one thread as operations, without commits.

use pagewise_protocol::{CallFailure, Go};

use super::Writer;
use crate::failure::refusal;
use crate::operations::{Done, Latencies, Operations};

/// Records of `append`, or blocks of `fill`, one after the other.
pub struct Records {
    writer: Box<dyn Writer>,
    offered: u64,
}

impl Records {
    /// Records that `writer` writes, from its first one on.
    pub fn new(writer: Box<dyn Writer>) -> Self {
        Self { writer, offered: 0 }
    }
}

impl Operations for Records {
    fn begin(&mut self, go: &Go) {
        self.writer.begin(go.touch_at);
    }

    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure> {
        if position != self.offered {
            let detail = format!(
                "record {position} was requested where record {} is next: records are written in order",
                self.offered
            );
            return Err(refusal("append", "", detail));
        }
        let operations = wanted.min(end.saturating_sub(position));
        self.writer.append(operations)?;
        self.offered += operations;
        Ok(Done { operations, checksum: self.writer.take_checksum() })
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.writer.finish()?;
        Ok(self.writer.take_checksum())
    }

    fn bytes(&self) -> u64 {
        self.writer.written()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.writer.sync()
    }

    fn take_sync_durations(&mut self) -> Option<Latencies> {
        self.writer.take_sync_durations()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Counts the records it is given; they reach the file with `finish`.
    #[derive(Default)]
    struct Counting {
        staged: u64,
        written: Arc<AtomicU64>,
        synced: Arc<AtomicU64>,
    }

    impl Writer for Counting {
        fn append(&mut self, count: u64) -> Result<(), CallFailure> {
            self.staged += count;
            Ok(())
        }

        fn finish(&mut self) -> Result<(), CallFailure> {
            self.written.fetch_add(self.staged * 10, Ordering::Relaxed);
            self.staged = 0;
            Ok(())
        }

        fn written(&self) -> u64 {
            self.written.load(Ordering::Relaxed)
        }

        fn sync(&mut self) -> Result<(), CallFailure> {
            self.synced.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn take_sync_durations(&mut self) -> Option<Latencies> {
            None
        }
    }

    #[test]
    fn records_are_written_in_order_and_none_behind_the_end() {
        let writer = Counting::default();
        let synced = writer.synced.clone();
        let mut records = Records::new(Box::new(writer));
        assert_eq!(records.perform(0, 7, 10).map(|done| done.operations), Ok(7));
        assert_eq!(records.bytes(), 0, "they are staged");
        assert_eq!(records.perform(7, 7, 10).map(|done| done.operations), Ok(3));
        assert_eq!(records.perform(10, 1, 10).map(|done| done.operations), Ok(0));
        assert_eq!(records.finish(), Ok(0));
        assert_eq!(records.bytes(), 100);
        records.sync().expect("sync");
        assert_eq!(synced.load(Ordering::Relaxed), 1);

        let failure = records.perform(3, 1, 20).expect_err("a record twice");
        assert!(
            failure.detail.contains("record 3 was requested where record 10 is next"),
            "{}",
            failure.detail
        );
        assert!(records.fetch(0, &mut [0; 4]).is_err());
    }
}
