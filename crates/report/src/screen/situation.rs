//! The comparisons of all runs on a screen, by names that distinguish them.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::Comparison;
use pagewise_analysis::judge::advice::Recommendation;

use crate::words::advice::situations;

/// From this many bytes that the device moves for each byte used, that is worth a line.
pub(super) const AMPLIFIED: f64 = 3.0;

/// A comparison with its name.
pub(super) struct Situation<'a> {
    pub(super) name: String,
    pub(super) judged: &'a Judged,
    pub(super) advice: &'a Recommendation,
    pub(super) comparison: &'a Comparison,
}

/// The situations of all runs, in their order.
pub(super) fn all<'a>(runs: impl Iterator<Item = &'a Judged>) -> Vec<Situation<'a>> {
    let of_run =
        |judged: &'a Judged| judged.advice.iter().zip(&judged.comparisons).map(move |pair| (judged, pair));
    let found: Vec<_> = runs.flat_map(of_run).collect();
    let names = situations(found.iter().map(|(_, (advice, _))| *advice));
    let named = found.into_iter().zip(names);
    named
        .map(|((judged, (advice, comparison)), name)| Situation { name, judged, advice, comparison })
        .collect()
}

impl Situation<'_> {
    /// True if its run asks which actor leaves most to one method: that has no rival.
    pub(super) fn is_of_a_victim(&self) -> bool {
        let judged = self.judged;
        !judged.actors.is_empty() && judged.comparisons.iter().all(|comparison| comparison.cells.len() == 1)
    }
}
