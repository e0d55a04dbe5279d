//! One comparison as a table, best method first, with the columns of its workload.

use std::io::{self, Write};

use pagewise_analysis::judge::latency::latency_withheld;
use pagewise_analysis::judge::verdict::NEAR;
use pagewise_analysis::judge::{ById, CellJudgement, Comparison, SLOW, Status};
use pagewise_analysis::statistics::median_count;
use pagewise_model::{CacheState, Workload};

use super::columns::{LIMITED_BY, STALL, stall};
use super::grid::{Column, ComparisonView, fitting, table};
use super::standing::{Standings, note};
use super::{append, fill, reads, replay, scan};
use crate::paragraph::{paragraph, write_lines};
use pagewise_model::format::time;

fn columns(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Scan => scan::COLUMNS,
        Workload::Fill => fill::COLUMNS,
        Workload::Replay => replay::COLUMNS,
        reading if reading.is_reading() => reads::COLUMNS,
        _ => append::COLUMNS,
    }
}

/// Columns of latencies of an operation.
const LATENCIES: [&str; 3] = ["p50", "p99", "longest of"];

/// Write the title, the table, and the reasons for missing values.
pub(super) fn write(
    out: &mut dyn Write,
    cells: &ById<'_>,
    comparison: &Comparison,
    width: usize,
) -> io::Result<()> {
    let conditions = &comparison.conditions.conditions;
    paragraph(out, "", &comparison.conditions.label, width)?;
    let standings = Standings::of(comparison);
    let cells = sorted(cells, comparison, &standings);
    let view = ComparisonView { comparison, standings, cells };
    let (columns, left_out) = fitting(&view, columns(conditions.workload()), width);
    write_lines(out, &table(&view, &columns))?;
    write_left_out(out, &view, &left_out, width)?;
    if let Some(reads) = conditions.reads().filter(|reads| reads.reads_per_op > 1)
        && columns.iter().any(|column| LATENCIES.contains(&column.name))
    {
        let line = format!("latencies are of a batch of {} reads", reads.reads_per_op);
        paragraph(out, "  ", &line, width)?;
    }
    if let Some(reason) = latency_withheld(conditions).filter(|_| conditions.cache != CacheState::ColdStart) {
        paragraph(out, "  ", &format!("no latency: {reason}"), width)?;
    }
    if let Some(reason) = view.cells.iter().find_map(|cell| cell.stall_reason) {
        paragraph(out, "  ", &format!("no stall: {reason}"), width)?;
    }
    for line in practice(&view) {
        paragraph(out, "  ", &line, width)?;
    }
    if let Some(line) = slow_processes(&view) {
        paragraph(out, "  ", &line, width)?;
    }
    if let Some(line) = order(&view.standings, &view.cells) {
        paragraph(out, "  ", &line, width)?;
    }
    for cell in &view.cells {
        if let Some(note) = note(&view.standings, cell) {
            paragraph(out, "  ", &format!("{}: {note}", cell.method), width)?;
        }
    }
    match conditions.workload() {
        Workload::Scan => scan::write_below(out, &view, width),
        _ => Ok(()),
    }
}

/// Processes that were slow by chance: named of a method if it happened to two, or to over a tenth.
fn slow_processes(view: &ComparisonView<'_>) -> Option<String> {
    let is_often =
        |cell: &&&CellJudgement| cell.slow_processes >= 2 || cell.slow_processes * 10 > cell.samples;
    let text =
        |cell: &&CellJudgement| format!("{} of {} of {}", cell.slow_processes, cell.samples, cell.method);
    let words: Vec<String> = view.cells.iter().filter(is_often).map(text).collect();
    (!words.is_empty()).then(|| format!("processes that took over {SLOW}x the median: {}", words.join("; ")))
}

/// Duration of the warm-up of workers whose code is compiled as it runs.
fn practice(view: &ComparisonView<'_>) -> Vec<String> {
    let of = |cell: &CellJudgement| Some((cell.worker.clone(), cell.evidence.as_ref()?.worker_warmup_ns?));
    let all: Vec<(String, u64)> = view.cells.iter().filter_map(|cell| of(cell)).collect();
    let mut workers: Vec<&String> = all.iter().map(|(worker, _)| worker).collect();
    workers.sort_unstable();
    workers.dedup();
    let text = |worker: &String| {
        let own: Vec<u64> = all.iter().filter(|(other, _)| other == worker).map(|(_, took)| *took).collect();
        let took = median_count(&own)?;
        Some(format!(
            "{worker} warmed up for {} per sample (median) until its rate stopped rising",
            time(took)
        ))
    };
    workers.into_iter().filter_map(text).collect()
}

/// Heading of a column that is shown below the table if it does not fit, and its text for a cell
/// that has any.
type Below = (&'static str, fn(&CellJudgement) -> Option<String>);

fn write_left_out(
    out: &mut dyn Write,
    view: &ComparisonView<'_>,
    left_out: &[&'static str],
    width: usize,
) -> io::Result<()> {
    // The bound of a method and its stalls are never left out: without their columns they are shown
    // below.
    let below: [Below; 2] =
        [(LIMITED_BY, |cell| cell.limit.text()), (STALL, |cell| cell.stall.as_ref().map(|_| stall(cell)))];
    for (name, text) in below.iter().filter(|(name, _)| left_out.contains(name)) {
        let phrase = |cell: &&CellJudgement| Some(format!("{} {}", cell.method, text(cell)?));
        let phrase: Vec<String> = view.cells.iter().filter_map(phrase).collect();
        if !phrase.is_empty() {
            paragraph(out, "  ", &format!("{name}: {}", phrase.join("; ")), width)?;
        }
    }
    let is_below = |name: &str| below.iter().any(|(other, _)| *other == name);
    let names: Vec<&str> = left_out.iter().copied().filter(|name| !is_below(name)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let line = format!(
        "columns that do not fit: {} (a wider terminal shows them, --json has all)",
        names.join(", ")
    );
    paragraph(out, "  ", &line, width)
}

/// Explanation of an order that the medians beside it contradict.
pub(crate) fn order(standings: &Standings<'_>, cells: &[&CellJudgement]) -> Option<String> {
    let ranked = cells.iter().filter(|cell| standings.leads(cell) || standings.ratio(cell).is_some());
    let figures: Vec<(&str, f64)> =
        ranked.filter_map(|cell| Some((cell.method.as_str(), cell.ranked_figure()?))).collect();
    contradicted(&figures)
}

/// The same of methods in their order, with the medians of their figures.
pub(crate) fn contradicted(figures: &[(&str, f64)]) -> Option<String> {
    let contradicts = |pair: &&[(&str, f64)]| pair[1].1 > pair[0].1 * NEAR;
    let pair = figures.windows(2).find(contradicts)?;
    Some(format!(
        "the order is that of ratios within rounds; by their medians {} is ahead of {}",
        pair[1].0, pair[0].0
    ))
}

/// The leader, then the others by their ratio to it within rounds rather than by their medians;
/// then those that are not ranked, then those without figures.
pub(crate) fn sorted<'a>(
    cells: &ById<'a>,
    comparison: &Comparison,
    standings: &Standings<'_>,
) -> Vec<&'a CellJudgement> {
    let mut cells: Vec<&CellJudgement> =
        comparison.cells.iter().filter_map(|id| cells.get(id.as_str()).copied()).collect();
    let behind = |cell: &CellJudgement| standings.ratio(cell).map_or(f64::INFINITY, |ratio| ratio.ratio);
    cells.sort_by(|left, right| {
        let last = |cell: &CellJudgement| {
            (cell.status != Status::Ok, standings.is_unranked(cell), !standings.leads(cell))
        };
        let figure = |cell: &CellJudgement| cell.ranked_figure().unwrap_or(0.0);
        let by_ratio = behind(left).total_cmp(&behind(right));
        last(left).cmp(&last(right)).then(by_ratio).then(figure(right).total_cmp(&figure(left)))
    });
    cells
}
