//! The columns of updates in place: rate, bytes that the device moved for each update, and syncs.

use pagewise_analysis::judge::{CellJudgement, EvidenceMedians};
use pagewise_model::Access;
use pagewise_model::format::{bytes, grouped, rate};

use super::columns::{
    INTERVAL, LATE_STARTS, METHOD, PLACE, RATE_MISSED, SYNC_LONGEST, SYNC_P50, SYNC_P99, SYNCS_PER_SECOND,
    USUAL_LATENCY, VS_BEST, has_rate, limit, longest, p999, quantile, stalls,
};
use super::grid::{Column, ComparisonView, median};
use super::one_shot::{faults, in_units, mebi, seen};
use crate::text_table::TextCell;

const MILLISECOND_NS: f64 = 1e6;

/// All columns.
pub(super) const COLUMNS: &[Column] = &[
    METHOD,
    PLACE,
    Column::of("updates/s", 0, |_, cell| median(cell.ops_per_second, rate)),
    USUAL_LATENCY,
    RATE_MISSED,
    LATE_STARTS,
    Column::of("total ms", 0, |_, cell| in_units(cell.total_ns, MILLISECOND_NS)),
    Column::of("device writes each", 0, |view, cell| each(view, cell, |_| written_in_region(cell))),
    Column::of("device reads each", 1, |view, cell| each(view, cell, read_in_all)),
    Column::of("folio", 2, |_, cell| TextCell::number(cell.folio_bytes, bytes))
        .only(|view| view.cells.iter().any(|cell| cell.folio_bytes.is_some())),
    // What is not written yet is to be paid later.
    Column::of("dirty MiB", 1, |_, cell| TextCell::number(dirty(cell), mebi))
        .only(|view| view.cells.iter().any(|cell| cell.dirty_end_bytes.is_some_and(|bytes| bytes > 0))),
    SYNCS_PER_SECOND,
    SYNC_P50,
    SYNC_P99,
    SYNC_LONGEST,
    INTERVAL,
    VS_BEST,
    Column::of("set-up ms", 5, |_, cell| in_units(cell.prepared_ns(), MILLISECOND_NS)),
    Column::of("tear-down ms", 7, |_, cell| in_units(cell.teardown_ns, MILLISECOND_NS)),
    Column::of("faults", 6, |_, cell| seen(cell, faults, grouped)),
    Column::of("p99", 1, |_, cell| quantile(cell, |latency| latency.p99)).only(has_rate),
    Column::of("p99.9", 3, |_, cell| p999(cell)),
    Column::of("longest of", 4, |_, cell| longest(cell)),
    stalls(1),
    limit(10),
];

/// Bytes that the device wrote, unless what is to be on it at the end gets there behind the region.
fn written_in_region(cell: &CellJudgement) -> Option<u64> {
    let synced_behind = cell.parameters.sync.as_deref() == Some("end");
    cell.device_written_bytes.filter(|_| !synced_behind)
}

/// Bytes that the device has yet to write: of a folio that a call changed in part, only that part,
/// although the kernel counts all of it.
fn dirty(cell: &CellJudgement) -> Option<u64> {
    let counted = cell.dirty_end_bytes?;
    let evidence = cell.evidence.as_ref().filter(|_| cell.moves != Access::Mmap);
    let written = cell.device_written_bytes.unwrap_or(0);
    let most = evidence.map(|seen| seen.requested_bytes.saturating_sub(written));
    Some(most.map_or(counted, |most| counted.min(most)))
}

/// Bytes that the device delivered: what set-up reads ahead is a part of the total too.
fn read_in_all(seen: &EvidenceMedians) -> Option<u64> {
    Some(seen.device_read_bytes?.saturating_add(seen.setup_device_read_bytes.unwrap_or(0)))
}

/// Bytes of the device for each update.
fn each(
    view: &ComparisonView<'_>,
    cell: &CellJudgement,
    all: impl Fn(&EvidenceMedians) -> Option<u64>,
) -> TextCell {
    let block = view.comparison.conditions.conditions.op_bytes() as f64;
    let of_update = |seen: &EvidenceMedians| {
        let updates = seen.requested_bytes as f64 / block.max(1.0);
        Some((all(seen)? as f64 / updates.max(1.0)).round() as u64)
    };
    TextCell::number(cell.evidence.as_ref().and_then(of_update), bytes)
}
