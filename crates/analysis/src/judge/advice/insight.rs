//! The meaning of a result beyond the choice of a method.

use crate::judge::cell::CellJudgement;
use crate::statistics::Extent;

/// The meaning of a result beyond the choice.
#[derive(Clone, Debug, PartialEq)]
pub enum Insight {
    /// The remaining potential of a cold scan.
    Stream {
        /// The plain stream.
        method: String,
        /// The share of the device's bandwidth that it reaches.
        share: Extent,
        /// The gain of another method.
        gain: StreamGain,
    },
    /// The gain from prefaulting a fill, and the cost that it moves into set-up.
    Prefault {
        /// The mapping without options.
        plain: FillFigures,
        /// The method that prefaults.
        prefaulted: FillFigures,
        /// Factor by which the fill is faster; `None` if the two are not distinguishable.
        faster: Option<f64>,
        /// In total it is so many times as fast; `None` as above.
        in_total: Option<f64>,
        /// A method that hides the faults of a steady writer.
        steady: Option<FillFigures>,
    },
}

/// The gain of the leader over a plain stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamGain {
    /// The leader is so many times as fast.
    Known(String, Extent),
    /// The stream is at most this share slower than the leader, if it is.
    AtMost(String, f64),
    /// Too few rounds compare it with the leader.
    FewRounds(String),
    /// No method is faster; true if the share of the device leaves something to gain.
    Nothing(bool),
}

/// Figures of a fill, in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct FillFigures {
    /// The method.
    pub method: String,
    /// Set-up before the fill.
    pub setup_ns: Option<u64>,
    /// The fill.
    pub fill_ns: u64,
    /// All of it.
    pub total_ns: Option<u64>,
    /// 999 of 1,000 blocks took at most this long.
    pub p999_ns: Option<u64>,
}

impl FillFigures {
    pub(super) fn of(cell: &CellJudgement) -> Self {
        Self {
            method: cell.method.clone(),
            setup_ns: cell.prepared_ns(),
            fill_ns: cell.measured_ns.unwrap_or(0),
            total_ns: cell.total_ns,
            p999_ns: cell.latency_ns.as_ref().and_then(|latency| latency.p999),
        }
    }
}
