//! Columns that all tables have: method, place, distance to the leader, latencies, bound, and
//! stalls.

use pagewise_analysis::judge::latency::Latency;
use pagewise_analysis::judge::syncs::Syncs;
use pagewise_analysis::judge::verdict::Place;
use pagewise_analysis::judge::{ActorFigures, CellJudgement, FigureKind, RatioToLeader, worst};

use super::grid::{Column, ComparisonView, median};
use crate::text_table::TextCell;
use crate::words;
use pagewise_model::format::{
    MISSING, Number, bytes, grouped, mebibytes, percent, percent_up, rate, time, times, times_interval,
};

/// The method.
pub(super) const METHOD: Column = Column::of("method", 0, |_, cell| cell.method.as_str().into());
/// Place of a method as a word.
pub(super) const PLACE: Column = Column::of("place", 0, |view, cell| view.positions.place(cell).into());

/// Limit of a method. If the column is left out, it is shown below the table.
pub(super) const fn limit(spare: u32) -> Column {
    Column::of("limited by", spare, |_, cell| bound(cell).into()).kept_below()
}

/// Delays of the latest kind of heartbeats; only for runs with heartbeats. If the column is left
/// out, they are shown below the table.
pub(super) const fn stalls(spare: u32) -> Column {
    Column::of("stall p99 / max (idle p99)", spare, |_, cell| stall(cell).into())
        .kept_below()
        .only(|view| view.cells.iter().any(|cell| cell.stall.is_some()))
}

/// `safepoint 3.10ms / 12.4ms (203us)`.
fn stall(cell: &CellJudgement) -> String {
    let Some(worst) = cell.stall.as_deref().and_then(worst) else { return MISSING.to_string() };
    let idle = worst.idle.map_or_else(|| MISSING.to_string(), |idle| time(idle.p99_ns));
    format!("{} {} / {} ({idle})", worst.kind, time(worst.busy.p99_ns), time(worst.busy.max_ns))
}

/// True if any method synced within the measured region.
fn has_syncs(view: &ComparisonView<'_>) -> bool {
    view.cells.iter().any(|cell| cell.syncs.is_some())
}

/// A figure of the syncs.
fn synced<T: Number + Copy>(
    cell: &CellJudgement,
    figure: impl Fn(&Syncs) -> Option<T>,
    text: impl Fn(T) -> String,
) -> TextCell {
    TextCell::number(cell.syncs.as_ref().and_then(figure), text)
}

/// True if operations were due at a rate.
pub(super) fn has_rate(view: &ComparisonView<'_>) -> bool {
    view.comparison.conditions.conditions.rate.is_some()
}

/// Latency of operations at a rate, by which methods are ranked.
pub(super) const USUAL_LATENCY: Column =
    Column::of("mean of 95 %", 0, |_, cell| median(cell.usual_latency_ns, time)).only(has_rate);
/// Samples that did not keep the rate.
pub(super) const RATE_MISSED: Column = Column::of("rate missed", 1, |_, cell| {
    let text = |missed: usize| TextCell::of(format!("{missed} of {}", cell.samples), missed as f64);
    cell.rate_missed.map_or_else(TextCell::missing, text)
})
.only(has_rate);
/// Operations that began late for want of a CPU.
pub(super) const LATE_STARTS: Column =
    Column::of("begun late", 3, |_, cell| TextCell::number(cell.late_starts, grouped)).only(has_rate);

/// True if an actor was at work.
fn has_actor(view: &ComparisonView<'_>) -> bool {
    view.comparison.conditions.conditions.beside.is_some()
}

/// True if an actor filled the same cache.
fn shares_cache(view: &ComparisonView<'_>) -> bool {
    view.comparison.conditions.conditions.shares_cache()
}

/// Columns about an actor.
pub(super) static OF_ACTORS: [Column; 4] = [OF_ALONE, LEFT_IN_CACHE, ACTOR_RATE, ACTOR_FROM_DEVICE];
/// Rate, or another figure by which methods are ranked, as a share of the same without the actor.
const OF_ALONE: Column = Column::of("of alone", 0, |_, cell| {
    cell.actor.map_or_else(TextCell::missing, |actor| share_of_alone(&actor))
})
.only(has_actor);
/// A figure beside an actor as a share of the same alone.
pub(crate) fn share_of_alone(actor: &ActorFigures) -> TextCell {
    actor.of_alone.map_or_else(TextCell::missing, |share| {
        TextCell::of(words::figures::interval(share, percent), share.median)
    })
}
/// Share of the span that the actor left in the page cache.
const LEFT_IN_CACHE: Column = Column::of("left in cache", 1, |_, cell| {
    TextCell::number(cell.actor.and_then(|actor| actor.left_in_cache), percent)
})
.only(shares_cache);
/// Rate of the actor.
const ACTOR_RATE: Column = Column::of("actor MiB/s", 2, |_, cell| {
    TextCell::number(cell.actor.map(|actor| actor.bytes_per_second), mebibytes)
})
.only(has_actor);
/// Share of the actor's bytes that came from the device.
const ACTOR_FROM_DEVICE: Column = Column::of("actor from device", 3, |_, cell| {
    TextCell::number(cell.actor.and_then(|actor| actor.from_device), percent)
})
.only(has_actor);

/// Syncs per second of the measured region.
pub(super) const SYNCS_PER_SECOND: Column =
    Column::of("syncs/s", 0, |_, cell| synced(cell, |syncs| Some(syncs.per_second?.median), rate))
        .only(has_syncs);
/// The median duration of a sync.
pub(super) const SYNC_P50: Column =
    Column::of("sync p50", 0, |_, cell| synced(cell, |syncs| syncs.p50, time)).only(has_syncs);
/// The p99 duration.
pub(super) const SYNC_P99: Column =
    Column::of("sync p99", 0, |_, cell| synced(cell, |syncs| syncs.p99, time)).only(has_syncs);
/// The longest sync, with the number of syncs, since it grows with them.
pub(super) const SYNC_LONGEST: Column = Column::of("longest sync of", 6, |_, cell| {
    let text = |syncs: &Syncs| TextCell::of(longest_of(syncs.max, syncs.count), syncs.max as f64);
    cell.syncs.as_ref().map_or_else(TextCell::missing, text)
})
.only(has_syncs);
/// Bytes that reached the file for each sync.
pub(super) const SYNC_BYTES: Column =
    Column::of("bytes/sync", 8, |_, cell| synced(cell, |syncs| Some(syncs.bytes_per_sync?.median), bytes))
        .only(has_syncs);

/// Interval of the leader's rate over the cell's, or the bound of a cell that is not behind.
pub(super) const VS_BEST: Column = Column::of("vs best", 0, |view, cell| {
    let text = |ratio: &RatioToLeader| TextCell::of(against_leader(ratio), ratio.ratio);
    view.positions.ratio(cell).map_or_else(TextCell::missing, text)
});

/// Interval of the figure by which methods are ranked.
pub(super) const INTERVAL: Column = Column::of("95 % interval", 2, |view, cell| {
    let figure = FigureKind::of(&view.comparison.conditions.conditions);
    let ends = cell.figure(figure).and_then(|value| value.low.zip(value.high));
    let text = |(low, high)| {
        TextCell::of(
            format!("{} to {}", words::figures::shown(figure, low), words::figures::shown(figure, high)),
            low,
        )
    };
    ends.map_or_else(TextCell::missing, text)
});

/// Ratio of the ends of an interval that says something.
const KNOWN_WITHIN: f64 = 10_000.0;

/// `1.18x to 1.51x` behind, `within 6 %`, or, if open, `0.90x to 1.40x`.
pub fn against_leader(ratio: &RatioToLeader) -> String {
    match (ratio.place, ratio.low, ratio.high, ratio.bound) {
        _ if ratio.changed => "changed during the run".to_string(),
        _ if ratio.is_gap() => format!("about {}x, {} rounds", times(ratio.ratio), ratio.rounds),
        (Place::Tie | Place::Close, _, _, Some(bound)) => format!("within {}", percent_up(bound)),
        // Samples that differ a hundred times say nothing of a ratio.
        (_, Some(low), Some(high), _) if high > low * KNOWN_WITHIN => "unknown".to_string(),
        (_, Some(low), Some(high), _) => {
            let (low, high) = times_interval(low, high);
            format!("{low}x to {high}x")
        }
        _ => "too few rounds".to_string(),
    }
}

/// The bound, with the share of it that was reached.
fn bound(cell: &CellJudgement) -> String {
    words::limit::text(&cell.limit).unwrap_or_else(|| MISSING.to_string())
}

/// A quantile of the latencies.
pub(super) fn quantile(cell: &CellJudgement, pick: impl Fn(&Latency) -> Option<u64>) -> TextCell {
    TextCell::number(cell.latency_ns.as_ref().and_then(pick), time)
}

/// The p99.9 latency.
pub(super) fn p999(cell: &CellJudgement) -> TextCell {
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
pub(super) fn longest(cell: &CellJudgement) -> TextCell {
    let text = |one: &Latency| TextCell::of(longest_of(one.max, one.operations), one.max as f64);
    cell.latency_ns.as_ref().map_or_else(TextCell::missing, text)
}

/// The longest of a number of durations.
fn longest_of(longest_ns: u64, durations: u64) -> String {
    format!("{} of {}", time(longest_ns), count(durations))
}
