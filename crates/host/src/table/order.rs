//! Order in which a worker receives the operations of a table: a measured `go` that follows others
//! has one that cannot be derived from theirs.

use pagewise_model::random::Random;

use super::OffsetTable;

/// Denominator of the share of a table that must be left for a `go` with operations that were not
/// done yet.
const LEAST_LEFT: u64 = 4;

/// Order of the operations of a table in one `go`. Threads keep their parts.
pub struct OperationOrder {
    /// For each position, the operation at that position.
    pub(crate) operations: Vec<u32>,
    pub(crate) part: u64,
    repeats: bool,
}

impl OffsetTable {
    /// The table as it was drawn.
    pub fn as_drawn(&self) -> OperationOrder {
        let operations = (0..self.operations() as u32).collect();
        OperationOrder { operations, part: self.operations_per_thread(), repeats: self.repeats }
    }

    /// A different order, drawn from the seed of the table, for a `go` that begins with
    /// `first_operation` and follows others.
    ///
    /// A repeated part is rotated by a third to two thirds of its remainder, so that the next
    /// operations were not done yet. A recent operation would find pages that the kernel has kept
    /// since then, so that the cache would look larger than it is. If little is left, the whole
    /// part is rotated. A shuffled part would bring back more of the recent reads. If no operation
    /// may occur twice, the remaining ones are shuffled.
    pub fn anew(&self, first_operation: u64) -> OperationOrder {
        let mut order = self.as_drawn();
        let mut random = Random::for_purpose(self.seed, "another order");
        let part = order.part;
        let left = part.saturating_sub(first_operation);
        let room = if left >= part / LEAST_LEFT { left } else { part };
        let turn = room / 3 + random.below(room / 3 + 1);
        for operations in order.operations.chunks_exact_mut(part as usize) {
            if self.repeats {
                operations.rotate_left((turn % part) as usize);
            } else {
                random.shuffle(&mut operations[first_operation.min(part) as usize..]);
            }
        }
        order
    }

    /// The offsets of one operation of thread `thread`, counted from the start of its part and on
    /// through its next passes; `None` past the end of a part that is not repeated.
    pub fn operation(&self, order: &OperationOrder, thread: u32, operation: u64) -> Option<&[u64]> {
        assert!(u64::from(thread) < self.threads, "a thread that has no part of the table");
        if operation >= order.part && !order.repeats {
            return None;
        }
        Some(self.operation_at(order.operations[order.position(thread, operation)]))
    }

    fn operation_at(&self, operation: u32) -> &[u64] {
        let reads = self.reads_per_op as usize;
        &self.offsets[operation as usize * reads..][..reads]
    }
}

impl OperationOrder {
    /// The position of an operation of thread `thread`, counted through all passes.
    fn position(&self, thread: u32, operation: u64) -> usize {
        (u64::from(thread) * self.part + operation % self.part) as usize
    }

    /// Positions and operations of `count` operations of thread `thread` from `first` on, within
    /// one pass and wrapped at its end.
    pub(crate) fn range(
        &self,
        thread: u32,
        first: u64,
        count: u64,
    ) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..count).map(move |index| {
            let position = self.position(thread, first % self.part + index);
            (position, self.operations[position] as usize)
        })
    }
}
