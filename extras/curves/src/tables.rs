//! Tables of methods by threads or by size of the data, for a plan that asks for them.
//!
//! Each set of conditions that differ only in the columns' quantity is a table: methods as rows,
//! the score in operations per millisecond with the interval of its median. Derived from it: the
//! baseline against others, each method against itself in the first column, and, if threads are
//! columns, the remaining score as the data grow. Ratios are paired by round. A difference is
//! reported only if the ratio's interval excludes 1 and the ratio exceeds 2 %. Counters show what
//! methods wait for.

pub mod blocks;
mod cold;
mod facts;
pub mod plots;
mod ratio;
mod table;
#[cfg(test)]
mod tests;
mod waits;
pub mod words;

use pagewise_analysis::Judged;
use pagewise_analysis::judge::collected::{collect, samples_by_id};
use pagewise_analysis::judge::{by_id, checked};
use pagewise_model::planned_table::PlannedTable;
use pagewise_model::run::Run;

use facts::Data;

pub use facts::*;
pub use ratio::PairedRatio;
pub use waits::{Cause, ThreadWaits};

/// The tables of a run that its plan asks for.
pub fn of(run: &Run, planned: &PlannedTable, judged: &Judged) -> Tables {
    let run = checked(run);
    let samples = collect(&run);
    let data = Data {
        planned,
        cpus: run.header.environment.cpus,
        samples: samples_by_id(&samples),
        cells: by_id(&judged.cells),
        comparisons: &judged.comparisons,
    };
    let groups = table::groups(&data);
    let tables: Vec<MethodTable> = groups.iter().map(|group| table::table(&data, group)).collect();
    let falls = table::falls(&data, &groups, &tables);
    let cold_starts = cold::cold_starts(&data);
    Tables { cpus: data.cpus, tables, falls, cold_starts }
}
