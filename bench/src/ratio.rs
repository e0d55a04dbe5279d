//! Ratios of paired rates, with an interval that assumes nothing about the distribution.

use std::fmt;

use pagewise_analysis::statistics::{median, median_interval};

/// Coverage of the intervals.
const LEVEL: f64 = 0.95;

/// The median of paired ratios and an interval that covers it with at least 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// Ends of the interval; `None` with fewer than six pairs.
    pub interval: Option<(f64, f64)>,
}

/// Logarithms of `left[i] / right[i]`.
pub fn log_ratios(left: &[f64], right: &[f64]) -> Vec<f64> {
    assert_eq!(left.len(), right.len(), "rates come in pairs");
    left.iter().zip(right).map(|(left, right)| (left / right).ln()).collect()
}

impl Ratio {
    /// Of `left[i] / right[i]`; `None` of nothing.
    pub fn of(left: &[f64], right: &[f64]) -> Option<Self> {
        Self::of_logs(&log_ratios(left, right))
    }

    /// Of ratios given by their logarithms; `None` of nothing.
    pub fn of_logs(logs: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(logs)?.exp(),
            interval: median_interval(logs, LEVEL).map(|interval| (interval.low.exp(), interval.high.exp())),
        })
    }

    /// Whether `value` lies within the interval.
    pub fn covers(&self, value: f64) -> bool {
        self.interval.is_some_and(|(low, high)| (low..=high).contains(&value))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.interval {
            Some((low, high)) => format!("{:.3} [{low:.3}, {high:.3}]", self.median),
            None => format!("{:.3} [too few]", self.median),
        };
        formatter.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_paired() {
        let right: Vec<f64> = (1..=9).map(f64::from).collect();
        let left: Vec<f64> = right.iter().map(|rate| rate * 2.0).collect();
        let ratio = Ratio::of(&left, &right).expect("pairs");
        assert_eq!(ratio.to_string(), "2.000 [2.000, 2.000]");
        assert_eq!(Ratio::of(&[1.0], &[2.0]).expect("one").to_string(), "0.500 [too few]");
        assert_eq!(Ratio::of(&[], &[]), None);
    }
}
