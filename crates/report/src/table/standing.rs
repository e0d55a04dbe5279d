//! Position of a cell in its comparison: its place, its ratio to the leader, and the reason that it has no place.

use std::collections::{HashMap, HashSet};

use pagewise_analysis::judge::{CellJudgement, Comparison, Status};

use pagewise_model::format::counted;

/// Positions of the cells of a comparison, for lookup by cell.
pub(super) struct Standings<'a> {
    winner: Option<&'a str>,
    leader: Option<&'a str>,
    near: HashSet<&'a str>,
    unclear: HashSet<&'a str>,
    /// Ratio of the leader to a cell, by the cell's id.
    behind: HashMap<&'a str, f64>,
    /// Reason that a cell is shown without a rank, by its id.
    unranked: HashMap<&'a str, &'a str>,
}

impl<'a> Standings<'a> {
    /// Positions of the cells of a comparison.
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

    /// True if it is shown without a rank.
    pub(super) fn is_unranked(&self, cell: &CellJudgement) -> bool {
        self.unranked.contains_key(cell.id.as_str())
    }

    /// True if it is ahead of the others.
    pub(super) fn leads(&self, cell: &CellJudgement) -> bool {
        self.leader == Some(cell.method.as_str())
    }

    /// Ratio of the leader's rate to the cell's, within rounds.
    pub(super) fn vs_best(&self, cell: &CellJudgement) -> Option<f64> {
        self.behind.get(cell.id.as_str()).copied()
    }

    /// Its place as a word.
    pub(super) fn place(&self, cell: &CellJudgement) -> String {
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

/// Reason that a cell has no place, no figures, or fewer samples.
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
            // Without invalid attempts, a reason is the machine's refusal.
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
