//! The cliff: the ratio of data to page cache at which the order of two methods changes.
//!
//! A run of this question has a grid of cells that differ in `span_bytes` alone, under one memory limit. Cells that are
//! equal but for span and method are a *group*, each method of it a *curve* over the ratio. [`search`](crate::search)
//! looks at what has been measured and decides which cells to measure next, until every change of order is known to the
//! tolerance or the data do not allow a narrower interval. [`crossings`] returns the result. Both are functions of the
//! run alone, so that a resumed run continues as the first one would have.
//!
//! **Clearly faster.** At one span two methods are compared by the paired ratio of their rates in each round. A change
//! of order is looked for only between two *firm* differences in opposite directions: both are a
//! [`verdict`](crate::judge::verdict) that also holds as one of as many claims as there are pairs of methods times
//! ratios of the grid. *Clear* differences between them narrow the interval: the median ratio exceeds 2 % and the
//! difference of a control from its own method, and its interval, of a lower coverage, excludes 1. If clear ones
//! contradict each other, all of them stay inside.
//!
//! **Batches.** A method is compared with another in the rounds that both were sampled in. Middles are therefore
//! measured with cells of their own at a span that nothing was measured at before. The chosen window of a prefetching
//! method is measured a batch after its rivals. A control of one of the rivals is then measured again in the same batch,
//! and its difference, including drift of the machine, counts as noise.

pub(crate) mod change;
pub(crate) mod curves;
mod facts;
pub(crate) mod group;
mod sentences;

use pagewise_model::run::Run;

use super::collected::collect;
pub use curves::*;

/// Return the curves of a run and their crossings. A run that was cut short gives the results so far.
pub fn crossings(run: &Run) -> Cliff {
    let samples = collect(run);
    let tolerance =
        run.header.plan.search.as_ref().map(|search| f64::from(search.tolerance_thousandths) / 1000.0);
    Cliff { tolerance, groups: facts::groups(run, &samples) }
}
