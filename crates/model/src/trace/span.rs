//! Files of a trace that lie in one span, so that their reads are those of one table.

use super::{Trace, TraceAccess};

/// A file of this size or more begins at a multiple of it, since it may be mapped by entries of the
/// page table that map so much.
const LARGE_BYTES: u64 = 2 << 20;

/// Places of files in a span, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSpan {
    starts: Vec<u64>,
    bytes: Vec<u64>,
    /// Bytes of the files before each.
    before: Vec<u64>,
    /// The span in equal parts of `1 << part_shift` bytes: for each the file at its beginning, and
    /// the last file behind them.
    at_part: Vec<u32>,
    part_shift: u32,
}

/// Parts of the span for each file.
const PARTS: u64 = 4;

impl FileSpan {
    /// Places of files of these sizes, each at the beginning of a page; `None` if they are too
    /// large for one span.
    pub fn of(sizes: impl IntoIterator<Item = u64>, page_bytes: u64) -> Option<Self> {
        let (mut starts, mut bytes, mut end) = (Vec::new(), Vec::new(), 0u64);
        for size in sizes {
            let alignment = if size >= LARGE_BYTES { LARGE_BYTES.max(page_bytes) } else { page_bytes };
            let start = end.checked_next_multiple_of(alignment)?;
            end = start.checked_add(size)?;
            starts.push(start);
            bytes.push(size);
        }
        Self::placed(starts, bytes, page_bytes)
    }

    /// Files of these sizes at these places; `None` if they do not lie one behind the other, each
    /// at the beginning of a page, or are too large for one span.
    pub fn placed(starts: Vec<u64>, bytes: Vec<u64>, page_bytes: u64) -> Option<Self> {
        let (mut end, mut before) = (0u64, vec![0u64]);
        for (start, size) in starts.iter().zip(&bytes) {
            let begins = *start >= end && start.is_multiple_of(page_bytes);
            end = start.checked_add(*size).filter(|end| begins && *end <= i64::MAX as u64)?;
            before.push(before[before.len() - 1] + size);
        }
        let files = starts.len();
        let part_shift = (end / (files as u64 * PARTS).max(1)).max(1).next_power_of_two().trailing_zeros();
        let at = |part: u64| starts.partition_point(|start| *start <= part << part_shift).max(1) as u32 - 1;
        let at_part = (0..=end >> part_shift).map(at).chain([files.saturating_sub(1) as u32]).collect();
        (files == bytes.len()).then_some(Self { starts, bytes, before, at_part, part_shift })
    }

    /// The offset of each file.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Size of each file.
    pub fn sizes(&self) -> &[u64] {
        &self.bytes
    }

    /// End of the last one.
    pub fn end(&self) -> u64 {
        self.starts.last().zip(self.bytes.last()).map_or(0, |(start, bytes)| start + bytes)
    }

    /// Index of the file at this offset of the span, and the offset in it; the file with index
    /// `near` is looked at first. Between two files it is behind the end of the first of them.
    ///
    /// # Panics
    /// If there is no file.
    #[inline(always)]
    pub fn locate(&self, near: usize, offset: u64) -> (usize, u64) {
        // Wraps, to no offset within a file, if the offset is before it.
        let within = offset.wrapping_sub(self.starts[near]);
        if within < self.bytes[near] {
            return (near, within);
        }
        let part = ((offset >> self.part_shift) as usize).min(self.at_part.len() - 2);
        let (first, last) = (self.at_part[part] as usize, self.at_part[part + 1] as usize);
        // Mostly one file, which begins before the part, or a second one within it.
        let within = self.starts[first + 1..=last].partition_point(|start| *start <= offset);
        let index = first + within;
        (index, offset - self.starts[index])
    }

    /// Bytes of the files before the one with this index.
    pub fn before(&self, index: usize) -> u64 {
        self.before[index]
    }
}

impl Trace {
    /// Keep the accesses of these files, as those of file 0, whose offsets are those in the span.
    /// Files without a place there are left out. What was to be read ahead ends with its file, as
    /// for the kernel.
    pub fn keep_in_span(&mut self, files: &[u32], span: &FileSpan) {
        let mut places = vec![None; self.trailer.files.len()];
        for (file, place) in files.iter().zip(span.starts.iter().zip(&span.bytes)) {
            if let Some(found) = places.get_mut(*file as usize) {
                *found = Some(place);
            }
        }
        let keep = |access: &mut TraceAccess| {
            let Some((start, bytes)) = places[access.file as usize] else { return false };
            if access.kind.is_ahead() {
                access.len = access.len.min(bytes.saturating_sub(access.offset));
            }
            (access.file, access.offset) = (0, access.offset.saturating_add(*start));
            true
        };
        self.accesses.retain_mut(keep);
        self.read_ahead.retain_mut(|request| keep(request) && request.len > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::table::tests::trace;
    use crate::trace::{AccessKind, TraceFile};

    #[test]
    fn files_begin_with_pages_and_large_ones_with_large_pages() {
        let span = FileSpan::of([1, 4096, 0, 4097, LARGE_BYTES, 5], 4096).expect("a span");
        assert_eq!(span.starts(), [0, 4096, 8192, 8192, LARGE_BYTES, 2 * LARGE_BYTES]);
        assert_eq!(span.sizes(), [1, 4096, 0, 4097, LARGE_BYTES, 5]);
        assert_eq!((span.locate(0, 0), span.locate(0, 12_288)), ((0, 0), (3, 4096)));
        assert_eq!(span.locate(0, 2 * LARGE_BYTES + 4), (5, 4));
        assert_eq!((span.before(0), span.before(3)), (0, 4097));
        assert_eq!(FileSpan::of([1, u64::MAX], 4096), None);
        assert_eq!(FileSpan::of([i64::MAX as u64, 1], 4096), None);
    }

    /// Against a search among all, with many small files beside large ones, at each edge.
    #[test]
    fn files_of_all_sizes_are_found() {
        let sizes = (0..3000u64).map(|file| if file % 1000 == 7 { 50 << 20 } else { 1 + file * 37 % 9000 });
        let sizes: Vec<u64> = sizes.collect();
        let files = FileSpan::of(sizes.clone(), 4096).expect("a span");
        for (index, (start, size)) in files.starts().iter().zip(&sizes).enumerate() {
            for within in [0, size / 2, size - 1] {
                for near in [0, index, 2999] {
                    assert_eq!(files.locate(near, start + within), (index, within));
                }
            }
        }
        assert_eq!(files.locate(0, files.end() + 5), (2999, sizes[2999] + 5), "behind the last one");
    }

    /// The order of the reads is that of time over all files, and a file that nobody asked for is
    /// not among them.
    #[test]
    fn reads_of_several_files_are_those_of_one_table() {
        let mut trace = trace(&[(1, 0, 2, 7), (2, 0, 0, 20), (3, 0, 1, 0), (4, 1, 0, 30), (5, 0, 2, 9)]);
        trace.trailer.files = vec![TraceFile::default(); 3];
        let span = FileSpan::of([100, 5000], 4096).expect("a span");
        trace.keep_in_span(&[2, 0], &span);
        let kept: Vec<_> = trace.accesses.iter().map(|access| (access.time_ns, access.offset)).collect();
        assert_eq!(kept, [(1, 7), (2, 4116), (4, 4126), (5, 9)]);
        let table = trace.table(0, 1).expect("a table");
        assert_eq!((table.entries.len(), table.recorded_threads), (4, 2));
    }

    /// As for the kernel.
    #[test]
    fn what_was_to_be_read_ahead_ends_with_its_file() {
        let mut trace = trace(&[(1, 0, 1, 7)]);
        let kind = AccessKind::ReadAhead { mapped: false };
        let request = |file, offset, len| TraceAccess { file, offset, len, kind, ..trace.accesses[0] };
        trace.read_ahead =
            vec![request(0, 90, 1 << 40), request(1, 0, 5000), request(2, 0, 1), request(0, 100, 7)];
        trace.trailer.files = vec![TraceFile::default(); 3];
        trace.keep_in_span(&[0, 1], &FileSpan::of([100, 5000], 4096).expect("a span"));
        let kept: Vec<_> = trace.read_ahead.iter().map(|request| (request.offset, request.len)).collect();
        assert_eq!(kept, [(90, 10), (4096, 5000)]);
    }
}
