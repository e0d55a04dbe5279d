//! The rate at which operations are due, at moments that do not depend on how long each takes.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const SECOND_NS: u128 = 1_000_000_000;
/// Hundredths of the operations that are due: with fewer done in time, a rate is not kept.
const KEPT_HUNDREDTHS: u64 = 99;

/// Reads, records or updates per second, of all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct ScheduledRate(NonZeroU64);

impl ScheduledRate {
    /// The largest: one each nanosecond.
    const MAX: u64 = SECOND_NS as u64;

    /// So many per second; `None` of 0, and of more than one each nanosecond.
    pub fn new(per_second: u64) -> Option<Self> {
        NonZeroU64::new(per_second).filter(|rate| rate.get() <= Self::MAX).map(Self)
    }

    /// Reads, records or updates per second.
    pub const fn per_second(self) -> u64 {
        self.0.get()
    }
}

/// Operations per second: a whole number, with `k` in thousands, with `M` in millions; `None` of 0
/// and of other text.
pub(crate) fn per_second(text: &str) -> Option<u64> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let (number, factor) = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((number, "k")) => (number, 1000),
        Some((number, "M")) => (number, 1_000_000),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|rate| *rate > 0)
}

impl FromStr for ScheduledRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        per_second(text).and_then(Self::new).ok_or_else(|| {
            format!("invalid rate '{text}': write how many per second, as in 500, 20k or 1M; at most 1000M")
        })
    }
}

/// Exact: `20k/s`, `1234/s`. The printed text parses back to the same value.
impl fmt::Display for ScheduledRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per_second() {
            rate if rate.is_multiple_of(1000) => write!(formatter, "{}k/s", rate / 1000),
            rate => write!(formatter, "{rate}/s"),
        }
    }
}

/// The moments at which operations of a sample are due, in turn by one thread after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSchedule {
    /// Reads, records or updates per second.
    pub rate: ScheduledRate,
    /// Reads in an operation; 1 of records.
    pub reads_per_op: u32,
    /// Threads that take turns.
    pub threads: u32,
}

impl RateSchedule {
    /// Nanoseconds from the start to the moment at which operation `index` of a thread is due.
    pub fn due_ns(&self, thread: u32, index: u64) -> u64 {
        let turn = u128::from(index) * u128::from(self.threads) + u128::from(thread);
        let ns = turn * u128::from(self.reads_per_op) * SECOND_NS / u128::from(self.rate.per_second());
        ns.try_into().unwrap_or(u64::MAX)
    }

    /// Number of operations of a thread that are due before `ns` have passed.
    pub fn due_within(&self, thread: u32, ns: u64) -> u64 {
        let per_turn = u128::from(self.reads_per_op) * SECOND_NS;
        // Turn t is due before ns if and only if t * per_turn < ns * rate.
        let turns = (u128::from(ns) * u128::from(self.rate.per_second())).div_ceil(per_turn.max(1));
        let of_thread = turns.saturating_sub(u128::from(thread)).div_ceil(u128::from(self.threads.max(1)));
        of_thread.try_into().unwrap_or(u64::MAX)
    }

    /// Number of operations of all threads that are due before `ns` have passed.
    pub fn all_due_within(&self, ns: u64) -> u64 {
        (0..self.threads).fold(0, |sum, thread| sum.saturating_add(self.due_within(thread, ns)))
    }
}

/// True if so many of the operations that were due are enough to say that the rate was kept.
pub fn keeps(done: u64, due: u64) -> bool {
    u128::from(done) * 100 >= u128::from(due) * u128::from(KEPT_HUNDREDTHS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> Result<ScheduledRate, String> {
        text.parse()
    }

    #[test]
    fn rates_parse_and_print() {
        for (typed, printed) in
            [("20k/s", "20k/s"), ("20000", "20k/s"), ("1234/s", "1234/s"), ("1", "1/s"), ("2M", "2000k/s")]
        {
            assert_eq!(rate(typed).map(|rate| rate.to_string()).as_deref(), Ok(printed));
        }
        for text in ["0", "-1", "", "k", "2.5k", "20m", "1001M", "99999999999999999999k", "max"] {
            let error = rate(text).expect_err("no rate");
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
        assert!(serde_json::from_str::<ScheduledRate>("0").is_err());
    }

    #[test]
    fn threads_take_turns() {
        let schedule = RateSchedule { rate: rate("1000").expect("a rate"), reads_per_op: 2, threads: 2 };
        let due = |thread| [0, 1, 2].map(|index| schedule.due_ns(thread, index) / 1_000_000);
        assert_eq!((due(0), due(1)), ([0, 4, 8], [2, 6, 10]));
        assert_eq!([0, 1].map(|thread| schedule.due_within(thread, 8_000_000)), [2, 2]);
        assert_eq!([0, 1].map(|thread| schedule.due_within(thread, 8_000_001)), [3, 2]);
        assert_eq!(schedule.all_due_within(0), 0);
    }

    #[test]
    fn a_rate_is_kept_by_99_of_100() {
        assert!(keeps(99, 100) && keeps(0, 0) && keeps(u64::MAX, u64::MAX));
        assert!(!keeps(989, 1000));
    }

    proptest! {
        #[test]
        fn as_many_are_due_as_have_a_moment_before(
            per_second in 1u64..=1_000_000_000,
            reads_per_op in 1u32..100,
            threads in 1u32..9,
            thread in 0u32..8,
            ns in 0u64..100_000_000,
        ) {
            let rate = ScheduledRate::new(per_second).expect("within bounds");
            let schedule = RateSchedule { rate, reads_per_op, threads };
            let thread = thread % threads;
            let due = schedule.due_within(thread, ns);
            // A moment is rounded down to whole nanoseconds.
            prop_assert!(due == 0 || schedule.due_ns(thread, due - 1) < ns);
            prop_assert!(schedule.due_ns(thread, due) + 1 >= ns);
        }
    }
}
