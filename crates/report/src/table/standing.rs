//! How a cell stands in its comparison: its place, how far it is behind, what limited it, and why it has no place.

use std::collections::{HashMap, HashSet};

use pagewise_analysis::bound::AT_CEILING;
use pagewise_analysis::judged::{CellJudgement, Comparison, Status, worst};

use super::grid::{Column, View};
use crate::numbers::{MISSING, counted, percent, rate, time};

/// The heading of what limited a cell.
pub(super) const LIMITED_BY: &str = "limited by";

/// The method.
pub(super) const METHOD: Column = Column::words("method", 0, |_, cell| cell.method.clone());
/// Its place in words.
pub(super) const PLACE: Column = Column::words("place", 0, |view, cell| view.standings.place(cell));

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

/// How the cells of a comparison stand, to be looked up by many of them.
pub(super) struct Standings<'a> {
    winner: Option<&'a str>,
    leader: Option<&'a str>,
    near: HashSet<&'a str>,
    unclear: HashSet<&'a str>,
    /// The leader over a cell, by its id.
    behind: HashMap<&'a str, f64>,
    /// Why a cell is shown without a rank, by its id.
    unranked: HashMap<&'a str, &'a str>,
}

impl<'a> Standings<'a> {
    /// Those of a comparison.
    pub(super) fn of(comparison: &'a Comparison) -> Self {
        let unranked = comparison.unranked.iter();
        Self {
            winner: comparison.winner.as_deref(),
            leader: comparison.leader.as_deref(),
            near: comparison.near().into_iter().collect(),
            unclear: comparison.unclear().into_iter().collect(),
            behind: comparison.ratios.iter().map(|ratio| (ratio.cell.as_str(), ratio.ratio)).collect(),
            unranked: unranked.map(|cell| (cell.cell.as_str(), cell.reason.as_str())).collect(),
        }
    }

    /// Whether it is shown without a rank.
    pub(super) fn is_unranked(&self, cell: &CellJudgement) -> bool {
        self.unranked.contains_key(cell.id.as_str())
    }

    /// Whether it is ahead of the others.
    pub(super) fn leads(&self, cell: &CellJudgement) -> bool {
        self.leader == Some(cell.method.as_str())
    }

    /// How many times slower than the leader it is, within rounds.
    pub(super) fn behind(&self, cell: &CellJudgement) -> Option<f64> {
        self.behind.get(cell.id.as_str()).copied()
    }

    fn place(&self, cell: &CellJudgement) -> String {
        let method = cell.method.as_str();
        let word = match cell.status {
            Status::Unavailable => "unavailable",
            Status::Invalid => "invalid",
            Status::Ok if self.is_unranked(cell) => "not ranked",
            Status::Ok if self.winner == Some(method) => "best",
            Status::Ok if self.unclear.contains(method) => "unclear",
            Status::Ok if self.near.contains(method) => match self.near.len() {
                1 => "leads",
                _ => "tie",
            },
            Status::Ok => "",
        };
        word.to_string()
    }
}

/// How many times slower than the leader it is, within rounds.
pub(super) fn behind(View { standings, .. }: &View<'_>, cell: &CellJudgement) -> String {
    match standings.behind(cell) {
        Some(ratio) => format!("{}x", rate(ratio)),
        None if standings.leads(cell) => "1.00x".to_string(),
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
pub(super) fn note(standings: &Standings<'_>, cell: &CellJudgement) -> Option<String> {
    let reason = cell.reason.as_deref().unwrap_or("no reason is recorded");
    match cell.status {
        Status::Unavailable => Some(format!("unavailable: {reason}")),
        Status::Invalid => {
            let attempts = counted(cell.invalid_samples as u64, "attempt");
            Some(format!("invalid: no valid sample in {attempts}; {reason}"))
        }
        Status::Ok => {
            let unranked = standings.unranked.get(cell.id.as_str());
            let unranked = unranked.map(|reason| format!("not ranked: {reason}"));
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
