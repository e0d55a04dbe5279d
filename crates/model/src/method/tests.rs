//! Texts that are methods, and the work they suit.

use super::*;
use crate::cell::Conditions;

fn refused(text: &str) -> String {
    text.parse::<Method>().expect_err(text).to_string()
}

#[test]
fn canonical_text_parses_back() {
    for text in [
        "mmap",
        "mmap:random+prefetch",
        "mmap:prefetch=1",
        "mmap:random+prefetch=4096",
        "pread:direct",
        "uring:direct+depth=8",
        "uring:depth=1+fixed",
        "read:buffer=4KiB",
        "pwrite:direct+buffer=64KiB",
        "pread:noreuse+random",
        "mmap:hugepage+populate-write",
        "mmap:pretouch=1MiB",
    ] {
        let method: Method = text.parse().expect(text);
        assert_eq!(method.to_string(), text);
        assert_eq!(serde_json::from_str::<Method>(&format!("\"{text}\"")).expect(text), method);
    }
    assert_eq!("native/pread".parse::<Method>().expect("native").to_string(), "pread");
    assert_eq!("uring".parse::<Method>().expect("uring").to_string(), "uring:depth=32");
    assert_eq!("read:direct".parse::<Method>().expect("read").to_string(), "read:direct+buffer=64KiB");
}

#[test]
fn a_buffer_has_a_size() {
    assert_eq!(
        refused("mmap:buffer"),
        "invalid option 'buffer': expected buffer=1B to buffer=1GiB, as in buffer=64KiB"
    );
    assert!(
        refused("read:buffer=0B")
            .starts_with("invalid option 'buffer=0B': expected buffer=1B to buffer=1GiB")
    );
    assert!(refused("mmap:buffer=4096").contains("write a unit"));
    assert!(refused("pwrite:buffer=2GiB").contains("expected buffer=1B to buffer=1GiB"));
    assert!(refused("mmap:pretouch=").contains("as in pretouch=64KiB"));
}

#[test]
fn a_method_suits_some_work() {
    use crate::work::Workload::{self, Append, Fill, RandomRead, Replay, Scan, SequentialRead, Update};
    let unsuited = |text: &str, workload: Workload| {
        text.parse::<Method>().expect(text).unsuited(workload).unwrap_or_default()
    };
    for (text, workloads) in [
        ("mmap", Workload::ALL),
        ("mmap:in-place", &[RandomRead, SequentialRead, Scan, Replay]),
        ("mmap:prefetch=8", &[RandomRead, SequentialRead]),
        ("pread", &[RandomRead, SequentialRead, Scan, Replay]),
        ("read", &[Scan]),
        ("mmap:touch+willneed", &[Append, Fill, Update]),
        ("mmap:buffer=4KiB", &[Scan, Append, Fill]),
        ("pwrite:direct+buffer=64KiB", &[Append, Fill]),
        ("pwrite:direct", &[Append, Fill, Update]),
        ("uring", Workload::ALL),
    ] {
        for workload in Workload::ALL {
            assert_eq!(
                unsuited(text, *workload).is_empty(),
                workloads.contains(workload),
                "{text} {workload}"
            );
        }
    }
    for text in ["other/pwrite", "other/put"] {
        let alone = format!("'{text}' is not a method for update, which pagewise's own workers alone do");
        assert_eq!(unsuited(text, Update), alone);
    }
    for text in ["go/pwrite", "go/mmap:random", "python/pwrite", "jvm/filechannel:heap-buffer"] {
        assert_eq!(unsuited(text, Update), "");
    }
    assert_eq!(
        unsuited("go/write", Update),
        "'go/write' is not a method for update, which writes: its methods are mmap, pwrite"
    );
    assert_eq!(
        unsuited("pwrite", RandomRead),
        "'pwrite' is not a method for random-read, which reads: its methods are mmap, pread, uring"
    );
    assert_eq!(
        unsuited("uring:fixed", Append),
        "'fixed' in 'uring:fixed+depth=32' does not apply to append: there uring takes prealloc, depth=N, direct, buffer=SIZE"
    );
}

const MACHINE: Alignment = Alignment { direct_bytes: 4096, page_bytes: 4096 };

#[test]
fn pieces_that_would_change_the_checksum_are_refused() {
    use crate::checksum::Consume;
    use crate::work::{Scan, Work};
    let refusal = |text: &str, consume| {
        let work = Work::Scan(Scan { consume });
        text.parse::<Method>().expect(text).refuses(&work, MACHINE).unwrap_or_default()
    };
    for (text, consume, reason) in [
        ("read:buffer=100B", Consume::Touch, "not a multiple of 4KiB, and one word of each page is touched"),
        ("mmap:buffer=6KiB", Consume::Touch, "not a multiple of 4KiB, and one word of each page is touched"),
        ("pread:buffer=100B", Consume::Sum, "not a multiple of 8B, and words of 8 bytes are added"),
        (
            "read:direct+buffer=5000B",
            Consume::Lines,
            "not a multiple of the 4KiB that O_DIRECT requires here",
        ),
        ("uring:direct+buffer=6KiB", Consume::Sum, "not a multiple of the 4KiB that O_DIRECT requires here"),
        ("read:buffer=100B", Consume::Lines, ""),
        ("read", Consume::Touch, ""),
    ] {
        let phrase = refusal(text, consume);
        assert!(phrase.ends_with(reason) && phrase.is_empty() == reason.is_empty(), "{text}: {phrase}");
    }
}

#[test]
fn some_work_does_not_fit_a_method() {
    use crate::sync::Sync;
    use crate::work::{Append, Work};
    let refusal = |text: &str, record: u64| {
        let work = Work::Append(Append {
            record_bytes: Bytes(record),
            passes: 1,
            sync: Sync::None,
            sync_call: None,
        });
        text.parse::<Method>().expect(text).refuses(&work, MACHINE).unwrap_or_default()
    };
    assert_eq!(refusal("mmap:buffer=1KiB", 1024), "");
    assert_eq!(
        refusal("mmap:buffer=1KiB", 2048),
        "a record of 2KiB does not fit into the buffer of mmap:buffer=1KiB"
    );
    assert!(refusal("pwrite:direct+buffer=1KiB", 10).contains("not a multiple of the 4KiB"));
    assert!(refusal("pwrite:direct", 10).contains("write pwrite:direct+buffer=64KiB"));
    assert!(refusal("uring:depth=1024+buffer=2MiB", 10).contains("would take 2GiB"));
    assert!(refusal("mmap:buffer=4KiB+pretouch=1MiB", 10).contains("leave one out"));
}

#[test]
fn nonsense_is_refused_with_what_is_accepted() {
    assert_eq!(
        refused("mmap:direct"),
        "unknown option 'direct' of 'mmap': it takes random, sequential, willneed, populate, populate-read, \
         hugepage, prefetch, prefetch=N, in-place, buffer=SIZE, prealloc, populate-write, touch, pretouch=SIZE, lock"
    );
    assert_eq!(
        refused("sendfile"),
        "unknown method 'sendfile': the methods are mmap, pread, read, pwrite, write, uring"
    );
    assert_eq!(
        refused("anonymous"),
        "unknown method 'anonymous': the methods are mmap, pread, read, pwrite, write, uring"
    );
    assert_eq!(
        refused("jvm/sendfile"),
        "unknown method 'sendfile': the methods of jvm are mmap, mapped-byte-buffer, pread, filechannel, \
         buffered-reader"
    );
    assert_eq!(
        refused("jvm/filechannel"),
        "incomplete method 'jvm/filechannel': write jvm/filechannel:direct-buffer or jvm/filechannel:heap-buffer"
    );
    assert!(
        refused("jvm/filechannel:buffer=4KiB").contains("write jvm/filechannel:buffer=4KiB+direct-buffer or")
    );
    assert!(refused("jvm/filechannel:direct-buffer+heap-buffer").contains("conflicting options"));
    assert!(refused("go/pread:direct").contains("unknown option 'direct' of 'pread': it takes none"));
    assert!(refused("jvm/mmap:prefetch=4").contains("unknown option \'prefetch=4\' of"));
    assert!(refused("My/mmap").contains("invalid worker name 'My' in 'My/mmap'"));
    assert!(refused("mine/").contains("missing"));
    assert!(refused("mine/get it").contains("invalid method"));
    assert_eq!(refused("uring:depth=0"), "invalid option 'depth=0': expected depth=1 to depth=1024");
    assert_eq!(refused("uring:depth"), "invalid option 'depth': expected depth=1 to depth=1024");
    assert_eq!(refused("pread:random=3"), refused("pread:random=3"));
    for text in ["prefetch=0", "prefetch=4097", "prefetch=", "prefetch=-1", "prefetch=many"] {
        assert_eq!(
            refused(&format!("mmap:{text}")),
            format!("invalid option '{text}': expected prefetch=1 to prefetch=4096")
        );
    }
    assert!(refused("mmap:prefetch+prefetch=4").contains("repeated option 'prefetch'"));
    assert!(refused("pread:prefetch=4").contains("unknown option \'prefetch=4\' of"));
    assert!(refused("pread:direct+random").contains("conflicting options"));
    assert!(refused("mmap:random+random").contains("repeated option"));
    assert!(refused("mmap:").contains("unknown option '' of 'mmap'"));
    assert!(refused("").contains("missing"));
}

#[test]
fn workers_have_words_of_their_own() {
    for (text, access, word) in [
        ("jvm/filechannel:heap-buffer", Access::Pread, "filechannel"),
        ("jvm/filechannel:direct-buffer+buffer=4KiB", Access::Pread, "filechannel"),
        ("jvm/mmap:random+prefetch", Access::Mmap, "mmap"),
        ("jvm/mapped-byte-buffer", Access::Mmap, "mapped-byte-buffer"),
        ("go/bufio:buffer=64KiB", Access::Read, "bufio"),
        ("go/write", Access::Write, "write"),
        ("go/pwrite:buffer=4KiB", Access::Pwrite, "pwrite"),
        ("python/numpy-memmap", Access::Mmap, "numpy-memmap"),
        ("python/buffered-writer:buffer=8KiB", Access::Write, "buffered-writer"),
        // A known text has its usual meaning; another one is unknown.
        ("mine/pread:direct", Access::Pread, "pread"),
        ("mine/lsm-get:depth=3", Access::Unknown, "lsm-get:depth=3"),
        ("mine/read", Access::Read, "read"),
        ("mine/uring", Access::Unknown, "uring"),
    ] {
        let method: Method = text.parse().expect(text);
        assert_eq!((method.to_string().as_str(), method.access(), method.word()), (text, access, word));
        assert_eq!(format!("{}/{}", method.worker(), method.spec()), text);
    }
    assert_eq!("go/bufio".parse::<Method>().expect("bufio").to_string(), "go/bufio:buffer=64KiB");
    assert!("mine/pread:direct".parse::<Method>().expect("known").is_direct());
    assert_eq!("mine/read:buffer=4KiB".parse::<Method>().map(|method| method.access()), Ok(Access::Read));
}

#[test]
fn a_stream_is_written_where_the_workload_writes() {
    use crate::work::Workload::{Append, Fill, RandomRead, Scan};
    let unsuited =
        |text: &str, workload| text.parse::<Method>().expect(text).unsuited(workload).unwrap_or_default();
    assert_eq!((unsuited("go/bufio", Scan), unsuited("go/bufio", Append)), (String::new(), String::new()));
    assert!(unsuited("go/bufio", Fill).contains("its methods are mmap"));
    assert_eq!(unsuited("jvm/filechannel:heap-buffer+buffer=4KiB", Append), "");
    assert!(unsuited("jvm/filechannel:heap-buffer+buffer=4KiB", RandomRead).contains("does not apply"));
    assert_eq!(unsuited("python/mmap", Append), "");
    assert!(
        unsuited("python/pread", Append).contains("its methods are mmap, pwrite, write, buffered-writer")
    );
    assert!(unsuited("jvm/buffered-reader", RandomRead).contains("mmap, pread, filechannel"));
    assert_eq!(unsuited("mine/anything", Append), "", "its worker will say");
}

#[test]
fn what_needs_the_next_offset_early_cannot_depend_on_data() {
    let refusal = |text: &str, read_bytes| {
        text.parse::<Method>().expect(text).refuses_dependent(Bytes(read_bytes)).unwrap_or("")
    };
    for text in ["mmap", "mmap:random+willneed", "mmap:in-place", "pread:direct", "uring:fixed+depth=1"] {
        assert_eq!((refusal(text, 8), refusal(text, 16384)), ("", ""), "{text}");
        assert!(refusal(text, 7).contains("shorter"), "{text}");
    }
    assert_eq!(Method::anonymous().refuses_dependent(Bytes(4096)), None);
    assert!(refusal("uring", 4096).contains("depth=1"));
    assert!(refusal("uring:depth=2", 4096).contains("depth=1"));
    for text in ["mmap:prefetch", "mmap:random+prefetch=1"] {
        assert!(refusal(text, 4096).contains("nothing to prefetch"), "{text}");
    }
}

#[test]
fn kernels_are_compared_by_number() {
    use options::Since::{Always, Ignored, Refused};
    for (release, version, acts) in [
        ("6.1.0-31-amd64", "6.3", false),
        ("6.18.5", "6.3", true),
        ("6.3.0", "6.3", true),
        ("5.19", "6.3", false),
        ("10.0", "6.14", true),
        ("", "6.3", false),
    ] {
        assert_eq!(Ignored(version).acts_on(release), acts, "{release} and {version}");
        assert!(Refused(version).acts_on(release) && Always.acts_on(release), "the kernel says it");
    }
}

#[test]
fn an_interval_of_syncs_is_of_whole_records_and_no_buffer_is_larger() {
    use crate::sync::Sync;
    use crate::work::{Append, Work};
    let work = |record: u64, every: u64| {
        let sync = Sync::Every(Bytes(every));
        Work::Append(Append { record_bytes: Bytes(record), passes: 1, sync, sync_call: None })
    };
    let rounded = |record: u64, every: u64| work(record, every).writes().expect("writes").sync_of_records();
    assert_eq!(rounded(200, 65_536), Sync::Every(Bytes(65_400)));
    assert_eq!(rounded(200, 65_400), Sync::Every(Bytes(65_400)));
    assert_eq!(rounded(200, 100), Sync::Every(Bytes(200)), "a record at least");
    let excluded = |method: &str| {
        let method: Method = method.parse().expect(method);
        method.excluded_from(&Conditions::of(work(200, 65_536), Bytes::mib(1)), MACHINE).unwrap_or_default()
    };
    for taken in ["pwrite", "pwrite:buffer=64KiB", "mmap", "uring:depth=8+buffer=2KiB", "uring:depth=32"] {
        assert_eq!(excluded(taken), "", "{taken}");
    }
    let synced = |method: &str, every: u64| {
        let method: Method = method.parse().expect(method);
        match method.sync_of(&work(200, every).writes().expect("writes")) {
            Sync::Every(bytes) => (
                bytes.0,
                method.excluded_from(&Conditions::of(work(200, every), Bytes::mib(1)), MACHINE).is_none(),
            ),
            other => panic!("{other}"),
        }
    };
    // 327 records fit into 64 KiB, 5,242 into the interval: 16 buffers are 10 records less.
    assert_eq!(synced("pwrite:buffer=64KiB", 1 << 20), (16 * 65_400, true));
    assert_eq!(synced("pwrite:buffer=1MiB", 1 << 20), (1_048_400, true));
    assert_eq!(synced("pwrite:direct+buffer=1MiB", 1 << 20), (1 << 20, true), "0.02 % more");
    assert_eq!(synced("pwrite:buffer=1000KiB", 1 << 20), (1_024_000, false), "2.3 % less");
    assert_eq!(synced("pwrite:buffer=600KiB", 1 << 20), (2 * 614_400, false));
    assert_eq!(
        excluded("pwrite:buffer=40KiB"),
        "pwrite:buffer=40KiB writes 40800B at a time and could sync every 81600B, and a sync is due every 65400B: write a buffer \
         that fits several times into the interval"
    );
    assert_eq!(synced("pwrite:buffer=4KiB", 65_536), (16 * 4000, false), "2.1 % less");
    assert_eq!(excluded("uring:depth=328"), "", "a record more than the interval");
    assert!(excluded("uring:depth=512").contains("100KiB under way"));
    assert_eq!(
        excluded("pwrite:buffer=1MiB"),
        "pwrite:buffer=1MiB has 1048400B under way at once, and a sync is due every 65400B: write a smaller buffer or depth, \
         or a longer interval"
    );
    assert!(excluded("uring:depth=8+buffer=64KiB").contains("523200B under way"));
}

#[test]
fn a_method_that_writes_to_a_mapping_syncs_by_msync() {
    let usual = |text: &str| text.parse::<Method>().expect("a method").usual_sync().name();
    let found = ["mmap", "mine/mmap:arena", "mine/mmap", "pwrite", "mine/mmapped", "mine/arena"].map(usual);
    assert_eq!(found, ["msync", "msync", "msync", "fdatasync", "fdatasync", "fdatasync"]);
}
