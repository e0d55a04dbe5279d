//! The judged run: everything that is shown of a run, as one value. The judged JSON consists of it
//! and of the sentences that the report makes of it.
//!
//! Other programs use this JSON; its fields only ever grow. Units are part of the keys, missing
//! values are `null`.

use std::collections::BTreeMap;

use pagewise_model::FailureKind;
use pagewise_model::inspection::Inspection;
use pagewise_model::run::RunStart;
use pagewise_model::{Environment, Role, Source, WorkerFound};
use serde::Serialize;

use super::actor_ranking::ActorRanking;
use super::advice::cache_unknown::CacheUnknown;
use super::advice::given::Recommendation;
use super::bound::{Ceilings, CopyCeiling, DeviceCeiling, FlushCeiling};
use super::cell::{ById, CellJudgement, Status, by_id};
use super::comparison::Comparison;
use super::gain::Gain;
use super::self_replay::SelfReplay;
use super::verdict::FEWEST_ROUNDS;

/// A run with its results.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// Version of this JSON.
    pub schema: u32,
    /// Summary of the run.
    pub run: RunSummary,
    /// Environment.
    pub environment: Environment,
    /// Workers other than pagewise itself that the plan needs.
    pub workers: Vec<WorkerSummary>,
    /// A method of which two series differ by more than chance explains; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlike_itself: Option<UnlikeItself>,
    /// Maxima of device and memory in this run.
    pub ceilings: CeilingsSummary,
    /// Every cell in the order of the plan.
    #[serde(skip)]
    pub cells: Vec<CellJudgement>,
    /// Every set of conditions under which methods are compared.
    #[serde(skip)]
    pub comparisons: Vec<Comparison>,
    /// Validity of the samples.
    pub validity: Validity,
    /// Recommendations, one for each comparison.
    #[serde(skip)]
    pub advice: Vec<Recommendation>,
    /// Choices for data of which it is not known whether they are cached, for work that was
    /// measured in both states.
    pub cache_unknown: Vec<CacheUnknown>,
    /// Actors ranked by what they leave to a method beside which several were at work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<ActorRanking>,
    /// The proof that a replayed trace stands for its program, or does not; `None` if none was
    /// replayed.
    #[serde(skip)]
    pub self_replay: Option<SelfReplay>,
    /// The gain that another method could bring to the whole program whose trace was replayed.
    #[serde(skip)]
    pub gain: Option<Gain>,
    /// The inspection of that program when it was recorded: its files, and the waits of its
    /// threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection: Option<Inspection>,
}

/// Summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RunSummary {
    /// The question or the plan file's name.
    pub question: String,
    /// A short hash of what was asked for, the same on every machine; `None` in older files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed_plan: Option<String>,
    /// Labels that its user gave it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Origin of the bytes.
    pub source: Source,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// Planned samples of each cell.
    pub rounds: u32,
    /// Blocks of rounds that have samples, each on datasets made anew for it.
    pub blocks: u32,
    /// Duration of a throughput phase.
    pub sample_ns: u64,
    /// True if the run was completed.
    pub complete: bool,
    /// Time that its samples could take; `None` if it had a fixed number of rounds.
    pub budget_ns: Option<u64>,
    /// Planned samples; `None` with a budget.
    pub samples_planned: Option<u64>,
    /// Samples that were tried at least once.
    pub samples_tried: u64,
    /// Start of its sampling, if a time was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<RunStart>,
    /// Duration, if it was completed.
    pub elapsed_ns: Option<u64>,
    /// Number of resumptions.
    pub resumptions: u32,
    /// Interval of heartbeats; `None` without them.
    pub heartbeat_ns: Option<u64>,
    /// A command that replaced pagewise's own worker.
    pub worker_command: Option<String>,
}

/// A method of which two series differ.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct UnlikeItself {
    /// The method.
    pub method: String,
    /// The difference as a share.
    pub by: f64,
}

/// A worker other than pagewise itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct WorkerSummary {
    /// `jvm`, `go`, `python`, or the name that the user gave.
    pub name: String,
    /// Version of its toolchain, or the one it reports; `None` if unknown.
    pub version: Option<String>,
    /// Command line, with flags; empty if it could not be started.
    pub command: Vec<String>,
    /// Candidates that were skipped when it was looked for.
    pub notes: Vec<String>,
    /// Reason that its cells are unavailable; `None` if they are not.
    pub unavailable: Option<String>,
}

impl WorkerSummary {
    pub(crate) fn of(found: &WorkerFound) -> Self {
        Self {
            name: found.name.clone(),
            version: Some(found.version.clone()).filter(|version| !version.is_empty()),
            command: found.command.clone(),
            notes: found.notes.clone(),
            unavailable: found.unavailable.clone(),
        }
    }
}

/// The most that anything in this run reached on the device and in memory, each the lower end of
/// its interval over rounds.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CeilingsSummary {
    /// Requests per second of the device.
    pub device_iops: Option<f64>,
    /// Bytes per second of the device.
    pub device_bytes_per_second: Option<f64>,
    /// Bytes per second of copying from memory.
    pub copy_bytes_per_second: Option<f64>,
    /// Maxima of the device by threads, depth and size, and the method that exceeded them, if one
    /// did.
    pub device: Vec<DeviceCeiling>,
    /// Maxima of the memory by threads and size.
    pub copy: Vec<CopyCeiling>,
    /// Maxima of syncs by the bytes of each.
    pub flushes: Vec<FlushCeiling>,
}

impl CeilingsSummary {
    pub(crate) fn of(ceilings: Ceilings) -> Self {
        let (device_iops, device_bytes_per_second, copy_bytes_per_second) =
            (ceilings.device_iops(), ceilings.device_bytes_per_second(), ceilings.copy_bytes_per_second());
        let (device, copy, flushes) = ceilings.shown();
        Self { device_iops, device_bytes_per_second, copy_bytes_per_second, device, copy, flushes }
    }
}

/// Validity of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Validity {
    /// Completed attempts.
    pub samples: usize,
    /// Attempts that passed every check.
    pub valid: usize,
    /// Attempts that failed one.
    pub invalid: usize,
    /// Cells that the machine does not support.
    pub unavailable_cells: usize,
    /// Attempts of other cells that the machine refused: the disk was full, there was no huge page.
    pub refused: usize,
    /// Valid over completed; `None` without any.
    pub share: Option<f64>,
    /// Reasons for invalid samples, the most frequent first.
    pub reasons: Vec<InvalidReason>,
    /// Version whose checks decided it.
    pub as_of: AsOf,
    /// Attempts that this version finds valid and the measuring one did not.
    pub valid_now: usize,
    /// Attempts that this version finds invalid and the measuring one did not.
    pub invalid_now: usize,
}

/// Version whose checks decided which samples are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AsOf {
    /// The pagewise that judges: the run file holds the context of the checks.
    Report,
    /// The pagewise that measured, at least for some samples: the file lacks the context of the
    /// checks.
    Measurement,
}

/// A failed check, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct InvalidReason {
    /// The check.
    pub kind: FailureKind,
    /// Number of attempts that failed it.
    pub count: usize,
    /// Message of the first of them.
    pub example: String,
}

impl Validity {
    /// True if the samples that are not valid are fewer than the checks that they failed.
    pub fn some_failed_several(&self) -> bool {
        self.reasons.iter().map(|reason| reason.count).sum::<usize>() > self.invalid
    }
}

impl Judged {
    /// True if the run is not complete, or a method lacks samples that a verdict needs, though the
    /// machine supports it: the command's exit code. Controls and ceilings carry no verdict, and a
    /// method with five valid samples has one, whatever others disturbed.
    pub fn fell_short(&self) -> bool {
        let mut measured = self.cells.iter().filter(|cell| cell.role == Role::Measured);
        !self.run.complete || measured.any(CellJudgement::lacks_samples)
    }

    /// True if several methods were to be compared and the machine supports one of them only, so
    /// that there is no verdict.
    pub fn lacks_rival(&self) -> bool {
        let by_id = self.by_id();
        let is_alone = |comparison: &Comparison| {
            let cells = comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()));
            let ranked: Vec<_> = cells.filter(|cell| cell.status == Status::Ok).collect();
            // A trial has no verdict in any case.
            comparison.cells.len() > 1 && matches!(ranked[..], [only] if only.rounds_asked >= FEWEST_ROUNDS)
        };
        self.comparisons.iter().any(is_alone)
    }

    /// Rounds in which a cell should have a sample: what a stopped run did not reach is no cell's
    /// fault.
    pub fn rounds_due(&self, cell: &CellJudgement) -> usize {
        if self.run.complete { cell.rounds_asked } else { cell.rounds_tried }
    }

    /// Cells with figures that lack samples of rounds in which they should have one, or did a part
    /// of their work.
    pub fn short_cells(&self) -> impl Iterator<Item = &CellJudgement> {
        let is_short = |cell: &&CellJudgement| match self.run.complete {
            true => cell.fell_short(),
            false => cell.samples < cell.rounds_tried,
        };
        self.cells.iter().filter(|cell| cell.status == Status::Ok).filter(is_short)
    }

    /// All cells by id.
    pub fn by_id(&self) -> ById<'_> {
        by_id(&self.cells)
    }
}
