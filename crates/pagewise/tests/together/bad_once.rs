//! Scan, append and fill: what makes no sense is refused in one sentence with exit code 2, and
//! nothing is created; files that are odd but have lines to be counted are scanned with the right
//! count.

use std::fs::{self, File};
use std::io::Write;
use std::time::Duration;

use crate::support::paused::PausedRun;
use crate::support::{self, FROM_OUTSIDE, Place, is_honest, kinds, load, of_method, of_methods};
use pagewise_host::steps::RunStep;
use pagewise_model::run::Run;
use pagewise_model::{FailureKind, Outcome};
use rustix::process::{Pid, Signal};

/// A small run; what is left out here is said by the test.
#[track_caller]
fn measure(place: &Place, question: &str, more: &[&str]) -> Run {
    let common = ["run", question, "--trial-rounds=2", "--no-ceilings", "--json", "--out=run.jsonl"];
    let finished = place.run(&[&common[..], more].concat());
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run).judged();
    support::expect_whole(&run);
    place.expect_no_trace();
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new(), "the journal still names something");
    run
}

#[test]
fn a_record_that_fits_some_buffers_makes_the_others_unavailable() {
    let place = Place::new();
    let methods = "--methods=mmap:buffer=100B,mmap:buffer=1KiB,pwrite";
    let run = measure(&place, "append", &["--file-size=1MiB", "--record-size=100B,1KiB", methods]);
    for sample in of_methods(&run) {
        let too_large = sample.cell.contains("1KiB,passes=1") && sample.cell.contains("buffer=100B");
        match &sample.outcome {
            Outcome::Unavailable { reason } if too_large => {
                assert_eq!(reason, "a record of 1KiB does not fit into the buffer of mmap:buffer=100B");
            }
            other => assert!(!too_large && is_honest(sample), "{}: {other:?}", sample.cell),
        }
    }
    let refused = of_method(&run, "mmap:buffer=100B").into_iter();
    assert!(refused.filter(|sample| matches!(sample.outcome, Outcome::Unavailable { .. })).count() > 0);
}

/// Each sample counted so many lines, as the supervisor did.
#[track_caller]
fn expect_lines(run: &Run, lines: u64) {
    let samples = of_methods(run);
    assert!(!samples.is_empty());
    for sample in samples {
        assert!(is_honest(sample), "{}: {:?}", sample.cell, sample.outcome);
        let Outcome::Taken { measurement, evidence, .. } = &sample.outcome else { continue };
        assert_eq!((measurement.operations, evidence.checksum), (1, lines), "{}", sample.cell);
        assert_eq!(evidence.expected_checksum, Some(lines), "{}", sample.cell);
    }
}

#[test]
fn odd_files_are_scanned_with_the_right_count() {
    let ways = "--methods=mmap,mmap:in-place,mmap:buffer=1000B,read:buffer=4KiB,read:buffer=1000B,pread:sequential,uring:depth=4";
    let binary: Vec<u8> = (0..300_007u64).map(|at| pagewise_model::random::mix(at) as u8).collect();
    let newlines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let of_newlines = vec![b'\n'; 70_001];
    let files: [(&str, &[u8], u64); 6] = [
        ("no newline", &[b'x'; 100_000], 0),
        ("one byte", b"x", 0),
        ("one newline", b"\n", 1),
        ("the last line has no newline", b"one\ntwo\nthree", 2),
        ("nothing but newlines", &of_newlines, 70_001),
        ("binary", &binary, newlines(&binary)),
    ];
    for (name, bytes, lines) in files {
        println!("{name}");
        let place = Place::new();
        let path = place.write("data", bytes);
        expect_lines(
            &measure(&place, "scan", &["--file=data", "--cache=as-is,warm", "--consume=lines", ways]),
            lines,
        );
        assert!(fs::read(path).expect("read") == bytes, "{name}");
    }
    // The sizes of the question are those of datasets.
    let place = Place::new();
    place.write("data", vec![b'\n'; 70_001]);
    expect_lines(&measure(&place, "scan", &["--quick", "--file=data", "--methods=mmap"]), 70_001);
}

/// Whether this much memory is left for the page cache.
fn has_memory_for(bytes: u64) -> bool {
    pagewise_host::memory::Memory::read().available_bytes.is_some_and(|available| available > 2 * bytes)
}

#[test]
fn a_line_of_two_gibibytes_is_one_line() {
    const BYTES: u64 = 2 << 30;
    if !has_memory_for(BYTES) {
        return support::skipped("memory", "it needs 4 GiB of memory");
    }
    let place = Place::new();
    let path = place.file("data");
    // Sparse: zeros, and a newline at the very end.
    let file = File::create(&path).expect("create");
    std::os::unix::fs::FileExt::write_all_at(&file, b"\n", BYTES - 1).expect("write");
    let ways = "--methods=mmap:in-place,read:buffer=1MiB";
    let arguments = [
        "run",
        "scan",
        "--no-ceilings",
        "--out=run.jsonl",
        "--file=data",
        "--cache=warm",
        "--consume=lines",
        ways,
    ];
    let mut child = place.command(&arguments).spawn().expect("start");
    // A sample of each method is enough, and each takes seconds.
    let samples = || {
        let lines = support::whole_lines(&place.file("run.jsonl"));
        lines.iter().filter(|line| line.contains("\"kind\":\"sample\"")).count()
    };
    while child.try_wait().expect("wait").is_none() && samples() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    rustix::process::kill_process(pid, Signal::INT).expect("kill");
    place.finish(child).expect_code(130);
    fs::remove_file(&path).expect("remove");
    let run = load(&place.file("run.jsonl"));
    assert_eq!(run.header.plan.cells.len(), 2, "two methods");
    expect_lines(&run, 1);
    place.expect_no_trace();
}

#[test]
fn a_file_that_shrinks_during_a_scan_is_reported() {
    let place = Place::new();
    let path = place.write("data", vec![b'x'; 8 << 20]);
    let ways =
        ["--file=data", "--cache=as-is", "--methods=mmap:in-place,read:buffer=64KiB", "--trial-rounds=4"];
    let words = [&["run", "scan", "--no-ceilings", "--json", "--out=run.jsonl"][..], &ways].concat();
    let mut gone = 0;
    let finished = PausedRun::start(&place, &words, RunStep::GoSent).act_until_end(|_| {
        gone += 1;
        if gone == 3 {
            File::options().write(true).open(&path).and_then(|file| file.set_len(4096)).expect("shrink");
        }
    });
    let finished = finished.expect_code(1);
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete());
    expect_shrinking_is_reported(&run);
    let judged = finished.judged();
    let is_named = |reason: &serde_json::Value| reason["kind"] == "file-changed";
    let reasons = judged["validity"]["reasons"].as_array().expect("reasons");
    assert!(reasons.iter().any(is_named), "{reasons:?}");
    for cell in judged["cells"].as_array().expect("cells").iter().filter(|cell| cell["samples"] == 0) {
        assert!(cell["status"] == "invalid" && cell["reason"].is_string(), "{cell}");
    }
    place.expect_no_trace();
}

/// A log that grows all the time is another file in each sample than it was in the plan.
#[test]
fn a_file_that_grows_all_the_time_is_reported() {
    let place = Place::new();
    let path = place.write("data", vec![b'x'; 1 << 20]);
    let words = ["run", "scan", "--no-ceilings", "--json", "--out=run.jsonl", "--file=data", "--cache=as-is"];
    let finished = PausedRun::start(&place, &words, RunStep::WorkerStarted).act_until_end(|_| {
        let file = File::options().append(true).open(&path);
        file.and_then(|mut file| file.write_all(b"one more\n")).expect("append");
    });
    finished.expect_code(1);
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete() && !run.samples.is_empty());
    for sample in &run.samples {
        assert!(kinds(sample).contains(&FailureKind::FileChanged), "{}: {:?}", sample.cell, sample.outcome);
    }
    place.expect_no_trace();
}

/// Each cell ends with a sample that says how the file changed; what came before it is honest.
#[track_caller]
fn expect_shrinking_is_reported(run: &Run) {
    for cell in &run.header.plan.cells {
        let samples: Vec<_> = run.samples.iter().filter(|sample| sample.cell == cell.id()).collect();
        let (last, before) = samples.split_last().expect("each cell was tried");
        let reported = last.failures().iter().find(|failure| failure.kind == FailureKind::FileChanged);
        let detail = &reported.unwrap_or_else(|| panic!("{}: {:?}", last.cell, last.outcome)).detail;
        assert!(
            detail.contains("data changed its size from 8388608 to 4096 bytes during the run"),
            "{detail}"
        );
        let is_reported =
            |kind: &FailureKind| FROM_OUTSIDE.contains(kind) || *kind == FailureKind::FileChanged;
        for sample in before.iter().filter(|sample| !is_honest(sample)) {
            assert!(kinds(sample).iter().any(is_reported), "{}: {:?}", sample.cell, sample.outcome);
        }
    }
}
