//! A run killed at random moments: nothing reported is lost, `--resume` finishes it, nothing is
//! left behind. Each step once, by name, is a part of `./check`.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::words::{RESUME, WARM_READS};
use crate::support::{Place, expect_whole, load, whole_lines};
use pagewise_model::random::Random;

/// A run of three cells.
fn fresh() -> Vec<&'static str> {
    const MORE: [&str; 5] =
        ["--methods=pread", "--rounds=7", "--sample=1ms", "--file-size=8MiB", "--out=run.jsonl"];
    [&WARM_READS[..], &MORE].concat()
}

fn dataset_bytes(place: &Place) -> Option<u64> {
    let traces = place.traces();
    traces.iter().filter_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.len()).max()
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

/// Kills `child` when `target` has come and a random while has passed; what had been reported just
/// before.
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
        let mut command = if begun { place.command(&RESUME) } else { place.command(&fresh()) };
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
        let finished = place.run(&RESUME);
        let run = load(&path);
        finished.expect_code_for(&run).judged();
        expect_whole(&run);
        let now = whole_lines(&path);
        assert!(now[..reported.len()] == reported[..]);
    }
    let cleaned = place.run(&["clean"]);
    assert_eq!(cleaned.code(), 0);
    place.expect_no_trace();
    phases
}

#[test]
fn killed_at_random_moments() {
    let phases = kill_again_and_again(1, 100);
    println!("killed in {phases:?}");
    assert!(phases.set_up > 0 && phases.dataset > 0 && phases.rounds > 0, "{phases:?}");
}
