//! Columns that all tables have: method, place, distance to the leader, latencies, bound, and
//! stalls.

use pagewise_analysis::judge::latency::Latency;
use pagewise_analysis::judge::syncs::Syncs;
use pagewise_analysis::judge::verdict::Place;
use pagewise_analysis::judge::{CellJudgement, RatioToLeader, worst};

use super::grid::{Column, ComparisonView, or_missing};
use pagewise_model::format::{MISSING, bytes, grouped, percent_up, rate, time, times};

/// Heading of the bound of a cell.
pub(super) const LIMITED_BY: &str = "limited by";

/// The method.
pub(super) const METHOD: Column = Column::words("method", 0, |_, cell| cell.method.clone());
/// Its place as a word.
pub(super) const PLACE: Column = Column::words("place", 0, |view, cell| view.standings.place(cell));

/// Its bound. If the column is left out, it is shown below the table.
pub(super) const fn limit(spare: u32) -> Column {
    Column::words(LIMITED_BY, spare, |_, cell| bound(cell))
}

/// Heading of the stalls that a method causes.
pub(super) const STALL: &str = "stall p99 / max (idle p99)";

/// Delays of the latest kind of heartbeats; only for runs with heartbeats. If the column is left
/// out, they are shown below the table.
pub(super) const fn stalls(spare: u32) -> Column {
    Column::words(STALL, spare, |_, cell| stall(cell))
        .only(|view| view.cells.iter().any(|cell| cell.stall.is_some()))
}

/// `safepoint 3.10ms / 12.4ms (203us)`.
pub(super) fn stall(cell: &CellJudgement) -> String {
    let Some(worst) = cell.stall.as_deref().and_then(worst) else { return MISSING.to_string() };
    let idle = worst.idle.map_or_else(|| MISSING.to_string(), |idle| time(idle.p99_ns));
    format!("{} {} / {} ({idle})", worst.kind, time(worst.busy.p99_ns), time(worst.busy.max_ns))
}

/// True if any method synced within the measured region.
fn has_syncs(view: &ComparisonView<'_>) -> bool {
    view.cells.iter().any(|cell| cell.syncs.is_some())
}

/// A figure of the syncs.
fn synced(cell: &CellJudgement, text: impl Fn(&Syncs) -> Option<String>) -> String {
    or_missing(cell.syncs.as_ref().and_then(text), |text| text)
}

/// Syncs per second of the measured region.
pub(super) const SYNCS_PER_SECOND: Column =
    Column::numbers("syncs/s", 0, |_, cell| synced(cell, |syncs| Some(rate(syncs.per_second?.median))))
        .only(has_syncs);
/// The median duration of a sync.
pub(super) const SYNC_P50: Column =
    Column::numbers("sync p50", 0, |_, cell| synced(cell, |syncs| syncs.p50.map(time))).only(has_syncs);
/// The p99 duration.
pub(super) const SYNC_P99: Column =
    Column::numbers("sync p99", 0, |_, cell| synced(cell, |syncs| syncs.p99.map(time))).only(has_syncs);
/// The longest sync, with the number of syncs, since it grows with them.
pub(super) const SYNC_LONGEST: Column = Column::numbers("longest sync of", 6, |_, cell| {
    synced(cell, |syncs| Some(format!("{} of {}", time(syncs.max), count(syncs.count))))
})
.only(has_syncs);
/// Bytes that reached the file for each sync.
pub(super) const SYNC_BYTES: Column = Column::numbers("bytes/sync", 8, |_, cell| {
    synced(cell, |syncs| Some(bytes(syncs.bytes_per_sync?.median)))
})
.only(has_syncs);

/// Interval of the leader's rate over the cell's, or the bound of a cell that is not behind.
pub(super) const VS_BEST: Column = Column::words("vs best", 0, |view, cell| {
    view.standings.ratio(cell).map_or_else(|| MISSING.to_string(), against_leader)
});

/// `1.18x to 1.51x` behind, `within 6 %`, or, if open, `0.90x to 1.40x`.
pub(crate) fn against_leader(ratio: &RatioToLeader) -> String {
    match (ratio.place, ratio.low, ratio.high, ratio.bound) {
        _ if ratio.changed => "changed during the run".to_string(),
        _ if ratio.is_gap() => format!("about {}x, {} rounds", times(ratio.ratio), ratio.rounds),
        (Place::Tie | Place::Close, _, _, Some(bound)) => format!("within {}", percent_up(bound)),
        (_, Some(low), Some(high), _) => format!("{} to {}", factor(low), factor(high)),
        _ => "too few rounds".to_string(),
    }
}

/// A ratio; close to 1 with the digits that show on which side it is.
fn factor(ratio: f64) -> String {
    if (0.99..1.01).contains(&ratio) { format!("{ratio:.3}x") } else { format!("{}x", times(ratio)) }
}

/// The bound, with the share of it that was reached.
pub(super) fn bound(cell: &CellJudgement) -> String {
    cell.limit.text().unwrap_or_else(|| MISSING.to_string())
}

/// A quantile of the latencies.
pub(super) fn quantile(cell: &CellJudgement, pick: impl Fn(&Latency) -> Option<u64>) -> String {
    or_missing(cell.latency_ns.as_ref().and_then(pick), time)
}

/// The p99.9 latency.
pub(super) fn p999(cell: &CellJudgement) -> String {
    quantile(cell, |latency| latency.p999)
}

/// A number of operations.
fn count(operations: u64) -> String {
    match operations {
        0..10_000 => grouped(operations),
        many => rate(many as f64),
    }
}

/// The longest operation or stall, with the number of operations, since it grows with them.
pub(super) fn longest(cell: &CellJudgement) -> String {
    let text = |latency: &Latency| format!("{} of {}", time(latency.max), count(latency.operations));
    or_missing(cell.latency_ns.as_ref(), text)
}
