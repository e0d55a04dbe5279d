//! Simulated comparisons with a known answer, judged by the real code, to measure how often the verdict is wrong.
//!
//! The noise of a sample is lognormal; some samples are slowed further, and a drift is common to a round. The verdict's
//! levels and the rounds of a run were chosen by its results (`cargo run --release -p pagewise-analysis --example
//! simulate_verdicts`). Of 100 comparisons with [`Scatter::TYPICAL`] noise the true winner was found in
//!
//! | rounds | 7 | 9 | 15 | 21 | 31 | 33 |
//! |---|---|---|---|---|---|---|
//! | best of 2 by 5 % | 21 | 49 | 82 | 91 | 99.0 | 99.3 |
//! | best of 10 by 5 % | 2 | 12 | 46 | 68 | 94.3 | 96.6 |
//! | best of 2 by 10 % | 54 | 87 | 98.6 | 99.9 | 100 | 100 |
//! | best of 10 by 10 % | 42 | 77 | 97 | 99.6 | 100 | 100 |
//! | best of 5 by 50 % | 88 | 99 | 100 | 100 | 100 | 100 |
//!
//! and a false winner in at most 1.5 in every setting and number of rounds, including [`Scatter::HEAVY`] noise. An equal
//! of the leader was called slower in at most 2.4 (ten equals, heavy noise).

use pagewise_model::random::Random;

use crate::judge::verdict::{self, Judgement, Rates, Verdict};

/// Scatter of samples.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    /// Standard deviation of the logarithm of a sample's rate.
    pub sample: f64,
    /// Share of samples that are slowed further.
    pub slowed_share: f64,
    /// These take longer by a share between the two.
    pub slowed_by: (f64, f64),
    /// Standard deviation of the logarithm of a round's common factor.
    pub round: f64,
    /// Share of samples that are invalid.
    pub invalid_share: f64,
}

impl Scatter {
    /// A quiet virtual machine.
    pub const TYPICAL: Self =
        Self { sample: 0.025, slowed_share: 0.07, slowed_by: (0.05, 0.6), round: 0.2, invalid_share: 0.0 };
    /// A busy one: a wider scatter, every fifth sample slowed by up to a factor of four, some invalid.
    pub const HEAVY: Self =
        Self { sample: 0.06, slowed_share: 0.2, slowed_by: (0.05, 3.0), round: 0.3, invalid_share: 0.02 };
}

/// A kind of comparison.
#[derive(Clone, Debug)]
pub struct ComparisonScenario {
    /// True rates of the methods. The first one is the best, or one of the best.
    pub truth: Vec<f64>,
    /// Rounds of the run.
    pub rounds: usize,
    /// Noise.
    pub scatter: Scatter,
}

/// Results of the judgement of a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparisonTally {
    /// Comparisons judged.
    pub comparisons: u32,
    /// The best method was named.
    pub right_winner: u32,
    /// A method was named the winner that is not better than all others.
    pub false_winner: u32,
    /// In a tie, a method was called slower than the best that is not.
    pub false_exclusion: u32,
    /// No verdict.
    pub not_comparable: u32,
}

impl ComparisonTally {
    /// `count` as a share of all.
    pub fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.comparisons.max(1))
    }
}

/// Simulate and judge `comparisons` comparisons of one setting. The same seed gives the same tally.
pub fn simulate(setting: &ComparisonScenario, comparisons: u32, seed: u64) -> ComparisonTally {
    let mut random = Random::for_purpose(seed, "verdicts");
    let mut tally = ComparisonTally { comparisons, ..ComparisonTally::default() };
    for _ in 0..comparisons {
        count(&mut tally, setting, &judged(setting, &mut random));
    }
    tally
}

fn judged(setting: &ComparisonScenario, random: &mut Random) -> Judgement {
    let mut rates = vec![vec![None; setting.rounds]; setting.truth.len()];
    let mut control = vec![None; setting.rounds];
    for round in 0..setting.rounds {
        let common = (setting.scatter.round * normal(random)).exp();
        for (method, truth) in setting.truth.iter().enumerate() {
            rates[method][round] = sample(truth * common, &setting.scatter, random);
        }
        // The control repeats the last method: the choice must not affect the others.
        control[round] = sample(setting.truth[setting.truth.len() - 1] * common, &setting.scatter, random);
    }
    let rates: Vec<Rates> = rates.iter().map(|method| Rates::of_each(method)).collect();
    let baseline = rates.last().expect("a setting has methods");
    match verdict::noise(baseline, &Rates::of_each(&control)) {
        Some(noise) => verdict::judge(&rates.iter().collect::<Vec<_>>(), noise),
        None => Judgement::not_comparable("the noise is unknown".to_string(), Vec::new()),
    }
}

pub(crate) fn sample(rate: f64, scatter: &Scatter, random: &mut Random) -> Option<f64> {
    let mut rate = rate * (scatter.sample * normal(random)).exp();
    if random.unit() < scatter.slowed_share {
        let (least, most) = scatter.slowed_by;
        rate /= 1.0 + least + (most - least) * random.unit();
    }
    (random.unit() >= scatter.invalid_share).then_some(rate)
}

/// A standard normal number (Box and Muller 1958).
pub(crate) fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

fn count(tally: &mut ComparisonTally, setting: &ComparisonScenario, judgement: &Judgement) {
    let best = setting.truth.iter().copied().fold(0.0, f64::max);
    let of_the_best = |method: usize| setting.truth[method] == best;
    match (judgement.verdict, judgement.leader) {
        (Verdict::Winner, Some(leader)) => {
            let only_best = setting.truth.iter().filter(|truth| **truth == best).count() == 1;
            if only_best && of_the_best(leader) {
                tally.right_winner += 1;
            } else {
                tally.false_winner += 1;
            }
        }
        (Verdict::Tie, _) => {
            let wrong = judgement.ratios.iter().any(|ratio| ratio.beaten && of_the_best(ratio.other));
            tally.false_exclusion += u32::from(wrong);
        }
        _ => tally.not_comparable += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::verdict::{FULL_ROUNDS, QUICK_ROUNDS};

    const COMPARISONS: u32 = 1000;

    fn setting(truth: &[f64], rounds: u32, scatter: Scatter) -> ComparisonScenario {
        ComparisonScenario { truth: truth.to_vec(), rounds: rounds as usize, scatter }
    }

    /// The bound of 2 %, and three standard errors of a share of 2 % among 1,000.
    const FALSE_AT_MOST: f64 = 0.02 + 3.0 * 0.0044;

    #[test]
    fn equals_have_no_winner() {
        for scatter in [Scatter::TYPICAL, Scatter::HEAVY] {
            for rounds in [QUICK_ROUNDS, FULL_ROUNDS] {
                for methods in [2, 3, 10] {
                    let tally = simulate(&setting(&vec![1.0; methods], rounds, scatter), COMPARISONS, 1);
                    let share = tally.share(tally.false_winner);
                    assert!(share <= FALSE_AT_MOST, "{methods} methods, {rounds} rounds: {tally:?}");
                }
            }
        }
    }

    #[test]
    fn equals_are_seldom_called_slower() {
        let tally = simulate(&setting(&[1.0; 10], FULL_ROUNDS, Scatter::HEAVY), COMPARISONS, 4);
        assert!(tally.share(tally.false_exclusion) <= FALSE_AT_MOST, "{tally:?}");
    }

    #[test]
    fn two_at_the_top_have_no_winner() {
        let mut truth = vec![0.6; 10];
        truth[..2].fill(1.0);
        for scatter in [Scatter::TYPICAL, Scatter::HEAVY] {
            for rounds in [QUICK_ROUNDS, FULL_ROUNDS] {
                let tally = simulate(&setting(&truth, rounds, scatter), COMPARISONS, 2);
                assert!(tally.share(tally.false_winner) <= FALSE_AT_MOST, "{rounds} rounds: {tally:?}");
            }
        }
    }

    #[test]
    fn a_full_run_finds_five_percent() {
        let mut truth = vec![1.0; 10];
        truth[0] = 1.05;
        let tally = simulate(&setting(&truth, FULL_ROUNDS, Scatter::TYPICAL), COMPARISONS, 3);
        assert!(tally.share(tally.right_winner) >= 0.95, "{tally:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_tally() {
        let setting = setting(&[1.0, 0.9], 7, Scatter::TYPICAL);
        assert_eq!(simulate(&setting, 100, 9), simulate(&setting, 100, 9));
    }
}
