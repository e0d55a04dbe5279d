//! The verdict of one comparison: the winning method, or the methods that are not distinguishable.
//!
//! Rounds are interleaved, so two methods are compared by the ratio of their rates within a round. Method A *beats*
//! method B if both hold:
//!
//! 1. the interval of the median paired ratio A / B, from order statistics with a coverage of at least [`CLAIM_LEVEL`],
//!    is above 1;
//! 2. the median ratio exceeds 1 + max([`SMALLEST_DIFFERENCE`], noise).
//!
//! Both require [`FEWEST_ROUNDS`] rounds with a valid sample of each. [`decide`] implements this rule, and nothing else
//! decides between two rates.
//!
//! A wins if it beats *every* other ranked method. That takes the number of methods into account without widening the
//! intervals (an intersection-union test, Berger 1982): if two or more methods are equally the best, a false winner
//! among them must at least beat one equal. By the first rule alone that happens to at most 1 - [`CLAIM_LEVEL`] of
//! comparisons, both directions together, whatever the distribution of noise; with the second rule it is below 2 % in
//! simulation, heavy tails included.
//!
//! A method with fewer than [`FEWEST_ROUNDS`] rounds, because it lost samples, is not ranked. It still prevents another
//! from winning unless it was slower beyond the noise in each of its rounds. Otherwise a rival's bad luck would make a
//! winner.
//!
//! In a tie, other claims are made: that the methods outside of the tied set are slower than the leader. Each is one of
//! many, and the leader was chosen by the same data. [`FALSE_EXCLUSIONS`] is therefore divided by the number of claims
//! (Bonferroni). If the rounds are too few for such a level, all of them must show a difference beyond the noise.
//!
//! *Noise* is the difference between a method and itself (role `control`): the largest distance from 1 within the
//! interval of their median ratio at [`NOISE_LEVEL`]. A high level would be wrong here. With seven rounds the interval
//! would reach from the smallest to the largest ratio, so that one disturbed sample would hide every difference. The
//! first rule already covers chance within the rounds. Noise adds effects that pairing cannot show, such as an effect of
//! the order or of the memory that a worker happens to get. If the control of a comparison lost its samples, the noise
//! is the largest of the run's other controls; if none is left, it is the [`scatter`] of the ratios themselves.
//!
//! [`crate::judge::simulation`] runs this code on simulated noise and documents the results.

use serde::Serialize;

use crate::statistics::{ByRound, Interval, median, median_interval, paired_log_ratios};

/// Coverage of the interval on which a difference is claimed. The resulting ranks: of 7 rounds all, of 9 all but one, of
/// 33 the eleventh.
pub const CLAIM_LEVEL: f64 = 0.96;
/// In a tie, the share of comparisons in which any equal of the leader may be called slower.
pub const FALSE_EXCLUSIONS: f64 = 0.02;
/// Coverage of the interval by which a difference narrows the search for a change of order: six of seven rounds, nine of
/// eleven. The change itself is already known from firm differences. With the level of a verdict, one disturbed sample
/// in seven rounds would leave the middle unclear.
pub const NARROWING_LEVEL: f64 = 0.85;
/// Smallest difference that is claimed, however certain: as a share of the slower rate.
pub const SMALLEST_DIFFERENCE: f64 = 0.02;
/// A tie does not say that methods are equal, only that these rounds do not distinguish them. Those whose median ratio
/// is within this factor of the leader are as good as it; nothing is known of the others.
pub const NEAR: f64 = 1.0 + SMALLEST_DIFFERENCE;
/// Coverage of the interval that gives the noise; possible from three rounds.
pub const NOISE_LEVEL: f64 = 0.65;
/// Fewest paired rounds that support a claim: seven cover 98.4 %.
pub const FEWEST_ROUNDS: usize = 7;
/// Rounds of a quick run. Nine still support a claim if one of them is disturbed or one sample is lost. Seven do not,
/// and find a method that is 10 % better far less often (54 against 87 of 100 comparisons).
pub const QUICK_ROUNDS: u32 = 9;
/// Rounds of a full run: they find a method that is 5 % better than nine others (see
/// [`crate::judge::simulation`]). 31 fall just short of that in 95 of 100 comparisons.
pub const FULL_ROUNDS: u32 = 33;

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// One method beats every other.
    Winner,
    /// Some methods are not distinguishable from the best.
    Tie,
    /// The data do not support a comparison.
    NotComparable,
}

/// Rates of one method, by round with a valid sample of it.
pub type Rates = ByRound;

/// Comparison of the leader with one other method.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// The other method, as an index.
    pub other: usize,
    /// Median over the rounds of leader / other.
    pub ratio: f64,
    /// Interval of that median; `None` with too few paired rounds.
    pub interval: Option<Interval>,
    /// Rounds in which both are valid.
    pub rounds: usize,
    /// True if the leader beats it.
    pub beaten: bool,
    /// True if the leader was faster by more than the noise in every round.
    pub always_behind: bool,
}

/// Finding from the paired ratios of two rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The first is higher, statistically and beyond the noise.
    Higher,
    /// The first is lower, statistically and beyond the noise.
    Lower,
    /// The two are not distinguishable in these rounds.
    #[serde(rename = "not-told-apart")]
    Indistinguishable,
    /// Too few rounds have both.
    TooFewRounds,
    /// No control shows the difference of a method from itself in this run.
    NoiseUnknown,
}

/// Number of simultaneous claims, which determines the required coverage of a ratio's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimedTogether {
    /// One difference: [`CLAIM_LEVEL`].
    Alone,
    /// One of this many: [`FALSE_EXCLUSIONS`] divided by their number. If the rounds are too few for that level, all of
    /// them must show a difference beyond the noise.
    OneOf(usize),
    /// A step of a search between firm differences: [`NARROWING_LEVEL`].
    Narrowing,
}

/// Result of comparing two rates by their paired ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The finding.
    pub finding: Finding,
    /// Logarithm of their median; `None` if no round has both.
    pub log_ratio: Option<f64>,
    /// Interval of the median at [`CLAIM_LEVEL`], as ratios; `None` with too few rounds.
    pub interval: Option<Interval>,
    /// Rounds that have both.
    pub rounds: usize,
    /// True if the same rate is ahead by more than the noise in each of them.
    pub in_every_round: bool,
}

impl Decision {
    /// The median ratio; 1 if no round has both.
    pub fn ratio(&self) -> f64 {
        self.log_ratio.unwrap_or(0.0).exp()
    }

    /// True if one of the two is ahead.
    pub fn is_clear(&self) -> bool {
        matches!(self.finding, Finding::Higher | Finding::Lower)
    }
}

/// Compare two rates: the only rule, used by verdicts, the cliff and the tables by threads. `log_ratios` are those of
/// [`paired_log_ratios`], of the first rate over the second.
pub fn decide(log_ratios: &[f64], noise: Option<f64>, claim: ClaimedTogether) -> Decision {
    let log_ratio = median(log_ratios);
    let threshold = noise.map(|noise| noise.max(SMALLEST_DIFFERENCE).ln_1p());
    let every =
        |beyond: &dyn Fn(f64) -> bool| !log_ratios.is_empty() && log_ratios.iter().copied().all(beyond);
    let (always_above, always_below) = match threshold {
        Some(threshold) => (every(&|ratio| ratio > threshold), every(&|ratio| ratio < -threshold)),
        None => (false, false),
    };
    let at = |level: f64| median_interval(log_ratios, level);
    let (above, below) = match (claim, at(claim.level())) {
        (_, Some(ends)) => (ends.low > 0.0, ends.high < 0.0),
        (ClaimedTogether::OneOf(_), None) => (always_above, always_below),
        (ClaimedTogether::Alone | ClaimedTogether::Narrowing, None) => (false, false),
    };
    let finding = match (log_ratio, threshold) {
        _ if log_ratios.len() < FEWEST_ROUNDS => Finding::TooFewRounds,
        (None, _) => Finding::TooFewRounds,
        (Some(_), None) => Finding::NoiseUnknown,
        (Some(middle), Some(threshold)) if above && middle > threshold => Finding::Higher,
        (Some(middle), Some(threshold)) if below && middle < -threshold => Finding::Lower,
        _ => Finding::Indistinguishable,
    };
    let as_ratios = |ends: Interval| Interval { low: ends.low.exp(), high: ends.high.exp(), ..ends };
    Decision {
        finding,
        log_ratio,
        interval: at(CLAIM_LEVEL).map(as_ratios),
        rounds: log_ratios.len(),
        in_every_round: always_above || always_below,
    }
}

impl ClaimedTogether {
    fn level(self) -> f64 {
        match self {
            ClaimedTogether::Alone => CLAIM_LEVEL,
            ClaimedTogether::OneOf(claims) => 1.0 - FALSE_EXCLUSIONS / claims.max(1) as f64,
            ClaimedTogether::Narrowing => NARROWING_LEVEL,
        }
    }
}

impl Ratio {
    fn of(other: usize, decision: Decision) -> Self {
        let ratio = decision.ratio();
        Self {
            other,
            ratio,
            interval: decision.interval,
            rounds: decision.rounds,
            beaten: decision.finding == Finding::Higher,
            always_behind: decision.in_every_round && ratio > 1.0,
        }
    }
}

/// The judgement of one comparison; methods are indices into the given slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The method with a median ratio over 1 against the most others; the winner if there is one.
    pub leader: Option<usize>,
    /// Methods that are not distinguishable from the best, the leader first; empty unless the verdict is a tie.
    pub tied: Vec<usize>,
    /// The leader compared with each other ranked method, the closest first.
    pub ratios: Vec<Ratio>,
    /// Methods that could not be ranked, with the reason.
    pub unranked: Vec<(usize, String)>,
    /// Reason that the methods are not comparable.
    pub reason: Option<String>,
}

impl Judgement {
    /// A comparison without a judgement.
    pub fn not_comparable(reason: String, unranked: Vec<(usize, String)>) -> Self {
        Self {
            verdict: Verdict::NotComparable,
            leader: None,
            tied: Vec::new(),
            ratios: Vec::new(),
            unranked,
            reason: Some(reason),
        }
    }
}

/// The noise of a run: the largest distance from 1 of the median ratio between a method and itself, as a share; `None`
/// if too few rounds have both.
pub fn noise(baseline: &Rates, control: &Rates) -> Option<f64> {
    let interval = median_interval(&paired_log_ratios(control, baseline), NOISE_LEVEL)?;
    Some(interval.high.abs().max(interval.low.abs()).exp_m1())
}

/// The noise if no method was measured against itself: the largest distance from a median ratio to the ends of its
/// interval, over the ratios of all methods to the leader; `None` if too few rounds have both. It includes the scatter
/// within the rounds, but not differences between cells that are the same in all rounds.
pub fn scatter(methods: &[&Rates]) -> Option<f64> {
    let all: Vec<usize> = (0..methods.len()).filter(|method| methods[*method].count() > 0).collect();
    let leader = if all.is_empty() { return None } else { leader(methods, &all) };
    let of_method = |method: &usize| {
        let log_ratios = paired_log_ratios(methods[leader], methods[*method]);
        let (interval, middle) = (median_interval(&log_ratios, NOISE_LEVEL)?, median(&log_ratios)?);
        Some((interval.high - middle).max(middle - interval.low).exp_m1())
    };
    all.iter().filter(|method| **method != leader).filter_map(of_method).max_by(f64::total_cmp)
}

/// Judge `methods` by their rates in each round, given the noise of the run.
pub fn judge(methods: &[&Rates], noise: f64) -> Judgement {
    let valid = |method: usize| methods[method].count();
    let (ranked, short): (Vec<usize>, Vec<usize>) =
        (0..methods.len()).partition(|method| valid(*method) >= FEWEST_ROUNDS);
    let mut unranked: Vec<(usize, String)> =
        short.iter().map(|method| (*method, too_few_rounds(valid(*method)))).collect();
    if ranked.len() < 2 {
        return Judgement::not_comparable(too_few_methods(methods.len(), ranked.len()), unranked);
    }
    let leader = leader(methods, &ranked);
    let decided = |other: usize, claim: ClaimedTogether| {
        decide(&paired_log_ratios(methods[leader], methods[other]), Some(noise), claim)
    };
    let against = |others: &[usize]| -> Vec<Ratio> {
        let others = others.iter().filter(|other| **other != leader);
        others.map(|other| Ratio::of(*other, decided(*other, ClaimedTogether::Alone))).collect()
    };
    let mut ratios = against(&ranked);
    // A method that lost some samples is still a rival unless each of its samples shows otherwise.
    ratios.extend(against(&short).into_iter().filter(|ratio| ratio.rounds > 0 && !ratio.always_behind));
    unranked.retain(|(method, _)| ratios.iter().all(|ratio| ratio.other != *method));
    ratios.sort_by(|left, right| left.ratio.total_cmp(&right.ratio));
    if ratios.iter().all(|ratio| ratio.beaten) {
        let (leader, tied) = (Some(leader), Vec::new());
        return Judgement { verdict: Verdict::Winner, leader, tied, ratios, unranked, reason: None };
    }
    let claims = ratios.len();
    for ratio in ratios.iter_mut().filter(|ratio| ratio.beaten) {
        ratio.beaten = decided(ratio.other, ClaimedTogether::OneOf(claims)).finding == Finding::Higher;
    }
    let tied = ratios.iter().filter(|ratio| !ratio.beaten).map(|ratio| ratio.other);
    let tied = std::iter::once(leader).chain(tied).collect();
    Judgement { verdict: Verdict::Tie, leader: Some(leader), tied, ratios, unranked, reason: None }
}

fn too_few_rounds(valid: usize) -> String {
    let rounds = if valid == 1 { "round has" } else { "rounds have" };
    format!("{valid} {rounds} a valid sample, and a verdict needs {FEWEST_ROUNDS}")
}

fn too_few_methods(methods: usize, ranked: usize) -> String {
    match (methods, ranked) {
        (0, _) => "no method could be measured".to_string(),
        (1, 1) => "there is only one method".to_string(),
        (_, 1) => format!("only one method has the {FEWEST_ROUNDS} valid rounds that a verdict needs"),
        _ => format!("no method has the {FEWEST_ROUNDS} valid rounds that a verdict needs"),
    }
}

/// The method whose median ratio is over 1 against the most others (Copeland); among equals the one with the best
/// median. Medians alone would favour a method whose invalid samples fell into slow rounds.
fn leader(methods: &[&Rates], ranked: &[usize]) -> usize {
    let mut wins = vec![0; methods.len()];
    for (index, left) in ranked.iter().enumerate() {
        for right in &ranked[index + 1..] {
            match median(&paired_log_ratios(methods[*left], methods[*right])) {
                Some(ratio) if ratio > 0.0 => wins[*left] += 1,
                Some(ratio) if ratio < 0.0 => wins[*right] += 1,
                _ => {}
            }
        }
    }
    let own_median = |method: usize| median(&methods[method].values()).unwrap_or(0.0);
    let best = ranked.iter().copied().max_by(|left, right| {
        // Of equal methods the first written wins, hence the reversed indices.
        let medians = || own_median(*left).total_cmp(&own_median(*right));
        wins[*left].cmp(&wins[*right]).then_with(medians).then(right.cmp(left))
    });
    best.expect("at least two are ranked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(methods: &[&Vec<Option<f64>>], noise: f64) -> Judgement {
        let rates: Vec<Rates> = methods.iter().map(|method| Rates::of_each(method)).collect();
        super::judge(&rates.iter().collect::<Vec<_>>(), noise)
    }

    fn noise(baseline: &[Option<f64>], control: &[Option<f64>]) -> Option<f64> {
        super::noise(&Rates::of_each(baseline), &Rates::of_each(control))
    }

    fn rates(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    const STEADY: [f64; 7] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8];

    fn scaled(factor: f64) -> Vec<Option<f64>> {
        STEADY
            .iter()
            .enumerate()
            .map(|(round, rate)| Some(rate * factor * (1.0 + round as f64 * 1e-4)))
            .collect()
    }

    #[test]
    fn a_method_that_beats_all_others_wins() {
        let judgement = judge(&[&scaled(1.0), &scaled(1.5), &scaled(0.7)], 0.01);
        assert_eq!((judgement.verdict, judgement.leader), (Verdict::Winner, Some(1)));
        assert_eq!(judgement.ratios[0].other, 0);
        assert!((judgement.ratios[0].ratio - 1.5).abs() < 1e-9);
    }

    #[test]
    fn nothing_below_two_percent_is_claimed_however_sure() {
        let judgement = judge(&[&scaled(1.0), &scaled(1.019)], 0.0);
        assert_eq!((judgement.verdict, judgement.tied), (Verdict::Tie, vec![1, 0]));
    }

    #[test]
    fn a_difference_within_the_noise_is_a_tie() {
        let judgement = judge(&[&scaled(1.0), &scaled(1.2)], 0.25);
        assert_eq!(judgement.verdict, Verdict::Tie);
    }

    #[test]
    fn one_round_the_other_way_is_a_tie_at_seven_rounds() {
        let mut disturbed = scaled(1.5);
        disturbed[3] = Some(50.0);
        assert_eq!(judge(&[&scaled(1.0), &disturbed], 0.0).verdict, Verdict::Tie);
    }

    #[test]
    fn those_far_behind_are_not_in_the_tie() {
        let judgement = judge(&[&scaled(1.0), &scaled(1.01), &scaled(0.5)], 0.0);
        assert_eq!((judgement.verdict, judgement.tied), (Verdict::Tie, vec![1, 0]));
        assert!(judgement.ratios[1].beaten && !judgement.ratios[0].beaten);
    }

    #[test]
    fn a_method_with_too_few_rounds_does_not_spoil_the_others() {
        let mut gaps = scaled(0.6);
        gaps[2] = None;
        let judgement = judge(&[&scaled(1.0), &scaled(1.5), &gaps], 0.0);
        assert_eq!((judgement.verdict, judgement.leader), (Verdict::Winner, Some(1)));
        assert_eq!(
            judgement.unranked,
            [(2, "6 rounds have a valid sample, and a verdict needs 7".to_string())]
        );
    }

    #[test]
    fn a_rival_that_lost_a_sample_leaves_no_winner() {
        let mut gaps = scaled(1.6);
        gaps[2] = None;
        let judgement = judge(&[&scaled(1.0), &scaled(1.5), &gaps], 0.0);
        assert_eq!((judgement.verdict, judgement.tied), (Verdict::Tie, vec![1, 2]));
        assert!(judgement.unranked.is_empty());
    }

    #[test]
    fn one_method_or_none_cannot_be_compared() {
        assert_eq!(judge(&[], 0.0).reason.as_deref(), Some("no method could be measured"));
        assert_eq!(judge(&[&scaled(1.0)], 0.0).reason.as_deref(), Some("there is only one method"));
        let short = rates(&STEADY[..6]);
        let judgement = judge(&[&short, &short], 0.0);
        assert_eq!(judgement.verdict, Verdict::NotComparable);
        assert_eq!(judgement.unranked.len(), 2);
    }

    #[test]
    fn too_few_common_rounds_cannot_be_told_apart() {
        let left: Vec<_> = (0..14).map(|round| (round < 7).then_some(100.0)).collect();
        let right: Vec<_> = (0..14).map(|round| (round >= 7).then_some(10.0)).collect();
        assert_eq!(judge(&[&left, &right], 0.0).verdict, Verdict::Tie);
    }

    #[test]
    fn invalid_samples_in_slow_rounds_make_no_leader() {
        // Rounds 0 to 9 are slow for all; the second method is missing from them and has the better median.
        let first: Vec<_> = (0..20).map(|round| Some(if round < 10 { 50.0 } else { 103.0 })).collect();
        let second: Vec<_> = (0..20).map(|round| (round >= 10).then_some(100.0)).collect();
        assert_eq!(judge(&[&first, &second], 0.0).leader, Some(0));
    }

    #[test]
    fn scatter_is_how_far_ratios_reach_beside_their_median() {
        let of = |methods: &[&Vec<Option<f64>>]| {
            let rates: Vec<Rates> = methods.iter().map(|method| Rates::of_each(method)).collect();
            super::scatter(&rates.iter().collect::<Vec<_>>())
        };
        assert!(of(&[&scaled(1.0), &scaled(1.5)]).expect("seven rounds") < 1e-3);
        let mut wide = scaled(1.5);
        for (round, rate) in wide.iter_mut().enumerate() {
            *rate = rate.map(|rate| if round % 2 == 0 { rate * 1.2 } else { rate });
        }
        let found = of(&[&scaled(1.0), &wide]).expect("seven rounds");
        assert!((found - 0.2).abs() < 0.01, "{found}");
        assert_eq!((of(&[]), of(&[&scaled(1.0)])), (None, None));
    }

    #[test]
    fn noise_is_how_far_a_method_is_from_itself() {
        assert!(noise(&scaled(1.0), &scaled(1.0)).expect("seven rounds") < 1e-3);
        let away = noise(&scaled(1.0), &scaled(0.8)).expect("seven rounds");
        assert!((away - 0.25).abs() < 1e-3, "{away}");
        let mut disturbed = scaled(1.0);
        disturbed[0] = Some(10.0);
        assert!(noise(&scaled(1.0), &disturbed).expect("seven rounds") < 1e-3, "one sample hides all");
        assert_eq!(noise(&rates(&STEADY[..2]), &rates(&STEADY[..2])), None);
    }
}
