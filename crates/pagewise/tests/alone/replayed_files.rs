//! Replays of programs that read several files: the reads of all of them in one order, and what is
//! not the files that were recorded is refused or noticed.

use std::fs;
use std::path::Path;

use pagewise_model::FailureKind::WrongChecksum;
use pagewise_model::trace::{AccessKind, ResidentPages, Trace, TraceAccess};
use pagewise_model::watched::ReadOrder;
use pagewise_model::{Evidence, Outcome, Sample};

use crate::replay::{methods, store, trace_of, watched_place};
use crate::support::until::my_turn;
use crate::support::{
    PAGEWISE, Place, cheating_replay_worker, expect_refused, expect_undisturbed, kinds, load, load_trace,
    of_methods,
};

/// Sizes: whole pages, a part of a page behind whole ones, one byte, a part of a page.
const SIZES: [u64; 4] = [4 << 20, (1 << 20) + 777, 1, 4095];
const READ: u64 = 3000;

/// Files whose bytes are each of their own.
fn files(place: &Place, sizes: &[u64]) -> Vec<String> {
    let written = |(number, size): (u64, &u64)| {
        let bytes: Vec<u8> = (0..*size).map(|at| (at >> 6) as u8 ^ (number * 37 + 1) as u8).collect();
        place.write_synced(&format!("data{number}.bin"), bytes)
    };
    (0..).zip(sizes).map(written).collect()
}

/// Each file once, by turns, as if all of it had come from the device.
fn trace_of_all(paths: &[String], sizes: &[u64]) -> Trace {
    let mut accesses = Vec::new();
    for read in 0..sizes.iter().max().expect("a file").div_ceil(READ) {
        for (file, size) in (0..).zip(sizes) {
            let offset = read * READ;
            if offset < *size {
                let (len, time_ns) = ((size - offset).min(READ), accesses.len() as u64 * 1000);
                let kind = AccessKind::Pread;
                accesses.push(TraceAccess { time_ns, took_ns: None, file, thread: 0, offset, len, kind });
            }
        }
    }
    let mut all: Option<Trace> = None;
    for (number, (path, size)) in (0..).zip(paths.iter().zip(sizes)) {
        let of_file: Vec<_> = accesses.iter().filter(|access| access.file == number).copied().collect();
        let one = trace_of(path, of_file, size.next_multiple_of(4096));
        match &mut all {
            None => all = Some(one),
            Some(all) => all.trailer.files.extend(one.trailer.files),
        }
    }
    let mut all = all.expect("a file");
    (all.trailer.accesses, all.trailer.threads[0].accesses) = (accesses.len() as u64, accesses.len() as u64);
    all.accesses = accesses;
    all
}

fn replay<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let usual = ["run", "replay", "--trace=t.trace", "--evict", "--json", "--out=run.jsonl"];
    [&usual, more].concat()
}

/// The evidence of a sample that was taken.
#[track_caller]
fn evidence(sample: &Sample) -> &Evidence {
    match &sample.outcome {
        Outcome::Taken { evidence, .. } => evidence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reads_of_all_files_are_replayed_by_each_method() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let paths = files(&place, &SIZES);
    store(&trace_of_all(&paths, &SIZES), &place.file("t.trace"));
    let all_bytes: u64 = SIZES.iter().sum();
    let words = ["--rounds=7", "--methods=pread,mmap,mmap:random,pread:direct,uring:depth=4"];
    let finished = place.run(&replay(&words));
    let run = load(&place.file("run.jsonl"));
    for sample in of_methods(&run) {
        let seen = evidence(sample);
        assert_eq!(Some(seen.checksum), seen.expected_checksum, "{}", sample.cell);
        assert_eq!(seen.requested_bytes, all_bytes);
        let is_mapped = sample.cell.ends_with("mmap") || sample.cell.ends_with("mmap:random");
        assert_eq!(seen.mapped_files, Some(if is_mapped { 4 } else { 0 }), "{}", sample.cell);
        if !sample.cell.ends_with("direct") {
            assert_eq!(seen.resident_before_bytes, Some(0), "{}", sample.cell);
            assert_eq!(seen.resident_after_bytes, Some(all_bytes), "{}", sample.cell);
        }
        assert_eq!(seen.mappings_left, Some(0), "{}", sample.cell);
    }
    expect_undisturbed(&run);
    let judged = finished.judged();
    let proof = &judged["self_replay"];
    assert_eq!((&proof["stands"], &proof["method"]), (&true.into(), &"pread".into()), "{proof}");
    let program: u64 = SIZES.iter().map(|size| size.next_multiple_of(4096)).sum();
    assert_eq!(proof["program_bytes"], program);
    assert_eq!(methods(&judged).len(), 5);
    // One of them alone.
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    let finished = place.run(&replay(&["--trial-rounds=1", "--methods=pread", "--file", &paths[1]]));
    assert!(finished.stderr.contains("are of other files, which are not replayed"), "{}", finished.stderr);
    for sample in of_methods(&load(&place.file("run.jsonl"))) {
        assert_eq!((evidence(sample).requested_bytes, evidence(sample).mapped_files), (SIZES[1], None));
    }
    // In a warm cache all of them are there.
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    place.run(&replay(&["--trial-rounds=1", "--methods=pread,mmap", "--cache=cold,warm"]));
    for sample in of_methods(&load(&place.file("run.jsonl"))) {
        let resident = if sample.cell.contains("/warm/") { all_bytes } else { 0 };
        assert_eq!(evidence(sample).resident_before_bytes, Some(resident), "{}", sample.cell);
    }
    place.expect_no_trace();
}

#[test]
fn each_file_begins_with_the_pages_that_it_had() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let page = rustix::param::page_size() as u64;
    let sizes = [40 * page, 30 * page, 20 * page];
    let paths = files(&place, &sizes);
    let mut trace = trace_of_all(&paths, &sizes);
    for (file, pages) in [(0u32, 5..9u64), (2, 0..20)] {
        let pages: ResidentPages = pages.collect();
        trace.trailer.files[file as usize].resident_before = Some(pages.count() * page);
        trace.resident.insert(file, pages);
    }
    store(&trace, &place.file("t.trace"));
    place.run(&replay(&["--trial-rounds=1", "--methods=pread,mmap:random"]));
    let run = load(&place.file("run.jsonl"));
    assert!(!of_methods(&run).is_empty());
    for sample in of_methods(&run) {
        let seen = evidence(sample);
        assert_eq!(seen.resident_before_bytes, Some(24 * page), "{}", sample.cell);
        assert_eq!((seen.recorded_missing_bytes, seen.recorded_added_bytes), (Some(0), Some(0)));
    }
    place.expect_no_trace();
}

#[test]
fn what_a_program_reads_of_three_files_is_recorded_and_replayed() {
    let Some((_turn, place)) = watched_place() else { return };
    let sizes = [2 << 20, (3 << 20) + 5, 300_000];
    let paths = files(&place, &sizes);
    let cold: Vec<String> = paths.iter().map(|path| format!("--cold={path}")).collect();
    let mut words = vec!["record"];
    words.extend(cold.iter().map(String::as_str));
    // By turns, a MiB of each at a time.
    let script = "exec 3<$0 4<$1 5<$2; for turn in 1 2 3 4; do for file in 3 4 5; do dd bs=256k count=4 <&$file; done; done >/dev/null 2>&1";
    words.extend(["-o", "t.trace", "--", "sh", "-c", script]);
    words.extend(paths.iter().map(String::as_str));
    place.run(&words).expect_code(0);
    let trace = load_trace(&place.file("t.trace"));
    let recorded: u64 =
        trace.trailer.files.iter().filter(|file| file.is_named()).map(|file| file.reads).sum();
    assert!(recorded > 3, "{:?}", trace.trailer);
    // dd and sh are several processes, one after the other.
    let finished = place.run(&replay(&["--rounds=7", "--methods=pread,mmap:random", "--threads=1"]));
    let run = load(&place.file("run.jsonl"));
    for sample in of_methods(&run) {
        let seen = evidence(sample);
        assert_eq!(Some(seen.checksum), seen.expected_checksum, "{}", sample.cell);
        assert_eq!(seen.requested_bytes, sizes.iter().sum::<u64>());
    }
    expect_undisturbed(&run);
    let judged = finished.judged();
    assert_eq!(judged["self_replay"]["stands"], true, "{} {:?}", judged["self_replay"], trace.trailer);
}

fn samples(kind: &str) -> Vec<Sample> {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let sizes = [1 << 20, 1 << 20, 1 << 20];
    let paths = files(&place, &sizes);
    store(&trace_of_all(&paths, &sizes), &place.file("t.trace"));
    let worker = cheating_replay_worker(kind);
    place.run(&replay(&["--trial-rounds=2", "--methods=pread", "--worker-command", &worker]));
    of_methods(&load(&place.file("run.jsonl"))).into_iter().cloned().collect()
}

#[test]
fn a_worker_that_reads_other_files_is_noticed() {
    for sample in samples("honest") {
        let seen = evidence(&sample);
        assert_eq!(Some(seen.checksum), seen.expected_checksum);
    }
    for kind in ["reads-the-first-file", "reads-the-next-file"] {
        let samples = samples(kind);
        assert!(!samples.is_empty());
        for sample in &samples {
            assert!(kinds(sample).contains(&WrongChecksum), "{kind}: {:?}", sample.outcome);
        }
    }
    for sample in samples("one-file") {
        let outcome = format!("{:?}", sample.outcome);
        assert!(outcome.contains("replays the reads of at most 1 file, and not of 3"), "{outcome}");
    }
}

#[test]
fn files_that_are_not_those_of_the_trace_are_refused() {
    let place = Place::on(&std::env::temp_dir());
    let sizes = [60_000, 60_000, 60_000];
    let paths = files(&place, &sizes);
    let whole = trace_of_all(&paths, &sizes);
    let changed = |name: &str, change: &dyn Fn(&mut Trace)| {
        let mut trace = whole.clone();
        change(&mut trace);
        store(&trace, &place.file(name));
    };
    store(&whole, &place.file("t.trace"));
    changed("behind.trace", &|trace| trace.accesses[4].offset = 59_999);
    changed("gone.trace", &|trace| trace.trailer.files[2].identity = None);
    changed("pages.trace", &|trace| trace.trailer.files[1].resident_before = Some(4096));
    changed("mixed.trace", &|trace| trace.trailer.files[1].direct = true);
    changed("mapped.trace", &|trace| trace.trailer.files[2].said_to_be_read = ReadOrder::Random);
    changed("twice.trace", &|trace| {
        let of_first = trace.trailer.files[0].identity.clone();
        let link = place.file("link.bin");
        fs::hard_link(&paths[0], &link).expect("link");
        trace.trailer.files[1].path = link.to_str().expect("text").into();
        trace.trailer.files[1].identity = of_first;
    });
    let refuse = |more: &[&str], sentence: &str| {
        expect_refused(&place.run(&[&["run", "replay", "--evict", "--dry-run"], more].concat()), sentence);
    };
    refuse(&["--trace=behind.trace"], "has a read of 3000 bytes at 59999 of");
    refuse(&["--trace=gone.trace"], "data2.bin was gone at the end of the recording, or another file");
    refuse(&["--trace=pages.trace"], "does not say which pages of");
    refuse(&["--trace=mixed.trace"], "data0.bin was read by pread and");
    refuse(&["--trace=mapped.trace"], "data2.bin by pread:random, so the replay of no method shows whether");
    refuse(&["--trace=twice.trace"], "are one file: choose one of the names with --file");
    refuse(&["--trace=t.trace", "--file", &paths[0], "--file", &paths[0]], "data0.bin is named twice");
    refuse(&["--trace=t.trace", "--file", &paths[0], "--file=/none"], "holds no read of /none");
    expect_refused(
        &place.run(&["read", "--file", &paths[0], "--file", &paths[1]]),
        "several --file are for the replay of a trace",
    );
    // Of another content, and as old: the last one is swapped, then it grows.
    place.run(&["run", "replay", "--evict", "--dry-run", "--trace=t.trace"]).expect_code(0);
    let old = fs::metadata(&paths[2]).expect("stat").modified().expect("a time");
    let other = place.file("other.bin");
    fs::write(&other, vec![9; 60_000]).expect("write");
    fs::File::options().write(true).open(&other).expect("open").set_modified(old).expect("touch");
    fs::rename(&other, &paths[2]).expect("swap");
    refuse(&["--trace=t.trace"], "data2.bin is not the file that was recorded");
    fs::OpenOptions::new().write(true).open(&paths[2]).expect("open").set_len(60_001).expect("grow");
    refuse(&["--trace=t.trace"], "data2.bin is not the file that was recorded");
    fs::remove_file(&paths[2]).expect("remove");
    refuse(&["--trace=t.trace"], "data2.bin does not exist");
    let memory = Path::new("/dev/shm").join(format!("pagewise-test-{}", std::process::id()));
    if fs::write(&memory, vec![1; 60_000]).is_ok() {
        let text = memory.to_str().expect("text").to_string();
        let elsewhere = [paths[0].clone(), text];
        store(&trace_of_all(&elsewhere, &sizes[..2]), &place.file("t.trace"));
        refuse(&["--trace=t.trace"], "are on two filesystems: replay the files of one, each with --file");
        fs::remove_file(&memory).expect("remove");
    }
    place.expect_no_trace();
}

#[test]
fn a_thousand_files_are_replayed_and_need_as_many_descriptors() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let sizes: Vec<u64> = (0..1200).map(|number| 1 + number % 5 * 1500).collect();
    let paths = files(&place, &sizes);
    let mut trace = trace_of_all(&paths, &sizes);
    trace.trailer.program.anonymous_bytes = None;
    store(&trace, &place.file("t.trace"));
    let words = replay(&["--trial-rounds=1", "--methods=pread,mmap:random,uring:fixed+depth=4"]);
    let limited = |limit: &str| {
        let mut command = std::process::Command::new("prlimit");
        command.args([&format!("--nofile={limit}"), "--", PAGEWISE]).args(&words);
        place.settle(&mut command);
        place.finish(command.spawn().expect("prlimit"))
    };
    expect_refused(
        &limited("1000:1300"),
        "this replay needs 2,656 open files in one process, and the limit is 1300 (ulimit -Hn)",
    );
    // The soft limit is raised.
    limited("100:4000");
    let run = load(&place.file("run.jsonl"));
    let all: u64 = sizes.iter().sum();
    assert!(of_methods(&run).len() >= 3, "one of each method");
    for sample in of_methods(&run) {
        let seen = evidence(sample);
        assert_eq!(Some(seen.checksum), seen.expected_checksum, "{}", sample.cell);
        assert_eq!((seen.requested_bytes, seen.resident_before_bytes), (all, Some(0)), "{}", sample.cell);
    }
    place.expect_no_trace();
}

/// A name may have any character; what a worker shows of its descriptors is shown by names.
#[test]
fn hostile_names_stay_names() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let names = ["a b'\"$(touch executed)", "--evict", "\u{1b}[31mred\n", "fd"];
    let paths: Vec<String> = names.iter().map(|name| place.write_synced(name, vec![3; 9000])).collect();
    store(&trace_of_all(&paths, &[9000; 4]), &place.file("t.trace"));
    let finished = place.run(&replay(&["--trial-rounds=1", "--methods=pread"]));
    let run = load(&place.file("run.jsonl"));
    for sample in of_methods(&run) {
        assert_eq!(evidence(sample).requested_bytes, 36_000);
    }
    assert!(!finished.stderr.contains('\u{1b}'), "{:?}", finished.stderr);
    assert!(!place.file("executed").exists());
    let shown = place.run(&["report", "run.jsonl"]);
    assert!(!shown.stdout.contains("\u{1b}[31mred"), "{:?}", shown.stdout);
}
