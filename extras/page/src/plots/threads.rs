//! Do more threads help: rates by threads, and what the threads did meanwhile. A table of methods
//! has its own columns.

use pagewise_analysis::judge::label::{LabelPart, label_without};
use pagewise_analysis::judge::method_tables::{MethodTable, Score};
use pagewise_analysis::judge::{CellJudgement, EvidenceMedians, MedianInterval};
use pagewise_model::Role;
use pagewise_model::format::{percent, rate};
use pagewise_model::groups::by_key;
use pagewise_model::planned_table::TableColumn;

use pagewise_report::judged_run::{CellView, JudgedRun};
use pagewise_report::plot::{Axis, AxisQuantity, Form, Mark, MarkText, Plot, Scale, Series};
use pagewise_report::text_table::{TextCell, TextTable};
use pagewise_report::words::figures;

const COLUMNS: [&str; 6] =
    ["method", "at", "operations/s", "on a CPU", "waiting for a CPU", "waiting for anything else"];

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    match &run.judged.tables {
        Some(tables) => tables.tables.iter().map(of_table).collect(),
        None => of_cells(run),
    }
}

fn plot(conditions: String, x: Axis, heading: &'static str) -> Plot {
    Plot {
        id: "threads",
        heading,
        conditions,
        form: Form::Lines,
        x,
        y: Axis::of("operations/s", Scale::Log, AxisQuantity::RATE),
        series: Vec::new(),
        bands: Vec::new(),
        table: TextTable::of(&COLUMNS),
    }
}

fn by_threads(conditions: String) -> Plot {
    let x = Axis::of("threads", Scale::Log, AxisQuantity::COUNT);
    plot(conditions, x, "Do more threads help?")
}

fn of_table(table: &MethodTable) -> Plot {
    let label = table.label.clone();
    let heading = "How does it change with the size of the data?";
    let mut plot = match table.columns.first() {
        Some(TableColumn::OfCache(_)) => {
            plot(label, Axis::of("data over cache", Scale::Log, AxisQuantity::MULTIPLE), heading)
        }
        Some(TableColumn::Bytes(_)) => {
            plot(label, Axis::of("data", Scale::Log, AxisQuantity::BYTES), heading)
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

/// A mark, and its row: shares of the threads' time on a CPU, waiting for one, waiting for anything
/// else.
fn add(plot: &mut Plot, method: &str, column: TableColumn, value: MedianInterval, shares: [Option<f64>; 3]) {
    let (text, at) = (figures::interval(value, rate), column.to_string());
    Series::named(&mut plot.series, method).push(Mark {
        x: column.position(),
        y: value.median,
        low: value.low,
        high: value.high,
        text: MarkText::Own(format!("{method}, {at}: {text} operations/s")),
        invalid: false,
    });
    let mut row = vec![method.into(), TextCell::of(at, column.position()), TextCell::of(text, value.median)];
    row.extend(shares.map(|share| TextCell::number(share, percent)));
    plot.table.rows.push(row);
}

/// Cells that differ only in their threads.
fn of_cells(run: &JudgedRun<'_>) -> Vec<Plot> {
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
