//! Medians, quantiles and an interval of the median that assumes nothing about the distribution.
//!
//! Benchmark samples are skewed, have outliers and are few. The interval is therefore read off
//! order statistics: of n independent samples the number below the true median is binomial with p =
//! 1/2, so the k-th smallest and the k-th largest enclose it with probability
//!
//! ```text
//! 1 - 2 P(B <= k - 1),   B ~ Binomial(n, 1/2)
//! ```
//!
//! (David and Nagaraja, *Order Statistics*, 3rd edition, section 7.1). It is exact for every
//! continuous distribution and conservative for others. Few samples do not support a high level:
//! five give at most 93.75 %, six 96.9 %, seven 98.4 %.

pub mod lasting;
pub mod paired;
pub mod share;

use serde::Serialize;

/// The median of `values`, the mean of the middle two if their number is even; `None` if empty.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The median of values that may be reordered, which is quicker for those who need it often.
pub(crate) fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    let is_even = values.len().is_multiple_of(2);
    let (_, below, rest) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let below = *below;
    let above = if is_even { rest.iter().copied().min_by(f64::total_cmp)? } else { below };
    // As in `quantile`, so that the two agree to the last digit.
    Some(if below == above { below } else { below + (above - below) * 0.5 })
}

/// The quantile `share` (0 to 1) with linear interpolation between order statistics: definition 7
/// of Hyndman and Fan, "Sample quantiles in statistical packages" (1996). `None` if empty.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(values);
    let position = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    // Equal neighbours are returned unchanged, because rounding must not break monotony.
    Some(if below == above { below } else { below + (above - below) * position.fract() })
}

/// The sum of counts, saturating.
pub fn total<'a>(counts: impl IntoIterator<Item = &'a u64>) -> u64 {
    counts.into_iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// The median of counts, rounded down if two middle ones are averaged.
pub fn median_count(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(lower + (upper - lower) / 2)
}

/// Two order statistics that enclose the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability that such an interval encloses the true median.
    pub coverage: f64,
}

impl Interval {
    /// Of a ratio, from that of its logarithm.
    pub fn as_ratios(self) -> Self {
        Self { low: self.low.exp(), high: self.high.exp(), ..self }
    }
}

/// The narrowest interval from a k-th smallest to a k-th largest value whose coverage is at least
/// `level`; `None` if even the smallest and the largest do not reach it.
pub fn median_interval(values: &[f64], level: f64) -> Option<Interval> {
    let (rank, coverage) = interval_rank(values.len(), level)?;
    let sorted = sorted(values);
    Some(Interval { low: sorted[rank - 1], high: sorted[sorted.len() - rank], coverage })
}

/// Coverage of the intervals that are shown.
pub const SHOWN_LEVEL: f64 = 0.95;

/// A median with the ends of an interval that is known for any number of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Extent {
    /// The lower end of an interval that covers the median with at least 95 %; with fewer than six
    /// values, which carry no such interval, the smallest.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The upper end, or the largest.
    pub high: f64,
}

impl Extent {
    /// `None` if `values` is empty.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let interval = median_interval(values, SHOWN_LEVEL);
        let (low, high) = match interval {
            Some(interval) => (interval.low, interval.high),
            None => (quantile(values, 0.0)?, quantile(values, 1.0)?),
        };
        Some(Self { low, median, high })
    }

    /// A figure that is known exactly.
    #[cfg(test)]
    pub(crate) const fn exactly(value: f64) -> Self {
        Self { low: value, median: value, high: value }
    }
}

/// The largest k for which the k-th smallest and largest of `count` samples cover the median with
/// at least `level`, and the coverage they have.
pub fn interval_rank(count: usize, level: f64) -> Option<(usize, f64)> {
    let mut best = None;
    // P(B = i), carried as a logarithm since 2^-n leaves the range of f64 at n = 1075.
    let mut log_probability = -(count as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    for rank in 1..=count / 2 {
        below += log_probability.exp();
        let coverage = 1.0 - 2.0 * below;
        if coverage < level {
            break;
        }
        best = Some((rank, coverage));
        log_probability += ((count - rank + 1) as f64 / rank as f64).ln();
    }
    best
}

/// A figure of each round that has one, in the order of rounds. Its memory depends on their number,
/// not on the numbering of the rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRound(Vec<(u32, f64)>);

impl ByRound {
    /// Figures of consecutive rounds from round 0.
    pub fn of_each(figures: &[Option<f64>]) -> Self {
        (0..).zip(figures).filter_map(|(round, figure)| Some((round, (*figure)?))).collect()
    }

    /// Each round with its figure.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.0.iter().copied()
    }

    /// The figures.
    pub fn values(&self) -> Vec<f64> {
        self.0.iter().map(|(_, figure)| *figure).collect()
    }

    /// Number of rounds with a figure.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Keep the figures of the rounds that count.
    pub fn within(mut self, counts: impl Fn(u32) -> bool) -> Self {
        self.0.retain(|(round, _)| counts(*round));
        self
    }
}

/// Each round occurs once.
impl FromIterator<(u32, f64)> for ByRound {
    fn from_iter<T: IntoIterator<Item = (u32, f64)>>(figures: T) -> Self {
        let mut figures: Vec<(u32, f64)> = figures.into_iter().collect();
        figures.sort_by_key(|(round, _)| *round);
        Self(figures)
    }
}

/// Logarithms of `left / right` over the rounds in which both have a value above 0. Effects on a
/// whole round, such as a drifting clock frequency, cancel out.
pub fn paired_log_ratios(left: &ByRound, right: &ByRound) -> Vec<f64> {
    paired(left, right).map(|(one, other)| (one / other).ln()).filter(|ratio| ratio.is_finite()).collect()
}

/// Values of `left - right` over the rounds in which both have one.
pub fn paired_differences(left: &ByRound, right: &ByRound) -> Vec<f64> {
    paired(left, right).map(|(one, other)| one - other).collect()
}

/// The values of the rounds in which both have one.
fn paired(left: &ByRound, right: &ByRound) -> impl Iterator<Item = (f64, f64)> {
    let mut others = right.0.iter().peekable();
    left.0.iter().filter_map(move |(round, figure)| {
        while others.next_if(|(other, _)| other < round).is_some() {}
        let (_, other) = others.next_if(|(other, _)| other == round)?;
        Some((*figure, *other))
    })
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::random::Random;
    use proptest::prelude::*;

    #[test]
    fn few_samples_carry_no_high_level() {
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95), None);
        let six = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).expect("six are enough");
        assert_eq!((six.low, six.high, six.coverage), (1.0, 6.0, 0.96875));
        assert_eq!(interval_rank(7, 0.98), Some((1, 0.984375)));
        assert_eq!(median_interval(&[], 0.5), None);
    }

    #[test]
    fn ranks_are_those_of_published_tables() {
        // Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, sign test: n = 11, 20,
        // 31.
        for (count, level, rank) in [(11, 0.98, 2), (20, 0.95, 6), (31, 0.95, 10), (31, 0.98, 9)] {
            assert_eq!(interval_rank(count, level).map(|(rank, _)| rank), Some(rank), "n = {count}");
        }
        let (rank, coverage) = interval_rank(5000, 0.95).expect("many are enough");
        assert!((2400..2500).contains(&rank) && (0.95..0.96).contains(&coverage));
    }

    #[test]
    fn coverage_is_as_stated() {
        let mut random = Random::new(5);
        for (count, level) in [(7, 0.95), (11, 0.98), (31, 0.95)] {
            let mut enclosed = 0;
            let mut stated = 0.0;
            for _ in 0..4000 {
                // An exponential has a long tail; its median is ln 2.
                let values: Vec<f64> = (0..count).map(|_| -(1.0 - random.unit()).ln()).collect();
                let interval = median_interval(&values, level).expect("enough");
                enclosed += u32::from((interval.low..=interval.high).contains(&std::f64::consts::LN_2));
                stated = interval.coverage;
            }
            let found = f64::from(enclosed) / 4000.0;
            assert!((found - stated).abs() < 0.012, "n = {count}: {found} against {stated}");
        }
    }

    #[test]
    fn medians_of_counts_keep_to_integers() {
        assert_eq!(median_count(&[]), None);
        assert_eq!(median_count(&[5, 1, 9]), Some(5));
        assert_eq!(median_count(&[u64::MAX, u64::MAX - 4]), Some(u64::MAX - 2));
    }

    #[test]
    fn a_ratio_needs_both_of_its_round() {
        let left = ByRound::of_each(&[Some(2.0), None, Some(3.0)]);
        let right = ByRound::of_each(&[Some(1.0), Some(1.0), None]);
        assert_eq!(paired_log_ratios(&left, &right), [2f64.ln()]);
        let far: ByRound = [(u32::MAX, 6.0), (2, 1.0)].into_iter().collect();
        let near: ByRound = [(1, 9.0), (2, 3.0), (7, 9.0), (u32::MAX, 2.0)].into_iter().collect();
        assert_eq!(paired_log_ratios(&far, &near), [(1.0 / 3.0f64).ln(), 3f64.ln()]);
        assert_eq!((far.count(), near.within(|round| round > 2).values()), (2, vec![9.0, 2.0]));
    }

    proptest! {
        #[test]
        fn a_median_is_the_same_in_place(values in prop::collection::vec(-1e9f64..1e9, 0..60)) {
            prop_assert_eq!(median_in_place(&mut values.clone()), median(&values));
        }

        #[test]
        fn quantiles_are_monotone_and_within(
            values in prop::collection::vec(-1e9f64..1e9, 1..60), left in 0f64..=1.0, right in 0f64..=1.0,
        ) {
            let (lower, upper) = (left.min(right), left.max(right));
            let (low, high) = (quantile(&values, lower), quantile(&values, upper));
            prop_assert!(low <= high);
            prop_assert!(quantile(&values, 0.0) <= low && high <= quantile(&values, 1.0));
        }

        #[test]
        fn an_interval_holds_the_median(
            values in prop::collection::vec(-1e9f64..1e9, 6..80), level in 0.5f64..0.96,
        ) {
            let interval = median_interval(&values, level).expect("six carry 96.9 %");
            let median = median(&values).expect("not empty");
            prop_assert!(interval.low <= median && median <= interval.high);
            prop_assert!(interval.coverage >= level);
        }

        #[test]
        fn a_higher_level_is_never_narrower(values in prop::collection::vec(-1e3f64..1e3, 8..80)) {
            let (narrow, wide) = (median_interval(&values, 0.8), median_interval(&values, 0.98));
            let (narrow, wide) = (narrow.expect("eight"), wide.expect("eight"));
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }
    }
}
