//! A figure over the rounds of a cell: its kind, and its median with an interval.

use pagewise_model::{CacheState, Conditions};
use serde::Serialize;

use crate::statistics::{SHOWN_LEVEL, median, median_interval};

/// The kind of figure that methods are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Reads per second.
    ReadsPerSecond,
    /// Records or blocks per second.
    RecordsPerSecond,
    /// Nanoseconds until a cold start is warm.
    TimeToWarm,
    /// Nanoseconds of one-shot work: set-up, measured region and tear-down.
    TimeInTotal,
    /// Nanoseconds from the moment at which an operation is due to its end: the mean of the fastest
    /// 95 %.
    UsualLatency,
}

impl FigureKind {
    /// Of cells under these conditions.
    pub fn of(conditions: &Conditions) -> Self {
        match conditions.cache {
            CacheState::ColdStart => Self::TimeToWarm,
            _ if conditions.rate.is_some() => Self::UsualLatency,
            _ if conditions.is_one_shot() => Self::TimeInTotal,
            _ if conditions.writes().is_some() => Self::RecordsPerSecond,
            _ => Self::ReadsPerSecond,
        }
    }

    /// True if less is better.
    pub fn is_time(self) -> bool {
        matches!(self, Self::TimeToWarm | Self::TimeInTotal | Self::UsualLatency)
    }
}

/// A median over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MedianInterval {
    /// The median.
    pub median: f64,
    /// Lower end of an interval that covers it with at least 95 %; `None` with fewer than six
    /// samples.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl MedianInterval {
    /// `None` if `values` is empty.
    pub fn of(values: &[f64]) -> Option<Self> {
        let interval = median_interval(values, SHOWN_LEVEL);
        Some(Self {
            median: median(values)?,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        })
    }

    /// The figure in another unit, `factor` times as many.
    pub fn times(self, factor: f64) -> Self {
        let scaled = |value: Option<f64>| value.map(|value| value * factor);
        Self { median: self.median * factor, low: scaled(self.low), high: scaled(self.high) }
    }
}
