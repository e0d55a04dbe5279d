//! Advice: what to choose in each comparison, in one sentence, with notes that explain it.
//!
//! Pure functions of judged cells, comparisons and samples. A sentence claims nothing beyond these.
//! If a best method is known, or one is ahead, there is advice: the simplest method whose *bound*
//! is within the price of simplicity, else the leader.

mod append;
pub(super) mod cache_unknown;
mod case;
mod effort;
mod fill;
pub(crate) mod given;
pub mod insight;
pub mod note;
pub(crate) mod phrases;
mod read_advice;
mod scan;
mod situations;
mod stall;
#[cfg(test)]
mod tests;

use pagewise_model::{CacheState, Workload};

use crate::judge::bound::{Bound, BoundName, Certainty};
use crate::judge::cell::{ById, CellJudgement, by_id};
use crate::judge::collected::SamplesById;
use crate::judge::comparison::{ComparedConditions, Comparison};
use crate::judge::verdict::{Place, Verdict};
use case::Case;
use effort::effort;
use pagewise_model::format::times;
use phrases::what;

pub use cache_unknown::{CacheUnknown, WorstCase};
pub use given::{PRICE_OF_SIMPLICITY, Recommendation};
pub use insight::{FillFigures, Insight, StreamGain};
pub use note::{Buffers, FilesByBuffer, Lack, Note};
pub use phrases::{ahead_in_few_rounds, capital, interval, listed, slower};
pub use read_advice::AMPLIFIED;
pub use situations::situations;

/// Return the advice that follows from each comparison; `cells` and `samples` are all of the run. A
/// simpler method is recommended if it is at most the share `price` slower than the leader.
pub(super) fn advise_all(
    comparisons: &[Comparison],
    cells: &[CellJudgement],
    samples: &SamplesById<'_>,
    price: f64,
) -> Vec<Recommendation> {
    let by_id = by_id(cells);
    let case = |comparison| {
        let compared = compared(comparison, &by_id);
        Case { comparison, compared, cells, samples, price, recommended: choice(comparison, price) }
    };
    let mut all: Vec<Recommendation> =
        comparisons.iter().map(|comparison| advise(&case(comparison))).collect();
    for (index, note) in append::by_file_size(&all) {
        all[index].notes.push(note);
    }
    all
}

fn compared<'a>(comparison: &Comparison, by_id: &ById<'a>) -> Vec<&'a CellJudgement> {
    comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()).copied()).collect()
}

/// Return the advice that follows from a comparison.
fn advise(case: &Case<'_>) -> Recommendation {
    let comparison = case.comparison;
    let (insight, notes) = match comparison.conditions.conditions.workload() {
        Workload::RandomRead | Workload::SequentialRead => (None, read_advice::notes(case)),
        Workload::Replay => (None, Vec::new()),
        Workload::Scan => scan::explain(case),
        Workload::Append => (None, append::notes(case)),
        Workload::Fill => fill::explain(case),
    };
    let stalls = stall::sentences(case);
    let others = comparison.staying().into_iter().filter(|method| case.recommended != Some(*method));
    Recommendation {
        conditions: comparison.conditions.clone(),
        recommended: case.recommended.map(String::from),
        alternatives: others.map(String::from).collect(),
        reason: case.silence(),
        sentence: sentence(case),
        insight,
        notes,
        stalls,
    }
}

/// The simplest method whose bound is within `price`, behind or not; the leader has none to pay.
/// `None` if the methods are not comparable, or one that cannot be ranked may be faster than all of
/// them.
fn choice(comparison: &Comparison, price: f64) -> Option<&str> {
    let leader = comparison.leader.as_deref().filter(|_| comparison.ahead_of_leader().is_none())?;
    let others = comparison.ratios.iter().filter(|ratio| ratio.bound.is_some_and(|bound| bound <= price));
    let methods = std::iter::once(leader).chain(others.map(|ratio| ratio.method.as_str()));
    methods.min_by_key(|method| effort(method))
}

fn sentence(case: &Case<'_>) -> String {
    let Case { comparison, compared, .. } = case;
    let subject = subject(&comparison.conditions);
    let (Some(method), Some(leader)) = (case.recommended, comparison.leader.as_deref()) else {
        return format!("{subject}: no advice, because {}.", case.silence().unwrap_or_default());
    };
    let limit = bound_of(method, compared).unwrap_or_default();
    let why = match comparison.bound(method) {
        Some(bound) if method != leader => format!(": simpler than {leader}, and {}", slower(bound)),
        _ if comparison.verdict == Verdict::Best => format!("; {}", lead(comparison)),
        _ => String::new(),
    };
    format!("{subject}: choose {method}{limit}{why}{}.", simpler(comparison, method))
}

/// The methods that are simpler than `method` and not behind the leader, with what they may cost.
fn simpler(comparison: &Comparison, method: &str) -> String {
    let simpler = comparison.staying().into_iter().filter(|other| effort(other) < effort(method));
    let words: Vec<String> = simpler
        .map(|other| match comparison.bound(other) {
            Some(bound) => format!("{other} ({})", slower(bound)),
            None => format!("{other} (too few rounds)"),
        })
        .collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => format!("; simpler and not shown to be behind is {one}"),
        several => format!("; simpler and not shown to be behind are {}", listed(several)),
    }
}

fn subject(conditions: &ComparedConditions) -> String {
    format!(
        "{}, {}",
        what(conditions.conditions.workload()),
        conditions.label.split_once(" · ").map_or("", |(_, rest)| rest).replace(" · ", ", ")
    )
}

fn lead(comparison: &Comparison) -> String {
    let is = match comparison.conditions.conditions.cache {
        CacheState::ColdStart => "it is warm",
        _ if comparison.conditions.conditions.is_one_shot() => "in total it is",
        _ => "it is",
    };
    if let Some((method, ratio)) = comparison.closest_unranked() {
        return format!(
            "{is} about {}x as fast as {method}, which has too few rounds to be ranked",
            times(ratio)
        );
    }
    let Some(next) = comparison.ratios.iter().find(|ratio| ratio.place == Place::Behind) else {
        return "it is alone".to_string();
    };
    let interval = match (next.low, next.high) {
        _ if next.is_gap() => format!(" in {} rounds", next.rounds),
        (Some(low), Some(high)) => format!(" [{}, {}]", times(low), times(high)),
        _ => String::new(),
    };
    format!("{is} {}x{interval} as fast as {}, the next best", times(next.ratio), next.method)
}

fn bound_of(method: &str, cells: &[&CellJudgement]) -> Option<String> {
    let limit = &cells.iter().find(|cell| cell.method == method)?.limit;
    let Bound { of_ceiling_low: Some(low), of_ceiling_high: Some(high), .. } = limit else { return None };
    if limit.bound == Some(BoundName::Unknown) {
        return None;
    }
    let text = limit.text()?;
    let interval = interval(*low, *high);
    Some(match limit.bound_certainty? {
        Certainty::Named if limit.is_at_ceiling() => format!(" (limited by {text})"),
        Certainty::Named => format!(" (limited by {text} {interval})"),
        Certainty::About => format!(" ({text} {interval})"),
        Certainty::Between => format!(" ({text})"),
    })
}
