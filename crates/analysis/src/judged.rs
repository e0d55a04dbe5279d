//! The judged run: everything that is shown of a run, as one value that serializes to the judged JSON.
//!
//! Other programs build on this JSON; its fields only ever grow. Units stand in the keys, missing is `null`.

mod cell;
mod cold_start;
mod comparison;
mod evidence;
pub(crate) mod label;
mod stall;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use pagewise_model::run::{Run, SCHEMA_VERSION};
use pagewise_model::sample::FailureKind;
use pagewise_model::{Environment, Source, WorkerFound};
use serde::Serialize;

use crate::advice::{Advice, advise_all};
use crate::bound::{Ceilings, CopyCeiling, DeviceCeiling};
use crate::checks::{self, Again};
use crate::cliff::{self, Cliff};
use crate::collected::{CellSamples, collect};
use crate::lucene::{self, Lucene};

pub use cell::{CellJudgement, MedianInterval, Parameters, Status};
pub use cold_start::ColdWindow;
pub use comparison::{AsIs, ComparedConditions, Comparison, NoiseSource, RatioToLeader, Unranked};
pub use evidence::EvidenceMedians;
pub use stall::{Lateness, Stall, stall_not_told, worst};

/// A run with all that follows from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Version of this JSON.
    pub schema: u32,
    /// What was run.
    pub run: RunSummary,
    /// What it was run on.
    pub environment: Environment,
    /// Workers other than pagewise itself that the plan needs.
    pub workers: Vec<WorkerSummary>,
    /// What to know before the numbers are read, one sentence each.
    pub warnings: Vec<String>,
    /// The most that device and memory did in this run.
    pub ceilings: CeilingsSummary,
    /// Every cell in the order of the plan.
    pub cells: Vec<CellJudgement>,
    /// Every set of conditions under which methods are compared.
    pub comparisons: Vec<Comparison>,
    /// How many samples can be believed.
    pub validity: Validity,
    /// What to choose, one for each comparison.
    pub advice: Vec<Advice>,
    /// Where methods change places as the data grow, if the run looked for that.
    pub cliff: Option<Cliff>,
    /// The tables of the study that the question `lucene` repeats; `None` of any other.
    pub lucene: Option<Lucene>,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// The question or the plan file's name.
    pub question: String,
    /// Where the bytes came from.
    pub source: Source,
    /// Seed of everything that was drawn.
    pub seed: u64,
    /// Samples of every cell that the plan asks for.
    pub rounds: u32,
    /// How long a throughput phase lasts.
    pub sample_ns: u64,
    /// How long a latency phase may last.
    pub latency_ns: u64,
    /// Whether the run got to its end.
    pub complete: bool,
    /// Samples that the plan asks for.
    pub samples_planned: u64,
    /// Those of them that were tried, however often.
    pub samples_tried: u64,
    /// How long it took, if it got to its end.
    pub elapsed_ns: Option<u64>,
    /// How often it was resumed.
    pub resumptions: u32,
    /// Interval of heartbeats; `None` without them.
    pub heartbeat_ns: Option<u64>,
    /// A command that took the place of pagewise's own worker.
    pub worker_command: Option<String>,
}

/// A worker other than pagewise itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerSummary {
    /// `jvm`, `go`, `python`, or the name that the user gave.
    pub name: String,
    /// Version of its toolchain, or what it says of itself; `None` where it could not be had.
    pub version: Option<String>,
    /// How it is started, with its flags; empty where it could not be.
    pub command: Vec<String>,
    /// What was passed over to find it.
    pub notes: Vec<String>,
    /// Why its cells are unavailable; `None` where they are not.
    pub unavailable: Option<String>,
}

impl WorkerSummary {
    fn of(found: &WorkerFound) -> Self {
        Self {
            name: found.name.clone(),
            version: Some(found.version.clone()).filter(|version| !version.is_empty()),
            command: found.command.clone(),
            notes: found.notes.clone(),
            unavailable: found.unavailable.clone(),
        }
    }
}

/// The most that device and memory did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CeilingsSummary {
    /// Requests per second of the device.
    pub device_iops: Option<f64>,
    /// Bytes per second of the device.
    pub device_bytes_per_second: Option<f64>,
    /// Bytes per second of copying from memory.
    pub copy_bytes_per_second: Option<f64>,
    /// What the device did by threads, depth and size.
    pub device: Vec<DeviceCeiling>,
    /// What the memory did by threads and size.
    pub copy: Vec<CopyCeiling>,
}

/// How many samples can be believed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validity {
    /// Attempts that were taken.
    pub samples: usize,
    /// Attempts that passed every check.
    pub valid: usize,
    /// Attempts that did not.
    pub invalid: usize,
    /// Cells that the machine does not offer.
    pub unavailable_cells: usize,
    /// Valid over taken; `None` of none.
    pub share: Option<f64>,
    /// Why samples were invalid, the most frequent first.
    pub reasons: Vec<InvalidReason>,
    /// Whose checks decided it.
    pub as_of: AsOf,
    /// Attempts that this pagewise finds valid and the one that measured did not.
    pub valid_now: usize,
    /// Attempts that this pagewise finds invalid and the one that measured did not.
    pub invalid_now: usize,
}

/// Whose checks decided which samples are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsOf {
    /// Those of the pagewise that judges: the run file holds what they need.
    Report,
    /// Those of the pagewise that measured, at least for some samples: the file lacks what checks need.
    Measurement,
}

/// A check that failed, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InvalidReason {
    /// Which check.
    pub kind: FailureKind,
    /// In how many attempts.
    pub count: usize,
    /// What the first of them said.
    pub example: String,
}

impl Judged {
    /// Whether something is invalid or missing that the plan asked for and the machine offers: the
    /// command's exit code.
    pub fn fell_short(&self) -> bool {
        let short = |cell: &CellJudgement| {
            let partly = cell.covered.is_some_and(|share| share < 1.0);
            cell.status != Status::Unavailable && (cell.samples < self.run.rounds as usize || partly)
        };
        !self.run.complete || self.cells.iter().any(short)
    }

    /// All cells by their ids.
    pub fn by_id(&self) -> ById<'_> {
        by_id(&self.cells)
    }
}

/// Cells by their ids.
pub type ById<'a> = HashMap<&'a str, &'a CellJudgement>;

pub(crate) fn by_id(cells: &[CellJudgement]) -> ById<'_> {
    cells.iter().map(|cell| (cell.id.as_str(), cell)).collect()
}

/// Judges a run, complete or not, with today's checks where its file holds what they need.
pub fn judge(run: &Run) -> Judged {
    let checked = checks::again(run);
    let run = &*checked.run;
    let samples = collect(run);
    let ceilings = Ceilings::of(&samples);
    let cells: Vec<CellJudgement> =
        samples.iter().map(|samples| CellJudgement::of(samples, &ceilings)).collect();
    let sides = comparison::sides(&samples);
    let noise = sides.iter().filter_map(comparison::Side::noise).max_by(f64::total_cmp);
    let comparisons: Vec<Comparison> = sides.iter().map(|side| side.compare(noise)).collect();
    let advice = advise_all(&comparisons, &cells);
    let summary = summary(run, &samples);
    let validity = validity(&samples, &checked);
    let is_lucene = run.header.plan.question == lucene::QUESTION;
    let lucene = is_lucene.then(|| lucene::tables(run, &samples, &cells, &comparisons));
    Judged {
        schema: SCHEMA_VERSION,
        warnings: warnings(run, &summary, &checked),
        run: summary,
        workers: run.header.workers.iter().map(WorkerSummary::of).collect(),
        environment: run.header.environment.clone(),
        ceilings: CeilingsSummary {
            device_iops: ceilings.device_iops(),
            device_bytes_per_second: ceilings.device_bytes_per_second(),
            copy_bytes_per_second: ceilings.copy_bytes_per_second(),
            device: ceilings.device,
            copy: ceilings.copy,
        },
        cells,
        comparisons,
        validity,
        advice,
        cliff: run.header.plan.search.is_some().then(|| cliff::crossings(run)),
        lucene,
    }
}

fn summary(run: &Run, samples: &[CellSamples<'_>]) -> RunSummary {
    let plan = &run.header.plan;
    let tried = |cell: &CellSamples<'_>| {
        let mut rounds: Vec<u32> = cell.attempts.iter().map(|sample| sample.round).collect();
        rounds.sort_unstable();
        rounds.dedup();
        rounds.len() as u64
    };
    RunSummary {
        question: plan.question.clone(),
        source: plan.source.clone(),
        seed: plan.seed,
        rounds: plan.rounds,
        sample_ns: plan.sample_ns,
        latency_ns: plan.latency_ns,
        complete: run.is_complete(),
        samples_planned: (plan.cells.len() as u64).saturating_mul(u64::from(plan.rounds)),
        samples_tried: samples.iter().map(tried).sum(),
        elapsed_ns: run.elapsed_ns,
        resumptions: run.resumptions,
        heartbeat_ns: Some(plan.workers.heartbeat_ns).filter(|interval| *interval > 0),
        worker_command: run.header.worker_command.clone(),
    }
}

fn warnings(run: &Run, summary: &RunSummary, checked: &Again<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(command) = &summary.worker_command {
        warnings.push(format!("the samples come from another worker, '{command}', not from pagewise's own"));
    }
    if !summary.complete {
        warnings.push(format!(
            "the run is not complete: {} of {} planned samples so far",
            summary.samples_tried, summary.samples_planned
        ));
    }
    if summary.resumptions > 0 {
        let times = if summary.resumptions == 1 { "once" } else { "several times" };
        warnings.push(format!("the run was interrupted and resumed {times}"));
    }
    if checked.as_measured > 0 {
        warnings.push(format!(
            "which samples are valid is as of pagewise {}, which measured them: the run file lacks what checks need to be \
             applied again",
            run.header.environment.pagewise_version
        ));
    }
    if checked.valid_now + checked.invalid_now > 0 {
        warnings.push(format!(
            "the checks of this pagewise differ from those that measured: {} more valid by them, {} more not",
            counted(checked.valid_now, "sample is", "samples are"),
            counted(checked.invalid_now, "is", "are"),
        ));
    }
    warnings.extend(run.header.environment.warnings.iter().cloned());
    warnings
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn validity(samples: &[CellSamples<'_>], checked: &Again<'_>) -> Validity {
    let mut reasons: Vec<InvalidReason> = Vec::new();
    let attempts = samples.iter().flat_map(|cell| &cell.attempts);
    // A sample may fail checks of one kind for several reasons, and counts once.
    let first_of_kind = attempts.flat_map(|sample| {
        let failures = sample.failures();
        failures
            .iter()
            .enumerate()
            .filter(|(index, failure)| !failures[..*index].iter().any(|other| other.kind == failure.kind))
            .map(|(_, failure)| failure)
    });
    for failure in first_of_kind {
        match reasons.iter_mut().find(|reason| reason.kind == failure.kind) {
            Some(reason) => reason.count += 1,
            None => {
                let (kind, example) = (failure.kind, failure.detail.clone());
                reasons.push(InvalidReason { kind, count: 1, example });
            }
        }
    }
    reasons.sort_by_key(|reason| (std::cmp::Reverse(reason.count), reason.kind));
    let valid =
        samples.iter().flat_map(|cell| &cell.attempts).filter(|sample| sample.valid().is_some()).count();
    let invalid = samples.iter().map(CellSamples::invalid_attempts).sum::<usize>();
    let taken = valid + invalid;
    Validity {
        samples: taken,
        valid,
        invalid,
        unavailable_cells: samples.iter().filter(|cell| cell.unavailable().is_some()).count(),
        share: (taken > 0).then(|| valid as f64 / taken as f64),
        reasons,
        as_of: if checked.as_measured > 0 { AsOf::Measurement } else { AsOf::Report },
        valid_now: checked.valid_now,
        invalid_now: checked.invalid_now,
    }
}
