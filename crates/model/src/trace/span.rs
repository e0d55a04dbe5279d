//! Files of a trace that lie in one span, so that their reads are those of one table.

use super::Trace;

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
}

impl FileSpan {
    /// Places of files of these sizes, each at the beginning of a page; `None` if they are too
    /// large for one span.
    pub fn of(sizes: impl IntoIterator<Item = u64>, page_bytes: u64) -> Option<Self> {
        let (mut span, mut end, mut before) = (Self::default(), 0u64, 0);
        for bytes in sizes {
            let alignment = if bytes >= LARGE_BYTES { LARGE_BYTES.max(page_bytes) } else { page_bytes };
            let start = end.checked_next_multiple_of(alignment)?;
            end = start.checked_add(bytes).filter(|end| *end <= i64::MAX as u64)?;
            span.starts.push(start);
            span.bytes.push(bytes);
            span.before.push(before);
            before += bytes;
        }
        Some(span)
    }

    /// The offset of each file.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Size of each file.
    pub fn sizes(&self) -> &[u64] {
        &self.bytes
    }

    /// The index of the file at an offset of the span, and the offset in it.
    ///
    /// # Panics
    /// If there is no file.
    pub fn locate(&self, offset: u64) -> (usize, u64) {
        let index = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (index, offset - self.starts[index])
    }

    /// Bytes of the files before the one with this index.
    pub fn before(&self, index: usize) -> u64 {
        self.before[index]
    }
}

impl Trace {
    /// Keep the accesses of these files, as those of file 0, whose offsets are those in the span.
    /// Files without a place there are left out.
    pub fn keep_in_span(&mut self, files: &[u32], span: &FileSpan) {
        let mut starts = vec![None; self.trailer.files.len()];
        for (file, start) in files.iter().zip(&span.starts) {
            if let Some(place) = starts.get_mut(*file as usize) {
                *place = Some(*start);
            }
        }
        self.accesses.retain_mut(|access| {
            let Some(start) = starts[access.file as usize] else { return false };
            (access.file, access.offset) = (0, access.offset.saturating_add(start));
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceFile;
    use crate::trace::table::tests::trace;

    #[test]
    fn files_begin_with_pages_and_large_ones_with_large_pages() {
        let span = FileSpan::of([1, 4096, 0, 4097, LARGE_BYTES, 5], 4096).expect("a span");
        assert_eq!(span.starts(), [0, 4096, 8192, 8192, LARGE_BYTES, 2 * LARGE_BYTES]);
        assert_eq!(span.sizes(), [1, 4096, 0, 4097, LARGE_BYTES, 5]);
        assert_eq!((span.locate(0), span.locate(12_288)), ((0, 0), (3, 4096)));
        assert_eq!(span.locate(2 * LARGE_BYTES + 4), (5, 4));
        assert_eq!((span.before(0), span.before(3)), (0, 4097));
        assert_eq!(FileSpan::of([1, u64::MAX], 4096), None);
        assert_eq!(FileSpan::of([i64::MAX as u64, 1], 4096), None);
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
}
