//! An actor at work beside the measured worker, through the whole program.

use std::path::Path;

use pagewise_host::steps::RunStep;
use pagewise_model::{ActorEvidence, Evidence, FailureKind, Source};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::paused::PausedRun;
use crate::support::until::{
    arguments, can_limit_memory, each_has, expect_honest, my_turn, take_words, valid,
};
use crate::support::{Place, kinds, load};

const SCAN: &str = "--beside=scan:pread,rate=200MiB/s";
const DIRECT: &str = "--beside=scan:pread:direct,rate=200MiB/s";

/// What the actor of a sample did; what it read, and what is left of the span.
fn read_and_left(seen: &Evidence) -> (u64, u64) {
    let actor = seen.actor.as_ref().expect("an actor");
    assert!(actor.windows.iter().all(|window| window.is_right), "{actor:?}");
    (actor.bytes_before, seen.resident_after_bytes.expect("residency is known"))
}

#[test]
fn a_scan_takes_what_is_hot_under_a_limit_unless_it_goes_past_the_cache() {
    let _turn = my_turn();
    if !can_limit_memory() {
        return;
    }
    let place = Place::new();
    let more =
        ["--methods=mmap:random", "--memory=32MiB", "--span=0.7x", "--sample=250ms", "--no-ceilings", SCAN];
    let mut words = arguments(&more);
    words.push(DIRECT);
    let taken = take_words(&place, &words, |run| each_has(run, 1));
    expect_honest(&taken.run);
    for is_direct in [false, true] {
        let is_of = |cell: &pagewise_model::Cell| {
            cell.conditions.beside.as_ref().is_some_and(|actor| actor.method.is_direct() == is_direct)
        };
        let seen = valid(&taken.run, is_of);
        assert!(!seen.is_empty());
        for (_, seen) in seen {
            let (before, left) = read_and_left(seen);
            assert!(before >= 128 << 20, "four times the limit: {before}");
            let span = seen.resident_before_bytes.expect("residency is known");
            let actor = seen.actor.as_ref().expect("an actor");
            assert_eq!(actor.is_in_group, Some(true));
            match is_direct {
                true => assert!(left >= span / 100 * 98, "{left} of {span}: hardly anything was evicted"),
                false => assert!(left < span, "{left} of {span}"),
            }
        }
    }
}

#[test]
fn an_actor_is_at_work_without_a_limit_and_beside_writers() {
    let _turn = my_turn();
    let place = Place::new();
    let more = [
        "--methods=pread,pread:direct",
        "--file-size=16MiB",
        "--cache=warm,cold",
        "--sample=250ms",
        "--no-ceilings",
        "--beside=read:pread,rate=2k,file=8MiB",
    ];
    let mut words = arguments(&more);
    words.push("--beside=none");
    let taken = take_words(&place, &words, |run| each_has(run, 1));
    expect_honest(&taken.run);
    for (_, seen) in valid(&taken.run, |cell| cell.conditions.beside.is_some()) {
        let actor = seen.actor.as_ref().expect("an actor");
        // 2,000 reads a second, of which one in ten may be missing. A short sample has the time
        // before it, too.
        let (end, all) = (seen.wall_ns as f64, seen.wall_ns.max(ActorEvidence::SHORTEST_NS) as f64);
        let done = actor.operations_within(end - all, end);
        assert!(done >= 0.9 * 2000.0 * all / 1e9, "{done} in {all}");
    }
    assert!(
        valid(&taken.run, |cell| cell.conditions.beside.is_none())
            .iter()
            .all(|(_, seen)| seen.actor.is_none())
    );
    let words =
        ["run", "append", "--sync=commit", "--file-size=1MiB", "--methods=pwrite", "--trial-rounds=1"];
    let more =
        ["--no-ceilings", "--sample=250ms", "--out=append.jsonl", "--beside=scan:mmap,rate=max,file=8MiB"];
    place.run(&[&words[..], &more].concat());
    let run = load(&place.file("append.jsonl"));
    let seen: Vec<&Evidence> = run.samples.iter().filter_map(|sample| Some(sample.valid()?.1)).collect();
    assert!(seen.iter().all(|seen| seen.actor.is_some()), "{:?}", run.samples);
    let expected = ["--out=log.jsonl", "--expect=written<=2x", "--beside=append:pwrite,rate=100,file=8MiB"];
    let refused = place.run(&[&words[..], &expected].concat()).expect_code(2);
    assert!(refused.stderr.contains("the device writes for the actor too"), "{refused:?}");
}

/// Samples of a method beside an actor that writes its file by a call or by stores.
#[test]
fn records_of_an_actor_are_in_its_file_and_its_bytes_are_nobody_elses() {
    let _turn = my_turn();
    let place = Place::new();
    let more =
        ["--methods=pread:direct", "--file-size=16MiB", "--cache=warm", "--sample=250ms", "--no-ceilings"];
    let mut words = arguments(&more);
    words.extend([
        "--beside=append:pwrite,rate=100,size=60KiB,file=1MiB",
        "--beside=append:mmap,rate=100,size=60KiB,file=1MiB",
        "--beside=append:pwrite:direct+buffer=64KiB,rate=max,size=64KiB,file=1MiB",
    ]);
    let taken = take_words(&place, &words, |run| each_has(run, 1));
    expect_honest(&taken.run);
    for (_, seen) in valid(&taken.run, |_| true) {
        let actor = seen.actor.as_ref().expect("an actor");
        let writes = actor.writes.expect("they were read back");
        let (inside, overlapping) = actor.bounds_of_bytes(seen.wall_ns);
        assert!(writes.records > 17, "its ring has 17 records, and went round: {writes:?}");
        assert_eq!((writes.missing_bytes, writes.syncs), (0, writes.records), "{writes:?}");
        assert!(inside <= overlapping && overlapping > 0, "{actor:?}");
        let written = seen.device_written_bytes.expect("known");
        assert!(written >= inside, "{written} of {inside}, {overlapping}");
    }
    place.expect_no_trace();
}

/// The file of an actor is made in the directory of the measured one.
#[test]
fn an_actor_is_at_work_beside_a_file_of_ones_own() {
    let _turn = my_turn();
    let place = Place::new();
    let content: Vec<u8> = (0..8u64 << 20).map(|at| (at % 251) as u8).collect();
    place.write("own", content.clone());
    let words = [
        "run",
        "scan",
        "--victim=read:pread,size=4KiB,file=./own",
        "--methods=pread:direct",
        "--rate=200",
        "--file-size=16MiB",
        "--trial-rounds=1",
        "--sample=250ms",
        "--out=run.jsonl",
    ];
    let finished = place.run(&words);
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    expect_honest(&run);
    assert!(matches!(&run.header.plan.source,
        Source::File { path, directory: Some(directory), .. }
            if Path::new(path) == place.file("own") && Path::new(directory) == place.path()));
    let actors: Vec<_> = valid(&run, |cell| cell.conditions.beside.is_some());
    assert!(actors.iter().all(|(_, seen)| seen.actor.is_some()), "{:?}", run.samples);
    assert!(std::fs::read(place.file("own")).expect("it is there") == content, "it was only read");
    place.expect_no_trace();
}

/// A scan goes through all of a file, of which the measured method reads the beginning.
#[test]
fn an_actor_reads_the_measured_file_of_ones_own() {
    let _turn = my_turn();
    let place = Place::new();
    let content: Vec<u8> = (0..24u64 << 20).map(|at| (at / 4096 % 251) as u8).collect();
    place.write("own", content.clone());
    let words = [
        "run",
        "scan",
        "own",
        "--victim=read:pread,size=4KiB,file=same",
        "--methods=pread,pread:direct",
        "--rate=200",
        "--span=8MiB",
        "--trial-rounds=3",
        "--sample=250ms",
        "--out=run.jsonl",
    ];
    let run = take_words(&place, &words, |run| each_has(run, 1)).run;
    expect_honest(&run);
    assert!(matches!(&run.header.plan.source, Source::File { directory: None, .. }), "nothing is made");
    let reads_same = |cell: &pagewise_model::Cell| {
        cell.conditions.beside.as_ref().is_some_and(pagewise_model::Actor::reads_same_file)
    };
    for (_, seen) in valid(&run, reads_same) {
        let actor = seen.actor.as_ref().expect("it was at work");
        assert!(actor.windows.iter().all(|window| window.is_right), "{actor:?}");
        assert_eq!(seen.resident_after_bytes, Some(8 << 20), "without a limit it stays");
    }
    assert!(std::fs::read(place.file("own")).expect("it is there") == content, "it was only read");
    place.expect_no_trace();
}

#[test]
fn an_actor_that_dies_leaves_no_valid_sample_and_nothing_behind() {
    let _turn = my_turn();
    let place = Place::new();
    let words = [
        "run",
        "read",
        "--workload=random-read",
        "--methods=pread",
        "--threads=1",
        "--file-size=16MiB",
        "--cache=warm",
        "--trial-rounds=1",
        "--no-ceilings",
        "--out=run.jsonl",
        "--beside=scan:pread,rate=max,file=8MiB",
    ];
    let kill_actor = |paused: &PausedRun<'_>| {
        let workers = paused.workers();
        assert_eq!(workers.len(), 2, "the actor, and the worker");
        // The actor was started first.
        let actor = Pid::from_raw(workers.into_iter().min().expect("two") as i32).expect("a process id");
        kill_process(actor, Signal::KILL).expect("it is there");
    };
    PausedRun::start(&place, &words, RunStep::ActorAtPace).act_until_end(kill_actor);
    let run = load(&place.file("run.jsonl"));
    assert!(run.samples.iter().all(|sample| sample.valid().is_none()));
    assert!(
        run.samples.iter().any(|sample| kinds(sample).contains(&FailureKind::ActorAbsent)),
        "{:?}",
        run.samples
    );
    place.expect_no_trace();
}
