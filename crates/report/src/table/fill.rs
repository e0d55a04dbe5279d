//! The columns of filling a new file: costs before, during and after the fill.

use pagewise_analysis::judge::CellJudgement;

use super::columns::{
    INTERVAL, METHOD, PLACE, SYNC_BYTES, SYNC_LONGEST, SYNC_P50, SYNC_P99, SYNCS_PER_SECOND, VS_BEST, limit,
    longest, p999, stalls,
};
use super::grid::{Column, ComparisonView};
use super::one_shot::{faults, in_units, mebi, seen};
use crate::text_table::TextCell;
use pagewise_model::format::{MISSING, grouped};

const MILLISECOND_NS: f64 = 1e6;

/// All columns.
pub(super) const COLUMNS: &[Column] = &[
    METHOD,
    PLACE,
    Column::of("set-up ms", 2, |_, cell| in_units(cell.prepared_ns(), MILLISECOND_NS)),
    Column::of("fill ms", 1, |_, cell| in_units(cell.measured_ns, MILLISECOND_NS)),
    Column::of("tear-down ms", 7, |_, cell| in_units(cell.teardown_ns, MILLISECOND_NS)),
    Column::of("total ms", 0, |_, cell| in_units(cell.total_ns, MILLISECOND_NS)),
    SYNCS_PER_SECOND,
    SYNC_P50,
    SYNC_P99,
    SYNC_LONGEST,
    SYNC_BYTES,
    INTERVAL,
    VS_BEST,
    Column::of("p99.9", 2, |_, cell| p999(cell)),
    Column::of("longest of", 5, |_, cell| longest(cell)),
    Column::of("faults set-up / fill", 6, |_, cell| faults_of_phases(cell)),
    Column::of("huge MiB", 4, |_, cell| match cell.options.contains_key(HUGEPAGE) {
        true => seen(cell, |seen| seen.huge_mapped_bytes, mebi),
        false => TextCell::default(),
    })
    .only(asks_for_huge_pages),
    stalls(1),
    limit(10),
];

/// Faults before the clock started, and after.
fn faults_of_phases(cell: &CellJudgement) -> TextCell {
    let measured = cell.evidence.as_ref().and_then(faults);
    if cell.setup_faults.or(measured).is_none() {
        return TextCell::missing();
    }
    let text = |faults: Option<u64>| faults.map_or_else(|| MISSING.to_string(), grouped);
    let all = cell.setup_faults.unwrap_or(0).saturating_add(measured.unwrap_or(0));
    TextCell::of(format!("{} / {}", text(cell.setup_faults), text(measured)), all as f64)
}

const HUGEPAGE: &str = pagewise_model::MethodOption::HugePage.name();

fn asks_for_huge_pages(view: &ComparisonView<'_>) -> bool {
    view.cells.iter().any(|cell| cell.options.contains_key(HUGEPAGE))
}
