//! `anonymous`: the same stores into memory that is already present. A ceiling, not a file access
//! method.

use std::ops::Range;

use pagewise_model::RecordRing;
use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::mmap::{RingMemory, straight};
use super::record_source::RecordSource;
use super::{Sink, WriteTarget, Writer};

/// Memory in place of a file.
pub(super) struct Ceiling(AnonymousMemory);

impl Ceiling {
    pub(super) fn new(target: &WriteTarget) -> Result<Self, CallFailure> {
        target.memory(target.ring_bytes as usize).map(Self)
    }

    /// Fill it with what a file holds that was written before: the complement of its records.
    pub(super) fn fill_as_before(&mut self, source: &RecordSource, ring: &RecordRing) {
        for (index, bytes) in (0..).zip(self.0.bytes_mut().chunks_exact_mut(source.record_bytes())) {
            bytes.iter_mut().zip(source.record(index, ring)).for_each(|(byte, new)| *byte = !*new);
        }
    }

    /// The `len` bytes from `start` on.
    #[inline(always)]
    pub(super) fn bytes(&self, start: usize, len: usize) -> &[u8] {
        &self.0.bytes()[start..start + len]
    }
}

pub(super) fn open(target: &WriteTarget, source: RecordSource) -> Result<Box<dyn Writer>, CallFailure> {
    Ok(straight(Ceiling::new(target)?, target, source))
}

impl Sink for Ceiling {
    fn put(&mut self, bytes: &[u8], offset: u64) -> Result<(), CallFailure> {
        let start = offset as usize;
        self.0.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// There is no device.
    fn sync_ranges(&mut self, _: [Range<u64>; 2]) -> Result<(), CallFailure> {
        Ok(())
    }

    fn sync_all(&mut self) -> Result<(), CallFailure> {
        Ok(())
    }
}

impl RingMemory for Ceiling {
    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}
