//! Cells that differ only in span and method, and the comparison of two of them at one span.

use std::collections::HashMap;

use pagewise_model::groups::{by_key, distinct};
use pagewise_model::run::Run;
use pagewise_model::{Bytes, Conditions, Method, MethodOption, Role};

use super::fit::FitPoint;
use pagewise_analysis::judge::collected::CellSamples;
use pagewise_analysis::judge::verdict::{self, ClaimedTogether, Finding, NEAR, SMALLEST_DIFFERENCE, decide};
use pagewise_analysis::statistics::{Interval, lasting, median, paired_log_ratios};

/// One cell of a group.
#[derive(Clone, Debug)]
pub struct GroupCell<'a> {
    pub samples: &'a CellSamples<'a>,
    rates: verdict::Rates,
    /// Batch of rounds it was sampled in; `None`: not sampled.
    batch: Option<usize>,
}

impl GroupCell<'_> {
    pub fn method(&self) -> &Method {
        &self.samples.cell.method
    }

    pub fn span(&self) -> u64 {
        self.samples.cell.conditions.span_bytes.0
    }

    pub fn median_rate(&self) -> Option<f64> {
        median(&self.rates.values())
    }

    /// True if both were sampled in the same rounds.
    fn beside(&self, other: &GroupCell<'_>) -> bool {
        self.batch.is_some() && self.batch == other.batch
    }
}

/// The batch of each cell that has a sample. Rounds are counted up through a batch; a new batch
/// starts where they begin again.
fn batches(run: &Run) -> HashMap<&str, usize> {
    let mut batches: HashMap<&str, usize> = HashMap::new();
    let (mut batch, mut last_round) = (0, 0);
    for sample in &run.samples {
        batch += usize::from(sample.round < last_round);
        last_round = sample.round;
        batches.entry(sample.cell.as_str()).or_insert(batch);
    }
    batches
}

/// Comparison of two methods at one span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpanComparison {
    pub span: u64,
    /// The finding of a verdict.
    pub faster: Finding,
    /// True if it is a verdict.
    pub wins: bool,
    /// Logarithm of the first rate over the second.
    pub log_ratio: Option<f64>,
    /// The largest logarithm that is not claimed.
    pub least: f64,
    /// Evidence that the first is higher, as a standard normal deviate; `None` with too few rounds.
    pub score: Option<f64>,
    /// Half of its interval in a fit; `None` with too few rounds.
    pub reach: Option<f64>,
}

impl SpanComparison {
    /// Compare the ratios of two methods; differences up to the share `least` are not claimed, and
    /// intervals are longer by `inflation`.
    fn of(span: u64, log_ratios: &[f64], least: f64, inflation: f64) -> Self {
        let decided = |claim| decide(log_ratios, least, inflation, claim);
        let alone = decided(ClaimedTogether::Alone);
        let least = least.max(SMALLEST_DIFFERENCE).ln_1p();
        // A difference that is not claimed, however certain, is an error that no round shows.
        let reach = |ends: Interval| ((ends.high / ends.low).ln() / 2.0).hypot(least);
        Self {
            span,
            faster: alone.finding,
            wins: alone.is_clear(),
            log_ratio: alone.log_ratio,
            least,
            score: alone.score,
            reach: decided(ClaimedTogether::Fitted).interval.map(reach),
        }
    }

    /// The point of a fit in which the first method is faster before the change if `falls`, and
    /// else the second; `None` with too few rounds.
    pub fn point(&self, falls: bool) -> Option<FitPoint> {
        let log_ratio = if falls { self.log_ratio? } else { -self.log_ratio? };
        Some(FitPoint { span: self.span, log_ratio, reach: self.reach? })
    }
}

/// Split a method into its text without the window, and the window.
fn windowed(method: &Method) -> Option<(String, u32)> {
    let window = method.prefetch_window()?;
    let rest = method.options().iter().map(|option| match option {
        MethodOption::PrefetchWindow(_) => option.name().to_string(),
        option => option.to_string(),
    });
    Some((format!("{}/{}:{}", method.worker(), method.word(), rest.collect::<Vec<_>>().join("+")), window))
}

/// A method whose best window is looked for: its windows, and the span at which they were tried.
#[derive(Clone, Debug)]
pub struct WindowFamily<'a> {
    pub span: u64,
    /// Smallest window first.
    pub candidates: Vec<(u32, GroupCell<'a>)>,
    pub chosen: Option<Method>,
}

/// All cells that differ only in span, method and role.
#[derive(Clone, Debug)]
pub struct CliffGroup<'a> {
    measured: Vec<GroupCell<'a>>,
    controls: Vec<GroupCell<'a>>,
    pub families: Vec<WindowFamily<'a>>,
    methods: Vec<&'a Method>,
    /// Pairs of methods times runs of neighbouring ratios of the grid: the number of simultaneous
    /// claims.
    pub claims: usize,
    /// Factor by which intervals are longer because disturbances outlast rounds.
    inflation: f64,
}

impl<'a> CliffGroup<'a> {
    /// The groups with a memory limit, in the order of the plan.
    pub fn all(run: &Run, samples: &'a [CellSamples<'a>]) -> Vec<CliffGroup<'a>> {
        let batches = batches(run);
        let mut keys: Vec<Conditions> = Vec::new();
        let mut groups: Vec<CliffGroup<'a>> = Vec::new();
        for samples in samples.iter().filter(|samples| samples.cell.role != Role::Ceiling) {
            let conditions = &samples.cell.conditions;
            if conditions.cache_capacity().is_none_or(|capacity| capacity.0 == 0) {
                continue;
            }
            let key = Conditions { span_bytes: conditions.file_bytes, ..conditions.clone() };
            let index = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                groups.push(CliffGroup {
                    measured: Vec::new(),
                    controls: Vec::new(),
                    families: Vec::new(),
                    methods: Vec::new(),
                    claims: 1,
                    inflation: 1.0,
                });
                groups.len() - 1
            });
            let batch = batches.get(samples.id.as_str()).copied();
            let member = GroupCell { samples, rates: samples.rates(), batch };
            match samples.cell.role {
                Role::Control => groups[index].controls.push(member),
                _ => groups[index].measured.push(member),
            }
        }
        let windows: &[u32] = match &run.header.plan.search {
            Some(search) => &search.prefetch_windows,
            None => &[],
        };
        groups.retain(|group| !group.measured.is_empty());
        for group in &mut groups {
            group.families = group.find_families(windows);
            group.methods = group.find_methods();
            let (methods, ratios) = (group.methods.len(), group.grid().len());
            group.inflation = group.find_inflation();
            group.claims = (methods * methods.saturating_sub(1) / 2 * (ratios * (ratios + 1) / 2)).max(1);
        }
        groups
    }

    fn find_inflation(&self) -> f64 {
        let mut beside: Vec<Vec<&GroupCell<'a>>> = Vec::new();
        for member in &self.measured {
            let of = |cells: &&mut Vec<&GroupCell<'a>>| {
                cells[0].span() == member.span() && cells[0].beside(member)
            };
            match beside.iter_mut().find(of) {
                Some(cells) => cells.push(member),
                None => beside.push(vec![member]),
            }
        }
        let rates = |cells: &Vec<&'_ GroupCell<'a>>| cells.iter().map(|cell| cell.rates.clone()).collect();
        let rates: Vec<Vec<verdict::Rates>> = beside.iter().map(rates).collect();
        lasting::inflation(&rates)
    }

    /// Windows tried at the smallest span that has more than one of them.
    fn find_families(&self, windows: &[u32]) -> Vec<WindowFamily<'a>> {
        let found = self.measured.iter().filter_map(|member| {
            let (family, window) = windowed(member.method())?;
            windows.contains(&window).then(|| (family, (window, member.clone())))
        });
        by_key(found).into_iter().filter_map(|(_, members)| self.family(members)).collect()
    }

    fn family(&self, members: Vec<(u32, GroupCell<'a>)>) -> Option<WindowFamily<'a>> {
        let at = |span: u64| members.iter().filter(move |(_, member)| member.span() == span);
        let most = members.iter().map(|(_, member)| at(member.span()).count()).max()?;
        let span =
            members.iter().map(|(_, member)| member.span()).filter(|span| at(*span).count() == most).min()?;
        let mut candidates: Vec<(u32, GroupCell<'a>)> = at(span).cloned().collect();
        candidates.sort_by_key(|(window, _)| *window);
        let rates = || candidates.iter().filter_map(|(_, member)| Some((member, member.median_rate()?)));
        let best = rates().map(|(_, rate)| rate).max_by(f64::total_cmp);
        let chosen = best.and_then(|best| rates().find(|(_, rate)| *rate * NEAR >= best));
        let chosen = chosen.map(|(member, _)| member.method().clone());
        Some(WindowFamily { span, candidates, chosen })
    }

    fn lost(&self, method: &Method) -> bool {
        let is_lost = |family: &WindowFamily<'_>| {
            family.chosen.as_ref() != Some(method)
                && family.candidates.iter().any(|(_, candidate)| candidate.method() == method)
        };
        self.families.iter().any(is_lost)
    }

    fn find_methods(&self) -> Vec<&'a Method> {
        let mut methods = distinct(self.measured.iter().map(|member| &member.samples.cell.method));
        methods.retain(|method| !self.lost(method));
        methods
    }

    /// The compared methods, in the order of the plan.
    pub fn methods(&self) -> &[&'a Method] {
        &self.methods
    }

    /// Conditions of the group at a span.
    pub fn conditions(&self, span: u64) -> Conditions {
        let first = &self.measured[0].samples.cell.conditions;
        Conditions { span_bytes: Bytes(span), ..first.clone() }
    }

    /// All planned spans, ascending.
    pub fn spans(&self) -> Vec<u64> {
        ascending(self.measured.iter().map(GroupCell::span))
    }

    /// Cells of the first rounds, including controls.
    fn first_batch(&self) -> impl Iterator<Item = &GroupCell<'a>> {
        // A cell that was never tried is included: if a run ended early, its grid is that of the
        // plan.
        self.measured
            .iter()
            .chain(&self.controls)
            .filter(|member| member.batch.is_none_or(|batch| batch == 0))
    }

    /// The spans of the grid, ascending.
    pub fn grid(&self) -> Vec<u64> {
        ascending(
            self.first_batch()
                .filter(|member| member.samples.cell.role == Role::Measured)
                .map(GroupCell::span),
        )
    }

    /// Numbers of cells of the grid, and of cells that halving added to it, both without controls.
    pub fn cell_counts(&self) -> (usize, usize) {
        let grid = self.grid();
        let of_grid = self.first_batch().filter(|member| member.samples.cell.role == Role::Measured).count();
        let added = self.measured.iter().filter(|member| !grid.contains(&member.span())).count();
        (of_grid, added)
    }

    /// True if the grid has controls.
    pub fn has_controls(&self) -> bool {
        self.first_batch().any(|member| member.samples.cell.role == Role::Control)
    }

    /// The spans at which every method was planned, ascending.
    pub fn full_spans(&self) -> Vec<u64> {
        let full = |span: &u64| self.methods.iter().all(|method| self.member(method, *span).is_some());
        self.spans().into_iter().filter(full).collect()
    }

    /// The cell of a method at a span.
    pub fn member(&self, method: &Method, span: u64) -> Option<&GroupCell<'a>> {
        self.measured.iter().find(|member| member.span() == span && member.method() == method)
    }

    /// Every measured cell.
    pub fn members(&self) -> &[GroupCell<'a>] {
        &self.measured
    }

    /// True if a method has a control at a span.
    pub fn has_control(&self, method: &Method, span: u64) -> bool {
        self.controls.iter().any(|control| control.span() == span && control.method() == method)
    }

    /// Compare `first` and `second` at a span; `None` unless both were planned and can be compared.
    pub fn compare(&self, first: &Method, second: &Method, span: u64) -> Option<SpanComparison> {
        let (left, right) = (self.member(first, span)?, self.member(second, span)?);
        let log_ratios = paired_log_ratios(&left.rates, &right.rates);
        let least = self.least_between(left, right)?;
        Some(SpanComparison::of(span, &log_ratios, least, self.inflation))
    }

    /// The smallest difference that is claimed between two cells. Cells of one batch are paired by
    /// round. Between batches the machine may have drifted, by as much as a method differs from a
    /// control of it that was measured with the other batch; `None` without such a control.
    fn least_between(&self, left: &GroupCell<'_>, right: &GroupCell<'_>) -> Option<f64> {
        if left.beside(right) {
            return Some(SMALLEST_DIFFERENCE);
        }
        let bridges =
            |from: &GroupCell<'_>, to: &GroupCell<'_>, baseline: &GroupCell<'_>, control: &GroupCell<'_>| {
                baseline.beside(from) && control.beside(to)
            };
        self.controls
            .iter()
            .filter(|control| control.span() == left.span())
            .filter_map(|control| {
                let baseline = self.member(control.method(), control.span())?;
                let counts =
                    bridges(left, right, baseline, control) || bridges(right, left, baseline, control);
                counts.then(|| verdict::drift(&baseline.rates, &control.rates))?
            })
            .max_by(f64::total_cmp)
    }

    /// The methods that lead at a span or are not behind the leader, the leader first; empty if the
    /// data do not support a comparison.
    pub fn leaders(&self, span: u64) -> Vec<&'a Method> {
        let sampled =
            |method: &&Method| self.member(method, span).is_some_and(|cell| cell.median_rate().is_some());
        let methods: Vec<&'a Method> = self.methods.iter().copied().filter(sampled).collect();
        let lead = |method: &Method, other: &Method| {
            self.compare(method, other, span).and_then(|compared| compared.log_ratio).unwrap_or(0.0) > 0.0
        };
        let wins = |method: &Method| methods.iter().filter(|other| lead(method, other)).count();
        let Some(leader) = methods.iter().copied().rev().max_by_key(|method| wins(method)) else {
            return Vec::new();
        };
        let compared: Vec<(&'a Method, SpanComparison)> = methods
            .iter()
            .filter(|method| **method != leader)
            .filter_map(|method| Some((*method, self.compare(leader, method, span)?)))
            .filter(|(_, compared)| compared.faster != Finding::TooFewRounds)
            .collect();
        if compared.is_empty() {
            return Vec::new();
        }
        let stays = |compared: &SpanComparison| !(compared.wins && compared.log_ratio > Some(0.0));
        let others = compared.iter().filter(|(_, compared)| stays(compared)).map(|(method, _)| *method);
        std::iter::once(leader).chain(others).collect()
    }
}

fn ascending(spans: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut spans: Vec<u64> = spans.collect();
    spans.sort_unstable();
    spans.dedup();
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::PairedRatio;
    use pagewise_analysis::judge::GAP;
    use pagewise_analysis::judge::verdict::Verdict;
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    /// Rates of a method in rounds, some of them lost: near 1, or near a difference.
    fn rates() -> impl Strategy<Value = Vec<Option<f64>>> {
        let difference = prop_oneof![Just(1.0), Just(1.02), 0.5..2.0];
        let rounds = prop::collection::vec((prop::bool::weighted(0.9), -0.05..0.05), 33);
        (difference, rounds, 0..34usize).prop_map(|(difference, rounds, count)| {
            let rate = |(valid, scatter): &(bool, f64)| valid.then_some(difference * (1.0 + scatter));
            rounds.iter().take(count).map(rate).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn verdict_cliff_and_table_say_the_same_of_the_same_ratios(
            first in rates(),
            second in rates(),
        ) {
            let (first, second) = (verdict::Rates::of_each(&first), verdict::Rates::of_each(&second));
            let log_ratios = paired_log_ratios(&first, &second);
            let judgement = verdict::judge(&[&first, &second]);
            let winner = judgement.leader.filter(|_| judgement.verdict == Verdict::Best);
            let inflation = lasting::inflation(&[vec![&first, &second]]);
            let compared = SpanComparison::of(0, &log_ratios, 0.0, inflation);
            let table = PairedRatio::of(&first, &second, inflation).map(|ratio| ratio.finding);
            // Too few common rounds give a fit no scatter, and decide nothing but a gap.
            if log_ratios.len() < verdict::FEWEST_ROUNDS {
                let is_gap = log_ratios.iter().all(|ratio| ratio.abs() > GAP.ln());
                prop_assert!(winner.is_none() || is_gap);
                prop_assert_eq!((compared.faster, compared.wins), (Finding::TooFewRounds, false));
                return Ok(());
            }
            let expected = match winner {
                Some(0) => Some(Finding::Higher),
                Some(_) => Some(Finding::Lower),
                None => None,
            };
            prop_assert_eq!(table.filter(|compared| matches!(compared, Finding::Higher | Finding::Lower)), expected);
            prop_assert_eq!(compared.wins, expected.is_some());
            prop_assert!(expected.is_none_or(|winner| compared.faster == winner));
            let needed = -Normal::standard().inverse_cdf(verdict::FALSE_WINNERS / 2.0);
            let is_beyond = compared.log_ratio.is_some_and(|ratio| ratio.abs() > compared.least);
            prop_assert_eq!(is_beyond && compared.score.is_some_and(|score| score.abs() > needed), compared.wins);
        }
    }
}
