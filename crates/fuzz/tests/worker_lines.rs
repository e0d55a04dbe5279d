//! What a worker may say, and what its words become in evidence that is judged.

use pagewise_analysis::{Beating, Context, failures};
use pagewise_fuzz::run_file::JsonRunFile;
use pagewise_fuzz::{Campaign, corpus, document, lines, numbers};
use pagewise_model::random::Random;
use pagewise_model::run::Run;
use pagewise_model::{CacheState, Cell, FailureKind, Outcome, Sample, Workload};
use pagewise_protocol::{
    CallFailure, Heartbeats, Hello, Job, PROTOCOL_VERSION, Reply, Request, SampleReply, Verify,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const DATA_BYTES: u64 = 32 << 20;

/// One message of each kind, as JSON.
fn conversation() -> Vec<Value> {
    let beats = Heartbeats {
        heartbeat_kinds: "thread,safepoint".into(),
        heartbeat_buckets: vec![2, 1],
        heartbeat_ns: vec![70_000, 140_000, 9_000_000],
        heartbeat_counts: vec![30, 2, 1],
    };
    let sample = SampleReply {
        operations: 89,
        elapsed_ns: 2_052_339,
        latency_operations: 3,
        latency_elapsed_ns: 90_000,
        thread_operations: vec![46, 46],
        bytes: 92 << 18,
        checksum: "79b75a03c4f5d1e9".into(),
        latency_ns: vec![23_000, 31_000],
        latency_counts: vec![1, 2],
        sync_duration_ns: vec![1_100_000],
        sync_duration_counts: vec![3],
        due_operations: 90,
        late_starts: 1,
        gap_wait_ns: 1,
        cut_short: 1,
        stalls: 1,
        stall_longest_ns: 1_200_000,
        beats: beats.clone(),
    };
    let replies = [
        Reply::Hello(Hello {
            protocol: PROTOCOL_VERSION,
            worker: "mine".into(),
            version: "1.0".into(),
            worker_warmup: 1,
            offers: [
                (Workload::RandomRead, "mmap,mmap:random+prefetch=16,pread:direct,get".into()),
                (Workload::Append, "mmap,pwrite:buffer=4KiB".into()),
            ]
            .into(),

            ..Hello::default()
        }),
        Reply::Opened { setup_ns: 81_531, ballast_ns: 9 },
        Reply::Ready { warmup_ns: 410 },
        Reply::Idled(beats),
        Reply::Sample(Box::new(sample)),
        Reply::Verified { reads: 8 },
        Reply::Closed { teardown_ns: 184_043, sync_ns: 5 },
        Reply::Failed(CallFailure {
            call: "preadv2".into(),
            errno: 95,
            path: "/data/file".into(),
            offset: 4096,
            detail: "the filesystem refuses it".into(),
            unavailable: 1,
        }),
    ];
    let job = Job {
        method: "mmap:random".into(),
        workload: "random-read".into(),
        path: "/proc/7/fd/3".into(),
        file_bytes: 1 << 20,
        span_bytes: 1 << 20,
        threads: 2,
        table_reads: 512,
        read_bytes: 4096,
        reads_per_op: 1,
        ..Job::default()
    };
    let requests =
        [Request::Open(Box::new(job)), Request::Verify(Verify { offsets: vec![0, 4096] }), Request::Close];
    let replies = replies.iter().map(|reply| serde_json::to_value(reply).expect("json"));
    replies.chain(requests.iter().map(|request| serde_json::to_value(request).expect("json"))).collect()
}

/// What is understood is said again in words that are understood alike.
#[track_caller]
fn check<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(text: &str) -> Option<T> {
    let message: T = serde_json::from_str(text).ok()?;
    let again = serde_json::to_string(&message).expect("it has string keys only");
    assert_eq!(serde_json::from_str::<T>(&again).ok().as_ref(), Some(&message), "{again}");
    Some(message)
}

#[test]
fn changed_lines_are_understood_or_refused() {
    let corpus = conversation();
    let campaign = Campaign {
        test: "changed_lines_are_understood_or_refused",
        target: "worker-lines",
        data_bytes: DATA_BYTES,
    };
    campaign.run(|case| {
        let random = &mut case.random;
        let mut draw = || &corpus[random.below(corpus.len() as u64) as usize];
        let (value, donor) = (draw(), draw());
        let text = match random.below(4) {
            0 => lines::change_often(random, &value.to_string(), &donor.to_string()),
            _ => {
                let mut changed = value.clone();
                for _ in 0..1 + random.below(4) {
                    let operation = document::DocumentChange::draw(random);
                    document::change(random, &mut changed, donor, operation);
                }
                document::to_text(&changed)
            }
        };
        case.input(text.as_bytes());
        check::<Request>(&text);
        match check::<Reply>(&text) {
            Some(Reply::Hello(hello)) => {
                for workload in Workload::ALL {
                    assert!(hello.methods(*workload).iter().all(|method| !method.is_empty()));
                }
            }
            Some(Reply::Idled(beats)) => check_beats(&beats),
            Some(Reply::Sample(sample)) => check_beats(&sample.beats),
            _ => {}
        }
    });
}

/// Histograms by kind hold all the buckets that were reported, or are refused.
#[track_caller]
fn check_beats(beats: &Heartbeats) {
    match beats.by_kind() {
        Ok(kinds) => {
            let buckets: usize = kinds.iter().map(|(_, delays)| delays.ns.len()).sum();
            assert_eq!(buckets, beats.heartbeat_ns.len());
            assert!(kinds.iter().all(|(_, delays)| delays.ns.len() == delays.counts.len()));
        }
        Err(reason) => assert!(!reason.contains('\n')),
    }
}

/// Cells, and the samples of them that were taken, as JSON.
fn samples() -> Vec<(Cell, Value)> {
    let mut all = Vec::new();
    for (_, text) in corpus::files("run-files") {
        let run = Run::parse(&text).expect("a run file of the corpus");
        let records = JsonRunFile::new(&text);
        for record in records.records().iter().filter(|record| record["kind"] == "sample") {
            let mut cells = run.header.plan.cells.iter();
            let Some(cell) = cells.find(|cell| record["cell"] == cell.id().as_str()) else { continue };
            all.push((cell.clone(), record.clone()));
        }
    }
    all
}

fn context(random: &mut Random) -> Context {
    Context {
        page_bytes: 4096 << (random.below(3) * 2),
        cpus: 1 + (random.next_u64() >> (33 + random.below(31))) as u32,
        answer_ns: numbers::edge(random, 1_000_000),
        forgives_answers: random.below(2) == 0,
        sparse_or_compressed_bytes: random.below(2) == 0,
        memory_backed: random.below(4) == 0,
        writes_through: random.below(2) == 0,
        readahead_bytes: (random.below(2) == 0).then(|| numbers::edge(random, 131_072)),
        beating: (random.below(2) == 0).then(|| Beating {
            interval_ns: 1 + numbers::edge(random, 1_000_000) / 2,
            idle_ns: numbers::edge(random, 2_000_000),
        }),
    }
}

#[test]
fn changed_evidence_is_judged() {
    let corpus = samples();
    let campaign =
        Campaign { test: "changed_evidence_is_judged", target: "judged-samples", data_bytes: DATA_BYTES };
    campaign.run(|case| {
        let random = &mut case.random;
        let draw = |random: &mut Random| &corpus[random.below(corpus.len() as u64) as usize];
        let ((cell, record), (other, donor)) = (draw(random), draw(random));
        let cell = if random.below(8) == 0 { other } else { cell };
        let mut record = record.clone();
        for _ in 0..1 + random.below(5) {
            let operation = document::DocumentChange::draw(random);
            document::change(random, &mut record, donor, operation);
        }
        let text = document::to_text(&record);
        case.input(text.as_bytes());
        let Ok(sample) = serde_json::from_str::<Sample>(&text) else { return };
        let Outcome::Taken { measurement, evidence, .. } = &sample.outcome else { return };
        let found = failures(cell, measurement, evidence, &context(&mut case.random));
        assert!(found.iter().all(|failure| !failure.detail.is_empty()), "{found:?}");
        // What no evidence can outweigh.
        let has = |kind: FailureKind| found.iter().any(|failure| failure.kind == kind);
        let reads = cell.conditions.workload().is_reading();
        if reads && evidence.expected_checksum.is_some_and(|expected| expected != evidence.checksum) {
            assert!(has(FailureKind::WrongChecksum), "{found:?}");
        }
        if evidence.differing_reads > 0 && cell.conditions.reads().is_some() {
            assert!(has(FailureKind::WrongBytes), "{found:?}");
        }
        if measurement.operations == 0 || measurement.measured_ns == 0 {
            assert!(has(FailureKind::InconsistentCounts), "{found:?}");
        }
        if measurement.measured_ns > evidence.wall_ns && cell.conditions.cache != CacheState::ColdStart {
            assert!(has(FailureKind::FalseTime), "{found:?}");
        }
        if evidence.mappings_left.is_some_and(|left| left > 0) {
            assert!(has(FailureKind::NotReleased), "{found:?}");
        }
    });
}
