//! The judged run: everything that is shown of a run, as one value that serializes to the judged JSON.
//!
//! Other programs build on this JSON; its fields only ever grow. Units stand in the keys, missing is `null`.

use pagewise_model::sample::FailureKind;
use pagewise_model::{Environment, Source, WorkerFound};
use serde::Serialize;

use super::advice::given::Recommendation;
use super::bound::{CopyCeiling, DeviceCeiling};
use super::cell::{ById, CellJudgement, Status, by_id};
use super::cliff::curves::Cliff;
use super::comparison::Comparison;
use super::pivot::facts::Tables;

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
    pub advice: Vec<Recommendation>,
    /// Where methods change places as the data grow, if the run looked for that.
    pub cliff: Option<Cliff>,
    /// The tables of methods by threads or by size of the data; `None` of a plan that asks for none.
    pub pivot: Option<Tables>,
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
