//! `pagewise conformance`: the shipped workers and the example in C conform, and one that is wrong
//! in one thing is shown that very thing.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::needs::ready;
use crate::support::{self, Finished, PAGEWISE, Place, skipped};
use pagewise_model::{Method, Worker, Workload};
use pagewise_protocol::Hello;
use serde_json::Value;

/// Tries a worker to the end; nothing is left.
#[track_caller]
fn try_worker(place: &Place, options: &[&str], command: &[&str]) -> Finished {
    let mut arguments = vec!["conformance"];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(command);
    let before = place.entries();
    let finished = place.run(&arguments);
    assert_eq!(place.entries(), before, "{finished:?}");
    place.expect_no_trace();
    finished
}

/// Names and details of the steps in one state.
fn steps<'a>(judged: &'a Value, state: &str) -> Vec<(&'a str, &'a str)> {
    let steps = judged["steps"].as_array().expect("steps").iter();
    let text = |step: &'a Value, name: &str| step[name].as_str().unwrap_or_default();
    steps
        .filter(|step| step["state"] == state)
        .map(|step| (text(step, "name"), text(step, "detail")))
        .collect()
}

/// Every step is right, and only what `may_lack` names is not tried.
#[track_caller]
fn conforms(place: &Place, command: &[&str], may_lack: &[&str]) -> Value {
    let finished = try_worker(place, &["--json", "--dir", "."], command);
    let judged: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert_eq!(steps(&judged, "wrong"), [], "{finished:?}");
    // On a busy machine the kernel may have kept a worker from its CPU for longer than clocks may
    // differ.
    let is_kept = |why: &str| why.starts_with("threads of the worker waited");
    for (name, why) in steps(&judged, "not-tried").into_iter().filter(|(_, why)| !is_kept(why)) {
        assert!(may_lack.iter().any(|lack| name.contains(lack)), "{name} was not tried: {why}");
    }
    assert_eq!(finished.code(), 0);
    judged
}

/// What it says in `hello` is what pagewise read in its table.
#[track_caller]
fn offers_what_is_known(worker: &Worker, command: &[&str]) {
    let output =
        Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).output().expect("it starts");
    let hello: Hello = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(hello.worker_warmup, u32::from(*worker == Worker::Jvm), "only the JVM compiles as it runs");
    for &workload in Workload::ALL {
        let methods = hello.methods(workload);
        for method in &methods {
            let known: Method = format!("{worker}/{method}").parse().expect(method);
            assert_eq!(known.unsuited(workload), None);
        }
        let words: BTreeSet<&str> = methods.iter().filter_map(|method| method.split(':').next()).collect();
        assert_eq!(words, Method::words(worker, workload).into_iter().collect(), "{workload}");
    }
}

/// The syncs that it offers were tried, except where a method has no use of them.
#[track_caller]
fn syncs_as_offered(judged: &Value, tried: &[&str]) {
    let ok: Vec<&str> = steps(judged, "ok").into_iter().map(|(name, _)| name).collect();
    for name in tried {
        assert!(ok.contains(name), "'{name}' was not tried: {ok:#?}");
    }
}

/// Steps that a method cannot do: its buffer has no commits, and a mapping no writes that are
/// syncs.
const NO_SUCH_SYNC: [&str; 4] = ["by msync", "by O_DSYNC", "by RWF_DSYNC", "commits of records"];

fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers").join(path).canonicalize().expect(path)
}

/// Runs a compiler; its stderr where it fails.
fn compile(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn the_native_worker_conforms() {
    // With 32 reads in flight none can depend on another.
    let judged =
        conforms(&Place::new(), &[PAGEWISE, "worker"], &[&NO_SUCH_SYNC[..], &["uring", "replay"]].concat());
    let tried = [
        "append mmap: a sync of each record by msync",
        "append pwrite: a sync of each record by RWF_DSYNC",
        "append write: a sync of each record by O_DSYNC",
        "append mmap: commits of records of 300 B by 3 threads",
        "append pwrite: commits of records of 300 B by 3 threads",
    ];
    syncs_as_offered(&judged, &tried);
}

#[test]
fn the_example_in_c_conforms() {
    let place = Place::new();
    let program = place.root().join("minimal");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-o"]).arg(&program).arg(shipped("c/minimal.c"));
    if let Err(reason) = compile(&mut cc) {
        if Command::new("cc").arg("--version").output().is_ok() {
            panic!("{reason}");
        }
        return skipped("cc", &format!("cc: {reason}"));
    }
    // It is short: one thread, no scan, nothing written, no heartbeat.
    let judged = conforms(&place, &[text(&program)], &["two threads", "scan", "append", "fill", "beats"]);
    assert_eq!(judged["worker"], "minimal");
    let source = std::fs::read_to_string(shipped("c/minimal.c")).expect("the source");
    assert!(source.lines().count() < 100);
}

#[test]
fn the_worker_in_go_conforms() {
    let Some(ready) = ready("go") else { return };
    let command = ready.program.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let judged = conforms(&Place::new(), &command, &NO_SUCH_SYNC);
    assert_eq!(judged["worker"], "go");
    let tried = [
        "append mmap: a sync of each record by msync",
        "append write: a sync of each record by sync_file_range",
        "append pwrite:buffer=64KiB: a sync of each record by O_DSYNC",
        "append bufio: a sync of each record by fsync",
        "append mmap: commits of records of 300 B by 3 threads",
        "append write: commits of records of 300 B by 3 threads",
        "append pwrite: commits of records of 300 B",
    ];
    syncs_as_offered(&judged, &tried);
    offers_what_is_known(&Worker::Go, &command);
}

#[test]
fn the_worker_in_python_conforms() {
    let Some(ready) = ready("python") else { return };
    let command = ready.program.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    // Threads cannot share a position; numpy may be missing.
    let may_lack = [&NO_SUCH_SYNC[..], &["readinto", "numpy-memmap"]].concat();
    let judged = conforms(&Place::new(), &command, &may_lack);
    assert_eq!(judged["worker"], "python");
    let tried = [
        "append mmap: a sync of each record by msync",
        "append write: a sync of each record by O_DSYNC",
        "append pwrite: a sync of each record by RWF_DSYNC",
        "append buffered-writer: a sync of each record by fdatasync",
        "append write: commits of records of 300 B",
    ];
    syncs_as_offered(&judged, &tried);
    offers_what_is_known(&Worker::Python, &command);
}

#[test]
fn the_worker_in_java_conforms() {
    let Some(ready) = ready("jvm") else { return };
    let command = ready.program.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let may_lack =
        [&NO_SUCH_SYNC[..], &["prefetch", "buffered-reader", "mmap: a sync", "mmap:buffer=64KiB: a sync"]];
    let judged = conforms(&Place::new(), &command, &may_lack.concat());
    assert_eq!(judged["worker"], "jvm");
    let tried = [
        "append mmap: a sync of each record by msync",
        "append filechannel:direct-buffer: a sync of each record by fsync",
        "append filechannel:heap-buffer: a sync of each record by O_DSYNC",
        "append filechannel:direct-buffer+buffer=64KiB: a sync of each record by fdatasync",
        "append mmap: commits of records of 300 B by 3 threads",
        "append filechannel:direct-buffer: commits of records of 300 B by 3 threads",
    ];
    syncs_as_offered(&judged, &tried);
    offers_what_is_known(&Worker::Jvm, &command);
}

fn misbehaving() -> PathBuf {
    let path = Path::new(PAGEWISE).with_file_name("examples").join("misbehaving_worker");
    assert!(path.exists(), "{} is missing; `cargo test` makes it", path.display());
    path
}

/// The worker that is wrong in `kind` fails a step whose name and detail hold these, and no step
/// of another subject is wrong than those in `also`.
#[track_caller]
fn is_reported(kind: &str, name: &str, detail: &str, also: &[&str]) {
    if let Err(wrong) = reported(kind, name, detail, also) {
        panic!("{kind}: '{name}' with '{detail}' is not reported: {wrong}");
    }
}

/// The same; the steps that are wrong where that one is not among them.
#[track_caller]
fn reported(kind: &str, name: &str, detail: &str, also: &[&str]) -> Result<(), String> {
    let worker = misbehaving();
    let place = Place::new();
    let patience = if kind == "stays" { "--patience=2" } else { "--patience=30" };
    let finished = try_worker(&place, &["--json", "--dir", ".", patience], &[text(&worker), kind]);
    let judged: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let wrong = steps(&judged, "wrong");
    for (other, seen) in &wrong {
        let expected = other.contains(name) || also.iter().any(|known| other.contains(known));
        assert!(expected, "{kind}: {other}: {seen}");
    }
    assert_eq!(finished.code(), i32::from(!wrong.is_empty()));
    let is_reported = wrong.iter().any(|(found, seen)| found.contains(name) && seen.contains(detail));
    if is_reported { Ok(()) } else { Err(format!("{wrong:#?}")) }
}

#[test]
fn the_honest_one_conforms() {
    let judged =
        conforms(&Place::new(), &[text(&misbehaving()), "honest"], &["sequential-read", "fill", "by msync"]);
    assert!(steps(&judged, "ok").len() > 50);
}

#[test]
fn what_a_hello_lacks_is_reported() {
    is_reported("other-protocol", "the protocol", "protocol is 3, pagewise speaks", &[]);
    is_reported("no-method", "names its methods", "it has no method", &[]);
    is_reported("no-version", "names itself", "version is empty", &[]);
    is_reported("other-sync", "names its sync calls", "unknown sync call 'sync'", &["by fdatasync"]);
}

#[test]
fn what_a_sample_says_wrongly_is_reported() {
    // Every way to read has samples, so each of them is reported.
    let every = ["scan", "append", "random-read"];
    is_reported("wrong-checksum", "mmap: go and sample", "come to", &[&every[..], &["fields"]].concat());
    is_reported("no-thread-operations", "go and sample", "missing field `thread_operations`", &every);
    is_reported(
        "one-thread-operation",
        "two threads",
        "thread_operations has 1 entries, threads is 2",
        &["by 3 threads"],
    );
    is_reported("fewer-syncs", "append", "take at least", &[]);
    is_reported("one-phase", "random-read", "count both phases", &["fields"]);
    is_reported(
        "too-much-time",
        "its clock agrees",
        "only",
        &[&every[..], &["heartbeats", "fields"]].concat(),
    );
    is_reported("half-the-time", "its clock agrees", "sample_ns was", &every);
    is_reported("overflow", "go and sample", "of 64 bits at most", &["heartbeats", "fields"]);
}

#[test]
fn latencies_that_are_wrong_are_reported() {
    let every = ["scan", "append", "random-read", "fields"];
    is_reported("too-many-latencies", "random-read", "were timed one by one", &every);
    is_reported("uncounted-bucket", "random-read", "one count for each bucket", &every);
    is_reported("unsorted-latencies", "random-read", "latency_ns is not ascending", &every);
    is_reported("no-latencies", "random-read", "there was no latency phase", &every);
}

#[test]
fn what_else_is_said_wrongly_is_reported() {
    is_reported("stray-line", "prints nothing but messages", "WARNING: a deprecated", &[]);
    let every = ["scan", "append", "random-read", "heartbeats", "fields"];
    is_reported("long-setup", "opens the file", "setup_ns is", &every);
    is_reported("uncalled-beats", "go and sample", "heartbeat_ns is 0", &[]);
    is_reported("missed-beats", "heartbeats: beats while idle", "did not beat once", &["beats in a sample"]);
    is_reported("no-errno", "a file that is not there", "errno is 0", &[]);
    is_reported("unavailable", "a file that is not there", "unavailable is 1", &[]);
}

#[test]
fn what_is_ignored_is_reported() {
    is_reported("ignores-first", "random-read", "begin with first_operation", &["fields"]);
    is_reported("ignores-bound", "max_thread_operations: keeps the bound", "is 10 for both", &[]);
    is_reported("ignores-span", "a span of half", "the span has", &["a span of"]);
    is_reported("ignores-last", "touched with their last word", "touch_last is 1", &[]);
    is_reported("ignores-verify", "hands verified bytes over", "nothing was put", &["random-read"]);
    is_reported("keeps-file", "from another file", "has the file open", &["random-read"]);
}

#[test]
fn a_name_that_means_another_thing_is_reported() {
    is_reported("maps-not", "random-read mmap", "'mmap' moves its bytes through a mapping", &[]);
    is_reported(
        "calls-not",
        "random-read pread",
        "'pread' moves its bytes through read calls",
        &["scan pread"],
    );
    is_reported("no-advice", "random-read mmap:random", "MADV_RANDOM is not in force", &[]);
}

#[test]
fn what_is_left_of_the_file_is_reported() {
    let every = ["scan", "append", "random-read", "heartbeats", "fields"];
    is_reported("keeps-mapping", "closes the file", "mappings of the file are left", &every);
    is_reported("keeps-descriptor", "closes the file", "descriptors of the file are left", &every);
}

#[test]
fn what_is_not_in_the_file_is_reported() {
    is_reported("loses-record", "every record is in the file at sample", "100 of 1048600 bytes", &["append"]);
    // Files in memory have no dirty pages, and before Linux 6.5 nobody reports them: there a sync
    // that is left out is not seen.
    let place = Place::new();
    let file = std::fs::File::create(place.root().join("dirty")).expect("create");
    // Others may sync the filesystem in between, and with it a file that the worker did not sync.
    let mut tries = 0..5;
    let is_seen = tries.clone().any(|_| {
        // In place: what replaces a file that is cut to nothing first, ext4 writes at once.
        file.write_all_at(&[1; 65_536], 0).expect("write");
        let is_dirty = pagewise_host::cache::dirty_bytes(&file).is_some_and(|dirty| dirty > 0);
        if !is_dirty {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        is_dirty
    });
    if !is_seen {
        return skipped("disk", "dirty pages cannot be seen here");
    }
    let also = ["sync every", "a sync of each record", "commits of records"];
    let try_it = |_| reported("ignores-sync", "sync at the end", "were still dirty after tear-down", &also);
    assert!(tries.any(|attempt| try_it(attempt).is_ok()), "a sync that is left out is not reported");
}

#[test]
fn what_should_be_refused_or_passed_over_is_reported() {
    is_reported("takes-any-method", "an unknown method is refused", "it took the method", &[]);
    is_reported("dislikes-fields", "ignores fields that it does not know", "unknown field", &[]);
}

#[test]
fn a_wrong_end_is_reported() {
    is_reported("status", "the end of stdin ends it", "ended with status 3", &[]);
    is_reported("stays", "the end of stdin ends it", "still runs 2 s after", &["and it ends"]);
    is_reported("leaves-process", "the end of stdin ends it", "(sleep) among them", &[]);
}

/// One sentence on stderr, nothing on stdout.
#[track_caller]
fn one_sentence(options: &[&str], command: &[&str], code: i32, sentence: &str) {
    let finished = try_worker(&Place::new(), options, command).expect_code(code);
    assert_eq!(finished.stderr.trim_end().lines().count(), 1, "{finished:?}");
    assert!(finished.stderr.contains(sentence), "{finished:?}");
}

#[test]
fn what_is_no_worker_gets_one_sentence() {
    one_sentence(&[], &["/nowhere/worker"], 1, "could not be started: No such file");
    one_sentence(&[], &["/bin/true"], 1, "ended before it sent hello");
    let worker = misbehaving();
    let path = text(&worker);
    one_sentence(&["--patience=1"], &[path, "silent"], 1, "did not send hello within 1 s");
    one_sentence(&["--patience=1"], &[path, "late-hello"], 1, "did not send hello within 1 s");
    one_sentence(&["--patience=1"], &[path, "no-newline"], 1, "and no newline behind it");
    one_sentence(&[], &[path, "dies"], 1, "IllegalStateException | at Reader.main");
    one_sentence(&["--dir=/nowhere"], &[path, "honest"], 2, "/nowhere");
    let place = Place::new();
    assert_eq!(place.run(&["conformance"]).code(), 2);
}

#[test]
fn steps_are_lines_and_the_last_one_is_the_sum() {
    let worker = misbehaving();
    let place = Place::new();
    let finished = try_worker(&place, &["--dir=."], &[text(&worker), "no-errno"]).expect_code(1);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(lines[0].starts_with("ok     starts and says hello: native "), "{finished:?}");
    assert!(lines.contains(&"-      fill (it has no method for it)"), "{finished:?}");
    assert!(lines.iter().any(|line| line.starts_with("WRONG  a file that is not there")), "{finished:?}");
    assert_eq!(lines.last(), Some(&"1 step is wrong"));
    let honest = try_worker(&place, &["--dir=."], &[text(&worker), "honest"]).expect_code(0);
    let last = honest.stdout.lines().last().unwrap_or_default();
    assert!(last.contains("honest conforms: ") && last.ends_with(" steps, 3 not tried"), "{last}");
}

#[test]
fn a_trial_that_is_killed_is_swept() {
    let worker = misbehaving();
    let place = Place::new();
    let mut command = place.command(&["conformance", "--dir", ".", "--", text(&worker), "silent"]);
    let mut child = command.spawn().expect("pagewise starts");
    support::wait_for("its files are there", || (place.traces().len() == 3).then_some(()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    place.expect_no_process();
    assert!(!place.traces().is_empty());
    place.run(&["clean"]).expect_code(0);
    place.expect_no_trace();
}
