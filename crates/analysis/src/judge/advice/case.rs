//! One comparison with its cells, and the claims that may be made about two of them.

use crate::judge::cell::{CellJudgement, Status};
use crate::judge::comparison::{Comparison, RatioToLeader};
use crate::judge::verdict::{FEWEST_ROUNDS, SMALLEST_DIFFERENCE, Verdict};

use super::given::{UNSTEADY, unsteady};

/// One comparison with its cells.
pub(super) struct Case<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Its cells, in the order of the plan.
    pub compared: Vec<&'a CellJudgement>,
    /// All cells of the run.
    pub cells: &'a [CellJudgement],
    /// The recommended method, if there is one.
    pub recommended: Option<&'a str>,
}

/// Comparison of the totals of two methods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Total {
    /// The first takes less: the ratio of the second's total to its own.
    Gains(f64),
    /// The first takes this many times as long.
    Costs(f64),
    /// Not distinguishable in these rounds.
    Indistinguishable,
}

impl<'a> Case<'a> {
    /// Ranked cells with figures.
    pub fn ranked(&self) -> impl Iterator<Item = &'a CellJudgement> + '_ {
        self.compared
            .iter()
            .copied()
            .filter(|cell| cell.status == Status::Ok && self.not_ranked(cell).is_none())
    }

    /// Reason that a cell is not ranked; `None` if it is.
    pub fn not_ranked(&self, cell: &CellJudgement) -> Option<&'a str> {
        let unranked = self.comparison.unranked.iter().find(|unranked| unranked.cell == cell.id);
        unranked.map(|unranked| unranked.reason.as_str())
    }

    /// Reason that a method has no figures to compare; `None` if it has them or was not asked for.
    pub fn missing(&self, method: &str) -> Option<String> {
        let cell = self.compared.iter().find(|cell| cell.method == method)?;
        let reason = self.not_ranked(cell).map(String::from).or_else(|| match cell.status {
            Status::Ok => None,
            _ => cell.reason.clone(),
        })?;
        Some(format!("{method} is not ranked: {reason}"))
    }

    /// Smallest difference that is reported, as a share.
    pub fn least(&self) -> f64 {
        self.comparison.noise.unwrap_or(0.0).max(SMALLEST_DIFFERENCE)
    }

    /// Reason that nothing can be said about the differences of methods; `None` if something can.
    pub fn silence(&self) -> Option<String> {
        match self.comparison.verdict {
            Verdict::NotComparable => Some(
                self.comparison
                    .reason
                    .clone()
                    .unwrap_or_else(|| "the data do not support a verdict".to_string()),
            ),
            _ => unsteady(self.comparison),
        }
    }

    /// True if the noise of the run leaves nothing to report.
    pub fn is_unsteady(&self) -> bool {
        self.comparison.noise.is_some_and(|noise| noise > UNSTEADY)
    }

    /// Compare the totals of two methods; `None` unless both are ranked on enough rounds.
    pub fn total(&self, method: &str, other: &str) -> Option<Total> {
        let leader = self.comparison.leader.as_deref()?;
        let behind = |method: &str| {
            let found = self.comparison.ratios.iter().find(|ratio| ratio.method == method);
            found.filter(|ratio| ratio.rounds >= FEWEST_ROUNDS)
        };
        let told = |ratio: &RatioToLeader, total: fn(f64) -> Total| {
            if ratio.distinguishable { total(ratio.ratio) } else { Total::Indistinguishable }
        };
        if method == leader {
            return Some(told(behind(other)?, Total::Gains));
        }
        if other == leader {
            return Some(told(behind(method)?, Total::Costs));
        }
        let (own, others) = (behind(method)?, behind(other)?);
        let gain = others.ratio / own.ratio;
        let apart = |ahead: Option<f64>, behind: Option<f64>| ahead.zip(behind).is_some_and(|(a, b)| a < b);
        Some(match gain {
            gain if gain > 1.0 + self.least() && apart(own.high, others.low) => Total::Gains(gain),
            gain if gain < 1.0 / (1.0 + self.least()) && apart(others.high, own.low) => {
                Total::Costs(1.0 / gain)
            }
            _ => Total::Indistinguishable,
        })
    }

    /// Ratio of the measured regions of `slow` and `fast`, without set-up and tear-down; `None` unless the intervals of
    /// both are separate and the ratio exceeds the noise.
    pub fn times_faster(&self, fast: &CellJudgement, slow: &CellJudgement) -> Option<f64> {
        let (fast, slow) = (fast.ns_per_op?, slow.ns_per_op?);
        let ratio = slow.median / fast.median;
        (ratio > 1.0 + self.least() && fast.high? < slow.low?).then_some(ratio)
    }
}
