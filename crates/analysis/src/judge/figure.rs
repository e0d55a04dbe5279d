//! A figure over the rounds of a cell: its median, with an interval.

use serde::Serialize;

use crate::statistics::{SHOWN_LEVEL, median, median_interval};

/// A median over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MedianInterval {
    /// The median.
    pub median: f64,
    /// Lower end of an interval that covers it with at least 95 %; `None` with fewer than six samples.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl MedianInterval {
    /// `None` if `values` is empty.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let interval = median_interval(values, SHOWN_LEVEL);
        Some(Self {
            median: median(values)?,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        })
    }

    /// `12.3k [12.1k, 12.6k]`, with each number formatted by `form`.
    pub fn told(&self, form: impl Fn(f64) -> String) -> String {
        let middle = form(self.median);
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{middle} [{}, {}]", form(low), form(high)),
            _ => middle,
        }
    }

    /// The same in another unit, `factor` times as many.
    pub fn times(self, factor: f64) -> Self {
        let scaled = |value: Option<f64>| value.map(|value| value * factor);
        Self { median: self.median * factor, low: scaled(self.low), high: scaled(self.high) }
    }
}
