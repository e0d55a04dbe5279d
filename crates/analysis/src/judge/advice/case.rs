//! One comparison with its cells, and the claims that may be made about two of them.

use pagewise_model::sample::Measurement;

use super::note::Lack;
use crate::judge::cell::{CellJudgement, Status};
use crate::judge::collected::SamplesById;
use crate::judge::comparison::Comparison;
use crate::judge::reasons::UnrankedReason;
use crate::judge::verdict::{ClaimedTogether, Decision, Finding, SMALLEST_DIFFERENCE, decide};
use crate::proof::measured::{region_ns, total_ns};
use crate::statistics::paired_log_ratios;

/// One comparison with its cells.
pub(super) struct Case<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Cells, in the order of the plan.
    pub compared: Vec<&'a CellJudgement>,
    /// All cells of the run.
    pub cells: &'a [CellJudgement],
    /// All samples of the run.
    pub samples: &'a SamplesById<'a>,
    /// The price of simplicity.
    pub price: f64,
    /// The recommended method, if there is one.
    pub recommended: Option<&'a str>,
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
    pub fn not_ranked(&self, cell: &CellJudgement) -> Option<&'a UnrankedReason> {
        let unranked = self.comparison.unranked.iter().find(|unranked| unranked.cell == cell.id);
        unranked.map(|unranked| &unranked.reason)
    }

    /// Reason that a method has no figures to compare; `None` if it has them or was not asked for.
    pub fn missing(&self, method: &str) -> Option<Lack> {
        let cell = self.compared.iter().find(|cell| cell.method == method)?;
        if let Some(reason) = self.not_ranked(cell) {
            return Some(Lack::NotRanked(method.to_string(), reason.clone()));
        }
        let reason = cell.reason.as_ref().filter(|_| cell.status != Status::Ok)?;
        Some(Lack::NoFigures(method.to_string(), Box::new(reason.clone())))
    }

    /// Log ratios of a figure of `left` over that of `right`, paired by round.
    pub fn paired(
        &self,
        left: &CellJudgement,
        right: &CellJudgement,
        figure: impl Fn(&Measurement) -> f64,
    ) -> Option<Vec<f64>> {
        let figures = |cell: &CellJudgement| Some(self.samples.get(cell.id.as_str())?.by_round(&figure));
        Some(paired_log_ratios(&figures(left)?, &figures(right)?))
    }

    fn decide(&self, log_ratios: &[f64]) -> Decision {
        decide(log_ratios, SMALLEST_DIFFERENCE, self.comparison.inflation, ClaimedTogether::Alone)
    }

    /// Ratio of the totals of `slow` and `fast`; `None` unless both are ranked on enough rounds and
    /// distinguishable.
    pub fn times_faster_in_total(&self, fast: &str, slow: &str) -> Option<f64> {
        let cell = |method: &str| self.ranked().find(|cell| cell.method == method);
        let log_ratios = self.paired(cell(slow)?, cell(fast)?, |measurement| total_ns(measurement) as f64)?;
        let decision = self.decide(&log_ratios);
        decision.log_ratio.filter(|_| decision.is_clear()).map(f64::exp)
    }

    /// Ratio of the measured regions of `slow` and `fast`, without set-up and tear-down; `None`
    /// unless they are distinguishable.
    pub fn times_faster(&self, fast: &CellJudgement, slow: &CellJudgement) -> Option<f64> {
        let log_ratios = self.paired(slow, fast, |measurement| region_ns(measurement) as f64)?;
        let decision = self.decide(&log_ratios);
        (decision.finding == Finding::Higher).then(|| decision.log_ratio.unwrap_or(0.0).exp())
    }
}
