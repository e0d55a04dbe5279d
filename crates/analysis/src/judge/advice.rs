//! Advice: what to choose in each comparison, with notes that explain it. The report says it.
//!
//! Pure functions of judged cells, comparisons and samples. Advice claims nothing beyond these.
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
mod read_advice;
mod scan;
pub mod stall;
#[cfg(test)]
mod tests;

use pagewise_model::Workload;

use crate::judge::cell::{ById, CellJudgement, by_id};
use crate::judge::collected::SamplesById;
use crate::judge::comparison::Comparison;
use case::Case;
use effort::effort;

pub use cache_unknown::{CacheUnknown, WorstCase};
pub use given::{PRICE_OF_SIMPLICITY, Recommendation};
pub use insight::{FillFigures, Insight, StreamGain};
pub use note::{Buffers, FilesByBuffer, Lack, Note};
pub use stall::HeldUp;

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
    let conditions = &comparison.conditions.conditions;
    let (insight, notes) = match conditions.workload() {
        _ if conditions.reads().is_some() => (None, read_advice::notes(case)),
        Workload::Scan => scan::explain(case),
        Workload::Append => (None, append::notes(case)),
        Workload::Fill => fill::explain(case),
        _ => (None, Vec::new()),
    };
    let others = || comparison.staying().into_iter().filter(|method| case.recommended != Some(*method));
    let is_simpler = |other: &&str| case.recommended.is_some_and(|method| effort(other) < effort(method));
    let own = case.compared.iter().find(|cell| case.recommended == Some(cell.method.as_str()));
    Recommendation {
        conditions: comparison.conditions.clone(),
        recommended: case.recommended.map(String::from),
        alternatives: others().map(String::from).collect(),
        simpler: others().filter(is_simpler).map(String::from).collect(),
        limit: own.map(|cell| cell.limit.clone()),
        insight,
        notes,
        stalls: stall::effects(case),
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
