//! A comparison as a part of a document: what is said of it, and a table of its methods, the best
//! first, with the columns of its workload.

use pagewise_analysis::judge::advice::Recommendation;
use pagewise_analysis::judge::reasons::{MainFailure, Withheld};
use pagewise_analysis::judge::verdict::NEAR;
use pagewise_analysis::judge::{ById, CellJudgement, Comparison, SLOW, Status};
use pagewise_analysis::statistics::median_count;
use pagewise_model::format::time;
use pagewise_model::{CacheState, Workload, groups};

use super::columns::OF_ACTORS;
use super::grid::{Column, ComparisonView, table};
use super::positions::{Positions, failure_alone, note};
use super::said::said;
use super::{append, fill, reads, replay, scan, update};
use crate::document::{Block, Document};
use crate::line::Line;
use crate::words;

fn columns(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Scan => scan::COLUMNS,
        Workload::Fill => fill::COLUMNS,
        Workload::Replay => replay::COLUMNS,
        Workload::Update => update::COLUMNS,
        reading if reading.is_reading() => reads::COLUMNS,
        _ => append::COLUMNS,
    }
}

/// A comparison below a heading of this level.
pub fn section(
    by_id: &ById<'_>,
    comparison: &Comparison,
    advice: Option<&Recommendation>,
    level: u8,
) -> Document {
    let label = comparison.conditions.label.as_str();
    let positions = Positions::of(comparison);
    let cells = sorted(by_id, comparison, &positions);
    let view = ComparisonView { comparison, positions, cells };
    let workload = comparison.conditions.conditions.workload();
    let mut said = said(comparison, advice);
    let choice = advice.and_then(|_| said.pop()).map(|choice| Block::Paragraph(Line::strong(choice)));
    let table = table(&view, columns(workload).iter().chain(&OF_ACTORS));
    let expected: Vec<String> = (view.cells.iter())
        .flat_map(|cell| cell.expected.iter().map(|one| words::expected::sentence(cell, one)))
        .collect();
    let mut body =
        vec![Block::Table(table, label.to_string()), Block::List(expected), Block::List(notes(&view))];
    if workload == Workload::Scan {
        body.extend(scan::differences(&view));
    }
    Document {
        head: vec![Block::heading(level, label)],
        conclusion: said.into_iter().map(Block::paragraph).chain(choice).collect(),
        body,
    }
}

/// Notes on values that are missing or are not what their column suggests.
fn notes(view: &ComparisonView<'_>) -> Vec<String> {
    let conditions = &view.comparison.conditions.conditions;
    let is_start = conditions.cache == CacheState::ColdStart;
    let batch = conditions.reads().filter(|reads| reads.reads_per_op > 1 && !is_start);
    let batch = batch.map(|reads| format!("latencies are of a batch of {} reads", reads.reads_per_op));
    let between = conditions.writes().map_or(0, |writes| u64::from(writes.reads_each));
    let between = (between > 0).then(|| match between {
        1 => "rates and latencies are of an update with the read before it".to_string(),
        reads => format!("rates and latencies are of an update with the {reads} reads before it"),
    });
    // The table of a replay has no latencies.
    let is_replay = conditions.workload() == Workload::Replay;
    let withheld = Withheld::of(conditions).filter(|_| !is_start && !is_replay);
    let withheld = withheld.map(|reason| format!("no latency: {}", words::reasons::no_latency(reason)));
    let stall = view.cells.iter().find_map(|cell| cell.stall_reason);
    let alike = failed_alike(view);
    let is_alone = |cell: &&&CellJudgement| !alike.iter().any(|(_, cells)| cells.contains(cell));
    let of_cell = |cell: &&CellJudgement| Some(format!("{}: {}", cell.method, note(&view.positions, cell)?));
    let mut notes: Vec<String> = batch.into_iter().chain(between).chain(withheld).collect();
    notes.extend(stall.map(|reason| format!("no stall: {}", words::reasons::no_stall(reason))));
    notes.extend(practice(view));
    notes.extend(slow_processes(view));
    notes.extend(order(&view.positions, &view.cells));
    notes.extend(alike.iter().map(|(failure, cells)| same_failure(failure, cells)));
    notes.extend(view.cells.iter().filter(is_alone).filter_map(of_cell));
    if conditions.workload() == Workload::Scan {
        notes.extend(scan::notes(view));
    }
    notes.extend(replay::note(view));
    notes
}

/// Cells that failed the same check and have no other note, if they are several, with the first
/// failure.
fn failed_alike<'a>(view: &ComparisonView<'a>) -> Vec<(&'a MainFailure, Vec<&'a CellJudgement>)> {
    let failed = view.cells.iter().filter_map(|cell| Some((failure_alone(&view.positions, cell)?, *cell)));
    let by_kind = groups::by_key(failed.map(|(failure, cell)| (failure.kind, (failure, cell))));
    let several = by_kind.into_iter().filter(|(_, failed)| failed.len() > 1);
    several.map(|(_, failed)| (failed[0].0, failed.into_iter().map(|(_, cell)| cell).collect())).collect()
}

fn same_failure(failure: &MainFailure, cells: &[&CellJudgement]) -> String {
    let share = |(index, cell): (usize, &&CellJudgement)| {
        let attempts = if index == 0 { " attempts" } else { "" };
        let (invalid, method) = (cell.invalid_samples, &cell.method);
        format!("{invalid} of {}{attempts} of {method}", cell.samples + invalid)
    };
    let shares: Vec<String> = cells.iter().enumerate().map(share).collect();
    format!("invalid: {}; the first {}", shares.join(", "), words::reasons::failed(failure))
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

/// Explanation of an order that the medians beside it contradict.
pub(crate) fn order(positions: &Positions<'_>, cells: &[&CellJudgement]) -> Option<String> {
    let ranked = cells.iter().filter(|cell| positions.leads(cell) || positions.ratio(cell).is_some());
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
pub fn sorted<'a>(
    cells: &ById<'a>,
    comparison: &Comparison,
    positions: &Positions<'_>,
) -> Vec<&'a CellJudgement> {
    let mut cells: Vec<&CellJudgement> =
        comparison.cells.iter().filter_map(|id| cells.get(id.as_str()).copied()).collect();
    let behind = |cell: &CellJudgement| positions.ratio(cell).map_or(f64::INFINITY, |ratio| ratio.ratio);
    cells.sort_by(|left, right| {
        let last = |cell: &CellJudgement| {
            (cell.status != Status::Ok, positions.is_unranked(cell), !positions.leads(cell))
        };
        let figure = |cell: &CellJudgement| cell.ranked_figure().unwrap_or(0.0);
        let by_ratio = behind(left).total_cmp(&behind(right));
        last(left).cmp(&last(right)).then(by_ratio).then(figure(right).total_cmp(&figure(left)))
    });
    cells
}
