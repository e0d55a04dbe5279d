//! `compare --by`: runs of many machines by a fact, and values without a run.

use super::made_up::{MadeUp, labelled_run};
use crate::support::schema::expect_schema_of;
use crate::support::{Place, expect_message};

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
    let by = place.run(&["compare", "--by", "rack", "runs/n00.jsonl", "runs/n01.jsonl"]).expect_code(0);
    assert!(by.stdout.starts_with("rack: r1 (1 run), r2 (1 run)\n"), "{}", by.stdout);
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
    expect_schema_of(&place, "compare-by", &json.stdout);
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
    let by = place.run(&["compare", "--by", "host-name", "--all-of", "hosts.txt", "runs"]).expect_code(1);
    let missing = "\n\nMissing\n  n5: no run\n  n3: runs/n3.jsonl is not complete\n  \
                   n4: runs/n4.jsonl has the plan ffffffff, and most have 1a2b3c4d\n  runs/torn.jsonl, line 1: ";
    assert!(by.stdout.contains(missing), "{}", by.stdout);
    assert!(by.stdout.contains("1 situation: the runs disagree in 0"), "the others go on: {}", by.stdout);
    let json = |words: &[&str]| {
        let mut words = words.to_vec();
        words.extend(["--by", "host-name", "--json"]);
        let finished = place.run(&[&["compare"], &words[..]].concat());
        expect_schema_of(&place, "compare-by", &finished.stdout);
        let missing = finished.judged()["missing"].as_array().map_or(0, Vec::len);
        (finished.code(), missing)
    };
    assert_eq!(json(&["--all-of", "hosts.txt", "runs"]), (1, 4));
    assert_eq!(json(&["--all-of", "6", "runs"]), (1, 4));
    assert_eq!(json(&["runs"]), (1, 0));
    std::fs::remove_file(place.file("runs/torn.jsonl")).expect("removed");
    let good = ["runs/n0.jsonl", "runs/n1.jsonl", "runs/n1-stopped.jsonl"];
    assert_eq!(json(&[&["--all-of", "2"], &good[..]].concat()), (0, 0));
    let page = ["compare", "--by", "host-name", "--all-of", "3", "--html", "page.html"];
    place.run(&[&page[..], &good].concat()).expect_code(1);
    let page = std::fs::read_to_string(place.file("page.html")).expect("a page");
    assert!(page.contains("<li>1 of 3 values have no run</li>"), "{page}");
    place.write("runs/copy.jsonl", run.file());
    place.write("runs/first.jsonl", run.file());
    let by = place.run(&["compare", "--by", "kernel", "runs"]).expect_code(1);
    assert_eq!(by.stderr, "left out: runs/first.jsonl is the same run as runs/copy.jsonl\n");
    // The copy that has most of it stays, whatever its name.
    place.write("runs/a-part.jsonl", MadeUp { is_complete: false, ..run }.file());
    let by = place.run(&["compare", "--by", "kernel", "runs"]).expect_code(1);
    assert_eq!(
        by.stderr,
        "left out: runs/a-part.jsonl is the same run as runs/copy.jsonl\n\
         left out: runs/first.jsonl is the same run as runs/copy.jsonl\n"
    );
}
