//! Actors ranked by what they leave to a method: the share of its data that is still cached, or of
//! its figure alone.

use pagewise_model::{Cell, Evidence, Role};
use serde::Serialize;

use super::collected::CellSamples;
use super::elimination::leader;
use super::figure::MedianInterval;
use super::label::label;
use super::verdict::{ClaimedTogether, Decision, FEWEST_ROUNDS, Finding, SMALLEST_DIFFERENCE, decide};
use crate::statistics::{ByRound, paired_log_ratios};

/// Least share that is compared: nothing left has no ratio to anything.
const LEAST_SHARE: f64 = 0.001;
/// Actors are alike if the best leaves at most this times as much.
const ALIKE: f64 = 1.05;

/// Figure by which actors are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftFigure {
    /// Share of the span that is in the page cache after a sample.
    Cached,
    /// Figure by which methods are ranked: a rate, or the inverse of a time.
    Figure,
}

/// Place of an actor next to the one that leaves most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActorPlace {
    /// No other leaves more, as far as these rounds show.
    Most,
    /// Leaves as much, within 5 %.
    Alike,
    /// Leaves less, for certain.
    Less,
    /// These rounds do not decide it.
    Open,
    /// Fewer rounds than a verdict needs, of its own or together with the one that leaves most.
    TooFewRounds,
    /// No valid sample shows what it leaves.
    Unknown,
}

/// The actors of a plan beside one method, the one that leaves most by ratios within rounds first.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ActorRanking {
    /// The method beside which they were at work.
    pub method: String,
    /// Label of its conditions, without the actors.
    pub label: String,
    /// Id of the cell without an actor; `None` if it was not measured.
    pub alone: Option<String>,
    /// Figure by which they are ranked.
    pub by: LeftFigure,
    /// The actors.
    pub actors: Vec<RankedActor>,
}

/// An actor with its place.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RankedActor {
    /// The actor as typed.
    pub actor: String,
    /// Id of the method's cell beside it.
    pub cell: String,
    /// Place next to the one that leaves most.
    pub place: ActorPlace,
    /// The figure: a share of the span, or operations per second or the inverse of a time; `None`
    /// without a valid sample.
    pub left: Option<MedianInterval>,
    /// Times as much as it leaves that the first leaves, in pairs of rounds; `None` of the first
    /// and with too few rounds.
    pub times_less: Option<f64>,
}

/// The rankings of all methods beside which several actors were at work.
pub(super) fn all(samples: &[CellSamples<'_>]) -> Vec<ActorRanking> {
    let beside: Vec<&CellSamples<'_>> = samples
        .iter()
        .filter(|samples| samples.cell.role == Role::Measured && samples.cell.conditions.beside.is_some())
        .collect();
    let mut seen: Vec<Cell> = Vec::new();
    let mut rankings = Vec::new();
    for first in &beside {
        let alone = first.cell.without_actor();
        if seen.contains(&alone) {
            continue;
        }
        let rivals: Vec<&CellSamples<'_>> =
            beside.iter().copied().filter(|rival| rival.cell.without_actor() == alone).collect();
        let is_measured = samples.iter().any(|samples| *samples.cell == alone);
        rankings.extend(ranking(&alone, is_measured, &rivals));
        seen.push(alone);
    }
    rankings
}

fn ranking(alone: &Cell, is_measured: bool, rivals: &[&CellSamples<'_>]) -> Option<ActorRanking> {
    let is_cached = rivals.iter().all(|rival| rival.cell.conditions.shares_cache())
        && alone.depends_on_cache()
        && alone.conditions.workload().is_reading();
    let by = if is_cached { LeftFigure::Cached } else { LeftFigure::Figure };
    let figures = |rival: &CellSamples<'_>| match by {
        LeftFigure::Figure => rival.rates(),
        LeftFigure::Cached => cached(rival),
    };
    let mut all: Vec<(&Cell, Option<MedianInterval>, ByRound)> = rivals
        .iter()
        .map(|rival| {
            let figures = figures(rival);
            (rival.cell, MedianInterval::of(&figures.values()), figures)
        })
        .collect();
    (all.iter().filter(|(_, left, _)| left.is_some()).count() > 1).then_some(())?;
    let is_ranked = |figures: &ByRound| figures.count() >= FEWEST_ROUNDS;
    let known = all.iter().filter(|(.., figures)| is_ranked(figures)).count();
    let median = |left: &Option<MedianInterval>| left.map_or(f64::NEG_INFINITY, |left| left.median);
    all.sort_by(|(_, one, of_one), (_, other, of_other)| {
        is_ranked(of_other).cmp(&is_ranked(of_one)).then(median(other).total_cmp(&median(one)))
    });
    // The others stand by their medians, and the first by ratios within rounds, as a leader does:
    // medians of other rounds may have another order.
    if known > 0 {
        let figures: Vec<&ByRound> = all.iter().map(|(.., figures)| figures).collect();
        let first = leader(&figures, &(0..known).collect::<Vec<_>>());
        all[..=first].rotate_right(1);
    }
    let claims = known.saturating_sub(1).max(1);
    let (_, _, most) = &all[0];
    let actors = all.iter().enumerate().filter_map(|(index, (cell, left, figures))| {
        let (place, times_less) = match index {
            _ if left.is_none() => (ActorPlace::Unknown, None),
            _ if !is_ranked(figures) => (ActorPlace::TooFewRounds, None),
            0 => (ActorPlace::Most, None),
            _ => {
                let ratios = paired_log_ratios(most, figures);
                let claim = ClaimedTogether::Actors(claims);
                let decision = decide(&ratios, SMALLEST_DIFFERENCE, 1.0, claim);
                let place = place_of(&decision);
                let decided = decision.log_ratio.filter(|_| place != ActorPlace::TooFewRounds);
                (place, decided.map(f64::exp))
            }
        };
        let actor = cell.conditions.beside.as_ref()?.to_string();
        Some(RankedActor { actor, cell: cell.id(), place, left: *left, times_less })
    });
    Some(ActorRanking {
        method: alone.method.to_string(),
        label: label(&alone.conditions),
        alone: is_measured.then(|| alone.id()),
        by,
        actors: actors.collect(),
    })
}

fn place_of(decision: &Decision) -> ActorPlace {
    let most = decision.interval.map(|interval| interval.high);
    match decision.finding {
        Finding::TooFewRounds => ActorPlace::TooFewRounds,
        Finding::Higher => ActorPlace::Less,
        _ if most.is_some_and(|most| most <= ALIKE) => ActorPlace::Alike,
        _ => ActorPlace::Open,
    }
}

/// Share of the span in the page cache after each valid sample, by round.
fn cached(samples: &CellSamples<'_>) -> ByRound {
    let span = samples.cell.conditions.span_bytes.0.max(1) as f64;
    let share = |seen: &Evidence| Some((seen.resident_after_bytes? as f64 / span).max(LEAST_SHARE));
    let valid = samples.rounds.iter().filter_map(|(round, sample)| Some((*round, sample.valid()?.1)));
    valid.filter_map(|(round, seen)| Some((round, share(seen)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::collected;
    use crate::proof::honest;
    use pagewise_model::{CacheState, Outcome, Sample};

    /// Samples of seven rounds in which so much of the span is left, in per cent.
    fn samples(cell: &Cell, left: [u64; 7]) -> Vec<Sample> {
        let of = |(round, percent): (u32, &u64)| {
            let mut evidence = honest::evidence(cell);
            evidence.resident_after_bytes = Some(cell.conditions.span_bytes.0 * percent / 100);
            let outcome = Outcome::Taken {
                measurement: Box::new(honest::measurement_of(cell)),
                evidence: Box::new(evidence),
                failures: Vec::new(),
            };
            Sample::of(cell, round, outcome)
        };
        (0..).zip(&left).map(of).collect()
    }

    #[test]
    fn actors_are_ranked_by_what_they_leave_in_the_cache() {
        let cell = |actor: &str| honest::beside("pread", CacheState::Warm, actor, Some(320));
        let cells =
            ["scan:pread,rate=max", "scan:pread:direct,rate=max", "scan:pread:dontcache,rate=max"].map(cell);
        let left = [[27, 30, 26, 28, 29, 27, 25], [100; 7], [99, 100, 99, 98, 100, 100, 99]];
        let taken: Vec<Vec<Sample>> =
            cells.iter().zip(left).map(|(cell, left)| samples(cell, left)).collect();
        let collected: Vec<CellSamples<'_>> =
            cells.iter().zip(&taken).map(|(cell, samples)| collected::of_samples(cell, samples)).collect();
        let unseen = cell("scan:mmap,rate=max");
        let mut collected = collected;
        collected.push(collected::of_samples(&unseen, &[]));
        let [ranking] = &all(&collected)[..] else { panic!("one method") };
        assert_eq!((ranking.method.as_str(), ranking.by), ("pread", LeftFigure::Cached));
        let places: Vec<(&str, ActorPlace)> = ranking
            .actors
            .iter()
            .map(|actor| (actor.actor.split(',').next().expect("a word"), actor.place))
            .collect();
        assert_eq!(
            places,
            [
                ("scan:pread:direct", ActorPlace::Most),
                ("scan:pread:dontcache", ActorPlace::Alike),
                ("scan:pread", ActorPlace::Less),
                ("scan:mmap", ActorPlace::Unknown)
            ]
        );
        let times = ranking.actors[2].times_less.expect("a ratio");
        assert!((3.4..4.0).contains(&times), "{times}");
        assert_eq!(ranking.actors[0].cell, cells[1].id());
        assert_eq!(ranking.alone, None, "it was not measured");
        // What leaves a little less in each round has the higher median, because of a round in
        // which the other has no valid sample.
        let mut slower = samples(&cells[0], [59, 49, 54, 39, 44, 34, 29]);
        let steady = samples(&cells[1], [60, 50, 55, 40, 45, 35, 30]);
        slower.retain(|sample| !matches!(sample.round, 5 | 6));
        let of_rounds = [(&cells[0], &slower), (&cells[1], &steady)]
            .map(|(cell, samples)| collected::of_samples(cell, samples));
        let [ranking] = &all(&of_rounds)[..] else { panic!("one method") };
        let first = &ranking.actors[0];
        assert_eq!((first.cell.as_str(), first.place), (cells[1].id().as_str(), ActorPlace::Most));
        let second = &ranking.actors[1];
        assert!(second.times_less.is_some_and(|times| times > 1.0), "{second:?}");
        assert!(second.left.zip(first.left).is_some_and(|(second, first)| second.median > first.median));
        assert_eq!(all(&collected[..1]), [], "one actor has no place");
        // A round or two say nothing, whatever they show.
        slower.truncate(2);
        let of_rounds = [(&cells[0], &slower), (&cells[1], &steady)]
            .map(|(cell, samples)| collected::of_samples(cell, samples));
        let [ranking] = &all(&of_rounds)[..] else { panic!("one method") };
        let places: Vec<_> = ranking.actors.iter().map(|actor| (actor.place, actor.times_less)).collect();
        assert_eq!(places, [(ActorPlace::Most, None), (ActorPlace::TooFewRounds, None)]);
        assert_eq!(ranking.actors[0].cell, cells[1].id());
    }
}
