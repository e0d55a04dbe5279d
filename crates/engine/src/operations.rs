//! Operations: the work of a thread between two clock readings.
//!
//! Reads by the offset table, passes over a file ([`crate::reader`]) and written records
//! (`crate::writer`) are implementations. [`crate::sampling`] uses this trait only; its phases are
//! compiled for each of them, so neither a batch nor an operation costs an indirect call.

use hdrhistogram::Histogram;
use pagewise_protocol::{CallFailure, Go};

use crate::clock::now_ns;
use crate::failure::refusal;

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

/// The work of one thread. A position counts operations from the thread's first one, over all
/// passes.
pub trait Operations: Send {
    /// A sample begins, before its clock.
    fn begin(&mut self, _go: &Go) {}

    /// Do at most `wanted` operations from `position` on, at least one if any is left, and none
    /// from operation `end` on.
    fn perform(&mut self, position: u64, wanted: u64, end: u64) -> Result<Done, CallFailure>;

    /// Complete the operations in flight or staged, and return their checksum.
    fn finish(&mut self) -> Result<u64, CallFailure> {
        Ok(0)
    }

    /// Like [`Operations::perform`] and [`Operations::finish`], with the time of each operation
    /// recorded.
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

    /// True if the time of a [`Operations::perform`] of one operation is that operation's latency;
    /// false if several operations are in flight.
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

    /// The durations of the syncs since the last call of this, if syncs belong to the measured
    /// region.
    fn take_sync_durations(&mut self) -> Option<Latencies> {
        None
    }

    /// The time waited in the gaps of a recorded program since the last call of this.
    fn take_gap_wait_ns(&mut self) -> u64 {
        0
    }
}
