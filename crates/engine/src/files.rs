//! Several files of a job, which lie in one span: the offsets of a table are those in the span.
//!
//! A mapping has them in one range of addresses, so that its loops are those of one file. A call
//! needs the descriptor and the offset in the file, which are found by the starts of the files.

use pagewise_model::Method;
use pagewise_model::trace::FileSpan;
use pagewise_protocol::{CallFailure, Job};

use crate::failure::refusal;

/// The files of a job.
#[derive(Debug)]
pub(crate) struct Files {
    paths: Vec<String>,
    pub span: FileSpan,
}

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
        if [file_descriptors.len(), file_starts.len(), file_bytes_each.len()] == [0; 3] {
            return Ok(None);
        }
        let paths: Vec<String> =
            file_descriptors.iter().map(|descriptor| format!("{path}/{descriptor}")).collect();
        let has_bytes = file_bytes_each.iter().all(|bytes| *bytes > 0);
        let span = FileSpan::placed(file_starts.clone(), file_bytes_each.clone(), *page_bytes);
        match span.filter(|span| has_bytes && span.starts().len() == paths.len()) {
            Some(span) => Ok(Some(Self { paths, span })),
            None => Err(refusal(
                "open",
                path,
                format!("{method} has files that do not lie one behind the other in their span"),
            )),
        }
    }

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = FilePart<'_>> {
        (0..self.paths.len()).map(|index| self.part(index))
    }

    /// The file with this index.
    pub fn part(&self, index: usize) -> FilePart<'_> {
        let (start, bytes) = (self.span.starts()[index], self.span.sizes()[index]);
        FilePart { path: &self.paths[index], start, bytes }
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
        assert_eq!(files.span.end(), 16384);
        assert_eq!(files.part(2).path, "/proc/7/fd/5");
        for near in 0..3 {
            for (offset, found) in
                [(0, (0, 0)), (4096, (1, 0)), (9095, (1, 4999)), (12288, (2, 0)), (16383, (2, 4095))]
            {
                assert_eq!(files.span.locate(near, offset), found, "{offset} near {near}");
            }
        }
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
