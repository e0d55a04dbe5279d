//! The columns of reads: rates, or for a cold start the time until it is warm.

use pagewise_model::CacheState;

use super::columns::{METHOD, PLACE, VS_BEST, limit, longest, quantile, stalls};
use super::grid::{Column, ComparisonView, or_missing};
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
    Column::numbers("time to warm", 0, |_, cell| {
        or_missing(cell.time_to_warm_ns, |value| time(value.median))
    })
    .only(cold_start),
    Column::numbers("read until then", 1, |_, cell| {
        or_missing(cell.bytes_to_warm, |read| bytes(read.median))
    })
    .only(cold_start),
    Column::numbers("reads/s", 0, |_, cell| or_missing(cell.reads_per_second, |value| rate(value.median)))
        .only(no_cold_start),
    VS_BEST,
    Column::numbers("reads/s once warm", 2, |_, cell| {
        let last = cell.cold_start.as_ref().and_then(|course| course.last());
        let reads_per_op = f64::from(cell.parameters.reads_per_op.unwrap_or(1));
        or_missing(last, |window| rate(window.ops_per_second * reads_per_op))
    })
    .only(cold_start),
    Column::numbers("MiB/s", 3, |_, cell| or_missing(cell.bytes_per_second, |value| mebibytes(value.median)))
        .only(no_cold_start),
    Column::numbers("p50", 2, |_, cell| quantile(cell, |latency| latency.p50)).only(no_cold_start),
    Column::numbers("p99", 0, |_, cell| quantile(cell, |latency| latency.p99)).only(no_cold_start),
    Column::numbers("longest of", 5, |_, cell| longest(cell)).only(no_cold_start),
    Column::numbers("set-up", 4, |_, cell| or_missing(cell.setup_ns, time)),
    stalls(1),
    limit(1),
];
