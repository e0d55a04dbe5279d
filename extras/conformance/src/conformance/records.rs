//! Jobs of append, fill and update.

use std::borrow::Cow;

use pagewise_model::work::Update;
use pagewise_model::{Append, Bytes, Conditions, Fill, Method, Sync, SyncCall, Work, Workload};
use pagewise_protocol::Hello;

use super::examiner::Examiner;
use super::trial::Trial;

/// Time limit of the records.
const RECORDS_NS: u64 = 20_000_000_000;

/// One shape of writing.
#[derive(Clone)]
struct Writing {
    name: Cow<'static, str>,
    file_bytes: u64,
    record_bytes: u64,
    passes: u64,
    /// Blocks that are read before each that is updated.
    reads_each: u32,
    sync: Sync,
    sync_call: Option<SyncCall>,
    threads: u32,
}

/// A shape for one thread, with the usual sync call.
const fn writing(name: &'static str, file_bytes: u64, record_bytes: u64, passes: u64, sync: Sync) -> Writing {
    Writing {
        name: Cow::Borrowed(name),
        file_bytes,
        record_bytes,
        passes,
        reads_each: 0,
        sync,
        sync_call: None,
        threads: 1,
    }
}

/// Some bytes are left after the last slot, and usual buffers do not hold a whole number of
/// records.
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

/// Shapes of updating: half of the blocks, and others that are read.
fn updating() -> [Writing; 3] {
    let every = Sync::Every(Bytes::kib(64));
    let of_kib = |name, reads_each, sync| Writing { reads_each, ..writing(name, 2 << 20, 4096, 1, sync) };
    [
        of_kib("blocks of 4 KiB, sync every 64 KiB", 0, every),
        of_kib("blocks of 4 KiB, and three that are read before each", 3, Sync::None),
        Writing {
            reads_each: 1,
            ..writing(
                "blocks of 300 B and reads between, sync at the end",
                (512 << 10) + 77,
                300,
                1,
                Sync::End,
            )
        },
    ]
}

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
        Workload::Update => updating().to_vec(),
        _ => FILLING.to_vec(),
    };
    for (index, writing) in all.iter().enumerate() {
        let titled = format!("{subject}: {}", writing.name);
        let work = work(workload, writing);
        if let Some(reason) = method.refuses(&work, examiner.files.alignment) {
            examiner.steps.not_tried(titled, reason);
            continue;
        }
        let conditions =
            Conditions { threads: writing.threads, ..Conditions::of(work, Bytes(writing.file_bytes)) };
        let trial = Trial { sample_ns: RECORDS_NS, ..Trial::of(method, conditions) };
        let refused = match index {
            0 => examiner.examine(&subject, &trial, Some(&writing.name)),
            _ => examiner.examine(&titled, &trial, None),
        };
        if refused && index == 0 {
            return;
        }
    }
}

fn work(workload: Workload, writing: &Writing) -> Work {
    let Writing { sync, sync_call, .. } = *writing;
    let size = Bytes(writing.record_bytes);
    match workload {
        Workload::Update => Work::Update(Update {
            block_bytes: size,
            updates: (writing.file_bytes / writing.record_bytes / 2) as u32,
            reads_per_update: writing.reads_each,
            sync,
            sync_call,
        }),
        Workload::Fill => Work::Fill(Fill { block_bytes: size, sync, sync_call }),
        _ => Work::Append(Append { record_bytes: size, passes: writing.passes as u32, sync, sync_call }),
    }
}
