//! Messages, and what is asked of whom.

use super::*;

fn method(text: &str) -> Method {
    text.parse().expect(text)
}

#[test]
fn a_message_is_one_flat_object() {
    let text = serde_json::to_string(&Reply::Opened { setup_ns: 5, ballast_ns: 0 }).expect("json");
    assert_eq!(text, r#"{"type":"opened","setup_ns":5}"#);
    let text = serde_json::to_string(&Request::Close).expect("json");
    assert_eq!(text, r#"{"type":"close"}"#);
    let text = serde_json::to_string(&Reply::Sample(Box::default())).expect("json");
    assert!(text.starts_with(r#"{"type":"sample","operations":0,"#), "{text}");
}

#[test]
fn the_document_names_the_version() {
    let document = include_str!("../../../../workers/PROTOCOL.md");
    let title = document.lines().next().expect("a title");
    assert!(title.ends_with(&format!("version {PROTOCOL_VERSION}")), "{title}");
    assert!(document.contains(&format!("| `protocol` | {PROTOCOL_VERSION} |")));
}

#[test]
fn a_job_is_understood_as_it_was_meant() {
    let reads =
        Reads { reads_per_op: 8, align_bytes: Bytes::kib(4), dependent: true, ..Reads::of(Bytes(64)) };
    // An interval of whole records; of another one the job names as many as fit.
    let (sync, sync_call) = (Sync::Every(Bytes(65_500)), Some(SyncCall::Fsync));
    for work in [
        Work::RandomRead(reads),
        Work::SequentialRead(Reads { align_bytes: Bytes(1), ..reads }),
        Work::Scan(Scan { consume: Consume::Lines }),
        Work::Append(Append { record_bytes: Bytes(100), passes: 3, sync, sync_call }),
        Work::Fill(Fill { block_bytes: Bytes::kib(12), sync: Sync::None, sync_call: None }),
    ] {
        let conditions = Conditions {
            threads: 2,
            descriptor: Descriptor::PerThread,
            ..Conditions::of(work, Bytes::mib(1))
        };
        let job = Job::of(&method("pread"), &conditions, 4096);
        assert_eq!(job.understand(), Ok(Understood { work, per_thread: true }));
        for nonsense in [
            Job { workload: "read".into(), ..job.clone() },
            Job { descriptor: "one".into(), ..job.clone() },
            Job { consume: "all".into(), sync: "always".into(), ..job.clone() },
            Job { consume: "all".into(), sync_call: "sync".into(), ..job },
        ] {
            assert!(nonsense.understand().is_err(), "{nonsense:?}");
        }
    }
}

/// A field by another name is an unknown one, which both sides ignore without a word.
#[test]
fn fields_have_the_names_that_the_documentation_has() {
    let protocol = include_str!("../../../../workers/PROTOCOL.md");
    let documented = |message: &Reply| {
        let fields = serde_json::to_value(message).expect("JSON");
        let fields = fields.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        fields.into_iter().find(|name| name != "type" && !protocol.contains(&format!("`{name}`")))
    };
    assert_eq!(documented(&Reply::Hello(Hello::default())), None);
    let job = serde_json::to_value(Job::default()).expect("JSON");
    let mut fields = job.as_object().expect("an object").keys();
    assert_eq!(fields.find(|name| !protocol.contains(&format!("`{name}`"))), None);
    let text = r#"{"type":"hello","protocol":1,"worker":"w","version":"1","worker_warmup":1,"random-read":"get",
        "sequential-read":"get","sync_calls":"fsync","commit_threads":3}"#;
    let Ok(Reply::Hello(hello)) = serde_json::from_str(text) else { panic!("it is a hello") };
    assert_eq!((hello.worker_warmup, hello.commit_threads, &*hello.sync_calls), (1, 3, "fsync"));
    assert_eq!(hello.methods(Workload::SequentialRead), ["get"]);
}

#[test]
fn syncs_are_named_and_asked_only_of_those_who_offer_them() {
    let job = |text: &str, sync, sync_call| {
        let append = Append { record_bytes: Bytes(100), passes: 1, sync, sync_call };
        Job::of(&method(text), &Conditions::of(Work::Append(append), Bytes::mib(1)), 4096)
    };
    let every = Sync::Every(Bytes::kib(4));
    let call = |text, sync, sync_call| job(text, sync, sync_call).sync_call;
    assert_eq!(call("mmap:buffer=4KiB", every, None), "msync");
    assert_eq!(call("pwrite", Sync::End, None), "fdatasync");
    assert_eq!(call("mmap", Sync::Commit, Some(SyncCall::Fsync)), "fsync");
    assert_eq!(call("mmap", Sync::None, None), "");

    let some = Hello { worker: "w".into(), sync_calls: "fsync, O_DSYNC".into(), ..Hello::default() };
    assert_eq!(some.refuses_sync(&job("pwrite", every, None), &method("pwrite")), None);
    assert_eq!(some.refuses_sync(&job("pwrite", Sync::None, None), &method("pwrite")), None);
    assert_eq!(some.refuses_sync(&job("pwrite", every, Some(SyncCall::ODsync)), &method("pwrite")), None);
    let refused = some.refuses_sync(&job("mmap", every, Some(SyncCall::Fdatasync)), &method("mmap"));
    let text = "the worker 'w' does not sync by fdatasync: it offers fsync, O_DSYNC, msync";
    assert_eq!(refused.as_deref(), Some(text));
    let commit = job("pwrite", Sync::Commit, None);
    assert!(
        some.refuses_sync(&commit, &method("pwrite"))
            .is_some_and(|text| text.ends_with("does not offer sync=commit"))
    );
    let alone = Hello { commit_threads: 1, ..some };
    assert_eq!(alone.refuses_sync(&commit, &method("pwrite")), None);
    let several = alone.refuses_sync(&Job { threads: 2, ..commit }, &method("pwrite"));
    assert!(several.is_some_and(|text| text.starts_with("2 threads: the worker 'w'")));
}

#[test]
fn a_number_that_overflows_is_refused() {
    let text = r#"{"type":"opened","setup_ns":18446744073709551616}"#;
    assert!(serde_json::from_str::<Reply>(text).is_err());
    assert!(serde_json::from_str::<Reply>(r#"{"type":"opened","setup_ns":-1}"#).is_err());
}

#[test]
fn threads_of_a_replay_are_asked_only_of_those_who_offer_them() {
    let job = |workload: Workload, threads| Job {
        workload: workload.name().into(),
        sync: "none".into(),
        threads,
        ..Job::default()
    };
    let one = Hello { worker: "w".into(), ..Hello::default() };
    assert_eq!(one.refuses(&job(Workload::Replay, 1), &method("pread")), None);
    assert_eq!(one.refuses(&job(Workload::RandomRead, 3), &method("pread")), None);
    let text = "the worker 'w' replays a trace by at most 1 thread, and not by 3";
    assert_eq!(one.refuses(&job(Workload::Replay, 3), &method("pread")).as_deref(), Some(text));
    assert_eq!(Hello { replay_threads: 3, ..one }.refuses(&job(Workload::Replay, 3), &method("pread")), None);
}

#[test]
fn files_of_a_replay_are_asked_only_of_those_who_offer_them() {
    let job = |files: u64| Job {
        workload: "replay".into(),
        sync: "none".into(),
        file_bytes_each: (0..files).collect(),
        ..Job::default()
    };
    let one = Hello { worker: "w".into(), ..Hello::default() };
    let text = "the worker 'w' replays the reads of at most 1 file, and not of 2";
    assert_eq!(one.refuses(&job(2), &method("pread")).as_deref(), Some(text));
    let two = Hello { replay_files: 2, ..one.clone() };
    assert_eq!(
        [one.refuses(&job(0), &method("pread")), two.refuses(&job(2), &method("pread"))],
        [None, None]
    );
    assert!(two.refuses(&job(3), &method("pread")).is_some_and(|text| text.contains("at most 2 files")));
}

#[test]
fn a_rate_is_asked_only_of_those_who_offer_it() {
    let job = Job { rate: 100, workload: "random-read".into(), sync: "none".into(), ..Job::default() };
    let one = Hello { worker: "w".into(), ..Hello::default() };
    let text = "the worker 'w' does not do operations at a rate";
    assert_eq!(one.refuses(&job, &method("pread")).as_deref(), Some(text));
    assert_eq!(Hello { rates: 1, ..one }.refuses(&job, &method("pread")), None);
}
