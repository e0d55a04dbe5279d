//! The matrix of a plan: distinct choices, multiplied up to the cells that a run may have.

use anyhow::{Result, ensure};

/// More cells are a typing error: at a second each, a round would take more than an hour.
pub(super) const MAX_CELLS: usize = 5_000;
/// Limit for one part of a matrix before all of it is counted; below it, the message has the exact
/// number.
const MOST_VARIED: usize = 20 * MAX_CELLS;

/// Combine each of `all` with each of `values`, up to the cells that a run may have, so that an
/// absurd product is not made.
pub(super) fn vary<A: Clone, T: Clone>(all: Vec<A>, values: &[T], set: impl Fn(&mut A, T)) -> Result<Vec<A>> {
    let product = all.len().saturating_mul(values.len());
    ensure!(product <= MOST_VARIED, "the matrix has at least {product} cells: a run has at most {MAX_CELLS}");
    let varied = all
        .into_iter()
        .flat_map(|one| values.iter().map(move |value| (one.clone(), value.clone())).collect::<Vec<_>>())
        .map(|(mut one, value)| {
            set(&mut one, value);
            one
        });
    Ok(varied.collect())
}
