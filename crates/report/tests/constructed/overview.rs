//! The four runs of an overview, as large as those of a machine.

use pagewise_model::sample::Sample;
use pagewise_model::{HostCounters, HostSecond};

use super::*;

const READING: [&str; 8] = [
    "mmap",
    "mmap:random",
    "mmap:random+prefetch",
    "pread",
    "pread:random",
    "pread:direct",
    "uring:depth=32",
    "uring:direct+depth=32",
];
const SCANNING: [&str; 7] = [
    "mmap:in-place",
    "mmap:sequential+in-place",
    "mmap:populate+in-place",
    "read:buffer=64KiB",
    "read:buffer=1MiB",
    "read:direct+buffer=1MiB",
    "uring:direct+depth=8+buffer=256KiB",
];
const APPENDING: [&str; 9] = [
    "mmap",
    "mmap:prealloc",
    "mmap:buffer=4KiB",
    "mmap:buffer=64KiB",
    "pwrite",
    "pwrite:buffer=4KiB",
    "pwrite:buffer=64KiB",
    "pwrite:buffer=1MiB",
    "pwrite:direct+buffer=1MiB",
];
const FILLING: [&str; 7] = [
    "mmap",
    "mmap:prealloc",
    "mmap:populate",
    "mmap:populate-write",
    "mmap:touch",
    "mmap:pretouch=4MiB",
    "pwrite:buffer=64KiB",
];
/// Reasons by which other programs make samples invalid.
const REASONS: [FailureKind; 3] = [FailureKind::Contaminated, FailureKind::NotWarm, FailureKind::Disturbed];

/// The four runs: nine situations, and this many samples that are invalid.
pub fn overview(invalid: usize) -> Vec<Run> {
    let mut read = complete();
    read.header.plan.question = "read".to_string();
    let runs = [
        (with_sequential(with_methods(read, &READING)), 68),
        (with_methods(scan(), &SCANNING), 18),
        (with_methods(append(), &APPENDING), 12),
        (with_methods(fill(), &FILLING), 5),
    ];
    let all: usize = runs.iter().map(|(run, _)| run.samples.len()).sum();
    let mut left = invalid;
    let mut disturbed: Vec<Run> = Vec::new();
    for (mut run, took_s) in runs.into_iter().rev() {
        let is_last = disturbed.len() == 3;
        let own = if is_last { left } else { invalid * run.samples.len() / all };
        left -= own;
        fail_before(&mut run, own);
        run.seconds = seconds(took_s);
        disturbed.insert(0, run);
    }
    disturbed
}

/// The run with these methods in each of its situations, and no others.
fn with_methods(mut run: Run, methods: &[&'static str]) -> Run {
    let measured = |cell: &&Cell| cell.role == Role::Measured;
    let mut situations: Vec<Conditions> = Vec::new();
    for cell in run.header.plan.cells.iter().filter(measured) {
        if !situations.contains(&cell.conditions) {
            situations.push(cell.conditions.clone());
        }
    }
    let plan = std::mem::take(&mut run.header.plan.cells);
    let samples = std::mem::take(&mut run.samples);
    for conditions in situations {
        // One that is valid in each round stands for those that the run does not have.
        let valid = |cell: &&Cell| {
            let id = cell.id();
            let is_valid = |sample: &Sample| matches!(&sample.outcome, Outcome::Taken { failures, .. } if failures.is_empty());
            samples.iter().filter(|sample| sample.cell == id).filter(|sample| is_valid(sample)).count()
                == ROUNDS as usize
        };
        let own = || plan.iter().filter(measured).filter(|cell| cell.conditions == conditions);
        let model = own().find(valid).expect("a cell").id();
        for (index, name) in methods.iter().enumerate() {
            let cell = Cell { role: Role::Measured, method: method(name), conditions: conditions.clone() };
            for sample in samples.iter().filter(|sample| sample.cell == model) {
                let mut sample = Sample { cell: cell.id(), ..sample.clone() };
                if let Outcome::Taken { measurement, .. } = &mut sample.outcome {
                    measurement.measured_ns += measurement.measured_ns * index as u64 / 4;
                }
                run.samples.push(sample);
            }
            run.header.plan.cells.push(cell);
        }
    }
    run
}

/// A run of random reads with the same of reads in order.
fn with_sequential(mut run: Run) -> Run {
    for cell in run.header.plan.cells.clone() {
        let Work::RandomRead(reads) = cell.conditions.work else { continue };
        let conditions = Conditions { work: Work::SequentialRead(reads), ..cell.conditions.clone() };
        let other = Cell { conditions, ..cell.clone() };
        let id = cell.id();
        let same: Vec<Sample> = run.samples.iter().filter(|sample| sample.cell == id).cloned().collect();
        run.samples.extend(same.into_iter().map(|sample| Sample { cell: other.id(), ..sample }));
        run.header.plan.cells.push(other);
    }
    run
}

/// So many failed attempts before samples of the run, in turn.
fn fail_before(run: &mut Run, count: usize) {
    let valid = run.samples.clone();
    for (number, sample) in valid.iter().cycle().take(count).enumerate() {
        let mut failed = sample.clone();
        let detail = format!(
            "others moved {} bytes on the device while the worker read {}",
            9_437_184 + number,
            31_457_280
        );
        fail(&mut failed, REASONS[number % REASONS.len()], &detail);
        run.samples.insert(number, failed);
    }
}

/// A host that was read each second.
fn seconds(count: u64) -> Vec<HostSecond> {
    let host = |step: u64| {
        let busy = step * 7919 % 90;
        HostCounters {
            swapped_bytes: Some(0),
            steal_ns: Some(step * 10_000_000),
            running: Some(step % 3),
            blocked: Some(step % 2),
            free_bytes: Some((20 << 30) - (busy << 24)),
            buffer_bytes: Some((1 << 28) + (busy << 16)),
            cached_bytes: Some((2 << 30) + (busy << 24)),
            block_in_bytes: Some((step * 400 + busy * 3) << 20),
            block_out_bytes: Some((step * 100 + busy) << 20),
            interrupts: Some(step * 21_000 + busy * 37),
            context_switches: Some(step * 33_000 + busy * 41),
            user_ns: Some(step * 600_000_000 + busy * 1_000_000),
            system_ns: Some(step * 800_000_000 + busy * 2_000_000),
            idle_ns: Some(step * 400_000_000),
            wait_ns: Some(step * 200_000_000),
            ..HostCounters::default()
        }
    };
    (0..count)
        .map(|step| HostSecond { at_ns: step * 1_000_000_000, begins: step == 0, host: host(step) })
        .collect()
}
