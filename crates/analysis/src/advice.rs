//! What to choose, in one sentence for each comparison.

use pagewise_model::{Access, Method, MethodOption, Workload};
use serde::Serialize;

use crate::bound::BoundName;
use crate::judged::{CellJudgement, ComparedConditions, Comparison};
use crate::verdict::{SMALLEST_DIFFERENCE, Verdict};

/// From this many bytes read per byte asked for on, readahead explains a result.
pub const AMPLIFIED: f64 = 1.5;

/// A tie does not say that methods are equal, only that these rounds cannot tell. Simplicity decides among
/// those that the median puts so near to the leader; a method that may be far behind is not advised for it.
pub const NEAR: f64 = 1.0 + SMALLEST_DIFFERENCE;

/// What to choose under some conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Where it holds.
    pub conditions: ComparedConditions,
    /// What to use; `None` where the data carry no advice.
    pub recommended: Option<String>,
    /// Methods that cannot be told from it.
    pub alternatives: Vec<String>,
    /// All of it as a sentence.
    pub sentence: String,
    /// What explains the result, one sentence each.
    pub notes: Vec<String>,
}

/// The advice that follows from a comparison; `cells` are all of the run.
pub fn advise(comparison: &Comparison, cells: &[CellJudgement]) -> Advice {
    let compared: Vec<&CellJudgement> =
        cells.iter().filter(|cell| comparison.cells.contains(&cell.id)).collect();
    let (recommended, alternatives) = choice(comparison);
    let subject = subject(&comparison.conditions);
    let bound = recommended.as_deref().and_then(|method| bound_of(method, &compared));
    let sentence = match (comparison.verdict, &recommended) {
        (Verdict::Winner, Some(method)) => {
            format!("{subject}: choose {method}; {}{}.", lead(comparison), bound.unwrap_or_default())
        }
        (Verdict::Tie, Some(method)) => format!(
            "{subject}: choose {method}{}; {} cannot be told from the best in these rounds{}.",
            bound.unwrap_or_default(),
            listed(&alternatives),
            if is_wide(comparison) { ", more of them (--full) may tell" } else { "" }
        ),
        _ => {
            let reason = comparison.reason.as_deref().unwrap_or("the data carry no verdict");
            format!("{subject}: no advice, because {reason}.")
        }
    };
    Advice {
        conditions: comparison.conditions.clone(),
        recommended,
        alternatives,
        sentence,
        notes: notes(&compared),
    }
}

fn choice(comparison: &Comparison) -> (Option<String>, Vec<String>) {
    match comparison.verdict {
        Verdict::Winner => (comparison.winner.clone(), Vec::new()),
        Verdict::Tie => {
            let near = comparison.tied.iter().filter(|method| behind(comparison, method) <= NEAR);
            let simplest = near.min_by_key(|method| effort(method)).cloned();
            let others = comparison.tied.iter().filter(|method| Some(*method) != simplest.as_ref());
            (simplest.clone(), others.cloned().collect())
        }
        Verdict::NotComparable => (None, Vec::new()),
    }
}

/// How far the leader is ahead of a method by the median ratio; 1 for the leader itself.
fn behind(comparison: &Comparison, method: &str) -> f64 {
    comparison.ratios.iter().find(|ratio| ratio.method == method).map_or(1.0, |ratio| ratio.ratio)
}

/// Whether methods are in the tie that the median puts well behind: then it is for want of rounds.
fn is_wide(comparison: &Comparison) -> bool {
    comparison.tied.iter().any(|method| behind(comparison, method) > NEAR)
}

/// What a method asks of a program: a call is simpler than a mapping with its SIGBUS, that is simpler than
/// a ring, and each option is one more thing to get right.
fn effort(method: &str) -> (u32, usize) {
    let Ok(method) = method.parse::<Method>() else { return (u32::MAX, 0) };
    let by_access = match method.access() {
        Access::Pread => 0,
        Access::Mmap => 1,
        Access::Uring => 2,
        Access::Anonymous => 3,
    };
    let options = method.options().iter().filter(|option| !matches!(option, MethodOption::Depth(_))).count();
    // O_DIRECT makes alignment and caching the program's own business: more than another access does.
    (by_access + if method.is_direct() { 4 } else { 0 }, options)
}

fn subject(conditions: &ComparedConditions) -> String {
    let reads = match conditions.conditions.workload {
        Workload::RandomRead => "random reads",
        Workload::SequentialRead => "sequential reads",
    };
    format!(
        "{reads}, {}",
        conditions.label.split_once(" · ").map_or("", |(_, rest)| rest).replace(" · ", ", ")
    )
}

fn lead(comparison: &Comparison) -> String {
    let Some(next) = comparison.ratios.first() else { return String::new() };
    let interval = match (next.low, next.high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", times(low), times(high)),
        _ => String::new(),
    };
    format!("it is {}x{interval} as fast as {}, the next best", times(next.ratio), next.method)
}

/// A ratio with three digits.
fn times(ratio: f64) -> String {
    let digits = if ratio < 9.995 { 2 } else { usize::from(ratio < 99.95) };
    format!("{ratio:.digits$}")
}

fn bound_of(method: &str, cells: &[&CellJudgement]) -> Option<String> {
    let cell = cells.iter().find(|cell| cell.method == method)?;
    let bound = cell.bound.filter(|bound| *bound != BoundName::Unknown)?;
    Some(match cell.of_ceiling {
        Some(share) => format!(", limited by {} ({:.0} % of it)", bound.name(), share * 100.0),
        None => format!(", limited by {}", bound.name()),
    })
}

fn notes(cells: &[&CellJudgement]) -> Vec<String> {
    let amplified = |cell: &&&CellJudgement| cell.amplification().is_some_and(|times| times >= AMPLIFIED);
    cells
        .iter()
        .filter(amplified)
        .map(|cell| {
            let read = times(cell.amplification().unwrap_or(0.0));
            format!("{}: {read} B read from the device per byte asked.", cell.method)
        })
        .collect()
}

/// `a, b and c`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_simpler_than_a_mapping_and_that_than_a_ring() {
        let mut methods = ["uring:depth=32", "mmap:random", "pread:direct", "mmap", "pread:random", "pread"];
        methods.sort_by_key(|method| effort(method));
        assert_eq!(
            methods,
            ["pread", "pread:random", "mmap", "mmap:random", "uring:depth=32", "pread:direct"]
        );
    }

    #[test]
    fn lists_read_as_speech() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&words), "a, b and c");
        assert_eq!(listed(&words[..1]), "a");
        assert_eq!([1.234, 12.34, 272.4].map(times), ["1.23", "12.3", "272"]);
    }
}
