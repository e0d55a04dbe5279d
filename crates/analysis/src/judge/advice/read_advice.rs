//! Explanations of the result of a comparison of reads.

use pagewise_model::Access;

use super::case::Case;
use super::note::Note;
use crate::judge::cell::CellJudgement;
use crate::judge::comparison::Comparison;
use crate::judge::verdict::Place;

/// From this many bytes read per byte requested, read amplification explains a result.
const AMPLIFIED: f64 = 1.5;
/// From this many faults per operation, faults explain why a mapping is slower.
const FAULTS_PER_OP: f64 = 0.5;
/// Below this many device bytes per requested byte, a result comes from memory.
const FROM_MEMORY: f64 = 0.01;
/// Fewer refaults per operation than this explain nothing.
const REFAULTS_PER_OP: f64 = 0.01;

pub(super) fn notes(case: &Case<'_>) -> Vec<Note> {
    let faults = case.compared.iter().filter_map(|cell| faults(case.comparison, cell));
    amplification(case).into_iter().chain(faults).chain(refaults(case)).collect()
}

/// Methods that make the device read much more than they request.
pub(super) fn amplification(case: &Case<'_>) -> Vec<Note> {
    let note = |cell: &&CellJudgement| {
        let times = cell.amplification().filter(|times| *times >= AMPLIFIED)?;
        Some(Note::Amplified(cell.method.clone(), times))
    };
    case.compared.iter().filter_map(note).collect()
}

/// The faults of a mapping that is slower.
fn faults(comparison: &Comparison, cell: &CellJudgement) -> Option<Note> {
    let behind = comparison.ratios.iter().any(|ratio| ratio.cell == cell.id && ratio.place == Place::Behind);
    let seen = cell.evidence.as_ref().filter(|_| behind && cell.moves == Access::Mmap)?;
    let many = |per_op: &f64| *per_op >= FAULTS_PER_OP;
    if let Some(major) = seen.major_faults_per_op.filter(many) {
        return Some(Note::MajorFaults(cell.method.clone(), major));
    }
    // If the device delivers, read amplification explains more.
    let from_memory = seen.amplification.is_some_and(|times| times < FROM_MEMORY);
    let minor = seen.minor_faults_per_op.filter(|per_op| many(per_op) && from_memory)?;
    Some(Note::MinorFaults(cell.method.clone(), minor))
}

/// Refaults under a memory limit.
fn refaults(case: &Case<'_>) -> Option<Note> {
    let of_cell = |cell: &&CellJudgement| {
        cell.data_over_memory?;
        let per_op = cell.evidence.as_ref()?.refaults_per_op.filter(|per_op| *per_op >= REFAULTS_PER_OP)?;
        Some((cell.method.clone(), per_op))
    };
    let methods: Vec<_> = case.compared.iter().filter_map(of_cell).collect();
    (!methods.is_empty()).then_some(Note::Refaults(methods))
}
