//! Position of a cell in its comparison: its place, its ratio to the leader, and the reason that it
//! has no place.

use std::collections::HashMap;

use pagewise_analysis::judge::reasons::{CellReason, MainFailure, UnrankedReason};
use pagewise_analysis::judge::verdict::{Place, Verdict};
use pagewise_analysis::judge::{CellJudgement, Comparison, RatioToLeader, Status};

use pagewise_model::format::counted;

use crate::words::reasons;

/// Positions of the cells of a comparison, for lookup by cell.
pub struct Positions<'a> {
    /// Place of the leader as a word.
    leader_place: &'static str,
    leader: Option<&'a str>,
    /// Ratio of the leader to a cell, by the cell's id.
    ratios: HashMap<&'a str, &'a RatioToLeader>,
    /// Reason that a cell is shown without a rank, by its id.
    unranked: HashMap<&'a str, &'a UnrankedReason>,
}

impl<'a> Positions<'a> {
    /// Positions of the cells of a comparison.
    pub fn of(comparison: &'a Comparison) -> Self {
        let unranked = comparison.unranked.iter();
        Self {
            leader_place: leader_place(comparison),
            leader: comparison.leader.as_deref(),
            ratios: comparison.ratios.iter().map(|ratio| (ratio.cell.as_str(), ratio)).collect(),
            unranked: unranked.map(|cell| (cell.cell.as_str(), &cell.reason)).collect(),
        }
    }

    /// True if it is shown without a rank.
    pub fn is_unranked(&self, cell: &CellJudgement) -> bool {
        self.unranked.contains_key(cell.id.as_str())
    }

    /// True if it is ahead of the others.
    pub fn leads(&self, cell: &CellJudgement) -> bool {
        self.leader == Some(cell.method.as_str())
    }

    /// The leader compared with the cell.
    pub fn ratio(&self, cell: &CellJudgement) -> Option<&'a RatioToLeader> {
        self.ratios.get(cell.id.as_str()).copied()
    }

    /// Place of a cell as a word.
    pub fn place(&self, cell: &CellJudgement) -> String {
        let word = match cell.status {
            Status::Unavailable => "unavailable",
            Status::NotMeasured => "not measured",
            Status::Invalid => "invalid",
            Status::Ok if self.is_unranked(cell) => "not ranked",
            Status::Ok if self.leads(cell) => self.leader_place,
            Status::Ok => match self.ratio(cell).map(|ratio| ratio.place) {
                Some(Place::Tie) => "tie",
                Some(Place::Close) => "close",
                Some(Place::Open) => "open",
                Some(Place::Behind) => "behind",
                None => "not comparable",
            },
        };
        word.to_string()
    }
}

/// The place of the leader as a word. It is open where one with too few rounds may be ahead.
pub(crate) fn leader_place(comparison: &Comparison) -> &'static str {
    match comparison.verdict {
        Verdict::Best => "best",
        Verdict::Tie => "tie",
        _ if comparison.ahead_of_leader().is_some() => "open",
        _ => "ahead",
    }
}

/// The failure of a ranked cell, if it is all that its note has to say.
pub(crate) fn failure_alone<'a>(
    positions: &Positions<'_>,
    cell: &'a CellJudgement,
) -> Option<&'a MainFailure> {
    let is_ranked = cell.status == Status::Ok && !positions.is_unranked(cell) && cell.invalid_samples > 0;
    match cell.reason.as_ref().filter(|_| is_ranked)? {
        CellReason::Lacking { shortfall: None, failure, refused: None } => failure.as_ref(),
        _ => None,
    }
}

/// Reason that a cell has no place, no figures, or fewer samples.
pub(crate) fn note(positions: &Positions<'_>, cell: &CellJudgement) -> Option<String> {
    let reason = reasons::cell(cell.reason.as_ref());
    match cell.status {
        Status::Unavailable | Status::NotMeasured => Some(format!("{}: {reason}", cell.status.name())),
        Status::Invalid => {
            let attempts = counted(cell.invalid_samples as u64, "attempt");
            Some(format!("invalid: no valid sample in {attempts}; {reason}"))
        }
        Status::Ok => {
            let unranked = positions.unranked.get(cell.id.as_str()).map(|reason| reasons::unranked(reason));
            let is_known = |why: &String| unranked.as_ref() == Some(why);
            // Without invalid attempts, a reason is the machine's refusal.
            let failed = match cell.invalid_samples {
                0 => cell.reason.as_ref().map(reasons::of_cell),
                invalid => {
                    let attempts = cell.samples + invalid;
                    Some(format!("{invalid} of {attempts} attempts invalid; {reason}"))
                }
            };
            let failed = failed.filter(|why| !is_known(why));
            let unranked = unranked.map(|reason| format!("not ranked: {reason}"));
            let parts: Vec<String> = unranked.into_iter().chain(failed).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
    }
}
