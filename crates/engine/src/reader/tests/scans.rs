//! Scans: every method has the checksum of the whole file, for any size of the file and of its
//! pieces.

use pagewise_model::checksum;

use super::*;
use crate::operations::Done;

const METHODS: &[&str] = &[
    "mmap",
    "mmap:random",
    "mmap:sequential",
    "mmap:willneed",
    "mmap:populate",
    "mmap:populate-read",
    "mmap:hugepage",
    "mmap:buffer=1MiB",
    "mmap:in-place",
    "mmap:sequential+in-place",
    "mmap:in-place+buffer=8KiB",
    "read",
    "read:buffer=4KiB",
    "read:buffer=4MiB",
    "read:sequential",
    "read:willneed",
    "read:random",
    "read:direct",
    "read:direct+buffer=128KiB",
    "pread",
    "pread:sequential",
    "pread:willneed",
    "pread:random",
    "pread:dontcache",
    "pread:direct",
    "pread:direct+buffer=4KiB",
    "pread:buffer=12KiB",
    "uring:depth=1",
    "uring:depth=8",
    "uring:depth=3+buffer=4KiB",
    "uring:fixed+depth=4",
    "uring:direct+depth=8",
    "uring:direct+depth=2+buffer=4KiB",
    "uring:direct+fixed+depth=4",
    "anonymous",
];

const CONSUME: [Consume; 3] = [Consume::Lines, Consume::Touch, Consume::Sum];

struct File(tempfile::NamedTempFile);

impl File {
    fn holding(bytes: &[u8]) -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("file");
        file.write_all(bytes).expect("write");
        file.as_file().sync_all().expect("sync");
        Self(file)
    }

    fn job(&self, file_bytes: u64) -> Job {
        let path = self.0.path().to_str().expect("text");
        Job { workload: "scan".into(), touch_last: 1, ..job_of(path, file_bytes) }
    }
}

fn open_or_skip(text: &str, job: &Job, consume: Consume) -> Option<Box<dyn ThreadWork>> {
    supported(text, open_scan(&method(text), job, consume))?.pop()
}

/// Do a pass.
fn pass(work: &mut dyn ThreadWork) -> Result<u64, CallFailure> {
    work.perform(0, 1, 1).map(|done| done.checksum)
}

fn expected(bytes: &[u8], consume: Consume) -> u64 {
    match consume {
        Consume::Lines => checksum::lines(bytes),
        Consume::Touch => checksum::Consumption::new(consume, 4096, 4096).of(bytes),
        Consume::Sum => checksum::sum(bytes),
    }
}

/// Do two passes of every method over a file that holds `bytes`.
fn scan_by_all(what: &str, bytes: &[u8]) {
    let file = File::holding(bytes);
    let job = file.job(bytes.len() as u64);
    for consume in CONSUME {
        for text in METHODS {
            let Some(mut work) = open_or_skip(text, &job, consume) else { continue };
            for number in 0..2 {
                let total = pass(work.as_mut());
                assert_eq!(total, Ok(expected(bytes, consume)), "{text}, {consume} of {what}, pass {number}");
            }
        }
    }
}

/// Random bytes with newlines among them.
fn binary(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    content::fill(4, 0, &mut bytes);
    bytes
}

#[test]
fn every_method_has_the_checksum_of_the_file() {
    for len in [1, 7, 4095, 4096, 4097, (64 << 10) + 1, 1 << 20, (1 << 20) + 777] {
        scan_by_all(&format!("{len} bytes"), &binary(len));
    }
}

#[test]
fn texts_of_all_kinds_are_counted() {
    let len = (256 << 10) + 100;
    scan_by_all("text without a newline", &vec![b'a'; len]);
    scan_by_all("nothing but newlines", &vec![b'\n'; len]);
    let mut last = vec![b'a'; len];
    last[len - 1] = b'\n';
    scan_by_all("text with a newline at its end", &last);
}

#[test]
fn a_part_of_the_file_is_scanned_to_its_end() {
    let bytes = binary(300_000);
    let file = File::holding(&bytes);
    for span in [1, 4096, 70_001, 200_000] {
        let job = Job { span_bytes: span as u64, ..file.job(300_000) };
        for text in METHODS {
            let Some(mut work) = open_or_skip(text, &job, Consume::Sum) else { continue };
            assert_eq!(
                pass(work.as_mut()),
                Ok(expected(&bytes[..span], Consume::Sum)),
                "{text}, {span} bytes"
            );
        }
    }
}

#[test]
fn lines_may_come_in_pieces_of_any_size() {
    let bytes = binary(10_000);
    let file = File::holding(&bytes);
    for text in ["read:buffer=100B", "pread:buffer=1B", "mmap:buffer=777B", "uring:depth=3+buffer=5B"] {
        let Some(mut work) = open_or_skip(text, &file.job(10_000), Consume::Lines) else { continue };
        assert_eq!(pass(work.as_mut()), Ok(checksum::lines(&bytes)), "{text}");
    }
}

#[test]
fn a_file_that_shrank_is_a_short_read() {
    let file = File::holding(&binary(300_000));
    file.0.as_file().set_len(65536 + 100).expect("shrink");
    for text in ["read", "pread", "uring:depth=4", "read:direct", "pread:direct"] {
        let Some(mut work) = open_or_skip(text, &file.job(300_000), Consume::Lines) else { continue };
        let failure = pass(work.as_mut()).expect_err(text);
        // Pieces of a ring may come in any order.
        if !text.starts_with("uring") {
            assert!(failure.detail.ends_with("returned 100 of 65536 bytes"), "{}", failure.detail);
            assert_eq!(failure.offset, 65536, "{text}");
        }
        assert_eq!((failure.errno, failure.unavailable), (0, 0), "{text}");
    }
    let failure = open_scan(&Method::anonymous(), &file.job(300_000), Consume::Lines).map(drop);
    assert_eq!(failure.expect_err("too short").call, "pread");
}

#[test]
fn what_cannot_be_opened_is_named() {
    let job = job_of("/nowhere/at/all", 4096);
    for text in ["mmap", "read", "pread", "uring"] {
        let failure = open_scan(&method(text), &job, Consume::Lines).map(drop).expect_err(text);
        assert_eq!((failure.call.as_str(), failure.errno, failure.unavailable), ("open", 2, 0));
    }
    let failure = open_scan(&method("pwrite"), &job, Consume::Lines).map(drop).expect_err("pwrite");
    assert_eq!(failure.detail, "pwrite is not a method to scan a file");
}

#[test]
fn a_pass_is_an_operation() {
    let bytes = binary(10_000);
    let file = File::holding(&bytes);
    let mut passes = open_or_skip("read", &file.job(10_000), Consume::Lines).expect("it is everywhere");
    let lines = checksum::lines(&bytes);
    assert_eq!(passes.perform(5, 1, 6), Ok(Done { operations: 1, checksum: lines }));
    assert_eq!(passes.perform(6, 3, 8), Ok(Done { operations: 2, checksum: 2 * lines }));
    assert_eq!(passes.finish(), Ok(0));
    assert_eq!(passes.bytes(), 30_000);
}
