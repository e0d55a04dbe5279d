//! `pagewise advise`: a program, from its first run to the answer.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use pagewise_model::Outcome;
use serde_json::Value;

use crate::replay::{FILE_BYTES, data, judged, methods, watched_place};
use crate::support::until::can_limit_memory;
use crate::support::{Finished, Place, advise, load, of_methods, was_disturbed};

/// A run into run.jsonl, begun again twice if somebody uses the device so that a method has fewer
/// samples than a verdict needs: then every invalid one must say so. True if it has them.
#[track_caller]
fn measured(place: &Place, words: &[&str]) -> (Finished, bool) {
    const RUNS: usize = 3;
    for run in 1.. {
        for left in ["run.jsonl", "run.trace", "run.html", "ran"] {
            let _ = fs::remove_file(place.file(left));
        }
        let finished = place.run(words);
        let cells = finished.judged()["cells"].clone();
        let mut measured =
            cells.as_array().expect("cells").iter().filter(|cell| cell["role"] == "measured").peekable();
        if measured.peek().is_some() && measured.all(|cell| cell["samples"].as_u64() >= Some(5)) {
            return (finished, true);
        }
        let run_file = load(&place.file("run.jsonl"));
        let invalid = of_methods(&run_file).into_iter().filter(|sample| sample.valid().is_none());
        let undisturbed: Vec<_> = invalid.filter(|sample| !was_disturbed(sample)).collect();
        assert!(undisturbed.is_empty(), "{undisturbed:?}");
        if run == RUNS {
            return (finished, false);
        }
    }
    unreachable!("it ends with the last run")
}

#[test]
fn a_program_is_advised_how_to_read_its_file() {
    let Some((_turn, place)) = watched_place() else { return };
    let path = data(&place);
    let options = ["--json", "--out=run.jsonl", "--methods=pread:direct,mmap:random"];
    let (finished, is_measured) = measured(&place, &advise(&options, &["cat", &path]));
    assert!(finished.stderr.contains("first run, as it is: "), "{}", finished.stderr);
    assert!(place.file("run.trace").exists(), "{}", finished.stderr);
    if !is_measured {
        return;
    }
    let judged = judged(&finished, true);
    let found = methods(&judged);
    for method in ["pread:direct", "mmap:random", judged["self_replay"]["method"].as_str().expect("a method")]
    {
        assert!(found.contains(&method), "{method}: {found:?}");
    }
    assert!(
        judged["advice"][0]["sentence"].as_str().is_some_and(|sentence| sentence.contains("choose ")),
        "{judged}"
    );
    assert!(
        judged["gain"]["sentence"].as_str().is_some_and(|sentence| sentence.starts_with("its reads by")),
        "{}",
        judged["gain"]
    );
    assert_eq!(judged["gain"]["is_unwatched"], true, "{}", judged["gain"]);
    let unwatched = load(&place.file("run.jsonl")).program_runs;
    let unwatched: Vec<bool> = unwatched.iter().map(|again| again.unwatched_ns.is_some()).collect();
    assert_eq!(unwatched, [true, false], "once in turn with the replay");
    let runs = judged["self_replay"]["program_runs_bytes"].as_array().expect("runs of the program");
    assert_eq!(runs.len(), 3, "{runs:?}");
    let files = judged["inspection"]["files"].as_array().expect("files");
    let file = files.iter().find(|file| file["path"] == path.as_str()).expect("the file");
    assert_eq!(file["reads"]["bytes"], FILE_BYTES);
    // The page is a function of the run file alone: of the trace nothing is needed any more.
    fs::remove_file(place.file("run.trace")).expect("remove");
    place.run(&["report", "run.jsonl", "--html", "page.html"]).expect_code(0);
    let page = fs::read_to_string(place.file("page.html")).expect("a page");
    let gain = judged["gain"]["sentence"].as_str().expect("a sentence");
    for part in ["Where in its file does the program read, and when?", "(cat)</dt>", gain] {
        assert!(page.contains(part), "{part}");
    }
    place.expect_no_trace();
}

/// The files that are named are replayed together; the others that it reads are left out.
#[test]
fn a_program_is_advised_how_to_read_several_files() {
    let Some((_turn, place)) = watched_place() else { return };
    let first = data(&place);
    let second = place.write_synced("second.bin", vec![5; 3 << 20]);
    let options = ["--json", "--out=run.jsonl", "--methods=mmap:random", "--file", &first, "--file", &second];
    let (finished, is_measured) = measured(&place, &advise(&options, &["cat", &first, &second]));
    let run = load(&place.file("run.jsonl"));
    assert_eq!(run.header.plan.source.own_files().count(), 2);
    for sample in of_methods(&run) {
        if let Outcome::Taken { evidence, .. } = &sample.outcome {
            assert_eq!(Some(evidence.checksum), evidence.expected_checksum);
            assert_eq!(evidence.requested_bytes, FILE_BYTES + (3 << 20));
        }
    }
    if is_measured {
        let judged = judged(&finished, true);
        assert_eq!(judged["self_replay"]["stands"], true, "{}", judged["self_replay"]);
    }
}

/// A mapping program runs in turn with its replay without windows, where no touch is seen: what
/// came in for its faults counts.
#[test]
fn a_program_that_maps_its_file_is_compared_by_what_its_faults_bring_in() {
    let Some((_turn, place)) = watched_place() else { return };
    if pagewise_host::windows::refusal().is_some() {
        return;
    }
    let path = data(&place);
    let every_other = "import mmap,sys;f=open(sys.argv[1]);m=mmap.mmap(f.fileno(),0,access=1);\
                       m.madvise(mmap.MADV_RANDOM);sum(m[::8192])";
    let file = format!("--file={path}");
    let options = ["--json", "--windows", "--out=run.jsonl", "--methods=pread:random", &file];
    let (finished, is_measured) = measured(&place, &advise(&options, &["python3", "-c", every_other, &path]));
    if is_measured {
        let proof = &judged(&finished, true)["self_replay"];
        assert_eq!(
            (&proof["method"], &proof["program_bytes"]),
            (&"mmap:random".into(), &(FILE_BYTES / 2).into())
        );
    }
}

#[test]
fn the_answer_stands_below_what_the_program_does() {
    let Some((_turn, place)) = watched_place() else { return };
    let path = data(&place);
    // One recording: the file is named. What the command prints is dropped, and its status named.
    let file = format!("--file={path}");
    let script = format!("cat {path}; exit 3");
    let options = [file.as_str(), "--out=run.jsonl", "--methods=pread:random"];
    let finished = place.run(&advise(&options, &["sh", "-c", &script]));
    // A busy machine disturbs samples.
    let finished = finished.expect_code_for(&load(&place.file("run.jsonl")));
    let inspected = finished.stdout.find("brought in").expect("what it does");
    let answer = finished.stdout.find("the trace stands for the program").expect("the answer");
    assert!(inspected < answer, "{}", finished.stdout);
    assert!(finished.stdout.len() < 20_000, "the output of the command is not ours");
    assert!(finished.stderr.contains("note: the command ended with status 3"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("first run"), "{}", finished.stderr);
    assert!(place.file("run.html").exists());
    place.expect_no_trace();
}

#[test]
fn what_a_program_leaves_running_goes_on() {
    let Some((_turn, place)) = watched_place() else { return };
    let path = data(&place);
    let script = format!("cat {path}; echo ran >>ran; (exec >late.log 2>&1; sleep 1; echo late >>late) &");
    let words = advise(&["--out=run.jsonl", "--methods=pread:random"], &["sh", "-c", &script]);
    let finished = place.run(&words);
    let lines = |name| fs::read_to_string(place.file(name)).unwrap_or_default().lines().count();
    let ran = lines("ran");
    assert!(ran > 4, "{ran} runs, some in turn with the replay: {finished:?}");
    // Workers end meanwhile, and what they leave behind ends with them.
    for _ in 0..100 {
        if lines("late") == ran {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{ran} runs, and {} of them ended what they had begun", lines("late"));
}

#[test]
fn a_trace_that_no_worker_can_replay_is_removed() {
    let Some((_turn, place)) = watched_place() else { return };
    if !can_limit_memory() {
        return;
    }
    let path = data(&place);
    // A buffer holds all of the file for a while, beside which the limit leaves no worker room.
    let script = format!("dd if={path} bs={FILE_BYTES} iflag=fullblock | (sleep 0.3; cat)");
    let limit = format!("--memory={}KiB", FILE_BYTES / 1024 * 3 / 2);
    let words = advise(&["--out=run.jsonl", &limit], &["sh", "-c", &script]);
    let finished = place.run(&words).expect_code(1);
    assert!(finished.stderr.contains("is too small for a worker here"), "{}", finished.stderr);
    assert!(!place.file("run.trace").exists() && !place.file("run.jsonl").exists());
    place.expect_no_trace();
}

#[test]
fn a_program_that_does_something_else_the_second_time_is_noticed() {
    let Some((_turn, place)) = watched_place() else { return };
    let path = data(&place);
    // The descriptor is open for long enough to be looked at.
    let script =
        format!("exec 3<{path}; sleep 0.2; if [ -e ran ]; then head -c 1M; else cat; fi <&3; touch ran");
    let options = ["--json", "--methods=pread:random", "--out=run.jsonl"];
    let (finished, is_measured) = measured(&place, &advise(&options, &["sh", "-c", &script]));
    if is_measured {
        judged(&finished, true);
    }
    let message = "in its first run and 1 MiB in its second: it does not do the same each time";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    // A stdin that is a file is read twice from where it stood.
    let script = "read line; cat >/dev/null";
    let words = advise(&["--json", "--methods=pread:random", "--out=stdin.jsonl"], &["sh", "-c", script]);
    let mut command: Command = place.command(&words);
    command.stdin(fs::File::open(&path).expect("open"));
    let finished = place.finish(command.spawn().expect("start"));
    assert!(!finished.stderr.contains("the same each time"), "{}", finished.stderr);
    let judged: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr));
    let files = judged["inspection"]["files"].as_array().expect("files");
    let read = files.iter().find(|file| file["path"] == path.as_str()).map(|file| &file["reads"]["bytes"]);
    assert!(read.and_then(Value::as_u64).is_some_and(|bytes| bytes >= FILE_BYTES), "{judged}");
}
