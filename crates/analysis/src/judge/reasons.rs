//! Reasons that something is not shown or not claimed, with their figures. The report makes a
//! sentence of each.

use pagewise_model::{CacheState, Conditions, FailureKind};

/// Reason that samples are valid and have no ranked figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Shortfall {
    /// The method cannot keep the rate.
    RateMissed {
        /// Reads, records or updates per second of the samples that missed it, as a median.
        done_per_second: f64,
        /// The rate with its unit, as labels name it.
        asked: String,
        /// Samples that missed it.
        missed: usize,
        /// Valid samples.
        valid: usize,
    },
    /// The sample of a cold file had to end after so few operations that they do not show whether
    /// it keeps the rate.
    CutShort {
        /// Operations of such a sample, as a median.
        operations: f64,
    },
    /// The method did not complete its work within the time limit of a sample.
    NotCovered {
        /// Operations that were completed, as a median.
        operations: f64,
        /// All of them.
        of: f64,
        /// True if the work is a ring, and not a file.
        is_ring: bool,
        /// Time of its part, as a median.
        measured_ns: f64,
    },
    /// A cold start that did not become warm.
    NotWarm,
}

/// Reason that a method is shown but not ranked.
#[derive(Clone, Debug, PartialEq)]
pub enum UnrankedReason {
    /// The machine does not support it, in the words of the machine or the worker.
    Unavailable(String),
    /// The method touches words of a mapping in place, which is not reading it.
    TouchedInPlace,
    /// The method has several reads in flight, where each depends on the one before it: a
    /// bound.
    Independent,
    /// Set-up read the whole span.
    ReadInSetUp,
    /// The method bypasses the page cache, so nothing becomes warm.
    BypassesCache,
    /// None of its valid samples has a figure.
    WithoutFigure(Shortfall),
    /// None of its samples is valid.
    NoValidSample,
    /// Too few of its rounds can be compared.
    Unpaired {
        /// The rounds that it has.
        rounds: Unpaired,
        /// Valid samples besides those rounds that have no figure.
        besides: Option<(Shortfall, usize)>,
    },
}

/// Rounds of a method that is not ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpaired {
    /// Fewer than a verdict needs.
    Few {
        /// Rounds with a valid sample, apart from return rounds.
        valid: usize,
        /// Return rounds with one.
        returned: usize,
    },
    /// None that the leader has, too.
    WithoutLeader,
}

/// Reason that a comparison has no verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum NoVerdict {
    /// No method was measured.
    NoMethod,
    /// There is only one method.
    OneMethod,
    /// Only one method has enough valid rounds.
    OneHasRounds,
    /// No method has enough valid rounds.
    NoneHasRounds,
    /// No round has valid samples of two methods.
    NoCommonRound,
    /// Only this one of the methods could be ranked.
    OneRanked(String),
    /// No method keeps the rate.
    NoneKeepsRate,
    /// The page cache changed from round to round.
    CacheChanged {
        /// The smallest share of the span in the page cache before a sample.
        low: f64,
        /// The largest.
        high: f64,
        /// Rounds in which it was as in the last one.
        alike: usize,
        /// All rounds.
        rounds: usize,
    },
    /// The state of the page cache before the samples is unknown.
    CacheUnknown,
}

/// Reason that a cell has no figures, or that some of its samples are missing.
#[derive(Clone, Debug, PartialEq)]
pub enum CellReason {
    /// The machine does not support it, in the words of the machine or the worker.
    Unavailable(String),
    /// The run ended before it had a sample.
    NotSampled,
    /// No sample is valid, for no reason that is recorded.
    NoValidSample,
    /// Samples of the cell lack one of these at least.
    Lacking {
        /// Reason that no valid sample has a figure.
        shortfall: Option<Shortfall>,
        /// The failure that says most.
        failure: Option<MainFailure>,
        /// Attempts that the machine refused.
        refused: Option<RefusedAttempts>,
    },
}

/// The failure of a cell that says most.
#[derive(Clone, Debug, PartialEq)]
pub struct MainFailure {
    /// The check.
    pub kind: FailureKind,
    /// The finding of that check.
    pub detail: String,
    /// The last output of a worker that ended.
    pub stderr_tail: Option<String>,
}

/// Attempts of a cell that the machine refused while it supported others.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedAttempts {
    /// Number of refused attempts.
    pub count: usize,
    /// Attempts that failed a check or broke.
    pub invalid: usize,
    /// All attempts.
    pub attempts: usize,
    /// The last reason, in the words of the machine or the worker.
    pub reason: String,
}

/// Reason that latencies or stalls are withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// A cap limits the rate of the device, and slows no request.
    Capped,
    /// A replay keeps the gaps between its reads.
    KeepsGaps,
    /// A cold start is reported as rates over time.
    ColdStart,
}

impl Withheld {
    /// Of cells under these conditions; `None` if latencies and stalls are reported.
    pub fn of(conditions: &Conditions) -> Option<Self> {
        if conditions.host_settings.device_cap.is_some() {
            return Some(Self::Capped);
        }
        if conditions.keeps_gaps() {
            return Some(Self::KeepsGaps);
        }
        (conditions.cache == CacheState::ColdStart).then_some(Self::ColdStart)
    }
}

/// Reason that samples under some conditions say nothing of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswerable {
    /// Latencies are withheld.
    Latency(Withheld),
    /// The rate is a part of the conditions.
    RateIsSet,
    /// Nothing is written.
    NothingWritten,
    /// The actor writes to the device, too.
    ActorWrites,
    /// No sync is in the measured region.
    NoSync,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::honest;

    #[test]
    fn a_cap_is_no_slow_device() {
        let of = |cache| Withheld::of(&honest::cell("jvm/mmap", cache).conditions);
        assert_eq!([of(CacheState::Warm), of(CacheState::ColdStart)], [None, Some(Withheld::ColdStart)]);
        let capped = honest::set("jvm/mmap", CacheState::Cold).conditions;
        assert_eq!(Withheld::of(&capped), Some(Withheld::Capped));
    }
}
