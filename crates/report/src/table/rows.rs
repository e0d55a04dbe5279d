//! One comparison as a table, best method first.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use pagewise_analysis::Judged;
use pagewise_analysis::bound::AT_CEILING;
use pagewise_analysis::judged::{CellJudgement, Comparison, Status};
use pagewise_analysis::latency::not_told;
use pagewise_model::CacheState;

use super::paragraph;
use crate::numbers::{MISSING, bytes, counted, mebibytes, percent, rate, rate_interval, time, time_interval};

/// A column: its name, how soon it is left out (0: never), where it stands, and its text for a cell.
struct Column {
    name: &'static str,
    spare: u32,
    stands: fn(&Comparison) -> bool,
    text: fn(&Comparison, &CellJudgement) -> String,
}

const LIMITED_BY: &str = "limited by";
const TIME_TO_WARM: &str = "time to warm [95 % interval]";

fn always(_: &Comparison) -> bool {
    true
}

fn cold_start(comparison: &Comparison) -> bool {
    comparison.conditions.conditions.cache == CacheState::ColdStart
}

fn no_cold_start(comparison: &Comparison) -> bool {
    !cold_start(comparison)
}

const COLUMNS: &[Column] = &[
    Column { name: "method", spare: 0, stands: always, text: |_, cell| cell.method.clone() },
    Column { name: "place", spare: 0, stands: always, text: place },
    Column {
        name: TIME_TO_WARM,
        spare: 0,
        stands: cold_start,
        text: |_, cell| or_missing(cell.time_to_warm_ns.as_ref(), time_interval),
    },
    Column {
        name: "read until then",
        spare: 1,
        stands: cold_start,
        text: |_, cell| or_missing(cell.bytes_to_warm.as_ref(), |read| bytes(read.median)),
    },
    Column {
        name: "ops/s [95 % interval]",
        spare: 0,
        stands: no_cold_start,
        text: |_, cell| or_missing(cell.ops_per_second.as_ref(), rate_interval),
    },
    Column { name: "behind", spare: 0, stands: always, text: behind },
    Column {
        name: "ops/s once warm",
        spare: 2,
        stands: cold_start,
        text: |_, cell| {
            let last = cell.cold_start.as_ref().and_then(|course| course.last());
            or_missing(last, |window| rate(window.ops_per_second))
        },
    },
    Column {
        name: "MiB/s",
        spare: 3,
        stands: no_cold_start,
        text: |_, cell| or_missing(cell.bytes_per_second.as_ref(), |value| mebibytes(value.median)),
    },
    Column {
        name: "p50",
        spare: 2,
        stands: no_cold_start,
        text: |_, cell| or_missing(cell.latency_ns.as_ref(), |latency| time(latency.p50)),
    },
    Column {
        name: "p99",
        spare: 0,
        stands: no_cold_start,
        text: |_, cell| or_missing(cell.latency_ns.as_ref(), |latency| time(latency.p99)),
    },
    Column {
        name: "max",
        spare: 5,
        stands: no_cold_start,
        text: |_, cell| or_missing(cell.latency_ns.as_ref(), |latency| time(latency.max)),
    },
    Column {
        name: "set-up",
        spare: 4,
        stands: always,
        text: |_, cell| or_missing(cell.setup_ns.as_ref(), |setup| time(*setup)),
    },
    Column { name: LIMITED_BY, spare: 1, stands: always, text: bound },
];

/// Writes title, table, and the reasons of what is missing in it.
pub(super) fn write(
    out: &mut dyn Write,
    judged: &Judged,
    comparison: &Comparison,
    width: usize,
) -> io::Result<()> {
    paragraph(out, "", &comparison.conditions.label, width)?;
    let cells = sorted(judged, comparison);
    let (columns, left_out) = fitting(comparison, &cells, width);
    for line in table(comparison, &cells, &columns).lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    // What limited a method is never left out: without its column it stands below.
    if left_out.contains(&LIMITED_BY) {
        let limits: Vec<String> = cells
            .iter()
            .filter(|cell| cell.bound.is_some())
            .map(|cell| format!("{} {}", cell.method, bound(comparison, cell)))
            .collect();
        paragraph(out, "  ", &format!("{LIMITED_BY}: {}", limits.join("; ")), width)?;
    }
    let names: Vec<&str> = left_out.into_iter().filter(|name| *name != LIMITED_BY).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        paragraph(
            out,
            "  ",
            &format!("columns that do not fit: {names} (a wider terminal shows them, --json has all)"),
            width,
        )?;
    }
    if let Some(reason) = not_told(&comparison.conditions.conditions).filter(|_| no_cold_start(comparison)) {
        paragraph(out, "  ", &format!("no latency: {reason}"), width)?;
    }
    for cell in &cells {
        if let Some(note) = note(comparison, cell) {
            paragraph(out, "  ", &format!("{}: {note}", cell.method), width)?;
        }
    }
    Ok(())
}

/// The leader, then the others by how far they are behind it, as within rounds and not by their medians; then those that are not ranked, then those without figures.
fn sorted<'a>(judged: &'a Judged, comparison: &Comparison) -> Vec<&'a CellJudgement> {
    let mut cells: Vec<&CellJudgement> = comparison.cells.iter().filter_map(|id| judged.cell(id)).collect();
    let behind = |cell: &CellJudgement| {
        let found = comparison.ratios.iter().find(|ratio| ratio.cell == cell.id);
        found.map_or(f64::INFINITY, |ratio| ratio.ratio)
    };
    let speed = |cell: &CellJudgement| cell.ops_per_second.map_or(0.0, |rate| rate.median);
    cells.sort_by(|left, right| {
        let leads = |cell: &CellJudgement| comparison.leader.as_deref() == Some(cell.method.as_str());
        let last = |cell: &CellJudgement| (speed(cell) == 0.0, is_unranked(comparison, cell), !leads(cell));
        let by_ratio = behind(left).total_cmp(&behind(right));
        last(left).cmp(&last(right)).then(by_ratio).then(speed(right).total_cmp(&speed(left)))
    });
    cells
}

fn is_unranked(comparison: &Comparison, cell: &CellJudgement) -> bool {
    comparison.unranked.iter().any(|unranked| unranked.cell == cell.id)
}

/// The columns that fit, and the names of those that do not.
fn fitting(
    comparison: &Comparison,
    cells: &[&CellJudgement],
    width: usize,
) -> (Vec<&'static Column>, Vec<&'static str>) {
    let mut columns: Vec<&Column> = COLUMNS.iter().filter(|column| (column.stands)(comparison)).collect();
    let mut left_out = Vec::new();
    let widest = |columns: &[&Column]| {
        table(comparison, cells, columns)
            .lines()
            .map(|line| line.trim_end().chars().count())
            .max()
            .unwrap_or(0)
    };
    while widest(&columns) > width {
        let Some(spare) = columns.iter().filter(|column| column.spare > 0).max_by_key(|column| column.spare)
        else {
            break;
        };
        left_out.push(spare.name);
        let name = spare.name;
        columns.retain(|column| column.name != name);
    }
    (columns, left_out)
}

fn table(comparison: &Comparison, cells: &[&CellJudgement], columns: &[&Column]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|column| column.name));
    for cell in cells {
        table.add_row(columns.iter().map(|column| (column.text)(comparison, cell)));
    }
    for (index, column) in columns.iter().enumerate() {
        if let Some(shown) = table.column_mut(index)
            && !["method", "place", LIMITED_BY, TIME_TO_WARM, "ops/s [95 % interval]"].contains(&column.name)
        {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

fn or_missing<T>(value: Option<&T>, text: impl Fn(&T) -> String) -> String {
    value.map_or_else(|| MISSING.to_string(), text)
}

fn place(comparison: &Comparison, cell: &CellJudgement) -> String {
    let word = match cell.status {
        Status::Unavailable => "unavailable",
        Status::Invalid => "invalid",
        Status::Ok if is_unranked(comparison, cell) => "not ranked",
        Status::Ok if comparison.winner.as_deref() == Some(cell.method.as_str()) => "best",
        Status::Ok if comparison.unclear().contains(&cell.method.as_str()) => "unclear",
        Status::Ok if comparison.near().contains(&cell.method.as_str()) => match comparison.near().len() {
            1 => "leads",
            _ => "tie",
        },
        Status::Ok => "",
    };
    word.to_string()
}

/// How many times slower than the leader it is, within rounds.
fn behind(comparison: &Comparison, cell: &CellJudgement) -> String {
    match comparison.ratios.iter().find(|ratio| ratio.cell == cell.id) {
        Some(ratio) => format!("{}x", rate(ratio.ratio)),
        None if comparison.leader.as_deref() == Some(cell.method.as_str()) => "1.00x".to_string(),
        None => MISSING.to_string(),
    }
}

fn bound(_: &Comparison, cell: &CellJudgement) -> String {
    match (cell.bound, cell.of_ceiling) {
        (Some(bound), Some(share)) if share >= AT_CEILING => format!("{}, at its ceiling", bound.name()),
        (Some(bound), Some(share)) => format!("{} {}", bound.name(), percent(share)),
        (Some(bound), None) => bound.name().to_string(),
        (None, _) => MISSING.to_string(),
    }
}

/// Why a cell has no place, no figures, or fewer samples.
fn note(comparison: &Comparison, cell: &CellJudgement) -> Option<String> {
    let reason = cell.reason.as_deref().unwrap_or("no reason is recorded");
    match cell.status {
        Status::Unavailable => Some(format!("unavailable: {reason}")),
        Status::Invalid => {
            let attempts = counted(cell.invalid_samples as u64, "attempt");
            Some(format!("invalid: no valid sample in {attempts}; {reason}"))
        }
        Status::Ok => {
            let unranked = comparison.unranked.iter().find(|unranked| unranked.cell == cell.id);
            let unranked = unranked.map(|unranked| format!("not ranked: {}", unranked.reason));
            // Without invalid attempts a reason says what the machine refused.
            let failed = match cell.invalid_samples {
                0 => cell.reason.clone(),
                invalid => {
                    let attempts = cell.samples + invalid;
                    Some(format!("{invalid} of {attempts} attempts invalid; {reason}"))
                }
            };
            let parts: Vec<String> = unranked.into_iter().chain(failed).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
    }
}
