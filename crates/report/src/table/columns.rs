//! Columns that all tables have: method, place, distance to the leader, bound, and stalls.

use pagewise_analysis::judge::bound::AT_CEILING;
use pagewise_analysis::judge::{CellJudgement, worst};

use super::grid::{Column, ComparisonView};
use pagewise_model::format::{MISSING, percent, rate, time};

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

/// Delays of the latest kind of heartbeats; only for runs with heartbeats. If the column is left out, they are shown
/// below the table.
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

/// Ratio of the leader's rate to the cell's, within rounds.
pub(super) fn vs_best(ComparisonView { standings, .. }: &ComparisonView<'_>, cell: &CellJudgement) -> String {
    match standings.vs_best(cell) {
        Some(ratio) => format!("{}x", rate(ratio)),
        None if standings.leads(cell) => "1.00x".to_string(),
        None => MISSING.to_string(),
    }
}

/// The bound, with the share of it that was reached.
pub(super) fn bound(cell: &CellJudgement) -> String {
    match (cell.bound, cell.of_ceiling) {
        (Some(bound), Some(share)) if share >= AT_CEILING => format!("{}, at its ceiling", bound.name()),
        (Some(bound), Some(share)) => format!("{} {}", bound.name(), percent(share)),
        (Some(bound), None) => bound.name().to_string(),
        (None, _) => MISSING.to_string(),
    }
}
