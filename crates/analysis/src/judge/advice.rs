//! Advice: what to choose in each comparison, in one sentence, with notes that explain it.
//!
//! Pure functions of judged cells and comparisons. A sentence claims nothing beyond these: a difference within the noise
//! is not a difference, and an unclear verdict gives no advice.

mod append;
mod case;
mod effort;
mod fill;
pub(crate) mod given;
mod headline;
pub(crate) mod phrases;
mod read_advice;
mod scan;
mod stall;
#[cfg(test)]
mod tests;

use pagewise_model::{CacheState, Workload};

use crate::judge::bound::{AT_CEILING, BoundName};
use crate::judge::cell::{ById, CellJudgement, by_id};
use crate::judge::comparison::{ComparedConditions, Comparison};
use crate::judge::verdict::{FEWEST_ROUNDS, NEAR, SMALLEST_DIFFERENCE, Verdict};
use case::Case;
use effort::effort;
use given::unsteady;
use pagewise_model::format::times;
use phrases::what;

pub use given::{Buffers, Recommendation, UNSTEADY};
pub use headline::headline;
pub use phrases::listed;
pub use read_advice::AMPLIFIED;

/// Return the advice that follows from each comparison; `cells` are all of the run.
pub fn advise_all(comparisons: &[Comparison], cells: &[CellJudgement]) -> Vec<Recommendation> {
    let by_id = by_id(cells);
    let mut all: Vec<Recommendation> =
        comparisons.iter().map(|comparison| advise(comparison, cells, &by_id)).collect();
    for (index, sentence) in append::by_file_size(&all) {
        all[index].notes.push(sentence);
    }
    all
}

/// Return the advice that follows from a comparison; `cells` are all of the run.
fn advise(comparison: &Comparison, cells: &[CellJudgement], by_id: &ById<'_>) -> Recommendation {
    let compared: Vec<&CellJudgement> =
        comparison.cells.iter().filter_map(|id| by_id.get(id.as_str()).copied()).collect();
    let obstacle = obstacle(comparison, &compared);
    let (recommended, alternatives) = match obstacle {
        Some(_) => (None, Vec::new()),
        None => choice(comparison),
    };
    let reason = match &recommended {
        Some(_) => None,
        None => Some(obstacle.unwrap_or_else(|| "the data do not support a verdict".to_string())),
    };
    let sentence = sentence(comparison, &compared, recommended.as_deref(), &alternatives, reason.as_deref());
    let case = Case { comparison, compared, cells, recommended: recommended.as_deref() };
    let (insight, buffers, notes) = match comparison.conditions.conditions.workload() {
        Workload::RandomRead | Workload::SequentialRead => (None, Vec::new(), read_advice::notes(&case)),
        Workload::Scan => {
            let (insight, notes) = scan::explain(&case);
            (insight, Vec::new(), notes)
        }
        Workload::Append => {
            let (buffers, notes) = append::explain(&case);
            (None, buffers, notes)
        }
        Workload::Fill => {
            let (insight, notes) = fill::explain(&case);
            (insight, Vec::new(), notes)
        }
    };
    let stalls = stall::sentences(&case);
    let first = insight.as_ref().map(|insight| format!("{insight}."));
    Recommendation {
        conditions: comparison.conditions.clone(),
        recommended,
        alternatives,
        reason,
        sentence,
        insight,
        buffers,
        notes: first.into_iter().chain(notes).collect(),
        stalls,
    }
}

fn sentence(
    comparison: &Comparison,
    compared: &[&CellJudgement],
    recommended: Option<&str>,
    alternatives: &[String],
    reason: Option<&str>,
) -> String {
    let subject = subject(&comparison.conditions);
    let Some(method) = recommended else {
        return format!("{subject}: no advice, because {}.", reason.unwrap_or_default());
    };
    let bound = bound_of(method, compared).unwrap_or_default();
    match comparison.verdict {
        Verdict::Winner => format!("{subject}: choose {method}; {}{bound}.", lead(comparison)),
        _ => format!(
            "{subject}: choose {method}{}{bound}; {} cannot be distinguished from the best in these rounds{}.",
            why_simplest(comparison, method),
            listed(alternatives),
            if comparison.unclear().is_empty() { "" } else { ", more rounds (--full) may decide" }
        ),
    }
}

fn choice(comparison: &Comparison) -> (Option<String>, Vec<String>) {
    match comparison.verdict {
        Verdict::Winner => (comparison.winner.clone(), Vec::new()),
        Verdict::Tie => {
            // A method that may be far behind is not recommended for its simplicity.
            let simplest =
                comparison.near().into_iter().min_by_key(|method| effort(method)).map(String::from);
            let others = comparison.tied.iter().filter(|method| Some(*method) != simplest.as_ref());
            (simplest.clone(), others.cloned().collect())
        }
        Verdict::NotComparable => (None, Vec::new()),
    }
}

/// Reason that nothing is recommended; `None` if something is.
fn obstacle(comparison: &Comparison, cells: &[&CellJudgement]) -> Option<String> {
    match comparison.verdict {
        Verdict::Winner => None,
        Verdict::NotComparable => comparison.reason.clone(),
        Verdict::Tie => unsteady(comparison).or_else(|| may_be_faster(comparison, cells)),
    }
}

/// The leader is chosen among methods with enough rounds; another method of the tie may be faster.
fn may_be_faster(comparison: &Comparison, cells: &[&CellJudgement]) -> Option<String> {
    let rival = comparison
        .ratios
        .iter()
        .find(|ratio| ratio.ratio < 1.0 / NEAR && comparison.tied.contains(&ratio.method))?;
    let valid = cells.iter().find(|cell| cell.id == rival.cell).map_or(rival.rounds, |cell| cell.samples);
    let why = match rival.rounds {
        FEWEST_ROUNDS.. => "these rounds do not decide".to_string(),
        // Valid rounds may not count: the leader was not valid in them, or the page cache differed.
        paired if paired < valid => format!("only {paired} of its rounds can be compared"),
        1 => "only 1 of its rounds is valid".to_string(),
        paired => format!("only {paired} of its rounds are valid"),
    };
    Some(format!("{} may be faster, but {why}", rival.method))
}

/// Reason that a method other than the leader is recommended.
fn why_simplest(comparison: &Comparison, method: &str) -> String {
    if comparison.leader.as_deref() == Some(method) {
        return String::new();
    }
    format!(" (the simplest of those within {:.0} %)", SMALLEST_DIFFERENCE * 100.0)
}

fn subject(conditions: &ComparedConditions) -> String {
    format!(
        "{}, {}",
        what(conditions.conditions.workload()),
        conditions.label.split_once(" · ").map_or("", |(_, rest)| rest).replace(" · ", ", ")
    )
}

fn lead(comparison: &Comparison) -> String {
    let Some(next) = comparison.ratios.first() else { return String::new() };
    let interval = match (next.low, next.high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", times(low), times(high)),
        _ => String::new(),
    };
    let is = match comparison.conditions.conditions.cache {
        CacheState::ColdStart => "it is warm",
        _ if comparison.conditions.conditions.workload().is_one_shot() => "in total it is",
        _ => "it is",
    };
    format!("{is} {}x{interval} as fast as {}, the next best", times(next.ratio), next.method)
}

fn bound_of(method: &str, cells: &[&CellJudgement]) -> Option<String> {
    let cell = cells.iter().find(|cell| cell.method == method)?;
    let bound = cell.bound.filter(|bound| *bound != BoundName::Unknown)?;
    Some(match cell.of_ceiling {
        // A ceiling is a measurement too: more than all of it is reported as all of it.
        Some(share) if share >= AT_CEILING => format!(", limited by {} (at its ceiling)", bound.name()),
        Some(share) => format!(", limited by {} ({:.0} % of it)", bound.name(), share * 100.0),
        None => format!(", limited by {}", bound.name()),
    })
}
