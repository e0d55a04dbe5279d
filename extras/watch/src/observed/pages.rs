//! Sets of pages of a file.

use std::collections::BTreeMap;

/// Pages, by their number.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    /// 64 pages a word.
    words: BTreeMap<u64, u64>,
}

impl PageSet {
    /// Add `count` pages; the number of those that were there.
    pub(super) fn insert(&mut self, first: u64, count: u64) -> u64 {
        let mut present = 0;
        let mut page = first;
        let end = first.saturating_add(count);
        while page < end {
            let in_word = (64 - page % 64).min(end - page);
            let mask = (u64::MAX >> (64 - in_word)) << (page % 64);
            let word = self.words.entry(page / 64).or_default();
            present += u64::from((*word & mask).count_ones());
            *word |= mask;
            page += in_word;
        }
        present
    }

    /// Number of pages.
    pub(super) fn len(&self) -> u64 {
        self.words.values().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Number of pages that are in one of the others, too.
    pub(super) fn shared_with(&self, others: &[&Self]) -> u64 {
        let shared = |(index, word): (&u64, &u64)| {
            let other = others.iter().fold(0, |all, other| all | other.words.get(index).unwrap_or(&0));
            u64::from((word & other).count_ones())
        };
        self.words.iter().map(shared).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_once() {
        let mut pages = PageSet::default();
        assert_eq!(pages.insert(60, 10), 0);
        assert_eq!(pages.insert(0, 64), 4);
        assert_eq!(pages.insert(69, 1), 1);
        assert_eq!(pages.insert(1000, 200), 0);
        assert_eq!(pages.insert(5, 0), 0);
        assert_eq!(pages.len(), 70 + 200);
        let (mut one, mut other) = (PageSet::default(), PageSet::default());
        one.insert(68, 4);
        other.insert(1100, 1000);
        assert_eq!(pages.shared_with(&[&one]), 2);
        assert_eq!(pages.shared_with(&[&one, &other]), 2 + 100);
        assert_eq!(pages.shared_with(&[]), 0);
    }
}
