//! A place without /proc or /sys, as some containers are: what is missing is said, `doctor` and
//! `run` say the same, and what needs neither works.

use std::fs;

use crate::support::{Place, in_own_mounts, load};

const BRIEF: [&str; 10] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread,mmap",
    "--threads=1",
    "--rounds=7",
    "--sample=1ms",
    "--file-size=8MiB",
    "--no-ceilings",
    "--out=run.jsonl",
];

#[test]
fn without_sys_methods_are_measured_and_what_is_missing_is_reported() {
    const TEST: &str = "without_sys_methods_are_measured_and_what_is_missing_is_reported";
    if !in_own_mounts(TEST, "mount -t tmpfs none /sys") {
        return;
    }
    let place = Place::new();
    let doctor = place.run(&["doctor"]).expect_code(0);
    assert!(doctor.stdout.contains("/sys is not mounted"), "{doctor:?}");
    let finished = place.run(&[&BRIEF[..], &["--cache=warm"]].concat());
    let finished = finished.expect_code_for(&load(&place.file("run.jsonl")));
    assert!(finished.stdout.contains("/sys is not mounted"), "{finished:?}");
    let run = load(&place.file("run.jsonl"));
    assert!(run.is_complete());
    assert!(run.samples.iter().any(|sample| sample.valid().is_some()), "{finished:?}");
    let planned = place.run(&[
        "run",
        "read",
        "--dry-run",
        "--numa=same",
        "--cache=warm",
        "--file-size=64MiB",
        "--methods=pread",
        "--workload=random-read",
    ]);
    planned.expect_code(0);
    // What `doctor` calls unavailable for want of /sys is refused in a run, with the same reason.
    let findings = place.run(&["doctor", "--json"]).judged();
    let capabilities = findings["capabilities"].as_array().expect("a list");
    let state = |name: &str| {
        let found = capabilities.iter().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["state"].clone()
    };
    for name in ["memory limit", "device cap", "readahead setting", "NUMA placement"] {
        assert_ne!(state(name), "available", "{name}");
    }
    place.expect_no_trace();
}

#[test]
fn without_proc_nothing_is_measured_and_every_command_says_so() {
    const TEST: &str = "without_proc_nothing_is_measured_and_every_command_says_so";
    // A run file is made before, where it can be.
    let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("before-proc-went.jsonl");
    if std::env::var_os("PAGEWISE_TEST_IN_OWN_MOUNTS").is_none() {
        let place = Place::new();
        place.run(&[&BRIEF[..], &["--cache=warm"]].concat());
        fs::copy(place.file("run.jsonl"), &kept).expect("copy");
    }
    if !in_own_mounts(TEST, "mount -t tmpfs none /proc") {
        return;
    }
    let place = Place::new();
    let sentence =
        "/proc is not mounted, and pagewise takes its evidence from there: nothing can be measured";
    let run = place.run(&[&BRIEF[..], &["--cache=warm"]].concat()).expect_code(3);
    assert!(run.stderr.contains(sentence), "{run:?}");
    let tried = place.run(&["conformance", "--dir=.", "--", "cat"]).expect_code(3);
    assert!(tried.stderr.contains(sentence), "{tried:?}");
    let doctor = place.run(&["doctor"]).expect_code(0);
    assert!(doctor.stdout.contains("/proc is not mounted"), "{doctor:?}");
    let findings = place.run(&["doctor", "--json"]).judged();
    for capability in findings["capabilities"].as_array().expect("a list") {
        assert_ne!(capability["state"], "available", "{capability}");
    }
    // What it says still works does.
    place.run(&["clean"]).expect_code(0);
    let report = place.run(&["report", kept.to_str().expect("text")]).expect_code(0);
    assert!(report.stdout.contains("Verdict: "), "{report:?}");
    fs::remove_file(&kept).expect("remove");
}
