//! In which order a worker meets the operations of a table, and the memory in which it finds them.
//!
//! A worker that knew the table before its clock starts could read, add up, sort or advise ahead of time. So the memory holds
//! zeros until `go`, and a measured `go` that follows others has an order that those do not tell.

use std::os::fd::AsRawFd;

use pagewise_model::random::Random;
use pagewise_sys::SharedMemory;

use super::{OffsetTable, TableError};

/// One part in so many of a table must be left for a `go` that is to have operations that were not done yet.
const LEAST_LEFT: u64 = 4;

/// Which operation of a table stands at which place in one `go`. Threads keep their parts.
pub struct OperationOrder {
    /// For each place, the operation that stands there.
    operations: Vec<u32>,
    part: u64,
    repeats: bool,
}

impl OffsetTable {
    /// The table as it was drawn.
    pub fn as_drawn(&self) -> OperationOrder {
        let operations = (0..self.operations() as u32).collect();
        OperationOrder { operations, part: self.operations_per_thread(), repeats: self.repeats }
    }

    /// Another order, drawn from the seed of the table, for a `go` that begins with `first_operation` and follows others.
    ///
    /// A part that is begun again and again is turned, by a third to two thirds of what is left of it: the next operations are
    /// some that were not done yet. One that was done lately would find pages that the kernel keeps since then, so that the cache
    /// would look larger than it is; where little is left the whole part is turned. A shuffled part would bring back
    /// what was just read, and more of it. Where no operation may come twice, those that are not done yet are shuffled.
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

    /// The offsets of one operation of thread `thread`, which counts from the start of its part and goes on to count in its
    /// next laps; `None` behind the end of a part that is not repeated.
    pub fn operation(&self, order: &OperationOrder, thread: u32, operation: u64) -> Option<&[u64]> {
        assert!(u64::from(thread) < self.threads, "a thread that has no part of the table");
        if operation >= order.part && !order.repeats {
            return None;
        }
        Some(self.operation_at(order.operations[order.place(thread, operation)]))
    }

    fn operation_at(&self, operation: u32) -> &[u64] {
        let reads = self.reads_per_op as usize;
        &self.offsets[operation as usize * reads..][..reads]
    }
}

impl OperationOrder {
    /// The place of an operation of thread `thread`, laps counted.
    fn place(&self, thread: u32, operation: u64) -> usize {
        (u64::from(thread) * self.part + operation % self.part) as usize
    }

    /// Places and operations of `count` operations of thread `thread` from `first` on, within one lap and wrapped at its end.
    pub(crate) fn stretch(
        &self,
        thread: u32,
        first: u64,
        count: u64,
    ) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..count).map(move |index| {
            let place = self.place(thread, first % self.part + index);
            (place, self.operations[place] as usize)
        })
    }
}

/// Memory in which a worker finds the table: zeros until the table is put there.
///
/// It is made before the worker, which inherits it and may read it only.
pub struct TableMemory(SharedMemory);

impl TableMemory {
    /// Memory for a table of so many reads. Its pages are there, so that no worker is charged for them.
    pub fn new(reads: u64) -> Result<Self, TableError> {
        let no_memory = |source| TableError::Memory { reads, source };
        let mut memory = SharedMemory::create("pagewise-offsets", reads as usize * 8).map_err(no_memory)?;
        memory.bytes_mut().fill(0);
        memory.seal().map_err(no_memory)?;
        Ok(Self(memory))
    }

    /// The path by which a child opens it; it inherits the descriptor.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.file().as_raw_fd())
    }

    /// Puts what workers follow of `table` there, in this order.
    ///
    /// # Panics
    /// If reads are dependent and the table has not been chained, or if the memory is for a table of another size.
    pub fn put(&mut self, table: &OffsetTable, order: &OperationOrder) {
        let reads = table.reads_per_op as usize;
        let into = self.0.bytes_mut();
        assert_eq!(into.len(), table.reads as usize * 8, "memory of another table");
        let entries = table.entries();
        for (place, operation) in into.chunks_exact_mut(8 * reads).zip(&order.operations) {
            let operation = &entries[*operation as usize * reads..][..reads];
            for (word, entry) in place.chunks_exact_mut(8).zip(operation) {
                word.copy_from_slice(&entry.to_le_bytes());
            }
        }
    }
}
