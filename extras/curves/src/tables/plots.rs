//! Tables of methods as plots: rates along the columns, and what the threads did meanwhile.

use pagewise_model::planned_table::TableColumn;
use pagewise_report::plot::{Axis, AxisQuantity, Plot, Scale};
use pagewise_report::thread_plot::{add, along, by_threads};

use super::{MethodTable, Score, Tables};

/// A plot of each table.
pub fn plots(tables: &Tables) -> Vec<Plot> {
    tables.tables.iter().map(of_table).collect()
}

fn of_table(table: &MethodTable) -> Plot {
    let label = table.label.clone();
    let heading = "How does it change with the size of the data?";
    let mut plot = match table.columns.first() {
        Some(TableColumn::OfCache(_)) => {
            along(label, Axis::of("data over cache", Scale::Log, AxisQuantity::MULTIPLE), heading)
        }
        Some(TableColumn::Bytes(_)) => {
            along(label, Axis::of("data", Scale::Log, AxisQuantity::BYTES), heading)
        }
        _ => by_threads(label),
    };
    for row in &table.rows {
        for score in row.scores.iter().flatten() {
            add_score(&mut plot, &row.method, score);
        }
    }
    plot
}

fn add_score(plot: &mut Plot, method: &str, score: &Score) {
    let Some(value) = score.ops_per_ms.map(|value| value.times(1000.0)) else { return };
    let waits = score.waits.as_ref();
    let cpu = waits.and_then(|waits| Some(1.0 - waits.run_queue_share? - waits.wait_share?));
    let queue = waits.and_then(|waits| waits.run_queue_share);
    add(plot, method, score.column, value, [cpu, queue, waits.and_then(|waits| waits.wait_share)]);
}
