//! One method for data of which it is not known whether they are cached: never far from the best in
//! either state.

use pagewise_model::{CacheState, Conditions};
use serde::Serialize;

use super::effort::effort;
use crate::judge::cell::{ById, CellJudgement, Status, by_id};
use crate::judge::comparison::Comparison;
use crate::judge::label::{LabelPart, label_without};
use crate::judge::verdict::Place;

/// From this factor on, a method is one to avoid.
const AVOIDED: f64 = 3.0;

/// Work that was measured with its data in the page cache and without.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CacheUnknown {
    /// The conditions, except for the state of the cache.
    pub label: String,
    /// The method whose worst ratio to the best is the smallest; `None` if no method was ranked in
    /// both states.
    pub safest: Option<WorstCase>,
    /// The method whose worst ratio is the largest, if it is at least 3.
    pub avoid: Option<WorstCase>,
}

/// A method in the state of the cache that suits it least.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WorstCase {
    /// The method.
    pub method: String,
    /// The state.
    pub cache: CacheState,
    /// The best in that state over this method.
    pub ratio: f64,
    /// True if it is the best in that state, or behind it for certain.
    pub is_certain: bool,
    /// The most that this ratio may be in either state, with a certainty of 95 %; `None` with too
    /// few rounds.
    pub most: Option<f64>,
    /// Device bytes per requested byte in that state.
    pub read_amplification: Option<f64>,
}

/// The choices for all work of a run that was measured both warm and cold.
pub(crate) fn all(comparisons: &[Comparison], cells: &[CellJudgement]) -> Vec<CacheUnknown> {
    let by_id = by_id(cells);
    let in_state = |state| comparisons.iter().filter(move |comparison| cache(comparison) == state);
    // A file that is written is new or was written before, which its program knows.
    in_state(CacheState::Warm)
        .filter(|warm| warm.conditions.conditions.workload().is_reading())
        .filter_map(|warm| {
            let cold = in_state(CacheState::Cold).find(|cold| as_warm(cold) == warm.conditions.conditions)?;
            Some(of([warm, cold], &by_id))
        })
        .collect()
}

fn cache(comparison: &Comparison) -> CacheState {
    comparison.conditions.conditions.cache
}

fn as_warm(cold: &Comparison) -> Conditions {
    Conditions { cache: CacheState::Warm, ..cold.conditions.conditions.clone() }
}

fn of(states: [&Comparison; 2], by_id: &ById<'_>) -> CacheUnknown {
    let ranked = |comparison: &Comparison| -> Vec<String> {
        // The ratios of a state are those to its best only if that is known.
        if states.iter().any(|state| state.ahead_of_leader().is_some()) {
            return Vec::new();
        }
        let others = comparison.ratios.iter().map(|ratio| ratio.method.clone());
        comparison.leader.iter().cloned().chain(others).collect()
    };
    let worst: Vec<WorstCase> =
        ranked(states[0]).iter().filter_map(|method| worst_case(method, states, by_id)).collect();
    let safest = worst.iter().min_by(|left, right| {
        let closer = || effort(&left.method).cmp(&effort(&right.method));
        left.ratio.total_cmp(&right.ratio).then_with(closer)
    });
    let avoid = worst.iter().max_by(|left, right| left.ratio.total_cmp(&right.ratio));
    CacheUnknown {
        label: label_without(&states[0].conditions.conditions, &[LabelPart::Cache]),
        safest: safest.cloned(),
        avoid: avoid.filter(|worst| worst.ratio >= AVOIDED).cloned(),
    }
}

/// The worse of the two states of a method; `None` if it was not ranked in both.
fn worst_case(method: &str, states: [&Comparison; 2], by_id: &ById<'_>) -> Option<WorstCase> {
    let of_state = |comparison: &Comparison| {
        let (ratio, is_certain) = match comparison.leader.as_deref() == Some(method) {
            true => (1.0, comparison.best.is_some()),
            false => {
                let ratio = comparison.ratios.iter().find(|ratio| ratio.method == method)?;
                (ratio.ratio, ratio.place == Place::Behind)
            }
        };
        let most = comparison.bound(method).map(|bound| 1.0 + bound);
        let cell = comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()));
        let cell = cell.into_iter().find(|cell| cell.method == method && cell.status == Status::Ok);
        Some(WorstCase {
            method: method.to_string(),
            cache: cache(comparison),
            ratio,
            is_certain,
            most,
            read_amplification: cell.and_then(|cell| cell.amplification()),
        })
    };
    let (warm, cold) = (of_state(states[0])?, of_state(states[1])?);
    let most = warm.most.zip(cold.most).map(|(warm, cold)| warm.max(cold));
    let worse = if cold.ratio >= warm.ratio { cold } else { warm };
    Some(WorstCase { most, ..worse })
}
