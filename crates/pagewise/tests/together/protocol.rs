//! The native worker driven by hand, line by line, as workers of other languages will be.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::support::{PAGEWISE, Place};
use pagewise_model::checksum::Consumption;
use pagewise_model::{Consume, content};
use pagewise_protocol::{Go, Job, PROTOCOL_VERSION, PhaseBounds, Reply, Request, Verify};

const READ_BYTES: u64 = 4096;
const FILE_BYTES: u64 = 64 * READ_BYTES;
const SEED: u64 = 5;

struct Worker {
    child: Child,
    requests: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start() -> Self {
        let mut command = Command::new(PAGEWISE);
        command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the worker starts");
        let requests = child.stdin.take().expect("piped");
        let replies = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, requests, replies }
    }

    fn say(&mut self, request: &Request) {
        self.say_text(&serde_json::to_string(request).expect("json"));
    }

    fn say_text(&mut self, line: &str) {
        writeln!(self.requests, "{line}").expect("the worker listens");
    }

    #[track_caller]
    fn hear(&mut self) -> Reply {
        let line = self.replies.next().expect("a line").expect("text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    #[track_caller]
    fn expect_hello(&mut self) {
        let Reply::Hello(hello) = self.hear() else { panic!("no hello") };
        assert_eq!((hello.protocol, &*hello.worker), (PROTOCOL_VERSION, "native"));
    }

    /// No further line, and the exit code.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.requests);
        assert!(self.replies.next().is_none(), "a line too many");
        let output = self.child.wait_with_output().expect("wait");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

const SAMPLE_NS: u64 = 1_000_000_000;

/// A file of known content, a table of its offsets backwards, and room for verified reads.
fn job(place: &Place, method: &str) -> (Job, Vec<u64>) {
    let mut bytes = vec![0; FILE_BYTES as usize];
    content::fill(SEED, 0, &mut bytes);
    let path = place.write("data", bytes);
    let offsets: Vec<u64> = (0..64).rev().map(|page| page * READ_BYTES).collect();
    let table =
        place.write("table", offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect::<Vec<u8>>());
    let handover = place.write("handover", vec![0; 2 * READ_BYTES as usize]);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let job = Job {
        method: method.into(),
        workload: "random-read".into(),
        path: text(&path),
        file_bytes: FILE_BYTES,
        span_bytes: FILE_BYTES,
        threads: 2,
        descriptor: "shared".into(),
        table_path: text(&table),
        table_reads: 64,
        read_bytes: READ_BYTES,
        reads_per_op: 4,
        consume: "sum".into(),
        page_bytes: 4096,
        direct_flag: rustix::fs::OFlags::DIRECT.bits(),
        direct_alignment: 4096,
        warm_page_tables: 1,
        bounds: PhaseBounds::shared(4, 0),
        handover_path: text(&handover),
        ..Job::default()
    };
    (job, offsets)
}

#[test]
fn one_job_from_hello_to_closed() {
    for method in ["pread", "mmap:random", "pread:random", "mmap:in-place"] {
        let place = Place::new();
        let (job, offsets) = job(&place, method);
        let mut worker = Worker::start();
        worker.expect_hello();
        worker.say(&Request::Open(Box::new(job.clone())));
        assert!(matches!(worker.hear(), Reply::Opened { .. }));
        assert!(matches!(worker.hear(), Reply::Ready { .. }));
        // Any number of samples; each begins where it is asked.
        for first_operation in [0, 4, 6] {
            worker.say(&Request::Go(Go { first_operation, sample_ns: SAMPLE_NS, ..Go::default() }));
            let Reply::Sample(sample) = worker.hear() else { panic!("no sample") };
            let per_thread = 4 * 3 / 4;
            assert_eq!(
                sample.thread_operations,
                [per_thread, per_thread],
                "three quarters without a latency phase"
            );
            assert_eq!(sample.operations, 2 * per_thread);
            assert_eq!(sample.bytes, sample.operations * 4 * READ_BYTES);
            assert!(sample.elapsed_ns > 0);
            let expected = checksum(&offsets, first_operation, per_thread);
            assert_eq!(sample.checksum, format!("{expected:016x}"), "{method} from {first_operation}");
        }
        let wanted = vec![7 * READ_BYTES, 3 * READ_BYTES];
        worker.say(&Request::Verify(Verify { offsets: wanted.clone() }));
        assert_eq!(worker.hear(), Reply::Verified { reads: 2 });
        let handover = File::open(&job.handover_path).expect("open");
        for (index, offset) in wanted.iter().enumerate() {
            let (mut found, mut expected) = (vec![0; READ_BYTES as usize], vec![0; READ_BYTES as usize]);
            handover.read_exact_at(&mut found, index as u64 * READ_BYTES).expect("read");
            content::fill(SEED, *offset, &mut expected);
            assert!(found == expected, "{method}: the bytes at {offset} differ");
        }
        worker.say(&Request::Close);
        assert!(matches!(worker.hear(), Reply::Closed { .. }));
        assert_eq!(worker.end(), (Some(0), String::new()));
    }
}

/// What both threads must add up to: each has its half of the table, gone through in operations of
/// four.
fn checksum(offsets: &[u64], first: u64, operations: u64) -> u64 {
    let consumption = Consumption::new(Consume::Sum, 4096, 4096);
    let mut total = 0u64;
    for half in [0, 32] {
        for operation in first..first + operations {
            let start = half + (operation % 8) as usize * 4;
            for (place, offset) in (start as u64..).zip(&offsets[start..start + 4]) {
                let mut bytes = vec![0; READ_BYTES as usize];
                content::fill(SEED, *offset, &mut bytes);
                total = total.wrapping_add((2 * place + 1).wrapping_mul(consumption.of(&bytes)));
            }
        }
    }
    total
}

/// The job with its table hidden behind the data, for operations of four reads.
fn dependent(job: Job, offsets: &[u64]) -> Job {
    let mut entries = offsets.to_vec();
    for (entries, offsets) in entries.chunks_mut(4).zip(offsets.chunks(4)) {
        for (entry, before) in entries[1..].iter_mut().zip(offsets) {
            *entry ^= content::word(SEED, before / 8);
        }
    }
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    std::fs::write(&job.table_path, bytes).expect("write");
    Job { dependent: 1, ..job }
}

#[test]
fn dependent_reads_need_the_data_that_they_depend_on() {
    for method in ["pread", "mmap:random", "mmap:in-place", "uring:depth=1"] {
        let place = Place::new();
        let (job, offsets) = job(&place, method);
        let job = dependent(job, &offsets);
        let mut worker = Worker::start();
        worker.expect_hello();
        worker.say(&Request::Open(Box::new(job.clone())));
        match worker.hear() {
            Reply::Failed(failure) if failure.unavailable == 1 => {
                println!("skipped: method: {method}: {}", failure.detail);
                continue;
            }
            reply => assert!(matches!(reply, Reply::Opened { .. }), "{method}: {reply:?}"),
        }
        assert!(matches!(worker.hear(), Reply::Ready { .. }));
        for first_operation in [0, 6, 0] {
            worker.say(&Request::Go(Go {
                first_operation,
                sample_ns: SAMPLE_NS,
                latency_ns: SAMPLE_NS,
                ..Go::default()
            }));
            let Reply::Sample(sample) = worker.hear() else { panic!("no sample") };
            let [done, also_done] = sample.thread_operations[..] else { panic!("two threads") };
            assert_eq!((done, done), (also_done, done.clamp(3, 4)), "{method}");
            let expected = checksum(&offsets, first_operation, done);
            assert_eq!(sample.checksum, format!("{expected:016x}"), "{method} from {first_operation}");
        }
        // The first word of the first read of all, and with it where the second one is.
        let changed = content::word(SEED, offsets[0] / 8) ^ (1 << 63);
        let file = File::options().write(true).open(&job.path).expect("open");
        file.write_all_at(&changed.to_le_bytes(), offsets[0]).expect("write");
        worker.say(&Request::Go(Go { sample_ns: SAMPLE_NS, ..Go::default() }));
        let Reply::Failed(failure) = worker.hear() else { panic!("{method}: not failed") };
        assert_eq!((&*failure.call, failure.errno, failure.unavailable), ("read by the table", 0, 0));
        assert_eq!(failure.offset, offsets[1] ^ (1 << 63));
        assert!(failure.detail.contains("past the 262144 bytes"), "{}", failure.detail);
        assert_eq!(worker.end().0, Some(0));
    }
}

#[test]
fn a_method_that_cannot_do_dependent_reads_is_unavailable() {
    for method in ["uring", "mmap:prefetch=4", "mmap:prefetch"] {
        let place = Place::new();
        let (job, offsets) = job(&place, method);
        let mut worker = Worker::start();
        worker.expect_hello();
        worker.say(&Request::Open(Box::new(dependent(job, &offsets))));
        let Reply::Failed(failure) = worker.hear() else { panic!("{method}: not failed") };
        assert_eq!((&*failure.call, failure.unavailable), ("open", 1));
        assert!(failure.detail.contains("cannot do dependent reads"), "{}", failure.detail);
        assert_eq!(worker.end().0, Some(0));
    }
}

#[test]
fn a_file_that_is_not_there_is_a_failed_call() {
    let place = Place::new();
    let (mut job, _) = job(&place, "pread");
    job.path = "/nowhere/data".into();
    let mut worker = Worker::start();
    worker.expect_hello();
    worker.say(&Request::Open(Box::new(job)));
    let Reply::Failed(failure) = worker.hear() else { panic!("not failed") };
    assert_eq!((&*failure.call, failure.errno, failure.unavailable), ("open", 2, 0));
    assert_eq!(failure.path, "/nowhere/data");
    assert!(failure.detail.contains("No such file"), "{}", failure.detail);
    assert_eq!(worker.end().0, Some(0));
}

#[test]
fn a_file_that_became_shorter_is_a_short_read() {
    let place = Place::new();
    let (job, _) = job(&place, "pread");
    let mut worker = Worker::start();
    worker.expect_hello();
    worker.say(&Request::Open(Box::new(job.clone())));
    assert!(matches!(worker.hear(), Reply::Opened { .. }));
    assert!(matches!(worker.hear(), Reply::Ready { .. }));
    File::options().write(true).open(&job.path).expect("open").set_len(READ_BYTES).expect("truncate");
    worker.say(&Request::Go(Go { sample_ns: SAMPLE_NS, ..Go::default() }));
    let Reply::Failed(failure) = worker.hear() else { panic!("not failed") };
    assert_eq!((&*failure.call, failure.errno), ("pread", 0));
    assert!(failure.detail.contains("returned 0 of 4096 bytes"), "{}", failure.detail);
    assert_eq!(worker.end().0, Some(0));
}

#[test]
fn what_is_not_of_the_protocol_ends_the_worker_with_a_sentence() {
    for (line, reason) in [
        ("hello", "not of the protocol"),
        (r#"{"type":"close"}"#, "the first message of a job is not open"),
        (r#"{"type":"open","method":"pread"}"#, "not of the protocol"),
        (r#"{"type":"dance"}"#, "not of the protocol"),
    ] {
        let mut worker = Worker::start();
        worker.expect_hello();
        worker.say_text(line);
        let (code, stderr) = worker.end();
        assert_eq!(code, Some(1), "{line}");
        assert!(stderr.starts_with("pagewise: ") && stderr.contains(reason), "{line}: {stderr}");
    }
}
