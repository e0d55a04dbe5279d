//! Do more threads help: rates by threads, and what the threads did meanwhile. A table of methods has its own columns.

use pagewise_analysis::judge::CellJudgement;
use pagewise_analysis::judge::label::{LabelPart, label_without};
use pagewise_analysis::judge::pivot::{MethodTable, Score};
use pagewise_model::Role;
use pagewise_model::format::{bytes, multiple, percent, rate};
use pagewise_model::pivot::PivotColumn;

use super::plot::{Axis, Form, Mark, Plot, Scale, Series};
use crate::judged_run::JudgedRun;
use crate::text_table::{TextCell, TextTable};

const COLUMNS: [&str; 6] =
    ["method", "at", "operations/s", "on a CPU", "waiting for a CPU", "waiting for anything else"];

pub(super) fn plots(run: &JudgedRun<'_>) -> Vec<Plot> {
    match &run.judged.pivot {
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
        y: Axis::of("operations/s", "", Scale::Log, rate),
        series: Vec::new(),
        bands: Vec::new(),
        table: TextTable::of(&COLUMNS),
    }
}

fn by_threads(conditions: String) -> Plot {
    let x = Axis::of("threads", "", Scale::Log, |value| format!("{value:.0}"));
    plot(conditions, x, "Do more threads help?")
}

fn of_table(table: &MethodTable) -> Plot {
    let label = table.label.clone();
    let heading = "How does it change with the size of the data?";
    let mut plot = match table.columns.first() {
        Some(PivotColumn::OfCache(_)) => {
            plot(label, Axis::of("data over cache", "", Scale::Log, multiple), heading)
        }
        Some(PivotColumn::Bytes(_)) => plot(label, Axis::of("data", "", Scale::Log, bytes), heading),
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
    let told = value.told(rate);
    let at = score.column.to_string();
    Series::named(&mut plot.series, method).push(Mark {
        x: score.column.position(),
        y: value.median,
        low: value.low,
        high: value.high,
        label: format!("{method}, {at}: {told} operations/s"),
        invalid: None,
    });
    let waits = score.waits.as_ref();
    let share = |share: Option<f64>| TextCell::number(share, percent);
    plot.table.rows.push(vec![
        method.into(),
        TextCell::of(at, score.column.position()),
        TextCell::of(told, value.median),
        share(waits.and_then(|waits| Some(1.0 - waits.run_queue_share? - waits.wait_share?))),
        share(waits.and_then(|waits| waits.run_queue_share)),
        share(waits.and_then(|waits| waits.wait_share)),
    ]);
}

/// Cells that differ only in their threads.
fn of_cells(run: &JudgedRun<'_>) -> Vec<Plot> {
    let mut groups: Vec<(String, Vec<&CellJudgement>)> = Vec::new();
    for view in run.cells() {
        if view.cell.role != Role::Measured || view.cell.ops_per_second.is_none() {
            continue;
        }
        let label = label_without(view.conditions, &[LabelPart::Threads]);
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, cells)) => cells.push(view.cell),
            None => groups.push((label, vec![view.cell])),
        }
    }
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
    let (told, at) = (value.told(rate), PivotColumn::Threads(cell.threads).to_string());
    Series::named(&mut plot.series, &cell.method).push(Mark {
        x: f64::from(cell.threads),
        y: value.median,
        low: value.low,
        high: value.high,
        label: format!("{}, {at}: {told} operations/s", cell.method),
        invalid: None,
    });
    // Shares of the time of all threads, from medians: they need not sum to all of it.
    let seen = cell.evidence.as_ref();
    let all = |seen: &pagewise_analysis::judge::EvidenceMedians| {
        seen.wall_ns.max(1) as f64 * f64::from(cell.threads)
    };
    let of_time = |part: Option<u64>| Some((part? as f64 / all(seen?)).min(1.0));
    let cpu = of_time(seen.and_then(|seen| seen.cpu_ns));
    let queue = of_time(seen.and_then(|seen| seen.run_queue_ns));
    let rest = cpu.zip(queue).map(|(cpu, queue)| (1.0 - cpu - queue).max(0.0));
    let share = |share: Option<f64>| TextCell::number(share, percent);
    plot.table.rows.push(vec![
        TextCell::from(&cell.method),
        TextCell::of(at, f64::from(cell.threads)),
        TextCell::of(told, value.median),
        share(cpu),
        share(queue),
        share(rest),
    ]);
}
