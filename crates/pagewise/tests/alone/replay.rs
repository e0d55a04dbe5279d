//! `pagewise run replay`: a trace by several methods, beside the program that was recorded.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::MutexGuard;

use pagewise_analysis::judge::verdict::FEWEST_ROUNDS;
use pagewise_model::Bytes;
use pagewise_model::plan::FileIdentity;
use pagewise_model::run::Run;
use pagewise_model::trace::{
    self, AccessKind, ProgramCost, Trace, TraceAccess, TraceDigest, TraceFile, TraceHeader, TraceThread,
    TraceTrailer,
};
use serde_json::Value;

use crate::support::until::my_turn;
use crate::support::{
    Finished, Place, expect_refused, expect_undisturbed, is_root, load, load_trace, sees_calls,
};

pub const FILE_BYTES: u64 = 8 << 20;

/// A place for a program that is watched while nothing else is measured; `None`, and said so, if
/// this user cannot watch one.
pub fn watched_place() -> Option<(MutexGuard<'static, ()>, Place)> {
    (is_root() && sees_calls()).then(|| (my_turn(), Place::on(&std::env::temp_dir())))
}

pub fn data(place: &Place) -> String {
    let bytes: Vec<u8> = (0..FILE_BYTES as u32).map(|index| (index >> 7) as u8).collect();
    place.write_synced("data.bin", bytes)
}

/// The whole file in its order, in reads of 100,000 bytes.
pub fn in_order() -> Vec<TraceAccess> {
    (0..FILE_BYTES)
        .step_by(100_000)
        .map(|offset| TraceAccess {
            time_ns: offset,
            took_ns: None,
            file: 0,
            thread: 0,
            offset,
            len: (FILE_BYTES - offset).min(100_000),
            kind: AccessKind::Read,
        })
        .collect()
}

/// A trace of these reads of a file, as if so many bytes had come from the device for them.
pub fn trace_of(path: &str, accesses: Vec<TraceAccess>, device_bytes: u64) -> Trace {
    let found = fs::metadata(path).expect("stat");
    let file = TraceFile {
        path: path.into(),
        identity: Some(FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            file_bytes: Bytes(found.size()),
            modified_ns: found.mtime() * 1_000_000_000 + found.mtime_nsec(),
        }),
        reads: accesses.len() as u64,
        read_bytes: accesses.iter().map(|access| access.len).sum(),
        brought_in_bytes: Some(device_bytes),
        resident_before: Some(0),
        ..TraceFile::default()
    };
    let thread = TraceThread { process: 7, thread: 7, name: "t".into(), accesses: accesses.len() as u64 };
    Trace {
        header: TraceHeader {
            page_bytes: rustix::param::page_size() as u64,
            command: vec!["reader".into()],
            ..TraceHeader::default()
        },
        trailer: TraceTrailer {
            accesses: accesses.len() as u64,
            files: vec![file],
            threads: vec![thread],
            program: ProgramCost { anonymous_bytes: Some(1 << 20), ..ProgramCost::default() },
            ..TraceTrailer::default()
        },
        read_ahead: Vec::new(),
        resident: Default::default(),
        accesses,
    }
}

pub fn store(trace: &Trace, path: &Path) {
    let mut bytes = trace::header(&trace.header).expect("json");
    let resident = trace.resident.iter().map(|(file, pages)| trace::resident_block(*file, pages));
    let mut digest = TraceDigest::default();
    let mut entries = [&trace.accesses[..], &trace.read_ahead].concat();
    entries.sort_by_key(|entry| entry.time_ns);
    for block in [trace::block(&entries)].into_iter().chain(resident) {
        digest.add(&block);
        bytes.extend(block);
    }
    let trailer = TraceTrailer {
        accesses: entries.len() as u64,
        read_ahead: trace.read_ahead.len() as u64,
        digest: digest.key(),
        ..trace.trailer.clone()
    };
    let first = trace::header(&trace.header).expect("json");
    bytes.extend(trace::trailer(&first, &trailer).expect("json"));
    fs::write(path, bytes).expect("write");
}

const REPLAY: [&str; 8] = [
    "run",
    "replay",
    "--trace=t.trace",
    "--evict",
    "--rounds=7",
    "--no-ceilings",
    "--json",
    "--methods=pread,mmap:random,pread:direct",
];

/// The command line of a replay without ceilings.
pub fn replay<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let usual = ["run", "replay", "--trace=t.trace", "--evict", "--no-ceilings", "--json", "--out=run.jsonl"];
    [&usual, more].concat()
}

/// The methods of a run; a method is measured twice where it is its own control.
pub fn methods(judged: &Value) -> Vec<&str> {
    let cells = judged["cells"].as_array().expect("cells").iter();
    cells.filter(|cell| cell["role"] == "measured").filter_map(|cell| cell["method"].as_str()).collect()
}

/// The run of a place that has one.
fn only_run(place: &Place) -> Run {
    let name = place.entries().into_iter().find(|name| name.ends_with(".jsonl")).expect("a run file");
    load(&place.file(&name))
}

/// What was judged. The exit code is 1 where the trace does not stand, and where a cell fell short:
/// a busy machine disturbs samples.
#[track_caller]
pub fn judged(finished: &Finished, stands: bool) -> Value {
    let judged = finished.judged();
    assert_eq!(judged["self_replay"]["stands"], stands, "{}", judged["self_replay"]);
    // A method with the samples of a verdict falls short of nothing, whatever others disturbed.
    let is_short = |cell: &Value| {
        let count = |key: &str| cell[key].as_u64().expect("a number");
        cell["role"] == "measured" && count("samples") < count("rounds_asked").min(FEWEST_ROUNDS as u64)
    };
    let short = judged["cells"].as_array().expect("cells").iter().any(is_short);
    assert_eq!(finished.code(), i32::from(short || !stands), "{}", finished.stderr);
    judged
}

#[test]
fn a_trace_is_replayed_by_each_method_and_stands_for_its_program_or_not() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    store(&trace_of(&path, in_order(), FILE_BYTES), &place.file("t.trace"));
    let finished = place.run(&REPLAY);
    expect_undisturbed(&only_run(&place));
    let judged = judged(&finished, true);
    assert_eq!(methods(&judged), ["pread", "mmap:random", "pread:direct"]);
    let proof = &judged["self_replay"];
    assert_eq!((&proof["stands"], &proof["method"]), (&true.into(), &"pread".into()), "{proof}");
    assert_eq!(proof["program_bytes"], FILE_BYTES);
    let replayed = proof["replayed_bytes"].as_u64().expect("bytes");
    assert!(replayed.abs_diff(FILE_BYTES) <= FILE_BYTES / 20, "{proof}");
    assert_eq!(judged["comparisons"].as_array().map(Vec::len), Some(1));
    for cell in judged["cells"].as_array().expect("cells") {
        assert_eq!(cell["status"], "ok", "{cell}");
    }
    // A program that read twice as much was not this one.
    store(&trace_of(&path, in_order(), 2 * FILE_BYTES), &place.file("t.trace"));
    let finished = place.run(&REPLAY).expect_code(1);
    let judged = finished.judged();
    assert_eq!((methods(&judged), &judged["self_replay"]["stands"]), (vec!["pread"], &false.into()));
    assert_eq!((&judged["comparisons"], &judged["advice"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    let warning = judged["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.starts_with(
            "the trace does not stand for the program, so no other method is shown: its replay by pread"
        ),
        "{warning}"
    );
    // One that may have found the file in memory proves nothing.
    let mut warm = trace_of(&path, in_order(), FILE_BYTES);
    warm.trailer.files[0].resident_before = None;
    store(&warm, &place.file("t.trace"));
    let unproven = [&REPLAY[..], &["--file", &path]].concat();
    expect_refused(&place.run(&unproven), "record again with --cold or --as-is and the name of the file");
    // Nor does one under another limit.
    store(&trace_of(&path, in_order(), FILE_BYTES), &place.file("t.trace"));
    let other_limit = [&REPLAY[..], &["--memory", "64MiB"]].concat();
    expect_refused(
        &place.run(&other_limit),
        "was recorded without a memory limit, and its trace replayed with 64",
    );
    place.expect_no_trace();
}

#[test]
fn what_cat_reads_is_recorded_and_replayed() {
    let Some((_turn, place)) = watched_place() else { return };
    let path = data(&place);
    let cold = format!("--cold={path}");
    place.run(&["record", &cold, "-o", "t.trace", "--", "cat", &path]).expect_code(0);
    let finished = place.run(&REPLAY);
    expect_undisturbed(&only_run(&place));
    let judged = finished.judged();
    let shown = format!("{} {:?}", judged["self_replay"], load_trace(&place.file("t.trace")).trailer);
    assert_eq!(judged["self_replay"]["stands"], true, "{shown}");
    // The method by which cat says that it reads is added.
    assert!((3..=4).contains(&methods(&judged).len()));
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let whole = trace_of(&path, in_order(), FILE_BYTES);
    store(&whole, &place.file("whole.trace"));
    let bytes = fs::read(place.file("whole.trace")).expect("read");
    place.write("torn.trace", &bytes[..bytes.len() - 9]);
    place.write("braces.trace", b"{}\n");
    place.write("empty.trace", b"");
    let changed = |name: &str, change: &dyn Fn(&mut Trace)| {
        let mut trace = whole.clone();
        change(&mut trace);
        store(&trace, &place.file(name));
    };
    changed("lossy.trace", &|trace| {
        (trace.trailer.complete, trace.trailer.lost_records) = (false, 5);
    });
    changed("gone.trace", &|trace| trace.trailer.files[0].identity = None);
    changed("other.trace", &|trace| {
        trace.trailer.files[0].identity.as_mut().expect("it is there").modified_ns -= 1;
    });
    changed("pages.trace", &|trace| trace.header.page_bytes *= 2);
    changed("behind.trace", &|trace| trace.accesses[3].offset = FILE_BYTES - 1);
    changed("endless.trace", &|trace| trace.accesses[3].took_ns = Some(u64::MAX - 1));
    changed("none.trace", &|trace| {
        trace.accesses.clear();
        trace.trailer.accesses = 0;
        (trace.trailer.files[0].reads, trace.trailer.files[0].resident_before) = (0, None);
    });
    changed("unnamed.trace", &|trace| trace.trailer.files[0].resident_before = None);
    // Of another file more was read, and this one was named.
    let beside = |named: TraceFile| {
        move |trace: &mut Trace| {
            trace.trailer.files[0].resident_before = None;
            trace.trailer.files.push(named.clone());
        }
    };
    let mapped = TraceFile { path: "/my.db".into(), resident_before: Some(0), ..TraceFile::default() };
    changed("unread.trace", &beside(mapped.clone()));
    changed("mapped.trace", &beside(TraceFile { mapped_faults: 9, ..mapped.clone() }));
    changed("less.trace", &beside(TraceFile { reads: 1, read_bytes: 1, ..mapped }));
    for (more, sentence) in [
        (&[][..], "a replay needs a trace: write --trace FILE"),
        (
            &["--trace=unnamed.trace", "--evict"],
            "unnamed.trace was recorded without --cold or --as-is, and a replay drops its file",
        ),
        (
            &["--trace=unread.trace", "--evict"],
            "unread.trace was recorded for /my.db, and holds no read of it: --file names another",
        ),
        (&["--trace=mapped.trace", "--evict"], "the program accessed /my.db through a mapping (9 faults)"),
        (&["--trace=less.trace", "--evict"], "/my.db was gone at the end of the recording, or another file"),
        (&["--trace=missing.trace"], "the trace missing.trace cannot be read"),
        (&["--trace=."], "is no trace: it is not a regular file"),
        (&["--trace=torn.trace"], "torn.trace: it is torn: its end is missing"),
        (&["--trace=braces.trace"], "braces.trace: it is no trace of pagewise"),
        (&["--trace=empty.trace"], "empty.trace: it is no trace of pagewise"),
        (&["--trace=lossy.trace"], "lossy.trace is incomplete: 5 records of the recording found no room"),
        (&["--trace=gone.trace"], "was gone at the end of the recording, or another file"),
        (&["--trace=other.trace"], "is not the file that was recorded"),
        (&["--trace=pages.trace"], "and this machine has pages of"),
        (&["--trace=behind.trace"], "which ends at 8388608"),
        (&["--trace=endless.trace"], "endless.trace: it is damaged: a block does not hold what it says"),
        (&["--trace=none.trace"], "none.trace holds no read: the program accessed no file by calls"),
        (
            &["--trace=whole.trace", "--file=torn.trace"],
            "whole.trace holds no read of torn.trace: its files are",
        ),
        (&["--trace=whole.trace"], "--evict"),
        (
            &["--trace=whole.trace", "--evict", "--cache=read-once"],
            "use --cache cold, warm or recorded, not read-once",
        ),
        (
            &["--trace=whole.trace", "--evict", "--span=1MiB"],
            "'span' is for random-read, sequential-read, scan: replay has none",
        ),
        (
            &["--trace=whole.trace", "--evict", "--numa=same"],
            "that its program found there: leave --numa out",
        ),
        (&["--trace=whole.trace", "--evict", "--threads=2"], "a trace of 1 thread is replayed by as many"),
        (&["--trace=whole.trace", "--evict", "--methods=pwrite"], "'pwrite' is not a method for replay"),
        (
            &["--trace=whole.trace", "--evict", "--methods=uring:depth=1024"],
            "uring:depth=1024 needs 100000KiB of buffers for reads of up to 100000B, and may have 64MiB",
        ),
        (&["--trace=whole.trace", "--evict", "--methods=jvm/pread"], "is not a method for replay"),
        (&["--trace=whole.trace", "--evict", "--methods=mmap:prefetch=8"], "does not apply to replay"),
        (&["--trace=whole.trace", "--evict", "--consume=lines"], "lines are counted in scans only"),
    ] {
        expect_refused(&place.run(&[&["run", "replay"], more].concat()), sentence);
    }
    expect_refused(&place.run(&["read", "--trace=whole.trace"]), "--trace is for a replay");
    place.expect_no_trace();
}
