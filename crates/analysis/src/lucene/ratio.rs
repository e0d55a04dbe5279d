//! Ratios that are paired by round, and what they tell.

use serde::Serialize;

use crate::advice::times;
use crate::statistics::{median, median_interval, paired_log_ratios};
use crate::verdict::{CLAIM_LEVEL, FEWEST_ROUNDS, Rates, SMALLEST_DIFFERENCE};

/// What a ratio tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// It is above 1, beyond the noise.
    Higher,
    /// It is below 1, beyond the noise.
    Lower,
    /// These rounds cannot tell it from 1.
    NotToldApart,
    /// Rounds that have both are fewer than a claim needs.
    TooFewRounds,
    /// No control says how far a method is from itself in this run.
    NoiseUnknown,
}

/// The median over rounds of one rate over another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedRatio {
    /// Threads of the first.
    pub threads: u32,
    /// The median.
    pub ratio: f64,
    /// Lower end of its interval; `None` of too few rounds.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Rounds that have both.
    pub rounds: usize,
    /// What it tells.
    pub told: Told,
}

impl PairedRatio {
    /// Of `rates` over `others`, given the noise of the run; `None` where no round has both.
    pub(super) fn of(threads: u32, rates: &Rates, others: &Rates, noise: Option<f64>) -> Option<Self> {
        let log_ratios = paired_log_ratios(rates, others);
        let middle = median(&log_ratios)?;
        let interval = median_interval(&log_ratios, CLAIM_LEVEL);
        let told = match (interval, noise) {
            _ if log_ratios.len() < FEWEST_ROUNDS => Told::TooFewRounds,
            (None, _) => Told::TooFewRounds,
            (Some(_), None) => Told::NoiseUnknown,
            (Some(ends), Some(noise)) => {
                let threshold = noise.max(SMALLEST_DIFFERENCE).ln_1p();
                match (ends.low > 0.0 && middle > threshold, ends.high < 0.0 && middle < -threshold) {
                    (true, _) => Told::Higher,
                    (_, true) => Told::Lower,
                    _ => Told::NotToldApart,
                }
            }
        };
        Some(Self {
            threads,
            ratio: middle.exp(),
            low: interval.map(|ends| ends.low.exp()),
            high: interval.map(|ends| ends.high.exp()),
            rounds: log_ratios.len(),
            told,
        })
    }

    /// `1.62x [1.58, 1.66]`.
    pub fn in_words(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{}x [{}, {}]", digits(self.ratio), digits(low), digits(high)),
            _ => format!("{}x", digits(self.ratio)),
        }
    }
}

/// A ratio with three digits, however small.
fn digits(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 0.0995 => times(ratio),
        ratio if ratio >= 0.00995 => format!("{ratio:.3}"),
        ratio => format!("{ratio:.4}"),
    }
}
