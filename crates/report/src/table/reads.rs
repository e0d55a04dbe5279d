//! The columns of reads: rates, or for a cold start the time until it is warm.

use pagewise_model::CacheState;

use super::columns::{
    INTERVAL, LATE_STARTS, METHOD, PLACE, RATE_MISSED, USUAL_LATENCY, VS_BEST, limit, longest, quantile,
    stalls,
};
use super::grid::{Column, ComparisonView, median};
use crate::text_table::TextCell;
use pagewise_model::format::{bytes, mebibytes, rate, time};

fn cold_start(view: &ComparisonView<'_>) -> bool {
    view.comparison.conditions.conditions.cache == CacheState::ColdStart
}

fn no_cold_start(view: &ComparisonView<'_>) -> bool {
    !cold_start(view)
}

/// All columns.
pub(super) const COLUMNS: &[Column] = &[
    METHOD,
    PLACE,
    Column::of("time to warm", 0, |_, cell| median(cell.time_to_warm_ns, time)).only(cold_start),
    Column::of("read until then", 1, |_, cell| median(cell.bytes_to_warm, bytes)).only(cold_start),
    Column::of("reads/s", 0, |_, cell| median(cell.reads_per_second, rate)).only(no_cold_start),
    USUAL_LATENCY,
    INTERVAL,
    VS_BEST,
    Column::of("reads/s once warm", 2, |_, cell| {
        let last = cell.cold_start.as_ref().and_then(|course| course.last());
        let reads_per_op = f64::from(cell.parameters.reads_per_op.unwrap_or(1));
        TextCell::number(last.map(|window| window.ops_per_second * reads_per_op), rate)
    })
    .only(cold_start),
    Column::of("MiB/s", 3, |_, cell| median(cell.bytes_per_second, mebibytes)).only(no_cold_start),
    Column::of("p50", 2, |_, cell| quantile(cell, |latency| latency.p50)).only(no_cold_start),
    Column::of("p99", 0, |_, cell| quantile(cell, |latency| latency.p99)).only(no_cold_start),
    RATE_MISSED,
    LATE_STARTS,
    Column::of("longest of", 5, |_, cell| longest(cell)).only(no_cold_start),
    Column::of("set-up", 4, |_, cell| TextCell::number(cell.setup_ns, time)),
    stalls(1),
    limit(1),
];
