//! Whole conversations about fixed work.

use std::fs;

use pagewise_model::{checksum, content};
use pagewise_protocol::{Go, SampleReply};

use super::*;
use crate::reader::tests::job_of;

const FILE_BYTES: u64 = 100_000;

/// The worker's replies to a job and the following requests, without its `hello`; or the reason
/// that the conversation ended.
fn conversation(job: &Job, following: Vec<Request>) -> io::Result<Vec<Reply>> {
    let mut requests = String::new();
    for request in std::iter::once(Request::Open(Box::new(job.clone()))).chain(following) {
        requests += &(serde_json::to_string(&request)? + "\n");
    }
    let mut replies = Vec::new();
    converse(requests.as_bytes(), &mut replies)?;
    let replies = String::from_utf8(replies).expect("text");
    let replies: Vec<Reply> =
        replies.lines().map(serde_json::from_str).collect::<Result<_, _>>().expect("replies");
    assert!(matches!(replies[0], Reply::Hello(_)));
    Ok(replies[1..].to_vec())
}

fn go(first_operation: u64) -> Request {
    Request::Go(Go { first_operation, sample_ns: u64::MAX / 4, latency_ns: u64::MAX / 4, ..Go::default() })
}

fn samples(replies: &[Reply]) -> Vec<&SampleReply> {
    let mut samples = Vec::new();
    for reply in replies {
        if let Reply::Sample(sample) = reply {
            samples.push(&**sample);
        }
    }
    samples
}

fn failure(replies: &[Reply]) -> &CallFailure {
    match replies {
        [Reply::Failed(failure)] => failure,
        other => panic!("{other:?}"),
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("folder"))
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).expect("write");
        path.to_str().expect("text").to_string()
    }

    fn scan(&self, bytes: &[u8]) -> Job {
        let (workload, method, consume) = ("scan".into(), "read:buffer=4KiB".into(), "lines".into());
        Job { workload, method, consume, ..job_of(&self.file("data", bytes), bytes.len() as u64) }
    }

    /// Records of 100 B, two passes.
    fn append(&self, sync: &str) -> Job {
        let path = self.file("ring", &vec![0; FILE_BYTES as usize]);
        let source_period = 16_381;
        let mut source = vec![0; source_period as usize + 100];
        content::fill(1, 0, &mut source);
        Job {
            workload: "append".into(),
            method: "pwrite".into(),
            record_bytes: 100,
            records: 2 * FILE_BYTES / 100,
            sync: sync.into(),
            sync_call: if sync == "none" { String::new() } else { "fdatasync".into() },
            source_path: self.file("source", &source),
            source_period,
            ..job_of(&path, FILE_BYTES)
        }
    }
}

#[test]
fn a_scan_is_one_pass_for_each_go() {
    let mut bytes = vec![0; FILE_BYTES as usize];
    content::fill(1, 0, &mut bytes);
    let folder = Folder::new();
    let job = folder.scan(&bytes);
    let replies = conversation(&job, vec![go(0), go(0), Request::Close]).expect("a conversation");
    assert!(matches!(replies[..2], [Reply::Opened { .. }, Reply::Ready { .. }]), "{replies:?}");
    assert!(matches!(replies.last(), Some(Reply::Closed { sync_ns: 0, .. })), "{replies:?}");
    let samples = samples(&replies);
    assert_eq!(samples.len(), 2);
    for sample in samples {
        assert_eq!((sample.operations, sample.bytes), (1, FILE_BYTES));
        assert_eq!(sample.thread_operations, [1]);
        assert_eq!(sample.checksum, format!("{:016x}", checksum::lines(&bytes)));
        assert_eq!((sample.latency_counts.as_slice(), sample.latency_operations), ([1].as_slice(), 0));
        assert_eq!(sample.stalls, 0, "a single pass has nothing to be compared with");
    }
}

#[test]
fn records_are_all_written_and_synced_on_request() {
    let folder = Folder::new();
    for (sync, synced) in [("none", false), ("end", true), ("every:4KiB", false)] {
        let job = folder.append(sync);
        let replies = conversation(&job, vec![go(0), Request::Close]).expect("a conversation");
        let samples = samples(&replies);
        assert_eq!(samples.len(), 1, "{replies:?}");
        assert_eq!((samples[0].operations, samples[0].bytes), (2000, 200_000));
        assert_eq!(samples[0].checksum, "0000000000000000");
        let timed: u64 = samples[0].latency_counts.iter().sum();
        assert!((1..=2000).contains(&timed) && samples[0].latency_operations == 0);
        let Some(Reply::Closed { teardown_ns, sync_ns }) = replies.last() else { panic!("{replies:?}") };
        assert!((*sync_ns > 0) == synced && sync_ns <= teardown_ns, "{sync}: {replies:?}");
        assert!(fs::read(&job.path).expect("ring").iter().any(|byte| *byte != 0));
    }
}

#[test]
fn syncs_within_the_region_are_timed() {
    let folder = Folder::new();
    for (sync, threads) in [("every:64KiB", 1), ("commit", 1), ("commit", 3), ("end", 1)] {
        let job = Job { threads, records: 90, ..folder.append(sync) };
        let replies = conversation(&job, vec![go(0), Request::Close]).expect("a conversation");
        let sample = samples(&replies)[0];
        let syncs: u64 = sample.sync_duration_counts.iter().sum();
        let least = match sync {
            "end" => 0,
            "commit" => 90u64.div_ceil(u64::from(threads)),
            _ => 1,
        };
        let most = if least == 0 { 0 } else { 90 };
        assert!((least..=most).contains(&syncs), "{sync} by {threads}: {syncs}");
        assert_eq!((sample.operations, sample.bytes), (90, 9000), "{sync} by {threads}");
        assert_eq!(sample.thread_operations.len(), threads as usize);
        let timed: u64 = sample.latency_counts.iter().sum();
        assert!(sync != "commit" || timed == 90, "each commit is timed: {timed}");
        assert!(sample.sync_duration_ns.is_sorted() && sample.sync_duration_ns.iter().all(|ns| *ns > 0));
    }
}

#[test]
fn one_thread_scans_and_writes() {
    let folder = Folder::new();
    for job in [folder.scan(&[1; 100]), folder.append("none")] {
        let job = Job { threads: 2, ..job };
        let replies = conversation(&job, vec![go(0), Request::Close]).expect("a conversation");
        let failure = failure(&replies);
        assert_eq!(failure.detail, format!("{} is the work of one thread: 2 were requested", job.workload));
        assert_eq!((failure.errno, failure.unavailable), (0, 0));
    }
}

#[test]
fn a_method_of_other_work_is_refused() {
    let folder = Folder::new();
    for (job, method) in [
        (folder.scan(&[1; 100]), "pwrite"),
        (folder.append("none"), "read"),
        (Job { workload: "sequential-read".into(), ..folder.scan(&[1; 4096]) }, "read"),
    ] {
        let table_path = folder.file("table", &[0; 64]);
        let job = Job { method: method.into(), table_path, table_reads: 8, read_bytes: 8, ..job };
        let job = Job { consume: "touch".into(), ..job };
        let replies = conversation(&job, vec![go(0), Request::Close]).expect("a conversation");
        let failure = failure(&replies);
        assert!(
            failure.detail.contains(&format!("is not a method for {}", job.workload)),
            "{}",
            failure.detail
        );
    }
}

#[test]
fn a_method_that_is_unknown_is_unavailable() {
    let folder = Folder::new();
    for method in ["no-such-method", "mmap:nothing", ""] {
        let job = Job { method: method.to_string(), ..folder.scan(&[1; 100]) };
        let replies = conversation(&job, vec![]).expect("it is reported");
        assert_eq!((failure(&replies).unavailable, failure(&replies).errno), (1, 0), "{method}");
    }
}

#[test]
fn what_is_nonsense_ends_the_conversation() {
    let folder = Folder::new();
    let verify = Request::Verify(Verify { offsets: vec![0] });
    let error = conversation(&folder.scan(&[1; 100]), vec![go(0), verify]).expect_err("verify of a scan");
    assert_eq!(error.to_string(), "not of the protocol: verify of scan");
    for job in [
        Job { workload: "skim".into(), ..folder.scan(&[1; 100]) },
        Job { consume: "words".into(), ..folder.scan(&[1; 100]) },
        folder.append("sometimes"),
    ] {
        assert!(conversation(&job, vec![go(0)]).is_err(), "{job:?}");
    }
}
