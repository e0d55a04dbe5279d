//! Runs that end as soon as they hold what a test asks for.
//!
//! A plan has seven rounds at least, and its samples under a cap last seconds. What is known
//! beforehand shows in the first of them, so such a run is stopped, as a user stops one, and what
//! it holds is judged. They take turns: they would disturb each other.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pagewise_host::Control;
use pagewise_model::run::Run;
use pagewise_model::{Cell, Evidence, FailureKind, Outcome, Role, Sample, sample::Measurement};
use pagewise_report::json::JudgedJson;
use pagewise_report::judged_run::JudgedRun;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Place, is_honest, load, skipped};

/// What every run here has in common; a later word of the same name replaces it.
const COMMON: [&str; 9] = [
    "run",
    "read",
    "--workload=random-read",
    "--threads=1",
    "--trial-rounds=4",
    "--align=16KiB",
    "--read-size=16KiB",
    "--json",
    "--out=run.jsonl",
];

/// No run here takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test of this program measures.
pub fn my_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether memory can be limited here; reported as a skip if not.
pub fn can_limit_memory() -> bool {
    match Control::detect().tried(random()).memory() {
        Ok(_) => true,
        Err(reason) => {
            skipped("cgroup", &reason.to_string());
            false
        }
    }
}

/// Whether the device below the tests can be capped; reported as a skip if not.
pub fn can_cap_device() -> bool {
    let reason = match Control::detect().tried(random()).device() {
        Ok(_) => pagewise_host::BlockDevice::behind(Path::new(env!("CARGO_TARGET_TMPDIR"))).err(),
        Err(reason) => {
            skipped("cgroup", &reason.to_string());
            return false;
        }
    };
    if let Some(reason) = &reason {
        skipped("cgroup", &reason.to_string());
    }
    reason.is_none()
}

/// A name for a group that is made for a moment.
fn random() -> u64 {
    pagewise_model::random::mix(u64::from(std::process::id()))
}

/// The common words with `more`.
pub fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = COMMON.to_vec();
    for word in more {
        let name = word.split_once('=').map_or(*word, |(name, _)| name);
        arguments.retain(|earlier| !earlier.starts_with(&format!("{name}=")));
        arguments.push(word);
    }
    arguments
}

/// What others do to the machine takes time, but changes no count and no ratio that is known
/// beforehand, nor a rate that a cap fixes. A sample is not ranked for it; here it counts.
const HARMLESS: [FailureKind; 3] =
    [FailureKind::Contaminated, FailureKind::Disturbed, FailureKind::FalseTime];

/// A run, whole or stopped, and its judgement; both without the failures that are harmless here.
pub struct Taken {
    /// What the run file holds.
    pub run: Run,
    /// The judged JSON.
    pub judged: Value,
}

impl Taken {
    /// Judges what a run file holds so far.
    pub fn of(run: &Run) -> Self {
        let run = forgiven(run.clone());
        let judged = pagewise_analysis::judge(&run);
        let judged = JudgedRun::of("", &run, &judged);
        let judged = serde_json::to_value(JudgedJson::of(&judged)).expect("a judged run");
        Self { run, judged }
    }
}

fn forgiven(mut run: Run) -> Run {
    // With what checks need, they would be applied again.
    run.checks.clear();
    for sample in &mut run.samples {
        if let Outcome::Taken { failures, .. } = &mut sample.outcome {
            failures.retain(|failure| !HARMLESS.contains(&failure.kind));
        }
    }
    run
}

/// How often a plan is taken at most.
const ATTEMPTS: u32 = 4;

/// Measures at `place` until `enough` of the run file holds or the plan ends; nothing is left
/// behind. A plan that ends without it is taken again: a machine may reclaim the pages of a warm
/// file each time.
#[track_caller]
pub fn take(place: &Place, more: &[&str], enough: impl Fn(&Run) -> bool) -> Taken {
    take_words(place, &arguments(more), enough)
}

/// The same with nothing but `words`, which name the question and end in a run file `run.jsonl`.
#[track_caller]
pub fn take_words(place: &Place, words: &[&str], enough: impl Fn(&Run) -> bool) -> Taken {
    for attempt in 0..ATTEMPTS {
        let taken = Taken::of(&stop_words(place, words, |run| enough(&forgiven(run))));
        if enough(&taken.run) {
            return taken;
        }
        println!("taken again, as attempt {attempt} has too few valid samples: {}", summary(&taken.run));
        let _ = std::fs::remove_file(place.file("run.jsonl"));
    }
    panic!("{ATTEMPTS} runs have too few valid samples each");
}

/// The same with every failure, and without a second try.
#[track_caller]
pub fn stop_when(place: &Place, more: &[&str], enough: impl Fn(Run) -> bool) -> Run {
    stop_words(place, &arguments(more), enough)
}

/// The same with nothing but `words`.
#[track_caller]
pub fn stop_words(place: &Place, words: &[&str], enough: impl Fn(Run) -> bool) -> Run {
    let mut child = place.command(words).spawn().expect("pagewise starts");
    let deadline = Instant::now() + PATIENCE;
    let (path, mut looked_at) = (place.file("run.jsonl"), 0);
    while child.try_wait().expect("wait").is_none() {
        let late = Instant::now() > deadline;
        let len = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let grown = std::mem::replace(&mut looked_at, len) < len;
        let holds_enough = || Run::parse(&std::fs::read(&path).unwrap_or_default()).is_ok_and(&enough);
        if late || (grown && holds_enough()) {
            let pid = Pid::from_raw(child.id() as i32).expect("a process id");
            let _ = kill_process(pid, Signal::INT);
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let finished = place.finish(child);
    assert!(path.exists(), "{finished:?}");
    let run = load(&path);
    finished.expect_code_for(&run);
    place.expect_no_trace();
    run
}

/// Runs the plan to its end.
#[track_caller]
pub fn take_all(place: &Place, more: &[&str]) -> Taken {
    let finished = place.run(&arguments(more));
    let run = load(&place.file("run.jsonl"));
    finished.expect_code_for(&run);
    place.expect_no_trace();
    Taken::of(&run)
}

/// What samples came to, for a message.
fn summary(run: &Run) -> String {
    let lines = run.samples.iter().map(|sample| match &sample.outcome {
        Outcome::Unavailable { reason } => format!("{}: {reason}", sample.cell),
        _ => format!("{}: {:?}", sample.cell, sample.failures()),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The measured cells and controls that `pick` picks.
pub fn cells(run: &Run, pick: impl Fn(&Cell) -> bool) -> Vec<&Cell> {
    run.header.plan.cells.iter().filter(|cell| cell.role != Role::Ceiling && pick(cell)).collect()
}

/// The samples of the cells that `pick` picks, ceilings too.
pub fn samples(run: &Run, pick: impl Fn(&Cell) -> bool) -> Vec<&Sample> {
    let ids: Vec<String> =
        run.header.plan.cells.iter().filter(|cell| pick(cell)).map(|cell| cell.id()).collect();
    run.samples.iter().filter(|sample| ids.contains(&sample.cell)).collect()
}

/// The valid ones of them.
pub fn valid(run: &Run, pick: impl Fn(&Cell) -> bool) -> Vec<(&Measurement, &Evidence)> {
    samples(run, pick).into_iter().filter_map(Sample::valid).collect()
}

/// Whether each measured cell or control has `count` valid samples.
pub fn each_has(run: &Run, count: usize) -> bool {
    cells(run, |_| true).iter().all(|cell| valid(run, |other| other == *cell).len() >= count)
}

/// Whether each measured cell has `count` valid samples, its control's among them.
pub fn each_method_has(run: &Run, count: usize) -> bool {
    let is_same =
        |cell: &Cell, other: &Cell| cell.method == other.method && cell.conditions == other.conditions;
    let measured = cells(run, |cell| cell.role == Role::Measured);
    measured.iter().all(|cell| valid(run, |other| is_same(cell, other)).len() >= count)
}

/// Whether each measured cell or control has `count` valid samples, or is reported as unavailable.
pub fn each_has_or_cannot(run: &Run, count: usize) -> bool {
    let cannot = |cell: &Cell| {
        let samples = samples(run, |other| other == cell);
        samples.iter().any(|sample| matches!(sample.outcome, Outcome::Unavailable { .. }))
    };
    let has = |cell: &Cell| valid(run, |other| other == cell).len() >= count;
    cells(run, |_| true).iter().all(|cell| has(cell) || cannot(cell))
}

/// No sample of an honest run fails anything that the rest of the machine is not to blame for.
#[track_caller]
pub fn expect_honest(run: &Run) {
    for sample in &run.samples {
        assert!(is_honest(sample), "{}: {:?}", sample.cell, sample.outcome);
    }
}

/// The judged cell of this role and method, and of the read size where one is given.
#[track_caller]
pub fn judged_cell<'a>(judged: &'a Value, role: &str, method: &str, read_bytes: u64) -> &'a Value {
    let cells = judged["cells"].as_array().expect("cells");
    let found = cells.iter().find(|cell| {
        cell["role"] == role
            && cell["method"] == method
            && cell["parameters"]["read_bytes"].as_u64() == Some(read_bytes)
    });
    found.unwrap_or_else(|| panic!("no {role} cell of {method} with reads of {read_bytes}: {judged}"))
}
