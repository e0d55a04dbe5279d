//! A run under a memory limit, a device cap and another readahead, killed at random moments: the
//! next start undoes what it did to the machine. Each step once, by name, is a part of `./check`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::setting::{Left, Setting, in_own_mounts_with_limits};
use crate::support::words::{RESUME, WARM_READS};
use crate::support::{Place, code_for, load, wait_for, whole_lines};
use pagewise_model::random::Random;
use rustix::process::{Pid, Signal};

/// Twice the cache that fits: every sample is warmed from within and settles before its device is
/// capped.
fn conditions() -> Vec<&'static str> {
    const MORE: [&str; 11] = [
        "--methods=pread",
        "--no-ceilings",
        "--rounds=7",
        "--sample=1ms",
        "--memory=12MiB",
        "--file-size=20MiB",
        "--readahead=128KiB",
        "--readahead=64KiB",
        "--device-cap=read-iops=100000",
        "--seed=3",
        "--out=run.jsonl",
    ];
    [&WARM_READS[..], &MORE].concat()
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
            if reported.is_empty() { place.command(&conditions()) } else { place.command(&RESUME) };
        let mut child = command.spawn().expect("start");
        let phase = kill_in(&place, &setting, &mut child, turn % (PHASES.len() + 1), &mut random);
        killed.phases.extend(phase);
        killed.readahead += u32::from(phase.is_some() && setting.is_changed());
        // Nothing of the dead run works on.
        place.expect_no_process();
        // Whoever has the right to run has undone what was left before.
        let holder = fs::read_to_string(place.state().join("lock")).unwrap_or_default();
        let begun = holder.starts_with(&format!("pid {},", child.id()));
        let mut now = Left::of(&place);
        if begun {
            left.keep_what_is_not_in(&now);
            left.expect_undone();
        }
        left.append(&mut now);
        let lines = whole_lines(&path);
        assert!(lines.len() >= reported.len() && lines[..reported.len()] == reported[..], "a line is lost");
        reported = lines;
        if random.below(3) == 0 || phase.is_none() {
            left.expect_cleaned(&place);
            setting.expect_restored();
        }
        if phase.is_none() {
            place = Place::new();
            reported = Vec::new();
        }
    }
    left.expect_cleaned(&place);
    setting.expect_restored();
    killed
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

#[test]
fn killed_at_random_moments_under_conditions() {
    if in_own_mounts_with_limits("killed_at_random_moments_under_conditions") {
        expect_every_phase(&kill_again_and_again(1, 100));
    }
}
