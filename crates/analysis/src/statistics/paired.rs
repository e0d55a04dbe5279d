//! The test of paired log ratios: is a rate higher than others, by how much, and with which
//! certainty.
//!
//! `D` are the logarithms of one rate over another, round by round. The test asks whether their
//! centre exceeds a shift; the interval of the ratio is the inversion of the same test, so that the
//! two never contradict each other.
//!
//! From 14 rounds on it is a sign-flip test of clipped values,
//!
//! ```text
//! T = sum psi(D) / sqrt(sum psi(D)^2),   psi(x) = x held within +-0.7 x median |D|
//! ```
//!
//! with the normal quantile. It needs nothing but symmetry of `D` about its centre, which two
//! methods with equal noise have, whatever that noise is: if signs are exchangeable, `T` is a
//! self-normalised sum (Efron 1969, Pinelis 2012), and clipping keeps single rounds from deciding
//! it (Huber 1964).
//!
//! With fewer rounds there are too few signs, and so there are for a level that even equal signs of
//! all rounds hardly reach (`T` is at most the root of their number). Then it is Student's t of the
//! trimmed mean with its winsorised variance (Yuen 1974). A variance of few rounds that lies below
//! that of the other rivals is steadied by their median, as if that had been seen with further
//! degrees of freedom (Smyth 2004); one above it stays, since rivals may differ in noise. This part
//! rests on simulation ([`crate::judge::simulation`]).
//!
//! Disturbances that outlast a round make rounds alike, and intervals too short. They are longer by
//! `inflation` ([`super::lasting::inflation`]) about the estimate.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::{Interval, median, median_in_place, sorted};

/// Fewest paired rounds that support a claim.
pub const FEWEST_ROUNDS: usize = 5;
/// Fewest rounds for the sign-flip test.
const CLIPPED_FROM: usize = 14;
/// The sign-flip test is used up to this share of the largest value that its statistic can have.
const REACHABLE: f64 = 0.85;
/// Clipping point in units of the median of |D|. Power is flat from 0.5 to 1.
const CLIP: f64 = 0.7;
/// Share of the rounds that is trimmed at each end.
const TRIMMED: f64 = 0.2;
/// Degrees of freedom of the variance common to three or more rivals; two rivals have half of it,
/// one has none.
const PRIOR_FREEDOM: f64 = 4.0;
/// Search range of an interval's end, in units of the scatter.
const FAR: f64 = 24.0;
/// Halvings of that range.
const HALVINGS: u32 = 40;

/// One rate compared with several others.
pub struct PairedTest {
    rivals: Vec<Rival>,
    inflation: f64,
}

struct Rival {
    differences: Vec<f64>,
    estimate: f64,
    /// From [`FEWEST_ROUNDS`] rounds on.
    trimmed: Option<Trimmed>,
}

#[derive(Clone, Copy)]
struct Trimmed {
    mean: f64,
    /// Variance of that mean.
    variance: f64,
    freedom: f64,
}

/// The centre of log ratios: their trimmed mean; 0 without a round.
pub fn centre(differences: &[f64]) -> f64 {
    match differences.len() {
        FEWEST_ROUNDS..CLIPPED_FROM => Trimmed::of(differences).mean,
        _ => middle(differences),
    }
}

/// True if the mean of `after` is lower than that of `before`, with an error probability of at most
/// `alpha`: Student's t with the variance of `before`.
pub fn is_lower(after: &[f64], before: &[f64], alpha: f64) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if after.is_empty() || before.len() < FEWEST_ROUNDS {
        return false;
    }
    let freedom = before.len() as f64 - 1.0;
    let variance = before.iter().map(|value| (value - mean(before)).powi(2)).sum::<f64>() / freedom;
    let error = (variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
    let student = StudentsT::new(0.0, 1.0, freedom).expect("positive degrees of freedom");
    mean(before) - mean(after) > student.inverse_cdf(1.0 - alpha) * error
}

impl PairedTest {
    /// `differences[rival]` are the log ratios over the common rounds; a rival with fewer than
    /// [`FEWEST_ROUNDS`] supports no claim. `inflation` is at least 1.
    pub fn new(differences: Vec<Vec<f64>>, inflation: f64) -> Self {
        let mut rivals: Vec<Rival> = differences
            .into_iter()
            .map(|differences| {
                let trimmed = (differences.len() >= FEWEST_ROUNDS).then(|| Trimmed::of(&differences));
                Rival { estimate: centre(&differences), differences, trimmed }
            })
            .collect();
        steady(&mut rivals);
        Self { rivals, inflation }
    }

    /// The centre of a rival's log ratios ([`centre`]).
    pub fn estimate(&self, rival: usize) -> f64 {
        self.rivals[rival].estimate
    }

    /// Number of common rounds.
    pub fn rounds(&self, rival: usize) -> usize {
        self.rivals[rival].differences.len()
    }

    /// True if the log ratio exceeds `shift`, with an error probability of at most `alpha`
    /// (one-sided).
    pub fn exceeds(&self, rival: usize, shift: f64, alpha: f64) -> bool {
        self.rejects(rival, shift, alpha, 1.0)
    }

    /// True if the log ratio is below `shift`, with an error probability of at most `alpha`
    /// (one-sided).
    pub fn falls_below(&self, rival: usize, shift: f64, alpha: f64) -> bool {
        self.rejects(rival, shift, alpha, -1.0)
    }

    /// The evidence that the log ratio is above 0, as a standard normal deviate: what
    /// [`PairedTest::exceeds`] shows at a level, exceeds the normal quantile of that level.
    /// Negative if it is below. `None` with too few rounds.
    pub fn score(&self, rival: usize) -> Option<f64> {
        let rival = &self.rivals[rival];
        let trimmed = rival.trimmed?;
        let closer = rival.estimate - rival.estimate / self.inflation;
        let student = StudentsT::new(0.0, 1.0, trimmed.freedom).expect("positive degrees of freedom");
        let tail = student.cdf(-scaled(trimmed.mean - closer, trimmed.variance).abs());
        let of_mean = -Normal::standard().inverse_cdf(tail.max(f64::MIN_POSITIVE));
        let rounds = rival.differences.len();
        let reachable = if rounds < CLIPPED_FROM { 0.0 } else { REACHABLE * (rounds as f64).sqrt() };
        let of_signs = clipped(&rival.differences, closer).abs();
        let size = if of_signs <= reachable { of_signs } else { of_mean.max(reachable) };
        Some(size.copysign(rival.estimate))
    }

    fn rejects(&self, rival: usize, shift: f64, alpha: f64, direction: f64) -> bool {
        let rival = &self.rivals[rival];
        // An interval that is longer by a factor excludes a shift if the interval itself excludes
        // one that is closer.
        let closer = rival.estimate + (shift - rival.estimate) / self.inflation;
        let Some(test) = rival.test(alpha) else { return false };
        direction * rival.statistic(&test, closer) > test.critical
    }

    /// The interval of the log ratio that covers it with a probability of at least `1 - alpha`:
    /// every shift that the test does not reject. `None` if there are too few rounds.
    pub fn interval(&self, rival: usize, alpha: f64) -> Option<Interval> {
        let (low, high) = (self.end(rival, alpha, -1.0)?, self.end(rival, alpha, 1.0)?);
        Some(Interval { low, high, coverage: 1.0 - alpha })
    }

    /// The upper end of [`PairedTest::interval`].
    pub fn upper_end(&self, rival: usize, alpha: f64) -> Option<f64> {
        self.end(rival, alpha, 1.0)
    }

    fn end(&self, rival: usize, alpha: f64, direction: f64) -> Option<f64> {
        let rival = &self.rivals[rival];
        let test = rival.test(alpha / 2.0)?;
        let end = match test.trimmed {
            Some(Trimmed { mean, variance, .. }) => mean + direction * test.critical * variance.sqrt(),
            None => rival.end(direction, &test)?,
        };
        Some(rival.estimate + (end - rival.estimate) * self.inflation)
    }
}

/// The test that a level asks for, and the value that its statistic must exceed.
struct Level {
    /// Student's t of this mean; `None`: the sign-flip test.
    trimmed: Option<Trimmed>,
    critical: f64,
}

impl Rival {
    /// `None` with too few rounds.
    fn test(&self, alpha: f64) -> Option<Level> {
        let trimmed = self.trimmed?;
        let rounds = self.differences.len();
        let quantile = -Normal::standard().inverse_cdf(alpha);
        if rounds >= CLIPPED_FROM && quantile <= REACHABLE * (rounds as f64).sqrt() {
            return Some(Level { trimmed: None, critical: quantile });
        }
        let student = StudentsT::new(0.0, 1.0, trimmed.freedom).expect("positive degrees of freedom");
        Some(Level { trimmed: Some(trimmed), critical: -student.inverse_cdf(alpha) })
    }

    /// The statistic of "the log ratio exceeds `shift`".
    fn statistic(&self, test: &Level, shift: f64) -> f64 {
        match test.trimmed {
            Some(Trimmed { mean, variance, .. }) => scaled(mean - shift, variance),
            None => clipped(&self.differences, shift),
        }
    }

    /// The end of the interval in a direction; `None` if nothing is far enough to be rejected.
    fn end(&self, direction: f64, test: &Level) -> Option<f64> {
        let from_middle: Vec<f64> =
            self.differences.iter().map(|value| (value - self.estimate).abs()).collect();
        let scatter = median(&from_middle).unwrap_or(0.0) + 1e-9;
        let is_rejected = |shift: f64| -direction * self.statistic(test, shift) > test.critical;
        let (mut kept, mut rejected) = (self.estimate, self.estimate + direction * FAR * scatter);
        if !is_rejected(rejected) {
            return None;
        }
        for _ in 0..HALVINGS {
            let between = (kept + rejected) / 2.0;
            if is_rejected(between) {
                rejected = between;
            } else {
                kept = between;
            }
        }
        Some(rejected)
    }
}

impl Trimmed {
    fn of(differences: &[f64]) -> Self {
        let sorted = sorted(differences);
        let count = sorted.len();
        let cut = ((TRIMMED * count as f64 + 1e-9) as usize).max(1);
        let kept = count - 2 * cut;
        let (low, high) = (sorted[cut], sorted[count - cut - 1]);
        let winsorised: Vec<f64> = sorted.iter().map(|value| value.clamp(low, high)).collect();
        let centre = mean(&winsorised);
        let squares: f64 = winsorised.iter().map(|value| (value - centre).powi(2)).sum();
        Self {
            mean: mean(&sorted[cut..count - cut]),
            variance: squares / (kept * (kept - 1)) as f64,
            freedom: (kept - 1) as f64,
        }
    }
}

/// Steady the variances of rivals with equally many rounds by their median, where they lie below
/// it.
fn steady(rivals: &mut [Rival]) {
    let before: Vec<Option<(usize, Trimmed)>> =
        rivals.iter().map(|rival| Some((rival.differences.len(), rival.trimmed?))).collect();
    for (index, rival) in rivals.iter_mut().enumerate() {
        let (Some((rounds, own)), Some(trimmed)) = (before[index], &mut rival.trimmed) else { continue };
        let alike: Vec<f64> = before
            .iter()
            .flatten()
            .filter(|(others, _)| *others == rounds)
            .map(|(_, trimmed)| trimmed.variance)
            .collect();
        let prior = PRIOR_FREEDOM.min(2.0 * (alike.len() - 1) as f64);
        let common = median(&alike).unwrap_or(own.variance);
        let steadied = (prior * common + own.freedom * own.variance) / (prior + own.freedom);
        if steadied > own.variance {
            (trimmed.variance, trimmed.freedom) = (steadied, prior + own.freedom);
        }
    }
}

/// The clipped sign-flip statistic.
fn clipped(differences: &[f64], shift: f64) -> f64 {
    let mut sizes: Vec<f64> = differences.iter().map(|value| (value - shift).abs()).collect();
    let limit = CLIP * median_in_place(&mut sizes).unwrap_or(0.0);
    let held = differences.iter().map(|value| (value - shift).clamp(-limit, limit));
    let (sum, squares) =
        held.fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    scaled(sum, squares)
}

/// `value / sqrt(square)`; 0 for 0, which nothing scatters about.
fn scaled(value: f64, square: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value / square.max(1e-300).sqrt() }
}

/// The mean of the middle half; 0 without a value.
fn middle(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let cut = sorted.len() / 4;
    if sorted.is_empty() { 0.0 } else { mean(&sorted[cut..sorted.len() - cut]) }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::random::Random;
    use proptest::prelude::*;

    fn alone(differences: &[f64]) -> PairedTest {
        PairedTest::new(vec![differences.to_vec()], 1.0)
    }

    /// scipy.stats.trim_mean and Yuen's standard error of 1 … 9, and its interval at 95 % with 4
    /// degrees of freedom.
    #[test]
    fn few_rounds_are_judged_by_the_trimmed_mean() {
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        let test = alone(&values);
        assert_eq!((test.estimate(0), test.rounds(0)), (5.0, 9));
        let interval = test.interval(0, 0.05).expect("nine rounds");
        // Winsorised squares: 3 x 9 + 2 x 4 + 2 x 1 + ... of 2 2 3 4 5 6 7 8 8 about 5: 46; kept 7,
        // so 46 / 42.
        let half = 2.446_912 * (46.0f64 / 42.0).sqrt();
        assert!((interval.high - 5.0 - half).abs() < 1e-4, "{interval:?}");
        assert!((interval.low - 5.0 + half).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn one_wild_round_decides_nothing() {
        let mut values = vec![0.1; 20];
        for (index, value) in values.iter_mut().enumerate() {
            *value += 0.01 * f64::from(index as u32 % 5);
        }
        let steady = alone(&values).interval(0, 0.02).expect("twenty rounds");
        values[7] = -3.0;
        let wild = alone(&values).interval(0, 0.02).expect("twenty rounds");
        assert!(wild.low > 0.09 && (wild.high - steady.high).abs() < 0.02, "{steady:?} {wild:?}");
    }

    #[test]
    fn too_few_rounds_support_no_claim() {
        let test = alone(&[1.0, 1.1, 0.9, 1.0]);
        assert!(!test.exceeds(0, 0.0, 0.5) && test.interval(0, 0.5).is_none());
        // Fourteen signs do not carry one in a million, and the trimmed mean does.
        assert!(alone(&[1.0; 14]).exceeds(0, 0.5, 1e-6));
        assert_eq!(alone(&[]).estimate(0), 0.0);
    }

    #[test]
    fn a_quiet_rival_is_steadied_and_a_loud_one_is_not() {
        let quiet: Vec<f64> = (0..7).map(|round| 0.3 + 0.001 * f64::from(round)).collect();
        let loud: Vec<f64> = (0..7).map(|round| 0.3 + 0.2 * f64::from(round % 3)).collect();
        let width = |test: &PairedTest, rival: usize| {
            let interval = test.interval(rival, 0.02).expect("seven rounds");
            interval.high - interval.low
        };
        let louder: Vec<f64> = quiet.iter().map(|value| 3.0 * value).collect();
        let together = PairedTest::new(vec![quiet.clone(), loud.clone(), louder], 1.0);
        assert!(width(&together, 0) > width(&alone(&quiet), 0));
        assert_eq!(width(&together, 1), width(&alone(&loud), 0));
    }

    #[test]
    fn an_interval_is_longer_by_the_inflation_whatever_the_rounds() {
        for rounds in [5, 9, 13, 14, 20, 40] {
            let values: Vec<f64> = (0..rounds).map(|round| 2.0 + 0.01 * f64::from(round * 7 % 5)).collect();
            let (one, long) = (alone(&values), PairedTest::new(vec![values.clone()], 3.0));
            let width = |test: &PairedTest| {
                let interval = test.interval(0, 0.02).expect("enough");
                interval.high - interval.low
            };
            assert!((width(&long) / width(&one) - 3.0).abs() < 1e-6, "{rounds} rounds");
            // Seven times as fast is seven times as fast.
            assert!(long.exceeds(0, 0.0, 1e-4), "{rounds} rounds");
        }
    }

    #[test]
    fn a_score_exceeds_the_quantiles_of_the_levels_that_the_test_passes() {
        let mut random = Random::new(7);
        for rounds in [5, 7, 13, 14, 20, 40] {
            for shift in [0.0, 0.5, -1.0, 4.0] {
                let differences = (0..rounds).map(|_| shift + crate::judge::simulation::normal(&mut random));
                let test = PairedTest::new(vec![differences.collect()], 1.3);
                let score = test.score(0).expect("enough");
                for level in [0.2, 0.05, 0.01, 1e-3, 1e-5] {
                    let quantile = -Normal::standard().inverse_cdf(level);
                    assert_eq!(
                        test.exceeds(0, 0.0, level),
                        score > quantile,
                        "{rounds} {shift} {level} {score}"
                    );
                    assert_eq!(
                        test.falls_below(0, 0.0, level),
                        score < -quantile,
                        "{rounds} {shift} {level} {score}"
                    );
                }
            }
        }
        assert_eq!(alone(&[1.0; 4]).score(0), None);
    }

    #[test]
    fn intervals_cover_as_stated() {
        let mut random = Random::new(11);
        for (rounds, alpha) in [(7, 0.05), (9, 0.02), (20, 0.05), (40, 0.02)] {
            let mut missed = 0;
            for _ in 0..3000 {
                // Heavy tails: one of ten is wide.
                let value = |random: &mut Random| {
                    let wide = if random.unit() < 0.1 { 1.0 } else { 0.05 };
                    0.2 + wide * (random.unit() - 0.5)
                };
                let values: Vec<f64> = (0..rounds).map(|_| value(&mut random)).collect();
                let interval = alone(&values).interval(0, alpha).expect("enough");
                missed += u32::from(!(interval.low..=interval.high).contains(&0.2));
            }
            let share = f64::from(missed) / 3000.0;
            assert!(share <= 1.3 * alpha + 0.006, "{rounds} rounds at {alpha}: {share}");
        }
    }

    proptest! {
        #[test]
        fn an_interval_is_what_the_test_does_not_reject(
            values in prop::collection::vec(-1f64..1.0, 5..40), alpha in 0.004f64..0.3, shift in -1f64..1.0,
        ) {
            let test = alone(&values);
            let Some(interval) = test.interval(0, alpha) else { return Ok(()) };
            prop_assert!(interval.low <= interval.high);
            // Clipping makes the statistic slightly uneven in the shift, so the ends are where it
            // is first rejected.
            if test.exceeds(0, shift, alpha / 2.0) && values.len() < CLIPPED_FROM {
                prop_assert!(shift <= interval.low + 1e-9);
            }
            prop_assert!(interval.low > shift || !test.exceeds(0, shift.max(interval.low + 1e-6), alpha / 2.0)
                || values.len() >= CLIPPED_FROM);
        }

        #[test]
        fn a_larger_inflation_is_never_narrower(values in prop::collection::vec(-1f64..1.0, 5..40)) {
            let (one, other) = (alone(&values), PairedTest::new(vec![values.clone()], 1.5));
            let (Some(one), Some(other)) = (one.interval(0, 0.05), other.interval(0, 0.05)) else { return Ok(()) };
            prop_assert!(other.low <= one.low + 1e-9 && one.high <= other.high + 1e-9);
        }
    }
}
