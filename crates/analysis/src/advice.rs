//! What to choose, in one sentence for each comparison.

use pagewise_model::{Access, CacheState, Method, MethodOption, Workload};
use serde::Serialize;

use crate::bound::{AT_CEILING, BoundName};
use crate::judged::{CellJudgement, ComparedConditions, Comparison};
use crate::verdict::{FEWEST_ROUNDS, NEAR, SMALLEST_DIFFERENCE, Verdict};

/// From this many bytes read per byte asked for on, readahead explains a result.
pub const AMPLIFIED: f64 = 1.5;

/// From this many faults an operation on, they explain why a mapping is behind.
const FAULTS_PER_OP: f64 = 0.5;
/// Beneath this many bytes per byte asked for, a result comes from memory.
const FROM_MEMORY: f64 = 0.01;
/// Fewer refaults than this an operation explain nothing.
const REFAULTS_PER_OP: f64 = 0.01;

/// A tie with more noise than this, as a share, carries no advice: the machine decided and not the methods.
pub const UNSTEADY: f64 = 0.5;

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
    let obstacle = obstacle(comparison, &compared);
    let (recommended, alternatives) = match obstacle {
        Some(_) => (None, Vec::new()),
        None => choice(comparison),
    };
    let subject = subject(&comparison.conditions);
    let bound = recommended.as_deref().and_then(|method| bound_of(method, &compared));
    let sentence = match (comparison.verdict, &recommended) {
        (Verdict::Winner, Some(method)) => {
            format!("{subject}: choose {method}; {}{}.", lead(comparison), bound.unwrap_or_default())
        }
        (Verdict::Tie, Some(method)) => format!(
            "{subject}: choose {method}{}{}; {} cannot be told from the best in these rounds{}.",
            why_simplest(comparison, method),
            bound.unwrap_or_default(),
            listed(&alternatives),
            if comparison.unclear().is_empty() { "" } else { ", more of them (--full) may tell" }
        ),
        _ => {
            let reason = obstacle.as_deref().unwrap_or("the data carry no verdict");
            format!("{subject}: no advice, because {reason}.")
        }
    };
    Advice {
        conditions: comparison.conditions.clone(),
        recommended,
        alternatives,
        sentence,
        notes: notes(comparison, &compared),
    }
}

fn choice(comparison: &Comparison) -> (Option<String>, Vec<String>) {
    match comparison.verdict {
        Verdict::Winner => (comparison.winner.clone(), Vec::new()),
        Verdict::Tie => {
            // A method that may be far behind is not advised for its simplicity.
            let simplest =
                comparison.near().into_iter().min_by_key(|method| effort(method)).map(String::from);
            let others = comparison.tied.iter().filter(|method| Some(*method) != simplest.as_ref());
            (simplest.clone(), others.cloned().collect())
        }
        Verdict::NotComparable => (None, Vec::new()),
    }
}

/// Why nothing is advised; `None` where something is.
fn obstacle(comparison: &Comparison, cells: &[&CellJudgement]) -> Option<String> {
    match comparison.verdict {
        Verdict::Winner => None,
        Verdict::NotComparable => comparison.reason.clone(),
        Verdict::Tie => unsteady(comparison).or_else(|| may_be_faster(comparison, cells)),
    }
}

fn unsteady(comparison: &Comparison) -> Option<String> {
    let noise = comparison.noise.filter(|noise| *noise > UNSTEADY)?;
    Some(format!("the machine was too unsteady: a method measured twice differed by {:.0} %", noise * 100.0))
}

/// The leader is chosen among methods with enough rounds; another in the tie may be ahead of it.
fn may_be_faster(comparison: &Comparison, cells: &[&CellJudgement]) -> Option<String> {
    let rival = comparison
        .ratios
        .iter()
        .find(|ratio| ratio.ratio < 1.0 / NEAR && comparison.tied.contains(&ratio.method))?;
    let valid = cells.iter().find(|cell| cell.id == rival.cell).map_or(rival.rounds, |cell| cell.samples);
    let why = match rival.rounds {
        FEWEST_ROUNDS.. => "these rounds cannot tell".to_string(),
        // Rounds may be valid and still not count: without the leader, or with another page cache.
        paired if paired < valid => format!("only {paired} of its rounds can be compared"),
        1 => "only 1 of its rounds is valid".to_string(),
        paired => format!("only {paired} of its rounds are valid"),
    };
    Some(format!("{} may be faster, but {why}", rival.method))
}

/// Why another method than the leader is advised.
fn why_simplest(comparison: &Comparison, method: &str) -> String {
    if comparison.leader.as_deref() == Some(method) {
        return String::new();
    }
    format!(" (the simplest of those within {:.0} %)", SMALLEST_DIFFERENCE * 100.0)
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
    let is = match comparison.conditions.conditions.cache {
        CacheState::ColdStart => "it is warm",
        _ => "it is",
    };
    format!("{is} {}x{interval} as fast as {}, the next best", times(next.ratio), next.method)
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
        // A ceiling is a measurement too: more than all of it says no more than all of it.
        Some(share) if share >= AT_CEILING => format!(", limited by {} (at its ceiling)", bound.name()),
        Some(share) => format!(", limited by {} ({:.0} % of it)", bound.name(), share * 100.0),
        None => format!(", limited by {}", bound.name()),
    })
}

fn notes(comparison: &Comparison, cells: &[&CellJudgement]) -> Vec<String> {
    let amplified = |cell: &&&CellJudgement| cell.amplification().is_some_and(|times| times >= AMPLIFIED);
    let amplification = cells.iter().filter(amplified).map(|cell| {
        let read = times(cell.amplification().unwrap_or(0.0));
        format!("{}: {read} B read from the device per byte asked.", cell.method)
    });
    let faults = cells.iter().filter_map(|cell| faults(comparison, cell));
    amplification.chain(faults).chain(refaults(cells)).collect()
}

/// What a mapping pays that is behind: its faults.
fn faults(comparison: &Comparison, cell: &CellJudgement) -> Option<String> {
    let behind = comparison.ratios.iter().any(|ratio| ratio.cell == cell.id && ratio.told_apart);
    let seen = cell.evidence.as_ref().filter(|_| behind && cell.access == Access::Mmap.name())?;
    let many = |per_op: &f64| *per_op >= FAULTS_PER_OP;
    if let Some(major) = seen.major_faults_per_op.filter(many) {
        return Some(format!(
            "{}: {} page faults an operation waited for the device.",
            cell.method,
            times(major)
        ));
    }
    // Where the device delivers, amplification says more.
    let from_memory = seen.amplification.is_some_and(|times| times < FROM_MEMORY);
    let minor = seen.minor_faults_per_op.filter(|per_op| many(per_op) && from_memory)?;
    Some(format!(
        "{}: {} page faults an operation, none of which needed the device.",
        cell.method,
        times(minor)
    ))
}

/// Under a memory limit, what was thrown out too early.
fn refaults(cells: &[&CellJudgement]) -> Option<String> {
    let of_cell = |cell: &&CellJudgement| {
        cell.data_over_memory?;
        let per_op = cell.evidence.as_ref()?.refaults_per_op.filter(|per_op| *per_op >= REFAULTS_PER_OP)?;
        Some(format!("{} {}", cell.method, times(per_op)))
    };
    let methods: Vec<String> = cells.iter().filter_map(of_cell).collect();
    (!methods.is_empty()).then(|| {
        format!(
            "Pages read again for each operation, because the memory limit had pushed them out: {}.",
            methods.join(", ")
        )
    })
}

/// `a, b and c`.
pub fn listed(words: &[String]) -> String {
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
