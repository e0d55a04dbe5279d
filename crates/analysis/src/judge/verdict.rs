//! The verdict of one comparison: the best method, or a bound for each that cannot be distinguished
//! from it.
//!
//! Rounds are interleaved, so two methods are compared by the ratio of their rates within a round.
//! Every claim and every interval comes from one test ([`PairedTest`]), so a word and the interval
//! beside it never contradict each other. The leader is the method that is ahead of the most others
//! by the estimate of their ratio. The [`crate::judge::elimination`] decides which methods are
//! behind it. Every method has a *bound*: the most that it may be behind, with [`BOUND_LEVEL`]
//! certainty. Of those that are not behind it gives the place: a *tie* within [`TIED`], *close*
//! within [`CLOSE`],
//! *open* beyond.
//!
//! If several methods are equally the best, one of them is called best in about [`FALSE_WINNERS`]
//! of comparisons; [`crate::judge::simulation`] runs this code on simulated noise.
//!
//! A method with fewer than [`FEWEST_ROUNDS`] valid rounds is not ranked, unless a gap needs no
//! more of them: one that is over three times as slow in each of at least three rounds is behind.
//! One that is not ranked still prevents another from being the best unless its rounds show that it
//! is slower. Otherwise chance would make a winner.

use serde::Serialize;

use super::elimination::{self, Candidate, Compared, ComparisonStatus, InterimAnalyses};
pub use super::elimination::{BOUND_LEVEL, FALSE_WINNERS, Rates, SMALLEST_DIFFERENCE};
use super::gap;
use super::reasons::{NoVerdict, Unpaired};
pub use crate::statistics::paired::FEWEST_ROUNDS;
use crate::statistics::paired::{PairedTest, centre};
use crate::statistics::{Interval, paired_log_ratios};

/// A median ratio within this factor is no difference.
pub const NEAR: f64 = 1.0 + SMALLEST_DIFFERENCE;
/// Largest bound of a tie.
pub const TIED: f64 = SMALLEST_DIFFERENCE;
/// Largest bound of a method that is close.
pub const CLOSE: f64 = 0.20;
/// Share of runs in which the control of some comparison raises a false alarm.
pub const FALSE_ALARMS: f64 = 0.01;
/// Rounds of a quick run of a fixed number.
pub const QUICK_ROUNDS: u32 = 9;
/// Rounds of a full run of a fixed number.
pub const FULL_ROUNDS: u32 = 33;

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// One method beats every other.
    Best,
    /// All that stay are as good as the leader, within 2 %.
    Tie,
    /// All that stay have a bound of at most 20 %.
    Close,
    /// At least one has no such bound.
    Open,
    /// The data do not support a comparison.
    NotComparable,
}

/// Place of a method against the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At most 2 % behind.
    Tie,
    /// At most 20 % behind.
    Close,
    /// Possibly further behind, or ahead: these rounds do not decide.
    Open,
    /// Behind.
    Behind,
}

impl Place {
    fn of_bound(bound: Option<f64>) -> Self {
        match bound {
            Some(bound) if bound <= TIED => Place::Tie,
            Some(bound) if bound <= CLOSE => Place::Close,
            _ => Place::Open,
        }
    }
}

/// Comparison of the leader with one other method.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// The other method, as an index.
    pub other: usize,
    /// The leader, or, of a method that was eliminated, the leader of that time: another one may
    /// have overtaken it since.
    pub leader: usize,
    /// Leader over other: a trimmed mean over the rounds.
    pub ratio: f64,
    /// Interval of that ratio, at the level of the claim that it is behind; `None` with too few
    /// rounds.
    pub interval: Option<Interval>,
    /// Rounds in which both are valid.
    pub rounds: usize,
    /// True if return rounds contradict that it is behind.
    pub changed: bool,
    /// Place.
    pub place: Place,
    /// The most that it may be behind, as a share, with [`BOUND_LEVEL`] certainty or more; `None`
    /// with too few rounds.
    pub bound: Option<f64>,
}

/// Finding from the paired ratios of two rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The first is higher.
    Higher,
    /// The first is lower.
    Lower,
    /// The two are not distinguishable in these rounds.
    Indistinguishable,
    /// Too few rounds have both.
    TooFewRounds,
}

/// Number of simultaneous claims, which determines the level of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimedTogether {
    /// One difference: [`FALSE_WINNERS`].
    Alone,
    /// A point of the fit over the spans of a cliff, whose error is that of an interval of
    /// [`BOUND_LEVEL`].
    Fitted,
    /// A difference of a method from itself, one of this many: [`FALSE_ALARMS`] divided by their
    /// number.
    Control(usize),
    /// A difference of what two actors leave, one of this many.
    Actors(usize),
}

impl ClaimedTogether {
    fn level(self) -> f64 {
        match self {
            ClaimedTogether::Alone => FALSE_WINNERS,
            ClaimedTogether::Fitted => 1.0 - BOUND_LEVEL,
            ClaimedTogether::Actors(claims) => FALSE_WINNERS / claims.max(1) as f64,
            ClaimedTogether::Control(claims) => FALSE_ALARMS / claims.max(1) as f64,
        }
    }
}

/// Result of comparing two rates by their paired ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The finding.
    pub finding: Finding,
    /// Logarithm of the ratio; `None` if no round has both.
    pub log_ratio: Option<f64>,
    /// Interval of the ratio at the level of the claim; `None` with too few rounds.
    pub interval: Option<Interval>,
    /// Evidence that the ratio is above 1 ([`PairedTest::score`]).
    pub score: Option<f64>,
    /// Rounds that have both.
    pub rounds: usize,
}

impl Decision {
    /// True if one of the two is ahead.
    pub fn is_clear(&self) -> bool {
        matches!(self.finding, Finding::Higher | Finding::Lower)
    }
}

/// Compare two rates by the test of verdicts: for the cliff and the tables by threads. `log_ratios`
/// are those of [`paired_log_ratios`], of the first rate over the second; a difference up to the
/// share `least` is not claimed, and intervals are longer by `inflation`.
pub fn decide(log_ratios: &[f64], least: f64, inflation: f64, claim: ClaimedTogether) -> Decision {
    let rounds = log_ratios.len();
    let test = PairedTest::new(vec![log_ratios.to_vec()], inflation);
    let (level, estimate) = (claim.level(), test.estimate(0));
    let least = least.max(SMALLEST_DIFFERENCE).ln_1p();
    let finding = match estimate {
        _ if rounds < FEWEST_ROUNDS => Finding::TooFewRounds,
        estimate if estimate > least && test.exceeds(0, 0.0, level / 2.0) => Finding::Higher,
        estimate if estimate < -least && test.falls_below(0, 0.0, level / 2.0) => Finding::Lower,
        _ => Finding::Indistinguishable,
    };
    let log_ratio = (rounds > 0).then_some(estimate);
    Decision {
        finding,
        log_ratio,
        interval: test.interval(0, level).map(Interval::as_ratios),
        score: test.score(0),
        rounds,
    }
}

/// The judgement of one comparison; methods are indices into the given slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The method that is ahead of the most others; the best if there is one.
    pub leader: Option<usize>,
    /// The leader compared with each other ranked method, the closest first.
    pub ratios: Vec<Ratio>,
    /// Methods that could not be ranked, with their rounds.
    pub unranked: Vec<(usize, Unpaired)>,
    /// Reason that the methods are not comparable.
    pub reason: Option<NoVerdict>,
}

impl Judgement {
    /// A comparison without a judgement.
    pub fn not_comparable(reason: NoVerdict, unranked: Vec<(usize, Unpaired)>) -> Self {
        Self {
            verdict: Verdict::NotComparable,
            leader: None,
            ratios: Vec::new(),
            unranked,
            reason: Some(reason),
        }
    }

    /// The leader and the methods that are not behind it.
    pub fn staying(&self) -> Vec<usize> {
        let others = self.ratios.iter().filter(|ratio| ratio.place != Place::Behind);
        self.leader.into_iter().chain(others.map(|ratio| ratio.other)).collect()
    }
}

/// Judge methods of one comparison by their rates in a fixed number of rounds.
pub fn judge(methods: &[&Rates]) -> Judgement {
    let candidates: Vec<Candidate> = methods
        .iter()
        .map(|rates| Candidate { rates: (*rates).clone(), tried: u32::MAX, returned: Rates::default() })
        .collect();
    let comparison = std::slice::from_ref(&candidates);
    let status = elimination::statuses(comparison, &InterimAnalyses::once(), true).remove(0);
    judge_status(&candidates, &status)
}

/// Judge methods of one comparison as the elimination left them.
pub fn judge_status(candidates: &[Candidate], status: &ComparisonStatus) -> Judgement {
    let valid = |method: usize| candidates[method].rates.count();
    let (ranked, short): (Vec<usize>, Vec<usize>) =
        (0..candidates.len()).partition(|method| valid(*method) >= FEWEST_ROUNDS);
    let few =
        |method: usize| Unpaired::Few { valid: valid(method), returned: candidates[method].returned.count() };
    let mut unranked: Vec<(usize, Unpaired)> =
        short.into_iter().map(|method| (method, few(method))).collect();
    let rates: Vec<&Rates> = candidates.iter().map(|candidate| &candidate.rates).collect();
    let (leader, compared) = match (gap::leader(&rates), status.leader) {
        (Some(leader), _) => (leader, &[][..]),
        (None, Some(leader)) => (leader, &status.compared[..]),
        (None, None) => {
            return Judgement::not_comparable(too_few_methods(candidates.len(), ranked.len()), unranked);
        }
    };
    let mut ratios: Vec<Ratio> = compared.iter().map(Ratio::of).collect();
    ratios.retain(|ratio| ratio.other != leader);
    let is_new = |method: &usize| *method != leader && ratios.iter().all(|ratio| ratio.other != *method);
    let others: Vec<usize> = (0..candidates.len()).filter(is_new).collect();
    ratios.extend(others.into_iter().filter_map(|other| Ratio::of_gap(&rates, leader, other)));
    ratios.sort_by(|left, right| left.ratio.total_cmp(&right.ratio));
    let is_compared = |method: usize| method == leader || ratios.iter().any(|ratio| ratio.other == method);
    unranked.retain(|(method, _)| !is_compared(*method));
    let is_lonely =
        |method: &usize| !is_compared(*method) && paired_log_ratios(rates[leader], rates[*method]).is_empty();
    let lonely: Vec<usize> = (0..candidates.len()).filter(is_lonely).collect();
    let without_reason = lonely.iter().filter(|method| ranked.contains(method));
    unranked.extend(without_reason.map(|method| (*method, Unpaired::WithoutLeader)));
    let worst = ratios.iter().map(|ratio| ratio.place).filter(|place| *place != Place::Behind).max();
    let verdict = match worst {
        None | Some(Place::Behind) if lonely.is_empty() => Verdict::Best,
        None | Some(Place::Behind) => Verdict::Open,
        Some(Place::Tie) => Verdict::Tie,
        Some(Place::Close) => Verdict::Close,
        Some(Place::Open) => Verdict::Open,
    };
    Judgement { verdict, leader: Some(leader), ratios, unranked, reason: None }
}

impl Ratio {
    fn of(compared: &Compared) -> Self {
        // A claim at a stricter level bounds a method that is behind too.
        let most = if compared.is_behind { compared.interval.map(|ends| ends.high) } else { compared.most };
        let bound = most.map(|most| most.exp_m1().max(0.0));
        Self {
            other: compared.method,
            leader: compared.leader,
            ratio: compared.log_ratio.exp(),
            interval: compared.interval.filter(|_| !compared.changed).map(Interval::as_ratios),
            rounds: compared.rounds,
            place: match compared.is_behind {
                true if compared.changed => Place::Open,
                true => Place::Behind,
                false => Place::of_bound(bound),
            },
            changed: compared.changed,
            bound: bound.filter(|_| !compared.changed),
        }
    }

    /// A method that is behind the leader by a gap in few rounds, with the range of the rounds as
    /// the interval.
    fn of_gap(rates: &[&Rates], leader: usize, other: usize) -> Option<Self> {
        let log_ratios = gap::between(rates[leader], rates[other])?;
        Some(Self {
            other,
            leader,
            ratio: centre(&log_ratios).exp(),
            interval: Some(gap::range(&log_ratios).as_ratios()),
            rounds: log_ratios.len(),
            changed: false,
            place: Place::Behind,
            bound: None,
        })
    }
}

fn too_few_methods(methods: usize, ranked: usize) -> NoVerdict {
    match (methods, ranked) {
        (0, _) => NoVerdict::NoMethod,
        (1, 1) => NoVerdict::OneMethod,
        (_, 1) => NoVerdict::OneHasRounds,
        (_, 0) => NoVerdict::NoneHasRounds,
        _ => NoVerdict::NoCommonRound,
    }
}

/// The largest distance of a method from itself, as a share: that of the mean ratio between two
/// series of it; `None` if too few rounds have both.
pub fn drift(baseline: &Rates, control: &Rates) -> Option<f64> {
    let differences = paired_log_ratios(control, baseline);
    (differences.len() >= FEWEST_ROUNDS).then(|| centre(&differences).abs().exp_m1())
}

#[cfg(test)]
mod tests;
