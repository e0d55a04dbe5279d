//! The cliff: the ratio of data to page cache at which the order of two methods changes.
//!
//! A run of this question has a grid of cells that differ in `span_bytes` alone, under one memory
//! limit. Cells that are equal but for span and method are a *group*, each method of it a *curve*
//! over the ratio. [`search`] looks at what has been measured and decides which
//! cells to measure next, until every change of order is known to the tolerance or the data do not
//! allow a narrower interval. [`crossings`] returns the result. Both are functions of the run
//! alone, so that a resumed run continues as the first one would have.
//!
//! **A change of order** is looked for between two *firm* differences in opposite directions. At
//! one span two methods are compared by the paired ratio of their rates in each round, which gives
//! the evidence for a difference as a standard normal deviate. Neighbouring spans are firm if their
//! evidence together holds as one of as many claims as there are pairs of methods times runs of
//! neighbours in the grid. Where the order changes between the two, and how certainly, follows from
//! one fit (`fit.rs`) over all spans from the one to the other, whether of the grid or added.
//!
//! **Batches.** A method is compared with another in the rounds that both were sampled in. Middles
//! are therefore measured with cells of their own at a span that nothing was measured at before.
//! The chosen window of a prefetching method is measured a batch after its rivals. A control of one
//! of the rivals is then measured again in the same batch, and its difference, including drift of
//! the machine, counts as noise.

pub mod blocks;
mod change;
mod facts;
mod fit;
mod found;
mod group;
pub mod plots;
pub mod search;
pub mod words;

use pagewise_analysis::judge::checked;
use pagewise_analysis::judge::collected::collect;
use pagewise_model::run::Run;

pub use found::*;

/// Return the curves of a run and their crossings. A run that was cut short gives the results so
/// far.
pub fn crossings(run: &Run) -> Cliff {
    let run = checked(run);
    let samples = collect(&run);
    let tolerance =
        run.header.plan.search.as_ref().map(|search| f64::from(search.tolerance_thousandths) / 1000.0);
    Cliff { tolerance, groups: facts::groups(&run, &samples) }
}
