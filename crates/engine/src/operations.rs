//! Operations: the work of a thread between two clock readings.
//!
//! Reads by the offset table are one implementation ([`crate::reader::TableReads`]), passes over a file another
//! ([`crate::scanner::Passes`]), written records the third ([`Records`]). [`crate::sampling`] and [`crate::crew`] use
//! this trait only. A batch costs one indirect call more than the work itself, an operation none.

use hdrhistogram::Histogram;
use pagewise_protocol::CallFailure;

use crate::clock::now_ns;
use crate::failure::refusal;
use crate::writer::Writer;

/// Latencies in nanoseconds, to three significant digits.
pub type Latencies = Histogram<u64>;

/// Maximum operations in one call of [`Operations::perform_timed`].
pub const TIMED_BATCH_OPERATIONS: usize = 256;

/// Work done in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Operations; the last bytes of some may still be in flight or staged.
    pub operations: u64,
    /// Sum of the checksums of the bytes consumed in this call.
    pub checksum: u64,
}

/// The work of one thread. A position counts operations from the thread's first one, over all passes.
pub trait Operations: Send {
    /// Do at most `wanted` operations from `position` on, at least one if any is left, and none from operation `end` on.
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure>;

    /// Complete the operations in flight or staged, and return their checksum.
    fn finish(&mut self) -> Result<u64, CallFailure> {
        Ok(0)
    }

    /// Like [`Operations::perform`] and [`Operations::finish`], with the time of each operation recorded.
    fn perform_timed(
        &mut self,
        position: u64,
        wanted: u64,
        end: u64,
        latencies: &mut Latencies,
    ) -> Result<Done, CallFailure> {
        let mut total = Done { operations: 0, checksum: 0 };
        let mut before = now_ns();
        while total.operations < wanted {
            let done = self.perform(position + total.operations, 1, end)?;
            if done.operations == 0 {
                break;
            }
            total.operations += done.operations;
            total.checksum = total.checksum.wrapping_add(done.checksum).wrapping_add(self.finish()?);
            let after = now_ns();
            latencies.saturating_record(after - before);
            before = after;
        }
        Ok(total)
    }

    /// True if the time of a [`Operations::perform`] of one operation is that operation's latency; false if several
    /// operations are in flight.
    fn is_sequential(&self) -> bool {
        true
    }

    /// Fill the page tables of the span, if there are any, and return only when they are full.
    fn warm_page_tables(&mut self) {}

    /// Do one read by the same method and copy its bytes to `into`.
    fn fetch(&mut self, offset: u64, into: &mut [u8]) -> Result<(), CallFailure> {
        let detail = format!("this workload has no read of {} bytes at offset {offset}", into.len());
        Err(refusal("verify", "", detail))
    }

    /// Bytes requested and received, or written to the file, so far.
    fn bytes(&self) -> u64;

    /// Sync the written bytes to the device.
    fn sync(&mut self) -> Result<(), CallFailure> {
        Ok(())
    }
}

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
        Ok(Done { operations, checksum: 0 })
    }

    fn finish(&mut self) -> Result<u64, CallFailure> {
        self.writer.finish().map(|()| 0)
    }

    fn bytes(&self) -> u64 {
        self.writer.written()
    }

    fn sync(&mut self) -> Result<(), CallFailure> {
        self.writer.sync()
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
