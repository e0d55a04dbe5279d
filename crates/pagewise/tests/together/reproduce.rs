//! `reproduce` as a command: claims judged by a small run, dry runs, and what it refuses.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::schema::expect_schema;
use crate::support::{Place, expect_refused, inconclusive, load, skipped, without_memory_limit};

/// The plan of a study in small; its name is that of the run.
const SMALL: &str = "\
workload = \"fill\"
in_memory = true
cache = \"cold\"
file_size = \"1MiB\"
block_size = \"4KiB\"
rounds = 7
ceilings = false
controls = false
methods = [
    \"mmap\", \"mmap:prealloc\", \"mmap:populate\", \"mmap:populate+willneed\", \"mmap:populate+sequential\",
    \"mmap:prealloc+populate\", \"mmap:prealloc+populate+willneed\", \"mmap:willneed\", \"mmap:sequential\",
    \"mmap:touch+willneed\", \"mmap:touch\",
]
";

const WORDS: [&str; 3] = ["holds", "does-not-hold", "cannot-be-tested"];

/// Methods whose set-up is shown for what was wrong with the published prefault.
const SHOWN: [&str; 2] = ["mmap:populate", "mmap:touch"];

/// The rounds of each method that have a valid sample.
fn valid_rounds(place: &Place, name: &str) -> BTreeMap<String, BTreeSet<u32>> {
    let run = load(&place.path().join(name));
    let valid_of = |id: String| {
        let samples = run.samples.iter().filter(|sample| sample.cell == id && sample.valid().is_some());
        samples.map(|sample| sample.round).collect()
    };
    run.header.plan.cells.iter().map(|cell| (cell.method.to_string(), valid_of(cell.id()))).collect()
}

#[test]
fn every_claim_of_a_run_has_its_word_its_figures_and_its_counters() {
    let place = Place::new();
    place.write("fill-blocks.toml", SMALL);
    // On a busy machine some samples are invalid, and the run ends with 1.
    let measured = place.run(&["run", "fill-blocks.toml", "--out", "fill.jsonl"]);
    measured.expect_code_for(&load(&place.file("fill.jsonl")));
    let json = place.run(&["reproduce", "--from", "fill.jsonl", "--json"]).expect_code(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    expect_schema(&place, "reproduce", &json);
    let claims = json["studies"][0]["claims"].as_array().expect("claims");
    assert_eq!((json["studies"].as_array().expect("studies").len(), claims.len()), (1, 5));
    for claim in claims {
        assert!(WORDS.contains(&claim["word"].as_str().expect("a word")), "{claim}");
        let has_reason = claim["reason"].is_string();
        assert_eq!(claim["word"] == "cannot-be-tested", has_reason, "{claim}");
    }
    // Its cases are paired by the rounds that both methods have valid samples in.
    let rounds = valid_rounds(&place, "fill.jsonl");
    let prefault = &claims[0];
    let cases = prefault["tests"][0]["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 7);
    for case in cases {
        let [of, plain] = [case["method"].as_str().expect("a method"), "mmap"].map(|method| &rounds[method]);
        assert_eq!(case["rounds"], of.intersection(plain).count(), "{case}");
    }
    let shown: usize = SHOWN.iter().map(|method| rounds[*method].len()).sum();
    assert_eq!(prefault["defects"][0]["samples"], shown, "{prefault}");

    // A claim is tested by methods that have five valid rounds.
    if let Some((method, valid)) = rounds.iter().find(|(_, valid)| valid.len() < 5) {
        inconclusive(&format!("{method} has {} valid samples of seven", valid.len()));
    }
    let text = place.run(&["reproduce", "fill", "--from", "fill.jsonl"]).expect_code(0).stdout;
    for part in
        ["published: 2.67x to 2.78x", " over mmap: ", "in speed, set-up and tear-down left out", "5 claims: "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let markdown =
        place.run(&["reproduce", "fill", "--from", "fill.jsonl", "--markdown"]).expect_code(0).stdout;
    assert!(markdown.contains("\n- published: 2.67x to 2.78x\n"), "{markdown}");
}

#[test]
fn a_dry_run_names_time_and_bytes_and_writes_nothing() {
    let place = Place::new();
    let planned = place.run(&["reproduce", "append", "--quick", "--dry-run"]).expect_code(0);
    assert!(planned.stdout.contains("append-ring "), "{}", planned.stdout);
    match without_memory_limit() {
        None => assert!(planned.stdout.contains(" questions: about "), "{}", planned.stdout),
        Some(reason) => skipped("cgroup", &reason),
    }
    let json = place.run(&["reproduce", "fill", "--quick", "--dry-run", "--json"]).expect_code(0);
    let plans: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let first = plans.get(0).unwrap_or(&plans);
    assert_eq!(first["plan"]["question"], "fill-blocks");
    assert!(place.entries().is_empty(), "{:?}", place.entries());
}

#[test]
fn what_it_cannot_judge_is_one_sentence() {
    let place = Place::new();
    place.write("plan.toml", "workload = \"fill\"\nin_memory = true\nfile_size = \"1MiB\"\nmethods = \"mmap\"\nrounds = 7\nceilings = false\n");
    place.run(&["run", "plan.toml", "--out", "other.jsonl"]);
    place.write("nothing.jsonl", b"");
    for (words, sentence) in [
        ("reproduce apend", "unknown study 'apend': the nearest known one is 'append'"),
        ("reproduce moon", "unknown study 'moon': write one of append, scan, lucene, fill"),
        ("reproduce --from missing.jsonl", "missing.jsonl"),
        ("reproduce --from nothing.jsonl", "nothing.jsonl"),
        ("reproduce --from other.jsonl", "other.jsonl is no run of these studies: its question is 'plan'"),
        ("reproduce --quick --from other.jsonl", "'--from"),
        ("reproduce --from .", "nothing.jsonl"),
        ("reproduce --from none-*.jsonl", "none-*.jsonl: no file matches the pattern"),
        ("reproduce append --dir missing", "missing"),
        ("reproduce --json --markdown", "'--markdown'"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        expect_refused(&place.run(&words), sentence);
    }
    place.write("fill-blocks.toml", "workload = \"fill\"\nin_memory = true\nfile_size = \"1MiB\"\nmethods = \"mmap\"\nrounds = 7\nceilings = false\n");
    place.run(&["run", "fill-blocks.toml", "--out", "one.jsonl"]);
    expect_refused(
        &place.run(&["reproduce", "--from", "one.jsonl", "one.jsonl"]),
        "two of these files are runs of fill-blocks: name one of them",
    );
    std::fs::create_dir(place.path().join("runs")).expect("a folder");
    std::fs::copy(place.path().join("one.jsonl"), place.path().join("runs/one.jsonl")).expect("a copy");
    assert_eq!(
        place.run(&["reproduce", "--from", "runs", "--json"]).expect_code(0).stdout,
        place.run(&["reproduce", "--from", "one.jsonl", "--json"]).expect_code(0).stdout,
    );
    // A run without the other methods tests none of the claims, and says why.
    let alone = place.run(&["reproduce", "--from", "one.jsonl"]).expect_code(0);
    assert!(alone.stdout.contains("this run has none of its cases"), "{}", alone.stdout);
}
