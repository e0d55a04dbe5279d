//! Examination of append and fill: the written file is read back and compared byte for byte.

use std::borrow::Cow;

use pagewise_host::{FileKey, ReadBack};
use pagewise_model::random::mix;
use pagewise_model::sample::Written;
use pagewise_model::{Append, Bytes, Conditions, Fill, Method, RecordRing, Sync, SyncCall, Work, Workload};
use pagewise_protocol::claims::Asked;
use pagewise_protocol::{ConversationError, Go, Hello, Job, SampleReply, descriptor_path};

use super::examiner::{Examiner, Part};
use super::meaning::CountersBefore;
use super::test_files::{TemporaryFile, memory_of};

/// Time limit of the records.
const RECORDS_NS: u64 = 20_000_000_000;

/// One shape of writing.
#[derive(Clone)]
struct Writing {
    name: Cow<'static, str>,
    file_bytes: u64,
    record_bytes: u64,
    passes: u64,
    sync: Sync,
    sync_call: Option<SyncCall>,
    threads: u32,
}

/// A shape for one thread, with the usual sync call.
const fn writing(name: &'static str, file_bytes: u64, record_bytes: u64, passes: u64, sync: Sync) -> Writing {
    Writing { name: Cow::Borrowed(name), file_bytes, record_bytes, passes, sync, sync_call: None, threads: 1 }
}

/// Some bytes are left after the last slot, and usual buffers do not hold a whole number of records.
const APPENDING: [Writing; 3] = [
    writing("records of 100 B, twice round a ring that they do not fill", (1 << 20) + 77, 100, 2, Sync::None),
    writing("records of 4 KiB, sync at the end", 1 << 20, 4096, 3, Sync::End),
    writing("records of 300 B, sync every 64 KiB", (256 << 10) + 5, 300, 2, Sync::Every(Bytes::kib(64))),
];

const FILLING: [Writing; 2] = [
    writing("blocks of 64 KiB", 2 << 20, 64 << 10, 1, Sync::None),
    writing(
        "blocks of 12 KiB that do not fill the file, sync at the end",
        (1 << 20) + 5000,
        12 << 10,
        1,
        Sync::End,
    ),
];

/// Threads that commit together, if the worker offers so many.
const COMMITTING: u32 = 3;

/// Shapes of appending with the syncs that the worker offers in hello.
fn offered_syncs(hello: &Hello, method: &Method) -> Vec<Writing> {
    let record_bytes = method.buffer().map_or(4096, |buffer| buffer.0);
    let sync = Sync::Every(Bytes(record_bytes));
    let calls = hello.sync_calls.split(',').filter_map(|call| call.trim().parse::<SyncCall>().ok());
    let by_call = calls.map(|call| Writing {
        name: format!("a sync of each record by {call}").into(),
        sync_call: Some(call),
        ..writing("", 20 * record_bytes + 77, record_bytes, 2, sync)
    });
    let commit = writing("commits of records of 300 B", (10 << 10) + 5, 300, 2, Sync::Commit);
    let threads = COMMITTING.min(hello.commit_threads);
    let alone = (threads > 0).then(|| commit.clone());
    let together = (threads > 1).then(|| Writing {
        name: format!("commits of records of 300 B by {threads} threads").into(),
        threads,
        ..commit
    });
    by_call.chain(alone).chain(together).collect()
}

/// Examine one method.
pub fn examine(examiner: &mut Examiner<'_>, workload: Workload, text: &str, method: &Method) {
    let subject = format!("{workload} {text}");
    let all = match workload {
        Workload::Append => [&APPENDING[..], &offered_syncs(&examiner.hello, method)].concat(),
        _ => FILLING.to_vec(),
    };
    for (index, writing) in all.iter().enumerate() {
        let titled = format!("{subject}: {}", writing.name);
        let work = work(workload, writing);
        if let Some(reason) = method.refuses(&work, examiner.files.alignment()) {
            examiner.steps.not_tried(titled, reason);
            continue;
        }
        let first = index == 0;
        let refused = examiner.examine(if first { subject.clone() } else { titled }, first, |examiner| {
            examine_writing(examiner, workload, writing, text, method)
        });
        if refused && first {
            return;
        }
    }
}

fn work(workload: Workload, writing: &Writing) -> Work {
    let Writing { sync, sync_call, .. } = *writing;
    let size = Bytes(writing.record_bytes);
    match workload {
        Workload::Fill => Work::Fill(Fill { block_bytes: size, sync, sync_call }),
        _ => Work::Append(Append { record_bytes: size, passes: writing.passes as u32, sync, sync_call }),
    }
}

fn examine_writing(
    examiner: &mut Examiner<'_>,
    workload: Workload,
    writing: &Writing,
    text: &str,
    method: &Method,
) -> Part<()> {
    let lack = |error: String| ("a file to write", ConversationError::lack(error));
    let conditions = Conditions {
        threads: writing.threads,
        ..Conditions::of(work(workload, writing), Bytes(writing.file_bytes))
    };
    let ring = conditions.ring().expect("the work is writes");
    let new = examiner.files.new_file(writing.file_bytes).map_err(|error| lack(format!("{error:#}")))?;
    let key = FileKey::of(new.file()).map_err(|error| lack(error.to_string()))?;
    let mut content = vec![0; ring.source_bytes() as usize];
    pagewise_model::content::fill(mix(examiner.files.seed), 0, &mut content);
    let source = memory_of(&content).map_err(|error| lack(error.to_string()))?;
    let job = Job {
        max_thread_operations: ring.records(),
        source_path: descriptor_path(source.file()),
        gap_seed: mix(examiner.files.seed),
        ..examiner.files.job(text, &conditions, descriptor_path(new.file())).synced_by(method, &conditions)
    };
    examiner.open(&job, &key)?;
    let before = CountersBefore::of(examiner.pid()?);
    let reply = examiner.go(Go { sample_ns: RECORDS_NS, ..Go::default() })?;
    let dirty = new.0.dirty_bytes();
    let asked = Asked::of_method(&conditions, method);
    let checked = reply.check(&asked).and_then(|()| no_checksum(&reply.sample));
    examiner.record(&format!("go and sample, {}", writing.name), checked);
    before.record(examiner, &key, method, workload, reply.sample.bytes);
    // While it has the file open: bytes in a buffer of its own are not in the file.
    let written = read_back(&new, &ring, &content, ReadBack::Pread);
    examiner.record("every record is in the file at sample", written);
    examiner.close(&key)?;
    let written = read_back(&new, &ring, &content, ReadBack::Mapping);
    examiner.record("every record is in the file after closed", written);
    let after = new.0.dirty_bytes();
    let synced = match writing.sync {
        Sync::None => Ok(()),
        Sync::End => clean(after, writing, examiner.files.page_bytes, "after closed"),
        Sync::Every(_) | Sync::Commit => clean(dirty, writing, examiner.files.page_bytes, "at sample"),
    };
    examiner.record("syncs", synced);
    Ok(())
}

fn no_checksum(sample: &SampleReply) -> Result<(), String> {
    match sample.checksum()? {
        0 => Ok(()),
        _ => Err(format!("checksum is '{}', of append and fill it is 16 zeros", sample.checksum)),
    }
}

/// Fail unless every record is in its place and nothing else was written.
fn read_back(new: &TemporaryFile, ring: &RecordRing, source: &[u8], way: ReadBack) -> Result<(), String> {
    let mut written = Written::default();
    new.0
        .read_back(ring, source, ring.records(), way, &mut written)
        .map_err(|error| format!("the file cannot be read back: {error}"))?;
    let Written { missing_bytes, first_missing_at, foreign_bytes, expected_bytes, .. } = written;
    if missing_bytes > 0 {
        return Err(format!(
            "{missing_bytes} of {expected_bytes} bytes are not there, the first record that misses some begins at {}: record \
             i lies at i mod floor(file_bytes / record_bytes) * record_bytes, and buffers are empty when sample is sent",
            first_missing_at.unwrap_or(0)
        ));
    }
    if foreign_bytes > 0 {
        return Err(format!(
            "{foreign_bytes} bytes behind the last slot were written, or the file grew: leave them as they are"
        ));
    }
    Ok(())
}

/// Fail if pages of the file are dirty: cachestat(2), Linux 6.5. A file in memory is never dirty, so a missing sync does not
/// show there.
fn clean(dirty: Option<u64>, writing: &Writing, page_bytes: u64, when: &str) -> Result<(), String> {
    match dirty.filter(|dirty| *dirty > page_bytes) {
        None => Ok(()),
        Some(dirty) => Err(format!(
            "{dirty} bytes of the file were still dirty {when}, sync is {}: msync(MS_SYNC) the mapping, or fdatasync",
            writing.sync
        )),
    }
}
