//! Stalled operations, found in the times of batches without gaps between them: the rule of
//! `workers/PROTOCOL.md`.
//!
//! A batch is stalled if it takes longer by over `stall_ns` than its operations take on average,
//! and over twice as long. A stalled batch counts in that average with its expected time; otherwise
//! one long stall would hide later ones. The factor of two is needed because operations of several
//! milliseconds scatter by more than one: an average that left out everything above it would sink
//! until all of them were stalled.

/// Operations and their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) operations: u64,
    pub(super) took_ns: u64,
}

impl Batch {
    /// Time of this many operations at this pace, computed with doubles as in every language's
    /// worker.
    pub(super) fn pace(self, operations: u64) -> u64 {
        (self.took_ns as f64 * operations as f64 / self.operations.max(1) as f64) as u64
    }
}

/// Counts stalled batches.
#[derive(Clone, Debug)]
pub struct Stalls {
    /// Excess of a stalled batch over its operations' average.
    stall_ns: u64,
    /// Number of stalled batches.
    pub count: u64,
    /// The longest, less the average of the other operations in its batch.
    pub longest_ns: u64,
    /// The first batch, until there is another to compare it with; alone it is not a stall.
    first: Option<Batch>,
    /// Time of operations without stalls.
    calm: Option<Batch>,
}

impl Stalls {
    pub(super) fn new(stall_ns: u64) -> Self {
        Self { stall_ns, count: 0, longest_ns: 0, first: None, calm: None }
    }

    #[inline(always)]
    pub(super) fn note(&mut self, operations: u64, took_ns: u64) {
        match &mut self.calm {
            Some(calm) if took_ns < self.stall_ns => {
                calm.operations += operations;
                calm.took_ns += took_ns;
            }
            _ => self.judge(Batch { operations, took_ns }),
        }
    }

    #[cold]
    fn judge(&mut self, batch: Batch) {
        let Some(calm) = self.calm else {
            return match self.first.take() {
                None => self.first = Some(batch),
                Some(first) => self.begin(first, batch),
            };
        };
        let due_ns = calm.pace(batch.operations);
        let mut counted_ns = batch.took_ns;
        if batch.took_ns > due_ns + due_ns.max(self.stall_ns) {
            self.count += 1;
            let others_ns = calm.pace(batch.operations.saturating_sub(1));
            self.longest_ns = self.longest_ns.max(batch.took_ns - others_ns);
            counted_ns = due_ns;
        }
        self.calm = Some(Batch {
            operations: calm.operations + batch.operations,
            took_ns: calm.took_ns + counted_ns,
        });
    }

    /// Of the first two batches, the one with the faster operations is the reference for the other.
    fn begin(&mut self, first: Batch, second: Batch) {
        let (calm, other) = if first.pace(1) <= second.pace(1) { (first, second) } else { (second, first) };
        self.calm = Some(calm);
        self.judge(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls(batches: &[(u64, u64)]) -> (u64, u64) {
        let mut stalls = Stalls::new(1_000_000);
        batches.iter().for_each(|(operations, took_ns)| stalls.note(*operations, *took_ns));
        (stalls.count, stalls.longest_ns)
    }

    #[test]
    fn a_stall_is_seen_in_a_batch_and_reduced_to_its_operation() {
        assert_eq!(stalls(&[(100, 1_000_000), (10, 900_000)]), (0, 0), "under 1 ms");
        assert_eq!(stalls(&[(100, 999_000), (1, 10_000), (10, 3_099_900)]), (1, 3_009_990));
        assert_eq!(stalls(&[(1, 50), (1, 1_000_051)]), (1, 1_000_051));
    }

    #[test]
    fn the_first_operation_can_stall_too() {
        assert_eq!(stalls(&[(1, 5_000_000), (1, 100), (100, 10_000)]), (1, 5_000_000));
        assert_eq!(stalls(&[(1, 5_000_000)]), (0, 0), "a single one is as long as it is");
    }

    #[test]
    fn a_stall_does_not_hide_the_next() {
        let long = (1, 5_000_000_000);
        assert_eq!(stalls(&[(1, 10), (1, 10), long, (1000, 10_000), (1000, 1_100_000)]).0, 2);
        assert_eq!(stalls(&[long, (1, 10), (1000, 10_000), (1000, 1_100_000)]).0, 2);
    }

    #[test]
    fn operations_that_all_take_long_are_no_stalls() {
        assert_eq!(stalls(&[(1, 2_500_000); 20]), (0, 0));
        assert_eq!(stalls(&[(1, 2_000_000), (1, 2_900_000), (1, 2_100_000), (2, 4_100_000)]), (0, 0));
    }

    #[test]
    fn slow_operations_that_scatter_are_no_stalls() {
        // 8 to 15 ms, again and again: none of them is an outlier.
        let scattered: Vec<(u64, u64)> = (0..1000).map(|i| (1, (8 + i * 5 % 8) * 1_000_000)).collect();
        assert_eq!(stalls(&scattered), (0, 0));
    }
}
