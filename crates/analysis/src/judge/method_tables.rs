//! Tables of methods by threads or by size of the data, for a plan that asks for them.
//!
//! Each set of conditions that differ only in the columns' quantity is a table: methods as rows,
//! the score in operations per millisecond with the interval of its median. Derived from it: the
//! baseline against others, each method against itself in the first column, and, if threads are
//! columns, the remaining score as the data grow. Ratios are paired by round. A difference is
//! reported only if the ratio's interval excludes 1 and the ratio exceeds 2 %. Counters show what
//! methods wait for.

mod cold;
pub(crate) mod facts;
pub(crate) mod ratio;
mod table;
#[cfg(test)]
mod tests;
mod waits;

use pagewise_model::planned_table::PlannedTable;
use pagewise_model::run::Run;

use crate::judge::cell::{CellJudgement, by_id};
use crate::judge::collected::SamplesById;
use crate::judge::comparison::Comparison;
use facts::Data;

pub use facts::*;
pub use ratio::PairedRatio;
pub use waits::{Cause, ThreadWaits};

/// The tables of a run, from its samples by cell, its judged cells and its comparisons.
pub(crate) fn tables(
    run: &Run,
    planned: &PlannedTable,
    samples: SamplesById<'_>,
    cells: &[CellJudgement],
    comparisons: &[Comparison],
) -> Tables {
    let data = Data { planned, cpus: run.header.environment.cpus, samples, cells: by_id(cells), comparisons };
    let groups = table::groups(&data);
    let tables: Vec<MethodTable> = groups.iter().map(|group| table::table(&data, group)).collect();
    let falls = table::falls(&data, &groups, &tables);
    let cold_starts = cold::cold_starts(&data);
    Tables { cpus: data.cpus, tables, falls, cold_starts }
}
