//! Every method returns the checksum of the bytes at the offsets of the table, with any alignment.

use std::io::Write;

use pagewise_model::checksum::weight;
use pagewise_model::random::Random;
use pagewise_model::trace::entry;
use pagewise_model::{Worker, Workload, content};
use pagewise_sys::{FileMapping, SharedMemory};

use super::*;

mod several;

const SEED: u64 = 11;

pub(crate) struct Fixture {
    file: tempfile::NamedTempFile,
    file_bytes: u64,
}

impl Fixture {
    pub(crate) fn new(file_bytes: u64) -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("file");
        let mut bytes = vec![0; file_bytes as usize];
        content::fill(SEED, 0, &mut bytes);
        file.write_all(&bytes).expect("write");
        file.as_file().sync_all().expect("sync");
        Self { file, file_bytes }
    }

    pub(crate) fn job(&self, read_bytes: u64, align_bytes: u64, threads: u32) -> Job {
        let path = self.file.path().to_str().expect("text");
        Job {
            threads,
            read_bytes,
            touch_last: u32::from(!align_bytes.is_multiple_of(4096)),
            ..job_of(path, self.file_bytes)
        }
    }
}

/// Common part of all jobs of tests.
pub(crate) fn job_of(path: &str, file_bytes: u64) -> Job {
    Job {
        method: String::new(),
        workload: "random-read".into(),
        path: path.to_string(),
        file_bytes,
        span_bytes: file_bytes,
        threads: 1,
        descriptor: "shared".into(),
        table_path: String::new(),
        table_reads: 0,
        piece_reads: 0,
        read_bytes: 0,
        reads_per_op: 4,
        consume: String::new(),
        page_bytes: 4096,
        dependent: 0,
        touch_last: 0,
        direct_flag: rustix::fs::OFlags::DIRECT.bits(),
        direct_alignment: 4096,
        warm_page_tables: 0,
        bounds: pagewise_protocol::PhaseBounds::default(),
        record_bytes: 0,
        records: 0,
        sync: "none".into(),
        sync_call: String::new(),
        source_path: String::new(),
        source_period: 0,
        gap_seed: 0,
        handover_path: String::new(),
        thread_reads: Vec::new(),
        file_descriptors: Vec::new(),
        file_starts: Vec::new(),
        file_bytes_each: Vec::new(),
        ballast_bytes: 0,
        gaps: 0,
        rate: 0,
        heartbeat_ns: 0,
        policy: pagewise_protocol::SamplingPolicy::default(),
    }
}

/// An offset table of these words.
pub(crate) fn mapped(words: &[u64]) -> FileMapping {
    let mut memory = SharedMemory::create("table", words.len() * 8).expect("memfd");
    for (into, word) in memory.bytes_mut().chunks_exact_mut(8).zip(words) {
        into.copy_from_slice(&word.to_le_bytes());
    }
    FileMapping::new(memory.file(), words.len() * 8, true).expect("map")
}

/// The checksum of the reads of a whole table.
pub(crate) fn expected(offsets: &[u64], job: &Job, consume: Consume) -> u64 {
    expected_of(from_table(offsets), job, consume)
}

/// The checksum of reads at true offsets.
pub(crate) fn expected_of(due: Due<'_>, job: &Job, consume: Consume) -> u64 {
    let touch_last = job.touch_last == 1;
    let consumption = Consumption { consume, page_bytes: 4096, touch_at: due.touch_at as usize, touch_last };
    let mut bytes = vec![0; job.read_bytes as usize];
    due.weighted().fold(0u64, |total, (weight, offset)| {
        content::fill(SEED, offset, &mut bytes);
        total.wrapping_add(weight.wrapping_mul(consumption.of(&bytes)))
    })
}

/// The reads of a whole table.
pub(crate) fn from_table(entries: &[u64]) -> Due<'_> {
    Due { entries, ..Due::default() }
}

pub(crate) const METHODS: &[&str] = &[
    "mmap",
    "mmap:random",
    "mmap:sequential",
    "mmap:willneed",
    "mmap:populate",
    "mmap:populate-read",
    "mmap:hugepage",
    "mmap:random+prefetch",
    "mmap:in-place",
    "mmap:random+prefetch+in-place",
    "mmap:prefetch=1",
    "mmap:random+prefetch=8",
    "mmap:random+prefetch=4096+in-place",
    "pread",
    "pread:random",
    "pread:sequential",
    "pread:willneed",
    "pread:dontcache",
    "pread:direct",
    "uring:depth=1",
    "uring:depth=8",
    "uring:direct+depth=8",
    "uring:fixed+depth=4",
    "uring:direct+fixed+depth=4",
];

/// Open a method, or report that this machine does not support it.
fn open_or_skip(text: &str, job: &Job, consume: Consume, per_thread: bool) -> Option<Vec<Box<dyn Reader>>> {
    match open(&text.parse().expect(text), job, consume, per_thread) {
        Ok(readers) => Some(readers),
        Err(failure) if failure.unavailable == 1 => {
            println!("skipped: method: {text}: {}", failure.detail);
            None
        }
        Err(failure) => panic!("{text}: {}", failure.detail),
    }
}

#[test]
fn every_method_reads_the_bytes_of_the_table() {
    // A size that is not a multiple of a page: the last read ends at the end of the file.
    let fixture = Fixture::new((1 << 20) + 777);
    for (read_bytes, align_bytes) in [(4096, 4096), (16384, 4096), (4096, 1), (100, 1), (12345, 1)] {
        for consume in [Consume::Touch, Consume::Sum] {
            let job = fixture.job(read_bytes, align_bytes, 1);
            let mut random = Random::new(5);
            let last = fixture.file_bytes - read_bytes;
            let mut offsets: Vec<u64> =
                (0..64).map(|_| random.below(last / align_bytes + 1) * align_bytes).collect();
            offsets[7] = last / align_bytes * align_bytes;
            let expected = expected(&offsets, &job, consume);
            for text in METHODS {
                let Some(mut readers) = open_or_skip(text, &job, consume, false) else { continue };
                let reader = &mut readers[0];
                let what = format!("{text}, {read_bytes} bytes aligned to {align_bytes}, {consume}");
                let mut total = reader.read(ReadRange::alone(from_table(&offsets))).expect(&what);
                total = total.wrapping_add(reader.finish().expect(&what));
                assert_eq!(total, expected, "{what}");

                let mut latencies = Latencies::new(3).expect("histogram");
                let mut total = reader
                    .read_timed(ReadRange::alone(from_table(&offsets)), 4, &mut latencies)
                    .expect(&what);
                total = total.wrapping_add(reader.finish_timed(&mut latencies).expect(&what));
                assert_eq!((total, latencies.len()), (expected, 16), "{what}, timed");

                let mut fetched = vec![0; read_bytes as usize];
                let mut formula = fetched.clone();
                reader.fetch(offsets[7], &mut fetched).expect(&what);
                content::fill(SEED, offsets[7], &mut formula);
                assert_eq!(fetched, formula, "{what}, fetched");
            }
        }
    }
}

#[test]
fn threads_share_a_file_or_have_their_own() {
    let fixture = Fixture::new(1 << 20);
    let job = fixture.job(4096, 4096, 3);
    let offsets = [0, 4096, 8192, 40960];
    let expected = expected(&offsets, &job, Consume::Sum);
    for per_thread in [false, true] {
        for text in ["mmap", "pread", "uring:depth=2"] {
            let Some(readers) = open_or_skip(text, &job, Consume::Sum, per_thread) else { continue };
            assert_eq!(readers.len(), 3);
            for mut reader in readers {
                let total = reader
                    .read(ReadRange::alone(from_table(&offsets)))
                    .and_then(|some| Ok(some.wrapping_add(reader.finish()?)));
                assert_eq!(total, Ok(expected), "{text}");
            }
        }
    }
}

#[test]
fn the_ceiling_of_memory_holds_the_bytes_of_the_file() {
    let fixture = Fixture::new(1 << 20);
    let job = fixture.job(4096, 4096, 2);
    let offsets = [0, 65536, 4096, 4096];
    let readers = open(&Method::anonymous(), &job, Consume::Sum, false).map_err(|failure| failure.detail);
    for mut reader in readers.expect("anonymous memory") {
        assert_eq!(
            reader.read(ReadRange::alone(from_table(&offsets))),
            Ok(expected(&offsets, &job, Consume::Sum))
        );
    }
}

#[test]
fn a_file_that_shrank_is_a_short_read() {
    let fixture = Fixture::new(1 << 20);
    let job = fixture.job(4096, 4096, 1);
    fixture.file.as_file().set_len(4096 + 100).expect("shrink");
    for text in ["pread", "uring:depth=2", "pread:direct"] {
        let Some(mut readers) = open_or_skip(text, &job, Consume::Touch, false) else { continue };
        let outcome =
            readers[0].read(ReadRange::alone(from_table(&[0, 4096]))).and_then(|_| readers[0].finish());
        let failure = outcome.expect_err(text);
        assert!(failure.detail.ends_with("returned 100 of 4096 bytes"), "{}", failure.detail);
        assert_eq!((failure.errno, failure.offset, failure.unavailable), (0, 4096, 0));
    }
}

#[test]
fn a_file_that_is_gone_is_named() {
    let mut job = Fixture::new(4096).job(4096, 4096, 1);
    job.path = "/nowhere/at/all".to_string();
    for text in ["mmap", "pread", "uring"] {
        let failure =
            open(&text.parse().expect(text), &job, Consume::Touch, false).map(drop).expect_err(text);
        assert_eq!((failure.call.as_str(), failure.errno, failure.unavailable), ("open", 2, 0));
    }
}

/// The entries that a worker gets for dependent reads at `offsets` in operations of four.
pub(crate) fn chained(offsets: &[u64]) -> Vec<u64> {
    let mut entries = offsets.to_vec();
    for (entries, offsets) in entries.chunks_mut(4).zip(offsets.chunks(4)) {
        for (entry, before) in entries[1..].iter_mut().zip(offsets) {
            let mut link = [0; 8];
            content::fill(SEED, *before, &mut link);
            *entry ^= u64::from_le_bytes(link);
        }
    }
    entries
}

pub(crate) const DEPENDENT_METHODS: &[&str] = &[
    "mmap",
    "mmap:random",
    "mmap:in-place",
    "mmap:populate",
    "pread",
    "pread:random",
    "pread:dontcache",
    "pread:direct",
    "uring:depth=1",
    "uring:direct+depth=1",
    "uring:fixed+depth=1",
    "uring:direct+fixed+depth=1",
    "anonymous",
];

fn dependent_reader(text: &str, job: &Job, consume: Consume) -> Option<Box<dyn Reader>> {
    if text == "anonymous" {
        let readers = open(&Method::anonymous(), job, consume, false).map_err(|failure| failure.detail);
        return readers.expect(text).pop();
    }
    open_or_skip(text, job, consume, false)?.pop()
}

#[test]
fn dependent_reads_follow_the_data() {
    let fixture = Fixture::new((1 << 20) + 777);
    for (read_bytes, align_bytes) in [(4096, 4096), (16384, 4096), (8, 1), (12345, 1)] {
        for consume in [Consume::Touch, Consume::Sum] {
            let job = Job { dependent: 1, ..fixture.job(read_bytes, align_bytes, 1) };
            let mut random = Random::new(6);
            let last = fixture.file_bytes - read_bytes;
            let mut offsets: Vec<u64> =
                (0..64).map(|_| random.below(last / align_bytes + 1) * align_bytes).collect();
            offsets[7] = last / align_bytes * align_bytes;
            let (entries, expected) = (chained(&offsets), expected(&offsets, &job, consume));
            for text in DEPENDENT_METHODS {
                let Some(mut reader) = dependent_reader(text, &job, consume) else { continue };
                let what = format!("{text}, {read_bytes} bytes aligned to {align_bytes}, {consume}");
                let total = reader.read(ReadRange::alone(from_table(&entries))).expect(&what);
                assert_eq!((total, reader.finish()), (expected, Ok(0)), "{what}");
                assert!(reader.is_sequential(), "{what}");

                let mut latencies = Latencies::new(3).expect("histogram");
                let total = reader
                    .read_timed(ReadRange::alone(from_table(&entries)), 4, &mut latencies)
                    .expect(&what);
                assert_eq!((total, latencies.len()), (expected, 16), "{what}, timed");

                // Verified reads are requested by their true offset.
                let mut fetched = vec![0; read_bytes as usize];
                let mut formula = fetched.clone();
                reader.fetch(offsets[7], &mut fetched).expect(&what);
                content::fill(SEED, offsets[7], &mut formula);
                assert_eq!(fetched, formula, "{what}, fetched");
            }
        }
    }
}

#[test]
fn other_data_lead_astray_and_end_with_a_sentence() {
    use std::os::unix::fs::FileExt;
    for (changed_at, value) in [(4096, 0xff), (4096 + 7, 0xff), (4096 + 2, 0x80)] {
        let fixture = Fixture::new(1 << 20);
        let job = Job { dependent: 1, ..fixture.job(4096, 4096, 1) };
        let entries = chained(&[0, 4096, 8192, 12288]);
        let mut byte = [0];
        content::fill(SEED, changed_at, &mut byte);
        let honest = expected(&[0, 4096, 8192, 12288], &job, Consume::Sum);
        fixture.file.as_file().write_all_at(&[byte[0] ^ value], changed_at).expect("write");
        fixture.file.as_file().sync_all().expect("sync");
        for text in DEPENDENT_METHODS {
            let Some(mut reader) = dependent_reader(text, &job, Consume::Sum) else { continue };
            match reader.read(ReadRange::alone(from_table(&entries))) {
                // One of the lowest bits leads to another offset within the span.
                Ok(total) => assert_ne!(total, honest, "{text} with another byte at {changed_at}"),
                Err(failure) => {
                    assert!(
                        failure.detail.contains("they differ from those used to build the offset table")
                            && failure.detail.contains("past the 1048576 bytes"),
                        "{text}: {}",
                        failure.detail
                    );
                    assert!(failure.offset > (1 << 20) - 4096, "{text}");
                    assert_eq!((failure.errno, failure.unavailable), (0, 0));
                    // The reader still works.
                    let mut fetched = vec![0; 4096];
                    reader.fetch(0, &mut fetched).expect(text);
                }
            }
        }
    }
}

#[test]
fn the_last_place_of_the_span_is_within_it_and_the_next_is_not() {
    let fixture = Fixture::new(1 << 20);
    let span = (1 << 20) - 4096;
    let job = Job { dependent: 1, span_bytes: span, ..fixture.job(4096, 1, 1) };
    for text in DEPENDENT_METHODS {
        let Some(mut reader) = dependent_reader(text, &job, Consume::Touch) else { continue };
        let inside = [0, span - 4096];
        assert_eq!(
            reader.read(ReadRange::alone(from_table(&chained(&inside)))),
            Ok(expected(&inside, &job, Consume::Touch)),
            "{text} in the span"
        );
        for outside in [span - 4095, span, u64::MAX, u64::MAX - 4095] {
            let failure = reader.read(ReadRange::alone(from_table(&[outside]))).expect_err(text);
            assert_eq!((failure.call.as_str(), failure.offset), ("read by the table", outside), "{text}");
        }
    }
}

/// Each read of a trace has a length of its own; direct ones are widened, and the last ends with
/// the file.
#[test]
fn recorded_reads_have_their_own_lengths() {
    let fixture = Fixture::new((1 << 20) + 777);
    let mut random = Random::new(9);
    let mut ranges: Vec<(u64, u64)> = (0..200)
        .map(|_| {
            let most = 1 << random.below(16);
            let len = 1 + random.below(most);
            (random.below(fixture.file_bytes - len + 1), len)
        })
        .collect();
    ranges.push((fixture.file_bytes - 1, 1));
    ranges.push((fixture.file_bytes - 5000, 5000));
    let entries: Vec<u64> = ranges.iter().map(|(offset, len)| entry(*offset, *len)).collect();
    let longest = ranges.iter().map(|(_, len)| *len).max().expect("a read");
    let mut job = Job { workload: "replay".into(), touch_last: 1, ..fixture.job(longest, 1, 1) };
    job.table_reads = entries.len() as u64;
    job.thread_reads = vec![job.table_reads];
    let gaps: Vec<u64> = (0..job.table_reads).map(|read| read % 3 * 10_000).collect();
    let with_gaps = Job { gaps: 1, ..job.clone() };
    let table_of =
        |job: &Job| mapped(&if job.gaps == 1 { [&entries[..], &gaps].concat() } else { entries.clone() });
    for consume in [Consume::Touch, Consume::Sum] {
        let consumption = Consumption::new(consume, 4096, 1);
        let expected = ranges.iter().zip(0u64..).fold(0u64, |total, ((offset, len), place)| {
            let mut bytes = vec![0; *len as usize];
            content::fill(SEED, *offset, &mut bytes);
            total.wrapping_add(weight(place).wrapping_mul(consumption.of(&bytes)))
        });
        for text in Method::words(&Worker::Native, Workload::Replay).into_iter().chain([
            "mmap:random",
            "mmap:in-place",
            "mmap:populate",
            "pread:direct",
            "pread:dontcache",
            "uring:depth=4",
            "uring:direct+depth=3",
        ]) {
            for job in [&job, &with_gaps] {
                let Some(mut readers) = open_or_skip(text, job, consume, false) else { continue };
                let reader = readers.pop().expect("a reader");
                let work = RecordedReads::divide(vec![reader], table_of(job), job).expect("one part");
                let mut work = work.into_iter().next().expect("a thread");
                let done = work.perform(0, 1, 1).expect(text);
                assert_eq!((done.operations, done.checksum), (1, expected), "{text}, {consume}");
                assert_eq!(work.bytes(), ranges.iter().map(|(_, len)| len).sum::<u64>(), "{text}");
                assert_eq!(work.perform(1, 1, 1).expect(text).operations, 0, "it is done once");
                let least_ns = if job.gaps == 1 { gaps.iter().sum() } else { 0 };
                let waited_ns = work.take_gap_wait_ns();
                assert!(waited_ns >= least_ns && (waited_ns > 0) == (least_ns > 0), "{text}: {waited_ns}");
                assert_eq!(work.take_gap_wait_ns(), 0, "it is taken once");
            }
        }
    }
}

/// Each thread has consecutive entries, and weights are those of the whole table.
#[test]
fn a_thread_owns_its_recorded_reads() {
    let fixture = Fixture::new(1 << 20);
    let ranges: Vec<(u64, u64)> = (0..60).map(|read| (read * 16_384 % (1 << 20), 1 + read * 100)).collect();
    let entries: Vec<u64> = ranges.iter().map(|(offset, len)| entry(*offset, *len)).collect();
    let job = Job {
        workload: "replay".into(),
        touch_last: 1,
        table_reads: 60,
        thread_reads: vec![10, 1, 49],
        ..fixture.job(6000, 1, 3)
    };
    let open = || open_or_skip("pread", &job, Consume::Sum, false).expect("pread is everywhere");
    let consumption = Consumption::new(Consume::Sum, 4096, 1);
    let mut work = RecordedReads::divide(open(), mapped(&entries), &job).expect("three parts");
    let mut first = 0;
    for (thread, reads) in work.iter_mut().zip([10, 1, 49]) {
        let part = &ranges[first..first + reads];
        let expected = part.iter().zip(first as u64..).fold(0u64, |total, ((offset, len), place)| {
            let mut bytes = vec![0; *len as usize];
            content::fill(SEED, *offset, &mut bytes);
            total.wrapping_add(weight(place).wrapping_mul(consumption.of(&bytes)))
        });
        let done = thread.perform(0, 1, 1).expect("reads");
        assert_eq!((done.operations, done.checksum), (1, expected));
        assert_eq!(thread.bytes(), part.iter().map(|(_, len)| len).sum::<u64>());
        first += reads;
    }
    for parts in [vec![], vec![60], vec![10, 10, 39], vec![30, 30, 1], vec![20; 4], vec![u64::MAX, 1, 60]] {
        let odd = Job { thread_reads: parts.clone(), ..job.clone() };
        let refused = RecordedReads::divide(open(), mapped(&entries), &odd).err().expect("refused");
        assert!(refused.detail.contains("does not divide the 60 reads"), "{parts:?}: {}", refused.detail);
    }
}
