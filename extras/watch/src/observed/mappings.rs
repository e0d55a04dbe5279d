//! Address spaces: which file is mapped where.

use std::collections::BTreeMap;

/// A range that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    end: u64,
    /// The file, and where in it the range begins.
    file: Option<(usize, u64)>,
}

/// The mappings of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    /// By their first address; they do not overlap.
    ranges: BTreeMap<u64, Range>,
}

impl Mappings {
    /// A range is mapped, in the place of what was there.
    pub(super) fn map(&mut self, start: u64, len: u64, file: Option<(usize, u64)>) {
        let end = start.saturating_add(len);
        // Of an earlier range that reaches into the new one, what is before and behind stays.
        if let Some((&before, &range)) = self.ranges.range(..start).next_back()
            && range.end > start
        {
            self.ranges.insert(before, Range { end: start, ..range });
            self.keep_behind(before, range, end);
        }
        let covered: Vec<(u64, Range)> =
            self.ranges.range(start..end).map(|(start, range)| (*start, *range)).collect();
        for (begin, range) in covered {
            self.ranges.remove(&begin);
            self.keep_behind(begin, range, end);
        }
        if len > 0 {
            self.ranges.insert(start, Range { end, file });
        }
    }

    /// A mapping is moved, and made longer or shorter. One of no bytes stays where it is, and is
    /// mapped a second time.
    pub(super) fn remap(&mut self, from: u64, from_len: u64, to: u64, to_len: u64) {
        let file = self.at(from);
        if from_len > 0 {
            self.map(from, from_len, None);
        }
        self.map(to, to_len, file);
    }

    fn keep_behind(&mut self, start: u64, range: Range, from: u64) {
        if range.end > from {
            let file = range.file.map(|(file, offset)| (file, offset + (from - start)));
            self.ranges.insert(from, Range { end: range.end, file });
        }
    }

    /// The file at an address, and the offset in it.
    pub(super) fn at(&self, address: u64) -> Option<(usize, u64)> {
        self.from(address).map(|(file, offset, _)| (file, offset))
    }

    /// The file at an address, the offset in it, and the bytes to the end of the mapping.
    pub(super) fn from(&self, address: u64) -> Option<(usize, u64, u64)> {
        let (start, range) = self.ranges.range(..=address).next_back()?;
        let (file, offset) = range.file.filter(|_| address < range.end)?;
        Some((file, offset + (address - start), range.end - address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mapping_takes_the_place_of_what_was_there() {
        let mut mappings = Mappings::default();
        mappings.map(100, 100, Some((1, 1000)));
        assert_eq!(mappings.at(99), None);
        assert_eq!((mappings.at(150), mappings.from(150)), (Some((1, 1050)), Some((1, 1050, 50))));
        assert_eq!(mappings.at(200), None);
        mappings.map(120, 20, None);
        assert_eq!(
            (mappings.at(119), mappings.at(120), mappings.at(140)),
            (Some((1, 1019)), None, Some((1, 1040)))
        );
        mappings.map(0, 1000, Some((2, 0)));
        assert_eq!(mappings.at(150), Some((2, 150)));
    }

    #[test]
    fn a_mapping_that_is_moved_takes_its_file_along() {
        let mut mappings = Mappings::default();
        mappings.map(100, 100, Some((1, 1000)));
        mappings.remap(100, 100, 500, 300);
        assert_eq!((mappings.at(150), mappings.at(750)), (None, Some((1, 1250))));
        mappings.remap(500, 300, 500, 10);
        assert_eq!((mappings.at(509), mappings.at(510)), (Some((1, 1009)), None));
        mappings.remap(500, 0, 900, 10);
        assert_eq!((mappings.at(500), mappings.at(900)), (Some((1, 1000)), Some((1, 1000))));
        // Memory without a file in the place of a file.
        mappings.remap(50, 10, 500, 10);
        assert_eq!(mappings.at(500), None);
    }

    proptest! {
        /// Against a page by page table.
        #[test]
        fn ranges_are_what_pages_would_be(maps in prop::collection::vec((0u64..64, 0u64..32, prop::option::of(0usize..4)), 0..20)) {
            let (mut mappings, mut pages) = (Mappings::default(), [None; 128]);
            for (start, len, file) in maps {
                mappings.map(start, len, file.map(|file| (file, start * 10)));
                for page in start..start + len {
                    pages[page as usize] = file.map(|file| (file, start * 10 + (page - start)));
                }
            }
            for (page, expected) in pages.iter().enumerate() {
                prop_assert_eq!(mappings.at(page as u64), *expected);
            }
        }
    }
}
