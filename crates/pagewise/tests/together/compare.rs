//! `compare` as a command: two sides of run files with made-up figures, the gate of the recipe, and
//! what it refuses.

use std::process::Command;

use super::made_up::MadeUp;
use crate::support::schema::expect_schema;
use crate::support::{PAGEWISE, Place, expect_message, expect_refused};
use pagewise_model::Bytes;

/// A run in which methods take so many nanoseconds for an operation, on a machine with this
/// readahead.
fn run_file(started_unix_s: u64, readahead: Bytes, methods: &[(&str, u64)]) -> String {
    MadeUp { started_unix_s, readahead, methods, ..MadeUp::default() }.file()
}

/// Five runs of a side, in turn with those of another. Runs differ by up to 1.6 %.
fn side(place: &Place, name: &str, turn: u64, methods: &[(&str, u64)]) {
    std::fs::create_dir(place.file(name)).expect("directory");
    for run in 0..5 {
        let noisy: Vec<(&str, u64)> =
            methods.iter().map(|(method, ns)| (*method, ns * (1000 + 4 * run) / 1000)).collect();
        let file = run_file(1_800_000_000 + 10 * run + turn, Bytes::kib(128), &noisy);
        place.write(&format!("{name}/{run}.jsonl"), file);
    }
}

#[test]
fn a_slower_build_fails_the_gate_and_an_equal_one_passes() {
    let place = Place::new();
    side(&place, "base", 0, &[("mmap", 10_000), ("pread", 20_000)]);
    side(&place, "slow", 1, &[("mmap", 10_000), ("pread", 22_000)]);
    side(&place, "equal", 2, &[("mmap", 10_000), ("pread", 20_000)]);
    let slow =
        place.run(&["compare", "base", "--", "slow", "--fail-on", "slower=5%,advice-changed"]).expect_code(1);
    assert!(slow.stdout.contains("1.10x [1.08–1.12]"), "{}", slow.stdout);
    assert!(slow.stdout.contains("failed: slower=5%\n  pread ("), "{}", slow.stdout);
    assert!(slow.stdout.contains("passed: advice-changed"), "{}", slow.stdout);
    assert!(slow.stdout.contains("What was recorded of the environments is the same."), "{}", slow.stdout);
    assert!(!slow.stdout.contains('!'), "no warning: {}", slow.stdout);
    let equal = place.run(&["compare", "base", "--", "equal", "--fail-on", "slower=5%"]).expect_code(0);
    assert!(equal.stdout.contains("2 comparisons: "), "{}", equal.stdout);
    assert!(equal.stdout.ends_with("passed: slower=5%\n"), "{}", equal.stdout);
    let json =
        place.run(&["compare", "base", "--new", "slow", "--json", "--fail-on", "slower=5%"]).expect_code(1);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    expect_schema(&place, "compare", &json);
    assert_eq!(json["situations"][0]["methods"][1]["finding"], "slower");
    assert_eq!(json["gates"][0]["gate"], "slower=5%");
    let markdown = place.run(&["compare", "base", "--", "slow", "--markdown"]).expect_code(0);
    assert!(
        markdown.stdout.contains("| pread | 49.5k | 45.0k | 1.10x \\[1.08–1.12\\] | slower |"),
        "{}",
        markdown.stdout
    );
}

#[test]
fn patterns_are_expanded_and_machines_are_distinguished_by_a_fact() {
    let place = Place::new();
    for run in 0..6 {
        let (readahead, methods) = match run % 2 {
            0 => (Bytes::kib(128), [("mmap", 10_000), ("pread", 20_000)]),
            _ => (Bytes::mib(8), [("mmap", 20_000), ("pread", 10_000)]),
        };
        place.write(&format!("fleet-{run}.jsonl"), run_file(1_800_000_000 + run, readahead, &methods));
    }
    let split = place.run(&["compare", "--by", "kernel", "fleet-*.jsonl"]).expect_code(0);
    assert!(split.stdout.contains("6.12: mmap (3 of 6 runs), pread (3 of 6 runs)"), "{}", split.stdout);
    assert!(
        split.stdout.contains("readahead explains 6 of 6 runs: 128 KiB → mmap; 8 MiB → pread"),
        "{}",
        split.stdout
    );
    place.run(&["compare", "--by", "readahead", "fleet-*.jsonl", "--html=map.html"]).expect_code(0);
    let page = std::fs::read_to_string(place.file("map.html")).expect("a page");
    let printed = place.run(&["compare", "--by", "readahead", "fleet-*.jsonl", "--html=-"]).expect_code(0);
    assert_eq!(printed.stdout, page, "- is stdout");
    assert!(!place.file("-").exists());
    for row in ["128 KiB</th><td class=\"c0\">mmap</td>", "8 MiB</th><td class=\"c1\">pread</td>"] {
        assert!(page.contains(&format!("<tr><th scope=\"row\">{row}</tr>")), "{row}: {page}");
    }
    assert!(page.contains("readahead explains 6 of 6 runs: 128 KiB → mmap; 8 MiB → pread"), "{page}");
    let changed = place.run(&[
        "compare",
        "fleet-[024].jsonl",
        "--",
        "fleet-[135].jsonl",
        "--fail-on",
        "advice-changed",
    ]);
    let changed = changed.expect_code(1);
    assert!(
        changed.stdout.contains("The environments differ: readahead 128 KiB → 8 MiB."),
        "{}",
        changed.stdout
    );
    assert!(
        changed.stdout.contains("advice: pread; before: mmap, which is behind now"),
        "{}",
        changed.stdout
    );
}

#[test]
fn what_it_cannot_compare_is_one_sentence() {
    let place = Place::new();
    side(&place, "base", 0, &[("pread", 20_000)]);
    side(&place, "new", 1, &[("pread", 20_000)]);
    std::fs::create_dir(place.file("empty")).expect("directory");
    let whole = std::fs::read(place.file("base/0.jsonl")).expect("read");
    let other = run_file(1_800_000_009, Bytes::kib(128), &[("pread", 20_000)]);
    place.write("torn.jsonl", &other[..other.len() / 2]);
    place.write("other.jsonl", b"{\"hello\": 1}\n");
    place.write("nothing.jsonl", b"");
    place.write("copy.jsonl", &whole);
    place.write("future.jsonl", String::from_utf8_lossy(&whole).replacen("\"schema\":", "\"schema\":9", 1));
    for (words, sentence) in [
        ("compare base", "there is nothing to compare with: name the runs after the change behind --"),
        ("compare -- new", "required arguments were not provided: <BASE>"),
        ("compare base -- base", "base/0.jsonl is named twice: name each run once"),
        ("compare base -- copy.jsonl", "base/0.jsonl and copy.jsonl are the same run: name each run once"),
        ("compare base -- empty", "empty: the directory has no run files (*.jsonl)"),
        ("compare base -- none-*.jsonl", "none-*.jsonl: no file matches the pattern"),
        ("compare base -- [.jsonl", "invalid pattern '[.jsonl'"),
        ("compare base -- other.jsonl", "other.jsonl"),
        ("compare base -- nothing.jsonl", "nothing.jsonl"),
        ("compare base -- future.jsonl", "future.jsonl"),
        ("compare base -- new --by kernel", "'--by <FACT>'"),
        ("compare base -- new --all-of 3", "--all-of is about the values of a fact: name one with --by"),
        ("compare --by kernel --all-of 0 base", "--all-of 0 expects nothing"),
        (
            "compare --by kernel --all-of none.txt base",
            "the file none.txt of --all-of cannot be read: No such file",
        ),
        (
            "compare --by kernel --all-of base base",
            "the file base of --all-of cannot be read: it is not a regular",
        ),
        (
            "compare --by kernel --all-of nothing.jsonl base",
            "the file nothing.jsonl of --all-of names nothing",
        ),
        ("compare --by moon base", "no run has the fact 'moon': the facts are "),
        ("compare base -- new --json --markdown", "'--markdown'"),
        ("compare base -- new --relative-to uring", "no run has the method 'uring'"),
        (
            "compare base -- new/0.jsonl --fail-on slower=5%",
            "slower=5% needs three runs or more on each side",
        ),
        (
            "compare base -- new --fail-on crossover-moved",
            "crossover-moved needs runs of cliff on both sides",
        ),
        ("compare base -- new --fail-on slower=5", "invalid share '5': write a per cent, as in slower=5%"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        expect_refused(&place.run(&words), sentence);
    }
    // A run that was killed is compared as far as it got, and said to be incomplete.
    let torn = place.run(&["compare", "base", "--", "torn.jsonl"]).expect_code(0);
    assert!(torn.stdout.contains("! torn.jsonl is not complete: "), "{}", torn.stdout);
}

/// The recipe for continuous integration as it stands in the docs, with a pagewise whose
/// measurements are made up.
#[test]
fn the_gate_of_the_docs_catches_a_slower_worker() {
    let place = Place::new();
    for (name, ns) in [("equal", 20_000u64), ("slow", 22_000)] {
        side(&place, name, u64::from(name == "slow"), &[("build/get", ns), ("pread", 30_000)]);
    }
    // `read … --worker build=NAME … --out FILE` hands over the next run of that name.
    let stub = format!(
        r#"#!/bin/sh
if test "$1" = compare; then exec {PAGEWISE} "$@"; fi
while test $# -gt 0; do
    case $1 in --worker) name=${{2#build=}} ;; --out) out=$2 ;; --seed) seed=$2 ;; esac
    shift
done
cp "$name/$((seed - 1)).jsonl" "$out"
"#
    );
    let bin = place.file("bin");
    std::fs::create_dir(&bin).expect("directory");
    let stub = place.write("bin/pagewise", stub);
    std::fs::set_permissions(&stub, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let gate = |base: &str, new: &str, dir: &str| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes/gate.sh");
        let mut command = Command::new("sh");
        command.args([script, base, new, dir]);
        place.settle(&mut command);
        place.finish(command.env("PATH", &path).env("RUNS", "5").spawn().expect("sh"))
    };
    let caught = gate("equal", "slow", "caught");
    assert_eq!(caught.status.code(), Some(1), "{caught:?}");
    assert!(caught.stdout.contains("failed: slower=5%\n  build/get ("), "{caught:?}");
    side(&place, "again", 2, &[("build/get", 20_000), ("pread", 30_000)]);
    let passed = gate("equal", "again", "passed");
    assert_eq!(passed.status.code(), Some(0), "{passed:?}");
    expect_message(
        &place.run(&["compare", "caught/base", "--", "nowhere"]),
        2,
        "the run file nowhere cannot be opened",
    );
}
