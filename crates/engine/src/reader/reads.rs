//! Reads that are due, and what comes behind them.

/// Some consecutive reads of a thread's part of the table. Positions count reads from the part's start, laps too.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    part: &'a [u64],
    first: u64,
    count: usize,
    end: u64,
}

impl<'a> Reads<'a> {
    /// `count` reads of `part` from position `first` on, at most to the end of the part. None will be done from position
    /// `end` on.
    pub fn new(part: &'a [u64], first: u64, count: usize, end: u64) -> Self {
        let left = part.len() - (first % part.len() as u64) as usize;
        Self { part, first, count: count.min(left), end }
    }

    /// These reads and none behind them.
    pub fn alone(offsets: &'a [u64]) -> Self {
        Self { part: offsets, first: 0, count: offsets.len(), end: offsets.len() as u64 }
    }

    /// The offsets of those that are due.
    #[inline(always)]
    pub fn due(&self) -> &'a [u64] {
        let start = if self.part.is_empty() { 0 } else { (self.first % self.part.len() as u64) as usize };
        &self.part[start..start + self.count]
    }

    /// The position of the first that is due.
    #[inline(always)]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The position behind the last that will be done, now or later.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The offset at a position.
    #[inline(always)]
    pub fn at(&self, position: u64) -> u64 {
        self.part[(position % self.part.len() as u64) as usize]
    }

    /// Those that are due by operations of `reads_per_op`.
    pub fn operations(self, reads_per_op: usize) -> impl Iterator<Item = Reads<'a>> {
        (0..self.count / reads_per_op).map(move |operation| Reads {
            first: self.first + (operation * reads_per_op) as u64,
            count: reads_per_op,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_with_the_part_and_know_what_comes_behind() {
        let part: Vec<u64> = (100..110).collect();
        let reads = Reads::new(&part, 26, 8, u64::MAX);
        assert_eq!((reads.due(), reads.first()), (&part[6..], 26));
        assert_eq!([29, 30, 31].map(|position| reads.at(position)), [109, 100, 101]);
        let operations: Vec<(u64, &[u64])> =
            reads.operations(2).map(|operation| (operation.first(), operation.due())).collect();
        assert_eq!(operations, [(26, &part[6..8]), (28, &part[8..])]);
        assert_eq!(Reads::alone(&part).due(), part);
        assert!(Reads::alone(&[]).due().is_empty());
    }
}
