//! The columns of a replayed trace.

use crate::text_table::TextCell;
use pagewise_analysis::judge::CellJudgement;
use pagewise_model::Conditions;
use pagewise_model::format::{bytes, factor, grouped, time};

use super::columns::{INTERVAL, METHOD, PLACE, VS_BEST, limit, stalls};
use super::grid::{Column, ComparisonView};
use super::one_shot::{faults, in_units, seen};
use super::scan::{ticks, wait_seconds};

const SECOND_NS: f64 = 1e9;

/// All columns.
pub(super) const COLUMNS: &[Column] = &[
    METHOD,
    PLACE,
    Column::of("total s", 0, |_, cell| in_units(cell.total_ns, SECOND_NS)),
    INTERVAL,
    VS_BEST,
    Column::of("from device", 1, |_, cell| TextCell::number(device_bytes(cell), bytes)),
    Column::of("of asked", 4, |view, cell| {
        TextCell::number(share_of_asked(cell, asked(&view.comparison.conditions.conditions)), |share| {
            factor(share, None)
        })
    }),
    Column::of("wait s", 2, |_, cell| TextCell::number(wait_seconds(cell), |wait| format!("{wait:.2}")))
        .only(has_no_gaps),
    Column::of("user s", 6, |_, cell| seen(cell, |seen| seen.user_ns, ticks)).only(has_no_gaps),
    Column::of("system s", 5, |_, cell| seen(cell, |seen| seen.system_ns, ticks)).only(has_no_gaps),
    Column::of("set-up", 8, |_, cell| TextCell::number(cell.prepared_ns(), time)),
    Column::of("faults", 7, |_, cell| seen(cell, faults, grouped)),
    stalls(3),
    limit(9),
];

fn has_no_gaps(view: &ComparisonView<'_>) -> bool {
    gaps_ns(view) == 0
}

fn gaps_ns(view: &ComparisonView<'_>) -> u64 {
    view.comparison.conditions.conditions.gaps_ns()
}

/// Note on what the figures of a replay with gaps leave out.
pub(super) fn note(view: &ComparisonView<'_>) -> Option<String> {
    let gaps_ns = Some(gaps_ns(view)).filter(|gaps_ns| *gaps_ns > 0)?;
    Some(format!(
        "each method waited as the program did between its reads, {} in all, which no time here has. CPU time and waits would be \
         those of the gaps, too: --as-fast-as-possible shows them",
        time(gaps_ns)
    ))
}

fn device_bytes(cell: &CellJudgement) -> Option<u64> {
    cell.evidence.as_ref()?.device_read_bytes
}

/// Bytes that all of the trace asks for.
fn asked(conditions: &Conditions) -> u64 {
    conditions.bytes_of(conditions.fixed_operations().unwrap_or(1))
}

/// Bytes from the device over those that were asked for.
fn share_of_asked(cell: &CellJudgement, asked: u64) -> Option<f64> {
    Some(device_bytes(cell)? as f64 / asked.max(1) as f64)
}
