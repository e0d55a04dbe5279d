//! The position at which the order of two methods changes, by one fit over all spans.
//!
//! Between a span at which the one method is firmly faster and a larger one at which the other is,
//! the logarithm of their ratio falls from above 0 to below it. How it falls is not known: a cliff
//! is a step as often as a slope. The fit is therefore the falling sequence with the smallest sum
//! of squares, in which each point has the weight of its own error (isotonic regression by pooling
//! adjacent violators; Ayer et al. 1955). It pools neighbouring spans at which neither method is
//! clearly faster, and a large difference on one side of a step does not move the step.
//!
//! The interval is the inversion of the likelihood ratio test of a position: it holds every gap
//! between two spans at which the fit may be made to cross 0 without the sum of squares growing
//! beyond [`LARGEST_GROWTH`] (Banerjee and Wellner 2001). Its ends are measured spans, since
//! between two of them the data know nothing: a line through them would put a step where it is
//! not. If points scatter about the fit by more than their errors explain, a growth counts less by
//! that factor.

/// Largest growth of the sum of squares within an interval of
/// [`BOUND_LEVEL`](pagewise_analysis::judge::verdict::BOUND_LEVEL): the quantile of chi-squared
/// with one degree of freedom. For spans chosen beforehand 2.29 would do (Banerjee and Wellner
/// 2001); a search measures where it sees the change and ends when its interval is narrow, and by
/// simulation intervals of 2.29 miss up to a fifth of slow changes.
const LARGEST_GROWTH: f64 = 3.841;

/// Two methods at one span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitPoint {
    pub span: u64,
    /// Logarithm of the rate of the method that is faster at smaller spans over that of the other.
    pub log_ratio: f64,
    /// Half of its interval, of the coverage that the fit's has.
    pub reach: f64,
}

/// The fit of points with ascending spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The points at the ends of the interval.
    pub ends: (usize, usize),
    /// The span at which the fit crosses 0, straight between two points over the logarithm of the
    /// span.
    pub estimate: f64,
}

/// Neighbouring points with one value.
#[derive(Clone, Copy)]
struct Block {
    value: f64,
    weight: f64,
    points: usize,
}

impl Fit {
    /// `None` for fewer than two points.
    pub fn of(points: &[FitPoint]) -> Option<Self> {
        let sum = |gap: usize| {
            let (below, above) = points.split_at(gap);
            squares(below, |value| value.max(0.0)) + squares(above, |value| value.min(0.0))
        };
        let sums: Vec<(usize, f64)> = (1..points.len()).map(|gap| (gap, sum(gap))).collect();
        let (best, least) = sums.iter().copied().min_by(|left, right| left.1.total_cmp(&right.1))?;
        let freedom = points.len() - falling(points).len();
        // Reaches are longer than standard errors by the root of the largest growth, which is
        // therefore 1 here.
        let largest = (least * LARGEST_GROWTH / freedom.max(1) as f64).max(1.0);
        let mut kept = sums.iter().filter(|(_, sum)| sum - least <= largest).map(|(gap, _)| *gap);
        let first = kept.next()?;
        let (below, above) = points.split_at(best);
        let from = falling(below).last()?.value.max(0.0);
        let to = falling(above).first()?.value.min(0.0);
        let share = if from > to { from / (from - to) } else { 0.5 };
        let (low, high) = ((below.last()?.span as f64).ln(), (above.first()?.span as f64).ln());
        Some(Self {
            ends: (first - 1, kept.next_back().unwrap_or(first)),
            estimate: (low + (high - low) * share).exp(),
        })
    }
}

/// The falling sequence with the smallest weighted sum of squares.
fn falling(points: &[FitPoint]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for point in points {
        let mut block = Block { value: point.log_ratio, weight: point.reach.powi(-2), points: 1 };
        while let Some(before) = blocks.pop_if(|before| before.value <= block.value) {
            let weight = before.weight + block.weight;
            let value = (before.value * before.weight + block.value * block.weight) / weight;
            block = Block { value, weight, points: before.points + block.points };
        }
        blocks.push(block);
    }
    blocks
}

/// The weighted sum of squares about that sequence, each value of it held within a limit.
fn squares(points: &[FitPoint], hold: impl Fn(f64) -> f64) -> f64 {
    let blocks = falling(points).into_iter();
    let fitted = blocks.flat_map(|block| std::iter::repeat_n(hold(block.value), block.points));
    points.iter().zip(fitted).map(|(point, value)| ((point.log_ratio - value) / point.reach).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_analysis::judge::simulation::normal;
    use pagewise_model::random::Random;

    /// Points at spans of 1, 2, 3, ...
    fn points(log_ratios: &[f64], reach: f64) -> Vec<FitPoint> {
        let point = |(span, log_ratio): (u64, &f64)| FitPoint { span, log_ratio: *log_ratio, reach };
        (1..).zip(log_ratios).map(point).collect()
    }

    /// The spans at the ends of the interval.
    fn ends(log_ratios: &[f64], reach: f64) -> (u64, u64) {
        let points = points(log_ratios, reach);
        let (low, high) = Fit::of(&points).expect("two points").ends;
        (points[low].span, points[high].span)
    }

    #[test]
    fn a_step_stays_where_it_is_however_unequal_its_sides_are() {
        for after in [-0.2, -1.0, -10.0] {
            assert_eq!(ends(&[0.2, 0.2, after, after, after], 0.1), (2, 3));
            assert_eq!(ends(&[-after, -after, -0.2, -0.2, -0.2], 0.1), (2, 3));
        }
    }

    #[test]
    fn neighbours_that_are_unclear_by_themselves_are_clear_together() {
        assert_eq!(ends(&[1.0, 0.08, -1.0], 0.1), (1, 3));
        assert_eq!(ends(&[1.0, 0.08, 0.08, -1.0], 0.1), (2, 4), "two of 0.8 reaches are one of 1.1");
        assert_eq!(ends(&[1.0, 0.08, -0.08, -1.0], 0.1), (1, 4), "they cancel out");
    }

    #[test]
    fn points_that_contradict_the_fit_widen_the_interval() {
        assert_eq!(ends(&[1.0, 0.9, 0.15, -0.9, -1.0], 0.1), (3, 4));
        assert_eq!(ends(&[1.0, 0.7, 1.0, 0.15, -0.9, -1.0], 0.1), (3, 5));
    }

    #[test]
    fn the_estimate_is_where_the_fit_crosses_zero() {
        let estimate = |log_ratios: &[f64]| Fit::of(&points(log_ratios, 0.1)).expect("points").estimate;
        assert!((estimate(&[0.3, 0.2, -0.2]) - 6f64.sqrt()).abs() < 1e-9);
        assert!((estimate(&[0.3, -0.1]) - 2f64.powf(0.75)).abs() < 1e-9);
        assert!((estimate(&[0.3, 0.0, 0.0, -0.3]) - 2f64.sqrt()).abs() < 1.0);
        assert_eq!(Fit::of(&points(&[0.3], 0.1)), None);
    }

    /// With spans chosen beforehand, for steps, slopes and no difference at all around the
    /// position.
    #[test]
    fn the_interval_holds_the_place_as_often_as_it_says() {
        for slope in [0.0, 0.3, 1.0, 100.0] {
            let mut random = Random::new(5);
            let held = (0..1000)
                .filter(|_| {
                    let ratios: Vec<f64> = (0..10)
                        .map(|index| {
                            let side = 4.5 - f64::from(index);
                            let true_ratio = if index % 9 == 0 { 10.0 * side } else { slope * side };
                            true_ratio + normal(&mut random)
                        })
                        .collect();
                    let (low, high) = ends(&ratios, LARGEST_GROWTH.sqrt());
                    low <= 5 && high >= 6
                })
                .count();
            assert!(held >= 945, "{slope}: {held}");
        }
    }
}
