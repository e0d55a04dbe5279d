//! A run that is stopped or killed, wherever it is: nothing reported is lost, `--resume` finishes it, nothing is
//! left behind, and what a live run holds is left alone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::{Finished, Place, expect_whole, load, wait_for, whole_lines};
use pagewise_model::Sample;
use pagewise_model::random::Random;
use pagewise_model::run::Run;
use rustix::process::{Pid, Signal};

/// Three cells; how long a sample lasts and how large the dataset is, each test says.
const BRIEF: [&str; 9] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread",
    "--threads=1",
    "--cache=warm",
    "--rounds=7",
    "--latency=1ms",
    "--out=run.jsonl",
];
const RESUME: [&str; 4] = ["run", "--resume", "--out=run.jsonl", "--json"];

fn brief(sample: &'static str, file_size: &'static str) -> Vec<&'static str> {
    [&BRIEF[..], &[sample, file_size]].concat()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).expect("a process id")
}

fn samples_of(path: &Path) -> usize {
    whole_lines(path).iter().filter(|line| line.contains("\"kind\":\"sample\"")).count()
}

fn dataset_bytes(place: &Place) -> Option<u64> {
    let traces = place.traces();
    traces.iter().filter_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.len()).max()
}

/// Whether `later` begins with all that `earlier` has.
#[track_caller]
fn expect_kept(earlier: &[Sample], later: &Run) {
    assert!(later.samples.len() >= earlier.len(), "samples are lost");
    assert!(later.samples[..earlier.len()] == *earlier, "a sample changed");
}

/// Resumes until the run is complete, which takes one time.
#[track_caller]
fn expect_resumed(place: &Place) -> Run {
    let before = load(&place.file("run.jsonl"));
    let finished = place.run(&RESUME);
    let after = load(&place.file("run.jsonl"));
    finished.expect_code_for(&after).judged();
    expect_kept(&before.samples, &after);
    assert_eq!(after.resumptions, before.resumptions + 1);
    expect_whole(&after);
    place.expect_no_trace();
    after
}

/// Stops a run with `signal` once `moment` has come: the file stays valid, everything else goes, and the rest is
/// taken later. `group`: as a terminal does, all processes of the run get it.
#[track_caller]
fn stop(signal: Signal, group: bool, file_size: &'static str, moment: impl Fn(&Place) -> bool) {
    let place = Place::new();
    let mut command = place.command(&brief("--sample=30ms", file_size));
    let mut child = command.process_group(0).spawn().expect("start");
    wait_for("the moment to stop", || moment(&place).then_some(()));
    assert!(child.try_wait().expect("wait").is_none(), "the run was over before it could be stopped");
    let sent = if group {
        rustix::process::kill_process_group(pid(&child), signal)
    } else {
        rustix::process::kill_process(pid(&child), signal)
    };
    sent.expect("kill");
    let finished = place.finish(child).expect_code(130);
    assert!(finished.stderr.contains("stopped; the samples so far are in run.jsonl"), "{finished:?}");
    assert!(finished.stderr.contains("pagewise run --resume --out run.jsonl"), "{finished:?}");
    assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
    place.expect_no_process();
    let run = load(&place.file("run.jsonl"));
    assert!(!run.is_complete());
    for sample in &run.samples {
        // The signal that reached the worker too is the user's wish, and no failure of the cell.
        assert!(matches!(sample.outcome, pagewise_model::Outcome::Taken { .. }), "{:?}", sample.outcome);
    }
    expect_resumed(&place);
}

/// An overview that has begun its second question; it may be refused.
fn in_its_second_question(place: &Place, time: &str) -> Result<Child, Finished> {
    let mut child = place.command(&[time]).process_group(0).spawn().expect("start");
    // The first question takes a good part of its time.
    while run_files(place).len() < 2 {
        if child.try_wait().expect("wait").is_some() {
            return Err(place.finish(child));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(child)
}

/// Run files of the place, by name.
fn run_files(place: &Place) -> Vec<String> {
    place.entries().into_iter().filter(|name| name.ends_with(".jsonl")).collect()
}

#[test]
fn an_overview_that_is_stopped_says_how_to_see_the_questions_before() {
    let place = Place::new();
    let child = in_its_second_question(&place, "--time=45s").unwrap_or_else(|refused| {
        // A machine that is busy needs longer for the first rounds.
        assert!(refused.stderr.contains("does not pay for the 5 rounds"), "{refused:?}");
        in_its_second_question(&place, "--time=180s").expect("it is paid for")
    });
    rustix::process::kill_process_group(pid(&child), Signal::INT).expect("kill");
    let finished = place.finish(child).expect_code(130);
    let told = "complete before that: 1 question. See all with: pagewise report --answer ";
    let (_, shown) = finished.stderr.trim_end().split_once(told).unwrap_or_else(|| panic!("{finished:?}"));
    assert!(shown.ends_with("-read.jsonl") && run_files(&place).contains(&shown.to_string()), "{shown}");
    let answer = place.run(&["report", "--answer", shown]).expect_code(0);
    assert!(answer.stdout.contains("What to use"), "{answer:?}");
    place.expect_no_trace();
}

fn has_samples(place: &Place) -> bool {
    samples_of(&place.file("run.jsonl")) >= 2
}

#[test]
fn a_run_that_is_stopped_keeps_its_samples_and_can_be_finished() {
    stop(Signal::INT, true, "--file-size=4MiB", has_samples);
    stop(Signal::INT, false, "--file-size=4MiB", has_samples);
    stop(Signal::TERM, false, "--file-size=4MiB", has_samples);
    stop(Signal::HUP, true, "--file-size=4MiB", has_samples);
}

#[test]
fn a_run_that_is_stopped_while_the_dataset_is_written_removes_it() {
    // Large enough that the signal comes before the end of the writing.
    for signal in [Signal::INT, Signal::TERM] {
        stop(signal, false, "--file-size=96MiB", |place| dataset_bytes(place).is_some());
    }
}

#[test]
fn a_torn_last_line_is_taken_again() {
    let place = Place::new();
    place.run(&brief("--sample=1ms", "--file-size=4MiB"));
    let path = place.file("run.jsonl");
    let lines = whole_lines(&path);
    // As a kill in the middle of a write would leave it, at any byte.
    let mut random = Random::new(3);
    for _ in 0..5 {
        let kept = 1 + random.below(lines.len() as u64 - 2) as usize;
        let torn = &lines[kept][..random.below(lines[kept].len() as u64) as usize];
        fs::write(&path, lines[..kept].concat() + torn).expect("write");
        let run = expect_resumed(&place);
        assert_eq!(run.samples.len(), run.samples.iter().map(key).collect::<BTreeSet<_>>().len());
    }
}

fn key(sample: &Sample) -> (String, u32, u32) {
    (sample.cell.clone(), sample.round, sample.attempt)
}

#[test]
fn clean_leaves_a_live_run_alone() {
    let place = Place::new();
    let mut child = place.command(&brief("--sample=30ms", "--file-size=4MiB")).spawn().expect("start");
    wait_for("samples", || has_samples(&place).then_some(()));
    let held = place.traces();
    assert_eq!(held.len(), 1, "the dataset");
    let other = Place::new();
    for _ in 0..3 {
        let mut clean = other.command(&["clean"]);
        clean.env("PAGEWISE_STATE_DIR", place.state());
        let cleaned = other.finish(clean.spawn().expect("start"));
        let live = child.try_wait().expect("wait").is_none();
        if live {
            let said = format!("A run is live (pid {}, begun in {}", child.id(), place.path().display());
            assert!(cleaned.stdout.starts_with(&said), "{cleaned:?}");
            assert_eq!(cleaned.code(), 0);
        }
    }
    let finished = place.finish(child);
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    expect_whole(&run);
    assert!(run.samples.iter().all(|sample| matches!(sample.outcome, pagewise_model::Outcome::Taken { .. })));
    place.expect_no_trace();
}

/// Where a run was when it was killed.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    set_up: u32,
    dataset: u32,
    rounds: u32,
    tear_down: u32,
    over: u32,
}

const FILE_BYTES: u64 = 8 << 20;

/// Kills `child` when `target` has come and a random while has passed; what had been reported just before.
fn kill_in(
    place: &Place,
    child: &mut Child,
    target: u64,
    random: &mut Random,
    phases: &mut Phases,
) -> Vec<String> {
    let path = place.file("run.jsonl");
    let lines_before = whole_lines(&path).len();
    let deadline = Instant::now() + Duration::from_secs(30);
    let (moment, within_us): (Box<dyn Fn() -> bool>, u64) = match target {
        0 => (Box::new(|| true), 30_000),
        // On a fast disk it is written within a moment.
        1 => (Box::new(|| dataset_bytes(place).is_some()), if random.below(2) == 0 { 500 } else { 20_000 }),
        2 => (Box::new(|| whole_lines(&path).len() > lines_before + 1), 300_000),
        _ => (Box::new(|| fs::read(&path).is_ok_and(|text| ends_run(&text))), 3_000),
    };
    while !moment() && child.try_wait().expect("wait").is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(Duration::from_micros(random.below(within_us)));
    let over = child.try_wait().expect("wait").is_some();
    let reported = whole_lines(&path);
    let dataset = dataset_bytes(place);
    let _ = child.kill();
    child.wait().expect("wait");
    let ended = fs::read(&path).is_ok_and(|text| ends_run(&text));
    match (over, ended, dataset) {
        (true, ..) => phases.over += 1,
        (_, true, _) => phases.tear_down += 1,
        (_, _, None) => phases.set_up += 1,
        (_, _, Some(bytes)) if bytes < FILE_BYTES => phases.dataset += 1,
        _ => phases.rounds += 1,
    }
    reported
}

fn ends_run(text: &[u8]) -> bool {
    text.windows(12).rev().take(400).any(|window| window == b"\"kind\":\"end\"") && text.ends_with(b"\n")
}

/// Kills runs and resumptions of them until `kills` have been killed alive.
fn kill_again_and_again(seed: u64, kills: u32) -> Phases {
    let mut random = Random::new(seed);
    let mut phases = Phases::default();
    let mut place = Place::new();
    let fresh = brief("--sample=1ms", "--file-size=8MiB");
    let mut reported: Vec<String> = Vec::new();
    let mut turn = 0;
    while phases.set_up + phases.dataset + phases.rounds + phases.tear_down < kills {
        turn += 1;
        assert!(turn < 5 * kills, "runs end before they can be killed: {phases:?}");
        let path = place.file("run.jsonl");
        // A run that was killed before it had a header has to be begun again.
        let begun = !whole_lines(&path).is_empty();
        if path.exists() && !begun {
            assert!(reported.is_empty());
            fs::remove_file(&path).expect("remove");
        }
        let mut command = if begun { place.command(&RESUME) } else { place.command(&fresh) };
        let mut child = command.spawn().expect("start");
        let seen = kill_in(&place, &mut child, turn as u64 % 4, &mut random, &mut phases);
        // What was reported before this start and what was seen before the kill is still there.
        let now = whole_lines(&path);
        for earlier in [&reported, &seen] {
            assert!(
                now.len() >= earlier.len() && now[..earlier.len()] == earlier[..],
                "a reported line is lost"
            );
        }
        reported = now;
        // Nothing of the dead run works on.
        place.expect_no_process();
        if !reported.is_empty() {
            load(&path);
        }
        let complete = !reported.is_empty() && load(&path).is_complete();
        // `clean` sweeps here, the next start elsewhere.
        if complete || random.below(4) == 0 {
            let cleaned = place.run(&["clean"]);
            assert_eq!((cleaned.code(), &*cleaned.stderr), (0, ""), "{cleaned:?}");
            place.expect_no_trace();
        }
        if complete {
            expect_whole(&load(&path));
            place = Place::new();
            reported = Vec::new();
        }
    }
    // What was killed last is finished.
    let path = place.file("run.jsonl");
    if !reported.is_empty() {
        expect_resumed(&place);
        let now = whole_lines(&path);
        assert!(now[..reported.len()] == reported[..]);
    }
    let cleaned = place.run(&["clean"]);
    assert_eq!(cleaned.code(), 0);
    place.expect_no_trace();
    phases
}

/// Fifty in all, in every phase, by two threads that do not know of each other; fifty more are killed under conditions
/// (`killed_conditions.rs`), and a hundred over the other questions by `bench/kills.py` in `./check`.
#[test]
fn killed_twenty_five_times_in_every_phase() {
    let phases = kill_again_and_again(1, 25);
    println!("killed in {phases:?}");
    assert!(phases.set_up > 0 && phases.dataset > 0 && phases.rounds > 0, "{phases:?}");
}

#[test]
fn killed_twenty_five_times_more_in_every_phase() {
    let phases = kill_again_and_again(2, 25);
    println!("killed in {phases:?}");
    assert!(phases.set_up > 0 && phases.dataset > 0 && phases.rounds > 0, "{phases:?}");
}

#[test]
fn a_run_killed_once_is_finished_and_swept_by_its_resumption() {
    let place = Place::new();
    let mut child = place.command(&brief("--sample=30ms", "--file-size=4MiB")).spawn().expect("start");
    wait_for("samples", || has_samples(&place).then_some(()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    place.expect_no_process();
    let left = place.traces();
    assert_eq!(left.len(), 1, "a killed run cannot remove its dataset");
    let finished = place.run(&RESUME);
    assert!(finished.stderr.contains(&format!("removed {}", left[0].display())), "{finished:?}");
    expect_whole(&load(&place.file("run.jsonl")));
    place.expect_no_trace();
}
