//! Two independent series: the difference of their means, with intervals that hold together.
//!
//! Runs of two sides share no rounds, so nothing cancels out: the scatter between runs of one side
//! is the only evidence of what a difference between the sides may be by chance. Each interval is
//! that of Welch's t, at a level that makes all of them hold together (Bonferroni). A variance of
//! few runs that lies below the median of the others' is steadied by it, as in `paired` of the
//! statistics; one above it stays. This was chosen by simulation with normal, heavy-tailed, skewed
//! and bimodal noise (bench/RESULTS.md).

use pagewise_analysis::statistics::{Interval, SHOWN_LEVEL, median};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest values on each side: with fewer, their scatter is not known.
pub const FEWEST_RUNS: usize = 3;
/// Degrees of freedom of the variance common to three or more differences.
const PRIOR_FREEDOM: f64 = 4.0;
/// Fewest differences with a variance in common.
const FEWEST_ALIKE: usize = 3;

/// The mean of `after` less that of `before`.
pub fn difference(before: &[f64], after: &[f64]) -> Option<f64> {
    Some(mean(after)? - mean(before)?)
}

/// The interval of each difference; `None` with fewer than [`FEWEST_RUNS`] values on a side.
pub fn intervals(pairs: &[(&[f64], &[f64])]) -> Vec<Option<Interval>> {
    let scatters: Vec<Option<Scatter>> =
        pairs.iter().map(|(before, after)| Scatter::of(before, after)).collect();
    let variances: Vec<f64> = scatters.iter().flatten().map(|scatter| scatter.variance).collect();
    let common = median(&variances).filter(|_| variances.len() >= FEWEST_ALIKE);
    let error = (1.0 - SHOWN_LEVEL) / variances.len().max(1) as f64;
    let interval = |scatter: Scatter, (before, after): &(&[f64], &[f64])| {
        let Scatter { variance, freedom } = scatter.steadied(common);
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let half = student.inverse_cdf(1.0 - error / 2.0) * variance.sqrt();
        let middle = difference(before, after)?;
        Some(Interval { low: middle - half, high: middle + half, coverage: SHOWN_LEVEL })
    };
    scatters.into_iter().zip(pairs).map(|(scatter, pair)| interval(scatter?, pair)).collect()
}

/// Variance of a difference of means, with its degrees of freedom.
#[derive(Clone, Copy)]
struct Scatter {
    variance: f64,
    freedom: f64,
}

impl Scatter {
    fn of(before: &[f64], after: &[f64]) -> Option<Self> {
        if before.len().min(after.len()) < FEWEST_RUNS {
            return None;
        }
        let (before, before_freedom) = variance_of_mean(before)?;
        let (after, after_freedom) = variance_of_mean(after)?;
        let variance = before + after;
        // Welch and Satterthwaite; of values that are all equal, the smaller of the two.
        let spread = before * before / before_freedom + after * after / after_freedom;
        let freedom =
            if spread > 0.0 { variance * variance / spread } else { before_freedom.min(after_freedom) };
        Some(Self { variance, freedom })
    }

    fn steadied(self, common: Option<f64>) -> Self {
        match common.filter(|common| self.variance < *common) {
            None => self,
            Some(common) => {
                let freedom = self.freedom + PRIOR_FREEDOM;
                let variance = (self.variance * self.freedom + common * PRIOR_FREEDOM) / freedom;
                Self { variance, freedom }
            }
        }
    }
}

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn variance_of_mean(values: &[f64]) -> Option<(f64, f64)> {
    let mean = mean(values)?;
    let freedom = values.len() as f64 - 1.0;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / freedom / values.len() as f64, freedom))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::random::Random;

    #[test]
    fn welchs_interval_is_that_of_a_worked_example() {
        // Snedecor and Cochran, *Statistical Methods*: equal variances and sizes give Student's t
        // with 2 (n - 1) degrees of freedom.
        let (before, after) = ([1.0, 2.0, 3.0], [3.0, 4.0, 5.0]);
        let interval = intervals(&[(&before, &after)])[0].expect("three of each");
        // t(0.975, 4) = 2.776; the variance of each mean is 1/3.
        let half = 2.776_445 * (2.0f64 / 3.0).sqrt();
        assert!((interval.low - (2.0 - half)).abs() < 1e-4 && (interval.high - (2.0 + half)).abs() < 1e-4);
        assert_eq!(intervals(&[(&before[..2], &after)]), [None]);
        let equal = intervals(&[(&[1.0; 3], &[1.5; 3])])[0].expect("three of each");
        assert_eq!((equal.low, equal.high), (0.5, 0.5));
    }

    #[test]
    fn all_intervals_hold_together_as_often_as_stated() {
        let mut random = Random::new(11);
        for (pairs, runs) in [(1, 3), (8, 3), (30, 5)] {
            let mut held = 0;
            for _ in 0..600 {
                let mut series = || -> Vec<f64> { (0..runs).map(|_| normal(&mut random)).collect() };
                let all: Vec<(Vec<f64>, Vec<f64>)> = (0..pairs).map(|_| (series(), series())).collect();
                let all: Vec<(&[f64], &[f64])> =
                    all.iter().map(|(before, after)| (&before[..], &after[..])).collect();
                let holds = |interval: Option<Interval>| {
                    interval.is_some_and(|ends| ends.low <= 0.0 && 0.0 <= ends.high)
                };
                held += u32::from(intervals(&all).into_iter().all(holds));
            }
            assert!(held >= 562, "{pairs} pairs of {runs} runs: {held} of 600");
        }
    }

    /// A sum of twelve, less its mean: a standard normal deviate for this purpose.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }
}
