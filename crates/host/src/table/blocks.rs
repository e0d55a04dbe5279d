//! Division of the span into disjoint blocks.

use pagewise_model::random::Random;

/// The span divided into blocks. Each holds one read (or sequential operation) and begins on a
/// page, so that no read uses a page that a read of another block has brought in.
///
/// If the alignment is smaller than the read, there are fewer blocks than possible starts of a
/// read.
pub(super) struct SpanBlocks {
    count: u64,
    block_bytes: u64,
    drawn_bytes: u64,
    align_bytes: u64,
}

impl SpanBlocks {
    pub(super) fn new(span_bytes: u64, drawn_bytes: u64, align_bytes: u64, page: u64) -> Self {
        let block_bytes = if align_bytes.is_multiple_of(page) {
            drawn_bytes.next_multiple_of(align_bytes)
        } else {
            // Space to begin at any position of a page that the alignment allows.
            let slack =
                if page.is_multiple_of(align_bytes) { page - align_bytes } else { page.max(align_bytes) - 1 };
            (drawn_bytes + slack).next_multiple_of(page)
        };
        // The last block may lack the space after its read, which begins with the block then.
        let aligned_last = if align_bytes.is_multiple_of(page) { block_bytes - drawn_bytes } else { 0 };
        let count = (span_bytes + aligned_last) / block_bytes;
        Self { count, block_bytes, drawn_bytes, align_bytes }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Start of the read of a block: any aligned position from which it stays within the block.
    pub(super) fn start(&self, block: u64, random: &mut Random) -> u64 {
        let first = (block * self.block_bytes).div_ceil(self.align_bytes);
        let last = ((block + 1) * self.block_bytes - self.drawn_bytes) / self.align_bytes;
        (first + random.below(last - first + 1)) * self.align_bytes
    }
}
