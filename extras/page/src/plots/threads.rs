//! Do more threads help: rates by threads, and what the threads did meanwhile. A table of methods
//! has its own columns.

use pagewise_analysis::judge::label::{LabelPart, label_without};
use pagewise_analysis::judge::{CellJudgement, EvidenceMedians};
use pagewise_model::Role;
use pagewise_model::groups::by_key;
use pagewise_model::planned_table::TableColumn;

use pagewise_report::judged_run::{CellView, JudgedRun};
use pagewise_report::plot::Plot;
use pagewise_report::thread_plot::{add, by_threads};

/// Cells that differ only in their threads.
pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    if run.curves().is_some_and(|curves| !curves.is_alone()) {
        return Vec::new();
    }
    let mut cells = run.cells();
    cells.retain(|view| view.cell.role == Role::Measured && view.cell.ops_per_second.is_some());
    let label = |view: &CellView<'_>| label_without(&view.planned.conditions, &[LabelPart::Threads]);
    let groups = by_key(cells.iter().map(|view| (label(view), view.cell)));
    let several = |cells: &[&CellJudgement]| cells.iter().any(|cell| cell.threads != cells[0].threads);
    let groups = groups.into_iter().filter(|(_, cells)| several(cells));
    groups
        .map(|(label, mut cells)| {
            cells.sort_by_key(|cell| cell.threads);
            let mut plot = by_threads(label);
            cells.into_iter().for_each(|cell| add_cell(&mut plot, cell));
            plot
        })
        .collect()
}

fn add_cell(plot: &mut Plot, cell: &CellJudgement) {
    let Some(value) = cell.ops_per_second else { return };
    // Shares of the time of all threads, from medians: they need not sum to all of it.
    let seen = cell.evidence.as_ref();
    let all = |seen: &EvidenceMedians| seen.wall_ns.max(1) as f64 * f64::from(cell.threads);
    let of_time = |part: Option<u64>| Some((part? as f64 / all(seen?)).min(1.0));
    let cpu = of_time(seen.and_then(|seen| seen.cpu_ns));
    let queue = of_time(seen.and_then(|seen| seen.run_queue_ns));
    let rest = cpu.zip(queue).map(|(cpu, queue)| (1.0 - cpu - queue).max(0.0));
    add(plot, &cell.method, TableColumn::Threads(cell.threads), value, [cpu, queue, rest]);
}
