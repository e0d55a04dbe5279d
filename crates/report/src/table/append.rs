//! The columns of records into a ring file.

use super::columns::{
    INTERVAL, LATE_STARTS, METHOD, PLACE, RATE_MISSED, SYNC_BYTES, SYNC_LONGEST, SYNC_P50, SYNC_P99,
    SYNCS_PER_SECOND, USUAL_LATENCY, VS_BEST, limit, longest, p999, stalls,
};
use super::grid::{Column, ComparisonView, median};
use super::one_shot::{in_units, mebi};
use crate::text_table::TextCell;
use pagewise_model::format::{grouped, mebibytes, rate, time};

/// All columns.
pub(super) const COLUMNS: &[Column] = &[
    METHOD,
    PLACE,
    Column::of("ns/record", 0, |_, cell| median(cell.ns_per_op, rate)).only(is_one_shot),
    Column::of("records/s", 9, |_, cell| median(cell.ops_per_second, rate)).only(is_one_shot),
    // Commits are ranked by it.
    Column::of("records/s", 0, |_, cell| median(cell.ops_per_second, rate)).only(|view| !is_one_shot(view)),
    Column::of("MiB/s", 7, |_, cell| median(cell.bytes_per_second, mebibytes)),
    Column::of("total s", 0, |_, cell| in_units(cell.total_ns, 1e9)).only(is_one_shot),
    USUAL_LATENCY,
    SYNCS_PER_SECOND,
    SYNC_P50,
    SYNC_P99,
    SYNC_LONGEST,
    SYNC_BYTES,
    INTERVAL,
    VS_BEST,
    Column::of("set-up", 5, |_, cell| TextCell::number(cell.prepared_ns(), time)),
    Column::of("tear-down (sync)", 6, |_, cell| {
        let text = |all: u64| TextCell::of(teardown(all, cell.sync_ns), all as f64);
        cell.teardown_ns.map_or_else(TextCell::missing, text)
    }),
    RATE_MISSED,
    LATE_STARTS,
    Column::of("p99.9", 1, |_, cell| p999(cell)),
    Column::of("longest of", 2, |_, cell| longest(cell)),
    Column::of("stalls >1ms", 3, |_, cell| TextCell::number(cell.stalls_total, grouped)),
    Column::of("dirty MiB", 4, |_, cell| TextCell::number(cell.dirty_end_bytes, mebi)),
    Column::of("written MiB", 8, |_, cell| TextCell::number(cell.device_written_bytes, mebi)),
    stalls(1),
    limit(10),
];

/// True if methods are ranked by their total.
fn is_one_shot(view: &ComparisonView<'_>) -> bool {
    view.cells.iter().any(|cell| cell.is_one_shot)
}

/// Tear-down with the sync as a part of it, if there is one.
fn teardown(all: u64, sync: Option<u64>) -> String {
    match sync.filter(|sync| *sync > 0) {
        Some(sync) => format!("{} ({})", time(all), time(sync)),
        None => time(all),
    }
}
