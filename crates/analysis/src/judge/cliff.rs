//! The cliff: at which ratio of data to page cache do two methods change places?
//!
//! A run of this question has a grid of cells that differ in `span_bytes` alone, under one memory limit. Cells that are
//! equal but for span and method are a *group*, each method of it a *curve* over the ratio. [`search`](crate::search) looks at what has
//! been measured and says which cells to measure next, until every change of places is known to the tolerance or
//! the data cannot tell it closer. [`crossings`] says what came out. Both are functions of the run alone, so
//! that a resumed run goes on as the first one would have.
//!
//! **Clearly faster.** At one span two methods are compared by the paired ratio of their rates in each round. A change
//! of places is looked for only between two *firm* differences in opposite directions: both are a
//! [`verdict`](crate::judge::verdict) that also stands as one of as many claims as there are pairs of methods times ratios of
//! the grid. *Clear* differences between them narrow the interval: the median ratio exceeds 2 % and what a control
//! differs from its own method by, and its interval, of a lower coverage, lies off 1. Where clear ones contradict each
//! other, all of them stay inside.
//!
//! **Batches.** A method is compared with another in the rounds that both were sampled in. Middles are therefore
//! measured with cells of their own at a span that nothing was measured at before. The chosen window of a prefetching
//! method comes a batch after its rivals: there a control of one of the rivals is taken again beside it, and what
//! that differs by, drift of the machine included, counts as noise.

pub(crate) mod change;
pub(crate) mod curves;
mod facts;
pub(crate) mod group;
mod sentences;

use pagewise_model::run::Run;

use super::collected::collect;
pub use curves::*;

/// The curves of a run, and where they cross. A run that was cut short gives what there is.
pub fn crossings(run: &Run) -> Cliff {
    let samples = collect(run);
    let tolerance =
        run.header.plan.search.as_ref().map(|search| f64::from(search.tolerance_thousandths) / 1000.0);
    Cliff { tolerance, groups: facts::groups(run, &samples) }
}
