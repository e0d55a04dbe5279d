//! How a cell stands in its comparison: its place, how far it is behind, what limited it, and why it has no place.

use pagewise_analysis::bound::AT_CEILING;
use pagewise_analysis::judged::{CellJudgement, Comparison, Status, worst};

use super::grid::{Column, View};
use crate::numbers::{MISSING, counted, percent, rate, time};

/// The heading of what limited a cell.
pub(super) const LIMITED_BY: &str = "limited by";

/// The method.
pub(super) const METHOD: Column = Column::words("method", 0, |_, cell| cell.method.clone());
/// Its place in words.
pub(super) const PLACE: Column = Column::words("place", 0, |view, cell| place(view.comparison, cell));

/// What limited it. Where the column is left out it stands below the table.
pub(super) const fn limit(spare: u32) -> Column {
    Column::words(LIMITED_BY, spare, |_, cell| bound(cell))
}

/// The heading of what a method does to everything else in its process.
pub(super) const STALL: &str = "stall p99 / max (idle p99)";

/// How late the latest kind of heartbeats came; only of runs with heartbeats. Where the column is left out it stands below
/// the table.
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

/// Whether it is shown without a rank.
pub(super) fn is_unranked(comparison: &Comparison, cell: &CellJudgement) -> bool {
    comparison.unranked.iter().any(|unranked| unranked.cell == cell.id)
}

fn place(comparison: &Comparison, cell: &CellJudgement) -> String {
    let word = match cell.status {
        Status::Unavailable => "unavailable",
        Status::Invalid => "invalid",
        Status::Ok if is_unranked(comparison, cell) => "not ranked",
        Status::Ok if comparison.winner.as_deref() == Some(cell.method.as_str()) => "best",
        Status::Ok if comparison.unclear().contains(&cell.method.as_str()) => "unclear",
        Status::Ok if comparison.near().contains(&cell.method.as_str()) => match comparison.near().len() {
            1 => "leads",
            _ => "tie",
        },
        Status::Ok => "",
    };
    word.to_string()
}

/// How many times slower than the leader it is, within rounds.
pub(super) fn behind(View { comparison, .. }: &View<'_>, cell: &CellJudgement) -> String {
    match comparison.ratios.iter().find(|ratio| ratio.cell == cell.id) {
        Some(ratio) => format!("{}x", rate(ratio.ratio)),
        None if comparison.leader.as_deref() == Some(cell.method.as_str()) => "1.00x".to_string(),
        None => MISSING.to_string(),
    }
}

/// The limit, with the share of it that was reached.
pub(super) fn bound(cell: &CellJudgement) -> String {
    match (cell.bound, cell.of_ceiling) {
        (Some(bound), Some(share)) if share >= AT_CEILING => format!("{}, at its ceiling", bound.name()),
        (Some(bound), Some(share)) => format!("{} {}", bound.name(), percent(share)),
        (Some(bound), None) => bound.name().to_string(),
        (None, _) => MISSING.to_string(),
    }
}

/// Why a cell has no place, no figures, or fewer samples.
pub(super) fn note(comparison: &Comparison, cell: &CellJudgement) -> Option<String> {
    let reason = cell.reason.as_deref().unwrap_or("no reason is recorded");
    match cell.status {
        Status::Unavailable => Some(format!("unavailable: {reason}")),
        Status::Invalid => {
            let attempts = counted(cell.invalid_samples as u64, "attempt");
            Some(format!("invalid: no valid sample in {attempts}; {reason}"))
        }
        Status::Ok => {
            let unranked = comparison.unranked.iter().find(|unranked| unranked.cell == cell.id);
            let unranked = unranked.map(|unranked| format!("not ranked: {}", unranked.reason));
            // Without invalid attempts a reason says what the machine refused.
            let failed = match cell.invalid_samples {
                0 => cell.reason.clone(),
                invalid => {
                    let attempts = cell.samples + invalid;
                    Some(format!("{invalid} of {attempts} attempts invalid; {reason}"))
                }
            };
            let parts: Vec<String> = unranked.into_iter().chain(failed).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
    }
}
