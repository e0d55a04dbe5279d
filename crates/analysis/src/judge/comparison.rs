//! One comparison of the judged JSON: the ranked methods, and the verdict among them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pagewise_model::sample::Measurement;
use pagewise_model::{CacheState, Conditions, Consume, MethodOption, Role, Workload};
use serde::Serialize;

use super::label::label;
use crate::judge::collected::CellSamples;
use crate::judge::elimination::{Candidate, InterimAnalyses, statuses};
use crate::judge::reasons::{NoVerdict, Shortfall, UnrankedReason};
use crate::judge::verdict::{self, BOUND_LEVEL, FEWEST_ROUNDS, Judgement, NEAR, Place, Rates, Verdict};
use crate::proof::measured::{covered, region_ns};
use crate::statistics::paired::centre;
use crate::statistics::{median, paired_log_ratios};

/// Conditions with their label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ComparedConditions {
    /// `random-read · 16 reads of 16 KiB · warm · 1 thread · 1 GiB`.
    pub label: String,
    /// The conditions themselves.
    #[serde(flatten)]
    pub conditions: Conditions,
}

/// The leader compared with one other method.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RatioToLeader {
    /// The other method.
    pub method: String,
    /// Cell.
    pub cell: String,
    /// The method that it is compared with: the leader, or, if it was eliminated, the leader of
    /// that time.
    pub leader: String,
    /// Place.
    pub place: Place,
    /// Leader over other: a trimmed mean of the paired ratios.
    pub ratio: f64,
    /// Interval of that ratio, at the level of the claim that it is behind.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Coverage of that interval: that of the claim, or less where it is the range of fewer than
    /// five rounds.
    pub coverage: Option<f64>,
    /// The most that it may be behind, as a share, with a certainty of 95 % or more; `None` with
    /// too few rounds.
    pub bound: Option<f64>,
    /// Rounds in which both are valid, before it was eliminated.
    pub rounds: usize,
    /// True if it was behind at first, and ahead in the rounds in which it was sampled again.
    pub changed: bool,
}

impl RatioToLeader {
    /// True if it is behind by a gap in few rounds, whose interval is their range: less certain
    /// than others.
    pub fn is_gap(&self) -> bool {
        self.coverage.is_some_and(|coverage| coverage < BOUND_LEVEL)
    }
}

/// A method that is shown but not ranked.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Unranked {
    /// The method.
    pub method: String,
    /// Cell.
    pub cell: String,
    /// The reason.
    #[serde(skip)]
    pub reason: UnrankedReason,
    /// Leader over it, by the rounds that both have, which are too few to rank it.
    pub estimate: Option<f64>,
}

/// One set of conditions with all methods measured under it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Conditions that are equal for all.
    pub conditions: ComparedConditions,
    /// Ids of the measured cells, in the order of the plan.
    pub cells: Vec<String>,
    /// Ids of the control cells.
    pub controls: Vec<String>,
    /// Verdict.
    pub verdict: Verdict,
    /// The method that beats every other.
    pub best: Option<String>,
    /// The method that is ahead of those with enough rounds, whether or not it is the best for
    /// certain. One with fewer may be ahead of it: then no method is recommended.
    pub leader: Option<String>,
    /// Factor by which intervals are longer because disturbances outlast rounds; 1 if they do not.
    pub inflation: f64,
    /// Valid rounds of the leader.
    pub rounds: usize,
    /// The leader compared with each other ranked method, the closest first.
    pub ratios: Vec<RatioToLeader>,
    /// Methods that are shown but not ranked.
    #[serde(skip)]
    pub unranked: Vec<Unranked>,
    /// Reason that there is no verdict.
    #[serde(skip)]
    pub reason: Option<NoVerdict>,
    /// State of the page cache; `None` if the state was prepared or is unknown.
    pub as_is: Option<AsIs>,
}

/// Share of the span in the page cache before samples under `as-is`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AsIs {
    /// The smallest share before a sample of the rounds that count.
    pub resident_share_low: f64,
    /// The largest.
    pub resident_share_high: f64,
    /// In the first round, the share farthest from the rounds that count.
    pub resident_share_first: f64,
    /// Rounds that count.
    pub rounds_counted: usize,
    /// Rounds in which the share is known.
    pub rounds: usize,
}

impl AsIs {
    /// True if the cache of the rounds that count differed from the first round's.
    pub fn changed(&self) -> bool {
        let first = self.resident_share_first;
        first < self.resident_share_low - SAME_CACHE || first > self.resident_share_high + SAME_CACHE
    }
}

impl Comparison {
    /// The leader and the methods that are not behind it, the closest first.
    pub fn staying(&self) -> Vec<&str> {
        let others = self.ratios.iter().filter(|ratio| ratio.place != Place::Behind);
        self.leader.as_deref().into_iter().chain(others.map(|ratio| ratio.method.as_str())).collect()
    }

    /// The method that is the furthest ahead of the leader in too few rounds to be ranked: whoever
    /// leads the others may be slower than it.
    pub fn ahead_of_leader(&self) -> Option<&RatioToLeader> {
        let is_ahead = |ratio: &&RatioToLeader| ratio.bound.is_none() && ratio.ratio < 1.0 / NEAR;
        self.ratios.iter().filter(|ratio| ratio.place == Place::Open).find(is_ahead)
    }

    /// The method that is the closest to the best by its ratio, if that is one with too few rounds
    /// to be ranked, and the ratio.
    pub fn closest_unranked(&self) -> Option<(&str, f64)> {
        let unranked = self.unranked.iter().filter_map(|one| Some((one.method.as_str(), one.estimate?)));
        let (method, ratio) = unranked.min_by(|left, right| left.1.total_cmp(&right.1))?;
        let is_closest = self.ratios.iter().all(|ranked| ranked.ratio > ratio);
        is_closest.then_some((method, ratio))
    }

    /// The most that a method may be behind the leader, as a share: 0 for the leader itself; `None`
    /// if it is not ranked, or has too few rounds for a bound.
    pub fn bound(&self, method: &str) -> Option<f64> {
        if self.leader.as_deref() == Some(method) {
            return Some(0.0);
        }
        self.ratios.iter().find(|ratio| ratio.method == method)?.bound
    }
}

/// All cells under one set of conditions.
pub(crate) struct Side<'a> {
    conditions: &'a Conditions,
    measured: Vec<&'a CellSamples<'a>>,
    controls: Vec<&'a CellSamples<'a>>,
}

/// Group the cells to be compared, in the order of the plan.
pub(crate) fn sides<'a>(cells: &'a [CellSamples<'a>]) -> Vec<Side<'a>> {
    let mut index_of: HashMap<&Conditions, usize> = HashMap::new();
    let mut sides: Vec<Side<'a>> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.cell.role == Role::Measured) {
        let conditions = &cell.cell.conditions;
        let index = *index_of.entry(conditions).or_insert_with(|| {
            sides.push(Side { conditions, measured: Vec::new(), controls: Vec::new() });
            sides.len() - 1
        });
        sides[index].measured.push(cell);
    }
    for cell in cells.iter().filter(|cell| cell.cell.role == Role::Control) {
        if let Some(index) = index_of.get(&cell.cell.conditions) {
            sides[*index].controls.push(cell);
        }
    }
    sides
}

/// The ranked figures of the cells under each set of conditions.
pub fn rates_by_conditions(cells: &[CellSamples<'_>]) -> Vec<Vec<Rates>> {
    sides(cells).iter().map(Side::rates).collect()
}

impl<'a> Side<'a> {
    /// The ranked figures of its measured cells.
    pub(crate) fn rates(&self) -> Vec<Rates> {
        self.measured.iter().map(|cell| cell.rates()).collect()
    }

    /// The control cells, each with the measured cell of the same method.
    pub(crate) fn controls(&self) -> impl Iterator<Item = (&'a CellSamples<'a>, &'a CellSamples<'a>)> + '_ {
        self.controls.iter().filter_map(|control| {
            let baseline = self.measured.iter().find(|cell| cell.cell.method == control.cell.method)?;
            Some((*baseline, *control))
        })
    }
}

/// Judge all comparisons of a run by one elimination. `ended` says that no further rounds come.
pub(crate) fn compare_all(sides: &[Side<'_>], analyses: &InterimAnalyses, ended: bool) -> Vec<Comparison> {
    let ranked: Vec<RankedCells<'_>> = sides.iter().map(RankedCells::of).collect();
    let candidates: Vec<Vec<Candidate>> = ranked.iter().map(RankedCells::candidates).collect();
    let statuses = statuses(&candidates, analyses, ended);
    let judged = sides.iter().zip(&ranked).zip(candidates.iter().zip(&statuses));
    judged
        .map(|((side, ranked), (candidates, status))| {
            compare(side, ranked, verdict::judge_status(candidates, status), status.inflation)
        })
        .collect()
}

/// The cells of a side that are ranked, and those that are not.
pub(crate) struct RankedCells<'a> {
    pub(crate) ranked: Vec<&'a CellSamples<'a>>,
    unranked: Vec<Unranked>,
    settled: Settled,
}

impl<'a> RankedCells<'a> {
    pub(crate) fn of(side: &Side<'a>) -> Self {
        let (mut ranked, mut unranked) = (Vec::new(), Vec::new());
        for cell in &side.measured {
            match not_ranked(cell) {
                Some(reason) => unranked.push(unranked_cell(cell, reason, None)),
                None => ranked.push(*cell),
            }
        }
        let settled = settled_rounds(side.conditions, &ranked);
        Self { ranked, unranked, settled }
    }

    /// The ranked cells as methods of an elimination, in the same order.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let candidate = |cell: &&CellSamples<'_>| {
            let in_regular = |is: bool| self.settled.rates(cell).within(|round| (round < cell.regular) == is);
            Candidate { rates: in_regular(true), tried: cell.regular_rounds(), returned: in_regular(false) }
        };
        self.ranked.iter().map(candidate).collect()
    }
}

fn compare(side: &Side<'_>, cells: &RankedCells<'_>, judgement: Judgement, inflation: f64) -> Comparison {
    let Side { conditions, measured, controls } = side;
    let RankedCells { ranked, settled, .. } = cells;
    let judgement = trusted(conditions, ranked, judgement, settled);
    let mut unranked = cells.unranked.clone();
    unranked.extend(judgement.unranked.iter().map(|(index, rounds)| {
        let cell = ranked[*index];
        let samples = without_figure(cell);
        let besides = (samples > 0).then(|| (shortfall(cell), samples));
        let reason = UnrankedReason::Unpaired { rounds: *rounds, besides };
        let over = |leader: usize| paired_log_ratios(&settled.rates(ranked[leader]), &settled.rates(cell));
        let log_ratios = judgement.leader.map(over).unwrap_or_default();
        let estimate = (!log_ratios.is_empty()).then(|| centre(&log_ratios).exp());
        unranked_cell(cell, reason, estimate)
    }));
    let method = |index: usize| ranked[index].cell.method.to_string();
    let leader = judgement.leader.map(method);
    Comparison {
        conditions: ComparedConditions { label: label(conditions), conditions: (*conditions).clone() },
        cells: measured.iter().map(|cell| cell.id.clone()).collect(),
        controls: controls.iter().map(|cell| cell.id.clone()).collect(),
        verdict: judgement.verdict,
        best: leader.clone().filter(|_| judgement.verdict == Verdict::Best),
        leader,
        inflation,
        rounds: judgement.leader.map_or(0, |leader| settled.rates(ranked[leader]).count()),
        ratios: judgement
            .ratios
            .iter()
            .map(|ratio| RatioToLeader {
                method: method(ratio.other),
                cell: ranked[ratio.other].id.clone(),
                leader: method(ratio.leader),
                place: ratio.place,
                ratio: ratio.ratio,
                low: ratio.interval.map(|interval| interval.low),
                high: ratio.interval.map(|interval| interval.high),
                coverage: ratio.interval.map(|interval| interval.coverage),
                bound: ratio.bound,
                rounds: ratio.rounds,
                changed: ratio.changed,
            })
            .collect(),
        unranked,
        reason: judgement.reason.map(|reason| match (&ranked[..], measured.len()) {
            ([only], 2..) if settled.rates(only).count() >= FEWEST_ROUNDS => {
                NoVerdict::OneRanked(only.cell.method.to_string())
            }
            ([], _) if measured.iter().any(|cell| cell.misses_rate()) => NoVerdict::NoneKeepsRate,
            _ => reason,
        }),
        as_is: as_is(conditions, ranked, settled),
    }
}

fn unranked_cell(cell: &CellSamples<'_>, reason: UnrankedReason, estimate: Option<f64>) -> Unranked {
    Unranked { method: cell.cell.method.to_string(), cell: cell.id.clone(), reason, estimate }
}

/// Reason that a method is shown but not ranked, whatever its rate.
fn not_ranked(cell: &CellSamples<'_>) -> Option<UnrankedReason> {
    let (method, conditions) = (&cell.cell.method, &cell.cell.conditions);
    if let Some(reason) = cell.unavailable() {
        return Some(UnrankedReason::Unavailable(reason.to_string()));
    }
    if method.has(MethodOption::InPlace) && conditions.consume() == Some(Consume::Touch) {
        return Some(UnrankedReason::TouchedInPlace);
    }
    if method.is_bound(&conditions.work) {
        return Some(UnrankedReason::Independent);
    }
    // Set-up is a part of one-shot work.
    let cold = matches!(conditions.cache, CacheState::Cold | CacheState::ColdStart);
    if cold && method.reads_all_in_setup() && !conditions.is_one_shot() {
        return Some(UnrankedReason::ReadInSetUp);
    }
    if conditions.cache == CacheState::ColdStart && !cell.cell.depends_on_cache() {
        return Some(UnrankedReason::BypassesCache);
    }
    let valid = cell.valid().count();
    if valid > 0 && without_figure(cell) == valid {
        return Some(UnrankedReason::WithoutFigure(shortfall(cell)));
    }
    (valid == 0).then_some(UnrankedReason::NoValidSample)
}

/// Reason that valid samples of a cell have no figure.
fn shortfall(cell: &CellSamples<'_>) -> Shortfall {
    cell.rate_shortfall().or_else(|| not_covered(cell)).unwrap_or(Shortfall::NotWarm)
}

/// The work that a method did not complete within the time limit of a sample; `None` if it
/// completed all.
fn not_covered(cell: &CellSamples<'_>) -> Option<Shortfall> {
    let part = |figure: fn(&Measurement) -> f64| {
        let of_parts = cell.valid().map(|(measurement, _)| measurement);
        let of_parts =
            of_parts.filter(|measurement| covered(cell.cell, measurement).is_some_and(|share| share < 1.0));
        median(&of_parts.map(figure).collect::<Vec<_>>())
    };
    let of = cell.cell.conditions.fixed_operations()? as f64;
    let (operations, measured_ns) = (
        part(|measurement| measurement.operations as f64)?,
        part(|measurement| region_ns(measurement) as f64)?,
    );
    let is_ring = cell.cell.conditions.workload() == Workload::Append;
    Some(Shortfall::NotCovered { operations, of, is_ring, measured_ns })
}

/// Number of valid samples without a ranked figure: cold starts that did not become warm, work that
/// was not completed, rates that were not kept.
fn without_figure(cell: &CellSamples<'_>) -> usize {
    cell.valid().count() - cell.rates().count()
}

/// The rounds in which a ranked cell has a valid sample, and whether each counts.
struct Settled(BTreeMap<u32, bool>);

impl Settled {
    fn counts(&self, round: u32) -> bool {
        self.0.get(&round).copied().unwrap_or(false)
    }

    /// The rates of a cell in the rounds that count.
    fn rates(&self, cell: &CellSamples<'_>) -> Rates {
        cell.rates().within(|round| self.counts(round))
    }

    fn count(&self) -> usize {
        self.0.values().filter(|counts| **counts).count()
    }
}

/// The judgement, unless the page cache makes its rounds incomparable.
fn trusted(
    conditions: &Conditions,
    ranked: &[&CellSamples<'_>],
    judgement: Judgement,
    settled: &Settled,
) -> Judgement {
    let spoilt = match judgement.verdict {
        Verdict::NotComparable => cache_that_changed(conditions, ranked, settled),
        _ => cache_that_is_unknown(conditions, ranked),
    };
    match spoilt {
        Some(reason) => Judgement::not_comparable(reason, judgement.unranked),
        None => judgement,
    }
}

/// Caches whose sizes differ by less than this share of the span are the same.
const SAME_CACHE: f64 = 0.01;

/// Residency before each valid sample of the methods that read through the cache, by round.
fn residencies<'a>(ranked: &'a [&CellSamples<'_>]) -> impl Iterator<Item = (u32, Option<u64>)> + 'a {
    ranked.iter().filter(|cell| cell.cell.depends_on_cache()).flat_map(|cell| {
        cell.rounds.iter().filter_map(|(round, sample)| {
            let (_, evidence) = sample.valid()?;
            Some((*round, evidence.resident_before_bytes))
        })
    })
}

/// The rounds that count. Under `as-is`, those in which every sample found the cache as the last
/// rounds did: samples fill the cache for later ones, and rounds are not alike until it has
/// settled.
fn settled_rounds(conditions: &Conditions, ranked: &[&CellSamples<'_>]) -> Settled {
    let rounds = ranked.iter().flat_map(|cell| cell.rounds.keys());
    let mut settled = Settled(rounds.map(|round| (*round, true)).collect());
    if conditions.cache != CacheState::AsIs {
        return settled;
    }
    let known: Vec<(u32, u64)> =
        residencies(ranked).filter_map(|(round, resident)| Some((round, resident?))).collect();
    let Some(last) = known.iter().map(|(round, _)| *round).max() else { return settled };
    let of_last = known.iter().filter(|(round, _)| *round == last).map(|(_, resident)| *resident);
    let Some(settled_at) = of_last.max() else { return settled };
    let tolerance = conditions.span_bytes.0 as f64 * SAME_CACHE;
    for (round, resident) in known {
        let is_alike = resident.abs_diff(settled_at) as f64 <= tolerance;
        settled.0.entry(round).and_modify(|counts| *counts &= is_alike);
    }
    settled
}

/// Under `as-is`, the state of the cache in the rounds that count and in the first one.
fn as_is(conditions: &Conditions, ranked: &[&CellSamples<'_>], settled: &Settled) -> Option<AsIs> {
    if conditions.cache != CacheState::AsIs {
        return None;
    }
    let share = |bytes: u64| bytes as f64 / conditions.span_bytes.0.max(1) as f64;
    let known: Vec<(u32, f64)> =
        residencies(ranked).filter_map(|(round, resident)| Some((round, share(resident?)))).collect();
    let counted = || known.iter().filter(|(round, _)| settled.counts(*round)).map(|(_, share)| *share);
    let (low, high) = (counted().min_by(f64::total_cmp)?, counted().max_by(f64::total_cmp)?);
    let first_round = known.iter().map(|(round, _)| *round).min()?;
    let distance = |share: f64| (low - share).max(share - high);
    let of_first = known.iter().filter(|(round, _)| *round == first_round).map(|(_, share)| *share);
    let rounds: BTreeSet<u32> = known.iter().map(|(round, _)| *round).collect();
    Some(AsIs {
        resident_share_low: low,
        resident_share_high: high,
        resident_share_first: of_first.max_by(|left, right| distance(*left).total_cmp(&distance(*right)))?,
        rounds_counted: rounds.iter().filter(|round| settled.counts(**round)).count(),
        rounds: rounds.len(),
    })
}

/// Under `as-is`, the change of the cache, if rounds were left out for it.
fn cache_that_changed(
    conditions: &Conditions,
    ranked: &[&CellSamples<'_>],
    settled: &Settled,
) -> Option<NoVerdict> {
    if settled.count() == settled.0.len() {
        return None;
    }
    let known: Vec<u64> = residencies(ranked).filter_map(|(_, resident)| resident).collect();
    let share = |bytes: &u64| *bytes as f64 / conditions.span_bytes.0.max(1) as f64;
    Some(NoVerdict::CacheChanged {
        low: share(known.iter().min()?),
        high: share(known.iter().max()?),
        alike: settled.count(),
        rounds: settled.0.len(),
    })
}

/// Under `as-is`, a cache of unknown state must have been full: then nothing came from the device.
fn cache_that_is_unknown(conditions: &Conditions, ranked: &[&CellSamples<'_>]) -> Option<NoVerdict> {
    if conditions.cache != CacheState::AsIs || residencies(ranked).all(|(_, resident)| resident.is_some()) {
        return None;
    }
    let from_the_cache = |cell: &&CellSamples<'_>| {
        cell.valid().all(|(_, seen)| {
            seen.device_read_bytes.is_some_and(|read| read as f64 <= seen.requested_bytes as f64 * 0.001)
        })
    };
    let full =
        ranked.iter().copied().filter(|cell| cell.cell.depends_on_cache()).all(|cell| from_the_cache(&cell));
    (!full).then_some(NoVerdict::CacheUnknown)
}
