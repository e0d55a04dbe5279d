//! Replays of programs whose threads read at once: each thread has its own reads, and a worker that
//! mixes them up is noticed.

use std::fs;
use std::path::Path;

use pagewise_model::FailureKind::{MissingReads, WrongChecksum};
use pagewise_model::trace::{AccessKind, Trace, TraceThread};
use pagewise_model::{Outcome, Sample};
use rustix::process::{Pid, Signal};

use crate::replay::{FILE_BYTES, data, in_order, judged, methods, replay, store, trace_of, watched_place};
use crate::support::until::my_turn;
use crate::support::{
    self, FROM_OUTSIDE, PAGEWISE, Place, cheating_replay_worker, expect_refused, expect_undisturbed,
    is_honest, kinds, load, load_trace, of_methods, wait_for, was_disturbed, whole_lines,
};

/// Trials of a kind: others who use the machine may disturb any sample.
const RUNS: usize = 5;
/// Reads of the threads of [`of_three`].
const PARTS: [u64; 3] = [42, 28, 14];

/// The whole file once, by threads 0, 1 and 7 of ten, that are all there from the beginning to the
/// end.
fn of_three(path: &str) -> Trace {
    let mut accesses = in_order();
    let turns = [0, 1, 0, 7, 1, 0];
    for (access, thread) in accesses.iter_mut().zip(turns.iter().cycle()) {
        (access.thread, access.kind) = (*thread, AccessKind::Pread);
    }
    let mut trace = trace_of(path, accesses, FILE_BYTES);
    let thread = |thread| TraceThread { process: 7, thread, name: String::new(), accesses: 0 };
    trace.trailer.threads = (0..10).map(thread).collect();
    trace
}

#[test]
fn the_reads_of_several_threads_are_replayed_by_as_many() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    store(&of_three(&path), &place.file("t.trace"));
    let finished = place.run(&replay(&["--rounds=7", "--methods=pread,mmap:random,uring:depth=4"]));
    let message = "3 threads replay the reads, with one descriptor: the order is kept within a thread";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    expect_undisturbed(&load(&place.file("run.jsonl")));
    let judged = judged(&finished, true);
    for cell in judged["cells"].as_array().expect("cells") {
        assert_eq!(cell["threads"], 3, "{cell}");
    }
    for sample in of_methods(&load(&place.file("run.jsonl"))) {
        let Outcome::Taken { measurement, evidence, .. } = &sample.outcome else { panic!("{sample:?}") };
        assert_eq!((&*measurement.thread_operations, &*evidence.thread_reads), (&[1, 1, 1][..], &PARTS[..]));
        assert_eq!((measurement.operations, evidence.requested_bytes), (3, FILE_BYTES));
    }
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    // By one thread, in the order of time.
    let finished = place.run(&replay(&["--rounds=7", "--methods=pread", "--threads=1"]));
    expect_undisturbed(&load(&place.file("run.jsonl")));
    let judged = self::judged(&finished, true);
    assert_eq!(judged["cells"][0]["threads"], 1);
    place.expect_no_trace();
}

#[test]
fn threads_that_read_at_once_are_recorded_and_replayed() {
    let Some((_turn, place)) = watched_place() else { return };
    let path = place.write_synced("known.bin", vec![7; 32 << 20]);
    let cold = format!("--cold={path}");
    let program = Path::new(PAGEWISE).with_file_name("examples/known_accesses").display().to_string();
    let words = ["record", &cold, "-o", "t.trace", "--", &program, &path, "together"];
    place.run(&words).expect_code(7);
    let trace = load_trace(&place.file("t.trace"));
    let file = trace.trailer.files.iter().position(|file| file.path == path).expect("the file");
    let table = trace.table(file as u32, 9).expect("a table");
    let mut reads = table.thread_reads.clone();
    reads.sort_unstable();
    assert_eq!((&*reads, table.recorded_threads, table.joined_threads), (&[100, 200, 300][..], 3, 0));
    assert!(!table.own_descriptors);
    let finished = place.run(&replay(&["--rounds=7", "--methods=mmap"]));
    expect_undisturbed(&load(&place.file("run.jsonl")));
    let judged = judged(&finished, true);
    assert_eq!(methods(&judged), ["mmap", "pread:random"], "the program said that it reads at random");
    assert_eq!(judged["cells"][0]["threads"], 3);
}

fn samples(kind: &str) -> Vec<Sample> {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    store(&of_three(&data(&place)), &place.file("t.trace"));
    let worker = cheating_replay_worker(kind);
    place.run(&replay(&["--trial-rounds=3", "--methods=pread", "--worker-command", &worker]));
    of_methods(&load(&place.file("run.jsonl"))).into_iter().cloned().collect()
}

#[test]
fn a_worker_whose_threads_read_their_own_is_believed() {
    for _ in 0..RUNS {
        let samples = samples("honest");
        assert!(samples.iter().all(is_honest), "{samples:?}");
        if samples.iter().any(|sample| sample.valid().is_some()) {
            return;
        }
    }
    support::inconclusive("every sample was disturbed");
}

#[test]
fn a_worker_whose_threads_read_what_is_not_theirs_is_noticed() {
    for kind in ["walks-alone", "divides-anew"] {
        let is_caught = (0..RUNS).any(|_| {
            let samples = samples(kind);
            for sample in &samples {
                assert!(sample.valid().is_none(), "{kind}: {:?}", sample.outcome);
                let others = kinds(sample).into_iter().filter(|kind| !FROM_OUTSIDE.contains(kind));
                assert!(others.clone().all(|found| found == MissingReads), "{kind}: {:?}", sample.failures());
            }
            samples.iter().any(|sample| kinds(sample).contains(&MissingReads) && !was_disturbed(sample))
        });
        if !is_caught {
            support::inconclusive(&format!("{kind}: every sample was disturbed"));
        }
    }
}

/// The offsets of a piece of the table are known when the reads of the piece before the last are
/// done.
#[test]
fn a_worker_that_sorts_the_reads_does_not_find_them() {
    let samples = samples("sorts");
    assert!(!samples.is_empty());
    for sample in &samples {
        assert!(kinds(sample).contains(&WrongChecksum), "{:?}", sample.outcome);
    }
}

#[test]
fn a_worker_that_speaks_of_one_thread_is_refused_by_name() {
    for sample in samples("one-thread") {
        let outcome = format!("{:?}", sample.outcome);
        assert!(
            outcome.contains("the worker 'walker' replays a trace by at most 1 thread, and not by 3"),
            "{outcome}"
        );
    }
}

#[test]
fn strange_threads_of_a_trace_are_reported_or_refused() {
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let dry = |more: &[&'static str]| {
        place.run(&[&["run", "replay", "--trace=t.trace", "--evict", "--dry-run"], more].concat())
    };
    // A million threads, of which two far apart read at once.
    let mut sparse = of_three(&path);
    let one = sparse.trailer.threads[0].clone();
    sparse.trailer.threads = vec![one; 1_000_000];
    for (access, thread) in sparse.accesses.iter_mut().zip([3, 999_999].iter().cycle()) {
        access.thread = *thread;
    }
    store(&sparse, &place.file("t.trace"));
    let finished = dry(&[]).expect_code(0);
    assert!(finished.stderr.contains("2 threads replay the reads"), "{}", finished.stderr);
    let refused = |more: &[&'static str], sentence: &str| {
        let finished = dry(more).expect_code(2);
        assert!(finished.stderr.contains(sentence), "'{sentence}' is not in: {}", finished.stderr);
    };
    refused(&["--threads=3"], "a trace of 2 threads is replayed by as many, and not by 3");
    let finished = dry(&["--threads=1"]).expect_code(0);
    let message = "one thread replays the reads of 2 threads in the order of time";
    assert!(finished.stderr.contains(message) && !finished.stderr.contains("at most"), "{}", finished.stderr);
    // Two thousand at once are more than there may be.
    let mut many = of_three(&path);
    let (one, read) = (many.trailer.threads[0].clone(), many.accesses[0]);
    many.trailer.threads = vec![one; 2000];
    many.accesses = (0..4000)
        .map(|index| pagewise_model::trace::TraceAccess { thread: index % 2000, len: 10, ..read })
        .collect();
    many.trailer.accesses = 4000;
    store(&many, &place.file("t.trace"));
    let finished = dry(&["--methods=pread"]).expect_code(0);
    let message = "more threads of the program read the file at once than are replayed: 976 of 2,000 threads follow others";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    refused(
        &["--methods=uring:direct+depth=1024"],
        "of buffers for reads of up to 10B in 1024 threads, and may have 64MiB",
    );
    // A thread that is not there.
    many.trailer.threads.truncate(1999);
    store(&many, &place.file("t.trace"));
    expect_refused(&dry(&[]), "it is damaged: an access names a file or a thread that it does not have");
}

#[test]
fn the_memory_that_a_trace_asks_for_is_bounded() {
    let place = Place::on(&std::env::temp_dir());
    let mut trace = of_three(&data(&place));
    let refused = |trace: &Trace, more: &[&'static str], sentence: &str| {
        store(trace, &place.file("t.trace"));
        let words = [&["run", "replay", "--trace=t.trace", "--evict", "--dry-run"], more].concat();
        let finished = place.run(&words).expect_code(2);
        assert!(finished.stderr.contains(sentence), "'{sentence}' is not in: {}", finished.stderr);
    };
    for bytes in [1 << 50, u64::MAX] {
        trace.trailer.program.anonymous_bytes = Some(bytes);
        refused(&trace, &[], "besides the file, and a replay may take at most");
    }
    trace.trailer.program.anonymous_bytes = Some(64 << 20);
    let limited =
        "held 64MiB besides the file, which do not fit into a memory limit of 64MiB: use a larger --memory";
    refused(&trace, &["--memory=64MiB"], limited);
}

#[test]
fn a_replay_whose_trace_is_gone_or_another_is_not_resumed() {
    let _turn = my_turn();
    let place = Place::on(&std::env::temp_dir());
    let path = data(&place);
    let trace = place.file("t.trace");
    store(&of_three(&path), &trace);
    let child = place.command(&replay(&["--rounds=60", "--methods=pread"])).spawn().expect("start");
    let run = place.file("run.jsonl");
    let has_sample = || whole_lines(&run).iter().any(|line| line.contains("\"kind\":\"sample\""));
    wait_for("a sample", || has_sample().then_some(()));
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).expect("kill");
    place.finish(child).expect_code(130);
    let before = std::fs::read(&run).expect("read");
    let resumed = |sentence: &str| {
        let finished = place.run(&["run", "--resume", "--out=run.jsonl"]).expect_code(2);
        assert!(finished.stderr.contains(sentence), "'{sentence}' is not in: {}", finished.stderr);
        assert!(std::fs::read(&run).expect("read") == before, "the run was changed");
    };
    std::fs::rename(&trace, place.file("moved.trace")).expect("rename");
    resumed("run.jsonl cannot be resumed: the trace ");
    store(&trace_of(&path, in_order(), FILE_BYTES), &trace);
    resumed("t.trace is another trace than that of the plan");
    place.expect_no_trace();
}
