//! Buffers that go to the file in whole blocks.

use pagewise_model::Bytes;
use pagewise_protocol::CallFailure;
use pagewise_sys::AnonymousMemory;

use super::WriteTarget;
use super::record_source::RecordSource;
use super::setup::impossible;

/// The filling of a buffer with a stream of records. The buffer itself is the caller's.
pub(super) struct Filling {
    capacity: usize,
    ring_bytes: u64,
    /// Offset in the file of the buffer's first byte: a multiple of a block.
    base: u64,
    filled: usize,
    /// Bytes of the buffer that a [`Writer::finish`](super::Writer::finish) has already put into
    /// the file.
    put: usize,
    /// A block: its content in the file, where a buffer ends within it.
    block: AnonymousMemory,
}

impl Filling {
    /// Of blocks as O_DIRECT requires them. Fails if the last block of the ring would make the file
    /// longer.
    pub(super) fn of_blocks(capacity: Bytes, target: &WriteTarget) -> Result<Self, CallFailure> {
        let alignment = target.direct_alignment;
        let end = target.ring_bytes.next_multiple_of(alignment as u64);
        if end > target.file_bytes {
            return Err(impossible(
                &target.path,
                format!(
                    "the last record ends at {}, its block of {alignment} bytes ends past the end of the file ({} bytes): O_DIRECT writes whole blocks",
                    target.ring_bytes, target.file_bytes
                ),
            ));
        }
        Self::new(capacity.0 as usize, alignment, target)
    }

    /// Of blocks of one byte, for writes without O_DIRECT.
    pub(super) fn of_bytes(capacity: usize, target: &WriteTarget) -> Result<Self, CallFailure> {
        Self::new(capacity, 1, target)
    }

    fn new(capacity: usize, block_bytes: usize, target: &WriteTarget) -> Result<Self, CallFailure> {
        let block = target.memory(block_bytes)?;
        Ok(Self { capacity, ring_bytes: target.ring_bytes, base: 0, filled: 0, put: 0, block })
    }

    /// Size of the buffer.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Offset of the buffer in the file.
    #[inline(always)]
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Capacity of this buffer: up to its size or the end of the ring.
    #[inline(always)]
    fn limit(&self) -> usize {
        match usize::try_from(self.ring_bytes - self.base) {
            Ok(room) => room.min(self.capacity),
            Err(_) => self.capacity,
        }
    }

    /// True if nothing more fits.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.filled == self.limit()
    }

    /// Bytes of records that the file does not have yet.
    #[inline(always)]
    pub(super) fn fresh(&self) -> u64 {
        (self.filled - self.put) as u64
    }

    /// Copy what fits of the next `left` bytes of records, and return its length.
    #[inline(always)]
    pub(super) fn fill(&mut self, buffer: &mut [u8], source: &mut RecordSource, left: u64) -> u64 {
        let len = (self.limit() - self.filled).min(usize::try_from(left).unwrap_or(usize::MAX));
        source.stream(&mut buffer[self.filled..self.filled + len]);
        self.filled += len;
        len as u64
    }

    /// Length of the last block that is not filled.
    fn padding(&self) -> usize {
        match self.block.bytes().len() {
            1 => 0,
            block => self.filled.next_multiple_of(block) - self.filled,
        }
    }

    /// Fill the last block of a full buffer with zeros, as after the end of the ring, and return
    /// the length to put.
    pub(super) fn close(&self, buffer: &mut [u8]) -> usize {
        let len = self.filled + self.padding();
        buffer[self.filled..len].fill(0);
        len
    }

    /// Read the block of the last byte from the file, if the buffer ends within one.
    pub(super) fn read_last_block(
        &mut self,
        read: impl FnOnce(&mut [u8], u64) -> Result<(), CallFailure>,
    ) -> Result<(), CallFailure> {
        let (padding, block) = (self.padding(), self.block.bytes_mut());
        let start = self.filled + padding - block.len();
        if padding > 0 { read(block, self.base + start as u64) } else { Ok(()) }
    }

    /// Fill the last block of a buffer that is not full with what the file has there, which thus
    /// does not change, and return the length to put. The buffer is filled further and put again.
    pub(super) fn close_part(&self, buffer: &mut [u8]) -> usize {
        let (block, padding) = (self.block.bytes(), self.padding());
        let len = self.filled + padding;
        buffer[self.filled..len].copy_from_slice(&block[block.len() - padding..]);
        len
    }

    /// All bytes so far are in the file.
    pub(super) fn put(&mut self) {
        self.put = self.filled;
    }

    /// Begin the buffer, of which nothing is filled, at this offset.
    #[inline(always)]
    pub(super) fn begin_at(&mut self, offset: u64) {
        self.base = offset;
    }

    /// Begin the next buffer, after this one.
    pub(super) fn next(&mut self) {
        let next = self.base + self.filled as u64;
        self.base = if next == self.ring_bytes { 0 } else { next };
        (self.filled, self.put) = (0, 0);
    }
}
