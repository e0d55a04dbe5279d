//! The pages of a file that were in the page cache when its recording began.

use std::ops::Range;

use super::columns::{put, take};

/// More runs are not kept.
pub const MOST_RUNS: usize = 1 << 22;

/// Pages of a file in the page cache: runs of neighbours, in their order and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResidentPages(Vec<Range<u64>>);

impl ResidentPages {
    /// Add the page behind the others.
    ///
    /// # Panics
    /// If a page at its place or behind it was added before.
    pub fn add(&mut self, page: u64) {
        assert!(page >= self.end(), "pages come in their order");
        match self.0.last_mut().filter(|last| last.end == page) {
            Some(last) => last.end += 1,
            None => self.0.push(page..page + 1),
        }
    }

    /// The runs.
    pub fn runs(&self) -> &[Range<u64>] {
        &self.0
    }

    /// Number of pages.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|run| run.end - run.start).sum()
    }

    /// The first page behind all of them.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |last| last.end)
    }

    /// Number of those that are not among `others`.
    pub fn missing_in(&self, others: &Self) -> u64 {
        let (mut shared, mut behind) = (0, others.0.as_slice());
        for run in &self.0 {
            while let Some((other, rest)) = behind.split_first() {
                shared += other.end.min(run.end).saturating_sub(other.start.max(run.start));
                if other.end > run.end {
                    break;
                }
                behind = rest;
            }
        }
        self.count() - shared
    }

    /// As in a trace: of each run the pages between it and the one before, and its own.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (mut bytes, mut end) = (Vec::new(), 0);
        for run in &self.0 {
            put(&mut bytes, run.start - end);
            put(&mut bytes, run.end - run.start);
            end = run.end;
        }
        bytes
    }

    /// Back from a trace, unless it has over `most` runs; `None` if these bytes are no runs.
    pub(super) fn decode(mut bytes: &[u8], most: usize) -> Option<Self> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut end = 0u64;
        while !bytes.is_empty() {
            let (between, pages) = (take(&mut bytes)?, take(&mut bytes)?);
            let is_apart = runs.is_empty() || between > 0;
            if !is_apart || pages == 0 || runs.len() == most {
                return None;
            }
            let start = end.checked_add(between)?;
            end = start.checked_add(pages)?;
            runs.push(start..end);
        }
        Some(Self(runs))
    }
}

impl FromIterator<u64> for ResidentPages {
    fn from_iter<I: IntoIterator<Item = u64>>(pages: I) -> Self {
        let mut all = Self::default();
        pages.into_iter().for_each(|page| all.add(page));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of(pages: &BTreeSet<u64>) -> ResidentPages {
        pages.iter().copied().collect()
    }

    proptest! {
        #[test]
        fn runs_are_the_pages_and_are_read_back(
            pages in prop::collection::btree_set(0u64..300, 0..200),
            others in prop::collection::btree_set(0u64..300, 0..200),
        ) {
            let all = of(&pages);
            prop_assert_eq!(all.count(), pages.len() as u64);
            prop_assert_eq!(all.end(), pages.last().map_or(0, |last| last + 1));
            prop_assert!(all.runs().windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(all.missing_in(&of(&others)), pages.difference(&others).count() as u64);
            prop_assert_eq!(ResidentPages::decode(&all.encode(), MOST_RUNS), Some(all));
        }

        #[test]
        fn nonsense_is_refused_or_read(bytes: Vec<u8>) {
            if let Some(all) = ResidentPages::decode(&bytes, MOST_RUNS) {
                prop_assert!(all.runs().windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }

    /// Pairs of the pages between two runs and those of the second one.
    fn encoded(pairs: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (between, pages) in pairs {
            put(&mut bytes, *between);
            put(&mut bytes, *pages);
        }
        bytes
    }

    #[test]
    fn what_are_no_runs_is_refused() {
        let decode = |pairs: &[(u64, u64)], most| ResidentPages::decode(&encoded(pairs), most);
        assert!(decode(&[(0, 2), (1, 1)], 2).is_some());
        for (pairs, most) in [
            (&[(0, 2), (0, 1)][..], 9), // two that are one
            (&[(0, 0)], 9),
            (&[(u64::MAX, 1)], 9),
            (&[(1, u64::MAX)], 9),
            (&[(0, 2), (1, 1), (1, 1)], 2),
        ] {
            assert_eq!(decode(pairs, most), None, "{pairs:?}");
        }
        let mut torn = encoded(&[(5, 1)]);
        torn.pop();
        assert_eq!(ResidentPages::decode(&torn, 9), None);
    }
}
