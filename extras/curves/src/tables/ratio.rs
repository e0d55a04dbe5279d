//! Ratios paired by round, and their findings.

use pagewise_analysis::judge::verdict::{ClaimedTogether, Finding, Rates, SMALLEST_DIFFERENCE, decide};
use pagewise_analysis::statistics::paired_log_ratios;
use pagewise_model::format::factor;
use serde::Serialize;

/// One rate over another, paired by round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PairedRatio {
    /// The ratio: a trimmed mean.
    pub ratio: f64,
    /// Lower end of its interval; `None` with too few rounds.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Rounds that have both.
    pub rounds: usize,
    /// Finding.
    pub finding: Finding,
}

impl PairedRatio {
    /// Ratio of `rates` over `others`, with an interval longer by `inflation`; `None` if no round
    /// has both.
    pub fn of(rates: &Rates, others: &Rates, inflation: f64) -> Option<Self> {
        let log_ratios = paired_log_ratios(rates, others);
        let decision = decide(&log_ratios, SMALLEST_DIFFERENCE, inflation, ClaimedTogether::Alone);
        Some(Self {
            ratio: decision.log_ratio?.exp(),
            low: decision.interval.map(|ends| ends.low),
            high: decision.interval.map(|ends| ends.high),
            rounds: decision.rounds,
            finding: decision.finding,
        })
    }

    /// `1.62x [1.58, 1.66]`.
    pub fn shown(&self) -> String {
        factor(self.ratio, self.low.zip(self.high))
    }
}
