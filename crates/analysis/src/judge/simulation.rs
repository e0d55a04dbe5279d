//! Simulated comparisons with a known answer, run and judged by the real code, to measure how often
//! the verdict is wrong.
//!
//! The noises ([`Noise`]) are made up, or drawn from the residuals of a real overview, in which
//! samples scatter three to five times as much as under [`Scatter::TYPICAL`].
//! `cargo run --release -p pagewise-analysis --example simulate_verdicts` prints the tables of
//! bench/RESULTS.md; the analyses and levels of the elimination were chosen by an earlier
//! simulation on the same noises, so tables have fresh seeds.

mod noise;

use pagewise_model::Plan;
use pagewise_model::random::Random;

use crate::judge::elimination::{self, Candidate, InterimAnalyses};
use crate::judge::verdict::{self, Judgement, Place, Rates, Verdict};

pub use noise::{Noise, NoiseSource, Scatter, normal};

/// Rounds of the longest elimination.
const MOST_ROUNDS: usize = 224;
/// Methods of the comparisons beside the first one of a run, all equal.
const BESIDE_METHODS: [usize; 3] = [3, 5, 8];
/// From this ratio on a method is far behind.
const FAR: f64 = 1.2;

/// The number of rounds of a simulated comparison.
#[derive(Clone, Debug)]
pub enum SimulatedSampling {
    /// A fixed number.
    Rounds(usize),
    /// An elimination with a budget of so many samples for each method on average.
    Elimination(InterimAnalyses, f64),
}

/// A kind of comparison.
#[derive(Clone, Debug)]
pub struct ComparisonScenario {
    /// True rates of the methods. The first one is the best, or one of the best.
    pub truth: Vec<f64>,
    /// Rounds.
    pub sampling: SimulatedSampling,
    /// Noise.
    pub noise: Noise,
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
    /// A method was called behind that is not.
    pub false_exclusion: u32,
    /// A method had no bound of at most 20 %, and no best was named.
    pub open: u32,
    /// Methods that are 1.2 times behind or more.
    pub far: u32,
    /// Methods of these that were called behind.
    pub far_behind: u32,
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
    let source = NoiseSource::new(&setting.noise);
    let mut tally = ComparisonTally { comparisons, ..ComparisonTally::default() };
    for _ in 0..comparisons {
        count(&mut tally, setting, &judged(setting, &source, &mut random));
    }
    tally
}

fn judged(setting: &ComparisonScenario, source: &NoiseSource, random: &mut Random) -> Judgement {
    let most = match &setting.sampling {
        SimulatedSampling::Rounds(rounds) => *rounds,
        SimulatedSampling::Elimination(..) => MOST_ROUNDS + Plan::RETURN_ROUNDS as usize,
    };
    let draw = |truth: &[f64], random: &mut Random| rates(truth, &source.draw(truth.len(), most, random));
    let mut run = vec![draw(&setting.truth, random)];
    if matches!(setting.noise, Noise::Lasting(_)) {
        // What outlasts rounds is seen over all comparisons of a run.
        run.extend(BESIDE_METHODS.map(|methods| draw(&vec![1.0; methods], random)));
    }
    let (comparisons, analyses) = match &setting.sampling {
        SimulatedSampling::Rounds(_) => (candidates(&run, &tried(&run, u32::MAX)), &InterimAnalyses::once()),
        SimulatedSampling::Elimination(analyses, budget) => (eliminated(&run, analyses, *budget), analyses),
    };
    let status = elimination::statuses(&comparisons, analyses, true).remove(0);
    verdict::judge_status(&comparisons[0], &status)
}

/// The elimination over given rates, with a budget of so many samples for each method on average.
/// Return rounds are paid first.
fn eliminated(run: &[Vec<Rates>], analyses: &InterimAnalyses, budget: f64) -> Vec<Vec<Candidate>> {
    let mut tried = tried(run, 0);
    let costs: Vec<Vec<f64>> = run.iter().map(|methods| vec![1.0; methods.len()]).collect();
    let methods = run.iter().map(Vec::len).sum::<usize>() as f64;
    let budget = (budget - f64::from(Plan::RETURN_ROUNDS)) * methods;
    loop {
        let comparisons = candidates(run, &tried);
        let left = budget - f64::from(tried.iter().flatten().sum::<u32>());
        let Some(step) = elimination::next(&comparisons, analyses, &costs, left) else {
            return returned(run, comparisons);
        };
        for (tried, methods) in tried.iter_mut().zip(step.methods) {
            methods.into_iter().for_each(|method| tried[method] = step.to);
        }
    }
}

/// The candidates with the rates of return rounds.
fn returned(run: &[Vec<Rates>], mut comparisons: Vec<Vec<Candidate>>) -> Vec<Vec<Candidate>> {
    let candidates = comparisons.iter_mut().flatten();
    for (candidate, rates) in candidates.zip(run.iter().flatten()) {
        candidate.returned = rates.clone().within(|round| round >= MOST_ROUNDS as u32);
    }
    comparisons
}

fn tried(run: &[Vec<Rates>], rounds: u32) -> Vec<Vec<u32>> {
    run.iter().map(|methods| vec![rounds; methods.len()]).collect()
}

/// The rates of the rounds that were tried.
fn candidates(run: &[Vec<Rates>], tried: &[Vec<u32>]) -> Vec<Vec<Candidate>> {
    let candidate = |(rates, tried): (&Rates, &u32)| Candidate {
        rates: rates.clone().within(|round| round < *tried),
        tried: *tried,
        returned: Rates::default(),
    };
    run.iter().zip(tried).map(|(methods, tried)| methods.iter().zip(tried).map(candidate).collect()).collect()
}

fn rates(truth: &[f64], logs: &[Vec<Option<f64>>]) -> Vec<Rates> {
    let of_method = |(truth, logs): (&f64, &Vec<Option<f64>>)| {
        Rates::of_each(&logs.iter().map(|log| Some(truth * (*log)?.exp())).collect::<Vec<_>>())
    };
    truth.iter().zip(logs).map(of_method).collect()
}

fn count(tally: &mut ComparisonTally, setting: &ComparisonScenario, judgement: &Judgement) {
    let best = setting.truth.iter().copied().fold(0.0, f64::max);
    let of_the_best = |method: usize| setting.truth[method] == best;
    let only_best = setting.truth.iter().filter(|truth| **truth == best).count() == 1;
    let behind = |method: usize| {
        judgement.ratios.iter().any(|ratio| ratio.other == method && ratio.place == Place::Behind)
    };
    match (judgement.verdict, judgement.leader) {
        (Verdict::NotComparable, _) | (_, None) => {
            tally.not_comparable += 1;
            return;
        }
        (Verdict::Best, Some(leader)) if only_best && of_the_best(leader) => tally.right_winner += 1,
        (Verdict::Best, _) => tally.false_winner += 1,
        (verdict, _) => tally.open += u32::from(verdict == Verdict::Open),
    }
    let methods = 0..setting.truth.len();
    tally.false_exclusion += u32::from(methods.clone().any(|method| of_the_best(method) && behind(method)));
    for method in methods.filter(|method| best / setting.truth[*method] >= FAR) {
        tally.far += 1;
        tally.far_behind += u32::from(behind(method));
    }
}

/// Number of simulations in a test: all of `count` in an optimised build
/// (`cargo test --release`), a third in a plain one, in which they would take
/// most of the time of `./check`.
pub const fn simulations(count: u32) -> u32 {
    if cfg!(debug_assertions) { count / 3 } else { count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::verdict::{FULL_ROUNDS, QUICK_ROUNDS};

    const COMPARISONS: u32 = simulations(300);

    fn setting(truth: &[f64], sampling: SimulatedSampling, noise: Noise) -> ComparisonScenario {
        ComparisonScenario { truth: truth.to_vec(), sampling, noise }
    }

    fn samplings() -> [SimulatedSampling; 3] {
        [
            SimulatedSampling::Rounds(QUICK_ROUNDS as usize),
            SimulatedSampling::Rounds(FULL_ROUNDS as usize),
            SimulatedSampling::Elimination(InterimAnalyses::quick(), 16.0),
        ]
    }

    /// The bound of 2 %, and three standard errors of a share of 2 % among 300.
    const FALSE_AT_MOST: f64 = 0.02 + 3.0 * if cfg!(debug_assertions) { 0.014 } else { 0.0081 };

    #[test]
    fn equals_have_no_best() {
        for (name, noise) in Noise::all() {
            for sampling in [
                SimulatedSampling::Rounds(QUICK_ROUNDS as usize),
                SimulatedSampling::Elimination(InterimAnalyses::quick(), 16.0),
            ] {
                let tally = simulate(&setting(&[1.0; 2], sampling.clone(), noise.clone()), COMPARISONS, 1);
                let share = tally.share(tally.false_winner);
                // Nine rounds show in part only what lasts from one to the next.
                let in_part =
                    matches!((&noise, &sampling), (Noise::Lasting(_), SimulatedSampling::Rounds(_)));
                let most = if in_part { 0.08 } else { FALSE_AT_MOST };
                assert!(share <= most, "{name}, {sampling:?}: {tally:?}");
            }
        }
    }

    #[test]
    fn equals_are_seldom_called_behind() {
        for sampling in samplings() {
            let noise = Noise::Scatter(Scatter::HEAVY);
            let tally = simulate(&setting(&[1.0; 10], sampling, noise), COMPARISONS, 4);
            assert!(tally.share(tally.false_exclusion) <= 0.06, "{tally:?}");
        }
    }

    #[test]
    fn two_at_the_top_have_no_best() {
        let mut truth = vec![0.6; 10];
        truth[..2].fill(1.0);
        for noise in [Noise::Scatter(Scatter::TYPICAL), Noise::Scatter(Scatter::HEAVY)] {
            for sampling in samplings() {
                let tally = simulate(&setting(&truth, sampling, noise.clone()), COMPARISONS, 2);
                assert!(tally.share(tally.false_winner) <= FALSE_AT_MOST, "{tally:?}");
            }
        }
    }

    #[test]
    fn an_elimination_finds_what_is_a_fifth_behind() {
        let truth = [1.0, 1.0, 0.8, 0.8, 0.6];
        let noise = Noise::Real(&["read-warm"]);
        // Sixteen samples of a method, and its return rounds.
        let elimination =
            SimulatedSampling::Elimination(InterimAnalyses::quick(), 16.0 + f64::from(Plan::RETURN_ROUNDS));
        let tally = simulate(&setting(&truth, elimination, noise), COMPARISONS, 3);
        assert!(f64::from(tally.far_behind) >= 0.98 * f64::from(tally.far), "{tally:?}");
    }

    #[test]
    fn a_gap_is_found_in_few_rounds_and_never_between_equals() {
        for (name, noise) in Noise::all() {
            for rounds in [3, 4] {
                let tally = |truth: &[f64]| {
                    simulate(
                        &setting(truth, SimulatedSampling::Rounds(rounds), noise.clone()),
                        simulations(4000),
                        5,
                    )
                };
                let equal = tally(&[1.0; 4]);
                assert_eq!(equal.not_comparable, equal.comparisons, "{name}, {rounds} rounds: {equal:?}");
                let apart = tally(&[1.0, 1.0 / 20.0]);
                // Noise that takes samples away, or slows one of three tenfold, leaves no verdict
                // rather than a false one.
                let found = apart.share(apart.right_winner);
                assert!(found > 0.85 && apart.false_winner == 0, "{name}, {rounds} rounds: {apart:?}");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_tally() {
        let setting = setting(&[1.0, 0.9], SimulatedSampling::Rounds(7), Noise::Scatter(Scatter::TYPICAL));
        assert_eq!(simulate(&setting, 100, 9), simulate(&setting, 100, 9));
    }
}
