//! The columns of records into a ring file.

use super::columns::{
    METHOD, PLACE, SYNC_BYTES, SYNC_LONGEST, SYNC_P50, SYNC_P99, SYNCS_PER_SECOND, VS_BEST, limit, longest,
    p999, stalls,
};
use super::grid::{Column, ComparisonView, or_missing};
use super::one_shot::{in_units, mebi};
use pagewise_model::format::{grouped, mebibytes, rate, time};

/// All columns.
pub(super) const COLUMNS: &[Column] = &[
    METHOD,
    PLACE,
    Column::numbers("ns/record", 0, |_, cell| or_missing(cell.ns_per_op, |value| rate(value.median)))
        .only(is_one_shot),
    Column::numbers("records/s", 9, |_, cell| or_missing(cell.ops_per_second, |value| rate(value.median)))
        .only(is_one_shot),
    // Commits are ranked by it.
    Column::numbers("records/s", 0, |_, cell| or_missing(cell.ops_per_second, |value| rate(value.median)))
        .only(|view| !is_one_shot(view)),
    Column::numbers("MiB/s", 7, |_, cell| or_missing(cell.bytes_per_second, |value| mebibytes(value.median))),
    Column::numbers("total s", 0, |_, cell| in_units(cell.total_ns, 1e9)).only(is_one_shot),
    SYNCS_PER_SECOND,
    SYNC_P50,
    SYNC_P99,
    SYNC_LONGEST,
    SYNC_BYTES,
    VS_BEST,
    Column::numbers("set-up", 5, |_, cell| or_missing(cell.prepared_ns(), time)),
    Column::numbers("tear-down (sync)", 6, |_, cell| {
        or_missing(cell.teardown_ns, |all| teardown(all, cell.sync_ns))
    }),
    Column::numbers("p99.9", 1, |_, cell| p999(cell)),
    Column::numbers("longest of", 2, |_, cell| longest(cell)),
    Column::numbers("stalls >1ms", 3, |_, cell| or_missing(cell.stalls_total, grouped)),
    Column::numbers("dirty MiB", 4, |_, cell| or_missing(cell.dirty_end_bytes, mebi)),
    Column::numbers("written MiB", 8, |_, cell| or_missing(cell.device_written_bytes, mebi)),
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
