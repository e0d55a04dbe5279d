//! Runs of many machines: labels, rows of cells, and a run file that goes to stdout.

use pagewise_model::Outcome;
use serde_json::Value;

use super::compare::{MadeUp, labelled_run};
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
    let by = place.run(&["compare", "--by", "rack", "runs/a.jsonl", "runs/b.jsonl"]).expect_code(0);
    assert!(by.stdout.starts_with("rack: r1 (1 run), r2 (1 run)\n"), "{}", by.stdout);
}

#[test]
fn rates_are_compared_by_a_label_and_many_values_are_grouped() {
    let place = Place::new();
    std::fs::create_dir(place.file("runs")).expect("a directory");
    for index in 0..24u64 {
        let rack = if index % 2 == 0 { "r1" } else { "r2" };
        let mmap = if index % 2 == 0 { 10_000 } else { 15_000 } + index * 10;
        let (node, methods) = (format!("n{index:02}"), [("mmap", mmap), ("pread", 20_000 + index * 10)]);
        let run = labelled_run(1_800_000_000 + index, &[("rack", rack), ("node", &node)], &methods);
        place.write(&format!("runs/{node}.jsonl"), run);
    }
    place.write("runs/torn.jsonl", "{");
    let by = place.run(&["compare", "--by", "rack", "runs"]).expect_code(1);
    assert!(by.stderr.contains("left out: runs/torn.jsonl, line 1"), "{}", by.stderr);
    let line = |start: &[&str]| {
        let is_it = |line: &&str| line.split_whitespace().take(start.len()).eq(start.iter().copied());
        by.stdout.lines().find(is_it).unwrap_or_else(|| panic!("{start:?} in {}", by.stdout))
    };
    assert!(line(&["mmap", "r1", "12"]).ends_with(" –"), "{}", by.stdout);
    let slower = line(&["mmap", "r2", "12"]);
    assert!(slower.contains("1.50x [") && slower.ends_with("slower"), "{slower}");
    assert!(line(&["pread", "r2", "12"]).ends_with("same, within 2 %"), "{}", by.stdout);
    let nodes = place.run(&["compare", "--by", "node", "runs"]).expect_code(1);
    assert!(nodes.stdout.starts_with("node: 24 values of 24 runs\n"), "{}", nodes.stdout);
    assert!(nodes.stdout.contains("mmap: 24 values (n00, n01, n02 …)"), "{}", nodes.stdout);
    assert!(nodes.stdout.contains("figures are not compared: the fact has 24 values"), "{}", nodes.stdout);
    place.write("runs/torn.jsonl", "");
    let json = place.run(&["compare", "--by", "rack", "--json", "runs"]);
    super::compare::expect_schema_of(&place, "compare-by", &json.stdout);
}

#[test]
fn a_thread_per_cpu_is_one_situation_on_all_machines() {
    let place = Place::new();
    let of = |started_unix_s, thread_per_cpu| MadeUp { started_unix_s, thread_per_cpu, ..MadeUp::default() };
    let unlike = [("two.jsonl", of(1, Some(2))), ("eight.jsonl", of(2, Some(8))), ("one.jsonl", of(3, None))];
    unlike.iter().for_each(|(name, run)| drop(place.write(name, run.file())));
    let by = place.run(&["compare", "--by", "cpus", "two.jsonl", "eight.jsonl"]).expect_code(0);
    let line = by.stdout.lines().find(|line| line.contains("CPU")).expect("a label");
    assert!(line.contains(" · a thread per CPU (") && line.ends_with(" (2 and 8 threads)"), "{line}");
    assert!(by.stdout.contains("time over 2"), "{}", by.stdout);
    let changed = place.run(&["compare", "two.jsonl", "--", "eight.jsonl"]).expect_code(0);
    assert!(changed.stdout.contains(" (2 and 8 threads)"), "{}", changed.stdout);
    // Reports of one machine have the number.
    let report = place.run(&["report", "--markdown", "two.jsonl"]).expect_code(0);
    assert!(report.stdout.contains("2 threads") && !report.stdout.contains("per CPU"), "{}", report.stdout);
    expect_message(
        &place.run(&["compare", "two.jsonl", "--", "one.jsonl"]),
        2,
        "the two sides have no conditions in common",
    );
}

#[test]
fn values_without_a_run_that_counts_are_named() {
    let place = Place::new();
    std::fs::create_dir(place.file("runs")).expect("a directory");
    let run = MadeUp { plan: Some("1a2b3c4d"), ..MadeUp::default() };
    for (index, host) in ["n0", "n1", "n2", "n3", "n4"].into_iter().enumerate() {
        let of = MadeUp { host, started_unix_s: run.started_unix_s + index as u64, ..run };
        let of = match host {
            "n3" => MadeUp { is_complete: false, ..of },
            "n4" => MadeUp { plan: Some("ffffffff"), ..of },
            _ => of,
        };
        place.write(&format!("runs/{host}.jsonl"), of.file());
    }
    // A second try made good for the first, and a copy is not a run of another host.
    let again = MadeUp { host: "n1", started_unix_s: 1_800_000_100, is_complete: false, ..run };
    place.write("runs/n1-stopped.jsonl", again.file());
    place.write("runs/torn.jsonl", "{");
    place.write("hosts.txt", "n0\nn1\n\n n2 \nn3\nn4\nn5\nn5\n");
    let by = place.run(&["compare", "--by", "machine", "--all-of", "hosts.txt", "runs"]).expect_code(1);
    let missing = "\n\nMissing\n  n5: no run\n  n3: runs/n3.jsonl is not complete\n  \
                   n4: runs/n4.jsonl has the plan ffffffff, and most have 1a2b3c4d\n  runs/torn.jsonl, line 1: ";
    assert!(by.stdout.contains(missing), "{}", by.stdout);
    assert!(by.stdout.contains("1 situation: the runs disagree in 0"), "the others go on: {}", by.stdout);
    let json = |words: &[&str]| {
        let mut words = words.to_vec();
        words.extend(["--by", "host-name", "--json"]);
        let finished = place.run(&[&["compare"], &words[..]].concat());
        super::compare::expect_schema_of(&place, "compare-by", &finished.stdout);
        let missing = finished.judged()["missing"].as_array().map_or(0, Vec::len);
        (finished.code(), missing)
    };
    assert_eq!(json(&["--all-of", "hosts.txt", "runs"]), (1, 4));
    assert_eq!(json(&["--all-of", "6", "runs"]), (1, 4));
    assert_eq!(json(&["runs"]), (1, 0));
    std::fs::remove_file(place.file("runs/torn.jsonl")).expect("removed");
    let good = ["runs/n0.jsonl", "runs/n1.jsonl", "runs/n1-stopped.jsonl"];
    assert_eq!(json(&[&["--all-of", "2"], &good[..]].concat()), (0, 0));
    let page = ["compare", "--by", "machine", "--all-of", "3", "--html", "page.html"];
    place.run(&[&page[..], &good].concat()).expect_code(1);
    let page = std::fs::read_to_string(place.file("page.html")).expect("a page");
    assert!(page.contains("<li>1 of 3 values have no run</li>"), "{page}");
    place.write("runs/copy.jsonl", run.file());
    place.write("runs/first.jsonl", run.file());
    let by = place.run(&["compare", "--by", "kernel", "runs"]).expect_code(1);
    assert_eq!(by.stderr, "left out: runs/first.jsonl is the same run as runs/copy.jsonl\n");
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
