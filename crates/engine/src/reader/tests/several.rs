//! Reads of several files, in one span.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::*;

/// Sizes of the files: of one byte, of a part of a page, of whole pages, and of more than 2 MiB.
const SIZES: [u64; 5] = [1, 4095, 8192, (2 << 20) + 5000, 4097];

struct Several {
    /// Open while they are read: a worker opens them by their descriptors.
    files: Vec<File>,
    contents: Vec<Vec<u8>>,
    starts: Vec<u64>,
}

impl Several {
    fn of(sizes: &[u64]) -> Self {
        let content = |(number, size): (u64, &u64)| {
            let mut bytes = vec![0; *size as usize];
            content::fill(SEED + number, 0, &mut bytes);
            bytes
        };
        let contents: Vec<Vec<u8>> = (0..).zip(sizes).map(content).collect();
        let written = |bytes: &Vec<u8>| {
            let mut file = tempfile::tempfile().expect("file");
            file.write_all(bytes).expect("write");
            file.sync_all().expect("sync");
            file
        };
        let mut free = 0u64;
        let begin = |size: &u64| {
            let start = free;
            free = (start + size).next_multiple_of(4096) + if *size > 4096 { 8192 } else { 0 };
            start
        };
        let starts = sizes.iter().map(begin).collect();
        Self { files: contents.iter().map(written).collect(), contents, starts }
    }

    fn job(&self, ranges: &[(usize, u64, u64)]) -> Job {
        let sizes: Vec<u64> = self.contents.iter().map(|bytes| bytes.len() as u64).collect();
        let directory = format!("/proc/{}/fd", std::process::id());
        Job {
            workload: "replay".into(),
            touch_last: 1,
            read_bytes: ranges.iter().map(|(.., len)| *len).max().expect("a read"),
            table_reads: ranges.len() as u64,
            thread_reads: vec![ranges.len() as u64],
            file_descriptors: self.files.iter().map(|file| file.as_raw_fd() as u64).collect(),
            file_starts: self.starts.clone(),
            file_bytes_each: sizes.clone(),
            ..job_of(&directory, sizes.iter().sum())
        }
    }

    /// Reads that go back and forth between the files, up to the last byte of each.
    fn ranges(&self) -> Vec<(usize, u64, u64)> {
        let mut random = Random::new(5);
        let mut ranges: Vec<(usize, u64, u64)> = (0..300)
            .map(|_| {
                let file = random.below(self.contents.len() as u64) as usize;
                let size = self.contents[file].len() as u64;
                let len = 1 + random.below(size.min(9000));
                (file, random.below(size - len + 1), len)
            })
            .collect();
        for (file, bytes) in self.contents.iter().enumerate() {
            let len = (bytes.len() as u64).min(5000);
            ranges.push((file, bytes.len() as u64 - len, len));
        }
        ranges
    }

    fn entries(&self, ranges: &[(usize, u64, u64)]) -> Vec<u64> {
        ranges.iter().map(|(file, offset, len)| entry(self.starts[*file] + offset, *len)).collect()
    }

    fn expected(&self, ranges: &[(usize, u64, u64)], consume: Consume) -> u64 {
        let consumption = Consumption::new(consume, 4096, 1);
        ranges.iter().zip(0u64..).fold(0, |total: u64, ((file, offset, len), place)| {
            let bytes = &self.contents[*file][*offset as usize..][..*len as usize];
            total.wrapping_add(weight(place).wrapping_mul(consumption.of(bytes)))
        })
    }
}

const METHODS: [&str; 13] = [
    "mmap",
    "mmap:random",
    "mmap:in-place",
    "mmap:populate",
    "mmap:willneed",
    "pread",
    "pread:random",
    "pread:willneed",
    "pread:direct",
    "pread:dontcache",
    "uring:depth=4",
    "uring:fixed+depth=4",
    "uring:direct+depth=3",
];

fn performed(text: &str, job: &Job, entries: &[u64], consume: Consume) -> Option<Result<u64, CallFailure>> {
    let mut work = recorded(text, job, consume, mapped(entries))?;
    Some(work.iter_mut().try_fold(0u64, |total, thread| {
        let done = thread.perform(0, 1, 1)?;
        Ok(total.wrapping_add(done.checksum))
    }))
}

#[test]
fn every_method_reads_the_bytes_of_each_file() {
    let several = Several::of(&SIZES);
    let ranges = several.ranges();
    let (entries, job) = (several.entries(&ranges), several.job(&ranges));
    let two = Job {
        threads: 2,
        descriptor: "per-thread".into(),
        thread_reads: vec![100, ranges.len() as u64 - 100],
        ..job.clone()
    };
    for consume in [Consume::Touch, Consume::Sum] {
        let expected = several.expected(&ranges, consume);
        for text in METHODS {
            for job in [&job, &two, &Job { descriptor: "shared".into(), ..two.clone() }] {
                let Some(found) = performed(text, job, &entries, consume) else { continue };
                assert_eq!(found.expect(text), expected, "{text}, {consume}, {} threads", job.threads);
            }
        }
    }
}

/// The ceiling of memory holds all of them.
#[test]
fn memory_holds_the_bytes_of_each_file() {
    let several = Several::of(&SIZES);
    let ranges = several.ranges();
    let (entries, job) = (several.entries(&ranges), several.job(&ranges));
    let found = performed("anonymous", &job, &entries, Consume::Sum);
    assert_eq!(found.expect("memory"), Ok(several.expected(&ranges, Consume::Sum)));
}

/// A worker that reads one file for all, or one in place of another, has another checksum.
#[test]
fn reads_of_another_file_show_in_the_checksum() {
    let several = Several::of(&[50_000, 50_000, 50_000]);
    let ranges: Vec<_> = (0..30).map(|read| (read % 3, read as u64 * 1000, 1000)).collect();
    let (entries, job) = (several.entries(&ranges), several.job(&ranges));
    for text in METHODS {
        let expected = several.expected(&ranges, Consume::Touch);
        for order in [[0, 0, 0], [0, 2, 1], [1, 1, 2]] {
            let file_descriptors = order.map(|file| job.file_descriptors[file]).to_vec();
            let odd = Job { file_descriptors, ..job.clone() };
            let Some(found) = performed(text, &odd, &entries, Consume::Touch) else { continue };
            assert_ne!(found.expect(text), expected, "{text}, {order:?}");
        }
    }
}

/// The file and the offset in it are named, not those of the span.
#[test]
fn a_file_of_several_that_shrank_is_named() {
    let several = Several::of(&[5000, 70_000, 5000]);
    let ranges = [(0, 0, 100), (1, 60_000, 4000), (2, 0, 10)];
    let (entries, job) = (several.entries(&ranges), several.job(&ranges));
    several.files[1].set_len(61_000).expect("shrink");
    let descriptor = several.files[1].as_raw_fd();
    for (text, call) in [("pread", "pread"), ("uring:depth=2", "io_uring read")] {
        let failure = performed(text, &job, &entries, Consume::Sum).expect("it is everywhere");
        let detail = failure.expect_err("short").detail;
        let path = format!("/proc/{}/fd/{descriptor}", std::process::id());
        assert_eq!(detail, format!("{call} at offset 60000 of {path} returned 1000 of 4000 bytes"));
    }
    let gone = Job { file_descriptors: vec![job.file_descriptors[0], 999_999, 3], ..job };
    for text in ["pread", "mmap", "uring:depth=2"] {
        let parts = TablePart::divide(mapped(&entries), &gone).map_err(|failure| failure.detail);
        let opened = open(&method(text), &gone, Consume::Sum, false, parts.expect("one part"));
        let failure = opened.err().expect("no such file");
        assert!(failure.detail.contains("/fd/999999"), "{text}: {}", failure.detail);
    }
}

/// Data that lead between two files lead to no bytes.
#[test]
fn a_read_between_two_files_comes_short() {
    let several = Several::of(&[5000, 5000]);
    let ranges = [(0, 4990, 10), (0, 4990, 11), (0, 8000, 100)];
    for range in &ranges[1..] {
        let reads = [ranges[0], *range];
        let (entries, job) = (several.entries(&reads), several.job(&reads));
        for text in ["pread", "pread:direct", "uring:depth=2", "uring:direct+depth=2"] {
            let Some(found) = performed(text, &job, &entries, Consume::Sum) else { continue };
            let detail = found.expect_err("it has no bytes").detail;
            assert!(detail.contains(" returned "), "{text}: {detail}");
        }
    }
}

/// Many small files, more than a descriptor table begins with.
#[test]
fn a_thousand_small_files_are_read() {
    let sizes: Vec<u64> = (0..1100).map(|number| 1 + number % 7 * 700).collect();
    let several = Several::of(&sizes);
    let ranges: Vec<_> = (0..sizes.len()).rev().map(|file| (file, 0, sizes[file])).collect();
    let (entries, job) = (several.entries(&ranges), several.job(&ranges));
    for text in ["mmap:random", "pread:random", "uring:fixed+depth=8"] {
        let found = performed(text, &job, &entries, Consume::Sum).expect("it is everywhere").expect(text);
        assert_eq!(found, several.expected(&ranges, Consume::Sum), "{text}");
    }
}
