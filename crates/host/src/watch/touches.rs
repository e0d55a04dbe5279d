//! Mappings whose faults are reported as accesses: of each window, the first one to each page.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use std::collections::{BTreeMap, HashMap, HashSet};

/// A file: device and inode.
pub(crate) type FileNumber = (u64, u64);

/// The mappings of all processes whose faults are touches, and the pages that faulted in this
/// window.
#[derive(Debug, Default)]
pub(crate) struct Touches {
    page_bytes: u64,
    /// The number of the memory of each process; those that share theirs have the same.
    of_process: HashMap<u32, usize>,
    spaces: Vec<Space>,
    window: u32,
    faults: u64,
}

/// Memory of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    /// By their first address; they do not overlap.
    ranges: BTreeMap<u64, Range>,
    /// Addresses of the pages that have faulted since they were dropped.
    faulted: HashSet<u64>,
}

/// A mapping of a file, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) end: u64,
    pub(crate) file: FileNumber,
    /// The program asked for a shared mapping, and has a private one.
    pub(crate) made_private: bool,
}

impl Touches {
    pub(crate) fn new(page_bytes: u64) -> Self {
        Self { page_bytes, ..Self::default() }
    }

    /// A fault: the window in which it is a touch, if it is one.
    pub(super) fn note(&mut self, process: u32, address: u64) -> Option<u32> {
        let space = self.spaces.get_mut(*self.of_process.get(&process)?)?;
        space.at(address)?;
        space.faulted.insert(address & !(self.page_bytes - 1));
        self.faults += 1;
        Some(self.window)
    }

    /// Touches of this window, those of the same page included.
    pub(crate) fn faults(&self) -> u64 {
        self.faults
    }

    /// A new window begins.
    pub(crate) fn next_window(&mut self) {
        self.window += 1;
        self.faults = 0;
    }

    /// New memory, that of `parent` copied if there is one; its number.
    pub(crate) fn add_space(&mut self, parent: Option<usize>) -> usize {
        // A child has none of the pages of these mappings in place.
        let ranges = parent.map(|parent| self.spaces[parent].ranges.clone()).unwrap_or_default();
        self.spaces.push(Space { ranges, faulted: HashSet::new() });
        self.spaces.len() - 1
    }

    /// A process has this memory from now on.
    pub(crate) fn set_space(&mut self, process: u32, space: usize) {
        self.of_process.insert(process, space);
    }

    pub(crate) fn space(&mut self, space: usize) -> &mut Space {
        &mut self.spaces[space]
    }
}

impl Space {
    fn at(&self, address: u64) -> Option<Range> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        (address < range.end).then_some(*range)
    }

    /// True if the program asked for a shared mapping of something between two addresses, and has a
    /// private one.
    pub(crate) fn is_made_private(&self, start: u64, end: u64) -> bool {
        self.ranges.iter().any(|(first, range)| *first < end && range.end > start && range.made_private)
    }

    pub(crate) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// The ranges, by their first address.
    pub(crate) fn ranges(&self) -> Vec<(u64, Range)> {
        self.ranges.iter().map(|(start, range)| (*start, *range)).collect()
    }

    /// The parts of the ranges between two addresses.
    pub(crate) fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let parts = self.ranges.iter().map(|(first, range)| ((*first).max(start), range.end.min(end)));
        parts.filter(|(first, last)| first < last).collect()
    }

    /// A mapping whose faults are touches from now on.
    pub(crate) fn add(&mut self, start: u64, range: Range) {
        self.remove(start, range.end);
        self.ranges.insert(start, range);
    }

    /// Between these addresses faults are no touches any more; what was there.
    pub(crate) fn remove(&mut self, start: u64, end: u64) -> Vec<(u64, Range)> {
        let parts: Vec<(u64, Range)> = self
            .ranges
            .iter()
            .map(|(first, range)| (*first, *range))
            .filter(|(first, range)| *first < end && range.end > start)
            .collect();
        for (first, range) in &parts {
            self.ranges.remove(first);
            if *first < start {
                self.ranges.insert(*first, Range { end: start, ..*range });
            }
            if range.end > end {
                self.ranges.insert(end, *range);
            }
        }
        self.faulted.retain(|page| !(start..end).contains(page));
        let within =
            |(first, range): (u64, Range)| (first.max(start), Range { end: range.end.min(end), ..range });
        parts.into_iter().map(within).collect()
    }

    /// Faults of this file are no touches any more.
    pub(crate) fn remove_file(&mut self, file: FileNumber) {
        for (start, range) in self.ranges() {
            if range.file == file {
                self.remove(start, range.end);
            }
        }
    }

    /// True if the page at this address has faulted since the ranges were dropped.
    pub(crate) fn has_faulted(&self, page: u64) -> bool {
        self.faulted.contains(&page)
    }

    /// The pages between two addresses are not in place any more.
    pub(crate) fn dropped(&mut self, start: u64, end: u64) {
        self.faulted.retain(|page| !(start..end).contains(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    #[test]
    fn faults_of_known_mappings_are_touches_of_a_window() {
        let mut touches = Touches::new(PAGE);
        let space = touches.add_space(None);
        touches.set_space(7, space);
        touches.space(space).add(10 * PAGE, Range { end: 20 * PAGE, file: (1, 1), made_private: false });
        assert_eq!(touches.note(7, 12 * PAGE + 5), Some(0));
        assert_eq!((touches.note(7, 20 * PAGE), touches.note(8, 12 * PAGE)), (None, None));
        assert_eq!(touches.faults(), 1);
        assert!(touches.space(space).has_faulted(12 * PAGE));
        touches.next_window();
        touches.space(space).dropped(10 * PAGE, 20 * PAGE);
        assert!(!touches.space(space).has_faulted(12 * PAGE));
        assert_eq!((touches.note(7, 12 * PAGE), touches.faults()), (Some(1), 1));
        let copy = touches.add_space(Some(space));
        touches.set_space(8, copy);
        assert_eq!(touches.note(8, 12 * PAGE), Some(1));
    }

    #[test]
    fn what_is_unmapped_in_the_middle_leaves_both_ends() {
        let mut space = Space::default();
        space.add(0, Range { end: 100, file: (1, 1), made_private: false });
        space.add(200, Range { end: 300, file: (1, 2), made_private: false });
        let file = Range { end: 60, file: (1, 1), made_private: false };
        assert_eq!(space.remove(40, 60), [(40, file)]);
        assert_eq!(space.within(0, 1000), [(0, 40), (60, 100), (200, 300)]);
        assert_eq!(space.within(30, 70), [(30, 40), (60, 70)]);
        space.remove_file((1, 1));
        assert_eq!(space.within(0, 1000), [(200, 300)]);
        assert!(space.at(250).is_some() && space.at(50).is_none());
    }
}
