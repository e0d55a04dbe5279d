//! Replays that begin with what was in the page cache when their program was recorded.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use pagewise_model::random::mix;
use pagewise_model::trace::{AccessKind, ResidentPages, Trace, TraceAccess};
use pagewise_model::watched::ReadOrder;
use rustix::fs::{Advice, fadvise};
use serde_json::Value;

use crate::replay::{FILE_BYTES, data, replay, store, trace_of, watched_place};
use crate::support::until::my_turn;
use crate::support::{Place, expect_refused, expect_undisturbed, is_root, load, load_trace};

const PAGE: u64 = 4096;
/// Every second one of such blocks is in the page cache.
const BLOCK: u64 = 64 << 10;

/// The pages of every second block.
fn half() -> ResidentPages {
    (0..FILE_BYTES / PAGE).filter(|page| (page * PAGE / BLOCK).is_multiple_of(2)).collect()
}

/// Leave every second block of the file in the page cache.
fn cache_half(path: &str) {
    let file = File::open(path).expect("open");
    file.sync_all().expect("sync");
    fadvise(&file, 0, None, Advice::DontNeed).expect("advise");
    fadvise(&file, 0, None, Advice::Random).expect("advise");
    let mut block = vec![0; BLOCK as usize];
    for offset in (0..FILE_BYTES).step_by(2 * BLOCK as usize) {
        file.read_exact_at(&mut block, offset).expect("read");
    }
}

/// Each page once, without an order.
fn scattered() -> Vec<TraceAccess> {
    let pages = FILE_BYTES / PAGE;
    let mut order: Vec<u64> = (0..pages).collect();
    order.sort_by_key(|page| mix(*page));
    let read = |(time_ns, page): (u64, u64)| TraceAccess {
        time_ns,
        took_ns: None,
        file: 0,
        thread: 0,
        offset: page * PAGE,
        len: PAGE,
        kind: AccessKind::Pread,
    };
    (0..).zip(order).map(read).collect()
}

/// The trace of a program that read each page at random, and found every second block in the cache.
fn half_cached(path: &str) -> Trace {
    let mut trace = trace_of(path, scattered(), FILE_BYTES / 2);
    let file = &mut trace.trailer.files[0];
    (file.said_to_be_read, file.resident_before) = (ReadOrder::Random, Some(FILE_BYTES / 2));
    trace.resident = [(0, half())].into();
    trace
}

/// Device bytes of a method from a state of the cache.
#[track_caller]
fn device_bytes(judged: &Value, method: &str, cache: &str) -> u64 {
    let mut cells = judged["cells"].as_array().expect("cells").iter();
    let cell = cells.find(|cell| cell["method"] == method && cell["cache"] == cache);
    let cell = cell.unwrap_or_else(|| panic!("{method} {cache}: {}", judged["cells"]));
    assert_eq!(cell["status"], "ok", "{cell}");
    cell["evidence"]["device_read_bytes"].as_u64().expect("bytes")
}

#[track_caller]
fn expect_about(found: u64, expected: u64) {
    assert!(found.abs_diff(expected) <= expected / 20, "{found}, and {expected} were expected");
}

#[test]
fn a_replay_reads_what_a_program_read_that_found_half_of_its_file_cached() {
    let Some((_turn, place)) = watched_place() else { return };
    let path = data(&place);
    let program = "import os, random, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
pages = list(range(os.fstat(file).st_size // 4096))
random.Random(1).shuffle(pages)
for page in pages: os.pread(file, 4096, page * 4096)";
    cache_half(&path);
    let as_is = format!("--as-is={path}");
    let recorded = place.run(&["record", &as_is, "-o", "t.trace", "--", "python3", "-c", program, &path]);
    let said = "4 MiB came into the page cache for them; 4 MiB were in the page cache when it began";
    assert!(recorded.expect_code(0).stderr.contains(said));
    let trace = load_trace(&place.file("t.trace"));
    let number = trace.trailer.files.iter().position(|file| file.path == path).expect("it was read");
    assert_eq!(trace.resident, [(number as u32, half())].into());
    let read = trace.trailer.files[number].brought_in_bytes.expect("root sees what comes in");
    let finished = place.run(&replay(&["--rounds=7", "--methods=mmap:random", "--cache=recorded,cold"]));
    expect_undisturbed(&load(&place.file("run.jsonl")));
    let judged = finished.judged();
    for method in ["pread:random", "mmap:random"] {
        expect_about(device_bytes(&judged, method, "recorded"), read);
        expect_about(device_bytes(&judged, method, "cold"), 2 * read);
    }
    let proof = &judged["self_replay"];
    assert_eq!((&proof["stands"], &proof["cache"]), (&true.into(), &"recorded".into()), "{proof}");
    place.expect_no_trace();
}

#[test]
fn a_replay_begins_as_the_recording_did_unless_another_state_is_named() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    store(&half_cached(&path), &place.file("t.trace"));
    let finished = place.run(&replay(&["--rounds=7", "--methods=pread:random"]));
    expect_undisturbed(&load(&place.file("run.jsonl")));
    let judged = finished.judged();
    expect_about(device_bytes(&judged, "pread:random", "recorded"), FILE_BYTES / 2);
    let sentence = judged["self_replay"]["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("both began with 4 MiB of the file in the page cache"), "{sentence}");
    let shown = place.run(&["report", "run.jsonl", "--answer"]).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = "2,048 reads of 8 MiB in all, in their order, as fast as possible";
    assert!(shown.contains(all) && shown.contains("cached as recorded"), "{shown}");
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    let finished = place.run(&replay(&["--rounds=7", "--methods=pread", "--cache=warm,recorded"]));
    expect_undisturbed(&load(&place.file("run.jsonl")));
    let judged = finished.judged();
    assert_eq!(
        (device_bytes(&judged, "pread", "warm"), device_bytes(&judged, "pread:random", "warm")),
        (0, 0)
    );
    place.expect_no_trace();
}

#[test]
fn a_state_that_was_not_recorded_or_cannot_be_is_refused() {
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let whole = half_cached(&path);
    let changed = |change: &dyn Fn(&mut Trace)| {
        let mut trace = whole.clone();
        change(&mut trace);
        store(&trace, &place.file("t.trace"));
    };
    let expect = |more: &[&str], sentence: &str| {
        expect_refused(&place.run(&replay(more)), sentence);
    };
    changed(&|_| ());
    expect(
        &["--cache=cold"],
        "the program was recorded with 4 MiB of its file in the page cache, and only a replay from there",
    );
    expect(&["--cache=warm"], "add recorded to --cache");
    expect(&["--cache=recorded", "--memory=256MiB"], "are not charged to its memory limit");
    expect(&["--cache=as-is"], "use --cache cold, warm or recorded, not as-is");
    expect_refused(
        &place.run(&["run", "replay", "--trace=t.trace"]),
        "begins with an empty page cache, or with a part of the file in it",
    );
    expect_refused(&place.run(&["read", "--cache=recorded"]), "is for a replay of its trace");
    let file = format!("--file={path}");
    // As traces of older versions are.
    changed(&|trace| {
        (trace.trailer.files[0].resident_before, trace.resident) = (None, [].into());
    });
    expect(&[&file, "--cache=recorded,cold"], "record the program again with --as-is");
    changed(&|trace| trace.resident = [].into());
    expect(&[], "does not say which pages of");
    changed(&|trace| trace.resident = [(0, [FILE_BYTES / PAGE].into_iter().collect())].into());
    expect(&[], "t.trace says that page 2048 of");
    changed(&|trace| trace.resident = [(0, [0].into_iter().collect())].into());
    expect(&[], "t.trace says that 4194304 bytes of");
    for (words, sentence) in [
        (&["--as-is=gone"][..], "gone does not exist"),
        (&["--as-is=data.bin", "--memory=64MiB"], "leave --memory or --as-is out"),
        (&["--as-is=data.bin", "--cold=data.bin"], "data.bin is named twice"),
        (&["--as-is=/dev/shm/none"], "does not exist"),
    ] {
        expect_refused(&place.run(&[&["record"], words, &["--", "touch", "executed"]].concat()), sentence);
    }
    assert!(!place.file("executed").exists());
    place.expect_no_trace();
    if !is_root() {
        return;
    }
    // mincore(2) hides the truth from whoever neither owns a file nor may write it.
    let words = ["record", "--as-is=data.bin", "--", "touch", "executed"];
    let Some(mut command) = place.command_as(65_534, &words) else { return };
    let finished = place.finish(command.spawn().expect("start"));
    expect_refused(
        &finished,
        "which pages of data.bin are in the page cache is unknown: mincore reports everything",
    );
}
