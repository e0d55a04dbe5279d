//! Every writer against one plain reference: the file read back must have the content defined by
//! [`pagewise_model::ring`].

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pagewise_model::content;
use pagewise_model::ring::{RecordRing, SOURCE_PERIOD};
use pagewise_model::{Access, Method, SyncCall, Work};
use pagewise_protocol::{CallFailure, Job};
use pagewise_sys::FileMapping;
use rustix::fs::OFlags;
use tempfile::TempDir;

use super::setup::impossible;
use super::{Writer, open};

mod edges;
mod properties;
mod scattered;
mod syncs;

const SEED: u64 = 11;

/// The folder of the build: on a filesystem with a device behind it.
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test itself");
    test.parent().expect("it lies in a folder").to_path_buf()
}

/// The folders to write to: a filesystem in memory, if there is one, and [`build_folder`].
fn folders() -> Vec<PathBuf> {
    let folders = [PathBuf::from("/dev/shm"), build_folder()];
    folders.into_iter().filter(|folder| tempfile::tempfile_in(folder).is_ok()).collect()
}

/// A sparse file to be written, the source of its records, and the job for them.
struct Fixture {
    _folder: TempDir,
    job: Job,
    source: Vec<u8>,
}

impl Fixture {
    fn new(folder: &Path, record_bytes: u64, file_bytes: u64, passes: u64) -> Self {
        let temporary = tempfile::Builder::new().prefix("pagewise-").tempdir_in(folder).expect("folder");
        let path = |name: &str| temporary.path().join(name).to_str().expect("UTF-8").to_string();
        let ring = RecordRing::new(file_bytes, record_bytes, passes);
        let mut source = vec![0; ring.source_bytes() as usize];
        content::fill(SEED, 0, &mut source);
        fs::write(path("source"), &source).expect("source");
        let file = fs::File::create(path("ring")).expect("file");
        file.set_len(file_bytes).expect("size");
        let job = Job {
            method: String::new(),
            workload: "append".to_string(),
            path: path("ring"),
            file_bytes,
            span_bytes: file_bytes,
            threads: 1,
            descriptor: "shared".to_string(),
            table_path: String::new(),
            table_reads: 0,
            piece_reads: 0,
            read_bytes: 0,
            reads_per_op: 0,
            consume: String::new(),
            page_bytes: 4096,
            dependent: 0,
            touch_last: 0,
            direct_flag: OFlags::DIRECT.bits(),
            direct_alignment: 4096,
            warm_page_tables: 0,
            bounds: pagewise_protocol::PhaseBounds::default(),
            record_bytes,
            records: ring.records(),
            sync: "none".to_string(),
            sync_call: String::new(),
            source_path: path("source"),
            source_period: SOURCE_PERIOD,
            gap_seed: 0,
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
            handover_path: String::new(),
        };
        Self { _folder: temporary, job, source }
    }

    fn open(&self, method: &str) -> Result<Box<dyn Writer>, CallFailure> {
        let method: Method =
            if method == "anonymous" { Method::anonymous() } else { method.parse().expect(method) };
        let mut job = self.job.clone();
        if job.sync != "none" && job.sync_call.is_empty() {
            job.sync_call = SyncCall::usual(method.access() == Access::Mmap).to_string();
        }
        let work = job.understand().expect("words of the protocol").work;
        match method.refuses(&work, self.job.alignment()) {
            Some(reason) => Err(impossible(&self.job.path, reason)),
            None => open(&method, &job, work.writes().expect("it writes"), self.table(&work)),
        }
    }

    /// The offsets of the accesses, if the work has a table of them.
    fn table(&self, work: &Work) -> Option<FileMapping> {
        let ring = work.has_table().then(|| {
            let Job { file_bytes, record_bytes, records, reads_per_op, .. } = self.job;
            RecordRing::new(file_bytes, record_bytes, 1).scattered(records).reading(reads_per_op)
        })?;
        let offsets: Vec<u8> = ring.accesses().into_iter().flat_map(u64::to_le_bytes).collect();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&offsets).expect("written");
        Some(FileMapping::new(file, offsets.len(), true).expect("mapped"))
    }

    /// Open, append `records` in batches of many sizes, finish and, if the job requires it, sync;
    /// return the bytes that reached the file.
    fn write(&self, method: &str, records: u64) -> Result<u64, CallFailure> {
        let mut writer = self.open(method)?;
        append(&mut *writer, records)?;
        writer.finish()?;
        if self.job.sync == "end" {
            writer.sync()?;
        }
        Ok(writer.written())
    }

    /// Expected content of the file after `records`, written one after the other.
    fn expected(&self, records: u64) -> Vec<u8> {
        let (file_bytes, record_bytes) = (self.job.file_bytes as usize, self.job.record_bytes as usize);
        let mut file = vec![0; file_bytes];
        for index in 0..records as usize {
            let from = index * record_bytes % SOURCE_PERIOD as usize;
            let to = index % (file_bytes / record_bytes) * record_bytes;
            file[to..to + record_bytes].copy_from_slice(&self.source[from..from + record_bytes]);
        }
        file
    }

    fn file(&self) -> Vec<u8> {
        fs::read(&self.job.path).expect("ring")
    }

    /// Check the whole file, and name the first byte that differs.
    fn assert_holds(&self, records: u64, what: &str) {
        let (file, expected) = (self.file(), self.expected(records));
        assert_eq!(file.len(), expected.len(), "{what}: length of the file");
        if file != expected {
            let differs = file.iter().zip(&expected).position(|(found, wanted)| found != wanted);
            let place = differs.expect("a byte that differs") as u64;
            panic!("{what}: byte {place}, in record {} of the file", place / self.job.record_bytes);
        }
    }

    /// Replace the file by a new sparse one. ext4 flushes a file that is truncated and written
    /// again when it is closed (auto_da_alloc), for which hundreds of tests would wait.
    fn renew(&self) {
        fs::remove_file(&self.job.path).expect("the old file");
        let file = fs::File::create(&self.job.path).expect("a new file");
        file.set_len(self.job.file_bytes).expect("its size");
    }

    /// Write anew and check bytes and file.
    fn check(&self, method: &str, records: u64) -> Result<(), CallFailure> {
        self.renew();
        let Job { record_bytes, file_bytes, .. } = self.job;
        let what = format!("{records} records of {record_bytes} bytes into {file_bytes} by {method}");
        assert_eq!(self.write(method, records)?, records * record_bytes, "{what}: bytes");
        self.assert_holds(records, &what);
        Ok(())
    }
}

/// Append `records` in batches of many sizes.
fn append(writer: &mut dyn Writer, records: u64) -> Result<(), CallFailure> {
    let mut left = records;
    for batch in [1, 2, 1, 7, 64, 3, 1000].into_iter().cycle() {
        if left == 0 {
            break;
        }
        writer.append(left.min(batch))?;
        left -= left.min(batch);
    }
    Ok(())
}

/// Assert a result that must work wherever tests run.
fn must(result: Result<(), CallFailure>) {
    if let Err(failure) = result {
        panic!("{}", failure.detail);
    }
}

/// Accept a refusal by the machine, and report it.
fn may(name: &str, result: Result<(), CallFailure>) {
    match result {
        Err(failure) if failure.unavailable == 1 => println!("skipped: method: {name}: {}", failure.detail),
        result => must(result),
    }
}

const RECORDS: [u64; 9] = [1, 7, 10, 100, 128, 1000, 2048, 4096, 5000];

/// File sizes that are not a multiple of the record or the page, and the ring of one record.
fn sizes(record_bytes: u64) -> [u64; 4] {
    [record_bytes, record_bytes * 3 + record_bytes / 2, record_bytes * 40 + 3, record_bytes.max(20) * 97 + 1]
}

/// Write all passes and stops of one file.
fn go_round(fixture: &mut Fixture, method: &str) -> Result<(), CallFailure> {
    for passes in 1..=3 {
        let ring = RecordRing::new(fixture.job.file_bytes, fixture.job.record_bytes, passes);
        fixture.job.records = ring.records();
        fixture.check(method, ring.records())?;
        fixture.check(method, ring.records() - ring.slots() / 2)?;
    }
    Ok(())
}

fn matrix(method_of: impl Fn(Option<u64>) -> String) {
    for folder in folders() {
        for record_bytes in RECORDS {
            for file_bytes in sizes(record_bytes) {
                let mut fixture = Fixture::new(&folder, record_bytes, file_bytes, 1);
                let buffers = [None, Some(record_bytes), Some(100), Some(1024), Some(4096), Some(65536)];
                for buffer in buffers.into_iter().filter(|size| size.is_none_or(|size| size >= record_bytes))
                {
                    must(go_round(&mut fixture, &method_of(buffer)));
                }
            }
        }
    }
}

/// `access`, with the buffer as an option.
fn buffered(access: &str, buffer: Option<u64>) -> String {
    let colon = if access.contains(':') { '+' } else { ':' };
    buffer.map_or(access.to_string(), |size| format!("{access}{colon}buffer={size}B"))
}

#[test]
fn mmap_keeps_every_record() {
    matrix(|buffer| buffered("mmap", buffer));
}

#[test]
fn pwrite_keeps_every_record() {
    matrix(|buffer| buffered("pwrite", buffer));
}

#[test]
fn write_keeps_every_record() {
    matrix(|buffer| buffered("write", buffer));
}

#[test]
fn uring_keeps_every_record() {
    matrix(|buffer| buffered("uring:depth=4", buffer));
}

#[test]
fn direct_writes_keep_every_record() {
    for folder in folders() {
        for record_bytes in RECORDS {
            for file_bytes in [8192, 20_480 + 100, 28_672] {
                let end = RecordRing::new(file_bytes, record_bytes, 1).bytes();
                if end.next_multiple_of(4096) > file_bytes {
                    // Refused for its own reason, which has a separate test.
                    continue;
                }
                let mut fixture = Fixture::new(&folder, record_bytes, file_bytes, 1);
                for buffer in [8192, 12_288, 65_536] {
                    for access in ["pwrite:direct", "write:direct", "uring:depth=3+direct"] {
                        let method = buffered(access, Some(buffer));
                        may(&method, go_round(&mut fixture, &method));
                    }
                }
            }
        }
    }
}

#[test]
fn every_way_to_set_up_a_mapping_keeps_every_record() {
    const OPTIONS: [&str; 14] = [
        "prealloc",
        "populate",
        "populate-write",
        "willneed",
        "sequential",
        "random",
        "hugepage",
        "touch",
        "lock",
        "prealloc+populate+willneed",
        "populate+prealloc",
        "pretouch=1B",
        "pretouch=4KiB",
        "pretouch=64KiB",
    ];
    for folder in folders() {
        for (record_bytes, file_bytes) in [(128, 300_001), (5000, 100_000), (10, 4096)] {
            let mut fixture = Fixture::new(&folder, record_bytes, file_bytes, 1);
            for options in OPTIONS {
                let method = format!("mmap:{options}");
                may(&method, go_round(&mut fixture, &method));
            }
        }
    }
}

#[test]
fn an_allocated_file_is_written_by_calls() {
    for folder in folders() {
        let mut fixture = Fixture::new(&folder, 100, 10_000, 1);
        for method in ["pwrite:prealloc", "write:prealloc+buffer=1KiB", "uring:depth=2+prealloc"] {
            may(method, go_round(&mut fixture, method));
        }
    }
}

#[test]
fn syncs_lose_nothing() {
    const METHODS: [&str; 9] = [
        "mmap",
        "mmap:buffer=1KiB",
        "mmap:pretouch=8KiB",
        "pwrite",
        "pwrite:buffer=4KiB",
        "write:buffer=1KiB",
        "uring:depth=4",
        "uring:depth=2+buffer=4KiB",
        "pwrite:direct+buffer=4KiB",
    ];
    for folder in folders() {
        let mut fixture = Fixture::new(&folder, 100, 20_490, 1);
        for sync in ["end", "every:1B", "every:250B", "every:5KiB", "every:1MiB"] {
            fixture.job.sync = sync.to_string();
            for method in METHODS {
                if sync != "every:1B" || method.contains("buffer") {
                    may(method, go_round(&mut fixture, method));
                }
            }
        }
    }
}

#[test]
fn the_ceiling_counts_what_it_stores() {
    let fixture = Fixture::new(&std::env::temp_dir(), 100, 12_345, 3);
    let bytes = fixture.write("anonymous", fixture.job.records).map_err(|failure| failure.detail);
    assert_eq!(bytes, Ok(3 * 12_300));
    assert!(fixture.file().iter().all(|byte| *byte == 0), "the file is not touched");
}
