//! What is typed and what it means, and the statuses with which commands end.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::support::terminal::Terminal;
use crate::support::{NOBODY, PAGEWISE, Place, expect_message, is_root, skipped, without_memory_limit};

/// The plan of a command that takes `--dry-run --json`, without what is random.
#[track_caller]
fn plan(place: &Place, words: &str) -> Value {
    let words: Vec<&str> = words.split(' ').chain(["--dry-run", "--json"]).collect();
    let finished = place.run(&words).expect_code(0);
    let mut planned = finished.judged();
    assert_eq!((&planned["schema"], place.traces().len()), (&Value::from(1), 0), "{words:?}");
    planned["plan"]["seed"] = Value::Null;
    planned
}

#[test]
fn a_question_stands_at_the_top_and_its_file_or_directory_behind_it() {
    // The size of a dataset follows from what is free, which other tests change on their
    // filesystem.
    let place = Place::apart();
    place.write("app.log", b"line\n".repeat(200_000));
    std::fs::create_dir(place.file("data")).expect("directory");
    for (short, long) in [
        ("read", "run read"),
        ("read data --quick", "run read --dir data --quick"),
        ("run scan data", "run scan --dir data"),
        ("scan app.log", "run scan --file app.log"),
        ("append data --record-size 1k", "run append --dir data --record-size 1KiB"),
        ("fill --file-size 64m", "run fill --file-size 64MiB"),
        ("cliff --memory 64M --quick", "run cliff --memory 64MiB --quick"),
        ("run cliff --memory 64M", "cliff --memory 64MiB"),
        ("read --read-size 4k,64K", "run read --read-size 4096B,64KiB"),
        (
            "scan data --victim read:pread,size=4KiB --methods pread,pread:direct --rate 400",
            "read data --workload random-read --methods pread --read-size 4KiB --reads-per-op 1 --cache warm --threads 1 --no-ceilings --beside none --beside scan:pread,rate=400MiB/s --beside scan:pread:direct,rate=400MiB/s",
        ),
        (
            "scan data --victim read:pread,file=./app.log --methods pread --rate 400",
            "read --file app.log --dir data --workload random-read --methods pread --read-size 16KiB --reads-per-op 1 --cache warm --threads 1 --no-ceilings --beside none --beside scan:pread,rate=400MiB/s",
        ),
    ] {
        match without_memory_limit().filter(|_| short.contains("--memory")) {
            None => assert_eq!(plan(&place, short), plan(&place, long), "{short}"),
            Some(reason) => skipped("cgroup", &format!("{short}: {reason}")),
        }
    }
    assert_eq!(place.entries().len(), 2, "{:?}", place.entries());
    let of_victim = |question: &[&str]| place.run(&[question, &["--victim", "read:pread"]].concat());
    expect_message(&of_victim(&["scan", "app.log"]), 2, "name a directory instead of your file");
    expect_message(&of_victim(&["fill"]), 2, "read, scan and append");
    let of_actor = "/dev/shm";
    match rustix::fs::stat(of_actor).map(|found| found.st_dev) {
        Ok(device) if rustix::fs::stat(place.path()).is_ok_and(|here| here.st_dev != device) => {
            let beside = ["read", "app.log", "--beside", "read:pread,rate=max", "--dir", of_actor];
            expect_message(&place.run(&beside), 2, "/dev/shm is on another one");
        }
        found => skipped("tmpfs", &format!("{of_actor}: {found:?}, the filesystem of the build")),
    }
}

#[test]
fn a_run_file_needs_a_stdout_that_is_open() {
    let place = Place::new();
    let run = |to: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("exec {PAGEWISE} read --dry-run --out - {to}")]);
        place.settle(&mut shell);
        place.finish(shell.spawn().expect("start"))
    };
    expect_message(&run(">&-"), 2, "that is closed");
    run(">/dev/null").expect_code(0);
}

#[test]
fn the_bare_command_takes_a_directory_a_variant_and_a_time() {
    let place = Place::new();
    std::fs::create_dir(place.file("data")).expect("directory");
    let overview = |words: &[&str]| {
        let finished = place.run(&[words, &["--dry-run", "--json"]].concat()).expect_code(0);
        let plans: Vec<Value> = serde_json::from_str(&finished.stdout).expect("a list");
        plans
    };
    let names = |plans: &[Value]| plans.iter().map(|one| one["plan"]["question"].clone()).collect::<Vec<_>>();
    let usual = overview(&["--quick"]);
    assert_eq!(names(&usual), ["read", "scan", "append", "fill"]);
    let cells = |plans: &[Value]| -> usize {
        plans.iter().map(|one| one["plan"]["cells"].as_array().expect("cells").len()).sum()
    };
    assert_eq!(cells(&overview(&[])), cells(&usual));
    assert!(cells(&overview(&["--full"])) > cells(&usual));
    let elsewhere = overview(&["--dir", "data"]);
    let directory = elsewhere[0]["plan"]["source"]["directory"].as_str().expect("text");
    assert!(directory.ends_with("/data"), "{directory}");
    let takes =
        |plans: &[Value]| plans.iter().map(|one| one["duration_ns"].as_u64().expect("ns")).sum::<u64>();
    let short = overview(&["--budget", "60s"]);
    assert_eq!(cells(&short), cells(&usual), "no method is left out");
    assert!(takes(&short) <= 60_000_000_000 && takes(&usual) > takes(&short), "{} ns", takes(&short));
}

#[test]
fn methods_that_cannot_sync_as_asked_are_named() {
    let place = Place::new();
    let notes = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--dry-run"]).collect();
        place.run(&words).expect_code(0).stderr
    };
    let ring = "note: uring:direct+depth=32 is left out: it has 512KiB under way at once";
    let found = notes("update --block-size 16KiB --quick");
    assert!(found.contains(ring), "{found}");
    let some = notes("append --sync every:64KiB --quick");
    assert!(some.contains("note: mmap:buffer=4KiB is left out of 1 of 2 comparisons: "), "{some}");
    for words in ["update", "append", "append --sync every:64KiB --methods pwrite,pwrite:buffer=1MiB"] {
        let found = notes(words);
        assert!(!found.contains("left out"), "{words}: {found}");
    }
}

#[test]
fn a_memory_limit_of_a_full_update_is_refused_with_what_helps() {
    let place = Place::new();
    let full = ["update", "--full", "--memory", "64MiB", "--dry-run"];
    expect_message(&place.run(&full), 2, "with a memory limit use --cache cold");
    place.run(&[&full[..], &["--cache", "cold"]].concat()).expect_code(0);
}

#[test]
fn help_has_the_exit_statuses_and_commands_end_with_them() {
    let place = Place::new();
    let help = place.run(&["--help"]).expect_code(0).stdout;
    let codes: Vec<i32> = help
        .lines()
        .skip_while(|line| *line != "Exit status:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.trim().split_once(' ').expect("a code and its meaning"))
        .map(|(code, _)| code.parse().expect("a number"))
        .collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 130]);
    // 1, 4, 5 and 130 are expected of runs by other tests.
    place.run(&["read", "--dry-run"]).expect_code(0);
    expect_message(&place.run(&["raed"]), 2, "did you mean 'read'?");
    let nothing = [
        "read",
        "--workload=random-read",
        "--methods=jvm/pread",
        "--jdk=/nonexistent",
        "--file-size=4MiB",
        "--cache=warm",
        "--threads=1",
        "--trial-rounds=1",
        "--out=run.jsonl",
    ];
    place.run(&nothing).expect_code(3);
    place.run(&["report", "run.jsonl"]).expect_code(0);
}

/// One message says all that is needed, and the command in it is taken.
#[test]
fn an_own_file_under_a_memory_limit_takes_one_correction() {
    if let Some(reason) = without_memory_limit() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    place.write("index.bin", vec![1; 64 << 20]);
    for (words, evicted, cache) in [
        ("read --file index.bin --memory 32MiB", true, "warm"),
        ("read index.bin --memory 32MiB --methods mmap,pread", true, "warm"),
        ("scan index.bin --memory 32MiB", true, "cold"),
        ("cliff index.bin --memory 16MiB --quick", true, "warm"),
        ("scan index.bin --cache cold", true, "cold"),
        ("read index.bin", false, "as-is"),
    ] {
        let typed: Vec<&str> = words.split(' ').chain(["--dry-run", "--json"]).collect();
        let mut finished = place.run(&typed);
        if evicted {
            expect_message(
                &finished,
                2,
                "other programs that read the file slow down then: allow it with: pagewise ",
            );
            let (_, command) =
                finished.stderr.trim_end().split_once(": allow it with: pagewise ").expect("a command");
            finished = place.run(&command.split(' ').collect::<Vec<_>>());
        }
        let plan = finished.expect_code(0).judged()["plan"].clone();
        assert_eq!(plan["source"]["evict"], evicted, "{words}");
        assert_eq!(plan["cells"][0]["conditions"]["cache"], cache, "{words}");
    }
}

#[test]
fn a_memory_limit_that_cannot_be_set_is_reported_before_anything_is_written() {
    if !is_root() {
        return;
    }
    let place = Place::on(&std::env::temp_dir());
    let ways = "One can be set with: sudo pagewise …, systemd-run --user --scope -p Delegate=yes pagewise …";
    for (words, code, message) in [
        ("cliff --memory 64MiB --quick", 3, "cliff needs a memory limit: "),
        ("read --memory 64MiB", 3, "read needs a memory limit: "),
        ("read --memory 64MiB --budget 1s", 3, "read needs a memory limit: "),
        ("cliff --quick", 2, "cliff needs a memory limit: write --memory 256MiB"),
        ("lucene", 2, "needs a memory limit: write --memory 256MiB"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let Some(mut command) = place.command_as(NOBODY, &words) else { return };
        command.env_remove("XDG_RUNTIME_DIR");
        let finished = place.finish(command.spawn().expect("start"));
        expect_message(&finished, code, message);
        assert!(finished.stderr.contains(ways), "{finished:?}");
        assert!(place.entries().is_empty(), "{:?}", place.entries());
        assert_eq!(std::fs::read_dir(place.state()).expect("list").count(), 0);
    }
}

#[test]
fn methods_lists_what_a_question_takes_with_its_meaning_and_state() {
    let place = Place::new();
    let text = place.run(&["methods"]).expect_code(0).stdout;
    for wanted in [
        "io_uring_enter(2); Linux 5.1",
        "MMapDirectory",
        "FileChannel.read",
        "MADV_POPULATE_READ",
        "pretouch=SIZE",
    ] {
        assert!(text.contains(wanted), "'{wanted}' is not in: {text}");
    }
    let of = |question: &str| place.run(&["methods", question, "--json"]).expect_code(0).judged();
    let append = of("append");
    let named = |list: &Value, name: &str| {
        list.as_array().expect("a list").iter().find(|one| one["name"] == name).cloned()
    };
    assert!(named(&append["methods"], "pread").is_none() && named(&append["methods"], "pwrite").is_some());
    assert!(named(&append["options"], "prefetch").is_none() && named(&append["options"], "touch").is_some());
    for list in [&append["methods"], &append["options"]] {
        for shown in list.as_array().expect("a list") {
            let reason = shown["reason"].as_str();
            assert_eq!(shown["available"] == true, reason.is_none(), "{shown}");
            assert!(!shown["meaning"].as_str().expect("text").is_empty(), "{shown}");
        }
    }
    // What cannot be had is named with its reason, as by doctor.
    let mut command = place.command(&["methods", "read", "--json"]);
    command.env("JAVA_HOME", "/nonexistent").env("PATH", "/nonexistent");
    let bare = place.finish(command.spawn().expect("start")).expect_code(0).judged();
    let python = named(&bare["methods"], "python/pread").expect("it is listed");
    assert!(python["available"] == false && python["reason"].is_string(), "{python}");
    expect_message(&place.run(&["methods", "walk"]), 2, "'walk' is neither a question (read, ");
    expect_message(
        &place.run(&["read", "--methods", "NIOFSDirectory"]),
        2,
        "is called jvm/filechannel:heap-buffer here",
    );
    expect_message(&place.run(&["read", "--methods", "java/mmap"]), 2, "write jvm/METHOD");
}

#[test]
fn much_writing_needs_consent_and_what_was_allowed_is_a_limit() {
    // A filesystem on a device: memory does not wear.
    let place = Place::new();
    if rustix::fs::statfs(place.path()).is_ok_and(|found| found.f_type == 0x0102_1994) {
        return skipped("disk", "the files are in memory");
    }
    let planned = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--dry-run", "--json"]).collect();
        place.run(&words).expect_code(0).judged()
    };
    let gib = |bytes: &Value| bytes.as_u64().expect("bytes") as f64 / f64::from(1 << 30);
    // The defaults write less than is asked about.
    for words in ["append", "append --quick", "fill --dir .", "fill --dir . --quick"] {
        let planned = planned(words);
        assert!(
            gib(&planned["written_bytes"]) <= 8.0 && gib(&planned["most_written_bytes"]) <= 8.01,
            "{words}"
        );
        assert!(gib(&planned["plan"]["max_written_bytes"]) <= 8.0, "{words}");
    }
    let many = "append --record-size 100B,1KiB --sync none,end,every:1MiB --file-size 64MiB";
    assert!(gib(&planned(many)["written_bytes"]) > 8.0);
    let refused = place.run(&many.split(' ').collect::<Vec<_>>());
    expect_message(&refused, 2, "which wears flash: allow it with: pagewise append --record-size 100B,1KiB ");
    let (_, allowed) = refused.stderr.trim_end().split_once("allow it with: pagewise ").expect("a command");
    assert!(allowed.contains("--max-writes "), "{allowed}");
    let allowed = planned(allowed);
    assert!(gib(&allowed["plan"]["max_written_bytes"]) >= gib(&allowed["written_bytes"]), "{allowed}");
    let words = [&many.split(' ').collect::<Vec<_>>()[..], &["--max-writes", "1g"]].concat();
    expect_message(
        &place.run(&words),
        2,
        "and --max-writes allows 1 GiB: allow more, or choose fewer methods",
    );
    assert!(place.entries().is_empty(), "{:?}", place.entries());
    // In memory nothing is asked.
    planned_in_memory(&place);
}

/// A run on a terminal is asked, and the answer decides; with consent it gets as far as the run
/// file, which exists.
#[test]
fn a_terminal_is_asked_before_much_is_written_and_before_a_file_is_evicted() {
    let place = Place::new();
    if rustix::fs::statfs(place.path()).is_ok_and(|found| found.f_type == 0x0102_1994) {
        return skipped("disk", "the files are in memory");
    }
    place.write("taken.jsonl", "");
    place.write("index.bin", vec![1; 4 << 20]);
    let before = place.entries();
    let many =
        "append --record-size 100B,1KiB --sync none,end,every:1MiB --file-size 64MiB --out taken.jsonl";
    let wears = "which wears flash. Go on? [y/N]";
    let own = "read index.bin --cache cold --methods pread --out taken.jsonl";
    let evicts = "Drop index.bin from the page cache? [y/N]";
    let (exists, allow) = ("taken.jsonl", "allow it with: pagewise read index.bin");
    for (words, question, answer, code, message) in [
        (many, wears, "n", 130, ""),
        (many, wears, "", 130, ""),
        (many, wears, "yes", 2, exists),
        (many, wears, "what", 2, "allow it with: pagewise append"),
        (own, evicts, "n", 2, allow),
        (own, evicts, "Y", 2, exists),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let (child, mut terminal) = Terminal::start(&place, &words);
        terminal.expect_shown(question);
        terminal.enter(answer);
        let shown = terminal.all_shown();
        assert_eq!(place.finish(child).code(), code, "{answer}: {shown}");
        let (_, after) = shown.split_once(question).expect("seen above");
        let last = after.lines().rfind(|line| line.starts_with("pagewise: ")).unwrap_or_default();
        assert!(last.contains(message) && last.is_empty() == message.is_empty(), "{answer}: {shown}");
        assert_eq!(place.entries(), before, "{answer}");
        place.expect_no_process();
    }
}

fn planned_in_memory(place: &Place) {
    let words = ["fill", "--file-size=4GiB", "--dry-run", "--json"];
    let finished = place.run(&words).expect_code(0);
    assert!(!finished.stderr.contains("--max-writes"), "{finished:?}");
}

#[test]
fn a_run_says_first_what_it_will_do() {
    let place = Place::new();
    let words = "read --workload random-read --methods pread --cache warm --file-size 4MiB --trial-rounds 1 --out run.jsonl";
    let finished = place.run(&words.split(' ').collect::<Vec<_>>());
    let first = finished.stderr.lines().next().expect("a line");
    assert!(
        first.starts_with("read: about ") && first.contains("; writes at most about 4 MiB to "),
        "{first}"
    );
}

#[test]
fn an_argument_that_is_not_utf_8_is_refused_like_any_other() {
    let place = Place::new();
    let finished = place.run(&[OsStr::from_bytes(b"\xff")]).expect_code(2);
    assert!(finished.stderr.contains('\u{fffd}'), "{}", finished.stderr);
    assert_eq!(finished.stderr.trim_end().lines().count(), 1, "{}", finished.stderr);
}

/// A worker that cannot be built here is known before a run: its cells are named apart.
#[test]
fn a_dry_run_counts_cells_and_names_what_will_be_unavailable() {
    let place = Place::new();
    // No folder for workers, so none can be built, whether there is a toolchain or not.
    place.write("plain", b"");
    let words = ["read", "--methods=go/pread,pread", "--file-size=64MiB", "--cache=warm,cold", "--dry-run"];
    let run = |more: &[&str]| {
        let mut command = place.command(&[&words[..], more].concat());
        command.env("XDG_CACHE_HOME", place.file("plain"));
        place.finish(command.spawn().expect("pagewise starts")).expect_code(0)
    };
    let text = run(&["--threads=1,2"]).stdout;
    let counted = "measured: 2 methods x 2 workloads x 2 cache states x 2 thread counts = 16 cells\n";
    assert!(text.contains(counted), "{text}");
    assert!(text.contains("  unavailable  go/pread (8 cells): "), "{text}");
    assert!(text.contains("  cache states   warm; cold\n"), "{text}");
    // What all share is there once, and a summary has no line for each cell.
    assert_eq!((text.matches("64 MiB").count(), text.lines().count() < 25), (2, true), "{text}");
    let json = run(&["--json"]).judged();
    assert_eq!(json["unavailable"][0]["method"], "go/pread");
    assert_eq!(json["unavailable"].as_array().map(Vec::len), Some(1));
}
