//! Every method returns the checksum of the bytes at the offsets of the table, with any alignment.

use std::io::Write;

use pagewise_model::checksum::weight;
use pagewise_model::random::Random;
use pagewise_model::trace::entry;
use pagewise_model::{Worker, Workload, content};
use pagewise_protocol::Go;
use pagewise_sys::{FileMapping, SharedMemory};

use super::*;

mod scans;
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
        thread_read_ahead: Vec::new(),
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

/// The work of a job, or a report that this machine does not support its method.
pub(crate) fn supported<T>(text: &str, opened: Result<T, CallFailure>) -> Option<T> {
    match opened {
        Ok(work) => Some(work),
        Err(failure) if failure.unavailable == 1 => {
            println!("skipped: method: {text}: {}", failure.detail);
            None
        }
        Err(failure) => panic!("{text}: {}", failure.detail),
    }
}

pub(crate) fn method(text: &str) -> Method {
    if text == "anonymous" { Method::anonymous() } else { text.parse().expect(text) }
}

/// Open a method for threads that each read the whole table.
fn open_or_skip(
    text: &str,
    job: &Job,
    consume: Consume,
    per_thread: bool,
    entries: &[u64],
) -> Option<Vec<Box<dyn ThreadWork>>> {
    let table = Arc::new(mapped(entries));
    let part = |_| TablePart::new(table.clone(), 0..entries.len(), 0);
    let parts = (0..job.threads).map(part).collect();
    supported(text, open(&method(text), job, consume, per_thread, parts))
}

/// The work of the only thread.
fn only_thread(text: &str, job: &Job, consume: Consume, entries: &[u64]) -> Option<Box<dyn ThreadWork>> {
    open_or_skip(text, job, consume, false, entries)?.pop()
}

/// Do all reads of the part.
fn read_all(work: &mut dyn ThreadWork) -> Result<u64, CallFailure> {
    work.begin(&Go::default());
    let done = work.perform(0, u64::MAX, u64::MAX)?;
    Ok(done.checksum.wrapping_add(work.finish()?))
}

/// The same with the time of each operation: the checksum, and the number of times.
fn read_all_timed(work: &mut dyn ThreadWork) -> Result<(u64, u64), CallFailure> {
    let mut latencies = Latencies::new(3).expect("histogram");
    work.begin(&Go::default());
    let done = work.perform_timed(0, u64::MAX, u64::MAX, &mut latencies)?;
    Ok((done.checksum, latencies.len()))
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
                let Some(mut work) = only_thread(text, &job, consume, &offsets) else { continue };
                let what = format!("{text}, {read_bytes} bytes aligned to {align_bytes}, {consume}");
                assert_eq!(read_all(work.as_mut()), Ok(expected), "{what}");
                assert_eq!(read_all_timed(work.as_mut()), Ok((expected, 16)), "{what}, timed");

                let mut fetched = vec![0; read_bytes as usize];
                let mut formula = fetched.clone();
                work.fetch(offsets[7], &mut fetched).expect(&what);
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
            let opened = open_or_skip(text, &job, Consume::Sum, per_thread, &offsets);
            let Some(threads) = opened else { continue };
            assert_eq!(threads.len(), 3);
            for mut work in threads {
                assert_eq!(read_all(work.as_mut()), Ok(expected), "{text}");
            }
        }
    }
}

#[test]
fn the_ceiling_of_memory_holds_the_bytes_of_the_file() {
    let fixture = Fixture::new(1 << 20);
    let job = fixture.job(4096, 4096, 2);
    let offsets = [0, 65536, 4096, 4096];
    let threads = open_or_skip("anonymous", &job, Consume::Sum, false, &offsets);
    for mut work in threads.expect("anonymous memory") {
        assert_eq!(read_all(work.as_mut()), Ok(expected(&offsets, &job, Consume::Sum)));
    }
}

#[test]
fn a_file_that_shrank_is_a_short_read() {
    let fixture = Fixture::new(1 << 20);
    let job = Job { reads_per_op: 2, ..fixture.job(4096, 4096, 1) };
    fixture.file.as_file().set_len(4096 + 100).expect("shrink");
    for text in ["pread", "uring:depth=2", "pread:direct"] {
        let Some(mut work) = only_thread(text, &job, Consume::Touch, &[0, 4096]) else { continue };
        let failure = read_all(work.as_mut()).expect_err(text);
        assert!(failure.detail.ends_with("returned 100 of 4096 bytes"), "{}", failure.detail);
        assert_eq!((failure.errno, failure.offset, failure.unavailable), (0, 4096, 0));
    }
}

#[test]
fn a_file_that_is_gone_is_named() {
    let mut job = Fixture::new(4096).job(4096, 4096, 1);
    job.path = "/nowhere/at/all".to_string();
    for text in ["mmap", "pread", "uring"] {
        let parts = vec![TablePart::new(Arc::new(mapped(&[0; 4])), 0..4, 0)];
        let failure = open(&method(text), &job, Consume::Touch, false, parts).map(drop).expect_err(text);
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
                let Some(mut work) = only_thread(text, &job, consume, &entries) else { continue };
                let what = format!("{text}, {read_bytes} bytes aligned to {align_bytes}, {consume}");
                work.begin(&Go::default());
                let total = work.perform(0, u64::MAX, u64::MAX).expect(&what).checksum;
                assert_eq!((total, work.finish()), (expected, Ok(0)), "{what}");
                assert!(work.is_sequential(), "{what}");
                assert_eq!(read_all_timed(work.as_mut()), Ok((expected, 16)), "{what}, timed");

                // Verified reads are requested by their true offset.
                let mut fetched = vec![0; read_bytes as usize];
                let mut formula = fetched.clone();
                work.fetch(offsets[7], &mut fetched).expect(&what);
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
            let Some(mut work) = only_thread(text, &job, Consume::Sum, &entries) else { continue };
            match read_all(work.as_mut()) {
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
                    work.fetch(0, &mut fetched).expect(text);
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
        let inside = [0, span - 4096];
        let read = |entries: &[u64]| {
            let job = Job { reads_per_op: entries.len() as u32, ..job.clone() };
            Some(read_all(only_thread(text, &job, Consume::Touch, entries)?.as_mut()))
        };
        let Some(total) = read(&chained(&inside)) else { continue };
        assert_eq!(total, Ok(expected(&inside, &job, Consume::Touch)), "{text} in the span");
        for outside in [span - 4095, span, u64::MAX, u64::MAX - 4095] {
            let failure = read(&[outside]).expect("it was there").expect_err(text);
            assert_eq!((failure.call.as_str(), failure.offset), ("read by the table", outside), "{text}");
        }
    }
}

/// The work of the threads of a trace.
fn recorded(text: &str, job: &Job, consume: Consume, table: FileMapping) -> Option<Vec<Box<dyn ThreadWork>>> {
    let parts = TablePart::divide(table, job).map_err(|failure| failure.detail);
    let per_thread = job.descriptor == "per-thread";
    supported(text, open(&method(text), job, consume, per_thread, parts.expect("sound parts")))
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
    // Before the first read, between two, and behind the last one; each behind a gap.
    let end = job.table_reads;
    let requests: Vec<u64> = [(0, 7), (40, 4096), (40, 100_000), (end, 1 << 20)]
        .iter()
        .flat_map(|(before, offset)| [*before, 1_000_000, *offset, 300_000])
        .collect();
    let asks = Job { thread_read_ahead: vec![4], ..job.clone() };
    let asks_with_gaps = Job { thread_read_ahead: vec![4], ..with_gaps.clone() };
    let table_of = |job: &Job| {
        let gaps: &[u64] = if job.gaps == 1 { &gaps } else { &[] };
        let requests: &[u64] = if job.thread_read_ahead.is_empty() { &[] } else { &requests };
        let words = [&entries[..], gaps, requests].concat();
        assert_eq!(words.len() as u64, job.table_words());
        mapped(&words)
    };
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
            for job in [&job, &with_gaps, &asks, &asks_with_gaps] {
                let Some(mut work) = recorded(text, job, consume, table_of(job)) else { continue };
                let work = &mut work[0];
                let done = work.perform(0, 1, 1).expect(text);
                assert_eq!((done.operations, done.checksum), (1, expected), "{text}, {consume}");
                assert_eq!(work.bytes(), ranges.iter().map(|(_, len)| len).sum::<u64>(), "{text}");
                assert_eq!(work.perform(1, 1, 1).expect(text).operations, 0, "it is done once");
                let least_ns = if job.gaps == 1 { gaps.iter().sum() } else { 0u64 };
                let least_ns = least_ns + job.thread_read_ahead.iter().sum::<u64>() * 1_000_000;
                let waited_ns = work.take_gap_wait_ns();
                assert!(waited_ns >= least_ns && (waited_ns > 0) == (least_ns > 0), "{text}: {waited_ns}");
                assert_eq!(work.take_gap_wait_ns(), 0, "it is taken once");
            }
        }
    }
}

/// A request that the kernel refuses is no request that was made: the replay says so, at the place
/// of the request.
#[test]
fn a_refused_request_to_read_ahead_is_a_failure() {
    let fixture = Fixture::new(1 << 20);
    let mut job = Job { workload: "replay".into(), touch_last: 1, ..fixture.job(100, 1, 2) };
    (job.table_reads, job.thread_reads, job.thread_read_ahead) = (4, vec![2, 2], vec![0, 2]);
    let entries = [0, 100, 200, 300].map(|offset| entry(offset, 100));
    let request = |before, len| [before, 0, 0, len];
    for text in ["mmap", "pread"] {
        let parts = |requests: [[u64; 4]; 2]| {
            let table = mapped(&[&entries[..], &requests.concat()].concat());
            let work = recorded(text, &job, Consume::Sum, table).expect("it is everywhere");
            work.into_iter().map(|mut part| part.perform(0, 1, 1).err()).collect::<Vec<_>>()
        };
        assert_eq!(parts([request(2, 100), request(4, 100)]), [None, None], "{text}");
        for place in [3, 4] {
            let [first, second] = &parts([request(2, 100), request(place, 1 << 63)])[..] else { panic!() };
            assert_eq!(first, &None);
            let failure = second.as_ref().expect("refused");
            assert_eq!(failure.call, "posix_fadvise(WILLNEED)", "{text}");
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
    let consumption = Consumption::new(Consume::Sum, 4096, 1);
    let work = recorded("pread", &job, Consume::Sum, mapped(&entries));
    let mut work = work.expect("pread is everywhere");
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
        let refused = TablePart::divide(mapped(&entries), &odd).err().expect("refused");
        assert!(refused.detail.contains("does not divide the 60 reads"), "{parts:?}: {}", refused.detail);
    }
}
