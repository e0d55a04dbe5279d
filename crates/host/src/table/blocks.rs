//! The span cut into disjoint blocks.

use pagewise_model::random::Random;

/// The span cut into blocks: each holds one read (or sequential operation) and begins on a page, so that no
/// read finds a page that one of another block has brought in.
///
/// Where the alignment is smaller than the read, blocks are therefore fewer than the places at which a read may begin.
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
            // Room to begin at any place of a page that the alignment allows, as such reads do.
            let slack =
                if page.is_multiple_of(align_bytes) { page - align_bytes } else { page.max(align_bytes) - 1 };
            (drawn_bytes + slack).next_multiple_of(page)
        };
        // The last block may lack the part behind its read, which then begins with the block.
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

    /// Where the read of a block begins: any aligned place from which it stays within the block.
    pub(super) fn start(&self, block: u64, random: &mut Random) -> u64 {
        let first = (block * self.block_bytes).div_ceil(self.align_bytes);
        let last = ((block + 1) * self.block_bytes - self.drawn_bytes) / self.align_bytes;
        (first + random.below(last - first + 1)) * self.align_bytes
    }
}
