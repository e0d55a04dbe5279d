//! A run reduced to the times of its samples, by the wall clock of its machine.

use std::collections::HashMap;

use pagewise_analysis::judge::checked;
use pagewise_analysis::judge::collected::bytes_per_second;
use pagewise_model::run::{Run, RunStart};
use pagewise_model::run_identity::RunIdentity;
use pagewise_model::{Conditions, Outcome, Role, Sample};

use crate::judgement::digest::conditions_of_any_run;

/// Times of samples that the clock of a machine may differ from those of the run without having
/// been set.
const CLOCK_SET_NS: u64 = 10_000_000;

/// A run as a series of samples, each with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// File, as it was named.
    pub name: String,
    /// Identity of the run.
    pub identity: RunIdentity,
    /// True if the run was completed.
    pub is_complete: bool,
    /// Kernel of the run, from one start of the machine to the next.
    pub boot_id: Option<String>,
    /// The plan as it was typed.
    pub plan: Option<String>,
    /// Start at a time that was asked for.
    pub start: Option<RunStart>,
    /// True if the wall clock was set while it ran.
    pub clock_was_set: bool,
    /// Each method under each set of conditions.
    pub accesses: Vec<TimedAccess>,
    /// Samples whose time is known, in chronological order.
    pub spans: Vec<SampleSpan>,
}

/// A method under conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedAccess {
    /// The conditions, as another run has them too.
    pub conditions: Conditions,
    /// The method.
    pub method: String,
    /// True if it is only measured to know what others may reach.
    pub is_ceiling: bool,
    /// Attempts of which the machine refused none.
    pub attempts: usize,
}

/// Time of a sample, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleSpan {
    /// Index of what was measured.
    pub access: usize,
    /// When its accesses were requested.
    pub from_ns: u64,
    /// When they were done.
    pub until_ns: u64,
    /// Bytes that were asked for or reached the file, per second of the throughput phase; `None`:
    /// the sample is not valid.
    pub bytes_per_second: Option<f64>,
}

impl Timeline {
    /// Of a run, with today's checks.
    pub fn of(name: String, run: &Run) -> Self {
        let run = &*checked(run);
        let mut accesses: Vec<TimedAccess> = Vec::new();
        let mut index_of = HashMap::new();
        for cell in &run.header.plan.cells {
            let (conditions, method) = (conditions_of_any_run(&cell.conditions), cell.method.to_string());
            let is_ceiling = cell.role == Role::Ceiling;
            // A control is the same method once more.
            let is_it = |known: &TimedAccess| {
                (known.is_ceiling, &known.method, &known.conditions) == (is_ceiling, &method, &conditions)
            };
            let index = accesses.iter().position(is_it).unwrap_or(accesses.len());
            if index == accesses.len() {
                accesses.push(TimedAccess { conditions, method, is_ceiling, attempts: 0 });
            }
            index_of.insert(cell.id(), (index, cell));
        }
        let mut spans = Vec::new();
        for sample in &run.samples {
            let Some((access, cell)) = index_of.get(&sample.cell) else { continue };
            if matches!(sample.outcome, Outcome::Unavailable { .. }) {
                continue;
            }
            accesses[*access].attempts += 1;
            let Some((from_ns, wall_ns)) = requested(sample) else { continue };
            let rate = |(measurement, evidence)| bytes_per_second(cell, measurement, evidence);
            spans.push(SampleSpan {
                access: *access,
                from_ns,
                until_ns: from_ns.saturating_add(wall_ns),
                bytes_per_second: sample.valid().map(rate).filter(|rate| rate.is_finite()),
            });
        }
        spans.sort_by_key(|span| span.from_ns);
        let environment = &run.header.environment;
        Self {
            identity: RunIdentity::of(run),
            is_complete: run.is_complete(),
            boot_id: environment.boot_id.clone(),
            plan: run.header.plan.typed.clone(),
            start: run.start,
            clock_was_set: clock_was_set(run),
            accesses,
            spans,
            name,
        }
    }

    /// When the last of its samples ended.
    pub(super) fn until_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.until_ns).max().unwrap_or(0)
    }

    /// The most that its clock was off; `None`: not known.
    pub(super) fn clock_error_ns(&self) -> Option<u64> {
        let start = self.start?;
        start.clock_error_ns.filter(|_| start.is_synchronised == Some(true))
    }
}

/// When the accesses of a sample were requested, and how long they took; `None`: not known.
fn requested(sample: &Sample) -> Option<(u64, u64)> {
    match &sample.outcome {
        Outcome::Taken { evidence, .. } => Some((evidence.go_unix_ns?, evidence.wall_ns)),
        _ => None,
    }
}

/// True if samples lie at other times by the wall clock than by the one that nobody sets. Of a run
/// that was continued it is not known.
fn clock_was_set(run: &Run) -> bool {
    let Some(start) = run.start.filter(|_| run.resumptions == 0) else { return false };
    run.samples.iter().any(|sample| {
        let Some((go_ns, _)) = requested(sample) else { return false };
        let asked_ns = start.began_unix_ns.saturating_add(sample.started_ns);
        let latest_ns = asked_ns.saturating_add(sample.took_ns);
        !(asked_ns.saturating_sub(CLOCK_SET_NS)..=latest_ns.saturating_add(CLOCK_SET_NS)).contains(&go_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::run::Header;
    use pagewise_model::sample::Measurement;
    use pagewise_model::{Bytes, Cell, Evidence, Failure, FailureKind, Plan, Reads, Work};

    const MS: u64 = 1_000_000;
    const BEGAN: u64 = 1_800_000_000_000 * MS;

    fn cell(role: Role, method: &str) -> Cell {
        let conditions = Conditions::of(Work::RandomRead(Reads::of(Bytes::kib(16))), Bytes::mib(64));
        Cell { role, method: method.parse().expect("a method"), conditions }
    }

    /// A sample of 1000 reads in 100 ms, begun 20 ms after it was asked for.
    fn sample(cell: &Cell, started_ms: u64, failures: Vec<Failure>) -> Sample {
        let measurement = Measurement { measured_ns: 100 * MS, operations: 1000, ..Measurement::default() };
        let go_unix_ns = Some(BEGAN + (started_ms + 20) * MS);
        let evidence = Evidence { wall_ns: 110 * MS, go_unix_ns, ..Evidence::default() };
        let outcome =
            Outcome::Taken { measurement: Box::new(measurement), evidence: Box::new(evidence), failures };
        Sample { started_ns: started_ms * MS, took_ns: 150 * MS, ..Sample::of(cell, 0, outcome) }
    }

    fn run(cells: &[Cell], samples: Vec<Sample>) -> Run {
        let plan = Plan { sample_ns: 1, retakes: 0, ..Plan::of(cells.to_vec()) };
        let start = RunStart { began_unix_ns: BEGAN, ..RunStart::default() };
        Run { start: Some(start), ..Run::of(Header::of(plan), samples) }
    }

    #[test]
    fn each_sample_has_its_time_and_its_rate() {
        let cells =
            [cell(Role::Measured, "pread"), cell(Role::Control, "pread"), cell(Role::Measured, "mmap")];
        let failed = Failure { kind: FailureKind::NotWarm, detail: "half of it".to_string() };
        let refused = Outcome::Unavailable { reason: "none here".to_string() };
        let samples = vec![
            sample(&cells[0], 0, Vec::new()),
            sample(&cells[2], 200, vec![failed.clone()]),
            sample(&cells[1], 400, Vec::new()),
            Sample::of(&cells[2], 1, Outcome::Broken { failures: vec![failed], stderr_tail: String::new() }),
            Sample::of(&cells[2], 2, refused),
        ];
        let found = Timeline::of("a.jsonl".to_string(), &run(&cells, samples));
        let attempts: Vec<(&str, usize)> =
            found.accesses.iter().map(|access| (access.method.as_str(), access.attempts)).collect();
        assert_eq!(attempts, [("pread", 2), ("mmap", 2)], "a control is the same method");
        let of = |access, from_ms, bytes_per_second| SampleSpan {
            access,
            from_ns: BEGAN + from_ms * MS,
            until_ns: BEGAN + (from_ms + 110) * MS,
            bytes_per_second,
        };
        let rate = Some(10_000.0 * 16384.0);
        assert_eq!(found.spans, [of(0, 20, rate), of(1, 220, None), of(0, 420, rate)]);
        assert!(!found.clock_was_set);
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let cells = [cell(Role::Measured, "pread")];
        let is_set = |started_ms| {
            let sample = Sample { started_ns: started_ms * MS, ..sample(&cells[0], 1000, Vec::new()) };
            Timeline::of("a.jsonl".to_string(), &run(&cells, vec![sample])).clock_was_set
        };
        assert_eq!([850, 880, 1000, 1025, 1040].map(is_set), [true, false, false, false, true]);
        let continued = Run { resumptions: 1, ..run(&cells, vec![sample(&cells[0], 1000, Vec::new())]) };
        assert!(!Timeline::of("a.jsonl".to_string(), &continued).clock_was_set);
    }
}
