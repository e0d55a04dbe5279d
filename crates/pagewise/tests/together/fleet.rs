//! Runs of many machines: labels, rows of cells, and a run file that goes to stdout.

use pagewise_model::Outcome;
use serde_json::Value;

use super::made_up::labelled_run;
use crate::support::{Finished, Place, expect_message, load, wait_for};

const READ: &str =
    "read --file-size 4MiB --methods pread,mmap --cache warm --threads 1 --rounds 7 --no-ceilings";

/// None of the runs that were named can be read.
#[track_caller]
fn expect_none_read(finished: &Finished) {
    assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""), "{finished:?}");
    assert!(finished.stderr.ends_with("pagewise: none of the runs can be read\n"), "{finished:?}");
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

#[test]
fn rows_have_facts_and_labels_and_a_bad_file_ends_nothing() {
    let place = Place::new();
    std::fs::create_dir(place.file("runs")).expect("a directory");
    let methods = [("mmap", 10_000), ("pread", 20_000)];
    for (name, rack) in [("a", "r1"), ("b", "r2")] {
        let started = 1_800_000_000 + u64::from(name.as_bytes()[0]);
        place.write(&format!("runs/{name}.jsonl"), labelled_run(started, &[("rack", rack)], &methods));
    }
    place.write("runs/c.jsonl", "no run\n");
    place.write("runs/d.jsonl", std::fs::read_to_string(place.file("runs/a.jsonl")).expect("a run"));
    let found = place.run(&["report", "--rows", "runs"]).expect_code(1);
    let of_runs = rows(&found.stdout);
    assert_eq!(of_runs.len(), 4);
    let of = |row: &Value| (row["run"].clone(), row["labels"]["rack"].clone(), row["method"].clone());
    assert_eq!(of(&of_runs[3]), ("runs/b.jsonl".into(), "r2".into(), "pread".into()));
    for row in &of_runs {
        assert_eq!((&row["facts"]["kernel"], &row["complete"]), (&"6.12".into(), &true.into()));
        assert!(row["reads_per_second_median"].as_f64().is_some_and(|rate| rate > 1000.0), "{row}");
        assert!(
            row["threads"].is_u64() && row["setup_ns"].is_u64() && row["time_to_warm_ns_median"].is_null()
        );
    }
    for left_out in
        ["runs/c.jsonl, line 1", "runs/d.jsonl is the same run as runs/a.jsonl", "2 of 4 run files"]
    {
        assert!(found.stderr.contains(left_out), "{}", found.stderr);
    }
    expect_none_read(&place.run(&["report", "--rows", "--out", "rows.ndjson", "runs/c.jsonl"]));
    assert!(!place.file("rows.ndjson").exists(), "no rows, no file");
    // All of them as one document: a bad file ends it, and nothing is printed before.
    let json = place.run(&["report", "--json", "runs"]).expect_code(2);
    assert_eq!(json.stdout, "");
    let json = place.run(&["report", "--json", "runs/a.jsonl", "runs/b.jsonl"]).expect_code(0);
    let both: Vec<Value> = serde_json::from_str(&json.stdout).expect("a list");
    assert_eq!((both.len(), &both[1]["run"]["labels"]["rack"]), (2, &"r2".into()));
    let csv = place.run(&["report", "--csv", "runs/a.jsonl", "runs/b.jsonl"]).expect_code(0);
    assert_eq!(csv.stdout.lines().map(|line| &line[..2]).collect::<Vec<_>>(), ["ru", "0,", "0,", "1,", "1,"]);
}

#[test]
fn a_plan_is_known_by_what_was_asked_for() {
    let place = Place::new();
    std::fs::create_dir(place.file("elsewhere")).expect("a directory");
    place.write("plan.toml", "workload = \"scan\"\nfile_size = \"16MiB\"\n");
    place.write("same.toml", "# The same.\nfile_size = \"16MiB\"\nworkload = \"scan\"\n");
    let hash = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--dry-run", "--json"]).collect();
        let json = place.run(&words).expect_code(0).judged();
        json["plan"]["typed"].as_str().expect("a hash").to_string()
    };
    let of_read = hash(READ);
    assert!(of_read.len() == 8 && of_read.bytes().all(|byte| byte.is_ascii_hexdigit()), "{of_read}");
    for same in ["--seed 7", "--label a=b --out elsewhere/run.jsonl", "--dir elsewhere"] {
        assert_eq!(hash(&format!("{READ} {same}")), of_read, "{same}");
    }
    let others = ["--quick", "--full", "--seed 7 --sample 20ms", "--workload random-read", "--expect p99<1s"];
    let mut all: Vec<String> = others.iter().map(|more| hash(&format!("{READ} {more}"))).collect();
    all.extend([of_read, hash("run plan.toml"), hash("scan --file-size 16MiB"), hash("read")]);
    let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
    assert_eq!(hash("run plan.toml"), hash("run same.toml"));
}

#[test]
fn a_run_starts_at_a_time() {
    let place = Place::new();
    let unix_s = || std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    let words = |at: &str| -> Vec<String> {
        let words = format!("{READ} --no-html --out run.jsonl --start-at {at}");
        words.split(' ').map(str::to_string).collect()
    };
    let finished = place.run(&words(&(unix_s() + 6).to_string()));
    let run = load(&place.file("run.jsonl"));
    let start = run.start.expect("a start");
    for sample in &run.samples {
        let Outcome::Taken { evidence, .. } = &sample.outcome else { continue };
        let since_ns = evidence.go_unix_ns.expect("its time") - start.began_unix_ns;
        let during = sample.started_ns..sample.started_ns + sample.took_ns;
        assert!(during.contains(&since_ns), "{since_ns} of {during:?}");
    }
    assert!(start.began_unix_ns >= start.asked_unix_ns && start.began_unix_ns >= start.prepared_unix_ns);
    assert!(start.late_ns() > 0 || finished.stderr.contains("prepared; the first sample begins in "));
    let judged = place.run(&["report", "--json", "run.jsonl"]).expect_code(0).judged();
    assert_eq!(judged["run"]["start"]["began_unix_ns"].as_u64(), Some(start.began_unix_ns));
    std::fs::remove_file(place.file("run.jsonl")).expect("removed");
    // Too late: said, measured, and status 1.
    let finished = place.run(&words("1000000000.25")).expect_code(1);
    assert!(finished.stderr.contains("after the time of --start-at: the run goes on"), "{finished:?}");
    assert!(finished.stdout.contains("after the time that it was to start at"), "{finished:?}");
    assert!(load(&place.file("run.jsonl")).is_complete());
    std::fs::remove_file(place.file("run.jsonl")).expect("removed");
    // Stopped while it waits.
    let child = place.command(&words(&(unix_s() + 3600).to_string())).spawn().expect("start");
    let said = || std::fs::read_to_string(place.root().join("stderr")).ok();
    wait_for("it is prepared", || said().filter(|text| text.contains("prepared; the first")));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("kill");
    place.finish(child).expect_code(130);
    assert_eq!(place.entries(), ["run.jsonl".to_string()].into(), "no dataset is left");
    place.expect_no_trace();
    std::fs::remove_file(place.file("run.jsonl")).expect("removed");
    for at in ["+30s", "2026-11-22T11:11:05", "2026-02-30T11:11:05Z"] {
        expect_message(&place.run(&words(at)), 2, "invalid point in time");
    }
    expect_message(&place.run(&words("2100-01-01T00:00:00Z")), 2, "--start-at is more than a day ahead");
    assert!(place.entries().is_empty());
}

/// The reader has the only copy of a run on stdout, so if it goes away, the run is lost. Of text
/// for people it only wants no more.
#[test]
fn a_reader_that_goes_away_ends_a_run_on_stdout_and_no_other() {
    let place = Place::new();
    let closed = |words: &str| {
        let mut command = place.command(&words.split(' ').collect::<Vec<_>>());
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        place.finish(command.stdout(writer).spawn().expect("pagewise starts"))
    };
    expect_message(&closed(&format!("{READ} --out -")), 1, "the run file cannot be written to stdout: ");
    place.expect_no_trace();
    closed("methods read").expect_code(0);
    closed("read --dry-run").expect_code(0);
}

#[test]
fn a_run_goes_to_stdout_with_its_labels() {
    let place = Place::new();
    let words = |more: &str| READ.split(' ').chain(more.split(' ')).map(str::to_string).collect::<Vec<_>>();
    let run = |more: &str| {
        let words = words(more);
        place.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let entries = || std::fs::read_dir(place.file(".")).expect("a directory").count();
    let before = entries();
    let finished = run("--label node=n7 --label job=a=b --out -");
    // A machine that is busy leaves a method without some of its samples.
    assert!([0, 1].contains(&finished.code()), "{finished:?}");
    assert!(finished.stderr.contains("All numbers: pagewise report RUN\n"), "{}", finished.stderr);
    assert_eq!(entries(), before, "nothing beside it");
    place.write("run.jsonl", &finished.stdout);
    let kept = rows(&place.run(&["report", "--rows", "run.jsonl"]).expect_code(0).stdout);
    let facts = &kept[0]["facts"];
    assert!(facts["plan"].as_str().is_some_and(|plan| plan.len() == 8), "{facts}");
    // A container may forbid the call that reads it.
    assert!(
        facts["clock"].is_null() || facts["clock"].as_str().is_some_and(|clock| clock.contains("sync")),
        "{facts}"
    );
    assert!(facts.get("clock-error-ns").is_none(), "it differs between any two runs: {facts}");
    assert_eq!((&kept[0]["labels"]["node"], &kept[0]["labels"]["job"]), (&"n7".into(), &"a=b".into()));
    for (more, sentence) in [
        ("--label kernel=7", "'kernel' is a fact that pagewise finds by itself"),
        ("--label Node=7", "the name 'Node' is not of small letters, digits and hyphens"),
        ("--label node", "write KEY=VALUE, as in rack=a4"),
        ("--label node=1 --label node=2", "--label has the name 'node' twice: write it once"),
        ("--out run.jsonl --resume --label node=1", "a run keeps the labels that it began with"),
        ("--out - --resume", "a run on stdout cannot be continued"),
    ] {
        expect_message(&run(more), 2, sentence);
    }
}
