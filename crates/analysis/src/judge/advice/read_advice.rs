//! Explanations of the result of a comparison of reads.

use pagewise_model::Access;

use super::case::Case;
use crate::judge::cell::CellJudgement;
use crate::judge::comparison::Comparison;
use crate::judge::verdict::Place;
use pagewise_model::format::times;

/// From this many bytes read per byte requested, read amplification explains a result.
pub const AMPLIFIED: f64 = 1.5;
/// From this many faults per operation, faults explain why a mapping is slower.
const FAULTS_PER_OP: f64 = 0.5;
/// Below this many device bytes per requested byte, a result comes from memory.
const FROM_MEMORY: f64 = 0.01;
/// Fewer refaults per operation than this explain nothing.
const REFAULTS_PER_OP: f64 = 0.01;

pub(super) fn notes(case: &Case<'_>) -> Vec<String> {
    let faults = case.compared.iter().filter_map(|cell| faults(case.comparison, cell));
    amplification(case).into_iter().chain(faults).chain(refaults(case)).collect()
}

/// Sentences about methods that make the device read much more than they request.
pub(super) fn amplification(case: &Case<'_>) -> Vec<String> {
    let amplified = |cell: &&&CellJudgement| cell.amplification().is_some_and(|times| times >= AMPLIFIED);
    let note = |cell: &&CellJudgement| {
        let read = times(cell.amplification().unwrap_or(0.0));
        format!("{}: {read} B read from the device per requested byte.", cell.method)
    };
    case.compared.iter().filter(amplified).map(note).collect()
}

/// Sentence about the faults of a mapping that is slower.
fn faults(comparison: &Comparison, cell: &CellJudgement) -> Option<String> {
    let behind = comparison.ratios.iter().any(|ratio| ratio.cell == cell.id && ratio.place == Place::Behind);
    let seen = cell.evidence.as_ref().filter(|_| behind && cell.moves == Access::Mmap)?;
    let many = |per_op: &f64| *per_op >= FAULTS_PER_OP;
    if let Some(major) = seen.major_faults_per_op.filter(many) {
        return Some(format!("{}: {} major faults per operation.", cell.method, times(major)));
    }
    // If the device delivers, read amplification explains more.
    let from_memory = seen.amplification.is_some_and(|times| times < FROM_MEMORY);
    let minor = seen.minor_faults_per_op.filter(|per_op| many(per_op) && from_memory)?;
    Some(format!(
        "{}: {} page faults per operation, none of which needed the device.",
        cell.method,
        times(minor)
    ))
}

/// Sentence about refaults under a memory limit.
fn refaults(case: &Case<'_>) -> Option<String> {
    let of_cell = |cell: &&CellJudgement| {
        cell.data_over_memory?;
        let per_op = cell.evidence.as_ref()?.refaults_per_op.filter(|per_op| *per_op >= REFAULTS_PER_OP)?;
        Some(format!("{} {}", cell.method, times(per_op)))
    };
    let methods: Vec<String> = case.compared.iter().filter_map(of_cell).collect();
    (!methods.is_empty())
        .then(|| format!("Refaults per operation, because of the memory limit: {}.", methods.join(", ")))
}
