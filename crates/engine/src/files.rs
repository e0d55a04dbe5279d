//! Several files of a job, which lie in one span: the offsets of a table are those in the span.
//!
//! A mapping has them in one range of addresses, so that its loops are those of one file. A call
//! needs the descriptor and the offset in the file, which are found by the starts of the files.

use pagewise_model::Method;
use pagewise_protocol::{CallFailure, Job};

use crate::failure::refusal;

/// The files of a job.
#[derive(Debug)]
pub(crate) struct Files {
    paths: Vec<String>,
    starts: Vec<u64>,
    bytes: Vec<u64>,
    /// The span in equal parts of `1 << part_shift` bytes: for each the file at its beginning, and
    /// the last file behind them.
    at_part: Vec<u32>,
    part_shift: u32,
}

/// Parts of the span for each file.
const PARTS: u64 = 4;

/// A file of several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilePart<'a> {
    pub path: &'a str,
    /// Offset of the file in the span.
    pub start: u64,
    /// Size of the file.
    pub bytes: u64,
}

impl Files {
    /// The files of a job; `None` of one that names its file by `path`.
    pub fn of(job: &Job, method: &Method) -> Result<Option<Self>, CallFailure> {
        let Job { file_descriptors, file_starts, file_bytes_each, path, page_bytes, .. } = job;
        let counts = [file_descriptors.len(), file_starts.len(), file_bytes_each.len()];
        if counts == [0; 3] {
            return Ok(None);
        }
        let paths = file_descriptors.iter().map(|descriptor| format!("{path}/{descriptor}")).collect();
        let (starts, bytes) = (file_starts.clone(), file_bytes_each.clone());
        let mut files = Self { paths, starts, bytes, at_part: Vec::new(), part_shift: 0 };
        let mut free = Some(0);
        let fit = counts.iter().all(|count| *count == counts[0])
            && files.all().all(|FilePart { start, bytes, .. }| {
                let begins = free.is_some_and(|free| free <= start) && start.is_multiple_of(*page_bytes);
                free = start.checked_add(bytes).filter(|_| bytes > 0);
                begins && free.is_some_and(|end| end <= isize::MAX as u64)
            });
        match fit {
            true => {
                files.divide();
                Ok(Some(files))
            }
            false => Err(refusal(
                "open",
                path,
                format!("{method} has files that do not lie one behind the other in their span"),
            )),
        }
    }

    /// Find the files at the beginnings of the parts of the span.
    fn divide(&mut self) {
        let (span, files) = (self.span_bytes(), self.starts.len() as u64);
        self.part_shift = (span / (files * PARTS)).max(1).next_power_of_two().trailing_zeros();
        let last = self.starts.len() - 1;
        let at = |part: u64| {
            let begins = |start: &u64| *start <= part << self.part_shift;
            (self.starts.partition_point(begins).max(1) - 1) as u32
        };
        let parts = (0..=span >> self.part_shift).map(at).chain([last as u32]);
        self.at_part = parts.collect();
    }

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = FilePart<'_>> {
        (0..self.paths.len()).map(|index| self.part(index))
    }

    /// The file with this index.
    pub fn part(&self, index: usize) -> FilePart<'_> {
        FilePart { path: &self.paths[index], start: self.starts[index], bytes: self.bytes[index] }
    }

    /// End of the last one in the span.
    pub fn span_bytes(&self) -> u64 {
        self.starts.last().zip(self.bytes.last()).map_or(0, |(start, bytes)| start + bytes)
    }

    /// Index and offset in its file of what is at this offset of the span; the file with index
    /// `near` is looked at first. Between two files it is behind the end of the first of them.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(starts: &[u64], bytes: &[u64]) -> Job {
        Job {
            path: "/proc/7/fd".into(),
            page_bytes: 4096,
            file_descriptors: (3..).take(starts.len()).collect(),
            file_starts: starts.to_vec(),
            file_bytes_each: bytes.to_vec(),
            ..Job::default()
        }
    }

    fn files(starts: &[u64], bytes: &[u64]) -> Result<Option<Files>, CallFailure> {
        Files::of(&job(starts, bytes), &"pread".parse().expect("a method"))
    }

    #[test]
    fn an_offset_belongs_to_the_file_that_begins_before_it() {
        let files = files(&[0, 4096, 12288], &[1, 5000, 4096]).expect("sound").expect("several");
        assert_eq!(files.span_bytes(), 16384);
        assert_eq!(files.part(2).path, "/proc/7/fd/5");
        for near in 0..3 {
            for (offset, found) in
                [(0, (0, 0)), (4096, (1, 0)), (9095, (1, 4999)), (12288, (2, 0)), (16383, (2, 4095))]
            {
                assert_eq!(files.locate(near, offset), found, "{offset} near {near}");
            }
        }
    }

    /// Against a search among all, with many small files beside large ones, at each edge.
    #[test]
    fn files_of_all_sizes_are_found() {
        let sizes = (0..3000u64).map(|file| if file % 1000 == 7 { 50 << 20 } else { 1 + file * 37 % 9000 });
        let sizes: Vec<u64> = sizes.collect();
        let starts: Vec<u64> = sizes
            .iter()
            .scan(0u64, |free, size| {
                let start = *free;
                *free = (start + size).next_multiple_of(4096);
                Some(start)
            })
            .collect();
        let files = files(&starts, &sizes).expect("sound").expect("several");
        for (index, (start, size)) in starts.iter().zip(&sizes).enumerate() {
            for within in [0, size / 2, size - 1] {
                for near in [0, index, 2999] {
                    assert_eq!(files.locate(near, start + within), (index, within));
                }
            }
        }
        assert_eq!(files.locate(0, files.span_bytes() + 5), (2999, sizes[2999] + 5), "behind the last one");
    }

    #[test]
    fn files_that_do_not_lie_one_behind_the_other_are_refused() {
        assert!(files(&[], &[]).is_ok_and(|files| files.is_none()), "one file");
        for (starts, bytes) in [
            (&[0, 4096][..], &[4097, 1][..]),
            (&[4096, 0], &[1, 1]),
            (&[0, 100], &[1, 1]),
            (&[0, 4096], &[1]),
            (&[0, 4096], &[1, 0]),
            (&[0, 4096], &[1, u64::MAX]),
            (&[1 << 63], &[4096]),
        ] {
            let refused = files(starts, bytes).expect_err("refused").detail;
            assert!(refused.contains("one behind the other"), "{refused}");
        }
    }
}
