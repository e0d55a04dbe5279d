//! A run under a memory limit, a device cap and another readahead, killed or stopped wherever it is: the next start
//! undoes what it did to the machine, and what belongs to others is left alone.
//!
//! Each test that sets readahead does so on a filesystem of its own, in mounts of its own: nothing else sees it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::{
    FROM_OUTSIDE, OWN_FILESYSTEM, Place, cheating_worker, code_for, expect_told, expect_whole, in_own_mounts,
    kinds, load, of_methods, skipped, wait_for, whole_lines,
};
use pagewise_host::Readahead;
use pagewise_host::cgroup::Control;
use pagewise_model::random::Random;
use pagewise_model::run::Run;
use pagewise_model::{Bytes, Outcome};
use rustix::process::{Pid, Signal};

/// Twice the cache that fits: every sample is warmed from within and settles before its device is capped.
const CONDITIONS: [&str; 17] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread",
    "--threads=1",
    "--cache=warm",
    "--no-ceilings",
    "--rounds=7",
    "--sample=1ms",
    "--latency=1ms",
    "--memory=12MiB",
    "--file-size=20MiB",
    "--readahead=128KiB",
    "--readahead=64KiB",
    "--device-cap=read-iops=100000",
    "--seed=3",
    "--out=run.jsonl",
];
const RESUME: [&str; 4] = ["run", "--resume", "--out=run.jsonl", "--json"];

/// Why this machine cannot do it.
fn lacking() -> Option<String> {
    let control = Control::detect();
    control.memory().err().or(control.device().err()).map(ToString::to_string)
}

/// Whether the test goes on, in mounts of its own.
#[track_caller]
fn possible(test: &str) -> bool {
    match lacking() {
        Some(reason) => {
            skipped("cgroup", &reason);
            false
        }
        None => in_own_mounts(test, OWN_FILESYSTEM),
    }
}

/// The setting of readahead that decides for a place.
struct Setting {
    path: PathBuf,
    original: u64,
}

impl Setting {
    fn of(place: &Place) -> Self {
        let readahead = Readahead::of(&place.path()).expect("a setting of readahead");
        let path = readahead.path().to_path_buf();
        // Never the disk of the machine: other tests look at it.
        let device = pagewise_host::BlockDevice::behind(&place.path()).expect("a device");
        assert!(device.name.starts_with("loop"), "{device:?}");
        // What it is by itself may be what a run asks for, which would change nothing.
        let setting = Self { original: 512 << 10, path };
        setting.set(setting.original);
        setting
    }

    fn bytes(&self) -> u64 {
        let text = fs::read_to_string(&self.path).expect("the setting");
        text.trim().parse::<u64>().expect("a number") * 1024
    }

    fn set(&self, bytes: u64) {
        fs::write(&self.path, (bytes / 1024).to_string()).expect("write");
    }

    fn is_changed(&self) -> bool {
        self.bytes() != self.original
    }
}

/// What a run holds at a moment, as seen from outside.
#[derive(Debug, Default)]
struct Held {
    groups: Vec<PathBuf>,
    /// Command lines of what runs in them.
    commands: Vec<String>,
    /// Bytes that the worker has had from read calls.
    read_bytes: u64,
    /// Whether the device is capped.
    capped: bool,
    /// Charged to the memory group.
    charged_bytes: u64,
}

impl Held {
    fn of(place: &Place) -> Self {
        let mut held = Held::default();
        for group in place.journaled("group") {
            if !group.is_dir() {
                continue;
            }
            let text = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
            for pid in text("cgroup.procs").lines() {
                let process = Path::new("/proc").join(pid);
                let command = fs::read(process.join("cmdline")).unwrap_or_default();
                held.commands.push(String::from_utf8_lossy(&command).replace('\0', " "));
                let io = fs::read_to_string(process.join("io")).unwrap_or_default();
                let read = io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
                held.read_bytes = held.read_bytes.max(read.unwrap_or(0));
            }
            held.capped |= !text("io.max").trim().is_empty()
                || !text("blkio.throttle.read_iops_device").trim().is_empty();
            let charged = text("memory.usage_in_bytes") + &text("memory.current");
            held.charged_bytes = held.charged_bytes.max(charged.trim().parse().unwrap_or(0));
            held.groups.push(group);
        }
        held
    }

    fn phase(&self) -> Phase {
        let runs = |word: &str| self.commands.iter().any(|command| command.contains(word));
        match self {
            _ if self.groups.is_empty() => Phase::NoGroup,
            _ if self.commands.is_empty() && self.capped => Phase::Emptied,
            _ if self.commands.is_empty() && self.charged_bytes < 1 << 20 => Phase::GroupMade,
            _ if runs(" warm ") => Phase::Warming,
            _ if self.capped => Phase::Capped,
            _ if runs(" worker ") && self.read_bytes > 4 << 20 => Phase::Settling,
            _ => Phase::Between,
        }
    }
}

/// Where a run is in the course of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Before the first sample, or between two.
    NoGroup,
    /// Nothing has started in it yet.
    GroupMade,
    /// A process reads the file from inside.
    Warming,
    /// The workload itself warms further.
    Settling,
    /// The device is capped, and the worker measures.
    Capped,
    /// The worker has ended, and the group is given back.
    Emptied,
    /// On the way from one to another.
    Between,
}

const PHASES: [Phase; 6] =
    [Phase::NoGroup, Phase::GroupMade, Phase::Warming, Phase::Settling, Phase::Capped, Phase::Emptied];

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    rustix::process::kill_process(pid, signal).expect("kill");
}

/// Whether a child has stopped, so that what it holds stays as it is.
fn is_stopped(child: &Child) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 'Z']))
}

/// How many runs were killed where.
#[derive(Debug, Default)]
struct Killed {
    phases: Vec<Phase>,
    /// While readahead was another.
    readahead: u32,
}

impl Killed {
    fn in_phase(&self, phase: Phase) -> usize {
        self.phases.iter().filter(|one| **one == phase).count()
    }
}

/// Kills `child` when `target` is reached and a random while has passed; where it was then.
fn kill_in(
    place: &Place,
    setting: &Setting,
    child: &mut Child,
    target: usize,
    random: &mut Random,
) -> Option<Phase> {
    let wanted = PHASES.get(target).copied().filter(|phase| *phase != Phase::NoGroup);
    let within_us = match wanted {
        Some(Phase::GroupMade | Phase::Emptied) => 1_000,
        Some(Phase::Warming) => 3_000,
        Some(_) => 100_000,
        None if target == 0 => 400_000,
        None => 20_000,
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let come = || match wanted {
        Some(phase) => Held::of(place).phase() == phase,
        None => target == 0 || setting.is_changed(),
    };
    while !come() && child.try_wait().expect("wait").is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(Duration::from_micros(random.below(within_us)));
    if let Some(status) = child.try_wait().expect("wait") {
        // A run that was killed is never refused to be resumed.
        let said = fs::read_to_string(place.root().join("stderr")).unwrap_or_default();
        let run = load(&place.file("run.jsonl"));
        assert_eq!(status.code(), Some(code_for(&run)), "{status}: {said}");
        return None;
    }
    // Stopped first, so that what is seen is what the kill leaves.
    send(child, Signal::STOP);
    wait_for("the run stands still", || is_stopped(child).then_some(()));
    let phase = Held::of(place).phase();
    child.kill().expect("kill");
    child.wait().expect("wait");
    Some(phase)
}

/// What dead runs left, until a start has undone it.
#[derive(Default)]
struct Left {
    paths: BTreeSet<PathBuf>,
}

impl Left {
    fn note(&mut self, place: &Place) {
        self.paths.extend(place.journaled("group"));
        self.paths.extend(place.journaled("file"));
    }

    #[track_caller]
    fn expect_undone(&mut self) {
        for path in &self.paths {
            assert!(!path.exists(), "{} is left", path.display());
        }
        self.paths.clear();
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // Of a test that failed; its journal vanishes with its mounts.
        for path in &self.paths {
            let _ = pagewise_host::cgroup::sweep(path);
        }
    }
}

/// Kills runs and resumptions of them until `kills` have been killed alive.
fn kill_again_and_again(seed: u64, kills: usize) -> Killed {
    let mut random = Random::new(seed);
    let mut killed = Killed::default();
    let mut place = Place::new();
    let setting = Setting::of(&place);
    let mut left = Left::default();
    let mut reported: Vec<String> = Vec::new();
    let mut turn = 0;
    // A phase that was missed on a busy machine is aimed at again.
    while killed.phases.len() < kills || PHASES.iter().any(|phase| killed.in_phase(*phase) == 0) {
        turn += 1;
        assert!(turn < 5 * kills, "runs end before they can be killed where it counts: {killed:?}");
        let path = place.file("run.jsonl");
        if path.exists() && reported.is_empty() {
            fs::remove_file(&path).expect("remove");
        }
        let mut command =
            if reported.is_empty() { place.command(&CONDITIONS) } else { place.command(&RESUME) };
        let mut child = command.spawn().expect("start");
        let phase = kill_in(&place, &setting, &mut child, turn % (PHASES.len() + 1), &mut random);
        killed.phases.extend(phase);
        killed.readahead += u32::from(phase.is_some() && setting.is_changed());
        // Nothing of the dead run works on.
        place.expect_no_process();
        // Whoever has the right to run has undone what was left before.
        let holder = fs::read_to_string(place.state().join("lock")).unwrap_or_default();
        let begun = holder.starts_with(&format!("pid {},", child.id()));
        let mut now = Left::default();
        now.note(&place);
        if begun {
            left.paths.retain(|path| !now.paths.contains(path));
            left.expect_undone();
        }
        left.paths.append(&mut now.paths);
        let lines = whole_lines(&path);
        assert!(lines.len() >= reported.len() && lines[..reported.len()] == reported[..], "a line is lost");
        reported = lines;
        if random.below(3) == 0 || phase.is_none() {
            expect_clean(&place, &setting, &mut left);
        }
        if phase.is_none() {
            place = Place::new();
            reported = Vec::new();
        }
    }
    expect_clean(&place, &setting, &mut left);
    killed
}

/// `clean` undoes all.
#[track_caller]
fn expect_clean(place: &Place, setting: &Setting, left: &mut Left) {
    left.note(place);
    let cleaned = place.run(&["clean"]);
    assert_eq!((cleaned.code(), &*cleaned.stderr), (0, ""), "{cleaned:?}");
    left.expect_undone();
    assert_eq!(setting.bytes(), setting.original, "readahead stays changed");
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
    place.expect_no_trace();
}

#[track_caller]
fn expect_every_phase(killed: &Killed) {
    let counts: Vec<(Phase, usize)> = PHASES.iter().map(|phase| (*phase, killed.in_phase(*phase))).collect();
    println!(
        "killed {counts:?}, between them {}, with another readahead {}",
        killed.in_phase(Phase::Between),
        killed.readahead
    );
    assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
    assert!(killed.readahead > 0);
}

/// Fifty in all, by two threads that do not know of each other; fifty more without conditions are killed in
/// `interrupted.rs`.
#[test]
fn killed_twenty_five_times_under_conditions() {
    if possible("killed_twenty_five_times_under_conditions") {
        expect_every_phase(&kill_again_and_again(1, 25));
    }
}

#[test]
fn killed_twenty_five_times_more_under_conditions() {
    if possible("killed_twenty_five_times_more_under_conditions") {
        expect_every_phase(&kill_again_and_again(2, 25));
    }
}

/// A run that sets readahead and nothing else.
fn with_readahead(out: &str) -> Vec<&str> {
    let others = ["--memory", "--device", "--file", "--readahead", "--out"];
    let kept = CONDITIONS.iter().filter(|word| !others.iter().any(|start| word.starts_with(start)));
    kept.copied().chain(["--file-size=4MiB", "--readahead=128KiB", "--out", out]).collect()
}

#[test]
fn a_new_run_after_a_killed_one_finds_the_machine_as_it_was() {
    if !possible("a_new_run_after_a_killed_one_finds_the_machine_as_it_was") {
        return;
    }
    let place = Place::new();
    let setting = Setting::of(&place);
    let mut child = place.command(&with_readahead("killed.jsonl")).spawn().expect("start");
    wait_for("another readahead", || setting.is_changed().then_some(()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    place.expect_no_process();
    assert!(setting.is_changed(), "the kill left it");
    let finished = place.run(&with_readahead("new.jsonl"));
    let said = format!("set {} back to {}, left by an earlier run", setting.path.display(), setting.original);
    assert!(finished.stderr.contains(&said), "{finished:?}");
    let run = load(&place.file("new.jsonl"));
    assert!(run.is_complete());
    assert_eq!(run.header.environment.readahead_bytes, Some(Bytes(setting.original)));
    assert_eq!(setting.bytes(), setting.original);
    place.expect_no_trace();
}

#[test]
fn what_somebody_else_set_meanwhile_is_left_alone() {
    if !possible("what_somebody_else_set_meanwhile_is_left_alone") {
        return;
    }
    const THEIRS: u64 = 256 << 10;
    let place = Place::new();
    let setting = Setting::of(&place);
    // After a kill.
    let mut child = place.command(&with_readahead("run.jsonl")).spawn().expect("start");
    wait_for("another readahead", || setting.is_changed().then_some(()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    place.expect_no_process();
    setting.set(THEIRS);
    let cleaned = place.run(&["clean"]).expect_code(0);
    assert_eq!(setting.bytes(), THEIRS, "{cleaned:?}");
    assert!(!cleaned.stdout.contains("read_ahead_kb"), "{cleaned:?}");
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new());

    // In the middle of a run: what was set then is there again at its end.
    setting.set(setting.original);
    fs::remove_file(place.file("run.jsonl")).expect("remove");
    let child = place.command(&with_readahead("run.jsonl")).spawn().expect("start");
    wait_for("another readahead", || setting.is_changed().then_some(()));
    setting.set(THEIRS);
    place.finish(child);
    assert!(load(&place.file("run.jsonl")).is_complete());
    assert_eq!(setting.bytes(), THEIRS);
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
    setting.set(setting.original);
    place.expect_no_trace();
}

/// Words of a run under a memory limit alone, which needs no filesystem of its own.
const LIMITED: [&str; 13] = [
    "run",
    "read",
    "--workload=random-read",
    "--methods=pread",
    "--threads=1",
    "--cache=warm",
    "--no-ceilings",
    "--rounds=7",
    "--sample=1ms",
    "--latency=1ms",
    "--memory=96MiB",
    "--file-size=48MiB",
    "--out=run.jsonl",
];

/// What failed could fail on any busy machine.
#[track_caller]
fn expect_undisturbed(run: &Run) {
    for sample in of_methods(run) {
        let outside = kinds(sample).iter().all(|kind| FROM_OUTSIDE.contains(kind));
        assert!(outside && !matches!(sample.outcome, Outcome::Unavailable { .. }), "{:?}", sample.outcome);
    }
}

#[test]
fn a_run_that_is_stopped_while_it_warms_leaves_nothing_and_is_resumed() {
    if let Some(reason) = lacking() {
        return skipped("cgroup", &reason);
    }
    // As a terminal does, all processes of the run get it; or it alone.
    for group in [true, false] {
        let place = Place::new();
        let child = place.command(&LIMITED).process_group(0).spawn().expect("start");
        let held = wait_for("warming", || {
            let held = Held::of(&place);
            (held.phase() == Phase::Warming).then_some(held)
        });
        let pid = Pid::from_raw(child.id() as i32).expect("a process id");
        if group {
            rustix::process::kill_process_group(pid, Signal::INT).expect("kill");
        } else {
            rustix::process::kill_process(pid, Signal::INT).expect("kill");
        }
        let finished = place.finish(child).expect_code(130);
        assert!(finished.stderr.contains("stopped; the samples so far are in run.jsonl"), "{finished:?}");
        assert_eq!(place.entries(), ["run.jsonl".to_string()].into());
        assert!(held.groups.iter().all(|group| !group.exists()), "{held:?}");
        assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
        place.expect_no_process();
        let before = load(&place.file("run.jsonl"));
        expect_undisturbed(&before);

        place.run(&RESUME);
        let after = load(&place.file("run.jsonl"));
        expect_whole(&after);
        assert_eq!(after.header, before.header, "the conditions are those that it began with");
        expect_undisturbed(&after);
        assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
        place.expect_no_trace();
    }
}

#[test]
fn the_group_of_a_live_run_is_left_alone() {
    if let Some(reason) = lacking() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    let worker = cheating_worker("hangs-at-start");
    let first = place.command(&[&LIMITED[..], &["--worker-command", &worker]].concat());
    let first = { first }.spawn().expect("start");
    let held = wait_for("the worker hangs in its group", || {
        let held = Held::of(&place);
        held.commands.iter().any(|command| command.contains("hangs-at-start")).then_some(held)
    });
    let other = Place::new();
    for words in [&["clean"][..], &LIMITED] {
        let mut command = other.command(words);
        command.env("PAGEWISE_STATE_DIR", place.state());
        let finished = other.finish(command.spawn().expect("start"));
        match words {
            ["clean"] => assert!(finished.stdout.starts_with("A run is live (pid "), "{finished:?}"),
            _ => expect_told(&finished, 4, &format!("another run is measuring (pid {}, ", first.id())),
        }
        assert!(held.groups.iter().all(|group| group.exists()), "{held:?}");
    }
    assert!(other.entries().is_empty());
    send(&first, Signal::TERM);
    place.finish(first).expect_code(130);
    assert!(held.groups.iter().all(|group| !group.exists()), "{held:?}");
    place.expect_no_trace();
}

#[test]
fn what_a_worker_leaves_running_in_its_group_ends_with_it() {
    if let Some(reason) = lacking() {
        return skipped("cgroup", &reason);
    }
    let place = Place::new();
    let worker = cheating_worker("keeps-mapped");
    let child = place.command(&[&LIMITED[..], &["--worker-command", &worker]].concat()).spawn();
    let mut groups = BTreeSet::new();
    let mut child = child.expect("start");
    wait_for("the end", || {
        groups.extend(place.journaled("group"));
        child.try_wait().expect("wait")
    });
    assert!(load(&place.file("run.jsonl")).is_complete());
    assert!(groups.len() >= 2 && groups.iter().all(|group| !group.exists()), "{groups:?}");
    assert_eq!(place.journal(), Vec::<serde_json::Value>::new());
    place.expect_no_trace();
}
