//! Result types of the tables of methods, and their input.

use pagewise_model::planned_table::{PlannedTable, TableColumn};
use pagewise_model::{Bytes, CacheState, Conditions, Workload};
use serde::Serialize;

use super::ratio::PairedRatio;
use super::waits::ThreadWaits;
use pagewise_analysis::judge::ColdWindow;
use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::MedianInterval;
use pagewise_analysis::judge::collected::{CellSamples, SamplesById};
use pagewise_analysis::judge::reasons::{CellReason, NoVerdict, UnrankedReason};
use pagewise_analysis::judge::verdict::Verdict;
use pagewise_analysis::judge::{ById, CellJudgement, Status};

/// All tables of a run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Tables {
    /// CPUs of the machine.
    pub cpus: u32,
    /// One for each set of conditions that differ in more than the columns, in the order of the
    /// plan.
    #[serde(skip)]
    pub tables: Vec<MethodTable>,
    /// If threads are columns: the remaining score of each method as the data grow.
    #[serde(skip)]
    pub falls: Vec<Fall>,
    /// Cold starts, one for each pattern, size and number of threads.
    #[serde(skip)]
    pub cold_starts: Vec<ColdStart>,
}

/// Conditions that differ only in the columns' quantity.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodTable {
    /// `random-read · 16 reads of 16 KiB · warm · memory 192 MiB · data 0.5x the cache (60 MiB)`.
    pub label: String,
    /// Conditions of the first column.
    #[serde(skip)]
    pub conditions: Conditions,
    /// Accesses and their order.
    pub workload: Workload,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// State of the cache.
    pub cache: CacheState,
    /// Span over the cache that the limit leaves, as calculated; `None` without a limit.
    pub data_over_cache: Option<f64>,
    /// The accessed part of the file, at the fewest threads: with a limit, more threads leave less
    /// cache.
    pub span_bytes: Bytes,
    /// Limit of memory; `None` without one.
    pub memory_limit_bytes: Option<Bytes>,
    /// The columns, ascending.
    pub columns: Vec<TableColumn>,
    /// One for each method, in the order of the plan.
    #[serde(skip)]
    pub rows: Vec<MethodRow>,
    /// The fastest methods by column.
    #[serde(skip)]
    pub fastest: Vec<Fastest>,
    /// The baseline compared with the methods that the plan names.
    pub advantages: Vec<Ratios>,
    /// Each method compared with itself in the first column.
    pub scaling: Vec<Ratios>,
}

/// One method of a table.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MethodRow {
    /// Canonical text.
    pub method: String,
    /// True if the plan asks for the effects of the columns on it.
    pub explained: bool,
    /// One for each column; `None` if the plan has no such cell.
    #[serde(skip)]
    pub scores: Vec<Option<Score>>,
}

/// One cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Score {
    /// Id of the cell.
    pub cell: String,
    /// Column.
    pub column: TableColumn,
    /// State of its score.
    pub status: Status,
    /// Reason that it has none, or that some samples are missing.
    #[serde(skip)]
    pub reason: Option<CellReason>,
    /// Reason that it is not ranked.
    #[serde(skip)]
    pub not_ranked: Option<UnrankedReason>,
    /// Rounds with a valid sample.
    pub samples: usize,
    /// Attempts that failed a check.
    pub invalid_samples: usize,
    /// Operations per millisecond.
    pub ops_per_ms: Option<MedianInterval>,
    /// Activity of its threads when they were not reading.
    #[serde(skip)]
    pub waits: Option<ThreadWaits>,
}

/// The fastest methods of a column.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fastest {
    /// The column.
    pub column: TableColumn,
    /// Verdict of the comparison.
    pub verdict: Verdict,
    /// The winner, or all methods that are not distinguishable from the leader, which comes first;
    /// empty if nothing can be compared.
    pub methods: Vec<String>,
    /// Reason that there is none.
    #[serde(skip)]
    pub reason: Option<NoVerdict>,
}

/// Ratios of one method's scores, column by column.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Ratios {
    /// The method.
    pub method: String,
    /// The method it is compared with; `None`: itself in the first column, or at the smallest size
    /// of the data.
    pub over: Option<String>,
    /// One for each column, or for each later one; `None` if no round has both.
    pub ratios: Vec<Option<PairedRatio>>,
}

/// Score at the largest size of the data relative to the smallest.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fall {
    /// Accesses and their order.
    pub workload: Workload,
    /// State of the cache.
    pub cache: CacheState,
    /// The smallest ratio of data to cache.
    pub from: f64,
    /// The largest.
    pub to: f64,
    /// The columns, ascending.
    pub columns: Vec<TableColumn>,
    /// One for each method.
    pub rows: Vec<Ratios>,
}

/// Cold starts under one set of conditions.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ColdStart {
    /// Label of the conditions.
    pub label: String,
    /// Accesses and their order.
    pub workload: Workload,
    /// Reads in one operation.
    pub reads_per_op: u32,
    /// Threads that read.
    pub threads: u32,
    /// The accessed part of the file.
    pub span_bytes: Bytes,
    /// One for each method.
    #[serde(skip)]
    pub rows: Vec<ColdRow>,
    /// The method that others are compared with, as in the plan if the run lacks it or them.
    pub baseline: Option<String>,
    /// The first method it is compared with; `None` if the run lacks either.
    pub other: Option<String>,
    /// Time to warm of the baseline over that of the other.
    pub other_over_baseline: Option<PairedRatio>,
}

/// One method of a cold start.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ColdRow {
    /// The method.
    pub method: String,
    /// Cell.
    pub cell: String,
    /// State of its figures.
    pub status: Status,
    /// Reason that it has none, or that some samples are missing.
    #[serde(skip)]
    pub reason: Option<CellReason>,
    /// Reason that it is not ranked.
    #[serde(skip)]
    pub not_ranked: Option<UnrankedReason>,
    /// Rounds with a valid sample.
    pub samples: usize,
    /// Time until the beginning of a window with at least half of the warm rate; at least one
    /// window.
    pub to_half_ns: Option<MedianInterval>,
    /// Time until the beginning of a window with at least 90 % of the warm rate.
    pub to_ninety_ns: Option<MedianInterval>,
    /// Time until the device delivered no more than when warm.
    pub to_steady_ns: Option<MedianInterval>,
    /// Device bytes until then.
    pub bytes_to_steady: Option<MedianInterval>,
    /// Operations per millisecond when warm.
    pub steady_ops_per_ms: Option<MedianInterval>,
    /// The rate over time, window by window.
    pub windows: Vec<ColdWindow>,
}

/// Input of the tables.
pub(super) struct Data<'a> {
    pub(super) planned: &'a PlannedTable,
    pub(super) cpus: u32,
    pub(super) samples: SamplesById<'a>,
    pub(super) cells: ById<'a>,
    pub(super) comparisons: &'a [Comparison],
}

impl<'a> Data<'a> {
    pub(super) fn samples(&self, id: &str) -> Option<&'a CellSamples<'a>> {
        self.samples.get(id).copied()
    }

    pub(super) fn judged(&self, id: &str) -> Option<&'a CellJudgement> {
        self.cells.get(id).copied()
    }

    /// The cell of a method under the conditions of a comparison.
    pub(super) fn cell(
        &self,
        comparison: &Comparison,
        method: &str,
    ) -> Option<(&'a CellSamples<'a>, &'a CellJudgement)> {
        let found = comparison.cells.iter().filter_map(|id| Some((self.samples(id)?, self.judged(id)?)));
        found.into_iter().find(|(_, cell)| cell.method == method)
    }
}

/// Reason that a cell is shown but not ranked; `None` if it is.
pub(super) fn not_ranked(comparison: &Comparison, cell: &CellJudgement) -> Option<UnrankedReason> {
    let found = comparison.unranked.iter().find(|unranked| unranked.cell == cell.id);
    found.map(|unranked| unranked.reason.clone())
}
