//! The elimination: which methods of each comparison are still in question, analysis by analysis.
//!
//! All methods run the first rounds. At an *interim analysis*, after a number of rounds that is
//! known beforehand, each comparison is judged by the methods that are still in it:
//!
//! * the leader is *best* if it beats every rival at the level of the analysis: that decides the
//!   comparison (an intersection-union test, Berger 1982: the number of rivals needs no
//!   correction);
//! * else a rival is *behind* if the leader beats it at that level divided by the number of rivals
//!   (Bonferroni): it is eliminated, and later rounds go to those that stay;
//! * the rest *tie* if each is at most [`SMALLEST_DIFFERENCE`] behind with [`BOUND_LEVEL`]
//!   certainty: that decides it too.
//!
//! A method beats another if [`PairedTest`] says so and the estimate exceeds
//! [`SMALLEST_DIFFERENCE`].
//!
//! The analyses share [`FALSE_WINNERS`], so that stopping early costs no certainty. Half of it is
//! kept for the last analysis, whenever that comes. The first three have a tenth, a quarter and a
//! half of an ordinary share; shares add up to a little more than the whole, since analyses of the
//! same rounds are not independent. A run with a fixed number of rounds has one analysis, at its
//! end, with all of it.
//!
//! Methods that left are sampled again in *return rounds*, in the middle of the run and at its end.
//! One that is ahead of its leader there, by more than chance explains after the rounds before, is
//! not behind: the machine changed during the run.
//!
//! The elimination is a pure function of rates by round: an interrupted run goes on as it would
//! have, and whoever reads the run file sees the same elimination.

use pagewise_model::Plan;

use super::gap::{FEWEST_ROUNDS_OF_A_GAP, GAP};
use crate::statistics::paired::{FEWEST_ROUNDS, PairedTest, centre, is_lower};
use crate::statistics::{ByRound, Interval, lasting, paired_log_ratios};

/// Share of comparisons in which one of several equals may be called the best, and in which any
/// equal of the leader may be called behind.
pub const FALSE_WINNERS: f64 = 0.02;
/// Smallest difference that is claimed, however certain: as a share of the slower rate.
pub const SMALLEST_DIFFERENCE: f64 = 0.02;
/// Certainty of a bound: the interval's coverage.
pub const BOUND_LEVEL: f64 = 0.95;

/// Rounds after which quick runs are analysed.
const QUICK: [u32; 8] = [Plan::FIRST_ROUNDS, 7, 10, 14, 20, 28, 40, 56];
/// Further rounds of full runs.
const FULL: [u32; 4] = [80, 112, 160, 224];
/// Shares of the first analyses, in ordinary ones.
const FIRST: [f64; 3] = [0.1, 0.25, 0.5];
/// Analyses that share the half of the error that is not kept for the last one.
const QUICK_SHARES: f64 = 4.0;
const FULL_SHARES: f64 = 5.0;

/// Error probability of the claim that return rounds contradict any of the rounds before, for one
/// comparison.
const CHANGE_LEVEL: f64 = 0.01;

/// Rates of one method, by round with a valid sample of it.
pub type Rates = ByRound;

/// The rounds at which an elimination is analysed, and how much error each analysis may spend.
#[derive(Clone, Debug, PartialEq)]
pub struct InterimAnalyses {
    /// Rounds, ascending, with the two-sided level of each.
    by_rounds: Vec<(u32, f64)>,
    /// Level of the last analysis for a claim of the best, and for claims of those behind.
    last: (f64, f64),
}

impl InterimAnalyses {
    /// One analysis, after all rounds. The leader is chosen by the same rounds as those behind it,
    /// so these have half of the level.
    pub fn once() -> Self {
        Self { by_rounds: Vec::new(), last: (FALSE_WINNERS, FALSE_WINNERS / 2.0) }
    }

    /// The analyses of a run of `plan`.
    pub fn of(plan: &Plan) -> Self {
        match plan.budget {
            None => Self::once(),
            Some(_) if plan.rounds <= QUICK[QUICK.len() - 1] => Self::quick(),
            Some(_) => Self::full(),
        }
    }

    /// The analyses of a quick run.
    pub fn quick() -> Self {
        Self::spend(&QUICK, QUICK_SHARES)
    }

    /// The analyses of a full run.
    pub fn full() -> Self {
        Self::spend(&[&QUICK[..], &FULL].concat(), FULL_SHARES)
    }

    fn spend(rounds: &[u32], shares: f64) -> Self {
        let share = FALSE_WINNERS / 2.0 / shares;
        let level = |index: usize| share * FIRST.get(index).copied().unwrap_or(1.0);
        let analyses = rounds.iter().enumerate().map(|(index, rounds)| (*rounds, level(index)));
        Self { by_rounds: analyses.collect(), last: (FALSE_WINNERS / 2.0, FALSE_WINNERS / 2.0) }
    }

    /// Rounds of the last analysis; 0 if it is not known.
    pub fn last(&self) -> u32 {
        self.by_rounds.last().map_or(0, |(rounds, _)| *rounds)
    }

    /// Rounds of the analysis that follows `rounds`; `None` after the last.
    pub fn next(&self, rounds: u32) -> Option<u32> {
        self.by_rounds.iter().map(|(analysis, _)| *analysis).find(|analysis| *analysis > rounds)
    }
}

/// A method of a comparison.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Rates.
    pub rates: Rates,
    /// Rounds from the first that were tried, valid or not; [`u32::MAX`] for a method that takes no
    /// more samples.
    pub tried: u32,
    /// Rates in return rounds.
    pub returned: Rates,
}

/// The leader compared with a rival at an interim analysis: the one at which it was eliminated, or
/// the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The rival.
    pub method: usize,
    /// The leader at that analysis.
    pub leader: usize,
    /// Common rounds at that analysis.
    pub rounds: usize,
    /// Two-sided level of the claim that it is behind.
    pub level: f64,
    /// True if the claim holds: it was eliminated.
    pub is_behind: bool,
    /// True if return rounds contradict that claim.
    pub changed: bool,
    /// Logarithm of the leader's rate over the rival's.
    pub log_ratio: f64,
    /// Interval of that logarithm at the level of the claim; `None` with too few rounds.
    pub interval: Option<Interval>,
    /// The largest logarithm that is possible with [`BOUND_LEVEL`] certainty; `None` with too few
    /// rounds.
    pub most: Option<f64>,
}

/// A comparison as the elimination left it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonStatus {
    /// The method that is ahead; `None` before the first analysis.
    pub leader: Option<usize>,
    /// Methods that are still in it, in their order.
    pub staying: Vec<usize>,
    /// The rivals.
    pub compared: Vec<Compared>,
    /// True if no further round can change it.
    pub decided: bool,
    /// Factor by which intervals are longer because disturbances outlast rounds.
    pub inflation: f64,
}

/// Run the elimination over all comparisons of a run. `ended` says that no further rounds come.
pub fn statuses(
    comparisons: &[Vec<Candidate>],
    analyses: &InterimAnalyses,
    ended: bool,
) -> Vec<ComparisonStatus> {
    let mut statuses: Vec<ComparisonStatus> = comparisons
        .iter()
        .map(|candidates| ComparisonStatus {
            staying: (0..candidates.len()).collect(),
            inflation: 1.0,
            ..ComparisonStatus::default()
        })
        .collect();
    let mut seen = vec![0; comparisons.len()];
    for (rounds, level) in &analyses.by_rounds {
        let reached = |index: usize, statuses: &[ComparisonStatus]| {
            let ComparisonStatus { staying, decided, .. } = &statuses[index];
            !decided && staying.len() > 1 && has(&comparisons[index], staying, *rounds)
        };
        let here: Vec<usize> = (0..comparisons.len()).filter(|index| reached(*index, &statuses)).collect();
        let inflation = inflation(comparisons, &statuses, &here, *rounds);
        for index in here {
            // With no round beyond it, this analysis is the last.
            let is_last = ended && !goes_on(&comparisons[index], &statuses[index].staying, *rounds);
            let levels =
                if is_last || analyses.next(*rounds).is_none() { analyses.last } else { (*level, *level) };
            analyse(&comparisons[index], &mut statuses[index], *rounds, levels, inflation);
            seen[index] = *rounds;
        }
    }
    if ended {
        // What was left of the budget bought rounds that reach no analysis.
        let beyond = |index: usize| {
            let staying = &statuses[index].staying;
            let is_once = analyses.by_rounds.is_empty();
            !statuses[index].decided
                && staying.len() > 1
                && (is_once || goes_on(&comparisons[index], staying, seen[index]))
        };
        let here: Vec<usize> = (0..comparisons.len()).filter(|index| beyond(*index)).collect();
        let inflation = inflation(comparisons, &statuses, &here, u32::MAX);
        for index in here {
            analyse(&comparisons[index], &mut statuses[index], u32::MAX, analyses.last, inflation);
        }
    }
    for (candidates, status) in comparisons.iter().zip(&mut statuses) {
        let behind = status.compared.iter().filter(|compared| compared.is_behind).count();
        for compared in status.compared.iter_mut().filter(|compared| compared.is_behind) {
            let level = CHANGE_LEVEL / behind as f64;
            compared.changed = has_changed(&candidates[compared.leader], &candidates[compared.method], level);
        }
    }
    statuses
}

/// True if a method that was eliminated is ahead of its leader in each return round, since one
/// round may be an outlier, and further than chance explains.
fn has_changed(leader: &Candidate, method: &Candidate, level: f64) -> bool {
    let before = paired_log_ratios(&leader.rates, &method.rates);
    let after = paired_log_ratios(&leader.returned, &method.returned);
    after.iter().all(|ratio| *ratio < 0.0) && is_lower(&after, &before, level)
}

/// Samples to take next: a number of rounds of some methods of each comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The first of these rounds.
    pub from: u32,
    /// The round after the last.
    pub to: u32,
    /// Methods that stay, by comparison; none of one that is decided.
    pub methods: Vec<Vec<usize>>,
}

/// Return what to sample next; `None`: nothing is undecided, or the budget is spent. `costs` are
/// the seconds of a sample by comparison and method, `left` those that remain of the budget. The
/// first analysis is paid whatever it costs.
pub fn next(
    comparisons: &[Vec<Candidate>],
    analyses: &InterimAnalyses,
    costs: &[Vec<f64>],
    left: f64,
) -> Option<Stage> {
    let statuses = statuses(comparisons, analyses, false);
    // One alone changes nothing with further rounds.
    let is_open = |candidates: &[Candidate], status: &ComparisonStatus| {
        let going_on = status.staying.iter().filter(|method| candidates[**method].tried < u32::MAX);
        !status.decided && going_on.count() > 1
    };
    let methods: Vec<Vec<usize>> = comparisons
        .iter()
        .zip(&statuses)
        .map(
            |(candidates, status)| {
                if is_open(candidates, status) { status.staying.clone() } else { Vec::new() }
            },
        )
        .collect();
    let pairs = || {
        methods
            .iter()
            .enumerate()
            .flat_map(|(index, methods)| methods.iter().map(move |method| (index, *method)))
    };
    let from = pairs().map(|(index, method)| comparisons[index][method].tried).min()?;
    let to = analyses.next(from)?;
    let cost: f64 = pairs().map(|(index, method)| costs[index][method]).sum();
    // Rounding must not take a round from a budget that pays for it.
    let paid = (left.max(0.0) / cost.max(1e-9) + 1e-9).floor().min(f64::from(u32::MAX)) as u32;
    let to = if from < *analyses.by_rounds.first().map(|(first, _)| first)? {
        to
    } else {
        to.min(from.saturating_add(paid))
    };
    (to > from).then_some(Stage { from, to, methods })
}

/// True if every method that stays was tried in so many rounds.
fn has(candidates: &[Candidate], staying: &[usize], rounds: u32) -> bool {
    staying.iter().all(|method| candidates[*method].tried >= rounds)
}

/// True if any of these methods was tried in a later round. Those that are found to be behind at a
/// analysis have none, and the others go on.
fn goes_on(candidates: &[Candidate], methods: &[usize], rounds: u32) -> bool {
    methods.iter().any(|method| (rounds + 1..u32::MAX).contains(&candidates[*method].tried))
}

/// The factor for disturbances that outlast rounds, from the methods that stay in these
/// comparisons.
fn inflation(
    comparisons: &[Vec<Candidate>],
    statuses: &[ComparisonStatus],
    here: &[usize],
    rounds: u32,
) -> f64 {
    let rates: Vec<Vec<Rates>> = here
        .iter()
        .map(|index| {
            let staying = statuses[*index].staying.iter();
            staying.map(|method| before(&comparisons[*index][*method].rates, rounds)).collect()
        })
        .collect();
    lasting::inflation(&rates)
}

/// Rates of the first rounds.
fn before(rates: &Rates, rounds: u32) -> Rates {
    rates.clone().within(|round| round < rounds)
}

/// Judge one comparison at an interim analysis, with the levels for the best and for those behind.
fn analyse(
    candidates: &[Candidate],
    status: &mut ComparisonStatus,
    rounds: u32,
    (best, behind): (f64, f64),
    inflation: f64,
) {
    let rates: Vec<Rates> = candidates.iter().map(|candidate| before(&candidate.rates, rounds)).collect();
    let ranked: Vec<usize> =
        status.staying.iter().copied().filter(|method| rates[*method].count() >= FEWEST_ROUNDS).collect();
    status.inflation = inflation;
    if ranked.len() < 2 {
        return;
    }
    let leader = leader(&rates.iter().collect::<Vec<_>>(), &ranked);
    let common = |method: &usize| paired_log_ratios(&rates[leader], &rates[*method]);
    // One that lost its samples is a rival too, of which nothing can be claimed, unless those left
    // show otherwise.
    let is_rival = |method: &usize| {
        let common = common(method);
        *method != leader && !common.is_empty() && (ranked.contains(method) || !shows_behind(&common))
    };
    let rivals: Vec<usize> = status.staying.iter().copied().filter(is_rival).collect();
    if rivals.is_empty() {
        return;
    }
    // Of one that shares no round with the leader nothing is known.
    let is_lonely = |method: &usize| *method != leader && common(method).is_empty();
    let is_anyone_lonely = status.staying.iter().any(is_lonely);
    let differences = rivals.iter().map(|rival| paired_log_ratios(&rates[leader], &rates[*rival]));
    let test = PairedTest::new(differences.collect(), inflation);
    let least = SMALLEST_DIFFERENCE.ln_1p();
    let beats =
        |index: usize, level: f64| test.estimate(index) > least && test.exceeds(index, 0.0, level / 2.0);
    let wins = !is_anyone_lonely && (0..rivals.len()).all(|index| beats(index, best));
    let level = if wins { best } else { behind / rivals.len().max(1) as f64 };
    status.leader = Some(leader);
    status.compared.retain(|compared| compared.is_behind);
    for (index, method) in rivals.iter().copied().enumerate() {
        let is_behind = beats(index, level);
        if is_behind {
            status.staying.retain(|staying| *staying != method);
        }
        status.compared.push(Compared {
            method,
            leader,
            rounds: test.rounds(index),
            level,
            is_behind,
            changed: false,
            log_ratio: test.estimate(index),
            interval: test.interval(index, level),
            most: test.upper_end(index, 1.0 - BOUND_LEVEL),
        });
    }
    let stays = |index: &usize| status.staying.contains(&rivals[*index]);
    let tie = |index: usize| test.falls_below(index, least, (1.0 - BOUND_LEVEL) / 2.0);
    status.decided = wins || !is_anyone_lonely && (0..rivals.len()).filter(stays).all(tie);
}

/// True if too few log ratios for a test show that the leader is faster: by over 2 % in each of
/// three rounds, or by a gap in each of fewer.
fn shows_behind(log_ratios: &[f64]) -> bool {
    let least = match log_ratios.len() {
        0 => return false,
        FEWEST_ROUNDS_OF_A_GAP.. => 1.0 + SMALLEST_DIFFERENCE,
        _ => GAP,
    };
    log_ratios.iter().all(|ratio| *ratio > least.ln())
}

/// The method that is ahead of the most others by the estimate of their ratio (Copeland); among
/// equals the one that is further ahead of all. Rates by themselves would favour a method whose
/// invalid samples fell into slow rounds.
pub(super) fn leader(methods: &[&Rates], ranked: &[usize]) -> usize {
    let (mut wins, mut ahead) = (vec![0; methods.len()], vec![0.0; methods.len()]);
    for (index, left) in ranked.iter().enumerate() {
        for right in &ranked[index + 1..] {
            let by = centre(&paired_log_ratios(methods[*left], methods[*right]));
            ahead[*left] += by;
            ahead[*right] -= by;
            wins[*left] += usize::from(by > 0.0);
            wins[*right] += usize::from(by < 0.0);
        }
    }
    let best = ranked.iter().copied().max_by(|left, right| {
        // Of equal methods the first written wins, hence the reversed indices.
        let further = || ahead[*left].total_cmp(&ahead[*right]);
        wins[*left].cmp(&wins[*right]).then_with(further).then(right.cmp(left))
    });
    best.expect("at least two are ranked")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two methods with a tiny scatter, and one far behind.
    fn candidates(tried: [u32; 3]) -> Vec<Candidate> {
        let rate = |method: usize, round: u32| {
            let scatter = 1.0 + 0.001 * f64::from((round * 7 + method as u32 * 3) % 5);
            scatter * [1.0, 1.0, 0.5][method]
        };
        let of = |method: usize| Candidate {
            rates: (0..tried[method].min(60)).map(|round| (round, rate(method, round))).collect(),
            tried: tried[method],
            returned: Rates::default(),
        };
        (0..3).map(of).collect()
    }

    #[test]
    fn what_is_behind_leaves_and_the_rest_goes_on() {
        let costs = [vec![1.0; 3]];
        let step =
            |tried: [u32; 3], left: f64| next(&[candidates(tried)], &InterimAnalyses::quick(), &costs, left);
        let first = Stage { from: 0, to: 5, methods: vec![vec![0, 1, 2]] };
        assert_eq!(step([0; 3], 0.0), Some(first), "the first analysis is paid whatever it costs");
        let tie = step([5; 3], 100.0);
        assert_eq!(tie, None, "the two are a tie within 2 %, and the third is behind: {tie:?}");
    }

    #[test]
    fn a_look_is_the_last_only_if_nobody_goes_on() {
        // The third left at five rounds; the others went on to ten.
        let level = |tried: [u32; 3], ended: bool| {
            let status = statuses(&[candidates(tried)], &InterimAnalyses::quick(), ended).remove(0);
            status.compared.iter().find(|compared| compared.method == 2).map(|compared| compared.level)
        };
        let of_analysis = InterimAnalyses::quick().by_rounds[0].1 / 2.0;
        assert_eq!(level([10, 10, 5], true), Some(of_analysis));
        assert_eq!(level([10, 10, 5], false), Some(of_analysis));
        assert_eq!(level([5; 3], false), Some(of_analysis));
        assert_eq!(level([5; 3], true), Some(FALSE_WINNERS / 2.0 / 2.0));
    }

    #[test]
    fn return_rounds_show_that_the_machine_changed() {
        let changed = |returned: [f64; 2]| {
            let mut candidates = candidates([10, 10, 5]);
            candidates[0].returned = [(56, 1.0), (57, 1.01)].into_iter().collect();
            candidates[2].returned = [(56, returned[0]), (57, returned[1])].into_iter().collect();
            let status = statuses(&[candidates], &InterimAnalyses::quick(), true).remove(0);
            status.compared.iter().find(|compared| compared.method == 2).map(|compared| compared.changed)
        };
        assert_eq!(changed([0.5, 0.51]), Some(false));
        assert_eq!(changed([0.9, 0.92]), Some(false), "closer than before, and still behind");
        assert_eq!(changed([1.2, 1.3]), Some(true));
    }

    #[test]
    fn the_levels_of_all_analyses_are_spent_once() {
        for analyses in [InterimAnalyses::quick(), InterimAnalyses::full()] {
            let (last, earlier) = analyses.by_rounds.split_last().expect("analyses");
            let spent: f64 = earlier.iter().map(|(_, level)| level).sum();
            assert!(spent <= 1.5 * FALSE_WINNERS, "analyses share rounds: {spent}");
            assert!(analyses.last.0 >= last.1 && analyses.next(last.0).is_none());
        }
        assert_eq!(InterimAnalyses::once().next(0), None);
    }

    #[test]
    fn a_budget_buys_whole_rounds() {
        let noisy = |method: u32| Candidate {
            rates: (0..5).map(|round| (round, f64::from(1 + (round * 3 + method * 2) % 4))).collect(),
            tried: 5,
            returned: Rates::default(),
        };
        let comparison = [vec![noisy(0), noisy(1)]];
        let to = |left: f64| {
            next(&comparison, &InterimAnalyses::quick(), &[vec![1.0, 1.0]], left).map(|step| step.to)
        };
        assert_eq!((to(1.9), to(2.0), to(3.9), to(100.0)), (None, Some(6), Some(6), Some(7)));
    }
}
