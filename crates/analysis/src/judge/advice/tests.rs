//! Advice of runs with given times.

mod append;
mod fill;
mod reads;
mod scan;
mod workers;

use super::*;
use crate::judge::collected::{collect, samples_by_id};
use crate::judge::judge;
use crate::judge::judged::Judged;
use crate::judge::tests::{notes, sentence, words};
use crate::proof::honest;
use pagewise_model::run::{Header, Run};
use pagewise_model::{Cell, Failure, FailureKind, Outcome, Plan, Role, Sample};

pub(super) const ROUNDS: u32 = 8;
pub(super) const MS: u64 = 1_000_000;

/// A cell with its times; each round adds a thousandth, so that intervals have a width.
pub(super) struct Timed {
    pub cell: Cell,
    pub setup_ns: u64,
    pub measured_ns: u64,
    /// Factor for the times of every other round.
    pub unsteady: f64,
    pub latency: Option<(u64, u64)>,
    pub invalid: bool,
}

pub(super) fn timed(cell: Cell, setup_ns: u64, measured_ns: u64) -> Timed {
    Timed { cell, setup_ns, measured_ns, unsteady: 1.0, latency: None, invalid: false }
}

impl Timed {
    /// 10,000 operations were timed: at most `p999` ns, except for the longest.
    pub fn latency(self, p999: u64, max: u64) -> Self {
        Self { latency: Some((p999, max)), ..self }
    }

    pub fn unsteady(self, unsteady: f64) -> Self {
        Self { unsteady, ..self }
    }

    pub fn invalid(self) -> Self {
        Self { invalid: true, ..self }
    }

    fn sample(&self, round: u32) -> Sample {
        let factor = (1.0 + f64::from(round) * 1e-3) * if round % 2 == 1 { self.unsteady } else { 1.0 };
        let mut measurement = honest::measurement_of(&self.cell);
        measurement.setup_ns = (self.setup_ns as f64 * factor) as u64;
        measurement.measured_ns = (self.measured_ns as f64 * factor) as u64;
        measurement.teardown_ns = 0;
        if let Some((p999, max)) = self.latency {
            measurement.latency_ns = vec![p999, max];
            measurement.latency_counts = vec![9_999, 1];
        }
        let failure = Failure { kind: FailureKind::LostRecords, detail: "400 B are missing".into() };
        let outcome = Outcome::Taken {
            measurement: Box::new(measurement),
            evidence: Box::new(honest::evidence(&self.cell)),
            failures: if self.invalid { vec![failure] } else { Vec::new() },
        };
        Sample::of(&self.cell, round, outcome)
    }
}

/// A run with its judgement.
pub(super) struct JudgedRun {
    run: Run,
    judged: Judged,
}

impl std::ops::Deref for JudgedRun {
    type Target = Judged;
    fn deref(&self) -> &Judged {
        &self.judged
    }
}

/// The judged run of these cells in `rounds` rounds. The first of each comparison has a control.
pub(super) fn judged_in(rounds: u32, cells: Vec<Timed>) -> JudgedRun {
    let mut cells = cells;
    let mut controls: Vec<Timed> = Vec::new();
    for timed in &cells {
        if controls.iter().all(|control| control.cell.conditions != timed.cell.conditions) {
            let cell = Cell { role: Role::Control, ..timed.cell.clone() };
            controls.push(Timed {
                setup_ns: timed.setup_ns,
                measured_ns: timed.measured_ns,
                cell,
                unsteady: timed.unsteady,
                latency: None,
                invalid: false,
            });
        }
    }
    cells.extend(controls);
    let run = Run {
        elapsed_ns: Some(1),
        ..Run::of(
            Header::of(Plan {
                question: "constructed".into(),
                rounds,
                sample_ns: 100 * MS,
                ..Plan::of(cells.iter().map(|timed| timed.cell.clone()).collect())
            }),
            (0..rounds).flat_map(|round| cells.iter().map(move |timed| timed.sample(round))).collect(),
        )
    };
    let judged = judge(&run);
    JudgedRun { run, judged }
}

pub(super) fn judged(cells: Vec<Timed>) -> JudgedRun {
    judged_in(ROUNDS, cells)
}

/// The judged run with its cells changed.
pub(super) fn changed(mut of: JudgedRun, change: impl Fn(&mut CellJudgement)) -> JudgedRun {
    let judged = &mut of.judged;
    judged.cells.iter_mut().for_each(change);
    judged.advice = advise_all(
        &judged.comparisons,
        &judged.cells,
        &samples_by_id(&collect(&of.run)),
        PRICE_OF_SIMPLICITY,
    );
    of
}

/// Each situation with its choice.
pub(super) fn choices(judged: &Judged) -> Vec<String> {
    let chosen = |advice: &Recommendation| advice.recommended.clone().unwrap_or("–".to_string());
    let all = words::advice::situations(judged.advice.iter()).into_iter().zip(&judged.advice);
    all.map(|(situation, advice)| format!("{situation}: {}", chosen(advice))).collect()
}

/// The insight of the first comparison, as the report says it.
pub(super) fn insight(judged: &Judged) -> Option<String> {
    judged.advice[0].insight.as_ref().map(words::advice::insight)
}

/// Panics unless one of the notes of the first comparison is `note`.
#[track_caller]
pub(super) fn noted(judged: &Judged, note: &str) {
    let notes = notes(judged, 0);
    assert!(notes.iter().any(|other| other == note), "{notes:#?}");
}

#[test]
fn a_call_is_simpler_than_a_mapping_and_that_than_a_ring() {
    let mut methods = [
        "uring:depth=32",
        "mmap:random",
        "pread:direct",
        "mmap",
        "pread:random",
        "pread",
        "read:buffer=1MiB",
        "read",
    ];
    methods.sort_by_key(|method| effort(method));
    assert_eq!(
        methods,
        [
            "read",
            "read:buffer=1MiB",
            "pread",
            "pread:random",
            "mmap",
            "mmap:random",
            "uring:depth=32",
            "pread:direct"
        ]
    );
}

#[test]
fn each_option_is_one_more_thing_to_get_right_and_a_buffer_is_one() {
    let mut methods = [
        "mmap:prealloc+buffer=4KiB",
        "uring:depth=8+buffer=64KiB",
        "pwrite:direct+buffer=1MiB",
        "pwrite:buffer=64KiB",
        "mmap:buffer=4KiB",
        "pwrite:buffer=4KiB",
        "mmap",
        "write:buffer=64KiB",
        "pwrite",
        "write",
    ];
    methods.sort_by_key(|method| effort(method));
    assert_eq!(
        methods,
        [
            "write",
            "write:buffer=64KiB",
            "pwrite",
            "pwrite:buffer=4KiB",
            "pwrite:buffer=64KiB",
            "mmap",
            "mmap:buffer=4KiB",
            "mmap:prealloc+buffer=4KiB",
            "uring:depth=8+buffer=64KiB",
            "pwrite:direct+buffer=1MiB"
        ]
    );
}
