//! The most that was reached of a resource.

use serde::Serialize;

use crate::statistics::Extent;

/// A maximum that exceeds those of the cells that were made to find it by more is not shown to be
/// one: it may do more.
const FOUND: f64 = 0.75;

/// The most that was reached of a resource, in requests or bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Top<'a> {
    /// The highest lower end: that much was reached for certain.
    pub low: f64,
    /// The method that reached it.
    pub reached_by: &'a str,
    /// The highest median.
    pub median: f64,
    /// True if a cell that was made to find the maximum came near it.
    pub is_found: bool,
}

impl<'a> Top<'a> {
    pub(super) fn of(rate: Extent, reached_by: &'a str) -> Self {
        Self { low: rate.low, reached_by, median: rate.median, is_found: true }
    }

    /// The highest of the maxima that were `found` and of what else was `reached`.
    pub(super) fn highest(found: Option<Self>, reached: impl Iterator<Item = Top<'a>>) -> Option<Self> {
        let found = found.filter(|top| top.low > 0.0)?;
        let top = best(reached.chain([found]))?;
        Some(Self { is_found: found.median >= top.median * FOUND, ..top })
    }

    /// The share of it: at most all, since every cell that used the resource was counted.
    pub(super) fn share(&self, rate: Extent) -> Extent {
        Extent {
            low: (rate.low / self.median).min(1.0),
            median: (rate.median / self.median).min(1.0),
            high: (rate.high / self.low).min(1.0),
        }
    }

    /// So many times as much.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, median: self.median * factor, ..self }
    }
}

/// The highest of maxima.
pub(super) fn best<'a>(tops: impl Iterator<Item = Top<'a>>) -> Option<Top<'a>> {
    tops.reduce(|top, other| Top {
        median: top.median.max(other.median),
        ..if other.low > top.low { other } else { top }
    })
}

/// Serialize the lower end of a rate.
pub(super) fn lower_end<S: serde::Serializer>(extent: &Extent, serializer: S) -> Result<S::Ok, S::Error> {
    extent.low.serialize(serializer)
}
